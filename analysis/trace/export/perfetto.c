// SPDX-License-Identifier: Apache-2.0
// Perfetto's trace format, written by hand: messages are small, and lengths come before contents.
// Field numbers: protos/perfetto/trace/{trace_packet,track_event/*,interned_data/*}.proto.
#include <inttypes.h>
#include <string.h>

#include "analysis/trace/export/impl.h"
#include "base/map.h"

enum {
    TRACE_PACKET = 1,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
    FLAG_CLEARED = 1,
    FLAG_NEEDED = 2,

    INTERNED_EVENT_NAMES = 2,
    INTERNED_ARGUMENT_NAMES = 3,
    INTERNED_STRINGS = 29,

    EVENT_ARGUMENT = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_COUNTER = 30,
    EVENT_DOUBLE_COUNTER = 44,
    EVENT_FLOW = 47,
    TYPE_BEGIN = 1,
    TYPE_END = 2,
    TYPE_INSTANT = 3,
    TYPE_COUNTER = 4,

    ARGUMENT_NAME_IID = 1,
    ARGUMENT_UINT = 3,
    ARGUMENT_INT = 4,
    ARGUMENT_DOUBLE = 5,
    ARGUMENT_STRING = 6,
    ARGUMENT_NAME = 10,
    ARGUMENT_STRING_IID = 17,

    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
};

// Events that overlap without nesting: each lane is a track of its own.  Where none is free, an
// event becomes an instant with its duration as an argument.
enum { MAX_LANES = 128 };

struct lane {
    uint64_t uuid;
    XPL_VEC(uint64_t) ends; // ps, of what is open, the outermost first
};

struct writer {
    struct xpl_exporter *x;
    struct xpl_arena *arena; // of the host
    struct xpl_buf packet, body, part, interned;
    uint64_t salt;
    uint32_t sequence;
    uint64_t process, thread; // uuids
    struct lane lanes[MAX_LANES];
    uint32_t n_lanes;
    // Interned so far, by position in the plane; ids go on from plane to plane.
    uint8_t *names, *keys, *strings;
    uint64_t names_base, keys_base, n_names, n_keys;
    struct xpl_map counters; // by metadata of event and statistic
};

// ---- messages ----

static void put_varint(struct xpl_buf *b, uint64_t v) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    xpl_buf_put(b, bytes, n);
}
static void put_uint(struct xpl_buf *b, uint32_t field, uint64_t v) {
    put_varint(b, field << 3);
    put_varint(b, v);
}
static void put_fixed(struct xpl_buf *b, uint32_t field, uint64_t v) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    put_varint(b, field << 3 | 1);
    xpl_buf_put(b, bytes, sizeof bytes);
}
static void put_double(struct xpl_buf *b, uint32_t field, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_fixed(b, field, bits);
}
static void put_str(struct xpl_buf *b, uint32_t field, xpl_str_t s) {
    put_varint(b, field << 3 | 2);
    put_varint(b, s.len);
    xpl_buf_str(b, s);
}
// Appends the contents of `part`, and empties it.
static void put_part(struct xpl_buf *b, uint32_t field, struct xpl_buf *part) {
    put_str(b, field, (xpl_str_t){(const char *)part->p, part->n});
    b->failed |= part->failed;
    part->n = 0;
}

static bool finish_packet(struct writer *w, uint32_t flags) {
    put_uint(&w->packet, PACKET_SEQUENCE, w->sequence);
    put_uint(&w->packet, PACKET_FLAGS, flags);
    put_part(&w->x->out, TRACE_PACKET, &w->packet);
    return !w->x->out.failed;
}

// Writes the event whose fields are in `body`, with the texts that it interned.
static bool finish_event(struct writer *w, uint64_t ps) {
    put_uint(&w->packet, PACKET_TIMESTAMP, ps / 1000);
    if (w->interned.n || w->interned.failed) put_part(&w->packet, PACKET_INTERNED, &w->interned);
    put_part(&w->packet, PACKET_EVENT, &w->body);
    return finish_packet(w, FLAG_NEEDED);
}

// ---- tracks ----

static uint64_t mix(uint64_t h, uint64_t v) {
    const __uint128_t m =
        (__uint128_t)(h ^ v ^ UINT64_C(0xa0761d6478bd642f)) * UINT64_C(0xe7037ed1a0b428db);
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t uuid_of(const struct writer *w, uint64_t line, uint64_t lane) {
    return mix(mix(mix(w->salt, w->x->pid), line), lane) | 1;
}

static bool put_track(struct writer *w) {
    put_part(&w->packet, PACKET_TRACK, &w->body);
    return finish_packet(w, FLAG_NEEDED);
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
    put_uint(&w->part, 1, w->x->pid);
    put_str(&w->part, 6, name);
    put_uint(&w->body, TRACK_UUID, w->process);
    put_part(&w->body, TRACK_PROCESS, &w->part);
    return put_track(w);
}

static bool put_line(void *ctx) {
    struct writer *const w = ctx;
    const struct xpl_derived_line *const l = w->x->line;
    w->n_lanes = 1;
    w->thread = w->lanes[0].uuid = uuid_of(w, l->index + 1, 0);
    w->lanes[0].ends.n = 0;
    if (w->x->counters) return true;
    put_uint(&w->part, 1, w->x->pid);
    put_uint(&w->part, 2, w->x->pid << 12 ^ w->x->tid);
    put_str(&w->part, 5, l->display_name);
    put_uint(&w->body, TRACK_UUID, w->thread);
    put_part(&w->body, TRACK_THREAD, &w->part);
    return put_track(w);
}

static struct lane *add_lane(struct writer *w) {
    struct lane *const l = &w->lanes[w->n_lanes];
    l->uuid = uuid_of(w, w->x->line->index + 1, w->n_lanes++);
    l->ends.n = 0;
    put_uint(&w->body, TRACK_UUID, l->uuid);
    put_uint(&w->body, TRACK_PARENT, w->thread);
    put_str(&w->body, TRACK_NAME, w->x->line->display_name);
    return put_track(w) ? l : NULL;
}

// ---- names and arguments ----

static void put_interned(struct writer *w, uint32_t field, uint8_t *seen, uint64_t iid,
                         xpl_str_t s) {
    if (*seen) return;
    *seen = 1;
    put_uint(&w->part, 1, iid);
    put_str(&w->part, 2, s);
    put_part(&w->interned, field, &w->part);
}

static void put_value(struct writer *w, const struct xpl_stat *s) {
    struct xpl_buf *const b = &w->part;
    switch (s->kind) {
        case XPL_VALUE_INT: put_uint(b, ARGUMENT_INT, (uint64_t)s->i); break;
        case XPL_VALUE_UINT: put_uint(b, ARGUMENT_UINT, s->u); break;
        case XPL_VALUE_DOUBLE: put_double(b, ARGUMENT_DOUBLE, s->d); break;
        case XPL_VALUE_STR: put_str(b, ARGUMENT_STRING, s->str); break;
        case XPL_VALUE_BYTES: put_str(b, ARGUMENT_STRING, XPL_STR("<opaque bytes>")); break;
        case XPL_VALUE_REF:
            put_uint(b, ARGUMENT_STRING_IID,
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
        put_interned(w, INTERNED_ARGUMENT_NAMES, &w->keys[at], w->keys_base + at + 1, s->md->name);
    }
    if (s->kind == XPL_VALUE_REF) {
        const uint32_t at = xpl_plane_stat_md(p, s->u);
        put_interned(w, INTERNED_STRINGS, &w->strings[at], w->keys_base + at + 1, s->str);
    }
    if (own)
        put_uint(&w->part, ARGUMENT_NAME_IID, w->keys_base + (uint64_t)(s->md - p->stat_md) + 1);
    else
        put_str(&w->part, ARGUMENT_NAME, s->md->name);
    put_value(w, s);
    put_part(&w->body, EVENT_ARGUMENT, &w->part);
}

static void put_text_argument(struct writer *w, xpl_str_t name, xpl_str_t value) {
    put_str(&w->part, ARGUMENT_NAME, name);
    put_str(&w->part, ARGUMENT_STRING, value);
    put_part(&w->body, EVENT_ARGUMENT, &w->part);
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
        put_str(&w->body, EVENT_NAME, step);
    } else {
        put_interned(w, INTERNED_EVENT_NAMES, &w->names[ev->md], w->names_base + ev->md + 1, name);
        put_uint(&w->body, EVENT_NAME_IID, w->names_base + ev->md + 1);
    }
    for (uint32_t i = 0; i < ev->n_flows; i++)
        put_fixed(&w->body, EVENT_FLOW, ev->flows[i].id);
}

// ---- events ----

static bool put_end(struct writer *w, struct lane *l) {
    const uint64_t end = l->ends.v[--l->ends.n];
    put_uint(&w->body, EVENT_TYPE, TYPE_END);
    put_uint(&w->body, EVENT_TRACK, l->uuid);
    return finish_event(w, end);
}

// A lane on which the span nests; ends what ended before it on the way.  NULL: none is free.
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
            put_str(&w->body, TRACK_COUNTER, (xpl_str_t){"", 0});
            put_uint(&w->body, TRACK_UUID, *uuid);
            put_uint(&w->body, TRACK_PARENT, w->process);
            xpl_str_t name;
            if (md->name.len > INT32_MAX || s.md->name.len > INT32_MAX ||
                !xpl_arena_printf(w->x->arena, &name, "%.*s: %.*s", XPL_STR_FMT(md->name),
                                  XPL_STR_FMT(s.md->name)))
                return false;
            put_str(&w->body, TRACK_NAME, name);
            if (!put_track(w)) return false;
        }
        put_uint(&w->body, EVENT_TYPE, TYPE_COUNTER);
        put_uint(&w->body, EVENT_TRACK, *uuid);
        if (s.kind == XPL_VALUE_INT)
            put_uint(&w->body, EVENT_COUNTER, (uint64_t)s.i);
        else
            put_double(&w->body, EVENT_DOUBLE_COUNTER,
                       s.kind == XPL_VALUE_UINT ? (double)s.u : s.d);
        if (!finish_event(w, (uint64_t)ev->begin_ps)) return false;
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
    put_uint(&w->body, EVENT_TYPE, l ? TYPE_BEGIN : TYPE_INSTANT);
    put_uint(&w->body, EVENT_TRACK, l ? l->uuid : w->thread);
    put_details(w, ev, md);
    if (!l && ev->duration_ps) {
        put_str(&w->part, ARGUMENT_NAME, XPL_STR("duration_ps"));
        put_uint(&w->part, ARGUMENT_INT, (uint64_t)ev->duration_ps);
        put_part(&w->body, EVENT_ARGUMENT, &w->part);
    }
    if (l) {
        uint64_t *const slot = xpl_vec_push(w->arena, &l->ends);
        if (!slot) return false;
        *slot = end;
    }
    return finish_event(w, begin);
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
    struct xpl_buf *const bufs[] = {&w->packet, &w->body, &w->part, &w->interned};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        xpl_buf_fini(bufs[i]);
}

static void *begin_host(struct xpl_exporter *x, struct xpl_arena *arena) {
    struct writer *const w = xpl_arena_zalloc(arena, sizeof *w);
    if (!w) return NULL;
    w->x = x;
    w->arena = arena;
    for (size_t i = 0; i < x->host.len; i++)
        w->salt = mix(w->salt, (uint8_t)x->host.ptr[i]);
    w->sequence = (uint32_t)(w->salt >> 33) | 1;
    struct xpl_buf *const bufs[] = {&w->packet, &w->body, &w->part, &w->interned};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        xpl_buf_init(bufs[i], x->limit);
    if (finish_packet(w, FLAG_CLEARED)) return w;
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
