// SPDX-License-Identifier: Apache-2.0
// Traces that are made to take long: many devices and rows, and long texts that many of them share.
#include <stdlib.h>

#include "analysis/trace/answer/args.h"
#include "analysis/trace/trace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/processor_time.h"
#include "tests/xspace_maker.h"

enum { LIMIT = 1 << 28 };

struct fixture {
    struct xpl_buf profile;
    struct xpl_arena arena;
    struct xpl_trace_memory memory;
    struct xpl_trace_host host;
};

static void make(struct fixture *f, struct xpl_buf profile) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    const xpl_bytes_t bytes = {profile.p, profile.n};
    f->profile = profile;
    xpl_arena_init(&f->arena, LIMIT);
    CHECK_OK(xpl_trace_memory_init(&f->memory, bytes, NULL, &exec, LIMIT, &f->arena, &err), &err);
    f->host = (struct xpl_trace_host){XPL_STR("h"), f->memory.trace, bytes};
}

static void end(struct fixture *f) {
    xpl_trace_memory_fini(&f->memory);
    xpl_arena_fini(&f->arena);
    xpl_buf_fini(&f->profile);
}

static char *long_text(size_t n, char last) {
    char *const text = malloc(n + 1);
    CHECK(text);
    memset(text, 'a', n);
    text[n - 1] = last, text[n] = 0;
    return text;
}

static double devices_s(int n) {
    struct xpl_buf space = mk_open();
    for (int i = 0; i < n; i++) {
        struct mk_plane p;
        struct xpl_buf line = mk_line(1, "t");
        mk_plane_begin(&p, i, "/device:CUSTOM:x");
        mk_plain(&p, &line, "e", 1000 * (int64_t)i, 500);
        mk_line_end(&p, &line);
        mk_plane_end(&p, &space);
    }
    XPL_AUTO(end) struct fixture f;
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_trace_options o;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    const double before = processor_s();
    make(&f, space);
    xpl_trace_options_init(&o);
    CHECK_OK(xpl_trace_answer(&f.host, 1, &o, &exec, LIMIT, &out, &err), &err);
    return processor_s() - before;
}

// The rows of a device were looked for among those of all, and a device among all others.
static void test_devices(void) {
    CHECK(is_done_soon(devices_s, 50000, 2));
}

// A stack frame to which events refer: its number was looked for by its text.
static void test_frames(void) {
    enum { N = 2 << 20, COUNT = 20000 };
    char *const text = long_text(N, 'z');
    struct xpl_buf space = mk_open(), line = mk_line(1, "thread");
    struct mk_plane p = mk_plane(0, "/host:CPU");
    for (int64_t i = 0; i < COUNT; i++) {
        struct xpl_buf ev = mk_event(&p, "event", 1000 * i, 1000);
        mk_stat_ref(&p, &ev, "long_name", text);
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    XPL_AUTO(end) struct fixture f;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    static struct trc_value values[TRC_MAX_ARGS];
    struct trc_frames frames = {.arena = &arena};
    struct xpl_error err = {0};
    size_t n_read = 0;
    const double before = processor_s();
    make(&f, space);
    for (uint64_t b = 0; b < f.memory.trace->n[TRC_BLOCKS]; b++) {
        struct trc_view v;
        CHECK_OK(trc_view_block(f.memory.trace, b, &v, &err), &err);
        for (uint32_t i = 0; i < v.n; i++, n_read++) {
            struct trc_event e;
            size_t n;
            CHECK_OK(trc_get_event(f.memory.trace, &v, i, &e, &err), &err);
            CHECK_OK(trc_read_args(f.memory.trace, f.host.profile, &e, &frames, values, &n, &err),
                     &err);
            CHECK(n == 1 && values[0].frame);
        }
    }
    CHECK_EQ(n_read, COUNT);
    CHECK(is_within(before, 2));
    free(text);
}

// A row has the name of a stage only if that is short: each row's is read.
static void test_stages(void) {
    enum { N = 1 << 20, ROWS = 20000 };
    char *const name = long_text(N, 'z');
    struct xpl_buf space = mk_open(), line = mk_line(1, "XLA Modules");
    struct mk_plane p = mk_plane(0, "/device:TPU:0");
    for (int i = 0; i < ROWS; i++)
        mk_plain(&p, &line, name, 1000 * (int64_t)i, 500);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    XPL_AUTO(end) struct fixture f;
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_trace_options o;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    make(&f, space);
    xpl_trace_options_init(&o);
    o.mpmd_pipeline_view = true;
    const double before = processor_s();
    const xpl_status_t st = xpl_trace_answer(&f.host, 1, &o, &exec, LIMIT, &out, &err);
    CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
    CHECK(is_within(before, 2));
    free(name);
}

int main(void) {
    test_devices();
    test_frames();
    test_stages();
    return 0;
}
