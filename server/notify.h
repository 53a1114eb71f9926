// SPDX-License-Identifier: Apache-2.0
// Reports to systemd what the daemon is doing (sd_notify's protocol, without its library).
#ifndef XPL_SERVER_NOTIFY_H_
#define XPL_SERVER_NOTIFY_H_

// "READY=1", "STOPPING=1", "RELOADING=1\nMONOTONIC_USEC=...".  Nothing without $NOTIFY_SOCKET.
void xpl_notify(const char *state);

#endif
