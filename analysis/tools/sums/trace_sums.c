// SPDX-License-Identifier: Apache-2.0
// Tool trace_sums: how many events of each name a window of the trace has and how long they took,
// exactly.  Ours; XProf has none.
#include "analysis/tools/sums/sums.h"
#include "base/cleanup.h"

static const struct xpl_column kColumns[] = {
    XPL_TEXTS("name", "Event"),
    XPL_NUMBERS("count", "Count", NULL),
    XPL_NUMBERS("total_us", "Total (us)", "us"),
    XPL_NUMBERS("mean_us", "Mean (us)", "us"),
    XPL_NUMBERS("min_us", "Least (us)", "us"),
    XPL_NUMBERS("max_us", "Greatest (us)", "us"),
    {0},
};

static const struct xpl_tool_option kOptions[] = {
    SUMS_END_TIME, SUMS_LIMIT("names in the answer, those with the most time; the sums are of all"),
    SUMS_NAME,     SUMS_START_TIME,
    SUMS_TRACKS,
};
static void write_table(const struct xpl_trace_sums *sums, uint64_t limit,
                        struct xpl_arena *scratch, struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kColumns, 0);
    sums_put_totals(&g, sums, scratch);
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
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(in->limit);
    struct xpl_trace_sums sums;
    XPL_TRY(sums_make(in, (xpl_str_t){0}, 0, &arena, &sums, err));
    write_table(&sums, ((const struct sums_options *)in->options)->limit, &arena, out);
    if (out->failed) XPL_RETURN_OOM(err, "trace_sums");
    return XPL_OK;
}

const struct xpl_tool xpl_tool_trace_sums = {
    .name = "trace_sums",
    .version = 1,
    .needs = sums_needs,
    .facts = XPL_FACT_EVENTS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct sums_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .columns = {kColumns},
    .keeps_no_answer = true,
    .render = render,
};
