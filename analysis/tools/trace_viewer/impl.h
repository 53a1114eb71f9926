// SPDX-License-Identifier: Apache-2.0
// Private to analysis/tools/trace_viewer: events as JSON.
#ifndef XPL_ANALYSIS_TOOLS_TRACE_VIEWER_IMPL_H_
#define XPL_ANALYSIS_TOOLS_TRACE_VIEWER_IMPL_H_

#include "analysis/trace/derived/derived.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

// Texts of a plane as JSON, made when first used.
struct xpl_viewer_texts {
    xpl_str_t *names; // by metadata: the names of events
    xpl_str_t *long_names;
    xpl_str_t *keys;   // by metadata of statistics, followed by ": "
    xpl_str_t *values; // of references to it
};

struct xpl_viewer_arg {
    xpl_str_t key; // not escaped: they are sorted by it
    const xpl_str_t *json;
    uint32_t order;
    struct xpl_stat stat; // md NULL: long_name
};

// Writes events of one plane.
struct xpl_viewer_writer {
    struct xpl_buf *out;
    struct xpl_arena *arena; // of the texts and arguments
    const struct xpl_derived_plane *plane;
    struct xpl_viewer_texts texts;
    struct xpl_buf scratch;
    XPL_VEC(struct xpl_viewer_arg) args;
    char pid[32], tid[48]; // of events
    size_t pid_len, tid_len;
};

// False when out of memory.  `limit` bounds the scratch buffer; fini in either case.
bool xpl_viewer_writer_init(struct xpl_viewer_writer *w, const struct xpl_derived_plane *plane,
                            struct xpl_arena *arena, struct xpl_buf *out, size_t limit);
void xpl_viewer_writer_fini(struct xpl_viewer_writer *w);
// The following events are of this line.
void xpl_viewer_begin_line(struct xpl_viewer_writer *w, const struct xpl_derived_line *line,
                           uint32_t pid);
// Appends one event.  False when out of memory; check out->failed as well.
bool xpl_viewer_put_event(struct xpl_viewer_writer *w, const struct xpl_derived_event *ev,
                          const struct xpl_derived_md *md);

#endif
