// SPDX-License-Identifier: Apache-2.0
// How long the chips of a TPU host were at work.  A core is on duty while the innermost op that
// runs is none that only waits; a chip is while one of its cores is.
// Rules: XProf's convert/duty_cycle_{tracker,combiner}.cc, and what release 2.24.2 does beyond the
// public source, found by asking it: an op's own time alone counts, not that of the ops inside it;
// ops that wait are recognized by their names too (xpl_tpu_op_waits); and a second, "high
// confidence" figure leaves out custom calls that neither compute nor communicate.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_DUTY_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_DUTY_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/device/tpu_ops.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;

struct xpl_duty_interval {
    uint64_t begin_ps, end_ps;
};
// A set of intervals, of which the total length is asked.
struct xpl_duty_set {
    struct xpl_arena *arena; // NULL: keep the sum alone, for intervals that come in order
    XPL_VEC(struct xpl_duty_interval) v;
    struct xpl_duty_interval last; // not yet counted, or not yet in v
    bool open;                     // `last` is something
    bool disordered;               // an interval began before `last`: a sum alone would be wrong
    uint64_t sum_ps;
};
bool xpl_duty_set_add(struct xpl_duty_set *s, uint64_t begin_ps, uint64_t end_ps) XPL_NODISCARD;
// Length of the union; consumes the set.
uint64_t xpl_duty_set_length(struct xpl_duty_set *s);

// What one plane contributes.
struct xpl_duty_plane {
    struct xpl_duty_set busy, confident;
    bool has_span;
    uint64_t begin_ps, end_ps; // of everything on its op and module lines
};
void xpl_duty_extend(struct xpl_duty_plane *p, uint64_t begin_ps, uint64_t duration_ps);
// Adds what another plane of the same chip contributes; `into` keeps intervals in its arena.
bool xpl_duty_plane_join(struct xpl_duty_plane *into, const struct xpl_duty_plane *from)
    XPL_NODISCARD;

// ---- one line of ops, in the order in which XProf sees it ----

struct xpl_duty_op {
    uint64_t begin_ps, duration_ps;
    bool active, confident;
    bool container; // counts only while nothing active runs inside it
};

struct xpl_duty_line {
    struct xpl_duty_plane *plane;
    struct xpl_arena *arena; // of the frames
    XPL_VEC(struct xpl_duty_frame) stack;
    XPL_VEC(struct xpl_duty_interval) pending;
};
void xpl_duty_line_begin(struct xpl_duty_line *l, struct xpl_duty_plane *plane,
                         struct xpl_arena *arena);
// False at an arena's limit.
bool xpl_duty_line_add(struct xpl_duty_line *l, const struct xpl_duty_op *op) XPL_NODISCARD;
bool xpl_duty_line_end(struct xpl_duty_line *l) XPL_NODISCARD;

// How an event of an op line counts.  `sparse`: the line is one of a SparseCore.
void xpl_duty_classify(struct xpl_tpu_plane *tp, const struct xpl_line *line,
                       const struct xpl_event *ev, bool sparse, struct xpl_duty_op *ret);

#endif
