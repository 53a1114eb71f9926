#include "analysis/opstats/steps/event_span.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

struct span {
    uint64_t begin, end;
};

// Spans of a list, in blocks that double up to a limit: most lists are short, some are very long.
// A block keeps 8 bytes per span where times are close together: begin after `base` and duration in
// `unit` ps, which is 1000 as long as all are whole nanoseconds, as clocks mostly give them.  What
// does not fit begins a block of its own kind.
struct span_block {
    struct span_block *next;
    uint64_t base;
    uint32_t n, cap;
    uint32_t unit; // 0: wide, begin and end in full
    uint64_t v[];  // narrow: begin << 32 | duration, in units
};
enum { FIRST_BLOCK = 4, LARGEST_BLOCK = 256, NANOSECOND = 1000 };

struct xpl_span_list {
    struct xpl_span_list *next;
    enum xpl_span_type type;
    struct span_block *head, *tail;
    // The last span that is longer than an instant, and where it is kept; NULL when there is none.
    struct span_block *open_block;
    uint32_t open_at;
    struct span open;
};

static bool divides(uint32_t unit, uint64_t v) {
    return unit == 1 || v % NANOSECOND == 0;
}
static uint64_t in_units(uint32_t unit, uint64_t v) {
    return unit == 1 ? v : v / NANOSECOND;
}

// Puts a span at position `at`; false when it does not fit the block's kind.
static bool write_span(struct span_block *b, uint32_t at, struct span s) {
    if (b->unit == 0) {
        b->v[2 * at] = s.begin;
        b->v[2 * at + 1] = s.end;
        return true;
    }
    if (s.begin < b->base || s.end < s.begin) return false;
    const uint64_t after = s.begin - b->base, duration = s.end - s.begin;
    if (!divides(b->unit, after) || !divides(b->unit, duration)) return false;
    const uint64_t x = in_units(b->unit, after), y = in_units(b->unit, duration);
    if (x > UINT32_MAX || y > UINT32_MAX) return false;
    b->v[at] = x << 32 | y;
    return true;
}

static struct span read_span(const struct span_block *b, uint32_t at) {
    if (b->unit == 0) return (struct span){b->v[2 * at], b->v[2 * at + 1]};
    const uint64_t begin = b->base + (b->v[at] >> 32) * b->unit;
    return (struct span){begin, begin + (b->v[at] & UINT32_MAX) * b->unit};
}

void xpl_steps_init(struct xpl_steps *s, struct xpl_arena *arena) {
    *s = (struct xpl_steps){.arena = arena};
}

struct xpl_step *xpl_steps_find(const struct xpl_steps *s, int64_t id) {
    const uint64_t *slot = xpl_map_get(&s->by_id, (uint64_t)id, 0);
    return slot ? &s->v.v[*slot - 1] : NULL;
}

struct xpl_step *xpl_steps_put(struct xpl_steps *s, int64_t id) {
    bool fresh;
    uint64_t *slot = xpl_map_put(s->arena, &s->by_id, (uint64_t)id, 0, &fresh);
    if (!slot) return NULL;
    // A slot whose step could not be added keeps 0 and counts as new next time.
    if (*slot) return &s->v.v[*slot - 1];
    struct xpl_step *st = xpl_vec_push(s->arena, &s->v);
    if (!st) return NULL;
    *st = (struct xpl_step){.id = id};
    *slot = s->v.n;
    return st;
}

// ---- collecting ----

static void set_if_longer(struct xpl_timespan *to, struct xpl_timespan span) {
    if (span.duration_ps > to->duration_ps) *to = span;
}

void xpl_step_add_host_marker(struct xpl_step *st, struct xpl_timespan span) {
    set_if_longer(&st->host_marker, span);
}

static bool add_core_marker(struct xpl_step *st, uint32_t core_id, struct xpl_timespan span,
                            struct xpl_arena *arena) {
    struct xpl_core_marker **m = &st->core_markers;
    while (*m && (*m)->core_id != core_id)
        m = &(*m)->next;
    if (!*m) {
        *m = xpl_arena_zalloc(arena, sizeof **m);
        if (!*m) return false;
        (*m)->core_id = core_id;
    }
    set_if_longer(&(*m)->span, span);
    return true;
}

bool xpl_step_add_device_marker(struct xpl_step *st, uint32_t core_id, struct xpl_timespan span,
                                struct xpl_arena *arena) {
    set_if_longer(&st->device_marker, span);
    return add_core_marker(st, core_id, span, arena);
}

static struct xpl_span_list *list_of(struct xpl_step *st, enum xpl_span_type type,
                                     struct xpl_arena *arena) {
    for (struct xpl_span_list *l = st->spans; l; l = l->next)
        if (l->type == type) return l;
    struct xpl_span_list *l = xpl_arena_zalloc(arena, sizeof *l);
    if (!l) return NULL;
    l->type = type, l->next = st->spans;
    return st->spans = l;
}

static struct span_block *add_block(struct xpl_span_list *l, struct span s,
                                    struct xpl_arena *arena) {
    const struct span_block *last = l->tail;
    struct span_block *b;
    const uint32_t cap = !last                       ? FIRST_BLOCK
                         : last->cap < LARGEST_BLOCK ? last->cap * 2
                                                     : last->cap;
    const uint64_t duration = s.end - s.begin;
    uint32_t unit = s.begin % NANOSECOND == 0 && duration % NANOSECOND == 0 ? NANOSECOND : 1;
    if (s.end < s.begin || in_units(unit, duration) > UINT32_MAX) unit = 0;
    const size_t size = unit ? sizeof b->v[0] : 2 * sizeof b->v[0];
    b = xpl_arena_alloc(arena, sizeof *b + cap * size);
    if (!b) return NULL;
    *b = (struct span_block){.base = s.begin, .cap = cap, .unit = unit};
    *(l->tail ? &l->tail->next : &l->head) = b;
    return l->tail = b;
}

static bool push_span(struct xpl_span_list *l, struct span s, struct xpl_arena *arena) {
    struct span_block *b = l->tail;
    if (!b || b->n == b->cap || !write_span(b, b->n, s)) {
        b = add_block(l, s, arena);
        if (!b || !write_span(b, 0, s)) return false;
    }
    if (s.end > s.begin) l->open_block = b, l->open_at = b->n, l->open = s;
    b->n++;
    return true;
}

// Deals with a span that changes nothing, or only lengthens the open one: its kind goes on anyway
// there.  Only for the lowest kind, under which nothing can show through at the seams.
static bool absorb(struct xpl_span_list *l, struct span s) {
    if (!l->open_block || s.begin < l->open.begin || s.end < s.begin) return false;
    if (s.begin == s.end) return s.begin < l->open.end;
    if (s.begin > l->open.end) return false;
    if (s.end <= l->open.end) return true;
    const struct span longer = {l->open.begin, s.end};
    if (!write_span(l->open_block, l->open_at, longer)) return false;
    l->open = longer;
    return true;
}

bool xpl_step_add_span(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                       struct xpl_arena *arena) {
    struct xpl_span_list *l = list_of(st, type, arena);
    if (!l) return false;
    const struct span s = {span.begin_ps, xpl_timespan_end(span)};
    if (type == XPL_SPAN_HOST_WAIT_INPUT || type == XPL_SPAN_HOST_TO_DEVICE)
        st->input_ps += span.duration_ps;
    return (type == XPL_SPAN_HOST_COMPUTE && absorb(l, s)) || push_span(l, s, arena);
}

struct xpl_timespan xpl_step_open_span(const struct xpl_step *st, enum xpl_span_type type) {
    for (const struct xpl_span_list *l = st->spans; l; l = l->next)
        if (l->type == type && l->open_block)
            return (struct xpl_timespan){l->open.begin, l->open.end - l->open.begin};
    return (struct xpl_timespan){0};
}

bool xpl_step_add_union(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                        struct xpl_arena *arena) {
    struct xpl_span_list *l = list_of(st, type, arena);
    const struct span s = {span.begin_ps, xpl_timespan_end(span)};
    if (!l) return false;
    return s.end <= s.begin || absorb(l, s) || push_span(l, s, arena);
}

bool xpl_step_add_collective(struct xpl_step *st, uint32_t core_id,
                             const struct xpl_all_reduce_info *info, struct xpl_arena *arena) {
    struct xpl_core_collectives **c = &st->collectives;
    while (*c && (*c)->core_id != core_id)
        c = &(*c)->next;
    if (!*c) {
        *c = xpl_arena_zalloc(arena, sizeof **c);
        if (!*c) return false;
        (*c)->core_id = core_id;
    }
    struct xpl_all_reduce_info *slot = xpl_vec_push(arena, &(*c)->v);
    if (!slot) return false;
    *slot = *info;
    return true;
}

static struct xpl_device_memory_transfer *transfers_of(struct xpl_step *st,
                                                       struct xpl_arena *arena) {
    if (!st->transfers)
        st->transfers = xpl_arena_zalloc(arena, XPL_STEP_TRANSFERS * sizeof *st->transfers);
    return st->transfers;
}

bool xpl_step_add_transfer(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                           uint64_t bytes, struct xpl_arena *arena) {
    int i;
    if (type == XPL_SPAN_HOST_TO_DEVICE)
        i = 0;
    else if (type == XPL_SPAN_DEVICE_TO_HOST)
        i = 1;
    else if (type == XPL_SPAN_DEVICE_TO_DEVICE)
        i = 2;
    else
        return true;
    if (!transfers_of(st, arena)) return false;
    st->transfers[i].occurrence++;
    st->transfers[i].time_us += (double)span.duration_ps / 1e6;
    st->transfers[i].bytes_transferred += bytes;
    return true;
}

struct xpl_op_metrics_db *xpl_step_put_ops(struct xpl_step *st, uint32_t core_id,
                                           struct xpl_arena *arena) {
    struct xpl_core_ops **o = &st->ops;
    while (*o && (*o)->core_id != core_id)
        o = &(*o)->next;
    if (!*o) {
        *o = xpl_arena_alloc(arena, sizeof **o);
        if (!*o) return NULL;
        (*o)->next = NULL, (*o)->core_id = core_id;
    }
    (*o)->db = (struct xpl_op_metrics_db){0};
    return &(*o)->db;
}

// ---- joining ----

void xpl_step_join_spans(struct xpl_step *src, struct xpl_step *dst) {
    // Lists of different lines stay apart: each is in the order of its line, so that sorting the
    // boundaries of a step is little more than merging them.
    struct xpl_span_list **tail = &src->spans;
    while (*tail)
        tail = &(*tail)->next;
    *tail = dst->spans;
    dst->spans = src->spans;
    src->spans = NULL;
}

static bool join_cores(struct xpl_step *src, struct xpl_step *dst, struct xpl_arena *arena) {
    for (struct xpl_core_marker *m = src->core_markers; m; m = m->next)
        if (!add_core_marker(dst, m->core_id, m->span, arena)) return false;
    // Collectives of a core that `dst` already knows are dropped: upstream inserts into its map.
    for (struct xpl_core_collectives *c = src->collectives, *next; c; c = next) {
        next = c->next;
        struct xpl_core_collectives **d = &dst->collectives;
        while (*d && (*d)->core_id != c->core_id)
            d = &(*d)->next;
        if (!*d) *d = c, c->next = NULL;
    }
    for (struct xpl_core_ops *o = src->ops; o; o = o->next) {
        struct xpl_op_metrics_db *db = xpl_step_put_ops(dst, o->core_id, arena);
        if (!db) return false;
        *db = o->db;
    }
    return true;
}

static bool join_step(struct xpl_step *src, struct xpl_step *dst, struct xpl_arena *arena) {
    set_if_longer(&dst->host_marker, src->host_marker);
    set_if_longer(&dst->device_marker, src->device_marker);
    dst->input_ps += src->input_ps;
    if (!dst->name.len) dst->name = src->name;
    xpl_step_join_spans(src, dst);
    if (src->transfers && !dst->transfers) {
        dst->transfers = src->transfers;
    } else if (src->transfers) {
        for (int i = 0; i < XPL_STEP_TRANSFERS; i++) {
            dst->transfers[i].occurrence += src->transfers[i].occurrence;
            dst->transfers[i].bytes_transferred += src->transfers[i].bytes_transferred;
            dst->transfers[i].time_us += src->transfers[i].time_us;
        }
    }
    return join_cores(src, dst, arena);
}

bool xpl_steps_union(struct xpl_steps *src, struct xpl_steps *dst) {
    for (size_t i = 0; i < src->v.n; i++) {
        struct xpl_step *d = xpl_steps_put(dst, src->v.v[i].id);
        if (!d || !join_step(&src->v.v[i], d, dst->arena)) return false;
    }
    return true;
}

bool xpl_steps_intersect(struct xpl_steps *src, struct xpl_steps *dst) {
    if (dst->v.n == 0) return xpl_steps_union(src, dst);
    struct xpl_steps both;
    xpl_steps_init(&both, dst->arena);
    for (size_t i = 0; i < dst->v.n; i++) {
        struct xpl_step *s = xpl_steps_find(src, dst->v.v[i].id);
        if (!s) continue;
        struct xpl_step *d = xpl_steps_put(&both, s->id);
        if (!d) return false;
        *d = dst->v.v[i];
        if (!join_step(s, d, dst->arena)) return false;
    }
    *dst = both;
    return true;
}

// ---- time of a step ----

struct xpl_timespan xpl_step_time(const struct xpl_step *st) {
    if (st->device_marker.begin_ps == 0 && st->device_marker.duration_ps == 0)
        return st->host_marker;
    if (xpl_timespan_includes(st->host_marker, st->device_marker)) return st->host_marker;
    return st->device_marker;
}

static const struct xpl_core_marker *core_marker(const struct xpl_step *st, uint32_t core_id) {
    const struct xpl_core_marker *m = st->core_markers;
    while (m && m->core_id != core_id)
        m = m->next;
    return m;
}

bool xpl_step_has_marker(const struct xpl_step *st, uint32_t core_id) {
    return core_marker(st, core_id) != NULL;
}

struct xpl_timespan xpl_step_time_on_core(const struct xpl_step *st, uint32_t core_id) {
    const struct xpl_core_marker *m = core_marker(st, core_id);
    return m ? m->span : (struct xpl_timespan){0};
}

// ---- removing overlaps ----

// Begin or end of a span.  `key` orders what happens at one instant: ends before begins, and of
// either the higher kind first.
struct boundary {
    uint64_t time;
    uint32_t key;
};
enum { KEY_BEGIN = 32 };

static uint32_t end_key(enum xpl_span_type type) {
    return (uint32_t)(XPL_SPAN_TYPES - 1) - (uint32_t)type / 10;
}

static bool boundary_after(const struct boundary *a, const struct boundary *b) {
    return a->time != b->time ? a->time > b->time : a->key > b->key;
}

static struct boundary *add_boundaries(const struct xpl_span_list *l, struct boundary *out) {
    const uint32_t end = end_key(l->type), begin = KEY_BEGIN + end;
    for (const struct span_block *b = l->head; b; b = b->next)
        for (uint32_t i = 0; i < b->n; i++) {
            const struct span s = read_span(b, i);
            const bool instant = s.begin == s.end;
            *out++ = (struct boundary){s.begin, instant ? end : begin};
            *out++ = (struct boundary){s.end, instant ? begin : end};
        }
    return out;
}

static size_t run_end(const struct boundary *v, size_t i, size_t n) {
    for (i++; i < n && !boundary_after(&v[i - 1], &v[i]); i++) {
    }
    return i;
}

// Merges neighbouring ascending runs until one is left: the lists are sorted already, or nearly.
static const struct boundary *sort_boundaries(struct boundary *v, struct boundary *tmp, size_t n) {
    for (;;) {
        size_t out = 0, runs = 0;
        for (size_t i = 0; i < n; runs++) {
            const size_t mid = run_end(v, i, n);
            if (runs == 0 && mid == n) return v;
            const size_t end = mid < n ? run_end(v, mid, n) : n;
            size_t a = i, b = mid;
            while (a < mid && b < end)
                tmp[out++] = boundary_after(&v[a], &v[b]) ? v[b++] : v[a++];
            while (a < mid)
                tmp[out++] = v[a++];
            while (b < end)
                tmp[out++] = v[b++];
            i = end;
        }
        struct boundary *const swap = v;
        v = tmp, tmp = swap;
    }
}

// The kind that owns what follows boundary `b`.  An instant ends before it begins, so its count
// ends at 0 while its kind has become the current one and stays so until something of at least
// that kind ends: upstream does the same (PriorityTracker).
static uint32_t track(const struct boundary *b, int64_t count[XPL_SPAN_TYPES], uint32_t current) {
    const bool begins = b->key >= KEY_BEGIN;
    const uint32_t type = XPL_SPAN_TYPES - 1 - (begins ? b->key - KEY_BEGIN : b->key);
    if (begins) {
        count[type]++;
        return type > current ? type : current;
    }
    count[type]--;
    if (type != current || count[type] != 0) return current;
    while (type > 0 && current > 0)
        if (count[--current] > 0) break;
    return current;
}

// ---- spans by time ----

// Disjoint spans of one kind, ascending; `begins` has the first begin of each block.
struct indexed_list {
    uint8_t type; // / 10
    size_t n_blocks;
    const struct span_block **blocks;
};
struct xpl_span_index {
    XPL_VEC(struct indexed_list) lists;
};

static bool is_ascending(const struct xpl_span_list *l) {
    uint64_t last = 0;
    for (const struct span_block *b = l->head; b; b = b->next)
        for (uint32_t i = 0; i < b->n; i++) {
            const struct span s = read_span(b, i);
            if (s.begin < last) return false;
            last = s.end;
        }
    return true;
}

static int by_begin(const void *pa, const void *pb) {
    const struct span *a = pa, *b = pb;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

// The same spans in order and merged: for lines whose events are not.
static bool sort_list(const struct xpl_span_list *l, struct xpl_arena *arena,
                      struct xpl_span_list *ret) {
    size_t n = 0, k = 0;
    for (const struct span_block *b = l->head; b; b = b->next)
        n += b->n;
    struct span *v = xpl_arena_array(arena, n, sizeof *v);
    if (!v) return false;
    for (const struct span_block *b = l->head; b; b = b->next)
        for (uint32_t i = 0; i < b->n; i++)
            v[k++] = read_span(b, i);
    qsort(v, n, sizeof *v, by_begin);
    *ret = (struct xpl_span_list){.type = l->type};
    for (size_t i = 0; i < n; i++) {
        for (; i + 1 < n && v[i + 1].begin <= v[i].end; i++) {
            v[i + 1].begin = v[i].begin;
            if (v[i].end > v[i + 1].end) v[i + 1].end = v[i].end;
        }
        if (!push_span(ret, v[i], arena)) return false;
    }
    return true;
}

bool xpl_span_index_make(const struct xpl_step *st, struct xpl_arena *arena,
                         struct xpl_span_index **ret) {
    struct xpl_span_index *index = xpl_arena_zalloc(arena, sizeof *index);
    if (!index) return false;
    for (const struct xpl_span_list *l = st->spans; l; l = l->next) {
        struct xpl_span_list sorted = *l;
        struct indexed_list *slot = xpl_vec_push(arena, &index->lists);
        if (!slot || (!is_ascending(l) && !sort_list(l, arena, &sorted))) return false;
        *slot = (struct indexed_list){.type = (uint8_t)(l->type / 10)};
        for (const struct span_block *b = sorted.head; b; b = b->next)
            slot->n_blocks++;
        slot->blocks = xpl_arena_array(arena, slot->n_blocks, sizeof *slot->blocks);
        if (!slot->blocks) return false;
        size_t i = 0;
        for (const struct span_block *b = sorted.head; b; b = b->next)
            slot->blocks[i++] = b;
    }
    *ret = index;
    return true;
}

// Boundaries of what of the list lies inside [begin, end]; only counted where `out` is NULL.
static size_t add_overlap(const struct indexed_list *l, uint64_t begin, uint64_t end,
                          struct boundary *out) {
    size_t lo = 0, hi = l->n_blocks, n = 0;
    while (hi - lo > 1) { // the last block that begins before
        const size_t mid = lo + (hi - lo) / 2;
        if (read_span(l->blocks[mid], 0).begin <= begin)
            lo = mid;
        else
            hi = mid;
    }
    const uint32_t key = (uint32_t)(XPL_SPAN_TYPES - 1) - l->type;
    for (; lo < l->n_blocks; lo++)
        for (uint32_t i = 0; i < l->blocks[lo]->n; i++) {
            const struct span s = read_span(l->blocks[lo], i);
            if (s.begin >= end) return n;
            if (s.end <= begin) continue;
            if (out) {
                out[n] = (struct boundary){s.begin > begin ? s.begin : begin, KEY_BEGIN + key};
                out[n + 1] = (struct boundary){s.end < end ? s.end : end, key};
            }
            n += 2;
        }
    return n;
}

static size_t add_overlaps(const struct xpl_span_index *more, struct xpl_timespan within,
                           struct boundary *out) {
    size_t n = 0;
    for (size_t i = 0; more && within.duration_ps && i < more->lists.n; i++)
        n += add_overlap(&more->lists.v[i], within.begin_ps, xpl_timespan_end(within),
                         out ? out + n : NULL);
    return n;
}

bool xpl_step_sum_spans(const struct xpl_step *st, struct xpl_timespan within,
                        struct xpl_arena *scratch, struct xpl_span_sums *ret) {
    return xpl_step_sum_spans_and(st, NULL, within, scratch, ret);
}

bool xpl_step_sum_spans_and(const struct xpl_step *st, const struct xpl_span_index *more,
                            struct xpl_timespan within, struct xpl_arena *scratch,
                            struct xpl_span_sums *ret) {
    *ret = (struct xpl_span_sums){0};
    size_t n = add_overlaps(more, within, NULL);
    for (const struct xpl_span_list *l = st->spans; l; l = l->next)
        for (const struct span_block *b = l->head; b; b = b->next)
            n += 2u * b->n;
    if (n == 0) return true;
    struct boundary *v = xpl_arena_array(scratch, n, sizeof *v);
    struct boundary *tmp = xpl_arena_array(scratch, n, sizeof *tmp);
    if (!v || !tmp) return false;
    struct boundary *end = v;
    for (const struct xpl_span_list *l = st->spans; l; l = l->next)
        end = add_boundaries(l, end);
    add_overlaps(more, within, end);
    const struct boundary *sorted = sort_boundaries(v, tmp, n);
    int64_t count[XPL_SPAN_TYPES] = {0};
    uint32_t current = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        current = track(&sorted[i], count, current);
        const uint64_t from = sorted[i].time, to = sorted[i + 1].time;
        ret->present |= 1u << current;
        ret->ps[current] += xpl_timespan_overlap(within, from, to);
        ret->total[current] += to - from;
    }
    return true;
}

void xpl_step_sum_overlapped(const struct xpl_step *st, struct xpl_timespan within,
                             struct xpl_span_sums *ret) {
    *ret = (struct xpl_span_sums){0};
    for (const struct xpl_span_list *l = st->spans; l; l = l->next)
        for (const struct span_block *b = l->head; b; b = b->next)
            for (uint32_t i = 0; i < b->n; i++) {
                const uint32_t type = (uint32_t)l->type / 10;
                const struct span s = read_span(b, i);
                ret->present |= 1u << type;
                ret->ps[type] += xpl_timespan_overlap(within, s.begin, s.end);
                ret->total[type] += s.end - s.begin;
            }
}
