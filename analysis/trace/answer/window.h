// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/answer: which events of an index a window and a choice of rows select.
#ifndef XPL_ANALYSIS_TRACE_ANSWER_WINDOW_H_
#define XPL_ANALYSIS_TRACE_ANSWER_WINDOW_H_

#include "analysis/trace/answer/impl.h"
#include "analysis/trace/sums.h"

struct trc_window {
    uint64_t begin, end;              // ps
    bool all;                         // no window
    const struct xpl_trace_row *rows; // sorted; n_rows of them, 0: all rows
    size_t n_rows;
};
// Takes window and rows of the options.  INVALID_ARGUMENT: it ends before it begins;
// RESOURCE_EXHAUSTED.
xpl_status_t trc_window_init(struct trc_window *w, const struct xpl_trace_sums_options *o,
                             struct xpl_arena *arena, struct xpl_error *err) XPL_NODISCARD;
bool trc_window_has_row(const struct trc_window *w, uint32_t pid, uint32_t tid);
// Whether an event belongs to the window, and which part of it.
bool trc_window_cut(const struct trc_window *w, uint64_t ts, uint64_t dur, uint64_t *ret_begin,
                    uint64_t *ret_end);
// The first block of a level that may have events of the window.
uint64_t trc_window_first(const struct trc_window *w, const struct xpl_trace *t, unsigned level);
// Whether the window ends before `block` begins, and so before all later blocks of its level.
static inline bool trc_window_ends(const struct trc_window *w, const struct xpl_trace *t,
                                   uint64_t block) {
    return !w->all && trc_first_ts(t, block) >= w->end;
}

static inline uint64_t trc_plus(uint64_t a, uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

#endif
