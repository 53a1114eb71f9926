// SPDX-License-Identifier: Apache-2.0
// The instructions that buffers are values of, and the shapes of their parts.
#include <inttypes.h>

#include "analysis/hlo/memory/impl.h"
#include "analysis/hlo/module/frames.h"
#include "analysis/hlo/module/shape.h"
#include "analysis/hlo/types.h"

// ---- instructions ----

struct xpl_hlo_instruction_walk xpl_hlo_instruction_walk_begin(xpl_bytes_t module) {
    return (struct xpl_hlo_instruction_walk){.module = xpl_wire_begin(module)};
}

bool xpl_hlo_instruction_walk_next(struct xpl_hlo_instruction_walk *w, xpl_bytes_t *ret) {
    struct xpl_field f;
    for (;;) {
        enum xpl_wire_result res;
        while ((res = xpl_hlo_next_field(&w->computation, &f)) == XPL_WIRE_FIELD)
            if (f.num == HLO_COMPUTATION_INSTRUCTIONS && f.type == XPL_WIRE_LEN) {
                *ret = f.len;
                return true;
            }
        if (res == XPL_WIRE_END) res = xpl_hlo_next_field(&w->module, &f);
        w->malformed |= res == XPL_WIRE_MALFORMED;
        if (res != XPL_WIRE_FIELD) return false;
        if (f.num == HLO_MODULE_COMPUTATIONS && f.type == XPL_WIRE_LEN)
            w->computation = xpl_wire_begin(f.len);
    }
}

// Reads only the id.  The other fields are read when a buffer needs the instruction, as few do.
static bool read_id(xpl_bytes_t instruction, int64_t *ret) {
    struct xpl_wire w = xpl_wire_begin(instruction);
    struct xpl_field f;
    enum xpl_wire_result res;
    *ret = 0;
    while ((res = xpl_hlo_next_field(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num != HLO_INSTR_ID || f.type != XPL_WIRE_VARINT) continue;
        *ret = (int64_t)f.u;
        return true;
    }
    return res == XPL_WIRE_END;
}

static bool read_metadata(xpl_bytes_t bytes, struct hlo_buffer_op *op) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        const bool text = f.type == XPL_WIRE_LEN, number = f.type == XPL_WIRE_VARINT;
        if (f.num == HLO_META_OP_NAME && text) op->op_name = xpl_wire_str(&f);
        if (f.num == HLO_META_SOURCE_FILE && text) op->source_file = xpl_wire_str(&f);
        if (f.num == HLO_META_SOURCE_LINE && number) op->source_line = (int32_t)f.u;
        if (f.num == HLO_META_STACK_FRAME_ID && number) op->frame = (int32_t)f.u;
    }
    return res == XPL_WIRE_END;
}

// ---- shapes ----

// Maximum depth of a buffer's shape in others.
enum { MAX_DEPTH = 100 };

static bool array_size(const struct xpl_hlo_shape *s, int64_t *ret) {
    const int64_t bits = xpl_hlo_element_bits(s->type);
    struct xpl_hlo_ints dims = s->dims;
    int64_t n = 1, element_bits = 0;
    for (int64_t d; xpl_hlo_ints_next(&dims, &d);)
        if (d < 0 || __builtin_mul_overflow(n, d, &n)) return false;
    struct xpl_wire w = xpl_wire_begin(s->layout);
    for (struct xpl_field f; s->has_layout && xpl_hlo_next_field(&w, &f) == XPL_WIRE_FIELD;)
        if (f.num == HLO_LAYOUT_ELEMENT_BITS && f.type == XPL_WIRE_VARINT)
            element_bits = (int64_t)f.u;
    if (bits == 0 || element_bits < 0) return false;
    if (element_bits == 0) return !__builtin_mul_overflow(n, (bits + 7) / 8, ret);
    if (__builtin_mul_overflow(n, element_bits, &n) || n > INT64_MAX - 7) return false;
    *ret = (n + 7) / 8;
    return true;
}

// The first part of a shape that has parts; false when it has none.
static bool first_part(const struct xpl_hlo_shape *s, xpl_bytes_t *ret) {
    struct xpl_hlo_each e = xpl_hlo_shape_parts(s);
    return s->n_parts && xpl_hlo_each_next(&e, ret);
}

// Bytes of a value without the padding of layouts; false when the shape is invalid.
static bool hlo_memory_shape_size(xpl_bytes_t shape, int64_t *ret) {
    struct xpl_hlo_shape s;
    xpl_hlo_shape_read(shape, &s);
    // The type inside a buffer type has the size.
    for (unsigned depth = 0; s.type == HLO_TYPE_BUFFER && !s.malformed; depth++) {
        if (depth == MAX_DEPTH || !first_part(&s, &shape)) return false;
        xpl_hlo_shape_read(shape, &s);
    }
    if (s.malformed) return false;
    *ret = 0;
    if (s.type == HLO_TYPE_TUPLE)
        *ret = 8 * (int64_t)s.n_parts;
    else if (s.type != HLO_TYPE_TOKEN && s.type != HLO_TYPE_OPAQUE)
        return array_size(&s, ret);
    return true;
}

// A shape and its size, which is worked out once: a program may have as many buffers as parts.
struct sized {
    xpl_bytes_t shape;
    int64_t unpadded;
    enum { NOT_SIZED, SIZED, CANNOT_BE } state;
};
// The shape of an instruction: the whole in front of its parts.
struct shapes {
    struct sized *v;
    size_t n, room;
};

static bool read_shapes(struct memory_reader *r, xpl_bytes_t whole, struct shapes *ret) {
    struct xpl_hlo_shape s;
    xpl_hlo_shape_read(whole, &s);
    if (ret->room < (size_t)s.n_parts + 1) {
        ret->room = 2 * ((size_t)s.n_parts + 1); // all that are made have twice as many at most
        ret->v = xpl_arena_array(r->arena, ret->room, sizeof *ret->v);
        if (!ret->v) return false;
    }
    struct xpl_hlo_each e = xpl_hlo_shape_parts(&s);
    ret->n = 0;
    ret->v[ret->n++] = (struct sized){.shape = whole};
    for (xpl_bytes_t part; ret->n <= s.n_parts && xpl_hlo_each_next(&e, &part);)
        ret->v[ret->n++] = (struct sized){.shape = part};
    return true;
}

// As in XProf: for a value of any depth the shape is the part at the index' last number, the whole
// where there is none.
static xpl_status_t give_shape(struct hlo_buffer *b, const struct shapes *shapes,
                               struct xpl_error *err) {
    struct xpl_hlo_ints index = xpl_hlo_buffer_index(b);
    bool any = false, ok = true;
    int64_t last = 0;
    for (; xpl_hlo_ints_next(&index, &last); any = true)
        ok &= last >= 0;
    const bool is_part = any && last >= 0 && (uint64_t)last < shapes->n - 1;
    struct sized *const s = &shapes->v[is_part ? (size_t)last + 1 : 0];
    if (s->state == NOT_SIZED)
        s->state = hlo_memory_shape_size(s->shape, &s->unpadded) ? SIZED : CANNOT_BE;
    if (!ok || s->state == CANNOT_BE)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "buffer assignment: buffer %" PRId64 " has no shape that can be", b->id);
    b->shape = s->shape;
    b->unpadded = s->unpadded;
    return XPL_OK;
}

// ---- the instructions of buffers ----

// The buffers of an instruction form a list.
struct wanted {
    struct xpl_map first; // instruction id: buffer + 1
    uint32_t *next;       // by buffer, likewise; 0: the last
    int64_t least, most;  // ids that are looked for lie between these
};

static bool index_instructions(struct memory_reader *r, struct wanted *w) {
    const struct xpl_hlo_memory *const m = r->m;
    w->next = xpl_arena_zalloc(r->arena, ((size_t)m->n_buffers + 1) * sizeof *w->next);
    if (!w->next) return false;
    w->least = INT64_MAX;
    w->most = INT64_MIN;
    for (uint32_t i = 0; i < m->n_buffers; i++) {
        bool is_new;
        if (m->buffers[i].allocation == UINT32_MAX) continue;
        uint64_t *const at =
            xpl_map_put(r->arena, &w->first, (uint64_t)m->buffers[i].instruction, 0, &is_new);
        if (!at) return false;
        if (m->buffers[i].instruction < w->least) w->least = m->buffers[i].instruction;
        if (m->buffers[i].instruction > w->most) w->most = m->buffers[i].instruction;
        w->next[i] = (uint32_t)*at;
        *at = i + 1;
    }
    return true;
}

static xpl_status_t read_op(xpl_bytes_t bytes, struct hlo_buffer_op *op, xpl_bytes_t *ret_shape,
                            struct xpl_error *err) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    *op = (struct hlo_buffer_op){0};
    *ret_shape = (xpl_bytes_t){0};
    enum xpl_wire_result res;
    while ((res = xpl_hlo_next_field(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == HLO_INSTR_NAME) op->name = xpl_wire_str(&f);
        if (f.num == HLO_INSTR_OPCODE) op->opcode = xpl_wire_str(&f);
        if (f.num == HLO_INSTR_SHAPE) *ret_shape = f.len;
        if (f.num == HLO_INSTR_METADATA && !read_metadata(f.len, op)) XPL_RETURN_MALFORMED(err);
    }
    if (res == XPL_WIRE_MALFORMED) XPL_RETURN_MALFORMED(err);
    return XPL_OK;
}

// Of instructions with one id the last is the buffers'.
static xpl_status_t give_op(struct memory_reader *r, const struct wanted *w, uint32_t first,
                            xpl_bytes_t instruction, struct xpl_error *err) {
    struct hlo_buffer_op op;
    xpl_bytes_t shape;
    XPL_TRY(read_op(instruction, &op, &shape, err));
    for (uint32_t i = first; i; i = w->next[i - 1]) {
        struct hlo_buffer *const b = &r->m->buffers[i - 1];
        b->op = op;
        b->shape = shape;
        b->number = 0; // it has an instruction
    }
    return XPL_OK;
}

static xpl_status_t find_ops(struct memory_reader *r, const struct wanted *wanted,
                             xpl_bytes_t module, struct xpl_error *err) {
    struct xpl_hlo_instruction_walk w = xpl_hlo_instruction_walk_begin(module);
    uint32_t ticks = 0;
    for (xpl_bytes_t in; xpl_hlo_instruction_walk_next(&w, &in);) {
        int64_t id;
        if (!read_id(in, &id)) XPL_RETURN_MALFORMED(err);
        if (++ticks % 4096 == 0 && xpl_exec_cancelled(r->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory of an HLO module cancelled");
        if (id < wanted->least || id > wanted->most) continue;
        const uint64_t *const at = xpl_map_get(&wanted->first, (uint64_t)id, 0);
        if (at) XPL_TRY(give_op(r, wanted, (uint32_t)*at, in, err));
    }
    if (w.malformed) XPL_RETURN_MALFORMED(err);
    return XPL_OK;
}

static xpl_status_t read_module(struct memory_reader *r, xpl_bytes_t module,
                                struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct xpl_wire w = xpl_wire_begin(module);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == HLO_MODULE_NAME) m->module = xpl_wire_str(&f);
        if (f.num == HLO_MODULE_ENTRY_NAME) m->entry = xpl_wire_str(&f);
        if (f.num != HLO_MODULE_STACK_FRAMES) continue;
        const xpl_status_t st = xpl_hlo_frames_read(f.len, r->arena, &m->frames);
        if (st == XPL_DATA_LOSS) XPL_RETURN_MALFORMED(err);
        if (st != XPL_OK) XPL_RETURN_OOM(err, "stack frames");
    }
    return XPL_OK;
}

// Gives the buffers of each instruction their shapes; the last of its list represents it.
static xpl_status_t give_shapes(struct memory_reader *r, const struct wanted *w,
                                struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct shapes shapes = {0};
    for (uint32_t i = 0; i < m->n_buffers; i++) {
        const struct hlo_buffer *const b = &m->buffers[i];
        const uint64_t *const first = xpl_map_get(&w->first, (uint64_t)b->instruction, 0);
        if (b->allocation == UINT32_MAX || !first || *first != i + 1) continue;
        if (xpl_exec_cancelled(r->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory of an HLO module cancelled");
        if (!read_shapes(r, b->shape, &shapes)) XPL_RETURN_OOM(err, "buffer assignment");
        for (uint32_t k = i + 1; k; k = w->next[k - 1])
            XPL_TRY(give_shape(&m->buffers[k - 1], &shapes, err));
    }
    return XPL_OK;
}

xpl_status_t xpl_hlo_memory_read_ops(struct memory_reader *r, xpl_bytes_t module,
                                     struct xpl_error *err) {
    struct xpl_hlo_memory *const m = r->m;
    struct wanted wanted = {0};
    XPL_TRY(read_module(r, module, err));
    if (!index_instructions(r, &wanted)) XPL_RETURN_OOM(err, "buffer assignment");
    XPL_TRY(find_ops(r, &wanted, module, err));
    for (uint32_t i = 0; i < m->n_buffers; i++) {
        struct hlo_buffer *const b = &m->buffers[i];
        if (b->allocation == UINT32_MAX) continue;
        if (b->number < 0)
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                             "buffer assignment: buffer %" PRId64 " is of no instruction (%" PRId64
                             ")",
                             b->id, b->instruction);
        b->number = -1;
    }
    return give_shapes(r, &wanted, err);
}
