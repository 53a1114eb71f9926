// SPDX-License-Identifier: Apache-2.0
// Positions of the metadata of events and statistics, inline, for the few loops that see every
// event.
#ifndef XPL_ANALYSIS_XPLANE_METADATA_H_
#define XPL_ANALYSIS_XPLANE_METADATA_H_

#include <stdint.h>

#include "analysis/xplane/id_table.h"
#include "analysis/xplane/xspace.h"

// Position of an event's metadata in p->event_md; 0 when there is none.
XPL_INLINE uint32_t xpl_event_md_at(const struct xpl_plane *p, uint64_t id) {
    const struct xpl_id_table *const t = p->event_ids;
    if (XPL_LIKELY(!t->hashed)) return XPL_LIKELY(id < t->size) ? t->slots[id] : 0;
    for (uint64_t i = xpl_id_hash(t, id); t->slots[i]; i = (i + 1) & (t->size - 1))
        if ((uint64_t)p->event_md[t->slots[i]].id == id) return t->slots[i];
    return 0;
}

// Position of a statistic's metadata in p->stat_md; 0 when there is none.
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

#endif
