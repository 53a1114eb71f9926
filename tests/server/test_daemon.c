// SPDX-License-Identifier: Apache-2.0
// Requests to the daemon from outside: answers, errors, limits, cancellation, many at once.  Usage:
// test_daemon SCENARIO
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tools/tool.h"
#include "base/status.h"
#include "proto/xplaned/v1/server.pb-c.h"
#include "rpc/client.h"
#include "tests/check.h"
#include "tests/server/daemon_fixture.h"
#include "tests/server/harness.h"

static void scenario_answers(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    char *cold = all_answers(c, "run", "vm", NULL);
    char *warm = all_answers(c, "run", "vm", "memory");
    CHECK(strcmp(cold, warm) == 0);
    CHECK(strstr(cold, "\"cols\""));
    free(cold);
    free(warm);
    xpl_sessions *s = NULL;
    CHECK_EQ(xpl_client_sessions(c, &s, NULL), 0);
    CHECK_EQ(xpl_sessions_count(s), 1);
    CHECK(strcmp(xpl_sessions_get(s, 0)->name, "run") == 0);
    CHECK(strcmp(xpl_sessions_get(s, 0)->state, "stored") == 0);
    CHECK(strcmp(xpl_sessions_get(s, 0)->kind, "xspace") == 0);
    xpl_sessions_free(s);
    CHECK_EQ(xpl_client_session(c, "run", &s, NULL), 0);
    size_t n_tools, n = 0;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    for (size_t i = 0; i < n_tools; i++)
        n += tools[i]->needs[0] != &xpl_product_iree_bundle;
    CHECK_EQ(xpl_sessions_get(s, 0)->n_tools, n);
    CHECK(strcmp(xpl_sessions_get(s, 0)->hosts[0].name, "vm") == 0);
    xpl_sessions_free(s);
    CHECK(log_has(&d, "tool=overview_page session=run"));
    CHECK(log_has(&d, "source=memory"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

static void scenario_errors(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    add_session(dir, "two", "a", any_profile());
    add_session(dir, "two", "b", any_profile());
    char path[256];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/two/broken.xplane.pb", dir);
    write_file(path, "\x0a\xff\xff\x03zz", 6);
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    CHECK_EQ(ask_tool(c, "nope", "overview_page", NULL, NULL, &r), XPL_NOT_FOUND);
    CHECK(strstr(r.message, "nope"));
    CHECK_EQ(ask_tool(c, "run", "overview_page", "nobody", NULL, &r), XPL_NOT_FOUND);
    CHECK(strstr(r.message, "nobody"));
    CHECK_EQ(ask_tool(c, "run", "no_tool", NULL, NULL, &r), XPL_INVALID_ARGUMENT);
    CHECK(strstr(r.message, "overview_page"));
    CHECK_EQ(ask_tool(c, "../run", "overview_page", NULL, NULL, &r), XPL_NOT_FOUND);
    static const char *const bad[] = {"group_by", "colour"};
    const xpl_tool_request q = {
        .size = sizeof q, .session = "run", .tool = "op_profile", .options = bad, .n_options = 1};
    xpl_answer *a = NULL;
    CHECK_EQ(xpl_client_tool(c, &q, &a, &r), XPL_INVALID_ARGUMENT);
    CHECK(strstr(r.message, "category"));
    CHECK_EQ(ask_tool(c, "two", "memory_profile", NULL, NULL, &r), XPL_INVALID_ARGUMENT);
    CHECK(strstr(r.message, "a, b"));
    // A broken host is left out and named, unless the request names it.
    CHECK_EQ(ask_tool(c, "two", "overview_page", NULL, &a, &r), 0);
    CHECK(xpl_answer_warning(a, 0) && strstr(xpl_answer_warning(a, 0), "broken"));
    xpl_answer_free(a);
    CHECK_EQ(ask_tool(c, "two", "overview_page", "broken", NULL, &r), XPL_DATA_LOSS);
    CHECK(strstr(r.message, "broken.xplane.pb"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    // nor does the stored answer about all hosts serve where the broken one is named
    d = start_daemon(dir, state, no_prefetch);
    c = open_client(&d, 60000);
    static const char *const named[] = {"a", "b", "broken"};
    const xpl_tool_request all = {.size = sizeof all,
                                  .session = "two",
                                  .tool = "overview_page",
                                  .hosts = named,
                                  .n_hosts = 3};
    CHECK_EQ(xpl_client_tool(c, &all, &a, &r), XPL_DATA_LOSS);
    CHECK_EQ(ask_tool(c, "two", "overview_page", NULL, &a, &r), 0);
    CHECK(strcmp(xpl_answer_source(a), "store") == 0);
    xpl_answer_free(a);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Until one was refused, and six times at least: clients may not meet each other at once.
static bool asks_again(struct storm *s, int asked) {
    pthread_mutex_lock(&s->mu);
    const bool again = asked < 6 || (s->exhausted == 0 && asked < 1000);
    pthread_mutex_unlock(&s->mu);
    return again;
}

static void *storm_thread(void *arg) {
    struct storm *s = arg;
    xpl_client *c = open_client(s->d, 60000);
    static const char *const bypass[] = {"use_saved_result", "false"};
    for (int i = 0; asks_again(s, i); i++) {
        const xpl_tool_request q = {.size = sizeof q,
                                    .session = "run",
                                    .tool = "overview_page",
                                    .options = bypass,
                                    .n_options = 1};
        xpl_answer *a = NULL;
        xpl_result r;
        const int code = xpl_client_tool(c, &q, &a, &r);
        pthread_mutex_lock(&s->mu);
        s->ok += code == 0;
        s->exhausted += code == XPL_RESOURCE_EXHAUSTED;
        s->other += code != 0 && code != XPL_RESOURCE_EXHAUSTED;
        s->retry = s->retry || (code == XPL_RESOURCE_EXHAUSTED && r.retry_after_ms > 0);
        pthread_mutex_unlock(&s->mu);
        xpl_answer_free(a);
    }
    xpl_client_close(c);
    return NULL;
}

static void scenario_limits(void) {
    static const char *const few[] = {
        "--no-prefetch", "--workers", "1", "--max-concurrent-requests", "1", NULL};
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    struct daemon_proc d = start_daemon(dir, state, few);
    struct storm s = {.d = &d, .mu = PTHREAD_MUTEX_INITIALIZER};
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, storm_thread, &s), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    CHECK(s.ok > 0);
    CHECK(s.exhausted > 0);
    CHECK(s.retry);
    CHECK_EQ(s.other, 0);
    CHECK_EQ(stop_daemon(&d), 0);
    // a request may not use more memory than it is allowed
    static const char *const tight[] = {"--no-prefetch", "--memory-limit", "1MiB", NULL};
    d = start_daemon(dir, make_dir(), tight);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    const int code = ask_tool(c, "run", "overview_page", NULL, NULL, &r);
    CHECK(code == XPL_RESOURCE_EXHAUSTED || code == 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Clients that give up free the workers, and stopping does not wait for them.
static void scenario_cancel(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    static const char *const bypass[] = {"use_saved_result", "false"};
    for (int i = 0; i < 40; i++) {
        xpl_client *c = open_client(&d, 1 + i % 5);
        const xpl_tool_request q = {.size = sizeof q,
                                    .session = "run",
                                    .tool = "op_profile",
                                    .options = bypass,
                                    .n_options = 1};
        xpl_answer *a = NULL;
        xpl_result r;
        const int code = xpl_client_tool(c, &q, &a, &r);
        CHECK(code == 0 || code == XPL_DEADLINE_EXCEEDED || code == XPL_CANCELLED ||
              code == XPL_UNAVAILABLE);
        xpl_answer_free(a);
        xpl_client_close(c);
    }
    xpl_client *c = open_client(&d, 60000);
    CHECK_EQ(ask_tool(c, "run", "op_profile", NULL, NULL, NULL), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

// ---- many at once ----

struct crowd {
    struct daemon_proc *d;
    const char *tool;
    pthread_t thread;
};

static void *crowd_thread(void *arg) {
    struct crowd *w = arg;
    xpl_client *c = open_client(w->d, 60000);
    CHECK_EQ(ask_tool(c, "run", w->tool, NULL, NULL, NULL), 0);
    xpl_client_close(c);
    return NULL;
}

static uint64_t conversions(const struct daemon_proc *d) {
    struct xpl_rpc_channel *ch = NULL;
    const struct xpl_rpc_channel_options co = {.size = sizeof co, .target = d->address};
    CHECK_EQ(xpl_rpc_channel_open(&co, &ch, NULL), XPL_OK);
    struct xpl_rpc_reply reply = {0};
    CHECK_EQ(xpl_rpc_unary(ch, "/xplaned.v1.ServerService/GetServerStats", (xpl_bytes_t){0}, NULL,
                           &reply, NULL),
             XPL_OK);
    Xplaned__V1__ServerStats *s =
        xplaned__v1__server_stats__unpack(NULL, reply.bytes.len, reply.bytes.ptr);
    CHECK(s && s->queue);
    const uint64_t n = s->queue->conversions + s->queue->conversions_failed;
    xplaned__v1__server_stats__free_unpacked(s, NULL);
    xpl_rpc_reply_fini(&reply);
    xpl_rpc_channel_close(ch);
    return n;
}

// The names of the tools that are made of the same OpStats.
static size_t op_stats_tools(const char **ret, size_t max) {
    size_t n_tools, n = 0;
    const struct xpl_tool *const first = xpl_tool_find(XPL_STR("op_profile"));
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    for (size_t i = 0; i < n_tools && n < max; i++)
        if (tools[i]->needs[0] == &xpl_product_op_stats && !tools[i]->needs[1] &&
            tools[i]->variant == first->variant)
            ret[n++] = tools[i]->name;
    CHECK(n > 1);
    return n;
}

// Different questions at once about one cold session convert each host once, even where nothing
// can be kept in memory meanwhile.
static void scenario_storm(void) {
    static const char *const forgetful[] = {
        "--no-prefetch", "--answer-cache", "0", "--workers", "8", NULL};
    const char *about[64];
    const size_t n_about = op_stats_tools(about, 64);
    const char *const *const args[] = {no_prefetch, forgetful};
    for (int round = 0; round < 2; round++) {
        const char *dir = make_dir(), *state = make_dir();
        add_session(dir, "run", "a", any_profile());
        add_session(dir, "run", "b", any_profile());
        struct daemon_proc d = start_daemon(dir, state, args[round]);
        struct crowd crowd[64];
        for (size_t i = 0; i < 64; i++) {
            crowd[i] = (struct crowd){.d = &d, .tool = about[i % n_about]};
            CHECK_EQ(pthread_create(&crowd[i].thread, NULL, crowd_thread, &crowd[i]), 0);
        }
        for (size_t i = 0; i < 64; i++)
            pthread_join(crowd[i].thread, NULL);
        // Without memory, a request that begins after the conversion, but before the store has the
        // result, starts over: how many do depends on the machine, but not all of them.
        CHECK(round ? conversions(&d) < 2 * 64 : conversions(&d) == 2);
        CHECK_EQ(stop_daemon(&d), 0);
    }
}

// A program that writes all the time does not hide other changes in LOGDIR.
static atomic_bool scribbled_enough;

static void *scribble(void *arg) {
    FILE *f = fopen(arg, "wb");
    CHECK(f);
    while (!atomic_load(&scribbled_enough)) {
        CHECK(fputc('x', f) == 'x' && fflush(f) == 0);
        sleep_ms(4);
    }
    (void)fclose(f);
    return NULL;
}

static void scenario_busy(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    const char *const args[] = {"--no-prefetch", "--scan-interval", "1h", NULL};
    struct daemon_proc d = start_daemon(dir, state, args);
    char path[256];
    (void)snprintf(path, sizeof path, "%s/events.out", dir);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, scribble, path), 0);
    sleep_ms(300);
    add_session(dir, "later", "vm", any_profile());
    xpl_client *c = open_client(&d, 60000);
    int code = XPL_NOT_FOUND;
    for (int waited = 0; waited < PATIENCE_MS && code == XPL_NOT_FOUND; waited += 50) {
        sleep_ms(50);
        code = ask_tool(c, "later", "kernel_stats", NULL, NULL, NULL);
    }
    CHECK_EQ(code, 0);
    xpl_client_close(c);
    atomic_store(&scribbled_enough, true);
    pthread_join(t, NULL);
    CHECK_EQ(stop_daemon(&d), 0);
}

int main(int argc, char **argv) {
    static const struct scenario scenarios[] = {
        {"answers", scenario_answers}, {"errors", scenario_errors}, {"limits", scenario_limits},
        {"cancel", scenario_cancel},   {"storm", scenario_storm},   {"busy", scenario_busy},
    };
    return run_scenario(scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
