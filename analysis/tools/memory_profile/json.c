// SPDX-License-Identifier: Apache-2.0
// Writes one analysed allocator as JSON.

#include "base/json.h"
#include "analysis/tools/memory_profile/impl.h"
#include "base/arena.h"

struct writer {
    const struct xpl_memory_reader *reader;
    const struct xpl_memory_allocator *a;
    struct xpl_arena *arena;
    struct xpl_buf *out;
    struct xpl_buf text; // a copy of a text, which another process may rewrite while it is read
};

static void put(struct writer *w, const char *z) {
    xpl_buf_str(w->out, xpl_str_from(z));
}
static void put_int(struct writer *w, const char *key, int64_t v) {
    put(w, key);
    xpl_json_proto_int64(w->out, v);
}
static void put_text(struct writer *w, const char *key, xpl_str_t s) {
    put(w, key);
    w->text.n = 0;
    xpl_buf_str(&w->text, s);
    xpl_json_str(w->out, (xpl_str_t){(const char *)w->text.p, w->text.n}, true);
}

static void put_state(struct writer *w, const struct xpl_memory_state *s) {
    put_int(w, "{\"stackReservedBytes\":", s->reserved_bytes);
    put_int(w, ",\"heapAllocatedBytes\":", s->allocated_bytes);
    put_int(w, ",\"freeMemoryBytes\":", s->available_bytes);
    put(w, ",\"fragmentation\":");
    xpl_json_proto_double(w->out, s->fragmentation);
    put_int(w, ",\"peakBytesInUse\":", s->peak_bytes_in_use);
    xpl_buf_putc(w->out, '}');
}

static void put_activity(struct writer *w, const struct xpl_memory_event *e, xpl_str_t data_type,
                         int64_t step) {
    put(w, e->is_allocation ? "{\"memoryActivity\":\"ALLOCATION\""
                            : "{\"memoryActivity\":\"DEALLOCATION\"");
    put_int(w, ",\"requestedBytes\":", e->requested_bytes);
    put_int(w, ",\"allocationBytes\":", e->allocation_bytes);
    put(w, ",\"address\":");
    xpl_json_proto_uint64(w->out, (uint64_t)e->address);
    put_text(w, ",\"tfOpName\":", e->op_name);
    put_int(w, ",\"stepId\":", step);
    put_text(w, ",\"regionType\":", e->region_type);
    put_text(w, ",\"dataType\":", data_type);
    put_text(w, ",\"tensorShape\":", e->shape);
    xpl_buf_putc(w->out, '}');
}

// `origin`: the record of the allocation, whose op, type and shape a deallocation shows.
static bool put_snapshot(struct writer *w, uint32_t index, uint32_t origin, int64_t step) {
    struct xpl_memory_event e, from;
    xpl_str_t data_type = {0};
    xpl_memory_record_read(w->reader, &w->a->records[index], XPL_MEMORY_ALL, &e);
    if (origin != XPL_MEMORY_NO_ORIGIN) {
        xpl_memory_record_read(w->reader, &w->a->records[origin], XPL_MEMORY_ALL, &from);
        e.op_name = from.op_name;
        e.region_type = from.region_type;
        e.shape = from.shape;
        e.has_data_type = from.has_data_type;
        e.data_type = from.data_type;
    }
    if (e.has_data_type && !xpl_memory_data_type_name(e.data_type, w->arena, &data_type))
        return false;
    put_int(w, "{\"timeOffsetPs\":", w->a->records[index].time_ps);
    put(w, ",\"aggregationStats\":");
    put_state(w, &e.state);
    put(w, ",\"activityMetadata\":");
    put_activity(w, &e, data_type, step);
    xpl_buf_putc(w->out, '}');
    return true;
}

// Only those that the table of active allocations refers to, in its order.
static bool put_referenced(struct writer *w) {
    bool any = false;
    put(w, ":{\"memoryProfileSnapshots\":[");
    for (size_t i = 0; i < w->a->rows.n; i++) {
        if (w->a->rows.v[i].special >= 0) continue;
        if (any) xpl_buf_putc(w->out, ',');
        any = true;
        if (!put_snapshot(w, w->a->rows.v[i].index, XPL_MEMORY_NO_ORIGIN, w->a->peak_step))
            return false;
    }
    return true;
}

static void put_summary(struct writer *w) {
    const struct xpl_memory_summary *const s = &w->a->summary;
    put_int(w, "],\"profileSummary\":{\"peakBytesUsageLifetime\":", s->peak_lifetime);
    put(w, ",\"peakStats\":");
    put_state(w, &s->peak);
    put_int(w, ",\"peakStatsTimePs\":", s->peak_time_ps);
    put_int(w, ",\"memoryCapacity\":", s->capacity);
}

static void put_rows(struct writer *w) {
    int64_t snapshot = 0;
    put(w, "},\"activeAllocations\":[");
    for (size_t i = 0; i < w->a->rows.n; i++) {
        const struct xpl_memory_active *const row = &w->a->rows.v[i];
        const bool special = row->special >= 0;
        put_int(w, i ? ",{\"snapshotIndex\":" : "{\"snapshotIndex\":",
                special ? -(int64_t)row->special - 1 : snapshot++);
        put_int(w, ",\"specialIndex\":", row->special);
        put_int(w, ",\"numOccurrences\":", row->occurrences);
        xpl_buf_putc(w->out, '}');
    }
}

static void put_specials(struct writer *w) {
    put(w, "],\"specialAllocations\":[");
    for (size_t i = 0; i < w->a->specials.n; i++) {
        const struct xpl_memory_active *const s = &w->a->specials.v[i];
        const struct xpl_memory_event e = {
            .is_allocation = true,
            .requested_bytes = s->requested,
            .allocation_bytes = s->bytes,
            .op_name = s->op_name,
            .region_type = s->region_type,
            .shape = s->shape,
        };
        if (i) xpl_buf_putc(w->out, ',');
        put_activity(w, &e, s->data_type, w->a->peak_step);
    }
}

static bool put_samples(struct writer *w) {
    put(w, "],\"sampledTimelineSnapshots\":[");
    for (uint32_t i = 0; i < w->a->n_samples; i++) {
        const struct xpl_memory_sample *const s = &w->a->samples[i];
        if (i) xpl_buf_putc(w->out, ',');
        if (!put_snapshot(w, s->index, s->origin, s->step)) return false;
    }
    put(w, "]}");
    return true;
}

xpl_status_t xpl_memory_put_allocator(const struct xpl_memory_reader *reader,
                                      const struct xpl_memory_allocator *a,
                                      struct xpl_arena *scratch, struct xpl_buf *out,
                                      struct xpl_error *err) {
    struct writer w = {.reader = reader, .a = a, .arena = scratch, .out = out};
    xpl_buf_init(&w.text, out->max);
    xpl_json_str(out, a->name, true);
    bool ok = put_referenced(&w);
    put_summary(&w);
    put_rows(&w);
    put_specials(&w);
    ok = ok && put_samples(&w) && !w.text.failed;
    xpl_buf_fini(&w.text);
    if (!ok || out->failed) XPL_RETURN_OOM(err, "memory_profile");
    return XPL_OK;
}
