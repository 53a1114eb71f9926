// SPDX-License-Identifier: Apache-2.0
// The path of a session below LOGDIR, as in XProf: plugins/profile/NAME.  Only this file builds it.
#ifndef XPL_STORAGE_SESSIONS_LAYOUT_H_
#define XPL_STORAGE_SESSIONS_LAYOUT_H_

#include <limits.h>
#include <stdio.h>

#include "base/str.h"

#define XPL_SESSIONS_DIR "plugins/profile"

struct xpl_session_path {
    char text[sizeof XPL_SESSIONS_DIR + 1 + NAME_MAX]; // no directory has a longer name
};

// The session's directory, relative to LOGDIR; in *ret.
static inline const char *xpl_session_path(xpl_str_t name, struct xpl_session_path *ret) {
    (void)snprintf(ret->text, sizeof ret->text, XPL_SESSIONS_DIR "/%.*s", XPL_STR_FMT(name));
    return ret->text;
}
// The same below LOGDIR; cut where ret[0..size) is too short.
static inline void xpl_session_path_in(const char *logdir, xpl_str_t name, char *ret, size_t size) {
    struct xpl_session_path below;
    (void)snprintf(ret, size, "%s/%s", logdir, xpl_session_path(name, &below));
}

#endif
