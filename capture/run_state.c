// SPDX-License-Identifier: Apache-2.0
// States of hosts: entering one, and ending a host's capture.
#include "capture/run_impl.h"

#include <stdio.h>

#include "capture/budget.h"

enum { LAST_PAUSE_MS = 5000 };

void xpl_capture_report_progress(struct capture_run *r, size_t changed) {
    if (!r->progress) return;
    const struct xpl_capture_progress p = {
        .hosts = r->out->hosts,
        .n_hosts = r->out->n_hosts,
        .changed = changed,
        .session = r->session ? xpl_session_writer_get_name(r->session) : "",
        .elapsed_ms = (capture_now() - r->begin) / CAPTURE_MS,
    };
    r->progress(r->ctx, &p);
}

void xpl_capture_enter(struct capture_job *j, enum xpl_capture_state state, int64_t due) {
    struct capture_run *const r = j->run;
    if (j->h->state == XPL_CAPTURE_RECEIVING) {
        r->receiving--;
        if (r->plan->budget) xpl_capture_budget_give(r->plan->budget, j->reserved);
    }
    if (state == XPL_CAPTURE_RECEIVING) r->receiving++;
    r->connecting -= j->connecting;
    j->connecting = state == XPL_CAPTURE_CONNECTING;
    r->connecting += j->connecting;
    if (xpl_capture_is_over(state)) r->n_open--;
    j->h->state = state;
    j->due = due;
    xpl_capture_report_progress(r, (size_t)(j - r->jobs));
}

static void remove_hidden(struct capture_job *j) {
    if (j->hidden[0] && j->run->session) xpl_capture_shared_remove(j->run->session, j->hidden);
}

void xpl_capture_end_attempt(struct capture_job *j) {
    if (j->connection) j->run->driver->cancel(j->connection);
    remove_hidden(j);
}

void xpl_capture_finish(struct capture_job *j, enum xpl_capture_state state, xpl_status_t code) {
    remove_hidden(j);
    j->h->code = code;
    xpl_capture_enter(
        j, state, CAPTURE_NEVER); // reported before a large answer is freed, which takes its time
    xpl_capture_end_attempt(j);
}

void xpl_capture_finish_error(struct capture_job *j, const struct xpl_error *err) {
    (void)snprintf(j->h->reason, sizeof j->h->reason, "%s", err->msg);
    xpl_capture_finish(j, XPL_CAPTURE_FAILED, err->code);
}

// Asks again later if there are retries left; h->reason says why.
void xpl_capture_again_or(struct capture_job *j, enum xpl_capture_state state) {
    if (j->retries == 0) {
        xpl_capture_finish(j, state, j->h->code);
        return;
    }
    j->retries--;
    xpl_capture_end_attempt(j);
    xpl_capture_enter(j, XPL_CAPTURE_PAUSING, capture_now() + j->pause_ms * CAPTURE_MS);
    j->pause_ms = j->pause_ms < LAST_PAUSE_MS / 2 ? j->pause_ms * 2 : LAST_PAUSE_MS;
}
