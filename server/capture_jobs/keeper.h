// SPDX-License-Identifier: Apache-2.0
// Keeps the leases of a daemon that shares captures and schedules with others: one thread, which
// renews them, takes over what daemons that are gone have left, and gives back what it has when it
// ends.  Nobody waits for it but who frees it.
#ifndef XPL_SERVER_CAPTURE_JOBS_KEEPER_H_
#define XPL_SERVER_CAPTURE_JOBS_KEEPER_H_

#include "server/capture_jobs/captures.h"
#include "server/capture_jobs/schedules.h"

struct xpl_capture_keeper;

// Both are borrowed and outlive it; the captures have a shared store.  NULL when the thread or
// memory cannot be had.
struct xpl_capture_keeper *xpl_capture_keeper_new(struct xpl_capture_jobs *captures,
                                                  struct xpl_schedules *schedules);
// Begins to hand schedules over: now those that wait for their turn, the others when their captures
// are over.  Does not wait.  NULL is fine.
void xpl_capture_keeper_stop(struct xpl_capture_keeper *k);
// No capture may be running.  Hands the rest over and joins.  NULL is fine.
void xpl_capture_keeper_free(struct xpl_capture_keeper *k);

#endif
