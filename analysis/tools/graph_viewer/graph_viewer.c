// SPDX-License-Identifier: Apache-2.0
// Tool graph_viewer: an HLO program as text or as its bytes, and the neighbours of an instruction.
// Options by XProf's names (XProf: convert/hlo_to_tools_data.cc).
#include "analysis/hlo/graph/adjacent.h"
#include "analysis/hlo/proto/print.h"
#include "analysis/hlo/text/text.h"
#include "analysis/tools/graph_viewer/layout.h"
#include "analysis/tools/lib/hlo_lookup.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/text/near.h"

struct graph_viewer_options {
    struct xpl_common_options common; // every tool's come first
    xpl_str_t module_name, program_id, type, node_name;
    uint64_t graph_width;
    int format;
    bool show_metadata, merge_fusion;
};

enum { FORMAT_DOT, FORMAT_HTML, FORMAT_URL }; // format

#define MEMBER(name) offsetof(struct graph_viewer_options, name)
static const struct xpl_tool_option kOptions[] = {
    {.key = "format",
     .type = XPL_OPTION_CHOICE,
     .offset = MEMBER(format),
     .values = "dot|html|url",
     .preset = "dot",
     .lenient_preset = "url",
     .help = "format of type=graph"},
    {.key = "graph_width",
     .type = XPL_OPTION_COUNT,
     .offset = MEMBER(graph_width),
     .values = "NUMBER",
     .preset = "3",
     .help = "with type=graph: distance from the instruction"},
    {.key = "merge_fusion",
     .type = XPL_OPTION_BOOL,
     .offset = MEMBER(merge_fusion),
     .values = "true|false",
     .preset = "false",
     .help = "with type=graph: do not expand fusions"},
    {.key = "module_name",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(module_name),
     .values = "NAME(ID)",
     .help = "the program; hlo_modules lists them"},
    {.key = "node_name",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(node_name),
     .values = "NAME",
     .help = "the instruction for graph, adj_nodes and custom_call; graph also accepts a "
             "computation, by default the entry"},
    {.key = "program_id",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(program_id),
     .values = "ID",
     .help = "the program, if module_name is empty"},
    {.key = "show_metadata",
     .type = XPL_OPTION_BOOL,
     .offset = MEMBER(show_metadata),
     .values = "true|false",
     .preset = "false",
     .help = "add the sources of ops to long_txt, and configurations to graph"},
    {.key = "type",
     .type = XPL_OPTION_TEXT,
     .offset = MEMBER(type),
     .values = "short_txt|long_txt|pbtxt|pb|json|adj_nodes|graph|custom_call",
     .preset = "short_txt",
     .lenient_preset = "",
     .help = "form of the answer"},
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

static xpl_status_t no_such_node(const struct xpl_hlo_module *m, xpl_str_t name,
                                 struct xpl_error *err) {
    struct xpl_near near = xpl_near_begin(name);
    char hint[XPL_NEAR_TEXT];
    for (uint32_t i = 0; i < m->n_instructions; i++)
        xpl_near_add(&near, m->instructions[i].name);
    for (uint32_t i = 0; i < m->n_computations; i++)
        xpl_near_add(&near, m->computations[i].name);
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no instruction or computation \"%.*s\"%s",
                     XPL_STR_FMT(xpl_str_sub(name, 0, 80)), xpl_near_text(&near, hint));
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
    return no_such_node(m, name, err);
}

// ---- graphs ----

// The node that a graph is of: a computation before an instruction; the entry computation.
static xpl_status_t find_start(const struct graph_request *r, struct graph *g,
                               struct xpl_error *err) {
    const xpl_str_t name = r->o->node_name;
    g->start = GRAPH_NONE;
    g->top = name.len ? xpl_hlo_find_computation(g->m, name) : g->m->entry;
    if (g->top == UINT32_MAX) g->start = xpl_hlo_find_node(g->m, name);
    const bool known = g->top != UINT32_MAX || g->start != UINT32_MAX;
    return known ? XPL_OK : no_such_node(g->m, name, err);
}

static xpl_status_t put_page(struct graph *g, struct xpl_buf *out, struct xpl_error *err) {
    struct graph_layout layout;
    XPL_TRY(xpl_graph_layout(g, &layout, err));
    return xpl_graph_html(g, &layout, out, err);
}

static xpl_status_t put_graph(struct graph_request *r, struct xpl_error *err) {
    enum { WIDEST = 1 << 30 };
    const struct graph_viewer_options *const o = r->o;
    struct xpl_hlo_module *m;
    if (o->format == FORMAT_URL)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "Can't render as URL; no URL renderer was registered.");
    XPL_TRY(xpl_programs_read(r->found.proto, r->arena, &m, err));
    struct graph g = {.m = m,
                      .arena = r->arena,
                      .exec = r->in->exec,
                      .merge_fusion = o->merge_fusion,
                      .show_config = o->show_metadata,
                      .width = o->graph_width < WIDEST ? (uint32_t)o->graph_width : WIDEST};
    XPL_TRY(find_start(r, &g, err));
    xpl_status_t st = xpl_graph_build(&g, r->in->limit, err);
    if (st == XPL_OK)
        st = o->format == FORMAT_HTML ? put_page(&g, r->out, err) : xpl_graph_dot(&g, r->out, err);
    xpl_graph_fini(&g);
    return st;
}

// XProf shows the program of a TPU's custom call here, which MLIR's parser would be needed for; of
// others it says that there is none.  Without such an instruction it has the program's text.
static xpl_status_t put_custom_call(struct graph_request *r, struct xpl_error *err) {
    const xpl_str_t name = r->o->node_name;
    struct xpl_hlo_module *m;
    XPL_TRY(xpl_programs_read(r->found.proto, r->arena, &m, err));
    const uint32_t at = name.len ? xpl_hlo_find_node(m, name) : UINT32_MAX;
    if (at == UINT32_MAX)
        return xpl_hlo_text_module(m, XPL_HLO_TEXT_LONG, r->in->exec, r->arena, r->out, err);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf config = xpl_buf_of(r->in->limit);
    XPL_TRY(xpl_hlo_text_config(m, at, &config, err));
    const xpl_str_t text = {(const char *)config.p, config.n};
    if (!text.len) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "Backend config not found");
    if (!xpl_str_has(text, XPL_STR("custom_call_config")))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "Custom call config not found");
    XPL_RETURN_ERROR(err, XPL_UNIMPLEMENTED,
                     "the program of a custom call is MLIR, which is not read here");
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
    {"graph", "text/plain", put_graph, true},
    {"custom_call", "text/plain", put_custom_call, true},
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
    if (t && t->put == put_graph && o->format == FORMAT_HTML) return "text/html; charset=utf-8";
    return t ? t->content_type : "text/plain";
}

// ---- the program ----

static bool has_node(const struct xpl_hlo_module *m, xpl_str_t name) {
    return xpl_hlo_find_node(m, name) != UINT32_MAX ||
           xpl_hlo_find_computation(m, name) != UINT32_MAX;
}

// The first program that has the instruction or computation.  Skips programs that cannot be read.
static xpl_status_t find_by_node(struct graph_request *r, struct xpl_error *err) {
    r->found = xpl_programs_begin(r->in);
    while (xpl_programs_next(&r->found)) {
        XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(r->in->limit);
        struct xpl_hlo_module *m;
        if (xpl_exec_cancelled(r->in->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "search of an HLO module cancelled");
        struct xpl_error why = {0};
        const xpl_status_t st = xpl_programs_read(r->found.proto, &arena, &m, &why);
        if (st == XPL_RESOURCE_EXHAUSTED) {
            if (err) *err = why;
            return st;
        }
        if (st == XPL_OK && has_node(m, r->o->node_name)) return XPL_OK;
    }
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no HLO module has an instruction or computation \"%.*s\"",
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

static xpl_status_t unknown_type(xpl_str_t name, struct xpl_error *err) {
    struct xpl_near near = xpl_near_begin(name);
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].put) xpl_near_add(&near, xpl_str_from(types[i].name));
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "Unknown graph viewer type option: %.*s%s",
                     XPL_STR_FMT(xpl_str_sub(name, 0, 60)), xpl_near_text(&near, hint));
}

static xpl_status_t graph_viewer_render(const struct xpl_tool_input *in, struct xpl_buf *out,
                                        struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(in->limit);
    struct graph_request r = {.in = in, .o = in->options, .arena = &arena, .out = out};
    const struct graph_type *const t = find_type(r.o->type);
    if (!r.o->type.len)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "Graph viewer must provide a type option.");
    if (!t) return unknown_type(r.o->type, err);
    if (!t->put) XPL_RETURN_ERROR(err, XPL_UNIMPLEMENTED, "type %s is not made", t->name);
    XPL_TRY(find_program(&r, t, err));
    return t->put(&r, err);
}

const struct xpl_tool xpl_tool_graph_viewer = {
    .name = "graph_viewer",
    .version = 6,
    .needs = xpl_programs_needs,
    .facts = XPL_FACT_PROGRAMS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct graph_viewer_options),
    .ignores = XPL_IGNORES_CPU_AS_DEVICE | XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 4,
    .content_type = "text/plain",
    .content_type_of = content_type,
    .reads_profile = true,
    .keeps_no_answer = true,
    .whole_session = true,
    .render = graph_viewer_render,
};
