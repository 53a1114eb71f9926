// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/uploads.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cond.h"
#include "base/str.h"
#include "storage/aged_files.h"

enum { DIGITS = 16, NAME_SIZE = DIGITS + sizeof ".part" };

struct upload { // in use
    struct upload *next;
    uint64_t key, bytes;
};

struct xpl_uploads {
    uint64_t limit;
    pthread_mutex_t mu; // all below
    struct upload *open;
    size_t n_open, n_idle;
    uint64_t idle_bytes; // of the unused files, as of the last scan and later additions
    char dir[];
};

// ---- names ----

static void name_of(uint64_t key, char ret[NAME_SIZE]) {
    (void)snprintf(ret, NAME_SIZE, "%0*llx.part", DIGITS, (unsigned long long)key);
}

static bool key_of(const char *name, uint64_t *ret) {
    char *end;
    if (strspn(name, "0123456789abcdef") != DIGITS || strcmp(name + DIGITS, ".part") != 0)
        return false;
    *ret = strtoull(name, &end, 16);
    return true;
}

static struct upload *find_upload(const struct xpl_uploads *u, uint64_t key) {
    struct upload *one = u->open;
    while (one && one->key != key)
        one = one->next;
    return one;
}

static int open_at(const struct xpl_uploads *u, const char *name, int flags) {
    const int dir = open(u->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int fd = dir < 0 ? -1 : openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    const int e = errno;
    if (dir >= 0) (void)close(dir);
    errno = e;
    return fd;
}

// ---- unused files ----

// Lists them, oldest first, and counts them anew.
static void list_idle(struct xpl_uploads *u, DIR *d, struct xpl_aged_files *l) {
    struct stat sb;
    uint64_t key;
    u->idle_bytes = u->n_idle = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        if (!key_of(e->d_name, &key) || find_upload(u, key)) continue;
        if (fstatat(dirfd(d), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (!xpl_aged_files_add(l, e->d_name, &sb)) break;
        u->idle_bytes += (uint64_t)sb.st_size;
        u->n_idle++;
    }
    xpl_aged_files_sort(l);
}

// Unless another daemon has it.
static void remove_idle(struct xpl_uploads *u, DIR *d, const struct xpl_aged_file *one) {
    const int fd = openat(dirfd(d), one->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool free_to_go = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (free_to_go && unlinkat(dirfd(d), one->name, 0) == 0) {
        u->idle_bytes -= one->bytes;
        u->n_idle--;
    }
    if (fd >= 0) (void)close(fd);
}

static uint64_t open_bytes(const struct xpl_uploads *u) {
    uint64_t n = 0;
    for (const struct upload *one = u->open; one; one = one->next)
        n += one->bytes;
    return n;
}

static bool fits(const struct xpl_uploads *u) {
    return open_bytes(u) + u->idle_bytes <= u->limit &&
           u->n_open + u->n_idle <= XPL_UPLOADS_MAX_FILES;
}

// Removes idle files that were written before `old`, and the oldest until the rest fits.
static void make_room(struct xpl_uploads *u, time_t old) {
    xpl_assert_held(&u->mu);
    struct xpl_aged_files l = {0};
    DIR *const d = opendir(u->dir);
    if (!d) return;
    list_idle(u, d, &l);
    for (size_t i = 0; i < l.n && (l.v[i].mtime.tv_sec < old || !fits(u)); i++)
        remove_idle(u, d, &l.v[i]);
    xpl_aged_files_fini(&l);
    (void)closedir(d);
}

void xpl_uploads_sweep(struct xpl_uploads *u, int64_t keep_s) {
    pthread_mutex_lock(&u->mu);
    make_room(u, time(NULL) - (time_t)keep_s);
    pthread_mutex_unlock(&u->mu);
}

// ---- life ----

struct xpl_uploads *xpl_uploads_new(const char *dir, uint64_t limit_bytes) {
    const size_t n = strlen(dir) + 1;
    struct xpl_uploads *const u = xpl_sys_alloc(sizeof *u + n);
    if (!u) return NULL;
    *u = (struct xpl_uploads){.limit = limit_bytes};
    memcpy(u->dir, dir, n);
    pthread_mutex_init(&u->mu, NULL);
    (void)mkdir(dir, 0700);
    return u;
}

void xpl_uploads_free(struct xpl_uploads *u) {
    if (!u) return;
    assert(!u->open);
    pthread_mutex_destroy(&u->mu);
    xpl_sys_free(u);
}

// ---- one upload ----

static xpl_status_t fail_as_busy(struct xpl_error *err) {
    XPL_RETURN_ERROR(err, XPL_ABORTED,
                     "another import of the same file is under way; wait until it ends");
}

static xpl_status_t open_and_lock(struct xpl_uploads *u, uint64_t key, int flags, int *ret_fd,
                                  struct xpl_error *err) {
    char name[NAME_SIZE], why[96];
    name_of(key, name);
    const int fd = open_at(u, name, O_RDWR | flags);
    const bool full = fd < 0 && (errno == ENOSPC || errno == EDQUOT);
    if (fd < 0)
        XPL_RETURN_ERROR(err, full ? XPL_RESOURCE_EXHAUSTED : XPL_UNAVAILABLE,
                         "import: the daemon's cache directory: %s%s",
                         strerror_r(errno, why, sizeof why),
                         full ? "; free some space in the daemon's cache directory" : "");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        return fail_as_busy(err);
    }
    *ret_fd = fd;
    return XPL_OK;
}

static void forget(struct xpl_uploads *u, uint64_t key, uint64_t *ret_bytes) {
    struct upload **at = &u->open;
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    struct upload *const one = *at;
    *ret_bytes = one ? one->bytes : 0;
    if (!one) return;
    *at = one->next;
    u->n_open--;
    xpl_sys_free(one);
}

static xpl_status_t start_upload(struct xpl_uploads *u, uint64_t key, struct xpl_error *err) {
    if (find_upload(u, key)) return fail_as_busy(err);
    struct upload *const one = xpl_sys_alloc(sizeof *one);
    if (!one) XPL_RETURN_OOM(err, "import");
    *one = (struct upload){.next = u->open, .key = key};
    u->open = one;
    u->n_open++;
    make_room(u, 0); // removes excess files, and leaves room for one more
    if (u->n_open + u->n_idle <= XPL_UPLOADS_MAX_FILES) return XPL_OK;
    uint64_t bytes;
    forget(u, key, &bytes);
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                     "too many files are being imported; try again when some are done");
}

xpl_status_t xpl_upload_open(struct xpl_uploads *u, uint64_t key, int *ret_fd,
                             struct xpl_error *err) {
    struct stat sb;
    uint64_t bytes;
    int fd = -1;
    pthread_mutex_lock(&u->mu);
    xpl_status_t st = start_upload(u, key, err);
    if (st == XPL_OK) {
        st = open_and_lock(u, key, O_CREAT, &fd, err);
        if (st != XPL_OK)
            forget(u, key, &bytes);
        else if (fstat(fd, &sb) == 0)
            u->open->bytes = (uint64_t)sb.st_size;
    }
    pthread_mutex_unlock(&u->mu);
    if (st == XPL_OK) *ret_fd = fd;
    return st;
}

xpl_status_t xpl_upload_open_again(struct xpl_uploads *u, uint64_t key, int *ret_fd,
                                   struct xpl_error *err) {
    return open_and_lock(u, key, 0, ret_fd, err);
}

xpl_status_t xpl_upload_grow(struct xpl_uploads *u, uint64_t key, uint64_t bytes,
                             struct xpl_error *err) {
    pthread_mutex_lock(&u->mu);
    struct upload *const one = find_upload(u, key);
    assert(one);
    const uint64_t was = one->bytes;
    one->bytes = bytes;
    if (!fits(u)) make_room(u, 0);
    const bool ok = fits(u);
    if (!ok) one->bytes = was;
    pthread_mutex_unlock(&u->mu);
    if (ok) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                     "imports that are not complete would take more than %llu bytes "
                     "(--import-limit): try again when others are done",
                     (unsigned long long)u->limit);
}

void xpl_upload_remove(struct xpl_uploads *u, uint64_t key) {
    char name[NAME_SIZE];
    name_of(key, name);
    const int dir = open(u->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return;
    (void)unlinkat(dir, name, 0);
    (void)close(dir);
    pthread_mutex_lock(&u->mu);
    struct upload *const one = find_upload(u, key);
    if (one) one->bytes = 0;
    pthread_mutex_unlock(&u->mu);
}

void xpl_upload_release(struct xpl_uploads *u, uint64_t key) {
    uint64_t bytes;
    pthread_mutex_lock(&u->mu);
    forget(u, key, &bytes);
    u->idle_bytes += bytes;
    u->n_idle += bytes > 0;
    pthread_mutex_unlock(&u->mu);
}
