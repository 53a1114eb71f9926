// SPDX-License-Identifier: Apache-2.0
// Combination of hosts: the participating hosts, how cores and steps are numbered, the sums.
#include "analysis/opstats/combine/combine.h"

#include <string.h>

#include "base/arena.h"
#include "tests/check.h"

static struct xpl_arena arena;

static void add_op(struct xpl_op_metrics_db *db, const char *name, uint64_t time) {
    struct xpl_op_metrics *m = xpl_vec_push(&arena, &db->metrics_db);
    CHECK(m);
    *m = (struct xpl_op_metrics){.name = xpl_str_from(name),
                                 .category = xpl_str_from(name),
                                 .occurrences = 1,
                                 .time_ps = time,
                                 .self_time_ps = time,
                                 .num_cores = 1};
    db->total_op_time_ps += time;
}

// A host with n steps of 9 ps every 10 ps, on two cores, and one device op.
static struct xpl_opstats *host(const char *device, size_t n, uint64_t begin) {
    struct xpl_opstats *s = xpl_arena_zalloc(&arena, sizeof *s);
    CHECK(s);
    s->run_environment.device_type = xpl_str_from(device);
    s->run_environment.device_core_count = 2;
    s->run_environment.task_count = 1;
    xpl_str_t *name = xpl_vec_push(&arena, &s->run_environment.hostnames);
    CHECK(name && xpl_arena_printf(&arena, name, "h%d", (int)(begin % 7)));
    if (n) add_op(&s->device_op_metrics_db, "op", 100);
    for (size_t i = 0; i < n; i++) {
        struct xpl_per_core_step_info *st = xpl_vec_push(&arena, &s->step_db.step_sequence);
        CHECK(st);
        *st = (struct xpl_per_core_step_info){.step_num = (uint32_t)(50 + i)};
        for (uint32_t core = 1; core <= 2; core++) {
            struct xpl_step_info *c = xpl_vec_push(&arena, &st->step_info_per_core);
            CHECK(c);
            *c = (struct xpl_step_info){.core_id = core,
                                        .step_num = (uint32_t)(50 + i),
                                        .begin_ps = begin + 10 * i,
                                        .duration_ps = 9};
        }
    }
    struct xpl_core_details *d = xpl_vec_push(&arena, &s->core_id_to_details);
    CHECK(d);
    *d = (struct xpl_core_details){.core_id = 1, .hostname = xpl_str_from("x")};
    return s;
}

static const struct xpl_opstats *combine(const struct xpl_opstats *const *stats, size_t n,
                                         bool exact) {
    struct xpl_host_opstats h[300];
    for (size_t i = 0; i < n; i++) {
        h[i] = (struct xpl_host_opstats){.stats = stats[i], .problem = XPL_STR("cut off")};
        CHECK(xpl_arena_printf(&arena, &h[i].host, "host%zu", i));
    }
    struct xpl_opstats *out = NULL;
    struct xpl_error err = {0};
    const struct xpl_combine_input in = {.hosts = h, .n = n, .xprof_exact = exact};
    CHECK_OK(xpl_opstats_combine(&in, &arena, &out, &err), &err);
    return out;
}

static bool warned(const struct xpl_opstats *s, const char *text) {
    for (size_t i = 0; i < s->diagnostics.warnings.n; i++)
        if (xpl_str_has(s->diagnostics.warnings.v[i], xpl_str_from(text))) return true;
    return false;
}

static void check_plain(void) {
    const struct xpl_opstats *v[] = {host("TPU v5", 4, 0), host("TPU v5", 4, 11)};
    const struct xpl_opstats *s = combine(v, 2, false);
    CHECK_EQ(s->diagnostics.warnings.n, 0);
    CHECK_EQ(s->step_db.step_sequence.n, 3); // the second began one step later
    CHECK_EQ(s->step_db.step_sequence.v[2].step_num, 2);
    const struct xpl_per_core_step_info *st = &s->step_db.step_sequence.v[0];
    CHECK_EQ(st->step_info_per_core.n, 4);
    CHECK_EQ(st->step_info_per_core.v[0].core_id, 1);
    CHECK_EQ(st->step_info_per_core.v[2].core_id, 1001);
    CHECK_EQ(st->step_info_per_core.v[2].step_num, 0);
    CHECK_EQ(st->step_info_per_core.v[0].begin_ps, 10);
    CHECK_EQ(st->step_info_per_core.v[2].begin_ps, 11);
    CHECK_EQ(s->device_op_metrics_db.metrics_db.n, 1);
    CHECK_EQ(s->device_op_metrics_db.metrics_db.v[0].num_cores, 2);
    CHECK_EQ(s->device_op_metrics_db.metrics_db.v[0].self_time_ps, 200);
    CHECK_EQ(s->run_environment.device_core_count, 4);
    CHECK_EQ(s->run_environment.task_count, 2);
    CHECK_EQ(s->run_environment.host_count, 2);
    CHECK_EQ(s->core_id_to_details.n, 2);
    CHECK_EQ(s->core_id_to_details.v[1].core_id, 1001);
    CHECK_STR(s->core_id_to_details.v[1].hostname, "host1");
    CHECK_STR(combine(v, 2, true)->core_id_to_details.v[1].hostname, "x");
    CHECK_EQ(combine(v, 1, false)->step_db.step_sequence.v[0].step_num, 50); // one host: as it is
}

static void check_idle(void) {
    const struct xpl_opstats *v[] = {host("CPU", 4, 0), host("CPU", 0, 3), host("CPU", 4, 1)};
    const struct xpl_opstats *s = combine(v, 3, false);
    CHECK_EQ(s->step_db.step_sequence.n, 4);
    CHECK_EQ(s->run_environment.host_count, 2);
    CHECK(warned(s, "Host host1 is left out, it was idle"));
    s = combine(v, 3, true); // as XProf: no step in common
    CHECK_EQ(s->step_db.step_sequence.n, 0);
    CHECK(!s->step_db.empty_intersect);
    CHECK_EQ(s->diagnostics.warnings.n, 0);
    CHECK_EQ(s->run_environment.host_count, 3);
    // A host with ops and no steps gives its ops.
    struct xpl_opstats *ops = host("CPU", 0, 3);
    add_op(&ops->host_op_metrics_db, "op", 7);
    v[1] = ops;
    s = combine(v, 3, false);
    CHECK_EQ(s->step_db.step_sequence.n, 4);
    CHECK_EQ(s->host_op_metrics_db.metrics_db.n, 1);
    CHECK(warned(s, "Host host1 has no steps"));
    // No host did anything: none is left out.
    v[0] = v[1] = v[2] = host("CPU", 0, 1);
    CHECK_EQ(combine(v, 3, false)->diagnostics.warnings.n, 0);
    // A coordinator beside accelerators is expected to look idle, and has no part in the steps.
    v[0] = host("TPU v5", 4, 0), v[1] = host("CPU", 0, 2), v[2] = host("CPU", 9, 500);
    s = combine(v, 3, false);
    CHECK_EQ(s->step_db.step_sequence.n, 4);
    CHECK_EQ(s->diagnostics.warnings.n, 0);
    CHECK_STR(s->run_environment.device_type, "TPU v5");
}

static void check_broken(void) {
    const struct xpl_opstats *v[] = {NULL, host("CPU", 3, 0), NULL};
    const struct xpl_opstats *s = combine(v, 3, false);
    CHECK_EQ(s->step_db.step_sequence.n, 3);
    CHECK(warned(s, "Host host0 is left out, its profile cannot be read: cut off"));
    CHECK(warned(s, "Host host2"));
    CHECK_STR(s->core_id_to_details.v[0].hostname, "host1"); // as those of several hosts
    CHECK_STR(v[1]->core_id_to_details.v[0].hostname, "x");
    CHECK_STR(combine(v, 3, true)->core_id_to_details.v[0].hostname, "x");
    struct xpl_host_opstats h = {.host = XPL_STR("a"), .problem = XPL_STR("cut off at 7")};
    struct xpl_opstats *out = NULL;
    struct xpl_error err = {0};
    const struct xpl_combine_input in = {.hosts = &h, .n = 1};
    CHECK_STATUS(xpl_opstats_combine(&in, &arena, &out, &err), XPL_DATA_LOSS, &err);
    CHECK(!out && strstr(err.msg, "cut off at 7"));
}

static void check_stragglers(void) {
    // The chief has steps 100..130; one host overlaps its first, two its last.
    const struct xpl_opstats *v[] = {host("CPU", 3, 100), host("CPU", 8, 30), host("CPU", 8, 120),
                                     host("CPU", 8, 120)};
    const struct xpl_opstats *s = combine(v, 4, true);
    CHECK_EQ(s->step_db.step_sequence.n, 0);
    CHECK(s->step_db.empty_intersect);
    s = combine(v, 4, false);
    CHECK(s->step_db.step_sequence.n > 0);
    CHECK(!s->step_db.empty_intersect);
    CHECK(warned(s, "Host host1 straggles"));
    CHECK_EQ(s->diagnostics.warnings.n, 1);
    CHECK_EQ(s->run_environment.task_count, 4); // it still gives its ops
}

// What XProf takes from the last host, forgets, or divides by hosts that counted nothing.
static void check_environment(void) {
    struct xpl_opstats *a = host("TPU v5", 2, 0), *b = host("TPU v5", 2, 1);
    const struct xpl_opstats *v[] = {a, b};
    a->run_environment.is_training = true;
    a->perf_env.has_cmem = a->perf_env.has_megacore = true;
    b->perf_env.has_merged_vmem = true;
    a->has_performance_counter_result = true;
    a->matrix_unit_utilization_percent = 40;
    a->hbm_utilization_percent = 10;
    const struct xpl_opstats *s = combine(v, 2, false);
    CHECK(s->run_environment.is_training);
    CHECK(s->perf_env.has_cmem && s->perf_env.has_megacore && s->perf_env.has_merged_vmem);
    CHECK_REAL(s->matrix_unit_utilization_percent, 40, 0);
    CHECK_REAL(s->hbm_utilization_percent, 10, 0);
    s = combine(v, 2, true);
    CHECK(!s->run_environment.is_training);
    CHECK(!s->perf_env.has_cmem && !s->perf_env.has_megacore && !s->perf_env.has_merged_vmem);
    CHECK_REAL(s->matrix_unit_utilization_percent, 20, 0);
    CHECK_REAL(s->hbm_utilization_percent, 5, 0);
    b->has_performance_counter_result = true; // it counted, and found nothing
    s = combine(v, 2, false);
    CHECK_REAL(s->matrix_unit_utilization_percent, 20, 0);
    CHECK_REAL(s->hbm_utilization_percent, 5, 0);
    v[0] = b, v[1] = a;
    CHECK(combine(v, 2, true)->run_environment.is_training);
}

// Of all hosts' kernels the 1,000 that took longest are kept.
static void check_kernels(void) {
    const struct xpl_opstats *v[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct xpl_opstats *const s = host("Nvidia GPU", 2, i);
        for (uint32_t k = 0; k < 600; k++) {
            struct xpl_kernel_report *const r = xpl_vec_push(&arena, &s->kernel_reports);
            CHECK(r);
            *r = (struct xpl_kernel_report){.name = XPL_STR("k"), .total_duration_ns = 2 * k + i};
        }
        v[i] = s;
    }
    const struct xpl_opstats *const s = combine(v, 2, false);
    CHECK_EQ(s->kernel_reports.n, 1000);
    CHECK_EQ(s->kernel_reports.v[0].total_duration_ns, 1199);
    CHECK_EQ(s->kernel_reports.v[999].total_duration_ns, 200);
}

static void check_many(void) {
    const struct xpl_opstats *v[256];
    for (size_t i = 0; i < 256; i++)
        v[i] = host("CPU", 1000, i % 4);
    const struct xpl_opstats *s = combine(v, 256, false);
    CHECK_EQ(s->step_db.step_sequence.n, 1000);
    CHECK_EQ(s->step_db.step_sequence.v[999].step_info_per_core.n, 512);
    CHECK_EQ(s->step_db.step_sequence.v[999].step_info_per_core.v[511].core_id, 255002);
}

int main(void) {
    xpl_arena_init(&arena, (size_t)1 << 31);
    check_plain();
    check_idle();
    check_broken();
    check_stragglers();
    check_environment();
    check_kernels();
    check_many();
    xpl_arena_fini(&arena);
    return 0;
}
