// SPDX-License-Identifier: Apache-2.0
// mkdir -p.
#ifndef XPL_STORAGE_MAKE_DIRS_H_
#define XPL_STORAGE_MAKE_DIRS_H_

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

// Makes the directory, and those above it that are missing.  False, with errno, when one could not
// be made.
static inline bool xpl_make_dirs(const char *dir, mode_t mode) {
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/", dir);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        if (mkdir(path, mode) != 0 && errno != EEXIST) return false;
        *p = '/';
    }
    struct stat st; // a link to what is missing exists, too
    if (stat(dir, &st) != 0) return false;
    if (!S_ISDIR(st.st_mode)) errno = ENOTDIR;
    return S_ISDIR(st.st_mode);
}

#endif
