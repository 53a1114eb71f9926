// SPDX-License-Identifier: Apache-2.0
#include "server/engine/prefetch.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "analysis/formats/format.h"
#include "analysis/tools/tool.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"

enum { SCAN_NS = 500000000, IDLE_MS = 2000, GROWING_MS = 2000, FULL_TENTHS = 8 };

struct xpl_prefetch {
    struct xpl_engine *engine;
    struct xpl_catalogue *catalogue;
    struct xpl_store *store;
    struct xpl_pool *pool;
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t wake;
    atomic_bool stop, enabled;
    uint64_t done_generation; // all hosts of this snapshot were inspected
};

static bool machine_is_idle(const struct xpl_prefetch *p) {
    const struct xpl_pool_state s = xpl_pool_get_state(p->pool);
    return s.idle_since_ns && xpl_clock_ns() - s.idle_since_ns > (uint64_t)IDLE_MS * 1000000;
}

static void convert(struct xpl_prefetch *p, struct xpl_snapshot *snap, const struct xpl_session *s,
                    const struct xpl_host *h) {
    const uint64_t began = xpl_clock_ns();
    if (!xpl_engine_prefetch(p->engine, snap, s, h)) return;
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_INFO, "prefetch", "converted ahead");
    xpl_log_str(&l, "session", s->name);
    xpl_log_str(&l, "host", h->name);
    xpl_log_int(&l, "bytes", (int64_t)h->fingerprint.size);
    xpl_log_int(&l, "us", (int64_t)((xpl_clock_ns() - began) / 1000));
    xpl_log_end(&l);
}

// Products that only this process would have, or that would evict recent ones, are not worth making
// ahead.
static bool has_room(const struct xpl_prefetch *p) {
    struct xpl_store_stats s;
    xpl_store_get_stats(p->store, &s);
    return s.role == XPL_STORE_WRITER &&
           (!s.limit_bytes || s.used_bytes < s.limit_bytes / 10 * FULL_TENTHS);
}

// False when it had to stop before the end.
static bool one_session(struct xpl_prefetch *p, struct xpl_snapshot *snap,
                        const struct xpl_session *s, bool *ret_growing) {
    for (size_t i = 0; i < s->n_hosts; i++) {
        const struct xpl_host *h = &s->hosts[i];
        if (!xpl_tool_fits(&xpl_tool_op_stats, xpl_format_of_name(h->path, NULL))) continue;
        if (atomic_load(&p->stop) || !atomic_load(&p->enabled) || !machine_is_idle(p)) return false;
        const int64_t age = xpl_unix_ns() - h->fingerprint.mtime_ns;
        if (age >= 0 && age < (int64_t)GROWING_MS * 1000000) { // may still be growing
            *ret_growing = true;
            continue;
        }
        if (!xpl_engine_knows(p->engine, h) && has_room(p)) convert(p, snap, s, h);
    }
    return true;
}

static int newest_first(const void *a, const void *b) {
    const struct xpl_session *const *x = a, *const *y = b;
    return ((*x)->mtime_ns < (*y)->mtime_ns) - ((*x)->mtime_ns > (*y)->mtime_ns);
}

static void prefetch_new_sessions(struct xpl_prefetch *p) {
    struct xpl_snapshot *snap = xpl_catalogue_get(p->catalogue);
    const struct xpl_session **order = snap->generation == p->done_generation
                                           ? NULL
                                           : xpl_sys_alloc((snap->n_sessions + 1) * sizeof *order);
    bool all = order != NULL, growing = false;
    for (size_t i = 0; order && i < snap->n_sessions; i++)
        order[i] = &snap->sessions[i];
    if (order) qsort(order, snap->n_sessions, sizeof *order, newest_first);
    for (size_t i = 0; all && i < snap->n_sessions; i++)
        all = one_session(p, snap, order[i], &growing);
    if (all && !growing) p->done_generation = snap->generation;
    xpl_sys_free((void *)(uintptr_t)order);
    xpl_snapshot_unref(snap);
}

static bool stopping(void *arg) {
    return atomic_load(&((struct xpl_prefetch *)arg)->stop);
}

// Damage that a crash left is found here, not by the first request that meets it.
static void check_store(struct xpl_prefetch *p) {
    if (!xpl_store_was_unclean(p->store)) return;
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_store_check(p->store, stopping, p, &err);
    if (st == XPL_OK)
        xpl_log(XPL_LOG_INFO, "store", "checked after an unclean stop: valid");
    else if (st != XPL_CANCELLED)
        xpl_log(XPL_LOG_WARN, "store", "checked after an unclean stop: %s", err.msg);
}

static void *prefetch_main(void *arg) {
    struct xpl_prefetch *p = arg;
    // Only runs when nothing else on the machine needs the processor.
    (void)pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0});
    check_store(p);
    pthread_mutex_lock(&p->mu);
    while (!atomic_load(&p->stop)) {
        (void)xpl_cond_wait_until(&p->wake, &p->mu, xpl_clock_ns() + SCAN_NS);
        if (atomic_load(&p->stop)) break;
        pthread_mutex_unlock(&p->mu);
        if (atomic_load(&p->enabled) && machine_is_idle(p)) prefetch_new_sessions(p);
        pthread_mutex_lock(&p->mu);
    }
    pthread_mutex_unlock(&p->mu);
    return NULL;
}

struct xpl_prefetch *xpl_prefetch_new(struct xpl_engine *e, struct xpl_catalogue *catalogue,
                                      struct xpl_store *store, struct xpl_pool *pool,
                                      bool enabled) {
    struct xpl_prefetch *p = xpl_sys_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (struct xpl_prefetch){.engine = e, .catalogue = catalogue, .store = store, .pool = pool};
    atomic_init(&p->enabled, enabled);
    pthread_mutex_init(&p->mu, NULL);
    xpl_cond_init(&p->wake);
    if (pthread_create(&p->thread, NULL, prefetch_main, p) == 0) return p;
    xpl_sys_free(p);
    return NULL;
}

void xpl_prefetch_set_enabled(struct xpl_prefetch *p, bool enabled) {
    atomic_store(&p->enabled, enabled);
}

void xpl_prefetch_free(struct xpl_prefetch *p) {
    if (!p) return;
    xpl_engine_stop_background(p->engine);
    pthread_mutex_lock(&p->mu);
    atomic_store(&p->stop, true);
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->mu);
    pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->mu);
    pthread_cond_destroy(&p->wake);
    xpl_sys_free(p);
}
