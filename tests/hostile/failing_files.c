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

#define NEXT(type, name, ...)                                                                      \
    static type (*next)(__VA_ARGS__);                                                              \
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, name)

#define WRITE(name, offset_parameter, offset)                                                      \
    __attribute__((visibility("default"))) ssize_t name(int fd, const void *data,                  \
                                                        size_t n offset_parameter) {               \
        NEXT(ssize_t, #name, int, const void *, size_t offset_parameter);                          \
        if (!fails(WRITES, fd, NULL)) return next(fd, data, n offset);                             \
        if (errno != 0) return -1;                                                                 \
        return next(fd, data, n > 1 ? n / 2 : n offset);                                           \
    }
#define COMMA ,
WRITE(write, , )
WRITE(pwrite, COMMA off_t at, COMMA at)
WRITE(pwrite64, COMMA off_t at, COMMA at)

// The other calls have no half: they fail with EIO where half of the bytes are wanted.
static int failure(void) {
    if (errno == 0) errno = EIO;
    return -1;
}

#define CALL(type, name, kind, dir, path, parameters, arguments)                                   \
    __attribute__((visibility("default"))) type name parameters {                                  \
        static type(*next) parameters;                                                             \
        if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, #name);                               \
        return fails(kind, dir, path) ? (type)failure() : next arguments;                          \
    }
CALL(int, fsync, WRITES, fd, NULL, (int fd), (fd))
CALL(int, fdatasync, WRITES, fd, NULL, (int fd), (fd))
CALL(int, ftruncate64, WRITES, fd, NULL, (int fd, off_t n), (fd, n))
CALL(int, fchmod, WRITES, fd, NULL, (int fd, mode_t mode), (fd, mode))
CALL(int, futimens, WRITES, fd, NULL, (int fd, const struct timespec t[2]), (fd, t))
CALL(int, chmod, WRITES, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdir, WRITES, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, WRITES, dir, path, (int dir, const char *path, mode_t mode), (dir, path, mode))
CALL(int, rmdir, WRITES, AT_FDCWD, path, (const char *path), (path))
CALL(int, unlink, WRITES, AT_FDCWD, path, (const char *path), (path))
CALL(int, unlinkat, WRITES, dir, path, (int dir, const char *path, int flags), (dir, path, flags))
CALL(int, rename, WRITES, AT_FDCWD, to, (const char *from, const char *to), (from, to))
CALL(int, renameat, WRITES, to_dir, to, (int dir, const char *from, int to_dir, const char *to),
     (dir, from, to_dir, to))
CALL(int, renameat2, WRITES, to_dir, to,
     (int dir, const char *from, int to_dir, const char *to, unsigned flags),
     (dir, from, to_dir, to, flags))
CALL(int, linkat, WRITES, to_dir, to,
     (int dir, const char *from, int to_dir, const char *to, int flags),
     (dir, from, to_dir, to, flags))
CALL(int, utimensat, WRITES, dir, path,
     (int dir, const char *path, const struct timespec t[2], int flags), (dir, path, t, flags))
CALL(ssize_t, read, READS, fd, NULL, (int fd, void *to, size_t n), (fd, to, n))
CALL(ssize_t, pread64, READS, fd, NULL, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
CALL(int, fstat, READS, fd, NULL, (int fd, struct stat *st), (fd, st))
CALL(int, fstat64, READS, fd, NULL, (int fd, struct stat64 *st), (fd, st))
CALL(int, stat64, READS, AT_FDCWD, path, (const char *path, struct stat64 *st), (path, st))
CALL(int, fstatat64, READS, dir, path, (int dir, const char *path, struct stat64 *st, int flags),
     (dir, path, st, flags))

static int kind_of(int flags) {
    return flags & (O_CREAT | O_WRONLY | O_RDWR) ? WRITES : READS;
}

__attribute__((visibility("default"))) int open64(const char *path, int flags, ...) {
    NEXT(int, "open64", const char *, int, ...);
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(kind_of(flags), AT_FDCWD, path) ? failure() : next(path, flags, mode);
}

__attribute__((visibility("default"))) int openat64(int dir, const char *path, int flags, ...) {
    NEXT(int, "openat64", int, const char *, int, ...);
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(kind_of(flags), dir, path) ? failure() : next(dir, path, flags, mode);
}
