// SPDX-License-Identifier: Apache-2.0
// An HloProto as text, whatever is in it: every field by its name.
#ifndef XPL_ANALYSIS_HLO_PROTO_PRINT_H_
#define XPL_ANALYSIS_HLO_PROTO_PRINT_H_

#include "base/arena.h"
#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

enum xpl_hlo_proto_form {
    XPL_HLO_PROTO_PBTXT, // protobuf's text format, byte for byte as XProf prints it
    XPL_HLO_PROTO_JSON,  // protobuf's JSON: 64-bit numbers are strings, bytes base64
};

// Appends the text of a serialized HloProto to `out`.  Fields are in the order of their numbers,
// entries of maps in that of their keys; unknown fields are left out, as in XProf.  Scratch memory
// comes from the arena.  The program only needs readable messages; it may be invalid otherwise.
// DATA_LOSS for malformed bytes, or messages nested deeper than XPL_HLO_PROTO_DEPTH, which is
// protobuf's limit; RESOURCE_EXHAUSTED at the limit of the arena or of `out`, whose contents are
// then incomplete; CANCELLED by `exec`, which is polled every few thousand values.
enum { XPL_HLO_PROTO_DEPTH = 100 };
xpl_status_t xpl_hlo_proto_print(xpl_bytes_t proto, enum xpl_hlo_proto_form form,
                                 struct xpl_exec *exec, struct xpl_arena *scratch,
                                 struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
