// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/timeline/.
#ifndef XPL_ANALYSIS_IREEPROF_TIMELINE_IMPL_H_
#define XPL_ANALYSIS_IREEPROF_TIMELINE_IMPL_H_

#include "analysis/ireeprof/reports/export/export.h"
#include "analysis/perfetto/packet.h"
#include "base/arena.h"

// An array that grows by half.
struct xpl_iree_list {
    void *v;
    size_t n, cap, size; // size: of an element
};
void *xpl_iree_list_push(struct xpl_iree_list *l); // zeroed; NULL on OOM

// ---- tracks ----

enum xpl_iree_track_kind {
    XPL_IREE_TRACK_ROOT,
    XPL_IREE_TRACK_DIAGNOSTICS,
    XPL_IREE_TRACK_DEVICE,
    XPL_IREE_TRACK_QUEUE,
    XPL_IREE_TRACK_QUEUE_EVENTS,
    XPL_IREE_TRACK_OPERATIONS,
    XPL_IREE_TRACK_MEMORY,
    XPL_IREE_TRACK_ALLOCATED,
    XPL_IREE_TRACK_DISPATCH, // slices: `lane` tells those that overlap apart
    XPL_IREE_TRACK_HOST,
    XPL_IREE_TRACK_QUEUE_DEVICE,
    XPL_IREE_TRACK_COUNTERS, // of dispatches
    XPL_IREE_TRACK_COUNTER_SET,
    XPL_IREE_TRACK_COUNTER,
    XPL_IREE_TRACK_RANGES, // counters of stretches of time
    XPL_IREE_TRACK_RANGE_SET,
    XPL_IREE_TRACK_RANGE,
    XPL_IREE_TRACK_METRICS,
    XPL_IREE_TRACK_METRIC,
};
#define XPL_IREE_NO_QUEUE UINT32_MAX // events of a device
struct xpl_iree_track_key {
    uint64_t a, b; // counter set and counter; source and metric; lane
    uint32_t kind, device, queue;
    // 0, or which of several devices, sets, counters or metrics that sessions gave one id: the low
    // 16 bits tell devices apart.
    uint32_t variant;
};
struct xpl_iree_track {
    struct xpl_iree_track_key key;
    uint64_t uuid;
    uint32_t parent_plus_1; // index of the track; 0: none
    uint32_t rank;          // among its parent's
    bool counter, ordered;  // ordered: its children are by rank
    xpl_str_t name;
};

// ---- events ----

// What an event is; of one time they are in this order.
enum xpl_iree_event_kind {
    XPL_IREE_EVENT_END,
    XPL_IREE_EVENT_SLICE,
    XPL_IREE_EVENT_CLOCK,
    XPL_IREE_EVENT_OPERATION,
    XPL_IREE_EVENT_ALLOCATED, // counter: value
    XPL_IREE_EVENT_METRIC,    // counter: `extra` is the value's place in the sample
    XPL_IREE_EVENT_PARTIAL,
    XPL_IREE_EVENT_DIAGNOSTIC, // `extra`: which; behind those of records the warnings
    XPL_IREE_EVENT_COUNTER,    // counter: `extra` is its row in `counters`
    XPL_IREE_EVENT_MEMORY,
    XPL_IREE_EVENT_QUEUE,
    XPL_IREE_EVENT_READY,
    XPL_IREE_EVENT_RANGE, // as COUNTER
};
struct xpl_iree_event {
    int64_t ns;
    uint64_t at;    // of its typed record, in the bundle
    uint64_t value; // of ALLOCATED; of OPERATION the typed record of the host event
    uint32_t track, chunk, extra;
    uint32_t session;
    uint8_t kind;
};
struct xpl_iree_slice {
    int64_t start_ns, end_ns;
    uint64_t at;
    uint32_t chunk, device, queue, session;
    uint16_t kind;    // of its tracks
    uint16_t variant; // of its device
};
struct xpl_iree_place { // of a typed record
    uint64_t at;
    uint32_t chunk; // index in `chunks`
    uint32_t session;
};
struct xpl_iree_memory_place { // of an event of memory
    int64_t ns;
    struct xpl_iree_place place;
};
struct xpl_iree_chunk_place {
    uint64_t at, index; // of the file record
};

// ---- what is looked up ----

// The keys have the session of the description, as those of the model.

struct xpl_iree_timeline_buffer {
    struct xpl_iree_buffer_key key;
    uint64_t operations, dispatches;
    struct xpl_iree_place dispatch; // the last one
    bool described;
    struct xpl_iree_command_buffer record; // of the last description
};
struct xpl_iree_operation_key {
    uint64_t command_buffer_id;
    uint32_t command_index, session;
};
struct xpl_iree_timeline_operation {
    struct xpl_iree_operation_key key;
    struct xpl_iree_place place;
};
struct xpl_iree_timeline_function { // the last description: the model has the first
    struct xpl_iree_function_key key;
    xpl_str_t name;
};
struct xpl_iree_set_key {
    uint64_t counter_set_id, session;
};
struct xpl_iree_timeline_set {
    struct xpl_iree_set_key key;
    struct xpl_iree_counter_set record;
    bool described;
    xpl_str_t name;
    uint16_t variant;  // of its name
    uint32_t first, n; // its counters in `counters`, once all is described
    uint64_t n_values; // of these counters: no more than a sample has
};
struct xpl_iree_timeline_counter {
    struct xpl_iree_counter record;
    xpl_str_t block, name;
    uint32_t sequence, session; // session: of its set's description
    uint16_t variant;           // of its names
    bool again;                 // described before
};
struct xpl_iree_source_key {
    uint64_t source_id, session;
};
struct xpl_iree_timeline_source {
    struct xpl_iree_source_key key;
    xpl_str_t name;
};
// Ticks and times of a device's first and last correlation, by ticks.
struct xpl_iree_timeline_clock {
    struct xpl_iree_device_key key;
    uint64_t first_tick, last_tick;
    int64_t first_ns, last_ns;
};
// Names that sessions gave an id, and how many: each has a number.
struct xpl_iree_name_key {
    uint64_t a, b;
    uint32_t kind, name; // of tracks; xpl_strid_t, or UINT32_MAX for the number of names
};
struct xpl_iree_timeline_name {
    struct xpl_iree_name_key key;
    uint64_t number;
};
struct xpl_iree_timeline_device {
    struct xpl_iree_device_key key;
    uint64_t variant;
};
struct xpl_iree_endpoint_key {
    uint64_t stream_id, id;
    uint32_t type, device, queue, session;
};
struct xpl_iree_endpoint { // of relationships: the flows that meet there
    struct xpl_iree_endpoint_key key;
    uint32_t first_plus_1, last_plus_1; // in `flows`
};
struct xpl_iree_flow {
    uint64_t id;
    uint32_t next_plus_1;
};

struct xpl_iree_timeline {
    struct xpl_iree_run *run;
    struct xpl_iree_export x; // its rows give members to the writer
    struct xpl_iree_rows members;
    struct xpl_arena arena; // of names
    struct xpl_iree_table tracks, buffers, operations, functions, sets, sources, clocks, endpoints;
    struct xpl_iree_table devices, names; // where sessions are told apart
    struct xpl_intern *texts;             // of `names`
    uint16_t variant;                     // of the device that tracks are defined of
    struct xpl_iree_list chunks, events, slices, counters, flows;
    struct xpl_iree_memory_place *memory; // events of memory
    uint32_t *memory_order;               // by time
    size_t n_memory;
    bool has_queue_device;
    uint32_t work; // steps of loops, see xpl_iree_timeline_stopped
    bool stopped;
};

// For loops within a record or an event: asks the run from time to time whether what is still to
// come is needed.  Once true it stays true, and what the trace is made of may be incomplete.
static inline bool xpl_iree_timeline_stopped(struct xpl_iree_timeline *t) {
    if (++t->work % 4096 == 0) t->stopped |= xpl_iree_stopped(t->run);
    return t->stopped;
}

// As rows of the export have them: no device is the first one.
static inline uint32_t xpl_iree_device_or_first(uint32_t ordinal) {
    return ordinal == XPL_IREE_NONE ? 0 : ordinal;
}

// Tracks, defined on first use; the index of it, or UINT32_MAX on OOM.  tracks.c
uint32_t xpl_iree_track_root(struct xpl_iree_timeline *t);
uint32_t xpl_iree_track_diagnostics(struct xpl_iree_timeline *t);
// uuid: NULL, or the bytes that its name shows.
uint32_t xpl_iree_track_device(struct xpl_iree_timeline *t, uint32_t device, const uint8_t *uuid);
// stream: NULL, or the stream that the queue's name shows.
uint32_t xpl_iree_track_queue(struct xpl_iree_timeline *t, uint32_t device, uint32_t queue,
                              const uint64_t *stream);
// One of the queue's: QUEUE_EVENTS to ALLOCATED, or, of slices, a lane.
uint32_t xpl_iree_track_of_queue(struct xpl_iree_timeline *t, enum xpl_iree_track_kind kind,
                                 uint32_t device, uint32_t queue, uint64_t lane);
uint32_t xpl_iree_track_counter(struct xpl_iree_timeline *t, bool range, uint32_t device,
                                const struct xpl_iree_timeline_set *set,
                                const struct xpl_iree_timeline_counter *c);
uint32_t xpl_iree_track_metrics(struct xpl_iree_timeline *t, uint32_t device);
uint32_t xpl_iree_track_metric(struct xpl_iree_timeline *t, uint32_t device,
                               const struct xpl_iree_metric_row *metric);

// What follows is of a session, and of this device: lookups, and tracks that are defined.
// variants.c
void xpl_iree_timeline_enter(struct xpl_iree_timeline *t, uint32_t session, uint32_t device);
// Tracks that are defined are of the device as that session described it; the first one of the
// ordinal where it did not.
void xpl_iree_timeline_take_device(struct xpl_iree_timeline *t, uint32_t device, uint32_t session);
// The number of a name, in one or two parts, among those that sessions gave the tracks of these
// ids; 0 where sessions are not told apart.  False on OOM.
bool xpl_iree_timeline_variant(struct xpl_iree_timeline *t, enum xpl_iree_track_kind kind,
                               uint64_t a, uint64_t b, xpl_str_t name, xpl_str_t more,
                               uint16_t *ret);
// Metadata, tracks of devices and queues, relationships.  metadata.c; false on OOM.
bool xpl_iree_timeline_describe(struct xpl_iree_timeline *t, const struct xpl_iree_record *h);
// Once all is described: the counters of each set are those whose values its samples have.  False
// on OOM.
bool xpl_iree_timeline_described(struct xpl_iree_timeline *t);

// Times.  clocks.c; false: the device has no clock, or the time is beyond an int64_t.
bool xpl_iree_timeline_ns(const struct xpl_iree_timeline *t, uint32_t device, uint64_t tick,
                          int64_t *ret);
// (a + b) / 2, towards the past.
int64_t xpl_iree_midpoint(int64_t a, int64_t b);

// A new event; NULL on OOM, also where `track` is UINT32_MAX.  events.c
struct xpl_iree_event *xpl_iree_timeline_add(struct xpl_iree_timeline *t,
                                             enum xpl_iree_event_kind kind, int64_t ns,
                                             uint32_t track, const uint8_t *at);

// Events of a record.  collect.c, samples.c; false on OOM.
bool xpl_iree_timeline_collect(struct xpl_iree_timeline *t, const struct xpl_iree_record *h);
bool xpl_iree_timeline_sample(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                              const struct xpl_iree_item *item);
bool xpl_iree_timeline_metrics(struct xpl_iree_timeline *t, const struct xpl_iree_item *item);
// The warnings about the bundle, as diagnostics.
bool xpl_iree_timeline_warn(struct xpl_iree_timeline *t);

// The order of n things by their keys, the first of which decides, then the next ones, at last
// their place; free with xpl_sys_free. order.c; NULL on OOM.
typedef uint64_t xpl_iree_order_key_fn(const void *ctx, size_t i, unsigned key);
uint32_t *xpl_iree_timeline_order(size_t n, unsigned n_keys, xpl_iree_order_key_fn *key,
                                  const void *ctx);
// A number with a sign, as a key.
static inline uint64_t xpl_iree_order_of(int64_t v) {
    return (uint64_t)v ^ UINT64_C(1) << 63;
}

// Slices to their lanes; the order of events of memory, and the sums of allocations.  lanes.c;
// false on OOM.
bool xpl_iree_timeline_lanes(struct xpl_iree_timeline *t);
bool xpl_iree_timeline_allocated(struct xpl_iree_timeline *t);

// ---- output ----

// A member of a row that an argument of another name shows.  Ends with NULL.
struct xpl_iree_renamed {
    const char *member, *as;
};
// Where the trace goes.
struct xpl_iree_sink {
    struct xpl_iree_timeline *t;
    const struct xpl_iree_trace_writer *writer;
    const struct xpl_iree_renamed *renamed; // the only members that are arguments; NULL: all
    struct xpl_buf list;                    // an array that becomes a text
    const char *array;                      // its name
    unsigned depth;                         // of arrays that are open
    struct xpl_iree_record record;          // of the chunk that was read last
    uint32_t chunk_plus_1;                  // which one; 0: none
    struct xpl_packet packet;               // Perfetto's
    struct xpl_iree_rows json;              // Chrome's
    struct xpl_iree_table flows;            // Chrome's: that have begun
    const struct xpl_iree_event *event;
    struct xpl_iree_list waiting; // Chrome's: flows of the event, uint64_t
    bool any;                     // Chrome: an element stands before
    struct xpl_iree_xspace *xspace;
    int64_t base; // XSpace: its times count from here
};

// A format.  Calls: begin, track for each, then for each event its name, flows and arguments
// between event and event_end; end.  What fails makes `out` fail.
struct xpl_iree_trace_writer {
    void (*begin)(struct xpl_iree_sink *s);
    void (*track)(struct xpl_iree_sink *s, const struct xpl_iree_track *track, uint32_t index);
    // ns: of the output.
    void (*event)(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns,
                  xpl_str_t name);
    void (*flow)(struct xpl_iree_sink *s, uint64_t id);
    // No array; of a counter behind its value.
    void (*argument)(struct xpl_iree_sink *s, const struct xpl_iree_member *m);
    // Members of a row by their table, as xpl_iree_rows.fields. NULL: `argument` gets all.
    size_t (*fields)(struct xpl_iree_sink *s, const struct xpl_iree_field *fields, size_t n,
                     const uint8_t *record);
    // Of a counter: `m` is a whole number or one with a fraction.
    void (*value)(struct xpl_iree_sink *s, const struct xpl_iree_member *m);
    void (*event_end)(struct xpl_iree_sink *s, uint64_t ns);
    void (*end)(struct xpl_iree_sink *s);
};
extern const struct xpl_iree_trace_writer xpl_iree_perfetto_writer, xpl_iree_chrome_writer;

// The events, in any order, as an XSpace.  xspace.c; RESOURCE_EXHAUSTED, CANCELLED.
xpl_status_t xpl_iree_xspace_write(struct xpl_iree_sink *s, struct xpl_error *err) XPL_NODISCARD;

// ---- details.c ----

// Writes one event: what it is called, its flows and its arguments.
void xpl_iree_timeline_put(struct xpl_iree_sink *s, const struct xpl_iree_event *e, uint64_t ns);
// For loops within an event: whether what is still to come is lost or not needed.
bool xpl_iree_timeline_put_stopped(struct xpl_iree_sink *s);
// Members of a row, for xpl_iree_rows.member and .fields; ctx is the sink.
void xpl_iree_timeline_member(void *ctx, const struct xpl_iree_member *m);
size_t xpl_iree_timeline_fields(void *ctx, const struct xpl_iree_field *fields, size_t n,
                                const uint8_t *record);

static inline const struct xpl_iree_track *xpl_iree_track_at(const struct xpl_iree_timeline *t,
                                                             uint32_t index) {
    return xpl_iree_table_at(&t->tracks, index);
}

#endif
