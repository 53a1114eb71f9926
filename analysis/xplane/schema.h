// SPDX-License-Identifier: Apache-2.0
// Names that carry meaning in an XSpace: planes, lines, statistics, host events, and the id ranges
// that mark derived lines.  Names are XProf's (openxla/xla xplane_schema.cc); a name found here is
// looked up once per metadata entry, so that events are distinguished by a small number.
#ifndef XPL_ANALYSIS_XPLANE_SCHEMA_H_
#define XPL_ANALYSIS_XPLANE_SCHEMA_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

// ---- planes (use as XPL_STR(XPL_PLANE_NAME_...)) ----

#define XPL_PLANE_NAME_HOST_THREADS   "/host:CPU"
#define XPL_PLANE_NAME_GPU_PREFIX     "/device:GPU:"
#define XPL_PLANE_NAME_TPU_PREFIX     "/device:TPU:"
#define XPL_PLANE_NAME_CUSTOM_PREFIX  "/device:CUSTOM:"
#define XPL_PLANE_NAME_TPU_NON_CORE   "#Chip" // prefix
#define XPL_PLANE_NAME_TPU_RUNTIME    "/host:TPU-runtime"
#define XPL_PLANE_NAME_CUPTI_API      "/host:CUPTI"
#define XPL_PLANE_NAME_CUPTI_NVTX     "/host:NVTX-CUPTI"
#define XPL_PLANE_NAME_ROCTRACER_API  "/host:ROCTRACER"
#define XPL_PLANE_NAME_METADATA       "/host:metadata"
#define XPL_PLANE_NAME_TF_STREAMZ     "/host:tfstreamz"
#define XPL_PLANE_NAME_PYTHON_TRACER  "/host:python-tracer"
#define XPL_PLANE_NAME_SCOPE_RANGE_ID "/host:__ScopeRangeCallStack__"
#define XPL_PLANE_NAME_HOST_CPUS      "Host CPUs"
#define XPL_PLANE_NAME_SYSCALLS       "Syscalls"
#define XPL_PLANE_NAME_TASK_ENV       "Task Environment"

// ---- lines ----

#define XPL_LINE_STEPS               "Steps"
#define XPL_LINE_XLA_MODULES         "XLA Modules"
#define XPL_LINE_XLA_OPS             "XLA Ops"
#define XPL_LINE_XLA_ASYNC_OPS       "Async XLA Ops"
#define XPL_LINE_NAME_SCOPE          "Framework Name Scope"
#define XPL_LINE_FRAMEWORK_OPS       "Framework Ops"
#define XPL_LINE_SOURCE              "Source code"
#define XPL_LINE_LAUNCH_STATS        "Launch Stats"
#define XPL_LINE_HOST_OFFLOAD_OPS    "Host Offload Ops"
#define XPL_LINE_COUNTERS            "_counters_"
#define XPL_LINE_SPARSE_CORE_STEPS   "Sparse Core Steps"
#define XPL_LINE_SPARSE_CORE_MODULES "Sparse Core Modules"
#define XPL_LINE_SPARSE_CORE_OPS     "Sparse Core Ops"
#define XPL_LINE_TC_SYNC_FLAG        "Tensor Core Sync Flag"
#define XPL_LINE_SPARSE_CORE_SYNCS   "Sparse Core Syncs"

#define XPL_VENDOR_NVIDIA "Nvidia"
#define XPL_VENDOR_AMD    "AMD"

// Lines with such an id were derived by a viewer, not recorded (XProf: trace_utils.h, whose ids are
// int32, so that they are negative and other ids are cut to 32 bits before they are compared; the
// released package has 406 of them).  The first is that of the Steps line it derives for a GPU,
// which is compared uncut.
#define XPL_LINE_ID_STEPS INT64_C(-559038737) // (int32_t)0xdeadbeef
static inline bool xpl_is_derived_line_id(int64_t id) {
    const int64_t cut = (int32_t)(uint32_t)(uint64_t)id;
    return cut >= XPL_LINE_ID_STEPS && cut <= XPL_LINE_ID_STEPS + 405;
}

// ---- stats: enum suffix, metadata name; sorted bytewise by name ----

#define XPL_SCHEMA_STATS(X)                                                                        \
    X(COLLECTIVE_NAME, "Collective name")                                                          \
    X(EDGE_TPU_MLIR, "EdgeTPU MLIR")                                                               \
    X(EDGE_TPU_MODEL_PROFILE_INFO, "EdgeTPU Model Profile information")                            \
    X(EDGE_TPU_MODEL_INFO, "EdgeTPU Model information")                                            \
    X(COLLECTIVE_GROUP_SIZE, "Group size")                                                         \
    X(HLO_PROTO, "Hlo Proto")                                                                      \
    X(COLLECTIVE_IN_NELEMS, "In msg nelems")                                                       \
    X(COLLECTIVE_IN_SPLIT, "In split size")                                                        \
    X(INPUT_DIMS, "Input Dims")                                                                    \
    X(INPUT_TYPE, "Input type")                                                                    \
    X(MEM_FREE_DETAILS, "MemFree_details")                                                         \
    X(MEMORY_RESIDENCY_DETAILS, "MemoryResidency_details")                                         \
    X(MEMSET_DETAILS, "Memset_details")                                                            \
    X(COLLECTIVE_OUT_NELEMS, "Out msg nelems")                                                     \
    X(PROCESS_GROUP_NAME, "Process Group Name")                                                    \
    X(PROCESS_GROUP_RANKS, "Process Group Ranks")                                                  \
    X(RAW_VALUE, "Raw Value")                                                                      \
    X(SCALED_VALUE, "Scaled Value")                                                                \
    X(COLLECTIVE_SEQ, "Seq")                                                                       \
    X(THREAD_ID, "Thread Id")                                                                      \
    X(TIME_SCALE_MULTIPLIER, "Time Scale Multiplier")                                              \
    X(IS_ASYNC, "_a")                                                                              \
    X(CONSUMER_ID, "_c")                                                                           \
    X(CONSUMER_TYPE, "_ct")                                                                        \
    X(INPUT_PIPELINE_STAGE_CATEGORY, "_ipl_stage_cat")                                             \
    X(INPUT_PIPELINE_STAGE_ID, "_ipl_stage_id")                                                    \
    X(INPUT_PIPELINE_STAGE_NAME, "_ipl_stage_name")                                                \
    X(PRODUCER_ID, "_p")                                                                           \
    X(CONSUMER_PID, "_pid")                                                                        \
    X(PRODUCER_TYPE, "_pt")                                                                        \
    X(IS_ROOT, "_r")                                                                               \
    X(ADDRESS, "addr")                                                                             \
    X(ALL_REDUCE_ID, "all_reduce_id")                                                              \
    X(ALL_REDUCE_UNIQUE_ID, "all_reduce_unique_id")                                                \
    X(ALLOCATION_BYTES, "allocation_bytes")                                                        \
    X(ALLOCATOR_NAME, "allocator_name")                                                            \
    X(BATCH_SIZE_AFTER_PADDING, "batch_size_after_padding")                                        \
    X(BATCHING_INPUT_TASK_SIZE, "batching_input_task_size")                                        \
    X(BUFFER_SIZE, "buffer_size")                                                                  \
    X(BYTES_ACCESSED, "bytes_accessed")                                                            \
    X(BYTES_ALLOCATED, "bytes_allocated")                                                          \
    X(BYTES_AVAILABLE, "bytes_available")                                                          \
    X(BYTES_RESERVED, "bytes_reserved")                                                            \
    X(BYTES_TRANSFERRED, "bytes_transferred")                                                      \
    X(CHIP_ORDINAL, "chip_ordinal")                                                                \
    X(DEV_CAP_CLOCK_RATE_KHZ, "clock_rate")                                                        \
    X(DEV_CAP_COMPUTE_CAP_MAJOR, "compute_cap_major")                                              \
    X(DEV_CAP_COMPUTE_CAP_MINOR, "compute_cap_minor")                                              \
    X(CONTEXT_ID, "context_id")                                                                    \
    X(DEV_CAP_CORE_COUNT, "core_count")                                                            \
    X(CORE_DETAILS, "core_details")                                                                \
    X(CORE_TYPE, "core_type")                                                                      \
    X(CORRELATION_ID, "correlation_id")                                                            \
    X(COUNTER_VALUE, "counter_value")                                                              \
    X(METADATA_CUDA_DRIVER_VERSION, "cuda_driver_version")                                         \
    X(CUDA_GRAPH_EXEC_ID, "cuda_graph_exec_id")                                                    \
    X(CUDA_GRAPH_ID, "cuda_graph_id")                                                              \
    X(CUDA_GRAPH_MAP_ID, "cuda_graph_map_id")                                                      \
    X(CUDA_GRAPH_MAP_VALUE_ID, "cuda_graph_map_value_id")                                          \
    X(CUDA_GRAPH_NODE_ID, "cuda_graph_node_id")                                                    \
    X(CUDA_GRAPH_NODE_MAP_ID, "cuda_graph_node_map_id")                                            \
    X(CUDA_GRAPH_ORIG_ID, "cuda_graph_orig_id")                                                    \
    X(CUDA_GRAPH_ORIG_NODE_ID, "cuda_graph_orig_node_id")                                          \
    X(CUDA_ORIG_GRAPH_ID, "cuda_orig_graph_id")                                                    \
    X(METADATA_CUDA_RUNTIME_VERSION, "cuda_runtime_version")                                       \
    X(METADATA_CUDA_VERSION, "cuda_version")                                                       \
    X(DATA_TYPE, "data_type")                                                                      \
    X(DCN_CHUNK, "dcn_chunk")                                                                      \
    X(DCN_COLLECTIVE_INFO, "dcn_collective_info")                                                  \
    X(DCN_DESTINATION_PER_SLICE_DEVICE_ID, "dcn_destination_per_slice_device_id")                  \
    X(DCN_DESTINATION_SLICE_ID, "dcn_destination_slice_id")                                        \
    X(DCN_LABEL, "dcn_label")                                                                      \
    X(DCN_LOOP_INDEX, "dcn_loop_index")                                                            \
    X(DCN_SOURCE_PER_SLICE_DEVICE_ID, "dcn_source_per_slice_device_id")                            \
    X(DCN_SOURCE_SLICE_ID, "dcn_source_slice_id")                                                  \
    X(DEDUPLICATED_NAME, "deduplicated_name")                                                      \
    X(DEVICE_DURATION_PS, "device_duration_ps")                                                    \
    X(DEVICE_ID, "device_id")                                                                      \
    X(DEVICE_OFFSET_PS, "device_offset_ps")                                                        \
    X(DEVICE_ORDINAL, "device_ordinal")                                                            \
    X(DEVICE_TYPE, "device_type")                                                                  \
    X(DEVICE_TYPE_STRING, "device_type_string")                                                    \
    X(DEV_VENDOR, "device_vendor")                                                                 \
    X(DMA_STALL_DURATION_PS, "dma_stall_duration_ps")                                              \
    X(DROPPED_TRACES, "dropped_traces")                                                            \
    X(COLLECTIVE_DTYPE, "dtype")                                                                   \
    X(DURATION, "duration_us")                                                                     \
    X(ELEMENT_ID, "element_id")                                                                    \
    X(EQUATION, "equation")                                                                        \
    X(FLOPS, "flops")                                                                              \
    X(FLOW, "flow")                                                                                \
    X(FRAGMENTATION, "fragmentation")                                                              \
    X(GLOBAL_CHIP_ID, "global_chip_id")                                                            \
    X(GPU_DEVICE_NAME, "gpu_device_name")                                                          \
    X(GRAPH_METADATA_LINE_ID, "graph_metadata_line_id")                                            \
    X(GRAPH_TYPE, "graph_type")                                                                    \
    X(GROUP_ID, "group_id")                                                                        \
    X(DEV_HAS_MEGACORE, "has_megacore")                                                            \
    X(DEV_HAS_MERGED_VMEM, "has_merged_vmem")                                                      \
    X(HBM_ENERGY, "hbm_energy_nj")                                                                 \
    X(HBM_POWER_EVENTS, "hbm_power_events")                                                        \
    X(HBM_UTILIZATION_PERCENT, "hbm_utilization_percent")                                          \
    X(HLO_CATEGORY, "hlo_category")                                                                \
    X(HLO_MODULE, "hlo_module")                                                                    \
    X(HLO_OP, "hlo_op")                                                                            \
    X(STEP_ID, "id")                                                                               \
    X(INDEX_ON_HOST, "index_on_host")                                                              \
    X(IS_EAGER, "is_eager")                                                                        \
    X(IS_FUNC, "is_func")                                                                          \
    X(ITER_NUM, "iter_num")                                                                        \
    X(KERNEL_DETAILS, "kernel_details")                                                            \
    X(KEY, "key")                                                                                  \
    X(KPI_NAME, "kpi_name")                                                                        \
    X(KPI_VALUE, "kpi_value")                                                                      \
    X(TENSOR_LAYOUT, "layout")                                                                     \
    X(METADATA_LIBTPU_VERSION, "libtpu_version")                                                   \
    X(LLO_PROTO, "llo_proto")                                                                      \
    X(MARKER_PAYLOAD_STRING, "marker_payload")                                                     \
    X(MATRIX_UNIT_UTILIZATION_PERCENT, "matrix_unit_utilization_percent")                          \
    X(MAX_ITERATION_NUM, "max_iteration_num")                                                      \
    X(MEMALLOC_DETAILS, "memalloc_details")                                                        \
    X(MEMCPY_DETAILS, "memcpy_details")                                                            \
    X(MEMORY_ACCESS_BREAKDOWN, "memory_access_breakdown")                                          \
    X(DEV_CAP_MEMORY_BANDWIDTH, "memory_bandwidth")                                                \
    X(DEV_CAP_MEMORY_SIZE, "memory_size")                                                          \
    X(MIN_DURATION_PS, "min_duration_ps")                                                          \
    X(MLIR_PROGRAM, "mlir_program")                                                                \
    X(MODEL_FLOPS, "model_flops")                                                                  \
    X(MODEL_ID, "model_id")                                                                        \
    X(MODEL_NAME, "model_name")                                                                    \
    X(MODEL_VERSION, "model_version")                                                              \
    X(NAN_COUNTER_EVENTS, "nan_counter_events")                                                    \
    X(NODE_ORDINAL, "node_ordinal")                                                                \
    X(NVTX_RANGE, "nvtx_range")                                                                    \
    X(OCCUPANCY_MIN_GRID_SIZE, "occupancy_min_grid_size")                                          \
    X(OCCUPANCY_SUGGESTED_BLOCK_SIZE, "occupancy_suggested_block_size")                            \
    X(OFFLOAD_CORE_ID, "offload_core_id")                                                          \
    X(OFFLOAD_EXECUTION_INDEX, "offload_execution_index")                                          \
    X(PADDING_AMOUNT, "padding_amount")                                                            \
    X(PARENT_ID, "parent_id")                                                                      \
    X(PAYLOAD_SIZE_BYTES, "payload_size_bytes")                                                    \
    X(PEAK_BYTES_IN_USE, "peak_bytes_in_use")                                                      \
    X(DEV_CAP_PEAK_CMEM_RD_BW_GIGABYTES_PER_SECOND, "peak_cmem_rd_bw_gigabytes_per_second")        \
    X(DEV_CAP_PEAK_CMEM_WR_BW_GIGABYTES_PER_SECOND, "peak_cmem_wr_bw_gigabytes_per_second")        \
    X(DEV_CAP_PEAK_HBM_BW_GIGABYTES_PER_SECOND, "peak_hbm_bw_gigabytes_per_second")                \
    X(DEV_CAP_PEAK_SPMEM_RD_BW_GIGABYTES_PER_SECOND, "peak_spmem_rd_bw_gigabytes_per_second")      \
    X(DEV_CAP_PEAK_SPMEM_WR_BW_GIGABYTES_PER_SECOND, "peak_spmem_wr_bw_gigabytes_per_second")      \
    X(DEV_CAP_PEAK_SRAM_RD_BW_GIGABYTES_PER_SECOND, "peak_sram_rd_bw_gigabytes_per_second")        \
    X(DEV_CAP_PEAK_SRAM_WR_BW_GIGABYTES_PER_SECOND, "peak_sram_wr_bw_gigabytes_per_second")        \
    X(DEV_CAP_PEAK_TERAFLOPS_PER_SECOND, "peak_teraflops_per_second")                              \
    X(DEV_CAP_PEAK_VMEM_RD_BW_GIGABYTES_PER_SECOND, "peak_vmem_rd_bw_gigabytes_per_second")        \
    X(DEV_CAP_PEAK_VMEM_WR_BW_GIGABYTES_PER_SECOND, "peak_vmem_wr_bw_gigabytes_per_second")        \
    X(PERFORMANCE_COUNTER_DESCRIPTION, "performance_counter_description")                          \
    X(PERFORMANCE_COUNTER_ID, "performance_counter_id")                                            \
    X(PERFORMANCE_COUNTER_SETS, "performance_counter_sets")                                        \
    X(PROCESS_ID, "process_id")                                                                    \
    X(PROGRAM_COUNTER, "program_counter")                                                          \
    X(PROGRAM_ID, "program_id")                                                                    \
    X(DMA_QUEUE, "queue")                                                                          \
    X(QUEUE_ADDR, "queue_addr")                                                                    \
    X(QUEUE_ID, "queue_id")                                                                        \
    X(RAW_BYTES_ACCESSED, "raw_bytes_accessed")                                                    \
    X(REGION_TYPE, "region_type")                                                                  \
    X(REPLICA_ID, "replica_id")                                                                    \
    X(REQUEST_ID, "request_id")                                                                    \
    X(REQUESTED_BYTES, "requested_bytes")                                                          \
    X(RUN_ID, "run_id")                                                                            \
    X(SCOPE_RANGE_ID, "scope_range_id")                                                            \
    X(SELF_DURATION_PS, "self_duration_ps")                                                        \
    X(TENSOR_SHAPES, "shape")                                                                      \
    X(SHAPE_WITH_LAYOUT, "shape_with_layout")                                                      \
    X(SOURCE_INFO, "source")                                                                       \
    X(SOURCE_STACK, "source_stack")                                                                \
    X(STEP_IDLE_TIME_PS, "step_idle_time_ps")                                                      \
    X(STEP_NAME, "step_name")                                                                      \
    X(STEP_NUM, "step_num")                                                                        \
    X(STREAM, "stream")                                                                            \
    X(SYMBOL_ID, "symbol_id")                                                                      \
    X(TC_OFFLOAD_START_ID, "tc_offload_start_id")                                                  \
    X(TF_FUNCTION_CALL, "tf_function_call")                                                        \
    X(TF_OP, "tf_op")                                                                              \
    X(TF_OP_NAME, "tf_op_name")                                                                    \
    X(THEORETICAL_OCCUPANCY_PCT, "theoretical_occupancy_pct")                                      \
    X(TORCH_CALL, "torch_call")                                                                    \
    X(TORCH_RUN, "torch_run")                                                                      \
    X(TOTAL_PROFILE_DURATION_PS, "total_profile_duration_ps")                                      \
    X(TF_FUNCTION_TRACING_COUNT, "tracing_count")                                                  \
    X(TRANSACTION_WITH_CHIP_CORE_ID, "transaction_with_chip_core_id")                              \
    X(TRANSFERS, "transfers")                                                                      \
    X(USES_ICI, "uses_ici")                                                                        \
    X(USES_MEGACORE, "uses_megacore")                                                              \
    X(VDD_CORE_ENERGY, "vdd_core_energy_nj")                                                       \
    X(VDD_CORE_POWER_EVENTS, "vdd_core_power_events")                                              \
    X(WORLD_SIZE, "world_size")

// ---- events on host threads: enum suffix, metadata name; sorted bytewise by name ----

#define XPL_SCHEMA_EVENTS(X)                                                                       \
    X(ASBS_QUEUE_SCHEDULE, "ASBSQueue::Schedule")                                                  \
    X(BATCHING_SESSION_RUN, "BatchingSessionRun")                                                  \
    X(BRAIN_SESSION_RUN, "BrainSessionRun")                                                        \
    X(COMPLETE_CALLBACKS, "CompleteCallbacks")                                                     \
    X(CONCAT_INPUT_TENSORS, "ConcatInputTensors")                                                  \
    X(CUSTOM_WAIT, "CustomWait")                                                                   \
    X(DELINEARIZE, "Delinearize")                                                                  \
    X(DO_ENQUEUE_CONTINUATION_PROGRAM, "DoEnqueueContinuationProgram")                             \
    X(DO_ENQUEUE_PROGRAM, "DoEnqueueProgram")                                                      \
    X(EAGER_KERNEL_EXECUTE, "EagerExecute")                                                        \
    X(ENQUEUE_REQUEST_LOCKED, "EnqueueRequestLocked")                                              \
    X(EXECUTOR_DONE_CALLBACK, "ExecutorDoneCallback")                                              \
    X(EXECUTOR_STATE_PROCESS, "ExecutorState::Process")                                            \
    X(FOR_OP, "ForOp")                                                                             \
    X(FOREVER_OP, "ForeverOp")                                                                     \
    X(FUNCTION_RUN, "FunctionRun")                                                                 \
    X(HOST_CALLBACK_REQUEST, "HostCallbackRequest")                                                \
    X(TF_DATA_CAPTURED_FUNCTION_RUN, "InstantiatedCapturedFunction::Run")                          \
    X(TF_DATA_CAPTURED_FUNCTION_RUN_ASYNC, "InstantiatedCapturedFunction::RunAsync")               \
    X(TF_DATA_CAPTURED_FUNCTION_RUN_INSTANTIATED, "InstantiatedCapturedFunction::RunInstantiated") \
    X(TF_DATA_CAPTURED_FUNCTION_RUN_WITH_BORROWED_ARGS,                                            \
      "InstantiatedCapturedFunction::RunWithBorrowedArgs")                                         \
    X(ITERATOR, "Iterator")                                                                        \
    X(DEVICE_INPUT_PIPELINE_SECOND_ITERATOR, "Iterator::Prefetch::Generator")                      \
    X(ITERATOR_GET_NEXT_AS_OPTIONAL_OP, "IteratorGetNextAsOptionalOp::DoCompute")                  \
    X(ITERATOR_GET_NEXT_OP, "IteratorGetNextOp::DoCompute")                                        \
    X(KERNEL_EXECUTE, "KernelExecute")                                                             \
    X(KERNEL_LAUNCH, "KernelLaunch")                                                               \
    X(LINEARIZE, "Linearize")                                                                      \
    X(MAP_AND_BATCH_CONSUME, "MapAndBatchConsume")                                                 \
    X(MAP_AND_BATCH_PRODUCE, "MapAndBatchProduce")                                                 \
    X(MEMORY_ALLOCATION, "MemoryAllocation")                                                       \
    X(MEMORY_DEALLOCATION, "MemoryDeallocation")                                                   \
    X(MERGE_INPUT_TENSORS, "MergeInputTensors")                                                    \
    X(ON_DEVICE_RECV_REQUEST, "OnDeviceRecvRequest")                                               \
    X(ON_DEVICE_RECV_REQUEST_MULTI, "OnDeviceRecvRequestMulti")                                    \
    X(ON_DEVICE_SEND_RECV_LOCAL_REQUEST, "OnDeviceSendRecvLocalRequest")                           \
    X(ON_DEVICE_SEND_REQUEST, "OnDeviceSendRequest")                                               \
    X(ON_DEVICE_SEND_REQUEST_MULTI, "OnDeviceSendRequestMulti")                                    \
    X(ORBAX_CONCAT_INPUT_BUFFERS, "OrbaxServing::ConcatInputBuffers")                              \
    X(ORBAX_PROCESS_BATCH, "OrbaxServing::ProcessBatch")                                           \
    X(PARALLEL_BATCH_CONSUME, "ParallelBatchConsume")                                              \
    X(PARALLEL_BATCH_PRODUCE, "ParallelBatchProduce")                                              \
    X(PARALLEL_FOR_OP, "ParallelForOp")                                                            \
    X(PARALLEL_INTERLEAVE_CONSUME, "ParallelInterleaveConsume")                                    \
    X(PARALLEL_INTERLEAVE_INITIALIZED_INPUT, "ParallelInterleaveInitializeInput")                  \
    X(PARALLEL_INTERLEAVE_PRODUCE, "ParallelInterleaveProduce")                                    \
    X(PARALLEL_MAP_CONSUME, "ParallelMapConsume")                                                  \
    X(PARALLEL_MAP_PRODUCE, "ParallelMapProduce")                                                  \
    X(PARSE_EXAMPLE_CONSUME, "ParseExampleConsume")                                                \
    X(PARSE_EXAMPLE_PRODUCE, "ParseExampleProduce")                                                \
    X(PJRT_ASYNC_WAIT, "PjrtAsyncWait")                                                            \
    X(PREFETCH_CONSUME, "PrefetchConsume")                                                         \
    X(PREFETCH_PRODUCE, "PrefetchProduce")                                                         \
    X(PROCESS_BATCH, "ProcessBatch")                                                               \
    X(READ_HBM, "ReadHbm")                                                                         \
    X(REMOTE_PERF, "RemotePerfCounter")                                                            \
    X(RUN_GRAPH, "RunGraph")                                                                       \
    X(RUN_GRAPH_DONE, "RunGraphDone")                                                              \
    X(RUN_PROGRAM_REQUEST, "RunProgramRequest")                                                    \
    X(SCHEDULE_WITH_EAGER_SPLIT, "ScheduleWithEagerSplit")                                         \
    X(SCHEDULE_WITH_SPLIT, "ScheduleWithSplit")                                                    \
    X(SCHEDULE_WITHOUT_SPLIT, "ScheduleWithoutSplit")                                              \
    X(SERVING_MODEL_RUN, "ServingModelRun")                                                        \
    X(SESSION_RUN, "SessionRun")                                                                   \
    X(TPU_PARTITIONED_CALL_OP_EXECUTE_LOCAL, "TPUPartitionedCallOp-ExecuteLocal")                  \
    X(TPU_PARTITIONED_CALL_OP_EXECUTE_REMOTE, "TPUPartitionedCallOp-ExecuteRemote")                \
    X(TPU_PARTITIONED_CALL_OP_INITIALIZE_VAR_ON_TPU, "TPUPartitionedCallOp-InitializeVarOnTPU")    \
    X(TF_OP_RUN, "TfOpRun")                                                                        \
    X(TFRT_MODEL_RUN, "TfrtModelRun")                                                              \
    X(TPU_EXECUTE_OP, "TpuExecuteOp")                                                              \
    X(TRACE_CONTEXT, "TraceContext")                                                               \
    X(TRANSFER_BUFFER_FROM_DEVICE_FAST_PATH, "TransferBufferFromDevice-FastPath")                  \
    X(TRANSFER_D2H_REQUEST, "TransferD2HRequest")                                                  \
    X(TRANSFER_H2D_REQUEST, "TransferH2DRequest")                                                  \
    X(TRANSFER_PREPROCESSED_H2D_REQUEST, "TransferPreprocessedH2DRequest")                         \
    X(WHILE_OP_EVAL_COND, "WhileOp-EvalCond")                                                      \
    X(WHILE_OP_START_BODY, "WhileOp-StartBody")                                                    \
    X(WRITE_HBM, "WriteHbm")                                                                       \
    X(TPU_SYSTEM_EXECUTE, "tpu::System::Execute")                                                  \
    X(TRANSFER_FROM_DEVICE_ISSUE_EVENT, "tpu::System::TransferFromDevice=>IssueEvent")             \
    X(TRANSFER_FROM_DEVICE_DONE, "tpu::System::TransferFromDevice=>IssueEvent=>Done")              \
    X(TRANSFER_TO_DEVICE_ISSUE_EVENT, "tpu::System::TransferToDevice=>IssueEvent")                 \
    X(TRANSFER_TO_DEVICE_DONE, "tpu::System::TransferToDevice=>IssueEvent=>Done")

#define XPL_SCHEMA_STAT_ENUM(e, name)  XPL_STAT_##e,
#define XPL_SCHEMA_EVENT_ENUM(e, name) XPL_EVENT_##e,
enum xpl_stat_type { XPL_STAT_UNKNOWN, XPL_SCHEMA_STATS(XPL_SCHEMA_STAT_ENUM) XPL_STAT_COUNT_ };
enum xpl_event_type {
    XPL_EVENT_UNKNOWN,
    XPL_SCHEMA_EVENTS(XPL_SCHEMA_EVENT_ENUM) XPL_EVENT_COUNT_
};
#undef XPL_SCHEMA_STAT_ENUM
#undef XPL_SCHEMA_EVENT_ENUM

// Type of that exact name; UNKNOWN when it is not in the table.  Any thread.
enum xpl_stat_type xpl_stat_type_find(xpl_str_t name);
// As above, for host events only: names of TensorFlow ops ("name:Type": XPL_EVENT_TF_OP_RUN) and of
// tf.data iterators ("Iterator::...": XPL_EVENT_ITERATOR) are recognised too, as XProf's visitor
// does when the table has no such name.
enum xpl_event_type xpl_event_type_find(xpl_str_t name);
// The name of a type; "" for UNKNOWN.
xpl_str_t xpl_stat_type_name(enum xpl_stat_type t);
xpl_str_t xpl_event_type_name(enum xpl_event_type t);

// Links between a producer and its consumers (stats _pt and _ct; tsl context_types.h).
enum xpl_context_type {
    XPL_CONTEXT_GENERIC,
    XPL_CONTEXT_LEGACY,
    XPL_CONTEXT_TF_EXECUTOR,
    XPL_CONTEXT_TFRT_EXECUTOR,
    XPL_CONTEXT_SHARED_BATCH_SCHEDULER,
    XPL_CONTEXT_PJRT,
    XPL_CONTEXT_ADAPTIVE_SHARED_BATCH_SCHEDULER,
    XPL_CONTEXT_TFRT_TPU_RUNTIME,
    XPL_CONTEXT_TPU_EMBEDDING_ENGINE,
    XPL_CONTEXT_GPU_LAUNCH,
    XPL_CONTEXT_BATCHER,
    XPL_CONTEXT_TPU_STREAM,
    XPL_CONTEXT_TPU_LAUNCH,
    XPL_CONTEXT_PATHWAYS_EXECUTOR,
    XPL_CONTEXT_PJRT_LIBRARY_CALL,
    XPL_CONTEXT_THREADPOOL_EVENT,
    XPL_CONTEXT_JAX_SERVING_EXECUTOR,
    XPL_CONTEXT_SC_OFFLOAD,
};

#endif
