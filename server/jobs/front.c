// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/front.h"

#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "server/engine/request.h"
#include "server/jobs/job.h"
#include "storage/hash.h"
#include "storage/store/jobs.h"

// How often jobs are inspected: less and less, and never less than that often; cancelling is
// noticed sooner.  How often workers are counted, and how long lost jobs wait for one.
enum { MIN_MS = 4, MAX_MS = 200, SLICE_MS = 25, COUNT_MS = 1000, ALONE_MS = 30000 };

static uint64_t ns_of(uint64_t ms) {
    return ms * 1000000u;
}

struct waiting {
    const struct xpl_front_request *f;
    bool *aside, *lost; // of the request's hosts; lost as of the last inspection
    struct xpl_job_request r;
    struct xpl_job_product *products;
    struct xpl_job_file *files;
    size_t *hosts; // of each ref
    size_t *ends;
    size_t n_refs; // what memory had not
    struct xpl_product_ref *refs;
    uint64_t count_ns;       // when workers are counted again
    uint64_t alone_since_ns; // 0: there are workers
    int64_t n_threads;
};

static bool is_cancelled(const struct xpl_front_request *f) {
    return f->owner.is_cancelled && f->owner.is_cancelled(f->owner.arg);
}

// ---- missing products ----

static bool is_in_memory(const struct xpl_front_request *f, const struct xpl_product *p,
                         unsigned variant, const struct xpl_host *h) {
    struct xpl_product_handle *const known =
        xpl_product_lookup(f->products, p, variant, &h->fingerprint);
    if (known) xpl_object_unref(&known->object);
    return known != NULL;
}

static bool make_room(struct waiting *w, struct xpl_arena *arena, size_t n_needs) {
    const size_t n_hosts = w->f->q->n_hosts, n = n_hosts * n_needs;
    w->lost = xpl_arena_array(arena, n_hosts, sizeof *w->lost);
    w->files = xpl_arena_array(arena, n_hosts, sizeof *w->files);
    w->ends = xpl_arena_array(arena, n_hosts, sizeof *w->ends);
    w->products = xpl_arena_array(arena, n_needs, sizeof *w->products);
    w->hosts = xpl_arena_array(arena, n, sizeof *w->hosts);
    w->refs = xpl_arena_array(arena, n, sizeof *w->refs);
    return w->lost && w->files && w->ends && w->products && w->hosts && w->refs;
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

// Equal for all who request these products of these files, whatever is stored already.
static bool digest_request(struct waiting *w) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    const struct xpl_request *const q = w->f->q;
    xpl_buf_init(&b, w->f->limit);
    xpl_buf_str(&b, w->r.session);
    for (size_t k = 0; k < w->r.n_products; k++)
        xpl_buf_printf(&b, "/%.*s %u %u", XPL_STR_FMT(w->products[k].name), w->products[k].version,
                       w->products[k].variant);
    for (size_t i = 0; i < q->n_hosts; i++) {
        const struct xpl_job_file f = xpl_job_file_of(q->hosts[i]);
        xpl_buf_printf(&b, "/%llu %lld %.*s", (unsigned long long)f.size_bytes,
                       (long long)f.mtime_ns, XPL_STR_FMT(f.host));
    }
    const xpl_bytes_t bytes = {b.p, b.n};
    const uint64_t h[2] = {xpl_digest64(bytes, 3), xpl_digest64(bytes, 0x9e3779b97f4a7c15u)};
    memcpy(w->r.digest.bytes, h, sizeof w->r.digest.bytes);
    return !b.failed;
}

// The store is asked for all at once: one by one, thousands of hosts take seconds.
static xpl_status_t list_missing(struct waiting *w, struct xpl_arena *arena,
                                 struct xpl_error *err) {
    const struct xpl_request *const q = w->f->q;
    list_refs(w);
    if (!w->n_refs) return XPL_OK;
    XPL_TRY(xpl_product_find_stored(w->f->products, w->refs, w->n_refs, arena, err));
    for (size_t i = 0, last = SIZE_MAX; i < w->n_refs; i++) {
        if (w->refs[i].stored || w->hosts[i] == last) continue;
        last = w->hosts[i];
        w->files[w->r.n_files++] = xpl_job_file_of(q->hosts[last]);
    }
    for (size_t k = 0; q->tool->needs[k]; k++)
        if (q->tool->needs[k]->residency == XPL_RESIDENCY_STORE)
            w->products[w->r.n_products++] =
                (struct xpl_job_product){.name = xpl_str_from(q->tool->needs[k]->name),
                                         .version = q->tool->needs[k]->version,
                                         .variant = w->f->variants[k]};
    w->r.session = q->session->name;
    w->r.traceparent = q->traceparent;
    w->r.products = w->products;
    w->r.files = w->files;
    w->r.ends = w->ends;
    if (!digest_request(w)) XPL_RETURN_OOM(err, "jobs");
    return XPL_OK;
}

static bool is_same(const struct xpl_job_file *a, const struct xpl_job_file *b) {
    return a->size_bytes == b->size_bytes && a->mtime_ns == b->mtime_ns &&
           xpl_str_eq(a->host, b->host);
}

static void mark_hosts(const struct waiting *w, const struct xpl_job_progress *p, bool *ret) {
    const struct xpl_request *const q = w->f->q;
    memset(ret, 0, q->n_hosts * sizeof *ret);
    for (size_t k = 0; k < p->n_lost; k++)
        for (size_t i = 0; i < q->n_hosts; i++) {
            const struct xpl_job_file f = xpl_job_file_of(q->hosts[i]);
            if (is_same(&f, &p->lost[k])) ret[i] = true;
        }
}

// Files that another request has found to end workers are not requested again.
static xpl_status_t leave_out_aside(struct waiting *w, struct xpl_arena *arena,
                                    struct xpl_error *err) {
    struct xpl_job_progress p;
    size_t n = 0;
    XPL_TRY(xpl_store_jobs(w->f->store)->find_aside(w->f->store, w->r.session, arena, &p, err));
    if (!p.n_lost) return XPL_OK;
    mark_hosts(w, &p, w->aside);
    for (size_t i = 0; i < w->r.n_files; i++) {
        bool keep = true;
        for (size_t k = 0; k < p.n_lost; k++)
            keep = keep && !is_same(&w->files[i], &p.lost[k]);
        if (keep) w->files[n++] = w->files[i];
    }
    w->r.n_files = n;
    return XPL_OK;
}

static void divide(struct waiting *w) {
    const size_t threads = w->n_threads > 0 ? (size_t)w->n_threads : 1;
    for (size_t at = 0; at < w->r.n_files;) {
        at += xpl_job_next_batch(w->files + at, w->r.n_files - at, threads);
        w->ends[w->r.n_batches++] = at;
    }
}

// ---- waiting ----

static void count_workers(struct waiting *w, uint64_t now) {
    struct xpl_job_stats stats;
    struct xpl_store *const s = w->f->store;
    if (now < w->count_ns) return;
    w->count_ns = now + ns_of(COUNT_MS);
    const bool known = xpl_store_jobs(s)->get_stats(s, &stats, NULL) == XPL_OK;
    if (known) w->n_threads = stats.threads;
    if (!known || stats.peers > 0) // those of other versions may not make our products
        w->alone_since_ns = 0;
    else if (!w->alone_since_ns)
        w->alone_since_ns = now;
}

// Until `until`, or the request is cancelled.
static void sleep_until(const struct xpl_front_request *f, uint64_t until) {
    for (uint64_t now = xpl_clock_ns(); now < until && !is_cancelled(f); now = xpl_clock_ns()) {
        const uint64_t ns = until - now < ns_of(SLICE_MS) ? until - now : ns_of(SLICE_MS);
        const struct timespec t = {.tv_nsec = (long)ns};
        (void)nanosleep(&t, NULL);
    }
}

// Whether the request need not be waited for.  What was lost with a worker is not made here: it may
// well have been the cause.
static bool is_over(struct waiting *w, const struct xpl_job_progress *p, uint64_t now) {
    const bool alone = w->alone_since_ns != 0;
    if (alone && p->n_unclaimed) // made here, not by the next worker
        (void)xpl_store_jobs(w->f->store)->withdraw(w->f->store, &w->r.digest, NULL);
    const int64_t n_left = alone ? p->n_left - p->n_unclaimed : p->n_left;
    return n_left <= 0 || (alone && now - w->alone_since_ns > ns_of(ALONE_MS));
}

static void wait_all(struct waiting *w) {
    struct xpl_store *const s = w->f->store;
    uint64_t pause = MIN_MS;
    for (bool over = false; !over && !is_cancelled(w->f);) {
        XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(w->f->limit);
        struct xpl_job_progress p;
        // The database is away: what was lost with a worker when it was last there is not made
        // here.
        if (xpl_store_jobs(s)->inspect(s, &w->r.digest, &arena, &p, NULL) != XPL_OK) break;
        mark_hosts(w, &p, w->lost);
        const uint64_t now = xpl_clock_ns();
        count_workers(w, now);
        if ((over = is_over(w, &p, now))) break;
        sleep_until(w->f, now + ns_of(pause));
        pause = pause * 3 / 2 < MAX_MS ? pause * 3 / 2 : MAX_MS;
    }
    for (size_t i = 0; i < w->f->q->n_hosts; i++)
        w->aside[i] |= w->lost[i];
}

static xpl_status_t wait_for_workers(const struct xpl_front_request *f, bool *ret_aside,
                                     struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    struct waiting w = {.f = f, .aside = ret_aside};
    size_t n_needs = 0;
    xpl_arena_init(&arena, f->limit);
    memset(ret_aside, 0, f->q->n_hosts * sizeof *ret_aside);
    while (f->q->tool->needs[n_needs])
        n_needs++;
    if (!make_room(&w, &arena, n_needs)) XPL_RETURN_OOM(err, "jobs");
    memset(w.lost, 0, f->q->n_hosts * sizeof *w.lost);
    XPL_TRY(list_missing(&w, &arena, err));
    const bool any = w.r.n_files > 0;
    if (any && leave_out_aside(&w, &arena, NULL) == XPL_OK && w.r.n_files) {
        count_workers(&w, xpl_clock_ns());
        divide(&w);
        if (xpl_store_jobs(f->store)->enqueue(f->store, &w.r, NULL) == XPL_OK) wait_all(&w);
    }
    if (is_cancelled(f)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    return any ? xpl_product_identify_files(f->products, w.refs, w.n_refs, &arena, err) : XPL_OK;
}

static xpl_status_t explain_aside(const char *path, struct xpl_error *ret) {
    *ret = (struct xpl_error){0};
    return xpl_error_set(ret, XPL_DATA_LOSS, __FILE__, __LINE__, UINT64_MAX,
                         "%s: set aside: daemons that read it ended before they were done; it is "
                         "tried again in %d minutes",
                         path, XPL_JOB_ASIDE_S / 60);
}

const struct xpl_front xpl_job_front = {.wait = wait_for_workers, .explain_aside = explain_aside};
