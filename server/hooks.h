// SPDX-License-Identifier: Apache-2.0
// Private to server.  The program's own recvmsg, close and SSL_read (hooks.c).
#ifndef XPL_SERVER_HOOKS_H_
#define XPL_SERVER_HOOKS_H_

#include <stdbool.h>

// Whether libraries get them: the program was linked so that they are exported.
bool xpl_hooks_are_bound(void);

#endif
