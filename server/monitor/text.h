// SPDX-License-Identifier: Apache-2.0
// Metrics in Prometheus' text format, version 0.0.4.
// https://prometheus.io/docs/instrumenting/exposition_formats/
#ifndef XPL_SERVER_MONITOR_TEXT_H_
#define XPL_SERVER_MONITOR_TEXT_H_

#include <stdio.h>

#include "base/buf.h"

struct xpl_figures;
struct xpl_metrics;

#define XPL_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

// All rows of the table.  A histogram of a tool is there once the tool was asked for.  A failure
// sticks to the buffer.
void xpl_metrics_put_text(struct xpl_buf *b, const struct xpl_figures *f, struct xpl_metrics *m);
// The table itself, as a table in Markdown.
void xpl_metrics_print_table(FILE *out);

#endif
