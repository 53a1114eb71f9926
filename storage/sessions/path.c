// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/path.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/near.h"
#include "base/text/utf8.h"
#include "storage/sessions/layout.h"
#include "storage/sessions/source.h"

bool xpl_name_escape(struct xpl_arena *arena, xpl_str_t raw, xpl_str_t *ret) {
    size_t bad = 0, percent = 0;
    for (size_t i = 0, n; i < raw.len; i += n ? n : 1) {
        n = xpl_utf8_next(xpl_str_sub(raw, i, 4));
        bad += n == 0;
        percent += raw.ptr[i] == '%';
    }
    if (!bad) return xpl_arena_str(arena, raw, ret);
    char *out = xpl_arena_alloc(arena, raw.len + 2 * (bad + percent) + 1), *p = out;
    if (!out) return false;
    for (size_t i = 0, n; i < raw.len; i += n ? n : 1) {
        n = xpl_utf8_next(xpl_str_sub(raw, i, 4));
        if (n == 0 || raw.ptr[i] == '%') {
            static const char hex[] = "0123456789ABCDEF";
            const unsigned char c = (unsigned char)raw.ptr[i];
            *p++ = '%', *p++ = hex[c >> 4], *p++ = hex[c & 15];
        } else {
            memcpy(p, raw.ptr + i, n);
            p += n;
        }
    }
    *p = 0;
    *ret = (xpl_str_t){out, (size_t)(p - out)};
    return true;
}

xpl_str_t xpl_path_last(const char *path) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t at = end;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return (xpl_str_t){path + at, end - at};
}

bool xpl_path_is_run(xpl_str_t path, xpl_str_t *ret_prefix, xpl_str_t *ret_run) {
    static const char dir[] = XPL_SESSIONS_DIR "/";
    enum { LEN = sizeof dir - 1 };
    const char *const slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    const size_t run = slash ? (size_t)(slash - path.ptr) + 1 : 0;
    if (run < LEN || memcmp(path.ptr + run - LEN, dir, LEN) != 0) return false;
    const size_t prefix = run - LEN;
    if (prefix && path.ptr[prefix - 1] != '/') return false;
    *ret_prefix = xpl_str_sub(path, 0, prefix);
    *ret_run = xpl_str_sub(path, run, path.len);
    return true;
}

const char *xpl_path_shown(const char *path, struct xpl_path_text *text) {
    enum { SHOWN = 120 };
    const size_t n = strlen(path);
    if (n <= SHOWN) return path;
    size_t cut = n - SHOWN;
    while (cut < n && xpl_utf8_inside(path[cut]))
        cut++; // not in the middle of a character
    (void)snprintf(text->text, sizeof text->text, "...%s", path + cut);
    return text->text;
}

xpl_status_t xpl_path_fail(int errnum, const char *what, const char *path, struct xpl_error *err) {
    xpl_status_t code = XPL_INTERNAL;
    if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == ENAMETOOLONG)
        code = XPL_NOT_FOUND;
    else if (errnum == EACCES || errnum == EPERM)
        code = XPL_PERMISSION_DENIED;
    else if (errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM)
        code = XPL_RESOURCE_EXHAUSTED;
    else if (errnum == ESTALE) // of a network's file system
        code = XPL_ABORTED;
    char buf[96];
    XPL_RETURN_ERROR(err, code, "%s: cannot %s: %s",
                     xpl_path_shown(path, &(struct xpl_path_text){0}), what,
                     code == XPL_ABORTED ? "the file was replaced or removed on its server"
                                         : strerror_r(errnum, buf, sizeof buf));
}

// An entry of `dir` with a similar name, as a hint; "" for none.
static const char *near_entry(const char *dir, xpl_str_t name, char hint[XPL_NEAR_TEXT]) {
    struct xpl_near near = xpl_near_begin(name);
    char best[NAME_MAX + 1];
    DIR *const d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !xpl_utf8_is_shown(xpl_str_from(e->d_name))) continue;
        xpl_near_add(&near, xpl_str_from(e->d_name));
        if (near.best.ptr != e->d_name) continue;
        (void)snprintf(best, sizeof best, "%s", e->d_name); // the next entry takes its place
        near.best.ptr = best;
    }
    if (d) (void)closedir(d);
    return xpl_near_text(&near, hint);
}

xpl_status_t xpl_path_fail_near(int errnum, const char *path, struct xpl_error *err) {
    struct xpl_error why = {0};
    char dir[PATH_MAX], hint[XPL_NEAR_TEXT] = "";
    const xpl_status_t st = xpl_path_fail(errnum, "open", path, &why);
    size_t n = strlen(path), end = n;
    if (errnum == ENOENT && n && n < sizeof dir) {
        memcpy(dir, path, n + 1);
        do { // up to a directory that is there
            while (n && dir[n - 1] == '/')
                n--;
            for (end = n; n && dir[n - 1] != '/';)
                n--;
            dir[n] = 0;
        } while (n && access(dir, F_OK) != 0);
        (void)near_entry(n ? dir : ".", (xpl_str_t){path + n, end - n}, hint);
    }
    XPL_RETURN_ERROR(err, st, "%s%s", why.msg, hint);
}

bool xpl_path_inside(int fd, const char *root) {
    char link[48], real[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, real, sizeof real - 1);
    if (n <= 0) return false;
    real[n] = 0;
    size_t len = strlen(root);
    if (len && root[len - 1] == '/') len--; // the root of the file system
    return (size_t)n >= len && memcmp(real, root, len) == 0 && (real[len] == 0 || real[len] == '/');
}

static int64_t ns_of(struct timespec t) {
    return (int64_t)((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

struct xpl_fingerprint xpl_fingerprint_of(const struct stat *st) {
    return (struct xpl_fingerprint){.dev = st->st_dev,
                                    .ino = st->st_ino,
                                    .size = (uint64_t)st->st_size,
                                    .mtime_ns = ns_of(st->st_mtim),
                                    .ctime_ns = ns_of(st->st_ctim)};
}

bool xpl_fingerprint_eq(const struct xpl_fingerprint *a, const struct xpl_fingerprint *b) {
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}
