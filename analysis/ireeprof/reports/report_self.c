// SPDX-License-Identifier: Apache-2.0
// Report self, which IREE does not have: the self time of host spans. The span of an execution
// encloses those of its submission's operations, which IREE's reports add to it: here each
// nanosecond of a submission counts once. If regions name workers, also how busy these were.

#include "analysis/ireeprof/model.h"
#include "analysis/ireeprof/reports/impl.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

struct span {
    uint64_t submission_id, stream_id;
    int64_t start_ns, end_ns;
    uint32_t device, queue, group, session;
    bool encloses; // of an execution
};
struct group_key {
    uint64_t executable_id;
    // name: xpl_strid_t of the function's, where sessions may give functions one id.
    uint32_t device, function_ordinal, op, name;
};
struct group {
    struct group_key key;
    xpl_str_t name; // of the function
    uint64_t spans, total_ns, self_ns, tiles, tile_ns;
    uint64_t worker_ns; // of the spans, on all workers
    uint32_t workers;   // most of them
};
struct workers {
    struct workers_key {
        uint32_t device, session;
    } key;
    uint64_t count; // most that a region had
};
struct report {
    struct xpl_iree_run *run;
    struct xpl_iree_model model;
    struct xpl_iree_table groups, workers;
    struct xpl_arena arena; // of `names`
    struct xpl_intern *names;
    struct span *spans;
    size_t n, room;
};

// ---- collecting ----

static xpl_status_t count_spans(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct report *const x = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    struct xpl_iree_region_event e;
    bool is_new;
    XPL_TRY(xpl_iree_model_add(&x->model, x->run, r, err));
    if (r->chunk == XPL_IREE_HOST_EVENTS)
        x->room += r->payload.len / sizeof(struct xpl_iree_host_event);
    if (r->chunk != XPL_IREE_REGION_EVENTS) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        xpl_iree_copy(&item, &e);
        xpl_iree_model_enter(&x->model, r, e.physical_device_ordinal);
        const struct workers_key key = {e.physical_device_ordinal, x->model.session};
        struct workers *const w = xpl_iree_table_put(&x->workers, &key, &is_new);
        if (!w) XPL_RETURN_OOM(err, "workers of the bundle");
        if (e.worker_count > w->count) w->count = e.worker_count;
    }
    return XPL_OK;
}

// The group of a span: NULL on OOM.
static struct group *group_of(struct report *x, const struct xpl_iree_host_event *e) {
    const bool is_function = e->executable_id && e->function_ordinal != XPL_IREE_NONE;
    const struct xpl_iree_function_row *const f =
        is_function ? xpl_iree_model_function(&x->model, e->executable_id, e->function_ordinal)
                    : NULL;
    xpl_strid_t name = {0};
    bool is_new;
    if (f && x->model.by_session && !xpl_intern_put_view(x->names, f->name, &name)) return NULL;
    const struct group_key key = {.executable_id = is_function ? e->executable_id : 0,
                                  .device = e->physical_device_ordinal,
                                  .function_ordinal =
                                      is_function ? e->function_ordinal : XPL_IREE_NONE,
                                  .op = e->type,
                                  .name = name.v};
    struct group *const g = xpl_iree_table_put(&x->groups, &key, &is_new);
    // Of pages that are given back by the end as few as possible are read again.
    if (g && is_new && f) g->name = name.v ? xpl_intern_get(x->names, name) : f->name;
    return g;
}

static uint64_t count_workers(const struct report *x, uint32_t device) {
    const struct workers_key key = {device, x->model.session};
    const struct workers *const w = xpl_iree_table_get(&x->workers, &key);
    return w ? w->count : 0;
}

static bool add_span(struct report *x, const struct xpl_iree_host_event *e) {
    if (!xpl_iree_host_valid(e->start_host_time_ns, e->end_host_time_ns) || x->n == x->room)
        return true;
    struct group *const g = group_of(x, e);
    if (!g) return false;
    const uint64_t ns = (uint64_t)(e->end_host_time_ns - e->start_host_time_ns);
    const uint64_t workers = count_workers(x, e->physical_device_ordinal);
    uint64_t worker_ns;
    if (__builtin_mul_overflow(ns, workers, &worker_ns)) worker_ns = UINT64_MAX;
    g->spans++;
    xpl_iree_add(&g->total_ns, ns);
    xpl_iree_add(&g->worker_ns, worker_ns);
    if (workers > g->workers) g->workers = (uint32_t)workers;
    xpl_iree_add(&g->tiles, e->tile_count);
    if (e->tile_duration_sum_ns > 0) xpl_iree_add(&g->tile_ns, (uint64_t)e->tile_duration_sum_ns);
    x->spans[x->n++] = (struct span){
        .submission_id = e->submission_id,
        .stream_id = e->stream_id,
        .device = e->physical_device_ordinal,
        .queue = e->queue_ordinal,
        .session = x->model.session,
        .start_ns = e->start_host_time_ns,
        .end_ns = e->end_host_time_ns,
        .group = (uint32_t)((size_t)((const uint8_t *)g - x->groups.rows) / x->groups.row_size),
        .encloses = e->type == XPL_IREE_OP_EXECUTE};
    return true;
}

static xpl_status_t add_spans(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct report *const x = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    struct xpl_iree_host_event e;
    XPL_TRY(xpl_iree_model_follow(&x->model, r, err));
    if (r->chunk != XPL_IREE_HOST_EVENTS) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        xpl_iree_copy(&item, &e);
        xpl_iree_model_enter(&x->model, r, e.physical_device_ordinal);
        if (!add_span(x, &e)) XPL_RETURN_OOM(err, "spans of the bundle");
    }
    return XPL_OK;
}

// ---- self time ----

static int compare_submissions(const struct span *a, const struct span *b) {
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    if (a->queue != b->queue) return a->queue < b->queue ? -1 : 1;
    if (a->stream_id != b->stream_id) return a->stream_id < b->stream_id ? -1 : 1;
    if (a->session != b->session) return a->session < b->session ? -1 : 1;
    return (a->submission_id > b->submission_id) - (a->submission_id < b->submission_id);
}

// The spans within executions first, by their start.
static int by_submission(const void *pa, const void *pb) {
    const struct span *const a = pa, *const b = pb;
    const int c = compare_submissions(a, b);
    if (c) return c;
    if (a->encloses != b->encloses) return a->encloses - b->encloses;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
    return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static void add_self(struct report *x, const struct span *s, uint64_t within_ns) {
    struct group *const g = xpl_iree_table_at(&x->groups, s->group);
    const uint64_t ns = (uint64_t)(s->end_ns - s->start_ns);
    xpl_iree_add(&g->self_ns, ns - (within_ns < ns ? within_ns : ns));
}

// Nanoseconds of `at` within disjoint spans v[0..n) up to it; sums[i] is the length of those before
// i.
static uint64_t covered_before(const struct span *v, const uint64_t *sums, size_t n, int64_t at) {
    size_t lo = 0, hi = n; // the first that starts at `at` or later
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (v[mid].start_ns < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == 0) return 0;
    const int64_t end = v[lo - 1].end_ns < at ? v[lo - 1].end_ns : at;
    return sums[lo - 1] + (uint64_t)(end - v[lo - 1].start_ns);
}

// One submission: v[0..inner) ran on their own, the others are executions.
static void add_submission(struct report *x, struct span *v, size_t n, uint64_t *sums) {
    size_t inner = 0, merged = 0;
    for (; inner < n && !v[inner].encloses; inner++)
        add_self(x, &v[inner], 0);
    // Those that overlap become one: workers run at once.
    for (size_t i = 0; i < inner; i++) {
        if (merged && v[i].start_ns <= v[merged - 1].end_ns) {
            if (v[i].end_ns > v[merged - 1].end_ns) v[merged - 1].end_ns = v[i].end_ns;
            continue;
        }
        v[merged] = v[i];
        sums[merged] =
            merged ? sums[merged - 1] + (uint64_t)(v[merged - 1].end_ns - v[merged - 1].start_ns)
                   : 0;
        merged++;
    }
    for (size_t i = inner; i < n; i++)
        add_self(x, &v[i],
                 covered_before(v, sums, merged, v[i].end_ns) -
                     covered_before(v, sums, merged, v[i].start_ns));
}

// ---- rows ----

static int by_self(const void *pa, const void *pb) {
    const struct group *const *const a = pa, *const *const b = pb;
    if ((*a)->self_ns != (*b)->self_ns) return (*a)->self_ns > (*b)->self_ns ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

static void write_group(const struct report *x, const struct group *g, uint64_t all_ns) {
    struct xpl_iree_rows *const r = x->run->rows;
    const struct xpl_iree_function_key id = {g->key.executable_id, g->key.function_ordinal, 0};
    const double busy = g->tiles ? (double)g->worker_ns : 0;
    const char *const op = xpl_iree_name(XPL_IREE_NAMES_OP, g->key.op);
    const struct xpl_iree_function_row f = {.name = g->name};
    struct xpl_iree_key_text text;
    const xpl_str_t key =
        g->key.executable_id ? xpl_iree_key(&f, g->key.device, id, &text) : xpl_str_from(op);
    if (!xpl_iree_glob(key, x->run->options.filter)) return;
    xpl_row_begin(r, "type", "self_time");
    xpl_row_u64(r, "physical_device_ordinal", g->key.device);
    xpl_row_str(r, "key", key);
    xpl_row_text(r, "op", op);
    xpl_row_u64(r, "executable_id", g->key.executable_id);
    xpl_row_u64(r, "spans", g->spans);
    xpl_row_u64(r, "total_ns", g->total_ns);
    xpl_row_u64(r, "self_ns", g->self_ns);
    xpl_row_fixed(r, "self_share", all_ns ? (double)g->self_ns / (double)all_ns : 0, 6);
    xpl_row_u64(r, "tile_count", g->tiles);
    xpl_row_u64(r, "tile_duration_sum_ns", g->tile_ns);
    xpl_row_u64(r, "workers", g->workers);
    if (busy > 0)
        xpl_row_fixed(r, "worker_utilization", (double)g->tile_ns / busy, 6);
    else // no region tells of workers, or the operation has no tiles: not known, and no 0
        xpl_row_null(r, "worker_utilization");
    xpl_row_end(r);
}

static xpl_status_t write_rows(struct report *x, struct xpl_error *err) {
    const size_t n = x->groups.n;
    const struct group **const order = xpl_sys_alloc((n + 1) * sizeof(const struct group *));
    uint64_t all_ns = 0;
    if (!order) XPL_RETURN_OOM(err, "spans of the bundle");
    for (size_t i = 0; i < n; i++) {
        order[i] = xpl_iree_table_at(&x->groups, i);
        xpl_iree_add(&all_ns, order[i]->self_ns);
    }
    xpl_sort(order, n, sizeof(const struct group *), by_self);
    for (size_t i = 0; i < n; i++)
        write_group(x, order[i], all_ns);
    xpl_sys_free((void *)(uintptr_t)order);
    return XPL_OK;
}

static xpl_status_t collect(struct report *x, struct xpl_error *err) {
    x->names = xpl_intern_new(&x->arena, xpl_hash_seed());
    if (!x->names) XPL_RETURN_OOM(err, "spans of the bundle");
    XPL_TRY(xpl_iree_walk(x->run, count_spans, x, err));
    xpl_iree_model_pass(&x->model);
    x->spans = xpl_sys_alloc((x->room + 1) * sizeof *x->spans);
    uint64_t *const sums = xpl_sys_alloc((x->room + 1) * sizeof *sums);
    xpl_status_t st = XPL_OK;
    if (!x->spans || !sums) {
        xpl_sys_free(sums);
        XPL_RETURN_OOM(err, "spans of the bundle");
    }
    st = xpl_iree_walk(x->run, add_spans, x, err);
    if (st == XPL_OK) xpl_sort(x->spans, x->n, sizeof *x->spans, by_submission);
    for (size_t i = 0, end; st == XPL_OK && i < x->n; i = end) {
        for (end = i + 1; end < x->n && !compare_submissions(&x->spans[i], &x->spans[end]);)
            end++;
        add_submission(x, &x->spans[i], end - i, sums);
    }
    xpl_sys_free(sums);
    return st == XPL_OK ? write_rows(x, err) : st;
}

xpl_status_t xpl_iree_report_self(struct xpl_iree_run *run, struct xpl_error *err) {
    struct report x = {
        .run = run,
        .groups = {.row_size = sizeof(struct group), .key_size = sizeof(struct group_key)},
        .workers = {.row_size = sizeof(struct workers), .key_size = sizeof(struct workers_key)}};
    xpl_iree_model_init(&x.model);
    xpl_iree_model_by_session(&x.model, run->bundle);
    xpl_arena_init(&x.arena, SIZE_MAX);
    const xpl_status_t st = collect(&x, err);
    xpl_sys_free(x.spans);
    xpl_iree_table_fini(&x.groups);
    xpl_iree_table_fini(&x.workers);
    xpl_arena_fini(&x.arena);
    xpl_iree_model_fini(&x.model);
    return st;
}
