// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/removal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

static xpl_status_t fail(const char *path, struct xpl_error *err) {
    const xpl_status_t code = errno == ENOENT ? XPL_NOT_FOUND
                              : errno == EACCES || errno == EPERM || errno == EROFS
                                  ? XPL_PERMISSION_DENIED
                              : errno == ENOTDIR || errno == ELOOP ? XPL_FAILED_PRECONDITION
                                                                   : XPL_UNAVAILABLE;
    XPL_RETURN_ERROR(err, code, "cannot remove %.120s: %s", path,
                     errno == ENOTDIR || errno == ELOOP ? "it is not a directory, or a link to one"
                                                        : strerror(errno));
}

// A profile, or what stands beside profiles that we stored.
static bool is_ours(const char *name, xpl_profile_match_fn match) {
    const xpl_str_t s = xpl_str_from(name);
    xpl_str_t host;
    unsigned rank;
    const char *refusal = NULL;
    return (match(s, &host, &rank, &refusal) && !refusal) ||
           (xpl_str_starts(s, XPL_STR("capture")) && xpl_str_ends(s, XPL_STR(".json")));
}

static xpl_status_t remove_files(int fd, const char *path, xpl_profile_match_fn match, bool all,
                                 struct xpl_error *err) {
    const int own = dup(fd);
    DIR *const dir = own >= 0 ? fdopendir(own) : NULL;
    if (!dir) {
        if (own >= 0) (void)close(own);
        return fail(path, err);
    }
    xpl_status_t st = XPL_OK;
    for (const struct dirent *e; st == XPL_OK && (e = readdir(dir));) {
        struct stat sb;
        if (!all && !is_ours(e->d_name, match)) continue;
        if (fstatat(fd, e->d_name, &sb, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(sb.st_mode)) continue;
        if (unlinkat(fd, e->d_name, 0) != 0 && errno != ENOENT) st = fail(path, err);
    }
    (void)closedir(dir);
    return st;
}

xpl_status_t xpl_session_remove(const char *logdir, const char *path, xpl_profile_match_fn match,
                                bool all, uint64_t dev, uint64_t ino, struct xpl_error *err) {
    const int top = open(logdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) return fail(logdir, err);
    const int fd = openat(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat sb;
    xpl_status_t st = XPL_OK;
    if (fd < 0 || fstat(fd, &sb) != 0)
        st = fail(path, err);
    else if (ino && ((uint64_t)sb.st_ino != ino || (uint64_t)sb.st_dev != dev))
        st = xpl_error_set(err, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                           "%.120s is another directory now; it is left alone", path);
    else
        st = remove_files(fd, path, match, all, err);
    if (fd >= 0) (void)close(fd);
    // What else lies in it keeps it there, and that is fine.
    if (st == XPL_OK && strcmp(path, ".") != 0) (void)unlinkat(top, path, AT_REMOVEDIR);
    (void)close(top);
    return st;
}

static DIR *open_at(int at, const char *name) {
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0) (void)close(fd);
    return dir;
}

uint64_t xpl_session_count_files(const char *logdir, const char *path, xpl_profile_match_fn match) {
    const int top = open(logdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    DIR *const dir = top >= 0 ? open_at(top, path) : NULL;
    uint64_t n = 0;
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        const xpl_str_t name = xpl_str_from(e->d_name);
        xpl_str_t host;
        unsigned rank;
        const char *refusal;
        n += match(name, &host, &rank, &refusal) || xpl_str_ends(name, XPL_STR(".part"));
    }
    if (dir) (void)closedir(dir);
    if (top >= 0) (void)close(top);
    return n;
}

// ---- what was broken off ----

// Of capture/profile_writer.c, which holds a lock while it writes.
static void remove_part(int at, const char *name) {
    const int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(at, name, 0);
    (void)close(fd);
}

// Of capture/shared.c.
static void remove_shared(int at, const char *name) {
    DIR *const dir = open_at(at, name);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) (void)closedir(dir);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

void xpl_session_clean(const char *path, uint64_t dev, uint64_t ino) {
    DIR *const dir = open_at(AT_FDCWD, path);
    struct stat sb;
    if (dir && fstat(dirfd(dir), &sb) == 0 && (uint64_t)sb.st_dev == dev &&
        (uint64_t)sb.st_ino == ino) {
        for (const struct dirent *e; (e = readdir(dir));) {
            if (!xpl_str_starts(xpl_str_from(e->d_name), XPL_STR(".xplaned-"))) continue;
            if (xpl_str_ends(xpl_str_from(e->d_name), XPL_STR(".part")))
                remove_part(dirfd(dir), e->d_name);
            else
                remove_shared(dirfd(dir), e->d_name);
        }
        (void)rmdir(path); // unless whole profiles are in it
    }
    if (dir) (void)closedir(dir);
}
