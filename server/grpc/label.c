// SPDX-License-Identifier: Apache-2.0
// SessionService's LabelSession, and labels of sessions that are gone.
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "server/audit.h"
#include "server/engine/pool.h"
#include "server/grpc/services.h"
#include "server/labels/labels.h"
#include "storage/sessions/catalogue.h"

static bool copy_texts(char *const *texts, size_t n, struct xpl_arena *arena, xpl_str_t **ret) {
    *ret = xpl_arena_array(arena, n, sizeof **ret);
    for (size_t i = 0; *ret && i < n; i++)
        (*ret)[i] = xpl_str_from(texts[i]);
    return *ret;
}

static xpl_status_t change(struct xpl_svc_labels *s, const struct xpl_rpc_call *call,
                           const Xplaned__V1__LabelSessionRequest *m, struct xpl_arena *arena,
                           struct xpl_error *err) {
    xpl_str_t *add, *remove;
    if (!copy_texts(m->add, m->n_add, arena, &add) ||
        !copy_texts(m->remove, m->n_remove, arena, &remove))
        XPL_RETURN_OOM(err, "labels");
    struct xpl_snapshot *const snap = xpl_catalogue_get(s->catalogue);
    const struct xpl_labels_change c = {xpl_str_from(m->session), add, remove, m->n_add,
                                        m->n_remove};
    const xpl_status_t st = xpl_labels_set(s->labels, snap, &c, err);
    xpl_snapshot_unref(snap);
    const struct xpl_audit_client client = xpl_audit_client_of(call);
    xpl_labels_audit(&client, &c, st, err);
    return st;
}

static void reply(struct xpl_svc_labels *s, struct xpl_rpc_call *c, const char *session,
                  struct xpl_arena *arena) {
    Xplaned__V1__LabelSessionResponse r;
    xpl_str_t *labels;
    size_t n;
    xplaned__v1__label_session_response__init(&r);
    bool ok = xpl_labels_of(s->labels, xpl_str_from(session), arena, &labels, &n);
    ok = ok && (r.labels = xpl_arena_array(arena, n, sizeof *r.labels)) != NULL;
    for (size_t i = 0; ok && i < n; i++)
        r.labels[r.n_labels++] = xpl_svc_field(labels[i].ptr);
    if (ok)
        xpl_rpc_finish_message(c, &r.base);
    else
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
}

static void label_session(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_labels *const s = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    struct xpl_error err = {0};
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__label_session_request__descriptor, request, &arena, &msg))
        return;
    const Xplaned__V1__LabelSessionRequest *const m = (const Xplaned__V1__LabelSessionRequest *)msg;
    if (change(s, c, m, &arena, &err) == XPL_OK)
        reply(s, c, m->session, &arena);
    else
        xpl_rpc_finish_error(c, &err);
}

static void on_label(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_labels *const s = service;
    xpl_svc_later(s->pool, c, request, label_session, s, "too much at once; try again soon");
}

void xpl_svc_labels_methods(struct xpl_svc_labels *s,
                            struct xpl_rpc_method ret[XPL_SVC_LABELS_METHODS]) {
    ret[0] = (struct xpl_rpc_method){
        .path = "/xplaned.v1.SessionService/LabelSession", .on_request = on_label, .service = s};
}

// ---- sessions that are gone ----

static void run_sweep(void *arg) {
    const struct xpl_svc_labels *const s = arg;
    xpl_labels_sweep(s->labels, s->catalogue);
}

void xpl_svc_labels_changed(struct xpl_svc_labels *s) {
    if (!xpl_pool_submit(s->pool, run_sweep, s)) // the next change finds them as well
        xpl_log(XPL_LOG_DEBUG, "catalogue", "labels are not swept: the queue is full");
}
