// SPDX-License-Identifier: Apache-2.0
#include "server/engine/opstats_rows.h"

#include "analysis/breakdown/breakdown.h"
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/step_number.h"
#include "analysis/products/values.h"

// Slices of a step by what the device did, from the event types of event_span.h (reference A5).
enum {
    HOST_COMPUTE = 10,
    HOST_COMPILE = 60,
    HOST_TO_HOST = 70,
    HOST_TO_DEVICE = 80,
    HOST_PREPARE = 90,
    DEVICE_COLLECTIVES = 100,
    HOST_WAIT_INPUT = 110,
    DEVICE_TO_DEVICE = 120,
    DEVICE_TO_HOST = 130,
    DEVICE_COMPUTE_32 = 140,
    DEVICE_COMPUTE_16 = 150,
    DEVICE_WAIT_DEVICE = 160,
    DEVICE_WAIT_HOST = 170,
};

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

static uint64_t *part_of(struct xpl_step_row *r, int32_t type) {
    switch (type) {
        case DEVICE_COMPUTE_32:
        case DEVICE_COMPUTE_16: return &r->compute_ps;
        case HOST_TO_DEVICE:
        case HOST_WAIT_INPUT:
        case DEVICE_WAIT_HOST: return &r->input_ps;
        case DEVICE_TO_HOST: return &r->output_ps;
        case DEVICE_COLLECTIVES:
        case DEVICE_TO_DEVICE:
        case DEVICE_WAIT_DEVICE: return &r->collective_ps;
        case HOST_COMPILE: return &r->compile_ps;
        case HOST_COMPUTE:
        case HOST_TO_HOST:
        case HOST_PREPARE: return &r->host_ps;
        default: return &r->other_ps;
    }
}

static void fill_step(const struct xpl_step_info *i, struct xpl_step_row *r) {
    *r = (struct xpl_step_row){
        .step_num = (uint64_t)xpl_step_number(i->step_name, i->step_num),
        .core_id = i->core_id,
        .name = i->step_name,
        .begin_ps = i->begin_ps,
        .duration_ps = i->duration_ps,
    };
    for (size_t t = 0; t < i->type_ps.n; t++)
        *part_of(r, i->type_ps.v[t].type) += i->type_ps.v[t].ps;
    // A TPU's step is broken down by HLO category: all that is not idle is compute here.
    for (size_t c = 0; c < i->category_ps.n; c++) {
        const bool idle = xpl_str_eq(i->category_ps.v[c].category, XPL_STR("IDLE"));
        *(idle ? &r->idle_ps : &r->compute_ps) += i->category_ps.v[c].ps;
    }
    if (i->tpu) {
        r->input_ps = i->tpu->infeed_duration_ps;
        r->output_ps = i->tpu->host_outfeed_ps;
        r->collective_ps = i->tpu->crs_duration_ps;
        r->idle_ps = i->tpu->tc_idle_ps;
        r->compute_ps = i->tpu->high_flops_compute_ps;
    }
}

static xpl_status_t fill_steps(const struct xpl_opstats *s, struct xpl_arena *arena,
                               struct xpl_rows *ret, struct xpl_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < s->step_db.step_sequence.n; i++)
        n += s->step_db.step_sequence.v[i].step_info_per_core.n;
    struct xpl_step_row *rows = xpl_arena_array(arena, n, sizeof *rows);
    if (!rows) XPL_RETURN_OOM(err, "rows");
    ret->steps = rows;
    for (size_t i = 0; i < s->step_db.step_sequence.n; i++) {
        const struct xpl_per_core_step_info *step = &s->step_db.step_sequence.v[i];
        for (size_t c = 0; c < step->step_info_per_core.n; c++)
            fill_step(&step->step_info_per_core.v[c], &rows[ret->n_steps++]);
    }
    return XPL_OK;
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
    return fill_steps(s, arena, ret, err);
}

xpl_status_t xpl_rows_from_product(const void *opstats, xpl_bytes_t encoded,
                                   struct xpl_arena *arena, struct xpl_rows *ret,
                                   struct xpl_error *err) {
    struct xpl_opstats *decoded = NULL;
    if (!opstats) XPL_TRY(xpl_opstats_decode(encoded, arena, &decoded, err));
    return rows_from_opstats(opstats ? opstats : decoded, arena, ret, err);
}

xpl_status_t xpl_rows_from_breakdown(const struct xpl_time_breakdown *breakdown,
                                     xpl_bytes_t encoded, struct xpl_arena *arena,
                                     struct xpl_rows *ret, struct xpl_error *err) {
    struct xpl_time_breakdown *decoded = NULL;
    if (!breakdown) XPL_TRY(xpl_time_breakdown_decode(encoded, arena, &decoded, err));
    const struct xpl_time_breakdown *const b = breakdown ? breakdown : decoded;
    struct xpl_memory_row *const rows = xpl_arena_array(arena, b->memory.n, sizeof *rows);
    if (!rows) XPL_RETURN_OOM(err, "rows");
    for (size_t i = 0; i < b->memory.n; i++)
        rows[i] = (struct xpl_memory_row){b->memory.v[i].name, b->memory.v[i].peak_bytes,
                                          b->memory.v[i].capacity_bytes};
    *ret = (struct xpl_rows){.kind = XPL_ROWS_MEMORY, .memory = rows, .n_memory = b->memory.n};
    return XPL_OK;
}
