// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/uploads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

enum { PATH_ROOM = PATH_MAX + 64 };

static void path_of(const char *dir, uint64_t key, char ret[PATH_ROOM]) {
    (void)snprintf(ret, PATH_ROOM, "%s/%016llx.part", dir, (unsigned long long)key);
}

void xpl_uploads_sweep(const char *dir, int64_t keep_s) {
    (void)mkdir(dir, 0700);
    DIR *const d = opendir(dir);
    const time_t old = time(NULL) - (time_t)keep_s;
    struct stat sb;
    for (const struct dirent *e; d && (e = readdir(d));)
        if (xpl_str_ends(xpl_str_from(e->d_name), XPL_STR(".part")) &&
            fstatat(dirfd(d), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) == 0 && sb.st_mtime < old)
            (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d) (void)closedir(d);
}

xpl_status_t xpl_upload_open(const char *dir, uint64_t key, int *ret_fd, struct xpl_error *err) {
    char path[PATH_ROOM], why[96];
    path_of(dir, key, path);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool full = fd < 0 && (errno == ENOSPC || errno == EDQUOT);
    if (fd < 0)
        XPL_RETURN_ERROR(err, full ? XPL_RESOURCE_EXHAUSTED : XPL_UNAVAILABLE,
                         "import: the daemon's cache directory: %s%s",
                         strerror_r(errno, why, sizeof why),
                         full ? "; free some space in the daemon's cache directory" : "");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        XPL_RETURN_ERROR(err, XPL_ABORTED,
                         "another import of the same file is under way; wait until it ends");
    }
    *ret_fd = fd;
    return XPL_OK;
}

void xpl_upload_remove(const char *dir, uint64_t key) {
    char path[PATH_ROOM];
    path_of(dir, key, path);
    (void)unlink(path);
}
