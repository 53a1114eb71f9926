// SPDX-License-Identifier: Apache-2.0
// Product perf_counters: the readings of hardware counters that a profile has.
#include <string.h>

#include "analysis/products/arena_value.h"
#include "analysis/xplane/xspace.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/parse.h"
#include "base/vec.h"

// What a kind of events says for all of them, read once: its list may be long.
struct kind {
    xpl_str_t name;
    struct xpl_stat value;
    uint64_t id;
    bool has_value;
};

struct reader {
    struct xpl_perf_counters_value *v;
    struct xpl_arena *arena; // of the value
    struct xpl_exec *exec;
    struct xpl_intern *texts;
    XPL_VEC(struct xpl_counter_device) devices;
    XPL_VEC(struct xpl_counter_sample) samples;
    XPL_VEC(struct xpl_counter) counters;
    unsigned since_check; // events
    struct xpl_arena *scratch;
    // Of the current plane:
    XPL_VEC(struct kind) kinds; // of events that were met
    struct xpl_map by_md;       // number of a kind
};
enum { EVENTS_PER_CHECK = 4096 };

static bool copy(struct reader *r, xpl_str_t s, xpl_str_t *ret) {
    xpl_strid_t id;
    if (!xpl_intern_put_view(r->texts, s, &id)) return false;
    *ret = xpl_intern_get(r->texts, id);
    return true;
}

// ---- events ----

// XProf sorts the events of tensor cores by time, longer ones first.
static bool is_sorted(const struct xpl_plane *p) {
    return p->kind == XPL_PLANE_TPU_CORE;
}

// NULL: out of memory.
static const struct kind *kind_of(struct reader *r, const struct xpl_line *l,
                                  const struct xpl_event *ev) {
    bool is_new;
    uint64_t *const at = xpl_map_put(r->scratch, &r->by_md, ev->md, 0, &is_new);
    if (!at) return NULL;
    if (!is_new) return &r->kinds.v[*at];
    const struct xpl_event_md *const md = xpl_event_get_md(l, ev);
    const struct xpl_stats stats = xpl_event_md_stats(l->plane, md);
    struct kind *const k = xpl_vec_push(r->scratch, &r->kinds);
    struct xpl_stat id;
    if (!k) return NULL;
    *k = (struct kind){0};
    k->has_value = xpl_stats_get(stats, XPL_STAT_COUNTER_VALUE, &k->value);
    if (xpl_stats_get(stats, XPL_STAT_PERFORMANCE_COUNTER_ID, &id))
        k->id = xpl_stat_int_or_uint(&id);
    *at = r->kinds.n - 1;
    return copy(r, md->name, &k->name) ? k : NULL;
}

static bool copy_text(struct reader *r, const struct xpl_event *ev, enum xpl_stat_type type,
                      xpl_str_t *ret) {
    struct xpl_stat s;
    return !xpl_stats_get(ev->stats, type, &s) || copy(r, xpl_stat_str(&s), ret);
}

static bool add_counter(struct reader *r, const struct xpl_line *l, const struct xpl_event *ev) {
    const struct kind *const kind = kind_of(r, l, ev);
    struct xpl_stat value, id;
    if (!kind) return false;
    struct xpl_counter c = {.id = kind->id, .name = kind->name};
    c.on_event = xpl_stats_get(ev->stats, XPL_STAT_COUNTER_VALUE, &value);
    if (!c.on_event) {
        if (!kind->has_value) return true;
        value = kind->value;
    }
    if (xpl_stats_get(ev->stats, XPL_STAT_PERFORMANCE_COUNTER_ID, &id))
        c.id = xpl_stat_int_or_uint(&id);
    if (!c.id) c.id = (uint64_t)xpl_event_get_md(l, ev)->id;
    c.is_double = value.kind == XPL_VALUE_DOUBLE;
    if (c.is_double)
        c.d = value.d;
    else
        c.u = xpl_stat_int_or_uint(&value);
    if (is_sorted(l->plane)) {
        c.begin_ps = ev->offset_ps;
        c.duration_ps = ev->duration_ps;
    }
    struct xpl_counter *const to = xpl_vec_push(r->arena, &r->counters);
    if (!to) return false;
    const bool ok = copy_text(r, ev, XPL_STAT_PERFORMANCE_COUNTER_DESCRIPTION, &c.description) &&
                    copy_text(r, ev, XPL_STAT_PERFORMANCE_COUNTER_SETS, &c.sets);
    *to = c;
    return ok;
}

static xpl_status_t check_time(struct reader *r, struct xpl_error *err) {
    if (++r->since_check < EVENTS_PER_CHECK) return XPL_OK;
    r->since_check = 0;
    if (xpl_exec_cancelled(r->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "counters cancelled");
    return XPL_OK;
}

static xpl_status_t add_line(struct reader *r, const struct xpl_line *l, struct xpl_error *err) {
    struct xpl_counter_sample s = {.id = l->id, .first = r->counters.n};
    struct xpl_event_cursor c = xpl_events_of(l);
    struct xpl_event ev;
    enum xpl_wire_result got;
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        if (ev.duration_ps > s.longest_ps) s.longest_ps = ev.duration_ps;
        if (!add_counter(r, l, &ev)) XPL_RETURN_OOM(err, "counters");
        XPL_TRY(check_time(r, err));
    }
    if (got != XPL_WIRE_END) return xpl_events_error(&c, err);
    s.n = r->counters.n - s.first;
    if (!s.n) return XPL_OK;
    struct xpl_counter_sample *const to = xpl_vec_push(r->arena, &r->samples);
    if (!to || !copy(r, l->name, &s.name)) XPL_RETURN_OOM(err, "counters");
    *to = s;
    return XPL_OK;
}

// ---- devices ----

// Duration of the line's first event that has one, 0: none.
static xpl_status_t first_duration(struct reader *r, const struct xpl_line *l, int64_t *ret,
                                   struct xpl_error *err) {
    struct xpl_event_cursor c = xpl_events_of(l);
    struct xpl_event ev;
    enum xpl_wire_result got;
    int64_t begin = INT64_MAX;
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        XPL_TRY(check_time(r, err));
        if (ev.duration_ps <= 0 || ev.offset_ps > begin) continue;
        if (*ret && !is_sorted(l->plane)) continue;
        if (ev.offset_ps == begin && ev.duration_ps <= *ret) continue;
        begin = ev.offset_ps;
        *ret = ev.duration_ps;
    }
    return got == XPL_WIRE_END ? XPL_OK : xpl_events_error(&c, err);
}

static xpl_status_t first_op(struct reader *r, const struct xpl_plane *p, int64_t *ret,
                             struct xpl_error *err) {
    static const char *const lines[] = {XPL_LINE_XLA_OPS, XPL_LINE_STEPS};
    *ret = 0;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        for (uint32_t i = 0; i < p->n_lines && !*ret; i++)
            if (xpl_str_eq(p->lines[i].name, xpl_str_from(lines[k])))
                XPL_TRY(first_duration(r, &p->lines[i], ret, err));
    return XPL_OK;
}

static bool has_counters(const struct xpl_plane *p) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == XPL_STAT_COUNTER_VALUE) return true;
    return false;
}

// What the plane says of the device.
static bool describe(struct reader *r, const struct xpl_plane *p, struct xpl_counter_device *d) {
    struct xpl_stats stats = p->stats;
    struct xpl_stat s;
    int64_t chip = -1;
    xpl_str_t type = {0};
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        if (s.md->type == XPL_STAT_GLOBAL_CHIP_ID) chip = (int64_t)xpl_stat_int_or_uint(&s);
        if (s.md->type == XPL_STAT_DEVICE_ID) d->device = (int64_t)xpl_stat_int_or_uint(&s);
        if (s.md->type == XPL_STAT_DEVICE_TYPE_STRING) type = xpl_stat_str(&s);
    }
    d->chip = chip != -1 ? chip : d->device;
    const size_t prefix = sizeof "/device:TPU:" - 1;
    char number[32];
    const xpl_str_t rest = xpl_str_sub(p->name, prefix, sizeof number);
    if (rest.len) memcpy(number, rest.ptr, rest.len); // before it is examined
    if (p->name.len - prefix <= sizeof number)
        (void)xpl_parse_int((xpl_str_t){number, rest.len}, INT64_MIN, INT64_MAX, &d->number);
    return copy(r, type, &d->type);
}

static xpl_status_t add_plane(struct reader *r, const struct xpl_plane *p, struct xpl_error *err) {
    const bool tpu = xpl_str_starts(p->name, XPL_STR("/device:TPU:"));
    if (!tpu && !xpl_str_starts(p->name, XPL_STR("/device:GPU:"))) return XPL_OK;
    struct xpl_counter_device d = {.tpu = tpu, .device = -1, .number = -1, .first = r->samples.n};
    if (!describe(r, p, &d)) XPL_RETURN_OOM(err, "counters");
    r->kinds.n = 0;
    r->by_md = (struct xpl_map){0};
    if (has_counters(p))
        for (uint32_t i = 0; i < p->n_lines; i++)
            XPL_TRY(add_line(r, &p->lines[i], err));
    d.n = r->samples.n - d.first;
    if (tpu && d.n) XPL_TRY(first_op(r, p, &d.first_ps, err));
    struct xpl_counter_device *const to = xpl_vec_push(r->arena, &r->devices);
    if (!to) XPL_RETURN_OOM(err, "counters");
    *to = d;
    return XPL_OK;
}

// ---- the product ----

static xpl_status_t fill(const struct xpl_xspace *xs, const struct xpl_product_input *in,
                         void *value, struct xpl_error *err) {
    struct xpl_perf_counters_value *const v = value;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(in->limit);
    struct reader r = {.v = v, .arena = &v->own.arena, .exec = in->exec, .scratch = &scratch};
    r.texts = xpl_intern_new(r.arena, xpl_hash_seed());
    if (!r.texts) XPL_RETURN_OOM(err, "counters");
    for (uint32_t i = 0; i < xs->n_planes; i++)
        XPL_TRY(add_plane(&r, &xs->planes[i], err));
    v->devices = r.devices.v;
    v->n_devices = r.devices.n;
    v->samples = r.samples.v;
    v->n_samples = r.samples.n;
    v->counters = r.counters.v;
    v->n_counters = r.counters.n;
    return XPL_OK;
}

static const struct xpl_arena_value_kind kKind = {
    .size = sizeof(struct xpl_perf_counters_value), .what = "counters", .fill = fill};

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    return xpl_arena_value_make(&kKind, in, ret, err);
}

const struct xpl_product xpl_product_perf_counters = {
    .name = "perf_counters",
    .version = 1,
    .residency = XPL_RESIDENCY_MEMORY,
    .make = make,
    .size = xpl_arena_value_size,
    .free = xpl_arena_value_free,
};
