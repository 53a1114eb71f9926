// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/memory_profile/memory_profile.h"

#include <stdio.h>
#include <string.h>

#include "analysis/tools/memory_profile/event.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/cancelled.h"
#include "tests/check.h"
#include "tests/data_file.h"
#include "tests/unit/tools/memory_fixture.h"

enum { LIMIT = 64 << 20 };

// The answer, NUL-terminated, in `out`.
static xpl_status_t profile(xpl_bytes_t bytes, size_t limit, struct xpl_exec *exec,
                            struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_exec serial = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_xspace *xs;
    *err = (struct xpl_error){0};
    out->n = 0;
    CHECK_OK(xpl_xspace_open(bytes, &a, &serial, &xs, err), err);
    const xpl_status_t st = xpl_memory_profile(xs, exec, limit, out, err);
    CHECK(st == XPL_OK || (err->code == st && err->msg[0]));
    xpl_buf_putc(out, 0);
    return st;
}

static const char *answer(const struct xpl_buf *space, struct xpl_buf *out) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err;
    CHECK_OK(profile((xpl_bytes_t){space->p, space->n}, LIMIT, &exec, out, &err), &err);
    CHECK(!out->failed);
    return (const char *)out->p;
}

static size_t count(const char *text, const char *part) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
        n++;
    return n;
}

static void test_golden(const char *name) {
    char path[64];
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    (void)snprintf(path, sizeof path, "memory/%s.pb", name);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf in = read_data_file(path);
    (void)snprintf(path, sizeof path, "memory/%s.json", name);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf expected = read_data_file(path);
    (void)answer(&in, &out);
    CHECK_EQ(out.n, expected.n + 1);
    CHECK_BYTES(out.p, expected.n, expected.p, expected.n);
}

static void put_event(struct xpl_buf *line, unsigned kind, uint64_t at, const char *allocator,
                      uint64_t used, uint64_t bytes, uint64_t address) {
    struct xpl_buf e = new_event(kind, at);
    put_text_stat(&e, ST_NAME, allocator);
    put_int_stat(&e, ST_USED, used);
    put_int_stat(&e, ST_BYTES, bytes);
    put_int_stat(&e, ST_ADDRESS, address);
    put_child(line, 4, &e);
}

// n events whose use rises and falls; each box of neighbours shows its greatest.
static void test_sampling(size_t n) {
    static uint64_t used[5000];
    struct xpl_buf line = new_line(1), out;
    uint64_t seed = n;
    xpl_buf_init(&out, LIMIT);
    for (size_t i = 0; i < n; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        used[i] = seed >> 40;
        put_event(&line, EV_ALLOC, i, "a", used[i], 1, i);
    }
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = memory_space(&line, 1);
    const char *p = strstr(answer(&space, &out), "\"sampledTimelineSnapshots\":");
    const size_t shown = n < 1000 ? n : 1000, width = n / shown, narrow = shown * (width + 1) - n;
    CHECK(p);
    CHECK_EQ(count(p, "\"timeOffsetPs\""), shown);
    size_t first = 0;
    for (size_t box = 0; box < shown; box++) {
        const size_t end = first + width + (box >= narrow);
        size_t best = first;
        for (size_t i = first; i < end; i++)
            if (used[i] > used[best]) best = i;
        char expected[64];
        (void)snprintf(expected, sizeof expected, "\"timeOffsetPs\":\"%zu\",", best);
        p = strstr(p + 1, "\"timeOffsetPs\"");
        CHECK(p && strncmp(p, expected, strlen(expected)) == 0);
        first = end;
    }
    CHECK_EQ(first, n);
    xpl_buf_fini(&out);
}

static void test_equal_rows(void) {
    struct xpl_buf line = new_line(1), out;
    xpl_buf_init(&out, LIMIT);
    for (unsigned i = 0; i < 6; i++)
        put_event(&line, EV_ALLOC, i, i % 2 ? "b" : "a", i + 1, i < 4 ? 64 : 32, i);
    put_event(&line, EV_FREE, 6, "a", 1, 64, 0); // after the peak of "a"
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = memory_space(&line, 1);
    const char *const text = answer(&space, &out);
    // Two of 64 in each, and one of 32.
    CHECK_EQ(count(text, "\"numOccurrences\":\"2\""), 2);
    CHECK_EQ(count(text, "\"numOccurrences\":\"1\""), 2);
    CHECK(strstr(text, "\"memoryIds\":[\"a\",\"b\"]"));
    xpl_buf_fini(&out);
}

// Lines one after another in the file, events by time in the answer.
static void test_lines_in_any_order(void) {
    struct xpl_buf lines[3], out;
    xpl_buf_init(&out, LIMIT);
    for (unsigned l = 0; l < 3; l++) {
        lines[l] = new_line(l);
        for (unsigned i = 0; i < 30; i++)
            put_event(&lines[l], EV_ALLOC, i * 10 + 2 - l, "a", 1, 1, i);
        struct xpl_buf other = new_event(EV_OTHER, 5);
        put_child(&lines[l], 4, &other);
    }
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = memory_space(lines, 3);
    const char *p = strstr(answer(&space, &out), "\"sampledTimelineSnapshots\":");
    for (unsigned i = 0; i < 90; i++) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "\"timeOffsetPs\":\"%u\",", i / 3 * 10 + i % 3);
        p = strstr(p + 1, "\"timeOffsetPs\"");
        CHECK(p && strncmp(p, expected, strlen(expected)) == 0);
    }
    xpl_buf_fini(&out);
}

// Long lines in pieces, on threads: the same bytes.
static void test_threads(void) {
    struct xpl_exec_pool *const pool = xpl_exec_pool_new(4);
    struct xpl_error err;
    struct xpl_buf lines[3], expected, got;
    uint64_t seed = 7;
    CHECK(pool);
    xpl_buf_init(&expected, LIMIT);
    xpl_buf_init(&got, LIMIT);
    for (unsigned l = 0; l < 3; l++) {
        static const char *const names[] = {"a", "b", "c"};
        lines[l] = new_line(l);
        for (unsigned i = 0; i < 30000; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            put_event(&lines[l], seed >> 62 ? EV_ALLOC : EV_FREE, i * 10 + seed % 30,
                      names[seed >> 40 & 1 ? l : 2], seed >> 50, seed >> 44 & 0xff,
                      seed >> 33 & 0xfff);
        }
    }
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = memory_space(lines, 3);
    (void)answer(&space, &expected);
    for (int round = 0; round < 3; round++) {
        CHECK_OK(
            profile((xpl_bytes_t){space.p, space.n}, LIMIT, xpl_exec_pool_get(pool), &got, &err),
            &err);
        CHECK_BYTES(got.p, got.n, expected.p, expected.n);
    }
    xpl_buf_fini(&got);
    xpl_buf_fini(&expected);
    xpl_exec_pool_free(pool);
}

static void test_nothing(void) {
    static const char empty[] = "{\"memoryProfilePerAllocator\":{},\"numHosts\":1,\"memoryIds\":[],"
                                "\"version\":1,\"hloModules\":[]}";
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err;
    struct xpl_buf out, line = new_line(1);
    xpl_buf_init(&out, LIMIT);
    CHECK_STATUS(profile((xpl_bytes_t){(const uint8_t *)"", 0}, LIMIT, &exec, &out, &err),
                 XPL_FAILED_PRECONDITION, &err);
    CHECK(strstr(err.msg, "/host:CPU"));
    struct xpl_buf other = new_event(EV_OTHER, 5);
    put_child(&line, 4, &other);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = memory_space(&line, 1);
    CHECK_STR(answer(&space, &out), empty);
    xpl_buf_fini(&out);
}

static void test_refusals(void) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err;
    struct xpl_buf line = new_line(1), out;
    xpl_buf_init(&out, LIMIT);
    for (unsigned i = 0; i < 20000; i++)
        put_event(&line, EV_ALLOC, i, "a", i, 1, i);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = memory_space(&line, 1);
    const xpl_bytes_t bytes = {space.p, space.n};
    CHECK_STATUS(profile(bytes, 100 << 10, &exec, &out, &err), XPL_RESOURCE_EXHAUSTED, &err);
    struct xpl_buf small = xpl_buf_of(1000);
    CHECK_STATUS(profile(bytes, LIMIT, &exec, &small, &err), XPL_RESOURCE_EXHAUSTED, &err);
    xpl_buf_fini(&small);
    exec.cancelled = always_cancelled;
    const xpl_status_t st = profile(bytes, LIMIT, &exec, &out, &err);
    CHECK_STATUS(st, XPL_CANCELLED, NULL);
    xpl_buf_fini(&out);
}

// The file is rewritten between opening and reading: anything but a crash.
static void test_changing_bytes(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf in = read_data_file("memory/ties.pb");
    uint64_t seed = 1;
    for (unsigned round = 0; round < 3000; round++) {
        struct xpl_exec exec = xpl_exec_serial();
        struct xpl_arena a = xpl_arena_of(LIMIT);
        struct xpl_xspace *xs;
        struct xpl_error err = {0};
        struct xpl_buf out = xpl_buf_of(LIMIT);
        uint8_t *const copy = xpl_sys_alloc(in.n);
        CHECK(copy);
        memcpy(copy, in.p, in.n);
        CHECK_OK(xpl_xspace_open((xpl_bytes_t){copy, in.n}, &a, &exec, &xs, &err), &err);
        for (unsigned i = 0; i <= round % 7; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            copy[(seed >> 33) % in.n] = (uint8_t)(seed >> 25);
        }
        const xpl_status_t st = xpl_memory_profile(xs, &exec, LIMIT, &out, &err);
        // The plane's name is among what changes.
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_FAILED_PRECONDITION);
        xpl_buf_fini(&out);
        xpl_arena_fini(&a);
        xpl_sys_free(copy);
    }
}

static void test_data_types(void) {
    static const struct {
        int32_t type;
        const char *name;
    } cases[] = {{0, "INVALID"},
                 {1, "float"},
                 {30, "uint4"},
                 {31, "unknown dtype enum (31)"},
                 {100, "unknown dtype enum (100)"},
                 {101, "float_ref"},
                 {130, "uint4_ref"},
                 {131, "unknown dtype enum (31)_ref"},
                 {-1, "unknown dtype enum (-1)"},
                 {INT32_MIN, "unknown dtype enum (-2147483648)"},
                 {INT32_MAX, "unknown dtype enum (2147483547)_ref"}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        xpl_str_t s;
        CHECK(xpl_memory_data_type_name(cases[i].type, &a, &s));
        CHECK_STR(s, cases[i].name);
    }
}

int main(void) {
    test_golden("steps");
    test_golden("negative");
    test_golden("ties");
    test_golden("modules");
    test_sampling(1);
    test_sampling(999);
    test_sampling(1000);
    test_sampling(1001);
    test_sampling(1999);
    test_sampling(3456);
    test_equal_rows();
    test_lines_in_any_order();
    test_threads();
    test_nothing();
    test_refusals();
    test_changing_bytes();
    test_data_types();
    return 0;
}
