#include "analysis/tools/tool.h"

#include "base/status.h"
#include "tests/check.h"

static void test_registry(void) {
    size_t n;
    const struct xpl_tool *const tools = xpl_tools(&n);
    CHECK_EQ(n, 8);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_tool *const t = &tools[i];
        CHECK(xpl_tool_find(xpl_str_from(t->name)) == t);
        CHECK(!t->alias || xpl_tool_find(xpl_str_from(t->alias)) == t);
        CHECK(i == 0 || strcmp(tools[i - 1].name, t->name) < 0);
        CHECK((t->render == NULL) == (t->product != XPL_PRODUCT_OP_STATS));
        CHECK(t->options && t->content_type);
        for (const char *const *o = t->options; *o; o++)
            CHECK(xpl_tool_option_values(xpl_str_from(*o)));
    }
    CHECK(xpl_tool_find(XPL_STR("memory_profile"))->one_host);
    CHECK(!xpl_tool_find(XPL_STR("op_profile "))); // no prefix, no blanks
    CHECK(!xpl_tool_find(XPL_STR("")));
    CHECK(xpl_str_eq(xpl_str_from(xpl_tool_find(XPL_STR("hlo_op_profile"))->name),
                     XPL_STR("op_profile")));
    CHECK(xpl_tool_find(XPL_STR("tensorflow_stats")) ==
          xpl_tool_find(XPL_STR("framework_op_stats")));
    CHECK(xpl_tool_find(XPL_STR("input_pipeline")) ==
          xpl_tool_find(XPL_STR("input_pipeline_analyzer")));
    for (const char *const *o = xpl_tool_common_options(); *o; o++)
        CHECK(xpl_str_eq(xpl_str_from(xpl_tool_option_values(xpl_str_from(*o))),
                         XPL_STR("true|false")));
    CHECK(!xpl_tool_option_values(XPL_STR("groupby")));
}

static xpl_status_t parse(const char *tool, const char *key, const char *value, bool strict,
                          struct xpl_tool_options *ret, struct xpl_error *err) {
    const struct xpl_option o = {xpl_str_from(key), xpl_str_from(value)};
    *err = (struct xpl_error){0};
    return xpl_tool_options_parse(xpl_tool_find(xpl_str_from(tool)), &o, 1, strict, ret, err);
}

static void test_values(void) {
    struct xpl_tool_options o;
    struct xpl_error e;
    CHECK_EQ(parse("op_profile", "group_by", "category", true, &o, &e), XPL_OK);
    CHECK(o.group_by == XPL_GROUP_BY_CATEGORY && o.cpu_as_device && !o.xprof_exact && !o.recompute);
    CHECK_EQ(parse("op_profile", "group_by", "provenance", false, &o, &e), XPL_OK);
    CHECK(o.group_by == XPL_GROUP_BY_PROVENANCE && !o.cpu_as_device);
    CHECK_EQ(parse("kernel_stats", "cpu_as_device", "False", true, &o, &e), XPL_OK);
    CHECK(!o.cpu_as_device);
    CHECK_EQ(parse("memory_profile", "xprof_exact", "1", true, &o, &e), XPL_OK);
    CHECK(o.xprof_exact && o.cpu_as_device);
    CHECK_EQ(parse("memory_profile", "use_saved_result", "false", false, &o, &e), XPL_OK);
    CHECK(o.recompute);
    CHECK_EQ(parse("memory_profile", "use_saved_result", "true", true, &o, &e), XPL_OK);
    CHECK(!o.recompute);
}

static bool mentions(const struct xpl_error *e, const char *text) {
    return xpl_str_has(xpl_str_from(e->msg), xpl_str_from(text));
}

static void test_refusals(void) {
    struct xpl_tool_options o = {.recompute = true};
    struct xpl_error e;
    CHECK_EQ(parse("op_profile", "group", "category", true, &o, &e), XPL_INVALID_ARGUMENT);
    CHECK(mentions(&e, "'group'") && mentions(&e, "group_by=program|category|provenance") &&
          mentions(&e, "xprof_exact=true|false"));
    CHECK(o.recompute); // untouched
    CHECK_EQ(parse("kernel_stats", "group_by", "category", true, &o, &e), XPL_INVALID_ARGUMENT);
    CHECK(!mentions(&e, "provenance") && mentions(&e, "kernel_stats"));
    CHECK_EQ(parse("op_profile", "group_by", "Category", true, &o, &e), XPL_INVALID_ARGUMENT);
    CHECK(mentions(&e, "program|category|provenance"));
    CHECK_EQ(parse("op_profile", "cpu_as_device", "", true, &o, &e), XPL_INVALID_ARGUMENT);
    char key[4000];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = 0;
    CHECK_EQ(parse("op_profile", key, key, true, &o, &e), XPL_INVALID_ARGUMENT);
    CHECK(mentions(&e, "xprof_exact=true|false"));
    CHECK_EQ(parse("op_profile", "group_by", key, true, &o, &e), XPL_INVALID_ARGUMENT);
    CHECK(mentions(&e, "program|category|provenance"));
}

// XProf's clients: what it does not know it passes over, and our own options are not theirs.
static void test_lenient(void) {
    struct xpl_tool_options o;
    struct xpl_error e;
    CHECK_EQ(parse("op_profile", "resolution", "8000", false, &o, &e), XPL_OK);
    CHECK_EQ(parse("op_profile", "group_by", "nothing", false, &o, &e), XPL_OK);
    CHECK_EQ(o.group_by, XPL_GROUP_BY_PROGRAM);
    CHECK_EQ(parse("op_profile", "cpu_as_device", "true", false, &o, &e), XPL_OK);
    CHECK(!o.cpu_as_device);
    CHECK_EQ(parse("op_profile", "xprof_exact", "true", false, &o, &e), XPL_OK);
    CHECK(!o.xprof_exact);
}

static void test_last_wins(void) {
    const struct xpl_option twice[] = {{XPL_STR("group_by"), XPL_STR("category")},
                                       {XPL_STR("group_by"), XPL_STR("program")}};
    struct xpl_tool_options o;
    CHECK_EQ(xpl_tool_options_parse(xpl_tool_find(XPL_STR("op_profile")), twice, 2, true, &o, NULL),
             XPL_OK);
    CHECK_EQ(o.group_by, XPL_GROUP_BY_PROGRAM);
    CHECK_EQ(xpl_tool_options_parse(xpl_tool_find(XPL_STR("op_profile")), NULL, 0, true, &o, NULL),
             XPL_OK);
}

int main(void) {
    test_registry();
    test_values();
    test_refusals();
    test_lenient();
    test_last_wins();
    return 0;
}
