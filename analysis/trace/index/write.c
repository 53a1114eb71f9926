// SPDX-License-Identifier: Apache-2.0
// An index as bytes: blocks level by level, encoded in parallel and written in order; then tables.
// The names in a block are found while it is encoded, and inverted into the blocks of each name.
#include <string.h>

#include "analysis/trace/index/format.h"
#include "analysis/trace/index/impl.h"
#include "analysis/trace/index/read.h"
#include "base/buf.h"
#include "base/cleanup.h"

// ---- sums of a piece (format.h), made while its blocks are encoded ----

enum { PIECE_SLOTS = 4 * TRC_PIECE_SUMS };

struct piece_sums {
    struct trc_piece piece;
    uint32_t n;
    uint16_t slots[PIECE_SLOTS]; // position in v + 1
    struct trc_piece_sum v[TRC_PIECE_SUMS];
};

static void piece_begin(struct piece_sums *s) {
    s->piece = (struct trc_piece){.first_ts = UINT64_MAX, .counted = 1};
    s->n = 0;
    memset(s->slots, 0, sizeof s->slots);
}

// The row of a name and a track; NULL when there are too many.
static struct trc_piece_sum *row_of(struct piece_sums *s, uint32_t name, uint16_t track) {
    uint64_t h = ((uint64_t)track << 32 | name) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t at = h >> 40;; at++) {
        uint16_t *const slot = &s->slots[at % PIECE_SLOTS];
        if (*slot) {
            struct trc_piece_sum *const row = &s->v[*slot - 1];
            if (row->name == name && row->track == track) return row;
            continue;
        }
        if (s->n == TRC_PIECE_SUMS) return NULL;
        s->v[s->n] = (struct trc_piece_sum){.name = name, .track = track, .min_ps = UINT64_MAX};
        *slot = (uint16_t)++s->n;
        return &s->v[s->n - 1];
    }
}

// Of events in any order, but for the first, which is the earliest.
static void piece_add(struct piece_sums *s, uint64_t name, uint64_t track, uint64_t ts,
                      uint64_t dur) {
    const uint64_t end = trc_piece_end_of(ts, dur);
    if (ts < s->piece.first_ts) s->piece.first_ts = ts;
    if (end > s->piece.end) s->piece.end = end;
    // A time that wraps around is cut by windows, which a sum could not be.
    struct trc_piece_sum *const row = s->piece.counted && ts + dur >= ts && track <= UINT16_MAX
                                          ? row_of(s, (uint32_t)name, (uint16_t)track)
                                          : NULL;
    if (!row) {
        s->piece.counted = 0;
        return;
    }
    row->count++;
    row->total_ps = row->total_ps + dur < dur ? UINT64_MAX : row->total_ps + dur;
    if (dur < row->min_ps) row->min_ps = dur;
    if (dur > row->max_ps) row->max_ps = dur;
}

// Fills in the piece, whose n_sums rows of v the caller writes at `offset` of the file.
static void piece_end(struct piece_sums *s, uint64_t offset) {
    if (!s->piece.counted) s->n = 0;
    s->piece.offset = offset;
    s->piece.n_sums = s->n;
    s->piece.sum = trc_sum(s->v, s->n * sizeof *s->v);
}

// ---- blocks ----

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the index is little-endian");
_Static_assert(sizeof(struct trc_block) == 72, "no padding in a block");

enum {
    JOB_BLOCKS = TRC_PIECE,
    BLOCK_MAX = (int)sizeof(struct trc_block) + TRC_COLUMNS * 8 * TRC_BLOCK + 8,
    FRAMES_JSON_MAX = 4 << 20,
};

struct output {
    const struct xpl_trace_sink *sink;
    uint64_t at;
    bool failed;
    struct trc_footer footer;
};

static void put_bytes(struct output *o, const void *p, size_t n) {
    if (o->failed || n == 0) return;
    if (!o->sink->write(o->sink->ctx, p, n)) o->failed = true;
    o->at += n;
}

static void put_table(struct output *o, enum trc_table t, const void *p, size_t n) {
    static const uint8_t zeros[8] = {0};
    put_bytes(o, zeros, (8 - o->at % 8) % 8);
    o->footer.tables[t] = (struct trc_extent){o->at, n, trc_sum(p, n)};
    put_bytes(o, p, n);
}

// ---- events by level ----

struct leveling {
    struct builder *b;
    unsigned end;       // levels before are written
    struct rec **picks; // the picked events of a bucket, from where the bucket begins in the order
    struct rec **by_level;
    uint64_t n, level_n[TRC_LEVELS];
    uint64_t (*at)[TRC_LEVELS]; // per bucket
    size_t *n_picks;            // per bucket
};

static bool is_written(const struct leveling *l, const struct rec *r) {
    return r->level < l->end && r->serial < 256;
}

static void pick_levels(void *ctx, size_t i) {
    struct leveling *const l = ctx;
    struct rec **to = l->picks + l->b->bucket_first[i];
    for (size_t k = l->b->bucket_first[i]; k < l->b->bucket_first[i + 1]; k++) {
        struct rec *const r = l->b->order[k];
        if (!is_written(l, r)) continue;
        l->at[i][r->level]++;
        *to++ = r;
    }
    l->n_picks[i] = (size_t)(to - (l->picks + l->b->bucket_first[i]));
}

static void place_levels(void *ctx, size_t i) {
    struct leveling *const l = ctx;
    struct rec *const *const from = l->picks + l->b->bucket_first[i];
    for (size_t k = 0; k < l->n_picks[i]; k++)
        l->by_level[l->at[i][from[k]->level]++] = from[k];
}

static bool sort_levels(struct leveling *l, struct xpl_arena *arena) {
    struct builder *const b = l->b;
    l->end = b->n_levels < TRC_DECIDED ? b->n_levels : TRC_LEVELS;
    l->at = xpl_arena_zalloc(arena, b->n_buckets * sizeof *l->at);
    l->n_picks = xpl_arena_zalloc(arena, b->n_buckets * sizeof *l->n_picks);
    // The last write may reuse the order's memory.
    l->picks =
        l->end == TRC_LEVELS ? b->order : xpl_arena_array(arena, b->n_events, sizeof(*l->picks));
    if (!l->at || !l->n_picks || !l->picks) return false;
    xpl_exec_run(b->exec, b->n_buckets, pick_levels, l);
    for (unsigned level = 0; level < l->end; level++) {
        const uint64_t begin = l->n;
        for (size_t i = 0; i < b->n_buckets; i++) {
            const uint64_t here = l->at[i][level];
            l->at[i][level] = l->n;
            l->n += here;
        }
        l->level_n[level] = l->n - begin;
    }
    l->by_level = xpl_arena_array(arena, l->n, sizeof(*l->by_level));
    if (!l->by_level) return false;
    xpl_exec_run(b->exec, b->n_buckets, place_levels, l);
    return true;
}

// ---- blocks ----

struct columns {
    uint64_t v[TRC_COLUMNS][TRC_BLOCK];
};

static void fill_columns(const struct builder *b, struct rec *const *recs, size_t n,
                         struct columns *c) {
    for (size_t i = 0; i < n; i++) {
        const struct rec *const r = recs[i];
        c->v[TRC_TS][i] = r->ts;
        c->v[TRC_DUR][i] = r->dur;
        c->v[TRC_NAME][i] = b->slot_string[r->name];
        c->v[TRC_TRACK][i] = r->track;
        c->v[TRC_META][i] = r->flags | (uint64_t)r->serial << 16;
        c->v[TRC_GROUP][i] = r->group;
        c->v[TRC_FLOW][i] = r->flow;
        c->v[TRC_SRC][i] = r->src == SRC_OF_MD ? b->slot_args[r->name] : r->src;
    }
}

static uint8_t width_of(uint64_t v) {
    return (uint8_t)(v == 0 ? 0 : (64 - __builtin_clzll(v) + 7) / 8);
}

// Packs one column; may write up to 8 bytes beyond, where the next one comes.
static uint8_t *pack(const uint64_t *v, size_t n, uint64_t *ret_base, uint8_t *ret_width,
                     uint8_t *to) {
    uint64_t least = v[0], most = v[0];
    for (size_t i = 1; i < n; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    const uint8_t w = width_of(most - least);
    *ret_base = least;
    *ret_width = w;
    for (size_t i = 0; w && i < n; i++, to += w) {
        const uint64_t d = v[i] - least;
        memcpy(to, &d, 8);
    }
    return to;
}

static void encode(const struct rec *first, const struct columns *c, size_t n, uint8_t *to,
                   struct trc_block_ref *ref) {
    struct trc_block head;
    *ref = (struct trc_block_ref){.first_ts = first->ts, .n = (uint32_t)n};
    uint8_t *p = to + sizeof head;
    for (unsigned i = 0; i < TRC_COLUMNS; i++)
        p = pack(c->v[i], n, &head.base[i], &head.width[i], p);
    memset(p, 0, 8);
    memcpy(to, &head, sizeof head);
    ref->size = (uint32_t)(p + 8 - to);
    ref->sum = trc_sum(to, ref->size);
}

struct span { // of a block: its events in by_level
    uint32_t first, n;
    uint32_t n_names;
};

struct blocks {
    const struct builder *b;
    struct xpl_arena *arena;
    struct rec **by_level;
    struct trc_block_ref *refs;
    struct span *spans;
    uint64_t n;
    uint64_t wave;           // first block of the wave
    uint8_t *buffers;        // JOB_BLOCKS * BLOCK_MAX each
    struct piece_sums *sums; // of each job's piece
    struct trc_piece *pieces;
    size_t *lengths;
    uint64_t *seen; // per job: seen_words of bits, by rank of a name, all 0 between blocks
    size_t seen_words;
};

// Ranks of a block's names.  They overwrite its events in by_level, which are not needed any more.
static uint32_t *ranks_of(const struct blocks *bl, const struct span *s) {
    return (uint32_t *)(void *)(bl->by_level + s->first);
}

static void find_ranks(const struct blocks *bl, const struct columns *c, uint64_t *seen,
                       struct span *s) {
    uint32_t *const ranks = ranks_of(bl, s);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t rank = bl->b->rank_of[c->v[TRC_NAME][i]];
        if (rank == NO_RANK || seen[rank / 64] >> rank % 64 & 1) continue;
        seen[rank / 64] |= UINT64_C(1) << rank % 64;
        ranks[n++] = rank;
    }
    for (uint32_t i = 0; i < n; i++)
        seen[ranks[i] / 64] = 0;
    s->n_names = n;
}

static void encode_job(void *ctx, size_t job) {
    struct blocks *const bl = ctx;
    uint8_t *const begin = bl->buffers + job * JOB_BLOCKS * (size_t)BLOCK_MAX, *p = begin;
    uint64_t i = bl->wave + job * JOB_BLOCKS;
    const uint64_t end = i + JOB_BLOCKS < bl->n ? i + JOB_BLOCKS : bl->n;
    struct piece_sums *const sums = &bl->sums[job];
    piece_begin(sums);
    for (; i < end; i++) {
        struct span *const s = &bl->spans[i];
        struct rec *const *const recs = bl->by_level + s->first;
        struct columns c;
        fill_columns(bl->b, recs, s->n, &c);
        encode(recs[0], &c, s->n, p, &bl->refs[i]);
        p += bl->refs[i].size;
        for (uint32_t k = 0; k < s->n; k++)
            piece_add(sums, c.v[TRC_NAME][k], c.v[TRC_TRACK][k], c.v[TRC_TS][k], c.v[TRC_DUR][k]);
        find_ranks(bl, &c, bl->seen + job * bl->seen_words, s);
    }
    bl->lengths[job] = (size_t)(p - begin);
}

static bool plan_blocks(struct blocks *bl, const struct leveling *l, struct trc_footer *f) {
    uint64_t n = 0, at = 0;
    for (unsigned level = 0; level < TRC_LEVELS; level++) {
        f->level_first[level] = n;
        n += (l->level_n[level] + TRC_BLOCK - 1) / TRC_BLOCK;
    }
    f->level_first[TRC_LEVELS] = bl->n = n;
    bl->refs = xpl_arena_array(bl->arena, n, sizeof *bl->refs);
    bl->spans = xpl_arena_array(bl->arena, n, sizeof *bl->spans);
    if (!bl->refs || !bl->spans || l->n > UINT32_MAX) return false;
    n = 0;
    for (unsigned level = 0; level < TRC_LEVELS; level++)
        for (uint64_t left = l->level_n[level], here; left; left -= here, at += here, n++) {
            here = left < TRC_BLOCK ? left : TRC_BLOCK;
            bl->spans[n] = (struct span){.first = (uint32_t)at, .n = (uint32_t)here};
        }
    return true;
}

static size_t n_pieces(const struct blocks *bl) {
    return (size_t)((bl->n + TRC_PIECE - 1) / TRC_PIECE);
}

static bool put_blocks(struct blocks *bl, struct output *o) {
    const size_t jobs = (size_t)bl->b->exec->width * 2;
    bl->buffers = xpl_arena_array(bl->arena, jobs, JOB_BLOCKS * (size_t)BLOCK_MAX);
    bl->lengths = xpl_arena_zalloc(bl->arena, jobs * sizeof *bl->lengths);
    bl->seen_words = bl->b->sorted_names.n / 64 + 1;
    bl->seen = xpl_arena_zalloc(bl->arena, jobs * bl->seen_words * sizeof *bl->seen);
    bl->sums = xpl_arena_array(bl->arena, jobs, sizeof *bl->sums);
    bl->pieces = xpl_arena_zalloc(bl->arena, n_pieces(bl) * sizeof *bl->pieces);
    if (!bl->buffers || !bl->lengths || !bl->seen || !bl->sums || !bl->pieces) return false;
    for (bl->wave = 0; bl->wave < bl->n && !o->failed; bl->wave += jobs * JOB_BLOCKS) {
        if (xpl_exec_cancelled(bl->b->exec)) return true; // the caller checks, too
        const uint64_t left = bl->n - bl->wave;
        const size_t run =
            left < jobs * JOB_BLOCKS ? (size_t)((left + JOB_BLOCKS - 1) / JOB_BLOCKS) : jobs;
        xpl_exec_run(bl->b->exec, run, encode_job, bl);
        for (size_t i = 0; i < run; i++) {
            uint64_t at = o->at;
            for (uint64_t k = bl->wave + i * JOB_BLOCKS;
                 k < bl->n && k < bl->wave + (i + 1) * JOB_BLOCKS; k++) {
                bl->refs[k].offset = at;
                at += bl->refs[k].size;
            }
            put_bytes(o, bl->buffers + i * JOB_BLOCKS * (size_t)BLOCK_MAX, bl->lengths[i]);
            struct piece_sums *const sums = &bl->sums[i];
            piece_end(sums, o->at);
            put_bytes(o, sums->v, sums->n * sizeof *sums->v);
            bl->pieces[bl->wave / JOB_BLOCKS + i] = sums->piece;
        }
    }
    return true;
}

// ---- tables ----

static bool put_strings(const struct builder *b, struct xpl_arena *arena, struct output *o) {
    const size_t n = (size_t)b->n_strings + 1;
    struct trc_string *const v = xpl_arena_zalloc(arena, n * sizeof *v);
    uint64_t len = 0;
    if (!v) return false;
    for (size_t i = 1; i < n; i++) {
        const xpl_str_t s = xpl_intern_get(b->strings, (xpl_strid_t){(uint32_t)i});
        if (s.len > UINT32_MAX) return false;
        v[i] = (struct trc_string){.offset = len, .len = (uint32_t)s.len};
        len += s.len;
    }
    for (size_t i = 0; i < b->frames.n; i++)
        v[b->frames.v[i]].frame = (uint32_t)i + 1;
    char *const text = xpl_arena_alloc(arena, len);
    if (!text) return false;
    for (size_t i = 1; i < n; i++) {
        const xpl_str_t s = xpl_intern_get(b->strings, (xpl_strid_t){(uint32_t)i});
        if (s.len) memcpy(text + v[i].offset, s.ptr, s.len);
    }
    put_table(o, TRC_STRINGS, v, n * sizeof *v);
    put_table(o, TRC_TEXT, text, len);
    return true;
}

static bool put_tracks(const struct builder *b, struct xpl_arena *arena, struct output *o) {
    struct trc_track *const v = xpl_arena_zalloc(arena, b->tracks.n * sizeof *v);
    if (!v) return false;
    for (size_t i = 0; i < b->tracks.n; i++) {
        const struct track *const t = &b->tracks.v[i];
        v[i] = (struct trc_track){.device = t->device,
                                  .named = t->named,
                                  .id = t->resource,
                                  .name = t->name,
                                  .plane = t->plane};
    }
    put_table(o, TRC_TRACKS, v, b->tracks.n * sizeof *v);
    return true;
}

// ---- blocks by name ----

static size_t put_varint(uint64_t v, uint8_t *to) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

// Lists each name's blocks; without `list` only counts the bytes.
static void list_blocks(const struct blocks *bl, struct trc_name *names, uint64_t *next,
                        uint8_t *list) {
    uint8_t nothing[10];
    for (uint64_t i = 0; i < bl->n; i++)
        for (uint32_t k = 0; k < bl->spans[i].n_names; k++) {
            const uint32_t rank = ranks_of(bl, &bl->spans[i])[k];
            struct trc_name *const name = &names[rank];
            uint8_t *const to = list ? list + name->first + name->len : nothing;
            name->len += put_varint(i + 1 - next[rank], to);
            next[rank] = i + 1;
        }
}

static bool put_names(const struct blocks *bl, struct output *o) {
    const size_t n = bl->b->sorted_names.n;
    struct trc_name *const v = xpl_arena_zalloc(bl->arena, n * sizeof *v);
    uint64_t *const next = xpl_arena_zalloc(bl->arena, n * sizeof *next);
    uint64_t all = 0;
    if (!v || !next) return false;
    list_blocks(bl, v, next, NULL);
    for (size_t i = 0; i < n; i++) {
        v[i].string = bl->b->sorted_names.v[i];
        v[i].first = all;
        all += v[i].len;
        v[i].len = next[i] = 0;
    }
    uint8_t *const list = xpl_arena_alloc(bl->arena, all);
    if (!list) return false;
    list_blocks(bl, v, next, list);
    for (size_t i = 0; i < n; i++)
        v[i].sum = trc_sum(list + v[i].first, (size_t)v[i].len);
    put_table(o, TRC_NAMES, v, n * sizeof *v);
    put_table(o, TRC_NAME_BLOCKS, list, all);
    return true;
}

static void put_frames_json(const struct builder *b, struct output *o) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf json = xpl_buf_of(FRAMES_JSON_MAX);
    for (size_t i = 0; i < b->frames.n; i++)
        trc_put_frame(&json, (uint32_t)i + 1,
                      xpl_intern_get(b->strings, (xpl_strid_t){b->frames.v[i]}));
    put_table(o, TRC_FRAMES_JSON, json.p, json.failed ? 0 : json.n);
}

static bool put_tables(const struct blocks *bl, struct output *o) {
    const struct builder *const b = bl->b;
    put_table(o, TRC_BLOCKS, bl->refs, bl->n * sizeof *bl->refs);
    if (!put_strings(b, bl->arena, o) || !put_tracks(b, bl->arena, o) || !put_names(bl, o))
        return false;
    put_table(o, TRC_PIECES, bl->pieces, n_pieces(bl) * sizeof *bl->pieces);
    put_table(o, TRC_DEVICES, b->devices.v, b->devices.n * sizeof *b->devices.v);
    put_table(o, TRC_RESOURCES, b->resources.v, b->resources.n * sizeof *b->resources.v);
    put_table(o, TRC_ARGS, b->args.v, b->args.n * sizeof *b->args.v);
    put_table(o, TRC_PLANES, b->plane_rows.v, b->plane_rows.n * sizeof *b->plane_rows.v);
    put_table(o, TRC_STAT_MDS, b->stat_mds.v, b->stat_mds.n * sizeof *b->stat_mds.v);
    put_table(o, TRC_EVENT_MDS, b->event_mds.v, b->event_mds.n * sizeof *b->event_mds.v);
    put_table(o, TRC_FRAMES, b->frames.v, b->frames.n * sizeof *b->frames.v);
    put_frames_json(b, o);
    return true;
}

static void put_footer(const struct builder *b, struct output *o) {
    static const uint8_t zeros[8] = {0};
    struct trc_footer *const f = &o->footer;
    put_bytes(o, zeros, (8 - o->at % 8) % 8);
    f->n_events = b->n_events;
    f->has_min = b->has_min, f->has_max = b->has_max;
    f->min_ts = b->min_ts, f->max_ts = b->max_ts;
    f->start_ns = b->start_ns;
    f->file_size = o->at + sizeof *f;
    memcpy(f->magic, TRC_MAGIC, sizeof f->magic);
    f->sum = trc_sum(f, offsetof(struct trc_footer, sum));
    put_bytes(o, f, sizeof *f);
}

xpl_status_t trc_write(struct builder *b, const struct xpl_trace_sink *sink,
                       struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct output o = {.sink = sink};
    struct leveling l = {.b = b};
    struct trc_header head = {.version = XPL_TRACE_VERSION, .endian = TRC_ENDIAN};
    xpl_arena_init(&arena, b->limit);
    memcpy(head.magic, TRC_MAGIC, sizeof head.magic);
    if (!sort_levels(&l, &arena)) XPL_RETURN_OOM(err, "trace levels");
    struct blocks bl = {.b = b, .arena = &arena, .by_level = l.by_level};
    put_bytes(&o, &head, sizeof head);
    if (!plan_blocks(&bl, &l, &o.footer) || !put_blocks(&bl, &o))
        XPL_RETURN_OOM(err, "trace index");
    if (xpl_exec_cancelled(b->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace: cancelled");
    if (!put_tables(&bl, &o)) XPL_RETURN_OOM(err, "trace index");
    put_footer(b, &o);
    if (o.failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "trace: no room for the index beyond %llu bytes",
                         (unsigned long long)o.at);
    return XPL_OK;
}
