// SPDX-License-Identifier: Apache-2.0
// What names in MegaScale's traces say.
#include "analysis/tools/megascale/names.h"

#include "tests/check.h"

static void test_ops(void) {
    static const struct {
        const char *name;
        enum xpl_mgtrace_op op;
        int64_t number;
    } rows[] = {
        {"send", XPL_MGTRACE_OP_SEND, 0},
        {"send.12", XPL_MGTRACE_OP_SEND, 12},
        {"send.", XPL_MGTRACE_OP_SEND, 0},
        {"send7", XPL_MGTRACE_OP_SEND, 0},
        {"send-done.3", XPL_MGTRACE_OP_SEND_DONE, 3},
        {"recv.9223372036854775807", XPL_MGTRACE_OP_RECV, INT64_MAX},
        {"recv.9223372036854775808", XPL_MGTRACE_OP_RECV, 0},
        {"recv-done", XPL_MGTRACE_OP_RECV_DONE, 0},
        {"", XPL_MGTRACE_OP_OTHER, 0},
        {"sen", XPL_MGTRACE_OP_OTHER, 0},
        {"sends", XPL_MGTRACE_OP_OTHER, 0},
        {"send-done-1", XPL_MGTRACE_OP_OTHER, 0},
        {"send.1.2", XPL_MGTRACE_OP_OTHER, 0},
        {"copy.1", XPL_MGTRACE_OP_OTHER, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_EQ(xpl_mgtrace_op_of(xpl_str_from(rows[i].name)), rows[i].op);
        CHECK_EQ(xpl_mgtrace_op_number(xpl_str_from(rows[i].name)), rows[i].number);
    }
    CHECK_STR(xpl_mgtrace_attribute(XPL_STR("%x, _xla_host_transfer_rendezvous=\"a b\", c=\"d\"")),
              "a b");
    CHECK_STR(xpl_mgtrace_attribute(XPL_STR("_xla_host_transfer_rendezvous=\"a")), "");
    CHECK_STR(xpl_mgtrace_attribute(XPL_STR("rendezvous=\"a\"")), "");
}

static void test_graphs(void) {
    static const struct {
        const char *text, *found; // NULL: not there
        bool whole;
    } rows[] = {
        {"device_1_gid_rdv_1", "rdv_1", true},
        {"device_1_gid_a.b-C_2_30", "a.b-C_2_30", true},
        {"device_1_gid_rdv_1$l^i0", "rdv_1", false},
        {"xdevice_1_gid_rdv_1", "rdv_1", false},
        {"device_1_gid_rdv_1x", "rdv_1", false},
        {"device_x device_12_gid_q_3", "q_3", false},
        {"device_1_gid_ device_2_gid_q_3", "q_3", false},
        {"device_1_gid_rdv", NULL, false},
        {"device_1_gid__1", NULL, false},
        {"device__gid_rdv_1", NULL, false},
        {"device_1", NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xpl_mgtrace_graph g;
        CHECK_EQ(xpl_mgtrace_graph_in(xpl_str_from(rows[i].text), &g), rows[i].found != NULL);
        if (rows[i].found) CHECK_STR(g.rendezvous, rows[i].found);
        CHECK_EQ(xpl_mgtrace_is_graph(xpl_str_from(rows[i].text), &g), rows[i].whole);
    }
}

static void test_keys(void) {
    int64_t n;
    CHECK(xpl_mgtrace_key_device(XPL_STR("a device_7_gid_"), &n) && n == 7);
    CHECK(!xpl_mgtrace_key_device(XPL_STR("device_9223372036854775808_gid_"), &n));
    CHECK(!xpl_mgtrace_key_device(XPL_STR("device_7"), &n));
    CHECK(xpl_mgtrace_tpu_number(XPL_STR("/device:TPU:012"), &n) && n == 12);
    CHECK(!xpl_mgtrace_tpu_number(XPL_STR("/device:TPU:99999999999999999999"), &n));
    const struct {
        const char *key, *name;
        int64_t device, iteration;
    } rows[] = {
        {"device_7_gid_rdv_1$l^i12x", "rdv_1", 7, 12},
        {"device_7_gid_a b$^i1^i2^i", "a b", 7, 2},
        {"device_7_gid_rdv$^i9223372036854775808", "rdv", 7, 0},
        {"device_7_gid_rdv_1$l", "", 0, 0},
        {"device_7_gid_rdv_1$l\n^i3", "", 0, 0},
        {"device_7_gid_$^i3", "", 0, 0},
        {"xdevice_7_gid_rdv_1$^i3", "", 0, 0},
        {"", "", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct xpl_mgtrace_place p = xpl_mgtrace_key_place(xpl_str_from(rows[i].key));
        CHECK_STR(p.name, rows[i].name);
        CHECK_EQ(p.device, rows[i].device);
        CHECK_EQ(p.iteration, rows[i].iteration);
    }
}

static void test_buffers(void) {
    const xpl_str_t list = XPL_STR("ss1->20d|$c0=4096 s3->d|$c1=5,s4->5d|$c77=6s7->8d|$c=1");
    struct xpl_mgtrace_buffer b;
    size_t at = 0;
    CHECK(xpl_mgtrace_next_buffer(list, &at, &b) && b.from == 1 && b.to == 20 && b.bytes == 4096);
    CHECK(xpl_mgtrace_next_buffer(list, &at, &b) && b.from == 4 && b.to == 5 && b.bytes == 6);
    CHECK(!xpl_mgtrace_next_buffer(list, &at, &b));
    // A number that is too large ends the list.
    at = 0;
    CHECK(
        !xpl_mgtrace_next_buffer(XPL_STR("s1->2d|$c0=99999999999999999999 s1->2d|$c0=1"), &at, &b));
}

int main(void) {
    test_ops();
    test_graphs();
    test_keys();
    test_buffers();
    return 0;
}
