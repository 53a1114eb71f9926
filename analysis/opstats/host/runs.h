// SPDX-License-Identifier: Apache-2.0
// Executions of programs on a host that counts as a device, and the events that launched them.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_RUNS_H_
#define XPL_ANALYSIS_OPSTATS_HOST_RUNS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

struct xpl_arena;

// An execution: XLA numbers those of each program with statistic run_id as it launches them.  Only
// ops without a group count, because those of a group belong to its step already.
struct xpl_host_run {
    int64_t id;
    uint64_t function;         // a hash of the name of the function that it runs
    xpl_str_t module;          // its program; aliases the profile
    uint64_t begin_ps, end_ps; // from its first op to the end of its last one
    int64_t group;             // what launched it, after xpl_host_runs_match; -1: not known
    uint64_t caller;           // for xpl_host_runs_match: the function of its launches
    uint64_t n_ops;
    bool is_early; // for xpl_host_runs_match: it was launched before the profile
};
// An event of the client that launches an execution.
struct xpl_host_launch {
    uint64_t begin_ps, end_ps;
    int64_t group;     // -1: none
    int64_t id;        // of the execution, when has_id
    uint64_t function; // 0: not known
    bool has_id;
};
// An event that calls a function whose executions are launched within it.
struct xpl_host_call {
    uint64_t begin_ps, end_ps, function;
    size_t outer; // xpl_host_runs_name_launches: the call around it, plus one; 0: none
};
struct xpl_host_runs {
    XPL_VEC(struct xpl_host_run) runs;
    XPL_VEC(struct xpl_host_launch) launches;
    XPL_VEC(struct xpl_host_call) calls; // of one line at a time
};

// Whether events of that name launch executions.
bool xpl_is_host_launch(xpl_str_t name);
// The hash of "f" for an event named "PjitFunction(f)" and for a module named "jit_f".  0 for other
// events.
uint64_t xpl_host_function_called(xpl_str_t name);
uint64_t xpl_host_function_of_module(xpl_str_t module);

// Adds ops of the same execution.
static inline void xpl_host_run_extend(struct xpl_host_run *run, uint64_t begin_ps, uint64_t end_ps,
                                       uint64_t n_ops) {
    if (begin_ps < run->begin_ps) run->begin_ps = begin_ps;
    if (end_ps > run->end_ps) run->end_ps = end_ps;
    run->n_ops += n_ops;
}

// These functions report false at the arena's limit.

// Adds an op.  Executions may be listed more than once until xpl_host_runs_match.
bool xpl_host_runs_add_op(struct xpl_host_runs *r, const struct xpl_host_run *op,
                          struct xpl_arena *arena) __attribute__((warn_unused_result));
// Appends those of `src` to `dst`.
bool xpl_host_runs_join(const struct xpl_host_runs *src, struct xpl_host_runs *dst,
                        struct xpl_arena *arena) __attribute__((warn_unused_result));
// Gives the launches from `first` on, which are those of one line, the function of the innermost of
// `calls` around each, and empties `calls`.
void xpl_host_runs_name_launches(struct xpl_host_runs *r, size_t first);
// Lists each execution once and finds what launched it.  A launch with an id names its execution.
// Else the launches of a function and the executions of its module are in the same order.  Those
// without a counterpart by name are, too: no event calls a program compiled ahead of time. The
// first launch belongs to the first execution or, where there are more executions than launches,
// the last to the last, and no execution begins before its launch.
void xpl_host_runs_match(struct xpl_host_runs *r);
// Whether the profile ends within its last execution, or, `at_end` false, begins within its first
// one, which *ret is then: it has fewer ops than the others of its function, of which there are at
// least two with equally many; where these differ, as with loops inside, it may be complete.
bool xpl_host_runs_cut(const struct xpl_host_runs *r, bool at_end, size_t *ret);

#endif
