// SPDX-License-Identifier: Apache-2.0
// Names of events and stats of their metadata: strings, argument lists, stack frames, and the
// tables by which arguments of a single event are read from the profile later.
#include <string.h>

#include "analysis/trace/index/impl.h"
#include "base/vec.h"

enum { LONG_NAME_MAX = 10000, LONG_ARG = 16 };

// Of a text that stays: many events and arguments may refer to one of the profile.
static bool intern(struct builder *b, xpl_str_t s, uint32_t *ret) {
    xpl_strid_t id;
    if (!xpl_intern_put_view(b->strings, s, &id)) return false;
    if (id.v > b->n_strings) b->n_strings = id.v;
    *ret = id.v;
    return true;
}

static bool add_frame(struct builder *b, uint32_t string) {
    bool added;
    uint64_t *const number = xpl_map_put(b->arena, &b->frame_of, string, 0, &added);
    if (!number || !added) return number != NULL;
    uint32_t *const slot = xpl_vec_push(b->arena, &b->frames);
    if (!slot) return false;
    *slot = string;
    *number = b->frames.n;
    return true;
}

static bool is_frame_name(xpl_str_t name) {
    return xpl_str_eq(name, XPL_STR("long_name")) || xpl_str_eq(name, XPL_STR("hlo_text"));
}

static bool put_arg(struct builder *b, xpl_str_t name, uint32_t kind, uint64_t value,
                    xpl_str_t text) {
    struct trc_arg *const a = xpl_vec_push(b->arena, &b->args);
    if (!a) return false;
    *a = (struct trc_arg){.kind = kind, .value = value};
    if (!intern(b, name, &a->name)) return false;
    if (kind != TRC_ARG_STR) return true;
    uint32_t string;
    if (!intern(b, text, &string)) return false;
    a->value = string;
    return !(text.len > LONG_ARG && is_frame_name(name)) || add_frame(b, string);
}

bool trc_stat_is_arg(enum xpl_stat_type type) {
    switch ((int)type) {
        case XPL_STAT_PRODUCER_TYPE:
        case XPL_STAT_PRODUCER_ID:
        case XPL_STAT_CONSUMER_TYPE:
        case XPL_STAT_CONSUMER_ID:
        case XPL_STAT_IS_ROOT:
        case XPL_STAT_FLOPS:
        case XPL_STAT_PROGRAM_ID:
        case XPL_STAT_SYMBOL_ID:
        case XPL_STAT_FLOW:
        case XPL_STAT_GROUP_ID:
        case XPL_STAT_IS_ASYNC: return false;
        default: return true;
    }
}

bool trc_put_stat(struct builder *b, const struct xpl_stat *s) {
    if (!trc_stat_is_arg(s->md->type)) return true;
    switch (s->kind) {
        case XPL_VALUE_INT: return put_arg(b, s->md->name, TRC_ARG_INT, s->u, (xpl_str_t){0});
        case XPL_VALUE_UINT: return put_arg(b, s->md->name, TRC_ARG_UINT, s->u, (xpl_str_t){0});
        case XPL_VALUE_DOUBLE: return put_arg(b, s->md->name, TRC_ARG_DOUBLE, s->u, (xpl_str_t){0});
        case XPL_VALUE_STR:
        case XPL_VALUE_REF: return put_arg(b, s->md->name, TRC_ARG_STR, 0, s->str);
        case XPL_VALUE_NONE:
        case XPL_VALUE_BYTES: break;
    }
    return true;
}

// The name behind the display name is an argument.
bool trc_put_long_name(struct builder *b, xpl_str_t name) {
    xpl_str_t text = name;
    if (name.len > LONG_NAME_MAX &&
        !xpl_arena_printf(b->arena, &text, "%.*s...<truncated>", LONG_NAME_MAX, name.ptr))
        return false;
    return put_arg(b, XPL_STR("long_name"), TRC_ARG_STR, 0, text);
}

// Ends the list that began at `first`; 0 for an empty one, else its position + 1.
uint32_t trc_end_args(struct builder *b, size_t first) {
    if (b->args.n == first) return 0;
    b->args.v[b->args.n - 1].kind |= TRC_ARG_LAST;
    return (uint32_t)first + 1;
}

static bool put_event_md(struct builder *b, const struct plane_src *ps, uint32_t i) {
    const struct xpl_derived_md md = trc_md(ps, i);
    const uint32_t slot = ps->slot_base + i;
    const size_t first = b->args.n;
    if (md.display_name.len && !trc_put_long_name(b, md.name)) return false;
    if (md.recorded && md.recorded->has_stats) {
        struct xpl_stats s = xpl_event_md_stats(ps->plane, md.recorded);
        struct xpl_stat stat;
        while (xpl_stats_next(&s, &stat) == XPL_WIRE_FIELD)
            if (!trc_put_stat(b, &stat)) return false;
    }
    b->slot_args[slot] = trc_end_args(b, first);
    if (!intern(b, md.display_name.len ? md.display_name : md.name, &b->slot_string[slot]))
        return false;
    if (!md.recorded) return true;
    struct trc_event_md *const row = xpl_vec_push(b->arena, &b->event_mds);
    if (!row) return false;
    const bool masks = md.type == XPL_EVENT_DO_ENQUEUE_PROGRAM ||
                       md.type == XPL_EVENT_COMPLETE_CALLBACKS ||
                       md.type == XPL_EVENT_DO_ENQUEUE_CONTINUATION_PROGRAM;
    *row = (struct trc_event_md){.id = (uint64_t)md.recorded->id,
                                 .args = b->slot_args[slot],
                                 .flags = masks && !b->arrived ? TRC_EVENT_MASK_RUN_ID : 0};
    return true;
}

static int by_event_id(const void *pa, const void *pb) {
    const struct trc_event_md *const a = pa, *const b = pb;
    return (a->id > b->id) - (a->id < b->id);
}

static int by_stat_id(const void *pa, const void *pb) {
    const struct trc_stat_md *const a = pa, *const b = pb;
    return (a->id > b->id) - (a->id < b->id);
}

static uint32_t stat_flags(enum xpl_stat_type t) {
    return (trc_stat_is_arg(t) ? 0 : TRC_STAT_DROP) |
           (t == XPL_STAT_STEP_NAME ? TRC_STAT_STEP_NAME : 0) |
           (t == XPL_STAT_IS_EAGER ? TRC_STAT_EAGER : 0) |
           (t == XPL_STAT_RUN_ID ? TRC_STAT_RUN_ID : 0);
}

static bool put_plane(struct builder *b, const struct plane_src *ps) {
    const struct xpl_plane *const p = ps->plane;
    struct trc_plane row = {.first_stat = b->stat_mds.n, .first_event = b->event_mds.n};
    for (uint32_t i = 1; i < p->n_stat_md; i++) {
        struct trc_stat_md *const s = xpl_vec_push(b->arena, &b->stat_mds);
        if (!s) return false;
        *s = (struct trc_stat_md){.id = (uint64_t)p->stat_md[i].id,
                                  .flags = stat_flags(p->stat_md[i].type)};
        if (!intern(b, p->stat_md[i].name, &s->name)) return false;
    }
    for (uint32_t i = 0; i < ps->n_md; i++)
        if (ps->used[i] && !put_event_md(b, ps, i)) return false;
    row.n_stats = b->stat_mds.n - row.first_stat;
    row.n_events = b->event_mds.n - row.first_event;
    if (row.n_stats)
        xpl_sort(b->stat_mds.v + row.first_stat, row.n_stats, sizeof *b->stat_mds.v, by_stat_id);
    if (row.n_events)
        xpl_sort(b->event_mds.v + row.first_event, row.n_events, sizeof *b->event_mds.v,
                 by_event_id);
    struct trc_plane *const slot = xpl_vec_push(b->arena, &b->plane_rows);
    if (!slot) return false;
    *slot = row;
    return true;
}

// ---- names in order ----

struct named {
    xpl_str_t name;
    uint32_t string;
};

static int by_text(const void *pa, const void *pb) {
    const struct named *const a = pa, *const b = pb;
    return xpl_str_cmp(a->name, b->name);
}

static bool sort_names(struct builder *b) {
    const size_t slots = b->n_md_slots + b->more_slots.n;
    uint8_t *const seen = xpl_arena_zalloc(b->arena, (size_t)b->n_strings + 1);
    struct named *const list = xpl_arena_array(b->arena, (size_t)b->n_strings + 1, sizeof *list);
    b->rank_of = xpl_arena_array(b->arena, (size_t)b->n_strings + 1, sizeof *b->rank_of);
    if (!seen || !list || !b->rank_of) return false;
    memset(b->rank_of, 0xff, ((size_t)b->n_strings + 1) * sizeof *b->rank_of);
    size_t n = 0;
    for (size_t i = 0; i < slots; i++) {
        const uint32_t s = b->slot_string[i];
        if (s == 0 || seen[s]) continue;
        seen[s] = 1;
        list[n++] = (struct named){xpl_intern_get(b->strings, (xpl_strid_t){s}), s};
    }
    xpl_sort(list, n, sizeof *list, by_text);
    if (!xpl_vec_reserve(b->arena, &b->sorted_names, n)) return false;
    for (size_t i = 0; i < n; i++) {
        b->rank_of[list[i].string] = (uint32_t)i;
        b->sorted_names.v[b->sorted_names.n++] = list[i].string;
    }
    return true;
}

static bool name_slots(struct builder *b) {
    const size_t slots = b->n_md_slots + b->more_slots.n;
    b->slot_string = xpl_arena_zalloc(b->arena, slots * sizeof *b->slot_string);
    b->slot_args = xpl_arena_zalloc(b->arena, slots * sizeof *b->slot_args);
    if (!b->slot_string || !b->slot_args) return false;
    for (size_t i = 0; i < b->planes.n; i++)
        if (!put_plane(b, &b->planes.v[i])) return false;
    for (size_t i = 0; i < b->more_slots.n; i++)
        if (!intern(b, b->more_slots.v[i], &b->slot_string[b->n_md_slots + i])) return false;
    for (size_t i = 0; i < b->n_pieces; i++)
        for (size_t k = 0; k < b->pieces[i].frames.n; k++) {
            uint32_t id;
            if (!intern(b, b->pieces[i].frames.v[k], &id) || !add_frame(b, id)) return false;
        }
    for (size_t i = 0; i < b->devices.n; i++)
        if (b->devices.v[i].name > b->n_strings) b->n_strings = b->devices.v[i].name;
    for (size_t i = 0; i < b->resources.n; i++)
        if (b->resources.v[i].name > b->n_strings) b->n_strings = b->resources.v[i].name;
    return sort_names(b);
}

xpl_status_t trc_name_slots(struct builder *b, struct xpl_error *err) {
    if (!name_slots(b)) XPL_RETURN_OOM(err, "trace names");
    if (b->args.n > UINT32_MAX - 1)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "trace: too many arguments");
    return XPL_OK;
}
