// SPDX-License-Identifier: Apache-2.0
// Where the daemon's own files go: what --state-dir says, what systemd made, or the user's
// directories.
#include <stdio.h>
#include <stdlib.h>

#include "server/daemon_parts.h"

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
