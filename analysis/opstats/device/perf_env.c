// SPDX-License-Identifier: Apache-2.0
// Peak rates and names of devices. Rules: XProf's utils/{device_caps_utils,
// cuda_type_utils,rocm_type_utils,hardware_type_utils}.cc and GetPerfEnvFromXPlane. Rates per core
// and cycle are those of the makers' white papers, as XProf takes them.
#include <string.h>

#include "analysis/opstats/device/perf_env.h"

struct caps { // message DeviceCapabilities
    double clock_ghz;
    uint32_t cores, cc_major, cc_minor;
    uint64_t memory_bandwidth; // bytes per second
    xpl_str_t vendor, name;
};

static void read_caps(const struct xpl_plane *p, struct caps *ret) {
    *ret = (struct caps){0};
    struct xpl_stats stats = p->stats;
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        const uint64_t number = xpl_stat_int_or_uint(&s);
        switch ((int)s.md->type) {
            case XPL_STAT_DEV_CAP_CLOCK_RATE_KHZ: ret->clock_ghz = (double)number / 1e6; break;
            case XPL_STAT_DEV_CAP_CORE_COUNT: ret->cores = (uint32_t)number; break;
            case XPL_STAT_DEV_CAP_MEMORY_BANDWIDTH: ret->memory_bandwidth = number; break;
            case XPL_STAT_DEV_CAP_COMPUTE_CAP_MAJOR: ret->cc_major = (uint32_t)number; break;
            case XPL_STAT_DEV_CAP_COMPUTE_CAP_MINOR: ret->cc_minor = (uint32_t)number; break;
            case XPL_STAT_DEV_VENDOR: ret->vendor = xpl_stat_str(&s); break;
            case XPL_STAT_GPU_DEVICE_NAME: ret->name = xpl_stat_str(&s); break;
            default: break;
        }
    }
}

static bool is_nvidia(const struct caps *c) {
    return xpl_str_eq(c->vendor, XPL_STR(XPL_VENDOR_NVIDIA));
}
static bool is_amd(const struct caps *c) {
    return xpl_str_eq(c->vendor, XPL_STR(XPL_VENDOR_AMD));
}

// ---- NVIDIA ----

// The largest of the FP32 and FP16 rates of CUDA and tensor cores; of unknown capabilities those of
// the next lower one that is known.
static double nvidia_flop_per_cycle(const struct caps *c) {
    static const struct {
        int32_t cc; // 1000 * major + 10 * minor
        double flop;
    } table[] = {
        {10000, 8192}, {9000, 4096}, {8090, 1024}, {8060, 1024}, {8000, 2048}, {7050, 1024},
        {7000, 1024},  {6010, 256},  {6000, 256},  {5000, 256},  {3000, 384},  {2000, 64},
    };
    const size_t n = sizeof table / sizeof *table;
    const int32_t cc = (int32_t)(c->cc_major * 1000u + c->cc_minor * 10u);
    for (size_t i = 0; i < n; i++)
        if (table[i].cc <= cc) return table[i].flop;
    return table[n - 1].flop;
}

static xpl_str_t nvidia_name(const struct caps *c) {
    const uint32_t minor = c->cc_minor;
    switch (c->cc_major) {
        case 2: return XPL_STR("Nvidia GPU (Fermi)");
        case 3: return XPL_STR("Nvidia GPU (Kepler)");
        case 5: return XPL_STR("Nvidia GPU (Maxwell)");
        case 6: return XPL_STR("Nvidia GPU (Pascal)");
        case 7: return minor < 5 ? XPL_STR("Nvidia GPU (Volta)") : XPL_STR("Nvidia GPU (Turing)");
        case 8:
            return minor < 9 ? XPL_STR("Nvidia GPU (Ampere)")
                             : XPL_STR("Nvidia GPU (Ada Lovelace)");
        case 9: return XPL_STR("Nvidia GPU (Hopper)");
        case 10:
            return minor < 7 ? XPL_STR("Nvidia GPU (Blackwell)") : XPL_STR("Nvidia GPU (Rubin)");
        default: return XPL_STR("Nvidia GPU");
    }
}

// ---- AMD ----

// "gfx" and at least three hexadecimal digits.
static bool is_gfx_name(xpl_str_t s) {
    if (!xpl_str_starts(s, XPL_STR("gfx")) || s.len < 6) return false;
    for (size_t i = 3; i < s.len; i++) {
        const char ch = s.ptr[i];
        if (!((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'f') || (ch >= 'A' && ch <= 'F')))
            return false;
    }
    return true;
}

static xpl_str_t amd_gfx(const struct caps *c) {
    if (is_gfx_name(c->name)) return c->name;
    if (c->cc_major == 9 && c->cc_minor == 4) return XPL_STR("gfx942");
    if (c->cc_major == 9 && c->cc_minor == 5) return XPL_STR("gfx950");
    return (xpl_str_t){"", 0};
}

struct amd_rates {
    const char *gfx;
    double flop, lds_bytes; // per compute unit and cycle
};
static const struct amd_rates *amd_find(const struct caps *c) {
    static const struct amd_rates table[] = {
        {"gfx908", 1024, 128}, {"gfx90a", 1024, 128}, {"gfx942", 2048, 128}, {"gfx950", 4096, 256}};
    const xpl_str_t gfx = amd_gfx(c);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (xpl_str_eq(gfx, xpl_str_from(table[i].gfx))) return &table[i];
    return NULL;
}

static bool amd_name(const struct caps *c, struct xpl_arena *a, xpl_str_t *ret) {
    const xpl_str_t gfx = amd_gfx(c), prefix = XPL_STR("AMD GPU - ");
    if (gfx.len) {
        char *const p = xpl_arena_alloc(a, prefix.len + gfx.len);
        if (!p) return false;
        memcpy(p, prefix.ptr, prefix.len);
        memcpy(p + prefix.len, gfx.ptr, gfx.len);
        *ret = (xpl_str_t){p, prefix.len + gfx.len};
        return true;
    }
    *ret = c->cc_major == 9    ? XPL_STR("AMD GPU - gfx-9XX series")
           : c->cc_major == 10 ? XPL_STR("AMD GPU - gfx-10XX series")
           : c->cc_major == 11 ? XPL_STR("AMD GPU - gfx-11XX series")
                               : XPL_STR("AMD GPU");
    return true;
}

// ---- either ----

// GFLOP/s of one core.
static double core_gflops(const struct caps *c) {
    if (is_nvidia(c)) return nvidia_flop_per_cycle(c) * c->clock_ghz;
    const struct amd_rates *const amd = is_amd(c) ? amd_find(c) : NULL;
    return amd ? amd->flop * c->clock_ghz : 0;
}

// Shared memory (LDS) of one core, bytes per second.
static double core_shared_bandwidth(const struct caps *c) {
    if (is_nvidia(c)) return (c->cc_major <= 2 ? 32 * 4 / 2 : 32 * 8) * c->clock_ghz * 1e9;
    const struct amd_rates *const amd = is_amd(c) ? amd_find(c) : NULL;
    return amd ? amd->lds_bytes * c->clock_ghz * 1e9 : 0;
}

bool xpl_gpu_model_name(const struct xpl_plane *plane, struct xpl_arena *arena, xpl_str_t *ret) {
    struct caps c;
    read_caps(plane, &c);
    *ret = (xpl_str_t){"", 0};
    if (is_nvidia(&c)) *ret = nvidia_name(&c);
    return !is_amd(&c) || amd_name(&c, arena, ret);
}

xpl_str_t xpl_gpu_vendor(const struct xpl_plane *plane) {
    struct caps c;
    read_caps(plane, &c);
    return c.vendor;
}

// ---- the whole ----

static double stat_or_zero(const struct xpl_plane *p, enum xpl_stat_type type) {
    struct xpl_stat s;
    return xpl_stats_get(p->stats, type, &s) ? xpl_stat_double(&s) : 0;
}

static bool push_bandwidths(struct xpl_arena *a, const double *v, size_t n,
                            struct xpl_perf_env *ret) {
    if (!xpl_vec_reserve(a, &ret->peak_bws_giga_bytes_per_second, n)) return false;
    memcpy(ret->peak_bws_giga_bytes_per_second.v, v, n * sizeof *v);
    ret->peak_bws_giga_bytes_per_second.n = n;
    // A division by zero is upstream's: infinity, or NaN without any rate at all.
    ret->ridge_point = ret->peak_tera_flops_per_second * 1000.0 / v[XPL_BW_HBM_RW];
    return true;
}

static bool fill_tpu(const struct xpl_plane *p, struct xpl_arena *a, struct xpl_perf_env *ret) {
    static const enum xpl_stat_type rates[] = {
        XPL_STAT_DEV_CAP_PEAK_HBM_BW_GIGABYTES_PER_SECOND,
        XPL_STAT_DEV_CAP_PEAK_SRAM_RD_BW_GIGABYTES_PER_SECOND,
        XPL_STAT_DEV_CAP_PEAK_SRAM_WR_BW_GIGABYTES_PER_SECOND,
        XPL_STAT_DEV_CAP_PEAK_CMEM_RD_BW_GIGABYTES_PER_SECOND,
        XPL_STAT_DEV_CAP_PEAK_CMEM_WR_BW_GIGABYTES_PER_SECOND,
        XPL_STAT_DEV_CAP_PEAK_VMEM_RD_BW_GIGABYTES_PER_SECOND,
        XPL_STAT_DEV_CAP_PEAK_VMEM_WR_BW_GIGABYTES_PER_SECOND,
        XPL_STAT_DEV_CAP_PEAK_SPMEM_RD_BW_GIGABYTES_PER_SECOND,
        XPL_STAT_DEV_CAP_PEAK_SPMEM_WR_BW_GIGABYTES_PER_SECOND,
    };
    enum { N = sizeof rates / sizeof *rates };
    double bw[N];
    for (size_t i = 0; i < N; i++)
        bw[i] = stat_or_zero(p, rates[i]);
    ret->peak_tera_flops_per_second = stat_or_zero(p, XPL_STAT_DEV_CAP_PEAK_TERAFLOPS_PER_SECOND);
    ret->has_cmem = bw[XPL_BW_CMEM_RD] > 0 || bw[XPL_BW_CMEM_WR] > 0;
    struct xpl_stat s;
    ret->has_merged_vmem =
        xpl_stats_get(p->stats, XPL_STAT_DEV_HAS_MERGED_VMEM, &s) && xpl_stat_bool(&s);
    ret->has_megacore = xpl_stats_get(p->stats, XPL_STAT_DEV_HAS_MEGACORE, &s) && xpl_stat_bool(&s);
    return push_bandwidths(a, bw, N, ret);
}

static bool fill_gpu(const struct xpl_plane *p, struct xpl_arena *a, struct xpl_perf_env *ret) {
    struct caps c;
    read_caps(p, &c);
    // A backend may state its rates itself, as those of TPUs do.
    double tera = stat_or_zero(p, XPL_STAT_DEV_CAP_PEAK_TERAFLOPS_PER_SECOND);
    if (tera <= 0) tera = c.cores * (core_gflops(&c) / 1e3);
    const double shared = c.cores * (core_shared_bandwidth(&c) / 1e9);
    double rd = stat_or_zero(p, XPL_STAT_DEV_CAP_PEAK_SRAM_RD_BW_GIGABYTES_PER_SECOND);
    double wr = stat_or_zero(p, XPL_STAT_DEV_CAP_PEAK_SRAM_WR_BW_GIGABYTES_PER_SECOND);
    if (rd <= 0) rd = shared;
    if (wr <= 0) wr = shared;
    const double bw[] = {(double)c.memory_bandwidth / 1e9, rd, wr};
    ret->peak_tera_flops_per_second = tera;
    return push_bandwidths(a, bw, sizeof bw / sizeof *bw, ret);
}

bool xpl_plane_has_rates(const struct xpl_plane *plane) {
    struct caps c;
    read_caps(plane, &c);
    return (c.clock_ghz > 0 && c.cores) || c.memory_bandwidth ||
           stat_or_zero(plane, XPL_STAT_DEV_CAP_PEAK_TERAFLOPS_PER_SECOND) > 0;
}

bool xpl_perf_env_fill(const struct xpl_plane *plane, struct xpl_arena *arena,
                       struct xpl_perf_env *ret) {
    *ret = (struct xpl_perf_env){0};
    return plane->kind == XPL_PLANE_GPU ? fill_gpu(plane, arena, ret) : fill_tpu(plane, arena, ret);
}
