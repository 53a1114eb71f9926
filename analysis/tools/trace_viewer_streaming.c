// SPDX-License-Identifier: Apache-2.0
// Tool trace_viewer@: a window of the hosts' traces, side by side, read from their indexes
// (analysis/trace).  Options by XProf's names (XProf: convert/trace_view_options.cc).
#include "analysis/products/values.h"
#include "analysis/tools/trace_viewer/options.h"
#include "base/arena.h"
#include "base/cleanup.h"

#define MEMBER(name) offsetof(struct xpl_trace_viewer_options, name)

static const struct xpl_tool_option kOptions[] = {
    {.key = "duration_ms",
     .type = XPL_OPTION_MILLISECONDS,
     .offset = MEMBER(trace.duration_ms),
     .values = "MILLISECONDS",
     .help = "duration of the event that event_name names"},
    {.key = "end_time_ms",
     .type = XPL_OPTION_MILLISECONDS,
     .offset = MEMBER(trace.end_time_ms),
     .values = "MILLISECONDS",
     .help = "end of the window; 0: end of the trace"},
    {.key = "event_name",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(trace.event_name),
     .values = "TEXT",
     .help = "one event with its arguments, found by name, start_time_ms, duration_ms, unique_id"},
    {.key = "format",
     .type = XPL_OPTION_CHOICE,
     .offset = MEMBER(format),
     .values = "json|pb",
     .preset = "json",
     .help = "JSON, or a TraceDataResponse compressed with zstd"},
    {.key = "full_dma",
     .type = XPL_OPTION_BOOL,
     .offset = MEMBER(trace.full_dma),
     .values = "true|false",
     .preset = "false",
     .help = "on TPU cores also show the events in the middle of a flow"},
    {.key = "mpmd_pipeline_view",
     .type = XPL_OPTION_BOOL,
     .offset = MEMBER(trace.mpmd_pipeline_view),
     .values = "true|false",
     .preset = "false",
     .help = "order processes by the model layers that they run"},
    {.key = "resolution",
     .type = XPL_OPTION_COUNT,
     .offset = MEMBER(trace.resolution),
     .values = "NUMBER",
     .preset = "8000",
     .help = "number of distinguishable events per row; 0: no limit"},
    {.key = "search_metadata",
     .type = XPL_OPTION_BOOL,
     .offset = MEMBER(trace.search_metadata),
     .values = "true|false",
     .preset = "false",
     .help = "include arguments of the events that search_prefix finds"},
    {.key = "search_prefix",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(trace.search_prefix),
     .values = "TEXT",
     .help = "all events whose names begin with TEXT"},
    {.key = "start_time_ms",
     .type = XPL_OPTION_MILLISECONDS,
     .offset = MEMBER(trace.start_time_ms),
     .values = "MILLISECONDS",
     .help = "start of the window"},
    {.key = "unique_id",
     .type = XPL_OPTION_COUNT,
     .offset = MEMBER(trace.unique_id),
     .values = "NUMBER",
     .help = "unique_id of the event that event_name names"},
};

static const struct xpl_product *const kNeeds[] = {&xpl_product_trace_index, NULL};

static const char *content_type(const void *options) {
    const struct xpl_trace_viewer_options *const o = options;
    return o->format == XPL_TRACE_FORMAT_PB ? "application/octet-stream" : "application/json";
}

// Hosts that were left out are not shown.
static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(in->limit);
    const struct xpl_trace_viewer_options *const given = in->options;
    struct xpl_trace_options o = given->trace;
    o.pb = given->format == XPL_TRACE_FORMAT_PB;
    struct xpl_trace_host *const list = xpl_arena_array(&arena, in->n_hosts, sizeof *list);
    if (!list) XPL_RETURN_OOM(err, "hosts");
    size_t n = 0;
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_tool_host *const h = &in->hosts[i];
        if (!h->products) continue;
        const struct xpl_trace_index_value *const v = h->products[0];
        list[n++] = (struct xpl_trace_host){h->name, v->trace, h->profile};
    }
    return xpl_trace_answer(list, n, &o, in->exec, in->limit, out, err);
}

const struct xpl_tool xpl_tool_trace_viewer_streaming = {
    .name = "trace_viewer@",
    .version = 1,
    .needs = kNeeds,
    .facts = XPL_FACT_EVENTS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct xpl_trace_viewer_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 3,
    .content_type = "application/json",
    .content_type_of = content_type,
    .reads_profile = true,
    .keeps_no_answer = true,
    .render = render,
};
