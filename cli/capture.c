// SPDX-License-Identifier: Apache-2.0
// Captures, their history, schedules.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/std_fds.h"
#include "base/text/parse.h"
#include "base/text/terminal.h"
#include "capture/capture.h"
#include "cli/cleaner.h"
#include "cli/remote.h"
#include "cli/table.h"
#include "storage/make_dirs.h"
#include "storage/objects/objects.h"

enum { MAX_TARGETS = XPL_CAPTURE_MAX_TARGETS };

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
}

static int is_cancelled(void *arg) {
    (void)arg;
    return stopped;
}

// ---- lists of names ----

struct names {
    char *text; // all of them, cut at commas
    const char *list[MAX_TARGETS];
    size_t n;
};

static bool add_names(struct names *s, char *text) {
    for (char *at = text, *comma; at; at = comma) {
        comma = strchr(at, ',');
        if (comma) *comma++ = 0;
        if (!*at) continue;
        if (s->n == MAX_TARGETS) return false;
        s->list[s->n++] = at;
    }
    return true;
}

// Joins the arguments with commas and splits them again.
static bool split(struct names *s, const char *const *args, size_t n) {
    size_t len = 1;
    for (size_t i = 0; i < n; i++)
        len += strlen(args[i]) + 1;
    *s = (struct names){.text = xpl_sys_alloc(len)};
    if (!s->text) return false;
    char *at = s->text;
    for (size_t i = 0; i < n; i++) {
        at = stpcpy(at, args[i]);
        *at++ = ',';
    }
    *at = 0;
    return add_names(s, s->text);
}

// ---- progress ----

struct watcher {
    const struct xpl_args *a;
    const char *states[MAX_TARGETS]; // last shown
    char session[512];
    struct xpl_buf json;
    size_t n_stored, n_hosts;
    int cleaner; // to be told of the session; -1: none
};

static void show_text(const char *z) {
    xpl_terminal_text(xpl_str_from(z), SIZE_MAX, stderr);
}

static void show_host(const xpl_captured_host *h) {
    char size[32];
    show_text(h->target);
    (void)fprintf(stderr, ": %s", h->state);
    if (strcmp(h->state, "stored") == 0) {
        xpl_show_bytes(size, h->bytes);
        (void)fputc(' ', stderr);
        show_text(h->host);
        (void)fprintf(stderr, ", %s", size);
    }
    if (h->reason[0]) {
        (void)fputs(": ", stderr);
        show_text(h->reason);
    }
    (void)fputc('\n', stderr);
}

static void json_host(struct xpl_buf *b, const xpl_captured_host *h) {
    xpl_buf_str(b, XPL_STR("{\"target\":"));
    xpl_json_str(b, xpl_str_from(h->target), false);
    xpl_buf_printf(b, ",\"state\":\"%s\",\"host\":", h->state);
    xpl_json_str(b, xpl_str_from(h->host), false);
    xpl_buf_printf(b, ",\"bytes\":%" PRIu64 ",\"attempts\":%u,\"code\":%d,\"reason\":", h->bytes,
                   h->attempts, h->code);
    xpl_json_str(b, xpl_str_from(h->reason), false);
    xpl_buf_putc(b, '}');
}

static void json_hosts(struct xpl_buf *b, const xpl_captured_host *hosts, size_t n) {
    xpl_buf_str(b, XPL_STR("\"hosts\":["));
    for (size_t i = 0; i < n; i++) {
        if (i) xpl_buf_putc(b, ',');
        json_host(b, &hosts[i]);
    }
    xpl_buf_putc(b, ']');
}

static void on_progress(void *arg, const xpl_capture_status *s) {
    struct watcher *const w = arg;
    if (w->cleaner >= 0 && s->session[0]) {
        xpl_cleaner_watch(w->cleaner, w->a->logdir, s->session);
        w->cleaner = -1; // stays open until this process ends
    }
    for (size_t i = 0; i < s->n_hosts && i < MAX_TARGETS; i++) {
        // Each state once; how each host ended is shown with its reason, also with --quiet.
        const bool news = !w->states[i] || strcmp(w->states[i], s->hosts[i].state) != 0;
        if (!news || (w->a->quiet && !s->over)) continue;
        show_host(&s->hosts[i]);
        w->states[i] = s->hosts[i].state; // a constant of the library
    }
    if (!s->over) return;
    if (s->json) {
        xpl_buf_str(&w->json, xpl_str_from(s->json));
        if (w->json.n && w->json.p[w->json.n - 1] != '\n') xpl_buf_putc(&w->json, '\n');
    }
    (void)snprintf(w->session, sizeof w->session, "%s", s->session);
    w->n_stored = s->n_stored;
    w->n_hosts = s->n_hosts;
    if (s->json) return;
    xpl_buf_printf(&w->json, "{\"id\":%" PRIu64 ",\"session\":", s->id);
    xpl_json_str(&w->json, xpl_str_from(s->session), false);
    xpl_buf_printf(&w->json, ",\"elapsed_ms\":%" PRId64 ",", s->elapsed_ms);
    json_hosts(&w->json, s->hosts, s->n_hosts);
    xpl_buf_str(&w->json, XPL_STR("}\n"));
}

static int finish(const struct xpl_args *a, struct watcher *w, int code, const xpl_result *r) {
    const bool as_json = a->json && w->json.n && !w->json.failed;
    const bool written = !as_json || xpl_write_out(a, w->json.p, w->json.n);
    if (code && w->n_hosts) { // each host's outcome is printed already
        (void)fputs("xplanectl: no profile was taken\n", stderr);
        return XPL_EXIT_FAILED;
    }
    if (code) return xpl_remote_failed(r);
    if (!written || (!a->json && !xpl_write_line(a, w->session, strlen(w->session))))
        return XPL_EXIT_FAILED;
    if (w->n_stored < w->n_hosts)
        (void)fprintf(stderr, "xplanectl: %zu of %zu hosts were captured\n", w->n_stored,
                      w->n_hosts);
    return w->n_stored < w->n_hosts ? XPL_EXIT_PARTLY : XPL_EXIT_OK;
}

// `c` NULL: without a daemon.
static int run_capture(const struct xpl_args *a, xpl_client *c, xpl_capture_request *q) {
    struct watcher w = {.a = a, .cleaner = c ? -1 : xpl_cleaner_start()};
    xpl_result r;
    // A daemon may not answer: the second signal ends the command.
    const struct sigaction act = {.sa_handler = on_signal, .sa_flags = c ? (int)SA_RESETHAND : 0};
    xpl_buf_init(&w.json, (size_t)64 << 20);
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    q->progress = on_progress;
    q->cancelled = is_cancelled;
    q->arg = &w;
    char token[XPL_REMOTE_TOKEN];
    xpl_client_options o;
    int status = XPL_EXIT_FAILED;
    if (c)
        status = finish(a, &w, xpl_client_capture(c, q, &r), &r);
    else if (xpl_remote_options(a, token, &o))
        status = finish(a, &w, xpl_capture_direct(a->logdir, &o, q, &r), &r);
    xpl_buf_fini(&w.json);
    return status;
}

static int run_schedule(const struct xpl_args *a, xpl_client *c, const xpl_capture_request *q) {
    const xpl_schedule_request s = {.size = sizeof s,
                                    .capture = q,
                                    .every_ms = a->every_ms,
                                    .continuous = a->continuous,
                                    .keep_count = (uint64_t)a->keep,
                                    .keep_bytes = (uint64_t)a->keep_bytes,
                                    .keep_age_ms = a->keep_age_ms};
    uint64_t id = 0;
    xpl_result r;
    if (xpl_client_schedule(c, &s, &id, &r) != 0) return xpl_remote_failed(&r);
    char number[24];
    (void)snprintf(number, sizeof number, "%" PRIu64, id);
    if (!xpl_write_line(a, number, strlen(number))) return XPL_EXIT_FAILED;
    (void)fprintf(stderr,
                  "xplanectl: the daemon captures from now on; see `xplanectl schedules`, end it "
                  "with `xplanectl unschedule %" PRIu64 "`\n",
                  id);
    return XPL_EXIT_OK;
}

static int usage(const char *text) {
    (void)fprintf(stderr, "xplanectl: %s\nTry: xplanectl --help\n", text);
    return XPL_EXIT_USAGE;
}

static int with_names(const struct xpl_args *a, const struct names *targets,
                      const struct names *hosts) {
    if (!targets->n) return usage("no target: HOST:PORT of a profiler server");
    if (a->host_names && hosts->n != targets->n)
        return usage("--host-names: as many names as targets, please");
    xpl_capture_request q = {.size = sizeof q,
                             .targets = targets->list,
                             .n_targets = targets->n,
                             .host_names = a->host_names ? hosts->list : NULL,
                             .session = a->session,
                             .duration_ms = a->duration_ms,
                             .delay_ms = a->delay_ms,
                             .host_tracer_level = (int)a->host_tracer,
                             .device_tracer_level = (int)a->device_tracer,
                             .python_tracer_level = (int)a->python_tracer,
                             .advanced = a->advanced,
                             .n_advanced = a->n_advanced,
                             .retries = (unsigned)a->retries,
                             .remote_logdir = a->remote_logdir,
                             .detach = a->detach,
                             .connect_timeout_ms = a->connect_timeout_ms,
                             .answer_timeout_ms = a->answer_timeout_ms};
    if (a->direct) return run_capture(a, NULL, &q);
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    return a->every_ms ? run_schedule(a, c, &q) : run_capture(a, c, &q);
}

// As the daemon does: a missing directory is made, with a message.
static bool make_logdir(const char *logdir) {
    if (xpl_objects_is_url(logdir)) {
        (void)fputs("xplanectl: --direct writes to a directory, not to an object store: leave it "
                    "out, and capture by a daemon that has --logdir there\n",
                    stderr);
        return false;
    }
    struct stat st;
    if (stat(logdir, &st) == 0 || errno != ENOENT) return true; // the error is reported later
    if (!xpl_make_dirs(logdir, 0777)) {
        xpl_say("--logdir %s is missing and cannot be made: %s", logdir, strerror(errno));
        return false;
    }
    xpl_say("--logdir %s was missing, and is made", logdir);
    return true;
}

int xpl_cmd_capture(const struct xpl_args *a) {
    struct names targets, hosts = {0};
    if (!a->every_ms && (a->continuous || a->keep || a->keep_age_ms || a->keep_bytes))
        return usage("--keep, --keep-age, --keep-bytes and --continuous belong to --every TIME");
    if (a->direct && (!a->logdir || a->every_ms))
        return usage("--direct needs --logdir DIR, and cannot be repeated by --every");
    if (a->direct && !make_logdir(a->logdir)) return XPL_EXIT_FAILED;
    if (a->direct) xpl_fd_limit_raise(); // each target takes one
    const bool ok = split(&targets, a->rest + 1, a->n_rest - 1) &&
                    (!a->host_names || split(&hosts, &a->host_names, 1));
    const int status = ok ? with_names(a, &targets, &hosts) : usage("at most 4096 targets");
    xpl_sys_free(targets.text);
    xpl_sys_free(hosts.text);
    return status;
}

// ---- history and schedules ----

static void json_capture(struct xpl_buf *b, const xpl_capture_info *i) {
    xpl_buf_printf(b, "{\"id\":%" PRIu64 ",\"state\":\"%s\",\"session\":", i->id, i->state);
    xpl_json_str(b, xpl_str_from(i->session), false);
    xpl_buf_str(b, XPL_STR(",\"message\":"));
    xpl_json_str(b, xpl_str_from(i->message), false);
    xpl_buf_printf(b,
                   ",\"begin_unix_ms\":%" PRId64 ",\"end_unix_ms\":%" PRId64
                   ",\"schedule_id\":%" PRIu64 ",",
                   i->begin_unix_ms, i->end_unix_ms, i->schedule_id);
    json_hosts(b, i->hosts, i->n_hosts);
    xpl_buf_putc(b, '}');
}

static int print_captures(const struct xpl_args *a, const xpl_captures *list) {
    const xpl_capture_info *c;
    if (a->json || a->csv) {
        struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
        xpl_buf_putc(&b, '[');
        for (size_t i = 0; (c = xpl_captures_get(list, i)); i++) {
            if (i) xpl_buf_putc(&b, ',');
            json_capture(&b, c);
        }
        return xpl_show_listing(a, &b);
    }
    static const char *const columns[] = {">ID",     "BEGIN",     "STATE",  ">HOSTS",
                                          "SESSION", ">SCHEDULE", "PROBLEM"};
    struct xpl_table *t = xpl_table_new(columns, 7);
    for (size_t i = 0; (c = xpl_captures_get(list, i)); i++) {
        xpl_table_printf(t, "%" PRIu64, c->id);
        xpl_table_when(t, c->begin_unix_ms);
        xpl_table_printf(t, "%s", c->state);
        xpl_table_printf(t, "%zu/%zu", c->n_stored, c->n_hosts);
        xpl_table_text(t, xpl_str_from(c->session), 60);
        if (c->schedule_id)
            xpl_table_printf(t, "%" PRIu64, c->schedule_id);
        else
            xpl_table_printf(t, "-");
        xpl_table_text(t, xpl_str_from(c->message), 100);
    }
    return xpl_show_table(a, t);
}

static void json_schedule(struct xpl_buf *b, const xpl_schedule_info *s) {
    xpl_buf_printf(b, "{\"id\":%" PRIu64 ",\"targets\":[", s->id);
    for (size_t i = 0; i < s->n_targets; i++) {
        if (i) xpl_buf_putc(b, ',');
        xpl_json_str(b, xpl_str_from(s->targets[i]), false);
    }
    xpl_buf_printf(b,
                   "],\"every_ms\":%" PRId64 ",\"next_unix_ms\":%" PRId64
                   ",\"continuous\":%s,\"last_capture_id\":%" PRIu64
                   ",\"sessions\":%u,\"bytes\":%" PRIu64 "}",
                   s->every_ms, s->next_unix_ms, s->continuous ? "true" : "false",
                   s->last_capture_id, s->sessions, s->bytes);
}

static int print_schedules(const struct xpl_args *a, const xpl_captures *list) {
    const xpl_schedule_info *s;
    if (a->json || a->csv) {
        struct xpl_buf b = xpl_buf_of((size_t)1 << 30);
        xpl_buf_putc(&b, '[');
        for (size_t i = 0; (s = xpl_captures_schedule(list, i)); i++) {
            if (i) xpl_buf_putc(&b, ',');
            json_schedule(&b, s);
        }
        return xpl_show_listing(a, &b);
    }
    static const char *const columns[] = {">ID", ">EVERY", "NEXT", ">SESSIONS", ">SIZE", "TARGETS"};
    struct xpl_table *t = xpl_table_new(columns, 6);
    for (size_t i = 0; (s = xpl_captures_schedule(list, i)); i++) {
        xpl_table_printf(t, "%" PRIu64, s->id);
        xpl_table_printf(t, "%.1f s", (double)s->every_ms / 1000);
        xpl_table_when(t, s->next_unix_ms);
        xpl_table_printf(t, "%u", s->sessions);
        xpl_table_bytes(t, s->bytes);
        xpl_table_printf(t, "%zu: %.60s%s", s->n_targets, s->n_targets ? s->targets[0] : "",
                         s->n_targets > 1 ? ", ..." : "");
    }
    return xpl_show_table(a, t);
}

static int with_list(const struct xpl_args *a,
                     int (*print)(const struct xpl_args *, const xpl_captures *)) {
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    xpl_captures *list = NULL;
    xpl_result r;
    const int status =
        xpl_client_captures(c, 0, &list, &r) == 0 ? print(a, list) : xpl_remote_failed(&r);
    xpl_captures_free(list);
    return status;
}

int xpl_cmd_captures(const struct xpl_args *a) {
    return with_list(a, print_captures);
}

int xpl_cmd_schedules(const struct xpl_args *a) {
    return with_list(a, print_schedules);
}

static int with_id(const struct xpl_args *a,
                   int (*call)(xpl_client *c, uint64_t id, xpl_result *r)) {
    int64_t id;
    if (!xpl_parse_int(xpl_str_from(a->rest[1]), 1, INT64_MAX, &id)) return usage("ID is a number");
    XPL_AUTO(xpl_remote_close) xpl_client *c = xpl_remote_open(a);
    if (!c) return XPL_EXIT_FAILED;
    xpl_result r;
    return call(c, (uint64_t)id, &r) == 0 ? XPL_EXIT_OK : xpl_remote_failed(&r);
}

int xpl_cmd_cancel(const struct xpl_args *a) {
    return with_id(a, xpl_client_cancel_capture);
}

int xpl_cmd_unschedule(const struct xpl_args *a) {
    return with_id(a, xpl_client_unschedule);
}
