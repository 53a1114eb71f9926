// SPDX-License-Identifier: Apache-2.0
// `xplanectl events`: timings by name, of one run or several.  The tool of that name answers for
// each, through a daemon or without one; here the answers come together.
#include <stdio.h>
#include <string.h>

#include "analysis/events/events.h"
#include "base/arena.h"
#include "base/text/terminal.h"
#include "cli/csv/cells.h"
#include "cli/document/document.h"
#include "cli/runs/answer.h"
#include "cli/table.h"

enum { NAME_WIDTH = 60, MOST_FLAGS = 8 };

// The tool's options that the flags set, in addition to those of --option.
static size_t add_flags(const struct xpl_args *a, const char **options) {
    const struct {
        const char *key, *value;
    } flags[MOST_FLAGS] = {{"by", a->by},
                           {"by_id", a->by_id},
                           {"match", a->match},
                           {"max_events", a->max_events},
                           {"min_duration", a->min_duration},
                           {"plane", a->plane},
                           {"prefix", a->prefix},
                           {"rules", a->rules}};
    size_t n = 0;
    for (; n < a->n_options; n++)
        options[2 * n] = a->options[2 * n], options[2 * n + 1] = a->options[2 * n + 1];
    for (size_t i = 0; i < MOST_FLAGS; i++) {
        if (!flags[i].value) continue;
        options[2 * n] = flags[i].key, options[2 * n + 1] = flags[i].value;
        n++;
    }
    return n;
}

// ---- ids ----

static bool add_times(struct json_t *into, const json_t *times) {
    size_t i;
    json_t *t;
    json_array_foreach(times, i, t) if (json_array_append(into, t) != 0) return false;
    return true;
}

// Of one run to those of all.
static bool add_ids(json_t *all, const json_t *ids) {
    size_t i;
    json_t *id;
    json_array_foreach(ids, i, id) {
        const char *const key = json_string_value(json_object_get(id, "id"));
        if (!key) return false;
        json_t *times = json_object_get(all, key);
        if (!times) {
            times = json_array();
            if (!times || json_object_set_new(all, key, times) != 0) return false;
        }
        if (!add_times(times, json_object_get(id, "times_ps"))) return false;
    }
    return true;
}

static json_t *id_row(const char *key, json_t *times) {
    const size_t n = json_array_size(times);
    double *const v = xpl_sys_alloc((n + 1) * sizeof *v);
    if (!v) return NULL;
    for (size_t i = 0; i < n; i++)
        v[i] = json_number_value(json_array_get(times, i));
    const struct xpl_timings_trimmed t = xpl_timings_trim(v, n);
    xpl_sys_free(v);
    return json_pack("{s:s, s:I, s:O, s:f, s:f}", "id", key, "count", (json_int_t)n, "times_ps",
                     times, "mean_ps", t.mean, "std_ps", t.std);
}

static json_t *id_rows(json_t *all) {
    json_t *const rows = json_array(), *times;
    const char *key;
    bool ok = rows;
    if (ok) json_object_foreach(all, key, times) {
            json_t *const row = id_row(key, times);
            ok = ok && row && json_array_append_new(rows, row) == 0;
        }
    if (ok) return rows;
    json_decref(rows);
    return NULL;
}

// ---- runs ----

// Returns the exit status.
static int add_run(const struct xpl_args *a, const char *run, json_t *runs, json_t *ids) {
    struct xpl_run_answer answer;
    const int status = xpl_run_answer(a, "events", run, &answer);
    const bool answered = xpl_is_answered(status);
    json_t *const j = answered ? xpl_document_read(answer.p, answer.n) : NULL;
    xpl_run_answer_fini(&answer);
    if (!j) return answered ? XPL_EXIT_FAILED : status;
    json_t *const name = json_string(run);
    const bool ok = json_object_set_new(j, "run", name ? name : json_string("?")) == 0 &&
                    add_ids(ids, json_object_get(j, "ids")) && json_object_del(j, "ids") <= 0 &&
                    json_array_append(runs, j) == 0;
    json_decref(j);
    if (!ok) (void)fputs("xplanectl: out of memory\n", stderr);
    return ok ? status : XPL_EXIT_FAILED;
}

// *ret is {"runs": [...]}, with "ids" where they are requested. Reports an error on stderr; returns
// the exit status.
static int ask_all(const struct xpl_args *a, json_t **ret) {
    json_t *all = NULL, *const runs = json_array(), *const ids = json_object();
    int status = runs && ids ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    if (status != XPL_EXIT_OK) (void)fputs("xplanectl: out of memory\n", stderr);
    for (size_t i = 1; xpl_is_answered(status) && i < a->n_rest; i++)
        status = xpl_both_answered(status, add_run(a, a->rest[i], runs, ids));
    if (xpl_is_answered(status)) {
        bool by_id = false;
        for (size_t i = 0; i < a->n_options; i++)
            by_id |= strcmp(a->options[2 * i], "by_id") == 0 && a->options[2 * i + 1][0];
        all = by_id ? json_pack("{s:O, s:o}", "runs", runs, "ids", id_rows(ids))
                    : json_pack("{s:O}", "runs", runs);
        if (!all) (void)fputs("xplanectl: out of memory\n", stderr);
        if (!all) status = XPL_EXIT_FAILED;
    }
    json_decref(runs);
    json_decref(ids);
    *ret = all;
    return status;
}

// ---- text ----

static void put_time(struct xpl_table *t, const json_t *o, const char *key) {
    const double ps = json_number_value(json_object_get(o, key));
    xpl_table_time_ps(t, ps > 0 && ps < 1.8e19 ? (uint64_t)ps : 0);
}

static const char *const kTimes[] = {"total_ps", "self_ps", "mean_ps", "std_ps",
                                     "min_ps",   "p50_ps",  "p99_ps"};
enum { N_TIMES = sizeof kTimes / sizeof *kTimes };

static bool print_rows(const json_t *rows, bool theirs, FILE *out) {
    static const char *const columns[] = {"EVENT", ">COUNT", ">TOTAL", ">SELF", ">MEAN",
                                          ">STD",  ">MIN",   ">P50",   ">P99"};
    static const char *const few[] = {"EVENT", ">TOTAL"};
    struct xpl_table *const t = theirs ? xpl_table_new(few, 2) : xpl_table_new(columns, 9);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const r = json_array_get(rows, i);
        xpl_table_text(t, xpl_document_text(r, "name"), NAME_WIDTH);
        if (!theirs)
            xpl_table_printf(t, "%lld", (long long)json_integer_value(json_object_get(r, "count")));
        for (size_t k = 0; k < (theirs ? 1 : N_TIMES); k++)
            put_time(t, r, kTimes[k]);
    }
    return xpl_table_finish(t, out);
}

static bool print_ids(const json_t *ids, FILE *out) {
    static const char *const columns[] = {"ID", ">COUNT", ">MEAN", ">STD"};
    struct xpl_table *const t = xpl_table_new(columns, 4);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *const r = json_array_get(ids, i);
        xpl_table_text(t, xpl_document_text(r, "id"), NAME_WIDTH);
        xpl_table_printf(t, "%lld", (long long)json_integer_value(json_object_get(r, "count")));
        put_time(t, r, "mean_ps");
        put_time(t, r, "std_ps");
    }
    return xpl_table_finish(t, out);
}

static bool print_run(const json_t *run, FILE *out) {
    const json_t *const hosts = json_object_get(run, "hosts");
    if (!hosts) return print_rows(json_object_get(run, "rows"), false, out);
    bool ok = true;
    for (size_t i = 0; i < json_array_size(hosts); i++)
        ok = ok && print_rows(json_object_get(json_array_get(hosts, i), "rows"), true, out);
    return ok;
}

static bool print_table(const void *all, FILE *out) {
    const json_t *const runs = json_object_get(all, "runs");
    bool ok = true;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *const run = json_array_get(runs, i);
        if (i) (void)fputc('\n', out);
        if (json_array_size(runs) > 1) {
            xpl_terminal_text(xpl_document_text(run, "run"), SIZE_MAX, out);
            (void)fputc('\n', out);
        }
        ok = ok && print_run(run, out);
    }
    if (!json_object_get(all, "ids")) return ok;
    (void)fputc('\n', out);
    return ok && print_ids(json_object_get(all, "ids"), out);
}

// ---- CSV ----

static void put_cell(FILE *out, const json_t *row, const char *key) {
    (void)fputc(',', out);
    xpl_csv_value(out, json_object_get(row, key));
}

static void csv_rows(const char *run, const json_t *rows, FILE *out) {
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const r = json_array_get(rows, i);
        xpl_csv_text(out, run, strlen(run));
        put_cell(out, r, "name");
        put_cell(out, r, "count");
        for (size_t k = 0; k < N_TIMES; k++)
            put_cell(out, r, kTimes[k]);
        xpl_csv_end_line(out);
    }
}

// One table: of ids where they are requested, otherwise of rows.
static bool print_csv(const void *all, FILE *out) {
    const json_t *const ids = json_object_get(all, "ids"), *const runs =
                                                               json_object_get(all, "runs");
    (void)fputs(ids ? "id,count,mean_ps,std_ps\r\n"
                    : "run,name,count,total_ps,self_ps,mean_ps,std_ps,min_ps,p50_ps,p99_ps\r\n",
                out);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *const r = json_array_get(ids, i);
        xpl_csv_value(out, json_object_get(r, "id"));
        put_cell(out, r, "count");
        put_cell(out, r, "mean_ps");
        put_cell(out, r, "std_ps");
        xpl_csv_end_line(out);
    }
    for (size_t i = 0; !ids && i < json_array_size(runs); i++) {
        const json_t *const run = json_array_get(runs, i), *const hosts =
                                                               json_object_get(run, "hosts");
        csv_rows(xpl_document_chars(run, "run"), json_object_get(run, "rows"), out);
        for (size_t k = 0; k < json_array_size(hosts); k++)
            csv_rows(xpl_document_chars(run, "run"),
                     json_object_get(json_array_get(hosts, k), "rows"), out);
    }
    return true;
}

// ---- the command ----

static int show(const struct xpl_args *a, const json_t *all) {
    return a->json ? xpl_document_write(a, all)
                   : xpl_write_text(a, a->csv ? print_csv : print_table, all);
}

int xpl_named_events(const struct xpl_args *args) {
    const char **const options =
        xpl_sys_alloc(2 * (args->n_options + MOST_FLAGS) * sizeof(const char *));
    if (!options) {
        (void)fputs("xplanectl: out of memory\n", stderr);
        return XPL_EXIT_FAILED;
    }
    struct xpl_args a = *args;
    a.options = options;
    a.n_options = add_flags(args, options);
    json_t *all;
    int status = ask_all(&a, &all);
    if (xpl_is_answered(status)) status = xpl_both_answered(status, show(args, all));
    json_decref(all);
    xpl_sys_free(options);
    return status;
}
