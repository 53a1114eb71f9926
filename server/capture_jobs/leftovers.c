// SPDX-License-Identifier: Apache-2.0
#include "server/capture_jobs/leftovers.h"

#include <string.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "storage/sessions/layout.h"
#include "storage/sessions/removal.h"

// Whether the directory is there as it was noted, as session *ret_name of this log directory.
static bool is_session(const struct xpl_capture_jobs_options *o,
                       const struct xpl_history_directory *d, xpl_str_t *ret_name) {
    struct xpl_session_place place;
    const char *const slash = memrchr(d->path.ptr, '/', d->path.len);
    if (!slash || !d->ino) return false; // without an identity it may be another's
    const size_t before = (size_t)(slash + 1 - d->path.ptr);
    *ret_name = (xpl_str_t){slash + 1, d->path.len - before};
    return xpl_session_locate(o->logdir, *ret_name, &place) && place.dev == d->dev &&
           place.ino == d->ino && xpl_str_eq(d->path, xpl_str_from(place.path));
}

// Whole profiles of a schedule's capture make the session the schedule's, as they would have when
// it had ended.
static xpl_status_t adopt_session(const struct xpl_capture_jobs_options *o,
                                  const struct xpl_history_directory *d, struct xpl_error *err) {
    struct xpl_session_path path;
    struct xpl_history_session s = {.dev = d->dev, .ino = d->ino, .made_ms = d->begin_ms};
    if (!d->schedule_id || !is_session(o, d, &s.name)) return XPL_OK;
    s.n_hosts = xpl_session_count_files(o->logdir, xpl_session_path(s.name, &path),
                                        xpl_format_match, &s.bytes);
    if (!s.n_hosts) return XPL_OK;
    return xpl_history_add_session(o->history, d->schedule_id, &s, err);
}

void xpl_capture_leftovers_remove(const struct xpl_capture_jobs_options *o) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_history_directory *list;
    size_t n;
    struct xpl_error err = {0};
    xpl_status_t st = xpl_history_directories(o->history, &arena, &list, &n, &err);
    for (size_t i = 0; st == XPL_OK && i < n; i++) {
        xpl_str_t path;
        if (!xpl_arena_printf(&arena, &path, "%.*s", XPL_STR_FMT(list[i].path))) return;
        xpl_session_clean(path.ptr, list[i].dev, list[i].ino);
        st = adopt_session(o, &list[i], &err);
        if (st == XPL_OK) st = xpl_history_forget_directory(o->history, list[i].capture_id, &err);
    }
    if (st != XPL_OK) xpl_log(XPL_LOG_WARN, "capture", "%s", err.msg);
}

void xpl_capture_leftovers_adopt(const struct xpl_capture_jobs_options *o,
                                 const struct xpl_capture_lost *lost) {
    struct xpl_session_place place;
    struct xpl_error err = {0};
    // On a file system that machines share an inode is the same for all, a device is not.
    if (!lost->session.len || o->remote || !xpl_session_locate(o->logdir, lost->session, &place) ||
        place.ino != lost->ino)
        return;
    xpl_session_clean(place.path, place.dev, place.ino);
    const struct xpl_history_directory d = {.path = xpl_str_from(place.path),
                                            .dev = place.dev,
                                            .ino = place.ino,
                                            .schedule_id = lost->schedule_id,
                                            .begin_ms = lost->begin_ms};
    if (adopt_session(o, &d, &err) != XPL_OK) xpl_log(XPL_LOG_WARN, "capture", "%s", err.msg);
}
