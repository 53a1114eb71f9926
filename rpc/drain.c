// SPDX-License-Identifier: Apache-2.0
// Whether the connections of a server that is shutting down have delivered all that was sent.
#include <dirent.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "rpc/impl.h"

static bool is_connection(int fd) {
    int value = 0;
    socklen_t len = sizeof value;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len) != 0 || value != SOCK_STREAM)
        return false;
    len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &len) == 0 && !value;
}

// True when the peers' kernels have all that was sent over any connection of this process.  gRPC
// does not expose its sockets, so all sockets of the process are checked.
static bool all_delivered(void) {
    DIR *const d = opendir("/proc/self/fd");
    bool all = d != NULL;
    for (struct dirent *e; all && (e = readdir(d)) != NULL;) {
        const int fd = atoi(e->d_name); // 0 for "." and "..": standard input
        int unsent = 0;
        if (is_connection(fd) && ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0) all = false;
    }
    if (d) (void)closedir(d);
    return all;
}

bool xpl_rpc_server_is_drained(const struct xpl_rpc_server *s) {
    return atomic_load(&s->open) == 0 && all_delivered();
}
