// SPDX-License-Identifier: Apache-2.0
#include "base/text/json_reader.h"

#include <limits.h>
#include <stdio.h>

#include "tests/check.h"

// The tokens of a text, one letter each; keys and values in <>, an error as "!", its cut as "~".
static void tokens(struct xpl_json_reader *r, struct xpl_buf *out) {
    static const char letters[] = "!.{}[]ksnw";
    for (;;) {
        const enum xpl_json_at at = xpl_json_reader_next(r);
        xpl_buf_putc(out, at == XPL_JSON_AT_ERROR && r->cut ? '~' : letters[at]);
        if (at <= XPL_JSON_AT_END) break;
        if (at < XPL_JSON_AT_KEY) continue;
        xpl_buf_putc(out, '<');
        if (r->plain)
            xpl_buf_str(out, r->text);
        else
            xpl_json_reader_unescape(r->text, out);
        xpl_buf_putc(out, '>');
    }
    xpl_buf_putc(out, 0);
}

// A source that gives a few bytes at once.
struct drops {
    xpl_str_t rest;
    size_t each;
};

static xpl_status_t drop(void *ctx, uint8_t *to, size_t room, size_t *ret_n,
                         struct xpl_error *err) {
    struct drops *const d = ctx;
    size_t n = d->each < room ? d->each : room;
    if (n > d->rest.len) n = d->rest.len;
    if (n) memcpy(to, d->rest.ptr, n);
    d->rest = xpl_str_sub(d->rest, n, SIZE_MAX);
    *ret_n = n;
    (void)err;
    return XPL_OK;
}

static void expect(xpl_str_t text, unsigned flags, const char *expected) {
    struct drops d = {text, 7};
    const struct xpl_json_source source = {.read = drop, .ctx = &d};
    struct xpl_json_reader r;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 20);
    struct xpl_error err = {0};
    xpl_json_reader_init(&r, text, flags);
    tokens(&r, &b);
    CHECK_STR((const char *)b.p, expected);
    CHECK(xpl_json_reader_offset(&r) <= text.len);
    b.n = 0;
    CHECK_OK(xpl_json_reader_open(&r, &source, flags, &err), &err);
    tokens(&r, &b);
    CHECK_STR((const char *)b.p, expected);
    xpl_json_reader_fini(&r);
}
#define STRICT(text, expected)  expect(XPL_STR(text), 0, expected)
#define LENIENT(text, expected) expect(XPL_STR(text), XPL_JSON_LENIENT, expected)

static void test_strict(void) {
    STRICT(" {\"a\": [1, -2.5e+3, \"x\"], \"b\":{}}\n", "{k<a>[n<1>n<-2.5e+3>s<x>]k<b>{}}.");
    STRICT("true", "w<true>.");
    STRICT("\"\\u00e9\\ud83d\\ude00\\n\\\\\"", "s<\u00e9\U0001f600\n\\>.");
    STRICT("[1,]", "[n<1>!");
    STRICT("[,1]", "[!");
    STRICT("[1 2]", "[n<1>!");
    STRICT("{\"a\" 1}", "{!");
    STRICT("{\"a\":,}", "{k<a>!");
    STRICT("{1:2}", "{!");
    STRICT("[NaN]", "[!");
    STRICT("[01]", "[!");
    STRICT("[1.]", "[!");
    STRICT("[\"\\x\"]", "[!");
    STRICT("[\"a\nb\"]", "[!");
    STRICT("[1]]", "[n<1>]!");
    STRICT("[1}", "[n<1>!");
    STRICT("", "~");
    STRICT("[1", "[~");
    STRICT("{\"a\":\"b", "{k<a>~");
}

static void test_lenient(void) {
    LENIENT("[NaN,-Infinity,inf]", "[w<NaN>w<-Infinity>w<inf>].");
    LENIENT("{\"a\":,\"b\": }", "{k<a>w<>k<b>w<>}.");
    LENIENT("[,1,,2,]", "[n<1>n<2>].");
    LENIENT("[\"C:\\temp\\x\"]", "[s<C:\temp\\x>].");
    LENIENT("[\"a \"b\" c\" , 1]", "[s<a \"b\" c>n<1>].");
    LENIENT("{\"note\": \"a /\"b/\"\", \"c\": 1}", "{k<note>s<a /\"b/\">k<c>n<1>}.");
    LENIENT("[\"a\tb\x01\"]", "[s<a\tb\x01>].");
    LENIENT("[\"\xff\xc3(\"]", "[s<\uFFFD\uFFFD(>].");
    LENIENT("[\"\\ud83d\"]", "[s<\uFFFD>].");
    LENIENT("[nonsense]", "[!");
}

static void test_depth(void) {
    char text[2 * XPL_JSON_READER_DEPTH + 2];
    struct xpl_json_reader r;
    memset(text, '[', sizeof text);
    xpl_json_reader_init(&r, (xpl_str_t){text, sizeof text}, XPL_JSON_LENIENT);
    for (int i = 0; i < XPL_JSON_READER_DEPTH; i++)
        CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ERROR);
    CHECK(!r.cut);
}

static void test_skip(void) {
    struct xpl_json_reader r;
    xpl_json_reader_init(&r, XPL_STR("[{\"a\":[1,{\"}\":\"]\\\"\"}]}, [3], 4]"), XPL_JSON_LENIENT);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_OBJECT);
    CHECK(xpl_json_reader_skip(&r));
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY);
    xpl_json_reader_hold(&r);
    CHECK(xpl_json_reader_skip_raw(&r));
    CHECK(xpl_str_eq(r.text, XPL_STR("[3]")));
    xpl_json_reader_release(&r);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_NUMBER);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY_END);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_END);
}

static void test_resume(void) {
    static const char text[] = "[{\"a\":x}, {\"b\":1}]";
    struct xpl_json_reader r;
    xpl_json_reader_init(&r, (xpl_str_t){text, sizeof text - 1}, XPL_JSON_LENIENT);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_OBJECT);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_KEY);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ERROR);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ERROR);
    xpl_json_reader_resume(&r, strrchr(text, '{') - text + r.begin, 1);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_OBJECT);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_KEY);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_NUMBER);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_OBJECT_END);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY_END);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_END);
}

// A source whose text is in memory: counts down until it refuses.
static xpl_status_t allow(void *ctx, uint8_t *to, size_t room, size_t *ret_n,
                          struct xpl_error *err) {
    unsigned *const left = ctx;
    (void)ret_n;
    CHECK(!to && !room);
    if (!*left) XPL_RETURN_ERROR(err, XPL_CANCELLED, "refused");
    --*left;
    return XPL_OK;
}

enum { N = 6 << 20 };

static void check_long(const struct xpl_json_source *source) {
    struct xpl_error err = {0};
    struct xpl_json_reader r;
    CHECK_OK(xpl_json_reader_open(&r, source, 0, &err), &err);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY);
    for (size_t at = 1; at < N; at += 11) {
        char expected[16];
        (void)snprintf(expected, sizeof expected, "%08zu", at);
        CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_STRING);
        CHECK(xpl_str_eq(r.text, xpl_str_from(expected)));
        CHECK_EQ(xpl_json_reader_offset(&r), at + 10);
    }
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_NUMBER);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY_END);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_END);
    xpl_json_reader_fini(&r);
}

static void check_too_long(const struct xpl_json_source *source) {
    struct xpl_error err = {0};
    struct xpl_json_reader r;
    CHECK_OK(xpl_json_reader_open(&r, source, 0, &err), &err);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ARRAY);
    CHECK_EQ(xpl_json_reader_next(&r), XPL_JSON_AT_ERROR);
    CHECK(r.cut && !r.ended);
    xpl_json_reader_fini(&r);
}

// What moves through the buffer, or is read where it is, keeps its offsets, and a token that does
// not fit ends the text.
static void test_long(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(2 * N);
    unsigned left = UINT_MAX;
    xpl_buf_putc(&b, '[');
    while (b.n < N)
        xpl_buf_printf(&b, "\"%08zu\",", b.n);
    xpl_buf_str(&b, XPL_STR("0]"));
    const xpl_str_t text = {(const char *)b.p, b.n};
    struct drops d = {text, 100001};
    const struct xpl_json_source drops = {.read = drop, .ctx = &d},
                                 here = {.read = allow, .ctx = &left, .here = text};
    check_long(&drops);
    check_long(&here);
    memset(b.p + 1, 'x', N);
    b.p[1] = '"';
    d = (struct drops){text, 100001};
    check_too_long(&drops);
    check_too_long(&here);
}

// The source of a text in memory ends it as any other does.
static void test_refused(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(4 * N);
    struct xpl_error err = {0};
    struct xpl_json_reader r;
    unsigned left = 1;
    xpl_buf_putc(&b, '[');
    while (b.n < 2 * N)
        xpl_buf_str(&b, XPL_STR("[1],"));
    const struct xpl_json_source here = {
        .read = allow, .ctx = &left, .here = {(const char *)b.p, b.n}};
    CHECK_OK(xpl_json_reader_open(&r, &here, XPL_JSON_LENIENT, &err), &err);
    while (xpl_json_reader_next(&r) != XPL_JSON_AT_ERROR)
        ;
    CHECK_EQ(r.status, XPL_CANCELLED);
    CHECK(r.ended && xpl_json_reader_offset(&r) < N);
    CHECK_STR(err.msg, "refused");
    xpl_json_reader_fini(&r);
}

int main(void) {
    test_strict();
    test_lenient();
    test_depth();
    test_skip();
    test_resume();
    test_long();
    test_refused();
    return 0;
}
