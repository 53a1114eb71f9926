// SPDX-License-Identifier: Apache-2.0
#include "server/engine/opened.h"

#include "server/engine/cache.h"

void xpl_opened_profile_close(struct xpl_opened_profile *o) {
    xpl_object_unref(o->import);
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

xpl_status_t xpl_opened_profile_read(struct xpl_source *source, const struct xpl_host *host,
                                     size_t limit, struct xpl_work_owner owner,
                                     struct xpl_opened_profile *ret, struct xpl_error *err) {
    struct xpl_opened_profile o = {.source = xpl_source_ref(source)};
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_guarded_exec exec;
    struct xpl_error why = {0};
    xpl_guarded_exec_init(&exec, &serial, owner, source);
    const struct xpl_format_limits limits = {.max_bytes = limit, .exec = &exec.exec};
    xpl_status_t st =
        xpl_profile_open(host->path, xpl_source_bytes(source), &limits, &o.profile, &why);
    if (st == XPL_OK) st = xpl_profile_check_name(&o.profile, host->path, &why);
    if (st != XPL_OK) xpl_profile_close(&o.profile);
    o.bytes = o.profile.bytes;
    // A file that is being written may hold any bytes.
    const xpl_status_t same = st == XPL_OK ? XPL_OK : xpl_source_verify(source, err);
    if (same == XPL_OK && (st == XPL_OK || st == XPL_DATA_LOSS))
        *ret = o;
    else
        xpl_opened_profile_close(&o);
    if (st == XPL_OK || same != XPL_OK) return same;
    return xpl_error_set(err, st, __FILE__, __LINE__, why.offset, "%s: %s", host->path.ptr,
                         why.msg);
}

xpl_status_t xpl_opened_profile_open(const struct xpl_snapshot *snapshot,
                                     const struct xpl_host *host, size_t limit,
                                     struct xpl_work_owner owner, struct xpl_opened_profile *ret,
                                     struct xpl_error *err) {
    struct xpl_source *source = NULL;
    XPL_TRY(xpl_snapshot_open(snapshot, host, 0, &source, err));
    const xpl_status_t st = xpl_opened_profile_read(source, host, limit, owner, ret, err);
    xpl_source_free(source);
    return st;
}

size_t xpl_opened_profile_expect(const struct xpl_snapshot *snapshot, const struct xpl_host *host,
                                 enum xpl_form form) {
    struct xpl_source *source = NULL;
    const size_t unread =
        xpl_profile_expect_unread(form, host->path, (size_t)host->fingerprint.size);
    // A plain file takes nothing.
    if (unread == 0 || snapshot->in_bucket) return unread;
    // A file that cannot be opened takes no memory.
    if (xpl_snapshot_open(snapshot, host, 0, &source, NULL) != XPL_OK) return 0;
    const size_t n = xpl_profile_expect(form, host->path, xpl_source_bytes(source));
    xpl_source_free(source);
    return n;
}

size_t xpl_opened_profile_memory(const struct xpl_opened_profile *o) {
    return o->profile.owned || (o->import && !o->import_file) ? o->bytes.len : 0;
}

bool xpl_opened_profile_is_truncated(const struct xpl_opened_profile *o) {
    return xpl_source_is_truncated(o->source) ||
           (o->import_file && xpl_source_is_truncated(o->import_file));
}
