// SPDX-License-Identifier: Apache-2.0
// Runs a report on the bytes of a bundle, for tests.
#ifndef XPL_TESTS_IREE_RUN_H_
#define XPL_TESTS_IREE_RUN_H_

#include "analysis/ireeprof/reports/report.h"
#include "base/buf.h"
#include "tests/check.h"

struct iree_run {
    struct xpl_iree_bundle bundle;
    struct xpl_iree_run run;
    struct xpl_iree_rows rows;
    struct xpl_buf out;                     // the rows; free with xpl_buf_fini
    const struct xpl_iree_mapping *mapping; // of the file; may be NULL
    struct xpl_error err;
};

// The options are those of x->run, which the caller sets (id -1: all).
static inline xpl_status_t iree_report(struct iree_run *x, xpl_bytes_t file, const char *report,
                                       enum xpl_iree_rows_format format) {
    xpl_buf_init(&x->out, (size_t)1 << 28);
    x->err = (struct xpl_error){0};
    x->rows = (struct xpl_iree_rows){.format = format, .out = &x->out};
    x->run.rows = &x->rows;
    x->run.damage = (struct xpl_iree_notes){0};
    x->run.bundle = &x->bundle;
    const struct xpl_iree_report *const r = xpl_iree_report_find(xpl_str_from(report));
    CHECK(r);
    const xpl_status_t st = xpl_iree_open_mapped(file, false, x->mapping, &x->bundle, &x->err);
    return st == XPL_OK ? xpl_iree_report_run(r, &x->run, &x->err) : st;
}

#endif
