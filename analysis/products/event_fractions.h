// SPDX-License-Identifier: Apache-2.0
// Which part of each step of a TPU or GPU events of some name take, by plane.  Rule: XProf's
// event_time_fraction_analyzer, as the released package has it.
#ifndef XPL_ANALYSIS_PRODUCTS_EVENT_FRACTIONS_H_
#define XPL_ANALYSIS_PRODUCTS_EVENT_FRACTIONS_H_

#include "analysis/products/values.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_xspace;

// Events count whose name has `word` in it, whose group is a step of their plane and that say how
// long they took on the device (device_duration_ps, which profilers of GPUs do not write); of the
// word "barrier-cores" those of 0 and of 1250 ps, which stand for no wait, do not.  Of three and
// more steps with such events the first and the last are left out, since they may have been
// recorded in part; of two the one that is shorter than a hundredth of the other.  *ret lives in
// `arena` and does not refer to `xs`; temporaries take up to `limit` bytes.  DATA_LOSS,
// RESOURCE_EXHAUSTED, CANCELLED.
xpl_status_t xpl_event_fractions_make(const struct xpl_xspace *xs, xpl_str_t word,
                                      struct xpl_exec *exec, struct xpl_arena *arena, size_t limit,
                                      struct xpl_event_fractions *ret, struct xpl_error *err)
    XPL_NODISCARD;

#endif
