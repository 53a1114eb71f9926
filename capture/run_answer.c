// SPDX-License-Identifier: Apache-2.0
// Turns an answer into a file of the session, another attempt, or a failure.
#include "capture/run_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "capture/check.h"
#include "capture/explain.h"

enum { MAX_TRACES = 4096 }; // of one answer

static bool begin_file(struct capture_job *j) {
    const struct xpl_profile_writer_options o = {.size = sizeof o,
                                                 .host = xpl_str_from(j->name),
                                                 .flags = XPL_PROFILE_WRITER_UNIQUE |
                                                          XPL_PROFILE_WRITER_SYNC_LATER,
                                                 .max_bytes = j->run->plan->max_host_bytes};
    return j->writer ||
           xpl_profile_writer_begin(j->run->session, &o, &j->writer, &j->error) == XPL_OK;
}

static bool on_bytes(void *ctx, xpl_bytes_t piece) {
    struct capture_job *const j = ctx;
    for (size_t i = 0; i < piece.len && j->trace_bytes + i < sizeof j->trace_head; i++)
        j->trace_head[j->trace_bytes + i] = piece.ptr[i];
    j->trace_bytes += piece.len;
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
        j->h->n_files = 1;
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

// ---- traces of PyTorch's processes: files of one answer ----

// Ends the trace under way.
static bool commit_trace(struct capture_job *j) {
    struct xpl_profile_writer *const w = j->writer;
    struct xpl_profile_writer_file file;
    if (!w) return true;
    j->writer = NULL;
    if (j->trace_bytes < sizeof j->trace_head || j->trace_head[0] != 0x1f ||
        j->trace_head[1] != 0x8b) {
        xpl_profile_writer_abort(w);
        (void)xpl_error_set(&j->error, XPL_DATA_LOSS, __FILE__, __LINE__, UINT64_MAX,
                            "a trace is not compressed by gzip");
        return false;
    }
    if (xpl_profile_writer_commit(w, &file, &j->error) != XPL_OK) return false;
    const uint64_t bytes = j->h->file.counts.bytes + j->trace_bytes;
    memcpy(j->traces[j->h->n_files++], file.name, sizeof file.name);
    if (j->h->n_files == 1) j->h->file = file;
    j->h->file.counts.bytes = bytes;
    return true;
}

static bool begin_trace(void *ctx, xpl_str_t name) {
    struct capture_job *const j = ctx;
    const struct xpl_profile_writer_options o = {
        .size = sizeof o,
        .host = xpl_str_sub(name, 0, name.len - strlen(XPL_CAPTURE_TRACE_SUFFIX)),
        .flags = XPL_PROFILE_WRITER_UNIQUE | XPL_PROFILE_WRITER_SYNC_LATER |
                 XPL_PROFILE_WRITER_NO_XSPACE,
        .max_bytes = j->run->plan->max_host_bytes,
        .suffix = XPL_CAPTURE_TRACE_SUFFIX};
    if (capture_cancelled(j->run) || !commit_trace(j)) return false;
    char(*const more)[XPL_SESSION_WRITER_NAME_SIZE] =
        j->h->n_files < MAX_TRACES
            ? xpl_sys_realloc(j->traces, (j->h->n_files + 1) * sizeof *j->traces)
            : NULL;
    if (!more) {
        (void)xpl_error_set(&j->error, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                            "too many traces in one answer");
        return false;
    }
    j->traces = more;
    j->trace_bytes = 0;
    return xpl_profile_writer_begin(j->run->session, &o, &j->writer, &j->error) == XPL_OK;
}

// An answer counts as a whole.
static void remove_traces(struct capture_job *j) {
    for (size_t i = 0; i < j->h->n_files; i++)
        xpl_session_writer_remove(j->run->session, j->traces[i], XPL_CAPTURE_TRACE_SUFFIX);
    j->h->n_files = 0;
    j->h->file = (struct xpl_profile_writer_file){0};
}

static void finish_traces(struct capture_job *j, const struct xpl_capture_answer *answer) {
    const struct xpl_capture_plan *const p = j->run->plan;
    if (!commit_trace(j)) {
        remove_traces(j);
        finish_store_error(j);
        return;
    }
    if (p->may_store && !p->may_store(p->may_ask_arg)) return; // the run ends, and removes them
    if (j->h->n_files > 1 || answer->notes[0])
        (void)snprintf(j->h->reason, sizeof j->h->reason, "%zu process%s%s%.340s", j->h->n_files,
                       j->h->n_files == 1 ? "" : "es", answer->notes[0] ? "; " : "", answer->notes);
    xpl_capture_finish(j, XPL_CAPTURE_STORED, XPL_OK);
}

// ---- answers ----

static void store(struct capture_job *j, xpl_status_t st, const struct xpl_capture_answer *answer,
                  const struct xpl_error *err) {
    if (st != XPL_OK) {
        abort_file(j);
        remove_traces(j);
    }
    if (st == XPL_CANCELLED)
        finish_store_error(j);
    else if (st != XPL_OK)
        xpl_capture_finish_error(j, err);
    else if (j->traces)
        finish_traces(j, answer);
    else if (j->writer)
        commit(j);
    else
        store_shared(j, answer);
}

void xpl_capture_store_answer(struct capture_job *j) {
    const struct xpl_capture_sink sink = {.put = on_bytes, .begin_trace = begin_trace, .ctx = j};
    struct xpl_capture_answer answer = {0};
    struct xpl_error err = {0};
    j->error = (struct xpl_error){0};
    const xpl_status_t st = j->run->driver->read(j->connection, &sink, &answer, &err);
    if (capture_cancelled(j->run))
        abort_file(j); // the run ends
    else
        store(j, st, &answer, &err);
    xpl_sys_free(j->traces);
    j->traces = NULL;
}
