// SPDX-License-Identifier: Apache-2.0
// `xplanectl aggregate`: statistics over the repeats of a run.
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/runs/runs.h"
#include "cli/table.h"

// ---- text ----

static void print_time(FILE *out, const json_t *o, const char *key, const char *what) {
    char text[32] = "not known";
    const double ps = xpl_document_real(o, key);
    if (json_is_number(json_object_get(o, key)))
        xpl_show_time_ps(text, ps > 0 && ps < 1e19 ? (uint64_t)ps : 0);
    (void)fprintf(out, "  %-28s %s\n", what, text);
}

// "2 steps, 1 run": what samples are of, in the number that there are of them.
static void print_samples(const json_t *all, const json_t *r, FILE *out) {
    const double samples = xpl_document_real(r, "samples"), runs = xpl_document_real(all, "runs");
    const char *const of = xpl_document_chars(r, "of"); // of one: "steps" or "runs"
    const int n = (int)strlen(of) - (samples == 1);
    (void)fprintf(out, "Runtime of %.0f %.*s, %.0f run%s\n", samples, n > 0 ? n : 0, of, runs,
                  runs == 1 ? "" : "s");
}

static void print_runtime(const json_t *all, FILE *out) {
    const json_t *const r = json_object_get(all, "runtime"), *const c =
                                                                 json_object_get(all, "compile");
    if (xpl_document_real(r, "samples") > 0) {
        print_samples(all, r, out);
        print_time(out, r, "mean_ps", "mean");
        print_time(out, r, "min_ps", "minimum");
        print_time(out, r, "max_ps", "maximum");
        print_time(out, r, "std_ps", "standard deviation");
    } else { // no device did anything; bundles without iterations have no window
        const double runs = xpl_document_real(all, "runs");
        (void)fprintf(out, "Runtime of %.0f run%s: none, no step and no device's time is known\n",
                      runs, runs == 1 ? "" : "s");
    }
    print_time(out, c, "total_ps", "compile time");
}

static void print_known(FILE *out, const json_t *o, const char *key, const char *what,
                        const char *unit) {
    static const char prefixes[] = " KMGTPE";
    double v = xpl_document_real(o, key);
    size_t i = 0;
    if (!json_is_number(json_object_get(o, key))) {
        (void)fprintf(out, "  %-28s not known\n", what);
        return;
    }
    for (; v >= 1000 && prefixes[i + 1]; i++)
        v /= 1000;
    (void)fprintf(out, "  %-28s %.3f %.*s%s\n", what, v, i > 0, prefixes + i, unit);
}

static void print_percent(FILE *out, const json_t *o, const char *key, const char *what) {
    if (json_is_number(json_object_get(o, key)))
        (void)fprintf(out, "  %-28s %.3g%%\n", what, xpl_document_real(o, key));
    else
        (void)fprintf(out, "  %-28s not known\n", what);
}

static void print_flops(const json_t *all, FILE *out) {
    const json_t *const f = json_object_get(all, "flops");
    (void)fprintf(out, "\nFLOPs\n");
    print_known(out, f, "model_flops", "of a step (run), all devices", "FLOP");
    print_known(out, f, "bf16_flops", "the same as bf16", "FLOP");
    print_time(out, f, "busy_ps", "time of its ops");
    print_known(out, f, "model_flops_per_second", "rate of a device", "FLOP/s");
    print_known(out, f, "bf16_flops_per_second", "rate as bf16", "FLOP/s");
    print_known(out, f, "peak_flops_per_second", "peak of a device", "FLOP/s");
    print_percent(out, f, "utilization_percent", "utilization, at most 100%");
    print_percent(out, f, "uncapped_utilization_percent", "utilization");
}

static bool print_memory(const json_t *all, FILE *out) {
    static const char *const columns[] = {"ALLOCATOR", ">PEAK", ">CAPACITY"};
    const json_t *const list = json_object_get(all, "memory");
    if (!json_array_size(list)) return true;
    struct xpl_table *const t = xpl_table_new(columns, 3);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const m = json_array_get(list, i);
        xpl_table_text(t, xpl_document_text(m, "allocator"), 60);
        xpl_table_bytes(t, (uint64_t)xpl_document_real(m, "peak_bytes"));
        xpl_table_bytes(t, (uint64_t)xpl_document_real(m, "capacity_bytes"));
    }
    (void)fprintf(out, "\n");
    return xpl_table_finish(t, out);
}

static bool print_all(const void *all, FILE *out) {
    print_runtime(all, out);
    print_flops(all, out);
    return print_memory(all, out);
}

static int print(const struct xpl_args *args, const struct xpl_buf *answer) {
    json_auto_t *all = xpl_document_read(answer->p, answer->n);
    return all ? xpl_write_text(args, print_all, all) : XPL_EXIT_FAILED;
}

static int show(const struct xpl_args *args, const struct xpl_buf *answer) {
    if (args->csv) return xpl_csv_show_text(args, answer->p, answer->n, NULL);
    if (!args->json) return print(args, answer);
    return xpl_write_line(args, answer->p, answer->n) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
}

// ---- the command ----

static int aggregate(const struct xpl_args *args, struct xpl_arena *arena, struct xpl_buf *out) {
    const size_t n = args->n_rest - 1;
    struct xpl_error err = {0};
    const struct xpl_run_summary **const runs = xpl_arena_array(arena, n, sizeof(void *));
    if (!runs) {
        (void)fputs("xplanectl: out of memory\n", stderr);
        return XPL_EXIT_FAILED;
    }
    int status = XPL_EXIT_OK;
    for (size_t i = 0; i < n; i++) {
        status =
            xpl_both_answered(status, xpl_runs_summarize(args, args->rest[1 + i], arena, &runs[i]));
        if (!xpl_is_answered(status)) return status;
    }
    if (xpl_aggregate_json(runs, n, arena, out, &err) == XPL_OK) return status;
    xpl_say("%s", err.msg);
    return XPL_EXIT_FAILED;
}

int xpl_runs_aggregate(const struct xpl_args *args) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(SIZE_MAX / 2);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(SIZE_MAX / 2);
    const int status = aggregate(args, &arena, &out);
    return xpl_is_answered(status) ? xpl_both_answered(status, show(args, &out)) : status;
}
