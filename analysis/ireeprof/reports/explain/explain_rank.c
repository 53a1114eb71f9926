// SPDX-License-Identifier: Apache-2.0
// The rankings of report explain: functions by their time, and the longest dispatches.

#include "analysis/ireeprof/reports/explain/explain.h"
#include "analysis/ireeprof/reports/rows_dispatch.h"
#include "base/arena.h"
#include "base/vec.h"

enum { TOP_FUNCTIONS = 10 };

bool xpl_iree_explain_ranks_hosts(const struct xpl_iree_explain *x) {
    return x->dispatches.device.valid == 0 && x->dispatches.host.valid != 0;
}

struct rank {
    const struct xpl_iree_group *group;
    size_t index; // equal scores stay in the order of groups
    bool timed;
    int64_t max_ns, total_ns;
    double avg_ns, score;
};

static int by_score(const void *pa, const void *pb) {
    const struct rank *const a = pa, *const b = pb;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return (a->index > b->index) - (a->index < b->index);
}

static struct rank rank_of(const struct xpl_iree_explain *x, const struct xpl_iree_group *g,
                           bool host, size_t index) {
    struct rank k = {.group = g, .index = index, .timed = host};
    const struct xpl_iree_fit fit = xpl_iree_model_fit(&x->model, g->key.physical_device_ordinal);
    if (host) {
        k.max_ns = (int64_t)g->max;
        k.total_ns = (int64_t)g->spans.total;
        k.avg_ns = g->mean;
    } else if (xpl_iree_fit_ticks(&fit, g->max, &k.max_ns) &&
               xpl_iree_fit_ticks(&fit, g->spans.total, &k.total_ns)) {
        k.timed = true;
        k.avg_ns = g->mean * xpl_iree_fit_ns_per_tick(&fit);
    }
    k.score = k.timed ? (double)k.total_ns : (double)g->spans.total;
    return k;
}

static void write_rank(const struct xpl_iree_explain *x, const struct rank *k, size_t position,
                       bool host) {
    struct xpl_iree_rows *const r = x->run->rows;
    const struct xpl_iree_group *const g = k->group;
    const struct xpl_iree_function_key key = {g->key.executable_id, g->key.function_ordinal, 0};
    struct xpl_iree_key_text text;
    const struct xpl_iree_function_row *const f =
        xpl_iree_model_function(&x->model, g->key.executable_id, g->key.function_ordinal);
    xpl_row_begin(r, "type", "explain_top_function");
    xpl_row_u64(r, "rank", position);
    xpl_row_u64(r, "physical_device_ordinal", g->key.physical_device_ordinal);
    xpl_row_u64(r, "executable_id", g->key.executable_id);
    xpl_row_u64(r, "function_ordinal", g->key.function_ordinal);
    xpl_row_str(r, "key", xpl_iree_key(f, g->key.physical_device_ordinal, key, &text));
    xpl_row_u64(r, "dispatches", g->spans.count);
    xpl_row_u64(r, "valid", g->spans.valid);
    xpl_row_u64(r, "invalid", g->spans.count - g->spans.valid);
    xpl_row_u64(r, "total_ticks", host ? 0 : g->spans.total);
    xpl_row_u64(r, "max_ticks", host ? 0 : g->max);
    xpl_row_text(r, "timing_source", host ? "host_execution_event" : "device_dispatch_event");
    xpl_row_bool(r, "duration_ns_available", k->timed);
    xpl_row_i64(r, "total_ns", k->total_ns);
    xpl_row_fixed(r, "avg_ns", k->avg_ns, 3);
    xpl_row_i64(r, "max_ns", k->max_ns);
    xpl_row_u64(r, "total_tile_count", host ? g->spans.tile_count : 0);
    xpl_row_i64(r, "total_tile_duration_sum_ns", host ? g->spans.tile_duration_sum_ns : 0);
    xpl_row_end(r);
}

xpl_status_t xpl_iree_explain_functions(const struct xpl_iree_explain *x, struct xpl_error *err) {
    const bool host = xpl_iree_explain_ranks_hosts(x);
    const struct xpl_iree_table *const groups =
        host ? &x->dispatches.host.groups : &x->dispatches.device.groups;
    struct rank *const ranks = xpl_sys_alloc((groups->n + 1) * sizeof *ranks);
    if (!ranks) XPL_RETURN_OOM(err, "functions of the bundle");
    size_t n = 0;
    for (size_t i = 0; i < groups->n; i++) {
        const struct xpl_iree_group *const g = xpl_iree_table_at(groups, i);
        if (g->spans.valid) ranks[n++] = rank_of(x, g, host, i);
    }
    xpl_sort(ranks, n, sizeof *ranks, by_score);
    for (size_t i = 0; i < n && i < TOP_FUNCTIONS; i++)
        write_rank(x, &ranks[i], i + 1, host);
    xpl_sys_free(ranks);
    return XPL_OK;
}

static void write_top(const struct xpl_iree_explain *x, const struct xpl_iree_dispatch *e,
                      size_t rank) {
    struct xpl_iree_rows *const r = x->run->rows;
    const struct xpl_iree_function_key key = {e->executable_id, e->function_ordinal, 0};
    const struct xpl_iree_fit fit = xpl_iree_model_fit(&x->model, e->physical_device_ordinal);
    struct xpl_iree_key_text text;
    int64_t ns = (int64_t)e->duration;
    const bool timed = e->host || xpl_iree_fit_ticks(&fit, e->duration, &ns);
    xpl_row_begin(r, "type", "explain_top_dispatch");
    xpl_row_u64(r, "rank", rank);
    xpl_row_u64(r, "event_id", e->event_id);
    xpl_row_u64(r, "submission_id", e->submission_id);
    xpl_iree_row_queue(r, e->physical_device_ordinal, e->queue_ordinal, e->stream_id);
    if (e->host) {
        xpl_row_u64(r, "command_buffer_id", e->command_buffer_id);
        xpl_row_u64(r, "command_index", e->command_index);
    }
    xpl_row_str(
        r, "key",
        xpl_iree_key(xpl_iree_model_function(&x->model, e->executable_id, e->function_ordinal),
                     e->physical_device_ordinal, key, &text));
    xpl_row_text(r, "timing_source", e->host ? "host_execution_event" : "device_dispatch_event");
    xpl_row_u64(r, "duration_ticks", e->host ? 0 : e->duration);
    xpl_row_bool(r, "duration_ns_available", timed);
    xpl_row_i64(r, "duration_ns", ns);
    xpl_row_u64(r, "tile_count", e->host ? e->tile_count : 0);
    xpl_row_i64(r, "tile_duration_sum_ns", e->host ? e->tile_duration_sum_ns : 0);
    xpl_row_end(r);
}

void xpl_iree_explain_dispatches(const struct xpl_iree_explain *x) {
    const struct xpl_iree_side *const side =
        x->dispatches.device.n_top ? &x->dispatches.device : &x->dispatches.host;
    bool done[XPL_IREE_TOP] = {false};
    for (size_t rank = 1; rank <= side->n_top; rank++) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < side->n_top; i++)
            if (!done[i] && (best == SIZE_MAX || side->top[i].duration > side->top[best].duration))
                best = i;
        done[best] = true;
        write_top(x, &side->top[best], rank);
    }
}
