// SPDX-License-Identifier: Apache-2.0
// The events of a host that say what a model server does, by name.
#ifndef XPL_ANALYSIS_INFERENCE_KINDS_H_
#define XPL_ANALYSIS_INFERENCE_KINDS_H_

#include "analysis/xplane/schema.h"

enum xpl_infer_kind {
    // Requests.
    XPL_INFER_BATCHING_RUN,
    XPL_INFER_TFRT_RUN,
    XPL_INFER_SERVING_RUN,
    XPL_INFER_SESSION_RUN,
    XPL_INFER_RUN_GRAPH,
    XPL_INFER_ROOT, // declared by the program itself
    // Batches.
    XPL_INFER_SCHEDULE_SPLIT,
    XPL_INFER_SCHEDULE,
    XPL_INFER_SCHEDULE_EAGER,
    XPL_INFER_SCHEDULE_ASBS,
    XPL_INFER_BATCH,
    XPL_INFER_ORBAX_BATCH,
    XPL_INFER_CONCAT,
    XPL_INFER_ORBAX_CONCAT,
    XPL_INFER_MERGE,
    XPL_INFER_BRAIN_RUN,
    // Transfers.
    XPL_INFER_READ_HBM,
    XPL_INFER_D2H,
    XPL_INFER_WRITE_HBM,
    XPL_INFER_H2D,
    XPL_INFER_PREPROCESSED_H2D,
    XPL_INFER_TO_ISSUE,
    XPL_INFER_TO_DONE,
    XPL_INFER_FROM_ISSUE,
    XPL_INFER_FROM_DONE,
    // The way to a TPU and back.
    XPL_INFER_EXECUTE_LOCAL,
    XPL_INFER_EXECUTE_REMOTE,
    XPL_INFER_EXECUTE_INIT,
    XPL_INFER_EXECUTE,
    XPL_INFER_ENQUEUE,
    XPL_INFER_ENQUEUE_MORE,
    XPL_INFER_CALLBACKS,
    // Tensors.
    XPL_INFER_LINEARIZE,
    XPL_INFER_DELINEARIZE,
    XPL_INFER_FAST_PATH,
    XPL_INFER_KINDS
};

// KINDS for events that are of none of them, or are so by their statistics (ROOT).
enum xpl_infer_kind xpl_infer_kind_of(enum xpl_event_type type);
// The type of an event of that kind; UNKNOWN for those that are so by their statistics.
enum xpl_event_type xpl_infer_type_of(enum xpl_infer_kind kind);

// Whether a name is that of a request which counts when its event is a root of level 1.
bool xpl_infer_is_server_request(xpl_str_t name);

#endif
