// SPDX-License-Identifier: Apache-2.0
// A record's event, read from the profile again.
#include "analysis/tools/memory_profile/impl.h"

void xpl_memory_record_read(const struct xpl_memory_reader *reader,
                            const struct xpl_memory_record *r, enum xpl_memory_detail detail,
                            struct xpl_memory_event *ret) {
    const xpl_bytes_t bytes = reader->plane->space->bytes;
    struct xpl_event_cursor c = {
        .line = reader->plane->lines,
        .p = bytes.ptr + (r->where >> XPL_MEMORY_STEP_BITS),
        .end = bytes.ptr + bytes.len,
        .stop = 1,
    };
    struct xpl_event ev;
    *ret = (struct xpl_memory_event){0};
    if (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) xpl_memory_event_read(reader, &ev, detail, ret);
}
