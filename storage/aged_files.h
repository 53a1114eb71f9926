// SPDX-License-Identifier: Apache-2.0
// Files of a directory by age: what is removed first where they take too much room.
//
// Threads: a list is its owner's.
#ifndef XPL_STORAGE_AGED_FILES_H_
#define XPL_STORAGE_AGED_FILES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

enum { XPL_AGED_NAME = 160 }; // bytes of a name, with its end

struct xpl_aged_file {
    char name[XPL_AGED_NAME];
    struct timespec mtime; // in two parts: one number of ns overflows after the year 2262
    uint64_t bytes;
};
struct xpl_aged_files { // zeroed, then fini
    struct xpl_aged_file *v;
    size_t n, cap;
    uint64_t bytes; // of all of them
};

// The name is shorter than XPL_AGED_NAME.  False without memory.
bool xpl_aged_files_add(struct xpl_aged_files *l, const char *name, const struct stat *st);
// The one that was changed first comes first.
void xpl_aged_files_sort(struct xpl_aged_files *l);
void xpl_aged_files_fini(struct xpl_aged_files *l);

#endif
