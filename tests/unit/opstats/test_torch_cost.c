// SPDX-License-Identifier: Apache-2.0
// Costs of PyTorch's ops.  FLOPs are those of torch.utils.flop_counter (and of torch.profiler's
// with_flops for mm, addmm, bmm, baddbmm, conv2d, add and mul); bytes are counted by hand.
#include "analysis/opstats/metrics/torch_cost.h"

#include <stdio.h>

#include "tests/check.h"

static const struct {
    const char *call;
    int64_t flops, bytes;
} kKnown[] = {
    {"aten::mm(f32[4,8], f32[8,16])", 2 * 4 * 8 * 16, 4 * (32 + 128 + 64)},
    {"aten::addmm(bf16[512], bf16[141,512], bf16[512,512], Scalar, Scalar)", 2 * 141 * 512 * 512,
     2 * (512 + 141 * 512 + 512 * 512 + 141 * 512)},
    {"aten::bmm(f16[3,4,8], f16[3,8,5])", 2 * 3 * 4 * 8 * 5, 2 * (96 + 120 + 60)},
    {"aten::baddbmm(f64[3,4,5], f64[3,4,8], f64[3,8,5], Scalar, Scalar)", 2 * 3 * 4 * 8 * 5,
     8 * (60 + 96 + 120 + 60)},
    {"aten::linear(bf16[2,7,8], bf16[16,8], bf16[16])", 2 * 14 * 8 * 16,
     2 * (112 + 128 + 16 + 224)},
    {"aten::mv(f32[4,8], f32[8])", 2 * 32, 4 * (32 + 8 + 4)},
    // Results of 8-bit matrices have 16 bits.
    {"aten::_scaled_mm(f8e4m3fn[16,32], f8e4m3fn[32,48], f32[], f32[], -, -, -, Bool)",
     2 * 16 * 32 * 48, 16 * 32 + 32 * 48 + 2 * 16 * 48},
    {"aten::convolution(bf16[4,3,224,224], bf16[768,3,16,16], bf16[768], [16,16], [0,0], [1,1], "
     "False, [0,0], 1)",
     2LL * 4 * 768 * 14 * 14 * 3 * 256,
     2 * (4 * 3 * 224 * 224 + 768 * 3 * 256 + 768 + 4 * 768 * 14 * 14)},
    // Stride and padding are in another order.
    {"aten::cudnn_convolution(f32[1,3,8,8], f32[4,3,3,3], [1,1], [2,2], [1,1], 1, False, True, "
     "True)",
     2 * 4 * 16 * 27, 4 * (192 + 108 + 64)},
    {"aten::miopen_convolution(f32[1,4,8,8], f32[4,1,3,3], -, [0,0], [1,1], [2,2], 4, True, False)",
     2 * 4 * 16 * 9, 4 * (256 + 36 + 64)},
    // Of a transposed convolution each number of the image takes a filter.
    {"aten::convolution(f32[2,4,5,5], f32[4,3,3,3], -, [2,2], [1,1], [1,1], True, [1,1], 2)",
     2 * 2 * 25 * 4 * 27, 4 * (200 + 108 + 2 * 6 * 100)},
    {"aten::convolution_backward(f32[1,4,4,4], f32[1,3,8,8], f32[4,3,3,3], [0], [2,2], [1,1], "
     "[1,1], False, [0,0], 1, [True,True,False])",
     2 * 2 * 16 * 108, 4 * (64 + 108 + 192 + 192 + 108)},
    {"aten::convolution_backward(f32[1,4,4,4], f32[1,3,8,8], f32[4,3,3,3], [0], [2,2], [1,1], "
     "[1,1], False, [0,0], 1, [False,True,False])",
     2 * 16 * 108, 4 * (64 + 192 + 108)},
    {"aten::_scaled_dot_product_flash_attention(bf16[4,12,197,64], bf16[4,12,197,64], "
     "bf16[4,12,197,64], Scalar, Scalar, Scalar, Scalar)",
     4LL * 4 * 12 * 197 * 197 * 64, 2 * 4 * 4 * 12 * 197 * 64},
    // Heads behind the sequence, and fewer of them for key and value.
    {"aten::_flash_attention_forward(f16[2,10,8,64], f16[2,30,2,64], f16[2,30,2,64], -, -)",
     4 * 2 * 8 * 10 * 30 * 64, 2 * (2 * 10 * 8 * 64 * 2 + 2 * 2 * 30 * 2 * 64)},
    {"aten::_scaled_dot_product_flash_attention_backward(f16[1,2,8,4], f16[1,2,8,4], f16[1,2,8,4], "
     "f16[1,2,8,4], f16[1,2,8,4], f32[1,2,8])",
     10 * 2 * 8 * 8 * 4, 2 * 8 * 64},
    // Elementwise ops: inputs are broadcast, and the result has the type of them together.
    {"aten::add(f32[4,8], f32[4,8], Scalar)", 32, 4 * 96},
    {"aten::add(bf16[4,1], bf16[3,1,8], Scalar)", 96, 2 * (4 + 24 + 96)},
    {"aten::mul(bf16[4], f32[4])", 4, 4 * (2 + 4 + 4)},
    {"aten::mul(i64[4], f16[4])", 4, 4 * (8 + 2 + 2)},
    {"aten::mul(bf16[4,8], f64[], bf16[4,8])", 32, 2 * 64 + 8}, // the last one is the result
    {"aten::sub(i32[4], i64[], Scalar)", 4, 4 * 8 + 8},
    {"aten::div(f32[4], i64[])", 4, 4 * 8 + 8},
    {"aten::add_(bf16[4,8], f32[4,8], Scalar)", 32, 32 * (2 + 4 + 2)},
    {"aten::eq(i64[4,8], Scalar)", 0, 32 * 9},
    {"aten::where(b8[4,1], f32[8], f32[])", 0, 4 + 32 + 4 + 4 * 32},
    {"aten::gelu(f16[4,8], -)", 0, 2 * 64},
    {"aten::masked_fill_(f32[4,8], b8[8], Scalar)", 0, 32 * 8 + 8},
    {"aten::copy_(bf16[4,8], f32[4,8], Scalar)", 0, 32 * 6},
    {"aten::copy_(bf16[4,8], f32[8], Scalar)", 0, 32 * 2 + 8 * 4},
    {"aten::fill_(i64[4], Scalar)", 0, 32},
    {"aten::native_dropout(f32[4,8], Scalar, Scalar)", 0, 32 * 9},
    {"aten::native_dropout_backward(bf16[4,8], b8[4,8], Scalar)", 0, 32 * 5},
    {"aten::_softmax(bf16[4,8], -1, False)", 0, 32 * 4},
    {"aten::_softmax(bf16[4,8], -1, True)", 0, 32 * 6},
    {"aten::_softmax_backward_data(f32[4,8], f32[4,8], -1, 15)", 0, 32 * 10},
    // Reductions: along dimensions, or of all numbers.
    {"aten::sum(f32[4,8], [0], False, -)", 0, 4 * (32 + 8)},
    {"aten::sum(f32[4,8,2], [-1,-2], True, -)", 0, 4 * (64 + 4)},
    {"aten::sum(i32[4,8], -)", 0, 4 * 32 + 8},
    {"aten::mean(f32[4,8], [], False, -, f32[])", 0, 4 * 33},
    {"aten::amax(bf16[4,8], [1], False)", 0, 2 * 36},
    {"aten::max(f32[4,8], 1, False)", 0, 4 * 32 + 4 * 12},
    {"aten::max(f32[4,8])", 0, 4 * 33},
    {"aten::argmax(f32[4,8], -1, False)", 0, 4 * 32 + 4 * 8},
    {"aten::all(b8[4,8])", 0, 33},
    {"aten::linalg_vector_norm(f32[4,8], 2, [], False, -)", 0, 4 * 33},
    // Norms: a bias or a gradient that is absent costs nothing.
    {"aten::native_layer_norm(bf16[4,8], ScalarList, bf16[8], bf16[8], Scalar)", 0, 2 * 80},
    {"aten::native_layer_norm(f32[4,8], ScalarList, -, -, Scalar)", 0, 4 * 64},
    {"aten::native_layer_norm_backward(f32[4,8], f32[4,8], [8], f32[4,1], f32[4,1], f32[8], "
     "f32[8], "
     "[True,True,False])",
     0, 4 * (64 + 8 + 8 + 32 + 8)},
    {"aten::native_batch_norm_backward(f32[2,4,3], f32[2,4,3], f32[4], f32[4], f32[4], f32[4], "
     "f32[4], True, 1e-05, [True,True,True])",
     0, 4 * (48 + 12 + 24 + 8)},
    {"aten::embedding(bf16[1000,8], i64[2,3], Scalar, Scalar, Scalar)", 0, 2 * 6 * 2 * 8 + 6 * 8},
    {"aten::index_select(f32[4,10], -1, i64[5])", 0, 2 * 4 * 20 + 40},
    {"aten::gather(bf16[100,8], Scalar, i64[5,8], Scalar)", 0, 40 * (8 + 2 + 2)},
    {"aten::scatter_(f32[2,8,1], Scalar, i64[1,8,1], f32[1,8,1])", 0, 8 * (8 + 4 + 4)},
    {"aten::scatter_(f32[2,8,1], Scalar, i64[1,8,1], Scalar)", 0, 8 * (8 + 4)},
    {"aten::scatter_add_(f32[50], Scalar, i64[8], f32[8])", 8, 8 * (8 + 3 * 4)},
    // 112 to 56: windows of 3 with a stride of 2 and a row of padding.
    {"aten::max_pool2d_with_indices(bf16[10,64,112,112], [3,3], [2,2], [1,1], [1,1], False)", 0,
     640 * (112 * 112 * 2 + 56 * 56 * 10)},
    {"aten::max_pool2d_with_indices_backward(bf16[10,64,56,56], bf16[10,64,112,112], [3,3], [2,2], "
     "[1,1], [1,1], False, i64[10,64,56,56])",
     0, 640 * (112 * 112 * 2 + 56 * 56 * 10)},
    {"aten::avg_pool2d(f32[2,3,8,6], [2,2], [], [0,0], False, True, -)", 0, 4 * 6 * (48 + 12)},
    {"aten::avg_pool2d(f32[2,3,8,6], [2], [], [0], False, True, -)", 0, 4 * 6 * (48 + 12)},
    {"aten::avg_pool2d_backward(f32[2,3,4,3], f32[2,3,8,6], [2,2], [], [0,0], False, True, -)", 0,
     4 * 6 * (48 + 12)},
    {"triton_poi_fused_add_mul_3(bf16[4,8], bf16[8], bf16[4,8], Scalar)", 0, 2 * 72},
};

static void test_known(void) {
    for (size_t i = 0; i < sizeof kKnown / sizeof *kKnown; i++) {
        struct xpl_hlo_cost cost;
        CHECK(xpl_torch_cost(xpl_str_from(kKnown[i].call), false, &cost));
        CHECK_EQ(cost.model_flops, kKnown[i].flops);
        CHECK_EQ(cost.bytes, kKnown[i].bytes);
        CHECK_EQ(cost.hbm_read_bytes + cost.hbm_written_bytes, cost.bytes);
        const bool is_8_bit = xpl_str_has(xpl_str_from(kKnown[i].call), XPL_STR("f8"));
        CHECK_EQ(cost.device_flops, is_8_bit ? cost.model_flops / 2 : cost.model_flops);
    }
}

static void test_unknown(void) {
    static const char *const calls[] = {
        "",
        "aten::mm",
        "aten::mm()",
        "aten::mm(f32[4,8])",
        "aten::mm(f32[4,8], f32[9,16])",
        "aten::mm(f32[4,0], f32[0,16])",
        "aten::mm([4,8], [8,16])",
        "aten::mm(f32[4,8], f32[8,16]",
        "aten::mm(f32[2147483647,2147483647], f32[2147483647,2147483647])",
        "aten::mm(f32[99999999999,8], f32[8,16])",
        "aten::mm(f32[-4,8], f32[8,16])",
        "aten::mm(f32[4,8], f32[8,16], ...)",
        "aten::add(f32[4,8], f32[3,8], Scalar)",
        "aten::add(i64[4], f32[], Scalar)",
        "aten::add(Scalar, Scalar)",
        "aten::exp(i64[4])",
        "aten::mm_(f32[4,8], f32[8,16])",
        "aten::_softmax(bf16[4,8], Scalar, Scalar)",
        "aten::_softmax_backward_data(f32[4,8], f32[4,8], -1, 11)",
        "aten::sum(f32[4,8], ScalarList, Scalar, -)",
        "aten::sum(f32[4,8], [2], False, -)",
        "aten::sum(f32[4,8], [0], False, 6)",
        "aten::sum(f32[4,0], [1], False, -)",
        "aten::max(f32[4,8], f32[4,8])",
        "aten::native_layer_norm_backward(f32[4,8], f32[4,8], ScalarList, f32[4,1], f32[4,1], "
        "f32[8], "
        "f32[8], -)",
        "aten::embedding(bf16[0,8], i64[2,3], Scalar, Scalar, Scalar)",
        "aten::index_select(f32[4,10], Scalar, i64[5])",
        "aten::gather(f32[4,10], Scalar, Scalar)",
        "aten::avg_pool2d(f32[2,3,8,6], ScalarList, ScalarList, ScalarList, Scalar, Scalar, -)",
        "aten::avg_pool2d(f32[2,3,8,6], [2,2], [2,2], [0,0], True, True, -)",
        "aten::avg_pool2d(f32[2,3,8,0], [2,2], [2,2], [0,0], False, True, -)",
        "aten::cat(TensorList[[4,8],[4,8]], Scalar)", // of an unknown type
        "triton_poi_fused_embedding_3(bf16[4,8], bf16[4,8], Scalar)",
        "triton_tem_fused_mm_3(bf16[4,8], bf16[4,8], Scalar)",
        // Older traces have no values of arguments.
        "aten::convolution(f32[1,3,8,8], f32[4,3,3,3], f32[4], ScalarList, ScalarList, ScalarList, "
        "Scalar, ScalarList, Scalar)",
        "aten::convolution(f32[1,3,8,8], f32[4,3,3,3], f32[4], [0,0], [0,0], [1,1], False, [0,0], "
        "1)",
        "aten::convolution(f32[1,3,2,2], f32[4,3,9,9], f32[4], [1,1], [0,0], [1,1], False, [0,0], "
        "1)",
        "aten::conv2d(f32[1,3,8,8], f32[4,3,3,3], f32[4], [1,1], same, [1,1], 1)",
        "aten::convolution_backward(f32[1,4,4,4], f32[1,3,8,8], f32[4,3,3,3], [0], [2,2], [1,1], "
        "[1,1], False, [0,0], 1, [False,False,True])",
        "aten::_flash_attention_forward(f16[20,8,64], f16[30,8,64], f16[30,8,64], i32[3], i32[3])",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct xpl_hlo_cost cost = {.bytes = 1};
        CHECK(!xpl_torch_cost(xpl_str_from(calls[i]), false, &cost));
        CHECK_EQ(cost.bytes + cost.model_flops, 0);
    }
}

// Where ops inside of others have their own times, one of them has the cost.
static void test_nested(void) {
    struct xpl_hlo_cost cost;
    CHECK(xpl_torch_cost(XPL_STR("aten::linear(f32[4,8], f32[16,8], f32[16])"), false, &cost));
    CHECK(!xpl_torch_cost(XPL_STR("aten::linear(f32[4,8], f32[16,8], f32[16])"), true, &cost));
    CHECK(xpl_torch_cost(XPL_STR("aten::mm(f32[4,8], f32[8,16])"), true, &cost));
    CHECK(!xpl_torch_cost(XPL_STR("aten::mean(f32[4,8], -)"), true, &cost));
    CHECK(xpl_torch_cost(XPL_STR("aten::sum(f32[4,8], -)"), true, &cost));
    for (int transposed = 0; transposed < 2; transposed++) {
        char call[160];
        (void)snprintf(call, sizeof call,
                       "aten::_convolution(f32[2,8,14,14], f32[8,8,2,2], f32[8], [2,2], [0,0], "
                       "[1,1], %s, [0,0], 1, False, False, True, True)",
                       transposed ? "True" : "False");
        CHECK_EQ(xpl_torch_cost(xpl_str_from(call), true, &cost), transposed);
        CHECK(xpl_torch_cost(xpl_str_from(call), false, &cost));
    }
}

static void test_call_of(void) {
    static const char *const cases[][3] = {
        {"Net_0/Linear_3/aten::mm(f32[4,8])", "Net_0/Linear_3/aten::mm:torch.GEMM",
         "aten::mm(f32[4,8])"},
        {"aten::mm(f32[4,8])", "aten::mm:torch.GEMM", "aten::mm(f32[4,8])"},
        {"Net_0/aten::mm", "Net_0/aten::mm:torch.GEMM", ""},
        {"Net_0/other(f32[4])", "Net_0/aten::mm:torch.GEMM", ""},
        {"a/MatMul(x)", "a/MatMul:MatMul", ""},
        {"x", "Net_0/aten::mm:torch.GEMM", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(xpl_str_eq(xpl_torch_call_of(xpl_str_from(cases[i][0]), xpl_str_from(cases[i][1])),
                         xpl_str_from(cases[i][2])));
}

int main(void) {
    test_known();
    test_unknown();
    test_nested();
    test_call_of();
    return 0;
}
