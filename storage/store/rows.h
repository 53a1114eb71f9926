// SPDX-License-Identifier: Apache-2.0
// Rows that people query with sqlite3 (docs/schema.md).  Plain values; the caller fills them, the
// store copies them.  Any unsigned value above 2^63-1 is stored as NULL, so XPL_ROW_NULL is "not
// known".  Text is made valid UTF-8 and cut to 4,096 bytes.
#ifndef XPL_STORAGE_STORE_ROWS_H_
#define XPL_STORAGE_STORE_ROWS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define XPL_ROW_NULL UINT64_MAX
// At most this many ops, kernels, steps and allocators of a profile each are kept: the first ones
// given.
#define XPL_ROWS_MAX ((size_t)200000)

// One op of one host: an entry of OpStats' device_op_metrics_db or host_op_metrics_db.
struct xpl_op_row {
    bool on_device;         // false: an op of the host's CPU threads
    xpl_str_t module;       // HLO module, "" when not known
    xpl_str_t name;         // op
    xpl_str_t category;     // HLO category, or the framework op's type
    xpl_str_t framework_op; // provenance: the framework's name for where the op came from
    xpl_str_t source;       // "file.py:12", "" when not known
    uint64_t occurrences, time_ps, self_time_ps, min_time_ps, dma_stall_ps;
    uint64_t flops, bytes_accessed;
    uint64_t num_cores;
};

// One GPU kernel of one host: an entry of OpStats' kernel_stats_db.
struct xpl_kernel_row {
    xpl_str_t name, op_name;
    uint64_t occurrences, total_ns, min_ns, max_ns;
    uint64_t registers_per_thread, static_shmem_bytes, dynamic_shmem_bytes;
    uint64_t block[3], grid[3]; // x, y, z
    double occupancy_percent;   // NaN: NULL
    bool uses_tensor_core, tensor_core_eligible;
};

// One step on one device of one host: a row of the time breakdown.
struct xpl_step_row {
    uint64_t step_num, core_id;
    xpl_str_t name;
    uint64_t begin_ps, duration_ps;
    // Parts of the duration, which add up to it.
    uint64_t compute_ps, input_ps, output_ps, collective_ps, compile_ps, host_ps, idle_ps, other_ps;
};

// The use of one allocator of one host: an entry of the time breakdown's memory.
struct xpl_memory_row {
    xpl_str_t name;
    uint64_t peak_bytes, capacity_bytes;
};

// Rows that are written together: those of each kind are made of another product.
enum xpl_rows_kind {
    XPL_ROWS_OPS,   // ops and kernels
    XPL_ROWS_TIMES, // steps and memory
};

// The rows of one host, of one kind.
struct xpl_rows {
    const struct xpl_op_row *ops;
    size_t n_ops;
    const struct xpl_kernel_row *kernels;
    size_t n_kernels;
    // What the host is, for the table of profiles.
    xpl_str_t device_type;
    uint64_t device_cores; // 0: not known
    enum xpl_rows_kind kind;
    // Of TIMES alone.
    const struct xpl_step_row *steps;
    size_t n_steps;
    const struct xpl_memory_row *memory;
    size_t n_memory;
};

#endif
