// SPDX-License-Identifier: Apache-2.0
// Where a bundle goes that a program writes: a session of a log directory, which shows it while it
// grows; a session of a daemon, which gets what there is now and then, and all at the end; or a
// file.
#ifndef XPL_CLI_IREE_OUTLET_H_
#define XPL_CLI_IREE_OUTLET_H_

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/args.h"
#include "cli/library/library.h"
#include "storage/sessions/session_writer.h"

struct xpl_outlet {
    char path[PATH_MAX];                     // of the bundle while it is written
    char name[XPL_SESSION_WRITER_NAME_SIZE]; // of the session; empty: the time
    char host[XPL_SESSION_WRITER_NAME_SIZE];
    const struct xpl_args *args;
    struct xpl_session_writer *writer;       // of a log directory, or for what a daemon gets
    char temp[XPL_SESSION_WRITER_TEMP_SIZE]; // hidden there, until it is shown
    bool shown, failed;
    // Of a daemon.  While it is sent to (send.h), that thread has these.
    xpl_client *client;
    char session[512]; // that has what was sent; empty: nothing was
    bool at_end;       // nothing can be sent but all
};

// What the flags say, for a session `name` (NULL: the time).  False after saying why
// there is none; to be closed in any case.
bool xpl_outlet_open(struct xpl_outlet *p, const struct xpl_args *args, const char *name);
// The bytes that are there so far.
uint64_t xpl_outlet_bytes(const struct xpl_outlet *p);
// Lets a log directory show what is there so far.
void xpl_outlet_show(struct xpl_outlet *p);
// Sends a daemon what is there so far.  Gives the call's code, 0 for success.
int xpl_outlet_send(struct xpl_outlet *p, unsigned retries, xpl_result *ret);
// Stores what is there, and prints what the session is called.  False after saying why not.
bool xpl_outlet_keep(struct xpl_outlet *p);
// Removes what was not kept.
void xpl_outlet_close(struct xpl_outlet *p);

#endif
