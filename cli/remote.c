// SPDX-License-Identifier: Apache-2.0
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/status.h"
#include "cli/csv/csv.h"
#include "cli/table.h"

enum { IN_TABLE = 100 }; // sessions, without --last

// The first token of the file, which may be the daemon's (server/roles.h): the first word outside
// of comments.  NULL after saying why.
static const char *read_token(const char *path, char *token, int size) {
    static const char blanks[] = " \t\r\n";
    FILE *f = fopen(path, "re");
    bool found = false;
    if (!f) (void)fprintf(stderr, "xplanectl: %s: %s\n", path, strerror(errno));
    while (f && !found && fgets(token, size, f)) {
        const size_t from = strspn(token, blanks), n = strcspn(token + from, blanks);
        found = n && token[from] != '#';
        memmove(token, token + from, n);
        token[n] = 0;
    }
    if (f && !found) (void)fprintf(stderr, "xplanectl: %s: no token in it\n", path);
    if (f) (void)fclose(f);
    return found ? token : NULL;
}

bool xpl_remote_options(const struct xpl_args *a, char token[XPL_REMOTE_TOKEN],
                        xpl_client_options *ret) {
    *ret = (xpl_client_options){.size = sizeof *ret,
                                .tls_roots = a->tls_roots,
                                .tls_cert = a->tls_cert,
                                .tls_key = a->tls_key,
                                .tls_name = a->tls_name,
                                .timeout_ms = a->timeout_ms};
    return !a->token_file || (ret->token = read_token(a->token_file, token, XPL_REMOTE_TOKEN));
}

xpl_client *xpl_remote_open(const struct xpl_args *a) {
    char token[XPL_REMOTE_TOKEN];
    xpl_client_options o;
    if (!xpl_remote_options(a, token, &o)) return NULL;
    xpl_client *c = NULL;
    xpl_result r;
    if (xpl_client_open(a->server, &o, &c, &r) == 0) return c;
    (void)xpl_remote_failed(&r);
    return NULL;
}

int xpl_remote_failed(const xpl_result *r) {
    const int status = xpl_failed((xpl_status_t)r->code, r->message);
    if (r->code == XPL_UNAUTHENTICATED)
        (void)fprintf(stderr, "xplanectl: --token-file FILE sends the token in FILE\n");
    if (r->retry_after_ms > 0)
        (void)fprintf(stderr, "xplanectl: try again in %" PRId64 " ms\n", r->retry_after_ms);
    return status;
}

xpl_tool_request xpl_remote_request(const struct xpl_args *a, const char *tool,
                                    const char *session) {
    return (xpl_tool_request){.size = sizeof(xpl_tool_request),
                              .session = session,
                              .tool = tool,
                              .hosts = a->hosts,
                              .n_hosts = a->n_hosts,
                              .options = a->options,
                              .n_options = a->n_options};
}

void xpl_remote_warn(const xpl_answer *a) {
    for (size_t i = 0; xpl_answer_warning(a, i); i++)
        xpl_say("warning: %s", xpl_answer_warning(a, i));
}

void xpl_show_field(struct xpl_buf *b, const char *name, const char *value) {
    xpl_json_field(b, name, xpl_str_from(value ? value : ""));
}

static void json_session(struct xpl_buf *b, const xpl_session_info *s) {
    xpl_buf_putc(b, '{');
    xpl_show_field(b, "name", s->name);
    xpl_buf_printf(b, ",\"hosts\":%zu,\"bytes\":%" PRIu64 ",\"modified_unix_ms\":%" PRId64 ",",
                   s->n_hosts, s->bytes, s->modified_unix_ms);
    xpl_show_field(b, "state", s->state);
    xpl_buf_printf(b, ",\"progress\":%.3f,", s->progress);
    xpl_show_field(b, "kind", s->kind);
    xpl_buf_printf(b, ",\"captured_unix_ms\":%" PRId64 ",\"lost\":[", s->captured_unix_ms);
    for (size_t i = 0; i < s->n_lost; i++) {
        xpl_buf_str(b, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_show_field(b, "target", s->lost[i].target);
        xpl_buf_putc(b, ',');
        xpl_show_field(b, "reason", s->lost[i].reason);
        xpl_buf_putc(b, '}');
    }
    xpl_buf_str(b, XPL_STR("],\"labels\":["));
    for (size_t i = 0; i < s->n_labels; i++) {
        if (i) xpl_buf_putc(b, ',');
        xpl_json_str(b, xpl_str_from(s->labels[i]), false);
    }
    xpl_buf_str(b, XPL_STR("]}"));
}

int xpl_show_listing(const struct xpl_args *a, struct xpl_buf *b) {
    xpl_buf_str(b, XPL_STR("]\n"));
    int status = XPL_EXIT_FAILED;
    if (b->failed)
        (void)fputs("xplanectl: out of memory\n", stderr);
    else
        status = xpl_csv_show_text(a, b->p, b->n, NULL);
    xpl_buf_fini(b);
    return status;
}

static bool print_rows(const void *table, FILE *out) {
    return xpl_table_print(table, out);
}

int xpl_show_table(const struct xpl_args *a, struct xpl_table *t) {
    const int status = xpl_write_text(a, print_rows, t);
    xpl_table_free(t);
    return status;
}

static void table_labels(struct xpl_table *t, const xpl_session_info *s) {
    char text[128] = "";
    size_t n = 0;
    for (size_t i = 0; i < s->n_labels && n < sizeof text; i++) {
        const int got = snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "", s->labels[i]);
        n += got > 0 ? (size_t)got : 0;
    }
    xpl_table_text(t, xpl_str_from(text), 60);
}

// "partial (2 hosts lost: a and b)"; of more than three "a, b and 5 others".
static void table_partial(struct xpl_table *t, const xpl_session_info *s) {
    enum { NAME = 40, WIDTH = 160 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of((size_t)1 << 20);
    const size_t told = s->n_lost > 3 ? 2 : s->n_lost;
    xpl_buf_printf(&b, "%s (%zu host%s lost: ", s->state, s->n_lost, s->n_lost > 1 ? "s" : "");
    for (size_t i = 0; i < told; i++)
        xpl_buf_printf(&b, "%s%.*s",
                       !i                  ? ""
                       : i + 1 < s->n_lost ? ", "
                                           : " and ",
                       NAME, s->lost[i].target);
    if (told < s->n_lost) xpl_buf_printf(&b, " and %zu others", s->n_lost - told);
    xpl_buf_putc(&b, ')');
    xpl_table_text(t, (xpl_str_t){(const char *)b.p, b.n}, WIDTH);
}

static void table_session(struct xpl_table *t, const xpl_session_info *s) {
    xpl_table_text(t, xpl_str_from(s->name), 80);
    xpl_table_text(t, xpl_str_from(s->kind), 20);
    xpl_table_printf(t, "%zu", s->n_hosts);
    xpl_table_bytes(t, s->bytes);
    xpl_table_when(t, s->captured_unix_ms);
    if (s->progress > 0 && s->progress < 1)
        xpl_table_printf(t, "%s %.0f%%", s->state, s->progress * 100);
    else if (s->n_lost)
        table_partial(t, s);
    else
        xpl_table_printf(t, "%s", s->state);
    table_labels(t, s);
}

// The sessions to show, newest first.
struct shown {
    const xpl_session_info **v;
    size_t n, n_older; // n_older: left out, because they are older
};

static bool has_label(const xpl_session_info *s, const char *label) {
    for (size_t i = 0; i < s->n_labels; i++)
        if (strcmp(s->labels[i], label) == 0) return true;
    return false;
}

static void choose(const struct xpl_args *a, const xpl_sessions *list, struct shown *ret) {
    const size_t n = xpl_sessions_count(list);
    const size_t most = a->last ? (size_t)a->last : a->json || a->csv ? n : IN_TABLE;
    for (size_t i = 0; i < n; i++) {
        const xpl_session_info *const s = xpl_sessions_get(list, i);
        if (a->label && !has_label(s, a->label)) continue;
        if (ret->n < most)
            ret->v[ret->n++] = s;
        else
            ret->n_older++;
    }
}

static int print_listing(const struct xpl_args *a, const struct shown *shown) {
    struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
    xpl_buf_putc(&b, '[');
    for (size_t i = 0; i < shown->n; i++) {
        if (i) xpl_buf_putc(&b, ',');
        json_session(&b, shown->v[i]);
    }
    return xpl_show_listing(a, &b);
}

static int print_table(const struct xpl_args *a, const struct shown *shown) {
    static const char *const columns[] = {"SESSION",  "KIND",  ">HOSTS", ">SIZE",
                                          "CAPTURED", "STATE", "LABELS"};
    struct xpl_table *t = xpl_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < shown->n; i++)
        table_session(t, shown->v[i]);
    const int status = xpl_show_table(a, t);
    if (shown->n_older && !a->last)
        xpl_say("%zu older sessions are not shown: --last N shows more", shown->n_older);
    if (shown->n == 0 && !shown->n_older)
        xpl_say(a->label ? "no session has the label %s"
                         : "no session yet: `xplanectl capture` records one, `xplanectl import` "
                           "stores profiles",
                a->label);
    return status;
}

static int print_sessions(const struct xpl_args *a, const xpl_sessions *list) {
    struct shown shown = {xpl_sys_alloc((xpl_sessions_count(list) + 1) * sizeof *shown.v), 0, 0};
    if (!shown.v) return xpl_failed(XPL_RESOURCE_EXHAUSTED, "out of memory");
    choose(a, list, &shown);
    const int status = a->json || a->csv ? print_listing(a, &shown) : print_table(a, &shown);
    xpl_sys_free((void *)(uintptr_t)shown.v);
    return status;
}

int xpl_cmd_sessions(const struct xpl_args *a) {
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    xpl_sessions *list = NULL;
    xpl_result r;
    const int status =
        xpl_client_sessions(c, &list, &r) == 0 ? print_sessions(a, list) : xpl_remote_failed(&r);
    xpl_sessions_free(list);
    return status;
}
