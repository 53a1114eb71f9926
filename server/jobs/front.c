// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/front.h"

#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "server/engine/request.h"
#include "storage/store/jobs.h"

// How often jobs are inspected: less and less, and never less than that often; cancelling is
// noticed sooner.  How often workers are counted, and how long lost jobs wait for one.
enum { MIN_MS = 4, MAX_MS = 200, SLICE_MS = 25, COUNT_MS = 1000, ALONE_MS = 30000 };

static uint64_t ns_of(uint64_t ms) {
    return ms * 1000000u;
}

// The jobs of a request that are not over; they move to the front as others end.
struct waiting {
    const struct xpl_front_request *f;
    bool *aside;
    size_t n;
    struct xpl_job_spec *specs;
    struct xpl_job_digest *digests;
    enum xpl_job_state *states;
    size_t *hosts; // in the request
    size_t n_refs; // what memory had not
    struct xpl_product_ref *refs;
    uint64_t count_ns;       // when workers are counted again
    uint64_t alone_since_ns; // 0: there are workers
};

static bool is_cancelled(const struct xpl_front_request *f) {
    return f->owner.is_cancelled && f->owner.is_cancelled(f->owner.arg);
}

// ---- what is missing ----

static bool is_in_memory(const struct xpl_front_request *f, const struct xpl_product *p,
                         unsigned variant, const struct xpl_host *h) {
    struct xpl_product_handle *const known =
        xpl_product_lookup(f->products, p, variant, &h->fingerprint);
    if (known) xpl_object_unref(&known->object);
    return known != NULL;
}

static bool make_room(struct waiting *w, struct xpl_arena *arena, size_t n) {
    w->specs = xpl_arena_array(arena, n, sizeof *w->specs);
    w->digests = xpl_arena_array(arena, n, sizeof *w->digests);
    w->states = xpl_arena_array(arena, n, sizeof *w->states);
    w->hosts = xpl_arena_array(arena, n, sizeof *w->hosts);
    w->refs = xpl_arena_array(arena, n, sizeof *w->refs);
    return w->specs && w->digests && w->states && w->hosts && w->refs;
}

// What memory has not got; hosts[i] is refs[i]'s.
static void list_refs(struct waiting *w) {
    const struct xpl_request *const q = w->f->q;
    for (size_t i = 0; i < q->n_hosts; i++) {
        const struct xpl_host *const h = q->hosts[i];
        for (size_t k = 0; q->tool->needs[k]; k++) {
            const struct xpl_product *const p = q->tool->needs[k];
            const unsigned variant = w->f->variants[k];
            if (p->residency != XPL_RESIDENCY_STORE || is_in_memory(w->f, p, variant, h)) continue;
            w->hosts[w->n_refs] = i;
            w->refs[w->n_refs++] =
                (struct xpl_product_ref){.product = p,
                                         .variant = variant,
                                         .format = xpl_format_of_name(h->path, NULL),
                                         .file = &h->fingerprint};
        }
    }
}

static struct xpl_job_spec spec_of(const struct xpl_request *q, const struct xpl_host *h,
                                   const struct xpl_product_ref *r) {
    return (struct xpl_job_spec){.session = q->session->name,
                                 .host = h->name,
                                 .size_bytes = h->fingerprint.size,
                                 .mtime_ns = h->fingerprint.mtime_ns,
                                 .product = xpl_str_from(r->product->name),
                                 .version = r->product->version,
                                 .variant = r->variant,
                                 .traceparent = q->traceparent};
}

// The store is asked for all at once: one by one, thousands of hosts take seconds.
static xpl_status_t list_missing(struct waiting *w, struct xpl_arena *arena,
                                 struct xpl_error *err) {
    const struct xpl_request *const q = w->f->q;
    list_refs(w);
    if (!w->n_refs) return XPL_OK;
    XPL_TRY(xpl_product_find_stored(w->f->products, w->refs, w->n_refs, arena, err));
    for (size_t i = 0; i < w->n_refs; i++) {
        if (w->refs[i].stored) continue;
        w->specs[w->n] = spec_of(q, q->hosts[w->hosts[i]], &w->refs[i]);
        w->states[w->n] = XPL_JOB_QUEUED;
        w->hosts[w->n++] = w->hosts[i];
    }
    return XPL_OK;
}

// ---- waiting ----

static void count_workers(struct waiting *w, uint64_t now) {
    struct xpl_job_stats stats;
    struct xpl_store *const s = w->f->store;
    if (now < w->count_ns) return;
    w->count_ns = now + ns_of(COUNT_MS);
    if (xpl_store_jobs(s)->get_stats(s, &stats, NULL) != XPL_OK || stats.workers > 0)
        w->alone_since_ns = 0;
    else if (!w->alone_since_ns)
        w->alone_since_ns = now;
}

// Whether a job need not be waited for.  What was lost with a worker is not made here: it may well
// have been the cause.
static bool is_over(struct waiting *w, size_t i, uint64_t now) {
    const bool alone = w->alone_since_ns != 0;
    const bool for_long = alone && now - w->alone_since_ns > ns_of(ALONE_MS);
    const enum xpl_job_state st = w->states[i];
    if (st == XPL_JOB_SET_ASIDE || (st == XPL_JOB_SUSPECT && for_long))
        w->aside[w->hosts[i]] = true;
    return st == XPL_JOB_GONE || st == XPL_JOB_SET_ASIDE || (st == XPL_JOB_SUSPECT && for_long) ||
           (st == XPL_JOB_QUEUED && alone);
}

static void drop_over(struct waiting *w, uint64_t now) {
    size_t n = 0;
    if (w->alone_since_ns) // made here, not by the next worker
        (void)xpl_store_jobs(w->f->store)->withdraw(w->f->store, w->digests, w->n, NULL);
    for (size_t i = 0; i < w->n; i++) {
        if (is_over(w, i, now)) continue;
        w->digests[n] = w->digests[i];
        w->hosts[n] = w->hosts[i];
        w->states[n++] = w->states[i];
    }
    w->n = n;
}

// The database is away: what was lost with a worker when it was last there is not made here.
static void give_up(struct waiting *w) {
    for (size_t i = 0; i < w->n; i++)
        if (w->states[i] == XPL_JOB_SUSPECT) w->aside[w->hosts[i]] = true;
    w->n = 0;
}

// Until `until`, or the asker is gone.
static void sleep_until(const struct xpl_front_request *f, uint64_t until) {
    for (uint64_t now = xpl_clock_ns(); now < until && !is_cancelled(f); now = xpl_clock_ns()) {
        const uint64_t ns = until - now < ns_of(SLICE_MS) ? until - now : ns_of(SLICE_MS);
        const struct timespec t = {.tv_nsec = (long)ns};
        (void)nanosleep(&t, NULL);
    }
}

static void wait_all(struct waiting *w) {
    struct xpl_store *const s = w->f->store;
    const struct xpl_job_ops *const jobs = xpl_store_jobs(s);
    uint64_t pause = MIN_MS;
    while (w->n && !is_cancelled(w->f)) {
        if (jobs->inspect(s, w->digests, w->n, w->states, NULL) != XPL_OK) {
            give_up(w);
            return;
        }
        const uint64_t now = xpl_clock_ns();
        count_workers(w, now);
        drop_over(w, now);
        if (!w->n) return;
        sleep_until(w->f, now + ns_of(pause));
        pause = pause * 3 / 2 < MAX_MS ? pause * 3 / 2 : MAX_MS;
    }
}

xpl_status_t xpl_front_wait(const struct xpl_front_request *f, bool *ret_aside,
                            struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct waiting w = {.f = f, .aside = ret_aside};
    size_t n_needs = 0;
    xpl_arena_init(&arena, f->limit);
    memset(ret_aside, 0, f->q->n_hosts * sizeof *ret_aside);
    while (f->q->tool->needs[n_needs])
        n_needs++;
    if (!make_room(&w, &arena, f->q->n_hosts * n_needs)) XPL_RETURN_OOM(err, "jobs");
    XPL_TRY(list_missing(&w, &arena, err));
    const struct xpl_job_ops *const jobs = xpl_store_jobs(f->store);
    const bool any = w.n > 0;
    if (any && jobs->enqueue(f->store, w.specs, w.n, w.digests, NULL) == XPL_OK) wait_all(&w);
    if (is_cancelled(f)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    return any ? xpl_product_identify_files(f->products, w.refs, w.n_refs, &arena, err) : XPL_OK;
}

xpl_status_t xpl_front_explain_aside(const char *path, struct xpl_error *ret) {
    *ret = (struct xpl_error){0};
    return xpl_error_set(ret, XPL_DATA_LOSS, __FILE__, __LINE__, UINT64_MAX,
                         "%s: set aside: daemons that read it ended before they were done; it is "
                         "tried again in %d minutes",
                         path, XPL_JOB_ASIDE_S / 60);
}
