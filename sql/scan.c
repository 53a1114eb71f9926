// SPDX-License-Identifier: Apache-2.0
#include "sql/scan.h"

#include "analysis/opstats/convert.h"

enum { CANCEL_EVERY = 8192 };

static bool is_asked(const struct xpl_sql_scan *s, enum xpl_sql_text which, xpl_str_t text) {
    const xpl_str_t asked = s->filter.texts[which];
    return !asked.ptr || xpl_str_eq(asked, xpl_str_sub(text, 0, XPL_SQL_TEXT_MAX));
}

static xpl_status_t check_cancelled(const struct xpl_sql_scan *s) {
    if (!xpl_exec_cancelled(s->q->exec)) return XPL_OK;
    XPL_RETURN_ERROR(s->err, XPL_CANCELLED, "cancelled");
}

// Reports an error from reading the current profile.
static xpl_status_t profile_failed(const struct xpl_sql_scan *s, const struct xpl_error *why) {
    return xpl_error_of_profile(why, s->q->source.profiles[s->profile].path, s->err);
}

// ---- profiles and planes ----

static void leave_profile(struct xpl_sql_scan *s) {
    xpl_sql_release(s->q, s->opened);
    s->opened = NULL;
    s->plane = NULL;
    s->line = NULL;
    s->instructions = NULL;
    s->instruction = NULL;
    s->memory = NULL;
    s->allocator = NULL;
}

// The next profile from s->profile on that may have rows.
static xpl_status_t enter_profile(struct xpl_sql_scan *s) {
    for (; s->profile < s->q->source.n; s->profile++) {
        const struct xpl_sql_profile *const p = &s->q->source.profiles[s->profile];
        if (!is_asked(s, XPL_SQL_SESSION, p->session) || !is_asked(s, XPL_SQL_HOST, p->host))
            continue;
        if (s->filter.id >= 0 && (uint64_t)s->filter.id >> XPL_SQL_ID_SHIFT != s->profile) continue;
        s->plane_at = 0;
        return xpl_sql_open(s->q, s->profile, &s->opened, s->err);
    }
    s->is_over = true;
    return XPL_OK;
}

// Finds the plane's metadata with the requested name.
static xpl_status_t find_wanted(struct xpl_sql_scan *s) {
    const xpl_str_t name = s->filter.texts[XPL_SQL_NAME];
    s->wanted = NULL;
    if (s->level != XPL_SQL_EVENTS || !name.ptr) return XPL_OK;
    const size_t n = s->plane->plane->n_event_md;
    xpl_arena_fini(&s->arena);
    xpl_arena_init_part(&s->arena, s->budget);
    s->wanted = xpl_arena_alloc(&s->arena, n);
    if (!s->wanted) XPL_RETURN_OOM(s->err, "names of events");
    for (size_t i = 0; i < n; i++)
        s->wanted[i] = is_asked(s, XPL_SQL_NAME, s->plane->names[i]);
    return XPL_OK;
}

static xpl_status_t enter_plane(struct xpl_sql_scan *s) {
    s->plane = NULL;
    for (; s->plane_at < s->opened->space->n_planes; s->plane_at++) {
        if (!is_asked(s, XPL_SQL_PLANE, s->opened->planes[s->plane_at].name)) continue;
        s->plane = &s->opened->planes[s->plane_at];
        s->line_at = 0;
        return find_wanted(s);
    }
    return XPL_OK;
}

// ---- lines ----

// Whether the bytes of the requested event can be in the line.
static bool may_hold(const struct xpl_sql_scan *s, const struct xpl_line *l) {
    const uint64_t at = (uint64_t)(l->message.ptr - s->opened->space->bytes.ptr);
    const uint64_t id = (uint64_t)s->filter.id & ((UINT64_C(1) << XPL_SQL_ID_SHIFT) - 1);
    return s->filter.id < 0 || (id >= at && id - at < l->message.len);
}

static xpl_status_t enter_line(struct xpl_sql_scan *s) {
    s->line = NULL;
    for (; s->line_at < s->plane->plane->n_lines; s->line_at++) {
        struct xpl_sql_line *const l = &s->plane->lines[s->line_at];
        if (!is_asked(s, XPL_SQL_LINE, l->name) || !may_hold(s, l->line)) continue;
        s->line = l;
        s->chunk_at = 0;
        s->marks = NULL;
        xpl_events_begin(&s->cursor, l->line);
        if (s->level < XPL_SQL_EVENTS || s->filter.id >= 0) return XPL_OK;
        s->cursor.stop = s->cursor.index; // the first chunk is entered like all
        struct xpl_error why = {0};
        if (s->filter.has_window && l->line->n_chunks &&
            xpl_sql_marks(s->opened, l, s->q->exec, &s->marks, &why) != XPL_OK)
            return profile_failed(s, &why);
        return XPL_OK;
    }
    return XPL_OK;
}

// Whether the chunk may have events of the window.
static bool is_near(const struct xpl_sql_scan *s, uint32_t chunk) {
    const struct xpl_sql_mark *const m = s->marks ? &s->marks[chunk] : NULL;
    return !m ||
           (m->last >= s->filter.from && m->first <= s->filter.to && m->end >= s->filter.end_from);
}

static bool enter_chunk(struct xpl_sql_scan *s) {
    const uint32_t n = s->line->line->n_chunks ? s->line->line->n_chunks : 1;
    while (s->chunk_at < n) {
        const uint32_t i = s->chunk_at++;
        if (!is_near(s, i)) continue;
        xpl_events_begin_chunk(&s->cursor, s->line->line, i);
        return true;
    }
    return false;
}

// ---- events ----

static void place_event(struct xpl_sql_scan *s) {
    s->begin = (int64_t)((uint64_t)s->line->begin_ps + (uint64_t)s->event.offset_ps);
    s->end = (int64_t)((uint64_t)s->begin + (uint64_t)s->event.duration_ps);
}

static bool is_event_asked(struct xpl_sql_scan *s) {
    place_event(s);
    if (s->wanted && !s->wanted[s->event.md]) return false;
    return !s->filter.has_window ||
           (s->begin >= s->filter.from && s->begin <= s->filter.to && s->end >= s->filter.end_from);
}

// Reads the event with the requested id; *ret_found: it is in this line.
static xpl_status_t take_event(struct xpl_sql_scan *s, bool *ret_found) {
    const uint64_t line = (uint64_t)(s->line->line->message.ptr - s->opened->space->bytes.ptr);
    const uint64_t id = (uint64_t)s->filter.id & ((UINT64_C(1) << XPL_SQL_ID_SHIFT) - 1);
    struct xpl_event_cursor *const c = &s->cursor;
    struct xpl_error why = {0};
    *ret_found = false;
    if (s->chunk_at++) return XPL_OK; // it was taken
    c->stop = c->index;
    const xpl_status_t st = xpl_event_at(s->line->line, id - line, &s->event, &why);
    if (st == XPL_OK) {
        *ret_found = is_event_asked(s);
        return XPL_OK;
    }
    return st == XPL_DATA_LOSS ? XPL_OK : st; // no event begins there
}

static xpl_status_t event_failed(const struct xpl_sql_scan *s) {
    struct xpl_error why = {0};
    (void)xpl_events_error(&s->cursor, &why);
    return profile_failed(s, &why);
}

// The next event of this line that satisfies the constraints.
static xpl_status_t next_event(struct xpl_sql_scan *s, bool *ret_found) {
    if (s->filter.id >= 0) return take_event(s, ret_found);
    *ret_found = false;
    for (;;) {
        const enum xpl_wire_result got = xpl_events_next(&s->cursor, &s->event);
        if (got == XPL_WIRE_FIELD) {
            if (s->event.index % CANCEL_EVERY == 0) XPL_TRY(check_cancelled(s));
            if (!is_event_asked(s)) continue;
            *ret_found = true;
            return XPL_OK;
        }
        if (got == XPL_WIRE_MALFORMED) return event_failed(s);
        if (!enter_chunk(s)) return XPL_OK;
    }
}

// ---- statistics ----

static void enter_stats(struct xpl_sql_scan *s) {
    s->stats = s->event.stats;
    s->of_metadata = false;
}

static bool next_stat(struct xpl_sql_scan *s) {
    for (;;) {
        while (xpl_stats_next(&s->stats, &s->stat) == XPL_WIRE_FIELD)
            if (is_asked(s, XPL_SQL_NAME, s->stat.md->name)) return true;
        if (s->of_metadata) return false;
        s->stats = xpl_event_md_stats(s->plane->plane, xpl_event_get_md(s->line->line, &s->event));
        s->of_metadata = true;
    }
}

// ---- instructions ----

// Whether a profile of the session has accelerators: where none has, ops on host threads count as a
// device's, as in all views.
static xpl_status_t find_devices(struct xpl_sql_scan *s) {
    const struct xpl_sql_source *const src = &s->q->source;
    const xpl_str_t session = src->profiles[s->profile].session;
    size_t first = s->profile;
    while (first && xpl_str_eq(src->profiles[first - 1].session, session))
        first--;
    if (s->inspected == first + 1) return XPL_OK;
    s->has_device = xpl_xspace_has_device(s->opened->space);
    for (size_t i = first; !s->has_device && i < src->n; i++) {
        struct xpl_sql_opened *other;
        if (!xpl_str_eq(src->profiles[i].session, session)) break;
        if (i == s->profile) continue;
        XPL_TRY(check_cancelled(s));
        XPL_TRY(xpl_sql_open(s->q, i, &other, s->err));
        s->has_device = xpl_xspace_has_device(other->space);
        xpl_sql_release(s->q, other);
    }
    s->inspected = first + 1;
    return XPL_OK;
}

static xpl_status_t enter_instructions(struct xpl_sql_scan *s) {
    const xpl_str_t name = s->filter.texts[XPL_SQL_NAME];
    XPL_TRY(find_devices(s));
    struct xpl_error why = {0};
    if (xpl_sql_instructions_of(s->opened, !s->has_device, s->q->exec, s->q->limit,
                                &s->instructions, &why) != XPL_OK)
        return profile_failed(s, &why);
    s->instruction_at = name.ptr ? xpl_sql_instructions_find(s->instructions, name) : 0;
    return XPL_OK;
}

// The next instruction of this profile that satisfies the constraints; *ret_found: there is one.
static xpl_status_t next_instruction(struct xpl_sql_scan *s, bool *ret_found) {
    const struct xpl_sql_instructions *const l = s->instructions;
    const bool by_name = s->filter.texts[XPL_SQL_NAME].ptr != NULL;
    *ret_found = false;
    while (s->instruction_at < l->n) {
        const uint32_t at = s->instruction_at++;
        const struct xpl_sql_instruction *const i = &l->v[by_name ? l->by_name[at] : at];
        if (at % CANCEL_EVERY == 0) XPL_TRY(check_cancelled(s));
        if (by_name && !is_asked(s, XPL_SQL_NAME, i->name)) break;
        if (!is_asked(s, XPL_SQL_MODULE, i->module) || !is_asked(s, XPL_SQL_OPCODE, i->opcode))
            continue;
        s->instruction = i;
        *ret_found = true;
        break;
    }
    return XPL_OK;
}

// ---- memory ----

static xpl_status_t enter_memory(struct xpl_sql_scan *s) {
    struct xpl_error why = {0};
    s->allocator_at = 0;
    if (xpl_sql_memory_of(s->opened, s->q->exec, s->q->limit, &s->memory, &why) != XPL_OK)
        return profile_failed(s, &why);
    return XPL_OK;
}

// The next allocator of this profile that satisfies the constraints; *ret_found: there is one.
static void next_allocator(struct xpl_sql_scan *s, bool *ret_found) {
    *ret_found = false;
    while (!*ret_found && s->allocator_at < s->memory->n) {
        s->allocator = &s->memory->v[s->allocator_at++];
        *ret_found = is_asked(s, XPL_SQL_NAME, s->allocator->name);
    }
}

// ---- all levels ----

// Goes to the next row of the current line.
static xpl_status_t next_in_line(struct xpl_sql_scan *s, bool *ret_found) {
    if (s->level == XPL_SQL_EVENTS) return next_event(s, ret_found);
    for (;;) {
        if (next_stat(s)) {
            *ret_found = true;
            return XPL_OK;
        }
        XPL_TRY(next_event(s, ret_found));
        if (!*ret_found) return XPL_OK;
        enter_stats(s);
    }
}

// Leaves the current line, plane or profile at its end.
static void leave(struct xpl_sql_scan *s) {
    if (s->line) {
        s->line = NULL;
        s->line_at++;
    } else if (s->plane) {
        s->plane = NULL;
        s->plane_at++;
    } else {
        leave_profile(s);
        s->profile++;
    }
}

// Enters the next line, plane or profile, one level deeper; *ret_row: a row of the scan's level.
static xpl_status_t enter_next(struct xpl_sql_scan *s, bool *ret_row) {
    *ret_row = false;
    if (!s->opened) return enter_profile(s);
    if (s->level == XPL_SQL_INSTRUCTIONS) {
        if (!s->instructions) XPL_TRY(enter_instructions(s));
        XPL_TRY(next_instruction(s, ret_row));
        if (!*ret_row) leave(s);
        return XPL_OK;
    }
    if (s->level == XPL_SQL_MEMORY) {
        if (!s->memory) XPL_TRY(enter_memory(s));
        next_allocator(s, ret_row);
        if (!*ret_row) leave(s);
        return XPL_OK;
    }
    if (!s->plane) {
        XPL_TRY(enter_plane(s));
        if (!s->plane) leave(s);
        *ret_row = s->plane && s->level == XPL_SQL_PLANES;
        return XPL_OK;
    }
    XPL_TRY(enter_line(s));
    if (!s->line) leave(s);
    *ret_row = s->line && s->level == XPL_SQL_LINES;
    // No event is current, and so no statistic.
    s->stats = (struct xpl_stats){.plane = s->plane ? s->plane->plane : NULL};
    s->of_metadata = true;
    return XPL_OK;
}

xpl_status_t xpl_sql_scan_next(struct xpl_sql_scan *s) {
    if (s->level == XPL_SQL_PLANES && s->plane) leave(s);
    if (s->level == XPL_SQL_LINES && s->line) leave(s);
    bool found = false;
    while (!found && !s->is_over) {
        if (s->line && (s->level == XPL_SQL_EVENTS || s->level == XPL_SQL_STATS)) {
            XPL_TRY(next_in_line(s, &found));
            if (!found) leave(s);
        } else {
            XPL_TRY(check_cancelled(s));
            XPL_TRY(enter_next(s, &found));
        }
    }
    return XPL_OK;
}

xpl_status_t xpl_sql_scan_begin(struct xpl_sql_scan *s) {
    xpl_arena_init_part(&s->arena, s->budget);
    return xpl_sql_scan_next(s);
}

void xpl_sql_scan_end(struct xpl_sql_scan *s) {
    leave_profile(s);
    xpl_arena_fini(&s->arena);
}

int64_t xpl_sql_event_id(const struct xpl_sql_scan *s) {
    const uint64_t line = (uint64_t)(s->line->line->message.ptr - s->opened->space->bytes.ptr);
    return (int64_t)((uint64_t)s->profile << XPL_SQL_ID_SHIFT | (line + s->event.at));
}
