// SPDX-License-Identifier: Apache-2.0
// Opening an index.  Nothing in it is used before it was checked: tables here, as a whole and
// number by number; blocks when they are read.
#include "analysis/trace/index/read.h"
#include "base/arena.h"

static xpl_status_t broken(struct xpl_error *err, uint64_t at, const char *what) {
    XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, at, "trace index: %s", what);
}

static const size_t kRowSize[TRC_TABLES] = {
    [TRC_BLOCKS] = sizeof(struct trc_block_ref),
    [TRC_STRINGS] = sizeof(struct trc_string),
    [TRC_TEXT] = 1,
    [TRC_NAMES] = sizeof(struct trc_name),
    [TRC_NAME_BLOCKS] = 1,
    [TRC_DEVICES] = sizeof(struct trc_device),
    [TRC_RESOURCES] = sizeof(struct trc_resource),
    [TRC_TRACKS] = sizeof(struct trc_track),
    [TRC_ARGS] = sizeof(struct trc_arg),
    [TRC_PLANES] = sizeof(struct trc_plane),
    [TRC_STAT_MDS] = sizeof(struct trc_stat_md),
    [TRC_EVENT_MDS] = sizeof(struct trc_event_md),
    [TRC_FRAMES] = sizeof(uint32_t),
    [TRC_PIECES] = sizeof(struct trc_piece),
    [TRC_FRAMES_JSON] = 1,
};

static xpl_status_t check_ends(struct xpl_trace *t, struct xpl_error *err) {
    struct trc_header h;
    const size_t n = t->bytes.len;
    if (n < sizeof h + sizeof *t->footer || n % 8 || ((uintptr_t)t->bytes.ptr & 7))
        return broken(err, 0, "too short, or cut");
    memcpy(&h, t->bytes.ptr, sizeof h);
    if (memcmp(h.magic, TRC_MAGIC, sizeof h.magic) != 0 || h.endian != TRC_ENDIAN)
        return broken(err, 0, "not an index");
    if (h.version != XPL_TRACE_VERSION) return broken(err, 8, "of another version");
    const uint64_t at = n - sizeof *t->footer;
    t->footer = (const struct trc_footer *)(const void *)(t->bytes.ptr + at);
    if (memcmp(t->footer->magic, TRC_MAGIC, sizeof h.magic) != 0 || t->footer->file_size != n)
        return broken(err, at, "its end is missing");
    if (t->footer->sum != trc_sum(t->footer, offsetof(struct trc_footer, sum)))
        return broken(err, at, "its end does not match its checksum");
    return XPL_OK;
}

// The rows of a table, NULL when it is broken.
static const void *table(struct xpl_trace *t, enum trc_table i) {
    const struct trc_extent *const e = &t->footer->tables[i];
    const uint64_t n = t->bytes.len;
    if (e->offset > n || e->len > n - e->offset || e->offset % 8 || e->len % kRowSize[i])
        return NULL;
    if (i != TRC_NAME_BLOCKS && trc_sum(t->bytes.ptr + e->offset, (size_t)e->len) != e->sum)
        return NULL;
    t->n[i] = e->len / kRowSize[i];
    return t->bytes.ptr + e->offset;
}

static bool find_tables(struct xpl_trace *t) {
    return (t->blocks = table(t, TRC_BLOCKS)) && (t->strings = table(t, TRC_STRINGS)) &&
           (t->text = table(t, TRC_TEXT)) && (t->names = table(t, TRC_NAMES)) &&
           (t->name_blocks = table(t, TRC_NAME_BLOCKS)) && (t->devices = table(t, TRC_DEVICES)) &&
           (t->resources = table(t, TRC_RESOURCES)) && (t->tracks = table(t, TRC_TRACKS)) &&
           (t->args = table(t, TRC_ARGS)) && (t->planes = table(t, TRC_PLANES)) &&
           (t->stat_mds = table(t, TRC_STAT_MDS)) && (t->event_mds = table(t, TRC_EVENT_MDS)) &&
           (t->pieces = table(t, TRC_PIECES)) && (t->frames = table(t, TRC_FRAMES)) &&
           (t->frames_json = table(t, TRC_FRAMES_JSON));
}

static bool strings_fit(const struct xpl_trace *t) {
    for (uint64_t i = 0; i < t->n[TRC_STRINGS]; i++) {
        const struct trc_string *const s = &t->strings[i];
        if (s->offset > t->n[TRC_TEXT] || s->len > t->n[TRC_TEXT] - s->offset) return false;
        if (s->frame > t->n[TRC_FRAMES]) return false;
    }
    return true;
}

static bool range_fits(uint64_t first, uint64_t n, uint64_t all) {
    return first <= all && n <= all - first;
}

static bool rows_fit(const struct xpl_trace *t) {
    for (uint64_t i = 0; i < t->n[TRC_NAMES]; i++)
        if (t->names[i].string >= t->n[TRC_STRINGS] ||
            !range_fits(t->names[i].first, t->names[i].len, t->n[TRC_NAME_BLOCKS]))
            return false;
    for (uint64_t i = 0; i < t->n[TRC_RESOURCES]; i++)
        if (t->resources[i].device >= t->n[TRC_DEVICES]) return false;
    for (uint64_t i = 0; i < t->n[TRC_TRACKS]; i++)
        if (t->tracks[i].device >= t->n[TRC_DEVICES] || t->tracks[i].plane >= t->n[TRC_PLANES])
            return false;
    for (uint64_t i = 0; i < t->n[TRC_PLANES]; i++)
        if (!range_fits(t->planes[i].first_stat, t->planes[i].n_stats, t->n[TRC_STAT_MDS]) ||
            !range_fits(t->planes[i].first_event, t->planes[i].n_events, t->n[TRC_EVENT_MDS]))
            return false;
    if (t->n[TRC_PIECES] != (t->n[TRC_BLOCKS] + TRC_PIECE - 1) / TRC_PIECE) return false;
    for (uint64_t i = 0; i < t->n[TRC_PIECES]; i++)
        if (t->pieces[i].n_sums > TRC_PIECE_SUMS ||
            !range_fits(t->pieces[i].offset, t->pieces[i].n_sums * sizeof(struct trc_piece_sum),
                        t->bytes.len))
            return false;
    return t->n[TRC_ARGS] == 0 || (t->args[t->n[TRC_ARGS] - 1].kind & TRC_ARG_LAST);
}

static bool levels_fit(const struct xpl_trace *t) {
    for (unsigned i = 0; i < TRC_LEVELS; i++)
        if (t->footer->level_first[i] > t->footer->level_first[i + 1]) return false;
    return t->footer->level_first[0] == 0 && t->footer->level_first[TRC_LEVELS] == t->n[TRC_BLOCKS];
}

xpl_status_t xpl_trace_open(xpl_bytes_t index, struct xpl_arena *arena, struct xpl_trace **ret,
                            struct xpl_error *err) {
    struct xpl_trace *const t = xpl_arena_zalloc(arena, sizeof *t);
    if (!t) XPL_RETURN_OOM(err, "trace index");
    t->bytes = index;
    XPL_TRY(check_ends(t, err));
    if (!find_tables(t)) return broken(err, UINT64_MAX, "a table does not match its checksum");
    if (!strings_fit(t) || !rows_fit(t) || !levels_fit(t))
        return broken(err, UINT64_MAX, "tables do not fit together");
    *ret = t;
    return XPL_OK;
}

// ---- blocks ----

static xpl_status_t broken_block(const struct trc_block_ref *ref, struct xpl_error *err) {
    XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, ref->offset, "trace index: a block is damaged");
}

xpl_status_t trc_view_block(const struct xpl_trace *t, uint64_t block, struct trc_view *ret,
                            struct xpl_error *err) {
    const struct trc_block_ref *const ref = &t->blocks[block];
    struct trc_block head;
    if (ref->n == 0 || ref->n > TRC_BLOCK || ref->size < sizeof head + 8 ||
        !range_fits(ref->offset, ref->size, t->bytes.len) ||
        trc_sum(t->bytes.ptr + ref->offset, ref->size) != ref->sum)
        return broken_block(ref, err);
    const uint8_t *p = t->bytes.ptr + ref->offset;
    memcpy(&head, p, sizeof head);
    uint64_t size = sizeof head + 8;
    p += sizeof head;
    for (unsigned i = 0; i < TRC_COLUMNS; i++) {
        const uint32_t w = head.width[i];
        if (w > 8) return broken_block(ref, err);
        ret->column[i] = p;
        ret->base[i] = head.base[i];
        ret->width[i] = w;
        ret->mask[i] = w == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * w) - 1;
        if (i == TRC_TS) ret->base[i] += t->later_ps;
        size += (uint64_t)w * ref->n;
        if (size > ref->size) return broken_block(ref, err);
        p += (size_t)w * ref->n;
    }
    ret->n = ref->n;
    return XPL_OK;
}

xpl_status_t trc_get_event(const struct xpl_trace *t, const struct trc_view *v, uint32_t i,
                           struct trc_event *ret, struct xpl_error *err) {
    const uint64_t name = trc_get(v, TRC_NAME, i), track = trc_get(v, TRC_TRACK, i);
    const uint64_t meta = trc_get(v, TRC_META, i);
    if (name >= t->n[TRC_STRINGS] || track >= t->n[TRC_TRACKS])
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "trace index: an event refers to a missing name or track");
    *ret = (struct trc_event){.ts = trc_get(v, TRC_TS, i),
                              .dur = trc_get(v, TRC_DUR, i),
                              .group = trc_get(v, TRC_GROUP, i),
                              .flow = trc_get(v, TRC_FLOW, i),
                              .src = trc_get(v, TRC_SRC, i),
                              .name = (uint32_t)name,
                              .track = (uint32_t)track,
                              .flags = (uint8_t)meta,
                              .serial = (uint16_t)(meta >> 16)};
    return XPL_OK;
}

uint64_t trc_find_block(const struct xpl_trace *t, unsigned level, uint64_t ts) {
    uint64_t lo = t->footer->level_first[level], hi = t->footer->level_first[level + 1];
    const uint64_t first = lo;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (trc_first_ts(t, mid) < ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > first ? lo - 1 : lo; // the one before may reach into it
}
