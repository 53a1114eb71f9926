// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/copies.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/str.h"
#include "storage/aged_files.h"
#include "storage/make_dirs.h"

// NAME_LEN: 32 digits, ".object".  BOOT: of the kernel's name of a boot.  SLACK: one part in so
// many of the limit is written before copies are counted again, as other processes write, too.
enum { NAME_LEN = 39, BOOT = 37, SLACK = 16 };

struct fill { // a copy that is being written
    struct fill *next;
    struct xpl_copy_key key;
};

struct xpl_copies {
    uint64_t limit, patience_ns;
    int dir;
    pthread_mutex_t mu; // the rest
    pthread_cond_t filled;
    struct fill *fills;
    uint64_t bytes; // of the copies that were counted, and of those written since
    uint64_t since; // bytes of the latter
};

static void name_of(const struct xpl_copy_key *key, char ret[NAME_LEN + 1]) {
    (void)snprintf(ret, NAME_LEN + 1, "%016llx%016llx.object", (unsigned long long)key->id[0],
                   (unsigned long long)key->id[1]);
}

static bool is_copy(xpl_str_t name) {
    return name.len == NAME_LEN && xpl_str_ends(name, XPL_STR(".object"));
}

static bool is_part(xpl_str_t name) {
    return xpl_str_ends(name, XPL_STR(".part"));
}

static xpl_status_t fail_cache(int os, const char *what, struct xpl_error *err) {
    char why[96];
    const bool full = os == ENOSPC || os == EDQUOT || os == EMFILE || os == ENFILE || os == EFBIG;
    XPL_RETURN_ERROR(err, full ? XPL_RESOURCE_EXHAUSTED : XPL_UNAVAILABLE,
                     "the cache of objects: %s: %s", what, strerror_r(os, why, sizeof why));
}

// ---- eviction ----

// Removes a file that no process has open.
static bool remove_unused(int dir, const char *name) {
    const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return errno == ENOENT;
    const bool gone = flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(dir, name, 0) == 0;
    (void)close(fd);
    return gone;
}

static DIR *list_dir(int dir) {
    const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0) (void)close(fd);
    return d;
}

static xpl_status_t collect_copies(const struct xpl_copies *c, struct xpl_aged_files *ret,
                                   struct xpl_error *err) {
    DIR *const d = list_dir(c->dir);
    if (!d) return fail_cache(errno, "its files cannot be counted, so none makes room", err);
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(d));) {
        struct stat st;
        if (is_copy(xpl_str_from(e->d_name)) &&
            fstatat(c->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            ok = xpl_aged_files_add(ret, e->d_name, &st);
    }
    (void)closedir(d);
    if (!ok) XPL_RETURN_OOM(err, "the cache of objects: counting its files, to make room");
    xpl_aged_files_sort(ret);
    return XPL_OK;
}

// Counts the copies and, if they and `needed` exceed the limit, removes those that no process has
// open: the longest unused first, and some more, as counting takes long.
static xpl_status_t evict(struct xpl_copies *c, uint64_t needed, struct xpl_error *err) {
    struct xpl_aged_files l = {0};
    const xpl_status_t st = collect_copies(c, &l, err);
    const bool ok = st == XPL_OK;
    const uint64_t goal = l.bytes + needed > c->limit ? c->limit - c->limit / SLACK : c->limit;
    for (size_t i = 0; ok && i < l.n && l.bytes + needed > goal; i++)
        if (remove_unused(c->dir, l.v[i].name)) l.bytes -= l.v[i].bytes;
    if (ok) c->bytes = l.bytes, c->since = 0;
    xpl_aged_files_fini(&l);
    return st;
}

// Makes room for `bytes`, in addition to the copies that are being written.
static xpl_status_t make_room(struct xpl_copies *c, uint64_t bytes, struct xpl_error *err) {
    xpl_assert_held(&c->mu);
    uint64_t needed = bytes;
    for (const struct fill *f = c->fills; f; f = f->next)
        needed += f->key.size;
    const bool fits = needed <= c->limit; // else nothing need go for it
    const bool known = c->since <= c->limit / SLACK && c->bytes + needed <= c->limit;
    if (fits && !known) XPL_TRY(evict(c, needed, err));
    if (fits && c->bytes + needed <= c->limit) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                     "an object of %llu bytes has no room in the cache: raise --object-cache (%llu "
                     "bytes, of which %llu are in use)",
                     (unsigned long long)bytes, (unsigned long long)c->limit,
                     (unsigned long long)(c->bytes + needed - bytes));
}

// ---- life ----

static void read_boot(char ret[BOOT]) {
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, ret, BOOT - 1);
    ret[n > 0 ? n : 0] = 0;
    if (fd >= 0) (void)close(fd);
}

static int open_boot(int dir, int flags) {
    return openat(dir, "boot", flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

// Whether the directory's copies are of this boot.
static bool is_same_boot(int dir, const char *now) {
    char was[BOOT] = "";
    const int fd = open_boot(dir, O_RDONLY);
    const ssize_t n = fd < 0 ? -1 : read(fd, was, BOOT - 1);
    was[n > 0 ? n : 0] = 0;
    if (fd >= 0) (void)close(fd);
    return now[0] && strcmp(now, was) == 0;
}

static void write_boot(int dir, const char *now) {
    const int fd = open_boot(dir, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0) return;
    if (write(fd, now, strlen(now)) < 0) (void)unlinkat(dir, "boot", 0);
    (void)close(fd);
}

// Removes the remains of a crash: abandoned parts, and all copies of an earlier boot.  Notes the
// current boot only once no copy of an earlier one is left.
static void sweep(int dir) {
    char now[BOOT];
    read_boot(now);
    const bool same = is_same_boot(dir, now);
    DIR *const d = list_dir(dir);
    bool clean = d != NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        const xpl_str_t name = xpl_str_from(e->d_name);
        if (is_part(name)) (void)remove_unused(dir, e->d_name);
        if (!same && is_copy(name)) clean &= remove_unused(dir, e->d_name);
    }
    if (d) (void)closedir(d);
    if (!same && clean) write_boot(dir, now);
}

xpl_status_t xpl_copies_new(const char *dir, uint64_t limit_bytes, uint64_t patience_ns,
                            struct xpl_copies **ret, struct xpl_error *err) {
    if (!xpl_make_dirs(dir, 0700)) return fail_cache(errno, "its directory cannot be made", err);
    struct xpl_copies *const c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "the cache of objects");
    *c = (struct xpl_copies){.limit = limit_bytes, .patience_ns = patience_ns, .since = UINT64_MAX};
    c->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->dir < 0) {
        xpl_sys_free(c);
        return fail_cache(errno, "its directory cannot be opened", err);
    }
    pthread_mutex_init(&c->mu, NULL);
    xpl_cond_init(&c->filled);
    sweep(c->dir);
    *ret = c;
    return XPL_OK;
}

void xpl_copies_free(struct xpl_copies *c) {
    if (!c) return;
    (void)close(c->dir);
    pthread_cond_destroy(&c->filled);
    pthread_mutex_destroy(&c->mu);
    xpl_sys_free(c);
}

// ---- one copy ----

// The copy, locked, or -1.  Its use is noted by the time of its last change, as times of reading
// are often off.
static int open_copy(struct xpl_copies *c, const struct xpl_copy_key *key) {
    char name[NAME_LEN + 1];
    struct stat st;
    name_of(key, name);
    const int fd = openat(c->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return -1;
    // A copy that is removed between opening and locking is still complete.
    if (flock(fd, LOCK_SH) == 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == key->size) {
        (void)futimens(fd, (struct timespec[]){{0, UTIME_NOW}, {0, UTIME_NOW}});
        return fd;
    }
    (void)unlinkat(c->dir, name, 0);
    (void)close(fd);
    return -1;
}

// Creates a file for a download next to the copies, locked.  Its name is unique: another process
// may be writing the same copy, and one in another container may have the same process id.  A
// starting process removes parts that are not locked; if it removed this one before the lock, this
// creates another.
static int open_part(struct xpl_copies *c, const char *name, char ret[NAME_LEN + 40]) {
    static atomic_uint parts;
    for (;;) {
        struct stat st;
        (void)snprintf(ret, NAME_LEN + 40, "%s.%ld.%u.part", name, (long)getpid(),
                       atomic_fetch_add(&parts, 1));
        const int fd =
            openat(c->dir, ret, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) return -1;
        const bool locked = flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0;
        if (locked && st.st_nlink > 0) return fd;
        const int os = errno;
        if (!locked) (void)unlinkat(c->dir, ret, 0);
        (void)close(fd);
        errno = os;
        if (!locked) return -1;
    }
}

static xpl_status_t write_copy(struct xpl_copies *c, const struct xpl_copy_key *key,
                               xpl_status_t (*fill)(void *arg, int fd, struct xpl_error *err),
                               void *arg, int *ret_fd, struct xpl_error *err) {
    char name[NAME_LEN + 1], part[NAME_LEN + 40];
    struct stat sb;
    name_of(key, name);
    const int fd = open_part(c, name, part);
    if (fd < 0) return fail_cache(errno, "a file cannot be made", err);
    if (ftruncate(fd, (off_t)key->size) != 0) {
        const int os = errno;
        (void)unlinkat(c->dir, part, 0);
        (void)close(fd);
        return fail_cache(os, "a file cannot be made", err);
    }
    xpl_status_t st = fill(arg, fd, err);
    if (st == XPL_OK && (fstat(fd, &sb) != 0 || (uint64_t)sb.st_size != key->size))
        st = xpl_error_set(err, XPL_INTERNAL, __FILE__, __LINE__, UINT64_MAX,
                           "the cache of objects: a copy has not the size of its object");
    if (st == XPL_OK && (renameat(c->dir, part, c->dir, name) != 0 || flock(fd, LOCK_SH) != 0))
        st = fail_cache(errno, "a file cannot be renamed", err);
    if (st == XPL_OK) {
        *ret_fd = fd;
        return XPL_OK;
    }
    (void)unlinkat(c->dir, part, 0);
    (void)close(fd);
    return st;
}

static bool is_filling(const struct xpl_copies *c, const struct xpl_copy_key *key) {
    for (const struct fill *f = c->fills; f; f = f->next)
        if (f->key.id[0] == key->id[0] && f->key.id[1] == key->id[1]) return true;
    return false;
}

static xpl_status_t wait_for_others(struct xpl_copies *c, const struct xpl_copy_key *key,
                                    struct xpl_error *err) {
    xpl_assert_held(&c->mu);
    const uint64_t until = xpl_clock_ns() + c->patience_ns;
    while (is_filling(c, key))
        if (!xpl_cond_wait_until(&c->filled, &c->mu, until) && is_filling(c, key))
            XPL_RETURN_ERROR(err, XPL_UNAVAILABLE,
                             "the cache of objects: another request has been fetching this object "
                             "for %llu s",
                             (unsigned long long)(c->patience_ns / 1000000000));
    return XPL_OK;
}

// The copy as *ret_fd >= 0, or a place among the fills for the caller's.
static xpl_status_t begin_fill(struct xpl_copies *c, struct fill *f, int *ret_fd,
                               struct xpl_error *err) {
    pthread_mutex_lock(&c->mu);
    xpl_status_t st = wait_for_others(c, &f->key, err);
    *ret_fd = st == XPL_OK ? open_copy(c, &f->key) : -1;
    if (*ret_fd < 0 && st == XPL_OK) st = make_room(c, f->key.size, err);
    if (*ret_fd < 0 && st == XPL_OK) {
        f->next = c->fills;
        c->fills = f;
    }
    pthread_mutex_unlock(&c->mu);
    return st;
}

static void end_fill(struct xpl_copies *c, struct fill *f, bool written) {
    pthread_mutex_lock(&c->mu);
    if (written) c->bytes += f->key.size, c->since += f->key.size;
    struct fill **at = &c->fills;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    pthread_cond_broadcast(&c->filled);
    pthread_mutex_unlock(&c->mu);
}

xpl_status_t xpl_copies_get(struct xpl_copies *c, const struct xpl_copy_key *key,
                            xpl_status_t (*fill)(void *arg, int fd, struct xpl_error *err),
                            void *arg, int *ret_fd, struct xpl_error *err) {
    struct fill f = {.key = *key};
    int fd = -1;
    XPL_TRY(begin_fill(c, &f, &fd, err));
    if (fd < 0) {
        const xpl_status_t st = write_copy(c, key, fill, arg, &fd, err);
        end_fill(c, &f, st == XPL_OK);
        XPL_TRY(st);
    }
    *ret_fd = fd;
    return XPL_OK;
}
