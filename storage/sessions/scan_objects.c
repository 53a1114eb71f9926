// SPDX-License-Identifier: Apache-2.0
// Reads the directories of a bucket: each by a listing, as no property of a directory changes with
// its contents.  So they are listed again when it is time, and when a read found one to be wrong.
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "storage/objects/objects.h"
#include "storage/sessions/catalogue_impl.h"
#include "storage/sessions/layout.h"
#include "storage/sessions/path.h"
#include "storage/store/listing_body.h"

// PAGES: of a directory that may have profiles; OTHER_PAGES: of one that is only on the way, such
// as one of checkpoints.  Of 1,000 names each.
enum { RARELY = 20, PAGES = 1000, OTHER_PAGES = 10, RECENT_S = 3600 };

// The contents of a listing, as it is read from the bucket, or as another daemon wrote it.
struct reading {
    struct xpl_catalogue *c;
    struct xpl_dir *d;
    struct xpl_scan_listing l;
    bool of_run;
    int64_t newest_ns; // of its profiles; of a run, whose profiles may be to come, of all objects
    struct xpl_buf *body; // gets it for other daemons; NULL: for none
};

static xpl_str_t path_of(const struct xpl_dir *d) {
    return (xpl_str_t){d->path, d->path_len};
}

// ---- when ----

static bool is_run(const struct xpl_dir *d) {
    xpl_str_t prefix, run;
    return d->parent && xpl_path_is_run(path_of(d), &prefix, &run);
}

// LOGDIR, its children, and parents of run directories: new runs appear there.
static bool leads_to_runs(const struct xpl_dir *d) {
    const xpl_str_t name = {d->path + d->name_at, d->path_len - d->name_at};
    return !d->parent || !d->parent->parent || xpl_str_eq(name, XPL_STR("plugins")) ||
           xpl_str_eq(path_of(d), XPL_STR(XPL_SESSIONS_DIR)) ||
           xpl_str_ends(path_of(d), XPL_STR("/" XPL_SESSIONS_DIR));
}

static bool is_recent(const struct xpl_dir *d) {
    return d->mtime_ns > xpl_unix_ns() - RECENT_S * (int64_t)1000000000;
}

static void plan(const struct xpl_catalogue *c, struct xpl_dir *d) {
    const uint64_t often = leads_to_runs(d) || is_recent(d) ? 1 : RARELY;
    d->list_at_ns = xpl_clock_ns() + often * c->o.list_every_ns;
}

// ---- contents ----

static bool on_object(void *arg, const struct xpl_stored_object *o) {
    struct reading *const r = arg;
    struct xpl_profile_file file;
    char name[NAME_MAX + 1], *version;
    const bool is_newest = o->mtime_ns > r->newest_ns;
    if (is_newest && r->of_run) r->newest_ns = o->mtime_ns;
    if (o->path.len > NAME_MAX) return true; // no profile's name
    (void)snprintf(name, sizeof name, "%.*s", XPL_STR_FMT(o->path));
    if (!xpl_root_match(r->c->o.match, name, &file)) return true;
    if (is_newest) r->newest_ns = o->mtime_ns;
    if (r->body) xpl_listing_body_put_object(r->body, o);
    struct xpl_stored_object whole = *o;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s%s%s", r->d->parent ? r->d->path : "",
                   r->d->parent ? "/" : "", name);
    whole.path = xpl_str_from(path);
    uint64_t id[2];
    xpl_objects_identify(r->c->root->objects, &whole, id);
    const struct xpl_fingerprint fingerprint = {.dev = id[0],
                                                .ino = id[1],
                                                .size = o->size,
                                                .mtime_ns = o->mtime_ns,
                                                .ctime_ns = o->mtime_ns};
    version = xpl_scan_copy_text(o->version.ptr, o->version.len);
    if (!version || !xpl_scan_add_file(&r->l, name, &file, false, &fingerprint)) {
        xpl_sys_free(version);
        return false;
    }
    r->l.files[r->l.n_files - 1].version = version;
    return true;
}

static bool on_folder(void *arg, xpl_str_t name) {
    struct reading *const r = arg;
    char text[NAME_MAX + 1];
    if (r->body) xpl_listing_body_put_folder(r->body, name);
    if (name.len > NAME_MAX) {
        xpl_scan_note_problem(r->d, r->d->path, "a directory below is left out, its name is long");
        return true;
    }
    (void)snprintf(text, sizeof text, "%.*s", XPL_STR_FMT(name));
    return xpl_scan_add_child(&r->l, r->d, text);
}

static void note_left_out(struct xpl_dir *d, const struct xpl_object_list *list) {
    char why[96];
    if (list->cut) {
        (void)snprintf(why, sizeof why, "only the first %u names are listed",
                       list->max_pages * 1000);
        xpl_scan_note_problem(d, d->path, why);
    }
    if (list->n_refused) {
        (void)snprintf(why, sizeof why, "%zu objects are left out: their names are not paths",
                       list->n_refused);
        xpl_scan_note_problem(d, d->path, why);
    }
}

// Whether others may be listed all the same: else one directory would keep the catalogue as it is.
static bool is_its_own(xpl_status_t st) {
    return st == XPL_PERMISSION_DENIED || st == XPL_DATA_LOSS || st == XPL_FAILED_PRECONDITION ||
           st == XPL_INVALID_ARGUMENT;
}

static void begin_reading(struct reading *r, struct xpl_object_list *list) {
    struct xpl_dir *const d = r->d;
    *list =
        (struct xpl_object_list){.object = on_object,
                                 .folder = on_folder,
                                 .arg = r,
                                 .max_pages = leads_to_runs(d) || r->of_run ? PAGES : OTHER_PAGES};
    xpl_scan_forget_problems(d);
}

// Replaces the directory's contents by the listing.
static void end_reading(struct reading *r, const struct xpl_object_list *list) {
    note_left_out(r->d, list);
    xpl_scan_take_listing(r->c, r->d, &r->l);
    xpl_scan_set_unread(r->c, r->d, list->cut);
    r->d->mtime_ns = r->newest_ns;
    plan(r->c, r->d);
}

static xpl_status_t read_objects(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_buf *body,
                                 struct xpl_error *err) {
    struct reading r = {.c = c, .d = d, .of_run = is_run(d), .body = body};
    struct xpl_object_list list;
    const uint64_t began_ns = xpl_clock_ns();
    struct xpl_error why = {0};
    begin_reading(&r, &list);
    const xpl_status_t st = xpl_objects_list(c->root->objects, path_of(d), &list, &why);
    if (st == XPL_OK) {
        if (body) xpl_listing_body_end(body, &list);
        end_reading(&r, &list);
        xpl_scan_offer(c, d, body, began_ns);
        return XPL_OK;
    }
    xpl_scan_listing_free(&r.l);
    if (is_its_own(st) && d->parent) {
        xpl_scan_set_unread(c, d, true);
        xpl_scan_note_problem(d, d->path,
                              st == XPL_PERMISSION_DENIED
                                  ? "the object store does not allow listing it"
                                  : "its listing cannot be read");
        if (st == XPL_PERMISSION_DENIED || !d->known) xpl_scan_drop_contents(c, d);
        d->marked = false;
        return XPL_OK;
    }
    XPL_RETURN_ERROR(err, st, "%s", why.msg); // the old contents stay
}

static bool replay(struct xpl_catalogue *c, struct xpl_dir *d, xpl_bytes_t body) {
    struct reading r = {.c = c, .d = d, .of_run = is_run(d)};
    struct xpl_object_list list;
    begin_reading(&r, &list);
    const bool good = xpl_listing_body_read(body, &list);
    if (good)
        end_reading(&r, &list);
    else
        xpl_scan_listing_free(&r.l);
    return good;
}

static xpl_status_t list_objects(struct xpl_catalogue *c, struct xpl_dir *d,
                                 struct xpl_error *err) {
    struct xpl_buf body = xpl_buf_of(XPL_LISTING_MAX_BYTES);
    const bool shared = c->share.scanner == XPL_SCANNER_THIS;
    const xpl_status_t st = read_objects(c, d, shared ? &body : NULL, err);
    xpl_buf_fini(&body);
    return st;
}

xpl_status_t xpl_scan_visit_objects(struct xpl_catalogue *c, struct xpl_dir *d,
                                    struct xpl_error *err) {
    d->marked |= xpl_objects_take_stale(c->root->objects, path_of(d)); // until it was listed
    const bool asked = d->marked && d->known; // another component has news that the scanner lacks
    if (!asked && xpl_scan_pull(c, d, replay)) return XPL_OK;
    if (!d->marked && xpl_clock_ns() < d->list_at_ns) return XPL_OK;
    const xpl_status_t st = list_objects(c, d, err);
    plan(c, d);
    return st;
}
