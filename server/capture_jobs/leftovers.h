// SPDX-License-Identifier: Apache-2.0
// What captures left that the last daemon did not end, because it was killed.
#ifndef XPL_SERVER_CAPTURE_JOBS_LEFTOVERS_H_
#define XPL_SERVER_CAPTURE_JOBS_LEFTOVERS_H_

#include "server/capture_jobs/captures.h"

// Removes what is broken off from the directories that the history has notes of, and directories
// that this leaves empty.  A session of whole profiles that a schedule began becomes one of the
// schedule's, so that it is removed in its turn (`--keep`).  Before the first capture.  Blocks.
void xpl_capture_leftovers_remove(const struct xpl_capture_jobs_options *o);
// Likewise of a capture of another daemon, which has lost its lease on it.
void xpl_capture_leftovers_adopt(const struct xpl_capture_jobs_options *o,
                                 const struct xpl_capture_lost *lost);

#endif
