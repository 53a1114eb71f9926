// SPDX-License-Identifier: Apache-2.0
// Walks LOGDIR: reads directories whose times changed, and checks the profiles of the others.
#include "storage/sessions/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "storage/sessions/catalogue_impl.h"
#include "storage/sessions/path.h"

enum { MAX_DEPTH = 64 };
// Directory times can be as coarse as this; a directory read sooner after its last change than
// that is read again.
static const int64_t COARSE_NS = 2000000000;

static void limit_hit(struct xpl_catalogue *c, const struct xpl_dir *d, const char *what) {
    for (size_t i = 0; i < c->n_limits; i++) // one example of each kind
        if (strstr(c->limits[i], what)) return;
    if (c->n_limits == MAX_LIMITS) return;
    (void)snprintf(c->limits[c->n_limits++], sizeof c->limits[0], "%s: %s",
                   xpl_path_shown(d->path, &(struct xpl_path_text){0}), what);
}

// --- Reading one directory ---

// A link may lead out of LOGDIR only if the owner of the daemon allowed it.
static bool link_allowed(struct xpl_catalogue *c, int dirfd, const char *name) {
    if (!c->root->links_root) return true;
    const int fd = openat(dirfd, name, O_PATH | O_CLOEXEC);
    const bool ok = fd >= 0 && xpl_path_inside(fd, c->root->links_root);
    if (fd >= 0) (void)close(fd);
    return ok;
}

// An error that says nothing about whether the file is there: of a network's file system, of a
// disk, or because something ran out.
static bool is_transient(int errnum) {
    return errnum == ESTALE || errnum == EIO || errnum == ETIMEDOUT || errnum == EAGAIN ||
           errnum == EINTR || errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE;
}

// Keeps an entry whose status cannot be had: as it was known, and a new profile without times, so
// that a session never loses a host for an error that passes.  Opening the profile says why it
// cannot be read.  False on OOM only.
static bool keep_entry(struct xpl_dir *d, const struct dirent *e,
                       const struct xpl_profile_file *file, struct xpl_scan_listing *l) {
    l->incomplete = true;
    xpl_scan_note_problem_in(d, e->d_name, "its status cannot be read");
    if (xpl_scan_find(d, xpl_str_from(e->d_name))) return xpl_scan_add_child(l, d, e->d_name);
    if (!file->host.len) return true;
    const struct xpl_dir_file *const known = xpl_scan_find_file(d, e->d_name);
    if (known) return xpl_scan_add_file(l, e->d_name, file, known->link, &known->fingerprint);
    if (e->d_type != DT_REG) return true;
    return xpl_scan_add_file(l, e->d_name, file, false, &(struct xpl_fingerprint){0});
}

// Sorts one directory entry in.  False on OOM only.
static bool list_entry(struct xpl_catalogue *c, struct xpl_dir *d, int fd, const struct dirent *e,
                       struct xpl_scan_listing *l) {
    const char *const name = e->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return true;
    struct xpl_profile_file file;
    const bool is_profile = xpl_root_match(c->o.match, name, &file);
    if (e->d_type == DT_DIR) return xpl_scan_add_child(l, d, name);
    if (xpl_about_is_note(xpl_str_from(name))) xpl_about_add_file(&l->about, fd, name);
    const bool maybe_link = e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
    if (!is_profile && !maybe_link) return true;
    struct stat st;
    bool link = false;
    if (maybe_link) {
        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return !is_transient(errno) || keep_entry(d, e, &file, l); // or gone meanwhile
        link = S_ISLNK(st.st_mode);
    }
    if (fstatat(fd, name, &st, 0) != 0) {
        if (is_transient(errno)) return keep_entry(d, e, &file, l);
        if (is_profile && errno != ENOENT) xpl_scan_note_problem_in(d, name, "cannot be followed");
        if (is_profile && errno == ENOENT && link)
            xpl_scan_note_problem_in(d, name, "link to nowhere");
        return true;
    }
    if (link && (S_ISDIR(st.st_mode) || is_profile) && !link_allowed(c, fd, name)) {
        xpl_scan_note_problem_in(d, name, "link that leads out of the log directory");
        return true;
    }
    if (S_ISDIR(st.st_mode)) return xpl_scan_add_child(l, d, name);
    if (!is_profile) return true;
    const struct xpl_fingerprint fingerprint = xpl_fingerprint_of(&st);
    if (S_ISREG(st.st_mode)) return xpl_scan_add_file(l, name, &file, link, &fingerprint);
    xpl_scan_note_problem_in(d, name, "not a regular file");
    return true;
}

static bool list_single(struct xpl_catalogue *c, int fd, struct xpl_scan_listing *l) {
    struct stat st;
    struct xpl_profile_file file;
    if (!xpl_root_match(c->o.match, c->single, &file)) return true;
    if (fstatat(fd, c->single, &st, 0) != 0 || !S_ISREG(st.st_mode)) return true;
    // As a link: checked every time.
    const struct xpl_fingerprint fingerprint = xpl_fingerprint_of(&st);
    return xpl_scan_add_file(l, c->single, &file, true, &fingerprint);
}

static int open_dir(struct xpl_catalogue *c, const struct xpl_dir *d) {
    return openat(c->root->fd, d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

// False on OOM, or (with *ret_errno) when the directory cannot be read.
static bool list_dir(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_scan_listing *l,
                     int *ret_errno) {
    const int fd = open_dir(c, d);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        *ret_errno = errno;
        if (fd >= 0) (void)close(fd);
        return false;
    }
    // Between the scan of the directory above and this one a link may have taken its place.
    if (c->root->links_root && !xpl_path_inside(fd, c->root->links_root)) {
        *ret_errno = ELOOP;
        (void)closedir(dir);
        return false;
    }
    bool ok = true;
    if (c->single) {
        ok = list_single(c, fd, l);
    } else {
        const struct dirent *e;
        for (size_t i = 1; ok && (errno = 0, e = readdir(dir)); i++) {
            ok = list_entry(c, d, fd, e, l);
            if (i % CHECK_EVERY == 0 && xpl_scan_is_stopped(c)) *ret_errno = ECANCELED, ok = false;
        }
        if (ok && errno) *ret_errno = errno, ok = false;
    }
    (void)closedir(dir);
    return ok;
}

static bool is_cycle(const struct xpl_dir *d) {
    for (const struct xpl_dir *up = d->parent; up; up = up->parent)
        if (up->dev == d->dev && up->ino == d->ino) return true;
    return false;
}

static unsigned depth_of(const struct xpl_dir *d) {
    unsigned n = 0;
    for (; d->parent; d = d->parent)
        n++;
    return n;
}

static xpl_status_t stopped(struct xpl_error *err) {
    XPL_RETURN_ERROR(err, XPL_CANCELLED, "the scan of the log directory was cancelled");
}

static void cannot_read(struct xpl_catalogue *c, struct xpl_dir *d, int errnum) {
    char buf[96];
    xpl_scan_set_unread(c, d, true);
    xpl_scan_forget_problems(d);
    xpl_scan_note_problem(d, d->path, strerror_r(errnum, buf, sizeof buf));
}

static xpl_status_t read_dir(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_error *err) {
    struct xpl_scan_listing l = {0};
    int errnum = 0;
    xpl_scan_forget_problems(d);
    if (list_dir(c, d, &l, &errnum)) {
        xpl_scan_take_listing(c, d, &l);
        xpl_scan_set_unread(c, d, l.incomplete);
        return XPL_OK;
    }
    xpl_scan_listing_free(&l);
    d->marked = true; // its times were taken, and its contents were not
    if (errnum == ECANCELED) return stopped(err);
    if (!errnum || errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE)
        XPL_RETURN_OOM(err, "scanning the log directory"); // the old contents stay
    if (!d->parent) return xpl_path_fail(errnum, "read", c->o.logdir, err);
    cannot_read(c, d, errnum);
    if (!is_transient(errnum)) xpl_scan_drop_contents(c, d);
    return XPL_OK;
}

// Checks the files of a directory whose list of names has not changed.
static void stat_files(struct xpl_catalogue *c, struct xpl_dir *d) {
    char path[PATH_MAX];
    for (size_t i = 0; i < d->n_files; i++) {
        struct stat st;
        if ((i + 1) % CHECK_EVERY == 0 && xpl_scan_is_stopped(c)) return; // the walk ends, too
        const int n = d->parent ? snprintf(path, sizeof path, "%s/%s", d->path, d->files[i].name)
                                : snprintf(path, sizeof path, "%s", d->files[i].name);
        if (n < 0 || (size_t)n >= sizeof path) continue;
        if (fstatat(c->root->fd, path, &st, 0) != 0 || !S_ISREG(st.st_mode)) {
            d->marked = true; // read again, now
            return;
        }
        const struct xpl_fingerprint now = xpl_fingerprint_of(&st);
        if (xpl_fingerprint_eq(&now, &d->files[i].fingerprint)) continue;
        d->files[i].fingerprint = now;
        d->changed = c->generation + 1;
        c->changed = true;
        d->marked |= d->files[i].identify != NULL; // it may be of another process now
    }
    xpl_scan_read_time(c, d);
}

static xpl_status_t visit_gone(struct xpl_catalogue *c, struct xpl_dir *d, int errnum,
                               struct xpl_error *err) {
    if (!d->parent) return xpl_path_fail(errnum, "read", c->o.logdir, err);
    if (is_transient(errnum)) {
        d->marked = true;
        cannot_read(c, d, errnum);
        return XPL_OK;
    }
    d->parent->marked = true; // the next scan asks the parent whether it is still there
    xpl_scan_drop_contents(c, d);
    return XPL_OK;
}

// Brings one directory up to date.
static xpl_status_t visit(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_error *err) {
    struct stat st;
    if (c->root->objects) return xpl_scan_visit_objects(c, d, err);
    if (fstatat(c->root->fd, d->path, &st, 0) != 0) return visit_gone(c, d, errno, err);
    if (!S_ISDIR(st.st_mode)) return visit_gone(c, d, ENOTDIR, err);
    const struct xpl_fingerprint now = xpl_fingerprint_of(&st);
    const bool same = d->known && d->dev == now.dev && d->ino == now.ino &&
                      d->mtime_ns == now.mtime_ns && d->ctime_ns == now.ctime_ns;
    if (same && !d->marked && !d->read_too_soon) stat_files(c, d); // may mark it
    if (same && !d->marked && !d->read_too_soon) return XPL_OK;
    d->dev = now.dev, d->ino = now.ino;
    d->mtime_ns = now.mtime_ns, d->ctime_ns = now.ctime_ns;
    if (is_cycle(d)) {
        xpl_scan_drop_contents(c, d);
        d->read_too_soon = d->marked = false;
        if (!d->problem) xpl_scan_note_problem(d, d->path, "link to a directory around it");
        return XPL_OK;
    }
    d->read_too_soon = xpl_unix_ns() - now.ctime_ns < COARSE_NS;
    return read_dir(c, d, err);
}

static bool due(const struct xpl_dir *d, enum xpl_scan what) {
    return what == XPL_SCAN_ALL || d->marked || d->read_too_soon || d->links || !d->watched;
}

static bool push_dir(struct xpl_catalogue *c, struct xpl_dir *d) {
    struct xpl_dir **dirs =
        xpl_scan_grow(c->dirs, c->n_dirs, &c->cap_dirs, sizeof(struct xpl_dir *));
    if (!dirs) return false;
    c->dirs = dirs;
    dirs[c->n_dirs++] = d;
    return true;
}

// Queues the children of a directory that was just visited, within the limits.  A directory beyond
// a limit stays in the tree, unread.
static bool queue_children(struct xpl_catalogue *c, struct xpl_dir *d) {
    const bool left_out = d->n_files > c->o.max_hosts - c->n_hosts;
    if (left_out) limit_hit(c, d, "left out, there are too many profiles");
    if (left_out != d->left_out) c->changed = true;
    d->left_out = left_out;
    if (!left_out) c->n_hosts += d->n_files;
    if (d->n_children && depth_of(d) >= MAX_DEPTH) {
        limit_hit(c, d, "directories below are left out, they are nested too deeply");
        return true;
    }
    for (size_t i = 0; i < d->n_children; i++) {
        if (c->n_dirs >= c->o.max_dirs) {
            limit_hit(c, d, "directories below are left out, there are too many");
            return true;
        }
        if (d->children[i]->path_len + NAME_MAX + 2 > PATH_MAX)
            limit_hit(c, d, "a directory below is left out, its path is too long");
        else if (!push_dir(c, d->children[i]))
            return false;
    }
    return true;
}

xpl_status_t xpl_scan_walk(struct xpl_catalogue *c, enum xpl_scan what, struct xpl_error *err) {
    c->n_dirs = c->n_hosts = c->n_limits = 0;
    if (!push_dir(c, c->top)) XPL_RETURN_OOM(err, "scanning the log directory");
    for (size_t i = 0; i < c->n_dirs; i++) {
        struct xpl_dir *const d = c->dirs[i];
        if (xpl_scan_is_stopped(c)) return stopped(err);
        if (due(d, what)) XPL_TRY(visit(c, d, err));
        if (!queue_children(c, d)) XPL_RETURN_OOM(err, "scanning the log directory");
    }
    return xpl_scan_is_stopped(c) ? stopped(err) : XPL_OK; // within the last directory
}
