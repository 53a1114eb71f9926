// SPDX-License-Identifier: Apache-2.0
#include "server/engine/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/exec.h"
#include "base/heap.h"
#include "base/log.h"
#include "storage/sessions/identity.h"
#include "storage/store/jobs.h"

// RETRY_S: how often a store that cannot be written is tried again.
enum {
    MAX_QUEUED = 4096,
    MAINTAIN_S = 30,
    RETRY_S = 1,
    GONE_S = 7 * 86400,
    WAIT_MS = 5000,
    NICE = 5
};
enum { ROWS_AT_STOP_MS = 500, LARGE = 64 << 20 };
// A task that needs a hash waits for a quiet moment: at most so long, asking so often.
enum { IDLE_MS = 1000, IDLE_POLL_MS = 5 };
// Rows wait for it longer: until then those of all hosts of a session are queued.
enum { ROWS_IDLE_MS = 10000, ROWS_POLL_MS = 20 };

// What a queue may keep alive; one task may always wait.  Answers may go over it by as much again:
// their makers do not wait.
#define MAX_BYTES ((size_t)128 << 20)

// The limit of writes kept while a shared store is away; beyond it the oldest is dropped.
enum { MAX_AWAY = 1024 };
#define MAX_AWAY_BYTES ((size_t)64 << 20)

enum task_kind { PRODUCT, ROWS, ANSWER, CATALOGUE };

struct task {
    struct task *next;
    enum task_kind kind;
    uint64_t number; // tasks are counted as they come
    uint64_t queued_ns;
    struct xpl_store_key key; // `profiles` are known once `identified`
    struct xpl_profile_id *profiles;
    const struct xpl_host **hosts; // of `snapshot`, one for each profile
    struct xpl_fingerprint *files; // that the result was made from
    bool identified;
    bool again;                              // was not written the first time
    struct xpl_store_writer_product product; // PRODUCT, ROWS
    xpl_bytes_t data, meta;                  // ANSWER
    struct xpl_snapshot *snapshot;
    struct xpl_arena arena; // the key's parts and `meta`
};

struct queue {
    struct task *head, **tail;
    size_t n, bytes;
    uint64_t oldest; // the least number in it, or of those that were; NONE when it is empty
};
#define NONE UINT64_MAX

struct xpl_store_writer {
    struct xpl_store_writer_options o;
    pthread_mutex_t mu;
    pthread_cond_t work, room, flushed;
    struct queue first, rows;  // rows have time
    struct queue away;         // writes kept while a shared store is away
    uint64_t numbers, running; // the last number; of the task, or the first of those, being written
    uint64_t flush_to;         // flushes wait for the tasks up to this one; 0: none
    unsigned flushing;         // threads in a flush
    struct xpl_store_writer_stats stats;
    struct xpl_snapshot *newest; // of the catalogue
    unsigned waiting;            // threads that wait for room
    bool stop, abandon;
    uint64_t stop_at_ns, rows_end_ns;
    pthread_t thread;
};

static size_t task_bytes(const struct task *t) {
    return sizeof *t + t->arena.reserved + (t->product.owner ? t->product.owner->bytes : 0);
}

static void task_free(struct task *t) {
    xpl_object_unref(t->product.owner);
    xpl_snapshot_unref(t->snapshot);
    xpl_arena_fini(&t->arena);
    xpl_sys_free(t);
}

// ---- ids ----

static bool stopping(void *arg) {
    struct xpl_store_writer *w = arg;
    pthread_mutex_lock(&w->mu);
    const bool late = w->stop && xpl_clock_ns() > w->stop_at_ns;
    pthread_mutex_unlock(&w->mu);
    return late;
}

// Waits until no request is running. Returns at once if a thread waits for room in the queue.
static void wait_idle(struct xpl_store_writer *w, const struct task *t) {
    const uint64_t end = t->queued_ns + (uint64_t)IDLE_MS * 1000000u;
    pthread_mutex_lock(&w->mu);
    while (!w->stop && !w->waiting && !w->flushing && w->first.bytes < MAX_BYTES / 2 &&
           w->first.n < MAX_QUEUED / 2) {
        const uint64_t now = xpl_clock_ns();
        if (now >= end || !w->o.busy || !w->o.busy(w->o.arg)) break;
        (void)xpl_cond_wait_until(&w->work, &w->mu, now + (uint64_t)IDLE_POLL_MS * 1000000u);
    }
    pthread_mutex_unlock(&w->mu);
}

static void source_free(struct xpl_source **s) {
    xpl_source_free(*s);
}

static xpl_status_t hash_file(struct xpl_store_writer *w, const struct task *t, size_t i,
                              struct xpl_error *err) {
    XPL_AUTO(source_free) struct xpl_source *src = NULL;
    XPL_TRY(xpl_snapshot_open(t->snapshot, t->hosts[i], 0, &src, err));
    if (!xpl_fingerprint_eq(xpl_source_fingerprint(src), &t->files[i]) ||
        !xpl_source_is_stable(src))
        XPL_RETURN_ERROR(err, XPL_ABORTED, "%s: changed since", t->hosts[i]->path.ptr);
    XPL_TRY(xpl_identity_hash(w->o.identity, src, stopping, w, &t->profiles[i], err));
    pthread_mutex_lock(&w->mu);
    w->stats.hashed_bytes += t->files[i].size;
    pthread_mutex_unlock(&w->mu);
    return XPL_OK;
}

static xpl_status_t identify(struct xpl_store_writer *w, struct task *t, struct xpl_error *err) {
    for (size_t i = 0; !t->identified && i < t->key.n_profiles; i++) {
        if (xpl_identity_lookup(w->o.identity, &t->files[i], &t->profiles[i])) continue;
        wait_idle(w, t);
        XPL_TRY(hash_file(w, t, i, err));
    }
    t->identified = true;
    return XPL_OK;
}

// ---- writing ----

static xpl_status_t write_product(struct xpl_store_writer *w, const struct task *t,
                                  struct xpl_error *err) {
    const struct xpl_store_writer_product *const p = &t->product;
    if (!p->value) return xpl_store_put(w->o.store, &t->key, p->encoded, t->meta, err);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bytes = xpl_buf_of(XPL_STORE_MAX_RESULT);
    XPL_TRY(p->encode(p->value, &bytes, err));
    return xpl_store_put(w->o.store, &t->key, (xpl_bytes_t){bytes.p, bytes.n}, t->meta, err);
}

static xpl_status_t write_rows(struct xpl_store_writer *w, const struct task *t,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 30);
    struct xpl_rows rows;
    XPL_TRY(t->product.rows(t->product.value, t->product.encoded, &arena, &rows, err));
    return xpl_store_put_rows(w->o.store, &t->profiles[0], w->o.rows_version, &rows, err);
}

static xpl_status_t write_result(struct xpl_store_writer *w, const struct task *t,
                                 struct xpl_error *err) {
    if (t->kind == PRODUCT) return write_product(w, t, err);
    if (t->kind == ROWS) return write_rows(w, t, err);
    return xpl_store_put(w->o.store, &t->key, t->data, t->meta, err);
}

// The files are recorded together with their products: a crash does not separate them.
static xpl_status_t put_task(struct xpl_store_writer *w, const struct task *t,
                             struct xpl_error *err) {
    for (size_t i = 0; i < t->key.n_profiles; i++)
        XPL_TRY(xpl_store_put_file(w->o.store, &t->files[i], &t->profiles[i], err));
    return write_result(w, t, err);
}

static bool rows_are_late(void *arg) {
    struct xpl_store_writer *const w = arg;
    pthread_mutex_lock(&w->mu);
    const bool late = w->stop && xpl_clock_ns() > w->rows_end_ns;
    pthread_mutex_unlock(&w->mu);
    return late;
}

// The next daemon writes the rest of a large catalogue if this one ends before.
static xpl_status_t put_catalogue(struct xpl_store_writer *w, const struct xpl_snapshot *snapshot,
                                  struct xpl_error *err) {
    const struct xpl_cancel cancel = {.is_cancelled = rows_are_late, .arg = w};
    return xpl_store_put_catalogue(w->o.store, snapshot, &cancel, err);
}

static xpl_status_t write_task(struct xpl_store_writer *w, struct task *t, struct xpl_error *err) {
    if (t->kind == CATALOGUE) return put_catalogue(w, t->snapshot, err);
    XPL_TRY(identify(w, t, err));
    XPL_TRY(xpl_store_begin(w->o.store, err));
    const xpl_status_t st = put_task(w, t, err);
    const xpl_status_t committed = xpl_store_commit(w->o.store, err);
    return st != XPL_OK ? st : committed;
}

// Writes the rows of all tasks of the list at once: a reader sees those of all hosts of a session,
// or of none.
static xpl_status_t write_rows_together(struct xpl_store_writer *w, struct task *list,
                                        struct xpl_error *err) {
    XPL_TRY(xpl_store_begin(w->o.store, err));
    xpl_status_t st = XPL_OK;
    for (const struct task *t = list; st == XPL_OK && t; t = t->next)
        st = rows_are_late(w) ? XPL_CANCELLED : put_task(w, t, err);
    if (st == XPL_OK) return xpl_store_commit(w->o.store, err);
    xpl_store_rollback(w->o.store);
    return st;
}

// Whether the task failed as the file is not the one any more that it was made from.
static bool is_outdated(xpl_status_t st) {
    return st == XPL_ABORTED || st == XPL_CANCELLED || st == XPL_NOT_FOUND ||
           st == XPL_PERMISSION_DENIED;
}

static void count_task(struct xpl_store_writer *w, xpl_status_t st, const struct xpl_error *err) {
    pthread_mutex_lock(&w->mu);
    const bool outdated = is_outdated(st);
    const bool news = st != XPL_OK && !outdated && strcmp(w->stats.error, err->msg) != 0;
    if (st == XPL_OK) {
        w->stats.writes++;
    } else if (outdated) {
        w->stats.dropped++;
    } else {
        w->stats.failed++;
        (void)snprintf(w->stats.error, sizeof w->stats.error, "%s", err->msg);
    }
    pthread_mutex_unlock(&w->mu);
    // The same trouble over and over (a full disk) is logged once.
    if (news) xpl_log(XPL_LOG_WARN, "store", "not stored: %s", err->msg);
}

// Whether writes wait until the store is back: only those of a shared store do.
static bool is_away(struct xpl_store_writer *w) {
    return xpl_store_jobs(w->o.store) && xpl_store_role(w->o.store) == XPL_STORE_OFF;
}

static void keep_for_later(struct xpl_store_writer *w, struct task *t);

// Whether a shared store failed because it was away for a moment. It may be back by now, or its
// absence not yet known: so such a write is tried once more.
static bool was_away(struct xpl_store_writer *w, const struct task *t, xpl_status_t st) {
    if (is_away(w)) return true;
    return !t->again && xpl_store_jobs(w->o.store) &&
           (st == XPL_UNAVAILABLE || st == XPL_FAILED_PRECONDITION);
}

// Takes the task over when the store went away meanwhile; else false.
static bool run_task(struct xpl_store_writer *w, struct task *t) {
    struct xpl_error err = {0};
    const xpl_status_t st = write_task(w, t, &err);
    const bool later = st != XPL_OK && !is_outdated(st) && t->kind != ROWS &&
                       t->kind != CATALOGUE && was_away(w, t, st);
    t->again = true;
    if (later)
        keep_for_later(w, t);
    else
        count_task(w, st, &err);
    return later;
}

// The list without those whose files have no id: they have changed, say.  The others are still
// written together.
static struct task *identify_rows(struct xpl_store_writer *w, struct task *list) {
    struct task *kept = NULL, **end = &kept;
    for (struct task *t = list, *next; t; t = next) {
        struct xpl_error err = {0};
        next = t->next;
        const xpl_status_t st = identify(w, t, &err);
        if (st == XPL_OK) {
            *end = t;
            end = &t->next;
        } else {
            count_task(w, st, &err);
            task_free(t);
        }
    }
    *end = NULL;
    return kept;
}

// Rows that cannot be written together are written one by one: the rows of one may be too many.
static void run_rows(struct xpl_store_writer *w, struct task *list) {
    struct xpl_error err = {0};
    list = identify_rows(w, list);
    const bool one = !list || !list->next;
    const xpl_status_t st = one ? XPL_UNKNOWN : write_rows_together(w, list, &err);
    for (struct task *t = list, *next; t; t = next) {
        next = t->next;
        if (st == XPL_OK || rows_are_late(w)) {
            pthread_mutex_lock(&w->mu);
            *(st == XPL_OK ? &w->stats.writes : &w->stats.dropped) += 1;
            pthread_mutex_unlock(&w->mu);
        } else {
            (void)run_task(w, t); // rows are not taken over
        }
        task_free(t);
    }
}

static void log_notices(struct xpl_store_writer *w) {
    char text[512];
    while (xpl_store_next_notice(w->o.store, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "store", "%s", text);
}

static bool is_stopped(void *arg) {
    struct xpl_store_writer *const w = arg;
    pthread_mutex_lock(&w->mu);
    const bool stop = w->stop;
    pthread_mutex_unlock(&w->mu);
    return stop;
}

static void maintain(struct xpl_store_writer *w) {
    struct xpl_error err = {0};
    bool more = true;
    const struct xpl_cancel cancel = {.is_cancelled = is_stopped, .arg = w};
    const struct xpl_store_maintenance m = {
        .current = w->o.current, .n_current = w->o.n_current, .gone_s = GONE_S, .cancel = &cancel};
    while (more) {
        if (xpl_store_maintain(w->o.store, &m, &more, &err) != XPL_OK) break;
        pthread_mutex_lock(&w->mu);
        if (w->first.head || w->rows.head || w->stop) more = false;
        pthread_mutex_unlock(&w->mu);
    }
}

// ---- queues ----

static void enqueue(struct xpl_store_writer *w, struct queue *q, struct task *t) {
    xpl_assert_held(&w->mu);
    t->next = NULL;
    if (!t->number) t->number = ++w->numbers; // rows keep that of their product
    if (t->number < q->oldest) q->oldest = t->number;
    *q->tail = t;
    q->tail = &t->next;
    q->n++;
    q->bytes += task_bytes(t);
    w->stats.queued++;
    pthread_cond_signal(&w->work);
}

static struct task *dequeue(struct xpl_store_writer *w, struct queue *q) {
    xpl_assert_held(&w->mu);
    struct task *const t = q->head;
    if (!t) return NULL;
    q->head = t->next;
    q->oldest = t->next ? t->next->number : NONE;
    if (!q->head) q->tail = &q->head;
    q->n--;
    q->bytes -= task_bytes(t);
    w->stats.queued--;
    pthread_cond_broadcast(&w->room);
    return t;
}

// A product or an answer, which is taken over.
static void keep_for_later(struct xpl_store_writer *w, struct task *t) {
    struct queue *const q = &w->away;
    struct task *dropped = NULL;
    pthread_mutex_lock(&w->mu);
    while (q->head && (q->n >= MAX_AWAY || q->bytes + task_bytes(t) > MAX_AWAY_BYTES)) {
        struct task *const oldest = dequeue(w, q);
        if (!oldest) break;
        oldest->next = dropped;
        dropped = oldest;
        w->stats.dropped++;
    }
    const bool room = !w->stop && q->bytes + task_bytes(t) <= MAX_AWAY_BYTES;
    t->number = 0; // nothing waits for it
    if (room)
        enqueue(w, q, t);
    else
        w->stats.dropped++;
    pthread_mutex_unlock(&w->mu);
    if (!room) task_free(t);
    for (struct task *next; dropped; dropped = next) {
        next = dropped->next;
        task_free(dropped);
    }
}

// The store is back.
static void write_kept(struct xpl_store_writer *w) {
    pthread_mutex_lock(&w->mu);
    for (struct task *t; (t = dequeue(w, &w->away));) {
        t->number = 0; // in order after the queued ones
        enqueue(w, &w->first, t);
    }
    pthread_mutex_unlock(&w->mu);
}

static void drop_kept(struct xpl_store_writer *w) {
    pthread_mutex_lock(&w->mu);
    for (struct task *t; (t = dequeue(w, &w->away));)
        task_free(t);
    pthread_mutex_unlock(&w->mu);
}

static bool has_room(const struct queue *q, const struct task *t) {
    const size_t more = t->kind == ANSWER ? 2 : 1;
    return q->n < MAX_QUEUED * more && (!q->head || q->bytes + task_bytes(t) <= MAX_BYTES * more);
}

// True if a flush is waiting only for rows.
static bool rows_are_flushed(const struct xpl_store_writer *w) {
    return w->rows.oldest <= w->flush_to && w->first.oldest > w->flush_to;
}

// Whether it is time for rows: no request is running, which would bring more of them.
static bool rows_are_due(struct xpl_store_writer *w) {
    const struct task *const t = w->rows.head;
    if (!t) return false;
    return w->stop || rows_are_flushed(w) || !w->o.busy || !w->o.busy(w->o.arg) ||
           w->rows.n > MAX_QUEUED / 2 || w->rows.bytes > MAX_BYTES / 2 ||
           xpl_clock_ns() > t->queued_ns + (uint64_t)ROWS_IDLE_MS * 1000000u;
}

// All of a queue, as a list.
static struct task *take_all(struct xpl_store_writer *w, struct queue *q) {
    struct task *const list = q->head;
    w->stats.queued -= (uint32_t)q->n;
    *q = (struct queue){.tail = &q->head, .oldest = NONE};
    pthread_cond_broadcast(&w->room);
    return list;
}

// The next task, or, when there is none, all rows that are due, as a list; or NULL: nothing came
// for MAINTAIN_S (RETRY_S while the store is away), there are ids to save, or the end.
static struct task *next_task(struct xpl_store_writer *w, bool *ret_stop) {
    const bool writing = xpl_store_role(w->o.store) == XPL_STORE_WRITER;
    const uint64_t retry = xpl_clock_ns() + (uint64_t)RETRY_S * 1000000000u;
    const uint64_t maintain_at = xpl_clock_ns() + (uint64_t)MAINTAIN_S * 1000000000u;
    pthread_mutex_lock(&w->mu);
    while (!w->first.head && !rows_are_due(w) && !w->stop &&
           !xpl_identity_is_unsaved(w->o.identity)) {
        const uint64_t now = xpl_clock_ns(), poll = now + (uint64_t)ROWS_POLL_MS * 1000000u;
        const uint64_t until = writing && !w->away.head ? maintain_at : retry;
        if (now >= until) break;
        (void)xpl_cond_wait_until(&w->work, &w->mu, w->rows.head && poll < until ? poll : until);
    }
    const uint64_t oldest = w->rows.oldest;
    struct task *t = rows_are_flushed(w) ? NULL : dequeue(w, &w->first);
    w->running = t ? t->number : NONE;
    if (!t && rows_are_due(w)) {
        t = take_all(w, &w->rows);
        w->running = oldest;
    }
    *ret_stop = w->stop && !t;
    const uint64_t now = w->stop ? xpl_clock_ns() : 0;
    // Rows that are not written now are written when their product is read again.
    if (t && w->stop) w->abandon = now > (t->kind == ROWS ? w->rows_end_ns : w->stop_at_ns);
    pthread_mutex_unlock(&w->mu);
    return t;
}

// The rows of a product that is written now.
static void queue_rows(struct xpl_store_writer *w, struct task *t) {
    t->kind = ROWS;
    pthread_mutex_lock(&w->mu);
    const bool room = has_room(&w->rows, t);
    if (room) enqueue(w, &w->rows, t);
    pthread_mutex_unlock(&w->mu);
    if (!room) task_free(t);
}

// Gives back what a long queue has kept alive.
static void trim(struct xpl_store_writer *w, size_t *done_bytes) {
    pthread_mutex_lock(&w->mu);
    const bool idle = !w->first.head && !w->rows.head;
    pthread_mutex_unlock(&w->mu);
    if (!idle || *done_bytes < LARGE) return;
    xpl_heap_trim(LARGE / 4);
    *done_bytes = 0;
}

// The task is written, or will not be.
static void end_task(struct xpl_store_writer *w) {
    pthread_mutex_lock(&w->mu);
    w->running = NONE;
    if (w->flushing) pthread_cond_broadcast(&w->flushed);
    pthread_mutex_unlock(&w->mu);
}

// A database that is new, or has become ours to write, gets the tables of sessions and hosts.
static void write_catalogue(struct xpl_store_writer *w) {
    struct xpl_store_stats st;
    xpl_store_get_stats(w->o.store, &st);
    if (st.role != XPL_STORE_WRITER || st.catalogue_known) return;
    pthread_mutex_lock(&w->mu);
    struct xpl_snapshot *newest = w->newest ? xpl_snapshot_ref(w->newest) : NULL;
    pthread_mutex_unlock(&w->mu);
    // A failed write is tried again with the next write.
    if (newest && put_catalogue(w, newest, NULL) != XPL_OK) log_notices(w);
    xpl_snapshot_unref(newest);
}

// A task, or a list of rows.
static void run_next(struct xpl_store_writer *w, struct task *t, size_t *done_bytes) {
    for (const struct task *r = t; r; r = t->kind == ROWS ? r->next : NULL)
        *done_bytes += task_bytes(r);
    if (t->kind == ROWS) {
        run_rows(w, t);
    } else {
        if (!w->abandon && run_task(w, t)) return;
        if (t->kind == PRODUCT && t->product.rows && t->identified)
            queue_rows(w, t);
        else
            task_free(t);
    }
    trim(w, done_bytes);
}

static void *writer_main(void *arg) {
    struct xpl_store_writer *w = arg;
    uint64_t maintained = xpl_clock_ns();
    size_t done_bytes = 0;
    // Requests have precedence.
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    xpl_identity_preload(w->o.identity);
    for (bool stop = false; !stop;) {
        struct task *t = next_task(w, &stop);
        if (t) run_next(w, t, &done_bytes);
        if (t) end_task(w);
        // Right after a hash, so that they are not in doubt for long.
        if (xpl_identity_is_unsaved(w->o.identity)) xpl_identity_save(w->o.identity);
        log_notices(w);
        const bool writing = xpl_store_role(w->o.store) == XPL_STORE_WRITER;
        const uint64_t every_s = writing ? MAINTAIN_S : RETRY_S;
        if (!stop && xpl_clock_ns() - maintained > every_s * 1000000000u) {
            maintain(w);
            maintained = xpl_clock_ns();
        }
        if (!stop) write_catalogue(w);
        if (writing && !stop) write_kept(w);
    }
    return NULL;
}

// Ids that others have learnt are saved soon.
static void wake(void *arg) {
    struct xpl_store_writer *w = arg;
    pthread_mutex_lock(&w->mu);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->mu);
}

struct xpl_store_writer *xpl_store_writer_new(const struct xpl_store_writer_options *o) {
    struct xpl_store_writer *w = xpl_sys_alloc(sizeof *w);
    if (!w) return NULL;
    *w = (struct xpl_store_writer){.o = *o, .running = NONE};
    w->first = (struct queue){.tail = &w->first.head, .oldest = NONE};
    w->rows = (struct queue){.tail = &w->rows.head, .oldest = NONE};
    w->away = (struct queue){.tail = &w->away.head, .oldest = NONE};
    pthread_mutex_init(&w->mu, NULL);
    xpl_cond_init(&w->work);
    xpl_cond_init(&w->room);
    xpl_cond_init(&w->flushed);
    xpl_identity_set_notify(o->identity, wake, w);
    if (pthread_create(&w->thread, NULL, writer_main, w) == 0) return w;
    xpl_identity_set_notify(o->identity, NULL, NULL);
    xpl_sys_free(w);
    return NULL;
}

void xpl_store_writer_set_busy(struct xpl_store_writer *w, bool (*busy)(void *arg), void *arg) {
    pthread_mutex_lock(&w->mu);
    w->o.busy = busy;
    w->o.arg = arg;
    pthread_mutex_unlock(&w->mu);
}

void xpl_store_writer_free(struct xpl_store_writer *w, uint64_t drain_ms) {
    if (!w) return;
    xpl_identity_set_notify(w->o.identity, NULL, NULL);
    pthread_mutex_lock(&w->mu);
    w->stop = true;
    w->stop_at_ns = xpl_clock_ns() + drain_ms * 1000000u;
    w->rows_end_ns =
        xpl_clock_ns() + (drain_ms < ROWS_AT_STOP_MS ? drain_ms : ROWS_AT_STOP_MS) * 1000000u;
    pthread_cond_signal(&w->work);
    pthread_cond_broadcast(&w->room);
    pthread_cond_broadcast(&w->flushed);
    pthread_mutex_unlock(&w->mu);
    pthread_join(w->thread, NULL);
    drop_kept(w);
    xpl_snapshot_unref(w->newest);
    pthread_mutex_destroy(&w->mu);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->room);
    pthread_cond_destroy(&w->flushed);
    xpl_sys_free(w);
}

static bool copy_key(struct task *t, const struct xpl_store_writer_key *k) {
    const size_t n = k->n_hosts;
    xpl_str_t *names = k->names_shown ? xpl_arena_array(&t->arena, n, sizeof *names) : NULL;
    t->profiles = xpl_arena_array(&t->arena, n, sizeof *t->profiles);
    t->files = xpl_arena_array(&t->arena, n, sizeof *t->files);
    t->hosts = xpl_arena_array(&t->arena, n, sizeof *t->hosts);
    t->key = (struct xpl_store_key){.kind = k->kind,
                                    .version = k->version,
                                    .profiles = t->profiles,
                                    .hosts = names,
                                    .n_profiles = n};
    if (!t->profiles || !t->files || !t->hosts || (k->names_shown && !names) ||
        !xpl_arena_str(&t->arena, k->name, &t->key.name) ||
        !xpl_arena_str(&t->arena, k->options, &t->key.options))
        return false;
    for (size_t i = 0; i < n; i++) {
        t->hosts[i] = k->hosts[i];
        t->files[i] = k->files ? k->files[i] : k->hosts[i]->fingerprint;
        if (names) names[i] = k->hosts[i]->name; // the snapshot's
    }
    t->snapshot = xpl_snapshot_ref(k->snapshot);
    return true;
}

static struct task *task_new(void) {
    struct task *t = xpl_sys_alloc(sizeof *t);
    if (!t) return NULL;
    *t = (struct task){0};
    xpl_arena_init(&t->arena, (size_t)64 << 20);
    return t;
}

// Queues t, or drops it when the queue is full, and stays so for `wait_ms`.
static void push(struct xpl_store_writer *w, struct task *t, uint64_t wait_ms) {
    struct queue *const q = t->kind == ROWS ? &w->rows : &w->first;
    t->queued_ns = xpl_clock_ns();
    const uint64_t until = t->queued_ns + wait_ms * 1000000u;
    pthread_mutex_lock(&w->mu);
    w->waiting++;
    pthread_cond_signal(&w->work); // the writer does not wait for a quiet moment then
    while (wait_ms && !w->stop && !has_room(q, t))
        if (!xpl_cond_wait_until(&w->room, &w->mu, until)) break;
    w->waiting--;
    const bool room = !w->stop && has_room(q, t);
    if (room)
        enqueue(w, q, t);
    else
        w->stats.dropped++;
    pthread_mutex_unlock(&w->mu);
    if (!room) task_free(t);
}

static void submit(struct xpl_store_writer *w, struct task *t, uint64_t wait_ms) {
    if (t->kind != ROWS && is_away(w))
        keep_for_later(w, t);
    else
        push(w, t, wait_ms);
}

// NULL when nothing is to be written, or without memory.
static struct task *task_for(struct xpl_store_writer *w, enum task_kind kind,
                             const struct xpl_store_writer_key *key, xpl_bytes_t meta) {
    if (xpl_store_role(w->o.store) != XPL_STORE_WRITER && (kind == ROWS || !is_away(w)))
        return NULL;
    struct task *t = task_new();
    if (!t) return NULL;
    xpl_str_t meta_copy = {0};
    if (!copy_key(t, key) ||
        !xpl_arena_str(&t->arena, (xpl_str_t){(const char *)meta.ptr, meta.len}, &meta_copy)) {
        task_free(t);
        return NULL;
    }
    t->kind = kind;
    t->meta = (xpl_bytes_t){(const uint8_t *)meta_copy.ptr, meta_copy.len};
    return t;
}

static void put_product(struct xpl_store_writer *w, enum task_kind kind,
                        const struct xpl_store_writer_key *key,
                        const struct xpl_store_writer_product *p, uint64_t wait_ms) {
    struct task *t = task_for(w, kind, key, (xpl_bytes_t){0});
    if (!t) return;
    t->product = *p;
    xpl_object_ref(p->owner);
    submit(w, t, wait_ms);
}

void xpl_store_writer_put_product(struct xpl_store_writer *w,
                                  const struct xpl_store_writer_key *key,
                                  const struct xpl_store_writer_product *p) {
    put_product(w, PRODUCT, key, p, WAIT_MS);
}

void xpl_store_writer_put_rows(struct xpl_store_writer *w, const struct xpl_store_writer_key *key,
                               const struct xpl_store_writer_product *p) {
    put_product(w, ROWS, key, p, 0);
}

void xpl_store_writer_put_bytes(struct xpl_store_writer *w, const struct xpl_store_writer_key *key,
                                struct xpl_object *owner, xpl_bytes_t data, xpl_bytes_t meta) {
    struct task *t = task_for(w, ANSWER, key, meta);
    if (!t) return;
    t->product.owner = owner;
    t->data = data;
    xpl_object_ref(owner);
    submit(w, t, 0);
}

void xpl_store_writer_put_catalogue(struct xpl_store_writer *w, struct xpl_snapshot *snapshot) {
    pthread_mutex_lock(&w->mu);
    struct xpl_snapshot *const before = w->newest;
    w->newest = xpl_snapshot_ref(snapshot);
    pthread_mutex_unlock(&w->mu);
    xpl_snapshot_unref(before);
    if (xpl_store_role(w->o.store) != XPL_STORE_WRITER) return;
    struct task *t = task_new();
    if (!t) return;
    t->kind = CATALOGUE;
    t->snapshot = xpl_snapshot_ref(snapshot);
    push(w, t, 0);
}

static bool is_pending(const struct xpl_store_writer *w, uint64_t number) {
    return w->running <= number || w->first.oldest <= number || w->rows.oldest <= number;
}

void xpl_store_writer_flush(struct xpl_store_writer *w, uint64_t wait_ms) {
    const uint64_t until = xpl_clock_ns() + wait_ms * 1000000u;
    pthread_mutex_lock(&w->mu);
    const uint64_t number = w->numbers;
    w->flushing++;
    if (w->flush_to < number) w->flush_to = number;
    pthread_cond_signal(&w->work);
    while (!w->stop && is_pending(w, number))
        if (!xpl_cond_wait_until(&w->flushed, &w->mu, until)) break;
    if (!--w->flushing) w->flush_to = 0;
    pthread_mutex_unlock(&w->mu);
}

void xpl_store_writer_get_stats(struct xpl_store_writer *w, struct xpl_store_writer_stats *ret) {
    pthread_mutex_lock(&w->mu);
    *ret = w->stats;
    pthread_mutex_unlock(&w->mu);
}
