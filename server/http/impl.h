// What the files of the HTTP gateway share; nobody else includes it.
#ifndef XPL_SERVER_HTTP_IMPL_H_
#define XPL_SERVER_HTTP_IMPL_H_

#include <microhttpd.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "rpc/bytes.h"
#include "server/http/http.h"
#include "server/metrics.h"

enum { XPL_HTTP_PLAIN, XPL_HTTP_GZIP, XPL_HTTP_ENCODINGS };

// ---- bodies (http_body.c) ----

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
    // Of answers to questions, for the log: views of `text`.
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
    xpl_str_t tool, session, host; // empty unless it is an answer
    size_t n_hosts;
    const struct xpl_http_body *like; // has the same bytes: they are not compressed again
};
// Refers to `bytes`.  NULL when out of memory.  Any thread.
struct xpl_http_body *xpl_http_body_new(struct xpl_rpc_blob *bytes,
                                        const struct xpl_http_body_options *o);
// Takes the buffer's bytes.
struct xpl_http_body *xpl_http_body_from_buf(struct xpl_buf *b,
                                             const struct xpl_http_body_options *o);
// A response that sends `len` of the blob's bytes, which it refers to.  NULL when out of memory.
struct MHD_Response *xpl_http_blob_response(struct xpl_rpc_blob *blob, uint64_t from, uint64_t len);
// The headers that every reply of this policy has.  False when out of memory.
bool xpl_http_add_policy(struct MHD_Response *r, enum xpl_http_policy p);

// ---- requests (http_request.c) ----

struct xpl_http_arg {
    xpl_str_t key, value;
};

struct xpl_http_connection;

struct xpl_http_request {
    struct xpl_http *http;
    struct MHD_Connection *mhd;
    struct xpl_http_connection *connection;
    struct xpl_http_request *next_done;
    struct xpl_arena arena;
    uint64_t began_ns;
    bool seen;    // the handler was called before
    bool refused; // answered before its body arrived
    bool post;    // else GET or HEAD
    bool head;
    bool gzip;      // the client accepts it
    bool mounted;   // below /data/plugin/profile, where XProf's interface lives
    bool waiting;   // suspended, until it comes back in the done list
    bool gone;      // nobody reads the reply
    xpl_str_t path; // decoded, absolute, below --http-prefix and /data/plugin/profile
    struct xpl_http_arg *args;
    size_t n_args;

    // While it waits:
    void (*work)(struct xpl_http_request *r);              // on a worker
    enum MHD_Result (*finish)(struct xpl_http_request *r); // on the loop
    void (*release)(struct xpl_http_request *r);           // of what `data` refers to, or NULL
    struct xpl_ticket *ticket;
    uint64_t capture_id; // 0: none
    void *data;          // of the route that waits, in `arena`
    struct xpl_http_body *body;
    bool keep; // `body` may be found again by the request's URI

    size_t n_uri;
    char uri[]; // as it came: path and query, NUL-terminated
};

// Reads path and arguments from the URI; false when the URI is malformed (400) or memory is out.
bool xpl_http_request_parse(struct xpl_http_request *r);
// First value of an argument; an empty string without ptr when it is absent.
xpl_str_t xpl_http_arg(const struct xpl_http_request *r, const char *key);
xpl_str_t xpl_http_header(const struct xpl_http_request *r, const char *name);
bool xpl_http_accepts_gzip(xpl_str_t accept_encoding);
// Percent-decodes `in` (and '+' when `form`), in `arena`.  False: malformed, a NUL, or no memory.
bool xpl_http_decode(xpl_str_t in, bool form, struct xpl_arena *arena, xpl_str_t *ret);
// "HOST", "HOST:PORT", "[V6]:PORT" without the port and the brackets; false when malformed.
bool xpl_http_host_name(xpl_str_t host, xpl_str_t *ret);
enum xpl_http_range { XPL_RANGE_NONE, XPL_RANGE_OK, XPL_RANGE_BAD };
// One range of bytes.  Several are treated as none, as RFC 9110 allows.
enum xpl_http_range xpl_http_range(xpl_str_t header, uint64_t size, uint64_t *ret_from,
                                   uint64_t *ret_len);
// Whether a list of entity tags ("*" too) names either of the body's.
bool xpl_http_etag_listed(xpl_str_t list, const struct xpl_http_body *b);

// ---- replies (http_reply.c) ----

// Sends a body: whole, a range, or 304.  Gives the caller's reference up.
enum MHD_Result xpl_http_reply_body(struct xpl_http_request *r, struct xpl_http_body *b);
// A small reply.  `type` is a constant; `retry_s` 0: no Retry-After.
enum MHD_Result xpl_http_reply(struct xpl_http_request *r, unsigned status,
                               enum xpl_http_policy policy, const char *type, xpl_str_t text,
                               unsigned retry_s);
enum MHD_Result xpl_http_reply_text(struct xpl_http_request *r, unsigned status, const char *fmt,
                                    ...) __attribute__((format(printf, 3, 4)));
// {"error": ...} for our own pages.
enum MHD_Result xpl_http_reply_api_error(struct xpl_http_request *r, const struct xpl_error *err,
                                         int64_t retry_ms);
enum MHD_Result xpl_http_redirect(struct xpl_http_request *r, const char *location);
unsigned xpl_http_status_of(xpl_status_t code);

// ---- who may ask (http_gate.c) ----

enum xpl_http_check_access {
    XPL_GATE_OPEN,
    XPL_GATE_HOST,
    XPL_GATE_ORIGIN,
    XPL_GATE_TOKEN,
    XPL_GATE_METHOD,
    XPL_GATE_MALFORMED
};
// Checks Host, Origin, token and method, and reads the URI.
enum xpl_http_check_access xpl_http_admit(struct xpl_http_request *r, const char *method,
                                          const char *version);
enum MHD_Result xpl_http_reject(struct xpl_http_request *r, enum xpl_http_check_access why);
// Reads prefix and names of the options; LOGDIR's paths.
xpl_status_t xpl_http_setup(struct xpl_http *h, struct xpl_error *err) XPL_NODISCARD;

// ---- waiting (http.c) ----

// A reply of so many bytes begins: a client that does not read it in time is dropped.
void xpl_http_sending(struct xpl_http_request *r, uint64_t bytes);
// 503 with Retry-After.
enum MHD_Result xpl_http_busy(struct xpl_http_request *r);

// Suspends the request and calls work(r) on a worker, then finish(r) on the loop, which replies.
// False when all is busy: nothing happened.
bool xpl_http_defer(struct xpl_http_request *r, void (*work)(struct xpl_http_request *),
                    enum MHD_Result (*finish)(struct xpl_http_request *)) XPL_NODISCARD;
// For a route that starts its own work: suspends.  `finish` follows xpl_http_done.
void xpl_http_wait(struct xpl_http_request *r,
                   enum MHD_Result (*finish)(struct xpl_http_request *));
// The work is over.  Any thread, once.
void xpl_http_done(struct xpl_http_request *r);
// From `finish`: replies with r->body or an empty 500.
enum MHD_Result xpl_http_result(struct xpl_http_request *r);
void xpl_http_remember(struct xpl_http_request *r, struct xpl_http_body *b);

// ---- routes ----

enum MHD_Result xpl_http_route(struct xpl_http_request *r);       // http_route.c
enum MHD_Result xpl_http_route_api(struct xpl_http_request *r);   // http_api.c
enum MHD_Result xpl_http_route_xprof(struct xpl_http_request *r); // http_xprof.c
enum MHD_Result xpl_http_route_web(struct xpl_http_request *r);   // http_files.c
enum MHD_Result xpl_http_capture(struct xpl_http_request *r);     // http_capture.c
// Nobody waits for its capture any more; does nothing when it has none.
void xpl_http_capture_cancel(struct xpl_http_request *r);
// One of XProf's files.
bool xpl_http_is_ui_file(const char *name);
enum MHD_Result xpl_http_reply_ui(struct xpl_http_request *r, const char *name);

// A question to the engine, by both dialects (http_tool.c).
enum xpl_http_dialect { XPL_DIALECT_XPROF, XPL_DIALECT_API };
struct xpl_http_ask {
    enum xpl_http_dialect dialect;
    bool csv;
    xpl_str_t session, tool;
    const xpl_str_t *hosts;
    size_t n_hosts;
    const struct xpl_option *options;
    size_t n_options;
};
enum MHD_Result xpl_http_ask(struct xpl_http_request *r, const struct xpl_http_ask *a);

// The table of a tool's answer as CSV, as XProf writes it (http_csv.c).  INVALID_ARGUMENT when the
// answer is no table.
xpl_status_t xpl_http_csv(xpl_str_t json, struct xpl_arena *scratch, struct xpl_buf *out,
                          struct xpl_error *err) XPL_NODISCARD;

// ---- the gateway ----

enum {
    XPL_HTTP_UI_FILES = 16,
    XPL_HTTP_MAX_PROXIES = 32, // names of --http-host
    XPL_HTTP_MAX_LISTENERS = 8,
    XPL_HTTP_MAX_NAMES = XPL_HTTP_MAX_PROXIES + XPL_HTTP_MAX_LISTENERS
};

struct xpl_http {
    struct xpl_http_options options;
    struct xpl_http_parts parts;
    struct xpl_http_engine {
        struct xpl_http *http;
        struct MHD_Daemon *mhd;
        uv_poll_t poll; // its epoll descriptor
    } engines[2];       // without and with TLS; mhd is NULL where no listener wants it
    struct xpl_http_listener {
        struct xpl_http *http;
        int fd;
        bool tls, paused, polled;
        uv_poll_t poll;
    } listeners[XPL_HTTP_MAX_LISTENERS];
    size_t n_listeners;
    uv_idle_t again; // while libmicrohttpd has more to do at once
    uv_async_t wake; // something is in `done`
    unsigned open_handles;

    pthread_mutex_t mu;
    struct xpl_http_request *done; // finished by workers, newest first

    struct xpl_http_connection *connections; // newest first
    size_t n_connections, n_active;          // active: has a request
    bool stopping, stopped, wake_open;
    void (*on_stopped)(void *arg);
    void *on_stopped_arg;

    char *token;                         // NULL without one
    char prefix[256];                    // "" or "/a/b"
    char base[2][4096];                  // LOGDIR: as given, and without links; "" where unknown
    char names[XPL_HTTP_MAX_NAMES][256]; // that Host may have, in lower case
    size_t n_names, n_proxies; // the first are those of --http-host, which Origin may have
    bool any_address;          // bound to all addresses: Host may be any IP address

    struct xpl_http_body *files[XPL_HTTP_UI_FILES]; // XProf's, as last read
    struct xpl_http_file_state {
        int64_t mtime_ns;
        uint64_t size, ino;
    } file_states[XPL_HTTP_UI_FILES];
};

#endif
