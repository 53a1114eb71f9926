// SPDX-License-Identifier: Apache-2.0
// Hosts combined in turn: the same bytes as when all are there, few hosts at once, and what becomes
// of hosts that fail, change or are not needed any more.
#include <pthread.h>
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/combine/combine.h"
#include "analysis/opstats/convert.h"
#include "base/arena.h"
#include "tests/cancelled.h"
#include "tests/check.h"
#include "tests/unit/opstats/host_profiles.h"

enum { MAX_HOSTS = 4096, KINDS = 6 };
#define LIMIT ((size_t)1 << 30)

// ---- hosts as bytes, decoded in their turn ----

struct host {
    struct xpl_arena arena; // of its OpStats, while they are there
    const struct xpl_buf *encoded;
    struct xpl_host_outline *outline;
    bool there;
};

static struct {
    struct host hosts[MAX_HOSTS];
    size_t n, fail_at; // SIZE_MAX: none fails
    bool cut;          // hosts have lost their steps since
    pthread_mutex_t mu;
    size_t there, most, gets;
} all = {.mu = PTHREAD_MUTEX_INITIALIZER, .fail_at = SIZE_MAX};

static void count(bool there) {
    pthread_mutex_lock(&all.mu);
    all.there += there ? 1 : (size_t)-1;
    all.gets += there;
    if (all.there > all.most) all.most = all.there;
    pthread_mutex_unlock(&all.mu);
}

static xpl_status_t get(void *arg, size_t i, const struct xpl_opstats **ret,
                        struct xpl_error *err) {
    struct host *const h = &all.hosts[i];
    struct xpl_opstats *s;
    CHECK(arg == &all && !h->there);
    if (i == all.fail_at) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "host %zu is gone", i);
    xpl_arena_init(&h->arena, LIMIT);
    XPL_TRY(xpl_opstats_decode((xpl_bytes_t){h->encoded->p, h->encoded->n}, &h->arena, &s, err));
    if (all.cut) s->step_db.step_sequence.n = 0;
    h->there = true;
    count(true);
    *ret = s;
    return XPL_OK;
}

static void release(void *arg, size_t i) {
    struct host *const h = &all.hosts[i];
    CHECK(arg == &all && h->there);
    xpl_arena_fini(&h->arena);
    h->there = false;
    count(false);
}

// ---- profiles ----

static struct xpl_buf encode_profile(struct xpl_buf space) {
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_convert_options opt = {.cpu_as_device = true};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_xspace *xs;
    struct xpl_opstats *s;
    struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, &exec, &xs, &err), &err);
    CHECK_OK(xpl_opstats_convert(xs, &opt, &exec, &arena, LIMIT, &s, &err), &err);
    CHECK_OK(xpl_opstats_encode(s, &out, &err), &err);
    xpl_buf_fini(&space);
    return out;
}

static struct xpl_buf encoded[KINDS];

static void make_profiles(void) {
    struct xpl_buf sparse = mk_tpu_profile(9, 2), idle = mk_open();
    mk_sparse_core(&sparse, 50, 8, 40, true);
    struct mk_plane p = mk_plane(0, "/host:CPU");
    mk_plane_end(&p, &idle);
    encoded[0] = encode_profile(mk_gpu_profile(9));
    encoded[1] = encode_profile(mk_tpu_profile(9, 2));
    encoded[2] = encode_profile(mk_cpu_profile(40, 3));
    encoded[3] = encode_profile(mk_input_profile(7));
    encoded[4] = encode_profile(sparse);
    encoded[5] = encode_profile(idle);
}

// Host i is of the kind that the i-th letter says, in turns; 'x' is broken.
static void make_hosts(const char *kinds, size_t n) {
    all.n = n;
    all.there = all.most = all.gets = 0;
    for (size_t i = 0; i < n; i++) {
        const char kind = kinds[i % strlen(kinds)];
        struct host *const h = &all.hosts[i];
        const struct xpl_opstats *s;
        *h = (struct host){.encoded = kind == 'x' ? NULL : &encoded[kind - '0']};
        if (!h->encoded) continue;
        CHECK_OK(get(&all, i, &s, NULL), NULL);
        void *const at = xpl_sys_alloc(xpl_host_outline_size(s));
        CHECK(at);
        h->outline = xpl_host_outline_put(s, at);
        h->outline->bytes = h->arena.reserved;
        release(&all, i);
    }
    all.there = all.most = all.gets = 0;
}

static void free_hosts(void) {
    for (size_t i = 0; i < all.n; i++)
        xpl_sys_free(all.hosts[i].outline);
}

// ---- combining ----

static xpl_status_t combine(struct xpl_exec *exec, bool exact, size_t limit, struct xpl_buf *ret,
                            struct xpl_error *err) {
    static struct xpl_host_opstats list[MAX_HOSTS];
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
    struct xpl_opstats *s;
    for (size_t i = 0; i < all.n; i++) {
        list[i] = (struct xpl_host_opstats){.problem = XPL_STR("cut off")};
        CHECK(xpl_arena_printf(&arena, &list[i].host, "h%zu", i));
        if (!all.hosts[i].encoded) continue;
        list[i].outline = all.hosts[i].outline;
        if (!exec) CHECK_OK(get(&all, i, &list[i].stats, NULL), NULL);
    }
    const struct xpl_combine_source source = {get, release, &all, exec};
    const struct xpl_combine_input in = {
        .hosts = list, .n = all.n, .xprof_exact = exact, .source = exec ? &source : NULL};
    xpl_buf_init(ret, LIMIT);
    xpl_status_t st = xpl_opstats_combine(&in, &arena, &s, err);
    if (st == XPL_OK) st = xpl_opstats_encode(s, ret, err);
    for (size_t i = 0; i < all.n; i++)
        if (all.hosts[i].there) release(&all, i);
    return st;
}

static void check_equal(const char *kinds, size_t n, struct xpl_exec *exec) {
    make_hosts(kinds, n);
    for (int exact = 0; exact < 2; exact++) {
        struct xpl_buf together, in_turn;
        struct xpl_error err = {0};
        CHECK_OK(combine(NULL, exact, LIMIT, &together, &err), &err);
        CHECK_OK(combine(exec, exact, LIMIT, &in_turn, &err), &err);
        CHECK(together.n > 0 && together.n == in_turn.n);
        CHECK(memcmp(together.p, in_turn.p, in_turn.n) == 0);
        xpl_buf_fini(&together);
        xpl_buf_fini(&in_turn);
    }
    free_hosts();
}

static void test_equal(struct xpl_exec *exec) {
    static const char *const sessions[] = {"0",     "1",   "2",  "3",   "4",
                                           "01234", "0x5", "15", "25x", "4412"};
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions; i++) {
        check_equal(sessions[i], 3, exec);
        check_equal(sessions[i], 200, exec);
    }
    check_equal("5x5x1x", 6, exec); // all but one are left out: that one is as it was
}

// However many hosts, few of them are there at once.
static void test_few_at_once(struct xpl_exec *exec) {
    struct xpl_buf out;
    struct xpl_error err = {0};
    make_hosts("2", MAX_HOSTS);
    for (size_t i = 0; i < MAX_HOSTS; i++)
        all.hosts[i].outline->bytes = (size_t)16 << 20;
    CHECK_OK(combine(exec, false, LIMIT, &out, &err), &err);
    CHECK_EQ(all.gets, MAX_HOSTS);
    CHECK(all.most > 1 && all.most <= 8); // two batches of 64 MiB
    xpl_buf_fini(&out);
    all.gets = all.most = 0;
    CHECK_OK(combine(exec, false, (size_t)200 << 20, &out, &err), &err);
    CHECK_EQ(all.gets, MAX_HOSTS);
    CHECK(all.most <= 2); // each is more than a sixteenth of the limit
    xpl_buf_fini(&out);
    free_hosts();
}

static void test_failures(struct xpl_exec *exec) {
    struct xpl_buf out;
    struct xpl_error err = {0};
    make_hosts("2", 300);
    all.fail_at = 170;
    CHECK_STATUS(combine(exec, false, LIMIT, &out, &err), XPL_NOT_FOUND, &err);
    CHECK(strstr(err.msg, "host 170") && all.there == 0);
    all.fail_at = SIZE_MAX;
    all.cut = true;
    err = (struct xpl_error){0};
    CHECK_STATUS(combine(exec, false, LIMIT, &out, &err), XPL_ABORTED, &err);
    all.cut = false;
    struct xpl_exec cancelled = xpl_exec_serial();
    cancelled.cancelled = always_cancelled;
    CHECK_STATUS(combine(&cancelled, false, LIMIT, &out, NULL), XPL_CANCELLED, NULL);
    CHECK_STATUS(combine(exec, false, 1 << 16, &out, NULL), XPL_RESOURCE_EXHAUSTED, NULL);
    CHECK_EQ(all.there, 0);
    free_hosts();
}

int main(void) {
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(3);
    CHECK(pool);
    make_profiles();
    test_equal(&serial);
    test_equal(xpl_exec_pool_get(pool));
    test_few_at_once(xpl_exec_pool_get(pool));
    test_failures(xpl_exec_pool_get(pool));
    for (size_t i = 0; i < KINDS; i++)
        xpl_buf_fini(&encoded[i]);
    xpl_exec_pool_free(pool);
    return 0;
}
