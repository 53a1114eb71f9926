// SPDX-License-Identifier: Apache-2.0
// Statistics of an event as they are after preprocessing.
#include "analysis/trace/derived/impl.h"

bool xpl_derived_is_internal_event(enum xpl_event_type type) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
    switch (type) {
        case XPL_EVENT_MEMORY_ALLOCATION:
        case XPL_EVENT_MEMORY_DEALLOCATION:
        case XPL_EVENT_PREFETCH_PRODUCE:
        case XPL_EVENT_PREFETCH_CONSUME:
        case XPL_EVENT_PARALLEL_INTERLEAVE_PRODUCE:
        case XPL_EVENT_PARALLEL_INTERLEAVE_CONSUME:
        case XPL_EVENT_PARALLEL_INTERLEAVE_INITIALIZED_INPUT:
        case XPL_EVENT_PARALLEL_MAP_PRODUCE:
        case XPL_EVENT_PARALLEL_MAP_CONSUME:
        case XPL_EVENT_MAP_AND_BATCH_PRODUCE:
        case XPL_EVENT_MAP_AND_BATCH_CONSUME:
        case XPL_EVENT_PARSE_EXAMPLE_PRODUCE:
        case XPL_EVENT_PARSE_EXAMPLE_CONSUME: return true;
        default: return false;
    }
#pragma GCC diagnostic pop
}

static bool derived_is_internal_stat(enum xpl_stat_type type) {
    return type == XPL_STAT_PRODUCER_TYPE || type == XPL_STAT_PRODUCER_ID ||
           type == XPL_STAT_CONSUMER_TYPE || type == XPL_STAT_CONSUMER_ID ||
           type == XPL_STAT_IS_ROOT || type == XPL_STAT_FLOPS || type == XPL_STAT_PROGRAM_ID ||
           type == XPL_STAT_SYMBOL_ID;
}

XPL_ADDED_STAT_MD(md_group, XPL_STAT_GROUP_ID, "group_id");
XPL_ADDED_STAT_MD(md_flow, XPL_STAT_FLOW, "flow");
XPL_ADDED_STAT_MD(md_step_name, XPL_STAT_STEP_NAME, "step_name");
XPL_ADDED_STAT_MD(md_eager, XPL_STAT_IS_EAGER, "is_eager");

enum { PHASE_MD, PHASE_OWN, PHASE_ADDED, PHASE_END };

void xpl_derived_stats_begin(struct xpl_derived_stats *it, const struct xpl_derived_plane *p,
                             const struct xpl_derived_event *ev) {
    *it = (struct xpl_derived_stats){.plane = p, .ev = ev};
    const struct xpl_plane *const plane = p->recorded;
    if (ev->md >= plane->n_event_md) return;
    const struct xpl_event_md *const md = &plane->event_md[ev->md];
    if (md->has_stats) it->recorded = xpl_event_md_stats(plane, md);
    // Only the low bits of a run id reach the device [HostRunIdMutator].
    it->mask_run_id =
        !xpl_groups_arrived_grouped(p->space->groups) &&
        (md->type == XPL_EVENT_DO_ENQUEUE_PROGRAM || md->type == XPL_EVENT_COMPLETE_CALLBACKS ||
         md->type == XPL_EVENT_DO_ENQUEUE_CONTINUATION_PROGRAM);
}

// Replaces a recorded statistic by preprocessing's version; false to skip it.
static bool amend_stat(struct xpl_derived_stats *it, struct xpl_stat *s) {
    const struct xpl_derived_event *const ev = it->ev;
    for (uint32_t i = 0; i < ev->n_added; i++)
        if (ev->added[i].md->type == s->md->type && s->md->type != XPL_STAT_UNKNOWN) return false;
    if (s->md->type == XPL_STAT_GROUP_ID && ev->has_group && !it->group_done) {
        it->group_done = true;
        if (s->kind == XPL_VALUE_INT && s->i == ev->group_id) return true;
        *s = xpl_added_int(s->md, ev->group_id);
    } else if (s->md->type == XPL_STAT_STEP_NAME && ev->has_step_name && !it->step_name_done) {
        it->step_name_done = true;
        if (!xpl_str_eq(ev->step_name, xpl_stat_str(s)) && ev->step_name.len)
            *s = xpl_added_str(s->md, ev->step_name);
    } else if (s->md->type == XPL_STAT_IS_EAGER && ev->has_is_eager && !it->is_eager_done) {
        it->is_eager_done = true;
        if (xpl_groups_arrived_grouped(it->plane->space->groups)) return true;
        *s = xpl_added_int(s->md, ev->is_eager);
    } else if (s->md->type == XPL_STAT_RUN_ID && it->mask_run_id) {
        *s = xpl_added_int(s->md, (int64_t)(xpl_stat_int_or_uint(s) & ((1u << 27) - 1)));
    }
    return true;
}

static bool next_of_preprocessing(struct xpl_derived_stats *it, struct xpl_stat *ret) {
    const struct xpl_derived_event *const ev = it->ev;
    if (it->next < ev->n_added) {
        *ret = ev->added[it->next++];
        return true;
    }
    if (it->next < ev->n_added + ev->n_flows) {
        *ret = xpl_added_uint(&md_flow, xpl_flow_stat(&ev->flows[it->next++ - ev->n_added]));
        return true;
    }
    if (ev->has_group && !it->group_done) {
        it->group_done = true;
        *ret = xpl_added_int(&md_group, ev->group_id);
        return true;
    }
    if (ev->has_step_name && !it->step_name_done) {
        it->step_name_done = true;
        *ret = xpl_added_str(&md_step_name, ev->step_name);
        return true;
    }
    if (!ev->has_is_eager || it->is_eager_done) return false;
    it->is_eager_done = true;
    *ret = xpl_added_int(&md_eager, ev->is_eager);
    return true;
}

bool xpl_derived_stats_next(struct xpl_derived_stats *it, struct xpl_stat *ret) {
    while (it->phase < PHASE_ADDED) {
        if (it->recorded.p == it->recorded.end ||
            xpl_stats_next(&it->recorded, ret) != XPL_WIRE_FIELD) {
            it->phase++;
            if (it->phase == PHASE_OWN) it->recorded = it->ev->stats;
            continue;
        }
        if (ret->kind == XPL_VALUE_NONE || derived_is_internal_stat(ret->md->type)) continue;
        if (it->phase == PHASE_MD || amend_stat(it, ret)) return true;
    }
    return next_of_preprocessing(it, ret);
}
