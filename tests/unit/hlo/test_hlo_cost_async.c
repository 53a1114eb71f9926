// SPDX-License-Identifier: Apache-2.0
// Costs of async operations, and of the ops that they start.
#include "tests/hlo_cost_fixture.h"

#define START(id, operand, sub, shape)                                                             \
    " 2:{1:\"s" id "\" 2:\"async-start\" 35:" id " 36:[" operand "] 38:[" sub "] "                 \
    "3:{2:13 4:{2:13 4:{2:11 3:[8,4]}} 4:{" shape "} 4:{2:4}}} "

// An op started asynchronously counts like a neighbour, where a call adds up; the start itself
// costs nothing, except flops and bytes of a reduce-scatter.
static void test_started(void) {
    static const char *const texts[] = {
        ADD,
        "1:\"root\" 5:4 6:12 2:{1:\"r.p\" 2:\"parameter\" 35:11" F32_8_4 "} "
        "2:{1:\"r.s\" 2:\"sqrt\" 35:12 36:[11]" F32_8_4 "}",
        "1:\"part\" 5:2 6:22 2:{1:\"p.p\" 2:\"parameter\" 35:21" F32_8_4 "} "
        "2:{1:\"p.s\" 2:\"reduce-scatter\" 35:22 36:[21] 38:[1] 49:{1:[0,1]} 3:{2:11 3:[4,4]}}",
        "1:\"called\" 5:3 6:34 2:{1:\"c.p\" 2:\"parameter\" 35:1" F32_8_4
        "} " START("31", "1", "4", "2:11 3:[8,4]")
            START("33", "1", "2",
                  "2:11 3:[4,4]") "2:{1:\"done\" 2:\"async-done\" 35:34 36:[31]" F32_8_4 "}",
        "1:\"main\" 5:9 6:2 " P "2:{1:\"call\" 2:\"call\" 35:2 36:[1] 38:[3]" F32_8_4 "}"};
    struct xpl_buf module = module_of(texts, 5, 9);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "r.s", 75 * 32, 75 * 32, 256, 128, 128);
    check_cost(&c, "s31", 0, 0, 0, 0, 0);
    check_cost(&c, "p.s", 48, 48, 64 * 5, 128, 64);
    check_cost(&c, "s33", 48, 48, 64 * 5, 0, 0);
    check_cost(&c, "done", 0, 0, 128 + 24, 0, 128);
    // 24 bytes are the tuple that the end reads.
    check_cost(&c, "call", 75 * 32 + 2 * 48, 75 * 32 + 2 * 48, 256 + 2 * 320 + 152, 128 + 128 + 24,
               128 + 64 + 128);
    end(&c, &module);
}

// Of nested asynchronous ops those count that a root needs or waits for; calls in unneeded code
// have no costs.
static void test_started_code(void) {
    static const char *const texts[] = {
        "1:\"called\" 5:1 6:12 2:{1:\"a.p\" 2:\"parameter\" 35:11" F32_8_4 "} "
        "2:{1:\"a.n\" 2:\"negate\" 35:12 36:[11]" F32_8_4 "}",
        "1:\"inner\" 5:2 6:24 2:{1:\"i.p\" 2:\"parameter\" 35:21" F32_8_4 "} "
        "2:{1:\"i.w\" 2:\"negate\" 35:22 36:[21]" F32_8_4 "} "
        "2:{1:\"i.c\" 2:\"call\" 35:23 36:[21] 38:[1]" F32_8_4 "} "
        "2:{1:\"i.s\" 2:\"sqrt\" 35:24 36:[21] 37:[22]" F32_8_4 "}",
        "1:\"outer\" 5:3 6:34 2:{1:\"o.p\" 2:\"parameter\" 35:31" F32_8_4 "} "
        "2:{1:\"o.n\" 2:\"negate\" 35:32 36:[31]" F32_8_4
        "} " START("33", "31", "2",
                   "2:11 3:[8,4]") "2:{1:\"o.d\" 2:\"async-done\" 35:34 36:[33]" F32_8_4 "}",
        "1:\"begins\" 5:4 6:42 2:{1:\"b.p\" 2:\"parameter\" 35:41" F32_8_4
        "} " START("43", "41", "3",
                   "2:11 3:[8,4]") "2:{1:\"b.d\" 2:\"async-done\" 35:42 36:[43]" F32_8_4 "}",
        "1:\"main\" 5:9 6:2 " P "2:{1:\"call\" 2:\"call\" 35:2 36:[1] 38:[4]" F32_8_4 "}"};
    struct xpl_buf module = module_of(texts, 5, 9);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "i.w", 96, 96, 256, 128, 128);
    check_cost(&c, "i.s", 75 * 32, 75 * 32, 256, 128, 128);
    check_cost(&c, "i.c", 0, 0, 0, 0, 0);
    check_cost(&c, "a.n", 0, 0, 0, 0, 0);
    check_cost(&c, "o.n", 0, 0, 0, 0, 0);
    check_cost(&c, "call", 76 * 32 + 64, 76 * 32 + 64, 512 + 2 * 152, 256 + 2 * 24, 4 * 128);
    end(&c, &module);
}

// An op started again is not visited again: that start keeps bytes of its operand and result.
static void test_started_again(void) {
    static const char *const texts[] = {
        "1:\"root\" 5:4 6:12 2:{1:\"r.p\" 2:\"parameter\" 35:11" F32_8_4 "} "
        "2:{1:\"r.s\" 2:\"sqrt\" 35:12 36:[11]" F32_8_4 "}",
        "1:\"called\" 5:3 6:32 2:{1:\"c.p\" 2:\"parameter\" 35:31" F32_8_4
        "} " START("33", "31", "4", "2:11 3:[8,4]")
            START("34", "31", "4", "2:11 3:[8,4]") "2:{1:\"done\" 2:\"async-done\" 35:32 "
                                                   "36:[34]" F32_8_4 "}",
        "1:\"main\" 5:9 6:2 " P "2:{1:\"call\" 2:\"call\" 35:2 36:[1] 38:[3]" F32_8_4 "}"};
    struct xpl_buf module = module_of(texts, 3, 9);
    struct costs c;
    begin(&c, &module);
    check_cost(&c, "s33", 0, 0, 0, 0, 0);
    check_cost(&c, "s34", 0, 0, 388, 128, 0);
    check_cost(&c, "call", 75 * 32, 75 * 32, 256 + 388 + 152, 128 + 128 + 24, 128 + 260 + 128);
    end(&c, &module);
}

// Code that starts and calls the one before it: sums double each time, and each is known once.
static void test_chain(void) {
    enum { N = 20000 };
    struct xpl_buf module = wt_message("1:\"m\" 4:{} 6:20000"), c;
    char text[600];
    c = wt_message("1:\"k0\" 5:0 6:2 2:{1:\"p0\" 2:\"parameter\" 35:1" F32_8_4 "} "
                   "2:{1:\"n0\" 2:\"negate\" 35:2 36:[1]" F32_8_4 "}");
    mk_close(&module, 3, &c);
    for (int i = 1; i <= N; i++) {
        (void)snprintf(text, sizeof text,
                       "1:\"k%d\" 5:%d 6:5 2:{1:\"p%d\" 2:\"parameter\" 35:1" F32_8_4 "} "
                       "2:{1:\"s%d\" 2:\"async-start\" 35:2 36:[1] 38:[%d] "
                       "3:{2:13 4:{2:13 4:{2:11 3:[8,4]}} 4:{2:11 3:[8,4]} 4:{2:4}}} "
                       "2:{1:\"d%d\" 2:\"async-done\" 35:3 36:[2]" F32_8_4 "} "
                       "2:{1:\"c%d\" 2:\"call\" 35:4 36:[1] 38:[%d]" F32_8_4 "} "
                       "2:{1:\"r%d\" 2:\"add\" 35:5 36:[3,4]" F32_8_4 "}",
                       i, i, i, i, i - 1, i, i, i - 1, i);
        c = wt_message(text);
        mk_close(&module, 3, &c);
    }
    struct costs k;
    begin(&k, &module);
    CHECK_EQ(cost_of(&k, "c1").model_flops, 96);
    CHECK_EQ(cost_of(&k, "c2").model_flops, 3 * 96);
    CHECK_EQ(cost_of(&k, "c15").model_flops, (192 << 14) - 96);
    CHECK_EQ(cost_of(&k, "c20000").model_flops, INT64_C(1) << 62); // no float holds more
    CHECK_EQ(cost_of(&k, "r20000").model_flops, 96);
    end(&k, &module);
}

int main(void) {
    test_started();
    test_started_code();
    test_started_again();
    test_chain();
    return 0;
}
