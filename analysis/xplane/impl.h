// Private to analysis/xplane: field numbers of the XSpace messages, and the table from metadata ids
// to positions.
#ifndef XPL_ANALYSIS_XPLANE_IMPL_H_
#define XPL_ANALYSIS_XPLANE_IMPL_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/wire/wire.h"
#include "analysis/xplane/xspace.h"

// tsl/profiler/protobuf/xplane.proto
enum {
    XSPACE_PLANES = 1,
    XSPACE_ERRORS = 2,
    XSPACE_WARNINGS = 3,
    XSPACE_HOSTNAMES = 4,
    XPLANE_ID = 1,
    XPLANE_NAME = 2,
    XPLANE_LINES = 3,
    XPLANE_EVENT_MD = 4,
    XPLANE_STAT_MD = 5,
    XPLANE_STATS = 6,
    XLINE_ID = 1,
    XLINE_NAME = 2,
    XLINE_TIMESTAMP_NS = 3,
    XLINE_EVENTS = 4,
    XLINE_DURATION_PS = 9,
    XLINE_DISPLAY_ID = 10,
    XLINE_DISPLAY_NAME = 11,
    XEVENT_MD_ID = 1,
    XEVENT_OFFSET_PS = 2,
    XEVENT_DURATION_PS = 3,
    XEVENT_STATS = 4,
    XEVENT_OCCURRENCES = 5,
    XSTAT_MD_ID = 1,
    XSTAT_DOUBLE = 2,
    XSTAT_UINT = 3,
    XSTAT_INT = 4,
    XSTAT_STR = 5,
    XSTAT_BYTES = 6,
    XSTAT_REF = 7,
    XEVENT_MD_NAME = 2,
    XEVENT_MD_METADATA = 3,
    XEVENT_MD_DISPLAY_NAME = 4,
    XEVENT_MD_STATS = 5,
    XEVENT_MD_CHILD_ID = 6,
    XSTAT_MD_NAME = 2,
    XSTAT_MD_DESCRIPTION = 3,
};
// A repeated message field 4 (XLine.events, XEvent.stats): the first byte of nearly all there is.
enum { XPL_TAG_FIELD4_LEN = 4 << 3 | XPL_WIRE_LEN };

struct xpl_event_chunk {
    const uint8_t *p; // at or before the field of the event
    uint64_t first;   // its index in the line
};

// From ids to positions (1..n): an array when the ids are dense, which they nearly always are, else
// open addressing.  Ids are compared with the caller's array, so the table holds positions alone.
struct xpl_id_table {
    uint32_t *slots; // 0: no such id
    uint64_t size;   // dense: ids [0, size); hashed: a power of two
    uint64_t seed;   // hashed
    bool hashed;
};

XPL_INLINE uint64_t xpl_id_hash(const struct xpl_id_table *t, uint64_t id) {
    const __uint128_t m = (__uint128_t)(id ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15);
    return ((uint64_t)m ^ (uint64_t)(m >> 64)) & (t->size - 1);
}

XPL_INLINE uint32_t xpl_event_md_at(const struct xpl_plane *p, uint64_t id) {
    const struct xpl_id_table *const t = p->event_ids;
    if (XPL_LIKELY(!t->hashed)) return XPL_LIKELY(id < t->size) ? t->slots[id] : 0;
    for (uint64_t i = xpl_id_hash(t, id); t->slots[i]; i = (i + 1) & (t->size - 1))
        if ((uint64_t)p->event_md[t->slots[i]].id == id) return t->slots[i];
    return 0;
}

XPL_INLINE uint32_t xpl_stat_md_at(const struct xpl_plane *p, uint64_t id) {
    const struct xpl_id_table *const t = p->stat_ids;
    if (XPL_LIKELY(!t->hashed)) return XPL_LIKELY(id < t->size) ? t->slots[id] : 0;
    for (uint64_t i = xpl_id_hash(t, id); t->slots[i]; i = (i + 1) & (t->size - 1))
        if ((uint64_t)p->stat_md[t->slots[i]].id == id) return t->slots[i];
    return 0;
}

// Where the input ends.
XPL_INLINE const uint8_t *xpl_input_end(const struct xpl_plane *p) {
    return p->space->bytes.ptr + p->space->bytes.len;
}

// Index of the first event of chunk i; UINT64_MAX when there is no such chunk.
static inline uint64_t xpl_line_chunk_first(const struct xpl_line *l, uint32_t i) {
    if (i >= l->n_chunks) return UINT64_MAX;
    return i == 0 ? 0 : l->chunks[i].first;
}

#endif
