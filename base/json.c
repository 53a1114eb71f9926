// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"

// ---- strings ----

static const char kHex[] = "0123456789abcdef";
static const char kReplacement[] = "\xef\xbf\xbd"; // U+FFFD

static bool is_plain(uint8_t c, bool html) {
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && !(html && (c == '<' || c == '>'));
}

// Whether eight bytes are plain, in JSON that is in no HTML.
static bool are_plain(const uint8_t *p) {
    const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
    uint64_t w;
    memcpy(&w, p, sizeof w);
    // A byte below n makes its high bit; a byte that borrows from it is not plain either.
    const uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';
    const uint64_t control = w - ones * 0x20;
    return (((quote - ones) | (slash - ones) | control | w) & high) == 0;
}

// \uXXXX; returns 6.
static size_t unicode_escape(unsigned code, char out[XPL_JSON_CHAR_MAX]) {
    const char e[] = {
        '\\',           'u', kHex[code >> 12 & 15], kHex[code >> 8 & 15], kHex[code >> 4 & 15],
        kHex[code & 15]};
    memcpy(out, e, sizeof e);
    return sizeof e;
}

static size_t ascii_escape(uint8_t c, char out[XPL_JSON_CHAR_MAX]) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *const found = c ? strchr(from, c) : NULL;
    if (!found) return unicode_escape(c, out);
    out[0] = '\\';
    out[1] = to[found - from];
    return 2;
}

size_t xpl_json_char(xpl_str_t s, char out[XPL_JSON_CHAR_MAX], size_t *ret_used) {
    const uint8_t *const p = (const uint8_t *)s.ptr;
    size_t len = 1;
    *ret_used = 1;
    if (p[0] < 0x80 && !is_plain(p[0], false)) return ascii_escape(p[0], out);
    if (p[0] >= 0x80) len = xpl_utf8_scan(s, ret_used);
    memcpy(out, len ? (const char *)p : kReplacement, len ? len : 3);
    return len ? len : 3;
}

void xpl_json_str(struct xpl_buf *b, xpl_str_t s, bool html) {
    const uint8_t *p = (const uint8_t *)s.ptr;
    const uint8_t *const end = s.len ? p + s.len : p;
    xpl_buf_putc(b, '"');
    while (p < end) {
        const uint8_t *run = p;
        while (end - p >= 8 && !html && are_plain(p))
            p += 8;
        while (p < end && is_plain(*p, html))
            p++;
        xpl_buf_put(b, run, (size_t)(p - run));
        if (p == end) break;
        char escape[XPL_JSON_CHAR_MAX];
        if (*p < 0x80) {
            xpl_buf_put(b, escape, ascii_escape(*p++, escape));
            continue;
        }
        size_t skip;
        const size_t len = xpl_utf8_scan((xpl_str_t){(const char *)p, (size_t)(end - p)}, &skip);
        if (!len)
            xpl_buf_put(b, kReplacement, 3);
        else if (html && len == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] | 1) == 0xa9)
            xpl_buf_put(b, escape, unicode_escape(0x2000u + (p[2] & 0x3fu), escape)); // separators
        else
            xpl_buf_put(b, p, len);
        p += skip;
    }
    xpl_buf_putc(b, '"');
}

void xpl_json_field(struct xpl_buf *b, const char *key, xpl_str_t text) {
    xpl_buf_printf(b, "\"%s\":", key);
    xpl_json_str(b, text, false);
}

// ---- numbers ----
//
// A double v = c * 2^q.  Times, rates and shares lie between 1e-30 and 1e16, where v * 10^n for the
// n of interest is an integer product of at most 181 bits, c * 5^n, shifted by q + n.  So digits
// come from exact integer arithmetic there (about 30 ns, printf and strtod need 30 times that);
// anything else goes through printf and strtod.

// At most 17 digits as an integer: value = digits * 10^exp10.  `digits` has no trailing zero.
struct decimal {
    uint64_t digits;
    int exp10;
};

enum { MAX_POW5 = 27, MAX_SCALE = 2 * MAX_POW5 };
static const uint64_t kPow5[MAX_POW5 + 1] = {
    1u,
    5u,
    25u,
    125u,
    625u,
    3125u,
    15625u,
    78125u,
    390625u,
    1953125u,
    9765625u,
    48828125u,
    244140625u,
    1220703125u,
    6103515625u,
    30517578125u,
    152587890625u,
    762939453125u,
    3814697265625u,
    19073486328125u,
    95367431640625u,
    476837158203125u,
    2384185791015625u,
    11920928955078125u,
    59604644775390625u,
    298023223876953125u,
    1490116119384765625u,
    7450580596923828125u,
};

__extension__ typedef unsigned __int128 u128_t;

// floor(c * 2^q * 10^n) with the lowest bit set when that was not exact ("round to odd"), for
// c < 2^56, 0 <= n <= MAX_SCALE, and a result that the caller knows to fit.
static uint64_t scale(uint64_t c, int q, int n) {
    const int n1 = n < MAX_POW5 ? n : MAX_POW5;
    const u128_t p = (u128_t)c * kPow5[n1];
    const u128_t lo = (u128_t)(uint64_t)p * kPow5[n - n1];
    const u128_t hi = (u128_t)(uint64_t)(p >> 64) * kPow5[n - n1] + (uint64_t)(lo >> 64);
    const uint64_t limb0 = (uint64_t)lo; // the product is hi * 2^64 + limb0
    const int shift = -(q + n);
    if (shift <= 0) return limb0 << -shift; // then the product is small
    uint64_t out;
    bool inexact;
    if (shift < 64) {
        out = (uint64_t)(hi << (64 - shift)) | limb0 >> shift;
        inexact = (limb0 & ((UINT64_C(1) << shift) - 1)) != 0;
    } else if (shift < 192) {
        const int s = shift - 64;
        out = (uint64_t)(hi >> s);
        inexact = limb0 != 0 || (s && hi << (128 - s) != 0);
    } else {
        out = 0;
        inexact = c != 0;
    }
    return out | inexact;
}

// floor(log10(2^q)) for |q| < 1100.
static int floor_log10_pow2(int q) {
    return (int)(((int64_t)q * 315653) >> 20);
}

static struct decimal strip_zeros(uint64_t digits, int exp10) {
    while (digits && digits % 10 == 0) {
        digits /= 10;
        exp10++;
    }
    return (struct decimal){digits, exp10};
}

// The multiple of the largest power of ten that lies between the neighbours' midpoints of
// c * 2^q; of several, the nearest.  False outside the range of exact arithmetic.
// All reals below are in units of 10^k / 4, where 10^k <= 2^q < 10^(k+1), so that the interval
// holds at least one multiple of 10^k and at most one of 10^(k+1).
static bool shortest_exact(uint64_t c, int q, struct decimal *ret) {
    const int k = floor_log10_pow2(q);
    // A power of two has a nearer lower neighbour: left to the slow way.
    if (k > 0 || -k > MAX_SCALE || c == UINT64_C(1) << 52) return false;
    const uint64_t open = c & 1; // ties read back as the even neighbour
    const uint64_t lower = scale(4 * c - 2, q, -k) + open;
    const uint64_t mid = scale(4 * c, q, -k);
    const uint64_t upper = scale(4 * c + 2, q, -k) - open;
    const uint64_t s = mid / 4, tens = s / 10;
    const bool tens_below = lower <= 40 * tens, tens_above = 40 * tens + 40 <= upper;
    if (tens_below != tens_above) {
        *ret = strip_zeros(tens + tens_above, k + 1);
        return true;
    }
    const bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    const bool up = below != above ? above : mid > 4 * s + 2 || (mid == 4 * s + 2 && s % 2);
    *ret = strip_zeros(s + up, k);
    return true;
}

// v is finite and positive; c * 2^q == v.
static uint64_t split(double v, int *ret_q) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    const int e = (int)(bits >> 52);
    const uint64_t m = bits & ((UINT64_C(1) << 52) - 1);
    *ret_q = (e ? e : 1) - 1075;
    return e ? m | UINT64_C(1) << 52 : m;
}

// Digits and exponent from printf's %e.
static struct decimal parse_scientific(const char *text) {
    uint64_t digits = 0;
    int fraction = 0, seen_point = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') {
            digits = digits * 10 + (uint64_t)(*p - '0');
            fraction += seen_point;
        } else {
            seen_point = 1; // whatever the locale's point is
        }
    }
    return strip_zeros(digits, (*p ? (int)strtol(p + 1, NULL, 10) : 0) - fraction);
}

static struct decimal round_to(double v, int significant) {
    char text[40];
    (void)snprintf(text, sizeof text, "%.*e", significant - 1, v);
    return parse_scientific(text);
}

static double read_back(struct decimal d) {
    char text[40];
    (void)snprintf(text, sizeof text, "%" PRIu64 "e%d", d.digits, d.exp10);
    return strtod(text, NULL);
}

// Shortest decimal that reads back as v (finite, positive).
static struct decimal shortest(double v) {
    struct decimal d;
    int q;
    const uint64_t c = split(v, &q);
    if (v < 1e15 && v == (double)(uint64_t)v) return strip_zeros((uint64_t)v, 0);
    if (shortest_exact(c, q, &d)) return d;
    char text[40];
    for (int significant = 1; significant < 17; significant++) {
        (void)snprintf(text, sizeof text, "%.*e", significant - 1, v);
        if (strtod(text, NULL) == v) return parse_scientific(text);
    }
    return round_to(v, 17);
}

// v rounded to 6, 9 or 17 significant digits, ties to even, as printf does.  v is positive.
static struct decimal round_exact(double v, int significant) {
    int q;
    const uint64_t c = split(v, &q);
    const uint64_t limit = significant == 6   ? UINT64_C(1000000)
                           : significant == 9 ? UINT64_C(1000000000)
                                              : UINT64_C(100000000000000000);
    // First a guess of n with limit / 10 <= v * 10^n < limit, from the binary exponent.
    const int top = 64 - (c ? __builtin_clzll(c) : 64) + q - 1; // 2^top <= v
    const int guess = significant - 1 - floor_log10_pow2(top);
    for (int n = guess; n >= guess - 1; n--) {
        if (n < 0 || n > MAX_SCALE || v >= (double)limit / 10) break;
        const uint64_t w = scale(4 * c, q, n);
        if (w >= 4 * limit) continue;
        uint64_t digits = w / 4;
        const uint64_t rest = w % 4;
        digits += rest > 2 || (rest == 2 && digits % 2);
        return strip_zeros(digits, -n);
    }
    return round_to(v, significant);
}

// Writes the decimal digits of u so that they end at `end`; returns where they begin.
static char *digits_before(char *end, uint64_t u) {
    do {
        *--end = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    return end;
}

// Like printf's %g with a precision of `max_point`: plain when the decimal point is between 10^-4
// and that many digits, scientific otherwise.  `point_zero`: always show ".0" (gviz).
enum { DECIMAL_MAX = 48 };
static size_t write_decimal(struct decimal d, bool negative, int max_point, bool point_zero,
                            char out[DECIMAL_MAX]) {
    char rev[24];
    char *const rev_end = rev + sizeof rev;
    const char *const digits = digits_before(rev_end, d.digits);
    const int n = (int)(rev_end - digits), point = n + d.exp10;
    size_t o = 0;
    if (negative) out[o++] = '-';
    if (point > max_point || point <= -4) { // d.ddde+XX
        out[o++] = digits[0];
        if (n > 1) out[o++] = '.';
        for (int i = 1; i < n; i++)
            out[o++] = digits[i];
        const int e = point - 1;
        return o + (size_t)snprintf(out + o, DECIMAL_MAX - o, "e%c%02d", e < 0 ? '-' : '+', abs(e));
    }
    if (point <= 0) {
        out[o++] = '0';
        out[o++] = '.';
        for (int i = point; i < 0; i++)
            out[o++] = '0';
    }
    for (int i = 0; i < n; i++) {
        if (i == point && point > 0) out[o++] = '.';
        out[o++] = digits[i];
    }
    for (int i = n; i < point; i++)
        out[o++] = '0';
    if (point >= n && point_zero) {
        out[o++] = '.';
        out[o++] = '0';
    }
    return o;
}

static void put_decimal(struct xpl_buf *b, struct decimal d, bool negative, int max_point,
                        bool point_zero) {
    char out[DECIMAL_MAX];
    xpl_buf_put(b, out, write_decimal(d, negative, max_point, point_zero, out));
}

// ---- floats ----

// Whether strtof reads the decimal as v.  Up to 22 powers of ten the quotient or product of two
// exact doubles is rounded once; rounding it to a float is a second time, which can be wrong only
// next to the middle between two floats.
static bool reads_back(struct decimal d, float v) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int e = abs(d.exp10);
    char text[40];
    if (e <= 22 && v >= FLT_MIN) {
        const double x = d.exp10 < 0 ? (double)d.digits / tens[e] : (double)d.digits * tens[e];
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        const uint64_t middle = UINT64_C(1) << 28, low = bits & (2 * middle - 1);
        if (low < middle - 1 || low > middle + 1) return !((float)x < v) && !((float)x > v);
    }
    (void)snprintf(text, sizeof text, "%" PRIu64 "e%d", d.digits, d.exp10);
    const float back = strtof(text, NULL);
    return !(back < v) && !(back > v);
}

size_t xpl_json_float(float v, char out[XPL_JSON_FLOAT_MAX]) {
    char text[DECIMAL_MAX];
    const bool negative = signbit(v);
    const float magnitude = fabsf(v);
    size_t n;
    if (!isfinite(v) || !(magnitude > 0)) {
        n = (size_t)snprintf(text, sizeof text, "%g", (double)v);
    } else {
        struct decimal d = round_exact((double)magnitude, 6);
        const bool six = reads_back(d, magnitude);
        if (!six) d = round_exact((double)magnitude, 9);
        n = write_decimal(d, negative, six ? 6 : 9, false, text);
    }
    memcpy(out, text, n);
    return n;
}

static void put_shortest(struct xpl_buf *b, double v, int max_point) {
    if (v == 0)
        xpl_buf_str(b, signbit(v) ? XPL_STR("-0.0") : XPL_STR("0.0"));
    else
        put_decimal(b, shortest(fabs(v)), v < 0, max_point, true);
}

void xpl_json_gviz_number(struct xpl_buf *b, double v) {
    if (isfinite(v))
        put_shortest(b, v, 15);
    else
        xpl_buf_put(b, "null", 4);
}

void xpl_json_python_number(struct xpl_buf *b, double v) {
    if (isfinite(v))
        put_shortest(b, v, 16);
    else
        xpl_buf_str(b, isnan(v) ? XPL_STR("nan") : v < 0 ? XPL_STR("-inf") : XPL_STR("inf"));
}

void xpl_json_proto_double(struct xpl_buf *b, double v) {
    if (isnan(v)) {
        xpl_buf_str(b, XPL_STR("\"NaN\""));
    } else if (isinf(v)) {
        xpl_buf_str(b, v < 0 ? XPL_STR("\"-Infinity\"") : XPL_STR("\"Infinity\""));
    } else if (v == 0) {
        xpl_buf_str(b, signbit(v) ? XPL_STR("-0") : XPL_STR("0"));
    } else {
        const double magnitude = fabs(v);
        // If 15 digits read back as the same double, they are the shortest text too, as decimals of
        // 15 digits are further apart than doubles; except the subnormal ones.
        struct decimal d = magnitude < DBL_MIN ? round_to(magnitude, 15) : shortest(magnitude);
        bool fits15 = d.digits < UINT64_C(1000000000000000);
        if (magnitude < DBL_MIN) fits15 = read_back(d) == magnitude;
        if (!fits15) d = round_exact(magnitude, 17);
        put_decimal(b, d, v < 0, fits15 ? 15 : 17, false);
    }
}

static void put_quoted_integer(struct xpl_buf *b, uint64_t magnitude, bool negative) {
    char text[24];
    char *const end = text + sizeof text;
    char *p = digits_before(end - 1, magnitude);
    end[-1] = '"';
    if (negative) *--p = '-';
    *--p = '"';
    xpl_buf_put(b, p, (size_t)(end - p));
}

void xpl_json_proto_int64(struct xpl_buf *b, int64_t v) {
    put_quoted_integer(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

void xpl_json_proto_uint64(struct xpl_buf *b, uint64_t v) {
    put_quoted_integer(b, v, false);
}

size_t xpl_json_fixed(double v, int decimals, char out[XPL_JSON_FIXED_MAX]) {
    const double magnitude = fabs(v);
    if (!(magnitude < 1e14) || decimals < 0 || decimals > 3) return 0;
    uint64_t digits = 0;
    if (magnitude > 0) {
        int q;
        const uint64_t c = split(magnitude, &q), w = scale(4 * c, q, decimals), rest = w % 4;
        digits = w / 4;
        digits += rest > 2 || (rest == 2 && digits % 2); // ties to even
    }
    char rev[XPL_JSON_FIXED_MAX], *const end = rev + sizeof rev, *p = end;
    for (int i = 0; i < decimals; i++, digits /= 10)
        *--p = (char)('0' + digits % 10);
    if (decimals) *--p = '.';
    p = digits_before(p, digits);
    if (signbit(v)) *--p = '-';
    memcpy(out, p, (size_t)(end - p));
    return (size_t)(end - p);
}
