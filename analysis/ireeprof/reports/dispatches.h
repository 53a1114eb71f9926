// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/reports/: dispatches of devices and of hosts, summed up by function,
// by execution of a command buffer, and by submission.  Of the reports dispatch, executable,
// command, queue and explain.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_DISPATCHES_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_DISPATCHES_H_

#include "analysis/ireeprof/model.h"

// A dispatch, of a device (times are ticks) or of a host (nanoseconds).
struct xpl_iree_dispatch {
    bool host, valid; // valid: the times are a span
    uint32_t physical_device_ordinal, queue_ordinal, command_index, function_ordinal, flags;
    uint32_t status_code; // of a host's
    uint64_t stream_id, event_id, submission_id, command_buffer_id, executable_id;
    uint32_t workgroup_count[3], workgroup_size[3];
    uint64_t start, end, duration; // duration: 0 when not valid
    int64_t start_ns, end_ns;      // of a host's, also when they are no span
    uint64_t tile_count;
    int64_t tile_duration_sum_ns;
};
// Reads the next one of a chunk of dispatches or host events; other host events are passed over.
bool xpl_iree_next_dispatch(const struct xpl_iree_record *r, struct xpl_iree_items *items,
                            struct xpl_iree_dispatch *ret);

// What --id is compared with.
enum xpl_iree_subject {
    XPL_IREE_BY_EVENT,
    XPL_IREE_BY_EXECUTABLE,
    XPL_IREE_BY_COMMAND_BUFFER,
    XPL_IREE_BY_SUBMISSION,
};

struct xpl_iree_spans {
    uint64_t count, valid, earliest, latest, total; // earliest: UINT64_MAX before the first
    uint64_t tile_count;
    int64_t tile_duration_sum_ns;
};
struct xpl_iree_group_key {
    uint64_t executable_id;
    uint32_t physical_device_ordinal, function_ordinal;
};
struct xpl_iree_group {
    struct xpl_iree_group_key key;
    struct xpl_iree_spans spans;
    uint64_t min, max; // durations
    double mean, m2;   // of the durations, and the sum of squares of their differences from it
    uint32_t last_workgroup_count[3], last_workgroup_size[3];
};
struct xpl_iree_execution_key { // of a command buffer; of a submission with no command buffer
    uint64_t command_buffer_id, submission_id, stream_id;
    uint32_t physical_device_ordinal, queue_ordinal;
};
struct xpl_iree_execution {
    struct xpl_iree_execution_key key;
    struct xpl_iree_spans spans;
};

enum { XPL_IREE_TOP = 8 };
// One kind of dispatches.
struct xpl_iree_side {
    uint64_t total, matched, valid;
    struct xpl_iree_table groups;               // struct xpl_iree_group
    struct xpl_iree_table executions;           // struct xpl_iree_execution, of command buffers
    struct xpl_iree_dispatch top[XPL_IREE_TOP]; // the longest ones, unordered
    size_t n_top, shortest;                     // shortest: of those
};
typedef void xpl_iree_match_fn(void *ctx, const struct xpl_iree_dispatch *d, xpl_str_t key);

// What is summed up, and needs memory.
enum {
    XPL_IREE_KEEPS_GROUPS = 1,
    XPL_IREE_KEEPS_EXECUTIONS = 2,
    XPL_IREE_KEEPS_SUBMISSIONS = 4,
};

// A function that dispatches were of lately.
struct xpl_iree_lately {
    struct xpl_iree_group_key key;
    bool known, matches; // known: the function has a name; it matches the filter
    xpl_str_t name;
    uint32_t group_plus_1[2]; // of devices, of hosts
};
enum { XPL_IREE_LATELY = 64 };

struct xpl_iree_dispatches {
    struct xpl_iree_run *run;
    struct xpl_iree_model *model;
    enum xpl_iree_subject subject;
    unsigned keep;               // XPL_IREE_KEEPS_*
    xpl_iree_match_fn *on_match; // may be NULL
    void *ctx;
    struct xpl_iree_side device, host;
    struct xpl_iree_table submissions; // struct xpl_iree_execution, of devices
    struct xpl_iree_lately lately[XPL_IREE_LATELY];
    struct xpl_iree_queue_key last_queue; // that is described
    bool any_queue;
};
void xpl_iree_dispatches_init(struct xpl_iree_dispatches *d, struct xpl_iree_run *run,
                              struct xpl_iree_model *model, enum xpl_iree_subject subject);
void xpl_iree_dispatches_fini(struct xpl_iree_dispatches *d);
// Adds the dispatches of a record.  RESOURCE_EXHAUSTED on OOM.
xpl_status_t xpl_iree_dispatches_add(struct xpl_iree_dispatches *d, const struct xpl_iree_record *r,
                                     struct xpl_error *err) XPL_NODISCARD;

double xpl_iree_group_stddev(const struct xpl_iree_group *g);
// From the first start to the last end; 0 without a valid span.
static inline uint64_t xpl_iree_spans_length(const struct xpl_iree_spans *s) {
    return s->valid && s->latest >= s->earliest ? s->latest - s->earliest : 0;
}

#endif
