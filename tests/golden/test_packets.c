// SPDX-License-Identifier: Apache-2.0
// The comparison of answers that are protobuf: the differences that it forgives, and those that it
// must not.
#include "tests/golden/packets.h"

#include "tests/wire_text.h"

static struct xpl_buf lines(const char *text, bool fractions) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bytes = mk_open();
    struct xpl_buf out;
    CHECK_STR(wt_fields(&bytes, text), "");
    xpl_buf_init(&out, 1 << 20);
    const xpl_bytes_t b = {bytes.p, bytes.n};
    CHECK(fractions ? packets_of_fractions(b, &out) : packets_of_trace(b, &out));
    return out;
}

static bool equal(bool fractions, const char *a, const char *b) {
    char why[600] = "";
    struct xpl_buf x = lines(a, fractions), y = lines(b, fractions);
    const bool ok = packets_equal(&x, &y, why, sizeof why);
    CHECK(ok == !why[0]);
    xpl_buf_fini(&x);
    xpl_buf_fini(&y);
    return ok;
}

// A packet with one event: its interned data and its event.
#define PACKET(interned, event) "1:{8:5 12:{" interned "} 11:{" event "}} "

static void test_traces(void) {
    static const char one[] = PACKET("2:{1:1 2:\"op\"} 3:{1:1 2:\"k\"} 3:{1:2 2:\"flow_in\"}",
                                     "9:1 11:7 10:1 4:{1:1 4:9} 4:{1:2 4:3}");
    // Fields, arguments, ids and numbers of flows may differ,
    CHECK(equal(false, one,
                PACKET("2:{1:8 2:\"op\"} 3:{1:9 2:\"flow_in\"} 3:{1:3 2:\"k\"}",
                       "4:{1:9 4:77} 4:{1:3 4:9} 10:8 9:1 11:7")));
    // names, values, kinds, tracks, times and which flow it is may not.
    CHECK(!equal(false, one,
                 PACKET("2:{1:1 2:\"no\"} 3:{1:1 2:\"k\"} 3:{1:2 2:\"flow_in\"}",
                        "9:1 11:7 10:1 4:{1:1 4:9} 4:{1:2 4:3}")));
    CHECK(!equal(false, one,
                 PACKET("2:{1:1 2:\"op\"} 3:{1:1 2:\"k\"} 3:{1:2 2:\"flow_in\"}",
                        "9:1 11:7 10:1 4:{1:1 4:8} 4:{1:2 4:3}")));
    CHECK(!equal(false, PACKET("", "9:1 11:7"), PACKET("", "9:2 11:7")));
    CHECK(!equal(false, PACKET("", "9:1 11:7"), PACKET("", "9:1 11:8")));
    CHECK(!equal(false, "1:{8:5 11:{9:1}}", "1:{8:6 11:{9:1}}"));
    CHECK(!equal(false, PACKET("", "9:1"), PACKET("", "9:1") PACKET("", "9:1")));
    CHECK(equal(false, PACKET("", "47:8 47:9") PACKET("", "47:8"),
                PACKET("", "47:3 47:1") PACKET("", "47:3")));
    CHECK(!equal(false, PACKET("", "47:8 47:9") PACKET("", "47:8"),
                 PACKET("", "47:8 47:9") PACKET("", "47:9")));
    CHECK(!equal(false, "1:{60:{1:1 2:\"a\" 8:{6:\"x\"}}}", "1:{60:{1:1 2:\"a\" 8:{6:\"y\"}}}"));
}

static void test_fractions(void) {
    static const char one[] = "1:{1:\"w\" 2:{1:{1:\"p\" 2:{1:\"p\" 2:\"\001\002\003\004\"}} "
                              "1:{1:\"q\" 2:{1:\"q\"}} 2:{1:\"h\" 2:{1:\"h\"}}}} 1:{1:\"v\" 2:{}}";
    CHECK(equal(true, one,
                "1:{1:\"v\" 2:{}} 1:{1:\"w\" 2:{2:{1:\"h\" 2:{1:\"h\"}} 1:{1:\"q\" 2:{1:\"q\"}} "
                "1:{1:\"p\" 2:{1:\"p\" 2:\"\001\002\003\004\"}}}}"));
    CHECK(!equal(true, one,
                 "1:{1:\"v\" 2:{}} 1:{1:\"w\" 2:{2:{1:\"h\" 2:{1:\"h\"}} 1:{1:\"q\" 2:{1:\"q\"}} "
                 "1:{1:\"p\" 2:{1:\"p\" 2:\"\001\002\003\005\"}}}}"));
    CHECK(!equal(true, one, "1:{1:\"v\" 2:{}}"));
    CHECK(!equal(true, "1:{1:\"v\" 2:{}}", "1:{1:\"w\" 2:{}}"));
}

static void test_broken(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1 << 20);
    const uint8_t cut[] = {0x0a, 5, 1};
    CHECK(!packets_of_trace((xpl_bytes_t){cut, sizeof cut}, &out));
    CHECK(!packets_of_fractions((xpl_bytes_t){cut, sizeof cut}, &out));
}

int main(void) {
    test_traces();
    test_fractions();
    test_broken();
    return 0;
}
