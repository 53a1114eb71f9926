// SPDX-License-Identifier: Apache-2.0
#include "server/removal/retention.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "server/audit.h"
#include "server/engine/pool.h"
#include "server/labels/labels.h"

enum { EVERY_MS = 3600000, LABEL_BYTES = 1 << 16 };

struct xpl_retention {
    struct xpl_retention_options o;
    struct xpl_pool *pool; // one thread
    bool has_run;          // these two: of the loop's thread
    int64_t ran_ms;
    int64_t now_ms; // of the run; the pool's queue orders both threads
    bool was_paused;
    atomic_bool is_running, is_stopping;
};

struct xpl_retention *xpl_retention_new(const struct xpl_retention_options *o) {
    struct xpl_retention *const r = xpl_sys_alloc(sizeof *r);
    if (!r) return NULL;
    *r = (struct xpl_retention){.o = *o, .pool = xpl_pool_new(1, 1)};
    if (r->pool) return r;
    xpl_sys_free(r);
    return NULL;
}

void xpl_retention_stop(struct xpl_retention *r) {
    if (r) atomic_store(&r->is_stopping, true);
}

void xpl_retention_free(struct xpl_retention *r) {
    if (!r) return;
    xpl_pool_free(r->pool);
    xpl_sys_free(r);
}

// ---- which sessions ----

// A label may have been set since the run began.  Out of memory counts as a label.
static bool is_labelled(const struct xpl_retention *r, xpl_str_t session) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LABEL_BYTES);
    xpl_str_t *labels;
    size_t n;
    return !xpl_labels_of(r->o.labels, session, &arena, &labels, &n) || n;
}

// Files that are moved or linked here keep the time at which they were written.  Joined sessions
// have no files of theirs.
static bool is_old(const struct xpl_session *s, int64_t before_ms) {
    if (!s->n_hosts || s->n_runs || s->mtime_ns / 1000000 >= before_ms) return false;
    for (size_t i = 0; i < s->n_hosts; i++)
        if (s->hosts[i].fingerprint.ctime_ns / 1000000 >= before_ms) return false;
    return true;
}

// A damaged state.db was replaced by an empty one: labels that protected sessions are gone.
static bool knows_labels(const struct xpl_retention *r) {
    return xpl_history_is_on(r->o.history) && !xpl_history_was_replaced(r->o.history) &&
           xpl_labels_are_known(r->o.labels);
}

// ---- removal ----

static xpl_status_t remove_session(struct xpl_retention *r, const struct xpl_snapshot *snap,
                                   const struct xpl_session *s, int64_t before_ms,
                                   struct xpl_error *err) {
    const struct xpl_session_made made = {.n_hosts = UINT64_MAX, .at_ms = before_ms};
    XPL_TRY(xpl_removal_check(snap, s, err));
    return xpl_removals_run(
        r->o.removals,
        &(struct xpl_removal){.cause = XPL_REMOVAL_RETENTION, .path = s->path.ptr, .made = &made},
        err);
}

struct xpl_retained xpl_retention_run(struct xpl_retention *r, int64_t now_ms) {
    struct xpl_retained done = {0};
    struct xpl_snapshot *const snap = xpl_catalogue_get(r->o.catalogue);
    const int64_t before_ms = now_ms - (int64_t)r->o.age_ms;
    for (size_t i = 0; i < snap->n_sessions && !atomic_load(&r->is_stopping); i++) {
        const struct xpl_session *const s = &snap->sessions[i];
        struct xpl_error err = {0};
        if (!is_old(s, before_ms)) continue;
        if ((done.is_paused = !knows_labels(r))) break;
        if (is_labelled(r, s->name)) continue;
        const xpl_status_t st = remove_session(r, snap, s, before_ms, &err);
        if (st == XPL_NOT_FOUND) continue; // another daemon or a client was first
        done.removed += st == XPL_OK;
        done.failed += st != XPL_OK;
        if (st != XPL_OK) done.why = err;
        if (st != XPL_OK) continue; // it is tried each hour: the run has one warning for all
        xpl_audit("an old session was removed", &(struct xpl_audit_client){.cause = "retention"},
                  s->name, st, NULL);
        r->o.scan(r->o.arg, s->path.ptr);
    }
    xpl_snapshot_unref(snap);
    return done;
}

// ---- once an hour ----

static void run(void *arg) {
    struct xpl_retention *const r = arg;
    const struct xpl_retained done = xpl_retention_run(r, r->now_ms);
    if (done.is_paused && !r->was_paused)
        xpl_log(XPL_LOG_WARN, "import",
                "--retain removes nothing: labels cannot be read, or state.db was replaced since "
                "the start; they protect sessions");
    r->was_paused = done.is_paused;
    if (done.failed)
        xpl_log(XPL_LOG_WARN, "import", "--retain: %zu old session%s cannot be removed: %s",
                done.failed, done.failed == 1 ? "" : "s", done.why.msg);
    atomic_store(&r->is_running, false);
}

static bool is_scanned(const struct xpl_retention *r) {
    struct xpl_snapshot *const snap = xpl_catalogue_get(r->o.catalogue);
    const bool is = !snap->unscanned;
    xpl_snapshot_unref(snap);
    return is;
}

// A clock that was set back must not end the runs.
static bool is_due(const struct xpl_retention *r, int64_t now_ms) {
    if (r->has_run) return now_ms < r->ran_ms || now_ms - r->ran_ms >= EVERY_MS;
    return is_scanned(r);
}

void xpl_retention_tick(struct xpl_retention *r, int64_t now_ms) {
    if (!is_due(r, now_ms) || atomic_load(&r->is_stopping) || atomic_exchange(&r->is_running, true))
        return;
    r->now_ms = now_ms;
    if (xpl_pool_submit(r->pool, run, r))
        r->has_run = true, r->ran_ms = now_ms;
    else
        atomic_store(&r->is_running, false);
}
