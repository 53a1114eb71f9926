// SPDX-License-Identifier: Apache-2.0
// Tools iree_summary and so on: the reports on a profile bundle of IREE (analysis/ireeprof), one
// for each row of their table.  Where a bundle is damaged, or never finished, the answer ends with
// rows of the type "warning".
#include "analysis/ireeprof/reports/report.h"
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"

struct iree_options {
    struct xpl_common_options common; // every tool's come first
    int format, trace;                // trace: enum xpl_iree_trace_format, of export
    xpl_str_t filter, id;             // id: a number; empty: all
    bool dispatch_events, counter_samples, unfinished, raw;
};
enum { JSONL, TEXT };       // format
enum { MAX_FILTER = 1024 }; // bytes, as each event is matched with it

#define FORMAT                                                                                     \
    {                                                                                              \
        .key = "format", .type = XPL_OPTION_CHOICE,                                                \
        .offset = offsetof(struct iree_options, format), .values = "jsonl|text",                   \
        .preset = "jsonl", .help = "one JSON object per line, or text"                             \
    }
#define FILTER                                                                                     \
    {                                                                                              \
        .key = "filter", .type = XPL_OPTION_TEXT, .offset = offsetof(struct iree_options, filter), \
        .values = "GLOB",                                                                          \
        .help = "only functions or kinds of events that match; * and ? are wildcards"              \
    }
#define ID                                                                                         \
    {                                                                                              \
        .key = "id", .type = XPL_OPTION_TEXT, .offset = offsetof(struct iree_options, id),         \
        .values = "NUMBER", .help = "only rows of this id, as --id of xplanectl iree; empty: all"  \
    }
#define UNFINISHED                                                                                 \
    {                                                                                              \
        .key = "unfinished", .type = XPL_OPTION_BOOL,                                              \
        .offset = offsetof(struct iree_options, unfinished), .values = "true|false",               \
        .preset = "false", .help = "also read data after the end that the header states"           \
    }
static const struct xpl_tool_option kPlain[] = {FORMAT, UNFINISHED};
static const struct xpl_tool_option kNamed[] = {FORMAT, FILTER, UNFINISHED};
static const struct xpl_tool_option kFiltered[] = {FORMAT, FILTER, ID, UNFINISHED};
static const struct xpl_tool_option kProjected[] = {
    FORMAT,
    FILTER,
    ID,
    UNFINISHED,
    {.key = "dispatch_events",
     .type = XPL_OPTION_BOOL,
     .offset = offsetof(struct iree_options, dispatch_events),
     .values = "true|false",
     .preset = "false",
     .help = "list each dispatch instead of totals; needs format=jsonl"}};
static const struct xpl_tool_option kCounted[] = {
    FORMAT,
    FILTER,
    ID,
    UNFINISHED,
    {.key = "counter_samples",
     .type = XPL_OPTION_BOOL,
     .offset = offsetof(struct iree_options, counter_samples),
     .values = "true|false",
     .preset = "false",
     .help = "list each sample in addition to the totals; needs format=jsonl"}};
static const struct xpl_tool_option kExported[] = {
    {.key = "format",
     .type = XPL_OPTION_CHOICE,
     .offset = offsetof(struct iree_options, trace),
     .values = "ireeperf-jsonl|perfetto|chrome|xspace", // enum xpl_iree_trace_format
     .preset = "ireeperf-jsonl",
     .help = "the rows that IREE's tools exchange, or a trace for other viewers"},
    UNFINISHED};
static const struct xpl_tool_option kTraces[] = {
    FORMAT,
    ID,
    UNFINISHED,
    {.key = "raw",
     .type = XPL_OPTION_BOOL,
     .offset = offsetof(struct iree_options, raw),
     .values = "true|false",
     .preset = "false",
     .help = "the bytes of the trace that `id` names"}};

static const struct xpl_product *const kNeeds[] = {&xpl_product_iree_bundle, NULL};

static const char *content_type_of(const void *options) {
    const struct iree_options *const o = options;
    if (o->raw || o->trace == XPL_IREE_PERFETTO || o->trace == XPL_IREE_XSPACE)
        return "application/octet-stream";
    if (o->trace == XPL_IREE_CHROME) return "application/json";
    return o->format == TEXT ? "text/plain; charset=utf-8" : "application/x-ndjson";
}

static xpl_status_t render_trace(const struct xpl_iree_bundle *bundle, int64_t id,
                                 struct xpl_buf *out, struct xpl_error *err) {
    xpl_bytes_t trace;
    XPL_TRY(xpl_iree_trace_bytes(bundle, id, &trace, err));
    xpl_buf_put(out, trace.ptr, trace.len);
    if (out->failed) XPL_RETURN_OOM(err, "executable trace");
    return XPL_OK;
}

// Beside the answer, so that clients need not read it to know.
static void warn_partial(const struct xpl_tool_input *in, const struct xpl_iree_run *run) {
    char text[XPL_IREE_BUNDLE_WARNING_SIZE];
    if (!in->warn || !xpl_iree_is_partial(run)) return;
    for (size_t i = 0; i < XPL_IREE_BUNDLE_WARNINGS && xpl_iree_warning(run, i, text, sizeof text);
         i++)
        in->warn(in->warn_arg, in->hosts[0].name, xpl_str_from(text));
}

static xpl_status_t render_report(const char *name, const struct xpl_tool_input *in,
                                  struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_iree_report *const report = xpl_iree_report_find(xpl_str_from(name));
    const struct iree_options *const o = in->options;
    struct xpl_iree_bundle bundle;
    struct xpl_iree_rows rows = {.format = o->format == TEXT ? XPL_IREE_TEXT : XPL_IREE_JSONL,
                                 .out = out};
    struct xpl_iree_run run = {.bundle = &bundle,
                               .options = {.filter = o->filter.len ? o->filter : (xpl_str_t){0},
                                           .dispatch_events = o->dispatch_events,
                                           .counter_samples = o->counter_samples,
                                           .trace = (enum xpl_iree_trace_format)o->trace},
                               .rows = &rows,
                               .exec = in->exec,
                               .limit = in->limit};
    if (o->filter.len > MAX_FILTER)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "filter: more than %d bytes", MAX_FILTER);
    XPL_TRY(xpl_iree_id_parse(o->id, &run.options.id, err));
    XPL_TRY(xpl_iree_open(in->hosts[0].profile, o->unfinished, &bundle, err));
    if (o->raw) {
        warn_partial(in, &run);
        return render_trace(&bundle, run.options.id, out, err);
    }
    XPL_TRY(xpl_iree_report_run(report, &run, err));
    warn_partial(in, &run);
    if (!o->trace) xpl_iree_report_warn(report, &run); // a trace has its own diagnostics
    if (out->failed) XPL_RETURN_OOM(err, "report");
    return XPL_OK;
}

// TOOL(REPORT, VERSION, OPTIONS): the row of iree_REPORT.
#define TOOL(report, number, list)                                                                 \
    static xpl_status_t render_##report(const struct xpl_tool_input *in, struct xpl_buf *out,      \
                                        struct xpl_error *err) {                                   \
        return render_report(#report, in, out, err);                                               \
    }                                                                                              \
    const struct xpl_tool xpl_tool_iree_##report = {                                               \
        .name = "iree_" #report,                                                                   \
        .version = (number),                                                                       \
        .needs = kNeeds,                                                                           \
        .facts = XPL_FACT_BUNDLE,                                                                  \
        .options = (list),                                                                         \
        .n_options = sizeof(list) / sizeof *(list),                                                \
        .options_size = sizeof(struct iree_options),                                               \
        .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,                            \
        .hosts = XPL_HOSTS_ONE,                                                                    \
        .shown = XPL_SHOWN_NEVER,                                                                  \
        .content_type = "application/x-ndjson",                                                    \
        .content_type_of = content_type_of,                                                        \
        .reads_profile = true,                                                                     \
        .render = render_##report,                                                                 \
    };
TOOL(att, 3, kTraces)
TOOL(cat, 3, kPlain)
TOOL(command, 3, kProjected)
TOOL(counter, 3, kCounted)
TOOL(dispatch, 3, kProjected)
TOOL(executable, 3, kProjected)
TOOL(explain, 5, kFiltered)
TOOL(export, 10, kExported)
TOOL(functions, 6, kNamed)
TOOL(iterations, 2, kPlain)
TOOL(latency, 5, kNamed)
TOOL(memory, 5, kFiltered)
TOOL(queue, 4, kProjected)
TOOL(self, 5, kNamed)
TOOL(sessions, 6, kPlain)
TOOL(statistics, 5, kPlain)
TOOL(summary, 6, kPlain)
TOOL(usage, 4, kPlain)
