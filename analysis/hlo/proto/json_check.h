// SPDX-License-Identifier: Apache-2.0
// Whether protobuf reads a JSON text as a message.  Rules: protobuf's JSON parser as XProf 2.24.2
// has it, which is lenient about quotes and commas, and strict about names, types and ranges.
#ifndef XPL_ANALYSIS_HLO_PROTO_JSON_CHECK_H_
#define XPL_ANALYSIS_HLO_PROTO_JSON_CHECK_H_

#include <stdbool.h>

#include "analysis/hlo/proto/schema.h"
#include "base/str.h"

enum { XPL_HLO_JSON_DEPTH = 100 }; // of nested values; deeper ones are not valid

// One pass over the text; keeps nothing.
bool xpl_hlo_json_is(xpl_str_t text, const struct xpl_proto_message *m);

#endif
