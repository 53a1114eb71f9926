// Private to server/http.  The warnings of an answer, for headers.  Any thread.
#ifndef XPL_SERVER_HTTP_WARNINGS_H_
#define XPL_SERVER_HTTP_WARNINGS_H_

#include "server/engine/engine.h"

struct xpl_http_warning { // views of the answer
    xpl_str_t host, text; // host "": not about one host
};

// Puts the first warnings of the answer into ret[0..max); returns how many there are in all.
size_t xpl_http_get_warnings(const struct xpl_tool_data *a, struct xpl_http_warning *ret,
                             size_t max);

#endif
