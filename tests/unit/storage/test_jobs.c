// SPDX-License-Identifier: Apache-2.0
// What storage/store/jobs.h promises, with a server of PostgreSQL: batches, locks, ranks, suspects,
// files that are set aside, and a database that goes away.
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
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

// A request for the op statistics of `n` hosts of a session, h0, h1, ..., `each` in a batch.
struct asked {
    struct xpl_job_request r;
    struct xpl_job_product product;
    struct xpl_job_file files[MANY];
    size_t ends[MANY];
    char names[MANY][16];
};

static void fill(struct asked *q, const char *session, size_t n, size_t each) {
    CHECK(n <= MANY);
    q->product = (struct xpl_job_product){.name = XPL_STR("op_stats"), .version = 7, .variant = 1};
    q->r = (struct xpl_job_request){.session = xpl_str_from(session),
                                    .products = &q->product,
                                    .n_products = 1,
                                    .files = q->files,
                                    .ends = q->ends,
                                    .n_files = n};
    (void)snprintf((char *)q->r.digest.bytes, sizeof q->r.digest.bytes, "%s", session);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(q->names[i], sizeof q->names[i], "h%zu", i);
        q->files[i] = (struct xpl_job_file){xpl_str_from(q->names[i]), 1000, 5};
    }
    for (size_t at = 0; at < n;) {
        at = at + each < n ? at + each : n;
        q->ends[q->r.n_batches++] = at;
    }
}

static struct xpl_job_digest ask_in(struct xpl_store *s, const char *session, size_t n,
                                    size_t each) {
    static struct asked q;
    fill(&q, session, n, each);
    CHECK_OK(xpl_store_jobs(s)->enqueue(s, &q.r, &err), &err);
    return q.r.digest;
}

static struct xpl_job_digest ask(struct xpl_store *s, const char *session, size_t n) {
    return ask_in(s, session, n, 1);
}

static struct xpl_arena arena; // of claims

static const struct xpl_store_version makes[] = {{XPL_STORE_PRODUCT, {"devices", 7}, 1},
                                                 {XPL_STORE_PRODUCT, {"op_stats", 8}, 7}};

static struct xpl_job *claim_with(struct xpl_store *s, bool alone, uint64_t lease_ms) {
    const struct xpl_job_offer o = {
        .products = makes, .n_products = 2, .alone = alone, .lease_ms = lease_ms};
    struct xpl_job *ret = NULL;
    CHECK_OK(xpl_store_jobs(s)->claim(s, &o, &arena, &ret, &err), &err);
    return ret;
}

static struct xpl_job *claim(struct xpl_store *s) {
    return claim_with(s, true, LEASE_MS);
}

static xpl_status_t end_with(struct xpl_store *s, const struct xpl_job *j, size_t n_rest,
                             uint64_t pause_ms) {
    struct xpl_error e = {0};
    const struct xpl_job_end end = {j->claim, j->files + j->n_files - n_rest, n_rest, pause_ms};
    return xpl_store_jobs(s)->conclude(s, &end, &e);
}

static xpl_status_t conclude(struct xpl_store *s, const struct xpl_job *j) {
    return end_with(s, j, 0, 0);
}

static struct xpl_job_progress progress(struct xpl_store *s, struct xpl_job_digest d) {
    struct xpl_job_progress ret = {0};
    CHECK_OK(xpl_store_jobs(s)->inspect(s, &d, &arena, &ret, &err), &err);
    return ret;
}

static struct xpl_job_stats stats(struct xpl_store *s) {
    struct xpl_job_stats ret = {0};
    CHECK_OK(xpl_store_jobs(s)->get_stats(s, &ret, &err), &err);
    return ret;
}

// A daemon that is killed: its connections end, and say nothing before.
static void kill_connections(struct xpl_store *s) {
    pg_sql(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                     " datname=current_database() AND pid<>pg_backend_pid()");
    wait_sql("NOT EXISTS (SELECT FROM pg_locks WHERE locktype='advisory')");
    xpl_store_close(s);
}

// ---- one job ----

static void test_one(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    CHECK(!claim(s));
    const struct xpl_job_digest d = ask_in(s, "run", 3, 2);
    (void)ask_in(s, "run", 3, 2); // requested twice, there once
    CHECK_EQ(progress(s, d).n_left, 2);
    CHECK_EQ(progress(s, d).n_unclaimed, 2);
    struct xpl_job *const j = claim(s);
    CHECK(j && xpl_str_eq(j->session, XPL_STR("run")));
    CHECK_EQ(j->n_files, 2);
    CHECK(xpl_str_eq(j->files[0].host, XPL_STR("h0")));
    CHECK(xpl_str_eq(j->files[1].host, XPL_STR("h1")));
    CHECK_EQ(j->files[1].size_bytes, 1000);
    CHECK_EQ(j->files[1].mtime_ns, 5);
    CHECK_EQ(j->n_products, 1);
    CHECK(xpl_str_eq(j->products[0].name, XPL_STR("op_stats")));
    CHECK_EQ(j->products[0].version, 7);
    CHECK_EQ(j->products[0].variant, 1);
    CHECK_EQ(j->attempt, 1);
    CHECK(j->queued_ms >= 0 && j->queued_ms < 60000);
    CHECK_EQ(progress(s, d).n_left, 2);
    CHECK_EQ(progress(s, d).n_unclaimed, 1);
    CHECK_EQ(progress(s, d).n_lost, 0);
    CHECK_EQ(stats(s).running, 1);
    CHECK_EQ(conclude(s, j), XPL_OK);
    CHECK_EQ(conclude(s, j), XPL_NOT_FOUND);
    struct xpl_job *const k = claim(s);
    CHECK(k && k->n_files == 1 && xpl_str_eq(k->files[0].host, XPL_STR("h2")));
    CHECK(!claim(s));
    CHECK_EQ(conclude(s, k), XPL_OK);
    CHECK_EQ(progress(s, d).n_left, 0);
}

// A worker gets only jobs all of whose products it makes.
static void test_offers(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    struct asked q = {0};
    fill(&q, "run", 1, 1);
    q.product.version = 8;
    CHECK_OK(xpl_store_jobs(s)->enqueue(s, &q.r, &err), &err);
    fill(&q, "more", 1, 1);
    q.product.name = XPL_STR("unknown");
    CHECK_OK(xpl_store_jobs(s)->enqueue(s, &q.r, &err), &err);
    CHECK(!claim(s));
    (void)ask(s, "third", 1);
    CHECK(claim(s));
}

// ---- locks ----

// What another daemon puts for a job that is not its own any more is not stored.
static void test_fence(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    struct xpl_error e = {0};
    bool kept = true;
    (void)ask(a, "run", 1);
    struct xpl_job *const late = claim(a);
    CHECK(late && !claim(b));
    // The first one's session ends, and another one takes the job.
    pg_sql(database, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype='advisory'");
    wait_sql("NOT EXISTS (SELECT FROM pg_locks WHERE locktype='advisory')");
    struct xpl_job *const j = claim(b);
    CHECK(j && j->attempt == 2);
    while (xpl_store_jobs(a)->renew(a, &late->claim, 1, &kept, &e) != XPL_OK)
        pg_pause_ms(10); // until it has another connection
    CHECK(!kept);
    CHECK_OK(xpl_store_begin(a, &err), &err);
    CHECK_OK(put_n(a, 1, 100, &err), &err);
    CHECK_EQ(conclude(a, late), XPL_NOT_FOUND);
    CHECK_EQ(xpl_store_commit(a, &e), XPL_NOT_FOUND);
    CHECK(!get_n(b, 1, 100));
    CHECK_OK(xpl_store_begin(b, &err), &err);
    CHECK_OK(put_n(b, 1, 100, &err), &err);
    CHECK_EQ(conclude(b, j), XPL_OK);
    CHECK_EQ(stats(a).queued + stats(a).running, 1); // until the commit
    CHECK_OK(xpl_store_commit(b, &err), &err);
    CHECK_EQ(stats(a).queued + stats(a).running, 0);
    CHECK(get_n(a, 1, 100));
    // Nobody has a lock on a job that has ended: it is another's all the same.
    CHECK_OK(xpl_store_jobs(a)->renew(a, &late->claim, 1, &kept, &err), &err);
    CHECK(!kept);
    xpl_store_close(a);
    xpl_store_close(b);
}

// A daemon that lost its connection, but whose job no worker took, keeps the job.
static void test_reconnect(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    struct xpl_error e = {0};
    bool kept = false;
    (void)ask(s, "run", 1);
    struct xpl_job *const j = claim(s);
    CHECK(j);
    pg_sql(database, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype='advisory'");
    while (xpl_store_jobs(s)->renew(s, &j->claim, 1, &kept, &e) != XPL_OK)
        pg_pause_ms(10);
    CHECK(kept);
    CHECK_EQ(conclude(s, j), XPL_OK);
}

// However often it reports meanwhile, the end of the job frees the rest of it for others.
static void test_reconnect_rest(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    struct xpl_error e = {0};
    bool kept = false;
    (void)ask(a, "run", 1);
    struct xpl_job *const j = claim_with(a, true, 30000);
    CHECK(j);
    pg_sql(database, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype='advisory'");
    struct xpl_job_claim copy = j->claim;
    while (xpl_store_jobs(a)->renew(a, &copy, 1, &kept, &e) != XPL_OK)
        pg_pause_ms(10);
    copy = j->claim; // as a worker's, which is not changed
    CHECK_OK(xpl_store_jobs(a)->renew(a, &copy, 1, &kept, &err), &err);
    CHECK(kept && !claim(b));
    CHECK_EQ(end_with(a, j, 1, 0), XPL_OK);
    CHECK(claim(b));
    xpl_store_close(a);
    xpl_store_close(b);
}

// A daemon that reports keeps its session. False when the machine was too slow to tell.
static bool check_silence(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    bool in_time = true;
    (void)ask(a, "run", 1);
    uint64_t last = xpl_clock_ns();
    struct xpl_job *const j = claim_with(a, true, 1000);
    CHECK(j);
    for (int i = 0; i < 8; i++) {
        bool kept = false;
        pg_pause_ms(200);
        const uint64_t now = xpl_clock_ns();
        const xpl_status_t st = xpl_store_jobs(a)->renew(a, &j->claim, 1, &kept, &err);
        const bool taken = claim(b) != NULL;
        in_time = xpl_clock_ns() - last < (uint64_t)1000 * 1000000u;
        last = now;
        if (!in_time) break;
        CHECK_OK(st, &err);
        CHECK(kept && !taken);
    }
    if (in_time) {
        wait_sql("NOT EXISTS (SELECT FROM pg_locks WHERE locktype='advisory')");
        CHECK(claim(b));
    }
    xpl_store_close(a);
    xpl_store_close(b);
    return in_time;
}

// The server ends the session of a daemon that is silent for its lease.
static void test_silence(void) {
    for (int tries = 1; !check_silence(); tries++) {
        CHECK(tries < 20);
        make_database();
    }
}

// Frozen within a transaction: of its first claim, or between the end of a job and its commit.
static void be_silent_in_transaction(bool first) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    (void)ask(a, "run", 1);
    if (first) CHECK_OK(xpl_store_begin(a, &err), &err);
    struct xpl_job *const j = claim_with(a, true, 1000);
    CHECK(j);
    if (!first) CHECK_OK(xpl_store_begin(a, &err), &err);
    if (!first) CHECK_EQ(conclude(a, j), XPL_OK);
    const uint64_t began = xpl_clock_ns();
    wait_sql("NOT EXISTS (SELECT FROM pg_stat_activity WHERE state='idle in transaction')");
    CHECK(xpl_clock_ns() - began < (uint64_t)20000 * 1000000u);
    struct xpl_error e = {0};
    CHECK(xpl_store_commit(a, &e) != XPL_OK);
    CHECK(claim(b));
    xpl_store_close(a);
    xpl_store_close(b);
}

static void test_silence_in_transaction(void) {
    be_silent_in_transaction(false);
    pg_sql(database, "DELETE FROM jobs");
    be_silent_in_transaction(true);
}

// A thread has one transaction.
static void *claim_none(void *arg) {
    CHECK(!claim(arg));
    return NULL;
}

// Between the end of a job and its commit other daemons cannot claim it, and it does not count as
// lost; then it is gone, or its rest is there.
static void end_slowly(size_t n_rest) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    const struct xpl_job_digest d = ask_in(a, "run", 5, 5);
    struct xpl_job *const j = claim(a);
    pthread_t t;
    CHECK(j);
    CHECK_OK(xpl_store_begin(a, &err), &err);
    CHECK_EQ(end_with(a, j, n_rest, 0), XPL_OK);
    CHECK_EQ(pthread_create(&t, NULL, claim_none, b), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(progress(b, d).n_left, 1);
    CHECK_EQ(progress(b, d).n_lost, 0);
    CHECK_OK(xpl_store_commit(a, &err), &err);
    CHECK_EQ(progress(b, d).n_left, n_rest ? 1 : 0);
    struct xpl_job *const rest = claim(b);
    CHECK_EQ(rest ? rest->n_files : 0, n_rest);
    xpl_store_close(a);
    xpl_store_close(b);
}

static void test_claim_before_commit(void) {
    end_slowly(0);
    pg_sql(database, "DELETE FROM jobs");
    end_slowly(1);
}

// The rest of a job returns to the queue, and no attempt counts.
static void test_rest(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    const struct xpl_job_digest d = ask_in(s, "run", 3, 3);
    for (size_t rest = 3; rest > 0; rest--) {
        struct xpl_job *const j = claim(s);
        CHECK(j && j->n_files == (rest == 3 ? 3 : rest + 1) && j->attempt == 1);
        CHECK_EQ(end_with(s, j, rest, 0), XPL_OK);
        CHECK_EQ(progress(s, d).n_lost, 0);
    }
    struct xpl_job *const last = claim(s);
    CHECK(last && xpl_str_eq(last->files[0].host, XPL_STR("h2")));
    CHECK_EQ(end_with(s, last, 1, LEASE_MS), XPL_OK);
    CHECK(!claim(s)); // not yet
    CHECK_EQ(progress(s, d).n_left, 1);
}

// A database that answers too late: nothing is claimed, and no attempt is noted.
static void test_claim_given_up(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    const struct xpl_job_offer o = {makes, 2, true, LEASE_MS};
    struct xpl_job *j = NULL;
    struct xpl_error e = {0};
    (void)ask(s, "run", 3);
    const pid_t locker = pg_spawn((const char *const[]){
        "psql", "-XqAt", "-h", pg.socket, "-U", "postgres", "-d", database, "-c",
        "BEGIN; LOCK TABLE jobs IN EXCLUSIVE MODE; SELECT pg_sleep(60)", NULL});
    wait_sql("EXISTS (SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND"
             " wait_event='PgSleep')");
    CHECK(xpl_store_jobs(s)->claim(s, &o, &arena, &j, &e) != XPL_OK && !j);
    CHECK_EQ(kill(locker, SIGKILL), 0);
    CHECK_EQ(waitpid(locker, NULL, 0), locker);
    pg_sql(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                     " wait_event='PgSleep'");
    wait_sql("NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE state<>'idle' AND"
             " datname=current_database() AND pid<>pg_backend_pid())");
    expect_sql("SELECT count(*)=3 FROM jobs WHERE attempts='{}'");
    struct xpl_job *again = NULL;
    while (xpl_store_jobs(s)->claim(s, &o, &arena, &again, &e) != XPL_OK)
        pg_pause_ms(10);
    CHECK(again && again->attempt == 1 && xpl_str_eq(again->files[0].host, XPL_STR("h0")));
    // The claim that failed keeps no lock from others.
    CHECK_EQ(end_with(s, again, 1, 0), XPL_OK);
    XPL_AUTO(drop_store) struct xpl_store *const other = open_pg();
    again = claim(other);
    CHECK(again && xpl_str_eq(again->files[0].host, XPL_STR("h0")));
}

// A claim of which this daemon knows nothing, as its answer was lost, is not held against the file.
static void test_claim_unknown(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    (void)ask(s, "run", 2);
    CHECK(claim(s));
    expect_sql("SELECT count(*)=1 FROM jobs WHERE cardinality(attempts)=1");
    CHECK_OK(xpl_store_jobs(s)->renew(s, NULL, 0, NULL, &err), &err);
    expect_sql("SELECT count(*)=2 FROM jobs WHERE attempts='{}'");
}

// ---- suspects ----

// A file that ends its worker is found by division, and set aside once it was the only one; all
// others are made.
static void find_killer(size_t n, size_t each, size_t killer, int expected) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    char name[16];
    int killed = 0;
    size_t made = 0, alone = 0;
    const struct xpl_job_digest d = ask_in(s, "run", n, each);
    (void)snprintf(name, sizeof name, "h%zu", killer);
    for (struct xpl_job *j; (j = claim(s));) {
        bool dies = false;
        for (size_t i = 0; i < j->n_files; i++)
            dies = dies || xpl_str_eq(j->files[i].host, xpl_str_from(name));
        alone += dies && j->n_files == 1;
        if (!dies) {
            made += j->n_files;
            CHECK_EQ(conclude(s, j), XPL_OK);
            continue;
        }
        killed++;
        kill_connections(s);
        s = open_pg();
    }
    CHECK_EQ(made, n - 1);
    CHECK_EQ(killed, expected);
    CHECK(alone > 0);
    const struct xpl_job_progress p = progress(s, d);
    CHECK_EQ(p.n_left, 0);
    CHECK_EQ(p.n_lost, 1);
    CHECK(xpl_str_eq(p.lost[0].host, xpl_str_from(name)));
    CHECK_EQ(stats(s).set_aside, 1);
    // Other requests learn of it, and it is tried again later.
    struct xpl_job_progress aside = {0};
    CHECK_OK(xpl_store_jobs(s)->find_aside(s, XPL_STR("run"), &arena, &aside, &err), &err);
    CHECK_EQ(aside.n_lost, 1);
    CHECK_OK(xpl_store_jobs(s)->find_aside(s, XPL_STR("other"), &arena, &aside, &err), &err);
    CHECK_EQ(aside.n_lost, 0);
    pg_sql(database, "UPDATE jobs SET aside_at=aside_at-interval '601 s'");
    const struct xpl_job_daemon me = {XPL_STR("m"), XPL_STR("worker"), XPL_STR("1"), 0, 1};
    CHECK_OK(xpl_store_jobs(s)->report(s, &me, 1000, &err), &err);
    CHECK_EQ(stats(s).set_aside, 0);
}

static void test_killer(void) {
    find_killer(64, 64, 37, 4); // of 64, 16, 4, and by itself
}
static void test_killer_of_few(void) {
    find_killer(4, 1, 2, XPL_JOB_ATTEMPTS);
}

// A lost worker may have its own reasons.
static void test_divided(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    size_t n = 0, files = 0;
    const struct xpl_job_digest d = ask_in(s, "run", 6, 6);
    CHECK(claim(s));
    kill_connections(s);
    s = open_pg();
    CHECK_EQ(progress(s, d).n_lost, 6);
    for (struct xpl_job *j; (j = claim(s)); n++) {
        CHECK(j->n_files <= 2);
        files += j->n_files;
        CHECK_EQ(conclude(s, j), XPL_OK);
    }
    CHECK_EQ(n, 3);
    CHECK_EQ(files, 6);
    CHECK_EQ(progress(s, d).n_left, 0);
}

static void test_withdrawn(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    const struct xpl_job_digest d = ask(s, "run", 3);
    (void)ask(s, "other", 1);
    CHECK(claim(s));
    CHECK_OK(xpl_store_jobs(s)->withdraw(s, &d, &err), &err);
    CHECK_EQ(progress(s, d).n_left, 1); // a daemon has it
    CHECK_EQ(stats(s).queued, 1);       // another request's
}

// A busy worker gets no suspect file, and nothing else either, so that it is soon free for it.
static void test_alone(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    (void)ask(s, "run", 1);
    CHECK(claim(s));
    kill_connections(s);
    s = open_pg();
    (void)ask(s, "more", 2);
    CHECK(!claim_with(s, false, LEASE_MS));
    struct xpl_job *const j = claim(s);
    CHECK(j && j->attempt == 2);
    CHECK(claim_with(s, false, LEASE_MS));
    CHECK(claim_with(s, false, LEASE_MS));
    CHECK(!claim(s));
}

// ---- many ----

static void test_fairness(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    (void)ask(s, "large", MANY);
    for (int i = 0; i < 4; i++)
        CHECK(claim(s)); // there was nothing else
    (void)ask(s, "small", 2);
    for (int i = 0; i < 3; i++)
        CHECK(xpl_str_eq(claim(s)->session, i < 2 ? XPL_STR("small") : XPL_STR("large")));
}

static atomic_int n_done, n_refused;

static void *work(void *arg) {
    struct xpl_store *const s = arg;
    for (int idle = 0; idle < 50;) {
        const struct xpl_job_offer o = {makes, 2, true, LEASE_MS};
        struct xpl_arena a = xpl_arena_of(1 << 20);
        struct xpl_job *j = NULL;
        struct xpl_error e = {0};
        CHECK_OK(xpl_store_jobs(s)->claim(s, &o, &a, &j, &e), &e);
        if (j) atomic_fetch_add(conclude(s, j) == XPL_OK ? &n_done : &n_refused, 1);
        xpl_arena_fini(&a);
        idle = j ? 0 : idle + 1;
        if (!j) pg_pause_ms(2);
    }
    return NULL;
}

// Requesters and workers at once: each job is done once.
static void test_many_at_once(void) {
    enum { WORKERS = 4 };
    struct xpl_store *s[WORKERS];
    pthread_t t[WORKERS];
    for (size_t i = 0; i < WORKERS; i++)
        s[i] = open_pg();
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&t[i], NULL, work, s[i]) == 0);
    (void)ask(s[0], "one", MANY);
    (void)ask(s[1], "two", MANY);
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    CHECK_EQ(atomic_load(&n_done), 2 * MANY);
    CHECK_EQ(atomic_load(&n_refused), 0);
    CHECK_EQ(stats(s[0]).queued + stats(s[0]).running, 0);
    for (size_t i = 0; i < WORKERS; i++)
        xpl_store_close(s[i]);
}

// Products of many files, put at once, and again over damaged ones.
static void test_put(void) {
    enum { FILES = 5 };
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    static uint8_t large[3 << 20];
    struct xpl_fingerprint files[FILES];
    struct xpl_profile_id ids[FILES], found;
    struct xpl_job_put puts[FILES];
    uint32_t r = 1;
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)((r = r * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < FILES; i++) {
        files[i] = (struct xpl_fingerprint){.dev = 1, .ino = i + 1, .size = 10 + i, .mtime_ns = 7};
        memset(&ids[i], i == 4 ? 4 : (int)i + 1, sizeof ids[i]); // two of equal bytes
        puts[i] = (struct xpl_job_put){.file = &files[i],
                                       .key = {.kind = XPL_STORE_PRODUCT,
                                               .name = XPL_STR("op_stats"),
                                               .options = XPL_STR(""),
                                               .version = 7,
                                               .profiles = &ids[i],
                                               .n_profiles = 1},
                                       .data = {large, i == 1 ? sizeof large : 100 + i},
                                       .is_stored = i == 2};
    }
    puts[4].data.len = puts[3].data.len;
    for (int round = 0; round < 3; round++) {
        CHECK_OK(xpl_store_jobs(s)->put(s, puts, FILES, &err), &err);
        for (size_t i = 0; i < FILES; i++) {
            struct xpl_store_value v = {0};
            CHECK(xpl_store_find_file(s, &files[i], &found) && xpl_profile_id_eq(&found, &ids[i]));
            const xpl_status_t st = xpl_store_get(s, &puts[i].key, sizeof large, &v, &err);
            CHECK_EQ(st, i == 2 ? XPL_NOT_FOUND : XPL_OK);
            if (i == 2) continue;
            CHECK_EQ(v.len, puts[i].data.len);
            CHECK(memcmp(v.data, large, v.len) == 0);
            xpl_sys_free(v.data);
        }
        expect_sql("SELECT count(*)=3 FROM results");
        expect_sql("SELECT count(*)=3 FROM result_profiles r JOIN profiles p ON p.id=r.profile_id");
        if (round == 1) pg_sql(database, "UPDATE results SET checksum=checksum+1");
    }
}

// ---- daemons ----

static void test_reports(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg(), *const newer = open_pg();
    const struct xpl_job_daemon worker = {XPL_STR("w"), XPL_STR("worker"), XPL_STR("1"), 3, 8};
    const struct xpl_job_daemon front = {XPL_STR("f"), XPL_STR("front"), XPL_STR("1"), 0, 0};
    const struct xpl_job_daemon other = {XPL_STR("g"), XPL_STR("front"), XPL_STR("2"), 0, 0};
    CHECK_EQ(stats(a).workers, 0);
    CHECK_OK(xpl_store_jobs(a)->report(a, &worker, 60000, &err), &err);
    CHECK_OK(xpl_store_jobs(a)->report(a, &worker, 60000, &err), &err);
    CHECK_OK(xpl_store_jobs(b)->report(b, &front, 60000, &err), &err);
    CHECK_EQ(stats(b).workers, 1);
    CHECK_EQ(stats(b).peers, 1);
    CHECK_EQ(stats(b).threads, 8);
    // A worker of another version may not make what this daemon asks for.
    CHECK_EQ(stats(newer).peers, 1); // its version is not known yet
    CHECK_OK(xpl_store_jobs(newer)->report(newer, &other, 60000, &err), &err);
    CHECK_EQ(stats(newer).workers, 1);
    CHECK_EQ(stats(newer).peers, 0);
    CHECK_EQ(stats(newer).threads, 0);
    CHECK_OK(xpl_store_jobs(a)->report(a, &worker, 0, &err), &err);
    CHECK_EQ(stats(b).workers, 0);
    xpl_store_close(newer);
    xpl_store_close(a);
    xpl_store_close(b);
}

// A pooler gives each transaction another session: its clients request jobs, and take none.
static void test_pooled(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    const struct xpl_job_offer o = {makes, 2, true, LEASE_MS};
    const struct xpl_job_daemon me = {XPL_STR("m"), XPL_STR("worker"), XPL_STR("1"), 0, 1};
    struct xpl_job *j = NULL;
    struct xpl_error e = {0};
    const struct xpl_job_digest d = ask(s, "run", 2);
    CHECK_EQ(xpl_store_jobs(s)->claim(s, &o, &arena, &j, &e), XPL_FAILED_PRECONDITION);
    CHECK(!j && strstr(e.msg, "without a pooler"));
    CHECK_EQ(xpl_store_jobs(s)->report(s, &me, 1000, &e), XPL_FAILED_PRECONDITION);
    CHECK_EQ(stats(s).workers, 0);
    CHECK_EQ(progress(s, d).n_unclaimed, 2);
    CHECK_OK(xpl_store_jobs(s)->withdraw(s, &d, &err), &err);
    CHECK_EQ(progress(s, d).n_left, 0);
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

// The owners of a schedule, a capture, a bucket to list and the tables of sessions.
static void test_leases(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    const struct xpl_job_daemon na = {XPL_STR("a"), XPL_STR("all"), XPL_STR("1"), 0, 0},
                                nb = {XPL_STR("b"), XPL_STR("all"), XPL_STR("1"), 0, 0};
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
    // An ended one has no owner; a schedule is listed anyway.
    pg_sql(database, "UPDATE schedules SET expires_at='-infinity';"
                     "UPDATE captures SET expires_at=clock_timestamp()-interval '1 s'; DELETE FROM"
                     " leases WHERE name='catalogue'");
    expect_leases(a, "scanner ab020000000000000000000000000000 b\nschedule 1 \n");
    CHECK_EQ(stats(a).schedules, 1);
    expect_counts(b, (const int64_t[]){0, 0, 1, 0}, (const int64_t[]){0, 0, 1, 0});
    xpl_store_close(b); // returns its job
    expect_leases(a, "schedule 1 \n");
    xpl_store_close(a);
}

static void test_database_away(void) {
    XPL_AUTO(drop_store) struct xpl_store *const s = open_pg();
    struct xpl_error e = {0};
    struct xpl_job_progress p;
    struct asked q = {0};
    const struct xpl_job_digest d = ask(s, "run", 1);
    struct xpl_job *const j = claim(s);
    CHECK(j);
    fill(&q, "more", 1, 1);
    pg_stop(SIGQUIT);
    CHECK(xpl_store_jobs(s)->inspect(s, &d, &arena, &p, &e) != XPL_OK);
    CHECK(xpl_store_jobs(s)->enqueue(s, &q.r, &e) != XPL_OK);
    CHECK(conclude(s, j) != XPL_OK);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    pg_start();
    for (int i = 0; xpl_store_role(s) != XPL_STORE_WRITER; i++) {
        CHECK(i < 6000);
        pg_pause_ms(10);
    }
    CHECK_EQ(conclude(s, j), XPL_OK); // no worker took it meanwhile
}

static void test_nobody_shares_a_file(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = NULL;
    const struct xpl_store_options o = {.size = sizeof o, .dir = "jobs-sqlite"};
    CHECK_OK(xpl_store_open(&o, &s, &err), &err);
    CHECK(!xpl_store_jobs(s));
}

int main(void) {
    static void (*const all[])(void) = {
        test_one,
        test_offers,
        test_fence,
        test_reconnect,
        test_reconnect_rest,
        test_silence,
        test_silence_in_transaction,
        test_rest,
        test_claim_before_commit,
        test_claim_given_up,
        test_claim_unknown,
        test_killer,
        test_killer_of_few,
        test_divided,
        test_withdrawn,
        test_alone,
        test_fairness,
        test_many_at_once,
        test_put,
        test_reports,
        test_leases,
        test_database_away,
        test_nobody_shares_a_file,
    };
    static void (*const pooled[])(void) = {test_pooled};
    const char *const why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    const size_t n = pg.pooler ? 1 : sizeof all / sizeof *all;
    for (size_t i = 0; i < n; i++) {
        make_database();
        xpl_arena_init(&arena, 16 << 20);
        (pg.pooler ? pooled : all)[i]();
        xpl_arena_fini(&arena);
    }
    return 0;
}
