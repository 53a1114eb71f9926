// SPDX-License-Identifier: Apache-2.0
#include "sql/guard/scratch.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

enum { CHUNK = 64 << 10 };

struct file { // begins as SQLite's does
    sqlite3_file base;
    char **chunks;
    sqlite3_int64 n, cap; // of chunks
    sqlite3_int64 size;
};

static sqlite3_vfs g_vfs;
static sqlite3_vfs *g_system;

// ---- bytes ----

static int file_read(sqlite3_file *base, void *to, int n, sqlite3_int64 at) {
    const struct file *const f = (const struct file *)base;
    char *out = to;
    while (n > 0 && at < f->size) {
        const sqlite3_int64 in_chunk = at % CHUNK, left = f->size - at;
        sqlite3_int64 k = CHUNK - in_chunk < n ? CHUNK - in_chunk : n;
        if (k > left) k = left;
        memcpy(out, f->chunks[at / CHUNK] + in_chunk, (size_t)k);
        out += k;
        at += k;
        n -= (int)k;
    }
    if (n <= 0) return SQLITE_OK;
    memset(out, 0, (size_t)n);
    return SQLITE_IOERR_SHORT_READ;
}

static int make_room(struct file *f, sqlite3_int64 size) {
    const sqlite3_int64 chunks = (size + CHUNK - 1) / CHUNK;
    if (chunks > f->cap) {
        const sqlite3_int64 cap = chunks > 2 * f->cap ? chunks : 2 * f->cap;
        char **const p = sqlite3_realloc64(f->chunks, (sqlite3_uint64)cap * sizeof *p);
        if (!p) return SQLITE_IOERR_NOMEM;
        f->chunks = p;
        f->cap = cap;
    }
    while (f->n < chunks) {
        char *const chunk = sqlite3_malloc(CHUNK);
        if (!chunk) return SQLITE_IOERR_NOMEM;
        memset(chunk, 0, CHUNK);
        f->chunks[f->n++] = chunk;
    }
    return SQLITE_OK;
}

static int file_write(sqlite3_file *base, const void *from, int n, sqlite3_int64 at) {
    struct file *const f = (struct file *)base;
    const char *in = from;
    const int rc = make_room(f, at + n);
    if (rc != SQLITE_OK) return rc;
    if (f->size < at + n) f->size = at + n;
    while (n > 0) {
        const sqlite3_int64 in_chunk = at % CHUNK;
        const sqlite3_int64 k = CHUNK - in_chunk < n ? CHUNK - in_chunk : n;
        memcpy(f->chunks[at / CHUNK] + in_chunk, in, (size_t)k);
        in += k;
        at += k;
        n -= (int)k;
    }
    return SQLITE_OK;
}

// The truncated part reads as zeros when the file grows again.  A write that found no room for all
// of its chunks leaves some behind the end; these are freed, too.
static int file_truncate(sqlite3_file *base, sqlite3_int64 size) {
    struct file *const f = (struct file *)base;
    if (size > f->size) return SQLITE_OK;
    const sqlite3_int64 chunks = (size + CHUNK - 1) / CHUNK;
    while (f->n > chunks)
        sqlite3_free(f->chunks[--f->n]);
    const size_t kept = (size_t)(size % CHUNK);
    if (kept) memset(f->chunks[chunks - 1] + kept, 0, CHUNK - kept);
    f->size = size;
    return SQLITE_OK;
}

static int file_close(sqlite3_file *base) {
    struct file *const f = (struct file *)base;
    (void)file_truncate(base, 0);
    sqlite3_free(f->chunks);
    f->chunks = NULL;
    f->cap = 0;
    return SQLITE_OK;
}

// ---- the other methods of a file ----

static int file_size(sqlite3_file *base, sqlite3_int64 *ret) {
    *ret = ((const struct file *)base)->size;
    return SQLITE_OK;
}

// Nobody else has the file, and nothing of it outlives the process.
static int file_no_op(sqlite3_file *base, int flags) {
    (void)base, (void)flags;
    return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *base, int *ret) {
    (void)base;
    *ret = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *arg) {
    (void)base, (void)op, (void)arg;
    return SQLITE_NOTFOUND;
}

static int file_zero(sqlite3_file *base) {
    (void)base;
    return 0;
}

static const sqlite3_io_methods kMethods = {.iVersion = 1,
                                            .xClose = file_close,
                                            .xRead = file_read,
                                            .xWrite = file_write,
                                            .xTruncate = file_truncate,
                                            .xSync = file_no_op,
                                            .xFileSize = file_size,
                                            .xLock = file_no_op,
                                            .xUnlock = file_no_op,
                                            .xCheckReservedLock = file_is_reserved,
                                            .xFileControl = file_control,
                                            .xSectorSize = file_zero,
                                            .xDeviceCharacteristics = file_zero};

// ---- the file system ----

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                     int *ret_flags) {
    (void)vfs;
    if (name) return g_system->xOpen(g_system, name, base, flags, ret_flags);
    struct file *const f = (struct file *)base;
    *f = (struct file){.base = {&kMethods}};
    if (ret_flags) *ret_flags = flags;
    return SQLITE_OK;
}

static void set_up(void) {
    g_system = sqlite3_vfs_find(NULL);
    if (!g_system) return;
    g_vfs = *g_system;
    g_vfs.zName = "xplaned-scratch";
    g_vfs.xOpen = open_file;
    if (g_vfs.szOsFile < (int)sizeof(struct file)) g_vfs.szOsFile = sizeof(struct file);
    if (sqlite3_vfs_register(&g_vfs, 0) != SQLITE_OK) g_system = NULL;
}

const char *xpl_sql_scratch_name(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, set_up);
    return g_system ? g_vfs.zName : NULL;
}
