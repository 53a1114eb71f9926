// SPDX-License-Identifier: Apache-2.0
// Removes sessions of LOGDIR, for clients, schedules and retention alike, and counts them.  Any
// thread may call anything.
#ifndef XPL_SERVER_REMOVAL_REMOVAL_H_
#define XPL_SERVER_REMOVAL_REMOVAL_H_

#include <stdatomic.h>

#include "storage/sessions/catalogue.h"
#include "storage/sessions/removal.h"

enum xpl_removal_cause {
    XPL_REMOVAL_CLIENT,
    XPL_REMOVAL_SCHEDULE,
    XPL_REMOVAL_RETENTION,
    XPL_REMOVAL_CAUSES
};

struct xpl_removals {
    const char *logdir;          // borrowed
    struct xpl_objects *objects; // the bucket that LOGDIR is in; NULL: a directory
    atomic_ullong removed[XPL_REMOVAL_CAUSES];
};

struct xpl_removal {
    enum xpl_removal_cause cause;
    const char *path;                    // of the session, relative to LOGDIR
    uint64_t dev, ino;                   // of its directory; ino 0: any
    const struct xpl_session_made *made; // the permitted contents; NULL: any
};
// FAILED_PRECONDITION, NOT_FOUND, ... as xpl_session_remove.  Blocks.
xpl_status_t xpl_removals_run(struct xpl_removals *r, const struct xpl_removal *what,
                              struct xpl_error *err) XPL_NODISCARD;

// Whether a removal of the directory `one->path` finds all files of the session, and no other's:
// FAILED_PRECONDITION with a sentence if not.
xpl_status_t xpl_removal_check(const struct xpl_snapshot *snap, const struct xpl_session *one,
                               struct xpl_error *err) XPL_NODISCARD;

#endif
