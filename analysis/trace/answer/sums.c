// SPDX-License-Identifier: Apache-2.0
// Counts and times by name, of every event of a window.
#include "analysis/trace/sums.h"

#include <string.h>

#include "analysis/trace/answer/arg_search.h"
#include "analysis/trace/answer/window.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/exec.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 64 }; // blocks

struct sum {
    uint64_t count, total_ps, min_ps, max_ps;
};

// `rank`: of the name among those of its index, which are in bytewise order.
struct found {
    struct xpl_trace_found event;
    uint32_t rank;
};

struct adder {
    const struct xpl_trace_sums_options *o;
    struct xpl_exec *exec;
    struct xpl_arena *scratch;
    struct trc_window w;
    uint32_t blocks;
    struct trc_words names_have, arguments_have;
    // Of the current host.
    const struct xpl_trace *t;
    uint8_t *wanted_track; // by number
    uint8_t *wanted_name;  // by string
    uint32_t *ranks;       // by string
    struct sum *sums;      // by string
    uint32_t first_pid;
    struct trc_arg_search *search; // NULL: arguments do not matter
    // Of all hosts, by name.
    struct xpl_intern *names;
    XPL_VEC(struct sum) by_name;
    XPL_VEC(struct found) found; // the earliest o->most so far, and at most as many more
    bool is_full;                // none that begins after `latest` is among them
    uint64_t latest;
};

static void add_sum(struct sum *to, const struct sum *s) {
    if (to->count == 0 || s->min_ps < to->min_ps) to->min_ps = s->min_ps;
    if (s->max_ps > to->max_ps) to->max_ps = s->max_ps;
    to->count += s->count;
    to->total_ps = trc_plus(to->total_ps, s->total_ps);
}

// ---- names and rows ----

static xpl_status_t begin_host(struct adder *a, const struct xpl_trace_host *host,
                               uint32_t first_pid, struct xpl_error *err) {
    const struct xpl_trace *const t = a->t = host->trace;
    a->first_pid = first_pid;
    a->search = NULL;
    if (a->arguments_have.n)
        XPL_TRY(trc_arg_search_new(t, host->profile, &a->arguments_have, a->exec, a->scratch,
                                   &a->search, err));
    a->wanted_track = xpl_arena_zalloc(a->scratch, (size_t)t->n[TRC_TRACKS]);
    a->wanted_name = xpl_arena_zalloc(a->scratch, (size_t)t->n[TRC_STRINGS]);
    a->ranks = xpl_arena_zalloc(a->scratch, (size_t)t->n[TRC_STRINGS] * sizeof *a->ranks);
    a->sums = xpl_arena_zalloc(a->scratch, (size_t)t->n[TRC_STRINGS] * sizeof *a->sums);
    if (!a->wanted_track || !a->wanted_name || !a->ranks || !a->sums)
        XPL_RETURN_OOM(err, "trace sums");
    for (uint64_t i = 0; i < t->n[TRC_TRACKS]; i++) {
        const struct trc_track *const track = &t->tracks[i];
        a->wanted_track[i] =
            !track->named &&
            trc_window_has_row(&a->w, first_pid + t->devices[track->device].id, track->id);
    }
    for (uint32_t i = 0; i < t->n[TRC_NAMES]; i++) {
        const uint32_t name = t->names[i].string;
        a->ranks[name] = i;
        a->wanted_name[name] = trc_words_in(&a->names_have, trc_str(t, name)) == a->names_have.all;
    }
    return XPL_OK;
}

// ---- events ----

static int earliest_first(const void *pa, const void *pb) {
    const struct found *const x = pa, *const y = pb;
    const struct xpl_trace_found *const a = &x->event, *const b = &y->event;
    if (a->ts != b->ts) return a->ts < b->ts ? -1 : 1;
    if (a->row.pid != b->row.pid) return a->row.pid < b->row.pid ? -1 : 1;
    if (a->row.tid != b->row.tid) return a->row.tid < b->row.tid ? -1 : 1;
    if (a->dur != b->dur) return a->dur < b->dur ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void keep_earliest(struct adder *a) {
    xpl_sort(a->found.v, a->found.n, sizeof *a->found.v, earliest_first);
    if (a->found.n > a->o->most) a->found.n = a->o->most;
    a->is_full = a->found.n && a->found.n == a->o->most;
    if (a->is_full) a->latest = a->found.v[a->found.n - 1].event.ts;
}

static bool add_found(struct adder *a, const struct trc_event *e) {
    const struct trc_track *const track = &a->t->tracks[e->track];
    if (a->is_full && e->ts > a->latest) return true;
    if (a->found.n >= 2 * a->o->most) keep_earliest(a);
    struct found *const f = xpl_vec_push(a->scratch, &a->found);
    if (!f) return false;
    f->event = (struct xpl_trace_found){
        .row = {.pid = a->first_pid + a->t->devices[track->device].id, .tid = track->id},
        .ts = e->ts,
        .dur = e->dur,
        .name = trc_str(a->t, e->name)};
    f->rank = a->ranks[e->name];
    return true;
}

// Whether the arguments of the event have the words; such an event is reported.
static xpl_status_t inspect(struct adder *a, const struct trc_view *v, uint32_t i, bool *ret_has,
                            struct xpl_error *err) {
    struct trc_event e;
    uint32_t words = 0;
    XPL_TRY(trc_get_event(a->t, v, i, &e, err));
    if (a->search) XPL_TRY(trc_arg_search_event(a->search, &e, &words, err));
    *ret_has = words == a->arguments_have.all;
    if (*ret_has && a->o->most && !add_found(a, &e)) XPL_RETURN_OOM(err, "trace sums");
    return XPL_OK;
}

static xpl_status_t add_event(struct adder *a, const struct trc_view *v, uint32_t i, uint64_t name,
                              struct xpl_error *err) {
    uint64_t begin, end;
    bool has = true;
    if (!trc_window_cut(&a->w, trc_get(v, TRC_TS, i), trc_get(v, TRC_DUR, i), &begin, &end))
        return XPL_OK;
    const uint64_t inside = end - begin;
    if (a->search || a->o->most) XPL_TRY(inspect(a, v, i, &has, err));
    if (has) add_sum(&a->sums[name], &(struct sum){1, inside, inside, inside});
    return XPL_OK;
}

static xpl_status_t add_block(struct adder *a, uint64_t block, struct xpl_error *err) {
    struct trc_view v;
    if (a->blocks++ % CANCEL_EVERY == 0 && xpl_exec_cancelled(a->exec))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace sums: cancelled");
    XPL_TRY(trc_view_block(a->t, block, &v, err));
    for (uint32_t i = 0; i < v.n; i++) {
        const uint64_t name = trc_get(&v, TRC_NAME, i), track = trc_get(&v, TRC_TRACK, i);
        if (name >= a->t->n[TRC_STRINGS] || track >= a->t->n[TRC_TRACKS])
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "trace index: an event is damaged");
        if (a->wanted_track[track] && a->wanted_name[name]) XPL_TRY(add_event(a, &v, i, name, err));
    }
    return XPL_OK;
}

// Adds the sums of a piece that lies wholly in the window.
static xpl_status_t add_piece(struct adder *a, const struct trc_piece *p, struct xpl_error *err) {
    const uint8_t *const rows = a->t->bytes.ptr + p->offset;
    if (a->blocks++ % CANCEL_EVERY == 0 && xpl_exec_cancelled(a->exec))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "trace sums: cancelled");
    if (trc_sum(rows, p->n_sums * sizeof(struct trc_piece_sum)) != p->sum)
        XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, p->offset, "trace index: sums are damaged");
    for (uint32_t i = 0; i < p->n_sums; i++) {
        struct trc_piece_sum s;
        memcpy(&s, rows + i * sizeof s, sizeof s);
        if (s.name >= a->t->n[TRC_STRINGS] || s.track >= a->t->n[TRC_TRACKS] || s.count == 0)
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "trace index: a sum is damaged");
        if (a->wanted_track[s.track] && a->wanted_name[s.name])
            add_sum(&a->sums[s.name], &(struct sum){s.count, s.total_ps, s.min_ps, s.max_ps});
    }
    return XPL_OK;
}

// The piece that begins with block b, when all of it belongs to the level and to the window.
static const struct trc_piece *whole_piece(const struct adder *a, uint64_t b, uint64_t end_block) {
    const struct trc_piece *const p = &a->t->pieces[b / TRC_PIECE];
    const uint64_t later = a->t->later_ps;
    if (a->search || a->o->most) return NULL;
    const bool fits = b % TRC_PIECE == 0 && end_block - b >= TRC_PIECE && p->counted;
    return fits && (a->w.all || (p->first_ts + later >= a->w.begin && p->end + later <= a->w.end))
               ? p
               : NULL;
}

static xpl_status_t add_levels(struct adder *a, struct xpl_error *err) {
    for (unsigned level = 0; level < TRC_LEVELS; level++) {
        const uint64_t end_block = a->t->footer->level_first[level + 1];
        for (uint64_t b = trc_window_first(&a->w, a->t, level), n; b < end_block; b += n) {
            const struct trc_piece *const piece = whole_piece(a, b, end_block);
            if (trc_window_ends(&a->w, a->t, b)) break;
            XPL_TRY(piece ? add_piece(a, piece, err) : add_block(a, b, err));
            n = piece ? TRC_PIECE : 1;
        }
    }
    return XPL_OK;
}

static xpl_status_t end_host(struct adder *a, struct xpl_error *err) {
    for (uint64_t i = 0; i < a->t->n[TRC_STRINGS]; i++) {
        xpl_strid_t id;
        if (a->sums[i].count == 0) continue;
        if (!xpl_intern_put(a->names, trc_str(a->t, i), &id)) XPL_RETURN_OOM(err, "trace sums");
        while (a->by_name.n <= id.v) {
            struct sum *const slot = xpl_vec_push(a->scratch, &a->by_name);
            if (!slot) XPL_RETURN_OOM(err, "trace sums");
            *slot = (struct sum){0};
        }
        add_sum(&a->by_name.v[id.v], &a->sums[i]);
    }
    return XPL_OK;
}

// ---- the answer ----

static int greatest_first(const void *pa, const void *pb) {
    const struct xpl_trace_sum *const a = pa, *const b = pb;
    if (a->total_ps != b->total_ps) return a->total_ps > b->total_ps ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return xpl_str_cmp(a->name, b->name);
}

static xpl_status_t finish_found(struct adder *a, struct xpl_arena *arena, struct xpl_trace_sums *r,
                                 struct xpl_error *err) {
    keep_earliest(a);
    r->found = xpl_arena_array(arena, a->found.n, sizeof *r->found);
    if (!r->found) XPL_RETURN_OOM(err, "trace sums");
    for (; r->n_found < a->found.n; r->n_found++) {
        r->found[r->n_found] = a->found.v[r->n_found].event;
        if (!xpl_arena_str(arena, r->found[r->n_found].name, &r->found[r->n_found].name))
            XPL_RETURN_OOM(err, "trace sums");
    }
    return XPL_OK;
}

static xpl_status_t finish_sums(struct adder *a, struct xpl_arena *arena,
                                struct xpl_trace_sums *ret, struct xpl_error *err) {
    struct xpl_trace_sums r = {.v = xpl_arena_array(arena, a->by_name.n, sizeof *r.v)};
    if (!r.v) XPL_RETURN_OOM(err, "trace sums");
    for (size_t i = 0; i < a->by_name.n; i++) {
        const struct sum *const s = &a->by_name.v[i];
        if (s->count == 0) continue;
        struct xpl_trace_sum *const to = &r.v[r.n];
        *to = (struct xpl_trace_sum){{"", 0}, s->count, s->total_ps, s->min_ps, s->max_ps};
        if (!xpl_arena_str(arena, xpl_intern_get(a->names, (xpl_strid_t){(uint32_t)i}), &to->name))
            XPL_RETURN_OOM(err, "trace sums");
        r.n++;
        r.count += s->count;
        r.total_ps = trc_plus(r.total_ps, s->total_ps);
    }
    xpl_sort(r.v, r.n, sizeof *r.v, greatest_first);
    XPL_TRY(finish_found(a, arena, &r, err));
    *ret = r;
    return XPL_OK;
}

xpl_status_t xpl_trace_sum_up(const struct xpl_trace_host *hosts, size_t n,
                              const struct xpl_trace_sums_options *o, struct xpl_exec *exec,
                              struct xpl_arena *arena, struct xpl_trace_sums *ret,
                              struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(arena->limit);
    struct adder a = {.o = o, .exec = exec, .scratch = &scratch};
    XPL_TRY(trc_window_init(&a.w, o, &scratch, err));
    XPL_TRY(trc_words_read(o->name, &a.names_have, err));
    XPL_TRY(trc_words_read(o->arguments, &a.arguments_have, err));
    a.names = xpl_intern_new(&scratch, xpl_hash_seed());
    hosts = trc_align(hosts, n, &scratch);
    if (!a.names || !hosts) XPL_RETURN_OOM(err, "trace sums");
    for (size_t i = 0; i < n; i++) {
        XPL_TRY(begin_host(&a, &hosts[i], (uint32_t)(i + 1) * TRC_DEVICES_PER_HOST, err));
        XPL_TRY(add_levels(&a, err));
        XPL_TRY(end_host(&a, err));
    }
    return finish_sums(&a, arena, ret, err);
}
