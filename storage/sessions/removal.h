// SPDX-License-Identifier: Apache-2.0
// Removing sessions from LOGDIR: for DeleteSession, and for schedules that keep a number of them.
#ifndef XPL_STORAGE_SESSIONS_REMOVAL_H_
#define XPL_STORAGE_SESSIONS_REMOVAL_H_

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/layout.h"

// Removes a session from the directory `path` below `logdir`: its profiles (what `match` says is
// one), our notes about them, files of captures that nobody writes any more; in one of XProf's run
// directories (PREFIX/plugins/profile/RUN) also what XProf, TensorFlow and JAX keep beside
// profiles. Then the directory, if it is empty (never `logdir` itself).  Everything else stays.  No
// component of `path` may be a link (FAILED_PRECONDITION); links in it are removed, not followed.
// With `ino` not 0, only a directory of that identity: FAILED_PRECONDITION for another one.
// NOT_FOUND, PERMISSION_DENIED, ... with a sentence.  Blocks.
xpl_status_t xpl_session_remove(const char *logdir, const char *path, xpl_profile_match_fn match,
                                uint64_t dev, uint64_t ino, struct xpl_error *err) XPL_NODISCARD;

// Whether the file goes with its session: profiles that are read, and our notes; in one of XProf's
// run directories (`run`) also profiles that are not read, and what stands beside profiles there.
bool xpl_session_owns_file(xpl_str_t name, xpl_profile_match_fn match, bool run);

// What a schedule knows of a session that it made.
struct xpl_session_made {
    uint64_t n_hosts;
    int64_t at_ms; // when it was stored, since 1970
};
// The same of a bucket: its directory is listed, and of what is named there the objects that
// xpl_session_remove would remove are, profiles last; so one that fails can be tried again.
// `made`, if not NULL, says what is there: with more profiles, or profiles that were written since,
// the session is left alone (FAILED_PRECONDITION).  NOT_FOUND: there is nothing of a session;
// RESOURCE_EXHAUSTED: too many names; else as xpl_objects_list.  Blocks.
xpl_status_t xpl_session_remove_objects(struct xpl_objects *o, const char *path,
                                        xpl_profile_match_fn match,
                                        const struct xpl_session_made *made, struct xpl_error *err)
    XPL_NODISCARD;

// Profiles in the directory `path` below `logdir`, those of formats that are not read and those
// that are just being written among them; 0 where a link is on the way.  Their sizes' sum comes in
// *ret_bytes, which may be NULL.  Blocks.
uint64_t xpl_session_count_files(const char *logdir, const char *path, xpl_profile_match_fn match,
                                 uint64_t *ret_bytes);

// Where a session's directory is, in a form that a later process can check.
struct xpl_session_place {
    uint64_t dev, ino;
    char path[PATH_MAX + sizeof(struct xpl_session_path)]; // absolute; LOGDIR without links
};
// The place of session `name` of `logdir`.  False: there is none.  Blocks.
bool xpl_session_locate(const char *logdir, xpl_str_t name, struct xpl_session_place *ret);

// Removes what a capture that was broken off left in the directory `path` (absolute, without
// links), if that has this identity (`ino` 0: whatever it is): hidden files that nobody writes any
// more, and hidden directories of hosts; then the directory, if that leaves it empty.  Blocks.
void xpl_session_clean(const char *path, uint64_t dev, uint64_t ino);

#endif
