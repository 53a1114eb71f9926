// SPDX-License-Identifier: Apache-2.0
// The HTTP gateway: XProf's routes, our pages and their JSON, answered by the engine that answers
// gRPC.  libmicrohttpd reads and writes HTTP; everything of it runs on the loop's thread.
// Routes, headers, limits and errors: docs/http.md.
#ifndef XPL_SERVER_HTTP_HTTP_H_
#define XPL_SERVER_HTTP_HTTP_H_

#include "base/status.h"
#include "server/loop.h"
#include "server/monitor/server_stats.h"

struct xpl_http;

struct xpl_http_options { // strings are borrowed and must outlive the gateway; "" for none
    const char *listen;   // comma-separated HOST:PORT
    const char *hosts;    // comma-separated further names for Host and Origin
    const char *prefix;   // path below which a proxy mounts us, such as "/xprof"
    const char *ui_dir;   // XProf's static files
    const char *src_prefix;
    const char *tls_cert, *tls_key; // for listeners that are not loopback
    const char *client_ca;          // clients must show a certificate of it, then also on loopback
    bool insecure;
    size_t max_connections; // 7/8 of them for peers from elsewhere; further ones get 503
    size_t per_address;     // connections of one peer from elsewhere; 0: no limit
    size_t memory_limit;
    uint64_t idle_ms; // time for the next whole request to arrive
};

struct xpl_history;
struct xpl_labels;
struct xpl_newest;

struct xpl_http_parts { // borrowed
    struct xpl_loop *loop;
    struct xpl_engine *engine;
    struct xpl_catalogue *catalogue;
    struct xpl_labels *labels;   // NULL: none
    struct xpl_history *history; // the schedules' sessions
    struct xpl_newest *newest;   // figures of labels; NULL: none
    struct xpl_cache *cache;
    struct xpl_pool *pool;
    struct xpl_metrics *metrics;
    struct xpl_capture_jobs *captures;
    struct xpl_schedules *schedules;
    struct xpl_statements *statements;
    struct xpl_store *store;
    bool needs_store; // what this daemon does is in vain while `store` takes nothing
    const struct xpl_server_parts *stats;
};

// Listens and serves as soon as the loop runs.  FAILED_PRECONDITION, INVALID_ARGUMENT or
// UNAVAILABLE with a sentence.  On the loop's thread, as all that follow.
xpl_status_t xpl_http_new(const struct xpl_http_options *o, const struct xpl_http_parts *parts,
                          struct xpl_http **ret, struct xpl_error *err) XPL_NODISCARD;
// The tokens that clients must send, by the text of a token file (rpc/credentials.h); "" for none.
xpl_status_t xpl_http_set_tokens(struct xpl_http *h, xpl_str_t text, struct xpl_error *err)
    XPL_NODISCARD;
// From now on /readyz says so; the daemon calls it when all of its parts run, and when it stops.
void xpl_http_set_ready(struct xpl_http *h, bool ready);
// New HTTPS connections get the certificate, its key and the clients' CA as the files have them
// now; those that are open keep theirs until their next request is answered.  Nothing where the
// files did not change, or no listener needs them; after an error HTTPS goes on as before.  The
// gateway also checks the files by itself every few seconds.
xpl_status_t xpl_http_renew_certificate(struct xpl_http *h, struct xpl_error *err) XPL_NODISCARD;
// Whether the files are a certificate and its key; FAILED_PRECONDITION names what is wrong.
xpl_status_t xpl_http_check_certificate(const char *cert, const char *key, struct xpl_error *err)
    XPL_NODISCARD;
// Drops slow clients; the daemon calls it a few times a second.
void xpl_http_tick(struct xpl_http *h);
// No new requests.  When the last one under way is answered, all handles are closed and done(arg)
// is called.
void xpl_http_stop(struct xpl_http *h, void (*done)(void *arg), void *arg);
// After xpl_http_stop: requests under way are given up.
void xpl_http_cancel(struct xpl_http *h);
// After uv_run has returned (or, when the loop never ran, after xpl_http_stop and a run of it).
// No worker may run any more.  NULL is fine.
void xpl_http_free(struct xpl_http *h);

#endif
