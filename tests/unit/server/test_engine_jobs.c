// SPDX-License-Identifier: Apache-2.0
// server/engine/engine: equal requests share a job, and different ones the products of a host;
// refusals, cancellation, abandoned requests, and one callback for each request.
#include "server/engine/joint/joint.h"
#include "tests/unit/server/engine_fixture.h"

// ---- the barrier ----

static void set_barrier(bool closed) {
    pthread_mutex_lock(&mu);
    tool.closed = closed;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
}

static void wait_inside(unsigned n) {
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    pthread_mutex_lock(&mu);
    while (tool.inside != n)
        CHECK(xpl_cond_wait_until(&changed, &mu, until));
    pthread_mutex_unlock(&mu);
}

static void wait_stopped(unsigned n) {
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    pthread_mutex_lock(&mu);
    while (tool.stopped != n)
        CHECK(xpl_cond_wait_until(&changed, &mu, until));
    pthread_mutex_unlock(&mu);
}

// ---- joining ----

static void test_joining(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker first, equal[2], other, anew;
    start(&f, 1, 8, &usual);
    set_barrier(true);
    ask(&f, "1", &first);
    wait_inside(1);
    ask(&f, "1", &equal[0]);
    ask(&f, "1", &equal[1]);
    ask(&f, "2", &other);
    submit(&f, request(&f, "1", false), &anew);
    CHECK_EQ(xpl_pool_get_state(f.parts.pool).queued, 2); // the equal ones have no job
    set_barrier(false);
    check_answer(&f, &first, "1", "computed");
    check_answer(&f, &equal[0], "1", "joined");
    check_answer(&f, &equal[1], "1", "joined");
    check_answer(&f, &other, "2", "computed");
    check_answer(&f, &anew, "1", "computed");
    CHECK_EQ(tool.renders, 3);
    CHECK_EQ(tool.makes, 2); // `other` has the product of `first`; `anew` bypasses it
    CHECK_EQ(engine_stats(&f).joined, 2);
}

// Once a job has an outcome no request joins or cancels it, although its waiters are still called
// back.
static void test_delivered(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker first, last, later;
    start(&f, 2, 8, &usual);
    set_barrier(true);
    ask(&f, "1", &first);
    wait_inside(1);
    ask(&f, "1", &last); // the last one is called first
    last.holds = true;
    set_barrier(false);
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    pthread_mutex_lock(&mu);
    while (!last.calls)
        CHECK(xpl_cond_wait_until(&changed, &mu, until));
    CHECK_EQ(first.calls, 0);
    pthread_mutex_unlock(&mu);
    xpl_engine_cancel(first.ticket); // too late
    xpl_engine_cancel(last.ticket);
    ask(&f, "1", &later);
    check_answer(&f, &later, "1", "memory");
    pthread_mutex_lock(&mu);
    last.holds = false;
    pthread_mutex_unlock(&mu);
    check_answer(&f, &first, "1", "computed");
    check_answer(&f, &last, "1", "joined");
    CHECK_EQ(engine_stats(&f).cancelled, 0);
    CHECK_EQ(engine_stats(&f).joined, 1);
}

// ---- refusing ----

static void test_full_queue(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker running, queued, equal, refused;
    start(&f, 1, 1, &usual);
    set_barrier(true);
    ask(&f, "1", &running);
    wait_inside(1);
    ask(&f, "2", &queued);
    ask(&f, "3", &refused);
    CHECK_EQ(refused.calls, 1); // at once
    CHECK(refused.retry_ms > 0);
    xpl_engine_cancel(refused.ticket); // it has its outcome
    check_failure(&refused, XPL_RESOURCE_EXHAUSTED, "--max-concurrent-requests");
    ask(&f, "2", &equal); // needs no place
    CHECK_EQ(equal.calls, 0);
    set_barrier(false);
    check_answer(&f, &running, "1", "computed");
    check_answer(&f, &queued, "2", "computed");
    check_answer(&f, &equal, "2", "joined");
    ask(&f, "3", &refused);
    check_answer(&f, &refused, "3", "computed");
    CHECK_EQ(engine_stats(&f).refused, 1);
    CHECK_EQ(engine_stats(&f).cancelled, 0);
}

// --memory-total: one job may run whatever it needs, two only within the limit.
static void test_memory_total(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker running, refused;
    struct xpl_engine_options o = usual;
    o.memory_total = 1;
    start(&f, 2, 4, &o);
    set_barrier(true);
    ask(&f, "1", &running);
    wait_inside(1);
    CHECK(engine_stats(&f).in_flight_bytes > o.memory_total);
    ask(&f, "2", &refused);
    wait_done(&refused);
    CHECK_STATUS(refused.code, XPL_RESOURCE_EXHAUSTED, NULL);
    CHECK(refused.retry_ms > 0);
    xpl_engine_set_options(f.engine, &usual);
    ask(&f, "2", &refused);
    wait_inside(2);
    set_barrier(false);
    check_answer(&f, &running, "1", "computed");
    check_answer(&f, &refused, "2", "computed");
    CHECK_EQ(engine_stats(&f).refused, 1);
}

// ---- giving up ----

static void cancel(struct asker *a) {
    xpl_engine_cancel(a->ticket);
    CHECK_EQ(a->calls, 1); // at once
    check_failure(a, XPL_CANCELLED, "cancelled");
}

static void test_cancel(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker running, queued, joined, again;
    start(&f, 1, 4, &usual);
    set_barrier(true);
    ask(&f, "1", &running);
    wait_inside(1);
    ask(&f, "1", &joined);
    ask(&f, "2", &queued);
    cancel(&queued);
    cancel(&running); // another request still waits for the job
    CHECK_EQ(joined.calls, 0);
    cancel(&joined);
    ask(&f, "1", &again); // does not join an abandoned job
    wait_stopped(1);
    wait_inside(1);
    set_barrier(false);
    check_answer(&f, &again, "1", "computed");
    CHECK_EQ(tool.renders, 2); // number 2 was never begun
    CHECK_EQ(engine_stats(&f).cancelled, 3);
    CHECK_EQ(engine_stats(&f).computed, 1);
}

// One of two who share a job goes; the other one gets the answer.
static void test_cancel_one(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker first, second;
    start(&f, 1, 4, &usual);
    set_barrier(true);
    ask(&f, "1", &first);
    wait_inside(1);
    ask(&f, "1", &second);
    cancel(&first);
    set_barrier(false);
    check_answer(&f, &second, "1", "joined");
    CHECK_EQ(tool.renders, 1);
    CHECK_EQ(tool.stopped, 0);
}

// Each request has its own limit, whichever began the job. False when the machine was too slow to
// tell.
static bool check_deadlines(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker early, late;
    start(&f, 1, 4, &usual);
    set_barrier(true);
    ask(&f, "1", &early);
    const uint64_t asked = xpl_clock_ns();
    wait_inside(1);
    xpl_engine_sweep(f.engine); // an hour is not over
    CHECK_EQ(early.calls, 0);
    (void)nanosleep(&(struct timespec){.tv_nsec = 200 * (long)MS}, NULL);
    struct xpl_engine_options o = usual;
    const uint64_t began = xpl_clock_ns();
    ask(&f, "1", &late);
    o.request_timeout_ns = began - asked - 1;
    xpl_engine_set_options(f.engine, &o);
    xpl_engine_sweep(f.engine);
    const bool in_time = xpl_clock_ns() - began <= o.request_timeout_ns;
    CHECK_EQ(early.calls, 1);
    check_failure(&early, XPL_DEADLINE_EXCEEDED, "--request-timeout");
    CHECK_EQ(engine_stats(&f).cancelled, 0);
    if (in_time) {
        CHECK_EQ(late.calls, 0);
        CHECK_EQ(engine_stats(&f).timed_out, 1);
        set_barrier(false);
        check_answer(&f, &late, "1", "joined");
    } else {
        set_barrier(false);
        wait_done(&late);
    }
    return in_time;
}

static void test_deadline(void) {
    int tries = 1;
    while (!check_deadlines())
        CHECK(tries++ < 20);
    // Without requests the work stops.
    XPL_AUTO(end) struct fixture f;
    struct asker a;
    struct xpl_engine_options o = usual;
    o.request_timeout_ns = MS;
    start(&f, 1, 4, &o);
    set_barrier(true);
    ask(&f, "1", &a);
    wait_inside(1);
    let_time_pass();
    xpl_engine_sweep(f.engine);
    CHECK_EQ(a.calls, 1);
    wait_stopped(1);
    check_failure(&a, XPL_DEADLINE_EXCEEDED, "--request-timeout");
    xpl_engine_sweep(f.engine); // the job is not there any more
    CHECK_EQ(engine_stats(&f).timed_out, 1);
}

// A request that is a part of something counts from when that began.
static void test_earlier_beginning(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker a;
    start(&f, 1, 4, &usual);
    set_barrier(true);
    struct xpl_request *const q = request(&f, "1", true);
    q->since_ns = xpl_clock_ns() > 2 * HOUR_NS ? xpl_clock_ns() - 2 * HOUR_NS : 1;
    struct xpl_engine_options o = usual;
    if (q->since_ns == 1) o.request_timeout_ns = 1; // a machine that was started just now
    xpl_engine_set_options(f.engine, &o);
    submit(&f, q, &a);
    wait_inside(1);
    xpl_engine_sweep(f.engine);
    check_failure(&a, XPL_DEADLINE_EXCEEDED, "--request-timeout");
    set_barrier(false);
}

// Memory kept between jobs counts, and a job that is the only one runs anyway.
static void test_held_memory(void) {
    XPL_AUTO(end) struct fixture f;
    struct asker a;
    struct xpl_engine_options o = usual;
    o.memory_total = 1000;
    start(&f, 1, 4, &o);
    CHECK(xpl_engine_hold(f.engine, 600));
    CHECK(!xpl_engine_hold(f.engine, 401));
    CHECK_EQ(engine_stats(&f).refused, 1);
    CHECK(xpl_engine_hold(f.engine, 400));
    CHECK_EQ(engine_stats(&f).in_flight_bytes, 1000);
    ask(&f, "1", &a);
    check_answer(&f, &a, "1", "computed");
    while (engine_stats(&f).in_flight_bytes != 1000) // the job ends after its answer
        usleep(1000);
    xpl_engine_release(f.engine, 600);
    CHECK(xpl_engine_hold(f.engine, 599));
    xpl_engine_release(f.engine, 999);
    CHECK_EQ(engine_stats(&f).in_flight_bytes, 0);
}

// ---- of several sessions ----

// Each name is short, but joins many hosts: all of them count.
static void test_joined_hosts(void) {
    enum { HOSTS = 600, SESSIONS = 1000 };
    XPL_AUTO(end) struct fixture f;
    struct xpl_error err = {0};
    struct xpl_joint *joint = NULL;
    xpl_str_t names[SESSIONS];
    start(&f, 1, 4, &usual);
    for (int i = 0; i < 2 * HOSTS; i++) {
        char path[60];
        (void)snprintf(path, sizeof path, "logs/%c", "ab"[i % 2]);
        if (i < 2) CHECK_EQ(mkdir(in_dir(path), 0700), 0);
        (void)snprintf(path, sizeof path, "logs/%c/h%d.xplane.pb", "ab"[i % 2], i);
        FILE *const file = fopen(in_dir(path), "w");
        CHECK(file && fclose(file) == 0);
    }
    CHECK_OK(xpl_catalogue_scan(f.parts.catalogue, XPL_SCAN_ALL, NULL, &err), &err);
    for (size_t i = 0; i < SESSIONS; i++)
        names[i] = XPL_STR("a,b");
    const struct xpl_joint_request q = {.tool = "run_summary", .sessions = names, .n = SESSIONS};
    CHECK_EQ(xpl_joint_begin(f.engine, &q, &joint, &err), XPL_INVALID_ARGUMENT);
    CHECK(strstr(err.msg, "1048576 hosts"));
}

// ---- ahead of requests ----

static struct xpl_request *background_request(struct fixture *f) {
    struct xpl_request *const q = request(f, "1", true);
    q->background = true;
    return q;
}

// A request without a client ends when the daemon stops; one with a client, which joined it, stays,
// unless the client has left.
static void test_background(void) {
    enum { ALONE, JOINED, LEFT };
    for (int how = ALONE; how <= LEFT; how++) {
        XPL_AUTO(end) struct fixture f;
        struct asker alone, client;
        start(&f, 1, 4, &usual);
        set_barrier(true);
        submit(&f, background_request(&f), &alone);
        wait_inside(1);
        if (how != ALONE) ask(&f, "1", &client);
        if (how == LEFT) cancel(&client);
        xpl_engine_stop_background(f.engine);
        if (how == JOINED) set_barrier(false);
        wait_done(&alone);
        CHECK_EQ(alone.code, how == JOINED ? XPL_OK : XPL_CANCELLED);
        if (how == JOINED) check_answer(&f, &client, "1", "joined");
    }
}

static void test_prefetch(void) {
    XPL_AUTO(end) struct fixture f;
    struct xpl_host_status st;
    start(&f, 1, 4, &usual);
    struct xpl_snapshot *const s = xpl_catalogue_get(f.parts.catalogue);
    const struct xpl_host *const h = &s->sessions[0].hosts[0];
    xpl_engine_host_status(f.engine, h, &st);
    CHECK_EQ(st.state, XPL_HOST_NEW);
    CHECK(!xpl_engine_knows(f.engine, h));
    CHECK(xpl_engine_prefetch(f.engine, s, &s->sessions[0], h));
    wait_written(&f);
    xpl_engine_host_status(f.engine, h, &st);
    CHECK_EQ(st.state, XPL_HOST_STORED);
    CHECK(xpl_engine_knows(f.engine, h));
    CHECK(!xpl_engine_prefetch(f.engine, s, &s->sessions[0], h)); // nothing to do
    CHECK_EQ(engine_stats(&f).prefetched, 1);
    CHECK_EQ(engine_stats(&f).conversions, 2); // statistics of ops, and the time breakdown
    xpl_snapshot_unref(s);
}

static void test_stop_background(void) {
    XPL_AUTO(end) struct fixture f;
    start(&f, 1, 4, &usual);
    struct xpl_snapshot *const s = xpl_catalogue_get(f.parts.catalogue);
    xpl_engine_stop_background(f.engine);
    CHECK(!xpl_engine_prefetch(f.engine, s, &s->sessions[0], &s->sessions[0].hosts[0]));
    CHECK_EQ(engine_stats(&f).prefetched, 0);
    xpl_snapshot_unref(s);
}

int main(void) {
    xpl_cond_init(&changed);
    test_joining();
    test_delivered();
    test_full_queue();
    test_memory_total();
    test_held_memory();
    test_earlier_beginning();
    test_cancel();
    test_cancel_one();
    test_deadline();
    test_joined_hosts();
    test_background();
    test_prefetch();
    test_stop_background();
    return 0;
}
