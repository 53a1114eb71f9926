// SPDX-License-Identifier: Apache-2.0
// Words in the arguments of a trace's events beside a scan of these arguments: the profile's events
// walked line by line, and the same words looked for in the texts and numbers of each, with texts
// that statistics refer to looked at once.  Usage: bench_args [EVENTS]; without it, two million
// with four arguments each on 20 rows.  Prints the ratio of the best of five.
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/trace/answer/arg_search.h"
#include "analysis/trace/sums.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/exec.h"
#include "tests/check.h"
#include "tests/xspace_maker.h"

enum { EVENTS = 2000000, LINES = 20, NAMES = 200, ROUNDS = 5 };
#define LIMIT ((size_t)8 << 30)

static xpl_bytes_t profile;
static struct xpl_exec serial;
static struct xpl_trace_host host;
static const struct xpl_xspace *space;
static uint64_t found, scanned;
static const char *words; // the text to search for

static xpl_bytes_t make(uint32_t events) {
    struct xpl_buf space_bytes = xpl_buf_of((size_t)4 << 30);
    struct mk_plane p = mk_plane(0, "/host:CPU");
    static char names[NAMES][64], layers[NAMES][64];
    p.body.max = (size_t)4 << 30;
    for (uint32_t i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "loop_multiply_fusion.%u", i);
        (void)snprintf(layers[i], sizeof layers[i], "jit(step)/layer_%u/dot_general", i);
    }
    for (int k = 0; k < LINES; k++) {
        struct xpl_buf line = mk_line(k, "thread");
        line.max = (size_t)2 << 30;
        for (uint32_t i = 0; i < events / LINES; i++) {
            const uint32_t name = (i * 2654435761u >> 8) % NAMES;
            char text[64];
            struct xpl_buf ev = mk_event(&p, names[name], (int64_t)i * 1000000 + k, 500000);
            (void)snprintf(text, sizeof text, "bf16[%u,1024]{1,0} buffer_%u", i % 4096, i);
            mk_stat_ref(&p, &ev, "tf_op", layers[name]);
            mk_stat_str(&p, &ev, "shape", text);
            mk_stat_int(&p, &ev, "correlation_id", i);
            mk_stat_int(&p, &ev, "bytes", (int64_t)name * 4096);
            mk_event_end(&line, &ev);
        }
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space_bytes);
    CHECK(!space_bytes.failed);
    return (xpl_bytes_t){space_bytes.p, space_bytes.n};
}

static void search(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_trace_sums s;
    const struct xpl_trace_sums_options o = {.arguments = xpl_str_from(words), .most = 1000};
    CHECK_OK(xpl_trace_sum_up(&host, 1, &o, &serial, &arena, &s, &err), &err);
    found = s.count;
}

static uint32_t in_stat(const struct trc_words *w, const struct xpl_stat *s, const uint32_t *refs,
                        const struct xpl_plane *plane) {
    char digits[24];
    switch ((int)s->kind) {
        case XPL_VALUE_STR: return trc_words_in(w, s->str);
        case XPL_VALUE_REF: return refs[xpl_plane_stat_md(plane, s->u)];
        case XPL_VALUE_INT:
            if (!w->numerals) return 0;
            (void)snprintf(digits, sizeof digits, "%" PRId64, s->i);
            return trc_words_in(w, xpl_str_from(digits)) & w->numerals;
        default: return 0;
    }
}

static void scan_line(const struct trc_words *w, const struct xpl_line *line,
                      const uint32_t *refs) {
    struct xpl_event_cursor c = xpl_events_of(line);
    struct xpl_event ev;
    struct xpl_stat s;
    while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
        uint32_t mask = 0;
        struct xpl_stats stats = ev.stats;
        while (mask != w->all && xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
            mask |= in_stat(w, &s, refs, line->plane);
        scanned += mask == w->all;
    }
}

static void scan(void) {
    struct trc_words w;
    struct xpl_error err = {0};
    CHECK_OK(trc_words_read(xpl_str_from(words), &w, &err), &err);
    scanned = 0;
    for (uint32_t p = 0; p < space->n_planes; p++) {
        const struct xpl_plane *const plane = &space->planes[p];
        uint32_t *const refs = calloc(plane->n_stat_md + (size_t)1, sizeof *refs);
        CHECK(refs);
        for (uint32_t i = 0; i < plane->n_stat_md; i++)
            refs[i] = trc_words_in(&w, plane->stat_md[i].name);
        for (uint32_t i = 0; i < plane->n_lines; i++)
            scan_line(&w, &plane->lines[i], refs);
        free(refs);
    }
}

static double seconds_of(void (*work)(void)) {
    const uint64_t begin = xpl_clock_ns();
    work();
    return (double)xpl_clock_between(begin, xpl_clock_ns()) / 1e9;
}

int main(int argc, char **argv) {
    static const char *const cases[] = {"buffer_123456", "layer_17 1023", "102", "no such text"};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_trace_memory memory;
    struct xpl_error err = {0};
    struct xpl_xspace *opened;
    serial = xpl_exec_serial();
    profile = make(argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : EVENTS);
    CHECK_OK(xpl_trace_memory_init(&memory, profile, NULL, &serial, LIMIT, &arena, &err), &err);
    CHECK_OK(xpl_xspace_open(profile, &arena, &serial, &opened, &err), &err);
    space = opened;
    host = (struct xpl_trace_host){XPL_STR("h"), memory.trace, profile};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double ours = 1e9, bare = 1e9;
        words = cases[i];
        for (int k = 0; k < ROUNDS; k++) {
            const double a = seconds_of(scan), b = seconds_of(search);
            if (a < bare) bare = a;
            if (b < ours) ours = b;
        }
        CHECK_EQ(found, scanned);
        printf("%-14s %8" PRIu64 " events: %.3f s, scan %.3f s, %.2f times\n", words, found, ours,
               bare, ours / bare);
    }
    xpl_trace_memory_fini(&memory);
    return 0;
}
