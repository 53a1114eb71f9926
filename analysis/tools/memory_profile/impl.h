// SPDX-License-Identifier: Apache-2.0
// Private to analysis/tools/memory_profile: what its files share.
//
//   collect         finds the events of memory, as records by allocator
//   record          reads a record's event again
//   memory_profile  the entry: analyses allocator by allocator
//   json            writes one analysed allocator
#ifndef XPL_ANALYSIS_TOOLS_MEMORY_PROFILE_IMPL_H_
#define XPL_ANALYSIS_TOOLS_MEMORY_PROFILE_IMPL_H_

#include "analysis/tools/memory_profile/event.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_exec;
struct xpl_intern;

enum {
    XPL_MEMORY_MAX_SAMPLES = 1000,
    XPL_MEMORY_STEP_BITS = 24,
    XPL_MEMORY_MAX_STEPS = 1 << XPL_MEMORY_STEP_BITS,
    XPL_MEMORY_EVENTS_PER_CHECK = 8192, // between two checks for cancellation
};

// The profile, and how to read it.
struct xpl_memory_input {
    const struct xpl_xspace *xs;
    const struct xpl_plane *host;
    struct xpl_memory_reader reader;
    struct xpl_exec *exec;
    size_t limit;
};
xpl_status_t xpl_memory_check_cancelled(const struct xpl_memory_input *in, struct xpl_error *err)
    XPL_NODISCARD;

// One event of memory.  The rest of it is decoded again where it is needed: there can be millions.
struct xpl_memory_record {
    int64_t time_ps;
    uint64_t where; // offset of its field in the profile << 24 | index of its step, 0 for none
};

struct xpl_memory_summary {
    int64_t peak_lifetime, peak_time_ps, capacity;
    struct xpl_memory_state peak; // peak_bytes_in_use: of the profile, not of the lifetime
};

// A point of the timeline.
struct xpl_memory_sample {
    uint32_t index;  // of the record
    uint32_t origin; // deallocation: record of what it frees; XPL_MEMORY_NO_ORIGIN when unknown
    int64_t step, in_use;
};
#define XPL_MEMORY_NO_ORIGIN UINT32_MAX

// Something allocated at the peak.  Texts live in the allocator's arena.
struct xpl_memory_active {
    int64_t bytes, requested;
    xpl_str_t op_name, region_type, data_type, shape;
    uint32_t index;       // of the record; UINT32_MAX for memory that no event accounts for
    int32_t special;      // which of those, from 0; -1 for records
    uint32_t occurrences; // equal ones that it stands for
};

struct xpl_memory_allocator {
    xpl_str_t name;
    struct xpl_memory_record *records; // by time once analysed
    size_t n_records, cap;
    struct xpl_memory_summary summary;
    // Where the peak is: the latest of the events that reach it.
    bool has_peak;
    int64_t latest_peak_ps;
    int64_t peak_step;
    struct xpl_memory_sample *samples; // room for XPL_MEMORY_MAX_SAMPLES
    uint32_t n_samples;
    XPL_VEC(struct xpl_memory_active) rows;
    XPL_VEC(struct xpl_memory_active) specials;
};

// Events of memory by allocator, each in the order of the file.
struct xpl_memory_collection {
    struct xpl_arena arena;
    struct xpl_intern *names;
    XPL_VEC(struct xpl_memory_allocator *) allocators; // in order of appearance
    XPL_VEC(struct xpl_memory_allocator *) by_name;    // by name id
    struct xpl_memory_allocator *last;                 // that had an event
    struct xpl_map step_index;
    XPL_VEC(int64_t) steps; // [0] stands for none
};
void xpl_memory_collection_init(struct xpl_memory_collection *c, size_t limit);
void xpl_memory_collection_fini(struct xpl_memory_collection *c);
// Fills an empty collection from all lines of the host plane.
xpl_status_t xpl_memory_collect(const struct xpl_memory_input *in, struct xpl_memory_collection *c,
                                struct xpl_error *err) XPL_NODISCARD;

// Reads a record's event again.  Zero when the bytes have changed since.
void xpl_memory_record_read(const struct xpl_memory_reader *reader,
                            const struct xpl_memory_record *r, enum xpl_memory_detail detail,
                            struct xpl_memory_event *ret);
// Appends `"name":{...}` of one analysed allocator.
xpl_status_t xpl_memory_put_allocator(const struct xpl_memory_reader *reader,
                                      const struct xpl_memory_allocator *a,
                                      struct xpl_arena *scratch, struct xpl_buf *out,
                                      struct xpl_error *err) XPL_NODISCARD;

#endif
