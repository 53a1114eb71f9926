// SPDX-License-Identifier: Apache-2.0
// What names say: categories of events, of today and of 2021, and kinds of ops.
#include <string.h>

#include "analysis/kineto/impl.h"
#include "base/text/parse.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct {
    xpl_str_t name;
    enum category category;
} categories[] = {
    {{"cpu_op", 6}, CAT_OP},
    {{"python_function", 15}, CAT_PYTHON},
    {{"cuda_runtime", 12}, CAT_RUNTIME},
    {{"kernel", 6}, CAT_KERNEL},
    {{"gpu_memcpy", 10}, CAT_COPY},
    {{"cpu_instant_event", 17}, CAT_MEMORY},
    {{"user_annotation", 15}, CAT_ANNOTATION},
    {{"gpu_user_annotation", 19}, CAT_DEVICE_ANNOTATION},
    {{"gpu_memset", 10}, CAT_SET},
    {{"cuda_driver", 11}, CAT_RUNTIME},
    {{"cuda_sync", 9}, CAT_SYNC},
    {{"cuda_event", 10}, CAT_MARKER},
    {{"overhead", 8}, CAT_OVERHEAD},
    {{"Trace", 5}, CAT_SPAN},
    {{"Operator", 8}, CAT_OP},
    {{"Runtime", 7}, CAT_RUNTIME},
    {{"Kernel", 6}, CAT_KERNEL},
    {{"Memcpy", 6}, CAT_COPY},
    {{"Memset", 6}, CAT_SET},
    {{"xpu_runtime", 11}, CAT_RUNTIME},
    {{"xpu_driver", 10}, CAT_RUNTIME},
    {{"xpu_sync", 8}, CAT_SYNC},
    {{"collective_comm", 15}, CAT_KERNEL},
    {{"mtia_runtime", 12}, CAT_RUNTIME},
    {{"mtia_ccp_events", 15}, CAT_KERNEL},
    {{"mtia_insight", 12}, CAT_MARKER},
    {{"privateuse1_runtime", 19}, CAT_RUNTIME},
    {{"privateuse1_driver", 18}, CAT_RUNTIME},
    {{"hpu_op", 6}, CAT_RUNTIME},
    {{"glow_runtime", 12}, CAT_RUNTIME},
    {{"cuda_profiler_range", 19}, CAT_KERNEL},
};

bool xpl_kineto_is_step(xpl_str_t name, int64_t *ret_number) {
    const xpl_str_t begin = XPL_STR("ProfilerStep#");
    return xpl_str_starts(name, begin) &&
           xpl_parse_int(xpl_str_sub(name, begin.len, SIZE_MAX), 0, INT64_MAX, ret_number);
}

bool xpl_kineto_is_cpu_collective(xpl_str_t name) {
    static const char *const begins[] = {"gloo:", "mpi:", "ucc:"};
    return xpl_str_starts_any(name, begins, COUNT(begins));
}

// Until 2022 annotations were of the category of ops.
static bool is_annotation(xpl_str_t name) {
    static const char *const begins[] = {"ProfilerStep#",   "Optimizer.", "enumerate(DataLoader)",
                                         "nccl:",           "gloo:",      "mpi:",
                                         "DistributedData", "##",         "Iteration Start"};
    return xpl_str_starts_any(name, begins, COUNT(begins));
}

// Of the device, but no work.
static bool is_wait(xpl_str_t name) {
    return xpl_str_eq(name, XPL_STR("event_wait")) || xpl_str_eq(name, XPL_STR("event_record"));
}

enum category xpl_kineto_category(xpl_str_t cat) {
    for (size_t i = 0; i < COUNT(categories); i++)
        if (xpl_str_eq(cat, categories[i].name)) return categories[i].category;
    return CAT_OTHER;
}

enum category xpl_kineto_category_of(enum category c, bool has_category, xpl_str_t name) {
    if (!has_category) return xpl_str_starts(name, XPL_STR("[")) ? CAT_MEMORY : CAT_OTHER;
    if (c == CAT_OP && is_annotation(name)) return CAT_ANNOTATION;
    if (c == CAT_KERNEL && is_wait(name)) return CAT_MARKER;
    return c;
}

enum category xpl_kineto_npu_category(xpl_str_t task_type, xpl_str_t name) {
    static const char *const no_work[] = {"WAIT", "RECORD", "NOTIFY", "PLACE_HOLDER"};
    if (!task_type.len) // "AscendCL@aclnnAdd"
        return xpl_str_has(name, XPL_STR("@")) ? CAT_RUNTIME : CAT_OTHER;
    for (size_t i = 0; i < COUNT(no_work); i++)
        if (xpl_str_has(task_type, xpl_str_from(no_work[i]))) return CAT_MARKER;
    return xpl_str_has(task_type, XPL_STR("MEMCPY")) ? CAT_COPY : CAT_KERNEL;
}

enum row_kind xpl_kineto_row_kind(enum category c) {
    switch (c) {
        case CAT_KERNEL:
        case CAT_COPY:
        case CAT_SET: return ROW_STREAM;
        case CAT_DEVICE_ANNOTATION:
        case CAT_SYNC:
        case CAT_MARKER: return ROW_SIDE;
        case CAT_COUNTER: return ROW_COUNTERS;
        case CAT_OTHER:
        case CAT_OP:
        case CAT_ANNOTATION:
        case CAT_PYTHON:
        case CAT_RUNTIME:
        case CAT_MEMORY:
        case CAT_OVERHEAD:
        case CAT_SPAN:
        case N_CATEGORIES: break;
    }
    return ROW_HOST;
}

// ---- kinds of ops ----

struct words {
    const char *type;
    const char *has[12]; // NULL-terminated
};
// The first row counts that has a part of the name.
static const struct words kinds[] = {
    {"Collective",
     {"c10d::", "nccl", "record_param_comms", "all_reduce", "allgather", "all_gather",
      "reduce_scatter", "all_to_all", "gloo:"}},
    {"Optimizer", {"_fused_adam", "_fused_sgd", "_foreach_", "Optimizer."}},
    {"Attention",
     {"scaled_dot_product", "flash_attn", "flash_attention", "efficient_attention",
      "cudnn_attention", "fmha", "paged_attention", "unified_attention"}},
    {"Convolution", {"conv1d", "conv2d", "conv3d", "convolution", "slow_conv"}},
    {"Embedding", {"embedding", "index_select", "gather", "scatter", "index_put", "aten::index"}},
    {"Normalization", {"norm"}},
    {"Copy", {"copy_", "_to_copy", "contiguous", "aten::cat", "aten::clone", "aten::to"}},
    {"Reduction",
     {"aten::sum", "aten::mean", "aten::max", "aten::min", "softmax", "aten::all", "aten::any",
      "aten::argmax", "aten::topk", "aten::sort", "aten::cumsum"}},
    {"Triton", {"triton"}},
};

// aten::mm and others, whose names are parts of other names.
static bool is_gemm(xpl_str_t op) {
    static const char *const names[] = {"mm",
                                        "addmm",
                                        "bmm",
                                        "baddbmm",
                                        "matmul",
                                        "linear",
                                        "addbmm",
                                        "_scaled_mm",
                                        "_int_mm",
                                        "mv",
                                        "addmv",
                                        "dot",
                                        "_addmm_activation",
                                        "einsum"};
    if (!xpl_str_starts(op, XPL_STR("aten::"))) { // the library fbgemm has ops of all kinds
        const char *const colon = memrchr(op.ptr, ':', op.len);
        return xpl_str_has(colon ? xpl_str_sub(op, (size_t)(colon + 1 - op.ptr), SIZE_MAX) : op,
                           XPL_STR("gemm"));
    }
    const xpl_str_t name = xpl_str_sub(op, 6, SIZE_MAX);
    for (size_t i = 0; i < COUNT(names); i++)
        if (xpl_str_eq(name, xpl_str_from(names[i]))) return true;
    return false;
}

static const char *kind_of(xpl_str_t name, const struct words *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < COUNT(v[i].has) && v[i].has[k]; k++)
            if (xpl_str_has(name, xpl_str_from(v[i].has[k]))) return v[i].type;
    return NULL;
}

const char *xpl_kineto_op_type(xpl_str_t op) {
    if (is_gemm(op)) return "GEMM";
    const char *const kind = kind_of(op, kinds, COUNT(kinds));
    return kind ? kind : xpl_str_starts(op, XPL_STR("aten::")) ? "Elementwise" : "Other";
}

const char *xpl_kineto_kernel_type(xpl_str_t kernel) {
    static const struct words v[] = {
        {"Triton", {"triton_"}},
        {"Collective", {"nccl", "rccl", "all_reduce", "reduce_scatter", "cross_device_reduce"}},
        {"Attention", {"attention", "fmha", "flash_fwd", "flash_bwd", "mha_"}},
        {"GEMM", {"gemm", "gemv", "Cijk_", "matmul", "nvjet", "cutlass::Kernel"}},
        {"Convolution", {"convol", "conv2d", "dgrad", "wgrad"}},
        {"Normalization", {"norm", "Norm"}},
        {"Copy", {"Memcpy", "copy", "Copy", "CatArray"}},
        {"Embedding", {"gather", "scatter", "index", "embedding"}},
        {"Reduction", {"reduce", "softmax", "Softmax", "SoftMax", "topk", "sort"}},
        {"Elementwise", {"elementwise"}},
    };
    const char *const kind = kind_of(kernel, v, COUNT(v));
    return kind ? kind : "Other";
}

bool xpl_kineto_is_graph_launch(xpl_str_t name) {
    return xpl_str_ends(name, XPL_STR("GraphLaunch"));
}
