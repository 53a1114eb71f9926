// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  Requests that wait for a worker, and the time limits of connections.  On
// the loop's thread but for xpl_http_done.
#ifndef XPL_SERVER_HTTP_WAIT_H_
#define XPL_SERVER_HTTP_WAIT_H_

#include "base/status.h"
#include "server/http/request.h"

// Suspends the request and calls work(r) on a worker, then finish(r) on the loop, which replies.
// False when all is busy: nothing happened.
bool xpl_http_defer(struct xpl_http_request *r, void (*work)(struct xpl_http_request *),
                    enum MHD_Result (*finish)(struct xpl_http_request *)) XPL_NODISCARD;
// For a route that starts its own work: suspends.  `finish` follows xpl_http_done.
void xpl_http_wait(struct xpl_http_request *r,
                   enum MHD_Result (*finish)(struct xpl_http_request *));
// The work is over.  Any thread, once.
void xpl_http_done(struct xpl_http_request *r);
// Resumes the requests whose work is over; libmicrohttpd then calls their handler again.
void xpl_http_resume_done(struct xpl_http *h);
// Nobody waits for the request's reply any more: cancels its work.  It still ends by xpl_http_done.
void xpl_http_give_up(struct xpl_http_request *r);

// Notices the client's end from now on: libmicrohttpd misses an end that arrives together with
// data, and does not watch connections that wait.
void xpl_http_watch(struct xpl_http_connection *c);
// Whether the client has ended its side, and no request of it is to be answered.
bool xpl_http_is_over(const struct xpl_http_connection *c);
// Ends a connection, which libmicrohttpd then closes.  A surplus one that has not sent a request
// gets a 503 first, except over TLS.
void xpl_http_end(struct xpl_http_connection *c);
#define XPL_HTTP_TOO_MANY "too many connections (--http-connections); try again soon"

// The loop's clock.
uint64_t xpl_http_now_ms(const struct xpl_http *h);
// The connection ends at this time of the loop's clock.  Ignored for a surplus connection, which
// keeps its first deadline.
void xpl_http_set_deadline(struct xpl_http_connection *c, uint64_t deadline_ms);
// A reply of so many bytes begins: a client that does not read it in time is dropped.
void xpl_http_sending(struct xpl_http_request *r, uint64_t bytes);

#endif
