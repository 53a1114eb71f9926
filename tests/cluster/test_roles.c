// SPDX-License-Identifier: Apache-2.0
// Workers by themselves: killed, stopped, drained, and with a file that kills them.  The test asks
// for jobs as fronts do.
#include "storage/store/jobs.h"
#include "tests/cluster/roles.h"

static struct xpl_store *open_store(void) {
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    const struct xpl_store_options o = {.size = sizeof o, .dir = "", .url = pg_url("postgres")};
    CHECK_OK(xpl_store_open(&o, &s, &err), &err);
    return s;
}

// Asks for the op statistics of hosts as a front does.
static void ask_jobs(struct xpl_store *s, const char *dir, const char *run, int n) {
    const struct xpl_job_product product = {.name = xpl_str_from(xpl_product_op_stats.name),
                                            .version = xpl_product_op_stats.version};
    struct xpl_job_file files[HOSTS];
    size_t ends[HOSTS];
    char names[HOSTS][16];
    struct xpl_error err = {0};
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        struct stat st;
        (void)snprintf(names[i], sizeof names[i], "vm%d", i);
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/vm%d.xplane.pb", dir, run, i);
        CHECK_EQ(stat(path, &st), 0);
        files[i] = (struct xpl_job_file){.host = xpl_str_from(names[i]),
                                         .size_bytes = (uint64_t)st.st_size,
                                         .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
                                                     st.st_mtim.tv_nsec};
        ends[i] = (size_t)i + 1;
    }
    const struct xpl_job_request r = {.session = xpl_str_from(run),
                                      .products = &product,
                                      .files = files,
                                      .ends = ends,
                                      .n_products = 1,
                                      .n_files = (size_t)n,
                                      .n_batches = (size_t)n};
    CHECK_OK(xpl_store_jobs(s)->enqueue(s, &r, &err), &err);
}

static void wait_done(int products) {
    char sql[120];
    wait_for("NOT EXISTS (SELECT 1 FROM jobs)");
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*)=%d FROM results WHERE kind='product' AND name='op_stats'",
                   products);
    expect_now(sql);
}

static void scenario_work(void) {
    const char *const dir = make_dir();
    struct xpl_store *const s = open_store();
    add_hosts(dir, "run", HOSTS);
    struct daemon_proc w = start_worker(dir, NULL);
    wait_for("SELECT count(*)=1 FROM daemons WHERE role='worker' AND"
             " expires_at>clock_timestamp()");
    ask_jobs(s, dir, "run", HOSTS);
    wait_done(HOSTS);
    expect_now("SELECT count(*)=6 FROM profile_files");
    CHECK(log_has(&w, "published"));
    CHECK_EQ(stop_daemon(&w), 0);
    expect_now("SELECT count(*)=0 FROM daemons WHERE expires_at>clock_timestamp()");
    xpl_store_close(s);
}

// Another worker does its jobs once the lease has expired: each product once.
static void scenario_killed(void) {
    const char *const dir = make_dir();
    struct xpl_store *const s = open_store();
    add_hosts(dir, "run", HOSTS);
    struct daemon_proc a = start_worker(dir, "delay_ms=60000");
    ask_jobs(s, dir, "run", HOSTS);
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    struct daemon_proc b = start_worker(dir, NULL);
    wait_for("SELECT count(*)=2 FROM jobs"); // unclaimed jobs
    expect_now("SELECT count(*)=2 FROM jobs WHERE cardinality(attempts)=1");
    kill_daemon(&a, SIGKILL);
    wait_done(HOSTS);
    CHECK_EQ(stop_daemon(&b), 0);
    xpl_store_close(s);
}

// It returns after another worker did its jobs: its own results are rejected.
static void scenario_frozen(void) {
    const char *const dir = make_dir();
    struct xpl_store *const s = open_store();
    add_hosts(dir, "run", 2);
    struct daemon_proc a = start_worker(dir, "delay_ms=4000"); // it is stopped before they are done
    ask_jobs(s, dir, "run", 2);
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    CHECK_EQ(kill(a.pid, SIGSTOP), 0);
    struct daemon_proc b = start_worker(dir, NULL);
    wait_done(2);
    pg_sql("postgres", "UPDATE results SET used_at_ms=0; DELETE FROM result_profiles");
    CHECK_EQ(kill(a.pid, SIGCONT), 0);
    // Products that it publishes or, if it learns of the loss first, would have published.
    expect_metric(&a, "xplaned_job_attempts_ended_total{outcome=\"lease_lost\"} 2");
    expect_metric(&a, "xplaned_job_attempts_ended_total{outcome=\"published\"} 0");
    wait_done(2);
    expect_now("SELECT count(*)=0 FROM result_profiles"); // nothing was written again
    CHECK_EQ(stop_daemon(&a), 0);
    CHECK_EQ(stop_daemon(&b), 0);
    xpl_store_close(s);
}

// A worker that ends returns its jobs, and no attempt counts.
static void scenario_drained(void) {
    const char *const dir = make_dir();
    struct xpl_store *const s = open_store();
    add_hosts(dir, "run", 3);
    const char *const flags[] = {"--role=worker", store_flag(),  "--job-lease=60s",
                                 "--grace=300ms", "--workers=2", NULL};
    CHECK_EQ(setenv("XPLANED_FAULT_JOBS", "delay_ms=60000", 1), 0);
    struct daemon_proc a = start_daemon(dir, make_dir(), flags);
    ask_jobs(s, dir, "run", 3);
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    CHECK_EQ(stop_daemon(&a), 0);
    expect_now("SELECT count(*)=3 FROM jobs WHERE attempts='{}'");
    struct daemon_proc b = start_worker(dir, NULL);
    wait_done(3);
    CHECK_EQ(stop_daemon(&b), 0);
    xpl_store_close(s);
}

// The file of vm1 kills workers, which are restarted: the others are done, whatever batch they were
// in.
static void scenario_poison(void) {
    const char *const dir = make_dir();
    struct xpl_store *const s = open_store();
    int kills = 0;
    add_hosts(dir, "run", HOSTS);
    ask_jobs(s, dir, "run", HOSTS);
    for (int status; kills < XPL_JOB_ATTEMPTS; kills++) {
        struct daemon_proc w = start_killable(dir);
        CHECK(waitpid(w.pid, &status, 0) == w.pid && WIFSIGNALED(status));
    }
    struct daemon_proc w = start_killable(dir);
    wait_for("SELECT count(*)=5 FROM results WHERE kind='product'");
    wait_for("SELECT count(*)=1 FROM jobs WHERE files[1] LIKE '% vm1' AND aside_at IS NOT NULL");
    expect_now("SELECT count(*)=1 FROM jobs");
    CHECK_EQ(stop_daemon(&w), 0);
    xpl_store_close(s);
}

// Files that are missing here, or differ from the caller's, are left to the caller.
static void scenario_unknown(void) {
    const char *const dir = make_dir();
    struct xpl_store *const s = open_store();
    add_hosts(dir, "run", 2);
    ask_jobs(s, dir, "run", 2);
    pg_sql("postgres", "UPDATE jobs SET files=ARRAY['1 1 vm0'] WHERE files[1] LIKE '% vm0'");
    pg_sql("postgres", "UPDATE jobs SET session='other' WHERE files[1] LIKE '% vm1'");
    struct daemon_proc w = start_worker(dir, NULL);
    pg_pause_ms(2000);
    expect_now("SELECT count(*)=2 FROM jobs"); // it may see them yet
    pg_sql("postgres", "UPDATE jobs SET queued_at=queued_at-interval '1 min'");
    wait_done(0);
    CHECK(log_has(&w, "left to the client"));
    CHECK_EQ(stop_daemon(&w), 0);
    xpl_store_close(s);
}

// The database goes while a worker has jobs: it publishes them when that is back.
static void scenario_outage(void) {
    const char *const dir = make_dir();
    struct xpl_store *s = open_store();
    add_hosts(dir, "run", 2);
    struct daemon_proc w = start_worker(dir, "delay_ms=1500");
    expect_ready(&w, 200, "ready\n");
    ask_jobs(s, dir, "run", 2);
    wait_for("SELECT count(*)=2 FROM jobs WHERE attempts<>'{}'");
    xpl_store_close(s);
    pg_stop(SIGQUIT);
    expect_ready(&w, 503, "the store takes nothing\n");
    pg_start();
    expect_ready(&w, 200, "ready\n");
    wait_done(2);
    CHECK_EQ(stop_daemon(&w), 0);
}

static void scenario_refused(void) {
    struct daemon_proc d;
    const char *const alone[] = {"--role=worker", NULL}, *const bad[] = {"--role=wroker", NULL};
    CHECK_EQ(run_refused_daemon(make_dir(), make_dir(), alone, &d), 2);
    CHECK(log_has(&d, "--role worker needs --store postgresql://"));
    CHECK_EQ(run_refused_daemon(make_dir(), make_dir(), bad, &d), 2);
    CHECK(log_has(&d, "bad value \"wroker\" for role"));
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"work", scenario_work},       {"killed", scenario_killed},   {"frozen", scenario_frozen},
        {"drained", scenario_drained}, {"poison", scenario_poison},   {"unknown", scenario_unknown},
        {"outage", scenario_outage},   {"refused", scenario_refused},
    };
    const char *const why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    return run_scenario(all, sizeof all / sizeof *all, argc, argv);
}
