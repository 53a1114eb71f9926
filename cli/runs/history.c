// SPDX-License-Identifier: Apache-2.0
// `xplanectl history`: metrics over sessions, by a daemon or of a directory.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/compare/series.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/terminal.h"
#include "cli/csv/cells.h"
#include "cli/document/document.h"
#include "cli/remote.h"
#include "cli/runs/directory.h"
#include "cli/runs/runs.h"
#include "cli/table.h"

enum { LAST = 100, NAME_WIDTH = 50 };

static int out_of_memory(void) {
    (void)fputs("xplanectl: out of memory\n", stderr);
    return XPL_EXIT_FAILED;
}

static int64_t since_unix_ms(const struct xpl_args *a) {
    return a->since_ms ? (int64_t)time(NULL) * 1000 - a->since_ms : 0;
}

// ---- of a directory ----

static int summarize(const struct xpl_args *a, const struct xpl_run_below *list, size_t n,
                     struct xpl_arena *arena, struct xpl_buf *out) {
    struct xpl_series_run *const runs = xpl_arena_zalloc(arena, n * sizeof *runs);
    xpl_str_t *const metrics = xpl_arena_array(arena, a->n_metrics, sizeof *metrics);
    struct xpl_error err = {0};
    if (!runs || !metrics) return out_of_memory();
    for (size_t i = 0; i < n; i++) {
        runs[i] =
            (struct xpl_series_run){.session = list[i].name, .captured_ms = list[i].captured_ms};
        (void)xpl_runs_summarize(a, list[i].path, arena, &runs[i].run);
        if (!runs[i].run) runs[i].error = XPL_STR("cannot be read");
    }
    for (size_t i = 0; i < a->n_metrics; i++)
        metrics[i] = xpl_str_from(a->metrics[i]);
    const struct xpl_series_request q = {
        .runs = runs, .n_runs = n, .metrics = metrics, .n_metrics = a->n_metrics, .selected = true};
    if (xpl_series_json(&q, arena, out, &err) == XPL_OK) return XPL_EXIT_OK;
    return xpl_failed(err.code, err.msg);
}

static int of_directory(const struct xpl_args *a, struct xpl_buf *out) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(SIZE_MAX / 2);
    struct xpl_run_below *list;
    size_t n;
    const int status = xpl_runs_below("--dir ", a->dir, since_unix_ms(a),
                                      a->last ? (size_t)a->last : LAST, &arena, &list, &n);
    return status == XPL_EXIT_OK ? summarize(a, list, n, &arena, out) : status;
}

// ---- of a daemon ----

static int of_daemon(const struct xpl_args *a, struct xpl_buf *out) {
    const xpl_history_request q = {.size = sizeof q,
                                   .label = a->label,
                                   .directory = a->dir,
                                   .schedule_id = (uint64_t)a->schedule,
                                   .since_unix_ms = since_unix_ms(a),
                                   .last = (uint32_t)a->last,
                                   .metrics = a->metrics,
                                   .n_metrics = a->n_metrics};
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    XPL_AUTO(xpl_remote_drop) xpl_answer *answer = NULL;
    xpl_result r;
    size_t n;
    if (!c) return XPL_EXIT_FAILED;
    if (xpl_client_history(c, &q, &answer, &r) != 0) return xpl_remote_failed(&r);
    const void *const p = xpl_answer_data(answer, &n);
    xpl_remote_warn(answer);
    xpl_buf_str(out, (xpl_str_t){p, n});
    return XPL_EXIT_OK;
}

// ---- CSV ----

static void csv_field(const json_t *o, const char *key, FILE *out) {
    xpl_csv_value(out, json_object_get(o, key));
    (void)fputc(',', out);
}

// The change that begins with the point's session; NULL: its level is that of the one before.
static const json_t *change_at(const json_t *metric, const json_t *point) {
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(metric, "changes"), i, c) {
        if (strcmp(xpl_document_chars(c, "session"), xpl_document_chars(point, "session")) == 0)
            return c;
    }
    return NULL;
}

static const char *kind_of(const json_t *change) {
    return !change                                               ? ""
           : json_is_true(json_object_get(change, "regression")) ? "regression"
                                                                 : "change";
}

static bool print_csv(const void *all, FILE *out) {
    static const char *const keys[] = {"session", "captured_unix_ms", "value", "change_percent",
                                       "median_change_percent"};
    size_t i, k;
    json_t *m, *p;
    (void)fputs("metric,unit,session,captured_unix_ms,value,change_percent,median_change_percent,"
                "new_level",
                out);
    xpl_csv_end_line(out);
    json_array_foreach(json_object_get(all, "metrics"), i, m) {
        json_array_foreach(json_object_get(m, "points"), k, p) {
            csv_field(m, "metric", out);
            csv_field(m, "unit", out);
            for (size_t at = 0; at < sizeof keys / sizeof *keys; at++)
                csv_field(p, keys[at], out);
            xpl_csv_text(out, kind_of(change_at(m, p)), strlen(kind_of(change_at(m, p))));
            xpl_csv_end_line(out);
        }
    }
    return true;
}

// ---- text ----

static void show_value(char out[48], const char *unit, double v) {
    char text[32];
    if (strcmp(unit, "ps") == 0)
        xpl_show_time_ps(text, (uint64_t)fmin(fmax(v, 0), 1e19));
    else if (strcmp(unit, "bytes") == 0)
        xpl_show_bytes(text, (uint64_t)fmin(fmax(v, 0), 1e19));
    else if (strcmp(unit, "percent") == 0)
        (void)snprintf(text, sizeof text, "%.2f%%", v);
    else if (strcmp(unit, "flops_per_second") == 0)
        (void)snprintf(text, sizeof text, "%.3g GFLOP/s", v / 1e9);
    else
        (void)snprintf(text, sizeof text, "%.6g", v);
    (void)snprintf(out, 48, "%s", text);
}

static void put_percent(struct xpl_table *t, const json_t *o, const char *key) {
    char text[32];
    xpl_show_change(text, xpl_document_real(o, key), 2);
    if (json_is_number(json_object_get(o, key)))
        xpl_table_printf(t, "%s", text);
    else
        xpl_table_unknown(t);
}

static bool print_points(const json_t *m, FILE *out) {
    static const char *const columns[] = {"SESSION", "CAPTURED",   ">VALUE",
                                          ">CHANGE", ">TO MEDIAN", "NEW LEVEL"};
    struct xpl_table *const t = xpl_table_new(columns, 6);
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(m, "points"), i, p) {
        char value[48];
        show_value(value, xpl_document_chars(m, "unit"), xpl_document_real(p, "value"));
        xpl_table_text(t, xpl_document_text(p, "session"), NAME_WIDTH);
        xpl_table_when(t, (int64_t)xpl_document_real(p, "captured_unix_ms"));
        xpl_table_printf(t, "%s", value);
        put_percent(t, p, "change_percent");
        put_percent(t, p, "median_change_percent");
        xpl_table_printf(t, "%s", kind_of(change_at(m, p)));
    }
    return xpl_table_finish(t, out);
}

static bool print_without(const json_t *m, FILE *out) {
    static const char *const columns[] = {"WITHOUT A VALUE", "REASON"};
    const json_t *const list = json_object_get(m, "without");
    size_t i;
    json_t *s;
    if (!json_array_size(list)) return true;
    struct xpl_table *const t = xpl_table_new(columns, 2);
    json_array_foreach(list, i, s) {
        xpl_table_text(t, xpl_document_text(s, "session"), NAME_WIDTH);
        xpl_table_text(t, xpl_document_text(s, "reason"), 80);
    }
    (void)fputc('\n', out);
    return xpl_table_finish(t, out);
}

static void put_times(struct xpl_table *t, const json_t *row) {
    static const char *const times[] = {"a_ps", "b_ps", "difference_ps"};
    for (size_t k = 0; k < 3; k++) {
        char text[48];
        const double v = xpl_document_real(row, times[k]);
        show_value(text, "ps", fabs(v));
        xpl_table_printf(t, "%s%s", k < 2 ? "" : v < 0 ? "-" : "+", text);
    }
}

static bool print_causes(const json_t *change, FILE *out) {
    static const char *const columns[] = {"TIME PER STEP", ">BEFORE", ">AFTER", ">DIFFERENCE"};
    const json_t *const list = json_object_get(change, "times");
    size_t i;
    json_t *c;
    if (!json_array_size(list)) return true;
    struct xpl_table *const t = xpl_table_new(columns, 4);
    json_array_foreach(list, i, c) {
        xpl_table_text(t, xpl_document_text(c, "cause"), NAME_WIDTH);
        put_times(t, c);
    }
    return xpl_table_finish(t, out);
}

static bool print_ops(const json_t *change, FILE *out) {
    static const char *const columns[] = {"OP PER STEP", "CATEGORY", "SHAPE",
                                          ">BEFORE",     ">AFTER",   ">DIFFERENCE"};
    if (!json_array_size(json_object_get(change, "ops"))) return true;
    struct xpl_table *const t = xpl_table_new(columns, 6);
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(change, "ops"), i, o) {
        xpl_table_text(t, xpl_document_text(o, "op"), NAME_WIDTH);
        xpl_table_text(t, xpl_document_text(o, "category"), 20);
        xpl_table_text(t, xpl_document_text(o, "shape"), 20);
        put_times(t, o);
    }
    return xpl_table_finish(t, out);
}

static bool print_change(const json_t *m, const json_t *c, FILE *out) {
    char before[48], after[48], change[32];
    show_value(before, xpl_document_chars(m, "unit"), xpl_document_real(c, "before"));
    show_value(after, xpl_document_chars(m, "unit"), xpl_document_real(c, "after"));
    (void)fprintf(out, "\n%s of %s: %s -> %s",
                  json_is_true(json_object_get(c, "regression")) ? "Regression" : "Change",
                  xpl_document_chars(m, "metric"), before, after);
    xpl_show_change(change, xpl_document_real(c, "difference_percent"), 2);
    if (json_is_number(json_object_get(c, "difference_percent")))
        (void)fprintf(out, " (%s)", change);
    (void)fputs(" since ", out);
    xpl_terminal_text(xpl_document_text(c, "session"), SIZE_MAX, out);
    (void)fprintf(out, ", means of %.0f and %.0f sessions\n",
                  xpl_document_real(c, "sessions_before"), xpl_document_real(c, "sessions_after"));
    return print_causes(c, out) && print_ops(c, out);
}

static bool print_text(const void *all, FILE *out) {
    size_t i, k;
    json_t *m, *c;
    bool ok = true;
    json_array_foreach(json_object_get(all, "metrics"), i, m) {
        (void)fprintf(out, "%s%s\n", i ? "\n" : "", xpl_document_chars(m, "metric"));
        ok = print_points(m, out) && print_without(m, out) && ok;
        json_array_foreach(json_object_get(m, "changes"), k, c) ok = print_change(m, c, out) && ok;
    }
    return ok;
}

// ---- the command ----

static void warn_unread(const json_t *all) {
    size_t i;
    json_t *s;
    json_array_foreach(json_object_get(all, "sessions"), i, s) {
        if (xpl_document_chars(s, "error")[0])
            xpl_say("warning: %s: %s", xpl_document_chars(s, "session"),
                    xpl_document_chars(s, "error"));
    }
}

static int show(const struct xpl_args *a, const struct xpl_buf *answer) {
    if (a->json) return xpl_write_line(a, answer->p, answer->n) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    json_auto_t *all = xpl_document_read(answer->p, answer->n);
    if (!all) return XPL_EXIT_FAILED;
    warn_unread(all);
    return xpl_write_text(a, a->csv ? print_csv : print_text, all);
}

// A variable of a script that is empty does not ask for all sessions.
static bool is_empty(const char *flag, const char *value) {
    if (value && !*value) (void)fprintf(stderr, "xplanectl: --%s: it is empty\n", flag);
    return value && !*value;
}

int xpl_runs_history(const struct xpl_args *a) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(SIZE_MAX / 2);
    const bool here = a->dir && access(a->dir, F_OK) == 0;
    if (is_empty("label", a->label) || is_empty("dir", a->dir)) return XPL_EXIT_USAGE;
    if (here && (a->label || a->schedule)) {
        (void)fputs("xplanectl: history: labels and schedules are a daemon's, and --dir exists "
                    "here\n",
                    stderr);
        return XPL_EXIT_USAGE;
    }
    const int status = here ? of_directory(a, &out) : of_daemon(a, &out);
    return status == XPL_EXIT_OK ? show(a, &out) : status;
}
