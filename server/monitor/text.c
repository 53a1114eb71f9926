// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/text.h"

#include <assert.h>
#include <string.h>

#include "server/metrics.h"
#include "server/monitor/figures.h"
#include "server/monitor/table.h"

enum { MAX_ROWS = XPL_METRICS_ROWS, MAX_HISTOGRAMS = XPL_METRICS_TOOLS };

static double figure_of(const struct xpl_metric *m, const struct xpl_figures *f) {
    const char *const at = (const char *)f + m->offset;
    uint64_t v = 0;
    uint32_t narrow;
    assert(m->width == sizeof v || m->width == sizeof narrow);
    if (m->width == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        v = narrow;
    } else {
        memcpy(&v, at, sizeof v);
    }
    return (double)v / m->per;
}

// Whole numbers without a point; others are times, which are counted in microseconds.
static void put_value(struct xpl_buf *b, double v) {
    xpl_buf_printf(b, v == (double)(uint64_t)v ? "%.0f\n" : "%.6f\n", v);
}

static void put_figure(struct xpl_buf *b, const struct xpl_metric *m, const struct xpl_figures *f) {
    xpl_buf_printf(b, m->labels ? "%s{%s} " : "%s%s ", m->name, m->labels ? m->labels : "");
    put_value(b, figure_of(m, f));
}

static void put_requests(struct xpl_buf *b, const struct xpl_metric *m, struct xpl_metrics *from) {
    struct xpl_metrics_row rows[MAX_ROWS];
    const size_t n = xpl_metrics_rows(from, rows, MAX_ROWS);
    for (size_t i = 0; i < n; i++)
        xpl_buf_printf(b, "%s{tool=\"%s\",code=\"%s\"} %llu\n", m->name, rows[i].tool, rows[i].code,
                       (unsigned long long)rows[i].count);
}

static void put_replies(struct xpl_buf *b, const char *name, const struct xpl_http_stats *http) {
    static const char *const methods[XPL_HTTP_METHODS] = {"GET", "HEAD", "POST", "other"};
    for (size_t m = 0; m < XPL_HTTP_METHODS; m++)
        for (size_t i = 0; i < XPL_HTTP_STATUSES; i++)
            if (http->replies[m][i])
                xpl_buf_printf(b, "%s{protocol=\"http\",method=\"%s\",code=\"%zu\"} %llu\n", name,
                               methods[m], 100 + i, (unsigned long long)http->replies[m][i]);
}

static void put_calls(struct xpl_buf *b, const char *name, const struct xpl_rpc_server *s) {
    struct xpl_rpc_method_stats m;
    for (size_t i = 0; s && xpl_rpc_server_get_method(s, i, &m); i++)
        for (size_t k = 0; k < XPL_RPC_CODES; k++)
            if (m.answered[k])
                xpl_buf_printf(b, "%s{protocol=\"grpc\",method=\"%s\",code=\"%s\"} %llu\n", name,
                               m.path + (*m.path == '/'), xpl_status_name((xpl_status_t)k),
                               (unsigned long long)m.answered[k]);
}

static void put_histogram(struct xpl_buf *b, const char *name,
                          const struct xpl_metrics_histogram *h) {
    char labels[128];
    uint64_t sum = 0;
    (void)snprintf(labels, sizeof labels, h->stage ? "tool=\"%s\",stage=\"%s\"" : "tool=\"%s\"%s",
                   h->tool, h->stage ? h->stage : "");
    for (size_t i = 0; i <= XPL_METRICS_BOUNDS; i++) {
        sum += h->buckets[i];
        xpl_buf_printf(b, "%s_bucket{%s,le=\"", name, labels);
        if (i < XPL_METRICS_BOUNDS)
            xpl_buf_printf(b, "%g", (double)xpl_metrics_bounds_us[i] / 1e6);
        else
            xpl_buf_str(b, XPL_STR("+Inf"));
        xpl_buf_printf(b, "\"} %llu\n", (unsigned long long)sum);
    }
    xpl_buf_printf(b, "%s_sum{%s} %.6f\n", name, labels, (double)h->micros / 1e6);
    xpl_buf_printf(b, "%s_count{%s} %llu\n", name, labels, (unsigned long long)sum);
}

static void put_histograms(struct xpl_buf *b, const char *name, struct xpl_metrics *from,
                           int stage) {
    struct xpl_metrics_histogram list[MAX_HISTOGRAMS];
    const size_t n = xpl_metrics_histograms(from, stage, list, MAX_HISTOGRAMS);
    for (size_t i = 0; i < n; i++)
        put_histogram(b, name, &list[i]);
}

static void put_labeled(struct xpl_buf *b, const char *name, const char *label, double v) {
    if (v >= 0) xpl_buf_printf(b, "%s{label=\"%s\"} %.12g\n", name, label, v);
}

static void put_times(struct xpl_buf *b, const char *name, const struct xpl_newest_row *row) {
    for (size_t i = 0; i < row->n_times; i++)
        xpl_buf_printf(b, "%s{label=\"%s\",cause=\"%s\"} %.12g\n", name, row->label,
                       row->times[i].cause, row->times[i].s);
}

static void put_of_label(struct xpl_buf *b, const struct xpl_metric *m,
                         const struct xpl_newest_row *row) {
    const enum xpl_metric_of_label which = (enum xpl_metric_of_label)m->offset;
    if (which == XPL_LABEL_SESSIONS)
        put_labeled(b, m->name, row->label, (double)row->n_sessions);
    else if (which == XPL_LABEL_CAPTURED)
        xpl_buf_printf(b, "%s{label=\"%s\"} %.3f\n", m->name, row->label,
                       (double)row->captured_ms / 1000);
    else if (row->is_known && which == XPL_LABEL_TIME)
        put_times(b, m->name, row);
    else if (row->is_known)
        put_labeled(b, m->name, row->label,
                    which == XPL_LABEL_STEP     ? row->step_s
                    : which == XPL_LABEL_MEMORY ? row->peak_bytes
                                                : row->utilization);
}

void xpl_metrics_put_text(struct xpl_buf *b, const struct xpl_figures *f, struct xpl_metrics *m) {
    for (size_t i = 0; i < xpl_n_metrics; i++) {
        const struct xpl_metric *const row = &xpl_metric_table[i];
        if (row->help)
            xpl_buf_printf(b, "# HELP %s %s.\n# TYPE %s %s\n", row->name, row->help, row->name,
                           xpl_metric_type_names[row->type]);
        switch (row->source) {
            case XPL_METRIC_FIGURE: put_figure(b, row, f); break;
            case XPL_METRIC_FLEET:
                if (f->knows_fleet) put_figure(b, row, f);
                break;
            case XPL_METRIC_REQUESTS: put_requests(b, row, m); break;
            case XPL_METRIC_CALLS:
                put_replies(b, row->name, &f->http);
                put_calls(b, row->name, f->calls_of);
                break;
            case XPL_METRIC_LABELS:
                for (size_t k = 0; k < f->n_newest; k++)
                    put_of_label(b, row, &f->newest[k]);
                break;
            case XPL_METRIC_DURATION: put_histograms(b, row->name, m, -1); break;
            case XPL_METRIC_STAGES:
                for (int stage = 0; stage < XPL_N_STAGES; stage++)
                    put_histograms(b, row->name, m, stage);
                break;
        }
    }
}

// The labels of all rows of a metric, without those that are the same: `protocol="http"` and
// `protocol="grpc"` are two lines of one cell.
static void print_labels(FILE *out, size_t i) {
    const char *between = "";
    const char *const name = xpl_metric_table[i].name;
    for (; i < xpl_n_metrics && strcmp(xpl_metric_table[i].name, name) == 0; i++) {
        if (!xpl_metric_table[i].labels) continue;
        if (!strstr(xpl_metric_table[i].labels, "version="))
            (void)fprintf(out, "%s`%s`", between, xpl_metric_table[i].labels);
        else
            (void)fprintf(out, "`version`");
        between = ", ";
    }
}

void xpl_metrics_print_table(FILE *out) {
    (void)fprintf(out, "| metric | type | labels | what |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < xpl_n_metrics; i++) {
        const struct xpl_metric *const row = &xpl_metric_table[i];
        if (!row->help) continue;
        (void)fprintf(out, "| `%s` | %s | ", row->name, xpl_metric_type_names[row->type]);
        print_labels(out, i);
        (void)fprintf(out, " | %s |\n", row->help);
    }
}
