// SPDX-License-Identifier: Apache-2.0
// SessionService's DeleteSession.
#include <string.h>
#include <sys/stat.h>

#include "analysis/formats/format.h"
#include "base/log.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "rpc/message.h"
#include "server/capture_jobs/captures.h"
#include "server/engine/pool.h"
#include "server/engine/request.h"
#include "server/grpc/import.h"
#include "storage/sessions/removal.h"

struct removal {
    struct xpl_svc_import *svc;
    struct xpl_rpc_call *call;
    struct xpl_arena arena;
    xpl_str_t base, path;
};

static void removal_free(struct removal *r) {
    xpl_arena_fini(&r->arena);
    xpl_sys_free(r);
}

static void run_removal(void *arg) {
    struct removal *const r = arg;
    struct xpl_error err = {0};
    struct stat sb;
    xpl_status_t st = XPL_OK;
    if (r->svc->o.objects)
        st = xpl_session_remove_objects(r->svc->o.objects, r->path.ptr, xpl_format_match, NULL,
                                        &err);
    else if (stat(r->svc->o.logdir, &sb) != 0 || !S_ISDIR(sb.st_mode))
        st = xpl_error_set(&err, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                           "the log directory is one file, which is not deleted");
    else
        st = xpl_session_remove(r->base.ptr, r->path.ptr, xpl_format_match, 0, 0, &err);
    if (st == XPL_OK) {
        xpl_capture_jobs_await(r->svc->captures, r->path.ptr, (struct xpl_capture_jobs_listed){0});
        xpl_log(XPL_LOG_INFO, "import", "a session was deleted for a client");
        Xplaned__V1__DeleteSessionResponse done;
        xplaned__v1__delete_session_response__init(&done);
        xpl_rpc_finish_message(r->call, &done.base);
    } else {
        xpl_rpc_finish_error(r->call, &err);
    }
    xpl_rpc_call_unref(r->call);
    removal_free(r);
}

// Whether the file is in the directory, and not below it.
static bool is_in(xpl_str_t path, xpl_str_t dir) {
    const char *const slash = memrchr(path.ptr, '/', path.len);
    const size_t len = slash ? (size_t)(slash - path.ptr) : 0;
    return slash ? xpl_str_eq(xpl_str_sub(path, 0, len), dir) : xpl_str_eq(dir, XPL_STR("."));
}

// Whether a removal finds all files of the session, and no other's.
static xpl_status_t check_files(const struct xpl_snapshot *snap, const struct xpl_session *one,
                                struct xpl_error *err) {
    struct xpl_profile_file file;
    const bool top = xpl_str_eq(one->path, XPL_STR("."));
    for (size_t i = 0; i < snap->n_sessions; i++) {
        const struct xpl_session *const other = &snap->sessions[i];
        if (other != one && other->n_hosts && is_in(other->hosts[0].path, one->path))
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "the session is not deleted: %.80s is in its directory",
                             other->name.ptr);
    }
    for (size_t i = 0; i < one->n_hosts; i++) {
        const xpl_str_t path = one->hosts[i].path;
        if (xpl_format_match(path, &file) && file.is_doubtful)
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "%.80s is not deleted: its name does not say that it is a profile",
                             path.ptr);
        const bool is_file = xpl_str_eq(path, one->path);
        if (!top && !is_file &&
            !(xpl_str_starts(path, one->path) && path.ptr[one->path.len] == '/'))
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "the session is not deleted: others are in its directory");
    }
    return XPL_OK;
}

static xpl_status_t find_session(struct removal *r, xpl_bytes_t request, struct xpl_error *err) {
    ProtobufCMessage *msg = NULL;
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__delete_session_request__descriptor, request,
                                   &r->arena, &msg, err));
    const xpl_str_t name = xpl_str_from(((Xplaned__V1__DeleteSessionRequest *)msg)->session);
    if (!r->svc->o.allow_delete)
        XPL_RETURN_ERROR(err, XPL_PERMISSION_DENIED,
                         "this daemon deletes nothing: it was started without --allow-delete");
    struct xpl_snapshot *snap = xpl_catalogue_get(r->svc->catalogue);
    const struct xpl_session *const one = xpl_snapshot_find(snap, name);
    const bool copied = one &&
                        xpl_arena_printf(&r->arena, &r->path, "%.*s", XPL_STR_FMT(one->path)) &&
                        xpl_arena_printf(&r->arena, &r->base, "%.*s", XPL_STR_FMT(snap->base));
    const xpl_status_t st =
        one ? check_files(snap, one, err) : xpl_request_no_session(snap, name, err);
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
