// SPDX-License-Identifier: Apache-2.0
#include "server/engine/index_files.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/log.h"
#include "storage/places.h"
#include "storage/sessions/identity.h"
#include "storage/store/files.h"

#define QUEUE_BYTES ((size_t)256 << 20)  // of products that wait to be written
#define DRAIN_NS    UINT64_C(3000000000) // of hashing, when the daemon stops

struct queued {
    struct queued *next;
    struct xpl_index_file_save save;
};

struct xpl_index_files {
    struct xpl_store_files *files; // NULL: none can be kept
    struct xpl_identity *identity;
    pthread_mutex_t mu;    // protects the queue
    pthread_cond_t change; // of the queue
    struct queued *head, **tail;
    size_t queued_bytes;
    bool writing, stop, has_thread;
    atomic_ullong hash_until_ns; // xpl_clock_ns(); 0: no end
    pthread_t thread;
};

static struct xpl_store_file_key file_key(const struct xpl_index_file_key *k) {
    return (struct xpl_store_file_key){
        .profile = *k->profile,
        .kind = k->product->name,
        .version = k->product->version,
        .variant = (uint16_t)k->variant,
        .import = k->format ? (uint16_t)k->format->version : 0,
    };
}

// ---- writing ----

static bool saver_is_stopping(void *arg) {
    const uint64_t until = atomic_load(&((const struct xpl_index_files *)arg)->hash_until_ns);
    return until && xpl_clock_ns() > until;
}

static bool write_file(struct xpl_index_files *f, const struct xpl_index_file_save *s) {
    const struct xpl_product_handle *const h = s->handle;
    struct xpl_error err = {0};
    struct xpl_profile_id id;
    xpl_status_t st = XPL_OK;
    if (!xpl_identity_lookup(f->identity, &h->fingerprint, &id)) {
        if (!h->profile) return false;
        st = xpl_identity_hash(f->identity, h->profile, saver_is_stopping, f, &id, &err);
        // The profile is another one by now, or the daemon stops.
        if (st == XPL_ABORTED || st == XPL_CANCELLED) return false;
    }
    if (st == XPL_OK) {
        const struct xpl_store_file_key key =
            file_key(&(struct xpl_index_file_key){&id, h->product, h->variant, h->format});
        st = xpl_store_files_put(f->files, &key, h->product->encoded(h->value), &err);
    }
    if (st != XPL_OK)
        xpl_log(XPL_LOG_WARN, "products", "%s is not kept: %s", h->product->name, err.msg);
    return st == XPL_OK;
}

static size_t save_bytes(const struct xpl_index_file_save *s) {
    return s->handle->product->encoded(s->handle->value).len;
}

static void *saver_main(void *arg) {
    struct xpl_index_files *const f = arg;
    pthread_mutex_lock(&f->mu);
    while (f->head || !f->stop) {
        struct queued *const q = f->head;
        if (!q) {
            pthread_cond_wait(&f->change, &f->mu);
            continue;
        }
        f->head = q->next;
        if (!f->head) f->tail = &f->head;
        f->writing = true;
        pthread_mutex_unlock(&f->mu);
        const size_t bytes = save_bytes(&q->save);
        const bool ok = write_file(f, &q->save);
        q->save.done(q->save.manager, q->save.build, ok);
        xpl_object_unref(&q->save.handle->object);
        xpl_sys_free(q);
        pthread_mutex_lock(&f->mu);
        f->queued_bytes -= bytes;
        f->writing = false;
        pthread_cond_broadcast(&f->change);
    }
    pthread_mutex_unlock(&f->mu);
    return NULL;
}

bool xpl_index_files_save(struct xpl_index_files *f, const struct xpl_index_file_save *s) {
    const size_t bytes = save_bytes(s);
    struct queued *const q = xpl_sys_alloc(sizeof *q);
    if (!q) return false;
    *q = (struct queued){.save = *s};
    xpl_object_ref(&s->handle->object);
    pthread_mutex_lock(&f->mu);
    const bool room = f->queued_bytes == 0 || f->queued_bytes + bytes <= QUEUE_BYTES;
    if (room) {
        *f->tail = q;
        f->tail = &q->next;
        f->queued_bytes += bytes;
        pthread_cond_broadcast(&f->change);
    }
    pthread_mutex_unlock(&f->mu);
    if (room) return true;
    xpl_object_unref(&s->handle->object);
    xpl_sys_free(q);
    return false;
}

void xpl_index_files_drain(struct xpl_index_files *f) {
    atomic_store(&f->hash_until_ns, xpl_clock_ns() + DRAIN_NS);
    pthread_mutex_lock(&f->mu);
    while (f->head || f->writing)
        pthread_cond_wait(&f->change, &f->mu);
    pthread_mutex_unlock(&f->mu);
}

// ---- reading ----

xpl_status_t xpl_index_files_open(struct xpl_index_files *f, const struct xpl_index_file_key *k,
                                  struct xpl_source **ret) {
    const struct xpl_store_file_key key = file_key(k);
    return f->files ? xpl_store_files_open(f->files, &key, ret, NULL) : XPL_NOT_FOUND;
}

void xpl_index_files_remove(struct xpl_index_files *f, const struct xpl_index_file_key *k) {
    const struct xpl_store_file_key key = file_key(k);
    if (f->files) xpl_store_files_remove(f->files, &key);
}

// ---- life ----

bool xpl_index_files_enabled(const struct xpl_index_files *f) {
    return f->files != NULL;
}

struct xpl_index_files *xpl_index_files_new(const char *dir, uint64_t limit_bytes,
                                            struct xpl_identity *identity) {
    struct xpl_index_files *const f = xpl_sys_alloc(sizeof *f);
    if (!f) return NULL;
    char path[PATH_MAX];
    *f = (struct xpl_index_files){.identity = identity};
    f->tail = &f->head;
    pthread_mutex_init(&f->mu, NULL);
    pthread_cond_init(&f->change, NULL);
    if (!dir || !dir[0] || !xpl_place_join(dir, XPL_STR("traces"), path, sizeof path) ||
        xpl_store_files_new(path, limit_bytes, &f->files, NULL) != XPL_OK)
        return f;
    f->has_thread = pthread_create(&f->thread, NULL, saver_main, f) == 0;
    if (f->has_thread) return f;
    xpl_store_files_free(f->files);
    f->files = NULL;
    return f;
}

void xpl_index_files_free(struct xpl_index_files *f) {
    if (!f) return;
    pthread_mutex_lock(&f->mu);
    f->stop = true;
    pthread_cond_broadcast(&f->change);
    pthread_mutex_unlock(&f->mu);
    if (f->has_thread) pthread_join(f->thread, NULL);
    pthread_mutex_destroy(&f->mu);
    pthread_cond_destroy(&f->change);
    xpl_store_files_free(f->files);
    xpl_sys_free(f);
}
