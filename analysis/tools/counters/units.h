// SPDX-License-Identifier: Apache-2.0
// Utilization of a TPU's units, from its hardware counters: for each unit the achieved and the
// possible rate.  Tables map counters to units for the two types that XProf 2.24.2 knows;
// tests/parity/counter_units.py generates them from XProf's answers.
#ifndef XPL_ANALYSIS_TOOLS_COUNTERS_UNITS_H_
#define XPL_ANALYSIS_TOOLS_COUNTERS_UNITS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/products/values.h"

struct xpl_exec;

enum { XPL_UNITS_MAX = 128 }; // rows of a table

enum xpl_tpu_unit_measure {
    XPL_UNIT_INSTRUCTIONS,
    XPL_UNIT_CYCLES,
    XPL_UNIT_BYTES,
    XPL_UNIT_PERCENT,
};
extern const char *const xpl_tpu_unit_measure_names[];

// When a row is shown.
enum xpl_tpu_unit_when {
    XPL_UNIT_ALWAYS,
    XPL_UNIT_CYCLES_COUNTED, // its cycles are not 0
    XPL_UNIT_TRAFFIC,        // the row that is its whole is shown, and not 0
};

// The possible rate.
enum xpl_tpu_unit_peak {
    XPL_PEAK_CYCLES, // cycles * factor
    XPL_PEAK_SHARE,  // cycles / factor, cut to a whole number
    XPL_PEAK_HBM,    // bytes of HBM in that time
    XPL_PEAK_ICI,    // bytes of a link between chips in that time
    XPL_PEAK_WHOLE,  // the achieved rate of another row
};

// Counters `first`, `first + step`, ..., n of them, each `halves` / 2 times.
struct xpl_tpu_unit_run {
    uint32_t first, step;
    uint8_t n;
    uint16_t halves;
};
struct xpl_tpu_unit_row {
    const char *name;
    uint8_t node, measure, when, peak; // enum above
    uint16_t first_run, n_runs;
    union {
        uint32_t cycles; // id of the counter
        uint32_t whole;  // index of the row
    };
    uint8_t factor;
};
struct xpl_tpu_unit_rows {
    const struct xpl_tpu_unit_run *runs;
    const struct xpl_tpu_unit_row *v;
    size_t n; // at most XPL_UNITS_MAX
};
extern const struct xpl_tpu_unit_rows xpl_tpu_unit_rows_v6e, xpl_tpu_unit_rows_v7x;

struct xpl_tpu_unit_model {
    const char *type;            // device_type_string
    double hertz;                // of its cycles
    double hbm_bytes_per_second; // of one core
    const struct xpl_tpu_unit_rows *rows;
};
// NULL: no table for that type.
const struct xpl_tpu_unit_model *xpl_tpu_unit_model_find(xpl_str_t device_type);

struct xpl_tpu_unit {
    const struct xpl_tpu_unit_row *row;
    double achieved, peak;
};
// Readings that belong together.
struct xpl_tpu_unit_sample {
    const struct xpl_counter *v;
    size_t n;
    bool sum;          // of several readings of a counter their sum counts, else the last in time
    uint64_t clock;    // cycles of a tensor core whose counter of cycles is missing or 0
    bool clock_counts; // of every tensor core, whatever its counter says
};
// `order`, below, has room for the sample's readings, for the call.

// Cycles of the tensor core that counted the most, by their counters; 0 when none did.
uint64_t xpl_tpu_units_clock(const struct xpl_tpu_unit_model *model,
                             const struct xpl_tpu_unit_sample *sample,
                             const struct xpl_counter **order);
// The rows of one sample that are shown, in the table's order: returns how many of `ret`.  Sums
// wrap around at 2^64.
size_t xpl_tpu_units_compute(const struct xpl_tpu_unit_model *model,
                             const struct xpl_tpu_unit_sample *sample,
                             const struct xpl_counter **order,
                             struct xpl_tpu_unit ret[XPL_UNITS_MAX]);

#endif
