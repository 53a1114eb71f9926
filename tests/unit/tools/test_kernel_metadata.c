// SPDX-License-Identifier: Apache-2.0
// Kernel metadata out of instructions; the expected texts are XProf's.
#include "analysis/tools/lib/kernel_metadata.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/text/json_reader.h"
#include "base/text/json_value.h"
#include "tests/check.h"

#define CALL                                                                                       \
    "%c.1 = f32[8]{0} custom-call(f32[8]{0} %p), custom_call_target=\"t\", frontend_attributes="
#define COPY "%cp = f32[8]{0} copy(f32[8]{0} %p), frontend_attributes="

static const struct {
    const char *instruction, *expected;
} cases[] = {
    {CALL "{kernel_metadata=\"{\\\"xprof_metadata\\\": {\\\"b\\\":1,\\\"a\\\":\\\"x\\\"}}\"}",
     "{\"a\":\"x\",\"b\":1}"},
    {CALL "{kernel_metadata={\"xprof_metadata\": {\"b\":1,\"a\":\"x\"}}}", "{\"a\":\"x\",\"b\":1}"},
    {CALL "{kernel_metadata=\"{\\\"xprof_metadata\\\": "
          "\\\"{\\\\\\\"b\\\\\\\":1,\\\\\\\"a\\\\\\\":2.50}\\\"}\"}",
     "{\"a\":2.5,\"b\":1}"},
    {CALL "{kernel_metadata={\"xprof_metadata\":\"{\\\"b\\\":1}\"}}, metadata={op_name=\"x\" "
          "source_file=\"y\" source_line=3}, backend_config={\"a\":{\"body\":\"abc\"}}",
     "{\"b\":1}"},
    {CALL "{kernel_metadata={\"xprof_metadata\":{\"z\":\"\xc3\xa9<>\\u0041\\n\",\"a\":[1.0,2,-3,"
          "1e300,true,null,0.1,12345678901234567890,-0.0,1E2,3.14159265358979]}}}",
     "{\"a\":[1.0,2,-3,1e+300,true,null,0.1,12345678901234567890,-0.0,100.0,3.14159265358979],"
     "\"z\":\"\xc3\xa9<>A\\n\"}"},
    {CALL "{x=\"y,kernel_metadata=1\",kernel_metadata={\"xprof_metadata\":7,\"k\":1e3}} ", "7"},
    {CALL "{kernel_metadata={\"xprof_metadata\":\"notjson\"}}", ""},
    {CALL "{kernel_metadata={\"xprof_metadata\":\"\"}}", ""},
    {CALL "{kernel_metadata={\"xprof_metadata\":null}}", "null"},
    {CALL "{kernel_metadata={\"xprof_metadata\":\"\\\"str\\\"\"}}", "\"str\""},
    {CALL "{kernel_metadata={}, x=\"xprof_metadata\"}", ""},
    {CALL "{kernel_metadata=\"xprof_metadata\"}", ""},
    {CALL "{kernel_metadata={\"xprof_metadata\":{}},zz=\"q\"}", "{}"},
    {COPY "{kernel_metadata={\"xprof_metadata\":{\"a\":1,\"a\":2}}}", "{\"a\":2}"},
    {COPY "{kernel_metadata={ \"xprof_metadata\" : { \"k\" : 3 } } }", "{\"k\":3}"},
    {COPY "{a=\"b\",kernel_metadata={\"xprof_metadata\":{\"k\":2}}}, sharding={replicated}",
     "{\"k\":2}"},
    {COPY "{kernel_metadata={\"xprof_metadata\":{\"k\":3}}}, control-predecessors={%x}", ""},
    {"%f = f32[8]{0} fusion(f32[8]{0} %p), kind=kLoop, calls=%g, "
     "frontend_attributes={kernel_metadata={\"xprof_metadata\":1}}",
     ""},
    {"%c = f32[8]{0} custom-call(f32[8]{0} %p), "
     "frontend_attributes={kernel_metadata={\"xprof_metadata\":1}}",
     ""},
    {"%c = f32[8]{0} copy(f32[8]{0} %p), metadata={op_name=\", frontend_attributes={"
     "kernel_metadata={\\\"xprof_metadata\\\":1}}\"}",
     ""},
    {"xprof_metadata", ""},
    {"xprof_metadata, frontend_attributes=", ""},
    {"xprof_metadata, frontend_attributes={", ""},
    {"xprof_metadata, frontend_attributes={kernel_metadata=\"", ""},
    {"xprof_metadata, frontend_attributes={kernel_metadata={\"xprof_metadata\":1", ""},
    {"xprof_metadata, frontend_attributes={a", ""},
    {"", ""},
};

static void test_instructions(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_arena a = xpl_arena_of(1 << 20);
        xpl_str_t got;
        CHECK(xpl_instruction_kernel_metadata(xpl_str_from(cases[i].instruction), &a, &got));
        if (!xpl_str_eq(got, xpl_str_from(cases[i].expected)))
            fprintf(stderr, "%s\ngives %.*s\n", cases[i].instruction, XPL_STR_FMT(got));
        CHECK_STR(got, cases[i].expected);
        xpl_arena_fini(&a);
    }
}

static void test_limit(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(0);
    xpl_str_t got;
    CHECK(!xpl_instruction_kernel_metadata(xpl_str_from(cases[0].instruction), &a, &got));
    CHECK(xpl_instruction_kernel_metadata(XPL_STR("nothing"), &a, &got));
}

static void check_json(const char *text, const char *expected) { // NULL: no JSON
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_json_value v;
    const enum xpl_json_result st = xpl_json_value_parse(xpl_str_from(text), &a, &v);
    if ((st == XPL_JSON_OK) != (expected != NULL)) fprintf(stderr, "%s\n", text);
    CHECK_EQ(st, expected ? XPL_JSON_OK : XPL_JSON_INVALID);
    if (expected) {
        struct xpl_buf b = xpl_buf_of(1 << 20);
        xpl_json_value_write(&v, &b);
        CHECK_STR(((xpl_str_t){(const char *)b.p, b.n}), expected);
        xpl_buf_fini(&b);
    }
}

static void test_json(void) {
    static const char *const invalid[] = {"",
                                          " ",
                                          "{",
                                          "[1,]",
                                          "[,1]",
                                          "{\"a\"}",
                                          "{\"a\":1,}",
                                          "{a:1}",
                                          "01",
                                          "1.",
                                          ".5",
                                          "+1",
                                          "1e",
                                          "-",
                                          "1e999",
                                          "nul",
                                          "\"\\x\"",
                                          "\"\\u12g4\"",
                                          "\"\\ud800\"",
                                          "\"\\udc00\"",
                                          "\"\\ud800\\u0041\"",
                                          "\"a",
                                          "\"\\",
                                          "\"\n\"",
                                          "\"\xff\"",
                                          "\"\xc0\x80\"",
                                          "\"\xed\xa0\x80\"",
                                          "\"\xf5\x80\x80\x80\"",
                                          "1 2",
                                          "[1 2]"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        check_json(invalid[i], NULL);
    check_json(" [ ] ", "[]");
    check_json("\t{ }\r\n", "{}");
    check_json("-9223372036854775808", "-9223372036854775808");
    check_json("-9223372036854775809", "-9.223372036854776e+18");
    check_json("18446744073709551616", "1.8446744073709552e+19");
    check_json("-0", "0");
    check_json("\"\\ud83d\\ude00 \\/\\b\\f\\\" \xf4\x8f\xbf\xbf\"",
               "\"\xf0\x9f\x98\x80 /\\b\\f\\\" \xf4\x8f\xbf\xbf\"");
    check_json("{\"b\":[{\"z\":1,\"a\":2},false],\"a\":\"\"}",
               "{\"a\":\"\",\"b\":[{\"a\":2,\"z\":1},false]}");
    char deep[2 * XPL_JSON_READER_DEPTH + 3] = {0};
    memset(deep, '[', XPL_JSON_READER_DEPTH);
    memset(deep + XPL_JSON_READER_DEPTH, ']', XPL_JSON_READER_DEPTH);
    check_json(deep, deep);
    memset(deep, '[', XPL_JSON_READER_DEPTH + 1);
    memset(deep + XPL_JSON_READER_DEPTH + 1, ']', XPL_JSON_READER_DEPTH + 1);
    check_json(deep, NULL);
}

int main(void) {
    test_instructions();
    test_limit();
    test_json();
    return 0;
}
