// SPDX-License-Identifier: Apache-2.0
// `xplanectl compare`: compares two runs, or groups of runs, with a daemon or without one.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/terminal.h"
#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/progress/progress.h"
#include "cli/remote.h"
#include "cli/runs/answer.h"
#include "cli/runs/compare.h"
#include "cli/runs/place.h"
#include "cli/runs/runs.h"
#include "cli/runs/verdict.h"
#include "cli/table.h"

// ---- runs ----

static bool out_of_memory(void) {
    (void)fputs("xplanectl: out of memory\n", stderr);
    return false;
}

bool xpl_run_names_parse(const char *text, struct xpl_run_names *ret) {
    const bool one = access(text, F_OK) == 0;
    size_t most = 1;
    for (const char *p = text; *p; p++)
        most += *p == ',';
    *ret = (struct xpl_run_names){.text = strdup(text), .runs = calloc(most, sizeof *ret->runs)};
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

void xpl_run_names_fini(struct xpl_run_names *o) {
    free(o->text);
    free((void *)(uintptr_t)o->runs);
}

static int add_runs(const struct xpl_args *a, const struct xpl_run_names *o,
                    struct xpl_arena *arena, struct xpl_run_group *g) {
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
static int compare_here(const struct xpl_args *args, const struct xpl_run_names o[2],
                        json_t **ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(SIZE_MAX / 2);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(SIZE_MAX / 2);
    struct xpl_run_group a = {0}, b = {0};
    struct xpl_error err = {0};
    int status = add_runs(args, &o[0], &arena, &a);
    if (xpl_is_answered(status))
        status = xpl_both_answered(status, add_runs(args, &o[1], &arena, &b));
    if (!xpl_is_answered(status)) return status;
    if (xpl_compare_json(&a, &b, NULL, &arena, &out, &err) != XPL_OK)
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

// The answer is partial if an imported file is damaged, not if a host of XSpaces is left out.
static int compared(xpl_client *c, const struct xpl_run_names o[2], const xpl_answer *answer) {
    bool partly = false;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < o[side].n && !partly; i++)
            partly = is_warned(answer, o[side].runs[i]) && xpl_run_is_imported(c, o[side].runs[i]);
    return partly ? XPL_EXIT_PARTLY : XPL_EXIT_OK;
}

static int compare_there(const struct xpl_args *args, const struct xpl_run_names o[2],
                         json_t **ret) {
    const xpl_comparison q = {sizeof q, o[0].runs, o[1].runs, o[0].n, o[1].n};
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(args);
    XPL_AUTO(xpl_remote_drop) xpl_answer *answer = NULL;
    xpl_result r;
    if (!c) return XPL_EXIT_FAILED;
    xpl_progress_begin(args);
    const bool answered = xpl_client_compare(c, &q, &answer, &r) == 0;
    xpl_progress_end();
    if (!answered) return xpl_remote_failed(&r);
    size_t n;
    const void *const p = xpl_answer_data(answer, &n);
    xpl_remote_warn(answer);
    *ret = xpl_document_read(p, n);
    return *ret ? compared(c, o, answer) : XPL_EXIT_FAILED;
}

// The daemon compares sessions; with --host and --option its tools are requested one by one.
static bool are_sessions(const struct xpl_args *a, const struct xpl_run_names *o) {
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
static void print_side(const json_t *side, const json_t *ps, FILE *out) {
    char text[32] = "not known";
    const double steps = xpl_document_real(side, "steps"), runs = xpl_document_real(side, "runs");
    if (json_is_number(ps))
        xpl_show_time_ps(text, (uint64_t)json_number_value(ps));
    else if (steps > 0)
        xpl_show_time_ps(text, (uint64_t)xpl_document_real(side, "mean_step_ps"));
    (void)fprintf(out, "%s (", text);
    if (runs > 1) (void)fprintf(out, "%.0f runs, ", runs);
    (void)fprintf(out, "%.0f step%s)", steps, steps == 1 ? "" : "s");
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

// Where the noise comes from, and the difference that could have been seen.
static void print_noise(const json_t *all, const json_t *d, FILE *out) {
    const char *const noise = xpl_document_chars(d, "noise");
    const json_t *const history = json_object_get(all, "history");
    char text[32];
    if (strcmp(noise, "steps") == 0) {
        (void)fprintf(out, "One run a side: the interval has only the noise within the runs, which "
                           "may differ by more. Compare groups: A1,A2,A3 B1,B2,B3\n");
        return;
    }
    if (!*noise) return;
    xpl_show_time_ps(text, (uint64_t)fmin(fabs(xpl_document_real(d, "detectable_ps")), 1e19));
    (void)fprintf(out, "Noise: between ");
    if (strcmp(noise, "history") == 0) {
        (void)fprintf(out, "%.0f sessions labelled ", xpl_document_real(history, "sessions"));
        xpl_terminal_text(xpl_document_text(history, "label"), SIZE_MAX, out);
    } else {
        (void)fprintf(out, "the runs");
    }
    (void)fprintf(out, "; a difference of %s", text);
    if (json_is_number(json_object_get(d, "detectable_percent")))
        (void)fprintf(out, " (%.1f%%)", xpl_document_real(d, "detectable_percent"));
    (void)fprintf(out, " would have been seen\n");
}

static void print_interval(const json_t *all, const json_t *d, FILE *out) {
    const json_t *const ends = json_object_get(d, "interval_ps");
    char low[33], high[33];
    if (json_is_array(ends)) {
        (void)fprintf(out, ", difference %s to %s (95%%)\n",
                      show_difference(low, json_number_value(json_array_get(ends, 0))),
                      show_difference(high, json_number_value(json_array_get(ends, 1))));
        print_noise(all, d, out);
    } else {
        (void)fprintf(out, ", too few steps for an interval (%d are needed)\n",
                      XPL_COMPARE_LEAST_STEPS);
    }
}

static void print_medians(const json_t *all, FILE *out) {
    const json_t *const d = json_object_get(all, "median_step_time");
    char a[32], b[32];
    if (!json_is_number(json_object_get(d, "difference_percent"))) return;
    xpl_show_time_ps(a, (uint64_t)xpl_document_real(d, "a_ps"));
    xpl_show_time_ps(b, (uint64_t)xpl_document_real(d, "b_ps"));
    (void)fprintf(out, "Median step  %s -> %s", a, b);
    print_change(d, out);
    (void)fprintf(out, "\n");
}

static void print_steps(const json_t *all, FILE *out) {
    const json_t *const d = json_object_get(all, "step_time");
    const json_t *const a = json_object_get(all, "a"), *const b = json_object_get(all, "b");
    const bool several = xpl_document_real(a, "devices") > 1 || xpl_document_real(b, "devices") > 1;
    (void)fprintf(out, "Step time%s  ", several ? ", slowest device" : "");
    print_side(a, json_object_get(d, "a_ps"), out);
    (void)fprintf(out, " -> ");
    print_side(b, json_object_get(d, "b_ps"), out);
    if (json_is_number(json_object_get(d, "difference_percent"))) print_change(d, out);
    print_interval(all, d, out);
    print_medians(all, out);
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
    if (!n) { // of files whose tools read them no causes are known
        xpl_table_free(t);
        return true;
    }
    (void)fprintf(out, "\n");
    return xpl_table_finish(t, out);
}

// The first rows of a table, and the sum of the others.
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

// With the name that A has for it.
static void put_name(struct xpl_table *t, const json_t *o, const char *key) {
    const xpl_str_t name = xpl_document_text(o, key), was = xpl_document_text(o, "a_name");
    char text[512];
    if (!was.len) {
        xpl_table_text(t, name, NAME_WIDTH);
        return;
    }
    (void)snprintf(text, sizeof text, "%.*s, was %.*s", XPL_STR_FMT(name), XPL_STR_FMT(was));
    xpl_table_text(t, xpl_str_from(text), NAME_WIDTH);
}

static void put_op_name(struct xpl_table *t, const json_t *o) {
    put_name(t, o, "op");
    xpl_table_text(t, xpl_document_text(o, "category"), 20);
    xpl_table_text(t, xpl_document_text(o, "shape"), 20);
}

static void put_kernel_name(struct xpl_table *t, const json_t *o) {
    put_name(t, o, "kernel");
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

int xpl_runs_make_comparison(const struct xpl_args *args, const struct xpl_run_names o[2],
                             json_t **ret) {
    const bool there = are_sessions(args, &o[0]) && are_sessions(args, &o[1]);
    *ret = NULL;
    return there ? compare_there(args, o, ret) : compare_here(args, o, ret);
}

int xpl_runs_comparison(const struct xpl_args *args, const char *a, const char *b, json_t **ret) {
    struct xpl_run_names o[2] = {{0}, {0}};
    int status = XPL_EXIT_USAGE;
    *ret = NULL;
    if (xpl_run_names_parse(a, &o[0]) && xpl_run_names_parse(b, &o[1]))
        status = xpl_runs_make_comparison(args, o, ret);
    xpl_run_names_fini(&o[0]);
    xpl_run_names_fini(&o[1]);
    return status;
}

static int judge(const json_t *all, const struct xpl_threshold *t, bool allow_single) {
    char text[XPL_VERDICT_TEXT];
    if (!t->sign) return XPL_EXIT_OK;
    const int status = xpl_threshold_judge(all, t, allow_single, text);
    if (status != XPL_EXIT_OK) (void)fprintf(stderr, "xplanectl: %s\n", text);
    return status;
}

int xpl_runs_compare(const struct xpl_args *args) {
    struct xpl_threshold t[2];
    json_auto_t *all = NULL;
    int status = xpl_threshold_parse("fail-if", args->fail_if, &t[0]);
    if (status == XPL_EXIT_OK)
        status = xpl_threshold_parse("fail-if-possible", args->fail_if_possible, &t[1]);
    if (status != XPL_EXIT_OK) return status;
    t[1].possible = true;
    status = xpl_runs_comparison(args, args->rest[1], args->rest[2], &all);
    if (xpl_is_answered(status)) status = xpl_both_answered(status, show(args, all));
    const bool is_answered = xpl_is_answered(status);
    for (size_t i = 0; i < 2 && is_answered; i++)
        status = xpl_worse_verdict(status, judge(all, &t[i], args->allow_single));
    return status;
}
