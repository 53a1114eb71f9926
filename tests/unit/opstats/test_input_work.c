// SPDX-License-Identifier: Apache-2.0
// Work of tf.data on a host that counts as a device: it is input, wherever it runs.
#include "analysis/opstats/convert.h"
#include "analysis/opstats/host/input_work.h"
#include "base/arena.h"
#include "tests/unit/opstats/host_profiles.h"

struct stats {
    struct xpl_arena arena;
    struct xpl_opstats *s;
};

static struct stats convert(const struct xpl_buf *space, bool cpu) {
    const struct xpl_convert_options opt = {.cpu_as_device = cpu};
    struct xpl_exec exec = xpl_exec_serial();
    struct stats r = {0};
    struct xpl_xspace *xs = NULL;
    struct xpl_error err = {0};
    xpl_arena_init(&r.arena, 1 << 24);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, &r.arena, &exec, &xs, &err), &err);
    CHECK_OK(xpl_opstats_convert(xs, &opt, &exec, &r.arena, 1 << 24, &r.s, &err), &err);
    return r;
}

static uint64_t time_of(const struct xpl_opstats *s, int32_t type) {
    CHECK(s->step_db.step_sequence.n >= 2);
    const struct xpl_step_info *info = &s->step_db.step_sequence.v[1].step_info_per_core.v[0];
    for (size_t i = 0; i < info->type_ps.n; i++)
        if (info->type_ps.v[i].type == type) return info->type_ps.v[i].ps / MK_NS;
    return 0;
}

static bool has_op(const struct xpl_opstats *s, const char *name) {
    for (size_t i = 0; i < s->device_op_metrics_db.metrics_db.n; i++)
        if (xpl_str_eq(s->device_op_metrics_db.metrics_db.v[i].name, xpl_str_from(name)))
            return true;
    return false;
}

static void check_step(const struct xpl_buf *space) {
    enum { COMPUTE = 140, WAIT = 110, HOST = 10 };
    struct stats r = convert(space, true);
    // Of 900 ns the program waits 600, and input's computation hides none of it; the model's op
    // overlaps the wait by 100 ns.
    CHECK_EQ(time_of(r.s, WAIT), 600);
    CHECK_EQ(time_of(r.s, COMPUTE), 150);
    CHECK_EQ(time_of(r.s, HOST), 110); // running the function, and the work ahead that overlaps it
    CHECK(has_op(r.s, "model/MatMul"));
    CHECK(has_op(r.s, "metrics/Add")); // before the iterator on its line
    static const char *const input[] = {
        "PyFunc",   "map/Mul",         "map/while/Sub",         "batch/Concat",
        "map/Late", "IteratorGetNext", "map/FunctionOfIterator"};
    for (size_t i = 0; i < sizeof input / sizeof *input; i++)
        if (has_op(r.s, input[i])) CHECK_STR(xpl_str_from(input[i]), "no op of the device");
    CHECK_EQ(r.s->run_environment.device_core_count, 2);
    xpl_arena_fini(&r.arena);
    // XProf's view.
    r = convert(space, false);
    CHECK_EQ(time_of(r.s, WAIT), 600);
    CHECK_EQ(time_of(r.s, COMPUTE), 0);
    CHECK_EQ(r.s->device_op_metrics_db.metrics_db.n, 0);
    xpl_arena_fini(&r.arena);
}

// Whether what runs the event is among the contexts.
static bool runs_for(const struct xpl_input_work *w, const struct xpl_event *ev) {
    struct xpl_stat type, id;
    return xpl_stats_get(ev->stats, XPL_STAT_CONSUMER_TYPE, &type) &&
           xpl_stats_get(ev->stats, XPL_STAT_CONSUMER_ID, &id) &&
           xpl_map_get(&w->contexts, xpl_stat_int_or_uint(&type), xpl_stat_int_or_uint(&id));
}

// Grouping shows the same as a separate pass.
static void check_watch(const struct xpl_buf *space) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 24);
    struct xpl_xspace *xs = NULL;
    struct xpl_input_search *search = NULL;
    struct xpl_groups *groups = NULL;
    struct xpl_input_work alone = {0}, shown = {0};
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, &arena, &exec, &xs, &err), &err);
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    CHECK_OK(xpl_input_work_find(p, &exec, &arena, &alone, &err), &err);
    CHECK_OK(xpl_input_search_new(p, &arena, &search, &err), &err);
    const struct xpl_group_options opt = {.watch = xpl_input_search_watch(search)};
    CHECK_OK(xpl_groups_build_with(xs, &opt, &arena, &exec, &groups, &err), &err);
    CHECK_OK(xpl_input_search_end(search, &exec, &shown, &err), &err);
    CHECK(alone.contexts.n > 0);
    CHECK_EQ(shown.contexts.n, alone.contexts.n);
    for (uint32_t i = 0; i < p->n_event_md; i++)
        CHECK_EQ(shown.consumes[i], alone.consumes[i]);
    for (uint32_t i = 0; i < p->n_lines; i++) { // what runs for them
        struct xpl_event_cursor c = xpl_events_of(&p->lines[i]);
        struct xpl_event ev;
        while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD)
            CHECK_EQ(runs_for(&shown, &ev), runs_for(&alone, &ev));
    }
    xpl_input_search_free(search);
}

// An iterator is an event of input only where it encloses.
static void check_stack(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 16);
    struct xpl_input_stack s = {0};
    bool in;
    static const struct {
        uint64_t begin, ps;
        bool is_input, expected;
    } v[] = {{0, 10, false, false}, {10, 100, true, true}, {20, 10, false, true},
             {30, 20, true, true},  {60, 5, false, true},  {100, 11, false, false},
             {105, 1, false, false}};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        const struct xpl_timespan span = {v[i].begin, v[i].ps};
        CHECK(xpl_input_stack_next(&s, span, v[i].is_input, &arena, &in));
        CHECK_EQ(in, v[i].expected);
    }
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_input_profile(3);
    check_step(&space);
    check_watch(&space);
    check_stack();
    return 0;
}
