// SPDX-License-Identifier: Apache-2.0
// Tool graph_viewer: an HLO program as text or as its bytes, and the neighbours of an instruction.
// Options by XProf's names (XProf: convert/hlo_to_tools_data.cc).
#include "analysis/hlo/graph/adjacent.h"
#include "analysis/hlo/proto/print.h"
#include "analysis/hlo/text/text.h"
#include "analysis/tools/lib/hlo_lookup.h"
#include "base/arena.h"
#include "base/cleanup.h"

struct graph_viewer_options {
    struct xpl_common_options common; // every tool's come first
    xpl_str_t module_name, program_id, type, node_name;
    bool show_metadata;
};

#define MEMBER(name) offsetof(struct graph_viewer_options, name)
static const struct xpl_tool_option kOptions[] = {
    {.key = "module_name",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(module_name),
     .values = "NAME(ID)",
     .help = "the program; hlo_modules lists them"},
    {.key = "node_name",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(node_name),
     .values = "NAME",
     .help = "the instruction whose neighbours adj_nodes gives"},
    {.key = "program_id",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(program_id),
     .values = "ID",
     .help = "the program, when no module_name is given"},
    {.key = "show_metadata",
     .type = XPL_OPTION_BOOL,
     .offset = MEMBER(show_metadata),
     .values = "true|false",
     .preset = "false",
     .help = "long_txt with where ops come from"},
    {.key = "type",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(type),
     .values = "short_txt|long_txt|pbtxt|pb|json|adj_nodes",
     .preset = "short_txt",
     .lenient_preset = "",
     .help = "what of the program"},
};

struct graph_request {
    const struct xpl_tool_input *in;
    const struct graph_viewer_options *o;
    struct xpl_programs found;
    struct xpl_arena *arena;
    struct xpl_buf *out;
};

// ---- types ----

static xpl_status_t put_text(struct graph_request *r, enum xpl_hlo_text_form form,
                             struct xpl_error *err) {
    struct xpl_hlo_module *m;
    XPL_TRY(xpl_programs_read(r->found.proto, r->arena, &m, err));
    return xpl_hlo_text_module(m, form, r->in->exec, r->arena, r->out, err);
}

static xpl_status_t put_short(struct graph_request *r, struct xpl_error *err) {
    return put_text(r, XPL_HLO_TEXT_SHORT, err);
}
static xpl_status_t put_long(struct graph_request *r, struct xpl_error *err) {
    return put_text(r, r->o->show_metadata ? XPL_HLO_TEXT_LONG_METADATA : XPL_HLO_TEXT_LONG, err);
}
static xpl_status_t put_pbtxt(struct graph_request *r, struct xpl_error *err) {
    return xpl_hlo_proto_print(r->found.proto, XPL_HLO_PROTO_PBTXT, r->in->exec, r->arena, r->out,
                               err);
}
static xpl_status_t put_json(struct graph_request *r, struct xpl_error *err) {
    return xpl_hlo_proto_print(r->found.proto, XPL_HLO_PROTO_JSON, r->in->exec, r->arena, r->out,
                               err);
}
static xpl_status_t put_pb(struct graph_request *r, struct xpl_error *err) {
    xpl_buf_put(r->out, r->found.proto.ptr, r->found.proto.len);
    if (r->out->failed) XPL_RETURN_OOM(err, "HLO module");
    return XPL_OK;
}

static xpl_status_t put_neighbours(struct graph_request *r, struct xpl_error *err) {
    const xpl_str_t name = r->o->node_name, shown = xpl_str_sub(name, 0, 80);
    struct xpl_hlo_module *m;
    if (!name.len) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "node_name should not be empty");
    XPL_TRY(xpl_programs_read(r->found.proto, r->arena, &m, err));
    const uint32_t at = xpl_hlo_find_node(m, name);
    if (at != UINT32_MAX) return xpl_hlo_adjacent(m, at, r->in->exec, r->arena, r->out, err);
    if (xpl_hlo_find_computation(m, name) != UINT32_MAX)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "\"%.*s\" is a computation: only instructions have neighbours",
                         XPL_STR_FMT(shown));
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no instruction or computation \"%.*s\"",
                     XPL_STR_FMT(shown));
}

static const struct graph_type {
    const char *name;
    const char *content_type;
    xpl_status_t (*put)(struct graph_request *r, struct xpl_error *err); // NULL: not made
    bool by_node; // without a program, the first that has node_name
} types[] = {
    {"short_txt", "application/octet-stream", put_short, false},
    {"long_txt", "application/octet-stream", put_long, false},
    {"pb", "application/octet-stream", put_pb, false},
    {"pbtxt", "application/octet-stream", put_pbtxt, false},
    {"json", "application/json", put_json, false},
    {"adj_nodes", "text/plain", put_neighbours, true},
    {"graph", "text/plain", NULL, true},
    {"custom_call", "text/plain", NULL, true},
    {"me_graph", "text/plain", NULL, false},
};

static const struct graph_type *find_type(xpl_str_t name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (xpl_str_eq(name, xpl_str_from(types[i].name))) return &types[i];
    return NULL;
}

static const char *content_type(const void *options) {
    const struct graph_viewer_options *const o = options;
    const struct graph_type *const t = find_type(o->type);
    return t ? t->content_type : "text/plain";
}

// ---- the program ----

// The first program that has the instruction.  What cannot be read has none.
static xpl_status_t find_by_node(struct graph_request *r, struct xpl_error *err) {
    r->found = xpl_programs_begin(r->in);
    while (xpl_programs_next(&r->found)) {
        XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
        struct xpl_hlo_module *m;
        xpl_arena_init(&arena, r->in->limit);
        if (xpl_exec_cancelled(r->in->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "search of an HLO module cancelled");
        struct xpl_error why = {0};
        const xpl_status_t st = xpl_programs_read(r->found.proto, &arena, &m, &why);
        if (st == XPL_RESOURCE_EXHAUSTED) {
            if (err) *err = why;
            return st;
        }
        if (st == XPL_OK && xpl_hlo_find_node(m, r->o->node_name) != UINT32_MAX) return XPL_OK;
    }
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no HLO module has an instruction \"%.*s\"",
                     XPL_STR_FMT(xpl_str_sub(r->o->node_name, 0, 80)));
}

static xpl_status_t find_program(struct graph_request *r, const struct graph_type *t,
                                 struct xpl_error *err) {
    const struct graph_viewer_options *const o = r->o;
    struct xpl_error why = {0};
    const xpl_status_t st =
        xpl_programs_find(r->in, o->module_name, o->program_id, &r->found, &why);
    if (st == XPL_NOT_FOUND && t->by_node && o->node_name.len) return find_by_node(r, err);
    if (err) *err = why;
    return st;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    xpl_arena_init(&arena, in->limit);
    struct graph_request r = {.in = in, .o = in->options, .arena = &arena, .out = out};
    const struct graph_type *const t = find_type(r.o->type);
    if (!r.o->type.len)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "Graph viewer must provide a type option.");
    if (!t)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "Unknown graph viewer type option: %.*s",
                         XPL_STR_FMT(xpl_str_sub(r.o->type, 0, 60)));
    if (!t->put) XPL_RETURN_ERROR(err, XPL_UNIMPLEMENTED, "type %s is not made yet", t->name);
    XPL_TRY(find_program(&r, t, err));
    return t->put(&r, err);
}

const struct xpl_tool xpl_tool_graph_viewer = {
    .name = "graph_viewer",
    .version = 1,
    .needs = xpl_programs_needs,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct graph_viewer_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "text/plain",
    .content_type_of = content_type,
    .reads_profile = true,
    .keeps_no_answer = true,
    .whole_session = true,
    .render = render,
};
