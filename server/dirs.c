// SPDX-License-Identifier: Apache-2.0
// Where the daemon's own files go: what --state-dir says, what systemd made, or the user's
// directories.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/formats/format.h"
#include "base/log.h"
#include "server/daemon_parts.h"
#include "storage/make_dirs.h"

xpl_status_t xpl_daemon_make_logdir(const char *logdir, struct xpl_error *err) {
    struct stat st;
    // What is called like a profile was to be one.
    if (stat(logdir, &st) == 0 || errno != ENOENT || xpl_format_of_name(xpl_str_from(logdir), NULL))
        return XPL_OK;
    if (xpl_make_dirs(logdir, 0777)) {
        struct xpl_log_line l;
        xpl_log_begin(&l, XPL_LOG_INFO, "daemon", "LOGDIR was missing, and is made");
        xpl_log_z(&l, "path", logdir);
        xpl_log_end(&l);
        return XPL_OK;
    }
    const xpl_status_t code = errno == EACCES || errno == EPERM || errno == EROFS
                                  ? XPL_PERMISSION_DENIED
                              : errno == ENOSPC || errno == EDQUOT ? XPL_RESOURCE_EXHAUSTED
                                                                   : XPL_FAILED_PRECONDITION;
    XPL_RETURN_ERROR(
        err, code,
        "--logdir %.100s is missing and cannot be made (%s): make it for this user, or "
        "name another directory",
        logdir, strerror(errno));
}

xpl_status_t xpl_daemon_cache_dir(const struct xpl_config *c, char *ret, size_t size,
                                  struct xpl_error *err) {
    const char *const cache = getenv("CACHE_DIRECTORY"), *const xdg = getenv("XDG_CACHE_HOME"),
                      *const home = getenv("HOME");
    int n = -1;
    if (c->state_dir[0])
        n = snprintf(ret, size, "%s", c->state_dir);
    else if (cache && cache[0])
        n = snprintf(ret, size, "%s", cache);
    else if (xdg && xdg[0])
        n = snprintf(ret, size, "%s/xplaned", xdg);
    else if (home && home[0])
        n = snprintf(ret, size, "%s/.cache/xplaned", home);
    if (n < 0 || (size_t)n >= size)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "no place for cache.db: set --state-dir DIR");
    return XPL_OK;
}

xpl_status_t xpl_daemon_state_dir(const struct xpl_config *c, char *ret, size_t size,
                                  struct xpl_error *err) {
    const char *const state = getenv("STATE_DIRECTORY"), *const xdg = getenv("XDG_STATE_HOME"),
                      *const home = getenv("HOME");
    int n = -1;
    if (c->state_dir[0])
        n = snprintf(ret, size, "%s", c->state_dir);
    else if (state && state[0])
        n = snprintf(ret, size, "%s", state);
    else if (xdg && xdg[0])
        n = snprintf(ret, size, "%s/xplaned", xdg);
    else if (home && home[0])
        n = snprintf(ret, size, "%s/.local/state/xplaned", home);
    if (n < 0 || (size_t)n >= size)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "no place for state.db: set --state-dir DIR");
    return XPL_OK;
}
