// SPDX-License-Identifier: Apache-2.0
// Private to analysis/hlo/text: the printer.  Its functions append to a buffer and return nothing;
// the first failure is noted and ends the text early.
#ifndef XPL_ANALYSIS_HLO_TEXT_IMPL_H_
#define XPL_ANALYSIS_HLO_TEXT_IMPL_H_

#include "analysis/hlo/fields.h"
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/module/message.h"
#include "analysis/hlo/text/text.h"
#include "base/buf.h"

// The contents of a form.
struct hlo_form {
    bool percent;         // '%' before names
    bool program_shape;   // of a computation
    bool operand_shapes;  // before their names
    bool operand_numbers; // /*index=5*/ before every fifth operand
    bool backend_config;
    bool feed_config; // of infeed and outfeed
    bool metadata;
    bool control;  // control predecessors
    bool no_calls; // called computations are not named
    bool large_constants;
    bool lines; // of an array's rows, instead of blanks
};

struct hlo_text {
    struct xpl_buf *b;
    size_t end;   // the buffer's length at which the text is cut
    size_t limit; // up to which it may be written at once: 0 at first, then its room, but not
                  // beyond `end`
    bool cut;     // it is full: nothing more is written
    bool failed;  // likewise, because of an error below
    bool malformed, too_deep, no_memory, cancelled;
    unsigned depth; // of nested messages
    const struct hlo_form *form;
    const struct xpl_hlo_module *m;
    struct xpl_hlo_text_cache *cache; // NULL: none
    struct xpl_exec *exec;            // NULL: none
    uint32_t ticks;
    struct xpl_hlo_text_parts *parts; // NULL: not requested
    const uint32_t *frame_ids;        // by stack frame: its number in the text; 0: none
};

// ---- the cache ----

enum {
    TXT_SHAPE_SLOTS = 512,
    TXT_ASYNC_SLOTS = 512,
};
// Its tables are made when they are first needed: most users need one.
struct xpl_hlo_text_cache {
    struct xpl_arena *arena;
    uint64_t seed;
    struct txt_shape_slot {
        xpl_str_t key, text;
    } * shapes[2];          // without and with layout: TXT_SHAPE_SLOTS each
    struct txt_async_slot { // which computation an async op started
        const struct xpl_hlo_module *m;
        uint32_t index, computation;
    } * async; // TXT_ASYNC_SLOTS
};

// ---- output ----

// Output: only `limit` bounds the text.  A text that has failed is never read, so that later output
// only has to fit.
void txt_put_slow(struct hlo_text *t, const void *p, size_t n);
XPL_INLINE void txt_put(struct hlo_text *t, const void *p, size_t n) {
    struct xpl_buf *const b = t->b;
    if (XPL_UNLIKELY(b->n + n > t->limit)) {
        txt_put_slow(t, p, n);
        return;
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
}
// Names and texts of shapes are short: two copies of a fixed size, which overlap, take no call.
XPL_INLINE void txt_copy_short(uint8_t *to, const char *from, size_t n) {
    if (n >= 16) {
        memcpy(to, from, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        memcpy(to, from, 1);
        memcpy(to + n / 2, from + n / 2, 1);
        memcpy(to + n - 1, from + n - 1, 1);
    }
}
XPL_INLINE void txt_str(struct hlo_text *t, xpl_str_t s) {
    struct xpl_buf *const b = t->b;
    if (XPL_UNLIKELY(b->n + s.len > t->limit || s.len - 1 >= 32)) {
        if (s.len) txt_put_slow(t, s.ptr, s.len);
        return;
    }
    txt_copy_short(b->p + b->n, s.ptr, s.len);
    b->n += s.len;
}
// The same with the place kept in registers, for the parts that every instruction has: between
// txt_pen_take and txt_pen_give nothing else is written.
struct txt_pen {
    uint8_t *p, *end;
};
XPL_INLINE struct txt_pen txt_pen_take(const struct hlo_text *t) {
    uint8_t *const p = t->b->p; // NULL before the first byte, when no offset may be added to it
    return p ? (struct txt_pen){p + t->b->n, p + t->limit} : (struct txt_pen){0};
}
XPL_INLINE void txt_pen_give(struct hlo_text *t, struct txt_pen pen) {
    t->b->n = (size_t)(pen.p - t->b->p);
}
XPL_INLINE struct txt_pen txt_pen_slow(struct hlo_text *t, struct txt_pen pen, xpl_str_t s) {
    txt_pen_give(t, pen);
    if (s.len) txt_put_slow(t, s.ptr, s.len);
    return txt_pen_take(t);
}
XPL_INLINE struct txt_pen txt_pen_str(struct hlo_text *t, struct txt_pen pen, xpl_str_t s) {
    if (XPL_UNLIKELY(pen.end - pen.p < (ptrdiff_t)s.len || s.len - 1 >= 32))
        return txt_pen_slow(t, pen, s);
    txt_copy_short(pen.p, s.ptr, s.len);
    return (struct txt_pen){pen.p + s.len, pen.end};
}
XPL_INLINE struct txt_pen txt_pen_put(struct hlo_text *t, struct txt_pen pen, const char *p,
                                      size_t n) {
    if (XPL_UNLIKELY(pen.end - pen.p < (ptrdiff_t)n))
        return txt_pen_slow(t, pen, (xpl_str_t){p, n});
    memcpy(pen.p, p, n);
    return (struct txt_pen){pen.p + n, pen.end};
}
// A literal text.
#define PEN(t, pen, text) ((pen) = txt_pen_put((t), (pen), "" text, sizeof(text) - 1))
#define TXT(t, text)      txt_put((t), "" text, sizeof(text) - 1)

// Nothing more is written: long loops end.
static inline bool txt_stopped(const struct hlo_text *t) {
    return t->cut;
}
static inline void txt_malformed(struct hlo_text *t) {
    t->malformed = t->failed = t->cut = true;
}
// For loops: asks from time to time whether the text is still wanted.
static inline void txt_tick(struct hlo_text *t) {
    if (++t->ticks % 1024 == 0 && t->exec && xpl_exec_cancelled(t->exec))
        t->cancelled = t->failed = t->cut = true;
}
// Here begins an attribute that may hold any text.
static inline void txt_part(struct hlo_text *t) {
    if (t->parts && t->parts->n < XPL_HLO_TEXT_PARTS) t->parts->at[t->parts->n++] = t->b->n;
}
// Goes one message deeper; false where that is too deep.  Else txt_leave goes back.
static inline bool txt_enter(struct hlo_text *t) {
    if (++t->depth <= XPL_HLO_TEXT_DEPTH) return true;
    t->too_deep = t->failed = t->cut = true;
    t->depth--;
    return false;
}
static inline void txt_leave(struct hlo_text *t) {
    t->depth--;
}

void txt_int(struct hlo_text *t, int64_t v);
void txt_uint(struct hlo_text *t, uint64_t v);
// printf's %.*g, with XLA's words for infinities and NaN.
void txt_real(struct hlo_text *t, double v, int digits);
// As C's escape sequences; bytes that are not ASCII as octal.
void txt_escaped(struct hlo_text *t, xpl_str_t s);
// "text", escaped.
void txt_quoted(struct hlo_text *t, xpl_str_t s);
// With '%' where the form has it.
static inline void txt_name(struct hlo_text *t, xpl_str_t name) {
    if (t->form->percent) TXT(t, "%");
    txt_str(t, name);
}
// The numbers of a repeated field, a separator between them.
void txt_ints(struct hlo_text *t, struct xpl_hlo_ints v, xpl_str_t separator);
// {1,2}
void txt_set(struct hlo_text *t, const struct xpl_hlo_message *m, uint32_t num);

// Walks the dependencies of an instruction, as numbers of instructions.
struct txt_uses {
    const uint32_t *v, *end; // of a module that was read in full,
    struct xpl_hlo_ints ids; // else ids in a computation
    const struct hlo_computation *c;
};
static inline struct txt_uses txt_uses_begin(const struct hlo_text *t, uint32_t index,
                                             const struct xpl_hlo_message *in, bool control) {
    const struct xpl_hlo_module *const m = t->m;
    if (m->edges) {
        const struct hlo_edges *const e = &m->edges[index];
        const uint32_t n = control ? e->n_control : e->n_operands;
        if (n == 0) return (struct txt_uses){0};
        const uint32_t *const v = xpl_hlo_module_uses(m, index) + (control ? e->n_operands : 0);
        return (struct txt_uses){.v = v, .end = v + n};
    }
    return (struct txt_uses){
        .ids = xpl_hlo_ints_begin(in, control ? HLO_INSTR_CONTROL : HLO_INSTR_OPERANDS),
        .c = &m->computations[m->instructions[index].computation]};
}
static inline bool txt_uses_next(struct hlo_text *t, struct txt_uses *u, uint32_t *ret) {
    int64_t id;
    if (!u->c) {
        if (u->v == u->end) return false;
        *ret = *u->v++;
        return true;
    }
    if (txt_stopped(t) || !xpl_hlo_ints_next(&u->ids, &id)) return false;
    *ret = xpl_hlo_module_by_id(t->m, u->c, id);
    if (*ret == UINT32_MAX) txt_malformed(t); // the bytes changed since they were checked
    return *ret != UINT32_MAX;
}

// Reads a sub-message; a malformed one fails the text.
void txt_read(struct hlo_text *t, xpl_bytes_t bytes, struct xpl_hlo_message *ret);
// The message of instruction `index`, read into *space; a message of nothing, which lasts, when it
// was seen to say no more than the module's tables do, metadata aside.
const struct xpl_hlo_message *txt_message_of(struct hlo_text *t, uint32_t index,
                                             struct xpl_hlo_message *space);
// The metadata of an instruction; no bytes: it has none.
xpl_bytes_t txt_metadata_of(const struct hlo_text *t, uint32_t index);

// ---- parts ----

void txt_shape(struct hlo_text *t, xpl_bytes_t shape);
// The text of a shape with its layout, which is kept for the next that asks; empty: it is not, and
// has to be put.
xpl_str_t txt_kept_shape(const struct hlo_text *t, xpl_bytes_t shape);
void txt_shape_without_layout(struct hlo_text *t, xpl_bytes_t shape);
// `large`: also constants of more than ten elements and tuples.
void txt_literal(struct hlo_text *t, xpl_bytes_t literal, bool large);
void txt_sharding(struct hlo_text *t, xpl_bytes_t sharding);
// Of an instruction of that shape: a sharding that is not a tuple's applies to each array of a
// tuple.
void txt_instruction_sharding(struct hlo_text *t, xpl_bytes_t sharding, xpl_bytes_t shape);
// mesh['a'=2], device_ids=(...): a MeshProto.
void txt_mesh(struct hlo_text *t, xpl_bytes_t mesh);
// The names of a mesh's axes, which are referred to by number: of the first ones, as no mesh has so
// many.  Large: for the stack of functions that do not recurse.
enum { TXT_MAX_AXES = 1024 };
struct txt_axes {
    unsigned n;
    xpl_str_t names[TXT_MAX_AXES];
};
void txt_axes_read(xpl_bytes_t mesh, struct txt_axes *ret);
// An AxisRefProto; the name of an axis that the mesh does not have is empty.
void txt_axis(struct hlo_text *t, const struct txt_axes *axes, xpl_bytes_t axis);
// [2,4]<=[4,2]T(1,0) without its first part.
void txt_iota(struct hlo_text *t, const struct xpl_hlo_message *m, uint32_t reshape,
              uint32_t transpose);
// {op_type="..." ...}.  `own`: of an instruction; false, and nothing written, when it shows none.
bool txt_op_metadata(struct hlo_text *t, xpl_bytes_t metadata, bool own);
void txt_frontend_attributes(struct hlo_text *t, xpl_bytes_t attributes);
// The configuration of an instruction, wherever the program has it.
xpl_str_t txt_find_config(struct hlo_text *t, const struct xpl_hlo_message *in);
// , backend_config=...: with the configuration, quoted if it is not a dictionary.
void txt_backend_config(struct hlo_text *t, xpl_str_t config);
// The configuration unchanged, without key and quotes.
void txt_plain_config(struct hlo_text *t, xpl_str_t config);
void txt_original_value(struct hlo_text *t, xpl_bytes_t value);
// All attributes of instruction `index`, each after ", ".
void txt_attributes(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in);

// name = shape opcode(operands), attributes
void txt_instruction(struct hlo_text *t, uint32_t index);
// The first line of a module and, with metadata, its stack frames.
void txt_header(struct hlo_text *t, struct xpl_arena *scratch);

// The only instruction of an async computation beside parameters; UINT32_MAX when there are
// others, and then the computation is printed.
uint32_t txt_wrapped(const struct xpl_hlo_module *m, uint32_t computation);
// The computation that an async op started; UINT32_MAX: none.
uint32_t txt_async_computation(const struct hlo_text *t, uint32_t index);

// The computations in the order of the text, m->n_computations of them; NULL at the arena's limit.
uint32_t *txt_computation_order(const struct xpl_hlo_module *m, struct xpl_arena *scratch,
                                uint32_t *ret_n);
// The instructions of a computation likewise: its schedule (packed ids, if any), else post order.
uint32_t *txt_instruction_order(struct hlo_text *t, const struct hlo_computation *c,
                                const struct xpl_hlo_ints *schedule, struct xpl_arena *scratch,
                                uint32_t *ret_n);

#endif
