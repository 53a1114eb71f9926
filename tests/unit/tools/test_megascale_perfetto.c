// SPDX-License-Identifier: Apache-2.0
// The trace for Perfetto that megascale_stats gives, read back and shown as text.  Equality with
// XProf is shown by tests/parity/megascale_perfetto.py.
#include "analysis/tools/megascale/perfetto.h"

#include <stdio.h>

#include <zlib.h>

#include "analysis/perfetto/packet.h"
#include "analysis/wire/wire.h"
#include "tests/megascale_fixture.h"

enum { LIMIT = 1 << 24, MAX_NAMES = 200, MAX_TEXT = 1 << 17 };

static struct xpl_error err;

// ---- reading ----

struct reader {
    xpl_str_t names[MAX_NAMES], keys[MAX_NAMES]; // by iid
    struct xpl_buf text;
};

static void say(struct reader *r, const char *before, uint64_t v) {
    char piece[60];
    (void)snprintf(piece, sizeof piece, "%s%lld", before, (long long)v);
    xpl_buf_str(&r->text, xpl_str_from(piece));
}

static xpl_str_t text_of(xpl_bytes_t b) {
    return (xpl_str_t){(const char *)b.ptr, b.len};
}

static void read_interned(struct reader *r, xpl_bytes_t data) {
    struct xpl_wire w = xpl_wire_begin(data);
    struct xpl_field f, part;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        struct xpl_wire entry = xpl_wire_begin(f.len);
        uint64_t iid = 0;
        xpl_str_t text = {0};
        while (xpl_wire_next(&entry, &part) == XPL_WIRE_FIELD)
            if (part.num == 1)
                iid = part.u;
            else
                text = text_of(part.len);
        CHECK(iid > 0 && iid < MAX_NAMES);
        if (f.num == XPL_PF_INTERNED_EVENT_NAMES) r->names[iid] = text;
        if (f.num == XPL_PF_INTERNED_ARGUMENT_NAMES) r->keys[iid] = text;
    }
}

static void say_argument(struct reader *r, xpl_str_t key, uint64_t v) {
    xpl_buf_putc(&r->text, ' ');
    xpl_buf_str(&r->text, key);
    say(r, "=", v);
}

// Whole numbers that the profile does not say: arrows, and which copies are the last.
static void read_argument(struct reader *r, xpl_bytes_t argument) {
    enum { ARRAY = 12 };
    struct xpl_wire w = xpl_wire_begin(argument);
    struct xpl_field f, value;
    xpl_str_t key = {0};
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num == XPL_PF_ARGUMENT_NAME_IID) key = r->keys[f.u];
        if (!xpl_str_starts(key, XPL_STR("flow")) && !xpl_str_starts(key, XPL_STR("is_last")))
            continue;
        if (f.num == XPL_PF_ARGUMENT_INT) say_argument(r, key, f.u);
        if (f.num != ARRAY) continue;
        struct xpl_wire entry = xpl_wire_begin(f.len);
        CHECK(xpl_wire_next(&entry, &value) == XPL_WIRE_FIELD);
        say_argument(r, key, value.u);
    }
}

// "B7 1010000 send.1 flow_out=1": kind and track, time in ns, name, flows by argument and, behind
// ">", by id; of a counter the value.
static void read_event(struct reader *r, uint64_t ns, xpl_bytes_t event) {
    static const char kinds[] = "?BEIC";
    struct xpl_wire w = xpl_wire_begin(event), again = w;
    struct xpl_field f;
    uint64_t kind = 0, track = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num == XPL_PF_EVENT_TYPE) kind = f.u;
        if (f.num == XPL_PF_EVENT_TRACK) track = f.u;
    }
    CHECK(kind > 0 && kind < sizeof kinds - 1);
    xpl_buf_putc(&r->text, kinds[kind]);
    say(r, "", track);
    say(r, " ", ns);
    while (xpl_wire_next(&again, &f) == XPL_WIRE_FIELD) {
        double rate;
        if (f.num == XPL_PF_EVENT_NAME_IID) {
            xpl_buf_putc(&r->text, ' ');
            xpl_buf_str(&r->text, r->names[f.u]);
        }
        if (f.num == XPL_PF_EVENT_ARGUMENT) read_argument(r, f.len);
        if (f.num == XPL_PF_EVENT_FLOW) say(r, " >", f.u);
        if (f.num == XPL_PF_EVENT_COUNTER) say(r, " ", f.u);
        if (f.num == XPL_PF_EVENT_DOUBLE_COUNTER) {
            memcpy(&rate, &f.u, sizeof rate);
            say(r, " 1000*", (uint64_t)(rate * 1000 + 0.5));
        }
    }
    xpl_buf_putc(&r->text, '\n');
}

static void read_track(struct reader *r, xpl_bytes_t track) {
    struct xpl_wire w = xpl_wire_begin(track);
    struct xpl_field f;
    xpl_buf_str(&r->text, XPL_STR("track"));
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num == XPL_PF_TRACK_UUID) say(r, " ", f.u);
        if (f.num == XPL_PF_TRACK_PARENT) say(r, " in ", f.u);
        if (f.num != XPL_PF_TRACK_NAME) continue;
        xpl_buf_putc(&r->text, ' ');
        xpl_buf_str(&r->text, text_of(f.len));
    }
    xpl_buf_putc(&r->text, '\n');
}

static void read_packet(struct reader *r, xpl_bytes_t packet) {
    struct xpl_wire w = xpl_wire_begin(packet), again = w;
    struct xpl_field f;
    uint64_t ns = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num == 8) ns = f.u;
        if (f.num == 12) read_interned(r, f.len);
    }
    while (xpl_wire_next(&again, &f) == XPL_WIRE_FIELD) {
        if (f.num == 11) read_event(r, ns, f.len);
        if (f.num == 60) read_track(r, f.len);
    }
}

static xpl_bytes_t unpack(const struct xpl_buf *packed) {
    static uint8_t bytes[1 << 17];
    z_stream z = {.next_in = packed->p, .avail_in = (uInt)packed->n};
    z.next_out = bytes;
    z.avail_out = sizeof bytes;
    CHECK_EQ(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
    CHECK_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t n = z.total_out;
    (void)inflateEnd(&z);
    return (xpl_bytes_t){bytes, n};
}

static xpl_status_t trace(xpl_bytes_t profile, bool group_tiny, bool exact, size_t limit,
                          struct xpl_buf *out) {
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_megascale_perfetto_options how = {group_tiny, exact};
    xpl_buf_init(out, LIMIT);
    err = (struct xpl_error){0};
    return xpl_megascale_perfetto(profile, &how, &exec, limit, out, &err);
}

// The whole trace as text; the caller frees it.
static struct xpl_buf show(const struct xpl_buf *space, bool group_tiny, bool exact) {
    static struct reader r;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    struct xpl_field f;
    r = (struct reader){0};
    xpl_buf_init(&r.text, MAX_TEXT);
    CHECK_OK(trace((xpl_bytes_t){space->p, space->n}, group_tiny, exact, LIMIT, &out), &err);
    struct xpl_wire w = xpl_wire_begin(unpack(&out));
    enum xpl_wire_result got;
    while ((got = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        read_packet(&r, f.len);
    CHECK_EQ(got, XPL_WIRE_END);
    return r.text;
}

static bool has(const struct xpl_buf *text, const char *line) {
    char whole[200];
    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    return xpl_str_has((xpl_str_t){(const char *)text->p, text->n}, xpl_str_from(whole));
}

static void check_lines(const struct xpl_buf *text, const char *const *lines, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!has(text, lines[i]))
            fprintf(stderr, "no line \"%s\" in\n%.*s\n", lines[i], (int)text->n,
                    (const char *)text->p);
        CHECK(has(text, lines[i]));
    }
}
#define CHECK_LINES(text, lines) check_lines(text, lines, sizeof(lines) / sizeof *(lines))

// ---- tests ----

static void test_whole(const struct xpl_buf *space) {
    static const char *const lines[] = {
        "track 3 Outstanding Bytes RX in 2", "C3 1051000 4100", "C3 1071000 0",
        "track 4 Outstanding Bytes TX in 2", "C4 1041000 4100", "track 5 Bandwidth RX (Gbps) in 2",
        "C5 1051000 1000*1640", "C5 1071000 1000*0", "track 7 Megascale in 1", "C8 1012000 2",
        "C8 1162000 0", "C9 2012000 8192",
        // Arrows of the ops,
        "B13 1010000 send.1 flow_out=1 flow_out=2 flow_out=3", "E13 1015000 >1 >2 >3",
        "E13 1023000 >4 >5", "B13 1140000 send-done.1 flow_in=1 flow_in=11 >1 >11",
        "B13 1200000 recv-done.1 flow_out=15 flow_in=2 flow_in=4 >2 >4", "E13 1250000 >15",
        "I13 1250001 recv-done.1 END flow_in=15 flow_in=12 >15 >12",
        // and of the copies, which are the last ones of two executions.
        "track 14 Megascale in 11", "track 15 rdv_1 (200005) in 14",
        "B15 1013000 DeviceToHost START flow_in=3 >3",
        "B15 1014000 DeviceToHost END flow_out=11 is_last_instance=1 is_last_instance=1",
        "E15 1015000 >11", "B15 1100000 HostToDevice START flow_in=5 >5", "E15 1105999 >12",
        "B13 1130000 2 events are hidden"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = show(space, true, false);
    CHECK_LINES(&text, lines);
}

// XProf does not know what a recv is for.
static void test_exact(const struct xpl_buf *space) {
    static const char *const lines[] = {"B13 1200000 recv-done.1", "E13 1250000",
                                        "E13 1023000 >4 >5", "E15 1105999 >12",
                                        "B13 1140000 send-done.1 flow_in=1 flow_in=11 >1 >11"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = show(space, true, true);
    CHECK_LINES(&text, lines);
    CHECK(!xpl_str_has((xpl_str_t){(const char *)text.p, text.n}, XPL_STR("recv-done.1 END")));
}

static void test_tiny(const struct xpl_buf *space) {
    static const char *const lines[] = {"B13 1130000 tiny.1", "B13 1130000 tiny.2"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = show(space, false, false);
    CHECK_LINES(&text, lines);
    CHECK(!xpl_str_has((xpl_str_t){(const char *)text.p, text.n}, XPL_STR("hidden")));
}

// Devices of the host's plane are dealt to those of the profile, by number. Of two planes with one
// number each gets one, and the device has both; the remaining ones are not shown.
static void test_devices(void) {
    static const char *const keys[] = {"device_9_gid_c_1$^i0", "device_10_gid_d_1$^i0",
                                       "device_8_gid_b_1$^i1", "device_7_gid_a_1$^i0",
                                       "device_8_gid_b_1$^i0"};
    static const char *const lines[] = {"track 2 /device:TPU:1 in 1", "track 3 Megascale in 2",
                                        "track 4 a_1 (7) in 3",       "I4 3 work",
                                        "track 5 b_1 (8) in 3",       "I5 4 work",
                                        "track 6 b_1 (8) in 3",       "I6 2 work",
                                        "track 7 /device:TPU:4 in 1", "track 8 Megascale in 7",
                                        "track 9 c_1 (9) in 8"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct mk_plane p;
    for (int64_t i = 0; i < 3; i++) {
        mk_plane_begin(&p, i, i == 0 ? "/device:TPU:4" : "/device:TPU:1");
        mk_plane_end(&p, &space);
    }
    mk_plane_begin(&p, 9, "/device:CUSTOM:Megascale Trace");
    struct xpl_buf line = mk_line(1, "m");
    for (int64_t i = 0; i < 5; i++) {
        struct xpl_buf ev = mk_event(&p, "work", i * 1000, 0);
        mk_stat_str(&p, &ev, "graph_key", keys[i]);
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = show(&space, true, false);
    CHECK_LINES(&text, lines);
    CHECK(!xpl_str_has((xpl_str_t){(const char *)text.p, text.n}, XPL_STR("d_1")));
}

// A piece of a profile has an answer or is refused, and nothing is written then.
static void test_broken(const struct xpl_buf *space) {
    struct xpl_buf out;
    for (size_t n = 0; n < space->n; n++) {
        const xpl_status_t st = trace((xpl_bytes_t){space->p, n}, true, false, LIMIT, &out);
        CHECK(st == XPL_OK ? out.n >= 20 : st == XPL_DATA_LOSS && out.n == 0);
        xpl_buf_fini(&out);
    }
    for (size_t limit = 5000; limit < 100000; limit += 5000) {
        const xpl_status_t st = trace((xpl_bytes_t){space->p, space->n}, true, false, limit, &out);
        CHECK(st == XPL_OK ? limit > 5000 : st == XPL_RESOURCE_EXHAUSTED && out.n == 0);
        xpl_buf_fini(&out);
    }
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = megascale_fixture(2, true);
    test_whole(&space);
    test_exact(&space);
    test_tiny(&space);
    test_devices();
    test_broken(&space);
    return 0;
}
