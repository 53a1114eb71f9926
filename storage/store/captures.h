// SPDX-License-Identifier: Apache-2.0
// Captures and schedules of all daemons that share a store: their history and owners.  Part of the
// store's interface, only in stores that many daemons write. xpl_history_share (in history.h)
// connects a history to it.
//
//   capture:  begin ── claim_targets … renew … ──► put: it is over, its session is the schedule's
//   schedule: claim ── renew … ──► begin (of each turn), set_schedule … ──► give_back
//
// A daemon owns a schedule, a running capture and its targets under leases.  When a lease expires,
// its owner loses it: the next claim gets the schedule, with a higher fence; `reap` interrupts the
// capture; the target is free.  The fence is checked when a run begins (`begin`), and the outcome
// of an interrupted capture is refused (`put`).
//
// Only the store's clock counts for leases.  Threads: any; each call is one or two statements.
// Errors: UNAVAILABLE (away or busy), FAILED_PRECONDITION (not written by this process now),
// RESOURCE_EXHAUSTED, ABORTED (the lease is another's, or was lost).
#ifndef XPL_STORAGE_STORE_CAPTURES_H_
#define XPL_STORAGE_STORE_CAPTURES_H_

#include "storage/store/history.h"
#include "storage/store/store.h"

enum {
    XPL_CAPTURES_MAX_TAKEN = 4096,  // targets at once
    XPL_CAPTURES_MAX_LISTED = 1000, // captures
};

// A schedule of this daemon.
struct xpl_schedule_claim {
    uint64_t id;
    int64_t fence; // from 1, higher with each daemon
};

// What there is to see of a schedule.
struct xpl_schedule_state {
    struct xpl_schedule_claim claim; // of its owner
    bool is_ours;                    // also with an expired lease, until another daemon has it
    bool is_free;                    // the lease has expired
    bool is_wanted;   // it records hosts all the time, and another daemon captures one of them
    xpl_str_t daemon; // its owner, for users; "": none, or one without a heartbeat
};

// The claimant of targets.
struct xpl_target_taker {
    uint64_t capture_id, schedule_id; // 0: none
    bool records;                     // all the time: its servers keep recording after the capture
    uint64_t lease_ms;
};

// The leases that this daemon still has.
struct xpl_kept_leases {
    uint64_t *captures;
    struct xpl_schedule_claim *schedules;
    size_t n_captures, n_schedules;
};

// Owner of a target; all zero: the caller.
struct xpl_target_holder {
    uint64_t capture_id;  // 0: none now; the schedule's servers record
    uint64_t schedule_id; // 0: none
    bool records;         // it is handed over to who is not a schedule
    xpl_str_t daemon;     // for people
};

// A capture whose daemon has let its lease run out.
struct xpl_capture_lost {
    uint64_t id, schedule_id;
    int64_t begin_ms;
    xpl_str_t session; // "": none yet
    uint64_t ino;      // of its directory; 0: not known
};

struct xpl_captures_ops {
    // ---- captures ----

    // Numbers a capture and notes it as running, under a lease; `c->id` is not read.  Of a schedule
    // only with the claim of it (else NULL): ABORTED when that is another's.
    xpl_status_t (*begin)(struct xpl_store *s, const struct xpl_history_capture *c,
                          const struct xpl_schedule_claim *claim, uint64_t lease_ms,
                          uint64_t *ret_id, struct xpl_error *err);
    // The capture did not begin: removes it.  A finished one stays.
    xpl_status_t (*withdraw)(struct xpl_store *s, uint64_t capture_id, struct xpl_error *err);
    // The session's directory, when it is known.
    xpl_status_t (*note_session)(struct xpl_store *s, uint64_t capture_id, xpl_str_t session,
                                 uint64_t ino, struct xpl_error *err);
    // The capture has finished.  Its targets are free, unless its servers keep recording for its
    // schedule.  ABORTED: it was interrupted by another daemon, and nothing is written.
    xpl_status_t (*put)(struct xpl_store *s, const struct xpl_history_capture *c, bool records,
                        struct xpl_error *err);
    // Adds a finished capture of a daemon without the store: once, however often it is called.
    xpl_status_t (*adopt)(struct xpl_store *s, const struct xpl_history_capture *c,
                          struct xpl_error *err);
    // As xpl_history_list.
    xpl_status_t (*list)(struct xpl_store *s, uint64_t before, size_t limit,
                         struct xpl_arena *arena, struct xpl_history_capture **ret, size_t *ret_n,
                         struct xpl_error *err);
    // Claims the free ones of `n` targets, whose names are equal for equal programs. ret[i] is the
    // owner of targets[i].  If another daemon's schedule records one all the time, that daemon is
    // asked to hand it over. `arena` has the texts.
    xpl_status_t (*claim_targets)(struct xpl_store *s, const struct xpl_target_taker *who,
                                  const xpl_str_t *targets, size_t n, struct xpl_arena *arena,
                                  struct xpl_target_holder *ret, struct xpl_error *err);
    // Its servers record no more.
    xpl_status_t (*release_targets)(struct xpl_store *s, uint64_t schedule_id,
                                    struct xpl_error *err);
    // Interrupts captures of other daemons with expired leases.  Returns those of this call, in
    // `arena`.
    xpl_status_t (*reap)(struct xpl_store *s, struct xpl_arena *arena,
                         struct xpl_capture_lost **ret, size_t *ret_n, struct xpl_error *err);

    // ---- leases ----

    // Renews all leases of this daemon.  Returns those that it still has, in `arena`.
    xpl_status_t (*renew)(struct xpl_store *s, uint64_t lease_ms, struct xpl_arena *arena,
                          struct xpl_kept_leases *ret, struct xpl_error *err);
    // All schedules, by id, and whether there is something to reap.
    xpl_status_t (*inspect)(struct xpl_store *s, struct xpl_arena *arena,
                            struct xpl_schedule_state **ret, size_t *ret_n, bool *ret_lost,
                            struct xpl_error *err);
    // Claims free schedules, those that are due first, or none (*ret_n 0).  Outcomes of their
    // running captures are refused from now on.
    xpl_status_t (*claim)(struct xpl_store *s, size_t max, uint64_t lease_ms,
                          struct xpl_arena *arena, struct xpl_history_schedule **ret, size_t *ret_n,
                          struct xpl_error *err);
    // Hands schedules back: others may claim them at once.
    xpl_status_t (*give_back)(struct xpl_store *s, const struct xpl_schedule_claim *c, size_t n,
                              struct xpl_error *err);

    // ---- schedules; as the xpl_history_… of these names ----

    // With lease_ms not 0 it is this daemon's from the start, with fence 1.
    xpl_status_t (*add_schedule)(struct xpl_store *s, const struct xpl_history_schedule *one,
                                 uint64_t lease_ms, uint64_t *ret_id, struct xpl_error *err);
    // Adds one of a daemon's own with its sessions: once, however often it is called.
    xpl_status_t (*adopt_schedule)(struct xpl_store *s, const struct xpl_history_schedule *one,
                                   const struct xpl_history_session *sessions, size_t n,
                                   struct xpl_error *err);
    // ABORTED: it is another daemon's.
    xpl_status_t (*set_schedule)(struct xpl_store *s, const struct xpl_history_schedule *one,
                                 struct xpl_error *err);
    xpl_status_t (*delete_schedule)(struct xpl_store *s, uint64_t id, struct xpl_error *err);
    xpl_status_t (*schedules)(struct xpl_store *s, struct xpl_arena *arena,
                              struct xpl_history_schedule **ret, size_t *ret_n,
                              struct xpl_error *err);
    xpl_status_t (*add_session)(struct xpl_store *s, uint64_t schedule_id,
                                const struct xpl_history_session *one, struct xpl_error *err);
    xpl_status_t (*sessions)(struct xpl_store *s, uint64_t schedule_id, struct xpl_arena *arena,
                             struct xpl_history_session **ret, size_t *ret_n,
                             struct xpl_error *err);
    xpl_status_t (*forget_session)(struct xpl_store *s, uint64_t schedule_id, xpl_str_t name,
                                   struct xpl_error *err);
};

// NULL: daemons do not share this store.
static inline const struct xpl_captures_ops *xpl_store_captures(const struct xpl_store *s) {
    return s->ops->captures;
}

#endif
