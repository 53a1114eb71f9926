// SPDX-License-Identifier: Apache-2.0
// A program's own recvmsg, sendmsg, close, SSL_read and SSL_write (hooks.c), for programs that
// serve strangers.  Linked into a program, never into a library: rpc_hooks in meson.build.
#ifndef XPL_RPC_LISTEN_HOOKS_H_
#define XPL_RPC_LISTEN_HOOKS_H_

#include <stdbool.h>

// Whether libraries get them: the program was linked so that they are exported.
bool xpl_hooks_are_bound(void);

#endif
