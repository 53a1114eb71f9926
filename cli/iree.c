// SPDX-License-Identifier: Apache-2.0
// `xplanectl iree`: reports on profile bundles of IREE (analysis/ireeprof).
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/ireeprof/reports/report.h"
#include "base/text/near.h"
#include "cli/args.h"
#include "cli/output.h"
#include "storage/sessions/source.h"

enum { MAX_ROW = 1 << 30 }; // bytes of output that wait to be written: a row with its names

// Where rows go; `error` is the errno of the first write that failed.
struct output {
    struct xpl_output out;
    int error;
};

static bool write_out(void *ctx, const void *p, size_t n) {
    struct output *const o = ctx;
    errno = 0;
    if (fwrite(p, 1, n, o->out.f) == n) return true;
    o->error = errno ? errno : EIO;
    return false;
}

static int fail(xpl_status_t code, const char *message) {
    (void)fprintf(stderr, "xplanectl: %s: %s\n", xpl_status_name(code), message);
    return code == XPL_INVALID_ARGUMENT ? XPL_EXIT_USAGE : XPL_EXIT_FAILED;
}

static void list_reports(FILE *out) {
    size_t n;
    const struct xpl_iree_report *const reports = xpl_iree_reports(&n);
    (void)fputs("Reports:\n", out);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(out, "  %-11s %s\n", reports[i].name, reports[i].help);
}

static bool parse_id(const char *text, int64_t *ret) {
    char *end;
    if (!text) return true;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (errno == 0 && end != text && *end == 0) return true;
    (void)fprintf(stderr, "xplanectl: not a number: --id %s\n", text);
    return false;
}

static bool parse_format(const char *report, const char *text, enum xpl_iree_rows_format *ret) {
    const bool is_export = strcmp(report, "export") == 0;
    const char *const json = is_export ? "ireeperf-jsonl" : "jsonl";
    *ret = is_export || (text && strcmp(text, json) == 0) ? XPL_IREE_JSONL : XPL_IREE_TEXT;
    if (!text || strcmp(text, json) == 0 || (!is_export && strcmp(text, "text") == 0)) return true;
    (void)fprintf(stderr, "xplanectl: no format \"%s\" of %s: %s%s\n", text, report,
                  is_export ? "" : "text or ", json);
    return false;
}

// Says what the report had to do without.
static int warn(const struct xpl_iree_run *run, const char *path) {
    char text[320];
    for (size_t i = 0; xpl_iree_warning(run, i, text, sizeof text); i++)
        (void)fprintf(stderr, "xplanectl: warning: %s: %s\n", path, text);
    return xpl_iree_is_partial(run) ? XPL_EXIT_PARTLY : XPL_EXIT_OK;
}

static int run_report(const struct xpl_args *args, const struct xpl_iree_report *report,
                      const struct xpl_iree_bundle *bundle, struct output *o) {
    struct xpl_error err = {0};
    struct xpl_buf buf;
    struct xpl_iree_rows rows = {.out = &buf, .write = write_out, .ctx = o};
    struct xpl_iree_run run = {.bundle = bundle,
                               .options = {.id = -1,
                                           .dispatch_events = args->dispatch_events,
                                           .counter_samples = args->counter_samples},
                               .rows = &rows};
    if (args->filter) run.options.filter = xpl_str_from(args->filter);
    if (!parse_id(args->id, &run.options.id) ||
        !parse_format(report->name, args->format, &rows.format))
        return XPL_EXIT_USAGE;
    xpl_buf_init(&buf, MAX_ROW);
    xpl_status_t st = xpl_iree_report_run(report, &run, &err);
    xpl_buf_fini(&buf);
    if (o->error) return fail(XPL_ABORTED, strerror(o->error));
    return st == XPL_OK ? warn(&run, args->rest[2]) : fail(st, err.msg);
}

// The bytes of an executable trace, as they are.
static int write_trace(const struct xpl_args *args, const struct xpl_iree_bundle *bundle,
                       struct output *o) {
    struct xpl_iree_cursor c = {.bundle = bundle};
    struct xpl_iree_record r;
    struct xpl_iree_item item;
    struct xpl_iree_trace trace;
    int64_t id = -1;
    if (!parse_id(args->id, &id)) return XPL_EXIT_USAGE;
    while (xpl_iree_next(&c, &r)) {
        struct xpl_iree_items items = xpl_iree_items_of(&r);
        if (r.chunk != XPL_IREE_TRACES || !xpl_iree_item_next(&items, &item, NULL)) continue;
        xpl_iree_copy(&item, &trace);
        if (trace.trace_id != (uint64_t)id) continue;
        if (write_out(o, item.tail.ptr, item.tail.len)) return XPL_EXIT_OK;
        return fail(XPL_ABORTED, strerror(o->error));
    }
    return fail(XPL_NOT_FOUND, "the bundle has no executable trace of this id");
}

static int report_file(const struct xpl_args *args, const struct xpl_iree_report *report,
                       struct output *o) {
    struct xpl_error err = {0};
    struct xpl_iree_bundle bundle;
    struct xpl_source *source;
    xpl_status_t st = xpl_source_open(AT_FDCWD, args->rest[2], 0, &source, &err);
    if (st != XPL_OK) return fail(st, err.msg);
    st = xpl_iree_open(xpl_source_bytes(source), args->unfinished, &bundle, &err);
    int status = XPL_EXIT_FAILED; // also for INVALID_ARGUMENT: the file is wrong, not the usage
    if (st != XPL_OK)
        (void)fail(st, err.msg);
    else if (args->out && args->id && strcmp(report->name, "att") == 0)
        status = write_trace(args, &bundle, o);
    else
        status = run_report(args, report, &bundle, o);
    xpl_source_free(source);
    return status;
}

// A session's name: the daemon's tool gives the same rows.
static int report_session(const struct xpl_args *args, const struct xpl_iree_report *report) {
    char tool[32];
    const char *options[10], *const rest[] = {"tool", tool, args->rest[2]};
    size_t n = 0;
    const struct {
        const char *key, *value;
    } given[] = {{"format", args->format ? args->format : "text"},
                 {"filter", args->filter},
                 {"id", args->id},
                 {"dispatch_events", args->dispatch_events ? "true" : NULL},
                 {"counter_samples", args->counter_samples ? "true" : NULL}};
    (void)snprintf(tool, sizeof tool, "iree_%s", report->name);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        if (!given[i].value) continue;
        options[2 * n] = given[i].key;
        options[2 * n++ + 1] = given[i].value;
    }
    struct xpl_args a = *args;
    memcpy(a.rest, rest, sizeof rest); // as many as there are
    a.options = options;
    a.n_options = n;
    const int status = xpl_cmd_tool(&a);
    if (status == XPL_EXIT_FAILED)
        (void)fprintf(stderr, "xplanectl: there is no file %s: it was taken for a session\n",
                      args->rest[2]);
    return status;
}

static int unknown_report(const char *name) {
    size_t n;
    const struct xpl_iree_report *const reports = xpl_iree_reports(&n);
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < n; i++)
        xpl_near_add(&near, xpl_str_from(reports[i].name));
    (void)fprintf(stderr, "xplanectl: unknown report \"%s\"%s\n", name, xpl_near_text(&near, hint));
    list_reports(stderr);
    return XPL_EXIT_USAGE;
}

int xpl_cmd_iree(const struct xpl_args *args) {
    const char *const name = args->n_rest > 1 ? args->rest[1] : "";
    const struct xpl_iree_report *const report = xpl_iree_report_find(xpl_str_from(name));
    if (!report && args->n_rest > 1) return unknown_report(name);
    if (args->n_rest != 3) {
        (void)fprintf(stderr, "Usage: xplanectl iree REPORT FILE|SESSION\n");
        list_reports(stderr);
        return XPL_EXIT_USAGE;
    }
    if (args->rocm_library_path)
        return fail(XPL_UNIMPLEMENTED,
                    "executable traces are not decoded: that needs AMD's rocprof-trace-decoder "
                    "and comgr; `iree att FILE --id N -o OUT` gives the bytes of one");
    if (access(args->rest[2], F_OK) != 0) return report_session(args, report);
    struct output o = {0};
    if (!xpl_output_open(&o.out, args->out)) return XPL_EXIT_FAILED;
    const int status = report_file(args, report, &o);
    if (status == XPL_EXIT_OK || status == XPL_EXIT_PARTLY)
        return xpl_output_commit(&o.out) ? status : XPL_EXIT_FAILED;
    xpl_output_abort(&o.out);
    return status;
}
