// SPDX-License-Identifier: Apache-2.0
// The daemon's store: restarts, copies, rows, crashes, two daemons on one store, changing files,
// formats, conversion ahead of requests. Usage: test_daemon_store SCENARIO
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/status.h"
#include "tests/check.h"
#include "tests/server/daemon_fixture.h"
#include "tests/server/harness.h"

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

// Rows are written when nothing else is waiting, and then those of all hosts at once: a client that
// reads as often as it can never sees some of them.
static void check_rows_at_once(const char *state, int64_t hosts) {
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    (void)snprintf(path, sizeof path, "%s/cache.db", state);
    CHECK_EQ(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_prepare_v2(db, "SELECT count(rows_version) FROM profiles", -1, &st, NULL),
             SQLITE_OK);
    int64_t n = 0;
    for (const time_t end = time(NULL) + 60; n < hosts && time(NULL) < end;) {
        CHECK_EQ(sqlite3_step(st), SQLITE_ROW);
        n = sqlite3_column_int64(st, 0);
        CHECK_EQ(sqlite3_reset(st), SQLITE_OK);
        CHECK(n == 0 || n == hosts);
    }
    CHECK_EQ(n, hosts);
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
}

// With other bytes than the first one, so that it is a separate profile: it gets a further host's
// name.
static void add_another(const char *dir, const char *session, int i) {
    char host[8], path[PATH_MAX];
    (void)snprintf(host, sizeof host, "h%d", i);
    add_session(dir, session, host, any_profile());
    (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/%s.xplane.pb", dir, session, host);
    FILE *const f = fopen(path, "ab");
    CHECK(f && fprintf(f, "\x22\x01%c", 'a' + i) == 3);
    CHECK_EQ(fclose(f), 0);
}

// Once a client has an answer, it finds the rows of all of its hosts.
static void scenario_statement(void) {
    enum { SESSIONS = 6 };
    const char *dir = make_dir(), *state = make_dir();
    for (int i = 0; i < 2 * SESSIONS; i++)
        add_another(dir, (const char[]){'s', (char)('0' + i / 2), 0}, i);
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    for (int i = 0; i < SESSIONS; i++) {
        char session[8], text[100];
        xpl_answer *a = NULL;
        xpl_result r;
        size_t n;
        (void)snprintf(session, sizeof session, "s%d", i);
        (void)snprintf(text, sizeof text,
                       "SELECT count(DISTINCT host) FROM ops WHERE session = '%s'", session);
        CHECK_EQ(ask_tool(c, session, "overview_page", NULL, &a, &r), 0);
        xpl_answer_free(a);
        const xpl_sql_statement q = {.size = sizeof q, .statement = text};
        CHECK_EQ(xpl_client_sql(c, &q, &a, &r), 0);
        const char *const json = xpl_answer_data(a, &n);
        if (!memmem(json, n, "\"rows\":[[2]]", 12)) fprintf(stderr, "%.*s\n", (int)n, json);
        CHECK(memmem(json, n, "\"rows\":[[2]]", 12));
        xpl_answer_free(a);
    }
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Rows for people are written whatever the number of hosts: from 9 on products are packed.
static void scenario_rows(void) {
    enum { HOSTS = 10 };
    const char *dir = make_dir(), *state = make_dir();
    for (int i = 0; i < HOSTS; i++)
        add_another(dir, "many", i);
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    xpl_answer *a = NULL;
    xpl_result r;
    CHECK_EQ(ask_tool(c, "many", "overview_page", NULL, &a, &r), 0);
    xpl_answer_free(a);
    check_rows_at_once(state, HOSTS);
    CHECK_EQ(query(state, "SELECT count(memory_version) FROM profiles"), 0);
    CHECK_EQ(ask_tool(c, "many", "findings", NULL, &a, &r), 0);
    xpl_answer_free(a);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK_EQ(query(state, "SELECT count(DISTINCT host) FROM ops WHERE session='many'"), HOSTS);
    CHECK_EQ(query(state, "SELECT count(memory_version) FROM profiles"), HOSTS);
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
    for (size_t i = 0; i < 2; i++) { // each in a separate daemon, so that it reads the store
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

// Killed at odd moments, again and again: the answers afterwards are the same.
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

// The session's overview becomes different from `old` (or to fail with `code`).
static void wait_for_change(xpl_client *c, const char *old, int code) {
    for (int waited = 0; waited < PATIENCE_MS; waited += 50) {
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
    int code = XPL_NOT_FOUND;
    for (int waited = 0; waited < PATIENCE_MS && code != 0; waited += 50) {
        sleep_ms(50);
        code = ask_tool(c, "later", "op_profile", NULL, NULL, NULL);
    }
    CHECK_EQ(code, 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

static void scenario_prefetch(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, NULL);
    CHECK(log_has(&d, "converted ahead"));
    // A copy is recognised, and not converted.
    add_session(dir, "copy", "vm", any_profile());
    xpl_client *c = open_client(&d, 60000);
    bool stored = false;
    for (int i = 0; i < 1200 && !stored; i++) {
        xpl_sessions *s = NULL;
        if (xpl_client_session(c, "copy", &s, NULL) == 0)
            stored = strcmp(xpl_sessions_get(s, 0)->state, "stored") == 0;
        xpl_sessions_free(s);
        sleep_ms(50);
    }
    CHECK(stored);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    // All rows are there: of ops, and of memory, which another product makes.
    CHECK_EQ(query(state, "SELECT count(*) FROM profiles"), 1);
    CHECK_EQ(query(state, "SELECT count(*) FROM profiles WHERE rows_version > 0 AND "
                          "memory_version > 0"),
             1);
    FILE *f = fopen(d.log_path, "r");
    char line[4096];
    int n = 0;
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, "converted ahead") != NULL;
    CHECK(f);
    (void)fclose(f);
    CHECK_EQ(n, 1);
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

// The answer of that tool for all hosts, as a string that the caller frees; it was computed.
static char *all_hosts(const char *dir, const char *state, const char *tool,
                       const char *const *flags) {
    struct daemon_proc d = start_daemon(dir, state, flags);
    xpl_client *const c = open_client(&d, 60000);
    xpl_answer *a = NULL;
    xpl_result r;
    size_t n;
    if (ask_tool(c, "run", tool, NULL, &a, &r) != 0) FAIL_TEST(r.message);
    CHECK(strcmp(xpl_answer_source(a), "computed") == 0 ||
          strcmp(xpl_answer_source(a), "store") == 0);
    const char *const p = xpl_answer_data(a, &n);
    char *const text = strndup(p, n);
    CHECK(text);
    xpl_answer_free(a);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    return text;
}

// Products of many hosts are read one at a time: the session may be larger than --memory-limit.
// Products that are read, evicted and read again make the same answer.
static void scenario_in_turn(void) {
    static const char *const little[] = {"--no-prefetch", "--memory-limit", "20MiB", NULL};
    static const char *const tools[] = {"overview_page", "op_profile", "findings", "pod_viewer"};
    const char *const dir = make_dir(), *const one = make_dir(), *const other = make_dir();
    for (int i = 0; i < 12; i++) { // 30 MB of OpStats; encoded 6 MB
        char host[16];
        (void)snprintf(host, sizeof host, "host%d", i);
        add_session(dir, "run", host, profile(GPU));
    }
    free(all_hosts(dir, one, "hlo_stats", no_prefetch)); // the products are in the store
    free(all_hosts(dir, one, "findings", no_prefetch));
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        char *const expected = all_hosts(dir, other, tools[i], no_prefetch);
        char *const got = all_hosts(dir, one, tools[i], little);
        CHECK(strlen(got) > 100 && strcmp(got, expected) == 0);
        free(expected), free(got);
    }
}

int main(int argc, char **argv) {
    static const struct scenario scenarios[] = {
        {"formats", scenario_formats},   {"restart", scenario_restart},
        {"rows", scenario_rows},         {"statement", scenario_statement},
        {"left_out", scenario_left_out}, {"copies", scenario_copies},
        {"kill", scenario_kill},         {"two", scenario_two_daemons},
        {"files", scenario_files},       {"prefetch", scenario_prefetch},
        {"readonly", scenario_readonly}, {"in_turn", scenario_in_turn},
    };
    return run_scenario(scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
