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

// Appends the text of a serialized HloProto to `out`.  Fields stand in the order of their numbers,
// entries of maps in that of their keys; unknown fields are left out, as XProf leaves them out.
// Scratch memory comes from the arena.  Nothing is asked of the program but that its messages can
// be read.  DATA_LOSS for malformed bytes, or messages nested deeper than XPL_HLO_PROTO_DEPTH, as
// deep as protobuf reads; RESOURCE_EXHAUSTED at the limit of the arena or of `out`, whose contents
// are then incomplete; CANCELLED when the exec says so, which it is asked every few thousand
// values.
enum { XPL_HLO_PROTO_DEPTH = 100 };
xpl_status_t xpl_hlo_proto_print(xpl_bytes_t proto, enum xpl_hlo_proto_form form,
                                 struct xpl_exec *exec, struct xpl_arena *scratch,
                                 struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
