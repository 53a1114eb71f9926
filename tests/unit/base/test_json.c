// SPDX-License-Identifier: Apache-2.0
// base/json: both dialects' numbers against printf and strtod, escapes, broken UTF-8.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/check.h"

static struct xpl_buf g_buf;

static const char *text(void) {
    xpl_buf_putc(&g_buf, 0);
    CHECK(!g_buf.failed);
    return (const char *)g_buf.p;
}

static const char *gviz(double v) {
    g_buf.n = 0;
    xpl_json_gviz_number(&g_buf, v);
    return text();
}

static const char *python(double v) {
    g_buf.n = 0;
    xpl_json_python_number(&g_buf, v);
    return text();
}

static const char *proto(double v) {
    g_buf.n = 0;
    xpl_json_proto_double(&g_buf, v);
    return text();
}

static const char *string_n(const char *s, size_t n, bool html) {
    g_buf.n = 0;
    xpl_json_str(&g_buf, (xpl_str_t){s, n}, html);
    return text();
}

static const char *string(const char *s) {
    return string_n(s, strlen(s), false);
}

#define CHECK_TEXT(got, expected)                                                                  \
    do {                                                                                           \
        const char *const got_ = (got);                                                            \
        if (strcmp(got_, (expected)) != 0)                                                         \
            fprintf(stderr, "got %s, expected %s\n", got_, (expected));                            \
        CHECK(strcmp(got_, (expected)) == 0);                                                      \
    } while (0)

// The texts are those of Python's repr.
static void test_python_numbers(void) {
    static const struct {
        double v;
        const char *text;
    } rows[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {-2.5, "-2.5"},
        {0.1, "0.1"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {1e-05, "1e-05"},
        {9.9e-05, "9.9e-05"},
        {123456789.125, "123456789.125"},
        {1e15, "1000000000000000.0"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {1.5e16, "1.5e+16"},
        {1e22, "1e+22"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0.30000000000000004, "0.30000000000000004"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_TEXT(python(rows[i].v), rows[i].text);
    CHECK_TEXT(python(NAN), "nan");
    CHECK_TEXT(python(INFINITY), "inf");
    CHECK_TEXT(python(-INFINITY), "-inf");
}

static void test_gviz_numbers(void) {
    CHECK_TEXT(gviz(0), "0.0");
    CHECK_TEXT(gviz(-0.0), "-0.0");
    CHECK_TEXT(gviz(1), "1.0");
    CHECK_TEXT(gviz(-17), "-17.0");
    CHECK_TEXT(gviz(0.1), "0.1");
    CHECK_TEXT(gviz(0.1 + 0.2), "0.30000000000000004");
    CHECK_TEXT(gviz(100), "100.0");
    CHECK_TEXT(gviz(123456789012345), "123456789012345.0");
    CHECK_TEXT(gviz(999999999999999), "999999999999999.0");
    CHECK_TEXT(gviz(1e15), "1e+15");
    CHECK_TEXT(gviz(1e22), "1e+22");
    CHECK_TEXT(gviz(1.5e300), "1.5e+300");
    CHECK_TEXT(gviz(0.0001), "0.0001");
    CHECK_TEXT(gviz(0.00012), "0.00012");
    CHECK_TEXT(gviz(0.00001), "1e-05");
    CHECK_TEXT(gviz(DBL_MIN), "2.2250738585072014e-308");
    CHECK_TEXT(gviz(5e-324), "5e-324");
    CHECK_TEXT(gviz(DBL_MAX), "1.7976931348623157e+308");
    CHECK_TEXT(gviz(NAN), "null");
    CHECK_TEXT(gviz(INFINITY), "null");
    CHECK_TEXT(gviz(-INFINITY), "null");
}

// What the rule says, by printf and strtof.
static void check_float(float v) {
    char expected[48], got[XPL_JSON_FLOAT_MAX + 1];
    (void)snprintf(expected, sizeof expected, "%.6g", (double)v);
    const float back = strtof(expected, NULL);
    if (back < v || back > v) (void)snprintf(expected, sizeof expected, "%.9g", (double)v);
    got[xpl_json_float(v, got)] = 0;
    CHECK_TEXT(got, expected);
}

static void test_floats(void) {
    static const float some[] = {0.0f,        -0.0f,         1.0f,        0.1f,       -1.0f / 3,
                                 1e5f,        999999.5f,     99999.95f,   1000000.0f, 9999995.0f,
                                 16777216.0f, 1e9f,          123456.7f,   1e10f,      1e-4f,
                                 0.00001f,    9.9999994e-5f, FLT_MIN,     FLT_MAX,    1e-45f,
                                 INFINITY,    -INFINITY,     0.33333334f, 8388608.5f, 5e-39f};
    uint64_t x = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        check_float(some[i]);
    for (int i = 0; i < 100000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        const uint32_t bits = (uint32_t)(x >> 20);
        float any, usual = (float)(int32_t)bits / 1e9f;
        memcpy(&any, &bits, sizeof any);
        if (!isnan(any)) check_float(any);
        check_float(usual);
        check_float(roundf(usual * 1000) / 1000); // few digits
    }
}

static void test_proto_numbers(void) {
    CHECK_TEXT(proto(0), "0");
    CHECK_TEXT(proto(-0.0), "-0");
    CHECK_TEXT(proto(1), "1");
    CHECK_TEXT(proto(0.1), "0.1");
    CHECK_TEXT(proto(0.1 + 0.2), "0.30000000000000004");
    CHECK_TEXT(proto(1.0 / 3), "0.33333333333333331");
    CHECK_TEXT(proto(1e15), "1e+15");
    CHECK_TEXT(proto(1e22), "1e+22");
    CHECK_TEXT(proto(9007199254740992.0), "9007199254740992");
    CHECK_TEXT(proto(NAN), "\"NaN\"");
    CHECK_TEXT(proto(INFINITY), "\"Infinity\"");
    CHECK_TEXT(proto(-INFINITY), "\"-Infinity\"");
    g_buf.n = 0;
    xpl_json_proto_int64(&g_buf, INT64_MIN);
    xpl_json_proto_int64(&g_buf, 0);
    xpl_json_proto_uint64(&g_buf, UINT64_MAX);
    CHECK_TEXT(text(), "\"-9223372036854775808\"\"0\"\"18446744073709551615\"");
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Numbers of all kinds: any bits, times in us, quotients, binary fractions, decimal fractions.
static double random_double(uint64_t *state, unsigned kind) {
    const uint64_t r = next_random(state), other = next_random(state);
    double v;
    switch (kind % 5) {
        case 0: memcpy(&v, &r, sizeof v); return v;
        case 1: return (double)(r >> 20) / 1e6;
        case 2: return (double)(r >> (r & 63)) / (double)(other >> 30 | 1);
        case 3: return ldexp((double)(r >> 11), -(int)(other % 200));
        default: return (double)(r % 1000000) / pow(10, (double)(other % 12));
    }
}

// The first of printf's texts, by number of digits, that reads back: shortest, and the nearest.
static void shortest_by_printf(double v, char out[64]) {
    for (int digits = 0; digits < 17; digits++) {
        (void)snprintf(out, 64, "%.*e", digits, v);
        if (strtod(out, NULL) == v) return;
    }
}

static void test_random_numbers(void) {
    uint64_t state = 88172645463325252u;
    for (unsigned i = 0; i < 200000; i++) {
        const double v = random_double(&state, i);
        if (!isfinite(v)) continue;
        char expected[64];
        const char *got = gviz(v);
        CHECK_REAL(strtod(got, NULL), v, 0);
        CHECK(strpbrk(got, ".e"));
        shortest_by_printf(v, expected);
        size_t digits_expected = 0, digits_got = 0;
        for (const char *p = expected; *p && *p != 'e'; p++)
            digits_expected += *p >= '0' && *p <= '9';
        bool leading = true;
        size_t trailing = 0;
        for (const char *p = got; *p && *p != 'e'; p++) {
            if (*p < '0' || *p > '9') continue;
            leading = leading && *p == '0';
            if (leading) continue;
            digits_got++;
            trailing = *p == '0' ? trailing + 1 : 0;
        }
        if (v != 0) CHECK_EQ(digits_got - trailing, digits_expected);
        (void)snprintf(expected, sizeof expected, "%.15g", v);
        if (strtod(expected, NULL) != v) (void)snprintf(expected, sizeof expected, "%.17g", v);
        CHECK_TEXT(proto(v), expected);
    }
}

static void check_fixed(double v, int decimals) {
    char out[XPL_JSON_FIXED_MAX + 1], expected[400];
    const size_t n = xpl_json_fixed(v, decimals, out);
    if (n == 0) {
        CHECK(!(fabs(v) < 1e14));
        return;
    }
    out[n] = 0;
    (void)snprintf(expected, sizeof expected, "%.*f", decimals, v);
    CHECK_STR(out, expected);
}

static void test_fixed(void) {
    static const double values[] = {0,
                                    -0.0,
                                    0.5,
                                    1.5,
                                    2.5,
                                    0.125,
                                    0.375,
                                    0.005,
                                    0.045,
                                    1.005,
                                    999.995,
                                    0.0005,
                                    -0.004,
                                    -1e-300,
                                    5e-324,
                                    1e13,
                                    99999999999999.9,
                                    1e14,
                                    1e300,
                                    INFINITY,
                                    NAN};
    for (int decimals = 0; decimals <= 3; decimals++) {
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            check_fixed(values[i], decimals);
        uint64_t x = 88172645463325252u;
        for (int i = 0; i < 20000; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            double any;
            memcpy(&any, &x, sizeof any);
            check_fixed(any, decimals);
            check_fixed((double)(int64_t)(x >> 20) / 8000.0, decimals);
            check_fixed((double)(x % 2000001) / 1000.0, decimals);
        }
    }
    char out[XPL_JSON_FIXED_MAX];
    CHECK_EQ(xpl_json_fixed(1, 4, out), 0);
    CHECK_EQ(xpl_json_fixed(1, -1, out), 0);
}

static void test_fields(void) {
    g_buf.n = 0;
    xpl_json_field(&g_buf, "a", XPL_STR("x\"<"));
    xpl_buf_putc(&g_buf, ',');
    xpl_json_field(&g_buf, "b", XPL_STR(""));
    CHECK_TEXT(text(), "\"a\":\"x\\\"<\",\"b\":\"\"");
}

static void test_strings(void) {
    CHECK_TEXT(string(""), "\"\"");
    CHECK_TEXT(string("plain <b>&'"), "\"plain <b>&'\"");
    CHECK_TEXT(string("\"\\\b\f\n\r\t\x01\x1f\x7f"),
               "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    CHECK_TEXT(string("\xc3\xa9 \xe2\x80\xa8 \xf0\x9f\x98\x80"),
               "\"\xc3\xa9 \xe2\x80\xa8 \xf0\x9f\x98\x80\"");
    CHECK_TEXT(string_n("<\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa>", 11, true),
               "\"\\u003c\\u2028\\u2029\xe2\x80\xaa\\u003e\"");
    CHECK_TEXT(string_n("a\0b", 3, false), "\"a\\u0000b\"");
    CHECK_TEXT(string_n(NULL, 0, false), "\"\"");
}

// One U+FFFD per ill-formed part: isolated, cut short, overlong, surrogate, above U+10FFFF.
static void test_broken_utf8(void) {
    CHECK_TEXT(string("\xff\xfe"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    CHECK_TEXT(string("\x80x"), "\"\xef\xbf\xbdx\"");
    CHECK_TEXT(string("\xc3"), "\"\xef\xbf\xbd\"");
    CHECK_TEXT(string("\xe2\x82"), "\"\xef\xbf\xbd\"");
    CHECK_TEXT(string("\xe2\x28\xa1"), "\"\xef\xbf\xbd(\xef\xbf\xbd\"");
    CHECK_TEXT(string("\xf0\x9f\x98<"), "\"\xef\xbf\xbd<\"");
    CHECK_TEXT(string("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    CHECK_TEXT(string("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    CHECK_TEXT(string("\xf4\x90\x80\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    CHECK_TEXT(string("\xf4\x8f\xbf\xbf"), "\"\xf4\x8f\xbf\xbf\"");
}

static void test_limit(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(8);
    xpl_json_str(&b, XPL_STR("0123456789"), false);
    CHECK(b.failed);
}

int main(void) {
    xpl_buf_init(&g_buf, 1 << 20);
    test_python_numbers();
    test_gviz_numbers();
    test_floats();
    test_proto_numbers();
    test_random_numbers();
    test_fixed();
    test_strings();
    test_fields();
    test_broken_utf8();
    test_limit();
    xpl_buf_fini(&g_buf);
    return 0;
}
