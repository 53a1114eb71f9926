// SPDX-License-Identifier: Apache-2.0
// Tool memory_viewer: the memory that an HLO program needs while it runs, and its holders at the
// peak.  Options by XProf's names (XProf: convert/hlo_to_tools_data.cc).
#include "analysis/hlo/fields.h"
#include "analysis/tools/lib/hlo_lookup.h"
#include "analysis/tools/memory_viewer/impl.h"
#include "base/cleanup.h"
#include "base/text/parse.h"

struct memory_viewer_options {
    struct xpl_common_options common; // every tool's come first
    xpl_str_t module_name, program_id, memory_space, other;
    bool timeline;
    int view;
};
enum { XPROF, LINES, OPS }; // view

#define MEMBER(name) offsetof(struct memory_viewer_options, name)
static const struct xpl_tool_option kOptions[] = {
    {.key = "memory_space",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(memory_space),
     .values = "NUMBER",
     .preset = "0",
     .help = "memory space; 0: the device's main memory; 0 if not a number"},
    {.key = "module_name",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(module_name),
     .values = "NAME(ID)",
     .help = "the program; hlo_modules lists them"},
    {.key = "other",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(other),
     .values = "NAME(ID)|ID",
     .ours = true,
     .help = "with view=lines or ops: the program to compare with"},
    {.key = "program_id",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(program_id),
     .values = "ID",
     .help = "the program, if module_name is empty"},
    {.key = "view",
     .type = XPL_OPTION_CHOICE,
     .offset = MEMBER(view),
     .values = "xprof|lines|ops",
     .preset = "xprof",
     .ours = true,
     .help = "XProf's answer, or a table of the memory at the peak, by source line or by op"},
    {.key = "view_memory_allocation_timeline",
     .type = XPL_OPTION_BOOL,
     .offset = MEMBER(timeline),
     .values = "true|false",
     .preset = "false",
     .help = "a page that shows the heap over time, not JSON"},
};

static int64_t space_of(xpl_str_t text) {
    int64_t v;
    return xpl_parse_int(xpl_str_strip(text), INT32_MIN, INT32_MAX, &v) ? v : 0;
}

// One option takes a label or a program id, as `xplanectl hlo RUN MODULE` does.
static xpl_status_t find_other(const struct xpl_tool_input *in, xpl_str_t name,
                               struct xpl_programs *ret, struct xpl_error *err) {
    const xpl_str_t none = {"", 0};
    size_t digits = 0;
    while (digits < name.len && name.ptr[digits] >= '0' && name.ptr[digits] <= '9')
        digits++;
    return digits == name.len ? xpl_programs_find(in, none, name, ret, err)
                              : xpl_programs_find(in, name, none, ret, err);
}

static xpl_status_t write_holders(const struct xpl_tool_input *in, struct memview *v,
                                  struct xpl_error *err) {
    const struct memory_viewer_options *const o = in->options;
    struct xpl_hlo_memory *other = NULL;
    struct xpl_programs found;
    if (o->other.len) {
        XPL_TRY(find_other(in, o->other, &found, err));
        XPL_TRY(xpl_hlo_memory_read(found.proto, v->m->color, in->exec, v->arena, &other, err));
    }
    return xpl_memview_holders(v, other, o->view == OPS, err);
}

static xpl_status_t write_answer(const struct xpl_tool_input *in, struct memview *v,
                                 struct xpl_error *err) {
    const struct memory_viewer_options *const o = in->options;
    v->cache = xpl_hlo_text_cache_new(v->arena);
    if (!v->cache) XPL_RETURN_OOM(err, "memory of an HLO module");
    if (o->view != XPROF && !o->timeline) return write_holders(in, v, err);
    XPL_TRY(xpl_memview_blocks(v->m, v->arena, &v->blocks, err));
    return o->timeline ? xpl_memview_timeline(v, err) : xpl_memview_json(v, err);
}

static xpl_status_t memory_viewer_render(const struct xpl_tool_input *in, struct xpl_buf *out,
                                         struct xpl_error *err) {
    const struct memory_viewer_options *const o = in->options;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(in->limit);
    struct xpl_programs found;
    struct xpl_hlo_memory *m;
    struct xpl_hlo_message p;
    XPL_TRY(xpl_programs_find(in, o->module_name, o->program_id, &found, err));
    XPL_TRY(xpl_hlo_memory_read(found.proto, space_of(o->memory_space), in->exec, &arena, &m, err));
    xpl_hlo_message_read(found.proto, &p);
    struct memview v = {.m = m,
                        .module = xpl_hlo_bytes(&p, HLO_PROTO_MODULE),
                        .arena = &arena,
                        .exec = in->exec,
                        .out = out};
    xpl_buf_init(&v.scratch, in->limit);
    const xpl_status_t st = write_answer(in, &v, err);
    xpl_buf_fini(&v.scratch);
    return st;
}

static const char *content_type(const void *options) {
    const struct memory_viewer_options *const o = options;
    return o->timeline ? "text/html; charset=utf-8" : "application/json";
}

const struct xpl_tool xpl_tool_memory_viewer = {
    .name = "memory_viewer",
    .version = 4,
    .needs = xpl_programs_needs,
    .facts = XPL_FACT_PROGRAMS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct memory_viewer_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 9,
    .content_type = "application/json",
    .columns = {xpl_holder_columns},
    .content_type_of = content_type,
    .reads_profile = true,
    .whole_session = true,
    .render = memory_viewer_render,
};
