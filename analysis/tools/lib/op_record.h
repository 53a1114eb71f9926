// SPDX-License-Identifier: Apache-2.0
// Rates and bounds that several tools derive from one op's metrics.
// Rules: XProf's convert/op_metrics_to_record.h and tsl's math_utils.h; the order of operations is
// theirs too, so that results agree to the last bit.  Pure functions.
#ifndef XPL_ANALYSIS_TOOLS_LIB_OP_RECORD_H_
#define XPL_ANALYSIS_TOOLS_LIB_OP_RECORD_H_

#include "analysis/opstats/opstats.h"

// OpMetrics.MemoryAccessed.memory_space as XProf reads it; on TPU, 2 and 3 are CMEM and VMEM.
enum { XPL_SPACE_HBM = 1, XPL_SPACE_CMEM = 2, XPL_SPACE_VMEM = 3 };

// 0 for a divisor next to 0.
static inline double xpl_safe_divide(double a, double b) {
    return -1e-10 < b && b < 1e-10 ? 0.0 : a / b;
}
static inline double xpl_pico_to_nano(uint64_t ps) {
    return (double)ps / 1e3;
}
static inline double xpl_pico_to_micro(uint64_t ps) {
    return (double)ps / 1e6;
}
static inline double xpl_giga_to_gibi(double giga) {
    return giga / ((1 << 30) / 1.0e9);
}
static inline double xpl_gibi_to_giga(double gibi) {
    return gibi * ((1 << 30) / 1.0e9);
}

// Peak bandwidth in GB/s; `index` is an XPL_BW_* position.  The HBM peak stands in for missing
// ones.
double xpl_peak_bandwidth(const struct xpl_perf_env *env, size_t index);

// What limits the op: "Compute", "HBM", "CMEM Read", ... or "Unknown" (SetRooflineMetrics).
xpl_str_t xpl_op_bound_by(const struct xpl_op_metrics *m, const struct xpl_perf_env *env,
                          enum xpl_hardware hardware);

#endif
