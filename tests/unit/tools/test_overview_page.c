// SPDX-License-Identifier: Apache-2.0
// Tool overview_page.  Expected texts were read off XProf's answers to the same OpStats.
#include "tests/unit/opstats/opstats_fixture.h"

static struct xpl_arena g_arena;
static struct xpl_buf g_out;

static const char *answer(const struct xpl_opstats *s) {
    return render("overview_page", s, &g_out);
}

static void test_empty(void) {
    const struct xpl_opstats s = {0};
    const char *const t = answer(&s);
    CHECK_HAS(t, "\"label\":\"Bf16 Normalized Flop Rate(GFLOPs/Sec)\"");
    CHECK_HAS(t, "\"device_idle_time_percent\":\"0.0%\"");
    CHECK_HAS(t, "\"p\":{\"device_core_count\":\"0\",\"device_type\":\"\",\"host_count\":\"0\","
                 "\"is_training\":\"false\",\"task_count\":\"0\"},\"rows\":[]}");
    CHECK_HAS(t, "executed on the UNKNOWN_HARDWARE)");
    CHECK_HAS(t, "\"totalTimeMs\",\"label\":\"Total latency (in ms)\",\"type\":\"number\"}],"
                 "\"rows\":[]}, {},{\"cols\":");
    CHECK_HAS(t, "{\"v\":\"ERROR\"},{\"v\":\"No TensorCore device trace was collected.");
}

static void test_gpu(void) {
    struct xpl_opstats s = {
        .run_environment = {.device_type = XPL_STR("Nvidia GPU (Ampere)"),
                            .hardware_type = XPL_HW_GPU,
                            .host_count = 2,
                            .task_count = 4,
                            .device_core_count = 8,
                            .replica_count = 2,
                            .num_cores_per_replica = 4,
                            .host_trace_level = 2,
                            .is_training = true},
        .device_op_metrics_db = {.compute_16bit_ps = 1, .compute_32bit_ps = 19},
    };
    struct xpl_op_metrics_db *const d = &s.device_op_metrics_db;
    struct xpl_op_metrics *m = add_op(&g_arena, d, "fusion.1", "loop fusion", 3 * kMs);
    m->provenance = XPL_STR("jit(f)/dot_general:");
    m->flops_v2 = 6e9;
    m->is_eager = true;
    m = add_op(&g_arena, d, "fusion.2", "loop fusion", kMs);
    add_op(&g_arena, d, "IDLE", "IDLE", 4 * kMs);
    d->total_op_time_ps = 4 * kMs;
    add_op(&g_arena, &s.host_op_metrics_db, "op", "X", kMs);
    struct xpl_kernel_report *const k = add_kernel(&g_arena, &s);
    k->op_name = XPL_STR("jit(f)/dot_general");
    k->is_kernel_using_tensor_core = true;
    k->total_duration_ns = 1;
    add_text(&g_arena, &s.diagnostics.errors, "z");
    add_text(&g_arena, &s.diagnostics.errors, "a");
    add_text(&g_arena, &s.diagnostics.warnings, "careful");
    const char *const t = answer(&s);
    CHECK_HAS(t, "{\"c\":[{\"v\":0.75},{\"v\":0.75},{\"v\":\"dot_general\"},"
                 "{\"v\":\"jit(f)/dot_general\"},{\"v\":2000.0},{\"v\":false},{\"v\":true}]}");
    CHECK_HAS(t, "{\"v\":0.25},{\"v\":1.0},{\"v\":\"Unknown\"},{\"v\":\"fusion.2\"}");
    CHECK_HAS(t, "\"device_compute_16bit_percent\":\"5.0%\"");
    CHECK_HAS(t, "\"device_op_time_eager_percent\":\"75.0%\",\"device_tf_op_percent\":\"66.7%\"");
    CHECK_HAS(t, "\"host_trace_level\":\"2\"");
    CHECK_HAS(t, "\"device_core_count\":\"8 (Replica count = 2, num cores per replica = 4)\"");
    CHECK_HAS(t, "\"task_count\":\"4 (num tasks per host = 2)\"");
    CHECK_HAS(t, "\"precision_statement\":\"Only 5.0% of device computation is 16 bit.");
    CHECK_HAS(t, "[{\"c\":[{\"v\":\"WARNING\"},{\"v\":\"careful\"}]},{\"c\":[{\"v\":\"WARNING\"},"
                 "{\"v\":\"No step marker");
    CHECK_HAS(t, "{\"v\":\"ERROR\"},{\"v\":\"a\"}]},{\"c\":[{\"v\":\"ERROR\"},{\"v\":\"z\"}]}]}]");
}

static void test_tpu(void) {
    struct xpl_opstats s = {
        .run_environment = {.device_type = XPL_STR("TPU v6 Lite"),
                            .host_count = -1,
                            .device_core_count = 4},
        .device_op_metrics_db = {.busy_time_ps = 3,
                                 .idle_time_ps = 1,
                                 .busy_time_high_confidence_ps = 1,
                                 .idle_time_high_confidence_ps = 49077600000000,
                                 .total_time_ps = 10,
                                 .total_op_time_ps = 9},
        .matrix_unit_utilization_percent = -1,
    };
    const char *t = answer(&s);
    CHECK_HAS(t, "\"device_duty_cycle_high_confidence_percent\":\"0.0%\","
                 "\"device_duty_cycle_percent\":\"75.0%\",\"device_idle_time_percent\":\"10.0%\"");
    CHECK_HAS(t, "\"idle_time_high_confidence_ps\":\"4.90776e+13\"");
    CHECK_HAS(t, "\"host_idle_time_percent\":\"100.0%\"");
    CHECK_HAS(t, "\"mxu_utilization_percent\":\"unknown\"");
    CHECK_HAS(t, "\"host_count\":\"unknown\"");
    CHECK_HAS(t, "op_profile (identify the time-consuming operations executed on the TPU)");
    CHECK_LACKS(t, "active_steptime");
    // With steps, the generic advice has nothing to say.
    s.run_environment.hardware_type = XPL_HW_TPU;
    struct xpl_per_core_step_info *const step = add_step(&g_arena, &s, 0);
    struct xpl_step_info *const i = add_core(&g_arena, step, 0, 2 * kMs, XPL_BREAKDOWN_GENERIC);
    add_category(&g_arena, i, "fusion", 2 * kMs);
    t = answer(&s);
    CHECK_HAS(t, "\"active_steptime_ms_average\":\"2.00\"");
    CHECK_HAS(t, "\"bottleneck\":\"\",\"device_collectives_bottleneck\":\"\"");
    CHECK_HAS(t, "NOT input-bound");
}

int main(void) {
    xpl_arena_init(&g_arena, 8 << 20);
    xpl_buf_init(&g_out, 1 << 20);
    test_empty();
    test_gpu();
    test_tpu();
    xpl_buf_fini(&g_out);
    xpl_arena_fini(&g_arena);
    return 0;
}
