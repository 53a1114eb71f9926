// SPDX-License-Identifier: Apache-2.0
// How fast the view of a profile is, beside tests/bench/walk_floor.c: the index, a pass of cursors
// without and with statistics, grouping, and a pass of group cursors.
//
//   bench_walk FILE [WIDTH] [RUNS]
//
// Prints one line of JSON with the best time of each in milliseconds; passes over events run on one
// thread, index and grouping on WIDTH.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/grouping/groups.h"
#include "base/arena.h"
#include "base/exec.h"

enum { INDEX, EVENTS, STATS, GROUPS, CURSORS, N_TIMES };

struct bench {
    xpl_bytes_t bytes;
    struct xpl_exec *exec;
    double best[N_TIMES];
    uint64_t events, stats, grouped, sum;
    size_t index_bytes, group_bytes;
};

static double now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void note(struct bench *b, int what, double begin) {
    const double took = now_ms() - begin;
    if (took < b->best[what]) b->best[what] = took;
}

static bool pass(struct bench *b, const struct xpl_xspace *xs, const struct xpl_groups *g,
                 bool stats) {
    b->events = b->stats = b->grouped = 0;
    for (uint32_t i = 0; i < xs->n_planes; i++)
        for (uint32_t k = 0; k < xs->planes[i].n_lines; k++) {
            const struct xpl_line *const l = &xs->planes[i].lines[k];
            struct xpl_group_cursor *gc = NULL;
            struct xpl_event_cursor c;
            struct xpl_event_group eg;
            struct xpl_event ev;
            struct xpl_stat s;
            struct xpl_arena a = xpl_arena_of((size_t)1 << 30);
            enum xpl_wire_result r;
            if (g && xpl_group_cursor_new(g, l, &a, &gc, NULL) != XPL_OK) return false;
            xpl_events_begin(&c, l);
            while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
                b->events++;
                b->sum += (uint64_t)ev.duration_ps + ev.md;
                if (gc) {
                    xpl_group_cursor_next(gc, &ev, &eg);
                    b->grouped += eg.has_group;
                }
                while (stats && xpl_stats_next(&ev.stats, &s) == XPL_WIRE_FIELD) {
                    b->stats++;
                    b->sum += s.u + (uint64_t)s.md->type;
                }
            }
            xpl_arena_fini(&a);
            if (r == XPL_WIRE_MALFORMED) return false;
        }
    return true;
}

static bool run(struct bench *b) {
    struct xpl_arena a = xpl_arena_of((size_t)1 << 32);
    struct xpl_xspace *xs;
    struct xpl_groups *g;
    struct xpl_error err = {0};
    double t = now_ms();
    bool ok = xpl_xspace_open(b->bytes, &a, b->exec, &xs, &err) == XPL_OK;
    note(b, INDEX, t);
    b->index_bytes = a.reserved;
    t = now_ms();
    ok = ok && pass(b, xs, NULL, false);
    note(b, EVENTS, t);
    t = now_ms();
    ok = ok && pass(b, xs, NULL, true);
    note(b, STATS, t);
    const uint64_t stats = b->stats;
    t = now_ms();
    ok = ok && xpl_groups_build(xs, &a, b->exec, &g, &err) == XPL_OK;
    note(b, GROUPS, t);
    b->group_bytes = a.reserved - b->index_bytes;
    t = now_ms();
    ok = ok && pass(b, xs, g, false);
    note(b, CURSORS, t);
    b->stats = stats;
    xpl_arena_fini(&a);
    if (!ok) (void)fprintf(stderr, "bench_walk: %s\n", err.msg[0] ? err.msg : "broken profile");
    return ok;
}

int main(int argc, char **argv) {
    struct bench b = {.best = {1e30, 1e30, 1e30, 1e30, 1e30}};
    struct stat st;
    const int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        (void)fprintf(stderr, "usage: bench_walk FILE [WIDTH] [RUNS]\n");
        return 2;
    }
    void *const p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED) return 1;
    const unsigned width = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    const int runs = argc > 3 ? atoi(argv[3]) : 7;
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(width);
    if (!pool) return 1;
    b.bytes = (xpl_bytes_t){p, (size_t)st.st_size};
    b.exec = xpl_exec_pool_get(pool);
    for (int i = 0; i < runs; i++)
        if (!run(&b)) return 1;
    (void)printf("{\"bytes\":%zu,\"width\":%u,\"index_ms\":%.3f,\"events_ms\":%.3f,"
                 "\"stats_ms\":%.3f,\"groups_ms\":%.3f,\"group_cursors_ms\":%.3f,"
                 "\"events\":%" PRIu64 ",\"stats\":%" PRIu64 ",\"grouped\":%" PRIu64
                 ",\"index_bytes\":%zu,\"group_bytes\":%zu,\"sum\":%" PRIu64 "}\n",
                 b.bytes.len, b.exec->width, b.best[INDEX], b.best[EVENTS], b.best[STATS],
                 b.best[GROUPS], b.best[CURSORS], b.events, b.stats, b.grouped, b.index_bytes,
                 b.group_bytes, b.sum);
    xpl_exec_pool_free(pool);
    (void)munmap(p, (size_t)st.st_size);
    (void)close(fd);
    return 0;
}
