// SPDX-License-Identifier: Apache-2.0
// SparseCores in the steps of a TPU, and op lines that are out of order.
#include "analysis/opstats/convert.h"
#include "analysis/opstats/steps/step_events_sparse.h"
#include "base/arena.h"
#include "tests/processor_time.h"
#include "tests/unit/opstats/host_profiles.h"

enum { CORE = 1000050, STEP = 1000000 };

struct op {
    int64_t at, ps;
    const char *category;
};

// Appends a SparseCore with those ops, and with markers of `n_marks` steps of 800 ps.
static void add_sparse_core(struct xpl_buf *space, int64_t id, const struct op *ops, size_t n_ops,
                            int n_marks) {
    struct mk_plane p = mk_plane(id, "/device:TPU:0 SparseCore 0");
    struct xpl_buf marks = mk_line(1, "Sparse Core Steps"), line = mk_line(2, "Sparse Core Ops");
    for (int i = 0; i < n_marks; i++)
        mk_grouped(&p, &marks, "step", i * 1000, 800, i);
    for (size_t i = 0; i < n_ops; i++) {
        struct xpl_buf ev = mk_event(&p, ops[i].category, ops[i].at, ops[i].ps);
        mk_stat_str(&p, &ev, "hlo_category", ops[i].category);
        mk_event_end(&line, &ev);
    }
    mk_name(p.stats, &p.n_stats, "group_id");
    mk_line_end(&p, &marks);
    mk_line_end(&p, &line);
    mk_plane_end(&p, space);
}

static const struct xpl_opstats *convert(const struct xpl_buf *space, struct xpl_arena *arena) {
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_convert_options opt = {0};
    struct xpl_xspace *xs = NULL;
    struct xpl_opstats *s = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, &exec, &xs, &err), &err);
    CHECK_OK(xpl_opstats_convert(xs, &opt, &exec, arena, 1 << 28, &s, &err), &err);
    CHECK(s && s->step_db.step_sequence.v);
    return s;
}

// The SparseCore in one step of `steps`; NULL when it is not there.
static const struct xpl_step_info *core_in(const struct xpl_opstats *s, size_t step) {
    const struct xpl_per_core_step_info *p = &s->step_db.step_sequence.v[step];
    for (size_t i = 0; i < p->step_info_per_core.n; i++)
        if (p->step_info_per_core.v[i].core_id == CORE) return &p->step_info_per_core.v[i];
    return NULL;
}

static uint64_t category(const struct xpl_step_info *info, const char *name) {
    CHECK(info);
    for (size_t i = 0; i < info->category_ps.n; i++)
        if (xpl_str_eq(info->category_ps.v[i].category, xpl_str_from(name)))
            return info->category_ps.v[i].ps;
    return UINT64_MAX;
}

static void check_busy(const struct xpl_step_info *info, uint64_t duration_ps, uint64_t busy_ps) {
    CHECK(info);
    CHECK_EQ(info->breakdown, XPL_BREAKDOWN_SPARSE_CORE);
    CHECK(info->sparse);
    CHECK_EQ(info->duration_ps, duration_ps);
    CHECK_EQ(info->sparse->sc_busy_ps, busy_ps);
    CHECK_EQ(info->sparse->sc_compute_ps, busy_ps);
    CHECK_EQ(info->sparse->sc_idle_ps, duration_ps - busy_ps);
}

// Without markers a core has the steps of the TensorCores, if it ever worked.
static void check_unmarked(void) {
    static const struct op ops[] = {
        {100, 200, "x"}, {150, 50, "infeed"}, {160, 10, "y"}, {900, 200, "x"}, {1050, 100, "x"},
    };
    static const struct op idle[] = {{100, 200, "infeed"}, {500, 0, "x"}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 28);
    struct xpl_buf space = mk_tpu_profile(3, 2);
    add_sparse_core(&space, 50, ops, 5, 0);
    const struct xpl_opstats *s = convert(&space, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 3);
    check_busy(core_in(s, 0), 1000, 200 - 50 + 10 + 100);
    check_busy(core_in(s, 1), 1000, 150);
    check_busy(core_in(s, 2), 1000, 0);
    CHECK_EQ(s->step_db.step_sequence.v[0].step_info_per_core.n, 3);
    xpl_buf_fini(&space);

    space = mk_tpu_profile(3, 1);
    add_sparse_core(&space, 50, idle, 2, 0);
    CHECK(!core_in(convert(&space, &arena), 0));
    xpl_buf_fini(&space);
}

// With markers it has its own steps; work that no op accounts for is named by the line.
static void check_marked(void) {
    static const struct op ops[] = {
        {100, 200, "x"}, {600, 300, "y"}, {1000, 100, "infeed"}, {1200, 50, "x"}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 28);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_tpu_profile(3, 1);
    add_sparse_core(&space, 50, ops, 4, 2);
    const struct xpl_opstats *s = convert(&space, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 2); // the steps that all cores have
    const struct xpl_step_info *info = core_in(s, 0);
    CHECK(info);
    CHECK_EQ(info->breakdown, XPL_BREAKDOWN_GENERIC);
    CHECK_EQ(info->duration_ps, 800);
    CHECK_EQ(category(info, "Sparse Core Ops"), 400);
    CHECK_EQ(category(info, "IDLE"), 400);
    CHECK_EQ(category(core_in(s, 1), "Sparse Core Ops"), 50);
    CHECK_EQ(category(core_in(s, 1), "IDLE"), 750);
}

// The line in order or not, and long enough to be handed out in parts.
static void check_order(bool ordered) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 28);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_tpu_profile(50, 1);
    mk_sparse_core(&space, 50, 0, 4000, ordered);
    const struct xpl_opstats *s = convert(&space, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 50);
    for (size_t i = 0; i < 50; i++)
        check_busy(core_in(s, i), 1000, i < 40 ? 300 : 0);
}

// Lines of a profile that does not arrive grouped are read by begin, longer ops first.
static void check_tensor_order(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 28);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(4, "/device:TPU:0");
    struct xpl_buf marks = mk_line(1, "Steps"), ops = mk_line(2, "XLA Ops");
    for (int i = 0; i < 2; i++) {
        const int64_t at = i * (int64_t)STEP;
        const char *name = i ? "1" : "0";
        mk_plain(&p, &marks, name, at, STEP);
        static const int64_t where[][2] = {{500, 10}, {100, 0}, {100, 300}};
        for (int k = 0; k < 3; k++) {
            struct xpl_buf ev = mk_event(&p, "all-reduce", at + where[k][0], where[k][1]);
            mk_stat_int(&p, &ev, "all_reduce_unique_id", k + 1);
            mk_event_end(&ops, &ev);
        }
    }
    mk_line_end(&p, &marks);
    mk_line_end(&p, &ops);
    mk_plane_end(&p, &space);
    const struct xpl_opstats *s = convert(&space, &arena);
    CHECK_EQ(s->step_db.step_sequence.n, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct xpl_per_core_step_info *step = &s->step_db.step_sequence.v[i];
        CHECK_EQ(step->all_reduce_db_per_core.n, 1);
        const struct xpl_all_reduce_db *db = &step->all_reduce_db_per_core.v[0];
        CHECK_EQ(db->all_reduce_info.n, 3);
        CHECK_EQ(db->all_reduce_info.v[0].id, 3);
        CHECK_EQ(db->all_reduce_info.v[1].id, 2);
        CHECK_EQ(db->all_reduce_info.v[2].id, 1);
    }
}

// Steps that all overlap, of a core with as many ops.
static void check_overlapping(void) {
    enum { N = 40000 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 28);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(50, "/device:TPU:0 SparseCore 0");
    struct xpl_buf line = mk_line(2, "Sparse Core Ops");
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_convert_options opt = {0};
    struct xpl_convert c = {
        .opt = &opt, .exec = &exec, .result = &arena, .scratch_limit = 1 << 28, .is_tpu = true};
    struct xpl_sparse_cores cores = {0};
    struct xpl_steps steps;
    struct xpl_xspace *xs = NULL;
    struct xpl_error err = {0};
    for (int64_t i = 0; i < N; i++)
        mk_plain(&p, &line, "op", 10 * i, 5);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, &exec, &xs, &err), &err);
    c.xs = xs;
    xpl_steps_init(&steps, &arena);
    for (uint64_t i = 0; i < N; i++) {
        struct xpl_step *const s = xpl_vec_push(&arena, &steps.v);
        CHECK(s);
        *s = (struct xpl_step){.id = (int64_t)i, .device_marker = {i, 10 * N - i}};
    }
    const double begin = processor_s();
    CHECK_OK(xpl_sparse_core_steps(&c, &steps, &arena, &cores, &err), &err);
    CHECK(is_within(begin, 2));
    CHECK_EQ(cores.n, 1);
    CHECK_EQ(cores.v[0].busy_ps[0], 5 * N);
    CHECK_EQ(cores.v[0].busy_ps[3], 5 * N - 3);
    CHECK_EQ(cores.v[0].busy_ps[7], 5 * N - 5);
    CHECK_EQ(cores.v[0].busy_ps[12], 5 * N - 7);
}

int main(void) {
    check_unmarked();
    check_marked();
    check_order(true);
    check_order(false);
    check_tensor_order();
    check_overlapping();
    return 0;
}
