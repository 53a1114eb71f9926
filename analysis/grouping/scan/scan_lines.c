// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/scan/scan_lines.h"

#include "analysis/grouping/groups.h"
#include "analysis/grouping/plan/line_order.h"
#include "analysis/grouping/scan/line_reader.h"
#include "analysis/grouping/scan/line_state.h"
#include "analysis/grouping/scan/order_check.h"
#include "analysis/grouping/scan/scan_long.h"
#include "analysis/xplane/line_index.h"
#include "analysis/xplane/metadata.h"

// ---- a line in file order ----

// *ret_unsorted: the line must be scanned in another order, and nothing of this counts.
static xpl_status_t scan_in_order(struct line_state *st, struct xpl_exec *exec,
                                  bool *ret_unsorted) {
    struct scan *const s = st->s;
    struct order_check order = {.duration = UINT64_MAX, .offset = 0};
    struct xpl_event_cursor c = xpl_events_of(st->line);
    uint32_t chunk = 0;
    uint64_t next_chunk = 0;
    for (; c.index != c.stop; c.index++) {
        struct line_event e;
        if (XPL_UNLIKELY(c.index == next_chunk)) {
            XPL_TRY(xpl_grp_begin_chunk(st, chunk, exec));
            next_chunk = xpl_line_chunk_first(st->line, ++chunk);
        }
        if (XPL_UNLIKELY(!read_line_event(st->plan, st->line, &c, &e)))
            return xpl_grp_scan_failed(s, &c);
        if (st->plan->has_regions) {
            const uint64_t previous = order.offset;
            check_order(&order, &e.raw);
            if (XPL_UNLIKELY(e.role & (ROLE_START_REGION | ROLE_STOP_REGION)))
                xpl_grp_pass_marker(st, &order, &e, previous);
        }
        visit(st, &e.raw, e.at, e.mask, e.role);
        if (XPL_UNLIKELY(st->failed)) return xpl_grp_scan_failed(s, NULL);
    }
    *ret_unsorted = order.has_regions && order.unsorted;
    return XPL_OK;
}

// ---- a line out of order ----

static void visit_region(struct line_state *st, const struct placed *r) {
    pop_until_includes(st, span_of(st->line, r->offset, r->duration));
    st->lg->regions[st->lg->n_regions++] =
        (struct explicit_region){{r->offset, r->duration}, top_scope(st)};
}

static xpl_status_t scan_sorted(struct line_state *st, struct xpl_exec *exec) {
    struct scan *const s = st->s;
    struct placed_list list;
    uint32_t *const scope = xpl_arena_array(&s->nodes_arena, st->line->n_events, sizeof *scope);
    if (!scope) return xpl_grp_scan_failed(s, NULL);
    XPL_TRY(xpl_grp_place_events(st->plan, st->line, &st->scratch, &list, &s->err));
    st->lg->n_regions = 0;
    st->lg->regions = xpl_arena_array(&s->nodes_arena, list.n_regions, sizeof *st->lg->regions);
    if (!st->lg->regions) return xpl_grp_scan_failed(s, NULL);
    st->lg->explicit_scope = scope;
    st->none_pending = true; // cursors go in file order and cannot repeat this nesting
    for (size_t i = 0; i < list.v.n; i++) {
        const struct placed *const e = &list.v.v[i];
        struct xpl_raw_event raw;
        uint32_t mask;
        if ((i & 4095) == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(&s->err, XPL_CANCELLED, "cancelled");
        if (e->index == PLACED_REGION) {
            visit_region(st, e);
            continue;
        }
        if (!xpl_raw_event_at(st->line, e->at, &raw) || !xpl_grp_stats_mask(st->plan, &raw, &mask))
            return xpl_grp_scan_failed(s, NULL);
        const uint32_t role = st->plan->role_of[xpl_event_md_at(st->plan->plane, raw.md_id)];
        scope[e->index] = visit(st, &raw, e->at, mask, role);
        if (st->failed) return xpl_grp_scan_failed(s, NULL);
    }
    return XPL_OK;
}

// ---- lines ----

// One line; *ret_unsorted as for scan_in_order.
static xpl_status_t scan_line(struct scan *s, struct line_groups *lg, struct xpl_exec *exec,
                              bool *ret_unsorted) {
    struct line_state st;
    xpl_status_t status = XPL_OK;
    xpl_grp_begin_line(&st, s, lg);
    lg->first_node = (uint32_t)s->nodes.n;
    lg->chunk_tops = NULL;
    *ret_unsorted = false;
    if (lg->kind == LINE_EXPLICIT) {
        status = scan_sorted(&st, exec);
    } else {
        if (lg->line->n_chunks > 1) {
            lg->chunk_tops =
                xpl_arena_array(&s->nodes_arena, lg->line->n_chunks, sizeof *lg->chunk_tops);
            if (!lg->chunk_tops) status = xpl_grp_scan_failed(s, NULL);
        }
        st.watch = s->plan->watch;
        if (st.watch && st.watch->begin(st.watch->ctx, lg->line))
            st.plain_roles &= ~(uint32_t)ROLE_MARKED;
        const bool wide = s->wide && lg->line->n_chunks > 1;
        if (status == XPL_OK)
            status = (wide ? xpl_grp_scan_long : scan_in_order)(&st, exec, ret_unsorted);
        if (status == XPL_OK && st.watch) st.watch->end(st.watch->ctx, lg->line);
    }
    lg->n_nodes = (uint32_t)s->nodes.n - lg->first_node;
    xpl_arena_fini(&st.scratch);
    return status;
}

// Lines out of order show only when they were scanned; then all is scanned once more.
void xpl_grp_scan_lines(struct scan *s, struct xpl_exec *exec) {
    struct xpl_arena_budget *const budget = s->links_arena.budget;
    for (bool again = true; again && s->status == XPL_OK;) {
        again = false;
        xpl_grp_scan_fini(s);
        xpl_arena_init_part(&s->nodes_arena, budget);
        xpl_arena_init_part(&s->links_arena, budget);
        xpl_grp_init_lists(s);
        for (uint32_t i = 0; i < s->n_lines && s->status == XPL_OK; i++) {
            bool unsorted;
            s->status = scan_line(s, &s->lines[i], exec, &unsorted);
            if (unsorted) s->lines[i].kind = LINE_EXPLICIT;
            again |= unsorted;
        }
    }
}
