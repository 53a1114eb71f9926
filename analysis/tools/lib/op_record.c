// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/op_record.h"

#include <math.h>
#include <string.h>

double xpl_peak_bandwidth(const struct xpl_perf_env *env, size_t index) {
    return env->peak_bws_giga_bytes_per_second.n > index
               ? env->peak_bws_giga_bytes_per_second.v[index]
               : env->peak_hbm_bw_giga_bytes_per_second;
}

// Bytes by memory.
static void measure(const struct xpl_op_metrics *m, uint64_t ret[XPL_MEMORIES]) {
    memset(ret, 0, XPL_MEMORIES * sizeof *ret);
    for (size_t i = 0; i < m->memory_accessed_breakdown.n; i++) {
        const struct xpl_memory_accessed *const a = &m->memory_accessed_breakdown.v[i];
        const bool read = a->operation_type == XPL_MEM_OP_READ;
        const bool write = a->operation_type == XPL_MEM_OP_WRITE;
        if (a->memory_space == XPL_SPACE_HBM) ret[XPL_MEMORY_HBM] += a->bytes_accessed;
        if (!read && !write) continue;
        if (a->memory_space == XPL_SPACE_CMEM)
            ret[read ? XPL_MEMORY_CMEM_READ : XPL_MEMORY_CMEM_WRITE] += a->bytes_accessed;
        if (a->memory_space == XPL_SPACE_VMEM)
            ret[read ? XPL_MEMORY_VMEM_READ : XPL_MEMORY_VMEM_WRITE] += a->bytes_accessed;
    }
    // Older profiles have no breakdown: all of it counts as HBM traffic.
    if (m->memory_accessed_breakdown.n == 0) ret[XPL_MEMORY_HBM] = m->bytes_accessed;
}

// The resource used most, relative to its peak; the first of equal ones.
struct bottleneck {
    xpl_str_t resource;
    double utilization, intensity;
};

static void consider_resource(struct bottleneck *b, const char *resource, double rate, double peak,
                              double intensity) {
    const double utilization = xpl_safe_divide(rate, peak);
    if (b->utilization < utilization)
        *b = (struct bottleneck){xpl_str_from(resource), utilization, intensity};
}

// A resource that the op did not touch, or whose peak is unknown, bounds nothing.
static void consider_on_chip(const struct xpl_op_record *r, const uint64_t bytes[XPL_MEMORIES],
                             const struct xpl_perf_env *env, struct bottleneck *b) {
    static const struct {
        enum xpl_memory memory;
        size_t peak;
        const char *name;
    } kinds[] = {{XPL_MEMORY_CMEM_READ, XPL_BW_CMEM_RD, "CMEM Read"},
                 {XPL_MEMORY_CMEM_WRITE, XPL_BW_CMEM_WR, "CMEM Write"},
                 {XPL_MEMORY_VMEM_READ, XPL_BW_VMEM_RD, "VMEM Read"},
                 {XPL_MEMORY_VMEM_WRITE, XPL_BW_VMEM_WR, "VMEM Write"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const enum xpl_memory k = kinds[i].memory;
        const double peak = xpl_peak_bandwidth(env, kinds[i].peak);
        if (bytes[k] && peak != 0)
            consider_resource(b, kinds[i].name, r->bandwidths[k], xpl_giga_to_gibi(peak),
                              r->intensities[k]);
    }
}

static void find_bound(const uint64_t bytes[XPL_MEMORIES], const struct xpl_perf_env *env,
                       enum xpl_hardware hardware, struct xpl_op_record *r) {
    struct bottleneck b = {.resource = XPL_STR("Unknown")};
    const double hbm = r->bandwidths[XPL_MEMORY_HBM];
    const double hbm_intensity = r->intensities[XPL_MEMORY_HBM];
    consider_resource(&b, "Compute", r->flop_rate, env->peak_tera_flops_per_second * 1e3,
                      r->intensity);
    consider_resource(&b, "HBM", hbm, xpl_giga_to_gibi(xpl_peak_bandwidth(env, XPL_BW_HBM_RW)),
                      hbm_intensity);
    if (hardware == XPL_HW_TPU) consider_on_chip(r, bytes, env, &b);
    if (hardware == XPL_HW_GPU) {
        // XProf compares the HBM rate with the peak of shared memory: it has no other.
        const double peak = xpl_peak_bandwidth(env, XPL_BW_SRAM_WR);
        if (peak != 0) consider_resource(&b, "Shm/L1", hbm, xpl_giga_to_gibi(peak), hbm_intensity);
    }
    r->bound_by = b.resource;
    r->bound_intensity = b.intensity;
}

static double gibi_rate(uint64_t bytes, double ns) {
    return xpl_giga_to_gibi(xpl_safe_divide((double)bytes, ns));
}

void xpl_op_record_make(const struct xpl_op_metrics *m, const struct xpl_perf_env *env,
                        enum xpl_hardware hardware, struct xpl_op_record *ret) {
    const double ns = xpl_pico_to_nano(m->time_ps);
    uint64_t bytes[XPL_MEMORIES];
    struct xpl_op_record r = {.total_us = xpl_pico_to_micro(m->time_ps),
                              .self_us = xpl_pico_to_micro(m->self_time_ps)};
    measure(m, bytes);
    r.average_us = xpl_safe_divide(r.total_us, m->occurrences);
    r.average_self_us = xpl_safe_divide(r.self_us, m->occurrences);
    r.dma_stall = xpl_safe_divide((double)m->dma_stall_ps, (double)m->time_ps);
    r.flop_rate = xpl_safe_divide(m->flops_v2, ns);
    r.model_flop_rate = xpl_safe_divide(m->model_flops_v2, ns);
    r.bandwidth = gibi_rate(m->bytes_accessed, ns);
    r.intensity = xpl_safe_divide(m->flops_v2, (double)m->bytes_accessed);
    for (size_t i = 0; i < XPL_MEMORIES; i++) {
        r.bandwidths[i] = gibi_rate(bytes[i], ns);
        r.intensities[i] = xpl_safe_divide(m->flops_v2, (double)bytes[i]);
    }
    find_bound(bytes, env, hardware, &r);
    *ret = r;
}

// ---- rates that cannot be ----

// Begins what other ops wait for: the time of the work is not its own.
static bool is_start(xpl_str_t name) {
    const xpl_str_t word = XPL_STR("-start");
    const size_t at = xpl_str_find(name, word, 0), end = at + word.len;
    return at < name.len && (end == name.len || name.ptr[end] == '.' || name.ptr[end] == ' ');
}

// The fastest memory whose peak is known, in GiB/s.  No core of a CPU moves a TB/s.
static double most_bandwidth(const struct xpl_perf_env *env, enum xpl_hardware hardware) {
    double most = env->peak_hbm_bw_giga_bytes_per_second;
    for (size_t i = 0; i < env->peak_bws_giga_bytes_per_second.n; i++)
        if (env->peak_bws_giga_bytes_per_second.v[i] > most)
            most = env->peak_bws_giga_bytes_per_second.v[i];
    return most > 0 ? xpl_giga_to_gibi(most) : hardware == XPL_HW_CPU_ONLY ? 1000 : INFINITY;
}

// In GFLOP/s.  8-bit types run twice as fast as the peak says.  A core of a CPU has at most two
// units of 16 numbers of f32, and 5 GHz; for shorter types it may have tiles of 16 by 16.
static double most_flops(const struct xpl_op_metrics *m, const struct xpl_perf_env *env,
                         enum xpl_hardware hardware) {
    if (env->peak_tera_flops_per_second > 0) return 2000 * env->peak_tera_flops_per_second;
    if (hardware != XPL_HW_CPU_ONLY) return INFINITY;
    const bool is_short = xpl_str_has(m->long_name, XPL_STR("f16[")) ||
                          xpl_str_has(m->long_name, XPL_STR("s8[")) ||
                          xpl_str_has(m->long_name, XPL_STR("f8"));
    return is_short ? 2.0 * 16 * 16 * 32 * 5 : 2.0 * 2 * 16 * 5 + 80;
}

const char *xpl_op_record_doubt(const struct xpl_op_metrics *m, const struct xpl_perf_env *env,
                                enum xpl_hardware hardware, const struct xpl_op_record *r) {
    if (is_start(m->name)) return "the op only starts its work";
    if (r->bandwidth > most_bandwidth(env, hardware))
        return "more bytes than the device can move in the recorded time";
    if (r->flop_rate > most_flops(m, env, hardware))
        return "more operations than the device can do in the recorded time";
    return NULL;
}
