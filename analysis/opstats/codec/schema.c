// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/codec/schema.h"

#include "analysis/opstats/opstats.h"

#define SCALAR(kind_, type, member)                                                                \
    { .kind = XPL_CODEC_##kind_, .off = offsetof(struct type, member) }
#define KEY(kind_, type, member)                                                                   \
    { .kind = XPL_CODEC_##kind_, .off = offsetof(struct type, member), .always = true }
#define OPTIONAL(kind_, type, member)                                                              \
    {                                                                                              \
        .kind = XPL_CODEC_##kind_, .off = offsetof(struct type, member),                           \
        .has = offsetof(struct type, has_##member)                                                 \
    }
// A submessage whose members are members of the struct around it.
#define FLAT(sub_)                                                                                 \
    { .kind = XPL_CODEC_MSG, .sub = &(sub_) }
#define FLAT_VALUE(sub_)                                                                           \
    { .kind = XPL_CODEC_MSG, .sub = &(sub_), .always = true }
#define FLAT_IF(sub_, type, flag)                                                                  \
    { .kind = XPL_CODEC_MSG, .sub = &(sub_), .has = offsetof(struct type, flag) }
#define INLINE(sub_, type, member)                                                                 \
    { .kind = XPL_CODEC_MSG, .sub = &(sub_), .off = offsetof(struct type, member) }
#define INLINE_IF(sub_, type, member)                                                              \
    {                                                                                              \
        .kind = XPL_CODEC_MSG, .sub = &(sub_), .off = offsetof(struct type, member),               \
        .has = offsetof(struct type, has_##member)                                                 \
    }
#define VEC(kind_, sub_, type, member, cmp_)                                                       \
    {                                                                                              \
        .kind = XPL_CODEC_##kind_, .sub = &(sub_), .off = offsetof(struct type, member),           \
        .size = sizeof *((struct type *)0)->member.v, .cmp = (cmp_)                                \
    }
#define POINTER(sub_, type, member, nests_)                                                        \
    {                                                                                              \
        .kind = XPL_CODEC_PTR, .sub = &(sub_), .off = offsetof(struct type, member),               \
        .size = sizeof *((struct type *)0)->member, .nests = (nests_)                              \
    }
#define MESSAGE(name, table, repeats_)                                                             \
    const struct xpl_codec_message name = {table, sizeof(table) / sizeof *(table), repeats_};      \
    _Static_assert(sizeof(table) / sizeof *(table) <= XPL_CODEC_MAX_FIELDS, "too many fields")

// Keys stand at the same place in every entry of a map.
#define BY_NUMBER(fn, type, member)                                                                \
    static int fn(const void *a, const void *b) {                                                  \
        const struct type *const x = a, *const y = b;                                              \
        return (x->member > y->member) - (x->member < y->member);                                  \
    }
#define BY_TEXT(fn, type, member)                                                                  \
    static int fn(const void *a, const void *b) {                                                  \
        const struct type *const x = a, *const y = b;                                              \
        return xpl_str_cmp(x->member, y->member);                                                  \
    }

// ---- op metrics ----

static const struct xpl_codec_message op_metrics_db;

static const struct xpl_codec_field memory_accessed_fields[] = {
    [1] = SCALAR(I32, xpl_memory_accessed, operation_type),
    [2] = SCALAR(U64, xpl_memory_accessed, memory_space),
    [3] = SCALAR(U64, xpl_memory_accessed, bytes_accessed),
};
static MESSAGE(memory_accessed, memory_accessed_fields, false);

static const struct xpl_codec_field source_info_fields[] = {
    [1] = SCALAR(STR, xpl_source_info, file_name),
    [2] = SCALAR(I32, xpl_source_info, line_number),
    [3] = SCALAR(STR, xpl_source_info, stack_frame),
};
static MESSAGE(source_info_message, source_info_fields, false);

static const struct xpl_codec_field op_metrics_fields[] = {
    [1] = SCALAR(U64, xpl_op_metrics, self_time_ps),
    [2] = SCALAR(U64, xpl_op_metrics, flops),
    [3] = SCALAR(U32, xpl_op_metrics, occurrences),
    [5] = SCALAR(U64, xpl_op_metrics, bytes_accessed),
    [6] = SCALAR(STR, xpl_op_metrics, name),
    [7] = SCALAR(U64, xpl_op_metrics, time_ps),
    [9] = SCALAR(U32, xpl_op_metrics, framework_runs), // ours; XProf has no such field
    [10] = SCALAR(U64, xpl_op_metrics, dma_stall_ps),
    [11] = SCALAR(STR, xpl_op_metrics, category),
    [12] = SCALAR(STR, xpl_op_metrics, provenance),
    [13] = SCALAR(U64, xpl_op_metrics, hlo_module_id),
    [14] = OPTIONAL(BYTES, xpl_op_metrics, layout),
    [15] = SCALAR(STR, xpl_op_metrics, deduplicated_name),
    [16] = POINTER(op_metrics_db, xpl_op_metrics, children, true),
    [17] = SCALAR(U64, xpl_op_metrics, min_time_ps),
    [18] = SCALAR(BOOL, xpl_op_metrics, is_eager),
    [19] = VEC(REP, memory_accessed, xpl_op_metrics, memory_accessed_breakdown, NULL),
    [20] = SCALAR(STR, xpl_op_metrics, long_name),
    [21] = SCALAR(U32, xpl_op_metrics, num_cores),
    [22] = SCALAR(U32, xpl_op_metrics, computation_primitive_size),
    [23] = SCALAR(BOOL, xpl_op_metrics, autotuned),
    [24] = SCALAR(U64, xpl_op_metrics, model_flops),
    [25] = SCALAR(U64, xpl_op_metrics, fingerprint),
    [26] = INLINE_IF(source_info_message, xpl_op_metrics, source_info),
    [27] = SCALAR(U64, xpl_op_metrics, normalized_time_ps),
    [28] = SCALAR(I32, xpl_op_metrics, core_type),
    [29] = SCALAR(DOUBLE, xpl_op_metrics, flops_v2),
    [30] = SCALAR(DOUBLE, xpl_op_metrics, model_flops_v2),
    [31] = OPTIONAL(DOUBLE, xpl_op_metrics, vdd_energy_j),
    [32] = OPTIONAL(I64, xpl_op_metrics, stable_op_id),
};
static MESSAGE(op_metrics, op_metrics_fields, true);

static const struct xpl_codec_field precision_fields[] = {
    [1] = SCALAR(U64, xpl_op_metrics_db, compute_16bit_ps),
    [2] = SCALAR(U64, xpl_op_metrics_db, compute_32bit_ps),
};
static MESSAGE(precision_stats, precision_fields, false);

static const struct xpl_codec_field op_metrics_db_fields[] = {
    [2] = SCALAR(U64, xpl_op_metrics_db, total_host_infeed_enq_duration_ps),
    [3] = SCALAR(U64, xpl_op_metrics_db, total_host_infeed_enq_start_timestamp_ps_diff),
    [10] = VEC(REP, op_metrics, xpl_op_metrics_db, metrics_db, NULL),
    [11] = SCALAR(U64, xpl_op_metrics_db, total_time_ps),
    [12] = SCALAR(U64, xpl_op_metrics_db, total_op_time_ps),
    [13] = FLAT_IF(precision_stats, xpl_op_metrics_db, has_precision_stats),
    [14] = SCALAR(U64, xpl_op_metrics_db, idle_time_ps),
    [15] = SCALAR(U64, xpl_op_metrics_db, busy_time_ps),
    [16] = SCALAR(U64, xpl_op_metrics_db, normalized_total_op_time_ps),
    [17] = SCALAR(U64, xpl_op_metrics_db, busy_time_high_confidence_ps),
    [18] = SCALAR(U64, xpl_op_metrics_db, idle_time_high_confidence_ps),
};
static MESSAGE(op_metrics_db, op_metrics_db_fields, true);

// ---- environment ----

static const struct xpl_codec_field perf_env_fields[] = {
    [1] = SCALAR(DOUBLE, xpl_perf_env, peak_tera_flops_per_second),
    [2] = SCALAR(DOUBLE, xpl_perf_env, peak_hbm_bw_giga_bytes_per_second),
    [3] = SCALAR(DOUBLE, xpl_perf_env, ridge_point),
    [4] = SCALAR(DOUBLE, xpl_perf_env, peak_bw_giga_bytes_per_second),
    [5] = SCALAR(PACKED, xpl_perf_env, peak_bws_giga_bytes_per_second),
    [6] = SCALAR(BOOL, xpl_perf_env, has_cmem),
    [7] = SCALAR(BOOL, xpl_perf_env, has_merged_vmem),
    [8] = SCALAR(BOOL, xpl_perf_env, has_megacore),
};
static MESSAGE(perf_env_message, perf_env_fields, true);

static int by_string(const void *a, const void *b) {
    return xpl_str_cmp(*(const xpl_str_t *)a, *(const xpl_str_t *)b);
}
static const struct xpl_codec_field hostname_entry_fields[] = {
    [1] = {.kind = XPL_CODEC_STR, .always = true},
    [2] = {.kind = XPL_CODEC_TRUE, .always = true},
};
static MESSAGE(hostname_entry, hostname_entry_fields, false);

static const struct xpl_codec_field run_environment_fields[] = {
    [1] = SCALAR(I32, xpl_run_environment, host_count),
    [2] = SCALAR(I32, xpl_run_environment, task_count),
    [3] = VEC(MAP, hostname_entry, xpl_run_environment, hostnames, by_string),
    [4] = SCALAR(STR, xpl_run_environment, device_type),
    [5] = SCALAR(I32, xpl_run_environment, device_core_count),
    [7] = SCALAR(BYTES, xpl_run_environment, host_independent_job_info),
    [8] = SCALAR(BLOBS, xpl_run_environment, host_dependent_job_info),
    [9] = SCALAR(I32, xpl_run_environment, replica_count),
    [10] = SCALAR(I32, xpl_run_environment, num_cores_per_replica),
    [12] = SCALAR(U32, xpl_run_environment, host_trace_level),
    [13] = SCALAR(BYTES, xpl_run_environment, system_topology),
    [14] = SCALAR(BOOL, xpl_run_environment, is_training),
    [15] = SCALAR(BYTES, xpl_run_environment, power_metrics),
    [16] = SCALAR(I32, xpl_run_environment, hardware_type),
};
static MESSAGE(run_environment_message, run_environment_fields, true);

// ---- steps ----

static const struct xpl_codec_field transfer_fields[] = {
    [1] = SCALAR(U64, xpl_device_memory_transfer, occurrence),
    [2] = SCALAR(DOUBLE, xpl_device_memory_transfer, time_us),
    [3] = SCALAR(U64, xpl_device_memory_transfer, bytes_transferred),
};
static MESSAGE(memory_transfer, transfer_fields, false);

BY_NUMBER(by_type, xpl_type_ps, type)
BY_TEXT(by_category, xpl_category_ps, category)
static const struct xpl_codec_field type_entry_fields[] = {
    [1] = KEY(I32, xpl_type_ps, type),
    [2] = KEY(U64, xpl_type_ps, ps),
};
static MESSAGE(type_entry, type_entry_fields, false);
static const struct xpl_codec_field category_entry_fields[] = {
    [1] = KEY(STR, xpl_category_ps, category),
    [2] = KEY(U64, xpl_category_ps, ps),
};
static MESSAGE(category_entry, category_entry_fields, false);
static const struct xpl_codec_field generic_breakdown_fields[] = {
    [1] = VEC(MAP, type_entry, xpl_step_info, type_ps, by_type),
    [2] = VEC(MAP, category_entry, xpl_step_info, category_ps, by_category),
};
MESSAGE(xpl_codec_generic_breakdown, generic_breakdown_fields, true);

static const struct xpl_codec_field tpu_breakdown_fields[] = {
    [1] = SCALAR(U64, xpl_tpu_step_breakdown, infeed_duration_ps),
    [2] = SCALAR(U64, xpl_tpu_step_breakdown, host_outfeed_ps),
    [3] = SCALAR(U64, xpl_tpu_step_breakdown, wait_for_scv0_duration_ps),
    [4] = SCALAR(U64, xpl_tpu_step_breakdown, scv0_infeed_transform_ps),
    [5] = SCALAR(U64, xpl_tpu_step_breakdown, scv0_outfeed_ps),
    [6] = SCALAR(U64, xpl_tpu_step_breakdown, crs_duration_ps),
    [7] = SCALAR(DOUBLE, xpl_tpu_step_breakdown, scv0_infeed_percent),
    [8] = SCALAR(U64, xpl_tpu_step_breakdown, send_duration_ps),
    [9] = SCALAR(U64, xpl_tpu_step_breakdown, recv_duration_ps),
    [11] = SCALAR(U64, xpl_tpu_step_breakdown, overlay_wait_duration_ps),
    [12] = SCALAR(U64, xpl_tpu_step_breakdown, high_flops_compute_ps),
    [13] = SCALAR(U64, xpl_tpu_step_breakdown, tc_idle_ps),
    [14] = SCALAR(U64, xpl_tpu_step_breakdown, wait_for_megacore_fusion_peer_duration_ps),
    [15] = SCALAR(U64, xpl_tpu_step_breakdown, host_send_duration_ps),
    [16] = SCALAR(U64, xpl_tpu_step_breakdown, host_recv_duration_ps),
    [17] = SCALAR(U64, xpl_tpu_step_breakdown, tc_busy_ps),
    [18] = SCALAR(U64, xpl_tpu_step_breakdown, scv0_busy_ps),
    [19] = SCALAR(U64, xpl_tpu_step_breakdown, scv0_step_ps),
};
MESSAGE(xpl_codec_tpu_breakdown, tpu_breakdown_fields, false);

static const struct xpl_codec_field sparse_core_breakdown_fields[] = {
    [1] = SCALAR(U64, xpl_sparse_core_step_breakdown, sc_compute_ps),
    [2] = SCALAR(U64, xpl_sparse_core_step_breakdown, sc_infeed_ps),
    [3] = SCALAR(U64, xpl_sparse_core_step_breakdown, sc_outfeed_ps),
    [4] = SCALAR(U64, xpl_sparse_core_step_breakdown, sc_idle_ps),
    [5] = SCALAR(U64, xpl_sparse_core_step_breakdown, sc_busy_ps),
};
MESSAGE(xpl_codec_sparse_core_breakdown, sparse_core_breakdown_fields, false);

static const struct xpl_codec_field step_info_fields[] = {
    [1] = SCALAR(U32, xpl_step_info, step_num),
    [2] = SCALAR(U64, xpl_step_info, duration_ps),
    [3] = SCALAR(U64, xpl_step_info, begin_ps),
    [4] = {.kind = XPL_CODEC_ANY},
    [5] = SCALAR(STR, xpl_step_info, step_name),
    [6] = INLINE_IF(memory_transfer, xpl_step_info, collectives),
};
static MESSAGE(step_info, step_info_fields, false);
BY_NUMBER(by_core, xpl_step_info, core_id)
static const struct xpl_codec_field step_info_entry_fields[] = {
    [1] = KEY(U32, xpl_step_info, core_id),
    [2] = FLAT_VALUE(step_info),
};
static MESSAGE(step_info_entry, step_info_entry_fields, false);

BY_NUMBER(by_replica_core, xpl_core_replica, core_id)
static const struct xpl_codec_field replica_entry_fields[] = {
    [1] = KEY(U32, xpl_core_replica, core_id),
    [2] = KEY(U32, xpl_core_replica, replica_id),
};
static MESSAGE(replica_entry, replica_entry_fields, false);

static const struct xpl_codec_field all_reduce_info_fields[] = {
    [1] = SCALAR(U64, xpl_all_reduce_info, id),
    [2] = SCALAR(STR, xpl_all_reduce_info, name),
    [3] = SCALAR(U64, xpl_all_reduce_info, all_reduce_id),
    [4] = SCALAR(U64, xpl_all_reduce_info, start_time_ps),
    [5] = SCALAR(U64, xpl_all_reduce_info, end_time_ps),
    [6] = SCALAR(U64, xpl_all_reduce_info, byte_size),
};
static MESSAGE(all_reduce_info_message, all_reduce_info_fields, false);
static const struct xpl_codec_field all_reduce_db_fields[] = {
    [1] = VEC(REP, all_reduce_info_message, xpl_all_reduce_db, all_reduce_info, NULL),
};
static MESSAGE(all_reduce_db, all_reduce_db_fields, true);
BY_NUMBER(by_all_reduce_core, xpl_all_reduce_db, core_id)
static const struct xpl_codec_field all_reduce_entry_fields[] = {
    [1] = KEY(U32, xpl_all_reduce_db, core_id),
    [2] = FLAT_VALUE(all_reduce_db),
};
static MESSAGE(all_reduce_entry, all_reduce_entry_fields, false);

static const struct xpl_codec_field per_core_step_fields[] = {
    [1] = SCALAR(U32, xpl_per_core_step_info, step_num),
    [2] = VEC(MAP, step_info_entry, xpl_per_core_step_info, step_info_per_core, by_core),
    [3] = POINTER(op_metrics_db, xpl_per_core_step_info, hlo_metrics_db, false),
    [5] =
        VEC(MAP, replica_entry, xpl_per_core_step_info, core_id_to_replica_id_map, by_replica_core),
    [6] = VEC(MAP, all_reduce_entry, xpl_per_core_step_info, all_reduce_db_per_core,
              by_all_reduce_core),
    [7] = VEC(REP, memory_transfer, xpl_per_core_step_info, device_memory_transfers, NULL),
};
static MESSAGE(per_core_step, per_core_step_fields, true);

static const struct xpl_codec_field step_db_fields[] = {
    [1] = VEC(REP, per_core_step, xpl_step_db, step_sequence, NULL),
    [2] = SCALAR(BOOL, xpl_step_db, use_incomplete_step),
    [3] = SCALAR(U32, xpl_step_db, num_steps_dropped),
    [4] = SCALAR(BOOL, xpl_step_db, empty_intersect),
};
static MESSAGE(step_db_message, step_db_fields, true);

// ---- kernels, functions, the rest ----

#define DIM3(member)                                                                               \
    {                                                                                              \
        .kind = XPL_CODEC_DIM3, .off = offsetof(struct xpl_kernel_report, member),                 \
        .has = offsetof(struct xpl_kernel_report, n_##member)                                      \
    }
static const struct xpl_codec_field kernel_fields[] = {
    [1] = SCALAR(STR, xpl_kernel_report, name),
    [2] = SCALAR(U32, xpl_kernel_report, registers_per_thread),
    [3] = SCALAR(U32, xpl_kernel_report, static_shmem_bytes),
    [4] = SCALAR(U32, xpl_kernel_report, dynamic_shmem_bytes),
    [5] = DIM3(block_dim),
    [6] = DIM3(grid_dim),
    [7] = SCALAR(U64, xpl_kernel_report, total_duration_ns),
    [8] = SCALAR(U64, xpl_kernel_report, min_duration_ns),
    [9] = SCALAR(U64, xpl_kernel_report, max_duration_ns),
    [10] = SCALAR(BOOL, xpl_kernel_report, is_kernel_using_tensor_core),
    [11] = SCALAR(BOOL, xpl_kernel_report, is_op_tensor_core_eligible),
    [12] = SCALAR(STR, xpl_kernel_report, op_name),
    [13] = SCALAR(U32, xpl_kernel_report, occurrences),
    [14] = SCALAR(FLOAT, xpl_kernel_report, occupancy_pct),
};
static MESSAGE(kernel_report, kernel_fields, false);
static const struct xpl_codec_field kernel_stats_fields[] = {
    [1] = VEC(REP, kernel_report, xpl_opstats, kernel_reports, NULL),
};
static MESSAGE(kernel_stats, kernel_stats_fields, true);

static const struct xpl_codec_field function_metrics_fields[] = {
    [1] = SCALAR(U64, xpl_tf_function_metrics, count),
    [2] = SCALAR(U64, xpl_tf_function_metrics, self_time_ps),
};
static MESSAGE(function_metrics, function_metrics_fields, false);
BY_NUMBER(by_mode, xpl_tf_function_metrics, mode)
static const struct xpl_codec_field function_metrics_entry_fields[] = {
    [1] = KEY(I32, xpl_tf_function_metrics, mode),
    [2] = FLAT_VALUE(function_metrics),
};
static MESSAGE(function_metrics_entry, function_metrics_entry_fields, false);
static const struct xpl_codec_field function_fields[] = {
    [1] = VEC(MAP, function_metrics_entry, xpl_tf_function, metrics, by_mode),
    [2] = SCALAR(I64, xpl_tf_function, total_tracing_count),
    [3] = SCALAR(I32, xpl_tf_function, compiler),
    [4] = SCALAR(DOUBLE, xpl_tf_function, expensive_call_percent),
};
static MESSAGE(tf_function, function_fields, true);
BY_TEXT(by_function, xpl_tf_function, name)
static const struct xpl_codec_field function_entry_fields[] = {
    [1] = KEY(STR, xpl_tf_function, name),
    [2] = FLAT_VALUE(tf_function),
};
static MESSAGE(function_entry, function_entry_fields, false);
static const struct xpl_codec_field function_db_fields[] = {
    [1] = VEC(MAP, function_entry, xpl_opstats, tf_functions, by_function),
};
static MESSAGE(function_db, function_db_fields, true);

static const struct xpl_codec_field core_details_fields[] = {
    [1] = SCALAR(STR, xpl_core_details, hostname),
    [2] = SCALAR(U32, xpl_core_details, device_ordinal),
    [3] = SCALAR(U32, xpl_core_details, core_num),
    [4] = SCALAR(U32, xpl_core_details, local_chip_id),
    [5] = SCALAR(U32, xpl_core_details, global_chip_id),
    [6] = SCALAR(U32, xpl_core_details, global_core_id),
    [7] = SCALAR(BOOL, xpl_core_details, is_sparse_core),
};
static MESSAGE(core_details, core_details_fields, false);
BY_NUMBER(by_details_core, xpl_core_details, core_id)
static const struct xpl_codec_field core_details_entry_fields[] = {
    [1] = KEY(U32, xpl_core_details, core_id),
    [2] = FLAT_VALUE(core_details),
};
static MESSAGE(core_details_entry, core_details_entry_fields, false);

static const struct xpl_codec_field diagnostics_fields[] = {
    [1] = SCALAR(STRS, xpl_diagnostics, info),
    [2] = SCALAR(STRS, xpl_diagnostics, warnings),
    [3] = SCALAR(STRS, xpl_diagnostics, errors),
};
static MESSAGE(diagnostics_message, diagnostics_fields, true);

static const struct xpl_codec_field program_entry_fields[] = {
    [1] = KEY(U64, xpl_program_name, program_id),
    [2] = KEY(STR, xpl_program_name, name),
};
static MESSAGE(program_entry, program_entry_fields, false);

static const struct xpl_codec_field counters_fields[] = {
    [1] = SCALAR(DOUBLE, xpl_opstats, matrix_unit_utilization_percent),
    [2] = SCALAR(DOUBLE, xpl_opstats, hbm_utilization_percent),
};
static MESSAGE(counters, counters_fields, false);

static const struct xpl_codec_field distribution_fields[] = {
    [1] = SCALAR(DOUBLE, xpl_distribution, avg), [2] = SCALAR(DOUBLE, xpl_distribution, p50),
    [3] = SCALAR(DOUBLE, xpl_distribution, p90), [4] = SCALAR(DOUBLE, xpl_distribution, p95),
    [5] = SCALAR(DOUBLE, xpl_distribution, p99),
};
static MESSAGE(distribution, distribution_fields, false);
static const struct xpl_codec_field serving_fields[] = {
    [1] = INLINE(distribution, xpl_opstats, prefill_step_time_us),
    [2] = SCALAR(I64, xpl_opstats, num_prefill_steps),
    [3] = INLINE(distribution, xpl_opstats, decode_step_time_us),
    [4] = SCALAR(I64, xpl_opstats, num_decode_steps),
};
static MESSAGE(serving, serving_fields, false);

static const struct xpl_codec_field opstats_fields[] = {
    [1] = INLINE_IF(op_metrics_db, xpl_opstats, host_op_metrics_db),
    [2] = INLINE_IF(op_metrics_db, xpl_opstats, device_op_metrics_db),
    [3] = INLINE_IF(perf_env_message, xpl_opstats, perf_env),
    [4] = INLINE_IF(step_db_message, xpl_opstats, step_db),
    [5] = INLINE_IF(run_environment_message, xpl_opstats, run_environment),
    [6] = FLAT_IF(kernel_stats, xpl_opstats, has_kernel_stats_db),
    [8] = FLAT_IF(function_db, xpl_opstats, has_tf_function_db),
    [9] = INLINE(diagnostics_message, xpl_opstats, diagnostics),
    [10] = INLINE_IF(op_metrics_db, xpl_opstats, hlo_metrics_db_complete_steps_only),
    [11] = VEC(MAP, core_details_entry, xpl_opstats, core_id_to_details, by_details_core),
    [12] = VEC(MAP, program_entry, xpl_opstats, program_id_to_name_map, xpl_program_name_by_id),
    [13] = FLAT_IF(counters, xpl_opstats, has_performance_counter_result),
    [15] = FLAT_IF(serving, xpl_opstats, has_disaggregated_serving_latency),
};
MESSAGE(xpl_codec_opstats, opstats_fields, true);
