// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

// STEP: on the way to it, where search permission is enough.
enum { DIRECTORY = O_RDONLY | O_DIRECTORY | O_CLOEXEC, STEP = O_PATH | O_DIRECTORY | O_CLOEXEC };

// The next component of *path, which is moved behind it; nothing at the end.
static xpl_str_t next_component(const char **path) {
    const char *const from = *path + strspn(*path, "/");
    const size_t n = strcspn(from, "/");
    *path = from + n;
    return (xpl_str_t){from, n};
}

static bool has_dots(const char *path) {
    for (xpl_str_t c; (c = next_component(&path)).len;)
        if (xpl_str_eq(c, XPL_STR(".."))) return true;
    return false;
}

static int close_keeping_errno(int fd) {
    const int e = errno;
    (void)close(fd);
    errno = e;
    return -1;
}

// Whether nothing but "." follows.
static bool is_last(const char *rest) {
    xpl_str_t c;
    do
        c = next_component(&rest);
    while (xpl_str_eq(c, XPL_STR(".")));
    return !c.len;
}

static bool copy_name(char to[NAME_MAX + 1], xpl_str_t name) {
    if (name.len > NAME_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(to, name.ptr, name.len);
    to[name.len] = 0;
    return true;
}

// Opens the component `name` of the directory `at`, which is closed.
static int step(int at, xpl_str_t name, int flags) {
    char text[NAME_MAX + 1];
    const int fd = copy_name(text, name) ? openat(at, text, flags | O_NOFOLLOW) : -1;
    (void)close_keeping_errno(at);
    return fd;
}

static bool is_refused(const char *path) {
    if (path[0] == '/' || has_dots(path)) errno = EXDEV;
    return path[0] == '/' || has_dots(path);
}

int xpl_beneath_walk(int root, const char *path) {
    if (is_refused(path)) return -1;
    int fd = openat(root, ".", is_last(path) ? DIRECTORY : STEP);
    for (xpl_str_t c; fd >= 0 && (c = next_component(&path)).len;)
        fd = step(fd, c, is_last(path) ? DIRECTORY : STEP);
    return fd;
}

int xpl_beneath_open(int root, const char *path) {
    const struct open_how how = {.flags = DIRECTORY,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    if (is_refused(path)) return -1;
    const int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
    return xpl_beneath_walk(root, path);
}

DIR *xpl_beneath_opendir(int root, const char *path) {
    const int fd = xpl_beneath_open(root, path);
    DIR *const dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0) (void)close_keeping_errno(fd);
    return dir;
}

bool xpl_beneath_rmdir(int root, const char *path) {
    char above[PATH_MAX];
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    const size_t n = slash ? (size_t)(slash - path) : 1;
    if (n >= sizeof above || !name[0] || strcmp(name, ".") == 0) {
        errno = EBUSY;
        return false;
    }
    memcpy(above, slash ? path : ".", n);
    above[n] = 0;
    const int fd = xpl_beneath_open(root, above);
    if (fd < 0) return false;
    const bool ok = unlinkat(fd, name, AT_REMOVEDIR) == 0;
    (void)close_keeping_errno(fd);
    return ok;
}

// ---- our directories ----

// `flags` are those of open(); O_NOFOLLOW if any user may have created it.
static int enter_own(int at, const char *name, mode_t mode, int flags) {
    struct stat sb;
    const int failed = mkdirat(at, name, mode) == 0 || errno == EEXIST ? 0 : errno;
    const int fd = openat(at, name, flags);
    if (fd < 0) {
        if (failed && errno == ENOENT) errno = failed;
        const int e = errno; // a link is not a directory, either
        const bool link = (flags & O_NOFOLLOW) &&
                          fstatat(at, name, &sb, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(sb.st_mode);
        errno = link ? EPERM : e;
        return -1;
    }
    if (!(flags & O_NOFOLLOW)) return fd;
    if (fstat(fd, &sb) == 0 && sb.st_uid == getuid() && !(sb.st_mode & (S_IWGRP | S_IWOTH)))
        return fd;
    errno = EPERM;
    return close_keeping_errno(fd);
}

int xpl_own_dir_open(const char *path, mode_t mode, size_t *ret_bad) {
    const char *at = path;
    char name[NAME_MAX + 1];
    int nofollow = 0;
    int fd = open(path[0] == '/' ? "/" : ".", is_last(path) ? DIRECTORY : STEP);
    while (fd >= 0) {
        struct stat sb;
        if (fstat(fd, &sb) == 0 && (sb.st_mode & S_IWOTH)) nofollow = O_NOFOLLOW;
        const xpl_str_t c = next_component(&at);
        if (!c.len) return fd;
        if (xpl_str_eq(c, XPL_STR("."))) continue; // the directory that was checked before
        *ret_bad = (size_t)(at - path);
        const bool last = is_last(at);
        const int next = copy_name(name, c) ? enter_own(fd, name, last ? mode : 0755,
                                                        (last ? DIRECTORY : STEP) | nofollow)
                                            : -1;
        (void)close_keeping_errno(fd);
        fd = next;
    }
    return fd;
}
