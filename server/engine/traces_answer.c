// From a question about traces to its answer: profiles opened, indexes had, hosts side by side.
#include "base/cleanup.h"
#include "base/clock.h"
#include "server/engine/impl.h"
#include "server/engine/traces.h"

enum { ATTEMPTS = 3 };

struct host {
    struct xpl_source *source;
    struct xpl_trace_handle *held;
    xpl_status_t status;
    struct xpl_error err;
};

struct asking {
    struct xpl_engine *e;
    const struct xpl_request *q;
    const struct xpl_build_context *want;
    struct host *hosts;
    struct xpl_trace_host *list;
    const struct xpl_trace_options *first; // NULL: whole indexes are wanted
    bool damaged;                          // one of the indexes that came from files
};

// An exec that gives up when the asker did, or when the profile is torn.
struct watched_exec {
    struct xpl_exec exec;
    const struct xpl_build_context *want;
    const struct xpl_source *source; // NULL: no single one
};

static bool watched_cancelled(struct xpl_exec *x) {
    const struct watched_exec *const w = (const struct watched_exec *)x;
    if (w->source && xpl_source_is_truncated(w->source)) return true;
    return w->want->cancelled && w->want->cancelled(w->want->arg);
}

static void watched_run(struct xpl_exec *x, size_t n, xpl_exec_fn fn, void *ctx) {
    xpl_exec_run(((struct watched_exec *)x)->want->exec, n, fn, ctx);
}

static void open_host(struct asking *a, size_t i, bool fresh) {
    struct host *const h = &a->hosts[i];
    struct xpl_error why = {0};
    h->status = XPL_ABORTED;
    for (int n = 0; n < ATTEMPTS && h->status == XPL_ABORTED; n++) {
        xpl_source_free(h->source);
        h->source = NULL;
        why = (struct xpl_error){0};
        h->status = xpl_snapshot_open(a->q->snapshot, a->q->hosts[i], 0, &h->source, &why);
        if (h->status != XPL_OK) break;
        struct watched_exec x = {.exec = {.run = watched_run,
                                          .cancelled = watched_cancelled,
                                          .width = a->want->exec->width},
                                 .want = a->want,
                                 .source = h->source};
        h->status =
            xpl_traces_get(a->e->traces, h->source, &x.exec, atomic_load(&a->e->memory_limit),
                           fresh, a->first, &h->held, &why);
        if (h->status == XPL_OK || h->status == XPL_ABORTED) continue;
        // A torn file looks like anything.
        struct xpl_error changed = {0};
        const xpl_status_t same = xpl_source_verify(h->source, &changed);
        if (same == XPL_OK) continue;
        h->status = same;
        why = changed;
    }
    if (h->status != XPL_OK)
        (void)xpl_error_set(&h->err, h->status, __FILE__, __LINE__, why.offset, "%s: %s",
                            a->q->hosts[i]->path.ptr, why.msg);
}

static void close_host(struct asking *a, struct host *h) {
    if (h->held)
        xpl_trace_held_put(a->e->traces, h->held, a->damaged && !xpl_trace_held_built(h->held));
    xpl_source_free(h->source);
    h->held = NULL;
    h->source = NULL;
}

// The hosts that can be shown; the others are told of.
static xpl_status_t choose(struct asking *a, size_t *ret_n, struct xpl_buf *warnings,
                           struct xpl_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < a->q->n_hosts; i++) {
        const struct host *const h = &a->hosts[i];
        if (h->status == XPL_OK) {
            a->list[n++] = (struct xpl_trace_host){
                a->q->hosts[i]->name, xpl_trace_held_get(h->held), xpl_source_bytes(h->source)};
        } else if (h->status != XPL_DATA_LOSS || a->q->by_name || a->q->n_hosts == 1) {
            *err = h->err;
            return h->status;
        } else {
            xpl_answer_warn(warnings, a->q->hosts[i]->name, xpl_str_from(h->err.msg));
        }
    }
    *ret_n = n;
    if (n) return XPL_OK;
    *err = a->hosts[0].err;
    return a->hosts[0].status;
}

static xpl_status_t verify(const struct asking *a, bool *ret_keep, struct xpl_error *err) {
    *ret_keep = true;
    for (size_t i = 0; i < a->q->n_hosts; i++) {
        const struct host *const h = &a->hosts[i];
        if (h->status != XPL_OK) *ret_keep = false;
        if (h->status != XPL_OK) continue;
        if (xpl_trace_held_torn(h->held))
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "its trace index was cut");
        XPL_TRY(xpl_source_verify(h->source, err));
        if (!xpl_source_is_stable(h->source) ||
            !xpl_fingerprint_eq(xpl_source_fingerprint(h->source), &a->q->hosts[i]->print))
            *ret_keep = false;
    }
    return XPL_OK;
}

static bool any_from_file(const struct asking *a) {
    for (size_t i = 0; i < a->q->n_hosts; i++)
        if (a->hosts[i].held && !xpl_trace_held_built(a->hosts[i].held)) return true;
    return false;
}

static xpl_status_t once(struct asking *a, bool fresh, uint64_t *stage_us, struct xpl_buf *out,
                         struct xpl_buf *warnings, bool *ret_keep, bool *ret_stored,
                         struct xpl_error *err) {
    uint64_t began = xpl_clock_ns();
    size_t n = 0;
    *ret_stored = true;
    for (size_t i = 0; i < a->q->n_hosts; i++) {
        open_host(a, i, fresh);
        if (!a->hosts[i].held || xpl_trace_held_built(a->hosts[i].held)) *ret_stored = false;
    }
    stage_us[XPL_STAGE_CONVERT] += (xpl_clock_ns() - began) / 1000 + 1;
    began = xpl_clock_ns();
    xpl_status_t st = choose(a, &n, warnings, err), asked = XPL_OK;
    struct watched_exec x = {
        .exec = {.run = watched_run, .cancelled = watched_cancelled, .width = 1}, .want = a->want};
    if (st == XPL_OK)
        st = asked = xpl_trace_answer(a->list, n, &a->q->opt.trace, &x.exec,
                                      atomic_load(&a->e->memory_limit), out, err);
    stage_us[XPL_STAGE_RENDER] += (xpl_clock_ns() - began) / 1000 + 1;
    struct xpl_error changed = {0};
    const xpl_status_t same = verify(a, ret_keep, &changed);
    a->damaged = any_from_file(a) && (asked == XPL_DATA_LOSS || same == XPL_DATA_LOSS);
    if (same == XPL_OK) return st;
    *err = changed;
    return same;
}

xpl_status_t xpl_traces_answer(struct xpl_engine *e, const struct xpl_request *q,
                               const struct xpl_build_context *want, uint64_t *stage_us,
                               struct xpl_buf *out, struct xpl_buf *warnings, bool *ret_keep,
                               bool *ret_stored, struct xpl_traces_rest *ret_rest,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct asking a = {.e = e, .q = q, .want = want};
    xpl_status_t st = XPL_DATA_LOSS;
    struct xpl_error why = {0};
    // With several hosts, each would be held half built until the last is.
    if (want->deliver && q->n_hosts == 1) a.first = &q->opt.trace;
    xpl_arena_init(&arena, (size_t)64 << 20);
    a.hosts = xpl_arena_array(&arena, q->n_hosts, sizeof *a.hosts);
    a.list = xpl_arena_array(&arena, q->n_hosts, sizeof *a.list);
    if (!a.hosts || !a.list) XPL_RETURN_OOM(err, "hosts");
    for (int i = 0; i < ATTEMPTS; i++) {
        why = (struct xpl_error){0};
        memset(a.hosts, 0, q->n_hosts * sizeof *a.hosts);
        out->n = warnings->n = 0;
        st = once(&a, want->fresh, stage_us, out, warnings, ret_keep, ret_stored, &why);
        // What was read is not in vain when only the answer did not fit.
        if ((st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED) && a.first && a.hosts[0].held &&
            xpl_trace_held_unfinished(a.hosts[0].held)) {
            *ret_rest = (struct xpl_traces_rest){a.hosts[0].held, a.hosts[0].source};
            break;
        }
        for (size_t k = 0; k < q->n_hosts; k++)
            close_host(&a, &a.hosts[k]);
        // A stored index may be damaged; once built anew it is not.
        if (st != XPL_ABORTED && !a.damaged) break;
    }
    if (st != XPL_OK && err) *err = why;
    return st;
}

void xpl_traces_do_rest(struct xpl_engine *e, struct xpl_exec *exec, struct xpl_traces_rest *rest) {
    const struct xpl_build_context nobody = {
        .exec = exec, .cancelled = xpl_engine_is_stopping, .arg = e};
    struct watched_exec x = {
        .exec = {.run = watched_run, .cancelled = watched_cancelled, .width = exec->width},
        .want = &nobody,
        .source = rest->source};
    xpl_traces_finish(e->traces, rest->held, rest->source, &x.exec);
    xpl_trace_held_put(e->traces, rest->held, false);
    xpl_source_free(rest->source);
    *rest = (struct xpl_traces_rest){0};
}
