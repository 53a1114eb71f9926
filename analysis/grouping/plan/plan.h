// SPDX-License-Identifier: Apache-2.0
// The plan of a plane: the roles of its events and the classes of its statistics for grouping,
// decided once per metadata entry.  Written once; any number of threads may read it.
#ifndef XPL_ANALYSIS_GROUPING_PLAN_PLAN_H_
#define XPL_ANALYSIS_GROUPING_PLAN_PLAN_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/plan/span.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"

struct xpl_event_watch; // groups.h

enum stat_class {
    SC_NONE,
    SC_PRODUCER_TYPE,
    SC_PRODUCER_ID,
    SC_CONSUMER_TYPE,
    SC_CONSUMER_ID,
    SC_CONSUMER_PID,
    SC_IS_ROOT,
    SC_IS_ASYNC,
    SC_ITER_NUM,
    SC_STEP_NUM,
    SC_GRAPH_TYPE,
    SC_CORRELATION,
    SC_STEP_ID,
    SC_REQUEST_ID,
    SC_QUEUE_ADDR,
    SC_DEVICE_ORDINAL,
    SC_QUEUE_ID,
    SC_RUN_ID,
    SC_CORE_TYPE,
    SC_COUNT
};
#define SC_BIT(c) (1u << (c))
enum {
    SC_PRODUCER = SC_BIT(SC_PRODUCER_TYPE) | SC_BIT(SC_PRODUCER_ID),
    SC_CONSUMER = SC_BIT(SC_CONSUMER_TYPE) | SC_BIT(SC_CONSUMER_ID),
    SC_CONTEXT = SC_BIT(SC_ITER_NUM) | SC_BIT(SC_STEP_NUM) | SC_BIT(SC_GRAPH_TYPE),
};

// The role of an event, by its metadata's name.
enum {
    ROLE_KNOWN = 1 << 0,         // has a type, so it cannot be a kernel
    ROLE_EXECUTOR = 1 << 1,      // ExecutorState::Process
    ROLE_ITERATOR = 1 << 2,      // IteratorGetNext[AsOptional]Op::DoCompute
    ROLE_EAGER = 1 << 3,         // EagerExecute
    ROLE_TRACE_CONTEXT = 1 << 4, // root of level 1 unless it says otherwise
    ROLE_ROOT_1 = 1 << 5,        // BatchingSessionRun
    ROLE_ROOT_2 = 1 << 6,        // ProcessBatch
    ROLE_TF_DATA = 1 << 7,       // InstantiatedCapturedFunction::*
    ROLE_QUEUE_IN = 1 << 8,      // EnqueueRequestLocked
    ROLE_QUEUE_OUT = 1 << 9,     // takes requests off that queue
    ROLE_LAUNCH = 1 << 10,       // DoEnqueueProgram
    ROLE_LAUNCHED = 1 << 11,     // CompleteCallbacks
    ROLE_TPU_EXECUTE = 1 << 12,  // TpuExecuteOp
    ROLE_START_REGION = 1 << 13, // ThreadpoolListener::StartRegion
    ROLE_STOP_REGION = 1 << 14,  // ThreadpoolListener::StopRegion
    ROLE_IMPLICIT = 1 << 15,     // a root of this type gives its group no name
    ROLE_MARKED = 1 << 16,       // shown to the watch; otherwise treated as an event without a role
};

// Roles whose events are linked without stats that state a link, or that cursors act on.
enum {
    ROLE_LINKED = ROLE_QUEUE_OUT | ROLE_LAUNCHED | ROLE_TPU_EXECUTE | ROLE_EAGER | ROLE_START_REGION
};

struct plan {
    const struct xpl_plane *plane;
    uint8_t *class_of;   // by position in plane->stat_md
    uint32_t *role_of;   // by position in plane->event_md
    uint8_t by_id[128];  // class by stat id, where that is below 128
    uint32_t classes;    // all that occur in the metadata
    uint32_t roles;      // likewise
    uint64_t longest_ps; // what takes longer cannot be, and encloses nothing
    uint64_t origin_ps;  // of times: not 0 where they would wrap, as of an early clock
    int32_t pid;         // of the process that wrote the plane
    bool has_pid;
    bool has_regions;                    // StartRegion and StopRegion both occur
    bool own_groups;                     // events may bring stat group_id
    bool own_step_names;                 // events may bring stat step_name
    bool own_eager;                      // events may bring stat is_eager
    bool tpu;                            // named /device:TPU:...: grouped by one line
    bool scan;                           // its lines are scanned for nodes
    bool consumes;                       // events may consume products of other lines
    bool kernels;                        // events may have correlation ids
    bool tpu_execute;                    // the space has TpuExecuteOp, which executors launch
    const struct xpl_event_watch *watch; // of this plane; NULL: none
    // By position in plane->event_md: some event of that metadata may be linked to another line, or
    // is asynchronous.  Set by scans, on several threads at once; NULL: unknown.
    _Atomic uint8_t *linked;
};

// The event that Keras' TensorBoard callback records around each batch: "Profiled batch" with the
// stat step_num (on TensorFlow), or with the number in its name (on JAX).
enum xpl_batch_name { XPL_BATCH_NONE, XPL_BATCH_PLAIN, XPL_BATCH_NUMBERED };
enum xpl_batch_name xpl_grp_batch_name(xpl_str_t name);

// Makes the plan of a plane; its contents are allocated in `arena`.  `own`: not as XProf.  Keras'
// events begin groups as a TraceContext does, and events of impossible lengths are instants.  False
// when out of memory.
bool xpl_grp_plan_init(struct plan *p, const struct xpl_plane *plane, bool own,
                       struct xpl_arena *arena);

// The time of an event as compared with others of its plane, after origin_ps.
static inline struct span plan_span(const struct plan *p, const struct xpl_line *line,
                                    uint64_t offset_ps, uint64_t duration_ps) {
    return span_of(line, offset_ps - p->origin_ps,
                   XPL_UNLIKELY(duration_ps > p->longest_ps) ? 0 : duration_ps);
}

#endif
