// SPDX-License-Identifier: Apache-2.0
// The summary of a run of two hosts, its comparison and a history of it, and the summary of a
// bundle of IREE, with every allocation failing once.
#include "analysis/compare/compare.h"
#include "analysis/compare/series.h"
#include "tests/data_file.h"
#include "tests/fault/answers/each.h"
#include "tests/unit/breakdown/findings_render.h"
#include "tests/unit/breakdown/slow_profiles.h"

// Steps become longer from the fourth session on: the ops behind it are sought, too.
static xpl_status_t follow(const struct xpl_run_summary *run, struct xpl_arena *arena,
                           struct xpl_buf *out, struct xpl_error *err) {
    enum { N = 6 };
    struct xpl_run_summary runs[N];
    struct xpl_series_run list[N];
    for (size_t i = 0; i < N; i++) {
        runs[i] = *run;
        runs[i].wall_ps = i;
        runs[i].busy_ps = i < N / 2 ? 1000000 : 2000000;
        runs[i].units = (i < N / 2 ? 2 : 1) * run->units; // so that its causes grow
        list[i] = (struct xpl_series_run){
            .session = XPL_STR("run"), .captured_ms = (int64_t)i, .run = &runs[i]};
    }
    const xpl_str_t metric = XPL_STR("busy_time");
    const struct xpl_series_request q = {
        .runs = list, .n_runs = N, .metrics = &metric, .n_metrics = 1};
    return xpl_series_json(&q, arena, out, err);
}

static xpl_status_t compare_with(const struct xpl_buf *summary, struct xpl_buf *out,
                                 struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct xpl_run_group a = {0}, b = {0};
    struct xpl_run_summary *run = NULL;
    xpl_arena_init(&arena, FINDINGS_LIMIT);
    XPL_TRY(xpl_run_summary_decode((xpl_bytes_t){summary->p, summary->n}, &arena, &run, err));
    if (!xpl_run_group_add(&a, run, &arena) || !xpl_run_group_add(&b, run, &arena))
        XPL_RETURN_OOM(err, "group of runs");
    const struct xpl_run_summary *const past[] = {run, run, run, run};
    const struct xpl_run_history h = {past, 4, XPL_STR("nightly")};
    XPL_TRY(xpl_compare_json(&a, &b, &h, &arena, out, err));
    const struct xpl_run_summary *const twice[] = {run, run};
    XPL_TRY(xpl_aggregate_json(twice, 2, &arena, out, err));
    return follow(run, &arena, out, err);
}

static xpl_status_t run(const void *spaces, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    struct xpl_buf summary;
    (void)arena;
    xpl_status_t st = answer_of("run_summary", spaces, 2, &summary, err);
    if (st == XPL_OK) st = compare_with(&summary, out, err);
    xpl_buf_fini(&summary);
    return st;
}

static xpl_status_t run_bundle(const void *bundle, struct xpl_arena *arena, struct xpl_buf *out,
                               struct xpl_error *err) {
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("iree_run_summary"));
    const struct xpl_buf *const b = bundle;
    struct xpl_exec exec = xpl_exec_serial();
    (void)arena;
    const struct xpl_product_input made = {
        .profile = {b->p, b->n}, .exec = &exec, .limit = FINDINGS_LIMIT};
    void *value = NULL;
    xpl_status_t st = tool->needs[0]->make(&made, &value, err);
    const void *const products[] = {value};
    const struct xpl_tool_host host = {
        .name = XPL_STR("h"), .products = products, .profile = made.profile};
    const struct xpl_tool_input in = {
        .hosts = &host, .n_hosts = 1, .exec = &exec, .limit = FINDINGS_LIMIT};
    if (st == XPL_OK) st = tool->render(&in, out, err);
    tool->needs[0]->free(value);
    return st;
}

int main(void) {
    struct xpl_buf spaces[] = {slow_profile("load_batch", "all-reduce.1", 3000),
                               slow_profile("backend_compile", "all-reduce.1", 1000)};
    fault_each(&(struct fault_scenario){run, spaces, 21, .some_only_speed = true});
    xpl_buf_fini(&spaces[0]);
    xpl_buf_fini(&spaces[1]);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bundle = read_data_file("iree/syn-everything.ireeprof");
    fault_each(&(struct fault_scenario){.run = run_bundle, .input = &bundle, .least = 10});
    return 0;
}
