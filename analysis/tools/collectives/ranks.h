// SPDX-License-Identifier: Apache-2.0
// Collectives of several hosts that exchange with each other: which of their calls are one, how
// long all exchange and wait, and the host that is last.  docs/findings.md defines the columns.
#ifndef XPL_ANALYSIS_TOOLS_COLLECTIVES_RANKS_H_
#define XPL_ANALYSIS_TOOLS_COLLECTIVES_RANKS_H_

#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// What one host does of a collective.
struct xpl_rank_call {
    uint32_t host;
    uint32_t group; // of processes, in `groups`
    const char *kind;
    uint64_t bytes;      // as struct xpl_collective_text; 0: not known
    uint64_t group_size; // 0: not known
    bool is_uneven;      // ranks bring different numbers of bytes
    int64_t seq;         // of its group, as the program counts; -1: not known
    int64_t step;        // -1: not known
    int64_t order;       // among those of group, and seq or step: one collective has one order
    uint64_t begin, end; // ps, of the host's clock, which wraps
};

struct xpl_rank_host {
    xpl_str_t name;
    int64_t start_ns;            // since 1970; 0: unknown
    bool has_steps;              // whose numbers are the program's
    uint64_t n, n_last;          // collectives that others have as well; it came last in so many
    uint64_t n_unclear;          // of which nothing says which of another host's they are
    double total_ps, waiting_ps; // in these; waiting for the last one
    int64_t offset_ps; // of its clock, ahead of that of the first host with such collectives
};

// Collectives of one kind, size and group.
struct xpl_rank_row {
    const char *kind;
    uint64_t bytes, group_size;
    uint32_t group;
    bool is_uneven;
    size_t n_hosts;                    // of the group that are here
    uint64_t n;                        // collectives
    double total_ps, communication_ps; // of all hosts
    double fastest_ps;                 // of the fastest host of each, all together
    double skew_ps, max_skew_ps;       // from the first to the last host's begin; sum, greatest
    uint64_t *n_last;                  // by host
    size_t next;                       // for xpl_ranks_match: the next row of its bucket, from 1
};

struct xpl_ranks {
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct xpl_intern *groups;
    struct xpl_map long_groups, long_sizes; // of the current host, by addresses of texts
    XPL_VEC(struct xpl_rank_call) calls;
    XPL_VEC(struct xpl_rank_host) hosts;
    XPL_VEC(struct xpl_rank_row) rows;
};

// False without memory.
bool xpl_ranks_init(struct xpl_ranks *r, struct xpl_arena *arena, struct xpl_exec *exec);
// Adds the collectives of a host, with the sizes and groups that its profile has: those of GPUs, or
// without GPUs those of the host's threads.  DATA_LOSS, RESOURCE_EXHAUSTED, CANCELLED.
xpl_status_t xpl_ranks_add(struct xpl_ranks *r, xpl_str_t host, const struct xpl_xspace *xs,
                           struct xpl_error *err) XPL_NODISCARD;
// Finds those that several hosts have, and fills `rows`, the longest first, and the times of
// `hosts`.  False without memory; when it is cancelled it ends early.
bool xpl_ranks_match(struct xpl_ranks *r);

#endif
