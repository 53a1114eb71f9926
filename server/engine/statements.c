// SPDX-License-Identifier: Apache-2.0
#include "server/engine/statements.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "base/vec.h"
#include "server/engine/engine.h"
#include "server/engine/writer.h"
#include "sql/sql.h"

// FLUSH_MS: how long a statement waits for what the store was to be given before it.
enum { KEPT_OPEN = 2, STABLE_S = 2, FLUSH_MS = 5000 };

struct xpl_statements {
    struct xpl_catalogue *catalogue;
    struct xpl_engine *engine;
    struct xpl_store_writer *writer;
    struct xpl_sql_cache *cache;
    size_t memory_limit;
    unsigned most;
    atomic_uint running;
    bool has_store;
    const char *state; // behind the store's path
    char store[];      // NUL-terminated
};

struct xpl_statements *xpl_statements_new(const struct xpl_statements_options *o) {
    const char *const store = o->store ? o->store : "";
    const size_t n = strlen(store) + 1, n_state = strlen(o->state) + 1;
    struct xpl_statements *const s = xpl_sys_alloc(sizeof *s + n + n_state);
    if (!s) return NULL;
    *s = (struct xpl_statements){.catalogue = o->catalogue,
                                 .engine = o->engine,
                                 .writer = o->writer,
                                 .memory_limit = o->memory_limit,
                                 .most = o->most,
                                 .has_store = o->store != NULL};
    memcpy(s->store, store, n);
    memcpy(s->store + n, o->state, n_state);
    s->state = s->store + n;
    if ((s->cache = xpl_sql_cache_new(KEPT_OPEN, (o->most + KEPT_OPEN) * o->memory_limit)))
        return s;
    xpl_sys_free(s);
    return NULL;
}

void xpl_statements_free(struct xpl_statements *s) {
    if (!s) return;
    xpl_sql_cache_free(s->cache);
    xpl_sys_free(s);
}

// ---- profiles ----

struct statement {
    struct xpl_statements *s;
    struct xpl_snapshot *snapshot;
    struct xpl_work_owner owner;
    struct xpl_arena arena;
    XPL_VEC(struct xpl_sql_profile) profiles;
    XPL_VEC(const struct xpl_host *) hosts; // of the profiles
    struct xpl_sql_session *runs;           // all of the snapshot
};

static void close_profile(void *file) {
    xpl_opened_profile_close(file);
    xpl_sys_free(file);
}

static bool is_intact(void *file) {
    return !xpl_opened_profile_is_truncated(file);
}

static bool exec_is_cancelled(void *exec) {
    return xpl_exec_cancelled(exec);
}

static xpl_status_t open_profile(void *arg, size_t i, struct xpl_exec *exec, void **ret_file,
                                 xpl_bytes_t *ret, struct xpl_error *err) {
    const struct statement *const t = arg;
    struct xpl_opened_profile *const o = xpl_sys_alloc(sizeof *o);
    if (!o) XPL_RETURN_OOM(err, "profile");
    *o = (struct xpl_opened_profile){0};
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_stage_times times = {0};
    const struct xpl_build_context ctx = {.exec = &serial, .owner = {exec_is_cancelled, exec}};
    const struct xpl_product_request r = {.snapshot = t->snapshot, .host = t->hosts.v[i]};
    const xpl_status_t st = xpl_product_open_profile(xpl_engine_get_products(t->s->engine), &r,
                                                     XPL_FORM_XSPACE, &ctx, &times, o, err);
    if (st != XPL_OK) {
        close_profile(o);
        return st;
    }
    *ret_file = o;
    *ret = o->bytes;
    return XPL_OK;
}

// A file that changed just now may change again within a tick of its clock: it is not kept open.
static bool add_key(struct statement *t, const struct xpl_host *h, xpl_str_t *ret) {
    const struct xpl_fingerprint *const f = &h->fingerprint;
    *ret = XPL_STR("");
    if (f->mtime_ns / 1000000000 + STABLE_S > (int64_t)time(NULL)) return true;
    return xpl_arena_printf(&t->arena, ret,
                            "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64, f->dev,
                            f->ino, f->size, f->mtime_ns, f->ctime_ns);
}

static xpl_status_t add_session(struct statement *t, const struct xpl_session *session,
                                struct xpl_error *err) {
    for (size_t i = 0; i < session->n_hosts; i++) {
        const struct xpl_host *const h = &session->hosts[i];
        if (t->profiles.n == XPL_SQL_MAX_PROFILES)
            XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "more than %d profiles",
                             XPL_SQL_MAX_PROFILES);
        struct xpl_sql_profile *const p = xpl_vec_push(&t->arena, &t->profiles);
        const struct xpl_host **const host = p ? xpl_vec_push(&t->arena, &t->hosts) : NULL;
        if (!host) XPL_RETURN_OOM(err, "sessions");
        *p = (struct xpl_sql_profile){.session = session->name,
                                      .host = h->name,
                                      .path = h->path.ptr,
                                      .session_mtime_ns = session->mtime_ns,
                                      .session_captured_ns = session->captured_ns};
        *host = h;
        if (!add_key(t, h, &p->key)) XPL_RETURN_OOM(err, "sessions");
    }
    return XPL_OK;
}

static xpl_status_t add_sessions(struct statement *t, const xpl_str_t *sessions, size_t n,
                                 struct xpl_error *err) {
    for (size_t i = 0; i < n; i++) {
        const struct xpl_session *const s = xpl_snapshot_find(t->snapshot, sessions[i]);
        if (!s) return xpl_snapshot_no_session(t->snapshot, sessions[i], err);
        XPL_TRY(add_session(t, s, err));
    }
    if (!n) XPL_TRY(xpl_snapshot_need_scan(t->snapshot, err)); // of all: which are not known
    for (size_t i = 0; !n && i < t->snapshot->n_sessions; i++)
        XPL_TRY(add_session(t, &t->snapshot->sessions[i], err));
    return XPL_OK;
}

// ---- summaries ----

static xpl_status_t add_runs(struct statement *t, struct xpl_error *err) {
    const struct xpl_snapshot *const s = t->snapshot;
    t->runs = xpl_arena_array(&t->arena, s->n_sessions, sizeof *t->runs);
    if (!t->runs) XPL_RETURN_OOM(err, "sessions");
    for (size_t i = 0; i < s->n_sessions; i++)
        t->runs[i] = (struct xpl_sql_session){s->sessions[i].name, s->sessions[i].mtime_ns,
                                              s->sessions[i].captured_ns};
    return XPL_OK;
}

// As a history asks for it (joint/history.c).
static xpl_status_t summarize(void *arg, size_t i, struct xpl_exec *exec, struct xpl_arena *arena,
                              const struct xpl_run_summary **ret, struct xpl_error *err) {
    const struct statement *const t = arg;
    const struct xpl_request_words words = {
        .session = t->runs[i].name, .tool = XPL_STR("run_summary"), .strict = true};
    struct xpl_request *q = NULL;
    struct xpl_outcome o;
    struct xpl_run_summary *s = NULL;
    XPL_TRY(xpl_engine_resolve(t->s->engine, &words, &q, err));
    xpl_engine_answer(t->s->engine, q, exec, (struct xpl_work_owner){exec_is_cancelled, exec}, &o);
    xpl_request_free(q);
    if (o.code != XPL_OK) *err = o.err;
    const xpl_status_t st =
        o.answer ? xpl_run_summary_decode(xpl_rpc_blob_get(o.answer->blob), arena, &s, err)
                 : o.code;
    if (o.answer) xpl_object_unref(&o.answer->object);
    *ret = s;
    return st;
}

// ---- statements ----

static void flush_store(void *arg) {
    const struct xpl_statements *const s = arg;
    xpl_store_writer_flush(s->writer, FLUSH_MS);
}

static xpl_status_t run(struct statement *t, xpl_str_t text, const xpl_str_t *sessions, size_t n,
                        struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_exec serial = xpl_exec_serial();
    struct xpl_guarded_exec exec;
    XPL_TRY(add_sessions(t, sessions, n, err));
    XPL_TRY(add_runs(t, err));
    xpl_guarded_exec_init(&exec, &serial, t->owner, NULL);
    const struct xpl_sql_request q = {
        .statement = text,
        .source = {.profiles = t->profiles.v,
                   .n = t->profiles.n,
                   .open = open_profile,
                   .close = close_profile,
                   .is_intact = is_intact,
                   .arg = t},
        .runs = {.v = t->runs, .n = t->snapshot->n_sessions, .summarize = summarize, .arg = t},
        .store = t->s->has_store ? t->s->store : NULL,
        .before_store = flush_store,
        .before_arg = t->s,
        .state = t->s->state,
        .limits = xpl_sql_default_limits,
        .cache = t->s->cache,
        .exec = &exec.exec,
        .limit = t->s->memory_limit};
    return xpl_sql_run(&q, out, err);
}

xpl_status_t xpl_statements_run(struct xpl_statements *s, xpl_str_t statement,
                                const xpl_str_t *sessions, size_t n, struct xpl_work_owner owner,
                                struct xpl_buf *out, struct xpl_error *err) {
    xpl_status_t st;
    if (atomic_fetch_add(&s->running, 1) >= s->most) {
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "%u statements are running: try again later", s->most);
    } else {
        struct xpl_snapshot *const snapshot = xpl_catalogue_get(s->catalogue);
        struct statement t = {.s = s, .snapshot = snapshot, .owner = owner};
        xpl_arena_init(&t.arena, s->memory_limit);
        st = run(&t, statement, sessions, n, out, err);
        xpl_arena_fini(&t.arena);
        xpl_snapshot_unref(snapshot);
    }
    atomic_fetch_sub(&s->running, 1);
    return st;
}
