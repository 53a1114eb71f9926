// SPDX-License-Identifier: Apache-2.0
// Private to rpc: a minimal protobuf field reader for the few places that decode without a schema.
// analysis/wire is the project's reader, but rpc/ may not include it.
#ifndef XPL_RPC_FIELD_H_
#define XPL_RPC_FIELD_H_

#include <stdint.h>

#include "base/str.h"

struct xpl_rpc_reader {
    const uint8_t *p, *end;
};

struct xpl_rpc_field {
    uint32_t num;
    uint32_t wire;     // 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes
    uint64_t u;        // of a varint
    xpl_bytes_t bytes; // of wire 2
};

static inline struct xpl_rpc_reader xpl_rpc_reader(xpl_bytes_t b) {
    return (struct xpl_rpc_reader){b.ptr, b.len ? b.ptr + b.len : b.ptr};
}

// 1 a field, 0 the end, -1 malformed.
int xpl_rpc_field_next(struct xpl_rpc_reader *r, struct xpl_rpc_field *f)
    __attribute__((warn_unused_result));

static inline xpl_str_t xpl_rpc_field_text(const struct xpl_rpc_field *f) {
    return (xpl_str_t){(const char *)f->bytes.ptr, f->bytes.len};
}

// The last field of wire type 2 with this number; an empty view when there is none (or the message
// is malformed before it).
xpl_bytes_t xpl_rpc_field_find(xpl_bytes_t message, uint32_t num);

#endif
