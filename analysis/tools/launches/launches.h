// SPDX-License-Identifier: Apache-2.0
// What the tool launches counts: ops of GPUs, the events of the host that launched them, and how
// many of them waited on each stream.  docs/findings.md defines it.  One thread; all lives in the
// arena that is handed in.
#ifndef XPL_ANALYSIS_TOOLS_LAUNCHES_LAUNCHES_H_
#define XPL_ANALYSIS_TOOLS_LAUNCHES_LAUNCHES_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

// Sums over ops; what would exceed 64 bits stays at the most.
struct xpl_launch_sum {
    uint64_t n, total_ps, min_ps, max_ps;
};
// The mean in ps; NAN without any.
double xpl_launch_sum_mean(const struct xpl_launch_sum *s);

struct xpl_launch_times {
    struct xpl_launch_sum op, launch, delay; // the latter two of those whose launch is recorded
    uint64_t n_short;                        // shorter than their launch
};

// Ops of one name.
struct xpl_launch_kernel {
    xpl_str_t name;
    struct xpl_launch_times all, here; // of all hosts; of the one that is read
    uint64_t n_hosts;
    xpl_str_t slowest_host, fastest_host; // by the mean of their ops
    double slowest_ps, fastest_ps;
};

// An op waits from the begin of its launch to its own begin.  Times count from the first launch or
// op of the host.
struct xpl_launch_wait {
    uint64_t from, to;
};
struct xpl_launch_stream {
    xpl_str_t host, device, name;
    XPL_VEC(struct xpl_launch_wait) waits; // of ops that begin after their launch does
    uint64_t n_ops, n_launched;
    uint64_t window_ps; // of the host: to the end of its last op
};

struct xpl_launch_stats {
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct xpl_intern *names;
    XPL_VEC(struct xpl_launch_kernel) kernels; // by id of the name, less 1
    XPL_VEC(struct xpl_launch_stream) streams; // those that ran ops, in the order of the profile
};

// False when out of memory.
bool xpl_launches_init(struct xpl_launch_stats *l, struct xpl_arena *arena, struct xpl_exec *exec);
// Adds what a host did.  `host` and `xs` must outlive *l.  DATA_LOSS, RESOURCE_EXHAUSTED,
// CANCELLED: nothing of it was added.
xpl_status_t xpl_launches_add(struct xpl_launch_stats *l, xpl_str_t host,
                              const struct xpl_xspace *xs, struct xpl_error *err) XPL_NODISCARD;

// ---- the queue of a stream: how many ops wait at an instant ----

struct xpl_queue_part {
    uint64_t begin_ps, duration_ps;
    uint64_t least, most;
    double mean; // over time
};
// Cuts the window into n parts of equal length, the last one shorter; ret[n] is the whole.  Fewer
// when the window has fewer picoseconds: the number is *ret_n.  Sorts the stream's waits.  `ends`
// has room for as many numbers as there are waits.
void xpl_launch_queue(struct xpl_launch_stream *s, uint64_t *ends, size_t n,
                      struct xpl_queue_part *ret, size_t *ret_n);

#endif
