// SPDX-License-Identifier: Apache-2.0
// A process that outlives this one and removes what a capture without a daemon leaves when it is
// killed: the daemon has its next start for that, the command line has none.
//
// It waits at a pipe whose other end is ours alone.  When that closes, however that came, it
// removes the session's unfinished files, and its directory unless a profile is in it.
#ifndef XPL_CLI_CLEANER_H_
#define XPL_CLI_CLEANER_H_

// Starts it, before there are threads.  Returns the pipe's end; -1 without one: then nobody cleans.
int xpl_cleaner_start(void);
// Tells it of the directory of session `name` below `logdir`, which this process made.  Once; `fd`
// may be -1.
void xpl_cleaner_watch(int fd, const char *logdir, const char *name);

#endif
