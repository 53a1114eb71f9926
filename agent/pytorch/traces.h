// SPDX-License-Identifier: Apache-2.0
// Traces that processes wrote into the agent's directory: takes them into an answer.
#ifndef XPL_AGENT_PYTORCH_TRACES_H_
#define XPL_AGENT_PYTORCH_TRACES_H_

#include <stdatomic.h>

#include "base/buf.h"
#include "base/status.h"

enum xpl_pytorch_trace {
    XPL_PYTORCH_TAKEN,
    XPL_PYTORCH_IDLE,       // likewise, but it has neither ops nor kernels
    XPL_PYTORCH_NOT_YET,    // it is not there, or not complete
    XPL_PYTORCH_REFUSED,    // it is a link, not a file, or another user's
    XPL_PYTORCH_TOO_LARGE,  // for `out`
    XPL_PYTORCH_UNREADABLE, // errors of the disk, no memory
};

// Appends the trace to `out`, a ProfileResponse, as a ProfileToolData: `name` and the file
// compressed by gzip, unless it is already.  Reads the file piece by piece, through no link.  `out`
// is unchanged unless it is TAKEN or IDLE.  `dir`: the directory's descriptor.  Ends UNREADABLE
// soon after `state` is XPL_COLLECT_CANCEL: a file of no bytes on the disk may be as long as it
// likes.
enum xpl_pytorch_trace xpl_pytorch_take(int dir, const char *file, const char *name,
                                        const atomic_int *state, struct xpl_buf *out);
// Appends a ProfileToolData with text.  Check out->failed.
void xpl_pytorch_put_text(const char *name, xpl_str_t text, struct xpl_buf *out);
// Removes a directory and all files in it.
void xpl_pytorch_remove(int dir, const char *path);

#endif
