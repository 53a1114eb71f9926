// SPDX-License-Identifier: Apache-2.0
// Steps as sets of typed time spans: which kind of work went on at each instant of a step.
// Rules: XProf's utils/event_span.{h,cc} (StepDetails, ToNonOverlappedEvents and the combiners).
//
// XProf keeps every event of every step and sorts them once.  Here a step keeps, per kind of work,
// the spans that still matter: host events of kind HOST_COMPUTE, nearly all of a CPU profile, are
// merged as they come (an event inside another of the same kind changes no sum), so memory follows
// the number of gaps, not of events.  Steps are collected per line, in parallel, and joined in line
// order.  Everything lives in the arenas it was collected in; one thread per struct xpl_steps.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_EVENT_SPAN_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_EVENT_SPAN_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/opstats.h"
#include "analysis/opstats/steps/timespan.h"
#include "analysis/xplane/xspace.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;
struct xpl_executions; // executions.h

// XProf numbers the cores of SparseCore planes from here on.
enum { XPL_SPARSE_CORE_INDEX_START = 1000000 };
// The number XProf gives a core in steps.
static inline uint32_t xpl_plane_core_id(const struct xpl_plane *p) {
    return (p->kind == XPL_PLANE_SPARSE_CORE ? (uint32_t)XPL_SPARSE_CORE_INDEX_START : 0) +
           (uint32_t)p->id;
}

enum xpl_step_marker { XPL_MARKER_HOST, XPL_MARKER_DEVICE };

struct xpl_span_list;

// The longest marker of one core.
struct xpl_core_marker {
    struct xpl_core_marker *next;
    uint32_t core_id;
    struct xpl_timespan span;
};
struct xpl_core_collectives {
    struct xpl_core_collectives *next;
    uint32_t core_id;
    XPL_VEC(struct xpl_all_reduce_info) v;
};
struct xpl_core_ops {
    struct xpl_core_ops *next;
    uint32_t core_id;
    struct xpl_op_metrics_db db;
};

// One step (StepDetails).  Of the markers only the longest count, of equal ones the first.
struct xpl_step {
    int64_t id; // group id
    struct xpl_timespan host_marker, device_marker;
    struct xpl_timespan work;    // of a host as a device: from its first op to the end of its last
    bool is_cut;                 // the profile ends within that
    xpl_str_t name;              // aliases the profile until it is copied into a step database
    uint64_t input_ps;           // time in HOST_WAIT_INPUT and HOST_TO_DEVICE, overlaps not removed
    struct xpl_span_list *spans; // one list per kind of work and per line
    struct xpl_core_marker *core_markers;
    struct xpl_core_collectives *collectives;
    struct xpl_core_ops *ops;
    // Host to device, device to host, device to device; NULL: all zero.
    struct xpl_device_memory_transfer *transfers;
};
enum { XPL_STEP_TRANSFERS = 3 };

// Steps by id (StepEvents).
struct xpl_steps {
    struct xpl_arena *arena;
    XPL_VEC(struct xpl_step) v; // in order of first appearance
    struct xpl_map by_id;       // id to index + 1
    // Of markers: what events belong to, where nothing groups them; NULL: groups.
    const struct xpl_executions *executions;
};

// An empty set whose steps and spans will live in `arena`.
void xpl_steps_init(struct xpl_steps *s, struct xpl_arena *arena);
// The step of that id, added when absent; valid until the next call.  NULL at the arena's limit.
struct xpl_step *xpl_steps_put(struct xpl_steps *s, int64_t id) XPL_NODISCARD;
// NULL when there is none.
struct xpl_step *xpl_steps_find(const struct xpl_steps *s, int64_t id);

// Functions that return bool report false when an arena is at its limit.
void xpl_step_add_host_marker(struct xpl_step *st, struct xpl_timespan span);
// Extends the time of its work.  A span without a duration changes nothing.
void xpl_step_add_work(struct xpl_step *st, struct xpl_timespan span);
bool xpl_step_add_device_marker(struct xpl_step *st, uint32_t core_id, struct xpl_timespan span,
                                struct xpl_arena *arena) XPL_NODISCARD;
bool xpl_step_add_span(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                       struct xpl_arena *arena) XPL_NODISCARD;
// As above where only sums matter: spans of a kind that overlap or meet become one.
bool xpl_step_add_union(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                        struct xpl_arena *arena) XPL_NODISCARD;
// The last span kept of a kind; until another is added, what lies in it changes nothing where only
// sums matter (all of HOST_COMPUTE, and unions).  Empty when there is none.
struct xpl_timespan xpl_step_open_span(const struct xpl_step *st, enum xpl_span_type type);
bool xpl_step_add_collective(struct xpl_step *st, uint32_t core_id,
                             const struct xpl_all_reduce_info *info, struct xpl_arena *arena)
    XPL_NODISCARD;
// HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE; others are ignored.
bool xpl_step_add_transfer(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                           uint64_t bytes, struct xpl_arena *arena) XPL_NODISCARD;
// The ops of one core in that step; a second call for a core replaces the first.
struct xpl_op_metrics_db *xpl_step_put_ops(struct xpl_step *st, uint32_t core_id,
                                           struct xpl_arena *arena) XPL_NODISCARD;

// Moves the spans of `src` to `dst`.
void xpl_step_join_spans(struct xpl_step *src, struct xpl_step *dst);

// Joins `src` into `dst` (UnionCombineStepEvents).  Takes over the contents of `src`, whose arena
// must outlive `dst`.
bool xpl_steps_union(struct xpl_steps *src, struct xpl_steps *dst) XPL_NODISCARD;
// Joins the steps that both have and drops the others (IntersectCombineStepEvents).  As upstream:
// an empty `dst` simply becomes `src`.
bool xpl_steps_intersect(struct xpl_steps *src, struct xpl_steps *dst) XPL_NODISCARD;

// The longest device marker, unless a host marker includes it or there is none (StepTime).
struct xpl_timespan xpl_step_time(const struct xpl_step *st);
bool xpl_step_has_marker(const struct xpl_step *st, uint32_t core_id);
// The longest marker of that core (StepTimeOnCore).
struct xpl_timespan xpl_step_time_on_core(const struct xpl_step *st, uint32_t core_id);

#endif
