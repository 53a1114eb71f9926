// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/reports/export/export_fields.h"

#define HOST_DOMAIN XPL_F_CONST("host_time_domain", "iree_host_time_ns")
#define TICK_DOMAIN XPL_F_CONST("device_tick_domain", "device_tick")
#define QUEUE_OF(T)                                                                                \
    XPL_F(U32, T, physical_device_ordinal), XPL_F(U32, T, queue_ordinal), XPL_F(U64, T, stream_id)

static const struct xpl_iree_field device[] = {
    XPL_F(U32, device, physical_device_ordinal), XPL_F(U32, device, flags),
    XPL_F(U32, device, queue_count),
    XPL_F_BIT(device, "physical_device_uuid_present", XPL_IREE_DEVICE_HAS_UUID)};
static const struct xpl_iree_field queue[] = {QUEUE_OF(queue)};
static const struct xpl_iree_field executable[] = {
    XPL_F(U64, executable, executable_id), XPL_F(U32, executable, flags),
    XPL_F(U32, executable, function_count),
    XPL_F_BIT(executable, "code_object_hash_present", XPL_IREE_HAS_HASH)};
static const struct xpl_iree_field function[] = {
    XPL_F(U64, function, executable_id),
    XPL_F(U32, function, function_ordinal),
    XPL_F(U32, function, flags),
    XPL_F(U32, function, constant_count), // behind the name
    XPL_F(U32, function, binding_count),
    XPL_F(U32, function, parameter_count),
    XPL_F(3U32, function, workgroup_size),
    XPL_F_BIT(function, "function_hash_present", XPL_IREE_HAS_HASH)};
static const struct xpl_iree_field command_buffer[] = {
    XPL_F(U64, command_buffer, command_buffer_id),
    XPL_F(U32, command_buffer, flags),
    XPL_F(U32, command_buffer, physical_device_ordinal),
    XPL_F(U64, command_buffer, mode),
    XPL_F(U64, command_buffer, command_categories),
    XPL_F(U64, command_buffer, queue_affinity)};
static const struct xpl_iree_field command_operation[] = {
    XPL_F(U64, command_operation, command_buffer_id),
    XPL_F(U32, command_operation, command_index),
    XPL_F_NAME(command_operation, type, "op", COMMAND),
    XPL_F(U32, command_operation, flags), // behind the key
    XPL_F_BIT(command_operation, "block_structure", XPL_IREE_COMMAND_BLOCK_STRUCTURE),
    XPL_F(U32, command_operation, block_ordinal),
    XPL_F(U32, command_operation, block_command_ordinal),
    XPL_F(U64, command_operation, executable_id),
    XPL_F(U32, command_operation, function_ordinal),
    XPL_F(U32, command_operation, binding_count),
    XPL_F(3U32, command_operation, workgroup_count),
    XPL_F(3U32, command_operation, workgroup_size),
    XPL_F(U32, command_operation, source_ordinal),
    XPL_F(U32, command_operation, target_ordinal),
    XPL_F(U64, command_operation, source_offset),
    XPL_F(U64, command_operation, target_offset),
    XPL_F(U64, command_operation, length),
    XPL_F(U32, command_operation, target_block_ordinal),
    XPL_F(U32, command_operation, alternate_block_ordinal)};
static const struct xpl_iree_field clock_correlation[] = {
    XPL_F(U64, clock_correlation, sample_id),
    XPL_F(U32, clock_correlation, flags),
    XPL_F(U32, clock_correlation, physical_device_ordinal),
    TICK_DOMAIN,
    XPL_F(U64, clock_correlation, device_tick),
    XPL_F_CONST("host_cpu_timestamp_domain", "driver_host_cpu_timestamp_ns"),
    XPL_F(U64, clock_correlation, host_cpu_timestamp_ns),
    XPL_F_CONST("host_system_timestamp_domain", "driver_host_system_timestamp"),
    XPL_F(U64, clock_correlation, host_system_timestamp),
    XPL_F(U64, clock_correlation, host_system_frequency_hz),
    HOST_DOMAIN,
    XPL_F(I64, clock_correlation, host_time_begin_ns),
    XPL_F(I64, clock_correlation, host_time_end_ns)};
static const struct xpl_iree_field dispatch_event[] = {
    XPL_F(U64, dispatch_event, event_id),
    XPL_F(U64, dispatch_event, submission_id),
    XPL_F(U64, dispatch_event, command_buffer_id),
    XPL_F(U32, dispatch_event, command_index),
    XPL_F(U64, dispatch_event, executable_id),
    XPL_F(U32, dispatch_event, function_ordinal),
    XPL_F(U32, dispatch_event, flags), // behind the key
    XPL_F(3U32, dispatch_event, workgroup_count),
    XPL_F(3U32, dispatch_event, workgroup_size),
    TICK_DOMAIN,
    XPL_F(U64, dispatch_event, start_tick),
    XPL_F(U64, dispatch_event, end_tick)};
static const struct xpl_iree_field queue_event[] = {
    XPL_F(U64, queue_event, event_id),
    XPL_F_NAME(queue_event, type, "op", OP),
    XPL_F_AS(U32, queue_event, type, "type_value"),
    XPL_F(U32, queue_event, flags),
    XPL_F_NAME(queue_event, dependency_strategy, "dependency_strategy", STRATEGY),
    XPL_F(U64, queue_event, submission_id),
    XPL_F(U64, queue_event, command_buffer_id),
    XPL_F(U64, queue_event, allocation_id),
    QUEUE_OF(queue_event),
    XPL_F(I64, queue_event, host_time_ns),
    XPL_F(I64, queue_event, ready_host_time_ns),
    HOST_DOMAIN,
    XPL_F(U32, queue_event, wait_count),
    XPL_F(U32, queue_event, signal_count),
    XPL_F(U32, queue_event, barrier_count),
    XPL_F(U32, queue_event, operation_count),
    XPL_F(U64, queue_event, payload_length)};
static const struct xpl_iree_field queue_device_event[] = {
    QUEUE_OF(queue_device_event),
    XPL_F(U64, queue_device_event, event_id),
    XPL_F(U64, queue_device_event, submission_id),
    XPL_F(U64, queue_device_event, command_buffer_id),
    XPL_F(U64, queue_device_event, allocation_id),
    XPL_F_NAME(queue_device_event, type, "op", OP),
    XPL_F_AS(U32, queue_device_event, type, "type_value"),
    XPL_F(U32, queue_device_event, flags),
    XPL_F(U64, queue_device_event, payload_length),
    XPL_F(U32, queue_device_event, operation_count),
    TICK_DOMAIN,
    XPL_F(U64, queue_device_event, start_tick),
    XPL_F(U64, queue_device_event, end_tick)};
static const struct xpl_iree_field host_event[] = {
    QUEUE_OF(host_event),
    XPL_F(U64, host_event, event_id),
    XPL_F(U64, host_event, submission_id),
    XPL_F(U64, host_event, command_buffer_id),
    XPL_F(U32, host_event, command_index),
    XPL_F(U64, host_event, executable_id),
    XPL_F(U32, host_event, function_ordinal),
    XPL_F(U64, host_event, allocation_id),
    XPL_F_NAME(host_event, type, "op", OP),
    XPL_F_AS(U32, host_event, type, "type_value"), // behind the key
    XPL_F(U32, host_event, flags),
    XPL_F(U32, host_event, status_code),
    XPL_F(3U32, host_event, workgroup_count),
    XPL_F(3U32, host_event, workgroup_size),
    HOST_DOMAIN,
    XPL_F(I64, host_event, start_host_time_ns),
    XPL_F(I64, host_event, end_host_time_ns)};
static const struct xpl_iree_field region_event[] = {
    QUEUE_OF(region_event),
    XPL_F(U64, region_event, event_id),
    XPL_F(U64, region_event, submission_id),
    XPL_F(U64, region_event, command_buffer_id),
    XPL_F(U32, region_event, block_sequence),
    XPL_F(U32, region_event, region_epoch),
    XPL_F(I32, region_event, region_index),
    XPL_F(I32, region_event, next_region_index),
    XPL_F(U32, region_event, flags),
    HOST_DOMAIN,
    XPL_F(I64, region_event, start_host_time_ns),
    XPL_F(I64, region_event, end_host_time_ns),
    XPL_F(U32, region_event, region_dispatch_count), // behind the duration
    XPL_F(U32, region_event, region_tile_count),
    XPL_F(U32, region_event, region_width_bucket),
    XPL_F(U32, region_event, region_lookahead_width_bucket),
    XPL_F(U32, region_event, next_region_tile_count),
    XPL_F(U32, region_event, next_region_width_bucket),
    XPL_F(U32, region_event, next_region_lookahead_width_bucket),
    XPL_F(U32, region_event, worker_count),
    XPL_F(I32, region_event, old_wake_budget),
    XPL_F(I32, region_event, new_wake_budget),
    XPL_F(I32, region_event, wake_delta),
    XPL_F(U32, region_event, useful_drain_count),
    XPL_F(U32, region_event, no_work_drain_count),
    XPL_F_AS(I64, region_event, first_useful_drain_start_ns,
             "first_useful_drain_start_host_time_ns"),
    XPL_F_AS(I64, region_event, last_useful_drain_end_ns, "last_useful_drain_end_host_time_ns"),
    {.name = "tail_no_work", .kind = XPL_IREE_OBJECT},
    XPL_F_AS(U32, region_event, tail_count, "count"),
    {.name = "remaining_tiles", .kind = XPL_IREE_OBJECT},
    XPL_F_AS(U32, region_event, tail_tiles_min, "min"),
    XPL_F_AS(U32, region_event, tail_tiles_max, "max"),
    XPL_F_AS(8U32, region_event, tail_tiles_buckets, "bucket_counts"),
    {.kind = XPL_IREE_END},
    XPL_F_AS(I64, region_event, tail_first_start_ns, "first_start_host_time_ns"),
    XPL_F_AS(I64, region_event, tail_last_end_ns, "last_end_host_time_ns"),
    {.name = "time_sums", .kind = XPL_IREE_OBJECT},
    XPL_F_AS(I64, region_event, tail_start_offset_sum_ns, "start_offset_ns"),
    XPL_F_AS(I64, region_event, tail_drain_sum_ns, "drain_duration_ns"),
    {.kind = XPL_IREE_END},
    {.kind = XPL_IREE_END},
    XPL_F_AS(U32, region_event, keep_active_count, "retention_keep_active_count"),
    XPL_F_AS(U32, region_event, publish_keep_active_count, "retention_publish_keep_active_count"),
    XPL_F_AS(U32, region_event, keep_warm_count, "retention_keep_warm_count")};
static const struct xpl_iree_field relationship[] = {
    XPL_F(U64, relationship, relationship_id),
    XPL_F_NAME(relationship, type, "kind", RELATIONSHIP),
    XPL_F_AS(U32, relationship, type, "kind_value"),
    XPL_F_NAME(relationship, source_type, "source_type", ENDPOINT),
    XPL_F_AS(U32, relationship, source_type, "source_type_value"),
    XPL_F_NAME(relationship, target_type, "target_type", ENDPOINT),
    XPL_F_AS(U32, relationship, target_type, "target_type_value"),
    QUEUE_OF(relationship),
    XPL_F(U64, relationship, source_id),
    XPL_F(U64, relationship, source_secondary_id),
    XPL_F(U64, relationship, target_id),
    XPL_F(U64, relationship, target_secondary_id)};
static const struct xpl_iree_field counter_set[] = {
    XPL_F(U64, counter_set, counter_set_id), XPL_F(U32, counter_set, physical_device_ordinal),
    XPL_F(U32, counter_set, flags), XPL_F(U32, counter_set, counter_count),
    XPL_F(U32, counter_set, sample_value_count)};
static const struct xpl_iree_field counter[] = {XPL_F(U64, counter, counter_set_id),
                                                XPL_F(U32, counter, counter_ordinal),
                                                XPL_F(U32, counter, physical_device_ordinal),
                                                XPL_F(U32, counter, flags),
                                                XPL_F(U32, counter, unit),
                                                XPL_F(U32, counter, sample_value_offset),
                                                XPL_F(U32, counter, sample_value_count)};
static const struct xpl_iree_field counter_sample[] = {
    XPL_F(U64, counter_sample, sample_id),
    XPL_F(U64, counter_sample, counter_set_id),
    XPL_F_NAME(counter_sample, scope, "scope", SCOPE),
    XPL_F_AS(U32, counter_sample, scope, "scope_value"),
    XPL_F(U64, counter_sample, dispatch_event_id),
    XPL_F(U64, counter_sample, submission_id),
    XPL_F(U64, counter_sample, command_buffer_id),
    XPL_F(U32, counter_sample, command_index),
    XPL_F(U64, counter_sample, executable_id),
    XPL_F(U32, counter_sample, function_ordinal),
    QUEUE_OF(counter_sample),
    XPL_F(U32, counter_sample, flags),
    XPL_F_BIT(counter_sample, "device_tick_range_present", XPL_IREE_SAMPLE_HAS_TICKS),
    TICK_DOMAIN,
    XPL_F(U64, counter_sample, start_tick),
    XPL_F(U64, counter_sample, end_tick)};
static const struct xpl_iree_field metric_source[] = {
    XPL_F(U64, metric_source, source_id),
    XPL_F(U32, metric_source, physical_device_ordinal),
    XPL_F_NAME(metric_source, device_class, "device_class", DEVICE_CLASS),
    XPL_F_AS(U32, metric_source, device_class, "device_class_value"),
    XPL_F(U32, metric_source, flags),
    XPL_F(U32, metric_source, source_kind),
    XPL_F(U32, metric_source, source_revision),
    XPL_F(U32, metric_source, metric_count)};
static const struct xpl_iree_field metric_descriptor[] = {
    XPL_F(U64, metric_descriptor, source_id),
    XPL_F(U64, metric_descriptor, metric_id),
    XPL_F(U32, metric_descriptor, flags), // behind whose metric it is
    XPL_F_NAME(metric_descriptor, unit, "unit", METRIC_UNIT),
    XPL_F_AS(U32, metric_descriptor, unit, "unit_value"),
    XPL_F_NAME(metric_descriptor, value_kind, "value_kind", METRIC_KIND),
    XPL_F_AS(U32, metric_descriptor, value_kind, "value_kind_value"),
    XPL_F_NAME(metric_descriptor, semantic, "semantic", METRIC_SEMANTIC),
    XPL_F_AS(U32, metric_descriptor, semantic, "semantic_value"),
    XPL_F_NAME(metric_descriptor, plot_hint, "plot_hint", PLOT_HINT),
    XPL_F_AS(U32, metric_descriptor, plot_hint, "plot_hint_value")};
static const struct xpl_iree_field metric_sample[] = {
    XPL_F(U64, metric_sample, sample_id),
    XPL_F(U64, metric_sample, source_id),
    XPL_F(U32, metric_sample, flags),
    XPL_F(U32, metric_sample, physical_device_ordinal),
    HOST_DOMAIN,
    XPL_F(I64, metric_sample, host_time_begin_ns),
    XPL_F(I64, metric_sample, host_time_end_ns),
    XPL_F_BIT(metric_sample, "source_timestamp_present",
              XPL_IREE_METRIC_HAS_TIMESTAMP), // behind the uncertainty
    XPL_F(U64, metric_sample, source_timestamp),
    XPL_F(U64, metric_sample, source_timestamp_frequency_hz)};
static const struct xpl_iree_field trace[] = {XPL_F(U64, trace, trace_id),
                                              XPL_F_NAME(trace, format, "format", TRACE_FORMAT),
                                              XPL_F_AS(U32, trace, format, "format_value"),
                                              XPL_F(U32, trace, flags),
                                              XPL_F(U32, trace, shader_engine),
                                              XPL_F(U64, trace, dispatch_event_id),
                                              XPL_F(U64, trace, submission_id),
                                              XPL_F(U64, trace, command_buffer_id),
                                              XPL_F(U32, trace, command_index),
                                              XPL_F(U64, trace, executable_id),
                                              XPL_F(U32, trace, function_ordinal),
                                              QUEUE_OF(trace),
                                              XPL_F(U32, trace, record_length),
                                              XPL_F(U64, trace, data_length)};

#define ROW(type, list, at)                                                                        \
    { .record_type = (type), .fields = (list), .n = sizeof(list) / sizeof *(list), .split = (at) }
const struct xpl_iree_export_row xpl_iree_export_rows[XPL_IREE_N_CHUNK_TYPES] = {
    [XPL_IREE_DEVICES] = ROW("device", device, 0),
    [XPL_IREE_QUEUES] = ROW("queue", queue, 0),
    [XPL_IREE_EXECUTABLES] = ROW("executable", executable, 0),
    [XPL_IREE_FUNCTIONS] = ROW("executable_function", function, 3),
    [XPL_IREE_COMMAND_BUFFERS] = ROW("command_buffer", command_buffer, 0),
    [XPL_IREE_COMMAND_OPERATIONS] = ROW("command_operation", command_operation, 3),
    [XPL_IREE_CLOCKS] = ROW("clock_correlation", clock_correlation, 0),
    [XPL_IREE_DISPATCH_EVENTS] = ROW("dispatch_event", dispatch_event, 6),
    [XPL_IREE_QUEUE_EVENTS] = ROW("queue_event", queue_event, 0),
    [XPL_IREE_QUEUE_DEVICE_EVENTS] = ROW("queue_device_event", queue_device_event, 0),
    [XPL_IREE_HOST_EVENTS] = ROW("host_execution_event", host_event, 11),
    [XPL_IREE_REGION_EVENTS] = ROW("command_region_event", region_event, 14),
    [XPL_IREE_MEMORY_EVENTS] = {.record_type = "memory_event"}, // as in the report memory
    [XPL_IREE_RELATIONSHIPS] = ROW("event_relationship", relationship, 0),
    [XPL_IREE_COUNTER_SETS] = ROW("counter_set", counter_set, 0),
    [XPL_IREE_COUNTERS] = ROW("counter", counter, 0),
    [XPL_IREE_COUNTER_SAMPLES] = ROW("counter_sample", counter_sample, 0),
    [XPL_IREE_METRIC_SOURCES] = ROW("device_metric_source", metric_source, 0),
    [XPL_IREE_METRIC_DESCRIPTORS] = ROW("device_metric_descriptor", metric_descriptor, 2),
    [XPL_IREE_METRIC_SAMPLES] = ROW("device_metric_sample", metric_sample, 7),
    [XPL_IREE_TRACES] = ROW("executable_trace", trace, 0),
};
