// SPDX-License-Identifier: Apache-2.0
// `xplanectl hosts`, `tools` and `tool`: what a run has, and what a tool answers for it.
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/remote.h"
#include "cli/runs/answer.h"
#include "cli/table.h"
#include "cli/tool_list.h"

// ---- hosts ----

static void json_host(struct xpl_buf *b, const xpl_host_info *h, const char *kind) {
    xpl_buf_putc(b, '{');
    xpl_show_field(b, "name", h->name);
    xpl_buf_printf(b, ",\"bytes\":%" PRIu64 ",\"modified_unix_ms\":%" PRId64 ",", h->bytes,
                   h->modified_unix_ms);
    xpl_show_field(b, "state", h->state);
    xpl_buf_putc(b, ',');
    xpl_show_field(b, "error", h->error);
    xpl_buf_putc(b, ',');
    xpl_show_field(b, "kind", kind);
    xpl_buf_putc(b, '}');
}

// Lost hosts follow the others, by the names given to the capture.
static int print_hosts_json(const struct xpl_args *a, const xpl_session_info *s) {
    struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
    xpl_buf_putc(&b, '[');
    for (size_t i = 0; i < s->n_hosts + s->n_lost; i++) {
        const xpl_lost_info *const lost = i < s->n_hosts ? NULL : &s->lost[i - s->n_hosts];
        const xpl_host_info none = {
            .name = lost ? lost->target : "", .state = "lost", .error = lost ? lost->reason : ""};
        if (i) xpl_buf_putc(&b, ',');
        json_host(&b, lost ? &none : &s->hosts[i], s->kind);
    }
    return xpl_show_listing(a, &b);
}

static void table_lost(struct xpl_table *t, const xpl_session_info *s, const xpl_lost_info *h) {
    xpl_table_text(t, xpl_str_from(h->target), 80);
    xpl_table_text(t, xpl_str_from(s->kind), 20);
    xpl_table_printf(t, "-");
    xpl_table_printf(t, "-");
    xpl_table_printf(t, "lost");
    xpl_table_text(t, xpl_str_from(h->reason), 100);
}

static int print_hosts(const struct xpl_args *a, const xpl_session_info *s) {
    if (a->json || a->csv) return print_hosts_json(a, s);
    static const char *const columns[] = {"HOST", "KIND", ">SIZE", "WRITTEN", "STATE", "PROBLEM"};
    struct xpl_table *t = xpl_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < s->n_hosts; i++) {
        xpl_table_text(t, xpl_str_from(s->hosts[i].name), 80);
        xpl_table_text(t, xpl_str_from(s->kind), 20);
        xpl_table_bytes(t, s->hosts[i].bytes);
        xpl_table_when(t, s->hosts[i].modified_unix_ms);
        xpl_table_printf(t, "%s", s->hosts[i].state);
        xpl_table_text(t, xpl_str_from(s->hosts[i].error), 100);
    }
    for (size_t i = 0; i < s->n_lost; i++)
        table_lost(t, s, &s->lost[i]);
    return xpl_show_table(a, t);
}

// ---- tools ----

static bool print_names(const void *session, FILE *out) {
    const xpl_session_info *const s = session;
    for (size_t i = 0; i < s->n_tools; i++)
        (void)fprintf(out, "%s\n", s->tools[i]);
    return true;
}

static int print_tools(const struct xpl_args *a, const xpl_session_info *s) {
    if (!a->json && !a->csv) return xpl_write_text(a, print_names, s);
    struct xpl_buf b = xpl_buf_of((size_t)1 << 20);
    xpl_buf_putc(&b, '[');
    for (size_t i = 0; i < s->n_tools; i++) {
        if (i) xpl_buf_putc(&b, ',');
        xpl_json_str(&b, xpl_str_from(s->tools[i]), false);
    }
    return xpl_show_listing(a, &b);
}

// ---- commands ----

static int show_about(const struct xpl_args *a,
                      int (*print)(const struct xpl_args *, const xpl_session_info *)) {
    struct xpl_run_about about;
    int status = xpl_run_about(a, a->rest[1], &about);
    if (status == XPL_EXIT_OK) status = print(a, about.info);
    xpl_run_about_fini(&about);
    return status;
}

int xpl_runs_hosts(const struct xpl_args *a) {
    return show_about(a, print_hosts);
}

int xpl_runs_tools(const struct xpl_args *a) {
    if (a->all != (a->n_rest == 2)) return a->all ? xpl_list_tools(a) : show_about(a, print_tools);
    (void)fputs("Usage: xplanectl tools RUN | --all\n", stderr);
    return XPL_EXIT_USAGE;
}

int xpl_runs_tool(const struct xpl_args *a) {
    struct xpl_run_answer answer;
    int status = xpl_run_answer(a, a->rest[1], a->rest[2], &answer);
    if (xpl_is_answered(status) && !xpl_write_answer(a, a->rest[1], answer.p, answer.n))
        status = XPL_EXIT_FAILED;
    xpl_run_answer_fini(&answer);
    return status;
}
