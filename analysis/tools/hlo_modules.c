// SPDX-License-Identifier: Apache-2.0
// Tool hlo_modules: the HLO programs of the session's hosts, as a JSON array or for a person.
#include <inttypes.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/message.h"
#include "analysis/tools/lib/hlo_lookup.h"
#include "base/json.h"
#include "base/text/utf8.h"

struct hlo_modules_options {
    struct xpl_common_options common; // every tool's come first
    int format;
};
enum { JSON, TEXT }; // format

static const struct xpl_tool_option kOptions[] = {
    {.key = "format",
     .type = XPL_OPTION_CHOICE,
     .offset = offsetof(struct hlo_modules_options, format),
     .values = "json|text",
     .preset = "json",
     .help = "a JSON array, or a text table"},
};

// Names come from profiles: none drives a terminal.
static void put_plain(struct xpl_buf *out, xpl_str_t s) {
    for (size_t i = 0, used; i < s.len; i += used)
        xpl_buf_str(out, xpl_utf8_shown(xpl_str_sub(s, i, SIZE_MAX), &used));
}

static void put_row(struct xpl_buf *out, const struct xpl_programs *w, uint32_t computations,
                    uint32_t instructions) {
    xpl_buf_printf(out, "%12" PRIu64 " %12" PRIu32 " %12" PRIu32 "  ", w->entry->length,
                   computations, instructions);
    put_plain(out, w->entry->label);
    if (w->in->n_hosts > 1) {
        xpl_buf_str(out, XPL_STR("  "));
        put_plain(out, w->from->name);
    }
    xpl_buf_putc(out, '\n');
}

static void put_field(struct xpl_buf *out, const char *key, xpl_str_t value) {
    xpl_json_field(out, key, value);
    xpl_buf_putc(out, ',');
}

static void put_module(struct xpl_buf *out, const struct xpl_programs *w, int format, bool first) {
    struct xpl_hlo_message p;
    uint32_t computations, instructions;
    xpl_hlo_message_read(w->proto, &p);
    xpl_hlo_module_count(xpl_hlo_bytes(&p, HLO_PROTO_MODULE), &computations, &instructions);
    if (format == TEXT) {
        put_row(out, w, computations, instructions);
        return;
    }
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
    const int format = ((const struct hlo_modules_options *)in->options)->format;
    bool first = true;
    if (format == JSON)
        xpl_buf_putc(out, '[');
    else
        xpl_buf_printf(out, "%12s %12s %12s  %s\n", "BYTES", "COMPUTATIONS", "INSTRUCTIONS",
                       in->n_hosts > 1 ? "MODULE(PROGRAM ID)  HOST" : "MODULE(PROGRAM ID)");
    for (; !out->failed && xpl_programs_next(&w); first = false) {
        if (xpl_exec_cancelled(in->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "list of HLO modules cancelled");
        put_module(out, &w, format, first);
    }
    if (format == JSON) xpl_buf_str(out, XPL_STR("]\n"));
    if (out->failed) XPL_RETURN_OOM(err, "list of HLO modules");
    return XPL_OK;
}

static const char *content_type(const void *options) {
    const struct hlo_modules_options *const o = options;
    return o->format == TEXT ? "text/plain; charset=utf-8" : "application/json";
}

const struct xpl_tool xpl_tool_hlo_modules = {
    .name = "hlo_modules",
    .version = 2,
    .needs = xpl_programs_needs,
    .facts = XPL_FACT_PROGRAMS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct hlo_modules_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/json",
    .content_type_of = content_type,
    .reads_profile = true,
    .render = render,
};
