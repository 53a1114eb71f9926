// SPDX-License-Identifier: Apache-2.0
// A unix socket for peers that can send neither certificate nor token: the kernel identifies them.
// The daemon's loop polls the descriptor and calls accept.
#ifndef XPL_RPC_UNIX_H_
#define XPL_RPC_UNIX_H_

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"
#include "rpc/listen/connections.h"
#include "rpc/server.h"

struct xpl_rpc_unix;

// Listens on `path`, mode 0600, or 0660 with `group` when that is not (gid_t)-1.  A socket left
// behind by a dead process is replaced; one that a process answers on is ALREADY_EXISTS; other
// files are not touched (ALREADY_EXISTS).
xpl_status_t xpl_rpc_unix_new(const char *path, gid_t group, struct xpl_rpc_unix **ret,
                              struct xpl_error *err);
// Closes, and removes the path if it is still ours.  NULL is fine.
void xpl_rpc_unix_free(struct xpl_rpc_unix *u);

// Readable when a client connects; not blocking.
int xpl_rpc_unix_get_fd(const struct xpl_rpc_unix *u);
// Accepts all that wait and hands them to the server: root, our own user, and members of the group;
// others are closed at once, and all where no descriptor is left.  False when not even that could
// be done: the caller stops polling for a while.  `c` counts and limits them; NULL for no limit.
// One thread at a time.
bool xpl_rpc_unix_accept(struct xpl_rpc_unix *u, struct xpl_rpc_server *s,
                         struct xpl_rpc_connections *c);

#endif
