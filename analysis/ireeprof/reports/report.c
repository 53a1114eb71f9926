// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/reports/report.h"

#include "analysis/ireeprof/reports/impl.h"

enum {
    FILTERED = XPL_IREE_TAKES_FILTER | XPL_IREE_TAKES_ID,
    PROJECTED = FILTERED | XPL_IREE_TAKES_DISPATCH_EVENTS,
    COUNTED = FILTERED | XPL_IREE_TAKES_COUNTER_SAMPLES
};

static const struct xpl_iree_report reports[] = {
    {.name = "summary",
     .help = "health of the bundle, counts of all records, clocks and dispatches of devices",
     .run = xpl_iree_report_summary},
    {.name = "explain",
     .help = "an overview of where time goes: functions, dispatches, queues, memory, and hints",
     .accepts = FILTERED,
     .run = xpl_iree_report_explain},
    {.name = "dispatch",
     .help = "time of each function on each device; --id: a dispatch event",
     .accepts = PROJECTED,
     .run = xpl_iree_report_dispatch},
    {.name = "queue",
     .help = "queues, their submissions and operations; --id: a submission",
     .accepts = PROJECTED,
     .run = xpl_iree_report_queue},
    {.name = "command",
     .help = "command buffers, their operations and executions; --id: a command buffer",
     .accepts = PROJECTED,
     .run = xpl_iree_report_command},
    {.name = "memory",
     .help = "memory events, balances of devices and pools, lives of allocations",
     .accepts = FILTERED,
     .run = xpl_iree_report_memory},
    {.name = "executable",
     .help = "executables, their functions and the time of these; --id: an executable",
     .accepts = PROJECTED,
     .run = xpl_iree_report_executable},
    {.name = "statistics",
     .help = "sums by function, command buffer, operation, queue and kind of memory event",
     .run = xpl_iree_report_statistics},
    {.name = "counter",
     .help = "totals of hardware counters, by the sampled function or operation",
     .accepts = COUNTED,
     .run = xpl_iree_report_counter},
    {.name = "cat", .help = "the header of each record", .run = xpl_iree_report_cat},
    {.name = "export",
     .help = "every record as a row of ireeperf-jsonl, the form that IREE's tools exchange",
     .begin_warning = xpl_iree_export_begin_warning,
     .run = xpl_iree_report_export},
    {.name = "functions",
     .help =
         "time of functions by name and geometry, over executables and devices, with percentiles",
     .accepts = XPL_IREE_TAKES_FILTER,
     .ours = true,
     .run = xpl_iree_report_functions},
    {.name = "self",
     .help = "self time of host spans, and utilization of workers",
     .accepts = XPL_IREE_TAKES_FILTER,
     .ours = true,
     .run = xpl_iree_report_self},
    {.name = "latency",
     .help = "times from submit to ready to start to end of operations, by queue, with percentiles",
     .accepts = XPL_IREE_TAKES_FILTER,
     .ours = true,
     .run = xpl_iree_report_latency},
    {.name = "iterations",
     .help = "repeated submissions to a queue, and the duration of each",
     .ours = true,
     .run = xpl_iree_report_iterations},
    {.name = "usage",
     .help = "memory in use over time, its peak, allocations left at the end, and failures",
     .ours = true,
     .run = xpl_iree_report_usage},
    {.name = "sessions",
     .help = "the sessions of the bundle and their devices",
     .ours = true,
     .run = xpl_iree_report_sessions},
    {.name = "att",
     .help = "executable traces (AMD ATT): a list; --id with -o: the bytes of one",
     .accepts = XPL_IREE_TAKES_ID,
     .run = xpl_iree_report_att},
};
enum { N_REPORTS = sizeof reports / sizeof *reports };

const struct xpl_iree_report *xpl_iree_reports(size_t *ret_n) {
    *ret_n = N_REPORTS;
    return reports;
}

const struct xpl_iree_report *xpl_iree_report_find(xpl_str_t name) {
    for (size_t i = 0; i < N_REPORTS; i++)
        if (xpl_str_eq(name, xpl_str_from(reports[i].name))) return &reports[i];
    return NULL;
}

void xpl_iree_report_warn(const struct xpl_iree_report *report, struct xpl_iree_run *run) {
    char text[320];
    for (size_t i = 0; xpl_iree_warning(run, i, text, sizeof text); i++) {
        if (report->begin_warning)
            report->begin_warning(run);
        else
            xpl_row_begin(run->rows, "type", "warning");
        xpl_row_text(run->rows, "message", text);
        xpl_row_end(run->rows);
    }
}

static xpl_status_t check_options(const struct xpl_iree_report *report,
                                  const struct xpl_iree_run *run, struct xpl_error *err) {
    const struct xpl_iree_options *const o = &run->options;
    const struct {
        bool given;
        unsigned bit;
        const char *flag;
    } options[] = {{!xpl_str_eq(o->filter, XPL_STR("*")), XPL_IREE_TAKES_FILTER, "--filter"},
                   {o->id >= 0, XPL_IREE_TAKES_ID, "--id"},
                   {o->dispatch_events, XPL_IREE_TAKES_DISPATCH_EVENTS, "--dispatch_events"},
                   {o->counter_samples, XPL_IREE_TAKES_COUNTER_SAMPLES, "--counter_samples"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!options[i].given) continue;
        if (!(report->accepts & options[i].bit))
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "command '%s' does not support %s",
                             report->name, options[i].flag);
        if (i >= 2 && run->rows->format != XPL_IREE_JSONL)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s requires --format=jsonl",
                             options[i].flag);
    }
    return XPL_OK;
}

xpl_status_t xpl_iree_report_run(const struct xpl_iree_report *report, struct xpl_iree_run *run,
                                 struct xpl_error *err) {
    if (!run->options.filter.ptr) run->options.filter = XPL_STR("*");
    XPL_TRY(check_options(report, run, err));
    XPL_TRY(report->run(run, err));
    if (xpl_iree_rows_flush(run->rows)) return XPL_OK;
    if (run->rows->out->failed) XPL_RETURN_OOM(err, "report");
    XPL_RETURN_ERROR(err, XPL_ABORTED, "the output ended before the report");
}
