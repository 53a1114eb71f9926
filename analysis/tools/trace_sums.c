// SPDX-License-Identifier: Apache-2.0
// Tool trace_sums: how many events of each name a window of the trace has and how long they took,
// exactly.  Ours; XProf has none.
#include "analysis/products/values.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/trace_viewer/options.h"
#include "analysis/trace/sums.h"
#include "base/arena.h"
#include "base/cleanup.h"

#include <inttypes.h>

// The index that this tool needs may be made for it: then all of it, for `viewer` asks for no
// resolution.
struct trace_sums_options {
    struct xpl_trace_viewer_options viewer; // start and end alone are set
    xpl_str_t name, tracks;
    uint64_t limit;
};
#define MEMBER(name) offsetof(struct trace_sums_options, name)

static const struct xpl_tool_option kOptions[] = {
    {.key = "end_time_ms",
     .type = XPL_OPTION_MILLISECONDS,
     .offset = MEMBER(viewer.trace.end_time_ms),
     .values = "MILLISECONDS",
     .help = "end of the window; 0: end of the trace"},
    {.key = "limit",
     .type = XPL_OPTION_COUNT,
     .offset = MEMBER(limit),
     .values = "NUMBER",
     .preset = "1000",
     .help = "names in the answer, those with the most time; the sums are of all"},
    {.key = "name",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(name),
     .values = "TEXT",
     .help = "words that a name must contain, in any case of letters"},
    {.key = "start_time_ms",
     .type = XPL_OPTION_MILLISECONDS,
     .offset = MEMBER(viewer.trace.start_time_ms),
     .values = "MILLISECONDS",
     .help = "start of the window"},
    {.key = "tracks",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(tracks),
     .values = "PID[:TID],...",
     .help = "processes and rows, by the numbers that trace_viewer@ gives them; all when empty"},
};

static const struct xpl_product *const kNeeds[] = {&xpl_product_trace_index, NULL};

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
                             "tracks: character %zu of \"%.*s\" is none of PID[:TID],...", at + 1,
                             (int)(s.len < 60 ? s.len : 60), s.ptr);
        struct xpl_trace_row *const slot = xpl_vec_push(arena, &rows);
        if (!slot) XPL_RETURN_OOM(err, "tracks");
        *slot = row;
    }
    o->rows = rows.v, o->n_rows = rows.n;
    return XPL_OK;
}

static void write_table(const struct xpl_trace_sums *sums, uint64_t limit,
                        struct xpl_arena *scratch, struct xpl_buf *out) {
    struct xpl_gviz g;
    struct xpl_gviz_props p;
    xpl_gviz_begin(&g, out);
    xpl_gviz_column(&g, "name", "string", "Event");
    xpl_gviz_column(&g, "count", "number", "Count");
    xpl_gviz_column(&g, "total_us", "number", "Total (us)");
    xpl_gviz_column(&g, "mean_us", "number", "Mean (us)");
    xpl_gviz_column(&g, "min_us", "number", "Least (us)");
    xpl_gviz_column(&g, "max_us", "number", "Greatest (us)");
    xpl_gviz_props_init(&p, scratch);
    xpl_gviz_prop_printf(&p, "count", "%" PRIu64, sums->count);
    xpl_gviz_prop_printf(&p, "names", "%zu", sums->n);
    xpl_gviz_prop_printf(&p, "total_ps", "%" PRIu64, sums->total_ps);
    xpl_gviz_put_props(&g, &p);
    for (size_t i = 0; i < sums->n && i < limit; i++) {
        const struct xpl_trace_sum *const s = &sums->v[i];
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, s->name);
        xpl_gviz_number(&g, (double)s->count);
        xpl_gviz_number(&g, (double)s->total_ps / 1e6);
        xpl_gviz_number(&g, (double)s->total_ps / (double)s->count / 1e6);
        xpl_gviz_number(&g, (double)s->min_ps / 1e6);
        xpl_gviz_number(&g, (double)s->max_ps / 1e6);
    }
    xpl_gviz_end(&g);
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, in->limit);
    const struct trace_sums_options *const given = in->options;
    struct xpl_trace_sums_options o = {.start_time_ms = given->viewer.trace.start_time_ms,
                                       .end_time_ms = given->viewer.trace.end_time_ms,
                                       .name = given->name};
    struct xpl_trace_sums sums;
    struct xpl_trace_host *const list = xpl_arena_array(&arena, in->n_hosts, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "hosts");
    XPL_TRY(read_tracks(given->tracks, &arena, &o, err));
    size_t n = 0;
    for (size_t i = 0; i < in->n_hosts; i++) {
        if (!in->hosts[i].products) continue;
        const struct xpl_trace_index_value *const v = in->hosts[i].products[0];
        list[n++] = (struct xpl_trace_host){.name = in->hosts[i].name, .trace = v->trace};
    }
    XPL_TRY(xpl_trace_sum_up(list, n, &o, in->exec, &arena, &sums, err));
    write_table(&sums, given->limit, &arena, out);
    if (out->failed) XPL_RETURN_OOM(err, "trace_sums");
    return XPL_OK;
}

const struct xpl_tool xpl_tool_trace_sums = {
    .name = "trace_sums",
    .version = 1,
    .needs = kNeeds,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct trace_sums_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .keeps_no_answer = true,
    .shows_views = true,
    .render = render,
};
