// SPDX-License-Identifier: Apache-2.0
// Running statistics of a list of numbers, and how tools print numbers in texts.
// Rules: tsl::Stat (tsl/util/stats_calculator.h) and tsl's format_utils.h, quirks included, since
// users compare these texts: the maximum starts at the smallest positive normal double, so samples
// of 0 never count as "all the same"; the deviation of one sample of 0 is then 0/0, and shows as
// "-nan".
#ifndef XPL_ANALYSIS_TOOLS_LIB_SAMPLES_H_
#define XPL_ANALYSIS_TOOLS_LIB_SAMPLES_H_

#include <float.h>
#include <stdint.h>

#include "analysis/tools/lib/op_record.h" // xpl_safe_divide

// tsl::Stat<double>.
struct xpl_samples {
    double max, min, sum, squared_sum;
    uint64_t count;
};
#define XPL_SAMPLES_INIT ((struct xpl_samples){.max = DBL_MIN, .min = DBL_MAX})

void xpl_samples_add(struct xpl_samples *s, double v);

// message StepSummary; all 0 without samples.
struct xpl_step_summary {
    double average, standard_deviation, minimum, maximum;
};
struct xpl_step_summary xpl_samples_summary(const struct xpl_samples *s);

// tsl::Stat<uint64_t>: sums wrap.
struct xpl_ps_samples {
    uint64_t max, min, sum, count;
};
#define XPL_PS_SAMPLES_INIT ((struct xpl_ps_samples){.min = UINT64_MAX})

void xpl_ps_samples_add(struct xpl_ps_samples *s, uint64_t ps);
// Average in whole ps; 0 without samples.
uint64_t xpl_ps_samples_average(const struct xpl_ps_samples *s);

// A number with a fixed count of decimals (OneDigit, TwoDigits, ThreeDigits): "" when that takes
// 32 characters or more, "-nan" for whatever is not a number.
struct xpl_digits {
    char z[32];
};
struct xpl_digits xpl_digits(double v, int decimals);

// double to uint64_t as XProf's release converts on x86-64, defined for every input: what does not
// fit is 2^63, but negative numbers wrap.
uint64_t xpl_to_u64(double v);

static inline double xpl_ps_to_ms(uint64_t ps) {
    return (double)ps / 1e9;
}

#endif
