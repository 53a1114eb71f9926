// SPDX-License-Identifier: Apache-2.0
// Tool hlo_modules: the HLO programs of the session's hosts, as a JSON array.
#include <inttypes.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/message.h"
#include "analysis/tools/lib/hlo_lookup.h"
#include "base/json.h"

static void put_field(struct xpl_buf *out, const char *key, xpl_str_t value) {
    xpl_json_field(out, key, value);
    xpl_buf_putc(out, ',');
}

static void put_module(struct xpl_buf *out, const struct xpl_programs *w, bool first) {
    struct xpl_hlo_message p;
    uint32_t computations, instructions;
    xpl_hlo_message_read(w->proto, &p);
    xpl_hlo_module_count(xpl_hlo_bytes(&p, HLO_PROTO_MODULE), &computations, &instructions);
    xpl_buf_str(out, first ? XPL_STR("{") : XPL_STR(",\n{"));
    put_field(out, "module", w->entry->label);
    put_field(out, "name", w->entry->name);
    put_field(out, "host", w->from->name);
    xpl_buf_printf(out,
                   "\"program_id\":\"%" PRIu64 "\",\"bytes\":%" PRIu64 ",\"computations\":%" PRIu32
                   ",\"instructions\":%" PRIu32 "}",
                   w->entry->program_id, w->entry->length, computations, instructions);
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    struct xpl_programs w = xpl_programs_begin(in);
    bool first = true;
    xpl_buf_putc(out, '[');
    for (; !out->failed && xpl_programs_next(&w); first = false) {
        if (xpl_exec_cancelled(in->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "list of HLO modules cancelled");
        put_module(out, &w, first);
    }
    xpl_buf_str(out, XPL_STR("]\n"));
    if (out->failed) XPL_RETURN_OOM(err, "list of HLO modules");
    return XPL_OK;
}

const struct xpl_tool xpl_tool_hlo_modules = {
    .name = "hlo_modules",
    .version = 2,
    .needs = xpl_programs_needs,
    .facts = XPL_FACT_PROGRAMS,
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .reads_profile = true,
    .render = render,
};
