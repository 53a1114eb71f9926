// SPDX-License-Identifier: Apache-2.0
#include "server/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void xpl_notify(const char *state) {
    const char *const path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path) return;
    memcpy(to.sun_path, path, strlen(path));
    if (path[0] == '@') to.sun_path[0] = 0; // abstract
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    const socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    // A manager that does not listen is no reason to fail.
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len);
    (void)close(fd);
}
