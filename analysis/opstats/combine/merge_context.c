// SPDX-License-Identifier: Apache-2.0
// What else hosts say: where they ran, what devices can do, names, diagnostics.

#include "analysis/opstats/combine/merge.h"
#include "base/vec.h"

// ---- environment ----

static int by_text(const void *pa, const void *pb) {
    return xpl_str_cmp(*(const xpl_str_t *)pa, *(const xpl_str_t *)pb);
}

static bool add_hostnames(const struct xpl_merge *m, const struct xpl_run_environment *src,
                          struct xpl_run_environment *dst) {
    for (size_t i = 0; i < src->hostnames.n; i++) {
        xpl_str_t *const name = xpl_vec_push(m->result, &dst->hostnames);
        if (!name) return false;
        *name = src->hostnames.v[i];
        if (!xpl_merge_text(m, name)) return false;
    }
    return true;
}

static void finish_hostnames(struct xpl_run_environment *dst) {
    xpl_str_t *const v = dst->hostnames.v;
    const size_t n = dst->hostnames.n;
    size_t kept = 0;
    xpl_sort(v, n, sizeof *v, by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !xpl_str_eq(v[kept - 1], v[i])) v[kept++] = v[i];
    dst->hostnames.n = kept;
    dst->host_count = (int32_t)kept;
}

static int32_t add_i32(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static bool add_device(const struct xpl_merge *m, const struct xpl_run_environment *src,
                       struct xpl_run_environment *dst) {
    bool ok = true;
    if (!xpl_str_eq(src->device_type, XPL_STR("CPU")) &&
        !xpl_str_eq(src->device_type, XPL_STR("Device"))) {
        dst->device_type = src->device_type;
        if (src->replica_count > dst->replica_count) dst->replica_count = src->replica_count;
        if (src->num_cores_per_replica > dst->num_cores_per_replica)
            dst->num_cores_per_replica = src->num_cores_per_replica;
        dst->system_topology = src->system_topology;
        ok = xpl_merge_text(m, &dst->device_type) && xpl_merge_bytes(m, &dst->system_topology);
    } else if (dst->device_type.len == 0) {
        dst->device_type = src->device_type;
        ok = xpl_merge_text(m, &dst->device_type);
    } // XProf counts no cores of CPU hosts; with cpu_as_device each has some.
    dst->device_core_count = add_i32(dst->device_core_count, src->device_core_count);
    if (src->hardware_type > dst->hardware_type) dst->hardware_type = src->hardware_type;
    return ok;
}

static bool add_job_infos(const struct xpl_merge *m, const struct xpl_run_environment *src,
                          struct xpl_run_environment *dst) {
    if (!dst->host_independent_job_info.len) {
        dst->host_independent_job_info = src->host_independent_job_info;
        if (!xpl_merge_bytes(m, &dst->host_independent_job_info)) return false;
    }
    if (!dst->power_metrics.len) {
        dst->power_metrics = src->power_metrics;
        if (!xpl_merge_bytes(m, &dst->power_metrics)) return false;
    }
    for (size_t k = 0; k < src->host_dependent_job_info.n; k++) {
        xpl_bytes_t *const b = xpl_vec_push(m->result, &dst->host_dependent_job_info);
        if (!b) return false;
        *b = src->host_dependent_job_info.v[k];
        if (!xpl_merge_bytes(m, b)) return false;
    }
    return true;
}

static bool add_environment(const struct xpl_merge *m, const struct xpl_run_environment *src) {
    struct xpl_run_environment *const dst = &m->out->run_environment;
    if (!add_hostnames(m, src, dst) || !add_device(m, src, dst) || !add_job_infos(m, src, dst))
        return false;
    if (!m->exact && src->replica_count > dst->replica_count)
        dst->replica_count = src->replica_count;
    dst->task_count = add_i32(dst->task_count, src->task_count);
    dst->host_trace_level = src->host_trace_level;
    // Upstream takes the last host's value.
    dst->is_training = src->is_training || (!m->exact && dst->is_training);
    return true;
}

static bool add_perf_env(const struct xpl_merge *m, const struct xpl_perf_env *src) {
    struct xpl_perf_env *const dst = &m->out->perf_env;
    if (src->peak_tera_flops_per_second > 0)
        dst->peak_tera_flops_per_second = src->peak_tera_flops_per_second;
    if (dst->peak_bws_giga_bytes_per_second.n == 0) {
        dst->peak_bws_giga_bytes_per_second = src->peak_bws_giga_bytes_per_second;
        if (!xpl_merge_array(m, &dst->peak_bws_giga_bytes_per_second.v,
                             dst->peak_bws_giga_bytes_per_second.n, sizeof(double)))
            return false;
    }
    if (src->ridge_point > 0) dst->ridge_point = src->ridge_point;
    if (m->exact) return true; // upstream forgets these
    dst->has_cmem |= src->has_cmem;
    dst->has_merged_vmem |= src->has_merged_vmem;
    dst->has_megacore |= src->has_megacore;
    return true;
}

static void add_counters(struct xpl_merge *m, const struct xpl_opstats *s) {
    m->out->matrix_unit_utilization_percent += s->matrix_unit_utilization_percent;
    m->out->hbm_utilization_percent += s->hbm_utilization_percent;
    // Upstream divides by all hosts, also by those that counted nothing.
    m->n_counters += m->exact || s->has_performance_counter_result;
}

static void finish_counters(struct xpl_merge *m) {
    if (m->n_counters == 0) return;
    m->out->matrix_unit_utilization_percent /= (double)m->n_counters;
    m->out->hbm_utilization_percent /= (double)m->n_counters;
}

// Disaggregated serving: the mean of decode steps over all hosts.
static void add_serving(struct xpl_opstats *dst, const struct xpl_opstats *src) {
    if (!src->has_disaggregated_serving_latency) return;
    dst->has_disaggregated_serving_latency = true;
    const double a = (double)src->num_decode_steps, b = (double)dst->num_decode_steps;
    if (a + b <= 0) return;
    dst->decode_step_time_us.avg =
        (src->decode_step_time_us.avg * a + dst->decode_step_time_us.avg * b) / (a + b);
    dst->num_decode_steps =
        (int64_t)((uint64_t)dst->num_decode_steps + (uint64_t)src->num_decode_steps);
}

// ---- names and details ----

static bool add_programs(struct xpl_merge *m, const struct xpl_opstats *s) {
    for (size_t k = 0; k < s->program_id_to_name_map.n; k++) {
        bool is_new;
        const struct xpl_program_name *const src = &s->program_id_to_name_map.v[k];
        if (!xpl_map_put(m->scratch, &m->programs, src->program_id, 0, &is_new)) return false;
        if (!is_new) continue;
        struct xpl_program_name *const p = xpl_vec_push(m->result, &m->out->program_id_to_name_map);
        if (!p) return false;
        *p = *src;
        if (!xpl_merge_text(m, &p->name)) return false;
    }
    return true;
}

static bool add_details(const struct xpl_merge *m, size_t host, const struct xpl_opstats *s) {
    for (size_t k = 0; k < s->core_id_to_details.n; k++) {
        struct xpl_core_details *const d = xpl_vec_push(m->result, &m->out->core_id_to_details);
        if (!d) return false;
        *d = s->core_id_to_details.v[k];
        d->core_id = xpl_merge_core_id(host, d->core_id);
        // Of several hosts the names that profiles say may be the same.
        if (!m->exact) d->hostname = m->h->v.v[host].host->host;
        if (!xpl_merge_text(m, &d->hostname)) return false;
    }
    return true;
}

static bool add_texts(const struct xpl_merge *m, const struct xpl_str_list *src,
                      struct xpl_str_list *dst) {
    for (size_t i = 0; i < src->n; i++) {
        xpl_str_t *const text = xpl_vec_push(m->result, dst);
        if (!text) return false;
        *text = src->v[i];
        if (!xpl_merge_text(m, text)) return false;
    }
    return true;
}

static bool add_diagnostics(const struct xpl_merge *m, const struct xpl_diagnostics *src) {
    struct xpl_diagnostics *const dst = &m->out->diagnostics;
    return add_texts(m, &src->info, &dst->info) && add_texts(m, &src->warnings, &dst->warnings) &&
           add_texts(m, &src->errors, &dst->errors);
}

// ---- all ----

bool xpl_merge_context_begin(struct xpl_merge *m) {
    return xpl_vec_reserve(m->result, &m->out->run_environment.hostnames, m->h->v.n);
}

bool xpl_merge_context_add(struct xpl_merge *m, size_t host, const struct xpl_opstats *s) {
    add_counters(m, s);
    add_serving(m->out, s);
    return add_perf_env(m, &s->perf_env) && add_environment(m, &s->run_environment) &&
           add_programs(m, s) && add_details(m, host, s) && add_diagnostics(m, &s->diagnostics);
}

bool xpl_merge_context_finish(struct xpl_merge *m) {
    struct xpl_opstats *const s = m->out;
    finish_hostnames(&s->run_environment);
    finish_counters(m);
    xpl_sort(s->program_id_to_name_map.v, s->program_id_to_name_map.n,
             sizeof *s->program_id_to_name_map.v, xpl_program_name_by_id);
    return xpl_merge_unique_by_core(s->core_id_to_details.v, &s->core_id_to_details.n,
                                    sizeof *s->core_id_to_details.v, m->scratch);
}
