// SPDX-License-Identifier: Apache-2.0
// The daemon's trace indexes: written next to the store, read from there, and harmless when they
// are truncated, overwritten, half written or half built.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/big_trace.h"
#include "tests/check.h"
#include "tests/server/harness.h"
#include "tests/server/http_client.h"

#define TRAIN "logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb"
#define HOSTS "/api/v1/tool?session=run&tool=trace_viewer@"

static struct daemon_proc start(const char *logdir, const char *state) {
    const char *const args[] = {"--no-prefetch", "--http", "127.0.0.1:0", NULL};
    return start_daemon(logdir, state, args);
}

// The answer, which is the same at any resolution: the trace is small.  No two calls ask the same,
// so that none is answered from memory.  `source`, where given, is where it came from at last.
static struct reply ask(const struct daemon_proc *d, const char *more, const char *source) {
    static int resolution = 8000;
    struct reply r = {0};
    for (int waited = 0; waited < PATIENCE_MS; waited += 50) {
        char path[256];
        (void)snprintf(path, sizeof path, HOSTS "%s&resolution=%d", more, resolution++);
        r = http_get(d->http_address, path);
        CHECK_EQ(r.status, 200);
        const char *const got = http_header(&r, "Xplaned-Source");
        CHECK(got);
        if (!source || strcmp(got, source) == 0) return r;
        if (waited == PATIENCE_MS - 50)
            fprintf(stderr, "%s came from %s, not %s\n", path, got, source);
        reply_free(&r);
        sleep_ms(50); // it is being written
    }
    FAIL_TEST("never answered from where it should be");
    return r;
}

static void expect_same(const struct daemon_proc *d, const char *more, const char *source,
                        const struct reply *expected) {
    struct reply r = ask(d, more, source);
    CHECK_EQ(r.n, expected->n);
    CHECK(memcmp(r.body, expected->body, r.n) == 0);
    reply_free(&r);
}

// Calls f for every index of the state directory; returns how many there are.
static int each_index(const char *state, void (*f)(const char *path)) {
    char dir[300], path[600];
    int n = 0;
    (void)snprintf(dir, sizeof dir, "%s/traces", state);
    DIR *const d = opendir(dir);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));) {
        const xpl_str_t name = xpl_str_from(e->d_name);
        if (!xpl_str_ends(name, XPL_STR(".trace_index"))) continue;
        (void)snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (f) f(path);
        n++;
    }
    CHECK_EQ(closedir(d), 0);
    return n;
}

static void cut(const char *path) {
    CHECK_EQ(truncate(path, 100), 0);
}

static void overwrite(const char *path) {
    struct stat st;
    CHECK_EQ(stat(path, &st), 0);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, "nonsense", 8, st.st_size / 2), 8);
    CHECK_EQ(close(fd), 0);
}

static void make_part(const char *state, const char *name, bool old) {
    char path[300];
    (void)snprintf(path, sizeof path, "%s/traces/%s", state, name);
    write_file(path, "x", 1);
    const struct timespec long_ago[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    if (old) CHECK_EQ(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

static bool has_part(const char *state, const char *name) {
    char path[300];
    (void)snprintf(path, sizeof path, "%s/traces/%s", state, name);
    return access(path, F_OK) == 0;
}

// Hosts have their numbers by name, in any order of requests.
static void check_hosts(const struct daemon_proc *d) {
    static const char *const orders[] = {"a,b", "b,a"};
    struct reply first = {0};
    for (int i = 0; i < 2; i++) {
        char path[256];
        (void)snprintf(path, sizeof path, "/data?run=run&tag=trace_viewer@&resolution=%d&hosts=%s",
                       7000 + i, orders[i]);
        struct reply r = http_get(d->http_address, path);
        CHECK_EQ(r.status, 200);
        CHECK(strstr(r.body, "\"name\":\"a /host:CPU\"},\"name\":\"process_name\",\"ph\":\"M\","
                             "\"pid\":1701,"));
        CHECK(strstr(r.body, "\"name\":\"b /host:CPU\"},\"name\":\"process_name\",\"ph\":\"M\","
                             "\"pid\":2701,"));
        CHECK(i == 0 || (r.n == first.n && memcmp(r.body, first.body, r.n) == 0));
        if (i == 0)
            first = r;
        else
            reply_free(&r);
    }
    reply_free(&first);
}

// ---- an index that is not finished when its first answer leaves ----

static struct reply ask_big(const struct daemon_proc *d, const char *more) {
    char path[256];
    (void)snprintf(path, sizeof path, "/api/v1/tool?session=big&tool=trace_viewer@%s", more);
    const struct reply r = http_get(d->http_address, path);
    CHECK_EQ(r.status, 200);
    return r;
}

static void expect_big(const struct daemon_proc *d, const char *more,
                       const struct reply *expected) {
    struct reply r = ask_big(d, more);
    CHECK_EQ(r.n, expected->n);
    CHECK(memcmp(r.body, expected->body, r.n) == 0);
    reply_free(&r);
}

static void wait_for_index(const char *state) {
    for (int waited = 0; waited < PATIENCE_MS && each_index(state, NULL) == 0; waited += 50)
        sleep_ms(50);
    CHECK_EQ(each_index(state, NULL), 1);
}

static void remove_it(const char *path) {
    CHECK_EQ(unlink(path), 0);
}

static void add_big(const char *dir) {
    struct big_event *const v = big_events(7);
    struct xpl_buf b = big_profile(v);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/big.pb", make_dir());
    write_file(path, b.p, b.n);
    add_session(dir, "big", "h", path);
    xpl_buf_fini(&b);
    free(v);
}

// The profile becomes another while its index is built: the old one is not served for long.
static void check_replaced(const struct daemon_proc *d, const char *dir, const struct reply *old) {
    char path[300];
    struct reply r = ask_big(d, "");
    (void)snprintf(path, sizeof path, "%s/plugins/profile/big/h.xplane.pb", dir);
    CHECK_EQ(unlink(path), 0);
    copy_file(profile(TRAIN), path);
    for (int waited = 0; waited < PATIENCE_MS && r.n == old->n; waited += 50) {
        reply_free(&r);
        sleep_ms(50);
        r = http_get(d->http_address, "/api/v1/tool?session=big&tool=trace_viewer@");
        if (r.status != 200) r.n = old->n; // between two files
    }
    CHECK(r.n != old->n && strstr(r.body, "/host:CPU"));
    reply_free(&r);
}

// Little memory: a client that waits for each answer is not refused because of work that follows
// it, and an answer that does not fit leaves the index behind.
static void check_little_memory(const char *dir, const struct reply *first, const char *zoom,
                                const struct reply *near) {
    const char *const state = make_dir();
    const char *const total[] = {"--no-prefetch",  "--http", "127.0.0.1:0",
                                 "--memory-total", "32MiB",  NULL};
    const char *const limit[] = {"--no-prefetch",  "--http", "127.0.0.1:0",
                                 "--memory-limit", "60MiB",  NULL};
    struct daemon_proc d = start_daemon(dir, state, total);
    expect_big(&d, "", first);
    expect_big(&d, zoom, near);
    wait_for_index(state);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK_EQ(each_index(state, remove_it), 1);
    d = start_daemon(dir, state, limit);
    struct reply r =
        http_get(d.http_address, "/api/v1/tool?session=big&tool=trace_viewer@&resolution=100000");
    CHECK_EQ(r.status, 503);
    reply_free(&r);
    wait_for_index(state);
    expect_big(&d, zoom, near);
    CHECK_EQ(stop_daemon(&d), 0);
}

static void test_first_answer(void) {
    static const char zoom[] = "&start_time_ms=100&end_time_ms=130";
    const char *const dir = make_dir(), *const state = make_dir();
    add_big(dir);
    struct daemon_proc d = start(dir, state);
    struct reply first = ask_big(&d, ""), near = ask_big(&d, zoom); // which waits for the rest
    CHECK_EQ(strcmp(http_header(&first, "Xplaned-Source"), "computed"), 0);
    CHECK(first.n > 100000 && near.n > 100000);
    wait_for_index(state);
    CHECK_EQ(stop_daemon(&d), 0);
    d = start(dir, state);
    expect_big(&d, "", &first);
    expect_big(&d, zoom, &near);
    CHECK_EQ(stop_daemon(&d), 0);
    // Stopped in the middle: nothing half done is kept.
    CHECK_EQ(each_index(state, remove_it), 1);
    d = start(dir, state);
    expect_big(&d, "", &first);
    CHECK_EQ(stop_daemon(&d), 0);
    d = start(dir, state);
    expect_big(&d, zoom, &near);
    wait_for_index(state);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK_EQ(each_index(state, remove_it), 1);
    check_little_memory(dir, &first, zoom, &near);
    d = start(dir, state);
    check_replaced(&d, dir, &first);
    CHECK_EQ(stop_daemon(&d), 0);
    reply_free(&first);
    reply_free(&near);
}

// Damage that is found while rendering, where memory has no room for the mapping.
static void test_damage_without_memory(void) {
    const char *const no_cache[] = {"--no-prefetch",  "--http", "127.0.0.1:0",
                                    "--answer-cache", "0",      NULL};
    const char *const dir = make_dir(), *const state = make_dir();
    add_session(dir, "run", "a", profile(TRAIN));
    struct daemon_proc d = start_daemon(dir, state, no_cache);
    struct reply one = ask(&d, "&host=a", "computed");
    expect_same(&d, "&host=a", "store", &one);
    CHECK_EQ(each_index(state, overwrite), 1);
    expect_same(&d, "&host=a", "computed", &one);
    expect_same(&d, "&host=a", "store", &one);
    CHECK_EQ(stop_daemon(&d), 0);
    reply_free(&one);
}

int main(void) {
    (void)alarm(600);
    const char *const dir = make_dir(), *const state = make_dir();
    add_session(dir, "run", "a", profile(TRAIN));
    add_session(dir, "run", "b", profile(TRAIN));
    struct daemon_proc d = start(dir, state);
    struct reply one = ask(&d, "&host=a", "computed");
    expect_same(&d, "&host=a", "store", &one);
    CHECK_EQ(each_index(state, NULL), 1);
    // It is mapped now; what its pages held is gone.
    CHECK_EQ(each_index(state, cut), 1);
    expect_same(&d, "&host=a", "computed", &one);
    expect_same(&d, "&host=a", "store", &one);
    // A host whose index is new, and one whose index is damaged.
    CHECK_EQ(each_index(state, cut), 1);
    // The hosts' profiles have the same bytes: products of one may be stored when the request for
    // the other comes.
    struct reply both = ask(&d, "", NULL);
    expect_same(&d, "", "store", &both);
    CHECK_EQ(each_index(state, NULL), 1); // the hosts' profiles have the same bytes
    expect_same(&d, "&host=a", NULL, &one);
    check_hosts(&d);
    // Another daemon, which finds what this one writes and what one before it left.
    make_part(state, "1.trace.young.part", false);
    make_part(state, "2.trace.old.part", true);
    struct daemon_proc other = start(dir, state);
    expect_same(&other, "", "store", &both);
    CHECK(has_part(state, "1.trace.young.part") && !has_part(state, "2.trace.old.part"));
    CHECK_EQ(stop_daemon(&other), 0);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK_EQ(each_index(state, overwrite), 1);
    d = start(dir, state);
    expect_same(&d, "", "computed", &both);
    expect_same(&d, "", "store", &both);
    CHECK_EQ(stop_daemon(&d), 0);
    reply_free(&one);
    reply_free(&both);
    test_damage_without_memory();
    test_first_answer();
    return 0;
}
