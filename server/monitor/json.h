// SPDX-License-Identifier: Apache-2.0
// The daemon's statistics as JSON.  Any thread.
#ifndef XPL_SERVER_MONITOR_JSON_H_
#define XPL_SERVER_MONITOR_JSON_H_

#include "base/buf.h"
#include "server/monitor/server_stats.h"

// Appends one object.  Its members are those of xplaned.v1.ServerStats by name and in order
// (tests/unit/server/test_server_stats.c compares them); numbers are numbers.
void xpl_server_stats_put_json(struct xpl_buf *b, const struct xpl_server_stats *s);

#endif
