// SPDX-License-Identifier: Apache-2.0
// xplaned: see --help.
#include "server/config.h"
#include "server/daemon.h"

int main(int argc, char **argv) {
    struct xpl_config config;
    int status = 2;
    switch (xpl_config_load(argc, argv, &config)) {
        case XPL_CONFIG_RUN: status = xpl_daemon_run(&config, argc, argv); break;
        case XPL_CONFIG_HELP: status = 0; break;
        case XPL_CONFIG_USAGE: break;
    }
    xpl_config_fini(&config);
    return status;
}
