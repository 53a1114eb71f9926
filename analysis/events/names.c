// SPDX-License-Identifier: Apache-2.0
// Which planes are meant, and what ejKernel calls an event.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/events/events.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text/utf8.h"
#include "base/vec.h"

enum { LONGEST_TEXT = 4096 }; // bytes: each event has the name made

// The beginning of a text, with small (ASCII) letters.
static xpl_str_t lower(xpl_str_t s, char to[LONGEST_TEXT]) {
    s = xpl_str_sub(s, 0, LONGEST_TEXT);
    for (size_t i = 0; i < s.len; i++)
        to[i] = (char)(s.ptr[i] >= 'A' && s.ptr[i] <= 'Z' ? s.ptr[i] + ('a' - 'A') : s.ptr[i]);
    return (xpl_str_t){to, s.len};
}

// Whether `part` is in the beginning of `text`, in any case of letters.
static bool timings_has_text(xpl_str_t text, xpl_str_t part) {
    char in[LONGEST_TEXT], what[LONGEST_TEXT];
    return part.len <= LONGEST_TEXT && xpl_str_has(lower(text, in), lower(part, what));
}

static int by_text(const void *a, const void *b) {
    return xpl_str_cmp(*(const xpl_str_t *)a, *(const xpl_str_t *)b);
}

// The names of all planes, sorted, each once.
static xpl_status_t list_names(const struct xpl_xspace *const *spaces, size_t n,
                               struct xpl_arena *arena, xpl_str_t **ret, size_t *ret_n,
                               struct xpl_error *err) {
    XPL_VEC(xpl_str_t) list = {0};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < spaces[i]->n_planes; p++) {
            xpl_str_t *const slot = xpl_vec_push(arena, &list);
            if (!slot) XPL_RETURN_OOM(err, "planes");
            *slot = spaces[i]->planes[p].name;
        }
    xpl_sort(list.v, list.n, sizeof *list.v, by_text);
    for (size_t i = 0; i < list.n; i++)
        if (!kept || !xpl_str_eq(list.v[kept - 1], list.v[i])) list.v[kept++] = list.v[i];
    *ret = list.v, *ret_n = kept;
    return XPL_OK;
}

static xpl_status_t no_plane(const struct xpl_xspace *const *spaces, size_t n, xpl_str_t plane,
                             struct xpl_arena *arena, struct xpl_error *err) {
    enum { MOST = 80, SHOWN = 40 }; // bytes of the list, and of a name
    char text[MOST + SHOWN + 32] = "none";
    xpl_str_t *names = NULL;
    size_t n_names = 0, len = 0, i = 0;
    XPL_TRY(list_names(spaces, n, arena, &names, &n_names, err));
    for (; i < n_names && len < MOST; i++) {
        const xpl_str_t name = xpl_str_sub(names[i], 0, SHOWN);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", i ? ", " : "",
                                XPL_STR_FMT(name));
    }
    if (i < n_names)
        (void)snprintf(text + len, sizeof text - len, " and %zu %s", n_names - i,
                       n_names - i == 1 ? "other" : "others");
    plane = xpl_str_sub(plane, 0, SHOWN);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no plane has \"%.*s\" in its name; there are: %s",
                     XPL_STR_FMT(plane), text);
}

xpl_status_t xpl_timings_planes(const struct xpl_xspace *const *spaces, size_t n, xpl_str_t plane,
                                struct xpl_arena *arena, const struct xpl_plane ***ret,
                                size_t *ret_n, struct xpl_error *err) {
    XPL_VEC(const struct xpl_plane *) list = {0};
    for (size_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < spaces[i]->n_planes; p++) {
            const struct xpl_plane *const at = &spaces[i]->planes[p];
            if (!timings_has_text(at->name, plane)) continue;
            const struct xpl_plane **const slot = xpl_vec_push(arena, &list);
            if (!slot) XPL_RETURN_OOM(err, "planes");
            *slot = at;
        }
    if (!list.n && plane.len) return no_plane(spaces, n, plane, arena, err);
    *ret = list.v, *ret_n = list.n;
    return XPL_OK;
}

// ---- names ----

// ejKernel takes 0 and empty texts for missing values.
static bool has_value(const struct xpl_stat *s) {
    switch (s->kind) {
        case XPL_VALUE_DOUBLE: return s->d != 0;
        case XPL_VALUE_UINT:
        case XPL_VALUE_REF: return s->u != 0;
        case XPL_VALUE_INT: return s->i != 0;
        case XPL_VALUE_STR:
        case XPL_VALUE_BYTES: return s->str.len > 0;
        case XPL_VALUE_NONE: break;
    }
    return false;
}

static void put_value(struct xpl_buf *out, const struct xpl_stat *s) {
    if (!s->md || !has_value(s))
        xpl_buf_str(out, XPL_STR("None"));
    else if (s->kind == XPL_VALUE_DOUBLE)
        xpl_json_python_number(out, s->d);
    else if (s->kind == XPL_VALUE_UINT)
        xpl_buf_printf(out, "%" PRIu64, s->u);
    else if (s->kind == XPL_VALUE_INT)
        xpl_buf_printf(out, "%" PRId64, s->i);
    else
        xpl_buf_str(out, xpl_utf8_cut(s->str, LONGEST_TEXT));
}

void xpl_timings_name(const struct xpl_line *line, const struct xpl_event *ev,
                      struct xpl_buf *out) {
    struct xpl_stat module = {0}, program = {0}, run = {0}, scope = {0}, s;
    struct xpl_stats all = ev->stats;
    while (xpl_stats_next(&all, &s) == XPL_WIRE_FIELD) {
        if (s.md->type == XPL_STAT_HLO_MODULE) module = s;
        if (s.md->type == XPL_STAT_PROGRAM_ID) program = s;
        if (s.md->type == XPL_STAT_RUN_ID) run = s;
        if (s.md->type == XPL_STAT_SCOPE_RANGE_ID) scope = s;
    }
    if (module.md)
        put_value(out, &module);
    else
        xpl_buf_str(out, xpl_utf8_cut(xpl_event_get_md(line, ev)->name, LONGEST_TEXT));
    xpl_buf_putc(out, '(');
    put_value(out, program.md ? &program : &run);
    xpl_buf_putc(out, '-');
    put_value(out, &scope);
    xpl_buf_putc(out, ')');
}
