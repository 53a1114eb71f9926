// SPDX-License-Identifier: Apache-2.0
// Shared, immutable bytes of answers.  A reply is a small header, copied, and a blob that many
// replies and a cache share: its bytes go to the socket from where they lie.
//
// Any thread may ref, unref and read a blob at any time.
#ifndef XPL_RPC_BYTES_H_
#define XPL_RPC_BYTES_H_

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct xpl_rpc_blob;

// Wraps `len` bytes that came from xpl_sys_alloc (xpl_buf_take) and frees them with the last
// reference.  NULL on OOM: the bytes are then still the caller's.
struct xpl_rpc_blob *xpl_rpc_blob_take(uint8_t *bytes, size_t len)
    __attribute__((warn_unused_result));
// As above for bytes of any origin: `release(arg)` is called once, on whatever thread drops the
// last reference, which may be one of gRPC's own.  It must not block and must not answer calls.
struct xpl_rpc_blob *xpl_rpc_blob_wrap(const void *bytes, size_t len, void (*release)(void *arg),
                                       void *arg) __attribute__((warn_unused_result));
// Copies.  NULL on OOM.
struct xpl_rpc_blob *xpl_rpc_blob_copy(xpl_bytes_t bytes) __attribute__((warn_unused_result));

struct xpl_rpc_blob *xpl_rpc_blob_ref(struct xpl_rpc_blob *b);
// NULL is fine.  gRPC may hold the bytes longer, for replies it has not written yet.
void xpl_rpc_blob_unref(struct xpl_rpc_blob *b);

// Valid as long as the caller's reference.
xpl_bytes_t xpl_rpc_blob_get(const struct xpl_rpc_blob *b);

#endif
