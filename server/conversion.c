// SPDX-License-Identifier: Apache-2.0
#include "server/conversion.h"

#include <pthread.h>
#include <stdio.h>

#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/json.h"
#include "server/config.h"
#include "server/engine/pool.h"
#include "server/jobs/job.h"
#include "storage/sessions/catalogue.h"

// How long a session of a bucket may take to be listed; the pause before files that are not
// complete yet are tried again; how often a signal is checked for.
enum { LIST_MS = 60000, AGAIN_MS = 300, POLL_MS = 50 };
enum { LIMIT = 256 << 20, SLOT_BYTES = 4 << 20, MAX_PRODUCTS = 16 };

// The hosts of one session that are ours, with the products that tools read by default.
struct part {
    const struct xpl_session *session;
    struct xpl_job_product products[MAX_PRODUCTS];
    struct xpl_job_file *files;
    size_t n_products, n_files, n_begun;
    bool *is_left;
};

struct left { // a file that is not done
    struct left *next;
    const struct part *part;
    size_t file;
    char why[512];
};

struct conversion {
    const struct xpl_job_worker_options *parts;
    const struct xpl_config *config;
    const struct xpl_cancel *cancel;
    struct xpl_arena arena;
    struct xpl_snapshot *snap;
    struct part *list;
    struct xpl_job_slot *slots;
    struct xpl_job_counts counts;
    size_t n_threads;
    pthread_mutex_t mu; // everything below, and n_begun and is_left of parts
    pthread_cond_t ended;
    size_t n_running, n_ended; // threads
    uint64_t n_stored;         // products
    struct left *left;
};

static bool is_ended(const struct conversion *c) {
    return xpl_cancel_is_set(c->cancel);
}

// ---- what there is to do ----

// A bucket is listed by this daemon or by another one, which takes a while.
static xpl_status_t find_session(struct conversion *c, const char *run, uint64_t until,
                                 const struct xpl_session **ret, struct xpl_error *err) {
    for (;;) {
        *ret = xpl_snapshot_find(c->snap, xpl_str_from(run));
        if (*ret) return XPL_OK;
        if (is_ended(c)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "ended by a signal");
        if (!c->snap->in_bucket || xpl_clock_ns() >= until)
            XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no session \"%.80s\" in %.80s", run,
                             c->snap->base.ptr);
        xpl_catalogue_mark_session(c->parts->catalogue, xpl_str_from(run));
        XPL_TRY(xpl_catalogue_scan(c->parts->catalogue, XPL_SCAN_ALL, NULL, err));
        xpl_clock_pause_ms(POLL_MS);
        xpl_snapshot_unref(c->snap);
        c->snap = xpl_catalogue_get(c->parts->catalogue);
    }
}

static void add_product(struct part *p, const struct xpl_product *product, unsigned variant) {
    const xpl_str_t name = xpl_str_from(product->name);
    for (size_t i = 0; i < p->n_products; i++)
        if (xpl_str_eq(p->products[i].name, name) && p->products[i].variant == variant) return;
    if (product->residency != XPL_RESIDENCY_STORE || p->n_products == MAX_PRODUCTS) return;
    p->products[p->n_products++] =
        (struct xpl_job_product){.name = name, .version = product->version, .variant = variant};
}

// What the store keeps of all that tools with their default options read.
static xpl_status_t list_products(struct conversion *c, struct part *p, struct xpl_error *err) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    const struct xpl_format *const format =
        p->session->n_hosts ? xpl_format_of_name(p->session->hosts[0].path, NULL) : NULL;
    struct xpl_exec serial = xpl_exec_serial();
    const struct xpl_build_context ctx = {.exec = &serial,
                                          .owner = {c->cancel->is_cancelled, c->cancel->arg}};
    struct xpl_stage_times times = {0};
    struct xpl_session_devices devices = {0};
    XPL_TRY(xpl_product_session_has_device(c->parts->products, c->snap, p->session, &ctx, &times,
                                           &devices, err));
    for (size_t i = 0; i < n; i++) {
        void *options;
        if (!xpl_tool_fits(tools[i], format)) continue;
        XPL_TRY(xpl_tool_options_parse(tools[i], NULL, 0, true, &c->arena, &options, err));
        for (size_t k = 0; tools[i]->needs[k]; k++)
            add_product(p, tools[i]->needs[k],
                        tools[i]->variant ? tools[i]->variant(options, k, devices.any) : 0);
    }
    return XPL_OK;
}

// Every n-th host, counted over all sessions: each host is in one shard.
static xpl_status_t list_files(struct conversion *c, struct part *p, uint64_t *at,
                               struct xpl_error *err) {
    p->files = xpl_arena_array(&c->arena, p->session->n_hosts, sizeof *p->files);
    p->is_left = xpl_arena_zalloc(&c->arena, p->session->n_hosts + 1);
    if (!p->files || !p->is_left) XPL_RETURN_OOM(err, "hosts");
    for (size_t i = 0; i < p->session->n_hosts; i++)
        if ((*at)++ % c->config->n_shards == c->config->shard_index)
            p->files[p->n_files++] = xpl_job_file_of(&p->session->hosts[i]);
    return p->n_files ? list_products(c, p, err) : XPL_OK;
}

static xpl_status_t list_parts(struct conversion *c, struct xpl_error *err) {
    const uint64_t until = xpl_clock_ns() + (uint64_t)LIST_MS * 1000000u;
    uint64_t at = 0;
    c->list = xpl_arena_zalloc(&c->arena, c->config->n_runs * sizeof *c->list);
    if (!c->list) XPL_RETURN_OOM(err, "sessions");
    // A later snapshot may lack what an earlier one had: all are of the last one.
    for (size_t i = 0; i < c->config->n_runs; i++)
        XPL_TRY(find_session(c, c->config->runs[i], until, &c->list[i].session, err));
    for (size_t i = 0; i < c->config->n_runs; i++) {
        c->list[i].session = xpl_snapshot_find(c->snap, xpl_str_from(c->config->runs[i]));
        if (!c->list[i].session)
            XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "session \"%.80s\" has been removed",
                             c->config->runs[i]);
        XPL_TRY(list_files(c, &c->list[i], &at, err));
    }
    return XPL_OK;
}

static xpl_status_t wait_for_store(struct conversion *c, struct xpl_error *err) {
    struct xpl_store *const s = c->parts->store;
    const uint64_t until = xpl_clock_ns() + c->parts->lease_ms * 1000000u;
    while (xpl_store_role(s) != XPL_STORE_WRITER) {
        if (is_ended(c)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "ended by a signal");
        if (xpl_clock_ns() >= until)
            XPL_RETURN_ERROR(err, XPL_UNAVAILABLE,
                             "--store cannot be written: products would be lost");
        xpl_clock_pause_ms(POLL_MS);
    }
    return XPL_OK;
}

// ---- doing it ----

struct task {
    struct conversion *c;
    struct xpl_job_slot *slot;
    struct part *part; // of the batch that the slot has
};

static void note_left(void *arg, const struct xpl_job_file *file, const struct xpl_error *why) {
    const struct task *const t = arg;
    struct conversion *const c = t->c;
    size_t i = 0;
    while (!xpl_str_eq(t->part->files[i].host, file->host))
        i++;
    pthread_mutex_lock(&c->mu);
    struct left *const l =
        t->part->is_left[i] ? NULL : xpl_arena_alloc(&c->arena, sizeof *l); // the first counts
    t->part->is_left[i] = true;
    if (l) {
        *l = (struct left){.next = c->left, .part = t->part, .file = i};
        (void)snprintf(l->why, sizeof l->why, "%s", why ? why->msg : "");
        c->left = l;
    }
    pthread_mutex_unlock(&c->mu);
}

static bool next_batch(struct task *t) {
    struct conversion *const c = t->c;
    struct xpl_job_slot *const s = t->slot;
    bool any = false;
    pthread_mutex_lock(&c->mu);
    for (size_t i = 0; i < c->config->n_runs && !any; i++) {
        struct part *const p = &c->list[i];
        if (p->n_begun == p->n_files || !p->n_products) continue;
        any = true;
        t->part = p;
        s->job.session = p->session->name;
        s->job.products = p->products;
        s->job.n_products = p->n_products;
        s->job.files = p->files + p->n_begun;
        s->job.n_files = xpl_job_next_batch(s->job.files, p->n_files - p->n_begun, c->n_threads);
        p->n_begun += s->job.n_files;
    }
    pthread_mutex_unlock(&c->mu);
    return any;
}

// Files that were written a moment ago are tried again, until the job leaves them.
static void run_batch(struct task *t) {
    struct xpl_job_slot *const s = t->slot;
    const uint64_t began = xpl_clock_ns();
    const struct xpl_error ended = {.msg = "not begun: ended by a signal"};
    for (s->job.queued_ms = 0;; s->job.queued_ms = (int64_t)((xpl_clock_ns() - began) / 1000000)) {
        xpl_job_slot_run(s);
        pthread_mutex_lock(&t->c->mu);
        t->c->n_stored += s->n_stored;
        pthread_mutex_unlock(&t->c->mu);
        if (!s->n_rest || atomic_load(&s->cancelled)) break;
        s->job.files = s->rest;
        s->job.n_files = s->n_rest;
        xpl_clock_pause_ms(AGAIN_MS);
    }
    for (size_t i = 0; i < s->n_rest; i++)
        note_left(t, &s->rest[i], &ended);
}

static void run_batches(void *arg) { // on a thread of the pool
    struct task *const t = arg;
    struct conversion *const c = t->c;
    while (!atomic_load(&t->slot->cancelled) && next_batch(t)) {
        xpl_arena_init(&t->slot->arena, SLOT_BYTES);
        run_batch(t);
        xpl_arena_fini(&t->slot->arena);
    }
    pthread_mutex_lock(&c->mu);
    c->n_ended++;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->mu);
}

static void wait_for_tasks(struct conversion *c) {
    pthread_mutex_lock(&c->mu);
    while (c->n_ended < c->n_running) {
        for (size_t i = 0; i < c->n_threads && is_ended(c); i++)
            atomic_store(&c->slots[i].cancelled, true);
        (void)xpl_cond_wait_until(&c->ended, &c->mu, xpl_clock_ns() + POLL_MS * 1000000u);
    }
    pthread_mutex_unlock(&c->mu);
}

static xpl_status_t run_all(struct conversion *c, struct xpl_error *err) {
    c->n_threads = xpl_pool_get_state(c->parts->pool).workers;
    c->slots = xpl_arena_zalloc(&c->arena, c->n_threads * sizeof *c->slots);
    struct task *const tasks = xpl_arena_zalloc(&c->arena, c->n_threads * sizeof *tasks);
    if (!c->slots || !tasks) XPL_RETURN_OOM(err, "batches");
    for (size_t i = 0; i < c->n_threads; i++) {
        tasks[i] = (struct task){.c = c, .slot = &c->slots[i]};
        c->slots[i].parts = c->parts;
        c->slots[i].counts = &c->counts;
        c->slots[i].left = note_left;
        c->slots[i].left_arg = &tasks[i];
        const bool runs = xpl_pool_submit(c->parts->pool, run_batches, &tasks[i]);
        pthread_mutex_lock(&c->mu);
        c->n_running += runs;
        pthread_mutex_unlock(&c->mu);
    }
    wait_for_tasks(c);
    return XPL_OK;
}

// ---- telling of it ----

static void put_left(struct xpl_buf *b, const struct part *p, size_t file, const char *why,
                     bool *first) {
    xpl_buf_str(b, *first ? XPL_STR("{") : XPL_STR(",{"));
    *first = false;
    xpl_json_field(b, "session", p->session->name);
    xpl_buf_putc(b, ',');
    xpl_json_field(b, "host", p->files[file].host);
    xpl_buf_putc(b, ',');
    xpl_json_field(b, "why", xpl_str_from(why));
    xpl_buf_putc(b, '}');
}

static void put_result(const struct conversion *c, struct xpl_buf *b, bool *ret_complete) {
    size_t n = 0, n_left = 0;
    bool first = true;
    for (size_t i = 0; i < c->config->n_runs; i++) {
        n += c->list[i].n_files;
        n_left += c->list[i].n_products ? c->list[i].n_files - c->list[i].n_begun : 0;
    }
    for (const struct left *l = c->left; l; l = l->next)
        n_left++;
    xpl_buf_printf(b, "{\"hosts\":%zu,\"done\":%zu,\"products_made\":%llu,\"left\":[", n,
                   n - n_left, (unsigned long long)c->n_stored);
    for (const struct left *l = c->left; l; l = l->next)
        put_left(b, l->part, l->file, l->why, &first);
    for (size_t i = 0; i < c->config->n_runs; i++)
        for (size_t k = c->list[i].n_begun; c->list[i].n_products && k < c->list[i].n_files; k++)
            put_left(b, &c->list[i], k, "not begun: ended by a signal", &first);
    xpl_buf_str(b, XPL_STR("]}"));
    *ret_complete = n_left == 0;
}

static xpl_status_t convert(struct conversion *c, struct xpl_buf *ret, bool *ret_complete,
                            struct xpl_error *err) {
    XPL_TRY(wait_for_store(c, err));
    XPL_TRY(list_parts(c, err));
    XPL_TRY(run_all(c, err));
    put_result(c, ret, ret_complete);
    if (ret->failed) XPL_RETURN_OOM(err, "the result");
    return XPL_OK;
}

xpl_status_t xpl_conversion_run(const struct xpl_job_worker_options *parts,
                                const struct xpl_config *config, const struct xpl_cancel *cancel,
                                struct xpl_buf *ret, bool *ret_complete, struct xpl_error *err) {
    struct conversion c = {.parts = parts,
                           .config = config,
                           .cancel = cancel,
                           .snap = xpl_catalogue_get(parts->catalogue)};
    xpl_arena_init(&c.arena, LIMIT);
    pthread_mutex_init(&c.mu, NULL);
    xpl_cond_init(&c.ended);
    const xpl_status_t st = convert(&c, ret, ret_complete, err);
    pthread_mutex_destroy(&c.mu);
    pthread_cond_destroy(&c.ended);
    xpl_snapshot_unref(c.snap);
    xpl_arena_fini(&c.arena);
    return st;
}
