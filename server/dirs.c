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
#include "storage/places.h"

xpl_status_t xpl_daemon_make_logdir(const char *logdir, struct xpl_error *err) {
    struct stat st;
    // A path named like a profile was meant as one.
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

struct own_dir {          // NULL and "" if not set
    const char *given[2]; // the directory itself, the first that is set
    const char *xdg;      // the directory of all programs
    const char *home;
};

// False when none is set, or the one that is does not fit.
static bool choose_dir(const struct own_dir *d, const char *below_home, char *ret, size_t size) {
    for (size_t i = 0; i < 2; i++) {
        if (!d->given[i] || !d->given[i][0]) continue;
        const int n = snprintf(ret, size, "%s", d->given[i]);
        return n >= 0 && (size_t)n < size;
    }
    if (d->xdg && d->xdg[0]) return xpl_place_join(d->xdg, XPL_STR("xplaned"), ret, size);
    return d->home && d->home[0] && xpl_place_join(d->home, xpl_str_from(below_home), ret, size);
}

xpl_status_t xpl_daemon_cache_dir(const struct xpl_config *c, char *ret, size_t size,
                                  struct xpl_error *err) {
    const char *const cache = getenv("CACHE_DIRECTORY"), *const xdg = getenv("XDG_CACHE_HOME"),
                      *const home = getenv("HOME");
    const struct own_dir d = {.given = {c->state_dir, cache}, .xdg = xdg, .home = home};
    if (choose_dir(&d, ".cache/xplaned", ret, size)) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "no place for cache.db: set --state-dir DIR");
}

xpl_status_t xpl_daemon_state_dir(const struct xpl_config *c, char *ret, size_t size,
                                  struct xpl_error *err) {
    const char *const state = getenv("STATE_DIRECTORY"), *const xdg = getenv("XDG_STATE_HOME"),
                      *const home = getenv("HOME");
    const struct own_dir d = {.given = {c->state_dir, state}, .xdg = xdg, .home = home};
    if (choose_dir(&d, ".local/state/xplaned", ret, size)) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "no place for state.db: set --state-dir DIR");
}
