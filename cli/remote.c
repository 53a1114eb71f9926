// SPDX-License-Identifier: Apache-2.0
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/status.h"
#include "cli/csv/csv.h"
#include "cli/output.h"
#include "cli/progress/progress.h"
#include "cli/table.h"
#include "cli/tool_list.h"

// First line of the token file, or NULL after saying why.
static const char *read_token(const char *path, char *token, int size) {
    FILE *f = fopen(path, "re");
    const char *const got = f ? fgets(token, size, f) : NULL;
    if (!f) (void)fprintf(stderr, "xplanectl: %s: %s\n", path, strerror(errno));
    if (got) token[strcspn(token, "\r\n")] = 0;
    const bool empty = f && (!got || !token[0]);
    if (empty) (void)fprintf(stderr, "xplanectl: %s: no token in it (its first line)\n", path);
    if (f) (void)fclose(f);
    return f && !empty ? token : NULL;
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
    (void)fprintf(stderr, "xplanectl: %s: %s\n", xpl_status_name((xpl_status_t)r->code),
                  r->message);
    if (r->code == XPL_UNAUTHENTICATED)
        (void)fprintf(stderr, "xplanectl: --token-file FILE sends the token in FILE\n");
    if (r->retry_after_ms > 0)
        (void)fprintf(stderr, "xplanectl: try again in %" PRId64 " ms\n", r->retry_after_ms);
    return XPL_EXIT_FAILED;
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

int xpl_remote_tool(const struct xpl_args *a, xpl_client *c, const xpl_tool_request *q,
                    xpl_answer **ret, xpl_result *result) {
    xpl_progress_begin(a);
    const int code = xpl_client_tool(c, q, ret, result);
    xpl_progress_end();
    return code;
}

void xpl_remote_warn(const xpl_answer *a) {
    for (size_t i = 0; xpl_answer_warning(a, i); i++)
        (void)fprintf(stderr, "xplanectl: warning: %s\n", xpl_answer_warning(a, i));
}

static int answer_path(const struct xpl_args *args, const char *tool, const char *path,
                       struct xpl_run_answer *ret) {
    const char *rest[] = {"analyze", tool, path};
    struct xpl_args a = *args;
    a.rest = rest;
    a.n_rest = 3;
    const int status = xpl_analyze(&a, &ret->made);
    ret->p = ret->made.p;
    ret->n = ret->made.n;
    return status;
}

static int answer_session(const struct xpl_args *a, const char *tool, const char *session,
                          struct xpl_run_answer *ret) {
    xpl_client *const c = xpl_remote_open(a);
    const xpl_tool_request q = xpl_remote_request(a, tool, session);
    xpl_result r;
    if (!c) return XPL_EXIT_FAILED;
    int status = XPL_EXIT_OK;
    if (xpl_remote_tool(a, c, &q, &ret->got, &r) == 0) {
        xpl_remote_warn(ret->got);
        ret->p = xpl_answer_data(ret->got, &ret->n);
    } else {
        status = xpl_remote_failed(&r);
        if (strchr(session, '/'))
            (void)fprintf(stderr, "xplanectl: there is no file %s: it was taken for a session\n",
                          session);
    }
    xpl_client_close(c);
    return status;
}

int xpl_run_answer(const struct xpl_args *a, const char *tool, const char *run,
                   struct xpl_run_answer *ret) {
    *ret = (struct xpl_run_answer){0};
    xpl_buf_init(&ret->made, 0);
    return access(run, F_OK) == 0 ? answer_path(a, tool, run, ret)
                                  : answer_session(a, tool, run, ret);
}

void xpl_run_answer_fini(struct xpl_run_answer *r) {
    xpl_buf_fini(&r->made);
    xpl_answer_free(r->got);
}

static void show_when(char out[32], int64_t unix_ms) {
    const time_t t = (time_t)(unix_ms / 1000);
    struct tm tm;
    if (!localtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm)) strcpy(out, "?");
}

static void json_field(struct xpl_buf *b, const char *name, const char *value) {
    xpl_json_field(b, name, xpl_str_from(value ? value : ""));
}

static void json_host(struct xpl_buf *b, const xpl_host_info *h, const char *kind) {
    xpl_buf_putc(b, '{');
    json_field(b, "name", h->name);
    xpl_buf_printf(b, ",\"bytes\":%" PRIu64 ",\"modified_unix_ms\":%" PRId64 ",", h->bytes,
                   h->modified_unix_ms);
    json_field(b, "state", h->state);
    xpl_buf_putc(b, ',');
    json_field(b, "error", h->error);
    xpl_buf_putc(b, ',');
    json_field(b, "kind", kind);
    xpl_buf_putc(b, '}');
}

static void json_session(struct xpl_buf *b, const xpl_session_info *s) {
    xpl_buf_putc(b, '{');
    json_field(b, "name", s->name);
    xpl_buf_printf(b, ",\"hosts\":%zu,\"bytes\":%" PRIu64 ",\"modified_unix_ms\":%" PRId64 ",",
                   s->n_hosts, s->bytes, s->modified_unix_ms);
    json_field(b, "state", s->state);
    xpl_buf_printf(b, ",\"progress\":%.3f,", s->progress);
    json_field(b, "kind", s->kind);
    xpl_buf_printf(b, ",\"captured_unix_ms\":%" PRId64 ",\"lost\":[", s->captured_unix_ms);
    for (size_t i = 0; i < s->n_lost; i++) {
        xpl_buf_str(b, i ? XPL_STR(",{") : XPL_STR("{"));
        json_field(b, "target", s->lost[i].target);
        xpl_buf_putc(b, ',');
        json_field(b, "reason", s->lost[i].reason);
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

int xpl_show_table(const struct xpl_args *a, struct xpl_table *t) {
    struct xpl_output o;
    if (!xpl_output_open(&o, a->out)) {
        xpl_table_free(t);
        return XPL_EXIT_FAILED;
    }
    const bool printed = xpl_table_print(t, o.f);
    xpl_table_free(t);
    if (printed) return xpl_output_commit(&o) ? XPL_EXIT_OK : XPL_EXIT_FAILED;
    (void)fputs("xplanectl: out of memory\n", stderr);
    xpl_output_abort(&o);
    return XPL_EXIT_FAILED;
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

static void table_session(struct xpl_table *t, const xpl_session_info *s) {
    char when[32];
    show_when(when, s->captured_unix_ms);
    xpl_table_text(t, xpl_str_from(s->name), 80);
    xpl_table_text(t, xpl_str_from(s->kind), 20);
    xpl_table_printf(t, "%zu", s->n_hosts);
    xpl_table_bytes(t, s->bytes);
    xpl_table_printf(t, "%s", when);
    if (s->progress > 0 && s->progress < 1)
        xpl_table_printf(t, "%s %.0f%%", s->state, s->progress * 100);
    else if (s->n_lost)
        xpl_table_printf(t, "%s (%zu host%s lost)", s->state, s->n_lost, s->n_lost > 1 ? "s" : "");
    else
        xpl_table_printf(t, "%s", s->state);
    table_labels(t, s);
}

static int print_sessions(const struct xpl_args *a, const xpl_sessions *list) {
    const size_t n = xpl_sessions_count(list);
    if (a->json || a->csv) {
        struct xpl_buf b;
        xpl_buf_init(&b, (size_t)1 << 30);
        for (size_t i = 0; i < n; i++) {
            xpl_buf_putc(&b, i ? ',' : '[');
            json_session(&b, xpl_sessions_get(list, i));
        }
        if (!n) xpl_buf_putc(&b, '[');
        return xpl_show_listing(a, &b);
    }
    static const char *const columns[] = {"SESSION",  "KIND",  ">HOSTS", ">SIZE",
                                          "CAPTURED", "STATE", "LABELS"};
    struct xpl_table *t = xpl_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < n; i++)
        table_session(t, xpl_sessions_get(list, i));
    return xpl_show_table(a, t);
}

// Lost hosts stand behind the others, by the names that the capture was told.
static int print_hosts_json(const struct xpl_args *a, const xpl_session_info *s) {
    struct xpl_buf b;
    xpl_buf_init(&b, (size_t)1 << 30);
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
        char when[32];
        show_when(when, s->hosts[i].modified_unix_ms);
        xpl_table_text(t, xpl_str_from(s->hosts[i].name), 80);
        xpl_table_text(t, xpl_str_from(s->kind), 20);
        xpl_table_bytes(t, s->hosts[i].bytes);
        xpl_table_printf(t, "%s", when);
        xpl_table_printf(t, "%s", s->hosts[i].state);
        xpl_table_text(t, xpl_str_from(s->hosts[i].error), 100);
    }
    for (size_t i = 0; i < s->n_lost; i++)
        table_lost(t, s, &s->lost[i]);
    return xpl_show_table(a, t);
}

static int print_tools(const struct xpl_args *a, const xpl_session_info *s) {
    if (!a->json && !a->csv) {
        for (size_t i = 0; i < s->n_tools; i++)
            (void)puts(s->tools[i]);
        return XPL_EXIT_OK;
    }
    struct xpl_buf b;
    xpl_buf_init(&b, (size_t)1 << 20);
    xpl_buf_putc(&b, '[');
    for (size_t i = 0; i < s->n_tools; i++) {
        if (i) xpl_buf_putc(&b, ',');
        xpl_json_str(&b, xpl_str_from(s->tools[i]), false);
    }
    return xpl_show_listing(a, &b);
}

int xpl_cmd_sessions(const struct xpl_args *a) {
    xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    xpl_sessions *list = NULL;
    xpl_result r;
    const int status =
        xpl_client_sessions(c, &list, &r) == 0 ? print_sessions(a, list) : xpl_remote_failed(&r);
    xpl_sessions_free(list);
    xpl_client_close(c);
    return status;
}

static int with_session(const struct xpl_args *a,
                        int (*print)(const struct xpl_args *, const xpl_session_info *)) {
    xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    xpl_sessions *one = NULL;
    xpl_result r;
    const int status = xpl_client_session(c, a->rest[1], &one, &r) == 0
                           ? print(a, xpl_sessions_get(one, 0))
                           : xpl_remote_failed(&r);
    xpl_sessions_free(one);
    xpl_client_close(c);
    return status;
}

int xpl_cmd_hosts(const struct xpl_args *a) {
    return with_session(a, print_hosts);
}

int xpl_cmd_tools(const struct xpl_args *a) {
    if (a->all != (a->n_rest == 2))
        return a->all ? xpl_list_tools(a) : with_session(a, print_tools);
    (void)fputs("Usage: xplanectl tools SESSION | --all\n", stderr);
    return XPL_EXIT_USAGE;
}

int xpl_cmd_tool(const struct xpl_args *a) {
    xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    const xpl_tool_request q = xpl_remote_request(a, a->rest[1], a->rest[2]);
    xpl_answer *answer = NULL;
    xpl_result r;
    int status = XPL_EXIT_FAILED;
    if (xpl_remote_tool(a, c, &q, &answer, &r) == 0) {
        xpl_remote_warn(answer);
        size_t n;
        const void *const p = xpl_answer_data(answer, &n);
        status = xpl_write_answer(a, p, n)
                     ? xpl_answered(a->rest[1], xpl_answer_warning(answer, 0) != NULL)
                     : XPL_EXIT_FAILED;
    } else {
        status = xpl_remote_failed(&r);
    }
    xpl_answer_free(answer);
    xpl_client_close(c);
    return status;
}
