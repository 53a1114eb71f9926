// SPDX-License-Identifier: Apache-2.0
// What devices did for each group, when the host came to them, and how a request's time is made up
// of that.
#include "analysis/inference/impl.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/opstats/steps/span_sums.h"

enum { CANCEL_EVERY = 8192 };

static bool infer_add_span(struct xpl_inferring *k, uint32_t group, enum xpl_span_type type,
                           uint64_t begin, uint64_t duration) {
    if (k->spans.n >= UINT32_MAX - 1) return false;
    struct xpl_infer_span *const s = xpl_vec_push(k->scratch, &k->spans);
    if (!s) return false;
    *s = (struct xpl_infer_span){type, begin, duration, k->v.v[group].spans};
    k->v.v[group].spans = (uint32_t)k->spans.n;
    k->v.v[group].n_spans++;
    return true;
}

// ---- the host's side ----

static bool add_transfers(struct xpl_inferring *k) {
    for (unsigned kind = XPL_INFER_READ_HBM; kind <= XPL_INFER_PREPROCESSED_H2D; kind++) {
        const enum xpl_span_type type =
            kind <= XPL_INFER_D2H ? XPL_SPAN_DEVICE_TO_HOST : XPL_SPAN_HOST_TO_DEVICE;
        for (size_t i = 0; i < k->marks[kind].v.n; i++) {
            const struct xpl_infer_mark *const m = &k->marks[kind].v.v[i];
            if (!infer_add_span(k, m->group, type, m->begin, m->end - m->begin)) return false;
        }
    }
    return true;
}

struct transfer {
    const struct xpl_infer_mark *issue, *done;
};

// Transfers whose beginning and end are two events, joined by their consumer ids.
static bool pair_transfers(struct xpl_inferring *k, enum xpl_infer_kind issue,
                           enum xpl_infer_kind done, enum xpl_span_type type) {
    struct xpl_map known = {0};
    XPL_VEC(struct transfer) v = {0};
    struct xpl_stat id;
    for (size_t i = 0; i < k->marks[issue].v.n; i++) {
        const struct xpl_infer_mark *const m = &k->marks[issue].v.v[i];
        if (!xpl_stats_get(m->stats, XPL_STAT_CONSUMER_ID, &id)) continue;
        bool is_new;
        uint64_t *const slot =
            xpl_map_put(k->scratch, &known, (uint64_t)xpl_stat_int(&id), 0, &is_new);
        if (!slot) return false;
        if (is_new) {
            *slot = v.n;
            if (!xpl_vec_push(k->scratch, &v)) return false;
        }
        v.v[*slot] = (struct transfer){m, NULL};
    }
    for (size_t i = 0; i < k->marks[done].v.n; i++) {
        const struct xpl_infer_mark *const m = &k->marks[done].v.v[i];
        if (!xpl_stats_get(m->stats, XPL_STAT_CONSUMER_ID, &id)) continue;
        const uint64_t *const slot = xpl_map_get(&known, (uint64_t)xpl_stat_int(&id), 0);
        if (slot && (int64_t)v.v[*slot].issue->begin < (int64_t)m->begin) v.v[*slot].done = m;
    }
    for (size_t i = 0; i < v.n; i++) {
        const struct transfer *const t = &v.v[i];
        if (t->done && !infer_add_span(k, t->issue->group, type, t->issue->begin,
                                       t->done->end - t->issue->begin))
            return false;
    }
    return true;
}

static void read_times(struct xpl_inferring *k) {
    for (unsigned kind = XPL_INFER_EXECUTE_LOCAL; kind <= XPL_INFER_CALLBACKS; kind++)
        for (size_t i = 0; i < k->marks[kind].v.n; i++) {
            const struct xpl_infer_mark *const m = &k->marks[kind].v.v[i];
            struct xpl_infer_times *const at = &xpl_infer_group_of(k, m)->at;
            const int64_t begin = (int64_t)m->begin;
            if (kind <= XPL_INFER_EXECUTE) {
                at->has_execute = true;
                at->execute = begin;
            } else if (kind == XPL_INFER_CALLBACKS) {
                at->has_callback = true;
                at->callback = begin;
            } else if (!at->has_launch || begin < at->launch) {
                at->has_launch = true;
                at->launch = begin;
            }
        }
}

// ---- devices ----

// The number that ends a name in brackets: "jit_step(17)".
static bool number_of_name(xpl_str_t name, uint64_t *ret) {
    size_t end = name.len;
    if (!end || name.ptr[--end] != ')') return false;
    size_t at = end;
    while (at && name.ptr[at - 1] != '(')
        at--;
    if (!at) return false;
    while (at < end && name.ptr[at] == ' ')
        at++;
    while (at < end && name.ptr[end - 1] == ' ')
        end--;
    if (at < end && name.ptr[at] == '+') at++;
    uint64_t v = 0;
    if (at == end) return false;
    for (; at < end; at++) {
        const unsigned digit = (unsigned)(unsigned char)name.ptr[at] - '0';
        if (digit > 9 || v > (UINT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *ret = v;
    return true;
}

static bool program_of(const struct xpl_line *line, const struct xpl_event *ev, uint64_t *ret) {
    const struct xpl_event_md *const md = xpl_event_get_md(line, ev);
    struct xpl_stat s;
    if (!xpl_stats_get(ev->stats, XPL_STAT_PROGRAM_ID, &s) &&
        !xpl_stats_get(xpl_event_md_stats(line->plane, md), XPL_STAT_PROGRAM_ID, &s))
        return number_of_name(md->name, ret);
    *ret = xpl_stat_int_or_uint(&s);
    return true;
}

static bool add_program(struct xpl_inferring *k, uint32_t group, uint64_t program) {
    struct xpl_infer_group *const g = &k->v.v[group];
    bool is_new;
    if (!g->batch) return true;
    if (!xpl_map_put(k->scratch, &k->program_known, group, program, &is_new)) return false;
    if (!is_new) return true;
    struct xpl_infer_program *const p = xpl_vec_push(k->scratch, &k->programs);
    if (!p || k->programs.n >= UINT32_MAX) return false;
    *p = (struct xpl_infer_program){program, 0};
    const uint32_t at = (uint32_t)k->programs.n;
    if (g->last_program)
        k->programs.v[g->last_program - 1].next = at;
    else
        g->programs = at;
    g->last_program = at;
    return true;
}

static xpl_status_t read_modules(struct xpl_inferring *k, const struct xpl_line *line,
                                 struct xpl_error *err) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    struct xpl_group_cursor *groups;
    enum xpl_wire_result r;
    XPL_TRY(xpl_group_cursor_new(k->groups, line, k->scratch, &groups, err));
    xpl_events_begin(&c, line);
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group group;
        uint64_t program;
        xpl_group_cursor_next(groups, &ev, &group);
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(k->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "inference: cancelled");
        const uint32_t at = group.has_group ? xpl_infer_find_group(k, group.group_id) : 0;
        if (!at) continue;
        if (!infer_add_span(k, at - 1, XPL_SPAN_DEVICE_COMPUTE_32,
                            (uint64_t)xpl_event_begin_ps(line, &ev), (uint64_t)ev.duration_ps) ||
            (program_of(line, &ev, &program) && !add_program(k, at - 1, program)))
            XPL_RETURN_OOM(err, "inference");
    }
    if (r != XPL_WIRE_END) return xpl_events_error(&c, err);
    if (!xpl_group_cursor_ok(groups)) XPL_RETURN_OOM(err, "inference");
    return XPL_OK;
}

xpl_status_t xpl_infer_read_devices(struct xpl_inferring *k, struct xpl_error *err) {
    if (!add_transfers(k) ||
        !pair_transfers(k, XPL_INFER_TO_ISSUE, XPL_INFER_TO_DONE, XPL_SPAN_HOST_TO_DEVICE) ||
        !pair_transfers(k, XPL_INFER_FROM_ISSUE, XPL_INFER_FROM_DONE, XPL_SPAN_DEVICE_TO_HOST))
        XPL_RETURN_OOM(err, "inference");
    read_times(k);
    for (uint32_t i = 0; i < k->xs->n_planes; i++) {
        const struct xpl_plane *const p = &k->xs->planes[i];
        if (p->kind != XPL_PLANE_TPU_CORE) continue;
        for (uint32_t l = 0; l < p->n_lines; l++)
            if (xpl_str_eq(p->lines[l].name, XPL_STR(XPL_LINE_XLA_MODULES)))
                XPL_TRY(read_modules(k, &p->lines[l], err));
    }
    return XPL_OK;
}

// ---- break down ----

// A request while its time is broken down, or a batch.
struct parts {
    struct xpl_inferring *k;
    struct xpl_arena arena;
    struct xpl_step step;
    struct xpl_infer_times at; // first schedule, concat and execute, last callback
    uint64_t compute_end;      // of the device
};

static bool add_part(struct parts *p, enum xpl_span_type type, uint64_t begin, uint64_t duration) {
    return xpl_step_add_span(&p->step, type, (struct xpl_timespan){begin, duration}, &p->arena);
}

static bool add_stretch(struct parts *p, enum xpl_span_type type, int64_t begin, int64_t end) {
    const uint64_t b = (uint64_t)begin, e = (uint64_t)end;
    return add_part(p, type, b, b > e ? 0 : e - b);
}

static bool add_spans(struct parts *p, const struct xpl_infer_group *g) {
    for (uint32_t i = g->spans; i; i = p->k->spans.v[i - 1].next) {
        const struct xpl_infer_span *const s = &p->k->spans.v[i - 1];
        if (!add_part(p, s->type, s->begin, s->duration)) return false;
        const uint64_t end = s->begin + s->duration;
        if (s->type == XPL_SPAN_DEVICE_COMPUTE_32 && end > p->compute_end) p->compute_end = end;
    }
    return true;
}

static bool add_group(struct parts *p, const struct xpl_infer_group *g) {
    const struct xpl_infer_times *const at = &g->at;
    if (!add_spans(p, g)) return false;
    if (at->has_execute) {
        if (!p->at.has_execute || at->execute < p->at.execute) p->at.execute = at->execute;
        p->at.has_execute = true;
        if (at->has_launch && !add_stretch(p, XPL_SPAN_HOST_RUNTIME, at->execute, at->launch))
            return false;
    }
    if (at->has_concat && (!p->at.has_concat || at->concat < p->at.concat)) {
        p->at.has_concat = true;
        p->at.concat = at->concat;
    }
    if (at->has_callback && (!p->at.has_callback || at->callback > p->at.callback)) {
        p->at.has_callback = true;
        p->at.callback = at->callback;
    }
    if (at->has_schedule && !p->at.has_schedule) {
        p->at.has_schedule = true;
        p->at.schedule = at->schedule;
    }
    return true;
}

static bool add_host(struct parts *p, const struct xpl_infer_request *r) {
    if (p->at.has_execute &&
        !add_stretch(p, XPL_SPAN_HOST_PREPROCESS, (int64_t)r->begin_ps, p->at.execute))
        return false;
    if (p->at.has_callback || p->compute_end) {
        const int64_t from = p->at.has_callback ? p->at.callback : (int64_t)p->compute_end;
        if (!add_stretch(p, XPL_SPAN_HOST_POSTPROCESS, from, (int64_t)r->end_ps)) return false;
    }
    return !p->at.has_schedule || !p->at.has_concat ||
           add_stretch(p, XPL_SPAN_HOST_BATCH_FORMATION, p->at.schedule, p->at.concat);
}

static bool sum_up(struct parts *p, struct xpl_span_sums *ret) {
    return xpl_step_sum_spans(&p->step, (struct xpl_timespan){0, 0}, &p->arena, ret);
}

static bool break_request(struct parts *p, const struct xpl_infer_group *g) {
    struct xpl_infer_request *const r = &p->k->out->requests.v[g->request - 1];
    struct xpl_span_sums sums;
    bool ok = add_group(p, g);
    for (uint32_t i = 0; ok && i < g->n_children; i++)
        ok = add_group(p, &p->k->v.v[p->k->children[g->first_child + i]]);
    if (!ok || !add_host(p, r) || !sum_up(p, &sums)) return false;
    r->preprocess_ps = sums.total[XPL_SPAN_HOST_PREPROCESS / 10];
    r->formation_ps = sums.total[XPL_SPAN_HOST_BATCH_FORMATION / 10];
    r->runtime_ps = sums.total[XPL_SPAN_HOST_RUNTIME / 10];
    r->postprocess_ps = sums.total[XPL_SPAN_HOST_POSTPROCESS / 10];
    r->h2d_ps = sums.total[XPL_SPAN_HOST_TO_DEVICE / 10];
    r->d2h_ps = sums.total[XPL_SPAN_DEVICE_TO_HOST / 10];
    r->device_ps = sums.total[XPL_SPAN_DEVICE_COMPUTE_32 / 10];
    r->idle_ps = sums.total[XPL_SPAN_UNKNOWN_TIME / 10];
    return true;
}

static bool break_batch(struct parts *p, const struct xpl_infer_group *g) {
    struct xpl_infer_batch *const b = &p->k->out->batches.v[g->batch - 1];
    struct xpl_span_sums sums;
    if (!add_spans(p, g) || !sum_up(p, &sums)) return false;
    b->device_ps = sums.total[XPL_SPAN_DEVICE_COMPUTE_32 / 10];
    return true;
}

static xpl_status_t break_group(struct xpl_inferring *k, const struct xpl_infer_group *g,
                                struct xpl_error *err) {
    for (unsigned batch = 0; batch < 2; batch++) {
        if (!(batch ? g->batch : g->request)) continue;
        struct parts p = {.k = k};
        xpl_arena_init(&p.arena, k->limit);
        const bool ok = batch ? break_batch(&p, g) : break_request(&p, g);
        xpl_arena_fini(&p.arena);
        if (!ok) XPL_RETURN_OOM(err, "inference");
    }
    return XPL_OK;
}

// How many spans there are to look at.
static uint64_t count_spans(const struct xpl_inferring *k) {
    uint64_t n = 0;
    for (size_t i = 0; i < k->v.n; i++) {
        const struct xpl_infer_group *const g = &k->v.v[i];
        if (g->request || g->batch) n += g->n_spans;
        for (uint32_t c = 0; g->request && c < g->n_children; c++)
            n += k->v.v[k->children[g->first_child + c]].n_spans;
    }
    return n;
}

xpl_status_t xpl_infer_break_down(struct xpl_inferring *k, struct xpl_error *err) {
    if (count_spans(k) > XPL_INFER_MAX_SPANS)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "inference: requests share more than %d spans of devices",
                         XPL_INFER_MAX_SPANS);
    for (size_t i = 0; i < k->v.n; i++) {
        if (i % CANCEL_EVERY == 0 && xpl_exec_cancelled(k->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "inference: cancelled");
        XPL_TRY(break_group(k, &k->v.v[i], err));
    }
    return XPL_OK;
}
