// SPDX-License-Identifier: Apache-2.0
// Events of trace_viewer: names and texts are escaped once per plane, arguments sorted by name.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/tools/trace_viewer/impl.h"
#include "analysis/tools/trace_viewer/json.h"
#include "base/std_sort.h"

enum { FEW_ARGS = 24 };

// ---- texts ----

static bool cache_json(struct xpl_viewer_writer *w, xpl_str_t *slot, xpl_str_t s,
                       const char *behind) {
    w->scratch.n = 0;
    xpl_trace_json_str(&w->scratch, s);
    xpl_buf_str(&w->scratch, xpl_str_from(behind));
    const xpl_str_t json = {(const char *)w->scratch.p, w->scratch.n};
    return !w->scratch.failed && xpl_arena_str(w->arena, json, slot);
}

bool xpl_viewer_writer_init(struct xpl_viewer_writer *w, const struct xpl_derived_plane *plane,
                            struct xpl_arena *arena, struct xpl_buf *out, size_t limit) {
    const struct xpl_plane *const p = plane->recorded;
    *w = (struct xpl_viewer_writer){.out = out, .arena = arena, .plane = plane};
    xpl_buf_init(&w->scratch, limit);
    w->texts.names = xpl_arena_zalloc(arena, plane->n_md * sizeof(xpl_str_t));
    w->texts.long_names = xpl_arena_zalloc(arena, plane->n_md * sizeof(xpl_str_t));
    w->texts.keys = xpl_arena_zalloc(arena, p->n_stat_md * sizeof(xpl_str_t));
    w->texts.values = xpl_arena_zalloc(arena, p->n_stat_md * sizeof(xpl_str_t));
    return w->texts.names && w->texts.long_names && w->texts.keys && w->texts.values;
}

void xpl_viewer_writer_fini(struct xpl_viewer_writer *w) {
    xpl_buf_fini(&w->scratch);
}

// Position among the plane's own metadata; UINT32_MAX for that of added statistics.
static uint32_t own_md(const struct xpl_viewer_writer *w, const struct xpl_stat_md *md) {
    const struct xpl_plane *const p = w->plane->recorded;
    return md >= p->stat_md && md < p->stat_md + p->n_stat_md ? (uint32_t)(md - p->stat_md)
                                                              : UINT32_MAX;
}

// A statistic as the text that upstream makes of it [XStatVisitor::ToString].
static void put_value(struct xpl_viewer_writer *w, const struct xpl_stat *s) {
    struct xpl_buf *const out = w->out;
    switch (s->kind) {
        case XPL_VALUE_INT: xpl_trace_json_int(out, s->i); break;
        case XPL_VALUE_UINT: xpl_trace_json_uint(out, s->u); break;
        case XPL_VALUE_DOUBLE: {
            if (isnan(s->d))
                xpl_buf_str(out, XPL_STR("\"nan\""));
            else
                xpl_buf_printf(out, "\"%g\"", s->d);
            break;
        }
        case XPL_VALUE_STR: xpl_trace_json_str(out, s->str); break;
        case XPL_VALUE_BYTES: xpl_buf_str(out, XPL_STR("\"<opaque bytes>\"")); break;
        case XPL_VALUE_REF: {
            const uint32_t md = xpl_plane_stat_md(w->plane->recorded, s->u);
            xpl_str_t *const known = &w->texts.values[md];
            if (!known->len && !cache_json(w, known, s->str, "")) out->failed = true;
            xpl_buf_str(out, *known);
            break;
        }
        case XPL_VALUE_NONE: xpl_buf_str(out, XPL_STR("\"\"")); break;
    }
}

// ---- arguments ----

static bool arg_less(const void *ctx, const void *pa, const void *pb) {
    const struct xpl_viewer_arg *const a = pa, *const b = pb;
    (void)ctx;
    const int c = xpl_str_cmp(a->key, b->key);
    return c ? c < 0 : a->order < b->order;
}

static const xpl_str_t *key_json(struct xpl_viewer_writer *w, const struct xpl_stat_md *md) {
    // Statistics that preprocessing adds: few, and their names need no escapes.
    static const struct {
        const char *name;
        xpl_str_t json;
    } added[] = {
        {"_a", {"\"_a\": ", 6}},
        {"avg_launch_time_us", {"\"avg_launch_time_us\": ", 22}},
        {"correlation_id", {"\"correlation_id\": ", 18}},
        {"cuda_graph_id", {"\"cuda_graph_id\": ", 17}},
        {"device_duration_ps", {"\"device_duration_ps\": ", 22}},
        {"device_offset_ps", {"\"device_offset_ps\": ", 20}},
        {"flow", {"\"flow\": ", 8}},
        {"group_id", {"\"group_id\": ", 12}},
        {"is_eager", {"\"is_eager\": ", 12}},
        {"max_launch_time_us", {"\"max_launch_time_us\": ", 22}},
        {"num_launches", {"\"num_launches\": ", 16}},
        {"raw_bytes_accessed", {"\"raw_bytes_accessed\": ", 22}},
        {"shape_with_layout", {"\"shape_with_layout\": ", 21}},
        {"step_idle_time_ps", {"\"step_idle_time_ps\": ", 21}},
        {"step_name", {"\"step_name\": ", 13}},
    };
    const uint32_t own = own_md(w, md);
    if (own != UINT32_MAX) {
        xpl_str_t *const known = &w->texts.keys[own];
        return known->len || cache_json(w, known, md->name, ": ") ? known : NULL;
    }
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        if (xpl_str_eq(md->name, xpl_str_from(added[i].name))) return &added[i].json;
    return NULL;
}

static bool push_arg(struct xpl_viewer_writer *w, const struct xpl_viewer_arg *a) {
    struct xpl_viewer_arg *const slot = xpl_vec_push(w->arena, &w->args);
    if (!slot) return false;
    *slot = *a;
    slot->order = (uint32_t)(w->args.n - 1);
    return true;
}

static void sort_args(struct xpl_viewer_writer *w) {
    struct xpl_viewer_arg *const v = w->args.v;
    if (w->args.n > FEW_ARGS) {
        xpl_std_sort(v, w->args.n, sizeof *v, arg_less, NULL);
        return;
    }
    for (size_t i = 1; i < w->args.n; i++) {
        const struct xpl_viewer_arg a = v[i];
        size_t at = i;
        for (; at > 0 && xpl_str_cmp(v[at - 1].key, a.key) > 0; at--)
            v[at] = v[at - 1];
        v[at] = a;
    }
}

// Of equal names the last counts.
static void put_args(struct xpl_viewer_writer *w, const xpl_str_t *long_name) {
    struct xpl_buf *const out = w->out;
    const char *before = "\"args\": {";
    sort_args(w);
    for (size_t i = 0; i < w->args.n; i++) {
        const struct xpl_viewer_arg *const a = &w->args.v[i];
        if (i + 1 < w->args.n && xpl_str_eq(a->key, a[1].key)) continue;
        xpl_buf_str(out, xpl_str_from(before));
        before = ", ";
        xpl_buf_str(out, *a->json);
        if (a->stat.md)
            put_value(w, &a->stat);
        else
            xpl_buf_str(out, *long_name);
    }
    if (w->args.n) xpl_buf_str(out, XPL_STR("}, "));
}

// ---- events ----

static const xpl_str_t *text_of(struct xpl_viewer_writer *w, xpl_str_t *slot, xpl_str_t s) {
    return slot->len || cache_json(w, slot, s, "") ? slot : NULL;
}

// Collects the arguments; *ret_step is the step's name, if it is one of them.
static bool collect_args(struct xpl_viewer_writer *w, const struct xpl_derived_event *ev,
                         const struct xpl_derived_md *md, const xpl_str_t **ret_long_name,
                         struct xpl_stat *ret_step) {
    static const xpl_str_t long_name_key = {"\"long_name\": ", 13};
    struct xpl_derived_stats it;
    struct xpl_stat s;
    w->args.n = 0;
    *ret_step = (struct xpl_stat){.kind = XPL_VALUE_NONE};
    *ret_long_name = NULL;
    if (md->display_name.len) {
        const struct xpl_viewer_arg a = {.key = XPL_STR("long_name"), .json = &long_name_key};
        *ret_long_name = text_of(w, &w->texts.long_names[ev->md], md->name);
        if (!*ret_long_name || !push_arg(w, &a)) return false;
    }
    xpl_derived_stats_begin(&it, w->plane, ev);
    while (xpl_derived_stats_next(&it, &s)) {
        if (s.md->type == XPL_STAT_STEP_NAME) *ret_step = s;
        const struct xpl_viewer_arg a = {.key = s.md->name, .json = key_json(w, s.md), .stat = s};
        if (!a.json || !push_arg(w, &a)) return false;
    }
    return true;
}

bool xpl_viewer_put_event(struct xpl_viewer_writer *w, const struct xpl_derived_event *ev,
                          const struct xpl_derived_md *md) {
    struct xpl_buf *const out = w->out;
    const xpl_str_t *long_name;
    struct xpl_stat step_name;
    const xpl_str_t *const name =
        text_of(w, &w->texts.names[ev->md], md->display_name.len ? md->display_name : md->name);
    if (!name || !collect_args(w, ev, md, &long_name, &step_name)) return false;
    xpl_buf_putc(out, '{');
    put_args(w, long_name);
    if (ev->duration_ps) {
        xpl_buf_str(out, XPL_STR("\"dur\": "));
        xpl_trace_json_us(out, (uint64_t)ev->duration_ps);
        xpl_buf_str(out, XPL_STR(", "));
    }
    xpl_buf_str(out, XPL_STR("\"name\": "));
    if (step_name.kind != XPL_VALUE_NONE)
        put_value(w, &step_name);
    else
        xpl_buf_str(out, *name);
    xpl_buf_str(out, ev->duration_ps ? XPL_STR(", \"ph\": \"X\"") : XPL_STR(", \"ph\": \"i\""));
    xpl_buf_put(out, w->pid, w->pid_len);
    if (!ev->duration_ps) xpl_buf_str(out, XPL_STR(", \"s\": \"t\""));
    xpl_buf_put(out, w->tid, w->tid_len);
    xpl_trace_json_us(out, (uint64_t)ev->begin_ps);
    xpl_buf_str(out, XPL_STR("},\n"));
    return true;
}

void xpl_viewer_begin_line(struct xpl_viewer_writer *w, const struct xpl_derived_line *line,
                           uint32_t pid) {
    w->pid_len = (size_t)snprintf(w->pid, sizeof w->pid, ", \"pid\": %" PRIu32, pid);
    w->tid_len =
        (size_t)snprintf(w->tid, sizeof w->tid,
                         ", \"tid\": %" PRIu32 ", \"ts\": ", (uint32_t)(uint64_t)line->display_id);
}
