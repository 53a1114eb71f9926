// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/answer/arg_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/xplane/event_read.h"
#include "base/arena.h"
#include "base/exec.h"

enum { NONE = 0, RUN_ID_MASK = (1 << 27) - 1 };
enum { MAX_WORD = 1024, PIECE = 8192 }; // bytes
enum { CANCEL_EVERY = 1024, CANCEL_BYTES = 1 << 24 };

// ---- words ----

static void fold(xpl_str_t s, char *ret) {
    for (size_t i = 0; i < s.len; i++)
        ret[i] = (char)(s.ptr[i] >= 'A' && s.ptr[i] <= 'Z' ? s.ptr[i] | 0x20 : s.ptr[i]);
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_numeral(xpl_str_t word) {
    for (size_t i = 0; i < word.len; i++)
        if ((word.ptr[i] < '0' || word.ptr[i] > '9') && (i || word.ptr[i] != '-')) return false;
    return true;
}

xpl_status_t trc_words_read(xpl_str_t text, struct trc_words *ret, struct xpl_error *err) {
    *ret = (struct trc_words){0};
    for (size_t i = 0, end; i < text.len; i = end + 1) {
        for (end = i; end < text.len && !is_blank(text.ptr[end]);)
            end++;
        if (end == i) continue;
        if (ret->n == TRC_WORDS)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "character %zu: more than %d words", i + 1,
                             TRC_WORDS);
        const xpl_str_t word = {text.ptr + i, end - i};
        if (word.len > MAX_WORD)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "character %zu: a word of more than %d bytes", i + 1, MAX_WORD);
        const uint32_t bit = UINT32_C(1) << ret->n;
        ret->v[ret->n++] = word;
        ret->all |= bit;
        if (is_numeral(word)) ret->numerals |= bit;
    }
    return XPL_OK;
}

// The words of `w` that are in the piece but not in `mask`.  memmem takes linear time.
static uint32_t words_in_piece(const struct trc_words *w, uint32_t mask, xpl_str_t piece) {
    char text[PIECE], word[MAX_WORD];
    uint32_t found = 0;
    fold(piece, text);
    for (unsigned i = 0; i < w->n; i++) {
        if (mask >> i & 1 || w->v[i].len > piece.len) continue;
        fold(w->v[i], word);
        if (memmem(text, piece.len, word, w->v[i].len)) found |= UINT32_C(1) << i;
    }
    return found;
}

uint32_t trc_words_in(const struct trc_words *w, xpl_str_t text) {
    uint32_t mask = 0;
    for (size_t at = 0; at < text.len && mask != w->all; at += PIECE - MAX_WORD)
        mask |= words_in_piece(w, mask, xpl_str_sub(text, at, PIECE));
    return mask;
}

static uint32_t words_in_number(const struct trc_words *w, uint64_t bits, bool is_signed) {
    char text[24];
    if (!w->numerals) return 0;
    const int n = is_signed ? snprintf(text, sizeof text, "%" PRId64, (int64_t)bits)
                            : snprintf(text, sizeof text, "%" PRIu64, bits);
    return trc_words_in(w, (xpl_str_t){text, (size_t)n}) & w->numerals;
}

// ---- metadata ----

// Positions by id, where these are small; the tables are sorted by id.
struct by_id {
    const uint64_t *ids; // first members of the rows
    size_t stride, n;
    uint32_t *at; // 1 + position, for ids below n_at; NULL: they are searched
    uint64_t n_at;
};

struct plane {
    struct by_id stats, events;
};

struct trc_arg_search {
    const struct xpl_trace *t;
    xpl_bytes_t profile;
    const struct trc_words *words;
    struct plane *planes;
    uint64_t *of_string; // words in each string of the index, and KNOWN; 0: not searched yet
    uint32_t *of_stat;   // words in the name of each row of the statistics' metadata
    uint32_t *of_event;  // words in the arguments of each row of the events' metadata
};

static uint64_t id_of(const struct by_id *b, size_t i) {
    uint64_t id;
    memcpy(&id, (const uint8_t *)b->ids + i * b->stride, sizeof id);
    return id;
}

static bool place_ids(struct by_id *b, struct xpl_arena *arena) {
    const uint64_t last = b->n ? id_of(b, b->n - 1) : 0;
    if (!b->n || last > 4 * (uint64_t)b->n + 64) return true;
    b->n_at = last + 1;
    b->at = xpl_arena_zalloc(arena, (size_t)b->n_at * sizeof *b->at);
    for (size_t i = 0; b->at && i < b->n; i++)
        if (id_of(b, i) <= last) b->at[id_of(b, i)] = (uint32_t)i + 1; // sorted, unless damaged
    return b->at != NULL;
}

// The row's position; b->n when there is none.
static size_t find_id(const struct by_id *b, uint64_t id) {
    if (b->at) return id < b->n_at && b->at[id] ? b->at[id] - 1 : b->n;
    size_t lo = 0, hi = b->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (id_of(b, mid) < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < b->n && id_of(b, lo) == id ? lo : b->n;
}

// Many arguments may refer to one long string: each is searched once.
static uint32_t words_in_string(const struct trc_arg_search *s, uint64_t string) {
    static const uint64_t KNOWN = UINT64_C(1) << TRC_WORDS;
    if (string >= s->t->n[TRC_STRINGS]) return 0;
    uint64_t *const mask = &s->of_string[string];
    if (!*mask) *mask = trc_words_in(s->words, trc_str(s->t, string)) | KNOWN;
    return (uint32_t)*mask;
}

static uint32_t words_in_list(const struct trc_arg_search *s, uint64_t list) {
    uint32_t mask = 0;
    if (list == NONE || list > s->t->n[TRC_ARGS]) return 0;
    for (const struct trc_arg *a = &s->t->args[list - 1];; a++) {
        const uint32_t kind = a->kind & ~TRC_ARG_LAST;
        if (kind == TRC_ARG_STR)
            mask |= words_in_string(s, a->value);
        else if (kind != TRC_ARG_DOUBLE)
            mask |= words_in_number(s->words, a->value, kind == TRC_ARG_INT);
        if (a->kind & TRC_ARG_LAST) return mask;
    }
}

static bool read_planes(struct trc_arg_search *s, struct xpl_arena *arena) {
    const struct xpl_trace *const t = s->t;
    for (uint64_t i = 0; i < t->n[TRC_PLANES]; i++) {
        const struct trc_plane *const p = &t->planes[i];
        s->planes[i] = (struct plane){
            {&t->stat_mds[p->first_stat].id, sizeof *t->stat_mds, (size_t)p->n_stats, NULL, 0},
            {&t->event_mds[p->first_event].id, sizeof *t->event_mds, (size_t)p->n_events, NULL, 0}};
        if (!place_ids(&s->planes[i].stats, arena) || !place_ids(&s->planes[i].events, arena))
            return false;
    }
    return true;
}

static xpl_status_t search_metadata_texts(struct trc_arg_search *s, struct xpl_exec *exec,
                                          struct xpl_error *err) {
    const struct xpl_trace *const t = s->t;
    size_t bytes = 0; // since the last look
    for (uint64_t i = 0; i < t->n[TRC_STAT_MDS]; i++) {
        bytes += trc_str(t, t->stat_mds[i].name).len;
        s->of_stat[i] = words_in_string(s, t->stat_mds[i].name);
        if (i % CANCEL_EVERY && bytes < CANCEL_BYTES) continue;
        if (xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace sums: cancelled");
        bytes = 0;
    }
    for (uint64_t i = 0; i < t->n[TRC_EVENT_MDS]; i++) {
        s->of_event[i] = words_in_list(s, t->event_mds[i].args);
        if (i % CANCEL_EVERY == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace sums: cancelled");
    }
    return XPL_OK;
}

xpl_status_t trc_arg_search_new(const struct xpl_trace *t, xpl_bytes_t profile,
                                const struct trc_words *words, struct xpl_exec *exec,
                                struct xpl_arena *arena, struct trc_arg_search **ret,
                                struct xpl_error *err) {
    struct trc_arg_search *const s = xpl_arena_alloc(arena, sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "trace sums");
    *s = (struct trc_arg_search){
        .t = t,
        .profile = profile,
        .words = words,
        .planes = xpl_arena_array(arena, (size_t)t->n[TRC_PLANES], sizeof *s->planes),
        .of_string = xpl_arena_zalloc(arena, (size_t)t->n[TRC_STRINGS] * sizeof *s->of_string),
        .of_stat = xpl_arena_array(arena, (size_t)t->n[TRC_STAT_MDS], sizeof *s->of_stat),
        .of_event = xpl_arena_array(arena, (size_t)t->n[TRC_EVENT_MDS], sizeof *s->of_event)};
    if (!s->planes || !s->of_string || !s->of_stat || !s->of_event || !read_planes(s, arena))
        XPL_RETURN_OOM(err, "trace sums");
    *ret = s;
    return search_metadata_texts(s, exec, err);
}

// ---- events ----

// The current event.
struct own {
    const struct trc_arg_search *s;
    const struct trc_event *e;
    const struct trc_plane *plane;
    const struct by_id *stats, *events;
    xpl_bytes_t message;
    bool mask_run_id;
    uint32_t mask;
};

// As trc_read_args treats a statistic (args.c: add_stat).
XPL_INLINE void search_stat(struct own *o, const struct xpl_raw_stat *stat) {
    const struct trc_arg_search *const s = o->s;
    const size_t at = find_id(o->stats, stat->md_id);
    const uint32_t flags = at < o->stats->n ? s->t->stat_mds[o->plane->first_stat + at].flags : 0;
    if (flags & TRC_STAT_DROP || ((flags & TRC_STAT_STEP_NAME) && (o->e->flags & TRC_STEP_NAME)) ||
        ((flags & TRC_STAT_EAGER) && (o->e->flags & TRC_HAS_EAGER)))
        return;
    if (stat->kind == XPL_VALUE_STR) {
        o->mask |= trc_words_in(s->words, stat->str);
    } else if (stat->kind == XPL_VALUE_REF) {
        const size_t ref = find_id(o->stats, stat->u);
        if (ref < o->stats->n) o->mask |= s->of_stat[o->plane->first_stat + ref];
    } else if (s->words->numerals &&
               (stat->kind == XPL_VALUE_INT || stat->kind == XPL_VALUE_UINT)) {
        const bool masked = o->mask_run_id && (flags & TRC_STAT_RUN_ID);
        o->mask |= words_in_number(s->words, masked ? stat->u & RUN_ID_MASK : stat->u,
                                   masked || stat->kind == XPL_VALUE_INT);
    }
}

static void search_metadata(struct own *o, uint64_t id) {
    const size_t md = find_id(o->events, id);
    if (md >= o->events->n) return;
    o->mask |= o->s->of_event[o->plane->first_event + md];
    o->mask_run_id = o->s->t->event_mds[o->plane->first_event + md].flags & TRC_EVENT_MASK_RUN_ID;
}

// An event as writers write it; false: something in it is not.
static bool search_usual(struct own *o) {
    const xpl_bytes_t all = o->s->profile;
    struct xpl_raw_event head;
    struct xpl_raw_stat stat;
    if (!xpl_raw_event_head(o->message, all.ptr + all.len, &head)) return false;
    search_metadata(o, head.md_id);
    for (const uint8_t *p = head.stats; p != head.end && o->mask != o->s->words->all;) {
        xpl_bytes_t message;
        if (*p != XPL_TAG_FIELD4_LEN ||
            xpl_next_message(&p, head.end, XEVENT_STATS, &message) != XPL_WIRE_FIELD ||
            !xpl_raw_stat_read(message, all.ptr + all.len, &stat))
            return false;
        search_stat(o, &stat);
    }
    return true;
}

// Fields in any order, as trc_read_args takes them.  False: the event is malformed.
static bool search_any(struct own *o) {
    struct xpl_wire w = xpl_wire_begin(o->message);
    struct xpl_field f;
    enum xpl_wire_result got;
    uint64_t id = 0;
    while ((got = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == XEVENT_MD_ID && f.type == XPL_WIRE_VARINT) id = f.u;
    if (got != XPL_WIRE_END) return false;
    search_metadata(o, id);
    w = xpl_wire_begin(o->message);
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        struct xpl_raw_stat stat = {0};
        if (f.num != XEVENT_STATS || f.type != XPL_WIRE_LEN) continue;
        (void)xpl_raw_stat_slow(f.len, &stat); // the bytes before the damage count
        search_stat(o, &stat);
    }
    return true;
}

static bool find_event(xpl_bytes_t profile, uint64_t src, xpl_bytes_t *ret) {
    if (src >= profile.len) return false;
    struct xpl_wire w = {profile.ptr + src, profile.ptr + profile.len};
    struct xpl_field f;
    if (xpl_wire_next(&w, &f) != XPL_WIRE_FIELD || f.num != XLINE_EVENTS || f.type != XPL_WIRE_LEN)
        return false;
    *ret = f.len;
    return true;
}

static bool search_own(const struct trc_arg_search *s, const struct trc_event *e, uint32_t *ret) {
    const uint32_t plane = s->t->tracks[e->track].plane;
    struct own o = {.s = s,
                    .e = e,
                    .plane = &s->t->planes[plane],
                    .stats = &s->planes[plane].stats,
                    .events = &s->planes[plane].events};
    if (!find_event(s->profile, e->src, &o.message)) return false;
    if (!search_usual(&o)) {
        o.mask = 0;
        if (!search_any(&o)) return false;
    }
    *ret = o.mask;
    return true;
}

xpl_status_t trc_arg_search_event(const struct trc_arg_search *s, const struct trc_event *e,
                                  uint32_t *ret, struct xpl_error *err) {
    uint32_t mask = 0;
    if (e->flags & TRC_OWN_ARGS)
        mask = words_in_list(s, e->src);
    else if (!search_own(s, e, &mask))
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, e->src,
                            "the profile is not the one of the trace index");
    if (e->flags & TRC_HAS_EAGER)
        mask |= words_in_number(s->words, (e->flags & TRC_EAGER) != 0, true);
    if (e->flags & TRC_STEP_NAME) mask |= words_in_string(s, e->name);
    *ret = mask;
    return XPL_OK;
}
