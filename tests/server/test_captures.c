// SPDX-License-Identifier: Apache-2.0
// Captures by a real daemon, from the tests' profiler servers. Usage: test_captures SCENARIO
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/capture_requests.h"

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
    const char *const names[] = {"a", "i", "b", "d"};
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
    CHECK_STR(v.hosts[0].host, "a");
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
    static const char *const outside[] = {"../x"}, *const spaced[] = {"a b"};
    q.host_names = outside;
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_INVALID_ARGUMENT, NULL);
    CHECK(strstr(r.message, "a host's name has letters"));
    q.host_names = spaced;
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_INVALID_ARGUMENT, NULL);
    q.host_names = names;
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

// Waits, a minute at most, until a server has been called.
static bool is_called(struct fake_set *set, int server) {
    for (int i = 0; i < 6000 && !fake_calls(set, server); i++)
        sleep_ms(10);
    return fake_calls(set, server) > 0;
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
    CHECK(is_called(set, hang)); // the call may still be on its way
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
    // After a kill the next daemon knows which captures were running.
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

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"capture", scenario_capture},
        {"cancel", scenario_cancel},
        {"trouble", scenario_trouble},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
