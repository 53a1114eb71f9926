// SPDX-License-Identifier: Apache-2.0
// `xplanectl hlo`: the HLO programs of a session, or of files, one of them as text, and what holds
// its memory.  The tools hlo_modules, graph_viewer and memory_viewer answer, through a daemon or
// without one.
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/near.h"
#include "cli/csv/csv.h"
#include "cli/document/document.h"
#include "cli/runs/answer.h"

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
    if (xpl_is_answered(status)) {
        const bool shown = a.csv && !a.memory
                               ? xpl_csv_show_text(&a, answer.p, answer.n, NULL) == XPL_EXIT_OK
                               : xpl_write_answer(&a, tool, answer.p, answer.n);
        if (!shown) status = XPL_EXIT_FAILED;
    }
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
    *q = (struct hlo_request){.tool = !module     ? "hlo_modules"
                                      : a->memory ? "memory_viewer"
                                                  : "graph_viewer"};
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
    if (!module)
        add(q, "format", a->json || a->csv ? "json" : "text");
    else if (a->memory)
        add(q, "view", a->memory);
    else
        add(q, "type", type);
    if (type && strcmp(type, "graph") == 0) add(q, "format", a->text);
    if (a->other) add(q, "other", a->other);
    return true;
}

// Puts the only program whose name begins with `module` into `ret`; false: none, or several, or
// the name is complete.
static bool find_module(const struct xpl_args *args, const char *module, char *ret, size_t size) {
    static const char *options[] = {"format", "json"};
    struct xpl_run_answer answer;
    struct xpl_args a = *args;
    a.options = options;
    a.n_options = 1;
    const int status = xpl_run_answer(&a, "hlo_modules", args->rest[1], &answer);
    json_t *const list = xpl_is_answered(status) ? xpl_document_read(answer.p, answer.n) : NULL;
    const size_t n = strlen(module);
    bool found = false, several = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *const name = xpl_document_chars(json_array_get(list, i), "module");
        if (strncmp(name, module, n) != 0) continue;
        several |= !name[n] || (found && strcmp(name, ret) != 0);
        found = found || (size_t)snprintf(ret, size, "%s", name) < size;
    }
    json_decref(list);
    xpl_run_answer_fini(&answer);
    return found && !several;
}

int xpl_cmd_hlo(const struct xpl_args *args) {
    struct hlo_request q;
    struct xpl_args a = *args;
    char whole[MAX_MODULE];
    const char *module = args->n_rest > 2 ? args->rest[2] : NULL;
    if (!read_request(args, module, &q)) return XPL_EXIT_USAGE;
    if (module && !is_number(module) && find_module(args, module, whole, sizeof whole)) {
        module = whole;
        (void)read_request(args, module, &q);
    }
    const char **const options =
        xpl_sys_alloc((2 * args->n_options + sizeof q.more / sizeof **q.more) * sizeof *options);
    size_t n = args->n_options;
    if (!options) {
        (void)fputs("xplanectl: out of memory\n", stderr);
        return XPL_EXIT_FAILED;
    }
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
