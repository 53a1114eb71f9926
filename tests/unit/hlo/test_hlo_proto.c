// SPDX-License-Identifier: Apache-2.0
// An HloProto by the names of its fields: protobuf's text format as XProf prints it, and JSON; what
// of messages out of order counts; what ends it.
#include <float.h>

#include "analysis/hlo/proto/json_check.h"
#include "analysis/hlo/proto/print.h"
#include "tests/cancelled.h"
#include "tests/check.h"
#include "tests/wire_text.h"

static struct xpl_error err;

static xpl_status_t print(const struct xpl_buf *proto, enum xpl_hlo_proto_form form,
                          struct xpl_exec *exec, size_t limit, struct xpl_buf *out) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 26);
    err = (struct xpl_error){0};
    xpl_buf_init(out, limit);
    return xpl_hlo_proto_print((xpl_bytes_t){proto->p, proto->n}, form, exec, &a, out, &err);
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

// Numbers that are not integers, from their bytes: as many digits as read back.
static void test_reals(void) {
    static const float v[] = {0.1f,     1e10f,  16777216.0f, 123456.7f, -0.0f,
                              1.0f / 3, 1e-40f, FLT_MAX,     -FLT_MAX};
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini)
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
        // The largest in digits that no reader takes for more.
        "[0.1,1e+10,16777216,123456.703,-0.0,0.333333343,9.9999461e-41,3.4028234e+38,"
        "-3.4028234e+38]}}]}]}}\n";
    CHECK_BYTES(out.p, out.n, json, strlen(json));
    xpl_buf_fini(&out);
    CHECK_OK(print(&proto, XPL_HLO_PROTO_PBTXT, &exec, 1 << 20, &out), &err);
    static const char pbtxt[] = "        f32s: 0.333333343\n        f32s: 9.9999461e-41\n"
                                "        f32s: 3.40282347e+38\n        f32s: -3.40282347e+38\n";
    CHECK(xpl_str_has((xpl_str_t){(const char *)out.p, out.n}, xpl_str_from(pbtxt)));
    xpl_buf_fini(&out);
    // A run that ends within a number.
    proto.p[proto.n - 1] = 0;
    proto.n--;
    CHECK_STATUS(print(&proto, XPL_HLO_PROTO_JSON, &exec, 1 << 20, &out), XPL_DATA_LOSS, &err);
    xpl_buf_fini(&out);
}

// ---- what ends it ----

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
    exec.cancelled = always_cancelled;
    CHECK_STATUS(print(&proto, XPL_HLO_PROTO_PBTXT, &exec, 1 << 24, &out), XPL_CANCELLED, &err);
    xpl_buf_fini(&out);
    xpl_buf_fini(&proto);
}

// ---- JSON that is read ----

static bool is_config(const char *text) {
    return xpl_hlo_json_is(xpl_str_from(text), xpl_hlo_proto_gpu_config);
}

// As XProf's protobuf reads them.
static void test_read_json(void) {
#define GEMM(fields) "{\"gemm_backend_config\":{" fields "}}"
#define CONV(fields) "{\"cudnn_conv_backend_config\":{\"algorithm\":{" fields "}}}"
    static const char *const good[] = {
        "{}",
        " {} ",
        "\n{}\n",
        "{gemm_backend_config:{}}",
        "{'gemmBackendConfig':{},}",
        GEMM("\"beta\":\"1.5\""),
        GEMM("\"beta\":\"NaN\""),
        GEMM("\"beta\":-0"),
        GEMM("\"beta\":\" 1\""),
        GEMM("\"beta\":1E+5,\"beta\":2"),
        GEMM("\"lhs_stride\":1.0"),
        GEMM("\"lhsStride\":\"1e3\""),
        GEMM("\"lhs_stride\":-9223372036854775808"),
        GEMM("\"grad_x\":\"true\""),
        GEMM("\"grad_x\":null"),
        GEMM("\"grad_y\":false"),
        GEMM("\"epilogue\":99"),
        GEMM("\"epilogue\":\"3\""),
        GEMM("\"epilogue\":\"BIAS\""),
        GEMM("\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[null,\"1\",]}"),
        GEMM("\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":1}"),
        CONV("\"workspace_size\":5"),
        CONV("\"workspace_size\":{\"value\":\"5\"}"),
        CONV("\"workspace_size\":18446744073709551615"),
        CONV("\"tuning_knobs\":{\"1\":\"2\"}"),
        "{\"gemm_backend_config\":{},\"gemm_backend_config\":null}",
        "{\"reification_cost\":[{\"name\":\"\\u0041\\n\\ud83d\\ude00\t\"},null]}",
        "{\"force_earliest_schedule\":false}"};
    static const char *const bad[] = {
        "",
        " ",
        "3",
        "null",
        "\"\"",
        "[{}]",
        "{} x",
        "{",
        "{\"\":1}",
        "// {}",
        "{\"foo\":null}",
        "{\"GemmBackendConfig\":{}}",
        "{\"gemm_backendConfig\":{}}",
        GEMM("\"later\":1"),
        "{\"gemm_backend_config\":{},\"collective_backend_config\":{}}",
        GEMM("\"beta\":01"),
        "{\"gemm_backend_config\":{},\"gemmBackendConfig\":{}}",
        GEMM("\"beta\":NaN"),
        GEMM("\"beta\":true"),
        GEMM("\"beta\":1e400"),
        GEMM("\"beta\":.5"),
        GEMM("\"beta\":5."),
        GEMM("\"beta\":+5"),
        GEMM("\"beta\":\"\""),
        GEMM("\"beta\":1e"),
        GEMM("\"beta\":0x1"),
        GEMM("\"beta\":[1]"),
        GEMM("\"beta\" 1"),
        GEMM(",\"beta\":1"),
        GEMM("\"beta\":1,,"),
        GEMM("\"lhs_stride\":1.5"),
        GEMM("\"lhs_stride\":9223372036854775808"),
        GEMM("\"lhs_stride\":\" 1\""),
        GEMM("\"lhs_stride\":\"x\""),
        GEMM("\"lhs_stride\":true"),
        GEMM("\"scale_mode\":3000000000"),
        GEMM("\"grad_x\":1"),
        GEMM("\"grad_x\":True"),
        GEMM("\"epilogue\":\"bias\""),
        GEMM("\"epilogue\":1.5"),
        GEMM("\"epilogue\":true"),
        GEMM("\"dot_dimension_numbers\":[]"),
        GEMM("\"precision_config\":\"\""),
        GEMM("\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":{}}"),
        GEMM("\"selected_algorithm\":1,\"selectedAlgorithm\":2"),
        CONV("\"tuning_knobs\":[]"),
        CONV("\"workspace_size\":-5"),
        CONV("\"tuning_knobs\":{\"a\":1}"),
        "{\"reification_cost\":[{\"name\":\"\\q\"}]}",
        "{\"reification_cost\":[{\"name\":5}]}",
        "{\"reification_cost\":[{\"name\":\"\\ud800\"}]}",
        "{\"reification_cost\":[{\"name\":\"\\udc00\"}]}",
        "{\"reification_cost\":[{\"name\":\"\\u00g0\"}]}",
        "{\"reification_cost\":[{\"name\":\"\xff\"}]}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!is_config(good[i])) fprintf(stderr, "refused: %s\n", good[i]), abort();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (is_config(bad[i])) fprintf(stderr, "taken: %s\n", bad[i]), abort();
    // No prefix of a config is one.
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const xpl_str_t text = xpl_str_from(good[i]);
        const size_t end = (size_t)(strrchr(good[i], '}') - good[i]);
        for (size_t n = 0; n <= end; n++)
            CHECK(!xpl_hlo_json_is((xpl_str_t){text.ptr, n}, xpl_hlo_proto_gpu_config));
    }
    CHECK(!xpl_hlo_json_is((xpl_str_t){"{}\0", 3}, xpl_hlo_proto_gpu_config));
}

// A layout may hold a shape, and that a layout.
static void test_deep_json(void) {
    static const char *const turns[] = {"\"layout\":{", "\"physical_shape\":{"};
    for (unsigned deep = 0; deep < 2; deep++) {
        const int turns_n = deep ? 200 : 40;
        struct xpl_buf b = mk_open();
        xpl_buf_str(&b, XPL_STR("{\"bitcast_backend_config\":{\"source_layout\":{"));
        for (int i = 0; i < turns_n; i++)
            xpl_buf_str(&b, xpl_str_from(turns[(i + 1) % 2]));
        for (int i = 0; i < turns_n + 3; i++)
            xpl_buf_putc(&b, '}');
        CHECK(xpl_hlo_json_is((xpl_str_t){(char *)b.p, b.n}, xpl_hlo_proto_gpu_config) == !deep);
        xpl_buf_fini(&b);
    }
}

int main(void) {
    test_read_json();
    test_deep_json();
    test_pbtxt();
    test_maps();
    test_json();
    test_reals();
    test_ends();
    return 0;
}
