// SPDX-License-Identifier: Apache-2.0
// An HloProto by the names of its fields: protobuf's text format as XProf prints it, and JSON; what
// of messages out of order counts; what ends it.
#include "analysis/hlo/proto/print.h"
#include "tests/check.h"
#include "tests/wire_text.h"

static struct xpl_error err;

static xpl_status_t print(const struct xpl_buf *proto, enum xpl_hlo_proto_form form,
                          struct xpl_exec *exec, size_t limit, struct xpl_buf *out) {
    struct xpl_arena a;
    err = (struct xpl_error){0};
    xpl_arena_init(&a, 1 << 26);
    xpl_buf_init(out, limit);
    const xpl_status_t st =
        xpl_hlo_proto_print((xpl_bytes_t){proto->p, proto->n}, form, exec, &a, out, &err);
    xpl_arena_fini(&a);
    return st;
}

static void expect(const char *fields, enum xpl_hlo_proto_form form, const char *expected) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_buf proto = wt_message(fields), out;
    CHECK_OK(print(&proto, form, &exec, 1 << 20, &out), &err);
    CHECK_BYTES(out.p, out.n, expected, strlen(expected));
    xpl_buf_fini(&proto);
    xpl_buf_fini(&out);
}

// As XProf prints it.
static void test_pbtxt(void) {
    const enum xpl_hlo_proto_form p = XPL_HLO_PROTO_PBTXT;
    expect("", p, "");
    expect("1:{}", p, "hlo_module {\n}\n");
    expect("3:{1:{1:0 2:8}} 1:{6:0 1:\"a\\011\\047b\\303\\251\"}", p,
           "hlo_module {\n  name: \"a\\t\\'b\\303\\251\"\n}\n"
           "buffer_assignment {\n  logical_buffers {\n    size: 8\n  }\n}\n");
    // A name that is given twice: the last counts; a message in two pieces is one; a zero is none,
    // but for fields whose presence is known; numbers without a name stay numbers; unknown fields
    // and fields of other types are left out.
    expect("1:{1:\"a\" 5:7 4:{3:\"x\"} 1:\"b\" 4:{3:\"y\"} 200:5 11:\"no bool\" 23:0 5:0}", p,
           "hlo_module {\n  name: \"b\"\n  host_program_shape {\n    parameter_names: \"x\"\n"
           "    parameter_names: \"y\"\n  }\n  pjrt_id: 0\n}\n");
    expect("1:{3:{2:{40:{1:77 8:[0,4,99]} 3:{2:11 3:[2,3] 3:4 6:[1,0]}}}}", p,
           "hlo_module {\n  computations {\n    instructions {\n      shape {\n"
           "        element_type: F32\n        dimensions: 2\n        dimensions: 3\n"
           "        dimensions: 4\n        is_dynamic_dimension: true\n"
           "        is_dynamic_dimension: false\n      }\n      sharding {\n        type: 77\n"
           "        last_tile_dims: REPLICATED\n        last_tile_dims: MANUAL\n"
           "        last_tile_dims: 99\n      }\n    }\n  }\n}\n");
}

// Maps are in the order of their keys, and the last entry of a key counts.  Of a choice the last
// that is given counts.
static void test_maps(void) {
    const enum xpl_hlo_proto_form p = XPL_HLO_PROTO_PBTXT;
    expect("1:{19:{1:{1:\"k\" 2:\"1\"} 1:{} 1:{2:\"2\" 1:\"k\"}}}", p,
           "hlo_module {\n  frontend_attributes {\n    map {\n      key: \"\"\n      value: \"\"\n"
           "    }\n    map {\n      key: \"k\"\n      value: \"2\"\n    }\n  }\n}\n");
    expect("1:{7:{1:{1:9} 1:{1:5 2:{1:[5]}}}}", p,
           "hlo_module {\n  schedule {\n    sequences {\n      key: 5\n      value {\n"
           "        instruction_ids: 5\n      }\n    }\n    sequences {\n      key: 9\n"
           "      value {\n      }\n    }\n  }\n}\n");
    expect("1:{3:{2:{92:{1:2} 87:{} 92:{2:3}}}}", p,
           "hlo_module {\n  computations {\n    instructions {\n"
           "      iota_collective_device_list {\n        num_devices_per_group: 3\n      }\n"
           "    }\n  }\n}\n");
}

static void test_json(void) {
    const enum xpl_hlo_proto_form j = XPL_HLO_PROTO_JSON;
    expect("", j, "{}\n");
    expect("1:{1:\"a\\042\" 10:{1:-1} 10:{} 7:{1:{1:9}} 19:{1:{1:\"k\" 2:\"v\"}} 22:\"\\377a\"}", j,
           "{\"hloModule\":{\"name\":\"a\\\"\",\"schedule\":{\"sequences\":{\"9\":{}}},"
           "\"crossProgramPrefetches\":[{\"parameter\":\"-1\"},{}],"
           "\"frontendAttributes\":{\"map\":{\"k\":\"v\"}},\"payloads\":[\"/2E=\"]}}\n");
    expect("1:{3:{2:{3:{2:11 3:[2,3] 6:1} 80:0 60:1}}}", j,
           "{\"hloModule\":{\"computations\":[{\"instructions\":[{\"shape\":{\"elementType\":"
           "\"F32\",\"dimensions\":[\"2\",\"3\"],\"isDynamicDimension\":[true]},"
           "\"isStable\":true,\"crossProgramPrefetchIndex\":0}]}]}}\n");
}

// Numbers that are no integers, from their bytes: as many digits as read back.
static void test_reals(void) {
    static const float v[] = {0.1f, 1e10f, 16777216.0f, 123456.7f, -0.0f, 1.0f / 3};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_buf proto = mk_open(), m = mk_open(), c = mk_open(), in = mk_open(), l = mk_open();
    struct xpl_buf out;
    mk_len(&l, 8, (const uint8_t *)v, sizeof v);
    mk_close(&in, 8, &l);
    mk_close(&c, 2, &in);
    mk_close(&m, 3, &c);
    mk_close(&proto, 1, &m);
    CHECK_OK(print(&proto, XPL_HLO_PROTO_JSON, &exec, 1 << 20, &out), &err);
    static const char json[] =
        "{\"hloModule\":{\"computations\":[{\"instructions\":[{\"literal\":{\"f32s\":"
        "[0.1,1e+10,16777216,123456.703,-0.0,0.333333343]}}]}]}}\n";
    CHECK_BYTES(out.p, out.n, json, strlen(json));
    xpl_buf_fini(&out);
    // A run that ends within a number.
    proto.p[proto.n - 1] = 0;
    proto.n--;
    CHECK_STATUS(print(&proto, XPL_HLO_PROTO_JSON, &exec, 1 << 20, &out), XPL_DATA_LOSS, &err);
    xpl_buf_fini(&out);
    xpl_buf_fini(&proto);
}

// ---- what ends it ----

static bool say_yes(struct xpl_exec *e) {
    (void)e;
    return true;
}

static struct xpl_buf nested(int depth, const char *in_order) {
    struct xpl_buf shape = wt_message(in_order), m = mk_open(), p = mk_open(), s = mk_open();
    for (int i = 0; i < depth; i++) {
        struct xpl_buf outer = mk_open();
        mk_close(&outer, 4, &shape);
        shape = outer;
    }
    mk_close(&s, 2, &shape);
    mk_close(&m, 4, &s);
    mk_close(&p, 1, &m);
    return p;
}

static void test_ends(void) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_buf out;
    // Shapes in shapes, also where each level is out of order.
    static const char *const shapes[] = {"2:11", "5:{1:[0]} 2:11 5:{}"};
    for (size_t i = 0; i < 2; i++) {
        struct xpl_buf deep = nested(5000, shapes[i]), shallow = nested(90, shapes[i]);
        CHECK_STATUS(print(&deep, XPL_HLO_PROTO_PBTXT, &exec, 1 << 24, &out), XPL_DATA_LOSS, &err);
        xpl_buf_fini(&out);
        CHECK_OK(print(&shallow, XPL_HLO_PROTO_PBTXT, &exec, 1 << 24, &out), &err);
        xpl_buf_fini(&out);
        CHECK_STATUS(print(&shallow, XPL_HLO_PROTO_JSON, &exec, 200, &out), XPL_RESOURCE_EXHAUSTED,
                     &err);
        CHECK(out.n <= 200);
        xpl_buf_fini(&out);
        xpl_buf_fini(&deep);
        xpl_buf_fini(&shallow);
    }
    struct xpl_buf broken = wt_message("1:{1:\"abc\"}");
    broken.n--;
    CHECK_STATUS(print(&broken, XPL_HLO_PROTO_PBTXT, &exec, 1 << 20, &out), XPL_DATA_LOSS, &err);
    xpl_buf_fini(&out);
    xpl_buf_fini(&broken);
    struct xpl_buf many = mk_open(), proto = mk_open();
    for (int i = 0; i < 100000; i++)
        mk_int(&many, 5, i);
    mk_close(&proto, 1, &many);
    exec.cancelled = say_yes;
    CHECK_STATUS(print(&proto, XPL_HLO_PROTO_PBTXT, &exec, 1 << 24, &out), XPL_CANCELLED, &err);
    xpl_buf_fini(&out);
    xpl_buf_fini(&proto);
}

int main(void) {
    test_pbtxt();
    test_maps();
    test_json();
    test_reals();
    test_ends();
    return 0;
}
