// SPDX-License-Identifier: Apache-2.0
// Requests: path, arguments, the headers that need reading, and what a request that waits is
// waiting for.  All of it on the loop's thread unless a function says otherwise.
#ifndef XPL_SERVER_HTTP_REQUEST_H_
#define XPL_SERVER_HTTP_REQUEST_H_

#include <microhttpd.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/str.h"
#include "rpc/credentials.h"
#include "server/http/body.h"

struct xpl_http;
struct xpl_http_connection;
struct xpl_ticket;

struct xpl_http_arg {
    xpl_str_t key, value;
};

// Headers that every request is searched for: found in one pass over all of them.
enum xpl_http_known {
    XPL_HEADER_HOST,
    XPL_HEADER_ORIGIN,
    XPL_HEADER_REFERER,
    XPL_HEADER_USER_AGENT,
    XPL_HEADER_SITE, // Sec-Fetch-Site
    XPL_HEADER_OURS, // Xplaned-Request
    XPL_HEADER_CONTENT_LENGTH,
    XPL_HEADER_TRANSFER_ENCODING,
    XPL_HEADER_ACCEPT_ENCODING,
    XPL_N_HEADERS,
};

struct xpl_http_request {
    struct xpl_http *http;
    struct MHD_Connection *mhd;
    struct xpl_http_connection *connection;
    struct xpl_http_request *next_done;
    struct xpl_http_request *next_alike; // gets the same body (api.c)
    struct xpl_arena arena;
    uint64_t began_ns;
    bool seen;       // the handler was called before
    bool refused;    // answered before its body arrived; the connection is closed
    bool complete;   // its body arrived
    unsigned method; // its position in xpl_http_stats.replies
    bool post;       // else GET or HEAD
    bool head;
    bool gzip;                        // the client accepts it
    bool mounted;                     // below /data/plugin/profile, where XProf's interface lives
    bool waiting;                     // suspended, until it comes back in the done list
    atomic_bool gone;                 // no client reads the reply; workers check it
    struct xpl_rpc_identity identity; // by its token
    xpl_str_t known[XPL_N_HEADERS];   // the first of each; without ptr where there is none
    xpl_str_t path; // decoded, absolute, below --http-prefix and /data/plugin/profile
    struct xpl_http_arg *args;
    size_t n_args;
    bool too_many; // arguments: they were not read
    // Arguments in the body of a POST, as they have come so far: behind those of the URI. form_size
    // bytes were announced, and there is room for form_room; NULL where the body is none.
    char *form;
    size_t n_form, form_room, form_size;
    size_t form_bytes; // of memory, while it comes
    bool no_room;      // no memory for them

    // While it waits:
    void (*work)(struct xpl_http_request *r);              // on a worker
    enum MHD_Result (*finish)(struct xpl_http_request *r); // on the loop
    void (*cancel)(struct xpl_http_request *r);            // on the loop: nobody waits; or NULL
    void (*release)(struct xpl_http_request *r);           // of what `data` refers to, or NULL
    struct xpl_ticket *ticket;                             // of the engine; NULL: none
    uint64_t capture_id;                                   // 0: none
    void *data;                                            // of the route that waits, in `arena`
    struct xpl_http_body *body;
    bool keep; // `body` may be found again by the request's URI

    size_t n_uri;
    char uri[]; // as it came: path and query, NUL-terminated
};

// Reads path and arguments from the URI, whose path may begin with `prefix`, and from the form.
// False when they are malformed (400) or memory is out.
bool xpl_http_request_parse(struct xpl_http_request *r, const char *prefix);
// Reads the headers into `known`.  NULL, or what is wrong with those that say where the request
// ends: what we and a proxy before us could read in different ways, so that one would take for a
// request what is a body to the other.  `method` and `version` are libmicrohttpd's own, in the
// buffer that has the headers.
const char *xpl_http_read_headers(struct xpl_http_request *r, const char *method,
                                  const char *version);
// Whether the body of a POST is arguments (application/x-www-form-urlencoded).
bool xpl_http_is_form(const struct xpl_http_request *r);
// First value of an argument; an empty string without ptr when it is absent.
xpl_str_t xpl_http_arg(const struct xpl_http_request *r, const char *key);
xpl_str_t xpl_http_header(const struct xpl_http_request *r, const char *name);
bool xpl_http_accepts_gzip(xpl_str_t accept_encoding);
// "HOST", "HOST:PORT", "[V6]:PORT" without the port and the brackets; false when malformed.
bool xpl_http_host_name(xpl_str_t host, xpl_str_t *ret);
enum xpl_http_range { XPL_RANGE_NONE, XPL_RANGE_OK, XPL_RANGE_BAD };
// One range of bytes.  Several are treated as none, as RFC 9110 allows.
enum xpl_http_range xpl_http_range(xpl_str_t header, uint64_t size, uint64_t *ret_from,
                                   uint64_t *ret_len);
// Whether a list of entity tags ("*" too) names either of the body's.
bool xpl_http_etag_listed(xpl_str_t list, const struct xpl_http_body *b);

#endif
