// SPDX-License-Identifier: Apache-2.0
// A capture of PyTorch's processes: gives them work, waits for their traces, and takes them.
#ifndef XPL_AGENT_PYTORCH_COLLECT_H_
#define XPL_AGENT_PYTORCH_COLLECT_H_

#include <stdatomic.h>

#include "agent/pytorch/processes.h"
#include "base/buf.h"

struct xpl_pytorch_options {
    size_t size;                        // sizeof this
    const char *directory;              // the agent's own; the traces get a directory in it
    const char *host;                   // of the traces' names
    uint64_t start_ns;                  // Unix time; 0 or past: as soon as possible
    struct xpl_pytorch_request request; // without the start
    int64_t job;
    bool any_job;            // of the only job that is here
    const atomic_int *state; // enum xpl_collect_state, set by others
    int wake;                // becomes readable when it changes
};

// Blocks: all processes of a job record at once, 9 s from now at the earliest, for the request's
// duration; the traces are waited for 40 s, or twice the duration less 20 s.  With iterations the
// duration is how long these may take.  Appends a ProfileResponse to `out`: a ProfileToolData
// HOST_PID-rank-N.pt.trace.json.gz for each process, and one called "notes" with text about
// processes that gave none.  FAILED_PRECONDITION with one sentence when no process can record;
// CANCELLED; RESOURCE_EXHAUSTED when `out` is too small for all.
xpl_status_t xpl_pytorch_collect(struct xpl_pytorch_processes *p,
                                 const struct xpl_pytorch_options *opt, struct xpl_buf *out,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
