// SPDX-License-Identifier: Apache-2.0
// The spool of session files on their way to a bucket: a directory of this process with a limit on
// its bytes.  It is removed with the process; the next process removes the spool of a killed one.
// Any thread.
#ifndef XPL_STORAGE_SESSIONS_OUTGOING_H_
#define XPL_STORAGE_SESSIONS_OUTGOING_H_

#include <stdint.h>

#include "base/status.h"
#include "storage/sessions/session_writer.h"

struct xpl_objects;
struct xpl_outgoing;

// Creates `dir` when it is missing, and in it a private directory for each process.  `o` outlives
// it.  UNAVAILABLE, RESOURCE_EXHAUSTED.
xpl_status_t xpl_outgoing_new(struct xpl_objects *o, const char *dir, uint64_t limit_bytes,
                              struct xpl_outgoing **ret, struct xpl_error *err) XPL_NODISCARD;
// Removes the directory with its contents.  NULL is fine.
void xpl_outgoing_free(struct xpl_outgoing *o);
// For session writers.  Borrowed.
struct xpl_session_remote *xpl_outgoing_get_remote(struct xpl_outgoing *o);

#endif
