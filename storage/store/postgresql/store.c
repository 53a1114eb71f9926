// SPDX-License-Identifier: Apache-2.0
// The table, opening and closing.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "storage/store/postgresql/impl.h"
#include "storage/store/postgresql/postgresql.h"

enum { DEFAULT_READERS = 4, GOODBYE_MS = 1500 };

// ---- the URL ----

// What is set unless the URL says otherwise: a network that swallows packets is noticed in seconds.
static const char *const defaults[][2] = {
    {"fallback_application_name", "xplaned"},
    {"client_encoding", "UTF8"},
    {"tcp_user_timeout", "5000"},
    {"keepalives_idle", "5"},
    {"keepalives_interval", "2"},
    {"keepalives_count", "3"},
};

static const char *option(const struct xpl_pg_store *s, const char *keyword, const char *env) {
    for (const PQconninfoOption *o = s->options; o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0 && o->val && o->val[0]) return o->val;
    return env ? getenv(env) : NULL;
}

static void set_option(struct xpl_pg_store *s, size_t *n, const char *keyword, const char *value) {
    if (*n + 1 >= PG_KEYWORDS) return;
    s->keywords[*n] = keyword;
    s->values[(*n)++] = value;
}

// libpq's own text about a bad URL may have the password in it.
static xpl_status_t read_url(struct xpl_pg_store *s, const char *url, struct xpl_error *err) {
    char *why = NULL;
    s->options = s->pq->conninfoParse(url, &why);
    if (why) s->pq->freemem(why);
    if (!s->options || !xpl_store_is_url(url))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--store: not a URL of PostgreSQL; write "
                         "postgresql://USER@HOST:PORT/DATABASE");
    const char *const host = option(s, "host", "PGHOST"), *const db = option(s, "dbname", NULL);
    if (db && strchr(db, '@')) // most likely the end of a password
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--store: write / and @ in a password as %%2F and %%40");
    size_t n = 0;
    for (const PQconninfoOption *o = s->options; o->keyword; o++)
        if (o->val && o->val[0]) set_option(s, &n, o->keyword, o->val);
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!option(s, defaults[i][0], NULL)) set_option(s, &n, defaults[i][0], defaults[i][1]);
    (void)snprintf(s->name, sizeof s->name, "PostgreSQL %s/%s", host ? host : "(local)",
                   db ? db : "");
    s->target = (struct xpl_pg_target){s->keywords, s->values, option(s, "password", "PGPASSWORD")};
    return XPL_OK;
}

// ---- the table ----

// From now on each statement has little time: a server that does not answer keeps no daemon from
// ending.
static void hurry(struct xpl_pg_store *s) {
    pthread_mutex_lock(&s->tx.mu);
    xpl_pg_take_writer(s);
    if (s->w) s->w->timeout_ms = GOODBYE_MS;
    pthread_mutex_unlock(&s->tx.mu);
}

// Gives the lease back, so that another daemon need not wait for its end.
static void say_goodbye(struct xpl_pg_store *s) {
    bool own;
    hurry(s);
    if (atomic_load(&s->role) != XPL_STORE_WRITER || xpl_pg_enter(s, &own, NULL) != XPL_OK) return;
    enum xpl_pg_rc rc = xpl_pg_flush_touches(s);
    if (rc == XPL_PG_OK)
        rc = xpl_pg_query(s->w, "UPDATE leases SET expires_at='-infinity' WHERE owner=$1",
                          XPL_PG_WITH(xpl_pg_owner(s)), NULL);
    (void)xpl_pg_leave(s, own, rc, NULL);
}

static void store_free(struct xpl_pg_store *s) {
    xpl_pg_link_fini(s);
    xpl_pg_disconnect(s->w);
    if (s->options) s->pq->conninfoFree(s->options);
    xpl_tx_fini(&s->tx);
    xpl_notices_fini(&s->notices);
    xpl_sys_free(s);
}

static void store_close(struct xpl_store *base) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    say_goodbye(s);
    store_free(s);
}

static enum xpl_store_role store_role(struct xpl_store *base) {
    return (enum xpl_store_role)atomic_load(&xpl_pg_of(base)->role);
}

// The server recovers by itself, before it lets anybody in.
static bool store_was_unclean(struct xpl_store *base) {
    (void)base;
    return false;
}

// Each result is checked when it is read; there is no file that could be.
static xpl_status_t store_check(struct xpl_store *base, bool (*stop)(void *ctx), void *ctx,
                                struct xpl_error *err) {
    const struct xpl_pg_store *const s = xpl_pg_of(base);
    if (atomic_load(&s->role) == XPL_STORE_OFF)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not in use", s->name);
    if (stop && stop(ctx)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "%s: check was stopped", s->name);
    return XPL_OK;
}

static void store_get_stats(struct xpl_store *base, struct xpl_store_stats *ret) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    const int64_t used = atomic_load(&s->used_bytes);
    *ret = (struct xpl_store_stats){.role = (enum xpl_store_role)atomic_load(&s->role),
                                    .hits = atomic_load(&s->hits),
                                    .misses = atomic_load(&s->misses),
                                    .read_errors = atomic_load(&s->read_errors),
                                    .puts = atomic_load(&s->tx.puts),
                                    .dropped = atomic_load(&s->tx.dropped),
                                    .evicted = atomic_load(&s->evicted),
                                    .statements = atomic_load(&s->statements),
                                    .used_bytes = used > 0 ? (uint64_t)used : 0,
                                    .limit_bytes = s->limit_bytes,
                                    .catalogue_known = atomic_load(&s->tx.catalogue_known)};
}

static const struct xpl_store_ops ops = {
    .close = store_close,
    .role = store_role,
    .next_notice = xpl_pg_next_notice,
    .get = xpl_pg_get,
    .has = xpl_pg_has,
    .get_secret = xpl_pg_get_secret,
    .secret_generation = xpl_pg_secret_generation,
    .find_file = xpl_pg_find_file,
    .has_many = xpl_pg_has_many,
    .find_files = xpl_pg_find_files,
    .has_size = xpl_pg_has_size,
    .list_files = xpl_pg_list_files,
    .begin = xpl_tx_begin,
    .commit = xpl_tx_commit,
    .rollback = xpl_tx_rollback,
    .put = xpl_pg_put,
    .put_file = xpl_pg_put_file,
    .put_rows = xpl_pg_put_rows,
    .has_rows = xpl_pg_has_rows,
    .put_catalogue = xpl_pg_put_catalogue,
    .maintain = xpl_pg_maintain,
    .was_unclean = store_was_unclean,
    .check = store_check,
    .get_stats = store_get_stats,
    .jobs = &xpl_pg_jobs,
    .captures = &xpl_pg_captures,
    .listings = &xpl_pg_listings,
};

// ---- opening ----

static xpl_status_t make_random(struct xpl_pg_store *s, struct xpl_error *err) {
    uint64_t id[2];
    if (getrandom(s->secret, sizeof s->secret, 0) != sizeof s->secret ||
        getrandom(id, sizeof id, 0) != sizeof id)
        XPL_RETURN_ERROR(err, XPL_INTERNAL, "store: the system gives no random numbers");
    (void)snprintf(s->owner, sizeof s->owner, "%016" PRIx64 "%016" PRIx64, id[0], id[1]);
    return XPL_OK;
}

xpl_status_t xpl_pg_open(const struct xpl_store_options *o, struct xpl_store **ret,
                         struct xpl_error *err) {
    const struct xpl_pq *pq = NULL;
    XPL_TRY(xpl_pq_load(&pq, err));
    struct xpl_pg_store *const s = xpl_sys_alloc(sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "opening the store");
    memset(s, 0, sizeof *s);
    xpl_tx_init(&s->tx, &ops, &xpl_pg_tx);
    xpl_notices_init(&s->notices);
    s->pq = pq;
    s->limit_bytes = o->limit_bytes;
    s->readers = o->readers ? o->readers : DEFAULT_READERS;
    s->read_only = o->read_only;
    xpl_pg_link_init(s);
    xpl_status_t st = read_url(s, o->url, err);
    if (st == XPL_OK) st = make_random(s, err);
    if (st == XPL_OK) st = xpl_pg_link_start(s, err);
    if (st != XPL_OK) {
        store_free(s);
        return st;
    }
    *ret = &s->tx.base;
    return XPL_OK;
}
