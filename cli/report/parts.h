// SPDX-License-Identifier: Apache-2.0
// What the files of `xplanectl report` share.
#ifndef XPL_CLI_REPORT_PARTS_H_
#define XPL_CLI_REPORT_PARTS_H_

#include <jansson.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/args.h"

enum { XPL_REPORT_WINDOWS = 8 };

// What a page is made of; the caller's.
struct xpl_report {
    const char *run, *base; // base: NULL without --base
    const json_t *findings; // as the tool answers
    const json_t *summary;  // as `summary --json`, memory as rows
    const json_t *compared; // as `compare BASE RUN --json`; NULL without --base
    // The answer of trace_viewer@ for the window of each of the first findings; NULL: it has none.
    const json_t *windows[XPL_REPORT_WINDOWS];
};

// Writes the page.  Buffers remember failures.
void xpl_report_page(const struct xpl_report *r, struct xpl_buf *out);
// Draws the events of a window, in ps.
void xpl_report_window(const json_t *trace, double begin_ps, double duration_ps,
                       struct xpl_buf *out);
// Writes at most `max` characters of a text of a profile as HTML text or attribute: it never
// becomes markup, and control characters become '?'.
void xpl_report_text(struct xpl_buf *out, xpl_str_t s, size_t max);

#endif
