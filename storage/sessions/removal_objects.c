// SPDX-License-Identifier: Apache-2.0
// Removing sessions from a bucket.
#include <stdio.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "storage/objects/objects.h"
#include "storage/sessions/path.h"
#include "storage/sessions/removal.h"

// PAGES: of the directory, 1,000 names each.  CLOCK_MS: what the clocks of store and daemon may
// differ by; stores refuse signatures that differ more.
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
    xpl_str_t host;
    unsigned rank;
    const char *refusal = NULL;
    if (!xpl_session_owns_file(o->path, l->match, l->run)) return true;
    const bool top = xpl_str_eq(l->dir, XPL_STR("."));
    const bool profile = l->match(o->path, &host, &rank, &refusal);
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

static xpl_status_t check(const struct listed *l, const struct xpl_session_made *made,
                          struct xpl_error *err) {
    struct xpl_path_text shown;
    const char *const path = xpl_path_shown(l->dir.ptr, &shown);
    if (l->cut)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "cannot remove %.120s: it has more than %d objects", path, PAGES * 1000);
    if (!l->profiles && !l->others)
        XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "cannot remove %.120s: nothing of a session is there",
                         path);
    if (made && l->n_profiles > made->n_hosts)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%.120s has profiles of others; it is left alone", path);
    if (made && l->newest_ns / 1000000 > made->at_ms + CLOCK_MS)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%.120s has profiles that were written later; it is left alone", path);
    return XPL_OK;
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
    if (st == XPL_OK) st = check(&l, made, err);
    if (st == XPL_OK) st = remove_all(o, l.others, err);
    if (st == XPL_OK) st = remove_all(o, l.profiles, err);
    xpl_arena_fini(&l.arena);
    return st;
}
