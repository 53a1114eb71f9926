// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/newest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/series.h"
#include "base/arena.h"
#include "base/cond.h"
#include "base/log.h"
#include "server/engine/joint/joint.h"
#include "server/engine/request.h"
#include "server/labels/labels.h"
#include "storage/sessions/catalogue.h"

enum { AT_ONCE = 8, NAME = 512 }; // sessions of one request; longer names have no figures
#define PS_PER_S 1e12

// The figures of a session, of this generation of it.
struct kept {
    char session[NAME];
    uint64_t changed, asked; // by which reading it was asked for last
    struct xpl_newest_row row;
};

struct xpl_newest {
    struct xpl_engine *engine;
    struct xpl_catalogue *catalogue;
    struct xpl_labels *labels;
    struct xpl_joint *joint; // the last one; the loop's
    pthread_mutex_t mu;      // protects the rest
    bool is_busy, is_stopped;
    uint64_t n_readings;
    struct kept *kept; // XPL_NEWEST_LABELS of them
    size_t n_kept;
    struct kept making[AT_ONCE]; // the worker's while it is busy
    size_t n_making;
};

struct xpl_newest *xpl_newest_new(struct xpl_engine *engine, struct xpl_catalogue *catalogue,
                                  struct xpl_labels *labels) {
    struct xpl_newest *const n = xpl_sys_alloc(sizeof *n);
    struct kept *const kept = xpl_sys_alloc(XPL_NEWEST_LABELS * sizeof *kept);
    if (!n || !kept) {
        xpl_sys_free(n);
        xpl_sys_free(kept);
        return NULL;
    }
    *n = (struct xpl_newest){
        .engine = engine, .catalogue = catalogue, .labels = labels, .kept = kept};
    pthread_mutex_init(&n->mu, NULL);
    return n;
}

void xpl_newest_stop(struct xpl_newest *n) {
    if (!n) return;
    pthread_mutex_lock(&n->mu);
    n->is_stopped = true;
    pthread_mutex_unlock(&n->mu);
    if (n->joint) xpl_joint_cancel(n->joint);
}

void xpl_newest_free(struct xpl_newest *n) {
    if (!n) return;
    xpl_joint_unref(n->joint);
    pthread_mutex_destroy(&n->mu);
    xpl_sys_free(n->kept);
    xpl_sys_free(n);
}

// ---- figures of a session ----

static double value_of(const struct xpl_run_summary *s, xpl_str_t metric, double per) {
    struct xpl_series_value v;
    return xpl_series_get(s, metric, &v) ? v.v / per : -1;
}

static void fill_row(struct xpl_newest_row *row, const struct xpl_run_summary *s) {
    row->is_known = true;
    row->step_s = value_of(s, XPL_STR("step_time"), PS_PER_S);
    row->peak_bytes = value_of(s, XPL_STR("peak_memory"), 1);
    row->utilization = value_of(s, XPL_STR("utilization"), 100);
    for (size_t i = 0; i < s->times.n && row->n_times < XPL_NEWEST_CAUSES; i++) {
        const xpl_str_t cause = s->times.v[i].cause;
        if (cause.len >= XPL_NEWEST_CAUSE || !s->units) continue;
        memcpy(row->times[row->n_times].cause, cause.ptr, cause.len);
        row->times[row->n_times].cause[cause.len] = 0;
        row->times[row->n_times++].s = (double)s->times.v[i].ps / (double)s->units / PS_PER_S;
    }
}

// A session that cannot be read has no figures until it changes.
static void on_failed(void *arg, size_t i, const struct xpl_error *err) {
    (void)arg, (void)i;
    xpl_log(XPL_LOG_DEBUG, "catalogue", "no figures of a label: %s", err->msg);
}

static xpl_status_t render(void *arg, const xpl_bytes_t *answers, struct xpl_exec *exec,
                           struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_newest *const n = arg;
    (void)exec, (void)out;
    for (size_t i = 0; i < n->n_making; i++) {
        struct xpl_arena arena = xpl_arena_of(xpl_engine_memory_limit(n->engine));
        struct xpl_run_summary *s;
        const xpl_status_t st =
            answers[i].len ? xpl_run_summary_decode(answers[i], &arena, &s, err) : XPL_NOT_FOUND;
        if (st == XPL_OK) fill_row(&n->making[i].row, s);
        xpl_arena_fini(&arena);
        if (st == XPL_RESOURCE_EXHAUSTED) return st;
    }
    return XPL_OK;
}

// In the place of the session as it was, of a free one, or of one that is the newest of no label
// any more.
static void keep_figures(struct xpl_newest *n, const struct kept *k) {
    xpl_assert_held(&n->mu);
    size_t at = 0;
    while (at < n->n_kept && strcmp(n->kept[at].session, k->session) != 0)
        at++;
    if (at == XPL_NEWEST_LABELS) {
        at = 0;
        for (size_t i = 1; i < n->n_kept; i++)
            if (n->kept[i].asked < n->kept[at].asked) at = i;
    }
    n->n_kept += at == n->n_kept;
    n->kept[at] = *k;
}

// What failed for the daemon's sake is tried again when the figures are read next.
static void on_done(void *arg, const struct xpl_joint_outcome *o) {
    struct xpl_newest *const n = arg;
    pthread_mutex_lock(&n->mu);
    for (size_t i = 0; o->code == XPL_OK && i < n->n_making; i++)
        keep_figures(n, &n->making[i]);
    n->is_busy = false;
    pthread_mutex_unlock(&n->mu);
}

static void begin(struct xpl_newest *n) {
    xpl_str_t names[AT_ONCE];
    struct xpl_error err = {0};
    for (size_t i = 0; i < n->n_making; i++)
        names[i] = xpl_str_from(n->making[i].session);
    const struct xpl_joint_request q = {.tool = "run_summary",
                                        .sessions = names,
                                        .n = n->n_making,
                                        .limit = xpl_engine_memory_limit(n->engine),
                                        .render = render,
                                        .failed = on_failed,
                                        .done = on_done,
                                        .arg = n};
    xpl_joint_unref(n->joint);
    if (xpl_joint_begin(n->engine, &q, &n->joint, &err) == XPL_OK) return;
    // None of them has an answer: they are kept without figures.
    const struct xpl_joint_outcome none = {.code = err.code == XPL_RESOURCE_EXHAUSTED ? err.code
                                                                                      : XPL_OK};
    on_done(n, &none);
}

// ---- labels ----

struct label { // with its newest session
    xpl_str_t name;
    const struct xpl_session *newest;
    uint64_t n_sessions;
};

static int by_label(const void *a, const void *b) {
    const struct xpl_history_label *const x = a, *const y = b;
    return xpl_str_cmp(x->label, y->label);
}

static int newest_first(const void *a, const void *b) {
    const struct label *const x = a, *const y = b;
    if (x->newest->captured_ns != y->newest->captured_ns)
        return x->newest->captured_ns < y->newest->captured_ns ? 1 : -1;
    return xpl_str_cmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    return xpl_str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

// Those of sessions that have an overview, at most XPL_NEWEST_LABELS, by name.
static struct label *find_labels(struct xpl_newest *n, const struct xpl_snapshot *snap,
                                 struct xpl_arena *arena, size_t *ret_n) {
    struct xpl_history_label *all;
    size_t n_all, k = 0;
    *ret_n = 0;
    if (!xpl_labels_all(n->labels, arena, &all, &n_all) || !n_all) return NULL;
    struct label *const v = xpl_arena_array(arena, n_all, sizeof *v);
    if (!v) return NULL;
    qsort(all, n_all, sizeof *all, by_label);
    for (size_t i = 0; i < n_all; i++) {
        const struct xpl_session *const s = xpl_snapshot_find(snap, all[i].session);
        if (!s || !s->n_hosts || xpl_request_session_format(s)->instead) continue;
        if (!k || !xpl_str_eq(v[k - 1].name, all[i].label))
            v[k++] = (struct label){.name = all[i].label, .newest = s};
        if (s->captured_ns > v[k - 1].newest->captured_ns) v[k - 1].newest = s;
        v[k - 1].n_sessions++;
    }
    qsort(v, k, sizeof *v, newest_first);
    *ret_n = k < XPL_NEWEST_LABELS ? k : XPL_NEWEST_LABELS;
    qsort(v, *ret_n, sizeof *v, by_name);
    return v;
}

static struct kept *find_kept(struct kept *v, size_t n, const struct xpl_session *s) {
    for (size_t i = 0; i < n; i++)
        if (xpl_str_eq(xpl_str_from(v[i].session), s->name) && v[i].changed == s->changed)
            return &v[i];
    return NULL;
}

// Notes that the session's figures are to be made.  Nothing is made meanwhile.
static void note_wanted(struct xpl_newest *n, const struct xpl_session *s) {
    xpl_assert_held(&n->mu);
    if (n->n_making == AT_ONCE || s->name.len >= NAME || find_kept(n->making, n->n_making, s))
        return;
    struct kept *const k = &n->making[n->n_making++];
    *k = (struct kept){.changed = s->changed, .asked = n->n_readings};
    memcpy(k->session, s->name.ptr, s->name.len);
}

static bool fill_rows(struct xpl_newest *n, const struct label *labels, size_t n_labels,
                      struct xpl_newest_row *rows) {
    pthread_mutex_lock(&n->mu);
    const bool may_begin = !n->is_busy && !n->is_stopped;
    if (may_begin) n->n_making = 0;
    n->n_readings++;
    for (size_t i = 0; i < n_labels; i++) {
        struct kept *const k = find_kept(n->kept, n->n_kept, labels[i].newest);
        if (k) k->asked = n->n_readings;
        rows[i] = k ? k->row : (struct xpl_newest_row){0};
        rows[i].label = labels[i].name.ptr;
        rows[i].n_sessions = labels[i].n_sessions;
        rows[i].captured_ms = labels[i].newest->captured_ns / 1000000;
        if (!k && may_begin) note_wanted(n, labels[i].newest);
    }
    const bool begins = may_begin && n->n_making;
    n->is_busy |= begins;
    pthread_mutex_unlock(&n->mu);
    return begins;
}

const struct xpl_newest_row *xpl_newest_read(struct xpl_newest *n, struct xpl_arena *arena,
                                             size_t *ret_n) {
    *ret_n = 0;
    if (!n) return NULL;
    size_t n_labels;
    struct xpl_snapshot *const snap = xpl_catalogue_get(n->catalogue);
    const struct label *const labels = find_labels(n, snap, arena, &n_labels);
    struct xpl_newest_row *const rows =
        labels ? xpl_arena_array(arena, n_labels, sizeof *rows) : NULL;
    if (rows) {
        if (fill_rows(n, labels, n_labels, rows)) begin(n);
        *ret_n = n_labels;
    }
    xpl_snapshot_unref(snap);
    return rows;
}
