// SPDX-License-Identifier: Apache-2.0
#include "base/net/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 512 };

xpl_status_t xpl_listen_split(const char *text, char *host, size_t size, const char **ret_port,
                              struct xpl_error *err) {
    const char *const colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    const char *from = text;
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') from++, n -= 2;
    if (!n || n >= size || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: not HOST:PORT", text);
    if (strlen(colon + 1) > 5 || strtoul(colon + 1, NULL, 10) > 65535)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: invalid port", text);
    memcpy(host, from, n);
    host[n] = 0;
    *ret_port = colon + 1;
    return XPL_OK;
}

int xpl_listen_open(const struct addrinfo *a, bool dual) {
    const int one = 1, only_six = !dual;
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof only_six);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    const int e = errno;
    (void)close(fd);
    errno = e;
    return -1;
}
