// SPDX-License-Identifier: Apache-2.0
// Hostile input to the trace viewer.  The first byte says what the rest is: an index, the same with
// its checksums made right, options of a request, or a profile.
#include <stdint.h>
#include <stdlib.h>

#include "analysis/tools/trace_viewer/options.h"
#include "analysis/trace/index/format.h"
#include "analysis/trace/sums.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 26, OUT_LIMIT = 1 << 22 };

static void answer(struct xpl_trace *t, xpl_bytes_t profile, const struct xpl_trace_options *o) {
    const struct xpl_trace_host hosts[2] = {{XPL_STR("a"), t, profile}, {XPL_STR("b"), t, profile}};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(OUT_LIMIT);
    const xpl_status_t st = xpl_trace_answer(hosts, 2, o, &exec, LIMIT, &out, &err);
    if (st == XPL_OK && !o->pb && (out.n < 2 || out.p[0] != '{' || out.p[out.n - 1] != '}'))
        abort();
    if (st != XPL_OK && (err.code != st || !err.msg[0])) abort();
}

static uint8_t row_counts(xpl_str_t device, xpl_str_t row) {
    return device.len + row.len > 0;
}
static void all_names_count(const xpl_str_t *names, size_t n, uint8_t *ret) {
    for (size_t i = 0; i < n; i++)
        ret[i] = 1 + (uint8_t)(names[i].len % 255);
}
static bool count_visit(void *arg, const struct xpl_trace_visit *v) {
    if (v->row != 1 || !v->name || v->begin >= v->end) abort();
    ++*(uint64_t *)arg;
    return true;
}

// A part is not more than all.
static void sum_up(struct xpl_trace *t, xpl_bytes_t profile) {
    const struct xpl_trace_host host = {XPL_STR("a"), t, profile};
    const struct xpl_trace_sums_options all = {.name = XPL_STR("")},
                                        part = {.end_time_ms = 1e-3, .name = XPL_STR("a")},
                                        found = {.arguments = XPL_STR("a 1"), .most = 3};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_trace_sums s = {0}, less;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    if (xpl_trace_sum_up(&host, 1, &all, &exec, &a, &s, NULL) == XPL_OK &&
        xpl_trace_sum_up(&host, 1, &part, &exec, &a, &less, NULL) == XPL_OK && less.count > s.count)
        abort();
    uint64_t visits = 0;
    const struct xpl_trace_visitor visitor = {row_counts, all_names_count, count_visit, &visits};
    if (s.n && xpl_trace_visit(&host, 1, &part, &visitor, &exec, LIMIT, NULL) == XPL_OK &&
        visits > s.count)
        abort();
    if (xpl_trace_sum_up(&host, 1, &found, &exec, &a, &less, NULL) == XPL_OK &&
        (less.count > s.count || less.n_found != (less.count < 3 ? less.count : 3)))
        abort();
}

static void ask_all(xpl_bytes_t index, xpl_bytes_t profile) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_trace *t;
    if (xpl_trace_open(index, &a, &t, NULL) == XPL_OK) {
        struct xpl_trace_options o;
        xpl_trace_options_init(&o);
        answer(t, profile, &o);
        o.resolution = 3;
        o.start_time_ms = 1e-6, o.end_time_ms = 2e-6;
        answer(t, profile, &o);
        o.search_prefix = XPL_STR("a"), o.search_metadata = true;
        answer(t, profile, &o);
        o.event_name = XPL_STR("a");
        answer(t, profile, &o);
        xpl_trace_options_init(&o);
        o.pb = o.mpmd_pipeline_view = true;
        answer(t, profile, &o);
        sum_up(t, profile);
    }
}

// Correct checksums, so that the fuzzer reaches the data behind them.
static void mend(uint8_t *p, size_t n) {
    struct trc_footer f;
    if (n < sizeof f + sizeof(struct trc_header)) return;
    memcpy(&f, p + n - sizeof f, sizeof f);
    f.file_size = n;
    memcpy(f.magic, TRC_MAGIC, sizeof f.magic);
    struct trc_extent *const blocks = &f.tables[TRC_BLOCKS];
    if (blocks->offset <= n && blocks->len <= n - blocks->offset)
        for (uint64_t i = 0; i + sizeof(struct trc_block_ref) <= blocks->len;
             i += sizeof(struct trc_block_ref)) {
            struct trc_block_ref ref;
            memcpy(&ref, p + blocks->offset + i, sizeof ref);
            if (ref.offset > n || ref.size > n - ref.offset) continue;
            ref.sum = trc_sum(p + ref.offset, ref.size);
            memcpy(p + blocks->offset + i, &ref, sizeof ref);
        }
    const struct trc_extent *const names = &f.tables[TRC_NAMES], *list = &f.tables[TRC_NAME_BLOCKS];
    if (names->offset <= n && names->len <= n - names->offset && list->offset <= n &&
        list->len <= n - list->offset)
        for (uint64_t i = 0; i + sizeof(struct trc_name) <= names->len;
             i += sizeof(struct trc_name)) {
            struct trc_name name;
            memcpy(&name, p + names->offset + i, sizeof name);
            if (name.first > list->len || name.len > list->len - name.first) continue;
            name.sum = trc_sum(p + list->offset + name.first, (size_t)name.len);
            memcpy(p + names->offset + i, &name, sizeof name);
        }
    const struct trc_extent *const pieces = &f.tables[TRC_PIECES];
    if (pieces->offset <= n && pieces->len <= n - pieces->offset)
        for (uint64_t i = 0; i + sizeof(struct trc_piece) <= pieces->len;
             i += sizeof(struct trc_piece)) {
            struct trc_piece one;
            memcpy(&one, p + pieces->offset + i, sizeof one);
            const uint64_t len = (uint64_t)one.n_sums * sizeof(struct trc_piece_sum);
            if (one.offset > n || len > n - one.offset) continue;
            one.sum = trc_sum(p + one.offset, (size_t)len);
            memcpy(p + pieces->offset + i, &one, sizeof one);
        }
    for (int i = 0; i < TRC_TABLES; i++)
        if (f.tables[i].offset <= n && f.tables[i].len <= n - f.tables[i].offset)
            f.tables[i].sum = trc_sum(p + f.tables[i].offset, (size_t)f.tables[i].len);
    f.sum = trc_sum(&f, offsetof(struct trc_footer, sum));
    memcpy(p + n - sizeof f, &f, sizeof f);
}

// key=value lines over an empty trace.
static void options(const uint8_t *data, size_t size) {
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("trace_viewer@"));
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_trace_memory m = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a;
    struct xpl_option list[64];
    size_t n = 0;
    void *parsed;
    for (size_t i = 0, end; i < size && n < sizeof list / sizeof *list; i = end + 1) {
        for (end = i; end < size && data[end] != '\n';)
            end++;
        const xpl_str_t line = {(const char *)data + i, end - i};
        const size_t eq = xpl_str_find(line, XPL_STR("="), 0);
        if (eq != SIZE_MAX)
            list[n++] =
                (struct xpl_option){xpl_str_sub(line, 0, eq), xpl_str_sub(line, eq + 1, SIZE_MAX)};
    }
    xpl_arena_init(&a, LIMIT);
    if (xpl_tool_options_parse(tool, list, n, false, &a, &parsed, NULL) != XPL_OK) abort();
    const struct xpl_trace_viewer_options *const o = parsed;
    struct xpl_trace_options trace = o->trace;
    trace.pb = o->format == XPL_TRACE_FORMAT_PB;
    if (xpl_trace_memory_init(&m, (xpl_bytes_t){0}, NULL, &exec, LIMIT, &a, NULL) != XPL_OK)
        abort();
    answer(m.trace, (xpl_bytes_t){0}, &trace);
    xpl_trace_memory_fini(&m);
}

static void profile(const uint8_t *data, size_t size) {
    struct xpl_exec exec = xpl_exec_serial();
    const xpl_bytes_t bytes = {data, size};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf index = xpl_buf_of(LIMIT);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &index};
    if (xpl_trace_build(bytes, &exec, LIMIT, &sink, NULL) == XPL_OK) {
        struct xpl_arena a = xpl_arena_of(LIMIT);
        struct xpl_trace *t;
        // The built index can be opened.
        if (xpl_trace_open((xpl_bytes_t){index.p, index.n}, &a, &t, NULL) != XPL_OK) abort();
        xpl_arena_fini(&a);
        ask_all((xpl_bytes_t){index.p, index.n}, bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    // A block of exactly that size, aligned: a byte read too far is seen.
    const size_t n = size - 1;
    uint8_t *const copy = malloc(n ? n : 1);
    if (!copy) return 0;
    memcpy(copy, data + 1, n);
    switch (data[0] % 4) {
        case 0: ask_all((xpl_bytes_t){copy, n}, (xpl_bytes_t){copy, n}); break;
        case 1:
            mend(copy, n);
            ask_all((xpl_bytes_t){copy, n}, (xpl_bytes_t){copy, n});
            break;
        case 2: options(copy, n); break;
        default: profile(copy, n); break;
    }
    free(copy);
    return 0;
}
