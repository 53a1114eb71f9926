// SPDX-License-Identifier: Apache-2.0
// Rules: XProf's convert/xplane_to_op_metrics_db.cc (ConvertDeviceTraceXPlaneToOpMetricsDb),
// convert/xplane_to_kernel_stats_db.cc, utils/{gpu_event_stats,op_utils}.cc.
#include "analysis/opstats/device/gpu_plane.h"

#include <string.h>

#include "analysis/opstats/device/perf_env.h"
#include "analysis/opstats/metrics/torch_cost.h"
#include "analysis/xplane/tf_op.h"

// ---- kernels of CUDA graphs ----

// XLA runs many ops as one graph, a command buffer, whose launch has a name that no instruction has
// ("command_buffer_1"); its kernels have no other, and XProf leaves them out of every table of ops
// (openxla/xprof issues 2544 and 3070; docs/differences.md, graph_kernels).

#define NONE UINT32_MAX

static xpl_status_t out_of_memory(struct gpu_plane *g) {
    XPL_RETURN_OOM(&g->piece.error, "GPU op metrics");
}

// *ret: of the fusion that the kernel is named after; NONE where there is none.
static xpl_status_t add_fusion(struct gpu_plane *g, uint32_t unknown, xpl_str_t kernel,
                               uint64_t *ret) {
    struct xla_op op = g->xla_ops.v[unknown];
    xpl_strid_t id;
    *ret = NONE;
    XPL_TRY(xpl_hlo_map_find_kernel(g->c->hlo, op.program_id, kernel, &op.instruction, &op.found,
                                    &g->piece.error));
    if (!op.found) return XPL_OK;
    struct xla_op *const slot = xpl_vec_push(&g->arena, &g->xla_ops);
    if (!slot || !xpl_hlo_tf_op_name(&op.instruction, &g->arena, &op.framework) ||
        !xpl_intern_put(g->strings, op.instruction.name, &id))
        return out_of_memory(g);
    op.innermost = id.v;
    *slot = op;
    *ret = g->xla_ops.n - 1;
    return XPL_OK;
}

// The rest of a graph, whatever its kernels: one op for each launch's name.
static xpl_status_t put_rest(struct gpu_plane *g, uint32_t unknown, uint64_t *ret) {
    bool is_new;
    uint64_t *const at = xpl_map_put(&g->arena, &g->graph_rest, unknown, 0, &is_new);
    if (!at) return out_of_memory(g);
    if (is_new) {
        struct xla_op op = g->xla_ops.v[unknown];
        op.is_graph = true;
        struct xla_op *const slot = xpl_vec_push(&g->arena, &g->xla_ops);
        if (!slot) return out_of_memory(g);
        *slot = op;
        *at = g->xla_ops.n - 1;
    }
    *ret = *at;
    return XPL_OK;
}

// The op of a graph's event whose op is unknown: the fusion of its program that its kernel is named
// after, else one for the rest of the graph, with the launch's name.  `*ret_op` is the position of
// the unknown op, and receives that of the one found.
static xpl_status_t gpu_graph_op(struct gpu_plane *g, uint32_t md, xpl_str_t kernel,
                                 uint32_t *ret_op) {
    const uint32_t unknown = *ret_op;
    bool is_new;
    uint64_t *const at = xpl_map_put(&g->arena, &g->graph_index, unknown, md, &is_new);
    if (!at) return out_of_memory(g);
    if (is_new) {
        XPL_TRY(add_fusion(g, unknown, kernel, at));
        if (*at == NONE) XPL_TRY(put_rest(g, unknown, at));
    }
    *ret_op = (uint32_t)*at;
    return XPL_OK;
}

// Fills in the metadata of the op for the rest of a graph.
static void gpu_graph_describe(struct xpl_op_metrics *m) {
    m->category = XPL_STR("command buffer");
    m->has_source_info = true;
    m->source_info.line_number = -1;
}

// ---- a plane ----

enum { CANCEL_EVERY = 4096 };

// ---- what one event says ----

struct gpu_event {
    // Strings by their number in the plane's pool; NONE when the statistic is absent.
    uint32_t tf_op, hlo_op, hlo_module, equation, kernel_details, torch_call;
    bool torch_run; // carries the cost of a run of PyTorch's op
    uint64_t program_id;
    bool has_program_id, has_group, is_eager, has_flops, has_bytes;
    bool in_graph; // of a CUDA graph, or the run of a whole one
    int64_t group_id;
    uint64_t flops, bytes_accessed;
    double vdd_energy_j;
};

// Number of a statistic's text: equal text, equal number.
static bool string_id(struct gpu_plane *g, const struct xpl_stat *whole, uint32_t *ret) {
    const bool call = whole->md->type == XPL_STAT_TORCH_CALL; // as long as its shapes
    const struct xpl_stat cut = call ? *whole : xpl_op_stat(whole), *const s = &cut;
    xpl_strid_t id;
    if (s->kind != XPL_VALUE_REF) {
        if (!xpl_intern_put(g->strings, xpl_stat_str(s), &id)) return false;
        *ret = id.v;
        return true;
    }
    uint32_t *const known = &g->string_of_md[xpl_plane_stat_md(g->plane, s->u)];
    if (*known == NONE) {
        if (!xpl_intern_put(g->strings, s->str, &id)) return false;
        *known = id.v;
    }
    *ret = *known;
    return true;
}

static xpl_str_t text(const struct gpu_plane *g, uint32_t id) {
    return id == NONE ? (xpl_str_t){"", 0} : xpl_intern_get(g->strings, (xpl_strid_t){id});
}

static bool read_event(struct gpu_plane *g, const struct xpl_event *ev, struct gpu_event *ret) {
    *ret = (struct gpu_event){.tf_op = NONE,
                              .hlo_op = NONE,
                              .hlo_module = NONE,
                              .equation = NONE,
                              .kernel_details = NONE,
                              .torch_call = NONE};
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    bool ok = true;
    while (ok && xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        switch ((int)s.md->type) {
            case XPL_STAT_TF_OP: ok = string_id(g, &s, &ret->tf_op); break;
            case XPL_STAT_EQUATION: ok = string_id(g, &s, &ret->equation); break;
            case XPL_STAT_HLO_OP: ok = string_id(g, &s, &ret->hlo_op); break;
            case XPL_STAT_HLO_MODULE: ok = string_id(g, &s, &ret->hlo_module); break;
            case XPL_STAT_KERNEL_DETAILS: ok = string_id(g, &s, &ret->kernel_details); break;
            case XPL_STAT_TORCH_CALL: ok = string_id(g, &s, &ret->torch_call); break;
            case XPL_STAT_TORCH_RUN: ret->torch_run = true; break;
            case XPL_STAT_PROGRAM_ID:
                ret->program_id = xpl_stat_int_or_uint(&s);
                ret->has_program_id = true;
                break;
            case XPL_STAT_IS_EAGER: ret->is_eager = xpl_stat_bool(&s); break;
            case XPL_STAT_FLOPS:
                ret->flops = xpl_stat_int_or_uint(&s);
                ret->has_flops = true;
                break;
            case XPL_STAT_BYTES_ACCESSED:
                ret->bytes_accessed = xpl_stat_int_or_uint(&s);
                ret->has_bytes = true;
                break;
            case XPL_STAT_CUDA_GRAPH_ID: ret->in_graph |= xpl_stat_int_or_uint(&s) != 0; break;
            case XPL_STAT_CUDA_GRAPH_EXEC_ID: ret->in_graph = true; break;
            default:
                if (s.md == g->vdd) ret->vdd_energy_j += xpl_stat_double(&s);
        }
    }
    // An empty framework op, or empty details, are as good as none.
    if (ret->tf_op == 0) ret->tf_op = NONE;
    if (ret->kernel_details == 0) ret->kernel_details = NONE;
    return ok;
}

// ---- XLA ops ----

// The last part of a path "a::b::c", split from the left.
static xpl_str_t innermost(xpl_str_t path) {
    const xpl_str_t mark = XPL_STR("::");
    for (size_t at; (at = xpl_str_find(path, mark, 0)) != SIZE_MAX;)
        path = xpl_str_sub(path, at + mark.len, SIZE_MAX);
    return path;
}

static xpl_status_t find_xla_op(struct gpu_plane *g, const struct gpu_event *e, uint32_t *ret) {
    bool is_new;
    const uint64_t path = (uint64_t)e->hlo_op << 1 | e->has_program_id;
    uint64_t *const at = xpl_map_put(&g->arena, &g->xla_index, e->program_id, path, &is_new);
    if (!at) return out_of_memory(g);
    *ret = (uint32_t)*at;
    if (!is_new) return XPL_OK;
    *ret = (uint32_t)g->xla_ops.n;
    *at = *ret;
    struct xla_op *const op = xpl_vec_push(&g->arena, &g->xla_ops);
    xpl_strid_t id;
    if (!op) return out_of_memory(g);
    *op = (struct xla_op){.program_id = e->program_id, .entry = NONE, .module = NONE};
    if (!xpl_intern_put(g->strings, innermost(text(g, e->hlo_op)), &id)) return out_of_memory(g);
    op->innermost = id.v;
    // Unless the program says so; XLA writes XlaModule where it knows none.
    if (!xpl_str_starts(text(g, e->tf_op), XPL_STR("XlaModule"))) op->framework = text(g, e->tf_op);
    if (!e->has_program_id) return XPL_OK;
    XPL_TRY(xpl_hlo_map_find(g->c->hlo, e->program_id, text(g, op->innermost), &op->instruction,
                             &op->found, &g->piece.error));
    if (!op->found) op->module = e->hlo_module;
    if (op->found && !xpl_hlo_tf_op_name(&op->instruction, &g->arena, &op->framework))
        return out_of_memory(g);
    return XPL_OK;
}

// ---- entering ops ----

// Numbers of the runs of one op that are entered together (DeviceOpMetricsDbBuilder::OpData).
struct op_runs {
    uint64_t occurrences, time_ps, flops, bytes_accessed;
    double vdd_energy_j;
    bool is_eager;
};

// XProf's number of the main memory of a GPU.
enum { MEMORY_HBM = 1 };

static bool add_accesses(struct gpu_plane *g, uint32_t entry, int64_t bytes, uint64_t occurrences,
                         int32_t type) {
    const struct xpl_memory_accessed a = {.operation_type = type,
                                          .memory_space = MEMORY_HBM,
                                          .bytes_accessed = (uint64_t)bytes * occurrences};
    return bytes <= 0 || xpl_op_metrics_add_breakdown(&a, 1, &g->db.metrics_db.v[entry], &g->arena);
}

// What the cost model does not know is what the event says.
static uint64_t known_or(int64_t cost, uint64_t told) {
    return cost > 0 ? (uint64_t)cost : told;
}

static bool add_runs(struct gpu_plane *g, uint32_t entry, const struct op_runs *r,
                     const struct xpl_hlo_cost *cost) {
    struct xpl_op_metrics *const m = &g->db.metrics_db.v[entry];
    const double n = (double)r->occurrences;
    const uint64_t flops = known_or(cost->device_flops, r->flops);
    const uint64_t model_flops = known_or(cost->model_flops, flops);
    if (r->vdd_energy_j > 0 || r->vdd_energy_j < 0) {
        m->vdd_energy_j += r->vdd_energy_j;
        m->has_vdd_energy_j = true;
    }
    m->num_cores = 1;
    m->occurrences += (uint32_t)r->occurrences;
    m->time_ps += r->time_ps;
    m->self_time_ps += r->time_ps;
    m->flops += flops * r->occurrences;
    m->flops_v2 += (double)(int64_t)flops * n;
    if (model_flops == 0) {
        m->model_flops = m->flops;
        m->model_flops_v2 = m->flops_v2;
    } else {
        m->model_flops += model_flops * r->occurrences;
        m->model_flops_v2 += (double)(int64_t)model_flops * n;
    }
    m->bytes_accessed += known_or(cost->bytes, r->bytes_accessed) * r->occurrences;
    g->db.total_op_time_ps += r->time_ps;
    return add_accesses(g, entry, cost->hbm_read_bytes, r->occurrences, XPL_MEM_OP_READ) &&
           add_accesses(g, entry, cost->hbm_written_bytes, r->occurrences, XPL_MEM_OP_WRITE);
}

// The entry of that module and name; *ret_new when its metadata is still to be filled in.
static bool put_entry(struct gpu_plane *g, uint64_t program_id, xpl_str_t name, uint32_t *ret,
                      bool *ret_new) {
    struct xpl_op_metrics *const m = xpl_op_metrics_put(&g->builder, program_id, name);
    if (!m) return false;
    *ret = (uint32_t)(m - g->db.metrics_db.v);
    *ret_new = m->occurrences == 0 && m->category.len == 0 && m->provenance.len == 0;
    return true;
}

static bool copy(struct gpu_plane *g, xpl_str_t s, xpl_str_t *ret) {
    return s.len == 0 || xpl_arena_str(&g->arena, s, ret);
}

static bool describe_xla_op(struct gpu_plane *g, const struct xla_op *op, bool is_eager) {
    struct xpl_op_metrics *const m = &g->db.metrics_db.v[op->entry];
    struct xpl_hlo_source source;
    if (!copy(g, op->instruction.category, &m->category) ||
        !copy(g, op->instruction.deduplicated_name, &m->deduplicated_name) ||
        !xpl_hlo_expression(&op->instruction, &g->texts, &g->arena, &m->long_name) ||
        !xpl_hlo_source(&op->instruction, &g->arena, &source))
        return false;
    m->provenance = op->framework;
    m->is_eager |= is_eager;
    m->has_source_info = true;
    m->source_info = (struct xpl_source_info){
        .file_name = source.file, .stack_frame = source.stack, .line_number = source.line};
    return true;
}

// Of an op whose program the profile does not have, all is known that its events say.
static void describe_unknown_op(struct gpu_plane *g, const struct xla_op *op, bool is_eager) {
    struct xpl_op_metrics *const m = &g->db.metrics_db.v[op->entry];
    m->category = XPL_CATEGORY_NO_HLO;
    m->provenance = op->framework;
    m->is_eager |= is_eager;
    m->has_source_info = true;
    m->source_info.line_number = -1;
}

static xpl_status_t enter_xla_op(struct gpu_plane *g, struct xla_op *op, bool is_eager) {
    bool is_new;
    if (op->found)
        XPL_TRY(
            xpl_hlo_map_cost(g->c->hlo, &op->instruction, g->c->exec, &op->cost, &g->piece.error));
    if (!put_entry(g, op->program_id, text(g, op->innermost), &op->entry, &is_new) ||
        (is_new && op->found && !describe_xla_op(g, op, is_eager)))
        return out_of_memory(g);
    if (is_new && !op->found && !op->is_graph) describe_unknown_op(g, op, is_eager);
    if (is_new && op->is_graph) gpu_graph_describe(&g->db.metrics_db.v[op->entry]);
    return XPL_OK;
}

// The op of an event, which a graph's kernels may have where their launch names none.
static xpl_status_t find_op(struct gpu_plane *g, const struct xpl_event *ev,
                            const struct xpl_event_md *md, const struct gpu_event *e,
                            uint32_t *ret) {
    XPL_TRY(find_xla_op(g, e, ret));
    if (!e->in_graph || g->xla_ops.v[*ret].found || g->c->opt->xprof_exact) return XPL_OK;
    // A program is found only by its id.
    const xpl_str_t kernel = e->has_program_id ? md->name : (xpl_str_t){"", 0};
    return gpu_graph_op(g, ev->md, kernel, ret);
}

// ---- ops that the framework ran itself ----

static char *append(char *p, xpl_str_t s) {
    if (s.len) memcpy(p, s.ptr, s.len);
    return p + s.len;
}

// "NAME/KERNEL"; of PyTorch NAME has the modules, and the op's call if that is known.
static bool name_tf_op(struct gpu_plane *g, const struct tf_op *op, xpl_str_t full,
                       xpl_str_t kernel, xpl_str_t *ret) {
    const struct xpl_tf_op parsed = xpl_tf_op_parse(full);
    const xpl_str_t call = text(g, op->call);
    xpl_str_t name = xpl_tf_op_scoped_name(full, &parsed);
    if (call.len) name.len -= parsed.name.len;
    ret->len = name.len + call.len + 1 + kernel.len;
    char *p = xpl_arena_alloc(&g->arena, ret->len);
    if (!p) return false;
    ret->ptr = p;
    p = append(append(p, name), call);
    *p++ = '/';
    (void)append(p, kernel);
    return true;
}

static void describe_tf_op(struct gpu_plane *g, const struct tf_op *op, xpl_str_t full,
                           bool is_eager) {
    struct xpl_op_metrics *const m = &g->db.metrics_db.v[op->entry];
    const xpl_str_t type = xpl_tf_op_parse(full).type;
    m->category = type.len ? type : XPL_STR("unknown");
    m->provenance = full;
    m->long_name = text(g, op->call);
    m->is_eager |= is_eager;
    m->has_source_info = true;
    m->source_info.line_number = -1;
}

// One for each op, call and kernel; NULL at the arena's limit.
static const struct tf_op *find_tf_op(struct gpu_plane *g, const struct xpl_event *ev,
                                      const struct xpl_event_md *md, const struct gpu_event *e) {
    bool is_new;
    const uint64_t key = (uint64_t)e->torch_call << 32 | e->tf_op;
    uint64_t *const at = xpl_map_put(&g->arena, &g->tf_index, key, ev->md, &is_new);
    if (!at) return NULL;
    if (!is_new) return &g->tf_ops.v[*at];
    struct tf_op *const op = xpl_vec_push(&g->arena, &g->tf_ops);
    const xpl_str_t full = text(g, e->tf_op);
    xpl_str_t name;
    if (!op) return NULL;
    *op = (struct tf_op){.call = e->torch_call};
    *at = g->tf_ops.n - 1;
    if (!name_tf_op(g, op, full, md->name, &name) || !put_entry(g, 0, name, &op->entry, &is_new))
        return NULL;
    if (is_new) describe_tf_op(g, op, full, e->is_eager);
    (void)xpl_torch_cost(text(g, op->call), false, &op->cost);
    return op;
}

static xpl_status_t enter_tf_op(struct gpu_plane *g, const struct xpl_event *ev,
                                const struct xpl_event_md *md, const struct gpu_event *e) {
    static const struct xpl_hlo_cost nothing = {0};
    const struct op_runs run = {.occurrences = 1, .time_ps = (uint64_t)ev->duration_ps};
    const struct tf_op *const op = find_tf_op(g, ev, md, e);
    if (!op) return out_of_memory(g);
    g->db.metrics_db.v[op->entry].framework_runs += e->torch_run;
    // Of several kernels of a run one has its cost.
    return add_runs(g, op->entry, &run, e->torch_run ? &op->cost : &nothing) ? XPL_OK
                                                                             : out_of_memory(g);
}

// ---- runs of the same op in the same group ----

struct op_run {
    uint32_t op; // NONE: nothing yet
    uint32_t innermost;
    uint64_t group_id;
    struct op_runs runs;
};
static const struct op_run no_run = {.op = NONE};

static xpl_status_t flush(struct gpu_plane *g, struct op_run *run) {
    if (run->op == NONE) return XPL_OK;
    struct xla_op *const op = &g->xla_ops.v[run->op];
    if (op->entry == NONE) XPL_TRY(enter_xla_op(g, op, run->runs.is_eager));
    if (!add_runs(g, op->entry, &run->runs, &op->cost)) return out_of_memory(g);
    *run = no_run;
    return XPL_OK;
}

static xpl_status_t add_to_run(struct gpu_plane *g, struct op_run *run, uint32_t op_id,
                               const struct xpl_event *ev, const struct gpu_event *e) {
    const struct xla_op *const op = &g->xla_ops.v[op_id];
    if (!op->found && !op->is_graph && (g->c->opt->xprof_exact || !op->innermost)) return XPL_OK;
    // An event without a group is never of the same group as the one before.
    if (run->op != NONE && (op->innermost != run->innermost || !e->has_group ||
                            (uint64_t)e->group_id != run->group_id))
        XPL_TRY(flush(g, run));
    if (run->op == NONE) {
        *run = (struct op_run){.op = op_id, .innermost = op->innermost};
        if (e->has_group) run->group_id = (uint64_t)e->group_id;
        run->runs.is_eager = e->is_eager;
    }
    run->runs.occurrences++;
    run->runs.time_ps += (uint64_t)ev->duration_ps;
    run->runs.vdd_energy_j += e->vdd_energy_j;
    // Costs of one run: assumed to be the same each time.
    if (e->has_flops) run->runs.flops = e->flops;
    if (e->has_bytes) run->runs.bytes_accessed = e->bytes_accessed;
    return XPL_OK;
}

// ---- kernels ----

// A kernel's op as XProf names it, and whether that op could use tensor cores.
static void name_kernel_op(struct gpu_plane *g, const struct gpu_event *e, uint32_t xla_op,
                           struct xpl_kernel_report *k) {
    if (e->tf_op != NONE) {
        k->op_name = xpl_tf_op_parse(text(g, e->tf_op)).name;
        k->is_op_tensor_core_eligible =
            (e->equation != NONE && xpl_einsum_tensor_core_eligible(text(g, e->equation))) ||
            xpl_op_tensor_core_eligible(k->op_name) || k->is_kernel_using_tensor_core;
    }
    if (xla_op != NONE && g->xla_ops.v[xla_op].found) {
        k->op_name = xpl_tf_op_parse(g->xla_ops.v[xla_op].framework).name;
        k->is_op_tensor_core_eligible |= xpl_op_tensor_core_eligible(k->op_name);
    }
}

static bool new_kernel(struct gpu_plane *g, const struct xpl_event_md *md,
                       const struct gpu_event *e, uint32_t xla_op, uint64_t *ret) {
    struct xpl_kernel_report *const k = xpl_vec_push(&g->arena, &g->kernels);
    if (!k) return false;
    *k = (struct xpl_kernel_report){.min_duration_ns = UINT64_MAX};
    if (!xpl_arena_str(&g->arena, md->name, &k->name)) return false;
    k->is_kernel_using_tensor_core = xpl_kernel_uses_tensor_core(k->name, g->vendor);
    xpl_kernel_parse_details(text(g, e->kernel_details), k);
    name_kernel_op(g, e, xla_op, k);
    *ret = g->kernels.n - 1;
    return true;
}

// A number for each pair: in `m`, whose values are counted from 0.
static bool number_pair(struct gpu_plane *g, struct xpl_map *m, uint64_t a, uint64_t b,
                        uint64_t *ret, bool *ret_new) {
    uint64_t *const at = xpl_map_put(&g->arena, m, a, b, ret_new);
    if (!at) return false;
    if (*ret_new) *at = m->n - 1;
    *ret = *at;
    return true;
}

static xpl_status_t add_kernel(struct gpu_plane *g, const struct xpl_event *ev,
                               const struct xpl_event_md *md, const struct gpu_event *e,
                               uint32_t xla_op) {
    if (e->kernel_details == NONE || ev->duration_ps == 0) return XPL_OK;
    uint64_t owner, kernel;
    bool is_new;
    if (!number_pair(g, &g->kernel_pair, xla_op, e->tf_op, &owner, &is_new) ||
        !number_pair(g, &g->kernel_owner, owner, e->equation, &owner, &is_new) ||
        !number_pair(g, &g->kernel_index, (uint64_t)ev->md << 32 | e->kernel_details, owner,
                     &kernel, &is_new))
        return out_of_memory(g);
    if (is_new && !new_kernel(g, md, e, xla_op, &kernel)) return out_of_memory(g);
    struct xpl_kernel_report *const k = &g->kernels.v[kernel];
    const uint64_t ns = (uint64_t)((double)(uint64_t)ev->duration_ps / 1e3);
    k->occurrences++;
    k->total_duration_ns += ns;
    if (ns < k->min_duration_ns) k->min_duration_ns = ns;
    if (ns > k->max_duration_ns) k->max_duration_ns = ns;
    return XPL_OK;
}

// ---- walking ----

static xpl_status_t add_event(struct gpu_plane *g, const struct xpl_line *line,
                              const struct xpl_event *ev, const struct xpl_event_group *group,
                              struct op_run *run) {
    const struct xpl_event_md *const md = xpl_event_get_md(line, ev);
    const int64_t end_ps = (int64_t)((uint64_t)ev->offset_ps + (uint64_t)ev->duration_ps);
    if (ev->offset_ps < g->first_offset_ps) g->first_offset_ps = ev->offset_ps;
    if (end_ps > g->last_offset_ps) g->last_offset_ps = end_ps;
    struct gpu_event e;
    if (!read_event(g, ev, &e)) return out_of_memory(g);
    e.has_group = group->has_group;
    e.group_id = group->group_id;
    if (group->has_is_eager) e.is_eager = group->is_eager;
    uint32_t xla_op = NONE;
    if (g->kernels_only) {
        if (e.hlo_op != NONE && e.kernel_details != NONE) XPL_TRY(find_op(g, ev, md, &e, &xla_op));
    } else if (e.hlo_op != NONE) {
        XPL_TRY(find_op(g, ev, md, &e, &xla_op));
        XPL_TRY(add_to_run(g, run, xla_op, ev, &e));
    } else if (e.tf_op != NONE) {
        XPL_TRY(flush(g, run));
        XPL_TRY(enter_tf_op(g, ev, md, &e));
    }
    return add_kernel(g, ev, md, &e, xla_op);
}

static xpl_status_t walk_line(struct gpu_plane *g, const struct xpl_line *line) {
    struct xpl_group_cursor *groups = NULL;
    if (!g->kernels_only)
        XPL_TRY(xpl_group_cursor_new(g->c->groups, line, &g->arena, &groups, &g->piece.error));
    struct xpl_event_cursor cursor = xpl_events_of(line);
    struct op_run run = no_run;
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group group = {0};
        if (groups) xpl_group_cursor_next(groups, &ev, &group);
        if (xpl_convert_is_possible(g->c, &ev)) XPL_TRY(add_event(g, line, &ev, &group, &run));
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(g->c->exec))
            XPL_RETURN_ERROR(&g->piece.error, XPL_CANCELLED, "conversion cancelled");
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, &g->piece.error);
    if (groups && !xpl_group_cursor_ok(groups)) return out_of_memory(g);
    return flush(g, &run);
}

static xpl_status_t walk_plane(struct gpu_plane *g) {
    const struct xpl_plane *const p = g->plane;
    g->strings = xpl_intern_new(&g->arena, xpl_hash_seed());
    g->string_of_md = xpl_arena_array(&g->arena, p->n_stat_md, sizeof *g->string_of_md);
    if (!g->strings || !g->string_of_md) return out_of_memory(g);
    memset(g->string_of_md, 0xff, p->n_stat_md * sizeof *g->string_of_md);
    for (uint32_t i = 1; i < p->n_stat_md && !g->vdd; i++)
        if (xpl_str_eq(p->stat_md[i].name, XPL_STR("vdd_energy_j"))) g->vdd = &p->stat_md[i];
    const xpl_str_t vendor = xpl_gpu_vendor(p);
    if (xpl_str_eq(vendor, XPL_STR(XPL_VENDOR_NVIDIA))) g->vendor = XPL_GPU_NVIDIA;
    if (xpl_str_eq(vendor, XPL_STR(XPL_VENDOR_AMD))) g->vendor = XPL_GPU_AMD;
    xpl_op_metrics_begin(&g->builder, &g->db, XPL_OP_METRICS_SHARE, &g->arena, &g->arena);
    g->first_offset_ps = INT64_MAX;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (!xpl_is_derived_line_id(p->lines[i].id)) XPL_TRY(walk_line(g, &p->lines[i]));
    const uint64_t span = (uint64_t)g->last_offset_ps - (uint64_t)g->first_offset_ps;
    xpl_op_metrics_set_total_time(&g->db, g->last_offset_ps ? span : 0);
    if (!xpl_op_metrics_add_idle(&g->db, &g->arena) ||
        !xpl_kernels_merge_equal(g->kernels.v, &g->kernels.n, &g->arena))
        return out_of_memory(g);
    return XPL_OK;
}

void xpl_gpu_plane_run(void *ctx, size_t i) {
    struct gpu_plane *const g = &((struct gpu_plane *)ctx)[i];
    g->piece.status = walk_plane(g);
}
