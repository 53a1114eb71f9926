// SPDX-License-Identifier: Apache-2.0
// Where files of sessions are before they are in a bucket: a directory of this process, in which
// they take a bounded number of bytes.  It goes with the process; what a killed one left, the next
// one removes.  Any thread.
#ifndef XPL_STORAGE_SESSIONS_OUTGOING_H_
#define XPL_STORAGE_SESSIONS_OUTGOING_H_

#include <stdint.h>

#include "base/status.h"
#include "storage/sessions/session_writer.h"

struct xpl_objects;
struct xpl_outgoing;

// `dir` is made when it is missing; each process has a directory of its own in it.  `o` outlives
// it. UNAVAILABLE, RESOURCE_EXHAUSTED.
xpl_status_t xpl_outgoing_new(struct xpl_objects *o, const char *dir, uint64_t limit_bytes,
                              struct xpl_outgoing **ret, struct xpl_error *err) XPL_NODISCARD;
// Removes the directory, with what is in it.  NULL is fine.
void xpl_outgoing_free(struct xpl_outgoing *o);
// For session writers.  Borrowed.
struct xpl_session_remote *xpl_outgoing_get_remote(struct xpl_outgoing *o);

#endif
