#include "analysis/tools/tool.h"

#include <stdio.h>

static const char kJson[] = "application/json";
static const char *const kNoOptions[] = {NULL};
static const char *const kOpProfileOptions[] = {"group_by", NULL};
static const char *const kCommonOptions[] = {"cpu_as_device", "use_saved_result", "xprof_exact",
                                             NULL};

// By name.
static const struct xpl_tool kTools[] = {
    {.name = "framework_op_stats",
     .alias = "tensorflow_stats",
     .content_type = kJson,
     .product = XPL_PRODUCT_OP_STATS,
     .options = kNoOptions,
     .render = xpl_tool_framework_op_stats},
    {.name = "input_pipeline_analyzer",
     .alias = "input_pipeline",
     .content_type = kJson,
     .product = XPL_PRODUCT_OP_STATS,
     .options = kNoOptions,
     .render = xpl_tool_input_pipeline},
    {.name = "kernel_stats",
     .content_type = kJson,
     .product = XPL_PRODUCT_OP_STATS,
     .options = kNoOptions,
     .render = xpl_tool_kernel_stats},
    {.name = "memory_profile",
     .content_type = kJson,
     .product = XPL_PRODUCT_MEMORY_PROFILE,
     .one_host = true,
     .options = kNoOptions},
    {.name = "op_profile",
     .alias = "hlo_op_profile",
     .content_type = kJson,
     .product = XPL_PRODUCT_OP_STATS,
     .options = kOpProfileOptions,
     .render = xpl_tool_op_profile},
    {.name = "overview_page",
     .content_type = kJson,
     .product = XPL_PRODUCT_OP_STATS,
     .options = kNoOptions,
     .render = xpl_tool_overview_page},
    {.name = "trace_viewer",
     .content_type = kJson,
     .product = XPL_PRODUCT_TRACE_VIEWER,
     .one_host = true,
     .options = kNoOptions},
    {.name = "trace_viewer@",
     .content_type = kJson,
     .product = XPL_PRODUCT_TRACE,
     .options = xpl_trace_option_keys},
};

const struct xpl_tool *xpl_tools(size_t *ret_n) {
    *ret_n = sizeof kTools / sizeof *kTools;
    return kTools;
}

const struct xpl_tool *xpl_tool_find(xpl_str_t name) {
    for (size_t i = 0; i < sizeof kTools / sizeof *kTools; i++) {
        const struct xpl_tool *const t = &kTools[i];
        if (xpl_str_eq(name, xpl_str_from(t->name))) return t;
        if (t->alias && xpl_str_eq(name, xpl_str_from(t->alias))) return t;
    }
    return NULL;
}

const char *const *xpl_tool_common_options(void) {
    return kCommonOptions;
}

static bool is_one_of(xpl_str_t key, const char *const *keys) {
    for (; *keys; keys++)
        if (xpl_str_eq(key, xpl_str_from(*keys))) return true;
    return false;
}

const char *xpl_tool_option_values(xpl_str_t key) {
    if (xpl_str_eq(key, XPL_STR("group_by"))) return "program|category|provenance";
    return is_one_of(key, kCommonOptions) ? "true|false" : xpl_trace_option_values(key);
}

// Python's spelling of a bool is welcome too.
static bool parse_bool(xpl_str_t v, bool *ret) {
    static const char *const yes[] = {"true", "True", "1", NULL};
    static const char *const no[] = {"false", "False", "0", NULL};
    if (!is_one_of(v, yes) && !is_one_of(v, no)) return false;
    *ret = is_one_of(v, yes);
    return true;
}

static bool parse_group_by(xpl_str_t v, struct xpl_tool_options *ret) {
    if (xpl_str_eq(v, XPL_STR("program")))
        ret->group_by = XPL_GROUP_BY_PROGRAM;
    else if (xpl_str_eq(v, XPL_STR("category")))
        ret->group_by = XPL_GROUP_BY_CATEGORY;
    else if (xpl_str_eq(v, XPL_STR("provenance")))
        ret->group_by = XPL_GROUP_BY_PROVENANCE;
    else
        return false;
    return true;
}

// False when the value is none of the valid ones; *ret is then untouched.
static bool set(const struct xpl_option *o, struct xpl_tool_options *ret) {
    bool use_saved_result, valid;
    if (xpl_str_eq(o->key, XPL_STR("group_by"))) return parse_group_by(o->value, ret);
    if (xpl_trace_option_set(&ret->trace, o->key, o->value, &valid)) return valid;
    if (xpl_str_eq(o->key, XPL_STR("cpu_as_device")))
        return parse_bool(o->value, &ret->cpu_as_device);
    if (xpl_str_eq(o->key, XPL_STR("xprof_exact"))) return parse_bool(o->value, &ret->xprof_exact);
    if (!parse_bool(o->value, &use_saved_result)) return false;
    ret->recompute = !use_saved_result;
    return true;
}

static void list_options(char *text, size_t size, const char *const *keys) {
    for (size_t len = strlen(text); *keys && len + 1 < size; keys++) {
        (void)snprintf(text + len, size - len, "%s%s=%s", len ? ", " : "", *keys,
                       xpl_tool_option_values(xpl_str_from(*keys)));
        len = strlen(text);
    }
}

static xpl_status_t refuse_key(const struct xpl_tool *tool, xpl_str_t key, struct xpl_error *err) {
    char valid[200] = "";
    list_options(valid, sizeof valid, tool->options);
    list_options(valid, sizeof valid, kCommonOptions);
    const xpl_str_t shown = xpl_str_sub(key, 0, 32);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s has no option '%.*s'; it takes %s", tool->name,
                     XPL_STR_FMT(shown), valid);
}

xpl_status_t xpl_tool_options_parse(const struct xpl_tool *tool, const struct xpl_option *options,
                                    size_t n, bool strict, struct xpl_tool_options *ret,
                                    struct xpl_error *err) {
    struct xpl_tool_options parsed = {.group_by = XPL_GROUP_BY_PROGRAM, .cpu_as_device = strict};
    xpl_trace_options_init(&parsed.trace);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_option *const o = &options[i];
        const bool known = is_one_of(o->key, tool->options) || is_one_of(o->key, kCommonOptions);
        if (!known && strict) return refuse_key(tool, o->key, err);
        const bool ours = xpl_str_eq(o->key, XPL_STR("cpu_as_device")) ||
                          xpl_str_eq(o->key, XPL_STR("xprof_exact"));
        if (!known || (ours && !strict)) continue;
        const xpl_str_t value = xpl_str_sub(o->value, 0, 32);
        if (!set(o, &parsed) && strict)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "option %.*s cannot be '%.*s'; use %s",
                             XPL_STR_FMT(o->key), XPL_STR_FMT(value),
                             xpl_tool_option_values(o->key));
    }
    *ret = parsed;
    return XPL_OK;
}
