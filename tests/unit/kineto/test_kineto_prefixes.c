// SPDX-License-Identifier: Apache-2.0
// Every prefix of three traces, as files of killed jobs are: all events before the cut are there.
#include "analysis/kineto/kineto.h"

#include "analysis/xplane/schema.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "tests/check.h"

enum { EVENTS = 120, SMALLEST = 16 << 10, LARGEST = 35 << 10 };

struct made {
    struct xpl_buf text;
    size_t end[EVENTS]; // of each event, in bytes from the begin
    unsigned n;
};

static void put_end(struct made *m) {
    m->end[m->n++] = m->text.n;
}

static const char *const kCategories[] = {"cpu_op", "python_function", "cuda_runtime", "kernel"};

// As the profiler writes it.
static void make_lines(struct made *m) {
    struct xpl_buf *const b = &m->text;
    xpl_buf_printf(
        b, " {\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, "
           "\"name\": \"NVIDIA H100\", \"totalGlobalMem\": 85899345920\n    }\n  ],\n"
           "  \"distributedInfo\": {\"rank\": 0, \"world_size\": 2},\n"
           "  \"traceEvents\": [\n");
    for (unsigned i = 0; i < 90; i++) {
        xpl_buf_printf(b,
                       "%s  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"aten::op_%u\", "
                       "\"pid\": %u, \"tid\": 7,\n    \"ts\": %u.125, \"dur\": 3.250,\n"
                       "    \"args\": {\n      \"correlation\": %u, \"device\": 0,\n      "
                       "\"grid\": [1, %u, 1], \"External id\": %u\n    }\n  }",
                       i ? ",\n" : "", kCategories[i % 4], i % 9, i % 4 == 3 ? 0 : 55, 100 + 2 * i,
                       i / 4, i, i);
        put_end(m);
    }
    xpl_buf_printf(
        b, "\n  ],\n  \"traceName\": \"a\",\n  \"baseTimeNanoseconds\": 1700000000000000000\n}\n");
}

// As a script writes a trace that it has read: in one line, keys in another order, and escapes.
static void make_line(struct made *m) {
    struct xpl_buf *const b = &m->text;
    xpl_buf_printf(b, "{\"metadata\":{\"a\":[{\"ph\":1},\"]}\"]},\"traceEvents\":[");
    for (unsigned i = 0; i < EVENTS; i++) {
        xpl_buf_printf(b,
                       "%s{\"args\":{\"Call stack\":\"a\\\\b;\\\"c\\\" \\u00e9 {[\",\"Input Dims\":"
                       "[[%u,[]],[[2],[3]]],\"x\":{\"y\":[{}]},\"n\":null,\"finished\":false},"
                       "\"dur\":1.2e-05,\"ts\":%u,\"tid\":\"stream 7\",\"pid\":\"p\",\"name\":"
                       "\"\xc3\xa9 %u\",\"cat\":\"%s\",\"ph\":\"X\"}",
                       i ? "," : "", i, i, i, kCategories[i % 4]);
        put_end(m);
    }
    xpl_buf_printf(b, "],\"deviceProperties\":[],\"baseTimeNanoseconds\":1700000000000000000}");
}

// An array, of allocations as well.
static void make_array(struct made *m) {
    struct xpl_buf *const b = &m->text;
    xpl_buf_printf(b, "[");
    for (unsigned i = 0; i < EVENTS; i++) {
        xpl_buf_printf(
            b,
            "%s\n{\"name\": \"%s\", \"ph\": \"%s\", \"s\": \"t\", \"pid\": 1, \"tid\": 2, \"ts\": "
            "\"%u\", \"dur\": \"1\", \"cat\": \"cpu_instant_event\", \"args\": {\"Bytes\": "
            "%d, \"Addr\": %u}}",
            i ? "," : "", i % 2 ? "[memory]" : "a, {\\\"ph\\\"", i % 2 ? "i" : "X", i,
            i % 4 == 1 ? 64 : -64, i / 4);
        put_end(m);
    }
    xpl_buf_printf(b, "\n]\n");
}

static unsigned count(const struct xpl_xspace *xs) {
    unsigned n = 0;
    for (uint32_t p = 0; p < xs->n_planes; p++)
        for (uint32_t k = 0; k < xs->planes[p].n_lines; k++)
            n += (unsigned)xs->planes[p].lines[k].n_events;
    return n;
}

// The first n bytes have `events` whole events, and the import says that some are missing.
static void check_prefix(const struct made *m, size_t n, unsigned events) {
    const struct xpl_kineto_options options = {.max_bytes = 64 << 20};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_json_reader r;
    struct xpl_buf out;
    struct xpl_arena arena = xpl_arena_of(64 << 20);
    struct xpl_xspace *xs;
    bool partial = false;
    char *const exact = xpl_sys_alloc(n); // AddressSanitizer sees a read behind it
    CHECK(exact);
    memcpy(exact, m->text.p, n);
    xpl_buf_init(&out, options.max_bytes);
    xpl_json_reader_init(&r, (xpl_str_t){exact, n}, XPL_JSON_LENIENT);
    const xpl_status_t st = xpl_kineto_import(&r, &options, &out, &partial, &err);
    if (!events) {
        CHECK_EQ(st, XPL_DATA_LOSS);
        CHECK(err.msg[0]);
    } else {
        CHECK_OK(st, &err);
        CHECK_OK(xpl_xspace_open((xpl_bytes_t){out.p, out.n}, &arena, &exec, &xs, &err), &err);
        CHECK_EQ(count(xs), events);
        CHECK(partial);
        CHECK_EQ(xs->n_errors, 1);
    }
    xpl_sys_free(exact);
    xpl_arena_fini(&arena);
    xpl_buf_fini(&out);
}

static void sweep(void (*make)(struct made *m)) {
    struct made m = {.n = 0};
    unsigned events = 0;
    xpl_buf_init(&m.text, 1 << 20);
    make(&m);
    CHECK(m.text.n >= SMALLEST && m.text.n <= LARGEST);
    size_t last = m.text.n; // the bracket or brace that ends it
    while (m.text.p[last - 1] == '\n')
        last--;
    for (size_t n = 1; n < last; n++) {
        while (events < m.n && m.end[events] <= n)
            events++;
        check_prefix(&m, n, events);
    }
    CHECK_EQ(events, m.n);
    xpl_buf_fini(&m.text);
}

int main(void) {
    sweep(make_lines);
    sweep(make_line);
    sweep(make_array);
    return 0;
}
