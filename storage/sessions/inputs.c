// SPDX-License-Identifier: Apache-2.0
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

struct file {
    struct xpl_input input;
    unsigned rank; // of its format
    size_t from;   // the path that it was found by
};

struct list {
    size_t from; // of the next file
    XPL_VEC(struct file) files;
    xpl_profile_match_fn match;
};

static int by_name(const void *pa, const void *pb) {
    const struct file *a = pa, *b = pb;
    const int c = xpl_str_cmp(a->input.name, b->input.name);
    if (c) return c;
    return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank)
                              : strcmp(a->input.path, b->input.path);
}

static xpl_status_t refuse_input(const char *path, const char *why, struct xpl_error *err) {
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: %s",
                     xpl_path_shown(path, &(struct xpl_path_text){0}), why);
}

// `name` is the raw host name; it and `path` are copied.
static xpl_status_t add_input(struct list *l, struct xpl_arena *a, xpl_str_t name, unsigned rank,
                              const char *path, struct xpl_error *err) {
    struct file *f = xpl_vec_push(a, &l->files);
    xpl_str_t copy;
    if (!f || !xpl_name_escape(a, name, &f->input.name) ||
        !xpl_arena_str(a, xpl_str_from(path), &copy))
        XPL_RETURN_OOM(err, "list of profiles");
    f->input.path = copy.ptr;
    f->from = l->from;
    f->rank = rank;
    return XPL_OK;
}

// Any name will do for a file that is given by its name.
static xpl_status_t add_file(struct list *l, struct xpl_arena *a, const char *path,
                             struct xpl_error *err) {
    xpl_str_t name = xpl_path_last(path), host;
    struct xpl_profile_kind kind = {0};
    if (l->match(name, &host, &kind.rank, &kind.refusal)) name = host;
    if (kind.refusal) return refuse_input(path, kind.refusal, err);
    return add_input(l, a, name, kind.rank, path, err);
}

// Adds the profiles of a directory.  `*refusal`: why one does not count.
static xpl_status_t add_profiles(struct list *l, struct xpl_arena *a, const char *path,
                                 const char **refusal, struct xpl_error *err) {
    DIR *dir = opendir(path);
    if (!dir) return xpl_path_fail(errno, "read", path, err);
    xpl_status_t st = XPL_OK;
    for (const struct dirent *e; st == XPL_OK && (e = readdir(dir));) {
        struct xpl_profile_kind kind;
        const xpl_str_t name = xpl_root_profile_name(l->match, e->d_name, &kind);
        if (!name.len) continue;
        if (kind.refusal) *refusal = kind.refusal;
        if (kind.refusal) continue;
        xpl_str_t full;
        struct stat sb;
        if (!xpl_arena_printf(a, &full, "%s/%s", path, e->d_name))
            st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                               "list of profiles: out of memory");
        else if (stat(full.ptr, &sb) != 0 || !S_ISDIR(sb.st_mode))
            st = add_input(l, a, name, kind.rank, full.ptr, err);
    }
    (void)closedir(dir);
    return st;
}

// The runs of a log directory: DIR/plugins/profile/RUN.  `*ret`: one of them, or "".
static size_t count_runs(const char *logdir, struct xpl_arena *a, xpl_str_t *ret) {
    xpl_str_t all;
    size_t n = 0;
    *ret = XPL_STR("");
    if (!xpl_arena_printf(a, &all, "%s/plugins/profile", logdir)) return 0;
    DIR *const dir = opendir(all.ptr);
    if (!dir) return 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        struct stat sb;
        xpl_str_t run;
        if (e->d_name[0] == '.' || !xpl_arena_printf(a, &run, "%s/%s", all.ptr, e->d_name) ||
            stat(run.ptr, &sb) != 0 || !S_ISDIR(sb.st_mode))
            continue;
        if (!n++ || xpl_str_cmp(run, *ret) > 0) *ret = run; // names of times: the newest
    }
    (void)closedir(dir);
    return n;
}

static xpl_status_t add_dir(struct list *l, struct xpl_arena *a, const char *path,
                            struct xpl_error *err) {
    const char *refusal = NULL;
    const size_t before = l->files.n;
    struct xpl_path_text text;
    xpl_str_t run;
    XPL_TRY(add_profiles(l, a, path, &refusal, err));
    if (l->files.n > before) return XPL_OK;
    if (refusal) return refuse_input(path, refusal, err);
    const size_t runs = count_runs(path, a, &run);
    if (runs == 1) XPL_TRY(add_profiles(l, a, run.ptr, &refusal, err));
    if (l->files.n > before) return XPL_OK;
    if (runs > 1)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "%zu runs are below this directory; choose one, such as %s", runs,
                         xpl_path_shown(run.ptr, &text));
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND,
                     "%s: no profile in this directory; give a run directory, such as "
                     "LOGDIR/plugins/profile/RUN",
                     xpl_path_shown(path, &text));
}

static xpl_status_t refuse_twin(const struct xpl_input *in, struct xpl_error *err) {
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                     "two files for host %.*s: "
                     "%s is one; the hosts of a session need different names",
                     (int)(in->name.len < 60 ? in->name.len : 60), in->name.ptr,
                     xpl_path_shown(in->path, &(struct xpl_path_text){0}));
}

// Processes that wrote into directories of their own may have equal names: theirs become
// DIRECTORY_NAME.
static xpl_status_t tell_apart(struct list *l, struct xpl_arena *a, struct xpl_error *err) {
    bool *const equal = xpl_arena_zalloc(a, l->files.n * sizeof *equal);
    if (!equal) XPL_RETURN_OOM(err, "list of profiles");
    for (size_t i = 1; i < l->files.n; i++)
        if (xpl_str_eq(l->files.v[i - 1].input.name, l->files.v[i].input.name) &&
            l->files.v[i - 1].from != l->files.v[i].from)
            equal[i - 1] = equal[i] = true;
    for (size_t i = 0; i < l->files.n; i++) {
        struct xpl_input *const in = &l->files.v[i].input;
        const char *const slash = strrchr(in->path, '/');
        xpl_str_t folder, name;
        if (!equal[i] || !slash) continue;
        folder = (xpl_str_t){in->path, (size_t)(slash - in->path)};
        const char *const last = folder.len ? memrchr(folder.ptr, '/', folder.len) : NULL;
        if (last) folder = xpl_str_sub(folder, (size_t)(last - folder.ptr) + 1, SIZE_MAX);
        if (!folder.len) continue;
        if (!xpl_name_escape(a, folder, &folder) ||
            !xpl_arena_printf(a, &name, "%.*s_%.*s", XPL_STR_FMT(folder), XPL_STR_FMT(in->name)))
            XPL_RETURN_OOM(err, "list of profiles");
        in->name = name;
    }
    qsort(l->files.v, l->files.n, sizeof *l->files.v, by_name);
    return XPL_OK;
}

// Makes the list of hosts.  Of a directory's files of one host and of different formats the best
// counts.
static xpl_status_t list_hosts(const struct list *l, bool dir, struct xpl_arena *a,
                               struct xpl_inputs *ret, struct xpl_error *err) {
    struct xpl_input *const hosts = xpl_arena_array(a, l->files.n, sizeof *hosts);
    const char **const left_out = xpl_arena_array(a, l->files.n, sizeof *left_out);
    if (!hosts || !left_out) XPL_RETURN_OOM(err, "list of profiles");
    *ret = (struct xpl_inputs){.hosts = hosts, .left_out = left_out};
    unsigned rank = 0;
    for (size_t i = 0; i < l->files.n; i++) {
        const struct file *const f = &l->files.v[i];
        const bool twin = ret->n_hosts && xpl_str_eq(hosts[ret->n_hosts - 1].name, f->input.name);
        if (twin && (!dir || f->rank == rank)) return refuse_twin(&f->input, err);
        rank = f->rank;
        if (twin)
            left_out[ret->n_left_out++] = f->input.path;
        else
            hosts[ret->n_hosts++] = f->input;
    }
    ret->session = hosts[0].name;
    return XPL_OK;
}

xpl_status_t xpl_inputs_from_paths(const char *const *paths, size_t n, xpl_profile_match_fn match,
                                   struct xpl_arena *arena, struct xpl_inputs *ret,
                                   struct xpl_error *err) {
    struct list l = {.match = match};
    struct xpl_inputs out;
    bool dir = false;
    if (n == 0) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no profile given");
    for (size_t i = 0; i < n; i++) {
        struct stat sb;
        if (stat(paths[i], &sb) != 0) return xpl_path_fail_near(errno, paths[i], err);
        const bool is_dir = S_ISDIR(sb.st_mode);
        dir |= is_dir;
        l.from = i;
        XPL_TRY(is_dir ? add_dir(&l, arena, paths[i], err) : add_file(&l, arena, paths[i], err));
    }
    qsort(l.files.v, l.files.n, sizeof *l.files.v, by_name);
    XPL_TRY(tell_apart(&l, arena, err));
    XPL_TRY(list_hosts(&l, dir, arena, &out, err));
    char real[PATH_MAX];
    if (dir && n == 1 && realpath(paths[0], real) &&
        !xpl_name_escape(arena, xpl_path_last(real), &out.session))
        XPL_RETURN_OOM(err, "list of profiles");
    *ret = out;
    return XPL_OK;
}
