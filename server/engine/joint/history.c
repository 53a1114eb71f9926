// SPDX-License-Identifier: Apache-2.0
#include "server/engine/joint/history.h"

#include <stdlib.h>

#include "analysis/compare/series.h"
#include "base/arena.h"
#include "base/text/near.h"
#include "base/vec.h"
#include "server/engine/request.h"
#include "server/labels/labels.h"

// ---- which sessions ----

struct selection {
    const struct xpl_follow_query *q;
    const struct xpl_history_label *labels; // all, by session and label; NULL: not asked for
    size_t n_labels;
    const struct xpl_history_session *made; // by the schedule, by name; NULL: not asked for
    size_t n_made;
};

static int by_session_and_label(const void *a, const void *b) {
    const struct xpl_history_label *const x = a, *const y = b;
    const int sessions = xpl_str_cmp(x->session, y->session);
    return sessions ? sessions : xpl_str_cmp(x->label, y->label);
}

static int by_name(const void *a, const void *b) {
    const struct xpl_history_session *const x = a, *const y = b;
    return xpl_str_cmp(x->name, y->name);
}

static bool has_label(const struct selection *s, xpl_str_t session) {
    const struct xpl_history_label one = {.session = session, .label = s->q->label};
    return s->n_labels &&
           bsearch(&one, s->labels, s->n_labels, sizeof one, by_session_and_label) != NULL;
}

static bool was_made(const struct selection *s, xpl_str_t session) {
    const struct xpl_history_session one = {.name = session};
    return s->n_made && bsearch(&one, s->made, s->n_made, sizeof one, by_name) != NULL;
}

// Whether the path is the directory's or is below it.
static bool is_below(xpl_str_t path, xpl_str_t directory) {
    while (directory.len && directory.ptr[directory.len - 1] == '/')
        directory.len--;
    if (!directory.len || xpl_str_eq(directory, XPL_STR("."))) return true;
    return xpl_str_starts(path, directory) &&
           (path.len == directory.len || path.ptr[directory.len] == '/');
}

static bool is_selected(const struct selection *s, const struct xpl_session *one) {
    const struct xpl_follow_query *const q = s->q;
    if (!one->n_hosts) return false;
    if (one->captured_ns / 1000000 < q->since_ms) return false;
    if (q->directory.len && !is_below(one->path, q->directory)) return false;
    if (q->schedule_id && !was_made(s, one->name)) return false;
    return !q->label.len || has_label(s, one->name);
}

static int newest_first(const void *a, const void *b) {
    const struct xpl_follow_session *const x = a, *const y = b;
    if (x->captured_ms != y->captured_ms) return x->captured_ms < y->captured_ms ? 1 : -1;
    return -xpl_str_cmp(x->name, y->name);
}

// The directory contains no session: one with a name like it is proposed.
static xpl_status_t no_directory(const struct selection *s, const struct xpl_snapshot *snap,
                                 struct xpl_error *err) {
    struct xpl_near near = xpl_near_begin(s->q->directory);
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < snap->n_sessions; i++) {
        const xpl_str_t path = snap->sessions[i].path;
        for (size_t k = 0; k < path.len; k++)
            if (path.ptr[k] == '/') xpl_near_add(&near, xpl_str_sub(path, 0, k));
    }
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no session is below the directory \"%.*s\"%s",
                     XPL_STR_FMT(s->q->directory), xpl_near_text(&near, hint));
}

static bool any_below(const struct xpl_snapshot *snap, xpl_str_t directory) {
    for (size_t i = 0; i < snap->n_sessions; i++)
        if (is_below(snap->sessions[i].path, directory)) return true;
    return false;
}

// Says which condition no session meets; of a name with a slip the message proposes the right one.
static xpl_status_t nothing_found(const struct selection *s, const struct xpl_snapshot *snap,
                                  struct xpl_error *err) {
    const struct xpl_follow_query *const q = s->q;
    struct xpl_near near = xpl_near_begin(q->label);
    char hint[XPL_NEAR_TEXT];
    bool any = false;
    for (size_t i = 0; i < s->n_labels; i++) {
        any |= xpl_str_eq(s->labels[i].label, q->label);
        xpl_near_add(&near, s->labels[i].label);
    }
    if (q->label.len && !any)
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no session has the label \"%.*s\"%s",
                         XPL_STR_FMT(q->label), xpl_near_text(&near, hint));
    if (q->schedule_id && !s->n_made)
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "the schedule %llu has no sessions",
                         (unsigned long long)q->schedule_id);
    if (q->directory.len && !any_below(snap, q->directory)) return no_directory(s, snap, err);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no session matches all conditions");
}

static xpl_status_t find_sessions(const struct selection *s, const struct xpl_snapshot *snap,
                                  struct xpl_arena *arena, struct xpl_follow_session **ret,
                                  size_t *ret_n, struct xpl_error *err) {
    XPL_VEC(struct xpl_follow_session) list = {0};
    const size_t most = s->q->last ? (size_t)s->q->last : XPL_FOLLOW_LAST;
    for (size_t i = 0; i < snap->n_sessions; i++) {
        const struct xpl_session *const one = &snap->sessions[i];
        if (!is_selected(s, one)) continue;
        struct xpl_follow_session *const f = xpl_vec_push(arena, &list);
        if (!f || !xpl_arena_str(arena, one->name, &f->name)) XPL_RETURN_OOM(err, "sessions");
        f->captured_ms = one->captured_ns / 1000000;
    }
    if (!list.n) {
        XPL_TRY(xpl_snapshot_need_scan(snap, err));
        return nothing_found(s, snap, err);
    }
    qsort(list.v, list.n, sizeof *list.v, newest_first);
    *ret = list.v;
    *ret_n = list.n < most ? list.n : most;
    return XPL_OK;
}

xpl_status_t xpl_follow_select(const struct xpl_follow_sources *from,
                               const struct xpl_follow_query *q, struct xpl_arena *arena,
                               struct xpl_follow_session **ret, size_t *ret_n,
                               struct xpl_error *err) {
    struct selection s = {.q = q};
    struct xpl_history_label *labels = NULL;
    struct xpl_history_session *made = NULL;
    if (q->last > XPL_JOINT_SESSIONS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "the last %llu sessions: at most %d are read",
                         (unsigned long long)q->last, XPL_JOINT_SESSIONS);
    if (q->label.len) {
        XPL_TRY(xpl_label_check(q->label, err));
        if (!xpl_labels_all(from->labels, arena, &labels, &s.n_labels))
            XPL_RETURN_OOM(err, "labels");
        s.labels = labels;
    }
    if (q->schedule_id)
        XPL_TRY(xpl_history_sessions(from->history, q->schedule_id, arena, &made, &s.n_made, err));
    if (s.n_made) qsort(made, s.n_made, sizeof *made, by_name);
    s.made = made;
    struct xpl_snapshot *const snap = xpl_catalogue_get(from->catalogue);
    const xpl_status_t st = find_sessions(&s, snap, arena, ret, ret_n, err);
    xpl_snapshot_unref(snap);
    return st;
}

bool xpl_follow_is_selected(const struct xpl_follow_query *q) {
    return q->label.len || q->directory.len || q->schedule_id;
}

// ---- the answer ----

struct follow {
    struct xpl_arena arena; // of what follows
    struct xpl_series_run *runs;
    size_t n;
    xpl_str_t *metrics;
    size_t n_metrics;
    bool selected;
    size_t memory_limit;
    void (*done)(void *arg, const struct xpl_joint_outcome *o);
    void *arg;
};

static void free_follow(struct follow *f) {
    xpl_arena_fini(&f->arena);
    xpl_sys_free(f);
}

static void on_failed(void *arg, size_t i, const struct xpl_error *why) {
    struct follow *const f = arg;
    if (!xpl_arena_str(&f->arena, xpl_str_from(why->msg), &f->runs[i].error))
        f->runs[i].error = XPL_STR("out of memory");
}

static xpl_status_t decode(struct follow *f, const xpl_bytes_t *answers, struct xpl_arena *arena,
                           struct xpl_error *err) {
    for (size_t i = 0; i < f->n; i++) {
        struct xpl_run_summary *run = NULL;
        if (f->runs[i].error.len) continue;
        XPL_TRY(xpl_run_summary_decode(answers[i], arena, &run, err));
        f->runs[i].run = run;
    }
    return XPL_OK;
}

static xpl_status_t render(void *arg, const xpl_bytes_t *answers, struct xpl_exec *exec,
                           struct xpl_buf *out, struct xpl_error *err) {
    struct follow *const f = arg;
    struct xpl_arena arena = xpl_arena_of(f->memory_limit);
    xpl_status_t st = decode(f, answers, &arena, err);
    const struct xpl_series_request q = {.runs = f->runs,
                                         .n_runs = f->n,
                                         .metrics = f->metrics,
                                         .n_metrics = f->n_metrics,
                                         .selected = f->selected,
                                         .exec = exec};
    if (st == XPL_OK) st = xpl_series_json(&q, &arena, out, err);
    xpl_arena_fini(&arena);
    return st;
}

static void on_done(void *arg, const struct xpl_joint_outcome *o) {
    struct follow *const f = arg;
    void (*const done)(void *, const struct xpl_joint_outcome *) = f->done;
    void *const whom = f->arg;
    free_follow(f);
    done(whom, o);
}

static bool copy(struct follow *f, const struct xpl_follow_request *q, xpl_str_t **ret_names) {
    f->runs = xpl_arena_zalloc(&f->arena, q->n * sizeof *f->runs);
    f->metrics = xpl_arena_array(&f->arena, q->n_metrics, sizeof *f->metrics);
    *ret_names = xpl_arena_array(&f->arena, q->n, sizeof **ret_names);
    if (!f->runs || !f->metrics || !*ret_names) return false;
    for (size_t i = 0; i < q->n; i++) {
        if (!xpl_arena_str(&f->arena, q->sessions[i].name, &f->runs[i].session)) return false;
        f->runs[i].captured_ms = q->sessions[i].captured_ms;
        (*ret_names)[i] = f->runs[i].session;
    }
    for (size_t i = 0; i < q->n_metrics; i++)
        if (!xpl_arena_str(&f->arena, q->metrics[i], &f->metrics[i])) return false;
    return true;
}

xpl_status_t xpl_follow_begin(struct xpl_engine *e, const struct xpl_follow_request *q,
                              struct xpl_joint **ret, struct xpl_error *err) {
    xpl_str_t *names;
    struct follow *const f = xpl_sys_alloc(sizeof *f);
    *ret = NULL;
    if (!f) XPL_RETURN_OOM(err, "history");
    *f = (struct follow){.n = q->n,
                         .n_metrics = q->n_metrics,
                         .selected = q->selected,
                         .memory_limit = q->memory_limit,
                         .done = q->done,
                         .arg = q->arg};
    xpl_arena_init(&f->arena, (size_t)16 << 20);
    if (!copy(f, q, &names)) {
        free_follow(f);
        XPL_RETURN_OOM(err, "history");
    }
    const struct xpl_joint_request joint = {.tool = "run_summary",
                                            .sessions = names,
                                            .n = q->n,
                                            .limit = q->memory_limit,
                                            .traceparent = q->traceparent,
                                            .render = render,
                                            .failed = on_failed,
                                            .done = on_done,
                                            .arg = f};
    const xpl_status_t st = xpl_joint_begin(e, &joint, ret, err);
    if (st != XPL_OK) free_follow(f);
    return st;
}
