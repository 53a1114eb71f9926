// SPDX-License-Identifier: Apache-2.0
#include "server/removal/removal.h"

#include <string.h>
#include <sys/stat.h>

#include "analysis/formats/format.h"

xpl_status_t xpl_removals_run(struct xpl_removals *r, const struct xpl_removal *what,
                              struct xpl_error *err) {
    struct stat sb;
    if (r->objects)
        XPL_TRY(
            xpl_session_remove_objects(r->objects, what->path, xpl_format_match, what->made, err));
    else if (stat(r->logdir, &sb) != 0 || !S_ISDIR(sb.st_mode))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "the log directory is one file, which is not deleted");
    else
        XPL_TRY(xpl_session_remove(r->logdir, what->path, xpl_format_match, what->dev, what->ino,
                                   what->made, err));
    atomic_fetch_add(&r->removed[what->cause], 1);
    return XPL_OK;
}

// Whether the file is in the directory, and not below it.
static bool is_in(xpl_str_t path, xpl_str_t dir) {
    const char *const slash = memrchr(path.ptr, '/', path.len);
    const size_t len = slash ? (size_t)(slash - path.ptr) : 0;
    return slash ? xpl_str_eq(xpl_str_sub(path, 0, len), dir) : xpl_str_eq(dir, XPL_STR("."));
}

xpl_status_t xpl_removal_check(const struct xpl_snapshot *snap, const struct xpl_session *one,
                               struct xpl_error *err) {
    struct xpl_profile_file file;
    const bool top = xpl_str_eq(one->path, XPL_STR("."));
    if (one->n_runs)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "the session joins %u runs: delete each by its own name", one->n_runs);
    for (size_t i = 0; i < snap->n_sessions; i++) {
        const struct xpl_session *const other = &snap->sessions[i];
        if (other != one && !other->n_runs && other->n_hosts &&
            is_in(other->hosts[0].path, one->path))
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "the session is not deleted: %.80s is in its directory",
                             other->name.ptr);
    }
    for (size_t i = 0; i < one->n_hosts; i++) {
        const xpl_str_t path = one->hosts[i].path;
        if (xpl_format_match(path, &file) && file.is_doubtful)
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "%.80s is not deleted: its name does not say that it is a profile",
                             path.ptr);
        const bool is_file = xpl_str_eq(path, one->path);
        if (!top && !is_file &&
            !(xpl_str_starts(path, one->path) && path.ptr[one->path.len] == '/'))
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "the session is not deleted: others are in its directory");
    }
    return XPL_OK;
}
