// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/instruction.h"

#include <stdio.h>

#include "analysis/hlo/fields.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/types.h"
#include "base/arena.h"
#include "base/text/parse.h"

// ---- decoding ----

// The type is in front of a shape, and many instructions may ask for that of one long shape.
enum { TYPE_WITHIN = 256 };

static uint64_t element_type(const struct hlo_instruction *in) {
    xpl_bytes_t shape = xpl_hlo_shape_of(in);
    if (shape.len > TYPE_WITHIN) shape.len = TYPE_WITHIN;
    struct xpl_wire w = xpl_wire_begin(shape);
    struct xpl_field f;
    uint64_t type = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == HLO_SHAPE_ELEMENT_TYPE && f.type == XPL_WIRE_VARINT) type = f.u;
    return type;
}

static xpl_bytes_t instruction_bytes(const struct xpl_hlo_module *m, uint32_t index) {
    return (xpl_bytes_t){m->instructions[index].p, m->instructions[index].len};
}

// First number of a repeated int64 field, packed or not; -1 when there is none.
static int64_t first_number(xpl_bytes_t instruction, uint32_t num) {
    struct xpl_wire w = xpl_wire_begin(instruction);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != num) continue;
        if (f.type == XPL_WIRE_VARINT) return (int64_t)f.u;
        if (f.type != XPL_WIRE_LEN) continue;
        const struct xpl_varint v = xpl_varint_slow(f.len.ptr, f.len.ptr + f.len.len);
        if (v.p) return (int64_t)v.v;
    }
    return -1;
}

// A bitcast-convert is elementwise unless it changes how many elements there are.
static bool keeps_width(const struct xpl_hlo_module *m, uint32_t index) {
    const struct hlo_computation *const c = &m->computations[m->instructions[index].computation];
    const xpl_bytes_t bytes = instruction_bytes(m, index);
    const uint32_t from = xpl_hlo_module_by_id(m, c, first_number(bytes, HLO_INSTR_OPERANDS));
    return from != UINT32_MAX && xpl_hlo_element_bits(element_type(&m->instructions[index])) ==
                                     xpl_hlo_element_bits(element_type(&m->instructions[from]));
}

static xpl_str_t convolution_category(xpl_bytes_t instruction) {
    struct xpl_wire w = xpl_wire_begin(instruction), v, d;
    struct xpl_field f;
    bool base = false, window = false;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != HLO_INSTR_WINDOW || f.type != XPL_WIRE_LEN) continue;
        v = xpl_wire_begin(f.len);
        while (xpl_wire_next(&v, &f) == XPL_WIRE_FIELD) {
            if (f.num != HLO_WINDOW_DIMENSIONS || f.type != XPL_WIRE_LEN) continue;
            uint64_t dilation = 0, base_dilation = 0; // absent counts as dilated: it is not 1
            d = xpl_wire_begin(f.len);
            while (xpl_wire_next(&d, &f) == XPL_WIRE_FIELD) {
                if (f.type != XPL_WIRE_VARINT) continue;
                if (f.num == HLO_WINDOW_DIM_DILATION) dilation = f.u;
                if (f.num == HLO_WINDOW_DIM_BASE_DILATION) base_dilation = f.u;
            }
            window |= dilation != 1;
            base |= base_dilation != 1;
        }
    }
    if (base && window) return XPL_STR("convolution base-dilated window-dilated");
    if (base) return XPL_STR("convolution base-dilated");
    return window ? XPL_STR("convolution window-dilated") : XPL_STR("convolution");
}

static xpl_str_t fusion_category(xpl_str_t kind) {
    if (xpl_str_eq(kind, XPL_STR("kLoop"))) return XPL_STR("loop fusion");
    if (xpl_str_eq(kind, XPL_STR("kInput"))) return XPL_STR("input fusion");
    if (xpl_str_eq(kind, XPL_STR("kOutput"))) return XPL_STR("output fusion");
    return XPL_STR("custom fusion");
}

// HloInstruction::ToCategory and its overrides.
static xpl_str_t category(const struct xpl_hlo_module *m, uint32_t index, xpl_str_t *opcode,
                          xpl_str_t fusion_kind) {
    const struct xpl_hlo_opcode *const op = xpl_hlo_opcode_find(*opcode);
    if (!op) return *opcode; // the bytes changed since they were checked
    *opcode = (xpl_str_t){op->name, op->len};
    switch ((enum xpl_hlo_op_kind)op->kind) {
        case HLO_OP_PLAIN: return *opcode;
        case HLO_OP_ELEMENTWISE: return XPL_STR("non-fusion elementwise");
        case HLO_OP_FORMAT: return XPL_STR("data formatting");
        case HLO_OP_BITCAST_CONVERT:
            return keeps_width(m, index) ? XPL_STR("non-fusion elementwise") : *opcode;
        case HLO_OP_CONVOLUTION: return convolution_category(instruction_bytes(m, index));
        case HLO_OP_FUSION: return fusion_category(fusion_kind);
    }
    return *opcode;
}

static void get_metadata(xpl_bytes_t bytes, struct xpl_hlo_instruction *ret) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type == XPL_WIRE_LEN) {
            if (f.num == HLO_META_OP_TYPE) ret->op_type = xpl_wire_str(&f);
            if (f.num == HLO_META_OP_NAME) ret->op_name = xpl_wire_str(&f);
            if (f.num == HLO_META_SOURCE_FILE) ret->source_file = xpl_wire_str(&f);
            if (f.num == HLO_META_DEDUPLICATED_NAME) ret->deduplicated_name = xpl_wire_str(&f);
        } else if (f.type == XPL_WIRE_VARINT) {
            if (f.num == HLO_META_SOURCE_LINE) ret->source_line = (int32_t)f.u;
            if (f.num == HLO_META_STACK_FRAME_ID) ret->stack_frame_id = (int32_t)f.u;
        }
    }
}

static const struct hlo_computation *fused(const struct xpl_hlo_module *m, uint32_t index) {
    const int64_t id = first_number(instruction_bytes(m, index), HLO_INSTR_CALLED);
    const uint64_t *const at = xpl_map_get(&m->computation_ids, (uint64_t)id, 0);
    const struct hlo_computation *const c = at ? &m->computations[*at] : NULL;
    return c && c->fusion == index ? c : NULL;
}

static void decode(const struct xpl_hlo_module *m, uint32_t index,
                   struct xpl_hlo_instruction *ret) {
    *ret = (struct xpl_hlo_instruction){
        .module = m, .index = index, .name = m->instructions[index].name};
    struct xpl_wire w = xpl_wire_begin(instruction_bytes(m, index));
    struct xpl_field f;
    xpl_str_t fusion_kind = {0};
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == HLO_INSTR_OPCODE) ret->opcode = xpl_wire_str(&f);
        if (f.num == HLO_INSTR_FUSION_KIND) fusion_kind = xpl_wire_str(&f);
        if (f.num == HLO_INSTR_METADATA) get_metadata(f.len, ret);
    }
    ret->category = category(m, index, &ret->opcode, fusion_kind);
    if (xpl_str_eq(ret->opcode, XPL_STR("fusion"))) ret->fused = fused(m, index);
}

// Bytes of a message that is decoded once: many ops may refer to it.
enum { LONG = 1024 };

bool xpl_hlo_module_decode_long(struct xpl_hlo_module *m, struct xpl_arena *a) {
    uint32_t n = 0;
    for (uint32_t i = 0; m->valid && i < m->n_instructions; i++)
        n += m->instructions[i].len > LONG;
    if (n && !(m->decoded = xpl_arena_array(a, n, sizeof *m->decoded))) return false;
    for (uint32_t i = m->n_instructions; n && i-- > 0;) {
        if (m->instructions[i].len <= LONG) continue;
        uint64_t *const at = xpl_map_put(a, &m->decoded_at, i, 0, NULL);
        if (!at) return false;
        *at = --n;
        decode(m, i, &m->decoded[n]);
    }
    return true;
}

void xpl_hlo_module_get(const struct xpl_hlo_module *m, uint32_t index,
                        struct xpl_hlo_instruction *ret) {
    const uint64_t *const at =
        m->instructions[index].len > LONG ? xpl_map_get(&m->decoded_at, index, 0) : NULL;
    if (at)
        *ret = m->decoded[*at];
    else
        decode(m, index, ret);
}

// ---- children ----

void xpl_hlo_children_begin(struct xpl_hlo_children *c, const struct xpl_hlo_instruction *fusion) {
    const struct hlo_computation *const of = fusion->fused;
    *c = (struct xpl_hlo_children){.module = fusion->module};
    if (!of) return;
    c->next = of->first;
    c->end = of->first + of->n;
}

bool xpl_hlo_children_next(struct xpl_hlo_children *c, struct xpl_hlo_instruction *ret) {
    if (c->next == c->end) return false;
    xpl_hlo_module_get(c->module, c->next++, ret);
    return true;
}

// ---- names ----

static bool join(struct xpl_arena *a, xpl_str_t name, xpl_str_t type, xpl_str_t *ret) {
    const size_t n = name.len + 1 + type.len;
    char *const p = xpl_arena_alloc(a, n + 1);
    if (!p) return false;
    if (name.len) memcpy(p, name.ptr, name.len);
    p[name.len] = ':';
    if (type.len) memcpy(p + name.len + 1, type.ptr, type.len);
    p[n] = 0;
    *ret = (xpl_str_t){p, n};
    return true;
}

bool xpl_hlo_op_full_name(const struct xpl_hlo_instruction *in, struct xpl_arena *a,
                          xpl_str_t *ret) {
    return join(a, in->op_name, in->op_type, ret);
}

bool xpl_hlo_tf_op_name(const struct xpl_hlo_instruction *in, struct xpl_arena *a, xpl_str_t *ret) {
    if (in->op_type.len) return join(a, in->op_name, in->op_type, ret);
    if (in->op_name.len == 0) {
        *ret = (xpl_str_t){"", 0};
        return true;
    }
    const bool own = xpl_str_eq(in->op_name, XPL_STR("XLA_Args")) ||
                     xpl_str_eq(in->op_name, XPL_STR("XLA_Retvals"));
    return join(a, in->op_name, own ? in->op_name : (xpl_str_t){0}, ret);
}

// ---- source ----

struct frame {
    xpl_str_t file;
    int32_t line, column, parent;
};

// HloModule::get_stack_frame; false for XLA's empty frame.  Upstream reads past its tables for ids
// that are too large; here such a frame ends the stack.
static bool get_frame(const struct xpl_hlo_module *m, int32_t id, struct frame *ret) {
    if (id < 1 || (uint32_t)id > m->n_frames) return false;
    const struct hlo_frame *const f = &m->frames[id - 1];
    if (f->location < 1 || (uint32_t)f->location > m->n_locations) return false;
    const struct hlo_location *const l = &m->locations[f->location - 1];
    xpl_str_t function = {0};
    *ret = (struct frame){.line = l->line, .column = l->column, .parent = f->parent};
    if (l->file >= 1 && (uint32_t)l->file <= m->n_files) ret->file = m->files[l->file - 1];
    if (l->function >= 1 && (uint32_t)l->function <= m->n_functions)
        function = m->functions[l->function - 1];
    return ret->line || ret->column || ret->file.len || function.len;
}

// Room for ":line:column\n" of two 32-bit numbers.
enum { FRAME_SUFFIX = 26 };

static bool build_stack(const struct xpl_hlo_module *m, int32_t id, struct xpl_arena *a,
                        xpl_str_t *ret) {
    struct frame f;
    size_t size = 1;
    int32_t at = id;
    unsigned n = 0;
    for (; n < XPL_HLO_MAX_FRAMES && get_frame(m, at, &f); n++, at = f.parent)
        if (__builtin_add_overflow(size, f.file.len + FRAME_SUFFIX, &size)) return false;
    char *const p = xpl_arena_alloc(a, size);
    if (!p) return false;
    size_t len = 0;
    at = id;
    for (unsigned i = 0; i < n && get_frame(m, at, &f); i++, at = f.parent) {
        if (f.file.len) memcpy(p + len, f.file.ptr, f.file.len);
        len += f.file.len;
        len += (size_t)snprintf(p + len, size - len, ":%d:%d\n", f.line, f.column);
    }
    *ret = (xpl_str_t){p, len};
    return true;
}

// An instruction without a source file takes that of its innermost frame.
static void source_from_stack(xpl_str_t stack, struct xpl_hlo_source *ret) {
    const size_t eol = xpl_str_find(stack, XPL_STR("\n"), 0);
    const xpl_str_t first = xpl_str_sub(stack, 0, eol);
    const size_t colon = xpl_str_find(first, XPL_STR(":"), 0);
    if (colon == SIZE_MAX) return;
    xpl_str_t line = xpl_str_sub(first, colon + 1, SIZE_MAX);
    line = xpl_str_sub(line, 0, xpl_str_find(line, XPL_STR(":"), 0));
    ret->file = xpl_str_sub(first, 0, colon);
    (void)xpl_parse_i32(line, &ret->line);
    ret->stack = stack;
}

bool xpl_hlo_source(const struct xpl_hlo_instruction *in, struct xpl_arena *a,
                    struct xpl_hlo_source *ret) {
    *ret = (struct xpl_hlo_source){.line = -1};
    xpl_str_t stack = {0};
    if (in->stack_frame_id && !build_stack(in->module, in->stack_frame_id, a, &stack)) return false;
    if (in->source_file.len == 0) {
        source_from_stack(stack, ret);
        return true;
    }
    ret->line = in->source_line;
    ret->stack = stack;
    return xpl_arena_str(a, in->source_file, &ret->file);
}
