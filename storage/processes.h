// SPDX-License-Identifier: Apache-2.0
// Files that processes of one job wrote: which of them are one session, and what its hosts are
// called.  The one rule for LOGDIR and for directories given by path.
//
// The files of a directory are one session when each is of another process and they were recorded
// together: ranks of a job of one size, or other processes at the same time.  Two files of one
// process are two captures, and so of two sessions.
//
// Pure functions; any thread.
#ifndef XPL_STORAGE_SESSIONS_PROCESSES_H_
#define XPL_STORAGE_SESSIONS_PROCESSES_H_

#include "base/text/profile_file.h"

struct xpl_arena;

struct xpl_process_file {
    const struct xpl_profile_identity *identity; // NULL: the file does not say it
    const char *name;                            // of the file, without its directory
    // Set by xpl_processes_group:
    uint32_t group; // from 0, in the order of time
    // Another file of the group has that rank as well: the name of the worker tells them apart.
    bool is_twin;
    bool is_alone; // its process, which has no rank, has no other file in the directory
};

// Sorts the files into groups; files without an identity are of the first.  Returns how many groups
// there are, at least 1; 0 without memory: then all files are of group 0.
size_t xpl_processes_group(struct xpl_process_file *v, size_t n);

// A group: the size of its job, and how many of the ranks are there; -1 and 0: not said.
struct xpl_process_group {
    int64_t world_size, n_ranks;
    int width; // digits of its ranks
};
struct xpl_process_group xpl_processes_of_group(const struct xpl_process_file *v, size_t n,
                                                uint32_t group);

// The name of the host: "rank 07", or the process's own, which `stem`, the file's name without its
// suffix, begins with.  In `arena`; false on OOM.
bool xpl_process_host(const struct xpl_process_file *f, const struct xpl_process_group *g,
                      xpl_str_t stem, struct xpl_arena *arena, xpl_str_t *ret);

#endif
