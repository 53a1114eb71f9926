// Profiles given by path on a command line.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/path.h"
#include "storage/sessions/scan.h"

struct list {
    XPL_VEC(struct xpl_input) hosts;
};

static int by_name(const void *pa, const void *pb) {
    const struct xpl_input *a = pa, *b = pb;
    const int c = xpl_str_cmp(a->name, b->name);
    return c ? c : strcmp(a->path, b->path);
}

static xpl_status_t refuse_riegeli(const char *path, struct xpl_error *err) {
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                     XPL_PATH_FMT ": Riegeli files are not read; write the profile as .xplane.pb",
                     XPL_PATH_ARGS(path));
}

// `name` is the raw host name; `path` is copied unless it lives long enough (`keep`).
static xpl_status_t add(struct list *l, struct xpl_arena *a, xpl_str_t name, const char *path,
                        struct xpl_error *err) {
    struct xpl_input *in = xpl_vec_push(a, &l->hosts);
    xpl_str_t copy;
    if (!in || !xpl_name_escape(a, name, &in->name) || !xpl_arena_str(a, xpl_str_from(path), &copy))
        XPL_RETURN_OOM(err, "list of profiles");
    in->path = copy.ptr;
    return XPL_OK;
}

static xpl_status_t add_file(struct list *l, struct xpl_arena *a, const char *path,
                             struct xpl_error *err) {
    const xpl_str_t file = xpl_path_last(path);
    if (xpl_str_ends(file, XPL_STR(".xplane.riegeli"))) return refuse_riegeli(path, err);
    xpl_str_t name = file;
    const xpl_str_t suffix = XPL_STR(".xplane.pb");
    if (name.len > suffix.len && xpl_str_ends(name, suffix)) name.len -= suffix.len;
    return add(l, a, name, path, err);
}

static xpl_status_t add_dir(struct list *l, struct xpl_arena *a, const char *path,
                            struct xpl_error *err) {
    DIR *dir = opendir(path);
    if (!dir) return xpl_path_fail(errno, "read", path, err);
    size_t n_riegeli = 0;
    xpl_status_t st = XPL_OK;
    for (const struct dirent *e; st == XPL_OK && (e = readdir(dir));) {
        bool riegeli;
        const xpl_str_t name = xpl_profile_name(e->d_name, &riegeli);
        if (!name.len) continue;
        n_riegeli += riegeli;
        if (riegeli) continue;
        xpl_str_t full;
        struct stat sb;
        if (!xpl_arena_printf(a, &full, "%s/%s", path, e->d_name))
            st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                               "list of profiles: out of memory");
        else if (stat(full.ptr, &sb) != 0 || !S_ISDIR(sb.st_mode))
            st = add(l, a, name, full.ptr, err);
    }
    (void)closedir(dir);
    XPL_TRY(st);
    if (l->hosts.n) return XPL_OK;
    if (n_riegeli) return refuse_riegeli(path, err);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND,
                     XPL_PATH_FMT
                     ": no *.xplane.pb in this directory; give a run directory, such as "
                     "LOGDIR/plugins/profile/RUN",
                     XPL_PATH_ARGS(path));
}

static xpl_status_t refuse_twins(const struct list *l, struct xpl_error *err) {
    for (size_t i = 1; i < l->hosts.n; i++)
        if (xpl_str_eq(l->hosts.v[i - 1].name, l->hosts.v[i].name))
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             "two files for host %.*s: " XPL_PATH_FMT
                             " is one; the hosts of a session need different names",
                             (int)(l->hosts.v[i].name.len < 60 ? l->hosts.v[i].name.len : 60),
                             l->hosts.v[i].name.ptr, XPL_PATH_ARGS(l->hosts.v[i].path));
    return XPL_OK;
}

xpl_status_t xpl_inputs_from_paths(const char *const *paths, size_t n, struct xpl_arena *arena,
                                   struct xpl_inputs *ret, struct xpl_error *err) {
    struct list l = {0};
    bool dir = false;
    if (n == 0) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no profile given");
    for (size_t i = 0; i < n; i++) {
        struct stat sb;
        if (stat(paths[i], &sb) != 0) return xpl_path_fail(errno, "open", paths[i], err);
        dir = S_ISDIR(sb.st_mode);
        if (dir && n > 1)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                             XPL_PATH_FMT
                             ": a directory; give one run directory alone, or only files",
                             XPL_PATH_ARGS(paths[i]));
        XPL_TRY(dir ? add_dir(&l, arena, paths[i], err) : add_file(&l, arena, paths[i], err));
    }
    qsort(l.hosts.v, l.hosts.n, sizeof *l.hosts.v, by_name);
    XPL_TRY(refuse_twins(&l, err));
    struct xpl_inputs out = {
        .hosts = l.hosts.v, .n_hosts = l.hosts.n, .session = l.hosts.v[0].name};
    char real[PATH_MAX];
    if (dir && realpath(paths[0], real) &&
        !xpl_name_escape(arena, xpl_path_last(real), &out.session))
        XPL_RETURN_OOM(err, "list of profiles");
    *ret = out;
    return XPL_OK;
}
