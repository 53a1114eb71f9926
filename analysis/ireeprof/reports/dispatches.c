// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/reports/dispatches.h"

#include <string.h>

static void iree_dispatch_of_device(const struct xpl_iree_record *r,
                                    const struct xpl_iree_dispatch_event *e,
                                    struct xpl_iree_dispatch *ret) {
    const bool valid = xpl_iree_ticks_valid(e->start_tick, e->end_tick);
    *ret = (struct xpl_iree_dispatch){.valid = valid,
                                      .physical_device_ordinal = r->physical_device_ordinal,
                                      .queue_ordinal = r->queue_ordinal,
                                      .stream_id = r->stream_id,
                                      .command_index = e->command_index,
                                      .function_ordinal = e->function_ordinal,
                                      .flags = e->flags,
                                      .event_id = e->event_id,
                                      .submission_id = e->submission_id,
                                      .command_buffer_id = e->command_buffer_id,
                                      .executable_id = e->executable_id,
                                      .start = e->start_tick,
                                      .end = e->end_tick,
                                      .duration = valid ? e->end_tick - e->start_tick : 0};
    memcpy(ret->workgroup_count, e->workgroup_count, sizeof e->workgroup_count);
    memcpy(ret->workgroup_size, e->workgroup_size, sizeof e->workgroup_size);
}

static void iree_dispatch_of_host(const struct xpl_iree_host_event *e,
                                  struct xpl_iree_dispatch *ret) {
    const bool valid = xpl_iree_host_valid(e->start_host_time_ns, e->end_host_time_ns);
    *ret = (struct xpl_iree_dispatch){
        .host = true,
        .valid = valid,
        .physical_device_ordinal = e->physical_device_ordinal,
        .queue_ordinal = e->queue_ordinal,
        .stream_id = e->stream_id,
        .command_index = e->command_index,
        .function_ordinal = e->function_ordinal,
        .flags = e->flags,
        .status_code = e->status_code,
        .event_id = e->event_id,
        .submission_id = e->submission_id,
        .command_buffer_id = e->command_buffer_id,
        .executable_id = e->executable_id,
        .start = valid ? (uint64_t)e->start_host_time_ns : 0,
        .end = valid ? (uint64_t)e->end_host_time_ns : 0,
        .duration = valid ? (uint64_t)(e->end_host_time_ns - e->start_host_time_ns) : 0,
        .start_ns = e->start_host_time_ns,
        .end_ns = e->end_host_time_ns,
        .tile_count = e->tile_count,
        .tile_duration_sum_ns = e->tile_duration_sum_ns};
    memcpy(ret->workgroup_count, e->workgroup_count, sizeof e->workgroup_count);
    memcpy(ret->workgroup_size, e->workgroup_size, sizeof e->workgroup_size);
}

bool xpl_iree_next_dispatch(const struct xpl_iree_record *r, struct xpl_iree_items *items,
                            struct xpl_iree_dispatch *ret) {
    struct xpl_iree_item item;
    while (xpl_iree_item_next(items, &item, NULL)) {
        if (r->chunk == XPL_IREE_DISPATCH_EVENTS) {
            struct xpl_iree_dispatch_event e;
            xpl_iree_copy(&item, &e);
            iree_dispatch_of_device(r, &e, ret);
            return true;
        }
        struct xpl_iree_host_event e;
        memcpy(&e.type, item.p + offsetof(struct xpl_iree_host_event, type), sizeof e.type);
        if (e.type != XPL_IREE_OP_DISPATCH) continue;
        xpl_iree_copy(&item, &e);
        iree_dispatch_of_host(&e, ret);
        return true;
    }
    return false;
}

void xpl_iree_dispatches_init(struct xpl_iree_dispatches *d, struct xpl_iree_run *run,
                              struct xpl_iree_model *model, enum xpl_iree_subject subject) {
    const struct xpl_iree_table groups = {.row_size = sizeof(struct xpl_iree_group),
                                          .key_size = sizeof(struct xpl_iree_group_key)};
    const struct xpl_iree_table executions = {.row_size = sizeof(struct xpl_iree_execution),
                                              .key_size = sizeof(struct xpl_iree_execution_key)};
    *d = (struct xpl_iree_dispatches){.run = run,
                                      .model = model,
                                      .subject = subject,
                                      .keep = XPL_IREE_KEEPS_GROUPS,
                                      .device = {.groups = groups, .executions = executions},
                                      .host = {.groups = groups, .executions = executions},
                                      .submissions = executions};
}

void xpl_iree_dispatches_fini(struct xpl_iree_dispatches *d) {
    xpl_iree_table_fini(&d->device.groups);
    xpl_iree_table_fini(&d->device.executions);
    xpl_iree_table_fini(&d->host.groups);
    xpl_iree_table_fini(&d->host.executions);
    xpl_iree_table_fini(&d->submissions);
}

// ---- sums ----

static void add_span(struct xpl_iree_spans *s, const struct xpl_iree_dispatch *e) {
    if (s->count++ == 0) s->earliest = UINT64_MAX;
    if (!e->valid) return;
    s->valid++;
    if (e->start < s->earliest) s->earliest = e->start;
    if (e->end > s->latest) s->latest = e->end;
    xpl_iree_add(&s->total, e->duration);
    xpl_iree_add(&s->tile_count, e->tile_count);
    xpl_iree_addi(&s->tile_duration_sum_ns, e->tile_duration_sum_ns);
}

static struct xpl_iree_group *group_of(struct xpl_iree_side *side,
                                       const struct xpl_iree_dispatch *e, uint32_t *plus_1) {
    const struct xpl_iree_group_key key = {e->executable_id, e->physical_device_ordinal,
                                           e->function_ordinal};
    bool is_new;
    if (*plus_1) return xpl_iree_table_at(&side->groups, *plus_1 - 1);
    struct xpl_iree_group *const g = xpl_iree_table_put(&side->groups, &key, &is_new);
    if (g && is_new) g->min = UINT64_MAX;
    *plus_1 = (uint32_t)side->groups.last + 1;
    return g;
}

// *plus_1: the group's number, when it is known.
static bool add_group(struct xpl_iree_side *side, const struct xpl_iree_dispatch *e,
                      uint32_t *plus_1) {
    struct xpl_iree_group *const g = group_of(side, e, plus_1);
    if (!g) return false;
    memcpy(g->last_workgroup_count, e->workgroup_count, sizeof e->workgroup_count);
    memcpy(g->last_workgroup_size, e->workgroup_size, sizeof e->workgroup_size);
    add_span(&g->spans, e);
    if (!e->valid) return true;
    if (e->duration < g->min) g->min = e->duration;
    if (e->duration > g->max) g->max = e->duration;
    const double x = (double)e->duration, delta = x - g->mean; // Welford's method
    g->mean += delta / (double)g->spans.valid;
    g->m2 += delta * (x - g->mean);
    return true;
}

static bool add_execution(struct xpl_iree_table *t, const struct xpl_iree_dispatch *e,
                          uint64_t command_buffer_id) {
    const struct xpl_iree_execution_key key = {command_buffer_id, e->submission_id, e->stream_id,
                                               e->physical_device_ordinal, e->queue_ordinal};
    bool is_new;
    struct xpl_iree_execution *const x = xpl_iree_table_put(t, &key, &is_new);
    if (x) add_span(&x->spans, e);
    return x != NULL;
}

// Keeps the longest ones, of equally long ones the first.
static void add_top(struct xpl_iree_side *side, const struct xpl_iree_dispatch *e) {
    size_t at = side->n_top;
    if (side->n_top < XPL_IREE_TOP) {
        side->n_top++;
    } else {
        at = side->shortest;
        if (e->duration <= side->top[at].duration) return;
    }
    side->top[at] = *e;
    side->shortest = 0;
    for (size_t i = 1; i < side->n_top; i++)
        if (side->top[i].duration < side->top[side->shortest].duration) side->shortest = i;
}

double xpl_iree_group_stddev(const struct xpl_iree_group *g) {
    const uint64_t n = g->spans.valid;
    return xpl_iree_root(n > 1 ? g->m2 / (double)(n - 1) : 0);
}

// ---- one dispatch ----

static bool has_id(const struct xpl_iree_dispatches *d, const struct xpl_iree_dispatch *e) {
    if (d->run->options.id < 0) return true;
    const uint64_t ids[] = {[XPL_IREE_BY_EVENT] = e->event_id,
                            [XPL_IREE_BY_EXECUTABLE] = e->executable_id,
                            [XPL_IREE_BY_COMMAND_BUFFER] = e->command_buffer_id,
                            [XPL_IREE_BY_SUBMISSION] = e->submission_id};
    return xpl_iree_id_is(d->run, ids[d->subject]);
}

static void count_missing(struct xpl_iree_dispatches *d, const struct xpl_iree_dispatch *e) {
    const struct xpl_iree_queue_key queue = {e->stream_id, e->physical_device_ordinal,
                                             e->queue_ordinal};
    if (!d->any_queue || memcmp(&queue, &d->last_queue, sizeof queue) != 0) {
        if (xpl_iree_table_get(&d->model->queues, &queue))
            d->last_queue = queue, d->any_queue = true;
        else
            d->run->missing[XPL_IREE_MISSING_QUEUE]++;
    }
    if (d->subject == XPL_IREE_BY_COMMAND_BUFFER && e->command_buffer_id &&
        !xpl_iree_model_has_buffer(d->model, e->command_buffer_id))
        d->run->missing[XPL_IREE_MISSING_COMMAND_BUFFER]++;
}

// The facts of a dispatch's function: looked up unless it is among the recent ones.
static struct xpl_iree_lately *function_of(struct xpl_iree_dispatches *d,
                                           const struct xpl_iree_dispatch *e,
                                           struct xpl_iree_key_text *text) {
    const struct xpl_iree_group_key key = {e->executable_id, e->physical_device_ordinal,
                                           e->function_ordinal};
    const struct xpl_iree_function_key function = {e->executable_id, e->function_ordinal, 0};
    struct xpl_iree_lately *const f =
        &d->lately[(e->executable_id + e->function_ordinal) % XPL_IREE_LATELY];
    if (f->known && memcmp(&f->key, &key, sizeof key) == 0) return f;
    const struct xpl_iree_function_row *const row =
        xpl_iree_table_get(&d->model->functions, &function);
    const xpl_str_t name =
        xpl_iree_dispatch_key(d->model, d->run, e->physical_device_ordinal, function, text);
    *f = (struct xpl_iree_lately){.key = key,
                                  .known = row && row->name.len,
                                  .matches = xpl_iree_glob(name, d->run->options.filter),
                                  .name = name};
    return f;
}

static bool add_dispatch(struct xpl_iree_dispatches *d, const struct xpl_iree_dispatch *e) {
    struct xpl_iree_side *const side = e->host ? &d->host : &d->device;
    side->total++;
    if (!has_id(d, e)) return true;
    struct xpl_iree_key_text text;
    struct xpl_iree_lately *const f = function_of(d, e, &text);
    count_missing(d, e);
    if (!f->matches) return true;
    side->matched++;
    if (e->valid) {
        side->valid++;
        add_top(side, e);
    }
    if (d->on_match) d->on_match(d->ctx, e, f->name);
    const bool of_buffer = (d->keep & XPL_IREE_KEEPS_EXECUTIONS) && e->command_buffer_id != 0;
    const bool of_submission = (d->keep & XPL_IREE_KEEPS_SUBMISSIONS) && !e->host;
    return (!(d->keep & XPL_IREE_KEEPS_GROUPS) || add_group(side, e, &f->group_plus_1[e->host])) &&
           (!of_buffer || add_execution(&side->executions, e, e->command_buffer_id)) &&
           (!of_submission || add_execution(&d->submissions, e, 0));
}

xpl_status_t xpl_iree_dispatches_add(struct xpl_iree_dispatches *d, const struct xpl_iree_record *r,
                                     struct xpl_error *err) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_dispatch e;
    if (r->chunk != XPL_IREE_DISPATCH_EVENTS && r->chunk != XPL_IREE_HOST_EVENTS) return XPL_OK;
    // As in IREE's tools a chunk of dispatches tells of its device, also when it is empty.
    if (r->chunk == XPL_IREE_DISPATCH_EVENTS &&
        !xpl_iree_model_device(d->model, r->physical_device_ordinal))
        XPL_RETURN_OOM(err, "devices of the bundle");
    while (xpl_iree_next_dispatch(r, &items, &e))
        if (!add_dispatch(d, &e)) XPL_RETURN_OOM(err, "dispatches of the bundle");
    return XPL_OK;
}
