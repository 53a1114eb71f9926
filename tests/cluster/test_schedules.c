// SPDX-License-Identifier: Apache-2.0
// Captures and schedules of several daemons on one database: each turn is one daemon's, and goes on
// elsewhere when that is killed, frozen, ended or cut off.
#include <pthread.h>

#include "base/clock.h"
#include "tests/cluster/clocks.h"
#include "tests/cluster/database.h"
#include "tests/server/capture_requests.h"

enum { LEASE_MS = 2000, HOUR_MS = 3600000 };

struct fleet { // daemons of one LOGDIR
    const char *dir;
    struct daemon_proc d[3];
    xpl_client *c[3];
    int n;
};

static void add_daemon(struct fleet *f) {
    const char *const flags[] = {"--no-prefetch", store_flag(), "--job-lease=2s", "--grace=8s",
                                 NULL};
    if (!f->dir) f->dir = make_dir();
    f->d[f->n] = start_daemon(f->dir, make_dir(), flags);
    f->c[f->n] = open_client(&f->d[f->n], 60000);
    f->n++;
}

static struct fleet start_fleet(int n) {
    struct fleet f = {0};
    while (f.n < n)
        add_daemon(&f);
    return f;
}

static void lose_client(struct fleet *f, int i) {
    xpl_client_close(f->c[i]);
    f->c[i] = NULL;
}

static void stop_one(struct fleet *f, int i) {
    if (f->c[i]) lose_client(f, i);
    CHECK_EQ(stop_daemon(&f->d[i]), 0);
    f->d[i].pid = 0;
}

static void stop_fleet(struct fleet *f) {
    for (int i = 0; i < f->n; i++)
        if (f->d[i].pid > 0) stop_one(f, i);
}

static uint64_t schedule(struct fleet *f, int i, const char *const *targets, size_t n,
                         long every_ms, bool continuous) {
    struct seen v = {0};
    xpl_result r;
    uint64_t id = 0;
    const xpl_capture_request q = request(targets, n, &v);
    const xpl_schedule_request s = {.size = sizeof s,
                                    .capture = &q,
                                    .every_ms = every_ms,
                                    .keep_count = continuous ? 0 : 3,
                                    .continuous = continuous};
    CHECK_STATUS(xpl_client_schedule(f->c[i], &s, &id, &r), XPL_OK, NULL);
    return id;
}

// Which daemon has the schedule, by the line of the log that says so or by its lease.
static void wait_for_owner(const char *which) {
    char sql[200];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*)=1 FROM schedules WHERE expires_at>clock_timestamp() AND %s",
                   which);
    wait_for(sql);
}

static void wait_for_done(int n) {
    char sql[160];
    (void)snprintf(sql, sizeof sql, "SELECT count(*)>=%d FROM captures WHERE state=2", n);
    wait_for(sql);
}

// No turn twice: those of a schedule that captures every 1.5 s are not closer than that, but for
// what the machine's load shifts them.
static void expect_apart(void) {
    expect_now("SELECT NOT EXISTS (SELECT 1 FROM captures a JOIN captures b ON a.id<b.id AND"
               " a.state IN (2,3) AND b.state IN (2,3) AND abs(a.begin_ms-b.begin_ms)<500)");
}

// Three daemons, one run at a time; all of them list, and any of them ends it.
static void scenario_once(void) {
    struct fleet f = start_fleet(3);
    struct fake_set *const set = fake_set_new();
    const int good = add(set, FAKE_OK);
    const char *const target = fake_address(set, good);
    CHECK_EQ(schedule(&f, 0, &target, 1, 1500, false), 1);
    wait_for_done(5);
    expect_apart();
    for (int i = 0; i < 3; i++) {
        xpl_captures *list = NULL;
        xpl_result r;
        CHECK_EQ(xpl_client_captures(f.c[i], 0, &list, &r), 0);
        const xpl_schedule_info *const s = xpl_captures_schedule(list, 0);
        CHECK(s && s->id == 1 && s->every_ms == 1500);
        CHECK(xpl_captures_get(list, 4) && xpl_captures_get(list, 4)->schedule_id == 1);
        xpl_captures_free(list);
    }
    // --keep counts what all made.
    expect_now("SELECT count(*) BETWEEN 1 AND 4 FROM schedule_sessions");
    xpl_result r;
    CHECK_STATUS(xpl_client_unschedule(f.c[2], 7, &r), XPL_NOT_FOUND, NULL);
    CHECK_EQ(xpl_client_unschedule(f.c[2], 1, &r), 0);
    sleep_ms(2500);
    const unsigned calls = fake_calls(set, good);
    char sql[120];
    (void)snprintf(sql, sizeof sql, "SELECT count(*)=%u FROM captures WHERE state<>1", calls);
    wait_for(sql); // the program received no requests but these
    sleep_ms(2500);
    CHECK_EQ(fake_calls(set, good), calls);
    stop_fleet(&f);
    fake_set_free(set);
}

// The owner is killed between two turns, and then the next one during a capture.
static void scenario_killed(void) {
    struct fleet f = start_fleet(3);
    struct fake_set *const set = fake_set_new();
    const struct fake_options slow = {.mode = FAKE_OK, .extra_ms = 2000};
    const char *const target = fake_address(set, fake_add(set, &slow));
    (void)schedule(&f, 0, &target, 1, 3000, false);
    wait_for_done(1);
    lose_client(&f, 0);
    kill_daemon(&f.d[0], SIGKILL);
    f.d[0].pid = 0;
    wait_for_owner("fence=2");
    wait_for_done(2);
    const int owner = log_has(&f.d[1], "schedule 1 is this daemon's") ? 1 : 2;
    wait_for("SELECT count(*)=1 FROM captures WHERE state=1");
    lose_client(&f, owner);
    kill_daemon(&f.d[owner], SIGKILL);
    f.d[owner].pid = 0;
    wait_for("SELECT count(*)=1 FROM captures WHERE state=6");
    wait_for_owner("fence=3");
    wait_for_done(3);
    expect_apart();
    stop_fleet(&f);
    fake_set_free(set);
}

// It returns when another daemon owns the schedule: its capture is not stored.
static void scenario_frozen(void) {
    struct fleet f = start_fleet(2);
    struct fake_set *const set = fake_set_new();
    const struct fake_options slow = {.mode = FAKE_OK, .extra_ms = 4000};
    const int program = fake_add(set, &slow);
    const char *const target = fake_address(set, program);
    (void)schedule(&f, 0, &target, 1, HOUR_MS, false);
    wait_for("SELECT count(*)=1 FROM captures WHERE state=1");
    for (long waited = 0; fake_calls(set, program) == 0; waited += 50) {
        CHECK(waited < PATIENCE_MS);
        sleep_ms(50);
    }
    CHECK_EQ(kill(f.d[0].pid, SIGSTOP), 0);
    wait_for_owner("fence=2");
    wait_for_done(1);
    CHECK_EQ(kill(f.d[0].pid, SIGCONT), 0);
    CHECK(log_has(&f.d[0], "is cancelled: its lease"));
    CHECK(log_has(&f.d[0], "schedule 1 is another daemon's by now"));
    expect_now("SELECT count(*)=1 FROM schedule_sessions");
    CHECK(has_sessions(f.c[1], 1));
    expect_now("SELECT count(*)=2 FROM captures WHERE state IN (2,6)");
    stop_fleet(&f);
    fake_set_free(set);
}

static void lose_daemon(struct fleet *f, int i) {
    lose_client(f, i);
    kill_daemon(&f->d[i], SIGKILL);
    f->d[i].pid = 0;
}

// Turns go on, at their times, when the schedule comes to a daemon whose clock is hours behind, and
// then to one that is ahead: captures that are due in an hour do not run.
static void scenario_clocks(void) {
    static const int hours[] = {0, -3, 3};
    need_clocks();
    struct fleet f = start_fleet(1);
    struct fake_set *const set = fake_set_new();
    const int often = add(set, FAKE_OK), hourly = add(set, FAKE_OK);
    const char *const targets[] = {fake_address(set, often), fake_address(set, hourly)};
    const uint64_t began = xpl_clock_ns();
    (void)schedule(&f, 0, &targets[0], 1, 1500, false);
    (void)schedule(&f, 0, &targets[1], 1, HOUR_MS, false);
    wait_for("SELECT count(DISTINCT schedule_id)=2 FROM captures WHERE state=2");
    for (int i = 1; i < 3; i++) {
        char sql[120];
        shift_clock(hours[i]);
        add_daemon(&f);
        shift_clock(0);
        expect_clock(&f.d[i], hours[i]);
        lose_daemon(&f, i - 1);
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*)=2 FROM schedules WHERE fence=%d AND"
                       " expires_at>clock_timestamp()",
                       i + 1);
        wait_for(sql);
        const unsigned calls = fake_calls(set, often);
        for (long waited = 0; fake_calls(set, often) < calls + 3; waited += 50) {
            CHECK(waited < PATIENCE_MS);
            sleep_ms(50);
        }
        CHECK_EQ(fake_calls(set, hourly), 1);
    }
    // No turn twice, but for one that is broken off at each kill.
    CHECK(fake_calls(set, often) <= (xpl_clock_ns() - began) / 1000000 / 1500 + 1 + 2);
    stop_fleet(&f);
    fake_set_free(set);
}

// A daemon that ends hands its schedules over at once.
static void scenario_drained(void) {
    const char *const dir = make_dir();
    const char *const flags[] = {"--no-prefetch", store_flag(), "--job-lease=60s", "--grace=8s",
                                 NULL};
    struct fake_set *const set = fake_set_new();
    const char *const target = fake_address(set, add(set, FAKE_OK));
    struct fleet f = {.dir = dir, .n = 2};
    for (int i = 0; i < 2; i++) {
        f.d[i] = start_daemon(dir, make_dir(), flags);
        f.c[i] = open_client(&f.d[i], 60000);
    }
    (void)schedule(&f, 0, &target, 1, 2000, false);
    wait_for_done(1);
    stop_one(&f, 0);
    wait_for_owner("fence=2"); // a daemon that has seen no schedules looks for them every 5 s
    wait_for_done(3);
    expect_apart();
    stop_fleet(&f);
    fake_set_free(set);
}

// The database goes and comes: captures work all the time, schedules pause.
static void scenario_outage(void) {
    struct fleet f = start_fleet(2);
    struct fake_set *const set = fake_set_new();
    const struct fake_options slow = {.mode = FAKE_OK, .extra_ms = 1500};
    const char *const of_schedule = fake_address(set, add(set, FAKE_OK));
    const char *const target = fake_address(set, add(set, FAKE_OK));
    const char *const slow_target = fake_address(set, fake_add(set, &slow));
    struct waiter w = {.d = &f.d[1], .targets = &slow_target};
    pthread_t t;
    (void)schedule(&f, 0, &of_schedule, 1, 1500, false);
    wait_for_done(1);
    CHECK_EQ(pthread_create(&t, NULL, wait_for_capture, &w), 0);
    wait_for("SELECT count(*)=1 FROM captures WHERE state=1 AND schedule_id=0");
    pg_stop(SIGQUIT);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(w.code, 0); // it began before, and is done
    struct seen v = {0};
    xpl_result r;
    const xpl_capture_request q = request(&target, 1, &v);
    CHECK_EQ(xpl_client_capture(f.c[0], &q, &r), 0);
    CHECK_EQ(v.n_stored, 1);
    sleep_ms(LEASE_MS + 1000); // longer than the lease
    const unsigned calls = fake_calls(set, 0);
    sleep_ms(2000);
    CHECK_EQ(fake_calls(set, 0), calls); // it pauses
    pg_start();
    wait_for_owner("fence=1"); // it still has its first owner
    wait_for("SELECT count(*)=2 FROM captures WHERE schedule_id=0 AND state=2");
    char sql[100];
    (void)snprintf(sql, sizeof sql, "SELECT count(*)>%u FROM captures WHERE schedule_id=1", calls);
    wait_for(sql);
    expect_now("SELECT count(*)=0 FROM captures WHERE state IN (4,5,6)");
    stop_fleet(&f);
    fake_set_free(set);
}

// A target that a capture of another daemon has is busy; retries wait for it.
static void scenario_busy(void) {
    struct fleet f = start_fleet(2);
    struct fake_set *const set = fake_set_new();
    const struct fake_options slow = {.mode = FAKE_OK, .extra_ms = 8000};
    const int busy = fake_add(set, &slow), good = add(set, FAKE_OK);
    const char *const targets[] = {fake_address(set, busy), fake_address(set, good)};
    struct waiter first = {.d = &f.d[0], .targets = targets};
    pthread_t t;
    struct seen v = {0};
    xpl_result r;
    wait_for("SELECT count(*)=2 FROM daemons");
    CHECK_EQ(pthread_create(&t, NULL, wait_for_capture, &first), 0);
    wait_for("SELECT count(*)=1 FROM capture_targets");
    xpl_capture_request q = request(targets, 1, &v);
    CHECK_STATUS(xpl_client_capture(f.c[1], &q, &r), XPL_UNAVAILABLE, NULL);
    if (!strstr(r.message, "it is being captured by capture 1 of daemon "))
        CHECK_STR(r.message, "it is being captured by capture 1 of daemon");
    CHECK(strstr(r.message, "try again when it has finished, or allow retries"));
    expect_now("SELECT count(*)=1 FROM captures"); // nothing is left of it
    // Of several targets it goes on with those that are free.
    q = request(targets, 2, &v);
    CHECK_EQ(xpl_client_capture(f.c[1], &q, &r), 0);
    CHECK_EQ(v.n_stored, 1);
    CHECK(strstr(v.hosts[0].reason, "it is being captured by capture 1 of daemon "));
    q.retries = 20;
    CHECK_EQ(xpl_client_capture(f.c[1], &q, &r), 0);
    CHECK_EQ(v.n_stored, 2);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(first.code, 0);
    CHECK_EQ(fake_calls(set, busy), 2);
    expect_now("SELECT count(*)=0 FROM capture_targets");
    stop_fleet(&f);
    fake_set_free(set);
}

// A host that a schedule of one daemon records all the time is handed over to another's capture.
static void scenario_recorded(void) {
    struct fleet f = start_fleet(2);
    struct fake_set *const set = fake_set_new();
    const int one = add(set, FAKE_OK);
    const char *const target = fake_address(set, one);
    struct seen v = {0};
    xpl_result r;
    (void)schedule(&f, 0, &target, 1, HOUR_MS, true);
    wait_for_done(1); // it records, and its next turn is an hour away
    wait_for("SELECT count(*)=1 FROM capture_targets WHERE capture_id=0 AND records");
    const xpl_capture_request q = request(&target, 1, &v);
    const int code = xpl_client_capture(f.c[1], &q, &r);
    if (code) fprintf(stderr, "%s\n", r.message);
    CHECK_EQ(code, 0);
    CHECK_EQ(v.n_stored, 1);
    expect_now("SELECT count(*)=1 FROM schedule_sessions"); // its sessions are not lost
    // It records again, and goes on elsewhere.
    wait_for("SELECT count(*)=1 FROM capture_targets WHERE capture_id=0 AND records");
    lose_client(&f, 0);
    kill_daemon(&f.d[0], SIGKILL);
    f.d[0].pid = 0;
    wait_for_owner("fence=2");
    CHECK_EQ(xpl_client_unschedule(f.c[1], 1, &r), 0);
    stop_fleet(&f);
    fake_set_free(set);
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"once", scenario_once},         {"killed", scenario_killed}, {"frozen", scenario_frozen},
        {"drained", scenario_drained},   {"outage", scenario_outage}, {"busy", scenario_busy},
        {"recorded", scenario_recorded}, {"clocks", scenario_clocks},
    };
    const char *const why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
