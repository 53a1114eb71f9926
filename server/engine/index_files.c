#include "server/engine/index_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"

enum { NAME_MAX_LEN = 160, PART_MAX_S = 600 };
#define QUEUE_BYTES ((size_t)256 << 20) // of products that wait to be written

struct queued {
    struct queued *next;
    struct xpl_index_file_save save;
};

struct xpl_index_files {
    char dir[512]; // "": no files
    uint64_t limit;
    pthread_mutex_t mu;    // protects the queue
    pthread_cond_t change; // of the queue
    struct queued *head, **tail;
    size_t queued_bytes;
    bool writing, stop, has_thread;
    pthread_t thread;
};

// ---- names ----

static bool path_of(const struct xpl_index_files *f, const struct xpl_fingerprint *p,
                    uint32_t version, const char *suffix, char ret[PATH_MAX]) {
    const int n = snprintf(ret, PATH_MAX,
                           "%s/%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 ".%" PRIu32
                           ".trace%s",
                           f->dir, p->dev, p->ino, p->size, (uint64_t)p->mtime_ns,
                           (uint64_t)p->ctime_ns, version, suffix);
    return n > 0 && n < PATH_MAX;
}

// ---- eviction ----

struct file {
    char name[NAME_MAX_LEN];
    int64_t mtime_ns;
    uint64_t size;
};

static int older_first(const void *pa, const void *pb) {
    const struct file *const a = pa, *const b = pb;
    return (a->mtime_ns > b->mtime_ns) - (a->mtime_ns < b->mtime_ns);
}

// Removes the least recently used files until the rest fits, and what a crash left half written:
// another daemon may be writing what is young.
static void evict_files(const struct xpl_index_files *f) {
    DIR *const d = opendir(f->dir);
    const time_t now = time(NULL);
    struct file *v = NULL;
    size_t n = 0, cap = 0;
    uint64_t bytes = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        const xpl_str_t name = xpl_str_from(e->d_name);
        const bool part = xpl_str_ends(name, XPL_STR(".part"));
        if ((!part && !xpl_str_ends(name, XPL_STR(".trace"))) || name.len >= NAME_MAX_LEN ||
            fstatat(dirfd(d), e->d_name, &st, 0) != 0)
            continue;
        if (part && now - st.st_mtim.tv_sec > PART_MAX_S) (void)unlinkat(dirfd(d), e->d_name, 0);
        if (part) continue;
        if (n == cap) {
            struct file *const grown = xpl_sys_realloc(v, (cap ? cap * 2 : 64) * sizeof *v);
            if (!grown) break;
            v = grown;
            cap = cap ? cap * 2 : 64;
        }
        memcpy(v[n].name, e->d_name, name.len + 1);
        v[n].mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
        v[n].size = (uint64_t)st.st_size;
        bytes += v[n++].size;
    }
    if (n) qsort(v, n, sizeof *v, older_first);
    for (size_t i = 0; i < n && bytes > f->limit; i++)
        if (unlinkat(dirfd(d), v[i].name, 0) == 0) bytes -= v[i].size;
    xpl_sys_free(v);
    if (d) closedir(d);
}

// ---- writing ----

static bool write_all(int fd, xpl_bytes_t b) {
    while (b.len) {
        const ssize_t got = write(fd, b.ptr, b.len);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        b.ptr += got;
        b.len -= (size_t)got;
    }
    return true;
}

static bool write_file(const struct xpl_index_files *f, const struct xpl_index_file_save *s) {
    char path[PATH_MAX], part[PATH_MAX];
    const xpl_bytes_t bytes = s->handle->product->encoded(s->handle->value);
    if (!path_of(f, &s->fingerprint, s->version, "", path) ||
        !path_of(f, &s->fingerprint, s->version, ".XXXXXX.part", part))
        return false;
    const int fd = mkostemps(part, sizeof ".part" - 1, O_CLOEXEC); // another daemon has its own
    if (fd < 0) {
        xpl_log(XPL_LOG_WARN, "products", "cannot write a trace index: %s", strerror(errno));
        return false;
    }
    bool ok = write_all(fd, bytes);
    ok = close(fd) == 0 && ok;
    ok = ok && rename(part, path) == 0;
    if (!ok) {
        xpl_log(XPL_LOG_WARN, "products", "cannot write a trace index: %s", strerror(errno));
        (void)unlink(part);
    }
    return ok;
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
        if (ok) evict_files(f);
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
    pthread_mutex_lock(&f->mu);
    while (f->head || f->writing)
        pthread_cond_wait(&f->change, &f->mu);
    pthread_mutex_unlock(&f->mu);
}

// ---- reading ----

xpl_status_t xpl_index_files_open(struct xpl_index_files *f,
                                  const struct xpl_fingerprint *fingerprint, uint32_t version,
                                  struct xpl_source **ret) {
    char path[PATH_MAX];
    if (!f->dir[0] || !path_of(f, fingerprint, version, "", path)) return XPL_NOT_FOUND;
    XPL_TRY(xpl_source_open(AT_FDCWD, path, 0, ret, NULL));
    (void)utimensat(AT_FDCWD, path, (struct timespec[]){{0, UTIME_NOW}, {0, UTIME_NOW}}, 0);
    return XPL_OK;
}

void xpl_index_files_remove(struct xpl_index_files *f, const struct xpl_fingerprint *fingerprint,
                            uint32_t version) {
    char path[PATH_MAX];
    if (f->dir[0] && path_of(f, fingerprint, version, "", path)) (void)unlink(path);
}

// ---- life ----

bool xpl_index_files_enabled(const struct xpl_index_files *f) {
    return f->dir[0] != 0;
}

struct xpl_index_files *xpl_index_files_new(const char *dir, uint64_t limit_bytes) {
    struct xpl_index_files *const f = xpl_sys_alloc(sizeof *f);
    if (!f) return NULL;
    *f = (struct xpl_index_files){.limit = limit_bytes};
    f->tail = &f->head;
    pthread_mutex_init(&f->mu, NULL);
    pthread_cond_init(&f->change, NULL);
    const int n = dir && dir[0] ? snprintf(f->dir, sizeof f->dir, "%s/traces", dir) : 0;
    if (n <= 0 || (size_t)n >= sizeof f->dir || (mkdir(f->dir, 0700) != 0 && errno != EEXIST) ||
        access(f->dir, W_OK) != 0)
        f->dir[0] = 0;
    if (!f->dir[0]) return f;
    evict_files(f);
    f->has_thread = pthread_create(&f->thread, NULL, saver_main, f) == 0;
    if (!f->has_thread) f->dir[0] = 0;
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
    xpl_sys_free(f);
}
