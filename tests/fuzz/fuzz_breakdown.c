// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a profile, whose time breakdown adds up and survives its encoding; and as such
// an encoding, for the tools that show it.  Also its launches, whose queues fill the window.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/breakdown/breakdown.h"
#include "analysis/opstats/convert.h"
#include "analysis/products/values.h"
#include "analysis/tools/launches/launches.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT ((size_t)64 << 20)

static void require(bool ok) {
    if (!ok) abort();
}

static struct xpl_buf encode(const struct xpl_time_breakdown *b) {
    struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    require(xpl_time_breakdown_encode(b, &out, &err) == XPL_OK);
    return out;
}

static void check_encoding(const struct xpl_time_breakdown *b) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_time_breakdown *again = NULL;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf once = encode(b);
    require(xpl_time_breakdown_decode((xpl_bytes_t){once.p, once.n}, &arena, &again, &err) ==
            XPL_OK);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf twice = encode(again);
    require(once.n == twice.n && memcmp(once.p, twice.p, once.n) == 0);
}

static void check_sums(const struct xpl_time_breakdown *b) {
    uint64_t wall = 0;
    for (size_t i = 0; i < b->rows.n; i++) {
        const struct xpl_time_row *const r = &b->rows.v[i];
        uint64_t sum = 0;
        for (size_t c = 0; c < XPL_TIME_CAUSES; c++)
            sum += r->ps[c];
        require(sum == r->wall_ps && r->device < b->devices.n);
        require(r->step == XPL_BETWEEN_STEPS || r->step < b->steps.n);
        if (r->device == 0) wall += r->wall_ps;
    }
    require(!b->rows.n || wall == b->end_ps - b->begin_ps);
}

// The tools that show it: their output ends as JSON does.
static void check_tool(const char *name, const char *view, struct xpl_time_breakdown *b) {
    const struct xpl_tool *const tool = xpl_tool_find(xpl_str_from(name));
    const struct xpl_option option = {XPL_STR("view"), xpl_str_from(view ? view : "")};
    struct xpl_opstats stats = {0};
    const struct xpl_time_breakdown_value breakdown = {.breakdown = b};
    const struct xpl_op_stats_value ops = {.stats = &stats};
    const void *const products[] = {&breakdown, &ops};
    const struct xpl_tool_host hosts[] = {{.name = XPL_STR("a"), .products = products},
                                          {.name = XPL_STR("b"), .products = products}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    struct xpl_error err = {0};
    void *options;
    require(xpl_tool_options_parse(tool, &option, view != NULL, true, &arena, &options, &err) ==
            XPL_OK);
    const struct xpl_tool_input in = {
        .hosts = hosts, .n_hosts = 2, .options = options, .limit = LIMIT};
    require(tool->render(&in, &out, &err) == XPL_OK);
    require(out.n > 2 && out.p[0] == '{' && out.p[out.n - 1] == '}');
}

static void check_tools(struct xpl_time_breakdown *b) {
    check_tool("findings", NULL, b);
    check_tool("time_breakdown", NULL, b);
    check_tool("time_breakdown", "steps", b);
}

// With the steps of a conversion of everything, where there is one, the breakdown is the same.
static void check_known(const struct xpl_xspace *xs, bool cpu_as_device,
                        const struct xpl_time_breakdown *b) {
    const struct xpl_convert_options o = {.cpu_as_device = cpu_as_device};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_time_breakdown *same;
    struct xpl_opstats *stats;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    if (xpl_opstats_convert(xs, &o, &exec, &arena, LIMIT, &stats, &err) == XPL_OK) {
        require(xpl_time_breakdown_make(
                    xs, &(struct xpl_time_breakdown_options){cpu_as_device, &stats->step_db}, &exec,
                    &arena, LIMIT, &same, &err) == XPL_OK);
        struct xpl_buf x = encode(b), y = encode(same);
        require(x.n == y.n && memcmp(x.p, y.p, x.n) == 0);
        xpl_buf_fini(&x);
        xpl_buf_fini(&y);
    }
}

static void try_profile(xpl_bytes_t bytes, bool cpu_as_device) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_xspace *xs;
    struct xpl_time_breakdown *b;
    if (xpl_xspace_open(bytes, &arena, &exec, &xs, &err) == XPL_OK &&
        xpl_time_breakdown_make(xs, &(struct xpl_time_breakdown_options){cpu_as_device, NULL},
                                &exec, &arena, LIMIT, &b, &err) == XPL_OK) {
        check_sums(b);
        check_encoding(b);
        check_tools(b);
        check_known(xs, cpu_as_device, b);
    }
}

static void check_queue(struct xpl_launch_stream *s, struct xpl_arena *arena) {
    struct xpl_queue_part parts[8];
    uint64_t sum = 0;
    size_t n;
    uint64_t *const ends = xpl_arena_array(arena, s->waits.n + 1, sizeof *ends);
    if (!ends) return;
    xpl_launch_queue(s, ends, 7, parts, &n);
    require(n <= 7 && parts[n].duration_ps == s->window_ps && parts[n].most <= s->waits.n);
    for (size_t i = 0; i < n; i++) {
        require(parts[i].begin_ps == sum && parts[i].least <= parts[i].most);
        require(parts[i].mean < (double)parts[i].most * (1 + 1e-9) + 1e-9);
        sum += parts[i].duration_ps;
    }
    require(sum == s->window_ps);
}

static void try_launches(xpl_bytes_t bytes) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_xspace *xs;
    struct xpl_launch_stats l;
    if (xpl_launches_init(&l, &arena, &exec) &&
        xpl_xspace_open(bytes, &arena, &exec, &xs, &err) == XPL_OK &&
        xpl_launches_add(&l, XPL_STR("a"), xs, &err) == XPL_OK) {
        for (size_t i = 0; i < l.kernels.n; i++)
            require(l.kernels.v[i].all.launch.n <= l.kernels.v[i].all.op.n &&
                    !l.kernels.v[i].here.op.n);
        for (size_t i = 0; i < l.streams.n; i++)
            check_queue(&l.streams.v[i], &arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const xpl_bytes_t bytes = {data, size};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_error err = {0};
    struct xpl_time_breakdown *b = NULL;
    try_profile(bytes, false);
    try_profile(bytes, true);
    try_launches(bytes);
    if (xpl_time_breakdown_decode(bytes, &arena, &b, &err) == XPL_OK) {
        check_encoding(b);
        check_tools(b);
    } else {
        require(!b && err.code != XPL_OK);
    }
    return 0;
}
