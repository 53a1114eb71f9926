// SPDX-License-Identifier: Apache-2.0
// What tools over the sums of a trace share: which of its events are meant.  Private to this
// folder.
#ifndef XPL_ANALYSIS_TOOLS_SUMS_SUMS_H_
#define XPL_ANALYSIS_TOOLS_SUMS_SUMS_H_

#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/tool.h"
#include "analysis/tools/trace_viewer/options.h"
#include "analysis/trace/sums.h"
#include "base/arena.h"

// The index that these tools need may be made for them: then all of it, for `viewer` asks for no
// resolution.
struct sums_options {
    struct xpl_trace_viewer_options viewer; // start and end alone are set
    xpl_str_t name, tracks;
    uint64_t limit;
};
// Rows of their options, which begin with a struct sums_options.
#define SUMS_MEMBER(name) offsetof(struct sums_options, name)
#define SUMS_END_TIME                                                                              \
    {                                                                                              \
        .key = "end_time_ms", .type = XPL_OPTION_MILLISECONDS,                                     \
        .offset = SUMS_MEMBER(viewer.trace.end_time_ms), .values = "MILLISECONDS",                 \
        .help = "end of the window; 0: end of the trace"                                           \
    }
#define SUMS_LIMIT(text)                                                                           \
    {                                                                                              \
        .key = "limit", .type = XPL_OPTION_COUNT, .offset = SUMS_MEMBER(limit),                    \
        .values = "NUMBER", .preset = "1000", .help = text                                         \
    }
#define SUMS_NAME                                                                                  \
    {                                                                                              \
        .key = "name", .type = XPL_OPTION_TEXT, .offset = SUMS_MEMBER(name), .values = "TEXT",     \
        .help = "up to 32 words that a name must contain, in any case of letters"                  \
    }
#define SUMS_START_TIME                                                                            \
    {                                                                                              \
        .key = "start_time_ms", .type = XPL_OPTION_MILLISECONDS,                                   \
        .offset = SUMS_MEMBER(viewer.trace.start_time_ms), .values = "MILLISECONDS",               \
        .help = "start of the window"                                                              \
    }
#define SUMS_TRACKS                                                                                \
    {                                                                                              \
        .key = "tracks", .type = XPL_OPTION_TEXT, .offset = SUMS_MEMBER(tracks),                   \
        .values = "PID[:TID],...",                                                                 \
        .help = "processes and rows, by the numbers that trace_viewer@ gives them; all when empty" \
    }

// Needs the trace index.
extern const struct xpl_product *const sums_needs[];
// What the options mean, and the hosts that have an index; in `arena`.
xpl_status_t sums_read(const struct xpl_tool_input *in, struct xpl_arena *arena,
                       struct xpl_trace_sums_options *ret, struct xpl_trace_host **ret_hosts,
                       size_t *ret_n, struct xpl_error *err) XPL_NODISCARD;
// Adds up what the options mean, and `arguments` and `most` of struct xpl_trace_sums_options.
xpl_status_t sums_make(const struct xpl_tool_input *in, xpl_str_t arguments, size_t most,
                       struct xpl_arena *arena, struct xpl_trace_sums *ret, struct xpl_error *err)
    XPL_NODISCARD;
// The sums of all, as properties of the table.
void sums_put_totals(struct xpl_gviz *g, const struct xpl_trace_sums *sums,
                     struct xpl_arena *scratch);

#endif
