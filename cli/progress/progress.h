// SPDX-License-Identifier: Apache-2.0
// What a person sees while a command takes more than a second: a line on standard error that is
// rewritten and taken away at the end.  Only where standard error is a terminal, and not with
// --quiet.
//
// One thing at a time is under way.  The time counts from the first of them on.
#ifndef XPL_CLI_PROGRESS_PROGRESS_H_
#define XPL_CLI_PROGRESS_PROGRESS_H_

#include <stdint.h>

#include "cli/args.h"

void xpl_progress_begin(const struct xpl_args *a);
// The line is gone when this returns.  Without a begin it does nothing.
void xpl_progress_end(void);
// Takes the line away for other text; it comes back below that.
void xpl_progress_hide(void);

// How far it is, from any thread: `all` 0 where that is not known.
void xpl_progress_hosts(uint64_t done, uint64_t all);
void xpl_progress_bytes(uint64_t done, uint64_t all);

#endif
