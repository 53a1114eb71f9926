// SPDX-License-Identifier: Apache-2.0
// The mask of an event's statistics: one walk agrees with the full one, on the events of real
// profiles and on such events with some bytes changed.
#include "analysis/grouping/plan/event_stats.h"

#include <string.h>

#include "base/arena.h"
#include "tests/check.h"
#include "tests/data_file.h"

static uint32_t state = 5;
static uint32_t roll(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 4) * n >> 28);
}

struct counts {
    uint64_t events, quick, any;
};

static void check_event(const struct plan *plan, const struct xpl_raw_event *raw,
                        struct counts *n) {
    struct scan_stats st;
    uint32_t quick = 0, full = 0;
    const bool is_quick = xpl_grp_quick_mask(plan, raw, &quick);
    const bool valid = xpl_grp_stats_mask(plan, raw, &full);
    CHECK_EQ(xpl_grp_read_stats(plan, raw, &st), valid);
    n->events++;
    n->quick += is_quick;
    if (is_quick) {
        CHECK(valid);
        CHECK_EQ(quick, full);
    }
    if (!valid) return;
    n->any += full != 0;
    CHECK_EQ(st.mask & ~full, 0); // a value that cannot be read is left out
}

// The same statistics with some bytes changed, at the end of a block and of their input.
static void check_changed(const struct plan *plan, const struct xpl_raw_event *raw,
                          struct counts *n) {
    const size_t len = (size_t)(raw->end - raw->stats), size = roll(6) ? len : roll((uint32_t)len);
    uint8_t *const block = malloc(size ? size : 1);
    CHECK(block);
    if (size) memcpy(block, raw->stats, size);
    for (uint32_t i = 1 + roll(3); i > 0 && size > 0; i--)
        block[roll((uint32_t)size)] = (uint8_t)roll(256);
    struct xpl_xspace space = *plan->plane->space;
    struct xpl_plane plane = *plan->plane;
    struct plan changed = *plan;
    space.bytes = (xpl_bytes_t){block, size};
    plane.space = &space;
    changed.plane = &plane;
    check_event(&changed, &(struct xpl_raw_event){.stats = block, .end = block + size}, n);
    free(block);
}

static void check_plane(const struct xpl_plane *plane, struct xpl_arena *arena, struct counts *real,
                        struct counts *changed) {
    struct plan plan;
    CHECK(xpl_grp_plan_init(&plan, plane, false, arena));
    for (uint32_t i = 0; i < plane->n_lines; i++) {
        struct xpl_event_cursor c = xpl_events_of(&plane->lines[i]);
        struct xpl_event ev;
        while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
            const struct xpl_raw_event raw = {.stats = ev.stats.p, .end = ev.stats.end};
            if (raw.stats == raw.end) continue;
            check_event(&plan, &raw, real);
            check_changed(&plan, &raw, changed);
        }
    }
}

static void check_profile(const char *name, struct counts *changed) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = read_data_file(name);
    struct counts real = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    struct xpl_xspace *xs;
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){b.p, b.n}, &arena, NULL, &xs, NULL), NULL);
    for (uint32_t i = 0; i < xs->n_planes; i++)
        check_plane(&xs->planes[i], &arena, &real, changed);
    CHECK(real.any > 0);
    CHECK(real.quick > real.events / 20); // few have ids of just one byte
}

int main(void) {
    struct counts changed = {0};
    check_profile("logdir/accel/plugins/profile/gpu_multi_worker/gpu_multi_worker.xplane.pb",
                  &changed);
    check_profile("logdir/cpu/plugins/profile/tf_keras_tensorboard/vm.xplane.pb", &changed);
    CHECK(changed.quick > changed.events / 10 && changed.quick < changed.events);
    return 0;
}
