// SPDX-License-Identifier: Apache-2.0
#include "server/watch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "storage/places.h"

// Scans take at most one part in MAX_SHARE of the time; directories beyond MAX_WATCHES are only
// polled.
enum { MAX_SHARE = 20, MAX_WATCHES = 4096, BURST_MS = 50 };

struct dir { // one watched directory
    uv_fs_event_t handle;
    struct xpl_watch *watch;
    struct dir *next;
    bool listed, marked; // in the newest snapshot; the next scan includes it
    char path[];         // relative to LOGDIR
};

struct xpl_watch {
    struct xpl_loop *loop;
    struct xpl_catalogue *catalogue;
    struct xpl_snapshot *snapshot; // the newest one that `changed` got
    uint64_t interval_ms;
    void (*changed)(void *, struct xpl_snapshot *, struct xpl_snapshot *);
    void *arg;
    uv_timer_t timer;
    uv_work_t work;
    struct dir *dirs;
    unsigned n_dirs, open_handles;
    // dirty: something was marked since the last scan began; scan_all: the scan is of everything
    bool scanning, dirty, closing, scan_all, scan_changed;
    struct xpl_error scan_err;
    char last_error[sizeof(((struct xpl_error *)0)->msg)];
    uint64_t scan_began_ms, all_due_ms, rest_until_ms;
};

static void start_scan(struct xpl_watch *w);

static void maybe_free(struct xpl_watch *w) {
    if (!w->closing || w->open_handles || w->scanning) return;
    xpl_snapshot_unref(w->snapshot);
    xpl_sys_free(w);
}

static void dir_closed(uv_handle_t *h) {
    struct dir *d = h->data;
    struct xpl_watch *w = d->watch;
    xpl_sys_free(d);
    w->open_handles--;
    maybe_free(w);
}

static void timer_closed(uv_handle_t *h) {
    struct xpl_watch *w = h->data;
    w->open_handles--;
    maybe_free(w);
}

static void on_timer(uv_timer_t *t) {
    start_scan(t->data);
}

// Sets the timer for the next scan: of everything when that is due, sooner of what was marked.
static void plan_scan(struct xpl_watch *w) {
    const uint64_t now = uv_now(xpl_loop_uv(w->loop));
    uint64_t at = w->all_due_ms;
    // Writers come in bursts: one scan, a moment later.
    const uint64_t after_burst = now + BURST_MS,
                   soon = after_burst > w->rest_until_ms ? after_burst : w->rest_until_ms;
    if (w->dirty && soon < at) at = soon;
    uv_timer_start(&w->timer, on_timer, at > now ? at - now : 0, 0);
}

static void on_event(uv_fs_event_t *h, const char *name, int events, int status) {
    (void)name;
    (void)events;
    (void)status;
    struct dir *d = h->data;
    struct xpl_watch *w = d->watch;
    if (d->marked) return;
    d->marked = true;
    xpl_catalogue_mark(w->catalogue, xpl_str_from(d->path));
    // A writer that never rests must not put the scan off for ever: only the first event plans it.
    if (!w->dirty && !w->scanning) {
        w->dirty = true;
        plan_scan(w);
    }
    w->dirty = true;
}

static int by_path(const void *a, const void *b) {
    const struct dir *const *x = a, *const *y = b;
    return strcmp((*x)->path, (*y)->path);
}

static int path_order(const void *key, const void *dir) {
    const struct dir *const *d = dir;
    return strcmp(key, (*d)->path);
}

// The watched directories by path; NULL without memory.  The caller frees the array.
static struct dir **sorted_dirs(const struct xpl_watch *w) {
    struct dir **list = xpl_sys_alloc((w->n_dirs + 1) * sizeof(struct dir *));
    size_t n = 0;
    for (struct dir *d = w->dirs; list && d; d = d->next)
        list[n++] = d;
    if (n) qsort(list, n, sizeof(struct dir *), by_path);
    return list;
}

static void add_dir(struct xpl_watch *w, const char *base, xpl_str_t path) {
    char full[PATH_MAX];
    struct dir *d = xpl_place_join(base, path, full, sizeof full)
                        ? xpl_sys_alloc(sizeof *d + path.len + 1)
                        : NULL;
    if (!d) return;
    memset(d, 0, sizeof *d);
    d->watch = w;
    d->listed = true;
    memcpy(d->path, path.ptr, path.len);
    d->path[path.len] = 0;
    if (uv_fs_event_init(xpl_loop_uv(w->loop), &d->handle) != 0) {
        xpl_sys_free(d);
        return;
    }
    d->handle.data = d;
    w->open_handles++;
    if (uv_fs_event_start(&d->handle, on_event, full, 0) != 0) {
        uv_close((uv_handle_t *)&d->handle, dir_closed);
        return;
    }
    d->next = w->dirs;
    w->dirs = d;
    w->n_dirs++;
    xpl_catalogue_set_watched(w->catalogue, path, true);
}

// Watches the directories of the snapshot, and only those.
static void watch_dirs(struct xpl_watch *w, const struct xpl_snapshot *s) {
    struct dir **known = sorted_dirs(w);
    if (!known) return; // directories that are not watched are polled
    const size_t n_known = w->n_dirs;
    for (struct dir *d = w->dirs; d; d = d->next)
        d->listed = false;
    for (size_t i = 0; i < s->n_dirs; i++) {
        struct dir **const d =
            bsearch(s->dirs[i].path.ptr, known, n_known, sizeof(struct dir *), path_order);
        if (d)
            (*d)->listed = true;
        else if (w->n_dirs < MAX_WATCHES)
            add_dir(w, s->base.ptr, s->dirs[i].path);
    }
    xpl_sys_free(known);
    for (struct dir **at = &w->dirs; *at;) {
        struct dir *const d = *at;
        if (d->listed) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        w->n_dirs--;
        uv_close((uv_handle_t *)&d->handle, dir_closed);
    }
}

static void publish_snapshot(struct xpl_watch *w) {
    struct xpl_snapshot *before = w->snapshot;
    w->snapshot = xpl_catalogue_get(w->catalogue);
    if (!w->snapshot->in_bucket) watch_dirs(w, w->snapshot);
    w->changed(w->arg, before, w->snapshot);
    xpl_snapshot_unref(before);
}

static void publish_first(struct xpl_watch *w) {
    if (!w->snapshot->in_bucket) watch_dirs(w, w->snapshot);
    w->changed(w->arg, w->snapshot, w->snapshot);
    w->all_due_ms += w->interval_ms;
}

static void scan_work(uv_work_t *work) {
    struct xpl_watch *w = work->data;
    w->scan_err = (struct xpl_error){0};
    w->scan_changed = false;
    // scan_done handles the result, on the loop's thread.
    const xpl_status_t st = xpl_catalogue_scan(
        w->catalogue, w->scan_all ? XPL_SCAN_ALL : XPL_SCAN_MARKED, &w->scan_changed, &w->scan_err);
    (void)st;
}

static void scan_done(uv_work_t *work, int status) {
    (void)status;
    struct xpl_watch *w = work->data;
    w->scanning = false;
    if (w->closing) {
        maybe_free(w);
        return;
    }
    if (w->scan_err.code && strcmp(w->last_error, w->scan_err.msg) != 0)
        xpl_log(XPL_LOG_WARN, "catalogue", "%s", w->scan_err.msg);
    memcpy(w->last_error, w->scan_err.msg, sizeof w->last_error);
    if (w->scan_changed) publish_snapshot(w);
    const uint64_t now = uv_now(xpl_loop_uv(w->loop));
    // Those of a bucket mostly wait, and each of its directories is listed when it is time.
    const uint64_t rest =
        w->snapshot->in_bucket ? 0 : (now - w->scan_began_ms) * (uint64_t)MAX_SHARE;
    if (w->scan_all)
        w->all_due_ms = now + (rest > w->interval_ms ? rest : w->interval_ms);
    else
        w->rest_until_ms = now + rest;
    plan_scan(w);
}

static void start_scan(struct xpl_watch *w) {
    if (w->scanning) return;
    w->scanning = true;
    w->dirty = false;
    for (struct dir *d = w->dirs; d; d = d->next)
        d->marked = false;
    w->scan_began_ms = uv_now(xpl_loop_uv(w->loop));
    w->scan_all = w->scan_began_ms >= w->all_due_ms;
    w->work.data = w;
    if (uv_queue_work(xpl_loop_uv(w->loop), &w->work, scan_work, scan_done) == 0) return;
    w->scanning = false;
    uv_timer_start(&w->timer, on_timer, w->interval_ms, 0);
}

struct xpl_watch *
xpl_watch_new(struct xpl_loop *loop, struct xpl_catalogue *catalogue, uint64_t interval_ms,
              void (*changed)(void *arg, struct xpl_snapshot *before, struct xpl_snapshot *after),
              void *arg) {
    struct xpl_watch *w = xpl_sys_alloc(sizeof *w);
    if (!w) return NULL;
    memset(w, 0, sizeof *w);
    w->loop = loop;
    w->catalogue = catalogue;
    w->interval_ms = interval_ms;
    w->changed = changed;
    w->arg = arg;
    uv_timer_init(xpl_loop_uv(loop), &w->timer);
    w->timer.data = w;
    w->open_handles = 1;
    w->all_due_ms = uv_now(xpl_loop_uv(loop));
    w->snapshot = xpl_catalogue_get(catalogue);
    if (!w->snapshot->unscanned) publish_first(w);
    plan_scan(w);
    return w;
}

void xpl_watch_scan(struct xpl_watch *w, const char *path) {
    for (size_t n = strlen(path); n > 0; n--)
        if (path[n] == 0 || path[n] == '/') xpl_catalogue_mark(w->catalogue, (xpl_str_t){path, n});
    xpl_catalogue_mark(w->catalogue, XPL_STR("."));
    w->dirty = true;
    start_scan(w); // a scan under way is followed by another one
}

void xpl_watch_close(struct xpl_watch *w) {
    w->closing = true;
    xpl_catalogue_stop(w->catalogue); // the loop waits for a scan under way
    uv_close((uv_handle_t *)&w->timer, timer_closed);
    for (struct dir *d = w->dirs; d; d = d->next)
        uv_close((uv_handle_t *)&d->handle, dir_closed);
    w->dirs = NULL;
}
