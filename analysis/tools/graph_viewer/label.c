// SPDX-License-Identifier: Apache-2.0
// The text of nodes and clusters: lines with <br/> between them, and a tip.
#include "analysis/tools/graph_viewer/impl.h"

static xpl_str_t scratch_text(const struct graph *g) {
    return (xpl_str_t){(const char *)g->scratch.p, g->scratch.n};
}

// ---- attributes ----

// Where the attribute that begins at `from` ends: at ", " outside of brackets and quotes.
static size_t attribute_end(xpl_str_t s, size_t from) {
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = from; i < s.len; i++) {
        const char c = s.ptr[i];
        if (quoted && c == '\\') {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (quoted) {
            continue;
        } else if (strchr("{[(", c)) {
            depth++;
        } else if (strchr("}])", c)) {
            depth -= depth > 0;
        } else if (c == ',' && depth == 0 && i + 1 < s.len && s.ptr[i + 1] == ' ') {
            return i;
        }
    }
    return s.len;
}

// Attributes with several keys, which XLA writes as one: a key, and the keys that it may follow.
static bool continues(xpl_str_t key, xpl_str_t before) {
    static const struct {
        const char *key, *before;
    } rows[] = {
        {"device_ids=", "replica_groups="},
        {"lhs_contracting_dims=", "lhs_batch_dims="},
        {"rhs_batch_dims=", "lhs_contracting_dims="},
        {"rhs_contracting_dims=", "lhs_contracting_dims="},
        {"rhs_contracting_dims=", "rhs_batch_dims="},
        {"lhs_ragged_dims=", "rhs_contracting_dims="},
        {"rhs_group_dims=", "lhs_ragged_dims="},
        {"collapsed_slice_dims=", "offset_dims="},
        {"start_index_map=", "collapsed_slice_dims="},
        {"operand_batching_dims=", "start_index_map="},
        {"start_indices_batching_dims=", "operand_batching_dims="},
        {"start_indices_batching_dims=", "start_index_map="},
        {"inserted_window_dims=", "update_window_dims="},
        {"scatter_dims_to_operand_dims=", "inserted_window_dims="},
        {"input_batching_dims=", "scatter_dims_to_operand_dims="},
        {"scatter_indices_batching_dims=", "input_batching_dims="},
        {"scatter_indices_batching_dims=", "scatter_dims_to_operand_dims="},
        {"index_vector_dim=", ""},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (xpl_str_starts(key, xpl_str_from(rows[k].key)) &&
            xpl_str_starts(before, xpl_str_from(rows[k].before)))
            return true;
    return false;
}

static void put_attribute(struct xpl_buf *b, xpl_str_t s) {
    enum { LONGEST = 128 }; // of lists that grow with the machine
    const bool list = xpl_str_starts(s, XPL_STR("replica_groups=")) ||
                      xpl_str_starts(s, XPL_STR("source_target_pairs=")) ||
                      xpl_str_starts(s, XPL_STR("control-predecessors="));
    xpl_buf_str(b, XPL_STR("<br/>"));
    if (list && s.len > LONGEST) {
        xpl_graph_put_escaped(b, xpl_str_sub(s, 0, LONGEST - 3));
        xpl_buf_str(b, XPL_STR("..."));
    } else if (xpl_str_starts(s, XPL_STR("feature_group_count="))) {
        xpl_buf_str(b, XPL_STR("<b>"));
        xpl_graph_put_escaped(b, s);
        xpl_buf_str(b, XPL_STR("</b>"));
    } else {
        xpl_graph_put_escaped(b, s);
    }
}

// Attributes of one opcode: texts in them are quoted and brackets in pairs.
static void put_own(struct xpl_buf *b, xpl_str_t s) {
    size_t begin = 0, part = 0; // of the attribute, of its last key
    for (bool last = !s.len; !last;) {
        const size_t end = attribute_end(s, part);
        last = end == s.len;
        const xpl_str_t next = xpl_str_sub(s, last ? end : end + 2, SIZE_MAX);
        if (last || !continues(next, xpl_str_sub(s, part, SIZE_MAX))) {
            put_attribute(b, xpl_str_sub(s, begin, end - begin));
            begin = end + 2;
        }
        part = end + 2;
    }
}

static xpl_status_t put_attributes(struct graph *g, uint32_t i, struct xpl_error *err) {
    struct xpl_hlo_text_parts parts = {0};
    g->scratch.n = 0;
    XPL_TRY(xpl_hlo_text_attributes(g->m, i, g->cache, &g->scratch, &parts, err));
    const xpl_str_t s = scratch_text(g);
    put_own(&g->text, xpl_str_sub(s, 2,
                                  parts.n && parts.at[0] > 2 ? parts.at[0] - 2
                                  : parts.n                  ? 0
                                                             : SIZE_MAX));
    for (unsigned k = 0; k < parts.n; k++) {
        const size_t begin = parts.at[k] + 2, end = k + 1 < parts.n ? parts.at[k + 1] : s.len;
        if (end > begin) put_attribute(&g->text, xpl_str_sub(s, begin, end - begin));
    }
    return XPL_OK;
}

static xpl_status_t put_shape(struct graph *g, uint32_t i, struct xpl_error *err) {
    enum { LONGEST = 64 };
    const struct hlo_instruction *const in = graph_at(g, i);
    const bool layout = in->opcode != XPL_HLO_TUPLE && xpl_graph_has_layout(g, i);
    g->scratch.n = 0;
    XPL_TRY((layout ? xpl_hlo_text_shape : xpl_hlo_text_plain_shape)(xpl_hlo_shape_of(in), g->cache,
                                                                     &g->scratch, err));
    const xpl_str_t s = scratch_text(g);
    xpl_buf_str(&g->text, XPL_STR("<br/>"));
    xpl_graph_put_escaped(&g->text, s.len > LONGEST ? xpl_str_sub(s, 0, LONGEST - 3) : s);
    if (s.len > LONGEST) xpl_buf_str(&g->text, XPL_STR("..."));
    return XPL_OK;
}

static void put_trivial(struct graph *g, uint32_t i) {
    size_t end;
    const size_t first = xpl_graph_calls(g, i, &end);
    for (size_t k = first; k < end; k++) {
        const char *const word = xpl_graph_trivial(g, g->m->calls.v[k].computation);
        if (!word) continue;
        if (end - first == 1)
            xpl_buf_printf(&g->text, "<br/>Subcomputation: <b>%s</b>", word);
        else
            xpl_buf_printf(&g->text, "<br/>Subcomputation %zu: <b>%s</b>", k - first, word);
    }
}

// ---- nodes ----

static xpl_str_t opcode_of(const struct graph *g, uint32_t i) {
    const struct xpl_hlo_opcode *const row =
        xpl_hlo_opcode((enum xpl_hlo_op)graph_at(g, i)->opcode);
    return (xpl_str_t){row->name, row->len};
}

static void put_heading(struct graph *g, uint32_t i) {
    const struct hlo_instruction *const in = graph_at(g, i);
    struct xpl_hlo_message m;
    graph_read(g, i, &m);
    if (in->opcode == XPL_HLO_PARAMETER) {
        xpl_buf_printf(&g->text, "<b>Parameter %lld</b>",
                       (long long)xpl_hlo_int(&m, HLO_INSTR_PARAMETER_NUMBER));
        xpl_graph_put_origin(g, i);
        return;
    }
    xpl_buf_str(&g->text, XPL_STR("<b>"));
    xpl_graph_put_escaped(&g->text, in->name);
    xpl_buf_str(&g->text, XPL_STR("</b>"));
    if (xpl_str_starts(in->name, opcode_of(g, i))) return;
    xpl_buf_str(&g->text, XPL_STR("<br/>"));
    xpl_buf_str(&g->text, opcode_of(g, i));
    if (in->opcode != XPL_HLO_FUSION) return;
    xpl_buf_str(&g->text, XPL_STR(":"));
    xpl_buf_str(&g->text, xpl_hlo_str(&m, HLO_INSTR_FUSION_KIND));
}

xpl_status_t xpl_graph_node_label(struct graph *g, uint32_t i, struct graph_span *ret,
                                  struct xpl_error *err) {
    ret->at = g->text.n;
    put_heading(g, i);
    if (graph_at(g, i)->opcode != XPL_HLO_FUSION) put_trivial(g, i);
    XPL_TRY(put_attributes(g, i, err));
    XPL_TRY(put_shape(g, i, err));
    XPL_TRY(xpl_graph_put_operands(g, i, err));
    XPL_TRY(xpl_graph_put_config(g, i, err));
    ret->n = g->text.n - ret->at;
    return XPL_OK;
}

// ---- clusters ----

// As HloInstruction::ToCategory has it of fusions.
static const char *fusion_category(const struct graph *g, const struct graph_cluster *c) {
    struct xpl_hlo_message m;
    graph_read(g, c->caller, &m);
    const xpl_str_t kind = xpl_hlo_str(&m, HLO_INSTR_FUSION_KIND);
    if (xpl_str_eq(kind, XPL_STR("kLoop"))) return "loop fusion";
    if (xpl_str_eq(kind, XPL_STR("kInput"))) return "input fusion";
    if (xpl_str_eq(kind, XPL_STR("kCustom"))) return "custom fusion";
    const struct hlo_computation *const fused = &g->m->computations[c->computation];
    for (uint32_t i = fused->first; i < fused->first + fused->n; i++)
        if (graph_at(g, i)->opcode == XPL_HLO_CONVOLUTION || graph_at(g, i)->opcode == XPL_HLO_DOT)
            return "convolution fusion";
    return "output fusion";
}

xpl_status_t xpl_graph_cluster_label(struct graph *g, const struct graph_cluster *c,
                                     struct graph_span *ret, struct xpl_error *err) {
    struct xpl_buf *const b = &g->text;
    ret->at = b->n;
    xpl_buf_str(b, c->fusion ? XPL_STR("Fused expression for <b>")
                             : XPL_STR("Subcomputation for <b>"));
    xpl_graph_put_escaped(b, graph_at(g, c->caller)->name);
    xpl_buf_str(b, XPL_STR("</b><br/>"));
    if (c->fusion) {
        xpl_buf_str(b, xpl_str_from(fusion_category(g, c)));
        XPL_TRY(put_attributes(g, c->caller, err));
        XPL_TRY(xpl_graph_put_config(g, c->caller, err));
    } else {
        xpl_graph_put_escaped(b, g->m->computations[c->computation].name);
    }
    ret->n = b->n - ret->at;
    return XPL_OK;
}

// ---- tips ----

static void put_frames(struct graph *g, int64_t id, bool *any) {
    enum { MOST = 4096 }; // frames of a hostile file can form a ring
    const struct xpl_hlo_module *const m = g->m;
    for (unsigned n = 0; n < MOST && id > 0 && id <= m->n_frames; n++) {
        const struct hlo_frame *const f = &m->frames[id - 1];
        if (f->location <= 0 || (uint32_t)f->location > m->n_locations) return;
        const struct hlo_location *const l = &m->locations[f->location - 1];
        const xpl_str_t none = {"", 0};
        if (*any) xpl_buf_putc(&g->text, '\n');
        *any = true;
        xpl_buf_str(&g->text,
                    l->file > 0 && (uint32_t)l->file <= m->n_files ? m->files[l->file - 1] : none);
        xpl_buf_putc(&g->text, ':');
        xpl_buf_str(&g->text, l->function > 0 && (uint32_t)l->function <= m->n_functions
                                  ? m->functions[l->function - 1]
                                  : none);
        xpl_buf_printf(&g->text, ":%d", l->line);
        if (l->column) xpl_buf_printf(&g->text, ":%d", l->column);
        id = f->parent;
    }
}

void xpl_graph_tip(struct graph *g, uint32_t i, struct graph_span *ret) {
    struct xpl_hlo_message in, meta;
    struct xpl_buf *const b = &g->text;
    graph_read(g, i, &in);
    xpl_hlo_message_read(xpl_hlo_bytes(&in, HLO_INSTR_METADATA), &meta);
    const xpl_str_t name = xpl_hlo_str(&meta, HLO_META_OP_NAME);
    const xpl_str_t type = xpl_hlo_str(&meta, HLO_META_OP_TYPE);
    const xpl_str_t file = xpl_hlo_str(&meta, HLO_META_SOURCE_FILE);
    const int32_t line = (int32_t)xpl_hlo_int(&meta, HLO_META_SOURCE_LINE);
    bool any = name.len > 0;
    ret->at = b->n;
    xpl_graph_put_escaped(b, name);
    if (type.len) {
        xpl_buf_str(b, any ? XPL_STR("\nop_type: ") : XPL_STR("op_type: "));
        xpl_graph_put_escaped(b, type);
        any = true;
    }
    if (file.len && line) {
        xpl_buf_str(b, any ? XPL_STR("\nsource: ") : XPL_STR("source: "));
        xpl_buf_str(b, file);
        xpl_buf_printf(b, ":%d", line);
        any = true;
    }
    put_frames(g, xpl_hlo_int(&meta, HLO_META_STACK_FRAME_ID), &any);
    ret->n = b->n - ret->at;
}
