// SPDX-License-Identifier: Apache-2.0
#include "server/engine/joint/compare.h"

#include <string.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "base/cleanup.h"

struct comparison {
    size_t n_a, n_b, memory_limit;
    void (*done)(void *arg, const struct xpl_joint_outcome *o);
    void *arg;
};

static xpl_status_t add(struct xpl_run_group *g, const xpl_bytes_t *answers, size_t n,
                        struct xpl_arena *arena, struct xpl_error *err) {
    for (size_t i = 0; i < n; i++) {
        struct xpl_run_summary *run;
        XPL_TRY(xpl_run_summary_decode(answers[i], arena, &run, err));
        if (!xpl_run_group_add(g, run, arena)) XPL_RETURN_OOM(err, "comparison");
    }
    return XPL_OK;
}

static xpl_status_t render(void *arg, const xpl_bytes_t *answers, struct xpl_buf *out,
                           struct xpl_error *err) {
    const struct comparison *const c = arg;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct xpl_run_group a = {0}, b = {0};
    xpl_arena_init(&arena, c->memory_limit);
    XPL_TRY(add(&a, answers, c->n_a, &arena, err));
    XPL_TRY(add(&b, answers + c->n_a, c->n_b, &arena, err));
    return xpl_compare_json(&a, &b, &arena, out, err);
}

static void on_done(void *arg, const struct xpl_joint_outcome *o) {
    const struct comparison c = *(struct comparison *)arg;
    xpl_sys_free(arg);
    c.done(c.arg, o);
}

xpl_status_t xpl_comparison_begin(struct xpl_engine *e, const struct xpl_comparison_request *q,
                                  struct xpl_joint **ret, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, (size_t)1 << 20);
    *ret = NULL;
    if (!q->n_a || !q->n_b)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no session is named as %s",
                         q->n_a ? "b" : "a");
    xpl_str_t *const all = xpl_arena_array(&arena, q->n_a + q->n_b, sizeof *all);
    struct comparison *const c = xpl_sys_alloc(sizeof *c);
    if (!all || !c) {
        xpl_sys_free(c);
        XPL_RETURN_OOM(err, "comparison");
    }
    *c = (struct comparison){q->n_a, q->n_b, q->memory_limit, q->done, q->arg};
    memcpy(all, q->a, q->n_a * sizeof *all);
    memcpy(all + q->n_a, q->b, q->n_b * sizeof *all);
    const struct xpl_joint_request joint = {.tool = "run_summary",
                                            .bundle_tool = "iree_run_summary",
                                            .sessions = all,
                                            .n = q->n_a + q->n_b,
                                            .limit = q->memory_limit,
                                            .traceparent = q->traceparent,
                                            .render = render,
                                            .done = on_done,
                                            .arg = c};
    const xpl_status_t st = xpl_joint_begin(e, &joint, ret, err);
    if (st != XPL_OK) xpl_sys_free(c);
    return st;
}
