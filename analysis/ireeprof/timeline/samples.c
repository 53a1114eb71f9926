// SPDX-License-Identifier: Apache-2.0
// Samples of hardware counters and of metrics, in the middle of the time that they are of.
#include <math.h>

#include "analysis/ireeprof/timeline/impl.h"

static const struct xpl_iree_timeline_set *set_of(const struct xpl_iree_timeline *t, uint64_t id) {
    const struct xpl_iree_set_key key = {
        id, xpl_iree_model_scope(&t->x.model, XPL_IREE_SCOPE_COUNTERS, id, 0)};
    return xpl_iree_table_get(&t->sets, &key);
}

bool xpl_iree_timeline_sample(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                              const struct xpl_iree_item *item) {
    struct xpl_iree_counter_sample s;
    int64_t start, end;
    (void)h;
    xpl_iree_copy(item, &s);
    const struct xpl_iree_timeline_set *const set = set_of(t, s.counter_set_id);
    const uint64_t n = item->tail.len / sizeof(uint64_t);
    const uint32_t device = xpl_iree_device_or_first(s.physical_device_ordinal);
    if (!(s.flags & XPL_IREE_SAMPLE_HAS_TICKS) || !xpl_iree_ticks_valid(s.start_tick, s.end_tick) ||
        s.counter_set_id == 0 || !set || !set->described || set->record.sample_value_count != n ||
        !xpl_iree_timeline_ns(t, device, s.start_tick, &start) ||
        !xpl_iree_timeline_ns(t, device, s.end_tick, &end) || end < start)
        return true;
    const bool range = s.scope == XPL_IREE_SCOPE_RANGE;
    const int64_t ns = xpl_iree_midpoint(start, end > start ? end : end + (end < INT64_MAX));
    // Counters do not outnumber values.
    for (uint32_t i = set->first; i < set->first + set->n; i++) {
        const struct xpl_iree_timeline_counter *const c =
            (const struct xpl_iree_timeline_counter *)t->counters.v + i;
        if (xpl_iree_timeline_stopped(t)) return true;
        const uint32_t track = xpl_iree_track_counter(t, range, device, set, c);
        struct xpl_iree_event *const e = xpl_iree_timeline_add(
            t, range ? XPL_IREE_EVENT_RANGE : XPL_IREE_EVENT_COUNTER, ns, track, item->p);
        if (!e) return false;
        e->extra = i;
    }
    return true;
}

// Whether a value can be shown: its kind is known, and it is a number.
static bool is_number(const struct xpl_iree_metric_row *m, uint64_t bits) {
    double f64;
    memcpy(&f64, &bits, sizeof f64);
    return m->record.value_kind == XPL_IREE_METRIC_I64 ||
           m->record.value_kind == XPL_IREE_METRIC_U64 ||
           (m->record.value_kind == XPL_IREE_METRIC_F64 && isfinite(f64));
}

bool xpl_iree_timeline_metrics(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_metric_sample s;
    struct xpl_iree_metric_value v;
    xpl_iree_copy(item, &s);
    const uint32_t device = xpl_iree_device_or_first(s.physical_device_ordinal);
    const int64_t ns = xpl_iree_midpoint(s.host_time_begin_ns, s.host_time_end_ns);
    const uint32_t group = xpl_iree_track_metrics(t, device);
    if (group == UINT32_MAX) return false;
    if ((s.flags & XPL_IREE_METRIC_PARTIAL) &&
        !xpl_iree_timeline_add(t, XPL_IREE_EVENT_PARTIAL, ns, group, item->p))
        return false;
    for (uint32_t i = 0; (i + 1) * sizeof v <= item->tail.len; i++) {
        memcpy(&v, item->tail.ptr + i * sizeof v, sizeof v);
        const struct xpl_iree_metric_row *const m =
            xpl_iree_model_metric(&t->x.model, s.source_id, v.metric_id);
        if (!m || !is_number(m, v.value_bits)) continue;
        const uint32_t track = xpl_iree_track_metric(t, device, m);
        struct xpl_iree_event *const e =
            xpl_iree_timeline_add(t, XPL_IREE_EVENT_METRIC, ns, track, item->p);
        if (!e) return false;
        e->extra = i;
    }
    return true;
}
