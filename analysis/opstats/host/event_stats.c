// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/event_stats.h"

static void store_stat(const struct xpl_host_plan *p, const struct xpl_stat *s,
                       struct host_event_stats *w) {
    switch ((int)s->md->type) {
        case XPL_STAT_INPUT_PIPELINE_STAGE_ID:
            if (!(w->has & XPL_HOST_STAGE_ID)) w->stage_id = xpl_stat_int(s);
            w->has |= XPL_HOST_STAGE_ID;
            break;
        case XPL_STAT_INPUT_PIPELINE_STAGE_NAME:
            w->stage_name = xpl_stat_str(s);
            w->has |= XPL_HOST_STAGE_NAME;
            break;
        case XPL_STAT_CONSUMER_TYPE:
            w->consumer_type = xpl_stat_int_or_uint(s), w->has_consumer_type = true;
            break;
        case XPL_STAT_CONSUMER_ID:
            w->consumer_id = xpl_stat_int_or_uint(s), w->has_consumer_id = true;
            break;
        case XPL_STAT_TF_OP:
            if (!(w->has & XPL_HOST_TF_OP)) w->tf_op = xpl_op_stat(s);
            w->has |= XPL_HOST_TF_OP;
            w->cpu.tf_op = xpl_stat_str(&w->tf_op);
            break;
        case XPL_STAT_TF_FUNCTION_CALL:
            w->call = xpl_stat_str(s);
            w->has |= XPL_HOST_TF_CALL;
            break;
        case XPL_STAT_TF_FUNCTION_TRACING_COUNT: w->tracing_count = xpl_stat_int(s); break;
        case XPL_STAT_HLO_OP:
            if (!p->cpu || xpl_stat_str(s).len == 0) break;
            w->cpu.hlo_op = xpl_op_stat(s);
            w->has |= XPL_HOST_HLO_OP;
            break;
        case XPL_STAT_HLO_MODULE:
            w->cpu.module = xpl_op_stat(s);
            w->cpu.has_module = xpl_stat_str(s).len != 0;
            break;
        case XPL_STAT_PROGRAM_ID:
            w->cpu.program_id = xpl_stat_int_or_uint(s);
            w->cpu.has_program_id = w->cpu.program_id != 0; // TensorFlow has 0 for all
            break;
        case XPL_STAT_RUN_ID: w->run_id = xpl_stat_int(s), w->has_run_id = p->cpu; break;
        default: break;
    }
}

void xpl_host_read_stats(const struct xpl_host_plan *p, const struct xpl_event *ev,
                         const uint8_t *first, struct host_event_stats *w) {
    const uint8_t tag = (uint8_t)(ev->stats.field << 3 | XPL_WIRE_LEN), *value;
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    size_t len;
    w->tracing_count = 0;
    w->has_consumer_type = w->has_consumer_id = w->has_run_id = false;
    // The head of a keyed op has it.
    const unsigned known = w->keyed ? XPL_HOST_ID_RUN : 0;
    w->cpu = (struct xpl_cpu_event){0};
    stats.p = first;
    while (stats.p != stats.end) {
        if (!(xpl_host_stat_role(p, stats.p, stats.end, tag, &len, &value) & ~known))
            stats.p += len;
        else if (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
            store_stat(p, &s, w);
    }
}
