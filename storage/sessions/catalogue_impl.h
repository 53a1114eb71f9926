// SPDX-License-Identifier: Apache-2.0
// Private: the catalogue, for catalogue.c and for scan.c, which reads LOGDIR into its tree.
#ifndef XPL_STORAGE_SESSIONS_CATALOGUE_IMPL_H_
#define XPL_STORAGE_SESSIONS_CATALOGUE_IMPL_H_

#include <pthread.h>

#include "base/buf.h"
#include "base/exec.h"
#include "storage/sessions/scan.h"
#include "storage/store/listings.h"

// CHECK_EVERY: entries between two checks of the stop flag.
enum { MAX_LIMITS = 4, CHECK_EVERY = 64 };

// Of listings that daemons make for each other; scan_shared.c.
struct xpl_scan_share {
    struct xpl_store *store; // NULL: they do not
    struct xpl_listing_place place;
    bool may_scan;
    uint64_t pull_every_ns;
    enum xpl_scanner scanner;         // the daemon that lists; NOBODY: each by itself
    uint64_t until_ns;                // when that is this daemon: until then, by our clock
    uint64_t claim_at_ns, pull_at_ns; // not before; xpl_clock_ns
    int64_t generation;               // that was pulled
};

struct xpl_catalogue {
    struct xpl_catalogue_options o;
    char *base, *single; // base directory; LOGDIR's file name when it is a file, else NULL
    char *logdir_name;
    struct xpl_root *root;

    pthread_mutex_t scan_mu; // the tree below
    struct xpl_dir *top;
    struct xpl_dir **dirs; // all of the tree, parents first, as of the last scan
    size_t n_dirs, cap_dirs, n_hosts;
    struct xpl_arena_budget notes; // of all directories
    uint64_t generation;
    bool changed;                    // since the last snapshot
    bool scanned;                    // once at least
    const struct xpl_cancel *cancel; // of the scan of xpl_catalogue_new; else NULL
    atomic_bool stopped;
    struct xpl_scan_share share;
    char limits[MAX_LIMITS][256]; // sentences about limits that cut off the last scan
    size_t n_limits;

    pthread_mutex_t mark_mu; // marks of other threads, applied when a scan starts
    struct pending_mark {
        struct pending_mark *next;
        enum { MARK_CHANGED, MARK_WATCHED, MARK_UNWATCHED } what;
        size_t len;
        char path[];
    } * marks;
    bool lost_mark; // no memory for one: the next scan checks everything

    pthread_mutex_t snap_mu; // held only to copy the pointer
    struct xpl_snapshot *snap;
};

// Whether the scan is to end, with directories that are not read completely.
static inline bool xpl_scan_is_stopped(struct xpl_catalogue *c) {
    return atomic_load_explicit(&c->stopped, memory_order_relaxed) || xpl_cancel_is_set(c->cancel);
}

// ---- scan_tree.c ----

// Contents of a directory while a scan collects them; the arrays grow by doubling.
struct xpl_scan_listing {
    struct xpl_dir_file *files;
    size_t n_files, cap_files;
    struct xpl_dir **children;
    size_t n_children, cap_children;
    struct xpl_about *about;
    bool incomplete; // the status of an entry could not be read
};

// The directory at `path` of the tree, or NULL.
struct xpl_dir *xpl_scan_find(struct xpl_dir *top, xpl_str_t path);
// The directory's file of that name, as the last scan had it, or NULL.
const struct xpl_dir_file *xpl_scan_find_file(const struct xpl_dir *d, const char *name);
char *xpl_scan_copy_text(const char *s, size_t n);
// An array of n elements with room for one more, or NULL.
void *xpl_scan_grow(void *p, size_t n, size_t *cap, size_t elem);
struct xpl_dir *xpl_dir_new(struct xpl_dir *parent, const char *name);
// Frees `d` and all below it, without recursion: goes down to a leaf, frees it, and goes on from
// its parent.
void xpl_dir_free(struct xpl_dir *d);
// Notes whether some of a directory's contents are unknown.
void xpl_scan_set_unread(struct xpl_catalogue *c, struct xpl_dir *d, bool is_unread);
// The first problem of a directory is kept, all are counted; `_in`: of one of its files.
void xpl_scan_note_problem(struct xpl_dir *d, const char *path, const char *why);
void xpl_scan_forget_problems(struct xpl_dir *d);
void xpl_scan_note_problem_in(struct xpl_dir *d, const char *name, const char *why);
// False on OOM.
bool xpl_scan_add_file(struct xpl_scan_listing *l, const char *name,
                       const struct xpl_profile_file *file, bool link,
                       const struct xpl_fingerprint *fingerprint);
bool xpl_scan_add_child(struct xpl_scan_listing *l, struct xpl_dir *d, const char *name);
void xpl_scan_listing_free(struct xpl_scan_listing *l);
// Replaces the directory's contents by the listing, which it takes over.  Of several files of one
// host only that of the best format stays.
void xpl_scan_take_listing(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_scan_listing *l);
// Empties the directory until it can be read again.
void xpl_scan_drop_contents(struct xpl_catalogue *c, struct xpl_dir *d);

// ---- scan_shared.c ----

// Finds out which daemon is the scanner and, if another one is, reads its news; when it is time.
void xpl_scan_share_begin(struct xpl_catalogue *c);
// Updates a directory from the scanner's listing, by `replay`, which returns whether the body is
// valid.  False: this daemon has to list the directory, when it is time.
bool xpl_scan_pull(struct xpl_catalogue *c, struct xpl_dir *d,
                   bool (*replay)(struct xpl_catalogue *c, struct xpl_dir *d, xpl_bytes_t body));
// Publishes a listing by this daemon, begun at `began_ns`, if this daemon is the scanner.
void xpl_scan_offer(struct xpl_catalogue *c, struct xpl_dir *d, const struct xpl_buf *body,
                    uint64_t began_ns);

// ---- scan_objects.c, scan_files.c, scan.c ----

// Lists a directory of a bucket, when it is time.
xpl_status_t xpl_scan_visit_objects(struct xpl_catalogue *c, struct xpl_dir *d,
                                    struct xpl_error *err);

// Reads the time of capture from the session's first profile, unless that profile was read last.
void xpl_scan_read_time(struct xpl_catalogue *c, struct xpl_dir *d);
// Finds out of which processes the listed files are; removes those that are not profiles.  False:
// there were too many to look into all.
bool xpl_scan_identify(struct xpl_catalogue *c, struct xpl_dir *d, struct xpl_scan_listing *l);
// Walks breadth first, so that limits drop deep directories and not late ones.
xpl_status_t xpl_scan_walk(struct xpl_catalogue *c, enum xpl_scan what, struct xpl_error *err);

#endif
