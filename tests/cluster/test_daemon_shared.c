// SPDX-License-Identifier: Apache-2.0
// Daemons that share a database of PostgreSQL: each has the other's products, and when the database
// goes no client notices.
#include <limits.h>
#include <stdatomic.h>

#include "tests/cluster/database.h"
#include "tests/cluster/small_disk.h"
#include "tests/server/daemon_fixture.h"

enum { SESSIONS = 10 };

static const char *const *flags(void) {
    static const char *more[] = {"--no-prefetch", NULL, NULL};
    more[1] = store_flag();
    return more;
}

// Of other bytes each, so that each is a profile.
static const char *make_sessions(void) {
    const char *const dir = make_dir();
    for (int i = 0; i < SESSIONS; i++) {
        char run[16], path[PATH_MAX];
        (void)snprintf(run, sizeof run, "run%d", i);
        add_session(dir, run, "vm", any_profile());
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/vm.xplane.pb", dir, run);
        FILE *const f = fopen(path, "ab"); // a further host's name
        CHECK(f && fprintf(f, "\x22\x01%c", 'a' + i) == 3);
        CHECK_EQ(fclose(f), 0);
    }
    return dir;
}

// The source of an answer.
static const char *ask(xpl_client *c, const char *run, const char *tool) {
    static const char *const names[] = {"computed", "memory", "store"};
    xpl_answer *a = NULL;
    xpl_result r;
    const int code = ask_tool(c, run, tool, NULL, &a, &r);
    if (code) fprintf(stderr, "%s: %s\n", tool, r.message);
    CHECK_EQ(code, 0);
    const char *source = "?";
    for (size_t i = 0; i < 3; i++)
        if (strcmp(names[i], xpl_answer_source(a)) == 0) source = names[i];
    xpl_answer_free(a);
    return source;
}

// Waits for so many rows.
static void expect_rows(const char *of, long least) {
    char sql[200];
    (void)snprintf(sql, sizeof sql, "SELECT count(*)>=%ld FROM %s", least, of);
    wait_for(sql);
}

static void scenario_shared(void) {
    const char *const dir = make_sessions();
    struct daemon_proc a = start_daemon(dir, make_dir(), flags());
    xpl_client *c = open_client(&a, 60000);
    char *const before = all_answers(c, "run0", "vm", NULL);
    expect_rows("results WHERE kind='answer'", n_answers());
    expect_rows("steps WHERE session='run0'", 1); // for people
    struct daemon_proc b = start_daemon(dir, make_dir(), flags());
    xpl_client *d = open_client(&b, 60000);
    char *const after = all_answers(d, "run0", "vm", "store");
    CHECK(strcmp(before, after) == 0);
    free(before);
    free(after);
    xpl_client_close(c);
    xpl_client_close(d);
    CHECK_EQ(stop_daemon(&a), 0);
    CHECK_EQ(stop_daemon(&b), 0);
}

enum { ASKING = 3 };

static struct daemon_proc asked_daemon;
static pthread_t asking[ASKING];
static atomic_bool over;
static atomic_int n_asked;

static void *ask_always(void *arg) {
    static const char *const tools[] = {"overview_page", "framework_op_stats", "op_profile",
                                        "hlo_stats"};
    xpl_client *const c = open_client(&asked_daemon, 60000);
    for (size_t i = (size_t)(uintptr_t)arg; !atomic_load(&over); i++) {
        char run[16];
        (void)snprintf(run, sizeof run, "run%zu", i % SESSIONS);
        (void)ask(c, run, tools[i / SESSIONS % 4]);
        atomic_fetch_add(&n_asked, 1);
    }
    xpl_client_close(c);
    return NULL;
}

// A memory too small for the answers, so that they are searched in the store.
static void begin_asking(const char *dir, const char *store) {
    const char *const more[] = {"--no-prefetch", store, "--answer-cache=64KiB", NULL};
    asked_daemon = start_daemon(dir, make_dir(), more);
    for (uintptr_t i = 0; i < ASKING; i++)
        CHECK(pthread_create(&asking[i], NULL, ask_always, (void *)(i * 7)) == 0);
    pg_pause_ms(1500);
}

// None has failed.
static void end_asking(void) {
    atomic_store(&over, true);
    for (size_t i = 0; i < ASKING; i++)
        CHECK(pthread_join(asking[i], NULL) == 0);
    fprintf(stderr, "%d requests, none failed\n", atomic_load(&n_asked));
}

// So many answers since the beginning, on a busy machine later.
static void wait_for_answers(int n) {
    for (long waited = 0; atomic_load(&n_asked) <= n; waited += 50) {
        CHECK(waited < 30000); // half of what a client waits for one
        pg_pause_ms(50);
    }
}

// Answers are made all the time.
static void expect_answers(long ms) {
    const int before = atomic_load(&n_asked);
    pg_pause_ms(ms);
    wait_for_answers(before + 20);
}

// Products made from now on are shared.
static void expect_shared(void) {
    pg_sql("postgres", "DELETE FROM results"); // later rows are new
    expect_rows("results", 1);
}

// Killed under requests: none fails, and products made after its return are shared soon.
static void scenario_away(void) {
    begin_asking(make_sessions(), flags()[1]);
    for (int round = 0; round < 2; round++) {
        pg_stop(SIGQUIT);
        expect_answers(2500);
        pg_start();
        expect_shared();
        pg_pause_ms(1500);
    }
    wait_for_answers(500);
    end_asking();
    CHECK(log_has(&asked_daemon, "is away"));
    CHECK(log_has(&asked_daemon, "is used again"));
    CHECK_EQ(stop_daemon(&asked_daemon), 0);
}

// ---- no connection left ----

enum { CONNECTIONS = 10, PLACES = CONNECTIONS - 3 }; // for others than superusers

static pid_t crowd[100];
static size_t n_crowd;

// Others take all places that are free, one after the other: the query that counts has a place,
// too.
static void take_places(void) {
    char full[200];
    (void)snprintf(full, sizeof full,
                   "DO $$ BEGIN ASSERT (SELECT count(*)>=%d FROM pg_stat_activity WHERE usename IN"
                   " ('crowd','plain')); END $$",
                   PLACES);
    while (pg_try("postgres", full) != 0) {
        CHECK(n_crowd < sizeof crowd / sizeof *crowd);
        pg_pause_ms(100); // that of the query is free again
        crowd[n_crowd++] =
            pg_spawn((const char *const[]){"psql", "-XqAt", "-h", pg.socket, "-U", "crowd", "-d",
                                           "postgres", "-c", "SELECT pg_sleep(600)", NULL});
        pg_pause_ms(100);
    }
}

static void give_places_back(void) {
    for (size_t i = 0; i < n_crowd; i++)
        (void)kill(crowd[i], SIGTERM);
    for (size_t i = 0; i < n_crowd; i++)
        CHECK(waitpid(crowd[i], NULL, 0) == crowd[i]);
    pg_sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                       " usename='crowd'");
}

// The daemons' connections are ended, and others are there first.
static void lose_places(void) {
    pg_sql("postgres", "ALTER ROLE plain CONNECTION LIMIT 0");
    pg_sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                       " usename='plain'");
    take_places();
    pg_sql("postgres", "ALTER ROLE plain CONNECTION LIMIT -1");
}

// A server with few connections, which others hold: a daemon uses the connections that it has,
// works without the others, and shares again when there is room; so does one that started too late.
static void scenario_crowded(void) {
    const char *const dir = make_sessions();
    char store[300];
    pg_stop(SIGINT);
    pg.connections = CONNECTIONS;
    pg_start();
    pg_sql("postgres", "CREATE ROLE crowd LOGIN; CREATE ROLE plain LOGIN;"
                       "GRANT ALL ON SCHEMA public TO plain");
    (void)snprintf(store, sizeof store, "--store=postgresql://plain@/postgres?host=%s", pg.socket);
    begin_asking(dir, store);
    take_places();
    expect_answers(1500);
    expect_shared();
    const char *const more[] = {"--no-prefetch", store, NULL};
    struct daemon_proc late = start_daemon(dir, make_dir(), more);
    xpl_client *const c = open_client(&late, 60000), *const d = open_client(&asked_daemon, 60000);
    CHECK(log_has(&late, "cannot be used (")); // and why
    CHECK(strcmp(ask(c, "run0", "overview_page"), "computed") == 0);
    lose_places();
    expect_answers(2500);
    give_places_back();
    CHECK(log_has(&asked_daemon, "is used again"));
    expect_shared();
    end_asking();
    CHECK(log_has(&late, "is used again"));
    (void)ask(d, "run1", "input_pipeline_analyzer");
    expect_rows("results WHERE name='input_pipeline_analyzer'", 1);
    CHECK(strcmp(ask(c, "run1", "input_pipeline_analyzer"), "store") == 0);
    xpl_client_close(c);
    xpl_client_close(d);
    CHECK_EQ(stop_daemon(&late), 0);
    CHECK_EQ(stop_daemon(&asked_daemon), 0);
}

// ---- the disk of the server is full ----

// Until it has no room for its log either, and ends as in a crash. Only the log grows: without room
// elsewhere just a statement would fail.
static void use_up_log(void) {
    for (int i = 0; pg_try("postgres", "SELECT pg_logical_emit_message(false, 'log', 'grows');"
                                       "SELECT pg_switch_wal()") == 0;)
        CHECK(i++ < 20);
}

// Starts a server that could not restart by itself.
static void revive(void) {
    for (int i = 0; pg_try("postgres", "SELECT 1") != 0; i++) {
        CHECK(i < 600);
        pg_pause_ms(50);
        if (waitpid(pg.pid, NULL, WNOHANG) == pg.pid) pg_start();
    }
}

// First for results, then for its log as well: no request fails, and it is shared again when there
// is room.
static void scenario_full(void) {
    begin_asking(make_sessions(), flags()[1]);
    small_disk_fill();
    pg_sql("postgres", "DELETE FROM results"); // later rows are new
    expect_answers(2000);
    CHECK(log_has(&asked_daemon, "No space left on device"));
    small_disk_empty();
    expect_shared();
    small_disk_fill();
    use_up_log();
    expect_answers(2000);
    CHECK(log_has(&asked_daemon, "is away"));
    small_disk_empty();
    revive();
    expect_shared();
    end_asking();
    CHECK_EQ(stop_daemon(&asked_daemon), 0);
}

// A daemon that starts while there is no server answers, and shares once there is one, including
// earlier products.
static void scenario_late(void) {
    const char *const dir = make_sessions();
    pg_stop(SIGQUIT);
    struct daemon_proc d = start_daemon(dir, make_dir(), flags());
    xpl_client *const c = open_client(&d, 60000);
    CHECK(strcmp(ask(c, "run0", "overview_page"), "computed") == 0);
    CHECK(strcmp(ask(c, "run0", "overview_page"), "memory") == 0);
    pg_start();
    expect_rows("sessions", SESSIONS);
    expect_rows("results WHERE kind='answer'", 1);
    expect_now("SELECT count(*)>=1 FROM results WHERE kind='product'");
    pg_sql("postgres", "CHECKPOINT"); // the last results survive the next stop
    pg_stop(SIGQUIT);                 // and again, when it was there
    CHECK(strcmp(ask(c, "run1", "overview_page"), "computed") == 0);
    pg_start();
    expect_rows("results WHERE kind='answer'", 2);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {{"shared", scenario_shared},
                                          {"away", scenario_away},
                                          {"late", scenario_late},
                                          {"crowded", scenario_crowded},
                                          {"full", scenario_full}};
    const bool full = argc > 1 && strcmp(argv[1], "full") == 0;
    const char *why = full ? small_disk_begin() : NULL;
    if (!why) why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    return run_scenario(all, sizeof all / sizeof *all, argc, argv);
}
