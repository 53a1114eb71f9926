// SPDX-License-Identifier: Apache-2.0
// Data that cannot be recomputed, in the SQLite database DIR/state.db: the history of captures, the
// schedules and their sessions, and the labels of sessions.
//
// Unlike the store's, its writes are synced before they return.  It is small and used rarely: one
// connection, one lock, statements prepared when needed.  A lock file keeps a second daemon out,
// which then has no history and no schedules.  Any thread may call anything at any time.
#ifndef XPL_STORAGE_STORE_HISTORY_H_
#define XPL_STORAGE_STORE_HISTORY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_history;
struct xpl_store;

enum { XPL_HISTORY_CAPTURES = 10000 }; // kept; the oldest go first

// Opens or makes DIR/state.db.  FAILED_PRECONDITION when it is of another program.  A broken one,
// or one of a newer xplaned, is renamed to state.db.broken-<time> and a new one begun; one that
// cannot be used now (no place, another daemon has it) gives a history that keeps nothing:
// xpl_history_is_on is false, and xpl_history_next_notice tells why.  Captures that were running
// when the last daemon ended are marked as interrupted.
xpl_status_t xpl_history_open(const char *dir, struct xpl_history **ret, struct xpl_error *err)
    XPL_NODISCARD;
// NULL is fine.
void xpl_history_close(struct xpl_history *h);
bool xpl_history_is_on(struct xpl_history *h);
// To be called periodically while it is off, for any reason: opens state.db as soon as possible.
// True if this call turned it on and its content can be read.  Blocks.
bool xpl_history_try_again(struct xpl_history *h);
// Whether a state.db that could not be used was moved aside since the start.
bool xpl_history_was_replaced(struct xpl_history *h);
// As xpl_store_next_notice.
bool xpl_history_next_notice(struct xpl_history *h, char *buf, size_t size);

// ---- sharing ----

// From here on: numbers of captures that a daemon of many began while it could not ask the others.
#define XPL_HISTORY_OWN ((uint64_t)1 << 40)

// From now on the list of captures, schedules and their sessions are those of all daemons that
// share this store, which has them (storage/store/captures.h).  What state.db has of them is this
// daemon's own until it is moved.  Right after opening; the store is borrowed.
void xpl_history_share(struct xpl_history *h, struct xpl_store *store);
// Moves schedules and finished captures from state.db to the store: those from before this daemon
// shared a store, and those from an outage of the store.  Rows moved before a failure stay moved.
// Blocks.
xpl_status_t xpl_history_move(struct xpl_history *h, struct xpl_error *err) XPL_NODISCARD;

// ---- captures ----

// Numbers are those of xplaned.v1.Capture.State and HostState.
enum { XPL_HISTORY_RUNNING = 1, XPL_HISTORY_INTERRUPTED = 6, XPL_HISTORY_HOST_FAILED = 9 };

struct xpl_history_session; // below

struct xpl_history_host {
    xpl_str_t target, host, reason;
    int state, code;
    uint64_t bytes, attempts;
};

struct xpl_history_capture {
    uint64_t id;
    int state, code;
    xpl_str_t session, message;
    int64_t begin_ms, end_ms; // since 1970; end 0 while it runs
    uint64_t duration_ms, schedule_id;
    const struct xpl_history_host *hosts;
    size_t n_hosts;
    // Written only: the session that a schedule's turn made, which becomes one of the schedule's in
    // the same transaction.  NULL: none.
    const struct xpl_history_session *made;
};

// The highest id so far, 0 without any.
uint64_t xpl_history_last_id(struct xpl_history *h);
// Writes the capture, replacing one with its id.  FAILED_PRECONDITION if the history is off;
// RESOURCE_EXHAUSTED, UNAVAILABLE, DATA_LOSS as the store's.
xpl_status_t xpl_history_put(struct xpl_history *h, const struct xpl_history_capture *c,
                             struct xpl_error *err) XPL_NODISCARD;
// The directory that a running capture (or an import, under a separate number) is about to make
// (dev and ino are 0) or has made; removed when the capture is put as finished.
struct xpl_history_directory {
    uint64_t capture_id;
    xpl_str_t path; // absolute
    uint64_t dev, ino;
    // Read only, of the capture: 0 when no schedule began it, or nothing is known of it.
    uint64_t schedule_id;
    int64_t begin_ms;
};
xpl_status_t xpl_history_put_directory(struct xpl_history *h, const struct xpl_history_directory *d,
                                       struct xpl_error *err) XPL_NODISCARD;
// Right after opening: those of captures that the last daemon did not end.
xpl_status_t xpl_history_directories(struct xpl_history *h, struct xpl_arena *arena,
                                     struct xpl_history_directory **ret, size_t *ret_n,
                                     struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_history_forget_directory(struct xpl_history *h, uint64_t capture_id,
                                          struct xpl_error *err) XPL_NODISCARD;
// At most `limit` captures with ids below `before` (0: all), newest first, in `arena`.  Nothing
// when the history is off; where daemons share it and the store is away, this daemon's own.
xpl_status_t xpl_history_list(struct xpl_history *h, uint64_t before, size_t limit,
                              struct xpl_arena *arena, struct xpl_history_capture **ret,
                              size_t *ret_n, struct xpl_error *err) XPL_NODISCARD;

// ---- schedules ----

struct xpl_history_schedule {
    uint64_t id;
    xpl_bytes_t request; // xplaned.v1.CreateScheduleRequest, serialized
    int64_t created_ms, next_ms;
    uint64_t last_capture_id;
    int64_t fence; // where daemons share schedules: of the lease on it; else 0
    // Read only, where daemons share schedules: when its last turn began that came to an end by
    // itself; else 0.
    int64_t done_ms;
};

// Adds one; its id comes in *ret_id.  Where daemons share schedules, this and what follows has the
// errors of storage/store/captures.h.
xpl_status_t xpl_history_add_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                      uint64_t *ret_id, struct xpl_error *err) XPL_NODISCARD;
// Notes next_ms and last_capture_id.
xpl_status_t xpl_history_set_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                      struct xpl_error *err) XPL_NODISCARD;
// Also removes the rows of its sessions.  OK also if no schedule has the id.
xpl_status_t xpl_history_delete_schedule(struct xpl_history *h, uint64_t id, struct xpl_error *err)
    XPL_NODISCARD;
xpl_status_t xpl_history_schedules(struct xpl_history *h, struct xpl_arena *arena,
                                   struct xpl_history_schedule **ret, size_t *ret_n,
                                   struct xpl_error *err) XPL_NODISCARD;

// ---- sessions that schedules made ----

struct xpl_history_session {
    xpl_str_t name; // of its directory
    // Of its directory: another one of that name is not ours to delete.  Of one in a bucket dev is
    // the bucket (xpl_objects_device) and ino 0.
    uint64_t dev, ino;
    uint64_t bytes;
    int64_t made_ms;
    uint64_t n_hosts; // profiles that were stored; where there are more, others added some
};

// Nothing is added for a schedule that is gone.
xpl_status_t xpl_history_add_session(struct xpl_history *h, uint64_t schedule_id,
                                     const struct xpl_history_session *s, struct xpl_error *err)
    XPL_NODISCARD;
// Oldest first.
xpl_status_t xpl_history_sessions(struct xpl_history *h, uint64_t schedule_id,
                                  struct xpl_arena *arena, struct xpl_history_session **ret,
                                  size_t *ret_n, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_history_forget_session(struct xpl_history *h, uint64_t schedule_id, xpl_str_t name,
                                        struct xpl_error *err) XPL_NODISCARD;

// ---- labels of sessions ----

struct xpl_history_label {
    xpl_str_t session, label;
    int64_t set_ms; // since 1970
};

// Adds the first ones and removes the others, all or none.  One that is there keeps its time.
xpl_status_t xpl_history_set_labels(struct xpl_history *h, const struct xpl_history_label *add,
                                    size_t n_add, const struct xpl_history_label *remove,
                                    size_t n_remove, struct xpl_error *err) XPL_NODISCARD;
// By session, then label, both by bytes.  Nothing when the history is off.
xpl_status_t xpl_history_labels(struct xpl_history *h, struct xpl_arena *arena,
                                struct xpl_history_label **ret, size_t *ret_n,
                                struct xpl_error *err) XPL_NODISCARD;

#endif
