// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/captured.h"

#include "analysis/xplane/fields.h"
#include "analysis/xplane/schema.h"

enum { MAX_HEADS = 16 << 10 };

struct reader {
    unsigned heads; // of planes, lines and statistics, read so far
    int64_t said_ns, first_ns;
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

static void read_stat(struct reader *r, xpl_bytes_t stat, uint64_t id) {
    struct xpl_wire w = xpl_wire_begin(stat);
    struct xpl_field f;
    bool wanted = false;
    uint64_t value = 0;
    while (next_field(r, &w, &f)) {
        if (f.type != XPL_WIRE_VARINT) continue;
        if (f.num == XSTAT_MD_ID) wanted = f.u == id;
        if (f.num == XSTAT_UINT || f.num == XSTAT_INT) value = f.u;
    }
    if (wanted && xpl_ns_is_date((int64_t)value)) r->said_ns = (int64_t)value;
}

static void read_task_environment(struct reader *r, xpl_bytes_t plane) {
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f;
    uint64_t id = 0, one;
    bool found = false;
    while (!found && next_field(r, &w, &f))
        if (f.num == XPLANE_STAT_MD && f.type == XPL_WIRE_LEN &&
            is_named(r, f.len, "profile_start_time", &one))
            id = one, found = true;
    w = xpl_wire_begin(plane);
    while (found && next_field(r, &w, &f))
        if (f.num == XPLANE_STATS && f.type == XPL_WIRE_LEN) read_stat(r, f.len, id);
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
    bool task = false;
    // Metadata of events may be long, and follows the lines.
    while (!task && next_field(r, &w, &f) && f.num != XPLANE_EVENT_MD) {
        task = f.num == XPLANE_NAME && is_text(&f, XPL_PLANE_NAME_TASK_ENV);
        if (f.num == XPLANE_LINES && f.type == XPL_WIRE_LEN) read_line(r, f.len);
    }
    if (task) read_task_environment(r, plane);
}

int64_t xpl_xspace_captured_ns(xpl_bytes_t xspace) {
    struct reader r = {0};
    struct xpl_wire w = xpl_wire_begin(xspace);
    struct xpl_field f;
    while (!r.said_ns && next_field(&r, &w, &f))
        if (f.num == XSPACE_PLANES && f.type == XPL_WIRE_LEN) read_plane(&r, f.len);
    return r.said_ns ? r.said_ns : r.first_ns;
}
