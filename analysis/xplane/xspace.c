#include "analysis/xplane/xspace.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "analysis/xplane/impl.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/exec.h"
#include "base/map.h"
#include "base/vec.h"

// Events between two marks of the chunk index: small enough to share a line among many threads,
// large enough that the index is nothing beside the events.
enum { CHUNK_EVENTS = 4096 };

struct open_ctx {
    struct xpl_xspace *xs;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct xpl_error *err;
    struct xpl_arena temp;
    XPL_VEC(struct xpl_line *) lines; // of all planes, to be indexed
    struct xpl_id_table *no_ids;      // what planes without metadata share
    struct xpl_event_md *no_event_md;
    struct xpl_stat_md *no_stat_md;
};

static uint64_t offset_of(const struct open_ctx *c, const uint8_t *p) {
    return (uint64_t)(p - c->xs->bytes.ptr);
}

static xpl_status_t broken(const struct open_ctx *c, const char *message, const uint8_t *at) {
    const uint64_t off = offset_of(c, at);
    XPL_RETURN_ERROR_AT(c->err, XPL_DATA_LOSS, off,
                        "truncated or corrupt profile: bad field in %s at byte %" PRIu64 " of %zu",
                        message, off, c->xs->bytes.len);
}

static xpl_status_t no_memory(const struct open_ctx *c) {
    XPL_RETURN_OOM(c->err, "profile index");
}

// ---- lines ----

// Lines are indexed together once all are known, side by side where the exec has threads.

// Marks of a line while they are made; as many as its length allows for.
struct chunk_list {
    struct xpl_event_chunk *v;
    size_t n, cap;
};

static void add_chunk(struct chunk_list *l, const uint8_t *p, uint64_t first) {
    if (l->n < l->cap) l->v[l->n++] = (struct xpl_event_chunk){p, first};
}

// The events from w->p on, while they are one after another.
static void index_run(struct xpl_wire *w, uint64_t *n_events, struct chunk_list *chunks) {
    const uint8_t *p = w->p, *const end = w->end;
    uint64_t n = *n_events;
    while (p != end && *p == XPL_TAG_FIELD4_LEN) {
        const struct xpl_varint len = end - p > 1 && p[1] < 0x80 ? (struct xpl_varint){p + 2, p[1]}
                                                                 : xpl_varint_slow(p + 1, end);
        if (XPL_UNLIKELY(!len.p) || XPL_UNLIKELY(len.v > (uint64_t)(end - len.p))) break;
        if (XPL_UNLIKELY(n % CHUNK_EVENTS == 0) && n > 0) add_chunk(chunks, p, n);
        n++;
        p = len.p + len.v;
    }
    *n_events = n;
    w->p = p;
}

static void set_line_field(struct xpl_line *line, const struct xpl_field *f) {
    if (f->type == XPL_WIRE_VARINT) {
        switch (f->num) {
            case XLINE_ID: line->id = (int64_t)f->u; break;
            case XLINE_TIMESTAMP_NS: line->timestamp_ns = (int64_t)f->u; break;
            case XLINE_DURATION_PS: line->duration_ps = (int64_t)f->u; break;
            case XLINE_DISPLAY_ID: line->display_id = (int64_t)f->u; break;
            default: break;
        }
    } else if (f->type == XPL_WIRE_LEN) {
        if (f->num == XLINE_NAME) line->name = xpl_wire_str(f);
        if (f->num == XLINE_DISPLAY_NAME) line->display_name = xpl_wire_str(f);
    }
}

// One pass over the line: its own fields, and the framing of its events.  Where it is broken, or
// NULL.  line->chunks has room for max_chunks.
static const uint8_t *index_line(struct xpl_line *line, size_t max_chunks,
                                 struct xpl_event_chunk *v) {
    struct xpl_wire w = xpl_wire_begin(line->message);
    struct chunk_list chunks = {.v = v, .cap = max_chunks};
    add_chunk(&chunks, w.p, 0); // the first chunk begins with the message
    for (;;) {
        index_run(&w, &line->n_events, &chunks);
        struct xpl_field f;
        const enum xpl_wire_result r = xpl_wire_next(&w, &f);
        if (r == XPL_WIRE_END) break;
        if (r == XPL_WIRE_MALFORMED) return w.p;
        set_line_field(line, &f);
        // A tag of more bytes than needed; rare enough to have no place in the chunk index.
        if (f.num == XLINE_EVENTS && f.type == XPL_WIRE_LEN) line->n_events++;
    }
    if (line->display_id == 0) line->display_id = line->id;
    line->chunks = v;
    line->n_chunks = line->n_events == 0 ? 0 : chunks.n > 1 ? (uint32_t)chunks.n : 1;
    return NULL;
}

// An event takes two bytes at least.  Short lines are not cut.
static size_t max_chunks(const struct xpl_line *line) {
    return line->message.len > CHUNK_EVENTS * 2 ? line->message.len / 2 / CHUNK_EVENTS + 1 : 0;
}

struct line_job {
    struct open_ctx *c;
    struct xpl_event_chunk **chunks; // by line
    const uint8_t **bad;             // by line: where it is broken
    atomic_size_t next;
};

static void index_lines_here(void *ctx, size_t shard) {
    struct line_job *const job = ctx;
    struct open_ctx *const c = job->c;
    (void)shard;
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= c->lines.n || (c->exec && xpl_exec_cancelled(c->exec))) return;
        job->bad[i] = index_line(c->lines.v[i], max_chunks(c->lines.v[i]), job->chunks[i]);
    }
}

// Below so many bytes another thread is not worth waking.
enum { PARALLEL_BYTES = 1 << 20 };

// The first broken line in the order of the file is told.
static xpl_status_t index_lines(struct open_ctx *c) {
    struct line_job job = {.c = c};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena temp;
    xpl_arena_init(&temp, c->arena->limit);
    job.chunks = xpl_arena_array(&temp, c->lines.n, sizeof *job.chunks);
    job.bad = xpl_arena_zalloc(&temp, c->lines.n * sizeof *job.bad);
    if (!job.chunks || !job.bad) return no_memory(c);
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->lines.n; i++) {
        const size_t most = max_chunks(c->lines.v[i]);
        job.chunks[i] = most ? xpl_arena_array(c->arena, most, sizeof **job.chunks) : NULL;
        if (most && !job.chunks[i]) return no_memory(c);
        bytes += c->lines.v[i]->message.len;
    }
    atomic_init(&job.next, 0);
    if (c->exec && bytes > PARALLEL_BYTES)
        xpl_exec_run(c->exec, c->exec->width < c->lines.n ? c->exec->width : c->lines.n,
                     index_lines_here, &job);
    else
        index_lines_here(&job, 0);
    if (c->exec && xpl_exec_cancelled(c->exec))
        XPL_RETURN_ERROR(c->err, XPL_CANCELLED, "cancelled");
    for (size_t i = 0; i < c->lines.n; i++)
        if (job.bad[i]) return broken(c, "XLine", job.bad[i]);
    return XPL_OK;
}

// ---- metadata ----

// Entry of a map<int64, message>.
static xpl_status_t read_entry(struct open_ctx *c, xpl_bytes_t entry, int64_t *ret_key,
                               xpl_bytes_t *ret_value) {
    struct xpl_wire w = xpl_wire_begin(entry);
    struct xpl_field f;
    enum xpl_wire_result r;
    int64_t key = 0;
    xpl_bytes_t value = {0};
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num == 1 && f.type == XPL_WIRE_VARINT) key = (int64_t)f.u;
        if (f.num == 2 && f.type == XPL_WIRE_LEN) value = f.len;
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "a metadata entry", w.p);
    *ret_key = key;
    *ret_value = value;
    return XPL_OK;
}

static xpl_status_t read_event_md(struct open_ctx *c, xpl_bytes_t entry, struct xpl_event_md *md) {
    *md = (struct xpl_event_md){0};
    XPL_TRY(read_entry(c, entry, &md->id, &md->message));
    struct xpl_wire w = xpl_wire_begin(md->message);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num == XEVENT_MD_CHILD_ID) md->has_children = true;
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == XEVENT_MD_NAME) md->name = xpl_wire_str(&f);
        if (f.num == XEVENT_MD_DISPLAY_NAME) md->display_name = xpl_wire_str(&f);
        if (f.num == XEVENT_MD_STATS) md->has_stats = true;
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XEventMetadata", w.p);
    md->type = xpl_event_type_find(md->name);
    return XPL_OK;
}

static xpl_status_t read_stat_md(struct open_ctx *c, xpl_bytes_t entry, struct xpl_stat_md *md) {
    xpl_bytes_t value;
    *md = (struct xpl_stat_md){0};
    XPL_TRY(read_entry(c, entry, &md->id, &value));
    struct xpl_wire w = xpl_wire_begin(value);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == XSTAT_MD_NAME && f.type == XPL_WIRE_LEN) md->name = xpl_wire_str(&f);
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XStatMetadata", w.p);
    md->type = xpl_stat_type_find(md->name);
    return XPL_OK;
}

// ---- ids ----

// Ids of metadata arrays, whichever struct they are in: the id is the first member of both.
struct id_list {
    uint8_t *first; // element 1
    size_t stride;
    uint32_t n;
};

static uint64_t id_at(const struct id_list *l, uint32_t pos) {
    uint64_t id;
    memcpy(&id, l->first + (pos - 1) * l->stride, sizeof id);
    return id;
}
_Static_assert(offsetof(struct xpl_event_md, id) == 0 && offsetof(struct xpl_stat_md, id) == 0,
               "id_at reads the first member");

static struct xpl_id_table *new_table(struct xpl_arena *arena, const struct id_list *l) {
    uint64_t most = 0;
    for (uint32_t i = 1; i <= l->n; i++)
        if (id_at(l, i) > most) most = id_at(l, i);
    struct xpl_id_table *const t = xpl_arena_zalloc(arena, sizeof *t);
    if (!t) return NULL;
    t->hashed = most >= (uint64_t)l->n * 4 + 64;
    t->size = most + 1;
    if (t->hashed) {
        t->seed = xpl_hash_seed();
        for (t->size = 16; t->size < (uint64_t)l->n * 2; t->size *= 2)
            continue;
    }
    t->slots = xpl_arena_array(arena, t->size, sizeof *t->slots);
    if (!t->slots) return NULL;
    memset(t->slots, 0, t->size * sizeof *t->slots);
    return t;
}

// The slot of `id`, empty (0) when it is new.
static uint32_t *slot_of(const struct xpl_id_table *t, const struct id_list *l, uint64_t id) {
    if (!t->hashed) return &t->slots[id];
    uint64_t i = xpl_id_hash(t, id);
    while (t->slots[i] && id_at(l, t->slots[i]) != id)
        i = (i + 1) & (t->size - 1);
    return &t->slots[i];
}

// Fills the table and removes duplicates: the last entry of an id takes the place of the first,
// except that one marked in `strong` (may be NULL) gives way to another such entry only.
static void fill_table(struct xpl_id_table *t, struct id_list *l, bool *strong) {
    uint32_t kept = 0;
    for (uint32_t i = 1; i <= l->n; i++) {
        const uint8_t *const entry = l->first + (i - 1) * l->stride;
        uint32_t *const slot = slot_of(t, l, id_at(l, i));
        if (*slot == 0)
            *slot = ++kept;
        else if (strong && strong[*slot] && !strong[i])
            continue;
        uint8_t *const to = l->first + (*slot - 1) * l->stride;
        if (to != entry) memcpy(to, entry, l->stride);
        if (strong) strong[*slot] = strong[i];
    }
    l->n = kept;
}

static xpl_status_t index_event_ids(struct open_ctx *c, struct xpl_plane *p, bool *strong) {
    struct id_list list = {(uint8_t *)&p->event_md[1], sizeof *p->event_md, p->n_event_md - 1};
    struct xpl_id_table *const t = list.n ? new_table(c->arena, &list) : c->no_ids;
    if (!t) return no_memory(c);
    if (list.n) fill_table(t, &list, strong);
    p->n_event_md = list.n + 1;
    p->event_ids = t;
    return XPL_OK;
}

static xpl_status_t index_stat_ids(struct open_ctx *c, struct xpl_plane *p) {
    struct id_list list = {(uint8_t *)&p->stat_md[1], sizeof *p->stat_md, p->n_stat_md - 1};
    struct xpl_id_table *const t = list.n ? new_table(c->arena, &list) : c->no_ids;
    if (!t) return no_memory(c);
    if (list.n) fill_table(t, &list, NULL);
    p->n_stat_md = list.n + 1;
    p->stat_ids = t;
    return XPL_OK;
}

// ---- HLO ids of "/host:metadata" (XProf: utils/xplane_hlo_fixer.cc) ----

// The number of a name "...(123)".
static bool trailing_number(xpl_str_t name, int64_t *ret) {
    if (name.len < 3 || name.ptr[name.len - 1] != ')') return false;
    size_t i = name.len - 1;
    uint64_t v = 0, scale = 1;
    bool overflow = false;
    for (; i > 0 && name.ptr[i - 1] >= '0' && name.ptr[i - 1] <= '9'; i--) {
        const uint64_t digit = (uint64_t)(name.ptr[i - 1] - '0');
        uint64_t add = 0;
        overflow |= digit && (!scale || __builtin_mul_overflow(digit, scale, &add));
        overflow |= __builtin_add_overflow(v, add, &v);
        if (scale && __builtin_mul_overflow(scale, 10, &scale)) scale = 0;
    }
    if (overflow || i == name.len - 1 || i == 0 || name.ptr[i - 1] != '(') return false;
    if (memchr(name.ptr, '\n', name.len)) return false; // the pattern's dot
    *ret = (int64_t)v;
    return true;
}

// Programs are found by the id of their metadata; some writers number them otherwise and give the
// program's id in the name only.  Corrected entries win over others of the same id.
static xpl_status_t fix_hlo_ids(struct open_ctx *c, struct xpl_plane *p) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (xpl_str_eq(p->stat_md[i].name, XPL_STR("HLO Proto"))) {
            p->stat_md[i].name = xpl_stat_type_name(XPL_STAT_HLO_PROTO);
            p->stat_md[i].type = XPL_STAT_HLO_PROTO;
        }
    bool *strong = NULL;
    for (uint32_t i = 1; i < p->n_event_md; i++) {
        struct xpl_event_md *const md = &p->event_md[i];
        struct xpl_stat s;
        int64_t id;
        if (!md->has_stats || !trailing_number(md->name, &id) || id == md->id ||
            !xpl_stats_get(xpl_event_md_stats(p, md), XPL_STAT_HLO_PROTO, &s))
            continue;
        if (!strong) {
            strong = xpl_arena_zalloc(c->arena, p->n_event_md * sizeof *strong);
            if (!strong) return no_memory(c);
        }
        md->id = id;
        strong[i] = true;
    }
    return strong ? index_event_ids(c, p, strong) : XPL_OK;
}

// ---- planes ----

static bool is_all(xpl_str_t s, bool (*test)(char)) {
    for (size_t i = 0; i < s.len; i++)
        if (!test(s.ptr[i])) return false;
    return true;
}
static bool is_digit(char ch) {
    return ch >= '0' && ch <= '9';
}
static bool is_letter(char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

// A core number as XProf's int: -1 when there is none or it does not fit.
static int64_t core_number(xpl_str_t digits) {
    int64_t v = 0;
    for (size_t i = 0; i < digits.len; i++) {
        v = v * 10 + (digits.ptr[i] - '0');
        if (v > INT32_MAX) return -1;
    }
    return digits.len ? v : -1;
}

static void set_tpu_kind(struct xpl_plane *p, xpl_str_t rest) {
    p->kind = XPL_PLANE_TPU_OTHER;
    if (is_all(rest, is_digit)) {
        p->kind = XPL_PLANE_TPU_CORE;
        p->core_id = core_number(rest);
        return;
    }
    static const xpl_str_t words = {" SparseCore ", 12};
    const size_t at = xpl_str_find(rest, words, 0);
    if (at == SIZE_MAX || at == 0 || !is_all(xpl_str_sub(rest, 0, at), is_digit)) return;
    xpl_str_t number = xpl_str_sub(rest, at + words.len, SIZE_MAX);
    const size_t space = xpl_str_find(number, XPL_STR(" "), 0);
    if (space != SIZE_MAX) { // "SparseCore abc 3"
        if (space == 0 || !is_all(xpl_str_sub(number, 0, space), is_letter)) return;
        number = xpl_str_sub(number, space + 1, SIZE_MAX);
    }
    if (number.len == 0 || !is_all(number, is_digit)) return;
    p->kind = XPL_PLANE_SPARSE_CORE;
    p->core_id = core_number(number);
}

static void set_kind(struct xpl_plane *p) {
    static const xpl_str_t tpu = {XPL_PLANE_NAME_TPU_PREFIX, sizeof XPL_PLANE_NAME_TPU_PREFIX - 1};
    p->core_id = -1;
    p->kind = XPL_PLANE_OTHER;
    if (xpl_str_eq(p->name, XPL_STR(XPL_PLANE_NAME_HOST_THREADS)))
        p->kind = XPL_PLANE_HOST_THREADS;
    else if (xpl_str_eq(p->name, XPL_STR(XPL_PLANE_NAME_METADATA)))
        p->kind = XPL_PLANE_METADATA;
    else if (xpl_str_starts(p->name, XPL_STR(XPL_PLANE_NAME_GPU_PREFIX)))
        p->kind = XPL_PLANE_GPU;
    else if (xpl_str_starts(p->name, XPL_STR(XPL_PLANE_NAME_CUSTOM_PREFIX)))
        p->kind = XPL_PLANE_CUSTOM;
    else if (xpl_str_starts(p->name, tpu))
        set_tpu_kind(p, xpl_str_sub(p->name, tpu.len, SIZE_MAX));
}

// First pass over a plane: its own fields, and how many of everything there is.
static xpl_status_t count_plane(struct open_ctx *c, xpl_bytes_t message, struct xpl_plane *p) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    const uint8_t *at = w.p;
    for (; (r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD; at = w.p) {
        if (f.num == XPLANE_ID && f.type == XPL_WIRE_VARINT) p->id = (int64_t)f.u;
        if (f.type != XPL_WIRE_LEN) continue;
        switch (f.num) {
            case XPLANE_NAME: p->name = xpl_wire_str(&f); break;
            case XPLANE_LINES: p->n_lines++; break;
            case XPLANE_EVENT_MD: p->n_event_md++; break;
            case XPLANE_STAT_MD: p->n_stat_md++; break;
            case XPLANE_STATS:
                if (!p->stats.p) p->stats.p = at;
                break;
            default: break;
        }
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XPlane", w.p);
    p->stats.plane = p;
    p->stats.end = w.end;
    p->stats.field = XPLANE_STATS;
    if (!p->stats.p) p->stats.p = w.end;
    set_kind(p);
    return XPL_OK;
}

static xpl_status_t alloc_plane(struct open_ctx *c, struct xpl_plane *p) {
    p->event_md = p->n_event_md
                      ? xpl_arena_array(c->arena, (size_t)p->n_event_md + 1, sizeof *p->event_md)
                      : c->no_event_md;
    p->stat_md = p->n_stat_md
                     ? xpl_arena_array(c->arena, (size_t)p->n_stat_md + 1, sizeof *p->stat_md)
                     : c->no_stat_md;
    p->lines = p->n_lines ? xpl_arena_array(c->arena, p->n_lines, sizeof *p->lines) : NULL;
    if (!p->event_md || !p->stat_md || (p->n_lines && !p->lines)) return no_memory(c);
    if (p->n_event_md) p->event_md[0] = *c->no_event_md;
    if (p->n_stat_md) p->stat_md[0] = *c->no_stat_md;
    p->n_event_md = p->n_stat_md = 1;
    p->n_lines = 0;
    return XPL_OK;
}

static xpl_status_t list_line(struct open_ctx *c, struct xpl_plane *p, xpl_bytes_t message) {
    struct xpl_line *const line = &p->lines[p->n_lines], **slot;
    *line = (struct xpl_line){.message = message, .index = p->n_lines++, .plane = p};
    slot = xpl_vec_push(&c->temp, &c->lines);
    if (!slot) return no_memory(c);
    *slot = line;
    return XPL_OK;
}

// Second pass: lines and metadata, in whatever order they come.  The counts of the first pass are
// limits, because the bytes may have changed since.
static xpl_status_t fill_plane(struct open_ctx *c, xpl_bytes_t message, struct xpl_plane *p) {
    const uint32_t max_lines = p->n_lines, max_events = p->n_event_md, max_stats = p->n_stat_md;
    XPL_TRY(alloc_plane(c, p));
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == XPLANE_LINES && p->n_lines < max_lines)
            XPL_TRY(list_line(c, p, f.len));
        else if (f.num == XPLANE_EVENT_MD && p->n_event_md <= max_events)
            XPL_TRY(read_event_md(c, f.len, &p->event_md[p->n_event_md++]));
        else if (f.num == XPLANE_STAT_MD && p->n_stat_md <= max_stats)
            XPL_TRY(read_stat_md(c, f.len, &p->stat_md[p->n_stat_md++]));
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XPlane", w.p);
    XPL_TRY(index_stat_ids(c, p));
    XPL_TRY(index_event_ids(c, p, NULL));
    return p->kind == XPL_PLANE_METADATA ? fix_hlo_ids(c, p) : XPL_OK;
}

// ---- the space ----

static xpl_status_t count_space(struct open_ctx *c) {
    struct xpl_xspace *const xs = c->xs;
    struct xpl_wire w = xpl_wire_begin(xs->bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        switch (f.num) {
            case XSPACE_PLANES: xs->n_planes++; break;
            case XSPACE_ERRORS: xs->n_errors++; break;
            case XSPACE_WARNINGS: xs->n_warnings++; break;
            case XSPACE_HOSTNAMES: xs->n_hostnames++; break;
            default: break;
        }
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XSpace", w.p);
    xs->planes = xpl_arena_array(c->arena, xs->n_planes, sizeof *xs->planes);
    xs->errors = xpl_arena_array(c->arena, xs->n_errors, sizeof *xs->errors);
    xs->warnings = xpl_arena_array(c->arena, xs->n_warnings, sizeof *xs->warnings);
    xs->hostnames = xpl_arena_array(c->arena, xs->n_hostnames, sizeof *xs->hostnames);
    if (!xs->planes || !xs->errors || !xs->warnings || !xs->hostnames) return no_memory(c);
    return XPL_OK;
}

static xpl_status_t read_plane(struct open_ctx *c, xpl_bytes_t message) {
    struct xpl_xspace *const xs = c->xs;
    struct xpl_plane *const p = &xs->planes[xs->n_planes];
    *p = (struct xpl_plane){.index = xs->n_planes++, .space = xs};
    XPL_TRY(count_plane(c, message, p));
    return fill_plane(c, message, p);
}

static xpl_status_t fill_space(struct open_ctx *c) {
    struct xpl_xspace *const xs = c->xs;
    const struct xpl_xspace max = *xs;
    xs->n_planes = xs->n_errors = xs->n_warnings = xs->n_hostnames = 0;
    struct xpl_wire w = xpl_wire_begin(xs->bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == XSPACE_PLANES && xs->n_planes < max.n_planes)
            XPL_TRY(read_plane(c, f.len));
        else if (f.num == XSPACE_ERRORS && xs->n_errors < max.n_errors)
            xs->errors[xs->n_errors++] = xpl_wire_str(&f);
        else if (f.num == XSPACE_WARNINGS && xs->n_warnings < max.n_warnings)
            xs->warnings[xs->n_warnings++] = xpl_wire_str(&f);
        else if (f.num == XSPACE_HOSTNAMES && xs->n_hostnames < max.n_hostnames)
            xs->hostnames[xs->n_hostnames++] = xpl_wire_str(&f);
    }
    if (r == XPL_WIRE_MALFORMED) return broken(c, "XSpace", w.p);
    return XPL_OK;
}

// Lines come before what else is broken behind them, though they are looked at last.
static xpl_status_t read_space(struct open_ctx *c) {
    struct xpl_error *const err = c->err, later = {0};
    c->err = &later;
    const xpl_status_t st = fill_space(c);
    c->err = err;
    XPL_TRY(index_lines(c));
    if (st != XPL_OK && err && err->code == XPL_OK) *err = later;
    return st;
}

xpl_status_t xpl_xspace_open(xpl_bytes_t bytes, struct xpl_arena *arena, struct xpl_exec *exec,
                             struct xpl_xspace **ret, struct xpl_error *err) {
    struct open_ctx c = {
        .xs = xpl_arena_zalloc(arena, sizeof *c.xs),
        .arena = arena,
        .exec = exec,
        .err = err,
        .no_ids = xpl_arena_zalloc(arena, sizeof *c.no_ids),
        .no_event_md = xpl_arena_zalloc(arena, sizeof *c.no_event_md),
        .no_stat_md = xpl_arena_zalloc(arena, sizeof *c.no_stat_md),
    };
    if (!c.xs || !c.no_ids || !c.no_event_md || !c.no_stat_md) return no_memory(&c);
    static const uint8_t nothing;
    c.xs->bytes = bytes.len ? bytes : (xpl_bytes_t){&nothing, 0};
    xpl_arena_init(&c.temp, arena->limit);
    xpl_status_t st = count_space(&c);
    if (st == XPL_OK) st = read_space(&c);
    xpl_arena_fini(&c.temp);
    if (st == XPL_OK) *ret = c.xs;
    return st;
}

const struct xpl_plane *xpl_xspace_plane(const struct xpl_xspace *xs, xpl_str_t name) {
    for (uint32_t i = 0; i < xs->n_planes; i++)
        if (xpl_str_eq(xs->planes[i].name, name)) return &xs->planes[i];
    return NULL;
}

uint32_t xpl_plane_event_md(const struct xpl_plane *p, int64_t id) {
    return xpl_event_md_at(p, (uint64_t)id);
}

uint32_t xpl_plane_stat_md(const struct xpl_plane *p, uint64_t id) {
    return xpl_stat_md_at(p, id);
}
