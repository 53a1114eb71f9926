// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/metrics/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/parse.h"
#include "base/vec.h"

// ---- matrix cores ----

// `words` ends with NULL.
static bool has_any(xpl_str_t s, const char *const *words) {
    for (; *words; words++)
        if (xpl_str_has(s, xpl_str_from(*words))) return true;
    return false;
}

static bool nvidia_uses_tensor_core(xpl_str_t name) {
    static const char *const words[] = {
        "16816",
        "c1688",
        "conv1x1",
        "conv2d_c1_k1",
        "dgrad_1x1_stride_2x2",
        "direct_group",
        "first_layer_wgrad_kernel",
        "h1688",
        "h884",
        "hmma",
        "i16832",
        "i8816",
        "s884",
        "s1688",
        "xmma_gemm",
        "xmma_implicit_gemm",
        "xmma_sparse_conv",
        "xmma_sparse_gemm",
        "xmma_warp_specialized_implicit_gemm",
        NULL,
    };
    return has_any(name, words);
}

static size_t skip_digits(xpl_str_t s, size_t at) {
    while (at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9')
        at++;
    return at;
}

// "_MI16x16x4" anywhere.
static bool has_mfma_shape(xpl_str_t s) {
    const xpl_str_t mark = XPL_STR("_MI");
    for (size_t hit = xpl_str_find(s, mark, 0); hit != SIZE_MAX;
         hit = xpl_str_find(s, mark, hit + 1)) {
        size_t at = hit + mark.len;
        for (int part = 0; part < 3; part++) {
            const size_t end = skip_digits(s, at);
            if (end == at) break;
            if (part == 2) return true;
            if (end == s.len || s.ptr[end] != 'x') break;
            at = end + 1;
        }
    }
    return false;
}

static bool amd_uses_matrix_core(xpl_str_t name) {
    static const char *const not_words[] = {"_odo_",       "dq_convert",         "dq_shuffle",
                                            "topksoftmax", "DqAccPrezeroKernel", NULL};
    static const char *const words[] = {
        "Custom_Cijk_",
        "gtcx",
        "_xdl",
        "wmma",
        "mfma",
        "moe_gemm",
        "aiter",
        "attn_fwd",
        "bwd_kernel_dk_dv",
        "gemm_fusion",
        "TileGemmShape<",
        "TileFmhaShape<",
        "TileFmhaBwdShape<",
        "TileFlatmmShape<",
        "TileSageAttnShape<",
        NULL,
    };
    if (has_any(name, not_words)) return false;
    return has_any(name, words) || has_mfma_shape(name);
}

bool xpl_kernel_uses_tensor_core(xpl_str_t kernel_name, enum xpl_gpu_vendor vendor) {
    switch (vendor) {
        case XPL_GPU_NVIDIA: return nvidia_uses_tensor_core(kernel_name);
        case XPL_GPU_AMD: return amd_uses_matrix_core(kernel_name);
        case XPL_GPU_OTHER: return false;
    }
    return false;
}

// GEMMs of CUTLASS and cuDNN for Hopper and Blackwell say for which architecture they are.
static bool is_sm_matrix_kernel(xpl_str_t name) {
    static const char *const architectures[] = {"sm90", "sm100", "sm103", "sm120", NULL};
    static const char *const words[] = {"gemm", "conv", "fprop", "dgrad", "wgrad", NULL};
    return has_any(name, architectures) && has_any(name, words);
}

bool xpl_kernel_uses_matrix_unit(const struct xpl_kernel_report *k) {
    static const char *const words[] = {
        "nvjet",     "wgmma",     "hmma", "imma",        "dmma",    "qmma",        "bmma",
        "_mma",      "wmma",      "xmma", "tensorop",    "tcgen05", "flash_fprop", "flash_bprop",
        "flash_fwd", "flash_bwd", "fmha", "gemm_fusion", "cublas",  "cudnn",       NULL,
    };
    return k->is_kernel_using_tensor_core || is_sm_matrix_kernel(k->name) ||
           has_any(k->name, words) || k->is_op_tensor_core_eligible ||
           xpl_op_tensor_core_eligible(k->op_name);
}

bool xpl_op_tensor_core_eligible(xpl_str_t op_name) {
    static const char *const ends[] = {
        "Conv2D",
        "Conv2DBackpropFilter",
        "Conv2DBackpropInput",
        "Conv3D",
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropFilter",
        "DepthwiseConv2dNativeBackpropInput",
        "/MatMul",
        "FusedMatMul",
        "/CudnnRNN",
        "XlaDot",
        "XlaDotV2",
    };
    static const char *const parts[] = {
        "BatchMatMul",          "CudnnRNNV", "CudnnRNNForward", "CudnnRNNBackprop", "dot_general",
        "conv_general_dilated", NULL};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (xpl_str_ends(op_name, xpl_str_from(ends[i]))) return true;
    return has_any(op_name, parts);
}

bool xpl_einsum_tensor_core_eligible(xpl_str_t equation) {
    const xpl_str_t arrow = XPL_STR("->"), comma = XPL_STR(",");
    const size_t at = xpl_str_find(equation, arrow, 0);
    if (at == SIZE_MAX || xpl_str_find(equation, arrow, at + 2) != SIZE_MAX) return false;
    const xpl_str_t inputs = xpl_str_sub(equation, 0, at);
    const size_t first = xpl_str_find(inputs, comma, 0);
    return first != SIZE_MAX && xpl_str_find(inputs, comma, first + 1) == SIZE_MAX;
}

// ---- launch parameters ----

// absl::SimpleAtod, which takes hexadecimal too, for text of a reasonable length.
static bool parse_double(xpl_str_t s, double *ret) {
    char buf[64], *end;
    s = xpl_str_strip(s);
    if (s.len == 0 || s.len >= sizeof buf) return false;
    memcpy(buf, s.ptr, s.len);
    buf[s.len] = 0;
    const double v = strtod(buf, &end);
    if (end != buf + s.len) return false;
    *ret = v;
    return true;
}

// "x,y,z", all or nothing.
static void parse_dims(xpl_str_t s, uint32_t ret[3]) {
    uint32_t v[3];
    for (int i = 0; i < 3; i++) {
        const size_t comma = xpl_str_find(s, XPL_STR(","), 0);
        if ((comma == SIZE_MAX) != (i == 2)) return;
        if (!xpl_parse_u32(xpl_str_sub(s, 0, comma), &v[i])) return;
        s = comma == SIZE_MAX ? s : xpl_str_sub(s, comma + 1, SIZE_MAX);
    }
    memcpy(ret, v, sizeof v);
}

static void parse_word(xpl_str_t word, struct xpl_kernel_report *k) {
    const size_t colon = xpl_str_find(word, XPL_STR(":"), 0);
    if (colon == SIZE_MAX) return;
    const xpl_str_t key = xpl_str_sub(word, 0, colon);
    const xpl_str_t value = xpl_str_sub(word, colon + 1, SIZE_MAX);
    if (xpl_str_has(value, XPL_STR(":"))) return;
    double pct;
    if (xpl_str_eq(key, XPL_STR("regs"))) {
        (void)xpl_parse_u32(value, &k->registers_per_thread);
    } else if (xpl_str_eq(key, XPL_STR("static_shared"))) {
        (void)xpl_parse_u32(value, &k->static_shmem_bytes);
    } else if (xpl_str_eq(key, XPL_STR("dynamic_shared"))) {
        (void)xpl_parse_u32(value, &k->dynamic_shmem_bytes);
    } else if (xpl_str_eq(key, XPL_STR("block"))) {
        parse_dims(value, k->block_dim);
    } else if (xpl_str_eq(key, XPL_STR("grid"))) {
        parse_dims(value, k->grid_dim);
    } else if (xpl_str_eq(key, XPL_STR("occ_pct")) && parse_double(value, &pct)) {
        k->occupancy_pct = (float)pct;
    }
}

void xpl_kernel_parse_details(xpl_str_t details, struct xpl_kernel_report *ret) {
    for (int i = 0; i < 3; i++)
        ret->block_dim[i] = ret->grid_dim[i] = 1;
    ret->n_block_dim = ret->n_grid_dim = 3;
    for (size_t at = 0; at < details.len;) {
        size_t end = at;
        while (end < details.len && details.ptr[end] != ' ' && details.ptr[end] != '\n')
            end++;
        parse_word(xpl_str_sub(details, at, end - at), ret);
        at = end + 1;
    }
}

// ---- order ----

static int cmp_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int cmp_dims(const uint32_t *a, const uint32_t *b) {
    for (int i = 0; i < 3; i++)
        if (a[i] != b[i]) return cmp_u64(a[i], b[i]);
    return 0;
}

// By everything in which kernels differ (KernelReportLessThanComparator).
static int cmp_identity(const struct xpl_kernel_report *a, const struct xpl_kernel_report *b) {
    int c = xpl_str_cmp(a->name, b->name);
    if (!c) c = cmp_dims(a->grid_dim, b->grid_dim);
    if (!c) c = cmp_dims(a->block_dim, b->block_dim);
    if (!c) c = cmp_u64(a->registers_per_thread, b->registers_per_thread);
    if (!c) c = cmp_u64(a->static_shmem_bytes, b->static_shmem_bytes);
    if (!c) c = cmp_u64(a->dynamic_shmem_bytes, b->dynamic_shmem_bytes);
    if (!c) c = a->is_kernel_using_tensor_core - b->is_kernel_using_tensor_core;
    if (!c) c = a->is_op_tensor_core_eligible - b->is_op_tensor_core_eligible;
    return c ? c : xpl_str_cmp(a->op_name, b->op_name);
}

static int by_time(const void *pa, const void *pb) {
    const struct xpl_kernel_report *const a = pa, *const b = pb;
    const int c = cmp_u64(b->total_duration_ns, a->total_duration_ns);
    return c ? c : cmp_identity(a, b);
}

void xpl_kernels_sort_and_cut(struct xpl_kernel_report *reports, size_t *n) {
    xpl_sort(reports, *n, sizeof *reports, by_time);
    if (*n > XPL_MAX_KERNELS) *n = XPL_MAX_KERNELS;
}

// ---- merging ----

static int by_identity(const void *pa, const void *pb) {
    const struct xpl_kernel_report *const a = *(struct xpl_kernel_report *const *)pa;
    const struct xpl_kernel_report *const b = *(struct xpl_kernel_report *const *)pb;
    const int c = cmp_identity(a, b);
    return c ? c : (a > b) - (a < b);
}

bool xpl_kernels_merge_equal(struct xpl_kernel_report *reports, size_t *n,
                             struct xpl_arena *scratch) {
    if (*n < 2) return true;
    struct xpl_kernel_report **const v = xpl_arena_array(scratch, *n, sizeof *v);
    struct xpl_kernel_report *const out = xpl_arena_array(scratch, *n, sizeof *out);
    if (!v || !out) return false;
    for (size_t i = 0; i < *n; i++)
        v[i] = &reports[i];
    xpl_sort(v, *n, sizeof *v, by_identity);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        struct xpl_kernel_report *const k = kept ? &out[kept - 1] : NULL;
        if (!k || cmp_identity(k, v[i]) != 0) {
            out[kept++] = *v[i];
            continue;
        }
        k->occurrences += v[i]->occurrences;
        k->total_duration_ns += v[i]->total_duration_ns;
        if (v[i]->min_duration_ns < k->min_duration_ns) k->min_duration_ns = v[i]->min_duration_ns;
        if (v[i]->max_duration_ns > k->max_duration_ns) k->max_duration_ns = v[i]->max_duration_ns;
    }
    memcpy(reports, out, kept * sizeof *out);
    *n = kept;
    return true;
}
