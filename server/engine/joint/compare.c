// SPDX-License-Identifier: Apache-2.0
#include "server/engine/joint/compare.h"

#include <string.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "server/labels/labels.h"

// Of a side: they are sorted in one call.
enum { MOST_ROWS = 2000000 };

struct comparison {
    struct xpl_arena arena; // of the label
    size_t n_a, n_b, n_history, memory_limit;
    xpl_str_t label; // of the history
    void (*done)(void *arg, const struct xpl_joint_outcome *o);
    void *arg;
};

static void free_comparison(struct comparison *c) {
    xpl_arena_fini(&c->arena);
    xpl_sys_free(c);
}

// ---- the answer ----

static xpl_status_t add(struct xpl_run_group *g, const xpl_bytes_t *answers, size_t n,
                        struct xpl_exec *exec, struct xpl_arena *arena, struct xpl_error *err) {
    for (size_t i = 0; i < n; i++) {
        struct xpl_run_summary *run;
        XPL_TRY(xpl_run_summary_decode(answers[i], arena, &run, err));
        if (!xpl_run_group_add(g, run, arena)) XPL_RETURN_OOM(err, "comparison");
        if (xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        if (g->all.ops.n + g->all.kernels.n > MOST_ROWS)
            XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                             "the sessions of one side have more than %d ops and kernels; compare "
                             "fewer",
                             MOST_ROWS);
    }
    return XPL_OK;
}

// Sessions that could not be read have no bytes.
static xpl_status_t read_history(const struct comparison *c, const xpl_bytes_t *answers,
                                 struct xpl_arena *arena, struct xpl_run_history *ret,
                                 struct xpl_error *err) {
    const struct xpl_run_summary **const runs =
        xpl_arena_array(arena, c->n_history, sizeof(void *));
    if (!runs) XPL_RETURN_OOM(err, "comparison");
    *ret = (struct xpl_run_history){.runs = runs, .label = c->label};
    for (size_t i = 0; i < c->n_history; i++) {
        struct xpl_run_summary *run;
        if (!answers[i].len) continue;
        XPL_TRY(xpl_run_summary_decode(answers[i], arena, &run, err));
        runs[ret->n++] = run;
    }
    return XPL_OK;
}

static xpl_status_t render(void *arg, const xpl_bytes_t *answers, struct xpl_exec *exec,
                           struct xpl_buf *out, struct xpl_error *err) {
    const struct comparison *const c = arg;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(c->memory_limit);
    struct xpl_run_group a = {0}, b = {0};
    struct xpl_run_history h;
    XPL_TRY(add(&a, answers, c->n_a, exec, &arena, err));
    XPL_TRY(add(&b, answers + c->n_a, c->n_b, exec, &arena, err));
    XPL_TRY(read_history(c, answers + c->n_a + c->n_b, &arena, &h, err));
    return xpl_compare_json(&a, &b, h.n ? &h : NULL, &arena, out, err);
}

static void on_failed(void *arg, size_t i, const struct xpl_error *why) {
    (void)arg;
    (void)i;
    (void)why;
}

static void on_done(void *arg, const struct xpl_joint_outcome *o) {
    struct comparison *const c = arg;
    void (*const done)(void *, const struct xpl_joint_outcome *) = c->done;
    void *const whom = c->arg;
    free_comparison(c);
    done(whom, o);
}

// ---- the history ----

static bool is_among(xpl_str_t name, const xpl_str_t *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (xpl_str_eq(name, list[i])) return true;
    return false;
}

// The first label of the first session of A that all of A have; preferably B have it, too.
static bool choose_label(const struct xpl_comparison_request *q, struct xpl_arena *arena,
                         xpl_str_t *ret) {
    xpl_str_t *first, *other;
    size_t n, n_other, best = 0;
    if (!xpl_labels_of(q->from->labels, q->a[0], arena, &first, &n)) return false;
    for (size_t k = 0; k < n; k++) {
        size_t has = 1;
        for (size_t i = 1; i < q->n_a + q->n_b; i++) {
            const xpl_str_t session = i < q->n_a ? q->a[i] : q->b[i - q->n_a];
            if (!xpl_labels_of(q->from->labels, session, arena, &other, &n_other)) return false;
            if (is_among(first[k], other, n_other))
                has++;
            else if (i < q->n_a)
                break;
        }
        if (has < q->n_a || has <= best) continue;
        best = has;
        *ret = first[k];
    }
    return true;
}

// Other sessions of the label, of the newest, into `ret` in order of time.
static xpl_status_t select_history(const struct xpl_comparison_request *q, struct comparison *c,
                                   struct xpl_arena *arena, xpl_str_t *ret, struct xpl_error *err) {
    const bool enough = q->n_a >= XPL_COMPARE_LEAST_RUNS && q->n_b >= XPL_COMPARE_LEAST_RUNS;
    struct xpl_follow_session *list;
    struct xpl_error none = {0}; // a missing session is not a failure
    xpl_str_t label = {"", 0};
    size_t n;
    if (enough || !q->from || !q->from->labels) return XPL_OK;
    if (!choose_label(q, arena, &label)) XPL_RETURN_OOM(err, "labels");
    const struct xpl_follow_query which = {.label = label};
    if (!label.len || xpl_follow_select(q->from, &which, arena, &list, &n, &none) != XPL_OK)
        return XPL_OK;
    if (!xpl_arena_str(&c->arena, label, &c->label)) XPL_RETURN_OOM(err, "labels");
    for (size_t i = 0; i < n && c->n_history < XPL_COMPARE_HISTORY; i++)
        if (!is_among(list[i].name, q->a, q->n_a) && !is_among(list[i].name, q->b, q->n_b))
            ret[c->n_history++] = list[i].name;
    for (size_t i = 0; i < c->n_history / 2; i++) { // newest first
        const xpl_str_t name = ret[i];
        ret[i] = ret[c->n_history - 1 - i];
        ret[c->n_history - 1 - i] = name;
    }
    return XPL_OK;
}

// ---- the beginning ----

static xpl_status_t begin(struct xpl_engine *e, const struct xpl_comparison_request *q,
                          struct comparison *c, struct xpl_joint **ret, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    const size_t n = q->n_a + q->n_b;
    xpl_str_t *const all = xpl_arena_array(&arena, n + XPL_COMPARE_HISTORY, sizeof *all);
    if (!all) XPL_RETURN_OOM(err, "comparison");
    memcpy(all, q->a, q->n_a * sizeof *all);
    memcpy(all + q->n_a, q->b, q->n_b * sizeof *all);
    XPL_TRY(select_history(q, c, &arena, all + n, err));
    const struct xpl_joint_request joint = {.tool = "run_summary",
                                            .sessions = all,
                                            .n = n + c->n_history,
                                            .n_needed = n,
                                            .limit = q->memory_limit,
                                            .traceparent = q->traceparent,
                                            .render = render,
                                            .failed = on_failed,
                                            .done = on_done,
                                            .arg = c};
    return xpl_joint_begin(e, &joint, ret, err);
}

xpl_status_t xpl_comparison_begin(struct xpl_engine *e, const struct xpl_comparison_request *q,
                                  struct xpl_joint **ret, struct xpl_error *err) {
    *ret = NULL;
    if (!q->n_a || !q->n_b)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no session is named as %s",
                         q->n_a ? "b" : "a");
    struct comparison *const c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "comparison");
    *c = (struct comparison){.n_a = q->n_a,
                             .n_b = q->n_b,
                             .memory_limit = q->memory_limit,
                             .done = q->done,
                             .arg = q->arg};
    xpl_arena_init(&c->arena, (size_t)1 << 16);
    const xpl_status_t st = begin(e, q, c, ret, err);
    if (st != XPL_OK) free_comparison(c);
    return st;
}
