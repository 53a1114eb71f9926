// The registry of tools: name, the options it takes, the product it needs, and the function that
// turns the product into the tool's answer.  One file per tool.
#ifndef XPL_ANALYSIS_TOOLS_TOOL_H_
#define XPL_ANALYSIS_TOOLS_TOOL_H_

#include <stdbool.h>
#include <stddef.h>

#include "analysis/trace/trace.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_opstats;

struct xpl_option {
    xpl_str_t key, value;
};

// Parsed options that shape an answer.  Unknown keys were refused (or, for XProf's clients,
// dropped) before.
struct xpl_tool_options {
    enum { XPL_GROUP_BY_PROGRAM, XPL_GROUP_BY_CATEGORY, XPL_GROUP_BY_PROVENANCE } group_by;
    bool cpu_as_device; // a conversion option: products are kept apart by it
    bool xprof_exact;   // XProf's answer even where it is wrong (docs/differences.md)
    bool recompute;     // use_saved_result=false: nothing stored may be used; no other effect
    // trace_viewer@; its texts are views of the options they were parsed from
    struct xpl_trace_options trace;
};

enum xpl_product {
    XPL_PRODUCT_OP_STATS,       // struct xpl_opstats, of one host or combined
    XPL_PRODUCT_MEMORY_PROFILE, // the finished answer of one host
    XPL_PRODUCT_TRACE_VIEWER,   // likewise
    XPL_PRODUCT_TRACE,          // the index of analysis/trace; xpl_trace_answer over the hosts'
};

struct xpl_tool {
    const char *name;
    const char *alias; // XProf's other name for it, or NULL
    const char *content_type;
    enum xpl_product product;
    bool one_host;              // refuses more than one host
    const char *const *options; // NULL-terminated keys besides the common ones
    // Appends the answer to `out`.  `scratch` is for temporaries.  Deterministic.  NULL where the
    // product is the answer.
    xpl_status_t (*render)(const struct xpl_opstats *stats, const struct xpl_tool_options *opt,
                           struct xpl_arena *scratch, struct xpl_buf *out, struct xpl_error *err);
};

// All tools, by name; *ret_n of them.
const struct xpl_tool *xpl_tools(size_t *ret_n);
// By name or alias; NULL when there is none.
const struct xpl_tool *xpl_tool_find(xpl_str_t name);

// Options that every tool takes, as in xpl_tool.options.
const char *const *xpl_tool_common_options(void);
// What an option may be set to, such as "program|category|provenance"; NULL for unknown keys.
const char *xpl_tool_option_values(xpl_str_t key);
// Reads options for `tool`; of a key given twice the last one counts, absent ones have defaults
// (group_by program, xprof_exact false, use_saved_result true).
// strict (our own clients): an unknown key or value is INVALID_ARGUMENT, and the message lists what
// is valid; cpu_as_device is true by default.  Not strict (XProf's clients): unknown keys and
// values are passed over as XProf does, and cpu_as_device and xprof_exact are not looked at, so the
// answer is the one XProf would give as far as our options go.
xpl_status_t xpl_tool_options_parse(const struct xpl_tool *tool, const struct xpl_option *options,
                                    size_t n, bool strict, struct xpl_tool_options *ret,
                                    struct xpl_error *err) XPL_NODISCARD;

xpl_status_t xpl_tool_overview_page(const struct xpl_opstats *, const struct xpl_tool_options *,
                                    struct xpl_arena *, struct xpl_buf *, struct xpl_error *);
xpl_status_t xpl_tool_input_pipeline(const struct xpl_opstats *, const struct xpl_tool_options *,
                                     struct xpl_arena *, struct xpl_buf *, struct xpl_error *);
xpl_status_t xpl_tool_op_profile(const struct xpl_opstats *, const struct xpl_tool_options *,
                                 struct xpl_arena *, struct xpl_buf *, struct xpl_error *);
xpl_status_t xpl_tool_framework_op_stats(const struct xpl_opstats *,
                                         const struct xpl_tool_options *, struct xpl_arena *,
                                         struct xpl_buf *, struct xpl_error *);
xpl_status_t xpl_tool_kernel_stats(const struct xpl_opstats *, const struct xpl_tool_options *,
                                   struct xpl_arena *, struct xpl_buf *, struct xpl_error *);

#endif
