// SPDX-License-Identifier: Apache-2.0
#include "cli/logdir.h"

#include "analysis/formats/format.h"
#include "analysis/xplane/captured.h"
#include "base/text/near.h"
#include "storage/places.h"

static xpl_status_t no_session(const struct xpl_snapshot *snapshot, const char *name,
                               const char *logdir, struct xpl_error *err) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(name));
    char hint[XPL_NEAR_TEXT];
    for (size_t i = snapshot->n_sessions; i > 0; i--) // of times the newest first
        xpl_near_add(&near, snapshot->sessions[i - 1].name);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no session \"%.80s\" in %.80s%s", name, logdir,
                     xpl_near_text(&near, hint));
}

static xpl_status_t scan(const char *logdir, struct xpl_logdir *ret, struct xpl_error *err) {
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = logdir,
                                            .match = xpl_format_match,
                                            .captured_ns = xpl_xspace_captured_ns,
                                            .identify_run = xpl_xspace_identify};
    XPL_TRY(xpl_catalogue_new(&o, &ret->catalogue, err));
    ret->snapshot = xpl_catalogue_get(ret->catalogue);
    return XPL_OK;
}

// "NAME+joined" is found, too.
xpl_status_t xpl_logdir_open(const char *logdir, const char *session, struct xpl_logdir *ret,
                             struct xpl_error *err) {
    struct xpl_logdir l = {0};
    XPL_TRY(scan(logdir, &l, err));
    l.session = xpl_snapshot_find(l.snapshot, xpl_str_from(session));
    *ret = l;
    if (l.session) return XPL_OK;
    const xpl_status_t st = no_session(l.snapshot, session, logdir, err);
    xpl_logdir_close(ret);
    return st;
}

xpl_status_t xpl_logdir_open_newest(const char *logdir, struct xpl_logdir *ret,
                                    struct xpl_error *err) {
    struct xpl_logdir l = {0};
    XPL_TRY(scan(logdir, &l, err));
    for (size_t i = 0; i < l.snapshot->n_sessions; i++) {
        const struct xpl_session *const s = &l.snapshot->sessions[i];
        if (s->n_hosts && (!l.session || s->captured_ns > l.session->captured_ns)) l.session = s;
    }
    if (l.session) {
        *ret = l;
        return XPL_OK;
    }
    xpl_logdir_close(&l);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no profile is in or below %.200s", logdir);
}

void xpl_logdir_close(struct xpl_logdir *l) {
    if (l->snapshot) xpl_snapshot_unref(l->snapshot);
    if (l->catalogue) xpl_catalogue_free(l->catalogue);
    *l = (struct xpl_logdir){0};
}

bool xpl_logdir_path(const struct xpl_logdir *l, size_t i, char ret[PATH_MAX]) {
    return xpl_place_join(l->snapshot->base.ptr, l->session->hosts[i].path, ret, PATH_MAX);
}
