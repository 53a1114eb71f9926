// From the bytes of a host to a tool's answer, stage by stage: what the daemon runs between its
// caches, and what `xplanectl analyze` runs in one go.
//
// Limits: `limit` bounds each arena a stage makes and each buffer it fills, in bytes.  Failures:
// DATA_LOSS for a broken profile, with the offset; RESOURCE_EXHAUSTED at a limit; CANCELLED when
// the exec says so.
#ifndef XPL_ANALYSIS_TOOLS_PIPELINE_H_
#define XPL_ANALYSIS_TOOLS_PIPELINE_H_

#include "analysis/opstats/combine/combine.h"
#include "analysis/opstats/convert.h"
#include "analysis/tools/tool.h"
#include "base/exec.h"

// Changes whenever an answer or a stored product could differ from what an earlier build made:
// stored products and answers of another version are never used.
#define XPL_ANALYSIS_VERSION 1

// True when a profile has a /device:TPU: or /device:GPU: plane.  Reads no more than plane names;
// false for broken bytes, which the conversion will report.
bool xpl_bytes_have_device(xpl_bytes_t bytes);

// One host's OpStats.  `*ret` and all it refers to live in `result`; `bytes` may go afterwards.
xpl_status_t xpl_bytes_op_stats(xpl_bytes_t bytes, const struct xpl_convert_options *opt,
                                struct xpl_exec *exec, size_t limit, struct xpl_arena *result,
                                struct xpl_opstats **ret, struct xpl_error *err) XPL_NODISCARD;

// One host's memory_profile answer, appended to `out`.
xpl_status_t xpl_bytes_memory_profile(xpl_bytes_t bytes, struct xpl_exec *exec, size_t limit,
                                      struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

// The answer of a tool whose product is the finished answer of one host, appended to `out`.
xpl_status_t xpl_bytes_answer(const struct xpl_tool *tool, xpl_bytes_t bytes, struct xpl_exec *exec,
                              size_t limit, struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

// Answer of an OpStats tool over one host or several combined.
xpl_status_t xpl_answer_render(const struct xpl_tool *tool, const struct xpl_tool_options *opt,
                               const struct xpl_host_opstats *hosts, size_t n, size_t limit,
                               struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
