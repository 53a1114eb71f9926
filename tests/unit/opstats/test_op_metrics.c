// SPDX-License-Identifier: Apache-2.0
// Databases of op metrics: entries by module and name, merging, copies, idle time, order.
#include "analysis/opstats/metrics/op_metrics.h"

#include <string.h>

#include "base/arena.h"
#include "tests/check.h"
#include "tests/processor_time.h"

static bool is(xpl_str_t s, const char *expected) {
    return xpl_str_eq(s, xpl_str_from(expected));
}

static void entries_by_module_and_name(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    struct xpl_op_metrics_db db = {0};
    struct xpl_op_metrics_builder b;
    xpl_op_metrics_begin(&b, &db, XPL_OP_METRICS_COPY, &a, &a);
    char name[16];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 1000; i++) {
            (void)snprintf(name, sizeof name, "op%d", i % 500); // reused: must have been copied
            struct xpl_op_metrics *const m =
                xpl_op_metrics_put(&b, (uint64_t)i / 500, xpl_str_from(name));
            CHECK(m);
            CHECK_EQ(m->time_ps, round);
            m->time_ps++;
        }
    CHECK_EQ(db.metrics_db.n, 1000);
    CHECK_STR(db.metrics_db.v[501].name, "op1");
    CHECK_EQ(db.metrics_db.v[501].hlo_module_id, 1);
}

// The values that the second of two equal ops adds, and those that it cannot change.
static void merging(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    struct xpl_op_metrics_db child = {0}, first = {0}, second = {0}, sum = {0};
    struct xpl_memory_accessed bytes[] = {{XPL_MEM_OP_READ, 1, 10}, {XPL_MEM_OP_WRITE, 1, 5}};
    struct xpl_op_metrics one = {
        .name = XPL_STR("x"),
        .category = XPL_STR("fusion"),
        .time_ps = 10,
        .self_time_ps = 7,
        .min_time_ps = 10,
        .occurrences = 1,
        .flops = UINT64_MAX,
        .num_cores = 1,
        .children = &child,
        .memory_accessed_breakdown = {.v = bytes, .n = 1},
    };
    struct xpl_op_metrics two = one;
    two.category = XPL_STR("late"), two.provenance = XPL_STR("a/b:C");
    two.min_time_ps = 4, two.flops = 3, two.core_type = XPL_CORE_TENSOR, two.is_eager = true;
    two.memory_accessed_breakdown.n = 2;
    two.vdd_energy_j = 0.5, two.has_vdd_energy_j = true;
    first.metrics_db.v = &one, first.metrics_db.n = 1;
    second.metrics_db.v = &two, second.metrics_db.n = 1;
    first.total_time_ps = 20, second.total_time_ps = 30;
    second.busy_time_high_confidence_ps = 9, second.idle_time_high_confidence_ps = 8;
    struct xpl_op_metrics_builder b;
    xpl_op_metrics_begin(&b, &sum, XPL_OP_METRICS_COPY, &a, &a);
    CHECK(xpl_op_metrics_combine(&b, &first, true));
    CHECK(xpl_op_metrics_combine(&b, &second, false));
    CHECK_EQ(sum.metrics_db.n, 1);
    const struct xpl_op_metrics *const m = sum.metrics_db.v;
    CHECK_STR(m->category, "fusion");
    CHECK_STR(m->provenance, "a/b:C");
    CHECK_EQ(m->time_ps, 20);
    CHECK_EQ(m->self_time_ps, 14);
    CHECK_EQ(m->min_time_ps, 4);
    CHECK_EQ(m->occurrences, 2);
    CHECK_EQ(m->flops, 2);
    CHECK_EQ(m->num_cores, 1); // wraps as upstream does
    CHECK(m->is_eager);
    CHECK_EQ(m->core_type, XPL_CORE_TENSOR);
    CHECK(m->children && m->children != &child);
    CHECK(m->has_vdd_energy_j);
    CHECK_REAL(m->vdd_energy_j, 0.5, 0);
    CHECK_EQ(m->memory_accessed_breakdown.n, 2);
    CHECK_EQ(m->memory_accessed_breakdown.v[0].bytes_accessed, 20);
    CHECK_EQ(m->memory_accessed_breakdown.v[1].bytes_accessed, 5);
    CHECK_EQ(one.memory_accessed_breakdown.v[0].bytes_accessed, 10); // the source is untouched
    CHECK_EQ(sum.total_time_ps, 50);
    CHECK(sum.has_precision_stats);
    CHECK_EQ(sum.busy_time_high_confidence_ps, 9);
    CHECK_EQ(sum.idle_time_high_confidence_ps, 8);
}

// Children nested deeper than the limit are left out of copies.
static void deep_children(void) {
    enum { DEPTH = 4 * XPL_OP_METRICS_MAX_DEPTH };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    static struct xpl_op_metrics_db dbs[DEPTH];
    static struct xpl_op_metrics ops[DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        ops[i].name = XPL_STR("level");
        ops[i].children = i + 1 < DEPTH ? &dbs[i + 1] : NULL;
        dbs[i].metrics_db.v = &ops[i], dbs[i].metrics_db.n = 1;
    }
    struct xpl_op_metrics_db copy;
    CHECK(xpl_op_metrics_db_copy(&dbs[0], &a, &copy));
    int depth = 0;
    for (const struct xpl_op_metrics_db *d = &copy; d; d = d->metrics_db.v[0].children)
        depth++;
    CHECK_EQ(depth, 32 + 1); // docs/differences.md says so
}

static void many_memory_spaces(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    struct xpl_op_metrics m = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        const struct xpl_memory_accessed one = {XPL_MEM_OP_READ, i, 1};
        CHECK(xpl_op_metrics_add_breakdown(&one, 1, &m, &a));
    }
    CHECK_EQ(m.memory_accessed_breakdown.n, 256);
}

static void totals_and_idle(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_op_metrics_db db = {.total_op_time_ps = 30};
    CHECK_REAL(xpl_op_metrics_idle_ratio(&db), 1.0, 0); // no total at all
    xpl_op_metrics_set_total_time(&db, 20);
    CHECK_EQ(db.total_time_ps, 30); // never below the time of the ops
    xpl_op_metrics_set_total_time(&db, 40);
    CHECK(xpl_op_metrics_add_idle(&db, &a));
    const struct xpl_op_metrics *const m = &db.metrics_db.v[0];
    CHECK(xpl_op_metrics_is_idle(m));
    CHECK_STR(m->name, "IDLE");
    CHECK_EQ(m->time_ps, 10);
    CHECK_EQ(m->self_time_ps, 10);
    CHECK_EQ(m->occurrences, 0);
    CHECK_REAL(xpl_op_metrics_idle_ratio(&db), 0.25, 0);
    double ratio;
    CHECK(!xpl_op_metrics_infeed_ratio(&db, &ratio));
    db.total_host_infeed_enq_start_timestamp_ps_diff = 4;
    db.total_host_infeed_enq_duration_ps = 1;
    CHECK(xpl_op_metrics_infeed_ratio(&db, &ratio));
    CHECK_REAL(ratio, 0.25, 0);
}

static void order(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_op_metrics_db db = {0};
    struct xpl_op_metrics ops[] = {
        {.name = XPL_STR("b"), .self_time_ps = 1},
        {.name = XPL_STR("c"), .self_time_ps = 9},
        {.name = XPL_STR("a"), .self_time_ps = 1},
        {.name = XPL_STR("a"), .self_time_ps = 1, .hlo_module_id = 2},
    };
    db.metrics_db.v = ops, db.metrics_db.n = 4;
    const struct xpl_op_metrics **v;
    size_t n;
    CHECK(xpl_op_metrics_sorted(&db, SIZE_MAX, &a, &v, &n));
    CHECK_EQ(n, 4);
    CHECK(v[0] == &ops[1]);
    CHECK(v[1] == &ops[2]);
    CHECK(v[2] == &ops[3]);
    CHECK(v[3] == &ops[0]);
    CHECK(xpl_op_metrics_sorted(&db, 2, &a, &v, &n));
    CHECK_EQ(n, 2);
    db.metrics_db.n = 0;
    CHECK(xpl_op_metrics_sorted(&db, 2, &a, &v, &n));
    CHECK_EQ(n, 0);
}

static void regrouping(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_op_metrics_db db = {.total_time_ps = 100, .total_op_time_ps = 90}, tf;
    struct xpl_op_metrics ops[] = {
        {.name = XPL_STR("f.1"),
         .provenance = XPL_STR("l/MatMul:MatMul"),
         .time_ps = 30,
         .self_time_ps = 30,
         .occurrences = 2},
        {.name = XPL_STR("f.2"),
         .provenance = XPL_STR("l/MatMul:MatMul"),
         .time_ps = 20,
         .self_time_ps = 20,
         .occurrences = 5},
        {.name = XPL_STR("IDLE"), .category = XPL_STR("IDLE"), .time_ps = 10, .self_time_ps = 10},
        {.name = XPL_STR("copy"), .time_ps = 40, .self_time_ps = 40, .occurrences = 1},
    };
    db.metrics_db.v = ops, db.metrics_db.n = 4;
    CHECK(xpl_op_metrics_by_framework_op(&db, false, XPL_GROUP_OP, &a, &tf));
    bool found = false;
    for (size_t i = 0; i < tf.metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &tf.metrics_db.v[i];
        CHECK(!xpl_op_metrics_is_idle(m));
        if (!is(m->name, "l/MatMul")) continue;
        found = true;
        CHECK_STR(m->category, "MatMul");
        CHECK_EQ(m->time_ps, 50);
        CHECK_EQ(m->occurrences, 5);
    }
    CHECK(found);
}

// Ops that share a path of thousands of modules; 256 of these have their time.
static void deep_modules(void) {
    enum { N = 20000, LEVELS = 2000 };
    static char path[2 * LEVELS + sizeof "MatMul:MatMul"];
    static struct xpl_op_metrics ops[N];
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    struct xpl_op_metrics_db db = {0}, modules;
    for (size_t i = 0; i < LEVELS; i++)
        memcpy(path + 2 * i, "a/", 2);
    memcpy(path + 2 * LEVELS, "MatMul:MatMul", sizeof "MatMul:MatMul");
    for (size_t i = 0; i < N; i++)
        ops[i] = (struct xpl_op_metrics){.name = XPL_STR("f"),
                                         .provenance = xpl_str_from(path),
                                         .time_ps = 1,
                                         .self_time_ps = 1};
    db.metrics_db.v = ops, db.metrics_db.n = N;
    const double begin = processor_s();
    CHECK(xpl_op_metrics_by_framework_op(&db, false, XPL_GROUP_MODULE, &a, &modules));
    CHECK(is_within(begin, 4));
    CHECK_EQ(modules.metrics_db.n, 256);
    CHECK_EQ(modules.metrics_db.v[0].name.len, 2 * LEVELS - 1);
    CHECK_EQ(modules.metrics_db.v[0].self_time_ps, N);
    CHECK_EQ(modules.metrics_db.v[255].time_ps, N);
    CHECK_EQ(modules.metrics_db.v[255].self_time_ps, 0);
}

static void limits(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(0);
    struct xpl_op_metrics_db db = {0};
    struct xpl_op_metrics_builder b;
    xpl_op_metrics_begin(&b, &db, XPL_OP_METRICS_COPY, &a, &a);
    CHECK(!xpl_op_metrics_put(&b, 1, XPL_STR("x")));
    CHECK(!xpl_op_metrics_add_idle(&db, &a));
    CHECK_EQ(db.metrics_db.n, 0);
}

int main(void) {
    entries_by_module_and_name();
    merging();
    deep_children();
    many_memory_spaces();
    totals_and_idle();
    order();
    regrouping();
    deep_modules();
    limits();
    return 0;
}
