// SPDX-License-Identifier: Apache-2.0
// Appending: names, numbers, escapes.
#include <math.h>
#include <stdio.h>

#include "analysis/hlo/text/impl.h"

// Whatever does not fit: the buffer grows, or the text is cut where the form says.
void txt_put_slow(struct hlo_text *t, const void *p, size_t n) {
    struct xpl_buf *const b = t->b;
    if (t->cut) return;
    if (n >= t->end - b->n) {
        n = t->end - b->n;
        t->cut = true;
    }
    xpl_buf_put(b, p, n);
    if (b->failed) t->failed = t->cut = true;
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

static void put_escape(struct hlo_text *t, uint8_t c) {
    char octal[4] = {'\\', (char)('0' + (c >> 6)), (char)('0' + (c >> 3 & 7)),
                     (char)('0' + (c & 7))};
    switch (c) {
        case '\n': TXT(t, "\\n"); break;
        case '\r': TXT(t, "\\r"); break;
        case '\t': TXT(t, "\\t"); break;
        case '"': TXT(t, "\\\""); break;
        case '\'': TXT(t, "\\'"); break;
        case '\\': TXT(t, "\\\\"); break;
        default: txt_put(t, octal, sizeof octal);
    }
}

static bool is_plain(uint8_t c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '\\';
}

void txt_escaped(struct hlo_text *t, xpl_str_t s) {
    size_t from = 0;
    for (size_t i = 0; i < s.len && !txt_stopped(t); i++) {
        if (is_plain((uint8_t)s.ptr[i])) continue;
        txt_put(t, s.ptr + from, i - from);
        put_escape(t, (uint8_t)s.ptr[i]);
        from = i + 1;
    }
    if (from < s.len) txt_put(t, s.ptr + from, s.len - from);
}

void txt_quoted(struct hlo_text *t, xpl_str_t s) {
    TXT(t, "\"");
    txt_escaped(t, s);
    TXT(t, "\"");
}

void txt_name(struct hlo_text *t, xpl_str_t name) {
    if (t->form->percent) TXT(t, "%");
    txt_str(t, name);
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

void txt_read(struct hlo_text *t, xpl_bytes_t bytes, struct xpl_hlo_message *ret) {
    xpl_hlo_message_read(bytes, ret);
    if (ret->malformed) txt_malformed(t);
}
