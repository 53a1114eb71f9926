// SPDX-License-Identifier: Apache-2.0
// One instruction: name = shape opcode(operands), attributes.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/text/impl.h"

static struct txt_pen put_shape(struct hlo_text *t, struct txt_pen pen, xpl_bytes_t shape) {
    const xpl_str_t kept = txt_kept_shape(t, shape);
    if (XPL_LIKELY(kept.len)) return txt_pen_str(t, pen, kept);
    txt_pen_give(t, pen);
    txt_shape(t, shape);
    return txt_pen_take(t);
}

static void put_operands(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    struct txt_uses u = txt_uses_begin(t, index, in, false);
    struct txt_pen pen = txt_pen_take(t);
    uint32_t i = 0;
    for (uint32_t at; !txt_stopped(t) && txt_uses_next(t, &u, &at); i++) {
        if (i) PEN(t, pen, ", ");
        if (XPL_UNLIKELY(i && i % 5 == 0 && t->form->operand_numbers)) {
            PEN(t, pen, "/*index=");
            txt_pen_give(t, pen);
            txt_uint(t, i);
            pen = txt_pen_take(t);
            PEN(t, pen, "*/");
        }
        if (t->form->operand_shapes) {
            pen = put_shape(t, pen, xpl_hlo_shape_of(&t->m->instructions[at]));
            PEN(t, pen, " ");
        }
        if (t->form->percent) PEN(t, pen, "%");
        pen = txt_pen_str(t, pen, t->m->instructions[at].name);
    }
    txt_pen_give(t, pen);
}

static void put_arguments(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    switch (t->m->instructions[index].opcode) {
        case XPL_HLO_PARAMETER: {
            const struct hlo_instruction *const i = &t->m->instructions[index];
            txt_int(t, i->has_more ? xpl_hlo_int(in, HLO_INSTR_PARAMETER_NUMBER) : i->parameter);
            break;
        }
        case XPL_HLO_CONSTANT:
            if (xpl_hlo_has(in, HLO_INSTR_LITERAL))
                txt_literal(t, xpl_hlo_bytes(in, HLO_INSTR_LITERAL), t->form->large_constants);
            else
                TXT(t, "{...}");
            break;
        default: put_operands(t, index, in);
    }
}

// The opcode of the only instruction inside an async op of index `index`; NULL: none.
static const struct xpl_hlo_opcode *wrapped_opcode(const struct hlo_text *t, uint32_t index) {
    const uint32_t c = txt_async_computation(t, index);
    const uint32_t wrapped = c == UINT32_MAX ? c : txt_wrapped(t->m, c);
    return wrapped == UINT32_MAX
               ? NULL
               : xpl_hlo_opcode((enum xpl_hlo_op)t->m->instructions[wrapped].opcode);
}

// An async op of a single instruction has that one's opcode, with its own suffix.
static struct txt_pen put_opcode(struct hlo_text *t, struct txt_pen pen, uint32_t index) {
    const uint32_t op = t->m->instructions[index].opcode;
    const struct xpl_hlo_opcode *const row = xpl_hlo_opcode((enum xpl_hlo_op)op), *wrapped;
    const xpl_str_t name = {row->name, row->len};
    switch (op) {
        case XPL_HLO_ASYNC_START:
        case XPL_HLO_ASYNC_UPDATE:
        case XPL_HLO_ASYNC_DONE:
            wrapped = wrapped_opcode(t, index);
            if (!wrapped) break;
            pen = txt_pen_str(t, pen, (xpl_str_t){wrapped->name, wrapped->len});
            return txt_pen_str(t, pen, xpl_str_sub(name, sizeof "async" - 1, SIZE_MAX));
        case XPL_HLO_EQUAL_TO:
        case XPL_HLO_NOT_EQUAL_TO:
        case XPL_HLO_GREATER_THAN:
        case XPL_HLO_GREATER_THAN_OR_EQUAL_TO:
        case XPL_HLO_LESS_THAN:
        case XPL_HLO_LESS_THAN_OR_EQUAL_TO: return txt_pen_str(t, pen, XPL_STR("compare"));
        default: break;
    }
    return txt_pen_str(t, pen, name);
}

// name = shape opcode(
static void put_head(struct hlo_text *t, uint32_t index) {
    const struct hlo_instruction *const i = &t->m->instructions[index];
    struct txt_pen pen = txt_pen_take(t);
    if (t->form->percent) PEN(t, pen, "%");
    pen = txt_pen_str(t, pen, i->name);
    PEN(t, pen, " = ");
    pen = put_shape(t, pen, xpl_hlo_shape_of(i));
    PEN(t, pen, " ");
    pen = put_opcode(t, pen, index);
    PEN(t, pen, "(");
    txt_pen_give(t, pen);
}

xpl_str_t txt_find_config(struct hlo_text *t, const struct xpl_hlo_message *in) {
    const xpl_str_t config = xpl_hlo_str(in, HLO_INSTR_BACKEND_CONFIG);
    if (config.len || !xpl_hlo_has(in, HLO_INSTR_PAYLOAD)) return config;
    struct xpl_hlo_message payload;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_PAYLOAD), &payload);
    return xpl_hlo_str(&payload, 1);
}

static void put_metadata(struct hlo_text *t, uint32_t index) {
    const xpl_bytes_t metadata = txt_metadata_of(t, index);
    if (!metadata.len) return;
    const struct xpl_buf *const b = t->b;
    const size_t before = b->n;
    TXT(t, ", metadata=");
    // Nothing to say: the key goes, too.
    if (!txt_op_metadata(t, metadata, true) && !t->cut) t->b->n = before;
}

void txt_instruction(struct hlo_text *t, uint32_t index) {
    struct xpl_hlo_message space;
    const struct xpl_hlo_message *const in = txt_message_of(t, index, &space);
    put_head(t, index);
    put_arguments(t, index, in);
    TXT(t, ")");
    txt_attributes(t, index, in);
    if (xpl_hlo_has(in, HLO_INSTR_ORIGINAL_VALUE)) {
        TXT(t, ", origin=");
        txt_original_value(t, xpl_hlo_bytes(in, HLO_INSTR_ORIGINAL_VALUE));
    }
    if (t->form->metadata) put_metadata(t, index);
    const xpl_str_t config = t->form->backend_config ? txt_find_config(t, in) : (xpl_str_t){"", 0};
    if (config.len) txt_backend_config(t, config);
}
