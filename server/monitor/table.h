// SPDX-License-Identifier: Apache-2.0
// The table of metrics that /metrics answers with and docs/operation.md lists.
#ifndef XPL_SERVER_MONITOR_TABLE_H_
#define XPL_SERVER_MONITOR_TABLE_H_

#include <stddef.h>

enum xpl_metric_type { XPL_METRIC_COUNTER, XPL_METRIC_GAUGE, XPL_METRIC_HISTOGRAM };
enum xpl_metric_source {
    XPL_METRIC_FIGURE,   // at `offset` in struct xpl_figures, `width` bytes, divided by `per`
    XPL_METRIC_FLEET,    // the same; left out while the database of the fleet is away
    XPL_METRIC_REQUESTS, // rows of xpl_metrics_rows, by tool and code
    XPL_METRIC_DURATION, // histograms of whole requests, by tool
    XPL_METRIC_STAGES,   // histograms of stages, by tool and stage
    XPL_METRIC_CALLS,    // what HTTP and gRPC answered, by method and status
    XPL_METRIC_LABELS,   // of labels of sessions: `offset` is an enum xpl_metric_of_label
};

enum xpl_metric_of_label {
    XPL_LABEL_SESSIONS,
    XPL_LABEL_CAPTURED,
    XPL_LABEL_STEP,
    XPL_LABEL_TIME,
    XPL_LABEL_MEMORY,
    XPL_LABEL_UTILIZATION
};

// Rows of one name follow each other; only the first has type and help.
struct xpl_metric {
    const char *name;
    enum xpl_metric_type type;
    const char *help;   // one sentence without a full stop; NULL: another label of the row before
    const char *labels; // 'owner="answers"'; the names alone where the source has them; or NULL
    enum xpl_metric_source source;
    size_t offset;
    unsigned width; // 4 or 8
    double per;     // units of the figure in one unit of the metric
};

extern const struct xpl_metric xpl_metric_table[];
extern const size_t xpl_n_metrics;
extern const char *const xpl_metric_type_names[];

#endif
