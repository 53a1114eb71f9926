// SPDX-License-Identifier: Apache-2.0
// `xplanectl hlo`: the HLO programs of a session, or of files, and one of them as text.  The tools
// hlo_modules and graph_viewer answer, through a daemon or without one.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/near.h"
#include "cli/args.h"

static const char *const texts[][2] = {
    {"short", "short_txt"}, {"long", "long_txt"}, {"pbtxt", "pbtxt"},
    {"pb", "pb"},           {"json", "json"},
};

static const char *type_of(const char *text) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(text, texts[i][0]) == 0) return texts[i][1];
    return NULL;
}

// A module's name never is a number alone: its program id follows in parentheses.
static bool is_number(const char *s) {
    return *s && s[strspn(s, "0123456789")] == 0;
}

static int run_tool(const struct xpl_args *args, const char *tool, const char **options,
                    size_t n_options) {
    const char *const path = args->rest[1], *rest[] = {"tool", tool, path};
    struct xpl_args a = *args;
    a.rest = rest;
    a.n_rest = 3;
    a.options = options;
    a.n_options = n_options;
    if (access(path, F_OK) == 0) return xpl_cmd_analyze(&a);
    const int status = xpl_cmd_tool(&a);
    if (status == XPL_EXIT_FAILED && strchr(path, '/'))
        (void)fprintf(stderr, "xplanectl: there is no file %s: it was taken for a session\n", path);
    return status;
}

int xpl_cmd_hlo(const struct xpl_args *args) {
    const char *const module = args->n_rest > 2 ? args->rest[2] : NULL;
    const char *const type = type_of(args->text ? args->text : "short");
    if (!type || (args->text && !module)) {
        struct xpl_near near = xpl_near_begin(xpl_str_from(args->text));
        char hint[XPL_NEAR_TEXT];
        xpl_near_add_list(&near, type ? "" : "short|long|pbtxt|pb|json");
        (void)fprintf(stderr,
                      "xplanectl: --text is short, long, pbtxt, pb or json, of a MODULE%s\n",
                      xpl_near_text(&near, hint));
        return XPL_EXIT_USAGE;
    }
    // Behind the options that were given: of a key given twice the last counts.
    const char **const options = xpl_sys_alloc((2 * args->n_options + 4) * sizeof *options);
    size_t n = args->n_options;
    if (!options) {
        (void)fputs("xplanectl: out of memory\n", stderr);
        return XPL_EXIT_FAILED;
    }
    if (n) memcpy(options, args->options, 2 * n * sizeof *options);
    const char *const more[2][2] = {
        {module ? "type" : "format", module       ? type
                                     : args->json ? "json"
                                                  : "text"},
        {module && is_number(module) ? "program_id" : "module_name", module}};
    for (size_t i = 0; i < (module ? 2 : 1); i++, n++) {
        options[2 * n] = more[i][0];
        options[2 * n + 1] = more[i][1];
    }
    const int status = run_tool(args, module ? "graph_viewer" : "hlo_modules", options, n);
    xpl_sys_free((void *)(uintptr_t)options);
    return status;
}
