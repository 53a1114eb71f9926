// SPDX-License-Identifier: Apache-2.0
// The fast paths over statistics agree with the slow ones, on random bytes and on real profiles.
#include "analysis/xplane/fast_stat.h"

#include <string.h>

#include "analysis/xplane/event_read.h"
#include "analysis/xplane/metadata.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/data_file.h"

static uint32_t state = 11;
static uint32_t roll(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 4) * n >> 28);
}

// How many fields of a message state an id, and the first of them; false when it is malformed.
static bool find_ids(xpl_bytes_t message, unsigned *ret_n, uint64_t *ret_first) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    *ret_n = 0;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == XSTAT_MD_ID && f.type == XPL_WIRE_VARINT && (*ret_n)++ == 0) *ret_first = f.u;
    return r == XPL_WIRE_END;
}

struct counts {
    uint64_t messages, valid, fast_ids, heads, fast_heads;
};

// One statistic; `limit` ends the input.
static void check_message(xpl_bytes_t message, const uint8_t *limit, struct counts *n) {
    struct xpl_raw_stat slow, fast;
    uint32_t id;
    uint64_t first = 0;
    unsigned n_ids;
    const bool valid = xpl_raw_stat_slow(message, &slow);
    CHECK_EQ(xpl_raw_stat_read(message, limit, &fast), valid);
    CHECK_EQ(find_ids(message, &n_ids, &first), valid);
    n->messages++;
    n->valid += valid;
    if (!valid) return;
    CHECK_EQ(fast.md_id, slow.md_id);
    CHECK_EQ(fast.kind, slow.kind);
    if (slow.kind == XPL_VALUE_STR || slow.kind == XPL_VALUE_BYTES) {
        CHECK_EQ(fast.str.len, slow.str.len);
        CHECK(fast.str.len == 0 || fast.str.ptr == slow.str.ptr);
    } else if (slow.kind != XPL_VALUE_NONE) {
        CHECK_EQ(fast.u, slow.u);
    }
    if (!xpl_fast_stat_id(message, &id)) return;
    n->fast_ids++;
    CHECK(n_ids > 0);
    CHECK_EQ(id, first);
    if (n_ids == 1) CHECK_EQ(id, slow.md_id);
}

// The list of statistics in [p, end), as far as it is well-formed.
static void check_list(const uint8_t *p, const uint8_t *end, uint32_t field, const uint8_t *limit,
                       struct counts *n) {
    for (;;) {
        struct xpl_fast_stat s = {0};
        const uint8_t *next = p;
        xpl_bytes_t message;
        const bool fast = xpl_fast_stat_head(p, end, (uint8_t)(field << 3 | XPL_WIRE_LEN), &s);
        const enum xpl_wire_result r = xpl_next_message(&next, end, field, &message);
        n->heads += p != end;
        n->fast_heads += fast;
        if (fast) {
            uint32_t id;
            CHECK_EQ(r, XPL_WIRE_FIELD);
            CHECK(p + s.len == next);
            CHECK(xpl_fast_stat_id(message, &id));
            CHECK_EQ(s.id, id);
            CHECK(s.value > message.ptr + 1 && s.value <= next);
            CHECK_EQ(message.ptr[0], XSTAT_MD_ID << 3);
        }
        if (r != XPL_WIRE_FIELD) return;
        check_message(message, limit, n);
        p = next;
    }
}

// ---- random bytes ----

static size_t put_varint(uint8_t *to, uint64_t v) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

static uint64_t random_value(void) {
    const uint64_t v =
        (uint64_t)roll(1u << 28) << 36 ^ (uint64_t)roll(1u << 28) << 14 ^ roll(1u << 14);
    return v >> roll(64);
}

// A field of a statistic, seldom of a type that it does not have.
static size_t put_field(uint8_t *to, unsigned num) {
    static const uint8_t types[] = {[XSTAT_DOUBLE] = XPL_WIRE_I64,
                                    [XSTAT_STR] = XPL_WIRE_LEN,
                                    [XSTAT_BYTES] = XPL_WIRE_LEN,
                                    [XSTAT_REF] = XPL_WIRE_VARINT};
    unsigned type = num < sizeof types ? types[num] : XPL_WIRE_VARINT;
    if (roll(50) == 0) type = roll(6);
    size_t n = put_varint(to, num << 3 | type);
    switch (type) {
        case XPL_WIRE_VARINT: return n + put_varint(to + n, random_value());
        case XPL_WIRE_I64: return n + 8;
        case XPL_WIRE_I32: return n + 4;
        case XPL_WIRE_LEN: {
            const uint32_t len = roll(10) ? roll(20) : roll(200);
            n += put_varint(to + n, len);
            return n + len;
        }
        default: return n;
    }
}

// Mostly as writers write them: an id, then a value.
static size_t put_stat(uint8_t *to) {
    size_t n = 0;
    if (roll(20)) {
        to[n++] = XSTAT_MD_ID << 3;
        n += put_varint(to + n, roll(5) ? roll(300) : roll(40000));
    }
    if (roll(20)) n += put_field(to + n, 2 + roll(6));
    while (roll(12) == 0)
        n += put_field(to + n, 1 + roll(17));
    return n;
}

// Bytes that end where their block ends, so that a read beyond them shows under ASan.
static void check_random(struct counts *n) {
    static uint8_t list[8192], stat[4096];
    size_t len = 0;
    for (uint32_t i = 0, count = roll(6); i < count; i++) {
        memset(stat, (int)roll(256), sizeof stat);
        const size_t size = put_stat(stat);
        list[len++] = XPL_TAG_FIELD4_LEN;
        len += put_varint(list + len, size);
        memcpy(list + len, stat, size);
        len += size;
    }
    for (uint32_t i = roll(3) ? 0 : 1 + roll(3); i > 0 && len > 0; i--)
        list[roll((uint32_t)len)] = (uint8_t)roll(256);
    if (roll(8) == 0) len = roll((uint32_t)len + 1);
    uint8_t *const exact = malloc(len ? len : 1);
    CHECK(exact);
    if (len) memcpy(exact, list, len);
    check_list(exact, exact + len, XEVENT_STATS, exact + len, n);
    check_message((xpl_bytes_t){exact, len}, exact + len, n);
    free(exact);
}

static void test_random(void) {
    struct counts n = {0};
    for (int i = 0; i < 100000; i++)
        check_random(&n);
    // Both sides of every branch are met.
    CHECK(n.valid > n.messages / 4 && n.valid < n.messages);
    CHECK(n.fast_ids > n.messages / 4 && n.fast_ids < n.valid);
    CHECK(n.fast_heads > n.heads / 4 && n.fast_heads < n.heads);
}

// ---- real profiles ----

// The statistics of an event as the public cursor reads them, against the raw ones.
static void check_cursor(const struct xpl_event *ev) {
    const struct xpl_plane *const plane = ev->stats.plane;
    struct xpl_stats it = ev->stats;
    struct xpl_stat s;
    const uint8_t *p = ev->stats.p;
    xpl_bytes_t message;
    while (xpl_stats_next(&it, &s) == XPL_WIRE_FIELD) {
        struct xpl_raw_stat slow;
        CHECK_EQ(xpl_next_message(&p, ev->stats.end, XEVENT_STATS, &message), XPL_WIRE_FIELD);
        CHECK(xpl_raw_stat_slow(message, &slow));
        CHECK(s.md == &plane->stat_md[xpl_stat_md_at(plane, slow.md_id)]);
        CHECK_EQ(s.kind, slow.kind);
    }
    CHECK_EQ(xpl_next_message(&p, ev->stats.end, XEVENT_STATS, &message), XPL_WIRE_END);
}

static void check_profile(const char *name) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = read_data_file(name);
    const xpl_bytes_t bytes = {b.p, b.n};
    const uint8_t *const limit = b.p + b.n;
    struct counts n = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    struct xpl_xspace *xs;
    CHECK_EQ(xpl_xspace_open(bytes, &arena, NULL, &xs, NULL), XPL_OK);
    for (uint32_t i = 0; i < xs->n_planes; i++)
        for (uint32_t k = 0; k < xs->planes[i].n_lines; k++) {
            struct xpl_event_cursor c = xpl_events_of(&xs->planes[i].lines[k]);
            struct xpl_event ev;
            while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
                check_list(ev.stats.p, ev.stats.end, XEVENT_STATS, limit, &n);
                check_cursor(&ev);
            }
        }
    CHECK(n.messages > 1000);
    CHECK_EQ(n.valid, n.messages);
    CHECK(n.fast_heads > n.heads * 9 / 10); // the usual order is what writers write
}

int main(void) {
    test_random();
    check_profile("logdir/accel/plugins/profile/gpu_multi_worker/gpu_multi_worker.xplane.pb");
    check_profile("logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb");
    check_profile("logdir/cpu/plugins/profile/tf_keras_tensorboard/vm.xplane.pb");
    return 0;
}
