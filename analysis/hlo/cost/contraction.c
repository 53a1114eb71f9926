// SPDX-License-Identifier: Apache-2.0
// Products of matrices and convolutions, also those that libraries compute.
#include "analysis/hlo/cost/impl.h"

enum { PER_FMA = 2, MOST_CONTRACTING = 64 };

// ---- dot ----

// The product of the first operand's dimensions that DotDimensionNumbers contract.
static int64_t contracted(struct cost_visit *v, xpl_bytes_t numbers) {
    struct xpl_hlo_message d;
    uint32_t n;
    const int64_t *const dims = xpl_cost_dims(v->c, xpl_cost_operand(v, 0), &n);
    xpl_hlo_message_read(numbers, &d);
    struct xpl_hlo_ints contracting = xpl_hlo_ints_begin(&d, 1);
    int64_t width = 1;
    for (int64_t k; dims && xpl_hlo_ints_next(&contracting, &k);)
        if (k >= 0 && k < n) width = xpl_cost_times(width, dims[k]);
    return width;
}

void xpl_cost_dot(struct cost_visit *v) {
    const int64_t width =
        contracted(v, xpl_hlo_bytes(xpl_cost_message(v), HLO_INSTR_DOT_DIMENSIONS));
    v->n->flops =
        (float)xpl_cost_times(xpl_cost_times(PER_FMA, xpl_cost_result(v)->elements), width);
}

// Elements of the result, of which XLA takes out a dimension for each dimension of groups, each
// time the one after next: a row of the result belongs to one group only.
static int64_t elements_without_groups(struct cost_visit *v, size_t n_groups) {
    uint32_t n;
    const int64_t *const dims = xpl_cost_dims(v->c, xpl_cost_result(v), &n);
    int64_t elements = 1;
    for (uint32_t i = 0; dims && i < n; i++)
        if (i % 2 != 0 || i / 2 >= n_groups) elements = xpl_cost_times(elements, dims[i]);
    return elements;
}

// RaggedDotDimensionNumbers {dot_dimension_numbers 1, lhs_ragged_dimensions 2,
// rhs_group_dimensions 3}.
void xpl_cost_ragged_dot(struct cost_visit *v) {
    struct xpl_hlo_message d;
    xpl_hlo_message_read(xpl_hlo_bytes(xpl_cost_message(v), HLO_INSTR_RAGGED_DOT), &d);
    const int64_t elements = elements_without_groups(v, xpl_hlo_ints_count(&d, 3));
    v->n->flops = (float)xpl_cost_times(xpl_cost_times(PER_FMA, elements),
                                        contracted(v, xpl_hlo_bytes(&d, 1)));
}

// ---- convolution ----

// Fields of ConvolutionDimensionNumbers.
enum {
    INPUT_BATCH = 7,
    INPUT_FEATURE = 8,
    INPUT_SPATIAL = 11,
    KERNEL_SPATIAL = 6,
    OUTPUT_FEATURE = 10,
    OUTPUT_SPATIAL = 12,
};

struct sizes { // of one array
    const int64_t *dims;
    uint32_t n;
};
static int64_t size_of(const struct sizes *s, int64_t d) {
    return d >= 0 && d < s->n ? s->dims[d] : 0;
}
static int64_t next_size(const struct sizes *s, struct xpl_hlo_ints *dims) {
    int64_t d;
    return xpl_hlo_ints_next(dims, &d) ? size_of(s, d) : 0;
}

// The product over spatial dimensions; 0 when it cannot be counted.
static int64_t positions(struct cost_visit *v, const struct xpl_hlo_message *numbers,
                         const struct sizes *input, const struct sizes *kernel,
                         const struct sizes *output) {
    struct xpl_hlo_message window;
    xpl_hlo_message_read(xpl_hlo_bytes(xpl_cost_message(v), HLO_INSTR_WINDOW), &window);
    struct xpl_hlo_each windows = xpl_hlo_each_begin(&window, HLO_WINDOW_DIMENSIONS);
    struct xpl_hlo_ints in = xpl_hlo_ints_begin(numbers, INPUT_SPATIAL),
                        ker = xpl_hlo_ints_begin(numbers, KERNEL_SPATIAL),
                        out = xpl_hlo_ints_begin(numbers, OUTPUT_SPATIAL);
    int64_t product = 1;
    xpl_bytes_t d;
    while (product && xpl_hlo_each_next(&windows, &d)) {
        struct cost_window w;
        xpl_cost_window_read(d, &w);
        const int64_t i = next_size(input, &in), k = next_size(kernel, &ker);
        const int64_t n = xpl_cost_valid_positions(v->c, &w, k, next_size(output, &out), i);
        product = n < 0 ? 0 : xpl_cost_times(product, n);
    }
    return product;
}

static int64_t at_least_1(int64_t v) {
    return v > 1 ? v : 1;
}

static int64_t convolution_flops(struct cost_visit *v, struct cost_shape *result) {
    struct xpl_hlo_message d;
    struct sizes input, kernel, output;
    if (v->n_operands < 2) return 0;
    const struct xpl_hlo_message *const in = xpl_cost_message(v);
    xpl_hlo_message_read(xpl_hlo_bytes(in, HLO_INSTR_CONVOLUTION_DIMENSIONS), &d);
    input.dims = xpl_cost_dims(v->c, xpl_cost_operand(v, 0), &input.n);
    kernel.dims = xpl_cost_dims(v->c, xpl_cost_operand(v, 1), &kernel.n);
    output.dims = xpl_cost_dims(v->c, result, &output.n);
    const int64_t features = size_of(&input, xpl_hlo_int(&d, INPUT_FEATURE)) /
                             at_least_1(xpl_hlo_int(in, HLO_INSTR_FEATURE_GROUP_COUNT));
    const int64_t batch = size_of(&input, xpl_hlo_int(&d, INPUT_BATCH)) /
                          at_least_1(xpl_hlo_int(in, HLO_INSTR_BATCH_GROUP_COUNT));
    const int64_t out = size_of(&output, xpl_hlo_int(&d, OUTPUT_FEATURE));
    const int64_t fma =
        xpl_cost_times(xpl_cost_times(features, out),
                       xpl_cost_times(batch, positions(v, &d, &input, &kernel, &output)));
    return xpl_cost_times(PER_FMA, fma);
}

void xpl_cost_convolution(struct cost_visit *v) {
    v->n->flops = (float)convolution_flops(v, xpl_cost_result(v));
}

// ---- calls of libraries ----

bool xpl_cost_is_gemm(xpl_str_t target) {
    return xpl_str_eq(target, XPL_STR("__cublas$lt$matmul")) ||
           xpl_str_eq(target, XPL_STR("__cublas$lt$matmul$f8")) ||
           xpl_str_eq(target, XPL_STR("__cublas$lt$matmul$mx")) ||
           xpl_str_eq(target, XPL_STR("__cublas$lt$groupedMatmul"));
}

// cuBLAS before cuBLASLt, and rocBLAS.
static bool is_known_gemm(const struct xpl_hlo_costs *c, xpl_str_t target) {
    return xpl_cost_is_gemm(target) ||
           (c->more_calls && xpl_str_eq(target, XPL_STR("__cublas$gemm")));
}

static bool is_convolution(xpl_str_t target) {
    static const char *const names[] = {"Forward", "BackwardInput", "BackwardFilter",
                                        "BiasActivationForward", "ForwardGraph"};
    const xpl_str_t prefix = XPL_STR("__cudnn$conv");
    if (!xpl_str_starts(target, prefix)) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (xpl_str_eq(xpl_str_sub(target, prefix.len, SIZE_MAX), xpl_str_from(names[i])))
            return true;
    return false;
}

static int64_t gemm_flops(struct cost_visit *v, const struct cost_shape *result) {
    int64_t contracting[MOST_CONTRACTING], width = 1;
    uint32_t n_dims = 0;
    const uint32_t n = xpl_cost_gemm_contracting(
        xpl_hlo_str(xpl_cost_message(v), HLO_INSTR_BACKEND_CONFIG), contracting, MOST_CONTRACTING);
    const int64_t *const dims =
        v->n_operands ? xpl_cost_dims(v->c, xpl_cost_operand(v, 0), &n_dims) : NULL;
    for (uint32_t i = 0; dims && i < n; i++)
        if (contracting[i] >= 0 && contracting[i] < n_dims)
            width = xpl_cost_times(width, dims[contracting[i]]);
    return xpl_cost_times(xpl_cost_times(PER_FMA, result->elements), width);
}

// Other parts of the tuple, such as room to work in, do not count as output.
static void count_first_output(struct cost_visit *v, const struct cost_shape *result) {
    v->n->bytes -= v->n->output;
    v->n->output = (float)result->size;
    v->n->bytes += v->n->output;
}

// The cost of other targets is unknown: XLA returns -1.
void xpl_cost_custom_call(struct cost_visit *v) {
    const xpl_str_t target = xpl_hlo_str(xpl_cost_message(v), HLO_INSTR_CUSTOM_CALL_TARGET);
    struct cost_shape result;
    xpl_cost_shape_first(xpl_cost_result(v), &result);
    if (is_known_gemm(v->c, target)) {
        v->n->flops = (float)gemm_flops(v, &result);
        count_first_output(v, &result);
    } else if (is_convolution(target)) {
        v->n->flops = (float)convolution_flops(v, &result);
        if (xpl_cost_result(v)->type == HLO_TYPE_TUPLE) count_first_output(v, &result);
    } else {
        v->n->flops = v->n->bytes = v->n->output = -1;
        for (uint32_t k = 0; k < v->n->n_operands; k++)
            v->n->operand[k] = -1;
    }
}
