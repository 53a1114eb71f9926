#include "server/engine/writer.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "analysis/opstats/codec/codec.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/engine/opstats_rows.h"

enum { MAX_QUEUED = 4096, MAINTAIN_S = 30, GONE_S = 7 * 86400, WAIT_MS = 5000, NICE = 5 };
enum { ROWS_AT_STOP_MS = 500, LARGE = 64 << 20 };

// What a queue may keep alive; one task may always wait.  Answers may go over it by as much again:
// their makers do not wait.
#define MAX_BYTES ((size_t)128 << 20)

enum task_kind { PRODUCT, ROWS, ANSWER, CATALOGUE };

struct task {
    struct task *next;
    enum task_kind kind;
    struct xpl_store_key key;
    struct xpl_object *owner;
    const struct xpl_opstats *stats; // PRODUCT, ROWS: or NULL, and `data` is them encoded
    bool rows;                       // PRODUCT: its rows are wanted, too
    xpl_bytes_t data, meta;
    struct xpl_snapshot *snapshot; // CATALOGUE
    struct xpl_arena arena;        // the key's parts and `meta`
};

struct queue {
    struct task *head, **tail;
    size_t n, bytes;
};

struct xpl_store_writer {
    struct xpl_store *store;
    uint32_t version;
    pthread_mutex_t mu;
    pthread_cond_t work, room;
    struct queue first, rows; // rows have time
    struct xpl_store_writer_stats stats;
    bool stop, abandon;
    uint64_t stop_at_ns, rows_end_ns;
    pthread_t thread;
};

static size_t task_bytes(const struct task *t) {
    return sizeof *t + t->arena.reserved + (t->owner ? t->owner->bytes : 0);
}

static void task_free(struct task *t) {
    xpl_object_unref(t->owner);
    xpl_snapshot_unref(t->snapshot);
    xpl_arena_fini(&t->arena);
    xpl_sys_free(t);
}

static xpl_status_t write_product(struct xpl_store_writer *w, const struct task *t,
                                  struct xpl_error *err) {
    if (!t->stats) return xpl_store_put(w->store, &t->key, t->data, t->meta, err);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bytes;
    xpl_buf_init(&bytes, XPL_STORE_MAX_RESULT);
    XPL_TRY(xpl_opstats_encode(t->stats, &bytes, err));
    return xpl_store_put(w->store, &t->key, (xpl_bytes_t){bytes.p, bytes.n}, t->meta, err);
}

static xpl_status_t write_rows(struct xpl_store_writer *w, const struct task *t,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, (size_t)1 << 30);
    const struct xpl_opstats *stats = t->stats;
    struct xpl_opstats *decoded = NULL;
    if (!stats) {
        XPL_TRY(xpl_opstats_decode(t->data, &arena, &decoded, err));
        stats = decoded;
    }
    struct xpl_rows rows;
    XPL_TRY(xpl_rows_from_opstats(stats, &arena, &rows, err));
    return xpl_store_put_rows(w->store, &t->key.files[0], w->version, &rows, err);
}

static xpl_status_t write_task(struct xpl_store_writer *w, const struct task *t,
                               struct xpl_error *err) {
    switch (t->kind) {
        case PRODUCT: return write_product(w, t, err);
        case ROWS: return write_rows(w, t, err);
        case CATALOGUE: return xpl_store_put_catalogue(w->store, t->snapshot, err);
        case ANSWER:
        default: return xpl_store_put(w->store, &t->key, t->data, t->meta, err);
    }
}

static void run_task(struct xpl_store_writer *w, struct task *t) {
    struct xpl_error err = {0};
    const xpl_status_t st = write_task(w, t, &err);
    pthread_mutex_lock(&w->mu);
    const bool news = st != XPL_OK && strcmp(w->stats.error, err.msg) != 0;
    if (st == XPL_OK) {
        w->stats.writes++;
    } else {
        w->stats.failed++;
        (void)snprintf(w->stats.error, sizeof w->stats.error, "%s", err.msg);
    }
    pthread_mutex_unlock(&w->mu);
    // The same trouble over and over (a full disk) is said once.
    if (news) xpl_log(XPL_LOG_WARN, "store", "not stored: %s", err.msg);
}

static void log_notices(struct xpl_store_writer *w) {
    char text[512];
    while (xpl_store_next_notice(w->store, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "store", "%s", text);
}

static void maintain(struct xpl_store_writer *w) {
    struct xpl_error err = {0};
    bool more = true;
    while (more) {
        if (xpl_store_maintain(w->store, w->version, GONE_S, &more, &err) != XPL_OK) break;
        pthread_mutex_lock(&w->mu);
        if (w->first.head || w->rows.head || w->stop) more = false;
        pthread_mutex_unlock(&w->mu);
    }
}

// ---- queues; the mutex is held ----

static void enqueue(struct xpl_store_writer *w, struct queue *q, struct task *t) {
    t->next = NULL;
    *q->tail = t;
    q->tail = &t->next;
    q->n++;
    q->bytes += task_bytes(t);
    w->stats.queued++;
    pthread_cond_signal(&w->work);
}

static struct task *dequeue(struct xpl_store_writer *w, struct queue *q) {
    struct task *const t = q->head;
    if (!t) return NULL;
    q->head = t->next;
    if (!q->head) q->tail = &q->head;
    q->n--;
    q->bytes -= task_bytes(t);
    w->stats.queued--;
    pthread_cond_broadcast(&w->room);
    return t;
}

static bool has_room(const struct queue *q, const struct task *t) {
    const size_t more = t->kind == ANSWER ? 2 : 1;
    return q->n < MAX_QUEUED * more && (!q->head || q->bytes + task_bytes(t) <= MAX_BYTES * more);
}

// The next task, or NULL: nothing came for MAINTAIN_S, or the end.
static struct task *next_task(struct xpl_store_writer *w, bool *ret_stop) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += MAINTAIN_S;
    pthread_mutex_lock(&w->mu);
    while (!w->first.head && !w->rows.head && !w->stop)
        if (pthread_cond_timedwait(&w->work, &w->mu, &until) != 0) break;
    struct task *t = dequeue(w, &w->first);
    if (!t) t = dequeue(w, &w->rows);
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
    (void)malloc_trim(0);
    *done_bytes = 0;
}

static void *writer_main(void *arg) {
    struct xpl_store_writer *w = arg;
    uint64_t maintained = xpl_clock_ns();
    size_t done_bytes = 0;
    // Who waits for an answer comes first.
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    for (bool stop = false; !stop;) {
        struct task *t = next_task(w, &stop);
        if (t) {
            done_bytes += task_bytes(t);
            if (!w->abandon) run_task(w, t);
            if (t->kind == PRODUCT && t->rows)
                queue_rows(w, t);
            else
                task_free(t);
            trim(w, &done_bytes);
        }
        log_notices(w);
        if (!stop && xpl_clock_ns() - maintained > (uint64_t)MAINTAIN_S * 1000000000u) {
            maintain(w);
            maintained = xpl_clock_ns();
        }
    }
    return NULL;
}

struct xpl_store_writer *xpl_store_writer_new(struct xpl_store *store, uint32_t analysis_version) {
    struct xpl_store_writer *w = xpl_sys_alloc(sizeof *w);
    if (!w) return NULL;
    *w = (struct xpl_store_writer){.store = store, .version = analysis_version};
    w->first.tail = &w->first.head;
    w->rows.tail = &w->rows.head;
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->work, NULL);
    pthread_cond_init(&w->room, NULL);
    if (pthread_create(&w->thread, NULL, writer_main, w) == 0) return w;
    xpl_sys_free(w);
    return NULL;
}

void xpl_store_writer_free(struct xpl_store_writer *w, uint64_t drain_ms) {
    if (!w) return;
    pthread_mutex_lock(&w->mu);
    w->stop = true;
    w->stop_at_ns = xpl_clock_ns() + drain_ms * 1000000u;
    w->rows_end_ns =
        xpl_clock_ns() + (drain_ms < ROWS_AT_STOP_MS ? drain_ms : ROWS_AT_STOP_MS) * 1000000u;
    pthread_cond_signal(&w->work);
    pthread_cond_broadcast(&w->room);
    pthread_mutex_unlock(&w->mu);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->mu);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->room);
    xpl_sys_free(w);
}

static bool copy_key(struct task *t, const struct xpl_store_writer_key *k, uint32_t version) {
    struct xpl_fingerprint *files = xpl_arena_array(&t->arena, k->n_files, sizeof *files);
    xpl_str_t *hosts = k->hosts ? xpl_arena_array(&t->arena, k->n_files, sizeof *hosts) : NULL;
    t->key = (struct xpl_store_key){
        .kind = k->kind, .version = version, .files = files, .hosts = hosts, .n_files = k->n_files};
    if (!files || (k->hosts && !hosts) || !xpl_arena_str(&t->arena, k->name, &t->key.name) ||
        !xpl_arena_str(&t->arena, k->options, &t->key.options))
        return false;
    for (size_t i = 0; i < k->n_files; i++) {
        files[i] = k->files[i];
        if (hosts && !xpl_arena_str(&t->arena, k->hosts[i], &hosts[i])) return false;
    }
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
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(wait_ms / 1000);
    pthread_mutex_lock(&w->mu);
    while (wait_ms && !w->stop && !has_room(q, t))
        if (pthread_cond_timedwait(&w->room, &w->mu, &until) != 0) break;
    const bool room = !w->stop && has_room(q, t);
    if (room)
        enqueue(w, q, t);
    else
        w->stats.dropped++;
    pthread_mutex_unlock(&w->mu);
    if (!room) task_free(t);
}

// NULL when nothing is to be written, or without memory.
static struct task *task_for(struct xpl_store_writer *w, enum task_kind kind,
                             const struct xpl_store_writer_key *key, struct xpl_object *owner,
                             xpl_bytes_t data, xpl_bytes_t meta) {
    if (xpl_store_role(w->store) != XPL_STORE_WRITER) return NULL;
    struct task *t = task_new();
    if (!t) return NULL;
    xpl_str_t meta_copy = {0};
    if (!copy_key(t, key, w->version) ||
        !xpl_arena_str(&t->arena, (xpl_str_t){(const char *)meta.ptr, meta.len}, &meta_copy)) {
        task_free(t);
        return NULL;
    }
    xpl_object_ref(owner);
    t->kind = kind;
    t->owner = owner;
    t->data = data;
    t->meta = (xpl_bytes_t){(const uint8_t *)meta_copy.ptr, meta_copy.len};
    return t;
}

void xpl_store_writer_put_opstats(struct xpl_store_writer *w,
                                  const struct xpl_store_writer_key *key, struct xpl_object *owner,
                                  const struct xpl_opstats *stats, xpl_bytes_t encoded, bool rows) {
    struct task *t = task_for(w, PRODUCT, key, owner, encoded, (xpl_bytes_t){0});
    if (!t) return;
    t->stats = stats;
    t->rows = rows;
    push(w, t, WAIT_MS);
}

void xpl_store_writer_put_rows(struct xpl_store_writer *w, const struct xpl_store_writer_key *key,
                               struct xpl_object *owner, const struct xpl_opstats *stats,
                               xpl_bytes_t encoded) {
    struct task *t = task_for(w, ROWS, key, owner, encoded, (xpl_bytes_t){0});
    if (!t) return;
    t->stats = stats;
    push(w, t, 0);
}

void xpl_store_writer_put_bytes(struct xpl_store_writer *w, const struct xpl_store_writer_key *key,
                                struct xpl_object *owner, xpl_bytes_t data, xpl_bytes_t meta) {
    struct task *t = task_for(w, ANSWER, key, owner, data, meta);
    if (t) push(w, t, 0);
}

void xpl_store_writer_put_catalogue(struct xpl_store_writer *w, struct xpl_snapshot *snapshot) {
    if (xpl_store_role(w->store) != XPL_STORE_WRITER) return;
    struct task *t = task_new();
    if (!t) return;
    t->kind = CATALOGUE;
    t->snapshot = xpl_snapshot_ref(snapshot);
    push(w, t, 0);
}

void xpl_store_writer_get_stats(struct xpl_store_writer *w, struct xpl_store_writer_stats *ret) {
    pthread_mutex_lock(&w->mu);
    *ret = w->stats;
    pthread_mutex_unlock(&w->mu);
}
