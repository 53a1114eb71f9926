// SPDX-License-Identifier: Apache-2.0
// tensorflow.ProfilerService over the CUDA programs of this machine and, for requests whose tools
// have "pytorch", over the processes of PyTorch.  One capture at a time, on a dedicated thread.
#ifndef XPL_AGENT_SERVICE_H_
#define XPL_AGENT_SERVICE_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "rpc/call.h"

struct xpl_agent_service;

struct xpl_agent_service_options {
    size_t size;                               // sizeof this
    const char *directory;                     // of the programs' sockets; as long as the service
    uint32_t buffers;                          // in each program; 0: its own choice
    size_t max_bytes;                          // of records, or of traces, held at once
    struct xpl_pytorch_processes *pytorch;     // borrowed; NULL: none is captured
    const struct xpl_pytorch_serving *serving; // likewise; it comes first
};

enum { XPL_AGENT_METHODS = 6 };

xpl_status_t xpl_agent_service_new(const struct xpl_agent_service_options *opt,
                                   struct xpl_agent_service **ret, struct xpl_error *err);
void xpl_agent_service_get_methods(struct xpl_agent_service *s,
                                   struct xpl_rpc_method ret[XPL_AGENT_METHODS]);
// A running capture ends with its data so far; it is answered before this returns.
void xpl_agent_service_stop(struct xpl_agent_service *s);
// After the server has been freed.  NULL is fine.
void xpl_agent_service_free(struct xpl_agent_service *s);

#endif
