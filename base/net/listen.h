// SPDX-License-Identifier: Apache-2.0
// Listening TCP sockets by their text.
#ifndef XPL_BASE_NET_LISTEN_H_
#define XPL_BASE_NET_LISTEN_H_

#include <netdb.h>
#include <stdbool.h>

#include "base/status.h"

// "HOST:PORT" or "[V6]:PORT": copies the host and finds the port, a number up to 65535.
// INVALID_ARGUMENT with a sentence that begins with `text`.
xpl_status_t xpl_listen_split(const char *text, char *host, size_t size, const char **ret_port,
                              struct xpl_error *err) XPL_NODISCARD;
// A listening socket: not blocking, closed on exec.  `dual`: an IPv6 socket of all addresses takes
// IPv4, too.  -1 with errno.
int xpl_listen_open(const struct addrinfo *a, bool dual);

#endif
