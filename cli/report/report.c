// SPDX-License-Identifier: Apache-2.0
// `xplanectl report`: verdict, findings, breakdown, tables and trace windows of a run in one file.
#include <stdio.h>

#include "cli/document/document.h"
#include "cli/report/parts.h"
#include "cli/runs/answer.h"
#include "cli/runs/runs.h"
#include "cli/summary_json.h"

enum { MOST_BYTES = 2000000, RESOLUTION = 300 };

// The events of a finding's window and a little around it; NULL: it has none.
static json_t *window_of(const struct xpl_args *args, const char *run, const json_t *finding) {
    const json_t *const w = json_object_get(finding, "window");
    const char *host = xpl_document_chars(w, "host");
    const double begin = xpl_document_real(w, "begin_ps"), ps = xpl_document_real(w, "duration_ps");
    char from[32], to[32], resolution[16];
    const char *options[] = {"start_time_ms", from, "end_time_ms", to, "resolution", resolution};
    struct xpl_args a = *args;
    struct xpl_run_answer answer;
    if (!json_is_object(w)) return NULL;
    (void)snprintf(from, sizeof from, "%.6f", begin / 1e9);
    (void)snprintf(to, sizeof to, "%.6f", (begin + ps) / 1e9);
    (void)snprintf(resolution, sizeof resolution, "%d", RESOLUTION);
    a.hosts = &host;
    a.n_hosts = 1;
    a.options = options;
    a.n_options = sizeof options / sizeof *options / 2;
    const int status = xpl_run_answer(&a, "trace_viewer@", run, &answer);
    json_t *const trace = xpl_is_answered(status) ? xpl_document_read(answer.p, answer.n) : NULL;
    xpl_run_answer_fini(&answer);
    return trace;
}

static int write_page(const struct xpl_args *a, const struct xpl_report *r) {
    struct xpl_buf page = xpl_buf_of(MOST_BYTES);
    xpl_report_page(r, &page);
    if (page.failed) xpl_say("the report needs more than %d bytes, or memory", MOST_BYTES);
    const bool written = !page.failed && xpl_write_out(a, page.p, page.n);
    xpl_buf_fini(&page);
    return written ? XPL_EXIT_OK : XPL_EXIT_FAILED;
}

int xpl_report_run(const struct xpl_args *a) {
    struct xpl_report r = {.run = a->rest[1], .base = a->base};
    json_t *summary = NULL, *compared = NULL, *windows[XPL_REPORT_WINDOWS] = {NULL};
    json_auto_t *findings = xpl_summary_findings(a, r.run);
    int status = findings ? xpl_summary_document(a, &summary) : XPL_EXIT_FAILED;
    if (xpl_is_answered(status) && r.base)
        status = xpl_both_answered(status, xpl_runs_comparison(a, r.base, r.run, &compared));
    if (xpl_is_answered(status)) {
        const json_t *const list = json_object_get(findings, "findings");
        for (size_t i = 0; i < json_array_size(list) && i < XPL_REPORT_WINDOWS; i++)
            r.windows[i] = windows[i] = window_of(a, r.run, json_array_get(list, i));
        r.findings = findings, r.summary = summary, r.compared = compared;
        status = xpl_both_answered(status, write_page(a, &r));
    }
    for (size_t i = 0; i < XPL_REPORT_WINDOWS; i++)
        json_decref(windows[i]);
    json_decref(summary);
    json_decref(compared);
    return status;
}
