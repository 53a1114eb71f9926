#include "server/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analysis/opstats/codec.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "server/rows.h"

enum { MAX_QUEUED = 4096, MAINTAIN_S = 30, GONE_S = 7 * 86400 };

#define MAX_BYTES ((size_t)256 << 20) // that the queue may keep alive; one task may always wait

struct task {
    struct task *next;
    struct xpl_store_key key;
    struct xpl_object *owner;
    const struct xpl_opstats *stats; // a host's OpStats, or
    bool rows;                       // with its rows
    xpl_bytes_t data, meta;          // an answer, or
    struct xpl_snapshot *snapshot;   // the catalogue
    struct xpl_arena arena;          // the key's parts and `meta`
};

struct xpl_writer {
    struct xpl_store *store;
    uint32_t version;
    pthread_mutex_t mu;
    pthread_cond_t work;
    struct task *head, **tail;
    size_t bytes; // of what is queued
    struct xpl_writer_stats stats;
    bool stop, abandon;
    uint64_t stop_at_ns;
    pthread_t thread;
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t task_bytes(const struct task *t) {
    return sizeof *t + t->arena.reserved + (t->owner ? t->owner->bytes : 0);
}

static void task_free(struct task *t) {
    xpl_object_unref(t->owner);
    xpl_snapshot_unref(t->snapshot);
    xpl_arena_fini(&t->arena);
    xpl_sys_free(t);
}

static xpl_status_t write_opstats(struct xpl_writer *w, const struct task *t,
                                  struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bytes;
    xpl_arena_init(&arena, (size_t)1 << 30);
    xpl_buf_init(&bytes, XPL_STORE_MAX_RESULT);
    struct xpl_rows rows;
    XPL_TRY(xpl_opstats_encode(t->stats, &bytes, err));
    if (!t->rows)
        return xpl_store_put(w->store, &t->key, (xpl_bytes_t){bytes.p, bytes.n}, t->meta, err);
    XPL_TRY(xpl_rows_from_opstats(t->stats, &arena, &rows, err));
    XPL_TRY(xpl_store_begin(w->store, err));
    xpl_status_t st =
        xpl_store_put(w->store, &t->key, (xpl_bytes_t){bytes.p, bytes.n}, t->meta, err);
    if (st == XPL_OK) st = xpl_store_put_rows(w->store, &t->key.files[0], w->version, &rows, err);
    if (st == XPL_OK) return xpl_store_commit(w->store, err);
    xpl_store_rollback(w->store);
    return st;
}

static void run_task(struct xpl_writer *w, struct task *t) {
    struct xpl_error err = {0};
    xpl_status_t st;
    if (t->snapshot)
        st = xpl_store_put_catalogue(w->store, t->snapshot, &err);
    else if (t->stats)
        st = write_opstats(w, t, &err);
    else
        st = xpl_store_put(w->store, &t->key, t->data, t->meta, &err);
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

static void log_notices(struct xpl_writer *w) {
    char text[512];
    while (xpl_store_next_notice(w->store, text, sizeof text))
        xpl_log(XPL_LOG_WARN, "store", "%s", text);
}

static void maintain(struct xpl_writer *w) {
    struct xpl_error err = {0};
    bool more = true;
    while (more) {
        if (xpl_store_maintain(w->store, w->version, GONE_S, &more, &err) != XPL_OK) break;
        pthread_mutex_lock(&w->mu);
        if (w->head || w->stop) more = false;
        pthread_mutex_unlock(&w->mu);
    }
}

// The next task, or NULL: nothing came for MAINTAIN_S, or the end.
static struct task *next_task(struct xpl_writer *w, bool *ret_stop) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += MAINTAIN_S;
    pthread_mutex_lock(&w->mu);
    while (!w->head && !w->stop)
        if (pthread_cond_timedwait(&w->work, &w->mu, &until) != 0) break;
    struct task *t = w->head;
    if (t) {
        w->head = t->next;
        if (!w->head) w->tail = &w->head;
        w->stats.queued--;
        w->bytes -= task_bytes(t);
    }
    *ret_stop = w->stop && !t;
    if (t && w->stop && now_ns() > w->stop_at_ns) w->abandon = true;
    pthread_mutex_unlock(&w->mu);
    return t;
}

static void *writer_main(void *arg) {
    struct xpl_writer *w = arg;
    uint64_t maintained = now_ns();
    for (bool stop = false; !stop;) {
        struct task *t = next_task(w, &stop);
        if (t) {
            if (!w->abandon) run_task(w, t);
            task_free(t);
        }
        log_notices(w);
        if (!stop && now_ns() - maintained > (uint64_t)MAINTAIN_S * 1000000000u) {
            maintain(w);
            maintained = now_ns();
        }
    }
    return NULL;
}

struct xpl_writer *xpl_writer_new(struct xpl_store *store, uint32_t analysis_version) {
    struct xpl_writer *w = xpl_sys_alloc(sizeof *w);
    if (!w) return NULL;
    *w = (struct xpl_writer){.store = store, .version = analysis_version};
    w->tail = &w->head;
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->work, NULL);
    if (pthread_create(&w->thread, NULL, writer_main, w) == 0) return w;
    xpl_sys_free(w);
    return NULL;
}

void xpl_writer_free(struct xpl_writer *w, uint64_t drain_ms) {
    if (!w) return;
    pthread_mutex_lock(&w->mu);
    w->stop = true;
    w->stop_at_ns = now_ns() + drain_ms * 1000000u;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->mu);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->mu);
    pthread_cond_destroy(&w->work);
    xpl_sys_free(w);
}

static bool copy_key(struct task *t, const struct xpl_writer_key *k, uint32_t version) {
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

// Queues t, or drops it when the queue is full.
static void push(struct xpl_writer *w, struct task *t) {
    pthread_mutex_lock(&w->mu);
    const bool room = !w->stop && w->stats.queued < MAX_QUEUED &&
                      (!w->head || w->bytes + task_bytes(t) <= MAX_BYTES);
    if (room) {
        *w->tail = t;
        w->tail = &t->next;
        w->stats.queued++;
        w->bytes += task_bytes(t);
        pthread_cond_signal(&w->work);
    } else {
        w->stats.dropped++;
    }
    pthread_mutex_unlock(&w->mu);
    if (!room) task_free(t);
}

static void put(struct xpl_writer *w, const struct xpl_writer_key *key, struct xpl_object *owner,
                const struct xpl_opstats *stats, bool rows, xpl_bytes_t data, xpl_bytes_t meta) {
    if (xpl_store_role(w->store) != XPL_STORE_WRITER) return;
    struct task *t = task_new();
    if (!t) return;
    xpl_str_t meta_copy = {0};
    if (!copy_key(t, key, w->version) ||
        !xpl_arena_str(&t->arena, (xpl_str_t){(const char *)meta.ptr, meta.len}, &meta_copy)) {
        task_free(t);
        return;
    }
    xpl_object_ref(owner);
    t->owner = owner;
    t->stats = stats;
    t->rows = rows;
    t->data = data;
    t->meta = (xpl_bytes_t){(const uint8_t *)meta_copy.ptr, meta_copy.len};
    push(w, t);
}

void xpl_writer_put_opstats(struct xpl_writer *w, const struct xpl_writer_key *key,
                            struct xpl_object *owner, const struct xpl_opstats *stats, bool rows) {
    put(w, key, owner, stats, rows, (xpl_bytes_t){0}, (xpl_bytes_t){0});
}

void xpl_writer_put_bytes(struct xpl_writer *w, const struct xpl_writer_key *key,
                          struct xpl_object *owner, xpl_bytes_t data, xpl_bytes_t meta) {
    put(w, key, owner, NULL, false, data, meta);
}

void xpl_writer_put_catalogue(struct xpl_writer *w, struct xpl_snapshot *snapshot) {
    if (xpl_store_role(w->store) != XPL_STORE_WRITER) return;
    struct task *t = task_new();
    if (!t) return;
    t->snapshot = xpl_snapshot_ref(snapshot);
    push(w, t);
}

void xpl_writer_get_stats(struct xpl_writer *w, struct xpl_writer_stats *ret) {
    pthread_mutex_lock(&w->mu);
    *ret = w->stats;
    pthread_mutex_unlock(&w->mu);
}
