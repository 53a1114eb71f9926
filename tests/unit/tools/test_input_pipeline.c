// SPDX-License-Identifier: Apache-2.0
// Tool input_pipeline_analyzer.  Expected texts were read off XProf's answers to the same OpStats.
#include "analysis/tools/input_pipeline/input_pipeline.h"
#include "analysis/tools/tool.h"
#include "tests/unit/opstats/opstats_fixture.h"

static struct xpl_arena g_arena;
static struct xpl_buf g_out;

static const char *answer(const struct xpl_opstats *s) {
    return render("input_pipeline_analyzer", s, &g_out);
}

static struct xpl_opstats tpu(void) {
    return (struct xpl_opstats){.run_environment = {.hardware_type = XPL_HW_TPU}};
}

static struct xpl_opstats gpu(void) {
    return (struct xpl_opstats){.run_environment = {.hardware_type = XPL_HW_GPU}};
}

static void test_no_steps(void) {
    struct xpl_opstats s = gpu();
    const char *const t = answer(&s);
    const char begin[] = "[{\"cols\":[],\"rows\":[]},{\"cols\":[{\"id\":\"stepnum\",";
    CHECK(strncmp(t, begin, sizeof begin - 1) == 0);
    CHECK_HAS(t, "\"input_conclusion\":\"No step time measured. Therefore we cannot tell where the "
                 "performance bottleneck is.\"");
    CHECK_HAS(t, "\"WARNING\"},{\"v\":\"No step marker observed and");
    CHECK_HAS(t, "\"summary_nextstep\":\"You may skip the rest of this page.\"");
    s.step_db.empty_intersect = true;
    CHECK_HAS(answer(&s), "the intersection of the steps over all hosts is empty");
    s.step_db.use_incomplete_step = true;
    CHECK_HAS(answer(&s), "Incomplete step observed");
    s.step_db.num_steps_dropped = 7;
    CHECK_HAS(answer(&s), "\"7 steps dropped. This might");
}

// The average is of the series with most steps; each has its own.
static void test_series(void) {
    static const char *const names[] = {"train 0", "train 1", "eval 1", "train 2"};
    struct xpl_opstats s = gpu();
    for (size_t i = 0; i < 4; i++) {
        struct xpl_step_info *const info =
            add_core(&g_arena, add_step(&g_arena, &s, (uint32_t)i), 1,
                     (names[i][0] == 'e' ? 129 : 10 + i) * kMs, XPL_BREAKDOWN_GENERIC);
        info->step_name = xpl_str_from(names[i]);
    }
    for (int exact = 0; exact < 2; exact++) {
        const struct xpl_common_options options = {.xprof_exact = exact};
        struct xpl_input_pipeline ip;
        struct xpl_error err = {0};
        CHECK_OK(xpl_input_pipeline_analyze(&s, &options, &g_arena, &ip, &err), &err);
        CHECK_REAL(ip.step_time.average, exact ? 163.0 / 4 : 34.0 / 3, 1e-9);
        CHECK_STR(ip.series, exact ? "" : "train: 3 of 11.33 ms, eval: 1 of 129.00 ms");
    }
}

// One step of zeros but for computing: a deviation of 0/0 shows as XProf's does.
static void test_generic_step(void) {
    struct xpl_opstats s = gpu();
    struct xpl_step_info *const i =
        add_core(&g_arena, add_step(&g_arena, &s, 3), 1, 10 * kMs, XPL_BREAKDOWN_GENERIC);
    add_type(&g_arena, i, 0, kMs / 4);
    add_type(&g_arena, i, 140, 8 * kMs);
    add_type(&g_arena, i, 150, kMs);
    const char *const t = answer(&s);
    CHECK_HAS(t, "\"device_compute_time_ms_avg\":\"9.0\",\"device_compute_time_ms_sdv\":\"0.0\"");
    CHECK_HAS(t, "\"compile_time_ms_avg\":\"0.0\",\"compile_time_ms_sdv\":\"-nan\"");
    CHECK_HAS(t, "{\"c\":[{\"v\":\"3\"},{\"v\":9.0},{\"v\":0.0},{\"v\":0.0},{\"v\":0.0},"
                 "{\"v\":0.0},{\"v\":0.0},{\"v\":0.0},{\"v\":0.0},{\"v\":0.25},{\"v\":\"Step 3, "
                 "duration: 10.00 ms\\n-All others: 0.25 ms\\n-Compilation: 0.00 ms\\n-Output: "
                 "0.00 ms\\n-Input: 0.00 ms\\n-Kernel launch: 0.00 ms\\n-Host compute: 0.00 "
                 "ms\\n-Device collectives: 0.00 ms\\n-Device to device: 0.00 ms\\n-Device "
                 "compute: 9.00 ms\"},{\"v\":10.0}]}");
    CHECK_HAS(t, "Your program is NOT input-bound because only 0.0% of the total step");
}

static const char *generic_of(int32_t type, unsigned percent, struct xpl_opstats *s) {
    *s = gpu();
    struct xpl_step_info *const i =
        add_core(&g_arena, add_step(&g_arena, s, 0), 1, 100 * kMs, XPL_BREAKDOWN_GENERIC);
    add_type(&g_arena, i, type, percent * kMs);
    return answer(s);
}

static void test_bottlenecks(void) {
    struct xpl_opstats s;
    CHECK_HAS(generic_of(110, 20, &s), "HIGHLY input-bound because 20.0%");
    CHECK_HAS(generic_of(80, 5, &s), "MODERATELY input-bound because 5.0%");
    CHECK_HAS(generic_of(170, 4, &s), "NOT input-bound because only 4.0%");
    CHECK_HAS(generic_of(0, 3, &s), "POTENTIALLY input-bound because 3.0%");
    CHECK_HAS(generic_of(0, 3, &s), "\"all_other_statement\":\"\"");
    CHECK_HAS(generic_of(90, 15, &s), "\"kernel_launch_statement\":\"15.0 % of the total step time "
                                      "sampled is spent on 'Kernel Launch'.\"");
    CHECK_HAS(generic_of(100, 3, &s), "\"device_collectives_statement\":\"3.0 % of the total step "
                                      "time sampled is spent on 'Device Collective "
                                      "Communication'.\"");
    CHECK_HAS(generic_of(110, 20, &s), "Consider using <a href=");
    // All others matter besides the input.
    add_type(&g_arena, s.step_db.step_sequence.v[0].step_info_per_core.v, 0, 16 * kMs);
    CHECK_HAS(answer(&s), "\"all_other_statement\":\"16.0 % of the total step time sampled is "
                          "spent on 'All Others' time.");
}

static void test_unreadable_generic_step(void) {
    struct xpl_opstats s = gpu();
    struct xpl_sparse_core_step_breakdown b = {0};
    add_core(&g_arena, add_step(&g_arena, &s, 0), 1, kMs, XPL_BREAKDOWN_GENERIC);
    add_core(&g_arena, add_step(&g_arena, &s, 1), 1, kMs, XPL_BREAKDOWN_SPARSE_CORE)->sparse = &b;
    add_core(&g_arena, add_step(&g_arena, &s, 2), 7, kMs, XPL_BREAKDOWN_GENERIC);
    const char *const t = answer(&s);
    CHECK_LACKS(t, "device_compute_time_ms_avg");
    CHECK_HAS(t, "\"steptime_ms_average\":\"0.0\"");
    CHECK_HAS(t, "No step time measured");
}

static void test_host_ops(void) {
    struct xpl_opstats s = gpu();
    struct xpl_op_metrics_db *const h = &s.host_op_metrics_db;
    add_op(&g_arena, h, "infeed", "InfeedEnqueueTuple", 100 * kMs);
    add_op(&g_arena, h, "Iterator::Map::TFRecord", "Dataset", 60 * kMs);
    add_op(&g_arena, h, "Iterator::Prefetch::TextLine", "Dataset", 30 * kMs);
    add_op(&g_arena, h, "Iterator::Batch", "Dataset", 10 * kMs);
    add_op(&g_arena, h, "own stage", "READ", 5 * kMs);
    add_op(&g_arena, h, "other", "Unknown", 5 * kMs);
    add_op(&g_arena, h, "MatMul", "MatMul", 900 * kMs);
    const char *t = answer(&s);
    CHECK_HAS(t, "{\"c\":[{\"v\":\"infeed\"},{\"v\":2.0},{\"v\":100.0},{\"v\":0.476190476190476");
    CHECK_HAS(t, "{\"v\":\"Advanced file read\"}");
    CHECK_HAS(t, "{\"v\":\"own stage\"},{\"v\":2.0},{\"v\":5.0}");
    CHECK_LACKS(t, "MatMul");
    CHECK_HAS(t, "\"p\":{\"advanced_file_read_us\":\"30000.000\","
                 "\"demanded_file_read_us\":\"65000.000\",\"enqueue_us\":\"100000.000\","
                 "\"preprocessing_us\":\"10000.000\",\"unclassified_nonequeue_us\":\"0.000\"}");
    // A quarter of the time is enqueuing, so that the rest takes three times as long.
    h->total_host_infeed_enq_duration_ps = kMs;
    h->total_host_infeed_enq_start_timestamp_ps_diff = 4 * kMs;
    t = answer(&s);
    CHECK_HAS(t, "\"demanded_file_read_us\":\"185714.286\"");
    h->total_host_infeed_enq_duration_ps = 9 * kMs;
    CHECK_HAS(answer(&s), "\"demanded_file_read_us\":\"0.000\"");
}

static void test_tpu_cores(void) {
    struct xpl_opstats s = tpu();
    struct xpl_per_core_step_info *const step = add_step(&g_arena, &s, 5);
    struct xpl_step_info *i = add_core(&g_arena, step, 2, 3 * kMs, XPL_BREAKDOWN_GENERIC);
    add_category(&g_arena, i, "infeed", kMs / 5);
    add_category(&g_arena, i, "IDLE", 5 * kMs / 4);
    add_category(&g_arena, i, "fusion", 3 * kMs / 10);
    add_category(&g_arena, i, "convolution", kMs / 10);
    i = add_core(&g_arena, step, 3, 7 * kMs / 2, XPL_BREAKDOWN_GENERIC);
    add_category(&g_arena, i, "outfeed", kMs / 10);
    add_category(&g_arena, i, "fusion", 9 * kMs / 4);
    add_category(&g_arena, i, "copy", 7 * kMs / 10);
    add_core_details(
        &g_arena, &s,
        (struct xpl_core_details){.core_id = 2, .hostname = XPL_STR("h"), .device_ordinal = 4});
    const char *const t = answer(&s);
    CHECK_HAS(t, "{\"v\":\"Core name\"},{\"v\":\"h:4\"}");
    CHECK_HAS(t, "{\"c\":[{\"v\":\"5\"},{\"v\":0.4},{\"v\":0.0},{\"v\":0.0},{\"v\":0.2},"
                 "{\"v\":0.05},{\"v\":2.3499999999999996},{\"v\":0.0},{\"v\":\"step 5:\\nTime "
                 "waiting for input data = 0.200 ms, Step time = 3.000 ms\"},"
                 "{\"v\":3.3333333333333335},{\"v\":0.0},{\"v\":6.666666666666667}]}");
    CHECK_HAS(t, "\"tc_active_ms_average\":\"1.68\"");
    CHECK_HAS(t, "\"scv0_compute_ms_average\":\"0.00\"");
    CHECK_LACKS(t, "sc_active_ms_average");
}

static void test_sparse_core(void) {
    struct xpl_opstats s = tpu();
    struct xpl_sparse_core_step_breakdown b = {.sc_infeed_ps = kMs / 10,
                                               .sc_outfeed_ps = kMs / 20,
                                               .sc_idle_ps = kMs / 5,
                                               .sc_busy_ps = 3 * kMs};
    struct xpl_per_core_step_info *const step = add_step(&g_arena, &s, 0);
    struct xpl_step_info *i = add_core(&g_arena, step, 1000001, kMs, XPL_BREAKDOWN_SPARSE_CORE);
    i->sparse = &b;
    i = add_core(&g_arena, step, 1000002, kMs, XPL_BREAKDOWN_GENERIC);
    add_category(&g_arena, i, "IDLE", kMs / 2);
    add_category(&g_arena, i, "host send", kMs / 10);
    add_category(&g_arena, i, "fusion", 7 * kMs / 10);
    const char *const t = answer(&s);
    CHECK_LACKS(t, "scv0");
    CHECK_HAS(t, "\"sc_active_ms_average\":\"0.85\",\"sc_compute_ms_average\":\"0.65\","
                 "\"sc_idle_ms_average\":\"0.40\",\"sc_infeed_ms_average\":\"0.05\","
                 "\"sc_outfeed_ms_average\":\"0.03\",\"sc_step_time_ms_average\":\"1.0\"");
}

static void test_tpu_breakdown(void) {
    struct xpl_opstats s = tpu();
    struct xpl_tpu_step_breakdown b = {.wait_for_scv0_duration_ps = 4 * kMs,
                                       .scv0_infeed_percent = 25,
                                       .host_outfeed_ps = 3 * kMs,
                                       .host_send_duration_ps = kMs,
                                       .tc_busy_ps = 20 * kMs};
    struct xpl_per_core_step_info *const step = add_step(&g_arena, &s, 0);
    add_core(&g_arena, step, 0, 10 * kMs, XPL_BREAKDOWN_TPU)->tpu = &b;
    for (uint32_t core = 0; core < 2; core++) {
        struct xpl_all_reduce_info *const a = add_all_reduce(&g_arena, step, core);
        a->id = 9;
        a->end_time_ps = (2 - core) * kMs;
    }
    const char *const t = answer(&s);
    CHECK_HAS(t,
              "{\"c\":[{\"v\":\"0\"},{\"v\":2.0},{\"v\":3.0},{\"v\":1.0},{\"v\":0.0},"
              "{\"v\":3.0},{\"v\":1.0},{\"v\":1.0},{\"v\":\"step 0:\\nTime waiting for input "
              "data = 1.000 ms, Step time = 10.000 ms\"},{\"v\":10.0},{\"v\":10.0},{\"v\":10.0}]");
    CHECK_HAS(t, "\"tc_active_ms_average\":\"10.00\"");
    CHECK_HAS(t, "HIGHLY output-bound because 25.0%");
    CHECK_HAS(t, "MODERATELY input-bound because 8.3%");
}

// A core whose breakdown cannot be read ends the step; a step of no length divides by nothing.
static void test_odd_tpu_steps(void) {
    struct xpl_opstats s = tpu();
    add_core(&g_arena, add_step(&g_arena, &s, UINT32_MAX), 0, kMs, XPL_BREAKDOWN_NONE);
    add_core(&g_arena, add_step(&g_arena, &s, 1), 0, 0, XPL_BREAKDOWN_GENERIC);
    (void)add_step(&g_arena, &s, 2);
    const char *const t = answer(&s);
    CHECK_HAS(t, "{\"v\":\"Step number\"},{\"v\":\"-1\"},{\"v\":\"1\"},{\"v\":\"-1\"}");
    CHECK_HAS(t, "{\"v\":\"Core name\"},{\"v\":\"unknown\"}");
    CHECK_HAS(t, "{\"v\":0.0},{\"v\":0.0},{\"v\":2.2250738585072014e-308}]}");
}

static void test_limits(void) {
    struct xpl_opstats s = tpu();
    add_core(&g_arena, add_step(&g_arena, &s, 0), 0, kMs, XPL_BREAKDOWN_GENERIC);
    const struct xpl_tool *const tool = named_tool("input_pipeline_analyzer");
    struct xpl_error err = {0};
    struct xpl_buf small = xpl_buf_of(100);
    CHECK_STATUS(render_op_stats(tool, &s, NULL, 8 << 20, &small, &err), XPL_RESOURCE_EXHAUSTED,
                 &err);
    xpl_buf_fini(&small);
    g_out.n = 0;
    for (size_t limit = 16; limit <= 4096; limit *= 2)
        CHECK_STATUS(render_op_stats(tool, &s, NULL, limit, &g_out, &err), XPL_RESOURCE_EXHAUSTED,
                     &err);
}

int main(void) {
    xpl_arena_init(&g_arena, 8 << 20);
    xpl_buf_init(&g_out, 1 << 20);
    test_no_steps();
    test_generic_step();
    test_series();
    test_bottlenecks();
    test_unreadable_generic_step();
    test_host_ops();
    test_tpu_cores();
    test_sparse_core();
    test_tpu_breakdown();
    test_odd_tpu_steps();
    test_limits();
    xpl_buf_fini(&g_out);
    xpl_arena_fini(&g_arena);
    return 0;
}
