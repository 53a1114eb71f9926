// SPDX-License-Identifier: Apache-2.0
// SessionService's DeleteSession.
#include "proto/xplaned/v1/session.pb-c.h"
#include "rpc/message.h"
#include "server/audit.h"
#include "server/capture_jobs/captures.h"
#include "server/engine/pool.h"
#include "server/engine/request.h"
#include "server/grpc/import.h"
#include "server/removal/removal.h"

struct removal {
    struct xpl_svc_import *svc;
    struct xpl_rpc_call *call;
    struct xpl_arena arena;
    xpl_str_t name, path;
};

static void removal_free(struct removal *r) {
    xpl_arena_fini(&r->arena);
    xpl_sys_free(r);
}

static void audit(const struct removal *r, xpl_status_t code, const struct xpl_error *err) {
    const struct xpl_audit_client client = xpl_audit_client_of(r->call);
    xpl_audit("session deleted", &client, r->name, code, err);
}

static void run_removal(void *arg) {
    struct removal *const r = arg;
    struct xpl_error err = {0};
    const struct xpl_removal what = {.cause = XPL_REMOVAL_CLIENT, .path = r->path.ptr};
    const xpl_status_t st = xpl_removals_run(r->svc->o.removals, &what, &err);
    audit(r, st, &err);
    if (st == XPL_OK) {
        xpl_capture_jobs_await(r->svc->captures, r->path.ptr, (struct xpl_capture_jobs_listed){0});
        Xplaned__V1__DeleteSessionResponse done;
        xplaned__v1__delete_session_response__init(&done);
        xpl_rpc_finish_message(r->call, &done.base);
    } else {
        xpl_rpc_finish_error(r->call, &err);
    }
    xpl_rpc_call_unref(r->call);
    removal_free(r);
}

static xpl_status_t find_session(struct removal *r, xpl_bytes_t request, struct xpl_error *err) {
    ProtobufCMessage *msg = NULL;
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__delete_session_request__descriptor, request,
                                   &r->arena, &msg, err));
    const xpl_str_t name = r->name =
        xpl_str_from(((Xplaned__V1__DeleteSessionRequest *)msg)->session);
    if (!r->svc->o.allow_delete)
        XPL_RETURN_ERROR(err, XPL_PERMISSION_DENIED,
                         "this daemon deletes nothing: it was started without --allow-delete");
    struct xpl_snapshot *snap = xpl_catalogue_get(r->svc->catalogue);
    const struct xpl_session *const one = xpl_snapshot_find(snap, name);
    const bool copied = one && xpl_arena_str(&r->arena, one->path, &r->path);
    const xpl_status_t st =
        one ? xpl_removal_check(snap, one, err) : xpl_snapshot_no_session(snap, name, err);
    xpl_snapshot_unref(snap);
    XPL_TRY(st);
    if (!copied) XPL_RETURN_OOM(err, "delete");
    return XPL_OK;
}

void xpl_svc_delete_session(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_error err = {0};
    struct removal *r = xpl_sys_alloc(sizeof *r);
    if (!r) {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    *r = (struct removal){.svc = service, .call = c};
    xpl_arena_init(&r->arena, 1 << 20);
    if (find_session(r, request, &err) != XPL_OK) {
        audit(r, err.code, &err);
        xpl_rpc_finish_error(c, &err);
        removal_free(r);
        return;
    }
    xpl_rpc_call_ref(c);
    if (xpl_pool_submit(r->svc->pool, run_removal, r)) return;
    xpl_rpc_call_unref(c);
    removal_free(r);
    xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "too much at once; try again soon");
}
