// SPDX-License-Identifier: Apache-2.0
#include "storage/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool xpl_place_join(const char *dir, xpl_str_t name, char *ret, size_t size) {
    const int n = snprintf(ret, size, "%s/%.*s", dir, XPL_STR_FMT(name));
    if (n >= 0 && (size_t)n < size) return true;
    if (size) ret[0] = 0;
    return false;
}

bool xpl_place_resolve(const char *path, char ret[PATH_MAX]) {
    char real[PATH_MAX];
    if (!realpath(path, real)) return false;
    (void)strcpy(ret, real);
    return true;
}

bool xpl_place_make_absolute(const char *path, char ret[PATH_MAX]) {
    char cwd[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(cwd, sizeof cwd)) return false;
    if (strlen(cwd) + 1 + strlen(path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    size_t n = (size_t)snprintf(ret, PATH_MAX, "%s%s%s", cwd, cwd[0] ? "/" : "", path);
    while (n > 1 && ret[n - 1] == '/')
        ret[--n] = 0;
    return true;
}
