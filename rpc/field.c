// SPDX-License-Identifier: Apache-2.0
#include "rpc/field.h"

static bool get_varint(struct xpl_rpc_reader *r, uint64_t *ret) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (r->p == r->end) return false;
        const uint8_t b = *r->p++;
        if (shift < 64) v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool skip(struct xpl_rpc_reader *r, uint64_t n) {
    if (n > (uint64_t)(r->end - r->p)) return false;
    r->p += n;
    return true;
}

static bool get_value(struct xpl_rpc_reader *r, struct xpl_rpc_field *f) {
    uint64_t n;
    switch (f->wire) {
        case 0: return get_varint(r, &f->u);
        case 1: return skip(r, 8);
        case 2:
            if (!get_varint(r, &n)) return false;
            f->bytes = (xpl_bytes_t){r->p, (size_t)n};
            return skip(r, n);
        case 5: return skip(r, 4);
        default: return false; // groups have no place in proto3
    }
}

int xpl_rpc_field_next(struct xpl_rpc_reader *r, struct xpl_rpc_field *f) {
    uint64_t key;
    if (r->p == r->end) return 0;
    if (!get_varint(r, &key) || key > UINT32_MAX || key >> 3 == 0) return -1;
    *f = (struct xpl_rpc_field){.num = (uint32_t)(key >> 3), .wire = key & 7};
    return get_value(r, f) ? 1 : -1;
}

xpl_bytes_t xpl_rpc_field_find(xpl_bytes_t message, uint32_t num) {
    struct xpl_rpc_reader r = xpl_rpc_reader(message);
    struct xpl_rpc_field f;
    xpl_bytes_t found = {0};
    while (xpl_rpc_field_next(&r, &f) == 1)
        if (f.num == num && f.wire == 2) found = f.bytes;
    return found;
}
