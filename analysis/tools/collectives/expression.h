// SPDX-License-Identifier: Apache-2.0
// What the text of an instruction says of a collective operation.  Pure functions.
#ifndef XPL_ANALYSIS_TOOLS_COLLECTIVES_EXPRESSION_H_
#define XPL_ANALYSIS_TOOLS_COLLECTIVES_EXPRESSION_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct xpl_collective_text {
    xpl_str_t kind;      // "all-reduce", ..., without "-start" and "-done"; a literal
    bool starts, ends;   // an asynchronous one: its beginning, its end
    uint64_t bytes;      // that it moves, as NCCL's tests count (below); 0: not known
    uint64_t group_size; // participants of a group; 0: not known
    uint64_t n_groups;   // 0: not known
};

// Reads an instruction as XLA writes it ("%all-reduce.5 = f32[8]{0} all-reduce(f32[8]{0} %x),
// replica_groups={{0,1}}, ..."), or no more than its category or name.  False: no collective.
//
// bytes: what each participant brings of an all-reduce, a reduce-scatter, an all-to-all, a permute
// or a broadcast; what each one has in the end of an all-gather.
bool xpl_collective_read(xpl_str_t expression, xpl_str_t category, struct xpl_collective_text *ret);

// By which factor the rate of the links exceeds that of the operation, with `n` participants, by
// the rules of NCCL's tests; 0: not known.
double xpl_collective_bus_factor(xpl_str_t kind, uint64_t n);

#endif
