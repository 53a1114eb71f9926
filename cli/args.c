// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/formats/facts.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/text/terminal.h"
#include "cli/data_table.h"
#include "cli/output.h"
#include "storage/sessions/catalogue.h"

static void free_list(const char **list) {
    xpl_sys_free((void *)(uintptr_t)list);
}

void xpl_args_fini(struct xpl_args *a) {
    for (size_t i = 0; i < a->n_options; i++)
        xpl_sys_free((void *)(uintptr_t)a->options[2 * i]);
    for (size_t i = 0; i < a->n_advanced; i++)
        xpl_sys_free((void *)(uintptr_t)a->advanced[2 * i]);
    free_list(a->options);
    free_list(a->advanced);
    free_list(a->hosts);
    free_list(a->counters);
    free_list(a->removed);
    free_list(a->metrics);
    free_list(a->rest);
    xpl_sys_free((void *)(uintptr_t)a->given);
    *a = (struct xpl_args){0};
}

void xpl_say(const char *fmt, ...) {
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    const int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0) text = NULL; // out of memory
    (void)fputs("xplanectl: ", stderr);
    xpl_terminal_text(xpl_str_from(text ? text : "out of memory"), SIZE_MAX, stderr);
    (void)fputc('\n', stderr);
    free(text);
}

void xpl_warn_left_out(const struct xpl_inputs *in) {
    for (size_t i = 0; i < in->n_left_out; i++)
        xpl_say("warning: %s is left out: its host has another file there", in->left_out[i]);
}

int xpl_failed(xpl_status_t code, const char *message) {
    xpl_say("%s", message);
    return code == XPL_INVALID_ARGUMENT ? XPL_EXIT_USAGE : XPL_EXIT_FAILED;
}

int xpl_answered(const char *tool, bool warned) {
    const struct xpl_tool *const t = xpl_tool_find(xpl_str_from(tool));
    return warned && t && xpl_tool_form(t) != XPL_FORM_XSPACE ? XPL_EXIT_PARTLY : XPL_EXIT_OK;
}

int xpl_refuse_partial(void) {
    xpl_say("no answer: --strict accepts none with warnings");
    return XPL_EXIT_FAILED;
}

int xpl_both_answered(int first, int second) {
    return second == XPL_EXIT_OK ? first : second;
}

bool xpl_is_answered(int status) {
    return status == XPL_EXIT_OK || status == XPL_EXIT_PARTLY;
}

bool xpl_write_out(const struct xpl_args *a, const void *p, size_t n) {
    struct xpl_output o;
    if (!xpl_output_open(&o, a->out)) return false;
    if (fwrite(p, 1, n, o.f) == n) return xpl_output_commit(&o);
    (void)fprintf(stderr, "xplanectl: cannot write %s: %s\n", o.path, strerror(errno));
    xpl_output_abort(&o);
    return false;
}

bool xpl_write_answer(const struct xpl_args *a, const char *tool, const void *p, size_t n) {
    if (!a->table && !a->csv) return xpl_write_out(a, p, n);
    char *text = NULL;
    size_t length = 0;
    const size_t only = a->section ? (size_t)strtoul(a->section, NULL, 10) : 0;
    FILE *const f =
        open_memstream(&text, &length); // in memory: an answer without tables leaves no file
    const bool printed = f && (a->csv ? xpl_data_table_csv(tool, p, n, only, f)
                                      : xpl_data_table_print(tool, p, n, f));
    const bool closed = f && fclose(f) == 0;
    if (!printed || !closed)
        (void)fprintf(stderr, "xplanectl: --format %s: the answer has no table%s\n",
                      a->csv ? "csv" : "table", a->section ? " of that number" : "s");
    const bool written = printed && closed && xpl_write_out(a, text, length);
    free(text);
    return written;
}

bool xpl_write_line(const struct xpl_args *a, const void *p, size_t n) {
    struct xpl_buf line = xpl_buf_of(n + 2);
    xpl_buf_str(&line, (xpl_str_t){p, n});
    xpl_buf_putc(&line, '\n');
    if (line.failed) (void)fputs("xplanectl: out of memory\n", stderr);
    const bool written = !line.failed && xpl_write_out(a, line.p, line.n);
    xpl_buf_fini(&line);
    return written;
}

int xpl_write_text(const struct xpl_args *a, bool (*print)(const void *what, FILE *out),
                   const void *what) {
    return xpl_output_print(a->out, print, what) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
}

bool xpl_args_name_host(const struct xpl_args *a, xpl_str_t host) {
    for (size_t i = 0; i < a->n_hosts; i++)
        if (xpl_str_eq(host, xpl_str_from(a->hosts[i])) || strcmp(a->hosts[i], "ALL_HOSTS") == 0)
            return true;
    return a->n_hosts == 0;
}
