// SPDX-License-Identifier: Apache-2.0
#include "storage/aged_files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

bool xpl_aged_files_add(struct xpl_aged_files *l, const char *name, const struct stat *st) {
    const size_t len = strlen(name);
    assert(len < XPL_AGED_NAME);
    if (l->n == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 64;
        struct xpl_aged_file *const grown = xpl_sys_realloc(l->v, cap * sizeof *l->v);
        if (!grown) return false;
        l->v = grown;
        l->cap = cap;
    }
    struct xpl_aged_file *const f = &l->v[l->n++];
    memcpy(f->name, name, len + 1);
    f->mtime = st->st_mtim;
    f->bytes = (uint64_t)st->st_size;
    l->bytes += f->bytes;
    return true;
}

static int older_first(const void *pa, const void *pb) {
    const struct timespec *const a = &((const struct xpl_aged_file *)pa)->mtime,
                                 *const b = &((const struct xpl_aged_file *)pb)->mtime;
    if (a->tv_sec != b->tv_sec) return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

void xpl_aged_files_sort(struct xpl_aged_files *l) {
    if (l->n) qsort(l->v, l->n, sizeof *l->v, older_first);
}

void xpl_aged_files_fini(struct xpl_aged_files *l) {
    xpl_sys_free(l->v);
    *l = (struct xpl_aged_files){0};
}
