// SPDX-License-Identifier: Apache-2.0
#include "storage/store/shared_files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/std_fds.h"
#include "storage/sessions/beneath.h"
#include "storage/sessions/path.h"

struct xpl_shared_files {
    char dir[PATH_MAX];
    const char *prefix, *suffix;
    int dirfd;
    gid_t group;
    uint64_t random;         // in the names of temporary files
    atomic_ullong temporary; // numbers them
};

// ---- the directory ----

static xpl_status_t fail_dir(const struct xpl_shared_files *f, const char *what, int os,
                             struct xpl_error *err) {
    char why[96];
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: %s%s",
                     xpl_path_shown(f->dir, &(struct xpl_path_text){0}), what,
                     strerror_r(os, why, sizeof why));
}

static bool has_group(const struct xpl_shared_files *f) {
    return f->group != (gid_t)-1;
}

static xpl_status_t open_dir(struct xpl_shared_files *f, struct xpl_error *err) {
    char real[PATH_MAX]; // who reads the files runs elsewhere: the path must be absolute
    struct stat st, named;
    size_t bad = 0;
    f->dirfd = xpl_own_dir_open(f->dir, has_group(f) ? 0750 : 0700, &bad);
    if (f->dirfd < 0 && errno == EPERM)
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "%s: below a world-writable directory, %.*s must be a directory, not a link, "
            "that belongs only to this user: remove it, or use another directory",
            xpl_path_shown(f->dir, &(struct xpl_path_text){0}), (int)bad, f->dir);
    if (f->dirfd < 0 || fstat(f->dirfd, &st) != 0) return fail_dir(f, "", errno, err);
    if (realpath(f->dir, real) && stat(real, &named) == 0 && named.st_dev == st.st_dev &&
        named.st_ino == st.st_ino)
        memcpy(f->dir, real, sizeof real);
    if (st.st_uid != getuid())
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: belongs to another user",
                         xpl_path_shown(f->dir, &(struct xpl_path_text){0}));
    // The mode again: the umask may have cut it.
    if (has_group(f) && (fchown(f->dirfd, (uid_t)-1, f->group) != 0 ||
                         fchmod(f->dirfd, (st.st_mode & 0777) | 0050) != 0))
        return fail_dir(f, "cannot give it to the group: ", errno, err);
    return XPL_OK;
}

xpl_status_t xpl_shared_files_new(const char *dir, const char *prefix, const char *suffix,
                                  gid_t group, struct xpl_shared_files **ret,
                                  struct xpl_error *err) {
    if (!dir[0] || strlen(dir) >= PATH_MAX)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: the path is empty or too long",
                         xpl_path_shown(dir, &(struct xpl_path_text){0}));
    struct xpl_shared_files *const f = xpl_sys_alloc(sizeof *f);
    if (!f) XPL_RETURN_OOM(err, "files for other programs");
    *f = (struct xpl_shared_files){.prefix = prefix, .suffix = suffix, .dirfd = -1, .group = group};
    memcpy(f->dir, dir, strlen(dir) + 1);
    if (getrandom(&f->random, sizeof f->random, 0) != sizeof f->random)
        f->random = (uint64_t)getpid();
    const xpl_status_t st = open_dir(f, err);
    if (st == XPL_OK)
        *ret = f;
    else
        xpl_shared_files_free(f);
    return st;
}

void xpl_shared_files_free(struct xpl_shared_files *f) {
    if (!f) return;
    if (f->dirfd >= 0) (void)close(f->dirfd);
    xpl_sys_free(f);
}

const char *xpl_shared_files_get_dir(const struct xpl_shared_files *f) {
    return f->dir;
}

const char *xpl_shared_files_path_of(const struct xpl_shared_files *f, const char *name,
                                     struct xpl_shared_files_path *ret) {
    (void)snprintf(ret->text, sizeof ret->text, "%s/%s", xpl_shared_files_get_dir(f), name);
    return ret->text;
}

// ---- files ----

static xpl_status_t fail_write(const struct xpl_shared_files *f, int os, struct xpl_error *err) {
    char why[96];
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "cannot write in %s: %s",
                     xpl_path_shown(f->dir, &(struct xpl_path_text){0}),
                     strerror_r(os, why, sizeof why));
}

xpl_status_t xpl_shared_files_put(struct xpl_shared_files *f, const char *name, xpl_bytes_t bytes,
                                  struct xpl_error *err) {
    char temp[64];
    assert(xpl_str_starts(xpl_str_from(name), xpl_str_from(f->prefix)));
    assert(!strchr(name, '/') && xpl_str_ends(xpl_str_from(name), xpl_str_from(f->suffix)));
    // Daemons of several machines may share the directory: process ids do not tell them apart.
    (void)snprintf(temp, sizeof temp, ".%016" PRIx64 "-%" PRIu64 ".tmp", f->random,
                   (uint64_t)atomic_fetch_add(&f->temporary, 1));
    const int fd =
        openat(f->dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, has_group(f) ? 0640 : 0600);
    if (fd < 0) return fail_write(f, errno, err);
    bool ok = xpl_write_all(fd, bytes.ptr, bytes.len);
    if (ok && has_group(f)) ok = fchown(fd, (uid_t)-1, f->group) == 0 && fchmod(fd, 0640) == 0;
    int os = ok ? 0 : errno;
    if (close(fd) != 0 && ok) ok = false, os = errno;
    if (ok && renameat(f->dirfd, temp, f->dirfd, name) != 0) ok = false, os = errno;
    if (ok) return XPL_OK;
    (void)unlinkat(f->dirfd, temp, 0);
    return fail_write(f, os, err);
}

void xpl_shared_files_sweep(struct xpl_shared_files *f, int64_t keep_s) {
    const int fd = openat(f->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0) (void)close(fd);
        return;
    }
    const time_t now = time(NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat st;
        const xpl_str_t name = xpl_str_from(e->d_name);
        const bool ours = (xpl_str_starts(name, xpl_str_from(f->prefix)) &&
                           xpl_str_ends(name, xpl_str_from(f->suffix))) ||
                          (name.ptr[0] == '.' && xpl_str_ends(name, XPL_STR(".tmp")));
        if (ours && fstatat(f->dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && now - st.st_mtime > keep_s)
            (void)unlinkat(f->dirfd, e->d_name, 0);
    }
    (void)closedir(d);
}
