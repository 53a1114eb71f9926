// SPDX-License-Identifier: Apache-2.0
// Counts finished requests by tool and outcome, how long they took, and writes each one's log line.
#ifndef XPL_SERVER_METRICS_H_
#define XPL_SERVER_METRICS_H_

#include "server/engine/engine.h"

struct xpl_metrics;

struct xpl_metrics *xpl_metrics_new(void); // NULL when out of memory
void xpl_metrics_free(struct xpl_metrics *t);

struct xpl_request_line {
    const char *service; // "grpc", "xprof"
    xpl_str_t tool, session;
    size_t n_hosts; // 0: all
    xpl_str_t host; // the only one, if there is only one
    xpl_status_t code;
    const char *source; // "memory", "store", "computed", "joined"; "" on failure
    size_t bytes;
    uint64_t micros;
    const uint64_t *stage_us; // XPL_N_STAGES of them, or NULL
    const char *error;        // message of a failure, or NULL
    xpl_str_t traceparent;    // as the client sent it; logged when it is well-formed
};
// Requests that take at least so long are logged as warnings, with `slow=1`; 0: none.  Any thread.
void xpl_metrics_set_slow(struct xpl_metrics *t, uint64_t micros);
// Any thread.
void xpl_metrics_request(struct xpl_metrics *t, const struct xpl_request_line *l);

struct xpl_metrics_row {
    const char *tool, *code;
    uint64_t count, micros;
};
enum {
    XPL_METRICS_TOOLS = XPL_TOOLS_MAX + 2, // all of the table, op_stats, and "other"
    XPL_METRICS_CODES = 17,
    XPL_METRICS_ROWS = XPL_METRICS_TOOLS * XPL_METRICS_CODES, // at most
};

// Rows with a count, by tool and code; returns how many were written to ret[0..max).
size_t xpl_metrics_rows(struct xpl_metrics *t, struct xpl_metrics_row *ret, size_t max);

// How long requests took.  The counts of a histogram are those of its buckets: the last one has
// what is above all bounds.
enum { XPL_METRICS_BOUNDS = 22 };
extern const uint64_t xpl_metrics_bounds_us[XPL_METRICS_BOUNDS]; // upper ones, inclusive
struct xpl_metrics_histogram {
    const char *tool;
    const char *stage; // NULL: the request as a whole
    uint64_t buckets[XPL_METRICS_BOUNDS + 1];
    uint64_t micros; // all together
};
// Of one stage (its position in xpl_stage_names), or with -1 of whole requests; those that have
// counts, by tool.  Returns how many were written to ret[0..max).
size_t xpl_metrics_histograms(struct xpl_metrics *t, int stage, struct xpl_metrics_histogram *ret,
                              size_t max);

#endif
