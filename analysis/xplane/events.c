// SPDX-License-Identifier: Apache-2.0
// Event cursors and statistics: the part of the view that is read once per event.
#include <inttypes.h>

#include "analysis/xplane/event_read.h"
#include "analysis/xplane/fast_stat.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/line_index.h"
#include "analysis/xplane/metadata.h"
#include "analysis/xplane/xspace.h"

void xpl_events_begin(struct xpl_event_cursor *c, const struct xpl_line *line) {
    const struct xpl_wire w = xpl_wire_begin(line->message);
    *c = (struct xpl_event_cursor){.line = line, .p = w.p, .end = w.end, .stop = line->n_events};
}

void xpl_events_begin_chunk(struct xpl_event_cursor *c, const struct xpl_line *line, uint32_t i) {
    xpl_events_begin(c, line);
    if (line->n_chunks < 2) return;
    c->p = line->chunks[i].p;
    c->index = line->chunks[i].first;
    if (i + 1 < line->n_chunks) c->stop = line->chunks[i + 1].first;
}

enum xpl_wire_result xpl_events_next(struct xpl_event_cursor *c, struct xpl_event *ev) {
    if (XPL_UNLIKELY(c->index == c->stop)) return XPL_WIRE_END;
    const struct xpl_plane *const plane = c->line->plane;
    const uint8_t *const at = xpl_find_message(c->p, c->end, XLINE_EVENTS), *p = at;
    xpl_bytes_t message;
    struct xpl_raw_event raw;
    const enum xpl_wire_result r = xpl_next_message(&p, c->end, XLINE_EVENTS, &message);
    if (XPL_UNLIKELY(r != XPL_WIRE_FIELD)) return r;
    if (XPL_UNLIKELY(!xpl_raw_event_read(message, c->end, &raw))) return XPL_WIRE_MALFORMED;
    ev->at = (uint64_t)(at - c->line->message.ptr);
    ev->md = xpl_event_md_at(plane, raw.md_id);
    ev->offset_ps = (int64_t)raw.offset_ps;
    ev->duration_ps = (int64_t)raw.duration_ps;
    ev->num_occurrences = (int64_t)raw.occurrences;
    ev->has_occurrences = raw.has_occurrences;
    ev->stats = (struct xpl_stats){plane, raw.stats, raw.end, XEVENT_STATS};
    ev->index = c->index++;
    c->p = p;
    return XPL_WIRE_FIELD;
}

xpl_status_t xpl_event_at(const struct xpl_line *line, uint64_t at, struct xpl_event *ret,
                          struct xpl_error *err) {
    struct xpl_raw_event raw;
    if (!xpl_raw_event_at(line, at, &raw)) {
        const struct xpl_wire w = xpl_wire_begin(line->message);
        const struct xpl_event_cursor c = {
            line, w.p + (at < line->message.len ? at : line->message.len), w.end, 0, 0};
        return xpl_events_error(&c, err);
    }
    *ret = (struct xpl_event){.md = xpl_event_md_at(line->plane, raw.md_id),
                              .offset_ps = (int64_t)raw.offset_ps,
                              .duration_ps = (int64_t)raw.duration_ps,
                              .num_occurrences = (int64_t)raw.occurrences,
                              .has_occurrences = raw.has_occurrences,
                              .stats = {line->plane, raw.stats, raw.end, XEVENT_STATS},
                              .at = at};
    return XPL_OK;
}

xpl_status_t xpl_events_error(const struct xpl_event_cursor *c, struct xpl_error *err) {
    const struct xpl_plane *const p = c->line->plane;
    const uint64_t off = (uint64_t)(c->p - p->space->bytes.ptr);
    const xpl_str_t plane = xpl_str_sub(p->name, 0, 60), line = xpl_str_sub(c->line->name, 0, 40);
    XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, off,
                        "corrupt profile: bad event at byte %" PRIu64
                        " of %zu (plane '%.*s', line '%.*s', "
                        "event %" PRIu64 ")",
                        off, p->space->bytes.len, XPL_STR_FMT(plane), XPL_STR_FMT(line), c->index);
}

int64_t xpl_event_begin_ps(const struct xpl_line *l, const struct xpl_event *ev) {
    return (int64_t)((uint64_t)l->timestamp_ns * 1000u + (uint64_t)ev->offset_ps);
}

int64_t xpl_event_end_ps(const struct xpl_line *l, const struct xpl_event *ev) {
    return (int64_t)((uint64_t)xpl_event_begin_ps(l, ev) + (uint64_t)ev->duration_ps);
}

// ---- stats ----

struct xpl_stats xpl_event_md_stats(const struct xpl_plane *p, const struct xpl_event_md *md) {
    const struct xpl_wire w = xpl_wire_begin(md->message);
    return (struct xpl_stats){p, md->has_stats ? w.p : w.end, w.end, XEVENT_MD_STATS};
}

// (Texts are copied member by member: a wider copy would read its source before that has left the
// store buffer.)
XPL_INLINE bool read_stat(const struct xpl_plane *plane, xpl_bytes_t message,
                          struct xpl_stat *ret) {
    struct xpl_raw_stat raw;
    if (XPL_UNLIKELY(!xpl_raw_stat_read(message, xpl_input_end(plane), &raw))) return false;
    const xpl_str_t *str = &raw.str;
    ret->md = &plane->stat_md[xpl_stat_md_at(plane, raw.md_id)];
    ret->kind = raw.kind;
    ret->u = raw.u;
    if (raw.kind == XPL_VALUE_REF) str = &plane->stat_md[xpl_stat_md_at(plane, raw.u)].name;
    ret->str.ptr = str->ptr;
    ret->str.len = str->len;
    return true;
}

enum xpl_wire_result xpl_stats_next(struct xpl_stats *s, struct xpl_stat *ret) {
    xpl_bytes_t message;
    if (XPL_LIKELY(xpl_next_message(&s->p, s->end, s->field, &message) == XPL_WIRE_FIELD) &&
        XPL_LIKELY(read_stat(s->plane, message, ret)))
        return XPL_WIRE_FIELD;
    s->p = s->end;
    return XPL_WIRE_END;
}

// Where the metadata of a stat stands, by its first bytes; false when they do not say.
XPL_INLINE bool fast_md(const struct xpl_plane *p, xpl_bytes_t message, uint32_t *ret) {
    uint32_t id;
    if (XPL_UNLIKELY(!xpl_fast_stat_id(message, &id))) return false;
    *ret = xpl_stat_md_at(p, id);
    return true;
}

// The next stat that is wanted, by its metadata, or without `wanted` by its type.
XPL_INLINE enum xpl_wire_result next_wanted(struct xpl_stats *s, const uint8_t *wanted,
                                            enum xpl_stat_type type, struct xpl_stat *ret) {
    const struct xpl_stat_md *const md = s->plane->stat_md;
    xpl_bytes_t message;
    while (XPL_LIKELY(xpl_next_message(&s->p, s->end, s->field, &message) == XPL_WIRE_FIELD)) {
        uint32_t at;
        if (XPL_LIKELY(fast_md(s->plane, message, &at)) &&
            !(wanted ? wanted[at] : md[at].type == type))
            continue;
        if (!read_stat(s->plane, message, ret)) break;
        if (wanted ? wanted[ret->md - md] : ret->md->type == type) return XPL_WIRE_FIELD;
    }
    s->p = s->end;
    return XPL_WIRE_END;
}

enum xpl_wire_result xpl_stats_next_of(struct xpl_stats *s, const uint8_t *wanted,
                                       struct xpl_stat *ret) {
    return next_wanted(s, wanted, XPL_STAT_UNKNOWN, ret);
}

enum xpl_wire_result xpl_stats_next_type(struct xpl_stats *s, enum xpl_stat_type type,
                                         struct xpl_stat *ret) {
    return next_wanted(s, NULL, type, ret);
}

bool xpl_stats_get(struct xpl_stats s, enum xpl_stat_type type, struct xpl_stat *ret) {
    return xpl_stats_find(s, &type, 1, ret) != 0;
}

unsigned xpl_stats_find(struct xpl_stats s, const enum xpl_stat_type *types, unsigned n,
                        struct xpl_stat *ret) {
    const unsigned all = (1u << n) - 1;
    unsigned seen = 0, found = 0;
    xpl_bytes_t message;
    while (seen != all && xpl_next_message(&s.p, s.end, s.field, &message) == XPL_WIRE_FIELD) {
        struct xpl_stat stat;
        uint32_t at = 0;
        const bool fast = fast_md(s.plane, message, &at);
        if (!fast && !read_stat(s.plane, message, &stat)) return found;
        const enum xpl_stat_type type = fast ? s.plane->stat_md[at].type : stat.md->type;
        for (unsigned i = 0; i < n; i++) {
            if (XPL_LIKELY(type != types[i]) || seen & 1u << i) continue;
            seen |= 1u << i; // the first counts, broken or not
            if (fast && !read_stat(s.plane, message, &stat)) break;
            ret[i] = stat;
            found |= 1u << i;
            break;
        }
    }
    return found;
}

int64_t xpl_stat_int(const struct xpl_stat *s) {
    return s->kind == XPL_VALUE_INT ? s->i : 0;
}

uint64_t xpl_stat_uint(const struct xpl_stat *s) {
    return s->kind == XPL_VALUE_UINT ? s->u : 0;
}

uint64_t xpl_stat_int_or_uint(const struct xpl_stat *s) {
    return s->kind == XPL_VALUE_UINT || s->kind == XPL_VALUE_INT ? s->u : 0;
}

double xpl_stat_double(const struct xpl_stat *s) {
    return s->kind == XPL_VALUE_DOUBLE ? s->d : 0;
}

bool xpl_stat_bool(const struct xpl_stat *s) {
    return xpl_stat_int(s) != 0;
}

xpl_str_t xpl_stat_str(const struct xpl_stat *s) {
    return s->kind == XPL_VALUE_STR || s->kind == XPL_VALUE_REF ? s->str : (xpl_str_t){"", 0};
}

void xpl_event_md_children(const struct xpl_plane *p, const struct xpl_event_md *md,
                           void (*fn)(void *ctx, const struct xpl_event_md *child), void *ctx) {
    if (!md->has_children) return;
    struct xpl_wire w = xpl_wire_begin(md->message);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != XEVENT_MD_CHILD_ID) continue;
        if (f.type == XPL_WIRE_VARINT) fn(ctx, &p->event_md[xpl_event_md_at(p, f.u)]);
        if (f.type != XPL_WIRE_LEN) continue;
        const uint8_t *const end = f.len.ptr + f.len.len;
        for (struct xpl_varint v = {f.len.ptr, 0}; v.p != end;) { // packed
            v = xpl_varint_slow(v.p, end);
            if (!v.p) return;
            fn(ctx, &p->event_md[xpl_event_md_at(p, v.v)]);
        }
    }
}

// ---- metadata ----

uint32_t xpl_plane_event_md(const struct xpl_plane *p, int64_t id) {
    return xpl_event_md_at(p, (uint64_t)id);
}

uint32_t xpl_plane_stat_md(const struct xpl_plane *p, uint64_t id) {
    return xpl_stat_md_at(p, id);
}
