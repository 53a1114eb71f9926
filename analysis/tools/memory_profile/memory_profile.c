// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/memory_profile/memory_profile.h"

#include "analysis/tools/memory_profile/address_map.h"
#include "analysis/tools/memory_profile/impl.h"
#include "base/cleanup.h"
#include "base/exec.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/std_sort.h"

struct profile {
    struct xpl_memory_input in;
    struct xpl_memory_collection c;
    struct xpl_error *err;
};

static xpl_status_t fail_without_memory(const struct profile *p) {
    XPL_RETURN_OOM(p->err, "memory_profile");
}

static void free_profile(struct profile *p) {
    xpl_memory_collection_fini(&p->c);
}

// ---- one allocator ----

static bool is_earlier(const void *ctx, const void *a, const void *b) {
    const struct xpl_memory_record *const x = a, *const y = b;
    (void)ctx;
    return x->time_ps < y->time_ps;
}

static void sort_by_time(struct xpl_memory_allocator *a) {
    bool sorted = true; // and without ties, whose order the sort may change
    for (size_t i = 1; sorted && i < a->n_records; i++)
        sorted = a->records[i - 1].time_ps < a->records[i].time_ps;
    if (!sorted) xpl_std_sort(a->records, a->n_records, sizeof *a->records, is_earlier, NULL);
}

// Events without a step are of the one after the last known (UpdateStepId).
static int64_t step_of(const struct profile *p, const struct xpl_memory_record *r, int64_t *last) {
    const uint64_t index = r->where & (XPL_MEMORY_MAX_STEPS - 1);
    if (!index) return (int64_t)((uint64_t)*last + 1);
    *last = p->c.steps.v[index];
    return *last;
}

// Step of the last event at the peak (GetPeakMemoryStep); 0 when none is.
static int64_t find_peak_step(const struct profile *p, const struct xpl_memory_allocator *a) {
    int64_t last = -1, ret = 0;
    for (size_t i = 0; a->has_peak && i < a->n_records; i++) {
        const struct xpl_memory_record *const r = &a->records[i];
        struct xpl_memory_event e;
        if (r->time_ps > a->latest_peak_ps) break;
        const int64_t step = step_of(p, r, &last);
        if (r->time_ps != a->latest_peak_ps) continue;
        xpl_memory_record_read(&p->in.reader, r, XPL_MEMORY_FLOW, &e);
        if (xpl_memory_in_use(&e.state) == a->summary.peak.peak_bytes_in_use) ret = step;
    }
    return ret;
}

// Selects the greatest of each box of neighbouring events, so that at most MAX_SAMPLES remain:
// boxes of `width`, and from box `n_narrow` on of one more (SampleMemoryProfileTimeline).
struct sampler {
    size_t width, n_narrow, box_end;
};

static struct sampler begin_sampling(size_t n) {
    struct sampler s = {.width = 1, .n_narrow = SIZE_MAX};
    if (n <= XPL_MEMORY_MAX_SAMPLES) return s;
    s.width = n / XPL_MEMORY_MAX_SAMPLES;
    s.n_narrow = XPL_MEMORY_MAX_SAMPLES * (s.width + 1) - n;
    return s;
}

static void add_sample(struct sampler *s, struct xpl_memory_allocator *a,
                       struct xpl_memory_sample sample) {
    if (sample.index == s->box_end) {
        s->box_end += s->width + (a->n_samples >= s->n_narrow);
        a->samples[a->n_samples++] = sample;
    } else if (sample.in_use > a->samples[a->n_samples - 1].in_use) {
        a->samples[a->n_samples - 1] = sample;
    }
}

// The members of an event that the pass needs.
struct flow {
    int64_t in_use, address, bytes;
    bool is_allocation;
};

// Events are decoded a batch at a time, slices of it at once where the exec has threads.
enum { SLICE = 2048, BATCH = 16 * SLICE };
struct batch {
    const struct xpl_memory_reader *reader;
    const struct xpl_memory_record *records;
    size_t n;
    struct flow *flows;
};

static void decode_slice(void *ctx, size_t slice) {
    const struct batch *const b = ctx;
    const size_t end = (slice + 1) * SLICE < b->n ? (slice + 1) * SLICE : b->n;
    for (size_t i = slice * SLICE; i < end; i++) {
        struct xpl_memory_event e;
        xpl_memory_record_read(b->reader, &b->records[i], XPL_MEMORY_FLOW, &e);
        b->flows[i] = (struct flow){xpl_memory_in_use(&e.state), e.address, e.allocation_bytes,
                                    e.is_allocation};
    }
}

// State of the pass over an allocator's events.
struct sweep {
    struct xpl_address_map origins; // allocation by address, until it is freed
    struct xpl_address_map active;  // the same in the step of the peak, up to the peak
    struct sampler sampler;
    int64_t last_step;
    uint64_t unmapped, freed_unmapped;
    bool past_peak;
};

static void free_sweep(struct sweep *s) {
    xpl_address_map_fini(&s->origins);
    xpl_address_map_fini(&s->active);
}

// Which allocation a deallocation frees (UpdateDeallocation): of two at one address the first.
static bool match_origin(struct sweep *s, const struct flow *e, uint32_t index, uint32_t *ret) {
    const uint32_t *const known = xpl_address_map_get(&s->origins, (uint64_t)e->address);
    *ret = XPL_MEMORY_NO_ORIGIN;
    if (e->is_allocation)
        return known || xpl_address_map_put(&s->origins, (uint64_t)e->address, index);
    if (known) {
        *ret = *known;
        xpl_address_map_remove(&s->origins, (uint64_t)e->address);
    }
    return true;
}

// Replays the step of the peak (ProcessActiveAllocations): of two at one address the last.
static bool replay(struct sweep *s, const struct flow *e, uint32_t index) {
    if (e->is_allocation) {
        s->unmapped -= (uint64_t)e->bytes;
        return xpl_address_map_put(&s->active, (uint64_t)e->address, index);
    }
    if (!xpl_address_map_remove(&s->active, (uint64_t)e->address))
        s->freed_unmapped += (uint64_t)e->bytes;
    s->unmapped += (uint64_t)e->bytes;
    return true;
}

static xpl_status_t sweep_batch(const struct profile *p, struct xpl_memory_allocator *a,
                                struct sweep *s, const struct batch *b) {
    const size_t first = (size_t)(b->records - a->records);
    for (size_t i = 0; i < b->n; i++) {
        const struct flow *const e = &b->flows[i];
        const uint32_t index = (uint32_t)(first + i);
        struct xpl_memory_sample sample = {.index = index, .in_use = e->in_use};
        sample.step = step_of(p, &b->records[i], &s->last_step);
        if (!match_origin(s, e, index, &sample.origin)) return fail_without_memory(p);
        add_sample(&s->sampler, a, sample);
        s->past_peak = s->past_peak || b->records[i].time_ps > a->summary.peak_time_ps;
        if (!s->past_peak && sample.step == a->peak_step && !replay(s, e, index))
            return fail_without_memory(p);
    }
    return XPL_OK;
}

static xpl_status_t sweep_events(const struct profile *p, struct xpl_memory_allocator *a,
                                 struct sweep *s, struct xpl_arena *arena) {
    struct batch b = {.reader = &p->in.reader};
    const size_t room = a->n_records < BATCH ? a->n_records : BATCH;
    b.flows = xpl_arena_array(arena, room, sizeof *b.flows);
    if (!b.flows) return fail_without_memory(p);
    s->sampler = begin_sampling(a->n_records);
    s->last_step = -1;
    s->unmapped = (uint64_t)a->summary.peak.allocated_bytes;
    for (size_t i = 0; i < a->n_records; i += b.n) {
        b.records = &a->records[i];
        b.n = a->n_records - i < BATCH ? a->n_records - i : BATCH;
        XPL_TRY(xpl_memory_check_cancelled(&p->in, p->err));
        xpl_exec_run(p->in.exec, (b.n + SLICE - 1) / SLICE, decode_slice, &b);
        XPL_TRY(sweep_batch(p, a, s, &b));
    }
    return XPL_OK;
}

// ---- allocations at the peak ----

static bool copy_active(const struct profile *p, const struct xpl_memory_record *r,
                        struct xpl_intern *texts, struct xpl_arena *arena,
                        struct xpl_memory_active *ret) {
    struct xpl_memory_event e;
    xpl_strid_t op, region, shape;
    xpl_memory_record_read(&p->in.reader, r, XPL_MEMORY_ALL, &e);
    *ret = (struct xpl_memory_active){
        .bytes = e.allocation_bytes, .requested = e.requested_bytes, .special = -1};
    if (!xpl_intern_put_view(texts, e.op_name, &op) ||
        !xpl_intern_put_view(texts, e.region_type, &region) ||
        !xpl_intern_put_view(texts, e.shape, &shape))
        return false;
    ret->op_name = xpl_intern_get(texts, op);
    ret->region_type = xpl_intern_get(texts, region);
    ret->shape = xpl_intern_get(texts, shape);
    return !e.has_data_type || xpl_memory_data_type_name(e.data_type, arena, &ret->data_type);
}

// Memory in use that no event accounts for.
static bool add_special(struct xpl_memory_allocator *a, struct xpl_arena *arena, int64_t bytes,
                        xpl_str_t op_name, xpl_str_t region_type) {
    if (bytes <= 0) return true;
    const struct xpl_memory_active special = {
        .bytes = bytes,
        .requested = bytes,
        .op_name = op_name,
        .region_type = region_type,
        .data_type = XPL_STR("INVALID"),
        .shape = XPL_STR("unknown"),
        .index = UINT32_MAX,
        .special = (int32_t)a->specials.n,
    };
    struct xpl_memory_active *const listed = xpl_vec_push(arena, &a->specials);
    struct xpl_memory_active *const row = xpl_vec_push(arena, &a->rows);
    if (!listed || !row) return false;
    *listed = *row = special;
    return true;
}

static int by_size_then_texts(const struct xpl_memory_active *x,
                              const struct xpl_memory_active *y) {
    // Largest first; negated as upstream does, so that the least number stays the least.
    const int64_t xb = (int64_t)(0 - (uint64_t)x->bytes), yb = (int64_t)(0 - (uint64_t)y->bytes);
    const int64_t xr = (int64_t)(0 - (uint64_t)x->requested),
                  yr = (int64_t)(0 - (uint64_t)y->requested);
    if (xb != yb) return xb < yb ? -1 : 1;
    if (xr != yr) return xr < yr ? -1 : 1;
    int c = xpl_str_cmp(x->op_name, y->op_name);
    if (!c) c = xpl_str_cmp(x->region_type, y->region_type);
    if (!c) c = xpl_str_cmp(x->data_type, y->data_type);
    return c ? c : xpl_str_cmp(x->shape, y->shape);
}
static bool comes_before(const void *ctx, const void *a, const void *b) {
    const struct xpl_memory_active *const x = a, *const y = b;
    (void)ctx;
    const int c = by_size_then_texts(x, y);
    if (c) return c < 0;
    return x->index != y->index ? x->index < y->index : x->special < y->special;
}

static void merge_equal_rows(struct xpl_memory_allocator *a) {
    size_t n = 0;
    for (size_t i = 0; i < a->rows.n; i++) {
        struct xpl_memory_active *const last = n ? &a->rows.v[n - 1] : NULL;
        if (last && by_size_then_texts(last, &a->rows.v[i]) == 0) {
            last->occurrences++;
        } else {
            a->rows.v[n] = a->rows.v[i];
            a->rows.v[n++].occurrences = 1;
        }
    }
    a->rows.n = n;
}

static bool list_active(const struct profile *p, struct xpl_memory_allocator *a,
                        const struct sweep *s, struct xpl_arena *arena) {
    struct xpl_intern *const texts = xpl_intern_new(arena, xpl_hash_seed());
    if (!texts || !xpl_vec_reserve(arena, &a->rows, s->active.n + 2)) return false;
    for (size_t i = 0; i < s->active.cap; i++) {
        if (!s->active.slots[i].used) continue;
        const uint32_t index = s->active.slots[i].value;
        struct xpl_memory_active *const row = xpl_vec_push(arena, &a->rows);
        if (!row || !copy_active(p, &a->records[index], texts, arena, row)) return false;
        row->index = index;
    }
    const int64_t unmapped = (int64_t)(s->unmapped - s->freed_unmapped);
    if (!add_special(a, arena, unmapped, XPL_STR("unused preallocated device memory"),
                     XPL_STR("persist/dynamic")) ||
        !add_special(a, arena, a->summary.peak.reserved_bytes, XPL_STR("stack"), XPL_STR("stack")))
        return false;
    xpl_std_sort(a->rows.v, a->rows.n, sizeof *a->rows.v, comes_before, NULL);
    merge_equal_rows(a);
    return true;
}

static xpl_status_t analyze_allocator(const struct profile *p, struct xpl_memory_allocator *a,
                                      struct xpl_buf *out) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(p->in.limit);
    XPL_AUTO(free_sweep) struct sweep s = {0};
    xpl_address_map_init(&s.origins, p->in.limit);
    xpl_address_map_init(&s.active, p->in.limit);
    sort_by_time(a);
    a->peak_step = find_peak_step(p, a);
    a->samples = xpl_arena_array(&arena, XPL_MEMORY_MAX_SAMPLES, sizeof *a->samples);
    if (!a->samples) return fail_without_memory(p);
    XPL_TRY(sweep_events(p, a, &s, &arena));
    if (!list_active(p, a, &s, &arena)) return fail_without_memory(p);
    return xpl_memory_put_allocator(&p->in.reader, a, &arena, out, p->err);
}

// ---- the answer ----

static bool by_allocator_name(const void *ctx, const void *a, const void *b) {
    const struct xpl_memory_allocator *const *const x = a, *const *const y = b;
    (void)ctx;
    return xpl_str_cmp((*x)->name, (*y)->name) < 0;
}

static void put(struct xpl_buf *b, const char *z) {
    xpl_buf_str(b, xpl_str_from(z));
}

static xpl_status_t put_allocators(struct profile *p, struct xpl_buf *out) {
    put(out, "{\"memoryProfilePerAllocator\":{");
    xpl_std_sort(p->c.allocators.v, p->c.allocators.n, sizeof *p->c.allocators.v, by_allocator_name,
                 NULL);
    for (size_t i = 0; i < p->c.allocators.n; i++) {
        struct xpl_memory_allocator *const a = p->c.allocators.v[i];
        if (i) xpl_buf_putc(out, ',');
        XPL_TRY(analyze_allocator(p, a, out));
        xpl_sys_free(a->records);
        a->records = NULL;
    }
    put(out, "},\"numHosts\":1,\"memoryIds\":[");
    for (size_t i = 0; i < p->c.allocators.n; i++) {
        if (i) xpl_buf_putc(out, ',');
        xpl_json_str(out, p->c.allocators.v[i]->name, true);
    }
    put(out, "],\"version\":1,\"hloModules\":[");
    return XPL_OK;
}

static void put_module(const struct xpl_line *line, const struct xpl_event *ev, int64_t id,
                       struct xpl_buf *out) {
    const xpl_str_t plane = line->plane->name, device = XPL_STR("/device:");
    put(out, id ? ",{\"name\":" : "{\"name\":");
    xpl_json_str(out, xpl_event_get_md(line, ev)->name, true);
    put(out, ",\"startTimePs\":");
    xpl_json_proto_int64(out, ev->offset_ps);
    put(out, ",\"endTimePs\":");
    xpl_json_proto_int64(out, (int64_t)((uint64_t)ev->offset_ps + (uint64_t)ev->duration_ps));
    put(out, ",\"id\":");
    xpl_json_proto_int64(out, id);
    put(out, ",\"planeName\":");
    xpl_json_str(out, xpl_str_sub(plane, device.len, plane.len), true);
    xpl_buf_putc(out, '}');
}

// Runs of programs on TPUs, as a scale next to the memory's timeline (GenerateHloModules).
static xpl_status_t put_modules(const struct profile *p, const struct xpl_line *line, int64_t *id,
                                struct xpl_buf *out) {
    struct xpl_event_cursor c = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        put_module(line, &ev, (*id)++, out);
        if (ev.index % XPL_MEMORY_EVENTS_PER_CHECK == 0)
            XPL_TRY(xpl_memory_check_cancelled(&p->in, p->err));
    }
    return r == XPL_WIRE_MALFORMED ? xpl_events_error(&c, p->err) : XPL_OK;
}

static xpl_status_t put_all_modules(const struct profile *p, struct xpl_buf *out) {
    int64_t id = 0;
    for (uint32_t i = 0; i < p->in.xs->n_planes; i++) {
        const struct xpl_plane *const plane = &p->in.xs->planes[i];
        if (!xpl_str_starts(plane->name, XPL_STR("/device:TPU:"))) continue;
        for (uint32_t k = 0; k < plane->n_lines; k++)
            if (xpl_str_eq(plane->lines[k].name, XPL_STR(XPL_LINE_XLA_MODULES)))
                XPL_TRY(put_modules(p, &plane->lines[k], &id, out));
    }
    put(out, "]}");
    return XPL_OK;
}

xpl_status_t xpl_memory_profile(const struct xpl_xspace *xs, struct xpl_exec *exec, size_t limit,
                                struct xpl_buf *out, struct xpl_error *err) {
    XPL_AUTO(free_profile) struct profile p = {.err = err};
    p.in = (struct xpl_memory_input){.xs = xs, .exec = exec, .limit = limit};
    p.in.host = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    if (!p.in.host)
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "memory_profile: the profile has no plane %s, where allocations are recorded",
            XPL_PLANE_NAME_HOST_THREADS);
    xpl_memory_reader_init(&p.in.reader, p.in.host);
    xpl_memory_collection_init(&p.c, limit);
    XPL_TRY(xpl_memory_collect(&p.in, &p.c, err));
    XPL_TRY(put_allocators(&p, out));
    XPL_TRY(put_all_modules(&p, out));
    if (out->failed) return fail_without_memory(&p);
    return XPL_OK;
}
