// SPDX-License-Identifier: Apache-2.0
// Finds the events of memory.  Lines, and pieces of long ones, are read in parallel where the exec
// has threads; each piece has its own collection, and the pieces are merged in the order of the
// file, so the result does not depend on which thread read what.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/grouping/groups.h"
#include "analysis/tools/memory_profile/impl.h"
#include "base/cleanup.h"
#include "base/exec.h"
#include "base/intern.h"
#include "base/std_sort.h"

static xpl_status_t fail_without_memory(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "memory_profile");
}

xpl_status_t xpl_memory_check_cancelled(const struct xpl_memory_input *in, struct xpl_error *err) {
    if (xpl_exec_cancelled(in->exec))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory_profile: cancelled");
    return XPL_OK;
}

// ---- a collection ----

void xpl_memory_collection_init(struct xpl_memory_collection *c, size_t limit) {
    *c = (struct xpl_memory_collection){0};
    xpl_arena_init(&c->arena, limit);
}

void xpl_memory_collection_fini(struct xpl_memory_collection *c) {
    for (size_t i = 0; i < c->allocators.n; i++)
        xpl_sys_free(c->allocators.v[i]->records);
    xpl_arena_fini(&c->arena);
    *c = (struct xpl_memory_collection){0};
}

static bool init_tables(struct xpl_memory_collection *c) {
    int64_t *const none = xpl_vec_push(&c->arena, &c->steps);
    c->names = xpl_intern_new(&c->arena, xpl_hash_seed());
    if (none) *none = 0;
    return none && c->names;
}

static struct xpl_memory_allocator *new_allocator(struct xpl_memory_collection *c, xpl_str_t name) {
    struct xpl_memory_allocator *const a = xpl_arena_zalloc(&c->arena, sizeof *a);
    struct xpl_memory_allocator **const slot = a ? xpl_vec_push(&c->arena, &c->allocators) : NULL;
    if (!slot) return NULL;
    a->name = name;
    return *slot = a;
}

// `put`: xpl_intern_put_view for a name that stays, to which many events may refer.  NULL on OOM.
static struct xpl_memory_allocator *get_allocator(struct xpl_memory_collection *c, xpl_str_t name,
                                                  bool (*put)(struct xpl_intern *, xpl_str_t,
                                                              xpl_strid_t *)) {
    enum { SHORT = 64 };
    xpl_strid_t id;
    if (c->last && name.len <= SHORT && xpl_str_eq(c->last->name, name)) return c->last;
    if (!put(c->names, name, &id)) return NULL;
    while (c->by_name.n <= id.v) {
        struct xpl_memory_allocator **const slot = xpl_vec_push(&c->arena, &c->by_name);
        if (!slot) return NULL;
        *slot = NULL;
    }
    struct xpl_memory_allocator **const known = &c->by_name.v[id.v];
    if (!*known) *known = new_allocator(c, xpl_intern_get(c->names, id));
    return c->last = *known;
}

static xpl_status_t get_step(struct xpl_memory_collection *c, int64_t step, uint64_t *ret,
                             struct xpl_error *err) {
    bool is_new;
    uint64_t *const slot = xpl_map_put(&c->arena, &c->step_index, (uint64_t)step, 0, &is_new);
    if (!slot) return fail_without_memory(err);
    if (is_new) {
        int64_t *const value = xpl_vec_push(&c->arena, &c->steps);
        if (!value) return fail_without_memory(err);
        *value = step;
        *slot = c->steps.n - 1;
    }
    *ret = *slot;
    if (*ret >= XPL_MEMORY_MAX_STEPS)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "memory_profile: more than %d steps",
                         XPL_MEMORY_MAX_STEPS);
    return XPL_OK;
}

// Makes room for `cap` records in all.
static bool reserve(const struct xpl_memory_input *in, struct xpl_memory_allocator *a, size_t cap) {
    if (cap <= a->cap) return true;
    // Growing a large block moves no bytes and touches none before they are used.
    void *const grown = cap > in->limit / sizeof *a->records || cap > UINT32_MAX
                            ? NULL
                            : xpl_sys_realloc(a->records, cap * sizeof *a->records);
    if (!grown) return false;
    a->records = grown;
    a->cap = cap;
    return true;
}

// Called in the order of the file, as in XProf: at equal use the later event counts
// (UpdateProfileSummary).
static void update_summary(struct xpl_memory_allocator *a, const struct xpl_memory_event *e) {
    struct xpl_memory_summary *const s = &a->summary;
    const int64_t in_use = xpl_memory_in_use(&e->state);
    s->peak_lifetime = e->state.peak_bytes_in_use;
    if (in_use < s->peak.peak_bytes_in_use) return;
    if (!a->has_peak || in_use > s->peak.peak_bytes_in_use || e->time_ps > a->latest_peak_ps)
        a->latest_peak_ps = e->time_ps;
    a->has_peak = true;
    s->peak = e->state;
    s->peak.peak_bytes_in_use = in_use;
    s->peak_time_ps = e->time_ps;
    s->capacity = (int64_t)((uint64_t)in_use + (uint64_t)e->state.available_bytes);
}

// As if the events of `later` had followed those of `a`.
static void add_summary(struct xpl_memory_allocator *a, const struct xpl_memory_allocator *later) {
    const int64_t before = a->summary.peak.peak_bytes_in_use;
    const int64_t after = later->summary.peak.peak_bytes_in_use;
    if (!later->has_peak || after < before) {
        a->summary.peak_lifetime = later->summary.peak_lifetime;
        return;
    }
    if (!a->has_peak || after > before || later->latest_peak_ps > a->latest_peak_ps)
        a->latest_peak_ps = later->latest_peak_ps;
    a->has_peak = true;
    a->summary = later->summary;
}

// ---- pieces ----

struct piece {
    const struct xpl_memory_input *in;
    const struct xpl_groups *groups;
    const struct xpl_line *line;
    uint32_t chunk; // WHOLE_LINE: all of it
    bool sorted;    // XProf sorts the line by time
    struct xpl_memory_collection c;
    xpl_status_t status;
    struct xpl_error err;
};
#define WHOLE_LINE UINT32_MAX

static xpl_status_t add_event(struct piece *p, const struct xpl_event *ev, const uint8_t *at,
                              const struct xpl_event_group *group) {
    char number[24];
    struct xpl_memory_event e;
    uint64_t step = 0;
    xpl_memory_event_read(&p->in->reader, ev, XPL_MEMORY_STATE, &e);
    if (group->has_group) {
        e.has_step = true;
        e.step = group->group_id;
    }
    // XProf's -1 is not a step.
    if (e.has_step && e.step != -1) XPL_TRY(get_step(&p->c, e.step, &step, &p->err));
    if (e.is_numbered)
        e.allocator =
            (xpl_str_t){number, (size_t)snprintf(number, sizeof number, "%" PRId64, e.number)};
    struct xpl_memory_allocator *const a =
        get_allocator(&p->c, e.allocator, e.is_numbered ? xpl_intern_put : xpl_intern_put_view);
    if (!a || (a->n_records == a->cap && !reserve(p->in, a, a->cap + a->cap / 2 + 16)))
        return fail_without_memory(&p->err);
    update_summary(a, &e);
    const uint64_t offset = (uint64_t)(at - p->in->xs->bytes.ptr);
    a->records[a->n_records++] =
        (struct xpl_memory_record){e.time_ps, offset << XPL_MEMORY_STEP_BITS | step};
    return XPL_OK;
}

static xpl_status_t begin_piece(struct piece *p, struct xpl_arena *scratch,
                                struct xpl_event_cursor *c, struct xpl_group_cursor **groups) {
    const bool whole = p->chunk == WHOLE_LINE;
    *groups = NULL;
    if (!init_tables(&p->c)) return fail_without_memory(&p->err);
    if (whole)
        xpl_events_begin(c, p->line);
    else
        xpl_events_begin_chunk(c, p->line, p->chunk);
    if (xpl_groups_empty(p->groups)) return XPL_OK;
    return whole ? xpl_group_cursor_new(p->groups, p->line, scratch, groups, &p->err)
                 : xpl_group_cursor_new_at(p->groups, p->line, p->chunk, scratch, groups, &p->err);
}

// Other events only affect the groups of events of memory, and most do not.
static bool may_skip(const struct piece *p, const struct xpl_event *ev,
                     const struct xpl_group_cursor *groups) {
    if (xpl_is_memory_event(p->in->host->event_md[ev->md].type)) return false;
    if (!groups) return true;
    const struct xpl_group_quick *const q = xpl_group_cursor_quick(groups);
    return q->stateless ||
           xpl_group_quick_knows(q, ev->at, ev->md, (uint64_t)xpl_event_begin_ps(p->line, ev),
                                 (uint64_t)xpl_event_end_ps(p->line, ev));
}

static xpl_status_t collect_piece(struct piece *p) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    const struct xpl_event_md *const md = p->in->host->event_md;
    struct xpl_group_cursor *groups;
    struct xpl_event_cursor c;
    struct xpl_event ev;
    enum xpl_wire_result r;
    xpl_arena_init(&scratch, p->in->limit);
    XPL_TRY(begin_piece(p, &scratch, &c, &groups));
    for (const uint8_t *at = c.p; (r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD; at = c.p) {
        struct xpl_event_group group = {0};
        if (ev.index % XPL_MEMORY_EVENTS_PER_CHECK == 0)
            XPL_TRY(xpl_memory_check_cancelled(p->in, &p->err));
        if (may_skip(p, &ev, groups)) continue;
        if (groups) xpl_group_cursor_next(groups, &ev, &group);
        if (xpl_is_memory_event(md[ev.md].type)) XPL_TRY(add_event(p, &ev, at, &group));
    }
    if (groups && !xpl_group_cursor_ok(groups)) return fail_without_memory(&p->err);
    return r == XPL_WIRE_MALFORMED ? xpl_events_error(&c, &p->err) : XPL_OK;
}

// An event of memory on a line that XProf sorts.
struct placed_event {
    uint64_t rank;
    struct xpl_event ev;
    const uint8_t *at;
    struct xpl_event_group group;
};

static bool by_rank(const void *ctx, const void *pa, const void *pb) {
    const struct placed_event *const *const a = pa, *const *const b = pb;
    (void)ctx;
    return (*a)->rank < (*b)->rank;
}

static xpl_status_t collect_sorted(struct piece *p) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(p->in->limit);
    XPL_VEC(struct placed_event *) found = {0};
    struct xpl_group_cursor *groups;
    struct xpl_event_cursor c;
    struct xpl_event ev;
    uint64_t *ranks;
    XPL_TRY(begin_piece(p, &scratch, &c, &groups));
    XPL_TRY(xpl_groups_sorted_ranks(p->groups, p->line, &scratch, &ranks, &p->err));
    enum xpl_wire_result r;
    for (const uint8_t *at = c.p; (r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD; at = c.p) {
        struct xpl_event_group group = {0};
        if (may_skip(p, &ev, groups)) continue;
        if (groups) xpl_group_cursor_next(groups, &ev, &group);
        if (!xpl_is_memory_event(p->in->host->event_md[ev.md].type)) continue;
        struct placed_event *const e = xpl_arena_alloc(&scratch, sizeof *e);
        struct placed_event **const slot = e ? xpl_vec_push(&scratch, &found) : NULL;
        if (!slot) return fail_without_memory(&p->err);
        *e = (struct placed_event){ranks[ev.index], ev, at, group};
        *slot = e;
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&c, &p->err);
    if (groups && !xpl_group_cursor_ok(groups)) return fail_without_memory(&p->err);
    xpl_std_sort(found.v, found.n, sizeof *found.v, by_rank, NULL);
    for (size_t i = 0; i < found.n; i++)
        XPL_TRY(add_event(p, &found.v[i]->ev, found.v[i]->at, &found.v[i]->group));
    return XPL_OK;
}

static void run_piece(void *ctx, size_t i) {
    struct piece *const p = (struct piece *)ctx + i;
    p->status = p->sorted ? collect_sorted(p) : collect_piece(p);
}

// ---- which lines, and the merge ----

struct finder {
    const struct xpl_memory_input *in;
    uint8_t *found; // by line: NO_MEMORY ...
    const struct xpl_groups *groups;
};
enum { NO_MEMORY, HAS_MEMORY, SORTED_MEMORY }; // the last: XProf sorts the line

// Marks a line that has an event of memory.  A malformed line is reported when it is collected.
static void find_memory(void *ctx, size_t i) {
    const struct finder *const f = ctx;
    const struct xpl_plane *const host = f->in->host;
    struct xpl_event_cursor c = xpl_events_of(&host->lines[i]);
    struct xpl_event ev;
    enum xpl_wire_result r;
    f->found[i] = false;
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        f->found[i] = xpl_is_memory_event(host->event_md[ev.md].type);
        const bool check = ev.index % XPL_MEMORY_EVENTS_PER_CHECK == 0;
        if (f->found[i] || (check && xpl_exec_cancelled(f->in->exec))) return;
    }
    f->found[i] = r == XPL_WIRE_MALFORMED;
}

static void find_sorted(void *ctx, size_t i) {
    const struct finder *const f = ctx;
    if (f->found[i] && xpl_groups_sorts_line(f->groups, &f->in->host->lines[i]))
        f->found[i] = SORTED_MEMORY;
}

static bool names_memory(const struct xpl_plane *host) {
    for (uint32_t i = 0; i < host->n_event_md; i++)
        if (xpl_is_memory_event(host->event_md[i].type)) return true;
    return false;
}

// Pieces that are read in parallel.  A profile can have a million lines, so there is a limit; the
// pieces of a wave are merged before the next wave begins.
enum { MIN_WAVE = 8, MAX_WAVE = 64 };
struct wave {
    struct piece *v; // on the heap, as arenas are not moved
    size_t n, room;
    uint32_t line, chunk; // where the next piece begins
};
static void end_wave(struct wave *w) {
    for (size_t i = 0; i < w->n; i++)
        xpl_memory_collection_fini(&w->v[i].c);
    w->n = 0;
}
static void free_wave(struct wave *w) {
    end_wave(w);
    xpl_sys_free(w->v);
}

static uint32_t n_pieces(const struct xpl_groups *groups, const struct xpl_line *line) {
    const bool cut = line->n_chunks > 1 &&
                     (xpl_groups_empty(groups) || xpl_groups_can_start_at_chunk(groups, line));
    return cut ? line->n_chunks : 1;
}

// Adds the pieces that come next.
static void fill_wave(struct wave *w, const struct xpl_memory_input *in,
                      const struct xpl_groups *groups, const uint8_t *found) {
    while (w->n < w->room && w->line < in->host->n_lines) {
        const struct xpl_line *const line = &in->host->lines[w->line];
        const bool sorted = found[w->line] == SORTED_MEMORY;
        const uint32_t parts = !found[w->line] ? 0 : sorted ? 1 : n_pieces(groups, line);
        if (w->chunk == parts) {
            w->line++;
            w->chunk = 0;
            continue;
        }
        struct piece *const p = &w->v[w->n++];
        *p = (struct piece){
            .in = in, .groups = groups, .line = line, .chunk = w->chunk++, .sorted = sorted};
        if (parts == 1) p->chunk = WHOLE_LINE;
        xpl_memory_collection_init(&p->c, in->limit);
    }
}

// Appends an allocator's records to those of the pieces before.
static xpl_status_t append_records(const struct xpl_memory_input *in,
                                   const struct xpl_memory_collection *c,
                                   struct xpl_memory_allocator *from,
                                   struct xpl_memory_collection *all, struct xpl_error *err) {
    struct xpl_memory_allocator *const to = get_allocator(all, from->name, xpl_intern_put);
    const uint64_t mask = XPL_MEMORY_MAX_STEPS - 1;
    if (!to) return fail_without_memory(err);
    const size_t need = to->n_records + from->n_records;
    if (need > to->cap && !reserve(in, to, need + need / 2)) return fail_without_memory(err);
    for (size_t i = 0; i < from->n_records; i++) {
        struct xpl_memory_record r = from->records[i];
        uint64_t step = r.where & mask;
        if (step) XPL_TRY(get_step(all, c->steps.v[step], &step, err));
        r.where = (r.where & ~mask) | step;
        to->records[to->n_records++] = r;
    }
    add_summary(to, from);
    xpl_sys_free(from->records);
    from->records = NULL;
    return XPL_OK;
}

static xpl_status_t merge_wave(const struct xpl_memory_input *in, struct wave *w,
                               struct xpl_memory_collection *all, struct xpl_error *err) {
    for (size_t i = 0; i < w->n; i++) {
        struct piece *const p = &w->v[i];
        if (p->status != XPL_OK) {
            if (err && err->code == XPL_OK) *err = p->err;
            return p->status;
        }
        for (size_t k = 0; k < p->c.allocators.n; k++)
            XPL_TRY(append_records(in, &p->c, p->c.allocators.v[k], all, err));
    }
    return XPL_OK;
}

static xpl_status_t collect_lines(const struct xpl_memory_input *in,
                                  const struct xpl_groups *groups, const uint8_t *found,
                                  struct xpl_memory_collection *all, struct xpl_error *err) {
    XPL_AUTO(free_wave) struct wave w = {.room = MIN_WAVE};
    while (w.room < MAX_WAVE && w.room < 4 * (size_t)in->exec->width)
        w.room *= 2;
    w.v = xpl_sys_alloc(w.room * sizeof *w.v);
    if (!w.v) return fail_without_memory(err);
    for (fill_wave(&w, in, groups, found); w.n; fill_wave(&w, in, groups, found)) {
        xpl_exec_run(in->exec, w.n, run_piece, w.v);
        XPL_TRY(merge_wave(in, &w, all, err));
        end_wave(&w);
    }
    return XPL_OK;
}

xpl_status_t xpl_memory_collect(const struct xpl_memory_input *in, struct xpl_memory_collection *c,
                                struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    const uint32_t n = in->host->n_lines;
    struct xpl_groups *groups;
    xpl_arena_init(&arena, in->limit);
    if (!init_tables(c)) return fail_without_memory(err);
    if (!names_memory(in->host)) return XPL_OK;
    struct finder f = {.in = in, .found = xpl_arena_alloc(&arena, n)};
    if (!f.found) return fail_without_memory(err);
    xpl_exec_run(in->exec, n, find_memory, &f);
    XPL_TRY(xpl_memory_check_cancelled(in, err));
    if (!n || !memchr(f.found, HAS_MEMORY, n)) return XPL_OK;
    XPL_TRY(xpl_groups_build(in->xs, &arena, in->exec, &groups, err));
    f.groups = groups;
    xpl_exec_run(in->exec, n, find_sorted, &f);
    return collect_lines(in, groups, f.found, c, err);
}
