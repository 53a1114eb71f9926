// SPDX-License-Identifier: Apache-2.0
// The tables of names: sorted, complete, and looked up both ways.
#include "analysis/xplane/schema.h"
#include "tests/check.h"

static void test_stats(void) {
    CHECK_EQ(xpl_stat_type_name(XPL_STAT_UNKNOWN).len, 0);
    for (int t = 1; t < XPL_STAT_COUNT_; t++) {
        const xpl_str_t name = xpl_stat_type_name((enum xpl_stat_type)t);
        CHECK_EQ(xpl_stat_type_find(name), t);
        if (t > 1) CHECK(xpl_str_cmp(xpl_stat_type_name((enum xpl_stat_type)(t - 1)), name) < 0);
        CHECK_EQ(xpl_stat_type_find(xpl_str_sub(name, 0, name.len - 1)) == (enum xpl_stat_type)t,
                 0);
    }
    CHECK_EQ(xpl_stat_type_find(XPL_STR("")), XPL_STAT_UNKNOWN);
    CHECK_EQ(xpl_stat_type_find(XPL_STR("no such stat")), XPL_STAT_UNKNOWN);
    CHECK_EQ(xpl_stat_type_find(XPL_STR("group_id")), XPL_STAT_GROUP_ID);
    CHECK_EQ(xpl_stat_type_find(XPL_STR("_ipl_stage_cat")), XPL_STAT_INPUT_PIPELINE_STAGE_CATEGORY);
    CHECK_EQ(xpl_stat_type_find(XPL_STR("Hlo Proto")), XPL_STAT_HLO_PROTO);
    CHECK_EQ(xpl_stat_type_find(XPL_STR("HLO Proto")), XPL_STAT_UNKNOWN);
    CHECK_EQ(xpl_stat_type_name((enum xpl_stat_type)9999).len, 0);
}

static void test_events(void) {
    for (int t = 1; t < XPL_EVENT_COUNT_; t++) {
        const xpl_str_t name = xpl_event_type_name((enum xpl_event_type)t);
        CHECK_EQ(xpl_event_type_find(name), t);
        if (t > 1) CHECK(xpl_str_cmp(xpl_event_type_name((enum xpl_event_type)(t - 1)), name) < 0);
    }
    CHECK_EQ(xpl_event_type_find(XPL_STR("EagerExecute")), XPL_EVENT_EAGER_KERNEL_EXECUTE);
    CHECK_EQ(xpl_event_type_find(XPL_STR("model/layer/MatMul_1:MatMul")), XPL_EVENT_TF_OP_RUN);
    CHECK_EQ(xpl_event_type_find(XPL_STR("Iterator::Batch::Map")), XPL_EVENT_ITERATOR);
    CHECK_EQ(xpl_event_type_find(XPL_STR("Iterator::Prefetch::Generator")),
             XPL_EVENT_DEVICE_INPUT_PIPELINE_SECOND_ITERATOR);
    CHECK_EQ(xpl_event_type_find(XPL_STR("jit(f)/add:add")), XPL_EVENT_UNKNOWN);
    CHECK_EQ(xpl_event_type_find(XPL_STR("MemcpyHToD")), XPL_EVENT_UNKNOWN);
    CHECK_EQ(xpl_event_type_find(XPL_STR("")), XPL_EVENT_UNKNOWN);
    CHECK_EQ(xpl_event_type_name((enum xpl_event_type)9999).len, 0);
}

static void test_derived_lines(void) {
    const int64_t first = XPL_LINE_ID_STEPS;
    CHECK(first < 0); // thread ids are int32
    CHECK(!xpl_is_derived_line_id(first - 1) && !xpl_is_derived_line_id(0));
    CHECK(xpl_is_derived_line_id(first) && xpl_is_derived_line_id(first + 405));
    CHECK(!xpl_is_derived_line_id(first + 406));
    CHECK(xpl_is_derived_line_id(first + (INT64_C(1) << 32))); // cut to 32 bits
}

int main(void) {
    test_stats();
    test_events();
    test_derived_lines();
    return 0;
}
