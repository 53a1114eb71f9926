// SPDX-License-Identifier: Apache-2.0
// Bodies of replies: bytes in one or two encodings, with the responses that send them.
#ifndef XPL_SERVER_HTTP_BODY_H_
#define XPL_SERVER_HTTP_BODY_H_

#include <microhttpd.h>

#include "base/buf.h"
#include "base/str.h"
#include "rpc/bytes.h"
#include "server/engine/cache.h"
#include "server/engine/tool_data.h"

struct xpl_arena;

enum { XPL_HTTP_PLAIN, XPL_HTTP_GZIP, XPL_HTTP_ENCODINGS };

// Which security headers a reply has.
enum xpl_http_policy { XPL_POLICY_XPROF, XPL_POLICY_WEB, XPL_POLICY_API, XPL_N_POLICIES };

struct xpl_http_header {
    const char *name;
    xpl_str_t value;
};

// A finished answer to GET: its bytes in one or two encodings, with the responses that send them.
// Immutable but for the count, and kept in the daemon's cache.
struct xpl_http_body {
    struct xpl_object object;
    unsigned status;
    enum xpl_http_policy policy;
    const char *type;                               // a constant
    struct xpl_rpc_blob *bytes[XPL_HTTP_ENCODINGS]; // GZIP may be NULL
    struct MHD_Response *response[XPL_HTTP_ENCODINGS];
    char etag[XPL_HTTP_ENCODINGS][24]; // quoted; "" for none
    uint64_t generation;               // of the catalogue for which it holds
    // Of a tool's answer, for the log: views of `text`.
    bool is_answer;
    size_t n_hosts;
    xpl_str_t tool, session, host;
    char text[];
};

struct xpl_http_body_options {
    unsigned status; // 0: 200
    enum xpl_http_policy policy;
    const char *type;
    bool gzip;       // also make the compressed form
    bool thorough;   // compress well rather than fast
    bool validators; // ETag and Cache-Control
    const struct xpl_http_header *headers;
    size_t n_headers;
    xpl_str_t tool, session, host; // empty unless it is a tool's answer
    size_t n_hosts;
    struct xpl_tool_data *answer;     // whose bytes these are, kept in the cache, too; or NULL
    const struct xpl_http_body *like; // has the same bytes: they are not compressed again
};
// Refers to `bytes`.  NULL when out of memory.  Any thread.
struct xpl_http_body *xpl_http_body_new(struct xpl_rpc_blob *bytes,
                                        const struct xpl_http_body_options *o);
// The same of the buffer's bytes, which the body owns then; the buffer is empty.
struct xpl_http_body *xpl_http_body_from_buf(struct xpl_buf *b,
                                             const struct xpl_http_body_options *o);
// The headers Xplaned-Warning of an answer; returns how many.  Texts live in `arena`; what finds no
// memory is left out.  Any thread.
enum { XPL_HTTP_WARNINGS = 9 };
size_t xpl_http_warnings(struct xpl_arena *arena, const struct xpl_tool_data *a,
                         struct xpl_http_header ret[XPL_HTTP_WARNINGS]);
// A response that sends `len` of the blob's bytes, which it refers to.  NULL when out of memory.
struct MHD_Response *xpl_http_blob_response(struct xpl_rpc_blob *blob, uint64_t from, uint64_t len);
// The headers that every reply of this policy has.  False when out of memory.
bool xpl_http_add_policy(struct MHD_Response *r, enum xpl_http_policy p);

#endif
