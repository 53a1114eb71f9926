// SPDX-License-Identifier: Apache-2.0
// OpStats in memory: what one conversion of an XSpace yields, and what every OpStats tool reads.
// Mirrors the message tensorflow.profiler.OpStats field by field (XProf's op_stats.proto and the
// files it imports), so that codec.h can read and write XProf's bytes.  Names are the message's.
//
// Ownership: everything reachable from a struct xpl_opstats lives in one arena, strings included
// (copied, so the profile may be unmapped).  Nothing here is freed singly.  A finished OpStats is
// immutable and may be read by any number of threads.
// Arrays are in the order in which upstream's output is stable, or first-appearance order where
// upstream's is a hash order; maps are arrays sorted by key.
#ifndef XPL_ANALYSIS_OPSTATS_OPSTATS_H_
#define XPL_ANALYSIS_OPSTATS_OPSTATS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

enum xpl_core_type { XPL_CORE_UNKNOWN = 0, XPL_CORE_TENSOR = 1, XPL_CORE_SPARSE = 2 };
enum xpl_hardware { XPL_HW_UNKNOWN = 0, XPL_HW_CPU_ONLY = 1, XPL_HW_GPU = 2, XPL_HW_TPU = 3 };
enum { XPL_MEM_OP_UNKNOWN = 0, XPL_MEM_OP_READ = 1, XPL_MEM_OP_WRITE = 2 };

// Position in xpl_perf_env.peak_bws_giga_bytes_per_second (MemBwType).
enum {
    XPL_BW_HBM_RW = 0,
    XPL_BW_SRAM_RD = 1,
    XPL_BW_SRAM_WR = 2,
    XPL_BW_CMEM_RD = 3,
    XPL_BW_CMEM_WR = 4,
    XPL_BW_VMEM_RD = 5,
    XPL_BW_VMEM_WR = 6,
};

struct xpl_memory_accessed {
    int32_t operation_type; // XPL_MEM_OP_*
    uint64_t memory_space, bytes_accessed;
};

struct xpl_source_info {
    xpl_str_t file_name, stack_frame;
    int32_t line_number;
};

struct xpl_op_metrics_db;

struct xpl_op_metrics { // message OpMetrics
    uint64_t hlo_module_id;
    int64_t stable_op_id;
    xpl_str_t name, long_name, category, provenance, deduplicated_name;
    uint64_t time_ps, self_time_ps, min_time_ps, normalized_time_ps, dma_stall_ps;
    uint64_t flops, model_flops;
    double flops_v2, model_flops_v2, vdd_energy_j;
    uint64_t fingerprint, bytes_accessed;
    XPL_VEC(struct xpl_memory_accessed) memory_accessed_breakdown;
    xpl_bytes_t layout;                 // LayoutAnalysis, serialized; empty when absent
    struct xpl_op_metrics_db *children; // NULL when absent
    struct xpl_source_info source_info;
    uint32_t occurrences, num_cores, computation_primitive_size;
    uint32_t framework_runs; // ours: of PyTorch's op, which may run several kernels, or one of them
    enum xpl_core_type core_type;
    bool is_eager, autotuned, has_source_info, has_vdd_energy_j, has_stable_op_id, has_layout;
};

struct xpl_op_metrics_db { // message OpMetricsDb
    XPL_VEC(struct xpl_op_metrics) metrics_db;
    uint64_t total_host_infeed_enq_duration_ps, total_host_infeed_enq_start_timestamp_ps_diff;
    uint64_t total_time_ps, total_op_time_ps, normalized_total_op_time_ps;
    uint64_t compute_16bit_ps, compute_32bit_ps; // PrecisionStats
    bool has_precision_stats;
    uint64_t idle_time_ps, busy_time_ps, busy_time_high_confidence_ps, idle_time_high_confidence_ps;
};

struct xpl_perf_env { // message PerfEnv
    double peak_tera_flops_per_second, peak_bw_giga_bytes_per_second,
        peak_hbm_bw_giga_bytes_per_second, ridge_point;
    XPL_VEC(double) peak_bws_giga_bytes_per_second;
    bool has_cmem, has_merged_vmem, has_megacore;
};

struct xpl_run_environment { // message RunEnvironment
    int32_t host_count, task_count, device_core_count, replica_count, num_cores_per_replica;
    XPL_VEC(xpl_str_t) hostnames; // sorted, each once
    xpl_str_t device_type;
    uint32_t host_trace_level;
    bool is_training;
    enum xpl_hardware hardware_type;
    // Submessages that no conversion of ours fills, kept as read: serialized, empty when absent.
    xpl_bytes_t host_independent_job_info, system_topology, power_metrics;
    XPL_VEC(xpl_bytes_t) host_dependent_job_info;
};

struct xpl_device_memory_transfer { // message DeviceMemoryTransfer
    uint64_t occurrence, bytes_transferred;
    double time_us;
};

struct xpl_type_ps {
    int32_t type; // enum xpl_span_type of event_span.h
    uint64_t ps;
};
struct xpl_category_ps {
    xpl_str_t category;
    uint64_t ps;
};

struct xpl_tpu_step_breakdown { // message TpuStepBreakdown
    uint64_t infeed_duration_ps, host_outfeed_ps, wait_for_scv0_duration_ps,
        scv0_infeed_transform_ps, scv0_outfeed_ps, crs_duration_ps, send_duration_ps,
        recv_duration_ps, host_send_duration_ps, host_recv_duration_ps,
        wait_for_megacore_fusion_peer_duration_ps, overlay_wait_duration_ps, high_flops_compute_ps,
        tc_idle_ps, tc_busy_ps, scv0_busy_ps, scv0_step_ps;
    double scv0_infeed_percent;
};
struct xpl_sparse_core_step_breakdown { // message SparseCoreStepBreakdown
    uint64_t sc_compute_ps, sc_infeed_ps, sc_outfeed_ps, sc_idle_ps, sc_busy_ps;
};

// Which message StepInfoResult.step_breakdown (an Any) holds.
enum xpl_breakdown {
    XPL_BREAKDOWN_NONE,
    XPL_BREAKDOWN_GENERIC,
    XPL_BREAKDOWN_TPU,
    XPL_BREAKDOWN_SPARSE_CORE
};

struct xpl_step_info { // message StepInfoResult
    uint32_t core_id;  // key in step_info_per_core
    uint32_t step_num;
    xpl_str_t step_name;
    uint64_t duration_ps, begin_ps;
    enum xpl_breakdown breakdown;
    XPL_VEC(struct xpl_type_ps) type_ps;         // GENERIC, sorted by type
    XPL_VEC(struct xpl_category_ps) category_ps; // GENERIC, sorted by category
    struct xpl_tpu_step_breakdown *tpu;
    struct xpl_sparse_core_step_breakdown *sparse;
    struct xpl_device_memory_transfer collectives;
    bool has_collectives;
};

struct xpl_all_reduce_info {
    uint64_t id, all_reduce_id, start_time_ps, end_time_ps, byte_size;
    xpl_str_t name;
};
struct xpl_all_reduce_db {
    uint32_t core_id;
    XPL_VEC(struct xpl_all_reduce_info) all_reduce_info;
};
struct xpl_core_replica {
    uint32_t core_id, replica_id;
};

struct xpl_per_core_step_info { // message PerCoreStepInfo
    uint32_t step_num;
    XPL_VEC(struct xpl_step_info) step_info_per_core; // sorted by core_id
    struct xpl_op_metrics_db *hlo_metrics_db;         // NULL when absent
    XPL_VEC(struct xpl_core_replica) core_id_to_replica_id_map;
    XPL_VEC(struct xpl_all_reduce_db) all_reduce_db_per_core;
    XPL_VEC(struct xpl_device_memory_transfer) device_memory_transfers;
};

struct xpl_step_db { // message StepDatabaseResult
    XPL_VEC(struct xpl_per_core_step_info) step_sequence;
    // Of a conversion: the sequence, and around it the steps that were left out as incomplete.  Not
    // of what was decoded or combined.
    bool has_all_steps;
    const struct xpl_per_core_step_info *all_steps;
    size_t n_all_steps;
    bool use_incomplete_step, empty_intersect;
    uint32_t num_steps_dropped;
};

struct xpl_kernel_report { // message KernelReport
    xpl_str_t name, op_name;
    uint32_t registers_per_thread, static_shmem_bytes, dynamic_shmem_bytes, occurrences;
    uint32_t block_dim[3], grid_dim[3];
    uint8_t n_block_dim, n_grid_dim; // how many of the three the message carries
    uint64_t total_duration_ns, min_duration_ns, max_duration_ns;
    bool is_kernel_using_tensor_core, is_op_tensor_core_eligible;
    float occupancy_pct;
};

struct xpl_tf_function_metrics {
    int32_t mode; // TfFunctionExecutionMode
    uint64_t count, self_time_ps;
};
struct xpl_tf_function { // map entry of TfFunctionDb
    xpl_str_t name;
    XPL_VEC(struct xpl_tf_function_metrics) metrics; // sorted by mode
    int64_t total_tracing_count;
    int32_t compiler; // TfFunctionCompiler
    double expensive_call_percent;
};

struct xpl_core_details { // map entry of core_id_to_details
    uint32_t core_id;
    xpl_str_t hostname;
    uint32_t device_ordinal, core_num, local_chip_id, global_chip_id, global_core_id;
    bool is_sparse_core;
};

// As XPL_VEC(xpl_str_t), with a name.
struct xpl_str_list {
    xpl_str_t *v;
    size_t n, cap;
};
struct xpl_diagnostics {
    struct xpl_str_list info, warnings, errors;
};

struct xpl_program_name {
    uint64_t program_id;
    xpl_str_t name;
};
// For xpl_sort and bsearch.
static inline int xpl_program_name_by_id(const void *pa, const void *pb) {
    const struct xpl_program_name *const a = pa, *const b = pb;
    return (a->program_id > b->program_id) - (a->program_id < b->program_id);
}

struct xpl_distribution {
    double avg, p50, p90, p95, p99;
};

struct xpl_opstats { // message OpStats
    struct xpl_op_metrics_db host_op_metrics_db, device_op_metrics_db,
        hlo_metrics_db_complete_steps_only;
    struct xpl_perf_env perf_env;
    struct xpl_step_db step_db;
    struct xpl_run_environment run_environment;
    XPL_VEC(struct xpl_kernel_report) kernel_reports;    // KernelStatsDb
    XPL_VEC(struct xpl_tf_function) tf_functions;        // TfFunctionDb, sorted by name
    XPL_VEC(struct xpl_core_details) core_id_to_details; // sorted by core_id
    struct xpl_diagnostics diagnostics;
    XPL_VEC(struct xpl_program_name) program_id_to_name_map;         // sorted by program_id
    double matrix_unit_utilization_percent, hbm_utilization_percent; // PerformanceCounterResult
    struct xpl_distribution prefill_step_time_us, decode_step_time_us;
    int64_t num_prefill_steps, num_decode_steps;
    // Submessages present on the wire; the struct's zero and "absent" mean different things
    // upstream.
    bool has_host_op_metrics_db, has_device_op_metrics_db, has_hlo_metrics_db_complete_steps_only,
        has_perf_env, has_step_db, has_run_environment, has_kernel_stats_db, has_tf_function_db,
        has_performance_counter_result, has_disaggregated_serving_latency;
};

#endif
