// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/captured.h"

#include "analysis/xplane/fields.h"
#include "analysis/xplane/schema.h"
#include "base/crc32.h"

enum { MAX_HEADS = 16 << 10 };

struct reader {
    unsigned heads; // of planes, lines and statistics, read so far
    int64_t said_ns, first_ns;
    // Only read for an identity:
    bool identifies;
    int64_t end_ns;
    xpl_str_t program; // of the longest metadata
    size_t program_len;
};

static bool next_field(struct reader *r, struct xpl_wire *w, struct xpl_field *f) {
    return r->heads++ < MAX_HEADS && xpl_wire_next(w, f) == XPL_WIRE_FIELD;
}

static bool is_text(const struct xpl_field *f, const char *text) {
    return f->type == XPL_WIRE_LEN &&
           xpl_str_eq((xpl_str_t){(const char *)f->len.ptr, f->len.len}, xpl_str_from(text));
}

// An entry of the plane's map of statistics' names: whether it is that of `name`, and its id.
static bool is_named(struct reader *r, xpl_bytes_t entry, const char *name, uint64_t *ret_id) {
    struct xpl_wire w = xpl_wire_begin(entry), inner;
    struct xpl_field f, g;
    bool named = false;
    *ret_id = 0;
    while (next_field(r, &w, &f)) {
        if (f.num == 1 && f.type == XPL_WIRE_VARINT) *ret_id = f.u;
        if (f.num != 2 || f.type != XPL_WIRE_LEN) continue;
        inner = xpl_wire_begin(f.len);
        while (next_field(r, &inner, &g))
            named |= g.num == XSTAT_MD_NAME && is_text(&g, name);
    }
    return named;
}

// Sets *ret if the statistic is of that id and a time since 1970.
static void read_stat(struct reader *r, xpl_bytes_t stat, uint64_t id, int64_t *ret) {
    struct xpl_wire w = xpl_wire_begin(stat);
    struct xpl_field f;
    bool wanted = false;
    uint64_t value = 0;
    while (next_field(r, &w, &f)) {
        if (f.type != XPL_WIRE_VARINT) continue;
        if (f.num == XSTAT_MD_ID) wanted = f.u == id;
        if (f.num == XSTAT_UINT || f.num == XSTAT_INT) value = f.u;
    }
    if (wanted && xpl_ns_is_date((int64_t)value)) *ret = (int64_t)value;
}

// The time that the plane's statistic of that name has.
static void read_time(struct reader *r, xpl_bytes_t plane, const char *name, int64_t *ret) {
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f;
    uint64_t id = 0, one;
    bool found = false;
    while (!found && next_field(r, &w, &f))
        if (f.num == XPLANE_STAT_MD && f.type == XPL_WIRE_LEN && is_named(r, f.len, name, &one))
            id = one, found = true;
    w = xpl_wire_begin(plane);
    while (found && next_field(r, &w, &f))
        if (f.num == XPLANE_STATS && f.type == XPL_WIRE_LEN) read_stat(r, f.len, id, ret);
}

// The plane of programs: the longest is what the process is for, and others are the same
// everywhere.
static void read_programs(struct reader *r, xpl_bytes_t plane) {
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f, g, h;
    while (next_field(r, &w, &f)) {
        if (f.num != XPLANE_EVENT_MD || f.type != XPL_WIRE_LEN || f.len.len <= r->program_len)
            continue;
        struct xpl_wire entry = xpl_wire_begin(f.len);
        while (next_field(r, &entry, &g)) {
            if (g.num != 2 || g.type != XPL_WIRE_LEN) continue;
            struct xpl_wire md = xpl_wire_begin(g.len);
            while (next_field(r, &md, &h))
                if (h.num == XEVENT_MD_NAME && h.type == XPL_WIRE_LEN && h.len.len) {
                    r->program = (xpl_str_t){(const char *)h.len.ptr, h.len.len};
                    r->program_len = f.len.len;
                }
        }
    }
}

// A line's time precedes its events.
static void read_line(struct reader *r, xpl_bytes_t line) {
    struct xpl_wire w = xpl_wire_begin(line);
    struct xpl_field f;
    while (next_field(r, &w, &f) && f.num != XLINE_EVENTS)
        if (f.num == XLINE_TIMESTAMP_NS && f.type == XPL_WIRE_VARINT &&
            xpl_ns_is_date((int64_t)f.u) && (!r->first_ns || (int64_t)f.u < r->first_ns))
            r->first_ns = (int64_t)f.u;
}

static void read_plane(struct reader *r, xpl_bytes_t plane) {
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f;
    bool task = false, programs = false;
    // Metadata of events may be long, and follows the lines.
    while (!task && !programs && next_field(r, &w, &f) && f.num != XPLANE_EVENT_MD) {
        task = f.num == XPLANE_NAME && is_text(&f, XPL_PLANE_NAME_TASK_ENV);
        programs = r->identifies && f.num == XPLANE_NAME && is_text(&f, XPL_PLANE_NAME_METADATA);
        if (f.num == XPLANE_LINES && f.type == XPL_WIRE_LEN) read_line(r, f.len);
    }
    if (programs) read_programs(r, plane);
    if (task) read_time(r, plane, "profile_start_time", &r->said_ns);
    if (task && r->identifies) read_time(r, plane, "profile_stop_time", &r->end_ns);
}

int64_t xpl_xspace_captured_ns(xpl_bytes_t xspace) {
    struct reader r = {0};
    struct xpl_wire w = xpl_wire_begin(xspace);
    struct xpl_field f;
    while (!r.said_ns && next_field(&r, &w, &f))
        if (f.num == XSPACE_PLANES && f.type == XPL_WIRE_LEN) read_plane(&r, f.len);
    return r.said_ns ? r.said_ns : r.first_ns;
}

bool xpl_xspace_identify(xpl_bytes_t xspace, struct xpl_profile_identity *ret) {
    struct reader r = {.identifies = true};
    struct xpl_wire w = xpl_wire_begin(xspace);
    struct xpl_field f;
    while (next_field(&r, &w, &f))
        if (f.num == XSPACE_PLANES && f.type == XPL_WIRE_LEN) read_plane(&r, f.len);
    // "NAME(ID)": ids of equal programs differ between processes.
    const size_t id = xpl_str_find(r.program, XPL_STR("("), 0);
    const xpl_str_t name = xpl_str_sub(r.program, 0, id);
    *ret = (struct xpl_profile_identity){.rank = -1,
                                         .world_size = -1,
                                         .begin_ns = r.said_ns ? r.said_ns : r.first_ns,
                                         .written_ns = r.end_ns};
    if (name.len)
        ret->program =
            UINT64_C(1) << 32 | xpl_crc32(0, (xpl_bytes_t){(const uint8_t *)name.ptr, name.len});
    return ret->begin_ns != 0;
}
