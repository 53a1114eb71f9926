// SPDX-License-Identifier: Apache-2.0
// Continuous profiling: captures that the daemon begins by itself, and which of their sessions are
// kept.  Schedules live in the history, so they survive restarts; daemons of a fleet share them,
// and each has a lease on those that it runs.  Any thread may call anything.
#ifndef XPL_SERVER_CAPTURE_JOBS_SCHEDULES_H_
#define XPL_SERVER_CAPTURE_JOBS_SCHEDULES_H_

#include "base/arena.h"
#include "proto/xplaned/v1/capture.pb-c.h"
#include "server/capture_jobs/captures.h"

enum { XPL_SCHEDULES_MAX = 256 };

struct xpl_removals;
struct xpl_schedules;

// Reads the schedules of the history.  Everything is borrowed.  NULL when out of memory.
struct xpl_schedules *xpl_schedules_new(struct xpl_capture_jobs *captures,
                                        struct xpl_history *history, struct xpl_removals *removals);
// Reads them again, after the history was taken from another daemon.  Waits for the disk.
void xpl_schedules_reload(struct xpl_schedules *s);
// No capture may be running.  NULL is fine.
void xpl_schedules_free(struct xpl_schedules *s);
// Begins what is due; the loop calls it a few times a second.  Never waits for a disk.
void xpl_schedules_tick(struct xpl_schedules *s);

// INVALID_ARGUMENT, FAILED_PRECONDITION (no history), RESOURCE_EXHAUSTED.  The first capture begins
// at once.  Writes to the disk, as the next.
xpl_status_t xpl_schedules_create(struct xpl_schedules *s,
                                  const Xplaned__V1__CreateScheduleRequest *r, uint64_t *ret_id,
                                  struct xpl_error *err) XPL_NODISCARD;
// A capture of it that runs is ended; its sessions stay.  NOT_FOUND.
xpl_status_t xpl_schedules_delete(struct xpl_schedules *s, uint64_t id, struct xpl_error *err)
    XPL_NODISCARD;
// All, or (id not 0) that one, in `arena`.
xpl_status_t xpl_schedules_list(struct xpl_schedules *s, uint64_t id, struct xpl_arena *arena,
                                Xplaned__V1__ListSchedulesResponse *ret, struct xpl_error *err)
    XPL_NODISCARD;

// ---- where daemons share schedules: for the keeper of their leases (keeper.h) ----
//
// The list then has those that this daemon has a lease on.  `asked_ns`: when the database was
// asked; what was added since is not among its answers.  None waits for a disk or the database.

// Adds schedules that were claimed.  False: out of memory.
bool xpl_schedules_adopt(struct xpl_schedules *s, const struct xpl_history_schedule *rows, size_t n,
                         uint64_t asked_ns);
// The leases of these began anew.
void xpl_schedules_renewed(struct xpl_schedules *s, const struct xpl_kept_leases *kept,
                           uint64_t asked_ns);
// What there is of all schedules: gives up those that are another daemon's or deleted, and has
// hosts handed over.  Returns how many schedules are in ret_release: their servers record nothing
// that could be handed over.
size_t xpl_schedules_inspected(struct xpl_schedules *s, const struct xpl_schedule_state *states,
                               size_t n, uint64_t asked_ns, uint64_t *ret_release, size_t max);
// Which schedules this daemon has by the database and not in its list: they were claimed or created
// by a statement whose answer was lost.  One that is just being created is among them.  Those that
// cannot be read are not.  Returns how many.
size_t xpl_schedules_find_strays(struct xpl_schedules *s, const struct xpl_schedule_state *states,
                                 size_t n, struct xpl_schedule_claim *ret, size_t max);
// No turn begins from now on.
void xpl_schedules_stop(struct xpl_schedules *s);
// Gives up schedules whose captures do not run, for others to have them.  Returns how many.
size_t xpl_schedules_take_waiting(struct xpl_schedules *s, struct xpl_schedule_claim *ret,
                                  size_t max);
size_t xpl_schedules_count(struct xpl_schedules *s);

#endif
