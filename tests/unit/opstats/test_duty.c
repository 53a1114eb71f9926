// SPDX-License-Identifier: Apache-2.0
// Duty cycle: unions of intervals, and how much of a line of ops is work of the ops themselves.
#include "analysis/opstats/device/duty.h"

#include "base/arena.h"
#include "tests/check.h"

static uint64_t length(struct xpl_arena *a, const struct xpl_duty_interval *v, size_t n) {
    struct xpl_duty_set s = {.arena = a};
    for (size_t i = 0; i < n; i++)
        CHECK(xpl_duty_set_add(&s, v[i].begin_ps, v[i].end_ps));
    return xpl_duty_set_length(&s);
}

static void unions(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    CHECK_EQ(length(&a, NULL, 0), 0);
    const struct xpl_duty_interval ordered[] = {{1, 5}, {3, 4}, {5, 7}, {9, 9}, {10, 12}};
    CHECK_EQ(length(&a, ordered, 5), 8);
    CHECK_EQ(length(NULL, ordered, 5), 8); // a sum is enough
    const struct xpl_duty_interval mixed[] = {{10, 12}, {1, 5}, {11, 20}, {0, 2}, {4, 4}};
    CHECK_EQ(length(&a, mixed, 5), 15);
    const struct xpl_duty_interval wide[] = {{0, UINT64_MAX}, {5, 6}};
    CHECK_EQ(length(&a, wide, 2), UINT64_MAX);
    struct xpl_duty_set s = {0};
    CHECK(xpl_duty_set_add(&s, 10, 12) && xpl_duty_set_add(&s, 1, 2));
    CHECK(s.disordered);
}

struct line {
    struct xpl_arena arena;
    struct xpl_duty_plane plane;
    struct xpl_duty_line line;
};
static void begin(struct line *l) {
    *l = (struct line){0};
    xpl_arena_init(&l->arena, 1 << 20);
    l->plane.busy.arena = l->plane.confident.arena = &l->arena;
    xpl_duty_line_begin(&l->line, &l->plane, &l->arena);
}
static void add(struct line *l, uint64_t begin_ps, uint64_t end_ps, bool active, bool confident,
                bool container) {
    const struct xpl_duty_op op = {begin_ps, end_ps - begin_ps, active, confident, container};
    CHECK(xpl_duty_line_add(&l->line, &op));
}
static void expect(struct line *l, uint64_t busy, uint64_t confident) {
    CHECK(xpl_duty_line_end(&l->line));
    CHECK_EQ(xpl_duty_set_length(&l->plane.busy), busy);
    CHECK_EQ(xpl_duty_set_length(&l->plane.confident), confident);
    xpl_arena_fini(&l->arena);
}

// An active op around waiting ones counts without them; a waiting op around active ones not at all.
static void own_time(void) {
    struct line l;
    begin(&l);
    add(&l, 0, 100, true, true, false);
    add(&l, 10, 30, false, false, false); // waits
    add(&l, 15, 20, true, true, false);   // works inside
    add(&l, 40, 50, true, false, false);
    add(&l, 200, 300, false, false, false);
    expect(&l, 100 - 20 + 5, 100 - 20 + 5 - 10);
    begin(&l);
    add(&l, 0, 10, true, true, false);
    add(&l, 5, 20, true, true, false); // overlaps without being inside
    expect(&l, 20, 20);
}

static void containers(void) {
    struct line l;
    begin(&l);
    add(&l, 0, 100, true, true, true); // nothing active inside: its own time counts
    add(&l, 10, 30, false, false, false);
    add(&l, 200, 300, true, true, true); // something active inside: only that
    add(&l, 210, 220, false, false, false);
    add(&l, 230, 240, true, true, false);
    expect(&l, 80 + 10, 90);
}

static void spans(void) {
    struct xpl_duty_plane p = {0};
    xpl_duty_extend(&p, 0, 0);
    CHECK(!p.has_span);
    xpl_duty_extend(&p, 50, 0);
    xpl_duty_extend(&p, 20, 10);
    CHECK(p.has_span);
    CHECK_EQ(p.begin_ps, 20);
    CHECK_EQ(p.end_ps, 50);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_duty_plane chip = {.busy.arena = &a, .confident.arena = &a};
    CHECK(xpl_duty_set_add(&p.busy, 20, 30));
    CHECK(xpl_duty_plane_join(&chip, &p));
    CHECK(chip.has_span);
    CHECK_EQ(chip.end_ps, 50);
    CHECK_EQ(xpl_duty_set_length(&chip.busy), 10);
}

// A million ops inside each other, and times that wrap.
static void odd_lines(void) {
    struct line l;
    begin(&l);
    xpl_arena_fini(&l.arena);
    xpl_arena_init(&l.arena, 1 << 28);
    const uint64_t n = 100000;
    for (uint64_t i = 0; i < n; i++)
        add(&l, i, 3 * n - i, true, true, i % 2);
    // Every second one is a container of something active: the others' two ends, and the innermost.
    expect(&l, n + n + 2, n + n + 2);
    begin(&l);
    add(&l, UINT64_MAX - 5, 10, true, true, false);
    add(&l, 3, 4, true, true, false);
    expect(&l, 1, 1);
    begin(&l);
    xpl_arena_fini(&l.arena);
    xpl_arena_init(&l.arena, 0);
    const struct xpl_duty_op op = {.begin_ps = 1, .duration_ps = 2, .active = true};
    CHECK(!xpl_duty_line_add(&l.line, &op));
    xpl_arena_fini(&l.arena);
}

static void names_and_categories(void) {
    CHECK(xpl_tpu_op_waits(XPL_STR("x.async-done.3")) && xpl_tpu_op_waits(XPL_STR("SFence")));
    CHECK(xpl_tpu_op_waits(XPL_STR("Sync Wait: 4")) && xpl_tpu_op_waits(XPL_STR("a call-done b")));
    CHECK(!xpl_tpu_op_waits(XPL_STR("SFence.1")) && !xpl_tpu_op_waits(XPL_STR("a Sync Wait: 4")));
    CHECK(!xpl_tpu_op_waits(XPL_STR("fusion.1")) && !xpl_tpu_op_waits(XPL_STR("")));
    CHECK(xpl_tpu_category_is_off_duty(XPL_STR("infeed")));
    CHECK(!xpl_tpu_category_is_off_duty(XPL_STR("loop fusion")));
}

int main(void) {
    unions();
    own_time();
    containers();
    spans();
    odd_lines();
    names_and_categories();
    return 0;
}
