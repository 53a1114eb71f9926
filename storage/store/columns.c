// SPDX-License-Identifier: Apache-2.0
#include "storage/store/columns.h"

#define OP(column, type, member)     {XPL_COLUMN_##type, offsetof(struct xpl_op_row, member)},
#define KERNEL(column, type, member) {XPL_COLUMN_##type, offsetof(struct xpl_kernel_row, member)},
#define STEP(column, type, member)   {XPL_COLUMN_##type, offsetof(struct xpl_step_row, member)},
#define MEMORY(column, type, member) {XPL_COLUMN_##type, offsetof(struct xpl_memory_row, member)},
static const struct xpl_rows_column op_columns[] = {XPL_OP_COLUMNS(OP)},
                                    kernel_columns[] = {XPL_KERNEL_COLUMNS(KERNEL)},
                                    step_columns[] = {XPL_STEP_COLUMNS(STEP)},
                                    memory_columns[] = {XPL_MEMORY_COLUMNS(MEMORY)};

// `given` is not read where n is 0, and may be NULL then.
static struct xpl_rows_set set_of(const struct xpl_rows_column *columns, size_t n_columns,
                                  const void *given, size_t n, size_t row_size) {
    return (struct xpl_rows_set){.columns = columns,
                                 .n_columns = n_columns,
                                 .rows = given,
                                 .n = n < XPL_ROWS_MAX ? n : XPL_ROWS_MAX,
                                 .row_size = row_size};
}
#define SET_OF(columns, given, n)                                                                  \
    set_of(columns, sizeof(columns) / sizeof *(columns), given, n, sizeof *(given))

size_t xpl_rows_sets(const struct xpl_rows *rows, struct xpl_rows_set ret[XPL_ROWS_TABLES]) {
    ret[XPL_ROWS_TABLE_OPS] = SET_OF(op_columns, rows->ops, rows->n_ops);
    ret[XPL_ROWS_TABLE_KERNELS] = SET_OF(kernel_columns, rows->kernels, rows->n_kernels);
    ret[XPL_ROWS_TABLE_STEPS] = SET_OF(step_columns, rows->steps, rows->n_steps);
    ret[XPL_ROWS_TABLE_MEMORY] = SET_OF(memory_columns, rows->memory, rows->n_memory);
    size_t n = 0;
    for (size_t t = 0; t < XPL_ROWS_TABLES; t++)
        n += ret[t].n;
    return n;
}
