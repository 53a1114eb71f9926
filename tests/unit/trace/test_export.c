// SPDX-License-Identifier: Apache-2.0
// Exports: what the sink receives.  tests/parity/check_export.py checks the formats.
#include <string.h>

#include "analysis/trace/export/export.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"
#include "tests/trace_fixture.h"

struct sink {
    struct xpl_buf all;
    size_t calls, most, fail_at; // fail_at: call that fails, 0: none
    uint64_t early;
};

static bool sink_write(void *ctx, const void *bytes, size_t n) {
    struct sink *const s = ctx;
    if (++s->calls == s->fail_at) return false;
    if (n > s->most) s->most = n;
    xpl_buf_put(&s->all, bytes, n);
    return true;
}

static xpl_status_t run(const struct xpl_buf *space, enum xpl_export_format format,
                        const char *host, struct sink *s) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_export e = {.format = format, .sink = {sink_write, s}};
    struct xpl_error err = {0};
    struct xpl_xspace *xs;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    xpl_buf_init(&s->all, 64 << 20);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, &a, &exec, &xs, &err), &err);
    xpl_status_t st = xpl_export_begin(&e, &err);
    if (st == XPL_OK) st = xpl_export_host(&e, xs, xpl_str_from(host), &exec, 64 << 20, &err);
    if (st == XPL_OK) st = xpl_export_end(&e, &err);
    CHECK_EQ(st, err.code);
    s->early = e.n_early;
    return st;
}

static bool has(const struct sink *s, const char *text) {
    return xpl_str_has((xpl_str_t){(const char *)s->all.p, s->all.n}, xpl_str_from(text));
}

static void test_chrome(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = trace_fixture();
    struct sink s = {.fail_at = 0};
    CHECK_OK(run(&space, XPL_EXPORT_CHROME, "box", &s), NULL);
    CHECK(has(&s, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\""));
    CHECK(has(&s, "\"args\":{\"name\":\"box /device:GPU:0\"}"));
    CHECK(has(&s, "\"args\":{\"name\":\"Launch Stats\"}"));
    CHECK(has(&s, "\"name\":\"Launch Stats for train 1\""));
    CHECK(
        has(&s, "{\"ph\":\"C\",\"pid\":2,\"ts\":0.002,\"args\":{\"value\":4},\"name\":\"load\"}"));
    CHECK(has(&s, "{\"ph\":\"s\"") && has(&s, "{\"ph\":\"f\"") && has(&s, "\"bp\":\"e\"}"));
    CHECK(has(&s, "}\n]}\n"));
    CHECK(!has(&s, ",\n,") && !has(&s, "[\n,"));
    xpl_buf_fini(&s.all);
}

// The device's clock is early: one event ends before 0, one begins before 0 and ends after it, and
// one begins after 0.
static void test_early(void) {
    for (enum xpl_export_format f = XPL_EXPORT_PERFETTO; f <= XPL_EXPORT_CHROME; f++) {
        struct xpl_buf space = mk_open(), line = mk_line(1, "thread");
        struct sink s = {.fail_at = 0};
        struct mk_plane p = mk_plane(1, "/host:CPU");
        mk_plain(&p, &line, "before", -9000000, 2000000);
        mk_plain(&p, &line, "across", -4000000, 6000000);
        mk_plain(&p, &line, "after", 3000000, 1000000);
        mk_line_end(&p, &line);
        mk_plane_end(&p, &space);
        CHECK_OK(run(&space, f, "box", &s), NULL);
        CHECK_EQ(s.early, 2);
        CHECK(f != XPL_EXPORT_CHROME || has(&s, "\"ts\":0.0,\"dur\":2.0,"));
        CHECK(!has(&s, "1844674"));
        xpl_buf_fini(&s.all);
        xpl_buf_fini(&space);
    }
}

// Hosts that say when they began: Chrome's times count from a day before the first one, Perfetto's
// from 1970.  A host whose clock is weeks off begins with the first.
static void test_hosts(void) {
    enum { N = 4 };
    static const int64_t first = INT64_C(1798502400000000000); // 2026-12-29
    static const int64_t begins[N] = {first, first + 5000, first - 7000,
                                      first - INT64_C(1000000000) * 90 * 86400};
    static const int64_t us[] = {0, 10};
    for (enum xpl_export_format f = XPL_EXPORT_PERFETTO; f <= XPL_EXPORT_CHROME; f++) {
        struct xpl_exec exec = xpl_exec_serial();
        struct sink s = {.fail_at = 0};
        struct xpl_export e = {.format = f, .sink = {sink_write, &s}, .several = true};
        xpl_buf_init(&s.all, 1 << 20);
        for (int i = 0; i < N; i++) {
            struct xpl_buf space = mk_thread(begins[i], us, 2);
            struct xpl_error err = {0};
            struct xpl_xspace *xs;
            struct xpl_arena a;
            mk_start(&space, begins[i]);
            xpl_arena_init(&a, 1 << 20);
            CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &a, &exec, &xs, &err), &err);
            CHECK_OK(xpl_export_host(&e, xs, XPL_STR("host"), &exec, 64 << 20, &err), &err);
            xpl_arena_fini(&a);
            xpl_buf_fini(&space);
        }
        CHECK_EQ(e.n_early, 0);
        if (f == XPL_EXPORT_CHROME) {
            CHECK(has(&s, "\"pid\":1,\"tid\":1,\"ts\":86400000010.0,\"dur\":2.0"));
            CHECK(has(&s, "\"pid\":4097,\"tid\":1,\"ts\":86400000005.0,"));
            CHECK(has(&s, "\"pid\":8193,\"tid\":1,\"ts\":86399999993.0,"));
            CHECK(has(&s, "\"pid\":12289,\"tid\":1,\"ts\":86400000000.0,"));
        } else {
            for (int i = 0; i < N; i++) { // the packets' times are varints
                struct xpl_buf ns = mk_open();
                mk_varint(&ns, (uint64_t)(i == 3 ? first : begins[i]) + 12000);
                CHECK(xpl_str_has((xpl_str_t){(const char *)s.all.p, s.all.n},
                                  (xpl_str_t){(const char *)ns.p, ns.n}));
                xpl_buf_fini(&ns);
            }
        }
        xpl_buf_fini(&s.all);
    }
}

// Absolute times of a profile that does not say when it began wrap; no event of it is early.
static void test_absolute(void) {
    static const int64_t us[] = {0, 10};
    for (int64_t day = 0; day < 230; day++) {
        struct xpl_buf space =
            mk_thread(INT64_C(1780000000000000000) + day * INT64_C(86400000000000), us, 2);
        struct sink s = {.fail_at = 0};
        CHECK_OK(run(&space, XPL_EXPORT_CHROME, "box", &s), NULL);
        CHECK_EQ(s.early, 0);
        CHECK(has(&s, "\"dur\":2.0"));
        xpl_buf_fini(&s.all);
        xpl_buf_fini(&space);
    }
}

// Every write may be the one that fails.
static void test_sink_fails(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = trace_fixture();
    for (int format = 0; format < 2; format++) {
        struct sink good = {.fail_at = 0};
        CHECK_OK(run(&space, (enum xpl_export_format)format, "h", &good), NULL);
        for (size_t i = 1; i <= good.calls; i++) {
            struct sink s = {.fail_at = i};
            CHECK_STATUS(run(&space, (enum xpl_export_format)format, "h", &s), XPL_ABORTED, NULL);
            CHECK_EQ(s.calls, i);
            xpl_buf_fini(&s.all);
        }
        xpl_buf_fini(&good.all);
    }
}

// A long trace comes in pieces; hosts of other names share no track.
static void test_pieces(void) {
    struct mk_plane p = mk_plane(1, "/host:CPU");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct xpl_buf line = mk_line(1, "thread");
    for (int64_t i = 0; i < 50000; i++)
        mk_plain(&p, &line, "event", i * 1000, 500);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    struct sink one = {.fail_at = 0}, two = {.fail_at = 0}, json = {.fail_at = 0};
    CHECK_OK(run(&space, XPL_EXPORT_PERFETTO, "one", &one), NULL);
    CHECK_OK(run(&space, XPL_EXPORT_PERFETTO, "two", &two), NULL);
    CHECK_OK(run(&space, XPL_EXPORT_CHROME, "one", &json), NULL);
    CHECK(one.all.n > 1 << 20 && one.most < 1 << 17 && json.most < 1 << 17);
    CHECK(one.all.n != two.all.n || memcmp(one.all.p, two.all.p, one.all.n) != 0);
    xpl_buf_fini(&one.all);
    xpl_buf_fini(&two.all);
    xpl_buf_fini(&json.all);
}

int main(void) {
    test_chrome();
    test_early();
    test_hosts();
    test_absolute();
    test_sink_fails();
    test_pieces();
    return 0;
}
