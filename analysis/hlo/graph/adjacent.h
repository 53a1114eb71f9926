// SPDX-License-Identifier: Apache-2.0
// The operands and the users of an instruction, as in XProf's graph_viewer (type=adj_nodes).
#ifndef XPL_ANALYSIS_HLO_GRAPH_ADJACENT_H_
#define XPL_ANALYSIS_HLO_GRAPH_ADJACENT_H_

#include "analysis/hlo/hlo_module.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/exec.h"
#include "base/status.h"

// The instruction of that name, with or without '%', whatever its letters' case; the first in the
// order of the module.  UINT32_MAX: none.
uint32_t xpl_hlo_find_node(const struct xpl_hlo_module *m, xpl_str_t name);
// Likewise a computation.
uint32_t xpl_hlo_find_computation(const struct xpl_hlo_module *m, xpl_str_t name);

// Appends {"consumer_names":[...],"operand_names":[...]} of an instruction of a module that was
// read in full.  Operands come as often as they are used; in place of instructions whose names
// begin with get-tuple-element come their own neighbours.  RESOURCE_EXHAUSTED at the limit of
// `scratch` or `out`, or after 2^24 uses: through get-tuple-elements a program can name one
// instruction, or none, any number of times; CANCELLED when the exec says so.
xpl_status_t xpl_hlo_adjacent(const struct xpl_hlo_module *m, uint32_t instruction,
                              struct xpl_exec *exec, struct xpl_arena *scratch, struct xpl_buf *out,
                              struct xpl_error *err) XPL_NODISCARD;

#endif
