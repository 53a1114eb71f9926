// SPDX-License-Identifier: Apache-2.0
// Appending: names, numbers, escapes.
#include <math.h>
#include <stdio.h>

#include "analysis/hlo/text/impl.h"
#include "base/text/c_escape.h"

// Whatever is long or does not fit: the buffer grows, or the text is cut where the form says.
void txt_put_slow(struct hlo_text *t, const void *p, size_t n) {
    struct xpl_buf *const b = t->b;
    if (t->cut) return;
    if (n >= t->end - b->n) {
        n = t->end - b->n;
        t->cut = true;
    }
    xpl_buf_put(b, p, n);
    if (b->failed) t->failed = t->cut = true;
    t->limit = b->cap < t->end ? b->cap : t->end;
}

// Digits of v, ending before `end`.
static char *digits(char *end, uint64_t v) {
    do {
        *--end = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    return end;
}

void txt_uint(struct hlo_text *t, uint64_t v) {
    char text[20], *const end = text + sizeof text, *const p = digits(end, v);
    txt_put(t, p, (size_t)(end - p));
}

void txt_int(struct hlo_text *t, int64_t v) {
    char text[21], *const end = text + sizeof text;
    char *p = digits(end, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
    if (v < 0) *--p = '-';
    txt_put(t, p, (size_t)(end - p));
}

void txt_real(struct hlo_text *t, double v, int precision) {
    char text[40];
    if (isnan(v)) {
        if (signbit(v)) TXT(t, "-");
        TXT(t, "nan");
        return;
    }
    const int n = snprintf(text, sizeof text, "%.*g", precision, v);
    if (n > 0) txt_put(t, text, (size_t)n);
}

void txt_escaped(struct hlo_text *t, xpl_str_t s) {
    char escape[XPL_C_ESCAPE_MAX];
    while (!txt_stopped(t)) {
        const size_t plain = xpl_c_plain(s);
        if (plain) txt_put(t, s.ptr, plain);
        if (plain == s.len) return;
        txt_put(t, escape, xpl_c_escape((uint8_t)s.ptr[plain], escape));
        s = xpl_str_sub(s, plain + 1, SIZE_MAX);
    }
}

void txt_quoted(struct hlo_text *t, xpl_str_t s) {
    TXT(t, "\"");
    txt_escaped(t, s);
    TXT(t, "\"");
}

void txt_ints(struct hlo_text *t, struct xpl_hlo_ints v, xpl_str_t separator) {
    int64_t x;
    for (bool first = true; !txt_stopped(t) && xpl_hlo_ints_next(&v, &x); first = false) {
        if (!first) txt_str(t, separator);
        txt_int(t, x);
    }
}

void txt_set(struct hlo_text *t, const struct xpl_hlo_message *m, uint32_t num) {
    TXT(t, "{");
    txt_ints(t, xpl_hlo_ints_begin(m, num), XPL_STR(","));
    TXT(t, "}");
}

// The bytes after a message in its module may be read, too.
static const uint8_t *readable_end(const struct hlo_text *t, xpl_bytes_t bytes) {
    if (!bytes.len) return bytes.ptr;
    const uint8_t *const end = bytes.ptr + bytes.len;
    if (!t->m || bytes.ptr < t->m->bytes.ptr || end > t->m->bytes.ptr + t->m->bytes.len) return end;
    return t->m->bytes.ptr + t->m->bytes.len;
}

void txt_read(struct hlo_text *t, xpl_bytes_t bytes, struct xpl_hlo_message *ret) {
    xpl_hlo_message_read_within(bytes, readable_end(t, bytes), ret);
    if (ret->malformed) txt_malformed(t);
}

const struct xpl_hlo_message *txt_message_of(struct hlo_text *t, uint32_t index,
                                             struct xpl_hlo_message *space) {
    static const struct xpl_hlo_message nothing;
    const struct hlo_instruction *const i = &t->m->instructions[index];
    if (t->m->edges && !i->has_more) return &nothing;
    struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){i->p, i->len});
    xpl_bytes_t known;
    (void)(xpl_hlo_take(&w, HLO_INSTR_NAME, &known) && xpl_hlo_take(&w, HLO_INSTR_OPCODE, &known) &&
           xpl_hlo_take(&w, HLO_INSTR_SHAPE, &known) &&
           xpl_hlo_take(&w, HLO_INSTR_METADATA, &known));
    txt_read(t, (xpl_bytes_t){w.p, (size_t)(w.end - w.p)}, space);
    return space;
}

xpl_bytes_t txt_metadata_of(const struct hlo_text *t, uint32_t index) {
    const struct hlo_instruction *const i = &t->m->instructions[index];
    const xpl_bytes_t bytes = {i->p, i->len};
    const uint8_t *const all = readable_end(t, bytes);
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    xpl_bytes_t ret = {0};
    while (i->has_metadata && xpl_hlo_next_within(&w, all, &f) == XPL_WIRE_FIELD) {
        if (f.num != HLO_INSTR_METADATA || f.type != XPL_WIRE_LEN) continue;
        ret = f.len;
        if (!i->has_more) break; // else there may be another, which counts
    }
    return ret;
}
