// SPDX-License-Identifier: Apache-2.0
// Opening a profile, grouping it and reading it back with every allocation failing once: a clean
// error, nothing leaked, and with memory back the same answer as before.

#include "analysis/grouping/groups.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/fault/answers/each.h"
#include "tests/xspace_maker.h"

enum { US = 1000000 };

struct timed {
    const char *name;
    int64_t at, length;   // microseconds
    const char *stats[2]; // names of its statistics; NULL: none
    int64_t values[2];
};

static void event(struct mk_plane *p, struct xpl_buf *line, struct timed e) {
    struct xpl_buf ev = mk_event(p, e.name, e.at * US, e.length * US);
    for (int i = 0; i < 2; i++)
        if (e.stats[i]) mk_stat_int(p, &ev, e.stats[i], e.values[i]);
    mk_event_end(line, &ev);
}

static void host_plane(struct xpl_buf *space) {
    struct mk_plane p = mk_plane(1, "/host:CPU");
    for (int l = 0; l < 3; l++) {
        struct xpl_buf line = mk_line(l, "main");
        for (int64_t i = 0; i < 40; i++) {
            event(&p, &line, (struct timed){"train", i * 100, 90, {"_r", "step_num"}, {1, i}});
            event(&p, &line, (struct timed){"p", i * 100 + 1, 1, {"_pt", "_p"}, {2, i}});
            event(&p, &line, (struct timed){"c", i * 100 + 5, 50, {"_ct", "_c"}, {2, i + 1}});
            event(&p, &line,
                  (struct timed){
                      "ExecutorState::Process", i * 100 + 6, 9, {"id", "iter_num"}, {i, l}});
            event(&p, &line, (struct timed){"EagerExecute", i * 100 + 17, 1, {"is_func"}, {0}});
            event(&p, &line,
                  (struct timed){"launch", i * 100 + 20, 1, {"correlation_id"}, {l * 100 + i}});
            event(&p, &line,
                  (struct timed){
                      "IteratorGetNextOp::DoCompute", i * 100 + 30, 1, {"id", "iter_num"}, {i, l}});
            if (l == 2) { // out of order, with regions
                event(&p, &line,
                      (struct timed){"ThreadpoolListener::StartRegion",
                                     i * 100 + 45,
                                     0,
                                     {"_ct", "_c"},
                                     {15, i}});
                event(
                    &p, &line,
                    (struct timed){"ThreadpoolListener::StopRegion", i * 100 + 49, 0, {NULL}, {0}});
                event(&p, &line, (struct timed){"x", i * 100 + 40, 2, {NULL}, {0}});
            }
        }
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, space);
}

static void gpu_plane(struct xpl_buf *space) {
    struct mk_plane p = mk_plane(2, "/device:GPU:0");
    for (int l = 0; l < 2; l++) {
        struct xpl_buf line = mk_line(l, "stream");
        for (int64_t i = 0; i < 20; i++)
            event(&p, &line,
                  (struct timed){
                      "k", (l ? 20 - i : i) * 100 + 5, 10, {"correlation_id"}, {l * 100 + i}});
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, space);
}

// A line that several threads read in pieces.
static void long_line(struct xpl_buf *space) {
    struct mk_plane p = mk_plane(4, "/host:other");
    struct xpl_buf line = mk_line(1, "python");
    for (int64_t i = 0; i < 9000; i++) {
        event(&p, &line, (struct timed){"x", i * 10, i % 7 ? 5 : 60, {NULL}, {0}});
        if (i % 300 == 0)
            event(&p, &line, (struct timed){"train", i * 10, 2000, {"_r", "step_num"}, {1, i}});
        if (i % 50 == 0)
            event(&p, &line, (struct timed){"p", i * 10 + 1, 1, {"_pt", "_p"}, {2, i}});
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, space);
}

static void tpu_plane(struct xpl_buf *space) {
    struct mk_plane p = mk_plane(3, "/device:TPU:0");
    static const char *const names[] = {"Steps", "XLA Modules", "XLA Ops"};
    for (int l = 0; l < 3; l++) {
        struct xpl_buf line = mk_line(l, names[l]);
        for (int64_t i = 0; i < 20; i++)
            event(&p, &line, (struct timed){"e", i * 100, 60, {"_ct", "_c"}, {2, i / 2}});
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, space);
}

static xpl_status_t out_of_memory(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "groups");
}

// A number made of every answer.
static xpl_status_t digest(const struct xpl_xspace *xs, const struct xpl_groups *g,
                           struct xpl_error *err, uint64_t *ret) {
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        size_t n_steps;
        const struct xpl_step_event *const steps = xpl_groups_steps(g, &xs->planes[i], &n_steps);
        for (size_t k = 0; k < n_steps; k++)
            *ret = *ret * 31 + (uint64_t)steps[k].begin_ps + (uint64_t)steps[k].group_id;
        for (uint32_t k = 0; k < xs->planes[i].n_lines; k++) {
            struct xpl_arena a = xpl_arena_of(1 << 20);
            struct xpl_group_cursor *c;
            struct xpl_event_cursor events;
            struct xpl_event ev;
            xpl_status_t st = xpl_group_cursor_new(g, &xs->planes[i].lines[k], &a, &c, err);
            xpl_events_begin(&events, &xs->planes[i].lines[k]);
            while (st == XPL_OK && xpl_events_next(&events, &ev) == XPL_WIRE_FIELD) {
                struct xpl_event_group eg;
                xpl_group_cursor_next(c, &ev, &eg);
                *ret = *ret * 31 + (uint64_t)eg.has_group + (uint64_t)eg.group_id;
            }
            if (st == XPL_OK && !xpl_group_cursor_ok(c)) st = out_of_memory(err);
            uint64_t *ranks;
            if (st == XPL_OK && xpl_groups_sorts_line(g, &xs->planes[i].lines[k])) {
                st = xpl_groups_sorted_ranks(g, &xs->planes[i].lines[k], &a, &ranks, err);
                if (st == XPL_OK) *ret = *ret * 31 + ranks[0];
            }
            xpl_arena_fini(&a);
            if (st != XPL_OK) return st;
        }
    }
    return XPL_OK;
}

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct xpl_buf *const bytes = input;
    struct xpl_exec exec = xpl_exec_serial();
    exec.width = 3; // work is cut up as for so many threads
    struct xpl_xspace *xs = NULL;
    struct xpl_groups *g = NULL;
    uint64_t sum = 0;
    xpl_status_t st = xpl_xspace_open((xpl_bytes_t){bytes->p, bytes->n}, arena, &exec, &xs, err);
    CHECK_EQ(st == XPL_OK, xs != NULL);
    if (st == XPL_OK) st = xpl_groups_build(xs, arena, &exec, &g, err);
    CHECK_EQ(st == XPL_OK, g != NULL);
    if (st == XPL_OK) st = digest(xs, g, err, &sum);
    xpl_buf_put(out, &sum, sizeof sum);
    return st == XPL_OK && out->failed ? out_of_memory(err) : st;
}

static void fail_each(void (*device)(struct xpl_buf *)) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    host_plane(&space);
    device(&space);
    fault_each(&(struct fault_scenario){run, &space, .least = 10});
}

int main(void) {
    fail_each(gpu_plane);
    fail_each(tpu_plane);
    fail_each(long_line);
    return 0;
}
