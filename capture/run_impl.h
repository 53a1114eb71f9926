// SPDX-License-Identifier: Apache-2.0
// Private: shared by the files of one running capture.  run.c drives it; run_state.c has the states
// of hosts, run_answer.c stores answers, run_session.c has the session and the outcome.
#ifndef XPL_CAPTURE_RUN_IMPL_H_
#define XPL_CAPTURE_RUN_IMPL_H_

#include <stdatomic.h>

#include "base/clock.h"
#include "capture/driver.h"
#include "capture/impl.h"

#define CAPTURE_NEVER INT64_MAX
#define CAPTURE_MS    ((int64_t)1000000)

struct capture_job {
    struct capture_run *run;
    struct xpl_capture_host *h;
    struct xpl_capture_connection *connection;
    struct xpl_profile_writer *writer; // NULL: no bytes have come
    struct xpl_error error;            // of the writer
    char (
        *traces)[XPL_SESSION_WRITER_NAME_SIZE]; // stored so far, h->n_files; NULL: none were begun
    uint64_t trace_bytes;                       // of the newest file so far
    uint8_t trace_head[2];                      // its first bytes
    int64_t due;                                // deadline of its state, CLOCK_MONOTONIC
    int64_t waits_since;                        // for memory; 0: it has not tried to reserve any
    uint64_t reserved;                          // of the budget, while it receives
    int64_t soon_until; // until when a busy target is expected to become free; 0: not tried
    bool connecting;    // one of those that the run counts
    unsigned retries;   // left
    int pause_ms;
    char name[XPL_SESSION_WRITER_NAME_SIZE];
    char hidden[32]; // where a server that writes itself puts its profile
};

struct capture_run {
    const struct xpl_capture_plan *plan;
    const atomic_bool *cancel;
    xpl_capture_progress_fn progress;
    void *ctx;
    struct xpl_capture_outcome *out;
    const struct xpl_capture_driver *driver;
    struct xpl_capture_connections *connections;
    struct xpl_session_writer *session;
    struct xpl_cancel send_cancel; // of sending it
    struct capture_job *jobs;
    char *root; // the session's directory as the hosts see it
    int64_t begin;
    int64_t connect_ns, answer_ns;
    int64_t last_begun; // when the newest host began to connect
    size_t n_begun;     // hosts that have begun
    size_t n_open, connecting, receiving, at_once;
    uint64_t host_bytes; // maximum size of an answer
    bool started;
};

static inline int64_t capture_now(void) {
    return (int64_t)xpl_clock_ns();
}
static inline bool capture_cancelled(const struct capture_run *r) {
    return r->cancel && atomic_load_explicit(r->cancel, memory_order_relaxed);
}
static inline bool capture_brings_data(const struct capture_run *r) {
    return r->plan->call == XPL_CAPTURE_PROFILE || r->plan->call == XPL_CAPTURE_SNAPSHOT;
}

// ---- run_state.c ----

// Reports progress to the caller.  `changed`: the number of the host that changed; the number of
// hosts when none did.
void xpl_capture_report_progress(struct capture_run *r, size_t changed);
// `due`: until when the host may stay in that state.
void xpl_capture_enter(struct capture_job *j, enum xpl_capture_state state, int64_t due);
// Ends the host's call, if there is one, and removes the files that an old server wrote.
void xpl_capture_end_attempt(struct capture_job *j);
// Ends the host's capture; h->reason says why.
void xpl_capture_finish(struct capture_job *j, enum xpl_capture_state state, xpl_status_t code);
void xpl_capture_finish_error(struct capture_job *j, const struct xpl_error *err);
// Asks again later if there are retries left, else ends the host's capture; h->reason says why.
void xpl_capture_again_or(struct capture_job *j, enum xpl_capture_state state);

// ---- run_answer.c ----

// Stores a host's answer, and finishes the host or retries.
void xpl_capture_store_answer(struct capture_job *j);

// ---- run_session.c ----

// Makes the session of a call that brings data, and sets r->root, which the caller frees.
xpl_status_t xpl_capture_start_session(struct capture_run *r, const char *logdir,
                                       struct xpl_error *err) XPL_NODISCARD;
// Syncs the stored files: hosts are reported as stored only once their files are on the disk.
void xpl_capture_sync_session(struct capture_run *r);
// Writes the report, and closes the session; a session without hosts is removed.
void xpl_capture_close_session(struct capture_run *r);
// The one sentence about a capture without any profile.
xpl_status_t xpl_capture_verdict(const struct xpl_capture_outcome *o, struct xpl_error *err)
    XPL_NODISCARD;

#endif
