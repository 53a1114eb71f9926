// SPDX-License-Identifier: Apache-2.0
// Timings of events by name: how often, how long, of which their own.  docs/events.md has the rules
// for users.
//
// Two sets of rules.  Ours see each line of a plane as a stack: an event inside another of the same
// name is part of it, and each moment belongs to the event that began last.  ejKernel's are those
// of its profiler (github.com/erfanzar/ejkernel, ejkernel/ops/execution/profiler.py, as it reads an
// XSpace's messages), for autotuners that move here.
#ifndef XPL_ANALYSIS_EVENTS_EVENTS_H_
#define XPL_ANALYSIS_EVENTS_EVENTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_intern;
struct xpl_regex;

struct xpl_timings_rules {
    xpl_str_t plane;         // planes whose name has this, in any case of letters; empty: all
    xpl_str_t prefix;        // names that begin so
    struct xpl_regex *match; // ours: names in which it is found; ejKernel's: children to sum up;
                             // NULL: all, and the event's own time
    uint64_t min_ps;         // shorter events are as if they were not there
    uint64_t max_events;     // of a profile (ejKernel: of a plane), the first ones; UINT64_MAX: all
    bool by_id;              // ours: names as ejKernel makes them, xpl_timings_name
};

struct xpl_timings_row {
    xpl_str_t name;
    uint64_t count;         // occurrences; one inside another of its name is part of that one
    uint64_t total_ps;      // the union of their intervals on each line, over all lines
    uint64_t self_ps;       // of that, when no other event had begun within them
    double mean_ps, std_ps; // of the occurrences; std of all of them, not of a sample
    uint64_t min_ps, p50_ps, p99_ps; // p: the least that as many are not longer than
};

struct xpl_timings_broken {
    const struct xpl_xspace *space;
    struct xpl_error why;
};
struct xpl_timings_rows {
    struct xpl_timings_row *v; // the greatest total first, then by name
    size_t n;
    uint64_t n_events;       // that were looked at: long enough, and before max_events
    const xpl_str_t *planes; // whose events they are, each name once
    size_t n_planes;
    bool is_cut; // by max_events
    // Ours, after DATA_LOSS: the profiles that were found to be damaged, in their order.
    const struct xpl_timings_broken *broken;
    size_t n_broken;
};

// Ours, over n profiles together.  Texts of the answer are the arena's.  NOT_FOUND: no plane has
// the name; the message lists what there is.  DATA_LOSS, RESOURCE_EXHAUSTED, CANCELLED;
// INVALID_ARGUMENT when a name takes `match` too long.
xpl_status_t xpl_timings_sum_up(const struct xpl_xspace *const *spaces, size_t n,
                                const struct xpl_timings_rules *rules, struct xpl_exec *exec,
                                struct xpl_arena *arena, struct xpl_timings_rows *ret,
                                struct xpl_error *err) XPL_NODISCARD;

// ejKernel's, of the first plane of one profile that has the name: rows have a name and a total,
// in the order in which names first begin; of an event that comes again the last one counts.
// A total is the event's time or, with `match`, the union of the intervals of the events whose name
// matches and that lie within it, on any line of the plane, other than those of its own name.
// Events begin at their offset within their line, as the messages say it.
xpl_status_t xpl_timings_by_ejkernel(const struct xpl_xspace *space,
                                     const struct xpl_timings_rules *rules, struct xpl_exec *exec,
                                     struct xpl_arena *arena, struct xpl_timings_rows *ret,
                                     struct xpl_error *err) XPL_NODISCARD;

// ---- the measurements of one function, as autotuners need them ----

struct xpl_timings_id {
    xpl_str_t id;  // what the first group matched; digits without leading zeros
    double *times; // one of each row that matched, ps
    size_t n, cap; // cap is private
};
struct xpl_timings_ids {
    struct xpl_timings_id *v; // in the order of their first row; those without times do not count
    size_t n, cap;            // cap is private
    struct xpl_intern *names; // private
};
// Adds the rows in whose names `by_id` is found, by what its first group matched: their mean or,
// with totals, their total.
xpl_status_t xpl_timings_add_ids(const struct xpl_timings_rows *rows, bool totals,
                                 struct xpl_regex *by_id, struct xpl_arena *arena,
                                 struct xpl_timings_ids *ids, struct xpl_error *err) XPL_NODISCARD;

// Mean and deviation of n numbers, without the least and the greatest when there are more than two.
// Sorts them.  0 without any.
struct xpl_timings_trimmed {
    double mean, std;
};
struct xpl_timings_trimmed xpl_timings_trim(double *v, size_t n);

// ---- parts, for this folder and the table of events ----

// The planes that the rules are about, in order.  NOT_FOUND as above.
xpl_status_t xpl_timings_planes(const struct xpl_xspace *const *spaces, size_t n, xpl_str_t plane,
                                struct xpl_arena *arena, const struct xpl_plane ***ret,
                                size_t *ret_n, struct xpl_error *err) XPL_NODISCARD;
// NAME(PROGRAM-SCOPE) of an event: of its statistics, the last of each name: hlo_module, else the
// event's name; program_id, or else run_id, or None; scope_range_id or None.  0 and empty are None.
struct xpl_buf;
void xpl_timings_name(const struct xpl_line *line, const struct xpl_event *ev, struct xpl_buf *out);

#endif
