// SPDX-License-Identifier: Apache-2.0
// Private to analysis/hlo/proto: how values are written.
#ifndef XPL_ANALYSIS_HLO_PROTO_IMPL_H_
#define XPL_ANALYSIS_HLO_PROTO_IMPL_H_

#include "analysis/hlo/proto/schema.h"
#include "analysis/wire/wire.h"
#include "base/buf.h"

// A value of protobuf's text format behind its name: not of messages.
void txt_proto_pbtxt(struct xpl_buf *b, const struct xpl_proto_field *f, const struct xpl_field *v);
// The same in JSON, and a field's name there: "operandIds":
void txt_proto_json(struct xpl_buf *b, const struct xpl_proto_field *f, const struct xpl_field *v);
void txt_proto_json_name(struct xpl_buf *b, const char *name);
void txt_proto_uint(struct xpl_buf *b, uint64_t v);
void txt_proto_int(struct xpl_buf *b, int64_t v);

#endif
