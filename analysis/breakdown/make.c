// SPDX-License-Identifier: Apache-2.0

#include "analysis/breakdown/impl.h"
#include "analysis/opstats/convert.h"
#include "analysis/opstats/steps/step_number.h"
#include "base/cleanup.h"
#include "base/vec.h"

const char *const xpl_time_cause_names[XPL_TIME_CAUSES] = {
    [XPL_TIME_COMPUTE] = "compute",
    [XPL_TIME_OVERLAPPED] = "overlapped_collectives",
    [XPL_TIME_COLLECTIVES] = "exposed_collectives",
    [XPL_TIME_HOST_COPIES] = "host_copies",
    [XPL_TIME_DEVICE_COPIES] = "device_copies",
    [XPL_TIME_CALLBACK] = "callback",
    [XPL_TIME_INPUT] = "input",
    [XPL_TIME_CHECKPOINT] = "checkpoint",
    [XPL_TIME_COMPILE] = "compile",
    [XPL_TIME_LAUNCH] = "launch",
    [XPL_TIME_QUEUED] = "queued",
    [XPL_TIME_HOST] = "host",
    [XPL_TIME_UNKNOWN] = "unknown",
};

const char *const xpl_framework_names[XPL_FRAMEWORKS] = {
    [XPL_FRAMEWORK_UNKNOWN] = "",
    [XPL_FRAMEWORK_JAX] = "jax",
    [XPL_FRAMEWORK_TENSORFLOW] = "tensorflow",
    [XPL_FRAMEWORK_PYTORCH_XLA] = "pytorch",
    [XPL_FRAMEWORK_PYTORCH] = "pytorch",
};

// ---- devices ----

static bool is_device(const struct xpl_plane *p) {
    return p->kind == XPL_PLANE_GPU || p->kind == XPL_PLANE_TPU_CORE;
}

// A plane that is of no interest may count its times from anywhere.
static bool base_of(struct xpl_breaking *k, const struct xpl_plane *p) {
    for (uint32_t i = 0; p && i < p->n_lines; i++) {
        if (!p->lines[i].n_events) continue;
        k->base = (uint64_t)p->lines[i].timestamp_ns * 1000 - XPL_TIME_MIDDLE;
        return true;
    }
    return false;
}

static void find_base(struct xpl_breaking *k) {
    for (uint32_t i = 0; i < k->xs->n_planes; i++)
        if (is_device(&k->xs->planes[i]) && base_of(k, &k->xs->planes[i])) return;
    if (!base_of(k, xpl_xspace_plane(k->xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS))))
        k->base = 0 - XPL_TIME_MIDDLE;
}

static bool find_devices(struct xpl_breaking *k) {
    size_t n = 0, left_out = 0;
    for (uint32_t i = 0; i < k->xs->n_planes; i++)
        n += is_device(&k->xs->planes[i]);
    k->devices =
        xpl_arena_zalloc(k->scratch, ((n < XPL_TIME_MAX_DEVICES ? n : XPL_TIME_MAX_DEVICES) + 1) *
                                         sizeof *k->devices);
    for (uint32_t i = 0; k->devices && i < k->xs->n_planes; i++) {
        const struct xpl_plane *const p = &k->xs->planes[i];
        if (!is_device(p)) continue;
        if (k->n_devices == XPL_TIME_MAX_DEVICES) {
            left_out++;
            continue;
        }
        struct xpl_device_time *const d = &k->devices[k->n_devices++];
        d->plane = p;
        d->kind = p->kind == XPL_PLANE_GPU ? XPL_DEVICE_GPU : XPL_DEVICE_TPU;
    }
    k->b->devices_left_out = left_out;
    return k->devices;
}

static xpl_status_t read_all(struct xpl_breaking *k, struct xpl_error *err) {
    const bool has_device = k->n_devices;
    k->host.plane = xpl_xspace_plane(k->xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    if (!has_device && k->cpu_as_device && k->host.plane) k->n_devices = 1; // the host
    XPL_TRY(xpl_breaking_read_host(k, has_device || !k->n_devices ? NULL : k->devices, err));
    size_t n = 0;
    for (size_t i = 0; i < k->n_devices; i++) {
        struct xpl_device_time *const d = &k->devices[i];
        if (d->plane) XPL_TRY(xpl_breaking_read_device(k, d, err));
        for (size_t l = 0; l < XPL_LAYERS; l++)
            if (!xpl_spans_finish(&d->layers[l], k->scratch)) XPL_RETURN_OOM(err, "time breakdown");
        if (d->n_ops) k->devices[n++] = *d; // one that did nothing is not used by the program
    }
    k->n_devices = n;
    for (size_t i = 0; i < n; i++) {
        struct xpl_time_device *const slot = xpl_vec_push(k->result, &k->b->devices);
        const struct xpl_device_time *const d = &k->devices[i];
        if (!slot) XPL_RETURN_OOM(err, "time breakdown");
        *slot = (struct xpl_time_device){
            .kind = d->kind, .core_id = d->plane ? (uint32_t)d->plane->id : 0, .n_ops = d->n_ops};
        if (!xpl_arena_str(k->result, d->plane ? d->plane->name : XPL_STR("CPU"), &slot->name))
            XPL_RETURN_OOM(err, "time breakdown");
    }
    return XPL_OK;
}

// ---- steps ----

// A step lasts from where the first core begins it to where the last one ends it.
static bool read_step(const struct xpl_breaking *k, const struct xpl_per_core_step_info *s,
                      struct xpl_time_step *ret) {
    *ret = (struct xpl_time_step){.number = s->step_num, .begin_ps = XPL_TIME_END};
    for (size_t i = 0; i < s->step_info_per_core.n; i++) {
        const struct xpl_step_info *const c = &s->step_info_per_core.v[i];
        const uint64_t begin = c->begin_ps - k->base;
        if (begin >= XPL_TIME_END || c->duration_ps > XPL_TIME_END - begin || !c->duration_ps)
            continue;
        if (begin < ret->begin_ps) ret->begin_ps = begin;
        if (begin + c->duration_ps > ret->end_ps) ret->end_ps = begin + c->duration_ps;
        if (!ret->name.len) ret->name = c->step_name;
    }
    return ret->begin_ps < ret->end_ps;
}

static int by_begin(const void *a, const void *b) {
    const struct xpl_time_step *const x = a, *const y = b;
    if (x->begin_ps != y->begin_ps) return x->begin_ps < y->begin_ps ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

// The steps of the profile, the first and the last one among them: those that are known, or of a
// conversion of nothing else.
static xpl_status_t find_steps(struct xpl_breaking *k, const struct xpl_step_db **ret,
                               struct xpl_error *err) {
    const struct xpl_convert_options o = {.cpu_as_device = k->cpu_as_device, .steps_only = true};
    struct xpl_opstats *s;
    *ret = k->known;
    if (k->known && k->known->has_all_steps) return XPL_OK;
    XPL_TRY(xpl_opstats_convert(k->xs, &o, k->exec, k->scratch, k->scratch->limit, &s, err));
    *ret = &s->step_db;
    return XPL_OK;
}

static xpl_status_t read_steps(struct xpl_breaking *k, struct xpl_error *err) {
    struct xpl_time_breakdown *const b = k->b;
    const struct xpl_step_db *db;
    XPL_TRY(find_steps(k, &db, err));
    for (size_t i = 0; i < db->n_all_steps; i++) {
        struct xpl_time_step step;
        if (!read_step(k, &db->all_steps[i], &step)) continue;
        step.number = xpl_step_number(step.name, step.number);
        struct xpl_time_step *const slot = xpl_vec_push(k->result, &b->steps);
        if (!slot || !xpl_arena_str(k->result, step.name, &step.name))
            XPL_RETURN_OOM(err, "time breakdown");
        *slot = step;
    }
    xpl_sort(b->steps.v, b->steps.n, sizeof *b->steps.v, by_begin);
    for (size_t i = 0; i + 1 < b->steps.n; i++) // of what two steps have the later one is the owner
        if (b->steps.v[i].end_ps > b->steps.v[i + 1].begin_ps)
            b->steps.v[i].end_ps = b->steps.v[i + 1].begin_ps;
    return XPL_OK;
}

// Whether executions of a program are the steps, because nothing marks any.
static bool steps_are_executions(const struct xpl_time_breakdown *b) {
    return b->steps.n && xpl_step_is_execution(b->steps.v[0].name);
}

// From the first step to the last one; where nothing marks steps, from the first op to the last
// one, which are not known yet.
static void set_window(struct xpl_breaking *k) {
    struct xpl_time_breakdown *const b = k->b;
    b->begin_ps = XPL_TIME_END;
    b->end_ps = 0;
    if (b->steps.n) b->begin_ps = b->steps.v[0].begin_ps;
    for (size_t i = 0; i < b->steps.n; i++)
        if (b->steps.v[i].end_ps > b->end_ps) b->end_ps = b->steps.v[i].end_ps;
    const bool is_known = b->steps.n && !steps_are_executions(b);
    k->from = is_known ? b->begin_ps : 0;
    k->until = is_known ? b->end_ps : XPL_TIME_END;
}

static void widen(struct xpl_time_breakdown *b, const struct xpl_spans *s) {
    if (!s->v.n) return;
    if (s->v.v[0].begin < b->begin_ps) b->begin_ps = s->v.v[0].begin;
    if (s->v.v[s->v.n - 1].end > b->end_ps) b->end_ps = s->v.v[s->v.n - 1].end;
}

static void widen_window(struct xpl_breaking *k) {
    struct xpl_time_breakdown *const b = k->b;
    for (size_t i = 0; (!b->steps.n || steps_are_executions(b)) && i < k->n_devices; i++)
        for (size_t l = 0; l < XPL_LAYERS; l++)
            widen(b, &k->devices[i].layers[l]);
    if (b->begin_ps >= b->end_ps) b->begin_ps = b->end_ps = XPL_TIME_MIDDLE;
    k->from = b->begin_ps;
    k->until = b->end_ps;
}

static void count_compiles(struct xpl_breaking *k) {
    struct xpl_time_breakdown *const b = k->b;
    const struct xpl_spans *const compiles = &k->host.layers[XPL_HOST_COMPILES];
    for (size_t i = 0; i < compiles->v.n; i++)
        b->compile_ps += compiles->v.v[i].end - compiles->v.v[i].begin;
    b->all_compiles = k->host.compiles.n;
    size_t at = 0;
    for (size_t i = 0; i < k->host.compiles.n; i++) {
        const uint64_t t = k->host.compiles.v[i];
        b->n_compiles += t >= b->begin_ps && t < b->end_ps;
        while (at < b->steps.n && b->steps.v[at].end_ps <= t)
            at++;
        if (at < b->steps.n && b->steps.v[at].begin_ps <= t) b->steps.v[at].n_compiles++;
    }
}

// Steps may be few in a profile: what runs outside of them is part of no step's time.
static void find_outside(struct xpl_time_breakdown *b, const struct xpl_spans *ops) {
    size_t at = 0;
    for (size_t i = 0; i < ops->v.n; i++) {
        const struct xpl_span op = ops->v.v[i];
        uint64_t inside = 0;
        while (at < b->steps.n && b->steps.v[at].end_ps <= op.begin)
            at++;
        for (size_t k = at; k < b->steps.n && b->steps.v[k].begin_ps < op.end; k++) {
            const struct xpl_time_step *const s = &b->steps.v[k];
            inside += (op.end < s->end_ps ? op.end : s->end_ps) -
                      (op.begin > s->begin_ps ? op.begin : s->begin_ps);
        }
        b->op_ps += op.end - op.begin;
        b->outside_ps += op.end - op.begin - inside;
    }
}

// ---- frameworks ----

static enum xpl_framework framework_of(xpl_str_t name) {
    if (xpl_str_has(name, XPL_STR("XLAGraphExecutor")) || xpl_str_has(name, XPL_STR("torch_xla")) ||
        xpl_str_has(name, XPL_STR("SyncTensorsGraph")))
        return XPL_FRAMEWORK_PYTORCH_XLA;
    if (xpl_str_starts(name, XPL_STR("PjitFunction")) ||
        xpl_str_starts(name, XPL_STR("np.asarray(jax.Array)")))
        return XPL_FRAMEWORK_JAX;
    return xpl_str_starts(name, XPL_STR("EagerExecute")) ||
                   xpl_str_starts(name, XPL_STR("ExecutorState")) ||
                   xpl_str_starts(name, XPL_STR("FunctionRun"))
               ? XPL_FRAMEWORK_TENSORFLOW
               : XPL_FRAMEWORK_UNKNOWN;
}

// Of the name of a program, which a compiler has from the framework's tracer.
static enum xpl_framework framework_of_program(xpl_str_t name) {
    return xpl_str_starts(name, XPL_STR("jit_")) || xpl_str_starts(name, XPL_STR("pjit_")) ||
                   xpl_str_starts(name, XPL_STR("pmap_"))
               ? XPL_FRAMEWORK_JAX
               : framework_of(name);
}

static void find_framework_in(struct xpl_breaking *k, const struct xpl_plane *p,
                              enum xpl_framework (*of)(xpl_str_t name)) {
    for (uint32_t i = 1; p && i < p->n_event_md; i++) {
        const enum xpl_framework f = of(p->event_md[i].name);
        if (f > k->b->framework) k->b->framework = f;
    }
}

// "$FILE:LINE FUNCTION" or "FILE(LINE): FUNCTION", as Python tracers name functions of the program.
static bool is_python_function(xpl_str_t name) {
    return (name.len && name.ptr[0] == '$' && xpl_str_has(name, XPL_STR(".py:"))) ||
           xpl_is_torch_frame(name);
}

static void find_python(struct xpl_breaking *k) {
    for (uint32_t i = 1; k->host.plane && i < k->host.plane->n_event_md; i++)
        k->b->has_python |= is_python_function(k->host.plane->event_md[i].name);
}

// Importers say whose trace it was.
static bool is_of_torch(const struct xpl_xspace *xs) {
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_TASK_ENV));
    struct xpl_stats stats;
    struct xpl_stat s;
    if (!p) return false;
    stats = p->stats;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        if (xpl_str_eq(s.md->name, XPL_STR("framework")))
            return xpl_str_eq(xpl_stat_str(&s), XPL_STR("pytorch"));
    return false;
}

// TensorFlow runs programs that JAX made, too: events tell first.
static void find_framework(struct xpl_breaking *k) {
    if (k->is_torch) {
        k->b->framework = XPL_FRAMEWORK_PYTORCH;
        return;
    }
    find_framework_in(k, k->host.plane, framework_of);
    if (k->b->framework == XPL_FRAMEWORK_UNKNOWN)
        find_framework_in(k, xpl_xspace_plane(k->xs, XPL_STR(XPL_PLANE_NAME_METADATA)),
                          framework_of_program);
}

static xpl_status_t make(struct xpl_breaking *k, struct xpl_error *err) {
    find_base(k);
    k->is_torch = is_of_torch(k->xs);
    if (!find_devices(k)) XPL_RETURN_OOM(err, "time breakdown");
    XPL_TRY(read_steps(k, err));
    set_window(k);
    XPL_TRY(read_all(k, err));
    widen_window(k);
    count_compiles(k);
    for (size_t i = 0; k->b->steps.n && i < k->n_devices; i++)
        for (size_t l = 0; l < XPL_LAYER_CONTAINER; l++)
            find_outside(k->b, &k->devices[i].layers[l]);
    if (k->b->devices.n && k->from < k->until) XPL_TRY(xpl_breaking_read_main(k, err));
    find_framework(k);
    find_python(k);
    k->b->base_ps = k->base;
    XPL_TRY(xpl_breaking_sweep(k, err));
    if (k->host.work) xpl_work_end(k->host.work);
    return XPL_OK;
}

xpl_status_t xpl_time_breakdown_make(const struct xpl_xspace *xs,
                                     const struct xpl_time_breakdown_options *opt,
                                     struct xpl_exec *exec, struct xpl_arena *arena, size_t limit,
                                     struct xpl_time_breakdown **ret, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    struct xpl_time_breakdown *const b = xpl_arena_zalloc(arena, sizeof *b);
    xpl_arena_init(&scratch, limit);
    if (!b) XPL_RETURN_OOM(err, "time breakdown");
    struct xpl_breaking k = {.xs = xs,
                             .exec = exec,
                             .scratch = &scratch,
                             .result = arena,
                             .cpu_as_device = opt->cpu_as_device,
                             .known = opt->known,
                             .b = b};
    XPL_TRY(make(&k, err));
    *ret = b;
    return XPL_OK;
}
