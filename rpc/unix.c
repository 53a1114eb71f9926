// SPDX-License-Identifier: Apache-2.0
#include "rpc/unix.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/net/accept.h"

enum { MAX_GROUPS = 1024, BACKLOG = 128 };

struct xpl_rpc_unix {
    struct xpl_accept_reserve reserve;
    int fd;
    gid_t group;
    dev_t dev; // of the socket's file, to know it again
    ino_t ino;
    struct sockaddr_un addr;
};

// Whether a process listens there: a socket whose process is dead refuses.
static bool is_alive(const struct sockaddr_un *addr) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return true; // unknown: do not touch it
    const int rc = connect(fd, (const struct sockaddr *)addr, sizeof *addr);
    const bool dead = rc != 0 && (errno == ECONNREFUSED || errno == ENOENT);
    close(fd);
    return !dead;
}

static xpl_status_t clear_path(const struct sockaddr_un *addr, struct xpl_error *err) {
    struct stat st;
    if (lstat(addr->sun_path, &st) != 0) {
        if (errno == ENOENT) return XPL_OK;
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: %s", addr->sun_path, strerror(errno));
    }
    if (!S_ISSOCK(st.st_mode))
        XPL_RETURN_ERROR(err, XPL_ALREADY_EXISTS, "%s: exists and is not a socket", addr->sun_path);
    if (is_alive(addr))
        XPL_RETURN_ERROR(err, XPL_ALREADY_EXISTS, "%s: another process listens there",
                         addr->sun_path);
    if (unlink(addr->sun_path) != 0 && errno != ENOENT)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: cannot be replaced: %s", addr->sun_path,
                         strerror(errno));
    return XPL_OK;
}

// Sets the socket's mode before it gets its name: at no moment can others connect, and the
// process's umask stays unchanged.
static xpl_status_t bind_path(struct xpl_rpc_unix *u, struct xpl_error *err) {
    struct stat st;
    const char *const path = u->addr.sun_path;
    if (fchmod(u->fd, 0600) != 0 ||
        bind(u->fd, (const struct sockaddr *)&u->addr, sizeof u->addr) != 0)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: cannot bind: %s", path, strerror(errno));
    if (lstat(path, &st) != 0)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: %s", path, strerror(errno));
    u->dev = st.st_dev, u->ino = st.st_ino;
    if (u->group != (gid_t)-1 && (lchown(path, (uid_t)-1, u->group) != 0 || chmod(path, 0660) != 0))
        XPL_RETURN_ERROR(err, XPL_PERMISSION_DENIED, "%s: cannot be given to group %u: %s", path,
                         (unsigned)u->group, strerror(errno));
    if (listen(u->fd, BACKLOG) != 0)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "%s: cannot listen: %s", path, strerror(errno));
    return XPL_OK;
}

xpl_status_t xpl_rpc_unix_new(const char *path, gid_t group, struct xpl_rpc_unix **ret,
                              struct xpl_error *err) {
    const size_t n = strlen(path);
    struct xpl_rpc_unix *const u = xpl_sys_alloc(sizeof *u);
    if (!u) XPL_RETURN_OOM(err, "unix socket");
    *u = (struct xpl_rpc_unix){.fd = -1, .group = group, .addr.sun_family = AF_UNIX};
    xpl_accept_reserve_init(&u->reserve);
    xpl_status_t st = XPL_OK;
    if (n == 0 || n >= sizeof u->addr.sun_path)
        st = xpl_error_set(err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__, UINT64_MAX,
                           "unix socket: a path has 1 to %zu bytes, not %zu",
                           sizeof u->addr.sun_path - 1, n);
    if (st == XPL_OK) {
        memcpy(u->addr.sun_path, path, n + 1);
        st = clear_path(&u->addr, err);
    }
    if (st == XPL_OK) {
        u->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        st = u->fd < 0 ? xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                                       "%s: no socket: %s", path, strerror(errno))
                       : bind_path(u, err);
    }
    if (st != XPL_OK) {
        xpl_rpc_unix_free(u);
        return st;
    }
    *ret = u;
    return XPL_OK;
}

void xpl_rpc_unix_free(struct xpl_rpc_unix *u) {
    struct stat st;
    if (!u) return;
    if (u->fd >= 0) close(u->fd);
    xpl_accept_reserve_fini(&u->reserve);
    if (u->ino && lstat(u->addr.sun_path, &st) == 0 && st.st_dev == u->dev && st.st_ino == u->ino)
        unlink(u->addr.sun_path);
    xpl_sys_free(u);
}

int xpl_rpc_unix_get_fd(const struct xpl_rpc_unix *u) {
    return u->fd;
}

static bool in_group(int fd, const struct ucred *peer, gid_t group) {
    gid_t groups[MAX_GROUPS];
    socklen_t size = sizeof groups;
    if (group == (gid_t)-1) return false;
    if (peer->gid == group) return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0) return false;
    for (size_t i = 0; i < size / sizeof *groups; i++)
        if (groups[i] == group) return true;
    return false;
}

static bool is_welcome(const struct xpl_rpc_unix *u, int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return peer.uid == 0 || peer.uid == geteuid() || in_group(fd, &peer, u->group);
}

static void hand_over(struct xpl_rpc_unix *u, int fd, const struct sockaddr *from,
                      struct xpl_rpc_server *s, struct xpl_rpc_connections *c) {
    const struct xpl_peer peer = {.local = true};
    if (!is_welcome(u, fd) || (c && !xpl_rpc_connections_admit(c, &peer))) {
        close(fd);
    } else {
        if (c) xpl_rpc_connections_add(c, fd, &peer);
        (void)xpl_rpc_server_adopt(s, fd, from, NULL); // closes it when the server is stopping
    }
}

bool xpl_rpc_unix_accept(struct xpl_rpc_unix *u, struct xpl_rpc_server *s,
                         struct xpl_rpc_connections *c) {
    // Bounded, so that a flood of connections does not keep the loop from its other work: pending
    // connections keep the descriptor readable.
    for (int i = 0; i < BACKLOG; i++) {
        struct sockaddr_storage from;
        socklen_t n = 0;
        int fd = -1;
        switch (xpl_accept(&u->reserve, u->fd, &fd, &from, &n)) {
            case XPL_ACCEPT_NONE: return true;
            case XPL_ACCEPT_STUCK: return false;
            case XPL_ACCEPT_CLOSED:
                if (c) xpl_rpc_connections_note_exhausted(c);
                break;
            case XPL_ACCEPTED: hand_over(u, fd, (const struct sockaddr *)&from, s, c); break;
        }
    }
    return true;
}
