// SPDX-License-Identifier: Apache-2.0
#include "base/text/json_reader.h"

#include <assert.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/arena.h"
#include "base/text/utf8.h"

enum { BUFFER = 4 * XPL_JSON_READER_AHEAD };

// ---- the text ----

void xpl_json_reader_init(struct xpl_json_reader *r, xpl_str_t text, unsigned flags) {
    static const char none[1];
    const char *const p = text.ptr ? text.ptr : none;
    *r = (struct xpl_json_reader){.p = p,
                                  .begin = p,
                                  .end = p + text.len,
                                  .ended = true,
                                  .lenient = flags & XPL_JSON_LENIENT,
                                  .raw = flags & XPL_JSON_RAW};
}

xpl_status_t xpl_json_reader_open(struct xpl_json_reader *r, const struct xpl_json_source *source,
                                  unsigned flags, struct xpl_error *err) {
    xpl_json_reader_init(r, (xpl_str_t){source->here.ptr, 0}, flags);
    if (!source->here.ptr) {
        r->buffer = xpl_sys_alloc(BUFFER);
        if (!r->buffer) XPL_RETURN_OOM(err, "JSON");
        r->p = r->begin = r->end = (const char *)r->buffer;
    }
    r->source = *source;
    r->err = err;
    r->ended = false;
    return XPL_OK;
}

void xpl_json_reader_fini(struct xpl_json_reader *r) {
    xpl_sys_free(r->buffer);
    *r = (struct xpl_json_reader){.fault = "closed"};
}

static size_t here(const struct xpl_json_reader *r) {
    return (size_t)(r->end - r->p);
}

// The next piece of a text that is read where it is.
static void show_more(struct xpl_json_reader *r) {
    const xpl_str_t all = r->source.here;
    size_t none, more = (size_t)(all.ptr + all.len - r->end);
    r->status = r->source.read(r->source.ctx, NULL, 0, &none, r->err);
    if (r->status != XPL_OK) more = 0;
    if (more > BUFFER) more = BUFFER;
    r->end += more;
    r->ended = r->status != XPL_OK || r->end == all.ptr + all.len;
}

// Moves unread bytes to the front, and fills the buffer.
static void refill(struct xpl_json_reader *r) {
    size_t n = here(r);
    if (!r->buffer) {
        show_more(r);
        return;
    }
    r->base += (uint64_t)(r->p - r->begin);
    memmove(r->buffer, r->p, n);
    while (n < BUFFER && !r->ended) {
        size_t more = 0;
        r->status = r->source.read(r->source.ctx, r->buffer + n, BUFFER - n, &more, r->err);
        assert(more <= BUFFER - n);
        n += more;
        if (r->status != XPL_OK || more == 0) r->ended = true;
    }
    r->p = r->begin = (const char *)r->buffer;
    r->end = r->p + n;
}

static inline void fill(struct xpl_json_reader *r) {
    if (__builtin_expect(!r->ended && !r->held && here(r) < XPL_JSON_READER_AHEAD, 0)) refill(r);
}

void xpl_json_reader_hold(struct xpl_json_reader *r) {
    fill(r);
    r->held = true;
}

void xpl_json_reader_resume(struct xpl_json_reader *r, const char *p, unsigned depth) {
    assert(p >= r->begin && p <= r->end && depth <= r->depth);
    r->p = p;
    r->depth = depth;
    r->comma = r->value = false;
    r->fault = NULL;
    r->cut = false;
}

// ---- characters ----

static inline bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline const char *blanks(const char *p, const char *end) {
    if (p < end && !is_blank(*p)) return p;
    if (end - p > 1 && !is_blank(p[1])) return p + 1;
#if defined(__SSE2__)
    const __m128i space = _mm_set1_epi8(' '), line = _mm_set1_epi8('\n');
    for (; end - p >= 16; p += 16) {
        const __m128i v = _mm_loadu_si128((const void *)p);
        const __m128i is = _mm_or_si128(_mm_cmpeq_epi8(v, space), _mm_cmpeq_epi8(v, line));
        const unsigned m = (unsigned)_mm_movemask_epi8(is) ^ 0xffff;
        if (!m) continue;
        p += __builtin_ctz(m);
        break;
    }
#endif
    while (p < end && is_blank(*p))
        p++;
    return p;
}

// Of the bytes of a string.
struct seen {
    bool special; // has escapes or bytes beyond ASCII
    bool control;
};

// The next quote or backslash, or the end.
static inline const char *next_quote(const char *p, const char *end, struct seen *seen) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'),
                  below = _mm_set1_epi8(0x1f);
    for (; end - p >= 16; p += 16) {
        const __m128i v = _mm_loadu_si128((const void *)p);
        const unsigned stop = (unsigned)_mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
        const unsigned before = stop ? (stop & -stop) - 1 : 0xffff;
        const unsigned low =
            (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(v, below), below));
        seen->special |= ((unsigned)_mm_movemask_epi8(v) & before) != 0;
        seen->control |= (low & before) != 0;
        if (stop) return p + __builtin_ctz(stop);
    }
#endif
    for (; p < end && *p != '"' && *p != '\\'; p++) {
        seen->special |= (uint8_t)*p >= 0x80;
        seen->control |= (uint8_t)*p < 0x20;
    }
    return p;
}

// Whether a quote just before `p` can end a string.
static inline bool ends_string(const char *p, const char *end) {
    if (p < end && (*p == ',' || *p == ':')) return true; // nearly always
    p = blanks(p, end);
    return p == end || *p == ',' || *p == ':' || *p == '}' || *p == ']';
}

// Reads from after the opening quote. Returns the position after the closing one, or NULL when
// there is none.
static inline const char *string(const char *p, const char *end, bool lenient, struct seen *seen) {
    for (;; p++) {
        p = next_quote(p, end, seen);
        if (p == end) return NULL;
        if (*p == '\\') {
            seen->special = true;
            if (++p == end) return NULL;
        } else if (!lenient || ends_string(p + 1, end)) {
            return p + 1;
        } else {
            seen->special = true;
        }
    }
}

// ---- tokens ----

static enum xpl_json_at fail(struct xpl_json_reader *r, const char *fault) {
    if (!r->fault) r->fault = fault;
    return XPL_JSON_AT_ERROR;
}

static enum xpl_json_at fail_cut(struct xpl_json_reader *r) {
    if (!r->fault) r->cut = true;
    return fail(r, "the text ends within a value");
}

static bool is_escape(char c) {
    return c == '"' || c == '\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' ||
           c == 't' || c == 'u';
}

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool hex4(xpl_str_t s, uint32_t *ret) {
    uint32_t v = 0;
    if (s.len < 4) return false;
    for (size_t i = 0; i < 4; i++) {
        if (hex(s.ptr[i]) < 0) return false;
        v = v << 4 | (uint32_t)hex(s.ptr[i]);
    }
    *ret = v;
    return true;
}

static bool escapes_are_legal(xpl_str_t s) {
    uint32_t v;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != '\\') continue;
        i++;
        if (!is_escape(s.ptr[i])) return false;
        if (s.ptr[i] == 'u' && !hex4(xpl_str_sub(s, i + 1, SIZE_MAX), &v)) return false;
    }
    return true;
}

// Most strings are short, of printable ASCII without escapes, and followed by a comma or colon: the
// position after the closing quote, or NULL where any of this does not hold.
static inline const char *simple_string(const char *p, const char *end) {
#if defined(__SSE2__)
    if (end - p < 17) return NULL;
    const __m128i v = _mm_loadu_si128((const void *)p);
    const __m128i marks =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    // Bytes beyond ASCII are negative.
    const __m128i odd = _mm_cmplt_epi8(v, _mm_set1_epi8(' '));
    const unsigned stop = (unsigned)_mm_movemask_epi8(_mm_or_si128(marks, odd));
    p += __builtin_ctz(stop | 1u << 16);
    if (*p == '"' && stop && (p[1] == ',' || p[1] == ':')) return p + 1;
#else
    (void)p, (void)end;
#endif
    return NULL;
}

static enum xpl_json_at read_odd_string(struct xpl_json_reader *r, enum xpl_json_at at) {
    struct seen seen = {false, false};
    const char *const from = r->p + 1;
    const char *const behind = string(from, r->end, r->lenient, &seen);
    if (!behind) return fail_cut(r);
    r->text = (xpl_str_t){from, (size_t)(behind - 1 - from)};
    r->plain = !seen.special;
    if (!r->lenient && !r->raw && (seen.control || (seen.special && !escapes_are_legal(r->text))))
        return fail(r, "a string has a control character or an unknown escape");
    r->p = behind;
    return at;
}

static inline enum xpl_json_at read_string(struct xpl_json_reader *r, enum xpl_json_at at) {
    const char *const from = r->p + 1, *const behind = simple_string(from, r->end);
    if (!behind) return read_odd_string(r, at);
    r->text = (xpl_str_t){from, (size_t)(behind - 1 - from)};
    r->plain = true;
    r->p = behind;
    return at;
}

static inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t digits(const char *p, const char *end) {
    size_t n = 0;
    while (p + n < end && is_digit(p[n]))
        n++;
    return n;
}

// The length of a number as RFC 8259 has it, 0 where there is none.
static size_t number_length(const char *p, const char *end) {
    const char *const from = p;
    size_t n;
    if (p < end && *p == '-') p++;
    n = digits(p, end);
    if (!n || (n > 1 && *p == '0')) return 0;
    p += n;
    if (p < end && *p == '.') {
        n = digits(p + 1, end);
        if (!n) return 0;
        p += 1 + n;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        n = digits(p, end);
        if (!n) return 0;
        p += n;
    }
    return (size_t)(p - from);
}

static bool is_word_char(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '+' || c == '.';
}

static enum xpl_json_at read_word(struct xpl_json_reader *r) {
    static const char *const strict[] = {"true", "false", "null"};
    static const char *const lenient[] = {"NaN", "nan", "Infinity", "inf", "Inf", "None"};
    const char *p = r->p;
    while (p < r->end && is_word_char(*p))
        p++;
    r->text = (xpl_str_t){r->p, (size_t)(p - r->p)};
    xpl_str_t word = r->text;
    bool known = r->raw && word.len;
    for (size_t i = 0; i < sizeof strict / sizeof *strict; i++)
        known |= xpl_str_eq(word, xpl_str_from(strict[i]));
    if (word.len > 1 && (word.ptr[0] == '-' || word.ptr[0] == '+'))
        word = xpl_str_sub(word, 1, SIZE_MAX);
    for (size_t i = 0; r->lenient && i < sizeof lenient / sizeof *lenient; i++)
        known |= xpl_str_eq(word, xpl_str_from(lenient[i]));
    if (p == r->end && r->depth) return fail_cut(r);
    if (!known) return fail(r, "no value of JSON");
    r->p = p;
    r->plain = true;
    return XPL_JSON_AT_WORD;
}

static enum xpl_json_at read_number(struct xpl_json_reader *r) {
    const size_t n = number_length(r->p, r->end);
    if (!n) return read_word(r);
    const char *const behind = r->p + n;
    if (behind == r->end && r->depth) return fail_cut(r);
    if (behind < r->end && is_word_char(*behind)) return fail(r, "no number of JSON");
    r->text = (xpl_str_t){r->p, n};
    r->p = behind;
    r->plain = true;
    return XPL_JSON_AT_NUMBER;
}

static enum xpl_json_at open(struct xpl_json_reader *r, bool object) {
    if (r->depth == XPL_JSON_READER_DEPTH) return fail(r, "values nest too deeply");
    const uint64_t bit = UINT64_C(1) << r->depth++;
    r->objects = object ? r->objects | bit : r->objects & ~bit;
    r->p++;
    r->comma = false;
    return object ? XPL_JSON_AT_OBJECT : XPL_JSON_AT_ARRAY;
}

static inline bool in_object(const struct xpl_json_reader *r) {
    return r->depth && (r->objects >> (r->depth - 1) & 1);
}

static enum xpl_json_at missing(struct xpl_json_reader *r) {
    r->text = (xpl_str_t){r->p, 0};
    r->plain = r->comma = true;
    return XPL_JSON_AT_WORD;
}

static enum xpl_json_at read_value(struct xpl_json_reader *r) {
    const char c = *r->p;
    const bool of_key = r->value;
    r->value = false;
    r->comma = true;
    if (c == '"') return read_string(r, XPL_JSON_AT_STRING);
    if (is_digit(c) || c == '-') return read_number(r);
    if (c == '{' || c == '[') return open(r, c == '{');
    if (r->lenient && of_key && (c == ',' || c == '}')) return missing(r);
    return read_word(r);
}

static enum xpl_json_at close(struct xpl_json_reader *r, bool object, bool after_comma) {
    if (!r->depth || object != in_object(r)) return fail(r, "brackets do not match");
    if (after_comma && !r->lenient) return fail(r, "a comma before the end of a value");
    r->p++;
    r->depth--;
    r->comma = true;
    return object ? XPL_JSON_AT_OBJECT_END : XPL_JSON_AT_ARRAY_END;
}

static enum xpl_json_at read_key(struct xpl_json_reader *r) {
    if (*r->p != '"') return fail(r, "no key where one is expected");
    const enum xpl_json_at at = read_string(r, XPL_JSON_AT_KEY);
    if (at != XPL_JSON_AT_KEY) return at;
    r->p = blanks(r->p, r->end);
    if (r->p == r->end) return fail_cut(r);
    if (*r->p != ':') return fail(r, "no colon behind a key");
    r->p++;
    r->value = true;
    return at;
}

static enum xpl_json_at at_end(struct xpl_json_reader *r) {
    return r->depth == 0 && r->comma ? XPL_JSON_AT_END : fail_cut(r);
}

enum xpl_json_at xpl_json_reader_next(struct xpl_json_reader *r) {
    bool after_comma = false;
    if (r->fault) return XPL_JSON_AT_ERROR;
    fill(r);
    for (;; after_comma = true) {
        r->p = blanks(r->p, r->end);
        if (r->p == r->end) return at_end(r);
        if (r->value) return read_value(r);
        if (*r->p != ',' || !r->depth) break;
        if (!r->lenient && !r->comma) return fail(r, "a comma without a value before it");
        r->p++;
        r->comma = false;
    }
    if (*r->p == '}' || *r->p == ']') return close(r, *r->p == '}', after_comma);
    const bool between = r->lenient && r->depth && *r->p == '{'; // of a list that was put together
    if (r->comma && !between)
        return fail(r, r->depth ? "no comma between values" : "text behind the value");
    return in_object(r) ? read_key(r) : read_value(r);
}

bool xpl_json_reader_skip(struct xpl_json_reader *r) {
    const bool value = r->value;
    const unsigned depth = value ? r->depth : r->depth - 1;
    assert(value || r->depth);
    do {
        if (xpl_json_reader_next(r) <= XPL_JSON_AT_END) return false;
    } while (r->depth > depth);
    return true;
}

bool xpl_json_reader_skip_raw(struct xpl_json_reader *r) {
    const char *const from = r->p - 1;
    const char *p = r->p;
    unsigned depth = 1;
    assert(r->held || r->ended);
    for (; p < r->end; p++) {
        struct seen seen = {false, false};
        switch (*p) {
            case '"':
                p = string(p + 1, r->end, r->lenient, &seen);
                if (!p) return fail_cut(r), false;
                p--;
                break;
            case '{':
            case '[':
                if (r->depth + depth++ > XPL_JSON_READER_DEPTH)
                    return fail(r, "values nest too deeply"), false;
                break;
            case '}':
            case ']':
                if (--depth) break;
                r->p = p + 1;
                r->depth--;
                r->comma = true;
                r->text = (xpl_str_t){from, (size_t)(r->p - from)};
                return true;
            default: break;
        }
    }
    return fail_cut(r), false;
}

// ---- escapes ----

static void put_code_point(uint32_t c, struct xpl_buf *out) {
    if (c < 0x80) {
        xpl_buf_putc(out, (char)c);
        return;
    }
    const unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    xpl_buf_putc(out, (char)(first[more] | c >> (6 * more)));
    for (unsigned i = more; i-- > 0;)
        xpl_buf_putc(out, (char)(0x80 | (c >> (6 * i) & 0x3f)));
}

// The character of \u at the front of `s`; returns how many bytes it takes, 0 where it is none.
static size_t unescape_unicode(xpl_str_t s, uint32_t *ret) {
    uint32_t low;
    if (s.len < 6 || !hex4(xpl_str_sub(s, 2, 4), ret)) return 0;
    if (*ret < 0xd800 || *ret > 0xdfff) return 6;
    const xpl_str_t next = xpl_str_sub(s, 6, SIZE_MAX);
    if (*ret < 0xdc00 && next.len >= 6 && next.ptr[0] == '\\' && next.ptr[1] == 'u' &&
        hex4(xpl_str_sub(next, 2, 4), &low) && low >= 0xdc00 && low <= 0xdfff) {
        *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
        return 12;
    }
    return 6;
}

size_t xpl_json_reader_escape(xpl_str_t s, struct xpl_buf *out, bool *ret_half) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *const known = s.len > 1 && s.ptr[1] ? strchr(from, s.ptr[1]) : NULL;
    uint32_t c = 0;
    *ret_half = false;
    if (known) {
        xpl_buf_putc(out, to[known - from]);
        return 2;
    }
    const size_t n = s.len > 1 && s.ptr[1] == 'u' ? unescape_unicode(s, &c) : 0;
    *ret_half = c >= 0xd800 && c <= 0xdfff;
    if (n) put_code_point(*ret_half ? 0xfffd : c, out);
    return n;
}

// The same of a backslash that may be no escape, and stays then; returns the length.
static size_t unescape(xpl_str_t s, struct xpl_buf *out, bool *ok) {
    bool half;
    const size_t n = xpl_json_reader_escape(s, out, &half);
    *ok &= n && !half;
    if (!n) xpl_buf_putc(out, '\\');
    return n ? n : 1;
}

bool xpl_json_reader_unescape(xpl_str_t text, struct xpl_buf *out) {
    bool ok = true;
    while (text.len) {
        size_t used;
        const size_t n = xpl_utf8_scan(text, &used);
        if (text.ptr[0] == '\\')
            used = unescape(text, out, &ok);
        else if (n)
            xpl_buf_put(out, text.ptr, n);
        else
            ok = false, put_code_point(0xfffd, out);
        text = xpl_str_sub(text, used, SIZE_MAX);
    }
    return ok;
}
