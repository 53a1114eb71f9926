// SPDX-License-Identifier: Apache-2.0
// A capture of vLLM or SGLang, whose server writes the traces of its workers into a directory
// between POST /start_profile and POST /stop_profile.
#ifndef XPL_AGENT_PYTORCH_SERVING_H_
#define XPL_AGENT_PYTORCH_SERVING_H_

#include <stdatomic.h>

#include "base/buf.h"
#include "base/status.h"

struct xpl_pytorch_serving {
    const char *url;       // of the server: http://127.0.0.1:8000
    const char *directory; // of its traces, on this machine
};

// Blocks: starts the profiler at `start_ns` (Unix time; 0 or past: now), stops it after
// `duration_ms`, also when cancelled, and appends the traces written meanwhile to `out`, as
// xpl_pytorch_collect does.  `state`: enum xpl_collect_state, set by others; `wake` becomes
// readable when it changes.  Errors as xpl_pytorch_collect.
xpl_status_t xpl_pytorch_serve(const struct xpl_pytorch_serving *s, uint64_t start_ns,
                               uint64_t duration_ms, const atomic_int *state, int wake,
                               struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
