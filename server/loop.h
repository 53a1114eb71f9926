// SPDX-License-Identifier: Apache-2.0
// The main thread's libuv loop and its mailbox: how every other thread hands work to it.
#ifndef XPL_SERVER_LOOP_H_
#define XPL_SERVER_LOOP_H_

#include <stdbool.h>
#include <uv.h>

#include "base/status.h"

struct xpl_loop;

// NULL when libuv cannot start one.
struct xpl_loop *xpl_loop_new(void);
uv_loop_t *xpl_loop_uv(struct xpl_loop *l);
// Runs fn(arg) on the loop's thread, in posting order.  Any thread.  False when out of memory, or
// when the mailbox is closed; fn then never runs.
bool xpl_loop_post(struct xpl_loop *l, void (*fn)(void *arg), void *arg);
// Runs what was posted, then closes the mailbox's handle, so that uv_run can return; later posts
// are refused.  On the loop's thread, also from a post.
void xpl_loop_close(struct xpl_loop *l);
// After uv_run has returned.  Aborts if a handle was left open: that is a bug.
void xpl_loop_free(struct xpl_loop *l);

#endif
