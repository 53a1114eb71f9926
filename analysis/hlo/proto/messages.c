// SPDX-License-Identifier: Apache-2.0
// The messages that an HloProto, or a GpuBackendConfig in it, can hold, as XProf 2.24.2 has them.
// Written by tests/parity/hlo_schema.py.
#include "analysis/hlo/proto/schema.h"

// clang-format off
enum {
    M_U_INT64_VALUE, M_DNN_ALGORITHM_PROTO, M_DNN_ALGORITHM_PROTO_TUNING_KNOBS_ENTRY,
    M_AUTOTUNE_RESULT_TRITON_GEMM_KEY, M_AXIS_REF_PROTO, M_AXIS_REF_PROTO_SUB_AXIS,
    M_BLOCK_SCALING_CONFIG, M_BLOCK_SCALING_CONFIG_TENSOR_BLOCK_SCALING_CONFIG,
    M_BUFFER_ALLOCATION_PROTO, M_BUFFER_ALLOCATION_PROTO_ASSIGNED, M_BUFFER_ASSIGNMENT_PROTO,
    M_BUFFER_ASSIGNMENT_PROTO_BUFFER_ALIAS, M_BUFFER_ASSIGNMENT_PROTO_PEAK_BUFFERS,
    M_CHOLESKY_OPTIONS, M_COLLECTIVE_DEVICE_LIST_PROTO, M_CONVOLUTION_DIMENSION_NUMBERS,
    M_CROSS_PROGRAM_PREFETCH, M_DEBUG_ATTRIBUTE_TABLE_ENTRY_PROTO, M_DEBUG_ATTRIBUTES_PROTO,
    M_DEVICE_ASSIGNMENT_PROTO, M_DEVICE_ASSIGNMENT_PROTO_COMPUTATION_DEVICE,
    M_DOT_DIMENSION_NUMBERS, M_FRONTEND_ATTRIBUTES, M_FRONTEND_ATTRIBUTES_MAP_ENTRY,
    M_GATHER_DIMENSION_NUMBERS, M_HEAP_SIMULATOR_TRACE, M_HEAP_SIMULATOR_TRACE_EVENT,
    M_HLO_BUFFER_DONOR_PROTO, M_HLO_BUFFER_DONOR_PROTO_BUFFER_DONOR_ENTRY_PROTO,
    M_HLO_COMPUTATION_PROTO, M_HLO_INPUT_OUTPUT_ALIAS_PROTO,
    M_HLO_INPUT_OUTPUT_ALIAS_PROTO_ALIAS_ENTRY_PROTO, M_HLO_INSTRUCTION_PROTO,
    M_HLO_INSTRUCTION_PROTO_SLICE_DIMENSIONS, M_HLO_MODULE_PROTO, M_HLO_MODULE_PROTO_PROFILE_INFO,
    M_HLO_PROTO, M_HLO_SCHEDULE_PROTO, M_HLO_SCHEDULE_PROTO_INSTRUCTION_SEQUENCE,
    M_HLO_SCHEDULE_PROTO_SEQUENCES_ENTRY, M_IOTA_REPLICA_GROUP_LIST_PROTO, M_LAYOUT_PROTO,
    M_LITERAL_PROTO, M_LOGICAL_BUFFER_PROTO, M_LOGICAL_BUFFER_PROTO_LOCATION,
    M_MESH_AXES_REPLICA_GROUP_LIST_PROTO, M_MESH_PROTO, M_MESH_PROTO_IOTA_TRANSFORM,
    M_MESH_PROTO_MESH_AXIS, M_NAMED_SHARDING_PROTO, M_NAMED_SHARDING_PROTO_DIMENSION_SHARDING,
    M_OP_METADATA, M_OP_METADATA_PROFILE_INFO, M_OP_SHARDING, M_ORIGINAL_ARRAY_PROTO,
    M_ORIGINAL_VALUE_ELEMENT_PROTO, M_ORIGINAL_VALUE_PROTO, M_ORIGINAL_VALUE_RECOVERY_TABLE_PROTO,
    M_ORIGINAL_VALUE_RECOVERY_TABLE_PROTO_ENTRY, M_OUTPUT_OPERAND_ALIASING, M_PADDING_CONFIG,
    M_PADDING_CONFIG_PADDING_CONFIG_DIMENSION, M_PARAMETER_REPLICATION, M_PAYLOAD,
    M_PRECISION_CONFIG, M_PROGRAM_SHAPE_PROTO, M_RAGGED_DOT_DIMENSION_NUMBERS, M_REPLICA_GROUP,
    M_RESULT_ACCURACY, M_RESULT_ACCURACY_TOLERANCE, M_SCATTER_DIMENSION_NUMBERS, M_SHAPE_PROTO,
    M_SHUFFLE_MODE, M_SHUFFLE_MODE_ROTATE, M_SOURCE_TARGET, M_SPARSITY_CONFIG,
    M_SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG, M_SPLIT_CONFIG_PROTO, M_STACK_FRAME_INDEX_PROTO,
    M_STACK_FRAME_INDEX_PROTO_FILE_LOCATION, M_STACK_FRAME_INDEX_PROTO_STACK_FRAME, M_STATISTIC,
    M_STATISTICS_VIZ, M_TILE_PROTO, M_TRIANGULAR_SOLVE_OPTIONS, M_WINDOW, M_WINDOW_DIMENSION,
    M_X64_CONFIG_PROTO, M_GPU_BITCAST_BACKEND_CONFIG, M_GPU_BLOCK_SCALED_DOT_BACKEND_CONFIG,
    M_GPU_COLLECTIVE_BACKEND_CONFIG, M_GPU_COLLECTIVE_METADATA_BACKEND_CONFIG,
    M_GPU_CU_DNN_FUSION_CONFIG, M_GPU_CUDNN_CONV_BACKEND_CONFIG, M_GPU_CUDNN_NORM_BACKEND_CONFIG,
    M_GPU_CUDNNF_MHA_BACKEND_CONFIG, M_GPU_CUSTOM_CALL_BACKEND_CONFIG, M_GPU_DYNAMIC_SLICE_CONFIG,
    M_GPU_DYNAMIC_SLICE_CONFIG_LINEAR, M_GPU_DYNAMIC_SLICE_CONFIG_TABLE,
    M_GPU_FUSION_BACKEND_CONFIG, M_GPU_GEMM_BACKEND_CONFIG, M_GPU_GPU_BACKEND_CONFIG,
    M_GPU_GROUPED_GEMM_BACKEND_CONFIG, M_GPU_NATIVE_EMITTER_BACKEND_CONFIG, M_GPU_REIFICATION_COST,
    M_GPU_TENSOR_IR_FUSION_CONFIG, M_XTILE_BLOCK_LEVEL_FUSION_CONFIG, M_XTILE_CUSTOM_FUSION_CONFIG,
    M_XTILE_TILE,
};
enum {
    E_DNN_ACTIVATION_MODE, E_DNN_ALGORITHM_PROTO_MATH_TYPE, E_COMPILATION_EVENT, E_CONVOLUTION_KIND,
    E_CUSTOM_CALL_API_VERSION, E_CUSTOM_CALL_SCHEDULE,
    E_DEBUG_ATTRIBUTES_PROTO_DEBUG_LOG_MODE_PROTO, E_DEBUG_OPTIONS_COLLECTIVES_MODE,
    E_DIM_LEVEL_TYPE, E_FFT_TYPE, E_HEAP_SIMULATOR_TRACE_EVENT_KIND,
    E_HLO_MODULE_PROTO_PROFILE_TYPE, E_KIND, E_NAMED_SHARDING_PROTO_REDUCTION_OP_PROTO,
    E_OP_SHARDING_SHARD_GROUP_TYPE, E_OP_SHARDING_TYPE, E_PADDING_TYPE,
    E_PRECISION_CONFIG_ALGORITHM, E_PRECISION_CONFIG_PRECISION, E_PRIMITIVE_TYPE,
    E_PROFILE_GENERATION_STRATEGY, E_PROFILE_SOURCE, E_PROFILE_TYPE, E_RANDOM_ALGORITHM,
    E_RANDOM_DISTRIBUTION, E_RESULT_ACCURACY_MODE, E_TRI_STATE,
    E_TRIANGULAR_SOLVE_OPTIONS_TRANSPOSE, E_GPU_COLLECTIVE_BACKEND_CONFIG_COLLECTIVE_BACKEND,
    E_GPU_COLLECTIVE_BACKEND_CONFIG_COLLECTIVE_COMMUNICATION_DOMAIN,
    E_GPU_COLLECTIVE_BACKEND_CONFIG_COLLECTIVE_KERNEL_STRATEGY,
    E_GPU_CUDNN_NORM_BACKEND_CONFIG_KIND, E_GPU_CUDNNF_MHA_BACKEND_CONFIG_MASK_TYPE,
    E_GPU_DEVICE_TYPE, E_GPU_GEMM_BACKEND_CONFIG_EPILOGUE, E_GPU_NATIVE_EMITTER_TYPE,
};
enum {
    DOUBLE = XPL_PROTO_DOUBLE, FLOAT = XPL_PROTO_FLOAT, INT64 = XPL_PROTO_INT64,
    UINT64 = XPL_PROTO_UINT64, INT32 = XPL_PROTO_INT32, BOOL = XPL_PROTO_BOOL,
    TEXT = XPL_PROTO_TEXT, MESSAGE = XPL_PROTO_MESSAGE, BYTES = XPL_PROTO_BYTES,
    UINT32 = XPL_PROTO_UINT32, ENUM = XPL_PROTO_ENUM,
};
enum {
    ONE = XPL_PROTO_ONE, MANY = XPL_PROTO_MANY, MAP = XPL_PROTO_MAP, KNOWN = XPL_PROTO_KNOWN,
    ONE_OF_1 = XPL_PROTO_KNOWN | XPL_PROTO_ONE_OF, ONCE = XPL_PROTO_KNOWN | XPL_PROTO_ONCE,
};

#define FIELDS static const struct xpl_proto_field
FIELDS u_int64_value[] = { {1, UINT64, ONE, 0, "value"}};
FIELDS dnn_algorithm_proto[] = { {1, INT64, ONE, 0, "algo_id"},
    {2, ENUM, ONE, E_DNN_ALGORITHM_PROTO_MATH_TYPE, "math_type"},
    {4, MESSAGE, MAP, M_DNN_ALGORITHM_PROTO_TUNING_KNOBS_ENTRY, "tuning_knobs"},
    {5, BOOL, ONE, 0, "is_cudnn_frontend"}, {6, MESSAGE, KNOWN, M_U_INT64_VALUE, "workspace_size"}};
FIELDS dnn_algorithm_proto_tuning_knobs_entry[] = { {1, INT64, ONE, 0, "key"},
    {2, INT64, ONE, 0, "value"}};
FIELDS autotune_result_triton_gemm_key[] = { {1, INT64, ONE, 0, "block_m"},
    {2, INT64, ONE, 0, "block_n"}, {3, INT64, ONE, 0, "block_k"}, {4, INT64, ONE, 0, "split_k"},
    {5, INT64, ONE, 0, "num_stages"}, {6, INT64, ONE, 0, "num_warps"},
    {7, INT64, ONE, 0, "num_ctas"}, {8, BOOL, ONE, 0, "is_tma_allowed"},
    {9, BOOL, ONE, 0, "is_warp_specialization_allowed"}, {10, INT64, ONE, 0, "waves_per_eu"},
    {11, INT64, ONE, 0, "group_size"}, {12, INT64, ONE, 0, "mfma_size"}};
FIELDS axis_ref_proto[] = { {1, INT64, ONE, 0, "mesh_axis_index"},
    {2, MESSAGE, KNOWN, M_AXIS_REF_PROTO_SUB_AXIS, "sub_axis_info"}};
FIELDS axis_ref_proto_sub_axis[] = { {1, INT64, ONE, 0, "pre_size"}, {2, INT64, ONE, 0, "size"}};
FIELDS block_scaling_config[] = {
    {1, MESSAGE, KNOWN, M_BLOCK_SCALING_CONFIG_TENSOR_BLOCK_SCALING_CONFIG, "lhs"},
    {2, MESSAGE, KNOWN, M_BLOCK_SCALING_CONFIG_TENSOR_BLOCK_SCALING_CONFIG, "rhs"}};
FIELDS block_scaling_config_tensor_block_scaling_config[] = { {1, INT32, ONE, 0, "scale_idx"},
    {2, INT32, KNOWN, 0, "zero_idx"}, {3, INT64, MANY, 0, "strides"}, {4, INT64, MANY, 0, "steps"}};
FIELDS buffer_allocation_proto[] = { {1, INT64, ONE, 0, "index"}, {2, INT64, ONE, 0, "size"},
    {3, BOOL, ONE, 0, "is_thread_local"}, {5, BOOL, ONE, 0, "is_entry_computation_parameter"},
    {6, INT64, ONE, 0, "parameter_number"}, {7, BOOL, ONE, 0, "maybe_live_out"},
    {8, INT64, ONE, 0, "color"}, {9, MESSAGE, MANY, M_BUFFER_ALLOCATION_PROTO_ASSIGNED, "assigned"},
    {10, INT64, MANY, 0, "parameter_shape_index"}, {11, BOOL, ONE, 0, "is_tuple"},
    {12, BOOL, ONE, 0, "is_constant"}, {13, BOOL, ONE, 0, "is_parameter_aliased_with_output"}};
FIELDS buffer_allocation_proto_assigned[] = { {1, INT64, ONE, 0, "logical_buffer_id"},
    {2, INT64, ONE, 0, "offset"}, {3, INT64, ONE, 0, "size"},
    {4, ENUM, ONE, E_PRIMITIVE_TYPE, "element_type"}};
FIELDS buffer_assignment_proto[] = { {1, MESSAGE, MANY, M_LOGICAL_BUFFER_PROTO, "logical_buffers"},
    {2, MESSAGE, MANY, M_BUFFER_ASSIGNMENT_PROTO_BUFFER_ALIAS, "buffer_aliases"},
    {3, MESSAGE, MANY, M_BUFFER_ALLOCATION_PROTO, "buffer_allocations"},
    {4, MESSAGE, MANY, M_HEAP_SIMULATOR_TRACE, "heap_simulator_traces"},
    {5, MESSAGE, MANY, M_BUFFER_ASSIGNMENT_PROTO_PEAK_BUFFERS, "peak_buffers"}};
FIELDS buffer_assignment_proto_buffer_alias[] = { {1, INT64, ONE, 0, "source_buffer_id"},
    {2, MESSAGE, KNOWN, M_LOGICAL_BUFFER_PROTO_LOCATION, "location"}};
FIELDS buffer_assignment_proto_peak_buffers[] = { {1, INT64, ONE, 0, "index"},
    {2, INT64, MANY, 0, "logical_buffer_ids"}};
FIELDS cholesky_options[] = { {1, BOOL, ONE, 0, "lower"}};
FIELDS collective_device_list_proto[] = { {1, MESSAGE, MANY, M_REPLICA_GROUP, "replica_groups"}};
FIELDS convolution_dimension_numbers[] = { {3, INT64, ONE, 0, "kernel_input_feature_dimension"},
    {4, INT64, ONE, 0, "kernel_output_feature_dimension"},
    {6, INT64, MANY, 0, "kernel_spatial_dimensions"}, {7, INT64, ONE, 0, "input_batch_dimension"},
    {8, INT64, ONE, 0, "input_feature_dimension"}, {9, INT64, ONE, 0, "output_batch_dimension"},
    {10, INT64, ONE, 0, "output_feature_dimension"},
    {11, INT64, MANY, 0, "input_spatial_dimensions"},
    {12, INT64, MANY, 0, "output_spatial_dimensions"}};
FIELDS cross_program_prefetch[] = { {1, INT64, ONE, 0, "parameter"}, {2, INT64, MANY, 0, "index"},
    {3, INT64, ONE, 0, "offset"}};
FIELDS debug_attribute_table_entry_proto[] = {
    {1, MESSAGE, KNOWN, M_ORIGINAL_ARRAY_PROTO, "original_array"},
    {2, MESSAGE, MANY, M_DEBUG_ATTRIBUTES_PROTO, "debug_attributes"}};
FIELDS debug_attributes_proto[] = {
    {1, ENUM, ONE, E_DEBUG_ATTRIBUTES_PROTO_DEBUG_LOG_MODE_PROTO, "log_mode"},
    {2, INT64, ONE, 0, "callback_id"}, {3, INT64, ONE, 0, "op_id"},
    {4, BOOL, ONE, 0, "partitioned"}, {5, TEXT, ONE, 0, "operands_sharding"},
    {6, MESSAGE, KNOWN, M_X64_CONFIG_PROTO, "x64_config"}};
FIELDS device_assignment_proto[] = { {1, INT32, ONE, 0, "replica_count"},
    {2, INT32, ONE, 0, "computation_count"},
    {3, MESSAGE, MANY, M_DEVICE_ASSIGNMENT_PROTO_COMPUTATION_DEVICE, "computation_devices"}};
FIELDS device_assignment_proto_computation_device[] = { {1, INT64, MANY, 0, "replica_device_ids"}};
FIELDS dot_dimension_numbers[] = { {1, INT64, MANY, 0, "lhs_contracting_dimensions"},
    {2, INT64, MANY, 0, "rhs_contracting_dimensions"}, {3, INT64, MANY, 0, "lhs_batch_dimensions"},
    {4, INT64, MANY, 0, "rhs_batch_dimensions"}};
FIELDS frontend_attributes[] = { {1, MESSAGE, MAP, M_FRONTEND_ATTRIBUTES_MAP_ENTRY, "map"}};
FIELDS frontend_attributes_map_entry[] = { {1, TEXT, ONE, 0, "key"}, {2, TEXT, ONE, 0, "value"}};
FIELDS gather_dimension_numbers[] = { {1, INT64, MANY, 0, "offset_dims"},
    {2, INT64, MANY, 0, "collapsed_slice_dims"}, {3, INT64, MANY, 0, "start_index_map"},
    {4, INT64, ONE, 0, "index_vector_dim"}, {5, INT64, MANY, 0, "operand_batching_dims"},
    {6, INT64, MANY, 0, "start_indices_batching_dims"}};
FIELDS heap_simulator_trace[] = { {1, MESSAGE, MANY, M_HEAP_SIMULATOR_TRACE_EVENT, "events"},
    {2, BOOL, ONE, 0, "whole_module_simulation"}, {3, INT64, ONE, 0, "buffer_allocation_index"}};
FIELDS heap_simulator_trace_event[] = { {1, ENUM, ONE, E_HEAP_SIMULATOR_TRACE_EVENT_KIND, "kind"},
    {2, INT64, ONE, 0, "buffer_id"}, {3, TEXT, ONE, 0, "computation_name"},
    {4, TEXT, ONE, 0, "instruction_name"}, {5, INT64, ONE, 0, "share_with_canonical_id"}};
FIELDS hlo_buffer_donor_proto[] = {
    {1, MESSAGE, MANY, M_HLO_BUFFER_DONOR_PROTO_BUFFER_DONOR_ENTRY_PROTO, "entries"}};
FIELDS hlo_buffer_donor_proto_buffer_donor_entry_proto[] = { {1, INT64, ONE, 0, "parameter_number"},
    {2, INT64, MANY, 0, "parameter_shape_index"}};
FIELDS hlo_computation_proto[] = { {1, TEXT, ONE, 0, "name"},
    {2, MESSAGE, MANY, M_HLO_INSTRUCTION_PROTO, "instructions"},
    {4, MESSAGE, KNOWN, M_PROGRAM_SHAPE_PROTO, "program_shape"}, {5, INT64, ONE, 0, "id"},
    {6, INT64, ONE, 0, "root_id"}, {7, BOOL, ONE, 0, "is_fusion_computation"},
    {8, TEXT, ONE, 0, "execution_thread"}, {9, BYTES, ONE, 0, "backend_config"}};
FIELDS hlo_input_output_alias_proto[] = {
    {1, MESSAGE, MANY, M_HLO_INPUT_OUTPUT_ALIAS_PROTO_ALIAS_ENTRY_PROTO, "entries"}};
FIELDS hlo_input_output_alias_proto_alias_entry_proto[] = {
    {1, INT64, MANY, 0, "output_shape_index"}, {2, INT64, ONE, 0, "parameter_number"},
    {3, INT64, MANY, 0, "parameter_shape_index"}, {4, ENUM, ONE, E_KIND, "kind"}};
FIELDS hlo_instruction_proto[] = { {1, TEXT, ONE, 0, "name"}, {2, TEXT, ONE, 0, "opcode"},
    {3, MESSAGE, KNOWN, M_SHAPE_PROTO, "shape"}, {7, MESSAGE, KNOWN, M_OP_METADATA, "metadata"},
    {8, MESSAGE, KNOWN, M_LITERAL_PROTO, "literal"}, {9, INT64, ONE, 0, "parameter_number"},
    {11, TEXT, ONE, 0, "fusion_kind"}, {13, INT64, ONE, 0, "tuple_index"},
    {14, INT64, MANY, 0, "dimensions"}, {15, MESSAGE, KNOWN, M_WINDOW, "window"},
    {16, MESSAGE, KNOWN, M_CONVOLUTION_DIMENSION_NUMBERS, "convolution_dimension_numbers"},
    {17, MESSAGE, MANY, M_HLO_INSTRUCTION_PROTO_SLICE_DIMENSIONS, "slice_dimensions"},
    {18, INT32, ONE, 0, "exponent_bits"}, {19, INT32, ONE, 0, "mantissa_bits"},
    {20, INT64, MANY, 0, "dynamic_slice_sizes"},
    {21, MESSAGE, KNOWN, M_PADDING_CONFIG, "padding_config"}, {22, BYTES, ONE, 0, "outfeed_config"},
    {23, ENUM, ONE, E_RANDOM_DISTRIBUTION, "distribution"}, {24, FLOAT, ONE, 0, "epsilon"},
    {25, INT64, ONE, 0, "feature_index"}, {26, INT64, ONE, 0, "channel_id"},
    {27, BYTES, ONE, 0, "infeed_config"}, {28, TEXT, ONE, 0, "custom_call_target"},
    {29, MESSAGE, KNOWN, M_SHAPE_PROTO, "outfeed_shape"},
    {30, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "dot_dimension_numbers"},
    {31, ENUM, ONE, E_FFT_TYPE, "fft_type"}, {32, INT64, MANY, 0, "fft_length"},
    {33, MESSAGE, KNOWN, M_GATHER_DIMENSION_NUMBERS, "gather_dimension_numbers"},
    {34, INT64, MANY, 0, "gather_slice_sizes"}, {35, INT64, ONE, 0, "id"},
    {36, INT64, MANY, 0, "operand_ids"}, {37, INT64, MANY, 0, "control_predecessor_ids"},
    {38, INT64, MANY, 0, "called_computation_ids"}, {40, MESSAGE, KNOWN, M_OP_SHARDING, "sharding"},
    {43, BYTES, ONE, 0, "backend_config"}, {45, INT64, ONE, 0, "all_reduce_id"},
    {47, BOOL, ONE, 0, "is_host_transfer"},
    {48, MESSAGE, KNOWN, M_SCATTER_DIMENSION_NUMBERS, "scatter_dimension_numbers"},
    {49, MESSAGE, MANY, M_REPLICA_GROUP, "replica_groups"},
    {50, INT64, ONE, 0, "feature_group_count"},
    {51, MESSAGE, KNOWN, M_PRECISION_CONFIG, "precision_config"},
    {52, MESSAGE, MANY, M_SOURCE_TARGET, "source_target_pairs"},
    {54, MESSAGE, KNOWN, M_OP_SHARDING, "domain_entry_sharding"},
    {55, MESSAGE, KNOWN, M_OP_SHARDING, "domain_exit_sharding"},
    {56, BOOL, ONE, 0, "constrain_layout"},
    {57, MESSAGE, MANY, M_SHAPE_PROTO, "operand_shapes_with_layout"},
    {58, INT64, ONE, 0, "batch_group_count"},
    {59, MESSAGE, KNOWN, M_TRIANGULAR_SOLVE_OPTIONS, "triangular_solve_options"},
    {60, BOOL, ONE, 0, "is_stable"},
    {61, MESSAGE, KNOWN, M_PARAMETER_REPLICATION, "parameter_replication"},
    {62, MESSAGE, KNOWN, M_CHOLESKY_OPTIONS, "cholesky_options"},
    {63, TEXT, ONE, 0, "comparison_direction"}, {65, BOOL, ONE, 0, "custom_call_has_side_effect"},
    {66, INT64, ONE, 0, "delta"}, {67, BOOL, ONE, 0, "indices_are_sorted"},
    {68, MESSAGE, KNOWN, M_FRONTEND_ATTRIBUTES, "frontend_attributes"},
    {69, BOOL, ONE, 0, "unique_indices"}, {70, ENUM, ONE, E_RANDOM_ALGORITHM, "rng_algorithm"},
    {71, BOOL, ONE, 0, "use_global_device_ids"}, {72, TEXT, ONE, 0, "comparison_type"},
    {73, BOOL, ONE, 0, "is_cross_program_prefetch"},
    {74, MESSAGE, MANY, M_OUTPUT_OPERAND_ALIASING, "output_operand_aliasing"},
    {75, ENUM, ONE, E_PADDING_TYPE, "padding_type"},
    {76, ENUM, ONE, E_CUSTOM_CALL_SCHEDULE, "custom_call_schedule"},
    {77, ENUM, ONE, E_CUSTOM_CALL_API_VERSION, "custom_call_api_version"},
    {79, TEXT, ONE, 0, "async_execution_thread"},
    {80, INT32, ONCE, 0, "cross_program_prefetch_index"}, {81, INT64, ONE, 0, "k"},
    {82, MESSAGE, KNOWN, M_STATISTICS_VIZ, "statistics_viz"}, {85, BOOL, ONE, 0, "largest"},
    {87, MESSAGE, ONE_OF_1, M_COLLECTIVE_DEVICE_LIST_PROTO, "collective_device_list"},
    {88, MESSAGE, KNOWN, M_ORIGINAL_VALUE_PROTO, "original_value"},
    {89, BOOL, ONE, 0, "is_composite"},
    {90, MESSAGE, KNOWN, M_RAGGED_DOT_DIMENSION_NUMBERS, "ragged_dot_dimension_numbers"},
    {91, MESSAGE, KNOWN, M_RESULT_ACCURACY, "result_accuracy"},
    {92, MESSAGE, ONE_OF_1, M_IOTA_REPLICA_GROUP_LIST_PROTO, "iota_collective_device_list"},
    {93, MESSAGE, ONE_OF_1, M_MESH_AXES_REPLICA_GROUP_LIST_PROTO, "mesh_axes_replica_group_list"},
    {94, BOOL, ONE, 0, "is_reverse"}, {95, INT64, ONE, 0, "num_carries"},
    {96, ENUM, ONE, E_TRI_STATE, "is_associative"},
    {97, ENUM, ONE, E_CONVOLUTION_KIND, "conv_kind"},
    {98, MESSAGE, KNOWN, M_SPARSITY_CONFIG, "sparsity_config"},
    {99, MESSAGE, KNOWN, M_PAYLOAD, "backend_config_payload"},
    {100, BOOL, ONE, 0, "has_dynamic_root"},
    {101, MESSAGE, KNOWN, M_BLOCK_SCALING_CONFIG, "block_scaling_config"},
    {102, TEXT, ONE, 0, "comparison_order"}, {103, MESSAGE, KNOWN, M_SHUFFLE_MODE, "shuffle_mode"}};
FIELDS hlo_instruction_proto_slice_dimensions[] = { {1, INT64, ONE, 0, "start"},
    {2, INT64, ONE, 0, "limit"}, {3, INT64, ONE, 0, "stride"}};
FIELDS hlo_module_proto[] = { {1, TEXT, ONE, 0, "name"},
    {2, TEXT, ONE, 0, "entry_computation_name"},
    {3, MESSAGE, MANY, M_HLO_COMPUTATION_PROTO, "computations"},
    {4, MESSAGE, KNOWN, M_PROGRAM_SHAPE_PROTO, "host_program_shape"}, {5, INT64, ONE, 0, "id"},
    {6, INT64, ONE, 0, "entry_computation_id"},
    {7, MESSAGE, KNOWN, M_HLO_SCHEDULE_PROTO, "schedule"},
    {8, MESSAGE, KNOWN, M_HLO_INPUT_OUTPUT_ALIAS_PROTO, "input_output_alias"},
    {10, MESSAGE, MANY, M_CROSS_PROGRAM_PREFETCH, "cross_program_prefetches"},
    {11, BOOL, ONE, 0, "is_dynamic"}, {12, MESSAGE, KNOWN, M_OP_SHARDING, "spmd_output_sharding"},
    {13, MESSAGE, MANY, M_HLO_MODULE_PROTO_PROFILE_INFO, "profile_info"},
    {14, MESSAGE, MANY, M_OP_SHARDING, "spmd_parameters_shardings"},
    {15, MESSAGE, KNOWN, M_DEVICE_ASSIGNMENT_PROTO, "device_assignment"},
    {16, BOOL, ONE, 0, "use_auto_spmd_partitioning"},
    {17, MESSAGE, KNOWN, M_STACK_FRAME_INDEX_PROTO, "stack_frame_index"},
    {18, MESSAGE, KNOWN, M_HLO_BUFFER_DONOR_PROTO, "buffer_donor"},
    {19, MESSAGE, KNOWN, M_FRONTEND_ATTRIBUTES, "frontend_attributes"},
    {20, MESSAGE, KNOWN, M_ORIGINAL_VALUE_RECOVERY_TABLE_PROTO, "original_value_recovery_table"},
    {21, TEXT, ONE, 0, "device_type"}, {22, BYTES, MANY, 0, "payloads"},
    {23, INT64, KNOWN, 0, "pjrt_id"},
    {24, MESSAGE, MANY, M_DEBUG_ATTRIBUTE_TABLE_ENTRY_PROTO, "debug_attributes"},
    {25, BYTES, ONE, 0, "backend_config"}};
FIELDS hlo_module_proto_profile_info[] = {
    {1, ENUM, ONE, E_HLO_MODULE_PROTO_PROFILE_TYPE, "profile_type"},
    {2, DOUBLE, ONE, 0, "relative_speedup"}, {3, ENUM, ONE, E_PROFILE_SOURCE, "profile_source"},
    {4, ENUM, ONE, E_COMPILATION_EVENT, "compilation_event"}, {5, TEXT, ONE, 0, "fingerprint"},
    {6, ENUM, ONE, E_PROFILE_GENERATION_STRATEGY, "profile_generation_strategy"},
    {7, INT64, ONE, 0, "original_changelist"}, {8, INT64, ONE, 0, "changelist"}};
FIELDS hlo_proto[] = { {1, MESSAGE, KNOWN, M_HLO_MODULE_PROTO, "hlo_module"},
    {3, MESSAGE, KNOWN, M_BUFFER_ASSIGNMENT_PROTO, "buffer_assignment"}};
FIELDS hlo_schedule_proto[] = {
    {1, MESSAGE, MAP, M_HLO_SCHEDULE_PROTO_SEQUENCES_ENTRY, "sequences"}};
FIELDS hlo_schedule_proto_instruction_sequence[] = { {1, INT64, MANY, 0, "instruction_ids"}};
FIELDS hlo_schedule_proto_sequences_entry[] = { {1, INT64, ONE, 0, "key"},
    {2, MESSAGE, KNOWN, M_HLO_SCHEDULE_PROTO_INSTRUCTION_SEQUENCE, "value"}};
FIELDS iota_replica_group_list_proto[] = { {1, INT64, ONE, 0, "num_replica_groups"},
    {2, INT64, ONE, 0, "num_devices_per_group"}, {3, INT64, MANY, 0, "iota_reshape_dims"},
    {4, INT32, MANY, 0, "iota_transpose_perm"}};
FIELDS layout_proto[] = { {1, INT64, MANY, 0, "minor_to_major"},
    {6, MESSAGE, MANY, M_TILE_PROTO, "tiles"}, {7, INT64, ONE, 0, "element_size_in_bits"},
    {8, INT64, ONE, 0, "memory_space"}, {9, ENUM, MANY, E_DIM_LEVEL_TYPE, "dim_level_types"},
    {10, MESSAGE, KNOWN, M_SHAPE_PROTO, "physical_shape"},
    {11, ENUM, ONE, E_PRIMITIVE_TYPE, "index_primitive_type"},
    {12, ENUM, ONE, E_PRIMITIVE_TYPE, "pointer_primitive_type"}, {13, BOOL, MANY, 0, "dim_unique"},
    {14, BOOL, MANY, 0, "dim_ordered"}, {15, INT64, ONE, 0, "dynamic_shape_metadata_prefix_bytes"},
    {16, INT64, ONE, 0, "tail_padding_alignment_in_elements"},
    {17, MESSAGE, MANY, M_SPLIT_CONFIG_PROTO, "split_configs"}};
FIELDS literal_proto[] = { {1, MESSAGE, KNOWN, M_SHAPE_PROTO, "shape"}, {2, BOOL, MANY, 0, "preds"},
    {3, BYTES, ONE, 0, "u8s"}, {4, INT32, MANY, 0, "s32s"}, {5, INT64, MANY, 0, "s64s"},
    {6, UINT32, MANY, 0, "u32s"}, {7, UINT64, MANY, 0, "u64s"}, {8, FLOAT, MANY, 0, "f32s"},
    {9, DOUBLE, MANY, 0, "f64s"}, {10, MESSAGE, MANY, M_LITERAL_PROTO, "tuple_literals"},
    {11, BYTES, ONE, 0, "f16s"}, {12, FLOAT, MANY, 0, "c64s"}, {13, BYTES, ONE, 0, "bf16s"},
    {14, INT64, MANY, 0, "sparse_indices"}, {15, BYTES, ONE, 0, "s8s"}, {16, BYTES, ONE, 0, "u16s"},
    {17, BYTES, ONE, 0, "s16s"}, {18, DOUBLE, MANY, 0, "c128s"}, {19, BYTES, ONE, 0, "f8e5m2s"},
    {20, BYTES, ONE, 0, "f8e4m3fns"}, {21, BYTES, ONE, 0, "s4s"}, {22, BYTES, ONE, 0, "u4s"},
    {23, BYTES, ONE, 0, "f8e4m3b11fnuzs"}, {24, BYTES, ONE, 0, "f8e5m2fnuzs"},
    {25, BYTES, ONE, 0, "f8e4m3fnuzs"}, {26, BYTES, ONE, 0, "s2s"}, {27, BYTES, ONE, 0, "u2s"},
    {28, BYTES, ONE, 0, "f8e4m3s"}, {29, BYTES, ONE, 0, "f8e3m4s"}, {30, BYTES, ONE, 0, "s1s"},
    {31, BYTES, ONE, 0, "u1s"}, {32, BYTES, ONE, 0, "f4e2m1fns"}, {33, BYTES, ONE, 0, "f8e8m0fnus"},
    {34, INT32, MANY, 0, "dynamic_sizes"}, {35, BYTES, ONE, 0, "f6e3m2fns"},
    {36, BYTES, ONE, 0, "f6e2m3fns"}};
FIELDS logical_buffer_proto[] = { {1, INT64, ONE, 0, "id"}, {2, INT64, ONE, 0, "size"},
    {3, MESSAGE, KNOWN, M_LOGICAL_BUFFER_PROTO_LOCATION, "defined_at"},
    {4, INT64, ONE, 0, "color"}};
FIELDS logical_buffer_proto_location[] = { {2, TEXT, ONE, 0, "instruction_name"},
    {3, INT64, MANY, 0, "shape_index"}, {4, INT64, ONE, 0, "instruction_id"}};
FIELDS mesh_axes_replica_group_list_proto[] = { {1, MESSAGE, KNOWN, M_MESH_PROTO, "mesh"},
    {2, MESSAGE, MANY, M_AXIS_REF_PROTO, "axes"}};
FIELDS mesh_proto[] = { {1, MESSAGE, MANY, M_MESH_PROTO_MESH_AXIS, "axes"},
    {2, INT64, MANY, 0, "device_ids"},
    {3, MESSAGE, KNOWN, M_MESH_PROTO_IOTA_TRANSFORM, "iota_transform"}};
FIELDS mesh_proto_iota_transform[] = { {1, INT64, MANY, 0, "reshape_dims"},
    {2, INT64, MANY, 0, "transpose_perm"}};
FIELDS mesh_proto_mesh_axis[] = { {1, TEXT, ONE, 0, "name"}, {2, INT64, ONE, 0, "size"}};
FIELDS named_sharding_proto[] = { {2, MESSAGE, KNOWN, M_MESH_PROTO, "mesh"},
    {3, MESSAGE, MANY, M_NAMED_SHARDING_PROTO_DIMENSION_SHARDING, "dim_shardings"},
    {4, MESSAGE, MANY, M_AXIS_REF_PROTO, "replicated_axes"},
    {5, MESSAGE, MANY, M_AXIS_REF_PROTO, "unreduced_axes"},
    {6, MESSAGE, MANY, M_OP_METADATA, "metadata"},
    {7, MESSAGE, MANY, M_AXIS_REF_PROTO, "manual_axes"},
    {8, ENUM, ONE, E_NAMED_SHARDING_PROTO_REDUCTION_OP_PROTO, "reduction_op"}};
FIELDS named_sharding_proto_dimension_sharding[] = { {1, MESSAGE, MANY, M_AXIS_REF_PROTO, "axes"},
    {2, BOOL, ONE, 0, "is_closed"}};
FIELDS op_metadata[] = { {1, TEXT, ONE, 0, "op_type"}, {2, TEXT, ONE, 0, "op_name"},
    {3, TEXT, ONE, 0, "source_file"}, {4, INT32, ONE, 0, "source_line"},
    {5, ENUM, MANY, E_PROFILE_TYPE, "profile_type"},
    {8, INT64, ONE, 0, "size_of_generated_code_in_bytes"},
    {9, INT64, ONE, 0, "size_of_memory_working_set_in_bytes"},
    {10, MESSAGE, KNOWN, M_OP_METADATA_PROFILE_INFO, "profile_info"},
    {12, TEXT, ONE, 0, "deduplicated_name"}, {15, INT32, ONE, 0, "stack_frame_id"},
    {16, TEXT, ONE, 0, "scheduling_name"}, {17, INT32, ONE, 0, "source_end_line"},
    {18, INT32, ONE, 0, "source_column"}, {19, INT32, ONE, 0, "source_end_column"},
    {20, MESSAGE, KNOWN, M_PAYLOAD, "metadata_payload"}};
FIELDS op_metadata_profile_info[] = { {1, ENUM, MANY, E_PROFILE_TYPE, "profile_type"},
    {2, DOUBLE, ONE, 0, "relative_speedup"}, {3, ENUM, ONE, E_PROFILE_SOURCE, "profile_source"},
    {4, ENUM, ONE, E_COMPILATION_EVENT, "compilation_event"},
    {5, ENUM, ONE, E_PROFILE_GENERATION_STRATEGY, "profile_generation_strategy"}};
FIELDS op_sharding[] = { {1, ENUM, ONE, E_OP_SHARDING_TYPE, "type"},
    {2, MESSAGE, KNOWN, M_SHAPE_PROTO, "tile_shape"},
    {3, INT64, MANY, 0, "tile_assignment_dimensions"},
    {4, INT64, MANY, 0, "tile_assignment_devices"},
    {5, MESSAGE, MANY, M_OP_SHARDING, "tuple_shardings"},
    {6, BOOL, ONE, 0, "replicate_on_last_tile_dim"}, {7, MESSAGE, MANY, M_OP_METADATA, "metadata"},
    {8, ENUM, MANY, E_OP_SHARDING_TYPE, "last_tile_dims"}, {9, INT64, MANY, 0, "iota_reshape_dims"},
    {10, INT32, MANY, 0, "iota_transpose_perm"}, {11, BOOL, ONE, 0, "is_shard_group"},
    {12, INT64, ONE, 0, "shard_group_id"},
    {13, ENUM, ONE, E_OP_SHARDING_SHARD_GROUP_TYPE, "shard_group_type"},
    {14, MESSAGE, KNOWN, M_NAMED_SHARDING_PROTO, "named_sharding"}};
FIELDS original_array_proto[] = { {1, TEXT, ONE, 0, "instruction_name"},
    {2, INT64, MANY, 0, "shape_index"}};
FIELDS original_value_element_proto[] = { {1, INT64, MANY, 0, "shape_index"},
    {2, MESSAGE, KNOWN, M_ORIGINAL_ARRAY_PROTO, "original_array"}};
FIELDS original_value_proto[] = { {1, MESSAGE, MANY, M_ORIGINAL_VALUE_ELEMENT_PROTO, "elements"},
    {2, BOOL, ONE, 0, "is_synthetic_call"}, {3, TEXT, KNOWN, 0, "call_hierarchy"}};
FIELDS original_value_recovery_table_proto[] = {
    {1, MESSAGE, MANY, M_ORIGINAL_VALUE_RECOVERY_TABLE_PROTO_ENTRY, "entries"}};
FIELDS original_value_recovery_table_proto_entry[] = {
    {1, MESSAGE, KNOWN, M_ORIGINAL_ARRAY_PROTO, "old_original_array"},
    {2, MESSAGE, KNOWN, M_ORIGINAL_ARRAY_PROTO, "new_original_array"},
    {3, MESSAGE, KNOWN, M_HLO_MODULE_PROTO, "recovery_module"}};
FIELDS output_operand_aliasing[] = { {1, INT64, MANY, 0, "output_shape_index"},
    {2, INT64, ONE, 0, "operand_index"}, {3, INT64, MANY, 0, "operand_shape_index"}};
FIELDS padding_config[] = {
    {1, MESSAGE, MANY, M_PADDING_CONFIG_PADDING_CONFIG_DIMENSION, "dimensions"}};
FIELDS padding_config_padding_config_dimension[] = { {1, INT64, ONE, 0, "edge_padding_low"},
    {2, INT64, ONE, 0, "edge_padding_high"}, {3, INT64, ONE, 0, "interior_padding"}};
FIELDS parameter_replication[] = { {1, BOOL, MANY, 0, "replicated_at_leaf_buffers"}};
FIELDS payload[] = { {1, BYTES, ONE_OF_1, 0, "value"}, {2, INT64, ONE_OF_1, 0, "id"}};
FIELDS precision_config[] = { {1, ENUM, MANY, E_PRECISION_CONFIG_PRECISION, "operand_precision"},
    {2, ENUM, ONE, E_PRECISION_CONFIG_ALGORITHM, "algorithm"}};
FIELDS program_shape_proto[] = { {1, MESSAGE, MANY, M_SHAPE_PROTO, "parameters"},
    {2, MESSAGE, KNOWN, M_SHAPE_PROTO, "result"}, {3, TEXT, MANY, 0, "parameter_names"}};
FIELDS ragged_dot_dimension_numbers[] = {
    {1, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "dot_dimension_numbers"},
    {2, INT64, MANY, 0, "lhs_ragged_dimensions"}, {3, INT64, MANY, 0, "rhs_group_dimensions"}};
FIELDS replica_group[] = { {1, INT64, MANY, 0, "replica_ids"}};
FIELDS result_accuracy[] = { {1, ENUM, ONE_OF_1, E_RESULT_ACCURACY_MODE, "mode"},
    {2, MESSAGE, ONE_OF_1, M_RESULT_ACCURACY_TOLERANCE, "tolerance"}};
FIELDS result_accuracy_tolerance[] = { {1, DOUBLE, ONE, 0, "atol"}, {2, DOUBLE, ONE, 0, "rtol"},
    {3, INT64, ONE, 0, "ulps"}};
FIELDS scatter_dimension_numbers[] = { {1, INT64, MANY, 0, "update_window_dims"},
    {2, INT64, MANY, 0, "inserted_window_dims"},
    {3, INT64, MANY, 0, "scatter_dims_to_operand_dims"}, {4, INT64, ONE, 0, "index_vector_dim"},
    {5, INT64, MANY, 0, "input_batching_dims"},
    {6, INT64, MANY, 0, "scatter_indices_batching_dims"}};
FIELDS shape_proto[] = { {2, ENUM, ONE, E_PRIMITIVE_TYPE, "element_type"},
    {3, INT64, MANY, 0, "dimensions"}, {4, MESSAGE, MANY, M_SHAPE_PROTO, "tuple_shapes"},
    {5, MESSAGE, KNOWN, M_LAYOUT_PROTO, "layout"}, {6, BOOL, MANY, 0, "is_dynamic_dimension"}};
FIELDS shuffle_mode[] = { {1, MESSAGE, ONCE, M_SHUFFLE_MODE_ROTATE, "rotate"}};
FIELDS shuffle_mode_rotate[] = { {1, INT64, MANY, 0, "shifts"}};
FIELDS source_target[] = { {1, INT64, ONE, 0, "source"}, {2, INT64, ONE, 0, "target"}};
FIELDS sparsity_config[] = { {1, MESSAGE, KNOWN, M_SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG, "lhs"},
    {2, MESSAGE, KNOWN, M_SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG, "rhs"}};
FIELDS sparsity_config_tensor_sparsity_config[] = { {1, INT64, ONE, 0, "num_non_zero"},
    {2, INT64, ONE, 0, "block_size"}, {3, INT64, ONE, 0, "dimension"}, {4, INT64, ONE, 0, "stride"},
    {5, INT32, ONE, 0, "idx"}};
FIELDS split_config_proto[] = { {1, INT64, ONE, 0, "dimension"},
    {2, INT64, MANY, 0, "split_indices"}};
FIELDS stack_frame_index_proto[] = { {1, TEXT, MANY, 0, "file_names"},
    {2, TEXT, MANY, 0, "function_names"},
    {3, MESSAGE, MANY, M_STACK_FRAME_INDEX_PROTO_FILE_LOCATION, "file_locations"},
    {4, MESSAGE, MANY, M_STACK_FRAME_INDEX_PROTO_STACK_FRAME, "stack_frames"}};
FIELDS stack_frame_index_proto_file_location[] = { {1, INT32, ONE, 0, "file_name_id"},
    {2, INT32, ONE, 0, "function_name_id"}, {3, INT32, ONE, 0, "line"},
    {4, INT32, ONE, 0, "column"}, {5, INT32, ONE, 0, "end_line"}, {6, INT32, ONE, 0, "end_column"}};
FIELDS stack_frame_index_proto_stack_frame[] = { {1, INT32, ONE, 0, "file_location_id"},
    {2, INT32, ONE, 0, "parent_frame_id"}};
FIELDS statistic[] = { {1, TEXT, ONE, 0, "stat_name"}, {2, DOUBLE, ONE, 0, "stat_val"}};
FIELDS statistics_viz[] = { {1, INT64, ONE, 0, "stat_index_to_visualize"},
    {2, MESSAGE, MANY, M_STATISTIC, "statistics"}};
FIELDS tile_proto[] = { {1, INT64, MANY, 0, "dimensions"}};
FIELDS triangular_solve_options[] = { {1, BOOL, ONE, 0, "left_side"}, {2, BOOL, ONE, 0, "lower"},
    {3, BOOL, ONE, 0, "unit_diagonal"},
    {4, ENUM, ONE, E_TRIANGULAR_SOLVE_OPTIONS_TRANSPOSE, "transpose_a"}};
FIELDS window[] = { {1, MESSAGE, MANY, M_WINDOW_DIMENSION, "dimensions"}};
FIELDS window_dimension[] = { {1, INT64, ONE, 0, "size"}, {2, INT64, ONE, 0, "stride"},
    {3, INT64, ONE, 0, "padding_low"}, {4, INT64, ONE, 0, "padding_high"},
    {5, INT64, ONE, 0, "window_dilation"}, {6, INT64, ONE, 0, "base_dilation"},
    {7, BOOL, ONE, 0, "window_reversal"}};
FIELDS x64_config_proto[] = { {1, TEXT, ONE, 0, "xprecision_64bit_fragment"},
    {2, TEXT, ONE, 0, "original_log_instruction_name"},
    {3, TEXT, ONE, 0, "xprecision_64bit_original_type"}};
FIELDS gpu_bitcast_backend_config[] = { {1, MESSAGE, KNOWN, M_LAYOUT_PROTO, "source_layout"},
    {2, MESSAGE, KNOWN, M_LAYOUT_PROTO, "result_layout"}};
FIELDS gpu_block_scaled_dot_backend_config[] = { {1, INT32, ONE, 0, "block_size"}};
FIELDS gpu_collective_backend_config[] = { {1, BOOL, ONE, 0, "is_sync"},
    {3, BOOL, ONE, 0, "is_pipelined"},
    {5, ENUM, ONE, E_GPU_COLLECTIVE_BACKEND_CONFIG_COLLECTIVE_BACKEND, "backend"},
    {6, ENUM, ONE, E_DEBUG_OPTIONS_COLLECTIVES_MODE, "collectives_mode"},
    {7, ENUM, ONE, E_GPU_COLLECTIVE_BACKEND_CONFIG_COLLECTIVE_KERNEL_STRATEGY, "kernel_strategy"},
    {8, BOOL, ONE, 0, "is_spmd_generated"},
    {9, ENUM, ONE, E_GPU_COLLECTIVE_BACKEND_CONFIG_COLLECTIVE_COMMUNICATION_DOMAIN, "communication_domain"}};
FIELDS gpu_collective_metadata_backend_config[] = {
    {1, MESSAGE, KNOWN, M_COLLECTIVE_DEVICE_LIST_PROTO, "collective_devices"}};
FIELDS gpu_cu_dnn_fusion_config[] = { {1, INT64, KNOWN, 0, "plan_id"},
    {2, MESSAGE, KNOWN, M_PRECISION_CONFIG, "precision_config"}};
FIELDS gpu_cudnn_conv_backend_config[] = { {3, ENUM, ONE, E_DNN_ACTIVATION_MODE, "activation_mode"},
    {4, DOUBLE, ONE, 0, "conv_result_scale"}, {5, DOUBLE, ONE, 0, "side_input_scale"},
    {6, MESSAGE, KNOWN, M_DNN_ALGORITHM_PROTO, "algorithm"},
    {7, BOOL, ONCE, 0, "reordered_int8_nchw_vect"}, {8, DOUBLE, ONE, 0, "leakyrelu_alpha"},
    {9, TEXT, KNOWN, 0, "serialized_graph"}};
FIELDS gpu_cudnn_norm_backend_config[] = { {1, DOUBLE, ONE, 0, "epsilon"},
    {2, MESSAGE, KNOWN, M_DNN_ALGORITHM_PROTO, "algorithm"},
    {3, ENUM, ONE, E_GPU_CUDNN_NORM_BACKEND_CONFIG_KIND, "kind"}};
FIELDS gpu_cudnnf_mha_backend_config[] = { {8, MESSAGE, KNOWN, M_DNN_ALGORITHM_PROTO, "algorithm"},
    {10, DOUBLE, ONE, 0, "fmha_scale"},
    {11, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "bmm1_dot_dimension_numbers"},
    {12, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "bmm2_dot_dimension_numbers"},
    {13, DOUBLE, ONE, 0, "dropout_rate"},
    {14, MESSAGE, KNOWN, M_SHAPE_PROTO, "intermediate_tensor_shape"}, {15, INT64, ONE, 0, "seed"},
    {16, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "bmm1_grad_gemm1_dot_dimension_numbers"},
    {17, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "bmm1_grad_gemm2_dot_dimension_numbers"},
    {18, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "bmm2_grad_gemm1_dot_dimension_numbers"},
    {19, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "bmm2_grad_gemm2_dot_dimension_numbers"},
    {20, BOOL, ONE, 0, "is_flash_attention"}, {21, BOOL, ONE, 0, "is_causal_mask"},
    {22, ENUM, ONE, E_GPU_CUDNNF_MHA_BACKEND_CONFIG_MASK_TYPE, "mask_type"},
    {23, BOOL, ONE, 0, "force_deterministic"}, {24, INT32, ONE, 0, "sliding_window_length"},
    {25, INT32, ONE, 0, "max_seg_per_batch"}, {26, BOOL, ONE, 0, "is_paged_attention"}};
FIELDS gpu_custom_call_backend_config[] = { {1, TEXT, ONE_OF_1, 0, "opaque"},
    {2, TEXT, ONE_OF_1, 0, "attributes"}};
FIELDS gpu_dynamic_slice_config[] = { {1, INT64, KNOWN, 0, "loop_index"},
    {2, INT64, ONE, 0, "byte_offset"}, {3, INT64, ONE, 0, "byte_stride"},
    {4, MESSAGE, ONE_OF_1, M_GPU_DYNAMIC_SLICE_CONFIG_TABLE, "table"},
    {5, MESSAGE, ONE_OF_1, M_GPU_DYNAMIC_SLICE_CONFIG_LINEAR, "linear"}};
FIELDS gpu_dynamic_slice_config_linear[] = { {1, INT64, ONE, 0, "byte_offset"},
    {2, INT64, ONE, 0, "byte_stride"}};
FIELDS gpu_dynamic_slice_config_table[] = { {1, INT64, MANY, 0, "offsets"}};
FIELDS gpu_fusion_backend_config[] = { {1, TEXT, ONE, 0, "kind"},
    {2, MESSAGE, KNOWN, M_AUTOTUNE_RESULT_TRITON_GEMM_KEY, "triton_gemm_config"},
    {4, MESSAGE, KNOWN, M_XTILE_CUSTOM_FUSION_CONFIG, "custom_fusion_config"},
    {5, MESSAGE, KNOWN, M_GPU_CU_DNN_FUSION_CONFIG, "cudnn_fusion_config"},
    {6, MESSAGE, KNOWN, M_XTILE_BLOCK_LEVEL_FUSION_CONFIG, "block_level_fusion_config"},
    {8, MESSAGE, KNOWN, M_GPU_TENSOR_IR_FUSION_CONFIG, "tensor_ir_fusion_config"}};
FIELDS gpu_gemm_backend_config[] = { {1, INT64, ONCE, 0, "selected_algorithm"},
    {2, DOUBLE, ONE, 0, "alpha_real"}, {3, DOUBLE, ONE, 0, "beta"},
    {7, MESSAGE, KNOWN, M_DOT_DIMENSION_NUMBERS, "dot_dimension_numbers"},
    {9, DOUBLE, ONE, 0, "alpha_imag"}, {12, MESSAGE, KNOWN, M_PRECISION_CONFIG, "precision_config"},
    {13, ENUM, ONE, E_GPU_GEMM_BACKEND_CONFIG_EPILOGUE, "epilogue"},
    {14, INT64, KNOWN, 0, "lhs_stride"}, {15, INT64, KNOWN, 0, "rhs_stride"},
    {16, BOOL, KNOWN, 0, "grad_x"}, {17, BOOL, KNOWN, 0, "grad_y"},
    {18, BOOL, ONE, 0, "damax_output"}, {20, INT64, ONE, 0, "autotune_workspace_size"},
    {21, INT32, ONE, 0, "scale_mode"}, {22, BOOL, KNOWN, 0, "has_d_scale"}};
FIELDS gpu_gpu_backend_config[] = { {1, INT64, ONE, 0, "operation_queue_id"},
    {3, MESSAGE, ONE_OF_1, M_GPU_CUDNN_CONV_BACKEND_CONFIG, "cudnn_conv_backend_config"},
    {4, MESSAGE, ONE_OF_1, M_GPU_GEMM_BACKEND_CONFIG, "gemm_backend_config"},
    {5, MESSAGE, ONE_OF_1, M_GPU_BITCAST_BACKEND_CONFIG, "bitcast_backend_config"},
    {6, MESSAGE, ONE_OF_1, M_GPU_COLLECTIVE_BACKEND_CONFIG, "collective_backend_config"},
    {7, MESSAGE, ONE_OF_1, M_GPU_FUSION_BACKEND_CONFIG, "fusion_backend_config"},
    {8, MESSAGE, ONE_OF_1, M_GPU_CUDNN_NORM_BACKEND_CONFIG, "cudnn_norm_backend_config"},
    {9, MESSAGE, ONE_OF_1, M_GPU_CUDNNF_MHA_BACKEND_CONFIG, "cudnn_fmha_backend_config"},
    {10, BOOL, ONE, 0, "force_earliest_schedule"},
    {11, MESSAGE, ONE_OF_1, M_GPU_CUSTOM_CALL_BACKEND_CONFIG, "custom_call_backend_config"},
    {12, MESSAGE, MANY, M_GPU_REIFICATION_COST, "reification_cost"},
    {13, MESSAGE, ONE_OF_1, M_GPU_BLOCK_SCALED_DOT_BACKEND_CONFIG, "block_scaled_dot_backend_config"},
    {14, ENUM, ONE, E_GPU_DEVICE_TYPE, "device_type"},
    {15, MESSAGE, ONE_OF_1, M_GPU_NATIVE_EMITTER_BACKEND_CONFIG, "native_emitter_backend_config"},
    {16, MESSAGE, ONE_OF_1, M_GPU_COLLECTIVE_METADATA_BACKEND_CONFIG, "collective_metadata_backend_config"},
    {17, MESSAGE, ONE_OF_1, M_GPU_GROUPED_GEMM_BACKEND_CONFIG, "grouped_gemm_backend_config"},
    {18, MESSAGE, ONE_OF_1, M_GPU_DYNAMIC_SLICE_CONFIG, "dynamic_slice_config"}};
FIELDS gpu_grouped_gemm_backend_config[] = {
    {1, MESSAGE, KNOWN, M_GPU_GEMM_BACKEND_CONFIG, "gemm_backend_config"},
    {2, MESSAGE, KNOWN, M_RAGGED_DOT_DIMENSION_NUMBERS, "ragged_dot_dimension_numbers"}};
FIELDS gpu_native_emitter_backend_config[] = { {1, ENUM, ONE, E_GPU_NATIVE_EMITTER_TYPE, "type"},
    {2, INT32, ONE, 0, "unroll_factor"}};
FIELDS gpu_reification_cost[] = { {1, DOUBLE, ONE, 0, "end_to_end_cycles"},
    {2, DOUBLE, ONE, 0, "exec_time_us"}, {3, DOUBLE, ONE, 0, "compute_time_us"},
    {4, DOUBLE, ONE, 0, "memory_access_time_us"}, {5, TEXT, ONE, 0, "name"}};
FIELDS gpu_tensor_ir_fusion_config[] = { {1, INT32, MANY, 0, "tile_size"},
    {2, INT64, ONE, 0, "reduction_tile_size"}};
FIELDS xtile_block_level_fusion_config[] = { {2, INT64, ONE, 0, "num_warps"},
    {3, MESSAGE, MANY, M_XTILE_TILE, "output_tiles"}, {4, INT32, ONE, 0, "num_ctas"},
    {5, INT32, ONE, 0, "num_stages"}, {6, BOOL, ONE, 0, "is_tma_allowed"},
    {7, BOOL, ONE, 0, "is_warp_specialization_allowed"}, {8, INT32, ONE, 0, "waves_per_eu"},
    {9, INT32, ONE, 0, "num_tiles_per_pid"}, {10, INT32, ONE, 0, "group_size"},
    {11, INT64, MANY, 0, "sequential_tile_sizes"}, {12, INT32, ONE, 0, "mfma_size"}};
FIELDS xtile_custom_fusion_config[] = { {1, TEXT, ONE, 0, "name"},
    {2, INT32, ONE, 0, "kernel_index"}};
FIELDS xtile_tile[] = { {1, INT64, MANY, 0, "sizes"}};

#define ROW(fields) {fields, sizeof(fields) / sizeof *(fields)}
const struct xpl_proto_message xpl_hlo_messages[] = {
    ROW(u_int64_value), ROW(dnn_algorithm_proto), ROW(dnn_algorithm_proto_tuning_knobs_entry),
    ROW(autotune_result_triton_gemm_key), ROW(axis_ref_proto), ROW(axis_ref_proto_sub_axis),
    ROW(block_scaling_config), ROW(block_scaling_config_tensor_block_scaling_config),
    ROW(buffer_allocation_proto), ROW(buffer_allocation_proto_assigned),
    ROW(buffer_assignment_proto), ROW(buffer_assignment_proto_buffer_alias),
    ROW(buffer_assignment_proto_peak_buffers), ROW(cholesky_options),
    ROW(collective_device_list_proto), ROW(convolution_dimension_numbers),
    ROW(cross_program_prefetch), ROW(debug_attribute_table_entry_proto),
    ROW(debug_attributes_proto), ROW(device_assignment_proto),
    ROW(device_assignment_proto_computation_device), ROW(dot_dimension_numbers),
    ROW(frontend_attributes), ROW(frontend_attributes_map_entry), ROW(gather_dimension_numbers),
    ROW(heap_simulator_trace), ROW(heap_simulator_trace_event), ROW(hlo_buffer_donor_proto),
    ROW(hlo_buffer_donor_proto_buffer_donor_entry_proto), ROW(hlo_computation_proto),
    ROW(hlo_input_output_alias_proto), ROW(hlo_input_output_alias_proto_alias_entry_proto),
    ROW(hlo_instruction_proto), ROW(hlo_instruction_proto_slice_dimensions), ROW(hlo_module_proto),
    ROW(hlo_module_proto_profile_info), ROW(hlo_proto), ROW(hlo_schedule_proto),
    ROW(hlo_schedule_proto_instruction_sequence), ROW(hlo_schedule_proto_sequences_entry),
    ROW(iota_replica_group_list_proto), ROW(layout_proto), ROW(literal_proto),
    ROW(logical_buffer_proto), ROW(logical_buffer_proto_location),
    ROW(mesh_axes_replica_group_list_proto), ROW(mesh_proto), ROW(mesh_proto_iota_transform),
    ROW(mesh_proto_mesh_axis), ROW(named_sharding_proto),
    ROW(named_sharding_proto_dimension_sharding), ROW(op_metadata), ROW(op_metadata_profile_info),
    ROW(op_sharding), ROW(original_array_proto), ROW(original_value_element_proto),
    ROW(original_value_proto), ROW(original_value_recovery_table_proto),
    ROW(original_value_recovery_table_proto_entry), ROW(output_operand_aliasing),
    ROW(padding_config), ROW(padding_config_padding_config_dimension), ROW(parameter_replication),
    ROW(payload), ROW(precision_config), ROW(program_shape_proto),
    ROW(ragged_dot_dimension_numbers), ROW(replica_group), ROW(result_accuracy),
    ROW(result_accuracy_tolerance), ROW(scatter_dimension_numbers), ROW(shape_proto),
    ROW(shuffle_mode), ROW(shuffle_mode_rotate), ROW(source_target), ROW(sparsity_config),
    ROW(sparsity_config_tensor_sparsity_config), ROW(split_config_proto),
    ROW(stack_frame_index_proto), ROW(stack_frame_index_proto_file_location),
    ROW(stack_frame_index_proto_stack_frame), ROW(statistic), ROW(statistics_viz), ROW(tile_proto),
    ROW(triangular_solve_options), ROW(window), ROW(window_dimension), ROW(x64_config_proto),
    ROW(gpu_bitcast_backend_config), ROW(gpu_block_scaled_dot_backend_config),
    ROW(gpu_collective_backend_config), ROW(gpu_collective_metadata_backend_config),
    ROW(gpu_cu_dnn_fusion_config), ROW(gpu_cudnn_conv_backend_config),
    ROW(gpu_cudnn_norm_backend_config), ROW(gpu_cudnnf_mha_backend_config),
    ROW(gpu_custom_call_backend_config), ROW(gpu_dynamic_slice_config),
    ROW(gpu_dynamic_slice_config_linear), ROW(gpu_dynamic_slice_config_table),
    ROW(gpu_fusion_backend_config), ROW(gpu_gemm_backend_config), ROW(gpu_gpu_backend_config),
    ROW(gpu_grouped_gemm_backend_config), ROW(gpu_native_emitter_backend_config),
    ROW(gpu_reification_cost), ROW(gpu_tensor_ir_fusion_config),
    ROW(xtile_block_level_fusion_config), ROW(xtile_custom_fusion_config), ROW(xtile_tile),
};
// clang-format on
const struct xpl_proto_message *const xpl_hlo_proto = &xpl_hlo_messages[M_HLO_PROTO];
const struct xpl_proto_message *const xpl_hlo_proto_gpu_config =
    &xpl_hlo_messages[M_GPU_GPU_BACKEND_CONFIG];
const struct xpl_proto_message *const xpl_hlo_proto_uint64 = &xpl_hlo_messages[M_U_INT64_VALUE];
