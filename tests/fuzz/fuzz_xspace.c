// SPDX-License-Identifier: Apache-2.0
// Opens any bytes as an XSpace, groups it and reads everything back. Invariants: offsets of errors
// lie in the input, two passes agree, cursors that start at a chunk agree with one that does not,
// and the number of threads changes nothing.
#include <string.h>

#include "analysis/grouping/groups.h"
#include "analysis/xplane/captured.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct pass {
    uint64_t events, stats, digest;
};

static void read_event(const struct xpl_line *l, struct xpl_event *ev, struct pass *p) {
    struct xpl_stat s;
    struct xpl_stats left = ev->stats;
    CHECK(ev->md < l->plane->n_event_md && ev->at < l->message.len);
    while (xpl_stats_next(&left, &s) == XPL_WIRE_FIELD) {
        CHECK(s.md);
        p->stats++;
        p->digest = p->digest * 31 + s.u + s.str.len + (uint64_t)s.kind;
    }
    CHECK(left.p == left.end);
    p->events++;
    p->digest = p->digest * 31 + ev->md + (uint64_t)ev->offset_ps + (uint64_t)ev->duration_ps;
}

static void read_line(const struct xpl_groups *g, const struct xpl_line *l, struct pass *p,
                      bool by_chunks) {
    struct xpl_error err = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 26);
    by_chunks &= xpl_groups_can_start_at_chunk(g, l);
    const uint32_t n = by_chunks && l->n_chunks ? l->n_chunks : 1;
    bool malformed = false;
    for (uint32_t i = 0; i < n && !malformed; i++) {
        struct xpl_event_cursor c;
        struct xpl_group_cursor *gc;
        struct xpl_event ev;
        enum xpl_wire_result r;
        if (xpl_group_cursor_new_at(g, l, i, &a, &gc, &err) != XPL_OK) break;
        if (by_chunks)
            xpl_events_begin_chunk(&c, l, i);
        else
            xpl_events_begin(&c, l);
        while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
            struct xpl_event_group eg;
            read_event(l, &ev, p);
            xpl_group_cursor_next(gc, &ev, &eg);
            p->digest = p->digest * 31 + (uint64_t)eg.group_id + (uint64_t)eg.has_group * 3 +
                        (uint64_t)eg.is_eager * 5 + eg.step_name.len;
        }
        malformed = r == XPL_WIRE_MALFORMED;
        if (malformed) {
            CHECK_EQ(xpl_events_error(&c, &err), XPL_DATA_LOSS);
            CHECK(err.offset < l->plane->space->bytes.len);
        }
    }
    CHECK(malformed || p->events <= l->plane->space->bytes.len);
}

static struct pass read_all(const struct xpl_xspace *xs, const struct xpl_groups *g,
                            bool by_chunks) {
    struct pass p = {0};
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        size_t n;
        const struct xpl_step_event *const s = xpl_groups_steps(g, &xs->planes[i], &n);
        for (size_t k = 0; k < n; k++)
            p.digest = p.digest * 31 + (uint64_t)s[k].begin_ps + (uint64_t)s[k].duration_ps +
                       (uint64_t)s[k].group_id + s[k].name.len + s[k].step_name.len;
        for (uint32_t k = 0; k < xs->planes[i].n_lines; k++)
            read_line(g, &xs->planes[i].lines[k], &p, by_chunks);
    }
    return p;
}

static bool run(const uint8_t *data, size_t size, struct xpl_exec *exec, struct pass ret[2]) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 26);
    struct xpl_error err = {0};
    struct xpl_xspace *xs;
    struct xpl_groups *g;
    xpl_status_t st = xpl_xspace_open((xpl_bytes_t){data, size}, &a, exec, &xs, &err);
    if (st == XPL_DATA_LOSS) CHECK(err.offset <= size);
    if (st == XPL_OK) st = xpl_groups_build(xs, &a, exec, &g, &err);
    CHECK(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED);
    if (st == XPL_OK) {
        ret[0] = read_all(xs, g, false);
        ret[1] = read_all(xs, g, true);
    }
    return st == XPL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    CHECK(xpl_xspace_captured_ns((xpl_bytes_t){data, size}) >= 0);
    static struct xpl_exec_pool *pool;
    if (!pool) pool = xpl_exec_pool_new(2);
    CHECK(pool);
    struct xpl_exec serial = xpl_exec_serial();
    struct pass one[2], two[2];
    const bool ok = run(data, size, &serial, one);
    CHECK(run(data, size, xpl_exec_pool_get(pool), two) == ok);
    if (ok) {
        CHECK(memcmp(one, two, sizeof one) == 0);
        CHECK(one[0].events == one[1].events && one[0].digest == one[1].digest);
    }
    return 0;
}
