// SPDX-License-Identifier: Apache-2.0
// For analysis/trace and its tests: arguments of one event, from its index and its profile.
#ifndef XPL_ANALYSIS_TRACE_ANSWER_ARGS_H_
#define XPL_ANALYSIS_TRACE_ANSWER_ARGS_H_

#include "analysis/trace/index/read.h"

enum { TRC_MAX_ARGS = 512 };
struct trc_value {
    xpl_str_t name, text;
    uint32_t kind;  // TRC_ARG_*
    uint64_t bits;  // INT, UINT, DOUBLE
    uint32_t frame; // number of the stack frame that the text is, 0: none
};
// The index's stack frames by their texts, for an answer with many arguments.
struct trc_frames {
    struct xpl_arena *arena;
    uint32_t *by_text; // numbers - 1; NULL until enough were searched one by one
    uint32_t scans;
};
// Arguments of `e`, from the index and from the profile that it was built from; at most
// TRC_MAX_ARGS.  DATA_LOSS when the profile does not have the event.
xpl_status_t trc_read_args(const struct xpl_trace *t, xpl_bytes_t profile,
                           const struct trc_event *e, struct trc_frames *frames,
                           struct trc_value *ret, size_t *ret_n, struct xpl_error *err)
    XPL_NODISCARD;

#endif
