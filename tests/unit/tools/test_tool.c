// SPDX-License-Identifier: Apache-2.0
// The registry of tools.
#include "analysis/formats/format.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/tool.h"

#include "analysis/products/values.h"
#include "tests/check.h"

static void check_options(const struct xpl_tool *t) {
    CHECK(t->options_size == 0 || t->options_size >= sizeof(struct xpl_common_options));
    CHECK_EQ(xpl_tool_n_options(t), t->n_options + XPL_N_COMMON_OPTIONS);
    for (size_t i = 0; i < xpl_tool_n_options(t); i++) {
        const struct xpl_tool_option *const o = xpl_tool_option_at(t, i);
        CHECK(o->key && o->values && o->help && o->help[0]);
        CHECK(i >= t->n_options || o->offset >= sizeof(struct xpl_common_options));
        CHECK(i >= t->n_options || o->offset < t->options_size);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(xpl_tool_option_at(t, k)->key, o->key) != 0);
    }
}

static void check_row(const struct xpl_tool *t) {
    size_t n_needs = 0;
    CHECK(t->version && t->needs && t->content_type && t->render);
    while (t->needs[n_needs])
        n_needs++;
    CHECK(n_needs >= 1 && n_needs <= XPL_TOOL_MAX_NEEDS);
    for (size_t i = 0; i < n_needs; i++)
        CHECK(!t->variant || t->needs[i]->variants || t->variant(NULL, i, true) == 0);
    for (size_t i = 0; i < n_needs; i++)
        CHECK_EQ(t->needs[i]->form, xpl_tool_form(t));
    const struct xpl_format *const xspace = xpl_format_of_name(XPL_STR("h.xplane.pb"), NULL),
                                   *const bundle = xpl_format_of_name(XPL_STR("b.ireeprof"), NULL);
    const bool of_bundles = xpl_tool_form(t) == XPL_FORM_FILE;
    CHECK_EQ(strncmp(t->name, "iree_", 5) == 0, of_bundles);
    CHECK_EQ(xpl_tool_fits(t, xspace), !of_bundles);
    CHECK(!of_bundles || xpl_tool_fits(t, bundle));
    CHECK(t->facts && t->facts < 1 << XPL_N_FACTS);
    CHECK(xpl_tool_fits(t, NULL));
    CHECK(!t->asks_device || t->variant);
    CHECK_EQ(t->shown == XPL_SHOWN_NEVER || t->shown == XPL_SHOWN_UNLISTED, t->list_position == 0);
    check_options(t);
}

// What a product uses is a product of the same profiles, and comes before it in no circle.
static void test_uses(void) {
    const struct xpl_tool *const t = xpl_tool_find(XPL_STR("findings"));
    CHECK_EQ(xpl_tool_need_used(t, 0), 1); // the time breakdown uses the OpStats
    CHECK_EQ(xpl_tool_need_used(t, 1), XPL_TOOL_MAX_NEEDS);
    CHECK_EQ(xpl_tool_need_used(xpl_tool_find(XPL_STR("time_breakdown")), 0), XPL_TOOL_MAX_NEEDS);
    size_t n;
    const struct xpl_product *const *const products = xpl_products(&n);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_product *const used = products[i]->uses;
        CHECK(!used || (!used->uses && used->form == products[i]->form));
    }
}

// An id has one unit in all tables of a tool.
static void check_units(const struct xpl_tool *t) {
    for (size_t i = 0; i < XPL_TOOL_MAX_TABLES && t->columns[i]; i++)
        for (const struct xpl_column *c = t->columns[i]; c->id; c++) {
            const char *const unit = xpl_tool_unit(t, xpl_str_from(c->id));
            CHECK(c->unit ? unit && strcmp(c->unit, unit) == 0 : !unit);
            CHECK(!c->unit || strcmp(c->type, "number") == 0);
        }
}

static void test_rows(void) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    CHECK(n >= 8);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_tool *const t = tools[i];
        CHECK(!t->hidden);
        CHECK(xpl_tool_find(xpl_str_from(t->name)) == t);
        for (const char *const *a = t->aliases; a && *a; a++)
            CHECK(xpl_tool_find(xpl_str_from(*a)) == t);
        CHECK(i == 0 || strcmp(tools[i - 1]->name, t->name) < 0);
        for (size_t k = 0; k < i; k++)
            CHECK(t->list_position == 0 || tools[k]->list_position != t->list_position);
        check_row(t);
        check_units(t);
    }
    CHECK(!xpl_tool_unit(NULL, XPL_STR("total_time")));
    CHECK(!xpl_tool_find_named(XPL_STR("tensorflow_stats"))); // an alias
    CHECK(!xpl_tool_find_named(XPL_STR("nope")));
    CHECK(xpl_tool_find_named(XPL_STR("pod_viewer")) == xpl_tool_find(XPL_STR("pod_viewer")));
    CHECK(xpl_tool_op_stats.hidden && xpl_tool_worker_op_stats.hidden);
    check_row(&xpl_tool_op_stats);
    check_row(&xpl_tool_worker_op_stats);
}

static void test_find(void) {
    CHECK_EQ(xpl_tool_find(XPL_STR("memory_profile"))->hosts, XPL_HOSTS_ONE);
    CHECK(!xpl_tool_find(XPL_STR("op_profile "))); // no prefix, no blanks
    CHECK(!xpl_tool_find(XPL_STR("")));
    CHECK(!xpl_tool_find(XPL_STR("op_stats")) && !xpl_tool_find(XPL_STR("worker_op_stats")));
    CHECK_STR(xpl_tool_find(XPL_STR("hlo_op_profile"))->name, "op_profile");
    CHECK(xpl_tool_find(XPL_STR("tensorflow_stats")) ==
          xpl_tool_find(XPL_STR("framework_op_stats")));
    CHECK(xpl_tool_find(XPL_STR("input_pipeline")) ==
          xpl_tool_find(XPL_STR("input_pipeline_analyzer")));
}

static void test_unknown(void) {
    struct xpl_error e = {0};
    CHECK_STATUS(xpl_tool_unknown(XPL_STR("overview_pgae"), &e), XPL_INVALID_ARGUMENT, NULL);
    CHECK_STR(e.msg, "unknown tool \"overview_pgae\"; did you mean \"overview_page\"?");
    e = (struct xpl_error){0};
    (void)xpl_tool_unknown(XPL_STR("tensorflow_stat"), &e); // an alias
    CHECK_STR(e.msg, "unknown tool \"tensorflow_stat\"; did you mean \"tensorflow_stats\"?");
    // Whole names in XProf's order; the rest is counted.
    char more[40];
    size_t n, shown = 1;
    (void)xpl_tools(&n);
    e = (struct xpl_error){0};
    (void)xpl_tool_unknown(XPL_STR("hotspots"), &e);
    CHECK(strstr(e.msg, "unknown tool \"hotspots\"; tools: overview_page, ") == e.msg);
    CHECK(strstr(e.msg, ", kernel_stats"));
    for (const char *p = e.msg; (p = strstr(p, ", ")); p += 2)
        shown++;
    (void)snprintf(more, sizeof more, " and %zu more", n - shown);
    const char *const end = strstr(e.msg, " and ");
    CHECK(end);
    CHECK_STR(end, more);
}

static void test_op_stats_variants(void) {
    const struct xpl_common_options cpu = {.cpu_as_device = true}, none = {0};
    const struct xpl_common_options exact = {.cpu_as_device = true, .xprof_exact = true};
    for (size_t all_steps = 0; all_steps < 2; all_steps++) {
        const struct xpl_tool *const t = all_steps ? &xpl_tool_worker_op_stats : &xpl_tool_op_stats;
        const unsigned base = all_steps ? XPL_OP_STATS_ALL_STEPS : 0;
        CHECK_EQ(t->variant(&cpu, 0, false), base | XPL_OP_STATS_CPU_AS_DEVICE);
        CHECK_EQ(t->variant(&cpu, 0, true), base);
        CHECK_EQ(t->variant(&none, 0, false), base);
        CHECK_EQ(t->variant(&exact, 0, false),
                 base | XPL_OP_STATS_CPU_AS_DEVICE | XPL_OP_STATS_XPROF_EXACT);
        CHECK_EQ(t->variant(&exact, 0, true), base | XPL_OP_STATS_XPROF_EXACT);
    }
}

static void test_content_type(void) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    for (size_t i = 0; i < n; i++)
        CHECK(tools[i]->content_type_of ||
              strcmp(xpl_tool_content_type(tools[i], NULL), tools[i]->content_type) == 0);
}

int main(void) {
    test_uses();
    test_rows();
    test_find();
    test_unknown();
    test_op_stats_variants();
    test_content_type();
    return 0;
}
