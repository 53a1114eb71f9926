// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/op_record.h"

double xpl_peak_bandwidth(const struct xpl_perf_env *env, size_t index) {
    return env->peak_bws_giga_bytes_per_second.n > index
               ? env->peak_bws_giga_bytes_per_second.v[index]
               : env->peak_hbm_bw_giga_bytes_per_second;
}

struct traffic {
    uint64_t hbm, cmem_read, cmem_write, vmem_read, vmem_write;
};

static struct traffic measure(const struct xpl_op_metrics *m) {
    struct traffic t = {0};
    for (size_t i = 0; i < m->memory_accessed_breakdown.n; i++) {
        const struct xpl_memory_accessed *const a = &m->memory_accessed_breakdown.v[i];
        const bool read = a->operation_type == XPL_MEM_OP_READ;
        const bool write = a->operation_type == XPL_MEM_OP_WRITE;
        if (a->memory_space == XPL_SPACE_HBM) t.hbm += a->bytes_accessed;
        if (a->memory_space == XPL_SPACE_CMEM && read) t.cmem_read += a->bytes_accessed;
        if (a->memory_space == XPL_SPACE_CMEM && write) t.cmem_write += a->bytes_accessed;
        if (a->memory_space == XPL_SPACE_VMEM && read) t.vmem_read += a->bytes_accessed;
        if (a->memory_space == XPL_SPACE_VMEM && write) t.vmem_write += a->bytes_accessed;
    }
    // Older profiles have no breakdown: all of it counts as HBM traffic.
    if (m->memory_accessed_breakdown.n == 0) t.hbm = m->bytes_accessed;
    return t;
}

// The resource used most, relative to its peak; the first of equal ones.
struct bottleneck {
    xpl_str_t resource;
    double utilization;
};

static void consider(struct bottleneck *b, xpl_str_t resource, double rate, double peak) {
    const double utilization = xpl_safe_divide(rate, peak);
    if (b->utilization < utilization) *b = (struct bottleneck){resource, utilization};
}

static double gibi_rate(uint64_t bytes, uint64_t time_ps) {
    return xpl_giga_to_gibi(xpl_safe_divide((double)bytes, xpl_pico_to_nano(time_ps)));
}

// A resource that the op did not touch, or whose peak is unknown, bounds nothing.
static void consider_on_chip(struct bottleneck *b, xpl_str_t resource, uint64_t bytes,
                             uint64_t time_ps, double peak) {
    if (bytes && peak != 0)
        consider(b, resource, gibi_rate(bytes, time_ps), xpl_giga_to_gibi(peak));
}

xpl_str_t xpl_op_bound_by(const struct xpl_op_metrics *m, const struct xpl_perf_env *env,
                          enum xpl_hardware hardware) {
    struct bottleneck b = {.resource = XPL_STR("Unknown")};
    const struct traffic t = measure(m);
    const uint64_t ps = m->time_ps;
    const double hbm = gibi_rate(t.hbm, ps);
    consider(&b, XPL_STR("Compute"), xpl_safe_divide(m->flops_v2, xpl_pico_to_nano(ps)),
             env->peak_tera_flops_per_second * 1e3);
    consider(&b, XPL_STR("HBM"), hbm, xpl_giga_to_gibi(xpl_peak_bandwidth(env, XPL_BW_HBM_RW)));
    if (hardware == XPL_HW_TPU) {
        consider_on_chip(&b, XPL_STR("CMEM Read"), t.cmem_read, ps,
                         xpl_peak_bandwidth(env, XPL_BW_CMEM_RD));
        consider_on_chip(&b, XPL_STR("CMEM Write"), t.cmem_write, ps,
                         xpl_peak_bandwidth(env, XPL_BW_CMEM_WR));
        consider_on_chip(&b, XPL_STR("VMEM Read"), t.vmem_read, ps,
                         xpl_peak_bandwidth(env, XPL_BW_VMEM_RD));
        consider_on_chip(&b, XPL_STR("VMEM Write"), t.vmem_write, ps,
                         xpl_peak_bandwidth(env, XPL_BW_VMEM_WR));
    }
    if (hardware == XPL_HW_GPU) {
        // XProf compares the HBM rate with the peak of shared memory: it has no other.
        const double peak = xpl_peak_bandwidth(env, XPL_BW_SRAM_WR);
        if (peak != 0) consider(&b, XPL_STR("Shm/L1"), hbm, xpl_giga_to_gibi(peak));
    }
    return b.resource;
}
