// SPDX-License-Identifier: Apache-2.0
// What the text of a collective says: sizes and groups in all their forms, and of damaged texts.
#include "analysis/tools/collectives/expression.h"

#include <stdlib.h>
#include <time.h>

#include "analysis/tools/collectives/ranks.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/processor_time.h"
#include "tests/render.h"
#include "tests/xspace_maker.h"

struct expected {
    const char *text, *kind;
    uint64_t bytes, group_size, n_groups;
    bool starts, ends;
};

static void check_all(const struct expected *w, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct xpl_collective_text t;
        CHECK(xpl_collective_read(xpl_str_from(w[i].text), XPL_STR(""), &t));
        CHECK(xpl_str_eq(t.kind, xpl_str_from(w[i].kind)));
        CHECK_EQ(t.bytes, w[i].bytes);
        CHECK_EQ(t.group_size, w[i].group_size);
        CHECK_EQ(t.n_groups, w[i].n_groups);
        CHECK_EQ(t.starts, w[i].starts);
        CHECK_EQ(t.ends, w[i].ends);
    }
}

static void test_forms(void) {
    static const struct expected all[] = {
        {"%a.5 = (f32[256,256]{1,0}, f32[]) all-reduce(f32[256,256]{1,0} %d.7, f32[] %y), "
         "channel_id=1, replica_groups=mesh['axis_0'=8,'axis_1'=2] {'axis_0'}, to_apply=%add",
         "all-reduce", 256 * 256 * 4 + 4, 8, 2, false, false},
        {"%r = f32[128,128]{0,1:T(8,128)} reduce-scatter(f32[128,512]{0,1:T(8,128)} %w), "
         "replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={1}",
         "reduce-scatter", 128 * 512 * 4, 4, 2, false, false},
        {"%g = f32[128,512]{0,1} all-gather(f32[128,128]{0,1} %c), "
         "replica_groups=[4,2]<=[2,4]T(1,0)",
         "all-gather", 128 * 128 * 4 * 2, 2, 4, false, false},
        {"%g = (bf16[8]{0}, bf16[32]{0}) all-gather-start(bf16[8]{0} %c), "
         "replica_groups={{0,1,2,3}}",
         "all-gather", 64, 4, 1, true, false},
        {"%d = bf16[32]{0} all-gather-done((bf16[8]{0}, bf16[32]{0}) %g), x=1", "all-gather", 0, 0,
         0, false, true},
        {"%p = s4[3]{0} collective-permute(s4[3]{0} %x), source_target_pairs={{0,1},{1,0}}",
         "collective-permute", 2, 0, 0, false, false},
        {"%x = (u8[<=32,128]{1,0}, u8[4]{0}) ragged-all-to-all(u8[<=32,128]{1,0} %a), "
         "replica_groups={}",
         "ragged-all-to-all", 32 * 128, 0, 0, false, false},
        {"%all-to-all = f8e4m3fn[64]{0} all-to-all(f8e4m3fn[64]{0} %all-gather.1), "
         "replica_groups={{0},{1}}",
         "all-to-all", 64, 1, 2, false, false},
    };
    check_all(all, sizeof all / sizeof *all);
}

// Without a text the category decides; names of operands do not count.
static void test_categories(void) {
    struct xpl_collective_text t;
    CHECK(xpl_collective_read(XPL_STR(""), XPL_STR("all-reduce"), &t));
    CHECK(xpl_str_eq(t.kind, XPL_STR("all-reduce")) && !t.bytes && !t.starts);
    CHECK(xpl_collective_read(XPL_STR("%x = f32[] fusion()"), XPL_STR("all-gather-done"), &t));
    CHECK(t.ends);
    CHECK(!xpl_collective_read(XPL_STR("%f = f32[8]{0} fusion(f32[8]{0} %all-reduce(5)"),
                               XPL_STR("loop fusion"), &t));
    CHECK(!xpl_collective_read(XPL_STR(""), XPL_STR("all-reduced"), &t));
    CHECK(!xpl_collective_read(XPL_STR("all-reduce(f32[8] %x)"), XPL_STR(""), &t));
}

static void test_damage(void) {
    static const struct expected all[] = {
        // unknown sizes, or beyond 64 bits
        {"a = f32[?] all-reduce(f32[?] %x), replica_groups={{0,1}}", "all-reduce", 0, 2, 1, false,
         false},
        {"a = f32[] all-reduce(f32[4294967296,4294967296,8] %x)", "all-reduce", 0, 0, 0, false,
         false},
        {"a = f32[] all-reduce(f32[99999999999999999999] %x)", "all-reduce", 0, 0, 0, false, false},
        {"a = f32[] all-gather(f32[4611686018427387903] %x), replica_groups={{0,1,2}}",
         "all-gather", 0, 3, 1, false, false},
        // cut texts
        {"a = f32[8] all-reduce(f32[8", "all-reduce", 0, 0, 0, false, false},
        {"a = f32[8] all-reduce(", "all-reduce", 0, 0, 0, false, false},
        {"a = f32[8] all-reduce(f32[8] %x), replica_groups=", "all-reduce", 32, 0, 0, false, false},
        {"a = f32[8] all-reduce(f32[8] %x), replica_groups={{0,1", "all-reduce", 32, 0, 0, false,
         false},
        {"a = f32[8] all-reduce(f32[8] %x), replica_groups=[4", "all-reduce", 32, 0, 0, false,
         false},
        {"a = f32[8] all-reduce(f32[8] %x), replica_groups=[0,2]<=[0]", "all-reduce", 32, 0, 0,
         false, false},
        {"a = f32[8] all-reduce(f32[8] %x), replica_groups=mesh['a'=8", "all-reduce", 32, 0, 0,
         false, false},
        {"a = f32[8] all-reduce(f32[8] %x), replica_groups=mesh['a'] {'a'}", "all-reduce", 32, 0, 0,
         false, false},
    };
    check_all(all, sizeof all / sizeof *all);
}

static void test_factors(void) {
    CHECK(xpl_collective_bus_factor(XPL_STR("all-reduce"), 4) == 1.5);
    CHECK(xpl_collective_bus_factor(XPL_STR("all-gather"), 4) == 0.75);
    CHECK(xpl_collective_bus_factor(XPL_STR("collective-permute"), 0) == 1);
    CHECK(xpl_collective_bus_factor(XPL_STR("broadcast"), 4) == 1);
    CHECK(xpl_collective_bus_factor(XPL_STR("unknown"), 4) == 0);
    CHECK(xpl_collective_bus_factor(XPL_STR("all-reduce"), 0) == 0);
    CHECK(xpl_collective_bus_factor(XPL_STR("all-reduce"), 1) == 0);
}

// ---- the tool ----

static void add_collective(struct xpl_opstats *s, struct xpl_arena *a, const char *name,
                           const char *text, uint32_t occurrences, uint64_t us, uint64_t min_us) {
    struct xpl_op_metrics *const m = xpl_vec_push(a, &s->device_op_metrics_db.metrics_db);
    CHECK(m);
    *m = (struct xpl_op_metrics){.name = xpl_str_from(name),
                                 .long_name = xpl_str_from(text),
                                 .occurrences = occurrences,
                                 .time_ps = us * 1000000,
                                 .min_time_ps = min_us * 1000000};
}

// Ops that are alike are one row of the first table; the second has each, the longest first.
static void test_tables(void) {
    static const char reduce[] = "%a = f32[256]{0} all-reduce(f32[256]{0} %x), "
                                 "replica_groups={{0,1,2,3}}";
    static const char *const rows[] = {
        // 3 occurrences in 16 us; as fast as the fastest they take 2 * 4 + 6, and the rest is
        // waiting.
        "{\"c\":[{\"v\":\"all-reduce\"},{\"v\":1024.0},{\"v\":4.0},{\"v\":1.0},{\"v\":2.0},"
        "{\"v\":3.0},{\"v\":16.0},",
        "{\"v\":4.0},{\"v\":14.0},{\"v\":2.0},",
        "{\"c\":[{\"v\":\"all-gather\"},{\"v\":4096.0},{\"v\":2.0},{\"v\":1.0},{\"v\":1.0},"
        "{\"v\":1.0},{\"v\":3.0},",
        "{\"c\":[{\"v\":\"a.1\"},{\"v\":\"0\"},",
        "{\"c\":[{\"v\":\"a.2\"},{\"v\":\"0\"},",
        "{\"c\":[{\"v\":\"g\"},{\"v\":\"0\"},"};
    struct xpl_arena a;
    struct xpl_error err = {0};
    struct xpl_buf out;
    struct xpl_opstats s = {.run_environment = {.hardware_type = XPL_HW_GPU}};
    xpl_arena_init(&a, 1 << 20);
    xpl_buf_init(&out, 1 << 20);
    add_collective(&s, &a, "a.2", reduce, 1, 6, 6);
    add_collective(&s, &a, "g",
                   "%g = f32[1024]{0} all-gather(f32[512]{0} %y), replica_groups={{0,1}}", 1, 3, 3);
    add_collective(&s, &a, "dot", "%d = f32[8]{0} dot(f32[8]{0} %y)", 1, 100, 100);
    add_collective(&s, &a, "a.1", reduce, 2, 10, 4);
    CHECK_OK(render_op_stats(named_tool("collectives"), &s, NULL, 1 << 20, &out, &err), &err);
    const xpl_str_t text = {(const char *)out.p, out.n};
    size_t at = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) { // one behind the other
        at = xpl_str_find(text, xpl_str_from(rows[i]), at);
        if (at == SIZE_MAX) fprintf(stderr, "%s\nnot in: %.*s\n", rows[i], XPL_STR_FMT(text));
        CHECK(at != SIZE_MAX);
    }
    CHECK(!xpl_str_has(text, XPL_STR("\"dot\"")));
    xpl_buf_fini(&out);
    xpl_arena_fini(&a);
}

// ---- ranks ----

enum { US = 1000000 }; // ps

// Calls of 100 us, each 1 ms after the other, from iteration `first` on.  Their sizes repeat, or
// not.
static void add_calls(struct xpl_ranks *r, int64_t ahead_us, uint64_t first, uint64_t n,
                      uint64_t sizes) {
    struct xpl_rank_host *const h = xpl_vec_push(r->arena, &r->hosts);
    CHECK(h);
    *h = (struct xpl_rank_host){.name = XPL_STR("h"), .start_ns = INT64_C(1) << 60};
    for (uint64_t i = first; i < first + n; i++) {
        struct xpl_rank_call *const c = xpl_vec_push(r->arena, &r->calls);
        const uint64_t begin = (uint64_t)(ahead_us + (int64_t)i * 1000) * US;
        CHECK(c);
        *c = (struct xpl_rank_call){.host = (uint32_t)r->hosts.n - 1,
                                    .group = 1,
                                    .kind = "all-reduce",
                                    .bytes = 1 + i % sizes,
                                    .seq = -1,
                                    .step = -1,
                                    .begin = begin,
                                    .end = begin + 100 * US};
    }
}

static uint64_t count_rows(const struct xpl_ranks *r, size_t n_hosts) {
    uint64_t n = 0;
    for (size_t i = 0; i < r->rows.n; i++)
        if (r->rows.v[i].n_hosts == n_hosts) n += r->rows.v[i].n;
    return n;
}

// What says which calls are one: time, else kinds and sizes; else they stay unmatched.
static void test_matching(void) {
    static const struct {
        int64_t ahead_us;
        uint64_t first, n, sizes, found, unclear;
        int64_t offset_us;
    } all[] = {
        {0, 0, 20, 1, 20, 0, 0},         // from the same one on
        {0, 1, 19, 1, 19, 0, 0},         // one later
        {30, 3, 20, 1, 17, 0, 0},        // clocks differ by less than half of a call
        {0, 3, 20, 4, 17, 0, 0},         //
        {300, 1, 19, 1, 0, 19, 0},       // between calls
        {300, 1, 19, 5, 0, 19, 0},       // sizes that fit in three ways
        {300, 1, 19, 100, 19, 0, 300},   // and in one
        {-300, 5, 20, 100, 15, 0, -300}, //
        {100000, 0, 20, 100, 0, 20, 0},  // at another time
        {0, 0, 1, 1, 1, 0, 0},           //
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct xpl_exec exec = xpl_exec_serial();
        struct xpl_arena a;
        struct xpl_ranks r;
        xpl_arena_init(&a, 16 << 20);
        CHECK(xpl_ranks_init(&r, &a, &exec));
        add_calls(&r, 0, 0, 20, all[i].sizes);
        add_calls(&r, all[i].ahead_us, all[i].first, all[i].n, all[i].sizes);
        CHECK(xpl_ranks_match(&r));
        CHECK_EQ(count_rows(&r, 2), all[i].found);
        CHECK_EQ(r.hosts.v[0].n_unclear, all[i].unclear ? 20 : 0);
        CHECK_EQ(r.hosts.v[1].n_unclear, all[i].unclear);
        CHECK_EQ(r.hosts.v[1].offset_ps, all[i].offset_us * US);
        xpl_arena_fini(&a);
    }
}

// One host's clock has nothing to do with the others: they still find each other.
static void test_stray_host(void) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_arena a;
    struct xpl_ranks r;
    xpl_arena_init(&a, 16 << 20);
    CHECK(xpl_ranks_init(&r, &a, &exec));
    for (int i = 0; i < 4; i++)
        add_calls(&r, 0, 0, 20, 1);
    r.hosts.v[0].start_ns = 5;
    CHECK(xpl_ranks_match(&r));
    CHECK_EQ(count_rows(&r, 3), 20);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(r.hosts.v[i].n_unclear, i ? 0 : 20);
    xpl_arena_fini(&a);
}

// Thousands of ranks: time is that of sorting their calls, not of comparing all hosts with all.
static void test_many_hosts(void) {
    enum { HOSTS = 4096, CALLS = 32 };
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_arena a;
    struct xpl_ranks r;
    xpl_arena_init(&a, 256 << 20);
    CHECK(xpl_ranks_init(&r, &a, &exec));
    for (int i = 0; i < HOSTS; i++)
        add_calls(&r, i % 2 * 300, 0, CALLS, 100);
    CHECK(xpl_ranks_match(&r));
    CHECK_EQ(count_rows(&r, HOSTS), CALLS);
    for (int i = 0; i < HOSTS; i++)
        CHECK_EQ(r.hosts.v[i].offset_ps, i % 2 * 300 * US);
    xpl_arena_fini(&a);
}

// Calls that refer to the same long texts, which would take a minute to read for each call.
static void test_shared_texts(void) {
    enum { N = 20000, ITEMS = 30000, ITEM = sizeof "\"float\", [2], " - 1 };
    char *const dims = malloc(ITEMS * ITEM + 2);
    CHECK(dims);
    dims[0] = '[';
    for (size_t i = 0; i < ITEMS; i++)
        memcpy(dims + 1 + i * ITEM, "\"float\", [2], ", ITEM + 1);
    struct xpl_buf space = mk_open();
    struct mk_plane p;
    mk_plane_begin(&p, 0, "/host:CPU");
    struct xpl_buf line = mk_line(1, "thread"), ev = mk_event(&p, "gloo:all_reduce", 0, 1000);
    mk_stat_ref(&p, &ev, "Input Dims", dims);
    mk_stat_ref(&p, &ev, "Input type", dims);
    mk_stat_ref(&p, &ev, "Process Group Name", dims);
    mk_stat_ref(&p, &ev, "Process Group Ranks", dims);
    for (size_t i = 0; i < N; i++)
        mk_len(&line, 4, ev.p, ev.n);
    xpl_buf_fini(&ev);
    ev = mk_event(&p, "gloo:all_reduce", 0, 1000);
    mk_stat_str(&p, &ev, "Input Dims", "[[2, 3], [4]]");
    mk_stat_str(&p, &ev, "Input type", "[\"float\", \"double\"]");
    mk_stat_str(&p, &ev, "Process Group Name", dims);
    mk_stat_str(&p, &ev, "Process Group Ranks", dims);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    struct xpl_arena arena;
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_xspace *xs;
    struct xpl_ranks r;
    struct xpl_error err = {0};
    xpl_arena_init(&arena, 64 << 20);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, &exec, &xs, &err), &err);
    CHECK(xpl_ranks_init(&r, &arena, &exec));
    const double begin = processor_s();
    CHECK_OK(xpl_ranks_add(&r, XPL_STR("h"), xs, &err), &err);
    CHECK(is_within(begin, 5));
    CHECK_EQ(r.calls.n, N + 1);
    for (size_t i = 0; i < N; i++) {
        CHECK_EQ(r.calls.v[i].bytes, ITEMS * 2 * 4);
        CHECK_EQ(r.calls.v[i].group, r.calls.v[N].group);
    }
    CHECK_EQ(r.calls.v[N].bytes, 2 * 3 * 4 + 4 * 8);
    xpl_arena_fini(&arena);
    xpl_buf_fini(&space);
    free(dims);
}

static struct xpl_buf calls_of(size_t n, uint64_t begin_ps, const char *dims) {
    struct xpl_buf space = mk_open();
    struct mk_plane p;
    mk_plane_begin(&p, 0, "/host:CPU");
    struct xpl_buf line = mk_line(1, "thread"),
                   ev = mk_event(&p, "gloo:all_reduce", (int64_t)begin_ps, 1000);
    mk_stat_str(&p, &ev, "Input Dims", dims);
    mk_stat_str(&p, &ev, "Input type", "[\"float\"]");
    for (size_t i = 0; i < n; i++)
        mk_len(&line, 4, ev.p, ev.n);
    xpl_buf_fini(&ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

static void add_host(struct xpl_ranks *r, const char *host, const struct xpl_buf *space) {
    struct xpl_xspace *xs;
    struct xpl_error err = {0};
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, r->arena, r->exec, &xs, &err),
             &err);
    CHECK_OK(xpl_ranks_add(r, xpl_str_from(host), xs, &err), &err);
}

// Hosts that have nothing in common: thousands with one call are not compared with all calls of
// the others, which are 5*10^9 steps.
static void test_many_short_hosts(void) {
    enum { LONG = 4, CALLS = 100000, SHORT = 12000 };
    struct xpl_arena arena = xpl_arena_of((size_t)1 << 30);
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_ranks r;
    char text[32];
    CHECK(xpl_ranks_init(&r, &arena, &exec));
    for (unsigned i = 0; i < LONG; i++) {
        (void)snprintf(text, sizeof text, "[[%u]]", i + 1);
        struct xpl_buf space = calls_of(CALLS, i * UINT64_C(1000000000), text);
        (void)snprintf(text, sizeof text, "long%u", i);
        add_host(&r, text, &space);
        xpl_buf_fini(&space);
    }
    struct xpl_buf one = calls_of(1, UINT64_C(100000000000), "[[77]]");
    for (unsigned i = 0; i < SHORT; i++) {
        (void)snprintf(text, sizeof text, "short%u", i);
        add_host(&r, text, &one);
    }
    const double begin = processor_s();
    CHECK(xpl_ranks_match(&r));
    CHECK(is_within(begin, 10));
    xpl_buf_fini(&one);
    xpl_arena_fini(&arena);
}

int main(void) {
    test_matching();
    test_stray_host();
    test_many_hosts();
    test_forms();
    test_categories();
    test_damage();
    test_factors();
    test_tables();
    test_shared_texts();
    test_many_short_hosts();
    return 0;
}
