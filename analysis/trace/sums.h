// SPDX-License-Identifier: Apache-2.0
// Exact counts and times of a trace's events by name: of any window, names and rows.  They come
// from the index, which has every event, not from an answer of trace_viewer@, which leaves out
// events that are too small to see.  Also the events with given words in their arguments, and a
// visit to the events of a window.
#ifndef XPL_ANALYSIS_TRACE_SUMS_H_
#define XPL_ANALYSIS_TRACE_SUMS_H_

#include "analysis/trace/trace.h"

// A row of the viewer, by the numbers that answers of trace_viewer@ have.
struct xpl_trace_row {
    uint32_t pid, tid;
    bool whole; // all rows of the process
};

struct xpl_trace_sums_options {
    double start_time_ms, end_time_ms; // both 0: everything
    // Words that a name must contain, each, whatever the case of ASCII letters; "" for all names.
    xpl_str_t name;
    const struct xpl_trace_row *rows; // n_rows of them; 0: all rows
    size_t n_rows;
    // Words that the arguments of an event must contain, likewise; "" for all events.  The search
    // then reads profiles, and every event that the window, the names and the rows select.
    xpl_str_t arguments;
    size_t most; // of the events to return, the earliest
};

// Events of one name.  Of an event that crosses the window's borders, only the part inside counts.
struct xpl_trace_sum {
    xpl_str_t name; // in the arena
    uint64_t count, total_ps, min_ps, max_ps;
};
struct xpl_trace_found {
    struct xpl_trace_row row;
    uint64_t ts, dur;
    xpl_str_t name; // in the arena
};
struct xpl_trace_sums {
    struct xpl_trace_sum *v; // the greatest total first, then by count and name
    size_t n;
    uint64_t count, total_ps;      // of all
    struct xpl_trace_found *found; // by begin, then by row and length
    size_t n_found;
};

// Adds up the events of all hosts, in that order, that have a row: no counters, and no asynchronous
// events.  An event belongs to a window when they share time; one without length, when it begins in
// the window, before its end.  *ret is allocated in `arena`.  Times that do not fit 64 bits
// saturate. DATA_LOSS when an index is damaged, or does not belong to its profile; CANCELLED;
// RESOURCE_EXHAUSTED.  Runs on the calling thread.  The cost of a piece of 8,192 events inside the
// window is proportional to its names and tracks; only the events at the window's ends are read one
// by one.
xpl_status_t xpl_trace_sum_up(const struct xpl_trace_host *hosts, size_t n,
                              const struct xpl_trace_sums_options *o, struct xpl_exec *exec,
                              struct xpl_arena *arena, struct xpl_trace_sums *ret,
                              struct xpl_error *err) XPL_NODISCARD;

// Receives the events of a window.  It judges rows and names first: events whose row or name it
// gives 0 are passed over.
struct xpl_trace_visit;
struct xpl_trace_visitor {
    uint8_t (*judge_row)(xpl_str_t device, xpl_str_t row);
    // The names of all events of a host, bytewise.  *ret has n zeroes.
    void (*judge_names)(const xpl_str_t *names, size_t n, uint8_t *ret);
    bool (*visit)(void *arg, const struct xpl_trace_visit *v); // false: out of memory
    void *arg;
};
struct xpl_trace_visit {
    uint32_t pid;
    uint8_t row, name;   // as they were judged
    bool chosen;         // the row is among those of the options
    uint64_t begin, end; // ps, of the part inside the window
};

// Visits the events of all hosts that have a row and a length, whatever rows the options choose,
// host by host; not in order of time.  Of the options only the window and the rows count.  Errors
// and thread as those of xpl_trace_sum_up; it reads every event of the window.
xpl_status_t xpl_trace_visit(const struct xpl_trace_host *hosts, size_t n,
                             const struct xpl_trace_sums_options *o,
                             const struct xpl_trace_visitor *visitor, struct xpl_exec *exec,
                             size_t limit, struct xpl_error *err) XPL_NODISCARD;

#endif
