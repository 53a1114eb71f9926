// SPDX-License-Identifier: Apache-2.0
// The names of the numbers in HLO's messages.  Written by tests/parity/hlo_schema.py.
#include "analysis/hlo/proto/schema.h"

// clang-format off
static const struct xpl_proto_value dnn_activation_mode[] = {
    {0, "kNone"}, {1, "kSigmoid"}, {2, "kRelu"}, {3, "kRelu6"}, {4, "kReluX"}, {5, "kTanh"},
    {6, "kBandPass"}, {7, "kElu"}, {8, "kLeakyRelu"}, {9, "kGeluExact"},
};
static const struct xpl_proto_value dnn_algorithm_proto_math_type[] = {
    {0, "DEFAULT_MATH"}, {1, "TENSOR_OP_MATH"},
};
static const struct xpl_proto_value compilation_event[] = {
    {0, "COMPILATION_EVENT_UNKNOWN_EVENT"}, {1, "COMPILATION_EVENT_FIRST_COMPILATION"},
    {2, "COMPILATION_EVENT_RECOMPILATION"},
};
static const struct xpl_proto_value convolution_kind[] = {
    {0, "CONVOLUTION_KIND_UNSET"}, {1, "CONVOLUTION_KIND_FPROP"}, {2, "CONVOLUTION_KIND_DGRAD"},
    {3, "CONVOLUTION_KIND_WGRAD"},
};
static const struct xpl_proto_value custom_call_api_version[] = {
    {0, "API_VERSION_UNSPECIFIED"}, {1, "API_VERSION_ORIGINAL"},
    {2, "API_VERSION_STATUS_RETURNING"}, {3, "API_VERSION_STATUS_RETURNING_UNIFIED"},
    {4, "API_VERSION_TYPED_FFI"},
};
static const struct xpl_proto_value custom_call_schedule[] = {
    {0, "SCHEDULE_NONE"}, {1, "SCHEDULE_LATEST"}, {2, "SCHEDULE_EARLIEST"},
};
static const struct xpl_proto_value debug_attributes_proto_debug_log_mode_proto[] = {
    {0, "NONE"}, {1, "DEFAULT"}, {2, "FUSION_DEBUGGER"}, {3, "NO_FUSION"}, {4, "GUARANTEED"},
};
static const struct xpl_proto_value debug_options_collectives_mode[] = {
    {0, "COLLECTIVES_MODE_INVALID"}, {1, "COLLECTIVES_PRIVATE_MEMORY"},
    {2, "COLLECTIVES_SYMMETRIC_MEMORY"}, {3, "COLLECTIVES_PEER_MEMORY"},
};
static const struct xpl_proto_value dim_level_type[] = {
    {0, "DIM_DENSE"}, {1, "DIM_COMPRESSED"}, {2, "DIM_SINGLETON"}, {3, "DIM_LOOSE_COMPRESSED"},
};
static const struct xpl_proto_value fft_type[] = {
    {0, "FFT"}, {1, "IFFT"}, {2, "RFFT"}, {3, "IRFFT"},
};
static const struct xpl_proto_value heap_simulator_trace_event_kind[] = {
    {0, "ALLOC"}, {1, "FREE"}, {2, "SHARE_WITH"},
};
static const struct xpl_proto_value hlo_module_proto_profile_type[] = {
    {0, "INVALID"}, {1, "FLAG"}, {2, "FUSION"}, {3, "LAYOUT"}, {4, "DOT"}, {5, "FLAGNET"},
    {6, "SHARDING"}, {7, "SCHEDULE"},
};
static const struct xpl_proto_value kind[] = {
    {0, "UNDEFINED_ALIAS"}, {1, "MAY_ALIAS"}, {2, "MUST_ALIAS"},
};
static const struct xpl_proto_value named_sharding_proto_reduction_op_proto[] = {
    {0, "SUM"}, {1, "MAX"}, {2, "MIN"},
};
static const struct xpl_proto_value op_sharding_shard_group_type[] = {
    {0, "AS"}, {1, "LIKE"},
};
static const struct xpl_proto_value op_sharding_type[] = {
    {0, "REPLICATED"}, {1, "MAXIMAL"}, {2, "TUPLE"}, {3, "OTHER"}, {4, "MANUAL"}, {5, "UNKNOWN"},
    {6, "UNREDUCED"},
};
static const struct xpl_proto_value padding_type[] = {
    {0, "PADDING_INVALID"}, {1, "PADDING_VALID"}, {2, "PADDING_SAME"},
};
static const struct xpl_proto_value precision_config_algorithm[] = {
    {0, "ALG_UNSET"}, {1, "ALG_DOT_ANY_F8_ANY_F8_F32"}, {2, "ALG_DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM"},
    {3, "ALG_DOT_F16_F16_F16"}, {4, "ALG_DOT_F16_F16_F32"}, {5, "ALG_DOT_BF16_BF16_BF16"},
    {6, "ALG_DOT_BF16_BF16_F32"}, {7, "ALG_DOT_BF16_BF16_F32_X3"}, {8, "ALG_DOT_BF16_BF16_F32_X6"},
    {9, "ALG_DOT_TF32_TF32_F32"}, {10, "ALG_DOT_TF32_TF32_F32_X3"}, {11, "ALG_DOT_F32_F32_F32"},
    {12, "ALG_DOT_F64_F64_F64"}, {13, "ALG_DOT_BF16_BF16_F32_X9"}, {14, "ALG_DOT_BF16_BF16_FP8X3"},
    {15, "ALG_DOT_BF16_BF16_FP8X4"},
};
static const struct xpl_proto_value precision_config_precision[] = {
    {0, "DEFAULT"}, {1, "HIGH"}, {2, "HIGHEST"},
};
static const struct xpl_proto_value primitive_type[] = {
    {0, "PRIMITIVE_TYPE_INVALID"}, {1, "PRED"}, {2, "S8"}, {3, "S16"}, {4, "S32"}, {5, "S64"},
    {6, "U8"}, {7, "U16"}, {8, "U32"}, {9, "U64"}, {10, "F16"}, {11, "F32"}, {12, "F64"},
    {13, "TUPLE"}, {14, "OPAQUE_TYPE"}, {15, "C64"}, {16, "BF16"}, {17, "TOKEN"}, {18, "C128"},
    {19, "F8E5M2"}, {20, "F8E4M3FN"}, {21, "S4"}, {22, "U4"}, {23, "F8E4M3B11FNUZ"},
    {24, "F8E5M2FNUZ"}, {25, "F8E4M3FNUZ"}, {26, "S2"}, {27, "U2"}, {28, "F8E4M3"}, {29, "F8E3M4"},
    {30, "S1"}, {31, "U1"}, {32, "F4E2M1FN"}, {33, "F8E8M0FNU"}, {34, "BUFFER"}, {35, "F6E3M2FN"},
    {36, "F6E2M3FN"},
};
static const struct xpl_proto_value profile_generation_strategy[] = {
    {0, "PROFILE_GENERATION_STRATEGY_UNKNOWN"}, {1, "PROFILE_GENERATION_STRATEGY_GA"},
    {2, "PROFILE_GENERATION_STRATEGY_FANTA"}, {3, "PROFILE_GENERATION_STRATEGY_CFO"},
    {4, "PROFILE_GENERATION_STRATEGY_EXHAUSTIVE"}, {5, "PROFILE_GENERATION_STRATEGY_LCM_GNN"},
    {6, "PROFILE_GENERATION_STRATEGY_LCM_MOE"},
};
static const struct xpl_proto_value profile_source[] = {
    {0, "PROFILE_SOURCE_UNKNOWN_SOURCE"}, {1, "PROFILE_SOURCE_EMBEDDED"},
    {2, "PROFILE_SOURCE_REMOTE"},
};
static const struct xpl_proto_value profile_type[] = {
    {0, "INVALID"}, {1, "WINDOW"}, {2, "FLAG"}, {3, "INTEGER"},
};
static const struct xpl_proto_value random_algorithm[] = {
    {0, "RNG_DEFAULT"}, {1, "RNG_THREE_FRY"}, {2, "RNG_PHILOX"},
};
static const struct xpl_proto_value random_distribution[] = {
    {0, "RNG_INVALID"}, {1, "RNG_UNIFORM"}, {2, "RNG_NORMAL"},
};
static const struct xpl_proto_value result_accuracy_mode[] = {
    {0, "DEFAULT"}, {1, "HIGHEST"},
};
static const struct xpl_proto_value tri_state[] = {
    {0, "TRI_STATE_UNSPECIFIED"}, {1, "TRI_STATE_TRUE"}, {2, "TRI_STATE_FALSE"},
};
static const struct xpl_proto_value triangular_solve_options_transpose[] = {
    {0, "TRANSPOSE_INVALID"}, {1, "NO_TRANSPOSE"}, {2, "TRANSPOSE"}, {3, "ADJOINT"},
};
static const struct xpl_proto_value gpu_collective_backend_config_collective_backend[] = {
    {0, "DEFAULT"},
};
static const struct xpl_proto_value gpu_collective_backend_config_collective_communication_domain[] = {
    {0, "COLLECTIVE_COMMUNICATION_DOMAIN_UNSPECIFIED"},
    {1, "COLLECTIVE_COMMUNICATION_DOMAIN_SCALE_UP_FABRIC"},
};
static const struct xpl_proto_value gpu_collective_backend_config_collective_kernel_strategy[] = {
    {0, "KERNEL_STRATEGY_DEFAULT"}, {1, "KERNEL_STRATEGY_TRITON_ONE_SHOT"},
    {2, "KERNEL_STRATEGY_TRITON_TWO_SHOT"},
};
static const struct xpl_proto_value gpu_cudnn_norm_backend_config_kind[] = {
    {0, "LAYER_FWD_INFER"}, {1, "LAYER_FWD_TRAIN"}, {2, "LAYER_BWD"},
};
static const struct xpl_proto_value gpu_cudnnf_mha_backend_config_mask_type[] = {
    {0, "NO_MASK"}, {1, "PADDING"}, {2, "CAUSAL"}, {3, "PADDING_CAUSAL"}, {4, "ALIBI"},
};
static const struct xpl_proto_value gpu_device_type[] = {
    {0, "DEVICE_TYPE_INVALID"}, {1, "DEVICE_TYPE_DEVICE"}, {2, "DEVICE_TYPE_HOST"},
};
static const struct xpl_proto_value gpu_gemm_backend_config_epilogue[] = {
    {0, "DEFAULT"}, {1, "BIAS"}, {2, "RELU"}, {3, "BIAS_RELU"}, {4, "GELU"}, {5, "GELU_AUX"},
    {6, "BIAS_GELU"}, {7, "BIAS_GELU_AUX"}, {8, "SILU"}, {9, "BIAS_SILU"},
};
static const struct xpl_proto_value gpu_native_emitter_type[] = {
    {0, "NATIVE_EMITTER_TYPE_INVALID"}, {1, "NATIVE_EMITTER_TYPE_LOOP"},
    {2, "NATIVE_EMITTER_TYPE_IN_PLACE_DYNAMIC_UPDATE_SLICE"},
    {3, "NATIVE_EMITTER_TYPE_CONCATENATE"}, {4, "NATIVE_EMITTER_TYPE_REDUCTION_ROW"},
    {5, "NATIVE_EMITTER_TYPE_REDUCTION_MULTIROW"}, {6, "NATIVE_EMITTER_TYPE_REDUCTION_COLUMN"},
    {7, "NATIVE_EMITTER_TYPE_REDUCTION_MULTICOLUMN"},
    {8, "NATIVE_EMITTER_TYPE_SCATTER_SORTED_INDICES"},
    {9, "NATIVE_EMITTER_TYPE_SCATTER_DISTRIBUTED_UPDATES"}, {10, "NATIVE_EMITTER_TYPE_TRANSPOSE"},
    {11, "NATIVE_EMITTER_TYPE_PACKED_TRANSPOSE"},
};

#define ROW(values) {values, sizeof(values) / sizeof *(values)}
const struct xpl_proto_enum xpl_hlo_enums[] = {
    ROW(dnn_activation_mode), ROW(dnn_algorithm_proto_math_type), ROW(compilation_event),
    ROW(convolution_kind), ROW(custom_call_api_version), ROW(custom_call_schedule),
    ROW(debug_attributes_proto_debug_log_mode_proto), ROW(debug_options_collectives_mode),
    ROW(dim_level_type), ROW(fft_type), ROW(heap_simulator_trace_event_kind),
    ROW(hlo_module_proto_profile_type), ROW(kind), ROW(named_sharding_proto_reduction_op_proto),
    ROW(op_sharding_shard_group_type), ROW(op_sharding_type), ROW(padding_type),
    ROW(precision_config_algorithm), ROW(precision_config_precision), ROW(primitive_type),
    ROW(profile_generation_strategy), ROW(profile_source), ROW(profile_type), ROW(random_algorithm),
    ROW(random_distribution), ROW(result_accuracy_mode), ROW(tri_state),
    ROW(triangular_solve_options_transpose), ROW(gpu_collective_backend_config_collective_backend),
    ROW(gpu_collective_backend_config_collective_communication_domain),
    ROW(gpu_collective_backend_config_collective_kernel_strategy),
    ROW(gpu_cudnn_norm_backend_config_kind), ROW(gpu_cudnnf_mha_backend_config_mask_type),
    ROW(gpu_device_type), ROW(gpu_gemm_backend_config_epilogue), ROW(gpu_native_emitter_type),
};
// clang-format on
