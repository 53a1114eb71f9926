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

// The memories whose rates are shown one by one.
enum xpl_memory {
    XPL_MEMORY_HBM,
    XPL_MEMORY_CMEM_READ,
    XPL_MEMORY_CMEM_WRITE,
    XPL_MEMORY_VMEM_READ,
    XPL_MEMORY_VMEM_WRITE,
    XPL_MEMORIES
};

// What tables of ops show of one op, or of many that are summed up.  All rates are over the whole
// time, not the time of its own.
struct xpl_op_record {
    double total_us, average_us, self_us, average_self_us;
    double dma_stall;                  // share of the time, 0 to 1
    double flop_rate, model_flop_rate; // GFLOP/s
    double bandwidth, intensity;       // GiB/s and FLOP/byte, over all memories
    double bandwidths[XPL_MEMORIES], intensities[XPL_MEMORIES]; // the same, of each memory
    // What limits the op: "Compute", "HBM", "CMEM Read", ... or "Unknown", a literal; and the
    // intensity of that resource.
    xpl_str_t bound_by;
    double bound_intensity;
};
void xpl_op_record_make(const struct xpl_op_metrics *m, const struct xpl_perf_env *env,
                        enum xpl_hardware hardware, struct xpl_op_record *ret);

// Why the rates of a record are physically impossible, a literal; NULL: they are not.  XProf's
// tools show them all the same.
const char *xpl_op_record_doubt(const struct xpl_op_metrics *m, const struct xpl_perf_env *env,
                                enum xpl_hardware hardware, const struct xpl_op_record *r);

#endif
