// SPDX-License-Identifier: Apache-2.0
// Options of tools: defaults, parsing, refusals, and texts.

#include "analysis/tools/trace_viewer/options.h"
#include "base/arena.h"
#include "base/status.h"
#include "tests/check.h"

static struct xpl_arena g_arena;

static xpl_status_t parse_list(const char *tool, const struct xpl_option *o, size_t n, bool strict,
                               void **ret, struct xpl_error *err) {
    *err = (struct xpl_error){0};
    return xpl_tool_options_parse(xpl_tool_find(xpl_str_from(tool)), o, n, strict, &g_arena, ret,
                                  err);
}

static xpl_status_t parse(const char *tool, const char *key, const char *value, bool strict,
                          void **ret, struct xpl_error *err) {
    const struct xpl_option o = {xpl_str_from(key), xpl_str_from(value)};
    return parse_list(tool, &o, 1, strict, ret, err);
}

static const struct xpl_common_options *common(const void *options) {
    return options;
}

// The text of options, in a buffer that the next call overwrites.
static const char *text_of(const char *tool, const void *options) {
    static char text[1000];
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(sizeof text - 1);
    xpl_tool_options_text(xpl_tool_find(xpl_str_from(tool)), options, &b);
    CHECK(!b.failed);
    if (b.n) memcpy(text, b.p, b.n);
    text[b.n] = 0;
    return text;
}

static void check_text(const char *tool, const void *options, const char *expected) {
    const char *const got = text_of(tool, options);
    if (strcmp(got, expected) != 0) fprintf(stderr, "%s: %s\nwant: %s\n", tool, got, expected);
    CHECK_STR(got, expected);
}

static void test_values(void) {
    struct xpl_error e;
    void *o;
    CHECK_OK(parse("op_profile", "group_by", "category", true, &o, &e), NULL);
    CHECK(common(o)->cpu_as_device && !common(o)->xprof_exact && common(o)->use_saved_result);
    check_text("op_profile", o,
               "group_by=category cpu_core_gflops=0 cpu_core_gb_s=0 cpu_as_device=true "
               "xprof_exact=false");
    CHECK_OK(parse("op_profile", "group_by", "provenance", false, &o, &e), NULL);
    check_text("op_profile", o,
               "group_by=provenance cpu_core_gflops=0 cpu_core_gb_s=0 cpu_as_device=false "
               "xprof_exact=false");
    CHECK_OK(parse("hlo_stats", "cpu_as_device", "False", true, &o, &e), NULL);
    CHECK(!common(o)->cpu_as_device);
    CHECK_OK(parse("hlo_stats", "xprof_exact", "1", true, &o, &e), NULL);
    CHECK(common(o)->xprof_exact && !common(o)->cpu_as_device);
    CHECK_OK(parse("memory_profile", "use_saved_result", "false", false, &o, &e), NULL);
    CHECK(!common(o)->use_saved_result);
    check_text("memory_profile", o, "");
    CHECK_OK(parse("memory_profile", "use_saved_result", "true", true, &o, &e), NULL);
    CHECK(common(o)->use_saved_result);
}

static bool mentions(const struct xpl_error *e, const char *text) {
    return xpl_str_has(xpl_str_from(e->msg), xpl_str_from(text));
}

static void test_refusals(void) {
    struct xpl_error e;
    void *o = NULL;
    CHECK_STATUS(parse("op_profile", "group", "category", true, &o, &e), XPL_INVALID_ARGUMENT,
                 NULL);
    CHECK_STR(e.msg, "op_profile has no option 'group'; did you mean \"group_by\"? it takes "
                     "group_by=program|category|provenance|op, cpu_core_gflops=GFLOP/s, "
                     "cpu_core_gb_s=GB/s, cpu_as_device=true|false, "
                     "use_saved_result=true|false, xprof_exact=true|false");
    CHECK(!o); // untouched
    CHECK_STATUS(parse("kernel_stats", "group_by", "category", true, &o, &e), XPL_INVALID_ARGUMENT,
                 NULL);
    CHECK(!mentions(&e, "provenance") && mentions(&e, "kernel_stats"));
    CHECK_STATUS(parse("op_profile", "group_by", "Category", true, &o, &e), XPL_INVALID_ARGUMENT,
                 NULL);
    CHECK_STR(e.msg, "option group_by cannot be 'Category'; did you mean \"category\"? it takes "
                     "program|category|provenance|op");
    CHECK_STATUS(parse("op_profile", "group_by", "program|category", true, &o, &e),
                 XPL_INVALID_ARGUMENT, NULL);
    CHECK_STATUS(parse("op_profile", "cpu_as_device", "", true, &o, &e), XPL_INVALID_ARGUMENT,
                 NULL);
    char key[4000];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = 0;
    CHECK_STATUS(parse("op_profile", key, key, true, &o, &e), XPL_INVALID_ARGUMENT, NULL);
    CHECK(mentions(&e, "xprof_exact=true|false"));
    CHECK_STATUS(parse("op_profile", "group_by", key, true, &o, &e), XPL_INVALID_ARGUMENT, NULL);
    CHECK(mentions(&e, "program|category|provenance"));
}

static void test_rates(void) {
    static const char *const bad[] = {"x", "-1", "inf", "nan", "1e999", "5 GB/s", "0x10"};
    struct xpl_error e;
    void *o;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(parse("roofline_model", "cpu_core_gflops", bad[i], true, &o, &e),
                     XPL_INVALID_ARGUMENT, NULL);
    CHECK_STR(e.msg, "option cpu_core_gflops cannot be '0x10'; it takes GFLOP/s, a number of at "
                     "least 0, such as 48.5");
    CHECK_OK(parse("roofline_model", "cpu_core_gb_s", " 12.5 ", true, &o, &e), NULL);
    check_text("roofline_model", o,
               "cpu_core_gflops=0 cpu_core_gb_s=12.5 cpu_as_device=true xprof_exact=false");
    CHECK_OK(parse("roofline_model", "cpu_core_gb_s", "", true, &o, &e), NULL);
    // XProf's clients do not know it.
    CHECK_OK(parse("roofline_model", "cpu_core_gb_s", "12.5", false, &o, &e), NULL);
    check_text("roofline_model", o,
               "cpu_core_gflops=0 cpu_core_gb_s=0 cpu_as_device=false xprof_exact=false");
}

// XProf's clients: unknown options are ignored, and our own options are not theirs.
static void test_lenient(void) {
    struct xpl_error e;
    void *o;
    CHECK_OK(parse("op_profile", "resolution", "8000", false, &o, &e), NULL);
    CHECK_OK(parse("op_profile", "group_by", "nothing", false, &o, &e), NULL);
    check_text("op_profile", o,
               "group_by=program cpu_core_gflops=0 cpu_core_gb_s=0 cpu_as_device=false "
               "xprof_exact=false");
    CHECK_OK(parse("op_profile", "cpu_as_device", "true", false, &o, &e), NULL);
    CHECK(!common(o)->cpu_as_device);
    CHECK_OK(parse("op_profile", "xprof_exact", "true", false, &o, &e), NULL);
    CHECK(!common(o)->xprof_exact);
}

static void test_last_wins(void) {
    const struct xpl_option twice[] = {{XPL_STR("group_by"), XPL_STR("category")},
                                       {XPL_STR("group_by"), XPL_STR("program")}};
    struct xpl_error e;
    void *o;
    CHECK_OK(parse_list("op_profile", twice, 2, true, &o, &e), NULL);
    check_text("op_profile", o,
               "group_by=program cpu_core_gflops=0 cpu_core_gb_s=0 cpu_as_device=true "
               "xprof_exact=false");
    CHECK_OK(parse_list("op_profile", NULL, 0, true, &o, &e), NULL);
}

// ---- trace_viewer@ ----

static const struct xpl_trace_viewer_options *trace(const char *key, const char *value) {
    struct xpl_error e;
    void *o = NULL;
    return parse("trace_viewer@", key, value, true, &o, &e) == XPL_OK ? o : NULL;
}

static void test_trace_numbers(void) {
    struct xpl_trace_options preset;
    xpl_trace_options_init(&preset);
    CHECK_EQ(trace("format", "json")->trace.resolution, preset.resolution);
    CHECK_EQ(trace("resolution", "100")->trace.resolution, 100);
    CHECK_EQ(trace("resolution", "1.5e3")->trace.resolution, 1500);
    CHECK_EQ(trace("resolution", "-3")->trace.resolution, 0);
    CHECK(!trace("resolution", "many") && !trace("resolution", ""));
    CHECK_REAL(trace("start_time_ms", " 1.25 ")->trace.start_time_ms, 1.25, 0);
    CHECK(trace("end_time_ms", ""));
    CHECK(!trace("end_time_ms", "nan") && !trace("end_time_ms", "0x10"));
    CHECK(!trace("end_time_ms", "inf") && !trace("duration_ms", "1e999"));
}

static void test_trace_others(void) {
    CHECK(trace("full_dma", "true")->trace.full_dma && !trace("full_dma", "perhaps"));
    CHECK(!trace("format", "xml"));
    CHECK_EQ(trace("format", "pb")->format, XPL_TRACE_FORMAT_PB);
    CHECK_EQ(trace("format", "json")->format, XPL_TRACE_FORMAT_JSON);
    CHECK(!trace("group_by", "program"));
    char name[] = "x";
    const struct xpl_trace_viewer_options *const o = trace("event_name", name);
    name[0] = 'y'; // texts are copied
    CHECK_STR(o->trace.event_name, "x");
}

// Nothing given is as good as no option, but does not undo one.
static void test_trace_empty_time(void) {
    const struct xpl_option list[] = {{XPL_STR("end_time_ms"), XPL_STR("5")},
                                      {XPL_STR("end_time_ms"), XPL_STR("")}};
    struct xpl_error e;
    void *o;
    CHECK_OK(parse_list("trace_viewer@", list, 2, true, &o, &e), NULL);
    CHECK_REAL(((const struct xpl_trace_viewer_options *)o)->trace.end_time_ms, 5, 0);
}

static void test_trace_text(void) {
    CHECK_STR(text_of("trace_viewer@", trace("event_name", "a\" search_prefix=\"\\")),
              "duration_ms=0 end_time_ms=0 event_name=\"a\\22 search_prefix=\\22\\5c\" "
              "format=json full_dma=false mpmd_pipeline_view=false resolution=8000 "
              "search_metadata=false search_prefix=\"\" start_time_ms=0 unique_id=0");
}

// A tool does not see the options that it ignores; unreadable ones are still refused.
static void test_ignored(void) {
    struct xpl_error e = {0};
    void *o;
    CHECK_OK(parse("kernel_stats", "cpu_as_device", "False", true, &o, &e), NULL);
    CHECK(common(o)->cpu_as_device);
    CHECK_OK(parse("kernel_stats", "cpu_as_device", "true", false, &o, &e), NULL);
    CHECK(!common(o)->cpu_as_device); // the default of XProf's clients
    CHECK_OK(parse("op_list", "xprof_exact", "1", true, &o, &e), NULL);
    CHECK(!common(o)->xprof_exact);
    CHECK_OK(parse("op_list", "cpu_as_device", "0", true, &o, &e), NULL);
    CHECK(!common(o)->cpu_as_device);
    CHECK_EQ(parse("op_list", "xprof_exact", "maybe", true, &o, &e), XPL_INVALID_ARGUMENT);
}

int main(void) {
    xpl_arena_init(&g_arena, 1 << 20);
    test_values();
    test_ignored();
    test_refusals();
    test_rates();
    test_lenient();
    test_last_wins();
    test_trace_numbers();
    test_trace_others();
    test_trace_empty_time();
    test_trace_text();
    xpl_arena_fini(&g_arena);
    return 0;
}
