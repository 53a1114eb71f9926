// SPDX-License-Identifier: Apache-2.0
// The schema of HLO's messages: numbers, names and types of their fields.  At build tables.py makes
// the tables from schema.txt, which tests/parity/hlo_schema.py writes from XProf's descriptors.
#ifndef XPL_ANALYSIS_HLO_PROTO_SCHEMA_H_
#define XPL_ANALYSIS_HLO_PROTO_SCHEMA_H_

#include <stdint.h>

enum xpl_proto_type {
    XPL_PROTO_BOOL,
    XPL_PROTO_INT32,
    XPL_PROTO_INT64,
    XPL_PROTO_UINT32,
    XPL_PROTO_UINT64,
    XPL_PROTO_ENUM,
    XPL_PROTO_FLOAT,
    XPL_PROTO_DOUBLE,
    XPL_PROTO_TEXT,
    XPL_PROTO_BYTES,
    XPL_PROTO_MESSAGE,
};
enum xpl_proto_flags {
    XPL_PROTO_ONE = 0,    // of a zero nothing is shown
    XPL_PROTO_MANY = 1,   // repeated
    XPL_PROTO_MAP = 2,    // repeated, entries of a map: the last with a key counts
    XPL_PROTO_KNOWN = 4,  // a zero is shown where it is given
    XPL_PROTO_ONE_OF = 8, // the last given of those in a message with this flag counts
    XPL_PROTO_ONCE = 16,  // a separate choice: JSON may have it once
};

struct xpl_proto_field {
    uint8_t number, type, flags;
    uint8_t of; // MESSAGE: its place in xpl_hlo_messages; ENUM: in xpl_hlo_enums
    const char *name;
};
struct xpl_proto_message {
    const struct xpl_proto_field *fields; // by number
    uint8_t n;
};
struct xpl_proto_value {
    int32_t number;
    const char *name;
};
struct xpl_proto_enum {
    const struct xpl_proto_value *values; // by number
    uint8_t n;
};

extern const struct xpl_proto_message xpl_hlo_messages[];
extern const struct xpl_proto_enum xpl_hlo_enums[];
extern const struct xpl_proto_message *const xpl_hlo_proto;            // HloProto
extern const struct xpl_proto_message *const xpl_hlo_proto_gpu_config; // GpuBackendConfig
extern const struct xpl_proto_message *const xpl_hlo_proto_uint64;     // UInt64Value

#endif
