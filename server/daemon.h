// SPDX-License-Identifier: Apache-2.0
// The daemon: order of start and stop.
#ifndef XPL_SERVER_DAEMON_H_
#define XPL_SERVER_DAEMON_H_

#include "server/config.h"

// Runs until SIGTERM or SIGINT.  argc and argv are read again on SIGHUP.  Returns the exit status.
int xpl_daemon_run(struct xpl_config *config, int argc, char **argv);

#endif
