// SPDX-License-Identifier: Apache-2.0
// What the metadata of host events mean, decided once per entry before any event is read.
// Rules: XProf's convert/xplane_to_op_metrics_db.cc (CollectTfOpsFromHostThreadsXPlane) and
// convert/xplane_to_step_events.cc (ClassifyCpuEvent, IsRealCpuCompute).
#include "analysis/opstats/host/plan.h"

#include <strings.h>

#include "analysis/opstats/host/runs.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/xplane/tf_op.h"

static bool starts_ignoring_case(xpl_str_t s, xpl_str_t prefix) {
    return s.len >= prefix.len && strncasecmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

static bool is_step_marker(xpl_str_t name) {
    return (xpl_str_starts(name, XPL_STR("train")) || xpl_str_starts(name, XPL_STR("test")) ||
            xpl_str_starts(name, XPL_STR("TraceContext"))) &&
           !xpl_str_has(name, XPL_STR("/"));
}

static bool is_eager_runtime(xpl_str_t name) {
    return xpl_str_starts(name, XPL_STR("EagerExecute")) ||
           xpl_str_starts(name, XPL_STR("EagerLocalExecute")) ||
           xpl_str_starts(name, XPL_STR("EagerKernelExecute")) ||
           xpl_str_starts(name, XPL_STR("FunctionRun"));
}

static enum xpl_span_type classify(xpl_str_t name, const struct xpl_tf_op *op) {
    if (xpl_tf_op_is_infeed_enqueue(op) || op->category == XPL_TF_OP_MEMCPY_HTOD)
        return XPL_SPAN_HOST_TO_DEVICE;
    if (op->category == XPL_TF_OP_MEMCPY_HTOH) return XPL_SPAN_HOST_TO_HOST;
    if (starts_ignoring_case(name, XPL_STR("IteratorGetNext"))) return XPL_SPAN_HOST_WAIT_INPUT;
    return XPL_SPAN_HOST_COMPUTE;
}

// Appends an op; its strings are copied, for the profile may be rewritten under us.
static bool add_op(struct xpl_host_plan *p, struct xpl_arena *arena, xpl_str_t name, xpl_str_t type,
                   int64_t id) {
    struct xpl_host_op *o = xpl_vec_push(arena, &p->ops);
    if (!o) return false;
    *o = (struct xpl_host_op){.id = id, .is_infeed = xpl_is_infeed_enqueue_op(type)};
    return xpl_arena_str(arena, xpl_op_text(name), &o->name) &&
           xpl_arena_str(arena, xpl_op_text(type), &o->type);
}

static bool read_md(struct xpl_host_plan *p, struct xpl_arena *arena, uint32_t i, bool *inputs) {
    const xpl_str_t name = p->plane->event_md[i].name;
    const struct xpl_tf_op op = xpl_tf_op_parse(name);
    struct xpl_host_md *md = &p->md[i];
    *md = (struct xpl_host_md){.span = (uint8_t)classify(name, &op)};
    if (is_step_marker(name)) md->flags |= XPL_HOST_MARKER;
    if (is_eager_runtime(name)) md->flags |= XPL_HOST_NOT_COMPUTE;
    if (p->cpu && xpl_is_input_event(name)) md->flags |= XPL_HOST_INPUT;
    if (p->cpu && xpl_is_host_launch(name)) md->flags |= XPL_HOST_LAUNCH;
    if (p->cpu && xpl_host_function_called(name)) md->flags |= XPL_HOST_CALL;
    *inputs |= md->span == XPL_SPAN_HOST_TO_DEVICE || md->span == XPL_SPAN_HOST_WAIT_INPUT;
    if (op.category == XPL_TF_OP_UNKNOWN || name.len == 0) return true;
    // Just "name:" may be any annotation; only "name:Type" is surely an op of the framework. One
    // that waits for input computes nothing.
    if (op.category == XPL_TF_OP_TENSORFLOW && name.ptr[name.len - 1] != ':' &&
        md->span != XPL_SPAN_HOST_WAIT_INPUT)
        md->flags |= XPL_HOST_FRAMEWORK;
    if (!add_op(p, arena, op.name, op.type, 0)) return false;
    md->op = (uint32_t)p->ops.n;
    p->any_ops = true;
    return true;
}

static void read_stat_md(struct xpl_host_plan *p) {
    for (uint32_t i = 0; i < p->plane->n_stat_md; i++)
        switch ((int)p->plane->stat_md[i].type) {
            case XPL_STAT_INPUT_PIPELINE_STAGE_ID: p->stats |= XPL_HOST_STAGE_ID; break;
            case XPL_STAT_INPUT_PIPELINE_STAGE_NAME: p->stats |= XPL_HOST_STAGE_NAME; break;
            case XPL_STAT_TF_OP: p->stats |= XPL_HOST_TF_OP; break;
            case XPL_STAT_TF_FUNCTION_CALL: p->stats |= XPL_HOST_TF_CALL; break;
            case XPL_STAT_HLO_OP:
                if (p->cpu) p->stats |= XPL_HOST_HLO_OP;
                break;
            default: break;
        }
}

static uint16_t wanted(const struct xpl_host_plan *p, enum xpl_stat_type type) {
    unsigned decides = 0;
    switch ((int)type) {
        case XPL_STAT_INPUT_PIPELINE_STAGE_ID: decides = p->stats & XPL_HOST_STAGE_ID; break;
        case XPL_STAT_INPUT_PIPELINE_STAGE_NAME: decides = p->stats & XPL_HOST_STAGE_NAME; break;
        case XPL_STAT_CONSUMER_TYPE:
        case XPL_STAT_CONSUMER_ID:
            if (p->stats & XPL_HOST_STAGE_NAME) return XPL_HOST_ID_DECIDES;
            if (!p->input.contexts.n) return XPL_HOST_ID_HELPS;
            return type == XPL_STAT_CONSUMER_TYPE ? XPL_HOST_ID_CONTEXT_TYPE
                                                  : XPL_HOST_ID_CONTEXT_ID;
        // Also where only ops that count as a device's ask for it.
        case XPL_STAT_TF_OP: decides = p->stats & (XPL_HOST_TF_OP | XPL_HOST_HLO_OP); break;
        case XPL_STAT_TF_FUNCTION_CALL: decides = p->stats & XPL_HOST_TF_CALL; break;
        case XPL_STAT_HLO_OP: return p->stats & XPL_HOST_HLO_OP ? XPL_HOST_ID_HLO_OP : 0;
        case XPL_STAT_HLO_MODULE: return XPL_HOST_ID_MODULE;
        case XPL_STAT_PROGRAM_ID: return XPL_HOST_ID_PROGRAM;
        case XPL_STAT_IS_EAGER: return XPL_HOST_ID_EAGER;
        case XPL_STAT_RUN_ID: return p->cpu ? XPL_HOST_ID_RUN : 0;
        case XPL_STAT_TF_FUNCTION_TRACING_COUNT: return XPL_HOST_ID_HELPS;
        default: return 0;
    }
    return decides ? XPL_HOST_ID_DECIDES : XPL_HOST_ID_HELPS;
}

// Ids beyond two bytes of a varint are rare: events that carry them are decoded.
enum { MAX_WANTED_ID = 1 << 14 };

static bool list_wanted(struct xpl_host_plan *p, struct xpl_arena *arena) {
    const struct xpl_plane *const plane = p->plane;
    uint64_t n = 0;
    for (uint32_t i = 1; i < plane->n_stat_md; i++) {
        const uint64_t id = (uint64_t)plane->stat_md[i].id;
        if (id < MAX_WANTED_ID && id >= n) n = id + 1;
    }
    p->n_wanted = (uint32_t)n;
    p->wanted = xpl_arena_zalloc(arena, n * sizeof *p->wanted);
    if (!p->wanted) return false;
    for (uint64_t id = 0; id < n; id++)
        p->wanted[id] = wanted(p, plane->stat_md[xpl_plane_stat_md(plane, id)].type);
    return true;
}

// ---- planes with an instrumented input pipeline: one more pass, in file order ----

// XProf keys ops by metadata id, those of a pipeline by stage id, in one table; the first to claim
// an id keeps it.
static bool claim(struct xpl_host_plan *p, struct xpl_arena *arena, int64_t id, uint32_t op) {
    bool is_new;
    uint64_t *slot = xpl_map_put(arena, &p->op_of_id, (uint64_t)id, 0, &is_new);
    if (!slot) return false;
    if (!*slot) *slot = op;
    return true;
}

static bool claim_stage(struct xpl_host_plan *p, struct xpl_arena *arena, xpl_str_t name,
                        const struct xpl_stat *stage, const struct xpl_stat *category) {
    const int64_t id = xpl_stat_int(stage);
    const uint64_t *known = xpl_map_get(&p->op_of_id, (uint64_t)id, 0);
    if (known && *known) return true;
    const xpl_str_t type = xpl_stat_str(category);
    struct xpl_tf_op op = {.name = name, .type = type};
    if (!type.len) op = xpl_tf_op_parse(name);
    if (!add_op(p, arena, op.name, op.type, id)) return false;
    p->any_ops = true;
    return claim(p, arena, id, (uint32_t)p->ops.n);
}

static bool note_producer(struct xpl_host_plan *p, struct xpl_arena *arena,
                          const struct xpl_event *ev) {
    struct xpl_stat type, id;
    bool is_new;
    if (!xpl_stats_get(ev->stats, XPL_STAT_PRODUCER_TYPE, &type) ||
        !xpl_stats_get(ev->stats, XPL_STAT_PRODUCER_ID, &id))
        return true;
    return xpl_map_put(arena, &p->async_producers, xpl_stat_int_or_uint(&type),
                       xpl_stat_int_or_uint(&id), &is_new) != NULL;
}

static bool read_stage(struct xpl_host_plan *p, struct xpl_arena *arena,
                       const struct xpl_event *ev) {
    const struct xpl_event_md *md = &p->plane->event_md[ev->md];
    struct xpl_stat stage, category;
    if (md->name.len == 0) return true;
    if (xpl_stats_get(ev->stats, XPL_STAT_INPUT_PIPELINE_STAGE_ID, &stage))
        return !xpl_stats_get(ev->stats, XPL_STAT_INPUT_PIPELINE_STAGE_CATEGORY, &category) ||
               claim_stage(p, arena, md->name, &stage, &category);
    return !p->md[ev->md].op || claim(p, arena, md->id, p->md[ev->md].op);
}

enum { CANCEL_EVERY = 8192 }; // events

static xpl_status_t read_stages(struct xpl_host_plan *p, struct xpl_arena *arena,
                                struct xpl_error *err) {
    for (uint32_t i = 0; i < p->plane->n_lines; i++) {
        struct xpl_event_cursor cur;
        struct xpl_event ev;
        enum xpl_wire_result r;
        xpl_events_begin(&cur, &p->plane->lines[i]);
        while ((r = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
            if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(p->c->exec))
                XPL_RETURN_ERROR(err, XPL_CANCELLED, "host events: cancelled");
            if ((p->stats & XPL_HOST_STAGE_ID && !read_stage(p, arena, &ev)) ||
                (p->stats & XPL_HOST_STAGE_NAME && !note_producer(p, arena, &ev)))
                XPL_RETURN_OOM(err, "input pipeline stages");
        }
        if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cur, err);
    }
    return XPL_OK;
}

xpl_status_t xpl_host_plan_make(const struct xpl_convert *c, const struct xpl_plane *plane,
                                struct xpl_arena *arena, struct xpl_host_plan *ret,
                                struct xpl_error *err) {
    struct xpl_host_plan p = {.c = c, .plane = plane};
    const bool has_device = xpl_convert_has_device(c);
    bool inputs = false;
    p.cpu = c->opt->cpu_as_device && !has_device;
    p.md = xpl_arena_array(arena, plane->n_event_md, sizeof *p.md);
    if (!p.md) XPL_RETURN_OOM(err, "host events");
    for (uint32_t i = 0; i < plane->n_event_md; i++)
        if (!read_md(&p, arena, i, &inputs)) XPL_RETURN_OOM(err, "host ops");
    read_stat_md(&p);
    if (p.cpu && c->input)
        p.input = *c->input;
    else if (p.cpu)
        XPL_TRY(xpl_input_work_find(plane, c->exec, arena, &p.input, err));
    if (!list_wanted(&p, arena)) XPL_RETURN_OOM(err, "host events");
    if (p.stats & (XPL_HOST_STAGE_ID | XPL_HOST_STAGE_NAME)) XPL_TRY(read_stages(&p, arena, err));
    p.steps = (p.cpu || !xpl_groups_empty(c->groups)) &&
              (!has_device || (c->is_tpu && (inputs || p.stats & XPL_HOST_STAGE_NAME)));
    p.inputs_only = has_device;
    p.groups = p.steps || p.any_ops;
    for (uint32_t i = 0; i < plane->n_event_md; i++)
        p.md[i].plain = !p.md[i].op && !p.md[i].flags && p.md[i].span == XPL_SPAN_HOST_COMPUTE &&
                        !(p.stats & (XPL_HOST_STAGE_ID | XPL_HOST_STAGE_NAME));
    p.whole_lines = p.any_ops || p.input.any ||
                    p.stats & (XPL_HOST_STAGE_NAME | XPL_HOST_TF_OP | XPL_HOST_TF_CALL);
    *ret = p;
    return XPL_OK;
}
