// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/identity.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>
#if XPL_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#include "base/arena.h"
#include "base/cond.h"
#include "base/map.h"
#include "base/vec.h"
#include "storage/store/jobs.h"
#include "storage/store/store.h"

// MAX_KNOWN: ids cached in memory; beyond that the cache starts anew and the store is queried.
// PRELOADED: ids that a start caches at most; the rest is room for new files.  CHUNK: hashed
// between two checks for cancellation.  BATCH: files written to or read from the store between two
// locks.
enum { MAX_KNOWN = 65536, PRELOADED = 61440, MAX_UNSAVED = 4096, CHUNK = 4 << 20, BATCH = 64 };

struct file {
    struct xpl_fingerprint fingerprint;
    struct xpl_profile_id id;
};

struct xpl_identity {
    struct xpl_store *store;
    pthread_mutex_t mu;  // protects all that follows
    uint64_t generation; // of the secret that the ids below were made with
    struct xpl_arena arena;
    struct xpl_map by_fingerprint; // to index into `files` + 1
    XPL_VEC(struct file) files;
    struct file *unsaved; // MAX_UNSAVED
    size_t n_unsaved;
    atomic_bool has_unsaved;
    void (*notify)(void *arg);
    void *arg;
};

xpl_status_t xpl_identity_new(struct xpl_store *store, struct xpl_identity **ret,
                              struct xpl_error *err) {
    struct xpl_identity *i = xpl_sys_alloc(sizeof *i);
    if (!i) XPL_RETURN_OOM(err, "profile ids");
    *i = (struct xpl_identity){.store = store};
    pthread_mutex_init(&i->mu, NULL);
    xpl_arena_init(&i->arena, (size_t)64 << 20);
    *ret = i;
    return XPL_OK;
}

void xpl_identity_free(struct xpl_identity *i) {
    if (!i) return;
    pthread_mutex_destroy(&i->mu);
    xpl_arena_fini(&i->arena);
    xpl_sys_free(i->unsaved);
    xpl_sys_free(i);
}

// ---- memory ----

static void forget_all(struct xpl_identity *i) {
    xpl_arena_fini(&i->arena);
    xpl_arena_init(&i->arena, (size_t)64 << 20);
    i->by_fingerprint = (struct xpl_map){0};
    memset(&i->files, 0, sizeof i->files);
}

// Ids are of one secret: those of an older one would find nothing in the store.
static void check_generation(struct xpl_identity *i) {
    xpl_assert_held(&i->mu);
    const uint64_t now = xpl_store_secret_generation(i->store);
    if (i->generation == now) return;
    forget_all(i);
    i->n_unsaved = 0;
    atomic_store(&i->has_unsaved, false);
    i->generation = now;
}

static void fingerprint_keys(const struct xpl_fingerprint *p, uint64_t *k1, uint64_t *k2) {
    *k1 = p->ino ^ (uint64_t)p->ctime_ns * 0x9e3779b97f4a7c15u;
    *k2 = p->dev ^ (uint64_t)p->mtime_ns * 0xbf58476d1ce4e5b9u ^ p->size * 0x94d049bb133111ebu;
}

static struct file *find_file(struct xpl_identity *i, const struct xpl_fingerprint *fingerprint) {
    xpl_assert_held(&i->mu);
    uint64_t k1, k2;
    fingerprint_keys(fingerprint, &k1, &k2);
    const uint64_t *at = xpl_map_get(&i->by_fingerprint, k1, k2);
    if (!at) return NULL;
    struct file *f = &i->files.v[*at - 1];
    return xpl_fingerprint_eq(&f->fingerprint, fingerprint) ? f : NULL;
}

// Without memory the file is only not remembered.
static void add_file(struct xpl_identity *i, const struct xpl_fingerprint *fingerprint,
                     const struct xpl_profile_id *id) {
    xpl_assert_held(&i->mu);
    uint64_t k1, k2;
    if (i->files.n >= MAX_KNOWN) forget_all(i);
    fingerprint_keys(fingerprint, &k1, &k2);
    bool is_new = false;
    uint64_t *at = xpl_map_put(&i->arena, &i->by_fingerprint, k1, k2, &is_new);
    if (!at) {
        forget_all(i);
        return;
    }
    if (is_new || !*at) { // 0: memory ran out between the two
        if (!xpl_vec_push(&i->arena, &i->files)) {
            forget_all(i);
            return;
        }
        *at = i->files.n;
    }
    i->files.v[*at - 1] = (struct file){*fingerprint, *id};
}

static void add_unsaved(struct xpl_identity *i, const struct xpl_fingerprint *fingerprint,
                        const struct xpl_profile_id *id) {
    xpl_assert_held(&i->mu);
    if (!i->unsaved) i->unsaved = xpl_sys_alloc(MAX_UNSAVED * sizeof *i->unsaved);
    if (!i->unsaved || i->n_unsaved == MAX_UNSAVED) return;
    i->unsaved[i->n_unsaved++] = (struct file){*fingerprint, *id};
    atomic_store(&i->has_unsaved, true);
    if (i->notify) i->notify(i->arg);
}

void xpl_identity_set_notify(struct xpl_identity *i, void (*notify)(void *arg), void *arg) {
    pthread_mutex_lock(&i->mu);
    i->notify = notify;
    i->arg = arg;
    pthread_mutex_unlock(&i->mu);
}

// ---- asking ----

bool xpl_identity_lookup(struct xpl_identity *i, const struct xpl_fingerprint *file,
                         struct xpl_profile_id *ret) {
    pthread_mutex_lock(&i->mu);
    check_generation(i);
    const uint64_t generation = i->generation;
    const struct file *f = find_file(i, file);
    if (f) *ret = f->id;
    pthread_mutex_unlock(&i->mu);
    if (f) return true;
    if (!xpl_store_find_file(i->store, file, ret)) return false;
    pthread_mutex_lock(&i->mu);
    check_generation(i);
    if (i->generation == generation) add_file(i, file, ret);
    pthread_mutex_unlock(&i->mu);
    return true;
}

// Looks up many files in memory.  Returns the generation of its secret.
static uint64_t recall_many(struct xpl_identity *i, const struct xpl_fingerprint *const *files,
                            size_t n, struct xpl_profile_id *ret, bool *known) {
    pthread_mutex_lock(&i->mu);
    check_generation(i);
    const uint64_t generation = i->generation;
    for (size_t k = 0; k < n; k++) {
        const struct file *const f = known[k] ? NULL : find_file(i, files[k]);
        if (f) ret[k] = f->id;
        known[k] = known[k] || f;
    }
    pthread_mutex_unlock(&i->mu);
    return generation;
}

bool xpl_identity_recall(struct xpl_identity *i, const struct xpl_fingerprint *file,
                         struct xpl_profile_id *ret) {
    bool known = false;
    (void)recall_many(i, &file, 1, ret, &known);
    return known;
}

void xpl_identity_lookup_many(struct xpl_identity *i, const struct xpl_fingerprint *const *files,
                              size_t n, struct xpl_profile_id *ret, bool *known) {
    const uint64_t generation = recall_many(i, files, n, ret, known);
    xpl_store_find_files(i->store, files, n, ret, known);
    pthread_mutex_lock(&i->mu);
    check_generation(i);
    for (size_t k = 0; i->generation == generation && k < n; k++)
        if (known[k] && !find_file(i, files[k])) add_file(i, files[k], &ret[k]);
    pthread_mutex_unlock(&i->mu);
}

// ---- ids that a start caches ----

struct preload {
    struct xpl_identity *identity;
    uint64_t generation; // of the secret, before the store was read
    struct file files[BATCH];
    size_t n;
};

// False once the ids are keyed by another secret than this process's, or the room is used up.  Ids
// that were cached meanwhile are newer, and stay.
static bool add_batch(struct preload *p) {
    struct xpl_identity *const i = p->identity;
    pthread_mutex_lock(&i->mu);
    check_generation(i);
    bool go_on = i->generation == p->generation;
    for (size_t k = 0; go_on && k < p->n; k++) {
        go_on = i->files.n < PRELOADED;
        if (go_on && !find_file(i, &p->files[k].fingerprint))
            add_file(i, &p->files[k].fingerprint, &p->files[k].id);
    }
    pthread_mutex_unlock(&i->mu);
    p->n = 0;
    return go_on;
}

static bool preload_file(void *arg, const struct xpl_fingerprint *file,
                         const struct xpl_profile_id *profile) {
    struct preload *const p = arg;
    p->files[p->n++] = (struct file){*file, *profile};
    return p->n < BATCH || add_batch(p);
}

void xpl_identity_preload(struct xpl_identity *i) {
    struct preload p = {.identity = i, .generation = xpl_store_secret_generation(i->store)};
    // Ids that could not be read are queried when they are needed.
    (void)xpl_store_list_files(i->store, PRELOADED, preload_file, &p);
    (void)add_batch(&p);
}

bool xpl_identity_must_hash_first(struct xpl_identity *i, uint64_t size) {
    return xpl_store_has_size(i->store, size);
}

void xpl_identity_remember(struct xpl_identity *i, const struct xpl_fingerprint *file,
                           const struct xpl_profile_id *id) {
    pthread_mutex_lock(&i->mu);
    check_generation(i);
    add_file(i, file, id);
    add_unsaved(i, file, id);
    pthread_mutex_unlock(&i->mu);
}

// ---- hashing ----

static void update(XXH3_state_t *state, const uint8_t *p, size_t n) {
#if XPL_XXH_DISPATCH
    (void)XXH3_128bits_update_dispatch(state, p, n);
#else
    (void)XXH3_128bits_update(state, p, n);
#endif
}

// Maps the pages that are read next, at once: a fault for every few costs up to a tenth of the
// time. A hint: without it (a kernel before 5.14) they are mapped one by one.
static void map_pages(const uint8_t *p, size_t n) {
#ifdef MADV_POPULATE_READ
    if (n >= CHUNK) (void)madvise((void *)(uintptr_t)p, n, MADV_POPULATE_READ);
#else
    (void)p, (void)n;
#endif
}

// Straight from the mapping: a copy into a buffer costs more than the page faults do.
static xpl_status_t hash_bytes(xpl_bytes_t bytes, const uint8_t secret[XPL_STORE_SECRET],
                               bool (*cancelled)(void *arg), void *arg, struct xpl_profile_id *ret,
                               struct xpl_error *err) {
    XXH3_state_t *state = XXH3_createState();
    if (!state) XPL_RETURN_OOM(err, "hashing a profile");
    (void)XXH3_128bits_reset_withSecret(state, secret, XPL_STORE_SECRET);
    bool stop = false;
    for (size_t at = 0; at < bytes.len && !stop; at += CHUNK) {
        const size_t n = bytes.len - at < CHUNK ? bytes.len - at : CHUNK;
        map_pages(bytes.ptr + at, n);
        update(state, bytes.ptr + at, n);
        stop = cancelled && cancelled(arg);
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    (void)XXH3_freeState(state);
    if (stop) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(ret->bytes, canonical.digest, sizeof ret->bytes);
    return XPL_OK;
}

xpl_status_t xpl_identity_hash(struct xpl_identity *i, const struct xpl_source *source,
                               bool (*cancelled)(void *arg), void *arg, struct xpl_profile_id *ret,
                               struct xpl_error *err) {
    uint8_t secret[XPL_STORE_SECRET];
    struct xpl_profile_id id;
    const uint64_t generation = xpl_store_get_secret(i->store, secret);
    XPL_TRY(xpl_source_verify(source, err));
    XPL_TRY(hash_bytes(xpl_source_bytes(source), secret, cancelled, arg, &id, err));
    XPL_TRY(xpl_source_verify(source, err));
    *ret = id;
    if (!xpl_source_is_stable(source)) return XPL_OK;
    pthread_mutex_lock(&i->mu);
    check_generation(i);
    if (i->generation == generation) {
        add_file(i, xpl_source_fingerprint(source), &id);
        add_unsaved(i, xpl_source_fingerprint(source), &id);
    }
    pthread_mutex_unlock(&i->mu);
    return XPL_OK;
}

xpl_status_t xpl_identity_find(struct xpl_identity *i, const struct xpl_source *source,
                               bool (*cancelled)(void *arg), void *arg, bool *ret_known,
                               struct xpl_profile_id *ret, struct xpl_error *err) {
    const struct xpl_fingerprint *const fingerprint = xpl_source_fingerprint(source);
    bool known = xpl_identity_lookup(i, fingerprint, ret);
    if (!known && xpl_source_is_stable(source) &&
        xpl_identity_must_hash_first(i, fingerprint->size)) {
        XPL_TRY(xpl_identity_hash(i, source, cancelled, arg, ret, err));
        known = true;
    }
    *ret_known = known;
    return XPL_OK;
}

// ---- saving ----

bool xpl_identity_is_unsaved(const struct xpl_identity *i) {
    return atomic_load(&i->has_unsaved);
}

static void put_files(struct xpl_store *store, const struct file *files, size_t n) {
    const struct xpl_job_ops *const jobs = xpl_store_jobs(store);
    struct xpl_job_put puts[BATCH];
    for (size_t k = 0; k < n; k++) {
        puts[k] = (struct xpl_job_put){.file = &files[k].fingerprint,
                                       .key = {.profiles = &files[k].id, .n_profiles = 1},
                                       .is_stored = true};
        if (!jobs && xpl_store_put_file(store, puts[k].file, &files[k].id, NULL) != XPL_OK) return;
    }
    if (jobs) (void)jobs->put(store, puts, n, NULL);
}

void xpl_identity_save(struct xpl_identity *i) {
    while (atomic_load(&i->has_unsaved)) {
        struct file batch[BATCH];
        pthread_mutex_lock(&i->mu);
        check_generation(i);
        const size_t n = i->n_unsaved < BATCH ? i->n_unsaved : BATCH;
        i->n_unsaved -= n;
        if (n) memcpy(batch, i->unsaved + i->n_unsaved, n * sizeof *batch);
        atomic_store(&i->has_unsaved, i->n_unsaved > 0);
        pthread_mutex_unlock(&i->mu);
        if (!n || xpl_store_begin(i->store, NULL) != XPL_OK) return;
        put_files(i->store, batch, n);
        if (xpl_store_commit(i->store, NULL) != XPL_OK) return;
    }
}
