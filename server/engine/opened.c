// SPDX-License-Identifier: Apache-2.0
#include "server/engine/opened.h"

#include <pthread.h>

#include "base/arena.h"

// ---- views ----

// The view that is kept may have this part of the memory of a request, which making it took.  The
// view of a bundle of 200 MB has 400 MB, and takes seconds: too much for each zoom of its trace.
enum { KEPT_PART = 4 };

struct xpl_kept_view {
    struct xpl_fingerprint of;
    struct xpl_profile profile;
    unsigned refs;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xpl_kept_view *last; // has a reference of its own

static void view_unref(struct xpl_kept_view *v) {
    if (!v) return;
    (void)pthread_mutex_lock(&lock);
    const bool over = --v->refs == 0;
    (void)pthread_mutex_unlock(&lock);
    if (!over) return;
    xpl_profile_close(&v->profile);
    xpl_sys_free(v);
}

// The view that is kept, if it is of this file; the caller's reference.
static struct xpl_kept_view *view_known(const struct xpl_fingerprint *of) {
    (void)pthread_mutex_lock(&lock);
    struct xpl_kept_view *const v = last && xpl_fingerprint_eq(&last->of, of) ? last : NULL;
    if (v) v->refs++;
    (void)pthread_mutex_unlock(&lock);
    return v;
}

static void view_keep(struct xpl_kept_view *v) {
    (void)pthread_mutex_lock(&lock);
    struct xpl_kept_view *const before = last;
    last = v;
    v->refs++;
    (void)pthread_mutex_unlock(&lock);
    view_unref(before);
}

static xpl_status_t open_view(const struct xpl_source *source, enum xpl_kind kind, xpl_str_t name,
                              const struct xpl_format_limits *limits, struct xpl_kept_view **ret,
                              struct xpl_error *err) {
    struct xpl_kept_view *v = view_known(xpl_source_fingerprint(source));
    if (v) {
        *ret = v;
        return XPL_OK;
    }
    v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "view of a profile");
    *v = (struct xpl_kept_view){.of = *xpl_source_fingerprint(source), .refs = 1};
    const xpl_status_t st =
        xpl_profile_open_as(kind, name, xpl_source_bytes(source), limits, &v->profile, err);
    if (st != XPL_OK) {
        xpl_sys_free(v);
        return st;
    }
    *ret = v;
    return XPL_OK;
}

// ---- profiles ----

void xpl_opened_profile_close(struct xpl_opened_profile *o) {
    view_unref(o->view);
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
                                     const struct xpl_host *host, enum xpl_kind kind, size_t limit,
                                     struct xpl_work_owner owner, struct xpl_opened_profile *ret,
                                     struct xpl_error *err) {
    struct xpl_opened_profile o = {0};
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_guarded_exec exec;
    struct xpl_error why = {0};
    XPL_TRY(xpl_snapshot_open(snapshot, host, 0, &o.source, err));
    xpl_guarded_exec_init(&exec, &serial, owner, o.source);
    const struct xpl_format_limits limits = {.max_bytes = limit, .exec = &exec.exec};
    const bool is_view = xpl_profile_is_view(kind, host->path);
    const xpl_status_t st = is_view ? open_view(o.source, kind, host->path, &limits, &o.view, &why)
                                    : xpl_profile_open(host->path, xpl_source_bytes(o.source),
                                                       &limits, &o.profile, &why);
    o.bytes = o.view ? o.view->profile.bytes : o.profile.bytes;
    // A file that is being written may hold any bytes.
    const xpl_status_t same = st == XPL_OK && !is_view ? XPL_OK : xpl_source_verify(o.source, err);
    if (o.view && same == XPL_OK && xpl_source_is_stable(o.source) &&
        o.bytes.len <= limit / KEPT_PART)
        view_keep(o.view);
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
    if (snapshot->in_bucket)
        return xpl_profile_expect_unread(host->path, (size_t)host->fingerprint.size);
    // What cannot be opened takes nothing.
    if (xpl_snapshot_open(snapshot, host, 0, &source, NULL) != XPL_OK) return 0;
    n = xpl_profile_expect(host->path, xpl_source_bytes(source));
    xpl_source_free(source);
    return n;
}

size_t xpl_opened_profile_memory(const struct xpl_opened_profile *o) {
    return o->profile.owned || o->view ? o->bytes.len : 0;
}
