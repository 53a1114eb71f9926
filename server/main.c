// SPDX-License-Identifier: Apache-2.0
// xplaned: see --help.
#include <stdio.h>

#include "base/std_fds.h"
#include "base/text/terminal.h"
#include "rpc/listen/announced.h"
#include "rpc/listen/guarded.h"
#include "rpc/listen/hooks.h"
#include "rpc/server.h"
#include "server/config.h"
#include "server/daemon.h"

int main(int argc, char **argv) {
    struct xpl_config config;
    int status = 2;
    xpl_std_fds_open();
    xpl_terminal_guard();
    xpl_fd_limit_raise(); // clients, hosts of captures and mapped files take one each
    switch (xpl_config_load(argc, argv, &config)) {
        case XPL_CONFIG_RUN:
            if (!xpl_hooks_are_bound()) {
                (void)fprintf(stderr, "xplaned: linked wrongly: gRPC does not use hooks.c\n");
                status = 1;
                break;
            }
            xpl_rpc_guarded_enable(XPL_RPC_MAX_REQUEST);
            xpl_rpc_announced_enable();
            status = xpl_daemon_run(&config, argc, argv);
            break;
        case XPL_CONFIG_HELP: status = xpl_std_out_end("xplaned", 0, false); break;
        case XPL_CONFIG_USAGE: break;
    }
    xpl_config_fini(&config);
    return status;
}
