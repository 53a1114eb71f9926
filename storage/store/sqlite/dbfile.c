// SPDX-License-Identifier: Apache-2.0
#include "storage/store/sqlite/dbfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"

enum { MAX_BROKEN = 64, TAIL = 64 };

enum xpl_dbfile_lock xpl_dbfile_lock(const char *path, int *ret_fd) {
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return XPL_DBFILE_CANNOT;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int e = errno;
        (void)close(fd);
        errno = e;
        return e == EWOULDBLOCK ? XPL_DBFILE_OTHERS : XPL_DBFILE_CANNOT;
    }
    *ret_fd = fd;
    return XPL_DBFILE_MINE;
}

// ---- moving a broken database aside ----

static int name_desc(const void *a, const void *b) {
    return strcmp(*(char *const *)b, *(char *const *)a);
}

// Whether the file is "<base>.broken-<digits>".
static bool is_broken(const char *file, const char *base) {
    static const char middle[] = ".broken-";
    const size_t n = strlen(base);
    if (strncmp(file, base, n) != 0 || strncmp(file + n, middle, sizeof middle - 1) != 0)
        return false;
    const char *const digits = file + n + sizeof middle - 1;
    return digits[0] && !digits[strspn(digits, "0123456789")];
}

static size_t list_broken(DIR *dir, const char *base, char *names[MAX_BROKEN]) {
    size_t n = 0;
    for (const struct dirent *e; n < MAX_BROKEN && (e = readdir(dir));) {
        if (!is_broken(e->d_name, base)) continue;
        const size_t len = strlen(e->d_name) + 1;
        names[n] = xpl_sys_alloc(len);
        if (names[n]) memcpy(names[n++], e->d_name, len);
    }
    qsort(names, n, sizeof *names, name_desc);
    return n;
}

// A disk that breaks databases again and again must not fill up with them.
static void remove_old_broken(const char *path, unsigned keep) {
    char *names[MAX_BROKEN], dir[PATH_MAX], wal[PATH_MAX];
    const char *const slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) : 0;
    if (len >= sizeof dir) return;
    memcpy(dir, slash && len ? path : slash ? "/" : ".", slash && len ? len : 1);
    dir[slash && len ? len : 1] = 0;
    DIR *const d = opendir(dir);
    if (!d) return;
    const size_t n = list_broken(d, slash ? slash + 1 : path, names);
    for (size_t i = 0; i < n; i++) {
        if (i >= keep) (void)unlinkat(dirfd(d), names[i], 0);
        if (i >= keep && snprintf(wal, sizeof wal, "%s-wal", names[i]) < (int)sizeof wal)
            (void)unlinkat(dirfd(d), wal, 0);
        xpl_sys_free(names[i]);
    }
    (void)closedir(d);
}

bool xpl_dbfile_move_aside(const char *path, unsigned keep, char *name, size_t size) {
    char from[PATH_MAX], to[PATH_MAX];
    struct stat st;
    if (strlen(path) + TAIL > sizeof to) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (long long stamp = (long long)time(NULL);; stamp++) { // a name that is free
        (void)snprintf(to, sizeof to, "%s.broken-%lld", path, stamp);
        if (lstat(to, &st) != 0) break;
    }
    if (rename(path, to) != 0 && errno != ENOENT) return false;
    (void)snprintf(name, size, "%s", to);
    strcat(to, "-wal");
    (void)snprintf(from, sizeof from, "%s-wal", path);
    (void)rename(from, to);
    (void)snprintf(from, sizeof from, "%s-shm", path);
    (void)unlink(from);
    if (keep) remove_old_broken(path, keep);
    return true;
}
