// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/steps/recorded_steps.h"

#include "analysis/grouping/cursor.h"
#include "analysis/grouping/plan/planes.h"
#include "base/exec.h"

static void set_own_stats(struct xpl_step_event *s) {
    struct xpl_stat st, duration;
    if (xpl_stats_get(s->ev.stats, XPL_STAT_STEP_NAME, &st)) s->step_name = xpl_stat_str(&st);
    if (xpl_stats_get(s->ev.stats, XPL_STAT_DEVICE_OFFSET_PS, &st) &&
        xpl_stats_get(s->ev.stats, XPL_STAT_DEVICE_DURATION_PS, &duration)) {
        s->has_device_time = true;
        s->device_offset_ps = (int64_t)xpl_stat_int_or_uint(&st);
        s->device_duration_ps = (int64_t)xpl_stat_int_or_uint(&duration);
    }
    if (xpl_stats_get(s->ev.stats, XPL_STAT_STEP_IDLE_TIME_PS, &st)) {
        s->has_idle_time = true;
        s->step_idle_time_ps = xpl_stat_int_or_uint(&st);
    }
}

// All events of a line, with the groups that to_visit or their own stats gave them.
xpl_status_t xpl_grp_read_steps(const struct xpl_groups *g, const struct xpl_line *line,
                                struct xpl_arena *temp, struct xpl_step_event *to,
                                struct xpl_error *err) {
    struct xpl_event_cursor c;
    struct xpl_group_cursor *groups;
    struct xpl_event ev;
    enum xpl_wire_result r;
    XPL_TRY(xpl_group_cursor_new(g, line, temp, &groups, err));
    xpl_grp_cursor_no_fill(groups);
    xpl_events_begin(&c, line);
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group eg;
        if ((ev.index & 4095) == 0 && xpl_exec_cancelled(g->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        xpl_group_cursor_next(groups, &ev, &eg);
        *to = (struct xpl_step_event){
            .ev = ev,
            .line = line,
            .name = xpl_event_get_md(line, &ev)->name,
            .step_name = {"", 0},
            .has_group = eg.has_group,
            .group_id = eg.group_id,
            .begin_ps = xpl_event_begin_ps(line, &ev),
            .duration_ps = ev.duration_ps,
        };
        set_own_stats(to++);
    }
    if (r == XPL_WIRE_MALFORMED || c.index != c.stop) return xpl_events_error(&c, err);
    return XPL_OK;
}

// The step lines of a space that arrived grouped, or of one that is not grouped at all.
xpl_status_t xpl_grp_keep_recorded_steps(struct xpl_groups *g, struct plane_groups *pg,
                                         struct xpl_error *err) {
    const struct xpl_plane *const p = pg->plan.plane;
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (xpl_grp_is_step_line(&p->lines[i])) n += p->lines[i].n_events;
    pg->steps_recorded = true;
    if (n == 0) return XPL_OK;
    pg->steps = xpl_arena_array(g->arena, n, sizeof *pg->steps);
    if (!pg->steps) XPL_RETURN_OOM(err, "device steps");
    for (uint32_t i = 0; i < p->n_lines; i++) {
        if (!xpl_grp_is_step_line(&p->lines[i])) continue;
        XPL_TRY(xpl_grp_read_steps(g, &p->lines[i], g->arena, pg->steps + pg->n_steps, err));
        pg->n_steps += p->lines[i].n_events;
    }
    return XPL_OK;
}
