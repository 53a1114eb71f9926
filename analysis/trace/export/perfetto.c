// SPDX-License-Identifier: Apache-2.0
// Perfetto's trace format (analysis/perfetto): a process for each plane, threads with lanes.

#include "analysis/perfetto/packet.h"
#include "analysis/trace/export/impl.h"
#include "base/map.h"

// Events that overlap without nesting: each lane is a separate track.  When no lane is free, an
// event becomes an instant with its duration as an argument.
enum { MAX_LANES = 128 };

struct lane {
    uint64_t uuid;
    XPL_VEC(uint64_t) ends; // ps, of the open events, the outermost first
};

struct writer {
    struct xpl_exporter *x;
    struct xpl_arena *arena; // of the host
    struct xpl_packet pf;
    uint64_t salt;
    uint64_t process, thread; // uuids
    struct lane lanes[MAX_LANES];
    uint32_t n_lanes;
    // Interned so far, by position in the plane; ids go on from plane to plane.
    uint8_t *names, *keys, *strings;
    uint64_t names_base, keys_base, n_names, n_keys;
    struct xpl_map counters; // by metadata of event and statistic
};

// ---- tracks ----

static uint64_t uuid_of(const struct writer *w, uint64_t line, uint64_t lane) {
    return xpl_pf_mix(xpl_pf_mix(xpl_pf_mix(w->salt, w->x->pid), line), lane) | 1;
}

static bool put_plane(void *ctx) {
    struct writer *const w = ctx;
    const struct xpl_derived_plane *const p = w->x->plane;
    xpl_str_t name;
    if (w->x->host.len > INT32_MAX || p->recorded->name.len > INT32_MAX) return false;
    if (!xpl_arena_printf(w->x->arena, &name, "%.*s %.*s", XPL_STR_FMT(w->x->host),
                          XPL_STR_FMT(p->recorded->name)))
        return false;
    const size_t n_keys = p->recorded->n_stat_md;
    w->names_base += w->n_names;
    w->keys_base += w->n_keys;
    w->n_names = p->n_md;
    w->n_keys = n_keys;
    w->names = xpl_arena_zalloc(w->x->arena, p->n_md);
    w->keys = xpl_arena_zalloc(w->x->arena, n_keys);
    w->strings = xpl_arena_zalloc(w->x->arena, n_keys);
    if (!w->names || !w->keys || !w->strings) return false;
    w->counters = (struct xpl_map){0};
    w->process = uuid_of(w, 0, 0);
    xpl_pf_uint(&w->pf.part, 1, w->x->pid);
    xpl_pf_str(&w->pf.part, 6, name);
    xpl_pf_uint(&w->pf.body, XPL_PF_TRACK_UUID, w->process);
    xpl_pf_part(&w->pf.body, XPL_PF_TRACK_PROCESS, &w->pf.part);
    return xpl_packet_track(&w->pf);
}

static bool put_line(void *ctx) {
    struct writer *const w = ctx;
    const struct xpl_derived_line *const l = w->x->line;
    w->n_lanes = 1;
    w->thread = w->lanes[0].uuid = uuid_of(w, l->index + 1, 0);
    w->lanes[0].ends.n = 0;
    if (w->x->counters) return true;
    xpl_pf_uint(&w->pf.part, 1, w->x->pid);
    xpl_pf_uint(&w->pf.part, 2, w->x->pid << 12 ^ w->x->tid);
    xpl_pf_str(&w->pf.part, 5, l->display_name);
    xpl_pf_uint(&w->pf.body, XPL_PF_TRACK_UUID, w->thread);
    xpl_pf_part(&w->pf.body, XPL_PF_TRACK_THREAD, &w->pf.part);
    return xpl_packet_track(&w->pf);
}

static struct lane *add_lane(struct writer *w) {
    struct lane *const l = &w->lanes[w->n_lanes];
    l->uuid = uuid_of(w, w->x->line->index + 1, w->n_lanes++);
    l->ends.n = 0;
    xpl_pf_uint(&w->pf.body, XPL_PF_TRACK_UUID, l->uuid);
    xpl_pf_uint(&w->pf.body, XPL_PF_TRACK_PARENT, w->thread);
    xpl_pf_str(&w->pf.body, XPL_PF_TRACK_NAME, w->x->line->display_name);
    return xpl_packet_track(&w->pf) ? l : NULL;
}

// ---- names and arguments ----

static void put_interned(struct writer *w, uint32_t field, uint8_t *seen, uint64_t iid,
                         xpl_str_t s) {
    if (*seen) return;
    *seen = 1;
    xpl_pf_uint(&w->pf.part, 1, iid);
    xpl_pf_str(&w->pf.part, 2, s);
    xpl_pf_part(&w->pf.interned, field, &w->pf.part);
}

static void put_value(struct writer *w, const struct xpl_stat *s) {
    struct xpl_buf *const b = &w->pf.part;
    switch (s->kind) {
        case XPL_VALUE_INT: xpl_pf_uint(b, XPL_PF_ARGUMENT_INT, (uint64_t)s->i); break;
        case XPL_VALUE_UINT: xpl_pf_uint(b, XPL_PF_ARGUMENT_UINT, s->u); break;
        case XPL_VALUE_DOUBLE: xpl_pf_double(b, XPL_PF_ARGUMENT_DOUBLE, s->d); break;
        case XPL_VALUE_STR: xpl_pf_str(b, XPL_PF_ARGUMENT_STRING, s->str); break;
        case XPL_VALUE_BYTES:
            xpl_pf_str(b, XPL_PF_ARGUMENT_STRING, XPL_STR("<opaque bytes>"));
            break;
        case XPL_VALUE_REF:
            xpl_pf_uint(b, XPL_PF_ARGUMENT_STRING_IID,
                        w->keys_base + xpl_plane_stat_md(w->x->plane->recorded, s->u) + 1);
            break;
        case XPL_VALUE_NONE: break;
    }
}

static void put_argument(struct writer *w, const struct xpl_stat *s) {
    const struct xpl_plane *const p = w->x->plane->recorded;
    const bool own = s->md >= p->stat_md && s->md < p->stat_md + p->n_stat_md;
    if (own) {
        const size_t at = (size_t)(s->md - p->stat_md);
        put_interned(w, XPL_PF_INTERNED_ARGUMENT_NAMES, &w->keys[at], w->keys_base + at + 1,
                     s->md->name);
    }
    if (s->kind == XPL_VALUE_REF) {
        const uint32_t at = xpl_plane_stat_md(p, s->u);
        put_interned(w, XPL_PF_INTERNED_STRINGS, &w->strings[at], w->keys_base + at + 1, s->str);
    }
    if (own)
        xpl_pf_uint(&w->pf.part, XPL_PF_ARGUMENT_NAME_IID,
                    w->keys_base + (uint64_t)(s->md - p->stat_md) + 1);
    else
        xpl_pf_str(&w->pf.part, XPL_PF_ARGUMENT_NAME, s->md->name);
    put_value(w, s);
    xpl_pf_part(&w->pf.body, XPL_PF_EVENT_ARGUMENT, &w->pf.part);
}

static void put_text_argument(struct writer *w, xpl_str_t name, xpl_str_t value) {
    xpl_pf_str(&w->pf.part, XPL_PF_ARGUMENT_NAME, name);
    xpl_pf_str(&w->pf.part, XPL_PF_ARGUMENT_STRING, value);
    xpl_pf_part(&w->pf.body, XPL_PF_EVENT_ARGUMENT, &w->pf.part);
}

// Name, flows and arguments.
static void put_details(struct writer *w, const struct xpl_derived_event *ev,
                        const struct xpl_derived_md *md) {
    struct xpl_derived_stats it;
    struct xpl_stat s;
    xpl_str_t step = {"", 0};
    xpl_derived_stats_begin(&it, w->x->plane, ev);
    while (xpl_derived_stats_next(&it, &s)) {
        if (s.md->type == XPL_STAT_STEP_NAME) step = xpl_stat_str(&s);
        if (s.md->type != XPL_STAT_FLOW) put_argument(w, &s);
    }
    const xpl_str_t name = md->display_name.len ? md->display_name : md->name;
    if (md->display_name.len && md->name.len) put_text_argument(w, XPL_STR("long_name"), md->name);
    if (step.len) {
        xpl_pf_str(&w->pf.body, XPL_PF_EVENT_NAME, step);
    } else {
        put_interned(w, XPL_PF_INTERNED_EVENT_NAMES, &w->names[ev->md], w->names_base + ev->md + 1,
                     name);
        xpl_pf_uint(&w->pf.body, XPL_PF_EVENT_NAME_IID, w->names_base + ev->md + 1);
    }
    for (uint32_t i = 0; i < ev->n_flows; i++)
        xpl_pf_fixed(&w->pf.body, XPL_PF_EVENT_FLOW, ev->flows[i].id);
}

// ---- events ----

static uint64_t ns_of(const struct writer *w, uint64_t ps) {
    return w->x->zero_ns + ps / 1000;
}

static bool put_end(struct writer *w, struct lane *l) {
    const uint64_t end = l->ends.v[--l->ends.n];
    xpl_pf_uint(&w->pf.body, XPL_PF_EVENT_TYPE, XPL_PF_TYPE_END);
    xpl_pf_uint(&w->pf.body, XPL_PF_EVENT_TRACK, l->uuid);
    return xpl_packet_event(&w->pf, ns_of(w, end));
}

// A lane on which the span nests; ends the events that ended before it on the way.  NULL: none is
// free.
static struct lane *find_lane(struct writer *w, uint64_t begin, uint64_t end, bool *ok) {
    for (uint32_t i = 0; i < w->n_lanes; i++) {
        struct lane *const l = &w->lanes[i];
        while (*ok && l->ends.n && l->ends.v[l->ends.n - 1] <= begin)
            *ok = put_end(w, l);
        if (!*ok || l->ends.n == 0 || l->ends.v[l->ends.n - 1] >= end) return l;
    }
    if (w->n_lanes == MAX_LANES) return NULL;
    struct lane *const l = add_lane(w);
    *ok = l != NULL;
    return l;
}

// A sample of a counter: one track for each of its numbers.
static bool put_sample(struct writer *w, const struct xpl_derived_event *ev,
                       const struct xpl_derived_md *md) {
    struct xpl_derived_stats it;
    struct xpl_stat s;
    xpl_derived_stats_begin(&it, w->x->plane, ev);
    while (xpl_derived_stats_next(&it, &s)) {
        bool is_new;
        if (s.kind != XPL_VALUE_INT && s.kind != XPL_VALUE_UINT && s.kind != XPL_VALUE_DOUBLE)
            continue;
        const uint64_t key = (uint64_t)(uintptr_t)s.md;
        uint64_t *const uuid = xpl_map_put(w->x->arena, &w->counters, ev->md, key, &is_new);
        if (!uuid) return false;
        if (is_new) {
            *uuid = uuid_of(w, UINT64_MAX, w->counters.n);
            xpl_pf_str(&w->pf.body, XPL_PF_TRACK_COUNTER, (xpl_str_t){"", 0});
            xpl_pf_uint(&w->pf.body, XPL_PF_TRACK_UUID, *uuid);
            xpl_pf_uint(&w->pf.body, XPL_PF_TRACK_PARENT, w->process);
            xpl_str_t name;
            if (md->name.len > INT32_MAX || s.md->name.len > INT32_MAX ||
                !xpl_arena_printf(w->x->arena, &name, "%.*s: %.*s", XPL_STR_FMT(md->name),
                                  XPL_STR_FMT(s.md->name)))
                return false;
            xpl_pf_str(&w->pf.body, XPL_PF_TRACK_NAME, name);
            if (!xpl_packet_track(&w->pf)) return false;
        }
        xpl_pf_uint(&w->pf.body, XPL_PF_EVENT_TYPE, XPL_PF_TYPE_COUNTER);
        xpl_pf_uint(&w->pf.body, XPL_PF_EVENT_TRACK, *uuid);
        if (s.kind == XPL_VALUE_INT)
            xpl_pf_uint(&w->pf.body, XPL_PF_EVENT_COUNTER, (uint64_t)s.i);
        else
            xpl_pf_double(&w->pf.body, XPL_PF_EVENT_DOUBLE_COUNTER,
                          s.kind == XPL_VALUE_UINT ? (double)s.u : s.d);
        if (!xpl_packet_event(&w->pf, ns_of(w, (uint64_t)ev->begin_ps))) return false;
    }
    return true;
}

static bool put_event(void *ctx, const struct xpl_derived_event *ev,
                      const struct xpl_derived_md *md) {
    struct writer *const w = ctx;
    const uint64_t begin = (uint64_t)ev->begin_ps, end = begin + (uint64_t)ev->duration_ps;
    bool ok = true;
    if (w->x->counters) return put_sample(w, ev, md);
    struct lane *l = NULL;
    if (ev->duration_ps > 0 && end > begin) l = find_lane(w, begin, end, &ok);
    if (!ok) return false;
    xpl_pf_uint(&w->pf.body, XPL_PF_EVENT_TYPE, l ? XPL_PF_TYPE_BEGIN : XPL_PF_TYPE_INSTANT);
    xpl_pf_uint(&w->pf.body, XPL_PF_EVENT_TRACK, l ? l->uuid : w->thread);
    put_details(w, ev, md);
    if (!l && ev->duration_ps) {
        xpl_pf_str(&w->pf.part, XPL_PF_ARGUMENT_NAME, XPL_STR("duration_ps"));
        xpl_pf_uint(&w->pf.part, XPL_PF_ARGUMENT_INT, (uint64_t)ev->duration_ps);
        xpl_pf_part(&w->pf.body, XPL_PF_EVENT_ARGUMENT, &w->pf.part);
    }
    if (l) {
        uint64_t *const slot = xpl_vec_push(w->arena, &l->ends);
        if (!slot) return false;
        *slot = end;
    }
    return xpl_packet_event(&w->pf, ns_of(w, begin));
}

static bool end_line(void *ctx) {
    struct writer *const w = ctx;
    for (uint32_t i = 0; i < w->n_lanes; i++)
        while (w->lanes[i].ends.n)
            if (!put_end(w, &w->lanes[i])) return false;
    return true;
}

// ---- a host ----

static void end_host(void *ctx) {
    struct writer *const w = ctx;
    xpl_packet_fini(&w->pf);
}

static void *begin_host(struct xpl_exporter *x, struct xpl_arena *arena) {
    struct writer *const w = xpl_arena_zalloc(arena, sizeof *w);
    if (!w) return NULL;
    w->x = x;
    w->arena = arena;
    for (size_t i = 0; i < x->host.len; i++)
        w->salt = xpl_pf_mix(w->salt, (uint8_t)x->host.ptr[i]);
    xpl_packet_init(&w->pf, &x->out, (uint32_t)(w->salt >> 33) | 1, x->limit);
    if (xpl_packet_clear(&w->pf)) return w;
    end_host(w);
    return NULL;
}

const struct xpl_export_writer xpl_export_perfetto = {
    .begin = begin_host,
    .plane = put_plane,
    .line = put_line,
    .event = put_event,
    .line_end = end_line,
    .end = end_host,
};
