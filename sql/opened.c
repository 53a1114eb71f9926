// SPDX-License-Identifier: Apache-2.0
#include "sql/opened.h"

struct xpl_sql_cache {
    pthread_mutex_t mu;
    // Those that are kept or in use, used last first; each has a reference.  So a profile that many
    // cursors read is open once, also when they read more profiles than are kept.
    struct xpl_sql_opened *list;
    size_t most;
    struct xpl_arena_budget budget; // of the arenas of all profiles in the list
};

static void destroy(struct xpl_sql_opened *o) {
    if (o->file) o->close(o->file);
    for (int i = 0; i < 2; i++)
        xpl_arena_fini(&o->instructions[i].arena);
    xpl_arena_fini(&o->memory.arena);
    xpl_arena_fini(&o->arena);
    pthread_mutex_destroy(&o->mu);
    xpl_sys_free(o);
}

// ---- the cache ----

struct xpl_sql_cache *xpl_sql_cache_new(size_t most, size_t limit) {
    struct xpl_sql_cache *const c = xpl_sys_alloc(sizeof *c);
    if (!c) return NULL;
    *c = (struct xpl_sql_cache){.most = most};
    xpl_arena_budget_init(&c->budget, limit);
    pthread_mutex_init(&c->mu, NULL);
    return c;
}

void xpl_sql_cache_free(struct xpl_sql_cache *c) {
    if (!c) return;
    for (struct xpl_sql_opened *o = c->list, *next; o; o = next) {
        next = o->next;
        destroy(o);
    }
    pthread_mutex_destroy(&c->mu);
    xpl_sys_free(c);
}

static struct xpl_sql_opened *find_kept(struct xpl_sql_cache *c, xpl_str_t key) {
    struct xpl_sql_opened *found = NULL;
    pthread_mutex_lock(&c->mu);
    for (struct xpl_sql_opened **at = &c->list; *at && key.len; at = &(*at)->next) {
        if (!xpl_str_eq((*at)->key, key)) continue;
        found = *at;
        *at = found->next;
        found->next = c->list;
        c->list = found;
        found->refs++;
        break;
    }
    pthread_mutex_unlock(&c->mu);
    return found;
}

// Takes one off the list; the caller's reference drops outside the lock.
static struct xpl_sql_opened *drop_locked(struct xpl_sql_opened **at) {
    struct xpl_sql_opened *const o = *at;
    *at = o->next;
    o->next = NULL;
    return --o->refs == 0 ? o : NULL;
}

// Takes an unused one beyond those that are kept.
static struct xpl_sql_opened *drop_oldest_locked(struct xpl_sql_cache *c) {
    size_t n = 0;
    for (struct xpl_sql_opened **at = &c->list; *at; at = &(*at)->next)
        if (++n > c->most && (*at)->refs == 1) return drop_locked(at);
    return NULL;
}

// Keeps it in front; at most one has to go.
static void keep_open(struct xpl_sql_cache *c, struct xpl_sql_opened *o) {
    pthread_mutex_lock(&c->mu);
    o->refs++;
    o->next = c->list;
    c->list = o;
    struct xpl_sql_opened *const gone = drop_oldest_locked(c);
    pthread_mutex_unlock(&c->mu);
    if (gone) destroy(gone);
}

void xpl_sql_release(const struct xpl_sql_request *q, struct xpl_sql_opened *o) {
    if (!o) return;
    const bool intact = !o->is_intact || o->is_intact(o->file);
    struct xpl_sql_opened *gone = NULL;
    if (!q->cache) {
        if (--o->refs == 0) destroy(o);
        return;
    }
    pthread_mutex_lock(&q->cache->mu);
    for (struct xpl_sql_opened **at = &q->cache->list; *at && !intact; at = &(*at)->next)
        if (*at == o) {
            (void)drop_locked(at); // the caller still has its reference
            break;
        }
    gone = --o->refs == 0 ? o : drop_oldest_locked(q->cache);
    pthread_mutex_unlock(&q->cache->mu);
    if (gone) destroy(gone);
}

// ---- opening ----

static void begin_arena(const struct xpl_sql_opened *o, struct xpl_arena *ret) {
    if (o->budget)
        xpl_arena_init_part(ret, o->budget);
    else
        xpl_arena_init(ret, o->limit);
    if (ret->limit > o->limit) ret->limit = o->limit;
}

// Lines count from their own begin; the profile's is the least of these.
static int64_t begin_of(const struct xpl_xspace *space) {
    int64_t least = INT64_MAX;
    for (uint32_t p = 0; p < space->n_planes; p++)
        for (uint32_t i = 0; i < space->planes[p].n_lines; i++) {
            const struct xpl_line *const l = &space->planes[p].lines[i];
            if (l->n_events && l->timestamp_ns < least) least = l->timestamp_ns;
        }
    return least;
}

static int64_t line_begin(const struct xpl_line *line, int64_t base_ns) {
    int64_t ns, ps;
    if (!line->n_events || __builtin_sub_overflow(line->timestamp_ns, base_ns, &ns) ||
        __builtin_mul_overflow(ns, 1000, &ps))
        return 0;
    return ps;
}

// Copies: the file's bytes may change under us.
static bool copy_plane(struct xpl_arena *arena, const struct xpl_plane *plane, int64_t base_ns,
                       struct xpl_sql_plane *ret) {
    ret->plane = plane;
    ret->names = xpl_arena_array(arena, plane->n_event_md, sizeof *ret->names);
    ret->lines = xpl_arena_zalloc(arena, (plane->n_lines + (size_t)1) * sizeof *ret->lines);
    if (!ret->names || !ret->lines || !xpl_arena_str(arena, plane->name, &ret->name)) return false;
    for (uint32_t i = 0; i < plane->n_event_md; i++)
        if (!xpl_arena_str(arena, plane->event_md[i].name, &ret->names[i])) return false;
    for (uint32_t i = 0; i < plane->n_lines; i++) {
        ret->lines[i].line = &plane->lines[i];
        ret->lines[i].begin_ps = line_begin(&plane->lines[i], base_ns);
        if (!xpl_arena_str(arena, plane->lines[i].name, &ret->lines[i].name)) return false;
    }
    return true;
}

static xpl_status_t index_profile(struct xpl_sql_opened *o, xpl_bytes_t bytes,
                                  struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_xspace *space;
    XPL_TRY(xpl_xspace_open(bytes, &o->arena, exec, &space, err));
    o->space = space;
    o->planes = xpl_arena_zalloc(&o->arena, (space->n_planes + (size_t)1) * sizeof *o->planes);
    if (!o->planes) XPL_RETURN_OOM(err, "planes");
    const int64_t base_ns = begin_of(space);
    for (uint32_t p = 0; p < space->n_planes; p++)
        if (!copy_plane(&o->arena, &space->planes[p], base_ns, &o->planes[p]))
            XPL_RETURN_OOM(err, "planes");
    return XPL_OK;
}

xpl_status_t xpl_sql_open(const struct xpl_sql_request *q, size_t i, struct xpl_sql_opened **ret,
                          struct xpl_error *err) {
    const struct xpl_sql_profile *const p = &q->source.profiles[i];
    xpl_bytes_t bytes;
    if (q->cache && (*ret = find_kept(q->cache, p->key))) return XPL_OK;
    struct xpl_sql_opened *const o = xpl_sys_alloc(sizeof *o);
    if (!o) XPL_RETURN_OOM(err, "profile");
    *o = (struct xpl_sql_opened){.close = q->source.close,
                                 .is_intact = q->source.is_intact,
                                 .budget = q->cache ? &q->cache->budget : NULL,
                                 .limit = q->limit,
                                 .refs = 1};
    begin_arena(o, &o->arena);
    pthread_mutex_init(&o->mu, NULL);
    xpl_status_t st = q->source.open(q->source.arg, i, q->exec, &o->file, &bytes, err);
    struct xpl_error why = {0};
    if (st == XPL_OK && index_profile(o, bytes, q->exec, &why) != XPL_OK)
        st = xpl_error_of_profile(&why, p->path, err);
    if (st == XPL_OK && !xpl_arena_str(&o->arena, p->key, &o->key))
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "profile: out of memory");
    if (st != XPL_OK) {
        destroy(o);
        return st;
    }
    if (q->cache && p->key.len) keep_open(q->cache, o);
    *ret = o;
    return XPL_OK;
}

// ---- marks ----

static xpl_status_t mark_chunk(const struct xpl_sql_line *l, uint32_t i, struct xpl_sql_mark *m,
                               struct xpl_error *err) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    enum xpl_wire_result got;
    *m = (struct xpl_sql_mark){.first = INT64_MAX, .last = INT64_MIN, .end = INT64_MIN};
    xpl_events_begin_chunk(&c, l->line, i);
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        const int64_t begin = (int64_t)((uint64_t)l->begin_ps + (uint64_t)ev.offset_ps);
        const int64_t end = (int64_t)((uint64_t)begin + (uint64_t)ev.duration_ps);
        if (begin < m->first) m->first = begin;
        if (begin > m->last) m->last = begin;
        if (end > m->end) m->end = end;
    }
    return got == XPL_WIRE_MALFORMED ? xpl_events_error(&c, err) : XPL_OK;
}

static xpl_status_t make_marks(struct xpl_sql_opened *o, struct xpl_sql_line *l,
                               struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_sql_mark *const marks = xpl_arena_array(&o->arena, l->line->n_chunks, sizeof *marks);
    if (!marks) XPL_RETURN_OOM(err, "marks of a line");
    for (uint32_t i = 0; i < l->line->n_chunks; i++) {
        if (xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        XPL_TRY(mark_chunk(l, i, &marks[i], err));
    }
    l->marks = marks;
    return XPL_OK;
}

xpl_status_t xpl_sql_marks(struct xpl_sql_opened *o, struct xpl_sql_line *line,
                           struct xpl_exec *exec, const struct xpl_sql_mark **ret,
                           struct xpl_error *err) {
    pthread_mutex_lock(&o->mu);
    const xpl_status_t st = line->marks ? XPL_OK : make_marks(o, line, exec, err);
    *ret = line->marks;
    pthread_mutex_unlock(&o->mu);
    return st;
}

// ---- instructions, memory ----

xpl_status_t xpl_sql_instructions_of(struct xpl_sql_opened *o, bool cpu_as_device,
                                     struct xpl_exec *exec, size_t limit,
                                     const struct xpl_sql_instructions **ret,
                                     struct xpl_error *err) {
    struct xpl_sql_instructions *const l = &o->instructions[cpu_as_device];
    xpl_status_t st = XPL_OK;
    pthread_mutex_lock(&o->mu);
    if (!o->has_instructions[cpu_as_device]) {
        begin_arena(o, &l->arena);
        st = xpl_sql_instructions_read(o->space, cpu_as_device, exec, limit, l, err);
        if (st != XPL_OK) xpl_arena_fini(&l->arena);
        o->has_instructions[cpu_as_device] = st == XPL_OK;
    }
    pthread_mutex_unlock(&o->mu);
    *ret = l;
    return st;
}

xpl_status_t xpl_sql_memory_of(struct xpl_sql_opened *o, struct xpl_exec *exec, size_t limit,
                               const struct xpl_sql_memory **ret, struct xpl_error *err) {
    xpl_status_t st = XPL_OK;
    pthread_mutex_lock(&o->mu);
    if (!o->has_memory) {
        begin_arena(o, &o->memory.arena);
        st = xpl_sql_memory_read(o->space, exec, limit, &o->memory, err);
        if (st != XPL_OK) xpl_arena_fini(&o->memory.arena);
        o->has_memory = st == XPL_OK;
    }
    pthread_mutex_unlock(&o->mu);
    *ret = &o->memory;
    return st;
}
