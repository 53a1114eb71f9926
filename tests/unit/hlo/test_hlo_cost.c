// SPDX-License-Identifier: Apache-2.0
// What instructions cost: a few of each kind as XProf 2.24.2 has them (tests/parity/hlo_text.py
// compares thousands), and what must hold where XProf ends or loses everything: limits, windows
// without end, calls of calls, broken messages.
#include <inttypes.h>

#include "tests/cancelled.h"
#include "tests/hlo_cost_fixture.h"
#include "tests/processor_time.h"

static void test_elementwise(void) {
    static const char *const texts[] = {
        "1:\"main\" 5:1 6:2 " P "2:{1:\"sine\" 2:\"sine\" 35:2 36:[1]" F32_8_4 "} "
        "2:{1:\"copy\" 2:\"copy\" 35:3 36:[1]" F32_8_4 "} "
        "2:{1:\"vmem\" 2:\"negate\" 35:4 36:[1] 3:{2:11 3:[8,4] 5:{1:[1,0] 8:1}}} "
        "2:{1:\"bytes\" 2:\"parameter\" 9:1 35:5 3:{2:2 3:[8,4]}} "
        "2:{1:\"add8\" 2:\"add\" 35:6 36:[5,5] 3:{2:2 3:[8,4]}} "
        "2:{1:\"nibbles\" 2:\"parameter\" 9:2 35:7 3:{2:21 3:[8,4] 5:{7:4}}} "
        "2:{1:\"add4\" 2:\"add\" 35:8 36:[7,7] 3:{2:21 3:[8,4] 5:{7:4}}} "
        "2:{1:\"tuple\" 2:\"tuple\" 35:9 36:[1,1] 3:{2:13 4:{2:11 3:[8,4]} 4:{2:11 3:[8,4]}}}"};
    struct xpl_buf module = module_of(texts, 1, 1);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "p", 0, 0, 0, 0, 0);
    check_cost(&c, "sine", 662 * 32, 662 * 32, 256, 128, 128);
    check_cost(&c, "sine", 662 * 32, 662 * 32, 256, 128, 128); // kept
    check_cost(&c, "copy", 0, 0, 256, 128, 128);
    check_cost(&c, "vmem", 96, 96, 256, 128, 0);
    check_cost(&c, "add8", 96, 48, 96, 64, 32);
    check_cost(&c, "add4", 96, 24, 48, 32, 16);
    check_cost(&c, "tuple", 0, 0, 16, 0, 0);
    end(&c, &module);
}

// A value used twice is read once; one of which half is used is read by half.
static void test_fusion(void) {
    static const char *const texts[] = {
        "1:\"fused\" 5:1 6:15 2:{1:\"f.p\" 2:\"parameter\" 35:11" F32_8_4 "} "
        "2:{1:\"f.e\" 2:\"exponential\" 35:12 36:[11]" F32_8_4 "} "
        "2:{1:\"f.s\" 2:\"slice\" 35:13 36:[12] 3:{2:11 3:[4,4]}} "
        "2:{1:\"f.n\" 2:\"negate\" 35:14 36:[13] 3:{2:11 3:[4,4]}} "
        "2:{1:\"f.a\" 2:\"add\" 35:15 36:[13,14] 3:{2:11 3:[4,4]}}",
        "1:\"unused\" 5:3 6:31 2:{1:\"u\" 2:\"iota\" 35:31" F32_8_4 "}",
        "1:\"main\" 5:2 6:2 " P "2:{1:\"fusion\" 2:\"fusion\" 11:\"kLoop\" 35:2 36:[1] 38:[1] "
        "3:{2:11 3:[4,4]}}"};
    struct xpl_buf module = module_of(texts, 3, 2);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "fusion", 16 * 86 + 48 + 48, 16 * 86 + 96, 128, 64, 64);
    check_cost(&c, "f.e", 32 * 86, 32 * 86, 256, 128, 128);
    check_cost(&c, "u", 0, 0, 0, 0, 0); // the entry does not reach it
    end(&c, &module);
}

static struct xpl_buf entry_module(const char *entry) {
    const char *const texts[] = {ADD, entry};
    return module_of(texts, 2, 9);
}

static void test_collectives(void) {
    // XLA's analysis fails on psum, and XProf has no costs of the module.
    struct xpl_buf module = entry_module(
        "1:\"main\" 5:9 6:2 " P "2:{1:\"sum\" 2:\"all-reduce\" 35:2 36:[1] 38:[1]" F32_8_4 "} "
        "2:{1:\"psum\" 2:\"all-reduce\" 35:3 36:[1] 38:[1] 26:1 71:1" F32_8_4 "} "
        "2:{1:\"gather\" 2:\"all-gather\" 35:4 36:[1] 49:{1:[0,1]} 3:{2:11 3:[16,4]}} "
        "2:{1:\"start\" 2:\"all-reduce-start\" 35:5 36:[1] 38:[1]" F32_8_4 "} "
        "2:{1:\"zero\" 2:\"constant\" 35:6 3:{2:11}} "
        "2:{1:\"reduce\" 2:\"reduce\" 35:7 36:[1,6] 38:[1] 14:[1] 3:{2:11 3:[8]}}");
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "sum", 96, 96, 256, 128, 128);
    check_cost(&c, "psum", 96, 96, 256, 128, 128);
    check_cost(&c, "gather", 0, 0, 640, 128, 256);
    check_cost(&c, "start", 96, 96, 128, 128, 128);
    check_cost(&c, "reduce", 72, 72, 192, 160, 32);
    end(&c, &module);
}

static bool loses(const char *instruction) {
    char text[1000];
    bool lost = false;
    (void)snprintf(text, sizeof text, "1:\"main\" 5:9 6:1 " P "%s", instruction);
    struct xpl_buf module = entry_module(text);
    struct costs c;
    begin(&c, &module);
    for (int i = 0; i < 2; i++) // known the second time
        CHECK_OK(xpl_hlo_costs_lost(c.c, NULL, &lost, &err), &err);
    end(&c, &module);
    return lost;
}

// Which collectives lose XProf the costs of their module: those by global ids without a channel,
// or without groups in any of their four forms.
static void test_lost_collectives(void) {
    static const char *const names[] = {"all-reduce",       "all-reduce-start", "all-gather",
                                        "all-gather-start", "reduce-scatter",   "all-to-all"};
    char text[300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static const struct {
            const char *fields;
            bool lost;
        } cases[] = {{"26:1 71:1", true},
                     {"71:1 49:{1:[0,1]}", true},
                     {"26:1 71:1 49:{1:[0,1]}", false},
                     {"26:1 71:1 49:{}", false},
                     {"26:1 71:1 87:{1:{1:[0,1]}}", false},
                     {"26:1 71:1 87:{}", true},
                     {"26:1 71:1 92:{1:2 2:4}", false},
                     {"26:1 71:1 93:{2:{1:0}}", false},
                     {"26:1", false},
                     {"", false}};
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            (void)snprintf(text, sizeof text,
                           "2:{1:\"c\" 2:\"%s\" 35:3 36:[1] 38:[1] %s" F32_8_4 "} ", names[i],
                           cases[k].fields);
            CHECK_EQ(loses(text), cases[k].lost && strcmp(names[i], "all-to-all") != 0);
        }
    }
}

static void test_lost_gemms(void) {
#define CALL(target, config)                                                                       \
    "2:{1:\"c\" 2:\"custom-call\" 35:3 36:[1] 28:\"" target "\" 43:\"" config "\"" F32_8_4 "} "
    CHECK(loses(CALL("__cublas$lt$matmul", "{\\042gemm_backend_config\\042:{\\042later\\042:1}}")));
    CHECK(loses(CALL("__cublas$lt$groupedMatmul", "{")));
    CHECK(!loses(CALL("__cublas$lt$matmul", "{\\042gemm_backend_config\\042:{\\042beta\\042:1}}")));
    CHECK(!loses(CALL("__cublas$lt$matmul$f8", "")));
    CHECK(!loses(CALL("__cublas$gemm", "{\\042later\\042:1}")));
    CHECK(!loses(CALL("foo", "{\\042later\\042:1}")));
    // One that the entry does not reach is not looked at.
    static const char *const texts[] = {
        "1:\"unused\" 5:1 6:3 " P CALL("__cublas$lt$matmul", "{"),
        "1:\"main\" 5:2 6:7 2:{1:\"z\" 2:\"constant\" 35:7 3:{2:11}}"};
    struct xpl_buf module = module_of(texts, 2, 2);
    struct costs c;
    bool lost = true;
    begin(&c, &module);
    CHECK_OK(xpl_hlo_costs_lost(c.c, NULL, &lost, &err), &err);
    CHECK(!lost);
    end(&c, &module);
}

// XLA's analysis, and with it XProf, knows no cost of the GEMM of cuBLAS and rocBLAS.
static void test_older_gemm(void) {
    for (int more = 0; more < 2; more++) {
        struct xpl_buf module = entry_module("1:\"main\" 5:9 6:3 " P CALL(
            "__cublas$gemm", "{\\042gemm_backend_config\\042:{\\042dot_dimension_numbers\\042:{"
                             "\\042lhs_contracting_dimensions\\042:[\\0421\\042]}}}"));
        struct costs c;
        begin(&c, &module);
        if (more) xpl_hlo_costs_of_more_calls(c.c);
        CHECK_EQ(cost_of(&c, "c").model_flops, more ? 2 * 8 * 4 * 4 : 0);
        CHECK_EQ(cost_of(&c, "c").bytes, more ? 2 * 8 * 4 * 4 : 0);
        end(&c, &module);
    }
}

// A scatter has n arrays, indices and n updates; one with an even number of operands is none.
static void test_scatter(void) {
    struct xpl_buf module =
        entry_module("1:\"main\" 5:9 6:2 " P "2:{1:\"at\" 2:\"parameter\" 9:1 35:2 3:{2:4 3:[2]}} "
                     "2:{1:\"new\" 2:\"parameter\" 9:2 35:3 3:{2:11 3:[2,4]}} "
                     "2:{1:\"three\" 2:\"scatter\" 35:4 36:[1,2,3] 38:[1]" F32_8_4 "} "
                     "2:{1:\"four\" 2:\"scatter\" 35:5 36:[1,1,2,3] 38:[1]" F32_8_4 "} "
                     "2:{1:\"two\" 2:\"scatter\" 35:6 36:[1,1] 38:[1]" F32_8_4 "} ");
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "three", 24, 24, 104, 72, 32);
    check_cost(&c, "four", 0, 0, 424, 296, 128);
    check_cost(&c, "two", 0, 0, 384, 256, 128);
    end(&c, &module);
}

// Infinitely much is used of an array without elements, and less than nothing is left of it: what
// depends on both has no number of operations, and is read once.
static void test_empty_arrays(void) {
    static const char *const texts[] = {
        "1:\"called\" 5:1 6:16 2:{1:\"c.x\" 2:\"parameter\" 35:11 3:{2:11 3:[8] 5:{1:[0]}}} "
        "2:{1:\"c.e\" 2:\"parameter\" 9:1 35:12 3:{2:11 3:[4,0] 5:{1:[1,0]}}} "
        "2:{1:\"c.s\" 2:\"slice\" 35:13 36:[12] 3:{2:11 3:[1,1] 5:{1:[1,0]}}} "
        "2:{1:\"c.i\" 2:\"constant\" 35:14 3:{2:4}} 2:{1:\"c.j\" 2:\"constant\" 35:15 3:{2:4}} "
        "2:{1:\"c.u\" 2:\"dynamic-update-slice\" 35:16 36:[12,13,14,15] "
        "3:{2:11 3:[4,0] 5:{1:[1,0]}}}",
        "1:\"fused\" 5:2 6:24 2:{1:\"f.x\" 2:\"parameter\" 35:21 3:{2:11 3:[8] 5:{1:[0]}}} "
        "2:{1:\"f.e\" 2:\"parameter\" 9:1 35:22 3:{2:11 3:[4,0] 5:{1:[1,0]}}} "
        "2:{1:\"f.n\" 2:\"negate\" 35:23 36:[21] 3:{2:11 3:[8] 5:{1:[0]}}} "
        "2:{1:\"f.c\" 2:\"call\" 35:24 36:[23,22] 38:[1] 3:{2:11 3:[4,0] 5:{1:[1,0]}}}",
        "1:\"main\" 5:3 6:33 2:{1:\"x\" 2:\"parameter\" 35:31 3:{2:11 3:[8] 5:{1:[0]}}} "
        "2:{1:\"e\" 2:\"parameter\" 9:1 35:32 3:{2:11 3:[4,0] 5:{1:[1,0]}}} "
        "2:{1:\"fusion\" 2:\"fusion\" 11:\"kLoop\" 35:33 36:[31,32] 38:[2] "
        "3:{2:11 3:[4,0] 5:{1:[1,0]}}}"};
    struct xpl_buf module = module_of(texts, 3, 3);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "f.n", 24, 24, 64, 32, 32);
    check_cost(&c, "f.c", 0, 0, 20, 8, 8);
    check_cost(&c, "fusion", 0, 0, 32, 32, 0);
    end(&c, &module);
}

// A gather replaces a custom fusion that has one operand less: its reads of the other count for
// that operand of the caller.
static void test_custom_fusion(void) {
    static const char *const texts[] = {
        "1:\"fused\" 5:1 6:13 2:{1:\"f.x\" 2:\"parameter\" 35:11 3:{2:11 3:[16,4]}} "
        "2:{1:\"f.i\" 2:\"constant\" 35:12 3:{2:4 3:[2,1]}} "
        "2:{1:\"f.g\" 2:\"gather\" 35:13 36:[11,12] 3:{2:11 3:[2,4]}}",
        "1:\"called\" 5:2 6:24 2:{1:\"c.x\" 2:\"parameter\" 35:21 3:{2:11 3:[16,4]}} "
        "2:{1:\"c.y\" 2:\"parameter\" 9:1 35:22 3:{2:11 3:[3]}} "
        "2:{1:\"c.n\" 2:\"negate\" 35:23 36:[22] 3:{2:11 3:[3]}} "
        "2:{1:\"c.f\" 2:\"fusion\" 11:\"kCustom\" 35:24 36:[21] 38:[1] 3:{2:11 3:[2,4]}}",
        "1:\"main\" 5:3 6:33 2:{1:\"x\" 2:\"parameter\" 35:31 3:{2:11 3:[16,4]}} "
        "2:{1:\"y\" 2:\"parameter\" 9:1 35:32 3:{2:11 3:[3]}} "
        "2:{1:\"call\" 2:\"call\" 35:33 36:[31,32] 38:[2] 3:{2:11 3:[2,4]}}"};
    struct xpl_buf module = module_of(texts, 3, 3);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "c.f", 0, 0, 72, 32, 32);
    check_cost(&c, "call", 9, 9, 96, 52, 44);
    end(&c, &module);
}

// A fusion in a fusion: it negates its first operand, does not use its second, and has `op`, too.
static void check_nested(const char *op, int64_t bytes, int64_t read) {
    char inner[600];
    (void)snprintf(inner, sizeof inner,
                   "1:\"inner\" 5:1 6:14 2:{1:\"i.x\" 2:\"parameter\" 35:11" F32_8_4 "} "
                   "2:{1:\"i.y\" 2:\"parameter\" 9:1 35:12" F32_8_4 "} "
                   "2:{1:\"i.o\" 2:%s" F32_8_4 "} "
                   "2:{1:\"i.n\" 2:\"negate\" 35:14 36:[11]" F32_8_4 "}",
                   op);
    const char *const texts[] = {
        inner,
        "1:\"fused\" 5:2 6:23 2:{1:\"f.x\" 2:\"parameter\" 35:21" F32_8_4 "} "
        "2:{1:\"f.y\" 2:\"parameter\" 9:1 35:22" F32_8_4 "} "
        "2:{1:\"f.f\" 2:\"fusion\" 11:\"kLoop\" 35:23 36:[21,22] 38:[1]" F32_8_4 "}",
        "1:\"main\" 5:3 6:33 2:{1:\"x\" 2:\"parameter\" 35:31" F32_8_4 "} "
        "2:{1:\"y\" 2:\"parameter\" 9:1 35:32" F32_8_4 "} "
        "2:{1:\"fusion\" 2:\"fusion\" 11:\"kLoop\" 35:33 36:[31,32] 38:[2]" F32_8_4 "}"};
    struct xpl_buf module = module_of(texts, 3, 3);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "fusion", 96, 96, bytes, read, 128);
    end(&c, &module);
}

// An elementwise fusion reads all of its operands; others read only the used parts.
static void test_elementwise_fusions(void) {
    check_nested("\"copy\" 35:13 36:[11]", 384, 256);
    check_nested("\"bitcast\" 35:13 36:[11]", 256, 128);
    check_nested("\"opt-barrier\" 35:13 36:[11]", 256, 128);
    check_nested("\"iota\" 35:13", 256, 128);
    check_nested("\"replica-id\" 35:13", 256, 128);
    check_nested("\"partition-id\" 35:13", 256, 128);
}

#define GEMM(id, name, config)                                                                     \
    "2:{1:\"" name "\" 2:\"custom-call\" 35:" id                                                   \
    " 36:[1,1] 28:\"__cublas$lt$matmul\" 43:\"" config                                             \
    "\" 3:{2:13 4:{2:11 3:[8,8]} 4:{2:6 3:[100]}}} "

static void test_gemm(void) {
    struct xpl_buf module = entry_module(
        "1:\"main\" 5:9 6:2 " P GEMM(
            "2", "snake",
            "{\\042gemm_backend_config\\042:{\\042alpha\\042:[1,{}],"
            "\\042dot_dimension_numbers\\042:{\\042lhs_contracting_dimensions\\042:[\\0421\\042]}}"
            "}") GEMM("3", "camel",
                      "{\\042gemmBackendConfig\\042 : {\\042dotDimensionNumbers\\042:"
                      "{\\042lhsContractingDimensions\\042:[0, 1]}}}") GEMM("4", "none", "")
            GEMM("8", "lenient",
                 "{gemm_backend_config:{\\047dot_dimension_numbers\\047:{"
                 "lhs_contracting_dimensions:\\0471\\047}}}")
                GEMM("5", "broken", "{\\042gemm_backend_config\\042:{\\042a\\042:[[[")
                    GEMM("6", "beyond",
                         "{\\042gemm_backend_config\\042:{\\042dot_dimension_numbers\\042:"
                         "{\\042lhs_contracting_dimensions\\042:[7,-1,"
                         "99999999999999999999]}}}") "2:{1:\"other\" 2:\"custom-call\" "
                                                     "35:7 36:[1] 28:\"foo\"" F32_8_4 "} ");
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "snake", 512, 512, 512, 256, 0);
    check_cost(&c, "camel", 4096, 4096, 512, 256, 0);
    check_cost(&c, "lenient", 512, 512, 512, 256, 0);
    check_cost(&c, "none", 128, 128, 512, 256, 0);
    check_cost(&c, "broken", 128, 128, 512, 256, 0);
    check_cost(&c, "beyond", 128, 128, 512, 256, 0);
    check_cost(&c, "other", 0, 0, 0, 0, 0);
    end(&c, &module);
}

// ---- windows ----

// Valid pairs of one dimension, walked.
static int64_t walked(int64_t kernel, int64_t output, int64_t input, int64_t stride, int64_t pad,
                      int64_t dilation, int64_t base) {
    int64_t n = 0;
    for (int64_t k = 0; k < kernel; k++)
        for (int64_t x = 0; x < output; x++) {
            const int64_t u = x * stride - pad + k * dilation;
            n += u >= 0 && u % base == 0 && u / base < input;
        }
    return n;
}

static int64_t counted(int64_t kernel, int64_t output, int64_t input, int64_t stride, int64_t pad,
                       int64_t dilation, int64_t base) {
    char text[600];
    (void)snprintf(text, sizeof text,
                   "1:\"main\" 5:9 6:3 2:{1:\"a\" 2:\"parameter\" 35:1 3:{2:11 3:[1,1,%" PRId64
                   "]}} "
                   "2:{1:\"w\" 2:\"parameter\" 9:1 35:2 3:{2:11 3:[1,1,%" PRId64 "]}} "
                   "2:{1:\"c\" 2:\"convolution\" 35:3 36:[1,2] 3:{2:11 3:[1,1,%" PRId64 "]} "
                   "15:{1:{1:%" PRId64 " 2:%" PRId64 " 3:%" PRId64 " 5:%" PRId64 " 6:%" PRId64 "}} "
                   "16:{7:0 8:1 3:1 4:0 9:0 10:1 11:[2] 6:[2] 12:[2]}}",
                   input, kernel, output, kernel, stride, pad, dilation, base);
    struct xpl_buf module = entry_module(text);
    struct costs c;
    begin(&c, &module);
    const int64_t flops = cost_of(&c, "c").model_flops;
    end(&c, &module);
    return flops / 2;
}

static void test_positions(void) {
    uint64_t r = 7;
    for (int i = 0; i < 3000; i++) {
        int64_t v[7];
        for (int k = 0; k < 7; k++) {
            r = r * UINT64_C(6364136223846793005) + 1442695040888963407;
            v[k] = (int64_t)(r >> 33) % (k < 3 ? 20 : 7) + (k < 6 && k != 4 ? 1 : 0);
        }
        v[6] = v[6] > 1 ? v[6] : 1;
        CHECK_EQ(counted(v[0], v[1], v[2], v[3], v[4] - 3, v[5], v[6]),
                 walked(v[0], v[1], v[2], v[3], v[4] - 3, v[5], v[6]));
    }
    // XLA would walk 10^12 positions.
    CHECK(counted(1000000, 1000000, 1000000, 1, 0, 1, 1) > INT64_C(499999000000));
    CHECK_EQ(counted(INT64_C(1) << 40, INT64_C(1) << 40, 5, 1, 0, 1, 1), 0); // unknown
}

// ---- limits ----

#define HUGE   " 3:{2:11 3:[4611686018427387904]} "
#define MOST   " 3:{2:2 3:[9223372036854775807]} "
#define LEAST  " 3:{2:2 3:[-9223372036854775808]} "
#define HALVES " 3:{2:13 4:{2:2 3:[4611686018427387904]} 4:{2:2 3:[4611686018427387904]}} "

// Sizes at the ends of int64_t: numbers wrap, and the sanitizers find nothing.
static void test_wrapping(void) {
    struct xpl_buf module = entry_module(
        "1:\"main\" 5:9 6:2 2:{1:\"huge\" 2:\"parameter\" 35:1" HUGE "} "
        "2:{1:\"most\" 2:\"parameter\" 9:1 35:2" MOST "} "
        "2:{1:\"least\" 2:\"parameter\" 9:2 35:3" LEAST "} "
        "2:{1:\"halves\" 2:\"parameter\" 9:3 35:4" HALVES "} "
        "2:{1:\"sine\" 2:\"sine\" 35:5 36:[2] 3:{2:11 3:[9223372036854775807]}} "
        "2:{1:\"dot\" 2:\"dot\" 35:6 36:[2,2] 30:{1:[0]}" MOST "} "
        "2:{1:\"sort\" 2:\"sort\" 35:7 36:[2]" MOST "} "
        "2:{1:\"slice\" 2:\"slice\" 35:8 36:[2]" MOST "} "
        "2:{1:\"dslice\" 2:\"dynamic-slice\" 35:9 36:[2,2]" MOST "} "
        "2:{1:\"dus\" 2:\"dynamic-update-slice\" 35:10 36:[3,2,2]" LEAST "} "
        "2:{1:\"gather\" 2:\"gather\" 35:11 36:[2,2]" MOST "} "
        "2:{1:\"scatter\" 2:\"scatter\" 35:12 36:[2,2,2,2,2] 38:[1]" MOST "} "
        "2:{1:\"concat\" 2:\"concatenate\" 35:13 36:[2,2] 14:[0]" MOST "} "
        "2:{1:\"reduce\" 2:\"reduce\" 35:14 36:[2,2,2,2] 38:[1] 14:[0]" LEAST "} "
        "2:{1:\"infeed\" 2:\"infeed\" 35:15 36:[1] 3:{2:13 4:{2:2 3:[9223372036854775807]} "
        "4:{2:2 3:[9223372036854775807]}}} "
        "2:{1:\"sum\" 2:\"all-reduce\" 35:16 36:[2,2] 38:[1] "
        "84:{1:{2:{1:-9223372036854775808}}}" MOST "} "
        "2:{1:\"window\" 2:\"reduce-window\" 35:17 36:[2,2] 38:[1] "
        "15:{1:{1:-9223372036854775808}}" MOST "} "
        "2:{1:\"run\" 2:\"reduce-window\" 35:18 36:[2,2] 38:[1] 15:{1:{1:3 3:1 4:1}}" LEAST "} "
        "2:{1:\"gemm\" 2:\"custom-call\" 35:19 36:[2,2] 28:\"__cublas$lt$matmul\"" MOST "} "
        "2:{1:\"feed\" 2:\"infeed\" 35:20 36:[1]" HALVES "} "
        "2:{1:\"part\" 2:\"outfeed\" 35:21 36:[4,1] 3:{2:17}} "
        "2:{1:\"ragged\" 2:\"ragged-dot\" 35:22 36:[2,2,2]" MOST "}");
    struct costs c;
    begin(&c, &module);
    for (uint32_t i = 0; i < c.m->n_instructions; i++) {
        struct xpl_hlo_cost r;
        CHECK_OK(xpl_hlo_cost(c.c, i, NULL, &r, &err), &err);
        CHECK(r.model_flops >= 0 && r.device_flops >= 0 && r.bytes >= 0);
        CHECK(r.hbm_read_bytes >= 0 && r.hbm_written_bytes >= 0);
    }
    CHECK_EQ(cost_of(&c, "slice").bytes, 0);                 // 2 * (2^63 - 1) is -2
    CHECK_EQ(cost_of(&c, "reduce").bytes, INT64_C(1) << 62); // at most that is shown
    end(&c, &module);
}

// Each computation calls the one before twice: 2^60 runs in XLA's way of counting.
static void test_calls_of_calls(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf module = wt_message("1:\"m\" 4:{} 6:60"), c;
    char text[400];
    for (int i = 1; i <= 60; i++) {
        if (i == 1)
            (void)snprintf(text, sizeof text,
                           "1:\"c1\" 5:1 6:2 2:{1:\"p1\" 2:\"parameter\" 35:1" F32_8_4 "} "
                           "2:{1:\"n1\" 2:\"negate\" 35:2 36:[1]" F32_8_4 "}");
        else
            (void)snprintf(text, sizeof text,
                           "1:\"c%d\" 5:%d 6:3 2:{1:\"p%d\" 2:\"parameter\" 35:1" F32_8_4 "} "
                           "2:{1:\"a%d\" 2:\"call\" 35:2 36:[1] 38:[%d]" F32_8_4 "} "
                           "2:{1:\"b%d\" 2:\"call\" 35:3 36:[2] 38:[%d]" F32_8_4 "}",
                           i, i, i, i, i - 1, i, i - 1);
        c = wt_message(text);
        mk_close(&module, 3, &c);
    }
    struct costs k;
    begin(&k, &module);
    check_cost(&k, "a4", 96 * 4, 96 * 4, 256 * 4, 128 * 4, 128 * 4);
    CHECK(cost_of(&k, "b60").model_flops > INT64_C(1) << 60);
    xpl_arena_fini(&k.a);
}

// Uses that join pairwise: as many sets of uses as instructions, each as large.
static void test_many_uses(void) {
    enum { N = 20000 };
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf module = wt_message("1:\"m\" 4:{} 6:2"), c = wt_message("1:\"f\" 5:1 6:1");
    char text[300];
    struct xpl_buf in = wt_message("1:\"q\" 2:\"parameter\" 35:0" F32_8_4);
    mk_close(&c, 2, &in);
    for (int i = 1; i <= N; i++) {
        // Slices start new uses, sums join them with all before.
        (void)snprintf(text, sizeof text, "1:\"i%d\" 2:\"%s\" 35:%d 36:[%d%s]" F32_8_4, i,
                       i % 2 ? "slice" : "add", i, i - 1, i % 2 ? "" : ",0");
        in = wt_message(text);
        mk_close(&c, 2, &in);
    }
    (void)snprintf(text, sizeof text, "6:%d", N);
    in = wt_message(text);
    (void)xpl_buf_put(&c, in.p, in.n);
    xpl_buf_fini(&in);
    mk_close(&module, 3, &c);
    c = wt_message("1:\"main\" 5:2 6:2 " P
                   "2:{1:\"fusion\" 2:\"fusion\" 11:\"kLoop\" 35:2 36:[1] 38:[1]" F32_8_4 "}");
    mk_close(&module, 3, &c);
    struct costs k;
    begin(&k, &module);
    (void)cost_of(&k, "fusion"); // known or not: it ends
    xpl_arena_fini(&k.a);
}

static xpl_status_t asked(struct xpl_buf *module, const char *name, size_t limit,
                          struct xpl_exec *exec) {
    struct costs k = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(limit);
    struct xpl_hlo_cost cost;
    begin(&k, module);
    struct xpl_hlo_costs *const c = xpl_hlo_costs_new(k.m, &a);
    CHECK(c);
    const uint32_t at = xpl_hlo_module_find(k.m, xpl_str_from(name));
    CHECK(at != UINT32_MAX);
    const xpl_status_t st = xpl_hlo_cost(c, at, exec, &cost, &err);
    xpl_arena_fini(&k.a);
    return st;
}

// Long work ends when no request waits for it: a window of 2^20 positions, 70,000 custom fusions.
static void test_cancelling(void) {
    struct xpl_exec exec = xpl_exec_serial();
    exec.cancelled = always_cancelled;
    struct xpl_buf module = entry_module(
        "1:\"main\" 5:9 6:2 2:{1:\"a\" 2:\"parameter\" 35:1 3:{2:11 3:[1,1,1048576]}} "
        "2:{1:\"c\" 2:\"convolution\" 35:2 36:[1,1] 3:{2:11 3:[1,1,1048576]} "
        "15:{1:{1:1048576 2:1 5:1 6:1}} 16:{7:0 8:1 3:1 4:0 9:0 10:1 11:[2] 6:[2] 12:[2]}}");
    CHECK_EQ(asked(&module, "c", 1 << 26, NULL), XPL_OK);
    CHECK_EQ(asked(&module, "c", 1 << 26, &exec), XPL_CANCELLED);
    xpl_buf_fini(&module);
    module = wt_message("1:\"m\" 4:{} 6:2");
    struct xpl_buf in, c = wt_message("1:\"f\" 5:1 6:3 " P "2:{1:\"g.i\" 2:\"parameter\" 9:1 35:2 "
                                      "3:{2:4}} 2:{1:\"g\" 2:\"gather\" 35:3 36:[1,2]" F32_8_4 "}");
    mk_close(&module, 3, &c);
    c = wt_message("1:\"main\" 5:2 6:10 2:{1:\"q\" 2:\"parameter\" 35:10" F32_8_4 "} "
                   "2:{1:\"i\" 2:\"parameter\" 9:1 35:11 3:{2:4}}");
    for (int i = 0; i < 70000; i++) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "1:\"u%d\" 2:\"fusion\" 11:\"kCustom\" 35:%d 36:[10,11] 38:[1]" F32_8_4, i,
                       12 + i);
        in = wt_message(text);
        mk_close(&c, 2, &in);
    }
    mk_close(&module, 3, &c);
    CHECK_EQ(asked(&module, "g", 1 << 28, NULL), XPL_OK);
    CHECK_EQ(asked(&module, "g", 1 << 28, &exec), XPL_CANCELLED);
    xpl_buf_fini(&module);
}

// Dimensions are kept once, however many instructions use them.
static void test_many_dimensions(void) {
    enum { N = 2000, BYTES = 1 << 23 };
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf module = wt_message("1:\"m\" 4:{} 6:2"), c = wt_message("1:\"f\" 5:2 6:1"), in;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(1 << 16);
    xpl_buf_str(&text, XPL_STR("1:\"q\" 2:\"parameter\" 35:1 3:{2:11 3:[1"));
    for (int i = 1; i < N; i++)
        xpl_buf_str(&text, XPL_STR(",1"));
    xpl_buf_str(&text, XPL_STR("]}"));
    xpl_buf_putc(&text, 0);
    CHECK(!text.failed);
    in = wt_message((const char *)text.p);
    mk_close(&c, 2, &in);
    for (int i = 2; i < N; i++) {
        char dot[200];
        (void)snprintf(dot, sizeof dot, "1:\"d%d\" 2:\"dot\" 35:%d 36:[1,1] 30:{1:[0]} 3:{2:11}", i,
                       i);
        in = wt_message(dot);
        mk_close(&c, 2, &in);
    }
    mk_close(&module, 3, &c);
    struct costs k = {0};
    begin(&k, &module);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a;
    xpl_arena_init(&a, BYTES); // N * N dimensions are 32 MB
    struct xpl_hlo_costs *const costs = xpl_hlo_costs_new(k.m, &a);
    for (uint32_t i = 0; i < k.m->n_instructions; i++) {
        struct xpl_hlo_cost cost;
        CHECK_OK(xpl_hlo_cost(costs, i, NULL, &cost, &err), &err);
        CHECK_EQ(cost.model_flops, i ? 2 : 0);
    }
    xpl_arena_fini(&k.a);
}

// What the work is enough for does not depend on the order of questions.
static void test_same_answers(void) {
    static const char *const names[] = {"before", "c", "after"};
    static const int64_t flops[] = {96, 0, 0};
    struct xpl_buf module = entry_module(
        "1:\"main\" 5:9 6:4 " P "2:{1:\"before\" 2:\"negate\" 35:2 36:[1]" F32_8_4 "} "
        "2:{1:\"a\" 2:\"parameter\" 9:1 35:3 3:{2:11 3:[1,1,2147483648]}} "
        "2:{1:\"c\" 2:\"convolution\" 35:4 36:[3,3] 3:{2:11 3:[1,1,2147483648]} "
        "15:{1:{1:2147483648 2:1 5:1 6:1}} 16:{7:0 8:1 3:1 4:0 9:0 10:1 11:[2] 6:[2] 12:[2]}} "
        "2:{1:\"after\" 2:\"negate\" 35:5 36:[1]" F32_8_4 "}");
    for (int first = 0; first < 3; first++) {
        struct costs c;
        begin(&c, &module);
        for (int i = 0; i < 6; i++)
            CHECK_EQ(cost_of(&c, names[(first + i) % 3]).model_flops, flops[(first + i) % 3]);
        xpl_arena_fini(&c.a);
    }
    xpl_buf_fini(&module);
}

// A gather of f32[8,4] into f32[16,4] passes 256 / n bytes on for each of n ranks, 3n - 1 times;
// the number of ranks is given in five ways.
static void test_ranks(void) {
#define GATHER(id, name, groups)                                                                   \
    "2:{1:\"" name "\" 2:\"all-gather\" 35:" id " 36:[1] " groups " 3:{2:11 3:[16,4]}} "
    struct xpl_buf module = entry_module(
        "1:\"main\" 5:9 6:2 " P GATHER("2", "alone", "") GATHER("3", "iota", "92:{1:2 2:4}")
            GATHER("4", "list", "87:{1:{1:[0,1]} 1:{1:[2,3,4,5]}}")
                GATHER("5", "mesh", "93:{1:{1:{2:2} 1:{2:4}} 2:{1:1} 2:{1:0}}")
                    GATHER("6", "part", "93:{1:{1:{2:8}} 2:{2:{1:1 2:2}}}")
                        GATHER("7", "no_axis", "93:{1:{1:{2:8}} 2:{1:9}}")
                            GATHER("8", "no_list", "93:{1:{1:{2:8}}}")
        // The half that starts one has the gathered value and, second, the destination.
        "2:{1:\"start\" 2:\"all-gather-start\" 35:10 36:[1] 49:{1:[0,1]} "
        "3:{2:13 4:{2:11 3:[8,4]} 4:{2:11 3:[16,4]}}} "
        "2:{1:\"scatter\" 2:\"reduce-scatter\" 35:11 36:[1] 38:[1] 49:{1:[0,1]} "
        "3:{2:11 3:[4,4]}} ");
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "alone", 0, 0, 256 * 2, 128, 256);
    check_cost(&c, "iota", 0, 0, 64 * 11, 128, 256);
    check_cost(&c, "list", 0, 0, 64 * 11, 128, 256); // of the largest group
    check_cost(&c, "mesh", 0, 0, 32 * 23, 128, 256); // 4 along one axis, 2 along the other
    check_cost(&c, "part", 0, 0, 128 * 5, 128, 256); // 2 of an axis of 8
    check_cost(&c, "no_axis", 0, 0, 256 * 2, 128, 256);
    check_cost(&c, "no_list", 0, 0, 256 * 2, 128, 256);
    check_cost(&c, "start", 0, 0, 128 * 5, 128, 0); // of tuples nothing is known to be written
    check_cost(&c, "scatter", 48, 48, 64 * 5, 128, 64);
    end(&c, &module);
#undef GATHER
}

// Rules that XLA has for one opcode each.
static void test_single_rules(void) {
    struct xpl_buf module = entry_module(
        "1:\"main\" 5:9 6:2 " P "2:{1:\"square\" 2:\"parameter\" 9:1 35:2 3:{2:11 3:[3,8,8]}} "
        "2:{1:\"signal\" 2:\"parameter\" 9:2 35:3 3:{2:15 3:[4,16]}} "
        "2:{1:\"lower\" 2:\"parameter\" 9:3 35:4 3:{2:11 3:[8,8]}} "
        "2:{1:\"map\" 2:\"map\" 35:5 36:[1,1] 38:[1]" F32_8_4 "} "
        "2:{1:\"fft\" 2:\"fft\" 35:6 36:[3] 31:0 32:[16] 3:{2:15 3:[4,16]}} "
        "2:{1:\"fft2\" 2:\"fft\" 35:7 36:[3] 31:0 32:[4,16] 3:{2:15 3:[4,16]}} "
        "2:{1:\"cholesky\" 2:\"cholesky\" 35:8 36:[2] 62:{1:1} 3:{2:11 3:[3,8,8]}} "
        "2:{1:\"solve\" 2:\"triangular-solve\" 35:10 36:[4,1] 59:{1:1}" F32_8_4 "} ");
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "map", 3 * 32, 3 * 32, 384, 256, 128);
    check_cost(&c, "fft", 8 * 4 * 64, 8 * 4 * 64, 1024, 512, 512); // 8 n log2(16)
    check_cost(&c, "fft2", 8 * 2 * 4 * 64, 8 * 2 * 4 * 64, 1024, 512, 512);
    check_cost(&c, "cholesky", 8 * 192 / 3, 8 * 192 / 3, 768, 384, 384); // half of each
    // XLA records the bytes read of the second operand at the first: both are then 128.
    check_cost(&c, "solve", 2 * 8 * 32, 2 * 8 * 32, 128 + 128 + 128, 256, 128);
    end(&c, &module);
}

// Of branches the dearest counts, by each property.
static void test_branches(void) {
    static const char *const texts[] = {
        "1:\"cheap\" 5:1 6:12 2:{1:\"c.p\" 2:\"parameter\" 35:11" F32_8_4 "} "
        "2:{1:\"c.n\" 2:\"negate\" 35:12 36:[11]" F32_8_4 "}",
        "1:\"dear\" 5:2 6:23 2:{1:\"d.p\" 2:\"parameter\" 35:21" F32_8_4 "} "
        "2:{1:\"d.s\" 2:\"slice\" 35:22 36:[21] 3:{2:11 3:[4,4]}} "
        "2:{1:\"d.e\" 2:\"exponential\" 35:23 36:[22] 3:{2:11 3:[4,4]}}",
        "1:\"main\" 5:9 6:3 " P "2:{1:\"which\" 2:\"parameter\" 9:1 35:2 3:{2:1}} "
        "2:{1:\"branch\" 2:\"conditional\" 35:3 36:[2,1,1] 38:[1,2]" F32_8_4 "}"};
    struct xpl_buf module = module_of(texts, 3, 9);
    struct costs c;
    begin(&c, &module);
    // Bytes: 256 of the negation; 128 of the slice and 128 of its successor.
    check_cost(&c, "branch", 86 * 16, 86 * 16, 256, 128, 128);
    end(&c, &module);
}

#define F32_1 " 3:{2:11 3:[1]}"

// 2^24 + 1 is not a float, so the order of a sum shows: an operand precedes control predecessors,
// code that is not needed before the root.
static void test_order_of_sums(void) {
    static const char *const texts[] = {
        "1:\"called\" 5:1 6:15 2:{1:\"c.p\" 2:\"parameter\" 35:11 3:{2:11 3:[8388608]}} "
        "2:{1:\"c.1\" 2:\"parameter\" 9:1 35:12" F32_1 "} "
        "2:{1:\"c.w\" 2:\"negate\" 35:13 36:[12] 3:{2:11 3:[2]}} "
        "2:{1:\"c.n\" 2:\"negate\" 35:14 36:[11] 3:{2:11 3:[8388608]}} "
        "2:{1:\"c.r\" 2:\"negate\" 35:15 36:[14] 37:[13] 3:{2:11 3:[8388608]}} "
        "2:{1:\"c.l\" 2:\"negate\" 35:16 36:[12]" F32_1 "}",
        "1:\"main\" 5:9 6:3 2:{1:\"p\" 2:\"parameter\" 35:1 3:{2:11 3:[8388608]}} "
        "2:{1:\"q\" 2:\"parameter\" 9:1 35:2" F32_1 "} "
        "2:{1:\"call\" 2:\"call\" 35:3 36:[1,2] 38:[1] 3:{2:11 3:[8388608]}}"};
    struct xpl_buf module = module_of(texts, 2, 9);
    struct costs c;
    begin(&c, &module);
    const int64_t n = 1 << 23; // three flops an element
    // 3, then 3n, 6 and 3n; of bytes 8, then 8n, 12 and 8n: sums are rounded each time.
    const float flops = (float)(3 + 3 * n) + 6.0F + (float)(3 * n);
    const float bytes = (float)(8 + 8 * n) + 12.0F + (float)(8 * n);
    check_cost(&c, "call", (int64_t)flops, (int64_t)flops, (int64_t)bytes, 8 * n + 8, 8 * n + 16);
    end(&c, &module);
}

// Bytes of a result's arrays are floats, rounded after each: 8 more than 372,000,000 are none.
static void test_many_results(void) {
#define FOUR " 3:{2:13 4:{2:11 3:[93000000]} 4:{2:15 3:[1]} 4:{2:15 3:[1]} 4:{2:15 3:[1]}}} "
    static const char *const texts[] = {"1:\"main\" 5:9 6:2 2:{1:\"p\" 2:\"parameter\" 35:1" FOUR
                                        "2:{1:\"b\" 2:\"opt-barrier\" 35:2 36:[1]" FOUR};
    struct xpl_buf module = module_of(texts, 1, 9);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "b", 0, 0, 372000000 + 32, 0, 0);
    end(&c, &module);
#undef FOUR
}

// Parts of a tuple that a fusion takes and gives are read and written each by itself.
static void test_tuples_of_fusions(void) {
#define PAIR "3:{2:13 4:{2:11 3:[8,4]} 4:{2:11 3:[8,4]}}"
    static const char *const texts[] = {
        "1:\"parts\" 5:1 6:16 2:{1:\"p.t\" 2:\"parameter\" 35:11 " PAIR "} "
        "2:{1:\"p.0\" 2:\"get-tuple-element\" 35:12 36:[11]" F32_8_4 "} "
        "2:{1:\"p.1\" 2:\"get-tuple-element\" 13:1 35:13 36:[11]" F32_8_4 "} "
        "2:{1:\"p.n\" 2:\"negate\" 35:14 36:[12]" F32_8_4 "} "
        "2:{1:\"p.s\" 2:\"slice\" 35:15 36:[13] 3:{2:11 3:[4,4]}} "
        "2:{1:\"p.r\" 2:\"tuple\" 35:16 36:[14,15] 3:{2:13 4:{2:11 3:[8,4]} 4:{2:11 3:[4,4]}}}",
        "1:\"update\" 5:2 6:24 2:{1:\"u.p\" 2:\"parameter\" 35:21" F32_8_4 "} "
        "2:{1:\"u.u\" 2:\"parameter\" 9:1 35:22 3:{2:11 3:[2,4]}} "
        "2:{1:\"u.i\" 2:\"constant\" 35:23 3:{2:4}} "
        "2:{1:\"u.d\" 2:\"dynamic-update-slice\" 35:24 36:[21,22,23,23]" F32_8_4 "}",
        "1:\"updates\" 5:3 6:36 2:{1:\"v.p\" 2:\"parameter\" 35:31" F32_8_4 "} "
        "2:{1:\"v.u\" 2:\"parameter\" 9:1 35:32 3:{2:11 3:[2,4]}} "
        "2:{1:\"v.i\" 2:\"constant\" 35:33 3:{2:4}} "
        "2:{1:\"v.d\" 2:\"dynamic-update-slice\" 35:34 36:[31,32,33,33]" F32_8_4 "} "
        "2:{1:\"v.n\" 2:\"negate\" 35:35 36:[32] 3:{2:11 3:[2,4]}} "
        "2:{1:\"v.r\" 2:\"tuple\" 35:36 36:[34,35] 3:{2:13 4:{2:11 3:[8,4]} 4:{2:11 3:[2,4]}}}",
        "1:\"main\" 5:9 6:1 " P "2:{1:\"t\" 2:\"parameter\" 9:1 35:2 " PAIR "} "
        "2:{1:\"u\" 2:\"parameter\" 9:2 35:3 3:{2:11 3:[2,4]}} "
        "2:{1:\"parts.f\" 2:\"fusion\" 11:\"kLoop\" 35:4 36:[2] 38:[1] "
        "3:{2:13 4:{2:11 3:[8,4]} 4:{2:11 3:[4,4]}}} "
        "2:{1:\"update.f\" 2:\"fusion\" 11:\"kLoop\" 35:5 36:[1,3] 38:[2]" F32_8_4 "} "
        "2:{1:\"updates.f\" 2:\"fusion\" 11:\"kLoop\" 35:6 36:[1,3] 38:[3] "
        "3:{2:13 4:{2:11 3:[8,4]} 4:{2:11 3:[2,4]}}}"};
    struct xpl_buf module = module_of(texts, 4, 9);
    struct costs c;
    begin(&c, &module);
    // All of the first part and half of the second; both outputs.
    check_cost(&c, "parts.f", 96, 96, 128 + 64 + 128 + 64, 192, 192);
    // Of a buffer updated in place only the update is read and written.
    check_cost(&c, "update.f", 0, 0, 32 + 32, 32, 32);
    check_cost(&c, "updates.f", 24, 24, 32 + 32 + 32, 32, 64);
    end(&c, &module);
#undef PAIR
}

// Many fusions of one large computation: facts of the computation are kept once, not with each of
// them, which need less than EACH bytes for an instruction inside.
static void test_fused_often(void) {
    enum { N = 1000, FUSIONS = 1000, EACH = 32 };
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf module = wt_message("1:\"m\" 4:{} 6:2"), c = wt_message("1:\"f\" 5:1 6:1000");
    char text[200];
    for (int i = 0; i <= N; i++) {
        (void)snprintf(text, sizeof text, "1:\"i%d\" 2:\"%s\" 35:%d 36:[%d]" F32_8_4, i,
                       i ? "slice" : "parameter", i, i - 1);
        if (i == 0) (void)snprintf(text, sizeof text, "1:\"i\" 2:\"parameter\" 35:0" F32_8_4);
        struct xpl_buf in = wt_message(text);
        mk_close(&c, 2, &in);
    }
    mk_close(&module, 3, &c);
    c = wt_message("1:\"main\" 5:2 6:2000 2:{1:\"p\" 2:\"parameter\" 35:2000" F32_8_4 "}");
    for (int i = 0; i < FUSIONS; i++) {
        (void)snprintf(text, sizeof text,
                       "1:\"u%d\" 2:\"fusion\" 11:\"kLoop\" 35:%d 36:[2000] 38:[1]" F32_8_4, i,
                       i + 2001);
        struct xpl_buf in = wt_message(text);
        mk_close(&c, 2, &in);
    }
    mk_close(&module, 3, &c);
    CHECK_EQ(asked(&module, "u999", (size_t)N * FUSIONS * EACH, NULL), XPL_OK);
}

static void test_limits(void) {
    struct xpl_buf module =
        entry_module("1:\"main\" 5:9 6:2 " P "2:{1:\"n\" 2:\"negate\" 35:2 36:[1]" F32_8_4 "}");
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a, small;
    struct xpl_hlo_module *m = NULL;
    struct xpl_hlo_cost cost;
    xpl_arena_init(&a, 1 << 26);
    CHECK_OK(xpl_hlo_module_read_full((xpl_bytes_t){module.p, module.n}, &a, &m, &err), &err);
    xpl_arena_init(&small, 0);
    CHECK(!xpl_hlo_costs_new(m, &small));
    // Cancelling is looked for every 2^16 steps: a small module ends first.
    struct xpl_exec exec = xpl_exec_serial();
    exec.cancelled = always_cancelled;
    struct xpl_hlo_costs *const c = xpl_hlo_costs_new(m, &a);
    CHECK_OK(xpl_hlo_cost(c, xpl_hlo_module_find(m, XPL_STR("n")), &exec, &cost, &err), &err);
    CHECK_EQ(cost.model_flops, 96);
    xpl_buf_fini(&module);
}

// As many axes of a mesh as groups that name the last of them.
static void test_large_mesh(void) {
    enum { N = 60000 };
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 2);
    struct xpl_buf in = wt_message("1:\"p\" 2:\"parameter\" 35:1" F32_8_4), mesh = mk_open();
    struct xpl_buf groups = mk_open();
    struct costs costs;
    mk_close(&c, 2, &in);
    for (int i = 0; i < N; i++)
        mk_len(&mesh, 1, "", 0);
    mk_close(&groups, 1, &mesh);
    for (int i = 0; i < N; i++) {
        struct xpl_buf axis = mk_open();
        mk_int(&axis, 1, N - 1);
        mk_close(&groups, 2, &axis);
    }
    in = wt_message("1:\"g\" 2:\"all-gather\" 35:2 36:[1]" F32_8_4);
    mk_close(&in, 93, &groups);
    mk_close(&c, 2, &in);
    mk_computation_end(&m, &c);
    begin(&costs, &m);
    const double before = processor_s();
    CHECK_EQ(cost_of(&costs, "g").bytes, 0); // not known
    CHECK(is_within(before, 20));
    end(&costs, &m);
}

// A long parameter in code that many fusions call.
static void test_long_parameter(void) {
    enum { FUSIONS = 20000, JUNK = 1 << 16 };
    struct xpl_buf m = mk_module("m", 2), fused = mk_computation("f", 1, 2), main, in;
    struct costs costs;
    in = wt_message("1:\"f.p\" 2:\"parameter\" 35:1" F32_8_4);
    for (int i = 0; i < JUNK; i++)
        mk_int(&in, 13, 1);
    mk_close(&fused, 2, &in);
    in = wt_message("1:\"f.n\" 2:\"negate\" 35:2 36:[1]" F32_8_4);
    mk_close(&fused, 2, &in);
    mk_computation_end(&m, &fused);
    main = mk_computation("main", 2, 1);
    in = wt_message("1:\"p\" 2:\"parameter\" 35:1" F32_8_4);
    mk_close(&main, 2, &in);
    for (int i = 0; i < FUSIONS; i++) {
        char text[120];
        (void)snprintf(text, sizeof text,
                       "1:\"x%d\" 2:\"fusion\" 11:\"kLoop\" 35:%d 36:[1] 38:[1]" F32_8_4, i, i + 2);
        in = wt_message(text);
        mk_close(&main, 2, &in);
    }
    mk_computation_end(&m, &main);
    begin(&costs, &m);
    const double before = processor_s();
    CHECK_EQ(cost_of(&costs, "x0").bytes, 256);
    CHECK_EQ(cost_of(&costs, "x19999").bytes, 0); // beyond the work that costs may take
    CHECK(is_within(before, 20));
    end(&costs, &m);
}

int main(void) {
    test_elementwise();
    test_fusion();
    test_collectives();
    test_ranks();
    test_single_rules();
    test_branches();
    test_order_of_sums();
    test_many_results();
    test_tuples_of_fusions();
    test_lost_collectives();
    test_lost_gemms();
    test_older_gemm();
    test_scatter();
    test_empty_arrays();
    test_custom_fusion();
    test_elementwise_fusions();
    test_gemm();
    test_positions();
    test_calls_of_calls();
    test_many_uses();
    test_wrapping();
    test_cancelling();
    test_many_dimensions();
    test_same_answers();
    test_fused_often();
    test_limits();
    test_large_mesh();
    test_long_parameter();
    return 0;
}
