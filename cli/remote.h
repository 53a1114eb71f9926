// SPDX-License-Identifier: Apache-2.0
// What the commands that call a daemon share.
#ifndef XPL_CLI_REMOTE_H_
#define XPL_CLI_REMOTE_H_

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/library/library.h"

enum { XPL_REMOTE_TOKEN = 4096 };

// Opens the client that the flags describe; NULL after saying why on stderr.
xpl_client *xpl_remote_open(const struct xpl_args *a);
// TLS, token and time limit as the flags have them; `token` has room for the token, whatever its
// length. False after saying why on stderr.
bool xpl_remote_options(const struct xpl_args *a, char token[XPL_REMOTE_TOKEN],
                        xpl_client_options *ret);
// For XPL_AUTO; NULL is fine.
static inline void xpl_remote_close(xpl_client **c) {
    if (*c) xpl_client_close(*c);
}
static inline void xpl_remote_drop(xpl_answer **a) {
    if (*a) xpl_answer_free(*a);
}
// Says on stderr why a call failed, and what may help; returns the exit status of xpl_failed.
int xpl_remote_failed(const xpl_result *r);
// The request of `tool` on `session` with the flags' hosts and options.
xpl_tool_request xpl_remote_request(const struct xpl_args *a, const char *tool,
                                    const char *session);
// Says on stderr what is wrong with an answer's data.
void xpl_remote_warn(const xpl_answer *a);

// Writes a listing as text, and frees it.  Returns the exit status.
struct xpl_table;
int xpl_show_table(const struct xpl_args *a, struct xpl_table *t);
// "name":"value" of JSON; NULL is empty.
void xpl_show_field(struct xpl_buf *b, const char *name, const char *value);
// Closes *b, a list in JSON, writes it as JSON or CSV, and frees it.  Returns the exit status.
int xpl_show_listing(const struct xpl_args *a, struct xpl_buf *b);

#endif
