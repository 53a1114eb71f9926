// SPDX-License-Identifier: Apache-2.0
// Aligned text tables for a terminal, and how numbers are shown to a person.
#ifndef XPL_CLI_TABLE_H_
#define XPL_CLI_TABLE_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

struct xpl_table;

// Columns are "Name" (left-aligned) or ">Name" (right-aligned).  NULL when out of memory, as all
// later calls on NULL do nothing.
struct xpl_table *xpl_table_new(const char *const *columns, size_t n);
void xpl_table_free(struct xpl_table *t);
// Cells fill rows from left to right.  Text longer than `max` code points ends in an ellipsis.  In
// cells and headings control characters are '?' (xpl_utf8_shown): lines stay lines.
void xpl_table_text(struct xpl_table *t, xpl_str_t s, size_t max);
void xpl_table_printf(struct xpl_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void xpl_table_time_ps(struct xpl_table *t, uint64_t ps);
// A moment since 1970, in local time with its zone; '?' for 0.
void xpl_table_when(struct xpl_table *t, int64_t unix_ms);
void xpl_table_bytes(struct xpl_table *t, uint64_t bytes);
void xpl_table_percent(struct xpl_table *t, double fraction);
// A dash, for what is not known.
void xpl_table_unknown(struct xpl_table *t);
// A rate of floating-point operations; a dash for 0, which is what is not known.
void xpl_table_flop_rate(struct xpl_table *t, double giga_per_second);
// A rate of bytes; likewise.
void xpl_table_byte_rate(struct xpl_table *t, double gibi_per_second);
size_t xpl_table_rows(const struct xpl_table *t);
// False when memory ran out while the table was filled (nothing is printed then).
bool xpl_table_print(const struct xpl_table *t, FILE *out);
// The same, and frees it.
bool xpl_table_finish(struct xpl_table *t, FILE *out);

// "1.23 ms", "45.6 us": three significant digits and a unit.
void xpl_show_time_ps(char out[32], uint64_t ps);
// "2026-11-28 20:04:49 +0100", of a moment since 1970; '?' for 0.
void xpl_show_when(char out[32], int64_t unix_ms);
// A change in percent, with its sign; above 300% "×4.2": how many times as much.
void xpl_show_change(char out[32], double percent, int digits);
// "12.3 MiB".
void xpl_show_bytes(char out[32], uint64_t bytes);

#endif
