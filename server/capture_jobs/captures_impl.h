// SPDX-License-Identifier: Apache-2.0
// Private: what the files of capture jobs share.  captures.c has jobs and their threads,
// captures_shared.c what the daemons of a fleet tell each other of them.
#ifndef XPL_SERVER_CAPTURE_JOBS_CAPTURES_IMPL_H_
#define XPL_SERVER_CAPTURE_JOBS_CAPTURES_IMPL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/intern.h"
#include "capture/budget.h"
#include "server/capture_jobs/captures.h"

// Each follows the one before it; the mutex protects a job's state.
enum job_state {
    JOB_RUNNING,  // has its targets, or waits for them
    JOB_RELEASED, // its targets may be captured again; the listener is called
    JOB_OVER,     // the thread is about to end: it can be joined
};

struct job {
    struct job *next;
    struct xpl_capture_jobs *captures;
    pthread_t thread;
    uint64_t handle;              // its number until it has one of all daemons
    uint64_t id;                  // its number; the mutex protects changes
    struct xpl_schedule_claim of; // the schedule that began it; id 0: none
    struct xpl_arena arena;       // the plan
    struct xpl_capture_plan plan;
    struct xpl_intern *keys; // of its targets: xpl_capture_target_keys
    struct xpl_capture_listener listener;
    atomic_bool cancel;
    bool noted;      // its directory's identity is in the history
    bool in_history; // which was on when it began; numbers of others may be another daemon's
    // Where daemons share captures (captures_shared.c); on its thread, but for the atomics:
    bool *taken;                        // for each target: no other daemon captures it meanwhile
    struct xpl_target_holder *others;   // who has it
    struct xpl_arena texts;             // of these
    uint64_t asked_ns;                  // when the others were asked last
    atomic_bool shared;                 // it has a number and a lease
    atomic_bool lost;                   // the lease is over: what it came to is refused
    atomic_uint_fast64_t leased_ns;     // when the lease began that it has
    struct xpl_capture_outcome outcome; // also as the history has it
    struct xpl_capture_result result;
    struct xpl_history_session made;
    struct xpl_history_capture record;
    // The mutex protects the rest.
    bool unsent;        // the database does not know its end yet
    uint64_t shared_ns; // since when it has its number
    enum job_state state;
    bool joined;                   // its thread is, or is just being
    bool *holds;                   // for each target: nobody else captures it meanwhile
    struct xpl_capture_host *live; // as they are now
    char session[XPL_SESSION_WRITER_NAME_SIZE];
};

struct xpl_capture_jobs {
    struct xpl_capture_jobs_options o;
    const struct xpl_captures_ops *ops; // of the shared store; NULL: there is none
    char machine[65];                   // its name; "" where no other daemon hears of its targets
    struct xpl_capture_recorder recorder;
    pthread_mutex_t mu;
    pthread_cond_t changed; // the catalogue has a new snapshot, or all stops
    struct job *jobs;       // the next start joins those that are over
    unsigned running;
    uint64_t ended[XPL_CAPTURED_CANCELLED + 1]; // by outcome
    uint64_t last_id;
    bool stopping;
    unsigned beginning;       // jobs that are being numbered
    bool unsure;              // one may have a number that it does not know
    atomic_ullong n_notes;    // of others' directories
    atomic_ullong host_bytes; // that one answer may take, at most
    struct xpl_capture_budget budget;
};

// Frees the plan, the outcome and the record of a finished job.  The caller holds the mutex.
static inline void xpl_capture_job_free_data(struct job *j) {
    xpl_capture_outcome_fini(&j->outcome);
    xpl_arena_fini(&j->arena);
    xpl_arena_fini(&j->texts);
}
// The key of target `i`, the same on all daemons.
static inline xpl_str_t xpl_capture_job_key(const struct job *j, size_t i) {
    return xpl_intern_get(j->keys, (xpl_strid_t){(uint32_t)i + 1});
}

// ---- captures_shared.c; where daemons share captures ----

static inline const struct xpl_captures_ops *xpl_capture_job_ops(const struct job *j) {
    return j->captures->ops;
}
// What it needs; false on OOM.
bool xpl_capture_job_init_shared(struct job *j);
// Numbers the job, with what is to be noted of it, and takes its targets.  Where the database is
// away the job goes on by itself, unless a schedule began it.  UNAVAILABLE: that, or other daemons
// capture all its targets, and it has no retries; ABORTED: its schedule is another daemon's.
xpl_status_t xpl_capture_job_number(struct job *j, const struct xpl_history_capture *h,
                                    struct xpl_error *err) XPL_NODISCARD;
// Whether other daemons leave target `i` to the job; `reason` gets why not.
enum xpl_capture_turn xpl_capture_job_take_shared(struct job *j, size_t i,
                                                  char reason[XPL_CAPTURE_REASON_SIZE]);
// Whether what was captured may get its name: the lease is ours still.  False: the job is
// cancelled.
bool xpl_capture_job_may_store(struct job *j);
// Notes its end, now or when the database is back.
void xpl_capture_job_end(struct job *j);

#endif
