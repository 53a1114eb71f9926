// SPDX-License-Identifier: Apache-2.0
#include "storage/store/files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/std_fds.h"
#include "storage/aged_files.h"
#include "storage/hash.h"
#include "storage/sessions/path.h"

// PART_MAX_S: what is older was left by a crash; another daemon may be writing what is younger.
enum { NAME_MAX_LEN = XPL_AGED_NAME, PART_MAX_S = 600, ID_DIGITS = 32 };

struct xpl_store_files {
    uint64_t limit;
    char dir[];
};

// ---- names ----

static bool path_of(const struct xpl_store_files *f, const struct xpl_store_file_key *key,
                    const char *suffix, char *ret, size_t size) {
    char id[ID_DIGITS + 1];
    assert(key->kind[0] && !strpbrk(key->kind, "/."));
    for (size_t i = 0; i < sizeof key->profile.bytes; i++)
        (void)snprintf(id + 2 * i, 3, "%02x", key->profile.bytes[i]);
    char import[sizeof "-65535"] = "";
    if (key->import) (void)snprintf(import, sizeof import, "-%u", key->import);
    const int n = snprintf(ret, size, "%s/%s.%u.%u%s.%s%s", f->dir, id, key->variant, key->version,
                           import, key->kind, suffix);
    return n > 0 && (size_t)n < size;
}

static bool is_part(xpl_str_t name) {
    return xpl_str_ends(name, XPL_STR(".part"));
}

// Ours, of this version's naming or of the first one's ("DEV-INO-...trace").
static bool is_ours(xpl_str_t name) {
    if (name.len >= NAME_MAX_LEN) return false;
    if (xpl_str_ends(name, XPL_STR(".trace"))) return true;
    return name.len > ID_DIGITS && name.ptr[ID_DIGITS] == '.' &&
           strspn(name.ptr, "0123456789abcdef") == ID_DIGITS;
}

// ---- eviction ----

// Lists the files, and removes what a crash left.
static void list_files(DIR *d, struct xpl_aged_files *l) {
    const time_t now = time(NULL);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        const xpl_str_t name = xpl_str_from(e->d_name);
        const bool part = is_part(name);
        if ((!part && !is_ours(name)) ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (part && now - st.st_mtim.tv_sec > PART_MAX_S) (void)unlinkat(dirfd(d), e->d_name, 0);
        if (!part && !xpl_aged_files_add(l, e->d_name, &st)) return;
    }
}

// Removes the least recently used files until the rest fits, and what a crash left half written.
static void store_files_evict(struct xpl_store_files *f) {
    struct xpl_aged_files l = {0};
    DIR *const d = opendir(f->dir);
    if (!d) return;
    list_files(d, &l);
    xpl_aged_files_sort(&l);
    for (size_t i = 0; f->limit && i < l.n && l.bytes > f->limit; i++)
        if (unlinkat(dirfd(d), l.v[i].name, 0) == 0) l.bytes -= l.v[i].bytes;
    xpl_aged_files_fini(&l);
    (void)closedir(d);
}

// ---- life ----

xpl_status_t xpl_store_files_new(const char *dir, uint64_t limit_bytes,
                                 struct xpl_store_files **ret, struct xpl_error *err) {
    const size_t len = strlen(dir) + 1;
    if (len == 1 || len > PATH_MAX - NAME_MAX_LEN)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "files of the store: no directory, or too long");
    if ((mkdir(dir, 0700) != 0 && errno != EEXIST) || access(dir, W_OK | X_OK) != 0) {
        char why[96];
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: %s",
                         xpl_path_shown(dir, &(struct xpl_path_text){0}),
                         strerror_r(errno, why, sizeof why));
    }
    struct xpl_store_files *f = xpl_sys_alloc(sizeof *f + len);
    if (!f) XPL_RETURN_OOM(err, "files of the store");
    f->limit = limit_bytes;
    memcpy(f->dir, dir, len);
    store_files_evict(f);
    *ret = f;
    return XPL_OK;
}

void xpl_store_files_free(struct xpl_store_files *f) {
    xpl_sys_free(f);
}

// ---- one file ----

// What a file begins with; its bytes follow, aligned as in memory.
struct head {
    char magic[8];
    struct xpl_profile_id profile;
    char kind[16];
    uint32_t version;
    uint16_t variant, import;
    uint64_t len; // of the bytes that follow
    uint64_t sum; // of all above
};
static_assert(sizeof(struct head) == 64, "a header has no gaps");

static struct head head_of(const struct xpl_store_file_key *key, size_t len) {
    struct head h = {.magic = "XPLFILE1",
                     .profile = key->profile,
                     .version = key->version,
                     .variant = key->variant,
                     .import = key->import,
                     .len = len};
    assert(strlen(key->kind) < sizeof h.kind);
    (void)snprintf(h.kind, sizeof h.kind, "%s", key->kind);
    h.sum = xpl_digest64((xpl_bytes_t){(const uint8_t *)&h, offsetof(struct head, sum)}, 0);
    return h;
}

// Takes the header off; false when it is another one's.
static bool take_head(struct xpl_source *src, const struct xpl_store_file_key *key) {
    const xpl_bytes_t all = xpl_source_bytes(src);
    if (all.len < sizeof(struct head)) return false;
    const struct head expected = head_of(key, all.len - sizeof(struct head));
    if (memcmp(all.ptr, &expected, sizeof expected) != 0) return false;
    xpl_source_skip(src, sizeof expected);
    return true;
}

xpl_status_t xpl_store_files_open(struct xpl_store_files *f, const struct xpl_store_file_key *key,
                                  struct xpl_source **ret, struct xpl_error *err) {
    char path[PATH_MAX];
    if (!path_of(f, key, "", path, sizeof path))
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "the name is too long");
    struct xpl_source *src = NULL;
    XPL_TRY(xpl_source_open_own(path, &src, err));
    if (!take_head(src, key)) {
        xpl_source_free(src);
        (void)unlink(path);
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "%s: its content does not match its name; it is removed",
                         xpl_path_shown(path, &(struct xpl_path_text){0}));
    }
    *ret = src;
    // The use is noted by the time of its last change, as times of reading are often off.  A source
    // of others' files would take that for a change, and the next one would wait for a tick.
    (void)utimensat(AT_FDCWD, path, (struct timespec[]){{0, UTIME_NOW}, {0, UTIME_NOW}}, 0);
    return XPL_OK;
}

static xpl_status_t fail_write(const char *path, int os, struct xpl_error *err) {
    char why[96];
    const bool full = os == ENOSPC || os == EDQUOT || os == EFBIG || os == EMFILE || os == ENFILE;
    XPL_RETURN_ERROR(err, full ? XPL_RESOURCE_EXHAUSTED : XPL_UNAVAILABLE,
                     "%s: cannot be written: %s", xpl_path_shown(path, &(struct xpl_path_text){0}),
                     strerror_r(os, why, sizeof why));
}

xpl_status_t xpl_store_files_put(struct xpl_store_files *f, const struct xpl_store_file_key *key,
                                 xpl_bytes_t bytes, struct xpl_error *err) {
    char path[PATH_MAX], part[PATH_MAX];
    if (f->limit && bytes.len + sizeof(struct head) > f->limit)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%zu bytes, more than the limit of %llu",
                         bytes.len, (unsigned long long)f->limit);
    if (!path_of(f, key, "", path, sizeof path) ||
        !path_of(f, key, ".XXXXXX.part", part, sizeof part))
        return fail_write(f->dir, ENAMETOOLONG, err);
    const int fd = mkostemps(part, sizeof ".part" - 1, O_CLOEXEC);
    if (fd < 0) return fail_write(path, errno, err);
    const struct head head = head_of(key, bytes.len);
    bool ok = xpl_write_all(fd, &head, sizeof head) && xpl_write_all(fd, bytes.ptr, bytes.len);
    int os = ok ? 0 : errno;
    if (close(fd) != 0 && ok) ok = false, os = errno;
    if (ok && rename(part, path) != 0) ok = false, os = errno;
    if (!ok) {
        (void)unlink(part);
        return fail_write(path, os, err);
    }
    store_files_evict(f);
    return XPL_OK;
}

void xpl_store_files_remove(struct xpl_store_files *f, const struct xpl_store_file_key *key) {
    char path[PATH_MAX];
    if (path_of(f, key, "", path, sizeof path)) (void)unlink(path);
}
