// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/memory_profile/event.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"

// tsl/profiler/protobuf/xplane.proto
enum { XEVENT_STATS_FIELD = 4, XSTAT_ID_FIELD = 1, XSTAT_INT_FIELD = 4 };

static void set_member(const struct xpl_stat *s, struct xpl_memory_event *e) {
    // A switch over all types would list hundreds that do not matter.
    const int type = (int)s->md->type;
    switch (type) {
        case XPL_STAT_INDEX_ON_HOST:
        case XPL_STAT_DEVICE_ORDINAL:
            e->is_numbered = true;
            e->number = xpl_stat_int(s);
            break;
        case XPL_STAT_ALLOCATOR_NAME:
            e->is_numbered = false;
            e->allocator = xpl_stat_str(s);
            break;
        case XPL_STAT_BYTES_RESERVED: e->state.reserved_bytes = xpl_stat_int(s); break;
        case XPL_STAT_BYTES_ALLOCATED: e->state.allocated_bytes = xpl_stat_int(s); break;
        case XPL_STAT_BYTES_AVAILABLE: e->state.available_bytes = xpl_stat_int(s); break;
        case XPL_STAT_FRAGMENTATION: e->state.fragmentation = xpl_stat_double(s); break;
        case XPL_STAT_PEAK_BYTES_IN_USE: e->state.peak_bytes_in_use = xpl_stat_int(s); break;
        case XPL_STAT_REQUESTED_BYTES: e->requested_bytes = xpl_stat_int(s); break;
        case XPL_STAT_ALLOCATION_BYTES: e->allocation_bytes = xpl_stat_int(s); break;
        case XPL_STAT_ADDRESS: e->address = xpl_stat_int(s); break;
        case XPL_STAT_TF_OP_NAME: // of an event that belongs to an op
        case XPL_STAT_TF_OP: e->op_name = xpl_stat_str(s); break;
        case XPL_STAT_REGION_TYPE: e->region_type = xpl_stat_str(s); break;
        case XPL_STAT_TENSOR_SHAPES: e->shape = xpl_stat_str(s); break;
        case XPL_STAT_DATA_TYPE:
            e->has_data_type = true;
            e->data_type = (int32_t)(uint32_t)(uint64_t)xpl_stat_int(s);
            break;
        case XPL_STAT_GROUP_ID:
            e->has_step = true;
            e->step = xpl_stat_int(s);
            break;
        default: break;
    }
}

// Which readers need a stat, and the member for its value if that is a plain integer.
struct stat_use {
    uint8_t details; // enum xpl_memory_detail, 0: not needed
    bool is_int;
    size_t offset; // of the member, where is_int
};

static struct stat_use integer_at(size_t offset, unsigned details) {
    return (struct stat_use){.details = (uint8_t)details, .is_int = true, .offset = offset};
}

static struct stat_use use_of(enum xpl_stat_type stat_type) {
    const unsigned state = XPL_MEMORY_STATE | XPL_MEMORY_ALL,
                   flow = XPL_MEMORY_FLOW | XPL_MEMORY_ALL;
    const int type = (int)stat_type;
    switch (type) {
        case XPL_STAT_INDEX_ON_HOST:
        case XPL_STAT_DEVICE_ORDINAL:
        case XPL_STAT_ALLOCATOR_NAME:
        case XPL_STAT_FRAGMENTATION:
        case XPL_STAT_GROUP_ID: return (struct stat_use){.details = (uint8_t)state};
        case XPL_STAT_BYTES_AVAILABLE:
            return integer_at(offsetof(struct xpl_memory_event, state.available_bytes), state);
        case XPL_STAT_PEAK_BYTES_IN_USE:
            return integer_at(offsetof(struct xpl_memory_event, state.peak_bytes_in_use), state);
        case XPL_STAT_BYTES_RESERVED:
            return integer_at(offsetof(struct xpl_memory_event, state.reserved_bytes),
                              state | flow);
        case XPL_STAT_BYTES_ALLOCATED:
            return integer_at(offsetof(struct xpl_memory_event, state.allocated_bytes),
                              state | flow);
        case XPL_STAT_ALLOCATION_BYTES:
            return integer_at(offsetof(struct xpl_memory_event, allocation_bytes), flow);
        case XPL_STAT_ADDRESS: return integer_at(offsetof(struct xpl_memory_event, address), flow);
        case XPL_STAT_REQUESTED_BYTES:
            return integer_at(offsetof(struct xpl_memory_event, requested_bytes), XPL_MEMORY_ALL);
        case XPL_STAT_TF_OP:
        case XPL_STAT_TF_OP_NAME:
        case XPL_STAT_REGION_TYPE:
        case XPL_STAT_TENSOR_SHAPES:
        case XPL_STAT_DATA_TYPE: return (struct stat_use){.details = XPL_MEMORY_ALL};
        default: return (struct stat_use){0};
    }
}

void xpl_memory_reader_init(struct xpl_memory_reader *r, const struct xpl_plane *plane) {
    r->plane = plane;
    for (size_t id = 0; id < sizeof r->by_id / sizeof *r->by_id; id++) {
        const struct stat_use use = use_of(plane->stat_md[xpl_plane_stat_md(plane, id)].type);
        r->by_id[id].details = use.details;
        r->by_id[id].is_int = use.is_int;
        r->by_id[id].offset = (uint16_t)use.offset;
    }
}

// Value of the varint that fills [p, end) exactly; false when there is none.
static inline bool read_varint(const uint8_t *p, const uint8_t *end, uint64_t *ret) {
    uint64_t v = 0;
    for (unsigned shift = 0; p != end && shift < 63; shift += 7) {
        const uint64_t b = *p++;
        v |= (b & 0x7f) << shift;
        if (b < 0x80) {
            *ret = v;
            return p == end;
        }
    }
    return false; // of ten bytes, or malformed: left to the general reader
}

// Reads the XStat field at `p` if it has the usual form; returns its length, else 0.
static inline size_t read_usual(const struct xpl_memory_reader *r, unsigned detail,
                                const uint8_t *p, const uint8_t *end,
                                struct xpl_memory_event *ret) {
    enum {
        TAG = XEVENT_STATS_FIELD << 3 | XPL_WIRE_LEN,
        ID_TAG = XSTAT_ID_FIELD << 3,
        INT_TAG = XSTAT_INT_FIELD << 3,
    };
    if (end - p < 5 || p[0] != TAG || p[1] < 3 || p[1] >= 0x80 || p[1] > end - p - 2) return 0;
    if (p[2] != ID_TAG || p[3] >= 0x80) return 0;
    const size_t len = p[1] + 2u;
    if (!(r->by_id[p[3]].details & detail)) return len;
    uint64_t v;
    if (!r->by_id[p[3]].is_int || p[4] != INT_TAG || !read_varint(p + 5, p + len, &v)) return 0;
    memcpy((uint8_t *)ret + r->by_id[p[3]].offset, &v, sizeof v);
    return len;
}

void xpl_memory_event_read(const struct xpl_memory_reader *r, const struct xpl_event *ev,
                           enum xpl_memory_detail detail, struct xpl_memory_event *ret) {
    *ret = (struct xpl_memory_event){
        .is_allocation = r->plane->event_md[ev->md].type == XPL_EVENT_MEMORY_ALLOCATION,
        .time_ps = ev->offset_ps,
    };
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    for (;;) {
        for (size_t n; (n = read_usual(r, detail, stats.p, stats.end, ret)) > 0;)
            stats.p += n;
        if (xpl_stats_next(&stats, &s) != XPL_WIRE_FIELD) return;
        set_member(&s, ret);
    }
}

enum { REF_OFFSET = 100 }; // of a reference to a type from the type

bool xpl_memory_data_type_name(int32_t data_type, struct xpl_arena *arena, xpl_str_t *ret) {
#define NAMES(suffix)                                                                              \
    {                                                                                              \
        "INVALID" suffix, "float" suffix, "double" suffix, "int32" suffix, "uint8" suffix,         \
            "int16" suffix, "int8" suffix, "string" suffix, "complex64" suffix, "int64" suffix,    \
            "bool" suffix, "qint8" suffix, "quint8" suffix, "qint32" suffix, "bfloat16" suffix,    \
            "qint16" suffix, "quint16" suffix, "uint16" suffix, "complex128" suffix,               \
            "half" suffix, "resource" suffix, "variant" suffix, "uint32" suffix, "uint64" suffix,  \
            "float8_e5m2" suffix, "float8_e4m3fn" suffix, "float8_e4m3fnuz" suffix,                \
            "float8_e4m3b11fnuz" suffix, "float8_e5m2fnuz" suffix, "int4" suffix, "uint4" suffix   \
    }
    static const char *const names[] = NAMES(""), *const ref_names[] = NAMES("_ref");
#undef NAMES
    const bool is_ref = data_type > REF_OFFSET;
    const int32_t type = is_ref ? data_type - REF_OFFSET : data_type;
    if (type >= 0 && (size_t)type < sizeof names / sizeof *names) {
        *ret = xpl_str_from(is_ref ? ref_names[type] : names[type]);
        return true;
    }
    return xpl_arena_printf(arena, ret, "unknown dtype enum (%" PRId32 ")%s", type,
                            is_ref ? "_ref" : "");
}
