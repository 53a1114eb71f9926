// SPDX-License-Identifier: Apache-2.0
#include "rpc/bytes.h"

#include <grpc/byte_buffer_reader.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "rpc/impl.h"

struct xpl_rpc_blob {
    atomic_uint refs;
    const uint8_t *bytes;
    size_t len;
    void (*release)(void *);
    void *arg;
    grpc_slice slice; // one for all replies: handing out another reference costs one atomic add
};

static void free_bytes(void *arg) {
    xpl_sys_free(arg);
}

// Neither gRPC nor the owner has a reference any more.
static void destroy(void *arg) {
    struct xpl_rpc_blob *const b = arg;
    if (b->release) b->release(b->arg);
    xpl_sys_free(b);
}

struct xpl_rpc_blob *xpl_rpc_blob_wrap(const void *bytes, size_t len, void (*release)(void *arg),
                                       void *arg) {
    struct xpl_rpc_blob *const b = xpl_sys_alloc(sizeof *b);
    if (!b) return NULL;
    *b = (struct xpl_rpc_blob){.bytes = bytes, .len = len, .release = release, .arg = arg};
    atomic_init(&b->refs, 1);
    // gRPC only reads a message it sends.
    b->slice = grpc_slice_new_with_user_data((void *)(uintptr_t)bytes, len, destroy, b);
    return b;
}

struct xpl_rpc_blob *xpl_rpc_blob_take(uint8_t *bytes, size_t len) {
    return xpl_rpc_blob_wrap(bytes, len, free_bytes, bytes);
}

struct xpl_rpc_blob *xpl_rpc_blob_copy(xpl_bytes_t bytes) {
    uint8_t *const copy = xpl_sys_alloc(bytes.len ? bytes.len : 1);
    if (!copy) return NULL;
    if (bytes.len) memcpy(copy, bytes.ptr, bytes.len);
    struct xpl_rpc_blob *const b = xpl_rpc_blob_take(copy, bytes.len);
    if (!b) xpl_sys_free(copy);
    return b;
}

struct xpl_rpc_blob *xpl_rpc_blob_ref(struct xpl_rpc_blob *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void xpl_rpc_blob_unref(struct xpl_rpc_blob *b) {
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    grpc_slice_unref(b->slice);
}

xpl_bytes_t xpl_rpc_blob_get(const struct xpl_rpc_blob *b) {
    return (xpl_bytes_t){b->bytes, b->len};
}

grpc_slice xpl_rpc_blob_slice(const struct xpl_rpc_blob *b) {
    return grpc_slice_ref(b->slice);
}

bool xpl_rpc_only_slice(grpc_byte_buffer *bb, grpc_slice *ret) {
    grpc_byte_buffer_reader r;
    grpc_slice *first = NULL;
    if (!grpc_byte_buffer_reader_init(&r, bb)) return false;
    const bool only = grpc_byte_buffer_reader_peek(&r, &first) &&
                      GRPC_SLICE_LENGTH(*first) == grpc_byte_buffer_length(bb);
    if (only) *ret = grpc_slice_ref(*first);
    grpc_byte_buffer_reader_destroy(&r);
    return only;
}

size_t xpl_rpc_gather(grpc_byte_buffer *bb, uint8_t *to) {
    grpc_byte_buffer_reader r;
    size_t n = 0;
    if (!grpc_byte_buffer_reader_init(&r, bb)) return 0;
    for (grpc_slice *part; grpc_byte_buffer_reader_peek(&r, &part);) {
        memcpy(to + n, GRPC_SLICE_START_PTR(*part), GRPC_SLICE_LENGTH(*part));
        n += GRPC_SLICE_LENGTH(*part);
    }
    grpc_byte_buffer_reader_destroy(&r);
    return n;
}
