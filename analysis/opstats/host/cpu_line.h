// SPDX-License-Identifier: Apache-2.0
// Ops on one host thread counted as a device would count them: how often, how long, and how long
// without the ops inside.  docs/cpu-as-device.md states the rule.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_CPU_LINE_H_
#define XPL_ANALYSIS_OPSTATS_HOST_CPU_LINE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/host/host_ops.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/xplane/xspace.h"

// One op of one line.  Strings alias the profile, or the line's arena.
struct xpl_cpu_op {
    const struct xpl_host_op *framework; // NULL: an op of an XLA program
    xpl_str_t name, module, tf_op;
    uint64_t program_id;
    bool has_program_id, is_eager;
    uint8_t span; // what it is to its step, enum xpl_span_type; 0 until it is set
    uint32_t occurrences;
    uint64_t time_ps, self_time_ps, min_time_ps;
};

struct xpl_cpu_line {
    struct xpl_arena *arena;
    XPL_VEC(struct xpl_cpu_op) ops; // in the order in which they first began
    uint64_t begin_ps, end_ps;      // of the first op to begin and the last to end
    uint64_t n_events;
    // private
    struct xpl_map by_program, by_module, by_framework_op;
    struct xpl_intern *strings;
    XPL_VEC(struct xpl_cpu_open) open;
    struct xpl_cpu_recent *recent; // NULL: none, keys are not remembered
    uint32_t generation;
};

// Keys that lines read one after another remember, see xpl_cpu_line_add_known.  Zero-initialise.
struct xpl_cpu_memory {
    struct xpl_cpu_recent *recent;
    uint32_t generation;
};
// An empty line in `arena` that uses the memory, which must last as long as it is added to; what
// other lines left there is forgotten.  NULL at the arena's limit.
struct xpl_cpu_line *xpl_cpu_line_new(struct xpl_cpu_memory *m, struct xpl_arena *arena)
    XPL_NODISCARD;

// What an event says of itself: statistics hlo_op, hlo_module, program_id and tf_op.
struct xpl_cpu_event {
    struct xpl_stat hlo_op, module;
    uint64_t program_id;
    bool has_module, has_program_id;
    xpl_str_t tf_op;
};
// The same as it stands in the file, where hlo_op and hlo_module are references and there is no
// tf_op: equal keys say the same.
struct xpl_cpu_key {
    uint64_t hlo_op, module, program_id; // UINT64_MAX: absent
    uint32_t md;                         // position of the event's metadata
};
// Count an event; the op it belongs to, valid until the next event.  NULL at the arena's limit.
// `key` (may be NULL) is remembered as meaning that op.
struct xpl_cpu_op *xpl_cpu_line_add_xla(struct xpl_cpu_line *l, const struct xpl_cpu_event *e,
                                        const struct xpl_cpu_key *key, struct xpl_timespan span)
    XPL_NODISCARD;
// Counts an event whose key is remembered.  *ret is NULL, and nothing counted, when it is not.
bool xpl_cpu_line_add_known(struct xpl_cpu_line *l, const struct xpl_cpu_key *key,
                            struct xpl_timespan span, struct xpl_cpu_op **ret) XPL_NODISCARD;
struct xpl_cpu_op *xpl_cpu_line_add_framework(struct xpl_cpu_line *l, const struct xpl_host_op *op,
                                              bool is_eager, struct xpl_timespan span)
    XPL_NODISCARD;
// Call once after the last event; not for a piece of a line that others follow.
void xpl_cpu_line_finish(struct xpl_cpu_line *l);

// Ops that one piece of a line left open for the next.  Zero-initialise but for `arena`.
struct xpl_cpu_carry {
    struct xpl_arena *arena;
    XPL_VEC(struct xpl_carried_op) v; // innermost last
};
// An event of the next piece that counts, and that nothing in its own piece encloses.
void xpl_cpu_carry_pass(struct xpl_cpu_carry *c, struct xpl_timespan span);
// Adds what the piece left open.  The piece must last as long as *c.
bool xpl_cpu_carry_merge(struct xpl_cpu_carry *c, struct xpl_cpu_line *l) XPL_NODISCARD;
// The line is over.
void xpl_cpu_carry_finish(struct xpl_cpu_carry *c);

#endif
