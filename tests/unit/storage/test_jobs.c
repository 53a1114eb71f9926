// SPDX-License-Identifier: Apache-2.0
// What storage/store/jobs.h promises, with a server of PostgreSQL: leases, fences, ranks, suspects,
// what is set aside, and a database that goes away.
#include <pthread.h>
#include <stdatomic.h>

#include "storage/sessions/catalogue.h"
#include "storage/store/captures.h"
#include "storage/store/jobs.h"
#include "storage/store/listings.h"
#include "tests/unit/storage/pg_database.h"
#include "tests/unit/storage/store_helpers.h"

enum { LEASE_MS = 60000, MANY = 400 };

static struct xpl_error err;

static struct xpl_store *open_pg(void) {
    struct xpl_store *s = NULL;
    const struct xpl_store_options o = {.size = sizeof o, .dir = "", .url = pg_url(database)};
    CHECK_OK(xpl_store_open(&o, &s, &err), &err);
    for (int i = 0; xpl_store_role(s) != XPL_STORE_WRITER; i++) { // a busy machine
        CHECK(i < 6000);
        pg_pause_ms(10);
    }
    CHECK(xpl_store_jobs(s));
    return s;
}

static struct xpl_job_spec spec(const char *session, const char *host) {
    return (struct xpl_job_spec){.session = xpl_str_from(session),
                                 .host = xpl_str_from(host),
                                 .size_bytes = 1000,
                                 .mtime_ns = 5,
                                 .product = XPL_STR("op_stats"),
                                 .version = 7,
                                 .variant = 1};
}

// Asks for `n` hosts of a session: h0, h1, ...
static void ask(struct xpl_store *s, const char *session, size_t n, struct xpl_job_digest *ret) {
    static struct xpl_job_spec specs[MANY];
    static char names[MANY][16];
    static struct xpl_job_digest unused[MANY];
    CHECK(n <= MANY);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "h%zu", i);
        specs[i] = spec(session, names[i]);
    }
    CHECK_OK(xpl_store_jobs(s)->enqueue(s, specs, n, ret ? ret : unused, &err), &err);
}

static struct xpl_arena arena; // of claims
static struct xpl_job *jobs;

static size_t claim_with(struct xpl_store *s, size_t max, bool alone, uint64_t lease_ms) {
    static const struct xpl_store_version makes[] = {{XPL_STORE_PRODUCT, {"devices", 7}, 1},
                                                     {XPL_STORE_PRODUCT, {"op_stats", 8}, 7}};
    const struct xpl_job_offer o = {.products = makes,
                                    .n_products = 2,
                                    .max_bytes = 1000,
                                    .max = max,
                                    .alone = alone,
                                    .lease_ms = lease_ms};
    size_t n = 0;
    CHECK_OK(xpl_store_jobs(s)->claim(s, &o, &arena, &jobs, &n, &err), &err);
    CHECK(n <= max);
    return n;
}

static size_t claim(struct xpl_store *s, size_t max) {
    return claim_with(s, max, true, LEASE_MS);
}

static xpl_status_t conclude(struct xpl_store *s, const struct xpl_job *j) {
    struct xpl_error e = {0};
    return xpl_store_jobs(s)->conclude(s, &j->claim, &e);
}

static enum xpl_job_state state(struct xpl_store *s, const struct xpl_job_digest *d) {
    enum xpl_job_state ret;
    CHECK_OK(xpl_store_jobs(s)->inspect(s, d, 1, &ret, &err), &err);
    return ret;
}

static struct xpl_job_stats stats(struct xpl_store *s) {
    struct xpl_job_stats ret = {0};
    CHECK_OK(xpl_store_jobs(s)->get_stats(s, &ret, &err), &err);
    return ret;
}

// As if so much time had passed.
static void lapse(const char *interval) {
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE jobs SET expires_at=expires_at-interval '%s' WHERE attempt>0", interval);
    pg_sql(database, sql);
}

// ---- one job ----

static void test_one(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_job_digest d[2], again[2];
    CHECK_EQ(claim(s, 8), 0);
    ask(s, "run", 2, d);
    ask(s, "run", 2, again); // asked for twice, there once
    CHECK(memcmp(d, again, sizeof d) == 0 && memcmp(&d[0], &d[1], sizeof *d) != 0);
    CHECK_EQ(state(s, d), XPL_JOB_QUEUED);
    CHECK_EQ(claim(s, 1), 1);
    CHECK(xpl_str_eq(jobs[0].spec.session, XPL_STR("run")));
    CHECK(xpl_str_eq(jobs[0].spec.host, XPL_STR("h0")));
    CHECK(xpl_str_eq(jobs[0].spec.product, XPL_STR("op_stats")));
    CHECK_EQ(jobs[0].spec.size_bytes, 1000);
    CHECK_EQ(jobs[0].spec.mtime_ns, 5);
    CHECK_EQ(jobs[0].spec.version, 7);
    CHECK_EQ(jobs[0].spec.variant, 1);
    CHECK_EQ(jobs[0].claim.attempt, 1);
    CHECK(jobs[0].queued_ms >= 0 && jobs[0].queued_ms < 60000);
    CHECK(memcmp(&jobs[0].claim.digest, &d[0], sizeof *d) == 0);
    CHECK_EQ(state(s, &d[0]), XPL_JOB_RUNNING);
    CHECK_EQ(conclude(s, &jobs[0]), XPL_OK);
    CHECK_EQ(conclude(s, &jobs[0]), XPL_NOT_FOUND);
    CHECK_EQ(state(s, &d[0]), XPL_JOB_GONE);
    CHECK_EQ(claim(s, 8), 1);
    CHECK(xpl_str_eq(jobs[0].spec.host, XPL_STR("h1")));
    CHECK_EQ(claim(s, 8), 0);
    xpl_store_close(s);
}

// Nobody gets what he cannot do.
static void test_offers(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_job_spec j[4] = {spec("run", "a"), spec("run", "b"), spec("run", "c"),
                                spec("run", "d")};
    struct xpl_job_digest d[4];
    j[0].size_bytes = 1001; // too large
    j[1].version = 8;       // another version's
    j[2].product = XPL_STR("unknown");
    CHECK_OK(xpl_store_jobs(s)->enqueue(s, j, 4, d, &err), &err);
    for (size_t i = 0; i < 4; i++) // each part counts
        for (size_t k = 0; k < i; k++)
            CHECK(memcmp(&d[i], &d[k], sizeof *d) != 0);
    CHECK_EQ(claim(s, 8), 1);
    CHECK(xpl_str_eq(jobs[0].spec.host, XPL_STR("d")));
    CHECK_OK(xpl_store_jobs(s)->enqueue(s, j, 0, d, &err), &err);
    CHECK_OK(xpl_store_jobs(s)->inspect(s, d, 0, NULL, &err), &err);
    xpl_store_close(s);
}

// ---- leases ----

static void test_fence(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    struct xpl_job_digest d;
    struct xpl_error e = {0};
    bool kept = false;
    ask(a, "run", 1, &d);
    CHECK_EQ(claim(a, 1), 1);
    const struct xpl_job late = jobs[0];
    CHECK_EQ(claim(b, 1), 0);
    lapse("70 s");
    CHECK_EQ(state(b, &d), XPL_JOB_SUSPECT);
    CHECK_EQ(claim(b, 1), 1);
    CHECK_EQ(jobs[0].claim.attempt, 2);
    // The first one comes back: nothing that it puts is stored.
    CHECK_OK(xpl_store_jobs(a)->renew(a, &late.claim, 1, LEASE_MS, &kept, &err), &err);
    CHECK(!kept);
    CHECK_OK(xpl_store_begin(a, &err), &err);
    CHECK_OK(put_n(a, 1, 100, &err), &err);
    CHECK_EQ(conclude(a, &late), XPL_NOT_FOUND);
    CHECK_EQ(xpl_store_commit(a, &e), XPL_NOT_FOUND);
    CHECK(!get_n(b, 1, 100));
    CHECK_OK(xpl_store_jobs(b)->renew(b, &jobs[0].claim, 1, LEASE_MS, &kept, &err), &err);
    CHECK(kept);
    CHECK_OK(xpl_store_begin(b, &err), &err);
    CHECK_OK(put_n(b, 1, 100, &err), &err);
    CHECK_EQ(conclude(b, &jobs[0]), XPL_OK);
    CHECK_EQ(state(a, &d), XPL_JOB_RUNNING); // until the commit
    CHECK_OK(xpl_store_commit(b, &err), &err);
    CHECK_EQ(state(a, &d), XPL_JOB_GONE);
    CHECK(get_n(a, 1, 100));
    xpl_store_close(a);
    xpl_store_close(b);
}

static void test_renewal(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_job_claim c[3];
    bool kept[3];
    ask(s, "run", 3, NULL);
    CHECK_EQ(claim(s, 3), 3);
    for (size_t i = 0; i < 3; i++)
        c[i] = jobs[i].claim;
    lapse("50 s");
    CHECK_EQ(conclude(s, &jobs[1]), XPL_OK);
    CHECK_OK(xpl_store_jobs(s)->renew(s, c, 3, LEASE_MS, kept, &err), &err);
    CHECK(kept[0] && !kept[1] && kept[2]);
    lapse("50 s"); // of 60 again
    CHECK_EQ(stats(s).running, 2);
    lapse("20 s");
    CHECK_EQ(stats(s).running, 0);
    CHECK_EQ(stats(s).queued, 2);
    xpl_store_close(s);
}

static void test_give_back(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_job_claim c[2];
    ask(s, "run", 2, NULL);
    for (int i = 0; i < 5; i++) { // as often as one likes: no attempt counts
        CHECK_EQ(claim(s, 2), 2);
        c[0] = jobs[0].claim, c[1] = jobs[1].claim;
        CHECK_EQ(c[0].attempt, 1);
        CHECK_OK(xpl_store_jobs(s)->give_back(s, c, 2, 0, &err), &err);
    }
    CHECK_EQ(conclude(s, &jobs[0]), XPL_NOT_FOUND);
    CHECK_EQ(claim(s, 1), 1);
    CHECK_OK(xpl_store_jobs(s)->give_back(s, &jobs[0].claim, 1, LEASE_MS, &err), &err);
    CHECK_EQ(claim(s, 2), 1); // the other one
    xpl_store_close(s);
}

// A database that answers too late: the claim is not committed, and no attempt counts.
static void test_claim_given_up(void) {
    struct xpl_store *const s = open_pg();
    static const struct xpl_store_version makes[] = {{XPL_STORE_PRODUCT, {"op_stats", 8}, 7}};
    const struct xpl_job_offer o = {makes, 1, 1000, 8, true, LEASE_MS};
    struct xpl_error e = {0};
    size_t n = 0;
    ask(s, "run", 3, NULL);
    const pid_t locker = pg_spawn((const char *const[]){
        "psql", "-XqAt", "-h", pg.socket, "-U", "postgres", "-d", database, "-c",
        "BEGIN; LOCK TABLE jobs IN EXCLUSIVE MODE; SELECT pg_sleep(60)", NULL});
    wait_sql("EXISTS (SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND"
             " wait_event='PgSleep')");
    CHECK_EQ(xpl_store_jobs(s)->claim(s, &o, &arena, &jobs, &n, &e), XPL_UNAVAILABLE);
    CHECK_EQ(kill(locker, SIGKILL), 0);
    CHECK_EQ(waitpid(locker, NULL, 0), locker);
    pg_sql(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                     " wait_event='PgSleep'");
    // The server has finished what it was sent.
    wait_sql("NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE state<>'idle' AND"
             " datname=current_database() AND pid<>pg_backend_pid())");
    expect_sql("SELECT count(*)=3 FROM jobs WHERE attempt=0 AND owner=''");
    xpl_store_close(s);
}

// The plan of a claim does not depend on statistics: it reads no more than it takes.
static void test_claim_of_many(void) {
    struct xpl_store *const s = open_pg();
    pg_sql(database,
           "INSERT INTO jobs(digest, session, host, size_bytes, mtime_ns, product, version,"
           " variant, rank) SELECT decode(md5(i::text), 'hex'), 'run', 'h'||i, 1, 1,"
           " 'op_stats', 7, 1, i FROM generate_series(1, 8192) i");
    CHECK_EQ(claim(s, 2), 2);
    xpl_store_close(s); // its connections report what they read
    wait_sql("SELECT idx_tup_fetch>0 FROM pg_stat_user_tables WHERE relname='jobs'");
    expect_sql("SELECT idx_tup_fetch+seq_tup_read<100 FROM pg_stat_user_tables"
               " WHERE relname='jobs'");
}

// ---- suspects ----

// Of four jobs one kills: the others are done, whatever they were lost with.
static void test_poison(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_job_digest d[4];
    int done = 0, killed = 0;
    ask(s, "run", 4, d);
    for (int round = 0; round < 20; round++) {
        const size_t n = claim(s, 4);
        bool dies = false;
        for (size_t i = 0; i < n; i++)
            dies = dies || xpl_str_eq(jobs[i].spec.host, XPL_STR("h2"));
        CHECK(n <= 1 || jobs[0].claim.attempt == 1);
        killed += dies;
        if (dies) lapse("70 s");
        for (size_t i = 0; i < n && !dies; i++, done++)
            CHECK_EQ(conclude(s, &jobs[i]), XPL_OK);
    }
    CHECK_EQ(done, 3);
    CHECK_EQ(killed, XPL_JOB_ATTEMPTS);
    CHECK_EQ(state(s, &d[2]), XPL_JOB_SET_ASIDE);
    CHECK_EQ(stats(s).set_aside, 1);
    ask(s, "run", 4, NULL); // who asks again does not bring it back
    CHECK_EQ(claim(s, 4), 3);
    CHECK_EQ(state(s, &d[2]), XPL_JOB_SET_ASIDE);
    lapse("601 s");
    const struct xpl_job_daemon me = {XPL_STR("m"), XPL_STR("worker"), XPL_STR("1"), 0};
    CHECK_OK(xpl_store_jobs(s)->report(s, &me, 1000, &err), &err);
    CHECK_EQ(state(s, &d[2]), XPL_JOB_GONE);
    ask(s, "run", 4, NULL);
    CHECK_EQ(state(s, &d[2]), XPL_JOB_QUEUED);
    xpl_store_close(s);
}

// What kills does so with each product: the file is set aside, not the job.
static void test_poisoned_file(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_job_spec j[3] = {spec("run", "a"), spec("run", "a"), spec("run", "a")};
    struct xpl_job_digest d[3];
    j[1].variant = 2;
    j[2].mtime_ns = 6; // another file
    CHECK_OK(xpl_store_jobs(s)->enqueue(s, j, 3, d, &err), &err);
    CHECK_EQ(claim(s, 3), 3);
    lapse("70 s");
    for (int i = 1; i < XPL_JOB_ATTEMPTS; i++) {
        while (claim(s, 3) && jobs[0].spec.mtime_ns == 6)
            CHECK_EQ(conclude(s, &jobs[0]), XPL_OK);
        lapse("70 s");
    }
    CHECK_EQ(state(s, &d[0]), XPL_JOB_SET_ASIDE);
    CHECK_EQ(state(s, &d[1]), XPL_JOB_SET_ASIDE);
    CHECK(claim(s, 3) == 0 || jobs[0].spec.mtime_ns == 6);
    CHECK(state(s, &d[2]) != XPL_JOB_SET_ASIDE);
    xpl_store_close(s);
}

static void test_withdrawn(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_job_digest d[3];
    ask(s, "run", 3, d);
    CHECK_EQ(claim(s, 1), 1);
    CHECK_OK(xpl_store_jobs(s)->withdraw(s, d, 2, &err), &err);
    CHECK_EQ(state(s, &d[0]), XPL_JOB_RUNNING); // somebody has it
    CHECK_EQ(state(s, &d[1]), XPL_JOB_GONE);
    CHECK_EQ(state(s, &d[2]), XPL_JOB_QUEUED);
    lapse("70 s");
    CHECK_OK(xpl_store_jobs(s)->withdraw(s, d, 1, &err), &err);
    CHECK_EQ(state(s, &d[0]), XPL_JOB_SUSPECT); // which stays known
    xpl_store_close(s);
}

// Who works on something gets no suspect, and nothing else either, so that he is soon free for it.
static void test_alone(void) {
    struct xpl_store *const s = open_pg();
    ask(s, "run", 1, NULL);
    CHECK_EQ(claim(s, 1), 1);
    lapse("70 s");
    ask(s, "run", 3, NULL);
    CHECK_EQ(claim_with(s, 4, false, LEASE_MS), 0);
    CHECK_EQ(claim_with(s, 4, true, LEASE_MS), 1);
    CHECK_EQ(jobs[0].claim.attempt, 2);
    CHECK_EQ(claim_with(s, 4, false, LEASE_MS), 2);
    xpl_store_close(s);
}

// ---- many ----

static void test_fairness(void) {
    struct xpl_store *const s = open_pg();
    ask(s, "large", MANY, NULL);
    CHECK_EQ(claim(s, 4), 4); // it was alone
    ask(s, "small", 2, NULL);
    CHECK_EQ(claim(s, 2), 2);
    for (size_t i = 0; i < 2; i++)
        CHECK(xpl_str_eq(jobs[i].spec.session, XPL_STR("small")));
    CHECK_EQ(claim(s, 1), 1);
    CHECK(xpl_str_eq(jobs[0].spec.session, XPL_STR("large")));
    xpl_store_close(s);
}

static atomic_int n_done, n_refused;

static void *work(void *arg) {
    static const struct xpl_store_version makes[] = {{XPL_STORE_PRODUCT, {"op_stats", 8}, 7}};
    struct xpl_store *const s = arg;
    for (int idle = 0; idle < 50;) {
        const struct xpl_job_offer o = {makes, 1, 1000, 7, true, LEASE_MS};
        struct xpl_arena a;
        struct xpl_job *mine = NULL;
        struct xpl_error e = {0};
        size_t n = 0;
        xpl_arena_init(&a, 1 << 20);
        CHECK_OK(xpl_store_jobs(s)->claim(s, &o, &a, &mine, &n, &e), &e);
        for (size_t i = 0; i < n; i++)
            atomic_fetch_add(conclude(s, &mine[i]) == XPL_OK ? &n_done : &n_refused, 1);
        xpl_arena_fini(&a);
        idle = n ? 0 : idle + 1;
        if (!n) pg_pause_ms(2);
    }
    return NULL;
}

// Askers and workers at once: each job is done once.
static void test_many_at_once(void) {
    enum { WORKERS = 4 };
    struct xpl_store *s[WORKERS];
    pthread_t t[WORKERS];
    for (size_t i = 0; i < WORKERS; i++)
        s[i] = open_pg();
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&t[i], NULL, work, s[i]) == 0);
    ask(s[0], "one", MANY, NULL);
    ask(s[1], "two", MANY, NULL);
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    CHECK_EQ(atomic_load(&n_done), 2 * MANY);
    CHECK_EQ(atomic_load(&n_refused), 0);
    CHECK_EQ(stats(s[0]).queued + stats(s[0]).running, 0);
    for (size_t i = 0; i < WORKERS; i++)
        xpl_store_close(s[i]);
}

// ---- daemons ----

static void test_reports(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    const struct xpl_job_daemon worker = {XPL_STR("w"), XPL_STR("worker"), XPL_STR("1"), 3};
    const struct xpl_job_daemon front = {XPL_STR("f"), XPL_STR("front"), XPL_STR("1"), 0};
    CHECK_EQ(stats(a).workers, 0);
    CHECK_OK(xpl_store_jobs(a)->report(a, &worker, 60000, &err), &err);
    CHECK_OK(xpl_store_jobs(a)->report(a, &worker, 60000, &err), &err);
    CHECK_OK(xpl_store_jobs(b)->report(b, &front, 60000, &err), &err);
    CHECK_EQ(stats(b).workers, 1);
    CHECK_OK(xpl_store_jobs(a)->report(a, &worker, 0, &err), &err);
    CHECK_EQ(stats(b).workers, 0);
    xpl_store_close(a);
    xpl_store_close(b);
}

// ---- other leases ----

// Kind, name and owner of each, in lines.
static void expect_leases(struct xpl_store *s, const char *lines) {
    struct xpl_job_fleet f;
    char text[400] = "";
    CHECK_OK(xpl_store_jobs(s)->list(s, &arena, &f, &err), &err);
    for (size_t i = 0; i < f.n_leases; i++) {
        const struct xpl_job_lease *const l = &f.leases[i];
        xpl_str_t name = XPL_STR("");
        for (size_t k = 0; k < f.n_members; k++)
            if (xpl_str_eq(f.members[k].id, l->owner)) name = f.members[k].name;
        CHECK_EQ(l->owner.len != 0, l->expires_ms > LEASE_MS / 2);
        CHECK(l->expires_ms >= 0 && l->expires_ms <= LEASE_MS);
        const size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n, "%.*s %.*s %.*s\n", XPL_STR_FMT(l->kind),
                       XPL_STR_FMT(l->name), XPL_STR_FMT(name));
    }
    CHECK_STR(xpl_str_from(text), xpl_str_from(lines));
}

static void expect_counts(struct xpl_store *s, const int64_t leases[XPL_JOB_LEASE_KINDS],
                          const int64_t held[XPL_JOB_LEASE_KINDS]) {
    const struct xpl_job_stats got = stats(s);
    for (size_t i = 0; i < XPL_JOB_LEASE_KINDS; i++) {
        CHECK_EQ(got.leases[i], leases[i]);
        CHECK_EQ(got.held[i], held[i]);
    }
}

// Who has a schedule, a capture, a bucket to list and the tables of sessions.
static void test_leases(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    const struct xpl_job_daemon na = {XPL_STR("a"), XPL_STR("all"), XPL_STR("1"), 0},
                                nb = {XPL_STR("b"), XPL_STR("all"), XPL_STR("1"), 0};
    const struct xpl_history_schedule one = {.request = {(const uint8_t *)"r", 1}};
    const struct xpl_history_capture c = {.state = XPL_HISTORY_RUNNING};
    const struct xpl_listing_place place = {{0xab, 2}};
    const struct xpl_snapshot none = {.generation = 1};
    enum xpl_scanner scanner;
    uint64_t id;
    CHECK_OK(xpl_store_jobs(a)->report(a, &na, LEASE_MS, &err), &err);
    CHECK_OK(xpl_store_jobs(b)->report(b, &nb, LEASE_MS, &err), &err);
    expect_leases(a, "");
    CHECK_OK(xpl_store_captures(a)->add_schedule(a, &one, LEASE_MS, &id, &err), &err);
    CHECK_OK(xpl_store_captures(b)->begin(b, &c, NULL, LEASE_MS, &id, &err), &err);
    CHECK_OK(xpl_store_listings(b)->claim(b, &place, true, LEASE_MS, &scanner, &err), &err);
    expect_leases(b, "capture 1 b\nscanner ab020000000000000000000000000000 b\nschedule 1 a\n");
    expect_counts(a, (const int64_t[]){1, 1, 1, 0}, (const int64_t[]){1, 0, 0, 0});
    expect_counts(b, (const int64_t[]){1, 1, 1, 0}, (const int64_t[]){0, 1, 1, 0});
    CHECK_OK(xpl_store_put_catalogue(a, &none, NULL, &err), &err);
    expect_counts(a, (const int64_t[]){1, 1, 1, 1}, (const int64_t[]){1, 0, 0, 1});
    // What is over is nobody's; a schedule is there all the same.
    pg_sql(database, "UPDATE schedules SET expires_at='-infinity';"
                     "UPDATE captures SET expires_at=clock_timestamp()-interval '1 s'; DELETE FROM"
                     " leases WHERE name='catalogue'");
    expect_leases(a, "scanner ab020000000000000000000000000000 b\nschedule 1 \n");
    CHECK_EQ(stats(a).schedules, 1);
    expect_counts(b, (const int64_t[]){0, 0, 1, 0}, (const int64_t[]){0, 0, 1, 0});
    xpl_store_close(b); // gives back what it has
    expect_leases(a, "schedule 1 \n");
    xpl_store_close(a);
}

static void test_database_away(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_job_digest d;
    struct xpl_error e = {0};
    enum xpl_job_state st;
    const struct xpl_job_spec j = spec("run", "a");
    ask(s, "run", 1, &d);
    CHECK_EQ(claim(s, 1), 1);
    pg_stop(SIGQUIT);
    CHECK(xpl_store_jobs(s)->inspect(s, &d, 1, &st, &e) != XPL_OK);
    CHECK(xpl_store_jobs(s)->enqueue(s, &j, 1, &d, &e) != XPL_OK);
    CHECK(conclude(s, &jobs[0]) != XPL_OK);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    pg_start();
    for (int i = 0; xpl_store_role(s) != XPL_STORE_WRITER; i++) {
        CHECK(i < 6000);
        pg_pause_ms(10);
    }
    CHECK_EQ(conclude(s, &jobs[0]), XPL_OK); // nobody took it meanwhile
    xpl_store_close(s);
}

static void test_nobody_shares_a_file(void) {
    struct xpl_store *s = NULL;
    const struct xpl_store_options o = {.size = sizeof o, .dir = "jobs-sqlite"};
    CHECK_OK(xpl_store_open(&o, &s, &err), &err);
    CHECK(!xpl_store_jobs(s));
    xpl_store_close(s);
}

int main(void) {
    static void (*const all[])(void) = {
        test_one,
        test_offers,
        test_fence,
        test_renewal,
        test_give_back,
        test_claim_given_up,
        test_claim_of_many,
        test_poison,
        test_poisoned_file,
        test_withdrawn,
        test_alone,
        test_fairness,
        test_many_at_once,
        test_reports,
        test_leases,
        test_database_away,
        test_nobody_shares_a_file,
    };
    const char *const why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        make_database();
        xpl_arena_init(&arena, 16 << 20);
        all[i]();
        xpl_arena_fini(&arena);
    }
    return 0;
}
