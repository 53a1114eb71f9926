// SPDX-License-Identifier: Apache-2.0
#include "analysis/breakdown/events.h"

#include "base/arena.h"

static uint8_t role_of(enum xpl_stat_type type) {
    switch ((int)type) {
        case XPL_STAT_HLO_OP: return XPL_ROLE_HLO_OP;
        case XPL_STAT_CORRELATION_ID: return XPL_ROLE_CORRELATION;
        case XPL_STAT_STEP_NUM: return XPL_ROLE_STEP_NUM;
        case XPL_STAT_CONSUMER_TYPE: return XPL_ROLE_CONSUMER;
        case XPL_STAT_PROGRAM_ID: return XPL_ROLE_PROGRAM;
        default: return 0;
    }
}

bool xpl_roles_init(struct xpl_roles *r, const struct xpl_plane *plane,
                    enum xpl_op_layer (*judge)(xpl_str_t op), struct xpl_arena *arena) {
    *r = (struct xpl_roles){.plane = plane, .judge = judge};
    r->of = xpl_arena_array(arena, plane->n_stat_md, sizeof *r->of);
    r->judged = xpl_arena_zalloc(arena, plane->n_stat_md * sizeof *r->judged);
    if (!r->of || !r->judged) return false;
    for (uint32_t i = 0; i < plane->n_stat_md; i++)
        r->of[i] = role_of(plane->stat_md[i].type);
    return true;
}

static enum xpl_op_layer judge(const struct xpl_roles *r, xpl_str_t op) {
    return op.len ? r->judge(op) : XPL_LAYERS;
}

static enum xpl_op_layer judge_reference(const struct xpl_roles *r, uint32_t at) {
    if (!r->judged[at]) r->judged[at] = (uint8_t)(judge(r, r->plane->stat_md[at].name) + 1);
    return (enum xpl_op_layer)(r->judged[at] - 1);
}

enum xpl_op_layer xpl_roles_judge(const struct xpl_roles *r, const struct xpl_read_event *e) {
    struct xpl_stat s;
    if (!(e->roles & XPL_ROLE_HLO_OP)) return XPL_LAYERS;
    if (e->hlo_op && e->hlo_op != e->hlo_op_end && *e->hlo_op == XSTAT_REF << 3) {
        const struct xpl_varint v = xpl_varint_read(e->hlo_op + 1, e->hlo_op_end);
        if (v.p == e->hlo_op_end) return judge_reference(r, xpl_stat_md_at(r->plane, v.v));
    }
    if (!xpl_stats_get(e->ev.stats, XPL_STAT_HLO_OP, &s)) return XPL_LAYERS;
    return s.kind == XPL_VALUE_REF ? judge_reference(r, xpl_stat_md_at(r->plane, s.u))
                                   : judge(r, xpl_stat_str(&s));
}

uint64_t xpl_roles_program(const struct xpl_read_event *e) {
    struct xpl_stat s;
    if (!(e->roles & XPL_ROLE_PROGRAM)) return 0;
    if (e->program && e->program != e->program_end &&
        (*e->program == XSTAT_INT << 3 || *e->program == XSTAT_UINT << 3)) {
        const struct xpl_varint v =
            xpl_varint_wide(e->program + 1, xpl_input_end(e->ev.stats.plane));
        if (v.p == e->program_end) return v.v;
    }
    return xpl_stats_get(e->ev.stats, XPL_STAT_PROGRAM_ID, &s) ? xpl_stat_int_or_uint(&s) : 0;
}
