// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/packets.h"
#include "base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/wire/wire.h"

enum { MAX_IIDS = 4096, MAX_FLOWS = 4096, MAX_ARGUMENTS = 64, MAX_LISTS = 256, LIMIT = 1 << 24 };
// Of TracePacket, TrackDescriptor, TrackEvent and DebugAnnotation:
enum { PACKET_NS = 8, PACKET_EVENT = 11, PACKET_INTERNED = 12, PACKET_TRACK = 60 };
enum { TRACK_COUNTER = 8 };
enum {
    EVENT_ARGUMENT = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_COUNT = 30,
    EVENT_RATE = 44,
    EVENT_FLOW = 47
};
enum { ARGUMENT_NAME = 1, ARGUMENT_INT = 4, ARGUMENT_ARRAY = 12, ARGUMENT_TEXT = 17 };
static const uint32_t kPools[] = {2, 3, 29}; // of InternedData: names, arguments, texts
enum pool { NAMES, KEYS, TEXTS, POOLS };

struct reader {
    xpl_str_t interned[POOLS][MAX_IIDS];
    uint64_t flows[MAX_FLOWS]; // in the order in which they are met
    size_t n_flows;
    struct xpl_buf *out;
};

static xpl_str_t text_of(xpl_bytes_t b) {
    return (xpl_str_t){(const char *)b.ptr, b.len};
}

static void put_number(struct xpl_buf *b, uint32_t field, uint64_t v) {
    xpl_buf_printf(b, " %" PRIu32 "=%" PRIu64, field, v);
}

// ---- lines in order ----

static int by_text(const void *a, const void *b) {
    const struct xpl_buf *const x = a, *const y = b;
    return xpl_str_cmp((xpl_str_t){(const char *)x->p, x->n},
                       (xpl_str_t){(const char *)y->p, y->n});
}

static void put_sorted(struct xpl_buf *to, struct xpl_buf *v, size_t n) {
    if (n > 1) qsort(v, n, sizeof *v, by_text);
    for (size_t i = 0; i < n; i++) {
        xpl_buf_put(to, v[i].p, v[i].n);
        xpl_buf_fini(&v[i]);
    }
}

// ---- events ----

static uint64_t flow_number(struct reader *r, uint64_t id) {
    size_t i = 0;
    while (i < r->n_flows && r->flows[i] != id)
        i++;
    if (i == r->n_flows && i < MAX_FLOWS) r->flows[r->n_flows++] = id;
    return i + 1;
}

static xpl_str_t interned(const struct reader *r, enum pool pool, uint64_t iid) {
    return iid < MAX_IIDS ? r->interned[pool][iid] : XPL_STR("?");
}

// The value of an argument, or of each entry of one that is an array.
static void put_values(struct reader *r, xpl_bytes_t argument, bool flow, struct xpl_buf *to) {
    struct xpl_wire w = xpl_wire_begin(argument);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num == ARGUMENT_NAME) continue;
        if (f.num == ARGUMENT_ARRAY) {
            xpl_buf_printf(to, " [");
            put_values(r, f.len, flow, to);
        } else if (f.num == ARGUMENT_TEXT) {
            xpl_buf_printf(to, " '");
            xpl_buf_str(to, interned(r, TEXTS, f.u));
        } else {
            put_number(to, f.num, flow && f.num == ARGUMENT_INT ? flow_number(r, f.u) : f.u);
        }
    }
}

static xpl_str_t key_of(const struct reader *r, xpl_bytes_t argument) {
    struct xpl_wire w = xpl_wire_begin(argument);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == ARGUMENT_NAME) return interned(r, KEYS, f.u);
    return XPL_STR("");
}

// Numbers the flows that an event names, those of one key before those of the next.
static void number_flows(struct reader *r, xpl_bytes_t event) {
    const xpl_str_t keys[] = {XPL_STR("flow_in"), XPL_STR("flow_out")};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf nowhere = xpl_buf_of(LIMIT);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct xpl_wire w = xpl_wire_begin(event);
        struct xpl_field f;
        while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
            if (f.num == EVENT_ARGUMENT && xpl_str_eq(key_of(r, f.len), keys[i]))
                put_values(r, f.len, true, &nowhere);
    }
}

static void put_argument(struct reader *r, xpl_bytes_t argument, struct xpl_buf *to) {
    const xpl_str_t key = key_of(r, argument);
    xpl_buf_printf(to, " {%.*s:", XPL_STR_FMT(key));
    if (!xpl_str_eq(key, XPL_STR("description")))
        put_values(r, argument, xpl_str_starts(key, XPL_STR("flow_")), to);
    xpl_buf_putc(to, '}');
}

// Fields of one number, in their order.
static void put_fields(struct reader *r, xpl_bytes_t event, uint32_t num) {
    struct xpl_wire w = xpl_wire_begin(event);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != num) continue;
        if (num == EVENT_NAME) {
            xpl_buf_putc(r->out, ' ');
            xpl_buf_str(r->out, interned(r, NAMES, f.u));
        } else {
            put_number(r->out, num, num == EVENT_FLOW ? flow_number(r, f.u) : f.u);
        }
    }
}

static bool put_event(struct reader *r, uint64_t ns, xpl_bytes_t event) {
    static const uint32_t nums[] = {EVENT_TYPE,  EVENT_TRACK, EVENT_NAME,
                                    EVENT_COUNT, EVENT_RATE,  EVENT_FLOW};
    struct xpl_buf arguments[MAX_ARGUMENTS];
    size_t n = 0;
    struct xpl_wire w = xpl_wire_begin(event);
    struct xpl_field f;
    number_flows(r, event);
    xpl_buf_printf(r->out, "event %" PRIu64, ns);
    for (size_t i = 0; i < sizeof nums / sizeof *nums; i++)
        put_fields(r, event, nums[i]);
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != EVENT_ARGUMENT || n == MAX_ARGUMENTS) continue;
        xpl_buf_init(&arguments[n], LIMIT);
        put_argument(r, f.len, &arguments[n++]);
    }
    put_sorted(r->out, arguments, n);
    xpl_buf_putc(r->out, '\n');
    return n < MAX_ARGUMENTS && r->n_flows < MAX_FLOWS;
}

// ---- packets ----

static bool read_entry(struct reader *r, enum pool pool, xpl_bytes_t entry) {
    struct xpl_wire w = xpl_wire_begin(entry);
    struct xpl_field f;
    uint64_t iid = MAX_IIDS;
    xpl_str_t text = XPL_STR("");
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == 1)
            iid = f.u;
        else
            text = text_of(f.len);
    if (iid >= MAX_IIDS) return false;
    r->interned[pool][iid] = text;
    return true;
}

static bool read_interned(struct reader *r, xpl_bytes_t data) {
    struct xpl_wire w = xpl_wire_begin(data);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        for (enum pool pool = NAMES; pool < POOLS; pool++)
            if (f.num == kPools[pool] && !read_entry(r, pool, f.len)) return false;
    return true;
}

static void put_message(struct xpl_buf *to, xpl_bytes_t message, uint32_t inner) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) {
            put_number(to, f.num, f.u);
            continue;
        }
        xpl_buf_printf(to, " %" PRIu32 "=", f.num);
        if (f.num == inner)
            put_message(to, f.len, 0);
        else
            xpl_buf_str(to, text_of(f.len));
    }
}

static bool put_packet(struct reader *r, xpl_bytes_t packet) {
    struct xpl_wire w = xpl_wire_begin(packet), again = w;
    struct xpl_field f;
    uint64_t ns = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num == PACKET_NS) ns = f.u;
        if (f.num == PACKET_INTERNED && !read_interned(r, f.len)) return false;
    }
    while (xpl_wire_next(&again, &f) == XPL_WIRE_FIELD) {
        if (f.num == PACKET_EVENT && !put_event(r, ns, f.len)) return false;
        if (f.num != PACKET_TRACK) continue;
        xpl_buf_str(r->out, XPL_STR("track"));
        put_message(r->out, f.len, TRACK_COUNTER);
        xpl_buf_putc(r->out, '\n');
    }
    return true;
}

bool packets_of_trace(xpl_bytes_t trace, struct xpl_buf *ret) {
    struct reader *const r = calloc(1, sizeof *r);
    struct xpl_wire w = xpl_wire_begin(trace);
    struct xpl_field f;
    enum xpl_wire_result got = XPL_WIRE_MALFORMED;
    if (!r) return false;
    r->out = ret;
    bool ok = true;
    while (ok && (got = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        ok = f.num == 1 && f.type == XPL_WIRE_LEN && put_packet(r, f.len);
    free(r);
    return ok && got == XPL_WIRE_END && !ret->failed;
}

// ---- fractions ----

// An entry of a map: *ret_key, and its value.
static xpl_bytes_t read_pair(xpl_bytes_t entry, xpl_str_t *ret_key) {
    struct xpl_wire w = xpl_wire_begin(entry);
    struct xpl_field f;
    xpl_bytes_t value = {NULL, 0};
    *ret_key = XPL_STR("");
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == 1)
            *ret_key = text_of(f.len);
        else
            value = f.len;
    return value;
}

// "WORD: 1 PLANE NAME 3f800000 ...": 1 is the map of planes, 2 that of hosts.
static void put_list(struct xpl_buf *to, xpl_str_t word, uint32_t map, xpl_bytes_t entry) {
    xpl_str_t key;
    struct xpl_wire w = xpl_wire_begin(read_pair(entry, &key));
    struct xpl_field f;
    xpl_buf_str(to, word);
    xpl_buf_printf(to, ": %" PRIu32 " ", map);
    xpl_buf_str(to, key);
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        xpl_buf_putc(to, ' ');
        if (f.num == 1) xpl_buf_str(to, text_of(f.len));
        for (size_t i = 0; f.num != 1 && i < f.len.len; i++)
            xpl_buf_printf(to, i % 4 ? "%02x" : " %02x", f.len.ptr[i]);
    }
    xpl_buf_putc(to, '\n');
}

bool packets_of_fractions(xpl_bytes_t results, struct xpl_buf *ret) {
    struct xpl_buf lists[MAX_LISTS];
    size_t n = 0;
    struct xpl_wire w = xpl_wire_begin(results);
    struct xpl_field f, entry;
    enum xpl_wire_result got;
    while ((got = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD && n + 1 < MAX_LISTS) {
        xpl_str_t word;
        struct xpl_wire maps = xpl_wire_begin(read_pair(f.len, &word));
        xpl_buf_init(&lists[n], LIMIT);
        xpl_buf_str(&lists[n], word); // also one without details
        xpl_buf_putc(&lists[n++], '\n');
        while (xpl_wire_next(&maps, &entry) == XPL_WIRE_FIELD && n < MAX_LISTS) {
            xpl_buf_init(&lists[n], LIMIT);
            put_list(&lists[n++], word, entry.num, entry.len);
        }
    }
    put_sorted(ret, lists, n);
    return got == XPL_WIRE_END && n < MAX_LISTS && !ret->failed;
}

// ---- both ----

static xpl_str_t line_at(const struct xpl_buf *b, size_t *at) {
    const xpl_str_t all = {(const char *)b->p, b->n};
    const size_t end = xpl_str_find(all, XPL_STR("\n"), *at);
    const xpl_str_t line = xpl_str_sub(all, *at, end == SIZE_MAX ? SIZE_MAX : end - *at);
    *at = end == SIZE_MAX ? b->n : end + 1;
    return line;
}

bool packets_equal(const struct xpl_buf *expected, const struct xpl_buf *got, char *why,
                   size_t why_size) {
    size_t i = 0, k = 0, number = 1;
    for (; i < expected->n || k < got->n; number++) {
        const xpl_str_t a = line_at(expected, &i), b = line_at(got, &k);
        if (xpl_str_eq(a, b)) continue;
        (void)snprintf(why, why_size, "packet %zu: %.*s instead of %.*s", number,
                       (int)(b.len < 250 ? b.len : 250), b.ptr ? b.ptr : "",
                       (int)(a.len < 250 ? a.len : 250), a.ptr ? a.ptr : "");
        return false;
    }
    return true;
}
