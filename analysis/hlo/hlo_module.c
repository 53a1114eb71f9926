// SPDX-License-Identifier: Apache-2.0
// Reading one HloModuleProto: which computations and instructions there are and where.  Everything
// that XLA's HloModule::CreateFromProto checks about names, ids and references is checked here,
// because XProf knows nothing of a program that XLA refuses.
#include "analysis/hlo/hlo_module.h"

#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/frames.h"
#include "analysis/hlo/module/message.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/types.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"

enum outcome { FINE, REFUSED, NO_MEMORY };
enum { N_OPCODES = 64 };

struct reader {
    struct xpl_arena *arena;
    struct xpl_hlo_module *m;
    uint32_t computation, instruction; // being read
    uint32_t called;                   // the computation that was called last
    bool full;
    const struct xpl_hlo_opcode *opcodes[N_OPCODES]; // found lately; NULL: none
};

// ---- names ----

// Properties of a character in a name: bits.
enum { BAD = 1, LATER = 2, JOINT = 4 }; // in none; in none's first place; in no type's name
#define X4(a)  (a), (a), (a), (a)
#define X13(a) X4(a), X4(a), X4(a), (a)
#define X26(a) X13(a), X13(a)
#define X32(a) X26(a), X4(a), (a), (a)
#define DIGIT  LATER
#define SIGN   (LATER | JOINT)
static const uint8_t kinds[256] = {
    // ends at 0x2c, before '-' and '.'
    X32(BAD), X13(BAD), SIGN, SIGN, BAD,
    // digits, up to '@'
    X4(DIGIT), X4(DIGIT), DIGIT, DIGIT, X4(BAD), BAD, BAD, BAD,
    // letters and '_'
    X26(0), X4(BAD), JOINT, BAD, X26(0), X4(BAD), BAD,
    // beyond ASCII
    X32(BAD), X32(BAD), X32(BAD), X32(BAD)};

static bool is_name_char(char c, bool first) {
    return (kinds[(uint8_t)c] & (first ? BAD | LATER : BAD)) == 0;
}

// The top bits of those of eight bytes that are between `low` and `high`, both ASCII.  Undefined
// for bytes that are not ASCII.
XPL_INLINE uint64_t between(uint64_t x, uint8_t low, uint8_t high) {
    const uint64_t ones = 0x0101010101010101u;
    return (x + ones * (0x80u - low)) & ~(x + ones * (0x7fu - high));
}

// The properties of eight bytes, like `kinds`, but for LATER.
XPL_INLINE unsigned kinds_of8(const char *p) {
    const uint64_t tops = 0x8080808080808080u;
    uint64_t x;
    memcpy(&x, p, sizeof x);
    if (x & tops) return BAD;
    const uint64_t joint = between(x, '-', '.') | between(x, '_', '_');
    const uint64_t letter = between(x | (0x2020202020202020u), 'a', 'z');
    const uint64_t fine = joint | between(x, '0', '9') | letter;
    return ((fine & tops) != tops ? BAD : 0) | ((joint & tops) ? JOINT : 0);
}

// The properties of a name's characters.
static unsigned kinds_of(xpl_str_t s) {
    unsigned seen = 0;
    if (s.len < 8) {
        for (size_t i = 0; i < s.len; i++)
            seen |= kinds[(uint8_t)s.ptr[i]];
        return seen;
    }
    for (size_t i = 0, last = s.len - 8;; i += 8) {
        seen |= kinds_of8(s.ptr + (i < last ? i : last));
        if (i >= last) return seen;
    }
}

static bool is_clean(xpl_str_t s) {
    if (s.len && !is_name_char(s.ptr[0], true)) return false;
    const unsigned seen = kinds_of(s);
    if (seen & BAD) return false;
    if (s.len > 1 && s.ptr[0] == '_' && s.ptr[1] == '_')
        return xpl_str_starts(s, XPL_STR("__xla_"));
    return (seen & JOINT) || s.len > 13 || !xpl_hlo_is_type_name(s);
}

// NameUniquer::GetSanitizedName: names from compilers need no change and are not copied.
static bool sanitize(struct xpl_arena *a, xpl_str_t s, xpl_str_t *ret) {
    *ret = s;
    if (is_clean(s)) return true;
    char *const p = xpl_arena_alloc(a, s.len + 1);
    if (!p) return false;
    for (size_t i = 0; i < s.len; i++)
        p[i] = is_name_char(s.ptr[i], i == 0) ? s.ptr[i] : '_';
    *ret = (xpl_str_t){p, s.len};
    if (xpl_hlo_is_type_name(*ret)) p[ret->len++] = '_';
    if (ret->len > 1 && p[0] == '_' && p[1] == '_' && !xpl_str_starts(*ret, XPL_STR("__xla_")))
        p[0] = 'a';
    return true;
}

// A hash table of names that stand `stride` bytes apart from `base` on; REFUSED for two equal ones.
static enum outcome index_names(struct xpl_arena *a, const void *base, size_t stride, uint32_t n,
                                uint32_t **ret_slots, uint32_t *ret_cap) {
    uint32_t cap = 16;
    while (cap / 2 < n)
        cap *= 2;
    uint32_t *const slots = xpl_arena_zalloc(a, (size_t)cap * sizeof *slots);
    if (!slots) return NO_MEMORY;
    const uint64_t seed = xpl_hash_seed();
    for (uint32_t i = 0; i < n; i++) {
        const xpl_str_t *const s = (const void *)((const char *)base + i * stride);
        uint32_t at = xpl_hash_str(seed, *s) & (cap - 1);
        for (; slots[at]; at = (at + 1) & (cap - 1)) {
            const xpl_str_t *const t =
                (const void *)((const char *)base + (slots[at] - 1) * stride);
            if (xpl_str_eq(*s, *t)) return REFUSED;
        }
        slots[at] = i + 1;
    }
    *ret_slots = slots;
    *ret_cap = cap;
    return FINE;
}

uint32_t xpl_hlo_module_find(const struct xpl_hlo_module *m, xpl_str_t name) {
    if (!m->valid) return UINT32_MAX;
    uint32_t at = xpl_hash_str(xpl_hash_seed(), name) & (m->n_slots - 1);
    for (; m->slots[at]; at = (at + 1) & (m->n_slots - 1))
        if (xpl_str_eq(m->instructions[m->slots[at] - 1].name, name)) return m->slots[at] - 1;
    return UINT32_MAX;
}

// ---- ids ----

// Where the id of an instruction of a computation that has places is noted; NULL: it has none
// there.
static uint32_t *place_of(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                          int64_t id) {
    const uint64_t at = (uint64_t)id & UINT32_MAX;
    if (at >= c->n_placed || id >> 32 != m->instructions[c->first].id >> 32) return NULL;
    return &m->places[c->places + at];
}

static uint32_t find_id(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                        int64_t id) {
    if (c->n_placed) {
        const uint32_t *const place = place_of(m, c, id);
        return place && *place ? *place - 1 : UINT32_MAX;
    }
    const uint64_t *const at =
        xpl_map_get(&m->instruction_ids, (uint64_t)(c - m->computations), (uint64_t)id);
    return at ? (uint32_t)*at : UINT32_MAX;
}

uint32_t xpl_hlo_module_by_id(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                              int64_t id) {
    // Ids mostly follow each other: the first place to look is right nearly always.
    const uint64_t guess = (uint64_t)id - (uint64_t)(c->n ? m->instructions[c->first].id : 0);
    if (guess < c->n && m->instructions[c->first + guess].id == id)
        return c->first + (uint32_t)guess;
    if (!c->ids_rise) return find_id(m, c, id);
    uint32_t lo = c->first, hi = c->first + c->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (m->instructions[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < c->first + c->n && m->instructions[lo].id == id ? lo : UINT32_MAX;
}

// Notes an id in its place, NULL: in the map.
static enum outcome put_id(struct reader *r, uint32_t instruction, uint32_t *place) {
    if (place) {
        if (*place) return REFUSED;
        *place = instruction + 1;
        return FINE;
    }
    const int64_t id = r->m->instructions[instruction].id;
    bool is_new;
    uint64_t *const at =
        xpl_map_put(r->arena, &r->m->instruction_ids, r->computation, (uint64_t)id, &is_new);
    if (!at) return NO_MEMORY;
    *at = instruction;
    return is_new ? FINE : REFUSED;
}

// Notes the ids of a computation's instructions up to `end`; in the map if one has no place.
static enum outcome put_ids(struct reader *r, uint32_t end) {
    struct hlo_computation *const c = &r->m->computations[r->computation];
    enum outcome o = FINE;
    for (uint32_t i = c->first; i < end; i++)
        if (!place_of(r->m, c, r->m->instructions[i].id)) c->n_placed = 0;
    for (uint32_t i = c->first; o == FINE && i < end; i++)
        o = put_id(r, i, c->n_placed ? place_of(r->m, c, r->m->instructions[i].id) : NULL);
    return o;
}

static uint32_t count_instructions(xpl_bytes_t computation, const uint8_t *all) {
    struct xpl_wire w = xpl_wire_begin(computation);
    struct xpl_field f;
    uint32_t n = 0;
    while (xpl_hlo_next_within(&w, all, &f) == XPL_WIRE_FIELD)
        n += f.num == HLO_COMPUTATION_INSTRUCTIONS && f.type == XPL_WIRE_LEN;
    return n;
}

// Ids stopped rising at instruction `at`: those before it are noted.
static enum outcome begin_places(struct reader *r, struct hlo_computation *c, uint32_t at) {
    struct xpl_hlo_module *const m = r->m;
    const size_t n_places = (size_t)m->n_instructions + m->n_computations;
    if (!m->places) m->places = xpl_arena_zalloc(r->arena, n_places * sizeof *m->places);
    if (!m->places) return NO_MEMORY;
    c->ids_rise = false;
    c->places = c->first + r->computation;
    c->n_placed = count_instructions((xpl_bytes_t){c->p, c->len}, m->bytes.ptr + m->bytes.len) + 1;
    // Counted before; the file may have changed since.
    if (c->n_placed > m->n_instructions - c->first + 1) return REFUSED;
    return put_ids(r, at);
}

// Notes the id of the instruction just read, the next of its computation.
static enum outcome note_id(struct reader *r, int64_t id) {
    struct hlo_computation *const c = &r->m->computations[r->computation];
    const uint32_t at = r->instruction;
    enum outcome o = FINE;
    if (id < 0) return REFUSED;
    r->m->instructions[at].id = id;
    if (c->ids_rise && c->n > 0 && id <= r->m->instructions[at - 1].id) o = begin_places(r, c, at);
    c->n++;
    if (c->ids_rise || o != FINE) return o;
    // One without a place: all are noted anew.
    uint32_t *const place = c->n_placed ? place_of(r->m, c, id) : NULL;
    return c->n_placed && !place ? put_ids(r, at + 1) : put_id(r, at, place);
}

// Calls check for each number of a repeated int64 field, packed or not.
XPL_INLINE enum outcome each_number(struct reader *r, const struct xpl_field f,
                                    enum outcome (*check)(struct reader *, int64_t),
                                    uint32_t *count) {
    if (f.type == XPL_WIRE_VARINT) {
        ++*count;
        return check(r, (int64_t)f.u);
    }
    if (f.type != XPL_WIRE_LEN) return FINE;
    // Mostly a single number of five bytes: more than the run is read at once, where there is more.
    const uint8_t *const all = r->m->bytes.ptr + r->m->bytes.len;
    for (const uint8_t *p = f.len.ptr, *end = p + f.len.len; p != end;) {
        const struct xpl_varint v = xpl_varint_wide(p, all);
        if (!v.p || v.p > end) return REFUSED;
        const enum outcome o = check(r, (int64_t)v.v);
        if (o != FINE) return o;
        ++*count;
        p = v.p;
    }
    return FINE;
}

static enum outcome note_operand(struct reader *r, int64_t id) {
    const struct hlo_computation *const c = &r->m->computations[r->computation];
    const uint32_t at = xpl_hlo_module_by_id(r->m, c, id);
    if (at == UINT32_MAX) return REFUSED;
    if (!r->m->edges) return FINE;
    uint32_t *const slot = xpl_vec_push(r->arena, &r->m->operands);
    if (!slot) return NO_MEMORY;
    *slot = at;
    return FINE;
}

static enum outcome note_called(struct reader *r, int64_t id) {
    const uint64_t *const at = xpl_map_get(&r->m->computation_ids, (uint64_t)id, 0);
    if (!at) return REFUSED;
    r->called = (uint32_t)*at;
    if (!r->m->edges) return FINE;
    struct hlo_call *const call = xpl_vec_push(r->arena, &r->m->calls);
    if (!call) return NO_MEMORY;
    *call = (struct hlo_call){r->instruction, (uint32_t)*at};
    return FINE;
}

// ---- instructions and computations ----

static bool is_fusion_kind(xpl_str_t s) {
    return xpl_str_eq(s, XPL_STR("kLoop")) || xpl_str_eq(s, XPL_STR("kInput")) ||
           xpl_str_eq(s, XPL_STR("kOutput")) || xpl_str_eq(s, XPL_STR("kCustom"));
}

struct instruction_fields {
    xpl_str_t name, opcode, fusion_kind;
    xpl_bytes_t shape; // ptr NULL: it has none
    int64_t id, parameter;
    uint32_t n_operands, n_control, n_called;
    bool mixed;                  // operands follow control predecessors, as no writer has them
    bool has_metadata, has_more; // as in struct hlo_instruction
};

static const struct instruction_fields nothing; // copied, as GCC clears by a slow "rep stos"

// Any other field says something, but for two that XLA always writes, mostly empty.
XPL_INLINE bool says_more(const struct xpl_field f) {
    const bool may_be_empty =
        f.num == HLO_INSTR_FRONTEND_ATTRIBUTES || f.num == HLO_INSTR_STATISTICS;
    return !may_be_empty || f.type != XPL_WIRE_LEN || f.len.len > 0;
}

static enum outcome walk_instruction(struct reader *r, xpl_bytes_t bytes,
                                     struct instruction_fields *ret) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    enum outcome o = FINE;
    const uint8_t *const all = r->m->bytes.ptr + r->m->bytes.len;
    xpl_bytes_t one;
    if (xpl_hlo_take(&w, HLO_INSTR_NAME, &one))
        ret->name = (xpl_str_t){(const char *)one.ptr, one.len};
    if (xpl_hlo_take(&w, HLO_INSTR_OPCODE, &one))
        ret->opcode = (xpl_str_t){(const char *)one.ptr, one.len};
    (void)xpl_hlo_take(&w, HLO_INSTR_SHAPE, &ret->shape);
    ret->has_metadata = xpl_hlo_take(&w, HLO_INSTR_METADATA, &one);
    while (o == FINE && (res = xpl_hlo_next_within(&w, all, &f)) == XPL_WIRE_FIELD) {
        const bool text = f.type == XPL_WIRE_LEN;
        switch (f.num) {
            case HLO_INSTR_NAME:
                if (text) ret->name = xpl_wire_str(&f);
                break;
            case HLO_INSTR_OPCODE:
                if (text) ret->opcode = xpl_wire_str(&f);
                break;
            case HLO_INSTR_SHAPE:
                if (text) ret->shape = f.len;
                break;
            case HLO_INSTR_FUSION_KIND:
                if (text) ret->fusion_kind = xpl_wire_str(&f);
                ret->has_more = true;
                break;
            case HLO_INSTR_PARAMETER_NUMBER:
                if (f.type == XPL_WIRE_VARINT) ret->parameter = (int64_t)f.u;
                break;
            case HLO_INSTR_METADATA:
                ret->has_more |= ret->has_metadata;
                ret->has_metadata = true;
                break;
            case HLO_INSTR_ID:
                if (f.type == XPL_WIRE_VARINT) ret->id = (int64_t)f.u;
                break;
            case HLO_INSTR_OPERANDS:
                ret->mixed |= ret->n_control > 0;
                o = each_number(r, f, note_operand, &ret->n_operands);
                break;
            case HLO_INSTR_CONTROL:
                o = each_number(r, f, note_operand, &ret->n_control);
                ret->has_more = true;
                break;
            case HLO_INSTR_CALLED:
                o = each_number(r, f, note_called, &ret->n_called);
                ret->has_more = true;
                break;
            default: ret->has_more |= says_more(f); break;
        }
    }
    return o == FINE && res == XPL_WIRE_MALFORMED ? REFUSED : o;
}

// Notes an instruction's dependencies, operands first: they were noted from operand `first` on.
static enum outcome note_edges(struct reader *r, xpl_bytes_t bytes, size_t first,
                               const struct instruction_fields *in) {
    if (!r->m->edges) return FINE;
    r->m->edges[r->instruction] = (struct hlo_edges){
        .first = first, .n_operands = in->n_operands, .n_control = in->n_control};
    if (!in->mixed) return FINE;
    enum outcome o = FINE;
    r->m->operands.n = first;
    for (uint32_t num = HLO_INSTR_OPERANDS; num <= HLO_INSTR_CONTROL; num++) {
        struct xpl_wire w = xpl_wire_begin(bytes);
        struct xpl_field f;
        uint32_t n = 0;
        while (o == FINE && xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
            if (f.num == num) o = each_number(r, f, note_operand, &n);
    }
    return o;
}

// A program has few opcodes, and each often: they are remembered by length and two letters.
static const struct xpl_hlo_opcode *find_opcode(struct reader *r, xpl_str_t name) {
    if (!name.len) return NULL;
    const uint32_t key = (uint8_t)name.ptr[0] * 7u + (uint8_t)name.ptr[name.len - 1] * 3u;
    const struct xpl_hlo_opcode **const slot = &r->opcodes[(key + name.len) % N_OPCODES];
    if (!*slot || !xpl_str_eq_short(name, (xpl_str_t){(*slot)->name, (*slot)->len}))
        *slot = xpl_hlo_opcode_find(name);
    return *slot;
}

static enum outcome read_instruction(struct reader *r, xpl_bytes_t bytes) {
    struct instruction_fields in = nothing;
    const size_t first_edge = r->m->operands.n;
    enum outcome o = walk_instruction(r, bytes, &in);
    if (o == FINE) o = note_edges(r, bytes, first_edge, &in);
    if (o != FINE) return o;
    const struct xpl_hlo_opcode *const op = find_opcode(r, in.opcode);
    if (!op || !in.shape.ptr || in.name.len == 0 || bytes.len > UINT32_MAX) return REFUSED;
    if (op->arity >= 0 && in.n_operands != (uint32_t)op->arity) return REFUSED;
    struct hlo_instruction *const i = &r->m->instructions[r->instruction];
    // Every field, so that none has to be cleared.
    i->p = bytes.ptr;
    i->len = (uint32_t)bytes.len;
    i->computation = r->computation;
    i->id = in.id;
    i->opcode = (uint16_t)xpl_hlo_opcode_id(op);
    i->has_metadata = in.has_metadata;
    i->has_more = in.has_more || in.parameter != (uint32_t)in.parameter;
    i->shape_at = (uint32_t)(in.shape.ptr - bytes.ptr);
    i->shape = (uint32_t)in.shape.len;
    i->parameter = (uint32_t)in.parameter;
    if (!sanitize(r->arena, in.name, &i->name)) return NO_MEMORY;
    if (op->kind == HLO_OP_FUSION) {
        if (in.n_called != 1 || !is_fusion_kind(in.fusion_kind)) return REFUSED;
        struct hlo_computation *const c = &r->m->computations[r->called];
        if (c->fusion == UINT32_MAX) c->fusion = r->instruction;
    }
    o = note_id(r, in.id);
    r->instruction++;
    return o;
}

static bool says_more_of_computation(const struct xpl_field *f) {
    if (f->type != XPL_WIRE_LEN || f->len.len == 0) return false;
    if (f->num == HLO_COMPUTATION_THREAD) return !xpl_str_eq(xpl_wire_str(f), XPL_STR("main"));
    return f->num == HLO_COMPUTATION_BACKEND_CONFIG;
}

static enum outcome read_computation(struct reader *r, xpl_bytes_t bytes) {
    struct hlo_computation *const c = &r->m->computations[r->computation];
    *c = (struct hlo_computation){.p = bytes.ptr,
                                  .len = bytes.len,
                                  .first = r->instruction,
                                  .only = UINT32_MAX,
                                  .fusion = UINT32_MAX,
                                  .ids_rise = true};
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result res;
    int64_t root = 0;
    uint32_t n_ops = 0;
    xpl_str_t name = {0};
    const uint8_t *const all = r->m->bytes.ptr + r->m->bytes.len;
    while ((res = xpl_hlo_next_within(&w, all, &f)) == XPL_WIRE_FIELD) {
        if (f.num == HLO_COMPUTATION_INSTRUCTIONS && f.type == XPL_WIRE_LEN) {
            // Counted before; the file may have changed since.
            if (r->instruction == r->m->n_instructions) return REFUSED;
            const enum outcome o = read_instruction(r, f.len);
            if (o != FINE) return o;
            if (r->m->instructions[r->instruction - 1].opcode != XPL_HLO_PARAMETER) {
                c->only = r->instruction - 1;
                n_ops++;
            }
        } else if (f.num == HLO_COMPUTATION_NAME && f.type == XPL_WIRE_LEN) {
            name = xpl_wire_str(&f);
        } else if (f.num == HLO_COMPUTATION_ID && f.type == XPL_WIRE_VARINT) {
            c->id = (int64_t)f.u;
        } else if (f.num == HLO_COMPUTATION_ROOT_ID && f.type == XPL_WIRE_VARINT) {
            root = (int64_t)f.u;
        } else {
            c->has_more |= says_more_of_computation(&f);
        }
    }
    if (n_ops != 1) c->only = UINT32_MAX;
    c->root = xpl_hlo_module_by_id(r->m, c, root);
    if (res == XPL_WIRE_MALFORMED || c->root == UINT32_MAX) return REFUSED;
    bool is_new;
    uint64_t *const at = xpl_map_put(r->arena, &r->m->computation_ids, (uint64_t)c->id, 0, &is_new);
    if (!at || !sanitize(r->arena, name, &c->name)) return NO_MEMORY;
    *at = r->computation++;
    return is_new ? FINE : REFUSED;
}

// ---- the module ----

// How many computations and instructions there are; REFUSED when that cannot be known.
static enum outcome count_module(xpl_bytes_t bytes, struct xpl_hlo_module *m) {
    struct xpl_wire w = xpl_wire_begin(bytes), v;
    struct xpl_field f, g;
    enum xpl_wire_result res;
    const uint8_t *const all = bytes.len ? bytes.ptr + bytes.len : bytes.ptr;
    while ((res = xpl_hlo_next_within(&w, all, &f)) == XPL_WIRE_FIELD) {
        if (f.num != HLO_MODULE_COMPUTATIONS || f.type != XPL_WIRE_LEN) continue;
        if (m->n_computations++ == UINT32_MAX - 1) return REFUSED;
        v = xpl_wire_begin(f.len);
        while ((res = xpl_hlo_next_within(&v, all, &g)) == XPL_WIRE_FIELD) {
            if (g.num != HLO_COMPUTATION_INSTRUCTIONS || g.type != XPL_WIRE_LEN) continue;
            if (m->n_instructions++ >= UINT32_MAX / 4) return REFUSED;
        }
        if (res == XPL_WIRE_MALFORMED) return REFUSED;
    }
    return res == XPL_WIRE_MALFORMED ? REFUSED : FINE;
}

void xpl_hlo_module_count(xpl_bytes_t bytes, uint32_t *ret_computations,
                          uint32_t *ret_instructions) {
    struct xpl_hlo_module m = {0};
    const bool fine = count_module(bytes, &m) == FINE;
    *ret_computations = fine ? m.n_computations : 0;
    *ret_instructions = fine ? m.n_instructions : 0;
}

static enum outcome frames_outcome(xpl_status_t st) {
    return st == XPL_OK ? FINE : st == XPL_DATA_LOSS ? REFUSED : NO_MEMORY;
}

static enum outcome read_fields(struct reader *r, xpl_bytes_t bytes) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    int64_t entry = 0;
    bool has_shape = false;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        enum outcome o = FINE;
        if (f.num == HLO_MODULE_COMPUTATIONS && f.type == XPL_WIRE_LEN) {
            if (r->computation == r->m->n_computations) return REFUSED;
            o = read_computation(r, f.len);
        } else if (f.num == HLO_MODULE_PROGRAM_SHAPE) {
            has_shape |= f.type == XPL_WIRE_LEN;
        } else if (f.num == HLO_MODULE_ENTRY_ID && f.type == XPL_WIRE_VARINT) {
            entry = (int64_t)f.u;
        } else if (f.num == HLO_MODULE_STACK_FRAMES && f.type == XPL_WIRE_LEN) {
            o = frames_outcome(xpl_hlo_frames_read(f.len, r->arena, r->m));
        }
        if (o != FINE) return o;
    }
    const uint64_t *const at = xpl_map_get(&r->m->computation_ids, (uint64_t)entry, 0);
    if (!has_shape || !at) return REFUSED;
    r->m->entry = (uint32_t)*at;
    return FINE;
}

static enum outcome read_module(struct reader *r, xpl_bytes_t bytes) {
    struct xpl_hlo_module *const m = r->m;
    enum outcome o = count_module(bytes, m);
    if (o != FINE) return o;
    m->computations = xpl_arena_array(r->arena, m->n_computations, sizeof *m->computations);
    m->instructions = xpl_arena_array(r->arena, m->n_instructions, sizeof *m->instructions);
    if (r->full) m->edges = xpl_arena_array(r->arena, m->n_instructions, sizeof *m->edges);
    if (!m->computations || !m->instructions || (r->full && !m->edges)) return NO_MEMORY;
    o = read_fields(r, bytes);
    if (o != FINE) return o;
    m->n_computations = r->computation;
    m->n_instructions = r->instruction;
    uint32_t *slots, cap;
    o = index_names(r->arena, &m->computations->name, sizeof *m->computations, m->n_computations,
                    &slots, &cap);
    if (o != FINE) return o;
    _Static_assert(offsetof(struct hlo_instruction, name) == 0, "index_names starts at the name");
    return index_names(r->arena, m->instructions, sizeof *m->instructions, m->n_instructions,
                       &m->slots, &m->n_slots);
}

static xpl_status_t start_reading(xpl_bytes_t bytes, bool full, struct xpl_arena *a,
                                  struct xpl_hlo_module **ret, struct xpl_error *err) {
    struct xpl_hlo_module *const m = xpl_arena_zalloc(a, sizeof *m);
    if (!m) XPL_RETURN_OOM(err, "HLO module");
    m->bytes = bytes;
    struct reader r = {.arena = a, .m = m, .full = full};
    const enum outcome o = read_module(&r, bytes);
    if (o == NO_MEMORY) XPL_RETURN_OOM(err, "HLO module");
    m->valid = o == FINE;
    *ret = m;
    return XPL_OK;
}

xpl_status_t xpl_hlo_module_read(xpl_bytes_t bytes, struct xpl_arena *a,
                                 struct xpl_hlo_module **ret, struct xpl_error *err) {
    return start_reading(bytes, false, a, ret, err);
}

xpl_status_t xpl_hlo_module_read_full(xpl_bytes_t bytes, struct xpl_arena *a,
                                      struct xpl_hlo_module **ret, struct xpl_error *err) {
    return start_reading(bytes, true, a, ret, err);
}
