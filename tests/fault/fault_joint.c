// SPDX-License-Identifier: Apache-2.0
// Answers that are made of several sessions, a comparison and a history, with every allocation of
// the caller failing once: it is called back once, with the answer or a clean error, or not at all
// where nothing was begun; nothing stays reserved, and with memory back the answer is the same. The
// sessions' own answers are in memory: only joining them fails. Allocations are counted by thread,
// and another one frees: the leak sanitizer reports leaks. fault_compare tries the workers' part.
#include <time.h>

#include "analysis/formats/format.h"
#include "base/clock.h"
#include "base/cond.h"
#include "server/engine/index_files.h"
#include "server/engine/joint/compare.h"
#include "server/engine/joint/history.h"
#include "server/engine/pool.h"
#include "server/engine/writer.h"
#include "storage/sessions/identity.h"
#include "tests/unit/breakdown/slow_profiles.h"
#include "tests/unit/storage/store_helpers.h"

#define PATIENCE_NS UINT64_C(20000000000) // a test that waits for longer has failed
enum { LIMIT = 1 << 24 };

// ---- an engine over two sessions ----

static struct xpl_engine_parts parts;
static struct xpl_engine *engine;

static void write_session(const char *path, int64_t us) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = slow_profile("load_batch", NULL, us);
    FILE *const f = fopen(in_dir(path), "wb");
    CHECK(f && fwrite(space.p, 1, space.n, f) == space.n && fclose(f) == 0);
}

static void start(void) {
    static const struct xpl_engine_options usual = {.memory_limit = LIMIT,
                                                    .memory_total = 4 * (size_t)LIMIT,
                                                    .request_timeout_ns = PATIENCE_NS};
    struct xpl_error err = {0};
    new_dir();
    CHECK(mkdir(in_dir("logs"), 0700) == 0 && mkdir(in_dir("logs/a"), 0700) == 0 &&
          mkdir(in_dir("logs/b"), 0700) == 0);
    write_session("logs/a/h.xplane.pb", 3000);
    write_session("logs/b/h.xplane.pb", 6000);
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000},
                    NULL); // younger entries are not cached
    const struct xpl_catalogue_options c = {
        .size = sizeof c, .logdir = in_dir("logs"), .match = xpl_format_match};
    CHECK_OK(xpl_catalogue_new(&c, &parts.catalogue, &err), &err);
    parts.store = open_store(0);
    CHECK_OK(xpl_identity_new(parts.store, &parts.identity, &err), &err);
    const struct xpl_store_writer_options w = {.store = parts.store, .identity = parts.identity};
    CHECK((parts.writer = xpl_store_writer_new(&w)));
    CHECK((parts.cache = xpl_cache_new((size_t)1 << 24)));
    CHECK((parts.files = xpl_index_files_new(NULL, 0, parts.identity)));
    CHECK((parts.pool = xpl_pool_new(2, 100)));
    CHECK((engine = xpl_engine_new(&parts, &usual)));
}

static void end(void) {
    xpl_pool_free(parts.pool);
    xpl_store_writer_free(parts.writer, 3000);
    xpl_engine_free(engine);
    xpl_index_files_free(parts.files);
    xpl_cache_free(parts.cache);
    xpl_identity_free(parts.identity);
    xpl_store_close(parts.store);
    xpl_catalogue_free(parts.catalogue);
    remove_dir();
}

// ---- asking ----

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; // protects what follows
static pthread_cond_t changed;
static struct {
    unsigned calls;
    xpl_status_t code;
    char text[1 << 15]; // of the answer
    size_t n;
} got;

static void on_done(void *arg, const struct xpl_joint_outcome *o) {
    (void)arg;
    pthread_mutex_lock(&mu);
    got.calls++;
    got.code = o->code;
    got.n = o->code == XPL_OK ? o->out->n : 0;
    CHECK(got.n <= sizeof got.text && (o->code == XPL_OK || o->err.msg[0]));
    if (got.n) memcpy(got.text, o->out->p, got.n);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
}

static xpl_status_t begin_comparison(struct xpl_joint **ret, struct xpl_error *err) {
    static const xpl_str_t a = {"a", 1}, b = {"b", 1};
    const struct xpl_comparison_request q = {
        .a = &a, .b = &b, .n_a = 1, .n_b = 1, .memory_limit = LIMIT, .done = on_done};
    return xpl_comparison_begin(engine, &q, ret, err);
}

static xpl_status_t begin_history(struct xpl_joint **ret, struct xpl_error *err) {
    static const struct xpl_follow_session sessions[] = {{{"a", 1}, 1000}, {{"b", 1}, 2000}};
    static const xpl_str_t metric = {"step_time", 9};
    const struct xpl_follow_request q = {.sessions = sessions,
                                         .n = 2,
                                         .metrics = &metric,
                                         .n_metrics = 1,
                                         .memory_limit = LIMIT,
                                         .done = on_done};
    return xpl_follow_begin(engine, &q, ret, err);
}

typedef xpl_status_t begin_fn(struct xpl_joint **ret, struct xpl_error *err);

// The status, once nothing is under way any more.  One that is not begun is not called back.
static xpl_status_t ask(begin_fn *begin) {
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    struct xpl_joint *joint = NULL;
    struct xpl_error err = {0};
    got.calls = 0;
    const xpl_status_t st = begin(&joint, &err);
    if (st != XPL_OK) {
        CHECK(err.msg[0] && got.calls == 0);
        return st;
    }
    pthread_mutex_lock(&mu);
    while (!got.calls)
        CHECK(xpl_cond_wait_until(&changed, &mu, until));
    pthread_mutex_unlock(&mu);
    xpl_joint_unref(joint);
    return got.code;
}

// What threads of the pool still hold they give back soon.
static void wait_idle(void) {
    const uint64_t until = xpl_clock_ns() + PATIENCE_NS;
    struct xpl_engine_stats stats;
    for (;;) {
        xpl_engine_get_stats(engine, &stats);
        if (!stats.in_flight_bytes) return;
        CHECK(xpl_clock_ns() < until);
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static void fail_each(begin_fn *begin) {
    static char expected[sizeof got.text];
    unsigned failed = 0;
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK_OK(ask(begin), NULL); // the sessions' answers are in memory from here on
    const size_t n_expected = got.n;
    memcpy(expected, got.text, n_expected);
    xpl_fault_reset();
    CHECK_OK(ask(begin), NULL);
    const uint64_t n = xpl_fault_count();
    CHECK(n > 10);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        const xpl_status_t st = ask(begin);
        xpl_fault_fail_on(UINT64_MAX);
        CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
        if (st == XPL_OK) CHECK_BYTES(got.text, got.n, expected, n_expected);
        failed += st != XPL_OK;
        wait_idle();
        CHECK(got.calls <= 1);
    }
    CHECK(failed > n / 2); // most of them are needed
    CHECK_OK(ask(begin), NULL);
    CHECK_BYTES(got.text, got.n, expected, n_expected);
    wait_idle();
}

int main(void) {
    xpl_cond_init(&changed);
    start();
    fail_each(begin_comparison);
    fail_each(begin_history);
    end();
    return 0;
}
