// SPDX-License-Identifier: Apache-2.0
// The session of a capture, and the report at the end.
#include "capture/run_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "storage/sessions/layout.h"

static xpl_status_t set_root(struct capture_run *r, struct xpl_error *err) {
    const char *const path = r->session ? xpl_session_writer_get_path(r->session) : "";
    const char *const name = r->session ? xpl_session_writer_get_name(r->session) : "";
    const char *const remote = r->session ? r->plan->remote_logdir : NULL;
    const size_t size =
        strlen(path) + (remote ? strlen(remote) : 0) + sizeof(struct xpl_session_path) + 1;
    r->root = xpl_sys_alloc(size);
    if (!r->root) XPL_RETURN_OOM(err, "capture");
    if (remote)
        xpl_session_path_in(remote, xpl_str_from(name), r->root, size);
    else
        (void)snprintf(r->root, size, "%s", path);
    return XPL_OK;
}

// A client cancels when it hears of the capture, so it does while files are sent.
static bool is_send_cancelled(void *arg) {
    struct capture_run *const r = arg;
    xpl_capture_report_progress(r, r->plan->n_targets);
    return capture_cancelled(r);
}

xpl_status_t xpl_capture_start_session(struct capture_run *r, const char *logdir,
                                       struct xpl_error *err) {
    if (capture_brings_data(r)) {
        r->send_cancel = (struct xpl_cancel){is_send_cancelled, r};
        const struct xpl_session_writer_options o = {.size = sizeof o,
                                                     .logdir = logdir,
                                                     .name = r->plan->session,
                                                     .unique = true,
                                                     .making = r->plan->making,
                                                     .making_arg = r->plan->making_arg,
                                                     .remote = r->plan->session_remote,
                                                     .cancel = &r->send_cancel};
        XPL_TRY(xpl_session_writer_open(&o, &r->session, err));
        // At once: a process that cleans up after this one, if it is killed, learns of the
        // directory.
        xpl_capture_report_progress(r, 0);
    }
    return set_root(r, err);
}

// Hosts are reported as stored only once their files are on the disk.
void xpl_capture_sync_session(struct capture_run *r) {
    struct xpl_error err = {0};
    if (!r->session || capture_cancelled(r) || xpl_session_writer_sync(r->session, &err) == XPL_OK)
        return;
    for (size_t i = 0; i < r->plan->n_targets; i++) {
        struct xpl_capture_host *const h = r->jobs[i].h;
        if (h->state != XPL_CAPTURE_STORED) continue;
        h->state = XPL_CAPTURE_FAILED;
        h->code = err.code;
        h->file = (struct xpl_profile_writer_file){0};
        (void)snprintf(h->reason, sizeof h->reason, "%s", err.msg);
    }
}

// Writes the report, and closes the session; one without hosts vanishes.
void xpl_capture_close_session(struct capture_run *r) {
    struct xpl_capture_outcome *const o = r->out;
    if (!r->session) return;
    if (o->n_stored > 0) {
        const char *const path = xpl_session_writer_get_path(r->session);
        (void)snprintf(o->session, sizeof o->session, "%s",
                       xpl_session_writer_get_name(r->session));
        o->path = xpl_sys_alloc(strlen(path) + 1);
        if (o->path) memcpy(o->path, path, strlen(path) + 1);
        struct xpl_buf b = xpl_buf_of((size_t)64 << 20);
        xpl_capture_json(r->plan, o, &b);
        // Without it the profiles are as good, and the caller has the same report.
        if (!b.failed)
            (void)!xpl_session_writer_note(r->session, "capture", ".json", (xpl_bytes_t){b.p, b.n},
                                           NULL);
        xpl_buf_fini(&b);
    } else {
        xpl_session_writer_undo(r->session);
    }
    xpl_session_writer_close(r->session);
    r->session = NULL;
}

// The one sentence about a capture without any profile.
xpl_status_t xpl_capture_verdict(const struct xpl_capture_outcome *o, struct xpl_error *err) {
    if (o->n_stored > 0) return XPL_OK;
    if (o->n_cancelled > 0) XPL_RETURN_ERROR(err, XPL_CANCELLED, "the capture was cancelled");
    const struct xpl_capture_host *const h = o->hosts;
    xpl_status_t code = h[0].code;
    for (size_t i = 1; i < o->n_hosts; i++)
        if (h[i].code != code) code = XPL_UNAVAILABLE;
    if (o->n_hosts == 1) XPL_RETURN_ERROR(err, code, "%.60s: %s", h[0].target, h[0].reason);
    XPL_RETURN_ERROR(err, code, "none of %zu hosts gave a profile; %.50s: %s", o->n_hosts,
                     h[0].target, h[0].reason);
}
