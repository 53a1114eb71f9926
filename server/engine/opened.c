// SPDX-License-Identifier: Apache-2.0
#include "server/engine/opened.h"

void xpl_opened_profile_close(struct xpl_opened_profile *o) {
    xpl_profile_close(&o->profile);
    xpl_source_free(o->source);
    *o = (struct xpl_opened_profile){0};
}

static bool guarded_cancelled(struct xpl_exec *e) {
    const struct xpl_guarded_exec *const x = (const struct xpl_guarded_exec *)e;
    if (x->source && xpl_source_is_truncated(x->source)) return true;
    return x->owner.is_cancelled && x->owner.is_cancelled(x->owner.arg);
}

static void guarded_run(struct xpl_exec *e, size_t n, xpl_exec_fn fn, void *ctx) {
    xpl_exec_run(((struct xpl_guarded_exec *)e)->inner, n, fn, ctx);
}

void xpl_guarded_exec_init(struct xpl_guarded_exec *x, struct xpl_exec *inner,
                           struct xpl_work_owner owner, const struct xpl_source *source) {
    *x = (struct xpl_guarded_exec){
        .exec = {.run = guarded_run, .cancelled = guarded_cancelled, .width = inner->width},
        .inner = inner,
        .owner = owner,
        .source = source,
    };
}

xpl_status_t xpl_opened_profile_open(const struct xpl_snapshot *snapshot,
                                     const struct xpl_host *host, size_t limit,
                                     struct xpl_work_owner owner, struct xpl_opened_profile *ret,
                                     struct xpl_error *err) {
    struct xpl_opened_profile o = {0};
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_guarded_exec exec;
    struct xpl_error why = {0};
    XPL_TRY(xpl_snapshot_open(snapshot, host, 0, &o.source, err));
    xpl_guarded_exec_init(&exec, &serial, owner, o.source);
    const struct xpl_format_limits limits = {.max_bytes = limit, .exec = &exec.exec};
    const xpl_status_t st =
        xpl_profile_open(host->path, xpl_source_bytes(o.source), &limits, &o.profile, &why);
    o.bytes = o.profile.bytes;
    // A file that is being written may hold any bytes.
    const xpl_status_t same = st == XPL_OK ? XPL_OK : xpl_source_verify(o.source, err);
    if (same == XPL_OK && (st == XPL_OK || st == XPL_DATA_LOSS))
        *ret = o;
    else
        xpl_opened_profile_close(&o);
    if (st == XPL_OK || same != XPL_OK) return same;
    return xpl_error_set(err, st, __FILE__, __LINE__, why.offset, "%s: %s", host->path.ptr,
                         why.msg);
}

size_t xpl_opened_profile_expect(const struct xpl_snapshot *snapshot, const struct xpl_host *host) {
    size_t n;
    struct xpl_source *source = NULL;
    if (xpl_format_of_name(host->path, NULL) == xpl_formats(&n)) return 0; // mapped
    // What cannot be opened takes nothing.
    if (xpl_snapshot_open(snapshot, host, 0, &source, NULL) != XPL_OK) return 0;
    n = xpl_profile_expect(host->path, xpl_source_bytes(source));
    xpl_source_free(source);
    return n;
}

size_t xpl_opened_profile_memory(const struct xpl_opened_profile *o) {
    return o->profile.owned ? o->bytes.len : 0;
}
