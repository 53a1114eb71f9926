// SPDX-License-Identifier: Apache-2.0
// What a conversion takes from device planes, and from the space as a whole.
// Rules: XProf's convert/xplane_to_op_stats.cc (ConvertXSpaceToOpStats).

#include "analysis/opstats/device/part.h"
#include "analysis/hlo/hlo_map.h"
#include "analysis/opstats/device/perf_env.h"
#include "analysis/opstats/device/planes.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// Key under which a host without TPU states its own name.
enum { HOST_CORE_ID = 1 };

// The planes that count as devices, in file order; NULL at the arena's limit.
static const struct xpl_plane **device_planes(const struct xpl_convert *c, struct xpl_arena *arena,
                                              size_t *ret_n) {
    size_t n = 0;
    for (uint32_t i = 0; i < c->xs->n_planes; i++)
        n += xpl_convert_is_device_plane(c, &c->xs->planes[i]);
    const struct xpl_plane **const v = xpl_arena_array(arena, n, sizeof *v);
    if (!v) return NULL;
    *ret_n = 0;
    for (uint32_t i = 0; i < c->xs->n_planes; i++)
        if (xpl_convert_is_device_plane(c, &c->xs->planes[i])) v[(*ret_n)++] = &c->xs->planes[i];
    return v;
}

static xpl_str_t hostname(const struct xpl_xspace *xs) {
    return xs->n_hostnames ? xs->hostnames[0] : XPL_STR("localhost");
}

// ---- diagnostics ----

// Each text once, in order of first appearance.
static bool push_unique(const xpl_str_t *v, uint32_t n, struct xpl_arena *scratch,
                        struct xpl_arena *result, struct xpl_str_list *ret) {
    struct xpl_intern *const seen = xpl_intern_new(scratch, xpl_hash_seed());
    if (!seen) return false;
    bool seen_empty = false;
    uint32_t newest = 0;
    for (uint32_t i = 0; i < n; i++) {
        xpl_strid_t id;
        if (!xpl_intern_put(seen, v[i], &id)) return false;
        const bool is_new = id.v == 0 ? !seen_empty : id.v > newest;
        if (id.v == 0) seen_empty = true;
        if (id.v > newest) newest = id.v;
        if (!is_new) continue;
        xpl_str_t *const slot = xpl_vec_push(result, ret);
        if (!slot || !xpl_arena_str(result, xpl_intern_get(seen, id), slot)) return false;
    }
    return true;
}

static bool fill_diagnostics(const struct xpl_convert *c, struct xpl_arena *scratch,
                             struct xpl_diagnostics *d) {
    const struct xpl_xspace *const xs = c->xs;
    d->errors = d->warnings = (struct xpl_str_list){0};
    return push_unique(xs->errors, xs->n_errors, scratch, c->result, &d->errors) &&
           push_unique(xs->warnings, xs->n_warnings, scratch, c->result, &d->warnings);
}

// ---- run environment ----

static const struct xpl_plane *first_of_kind(const struct xpl_xspace *xs, enum xpl_plane_kind kind,
                                             uint32_t *ret_n) {
    const struct xpl_plane *first = NULL;
    *ret_n = 0;
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        if (xs->planes[i].kind != kind) continue;
        if (!first) first = &xs->planes[i];
        ++*ret_n;
    }
    return first;
}

// The first device whose rates are known: the planes of GPUs that a process does not use may have
// no statistics.  XProf takes the first device.  NULL: there is none.
static const struct xpl_plane *known_device(const struct xpl_convert *c,
                                            const struct xpl_plane *const *planes, size_t n) {
    for (size_t i = 0; i < n && !c->opt->xprof_exact; i++)
        if (xpl_plane_has_rates(planes[i])) return planes[i];
    return n ? planes[0] : NULL;
}

static bool fill_device_type(const struct xpl_convert *c, const struct xpl_plane *known,
                             struct xpl_run_environment *env) {
    uint32_t gpus, tpus;
    const struct xpl_plane *gpu = first_of_kind(c->xs, XPL_PLANE_GPU, &gpus);
    if (gpu && known && known->kind == XPL_PLANE_GPU) gpu = known;
    const struct xpl_plane *const tpu = first_of_kind(c->xs, XPL_PLANE_TPU_CORE, &tpus);
    struct xpl_stat s;
    if (gpu) {
        if (!xpl_gpu_model_name(gpu, c->result, &env->device_type)) return false;
        if (!env->device_type.len) env->device_type = XPL_STR("GPU");
        env->device_core_count = (int32_t)gpus;
        env->hardware_type = XPL_HW_GPU;
    } else if (tpu) {
        if (xpl_stats_get(tpu->stats, XPL_STAT_DEVICE_TYPE_STRING, &s) &&
            !xpl_arena_str(c->result, xpl_stat_str(&s), &env->device_type))
            return false;
        env->device_core_count = (int32_t)tpus;
        env->hardware_type = XPL_HW_TPU;
    } else {
        env->device_type = XPL_STR("CPU");
        env->hardware_type = XPL_HW_CPU_ONLY;
    }
    return true;
}

// The number of processes of the job, where the profile says it; 0: it does not.
static int32_t find_world_size(const struct xpl_xspace *xs) {
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_TASK_ENV));
    struct xpl_stat s;
    if (!p || !xpl_stats_get(p->stats, XPL_STAT_WORLD_SIZE, &s)) return 0;
    const int64_t n = xpl_stat_int(&s);
    return n > 0 && n <= INT32_MAX ? (int32_t)n : 0;
}

static xpl_status_t fill_environment(const struct xpl_convert *c, const struct xpl_plane *known,
                                     struct xpl_opstats *s, struct xpl_error *err) {
    struct xpl_run_environment *const env = &s->run_environment;
    s->has_run_environment = true;
    env->host_count = 1;
    env->task_count = 1;
    if (!c->opt->xprof_exact) env->replica_count = find_world_size(c->xs);
    xpl_str_t *const name = xpl_vec_push(c->result, &env->hostnames);
    if (!name || !xpl_arena_str(c->result, hostname(c->xs), name) ||
        !fill_device_type(c, known, env))
        XPL_RETURN_OOM(err, "run environment");
    return xpl_hlo_map_is_training(c->hlo, c->exec, &env->is_training, err);
}

// ---- core details ----

// Message CoreDetails; false when it is malformed.
static bool read_details(xpl_bytes_t bytes, struct xpl_core_details *ret) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_VARINT) continue;
        const uint32_t v = (uint32_t)f.u;
        if (f.num == 2) ret->device_ordinal = v;
        if (f.num == 3) ret->core_num = v;
        if (f.num == 4) ret->local_chip_id = v;
        if (f.num == 5) ret->global_chip_id = v;
        if (f.num == 6) ret->global_core_id = v;
    }
    return r == XPL_WIRE_END;
}

static void find_details(const struct xpl_plane *p, struct xpl_plane_details *ret) {
    *ret = (struct xpl_plane_details){0};
    struct xpl_stat s;
    if (!xpl_stats_get(p->stats, XPL_STAT_CORE_DETAILS, &s)) return;
    struct xpl_core_details core = {.core_id = (uint32_t)p->id,
                                    .is_sparse_core = p->kind == XPL_PLANE_SPARSE_CORE};
    const xpl_bytes_t bytes = s.kind == XPL_VALUE_BYTES
                                  ? (xpl_bytes_t){(const uint8_t *)s.str.ptr, s.str.len}
                                  : (xpl_bytes_t){0};
    if (read_details(bytes, &core)) *ret = (struct xpl_plane_details){true, core};
}

static int by_core_id(const void *pa, const void *pb) {
    const struct xpl_core_details *const a = pa, *const b = pb;
    return (a->core_id > b->core_id) - (a->core_id < b->core_id);
}

// One entry for each core id; of planes with the same id the last counts.
static bool fill_core_details(const struct xpl_convert *c, const struct xpl_plane_details *details,
                              size_t n, struct xpl_arena *scratch, struct xpl_opstats *s) {
    struct xpl_map index = {0};
    xpl_str_t host;
    if (!xpl_arena_str(c->result, hostname(c->xs), &host)) return false;
    for (size_t i = 0; i < n + !c->is_tpu; i++) {
        // Without a TPU the host comes first, under a separate id.
        const bool own = i == 0 && !c->is_tpu;
        const struct xpl_plane_details *const d = own ? NULL : &details[i - !c->is_tpu];
        if (d && !d->present) continue;
        struct xpl_core_details core =
            d ? d->core : (struct xpl_core_details){.core_id = HOST_CORE_ID};
        core.hostname = host;
        bool is_new;
        uint64_t *const at = xpl_map_put(scratch, &index, core.core_id, 0, &is_new);
        if (!at) return false;
        if (is_new && !xpl_vec_push(c->result, &s->core_id_to_details)) return false;
        if (is_new) *at = s->core_id_to_details.n - 1;
        s->core_id_to_details.v[*at] = core;
    }
    xpl_sort(s->core_id_to_details.v, s->core_id_to_details.n, sizeof *s->core_id_to_details.v,
             by_core_id);
    return true;
}

// ---- programs ----

static bool fill_programs(const struct xpl_convert *c, struct xpl_opstats *s) {
    size_t n;
    const struct xpl_hlo_program *const v = xpl_hlo_map_programs(c->hlo, &n);
    if (n && !xpl_vec_reserve(c->result, &s->program_id_to_name_map, n)) return false;
    for (size_t i = 0; i < n; i++) {
        struct xpl_program_name *const p = xpl_vec_push(c->result, &s->program_id_to_name_map);
        if (!p) return false;
        p->program_id = v[i].program_id;
        if (!xpl_arena_str(c->result, v[i].name, &p->name)) return false;
    }
    return true;
}

// ---- disaggregated serving ----

static bool is_serving_event(xpl_str_t name) {
    return xpl_str_starts(name, XPL_STR("WizServable"));
}

static xpl_status_t host_serves(const struct xpl_convert *c, bool *ret, struct xpl_error *err) {
    const struct xpl_plane *const p = xpl_xspace_plane(c->xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    bool possible = false;
    for (uint32_t i = 1; p && i < p->n_event_md; i++)
        possible |= is_serving_event(p->event_md[i].name);
    *ret = false;
    for (uint32_t i = 0; possible && !*ret && i < p->n_lines; i++) {
        struct xpl_event_cursor cursor = xpl_events_of(&p->lines[i]);
        struct xpl_event ev;
        enum xpl_wire_result r;
        while (!*ret && (r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD)
            *ret = is_serving_event(xpl_event_get_md(cursor.line, &ev)->name);
        if (!*ret && r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, err);
    }
    return XPL_OK;
}

// Duration of the decoding steps of an inference server, from its module events.
static xpl_status_t fill_serving(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                                 size_t n, struct xpl_opstats *s, struct xpl_error *err) {
    bool serves;
    XPL_TRY(host_serves(c, &serves, err));
    uint64_t sum_ps = 0, count = 0;
    for (size_t i = 0; serves && i < n; i++) {
        for (uint32_t k = 0; k < planes[i]->n_lines; k++) {
            const struct xpl_line *const line = &planes[i]->lines[k];
            if (!xpl_str_starts(line->name, XPL_STR(XPL_LINE_XLA_MODULES))) continue;
            struct xpl_event_cursor cursor = xpl_events_of(line);
            struct xpl_event ev;
            enum xpl_wire_result r;
            while ((r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
                if (!xpl_str_starts(xpl_event_get_md(line, &ev)->name, XPL_STR("jit_generate")))
                    continue;
                sum_ps += (uint64_t)ev.duration_ps;
                count++;
            }
            if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, err);
        }
    }
    if (count == 0) return XPL_OK;
    s->has_disaggregated_serving_latency = true;
    s->num_decode_steps = (int64_t)count;
    s->decode_step_time_us.avg = (double)(sum_ps / count) / 1e6; // whole picoseconds, as upstream
    return XPL_OK;
}

// ---- the part ----

xpl_status_t xpl_convert_device(const struct xpl_convert *c, struct xpl_opstats *s,
                                struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = {0};
    xpl_arena_init(&scratch, c->scratch_limit);
    size_t n = 0;
    const struct xpl_plane **const planes = device_planes(c, &scratch, &n);
    struct xpl_plane_details *const details =
        planes ? xpl_arena_array(&scratch, n, sizeof *details) : NULL;
    if (!details) XPL_RETURN_OOM(err, "device planes");
    for (size_t i = 0; i < n; i++)
        find_details(planes[i], &details[i]);
    const struct xpl_plane *const known = known_device(c, planes, n);
    s->has_device_op_metrics_db = s->has_kernel_stats_db = true;
    s->has_perf_env = n > 0;
    if (!fill_diagnostics(c, &scratch, &s->diagnostics) ||
        !fill_core_details(c, details, n, &scratch, s) || !fill_programs(c, s) ||
        (known && !xpl_perf_env_fill(known, c->result, &s->perf_env)))
        XPL_RETURN_OOM(err, "device part");
    XPL_TRY(fill_environment(c, known, s, err));
    if (c->is_tpu) {
        XPL_TRY(xpl_device_tpu(c, planes, details, n, s, err));
        XPL_TRY(xpl_device_kernels(c, planes, n, s, err));
    } else {
        XPL_TRY(xpl_device_gpu(c, planes, n, s, err));
    }
    return s->run_environment.is_training ? XPL_OK : fill_serving(c, planes, n, s, err);
}
