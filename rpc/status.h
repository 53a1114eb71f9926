// SPDX-License-Identifier: Apache-2.0
// Errors as gRPC clients see them: a code, a message, and details for programs in the trailer
// grpc-status-details-bin (google.rpc.Status with ErrorInfo and RetryInfo).
#ifndef XPL_RPC_STATUS_H_
#define XPL_RPC_STATUS_H_

#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

// Clients allow 8 KiB of headers, and the text travels twice, encoded.
enum { XPL_RPC_MAX_MESSAGE = 1024, XPL_RPC_MAX_ERROR_INFO = 1536 };

struct xpl_rpc_failure {
    xpl_status_t code;  // not XPL_OK
    xpl_str_t message;  // for users; invalid UTF-8 is replaced, a too long text is cut
    int64_t retry_ms;   // RetryInfo: try again after; negative: none
    const char *reason; // ErrorInfo.reason, UPPER_SNAKE_CASE, or NULL for no ErrorInfo
    size_t n_metadata;  // ErrorInfo.metadata, pairs of key and value
    const xpl_str_t (*metadata)[2];
};

// Appends the google.rpc.Status.  Check b->failed.
void xpl_rpc_status_encode(struct xpl_buf *b, const struct xpl_rpc_failure *f);

// Error details in the trailer, for a client.  Views into `bytes`.
struct xpl_rpc_details {
    int64_t retry_ms; // negative: none
    xpl_str_t reason; // empty: none
    xpl_str_t domain;
};
// Reads a google.rpc.Status; unknown details are skipped.  False when it is malformed.
bool xpl_rpc_status_decode(xpl_bytes_t bytes, struct xpl_rpc_details *ret);

// Copies text for use in a status: invalid UTF-8 becomes '?', at most `size - 1` bytes, never half
// a character, terminated.  Returns the length.
size_t xpl_rpc_status_text(char *buf, size_t size, xpl_str_t text);

#endif
