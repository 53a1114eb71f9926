// SPDX-License-Identifier: Apache-2.0
// Continuous profiling: captures that the daemon begins by itself, and which of their sessions are
// kept.  Schedules live in the history, so they survive restarts.  Any thread may call anything.
#ifndef XPL_SERVER_CAPTURE_JOBS_SCHEDULES_H_
#define XPL_SERVER_CAPTURE_JOBS_SCHEDULES_H_

#include "base/arena.h"
#include "proto/xplaned/v1/capture.pb-c.h"
#include "server/capture_jobs/captures.h"

enum { XPL_SCHEDULES_MAX = 256 };

struct xpl_schedules;

// Reads the schedules of the history.  Everything is borrowed.  NULL when out of memory.
// `objects`: the bucket in which sessions are removed; NULL: they are in `logdir`.
struct xpl_schedules *xpl_schedules_new(struct xpl_capture_jobs *captures,
                                        struct xpl_history *history, const char *logdir,
                                        struct xpl_objects *objects);
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

#endif
