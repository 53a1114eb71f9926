// SPDX-License-Identifier: Apache-2.0
// Layout of IREE's profile bundles (*.ireeprof, format IRPF 1.6): the typed records of its chunks,
// as they lie in the file, and the names of their numbers.
//
// Everything in a file is little-endian and packed without alignment: records are copied into these
// structs, never read in place.  Members are called as in IREE's schema, sizes and offsets are
// asserted.  Ids of 0 and ordinals of UINT32_MAX mean "none".  Times end in _ns (CLOCK_MONOTONIC of
// the machine that was captured) or _tick (of a device, of unknown length; clock.h).
#ifndef XPL_ANALYSIS_IREEPROF_SCHEMA_H_
#define XPL_ANALYSIS_IREEPROF_SCHEMA_H_

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bundles are read as they lie");

#define XPL_IREE_NONE            UINT32_MAX   // an ordinal that is absent
#define XPL_IREE_FIRST_PRODUCERS (1ull << 63) // ids of metrics from here on are a producer's own

struct xpl_iree_device {
    uint32_t record_length, flags;
    uint32_t physical_device_ordinal, queue_count;
    uint8_t physical_device_uuid[16];
};
struct xpl_iree_queue {
    uint32_t record_length, physical_device_ordinal, queue_ordinal, reserved0;
    uint64_t stream_id;
};
struct xpl_iree_executable {
    uint32_t record_length, flags;
    uint64_t executable_id;
    uint32_t function_count, reserved0;
    uint64_t code_object_hash[2];
};
struct xpl_iree_code_object {
    uint32_t record_length, flags;
    uint64_t executable_id, code_object_id, data_length;
    uint64_t code_object_hash[2];
};
struct xpl_iree_code_object_load {
    uint32_t record_length, physical_device_ordinal;
    uint64_t executable_id, code_object_id;
    int64_t load_delta;
    uint64_t load_size;
};
struct xpl_iree_function {
    uint32_t record_length, flags;
    uint64_t executable_id;
    uint32_t function_ordinal, constant_count, binding_count, parameter_count;
    uint32_t workgroup_size[3];
    uint32_t name_length;
    uint64_t function_hash[2];
};
struct xpl_iree_command_buffer {
    uint32_t record_length, flags;
    uint64_t command_buffer_id, mode, command_categories, queue_affinity;
    uint32_t physical_device_ordinal, reserved0;
};
struct xpl_iree_command_operation {
    uint32_t record_length, type, flags, command_index;
    uint64_t command_buffer_id;
    uint32_t block_ordinal, block_command_ordinal;
    uint64_t executable_id;
    uint32_t function_ordinal, binding_count;
    uint32_t workgroup_count[3], workgroup_size[3];
    uint64_t source_offset, target_offset, length;
    uint32_t source_ordinal, target_ordinal, target_block_ordinal, alternate_block_ordinal;
    uint32_t reserved0, pad;
};
struct xpl_iree_clock_correlation {
    uint32_t record_length, flags, physical_device_ordinal, reserved0;
    uint64_t sample_id, device_tick, host_cpu_timestamp_ns, host_system_timestamp;
    uint64_t host_system_frequency_hz;
    int64_t host_time_begin_ns, host_time_end_ns;
};
struct xpl_iree_dispatch_event {
    uint32_t record_length, flags;
    uint64_t event_id, submission_id, command_buffer_id, executable_id;
    uint32_t command_index, function_ordinal;
    uint32_t workgroup_count[3], workgroup_size[3];
    uint64_t start_tick, end_tick;
};
struct xpl_iree_queue_event {
    uint32_t record_length, type, flags, dependency_strategy;
    uint64_t event_id;
    int64_t host_time_ns;
    uint64_t submission_id, command_buffer_id, allocation_id, stream_id;
    uint32_t physical_device_ordinal, queue_ordinal;
    uint32_t wait_count, signal_count, barrier_count, operation_count;
    uint64_t payload_length;
    int64_t ready_host_time_ns;
};
struct xpl_iree_queue_device_event {
    uint32_t record_length, type, flags, reserved0;
    uint64_t event_id, submission_id, command_buffer_id, allocation_id, stream_id, payload_length;
    uint32_t physical_device_ordinal, queue_ordinal, operation_count, reserved1;
    uint64_t start_tick, end_tick;
};
struct xpl_iree_host_event {
    uint32_t record_length, type, flags, status_code;
    uint64_t event_id, submission_id, command_buffer_id, executable_id, allocation_id, stream_id;
    uint32_t physical_device_ordinal, queue_ordinal, command_index, function_ordinal;
    uint32_t workgroup_count[3], workgroup_size[3];
    int64_t start_host_time_ns, end_host_time_ns;
    uint64_t payload_length, tile_count;
    int64_t tile_duration_sum_ns;
    uint32_t operation_count, reserved0;
};
struct xpl_iree_region_event {
    uint32_t record_length, flags;
    uint64_t event_id, submission_id, command_buffer_id, stream_id;
    uint32_t physical_device_ordinal, queue_ordinal;
    uint32_t block_sequence, region_epoch;
    int32_t region_index;
    uint32_t region_dispatch_count, region_tile_count;
    uint32_t region_width_bucket, region_lookahead_width_bucket;
    uint32_t useful_drain_count, no_work_drain_count, pad0;
    uint32_t tail_count, tail_tiles_min, tail_tiles_max, tail_tiles_buckets[8], pad1;
    int64_t tail_first_start_ns, tail_last_end_ns, tail_start_offset_sum_ns, tail_drain_sum_ns;
    int64_t first_useful_drain_start_ns, last_useful_drain_end_ns;
    int64_t start_host_time_ns, end_host_time_ns;
    int32_t next_region_index;
    uint32_t next_region_tile_count, next_region_width_bucket, next_region_lookahead_width_bucket;
    uint32_t worker_count;
    int32_t old_wake_budget, new_wake_budget, wake_delta;
    uint32_t keep_active_count, publish_keep_active_count, keep_warm_count, pad2;
};
struct xpl_iree_memory_event {
    uint32_t record_length, type, flags, result;
    uint64_t event_id;
    int64_t host_time_ns;
    uint64_t allocation_id, pool_id, backing_id, submission_id;
    uint32_t physical_device_ordinal, queue_ordinal, frontier_entry_count, reserved0;
    uint64_t memory_type, buffer_usage, offset, length, alignment;
    uint64_t pool_bytes_reserved, pool_bytes_free, pool_bytes_committed, pool_budget_limit;
    uint32_t pool_reservation_count, pool_slab_count;
};
struct xpl_iree_relationship {
    uint32_t record_length, type;
    uint64_t relationship_id;
    uint32_t source_type, target_type, physical_device_ordinal, queue_ordinal;
    uint64_t stream_id, source_id, source_secondary_id, target_id, target_secondary_id;
};
struct xpl_iree_counter_set {
    uint32_t record_length, flags;
    uint64_t counter_set_id;
    uint32_t physical_device_ordinal, counter_count, sample_value_count, name_length;
};
struct xpl_iree_counter {
    uint32_t record_length, flags, unit, physical_device_ordinal;
    uint64_t counter_set_id;
    uint32_t counter_ordinal, sample_value_offset, sample_value_count;
    uint32_t block_name_length, name_length, description_length;
};
struct xpl_iree_counter_sample {
    uint32_t record_length, flags, scope, reserved0;
    uint64_t sample_id, counter_set_id, dispatch_event_id, submission_id, command_buffer_id;
    uint64_t executable_id, stream_id, start_tick, end_tick;
    uint32_t command_index, function_ordinal, physical_device_ordinal, queue_ordinal;
    uint32_t sample_value_count, reserved1;
};
struct xpl_iree_metric_source {
    uint32_t record_length, flags;
    uint64_t source_id;
    uint32_t physical_device_ordinal, device_class, source_kind, source_revision;
    uint32_t metric_count, name_length;
};
struct xpl_iree_metric_descriptor {
    uint32_t record_length, flags;
    uint64_t source_id, metric_id;
    uint32_t unit, value_kind, semantic, plot_hint, name_length, description_length;
};
struct xpl_iree_metric_sample {
    uint32_t record_length, flags;
    uint64_t sample_id, source_id;
    int64_t host_time_begin_ns, host_time_end_ns;
    uint64_t source_timestamp, source_timestamp_frequency_hz;
    uint32_t physical_device_ordinal, value_count;
};
struct xpl_iree_metric_value { // follows a metric sample, value_count times
    uint64_t metric_id, value_bits;
    uint32_t flags, reserved0;
};
struct xpl_iree_trace { // of an executable; data_length bytes of trace follow it
    uint32_t record_length, format, flags, shader_engine;
    uint64_t trace_id, dispatch_event_id, submission_id, command_buffer_id, executable_id;
    uint64_t stream_id;
    uint32_t command_index, function_ordinal, physical_device_ordinal, queue_ordinal;
    uint64_t data_length;
};

static_assert(sizeof(struct xpl_iree_device) == 32 && sizeof(struct xpl_iree_queue) == 24, "IRPF");
static_assert(sizeof(struct xpl_iree_executable) == 40, "IRPF");
static_assert(sizeof(struct xpl_iree_code_object) == 48, "IRPF");
static_assert(sizeof(struct xpl_iree_code_object_load) == 40, "IRPF");
static_assert(sizeof(struct xpl_iree_function) == 64, "IRPF");
static_assert(sizeof(struct xpl_iree_command_buffer) == 48, "IRPF");
static_assert(sizeof(struct xpl_iree_command_operation) == 120, "IRPF");
static_assert(sizeof(struct xpl_iree_clock_correlation) == 72, "IRPF");
static_assert(sizeof(struct xpl_iree_dispatch_event) == 88, "IRPF");
static_assert(sizeof(struct xpl_iree_queue_event) == 104, "IRPF");
static_assert(sizeof(struct xpl_iree_queue_device_event) == 96, "IRPF");
static_assert(sizeof(struct xpl_iree_host_event) == 152, "IRPF");
static_assert(sizeof(struct xpl_iree_region_event) == 248, "IRPF");
static_assert(sizeof(struct xpl_iree_memory_event) == 160, "IRPF");
static_assert(sizeof(struct xpl_iree_relationship) == 72, "IRPF");
static_assert(sizeof(struct xpl_iree_counter_set) == 32, "IRPF");
static_assert(sizeof(struct xpl_iree_counter) == 48, "IRPF");
static_assert(sizeof(struct xpl_iree_counter_sample) == 112, "IRPF");
static_assert(sizeof(struct xpl_iree_metric_source) == 40, "IRPF");
static_assert(sizeof(struct xpl_iree_metric_descriptor) == 48, "IRPF");
static_assert(sizeof(struct xpl_iree_metric_sample) == 64, "IRPF");
static_assert(sizeof(struct xpl_iree_metric_value) == 24, "IRPF");
static_assert(sizeof(struct xpl_iree_trace) == 88, "IRPF");

// What a chunk holds, in the order of IREE's schema; the rows of xpl_iree_chunk_types.
enum xpl_iree_chunk {
    XPL_IREE_DEVICES,
    XPL_IREE_QUEUES,
    XPL_IREE_EXECUTABLES,
    XPL_IREE_CODE_OBJECTS,
    XPL_IREE_CODE_OBJECT_LOADS,
    XPL_IREE_FUNCTIONS,
    XPL_IREE_COMMAND_BUFFERS,
    XPL_IREE_COMMAND_OPERATIONS,
    XPL_IREE_CLOCKS,
    XPL_IREE_DISPATCH_EVENTS,
    XPL_IREE_QUEUE_EVENTS,
    XPL_IREE_QUEUE_DEVICE_EVENTS,
    XPL_IREE_HOST_EVENTS,
    XPL_IREE_REGION_EVENTS,
    XPL_IREE_MEMORY_EVENTS,
    XPL_IREE_RELATIONSHIPS,
    XPL_IREE_COUNTER_SETS,
    XPL_IREE_COUNTERS,
    XPL_IREE_COUNTER_SAMPLES,
    XPL_IREE_METRIC_SOURCES,
    XPL_IREE_METRIC_DESCRIPTORS,
    XPL_IREE_METRIC_SAMPLES,
    XPL_IREE_TRACES,
    XPL_IREE_N_CHUNK_TYPES,
    XPL_IREE_UNKNOWN_CHUNK = XPL_IREE_N_CHUNK_TYPES, // of a content type that is not in the table
    XPL_IREE_NO_CHUNK                                // the record is none
};

// How the bytes behind the fixed part of a typed record are counted.
enum xpl_iree_tail {
    XPL_IREE_TAIL_ANY,   // nothing is known of them: a newer producer's members
    XPL_IREE_TAIL_BYTES, // exactly what the length members say
    XPL_IREE_TAIL_AFTER, // they follow the record, to the end of the payload
};

struct xpl_iree_chunk_type {
    const char *suffix;     // of the content type
    const char *old_suffix; // what IREE called it before; NULL: always the same
    uint32_t size;          // of the typed record without what follows it
    enum xpl_iree_tail tail;
    uint16_t lengths[3];   // offsets of the members that count the bytes (u32) of the tail; 0: none
    uint32_t length_scale; // bytes that each of them counts; 0: data_length, one u64
    const char *mismatch;  // what IREE says when they do not agree with the record's length
    bool events;           // nearly all of a bundle, so checked only when they are read
};
extern const struct xpl_iree_chunk_type xpl_iree_chunk_types[XPL_IREE_N_CHUNK_TYPES];
#define XPL_IREE_CONTENT_TYPE XPL_STR("application/vnd.iree.hal.profile.")

// Members of enumerations and flags that code asks for.
enum {
    XPL_IREE_RECORD_BEGIN = 1,
    XPL_IREE_RECORD_CHUNK = 2,
    XPL_IREE_RECORD_END = 3,

    XPL_IREE_CHUNK_TRUNCATED = 1,
    // Of ours: bytes that should follow the typed record are not there (ireeperf/).
    XPL_IREE_CHUNK_LEFT_OUT = 1 << 30,
    XPL_IREE_DEVICE_HAS_UUID = 1,
    XPL_IREE_HAS_HASH = 1, // of executables, code objects and functions

    XPL_IREE_OP_DISPATCH = 2, // of queue and host events
    XPL_IREE_OP_EXECUTE = 3,
    XPL_IREE_OP_COPY = 4,
    XPL_IREE_OP_FILL = 5,
    XPL_IREE_OP_UPDATE = 6,
    XPL_IREE_OP_READ = 7,
    XPL_IREE_OP_WRITE = 8,
    XPL_IREE_OP_ALLOCA = 9,
    XPL_IREE_OP_DEALLOCA = 10,
    XPL_IREE_OP_HOST_CALL = 11,
    XPL_IREE_N_OPS = 12,
    XPL_IREE_N_STRATEGIES = 4,

    XPL_IREE_COMMAND_DISPATCH = 2,
    XPL_IREE_COMMAND_BLOCK_STRUCTURE = 64,

    XPL_IREE_CLOCK_DEVICE_TICK = 1,
    XPL_IREE_CLOCK_HOST_CPU = 2,
    XPL_IREE_CLOCK_HOST_BRACKET = 8,
    XPL_IREE_CLOCK_UNALIGNED = 16,

    XPL_IREE_SLAB_ACQUIRE = 1, // of memory events
    XPL_IREE_SLAB_RELEASE = 2,
    XPL_IREE_POOL_RESERVE = 3,
    XPL_IREE_POOL_MATERIALIZE = 4,
    XPL_IREE_POOL_RELEASE = 5,
    XPL_IREE_POOL_WAIT = 6,
    XPL_IREE_QUEUE_ALLOCA = 7,
    XPL_IREE_QUEUE_DEALLOCA = 8,
    XPL_IREE_BUFFER_ALLOCATE = 9,
    XPL_IREE_BUFFER_FREE = 10,
    XPL_IREE_BUFFER_IMPORT = 11,
    XPL_IREE_BUFFER_UNIMPORT = 12,
    XPL_IREE_N_MEMORY_TYPES = 13,
    XPL_IREE_MEMORY_RESERVATION = 8,
    XPL_IREE_MEMORY_POOL_STATS = 16,
    XPL_IREE_MEMORY_EXTERNAL = 32,

    XPL_IREE_END_SUBMISSION = 1, // ends of relationships
    XPL_IREE_END_QUEUE_EVENT = 2,
    XPL_IREE_END_DISPATCH = 3,
    XPL_IREE_END_QUEUE_DEVICE = 7,
    XPL_IREE_END_HOST = 8,

    XPL_IREE_SAMPLE_HAS_TICKS = 4,
    XPL_IREE_SCOPE_RANGE = 3, // of a counter sample: a stretch of a device's time
    XPL_IREE_METRIC_HAS_TIMESTAMP = 1,
    XPL_IREE_METRIC_PARTIAL = 2,
    XPL_IREE_METRIC_I64 = 1,
    XPL_IREE_METRIC_U64 = 2,
    XPL_IREE_METRIC_F64 = 3,
};

// Enumerations with names.
enum xpl_iree_names {
    XPL_IREE_NAMES_RECORD,
    XPL_IREE_NAMES_OP,
    XPL_IREE_NAMES_STRATEGY,
    XPL_IREE_NAMES_COMMAND,
    XPL_IREE_NAMES_MEMORY,
    XPL_IREE_NAMES_RELATIONSHIP,
    XPL_IREE_NAMES_ENDPOINT,
    XPL_IREE_NAMES_COUNTER_UNIT,
    XPL_IREE_NAMES_SCOPE,
    XPL_IREE_NAMES_DEVICE_CLASS,
    XPL_IREE_NAMES_METRIC_UNIT,
    XPL_IREE_NAMES_METRIC_KIND,
    XPL_IREE_NAMES_METRIC_SEMANTIC,
    XPL_IREE_NAMES_PLOT_HINT,
    XPL_IREE_NAMES_TRACE_FORMAT,
    XPL_IREE_NAMES_STATUS,
    XPL_IREE_N_NAMES
};
// The name that IREE's tools print.  A number without one is "unknown"; of a status it is
// "UNKNOWN_STATUS", and of a metric's properties "".
const char *xpl_iree_name(enum xpl_iree_names set, uint32_t value);
// The number of such a name; one without a name for other texts.
uint32_t xpl_iree_number(enum xpl_iree_names set, xpl_str_t name);

#endif
