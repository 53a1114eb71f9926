// SPDX-License-Identifier: Apache-2.0
// `xplanectl summary --json`: one document, all rows, keys with their units.
#include <stdio.h>

#include "analysis/opstats/metrics/kernels.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/step_number.h"
#include "analysis/tools/lib/op_record.h"
#include "cli/summary_json.h"

uint64_t xpl_summary_ps(double ps) {
    return ps >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)ps;
}

struct xpl_summary_step xpl_summary_step(const struct xpl_per_core_step_info *p) {
    struct xpl_summary_step t = {0};
    double sum = 0; // 64 bits of picoseconds would overflow with absurd durations
    for (size_t i = 0; i < p->step_info_per_core.n; i++) {
        const struct xpl_step_info *s = &p->step_info_per_core.v[i];
        sum += (double)s->duration_ps;
        if (s->duration_ps > t.slowest_ps) t.slowest_ps = s->duration_ps;
        if (!t.name.len) t.name = s->step_name;
    }
    if (p->step_info_per_core.n) t.mean_ps = xpl_summary_ps(sum / (double)p->step_info_per_core.n);
    t.number = xpl_step_number(t.name, p->step_num);
    return t;
}

// A text of a profile; each invalid part is shown as one character.
static json_t *text(xpl_str_t s) {
    json_t *const whole = json_stringn(s.ptr ? s.ptr : "", s.len);
    return whole ? whole : json_string("\xef\xbf\xbd");
}

static json_t *number(uint64_t v) {
    return v <= INT64_MAX ? json_integer((json_int_t)v) : json_real((double)v);
}

// Rates of a device op, 0 where the profile has no costs; null, and why, where they cannot be.
static void add_rates(json_t *row, const struct xpl_opstats *s, const struct xpl_op_metrics *m) {
    struct xpl_op_record r;
    xpl_op_record_make(m, &s->perf_env, s->run_environment.hardware_type, &r);
    const char *const doubt =
        xpl_op_record_doubt(m, &s->perf_env, s->run_environment.hardware_type, &r);
    (void)json_object_set_new(row, "gigaflops_per_second",
                              doubt ? json_null() : json_real(r.flop_rate));
    (void)json_object_set_new(row, "gibibytes_per_second",
                              doubt ? json_null() : json_real(r.bandwidth));
    (void)json_object_set_new(row, "no_rates", doubt ? json_string(doubt) : json_null());
    (void)json_object_set_new(row, "bound_by", text(r.bound_by));
}

// `of`: the OpStats whose device ops these are, or NULL for ops of the host.
static json_t *ops(const struct xpl_op_metrics_db *db, const struct xpl_opstats *of) {
    json_t *const list = json_array();
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (xpl_op_metrics_is_idle(m)) continue;
        json_t *const row =
            json_pack("{so so so so so so}", "name", text(m->name), "category", text(m->category),
                      "framework_op", text(m->provenance), "occurrences", number(m->occurrences),
                      "time_ps", number(m->time_ps), "self_time_ps", number(m->self_time_ps));
        if (of && row) add_rates(row, of, m);
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *extents(const uint32_t dim[3], unsigned n) {
    json_t *const list = json_array();
    for (unsigned i = 0; i < n && i < 3; i++)
        (void)json_array_append_new(list, number(dim[i]));
    return list;
}

static json_t *kernels(const struct xpl_opstats *s) {
    json_t *const list = json_array();
    for (size_t i = 0; i < s->kernel_reports.n; i++) {
        const struct xpl_kernel_report *const k = &s->kernel_reports.v[i];
        (void)json_array_append_new(
            list,
            json_pack("{so so so so so so so so so so so sf sb}", "name", text(k->name), "op",
                      text(k->op_name), "occurrences", number(k->occurrences), "total_ns",
                      number(k->total_duration_ns), "min_ns", number(k->min_duration_ns), "max_ns",
                      number(k->max_duration_ns), "grid", extents(k->grid_dim, k->n_grid_dim),
                      "block", extents(k->block_dim, k->n_block_dim), "registers_per_thread",
                      number(k->registers_per_thread), "static_shared_bytes",
                      number(k->static_shmem_bytes), "dynamic_shared_bytes",
                      number(k->dynamic_shmem_bytes), "occupancy_percent", (double)k->occupancy_pct,
                      "tensor_core", xpl_kernel_uses_matrix_unit(k)));
    }
    return list;
}

static json_t *steps(const struct xpl_opstats *s) {
    json_t *const list = json_array();
    for (size_t i = 0; i < s->step_db.step_sequence.n; i++) {
        const struct xpl_per_core_step_info *const p = &s->step_db.step_sequence.v[i];
        const struct xpl_summary_step t = xpl_summary_step(p);
        (void)json_array_append_new(
            list, json_pack("{so so so so so}", "step", json_integer(t.number), "name",
                            text(t.name), "mean_of_cores_ps", number(t.mean_ps), "slowest_core_ps",
                            number(t.slowest_ps), "cores", number(p->step_info_per_core.n)));
    }
    return list;
}

static json_t *hosts(const struct xpl_args *a, const xpl_session_info *s) {
    json_t *const list = json_array();
    for (size_t i = 0; i < (a->n_hosts ? a->n_hosts : s->n_hosts); i++)
        (void)json_array_append_new(
            list, text(xpl_str_from(a->n_hosts ? a->hosts[i] : s->hosts[i].name)));
    return list;
}

json_t *xpl_summary_json(const struct xpl_args *a, const xpl_session_info *s,
                         const struct xpl_opstats *st, json_t *findings, json_t *memory) {
    const struct xpl_run_environment *const e = &st->run_environment;
    const bool is_cpu = e->hardware_type == XPL_HW_CPU_ONLY;
    const json_int_t cores = e->device_core_count;
    json_t *const warnings = json_array();
    for (size_t i = 0; i < st->diagnostics.warnings.n; i++)
        (void)json_array_append_new(warnings, text(st->diagnostics.warnings.v[i]));
    json_t *const all = json_pack(
        "{so so s{so so so} so so sO? so so so so so}", "session", text(xpl_str_from(s->name)),
        "hosts", hosts(a, s), "device", "type", text(e->device_type), "cores",
        is_cpu || cores <= 0 ? json_null() : json_integer(cores), "recorded_threads",
        is_cpu && cores > 0 ? json_integer(cores) : json_null(), "session_bytes", number(s->bytes),
        "warnings", warnings, "findings", json_object_get(findings, "findings"), "steps", steps(st),
        "device_ops", ops(&st->device_op_metrics_db, st), "kernels", kernels(st), "host_ops",
        ops(&st->host_op_metrics_db, NULL), "memory", memory);
    if (!all) (void)fputs("xplanectl: out of memory\n", stderr);
    json_decref(findings);
    return all;
}
