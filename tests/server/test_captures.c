// SPDX-License-Identifier: Apache-2.0
// Captures, schedules and removals by a real daemon, from profiler servers of our own.
// Usage: test_captures SCENARIO
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/status.h"
#include "proto/tensorflow/profiler_analysis.pb-c.h"
#include "proto/xplaned/v1/capture.pb-c.h"
#include "rpc/message.h"
#include "tests/capture/fake_profiler.h"
#include "tests/server/captures_fixture.h"
#include "tests/server/http_client.h"

// ---- helpers ----

struct seen { // what a capture told, at its end
    uint64_t id;
    char session[256];
    size_t n_hosts, n_stored;
    struct {
        char state[16], host[160], reason[400];
        int code;
    } hosts[8];
    bool over, give_up;
};

static void on_progress(void *arg, const xpl_capture_status *s) {
    struct seen *v = arg;
    v->id = s->id;
    v->over = s->over;
    v->n_hosts = s->n_hosts;
    v->n_stored = s->n_stored;
    (void)snprintf(v->session, sizeof v->session, "%s", s->session);
    for (size_t i = 0; i < s->n_hosts && i < 8; i++) {
        (void)snprintf(v->hosts[i].state, sizeof v->hosts[i].state, "%s", s->hosts[i].state);
        (void)snprintf(v->hosts[i].host, sizeof v->hosts[i].host, "%s", s->hosts[i].host);
        (void)snprintf(v->hosts[i].reason, sizeof v->hosts[i].reason, "%s", s->hosts[i].reason);
        v->hosts[i].code = s->hosts[i].code;
    }
}

static int give_up(void *arg) {
    return ((struct seen *)arg)->give_up;
}

static xpl_capture_request request(const char *const *targets, size_t n, struct seen *v) {
    return (xpl_capture_request){.size = sizeof(xpl_capture_request),
                                 .targets = targets,
                                 .n_targets = n,
                                 .duration_ms = 50,
                                 .host_tracer_level = -1,
                                 .device_tracer_level = -1,
                                 .python_tracer_level = -1,
                                 .progress = on_progress,
                                 .cancelled = give_up,
                                 .arg = v};
}

static int add(struct fake_set *set, enum fake_mode mode) {
    const struct fake_options o = {.mode = mode};
    return fake_add(set, &o);
}

// Waits until the newest capture has this state.
static bool becomes(xpl_client *c, const char *state) {
    for (int i = 0; i < 400; i++) {
        xpl_captures *list = NULL;
        CHECK_EQ(xpl_client_captures(c, 1, &list, NULL), 0);
        const xpl_capture_info *const info = xpl_captures_get(list, 0);
        const bool is = info && strcmp(info->state, state) == 0;
        xpl_captures_free(list);
        if (is) return true;
        sleep_ms(50);
    }
    return false;
}

// The newest capture's host `i` comes to this state, as the history has it.
static bool host_becomes(xpl_client *c, size_t i, const char *state, char session[256]) {
    for (int ms = 0; ms < 20000; ms += 50) {
        xpl_captures *list = NULL;
        CHECK_EQ(xpl_client_captures(c, 1, &list, NULL), 0);
        const xpl_capture_info *const info = xpl_captures_get(list, 0);
        const bool is = info && i < info->n_hosts && strcmp(info->hosts[i].state, state) == 0;
        if (is) (void)snprintf(session, 256, "%s", info->session);
        xpl_captures_free(list);
        if (is) return true;
        sleep_ms(50);
    }
    return false;
}

static xpl_status_t call(struct xpl_rpc_channel *ch, const char *path, const ProtobufCMessage *q,
                         struct xpl_rpc_reply *ret, struct xpl_error *err) {
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 20);
    xpl_rpc_message_put(&b, q);
    CHECK(!b.failed);
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 60000};
    const xpl_status_t st = xpl_rpc_unary(ch, path, (xpl_bytes_t){b.p, b.n}, &o, ret, err);
    xpl_buf_fini(&b);
    return st;
}

// ---- captures ----

static void scenario_capture(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK), idle = add(set, FAKE_IDLE), bad = add(set, FAKE_GARBAGE);
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    struct seen v = {0};
    xpl_result r;
    const char *const targets[] = {fake_address(set, good), fake_address(set, idle),
                                   fake_address(set, bad), "127.0.0.1:1"};
    const char *const names[] = {"../../a b", "i", "b", "d"};
    xpl_capture_request q = request(targets, 4, &v);
    q.host_names = names;
    q.session = "first";
    CHECK_EQ(xpl_client_capture(c, &q, &r), 0);
    CHECK(v.over);
    CHECK_EQ(v.id, 1);
    CHECK_EQ(v.n_hosts, 4);
    CHECK_EQ(v.n_stored, 1);
    CHECK_STR(v.session, "first");
    CHECK_STR(v.hosts[0].state, "stored");
    CHECK(!strchr(v.hosts[0].host, '/'));
    CHECK(v.hosts[0].host[0] != '.');
    CHECK_STR(v.hosts[1].state, "idle");
    CHECK(v.hosts[1].reason[0]);
    CHECK_STR(v.hosts[2].state, "failed");
    CHECK_STATUS(v.hosts[2].code, XPL_DATA_LOSS, NULL);
    CHECK_STR(v.hosts[3].state, "failed");
    CHECK_STATUS(v.hosts[3].code, XPL_UNAVAILABLE, NULL);
    // It is listed and answered at once.
    CHECK_EQ(ask_tool(c, "first", "overview_page", NULL, NULL, &r), 0);
    // All idle is a failure, and leaves no session.
    CHECK_STATUS(xpl_client_capture(c,
                                    &(xpl_capture_request){.size = sizeof q,
                                                           .targets = targets + 1,
                                                           .n_targets = 1,
                                                           .duration_ms = 50},
                                    &r),
                 XPL_UNAVAILABLE, NULL);
    CHECK(strstr(r.message, "idle"));
    CHECK(has_sessions(c, 1));
    // A taken name gets a number; nonsense is refused before anything is done.
    q.n_targets = 1;
    CHECK_EQ(xpl_client_capture(c, &q, &r), 0);
    CHECK_STR(v.session, "first_2");
    q.session = "../x";
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_INVALID_ARGUMENT, NULL);
    q.session = "";
    static const char *const half[] = {"", NULL}; // an option without key and value
    q.advanced = half;
    q.n_advanced = 1;
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_INVALID_ARGUMENT, NULL);
    q.n_advanced = q.n_targets = 0;
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_INVALID_ARGUMENT, NULL);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    d = start_daemon(dir, state, plain);
    c = open_client(&d, 60000);
    xpl_captures *list = NULL;
    CHECK_EQ(xpl_client_captures(c, 0, &list, &r), 0);
    CHECK(xpl_captures_get(list, 2) && !xpl_captures_get(list, 3));
    const xpl_capture_info *const oldest = xpl_captures_get(list, 2);
    CHECK_EQ(oldest->id, 1);
    CHECK_STR(oldest->state, "partial");
    CHECK_EQ(oldest->n_hosts, 4);
    CHECK_STR(oldest->hosts[2].state, "failed");
    CHECK(oldest->hosts[2].reason[0]);
    CHECK_STR(xpl_captures_get(list, 1)->state, "failed");
    xpl_captures_free(list);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

// Somebody who waits on a thread of his own for a capture that never ends by itself.
struct waiter {
    struct daemon_proc *d;
    const char *const *targets;
    size_t n; // 0: one
    struct seen seen;
    int code;
    xpl_result result;
};

static void *wait_for_capture(void *arg) {
    struct waiter *w = arg;
    xpl_client *c = open_client(w->d, 60000);
    const xpl_capture_request q = request(w->targets, w->n ? w->n : 1, &w->seen);
    w->code = xpl_client_capture(c, &q, &w->result);
    xpl_client_close(c);
    return NULL;
}

static void scenario_cancel(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int hang = add(set, FAKE_HANG);
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    const int good = add(set, FAKE_OK);
    const char *const targets[] = {fake_address(set, hang), fake_address(set, good)};
    struct waiter w = {.d = &d, .targets = targets};
    pthread_t t;
    xpl_result r;
    CHECK_EQ(pthread_create(&t, NULL, wait_for_capture, &w), 0);
    CHECK(becomes(c, "running"));
    // Never two captures of one host at once.
    struct seen v = {0};
    const xpl_capture_request q = request(targets, 1, &v);
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_UNAVAILABLE, NULL);
    CHECK(strstr(r.message, "capture 1 of this daemon"));
    char other[64];
    const char *const same = other;
    (void)snprintf(other, sizeof other, "LocalHost%s", strrchr(targets[0], ':'));
    const xpl_capture_request again_q = request(&same, 1, &v);
    CHECK_STATUS(xpl_client_capture(c, &again_q, &r), XPL_UNAVAILABLE, NULL);
    // Where others are left it goes on with those, and that host is not asked.
    char name[256];
    CHECK(host_becomes(c, 0, "collecting", name) && name[0]);
    const unsigned calls = fake_calls(set, hang);
    const xpl_capture_request both = request(targets, 2, &v);
    CHECK_EQ(xpl_client_capture(c, &both, &r), 0);
    CHECK_EQ(v.n_stored, 1);
    CHECK_STR(v.hosts[0].state, "failed");
    CHECK(strstr(v.hosts[0].reason, "capture 1"));
    CHECK_EQ(fake_calls(set, hang), calls);
    CHECK_EQ(xpl_client_cancel_capture(c, 1, &r), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_STATUS(w.code, XPL_CANCELLED, NULL);
    CHECK(w.seen.over);
    CHECK_STR(w.seen.hosts[0].state, "cancelled");
    CHECK_STATUS(xpl_client_cancel_capture(c, 1, &r), XPL_NOT_FOUND, NULL);
    // A client that goes away cancels; the host is free for the next.
    v.give_up = true;
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_CANCELLED, NULL);
    CHECK(becomes(c, "cancelled"));
    CHECK(has_sessions(c, 1)); // of the one that was done
    // A daemon that is killed tells the next one what was running.
    w = (struct waiter){.d = &d, .targets = targets};
    CHECK_EQ(pthread_create(&t, NULL, wait_for_capture, &w), 0);
    CHECK(becomes(c, "running"));
    xpl_client_close(c);
    kill_daemon(&d, SIGKILL);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK(w.code != 0);
    d = start_daemon(dir, state, plain);
    c = open_client(&d, 60000);
    CHECK(becomes(c, "interrupted"));
    // One that is stopped does not wait for a host for ever.
    const struct waiter again = {.d = &d, .targets = targets};
    w = again;
    CHECK_EQ(pthread_create(&t, NULL, wait_for_capture, &w), 0);
    CHECK(becomes(c, "running"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK(w.code != 0);
    fake_set_free(set);
}

// A LOGDIR that cannot be written, captures switched off, a second daemon, a broken state.db.
static void scenario_trouble(void) {
    const char *dir = make_dir(), *state = make_dir(), *other = make_dir();
    char path[300];
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK);
    const char *const target = fake_address(set, good);
    struct seen v = {0};
    xpl_result r;
    const xpl_capture_request q = request(&target, 1, &v);
    (void)snprintf(path, sizeof path, "%s/plugins", dir);
    write_file(path, "x", 1);
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_FAILED_PRECONDITION, NULL);
    CHECK(strstr(r.message, dir) && strstr(r.message, "not a directory"));
    CHECK(strstr(v.hosts[0].reason, "not a directory"));
    CHECK_EQ(fake_calls(set, good), 0);
    const xpl_import_file file = {.path = profile(TRAIN)};
    const xpl_import_request i = {.size = sizeof i, .files = &file, .n_files = 1};
    CHECK_STATUS(xpl_client_import(c, &i, NULL, 0, &r), XPL_FAILED_PRECONDITION, NULL);
    CHECK(strstr(r.message, "not a directory"));
    // Without the history, captures still work.
    CHECK_EQ(unlink(path), 0);
    struct daemon_proc second = start_daemon(other, state, plain);
    CHECK(log_has(&second, "another daemon has it"));
    xpl_client *c2 = open_client(&second, 60000);
    CHECK_EQ(xpl_client_capture(c2, &q, &r), 0);
    const xpl_schedule_request s = {.size = sizeof s, .capture = &q, .every_ms = 60000};
    CHECK_STATUS(xpl_client_schedule(c2, &s, NULL, &r), XPL_FAILED_PRECONDITION, NULL);
    xpl_client_close(c2);
    CHECK_EQ(stop_daemon(&second), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    (void)snprintf(path, sizeof path, "%s/state.db", state);
    write_file(path, "this is no database, but it is long enough to be taken for one.....", 64);
    static const char *const off[] = {"--no-prefetch", "--no-capture", NULL};
    d = start_daemon(dir, state, off);
    CHECK(log_has(&d, "state.db was broken"));
    c = open_client(&d, 60000);
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_PERMISSION_DENIED, NULL);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

// What a capture may leave when it is killed: unfinished files, and a directory of a host.
static void leave_parts(const char *session) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/.xplaned-0123.part", session);
    write_file(path, "x", 1);
    (void)snprintf(path, sizeof path, "%s/.xplaned-4567", session);
    CHECK_EQ(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/.xplaned-4567/h.xplane.pb", session);
    write_file(path, "x", 1);
}

// How many files a directory has, hidden ones included.
static int entries(const char *path) {
    DIR *const dir = opendir(path);
    int n = -2;
    CHECK(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static bool has(const char *session, const char *name) {
    char path[600];
    struct stat sb;
    (void)snprintf(path, sizeof path, "%s/%s", session, name);
    return stat(path, &sb) == 0;
}

// A daemon that is killed: the next one cleans up what its captures left, and nothing else.
static void scenario_killed(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK), hang = add(set, FAKE_HANG);
    const char *const targets[] = {fake_address(set, good), fake_address(set, hang)};
    for (int round = 0; round < 3; round++) {
        struct daemon_proc d = start_daemon(dir, state, plain);
        xpl_client *c = open_client(&d, 60000);
        // Nothing stored; a profile stored; somebody else's directory of that name.
        struct waiter w = {.d = &d, .targets = round == 1 ? targets : targets + 1};
        w.n = round == 1 ? 2 : 1;
        char name[256], path[400], aside[420], file[500];
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, wait_for_capture, &w), 0);
        CHECK(host_becomes(c, w.n - 1, "collecting", name));
        if (round == 1) CHECK(host_becomes(c, 0, "stored", name));
        CHECK(name[0]);
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s", dir, name);
        CHECK(has(path, "."));
        kill_daemon(&d, SIGKILL);
        CHECK_EQ(pthread_join(t, NULL), 0);
        xpl_client_close(c);
        leave_parts(path);
        (void)snprintf(aside, sizeof aside, "%s-aside", path);
        if (round == 2) {
            CHECK_EQ(rename(path, aside), 0);
            CHECK_EQ(mkdir(path, 0700), 0);
            leave_parts(path);
        }
        // What somebody writes at this moment is his.
        (void)snprintf(file, sizeof file, "%s/.xplaned-89.part", path);
        const int fd = round == 1 ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
        if (round == 1) CHECK(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
        d = start_daemon(dir, state, plain);
        c = open_client(&d, 60000);
        CHECK(becomes(c, "interrupted"));
        CHECK(host_becomes(c, w.n - 1, "failed", name));
        CHECK_EQ(has(path, "."), round > 0);
        CHECK_EQ(has(path, ".xplaned-0123.part"), round == 2);
        CHECK_EQ(has(path, ".xplaned-4567"), round == 2);
        CHECK_EQ(has(path, ".xplaned-89.part"), round == 1);
        if (round == 1) CHECK(has_sessions(c, 1) && close(fd) == 0);
        xpl_client_close(c);
        CHECK_EQ(stop_daemon(&d), 0);
    }
    fake_set_free(set);
}

// No space: a host whose profile cannot be written fails alone, and nothing of it is left.
static void scenario_full(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const struct fake_options big = {.mode = FAKE_OK, .bytes = 4 << 20};
    const int large = fake_add(set, &big), small = add(set, FAKE_OK);
    const char *const targets[] = {fake_address(set, large), fake_address(set, small)};
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    struct seen v = {0};
    struct rlimit before, tight;
    char path[400];
    xpl_result r;
    xpl_capture_request q = request(targets, 1, &v);
    CHECK_EQ(prlimit(d.pid, RLIMIT_FSIZE, NULL, &before), 0);
    tight = before;
    tight.rlim_cur = 1 << 20;
    CHECK_EQ(prlimit(d.pid, RLIMIT_FSIZE, &tight, NULL), 0);
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_RESOURCE_EXHAUSTED, NULL);
    CHECK(strstr(r.message, "ulimit -f"));
    CHECK_STATUS(v.hosts[0].code, XPL_RESOURCE_EXHAUSTED, NULL);
    CHECK(has_sessions(c, 0));
    (void)snprintf(path, sizeof path, "%s/plugins", dir);
    CHECK(!has(path, ".")); // made for it, and gone with it
    q.n_targets = 2;
    q.session = "half";
    CHECK_EQ(xpl_client_capture(c, &q, &r), 0);
    CHECK_EQ(v.n_stored, 1);
    CHECK_STR(v.hosts[0].state, "failed");
    (void)snprintf(path, sizeof path, "%s/plugins/profile/half", dir);
    CHECK_EQ(entries(path), 2); // the profile and capture.json
    CHECK_EQ(prlimit(d.pid, RLIMIT_FSIZE, &before, NULL), 0);
    q.session = "whole";
    CHECK_EQ(xpl_client_capture(c, &q, &r), 0);
    CHECK_EQ(v.n_stored, 2);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

static void cannot_write(const char *logdir, int code, const char *part) {
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK);
    const char *const target = fake_address(set, good);
    struct daemon_proc d = start_daemon(logdir, make_dir(), plain);
    xpl_client *c = open_client(&d, 60000);
    struct seen v = {0};
    xpl_result r;
    const xpl_capture_request q = request(&target, 1, &v);
    CHECK_EQ(xpl_client_capture(c, &q, &r), code);
    CHECK(strstr(r.message, part) && strstr(v.hosts[0].reason, part));
    CHECK_EQ(fake_calls(set, good), 0); // nobody is profiled in vain
    xpl_captures *list = NULL;
    CHECK_EQ(xpl_client_captures(c, 0, &list, &r), 0); // readable, however the path was cut
    CHECK_STR(xpl_captures_get(list, 0)->state, "failed");
    CHECK(strstr(xpl_captures_get(list, 0)->message, part));
    xpl_captures_free(list);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

// LOGDIRs that cannot be written: not ours, or with something in the way and a very long name.
static void scenario_logdir(void) {
    static const char *const system_dir = "/sys/kernel/mm"; // even root makes nothing there
    char path[400], file[450];
    const char *const dir = make_dir();
    const bool root = geteuid() == 0;
    if (!root) CHECK_EQ(chmod(dir, 0500), 0);
    if (!root || has(system_dir, "."))
        cannot_write(root ? system_dir : dir, XPL_PERMISSION_DENIED, "use another directory");
    int n = snprintf(path, sizeof path, "%s/", make_dir());
    for (int i = 0; i < 70; i++)
        n += snprintf(path + n, sizeof path - (size_t)n, "\u00e9");
    (void)snprintf(path + n, sizeof path - (size_t)n, "x"); // so that the cut is within a character
    CHECK_EQ(mkdir(path, 0700), 0);
    (void)snprintf(file, sizeof file, "%s/plugins", path);
    write_file(file, "x", 1);
    cannot_write(path, XPL_FAILED_PRECONDITION, "not a directory");
}

// ---- schedules ----

static void wait_for_turns(xpl_client *c, uint64_t last) {
    for (int i = 0; i < 600; i++) {
        xpl_captures *list = NULL;
        CHECK_EQ(xpl_client_captures(c, 1, &list, NULL), 0);
        const xpl_capture_info *const info = xpl_captures_get(list, 0);
        const bool enough = info && info->id >= last && strcmp(info->state, "done") == 0;
        xpl_captures_free(list);
        if (enough) return;
        sleep_ms(50);
    }
    FAIL_TEST("the schedule does not run");
}

static void scenario_schedule(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK);
    const char *const target = fake_address(set, good);
    add_session(dir, "users_own", "vm", profile(TRAIN));
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    struct seen v = {0};
    xpl_capture_request q = request(&target, 1, &v);
    q.session = "every";
    xpl_schedule_request s = {.size = sizeof s, .capture = &q, .every_ms = 1100, .keep_count = 2};
    uint64_t id = 0;
    CHECK_EQ(xpl_client_schedule(c, &s, &id, &r), 0);
    CHECK_EQ(id, 1);
    wait_for_turns(c, 3);
    // A session that somebody added a profile to is no longer the schedule's to remove.
    char shared[256];
    CHECK(host_becomes(c, 0, "stored", shared));
    const xpl_import_file mine = {.path = profile(TRAIN), .host = "mine"};
    const xpl_import_request i = {
        .size = sizeof i, .files = &mine, .n_files = 1, .session = shared};
    CHECK_EQ(xpl_client_import(c, &i, NULL, 0, &r), 0);
    CHECK_EQ(stop_daemon(&d), 0);
    xpl_client_close(c);
    d = start_daemon(dir, state, plain); // it goes on by itself
    c = open_client(&d, 60000);
    wait_for_turns(c, 7);
    char path[400];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/%s", dir, shared);
    CHECK(has(path, "mine.xplane.pb"));
    CHECK_STATUS(xpl_client_unschedule(c, 99, &r), XPL_NOT_FOUND, NULL);
    CHECK_EQ(xpl_client_unschedule(c, 1, &r), 0);
    xpl_captures *list = NULL;
    CHECK_EQ(xpl_client_captures(c, 0, &list, &r), 0);
    CHECK(!xpl_captures_schedule(list, 0));
    CHECK_EQ(xpl_captures_get(list, 0)->schedule_id, 1);
    xpl_captures_free(list);
    // Of its own two are left (one more while a turn was under way), of others all.
    for (int tries = 0; tries < 100 && count_sessions(c) > 5; tries++)
        sleep_ms(50);
    CHECK(count_sessions(c) >= 3 && count_sessions(c) <= 5);
    xpl_sessions *one = NULL;
    CHECK_EQ(xpl_client_session(c, "users_own", &one, &r), 0);
    xpl_sessions_free(one);
    s.every_ms = 500;
    CHECK_STATUS(xpl_client_schedule(c, &s, &id, &r), XPL_INVALID_ARGUMENT, NULL);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

// Whether the daemon has a schedule, and how many captures.
static bool shows(xpl_client *c, bool schedule, size_t captures) {
    xpl_captures *list = NULL;
    xpl_result r;
    CHECK_EQ(xpl_client_captures(c, 0, &list, &r), 0);
    size_t n = 0;
    while (n < captures && xpl_captures_get(list, n))
        n++;
    const bool ok = n == captures && (xpl_captures_schedule(list, 0) != NULL) == schedule;
    xpl_captures_free(list);
    return ok;
}

// A daemon that starts while another has state.db takes it when that one ends, with what it held.
static void scenario_handover(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const char *const target = fake_address(set, add(set, FAKE_OK));
    struct daemon_proc first = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&first, 60000);
    xpl_result r;
    struct seen v = {0};
    const xpl_capture_request q = request(&target, 1, &v);
    const xpl_schedule_request s = {.size = sizeof s, .capture = &q, .every_ms = 3600000};
    CHECK_EQ(xpl_client_schedule(c, &s, NULL, &r), 0);
    wait_for_turns(c, 1);
    struct daemon_proc second = start_daemon(dir, state, plain);
    xpl_client *other = open_client(&second, 60000);
    CHECK(shows(other, false, 0));
    CHECK(log_has(&second, "another daemon has it"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&first), 0);
    for (int tries = 0; tries < 250 && !shows(other, true, 1); tries++)
        sleep_ms(20); // 5 s
    CHECK(shows(other, true, 1));
    CHECK(log_has(&second, "history and schedules go on"));
    // Numbers go on, too.
    uint64_t id = 0;
    CHECK_EQ(xpl_client_schedule(other, &s, &id, &r), 0);
    CHECK_EQ(id, 2);
    for (int tries = 0; tries < 250 && !shows(other, true, 2); tries++)
        sleep_ms(20);
    CHECK(shows(other, true, 2));
    xpl_client_close(other);
    CHECK_EQ(stop_daemon(&second), 0);
    fake_set_free(set);
}

// The servers record all the time, and are asked for what they have.
static void scenario_continuous(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK);
    const char *const target = fake_address(set, good);
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    struct seen v = {0};
    const xpl_capture_request q = request(&target, 1, &v);
    const xpl_schedule_request s = {
        .size = sizeof s, .capture = &q, .every_ms = 1100, .continuous = 1};
    CHECK_EQ(xpl_client_schedule(c, &s, NULL, &r), 0);
    wait_for_turns(c, 3); // the first one only begins it
    xpl_captures *list = NULL;
    CHECK_EQ(xpl_client_captures(c, 0, &list, &r), 0);
    const xpl_schedule_info *const info = xpl_captures_schedule(list, 0);
    CHECK(info && info->continuous);
    CHECK_EQ(info->n_targets, 1);
    xpl_captures_free(list);
    CHECK(count_sessions(c) >= 1);
    CHECK_EQ(xpl_client_unschedule(c, 1, &r), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

static void *capture_with_retries(void *arg) {
    struct waiter *const w = arg;
    xpl_client *c = open_client(w->d, 60000);
    xpl_capture_request q = request(w->targets, w->n, &w->seen);
    q.retries = 20;
    w->code = xpl_client_capture(c, &q, &w->result);
    xpl_client_close(c);
    return NULL;
}

// Retries wait for a host that another capture of the same daemon has.
static void scenario_retries(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const struct fake_options slow = {.mode = FAKE_OK, .extra_ms = 1500};
    const int busy = fake_add(set, &slow), good = add(set, FAKE_OK);
    const char *const targets[] = {fake_address(set, busy), fake_address(set, good)};
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    for (size_t n = 1; n <= 2; n++) {
        struct waiter first = {.d = &d, .targets = targets, .n = 1},
                      second = {.d = &d, .targets = targets, .n = n};
        pthread_t t[2];
        char name[256];
        CHECK_EQ(pthread_create(&t[0], NULL, wait_for_capture, &first), 0);
        CHECK(host_becomes(c, 0, "collecting", name));
        CHECK_EQ(pthread_create(&t[1], NULL, capture_with_retries, &second), 0);
        CHECK(host_becomes(c, 0, "pausing", name));
        xpl_captures *list = NULL;
        CHECK_EQ(xpl_client_captures(c, 2, &list, NULL), 0);
        const char *const reason = xpl_captures_get(list, 0)->hosts[0].reason;
        CHECK(strstr(reason, "it is being captured by capture"));
        xpl_captures_free(list);
        CHECK_EQ(pthread_join(t[0], NULL), 0);
        CHECK_EQ(pthread_join(t[1], NULL), 0);
        CHECK_EQ(first.code, 0);
        CHECK_EQ(second.code, 0);
        CHECK_EQ(second.seen.n_stored, n);
    }
    CHECK_EQ(fake_calls(set, busy), 4);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

static unsigned sessions_of_schedule(xpl_client *c) {
    xpl_captures *list = NULL;
    CHECK_EQ(xpl_client_captures(c, 1, &list, NULL), 0);
    const unsigned n = xpl_captures_schedule(list, 0)->sessions;
    xpl_captures_free(list);
    return n;
}

// A host that a schedule records all the time can be captured: the schedule stores what it has,
// hands the host over, and goes on later.
static void scenario_recorded(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int one = add(set, FAKE_OK), two = add(set, FAKE_OK), free_one = add(set, FAKE_OK);
    const char *const targets[] = {fake_address(set, one), fake_address(set, two),
                                   fake_address(set, free_one)};
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    struct seen v = {0};
    const xpl_capture_request recorded = request(targets, 2, &v);
    const xpl_schedule_request s = {
        .size = sizeof s, .capture = &recorded, .every_ms = 3600000, .continuous = 1};
    CHECK_EQ(xpl_client_schedule(c, &s, NULL, &r), 0);
    wait_for_turns(c, 1); // it records, and its next turn is an hour away
    CHECK_EQ(sessions_of_schedule(c), 0);
    // All hosts, without a single retry: one that is recorded, and one that is not.
    v = (struct seen){0};
    const xpl_capture_request q = request(targets + 1, 2, &v);
    CHECK_EQ(xpl_client_capture(c, &q, &r), 0);
    CHECK_EQ(v.n_stored, 2);
    CHECK_EQ(fake_calls(set, two), 1);
    CHECK_EQ(sessions_of_schedule(c), 1); // what it had recorded until then is not lost
    // It records again, and hands over again.
    for (int i = 0; i < 2; i++) {
        v = (struct seen){0};
        const xpl_capture_request again = request(targets + i, 1, &v);
        sleep_ms(i ? 0 : 4000);
        CHECK_EQ(xpl_client_capture(c, &again, &r), 0);
    }
    CHECK(sessions_of_schedule(c) >= 2);
    CHECK_EQ(xpl_client_unschedule(c, 1, &r), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

// ---- tensorflow.ProfileAnalysis ----

static void scenario_analysis(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK), idle = add(set, FAKE_IDLE);
    struct daemon_proc d = start_daemon(dir, state, plain);
    struct xpl_rpc_channel *ch = open_channel(d.address);
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    struct xpl_arena arena;
    ProtobufCMessage *msg = NULL;
    xpl_arena_init(&arena, 16 << 20);
    Tensorflow__NewProfileSessionRequest q;
    Tensorflow__ProfileRequest r;
    Tensorflow__ProfileOptions o;
    tensorflow__new_profile_session_request__init(&q);
    tensorflow__profile_request__init(&r);
    tensorflow__profile_options__init(&o);
    char *hosts[] = {(char *)(uintptr_t)fake_address(set, good)},
         *nobody[] = {(char *)(uintptr_t)fake_address(set, idle)};
    o.duration_ms = 50;
    o.host_tracer_level = 2;
    r.opts = &o;
    q.request = &r;
    q.hosts = hosts;
    q.n_hosts = 1;
    q.session_id = (char *)(uintptr_t) "s";
    static const char path[] = "/tensorflow.ProfileAnalysis/NewSession";
    CHECK_OK(call(ch, path, &q.base, &reply, &err), &err);
    q.repository_root = (char *)(uintptr_t) "/somewhere/else";
    CHECK_STATUS(call(ch, path, &q.base, &reply, &err), XPL_INVALID_ARGUMENT, &err);
    char root[300];
    (void)snprintf(root, sizeof root, "%s/plugins/profile/", dir);
    q.repository_root = root;
    q.hosts = nobody;
    CHECK_OK(call(ch, path, &q.base, &reply, NULL), NULL);
    CHECK_OK(xpl_rpc_message_unpack(&tensorflow__new_profile_session_response__descriptor,
                                    reply.bytes, &arena, &msg, NULL),
             NULL);
    CHECK(((Tensorflow__NewProfileSessionResponse *)msg)->empty_trace);

    Tensorflow__EnumProfileSessionsAndToolsRequest e;
    tensorflow__enum_profile_sessions_and_tools_request__init(&e);
    CHECK_OK(call(ch, "/tensorflow.ProfileAnalysis/EnumSessions", &e.base, &reply, NULL), NULL);
    CHECK_OK(
        xpl_rpc_message_unpack(&tensorflow__enum_profile_sessions_and_tools_response__descriptor,
                               reply.bytes, &arena, &msg, NULL),
        NULL);
    const Tensorflow__EnumProfileSessionsAndToolsResponse *const all =
        (Tensorflow__EnumProfileSessionsAndToolsResponse *)msg;
    CHECK_EQ(all->n_sessions, 1);
    CHECK_STR(all->sessions[0]->session_id, "s");
    CHECK(all->sessions[0]->n_available_tools > 5);

    Tensorflow__ProfileSessionDataRequest t;
    tensorflow__profile_session_data_request__init(&t);
    t.session_id = (char *)(uintptr_t) "s";
    t.tool_name = (char *)(uintptr_t) "overview_page";
    for (int i = 0; i < 2; i++) { // made, then from memory
        CHECK_OK(call(ch, "/tensorflow.ProfileAnalysis/GetSessionToolData", &t.base, &reply, NULL),
                 NULL);
        CHECK_OK(xpl_rpc_message_unpack(&tensorflow__profile_session_data_response__descriptor,
                                        reply.bytes, &arena, &msg, NULL),
                 NULL);
        const Tensorflow__ProfileSessionDataResponse *const data =
            (Tensorflow__ProfileSessionDataResponse *)msg;
        CHECK_STR(data->output_format, "json");
        CHECK(data->output.len > 2);
    }
    t.session_id = (char *)(uintptr_t) "nope";
    CHECK_STATUS(call(ch, "/tensorflow.ProfileAnalysis/GetSessionToolData", &t.base, &reply, NULL),
                 XPL_NOT_FOUND, NULL);
    xpl_rpc_reply_fini(&reply);
    xpl_arena_fini(&arena);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

// ---- XProf's capture route ----

// What a page of another site can make a browser send begins nothing.
static void expect_only_own_pages(struct fake_set *set, int host, const char *address,
                                  const char *path) {
    static const char *const others[] = {
        "", // an image of a page with Referrer-Policy: no-referrer, over HTTP: nothing tells
        "User-Agent: Mozilla/5.0 (X11)\r\n",
        "User-Agent: Mozilla/5.0 (X11)\r\nReferer: http://evil.example/\r\n",
        "Referer: http://evil.example/?http://localhost/\r\n",
        "Referer: http://localhost.evil.example/\r\n",
        "Referer: http://127.0.0.1:1/\r\n", // our host, another's port
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Sec-Fetch-Site: none\r\n", // a link in a mail
        "Origin: null\r\n",
    };
    const unsigned before = fake_calls(set, host);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct reply r = http_ask(address, "GET", path, others[i]);
        if (r.status != 403) fprintf(stderr, "%s", others[i]);
        CHECK_EQ(r.status, 403);
        reply_free(&r);
    }
    struct reply r =
        http_ask(address, "POST", path, "Content-Length: 0\r\nUser-Agent: Mozilla/5.0 (old)\r\n");
    CHECK_EQ(r.status, 403);
    reply_free(&r);
    CHECK_EQ(fake_calls(set, host), before);
    // XProf's page, under plain HTTP and under a name that browsers trust.
    char headers[300];
    (void)snprintf(headers, sizeof headers,
                   "User-Agent: Mozilla/5.0 (X11)\r\nReferer: http://%s/\r\n", address);
    r = http_ask(address, "GET", path, headers);
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    r = http_ask(address, "GET", path, "Sec-Fetch-Site: same-origin\r\n");
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    r = http_ask(address, "POST", path, "Content-Length: 0\r\n");
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    CHECK_EQ(fake_calls(set, host), before + 3);
}

static void scenario_http(void) {
    const char *dir = make_dir(), *state = make_dir();
    static const char *const http[] = {"--no-prefetch", "--http", "127.0.0.1:0", NULL};
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK), idle = add(set, FAKE_IDLE), hang = add(set, FAKE_HANG);
    struct daemon_proc d = start_daemon(dir, state, http);
    char path[400];
    struct reply r = http_get(d.http_address, "/config");
    CHECK_EQ(r.status, 200);
    CHECK(strstr(r.body, "\"hideCaptureProfileButton\": false"));
    reply_free(&r);
    (void)snprintf(path, sizeof path, "/capture_profile?service_addr=%s&duration=50",
                   fake_address(set, good));
    r = http_ask(d.http_address, "GET", path, "Xplaned-Request: 1\r\n");
    CHECK_EQ(r.status, 200);
    CHECK_STR(r.body, "{\"result\": \"Capture profile successfully. Please refresh.\"}");
    reply_free(&r);
    r = http_get(d.http_address, "/runs");
    CHECK_EQ(r.status, 200);
    CHECK(strlen(r.body) > 10);
    reply_free(&r);
    // Partly done is done; XProf's plugin path is served as well.
    (void)snprintf(path, sizeof path,
                   "/data/plugin/profile/capture_profile?service_addr=%s,%s&duration=50"
                   "&num_retry=0&host_tracer_level=2",
                   fake_address(set, good), fake_address(set, idle));
    r = http_ask(d.http_address, "GET", path, "Xplaned-Request: 1\r\n");
    CHECK_EQ(r.status, 200);
    CHECK(strstr(r.body, "Not captured: ") && strstr(r.body, "idle"));
    reply_free(&r);
    (void)snprintf(path, sizeof path, "/capture_profile?service_addr=%s&duration=50",
                   fake_address(set, idle));
    r = http_ask(d.http_address, "GET", path, "Xplaned-Request: 1\r\n");
    CHECK_EQ(r.status, 500);
    CHECK(strncmp(r.body, "{\"error\": \"", 11) == 0);
    reply_free(&r);
    static const char *const wrong[] = {"", "?service_addr=", "?service_addr=grpc%3A%2F%2Fx%3A1",
                                        "?service_addr=a%3A1&duration=soon",
                                        "?service_addr=a%3A1&is_tpu_name=true"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)snprintf(path, sizeof path, "/capture_profile%s", wrong[i]);
        r = http_ask(d.http_address, "GET", path, "Xplaned-Request: 1\r\n");
        CHECK_EQ(r.status, 500);
        CHECK(strncmp(r.body, "{\"error\": \"", 11) == 0);
        reply_free(&r);
    }
    (void)snprintf(path, sizeof path, "/capture_profile?service_addr=%s", fake_address(set, good));
    expect_only_own_pages(set, good, d.http_address, path);
    // A request for the head begins nothing.
    const int head = http_connect(d.http_address);
    http_send_text(head, "HEAD /capture_profile?service_addr=%s HTTP/1.1\r\nHost: %s\r\n\r\n",
                   fake_address(set, idle), d.http_address);
    const unsigned before = fake_calls(set, idle);
    r = http_read(head, true);
    CHECK_EQ(r.status, 405);
    CHECK_EQ(fake_calls(set, idle), before);
    reply_free(&r);
    (void)close(head);
    // Who goes away cancels; the host is free again.
    xpl_client *c = open_client(&d, 60000);
    const int fd = http_connect(d.http_address);
    http_send_text(fd,
                   "POST /capture_profile?service_addr=%s&duration=50 HTTP/1.1\r\nHost: %s\r\n"
                   "Content-Length: 0\r\n\r\n",
                   fake_address(set, hang), d.http_address);
    CHECK(becomes(c, "running"));
    (void)close(fd);
    CHECK(becomes(c, "cancelled"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"analysis", scenario_analysis}, {"cancel", scenario_cancel},
                     {"capture", scenario_capture},   {"continuous", scenario_continuous},
                     {"full", scenario_full},         {"handover", scenario_handover},
                     {"http", scenario_http},         {"killed", scenario_killed},
                     {"logdir", scenario_logdir},     {"recorded", scenario_recorded},
                     {"retries", scenario_retries},   {"schedule", scenario_schedule},
                     {"trouble", scenario_trouble}};
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    (void)fprintf(stderr, "usage: test_captures SCENARIO\n");
    return 2;
}
