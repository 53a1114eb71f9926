// SPDX-License-Identifier: Apache-2.0
// Sends a daemon what a program has flushed, now and then while it runs, on a thread of its own.
#ifndef XPL_CLI_IREE_SEND_H_
#define XPL_CLI_IREE_SEND_H_

#include <pthread.h>
#include <stdbool.h>

#include "cli/iree/outlet.h"

// Zero-initialised before it starts.
struct xpl_send {
    struct xpl_outlet *outlet; // the thread's, but for reading, until it is stopped
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t stopping;
    bool started, stopped;
};

// Begins to send what is there of the outlet.  The whole bundle is sent again each time: not more
// often than the program flushes, than once a second, and than one part in ten of the time.  What
// fails is tried again, or said once and left to the end.
void xpl_send_start(struct xpl_send *s, struct xpl_outlet *outlet);
// Waits until what is being sent is there.  One that was not started is fine.
void xpl_send_stop(struct xpl_send *s);

#endif
