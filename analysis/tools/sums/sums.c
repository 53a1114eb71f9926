// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/sums/sums.h"

#include <inttypes.h>

#include "analysis/products/values.h"

const struct xpl_product *const sums_needs[] = {&xpl_product_trace_index, NULL};

static bool read_number(xpl_str_t s, size_t *at, uint32_t *ret) {
    uint64_t v = 0;
    const size_t begin = *at;
    for (; *at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9'; ++*at) {
        v = v * 10 + (uint64_t)(s.ptr[*at] - '0');
        if (v > UINT32_MAX) return false;
    }
    *ret = (uint32_t)v;
    return *at > begin;
}

static xpl_status_t read_tracks(xpl_str_t s, struct xpl_arena *arena,
                                struct xpl_trace_sums_options *o, struct xpl_error *err) {
    XPL_VEC(struct xpl_trace_row) rows = {0};
    for (size_t at = 0; at < s.len; at++) {
        struct xpl_trace_row row = {.whole = true};
        bool valid = read_number(s, &at, &row.pid);
        if (valid && at < s.len && s.ptr[at] == ':') {
            at++, row.whole = false;
            valid = read_number(s, &at, &row.tid);
        }
        if (!valid || (at < s.len && (s.ptr[at] != ',' || at + 1 == s.len)))
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "tracks: character %zu of \"%.*s\" is not PID[:TID],...", at + 1,
                             (int)(s.len < 60 ? s.len : 60), s.ptr);
        struct xpl_trace_row *const slot = xpl_vec_push(arena, &rows);
        if (!slot) XPL_RETURN_OOM(err, "tracks");
        *slot = row;
    }
    o->rows = rows.v, o->n_rows = rows.n;
    return XPL_OK;
}

xpl_status_t sums_read(const struct xpl_tool_input *in, struct xpl_arena *arena,
                       struct xpl_trace_sums_options *ret, struct xpl_trace_host **ret_hosts,
                       size_t *ret_n, struct xpl_error *err) {
    const struct sums_options *const given = in->options;
    struct xpl_trace_host *const list = xpl_arena_array(arena, in->n_hosts, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "hosts");
    *ret = (struct xpl_trace_sums_options){.start_time_ms = given->viewer.trace.start_time_ms,
                                           .end_time_ms = given->viewer.trace.end_time_ms,
                                           .name = given->name};
    XPL_TRY(read_tracks(given->tracks, arena, ret, err));
    size_t n = 0;
    for (size_t i = 0; i < in->n_hosts; i++) {
        if (!in->hosts[i].products) continue;
        const struct xpl_trace_index_value *const v = in->hosts[i].products[0];
        list[n++] = (struct xpl_trace_host){in->hosts[i].name, v->trace, in->hosts[i].profile};
    }
    *ret_hosts = list;
    *ret_n = n;
    return XPL_OK;
}

xpl_status_t sums_make(const struct xpl_tool_input *in, xpl_str_t arguments, size_t most,
                       struct xpl_arena *arena, struct xpl_trace_sums *ret, struct xpl_error *err) {
    struct xpl_trace_sums_options o;
    struct xpl_trace_host *hosts;
    size_t n;
    XPL_TRY(sums_read(in, arena, &o, &hosts, &n, err));
    o.arguments = arguments;
    o.most = most;
    return xpl_trace_sum_up(hosts, n, &o, in->exec, arena, ret, err);
}

void sums_put_totals(struct xpl_gviz *g, const struct xpl_trace_sums *sums,
                     struct xpl_arena *scratch) {
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, scratch);
    xpl_gviz_prop_printf(&p, "count", "%" PRIu64, sums->count);
    xpl_gviz_prop_printf(&p, "names", "%zu", sums->n);
    xpl_gviz_prop_printf(&p, "total_ps", "%" PRIu64, sums->total_ps);
    xpl_gviz_put_props(g, &p);
}
