// SPDX-License-Identifier: Apache-2.0
// Tools iree_summary and so on: the reports on a profile bundle of IREE (analysis/ireeprof), one
// for each row of their table.  Where a bundle is damaged, or never finished, the answer ends with
// rows of the type "warning".
#include "analysis/ireeprof/reports/report.h"
#include "analysis/tools/tool.h"

struct iree_options {
    struct xpl_common_options common; // every tool's come first
    int format;
    xpl_str_t filter;
    uint64_t id; // 0: all
    bool dispatch_events, counter_samples;
};
enum { JSONL, TEXT }; // format

#define FORMAT                                                                                     \
    {                                                                                              \
        .key = "format", .type = XPL_OPTION_CHOICE,                                                \
        .offset = offsetof(struct iree_options, format), .values = "jsonl|text",                   \
        .preset = "jsonl", .help = "a JSON object a line, or text for a person"                    \
    }
#define FILTER                                                                                     \
    {                                                                                              \
        .key = "filter", .type = XPL_OPTION_TEXT, .offset = offsetof(struct iree_options, filter), \
        .values = "GLOB",                                                                          \
        .help = "rows of functions or kinds of events that match it; * and ? stand for others"     \
    }
#define ID                                                                                         \
    {                                                                                              \
        .key = "id", .type = XPL_OPTION_COUNT, .offset = offsetof(struct iree_options, id),        \
        .values = "NUMBER", .preset = "0",                                                         \
        .help = "rows of that id, as --id of xplanectl iree; 0: all"                               \
    }
static const struct xpl_tool_option kPlain[] = {FORMAT};
static const struct xpl_tool_option kNamed[] = {FORMAT, FILTER};
static const struct xpl_tool_option kFiltered[] = {FORMAT, FILTER, ID};
static const struct xpl_tool_option kProjected[] = {
    FORMAT,
    FILTER,
    ID,
    {.key = "dispatch_events",
     .type = XPL_OPTION_BOOL,
     .offset = offsetof(struct iree_options, dispatch_events),
     .values = "true|false",
     .preset = "false",
     .help = "each dispatch in place of sums; needs format=jsonl"}};
static const struct xpl_tool_option kCounted[] = {
    FORMAT,
    FILTER,
    ID,
    {.key = "counter_samples",
     .type = XPL_OPTION_BOOL,
     .offset = offsetof(struct iree_options, counter_samples),
     .values = "true|false",
     .preset = "false",
     .help = "each sample beside the sums; needs format=jsonl"}};

static const struct xpl_product *const kNeeds[] = {&xpl_product_iree_bundle, NULL};

static const char *content_type_of(const void *options) {
    const struct iree_options *const o = options;
    return o->format == TEXT ? "text/plain; charset=utf-8" : "application/x-ndjson";
}

static void write_warnings(const struct xpl_iree_run *run) {
    char text[320];
    for (size_t i = 0; xpl_iree_warning(run, i, text, sizeof text); i++) {
        xpl_row_begin(run->rows, "type", "warning");
        xpl_row_text(run->rows, "message", text);
        xpl_row_end(run->rows);
    }
}

static xpl_status_t render_report(const char *name, const struct xpl_tool_input *in,
                                  struct xpl_buf *out, struct xpl_error *err) {
    const struct iree_options *const o = in->options;
    struct xpl_iree_bundle bundle;
    struct xpl_iree_rows rows = {.format = o->format == TEXT ? XPL_IREE_TEXT : XPL_IREE_JSONL,
                                 .out = out};
    struct xpl_iree_run run = {.bundle = &bundle,
                               .options = {.filter = o->filter,
                                           .id = o->id ? (int64_t)(o->id & INT64_MAX) : -1,
                                           .dispatch_events = o->dispatch_events,
                                           .counter_samples = o->counter_samples},
                               .rows = &rows,
                               .exec = in->exec};
    XPL_TRY(xpl_iree_open(in->hosts[0].profile, false, &bundle, err));
    XPL_TRY(xpl_iree_report_run(xpl_iree_report_find(xpl_str_from(name)), &run, err));
    write_warnings(&run);
    if (out->failed) XPL_RETURN_OOM(err, "report");
    return XPL_OK;
}

#define TOOL(report, list)                                                                         \
    static xpl_status_t render_##report(const struct xpl_tool_input *in, struct xpl_buf *out,      \
                                        struct xpl_error *err) {                                   \
        return render_report(#report, in, out, err);                                               \
    }                                                                                              \
    const struct xpl_tool xpl_tool_iree_##report = {                                               \
        .name = "iree_" #report,                                                                   \
        .version = XPL_IREE_TOOLS_VERSION,                                                         \
        .needs = kNeeds,                                                                           \
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
#define XPL_IREE_TOOLS_VERSION 1
TOOL(cat, kPlain)
TOOL(command, kProjected)
TOOL(counter, kCounted)
TOOL(dispatch, kProjected)
TOOL(executable, kProjected)
TOOL(explain, kFiltered)
TOOL(functions, kNamed)
TOOL(latency, kNamed)
TOOL(memory, kFiltered)
TOOL(queue, kProjected)
TOOL(sessions, kPlain)
TOOL(statistics, kPlain)
TOOL(summary, kPlain)
TOOL(usage, kPlain)
