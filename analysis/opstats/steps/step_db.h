// SPDX-License-Identifier: Apache-2.0
// Steps as collected from events into the step database of an OpStats.
// Rules: XProf's convert/step_events_to_steps_db.cc.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_DB_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_DB_H_

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/steps/event_span.h"

// A SparseCore: how long it was at work in each step.
struct xpl_sparse_core {
    uint32_t core_id;
    bool any;          // it was at work at some time, in a step or not
    uint64_t *busy_ps; // by position in xpl_steps.v
};

struct xpl_step_db_rules {
    bool has_device; // a step counts when a device computed in it; else when the host did
    bool all_count;  // all steps that have a time count
    bool cpu_device; // the host counts as a device
    // With cpu_device: device time that belongs to whatever step it falls into; may be NULL.
    const struct xpl_step *loose;
    const struct xpl_sparse_core *sparse; // may be NULL with n_sparse 0
    size_t n_sparse;
    bool remove_overlaps; // false on TPU, whose steps carry op metrics instead of spans
    // Leave out the first and the last step when there are more than 5: a sampled profile cuts
    // them.  TPU profiles have dropped them before.
    bool drop_incomplete;
};

// Time that devices computed in each precision, of all steps whether they count or not.
struct xpl_precision_ps {
    uint64_t compute_16bit_ps, compute_32bit_ps;
};

// Fills *ret, whose arrays and strings live in c->result; op metrics share the strings of `steps`.
// RESOURCE_EXHAUSTED at a limit, CANCELLED.
xpl_status_t xpl_steps_to_db(const struct xpl_convert *c, struct xpl_steps *steps,
                             const struct xpl_step_db_rules *rules, struct xpl_step_db *ret,
                             struct xpl_precision_ps *ret_precision, struct xpl_error *err)
    XPL_NODISCARD;

// The core that the others wait for, of all hosts: whose steps take longest in total, so that its
// mean is the time of the loop divided by its steps.  Where another core is slow in each step, the
// mean of the longest would be more.  SparseCores do not count; UINT32_MAX: there is none.
// `scratch` has one sum a core.  False at its limit.
bool xpl_steps_slowest_core(const struct xpl_step_db *db, struct xpl_arena *scratch, uint32_t *ret)
    XPL_NODISCARD;
// How long a step takes: on that core, or, of a step that it has not, on the slowest that has it.
uint64_t xpl_step_ps_on(const struct xpl_per_core_step_info *step, uint32_t slowest_core);

#endif
