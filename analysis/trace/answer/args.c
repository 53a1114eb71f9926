// SPDX-License-Identifier: Apache-2.0
// Arguments of one event: those of its metadata, from the index; its own, from the profile, at the
// position that the index has.
#include <stdlib.h>

#include "analysis/trace/answer/args.h"
#include "base/arena.h"
#include "base/std_sort.h"

enum { XLINE_EVENTS = 4, XEVENT_MD_ID = 1, XEVENT_STATS = 4 }; // tsl xplane.proto
enum { RUN_ID_MASK = (1 << 27) - 1, LONG_ARG = 16 };
enum { FEW_SCANS = 16 };

struct reader {
    const struct xpl_trace *t;
    const struct trc_plane *plane;
    const struct trc_event *e;
    struct trc_value *v;
    size_t n;
    struct trc_frames *frames;
    bool oom;
    bool mask_run_id;
};

static struct trc_value *add_value(struct reader *r) {
    return r->n < TRC_MAX_ARGS ? &r->v[r->n++] : NULL;
}

static bool is_frame(xpl_str_t name, xpl_str_t text) {
    return text.len > LONG_ARG &&
           (xpl_str_eq(name, XPL_STR("long_name")) || xpl_str_eq(name, XPL_STR("hlo_text")));
}

static uint32_t frame_of(const struct xpl_trace *t, uint64_t string) {
    return string < t->n[TRC_STRINGS] ? t->strings[string].frame : 0;
}

static void add_list(struct reader *r, uint64_t list) {
    if (list == 0 || list > r->t->n[TRC_ARGS]) return;
    for (const struct trc_arg *a = &r->t->args[list - 1];; a++) {
        struct trc_value *const v = add_value(r);
        if (!v) return;
        *v = (struct trc_value){
            .name = trc_str(r->t, a->name), .kind = a->kind & ~TRC_ARG_LAST, .bits = a->value};
        if (v->kind == TRC_ARG_STR) {
            v->text = trc_str(r->t, a->value);
            if (is_frame(v->name, v->text)) v->frame = frame_of(r->t, a->value);
        }
        if (a->kind & TRC_ARG_LAST) return;
    }
}

// ---- metadata by id ----

static int by_event(const void *pa, const void *pb) {
    const uint64_t a = *(const uint64_t *)pa, b = ((const struct trc_event_md *)pb)->id;
    return (a > b) - (a < b);
}

static int by_stat(const void *pa, const void *pb) {
    const uint64_t a = *(const uint64_t *)pa, b = ((const struct trc_stat_md *)pb)->id;
    return (a > b) - (a < b);
}

static const struct trc_stat_md *stat_md(const struct reader *r, uint64_t id) {
    return bsearch(&id, r->t->stat_mds + r->plane->first_stat, (size_t)r->plane->n_stats,
                   sizeof(struct trc_stat_md), by_stat);
}

// ---- statistics ----

// Any order of texts will do; the shorter first is the quickest.
static int compare_frames(xpl_str_t a, xpl_str_t b) {
    return a.len != b.len ? (a.len > b.len) - (a.len < b.len) : xpl_str_cmp(a, b);
}

static bool frame_before(const void *ctx, const void *pa, const void *pb) {
    const struct xpl_trace *const t = ctx;
    const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    const int c = compare_frames(trc_str(t, t->frames[a]), trc_str(t, t->frames[b]));
    return c ? c < 0 : a < b;
}

static bool sort_frames(const struct xpl_trace *t, struct trc_frames *f) {
    const size_t n = (size_t)t->n[TRC_FRAMES];
    f->by_text = xpl_arena_array(f->arena, n, sizeof *f->by_text);
    if (!f->by_text) return false;
    for (size_t i = 0; i < n; i++)
        f->by_text[i] = (uint32_t)i;
    xpl_std_sort(f->by_text, n, sizeof *f->by_text, frame_before, t);
    return true;
}

static uint32_t find_frame(const struct xpl_trace *t, const uint32_t *by_text, xpl_str_t text) {
    uint64_t lo = 0, hi = t->n[TRC_FRAMES];
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (compare_frames(trc_str(t, t->frames[by_text[mid]]), text) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == t->n[TRC_FRAMES] || !xpl_str_eq(trc_str(t, t->frames[by_text[lo]]), text)) return 0;
    return by_text[lo] + 1;
}

// The first few texts are compared with each frame, which is quicker than to sort the frames.
static uint32_t frame_number(struct reader *r, xpl_str_t text) {
    const struct xpl_trace *const t = r->t;
    struct trc_frames *const f = r->frames;
    if (!f->by_text && f->scans++ == FEW_SCANS && !sort_frames(t, f)) r->oom = true;
    if (r->oom) return 0;
    if (f->by_text) return find_frame(t, f->by_text, text);
    for (uint64_t i = 0; i < t->n[TRC_FRAMES]; i++)
        if (xpl_str_eq(trc_str(t, t->frames[i]), text)) return (uint32_t)i + 1;
    return 0;
}

// The number of the field that holds the value, and the value.
static uint32_t read_stat(xpl_bytes_t message, uint64_t *ret_md, struct xpl_field *ret) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    uint32_t num = 0;
    *ret_md = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        const bool text = f.num == 5 || f.num == 6, real = f.num == 2;
        const uint32_t type = text ? XPL_WIRE_LEN : real ? XPL_WIRE_I64 : XPL_WIRE_VARINT;
        if (f.type != type) continue;
        if (f.num == 1) *ret_md = f.u;
        if (f.num < 2 || f.num > 7) continue;
        num = f.num;
        *ret = f;
    }
    return num;
}

// `string`: number of the text, if the index has it.
static void add_text(struct reader *r, xpl_str_t name, xpl_str_t text, const uint32_t *string) {
    struct trc_value *const v = add_value(r);
    if (!v) return;
    *v = (struct trc_value){.name = name, .text = text, .kind = TRC_ARG_STR};
    if (is_frame(name, text)) v->frame = string ? frame_of(r->t, *string) : frame_number(r, text);
}

static void add_stat(struct reader *r, xpl_bytes_t message) {
    struct xpl_field f = {0};
    uint64_t id;
    const uint32_t num = read_stat(message, &id, &f);
    const struct trc_stat_md *const md = stat_md(r, id);
    const uint32_t flags = md ? md->flags : 0;
    if (num == 0 || num == 6 || (flags & TRC_STAT_DROP)) return;
    if ((flags & TRC_STAT_STEP_NAME) && (r->e->flags & TRC_STEP_NAME)) return; // added below
    if ((flags & TRC_STAT_EAGER) && (r->e->flags & TRC_HAS_EAGER)) return;
    const xpl_str_t name = md ? trc_str(r->t, md->name) : (xpl_str_t){"", 0};
    if (num == 5) {
        add_text(r, name, xpl_wire_str(&f), NULL);
    } else if (num == 7) {
        const struct trc_stat_md *const ref = stat_md(r, f.u);
        add_text(r, name, ref ? trc_str(r->t, ref->name) : (xpl_str_t){"", 0},
                 ref ? &ref->name : NULL);
    } else {
        struct trc_value *const v = add_value(r);
        if (!v) return;
        *v = (struct trc_value){.name = name, .bits = f.u};
        v->kind = num == 2 ? TRC_ARG_DOUBLE : num == 3 ? TRC_ARG_UINT : TRC_ARG_INT;
        if (r->mask_run_id && (flags & TRC_STAT_RUN_ID)) {
            v->bits &= RUN_ID_MASK;
            v->kind = TRC_ARG_INT;
        }
    }
}

// ---- the event ----

static bool find_event(const struct reader *r, xpl_bytes_t profile, xpl_bytes_t *ret) {
    if (r->e->src >= profile.len) return false;
    struct xpl_wire w = {profile.ptr + r->e->src, profile.ptr + profile.len};
    struct xpl_field f;
    if (xpl_wire_next(&w, &f) != XPL_WIRE_FIELD || f.num != XLINE_EVENTS || f.type != XPL_WIRE_LEN)
        return false;
    *ret = f.len;
    return true;
}

static bool read_event(struct reader *r, xpl_bytes_t event) {
    struct xpl_wire w = xpl_wire_begin(event);
    struct xpl_field f;
    enum xpl_wire_result got;
    uint64_t id = 0;
    while ((got = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == XEVENT_MD_ID && f.type == XPL_WIRE_VARINT) id = f.u;
    if (got != XPL_WIRE_END) return false;
    const struct trc_event_md *const md =
        bsearch(&id, r->t->event_mds + r->plane->first_event, (size_t)r->plane->n_events,
                sizeof(struct trc_event_md), by_event);
    if (md) {
        r->mask_run_id = md->flags & TRC_EVENT_MASK_RUN_ID;
        add_list(r, md->args);
    }
    w = xpl_wire_begin(event);
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == XEVENT_STATS && f.type == XPL_WIRE_LEN) add_stat(r, f.len);
    return true;
}

xpl_status_t trc_read_args(const struct xpl_trace *t, xpl_bytes_t profile,
                           const struct trc_event *e, struct trc_frames *frames,
                           struct trc_value *ret, size_t *ret_n, struct xpl_error *err) {
    struct reader r = {
        .t = t, .plane = &t->planes[t->tracks[e->track].plane], .e = e, .v = ret, .frames = frames};
    xpl_bytes_t event;
    if (e->flags & TRC_OWN_ARGS) {
        add_list(&r, e->src);
    } else {
        if (!find_event(&r, profile, &event) || !read_event(&r, event))
            XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, e->src,
                                "the profile is not the one of the trace index");
        if (r.oom) XPL_RETURN_OOM(err, "stack frames");
    }
    struct trc_value *v;
    if ((e->flags & TRC_HAS_EAGER) && (v = add_value(&r)))
        *v = (struct trc_value){
            .name = XPL_STR("is_eager"), .kind = TRC_ARG_INT, .bits = (e->flags & TRC_EAGER) != 0};
    if ((e->flags & TRC_STEP_NAME) && (v = add_value(&r)))
        *v = (struct trc_value){
            .name = XPL_STR("step_name"), .kind = TRC_ARG_STR, .text = trc_str(t, e->name)};
    *ret_n = r.n;
    return XPL_OK;
}
