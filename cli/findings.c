// SPDX-License-Identifier: Apache-2.0
// `xplanectl findings`: what makes a run slow.  The tool of that name answers, through a daemon or
// without one; here its JSON becomes text.
#include <stdio.h>

#include "base/text/terminal.h"
#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/runs/answer.h"
#include "cli/runs/runs.h"
#include "cli/summary_json.h"
#include "cli/table.h"

enum { NAME_WIDTH = 40, TEXT_WIDTH = 400, VERDICT_WIDTH = 640 };

// ---- text ----

static uint64_t ps_of(const json_t *o, const char *key) {
    const json_int_t v = json_integer_value(json_object_get(o, key));
    return v > 0 ? (uint64_t)v : 0;
}

static void print_ops(const json_t *f, FILE *out) {
    const json_t *const ops = json_object_get(f, "ops");
    for (size_t i = 0; i < json_array_size(ops); i++) {
        char time[32];
        const json_t *const op = json_array_get(ops, i);
        xpl_show_time_ps(time, ps_of(op, "time_ps"));
        (void)fprintf(out, "%s", i ? ", " : "     where: ");
        xpl_terminal_text(xpl_document_text(op, "name"), NAME_WIDTH, out);
        (void)fprintf(out, " %s", time);
    }
    if (json_array_size(ops)) (void)fprintf(out, "\n");
}

static void print_steps(const json_t *f, FILE *out) {
    const json_t *const steps = json_object_get(f, "steps");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        char time[32];
        const json_t *const s = json_array_get(steps, i);
        xpl_show_time_ps(time, ps_of(s, "time_ps"));
        const xpl_str_t name = xpl_document_text(s, "name");
        (void)fputs(i ? ", " : "     steps: ", out);
        if (name.len)
            xpl_terminal_text(name, NAME_WIDTH, out);
        else
            (void)fprintf(out, "%lld", (long long)json_integer_value(json_object_get(s, "step")));
        (void)fprintf(out, " (%s)", time);
    }
    if (json_array_size(steps)) (void)fprintf(out, "\n");
}

static void print_window(const json_t *f, FILE *out) {
    const json_t *const w = json_object_get(f, "window");
    char begin[32], time[32];
    if (!json_is_object(w)) return;
    xpl_show_time_ps(begin, ps_of(w, "begin_ps"));
    xpl_show_time_ps(time, ps_of(w, "duration_ps"));
    (void)fprintf(out, "     see: %s of the trace of ", time);
    xpl_terminal_text(xpl_document_text(w, "host"), NAME_WIDTH, out);
    (void)fprintf(out, ", from %s on\n", begin);
}

// The saving of some kinds is unknown.
static void print_saving(const json_t *f, FILE *out) {
    const double saving = json_number_value(json_object_get(f, "saving_percent"));
    if (saving > 0)
        (void)fprintf(out, " (could save %.1f%%): ", saving);
    else if (xpl_document_text(f, "within").len)
        (void)fprintf(out, " (part of another finding): ");
    else
        (void)fprintf(out, ": ");
}

void xpl_summary_print_findings(const json_t *all, FILE *out) {
    const json_t *const list = json_object_get(all, "findings");
    (void)fprintf(out, "\nFindings\n  ");
    xpl_terminal_text(xpl_document_text(json_object_get(all, "verdict"), "text"), VERDICT_WIDTH,
                      out);
    (void)fprintf(out, ".\n");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const f = json_array_get(list, i);
        (void)fprintf(out, "  %zu. ", i + 1);
        xpl_terminal_text(xpl_document_text(f, "title"), NAME_WIDTH, out);
        print_saving(f, out);
        xpl_terminal_text(xpl_document_text(f, "text"), TEXT_WIDTH, out);
        (void)fprintf(out, "\n");
        print_ops(f, out);
        print_steps(f, out);
        print_window(f, out);
        (void)fprintf(out, "     ");
        xpl_terminal_text(xpl_document_text(f, "advice"), TEXT_WIDTH, out);
        (void)fprintf(out, " ");
        xpl_terminal_text(xpl_document_text(f, "link"), TEXT_WIDTH, out);
        (void)fprintf(out, "\n");
    }
}

static bool print_all(const void *all, FILE *out) {
    xpl_summary_print_findings(all, out);
    return true;
}

static bool print_answer(const struct xpl_args *a, const void *p, size_t n) {
    json_auto_t *all = xpl_document_read(p, n);
    return all && xpl_write_text(a, print_all, all) == XPL_EXIT_OK;
}

// ---- where they come from ----

json_t *xpl_summary_findings(const struct xpl_args *a, const char *run) {
    struct xpl_run_answer answer;
    const int status = xpl_run_answer(a, "findings", run, &answer);
    json_t *const all = xpl_is_answered(status) ? xpl_document_read(answer.p, answer.n) : NULL;
    xpl_run_answer_fini(&answer);
    return all;
}

// Whether the answer itself reports the loss.
static bool is_truncated(const struct xpl_run_answer *answer) {
    json_auto_t *all = xpl_document_read(answer->p, answer->n);
    const json_t *const verdict = json_object_get(all, "verdict");
    return xpl_str_eq(xpl_document_text(verdict, "cannot_tell"), XPL_STR("truncated"));
}

int xpl_cmd_findings(const struct xpl_args *a) {
    struct xpl_run_answer answer;
    int status = xpl_run_answer(a, "findings", a->rest[1], &answer);
    if (xpl_is_answered(status)) {
        const bool shown = a->csv    ? xpl_csv_show_text(a, answer.p, answer.n, NULL) == XPL_EXIT_OK
                           : a->json ? xpl_write_line(a, answer.p, answer.n)
                                     : print_answer(a, answer.p, answer.n);
        if (status == XPL_EXIT_PARTLY && is_truncated(&answer)) status = XPL_EXIT_OK;
        if (!shown) status = XPL_EXIT_FAILED;
    }
    xpl_run_answer_fini(&answer);
    return status;
}
