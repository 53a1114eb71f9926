// SPDX-License-Identifier: Apache-2.0
// The daemon from outside: answers, errors, restarts, crashes, limits, cancellation, changing
// files, two daemons on one store, an XProf worker's contract.  Usage: test_daemon SCENARIO
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "proto/xplaned/v1/server.pb-c.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "proto/xprof/worker_service.pb-c.h"
#include "rpc/client.h"
#include "rpc/message.h"
#include "tests/check.h"
#include "tests/server/harness.h"

#define TRAIN "logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb"
#define TPU   "logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb"

static const char *const no_prefetch[] = {"--no-prefetch", NULL};

static const char *any_profile(void) {
    return profile(TRAIN);
}

// Answers of all tools for one host, one after the other, as one string (owned by the caller).
static char *all_answers(xpl_client *c, const char *session, const char *host, const char *source) {
    char *all = NULL;
    size_t n = 0;
    size_t n_tools;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    for (size_t i = 0; i < n_tools; i++) {
        xpl_answer *a = NULL;
        xpl_result r;
        if (tools[i]->keeps_no_answer) continue;
        const int code = ask_tool(c, session, tools[i]->name, host, &a, &r);
        if (code) fprintf(stderr, "%s: %s\n", tools[i]->name, r.message);
        CHECK_EQ(code, 0);
        if (source && strcmp(xpl_answer_source(a), source) != 0) {
            fprintf(stderr, "%s came from %s\n", tools[i]->name, xpl_answer_source(a));
            FAIL_TEST("source");
        }
        size_t len;
        const void *const p = xpl_answer_data(a, &len);
        all = realloc(all, n + len + 2);
        CHECK(all);
        memcpy(all + n, p, len);
        n += len;
        all[n++] = '\n';
        all[n] = 0;
        xpl_answer_free(a);
    }
    return all;
}

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
    xpl_sessions_free(s);
    CHECK_EQ(xpl_client_session(c, "run", &s, NULL), 0);
    size_t n_tools;
    (void)xpl_tools(&n_tools);
    CHECK_EQ(xpl_sessions_get(s, 0)->n_tools, n_tools);
    CHECK(strcmp(xpl_sessions_get(s, 0)->hosts[0].name, "vm") == 0);
    xpl_sessions_free(s);
    CHECK(log_has(&d, "tool=overview_page session=run"));
    CHECK(log_has(&d, "source=memory"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

// The profile at `from`, compressed; free with xpl_buf_fini.
static struct xpl_buf compressed(const char *from, bool gzip) {
    struct xpl_buf in, out;
    FILE *const f = fopen(from, "rb");
    CHECK(f);
    xpl_buf_init(&in, 64 << 20);
    xpl_buf_init(&out, 64 << 20);
    for (size_t n = 1; n; in.n += n) {
        CHECK(xpl_buf_room(&in, 65536));
        n = fread(in.p + in.n, 1, 65536, f);
    }
    CHECK_EQ(fclose(f), 0);
    CHECK(xpl_buf_room(&out, in.n + 65536));
    if (gzip) {
        z_stream z = {.next_in = in.p, .avail_in = (unsigned)in.n};
        z.next_out = out.p, z.avail_out = (unsigned)out.cap;
        CHECK(deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
        CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
        out.n = z.total_out;
        deflateEnd(&z);
    } else {
        out.n = ZSTD_compress(out.p, out.cap, in.p, in.n, 1);
        CHECK(!ZSTD_isError(out.n));
    }
    xpl_buf_fini(&in);
    return out;
}

// Compressed profiles are answered as plain ones are, from memory and from the store, too; broken
// ones are named.
static void scenario_formats(void) {
    const char *dir = make_dir(), *state = make_dir();
    char path[300];
    xpl_result r;
    add_session(dir, "plain", "vm", any_profile());
    for (int gzip = 0; gzip < 2; gzip++) {
        const char *const run = gzip ? "gz" : "zst";
        add_session(dir, run, "vm", any_profile());
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/vm.xplane.pb", dir, run);
        CHECK_EQ(unlink(path), 0);
        struct xpl_buf b = compressed(any_profile(), gzip);
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/vm.xplane.pb.%s", dir, run, run);
        write_file(path, b.p, b.n);
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/cut.xplane.pb.%s", dir, run, run);
        write_file(path, b.p, b.n / 2);
        xpl_buf_fini(&b);
    }
    for (int again = 0; again < 2; again++) {
        struct daemon_proc d = start_daemon(dir, state, no_prefetch);
        xpl_client *c = open_client(&d, 60000);
        char *plain = all_answers(c, "plain", "vm", NULL);
        char *gz = all_answers(c, "gz", "vm", again ? "store" : "computed");
        char *zst = all_answers(c, "zst", "vm", again ? "store" : "computed");
        char *warm = all_answers(c, "gz", "vm", "memory");
        CHECK(strcmp(plain, gz) == 0 && strcmp(plain, zst) == 0 && strcmp(plain, warm) == 0);
        free(plain), free(gz), free(zst), free(warm);
        xpl_answer *a = NULL, *b = NULL;
        size_t n, m;
        CHECK_EQ(ask_tool(c, "plain", "trace_viewer@", "vm", &a, NULL), 0);
        CHECK_EQ(ask_tool(c, "zst", "trace_viewer@", "vm", &b, NULL), 0);
        const void *const p = xpl_answer_data(a, &n), *const q = xpl_answer_data(b, &m);
        CHECK(n == m && memcmp(p, q, n) == 0);
        xpl_answer_free(a);
        xpl_answer_free(b);
        CHECK_EQ(ask_tool(c, "gz", "overview_page", "cut", NULL, &r), XPL_DATA_LOSS);
        CHECK(strstr(r.message, "cut.xplane.pb.gz: the compressed file is truncated"));
        CHECK_EQ(ask_tool(c, "gz", "overview_page", NULL, &a, NULL), 0);
        CHECK(xpl_answer_warning(a, 0) && strstr(xpl_answer_warning(a, 0), "cut"));
        xpl_answer_free(a);
        xpl_client_close(c);
        CHECK_EQ(stop_daemon(&d), 0);
    }
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
    CHECK(strstr(r.message, "kernel_stats"));
    CHECK_EQ(ask_tool(c, "../run", "overview_page", NULL, NULL, &r), XPL_NOT_FOUND);
    static const char *const bad[] = {"group_by", "colour"};
    const xpl_tool_request q = {
        .size = sizeof q, .session = "run", .tool = "op_profile", .options = bad, .n_options = 1};
    xpl_answer *a = NULL;
    CHECK_EQ(xpl_client_tool(c, &q, &a, &r), XPL_INVALID_ARGUMENT);
    CHECK(strstr(r.message, "category"));
    CHECK_EQ(ask_tool(c, "two", "memory_profile", NULL, NULL, &r), XPL_INVALID_ARGUMENT);
    CHECK(strstr(r.message, "a, b"));
    // A broken host is left out and named, unless it was asked for by name.
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

static void scenario_restart(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    char *before = all_answers(c, "run", "vm", NULL);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    d = start_daemon(dir, state, no_prefetch);
    c = open_client(&d, 60000);
    char *after = all_answers(c, "run", "vm", "store");
    CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

// What one number the store's database says.
static int64_t query(const char *state, const char *sql) {
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    (void)snprintf(path, sizeof path, "%s/cache.db", state);
    CHECK_EQ(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_step(st), SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(st, 0);
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    return n;
}

// Rows for people are written whatever the number of hosts: from 9 on products are packed.
static void scenario_rows(void) {
    enum { HOSTS = 10 };
    const char *dir = make_dir(), *state = make_dir();
    for (int i = 0; i < HOSTS; i++) {
        char host[8];
        (void)snprintf(host, sizeof host, "h%d", i);
        add_session(dir, "many", host, any_profile());
    }
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    xpl_answer *a = NULL;
    xpl_result r;
    CHECK_EQ(ask_tool(c, "many", "overview_page", NULL, &a, &r), 0);
    xpl_answer_free(a);
    sleep_ms(1500); // rows are written when nothing else is waiting
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK_EQ(query(state, "SELECT count(DISTINCT host) FROM ops WHERE session='many'"), HOSTS);
}

// An answer that tells of a broken host names its file, so it is not given to the copy of a
// session.
static void scenario_left_out(void) {
    const char *dir = make_dir(), *state = make_dir();
    static const char *const runs[] = {"first", "second"};
    for (size_t i = 0; i < 2; i++) {
        char path[PATH_MAX];
        add_session(dir, runs[i], "a", any_profile());
        add_session(dir, runs[i], "b", any_profile());
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/b.xplane.pb", dir, runs[i]);
        write_file(path, "\x0a\xff\xff\x03zz", 6);
    }
    for (size_t i = 0; i < 2; i++) { // each in a daemon of its own, so that the store is asked
        struct daemon_proc d = start_daemon(dir, state, no_prefetch);
        xpl_client *c = open_client(&d, 60000);
        xpl_answer *a = NULL;
        xpl_result r;
        size_t n;
        CHECK_EQ(ask_tool(c, runs[i], "overview_page", NULL, &a, &r), 0);
        const char *const text = xpl_answer_data(a, &n);
        CHECK(memmem(text, n, runs[i], strlen(runs[i])));
        CHECK(!memmem(text, n, runs[1 - i], strlen(runs[1 - i])));
        CHECK(xpl_answer_warning(a, 0) && strstr(xpl_answer_warning(a, 0), runs[i]));
        xpl_answer_free(a);
        xpl_client_close(c);
        CHECK_EQ(stop_daemon(&d), 0);
    }
}

// Whether trace_viewer@ answers from a stored index.
static bool trace_is_stored(xpl_client *c, const char *session) {
    xpl_answer *a = NULL;
    xpl_result r;
    CHECK_EQ(ask_tool(c, session, "trace_viewer@", NULL, &a, &r), 0);
    const bool stored = strcmp(xpl_answer_source(a), "store") == 0;
    xpl_answer_free(a);
    return stored;
}

// A profile is known by its bytes: a copy below another LOGDIR is answered from the store, while a
// file of the same name and size with other bytes is not.
static void scenario_copies(void) {
    const char *dir = make_dir(), *elsewhere = make_dir(), *state = make_dir();
    char path[PATH_MAX];
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    char *first = all_answers(c, "run", "vm", NULL);
    CHECK(!trace_is_stored(c, "run"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    add_session(elsewhere, "again", "vm", any_profile());
    add_session(elsewhere, "other", "vm", any_profile());
    (void)snprintf(path, sizeof path, "%s/plugins/profile/other/vm.xplane.pb", elsewhere);
    size_t n;
    uint8_t *const bytes = read_file(path, &n);
    uint8_t *const at = memmem(bytes, n, "dot_general", 11);
    CHECK(at);
    at[1] = 'X';
    write_file(path, bytes, n);
    free(bytes);
    d = start_daemon(elsewhere, state, no_prefetch);
    c = open_client(&d, 60000);
    char *copy = all_answers(c, "again", "vm", "store");
    CHECK(strcmp(first, copy) == 0);
    CHECK(trace_is_stored(c, "again"));
    char *other = all_answers(c, "other", "vm", "computed");
    CHECK(!trace_is_stored(c, "other"));
    free(first);
    free(copy);
    free(other);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Killed at odd moments, again and again: what comes out afterwards is the same as ever.
static void scenario_kill(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char *expected = NULL;
    for (int i = 0; i < 8; i++) {
        struct daemon_proc d = start_daemon(dir, state, NULL);
        xpl_client *c = open_client(&d, 60000);
        char *now = all_answers(c, "run", "vm", NULL);
        if (expected) CHECK(strcmp(expected, now) == 0);
        free(expected);
        expected = now;
        sleep_ms(i * 7); // the writer is at another point each time
        xpl_client_close(c);
        kill_daemon(&d, SIGKILL);
    }
    free(expected);
}

static void scenario_two_daemons(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc one = start_daemon(dir, state, no_prefetch);
    struct daemon_proc two = start_daemon(dir, state, no_prefetch);
    xpl_client *a = open_client(&one, 60000), *b = open_client(&two, 60000);
    char *x = all_answers(a, "run", "vm", NULL), *y = all_answers(b, "run", "vm", NULL);
    CHECK(strcmp(x, y) == 0);
    free(x);
    free(y);
    xpl_client_close(a);
    xpl_client_close(b);
    CHECK_EQ(stop_daemon(&one), 0);
    CHECK_EQ(stop_daemon(&two), 0);
}

// The session's overview differs from `old` (or fails with `code`) within 10 s.
static void wait_for_change(xpl_client *c, const char *old, int code) {
    for (int i = 0; i < 200; i++) {
        xpl_answer *a = NULL;
        xpl_result r;
        const int got = ask_tool(c, "run", "framework_op_stats", NULL, &a, &r);
        size_t n = 0;
        const char *const p = a ? xpl_answer_data(a, &n) : NULL;
        const bool changed =
            got == code && (code || !old || n != strlen(old) || memcmp(p, old, n) != 0);
        xpl_answer_free(a);
        if (changed) return;
        sleep_ms(50);
    }
    FAIL_TEST("no change was seen");
}

static void scenario_files(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char path[256], moved[300];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/vm.xplane.pb", dir);
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    xpl_answer *a = NULL;
    xpl_result r;
    CHECK_EQ(ask_tool(c, "run", "framework_op_stats", NULL, &a, &r), 0);
    size_t n;
    const char *const p = xpl_answer_data(a, &n);
    char *old = strndup(p, n);
    xpl_answer_free(a);
    // replaced
    (void)snprintf(moved, sizeof moved, "%s.new", path);
    copy_file(profile("logdir/cpu/plugins/profile/tf_xla_jit/vm.xplane.pb"), moved);
    CHECK_EQ(rename(moved, path), 0);
    wait_for_change(c, old, 0);
    free(old);
    // truncated in the middle of a plane
    CHECK_EQ(truncate(path, 1000), 0);
    wait_for_change(c, NULL, XPL_DATA_LOSS);
    // empty: the empty answer, with a warning
    CHECK_EQ(truncate(path, 0), 0);
    wait_for_change(c, "x", 0);
    CHECK_EQ(ask_tool(c, "run", "framework_op_stats", NULL, &a, &r), 0);
    CHECK(xpl_answer_warning(a, 0) && strstr(xpl_answer_warning(a, 0), "empty"));
    xpl_answer_free(a);
    CHECK_EQ(unlink(path), 0);
    wait_for_change(c, NULL, XPL_NOT_FOUND);
    // a new session is noticed
    add_session(dir, "later", "vm", any_profile());
    for (int i = 0; i < 200 && ask_tool(c, "later", "op_profile", NULL, NULL, NULL) != 0; i++)
        sleep_ms(50);
    CHECK_EQ(ask_tool(c, "later", "op_profile", NULL, NULL, NULL), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

struct storm {
    struct daemon_proc *d;
    int ok, exhausted, other;
    bool retry;
    pthread_mutex_t mu;
};

static void *storm_thread(void *arg) {
    struct storm *s = arg;
    xpl_client *c = open_client(s->d, 60000);
    static const char *const fresh[] = {"use_saved_result", "false"};
    for (int i = 0; i < 6; i++) {
        const xpl_tool_request q = {.size = sizeof q,
                                    .session = "run",
                                    .tool = "overview_page",
                                    .options = fresh,
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
    static const char *const fresh[] = {"use_saved_result", "false"};
    for (int i = 0; i < 40; i++) {
        xpl_client *c = open_client(&d, 1 + i % 5);
        const xpl_tool_request q = {.size = sizeof q,
                                    .session = "run",
                                    .tool = "op_profile",
                                    .options = fresh,
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

static void *asking(void *arg) {
    struct storm *s = arg;
    xpl_client *c = open_client(s->d, 60000);
    static const char *const fresh[] = {"use_saved_result", "false"};
    for (;;) {
        const xpl_tool_request q = {.size = sizeof q,
                                    .session = "run",
                                    .tool = "overview_page",
                                    .options = fresh,
                                    .n_options = 1};
        xpl_answer *a = NULL;
        xpl_result r;
        const int code = xpl_client_tool(c, &q, &a, &r);
        xpl_answer_free(a);
        pthread_mutex_lock(&s->mu);
        s->ok += code == 0;
        s->other += code != 0 && code != XPL_UNAVAILABLE && code != XPL_CANCELLED;
        pthread_mutex_unlock(&s->mu);
        if (code) break;
    }
    xpl_client_close(c);
    return NULL;
}

// SIGTERM under load: what is under way is answered, later calls are UNAVAILABLE, status 0.
static void scenario_drain(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    struct storm s = {.d = &d, .mu = PTHREAD_MUTEX_INITIALIZER};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, asking, &s), 0);
    bool answered = false;
    for (int i = 0; i < 400 && !answered; i++) {
        sleep_ms(i ? 50 : 300);
        pthread_mutex_lock(&s.mu);
        answered = s.ok > 0;
        pthread_mutex_unlock(&s.mu);
    }
    CHECK_EQ(stop_daemon(&d), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    CHECK(s.ok > 0);
    CHECK_EQ(s.other, 0);
    CHECK(log_has(&d, "msg=stopped"));
}

// Clients that are connected and do nothing, not even look at their connections, hold nothing up.
static void scenario_idle_clients(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c[8];
    for (size_t i = 0; i < 8; i++) {
        c[i] = open_client(&d, 60000);
        CHECK_EQ(ask_tool(c[i], "run", "kernel_stats", NULL, NULL, NULL), 0);
    }
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    CHECK_EQ(stop_daemon(&d), 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    const long ms =
        (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    CHECK(ms < 4500); // 0.3 s on an idle machine; gRPC's clients look after 5 s by themselves
    for (size_t i = 0; i < 8; i++)
        xpl_client_close(c[i]);
}

// Exit status of a daemon that is started with `args`, which are wrong.
static int refused(const char *logdir, const char *args) {
    char command[512];
    (void)snprintf(command, sizeof command, "exec \"$XPLANED\" --logdir %s %s 2>/dev/null", logdir,
                   args);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Wrong settings are refused before anything starts: counts are digits, a file is a file.
static void wrong_settings(const char *dir) {
    char long_line[6000], path[256], args[300];
    CHECK_EQ(refused(dir, "--workers 1.5"), 2);
    CHECK_EQ(refused(dir, "--workers 0x2"), 2);
    CHECK_EQ(refused(dir, "--memory-limit 0x10"), 2);
    CHECK_EQ(refused(dir, "--log nonsense"), 2);
    CHECK_EQ(refused(dir, "--config /tmp"), 2);
    memset(long_line, 'x', sizeof long_line);
    memcpy(long_line, "listen = ", 9);
    (void)snprintf(path, sizeof path, "%s/long.conf", dir);
    write_file(path, long_line, sizeof long_line);
    (void)snprintf(args, sizeof args, "--config %s", path);
    CHECK_EQ(refused(dir, args), 2);
    CHECK_EQ(refused(dir, "--state-dir /dev/null/x --listen 127.example.com:0"), 1);
}

static void scenario_reload(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char path[256];
    wrong_settings(dir);
    (void)snprintf(path, sizeof path, "%s/xplaned.conf", state);
    write_file(path, "log = info\n", 11);
    const char *const args[] = {"--no-prefetch", "--config", path, NULL};
    struct daemon_proc d = start_daemon(dir, state, args);
    write_file(path, "log = nonsense\n", 15);
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings not reloaded"));
    write_file(path, "# quiet\nlog = info,request:error\n", 33);
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings reloaded"));
    xpl_client *c = open_client(&d, 60000);
    CHECK_EQ(ask_tool(c, "run", "kernel_stats", NULL, NULL, NULL), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    FILE *f = fopen(d.log_path, "r");
    char line[4096];
    while (f && fgets(line, sizeof line, f))
        CHECK(!strstr(line, "tool=kernel_stats"));
    CHECK(f);
    (void)fclose(f);
}

static void scenario_prefetch(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, NULL);
    CHECK(log_has(&d, "converted ahead"));
    CHECK_EQ(stop_daemon(&d), 0);
}

// ---- watching ----

static Xplaned__V1__SessionEvent__Kind next_event(struct xpl_rpc_stream *st, char *name,
                                                  size_t size) {
    struct xpl_rpc_reply msg = {0};
    struct xpl_error err = {0};
    bool more = false;
    CHECK_EQ(xpl_rpc_stream_next(st, &msg, &more, &err), XPL_OK);
    CHECK(more);
    struct xpl_arena arena;
    xpl_arena_init(&arena, 1 << 20);
    ProtobufCMessage *m = NULL;
    CHECK_EQ(xpl_rpc_message_unpack(&xplaned__v1__session_event__descriptor, msg.bytes, &arena, &m,
                                    &err),
             XPL_OK);
    const Xplaned__V1__SessionEvent *ev = (const Xplaned__V1__SessionEvent *)m;
    (void)snprintf(name, size, "%s", ev->session ? ev->session->name : "");
    const Xplaned__V1__SessionEvent__Kind kind = ev->kind;
    xpl_arena_fini(&arena);
    xpl_rpc_reply_fini(&msg);
    return kind;
}

static void scenario_watch(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "one", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_error err = {0};
    const struct xpl_rpc_channel_options co = {.size = sizeof co, .target = d.address};
    CHECK_EQ(xpl_rpc_channel_open(&co, &ch, &err), XPL_OK);
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 30000};
    struct xpl_rpc_stream *st = NULL;
    CHECK_EQ(xpl_rpc_stream_open(ch, "/xplaned.v1.SessionService/WatchSessions", (xpl_bytes_t){0},
                                 &o, &st, &err),
             XPL_OK);
    char name[64];
    CHECK_EQ(next_event(st, name, sizeof name), XPLANED__V1__SESSION_EVENT__KIND__KIND_PRESENT);
    CHECK(strcmp(name, "one") == 0);
    CHECK_EQ(next_event(st, name, sizeof name), XPLANED__V1__SESSION_EVENT__KIND__KIND_SYNCED);
    add_session(dir, "two", "vm", any_profile());
    CHECK_EQ(next_event(st, name, sizeof name), XPLANED__V1__SESSION_EVENT__KIND__KIND_ADDED);
    CHECK(strcmp(name, "two") == 0);
    CHECK_EQ(stop_daemon(&d), 0); // a watcher does not hold it up
    xpl_rpc_stream_close(st);
    xpl_rpc_channel_close(ch);
}

// ---- an aggregator's requests ----

static xpl_status_t get_profile(struct xpl_rpc_channel *ch, const char *path, const char *tool,
                                char *ret_path, size_t size) {
    Xprof__Pywrap__ProfileDataRequest q;
    Xprof__Pywrap__WorkerProfileDataRequest w;
    xprof__pywrap__profile_data_request__init(&q);
    xprof__pywrap__worker_profile_data_request__init(&w);
    q.session_id = (char *)(uintptr_t)path;
    q.tool_name = (char *)(uintptr_t)tool;
    w.origin_request = &q;
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 16);
    xpl_rpc_message_put(&b, &w.base);
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 60000};
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    const xpl_status_t st =
        xpl_rpc_unary(ch, "/xprof.pywrap.XprofAnalysisWorkerService/GetProfileData",
                      (xpl_bytes_t){b.p, b.n}, &o, &reply, &err);
    ret_path[0] = 0;
    if (st == XPL_OK) {
        Xprof__Pywrap__WorkerProfileDataResponse *r =
            xprof__pywrap__worker_profile_data_response__unpack(NULL, reply.bytes.len,
                                                                reply.bytes.ptr);
        CHECK(r);
        (void)snprintf(ret_path, size, "%.*s", (int)r->output.len, (const char *)r->output.data);
        xprof__pywrap__worker_profile_data_response__free_unpacked(r, NULL);
    }
    xpl_rpc_reply_fini(&reply);
    xpl_buf_fini(&b);
    return st;
}

static void check_opstats_file(const char *path) {
    FILE *f = fopen(path, "rb");
    CHECK(f);
    static uint8_t bytes[8 << 20];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    struct xpl_arena arena;
    xpl_arena_init(&arena, (size_t)256 << 20);
    struct xpl_opstats *s = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_opstats_decode((xpl_bytes_t){bytes, n}, &arena, &s, &err), XPL_OK);
    CHECK(s->has_run_environment);
    xpl_arena_fini(&arena);
}

static void scenario_worker(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    char path[512], socket_arg[300], files[300], answer[4096];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/broken.xplane.pb", dir);
    write_file(path, "\x0a\xff\xff\x03zz", 6);
    (void)snprintf(socket_arg, sizeof socket_arg, "unix:%s/worker.sock", state);
    (void)snprintf(files, sizeof files, "%s/files", state);
    const char *const args[] = {
        "--no-prefetch", "--xprof-worker", socket_arg, "--worker-dir", files, NULL};
    struct daemon_proc d = start_daemon(dir, state, args);
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_error err = {0};
    const struct xpl_rpc_channel_options co = {.size = sizeof co, .target = socket_arg};
    CHECK_EQ(xpl_rpc_channel_open(&co, &ch, &err), XPL_OK);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/vm.xplane.pb", dir);
    CHECK_EQ(get_profile(ch, path, "overview_page", answer, sizeof answer), XPL_OK);
    check_opstats_file(answer);
    CHECK_EQ(get_profile(ch, path, "op_profile", answer, sizeof answer), XPL_OK);
    CHECK_EQ(get_profile(ch, path, "trace_viewer@", answer, sizeof answer), XPL_UNIMPLEMENTED);
    CHECK_EQ(get_profile(ch, "/etc/passwd", "overview_page", answer, sizeof answer),
             XPL_UNIMPLEMENTED);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/none.xplane.pb", dir);
    CHECK_EQ(get_profile(ch, path, "overview_page", answer, sizeof answer), XPL_UNIMPLEMENTED);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/broken.xplane.pb", dir);
    CHECK_EQ(get_profile(ch, path, "overview_page", answer, sizeof answer), XPL_OUT_OF_RANGE);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
}

// ---- listeners, tokens, names ----

static int ask_at(const char *address, const char *token) {
    const xpl_client_options o = {.size = sizeof o, .timeout_ms = 30000, .token = token};
    xpl_client *c = NULL;
    xpl_result r;
    CHECK_EQ(xpl_client_open(address, &o, &c, &r), 0);
    const int code = ask_tool(c, "run", "overview_page", NULL, NULL, &r);
    xpl_client_close(c);
    return code;
}

static void scenario_unix(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char both[400], address[300];
    (void)snprintf(address, sizeof address, "unix:%s/x.sock", state);
    (void)snprintf(both, sizeof both, "127.0.0.1:0,%s", address);
    const char *const args[] = {"--no-prefetch", "--listen", both, NULL}; // the last one counts
    struct daemon_proc d = start_daemon(dir, state, args);
    CHECK_EQ(ask_at(d.address, NULL), 0);
    CHECK_EQ(ask_at(address, NULL), 0);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK(access(address + strlen("unix:"), F_OK) != 0);
}

// A component that cannot start: the daemon says why, takes down what runs already, and exits 1.
// The sanitizers see what is left behind.
static void scenario_unwind(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char listen[400], path[300];
    (void)snprintf(path, sizeof path, "%s/x.sock", state);
    (void)snprintf(listen, sizeof listen, "unix:%s,unix:/nonexistent/x", path);
    const struct {
        const char *const args[6];
        const char *why;
    } cases[] = {
        {{"--logdir", "/nonexistent/dir", NULL}, "cannot start: /nonexistent/dir"},
        {{"--token-file", "/nonexistent/token", NULL}, "cannot start: --token-file"},
        {{"--tls-cert", "/nonexistent/c", "--tls-key", "/nonexistent/k", NULL}, "cannot start: "},
        {{"--listen", listen, NULL}, "cannot start: /nonexistent/x"},
        {{"--listen", "192.0.2.1:0", NULL}, "cannot start: --listen 192.0.2.1:0"},
        {{"--xprof-worker", "unix:/nonexistent/x", NULL}, "cannot start: /nonexistent/x"},
        {{"--xprof-worker", "192.0.2.1:0", NULL}, "cannot start: --xprof-worker 192.0.2.1:0"},
        {{"--http", "nowhere", NULL}, "cannot start: --http nowhere"},
        {{"--http", "127.0.0.1:0,127.0.0.1:99999", NULL}, "there is no such port"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct daemon_proc d;
        CHECK_EQ(run_refused_daemon(dir, state, cases[i].args, &d), 1);
        CHECK(log_has(&d, cases[i].why));
        CHECK(access(path, F_OK) != 0); // the socket that was bound before
    }
    // Nothing that is left stands in the way of the next one.
    struct daemon_proc d = start_daemon(dir, state, NULL);
    CHECK_EQ(ask_at(d.address, NULL), 0);
    CHECK_EQ(stop_daemon(&d), 0);
}

static void scenario_token(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char path[256];
    (void)snprintf(path, sizeof path, "%s/token", state);
    write_file(path, "first\n", 6);
    const char *const args[] = {"--no-prefetch", "--token-file", path, NULL};
    struct daemon_proc d = start_daemon(dir, state, args);
    CHECK_EQ(ask_at(d.address, NULL), XPL_UNAUTHENTICATED);
    CHECK_EQ(ask_at(d.address, "wrong"), XPL_UNAUTHENTICATED);
    CHECK_EQ(ask_at(d.address, "first"), 0);
    write_file(path, "second\n", 7);
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings reloaded"));
    CHECK_EQ(ask_at(d.address, "first"), XPL_UNAUTHENTICATED);
    CHECK_EQ(ask_at(d.address, "second"), 0);
    write_file(path, "\n", 1); // no token: the old one stays
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings not reloaded"));
    CHECK_EQ(ask_at(d.address, "second"), 0);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Nowhere to keep anything: answers come all the same.
static void scenario_readonly(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char file[256], below[300];
    (void)snprintf(file, sizeof file, "%s/file", state);
    (void)snprintf(below, sizeof below, "%s/state", file);
    write_file(file, "", 0);
    const char *const args[] = {"--state-dir", below, NULL}; // the last one counts
    struct daemon_proc d = start_daemon(dir, state, args);
    xpl_client *c = open_client(&d, 60000);
    char *cold = all_answers(c, "run", "vm", NULL), *warm = all_answers(c, "run", "vm", "memory");
    CHECK(strcmp(cold, warm) == 0);
    free(cold);
    free(warm);
    xpl_client_close(c);
    CHECK(log_has(&d, "topic=store"));
    CHECK_EQ(stop_daemon(&d), 0);
}

// Names are looked up, never opened.
static void scenario_traversal(void) {
    const char *dir = make_dir(), *outside = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    add_session(outside, "secret", "vm", any_profile());
    char up[300], absolute[300];
    (void)snprintf(up, sizeof up, "../../../..%s/plugins/profile/secret", outside);
    (void)snprintf(absolute, sizeof absolute, "%s/plugins/profile/secret", outside);
    const char *const names[] = {up,
                                 absolute,
                                 "../run",
                                 "run/../run",
                                 "./run",
                                 "run/",
                                 "/run",
                                 "%2e%2e/run",
                                 "run%00",
                                 "",
                                 "plugins/profile/run",
                                 "run/vm.xplane.pb",
                                 "\xff\xfe"};
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int code = ask_tool(c, names[i], "overview_page", NULL, NULL, NULL);
        CHECK(code == XPL_NOT_FOUND || code == XPL_INVALID_ARGUMENT);
        code = ask_tool(c, "run", "overview_page", names[i], NULL, NULL);
        CHECK(code == XPL_NOT_FOUND || code == XPL_INVALID_ARGUMENT);
        xpl_sessions *list = NULL;
        code = xpl_client_session(c, names[i], &list, NULL);
        CHECK(code == XPL_NOT_FOUND || code == XPL_INVALID_ARGUMENT);
    }
    xpl_client_close(c);
    struct xpl_rpc_channel *ch = NULL;
    const struct xpl_rpc_channel_options co = {.size = sizeof co, .target = d.address};
    CHECK_EQ(xpl_rpc_channel_open(&co, &ch, NULL), XPL_OK);
    struct xpl_rpc_reply reply = {0};
    static const uint8_t nul[] = "\x0a\x06run\0/.\x1a\x0dkernel_stats";
    CHECK_EQ(xpl_rpc_unary(ch, "/xplaned.v1.AnalysisService/GetToolData",
                           (xpl_bytes_t){nul, sizeof nul - 1}, NULL, &reply, NULL),
             XPL_INVALID_ARGUMENT);
    xpl_rpc_reply_fini(&reply);
    xpl_rpc_channel_close(ch);
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

// The names of the tools that are made of OpStats.
static size_t op_stats_tools(const char **ret, size_t max) {
    size_t n_tools, n = 0;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    for (size_t i = 0; i < n_tools && n < max; i++)
        if (tools[i]->needs[0] == &xpl_product_op_stats && !tools[i]->needs[1])
            ret[n++] = tools[i]->name;
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
        // Without memory, a question that begins when the conversion is over, and the store has not
        // got it yet, starts over.
        CHECK(round ? conversions(&d) <= 64 : conversions(&d) == 2);
        CHECK_EQ(stop_daemon(&d), 0);
    }
}

// A program that writes all the time does not hide what else happens in LOGDIR.
static atomic_bool scribbled_enough;
static void *scribble(void *arg) {
    FILE *f = fopen(arg, "wb");
    CHECK(f);
    for (int i = 0; i < 1500 && !atomic_load(&scribbled_enough); i++) {
        CHECK(fputc('x', f) == 'x' && fflush(f) == 0);
        sleep_ms(4);
    }
    (void)fclose(f);
    return NULL;
}

static void scenario_busy(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    char path[256];
    (void)snprintf(path, sizeof path, "%s/events.out", dir);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, scribble, path), 0);
    sleep_ms(300);
    add_session(dir, "later", "vm", any_profile());
    xpl_client *c = open_client(&d, 60000);
    int code = XPL_NOT_FOUND;
    for (int i = 0; i < 60 && code == XPL_NOT_FOUND; i++) { // 3 s; the writer goes on for 6
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
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {
        {"answers", scenario_answers},
        {"errors", scenario_errors},
        {"restart", scenario_restart},
        {"copies", scenario_copies},
        {"rows", scenario_rows},
        {"left_out", scenario_left_out},
        {"kill", scenario_kill},
        {"two", scenario_two_daemons},
        {"files", scenario_files},
        {"limits", scenario_limits},
        {"cancel", scenario_cancel},
        {"drain", scenario_drain},
        {"idle_clients", scenario_idle_clients},
        {"reload", scenario_reload},
        {"prefetch", scenario_prefetch},
        {"formats", scenario_formats},
        {"watch", scenario_watch},
        {"worker", scenario_worker},
        {"unix", scenario_unix},
        {"unwind", scenario_unwind},
        {"token", scenario_token},
        {"readonly", scenario_readonly},
        {"traversal", scenario_traversal},
        {"storm", scenario_storm},
        {"busy", scenario_busy},
    };
    CHECK_EQ(argc, 2);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, argv[1]) != 0) continue;
        (void)alarm(240);
        scenarios[i].run();
        return 0;
    }
    FAIL_TEST("no such scenario");
    return 1;
}
