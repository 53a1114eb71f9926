// SPDX-License-Identifier: Apache-2.0
// Metadata of a bundle, by its ids: queues, executables and their functions, command buffers,
// clocks of devices, metrics.
//
// It may stand behind the events that use it, so it is collected in a pass of its own.  Names are
// views of the bundle's bytes.
//
// Ids may begin anew with each session.  In IREE's tools, and in the reports that equal theirs, the
// first description of an id counts, whichever session it is of.  All others tell sessions apart:
// xpl_iree_model_by_session before the first record, and xpl_iree_model_enter before lookups, which
// are then for that session.  See sessions.h for the description that counts.
#ifndef XPL_ANALYSIS_IREEPROF_MODEL_H_
#define XPL_ANALYSIS_IREEPROF_MODEL_H_

#include "analysis/ireeprof/clock.h"
#include "analysis/ireeprof/reader.h"
#include "analysis/ireeprof/run.h"
#include "analysis/ireeprof/sessions.h"
#include "analysis/ireeprof/table.h"

struct xpl_iree_queue_key {
    uint64_t stream_id;
    uint32_t physical_device_ordinal, queue_ordinal;
};
// `session` is that of the description; 0 where sessions are not told apart.
struct xpl_iree_function_key {
    uint64_t executable_id;
    uint32_t function_ordinal, session;
};
struct xpl_iree_metric_key {
    uint64_t source_id, metric_id, session;
};
struct xpl_iree_buffer_key {
    uint64_t command_buffer_id, session;
};
struct xpl_iree_device_key {
    uint32_t physical_device_ordinal, session;
};

struct xpl_iree_executable_row {
    uint64_t executable_id; // the key
    struct xpl_iree_executable record;
    bool only_named;                    // by a function, so far; not described itself
    uint32_t first_plus_1, last_plus_1; // its functions in `functions`; 0: none
};
struct xpl_iree_function_row {
    struct xpl_iree_function_key key;
    struct xpl_iree_function record;
    xpl_str_t name;
    bool old_name;        // written as an "export", which IREE's tools skip
    uint32_t next_plus_1; // of the same executable
};
struct xpl_iree_buffer_row {
    struct xpl_iree_buffer_key key;
    struct xpl_iree_command_buffer record;
};
struct xpl_iree_device_row {
    struct xpl_iree_device_key key;
    struct xpl_iree_clock clock;
};
struct xpl_iree_uuid_row { // of a device, where sessions are told apart
    struct xpl_iree_device_key key;
    uint64_t has_uuid;
    uint8_t uuid[16]; // zeros without one
};
struct xpl_iree_metric_row {
    struct xpl_iree_metric_key key;
    struct xpl_iree_metric_descriptor record;
    xpl_str_t name, description;
};

struct xpl_iree_model {
    struct xpl_iree_table queues, executables, functions, buffers, devices, metrics, uuids;
    uint64_t n_operations; // command operations, of known command buffers
    bool by_session;
    uint32_t session; // that descriptions are of, and lookups for
    struct xpl_iree_sessions sessions;
    struct xpl_iree_scopes scopes;
};

// Types of chunks that are added.
#define XPL_IREE_MODEL_CHUNKS                                                                      \
    (1u << XPL_IREE_QUEUES | 1u << XPL_IREE_EXECUTABLES | 1u << XPL_IREE_FUNCTIONS |               \
     1u << XPL_IREE_COMMAND_BUFFERS | 1u << XPL_IREE_COMMAND_OPERATIONS | 1u << XPL_IREE_CLOCKS |  \
     1u << XPL_IREE_METRIC_DESCRIPTORS)

void xpl_iree_model_init(struct xpl_iree_model *m);
void xpl_iree_model_fini(struct xpl_iree_model *m);
// Tells sessions apart, where the bundle has several.
void xpl_iree_model_by_session(struct xpl_iree_model *m, const struct xpl_iree_bundle *bundle);
// A pass over the records begins: xpl_iree_model_add follows its sessions, or, once all has been
// added, xpl_iree_model_follow for every record.
void xpl_iree_model_pass(struct xpl_iree_model *m);
xpl_status_t xpl_iree_model_follow(struct xpl_iree_model *m, const struct xpl_iree_record *r,
                                   struct xpl_error *err) XPL_NODISCARD;
// Lookups are from now on for the session of a typed record of `r`.
static inline void xpl_iree_model_enter(struct xpl_iree_model *m, const struct xpl_iree_record *r,
                                        uint32_t device) {
    if (m->by_session) m->session = xpl_iree_sessions_of(&m->sessions, r, device);
}
// The session whose description of an id counts, and its addition; 0 and true where sessions are
// not told apart.
uint32_t xpl_iree_model_scope(const struct xpl_iree_model *m, enum xpl_iree_scope_kind kind,
                              uint64_t a, uint64_t b);
bool xpl_iree_model_describe(struct xpl_iree_model *m, enum xpl_iree_scope_kind kind, uint64_t a,
                             uint64_t b) XPL_NODISCARD;

// Adds what a record holds; other records are passed over.  RESOURCE_EXHAUSTED on OOM.
xpl_status_t xpl_iree_model_add(struct xpl_iree_model *m, struct xpl_iree_run *run,
                                const struct xpl_iree_record *r, struct xpl_error *err)
    XPL_NODISCARD;
// The same for typed records of it that are read in a way of the caller's.
xpl_status_t xpl_iree_model_add_items(struct xpl_iree_model *m, struct xpl_iree_run *run,
                                      const struct xpl_iree_record *r, struct xpl_iree_items items,
                                      struct xpl_error *err) XPL_NODISCARD;
// Adds all records of the bundle.
xpl_status_t xpl_iree_model_load(struct xpl_iree_model *m, struct xpl_iree_run *run,
                                 struct xpl_error *err) XPL_NODISCARD;

// The device's row, added when it is new.  NULL on OOM.
struct xpl_iree_device_row *xpl_iree_model_device(struct xpl_iree_model *m, uint32_t device);
// The session whose clock correlations count, as that of a description; but another device's do
// not, which has another UUID: false.
bool xpl_iree_model_clock_session(const struct xpl_iree_model *m, uint32_t device, uint32_t *ret);
// NULL without clock correlations.
const struct xpl_iree_clock *xpl_iree_model_clock(const struct xpl_iree_model *m, uint32_t device);
struct xpl_iree_fit xpl_iree_model_fit(const struct xpl_iree_model *m, uint32_t device);
bool xpl_iree_model_has_queue(const struct xpl_iree_model *m, uint32_t device, uint32_t queue,
                              uint64_t stream);
bool xpl_iree_model_has_buffer(const struct xpl_iree_model *m, uint64_t id);
const struct xpl_iree_function_row *xpl_iree_model_function(const struct xpl_iree_model *m,
                                                            uint64_t executable, uint32_t ordinal);
const struct xpl_iree_metric_row *xpl_iree_model_metric(const struct xpl_iree_model *m,
                                                        uint64_t source, uint64_t metric);

// What a function is called: its name, or, where it has none or is not described, its numbers,
// which are then in `text`.
struct xpl_iree_key_text {
    char text[80];
};
xpl_str_t xpl_iree_key(const struct xpl_iree_function_row *f, uint32_t device,
                       struct xpl_iree_function_key key, struct xpl_iree_key_text *text);
// The same for a dispatch of `run`, counting what is missing.
xpl_str_t xpl_iree_dispatch_key(const struct xpl_iree_model *m, struct xpl_iree_run *run,
                                uint32_t device, struct xpl_iree_function_key key,
                                struct xpl_iree_key_text *text);
// What a command operation is called: the function of a dispatch, else what it does.
xpl_str_t xpl_iree_operation_key(const struct xpl_iree_model *m, struct xpl_iree_run *run,
                                 const struct xpl_iree_command_operation *op,
                                 struct xpl_iree_key_text *text);

#endif
