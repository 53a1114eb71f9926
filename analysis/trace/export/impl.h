// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/export: the walk over a host, and the writers of the formats.
#ifndef XPL_ANALYSIS_TRACE_EXPORT_IMPL_H_
#define XPL_ANALYSIS_TRACE_EXPORT_IMPL_H_

#include "analysis/trace/derived/derived.h"
#include "analysis/trace/export/export.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

enum { XPL_EXPORT_CHUNK = 1 << 16 }; // the sink is called for about so many bytes

// State of the export of one host.
struct xpl_exporter {
    struct xpl_export *e;
    xpl_str_t host;
    struct xpl_exec *exec;
    size_t limit;
    struct xpl_error *err;
    struct xpl_arena *arena; // of the current plane
    struct xpl_buf out;
    const struct xpl_derived_plane *plane;
    const struct xpl_derived_line *line;
    uint64_t zero_ns; // when time 0 of the host is in the output
    uint32_t pid, tid, n_pids, n_tids;
    bool counters; // the line holds samples of counters
};

// Calls in this order: plane, for each line that has events line, event..., line_end.  False: out
// of memory, or over the limit.
struct xpl_export_writer {
    void *(*begin)(struct xpl_exporter *x, struct xpl_arena *arena); // of a host
    bool (*plane)(void *w);
    bool (*line)(void *w);
    bool (*event)(void *w, const struct xpl_derived_event *ev, const struct xpl_derived_md *md);
    bool (*line_end)(void *w);
    void (*end)(void *w);
};
extern const struct xpl_export_writer xpl_export_perfetto, xpl_export_chrome;

#endif
