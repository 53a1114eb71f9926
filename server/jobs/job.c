// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/engine/pool.h"
#include "server/traceparent.h"
#include "storage/sessions/catalogue.h"

// A file that is not as the requester sees it: this daemon may not have seen it yet.  After
// PATIENCE_MS it is left to the requester.
enum { NOT_YET_MS = 300, PATIENCE_MS = 10000, PUBLISH_PAUSE_MS = 200 };
// Of a batch, and how many of them each thread gets at least.
enum { BATCH_BYTES = 16 << 20, SHARES = 2 };

static bool is_over(void *arg) {
    const struct xpl_job_slot *const s = arg;
    return atomic_load(&s->lost) || atomic_load(&s->cancelled);
}

// ---- for tests ----

#if XPL_FAULTS
static const char *fault_value(const char *name) {
    const char *const all = getenv("XPLANED_FAULT_JOBS"), *const at =
                                                              all ? strstr(all, name) : NULL;
    return at ? at + strlen(name) : NULL;
}

// XPLANED_FAULT_JOBS="kill=HOST delay_ms=N": the file of HOST kills whoever reads it; each product
// takes so much longer.
static void inject_fault(const struct xpl_job_slot *s, xpl_str_t host) {
    const char *const kill = fault_value("kill="), *const delay = fault_value("delay_ms=");
    if (kill && strncmp(kill, host.ptr, host.len) == 0 && strchr(" ", kill[host.len])) abort();
    const uint64_t until = xpl_clock_ns() + (delay ? strtoull(delay, NULL, 10) : 0) * 1000000u;
    while (xpl_clock_ns() < until && !is_over((void *)(uintptr_t)s))
        xpl_clock_pause_ms(5);
}
#else
static void inject_fault(const struct xpl_job_slot *s, xpl_str_t host) {
    (void)s;
    (void)host;
}
#endif

// ---- one job ----

// What a job has come to.
struct batch {
    struct xpl_job_slot *s;
    struct xpl_snapshot *snap;
    const struct xpl_host **hosts; // of the files; NULL: not here, or not as the requester sees it
    struct xpl_product_ref *refs;  // of each file each product
    struct xpl_product_publication *made;
    size_t n_made;
    bool postponed; // some files of the rest are not here yet
};

static void log_line(const struct xpl_job_slot *s, enum xpl_log_level level, const char *text,
                     const struct xpl_job_file *file, size_t n_made, const struct xpl_error *err) {
    struct xpl_log_line l;
    const xpl_str_t host = file ? file->host : s->job.n_files ? s->job.files[0].host : XPL_STR("");
    xpl_log_begin(&l, level, "jobs", text);
    xpl_log_str(&l, "session", s->job.session);
    xpl_log_str(&l, "host", host); // the first one's
    if (!file) xpl_log_int(&l, "files", (int64_t)s->job.n_files);
    if (n_made) xpl_log_int(&l, "products", (int64_t)n_made);
    xpl_log_int(&l, "attempt", s->job.attempt);
    xpl_log_int(&l, "queued_ms", s->job.queued_ms); // when it was begun
    if (err && err->msg[0]) xpl_log_str(&l, "why", xpl_str_from(err->msg));
    xpl_traceparent_log(s->job.traceparent, &l);
    xpl_log_end(&l);
}

static void log_job(const struct xpl_job_slot *s, enum xpl_log_level level, const char *text,
                    const struct xpl_job_file *file, const struct xpl_error *err) {
    log_line(s, level, text, file, 0, err);
}

// The requester makes a product that is not stored, and then has the error's own words.
// `file` NULL: the whole job.
static void leave(const struct xpl_job_slot *s, const struct xpl_job_file *file,
                  const struct xpl_error *why) {
    log_job(s, XPL_LOG_INFO, s->left ? "not stored" : "left to the client", file, why);
    atomic_fetch_add(&s->counts->dropped, 1);
    for (size_t i = 0; s->left && i < (file ? 1 : s->job.n_files); i++)
        s->left(s->left_arg, file ? file : &s->job.files[i], why);
}

static const struct xpl_product *find_product(const struct xpl_job_product *spec) {
    size_t n;
    const struct xpl_product *const *const all = xpl_products(&n);
    for (size_t i = 0; i < n; i++)
        if (xpl_str_eq(xpl_str_from(all[i]->name), spec->name) &&
            all[i]->version == spec->version && all[i]->residency == XPL_RESIDENCY_STORE)
            return all[i];
    return NULL;
}

// The file, as far as size and time tell, that the requester saw: NULL without one.
static const struct xpl_host *find_host(const struct xpl_session *se,
                                        const struct xpl_job_file *file) {
    const struct xpl_host *const h = se ? xpl_session_find_host(se, file->host) : NULL;
    return h && h->fingerprint.size == file->size_bytes && h->fingerprint.mtime_ns == file->mtime_ns
               ? h
               : NULL;
}

static xpl_status_t make_product(struct batch *b, const struct xpl_job_product *spec,
                                 const struct xpl_host *host, struct xpl_error *err) {
    struct xpl_job_slot *const s = b->s;
    struct xpl_pool_exec exec;
    struct xpl_stage_times times = {0};
    struct xpl_product_publication *const p = &b->made[b->n_made];
    const struct xpl_work_owner owner = {is_over, s};
    *p = (struct xpl_product_publication){.request = {.product = find_product(spec),
                                                      .variant = spec->variant,
                                                      .snapshot = b->snap,
                                                      .host = host}};
    if (!p->request.product) XPL_RETURN_ERROR(err, XPL_UNIMPLEMENTED, "an unknown product");
    xpl_pool_exec_init(&exec, s->parts->pool, is_over, s);
    const struct xpl_build_context ctx = {
        .exec = &exec.exec, .owner = owner, .packed = true, .passing = true, .published = true};
    inject_fault(s, host->name);
    XPL_TRY(xpl_product_get(s->parts->products, &p->request, &ctx, &times, &p->handle, err));
    b->n_made++;
    if (p->handle->status == XPL_OK) return xpl_product_identify(s->parts->products, p, owner, err);
    if (err) *err = p->handle->err;
    return p->handle->status;
}

static void drop_made(struct batch *b, size_t n) {
    while (b->n_made > n)
        xpl_object_unref(&b->made[--b->n_made].handle->object);
}

// Which products others have stored: the store is asked for all of them at once, again once the
// files have ids.
static xpl_status_t find_stored(struct batch *b) {
    const struct xpl_job *const job = &b->s->job;
    struct xpl_product_manager *const m = b->s->parts->products;
    const struct xpl_work_owner owner = {is_over, b->s};
    struct xpl_product_ref *const refs =
        xpl_arena_array(&b->s->arena, job->n_files * job->n_products, sizeof *refs);
    const struct xpl_session *session = NULL;
    const xpl_status_t found = xpl_snapshot_find_all(&b->snap, job->session, &session, NULL);
    size_t n = 0;
    if (!refs || found == XPL_RESOURCE_EXHAUSTED) return XPL_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < job->n_files; i++) {
        b->hosts[i] = find_host(session, &job->files[i]);
        for (size_t k = 0; k < job->n_products; k++) {
            const struct xpl_product *const p = find_product(&job->products[k]);
            if (b->hosts[i] && p)
                refs[n++] =
                    (struct xpl_product_ref){.product = p,
                                             .variant = job->products[k].variant,
                                             .format = xpl_format_of_name(b->hosts[i]->path, NULL),
                                             .file = &b->hosts[i]->fingerprint};
        }
    }
    xpl_status_t st = xpl_product_find_stored(m, refs, n, &b->s->arena, NULL);
    for (size_t i = 0; i < job->n_files && st == XPL_OK && !is_over(b->s); i++)
        if (b->hosts[i]) xpl_product_hash_file(m, b->snap, b->hosts[i], owner);
    if (st == XPL_OK) st = xpl_product_find_stored(m, refs, n, &b->s->arena, NULL);
    n = 0;
    for (size_t i = 0; i < job->n_files; i++)
        for (size_t k = 0; k < job->n_products; k++)
            if (b->hosts[i] && find_product(&job->products[k]))
                b->refs[i * job->n_products + k] = refs[n++];
            else
                b->refs[i * job->n_products + k] = (struct xpl_product_ref){0};
    return st;
}

// A product that fails is left to the requester, with the error's own words; others of its file are
// published.
static xpl_status_t make_file(struct batch *b, size_t i, struct xpl_error *err) {
    const struct xpl_job *const job = &b->s->job;
    if (!b->hosts[i]) {
        xpl_catalogue_mark_session(b->s->parts->catalogue, job->session);
        XPL_RETURN_ERROR(err, XPL_ABORTED, "no such file here");
    }
    for (size_t k = 0; k < job->n_products; k++) {
        const size_t n = b->n_made;
        struct xpl_error why = {0};
        if (b->refs[i * job->n_products + k].stored) continue;
        const xpl_status_t st = make_product(b, &job->products[k], b->hosts[i], &why);
        if (st == XPL_OK) continue;
        drop_made(b, n);
        if (st == XPL_ABORTED || st == XPL_CANCELLED) {
            *err = why;
            return st;
        }
        leave(b->s, &job->files[i], &why);
    }
    return XPL_OK;
}

static void make_all(struct batch *b) {
    const struct xpl_job *const job = &b->s->job;
    for (size_t i = 0; i < job->n_files; i++) {
        const size_t n = b->n_made;
        struct xpl_error err = {0};
        const xpl_status_t st = is_over(b->s) ? XPL_CANCELLED : make_file(b, i, &err);
        if (st == XPL_OK) continue;
        drop_made(b, n);
        if (st == XPL_ABORTED && job->queued_ms > PATIENCE_MS) {
            leave(b->s, &job->files[i], &err);
            continue;
        }
        b->postponed |= st == XPL_ABORTED;
        b->s->rest[b->s->n_rest++] = job->files[i];
    }
}

static void drop_job(struct xpl_job_slot *s, const struct xpl_error *why) {
    struct xpl_store *const store = s->parts->store;
    const struct xpl_job_end end = {.claim = s->job.claim};
    struct xpl_error err = {0};
    leave(s, NULL, why);
    if (s->job.claim.id && xpl_store_jobs(store)->conclude(store, &end, &err) != XPL_OK)
        log_job(s, XPL_LOG_WARN, "not dropped: its lock ends with the connection", NULL, &err);
}

// A database that is away may be back before the lease is over.
static void publish(struct batch *b) {
    struct xpl_job_slot *const s = b->s;
    const uint64_t began = xpl_clock_ns(), until = began + s->parts->lease_ms * 1000000u;
    const struct xpl_job_end end = {.claim = s->job.claim,
                                    .rest = s->rest,
                                    .n_rest = s->n_rest,
                                    .pause_ms = b->postponed ? NOT_YET_MS : 0};
    struct xpl_error err;
    xpl_status_t st;
    do {
        err = (struct xpl_error){0};
        st = xpl_product_publish(s->parts->products, b->made, b->n_made,
                                 s->job.claim.id ? &end : NULL, &err);
        if (st != XPL_UNAVAILABLE && st != XPL_FAILED_PRECONDITION) break;
        xpl_clock_pause_ms(PUBLISH_PAUSE_MS);
    } while (xpl_clock_ns() < until && !atomic_load(&s->cancelled));
    atomic_fetch_add(&s->counts->publish_ns, xpl_clock_ns() - began);
    if (st == XPL_OK) s->n_stored = b->n_made;
    if (st == XPL_OK && b->n_made) log_line(s, XPL_LOG_INFO, "published", NULL, b->n_made, NULL);
    if (st == XPL_NOT_FOUND) {
        log_job(s, XPL_LOG_WARN, "refused: the lease was over, and is another's", NULL, NULL);
        atomic_fetch_add(&s->counts->lost, 1);
    } else if (st != XPL_OK) {
        drop_job(s, &err);
    } else if (s->n_rest) {
        atomic_fetch_add(&s->counts->given_back, 1);
    } else if (b->n_made) {
        atomic_fetch_add(&s->counts->published, 1);
    }
}

void xpl_job_slot_run(struct xpl_job_slot *s) {
    const struct xpl_job *const job = &s->job;
    struct batch b = {.s = s, .snap = xpl_catalogue_get(s->parts->catalogue)};
    b.made = xpl_arena_array(&s->arena, job->n_files * job->n_products, sizeof *b.made);
    s->rest = xpl_arena_array(&s->arena, job->n_files, sizeof *s->rest);
    s->n_rest = s->n_stored = 0;
    b.hosts = xpl_arena_array(&s->arena, job->n_files, sizeof *b.hosts);
    b.refs = xpl_arena_array(&s->arena, job->n_files * job->n_products, sizeof *b.refs);
    if (b.made && s->rest && b.hosts && b.refs && find_stored(&b) == XPL_OK) {
        make_all(&b);
        publish(&b);
        drop_made(&b, 0);
    } else {
        drop_job(s, NULL);
    }
    xpl_snapshot_unref(b.snap);
}

struct xpl_job_file xpl_job_file_of(const struct xpl_host *h) {
    return (struct xpl_job_file){
        .host = h->name, .size_bytes = h->fingerprint.size, .mtime_ns = h->fingerprint.mtime_ns};
}

size_t xpl_job_next_batch(const struct xpl_job_file *files, size_t n, size_t n_threads) {
    const size_t share = n / (SHARES * (n_threads ? n_threads : 1));
    const size_t most = share < 1 ? 1 : share < XPL_JOB_MAX_FILES ? share : XPL_JOB_MAX_FILES;
    uint64_t bytes = files[0].size_bytes;
    size_t ret = 1;
    while (ret < most && (bytes += files[ret].size_bytes) <= BATCH_BYTES)
        ret++;
    return ret;
}

void xpl_job_slot_give_back(struct xpl_job_slot *s, uint64_t ms) {
    struct xpl_store *const store = s->parts->store;
    const struct xpl_job_end end = {
        .claim = s->job.claim, .rest = s->job.files, .n_rest = s->job.n_files, .pause_ms = ms};
    struct xpl_error err = {0};
    atomic_fetch_add(&s->counts->given_back, 1);
    if (xpl_store_jobs(store)->conclude(store, &end, &err) != XPL_OK)
        log_job(s, XPL_LOG_WARN, "not given back: its lock ends with the connection", NULL, &err);
}
