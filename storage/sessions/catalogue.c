// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/catalogue.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/objects/objects.h"
#include "storage/sessions/catalogue_impl.h"
#include "storage/sessions/layout.h"
#include "storage/sessions/path.h"

enum { MOST_OF_NOTES = 32 << 20 }; // bytes

// --- Marks of other threads ---

static void add_mark(struct xpl_catalogue *c, xpl_str_t path, int what) {
    struct pending_mark *w = xpl_sys_alloc(sizeof *w + path.len);
    if (w) {
        w->what = (unsigned)what;
        w->len = path.len;
        if (path.len) memcpy(w->path, path.ptr, path.len);
    }
    pthread_mutex_lock(&c->mark_mu);
    if (w) {
        w->next = c->marks;
        c->marks = w;
    } else {
        c->lost_mark = true;
    }
    pthread_mutex_unlock(&c->mark_mu);
}

void xpl_catalogue_mark(struct xpl_catalogue *c, xpl_str_t path) {
    add_mark(c, path, MARK_CHANGED);
}

void xpl_catalogue_mark_session(struct xpl_catalogue *c, xpl_str_t name) {
    char path[PATH_MAX];
    const char *const slash = memrchr(name.ptr, '/', name.len);
    const size_t prefix = slash ? (size_t)(slash + 1 - name.ptr) : 0;
    const int n = snprintf(path, sizeof path, "%.*s" XPL_SESSIONS_DIR "/%.*s", (int)prefix,
                           name.ptr, (int)(name.len - prefix), name.ptr + prefix);
    if (!c->o.objects || n < 0 || (size_t)n >= sizeof path) return;
    xpl_catalogue_mark(c, XPL_STR("."));
    for (size_t i = 0; i <= (size_t)n; i++)
        if (path[i] == '/' || !path[i]) xpl_catalogue_mark(c, (xpl_str_t){path, i});
}

void xpl_catalogue_set_watched(struct xpl_catalogue *c, xpl_str_t path, bool watched) {
    add_mark(c, path, watched ? MARK_WATCHED : MARK_UNWATCHED);
}

// Applies the marks since the last scan, oldest first; true when everything must be checked.
static bool apply_marks(struct xpl_catalogue *c) {
    pthread_mutex_lock(&c->mark_mu);
    struct pending_mark *newest = c->marks, *w = NULL;
    const bool all = c->lost_mark;
    c->marks = NULL;
    c->lost_mark = false;
    pthread_mutex_unlock(&c->mark_mu);
    while (newest) { // turn the list round
        struct pending_mark *next = newest->next;
        newest->next = w;
        w = newest;
        newest = next;
    }
    while (w) {
        struct xpl_dir *d = xpl_scan_find(c->top, (xpl_str_t){w->path, w->len});
        if (d && w->what == MARK_CHANGED) d->marked = true;
        if (d && w->what != MARK_CHANGED) d->watched = w->what == MARK_WATCHED;
        struct pending_mark *next = w->next;
        xpl_sys_free(w);
        w = next;
    }
    return all;
}

// --- The catalogue ---

// Where an open directory really lies.
static xpl_status_t real_path(const struct xpl_catalogue *c, int fd, char **ret,
                              struct xpl_error *err) {
    char link[48], real[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, real, sizeof real);
    if (n <= 0 || (size_t)n == sizeof real)
        XPL_RETURN_ERROR(err, XPL_INTERNAL, "%s: cannot tell where it lies (is /proc mounted?)",
                         xpl_path_shown(c->o.logdir, &(struct xpl_path_text){0}));
    *ret = xpl_scan_copy_text(real, (size_t)n);
    if (!*ret) XPL_RETURN_OOM(err, "catalogue");
    return XPL_OK;
}

static xpl_status_t open_bucket(struct xpl_catalogue *c, struct xpl_error *err) {
    if (c->root) return XPL_OK;
    struct xpl_root *const r = xpl_sys_alloc(sizeof *r);
    if (!r) XPL_RETURN_OOM(err, "catalogue");
    *r = (struct xpl_root){.fd = -1, .objects = xpl_objects_ref(c->o.objects)};
    atomic_init(&r->refs, 1);
    c->root = r;
    return XPL_OK;
}

// Opens LOGDIR anew when another directory has taken its place (or for the first time).
static xpl_status_t open_root(struct xpl_catalogue *c, struct xpl_error *err) {
    struct stat now, was;
    if (c->o.objects) return open_bucket(c, err);
    const int fd = open(c->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return xpl_path_fail(errno, "open", c->o.logdir, err);
    if (c->root && fstat(fd, &now) == 0 && fstat(c->root->fd, &was) == 0 &&
        now.st_dev == was.st_dev && now.st_ino == was.st_ino) {
        (void)close(fd);
        return XPL_OK;
    }
    struct xpl_root *r = xpl_sys_alloc(sizeof *r);
    if (!r) {
        (void)close(fd);
        XPL_RETURN_OOM(err, "catalogue");
    }
    *r = (struct xpl_root){.fd = fd};
    atomic_init(&r->refs, 1);
    // A profile that was named may itself be a link.
    const bool inside = !c->o.links_anywhere && !c->single;
    const xpl_status_t st = inside ? real_path(c, fd, &r->links_root, err) : XPL_OK;
    if (st != XPL_OK) {
        xpl_root_unref(r);
        return st;
    }
    c->changed |= c->root != NULL; // hosts must be opened in the new one
    xpl_root_unref(c->root);
    c->root = r;
    return XPL_OK;
}

static xpl_status_t publish(struct xpl_catalogue *c, struct xpl_error *err) {
    const char *limits[MAX_LIMITS];
    for (size_t i = 0; i < c->n_limits; i++)
        limits[i] = c->limits[i];
    const struct xpl_snapshot_spec spec = {.root = c->root,
                                           .join = c->o.identify_run != NULL,
                                           .dirs = c->dirs,
                                           .n_dirs = c->n_dirs,
                                           .base = c->base,
                                           .logdir_name = xpl_str_from(c->logdir_name),
                                           .generation = c->generation + 1,
                                           .before = c->snap,
                                           .unscanned = !c->scanned,
                                           .limits = limits,
                                           .n_limits = c->n_limits};
    struct xpl_snapshot *next = NULL;
    XPL_TRY(xpl_snapshot_build(&spec, &next, err));
    c->generation++;
    c->changed = false;
    pthread_mutex_lock(&c->snap_mu);
    struct xpl_snapshot *was = c->snap;
    c->snap = next;
    pthread_mutex_unlock(&c->snap_mu);
    xpl_snapshot_unref(was);
    return XPL_OK;
}

xpl_status_t xpl_catalogue_scan(struct xpl_catalogue *c, enum xpl_scan what, bool *ret_changed,
                                struct xpl_error *err) {
    pthread_mutex_lock(&c->scan_mu);
    if (apply_marks(c)) what = XPL_SCAN_ALL;
    xpl_status_t st = open_root(c, err);
    if (st == XPL_OK) xpl_scan_share_begin(c);
    if (st == XPL_OK) st = xpl_scan_walk(c, what, err);
    c->scanned |= st == XPL_OK;
    bool changed = st == XPL_OK && (c->changed || !c->snap || c->snap->unscanned);
    if (changed) st = publish(c, err);
    pthread_mutex_unlock(&c->scan_mu);
    if (st == XPL_OK && ret_changed) *ret_changed = changed;
    return st;
}

void xpl_catalogue_stop(struct xpl_catalogue *c) {
    atomic_store(&c->stopped, true);
}

void xpl_catalogue_share(struct xpl_catalogue *c, struct xpl_store *store, bool may_scan,
                         uint64_t pull_every_ns) {
    if (!c->o.objects || !xpl_store_listings(store)) return;
    c->share = (struct xpl_scan_share){
        .store = store, .may_scan = may_scan, .pull_every_ns = pull_every_ns};
    xpl_objects_place(c->o.objects, c->share.place.bytes);
}

// Splits LOGDIR into the directory to scan and, when it is a file, that file's name.
static xpl_status_t set_base(struct xpl_catalogue *c, const char *logdir, struct xpl_error *err) {
    struct stat st;
    if (!c->o.objects && stat(logdir, &st) != 0) return xpl_path_fail(errno, "open", logdir, err);
    const char *const slash = strrchr(logdir, '/');
    if (c->o.objects || S_ISDIR(st.st_mode)) {
        c->base = xpl_scan_copy_text(logdir, strlen(logdir));
        if (!c->base) XPL_RETURN_OOM(err, "catalogue");
        return XPL_OK;
    }
    const char *const file = slash ? slash + 1 : logdir;
    struct xpl_profile_file name;
    if (!S_ISREG(st.st_mode) || !xpl_root_match(c->o.match, file, &name) || name.refusal)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "%s: neither a directory nor a profile that is read",
                         xpl_path_shown(logdir, &(struct xpl_path_text){0}));
    c->base = !slash            ? xpl_scan_copy_text(".", 1)
              : slash == logdir ? xpl_scan_copy_text("/", 1)
                                : xpl_scan_copy_text(logdir, (size_t)(slash - logdir));
    c->single = xpl_scan_copy_text(file, strlen(file));
    c->logdir_name = xpl_scan_copy_text(name.host.ptr, name.host.len);
    if (!c->base || !c->single || !c->logdir_name) XPL_RETURN_OOM(err, "catalogue");
    return XPL_OK;
}

// The last part of LOGDIR's path; where that says nothing ("." or ".."), of its real path.
static xpl_status_t set_name(struct xpl_catalogue *c, struct xpl_error *err) {
    if (c->logdir_name) return XPL_OK;
    char real[PATH_MAX];
    xpl_str_t name = xpl_path_last(c->base);
    if (!name.len || xpl_str_eq(name, XPL_STR(".")) || xpl_str_eq(name, XPL_STR("..")))
        name = realpath(c->base, real) ? xpl_path_last(real) : XPL_STR("");
    if (!name.len) name = XPL_STR("/"); // the root of the file system
    c->logdir_name = xpl_scan_copy_text(name.ptr, name.len);
    if (!c->logdir_name) XPL_RETURN_OOM(err, "catalogue");
    return XPL_OK;
}

static xpl_status_t start(struct xpl_catalogue *c, const char *logdir, struct xpl_error *err) {
    XPL_TRY(set_base(c, logdir, err));
    XPL_TRY(set_name(c, err));
    c->o.logdir = c->base;
    c->top = xpl_dir_new(NULL, ".");
    if (!c->top) XPL_RETURN_OOM(err, "catalogue");
    if (!c->o.scan_later) {
        c->cancel = c->o.cancel;
        const xpl_status_t st = xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, err);
        c->cancel = NULL;
        return st;
    }
    XPL_TRY(open_root(c, err));
    return publish(c, err);
}

xpl_status_t xpl_catalogue_new(const struct xpl_catalogue_options *o, struct xpl_catalogue **ret,
                               struct xpl_error *err) {
    assert(o->match);
    if (!o->logdir || !o->logdir[0])
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no log directory given");
    struct xpl_catalogue *c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "catalogue");
    *c = (struct xpl_catalogue){.o = *o};
    if (!c->o.max_dirs) c->o.max_dirs = c->o.objects ? 20000 : 200000;
    if (!c->o.list_every_ns) c->o.list_every_ns = UINT64_C(30000000000);
    if (!c->o.max_hosts) c->o.max_hosts = 1000000;
    xpl_arena_budget_init(&c->notes, MOST_OF_NOTES);
    pthread_mutex_init(&c->scan_mu, NULL);
    pthread_mutex_init(&c->mark_mu, NULL);
    pthread_mutex_init(&c->snap_mu, NULL);
    const xpl_status_t st = start(c, o->logdir, err);
    if (st != XPL_OK) {
        xpl_catalogue_free(c);
        return st;
    }
    *ret = c;
    return XPL_OK;
}

void xpl_catalogue_free(struct xpl_catalogue *c) {
    if (!c) return;
    if (c->top) (void)apply_marks(c);
    xpl_dir_free(c->top);
    xpl_sys_free(c->dirs);
    xpl_snapshot_unref(c->snap);
    xpl_root_unref(c->root);
    xpl_sys_free(c->base);
    xpl_sys_free(c->single);
    xpl_sys_free(c->logdir_name);
    pthread_mutex_destroy(&c->scan_mu);
    pthread_mutex_destroy(&c->mark_mu);
    pthread_mutex_destroy(&c->snap_mu);
    xpl_sys_free(c);
}

struct xpl_snapshot *xpl_catalogue_get(struct xpl_catalogue *c) {
    pthread_mutex_lock(&c->snap_mu);
    struct xpl_snapshot *s = xpl_snapshot_ref(c->snap);
    pthread_mutex_unlock(&c->snap_mu);
    return s;
}
