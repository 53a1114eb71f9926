// SPDX-License-Identifier: Apache-2.0
// Grouping of profiles that are made to take long: many links of one kind, or one very long name.
#include "analysis/grouping/flows.h"
#include "tests/processor_time.h"
#include "tests/unit/grouping/groups_fixture.h"

enum { MANY = 100000 };

// Ends the space; its groups must not take long.
static struct built built_soon(struct space *s) {
    const double before = processor_s();
    const struct built b = end_and_build(s);
    const double s_taken = processor_s() - before;
    if (s_taken >= 2) fprintf(stderr, "%.1f s\n", s_taken);
    CHECK(s_taken < 2);
    return b;
}

// Each root looked for itself among the other consumers.
static void test_consuming_roots(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    for (int i = 0; i < MANY; i++)
        event(&s, "train", 2 * i, 2 * i + 1, "_r=1 _ct=2 _c=1");
    event(&s, "train", 2 * MANY, 2 * MANY + 9, "_r=1");
    event(&s, "p", 2 * MANY + 1, 2 * MANY + 2, "_pt=2 _p=1");
    XPL_AUTO(close_it) struct built b = built_soon(&s);
    CHECK(!xpl_groups_empty(b.groups));
}

// At each producer all that are open were looked at.
static void test_nested(void) {
    struct space s;
    begin_with_line(&s, "/host:CPU", 1, "main");
    for (int i = 0; i < MANY; i++) {
        event(&s, "c", 2 * i, 6 * MANY - 2 * i, "_ct=2 _c=1");
        event(&s, "p", 2 * i, 2 * i + 1, "_pt=2 _p=2");
    }
    end_line(&s);
    begin_line(&s, 2, "pool");
    event(&s, "train", 0, 9, "_r=1 _ct=2 _c=2");
    XPL_AUTO(close_it) struct built b = built_soon(&s);
    CHECK(!xpl_groups_empty(b.groups));
}

// What the hash of links makes `y` of.
static uint64_t unmix(uint64_t y) {
    uint64_t inverse = UINT64_C(0xd6e8feb86659fd93);
    for (int i = 0; i < 6; i++) // twice as many right bits each time
        inverse *= 2 - UINT64_C(0xd6e8feb86659fd93) * inverse;
    y ^= y >> 32, y *= inverse;
    y ^= y >> 32, y *= inverse;
    return y ^ y >> 32;
}

// Ids of launches of which a hash without a secret has the same low bits.
static void test_launches(void) {
    struct space s;
    char st[64];
    begin_with_line(&s, "/host:CPU", 1, "main");
    event(&s, "train", 0, 2 * MANY, "_r=1");
    for (int i = 0; i < MANY; i++) {
        const int64_t id = (int64_t)unmix((uint64_t)i << 40);
        (void)snprintf(st, sizeof st, "correlation_id=%" PRId64, id);
        event(&s, "launch", 2 * i, 2 * i + 1, st);
    }
    end_line(&s);
    end_plane(&s);
    begin_plane(&s, "/device:GPU:0");
    begin_line(&s, 1, "stream");
    (void)snprintf(st, sizeof st, "correlation_id=%" PRId64, (int64_t)unmix(UINT64_C(5) << 40));
    event(&s, "k", 0, 9, st);
    XPL_AUTO(close_it) struct built b = built_soon(&s);
    expect_line(&b, 1, 0, "0c");
}

// The name of the host goes into the ids of all flows, but is read once.
static void test_host_name(void) {
    enum { LONG = 8 << 20, LINES = 1000 };
    struct space s;
    char *const name = malloc(LONG);
    CHECK(name);
    memset(name, 'n', LONG);
    begin(&s);
    mk_len(&s.bytes, 4, name, LONG);
    free(name);
    begin_plane(&s, "/host:CPU");
    begin_line(&s, 1, "main");
    event(&s, "p", 0, 1, "_pt=2 _p=1");
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    struct xpl_flow_reader r;
    const double before = processor_s();
    for (int i = 0; i < LINES; i++) {
        xpl_flow_reader_init(&r, b.groups, &b.xs->planes[0].lines[0]);
        CHECK(r.any);
    }
    CHECK(is_within(before, 2));
}

// A step that ends before it begins.  All later events were compared with all steps.
static void test_step_that_wraps(void) {
    struct space s;
    begin_with_line(&s, "/device:TPU:0", 1, "Steps");
    event(&s, "0", 10, 9, "");
    for (int i = 1; i < MANY; i++)
        event(&s, "1", 10 * i, 10 * i + 1, "");
    end_line(&s);
    begin_line(&s, 2, "XLA Modules");
    for (int i = 0; i < MANY; i++)
        event(&s, "jit_f(1)", 10 * MANY + i, 10 * MANY + i + 1, "");
    XPL_AUTO(close_it) struct built b = built_soon(&s);
    struct xpl_event_cursor c;
    struct xpl_event ev;
    struct xpl_group_cursor *g;
    struct xpl_error err = {0};
    const struct xpl_line *const modules = &b.xs->planes[0].lines[1];
    const double before = processor_s();
    CHECK_OK(xpl_group_cursor_new(b.groups, modules, &b.arena, &g, &err), &err);
    xpl_events_begin(&c, modules);
    while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
        struct xpl_event_group eg;
        xpl_group_cursor_next(g, &ev, &eg);
        CHECK(!eg.has_group);
    }
    CHECK(is_within(before, 2));
}

static double tpus_s(int n) {
    enum { EACH = 60 };
    struct space s;
    char name[32];
    begin_with_line(&s, "/host:CPU", 1, "main");
    for (int i = 0; i < 100; i++)
        event(&s, "p", i, i + 1, "_pt=2 _p=1 iter_num=1");
    end_line(&s);
    end_plane(&s);
    for (int t = 0; t < n; t++) {
        (void)snprintf(name, sizeof name, "/device:TPU:%d", t);
        begin_plane(&s, name);
        begin_line(&s, 1, "Steps");
        for (int i = 0; i < EACH; i++)
            event(&s, "0", 10 * i, 10 * i + 1, "_ct=2 _c=1");
        if (t == n - 1) break;
        end_line(&s);
        end_plane(&s);
    }
    const double before = processor_s();
    XPL_AUTO(close_it) struct built b = end_and_build(&s);
    const double taken = processor_s() - before;
    CHECK_EQ(b.xs->n_planes, n + 1);
    return taken;
}

// Each TPU looked at the consumers of all the others.
static void test_tpus(void) {
    CHECK(is_done_soon(tpus_s, 8000, 2));
}

int main(void) {
    test_consuming_roots();
    test_nested();
    test_launches();
    test_host_name();
    test_step_that_wraps();
    test_tpus();
    return 0;
}
