// SPDX-License-Identifier: Apache-2.0
// GPU kernels: launch parameters as text, which kernels and ops use matrix cores, merging, order.
#include "analysis/opstats/metrics/kernels.h"

#include "base/arena.h"
#include "tests/check.h"

static struct xpl_kernel_report parse(const char *details) {
    struct xpl_kernel_report k = {0};
    xpl_kernel_parse_details(xpl_str_from(details), &k);
    CHECK_EQ(k.n_block_dim, 3);
    CHECK_EQ(k.n_grid_dim, 3);
    return k;
}

static void launch_parameters(void) {
    struct xpl_kernel_report k =
        parse("regs:32 static_shared:16 dynamic_shared:8\ngrid:4,3,2 block:64,2,1 occ_pct:43.75");
    CHECK_EQ(k.registers_per_thread, 32);
    CHECK_EQ(k.static_shmem_bytes, 16);
    CHECK_EQ(k.dynamic_shmem_bytes, 8);
    CHECK_EQ(k.grid_dim[0], 4);
    CHECK_EQ(k.grid_dim[1], 3);
    CHECK_EQ(k.grid_dim[2], 2);
    CHECK_EQ(k.block_dim[0], 64);
    CHECK_EQ(k.block_dim[1], 2);
    CHECK_EQ(k.block_dim[2], 1);
    CHECK_REAL(k.occupancy_pct, 43.75f, 0);
    k = parse("");
    CHECK_EQ(k.grid_dim[0], 1);
    CHECK_EQ(k.block_dim[2], 1);
    CHECK_EQ(k.registers_per_thread, 0);
    // Unreadable values are skipped: too large, too few, too many, not a number, two colons.
    k = parse("regs:4294967296 grid:1,2 block:1,2,3,4 occ_pct:x static_shared:1:2 regs regs:-1 "
              "what:ever dynamic_shared: :");
    CHECK_EQ(k.registers_per_thread, 0);
    CHECK_EQ(k.static_shmem_bytes, 0);
    CHECK_EQ(k.dynamic_shmem_bytes, 0);
    CHECK_EQ(k.grid_dim[1], 1);
    CHECK_EQ(k.block_dim[0], 1);
    CHECK_REAL(k.occupancy_pct, 0, 0);
    k = parse("grid:5,6,x grid:7,8,9 regs:1 regs:2 occ_pct:0x10");
    CHECK_EQ(k.grid_dim[0], 7);
    CHECK_EQ(k.registers_per_thread, 2);
    CHECK_REAL(k.occupancy_pct, 16, 0);
}

static bool uses(const char *name, enum xpl_gpu_vendor vendor) {
    return xpl_kernel_uses_tensor_core(xpl_str_from(name), vendor);
}
static void matrix_cores(void) {
    CHECK(uses("volta_fp16_s884gemm_fp16", XPL_GPU_NVIDIA));
    CHECK(uses("sm80_xmma_gemm_f16", XPL_GPU_NVIDIA));
    CHECK(!uses("ampere_sgemm_128x64_tn", XPL_GPU_NVIDIA));
    CHECK(!uses("Cijk_Ailk_Bljk_MI16x16x4", XPL_GPU_NVIDIA));
    CHECK(uses("Cijk_Ailk_Bljk_MI16x16x4x1_SN", XPL_GPU_AMD));
    CHECK(!uses("Cijk_Ailk_MI16x16", XPL_GPU_AMD));
    CHECK(!uses("Cijk_Ailk_MI16xx4", XPL_GPU_AMD));
    CHECK(uses("x_MI1x_MI1x2x3", XPL_GPU_AMD));
    CHECK(uses("moe_gemm", XPL_GPU_AMD) && !uses("moe_gemm_odo_x", XPL_GPU_AMD));
    CHECK(!uses("h884", XPL_GPU_AMD) && !uses("h884", XPL_GPU_OTHER));
    CHECK(!uses("", XPL_GPU_NVIDIA) && !uses("_MI", XPL_GPU_AMD));
}

// What findings take for kernels of matrix units; XProf's list has none of these.
static void matrix_units(void) {
    static const struct {
        const char *name, *op;
        bool uses;
    } cases[] = {
        {"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT", "", true},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "", true},
        {"gemm_fusion_dot_12", "", true},
        {"cutlass_80_tensorop_d884gemm_128x128_16x3_nn_align1", "", true},
        {"cutlass3x_sm100_bstensorop_s128x128x16gemm", "", true},
        {"sm90_gemm_bf16", "", true},
        {"void flash_fwd_kernel<128>", "", true},
        {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "", true},
        {"kernel_tcgen05_main", "", true},
        {"custom_kernel", "jit(f)/dot_general", true},
        {"custom_kernel", "jit(f)/conv_general_dilated", true},
        {"ampere_sgemm_128x64_tn", "jit(f)/scan", false},
        {"loop_add_fusion_3", "jit(f)/add", false},
        {"gemma_norm_kernel", "jit(f)/gemma/mul", false},
        {"reduce_sm90", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct xpl_kernel_report k = {.name = xpl_str_from(cases[i].name),
                                            .op_name = xpl_str_from(cases[i].op)};
        CHECK_EQ(xpl_kernel_uses_matrix_unit(&k), cases[i].uses);
    }
    const struct xpl_kernel_report known = {.is_kernel_using_tensor_core = true};
    CHECK(xpl_kernel_uses_matrix_unit(&known));
}

static bool eligible(const char *name) {
    return xpl_op_tensor_core_eligible(xpl_str_from(name));
}
static bool einsum(const char *equation) {
    return xpl_einsum_tensor_core_eligible(xpl_str_from(equation));
}
static void ops(void) {
    CHECK(eligible("model/MatMul") && !eligible("MatMul") && eligible("Conv2D"));
    CHECK(eligible("jit(f)/dot_general") && eligible("a/BatchMatMulV2") && !eligible("a/Add"));
    CHECK(einsum("ab,bc->ac") && einsum(",->"));
    CHECK(!einsum("ab->a") && !einsum("ab,bc,cd->ad") && !einsum("ab,bc") && !einsum("a,b->c->d"));
    CHECK(!einsum(""));
}

static struct xpl_kernel_report kernel(const char *name, uint64_t ns, uint32_t grid) {
    return (struct xpl_kernel_report){
        .name = xpl_str_from(name),
        .grid_dim = {grid, 1, 1},
        .occurrences = 1,
        .total_duration_ns = ns,
        .min_duration_ns = ns,
        .max_duration_ns = ns,
        .occupancy_pct = (float)ns,
    };
}

static void merging_and_order(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_kernel_report v[] = {kernel("b", 5, 1), kernel("a", 2, 1), kernel("b", 3, 1),
                                    kernel("b", 8, 2), kernel("c", 8, 1)};
    size_t n = 5;
    CHECK(xpl_kernels_merge_equal(v, &n, &a));
    CHECK_EQ(n, 4);
    xpl_kernels_sort_and_cut(v, &n);
    static const char *const expected[] = {"b", "b", "c", "a"};
    for (size_t i = 0; i < n; i++)
        CHECK_STR(v[i].name, expected[i]);
    CHECK_EQ(v[0].occurrences, 2);
    CHECK_EQ(v[0].total_duration_ns, 8);
    CHECK_EQ(v[0].grid_dim[0], 1);
    CHECK_EQ(v[0].min_duration_ns, 3);
    CHECK_EQ(v[0].max_duration_ns, 5);
    CHECK_REAL(v[0].occupancy_pct, 5, 0);
}

static void the_longest_are_kept(void) {
    enum { N = XPL_MAX_KERNELS + 100 };
    static struct xpl_kernel_report v[N];
    for (uint32_t i = 0; i < N; i++)
        v[i] = kernel("k", i, i);
    size_t n = N;
    xpl_kernels_sort_and_cut(v, &n);
    CHECK_EQ(n, 1000); // docs/differences.md says so
    CHECK_EQ(v[0].total_duration_ns, N - 1);
    CHECK_EQ(v[n - 1].total_duration_ns, 100);
}

int main(void) {
    launch_parameters();
    matrix_cores();
    matrix_units();
    ops();
    merging_and_order();
    the_longest_are_kept();
    return 0;
}
