// SPDX-License-Identifier: Apache-2.0
// Calls on files that fail when a test says so (LD_PRELOAD; test_odd_files.py compiles it).
// $FAILING_CONTROL is a file with a `struct control`, which the test and the daemon share. Only
// calls on files below one of the directories of $FAILING_BELOW (separated by colons) are counted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITES = 1, READS = 2 };

struct control {
    atomic_int kinds;  // WRITES, READS: those that are counted
    atomic_int error;  // errno of a call that fails; 0: a write of half of the bytes
    atomic_int first;  // the number of the first call that fails, from 1; 0: none
    atomic_int times;  // how many calls fail from there on
    atomic_int count;  // calls so far
    atomic_int failed; // how many of these failed
};

static struct control *control;
static const char *below;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAILING_CONTROL");
    below = getenv("FAILING_BELOW");
    const int fd = path && below ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *p = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED) control = p;
}

// Whether the path, seen from a directory, is below one of ours.
static bool is_ours(int dir, const char *path) {
    char full[2 * PATH_MAX];
    full[0] = '\0';
    if (path == NULL || (path[0] != '/' && dir != AT_FDCWD)) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        const ssize_t n = readlink(link, full, PATH_MAX);
        full[n < 0 ? 0 : n] = '\0';
        path = full;
    }
    for (const char *at = below; *at;) {
        const size_t n = strcspn(at, ":");
        if (strncmp(path, at, n) == 0 && (path[n] == '/' || path[n] == '\0')) return true;
        at += n + (at[n] == ':');
    }
    return false;
}

// Whether this call fails; errno is set then.
static bool fails(int kind, int dir, const char *path) {
    if (control == NULL || !(control->kinds & kind)) return false;
    const int before = errno;
    const bool ours = is_ours(dir, path);
    errno = before;
    if (!ours) return false;
    const int number = atomic_fetch_add(&control->count, 1) + 1, first = control->first;
    if (first == 0 || number < first || number - first >= control->times) return false;
    atomic_fetch_add(&control->failed, 1);
    errno = control->error;
    return true;
}

// The C library's function of that name.
static void *next_of(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

// Calls other than writes have no half: they fail with EIO where half of the bytes are wanted.
static int failure(void) {
    if (errno == 0) errno = EIO;
    return -1;
}

// How many of n bytes a write that `fails` selects still writes, or 0.
static size_t left_of(size_t n) {
    if (errno != 0) return 0;
    return n > 1 ? n / 2 : n;
}

#define SHOWN __attribute__((visibility("default")))

SHOWN ssize_t write(int fd, const void *data, size_t n) {
    ssize_t (*next)(int, const void *, size_t) = next_of("write");
    const bool whole = !fails(WRITES, fd, NULL);
    const size_t size = whole ? n : left_of(n);
    return whole || size ? next(fd, data, size) : -1;
}

SHOWN ssize_t pwrite(int fd, const void *data, size_t n, off_t at) {
    ssize_t (*next)(int, const void *, size_t, off_t) = next_of("pwrite");
    const bool whole = !fails(WRITES, fd, NULL);
    const size_t size = whole ? n : left_of(n);
    return whole || size ? next(fd, data, size, at) : -1;
}

SHOWN ssize_t pwrite64(int fd, const void *data, size_t n, off_t at) {
    ssize_t (*next)(int, const void *, size_t, off_t) = next_of("pwrite64");
    const bool whole = !fails(WRITES, fd, NULL);
    const size_t size = whole ? n : left_of(n);
    return whole || size ? next(fd, data, size, at) : -1;
}

SHOWN int fsync(int fd) {
    int (*next)(int) = next_of("fsync");
    return fails(WRITES, fd, NULL) ? failure() : next(fd);
}

SHOWN int fdatasync(int fd) {
    int (*next)(int) = next_of("fdatasync");
    return fails(WRITES, fd, NULL) ? failure() : next(fd);
}

SHOWN int ftruncate64(int fd, off_t n) {
    int (*next)(int, off_t) = next_of("ftruncate64");
    return fails(WRITES, fd, NULL) ? failure() : next(fd, n);
}

SHOWN int fchmod(int fd, mode_t mode) {
    int (*next)(int, mode_t) = next_of("fchmod");
    return fails(WRITES, fd, NULL) ? failure() : next(fd, mode);
}

SHOWN int futimens(int fd, const struct timespec t[2]) {
    int (*next)(int, const struct timespec *) = next_of("futimens");
    return fails(WRITES, fd, NULL) ? failure() : next(fd, t);
}

SHOWN int chmod(const char *path, mode_t mode) {
    int (*next)(const char *, mode_t) = next_of("chmod");
    return fails(WRITES, AT_FDCWD, path) ? failure() : next(path, mode);
}

SHOWN int mkdir(const char *path, mode_t mode) {
    int (*next)(const char *, mode_t) = next_of("mkdir");
    return fails(WRITES, AT_FDCWD, path) ? failure() : next(path, mode);
}

SHOWN int mkdirat(int dir, const char *path, mode_t mode) {
    int (*next)(int, const char *, mode_t) = next_of("mkdirat");
    return fails(WRITES, dir, path) ? failure() : next(dir, path, mode);
}

SHOWN int rmdir(const char *path) {
    int (*next)(const char *) = next_of("rmdir");
    return fails(WRITES, AT_FDCWD, path) ? failure() : next(path);
}

SHOWN int unlink(const char *path) {
    int (*next)(const char *) = next_of("unlink");
    return fails(WRITES, AT_FDCWD, path) ? failure() : next(path);
}

SHOWN int unlinkat(int dir, const char *path, int flags) {
    int (*next)(int, const char *, int) = next_of("unlinkat");
    return fails(WRITES, dir, path) ? failure() : next(dir, path, flags);
}

SHOWN int rename(const char *from, const char *to) {
    int (*next)(const char *, const char *) = next_of("rename");
    return fails(WRITES, AT_FDCWD, to) ? failure() : next(from, to);
}

SHOWN int renameat(int dir, const char *from, int to_dir, const char *to) {
    int (*next)(int, const char *, int, const char *) = next_of("renameat");
    return fails(WRITES, to_dir, to) ? failure() : next(dir, from, to_dir, to);
}

SHOWN int renameat2(int dir, const char *from, int to_dir, const char *to, unsigned flags) {
    int (*next)(int, const char *, int, const char *, unsigned) = next_of("renameat2");
    return fails(WRITES, to_dir, to) ? failure() : next(dir, from, to_dir, to, flags);
}

SHOWN int linkat(int dir, const char *from, int to_dir, const char *to, int flags) {
    int (*next)(int, const char *, int, const char *, int) = next_of("linkat");
    return fails(WRITES, to_dir, to) ? failure() : next(dir, from, to_dir, to, flags);
}

SHOWN int utimensat(int dir, const char *path, const struct timespec t[2], int flags) {
    int (*next)(int, const char *, const struct timespec *, int) = next_of("utimensat");
    return fails(WRITES, dir, path) ? failure() : next(dir, path, t, flags);
}

SHOWN ssize_t read(int fd, void *to, size_t n) {
    ssize_t (*next)(int, void *, size_t) = next_of("read");
    return fails(READS, fd, NULL) ? failure() : next(fd, to, n);
}

SHOWN ssize_t pread64(int fd, void *to, size_t n, off_t at) {
    ssize_t (*next)(int, void *, size_t, off_t) = next_of("pread64");
    return fails(READS, fd, NULL) ? failure() : next(fd, to, n, at);
}

SHOWN int fstat64(int fd, struct stat64 *st) {
    int (*next)(int, struct stat64 *) = next_of("fstat64");
    return fails(READS, fd, NULL) ? failure() : next(fd, st);
}

SHOWN int stat64(const char *path, struct stat64 *st) {
    int (*next)(const char *, struct stat64 *) = next_of("stat64");
    return fails(READS, AT_FDCWD, path) ? failure() : next(path, st);
}

SHOWN int fstatat64(int dir, const char *path, struct stat64 *st, int flags) {
    int (*next)(int, const char *, struct stat64 *, int) = next_of("fstatat64");
    return fails(READS, dir, path) ? failure() : next(dir, path, st, flags);
}

static int kind_of(int flags) {
    return flags & (O_CREAT | O_WRONLY | O_RDWR) ? WRITES : READS;
}

SHOWN int open64(const char *path, int flags, ...) {
    int (*next)(const char *, int, ...) = next_of("open64");
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(kind_of(flags), AT_FDCWD, path) ? failure() : next(path, flags, mode);
}

SHOWN int openat64(int dir, const char *path, int flags, ...) {
    int (*next)(int, const char *, int, ...) = next_of("openat64");
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(kind_of(flags), dir, path) ? failure() : next(dir, path, flags, mode);
}
