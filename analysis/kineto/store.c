// SPDX-License-Identifier: Apache-2.0
// The stored parts of a trace: numbered texts, events, and their stats.
#include <stdatomic.h>
#include <string.h>

#include "analysis/kineto/impl.h"
#include "analysis/wire/wire.h"
#include "analysis/wire/writer.h"

enum {
    MOST_STATS = 2 << 20, // bytes of an event
    FULL = MOST_STATS - (128 << 10),
    LARGEST_CHUNK = 1 << 20,
    FIRST_ROOM = 4096,
    FIRST_EVENTS = 2,
    FIRST_TEXTS = 256,
    KIND_BITS = 3, // of enum stat_kind
    VARINT = 10,   // bytes at most
};

bool xpl_kineto_take(struct trace *t, size_t n) {
    const size_t left = atomic_load_explicit(&t->budget.left, memory_order_relaxed);
    const bool has = n <= left;
    // A refusal takes the rest as well: the import ends, and 0 left tells it why.
    atomic_store_explicit(&t->budget.left, has ? left - n : 0, memory_order_relaxed);
    return has;
}

void xpl_kineto_give(struct trace *t, size_t n) {
    (void)atomic_fetch_add_explicit(&t->budget.left, n, memory_order_relaxed);
}

bool xpl_kineto_cancelled(struct trace *t) {
    if (!t->cancelled && t->options->exec) t->cancelled = xpl_exec_cancelled(t->options->exec);
    return t->cancelled;
}

xpl_status_t xpl_kineto_failure(struct trace *t) {
    enum { BLOCK = 2 << 20 }; // an arena asks for about so much
    if (t->cancelled) XPL_RETURN_ERROR(t->err, XPL_CANCELLED, "cancelled");
    if (atomic_load_explicit(&t->budget.left, memory_order_relaxed) < BLOCK)
        XPL_RETURN_ERROR(t->err, XPL_RESOURCE_EXHAUSTED,
                         "the trace takes more than %zu bytes of memory, the limit",
                         t->options->max_bytes);
    XPL_RETURN_OOM(t->err, "PyTorch trace");
}

// ---- texts ----

static bool grow_texts(struct trace *t, uint32_t id) {
    size_t cap = t->text_cap ? t->text_cap : FIRST_TEXTS;
    while (cap <= id)
        cap *= 2;
    if (!xpl_kineto_take(t, (cap - t->text_cap) * (1 + sizeof *t->text_next))) return false;
    uint8_t *const p = xpl_sys_realloc(t->text_used, cap);
    if (!p) return false;
    memset(p + t->text_cap, 0, cap - t->text_cap);
    t->text_used = p;
    uint32_t *const next = xpl_sys_realloc(t->text_next, cap * sizeof *next);
    if (!next) return false;
    memset(next + t->text_cap, 0, (cap - t->text_cap) * sizeof *next);
    t->text_next = next;
    t->text_cap = cap;
    return true;
}

uint32_t xpl_kineto_text(struct trace *t, xpl_str_t text) {
    xpl_strid_t id;
    if (!xpl_intern_put(t->texts, text, &id)) return 0;
    if (id.v >= t->text_cap && !grow_texts(t, id.v)) return 0;
    if (id.v > t->last_text) t->last_text = id.v;
    return id.v;
}

bool xpl_kineto_text_within(struct trace *t, uint32_t *left, xpl_str_t text, uint32_t *ret) {
    const uint32_t cost = 1 + (uint32_t)(text.len / XPL_KINETO_TEXT_BYTES);
    xpl_strid_t id = {TEXT_NONE};
    if (*left < cost) {
        (void)xpl_intern_find(t->texts, text, &id);
        *ret = id.v;
        return true;
    }
    const uint32_t last = t->last_text;
    *ret = xpl_kineto_text(t, text);
    if (*ret > last) *left -= cost;
    return *ret != 0;
}

uint32_t xpl_kineto_text_after(struct trace *t, uint32_t before, xpl_str_t text) {
    const uint32_t guess = t->text_next[before];
    if (guess && xpl_str_eq_short(xpl_kineto_text_of(t, guess), text)) return guess;
    const uint32_t id = xpl_kineto_text(t, text);
    if (id) t->text_next[before] = id;
    return id;
}

bool xpl_kineto_init(struct trace *t) {
    static const xpl_str_t known[] = {
#define ROW(e, name) {"" name, sizeof(name) - 1},
        XPL_KINETO_TEXTS(ROW)
#undef ROW
    };
    t->values_left = t->calls_left = XPL_KINETO_MAX_TEXTS;
    xpl_buf_init(&t->scratch, SIZE_MAX / 2);
    xpl_arena_budget_init(&t->budget, t->options->max_bytes);
    xpl_arena_init_part(&t->arena, &t->budget);
    xpl_arena_init_part(&t->links, &t->budget);
    t->names = xpl_intern_new(&t->arena, xpl_hash_seed());
    t->texts = xpl_intern_new(&t->arena, xpl_hash_seed());
    t->categories = xpl_intern_new(&t->arena, xpl_hash_seed());
    if (!t->names || !t->texts || !t->categories) return false;
    for (uint32_t i = 0; i < sizeof known / sizeof *known; i++)
        if (xpl_kineto_text(t, known[i]) != i + 1) return false;
    return true;
}

xpl_str_t xpl_kineto_text_of(const struct trace *t, uint32_t text) {
    return xpl_intern_get(t->texts, (xpl_strid_t){text});
}

// ---- stats ----

static bool add_chunk(struct trace *t, size_t size) {
    struct store *const s = &t->store;
    if (s->n == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 16;
        if (!xpl_kineto_take(t, (cap - s->cap) * sizeof *s->chunks)) return false;
        struct chunk *const v = xpl_sys_realloc(s->chunks, cap * sizeof *v);
        if (!v) return false;
        s->chunks = v;
        s->cap = cap;
    }
    uint8_t *const p = xpl_kineto_take(t, size) ? xpl_sys_alloc(size) : NULL;
    if (!p) return false;
    s->chunks[s->n++] = (struct chunk){.p = p};
    return true;
}

// Room for n bytes in a chunk of the row.  Each new one is as large as all before it, up to a
// limit: a trace may have very many rows.
static bool make_room(struct trace *t, struct row *r, size_t n) {
    if (r->chunk && r->size - r->used >= n) return true;
    size_t size = r->total < LARGEST_CHUNK ? r->total : LARGEST_CHUNK;
    if (size < n) size = n;
    if (t->store.n >= XPL_KINETO_MAX_CHUNKS || !add_chunk(t, size)) return false;
    r->chunk = (uint32_t)t->store.n;
    r->used = 0;
    r->size = size;
    r->total += size;
    return true;
}

bool xpl_kineto_is_full(const struct trace *t) {
    return t->store.used > FULL;
}

// Room for n bytes behind the last ones; NULL without memory.
static uint8_t *room(struct trace *t, size_t n) {
    struct store *const s = &t->store;
    if (s->room - s->used >= n) return s->open + s->used;
    size_t room = s->room ? s->room : FIRST_ROOM;
    while (room - s->used < n && room < MOST_STATS)
        room *= 2;
    if (room - s->used < n || !xpl_kineto_take(t, room - s->room)) return NULL;
    uint8_t *const p = xpl_sys_realloc(s->open, room);
    if (!p) return NULL;
    s->open = p;
    s->room = room;
    return p + s->used;
}

void xpl_kineto_begin_stats(struct trace *t) {
    t->store.used = 0;
    t->store.n_open = 0;
}

bool xpl_kineto_put_number(struct trace *t, uint32_t name, enum stat_kind kind, uint64_t v) {
    uint8_t *p = room(t, 2 * VARINT);
    if (!p) return false;
    p = xpl_varint_put(xpl_varint_put(p, (uint64_t)name << KIND_BITS | kind), v);
    t->store.used = (size_t)(p - t->store.open);
    t->store.n_open++;
    return true;
}

bool xpl_kineto_put_int(struct trace *t, uint32_t name, int64_t v) {
    return xpl_kineto_put_number(t, name, STAT_INT, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static bool put_bytes(struct trace *t, const void *v, size_t n) {
    uint8_t *const p = room(t, n);
    if (!p) return false;
    if (n) memcpy(p, v, n);
    t->store.used += n;
    return true;
}

bool xpl_kineto_put_double(struct trace *t, uint32_t name, double v) {
    return xpl_kineto_put_number(t, name, STAT_DOUBLE, sizeof v) && put_bytes(t, &v, sizeof v);
}

bool xpl_kineto_put_str(struct trace *t, uint32_t name, xpl_str_t v) {
    return xpl_kineto_put_number(t, name, STAT_STR, v.len) && put_bytes(t, v.ptr, v.len);
}

bool xpl_kineto_end_stats(struct trace *t, struct row *r, struct event *e) {
    struct store *const s = &t->store;
    uint8_t head[2 * VARINT];
    const size_t n = (size_t)(xpl_varint_put(xpl_varint_put(head, s->n_open), s->used) - head);
    e->chunk = 0;
    if (!s->used) return true;
    if (!make_room(t, r, n + s->used)) return false;
    struct chunk *const c = &s->chunks[r->chunk - 1];
    memcpy(c->p + r->used, head, n);
    memcpy(c->p + r->used + n, s->open, s->used);
    e->chunk = r->chunk & XPL_KINETO_MAX_CHUNKS;
    e->offset = (uint32_t)r->used;
    r->used += n + s->used;
    c->left++;
    return true;
}

static uint64_t next_varint(struct stats *s) {
    const struct xpl_varint v = xpl_varint_wide(s->p, s->p + s->size);
    s->size -= (size_t)(v.p - s->p);
    s->p = v.p;
    return v.v;
}

struct stats xpl_kineto_stats(const struct trace *t, const struct event *e) {
    if (!e->chunk) return (struct stats){.n = 0};
    const uint8_t *const p = t->store.chunks[e->chunk - 1].p + e->offset;
    const struct xpl_varint n = xpl_varint_read(p, p + VARINT),
                            size = xpl_varint_read(n.p, n.p + VARINT);
    return (struct stats){.p = size.p, .size = size.v, .n = (uint32_t)n.v};
}

bool xpl_kineto_next_stat(struct stats *s, struct stat *ret) {
    if (!s->size) return false;
    const uint64_t key = next_varint(s);
    ret->name = (uint32_t)(key >> KIND_BITS);
    ret->kind = (enum stat_kind)(key & ((1u << KIND_BITS) - 1));
    ret->number = next_varint(s);
    if (ret->kind == STAT_INT) ret->number = ret->number >> 1 ^ (0 - (ret->number & 1));
    if (ret->kind != STAT_STR && ret->kind != STAT_DOUBLE) return true;
    ret->text = (xpl_str_t){(const char *)s->p, (size_t)ret->number};
    s->p += ret->text.len;
    s->size -= ret->text.len;
    return true;
}

void xpl_kineto_release_stats(struct trace *t, const struct event *e) {
    struct chunk *const c = e->chunk ? &t->store.chunks[e->chunk - 1] : NULL;
    if (!c || --c->left) return;
    xpl_sys_free(c->p);
    c->p = NULL;
}

bool xpl_kineto_add_stats(struct trace *t, struct row *r, struct event *e) {
    const struct event before = *e;
    const struct stats had = xpl_kineto_stats(t, e);
    if (!t->store.used || t->store.used + had.size > FULL) return true;
    t->store.n_open += had.n;
    if (!put_bytes(t, had.p, had.size) || !xpl_kineto_end_stats(t, r, e)) return false;
    xpl_kineto_release_stats(t, &before);
    return true;
}

// ---- events ----

struct event *xpl_kineto_push(struct trace *t, struct row *r) {
    if (r->n == r->cap) {
        const size_t cap = r->cap ? 2 * r->cap : FIRST_EVENTS;
        if (t->n_events >= UINT32_MAX || !xpl_kineto_take(t, (cap - r->cap) * sizeof *r->events))
            return NULL;
        struct event *const v = xpl_sys_realloc(r->events, cap * sizeof *v);
        if (!v) return NULL;
        r->events = v;
        r->cap = cap;
    }
    t->n_events++;
    return &r->events[r->n++];
}

void xpl_kineto_fini(struct trace *t) {
    for (size_t i = 0; i < t->rows.n; i++)
        xpl_sys_free(t->rows.v[i].events);
    for (size_t i = 0; i < t->store.n; i++)
        xpl_sys_free(t->store.chunks[i].p);
    xpl_sys_free(t->store.chunks);
    xpl_sys_free(t->store.open);
    xpl_sys_free(t->text_used);
    xpl_sys_free(t->text_next);
    xpl_buf_fini(&t->scratch);
    xpl_arena_fini(&t->links);
    xpl_arena_fini(&t->arena);
}
