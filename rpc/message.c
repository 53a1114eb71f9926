// SPDX-License-Identifier: Apache-2.0
#include "rpc/message.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/utf8.h"
#include "rpc/field.h"

// ---- scanning ----

struct level {
    struct xpl_rpc_reader r;
    const ProtobufCMessageDescriptor *type;
};

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
                                                  uint32_t num) {
    return num <= INT32_MAX ? protobuf_c_message_descriptor_get_field(type, num) : NULL;
}

// The elements that one packed run adds: protobuf-c makes one of each.
static size_t packed_elements(const ProtobufCFieldDescriptor *d, const struct xpl_rpc_field *f) {
    return d && d->label == PROTOBUF_C_LABEL_REPEATED && d->type != PROTOBUF_C_TYPE_STRING &&
                   d->type != PROTOBUF_C_TYPE_BYTES && d->type != PROTOBUF_C_TYPE_MESSAGE
               ? f->bytes.len
               : 0;
}

// The error is for people, who gave the text on a command line or in a page.
static xpl_status_t check_text(const char *name, xpl_str_t s, uint64_t at, struct xpl_error *err) {
    const size_t n = xpl_utf8_valid_length(s);
    const char *const nul = s.len ? memchr(s.ptr, 0, n) : NULL;
    if (nul)
        XPL_RETURN_ERROR_AT(err, XPL_INVALID_ARGUMENT, at, "%s: byte %td is a NUL", name,
                            nul - s.ptr + 1);
    if (n < s.len)
        XPL_RETURN_ERROR_AT(err, XPL_INVALID_ARGUMENT, at, "%s: byte %zu is not UTF-8", name,
                            n + 1);
    return XPL_OK;
}

// Judges one field at byte `at`; *ret_in is its type when the scan must go into it.
static xpl_status_t check_field(const ProtobufCMessageDescriptor *type,
                                const struct xpl_rpc_field *f, uint64_t at, size_t *elements,
                                const ProtobufCMessageDescriptor **ret_in, struct xpl_error *err) {
    const ProtobufCFieldDescriptor *const d = find_field(type, f->num);
    *elements += 1 + (f->wire == 2 ? packed_elements(d, f) : 0);
    if (*elements > XPL_RPC_MAX_ELEMENTS)
        XPL_RETURN_ERROR_AT(err, XPL_RESOURCE_EXHAUSTED, at, "%s: more than %d elements",
                            type->name, XPL_RPC_MAX_ELEMENTS);
    if (!d || f->wire != 2) return XPL_OK;
    if (d->type == PROTOBUF_C_TYPE_STRING)
        XPL_TRY(check_text(d->name, xpl_rpc_field_text(f), at, err));
    if (d->type == PROTOBUF_C_TYPE_MESSAGE) *ret_in = d->descriptor;
    return XPL_OK;
}

xpl_status_t xpl_rpc_message_scan(const ProtobufCMessageDescriptor *type, xpl_bytes_t bytes,
                                  struct xpl_error *err) {
    struct level stack[XPL_RPC_MAX_DEPTH];
    size_t depth = 1, elements = 0;
    stack[0] = (struct level){xpl_rpc_reader(bytes), type};
    while (depth) {
        struct level *const l = &stack[depth - 1];
        const uint64_t at = (uint64_t)(l->r.p - bytes.ptr);
        struct xpl_rpc_field f;
        const int got = xpl_rpc_field_next(&l->r, &f);
        if (got < 0)
            XPL_RETURN_ERROR_AT(err, XPL_INVALID_ARGUMENT, at, "%s: malformed at byte %" PRIu64,
                                type->name, at);
        if (got == 0) {
            depth--;
            continue;
        }
        const ProtobufCMessageDescriptor *in = NULL;
        XPL_TRY(check_field(l->type, &f, at, &elements, &in, err));
        if (!in) continue;
        if (depth == XPL_RPC_MAX_DEPTH)
            XPL_RETURN_ERROR_AT(err, XPL_INVALID_ARGUMENT, at,
                                "%s: nested more than %d deep at byte %" PRIu64, type->name,
                                XPL_RPC_MAX_DEPTH, at);
        stack[depth++] = (struct level){xpl_rpc_reader(f.bytes), in};
    }
    return XPL_OK;
}

// ---- decoding and encoding ----

struct bounded {
    struct xpl_arena *arena;
    bool full;
};

static void *bounded_alloc(void *arg, size_t size) {
    struct bounded *const b = arg;
    void *const p = xpl_arena_alloc(b->arena, size);
    if (!p) b->full = true;
    return p;
}
static void bounded_free(void *arg, void *p) {
    (void)arg, (void)p; // the arena goes as a whole
}

xpl_status_t xpl_rpc_message_unpack(const ProtobufCMessageDescriptor *type, xpl_bytes_t bytes,
                                    struct xpl_arena *a, ProtobufCMessage **ret,
                                    struct xpl_error *err) {
    XPL_TRY(xpl_rpc_message_scan(type, bytes, err));
    struct bounded b = {.arena = a};
    ProtobufCAllocator alloc = {bounded_alloc, bounded_free, &b};
    ProtobufCMessage *const m = protobuf_c_message_unpack(type, &alloc, bytes.len, bytes.ptr);
    if (b.full) XPL_RETURN_OOM(err, type->name);
    // Valid to the scan, but a field has the wire type of another.
    if (!m)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: a field of the wrong type", type->name);
    *ret = m;
    return XPL_OK;
}

void xpl_rpc_message_put(struct xpl_buf *b, const ProtobufCMessage *m) {
    const size_t n = protobuf_c_message_get_packed_size(m);
    if (n == 0 || !xpl_buf_room(b, n)) return;
    b->n += protobuf_c_message_pack(m, b->p + b->n);
}

static void rpc_put_varint(struct xpl_buf *b, uint64_t v) {
    uint8_t out[10];
    size_t n = 0;
    do {
        out[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v);
    xpl_buf_put(b, out, n);
}

void xpl_rpc_put_uint(struct xpl_buf *b, uint32_t field, uint64_t v) {
    if (!v) return;
    rpc_put_varint(b, (uint64_t)field << 3);
    rpc_put_varint(b, v);
}

void xpl_rpc_put_len(struct xpl_buf *b, uint32_t field, uint64_t len) {
    rpc_put_varint(b, (uint64_t)field << 3 | 2);
    rpc_put_varint(b, len);
}

void xpl_rpc_put_text(struct xpl_buf *b, uint32_t field, xpl_str_t s) {
    if (!s.len) return;
    xpl_rpc_put_len(b, field, s.len);
    xpl_buf_str(b, s);
}
