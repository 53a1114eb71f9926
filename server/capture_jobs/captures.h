// SPDX-License-Identifier: Apache-2.0
// Capture jobs: each runs xpl_capture_run on a thread of its own and is noted in the history.
//
// Any thread may call anything here.  Listeners are called on the job's thread, in order, and must
// not block for long.
#ifndef XPL_SERVER_CAPTURE_JOBS_CAPTURES_H_
#define XPL_SERVER_CAPTURE_JOBS_CAPTURES_H_

#include "capture/capture.h"
#include "server/audit.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/captures.h"
#include "storage/store/history.h"

struct xpl_capture_jobs;

enum { XPL_CAPTURES_AT_ONCE = 16 };

struct xpl_capture_jobs_options {      // all but the flag is borrowed and must outlive the jobs
    const char *logdir;                // where sessions go
    struct xpl_session_remote *remote; // or, when not NULL, where they go instead
    struct xpl_history *history;       // what happened
    // Captures of all daemons that share this store; NULL: this daemon is alone.  The history
    // shares it, too.
    struct xpl_store *shared;
    uint64_t lease_ms; // of what it does for them
    struct xpl_catalogue *catalogue;
    // Asks for a scan of LOGDIR's directory `path` soon (any thread).
    void (*scan)(void *arg, const char *path);
    void *arg;
    bool enabled;                        // false: every start is PERMISSION_DENIED
    uint64_t memory_limit, memory_total; // bytes that one host's answer, and all of them, may take
};
// Cleans up what captures left that the history calls interrupted.  NULL when out of memory.
struct xpl_capture_jobs *xpl_capture_jobs_new(const struct xpl_capture_jobs_options *o);
// While the history is off: takes it if that is possible now, and cleans up as above.  True when it
// was taken.  Blocks.
bool xpl_capture_jobs_try_history(struct xpl_capture_jobs *c);
// Who records hosts all the time.  `hand_over` returns the number of the schedule that records
// `target` or is about to, and has it stop soon; 0 when nobody does.  Called without locks, from
// any thread, and not for captures of schedules.
struct xpl_capture_recorder {
    uint64_t (*hand_over)(void *arg, const char *target);
    void *arg;
};
// NULL: nobody.  No capture may be running.
void xpl_capture_jobs_set_recorder(struct xpl_capture_jobs *c,
                                   const struct xpl_capture_recorder *r);
// From now on, for captures that begin.
void xpl_capture_jobs_set_memory(struct xpl_capture_jobs *c, uint64_t limit, uint64_t total);
// Cancels what runs, and waits for it; nothing starts afterwards.  Ends that a shared store does
// not know yet can still be sent (keeper.h).  NULL is fine.
void xpl_capture_jobs_join(struct xpl_capture_jobs *c);
// After xpl_capture_jobs_join, or instead.  NULL is fine.
void xpl_capture_jobs_free(struct xpl_capture_jobs *c);
bool xpl_capture_jobs_enabled(const struct xpl_capture_jobs *c);
// The same as a status, with why not.
xpl_status_t xpl_capture_jobs_check_enabled(const struct xpl_capture_jobs *c, struct xpl_error *err)
    XPL_NODISCARD;
// From now on starts are UNAVAILABLE, and nobody waits for the catalogue.
void xpl_capture_jobs_stop(struct xpl_capture_jobs *c);
// Cancels what runs.
void xpl_capture_jobs_cancel_all(struct xpl_capture_jobs *c);

// Numbers are those of xplaned.v1.Capture.State.
enum xpl_captured {
    XPL_CAPTURED_RUNNING = 1,
    XPL_CAPTURED_ALL,
    XPL_CAPTURED_SOME,
    XPL_CAPTURED_NOTHING,
    XPL_CAPTURED_CANCELLED,
};

struct xpl_capture_result {
    uint64_t id, schedule_id;
    enum xpl_captured state;
    xpl_status_t code;
    struct xpl_error err; // when code is not OK
    // It did not begin: other daemons capture all its targets, its schedule is another daemon's, or
    // the database was away.  There is no record, and no host in the outcome.
    bool refused;
    const struct xpl_capture_plan *plan;
    const struct xpl_capture_outcome *outcome;
    const struct xpl_history_capture *record; // the same as the history has it
    int64_t begin_ms, end_ms;                 // since 1970
};

struct xpl_capture_listener {
    struct xpl_audit_client client; // of the capture
    // May be NULL.
    void (*progress)(void *arg, uint64_t id, const struct xpl_capture_progress *p);
    // Once, last.  The session is in the catalogue by then, unless that took too long.
    void (*done)(void *arg, const struct xpl_capture_result *r);
    void *arg;
};

// Starts a job with a copy of the plan.  INVALID_ARGUMENT (plan), PERMISSION_DENIED (switched off),
// RESOURCE_EXHAUSTED, UNAVAILABLE (all its targets are being captured, and it has no retries; the
// daemon is stopping); the listener is then not called.  *ret_id (may be NULL) is set before
// anybody is called; where daemons share captures it is what xpl_capture_jobs_cancel takes, and the
// number is known later.  `schedule`: which began it, with its fence where daemons share it; NULL:
// none.
xpl_status_t xpl_capture_jobs_start(struct xpl_capture_jobs *c, const struct xpl_capture_plan *plan,
                                    const struct xpl_schedule_claim *schedule,
                                    const struct xpl_capture_listener *l, uint64_t *ret_id,
                                    struct xpl_error *err) XPL_NODISCARD;
// NOT_FOUND when no such job runs.
xpl_status_t xpl_capture_jobs_cancel(struct xpl_capture_jobs *c, uint64_t id, struct xpl_error *err)
    XPL_NODISCARD;
// Of a capture that runs: puts in the session's name and the hosts as they are now, copied to
// `arena`; otherwise leaves `h` as it is.  False when out of memory.
bool xpl_capture_jobs_show(struct xpl_capture_jobs *c, struct xpl_arena *arena,
                           struct xpl_history_capture *h);
// There is a new snapshot of the catalogue: jobs that wait for their session check for it again.
void xpl_capture_jobs_rescan(struct xpl_capture_jobs *c);

struct xpl_capture_jobs_stats {
    uint64_t running;
    uint64_t reserved_bytes;                    // that answers which are received may take
    uint64_t ended[XPL_CAPTURED_CANCELLED + 1]; // since the start, by enum xpl_captured
};
void xpl_capture_jobs_get_stats(struct xpl_capture_jobs *c, struct xpl_capture_jobs_stats *ret);

// Notes the directory of a session (absolute path) that is about to be made or written by somebody
// else: should the daemon be killed, the next one removes what was broken off there.  Returns the
// note, which is forgotten when that is over; 0 is none.  Blocks; any thread.
uint64_t xpl_capture_jobs_note_directory(struct xpl_capture_jobs *c, const char *path);
void xpl_capture_jobs_forget_directory(struct xpl_capture_jobs *c, uint64_t note);

// What the catalogue knows of a session when it has seen what was written.
struct xpl_capture_jobs_listed {
    size_t n_hosts; // at least; 0: the session is gone
    size_t n_lost;  // at least
    uint64_t bytes; // of all hosts, at least
};
// Waits until that is so of the session at `path` below LOGDIR, but not for long.
void xpl_capture_jobs_await(struct xpl_capture_jobs *c, const char *path,
                            struct xpl_capture_jobs_listed what);

// ---- where daemons share captures ----

// Renews the leases of all that this daemon does for the others; captures whose lease is another's
// are cancelled, and those that nobody does are withdrawn.  Which schedules are kept is in `arena`,
// with when that was asked.  Blocks; any thread.
xpl_status_t xpl_capture_jobs_renew(struct xpl_capture_jobs *c, struct xpl_arena *arena,
                                    struct xpl_kept_leases *ret, uint64_t *ret_asked_ns,
                                    struct xpl_error *err) XPL_NODISCARD;
// Cancels captures of schedules whose leases are over, as far as this daemon knows.
void xpl_capture_jobs_expire(struct xpl_capture_jobs *c);
// Notes the ends that the database did not take.  True: there are none left.  Blocks.
bool xpl_capture_jobs_send_ends(struct xpl_capture_jobs *c);
// Whether one runs that has a lease, or may have one.
bool xpl_capture_jobs_has_leases(struct xpl_capture_jobs *c);
const struct xpl_capture_jobs_options *
xpl_capture_jobs_get_options(const struct xpl_capture_jobs *c);
bool xpl_capture_jobs_is_stopping(struct xpl_capture_jobs *c);

// Why hosts were not stored, "target: reason; ...", cut to `size`.  "" when all were.
void xpl_capture_jobs_explain(const struct xpl_capture_result *r, char *buf, size_t size);

#endif
