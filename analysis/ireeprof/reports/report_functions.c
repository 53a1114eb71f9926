// SPDX-License-Identifier: Apache-2.0
// Report functions, which IREE does not have: the time of functions by their names and geometries,
// over all executables, devices and sessions, ranked in nanoseconds. Replays make their executables
// anew in every iteration, and ticks of two devices cannot be compared: IREE's report dispatch has
// a group for each.
#include <string.h>

#include "analysis/ireeprof/reports/dispatches.h"
#include "analysis/ireeprof/reports/durations.h"
#include "analysis/ireeprof/reports/impl.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

struct key {
    uint64_t name;       // xpl_strid_t
    uint32_t host, unit; // whose spans; NANOSECONDS, or TICKS of a device without a clock
    uint32_t workgroup_count[3], workgroup_size[3];
};
enum { NANOSECONDS, TICKS };
struct function {
    struct key key;
    struct xpl_iree_durations durations; // of valid dispatches
    uint64_t dispatches, executables, devices, tiles;
    int64_t tile_ns;
};
struct pair { // an executable or a device that a function ran on
    struct key key;
    uint64_t is_device, id;
};

struct functions {
    struct xpl_iree_run *run;
    struct xpl_iree_model model;
    struct xpl_arena arena; // of `names`
    struct xpl_intern *names;
    struct xpl_iree_table rows, pairs; // struct function, struct pair
    uint64_t *all;                     // durations; NULL in the pass that counts
};

static bool add_pair(struct functions *x, const struct key *key, uint64_t is_device, uint64_t id,
                     uint64_t *count) {
    const struct pair pair = {*key, is_device, id};
    bool is_new;
    if (!xpl_iree_table_put(&x->pairs, &pair, &is_new)) return false;
    *count += is_new;
    return true;
}

// The duration of a dispatch in its unit; host spans have no ticks.
static uint64_t measure(const struct functions *x, const struct xpl_iree_dispatch *e,
                        uint32_t *ret_unit) {
    const struct xpl_iree_fit fit = xpl_iree_model_fit(&x->model, e->physical_device_ordinal);
    int64_t ns = 0;
    *ret_unit = e->host || fit.valid ? NANOSECONDS : TICKS;
    if (e->host || !fit.valid) return e->duration;
    return xpl_iree_fit_ticks(&fit, e->duration, &ns) ? (uint64_t)ns : UINT64_MAX;
}

static bool add_dispatch(struct functions *x, const struct xpl_iree_dispatch *e) {
    const struct xpl_iree_function_key id = {e->executable_id, e->function_ordinal, 0};
    struct xpl_iree_key_text text;
    // Without the device: a function is the same one on another.
    const xpl_str_t name =
        xpl_iree_key(xpl_iree_model_function(&x->model, e->executable_id, e->function_ordinal),
                     XPL_IREE_NONE, id, &text);
    if (!xpl_iree_glob(name, x->run->options.filter)) return true;
    xpl_strid_t strid;
    // A long name is the bundle's, and stays.
    if (!xpl_intern_put_view(x->names, name, &strid)) return false;
    struct key key = {.name = strid.v, .host = e->host};
    memcpy(key.workgroup_count, e->workgroup_count, sizeof key.workgroup_count);
    memcpy(key.workgroup_size, e->workgroup_size, sizeof key.workgroup_size);
    const uint64_t duration = measure(x, e, &key.unit);
    bool is_new;
    struct function *const f = xpl_iree_table_put(&x->rows, &key, &is_new);
    if (!f) return false;
    if (x->all) {
        if (e->valid) xpl_iree_durations_add(&f->durations, x->all, duration);
        return true;
    }
    f->dispatches++;
    f->durations.n += e->valid;
    if (e->valid) {
        xpl_iree_add(&f->tiles, e->tile_count);
        xpl_iree_addi(&f->tile_ns, e->tile_duration_sum_ns);
    }
    return add_pair(x, &key, 0, e->executable_id, &f->executables) &&
           add_pair(x, &key, 1, e->physical_device_ordinal, &f->devices);
}

static xpl_status_t add_record(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct functions *const x = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_dispatch e;
    XPL_TRY(xpl_iree_model_follow(&x->model, r, err));
    if (r->chunk != XPL_IREE_DISPATCH_EVENTS && r->chunk != XPL_IREE_HOST_EVENTS) return XPL_OK;
    while (xpl_iree_next_dispatch(r, &items, &e)) {
        xpl_iree_model_enter(&x->model, r, e.physical_device_ordinal);
        if (!add_dispatch(x, &e)) XPL_RETURN_OOM(err, "functions of the bundle");
    }
    return XPL_OK;
}

// ---- rows ----

static struct xpl_iree_durations *durations_of(void *ctx, size_t i) {
    struct function *const f = xpl_iree_table_at(&((struct functions *)ctx)->rows, i);
    return &f->durations;
}

// Nanoseconds before ticks, of devices before those of hosts, most time first.
static int by_time(const void *pa, const void *pb) {
    const struct function *const *const a = pa, *const *const b = pb;
    if ((*a)->key.unit != (*b)->key.unit) return (*a)->key.unit < (*b)->key.unit ? -1 : 1;
    if ((*a)->key.host != (*b)->key.host) return (*a)->key.host < (*b)->key.host ? -1 : 1;
    if ((*a)->durations.sum != (*b)->durations.sum)
        return (*a)->durations.sum > (*b)->durations.sum ? -1 : 1;
    if ((*a)->key.name != (*b)->key.name) return (*a)->key.name < (*b)->key.name ? -1 : 1;
    return *a < *b ? -1 : *a > *b; // rows lie as they came
}

static void put_three(struct xpl_iree_rows *r, const char *name, const uint32_t v[3]) {
    xpl_row_open(r, name, '[');
    for (size_t i = 0; i < 3; i++)
        xpl_row_u64(r, NULL, v[i]);
    xpl_row_close(r, ']');
}

static void write_function(const struct functions *x, const struct function *f, size_t rank,
                           uint64_t total) {
    struct xpl_iree_rows *const r = x->run->rows;
    const bool ticks = f->key.unit == TICKS;
    const double sum = (double)f->durations.sum;
    xpl_row_begin(r, "type", "function");
    xpl_row_u64(r, "rank", rank);
    xpl_row_str(r, "key", xpl_intern_get(x->names, (xpl_strid_t){(uint32_t)f->key.name}));
    put_three(r, "workgroup_count", f->key.workgroup_count);
    put_three(r, "workgroup_size", f->key.workgroup_size);
    xpl_row_text(r, "timing_source",
                 f->key.host ? "host_execution_event" : "device_dispatch_event");
    xpl_row_text(r, "duration_unit", ticks ? "device_tick" : "ns");
    xpl_row_u64(r, "executables", f->executables);
    xpl_row_u64(r, "devices", f->devices);
    xpl_row_u64(r, "dispatches", f->dispatches);
    xpl_row_u64(r, "valid", f->durations.n);
    xpl_row_u64(r, ticks ? "total_ticks" : "total_ns", f->durations.sum);
    xpl_row_fixed(r, "share", total ? sum / (double)total : 0, 6);
    xpl_iree_durations_write(r, &f->durations, x->all, ticks ? "ticks" : "ns");
    xpl_row_u64(r, "tile_count", f->tiles);
    xpl_row_i64(r, "tile_duration_sum_ns", f->tile_ns);
    // How many workers were busy with it on average; of a device that is not known.
    if (f->key.host && sum > 0 && f->tiles)
        xpl_row_fixed(r, "parallelism", (double)f->tile_ns / sum, 3);
    else
        xpl_row_null(r, "parallelism");
    xpl_row_end(r);
}

static xpl_status_t write_rows(struct functions *x, struct xpl_error *err) {
    const size_t n = x->rows.n;
    const struct function **const order = xpl_sys_alloc((n + 1) * sizeof(const struct function *));
    uint64_t totals[2][2] = {{0}};
    if (!order) XPL_RETURN_OOM(err, "functions of the bundle");
    for (size_t i = 0; i < n; i++) {
        order[i] = xpl_iree_table_at(&x->rows, i);
        xpl_iree_add(&totals[order[i]->key.unit][order[i]->key.host], order[i]->durations.sum);
    }
    xpl_sort(order, n, sizeof(const struct function *), by_time);
    for (size_t i = 0; i < n; i++)
        write_function(x, order[i], i + 1, totals[order[i]->key.unit][order[i]->key.host]);
    xpl_sys_free((void *)(uintptr_t)order);
    return XPL_OK;
}

static xpl_status_t collect(struct functions *x, struct xpl_error *err) {
    x->names = xpl_intern_new(&x->arena, xpl_hash_seed());
    if (!x->names) XPL_RETURN_OOM(err, "functions of the bundle");
    XPL_TRY(xpl_iree_model_load(&x->model, x->run, err));
    xpl_iree_model_pass(&x->model);
    XPL_TRY(xpl_iree_walk(x->run, add_record, x, err));
    x->all = xpl_iree_durations_new(durations_of, x, x->rows.n);
    if (!x->all) XPL_RETURN_OOM(err, "functions of the bundle");
    xpl_iree_model_pass(&x->model);
    XPL_TRY(xpl_iree_walk(x->run, add_record, x, err));
    return write_rows(x, err);
}

xpl_status_t xpl_iree_report_functions(struct xpl_iree_run *run, struct xpl_error *err) {
    struct functions x = {
        .run = run,
        .rows = {.row_size = sizeof(struct function), .key_size = sizeof(struct key)},
        .pairs = {.row_size = sizeof(struct pair), .key_size = sizeof(struct pair)}};
    xpl_iree_model_init(&x.model);
    xpl_iree_model_by_session(&x.model, run->bundle);
    xpl_arena_init(&x.arena, SIZE_MAX);
    const xpl_status_t st = collect(&x, err);
    xpl_sys_free(x.all);
    xpl_iree_table_fini(&x.rows);
    xpl_iree_table_fini(&x.pairs);
    xpl_arena_fini(&x.arena);
    xpl_iree_model_fini(&x.model);
    return st;
}
