// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/removal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "storage/objects/objects.h"
#include "storage/sessions/about.h"
#include "storage/sessions/beneath.h"
#include "storage/sessions/path.h"

static xpl_status_t fail_removal(const char *path, struct xpl_error *err) {
    const xpl_status_t code =
        errno == ENOENT                                        ? XPL_NOT_FOUND
        : errno == EACCES || errno == EPERM || errno == EROFS  ? XPL_PERMISSION_DENIED
        : errno == ENOTDIR || errno == ELOOP || errno == EXDEV ? XPL_FAILED_PRECONDITION
                                                               : XPL_UNAVAILABLE;
    XPL_RETURN_ERROR(err, code, "cannot remove %.120s: %s", path,
                     errno == ENOTDIR || errno == ELOOP || errno == EXDEV
                         ? "it is not a directory, or is reached through a link"
                         : strerror(errno));
}

// Files that XProf, TensorFlow and JAX put next to the profiles of a session: their cached answers,
// and files that older versions wrote instead of a profile.
static const char *const companion_tails[] = {
    ".hlo_proto.pb",
    ".op_stats.pb",
    ".op_stats_v2.pb",
    ".trace.json.gz",
    ".memory_profile.json.gz",
    ".SSTABLE", // also .metadata.SSTABLE and .trie.SSTABLE
    ".smart_suggestion.pb",
    ".dcn_collective_stats.pb",
    ".tracetable",
    ".input_pipeline.pb",
    ".input_pipeline.json",
    ".overview_page.pb",
    ".overview_page.json",
    ".kernel_stats.pb",
    ".tensorflow_stats.pb",
    ".framework_op_stats.pb",
    ".op_profile.json",
    ".memory_viewer.json",
    ".pod_viewer.json",
    NULL,
};
static const char *const companion_names[] = {"cache_version.txt", ".cached_tools.json",
                                              "perfetto_trace.json.gz", NULL};

static bool is_companion(xpl_str_t name) {
    for (const char *const *t = companion_tails; *t; t++)
        if (name.len > strlen(*t) && xpl_str_ends(name, xpl_str_from(*t))) return true;
    for (const char *const *n = companion_names; *n; n++)
        if (xpl_str_eq(name, xpl_str_from(*n))) return true;
    return false;
}

// Whether the file is removed with its session: profiles that can be read, and our notes; in one of
// XProf's run directories (`run`) also other profiles, and XProf's files next to profiles.
static bool session_owns_file(xpl_str_t name, xpl_profile_match_fn match, bool run) {
    struct xpl_profile_file file;
    if (match(name, &file) && !file.is_doubtful) return run || !file.refusal;
    if (xpl_about_is_note(name)) return true;
    return run && is_companion(name);
}

static bool is_part(xpl_str_t name) {
    return xpl_str_starts(name, XPL_STR(".xplaned-")) && xpl_str_ends(name, XPL_STR(".part"));
}

// Of capture/profile_writer.c, which holds a lock while it writes.
static void remove_part(int at, const char *name) {
    const int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(at, name, 0);
    (void)close(fd);
}

static xpl_status_t remove_files(DIR *dir, const char *path, xpl_profile_match_fn match,
                                 struct xpl_error *err) {
    xpl_str_t prefix, name;
    const bool run = xpl_path_is_run(xpl_str_from(path), &prefix, &name);
    for (const struct dirent *e; (e = readdir(dir));) {
        struct stat sb;
        if (is_part(xpl_str_from(e->d_name))) remove_part(dirfd(dir), e->d_name);
        if (!session_owns_file(xpl_str_from(e->d_name), match, run)) continue;
        if (fstatat(dirfd(dir), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(sb.st_mode))
            continue;
        if (unlinkat(dirfd(dir), e->d_name, 0) != 0 && errno != ENOENT)
            return fail_removal(path, err);
    }
    return XPL_OK;
}

// Profiles of all formats, and files that are being written.
struct contents {
    uint64_t n, bytes;
    int64_t newest_ms; // since 1970: when the last one was written, moved here or linked
};

static struct contents count_files(DIR *dir, xpl_profile_match_fn match) {
    struct contents all = {0};
    for (const struct dirent *e; (e = readdir(dir));) {
        const xpl_str_t name = xpl_str_from(e->d_name);
        struct stat sb;
        struct xpl_profile_file file;
        const bool is_profile = match(name, &file) && !file.is_doubtful;
        if (!is_profile && !xpl_str_ends(name, XPL_STR(".part"))) continue;
        all.n++;
        if (fstatat(dirfd(dir), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) != 0) continue;
        const int64_t written = (int64_t)sb.st_mtim.tv_sec * 1000 + sb.st_mtim.tv_nsec / 1000000,
                      linked = (int64_t)sb.st_ctim.tv_sec * 1000 + sb.st_ctim.tv_nsec / 1000000;
        all.bytes += (uint64_t)sb.st_size;
        if (written > all.newest_ms) all.newest_ms = written;
        if (linked > all.newest_ms) all.newest_ms = linked;
    }
    return all;
}

static xpl_status_t check_made(const char *path, uint64_t n_profiles, int64_t newest_ms,
                               const struct xpl_session_made *made, struct xpl_error *err) {
    if (n_profiles > made->n_hosts)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%.120s has profiles of others; it is not removed", path);
    if (newest_ms > made->at_ms)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%.120s has profiles that were written later; it is not removed", path);
    return XPL_OK;
}

static xpl_status_t check_directory(DIR *dir, const char *path, xpl_profile_match_fn match,
                                    const struct xpl_session_made *made, struct xpl_error *err) {
    if (!made) return XPL_OK;
    const struct contents all = count_files(dir, match);
    rewinddir(dir);
    return check_made(path, all.n, all.newest_ms, made, err);
}

static xpl_status_t remove_from(int top, const char *path, xpl_profile_match_fn match, uint64_t dev,
                                uint64_t ino, const struct xpl_session_made *made,
                                struct xpl_error *err) {
    DIR *const dir = xpl_beneath_opendir(top, path);
    struct stat sb;
    if (!dir) return fail_removal(path, err);
    xpl_status_t st = XPL_OK;
    if (fstat(dirfd(dir), &sb) != 0)
        st = fail_removal(path, err);
    else if (ino && ((uint64_t)sb.st_ino != ino || (uint64_t)sb.st_dev != dev))
        st = xpl_error_set(err, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                           "%.120s is another directory now; it is not removed", path);
    else if ((st = check_directory(dir, path, match, made, err)) == XPL_OK)
        st = remove_files(dir, path, match, err);
    (void)closedir(dir);
    return st;
}

xpl_status_t xpl_session_remove(const char *logdir, const char *path, xpl_profile_match_fn match,
                                uint64_t dev, uint64_t ino, const struct xpl_session_made *made,
                                struct xpl_error *err) {
    const int top = open(logdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) return fail_removal(logdir, err);
    const xpl_status_t st = remove_from(top, path, match, dev, ino, made, err);
    // Other files keep the directory; that is not an error.
    if (st == XPL_OK) (void)xpl_beneath_rmdir(top, path);
    (void)close(top);
    return st;
}

uint64_t xpl_session_count_files(const char *logdir, const char *path, xpl_profile_match_fn match,
                                 uint64_t *ret_bytes) {
    const int top = open(logdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    DIR *const dir = top >= 0 ? xpl_beneath_opendir(top, path) : NULL;
    const struct contents all = dir ? count_files(dir, match) : (struct contents){0};
    if (ret_bytes) *ret_bytes = all.bytes;
    if (dir) (void)closedir(dir);
    if (top >= 0) (void)close(top);
    return all.n;
}

// ---- from a bucket ----

// PAGES: of the directory, 1,000 names each.  CLOCK_MS: the maximum difference between the clocks
// of store and daemon; stores refuse signatures that differ more.
enum { PAGES = 1000, MAX_NAMES = 64 << 20, CLOCK_MS = 15 * 60 * 1000 };

struct name {
    struct name *next;
    xpl_str_t path;
};

struct listed {
    xpl_profile_match_fn match;
    xpl_str_t dir;
    bool run, cut;
    struct xpl_arena arena;
    struct name *profiles, *others;
    uint64_t n_profiles;
    int64_t newest_ns; // profile
};

static bool on_object(void *arg, const struct xpl_stored_object *o) {
    struct listed *const l = arg;
    struct xpl_profile_file file;
    if (!session_owns_file(o->path, l->match, l->run)) return true;
    const bool top = xpl_str_eq(l->dir, XPL_STR("."));
    const bool profile = l->match(o->path, &file) && !file.is_doubtful;
    struct name *const n = xpl_arena_alloc(&l->arena, sizeof *n);
    if (!n || !xpl_arena_printf(&l->arena, &n->path, "%.*s%s%.*s", top ? 0 : (int)l->dir.len,
                                l->dir.ptr, top ? "" : "/", XPL_STR_FMT(o->path)))
        return false;
    struct name **const to = profile ? &l->profiles : &l->others;
    n->next = *to;
    *to = n;
    l->n_profiles += profile;
    if (profile && o->mtime_ns > l->newest_ns) l->newest_ns = o->mtime_ns;
    return true;
}

static bool on_folder(void *arg, xpl_str_t name) {
    (void)arg;
    (void)name;
    return true;
}

static xpl_status_t check_listed(const struct listed *l, const struct xpl_session_made *made,
                                 struct xpl_error *err) {
    struct xpl_path_text shown;
    const char *const path = xpl_path_shown(l->dir.ptr, &shown);
    if (l->cut)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "cannot remove %.120s: it has more than %d objects", path, PAGES * 1000);
    if (!l->profiles && !l->others)
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "cannot remove %.120s: nothing of a session is there",
                         path);
    return made ? check_made(path, l->n_profiles, l->newest_ns / 1000000 - CLOCK_MS, made, err)
                : XPL_OK;
}

static xpl_status_t remove_all(struct xpl_objects *o, const struct name *n, struct xpl_error *err) {
    for (; n; n = n->next)
        XPL_TRY(xpl_objects_remove(o, n->path, err));
    return XPL_OK;
}

xpl_status_t xpl_session_remove_objects(struct xpl_objects *o, const char *path,
                                        xpl_profile_match_fn match,
                                        const struct xpl_session_made *made,
                                        struct xpl_error *err) {
    xpl_str_t prefix, name;
    struct listed l = {.match = match,
                       .dir = xpl_str_from(path),
                       .run = xpl_path_is_run(xpl_str_from(path), &prefix, &name)};
    struct xpl_object_list list = {
        .object = on_object, .folder = on_folder, .arg = &l, .max_pages = PAGES};
    xpl_arena_init(&l.arena, MAX_NAMES);
    xpl_status_t st = xpl_objects_list(o, l.dir, &list, err);
    l.cut = list.cut;
    if (st == XPL_OK) st = check_listed(&l, made, err);
    if (st == XPL_OK) st = remove_all(o, l.others, err);
    if (st == XPL_OK) st = remove_all(o, l.profiles, err);
    xpl_arena_fini(&l.arena);
    return st;
}

// ---- interrupted captures ----

static DIR *open_at(int at, const char *name) {
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0) (void)close(fd);
    return dir;
}

// Of capture/shared.c.
static void remove_shared(int at, const char *name) {
    DIR *const dir = open_at(at, name);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) (void)closedir(dir);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

static void clean_directory(DIR *dir) {
    for (const struct dirent *e; (e = readdir(dir));) {
        const xpl_str_t name = xpl_str_from(e->d_name);
        if (is_part(name))
            remove_part(dirfd(dir), e->d_name);
        else if (xpl_str_starts(name, XPL_STR(".xplaned-")))
            remove_shared(dirfd(dir), e->d_name);
    }
}

bool xpl_session_locate(const char *logdir, xpl_str_t name, struct xpl_session_place *ret) {
    struct xpl_session_path below;
    struct stat sb;
    char *const root = realpath(logdir, NULL);
    if (!root) return false;
    (void)snprintf(ret->path, sizeof ret->path, "%s/%s", root, xpl_session_path(name, &below));
    free(root);
    if (lstat(ret->path, &sb) != 0) return false;
    ret->dev = (uint64_t)sb.st_dev;
    ret->ino = (uint64_t)sb.st_ino;
    return true;
}

void xpl_session_clean(const char *path, uint64_t dev, uint64_t ino) {
    const char *const relative = path + strspn(path, "/");
    const int top = path[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *const dir = top >= 0 ? xpl_beneath_opendir(top, relative) : NULL;
    struct stat sb;
    const bool same = dir && (!ino || (fstat(dirfd(dir), &sb) == 0 && (uint64_t)sb.st_dev == dev &&
                                       (uint64_t)sb.st_ino == ino));
    if (same) clean_directory(dir);
    if (same) (void)xpl_beneath_rmdir(top, relative); // unless whole profiles are in it
    if (dir) (void)closedir(dir);
    if (top >= 0) (void)close(top);
}
