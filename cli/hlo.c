// SPDX-License-Identifier: Apache-2.0
// `xplanectl hlo`: the HLO programs of a session, or of files, one of them as text, and what holds
// its memory.  The tools hlo_modules with op_list, graph_viewer and memory_viewer answer, through a
// daemon or without one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/near.h"
#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/runs/answer.h"
#include "cli/table.h"

static const char *const texts[][2] = {
    {"short", "short_txt"}, {"long", "long_txt"}, {"pbtxt", "pbtxt"}, {"pb", "pb"},
    {"json", "json"},       {"dot", "graph"},     {"html", "graph"},
};

static const char *type_of(const char *text) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(text, texts[i][0]) == 0) return texts[i][1];
    return NULL;
}

// A module's name is never just a number: its program id follows in parentheses.
static bool is_number(const char *s) {
    return *s && s[strspn(s, "0123456789")] == 0;
}

static int run_tool(const struct xpl_args *args, const char *tool, const char **options,
                    size_t n_options) {
    struct xpl_run_answer answer;
    struct xpl_args a = *args;
    a.options = options;
    a.n_options = n_options;
    int status = xpl_run_answer(&a, tool, args->rest[1], &answer);
    if (xpl_is_answered(status) && !xpl_write_answer(&a, tool, answer.p, answer.n))
        status = XPL_EXIT_FAILED;
    xpl_run_answer_fini(&answer);
    return status;
}

// A tool and its options, behind those that were given: of a key given twice the last counts.
enum { MOST = 4, MAX_MODULE = 1024 };
struct hlo_request {
    const char *tool;
    const char *more[MOST][2];
    size_t n;
};

static void add(struct hlo_request *q, const char *key, const char *value) {
    q->more[q->n][0] = key;
    q->more[q->n++][1] = value;
}

// Prints the rule, and the word of the list ("a|b") nearest to the given one (NULL: nothing).
static void refuse(const char *rule, const char *given, const char *list) {
    char hint[XPL_NEAR_TEXT];
    (void)fprintf(stderr, "xplanectl: %s%s\n", rule, xpl_near_of(given ? given : "", list, hint));
}

// False when the words do not fit together.
static bool read_request(const struct xpl_args *a, const char *module, struct hlo_request *q) {
    const char *const type = type_of(a->text ? a->text : "short");
    *q = (struct hlo_request){.tool = a->memory ? "memory_viewer" : "graph_viewer"};
    if (!type || (a->text && (!module || a->memory))) {
        refuse("--text is short, long, pbtxt, pb, json, dot or html, and needs a MODULE",
               type ? NULL : a->text, "short|long|pbtxt|pb|json|dot|html");
        return false;
    }
    if (module && a->csv && !a->memory) {
        refuse("--format csv is of the list, and of --memory", NULL, "");
        return false;
    }
    const bool is_view =
        a->memory && (strcmp(a->memory, "lines") == 0 || strcmp(a->memory, "ops") == 0);
    if ((a->memory && (!module || !is_view)) || (a->other && !a->memory)) {
        refuse("--memory is lines or ops, and needs a MODULE; --other needs --memory",
               is_view ? NULL : a->memory, "lines|ops");
        return false;
    }
    if (module) add(q, is_number(module) ? "program_id" : "module_name", module);
    if (a->memory)
        add(q, "view", a->memory);
    else
        add(q, "type", type);
    if (type && strcmp(type, "graph") == 0) add(q, "format", a->text);
    if (a->other) add(q, "other", a->other);
    return true;
}

static int out_of_memory(void) {
    (void)fputs("xplanectl: out of memory\n", stderr);
    return XPL_EXIT_FAILED;
}

// The tool's answer as JSON, of which the caller gets the exit status; NULL: none.
static json_t *ask(const struct xpl_args *args, const char *tool, int *status) {
    struct xpl_run_answer answer;
    *status = xpl_run_answer(args, tool, args->rest[1], &answer);
    json_t *const all = xpl_is_answered(*status) ? xpl_document_read(answer.p, answer.n) : NULL;
    if (!all && xpl_is_answered(*status)) *status = XPL_EXIT_FAILED;
    xpl_run_answer_fini(&answer);
    return all;
}

// Puts the only program whose name begins with `module` into `ret`; false: none, or several, or
// the name is complete.
static bool find_module(const struct xpl_args *args, const char *module, char *ret, size_t size) {
    struct xpl_args a = *args;
    a.n_options = 0;
    int status;
    json_auto_t *list = ask(&a, "hlo_modules", &status);
    const size_t n = strlen(module);
    bool found = false, several = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *const name = xpl_document_chars(json_array_get(list, i), "module");
        if (strncmp(name, module, n) != 0) continue;
        several |= !name[n] || (found && strcmp(name, ret) != 0);
        found = found || (size_t)snprintf(ret, size, "%s", name) < size;
    }
    return found && !several;
}

// ---- the list ----

static json_int_t time_of(const json_t *o) {
    return json_integer_value(json_object_get(o, "self_time_ps"));
}

// The self times of ops by their programs' ids, the caller's to free; NULL: out of memory.
static json_t *sums_of(const json_t *ops) {
    json_t *const sums = json_object();
    size_t i;
    const json_t *op;
    bool added = sums;
    json_array_foreach(ops, i, op) {
        const char *const id = xpl_document_chars(op, "program_id");
        const json_int_t before = json_integer_value(json_object_get(sums, id));
        added = added && json_object_set_new(sums, id, json_integer(before + time_of(op))) == 0;
    }
    if (added) return sums;
    json_decref(sums);
    return NULL;
}

static const char *host_of(const json_t *programs, size_t i) {
    return xpl_document_chars(json_array_get(programs, i), "host");
}

// Sets how long devices of a host ran each of its programs, those from `begin` to `end`.  Returns
// the exit status.
static int add_times(const struct xpl_args *args, json_t *programs, size_t begin, size_t end) {
    struct xpl_args a = *args;
    const char *host = host_of(programs, begin);
    a.hosts = &host;
    a.n_hosts = 1;
    int status;
    json_auto_t *all = ask(&a, "op_list", &status);
    if (!all) return XPL_EXIT_PARTLY;
    json_auto_t *sums = sums_of(json_object_get(all, "ops"));
    if (!sums) return out_of_memory();
    if (!json_object_size(sums)) return status; // no op says which program it is of
    for (size_t i = begin; i < end; i++) {
        json_t *const m = json_array_get(programs, i);
        const json_t *const ps = json_object_get(sums, xpl_document_chars(m, "program_id"));
        if (json_object_set_new(m, "self_time_ps", json_integer(json_integer_value(ps))) < 0)
            return out_of_memory();
    }
    return status;
}

// The longest first, others by host and name.
static int by_time(const void *a, const void *b) {
    const json_t *const x = *(json_t *const *)a, *const y = *(json_t *const *)b;
    if (time_of(x) != time_of(y)) return time_of(x) < time_of(y) ? 1 : -1;
    const int hosts = strcmp(xpl_document_chars(x, "host"), xpl_document_chars(y, "host"));
    return hosts ? hosts : strcmp(xpl_document_chars(x, "module"), xpl_document_chars(y, "module"));
}

// The same programs in order, the caller's to free; NULL: out of memory.
static json_t *sorted(const json_t *programs) {
    const size_t n = json_array_size(programs);
    json_t **const rows = xpl_sys_alloc((n + 1) * sizeof *rows);
    json_t *const ret = json_array();
    for (size_t i = 0; rows && i < n; i++)
        rows[i] = json_array_get(programs, i);
    if (rows) qsort(rows, n, sizeof *rows, by_time);
    for (size_t i = 0; rows && i < n; i++)
        (void)json_array_append(ret, rows[i]);
    const bool complete = rows && ret && json_array_size(ret) == n;
    xpl_sys_free(rows);
    if (complete) return ret;
    json_decref(ret);
    return NULL;
}

static bool print_programs(const void *what, FILE *out) {
    static const char *const columns[] = {">TIME", ">INSTRUCTIONS", ">BYTES", "PROGRAM", "HOST"};
    const json_t *const programs = what;
    struct xpl_table *const t = xpl_table_new(columns, sizeof columns / sizeof *columns);
    size_t i;
    const json_t *m;
    json_array_foreach(programs, i, m) {
        if (json_object_get(m, "self_time_ps"))
            xpl_table_time_ps(t, (uint64_t)time_of(m));
        else
            xpl_table_unknown(t);
        xpl_table_printf(t, "%.0f", xpl_document_real(m, "instructions"));
        xpl_table_bytes(t, (uint64_t)xpl_document_real(m, "bytes"));
        xpl_table_text(t, xpl_document_text(m, "module"), SIZE_MAX);
        xpl_table_text(t, xpl_document_text(m, "host"), SIZE_MAX);
    }
    return xpl_table_finish(t, out);
}

static int list_programs(const struct xpl_args *args) {
    int status;
    json_auto_t *programs = ask(args, "hlo_modules", &status);
    if (!programs) return status;
    const size_t n = json_array_size(programs);
    for (size_t i = 0, end; xpl_is_answered(status) && i < n; i = end) { // in order of hosts
        for (end = i + 1; end < n && strcmp(host_of(programs, end), host_of(programs, i)) == 0;)
            end++;
        status = xpl_both_answered(status, add_times(args, programs, i, end));
    }
    if (!xpl_is_answered(status)) return status;
    json_auto_t *list = sorted(programs);
    if (!list) return out_of_memory();
    return xpl_both_answered(status, args->csv    ? xpl_csv_show(args, list, NULL)
                                     : args->json ? xpl_document_write(args, list)
                                                  : xpl_write_text(args, print_programs, list));
}

int xpl_cmd_hlo(const struct xpl_args *args) {
    struct hlo_request q;
    struct xpl_args a = *args;
    char whole[MAX_MODULE];
    const char *module = args->n_rest > 2 ? args->rest[2] : NULL;
    if (!read_request(args, module, &q)) return XPL_EXIT_USAGE;
    if (!module) return list_programs(args);
    if (!is_number(module) && find_module(args, module, whole, sizeof whole)) {
        module = whole;
        (void)read_request(args, module, &q);
    }
    const char **const options =
        xpl_sys_alloc((2 * args->n_options + sizeof q.more / sizeof **q.more) * sizeof *options);
    size_t n = args->n_options;
    if (!options) return out_of_memory();
    if (n) memcpy(options, args->options, 2 * n * sizeof *options);
    for (size_t i = 0; i < q.n; i++, n++) {
        options[2 * n] = q.more[i][0];
        options[2 * n + 1] = q.more[i][1];
    }
    a.table |= args->memory && !args->json && !args->csv;
    const int status = run_tool(&a, q.tool, options, n);
    xpl_sys_free((void *)(uintptr_t)options);
    return status;
}
