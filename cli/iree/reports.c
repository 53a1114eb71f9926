// SPDX-License-Identifier: Apache-2.0
// `xplanectl iree`: reports on profile bundles of IREE (analysis/ireeprof).
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/ireeprof/reports/report.h"
#include "base/text/near.h"
#include "cli/args.h"
#include "cli/iree/capture.h"
#include "cli/iree/command.h"
#include "cli/logdir.h"
#include "cli/output.h"
#include "cli/runs/answer.h"
#include "cli/runs/place.h"

enum {
    MAX_ROW = 1 << 30, // bytes of output that wait to be written: a row with its names
    MAX_OPTIONS = 7,   // of a tool
};
#define MAX_ROWS ((size_t)8 << 30) // bytes of a bundle that is made of rows

// Where rows go; `error` is the errno of the first write that failed.
struct output {
    struct xpl_output out;
    int error;
    bool any; // was written
};

static bool write_out(void *ctx, const void *p, size_t n) {
    struct output *const o = ctx;
    errno = 0;
    o->any |= n > 0;
    if (fwrite(p, 1, n, o->out.f) == n) return true;
    o->error = errno ? errno : EIO;
    return false;
}

// A user without output wonders whether something went wrong; a program counts rows.
static void say_no_rows(const struct xpl_args *args, const char *report) {
    const bool is_text = !args->format || strcmp(args->format, "text") == 0;
    const bool chosen = args->filter || args->id;
    if (is_text && !args->quiet)
        (void)fprintf(stderr,
                      chosen ? "xplanectl: no rows: nothing that %s reports matches\n"
                             : "xplanectl: no rows: the bundle has nothing that %s reports\n",
                      report);
}

static void list_reports(FILE *out) {
    size_t n;
    const struct xpl_iree_report *const reports = xpl_iree_reports(&n);
    (void)fputs("Reports:\n", out);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(out, "  %-11s %s\n", reports[i].name, reports[i].help);
}

static bool parse_id(const char *text, int64_t *ret) {
    struct xpl_error err = {0};
    if (xpl_iree_id_parse(xpl_str_from(text ? text : ""), ret, &err) == XPL_OK) return true;
    (void)fprintf(stderr, "xplanectl: --id: %s\n", err.msg);
    return false;
}

// The forms of export, in the order of enum xpl_iree_trace_format.
static const char *const kExports[] = {"ireeperf-jsonl", "perfetto", "chrome", "xspace"};
static const char *const kForms[] = {"text", "jsonl"}; // of the other reports
enum { N_EXPORTS = sizeof kExports / sizeof *kExports, N_FORMS = sizeof kForms / sizeof *kForms };

static bool unknown_format(const char *report, const char *text, const char *const *known,
                           size_t n) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(text));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < n; i++)
        xpl_near_add(&near, xpl_str_from(known[i]));
    (void)fprintf(stderr, "xplanectl: no format \"%s\" of %s%s\nFormats:", text, report,
                  xpl_near_text(&near, hint));
    for (size_t i = 0; i < n; i++)
        (void)fprintf(stderr, "%s %s", i ? "," : "", known[i]);
    (void)fputs("\n", stderr);
    return false;
}

static bool parse_format(const char *report, const char *text, enum xpl_iree_rows_format *ret,
                         enum xpl_iree_trace_format *ret_trace) {
    const bool is_export = strcmp(report, "export") == 0;
    *ret = is_export || (text && strcmp(text, "jsonl") == 0) ? XPL_IREE_JSONL : XPL_IREE_TEXT;
    for (size_t i = 0; is_export && text && i < N_EXPORTS; i++) {
        if (strcmp(text, kExports[i]) != 0) continue;
        *ret_trace = (enum xpl_iree_trace_format)i;
        return true;
    }
    if (!text || (!is_export && (*ret == XPL_IREE_JSONL || strcmp(text, "text") == 0))) return true;
    return unknown_format(report, text, is_export ? kExports : kForms,
                          is_export ? N_EXPORTS : N_FORMS);
}

// Prints warnings about what the report lacks; returns the exit status.
static int warn(const struct xpl_iree_run *run, const char *path) {
    char text[320];
    for (size_t i = 0; xpl_iree_warning(run, i, text, sizeof text); i++)
        xpl_say("warning: %s: %s", path, text);
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
        !parse_format(report->name, args->format, &rows.format, &run.options.trace))
        return XPL_EXIT_USAGE;
    xpl_buf_init(&buf, MAX_ROW);
    xpl_status_t st = xpl_iree_report_run(report, &run, &err);
    // Exported rows keep the damage. Of bundles that IREE's tools read, finished or not, they are
    // equal to theirs; a trace has its own diagnostics.
    if (st == XPL_OK && strcmp(report->name, "export") == 0 && !run.options.trace &&
        xpl_iree_is_damaged(&run)) {
        xpl_iree_report_warn(report, &run);
        (void)xpl_iree_rows_flush(&rows); // *o records a failure
    }
    xpl_buf_fini(&buf);
    if (o->error) return xpl_failed(XPL_ABORTED, strerror(o->error));
    if (st == XPL_OK && !o->any) say_no_rows(args, report->name);
    return st == XPL_OK ? warn(&run, args->rest[2]) : xpl_failed(st, err.msg);
}

static bool wants_trace(const struct xpl_args *args, const struct xpl_iree_report *report) {
    return args->out && args->id && strcmp(report->name, "att") == 0;
}

// The bytes of an executable trace, as they are.
static int write_trace(const struct xpl_args *args, const struct xpl_iree_bundle *bundle,
                       struct output *o) {
    struct xpl_error err = {0};
    xpl_bytes_t trace;
    int64_t id;
    if (!parse_id(args->id, &id)) return XPL_EXIT_USAGE;
    const xpl_status_t st = xpl_iree_trace_bytes(bundle, id, &trace, &err);
    const struct xpl_iree_run run = {.bundle = bundle};
    if (st != XPL_OK) return xpl_failed(st, err.msg);
    if (write_out(o, trace.ptr, trace.len)) return warn(&run, args->rest[2]);
    return xpl_failed(XPL_ABORTED, strerror(o->error));
}

static bool read_source(void *ctx, uint64_t offset, void *ret, size_t n) {
    return xpl_source_read(ctx, offset, ret, n);
}

static int report_source(const struct xpl_args *args, const struct xpl_iree_report *report,
                         struct xpl_source *source, struct output *o) {
    const struct xpl_iree_mapping mapping = {xpl_source_release, read_source, source};
    const xpl_bytes_t file = xpl_source_bytes(source);
    const struct xpl_format_limits limits = {.max_bytes = MAX_ROWS};
    struct xpl_file_format is;
    const bool decodes =
        xpl_file_recognize(XPL_STR(""), file, NULL, &is, NULL) == XPL_OK && is.decoder;
    struct xpl_profile made = {0}; // of rows, or of a compressed file
    struct xpl_error err = {0};
    struct xpl_iree_bundle bundle;
    xpl_status_t st = decodes ? xpl_profile_open(XPL_STR(""), file, &limits, &made, &err) : XPL_OK;
    if (st == XPL_OK)
        st = xpl_iree_open_mapped(decodes ? made.bytes : file, args->unfinished,
                                  decodes ? NULL : &mapping, &bundle, &err);
    int status = XPL_EXIT_FAILED; // also of INVALID_ARGUMENT: the file is wrong, not the usage
    if (st != XPL_OK)
        xpl_say("%s: %s", args->rest[2], err.msg);
    else
        status = wants_trace(args, report) ? write_trace(args, &bundle, o)
                                           : run_report(args, report, &bundle, o);
    xpl_profile_close(&made);
    return status;
}

static int report_file(const struct xpl_args *args, const struct xpl_iree_report *report,
                       struct output *o) {
    struct xpl_error err = {0};
    struct xpl_source *source;
    const xpl_status_t st = xpl_source_open(AT_FDCWD, args->rest[2], 0, &source, &err);
    if (st != XPL_OK) return xpl_failed(st, err.msg);
    const int status = report_source(args, report, source, o);
    xpl_source_free(source);
    return status;
}

static xpl_status_t no_host(const struct xpl_session *s, const char *name, struct xpl_error *err) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < s->n_hosts; i++)
        xpl_near_add(&near, s->hosts[i].name);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "session %.*s has no host \"%.80s\"%s",
                     XPL_STR_FMT(s->name), name, xpl_near_text(&near, hint));
}

// The host that --host names, else the only one.
static xpl_status_t choose_host(const struct xpl_args *args, const struct xpl_session *s,
                                const struct xpl_host **ret, struct xpl_error *err) {
    const bool named = args->n_hosts == 1;
    *ret = named             ? xpl_session_find_host(s, xpl_str_from(args->hosts[0]))
           : s->n_hosts == 1 ? s->hosts
                             : NULL;
    if (*ret) return XPL_OK;
    if (named) return no_host(s, args->hosts[0], err);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "session %.*s has %zu hosts: name one with --host",
                     XPL_STR_FMT(s->name), s->n_hosts);
}

// A session of --logdir.
static int report_logdir(const struct xpl_args *args, const struct xpl_iree_report *report,
                         struct output *o) {
    struct xpl_error err = {0};
    struct xpl_logdir l;
    struct xpl_source *source = NULL;
    const struct xpl_host *host;
    xpl_status_t st = xpl_logdir_open(args->logdir, args->rest[2], &l, &err);
    if (st != XPL_OK) return xpl_failed(st, err.msg);
    st = choose_host(args, l.session, &host, &err);
    if (st == XPL_OK) st = xpl_snapshot_open(l.snapshot, host, 0, &source, &err);
    const int status =
        st == XPL_OK ? report_source(args, report, source, o) : xpl_failed(st, err.msg);
    xpl_source_free(source);
    xpl_logdir_close(&l);
    return status;
}

// A session's name: the daemon's tool gives the same rows.
static int report_session(const struct xpl_args *args, const struct xpl_iree_report *report) {
    char tool[32];
    const bool is_export = strcmp(report->name, "export") == 0;
    const char *options[2 * MAX_OPTIONS], *const rest[] = {"tool", tool, args->rest[2]};
    size_t n = 0;
    const struct {
        const char *key, *value;
    } given[] = {{"format", args->format || is_export ? args->format : "text"},
                 {"raw", wants_trace(args, report) ? "true" : NULL},
                 {"unfinished", args->unfinished ? "true" : NULL},
                 {"filter", args->filter},
                 {"id", args->id},
                 {"dispatch_events", args->dispatch_events ? "true" : NULL},
                 {"counter_samples", args->counter_samples ? "true" : NULL}};
    static_assert(sizeof given / sizeof *given == MAX_OPTIONS, "each may be given");
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
    struct xpl_run_answer answer;
    int status = xpl_run_answer(&a, tool, args->rest[2], &answer);
    if (xpl_is_answered(status) && !xpl_write_answer(&a, tool, answer.p, answer.n))
        status = XPL_EXIT_FAILED;
    if (xpl_is_answered(status) && !answer.n) say_no_rows(args, report->name);
    xpl_run_answer_fini(&answer);
    return status;
}

static int unknown_report(const char *name) {
    size_t n;
    const struct xpl_iree_report *const reports = xpl_iree_reports(&n);
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < n; i++)
        xpl_near_add(&near, xpl_str_from(reports[i].name));
    xpl_near_add(&near, XPL_STR("capture"));
    (void)fprintf(stderr, "xplanectl: unknown report \"%s\"%s\n", name, xpl_near_text(&near, hint));
    list_reports(stderr);
    return XPL_EXIT_USAGE;
}

// --rocm_library_path, which is an option of att only.
static int no_decoder(const char *report) {
    if (strcmp(report, "att") == 0)
        return xpl_failed(
            XPL_UNIMPLEMENTED,
            "executable traces are not decoded: that needs AMD's rocprof-trace-decoder "
            "and comgr; `iree att FILE --id N -o OUT` gives the bytes of one");
    (void)fprintf(stderr, "xplanectl: command '%s' does not support --rocm_library_path\n", report);
    return XPL_EXIT_USAGE;
}

const char *xpl_bundle_report_name(size_t i, const char **ret_help) {
    size_t n;
    const struct xpl_iree_report *const reports = xpl_iree_reports(&n);
    if (i >= n) return NULL;
    *ret_help = reports[i].help;
    return reports[i].name;
}

int xpl_bundle_command(const struct xpl_args *args) {
    const char *const name = args->n_rest > 1 ? args->rest[1] : "";
    if (strcmp(name, "capture") == 0) return xpl_iree_capture_program(args);
    const struct xpl_iree_report *const report = xpl_iree_report_find(xpl_str_from(name));
    if (!report && args->n_rest > 1) return unknown_report(name);
    if (args->n_rest != 3) {
        (void)fprintf(stderr, "Usage: xplanectl iree REPORT RUN\n"
                              "       xplanectl iree capture [options] -- PROGRAM ARGUMENT...\n");
        list_reports(stderr);
        return XPL_EXIT_USAGE;
    }
    if (args->rocm_library_path) return no_decoder(name);
    if (!args->logdir && xpl_run_place(args, args->rest[2]) == XPL_RUN_SESSION)
        return report_session(args, report);
    struct output o = {0};
    if (!xpl_output_open(&o.out, args->out)) return XPL_EXIT_FAILED;
    const int status =
        args->logdir ? report_logdir(args, report, &o) : report_file(args, report, &o);
    if (status == XPL_EXIT_OK || status == XPL_EXIT_PARTLY)
        return xpl_output_commit(&o.out) ? status : XPL_EXIT_FAILED;
    xpl_output_abort(&o.out);
    return status;
}
