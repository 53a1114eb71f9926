// SPDX-License-Identifier: Apache-2.0
// Several hosts into one.  Rules: XProf's convert/op_stats_combiner.cc.  Which hosts take part is
// decided in combine_hosts.c.
#include "analysis/opstats/combine/combine.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/opstats/combine/combine_hosts.h"
#include "analysis/opstats/host/tf_functions.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"

enum {
    CORES_PER_HOST = 1000,     // core ids of host i start at i times this
    MAX_KERNEL_REPORTS = 1000, // the longest are kept
};

struct merge {
    const struct xpl_combine_hosts *h;
    struct xpl_arena *result, *scratch;
    struct xpl_opstats *out;
    bool exact;
};

static const struct xpl_opstats *stats_of(const struct merge *m, size_t i) {
    return m->h->v.v[i].host->stats;
}

// ---- core ids ----

static uint32_t global_core_id(size_t host, uint32_t core_id) {
    return (uint32_t)host * CORES_PER_HOST + core_id;
}

struct core_key {
    uint32_t core_id;
    size_t at;
};

static int by_core(const void *pa, const void *pb) {
    const struct core_key *a = pa, *b = pb;
    if (a->core_id != b->core_id) return a->core_id < b->core_id ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

// Sorts an array whose elements begin with a core id and keeps the first of each id: upstream
// inserts into a map, host after host.
static bool unique_by_core(void *v, size_t *n, size_t size, struct xpl_arena *scratch) {
    char *const base = v;
    bool sorted = true;
    struct core_key *keys = xpl_arena_array(scratch, *n, sizeof *keys);
    char *copy = xpl_arena_array(scratch, *n, size);
    if (!keys || !copy) return false;
    for (size_t i = 0; i < *n; i++) {
        memcpy(&keys[i].core_id, base + i * size, sizeof keys[i].core_id);
        keys[i].at = i;
        sorted &= i == 0 || keys[i - 1].core_id < keys[i].core_id;
    }
    if (sorted) return true;
    qsort(keys, *n, sizeof *keys, by_core);
    memcpy(copy, base, *n * size);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (i == 0 || keys[i - 1].core_id != keys[i].core_id)
            memcpy(base + kept++ * size, copy + keys[i].at * size, size);
    *n = kept;
    return true;
}

// ---- steps ----

static const struct xpl_per_core_step_info *step_of(const struct merge *m, size_t host,
                                                    uint32_t k) {
    const struct xpl_combine_host *c = &m->h->v.v[host];
    return c->has_steps ? &c->host->stats->step_db.step_sequence.v[c->first_step + k] : NULL;
}

static bool append_cores(const struct merge *m, size_t host,
                         const struct xpl_per_core_step_info *src,
                         struct xpl_per_core_step_info *dst) {
    for (size_t i = 0; i < src->step_info_per_core.n; i++) {
        struct xpl_step_info *s = xpl_vec_push(m->result, &dst->step_info_per_core);
        if (!s) return false;
        *s = src->step_info_per_core.v[i];
        s->core_id = global_core_id(host, s->core_id);
        s->step_num = dst->step_num;
    }
    for (size_t i = 0; i < src->all_reduce_db_per_core.n; i++) {
        struct xpl_all_reduce_db *a = xpl_vec_push(m->result, &dst->all_reduce_db_per_core);
        if (!a) return false;
        *a = src->all_reduce_db_per_core.v[i];
        a->core_id = global_core_id(host, a->core_id);
    }
    for (size_t i = 0; i < src->core_id_to_replica_id_map.n; i++) {
        struct xpl_core_replica *r = xpl_vec_push(m->result, &dst->core_id_to_replica_id_map);
        if (!r) return false;
        *r = src->core_id_to_replica_id_map.v[i];
        r->core_id = global_core_id(host, r->core_id);
    }
    return true;
}

static bool reserve_cores(const struct merge *m, uint32_t k, struct xpl_per_core_step_info *dst) {
    size_t cores = 0, reduces = 0, replicas = 0;
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_per_core_step_info *s = step_of(m, i, k);
        if (!s) continue;
        cores += s->step_info_per_core.n;
        reduces += s->all_reduce_db_per_core.n;
        replicas += s->core_id_to_replica_id_map.n;
    }
    return xpl_vec_reserve(m->result, &dst->step_info_per_core, cores) &&
           xpl_vec_reserve(m->result, &dst->all_reduce_db_per_core, reduces) &&
           xpl_vec_reserve(m->result, &dst->core_id_to_replica_id_map, replicas);
}

static const struct xpl_op_metrics_db *step_ops(const struct xpl_per_core_step_info *s) {
    static const struct xpl_op_metrics_db none;
    return s && s->hlo_metrics_db ? s->hlo_metrics_db : &none;
}

// The k-th step in common, of all hosts.
static bool combine_step(const struct merge *m, uint32_t k, struct xpl_per_core_step_info *dst) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    xpl_arena_init(&scratch, m->scratch->limit);
    const struct merge mine = {m->h, m->result, &scratch, m->out, m->exact};
    *dst = (struct xpl_per_core_step_info){.step_num = k};
    dst->hlo_metrics_db = xpl_arena_zalloc(m->result, sizeof *dst->hlo_metrics_db);
    if (!dst->hlo_metrics_db || !reserve_cores(m, k, dst)) return false;
    struct xpl_op_metrics_builder b;
    xpl_op_metrics_begin(&b, dst->hlo_metrics_db, XPL_OP_METRICS_SHARE, m->result, &scratch);
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_per_core_step_info *src = step_of(m, i, k);
        if (!src) continue;
        if (!append_cores(&mine, i, src, dst) || !xpl_op_metrics_combine(&b, step_ops(src), true))
            return false;
    }
    return unique_by_core(dst->step_info_per_core.v, &dst->step_info_per_core.n,
                          sizeof *dst->step_info_per_core.v, &scratch) &&
           unique_by_core(dst->all_reduce_db_per_core.v, &dst->all_reduce_db_per_core.n,
                          sizeof *dst->all_reduce_db_per_core.v, &scratch) &&
           unique_by_core(dst->core_id_to_replica_id_map.v, &dst->core_id_to_replica_id_map.n,
                          sizeof *dst->core_id_to_replica_id_map.v, &scratch);
}

static bool combine_steps(const struct merge *m) {
    struct xpl_step_db *db = &m->out->step_db;
    const uint32_t n = m->h->n_steps;
    db->num_steps_dropped = m->h->steps_dropped;
    db->empty_intersect = m->h->empty_intersect;
    if (!xpl_vec_reserve(m->result, &db->step_sequence, n)) return false;
    for (uint32_t k = 0; k < n; k++)
        if (!combine_step(m, k, &db->step_sequence.v[db->step_sequence.n++])) return false;
    struct xpl_op_metrics_builder b;
    xpl_op_metrics_begin(&b, &m->out->hlo_metrics_db_complete_steps_only, XPL_OP_METRICS_SHARE,
                         m->result, m->scratch);
    for (size_t i = 0; i < m->h->v.n; i++) {
        if (!m->h->v.v[i].has_steps) continue;
        const bool incomplete = stats_of(m, i)->step_db.use_incomplete_step;
        db->use_incomplete_step |= incomplete;
        for (uint32_t k = 0; k < n && !incomplete; k++)
            if (!xpl_op_metrics_combine(&b, step_ops(step_of(m, i, k)), true)) return false;
    }
    return true;
}

// ---- ops, functions, kernels ----

static bool combine_ops(const struct merge *m) {
    struct xpl_op_metrics_builder host, device;
    xpl_op_metrics_begin(&host, &m->out->host_op_metrics_db, XPL_OP_METRICS_SHARE, m->result,
                         m->scratch);
    xpl_op_metrics_begin(&device, &m->out->device_op_metrics_db, XPL_OP_METRICS_SHARE, m->result,
                         m->scratch);
    struct xpl_tf_function_table functions = {.result = m->result};
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_opstats *s = stats_of(m, i);
        if (!xpl_op_metrics_combine(&host, &s->host_op_metrics_db, false) ||
            !xpl_op_metrics_combine(&device, &s->device_op_metrics_db, true) ||
            !xpl_tf_functions_combine(&functions, s->tf_functions.v, s->tf_functions.n))
            return false;
    }
    xpl_tf_functions_finish(&functions);
    m->out->tf_functions.v = functions.v.v;
    m->out->tf_functions.n = functions.v.n;
    m->out->tf_functions.cap = functions.v.cap;
    return true;
}

static int cmp_u32(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

static int cmp_kernel(const struct xpl_kernel_report *a, const struct xpl_kernel_report *b) {
    if (a->total_duration_ns != b->total_duration_ns)
        return a->total_duration_ns > b->total_duration_ns ? -1 : 1;
    int c = xpl_str_cmp(a->name, b->name);
    for (int i = 0; !c && i < 3; i++)
        c = cmp_u32(a->grid_dim[i], b->grid_dim[i]);
    for (int i = 0; !c && i < 3; i++)
        c = cmp_u32(a->block_dim[i], b->block_dim[i]);
    if (!c) c = cmp_u32(a->registers_per_thread, b->registers_per_thread);
    if (!c) c = cmp_u32(a->static_shmem_bytes, b->static_shmem_bytes);
    if (!c) c = cmp_u32(a->dynamic_shmem_bytes, b->dynamic_shmem_bytes);
    if (!c) c = cmp_u32(a->is_kernel_using_tensor_core, b->is_kernel_using_tensor_core);
    if (!c) c = cmp_u32(a->is_op_tensor_core_eligible, b->is_op_tensor_core_eligible);
    return c ? c : xpl_str_cmp(a->op_name, b->op_name);
}

static int by_duration(const void *pa, const void *pb) {
    const struct xpl_kernel_report *a = *(const struct xpl_kernel_report *const *)pa;
    const struct xpl_kernel_report *b = *(const struct xpl_kernel_report *const *)pb;
    const int c = cmp_kernel(a, b);
    return c ? c : (a > b) - (a < b); // of one host: the address is the position
}

// Reports of all hosts stand side by side; the longest are kept.
static bool combine_kernels(const struct merge *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->h->v.n; i++)
        n += stats_of(m, i)->kernel_reports.n;
    const struct xpl_kernel_report **v = xpl_arena_array(m->scratch, n, sizeof *v);
    if (!v) return false;
    n = 0;
    for (size_t i = 0; i < m->h->v.n; i++)
        for (size_t k = 0; k < stats_of(m, i)->kernel_reports.n; k++)
            v[n++] = &stats_of(m, i)->kernel_reports.v[k];
    if (n) qsort(v, n, sizeof *v, by_duration);
    if (n > MAX_KERNEL_REPORTS) n = MAX_KERNEL_REPORTS;
    if (!xpl_vec_reserve(m->result, &m->out->kernel_reports, n)) return false;
    for (size_t i = 0; i < n; i++)
        m->out->kernel_reports.v[m->out->kernel_reports.n++] = *v[i];
    return true;
}

// ---- environment ----

static int by_text(const void *pa, const void *pb) {
    return xpl_str_cmp(*(const xpl_str_t *)pa, *(const xpl_str_t *)pb);
}

static bool combine_hostnames(const struct merge *m, struct xpl_run_environment *dst) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < m->h->v.n; i++)
        n += stats_of(m, i)->run_environment.hostnames.n;
    if (!xpl_vec_reserve(m->result, &dst->hostnames, n)) return false;
    xpl_str_t *v = dst->hostnames.v;
    n = 0;
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_run_environment *src = &stats_of(m, i)->run_environment;
        for (size_t k = 0; k < src->hostnames.n; k++)
            v[n++] = src->hostnames.v[k];
    }
    if (n) qsort(v, n, sizeof *v, by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !xpl_str_eq(v[kept - 1], v[i])) v[kept++] = v[i];
    dst->hostnames.n = kept;
    dst->host_count = (int32_t)kept;
    return true;
}

static int32_t add_i32(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static void combine_device(const struct xpl_run_environment *src, struct xpl_run_environment *dst) {
    if (!xpl_str_eq(src->device_type, XPL_STR("CPU")) &&
        !xpl_str_eq(src->device_type, XPL_STR("Device"))) {
        dst->device_type = src->device_type;
        if (src->replica_count > dst->replica_count) dst->replica_count = src->replica_count;
        if (src->num_cores_per_replica > dst->num_cores_per_replica)
            dst->num_cores_per_replica = src->num_cores_per_replica;
        dst->system_topology = src->system_topology;
    } else {
        if (dst->device_type.len == 0) dst->device_type = src->device_type;
        // XProf counts no cores of CPU hosts; with cpu_as_device each has some.
    }
    dst->device_core_count = add_i32(dst->device_core_count, src->device_core_count);
    if (src->hardware_type > dst->hardware_type) dst->hardware_type = src->hardware_type;
}

static bool combine_environment(const struct merge *m) {
    struct xpl_run_environment *dst = &m->out->run_environment;
    if (!combine_hostnames(m, dst)) return false;
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_run_environment *src = &stats_of(m, i)->run_environment;
        combine_device(src, dst);
        dst->task_count = add_i32(dst->task_count, src->task_count);
        if (!dst->host_independent_job_info.len)
            dst->host_independent_job_info = src->host_independent_job_info;
        if (!dst->power_metrics.len) dst->power_metrics = src->power_metrics;
        for (size_t k = 0; k < src->host_dependent_job_info.n; k++) {
            xpl_bytes_t *b = xpl_vec_push(m->result, &dst->host_dependent_job_info);
            if (!b) return false;
            *b = src->host_dependent_job_info.v[k];
        }
        dst->host_trace_level = src->host_trace_level;
        // Upstream believes the last host alone.
        dst->is_training = src->is_training || (!m->exact && dst->is_training);
    }
    return true;
}

static void combine_perf_env(const struct merge *m) {
    struct xpl_perf_env *dst = &m->out->perf_env;
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_perf_env *src = &stats_of(m, i)->perf_env;
        if (src->peak_tera_flops_per_second > 0)
            dst->peak_tera_flops_per_second = src->peak_tera_flops_per_second;
        if (dst->peak_bws_giga_bytes_per_second.n == 0)
            dst->peak_bws_giga_bytes_per_second = src->peak_bws_giga_bytes_per_second;
        if (src->ridge_point > 0) dst->ridge_point = src->ridge_point;
        if (m->exact) continue; // upstream forgets these
        dst->has_cmem |= src->has_cmem;
        dst->has_merged_vmem |= src->has_merged_vmem;
        dst->has_megacore |= src->has_megacore;
    }
}

static void combine_counters(const struct merge *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_opstats *s = stats_of(m, i);
        m->out->matrix_unit_utilization_percent += s->matrix_unit_utilization_percent;
        m->out->hbm_utilization_percent += s->hbm_utilization_percent;
        // Upstream divides by all hosts, also by those that counted nothing.
        n += m->exact || s->has_performance_counter_result;
    }
    if (n == 0) return;
    m->out->matrix_unit_utilization_percent /= (double)n;
    m->out->hbm_utilization_percent /= (double)n;
}

// Disaggregated serving: the mean of decode steps over all hosts.
static void combine_serving(const struct merge *m) {
    struct xpl_opstats *dst = m->out;
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_opstats *src = stats_of(m, i);
        if (!src->has_disaggregated_serving_latency) continue;
        dst->has_disaggregated_serving_latency = true;
        const double a = (double)src->num_decode_steps, b = (double)dst->num_decode_steps;
        if (a + b <= 0) continue;
        dst->decode_step_time_us.avg =
            (src->decode_step_time_us.avg * a + dst->decode_step_time_us.avg * b) / (a + b);
        dst->num_decode_steps =
            (int64_t)((uint64_t)dst->num_decode_steps + (uint64_t)src->num_decode_steps);
    }
}

// ---- names and details ----

static int by_program(const void *pa, const void *pb) {
    const struct xpl_program_name *a = pa, *b = pb;
    return (a->program_id > b->program_id) - (a->program_id < b->program_id);
}

static bool combine_programs(const struct merge *m) {
    struct xpl_map seen = {0};
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_opstats *s = stats_of(m, i);
        for (size_t k = 0; k < s->program_id_to_name_map.n; k++) {
            bool is_new;
            const struct xpl_program_name *src = &s->program_id_to_name_map.v[k];
            if (!xpl_map_put(m->scratch, &seen, src->program_id, 0, &is_new)) return false;
            if (!is_new) continue;
            struct xpl_program_name *p = xpl_vec_push(m->result, &m->out->program_id_to_name_map);
            if (!p) return false;
            *p = *src;
        }
    }
    if (m->out->program_id_to_name_map.n)
        qsort(m->out->program_id_to_name_map.v, m->out->program_id_to_name_map.n,
              sizeof *m->out->program_id_to_name_map.v, by_program);
    return true;
}

static bool combine_details(const struct merge *m) {
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_opstats *s = stats_of(m, i);
        for (size_t k = 0; k < s->core_id_to_details.n; k++) {
            struct xpl_core_details *d = xpl_vec_push(m->result, &m->out->core_id_to_details);
            if (!d) return false;
            *d = s->core_id_to_details.v[k];
            d->core_id = global_core_id(i, d->core_id);
        }
    }
    return unique_by_core(m->out->core_id_to_details.v, &m->out->core_id_to_details.n,
                          sizeof *m->out->core_id_to_details.v, m->scratch);
}

static bool append_texts(struct xpl_arena *a, struct xpl_str_list *dst,
                         const struct xpl_str_list *src) {
    if (!xpl_vec_reserve(a, dst, src->n)) return false;
    if (src->n) memcpy(dst->v + dst->n, src->v, src->n * sizeof *src->v);
    dst->n += src->n;
    return true;
}

static bool combine_diagnostics(const struct merge *m) {
    struct xpl_diagnostics *dst = &m->out->diagnostics;
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_diagnostics *src = &stats_of(m, i)->diagnostics;
        if (!append_texts(m->result, &dst->info, &src->info) ||
            !append_texts(m->result, &dst->warnings, &src->warnings) ||
            !append_texts(m->result, &dst->errors, &src->errors))
            return false;
    }
    return true;
}

// ---- all ----

static bool combine_all(const struct merge *m) {
    struct xpl_opstats *s = m->out;
    *s = (struct xpl_opstats){
        .has_host_op_metrics_db = true,
        .has_device_op_metrics_db = true,
        .has_hlo_metrics_db_complete_steps_only = true,
        .has_perf_env = true,
        .has_step_db = true,
        .has_run_environment = true,
        .has_kernel_stats_db = true,
        .has_tf_function_db = true,
        .has_performance_counter_result = true,
    };
    combine_perf_env(m);
    combine_counters(m);
    combine_serving(m);
    return combine_ops(m) && combine_steps(m) && combine_environment(m) && combine_kernels(m) &&
           combine_programs(m) && combine_details(m) && combine_diagnostics(m);
}

// Warnings about hosts come after those that the hosts have themselves.
static bool add_warnings(const struct merge *m) {
    struct xpl_diagnostics *d = &m->out->diagnostics;
    const struct xpl_diagnostics old = *d;
    if (m->h->warnings.n == 0) return true;
    d->warnings.v = NULL, d->warnings.n = d->warnings.cap = 0;
    return append_texts(m->result, &d->warnings, &old.warnings) &&
           append_texts(m->result, &d->warnings, &m->h->warnings);
}

xpl_status_t xpl_opstats_combine(const struct xpl_host_opstats *hosts, size_t n, bool xprof_exact,
                                 struct xpl_arena *arena, struct xpl_opstats **ret,
                                 struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    xpl_arena_init(&scratch, arena->limit);
    struct xpl_combine_hosts h;
    struct xpl_opstats *out = xpl_arena_zalloc(arena, sizeof *out);
    if (!out) XPL_RETURN_OOM(err, "combining hosts");
    XPL_TRY(xpl_combine_choose(hosts, n, xprof_exact, arena, &h, err));
    const struct merge m = {&h, arena, &scratch, out, xprof_exact};
    if (h.v.n == 1)
        *out = *stats_of(&m, 0);
    else if (!combine_all(&m))
        XPL_RETURN_OOM(err, "combining hosts");
    if (!add_warnings(&m)) XPL_RETURN_OOM(err, "combining hosts");
    *ret = out;
    return XPL_OK;
}
