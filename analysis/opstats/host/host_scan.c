// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/host_scan.h"

#include <stdatomic.h>

#include "base/cleanup.h"
#include "base/vec.h"

// A piece is a separate turn from so many events on; this many turns per thread balance their
// times.
enum { MIN_PIECE_EVENTS = 1 << 14, TURNS_PER_THREAD = 8 };

struct shard {
    struct xpl_arena *arena;
    struct xpl_cpu_memory memory;
    size_t failed; // first piece that failed; SIZE_MAX: none
    xpl_status_t status;
    struct xpl_error err;
};

struct scan_job {
    const struct xpl_host_plan *plan;
    struct xpl_host_scan *scan;
    const size_t *order; // pieces, longest first
    atomic_size_t next;
    struct xpl_steps *steps; // by piece
    struct shard *shards;
};

// ---- pieces ----

static unsigned width_of(const struct xpl_exec *exec) {
    return exec->width ? exec->width : 1;
}

// How many chunks of a line make a piece: all, unless the line is long and may be cut.
static uint32_t chunks_per_piece(const struct xpl_host_plan *p, const struct xpl_line *l,
                                 uint64_t n_events) {
    const unsigned width = width_of(p->c->exec);
    if (width < 2 || p->whole_lines || l->n_chunks < 2) return UINT32_MAX;
    if (p->groups && !xpl_groups_can_start_at_chunk(p->c->groups, l)) return UINT32_MAX;
    uint64_t events = n_events / ((uint64_t)width * TURNS_PER_THREAD);
    if (events < MIN_PIECE_EVENTS) events = MIN_PIECE_EVENTS;
    const uint64_t pieces = (l->n_events + events - 1) / events;
    return (uint32_t)((l->n_chunks + pieces - 1) / pieces);
}

static bool cut_line(struct xpl_host_scan *scan, uint32_t line, uint32_t step, size_t *cap) {
    const uint32_t n_chunks = scan->plane->lines[line].n_chunks;
    for (uint32_t at = 0; at == 0 || at < n_chunks;) {
        const uint32_t end = step < n_chunks - at && n_chunks ? at + step : n_chunks;
        struct xpl_host_piece *v =
            xpl_vec_room_(&scan->arena, scan->pieces, scan->n_pieces, cap, 1, sizeof *v);
        if (!v) return false;
        scan->pieces = v;
        scan->pieces[scan->n_pieces++] =
            (struct xpl_host_piece){.line = line, .chunk = at, .end_chunk = end};
        if (end <= at) break;
        at = end;
    }
    return true;
}

static bool cut_lines(const struct xpl_host_plan *plan, struct xpl_host_scan *scan) {
    const struct xpl_plane *p = scan->plane;
    uint64_t n_events = 0;
    size_t cap = 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        n_events += p->lines[i].n_events;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].n_events &&
            !cut_line(scan, i, chunks_per_piece(plan, &p->lines[i], n_events), &cap))
            return false;
    return true;
}

// ---- all of them ----

static void run_shard(void *ctx, size_t i) {
    struct scan_job *job = ctx;
    struct shard *sh = &job->shards[i];
    for (;;) {
        const size_t k = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (k >= job->scan->n_pieces) return;
        const size_t at = job->order[k];
        struct xpl_error err = {0};
        const xpl_status_t st = xpl_host_piece_read(job->plan, &job->scan->pieces[at], &sh->memory,
                                                    sh->arena, &job->steps[at], &err);
        // Of several failures the one that comes first in the file is reported.
        if (st == XPL_OK || at > sh->failed) continue;
        sh->failed = at, sh->status = st, sh->err = err;
    }
}

struct by_length {
    uint64_t length;
    size_t piece;
};

static int longest_first(const void *pa, const void *pb) {
    const struct by_length *a = pa, *b = pb;
    if (a->length != b->length) return a->length > b->length ? -1 : 1;
    return (a->piece > b->piece) - (a->piece < b->piece);
}

static bool order_pieces(struct scan_job *job, struct xpl_arena *arena) {
    const size_t n = job->scan->n_pieces;
    struct by_length *v = xpl_arena_array(arena, n, sizeof *v);
    size_t *order = xpl_arena_array(arena, n, sizeof *order);
    if (!v || !order) return false;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_host_piece *p = &job->scan->pieces[i];
        const struct xpl_line *l = &job->plan->plane->lines[p->line];
        const uint64_t share = l->n_chunks ? l->n_events / l->n_chunks : l->n_events;
        v[i] = (struct by_length){l->n_chunks ? share * (p->end_chunk - p->chunk) : share, i};
    }
    xpl_sort(v, n, sizeof *v, longest_first);
    for (size_t i = 0; i < n; i++)
        order[i] = v[i].piece;
    job->order = order;
    return true;
}

static bool make_shards(struct scan_job *job, unsigned width, struct xpl_arena *arena) {
    struct xpl_host_scan *scan = job->scan;
    scan->shards = xpl_arena_array(&scan->arena, width, sizeof *scan->shards);
    job->shards = xpl_arena_array(arena, width, sizeof *job->shards);
    if (!scan->shards || !job->shards) return false;
    for (unsigned i = 0; i < width; i++) {
        xpl_arena_init(&scan->shards[i], job->plan->c->scratch_limit);
        job->shards[i] = (struct shard){.arena = &scan->shards[i], .failed = SIZE_MAX};
    }
    scan->n_shards = width;
    return true;
}

static xpl_status_t first_failure(const struct scan_job *job, unsigned width,
                                  struct xpl_error *err) {
    const struct shard *first = NULL;
    for (unsigned i = 0; i < width; i++)
        if (job->shards[i].failed != SIZE_MAX && (!first || job->shards[i].failed < first->failed))
            first = &job->shards[i];
    if (!first) return XPL_OK;
    if (err && err->code == XPL_OK) *err = first->err;
    return first->status;
}

// ---- joining ----

// Joins the steps of one line's pieces.  Within a line the last name of a step counts, between
// lines the first.
static bool join_steps(struct xpl_steps *pieces, size_t n, struct xpl_steps *all) {
    struct xpl_steps line;
    if (n == 1) return xpl_steps_union(pieces, all);
    xpl_steps_init(&line, all->arena);
    for (size_t i = 0; i < n; i++) {
        if (!xpl_steps_union(&pieces[i], &line)) return false;
        for (size_t k = 0; k < pieces[i].v.n; k++)
            if (pieces[i].v.v[k].name.len)
                xpl_steps_find(&line, pieces[i].v.v[k].id)->name = pieces[i].v.v[k].name;
    }
    return xpl_steps_union(&line, all);
}

// Ops that run on from one piece of a line into the next.
static xpl_status_t join_ops(const struct xpl_host_plan *plan, struct xpl_host_piece *pieces,
                             size_t n, struct xpl_arena *arena, struct xpl_error *err) {
    struct xpl_cpu_carry carry = {.arena = arena};
    for (size_t i = 0; n > 1 && i < n; i++) {
        XPL_TRY(xpl_host_piece_pass(plan, &pieces[i], &carry, err));
        if (pieces[i].cpu && !xpl_cpu_carry_merge(&carry, pieces[i].cpu))
            XPL_RETURN_OOM(err, "host ops");
    }
    xpl_cpu_carry_finish(&carry);
    return XPL_OK;
}

static xpl_status_t join(struct scan_job *job, struct xpl_arena *arena, struct xpl_error *err) {
    struct xpl_host_scan *scan = job->scan;
    for (size_t i = 0, n; i < scan->n_pieces; i += n) {
        for (n = 1; i + n < scan->n_pieces && scan->pieces[i + n].line == scan->pieces[i].line;)
            n++;
        if (!join_steps(&job->steps[i], n, &scan->steps)) XPL_RETURN_OOM(err, "steps");
        for (size_t k = 0; k < n; k++)
            xpl_step_join_spans(&scan->pieces[i + k].loose, &scan->loose);
        const size_t first = scan->runs.launches.n;
        for (size_t k = 0; k < n; k++)
            if (!xpl_host_runs_join(&scan->pieces[i + k].runs, &scan->runs, &scan->arena))
                XPL_RETURN_OOM(err, "executions");
        xpl_host_runs_name_launches(&scan->runs, first);
        if (job->plan->cpu) XPL_TRY(join_ops(job->plan, &scan->pieces[i], n, arena, err));
    }
    xpl_host_runs_match(&scan->runs);
    return XPL_OK;
}

static xpl_status_t scan_lines(const struct xpl_host_plan *plan, struct xpl_host_scan *scan,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(plan->c->scratch_limit);
    struct scan_job job = {.plan = plan, .scan = scan};
    atomic_init(&job.next, 0);
    if (!cut_lines(plan, scan)) XPL_RETURN_OOM(err, "host events");
    job.steps = xpl_arena_array(&scratch, scan->n_pieces, sizeof *job.steps);
    if (!job.steps || !order_pieces(&job, &scratch)) XPL_RETURN_OOM(err, "host events");
    unsigned width = width_of(plan->c->exec);
    if (width > scan->n_pieces) width = (unsigned)scan->n_pieces;
    if (!make_shards(&job, width, &scratch)) XPL_RETURN_OOM(err, "host events");
    xpl_exec_run(plan->c->exec, width, run_shard, &job);
    XPL_TRY(first_failure(&job, width, err));
    return join(&job, &scratch, err);
}

xpl_status_t xpl_host_scan_run(const struct xpl_convert *c, struct xpl_host_scan *scan,
                               struct xpl_error *err) {
    if (scan->done) return XPL_OK;
    scan->done = true;
    xpl_arena_init(&scan->arena, c->scratch_limit);
    xpl_steps_init(&scan->steps, &scan->arena);
    scan->plane = xpl_xspace_plane(c->xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    if (!scan->plane) return XPL_OK;
    struct xpl_host_plan *plan = xpl_arena_zalloc(&scan->arena, sizeof *plan);
    if (!plan) XPL_RETURN_OOM(err, "host events");
    XPL_TRY(xpl_host_plan_make(c, scan->plane, &scan->arena, plan, err));
    const bool nothing = !plan->steps && !plan->any_ops && !plan->cpu &&
                         !(plan->stats & (XPL_HOST_TF_OP | XPL_HOST_TF_CALL));
    return nothing ? XPL_OK : scan_lines(plan, scan, err);
}

void xpl_host_scan_fini(struct xpl_host_scan *scan) {
    for (unsigned i = 0; i < scan->n_shards; i++)
        xpl_arena_fini(&scan->shards[i]);
    xpl_arena_fini(&scan->arena);
    *scan = (struct xpl_host_scan){0};
}
