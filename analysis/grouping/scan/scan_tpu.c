// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/scan/scan_tpu.h"

#include "analysis/grouping/plan/event_links.h"
#include "analysis/grouping/scan/line_state.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/metadata.h"

static void tpu_links(struct line_state *st, const struct xpl_line *line,
                      const struct scan_stats *ss, uint32_t role, uint32_t node) {
    struct event_links links;
    xpl_grp_event_links(st->plan, line, ss, role, &links);
    if (links.producer) xpl_grp_push_link(st, &st->s->producers, links.producer_key, node);
    if (links.consumer)
        xpl_grp_push_link(st, &st->s->consumers, links.consumer_key,
                          LINK_CONSUMER | node << LINK_NODE_SHIFT);
}

static xpl_status_t tpu_nodes(struct line_state *st, struct span *spans, struct xpl_exec *exec) {
    struct scan *const s = st->s;
    struct xpl_event_cursor c = xpl_events_of(st->line);
    for (; c.index != c.stop; c.index++) {
        xpl_bytes_t message;
        struct xpl_raw_event raw;
        struct scan_stats ss;
        if ((c.index & 4095) == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(&s->err, XPL_CANCELLED, "cancelled");
        c.p = xpl_find_message(c.p, c.end, XLINE_EVENTS);
        const uint8_t *p = c.p;
        if (xpl_next_message(&p, c.end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD ||
            !xpl_raw_event_read(message, c.end, &raw) || !xpl_grp_read_stats(s->plan, &raw, &ss))
            return xpl_grp_scan_failed(s, &c);
        const uint32_t role = s->plan->role_of[xpl_event_md_at(s->plan->plane, raw.md_id)];
        uint32_t flags = xpl_grp_node_flags(&ss, role) | NODE_CONSUMES | NODE_IMPLICIT;
        if (role & ROLE_EAGER) flags |= xpl_grp_eager_flags(st, &raw);
        const uint32_t self =
            xpl_grp_new_node(st, (uint64_t)(c.p - st->line->message.ptr), 0, 0, flags);
        if (st->failed) return xpl_grp_scan_failed(s, NULL);
        spans[c.index] = span_of(st->line, raw.offset_ps, raw.duration_ps);
        tpu_links(st, st->line, &ss, role, self - 1);
        if (!(role & ROLE_KNOWN) && (ss.mask & SC_BIT(SC_CORRELATION)))
            xpl_grp_push_pair(
                st, (struct pair){stats_int_or_uint(&ss, SC_CORRELATION), self - 1, PAIR_KERNEL});
        c.p = p;
    }
    return st->failed ? xpl_grp_scan_failed(s, NULL) : XPL_OK;
}

// Links of the other lines go to the grouping event that encloses them.
static xpl_status_t tpu_credit(struct line_state *st, const struct xpl_line *line,
                               const struct span *spans, struct xpl_exec *exec) {
    struct scan *const s = st->s;
    const uint64_t n = st->line->n_events;
    struct xpl_event_cursor c = xpl_events_of(line);
    uint64_t parent = 0;
    for (; c.index != c.stop; c.index++) {
        xpl_bytes_t message;
        struct xpl_raw_event raw;
        struct scan_stats ss;
        if ((c.index & 4095) == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(&s->err, XPL_CANCELLED, "cancelled");
        c.p = xpl_find_message(c.p, c.end, XLINE_EVENTS);
        const uint8_t *p = c.p;
        if (xpl_next_message(&p, c.end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD ||
            !xpl_raw_event_read(message, c.end, &raw) || !xpl_grp_read_stats(s->plan, &raw, &ss))
            return xpl_grp_scan_failed(s, &c);
        const struct span span = span_of(line, raw.offset_ps, raw.duration_ps);
        while (parent < n && spans[parent].end <= span.begin)
            parent++;
        if (parent == n) break;
        const uint32_t role = s->plan->role_of[xpl_event_md_at(s->plan->plane, raw.md_id)];
        if ((ss.mask || role) && span_includes(spans[parent], span))
            tpu_links(st, line, &ss, role, (uint32_t)parent);
        if (st->failed) return xpl_grp_scan_failed(s, NULL);
        c.p = p;
    }
    return XPL_OK;
}

static bool has_tpu_links(const struct plan *p) {
    return (p->classes & (SC_PRODUCER | SC_CONSUMER | SC_BIT(SC_RUN_ID) | SC_BIT(SC_REQUEST_ID))) ||
           (p->roles & (ROLE_EXECUTOR | ROLE_TPU_EXECUTE));
}

void xpl_grp_scan_tpu(struct scan *s, struct xpl_exec *exec) {
    struct line_state st;
    const struct xpl_plane *const plane = s->plan->plane;
    xpl_grp_begin_line(&st, s, &s->lines[0]);
    xpl_grp_init_lists(s);
    struct span *const spans = xpl_arena_array(&st.scratch, st.line->n_events, sizeof *spans);
    s->status = spans ? tpu_nodes(&st, spans, exec) : xpl_grp_scan_failed(s, NULL);
    for (uint32_t i = 0; s->status == XPL_OK && i < plane->n_lines; i++)
        if (&plane->lines[i] != st.line && has_tpu_links(s->plan))
            s->status = tpu_credit(&st, &plane->lines[i], spans, exec);
    s->lines[0].first_node = 0;
    s->lines[0].n_nodes = (uint32_t)s->nodes.n;
    xpl_arena_fini(&st.scratch);
}
