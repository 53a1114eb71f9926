// SPDX-License-Identifier: Apache-2.0
// Instructions of the HLO programs of a profile, with their measurements.  Private to this folder;
// independent of SQLite.
#ifndef XPL_SQL_INSTRUCTIONS_H_
#define XPL_SQL_INSTRUCTIONS_H_

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

// One instruction of one program; texts that are not known have a NULL pointer.
struct xpl_sql_instruction {
    uint64_t program_id;
    xpl_str_t module, name, category, framework_op, source;
    // From the program; unknown for an instruction whose program the profile lacks.
    xpl_str_t computation, opcode, shape;
    // Measurements; 0 for an instruction that never ran by itself.
    uint64_t occurrences, time_ps, self_time_ps, flops, bytes_accessed;
};

struct xpl_sql_instructions {
    struct xpl_arena arena; // of the rows and their texts, which are copies
    // By program id; instructions as the program has them, then those that it lacks.
    struct xpl_sql_instruction *v;
    uint32_t *by_name; // numbers of the rows, by name and number
    uint32_t n;
};

// Reads all programs and converts the events.  `cpu_as_device`: of a session without accelerators,
// whose ops on host threads count as a device's (docs/cpu-as-device.md).  The arena of `ret` is
// prepared by the caller, who frees it.  RESOURCE_EXHAUSTED at its limit, or at `limit` bytes of
// another arena, CANCELLED; *ret is then empty, with its arena.
xpl_status_t xpl_sql_instructions_read(const struct xpl_xspace *xs, bool cpu_as_device,
                                       struct xpl_exec *exec, size_t limit,
                                       struct xpl_sql_instructions *ret, struct xpl_error *err)
    XPL_NODISCARD;
// The first position in by_name whose row's name is not before `name`.
uint32_t xpl_sql_instructions_find(const struct xpl_sql_instructions *l, xpl_str_t name);

#endif
