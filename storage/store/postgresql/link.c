// SPDX-License-Identifier: Apache-2.0
// The link to the database.  One thread makes every connection, so that nobody else waits for names
// to be resolved or for a server that is away, and makes them again when they are lost.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "storage/store/postgresql/impl.h"

// RETRY_MS: pause after an attempt that failed, with as much again at random; DENIED_MS: where the
// next one will most likely fail, too.  A lost server is used again 5 s after it is back.
// READER_MS: pause after a reader that could not be opened while others work.
enum {
    START_MS = 3000,
    CONNECT_MS = 2000,
    READ_MS = 2000,
    WRITE_MS = 10000,
    RETRY_MS = 500,
    DENIED_MS = 4000,
    STANDBY_MS = 2000,
    READER_MS = 1000,
    OLDEST_SERVER = 150000
};

#define IDLE_NS ((uint64_t)60 * 1000000000u)

static void disconnect_all(struct xpl_pg_conn *c) {
    while (c) {
        struct xpl_pg_conn *const next = c->next;
        xpl_pg_disconnect(c);
        c = next;
    }
}

// Gives a connection to the thread that waits longest, or keeps it for the next one.  Otherwise
// threads that ask all the time would take it before a waiter wakes, until its time is over.
static void offer(struct xpl_pg_store *s, struct xpl_pg_conn *c) {
    xpl_assert_held(&s->mu);
    struct xpl_pg_waiter *const first = s->waiting;
    if (first) {
        s->waiting = first->next;
        first->c = c;
        pthread_cond_signal(&first->cond);
    } else {
        c->next = s->idle;
        s->idle = c;
    }
}

// All waiting threads look at what they wait for again.
static void wake_all(struct xpl_pg_store *s) {
    xpl_assert_held(&s->mu);
    pthread_cond_broadcast(&s->cond);
    for (struct xpl_pg_waiter *w = s->waiting; w; w = w->next)
        pthread_cond_signal(&w->cond);
}

// Until the keeper has a new connection everything misses, at once.
static void link_lost(struct xpl_pg_store *s, unsigned epoch, const char *why) {
    pthread_mutex_lock(&s->mu);
    const bool news = epoch == s->epoch && !s->stop;
    struct xpl_pg_conn *idle = NULL;
    if (news) {
        s->epoch++; // those in use are closed when they come back
        idle = s->idle;
        s->idle = NULL;
        s->n_open = s->n_wanted = 0;
        atomic_store(&s->role, XPL_STORE_OFF);
        wake_all(s);
        pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->mu);
    disconnect_all(idle);
    if (news) xpl_pg_notice(s, "%s is away (%s): results are kept in memory", s->name, why);
}

// ---- the thread ----

// All that makes a connection one that can be used.
static enum xpl_pg_rc make_ready(struct xpl_pg_store *s, struct xpl_pg_conn *c,
                                 bool *ret_read_only) {
    bool newer = false;
    int64_t ro = 0;
    if (c->pq->serverVersion(c->c) < OLDEST_SERVER) {
        (void)snprintf(c->why, sizeof c->why, "the server is older than version 15");
        return XPL_PG_DENIED;
    }
    enum xpl_pg_rc rc = xpl_pg_read_clock(s, c);
    if (rc != XPL_PG_OK) return rc;
    rc = xpl_pg_ask(c, "SELECT (current_setting('transaction_read_only')='on')::int::bigint", NULL,
                    &ro);
    *ret_read_only = s->read_only || ro;
    if (rc == XPL_PG_OK) rc = xpl_pg_migrate(c, *ret_read_only, &newer);
    if (rc == XPL_PG_OK) atomic_store(&s->newer, newer);
    if (rc == XPL_PG_OK && newer && atomic_load(&s->unreadable)) {
        (void)snprintf(c->why, sizeof c->why, "a newer xplaned made its tables");
        return XPL_PG_DENIED;
    }
    *ret_read_only |= newer;
    if (rc == XPL_PG_SCHEMA && *ret_read_only)
        (void)snprintf(c->why, sizeof c->why, "it is read only and has no tables of this xplaned");
    if (rc == XPL_PG_OK) rc = xpl_pg_load_secret(s, c, *ret_read_only);
    return rc == XPL_PG_OK ? xpl_pg_read_used(s, c) : rc;
}

static void use(struct xpl_pg_store *s, struct xpl_pg_conn *c, bool read_only) {
    struct xpl_pg_conn *old = NULL;
    c->timeout_ms = read_only ? READ_MS : WRITE_MS;
    pthread_mutex_lock(&s->mu);
    c->epoch = s->epoch;
    if (read_only) {
        offer(s, c);
        s->n_open++;
    } else {
        old = s->next_writer;
        s->next_writer = c;
        s->n_wanted += s->n_open == 0; // the first lookup finds a connection
    }
    atomic_store(&s->role, read_only ? XPL_STORE_READER : XPL_STORE_WRITER);
    wake_all(s);
    pthread_mutex_unlock(&s->mu);
    xpl_pg_disconnect(old);
}

static void report(struct xpl_pg_store *s, enum xpl_pg_rc rc, const char *why, bool first) {
    if (rc == XPL_PG_TAKEN && first) {
        pthread_mutex_lock(&s->mu);
        s->refused =
            xpl_error_set(&s->refusal, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                          "%s: it has tables of another program; use a database or "
                          "schema of its own",
                          s->name);
        pthread_mutex_unlock(&s->mu);
        return;
    }
    xpl_pg_notice(s, "%s cannot be used (%s): results are kept in memory", s->name, why);
}

// Connects for the first time or again; gives the pause until the next attempt.
static unsigned attempt(struct xpl_pg_store *s, bool first) {
    struct xpl_pg_conn *c = NULL;
    const bool was_reader = atomic_load(&s->role) == XPL_STORE_READER;
    bool read_only = false;
    enum xpl_pg_rc rc = xpl_pg_connect(s->pq, &s->target, CONNECT_MS, s->wake_fd, &c);
    if (c) c->n_statements = &s->statements;
    if (rc == XPL_PG_OK) rc = make_ready(s, c, &read_only);
    if (rc == XPL_PG_OK && !(was_reader && read_only)) {
        if (read_only)
            xpl_pg_notice(s, "%s is only read%s", s->name,
                          atomic_load(&s->newer) ? ": a newer xplaned made its tables" : "");
        if (!first && !was_reader) xpl_pg_notice(s, "%s is used again", s->name);
        use(s, c, read_only);
        return 0;
    }
    if (rc != XPL_PG_OK && !was_reader) report(s, rc, c ? c->why : "out of memory", first);
    xpl_pg_disconnect(c);
    return rc == XPL_PG_OK || rc == XPL_PG_AWAY || rc == XPL_PG_BUSY ? RETRY_MS : DENIED_MS;
}

// One more connection for readers.  A server that has no place for it is not away.
static void open_reader(struct xpl_pg_store *s, unsigned epoch) {
    struct xpl_pg_conn *c = NULL;
    const enum xpl_pg_rc rc = xpl_pg_connect(s->pq, &s->target, CONNECT_MS, s->wake_fd, &c);
    pthread_mutex_lock(&s->mu);
    const bool keep = rc == XPL_PG_OK && epoch == s->epoch;
    if (keep) {
        c->timeout_ms = READ_MS;
        c->n_statements = &s->statements;
        c->epoch = epoch;
        offer(s, c);
    } else if (epoch == s->epoch) {
        s->n_open--;
        s->n_wanted = 0;
        s->reader_at_ns = xpl_clock_ns() + (uint64_t)READER_MS * 1000000u;
    }
    wake_all(s);
    pthread_mutex_unlock(&s->mu);
    if (keep) return;
    if (rc == XPL_PG_AWAY) link_lost(s, epoch, c->why);
    xpl_pg_disconnect(c);
}

// What there is to do; the caller holds the mutex.
static bool wants_reader(const struct xpl_pg_store *s) {
    return s->n_wanted > 0 && s->n_open < s->readers;
}

static void *keep_link(void *arg) {
    struct xpl_pg_store *const s = arg;
    unsigned seed = (unsigned)xpl_clock_ns();
    uint64_t next_ns = 0;
    pthread_mutex_lock(&s->mu);
    while (!s->stop && s->refused == XPL_OK) {
        const int role = atomic_load(&s->role);
        const bool standby = role == XPL_STORE_READER && !s->read_only;
        const uint64_t now = xpl_clock_ns();
        if (role != XPL_STORE_OFF && wants_reader(s)) {
            const unsigned epoch = s->epoch;
            s->n_wanted--;
            s->n_open++;
            pthread_mutex_unlock(&s->mu);
            open_reader(s, epoch);
            pthread_mutex_lock(&s->mu);
        } else if ((role == XPL_STORE_OFF || standby) && now >= next_ns) {
            const bool first = !s->tried;
            pthread_mutex_unlock(&s->mu);
            const unsigned pause = attempt(s, first);
            pthread_mutex_lock(&s->mu);
            s->tried = true;
            wake_all(s);
            const uint64_t ms = pause ? pause + (unsigned)rand_r(&seed) % RETRY_MS : STANDBY_MS;
            next_ns = pause || standby ? xpl_clock_ns() + ms * 1000000u : 0;
        } else {
            if (role == XPL_STORE_WRITER) next_ns = 0;
            s->n_wanted = role == XPL_STORE_OFF ? 0 : s->n_wanted;
            const bool timed = role == XPL_STORE_OFF || standby;
            (void)xpl_cond_wait_until(&s->work, &s->mu, timed ? next_ns : now + IDLE_NS);
        }
    }
    pthread_mutex_unlock(&s->mu);
    return NULL;
}

void xpl_pg_link_init(struct xpl_pg_store *s) {
    pthread_mutex_init(&s->mu, NULL);
    xpl_cond_init(&s->cond);
    xpl_cond_init(&s->work);
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

xpl_status_t xpl_pg_link_start(struct xpl_pg_store *s, struct xpl_error *err) {
    if (pthread_create(&s->keeper, NULL, keep_link, s) != 0) XPL_RETURN_OOM(err, "store");
    s->has_keeper = true;
    const uint64_t until = xpl_clock_ns() + (uint64_t)START_MS * 1000000u;
    pthread_mutex_lock(&s->mu);
    while (!s->tried && xpl_clock_ns() < until)
        (void)xpl_cond_wait_until(&s->cond, &s->mu, until);
    // The first lookup finds a reader, too.
    while (s->tried && atomic_load(&s->role) == XPL_STORE_WRITER && !s->idle &&
           (s->n_wanted || s->n_open) && xpl_clock_ns() < until)
        (void)xpl_cond_wait_until(&s->cond, &s->mu, until);
    const bool tried = s->tried;
    const xpl_status_t refused = s->refused;
    if (refused != XPL_OK && err && err->code == XPL_OK) *err = s->refusal;
    pthread_mutex_unlock(&s->mu);
    if (!tried) xpl_pg_notice(s, "%s does not answer: results are kept in memory", s->name);
    return refused;
}

void xpl_pg_link_fini(struct xpl_pg_store *s) {
    const uint64_t one = 1;
    pthread_mutex_lock(&s->mu);
    s->stop = true;
    pthread_cond_broadcast(&s->work);
    wake_all(s);
    pthread_mutex_unlock(&s->mu);
    if (s->wake_fd >= 0) (void)!write(s->wake_fd, &one, sizeof one);
    if (s->has_keeper) (void)pthread_join(s->keeper, NULL);
    disconnect_all(s->idle);
    xpl_pg_disconnect(s->next_writer);
    if (s->wake_fd >= 0) (void)close(s->wake_fd);
    pthread_mutex_destroy(&s->mu);
    pthread_cond_destroy(&s->cond);
    pthread_cond_destroy(&s->work);
}

// ---- readers ----

// Waits for a connection, behind those that wait already.
static struct xpl_pg_conn *wait_for_reader(struct xpl_pg_store *s) {
    xpl_assert_held(&s->mu);
    const uint64_t until = xpl_clock_ns() + (uint64_t)READ_MS * 1000000u;
    struct xpl_pg_waiter me = {0}, **at = &s->waiting;
    bool asked = false;
    xpl_cond_init(&me.cond);
    while (*at)
        at = &(*at)->next;
    *at = &me;
    while (!me.c && atomic_load(&s->role) != XPL_STORE_OFF && !s->stop) {
        const uint64_t now = xpl_clock_ns();
        if (!asked && now >= s->reader_at_ns && s->n_open + s->n_wanted < s->readers) {
            asked = true;
            s->n_wanted++;
            pthread_cond_signal(&s->work);
        }
        if (now >= until || s->n_open + s->n_wanted == 0) break; // none will come
        (void)xpl_cond_wait_until(&me.cond, &s->mu, until);
    }
    for (at = &s->waiting; !me.c && *at != &me;)
        at = &(*at)->next;
    if (!me.c) *at = me.next;
    pthread_cond_destroy(&me.cond);
    return me.c;
}

// An idle connection, or NULL.
static struct xpl_pg_conn *claim(struct xpl_pg_store *s) {
    pthread_mutex_lock(&s->mu);
    struct xpl_pg_conn *c = atomic_load(&s->role) == XPL_STORE_OFF || s->stop ? NULL : s->idle;
    if (c)
        s->idle = c->next;
    else
        c = wait_for_reader(s);
    pthread_mutex_unlock(&s->mu);
    return c;
}

struct xpl_pg_conn *xpl_pg_reader(struct xpl_pg_store *s) {
    struct xpl_pg_conn *const c = claim(s);
    if (!c || xpl_pg_is_alive(c)) return c;
    (void)snprintf(c->why, sizeof c->why, "it closed the connection");
    xpl_pg_reader_done(s, c, XPL_PG_AWAY);
    return NULL;
}

void xpl_pg_reader_done(struct xpl_pg_store *s, struct xpl_pg_conn *c, enum xpl_pg_rc rc) {
    const bool usable = rc == XPL_PG_OK || rc == XPL_PG_NONE || rc == XPL_PG_BUSY;
    const bool lost = rc == XPL_PG_AWAY || rc == XPL_PG_SCHEMA;
    if (!usable && rc != XPL_PG_NOMEM && rc != XPL_PG_TOOBIG) atomic_fetch_add(&s->read_errors, 1);
    if (rc == XPL_PG_SCHEMA && atomic_load(&s->newer)) atomic_store(&s->unreadable, true);
    pthread_mutex_lock(&s->mu);
    const bool current = c->epoch == s->epoch;
    const bool keep = usable && current;
    if (keep) {
        offer(s, c);
    } else if (current && !lost) {
        s->n_open--;
        wake_all(s);
    }
    pthread_mutex_unlock(&s->mu);
    if (lost) link_lost(s, c->epoch, c->why);
    if (!keep) xpl_pg_disconnect(c);
}

// ---- the writer ----

void xpl_pg_writer_lost(struct xpl_pg_store *s, const char *why) {
    if (!s->w) return;
    link_lost(s, s->w->epoch, why);
    xpl_pg_disconnect(s->w);
    s->w = NULL;
}

void xpl_pg_take_writer(struct xpl_pg_store *s) {
    pthread_mutex_lock(&s->mu);
    struct xpl_pg_conn *const next = s->next_writer;
    s->next_writer = NULL;
    pthread_mutex_unlock(&s->mu);
    if (next) {
        xpl_pg_disconnect(s->w);
        s->w = next;
        s->session++;
        s->week = 0;
        atomic_store(&s->tx.catalogue_known, false); // the database may be another one
    }
    if (!s->w || xpl_pg_is_alive(s->w)) return;
    xpl_pg_writer_lost(s, "it closed the connection");
}
