// SPDX-License-Identifier: Apache-2.0
// From an OpStats and a time breakdown to the rows that people query with sqlite3.
#ifndef XPL_SERVER_ENGINE_OPSTATS_ROWS_H_
#define XPL_SERVER_ENGINE_OPSTATS_ROWS_H_

#include "analysis/opstats/opstats.h"
#include "base/arena.h"
#include "base/status.h"
#include "storage/store/rows.h"

// Version of the rows: it changes whenever they could differ from what an earlier build made.
enum { XPL_ROWS_VERSION = 4 };
// Whether the rows of OpStats of this variant (values.h) are those that people query: they belong
// to the answers that people see by default.
bool xpl_opstats_has_rows(const struct xpl_opstats *s, unsigned variant);

// Fills *ret with views of the stats and with arrays in `arena`.  `opstats` is a struct xpl_opstats
// or NULL, and `encoded` holds the same, encoded (struct xpl_store_writer_product).
xpl_status_t xpl_rows_from_product(const void *opstats, xpl_bytes_t encoded,
                                   struct xpl_arena *arena, struct xpl_rows *ret,
                                   struct xpl_error *err) XPL_NODISCARD;

// The rows of steps and memory, likewise: of `breakdown`, or, where that is NULL, of it encoded.
struct xpl_time_breakdown;
xpl_status_t xpl_rows_from_breakdown(const struct xpl_time_breakdown *breakdown,
                                     xpl_bytes_t encoded, struct xpl_arena *arena,
                                     struct xpl_rows *ret, struct xpl_error *err) XPL_NODISCARD;

#endif
