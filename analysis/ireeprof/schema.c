// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/schema.h"

#include <stddef.h>

#include "base/status.h"

const struct xpl_iree_chunk_type xpl_iree_chunk_types[XPL_IREE_N_CHUNK_TYPES] = {
    [XPL_IREE_DEVICES] = {.suffix = "devices", .size = sizeof(struct xpl_iree_device)},
    [XPL_IREE_QUEUES] = {.suffix = "queues", .size = sizeof(struct xpl_iree_queue)},
    [XPL_IREE_EXECUTABLES] = {.suffix = "executables", .size = sizeof(struct xpl_iree_executable)},
    [XPL_IREE_CODE_OBJECTS] =
        {.suffix = "executable-code-objects",
         .size = sizeof(struct xpl_iree_code_object),
         .tail = XPL_IREE_TAIL_BYTES,
         .lengths = {offsetof(struct xpl_iree_code_object, data_length)},
         .mismatch = "profile executable code-object data length is inconsistent with record "
                     "length"},
    [XPL_IREE_CODE_OBJECT_LOADS] = {.suffix = "executable-code-object-loads",
                                    .size = sizeof(struct xpl_iree_code_object_load)},
    [XPL_IREE_FUNCTIONS] = {.suffix = "executable-functions",
                            .old_suffix = "executable-exports",
                            .size = sizeof(struct xpl_iree_function),
                            .tail = XPL_IREE_TAIL_BYTES,
                            .lengths = {offsetof(struct xpl_iree_function, name_length)},
                            .length_scale = 1,
                            .mismatch = "executable function name length is inconsistent"},
    [XPL_IREE_COMMAND_BUFFERS] = {.suffix = "command-buffers",
                                  .size = sizeof(struct xpl_iree_command_buffer)},
    [XPL_IREE_COMMAND_OPERATIONS] = {.suffix = "command-operations",
                                     .size = sizeof(struct xpl_iree_command_operation)},
    [XPL_IREE_CLOCKS] = {.suffix = "clock-correlations",
                         .size = sizeof(struct xpl_iree_clock_correlation)},
    [XPL_IREE_DISPATCH_EVENTS] = {.suffix = "dispatch-events",
                                  .size = sizeof(struct xpl_iree_dispatch_event),
                                  .events = true},
    [XPL_IREE_QUEUE_EVENTS] = {.suffix = "queue-events",
                               .size = sizeof(struct xpl_iree_queue_event),
                               .events = true},
    [XPL_IREE_QUEUE_DEVICE_EVENTS] = {.suffix = "queue-device-events",
                                      .size = sizeof(struct xpl_iree_queue_device_event),
                                      .events = true},
    [XPL_IREE_HOST_EVENTS] = {.suffix = "host-execution-events",
                              .size = sizeof(struct xpl_iree_host_event),
                              .events = true},
    [XPL_IREE_REGION_EVENTS] = {.suffix = "command-region-events",
                                .size = sizeof(struct xpl_iree_region_event),
                                .events = true},
    [XPL_IREE_MEMORY_EVENTS] = {.suffix = "memory-events",
                                .size = sizeof(struct xpl_iree_memory_event),
                                .events = true},
    [XPL_IREE_RELATIONSHIPS] = {.suffix = "event-relationships",
                                .size = sizeof(struct xpl_iree_relationship),
                                .events = true},
    [XPL_IREE_COUNTER_SETS] = {.suffix = "counter-sets",
                               .size = sizeof(struct xpl_iree_counter_set),
                               .tail = XPL_IREE_TAIL_BYTES,
                               .lengths = {offsetof(struct xpl_iree_counter_set, name_length)},
                               .length_scale = 1,
                               .mismatch =
                                   "counter set name length is inconsistent with record length"},
    [XPL_IREE_COUNTERS] = {.suffix = "counters",
                           .size = sizeof(struct xpl_iree_counter),
                           .tail = XPL_IREE_TAIL_BYTES,
                           .lengths = {offsetof(struct xpl_iree_counter, block_name_length),
                                       offsetof(struct xpl_iree_counter, name_length),
                                       offsetof(struct xpl_iree_counter, description_length)},
                           .length_scale = 1,
                           .mismatch =
                               "counter string lengths are inconsistent with record length"},
    [XPL_IREE_COUNTER_SAMPLES] =
        {.suffix = "counter-samples",
         .size = sizeof(struct xpl_iree_counter_sample),
         .events = true,
         .tail = XPL_IREE_TAIL_BYTES,
         .lengths = {offsetof(struct xpl_iree_counter_sample, sample_value_count)},
         .length_scale = sizeof(uint64_t),
         .mismatch = "counter sample value count is inconsistent with record length"},
    [XPL_IREE_METRIC_SOURCES] =
        {.suffix = "device-metric-sources",
         .size = sizeof(struct xpl_iree_metric_source),
         .tail = XPL_IREE_TAIL_BYTES,
         .lengths = {offsetof(struct xpl_iree_metric_source, name_length)},
         .length_scale = 1,
         .mismatch = "device metric source name length is inconsistent with record length"},
    [XPL_IREE_METRIC_DESCRIPTORS] =
        {.suffix = "device-metric-descriptors",
         .size = sizeof(struct xpl_iree_metric_descriptor),
         .tail = XPL_IREE_TAIL_BYTES,
         .lengths = {offsetof(struct xpl_iree_metric_descriptor, name_length),
                     offsetof(struct xpl_iree_metric_descriptor, description_length)},
         .length_scale = 1,
         .mismatch = "device metric descriptor string lengths are inconsistent with record length"},
    [XPL_IREE_METRIC_SAMPLES] =
        {.suffix = "device-metric-samples",
         .size = sizeof(struct xpl_iree_metric_sample),
         .events = true,
         .tail = XPL_IREE_TAIL_BYTES,
         .lengths = {offsetof(struct xpl_iree_metric_sample, value_count)},
         .length_scale = sizeof(struct xpl_iree_metric_value),
         .mismatch = "device metric sample value count is inconsistent with record length"},
    [XPL_IREE_TRACES] = {.suffix = "executable-traces",
                         .size = sizeof(struct xpl_iree_trace),
                         .tail = XPL_IREE_TAIL_AFTER},
};

// Names by number, from 0; NULL: none.
static const char *const record_names[] = {NULL, "session_begin", "chunk", "session_end"};
static const char *const op_names[] = {NULL,    "barrier", "dispatch", "execute",
                                       "copy",  "fill",    "update",   "read",
                                       "write", "alloca",  "dealloca", "host_call"};
static const char *const strategy_names[] = {"none", "inline", "device_barrier", "software_defer"};
static const char *const command_names[] = {NULL,          "barrier", "dispatch",       "fill",
                                            "copy",        "update",  "profile_marker", "branch",
                                            "cond_branch", "return"};
static const char *const memory_names[] = {
    NULL,           "slab_acquire",  "slab_release",   "pool_reserve",   "pool_materialize",
    "pool_release", "pool_wait",     "queue_alloca",   "queue_dealloca", "buffer_allocate",
    "buffer_free",  "buffer_import", "buffer_unimport"};
static const char *const relationship_names[] = {
    NULL, "queue_submission_dispatch", "queue_submission_queue_device_event",
    "queue_event_host_execution_event", "queue_submission_host_execution_event"};
static const char *const endpoint_names[] = {NULL,
                                             "queue_submission",
                                             "queue_event",
                                             "dispatch_event",
                                             "command_operation",
                                             "memory_event",
                                             "artifact",
                                             "queue_device_event",
                                             "host_execution_event"};
static const char *const unit_names[] = {"none", "count", "cycles", "bytes"};
static const char *const scope_names[] = {"none", "dispatch", "command_operation",
                                          "device_time_range"};
static const char *const class_names[] = {"none", "cpu", "gpu", "npu"};
static const char *const metric_unit_names[] = {"none",
                                                "count",
                                                "hz",
                                                "bytes",
                                                "bytes_per_second",
                                                "millipercent",
                                                "millidegrees_celsius",
                                                "microwatts",
                                                "microjoules",
                                                "bitfield",
                                                "enum"};
static const char *const kind_names[] = {"none", "i64", "u64", "f64"};
static const char *const semantic_names[] = {"none",       "instant", "average",
                                             "cumulative", "delta",   "state"};
static const char *const hint_names[] = {"none",       "number",    "memory",
                                         "percentage", "frequency", "temperature",
                                         "power",      "energy",    "bandwidth"};
static const char *const trace_names[] = {"none", "amdgpu_att"};
// The first ones are those of base/status.h.
static const char *const status_names[] = {[XPL_UNAUTHENTICATED + 1] = "DEFERRED", "INCOMPATIBLE"};

static const struct {
    const char *const *names;
    uint32_t n;
} sets[XPL_IREE_N_NAMES] = {
#define SET(list)                                                                                  \
    { (list), sizeof(list) / sizeof *(list) }
    [XPL_IREE_NAMES_RECORD] = SET(record_names),
    [XPL_IREE_NAMES_OP] = SET(op_names),
    [XPL_IREE_NAMES_STRATEGY] = SET(strategy_names),
    [XPL_IREE_NAMES_COMMAND] = SET(command_names),
    [XPL_IREE_NAMES_MEMORY] = SET(memory_names),
    [XPL_IREE_NAMES_RELATIONSHIP] = SET(relationship_names),
    [XPL_IREE_NAMES_ENDPOINT] = SET(endpoint_names),
    [XPL_IREE_NAMES_COUNTER_UNIT] = SET(unit_names),
    [XPL_IREE_NAMES_SCOPE] = SET(scope_names),
    [XPL_IREE_NAMES_DEVICE_CLASS] = SET(class_names),
    [XPL_IREE_NAMES_METRIC_UNIT] = SET(metric_unit_names),
    [XPL_IREE_NAMES_METRIC_KIND] = SET(kind_names),
    [XPL_IREE_NAMES_METRIC_SEMANTIC] = SET(semantic_names),
    [XPL_IREE_NAMES_PLOT_HINT] = SET(hint_names),
    [XPL_IREE_NAMES_TRACE_FORMAT] = SET(trace_names),
    [XPL_IREE_NAMES_STATUS] = SET(status_names),
#undef SET
};

const char *xpl_iree_name(enum xpl_iree_names set, uint32_t value) {
    const uint32_t other_class = 0x7fffffff;
    if (set == XPL_IREE_NAMES_STATUS && value <= XPL_UNAUTHENTICATED)
        return xpl_status_name((xpl_status_t)value);
    if (value < sets[set].n && sets[set].names[value]) return sets[set].names[value];
    if (set == XPL_IREE_NAMES_DEVICE_CLASS && value == other_class) return "other";
    if (set >= XPL_IREE_NAMES_METRIC_UNIT && set <= XPL_IREE_NAMES_PLOT_HINT) return "";
    return set == XPL_IREE_NAMES_STATUS ? "UNKNOWN_STATUS" : "unknown";
}

uint32_t xpl_iree_number(enum xpl_iree_names set, xpl_str_t name) {
    uint32_t v = 0;
    while (v < sets[set].n &&
           (!sets[set].names[v] || !xpl_str_eq(name, xpl_str_from(sets[set].names[v]))))
        v++;
    return v;
}
