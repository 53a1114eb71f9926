// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/outgoing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "storage/make_dirs.h"
#include "storage/objects/objects.h"
#include "storage/sessions/layout.h"

// MAX_DEPTH: of a removal, plugins/profile/SESSION/HIDDEN.  PAGES: as many as a scan reads.
enum { MAX_DEPTH = 8, PAGES = 1000 };
#define NAME "session-"

struct xpl_outgoing {
    struct xpl_session_remote remote;
    struct xpl_objects *objects;
    uint64_t limit;
    atomic_uint_fast64_t held;
    int parent, fd; // fd: locked as long as the process lives
    char dir[PATH_MAX];
};

static xpl_status_t fail_spool(const char *what, struct xpl_error *err) {
    char why[96];
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the upload spool directory: %s: %s", what,
                     strerror_r(errno, why, sizeof why));
}

// ---- removing ----

static void remove_tree(int at, const char *name, int depth) {
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (unlinkat(dirfd(d), e->d_name, 0) != 0 && depth < MAX_DEPTH)
            remove_tree(dirfd(d), e->d_name, depth + 1);
    }
    if (d)
        (void)closedir(d);
    else if (fd >= 0)
        (void)close(fd);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

// Removes the spools of processes that have ended.
static void sweep(int parent) {
    const int again = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const d = again >= 0 ? fdopendir(again) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!xpl_str_starts(xpl_str_from(e->d_name), XPL_STR(NAME))) continue;
        const int fd = openat(parent, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) remove_tree(parent, e->d_name, 0);
        (void)close(fd);
    }
    if (d)
        (void)closedir(d);
    else if (again >= 0)
        (void)close(again);
}

// ---- the interface for session writers ----

static struct xpl_outgoing *outgoing_of(struct xpl_session_remote *r) {
    return (struct xpl_outgoing *)(void *)((char *)r - offsetof(struct xpl_outgoing, remote));
}

struct search {
    xpl_str_t file;
    bool found;
};

static bool on_object(void *arg, const struct xpl_stored_object *o) {
    struct search *const s = arg;
    s->found |= !s->file.len || xpl_str_eq(o->path, s->file);
    return true;
}

static bool on_folder(void *arg, xpl_str_t name) {
    struct search *const s = arg;
    (void)name;
    s->found |= !s->file.len;
    return true;
}

static xpl_status_t outgoing_has(struct xpl_session_remote *r, const char *name, xpl_str_t file,
                                 bool *ret, struct xpl_error *err) {
    struct search s = {.file = file};
    struct xpl_session_path path;
    struct xpl_object_list list = {
        .object = on_object, .folder = on_folder, .arg = &s, .max_pages = file.len ? PAGES : 1};
    const char *const dir = xpl_session_path(xpl_str_from(name), &path);
    XPL_TRY(xpl_objects_list(outgoing_of(r)->objects, xpl_str_from(dir), &list, err));
    *ret = s.found;
    return XPL_OK;
}

static void path_of(const char *name, const char *file, char ret[PATH_MAX]) {
    struct xpl_session_path path;
    (void)snprintf(ret, PATH_MAX, "%s/%s", xpl_session_path(xpl_str_from(name), &path), file);
}

static xpl_status_t send_file(struct xpl_session_remote *r, const char *name, const char *file,
                              int fd, const struct xpl_cancel *cancel, struct xpl_error *err) {
    char path[PATH_MAX];
    struct stat sb;
    path_of(name, file, path);
    if (fstat(fd, &sb) != 0) return fail_spool("a file cannot be read", err);
    return xpl_objects_put(outgoing_of(r)->objects, xpl_str_from(path), fd, (uint64_t)sb.st_size,
                           cancel, err);
}

static void remove_file(struct xpl_session_remote *r, const char *name, const char *file) {
    char path[PATH_MAX];
    path_of(name, file, path);
    (void)!xpl_objects_remove(outgoing_of(r)->objects, xpl_str_from(path), NULL);
}

static xpl_status_t take_room(struct xpl_session_remote *r, uint64_t bytes, struct xpl_error *err) {
    struct xpl_outgoing *const o = outgoing_of(r);
    const uint64_t before = atomic_fetch_add(&o->held, bytes);
    if (before + bytes <= o->limit) return XPL_OK;
    atomic_fetch_sub(&o->held, bytes);
    XPL_RETURN_ERROR(
        err, XPL_RESOURCE_EXHAUSTED,
        "pending uploads exceed %llu bytes: wait for other captures and imports, or raise "
        "--object-cache",
        (unsigned long long)o->limit);
}

static void give_room(struct xpl_session_remote *r, uint64_t bytes) {
    atomic_fetch_sub(&outgoing_of(r)->held, bytes);
}

// ---- life ----

static xpl_status_t open_dirs(struct xpl_outgoing *o, const char *dir, struct xpl_error *err) {
    char *const real = xpl_make_dirs(dir, 0700) ? realpath(dir, NULL) : NULL;
    if (!real) return fail_spool("it cannot be made", err);
    const int n = snprintf(o->dir, sizeof o->dir, "%s/" NAME "XXXXXX", real);
    o->parent = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(real);
    if (o->parent < 0 || n < 0 || (size_t)n >= sizeof o->dir)
        return fail_spool("it cannot be opened", err);
    sweep(o->parent);
    if (!mkdtemp(o->dir)) return fail_spool("nothing can be made in it", err);
    o->fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // A sweep between these two lines removes it, and the next try makes another one.
    if (o->fd < 0 || flock(o->fd, LOCK_SH | LOCK_NB) != 0 || access(o->dir, F_OK) != 0)
        return fail_spool("nothing can be made in it", err);
    return XPL_OK;
}

xpl_status_t xpl_outgoing_new(struct xpl_objects *objects, const char *dir, uint64_t limit_bytes,
                              struct xpl_outgoing **ret, struct xpl_error *err) {
    struct xpl_outgoing *const o = xpl_sys_alloc(sizeof *o);
    if (!o) XPL_RETURN_OOM(err, "object store");
    memset(o, 0, sizeof *o);
    o->objects = objects;
    o->limit = limit_bytes;
    o->parent = o->fd = -1;
    o->remote = (struct xpl_session_remote){.dir = o->dir,
                                            .device = xpl_objects_device(objects),
                                            .has = outgoing_has,
                                            .send = send_file,
                                            .remove = remove_file,
                                            .take_room = take_room,
                                            .give_room = give_room};
    const xpl_status_t st = open_dirs(o, dir, err);
    if (st != XPL_OK) {
        xpl_outgoing_free(o);
        return st;
    }
    *ret = o;
    return XPL_OK;
}

void xpl_outgoing_free(struct xpl_outgoing *o) {
    if (!o) return;
    if (o->fd >= 0) {
        remove_tree(o->parent, strrchr(o->dir, '/') + 1, 0);
        (void)close(o->fd);
    }
    if (o->parent >= 0) (void)close(o->parent);
    xpl_sys_free(o);
}

struct xpl_session_remote *xpl_outgoing_get_remote(struct xpl_outgoing *o) {
    return &o->remote;
}
