// SPDX-License-Identifier: Apache-2.0
// A host's records as planes, lines and events in memory, on their way to an XSpace: xspace_events
// adds one record, xspace_build all records of all processes; xspace_writer writes it.
#ifndef XPL_AGENT_XSPACE_MODEL_H_
#define XPL_AGENT_XSPACE_MODEL_H_

#include "agent/occupancy.h"
#include "agent/process.h"
#include "agent/record.h"
#include "agent/stream.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

// Kinds of lines in their names, in XLA's order.
enum line_kind {
    LINE_COMPUTE,
    LINE_H2D,
    LINE_D2H,
    LINE_D2D,
    LINE_P2P,
    LINE_OTHER,
    LINE_MEMSET,
    LINE_GRAPH,
    LINE_UNIFIED,
    LINE_OVERHEAD,
    LINE_KINDS,
};

enum stat {
    STAT_DEVICE_ID,
    STAT_CORRELATION_ID,
    STAT_CONTEXT_ID,
    STAT_GRAPH_ID,
    STAT_GRAPH_EXEC_ID,
    STAT_GRAPH_NODE_ID,
    STAT_OCCUPANCY,
    STAT_OCCUPANCY_GRID,
    STAT_OCCUPANCY_BLOCK,
    STAT_KERNEL_DETAILS,
    STAT_MEMCPY_DETAILS,
    STAT_MEMSET_DETAILS,
    STAT_VALUE,
    STAT_ALLOCATOR,
    STAT_ALLOCATED,
    STAT_AVAILABLE,
    STAT_RESERVED,
    STAT_PEAK,
    STAT_REQUESTED,
    STAT_ALLOCATION,
    STAT_ADDRESS,
    STAT_FRAGMENTATION,
    STAT_VENDOR,
    STAT_GPU_NAME,
    STAT_CLOCK,
    STAT_CORES,
    STAT_BANDWIDTH,
    STAT_MEMORY_SIZE,
    STAT_MAJOR,
    STAT_MINOR,
    STATS,
};

struct line {
    int64_t id;
    uint32_t plane, kinds; // bits of line_kind
    uint32_t process, stream;
    xpl_strid_t name;
    size_t first, n; // its events, once sorted
    uint32_t next;   // of its plane, + 1
};

struct plane {
    xpl_strid_t name;
    int64_t id;
    struct xpl_map event_ids, stat_ids; // string -> index + 1
    XPL_VEC(xpl_strid_t) events, stats;
    uint32_t fixed[STATS]; // ids of the statistics' names; 0: not used
    struct xpl_map lines, line_ids;
    int64_t next_line;
    uint32_t first_line, last_line; // + 1
    bool is_gpu;
    uint32_t n_processes; // GPUs: processes that use it
    struct xpl_record_device device;
    xpl_strid_t device_name;
    uint64_t allocated, peak; // while the memory events are gone through
};

// One event. `record` points into the process's bytes; costly values are computed once, while
// collecting.
struct event {
    const uint8_t *record;
    uint64_t start_ns, end_ns; // of the wall clock
    uint64_t correlation;      // 0: none
    uint32_t line, name;       // name: metadata id of the plane
    uint32_t detail;         // kernels: index + 1 of `configs`; others: stat metadata id of a text
    uint16_t kind, reserved; // the record's
    uint32_t device;         // host calls: number of the GPU + 1; 0: not known
    uint64_t allocated, available, peak;
};

// A kernel's launch configuration on a plane, with its text.
struct config {
    uint32_t detail; // stat metadata id
    struct xpl_occupancy occupancy;
};

struct clock_pair {
    uint64_t cupti_ns, real_ns;
};

struct process {
    const struct xpl_agent_process *in;
    xpl_str_t program;
    uint32_t pid;
    XPL_VEC(xpl_strid_t) plain;    // likewise, of kernels: demangled; 0: not yet
    XPL_VEC(xpl_strid_t) names;    // by number - 1
    struct clock_pair first, last; // first.real_ns 0: none
    struct xpl_map devices;        // ordinal -> plane + 1
    struct xpl_map driver_calls;   // correlation -> 1
    struct xpl_map launches;       // correlation -> plane + 1
    struct xpl_map markers;        // id -> event index + 1, of ranges not ended yet
    struct xpl_map ranges;         // domain and name, interned -> interned name of the range
    uint64_t correlation_base, correlation_max;
    uint64_t dropped, nameless;
    uint32_t first_device; // plane + 1
    size_t used;           // bytes of its records that make sense
    bool malformed, ended;
    xpl_str_t failure;
};

struct builder {
    struct xpl_arena *a;
    struct xpl_intern *in;
    XPL_VEC(struct plane) planes;
    XPL_VEC(struct line) lines;
    XPL_VEC(struct event) events;
    XPL_VEC(struct config) configs;
    XPL_VEC(size_t) memory;          // indexes of events
    struct xpl_map config_ids, live; // live: (plane, address) -> bytes
    struct process *processes;
    size_t n_processes;
    uint64_t base_ns;                    // the XSpace's beginning
    uint32_t host_calls, nvtx, host_cpu; // planes + 1
    xpl_strid_t fixed_names[STATS];
    XPL_VEC(xpl_strid_t) warnings;
    struct xpl_agent_result result;
};

// Finds or adds planes, lines and names: their number + 1, or 0 without memory.  A name's
// number is its metadata id in the plane.
uint32_t xpl_agent_plane(struct builder *b, xpl_str_t name);
uint32_t xpl_agent_line(struct builder *b, uint32_t plane, uint32_t process, uint32_t stream);
uint32_t xpl_agent_event_name(struct builder *b, uint32_t plane, xpl_strid_t name);
uint32_t xpl_agent_stat_name(struct builder *b, uint32_t plane, xpl_str_t name);
// Declares statistics in a plane, in the order of their numbers.  False without memory.
bool xpl_agent_use_stat(struct builder *b, uint32_t plane, enum stat s);
static inline uint32_t xpl_stat_bit(enum stat s) {
    return UINT32_C(1) << s;
}
bool xpl_agent_use_stats(struct builder *b, uint32_t plane, uint32_t bits);

// ---- xspace_build.c ----

// All records of all processes -> planes, lines and events.

// Fills the builder, whose arena, names and processes are set.  Uses a stream up to its first
// malformed record.  Fails only without memory: RESOURCE_EXHAUSTED.
xpl_status_t xpl_agent_build(struct builder *b, struct xpl_error *err) XPL_NODISCARD;

// ---- xspace_events.c ----

// Turns one record into one event: its plane and line, its name, its details.

// Adds the events of a record of `process`; other kinds are skipped.  Call it after the first pass
// over the records (xspace_build.c), which finds names, devices and clocks.  Fails only without
// memory: RESOURCE_EXHAUSTED.
xpl_status_t xpl_agent_add_event(struct builder *b, uint32_t process,
                                 const struct xpl_stream_record *r, struct xpl_error *err)
    XPL_NODISCARD;

#endif
