// SPDX-License-Identifier: Apache-2.0
// Private to server/http/xprof.  What the files of XProf's routes share.
#ifndef XPL_SERVER_HTTP_XPROF_XPROF_H_
#define XPL_SERVER_HTTP_XPROF_XPROF_H_

#include "server/http/routes.h"

enum { XPL_HTTP_XPROF_MAX_REPLY = 256 << 20 }; // bytes, of lists of names

// ---- runs.c; all on the loop ----

// The session of argument `run`, as session_path or run_path restrict it; NULL when there is none.
const struct xpl_session *xpl_http_find_run(struct xpl_http_request *r,
                                            const struct xpl_snapshot *snap);
// The session of argument session_path, with its name, a view of the snapshot; NULL when there is
// none.
const struct xpl_session *xpl_http_find_session(struct xpl_http_request *r,
                                                const struct xpl_snapshot *snap,
                                                xpl_str_t *ret_name);
// What follows the last slash of a path.
xpl_str_t xpl_http_last_part(xpl_str_t path);
// The route /runs: the names of all sessions, the last first.
enum MHD_Result xpl_http_runs(struct xpl_http_request *r);

// ---- json.c ----

// A string as json.dumps writes it: ASCII alone.
void xpl_http_put_py_str(struct xpl_buf *b, xpl_str_t s);
// Makes r->body of the buffer's bytes, which it owns then; NULL when out of memory.  Any thread.
void xpl_http_xprof_body(struct xpl_http_request *r, struct xpl_buf *b, const char *type);
// Replies with the buffer's bytes, which it owns then.  On the loop.
enum MHD_Result xpl_http_reply_py_json(struct xpl_http_request *r, struct xpl_buf *b);

// ---- scan.c: routes that scan profiles, on a worker ----

enum MHD_Result xpl_http_run_tools(struct xpl_http_request *r);
enum MHD_Result xpl_http_module_list(struct xpl_http_request *r);
enum MHD_Result xpl_http_generate_cache(struct xpl_http_request *r);

#endif
