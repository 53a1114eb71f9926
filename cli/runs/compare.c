// SPDX-License-Identifier: Apache-2.0
// `xplanectl compare`: two runs, or groups of runs, beside each other, by a daemon or without one.
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/breakdown/breakdown.h"
#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/near.h"
#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/progress/progress.h"
#include "cli/remote.h"
#include "cli/runs/answer.h"
#include "cli/runs/place.h"
#include "cli/runs/runs.h"
#include "cli/table.h"

// ---- thresholds: --fail-if 'step_time>5%' ----

struct threshold {
    char metric[64];
    char sign; // '<' or '>'; 0: none was given
    double percent;
};

static int bad_threshold(const char *text, size_t at, const char *what) {
    (void)fprintf(stderr, "xplanectl: --fail-if \"%s\", character %zu: %s, as in step_time>5%%\n",
                  text, at + 1, what);
    return XPL_EXIT_USAGE;
}

static bool is_metric(const char *text, size_t n) {
    const xpl_str_t metric = {text, n};
    if (xpl_str_eq(metric, XPL_STR("step_time"))) return true;
    for (size_t i = 0; i < XPL_TIME_CAUSES; i++)
        if (xpl_str_eq(metric, xpl_str_from(xpl_time_cause_names[i]))) return true;
    return false;
}

static int unknown_metric(const char *text, size_t n) {
    struct xpl_near near = xpl_near_begin((xpl_str_t){text, n});
    char hint[XPL_NEAR_TEXT];
    xpl_near_add(&near, XPL_STR("step_time"));
    for (size_t i = 0; i < XPL_TIME_CAUSES; i++)
        xpl_near_add(&near, xpl_str_from(xpl_time_cause_names[i]));
    (void)fprintf(stderr,
                  "xplanectl: --fail-if \"%.40s\", character 1: unknown metric \"%.*s\"%s\n", text,
                  (int)(n < 40 ? n : 40), text, xpl_near_text(&near, hint));
    if (near.best.len) return XPL_EXIT_USAGE;
    (void)fputs("Metrics: step_time", stderr);
    for (size_t i = 0; i < XPL_TIME_CAUSES; i++)
        (void)fprintf(stderr, ", %s", xpl_time_cause_names[i]);
    (void)fputc('\n', stderr);
    return XPL_EXIT_USAGE;
}

// Of the name at the text's begin, which may be no metric's.
static size_t name_length(const char *text) {
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_' || (text[n] & 0x80))
        n++;
    return n;
}

// Reads the number at text[at]; *ret_end is behind it, or at the character that is none.  Of what
// strtod reads neither "inf" and "nan" nor hexadecimal digits.
static bool read_number(const char *text, size_t at, double *ret, size_t *ret_end) {
    const size_t n = strspn(text + at, "+-.0123456789eE");
    size_t first = at + (text[at] == '-' || text[at] == '+');
    char *end;
    first += text[first] == '.';
    *ret_end = first;
    if (!isdigit((unsigned char)text[first])) return false;
    *ret = strtod(text + at, &end);
    *ret_end = end > text + at + n ? at + n : (size_t)(end - text);
    return true;
}

static int parse_threshold(const char *text, struct threshold *t) {
    size_t end;
    *t = (struct threshold){0};
    if (!text) return XPL_EXIT_OK;
    const size_t n = name_length(text);
    if (!n) return bad_threshold(text, 0, "a metric is missing");
    if (!is_metric(text, n)) return unknown_metric(text, n);
    if (text[n] != '<' && text[n] != '>') return bad_threshold(text, n, "> or < is missing");
    memcpy(t->metric, text, n);
    t->sign = text[n];
    if (!read_number(text, n + 1, &t->percent, &end))
        return bad_threshold(text, end, "a number is missing");
    if (!isfinite(t->percent)) return bad_threshold(text, n + 1, "the number is too large");
    if (text[end] != '%') return bad_threshold(text, end, "% is missing");
    if (text[end + 1]) return bad_threshold(text, end + 1, "unexpected text after %");
    return XPL_EXIT_OK;
}

// The metric's member of the comparison; NULL: such runs, bundles of IREE, have no such cause.
static const json_t *find_metric(const json_t *all, const char *metric) {
    size_t i;
    json_t *t;
    if (strcmp(metric, "step_time") == 0) return json_object_get(all, "step_time");
    json_array_foreach(json_object_get(all, "times"), i,
                       t) if (strcmp(json_string_value(json_object_get(t, "cause")), metric) ==
                              0) return t;
    return NULL;
}

static int judge(const json_t *all, const struct threshold *t) {
    if (!t->sign) return XPL_EXIT_OK;
    const json_t *const m = find_metric(all, t->metric);
    if (!m) {
        (void)fprintf(stderr, "xplanectl: --fail-if: of these runs no %s is known\n", t->metric);
        return XPL_EXIT_FAILED;
    }
    const json_t *const percent = json_object_get(m, "difference_percent");
    double v = json_number_value(percent);
    if (json_is_null(percent)) { // of nothing everything is infinitely much more
        const bool more = json_number_value(json_object_get(m, "difference_ps")) > 0;
        if (strcmp(t->metric, "step_time") == 0) {
            (void)fputs("xplanectl: --fail-if: a run has no steps, and therefore no step_time\n",
                        stderr);
            return XPL_EXIT_FAILED;
        }
        v = more ? (double)INFINITY : 0;
    }
    const bool met = t->sign == '>' ? v > t->percent : v < t->percent;
    if (met)
        (void)fprintf(stderr, "xplanectl: %s differs by %+.2f%%: %s%c%g%% is met\n", t->metric, v,
                      t->metric, t->sign, t->percent);
    return met ? XPL_EXIT_THRESHOLD : XPL_EXIT_OK;
}

// ---- runs ----

static bool out_of_memory(void) {
    (void)fputs("xplanectl: out of memory\n", stderr);
    return false;
}

// An operand: "A1,A2" is several runs, unless there is such a path.
struct operand {
    char *text; // of malloc
    const char **runs;
    size_t n;
};

static bool parse_operand(const char *text, struct operand *ret) {
    const bool one = access(text, F_OK) == 0;
    size_t most = 1;
    for (const char *p = text; *p; p++)
        most += *p == ',';
    *ret = (struct operand){.text = strdup(text), .runs = calloc(most, sizeof *ret->runs)};
    if (!ret->text || !ret->runs) return out_of_memory();
    for (char *rest = ret->text, *run; rest;) {
        run = one ? rest : strsep(&rest, ",");
        if (one) rest = NULL;
        if (!*run) {
            (void)fprintf(stderr, "xplanectl: \"%s\", character %td: a run is missing\n", text,
                          run - ret->text + 1);
            return false;
        }
        ret->runs[ret->n++] = run;
    }
    return true;
}

static void operand_fini(struct operand *o) {
    free(o->text);
    free((void *)(uintptr_t)o->runs);
}

static int add_runs(const struct xpl_args *a, const struct operand *o, struct xpl_arena *arena,
                    struct xpl_run_group *g) {
    int status = XPL_EXIT_OK;
    for (size_t i = 0; i < o->n; i++) {
        const struct xpl_run_summary *s = NULL;
        status = xpl_both_answered(status, xpl_runs_summarize(a, o->runs[i], arena, &s));
        if (!xpl_is_answered(status)) return status;
        if (!xpl_run_group_add(g, s, arena)) return (void)out_of_memory(), XPL_EXIT_FAILED;
    }
    return status;
}

// ---- the comparison ----

// Made here: of files, and of what the daemon says of each session.
static int compare_here(const struct xpl_args *args, const struct operand o[2], json_t **ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    struct xpl_run_group a = {0}, b = {0};
    struct xpl_error err = {0};
    xpl_arena_init(&arena, SIZE_MAX / 2);
    xpl_buf_init(&out, SIZE_MAX / 2);
    int status = add_runs(args, &o[0], &arena, &a);
    if (xpl_is_answered(status))
        status = xpl_both_answered(status, add_runs(args, &o[1], &arena, &b));
    if (!xpl_is_answered(status)) return status;
    if (xpl_compare_json(&a, &b, &arena, &out, &err) != XPL_OK)
        return xpl_failed(err.code, err.msg);
    *ret = xpl_document_read(out.p, out.n);
    return *ret ? status : XPL_EXIT_FAILED;
}

// Whether a warning is about that run: the daemon begins each with the session.
static bool is_warned(const xpl_answer *answer, const char *run) {
    const size_t n = strlen(run);
    const char *text;
    for (size_t i = 0; (text = xpl_answer_warning(answer, i)); i++)
        if (strncmp(text, run, n) == 0 && text[n] == ':') return true;
    return false;
}

// Of bundles that are not whole the answer is one in part; a host of XSpaces may be left out.
static int compared(xpl_client *c, const struct operand o[2], const xpl_answer *answer) {
    bool partly = false;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < o[side].n && !partly; i++)
            partly = is_warned(answer, o[side].runs[i]) && xpl_run_has_bundles(c, o[side].runs[i]);
    return partly ? XPL_EXIT_PARTLY : XPL_EXIT_OK;
}

static int compare_there(const struct xpl_args *args, const struct operand o[2], json_t **ret) {
    const xpl_comparison q = {sizeof q, o[0].runs, o[1].runs, o[0].n, o[1].n};
    xpl_client *const c = xpl_remote_open(args);
    xpl_answer *answer = NULL;
    int status = XPL_EXIT_FAILED;
    xpl_result r;
    if (!c) return status;
    xpl_progress_begin(args);
    const bool answered = xpl_client_compare(c, &q, &answer, &r) == 0;
    xpl_progress_end();
    if (answered) {
        size_t n;
        const void *const p = xpl_answer_data(answer, &n);
        xpl_remote_warn(answer);
        *ret = xpl_document_read(p, n);
        if (*ret) status = compared(c, o, answer);
    } else {
        status = xpl_remote_failed(&r);
    }
    xpl_answer_free(answer);
    xpl_client_close(c);
    return status;
}

// The daemon compares sessions; with --host and --option its tools are asked one by one.
static bool are_sessions(const struct xpl_args *a, const struct operand *o) {
    for (size_t i = 0; i < o->n; i++)
        if (xpl_run_place(a, o->runs[i]) == XPL_RUN_PATH) return false;
    return !a->n_hosts && !a->n_options;
}

// ---- text ----

enum { TOP = 20, NAME_WIDTH = 50 };

static void put_time(struct xpl_table *t, double ps) {
    char text[32];
    xpl_show_time_ps(text, (uint64_t)fmin(fabs(ps), 1e19));
    xpl_table_printf(t, "%s", text);
}

static const char *show_difference(char text[33], double ps) {
    text[0] = ps < 0 ? '-' : '+';
    xpl_show_time_ps(text + 1, (uint64_t)fmin(fabs(ps), 1e19));
    return text;
}

static void put_difference(struct xpl_table *t, const json_t *o) {
    char text[33];
    xpl_table_printf(t, "%s", show_difference(text, xpl_document_real(o, "difference_ps")));
}

// A step takes as long as the device that takes longest (analysis/compare/).
static void print_side(const json_t *side, FILE *out) {
    char text[32] = "not known";
    const double n = xpl_document_real(side, "steps");
    if (n > 0) xpl_show_time_ps(text, (uint64_t)xpl_document_real(side, "mean_step_ps"));
    (void)fprintf(out, "%s (%.0f step%s)", text, n, n == 1 ? "" : "s");
}

static void print_change(const json_t *d, FILE *out) {
    char text[32];
    xpl_show_change(text, xpl_document_real(d, "difference_percent"), 2);
    (void)fprintf(out, ", %s", text);
}

static void put_change(struct xpl_table *t, const json_t *d) {
    char text[32];
    xpl_show_change(text, xpl_document_real(d, "difference_percent"), 1);
    xpl_table_printf(t, "%s", text);
}

static void print_steps(const json_t *all, FILE *out) {
    const json_t *const d = json_object_get(all, "step_time"), *const ends = json_object_get(
                                                                   d, "interval_ps");
    const json_t *const a = json_object_get(all, "a"), *const b = json_object_get(all, "b");
    const bool several = xpl_document_real(a, "devices") > 1 || xpl_document_real(b, "devices") > 1;
    (void)fprintf(out, "Step time%s  ", several ? ", slowest device" : "");
    print_side(a, out);
    (void)fprintf(out, " -> ");
    print_side(b, out);
    if (json_is_number(json_object_get(d, "difference_percent"))) print_change(d, out);
    char low[33], high[33];
    if (json_is_array(ends))
        (void)fprintf(out, ", difference %s to %s (95%%)\n",
                      show_difference(low, json_number_value(json_array_get(ends, 0))),
                      show_difference(high, json_number_value(json_array_get(ends, 1))));
    else
        (void)fprintf(out, ", too few steps for an interval (%d are needed)\n",
                      XPL_COMPARE_LEAST_STEPS);
}

static bool print_times(const json_t *all, FILE *out) {
    static const char *const columns[] = {"TIME PER STEP", ">A", ">B", ">DIFFERENCE"};
    struct xpl_table *const t = xpl_table_new(columns, 4);
    size_t i, n = 0;
    json_t *c;
    json_array_foreach(json_object_get(all, "times"), i, c) {
        if (!(xpl_document_real(c, "a_ps") > 0) && !(xpl_document_real(c, "b_ps") > 0)) continue;
        n++;
        xpl_table_text(t, xpl_document_text(c, "cause"), NAME_WIDTH);
        put_time(t, xpl_document_real(c, "a_ps"));
        put_time(t, xpl_document_real(c, "b_ps"));
        put_difference(t, c);
    }
    if (!n) { // of bundles of IREE no causes are known
        xpl_table_free(t);
        return true;
    }
    (void)fprintf(out, "\n");
    return xpl_table_finish(t, out);
}

// The first rows of a table, and what the others come to.
static bool print_rows(const json_t *rows, const char *const *columns, size_t n_columns,
                       void (*put_name)(struct xpl_table *t, const json_t *row), FILE *out) {
    if (!json_array_size(rows)) return true;
    struct xpl_table *const t = xpl_table_new(columns, n_columns);
    double others = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const o = json_array_get(rows, i);
        const xpl_str_t state = xpl_document_text(o, "state");
        if (i >= TOP) {
            others += xpl_document_real(o, "difference_ps");
            continue;
        }
        put_name(t, o);
        xpl_table_text(t, xpl_str_eq(state, XPL_STR("both")) ? XPL_STR("") : state, 10);
        put_time(t, xpl_document_real(o, "a_ps"));
        put_time(t, xpl_document_real(o, "b_ps"));
        put_difference(t, o);
    }
    (void)fprintf(out, "\n");
    if (!xpl_table_finish(t, out)) return false;
    if (json_array_size(rows) > TOP) {
        char text[33];
        (void)fprintf(out, "  and %zu others, together %s\n", json_array_size(rows) - TOP,
                      show_difference(text, others));
    }
    return true;
}

static void put_op_name(struct xpl_table *t, const json_t *o) {
    xpl_table_text(t, xpl_document_text(o, "op"), NAME_WIDTH);
    xpl_table_text(t, xpl_document_text(o, "category"), 20);
    xpl_table_text(t, xpl_document_text(o, "shape"), 20);
}

static void put_kernel_name(struct xpl_table *t, const json_t *o) {
    xpl_table_text(t, xpl_document_text(o, "kernel"), NAME_WIDTH);
    xpl_table_text(t, xpl_document_text(o, "op"), 40);
}

static bool print_ops(const json_t *all, FILE *out) {
    static const char *const columns[] = {"OP PER STEP", "CATEGORY", "SHAPE",      "",
                                          ">A",          ">B",       ">DIFFERENCE"};
    return print_rows(json_object_get(all, "ops"), columns, 7, put_op_name, out);
}

static bool print_kernels(const json_t *all, FILE *out) {
    static const char *const columns[] = {"KERNEL PER STEP", "OP", "", ">A", ">B", ">DIFFERENCE"};
    const json_t *const rows = json_object_get(all, "kernels");
    return print_rows(rows, columns, 6, put_kernel_name, out);
}

static bool print_memory(const json_t *all, FILE *out) {
    static const char *const columns[] = {"PEAK MEMORY", ">A", ">B", ">DIFFERENCE"};
    const json_t *const list = json_object_get(all, "memory");
    if (!json_array_size(list)) return true;
    struct xpl_table *const t = xpl_table_new(columns, 4);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const m = json_array_get(list, i);
        xpl_table_text(t, xpl_document_text(m, "allocator"), NAME_WIDTH);
        xpl_table_bytes(t, (uint64_t)xpl_document_real(m, "a_peak_bytes"));
        xpl_table_bytes(t, (uint64_t)xpl_document_real(m, "b_peak_bytes"));
        if (json_is_number(json_object_get(m, "difference_percent")))
            put_change(t, m);
        else
            xpl_table_text(t, xpl_document_text(m, "state"), 10);
    }
    (void)fprintf(out, "\n");
    return xpl_table_finish(t, out);
}

// ---- the command ----

static bool print_all(const void *all, FILE *out) {
    print_steps(all, out);
    return print_times(all, out) && print_ops(all, out) && print_kernels(all, out) &&
           print_memory(all, out);
}

static int show(const struct xpl_args *args, const json_t *all) {
    if (args->csv) return xpl_csv_show(args, all, NULL);
    if (args->json) return xpl_document_write(args, all);
    return xpl_write_text(args, print_all, all);
}

static int compare(const struct xpl_args *args, const struct threshold *t) {
    struct operand o[2] = {{0}, {0}};
    json_t *all = NULL;
    int status = XPL_EXIT_USAGE;
    if (parse_operand(args->rest[1], &o[0]) && parse_operand(args->rest[2], &o[1])) {
        const bool there = are_sessions(args, &o[0]) && are_sessions(args, &o[1]);
        status = there ? compare_there(args, o, &all) : compare_here(args, o, &all);
        if (xpl_is_answered(status)) status = xpl_both_answered(status, show(args, all));
    }
    if (xpl_is_answered(status)) status = xpl_both_answered(status, judge(all, t));
    json_decref(all);
    operand_fini(&o[0]);
    operand_fini(&o[1]);
    return status;
}

int xpl_runs_compare(const struct xpl_args *args) {
    struct threshold t;
    const int status = parse_threshold(args->fail_if, &t);
    return status == XPL_EXIT_OK ? compare(args, &t) : status;
}
