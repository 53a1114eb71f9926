// SPDX-License-Identifier: Apache-2.0
// What a scan reads of files: when profiles were captured, of which processes they are, and which
// of them belong together.
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "storage/processes.h"
#include "storage/sessions/catalogue_impl.h"

// The path of a directory's file below LOGDIR.  False if it is too long.
static bool path_of(const struct xpl_dir *d, const struct xpl_dir_file *f, char ret[PATH_MAX]) {
    const int n =
        snprintf(ret, PATH_MAX, "%s%s%s", d->parent ? d->path : "", d->parent ? "/" : "", f->name);
    return n >= 0 && n < PATH_MAX;
}

void xpl_scan_read_time(struct xpl_catalogue *c, struct xpl_dir *d) {
    size_t i = 0;
    while (i < d->n_files && d->files[i].rank) // of another format: compressed, or of another kind
        i++;
    const struct xpl_dir_file *const f = i < d->n_files ? &d->files[i] : NULL;
    if (!f) { // a file that comes back, unchanged, is read again
        d->captured_ns = 0;
        d->captured_of = (struct xpl_fingerprint){0};
        d->run = (struct xpl_profile_identity){0};
    }
    if (!f || !c->o.captured_ns || c->root->objects ||
        xpl_fingerprint_eq(&f->fingerprint, &d->captured_of))
        return;
    char path[PATH_MAX];
    struct xpl_source *source = NULL;
    d->captured_ns = 0;
    d->captured_of = f->fingerprint;
    d->run = (struct xpl_profile_identity){0};
    if (!path_of(d, f, path) ||
        xpl_source_open_inside(c->root->fd, path, c->root->links_root, 0, &source, NULL) != XPL_OK)
        return;
    const int64_t ns = c->o.captured_ns(xpl_source_bytes(source));
    struct xpl_profile_identity run;
    const bool said = c->o.identify_run && c->o.identify_run(xpl_source_bytes(source), &run);
    if (xpl_source_verify(source, NULL) == XPL_OK) {
        d->captured_ns = ns;
        if (said) d->run = run;
    }
    xpl_source_free(source);
}

// ---- processes ----

// Files whose names say little: of more in one directory the content is not read.
enum { MAX_DOUBTFUL = 4096 };

const struct xpl_dir_file *xpl_scan_find_file(const struct xpl_dir *d, const char *name) {
    size_t lo = 0, hi = d->n_files;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(d->files[mid].name, name);
        if (order == 0) return &d->files[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static bool read_identity(struct xpl_catalogue *c, const struct xpl_dir *d,
                          struct xpl_scan_listing *l, const struct xpl_dir_file *f,
                          struct xpl_profile_identity *ret) {
    char path[PATH_MAX];
    struct xpl_source *source = NULL;
    if (!path_of(d, f, path)) return false;
    if (!c->root->objects && xpl_source_open_inside(c->root->fd, path, c->root->links_root, 0,
                                                    &source, NULL) == XPL_RESOURCE_EXHAUSTED)
        l->incomplete = true; // it is read again
    const xpl_bytes_t bytes = source ? xpl_source_bytes(source) : (xpl_bytes_t){0};
    const bool is = f->identify(xpl_str_from(path), bytes, ret);
    xpl_source_free(source);
    return is;
}

// False when the file is not a profile.
static bool identify(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_scan_listing *l,
                     struct xpl_dir_file *f) {
    const struct xpl_dir_file *const known = xpl_scan_find_file(d, f->name);
    struct xpl_profile_identity id;
    if (known && known->identity && xpl_fingerprint_eq(&known->fingerprint, &f->fingerprint))
        id = *known->identity;
    else if (!read_identity(c, d, l, f, &id))
        return !f->doubtful;
    // A part of another file's profile is only listed of LOGDIR itself.
    if (id.is_part && d->parent) return false;
    f->identity = xpl_sys_alloc(sizeof *f->identity);
    l->incomplete |= !f->identity; // it is read again
    if (f->identity) *f->identity = id;
    return f->identity || !f->doubtful;
}

void xpl_dir_file_fini(struct xpl_dir_file *f) {
    xpl_sys_free(f->name);
    xpl_sys_free(f->version);
    xpl_sys_free(f->identity);
}

bool xpl_scan_identify(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_scan_listing *l) {
    size_t n = 0, n_doubtful = 0;
    bool stopped = false;
    bool has_sure = false; // files of formats that say nothing of processes, as XSpaces
    for (size_t i = 0; i < l->n_files; i++)
        has_sure |= !l->files[i].identify;
    for (size_t i = 0; i < l->n_files; i++) {
        struct xpl_dir_file *const f = &l->files[i];
        n_doubtful += f->doubtful;
        const bool skip = f->doubtful && (has_sure || n_doubtful > MAX_DOUBTFUL);
        stopped |= i % CHECK_EVERY == 0 && xpl_scan_is_stopped(c);
        if (stopped || !f->identify || (!skip && identify(c, d, l, f)))
            l->files[n++] = *f;
        else
            xpl_dir_file_fini(f);
    }
    l->n_files = n;
    l->incomplete |= stopped; // the walk ends, too
    return has_sure || n_doubtful <= MAX_DOUBTFUL;
}

struct xpl_process_file xpl_dir_file_process(const struct xpl_dir_file *f) {
    return (struct xpl_process_file){.identity = f->identity,
                                     .name = f->name,
                                     .group = f->group,
                                     .is_twin = f->is_twin,
                                     .is_alone = f->is_alone};
}

// Chains the files of each group, so that no session looks at those of others.
static bool chain_groups(struct xpl_dir *d) {
    uint32_t *const groups = xpl_sys_alloc(d->n_groups * sizeof *groups);
    if (!groups) return false;
    memset(groups, 0, d->n_groups * sizeof *groups);
    for (size_t i = d->n_files; i-- > 0;) {
        struct xpl_dir_file *const f = &d->files[i];
        if (f->kind != 0) continue;
        f->next = groups[f->group];
        groups[f->group] = (uint32_t)i + 1;
    }
    d->groups = groups;
    return true;
}

static void take_groups(struct xpl_dir *d, const struct xpl_process_file *v) {
    for (size_t i = 0; i < d->n_files; i++) {
        d->files[i].group = v[i].group;
        d->files[i].is_twin = v[i].is_twin;
        d->files[i].is_alone = v[i].is_alone;
    }
}

bool xpl_dir_group(struct xpl_dir *d) {
    bool any = false;
    for (size_t i = 0; i < d->n_files; i++)
        any |= d->files[i].identity != NULL;
    d->n_groups = 1;
    xpl_sys_free(d->groups);
    d->groups = NULL;
    struct xpl_process_file *const v = any ? xpl_sys_alloc(d->n_files * sizeof *v) : NULL;
    if (!v) return !any;
    for (size_t i = 0; i < d->n_files; i++)
        v[i] = xpl_dir_file_process(&d->files[i]);
    d->n_groups = xpl_processes_group(v, d->n_files);
    take_groups(d, v);
    xpl_sys_free(v);
    if (d->n_groups == 1 || (d->n_groups && chain_groups(d))) return true;
    for (size_t i = 0; i < d->n_files; i++)
        d->files[i].group = 0;
    d->n_groups = 1;
    return false;
}
