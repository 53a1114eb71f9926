// SPDX-License-Identifier: Apache-2.0
// Removing sessions from LOGDIR: for DeleteSession, --retain, and schedules that keep a number of
// them.
#ifndef XPL_STORAGE_SESSIONS_REMOVAL_H_
#define XPL_STORAGE_SESSIONS_REMOVAL_H_

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "storage/sessions/catalogue.h"
#include "storage/sessions/layout.h"

// Removes a session from the directory `path` below `logdir`: its profiles (by `match`), our notes
// about them, and abandoned files of captures; in one of XProf's run directories
// (PREFIX/plugins/profile/RUN) also the files that XProf, TensorFlow and JAX put next to profiles.
// Then removes the directory, if it is empty (never `logdir` itself).  Everything else stays.  No
// component of `path` may be a link (FAILED_PRECONDITION); links in it are removed, not followed.
// With `ino` not 0, only a directory of that identity: FAILED_PRECONDITION for another one.
// `made`, if not NULL, has the expected contents, which are compared with the opened directory.
// NOT_FOUND, PERMISSION_DENIED, ... with a sentence.  Blocks.
struct xpl_session_made;
xpl_status_t xpl_session_remove(const char *logdir, const char *path, xpl_profile_match_fn match,
                                uint64_t dev, uint64_t ino, const struct xpl_session_made *made,
                                struct xpl_error *err) XPL_NODISCARD;

// The expected contents of a session.  One with more profiles, or with newer ones, is not removed
// (FAILED_PRECONDITION): others added them.  Files that are still being written count.
struct xpl_session_made {
    uint64_t n_hosts;
    int64_t at_ms; // when the newest profile was stored, since 1970; INT64_MAX: at any time
};
// Does that in a bucket: lists the directory and removes the objects that xpl_session_remove would
// remove, profiles last, so that a removal that failed can be repeated.  The bucket's clock may
// differ by 15 minutes.  NOT_FOUND: no object belongs to the session; RESOURCE_EXHAUSTED: too many
// names; otherwise as xpl_objects_list.  Blocks.
xpl_status_t xpl_session_remove_objects(struct xpl_objects *o, const char *path,
                                        xpl_profile_match_fn match,
                                        const struct xpl_session_made *made, struct xpl_error *err)
    XPL_NODISCARD;

// Counts the profiles in the directory `path` below `logdir`, including formats that are not read
// and files that are still being written; 0 if a component is a link.  *ret_bytes, which may be
// NULL, gets the sum of their sizes.  Blocks.
uint64_t xpl_session_count_files(const char *logdir, const char *path, xpl_profile_match_fn match,
                                 uint64_t *ret_bytes);

// Where a session's directory is, in a form that a later process can check.
struct xpl_session_place {
    uint64_t dev, ino;
    char path[PATH_MAX + sizeof(struct xpl_session_path)]; // absolute; LOGDIR without links
};
// The place of session `name` of `logdir`.  False: there is none.  Blocks.
bool xpl_session_locate(const char *logdir, xpl_str_t name, struct xpl_session_place *ret);

// Removes the remains of an interrupted capture from the directory `path` (absolute, without
// links), if it has this identity (`ino` 0: any): abandoned hidden files, and hidden directories of
// hosts; then the directory, if it is empty.  Blocks.
void xpl_session_clean(const char *path, uint64_t dev, uint64_t ino);

#endif
