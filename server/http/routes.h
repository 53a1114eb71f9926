// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  The routes: each replies, or suspends the request and replies later.  On
// the loop's thread.
#ifndef XPL_SERVER_HTTP_ROUTES_H_
#define XPL_SERVER_HTTP_ROUTES_H_

#include "server/engine/engine.h"
#include "server/http/request.h"

enum MHD_Result xpl_http_route(struct xpl_http_request *r);       // route.c
enum MHD_Result xpl_http_route_api(struct xpl_http_request *r);   // api.c
enum MHD_Result xpl_http_route_xprof(struct xpl_http_request *r); // xprof/xprof.c
enum MHD_Result xpl_http_route_web(struct xpl_http_request *r);   // files.c
enum MHD_Result xpl_http_compare(struct xpl_http_request *r);     // joint.c
enum MHD_Result xpl_http_history(struct xpl_http_request *r);     // joint.c
enum MHD_Result xpl_http_capture(struct xpl_http_request *r);     // capture.c
// One of XProf's files (files.c).
bool xpl_http_is_ui_file(const char *name);
enum MHD_Result xpl_http_reply_ui(struct xpl_http_request *r, const char *name);

// A tool's answer, in the form of XProf's routes or of our own (tool.c).
enum xpl_http_dialect { XPL_DIALECT_XPROF, XPL_DIALECT_API };
struct xpl_http_tool_request {
    enum xpl_http_dialect dialect;
    bool csv;
    xpl_str_t session, tool;
    const xpl_str_t *hosts;
    size_t n_hosts;
    const struct xpl_option *options;
    size_t n_options;
};
enum MHD_Result xpl_http_answer_tool(struct xpl_http_request *r,
                                     const struct xpl_http_tool_request *q);

#endif
