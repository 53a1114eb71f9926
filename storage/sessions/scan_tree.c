// SPDX-License-Identifier: Apache-2.0
// The tree of LOGDIR's directories, and the update of a directory from its listing.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/sessions/catalogue_impl.h"
#include "storage/sessions/path.h"

char *xpl_scan_copy_text(const char *s, size_t n) {
    char *p = xpl_sys_alloc(n + 1);
    if (!p) return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

void xpl_scan_set_unread(struct xpl_catalogue *c, struct xpl_dir *d, bool is_unread) {
    c->changed |= d->is_unread != is_unread; // snapshots say so
    d->is_unread = is_unread;
}

void xpl_scan_forget_problems(struct xpl_dir *d) {
    xpl_sys_free(d->problem);
    d->problem = NULL, d->n_problems = 0;
}

void xpl_scan_note_problem(struct xpl_dir *d, const char *path, const char *why) {
    char buf[256];
    const int n =
        snprintf(buf, sizeof buf, "%s: %s", xpl_path_shown(path, &(struct xpl_path_text){0}), why);
    if (!d->problem && n > 0) d->problem = xpl_scan_copy_text(buf, strlen(buf));
    d->n_problems++;
}

// --- The tree ---

static void files_free(struct xpl_dir_file *files, size_t n) {
    for (size_t i = 0; i < n; i++)
        xpl_dir_file_fini(&files[i]);
    xpl_sys_free(files);
}

void xpl_dir_free(struct xpl_dir *d) {
    struct xpl_dir *const above = d ? d->parent : NULL;
    while (d && d != above) {
        if (d->n_children) {
            d = d->children[--d->n_children];
            continue;
        }
        struct xpl_dir *const parent = d->parent;
        files_free(d->files, d->n_files);
        xpl_about_free(d->about);
        xpl_sys_free(d->groups);
        xpl_sys_free(d->children);
        xpl_sys_free(d->path);
        xpl_sys_free(d->problem);
        xpl_sys_free(d);
        d = parent;
    }
}

struct xpl_dir *xpl_dir_new(struct xpl_dir *parent, const char *name) {
    struct xpl_dir *d = xpl_sys_alloc(sizeof *d);
    if (!d) return NULL;
    *d = (struct xpl_dir){.parent = parent, .marked = true};
    const size_t above = parent && parent->parent ? parent->path_len + 1 : 0;
    const size_t len = strlen(name);
    d->path = xpl_sys_alloc(above + len + 1);
    if (!d->path) {
        xpl_sys_free(d);
        return NULL;
    }
    if (above) memcpy(d->path, parent->path, above - 1), d->path[above - 1] = '/';
    memcpy(d->path + above, name, len + 1);
    d->path_len = above + len;
    d->name_at = above;
    return d;
}

static struct xpl_dir *child_named(const struct xpl_dir *d, xpl_str_t name) {
    size_t lo = 0, hi = d->n_children;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        struct xpl_dir *child = d->children[mid];
        const int order = xpl_str_cmp(xpl_str_from(child->path + child->name_at), name);
        if (order == 0) return child;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

struct xpl_dir *xpl_scan_find(struct xpl_dir *top, xpl_str_t path) {
    struct xpl_dir *d = top;
    if (xpl_str_eq(path, XPL_STR("."))) return d;
    for (size_t at = 0; d && at <= path.len;) {
        const size_t slash = xpl_str_find(path, XPL_STR("/"), at);
        const size_t end = slash == SIZE_MAX ? path.len : slash;
        d = child_named(d, xpl_str_sub(path, at, end - at));
        at = end + 1;
    }
    return d;
}

static int file_cmp(const void *a, const void *b) {
    return strcmp(((const struct xpl_dir_file *)a)->name, ((const struct xpl_dir_file *)b)->name);
}
static int child_cmp(const void *pa, const void *pb) {
    const struct xpl_dir *a = *(struct xpl_dir *const *)pa, *b = *(struct xpl_dir *const *)pb;
    return strcmp(a->path + a->name_at, b->path + b->name_at);
}

// --- Collected contents of a directory ---

void *xpl_scan_grow(void *p, size_t n, size_t *cap, size_t elem) {
    if (n < *cap) return p;
    const size_t next = *cap ? *cap * 2 : 8;
    void *q = xpl_sys_realloc(p, next * elem);
    if (q) *cap = next;
    return q;
}

void xpl_scan_listing_free(struct xpl_scan_listing *l) {
    files_free(l->files, l->n_files);
    for (size_t i = 0; i < l->n_children; i++) {
        l->children[i]->parent = NULL;
        xpl_dir_free(l->children[i]);
    }
    xpl_sys_free(l->children);
    xpl_about_free(l->about);
}

bool xpl_scan_add_file(struct xpl_scan_listing *l, const char *name,
                       const struct xpl_profile_file *file, bool link,
                       const struct xpl_fingerprint *fingerprint) {
    struct xpl_dir_file *files = xpl_scan_grow(l->files, l->n_files, &l->cap_files, sizeof *files);
    if (!files) return false;
    l->files = files;
    char *copy = xpl_scan_copy_text(name, strlen(name));
    if (!copy) return false;
    files[l->n_files++] = (struct xpl_dir_file){.name = copy,
                                                .len = file->host.len,
                                                .riegeli = file->refusal != NULL,
                                                .rank = (uint8_t)file->rank,
                                                .kind = (uint8_t)(file->rank / XPL_RANKS_OF_KIND),
                                                .doubtful = file->is_doubtful,
                                                .link = link,
                                                .identify = file->identify,
                                                .fingerprint = *fingerprint};
    return true;
}

bool xpl_scan_add_child(struct xpl_scan_listing *l, struct xpl_dir *d, const char *name) {
    struct xpl_dir **children =
        xpl_scan_grow(l->children, l->n_children, &l->cap_children, sizeof(struct xpl_dir *));
    if (!children) return false;
    l->children = children;
    struct xpl_dir *child = xpl_dir_new(d, name);
    if (!child) return false;
    children[l->n_children++] = child;
    return true;
}

void xpl_scan_note_problem_in(struct xpl_dir *d, const char *name, const char *why) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s%s%s", d->parent ? d->path : "", d->parent ? "/" : "",
                   name);
    xpl_scan_note_problem(d, path, why);
}

// Files by host, the one that counts first.
static int twin_cmp(const void *pa, const void *pb) {
    const struct xpl_dir_file *a = pa, *b = pb;
    const int c = xpl_str_cmp((xpl_str_t){a->name, a->len}, (xpl_str_t){b->name, b->len});
    if (c) return c;
    if (a->riegeli != b->riegeli) return a->riegeli - b->riegeli;
    return a->rank != b->rank ? a->rank - b->rank : strcmp(a->name, b->name);
}

// Of several files of one host only that of the best format stays in the list.
static void drop_twins(struct xpl_dir *d, struct xpl_scan_listing *l) {
    bool several = false;
    size_t n = 0;
    for (size_t i = 0; i < l->n_files; i++)
        several |= l->files[i].rank > 0;
    if (!several) return; // names of the first format differ
    qsort(l->files, l->n_files, sizeof *l->files, twin_cmp);
    for (size_t i = 0; i < l->n_files; i++) {
        struct xpl_dir_file *const f = &l->files[i];
        const struct xpl_dir_file *const best = n ? &l->files[n - 1] : NULL;
        const bool same = best && best->len == f->len && best->kind == f->kind;
        if (!same || memcmp(best->name, f->name, f->len) != 0) {
            l->files[n++] = *f;
            continue;
        }
        if (!f->riegeli && strcmp(best->name, f->name) != 0) // else listed twice
            xpl_scan_note_problem_in(d, f->name, "left out: its host has another file here");
        xpl_dir_file_fini(f);
    }
    l->n_files = n;
}

// --- Taking over a listing ---

static bool same_files(const struct xpl_dir *d, const struct xpl_scan_listing *l) {
    if (d->n_files != l->n_files) return false;
    for (size_t i = 0; i < l->n_files; i++)
        if (strcmp(d->files[i].name, l->files[i].name) != 0 ||
            !xpl_fingerprint_eq(&d->files[i].fingerprint, &l->files[i].fingerprint))
            return false;
    return true;
}

// Keeps the nodes of directories that are still there (with all that is known of them).
static void adopt_children(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_scan_listing *l) {
    size_t o = 0;
    for (size_t i = 0; i < l->n_children; i++) {
        while (o < d->n_children && child_cmp(&d->children[o], &l->children[i]) < 0) {
            xpl_dir_free(d->children[o++]);
            c->changed = true;
        }
        if (o < d->n_children && child_cmp(&d->children[o], &l->children[i]) == 0) {
            xpl_dir_free(l->children[i]);
            l->children[i] = d->children[o++];
        } else {
            c->changed = true;
        }
    }
    for (; o < d->n_children; o++) {
        xpl_dir_free(d->children[o]);
        c->changed = true;
    }
    xpl_sys_free(d->children);
    d->children = l->children;
    d->n_children = l->n_children;
}

// Most directories have one or two files: releases the reserve of growing.
static void *shrunk(void *p, size_t bytes) {
    void *q = bytes ? xpl_sys_realloc(p, bytes) : NULL;
    return q ? q : p;
}

// A network's file system may list a name twice while its directory changes.
static void drop_repeated(struct xpl_scan_listing *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->n_files; i++) {
        if (!n || strcmp(l->files[n - 1].name, l->files[i].name) != 0) {
            l->files[n++] = l->files[i];
            continue;
        }
        xpl_dir_file_fini(&l->files[i]);
    }
    l->n_files = n;
    n = 0;
    for (size_t i = 0; i < l->n_children; i++)
        if (!n || child_cmp(&l->children[n - 1], &l->children[i]) != 0)
            l->children[n++] = l->children[i];
        else
            xpl_dir_free(l->children[i]);
    l->n_children = n;
}

void xpl_scan_take_listing(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_scan_listing *l) {
    if (!xpl_scan_identify(c, d, l))
        xpl_scan_note_problem(d, d->path, "of very many .json files some were not looked at");
    drop_twins(d, l);
    l->files = shrunk(l->files, l->n_files * sizeof *l->files);
    l->children = shrunk(l->children, l->n_children * sizeof(struct xpl_dir *));
    if (l->n_files) qsort(l->files, l->n_files, sizeof *l->files, file_cmp);
    if (l->n_children) qsort(l->children, l->n_children, sizeof *l->children, child_cmp);
    drop_repeated(l);
    if (!xpl_about_finish(&l->about, &c->notes))
        xpl_scan_note_problem(d, d->path, "captures lost too many hosts to list them");
    if (!same_files(d, l) || !xpl_about_eq(d->about, l->about) || !d->known) {
        d->changed = c->generation + 1;
        c->changed = true;
    }
    files_free(d->files, d->n_files);
    xpl_about_free(d->about);
    d->about = l->about;
    d->files = l->files;
    d->n_files = l->n_files;
    l->incomplete |= !xpl_dir_group(d);
    xpl_scan_read_time(c, d);
    d->links = false;
    for (size_t i = 0; i < d->n_files; i++)
        d->links |= d->files[i].link;
    adopt_children(c, d, l);
    d->known = true;
    d->marked = l->incomplete;
}

void xpl_scan_drop_contents(struct xpl_catalogue *c, struct xpl_dir *d) {
    struct xpl_scan_listing none = {0};
    xpl_scan_take_listing(c, d, &none);
    d->marked = true; // until it can be read
}
