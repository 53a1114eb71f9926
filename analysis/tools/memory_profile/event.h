// SPDX-License-Identifier: Apache-2.0
// One allocation or deallocation, from its XEvent's stats.
#ifndef XPL_ANALYSIS_TOOLS_MEMORY_PROFILE_EVENT_H_
#define XPL_ANALYSIS_TOOLS_MEMORY_PROFILE_EVENT_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/xplane/xspace.h"
#include "base/str.h"

struct xpl_arena;

// The allocator's state after the event.
struct xpl_memory_state {
    int64_t reserved_bytes, allocated_bytes, available_bytes, peak_bytes_in_use;
    double fragmentation;
};

// Texts alias the profile.
struct xpl_memory_event {
    bool is_allocation;
    int64_t time_ps; // within its line, as in XProf
    struct xpl_memory_state state;
    int64_t requested_bytes, allocation_bytes;
    int64_t address;
    xpl_str_t op_name, region_type, shape;
    bool has_data_type, has_step;
    int32_t data_type; // DataType of TensorFlow
    int64_t step;      // stat group_id of the event itself
    // The allocator's id: a name, or the number of a device.
    bool is_numbered;
    xpl_str_t allocator;
    int64_t number;
};

static inline bool xpl_is_memory_event(enum xpl_event_type type) {
    return type == XPL_EVENT_MEMORY_ALLOCATION || type == XPL_EVENT_MEMORY_DEALLOCATION;
}

// Memory in use, whose greatest value is the peak.  Wraps as upstream's sum does.
static inline int64_t xpl_memory_in_use(const struct xpl_memory_state *s) {
    return (int64_t)((uint64_t)s->reserved_bytes + (uint64_t)s->allocated_bytes);
}

// Which of the members a reader needs; the others may be left zero.
enum xpl_memory_detail {
    XPL_MEMORY_STATE = 1, // state, allocator, step
    XPL_MEMORY_FLOW = 2,  // address, allocation_bytes, bytes in use
    XPL_MEMORY_ALL = 4,
};

// Reads events of one plane.  A reader needs few of an event's stats, and most of these are
// integers: the stat's id decides, without the general reader, as long as the stat has the usual
// form (one-byte id first, then one value).
struct xpl_memory_reader {
    const struct xpl_plane *plane;
    struct {
        uint8_t details; // enum xpl_memory_detail that need it
        uint8_t is_int;  // goes to a member of type int64_t
        uint16_t offset; // of that member
    } by_id[128];
};

void xpl_memory_reader_init(struct xpl_memory_reader *r, const struct xpl_plane *plane);
// is_allocation and time_ps are always set.
void xpl_memory_event_read(const struct xpl_memory_reader *r, const struct xpl_event *ev,
                           enum xpl_memory_detail detail, struct xpl_memory_event *ret);

// "float", "int32_ref", "unknown dtype enum (77)" (XProf: DataTypeString).  False at the arena's
// limit; only texts that are not constant take room in it.
bool xpl_memory_data_type_name(int32_t data_type, struct xpl_arena *arena, xpl_str_t *ret)
    __attribute__((warn_unused_result));

#endif
