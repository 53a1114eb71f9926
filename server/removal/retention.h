// SPDX-License-Identifier: Apache-2.0
// --retain: removes sessions whose newest file is older, unless they have a label.
#ifndef XPL_SERVER_REMOVAL_RETENTION_H_
#define XPL_SERVER_REMOVAL_RETENTION_H_

#include <stddef.h>
#include <stdint.h>

#include "server/removal/removal.h"

struct xpl_labels;
struct xpl_history;
struct xpl_retention;

struct xpl_retention_options { // all borrowed
    uint64_t age_ms;           // sessions that are older go
    struct xpl_catalogue *catalogue;
    struct xpl_history *history; // where labels are
    struct xpl_labels *labels;
    struct xpl_removals *removals;
    // Called after the removal of the session at `path` below LOGDIR, so that it is looked at soon.
    void (*scan)(void *arg, const char *path);
    void *arg;
};

// Has a thread, which waits for disks.  NULL when out of memory or threads.
struct xpl_retention *xpl_retention_new(const struct xpl_retention_options *o);
// The loop calls it a few times a second, with the time since 1970: begins a run once an hour, the
// first at once.  Never waits.
void xpl_retention_tick(struct xpl_retention *r, int64_t now_ms);
// Ends a run after the session that it removes just now; none begins afterwards.  NULL is fine.
void xpl_retention_stop(struct xpl_retention *r);
// Waits for a run.  NULL is fine.
void xpl_retention_free(struct xpl_retention *r);

// What a run did.
struct xpl_retained {
    size_t removed, failed; // sessions
    struct xpl_error why;   // of the last one that failed
    bool is_paused;         // labels are unknown: nothing was removed
};
// One run at this time, on the caller's thread.  Blocks.
struct xpl_retained xpl_retention_run(struct xpl_retention *r, int64_t now_ms);

#endif
