// SPDX-License-Identifier: Apache-2.0
// The proof of an account of Google's: a token signed with its key (a JWT with RS256: RFC 7519; RFC
// 7518, 3.3), which its service exchanges for another one (RFC 7523, 2.1).
#ifndef XPL_STORAGE_OBJECTS_CREDENTIALS_ASSERTION_H_
#define XPL_STORAGE_OBJECTS_CREDENTIALS_ASSERTION_H_

#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

struct xpl_assertion {
    const char *key, *key_id; // in PEM; its name, which may be ""
    const char *issuer, *audience, *scope;
    int64_t now_s; // since 1970; it is good for an hour from then
};

// Appends it.  DATA_LOSS for a key that is none of RSA, of at least 2048 bits and without a
// password; FAILED_PRECONDITION without libcrypto; RESOURCE_EXHAUSTED.  Errors say nothing of it.
xpl_status_t xpl_assertion_put(const struct xpl_assertion *a, struct xpl_buf *ret,
                               struct xpl_error *err) XPL_NODISCARD;

#endif
