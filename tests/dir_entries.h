// SPDX-License-Identifier: Apache-2.0
// How many entries a directory has.
#ifndef XPL_TESTS_DIR_ENTRIES_H_
#define XPL_TESTS_DIR_ENTRIES_H_

#include <dirent.h>

// Hidden ones included; -1 when it is not there.
static inline int entries(const char *path) {
    DIR *const d = opendir(path);
    int n = 0;
    if (!d) return -1;
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n - 2;
}

#endif
