// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: ops on host threads, counted line by line, become the device's op metrics.
// docs/cpu-as-device.md states the rule; XProf has nothing like it.
#include <stdlib.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/hlo/text/text.h"
#include "analysis/opstats/host/cpu_device.h"
#include "analysis/opstats/host/host_scan.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/metrics/torch_cost.h"
#include "analysis/xplane/tf_op.h"
#include "base/cleanup.h"
#include "base/vec.h"

struct entry {
    uint32_t last_line;       // the last line it ran on, plus 1
    struct xpl_hlo_cost cost; // of one run
    bool is_torch;
};

struct cpu_device {
    const struct xpl_convert *c;
    struct xpl_opstats *s;
    struct xpl_op_metrics_builder ops;
    struct xpl_arena *scratch;
    struct xpl_hlo_text_cache *texts; // NULL until an op is described
    XPL_VEC(struct entry) entries;    // parallel to the ops
    XPL_VEC(struct xpl_program_name) programs;
    struct xpl_map program_seen;
    uint64_t begin_ps, end_ps;
    int32_t n_lines; // that ran ops
    uint32_t line;   // the last of them
    struct xpl_error *err;
};

// An id for a module whose events name it but give no program id (FNV-1a).
static uint64_t hash_name(xpl_str_t name) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (uint8_t)name.ptr[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t module_id(const struct cpu_device *d, const struct xpl_cpu_op *op) {
    if (op->framework) return 0;
    if (op->has_program_id) return op->program_id;
    if (op->module.len == 0) return 0;
    uint64_t id;
    return xpl_hlo_map_program_of(d->c->hlo, op->module, &id) ? id : hash_name(op->module);
}

static bool note_program(struct cpu_device *d, uint64_t id, const struct xpl_cpu_op *op) {
    bool is_new;
    if (op->framework || op->module.len == 0) return true;
    if (!xpl_map_put(d->scratch, &d->program_seen, id, 0, &is_new)) return false;
    if (!is_new) return true;
    struct xpl_program_name *p = xpl_vec_push(d->scratch, &d->programs);
    if (!p) return false;
    *p = (struct xpl_program_name){id, op->module};
    return true;
}

// ---- what an op is called, and costs ----

// The ops inside these have their own events, and would be counted twice.
static bool only_contains(const struct xpl_hlo_instruction *in) {
    return xpl_str_eq(in->opcode, XPL_STR("while")) || xpl_str_eq(in->opcode, XPL_STR("call")) ||
           xpl_str_eq(in->opcode, XPL_STR("conditional"));
}

static xpl_status_t describe_xla(struct cpu_device *d, const struct xpl_cpu_op *op,
                                 struct xpl_op_metrics *m, struct entry *e) {
    struct xpl_arena *const a = d->c->result;
    struct xpl_hlo_instruction in;
    bool found = false;
    XPL_TRY(xpl_hlo_map_find(d->c->hlo, m->hlo_module_id, m->name, &in, &found, d->err));
    m->category = XPL_STR("unknown");
    m->has_source_info = true;
    if (op->tf_op.len && !xpl_arena_str(a, op->tf_op, &m->provenance))
        XPL_RETURN_OOM(d->err, "device ops");
    const struct xpl_tf_op torch = xpl_tf_op_parse(m->provenance);
    e->is_torch = torch.category == XPL_TF_OP_PYTORCH;
    if (e->is_torch) {
        m->category = torch.type;
        m->long_name = xpl_torch_call_of(m->name, m->provenance);
        (void)xpl_torch_cost(m->long_name, true, &e->cost);
    }
    if (!found) return XPL_OK;
    struct xpl_hlo_source src;
    if (!xpl_arena_str(a, in.category, &m->category) ||
        !xpl_arena_str(a, in.deduplicated_name, &m->deduplicated_name) ||
        (!m->provenance.len && !xpl_hlo_tf_op_name(&in, a, &m->provenance)) ||
        !xpl_hlo_expression(&in, &d->texts, a, &m->long_name) || !xpl_hlo_source(&in, a, &src))
        XPL_RETURN_OOM(d->err, "device ops");
    m->source_info = (struct xpl_source_info){
        .file_name = src.file, .stack_frame = src.stack, .line_number = src.line};
    return only_contains(&in) ? XPL_OK
                              : xpl_hlo_map_cost(d->c->hlo, &in, d->c->exec, &e->cost, d->err);
}

static xpl_status_t describe_framework(struct cpu_device *d, const struct xpl_host_op *op,
                                       struct xpl_op_metrics *m) {
    if (!xpl_arena_str(d->c->result, op->type, &m->category) ||
        !xpl_arena_printf(d->c->result, &m->provenance, "%.*s:%.*s", XPL_STR_FMT(op->name),
                          XPL_STR_FMT(op->type)))
        XPL_RETURN_OOM(d->err, "device ops");
    return XPL_OK;
}

// ---- adding up ----

static bool add_accesses(struct cpu_device *d, struct xpl_op_metrics *m, int32_t type,
                         uint64_t bytes) {
    enum { MAIN_MEMORY = 1 }; // where a GPU has its own
    const struct xpl_memory_accessed a = {
        .operation_type = type, .memory_space = MAIN_MEMORY, .bytes_accessed = bytes};
    return bytes == 0 || xpl_op_metrics_add_breakdown(&a, 1, m, d->c->result);
}

// Runs of an op each cost the same.
static bool add_cost(struct cpu_device *d, struct xpl_op_metrics *m, const struct xpl_hlo_cost *c,
                     uint64_t runs) {
    const uint64_t flops = (uint64_t)c->model_flops * runs;
    m->flops += flops;
    m->model_flops += flops;
    m->flops_v2 += (double)c->model_flops * (double)runs;
    m->model_flops_v2 += (double)c->model_flops * (double)runs;
    m->bytes_accessed += (uint64_t)c->bytes * runs;
    return add_accesses(d, m, XPL_MEM_OP_READ, (uint64_t)c->hbm_read_bytes * runs) &&
           add_accesses(d, m, XPL_MEM_OP_WRITE, (uint64_t)c->hbm_written_bytes * runs);
}

static xpl_status_t add_op(struct cpu_device *d, const struct xpl_cpu_op *op, uint32_t line) {
    const uint64_t id = module_id(d, op);
    struct xpl_op_metrics *m = xpl_op_metrics_put(&d->ops, id, op->name);
    if (!m || !note_program(d, id, op)) XPL_RETURN_OOM(d->err, "device ops");
    const size_t at = (size_t)(m - d->ops.db->metrics_db.v);
    while (d->entries.n <= at) {
        struct entry *slot = xpl_vec_push(d->scratch, &d->entries);
        if (!slot) XPL_RETURN_OOM(d->err, "device ops");
        *slot = (struct entry){0};
    }
    struct entry *const entry = &d->entries.v[at];
    if (m->occurrences == 0)
        XPL_TRY(op->framework ? describe_framework(d, op->framework, m)
                              : describe_xla(d, op, m, entry));
    if (entry->last_line != line + 1) m->num_cores++;
    entry->last_line = line + 1;
    if (!add_cost(d, m, &entry->cost, op->occurrences)) XPL_RETURN_OOM(d->err, "device ops");
    m->is_eager |= op->is_eager;
    if (m->occurrences == 0 || op->min_time_ps < m->min_time_ps) m->min_time_ps = op->min_time_ps;
    m->occurrences += op->occurrences;
    if (entry->is_torch) m->framework_runs += (uint32_t)op->occurrences;
    m->time_ps += op->time_ps;
    m->self_time_ps += op->self_time_ps;
    d->ops.db->total_op_time_ps += op->self_time_ps;
    return XPL_OK;
}

static xpl_status_t add_piece(struct cpu_device *d, const struct xpl_cpu_line *l, uint32_t line) {
    if (d->n_lines == 0 || l->begin_ps < d->begin_ps) d->begin_ps = l->begin_ps;
    if (l->end_ps > d->end_ps) d->end_ps = l->end_ps;
    if (d->n_lines == 0 || line != d->line) d->n_lines++;
    d->line = line;
    for (size_t i = 0; i < l->ops.n; i++)
        XPL_TRY(add_op(d, &l->ops.v[i], line));
    return XPL_OK;
}

// Names of modules without an HLO proto, beside those that have one.
static bool add_programs(struct cpu_device *d) {
    struct xpl_opstats *s = d->s;
    const size_t known = s->program_id_to_name_map.n;
    for (size_t i = 0; i < d->programs.n; i++) {
        const struct xpl_program_name *p = &d->programs.v[i];
        if (known &&
            bsearch(p, s->program_id_to_name_map.v, known, sizeof *p, xpl_program_name_by_id))
            continue;
        struct xpl_program_name *slot = xpl_vec_push(d->c->result, &s->program_id_to_name_map);
        if (!slot) return false;
        slot->program_id = p->program_id;
        if (!xpl_arena_str(d->c->result, p->name, &slot->name)) return false;
        // Sorted only at the end: the search above uses the earlier entries.
    }
    if (s->program_id_to_name_map.n > known)
        xpl_sort(s->program_id_to_name_map.v, s->program_id_to_name_map.n,
                 sizeof *s->program_id_to_name_map.v, xpl_program_name_by_id);
    return true;
}

static xpl_status_t add_totals(struct cpu_device *d) {
    struct xpl_op_metrics_db *db = d->ops.db;
    // Every thread that ran an op counts as a core, and all of them for the whole time of any.
    xpl_op_metrics_set_total_time(db, (uint64_t)d->n_lines * (d->end_ps - d->begin_ps));
    db->busy_time_ps = db->total_op_time_ps;
    db->idle_time_ps = xpl_op_metrics_idle_time(db);
    if (!xpl_op_metrics_add_idle(db, d->c->result) || !add_programs(d))
        XPL_RETURN_OOM(d->err, "device ops");
    d->s->run_environment.device_core_count = d->n_lines;
    d->s->has_run_environment = true;
    return XPL_OK;
}

xpl_status_t xpl_convert_cpu_device(const struct xpl_convert *c, struct xpl_opstats *s,
                                    struct xpl_error *err) {
    if (!c->opt->cpu_as_device || xpl_convert_has_device(c)) return XPL_OK;
    XPL_AUTO(xpl_host_scan_fini) struct xpl_host_scan own = {0};
    struct xpl_host_scan *scan = c->host ? c->host : &own;
    XPL_TRY(xpl_host_scan_run(c, scan, err));
    if (!scan->plane) return XPL_OK;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(c->scratch_limit);
    struct cpu_device d = {.c = c, .s = s, .scratch = &scratch, .err = err};
    s->device_op_metrics_db = (struct xpl_op_metrics_db){0};
    s->has_device_op_metrics_db = true;
    xpl_op_metrics_begin(&d.ops, &s->device_op_metrics_db, XPL_OP_METRICS_COPY, c->result,
                         &scratch);
    for (size_t i = 0; i < scan->n_pieces; i++)
        if (scan->pieces[i].cpu) XPL_TRY(add_piece(&d, scan->pieces[i].cpu, scan->pieces[i].line));
    return d.n_lines ? add_totals(&d) : XPL_OK;
}
