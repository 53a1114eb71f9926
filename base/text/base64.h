// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648), as it is written.
#ifndef XPL_BASE_TEXT_BASE64_H_
#define XPL_BASE_TEXT_BASE64_H_

#include "base/buf.h"
#include "base/str.h"

// Appends the letters of section 4, the last four of them filled up by "=".
void xpl_base64_put(struct xpl_buf *b, xpl_bytes_t s);
// Appends the URL-safe form of section 5, without padding.
void xpl_base64_put_url(struct xpl_buf *b, xpl_bytes_t s);

#endif
