// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler (Kineto's JSON) as XSpaces.  Other Chrome traces become events
// without a meaning.  README.md has the mapping.
#ifndef XPL_ANALYSIS_KINETO_KINETO_H_
#define XPL_ANALYSIS_KINETO_KINETO_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"
#include "base/text/json_reader.h"
#include "base/text/profile_file.h"

enum { XPL_KINETO_HEAD = 64 << 10 }; // bytes at the front that decide whether a text is a trace

struct xpl_kineto_options {
    size_t max_bytes;      // of the XSpace and all that it is made of, together
    struct xpl_exec *exec; // asked between events whether to give up; may be NULL
};

// What a text is that begins with `head` (XPL_KINETO_HEAD bytes of it, or all).
enum xpl_kineto_sniffed {
    XPL_KINETO_NOT,
    XPL_KINETO_TRACE, // an object with traceEvents, or an array of events: whoever wrote it
    XPL_KINETO_SURE,  // with what only PyTorch writes
};
enum xpl_kineto_sniffed xpl_kineto_sniff(xpl_bytes_t head);

// The reason for which a text that begins with `head` is refused, and what to do.
const char *xpl_kineto_refusal(xpl_bytes_t head);

// Of which process the trace is that begins with `head` (as above; empty: not read), in the file
// DIR/STEM.SUFFIX.  What neither says is -1 or 0 in *ret.
void xpl_kineto_identify(xpl_str_t dir, xpl_str_t stem, xpl_bytes_t head,
                         struct xpl_profile_identity *ret);

// Reads the trace of a lenient reader that is at its begin, and appends the XSpace to `out`, an
// empty buffer.  *ret_partial: something was lost; the XSpace's warnings say what.  Fails with
//   DATA_LOSS           nothing of a trace was found
//   RESOURCE_EXHAUSTED  it takes more than options->max_bytes; or no memory
//   CANCELLED           options->exec says so
xpl_status_t xpl_kineto_import(struct xpl_json_reader *reader,
                               const struct xpl_kineto_options *options, struct xpl_buf *out,
                               bool *ret_partial, struct xpl_error *err) XPL_NODISCARD;

#endif
