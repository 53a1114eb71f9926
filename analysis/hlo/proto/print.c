// SPDX-License-Identifier: Apache-2.0
// The walk over messages, by their tables.  Bytes in the order in which protobuf writes them are
// printed as they are read.  Others are put in order first, with the fields that protobuf would
// have read.
#include "analysis/hlo/proto/print.h"

#include <string.h>

#include "analysis/hlo/proto/impl.h"
#include "base/vec.h"

enum {
    MOST_FIELDS = 128, // of a message
    CHECKED_EVERY = 4096,
};

struct entry { // a field of a message that is not in order
    struct xpl_field f;
    struct xpl_field key, value; // of a map's entry
    size_t order;
};

enum failure { FINE, MALFORMED, TOO_DEEP, NO_MEMORY, CANCELLED };

struct printer {
    struct xpl_buf *b;
    struct xpl_exec *exec;
    struct xpl_arena *arena;
    XPL_VEC(struct entry) stack; // those of the messages around come before a message's own
    bool json;
    unsigned depth, until_check;
    enum failure why;
};

static void print_message(struct printer *p, const struct xpl_proto_message *m, xpl_bytes_t bytes);

static bool fail_print(struct printer *p, enum failure why) {
    if (p->why == FINE) p->why = why;
    return false;
}

static bool stopped(struct printer *p) {
    if (p->why == FINE && p->b->failed) p->why = NO_MEMORY;
    if (p->why != FINE) return true;
    if (p->until_check-- > 0) return false;
    p->until_check = CHECKED_EVERY;
    return xpl_exec_cancelled(p->exec) && !fail_print(p, CANCELLED);
}

// ---- values ----

static void indent(struct printer *p) {
    static const char blanks[] = "                                ";
    for (size_t n = 2 * (size_t)p->depth; n;) {
        const size_t some = n < sizeof blanks - 1 ? n : sizeof blanks - 1;
        xpl_buf_put(p->b, blanks, some);
        n -= some;
    }
}

static void print_sub_message(struct printer *p, const struct xpl_proto_field *f,
                              xpl_bytes_t bytes) {
    if (p->depth + 1 >= XPL_HLO_PROTO_DEPTH) {
        (void)fail_print(p, TOO_DEEP);
        return;
    }
    xpl_buf_str(p->b, p->json ? XPL_STR("{") : XPL_STR(" {\n"));
    p->depth++;
    print_message(p, &xpl_hlo_messages[f->of], bytes);
    p->depth--;
    if (!p->json) indent(p);
    xpl_buf_str(p->b, p->json ? XPL_STR("}") : XPL_STR("}\n"));
}

static void print_value(struct printer *p, const struct xpl_proto_field *f,
                        const struct xpl_field *v) {
    if (!p->json) {
        indent(p);
        xpl_buf_str(p->b, xpl_str_from(f->name));
    }
    if (f->type == XPL_PROTO_MESSAGE) {
        print_sub_message(p, f, v->len);
    } else if (p->json) {
        txt_proto_json(p->b, f, v);
    } else {
        xpl_buf_str(p->b, XPL_STR(": "));
        txt_proto_pbtxt(p->b, f, v);
        xpl_buf_putc(p->b, '\n');
    }
}

// The punctuation before the first value of a field, after the last, and between two.
static void comma(struct printer *p, bool first) {
    if (p->json && !first) xpl_buf_putc(p->b, ',');
}
static void begin_field(struct printer *p, const struct xpl_proto_field *f, bool first) {
    if (!p->json) return;
    comma(p, first);
    txt_proto_json_name(p->b, f->name);
    if (f->flags & XPL_PROTO_MANY) xpl_buf_putc(p->b, '[');
    if (f->flags & XPL_PROTO_MAP) xpl_buf_putc(p->b, '{');
}
static void end_field(struct printer *p, const struct xpl_proto_field *f) {
    if (!p->json) return;
    if (f->flags & XPL_PROTO_MANY) xpl_buf_putc(p->b, ']');
    if (f->flags & XPL_PROTO_MAP) xpl_buf_putc(p->b, '}');
}

static enum xpl_wire_type wire_type(const struct xpl_proto_field *f) {
    switch (f->type) {
        case XPL_PROTO_FLOAT: return XPL_WIRE_I32;
        case XPL_PROTO_DOUBLE: return XPL_WIRE_I64;
        case XPL_PROTO_TEXT:
        case XPL_PROTO_BYTES:
        case XPL_PROTO_MESSAGE: return XPL_WIRE_LEN;
        default: return XPL_WIRE_VARINT;
    }
}

// A packed run of numbers.
static void print_packed(struct printer *p, const struct xpl_proto_field *f, xpl_bytes_t run,
                         bool *first) {
    const uint8_t *at = run.ptr, *const end = run.len ? at + run.len : at;
    const enum xpl_wire_type type = wire_type(f);
    const ptrdiff_t size = type == XPL_WIRE_I32 ? 4 : 8;
    while (at != end && !stopped(p)) {
        struct xpl_field v = {.type = type};
        if (type == XPL_WIRE_VARINT) {
            const struct xpl_varint x = xpl_varint_read(at, end);
            v.u = x.v;
            at = x.p;
        } else {
            if (end - at < size) at = NULL;
            if (at) memcpy(&v.u, at, (size_t)size);
            if (at) at += size;
        }
        if (!at) {
            (void)fail_print(p, MALFORMED);
            return;
        }
        comma(p, *first);
        *first = false;
        print_value(p, f, &v);
    }
}

static void print_one_of_many(struct printer *p, const struct xpl_proto_field *f,
                              const struct xpl_field *v, bool *first) {
    if (v->type == XPL_WIRE_LEN && wire_type(f) != XPL_WIRE_LEN) {
        print_packed(p, f, v->len, first);
        return;
    }
    comma(p, *first);
    *first = false;
    print_value(p, f, v);
}

// Whether a single value is there for a reader.
static bool is_shown(const struct xpl_proto_field *f, const struct xpl_field *v) {
    if (f->flags & XPL_PROTO_KNOWN) return true;
    if (f->type == XPL_PROTO_UINT32 || f->type == XPL_PROTO_INT32 || f->type == XPL_PROTO_ENUM)
        return (uint32_t)v->u != 0;
    return wire_type(f) == XPL_WIRE_LEN ? v->len.len != 0 : v->u != 0;
}

// ---- maps ----

static bool read_map_entry(struct printer *p, struct entry *e) {
    struct xpl_wire w = xpl_wire_begin(e->f.len);
    struct xpl_field f;
    enum xpl_wire_result r;
    e->key = e->value = (struct xpl_field){.len = {(const uint8_t *)"", 0}};
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num == 1) e->key = f;
        if (f.num == 2) e->value = f;
    }
    return r == XPL_WIRE_END || fail_print(p, MALFORMED);
}

static int by_key(const void *pa, const void *pb) {
    const struct entry *const a = pa, *const b = pb;
    const int64_t x = (int64_t)a->key.u, y = (int64_t)b->key.u;
    if (x != y) return x < y ? -1 : 1;
    const int c = xpl_str_cmp(xpl_wire_str(&a->key), xpl_wire_str(&b->key));
    return c ? c : (a->order > b->order) - (a->order < b->order);
}

static bool same_key(const struct entry *a, const struct entry *b) {
    return a->key.u == b->key.u && xpl_str_eq(xpl_wire_str(&a->key), xpl_wire_str(&b->key));
}

// One entry: its key and its value, also where they are zero.
static void print_map_entry(struct printer *p, const struct xpl_proto_field *f,
                            const struct entry *e) {
    const struct xpl_proto_field *const pair = xpl_hlo_messages[f->of].fields;
    if (p->json) {
        const bool text = pair[0].type == XPL_PROTO_TEXT;
        if (text)
            txt_proto_json(p->b, &pair[0], &e->key);
        else
            xpl_buf_printf(p->b, "\"%lld\"", (long long)(int64_t)e->key.u);
        xpl_buf_putc(p->b, ':');
        print_value(p, &pair[1], &e->value);
        return;
    }
    indent(p);
    xpl_buf_str(p->b, xpl_str_from(f->name));
    xpl_buf_str(p->b, XPL_STR(" {\n"));
    p->depth++;
    print_value(p, &pair[0], &e->key);
    print_value(p, &pair[1], &e->value);
    p->depth--;
    indent(p);
    xpl_buf_str(p->b, XPL_STR("}\n"));
}

// Entries [from, from + n) of the stack; of those with one key the last.
static void print_map(struct printer *p, const struct xpl_proto_field *f, size_t from, size_t n) {
    bool first = true;
    if (p->depth + 1 >= XPL_HLO_PROTO_DEPTH) {
        (void)fail_print(p, TOO_DEEP);
        return;
    }
    for (size_t i = from; i < from + n; i++)
        if (!read_map_entry(p, &p->stack.v[i])) return;
    if (n > 1) xpl_sort(p->stack.v + from, n, sizeof *p->stack.v, by_key);
    for (size_t i = from; i < from + n && !stopped(p); i++) {
        const struct entry e = p->stack.v[i];
        if (i + 1 < from + n && same_key(&e, &p->stack.v[i + 1])) continue;
        comma(p, first);
        first = false;
        print_map_entry(p, f, &e);
    }
}

// ---- messages ----

// The result of a pass over a message.
struct fields {
    uint32_t count[MOST_FIELDS]; // by place in the table
    bool in_order;               // it can be printed as it is read
    unsigned chosen;             // place of the last of those of which one counts; MOST_FIELDS:
    uint32_t chosen_from;        // none.  Its values before this one were replaced by another
};

// Place of a field's number, searched from `at` on, where it nearly always is; m->n: not known, or
// of another wire type.
static unsigned find_field(const struct xpl_proto_message *m, const struct xpl_field *f,
                           unsigned at) {
    if (at < m->n && m->fields[at].number > f->num) at = 0;
    while (at < m->n && m->fields[at].number < f->num)
        at++;
    if (at == m->n || m->fields[at].number != f->num) return m->n;
    const struct xpl_proto_field *const row = &m->fields[at];
    const bool packed = (row->flags & XPL_PROTO_MANY) && f->type == XPL_WIRE_LEN;
    return packed || f->type == (uint32_t)wire_type(row) ? at : m->n;
}

static bool count_fields(struct printer *p, const struct xpl_proto_message *m, xpl_bytes_t bytes,
                         struct fields *ret) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    unsigned last = 0;
    *ret = (struct fields){.in_order = true, .chosen = MOST_FIELDS};
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD && !stopped(p)) {
        const unsigned at = find_field(m, &f, last);
        if (at == m->n) continue;
        const unsigned flags = m->fields[at].flags;
        const bool again = ret->count[at] > 0 && !(flags & XPL_PROTO_MANY);
        if ((flags & XPL_PROTO_ONE_OF) && ret->chosen != at) {
            if (ret->chosen != MOST_FIELDS) ret->in_order = false;
            ret->chosen = at;
            ret->chosen_from = ret->count[at];
        }
        if (at < last || again || (flags & XPL_PROTO_MAP)) ret->in_order = false;
        if (ret->count[at]++ == UINT32_MAX - 1) return fail_print(p, NO_MEMORY);
        last = at;
    }
    return p->why == FINE && (r != XPL_WIRE_MALFORMED || fail_print(p, MALFORMED));
}

static void print_in_order(struct printer *p, const struct xpl_proto_message *m,
                           xpl_bytes_t bytes) {
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    unsigned last = 0;
    bool any = false, open = false, first = true; // of the message; of a repeated field
    while (!stopped(p) && xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        const unsigned at = find_field(m, &f, last);
        if (at == m->n) continue;
        const struct xpl_proto_field *const row = &m->fields[at];
        if (open && at != last) {
            end_field(p, &m->fields[last]);
            open = false;
        }
        last = at;
        if (!(row->flags & XPL_PROTO_MANY) && !is_shown(row, &f)) continue;
        if (!open) begin_field(p, row, !any);
        any = true;
        if (row->flags & XPL_PROTO_MANY) {
            first = first || !open;
            open = true;
            print_one_of_many(p, row, &f, &first);
        } else {
            print_value(p, row, &f);
        }
    }
    if (open) end_field(p, &m->fields[last]);
}

// Of a message that is given in pieces, one after the other is the whole.
static bool join(struct printer *p, size_t from, size_t n, struct xpl_field *ret) {
    size_t size = 0;
    for (size_t i = from; i < from + n; i++)
        size += p->stack.v[i].f.len.len;
    uint8_t *const all = xpl_arena_array(p->arena, size, 1);
    if (!all) return fail_print(p, NO_MEMORY);
    ret->len = (xpl_bytes_t){all, 0};
    for (size_t i = from; i < from + n; i++) {
        const xpl_bytes_t piece = p->stack.v[i].f.len;
        if (piece.len) memcpy(all + ret->len.len, piece.ptr, piece.len);
        ret->len.len += piece.len;
    }
    return true;
}

// A field of which entries [from, from + n) of the stack are given.
static void print_collected(struct printer *p, const struct xpl_proto_field *f, size_t from,
                            size_t n, bool *any) {
    struct xpl_field v = p->stack.v[from + n - 1].f;
    const bool one = !(f->flags & (XPL_PROTO_MANY | XPL_PROTO_MAP));
    if (one && f->type == XPL_PROTO_MESSAGE && n > 1 && !join(p, from, n, &v)) return;
    if (one && !is_shown(f, &v)) return;
    begin_field(p, f, !*any);
    *any = true;
    if (f->flags & XPL_PROTO_MAP) {
        print_map(p, f, from, n);
    } else if (one) {
        print_value(p, f, &v);
    } else {
        bool first = true;
        for (size_t i = 0; i < n && !stopped(p); i++) {
            v = p->stack.v[from + i].f; // the stack moves when it grows
            print_one_of_many(p, f, &v, &first);
        }
    }
    end_field(p, f);
}

// Puts the fields of a message onto the stack, by place: those of place i begin at start[i].
static bool collect_fields(struct printer *p, const struct xpl_proto_message *m, xpl_bytes_t bytes,
                           const struct fields *found, size_t *start) {
    size_t n = 0, at[MOST_FIELDS];
    for (unsigned i = 0; i < m->n; i++) {
        start[i] = at[i] = p->stack.n + n;
        n += found->count[i];
    }
    if (!xpl_vec_reserve(p->arena, &p->stack, n)) return fail_print(p, NO_MEMORY);
    p->stack.n += n;
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    unsigned last = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        const unsigned i = find_field(m, &f, last);
        if (i == m->n) continue;
        if (at[i] == start[i] + found->count[i])
            return fail_print(p, MALFORMED); // the bytes changed
        p->stack.v[at[i]] = (struct entry){.f = f, .order = at[i]};
        at[i]++;
        last = i;
    }
    for (unsigned i = 0; i < m->n; i++)
        if (at[i] != start[i] + found->count[i]) return fail_print(p, MALFORMED);
    return true;
}

static void print_out_of_order(struct printer *p, const struct xpl_proto_message *m,
                               xpl_bytes_t bytes, const struct fields *found) {
    const size_t before = p->stack.n;
    size_t start[MOST_FIELDS];
    bool any = false;
    if (!collect_fields(p, m, bytes, found, start)) return;
    for (unsigned i = 0; i < m->n && !stopped(p); i++) {
        const bool one_of = m->fields[i].flags & XPL_PROTO_ONE_OF;
        const size_t skip = one_of ? found->chosen_from : 0;
        if (found->count[i] == 0 || (one_of && i != found->chosen)) continue;
        print_collected(p, &m->fields[i], start[i] + skip, found->count[i] - skip, &any);
    }
    p->stack.n = before;
}

static void print_message(struct printer *p, const struct xpl_proto_message *m, xpl_bytes_t bytes) {
    struct fields found;
    if (stopped(p) || !count_fields(p, m, bytes, &found)) return;
    if (found.in_order)
        print_in_order(p, m, bytes);
    else
        print_out_of_order(p, m, bytes, &found);
}

xpl_status_t xpl_hlo_proto_print(xpl_bytes_t proto, enum xpl_hlo_proto_form form,
                                 struct xpl_exec *exec, struct xpl_arena *scratch,
                                 struct xpl_buf *out, struct xpl_error *err) {
    struct printer p = {.b = out,
                        .exec = exec,
                        .arena = scratch,
                        .json = form == XPL_HLO_PROTO_JSON,
                        .until_check = CHECKED_EVERY};
    if (p.json) xpl_buf_putc(out, '{');
    print_message(&p, xpl_hlo_proto, proto);
    if (p.json) xpl_buf_str(out, XPL_STR("}\n"));
    if (out->failed) p.why = p.why == FINE ? NO_MEMORY : p.why;
    switch (p.why) {
        case MALFORMED: XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "malformed HLO module");
        case TOO_DEEP:
            XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "HLO module nested deeper than %d messages",
                             XPL_HLO_PROTO_DEPTH);
        case NO_MEMORY: XPL_RETURN_OOM(err, "text of an HLO module");
        case CANCELLED: XPL_RETURN_ERROR(err, XPL_CANCELLED, "text of an HLO module cancelled");
        case FINE: break;
    }
    return XPL_OK;
}
