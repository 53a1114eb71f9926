// SPDX-License-Identifier: Apache-2.0
// Captures whose daemon is killed, whose disk is full, whose LOGDIR cannot be written.
// Usage: test_captures_disk SCENARIO
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/capture_requests.h"

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

// A daemon that is killed: the next one cleans up what its captures left, and nothing else.
static void scenario_killed(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK), hang = add(set, FAKE_HANG);
    const char *const targets[] = {fake_address(set, good), fake_address(set, hang)};
    for (int round = 0; round < 3; round++) {
        struct daemon_proc d = start_daemon(dir, state, plain);
        xpl_client *c = open_client(&d, 60000);
        // Nothing stored; a profile stored; another program's directory of that name.
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
        // Files that another program writes at this moment are kept.
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

// No space: a host whose profile cannot be written is the only one to fail, and leaves nothing.
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
    CHECK_EQ(fake_calls(set, good), 0); // no host is profiled in vain
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

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"killed", scenario_killed},
        {"full", scenario_full},
        {"logdir", scenario_logdir},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
