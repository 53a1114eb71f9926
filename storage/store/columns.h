// SPDX-License-Identifier: Apache-2.0
// The columns of the tables of rows, once for both databases: what creates the tables, what inserts
// into them and what copies into them follow these lists, except that PostgreSQL's schema creates
// memory_rows itself.  docs/schema.md describes them.
//
// A list changes together with a new step in both schemas, to which the creation of its table moves
// and which drops the old one: rows can be made again.
#ifndef XPL_STORAGE_STORE_COLUMNS_H_
#define XPL_STORAGE_STORE_COLUMNS_H_

#include "storage/store/rows.h"

// C(column, type, member of the row); every table begins with profile_id and seq.  Types are those
// of enum xpl_column_type below.
#define XPL_OP_COLUMNS(C)                                                                          \
    C(on_device, FLAG_NEEDED, on_device)                                                           \
    C(name_id, NAME_NEEDED, name)                                                                  \
    C(module_id, NAME, module)                                                                     \
    C(category_id, NAME, category)                                                                 \
    C(framework_op_id, NAME, framework_op)                                                         \
    C(source_id, NAME, source)                                                                     \
    C(occurrences, U64, occurrences)                                                               \
    C(time_ps, U64, time_ps)                                                                       \
    C(self_time_ps, U64, self_time_ps)                                                             \
    C(min_time_ps, U64, min_time_ps)                                                               \
    C(dma_stall_ps, U64, dma_stall_ps)                                                             \
    C(flops, U64, flops)                                                                           \
    C(bytes_accessed, U64, bytes_accessed)                                                         \
    C(num_cores, U64, num_cores)
#define XPL_KERNEL_COLUMNS(C)                                                                      \
    C(name_id, NAME_NEEDED, name)                                                                  \
    C(op_name_id, NAME, op_name)                                                                   \
    C(occurrences, U64, occurrences)                                                               \
    C(total_ns, U64, total_ns)                                                                     \
    C(min_ns, U64, min_ns)                                                                         \
    C(max_ns, U64, max_ns)                                                                         \
    C(registers_per_thread, U64, registers_per_thread)                                             \
    C(static_shmem_bytes, U64, static_shmem_bytes)                                                 \
    C(dynamic_shmem_bytes, U64, dynamic_shmem_bytes)                                               \
    C(block_x, U64, block[0])                                                                      \
    C(block_y, U64, block[1])                                                                      \
    C(block_z, U64, block[2])                                                                      \
    C(grid_x, U64, grid[0])                                                                        \
    C(grid_y, U64, grid[1])                                                                        \
    C(grid_z, U64, grid[2])                                                                        \
    C(occupancy_percent, REAL, occupancy_percent)                                                  \
    C(uses_tensor_core, FLAG, uses_tensor_core)                                                    \
    C(tensor_core_eligible, FLAG, tensor_core_eligible)
#define XPL_STEP_COLUMNS(C)                                                                        \
    C(step_num, U64, step_num)                                                                     \
    C(core_id, U64, core_id)                                                                       \
    C(name_id, NAME, name)                                                                         \
    C(begin_ps, U64, begin_ps)                                                                     \
    C(duration_ps, U64, duration_ps)                                                               \
    C(compute_ps, U64, compute_ps)                                                                 \
    C(input_ps, U64, input_ps)                                                                     \
    C(output_ps, U64, output_ps)                                                                   \
    C(collective_ps, U64, collective_ps)                                                           \
    C(compile_ps, U64, compile_ps)                                                                 \
    C(host_ps, U64, host_ps)                                                                       \
    C(idle_ps, U64, idle_ps)                                                                       \
    C(other_ps, U64, other_ps)
#define XPL_MEMORY_COLUMNS(C)                                                                      \
    C(name_id, ALLOCATOR, name)                                                                    \
    C(peak_bytes, U64, peak_bytes)                                                                 \
    C(capacity_bytes, U64, capacity_bytes)

enum xpl_column_type {
    XPL_COLUMN_NAME,        // xpl_str_t: the id of a text, NULL for ""
    XPL_COLUMN_NAME_NEEDED, // xpl_str_t: the id of a text, also of ""
    XPL_COLUMN_ALLOCATOR,   // xpl_str_t: as NAME_NEEDED; PostgreSQL has the text in its place
    XPL_COLUMN_U64,         // uint64_t: NULL above 2^63-1
    XPL_COLUMN_REAL,        // double: NULL unless finite
    XPL_COLUMN_FLAG,        // bool
    XPL_COLUMN_FLAG_NEEDED, // bool: the column is NOT NULL
};

struct xpl_rows_column {
    enum xpl_column_type type;
    size_t at; // of the member, in the row
};

// In the order in which rows are written.
enum xpl_rows_table {
    XPL_ROWS_TABLE_OPS,
    XPL_ROWS_TABLE_KERNELS,
    XPL_ROWS_TABLE_STEPS,
    XPL_ROWS_TABLE_MEMORY
};
enum { XPL_ROWS_TABLES = XPL_ROWS_TABLE_MEMORY + 1 };

// The rows of one table.
struct xpl_rows_set {
    const struct xpl_rows_column *columns;
    size_t n_columns;
    const char *rows; // borrowed from the struct xpl_rows
    size_t n, row_size;
};

// Those of each table, at most XPL_ROWS_MAX.  Returns how many rows all have.
size_t xpl_rows_sets(const struct xpl_rows *rows, struct xpl_rows_set ret[XPL_ROWS_TABLES]);

// The member of row `i` that the column is made of.
static inline const void *xpl_rows_member(const struct xpl_rows_set *set, size_t i,
                                          const struct xpl_rows_column *c) {
    return set->rows + i * set->row_size + c->at;
}

#endif
