// SPDX-License-Identifier: Apache-2.0
// Capabilities and names of devices, from the statistics of their planes.
#include <math.h>

#include "analysis/opstats/device/perf_env.h"
#include "base/exec.h"
#include "tests/unit/opstats/device_profiles.h"

struct gpu {
    const char *vendor, *device_name;
    uint64_t major, minor, cores, clock_khz, bandwidth;
};

struct profile {
    struct xpl_arena arena;
    struct xpl_buf bytes;
    struct xpl_xspace *xs;
};
static void open_plane(struct profile *f, struct mk_plane *p) {
    struct xpl_error err = {0};
    struct xpl_exec exec = xpl_exec_serial();
    f->bytes = mk_open();
    mk_plane_end(p, &f->bytes);
    xpl_arena_init(&f->arena, 1 << 24);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){f->bytes.p, f->bytes.n}, &f->arena, &exec, &f->xs, &err),
             &err);
    CHECK_EQ(f->xs->n_planes, 1);
}
static void close_profile(struct profile *f) {
    xpl_arena_fini(&f->arena);
    xpl_buf_fini(&f->bytes);
}

static void open_gpu(struct profile *f, struct gpu g) {
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf *const b = &p.body;
    if (g.vendor)
        mk_stat_text(&p, b, MK_PLANE_STATS, "device_vendor", 5, g.vendor, strlen(g.vendor));
    if (g.device_name)
        mk_stat_text(&p, b, MK_PLANE_STATS, "gpu_device_name", 5, g.device_name,
                     strlen(g.device_name));
    mk_stat_number(&p, b, MK_PLANE_STATS, "compute_cap_major", 3, g.major);
    mk_stat_number(&p, b, MK_PLANE_STATS, "compute_cap_minor", 4, g.minor);
    mk_stat_number(&p, b, MK_PLANE_STATS, "core_count", 3, g.cores);
    mk_stat_number(&p, b, MK_PLANE_STATS, "clock_rate", 3, g.clock_khz);
    mk_stat_number(&p, b, MK_PLANE_STATS, "memory_bandwidth", 3, g.bandwidth);
    open_plane(f, &p);
}

static struct xpl_perf_env env_of(struct profile *f) {
    struct xpl_perf_env env;
    CHECK(xpl_perf_env_fill(&f->xs->planes[0], &f->arena, &env));
    return env;
}

static void rates(void) {
    static const struct {
        struct gpu gpu;
        double tera, shared;
    } cases[] = {
        // H100-like: 132 cores at 1.98 GHz, 4096 operations and 256 bytes a cycle.
        {{"Nvidia", NULL, 9, 0, 132, 1980000, 3352000000000},
         132 * 4096 * 1.98 / 1e3,
         132 * 256 * 1.98},
        {{"Nvidia", NULL, 8, 0, 108, 1410000, 1555000000000},
         108 * 2048 * 1.41 / 1e3,
         108 * 256 * 1.41},
        {{"Nvidia", NULL, 2, 0, 10, 1000000, 1}, 10 * 64 / 1e3, 10 * 64},
        {{"Nvidia", NULL, 0, 0, 10, 1000000, 1}, 10 * 64 / 1e3, 10 * 64},    // below all known ones
        {{"Nvidia", NULL, 8, 7, 10, 1000000, 1}, 10 * 1024 / 1e3, 10 * 256}, // between known ones
        {{"AMD", "gfx942", 0, 0, 304, 2100000, 5300000000000},
         304 * 2048 * 2.1 / 1e3,
         304 * 128 * 2.1},
        {{"AMD", "MI350", 9, 5, 10, 1000000, 1}, 10 * 4096 / 1e3, 10 * 256},
        {{"AMD", NULL, 11, 0, 10, 1000000, 1}, 0, 0},
        {{"Intel", NULL, 9, 0, 10, 1000000, 1}, 0, 0},
        {{NULL, NULL, 9, 0, 10, 1000000, 1}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct profile f;
        open_gpu(&f, cases[i].gpu);
        const struct xpl_perf_env env = env_of(&f);
        const double hbm = (double)cases[i].gpu.bandwidth / 1e9;
        CHECK_EQ(env.peak_bws_giga_bytes_per_second.n, 3);
        const double *const bw = env.peak_bws_giga_bytes_per_second.v;
        CHECK(fabs(env.peak_tera_flops_per_second - cases[i].tera) <= 1e-9 * cases[i].tera);
        CHECK_REAL(bw[XPL_BW_HBM_RW], hbm, 0);
        CHECK_REAL(bw[XPL_BW_SRAM_RD], bw[XPL_BW_SRAM_WR], 0);
        CHECK(fabs(bw[XPL_BW_SRAM_RD] - cases[i].shared) <= 1e-9 * cases[i].shared);
        CHECK_REAL(env.ridge_point, env.peak_tera_flops_per_second * 1000.0 / hbm, 0);
        close_profile(&f);
    }
}

static void names(void) {
    static const struct {
        struct gpu gpu;
        const char *expected;
    } cases[] = {
        {{.vendor = "Nvidia", .major = 7, .minor = 0}, "Nvidia GPU (Volta)"},
        {{.vendor = "Nvidia", .major = 7, .minor = 5}, "Nvidia GPU (Turing)"},
        {{.vendor = "Nvidia", .major = 8, .minor = 9}, "Nvidia GPU (Ada Lovelace)"},
        {{.vendor = "Nvidia", .major = 10, .minor = 3}, "Nvidia GPU (Blackwell)"},
        {{.vendor = "Nvidia", .major = 10, .minor = 7}, "Nvidia GPU (Rubin)"},
        {{.vendor = "Nvidia", .major = 4}, "Nvidia GPU"},
        {{.vendor = "AMD", .device_name = "gfx90a"}, "AMD GPU - gfx90a"},
        {{.vendor = "AMD", .device_name = "gfx90", .major = 9, .minor = 4}, "AMD GPU - gfx942"},
        {{.vendor = "AMD", .device_name = "gfxyz1", .major = 9}, "AMD GPU - gfx-9XX series"},
        {{.vendor = "AMD", .major = 11}, "AMD GPU - gfx-11XX series"},
        {{.vendor = "AMD"}, "AMD GPU"},
        {{.vendor = "Intel"}, ""},
        {{.vendor = NULL}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct profile f;
        xpl_str_t name;
        open_gpu(&f, cases[i].gpu);
        CHECK(xpl_gpu_model_name(&f.xs->planes[0], &f.arena, &name));
        CHECK_STR(name, cases[i].expected);
        close_profile(&f);
    }
}

// A GPU may state its rates itself.
static void stated_rates(void) {
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    XPL_AUTO(close_profile) struct profile f;
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_teraflops_per_second", 12.5);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_sram_rd_bw_gigabytes_per_second", 7);
    open_plane(&f, &p);
    const struct xpl_perf_env env = env_of(&f);
    CHECK_REAL(env.peak_tera_flops_per_second, 12.5, 0);
    CHECK(isinf(env.ridge_point));
    CHECK_REAL(env.peak_bws_giga_bytes_per_second.v[XPL_BW_SRAM_RD], 7, 0);
    CHECK_REAL(env.peak_bws_giga_bytes_per_second.v[XPL_BW_SRAM_WR], 0, 0);
}

static void tpus(void) {
    struct mk_plane p = mk_plane(1, "/device:TPU:0");
    struct profile f;
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_teraflops_per_second", 918);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_hbm_bw_gigabytes_per_second", 1640);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_cmem_wr_bw_gigabytes_per_second", 3);
    mk_stat_double(&p, &p.body, MK_PLANE_STATS, "peak_vmem_rd_bw_gigabytes_per_second", 4);
    mk_stat_number(&p, &p.body, MK_PLANE_STATS, "has_merged_vmem", 4, 1);
    open_plane(&f, &p);
    struct xpl_perf_env env = env_of(&f);
    CHECK(env.has_cmem && env.has_merged_vmem && !env.has_megacore);
    CHECK_EQ(env.peak_bws_giga_bytes_per_second.n, 9);
    CHECK_REAL(env.peak_bws_giga_bytes_per_second.v[XPL_BW_VMEM_RD], 4, 0);
    CHECK_REAL(env.ridge_point, 918 * 1000.0 / 1640, 0);
    close_profile(&f);
    mk_plane_begin(&p, 1, "/device:TPU:0"); // says nothing
    open_plane(&f, &p);
    env = env_of(&f);
    CHECK(isnan(env.ridge_point) && !env.has_cmem);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena none = xpl_arena_of(0);
    CHECK(!xpl_perf_env_fill(&f.xs->planes[0], &none, &env));
    close_profile(&f);
}

int main(void) {
    rates();
    names();
    stated_rates();
    tpus();
    return 0;
}
