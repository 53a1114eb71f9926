// SPDX-License-Identifier: Apache-2.0
// OpStats to and from XProf's bytes (message tensorflow.profiler.OpStats), by wire reader and
// writer: protobuf-c has no depth limit and would copy everything.
#ifndef XPL_ANALYSIS_OPSTATS_CODEC_CODEC_H_
#define XPL_ANALYSIS_OPSTATS_CODEC_CODEC_H_

#include "analysis/opstats/opstats.h"
#include "base/buf.h"
#include "base/status.h"

struct xpl_arena;

// How deep OpMetrics.children may nest in input that we accept.
enum { XPL_OPSTATS_MAX_DEPTH = 64 };

// Appends the message.  Deterministic: equal structs give equal bytes.  RESOURCE_EXHAUSTED when the
// buffer's maximum is reached or memory is out.
xpl_status_t xpl_opstats_encode(const struct xpl_opstats *s, struct xpl_buf *out,
                                struct xpl_error *err) XPL_NODISCARD;
// Reads a message; everything is copied into `arena`.  Unknown fields are skipped.  DATA_LOSS with
// the offset for malformed input or nesting beyond XPL_OPSTATS_MAX_DEPTH.
xpl_status_t xpl_opstats_decode(xpl_bytes_t in, struct xpl_arena *arena, struct xpl_opstats **ret,
                                struct xpl_error *err) XPL_NODISCARD;

#endif
