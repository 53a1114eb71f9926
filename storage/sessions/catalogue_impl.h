// SPDX-License-Identifier: Apache-2.0
// Private: the catalogue, for catalogue.c and for scan.c, which reads LOGDIR into its tree.
#ifndef XPL_STORAGE_SESSIONS_CATALOGUE_IMPL_H_
#define XPL_STORAGE_SESSIONS_CATALOGUE_IMPL_H_

#include <pthread.h>

#include "storage/sessions/scan.h"

enum { MAX_LIMITS = 4 };

struct xpl_catalogue {
    struct xpl_catalogue_options o;
    char *base, *single; // base directory; LOGDIR's file name when it is a file, else NULL
    char *logdir_name;
    struct xpl_root *root;

    pthread_mutex_t scan_mu; // the tree below
    struct xpl_dir *top;
    struct xpl_dir **dirs; // all of the tree, parents first, as of the last scan
    size_t n_dirs, cap_dirs, n_hosts;
    uint64_t generation;
    bool changed;                 // since the last snapshot
    char limits[MAX_LIMITS][256]; // what the last scan had to cut off
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

char *xpl_scan_copy_text(const char *s, size_t n);
// Frees `d` and all below it, without recursion: goes down to a leaf, frees it, and goes on from
// its parent.
void xpl_dir_free(struct xpl_dir *d);
// Asks the session's first profile when it was captured, unless it is the one that was asked last.
void xpl_scan_read_time(struct xpl_catalogue *c, struct xpl_dir *d);
struct xpl_dir *xpl_dir_new(struct xpl_dir *parent, const char *name);
// Breadth first, so that limits cut off what is deep, not what comes late.
xpl_status_t xpl_scan_walk(struct xpl_catalogue *c, enum xpl_scan what, struct xpl_error *err);

#endif
