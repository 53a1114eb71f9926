// SPDX-License-Identifier: Apache-2.0
// Schedules: what can be scheduled, missed captures, restarts, deletion, and which sessions stay.
// Captures go to a missing socket, so each ends soon.
#include "server/capture_jobs/schedules.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "rpc/message.h"
#include "server/capture_jobs/keeper.h"
#include "server/removal/removal.h"
#include "storage/store/captures.h"
#include "tests/check.h"

enum { HOUR_MS = 3600000, PATIENCE_MS = 60000 };

static int64_t now_ms(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_REALTIME, &t), 0);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pause_ms(int ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

// ---- a daemon's part ----

struct fixture {
    char top[64], logdir[96];
    bool enabled;
    struct xpl_history *history;
    struct xpl_catalogue *catalogue;
    struct xpl_capture_jobs *jobs;
    struct xpl_removals removals;
    struct xpl_schedules *schedules;
    struct xpl_store *shared; // NULL: no other daemon has captures
};

static void no_scan(void *arg, const char *path) {
    (void)arg, (void)path;
}

// What a daemon starts, also once more on what an earlier one left.
static void start(struct fixture *f) {
    struct xpl_error err = {0};
    const struct xpl_catalogue_options co = {
        .size = sizeof co, .logdir = f->logdir, .match = xpl_format_match};
    CHECK_EQ(xpl_history_open(f->top, &f->history, &err), XPL_OK);
    CHECK(xpl_history_is_on(f->history));
    CHECK_EQ(xpl_catalogue_new(&co, &f->catalogue, &err), XPL_OK);
    const struct xpl_capture_jobs_options jo = {.logdir = f->logdir,
                                                .history = f->history,
                                                .shared = f->shared,
                                                .lease_ms = 60000,
                                                .catalogue = f->catalogue,
                                                .scan = no_scan,
                                                .enabled = f->enabled};
    CHECK((f->jobs = xpl_capture_jobs_new(&jo)));
    f->removals = (struct xpl_removals){.logdir = f->logdir};
    CHECK((f->schedules = xpl_schedules_new(f->jobs, f->history, &f->removals)));
}

static void stop(struct fixture *f) {
    xpl_capture_jobs_join(f->jobs);
    xpl_schedules_free(f->schedules);
    xpl_capture_jobs_free(f->jobs);
    xpl_catalogue_free(f->catalogue);
    xpl_history_close(f->history);
}

static void make_dirs(struct fixture *f, bool enabled) {
    *f = (struct fixture){.enabled = enabled};
    (void)snprintf(f->top, sizeof f->top, "/tmp/xplaned-schedules-XXXXXX");
    CHECK(mkdtemp(f->top));
    char path[160];
    (void)snprintf(f->logdir, sizeof f->logdir, "%s/log", f->top);
    CHECK_EQ(mkdir(f->logdir, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/plugins", f->logdir);
    CHECK_EQ(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/plugins/profile", f->logdir);
    CHECK_EQ(mkdir(path, 0700), 0);
}

static void remove_dirs(const struct fixture *f) {
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", f->top);
    CHECK_EQ(system(command), 0);
}

// ---- requests ----

struct plan {
    Xplaned__V1__CreateScheduleRequest request;
    Xplaned__V1__CaptureRequest capture;
    char *targets[1];
};

static void init_plan(struct plan *p) {
    static char target[] = "unix:/nonexistent/profiler";
    xplaned__v1__create_schedule_request__init(&p->request);
    xplaned__v1__capture_request__init(&p->capture);
    p->targets[0] = target;
    p->capture.targets = p->targets;
    p->capture.n_targets = 1;
    p->capture.duration_ms = 1;
    p->request.capture = &p->capture;
    p->request.every_ms = HOUR_MS;
}

static uint64_t create(struct fixture *f, const struct plan *p) {
    struct xpl_error err = {0};
    uint64_t id = 0;
    CHECK_EQ(xpl_schedules_create(f->schedules, &p->request, &id, &err), XPL_OK);
    CHECK(id > 0);
    return id;
}

static void expect_refused(struct fixture *f, const struct plan *p, xpl_status_t code) {
    struct xpl_error err = {0};
    uint64_t id = 77;
    CHECK_EQ(xpl_schedules_create(f->schedules, &p->request, &id, &err), code);
    CHECK(err.msg[0]);
    CHECK_EQ(id, 77);
}

// A schedule as a client sees it; copies no lists.  False when there is none.
static bool get(struct fixture *f, uint64_t id, Xplaned__V1__Schedule *ret) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_error err = {0};
    Xplaned__V1__ListSchedulesResponse r;
    CHECK_EQ(xpl_schedules_list(f->schedules, id, &arena, &r, &err), XPL_OK);
    if (r.n_schedules) *ret = *r.schedules[0];
    CHECK(r.n_schedules <= 1);
    return r.n_schedules == 1;
}

static size_t count_schedules(struct fixture *f) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(64 << 20);
    struct xpl_error err = {0};
    Xplaned__V1__ListSchedulesResponse r;
    CHECK_EQ(xpl_schedules_list(f->schedules, 0, &arena, &r, &err), XPL_OK);
    for (size_t i = 0; i < r.n_schedules; i++)
        CHECK(r.schedules[i]->request->capture->n_targets == 1);
    return r.n_schedules;
}

// Ticks until the schedule's capture number `capture_id`, or a later one, has ended.
static Xplaned__V1__Schedule run_turn(struct fixture *f, uint64_t id, uint64_t capture_id) {
    Xplaned__V1__Schedule s;
    const uint64_t end = xpl_clock_ns() + (uint64_t)PATIENCE_MS * 1000000;
    for (;;) {
        xpl_schedules_tick(f->schedules);
        CHECK(get(f, id, &s));
        if (s.last_capture_id >= capture_id) return s;
        CHECK(xpl_clock_ns() < end);
        pause_ms(5);
    }
}

// ---- what can be scheduled ----

static void check_create(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct plan p;
    make_dirs(&f, true);
    start(&f);
    init_plan(&p);
    p.request.every_ms = 1000; // must be 1 s longer than the capture
    expect_refused(&f, &p, XPL_INVALID_ARGUMENT);
    p.request.every_ms = 366ULL * 86400000 + 1;
    expect_refused(&f, &p, XPL_INVALID_ARGUMENT);
    init_plan(&p);
    p.request.capture = NULL;
    expect_refused(&f, &p, XPL_INVALID_ARGUMENT);
    init_plan(&p);
    p.capture.n_targets = 0;
    expect_refused(&f, &p, XPL_INVALID_ARGUMENT);
    init_plan(&p);
    static char long_name[(1 << 20) + 16];
    memset(long_name, 'x', sizeof long_name - 1);
    p.capture.session = long_name;
    expect_refused(&f, &p, XPL_RESOURCE_EXHAUSTED);
    CHECK_EQ(count_schedules(&f), 0);
    init_plan(&p);
    p.request.every_ms = 1001;
    const uint64_t first = create(&f, &p);
    for (size_t i = 1; i < XPL_SCHEDULES_MAX; i++)
        CHECK(create(&f, &p) > first);
    CHECK_EQ(count_schedules(&f), XPL_SCHEDULES_MAX);
    expect_refused(&f, &p, XPL_RESOURCE_EXHAUSTED);
    stop(&f);
    f.enabled = false; // --no-capture
    start(&f);
    expect_refused(&f, &p, XPL_PERMISSION_DENIED);
    stop(&f);
}

static void check_delete(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct plan p;
    struct xpl_error err = {0};
    Xplaned__V1__Schedule s;
    make_dirs(&f, true);
    start(&f);
    init_plan(&p);
    const uint64_t a = create(&f, &p), b = create(&f, &p);
    CHECK(get(&f, a, &s) && get(&f, b, &s));
    CHECK(!get(&f, b + 1, &s));
    CHECK_EQ(xpl_schedules_delete(f.schedules, b + 1, &err), XPL_NOT_FOUND);
    CHECK_EQ(xpl_schedules_delete(f.schedules, a, &err), XPL_OK);
    CHECK(!get(&f, a, &s));
    CHECK_EQ(xpl_schedules_delete(f.schedules, a, &err), XPL_NOT_FOUND);
    xpl_schedules_tick(f.schedules); // b's capture begins
    CHECK_EQ(xpl_schedules_delete(f.schedules, b, &err), XPL_OK);
    CHECK_EQ(count_schedules(&f), 0);
    CHECK_EQ(xpl_schedules_delete(f.schedules, b, &err), XPL_NOT_FOUND);
    stop(&f);
    start(&f);
    CHECK_EQ(count_schedules(&f), 0);
    stop(&f);
}

// ---- turns ----

// A schedule of the history, made `ago_ms` ago, that was due then.
static uint64_t add_row(struct fixture *f, const struct plan *p, int64_t ago_ms) {
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 16);
    uint64_t id = 0;
    xpl_rpc_message_put(&b, &p->request.base);
    CHECK(!b.failed);
    const int64_t then = now_ms() - ago_ms;
    const struct xpl_history_schedule row = {
        .request = {b.p, b.n}, .created_ms = then, .next_ms = then};
    CHECK_EQ(xpl_history_add_schedule(f->history, &row, &id, &err), XPL_OK);
    return id;
}

// The first capture comes at once, the next at its time; captures missed while no daemon ran are
// left out; a restart keeps the times.
static void check_turns(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct plan p;
    make_dirs(&f, true);
    start(&f);
    init_plan(&p);
    const uint64_t id = create(&f, &p);
    Xplaned__V1__Schedule s = run_turn(&f, id, 1);
    CHECK_EQ(s.last_capture_id, 1);
    CHECK_EQ(s.next_unix_ms, s.created_unix_ms + HOUR_MS);
    const int64_t next = s.next_unix_ms;
    for (int i = 0; i < 20; i++) {
        xpl_schedules_tick(f.schedules);
        pause_ms(1);
    }
    CHECK(get(&f, id, &s));
    CHECK_EQ(s.last_capture_id, 1); // not again
    // Ten turns and a half ago: one capture, and the next in half an hour.
    const uint64_t late = add_row(&f, &p, 10 * HOUR_MS + HOUR_MS / 2);
    stop(&f);
    start(&f);
    CHECK(get(&f, id, &s));
    CHECK_EQ(s.next_unix_ms, next);
    s = run_turn(&f, late, 2);
    CHECK_EQ(s.last_capture_id, 2);
    CHECK_EQ(s.next_unix_ms, s.created_unix_ms + 11LL * HOUR_MS);
    CHECK(s.next_unix_ms > now_ms());
    stop(&f);
}

// Rows that this daemon does not understand are left out, and the others run.
static void check_broken_rows(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct plan p;
    struct xpl_error err = {0};
    uint64_t id = 0;
    make_dirs(&f, true);
    start(&f);
    init_plan(&p);
    const struct xpl_history_schedule broken = {.request = {(const uint8_t *)"\xff\xff", 2}};
    CHECK_EQ(xpl_history_add_schedule(f.history, &broken, &id, &err), XPL_OK);
    p.request.every_ms = 5; // no longer allowed
    (void)add_row(&f, &p, 0);
    init_plan(&p);
    const uint64_t good = add_row(&f, &p, 0);
    stop(&f);
    start(&f);
    CHECK_EQ(count_schedules(&f), 1);
    (void)run_turn(&f, good, 1);
    stop(&f);
}

// ---- which sessions stay ----

static void session_path(const struct fixture *f, const char *name, char *ret, size_t size) {
    (void)snprintf(ret, size, "%s/plugins/profile/%s", f->logdir, name);
}

static bool has_session(const struct fixture *f, const char *name) {
    char path[200];
    session_path(f, name, path, sizeof path);
    return access(path, F_OK) == 0;
}

static void put_profile(const struct fixture *f, const char *name, const char *host) {
    char dir[200], path[300];
    session_path(f, name, dir, sizeof dir);
    (void)snprintf(path, sizeof path, "%s/%s.xplane.pb", dir, host);
    FILE *const file = fopen(path, "w");
    CHECK(file && fputs("x", file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

// A session of the schedule with one profile, made so long ago.
static void add_session(const struct fixture *f, uint64_t id, const char *name, int64_t ago_ms,
                        uint64_t bytes) {
    char dir[200];
    struct stat sb;
    struct xpl_error err = {0};
    session_path(f, name, dir, sizeof dir);
    CHECK_EQ(mkdir(dir, 0700), 0);
    put_profile(f, name, "vm");
    CHECK_EQ(stat(dir, &sb), 0);
    const struct xpl_history_session s = {.name = xpl_str_from(name),
                                          .dev = (uint64_t)sb.st_dev,
                                          .ino = (uint64_t)sb.st_ino,
                                          .bytes = bytes,
                                          .made_ms = now_ms() - ago_ms,
                                          .n_hosts = 1};
    CHECK_EQ(xpl_history_add_session(f->history, id, &s, &err), XPL_OK);
}

// Three sessions of 100 bytes, of 3, 2 and 1 hours ago; which are there after a turn.
static void check_kept(const struct plan *p, const char *expected) {
    XPL_AUTO(remove_dirs) struct fixture f;
    char there[4] = "";
    size_t n = 0;
    make_dirs(&f, true);
    start(&f);
    const uint64_t id = create(&f, p);
    add_session(&f, id, "a", 3LL * HOUR_MS, 100);
    add_session(&f, id, "b", 2LL * HOUR_MS, 100);
    add_session(&f, id, "c", 1LL * HOUR_MS, 100);
    const Xplaned__V1__Schedule s = run_turn(&f, id, 1);
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++)
        if (has_session(&f, names[i])) there[n++] = names[i][0];
    if (strcmp(there, expected) != 0) fprintf(stderr, "kept \"%s\", not \"%s\"\n", there, expected);
    CHECK(strcmp(there, expected) == 0);
    CHECK_EQ(s.sessions, strlen(expected));
    CHECK_EQ(s.bytes, 100 * strlen(expected));
    stop(&f);
}

static void check_limits(void) {
    struct plan p;
    init_plan(&p);
    check_kept(&p, "abc"); // no limit
    p.request.keep_count = 3;
    check_kept(&p, "abc");
    p.request.keep_count = 2;
    check_kept(&p, "bc");
    p.request.keep_count = 1;
    check_kept(&p, "c");
    init_plan(&p);
    p.request.keep_bytes = 200;
    check_kept(&p, "bc");
    p.request.keep_bytes = 1; // the newest one always stays
    check_kept(&p, "c");
    init_plan(&p);
    p.request.keep_age_ms = 5 * HOUR_MS / 2;
    check_kept(&p, "bc");
    p.request.keep_age_ms = 1;
    check_kept(&p, "c");
    p.request.keep_count = 1;
    p.request.keep_age_ms = 10ULL * HOUR_MS;
    check_kept(&p, "c");
}

// A schedule does not remove another directory of that name, nor profiles of others.
static void check_others(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct plan p;
    char dir[200], other[200];
    make_dirs(&f, true);
    start(&f);
    init_plan(&p);
    p.request.keep_count = 1;
    const uint64_t id = create(&f, &p);
    add_session(&f, id, "replaced", 4LL * HOUR_MS, 1);
    add_session(&f, id, "shared", 3LL * HOUR_MS, 1);
    add_session(&f, id, "gone", 2LL * HOUR_MS, 1);
    add_session(&f, id, "old", 1LL * HOUR_MS, 1);
    add_session(&f, id, "new", 0, 1);
    // A bucket's session, from before this daemon had a directory; the one of that name here is a
    // copy.
    add_session(&f, id, "copied", 1LL * HOUR_MS, 1);
    const struct xpl_history_session of_bucket = {
        .name = XPL_STR("copied"), .bytes = 1, .made_ms = now_ms() - HOUR_MS, .n_hosts = 1};
    CHECK_EQ(xpl_history_add_session(f.history, id, &of_bucket, NULL), XPL_OK);
    session_path(&f, "replaced", dir, sizeof dir);
    session_path(&f, "aside", other, sizeof other); // the inode is not given to the next one
    CHECK_EQ(rename(dir, other), 0);
    CHECK_EQ(mkdir(dir, 0700), 0);
    put_profile(&f, "replaced", "vm");
    put_profile(&f, "shared", "another");
    session_path(&f, "gone", dir, sizeof dir);
    session_path(&f, "elsewhere", other, sizeof other);
    CHECK_EQ(rename(dir, other), 0);
    const Xplaned__V1__Schedule s = run_turn(&f, id, 1);
    CHECK(has_session(&f, "replaced") && has_session(&f, "shared") && has_session(&f, "new"));
    CHECK(!has_session(&f, "old") && has_session(&f, "copied"));
    CHECK_EQ(s.sessions, 1); // the others are forgotten
    stop(&f);
}

// A capture of a daemon that is killed: its note in the history and of the directory.
static void leave_capture(struct fixture *f, uint64_t id, uint64_t schedule_id, const char *name,
                          uint64_t ino_off) {
    struct xpl_error err = {0};
    char dir[200];
    struct stat sb;
    session_path(f, name, dir, sizeof dir);
    CHECK_EQ(stat(dir, &sb), 0);
    const struct xpl_history_capture c = {
        .id = id, .state = XPL_HISTORY_RUNNING, .schedule_id = schedule_id, .begin_ms = 77};
    const struct xpl_history_directory d = {.capture_id = id,
                                            .path = xpl_str_from(dir),
                                            .dev = (uint64_t)sb.st_dev,
                                            .ino = (uint64_t)sb.st_ino + ino_off};
    CHECK_OK(xpl_history_put(f->history, &c, &err), &err);
    CHECK_OK(xpl_history_put_directory(f->history, &d, &err), &err);
}

static void make_session(const struct fixture *f, const char *name, bool has_profile) {
    char dir[200];
    session_path(f, name, dir, sizeof dir);
    CHECK_EQ(mkdir(dir, 0700), 0);
    if (has_profile) put_profile(f, name, "vm");
}

// The sessions of captures that a killed daemon did not end are the schedule's when they have
// profiles, those without an owner and of other directories are not.
static void check_killed(void) {
    struct fixture f;
    struct plan p;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_error err = {0};
    struct xpl_history_session *list;
    size_t n;
    make_dirs(&f, true);
    start(&f);
    init_plan(&p);
    p.request.keep_count = 1;
    const uint64_t id = create(&f, &p);
    make_session(&f, "whole", true);
    make_session(&f, "empty", false);
    make_session(&f, "asked", true);
    make_session(&f, "swapped", true);
    make_session(&f, "deleted", true);
    leave_capture(&f, 1, id, "whole", 0);
    leave_capture(&f, 2, id, "empty", 0);
    leave_capture(&f, 3, 0, "asked", 0);
    leave_capture(&f, 4, id, "swapped", 1);
    leave_capture(&f, 5, id + 1, "deleted", 0);
    stop(&f);
    start(&f);
    CHECK_OK(xpl_history_sessions(f.history, id, &arena, &list, &n, &err), &err);
    CHECK_EQ(n, 1);
    CHECK(xpl_str_eq(list[0].name, XPL_STR("whole")));
    CHECK(list[0].n_hosts == 1 && list[0].bytes == 1 && list[0].made_ms == 77);
    CHECK(!has_session(&f, "empty"));
    CHECK_OK(xpl_history_sessions(f.history, id + 1, &arena, &list, &n, &err), &err);
    CHECK_EQ(n, 0);
    add_session(&f, id, "newer", 0, 1);
    (void)run_turn(&f, id, 6); // keeps one
    CHECK(!has_session(&f, "whole") && has_session(&f, "newer"));
    CHECK(has_session(&f, "asked") && has_session(&f, "swapped") && has_session(&f, "deleted"));
    stop(&f);
    remove_dirs(&f);
}

// ---- a database that others have, too ----

static struct {
    bool away; // when captures end
    uint64_t begun, put;
    bool waits; // captures begin while leases are renewed: step by step
    atomic_int step;
    uint64_t asked_ns; // while a schedule is added
    bool loses_answer; // when a capture begins
    bool refuses;      // captures
    uint64_t withdrawn;
    // Of a schedule whose claim this daemon does not know of:
    int64_t fence; // 0: there is none
    bool is_free;
    atomic_bool cut_off; // once
    atomic_uint inspected, given_back, claimed;
    unsigned inspected_before; // when it was claimed
} database;

static void reach(int step) {
    atomic_store(&database.step, step);
}

static void await(int step) {
    for (int i = 0; database.waits && atomic_load(&database.step) < step; i++) {
        CHECK(i < PATIENCE_MS / 10);
        pause_ms(10);
    }
}

static xpl_status_t begin_shared(struct xpl_store *s, const struct xpl_history_capture *c,
                                 const struct xpl_schedule_claim *claim, uint64_t lease_ms,
                                 uint64_t *ret_id, struct xpl_error *err) {
    (void)s, (void)c, (void)claim, (void)lease_ms;
    database.begun++;
    if (database.loses_answer) XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "cut off");
    *ret_id = database.begun;
    reach(1);
    await(2); // its row is there when the others were listed already
    if (database.refuses) XPL_RETURN_ERROR(err, XPL_ABORTED, "another daemon's");
    return XPL_OK;
}

static xpl_status_t renew_shared(struct xpl_store *s, uint64_t lease_ms, struct xpl_arena *arena,
                                 struct xpl_kept_leases *ret, struct xpl_error *err) {
    (void)s, (void)lease_ms, (void)err;
    *ret = (struct xpl_kept_leases){0};
    if (!database.waits) { // all captures that ever began
        CHECK((ret->captures = xpl_arena_array(arena, database.begun, sizeof *ret->captures)));
        while (ret->n_captures < database.begun) {
            ret->captures[ret->n_captures] = ret->n_captures + 1;
            ret->n_captures++;
        }
    }
    reach(2);
    await(3);
    return XPL_OK;
}

static xpl_status_t withdraw_shared(struct xpl_store *s, uint64_t id, struct xpl_error *err) {
    (void)s, (void)err;
    CHECK(!database.withdrawn);
    database.withdrawn = id;
    return XPL_OK;
}

static xpl_status_t add_shared(struct xpl_store *s, const struct xpl_history_schedule *one,
                               uint64_t lease_ms, uint64_t *ret_id, struct xpl_error *err) {
    (void)s, (void)one, (void)lease_ms, (void)err;
    pause_ms(2);
    database.asked_ns = xpl_clock_ns();
    pause_ms(2);
    *ret_id = 1;
    return XPL_OK;
}

static xpl_status_t put_shared(struct xpl_store *s, const struct xpl_history_capture *c,
                               bool records, struct xpl_error *err) {
    (void)s, (void)records;
    if (database.away) XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "away");
    CHECK_EQ(c->state, XPL_CAPTURED_NOTHING);
    CHECK(c->n_hosts == 1 && xpl_str_starts(c->hosts[0].target, XPL_STR("unix:")));
    database.put = c->id;
    return XPL_OK;
}

static xpl_status_t take_shared(struct xpl_store *s, const struct xpl_target_taker *who,
                                const xpl_str_t *targets, size_t n, struct xpl_arena *arena,
                                struct xpl_target_holder *ret, struct xpl_error *err) {
    (void)s, (void)who, (void)targets, (void)arena, (void)err;
    memset(ret, 0, n * sizeof *ret);
    reach(3);
    await(4);
    return XPL_OK;
}

static xpl_status_t note_shared(struct xpl_store *s, uint64_t capture_id, xpl_str_t session,
                                uint64_t ino, struct xpl_error *err) {
    (void)s, (void)capture_id, (void)session, (void)ino, (void)err;
    return XPL_OK;
}

static void note_done(void *arg, const struct xpl_capture_result *r) {
    CHECK(r->refused == !r->record);
    atomic_store((atomic_bool *)arg, true);
}

static enum xpl_store_role shared_role(struct xpl_store *s) {
    (void)s;
    return XPL_STORE_WRITER;
}

static xpl_status_t inspect_shared(struct xpl_store *s, struct xpl_arena *arena,
                                   struct xpl_schedule_state **ret, size_t *ret_n, bool *ret_lost,
                                   struct xpl_error *err) {
    (void)s;
    if (atomic_exchange(&database.cut_off, false))
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "cut off");
    *ret = xpl_arena_zalloc(arena, sizeof **ret);
    CHECK(*ret);
    (*ret)->claim = (struct xpl_schedule_claim){9, database.fence};
    (*ret)->is_ours = !database.is_free;
    (*ret)->is_free = database.is_free;
    *ret_n = database.fence ? 1 : 0;
    *ret_lost = false;
    atomic_fetch_add(&database.inspected, 1);
    return XPL_OK;
}

static xpl_status_t give_back_shared(struct xpl_store *s, const struct xpl_schedule_claim *c,
                                     size_t n, struct xpl_error *err) {
    (void)s, (void)err;
    CHECK(n == 1 && c->id == 9 && c->fence == database.fence);
    database.is_free = true;
    atomic_fetch_add(&database.given_back, 1);
    return XPL_OK;
}

// Of a newer version: it cannot be read.
static xpl_status_t claim_shared(struct xpl_store *s, size_t max, uint64_t lease_ms,
                                 struct xpl_arena *arena, struct xpl_history_schedule **ret,
                                 size_t *ret_n, struct xpl_error *err) {
    (void)s, (void)max, (void)lease_ms, (void)err;
    *ret = xpl_arena_zalloc(arena, sizeof **ret);
    CHECK(*ret && database.is_free);
    database.is_free = false;
    **ret = (struct xpl_history_schedule){.id = 9, .fence = ++database.fence};
    *ret_n = 1;
    database.inspected_before = atomic_load(&database.inspected);
    atomic_fetch_add(&database.claimed, 1);
    return XPL_OK;
}

static void start_shared(struct fixture *f) {
    static const struct xpl_captures_ops captures = {.begin = begin_shared,
                                                     .put = put_shared,
                                                     .note_session = note_shared,
                                                     .claim_targets = take_shared,
                                                     .renew = renew_shared,
                                                     .withdraw = withdraw_shared,
                                                     .inspect = inspect_shared,
                                                     .claim = claim_shared,
                                                     .give_back = give_back_shared,
                                                     .add_schedule = add_shared};
    static const struct xpl_store_ops ops = {.role = shared_role, .captures = &captures};
    static struct xpl_store store = {&ops};
    memset(&database, 0, sizeof database);
    make_dirs(f, true);
    f->shared = &store;
    start(f);
}

static void start_capture(struct fixture *f, atomic_bool *ret_done) {
    static const char *const targets[] = {"unix:/nonexistent/profiler"};
    struct xpl_error err = {0};
    const struct xpl_capture_plan plan = {
        .size = sizeof plan, .targets = targets, .n_targets = 1, .duration_ms = 1};
    const struct xpl_capture_listener l = {.done = note_done, .arg = ret_done};
    CHECK_OK(xpl_capture_jobs_start(f->jobs, &plan, NULL, &l, NULL, &err), &err);
}

static void await_done(const atomic_bool *done) {
    for (int i = 0; !atomic_load(done); i++) {
        CHECK(i < PATIENCE_MS / 10);
        pause_ms(10);
    }
}

// The end of a capture that the database does not know when all captures are joined is there to be
// sent after that, by the keeper.
static void check_unsent(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    atomic_bool done = false;
    start_shared(&f);
    database.away = true;
    start_capture(&f, &done);
    await_done(&done);
    xpl_capture_jobs_join(f.jobs);
    database.away = false;
    CHECK(xpl_capture_jobs_send_ends(f.jobs));
    CHECK_EQ(database.put, 1);
    stop(&f);
}

// What begins while the database lists leases, or schedules, is not on that list, and goes on.
static void check_begun_meanwhile(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct plan p;
    struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_kept_leases kept;
    uint64_t asked_ns, release[1];
    atomic_bool done = false;
    start_shared(&f);
    database.waits = true;
    start_capture(&f, &done);
    await(1);
    CHECK_EQ(xpl_capture_jobs_renew(f.jobs, &arena, &kept, &asked_ns, NULL), XPL_OK);
    xpl_arena_fini(&arena);
    reach(4);
    await_done(&done); // and its end is not a cancellation
    CHECK_EQ(database.put, 1);
    init_plan(&p);
    CHECK_EQ(create(&f, &p), 1);
    CHECK_EQ(xpl_schedules_inspected(f.schedules, NULL, 0, database.asked_ns, release, 1), 0);
    CHECK_EQ(xpl_schedules_count(f.schedules), 1);
    CHECK_EQ(xpl_schedules_inspected(f.schedules, NULL, 0, xpl_clock_ns(), release, 1), 0);
    CHECK_EQ(xpl_schedules_count(f.schedules), 0); // it was deleted since
    stop(&f);
}

// A capture that the database numbered, and whose number did not come, runs nowhere.
static void check_lost_number(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_kept_leases kept;
    uint64_t asked_ns;
    atomic_bool first = false, second = false;
    start_shared(&f);
    database.loses_answer = true;
    start_capture(&f, &first); // goes on by itself
    await_done(&first);
    CHECK(xpl_capture_jobs_has_leases(f.jobs));
    database.loses_answer = false;
    database.away = true; // its outcome is unknown there, and its number is this daemon's
    start_capture(&f, &second);
    await_done(&second);
    CHECK_EQ(xpl_capture_jobs_renew(f.jobs, &arena, &kept, &asked_ns, NULL), XPL_OK);
    xpl_arena_fini(&arena);
    CHECK_EQ(database.withdrawn, 1);
    CHECK(!xpl_capture_jobs_has_leases(f.jobs));
    stop(&f);
}

// A schedule that this daemon has by the database, and does not know of, as the answer that said so
// was lost, is handed back; one that it cannot read is not handed to and fro.
static void check_strays(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    start_shared(&f);
    database.fence = 3;
    struct xpl_capture_keeper *const keeper = xpl_capture_keeper_new(f.jobs, f.schedules);
    CHECK(keeper);
    for (int i = 0; !atomic_load(&database.claimed); i++) {
        CHECK(i < PATIENCE_MS / 10);
        pause_ms(10);
    }
    CHECK_EQ(atomic_load(&database.given_back), 1);
    CHECK_EQ(database.inspected_before, 3); // at the first it may be just being created
    for (int i = 0; atomic_load(&database.inspected) < 6; i++) {
        CHECK(i < PATIENCE_MS / 10);
        pause_ms(10);
    }
    CHECK_EQ(atomic_load(&database.given_back), 1);
    xpl_capture_keeper_free(keeper);
    stop(&f);
}

// When the database is back the owner of a schedule has a lease's time to renew it.
static void check_back_again(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    start_shared(&f);
    database.fence = 1;
    database.is_free = true; // the lease ran out meanwhile
    database.cut_off = true;
    struct xpl_capture_keeper *const keeper = xpl_capture_keeper_new(f.jobs, f.schedules);
    CHECK(keeper);
    for (int i = 0; atomic_load(&database.inspected) < 3; i++) {
        CHECK(i < PATIENCE_MS / 10);
        pause_ms(10);
    }
    CHECK_EQ(atomic_load(&database.claimed), 0);
    xpl_capture_keeper_free(keeper);
    stop(&f);
}

// ---- as many targets as a capture may have ----

static char many[3][XPL_CAPTURE_MAX_TARGETS][XPL_CAPTURE_MAX_TARGET + 1];

// Long names, of which each group has others; returns those of one.
static char **name_targets(size_t group, char first) {
    static char *targets[3][XPL_CAPTURE_MAX_TARGETS];
    for (size_t i = 0; i < XPL_CAPTURE_MAX_TARGETS; i++) {
        targets[group][i] = many[group][i];
        memset(many[group][i], 'a', 240);
        many[group][i][0] = first;
        (void)snprintf(many[group][i] + 240, 15, "%04zu:7777", i);
    }
    return targets[group];
}

static int64_t thread_ms(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Starts a capture of them that another one, or the end of the daemon, prevents.  It takes little
// of the processor, whoever else has targets.
static void expect_unavailable(struct fixture *f, char **targets, const char *why) {
    struct xpl_error err = {0};
    const struct xpl_capture_plan plan = {.size = sizeof plan,
                                          .targets = (const char *const *)targets,
                                          .n_targets = XPL_CAPTURE_MAX_TARGETS,
                                          .duration_ms = 1};
    const struct xpl_capture_listener l = {.done = note_done};
    const int64_t begin = thread_ms();
    CHECK_EQ(xpl_capture_jobs_start(f->jobs, &plan, NULL, &l, NULL, &err), XPL_UNAVAILABLE);
    CHECK(thread_ms() - begin < 1500);
    CHECK(strstr(err.msg, why));
}

// Which capture has a target is known without a look at each pair, also by another spelling.
static void check_many_held(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct xpl_error err = {0};
    atomic_bool done = false;
    start_shared(&f);
    database.waits = database.refuses = true;
    char **const targets = name_targets(0, 'b');
    const struct xpl_capture_plan plan = {.size = sizeof plan,
                                          .targets = (const char *const *)targets,
                                          .n_targets = XPL_CAPTURE_MAX_TARGETS,
                                          .duration_ms = 1};
    const struct xpl_capture_listener l = {.done = note_done, .arg = &done};
    CHECK_OK(xpl_capture_jobs_start(f.jobs, &plan, NULL, &l, NULL, &err), &err);
    await(1);
    expect_unavailable(&f, name_targets(1, 'B'), "it is being captured by capture ");
    reach(2);
    await_done(&done);
    stop(&f);
}

// The same of schedules that record.
static void check_many_recorded(void) {
    XPL_AUTO(remove_dirs) struct fixture f;
    struct plan p;
    make_dirs(&f, true);
    start(&f);
    init_plan(&p);
    p.request.continuous = true;
    p.capture.targets = name_targets(2, 'c');
    p.capture.n_targets = XPL_CAPTURE_MAX_TARGETS - 16; // a request has 1 MiB
    for (int i = 0; i < 4; i++)
        (void)create(&f, &p);
    xpl_capture_jobs_stop(f.jobs);
    expect_unavailable(&f, name_targets(0, 'b'), "stopping");
    stop(&f);
}

int main(void) {
    (void)alarm(220);
    check_create();
    check_delete();
    check_turns();
    check_broken_rows();
    check_limits();
    check_others();
    check_killed();
    check_unsent();
    check_begun_meanwhile();
    check_lost_number();
    check_strays();
    check_back_again();
    check_many_held();
    check_many_recorded();
    return 0;
}
