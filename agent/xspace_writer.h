// SPDX-License-Identifier: Apache-2.0
// Record streams of a host's processes -> one XSpace, with the plane, line and statistic names that
// XLA's GPU profiler gives (openxla/xla, xla/backends/profiler/gpu/cupti_collector.cc):
// /device:GPU:N a line per stream: kernels, copies, memsets, graphs, unified memory, overhead
// /host:CUPTI a line per thread: driver and runtime calls, and overhead /host:NVTX-CUPTI NVTX
// ranges of threads /host:CPU MemoryAllocation and MemoryDeallocation, for memory_profile GPUs are
// identified by UUID: processes that share one share its plane, with separate lines.  Correlation
// numbers of a second process are moved above those of the first.
#ifndef XPL_AGENT_XSPACE_WRITER_H_
#define XPL_AGENT_XSPACE_WRITER_H_

#include "agent/process.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

// Writes the XSpace into `out`.  A stream is used up to its first malformed record; that, and
// dropped records, become warnings in the XSpace.  Fails only without memory (the arena's and the
// buffer's limits): RESOURCE_EXHAUSTED.
xpl_status_t xpl_agent_write_xspace(const struct xpl_agent_process *processes, size_t n,
                                    xpl_str_t hostname, struct xpl_arena *a, struct xpl_buf *out,
                                    struct xpl_agent_result *ret, struct xpl_error *err)
    XPL_NODISCARD;

#endif
