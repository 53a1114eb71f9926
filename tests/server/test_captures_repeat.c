// SPDX-License-Identifier: Apache-2.0
// Captures that repeat: schedules, continuous ones, retries, the recording of a host handed over.
// Usage: test_captures_repeat SCENARIO
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/server/capture_requests.h"

static void wait_for_turns(xpl_client *c, uint64_t last) {
    for (int waited = 0; waited < PATIENCE_MS; waited += 50) {
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
    // A schedule does not remove a session to which another client added a profile.
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
    for (int waited = 0; waited < PATIENCE_MS && count_sessions(c) > 5; waited += 50)
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

// A daemon that starts while another has state.db takes it with its contents when the other ends.
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
    for (int waited = 0; waited < PATIENCE_MS && !shows(other, true, 1); waited += 20)
        sleep_ms(20);
    CHECK(shows(other, true, 1));
    CHECK(log_has(&second, "history and schedules go on"));
    // Numbers go on, too.
    uint64_t id = 0;
    CHECK_EQ(xpl_client_schedule(other, &s, &id, &r), 0);
    CHECK_EQ(id, 2);
    for (int waited = 0; waited < PATIENCE_MS && !shows(other, true, 2); waited += 20)
        sleep_ms(20);
    CHECK(shows(other, true, 2));
    xpl_client_close(other);
    CHECK_EQ(stop_daemon(&second), 0);
    fake_set_free(set);
}

// The servers record all the time, and get requests for their recordings.
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
    const int busy = add(set, FAKE_OK), good = add(set, FAKE_OK);
    const char *const targets[] = {fake_address(set, busy), fake_address(set, good)};
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    for (size_t n = 1; n <= 2; n++) {
        struct waiter first = {.d = &d, .targets = targets, .n = 1},
                      second = {.d = &d, .targets = targets, .n = n};
        pthread_t t[2];
        char name[256];
        fake_hold(set, busy, true); // until the other one has met it
        CHECK_EQ(pthread_create(&t[0], NULL, wait_for_capture, &first), 0);
        CHECK(host_becomes(c, 0, "collecting", name));
        CHECK_EQ(pthread_create(&t[1], NULL, capture_with_retries, &second), 0);
        CHECK(host_becomes(c, 0, "pausing", name));
        xpl_captures *list = NULL;
        CHECK_EQ(xpl_client_captures(c, 2, &list, NULL), 0);
        const char *const reason = xpl_captures_get(list, 0)->hosts[0].reason;
        CHECK(strstr(reason, "it is being captured by capture"));
        xpl_captures_free(list);
        fake_hold(set, busy, false);
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

// A refused capture names the schedule that captures the host.
static void scenario_refused(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const char *const target = fake_address(set, add(set, FAKE_HANG));
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    struct seen v = {0};
    char name[256];
    const xpl_capture_request q = request(&target, 1, &v);
    const xpl_schedule_request s = {.size = sizeof s, .capture = &q, .every_ms = 3600000};
    CHECK_EQ(xpl_client_schedule(c, &s, NULL, &r), 0);
    CHECK(host_becomes(c, 0, "collecting", name));
    CHECK_STATUS(xpl_client_capture(c, &q, &r), XPL_UNAVAILABLE, NULL);
    const char *const why = "it is being captured by capture 1 (of schedule 1) of this daemon";
    if (!strstr(r.message, why)) CHECK_STR(r.message, why);
    CHECK_EQ(xpl_client_unschedule(c, 1, &r), 0);
    CHECK_EQ(xpl_client_cancel_capture(c, 1, &r), 0);
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

// The newest capture is one of the schedule and has ended, and both servers record.
static bool records_again(xpl_client *c, const struct fake_set *set, int one, int two) {
    for (int waited = 0; waited < PATIENCE_MS; waited += 50) {
        xpl_captures *list = NULL;
        CHECK_EQ(xpl_client_captures(c, 1, &list, NULL), 0);
        const xpl_capture_info *const info = xpl_captures_get(list, 0);
        const bool is_over = info && info->schedule_id == 1 && strcmp(info->state, "done") == 0;
        xpl_captures_free(list);
        if (is_over && fake_records(set, one) && fake_records(set, two)) return true;
        sleep_ms(50);
    }
    return false;
}

// A host that a schedule records all the time can be captured: the schedule stores its recording,
// releases the host, and continues later.
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
    CHECK_EQ(sessions_of_schedule(c), 1); // the earlier recording is not lost
    // It records again, and hands over again.
    for (int i = 0; i < 2; i++) {
        v = (struct seen){0};
        const xpl_capture_request again = request(targets + i, 1, &v);
        CHECK(i || records_again(c, set, one, two));
        CHECK_EQ(xpl_client_capture(c, &again, &r), 0);
    }
    CHECK(sessions_of_schedule(c) >= 2);
    CHECK_EQ(xpl_client_unschedule(c, 1, &r), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"schedule", scenario_schedule},     {"handover", scenario_handover},
        {"continuous", scenario_continuous}, {"retries", scenario_retries},
        {"recorded", scenario_recorded},     {"refused", scenario_refused},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
