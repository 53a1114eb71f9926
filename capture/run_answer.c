// SPDX-License-Identifier: Apache-2.0
// Turns an answer into a file of the session, another attempt, or a failure.
#include "capture/run_impl.h"

#include <stdio.h>

#include "capture/check.h"
#include "capture/explain.h"

static bool begin_file(struct capture_job *j) {
    const struct xpl_profile_writer_options o = {.size = sizeof o,
                                                 .host = xpl_str_from(j->name),
                                                 .flags = XPL_PROFILE_WRITER_UNIQUE |
                                                          XPL_PROFILE_WRITER_SYNC_LATER,
                                                 .max_bytes = j->run->plan->max_host_bytes};
    return j->writer ||
           xpl_profile_writer_begin(j->run->session, &o, &j->writer, &j->error) == XPL_OK;
}

static bool on_xspace(void *ctx, xpl_bytes_t piece) {
    struct capture_job *const j = ctx;
    return !capture_cancelled(j->run) && begin_file(j) &&
           xpl_profile_writer_put(j->writer, piece, &j->error) == XPL_OK;
}

static void abort_file(struct capture_job *j) {
    xpl_profile_writer_abort(j->writer);
    j->writer = NULL;
}

// A malformed profile is an error of the host, every other failure one of this program.
static void finish_store_error(struct capture_job *j) {
    struct xpl_error *const err = &j->error;
    if (err->code != XPL_DATA_LOSS) {
        xpl_capture_finish_error(j, err);
        return;
    }
    (void)snprintf(j->h->reason, sizeof j->h->reason,
                   "the profile it sent is broken (%s): capture again; if that does not help, its "
                   "profiler is at fault",
                   err->msg);
    xpl_capture_finish(j, XPL_CAPTURE_FAILED, XPL_DATA_LOSS);
}

static void commit(struct capture_job *j) {
    struct xpl_profile_writer *const w = j->writer;
    const struct xpl_capture_plan *const p = j->run->plan;
    char notice[XPL_CHECK_TEXT];
    if (p->may_store && !p->may_store(p->may_ask_arg)) {
        abort_file(j); // the run ends
        return;
    }
    (void)snprintf(notice, sizeof notice, "%s", xpl_profile_writer_get_notice(w));
    j->writer = NULL;
    const xpl_status_t st = xpl_profile_writer_commit(w, &j->h->file, &j->error);
    if (st == XPL_OK) {
        if (notice[0])
            (void)snprintf(j->h->reason, sizeof j->h->reason, "its profiler says: %s", notice);
        xpl_capture_finish(j, XPL_CAPTURE_STORED, XPL_OK);
    } else if (st == XPL_FAILED_PRECONDITION) {
        j->h->code = XPL_UNAVAILABLE;
        xpl_capture_explain_idle(j->h->reason, j->run->plan, "no events", notice);
        xpl_capture_again_or(j, XPL_CAPTURE_IDLE);
    } else {
        finish_store_error(j);
    }
}

// The answer has no XSpace: the server wrote it itself, or has nothing.
static void store_shared(struct capture_job *j, const struct xpl_capture_answer *answer) {
    xpl_status_t st = XPL_NOT_FOUND;
    if (!begin_file(j)) {
        xpl_capture_finish_error(j, &j->error);
        return;
    }
    if (j->run->plan->call == XPL_CAPTURE_PROFILE)
        st = xpl_capture_shared_copy(j->run->session, j->hidden, j->writer, &j->error);
    if (st == XPL_OK) {
        j->h->shared_dir = true;
        commit(j);
        return;
    }
    abort_file(j);
    if (st != XPL_NOT_FOUND) {
        xpl_capture_finish_error(j, &j->error);
    } else if (answer->idle) {
        j->h->code = XPL_UNAVAILABLE;
        xpl_capture_explain_idle(j->h->reason, j->run->plan, "idle", "");
        xpl_capture_again_or(j, XPL_CAPTURE_IDLE);
    } else {
        (void)snprintf(j->h->reason, sizeof j->h->reason, "%s", answer->reason);
        xpl_capture_finish(j, XPL_CAPTURE_FAILED, XPL_FAILED_PRECONDITION);
    }
}

void xpl_capture_store_answer(struct capture_job *j) {
    const struct xpl_capture_sink sink = {on_xspace, j};
    struct xpl_capture_answer answer;
    struct xpl_error err = {0};
    j->error = (struct xpl_error){0};
    const xpl_status_t st = j->run->driver->read(j->connection, &sink, &answer, &err);
    if (capture_cancelled(j->run)) {
        abort_file(j); // the run ends
        return;
    }
    if (st != XPL_OK) abort_file(j);
    if (st == XPL_CANCELLED)
        finish_store_error(j);
    else if (st != XPL_OK)
        xpl_capture_finish_error(j, &err);
    else if (j->writer)
        commit(j);
    else
        store_shared(j, &answer);
}
