// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  The gateway's own state, which the files of this folder share.
#ifndef XPL_SERVER_HTTP_GATEWAY_H_
#define XPL_SERVER_HTTP_GATEWAY_H_

#include <microhttpd.h>
#include <pthread.h>

#include "base/net/accept.h"
#include "server/http/http.h"
#include "server/http/request.h"
#include "server/monitor/figures.h"

struct xpl_http_connection {
    struct xpl_http *http;
    struct xpl_http_engine *engine;
    struct xpl_http_connection *next, *prev;
    struct MHD_Connection *mhd;
    int fd;
    bool surplus; // over --http-connections
    size_t place; // of a surplus one
    struct xpl_peer peer;
    bool certified;       // its certificate was checked (--tls-client-ca)
    bool watched;         // by `poll`
    bool ended;           // the client sends no more
    uint64_t deadline_ms; // of the loop's clock; UINT64_MAX: none
    struct xpl_http_request *request;
    uv_poll_t poll; // for the client's end
};

enum {
    XPL_HTTP_ENGINES = 5, // one without TLS, and one for each certificate that is in use
    // Bounds on the places for connections over --http-connections, which are a quarter of it.
    XPL_HTTP_MIN_SURPLUS = 64,
    XPL_HTTP_MAX_SURPLUS = 256,
    XPL_HTTP_UI_FILES = 16,
    XPL_HTTP_PEM_FILES = 3,    // certificate, key, clients' CA
    XPL_HTTP_MAX_PROXIES = 32, // names of --http-host
    XPL_HTTP_MAX_LISTENERS = 8,
    XPL_HTTP_MAX_NAMES = XPL_HTTP_MAX_PROXIES + XPL_HTTP_MAX_LISTENERS
};

struct xpl_http_file_state {
    int64_t mtime_ns;
    uint64_t size, ino;
};

// What libmicrohttpd calls, and what this gateway's handles do (http.c).
struct xpl_http_handlers {
    MHD_AccessHandlerCallback request;
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection; // its argument is the engine
    void *(*uri)(void *http, const char *uri, struct MHD_Connection *m);
    void (*turn)(struct xpl_http *h);
    uv_close_cb closed; // data: the gateway
};

struct xpl_http {
    struct xpl_http_options options;
    struct xpl_http_parts parts;
    struct xpl_http_engine {
        struct xpl_http *http;
        struct MHD_Daemon *mhd; // NULL: not started, or stopped
        uv_poll_t poll;         // its epoll descriptor
        bool polled;            // until the handle is closed
        bool retired;           // its certificate was replaced: no new connections
        size_t n_connections;
    } engines[XPL_HTTP_ENGINES];
    struct xpl_http_engine *current[2]; // without and with TLS; NULL where no listener needs it
    struct xpl_http_handlers handlers;
    struct xpl_http_listener {
        struct xpl_http *http;
        int fd;
        bool tls, paused, polled;
        uv_poll_t poll;
    } listeners[XPL_HTTP_MAX_LISTENERS];
    size_t n_listeners;
    struct xpl_accept_reserve reserve;
    uv_idle_t again; // while libmicrohttpd has more to do at once
    uv_async_t wake; // something is in `done`
    unsigned open_handles;

    pthread_mutex_t mu;
    struct xpl_http_request *done; // finished by workers, newest first
    // For the list of sessions: those that wait, and the one whose list is being made.
    struct xpl_http_request *listings, *listing;

    struct xpl_http_connection *connections; // newest first
    size_t n_connections, n_active;          // active: has a request
    // A ring: a new surplus connection ends the one whose place it takes, the oldest.
    struct xpl_http_connection *surplus[XPL_HTTP_MAX_SURPLUS];
    size_t n_places, next_place;
    size_t n_surplus;  // not closed yet
    size_t form_bytes; // memory for bodies that are coming
    bool stopping, stopped, wake_open, ready, was_ready;
    struct xpl_http_stats stats; // without what n_connections and n_active say
    void (*on_stopped)(void *arg);
    void *on_stopped_arg;

    struct xpl_rpc_tokens *tokens;       // NULL without one
    char prefix[256];                    // "" or "/a/b"
    char base[2][4096];                  // LOGDIR: as given, and without links; "" where unknown
    char names[XPL_HTTP_MAX_NAMES][256]; // that Host may have, in lower case
    size_t n_names, n_proxies; // the first are those of --http-host, which Origin may have
    bool any_address;          // bound to all addresses: Host may be any IP address

    // Of the certificate in use, and of those that could not be used.
    struct xpl_http_file_state pem_states[XPL_HTTP_PEM_FILES], pem_bad[XPL_HTTP_PEM_FILES];
    unsigned bad_checks; // at the latter
    unsigned ticks;

    struct xpl_http_body *files[XPL_HTTP_UI_FILES]; // XProf's, as last read
    struct xpl_http_file_state file_states[XPL_HTTP_UI_FILES];
};

#endif
