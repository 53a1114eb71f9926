// SPDX-License-Identifier: Apache-2.0
// Tool trace_search: which events have some words in their arguments, how many and for how long,
// exactly.  Ours; XProf has none.
#include "analysis/tools/sums/sums.h"
#include "base/cleanup.h"

static const struct xpl_column kColumns[] = {
    XPL_TEXTS("name", "Event"),
    XPL_NUMBERS("pid", "Process", NULL),
    XPL_NUMBERS("tid", "Row", NULL),
    XPL_NUMBERS("start_us", "Start (us)", "us"),
    XPL_NUMBERS("duration_us", "Duration (us)", "us"),
    {0},
};

enum { MOST_EVENTS = 100000 };

struct search_options {
    struct sums_options sums; // first
    xpl_str_t text;
};

static const struct xpl_tool_option kOptions[] = {
    SUMS_END_TIME,
    SUMS_LIMIT("events in the answer, the earliest, at most 100000; the sums are of all"),
    SUMS_NAME,
    SUMS_START_TIME,
    {.key = "text",
     .type = XPL_OPTION_TEXT,
     .offset = offsetof(struct search_options, text),
     .values = "TEXT",
     .help = "up to 32 words that the values of an event's arguments must contain, in any case of "
             "letters"},
    SUMS_TRACKS,
};

static void write_table(const struct xpl_trace_sums *sums, struct xpl_arena *scratch,
                        struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kColumns, 0);
    sums_put_totals(&g, sums, scratch);
    for (size_t i = 0; i < sums->n_found; i++) {
        const struct xpl_trace_found *const f = &sums->found[i];
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, f->name);
        xpl_gviz_number(&g, (double)f->row.pid);
        xpl_gviz_number(&g, (double)f->row.tid);
        xpl_gviz_number(&g, (double)f->ts / 1e6);
        xpl_gviz_number(&g, (double)f->dur / 1e6);
    }
    xpl_gviz_end(&g);
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    const struct search_options *const o = in->options;
    const size_t most = o->sums.limit < MOST_EVENTS ? (size_t)o->sums.limit : MOST_EVENTS;
    struct xpl_trace_sums sums;
    xpl_arena_init(&arena, in->limit);
    XPL_TRY(sums_make(in, o->text, most, &arena, &sums, err));
    write_table(&sums, &arena, out);
    if (out->failed) XPL_RETURN_OOM(err, "trace_search");
    return XPL_OK;
}

const struct xpl_tool xpl_tool_trace_search = {
    .name = "trace_search",
    .version = 1,
    .needs = sums_needs,
    .facts = XPL_FACT_EVENTS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct search_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .columns = {kColumns},
    .keeps_no_answer = true,
    .reads_profile = true,
    .render = render,
};
