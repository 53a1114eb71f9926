// SPDX-License-Identifier: Apache-2.0
// Tool op_list: all ops of the devices as they are, for programs that compare or sum them up.
// Ours; XProf has none.
#include <inttypes.h>

#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "base/json.h"

static void put_field(struct xpl_buf *out, const char *key, xpl_str_t text) {
    xpl_json_field(out, key, text);
    xpl_buf_putc(out, ',');
}

static void put_op(const struct xpl_op_metrics *m, struct xpl_buf *out) {
    xpl_buf_putc(out, '{');
    put_field(out, "name", m->name);
    put_field(out, "category", m->category);
    put_field(out, "framework_op", m->provenance);
    put_field(out, "expression", m->long_name);
    put_field(out, "source_file", m->source_info.file_name);
    xpl_buf_printf(
        out,
        "\"source_line\":%" PRId32 ",\"program_id\":\"%" PRIu64 "\",\"occurrences\":%" PRIu32
        ",\"time_ps\":%" PRIu64 ",\"self_time_ps\":%" PRIu64 "}",
        m->source_info.line_number, m->hlo_module_id, m->occurrences, m->time_ps, m->self_time_ps);
}

static xpl_status_t write_answer(const struct xpl_opstats *stats, const void *options,
                                 struct xpl_arena *scratch, struct xpl_buf *out,
                                 struct xpl_error *err) {
    const struct xpl_op_metrics_db *const db = &stats->device_op_metrics_db;
    bool first = true;
    (void)options;
    (void)scratch;
    (void)err;
    xpl_buf_str(out, XPL_STR("{\"ops\":["));
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        if (xpl_op_metrics_is_idle(&db->metrics_db.v[i])) continue;
        if (!first) xpl_buf_putc(out, ',');
        put_op(&db->metrics_db.v[i], out);
        first = false;
    }
    xpl_buf_str(out, XPL_STR("]}"));
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render(in, write_answer, out, err);
}

const struct xpl_tool xpl_tool_op_list = {
    .name = "op_list",
    .version = 1,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_COSTS,
    .ignores = XPL_IGNORES_XPROF_EXACT, // it says which hosts count for steps
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
