// SPDX-License-Identifier: Apache-2.0
// Profiles given by path on a command line.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/parse.h"
#include "base/vec.h"
#include "storage/processes.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/path.h"
#include "storage/sessions/scan.h"

struct file {
    struct xpl_input input;
    struct xpl_profile_file kind;          // its host is a part of input.path
    struct xpl_profile_identity *identity; // NULL: the file does not say it
    size_t from;                           // the path that it was found by
};

struct list {
    size_t from; // of the next file
    XPL_VEC(struct file) files;
    XPL_VEC(const char *) left_out;
    xpl_profile_match_fn match;
};

static int by_name(const void *pa, const void *pb) {
    const struct file *a = pa, *b = pb;
    const int c = xpl_str_cmp(a->input.name, b->input.name);
    if (c) return c;
    return a->kind.rank != b->kind.rank
               ? (a->kind.rank > b->kind.rank) - (a->kind.rank < b->kind.rank)
               : strcmp(a->input.path, b->input.path);
}

static xpl_status_t refuse_input(const char *path, const char *why, struct xpl_error *err) {
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: %s",
                     xpl_path_shown(path, &(struct xpl_path_text){0}), why);
}

static const char *file_name(const struct file *f) {
    const char *const slash = strrchr(f->input.path, '/');
    return slash ? slash + 1 : f->input.path;
}

// Adds a file and reads its identity.  *kind and `path` are copied.
static xpl_status_t add_input(struct list *l, struct xpl_arena *a,
                              const struct xpl_profile_file *kind, const char *path,
                              struct xpl_error *err) {
    struct file *f = xpl_vec_push(a, &l->files);
    struct xpl_source *source = NULL;
    struct xpl_profile_identity identity;
    xpl_str_t copy;
    if (!f || !xpl_arena_str(a, xpl_str_from(path), &copy) ||
        !xpl_name_escape(a, kind->host, &f->input.name))
        XPL_RETURN_OOM(err, "list of profiles");
    f->input.path = copy.ptr;
    f->from = l->from;
    f->kind = *kind;
    f->kind.host.ptr = file_name(f);
    f->identity = NULL;
    if (!kind->identify) return XPL_OK;
    const xpl_status_t st = xpl_source_open(AT_FDCWD, path, 0, &source, NULL);
    if (st == XPL_RESOURCE_EXHAUSTED) XPL_RETURN_OOM(err, "list of profiles");
    if (st != XPL_OK) return XPL_OK; // the reader says why it cannot be read
    const bool is = kind->identify(copy, xpl_source_bytes(source), &identity);
    xpl_source_free(source);
    if (!is) return XPL_OK;
    f->identity = xpl_arena_alloc(a, sizeof *f->identity);
    if (!f->identity) XPL_RETURN_OOM(err, "list of profiles");
    *f->identity = identity;
    return XPL_OK;
}

// ---- processes of one job ----

static xpl_status_t check_group(size_t group, size_t n_groups, const char *dir,
                                struct xpl_error *err) {
    struct xpl_path_text text;
    if (group > n_groups)
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "%s has %zu captures", xpl_path_shown(dir, &text),
                         n_groups);
    if (group || n_groups == 1) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                     "%zu captures of different times are in this directory; choose one, such as "
                     "%s#%zu, or files",
                     n_groups, xpl_path_shown(dir, &text), n_groups);
}

// Of the files from `first` on, which are of one directory, those of capture `group` (from 1; 0:
// the only one) stay, with the names of their processes.
static xpl_status_t keep_group(struct list *l, struct xpl_arena *a, size_t first, const char *dir,
                               size_t group, struct xpl_error *err) {
    struct file *const files = l->files.v + first;
    const size_t n = l->files.n - first;
    struct xpl_process_file *const v = xpl_arena_array(a, n, sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "list of profiles");
    for (size_t i = 0; i < n; i++)
        v[i] =
            (struct xpl_process_file){.identity = files[i].identity, .name = file_name(&files[i])};
    const size_t n_groups = xpl_processes_group(v, n);
    if (!n_groups) XPL_RETURN_OOM(err, "list of profiles");
    XPL_TRY(check_group(group, n_groups, dir, err));
    const uint32_t kept = group ? (uint32_t)group - 1 : 0;
    const struct xpl_process_group g = xpl_processes_of_group(v, n, kept);
    l->files.n = first;
    for (size_t i = 0; i < n; i++) {
        if (v[i].group != kept) continue;
        if (v[i].identity &&
            !xpl_process_host(&v[i], &g, files[i].kind.host, a, &files[i].input.name))
            XPL_RETURN_OOM(err, "list of profiles");
        l->files.v[l->files.n++] = files[i];
    }
    return XPL_OK;
}

static int by_host(const void *pa, const void *pb) {
    const struct file *const a = pa, *const b = pb;
    const int c = xpl_str_cmp(a->kind.host, b->kind.host);
    return c ? c : (a->kind.rank > b->kind.rank) - (a->kind.rank < b->kind.rank);
}

// Of the files of a directory leaves out those whose host has one of a better format.
static xpl_status_t drop_twins(struct list *l, struct xpl_arena *a, size_t first,
                               struct xpl_error *err) {
    struct file *const files = l->files.v;
    const struct file *best = NULL; // the one that stays of the host
    const size_t n = l->files.n;
    if (n > first) qsort(files + first, n - first, sizeof *files, by_host);
    l->files.n = first;
    for (size_t i = first; i < n; i++) {
        if (best && best->kind.rank < files[i].kind.rank &&
            xpl_str_eq(best->kind.host, files[i].kind.host)) {
            const char **const slot = xpl_vec_push(a, &l->left_out);
            if (!slot) XPL_RETURN_OOM(err, "list of profiles");
            *slot = files[i].input.path;
            continue;
        }
        files[l->files.n] = files[i];
        best = &files[l->files.n++];
    }
    return XPL_OK;
}

// Drops files of a directory that are not profiles, and those that belong to another file's.
static void drop_others(struct list *l, size_t first) {
    bool has_sure = false, has_whole = false;
    for (size_t i = first; i < l->files.n; i++) {
        has_sure |= !l->files.v[i].kind.identify;
        has_whole |= l->files.v[i].identity && !l->files.v[i].identity->is_part;
    }
    size_t n = first;
    for (size_t i = first; i < l->files.n; i++) {
        const struct file *const f = &l->files.v[i];
        if (f->kind.is_doubtful && (has_sure || !f->identity)) continue;
        if (f->identity && f->identity->is_part && (has_sure || has_whole)) continue;
        l->files.v[n++] = *f;
    }
    l->files.n = n;
}

// Any name will do for a file that is given by its name.
static xpl_status_t add_file(struct list *l, struct xpl_arena *a, const char *path,
                             struct xpl_error *err) {
    const size_t first = l->files.n;
    struct xpl_profile_file kind;
    if (!l->match(xpl_path_last(path), &kind))
        kind = (struct xpl_profile_file){.host = xpl_path_last(path)};
    if (kind.refusal) return refuse_input(path, kind.refusal, err);
    XPL_TRY(add_input(l, a, &kind, path, err));
    return keep_group(l, a, first, path, 0, err);
}

// Adds the profiles of a directory.  `*refusal`: why one does not count.
static xpl_status_t add_profiles(struct list *l, struct xpl_arena *a, const char *path,
                                 size_t group, const char **refusal, struct xpl_error *err) {
    const size_t first = l->files.n;
    DIR *dir = opendir(path);
    if (!dir) return xpl_path_fail(errno, "read", path, err);
    xpl_status_t st = XPL_OK;
    for (const struct dirent *e; st == XPL_OK && (e = readdir(dir));) {
        struct xpl_profile_file kind;
        if (!xpl_root_match(l->match, e->d_name, &kind)) continue;
        if (kind.refusal) *refusal = kind.refusal;
        if (kind.refusal) continue;
        xpl_str_t full;
        struct stat sb;
        if (!xpl_arena_printf(a, &full, "%s/%s", path, e->d_name))
            st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                               "list of profiles: out of memory");
        else if (stat(full.ptr, &sb) != 0 || !S_ISDIR(sb.st_mode))
            st = add_input(l, a, &kind, full.ptr, err);
    }
    (void)closedir(dir);
    if (st != XPL_OK) return st;
    drop_others(l, first);
    XPL_TRY(drop_twins(l, a, first, err));
    return l->files.n > first ? keep_group(l, a, first, path, group, err) : XPL_OK;
}

// By its name.
static bool has_profile(const struct list *l, const char *path) {
    DIR *const dir = opendir(path);
    bool found = false;
    for (const struct dirent *e; dir && !found && (e = readdir(dir));) {
        struct xpl_profile_file kind;
        found = xpl_root_match(l->match, e->d_name, &kind) && !kind.refusal;
    }
    if (dir) (void)closedir(dir);
    return found;
}

// The directories in PATH/SUB that have a profile: runs of a log directory, or ranks of a run.
// `*ret`: one of them, or "".
static size_t count_runs(const struct list *l, const char *path, const char *sub,
                         struct xpl_arena *a, xpl_str_t *ret) {
    xpl_str_t all;
    size_t n = 0;
    *ret = XPL_STR("");
    if (!xpl_arena_printf(a, &all, "%s%s", path, sub)) return 0;
    DIR *const dir = opendir(all.ptr);
    if (!dir) return 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        struct stat sb;
        xpl_str_t run;
        if (e->d_name[0] == '.' || !xpl_arena_printf(a, &run, "%s/%s", all.ptr, e->d_name) ||
            stat(run.ptr, &sb) != 0 || !S_ISDIR(sb.st_mode) || !has_profile(l, run.ptr))
            continue;
        if (!n++ || xpl_str_cmp(run, *ret) > 0) *ret = run; // names of times: the newest
    }
    (void)closedir(dir);
    return n;
}

static xpl_status_t add_dir(struct list *l, struct xpl_arena *a, const char *path, size_t group,
                            struct xpl_error *err) {
    const char *refusal = NULL;
    const size_t before = l->files.n;
    struct xpl_path_text text;
    xpl_str_t run;
    XPL_TRY(add_profiles(l, a, path, group, &refusal, err));
    if (l->files.n > before) return XPL_OK;
    if (refusal) return refuse_input(path, refusal, err);
    const size_t runs = count_runs(l, path, "/plugins/profile", a, &run);
    if (runs == 1) XPL_TRY(add_profiles(l, a, run.ptr, group, &refusal, err));
    if (l->files.n > before) return XPL_OK;
    if (runs > 1)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "%zu runs are below this directory; choose one, such as %s", runs,
                         xpl_path_shown(run.ptr, &text));
    if (count_runs(l, path, "", a, &run))
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND,
                         "no profile in this directory, but in directories below it; give one of "
                         "them, or all of one run, such as %s",
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

// Makes the list of hosts.
static xpl_status_t list_hosts(const struct list *l, struct xpl_arena *a, struct xpl_inputs *ret,
                               struct xpl_error *err) {
    struct xpl_input *const hosts = xpl_arena_array(a, l->files.n, sizeof *hosts);
    if (!hosts) XPL_RETURN_OOM(err, "list of profiles");
    *ret =
        (struct xpl_inputs){.hosts = hosts, .left_out = l->left_out.v, .n_left_out = l->left_out.n};
    for (size_t i = 0; i < l->files.n; i++) {
        const struct xpl_input *const in = &l->files.v[i].input;
        if (i && xpl_str_eq(hosts[i - 1].name, in->name)) return refuse_twin(in, err);
        hosts[ret->n_hosts++] = *in;
    }
    ret->session = hosts[0].name;
    return XPL_OK;
}

// DIR#2 is the second capture of a directory.
static bool is_capture(const char *path, xpl_str_t *ret_dir, size_t *ret_group) {
    const xpl_str_t s = xpl_str_from(path);
    const char *const mark = s.len ? memrchr(path, '#', s.len) : NULL;
    int64_t v;
    if (!mark || mark == path) return false;
    *ret_dir = (xpl_str_t){path, (size_t)(mark - path)};
    if (!xpl_parse_int(xpl_str_from(mark + 1), 1, INT32_MAX, &v)) return false;
    *ret_group = (size_t)v;
    return true;
}

bool xpl_inputs_are_there(const char *path) {
    char dir[PATH_MAX];
    struct stat sb;
    xpl_str_t whole;
    size_t group;
    if (access(path, R_OK) == 0) return true;
    return is_capture(path, &whole, &group) && whole.len < sizeof dir &&
           snprintf(dir, sizeof dir, "%.*s", XPL_STR_FMT(whole)) > 0 && stat(dir, &sb) == 0 &&
           S_ISDIR(sb.st_mode);
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
        const char *path = paths[i];
        size_t group = 0;
        if (stat(path, &sb) != 0) {
            const int errnum = errno;
            xpl_str_t whole;
            if (!is_capture(path, &whole, &group) || !xpl_arena_str(arena, whole, &whole) ||
                stat(whole.ptr, &sb) != 0 || !S_ISDIR(sb.st_mode))
                return xpl_path_fail_near(errnum, path, err);
            path = whole.ptr;
        }
        const bool is_dir = S_ISDIR(sb.st_mode);
        dir |= is_dir;
        l.from = i;
        XPL_TRY(is_dir ? add_dir(&l, arena, path, group, err) : add_file(&l, arena, path, err));
    }
    qsort(l.files.v, l.files.n, sizeof *l.files.v, by_name);
    XPL_TRY(tell_apart(&l, arena, err));
    XPL_TRY(list_hosts(&l, arena, &out, err));
    char real[PATH_MAX];
    if (dir && n == 1 &&
        !xpl_name_escape(arena, xpl_path_last(realpath(paths[0], real) ? real : paths[0]),
                         &out.session))
        XPL_RETURN_OOM(err, "list of profiles");
    *ret = out;
    return XPL_OK;
}
