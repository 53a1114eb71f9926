// SPDX-License-Identifier: Apache-2.0
// Opens a space: one pass over planes, metadata and the framing of lines.
#include "analysis/xplane/xspace.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/xplane/captured.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/id_table.h"
#include "analysis/xplane/line_index.h"
#include "analysis/xplane/plane_kind.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/vec.h"

struct open_ctx {
    struct xpl_xspace *xs;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct xpl_error *err;
    struct xpl_arena temp;
    XPL_VEC(struct xpl_line *) lines; // of all planes, to be indexed
    struct xpl_id_table *no_ids;      // shared by planes without metadata
    struct xpl_event_md *no_event_md;
    struct xpl_stat_md *no_stat_md;
};

static uint64_t offset_of(const struct open_ctx *c, const uint8_t *p) {
    return (uint64_t)(p - c->xs->bytes.ptr);
}

static xpl_status_t broken(const struct open_ctx *c, const char *message, const uint8_t *at) {
    const uint64_t off = offset_of(c, at);
    XPL_RETURN_ERROR_AT(c->err, XPL_DATA_LOSS, off,
                        "truncated or corrupt profile: bad field in %s at byte %" PRIu64 " of %zu",
                        message, off, c->xs->bytes.len);
}

static xpl_status_t no_memory(const struct open_ctx *c) {
    XPL_RETURN_OOM(c->err, "profile index");
}

// ---- metadata ----

// Entry of a map<int64, message>.
static xpl_status_t read_entry(struct open_ctx *c, xpl_bytes_t entry, int64_t *ret_key,
                               xpl_bytes_t *ret_value) {
    struct xpl_wire w = xpl_wire_begin(entry);
    struct xpl_field f;
    enum xpl_wire_result r;
    int64_t key = 0;
    xpl_bytes_t value = {0};
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num == 1 && f.type == XPL_WIRE_VARINT) key = (int64_t)f.u;
        if (f.num == 2 && f.type == XPL_WIRE_LEN) value = f.len;
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "a metadata entry", w.p);
    *ret_key = key;
    *ret_value = value;
    return XPL_OK;
}

static xpl_status_t read_event_md(struct open_ctx *c, xpl_bytes_t entry, struct xpl_event_md *md) {
    *md = (struct xpl_event_md){0};
    XPL_TRY(read_entry(c, entry, &md->id, &md->message));
    struct xpl_wire w = xpl_wire_begin(md->message);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num == XEVENT_MD_CHILD_ID) md->has_children = true;
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == XEVENT_MD_NAME) md->name = xpl_wire_str(&f);
        if (f.num == XEVENT_MD_DISPLAY_NAME) md->display_name = xpl_wire_str(&f);
        if (f.num == XEVENT_MD_STATS) md->has_stats = true;
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XEventMetadata", w.p);
    md->type = xpl_event_type_find(md->name);
    return XPL_OK;
}

static xpl_status_t read_stat_md(struct open_ctx *c, xpl_bytes_t entry, struct xpl_stat_md *md) {
    xpl_bytes_t value;
    *md = (struct xpl_stat_md){0};
    XPL_TRY(read_entry(c, entry, &md->id, &value));
    struct xpl_wire w = xpl_wire_begin(value);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == XSTAT_MD_NAME && f.type == XPL_WIRE_LEN) md->name = xpl_wire_str(&f);
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XStatMetadata", w.p);
    md->type = xpl_stat_type_find(md->name);
    return XPL_OK;
}

// ---- ids ----

_Static_assert(offsetof(struct xpl_event_md, id) == 0 && offsetof(struct xpl_stat_md, id) == 0,
               "ids are read as the first member");

static xpl_status_t index_event_ids(struct open_ctx *c, struct xpl_plane *p, bool *strong) {
    struct xpl_id_list list = {(uint8_t *)&p->event_md[1], sizeof *p->event_md, p->n_event_md - 1};
    struct xpl_id_table *const t = list.n ? xpl_id_table_new(c->arena, &list) : c->no_ids;
    if (!t) return no_memory(c);
    if (list.n) xpl_id_table_fill(t, &list, strong);
    p->n_event_md = list.n + 1;
    p->event_ids = t;
    return XPL_OK;
}

static xpl_status_t index_stat_ids(struct open_ctx *c, struct xpl_plane *p) {
    struct xpl_id_list list = {(uint8_t *)&p->stat_md[1], sizeof *p->stat_md, p->n_stat_md - 1};
    struct xpl_id_table *const t = list.n ? xpl_id_table_new(c->arena, &list) : c->no_ids;
    if (!t) return no_memory(c);
    if (list.n) xpl_id_table_fill(t, &list, NULL);
    p->n_stat_md = list.n + 1;
    p->stat_ids = t;
    return XPL_OK;
}

// ---- HLO ids of "/host:metadata" (XProf: utils/xplane_hlo_fixer.cc) ----

// The number of a name "...(123)".
static bool trailing_number(xpl_str_t name, int64_t *ret) {
    if (name.len < 3 || name.ptr[name.len - 1] != ')') return false;
    size_t i = name.len - 1;
    uint64_t v = 0, scale = 1;
    bool overflow = false;
    for (; i > 0 && name.ptr[i - 1] >= '0' && name.ptr[i - 1] <= '9'; i--) {
        const uint64_t digit = (uint64_t)(name.ptr[i - 1] - '0');
        uint64_t add = 0;
        overflow |= digit && (!scale || __builtin_mul_overflow(digit, scale, &add));
        overflow |= __builtin_add_overflow(v, add, &v);
        if (scale && __builtin_mul_overflow(scale, 10, &scale)) scale = 0;
    }
    if (overflow || i == name.len - 1 || i == 0 || name.ptr[i - 1] != '(') return false;
    if (memchr(name.ptr, '\n', name.len)) return false; // the pattern's dot
    *ret = (int64_t)v;
    return true;
}

// Programs are found by the id of their metadata; some writers number them otherwise and give the
// program's id in the name only.  Corrected entries win over others of the same id.
static xpl_status_t fix_hlo_ids(struct open_ctx *c, struct xpl_plane *p) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (xpl_str_eq(p->stat_md[i].name, XPL_STR("HLO Proto"))) {
            p->stat_md[i].name = xpl_stat_type_name(XPL_STAT_HLO_PROTO);
            p->stat_md[i].type = XPL_STAT_HLO_PROTO;
        }
    bool *strong = NULL;
    for (uint32_t i = 1; i < p->n_event_md; i++) {
        struct xpl_event_md *const md = &p->event_md[i];
        struct xpl_stat s;
        int64_t id;
        if (!md->has_stats || !trailing_number(md->name, &id) || id == md->id ||
            !xpl_stats_get(xpl_event_md_stats(p, md), XPL_STAT_HLO_PROTO, &s))
            continue;
        if (!strong) {
            strong = xpl_arena_zalloc(c->arena, p->n_event_md * sizeof *strong);
            if (!strong) return no_memory(c);
        }
        md->id = id;
        strong[i] = true;
    }
    return strong ? index_event_ids(c, p, strong) : XPL_OK;
}

// ---- planes ----

// First pass over a plane: its own fields, and how many of everything there is.
static xpl_status_t count_plane(struct open_ctx *c, xpl_bytes_t message, struct xpl_plane *p) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    const uint8_t *at = w.p;
    for (; (r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD; at = w.p) {
        if (f.num == XPLANE_ID && f.type == XPL_WIRE_VARINT) p->id = (int64_t)f.u;
        if (f.type != XPL_WIRE_LEN) continue;
        switch (f.num) {
            case XPLANE_NAME: p->name = xpl_wire_str(&f); break;
            case XPLANE_LINES: p->n_lines++; break;
            case XPLANE_EVENT_MD: p->n_event_md++; break;
            case XPLANE_STAT_MD: p->n_stat_md++; break;
            case XPLANE_STATS:
                if (!p->stats.p) p->stats.p = at;
                break;
            default: break;
        }
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XPlane", w.p);
    p->stats.plane = p;
    p->stats.end = w.end;
    p->stats.field = XPLANE_STATS;
    if (!p->stats.p) p->stats.p = w.end;
    xpl_plane_set_kind(p);
    return XPL_OK;
}

static xpl_status_t alloc_plane(struct open_ctx *c, struct xpl_plane *p) {
    p->event_md = p->n_event_md
                      ? xpl_arena_array(c->arena, (size_t)p->n_event_md + 1, sizeof *p->event_md)
                      : c->no_event_md;
    p->stat_md = p->n_stat_md
                     ? xpl_arena_array(c->arena, (size_t)p->n_stat_md + 1, sizeof *p->stat_md)
                     : c->no_stat_md;
    p->lines = p->n_lines ? xpl_arena_array(c->arena, p->n_lines, sizeof *p->lines) : NULL;
    if (!p->event_md || !p->stat_md || (p->n_lines && !p->lines)) return no_memory(c);
    if (p->n_event_md) p->event_md[0] = *c->no_event_md;
    if (p->n_stat_md) p->stat_md[0] = *c->no_stat_md;
    p->n_event_md = p->n_stat_md = 1;
    p->n_lines = 0;
    return XPL_OK;
}

static xpl_status_t list_line(struct open_ctx *c, struct xpl_plane *p, xpl_bytes_t message) {
    struct xpl_line *const line = &p->lines[p->n_lines], **slot;
    *line = (struct xpl_line){.message = message, .index = p->n_lines++, .plane = p};
    slot = xpl_vec_push(&c->temp, &c->lines);
    if (!slot) return no_memory(c);
    *slot = line;
    return XPL_OK;
}

// Second pass: lines and metadata, in whatever order they come.  The counts of the first pass are
// limits, because the bytes may have changed since.
static xpl_status_t fill_plane(struct open_ctx *c, xpl_bytes_t message, struct xpl_plane *p) {
    const uint32_t max_lines = p->n_lines, max_events = p->n_event_md, max_stats = p->n_stat_md;
    XPL_TRY(alloc_plane(c, p));
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == XPLANE_LINES && p->n_lines < max_lines)
            XPL_TRY(list_line(c, p, f.len));
        else if (f.num == XPLANE_EVENT_MD && p->n_event_md <= max_events)
            XPL_TRY(read_event_md(c, f.len, &p->event_md[p->n_event_md++]));
        else if (f.num == XPLANE_STAT_MD && p->n_stat_md <= max_stats)
            XPL_TRY(read_stat_md(c, f.len, &p->stat_md[p->n_stat_md++]));
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XPlane", w.p);
    XPL_TRY(index_stat_ids(c, p));
    XPL_TRY(index_event_ids(c, p, NULL));
    return p->kind == XPL_PLANE_METADATA ? fix_hlo_ids(c, p) : XPL_OK;
}

// ---- the space ----

static xpl_status_t count_space(struct open_ctx *c) {
    struct xpl_xspace *const xs = c->xs;
    struct xpl_wire w = xpl_wire_begin(xs->bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        switch (f.num) {
            case XSPACE_PLANES: xs->n_planes++; break;
            case XSPACE_ERRORS: xs->n_errors++; break;
            case XSPACE_WARNINGS: xs->n_warnings++; break;
            case XSPACE_HOSTNAMES: xs->n_hostnames++; break;
            default: break;
        }
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XSpace", w.p);
    xs->planes = xpl_arena_array(c->arena, xs->n_planes, sizeof *xs->planes);
    xs->errors = xpl_arena_array(c->arena, xs->n_errors, sizeof *xs->errors);
    xs->warnings = xpl_arena_array(c->arena, xs->n_warnings, sizeof *xs->warnings);
    xs->hostnames = xpl_arena_array(c->arena, xs->n_hostnames, sizeof *xs->hostnames);
    if (!xs->planes || !xs->errors || !xs->warnings || !xs->hostnames) return no_memory(c);
    return XPL_OK;
}

static xpl_status_t read_plane(struct open_ctx *c, xpl_bytes_t message) {
    struct xpl_xspace *const xs = c->xs;
    struct xpl_plane *const p = &xs->planes[xs->n_planes];
    *p = (struct xpl_plane){.index = xs->n_planes++, .space = xs};
    XPL_TRY(count_plane(c, message, p));
    return fill_plane(c, message, p);
}

static xpl_status_t fill_space(struct open_ctx *c) {
    struct xpl_xspace *const xs = c->xs;
    const struct xpl_xspace max = *xs;
    xs->n_planes = xs->n_errors = xs->n_warnings = xs->n_hostnames = 0;
    struct xpl_wire w = xpl_wire_begin(xs->bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == XSPACE_PLANES && xs->n_planes < max.n_planes)
            XPL_TRY(read_plane(c, f.len));
        else if (f.num == XSPACE_ERRORS && xs->n_errors < max.n_errors)
            xs->errors[xs->n_errors++] = xpl_wire_str(&f);
        else if (f.num == XSPACE_WARNINGS && xs->n_warnings < max.n_warnings)
            xs->warnings[xs->n_warnings++] = xpl_wire_str(&f);
        else if (f.num == XSPACE_HOSTNAMES && xs->n_hostnames < max.n_hostnames)
            xs->hostnames[xs->n_hostnames++] = xpl_wire_str(&f);
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XSpace", w.p);
    return XPL_OK;
}

// An error in lines takes precedence over errors after them, though lines are indexed last.
static xpl_status_t read_space(struct open_ctx *c) {
    struct xpl_error *const err = c->err, later = {0};
    c->err = &later;
    const xpl_status_t st = fill_space(c);
    c->err = err;
    const uint8_t *bad;
    XPL_TRY(xpl_line_index_make(c->lines.v, c->lines.n, c->arena, c->exec, &bad, err));
    if (bad) return broken(c, "XLine", bad);
    if (st != XPL_OK && err && err->code == XPL_OK) *err = later;
    return st;
}

// ---- absolute times ----

// 0: it is not a date.
static int64_t said_start(const struct xpl_xspace *xs) {
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_TASK_ENV));
    struct xpl_stats it = p ? p->stats : (struct xpl_stats){0};
    struct xpl_stat s;
    while (p && xpl_stats_next(&it, &s) == XPL_WIRE_FIELD)
        if (xpl_str_eq(s.md->name, XPL_STR("profile_start_time")) &&
            (s.kind == XPL_VALUE_UINT || s.kind == XPL_VALUE_INT))
            return xpl_ns_is_date(s.i) ? s.i : 0;
    return 0;
}

// Profilers of XLA write times that count from the profile's start; importers write absolute
// ones.
static void count_from_start(struct xpl_xspace *xs) {
    const int64_t start = said_start(xs);
    bool absolute = start != 0, any = false;
    xs->start_ns = start;
    for (uint32_t i = 0; absolute && i < xs->n_planes; i++)
        for (uint32_t k = 0; k < xs->planes[i].n_lines; k++) {
            const struct xpl_line *const l = &xs->planes[i].lines[k];
            absolute &= !l->n_events || l->timestamp_ns >= start;
            any |= l->n_events != 0;
        }
    if (!absolute || !any) return;
    xs->was_absolute = true;
    for (uint32_t i = 0; i < xs->n_planes; i++)
        for (uint32_t k = 0; k < xs->planes[i].n_lines; k++) {
            struct xpl_line *const l = &xs->planes[i].lines[k];
            l->timestamp_ns = l->timestamp_ns >= start ? l->timestamp_ns - start : 0;
        }
}

xpl_status_t xpl_xspace_open(xpl_bytes_t bytes, struct xpl_arena *arena, struct xpl_exec *exec,
                             struct xpl_xspace **ret, struct xpl_error *err) {
    struct open_ctx c = {
        .xs = xpl_arena_zalloc(arena, sizeof *c.xs),
        .arena = arena,
        .exec = exec,
        .err = err,
        .no_ids = xpl_arena_zalloc(arena, sizeof *c.no_ids),
        .no_event_md = xpl_arena_zalloc(arena, sizeof *c.no_event_md),
        .no_stat_md = xpl_arena_zalloc(arena, sizeof *c.no_stat_md),
    };
    if (!c.xs || !c.no_ids || !c.no_event_md || !c.no_stat_md) return no_memory(&c);
    static const uint8_t nothing;
    c.xs->bytes = bytes.len ? bytes : (xpl_bytes_t){&nothing, 0};
    xpl_arena_init(&c.temp, arena->limit);
    xpl_status_t st = count_space(&c);
    if (st == XPL_OK) st = read_space(&c);
    xpl_arena_fini(&c.temp);
    if (st != XPL_OK) return st;
    count_from_start(c.xs);
    *ret = c.xs;
    return XPL_OK;
}

const struct xpl_plane *xpl_xspace_plane(const struct xpl_xspace *xs, xpl_str_t name) {
    for (uint32_t i = 0; i < xs->n_planes; i++)
        if (xpl_str_eq(xs->planes[i].name, name)) return &xs->planes[i];
    return NULL;
}
