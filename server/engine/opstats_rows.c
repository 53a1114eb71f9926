// SPDX-License-Identifier: Apache-2.0
#include "server/engine/opstats_rows.h"

#include "analysis/breakdown/breakdown.h"
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/products/values.h"

static const char *program_name(const struct xpl_opstats *s, uint64_t id, xpl_str_t *ret) {
    size_t lo = 0, hi = s->program_id_to_name_map.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->program_id_to_name_map.v[mid].program_id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    const bool found =
        lo < s->program_id_to_name_map.n && s->program_id_to_name_map.v[lo].program_id == id;
    *ret = found ? s->program_id_to_name_map.v[lo].name : (xpl_str_t){0};
    return ret->ptr;
}

static xpl_status_t fill_ops(const struct xpl_opstats *s, const struct xpl_op_metrics_db *db,
                             bool on_device, struct xpl_arena *arena, struct xpl_op_row *rows,
                             size_t *n, struct xpl_error *err) {
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *m = &db->metrics_db.v[i];
        struct xpl_op_row *r = &rows[(*n)++];
        *r = (struct xpl_op_row){
            .on_device = on_device,
            .name = m->name,
            .category = m->category,
            .framework_op = m->provenance,
            .occurrences = m->occurrences,
            .time_ps = m->time_ps,
            .self_time_ps = m->self_time_ps,
            .min_time_ps = m->occurrences && m->min_time_ps ? m->min_time_ps : XPL_ROW_NULL,
            .dma_stall_ps = m->dma_stall_ps,
            .flops = m->flops,
            .bytes_accessed = m->bytes_accessed,
            .num_cores = m->num_cores,
        };
        // The time in which nothing ran is of no program, not of the one whose id is 0.
        if (on_device && !xpl_op_metrics_is_idle(m))
            (void)program_name(s, m->hlo_module_id, &r->module);
        if (m->has_source_info && m->source_info.file_name.len &&
            !xpl_arena_printf(arena, &r->source, "%.*s:%d", XPL_STR_FMT(m->source_info.file_name),
                              m->source_info.line_number))
            XPL_RETURN_OOM(err, "rows");
    }
    return XPL_OK;
}

static void fill_kernel(const struct xpl_kernel_report *k, struct xpl_kernel_row *r) {
    *r = (struct xpl_kernel_row){
        .name = k->name,
        .op_name = k->op_name,
        .occurrences = k->occurrences,
        .total_ns = k->total_duration_ns,
        .min_ns = k->min_duration_ns,
        .max_ns = k->max_duration_ns,
        .registers_per_thread = k->registers_per_thread,
        .static_shmem_bytes = k->static_shmem_bytes,
        .dynamic_shmem_bytes = k->dynamic_shmem_bytes,
        .occupancy_percent = (double)k->occupancy_pct,
        .uses_tensor_core = k->is_kernel_using_tensor_core,
        .tensor_core_eligible = k->is_op_tensor_core_eligible,
    };
    for (int d = 0; d < 3; d++) {
        r->block[d] = k->block_dim[d];
        r->grid[d] = k->grid_dim[d];
    }
}

bool xpl_opstats_has_rows(const struct xpl_opstats *s, unsigned variant) {
    const bool cpu_only = s->run_environment.hardware_type == XPL_HW_CPU_ONLY;
    if (variant & (XPL_OP_STATS_ALL_STEPS | XPL_OP_STATS_XPROF_EXACT)) return false;
    return variant & XPL_OP_STATS_CPU_AS_DEVICE || !cpu_only;
}

// Fills *ret with views of `s` and arrays in `arena`.
static xpl_status_t rows_from_opstats(const struct xpl_opstats *s, struct xpl_arena *arena,
                                      struct xpl_rows *ret, struct xpl_error *err) {
    const struct xpl_op_metrics_db *dev = &s->device_op_metrics_db, *host = &s->host_op_metrics_db;
    struct xpl_op_row *ops =
        xpl_arena_array(arena, dev->metrics_db.n + host->metrics_db.n, sizeof *ops);
    struct xpl_kernel_row *kernels = xpl_arena_array(arena, s->kernel_reports.n, sizeof *kernels);
    if (!ops || !kernels) XPL_RETURN_OOM(err, "rows");
    const struct xpl_run_environment *const e = &s->run_environment;
    *ret = (struct xpl_rows){.ops = ops,
                             .kernels = kernels,
                             .n_kernels = s->kernel_reports.n,
                             .device_type = e->device_type};
    // Of a CPU that counts as a device the threads are counted, which are not cores.
    if (e->hardware_type != XPL_HW_CPU_ONLY && e->device_core_count > 0)
        ret->device_cores = (uint64_t)e->device_core_count;
    XPL_TRY(fill_ops(s, dev, true, arena, ops, &ret->n_ops, err));
    XPL_TRY(fill_ops(s, host, false, arena, ops, &ret->n_ops, err));
    for (size_t i = 0; i < s->kernel_reports.n; i++)
        fill_kernel(&s->kernel_reports.v[i], &kernels[i]);
    return XPL_OK;
}

xpl_status_t xpl_rows_from_product(const void *opstats, xpl_bytes_t encoded,
                                   struct xpl_arena *arena, struct xpl_rows *ret,
                                   struct xpl_error *err) {
    struct xpl_opstats *decoded = NULL;
    if (!opstats) XPL_TRY(xpl_opstats_decode(encoded, arena, &decoded, err));
    return rows_from_opstats(opstats ? opstats : decoded, arena, ret, err);
}

// ---- of a time breakdown ----

// Each cause is in one part, so that the parts add up to the duration.
static void fill_step(const struct xpl_time_breakdown *b, const struct xpl_time_row *t,
                      struct xpl_step_row *r) {
    const struct xpl_time_step *const step = &b->steps.v[t->step];
    const uint64_t *const ps = t->ps;
    *r = (struct xpl_step_row){
        .step_num = (uint64_t)step->number,
        .core_id = b->devices.v[t->device].core_id,
        .name = step->name,
        .begin_ps = b->base_ps + step->begin_ps,
        .duration_ps = t->wall_ps,
        .compute_ps = ps[XPL_TIME_COMPUTE] + ps[XPL_TIME_OVERLAPPED],
        .input_ps = ps[XPL_TIME_INPUT],
        .output_ps = ps[XPL_TIME_HOST_COPIES],
        .collective_ps = ps[XPL_TIME_COLLECTIVES],
        .compile_ps = ps[XPL_TIME_COMPILE],
        .host_ps = ps[XPL_TIME_LAUNCH] + ps[XPL_TIME_QUEUED] + ps[XPL_TIME_CALLBACK] +
                   ps[XPL_TIME_CHECKPOINT] + ps[XPL_TIME_HOST],
        .idle_ps = ps[XPL_TIME_UNKNOWN],
        .other_ps = ps[XPL_TIME_DEVICE_COPIES],
    };
}

static bool fill_steps(const struct xpl_time_breakdown *b, struct xpl_arena *arena,
                       struct xpl_rows *ret) {
    struct xpl_step_row *const rows = xpl_arena_array(arena, b->rows.n, sizeof *rows);
    const bool *const used = xpl_time_used_devices(b, arena);
    if (!rows || !used) return false;
    ret->steps = rows;
    for (size_t i = 0; i < b->rows.n; i++) {
        const struct xpl_time_row *const t = &b->rows.v[i];
        if (t->step != XPL_BETWEEN_STEPS && t->wall_ps && used[t->device])
            fill_step(b, t, &rows[ret->n_steps++]);
    }
    return true;
}

static bool fill_memory(const struct xpl_time_breakdown *b, struct xpl_arena *arena,
                        struct xpl_rows *ret) {
    struct xpl_memory_row *const rows = xpl_arena_array(arena, b->memory.n, sizeof *rows);
    ret->memory = rows;
    ret->n_memory = b->memory.n;
    for (size_t i = 0; rows && i < b->memory.n; i++)
        rows[i] = (struct xpl_memory_row){b->memory.v[i].name, b->memory.v[i].peak_bytes,
                                          b->memory.v[i].capacity_bytes};
    return rows;
}

xpl_status_t xpl_rows_from_breakdown(const struct xpl_time_breakdown *breakdown,
                                     xpl_bytes_t encoded, struct xpl_arena *arena,
                                     struct xpl_rows *ret, struct xpl_error *err) {
    struct xpl_time_breakdown *decoded = NULL;
    if (!breakdown) XPL_TRY(xpl_time_breakdown_decode(encoded, arena, &decoded, err));
    const struct xpl_time_breakdown *const b = breakdown ? breakdown : decoded;
    *ret = (struct xpl_rows){.kind = XPL_ROWS_TIMES};
    if (!fill_steps(b, arena, ret) || !fill_memory(b, arena, ret)) XPL_RETURN_OOM(err, "rows");
    return XPL_OK;
}
