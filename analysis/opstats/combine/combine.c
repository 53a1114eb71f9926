// SPDX-License-Identifier: Apache-2.0
// Several hosts into one.  Rules: XProf's convert/op_stats_combiner.cc.  Which hosts take part is
// decided in combine_hosts.c; here each is got, added and released in its turn.
#include "analysis/opstats/combine/combine.h"

#include <string.h>

#include "analysis/opstats/combine/merge.h"
#include "base/arena.h"
#include "base/cleanup.h"

// ---- parts ----

static bool begin(struct xpl_merge *m) {
    *m->out = (struct xpl_opstats){
        .has_host_op_metrics_db = true,
        .has_device_op_metrics_db = true,
        .has_hlo_metrics_db_complete_steps_only = true,
        .has_perf_env = true,
        .has_step_db = true,
        .has_run_environment = true,
        .has_kernel_stats_db = true,
        .has_tf_function_db = true,
        .has_performance_counter_result = true,
    };
    const enum xpl_op_metrics_strings strings =
        m->texts ? XPL_OP_METRICS_COPY : XPL_OP_METRICS_SHARE;
    xpl_op_metrics_begin(&m->host_ops, &m->out->host_op_metrics_db, strings, m->result, m->scratch);
    xpl_op_metrics_begin(&m->device_ops, &m->out->device_op_metrics_db, strings, m->result,
                         m->scratch);
    m->functions.result = m->result;
    return xpl_merge_context_begin(m) && xpl_merge_steps_begin(m);
}

static bool add(struct xpl_merge *m, size_t host, const struct xpl_opstats *s) {
    return xpl_merge_context_add(m, host, s) &&
           xpl_op_metrics_combine(&m->host_ops, &s->host_op_metrics_db, false) &&
           xpl_op_metrics_combine(&m->device_ops, &s->device_op_metrics_db, true) &&
           xpl_tf_functions_combine(&m->functions, s->tf_functions.v, s->tf_functions.n) &&
           xpl_merge_kernels_add(m, s) && xpl_merge_steps_add(m, host, s);
}

static bool finish(struct xpl_merge *m) {
    xpl_tf_functions_finish(&m->functions);
    m->out->tf_functions.v = m->functions.v.v;
    m->out->tf_functions.n = m->functions.v.n;
    m->out->tf_functions.cap = m->functions.v.cap;
    return xpl_merge_context_finish(m) && xpl_merge_steps_finish(m);
}

// ---- hosts in turn ----

enum { MAX_BATCH = 64, MAX_BATCH_BYTES = 64 << 20 };

// Hosts that are got together.
struct batch {
    size_t first, n; // of those that take part
    const struct xpl_opstats *stats[MAX_BATCH];
    xpl_status_t status[MAX_BATCH];
    struct xpl_error err[MAX_BATCH];
};

// While one batch is added, the next one is got.
struct turns {
    struct xpl_merge *m;
    const struct xpl_combine_source *source;
    struct batch *ready, *next;
    bool added; // all of `ready`
};

static xpl_status_t get_host(const struct xpl_combine_source *source,
                             const struct xpl_combine_host *c, const struct xpl_opstats **ret,
                             struct xpl_error *err) {
    *ret = c->host->stats;
    if (*ret) return XPL_OK;
    XPL_TRY(source->get(source->arg, c->at, ret, err));
    if ((*ret)->step_db.step_sequence.n == c->outline->n_steps) return XPL_OK;
    source->release(source->arg, c->at);
    XPL_RETURN_ERROR(err, XPL_ABORTED, "a host's OpStats changed while hosts were combined");
}

static void get_piece(struct turns *t, size_t i) {
    struct batch *const b = t->next;
    b->status[i] = get_host(t->source, &t->m->h->v.v[b->first + i], &b->stats[i], &b->err[i]);
}

// Piece 0 adds the batch that is ready, the others get one host each.
static void run_piece(void *ctx, size_t piece) {
    struct turns *const t = ctx;
    if (piece) {
        get_piece(t, piece - 1);
        return;
    }
    t->added = true;
    for (size_t i = 0; t->added && i < t->ready->n; i++)
        t->added = add(t->m, t->ready->first + i, t->ready->stats[i]);
}

static void release_batch(const struct turns *t, struct batch *b) {
    for (size_t i = 0; i < b->n; i++) {
        const struct xpl_combine_host *const c = &t->m->h->v.v[b->first + i];
        if (b->status[i] == XPL_OK && !c->host->stats) t->source->release(t->source->arg, c->at);
    }
    b->n = 0;
}

static xpl_status_t failure_of(const struct batch *b, struct xpl_error *err) {
    for (size_t i = 0; i < b->n; i++) {
        if (b->status[i] == XPL_OK) continue;
        if (err) *err = b->err[i];
        return b->status[i];
    }
    return XPL_OK;
}

// Two batches are there at once: they get a part of the memory that the result may use.
static void plan_batch(const struct xpl_merge *m, size_t first, struct batch *b) {
    const struct xpl_combine_host *const v = m->h->v.v;
    const size_t limit = m->result->limit / 16, n = m->h->v.n;
    const size_t most = limit < MAX_BATCH_BYTES ? limit : MAX_BATCH_BYTES;
    size_t bytes = 0;
    b->first = first;
    b->n = 0;
    while (first + b->n < n && b->n < MAX_BATCH && (b->n == 0 || bytes < most))
        bytes += v[first + b->n++].outline->bytes;
}

static xpl_status_t run_turns(struct turns *t, struct xpl_error *err) {
    size_t at = 0;
    do {
        plan_batch(t->m, at, t->next);
        at += t->next->n;
        xpl_exec_run(t->source->exec, 1 + t->next->n, run_piece, t);
        release_batch(t, t->ready);
        struct batch *const got = t->next;
        t->next = t->ready;
        t->ready = got;
        if (!t->added) XPL_RETURN_OOM(err, "combining hosts");
        XPL_TRY(failure_of(got, err));
        if (xpl_exec_cancelled(t->source->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    } while (t->ready->n);
    return XPL_OK;
}

static xpl_status_t add_in_turn(struct xpl_merge *m, const struct xpl_combine_source *source,
                                struct xpl_error *err) {
    struct batch *const both = xpl_arena_zalloc(m->scratch, 2 * sizeof *both);
    if (!both) XPL_RETURN_OOM(err, "combining hosts");
    struct turns t = {.m = m, .source = source, .ready = &both[0], .next = &both[1]};
    const xpl_status_t st = run_turns(&t, err);
    release_batch(&t, t.ready);
    return st;
}

// ---- all ----

static xpl_status_t combine_all(struct xpl_merge *m, const struct xpl_combine_source *source,
                                struct xpl_error *err) {
    if (source && !(m->texts = xpl_intern_new(m->result, xpl_hash_seed())))
        XPL_RETURN_OOM(err, "combining hosts");
    bool ok = begin(m);
    if (ok && source) XPL_TRY(add_in_turn(m, source, err));
    for (size_t i = 0; ok && !source && i < m->h->v.n; i++)
        ok = add(m, i, m->h->v.v[i].host->stats);
    if (!ok || !finish(m)) XPL_RETURN_OOM(err, "combining hosts");
    return XPL_OK;
}

static bool append_texts(struct xpl_arena *a, struct xpl_str_list *dst,
                         const struct xpl_str_list *src) {
    if (!xpl_vec_reserve(a, dst, src->n)) return false;
    if (src->n) memcpy(dst->v + dst->n, src->v, src->n * sizeof *src->v);
    dst->n += src->n;
    return true;
}

// Warnings about hosts come after those that the hosts have themselves.
static bool add_warnings(const struct xpl_merge *m) {
    struct xpl_diagnostics *d = &m->out->diagnostics;
    const struct xpl_diagnostics old = *d;
    if (m->h->warnings.n == 0) return true;
    d->warnings.v = NULL, d->warnings.n = d->warnings.cap = 0;
    return append_texts(m->result, &d->warnings, &old.warnings) &&
           append_texts(m->result, &d->warnings, &m->h->warnings);
}

static bool warn_of_missing(const struct xpl_combine_input *in, const struct xpl_opstats *out,
                            struct xpl_arena *arena, struct xpl_combine_hosts *h) {
    const int32_t all = out->run_environment.replica_count;
    if (in->by_name || in->xprof_exact || all <= 0 || (size_t)all <= in->n) return true;
    xpl_str_t *const text = xpl_vec_push(arena, &h->warnings);
    return text && xpl_arena_printf(arena, text, "%zu of %d ranks: the others have no profile here",
                                    in->n, all);
}

// Of several hosts one remains: its cores have the session's name of it, as those of several have.
static bool name_cores(const struct xpl_combine_host *c, struct xpl_arena *arena,
                       struct xpl_opstats *out) {
    const size_t n = out->core_id_to_details.n;
    struct xpl_core_details *const v = xpl_arena_array(arena, n, sizeof *v);
    for (size_t i = 0; v && i < n; i++) {
        v[i] = out->core_id_to_details.v[i]; // those are the host's, which others read
        v[i].hostname = c->host->host;
    }
    out->core_id_to_details.v = v;
    out->core_id_to_details.cap = n;
    return v;
}

static xpl_status_t copy_only_host(const struct xpl_combine_input *in,
                                   const struct xpl_combine_host *c, struct xpl_arena *arena,
                                   struct xpl_opstats *out, struct xpl_error *err) {
    const struct xpl_opstats *s = c->host->stats;
    if (!s) XPL_TRY(in->source->get(in->source->arg, c->at, &s, err));
    *out = *s;
    if (in->n > 1 && !in->xprof_exact && !name_cores(c, arena, out))
        XPL_RETURN_OOM(err, "combining hosts");
    return XPL_OK;
}

xpl_status_t xpl_opstats_combine(const struct xpl_combine_input *in, struct xpl_arena *arena,
                                 struct xpl_opstats **ret, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(arena->limit);
    struct xpl_combine_hosts h;
    struct xpl_opstats *out = xpl_arena_zalloc(arena, sizeof *out);
    if (!out) XPL_RETURN_OOM(err, "combining hosts");
    XPL_TRY(xpl_combine_choose(in->hosts, in->n, in->xprof_exact, arena, &h, err));
    struct xpl_merge m = {
        .h = &h, .result = arena, .scratch = &scratch, .out = out, .exact = in->xprof_exact};
    if (h.v.n == 1)
        XPL_TRY(copy_only_host(in, &h.v.v[0], arena, out, err));
    else
        XPL_TRY(combine_all(&m, in->source, err));
    if (!warn_of_missing(in, out, arena, &h) || !add_warnings(&m))
        XPL_RETURN_OOM(err, "combining hosts");
    *ret = out;
    return XPL_OK;
}
