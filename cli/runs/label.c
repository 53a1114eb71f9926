// SPDX-License-Identifier: Apache-2.0
// `xplanectl label`: what people call sessions, which the daemon keeps.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/csv/csv.h"
#include "cli/remote.h"
#include "cli/table.h"

// ---- lists ----

// `table`: which of the command's tables it is.
static int finish(const struct xpl_args *a, struct xpl_buf *b, const char *table) {
    int status = XPL_EXIT_FAILED;
    xpl_buf_putc(b, '\n');
    if (b->failed)
        (void)fputs("xplanectl: out of memory\n", stderr);
    else
        status = xpl_csv_show_text(a, b->p, b->n, table);
    xpl_buf_fini(b);
    return status;
}

static bool print_names(const void *session, FILE *out) {
    const xpl_session_info *const s = session;
    for (size_t i = 0; i < s->n_labels; i++)
        (void)fprintf(out, "%s\n", s->labels[i]);
    return true;
}

static int print_of_session(const struct xpl_args *a, const xpl_session_info *s) {
    struct xpl_buf b;
    if (!a->json && !a->csv) return xpl_write_text(a, print_names, s);
    xpl_buf_init(&b, (size_t)1 << 20);
    xpl_buf_putc(&b, '{');
    xpl_json_field(&b, "session", xpl_str_from(s->name));
    xpl_buf_str(&b, XPL_STR(",\"labels\":["));
    for (size_t i = 0; i < s->n_labels; i++) {
        if (i) xpl_buf_putc(&b, ',');
        xpl_json_str(&b, xpl_str_from(s->labels[i]), false);
    }
    xpl_buf_str(&b, XPL_STR("]}"));
    return finish(a, &b, "session");
}

struct row { // a label
    const char *label;
    size_t n_sessions;
    const xpl_session_info *newest;
};

struct rows {
    struct row *v; // of malloc
    size_t n;
};

static int by_label(const void *a, const void *b) {
    return strcmp(((const struct row *)a)->label, ((const struct row *)b)->label);
}

// Sessions come newest first.
static bool count_label(struct rows *r, const char *label, const xpl_session_info *s) {
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->v[i].label, label) == 0) {
            r->v[i].n_sessions++;
            return true;
        }
    struct row *const v = realloc(r->v, (r->n + 1) * sizeof *v);
    if (!v) return false;
    r->v = v;
    r->v[r->n++] = (struct row){label, 1, s};
    return true;
}

static bool count_labels(struct rows *r, const xpl_sessions *list) {
    for (size_t i = 0; i < xpl_sessions_count(list); i++) {
        const xpl_session_info *const s = xpl_sessions_get(list, i);
        for (size_t k = 0; k < s->n_labels; k++)
            if (!count_label(r, s->labels[k], s)) return false;
    }
    if (r->n) qsort(r->v, r->n, sizeof *r->v, by_label);
    return true;
}

static int print_rows_json(const struct xpl_args *a, const struct rows *r) {
    struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
    xpl_buf_putc(&b, '[');
    for (size_t i = 0; i < r->n; i++) {
        xpl_buf_str(&b, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(&b, "label", xpl_str_from(r->v[i].label));
        xpl_buf_printf(&b, ",\"sessions\":%zu,", r->v[i].n_sessions);
        xpl_json_field(&b, "newest", xpl_str_from(r->v[i].newest->name));
        xpl_buf_printf(&b, ",\"newest_captured_unix_ms\":%" PRId64 "}",
                       r->v[i].newest->captured_unix_ms);
    }
    xpl_buf_putc(&b, ']');
    return finish(a, &b, "labels");
}

static int print_rows(const struct xpl_args *a, const struct rows *r) {
    static const char *const columns[] = {"LABEL", ">SESSIONS", "NEWEST"};
    if (a->json || a->csv) return print_rows_json(a, r);
    struct xpl_table *const t = xpl_table_new(columns, 3);
    for (size_t i = 0; i < r->n; i++) {
        xpl_table_text(t, xpl_str_from(r->v[i].label), 64);
        xpl_table_printf(t, "%zu", r->v[i].n_sessions);
        xpl_table_text(t, xpl_str_from(r->v[i].newest->name), 80);
    }
    return xpl_show_table(a, t);
}

// ---- the command ----

static int list_all(const struct xpl_args *a, xpl_client *c) {
    xpl_sessions *list = NULL;
    struct rows r = {0};
    xpl_result result;
    int status = XPL_EXIT_FAILED;
    if (xpl_client_sessions(c, &list, &result) != 0)
        status = xpl_remote_failed(&result);
    else if (!count_labels(&r, list))
        (void)fputs("xplanectl: out of memory\n", stderr);
    else
        status = print_rows(a, &r);
    free(r.v);
    xpl_sessions_free(list);
    return status;
}

static int list_one(const struct xpl_args *a, xpl_client *c) {
    xpl_sessions *list = NULL;
    xpl_result result;
    const int status = xpl_client_session(c, a->rest[1], &list, &result) == 0
                           ? print_of_session(a, xpl_sessions_get(list, 0))
                           : xpl_remote_failed(&result);
    xpl_sessions_free(list);
    return status;
}

static int change(const struct xpl_args *a, xpl_client *c) {
    const xpl_labeling l = {.size = sizeof l,
                            .session = a->rest[1],
                            .add = a->rest + 2,
                            .n_add = a->n_rest - 2,
                            .remove = a->removed,
                            .n_remove = a->n_removed};
    xpl_result result;
    if (xpl_client_label(c, &l, &result) != 0) return xpl_remote_failed(&result);
    return a->json || a->csv ? list_one(a, c) : XPL_EXIT_OK;
}

int xpl_runs_label(const struct xpl_args *a) {
    if (a->n_rest == 1 && a->n_removed) {
        (void)fputs("xplanectl: --remove: which session's label?\n", stderr);
        return XPL_EXIT_USAGE;
    }
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    return a->n_rest == 1                  ? list_all(a, c)
           : a->n_rest > 2 || a->n_removed ? change(a, c)
                                           : list_one(a, c);
}
