// SPDX-License-Identifier: Apache-2.0
// A session of a log directory, found without a daemon, by the name that one on it gives it.
#ifndef XPL_CLI_LOGDIR_H_
#define XPL_CLI_LOGDIR_H_

#include <limits.h>

#include "storage/sessions/catalogue.h"

struct xpl_logdir {
    struct xpl_catalogue *catalogue;
    struct xpl_snapshot *snapshot;
    const struct xpl_session *session; // of the snapshot
};
// Searches all of LOGDIR.  NOT_FOUND proposes a name that is near; *ret is then closed.
xpl_status_t xpl_logdir_open(const char *logdir, const char *session, struct xpl_logdir *ret,
                             struct xpl_error *err) XPL_NODISCARD;
// Searches all of LOGDIR for its newest session, of runs that are joined
// (storage/joint.h). NOT_FOUND: there is none.
xpl_status_t xpl_logdir_open_newest(const char *logdir, struct xpl_logdir *ret,
                                    struct xpl_error *err) XPL_NODISCARD;
void xpl_logdir_close(struct xpl_logdir *l);
// The path of the file of host `i`.  False: it is too long.
bool xpl_logdir_path(const struct xpl_logdir *l, size_t i, char ret[PATH_MAX]);

#endif
