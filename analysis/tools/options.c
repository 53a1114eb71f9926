// SPDX-License-Identifier: Apache-2.0
// Options of tools, by their tables: defaults, parsing, and the texts that tell answers apart.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/text/near.h"
#include "base/text/parse.h"
#include "base/text/utf8.h"

const struct xpl_tool_option xpl_common_option_rows[XPL_N_COMMON_OPTIONS] = {
    {
        .key = "cpu_as_device",
        .type = XPL_OPTION_BOOL,
        .shapes = XPL_SHAPES_PRODUCT,
        .offset = offsetof(struct xpl_common_options, cpu_as_device),
        .values = "true|false",
        .preset = "true",
        .ours = true,
        .lenient_preset = "false",
        .help = "count ops of the CPU as device ops if no host of the session has a device",
    },
    {
        .key = "use_saved_result",
        .type = XPL_OPTION_BOOL,
        .shapes = XPL_SHAPES_NOTHING,
        .offset = offsetof(struct xpl_common_options, use_saved_result),
        .values = "true|false",
        .preset = "true",
        .help = "false: compute the answer anew, without stored results",
    },
    {
        .key = "xprof_exact",
        .type = XPL_OPTION_BOOL,
        .shapes = XPL_SHAPES_PRODUCT,
        .offset = offsetof(struct xpl_common_options, xprof_exact),
        .values = "true|false",
        .preset = "false",
        .ours = true,
        .help = "XProf's answer even where it is wrong; implies cpu_as_device=false",
    },
};

size_t xpl_tool_n_options(const struct xpl_tool *tool) {
    return tool->n_options + XPL_N_COMMON_OPTIONS;
}

const struct xpl_tool_option *xpl_tool_option_at(const struct xpl_tool *tool, size_t i) {
    return i < tool->n_options ? &tool->options[i] : &xpl_common_option_rows[i - tool->n_options];
}

static bool is_ignored(const struct xpl_tool *tool, size_t i) {
    static const unsigned ignored[XPL_N_COMMON_OPTIONS] = {XPL_IGNORES_CPU_AS_DEVICE, 0,
                                                           XPL_IGNORES_XPROF_EXACT};
    return i >= tool->n_options && tool->ignores & ignored[i - tool->n_options];
}

bool xpl_tool_option_shapes(const struct xpl_tool *tool, size_t i) {
    return xpl_tool_option_at(tool, i)->shapes != XPL_SHAPES_NOTHING && !is_ignored(tool, i);
}

// ---- values ----

// Position of `v` among the names "a|b|c", or -1.
static int choice_of(const char *names, xpl_str_t v) {
    int i = 0;
    for (const char *p = names;; i++) {
        const size_t len = strcspn(p, "|");
        if (xpl_str_eq(v, (xpl_str_t){p, len})) return i;
        if (!p[len]) return -1;
        p += len + 1;
    }
}

// The name at a position of "a|b|c".
static xpl_str_t choice_name(const char *names, int position) {
    const char *p = names;
    for (int i = 0; i < position && p[strcspn(p, "|")]; i++)
        p += strcspn(p, "|") + 1;
    return (xpl_str_t){p, strcspn(p, "|")};
}

// Python's spelling of a bool is welcome too.
static bool parse_bool(xpl_str_t v, bool *ret) {
    const int yes = choice_of("true|True|1", v), no = choice_of("false|False|0", v);
    if (yes < 0 && no < 0) return false;
    *ret = yes >= 0;
    return true;
}

// A decimal number, blanks around it allowed; no NaN.  Empty: false.
static bool parse_double(xpl_str_t v, double *ret) {
    char text[64];
    v = xpl_str_strip(v);
    if (v.len == 0 || v.len >= sizeof text) return false;
    memcpy(text, v.ptr, v.len);
    text[v.len] = '\0';
    for (size_t i = 0; i < v.len; i++)
        if (!text[i] || !strchr("0123456789+-.eE", text[i])) return false;
    char *end;
    const double d = strtod(text, &end);
    if (end != text + v.len || !isfinite(d)) return false;
    *ret = d;
    return true;
}

// A whole number, or the rest of another one.
static bool parse_count(xpl_str_t v, uint64_t *ret) {
    int64_t n;
    double d;
    if (xpl_parse_int(v, 0, INT64_MAX, &n)) {
        *ret = (uint64_t)n;
        return true;
    }
    if (!parse_double(v, &d)) return false;
    *ret = d >= 1 && d < 18446744073709551616.0 ? (uint64_t)d : 0;
    return true;
}

static bool parse_rate(xpl_str_t v, double *ret) {
    double d;
    if (!parse_double(v, &d) || d < 0) return false;
    *ret = d;
    return true;
}

static bool parse_choice(const char *names, xpl_str_t v, int *ret) {
    const int i = choice_of(names, v);
    if (i >= 0) *ret = i;
    return i >= 0;
}

// Sets the option's member of `options`; false, and nothing set, for a value that is not valid.
static bool set(const struct xpl_tool_option *o, xpl_str_t value, void *options) {
    void *const member = (char *)options + o->offset;
    switch (o->type) {
        case XPL_OPTION_BOOL: return parse_bool(value, member);
        case XPL_OPTION_CHOICE: return parse_choice(o->values, value, member);
        case XPL_OPTION_COUNT: return parse_count(value, member);
        // Nothing given is as good as no option.
        case XPL_OPTION_MILLISECONDS: return value.len == 0 || parse_double(value, member);
        case XPL_OPTION_RATE: return value.len == 0 || parse_rate(value, member);
        case XPL_OPTION_TEXT: *(xpl_str_t *)member = value; return true;
    }
    return false;
}

// ---- parsing ----

static const struct xpl_tool_option *find_option(const struct xpl_tool *tool, xpl_str_t key) {
    for (size_t i = 0; i < xpl_tool_n_options(tool); i++) {
        const struct xpl_tool_option *const o = xpl_tool_option_at(tool, i);
        if (!o->internal && xpl_str_eq(key, xpl_str_from(o->key))) return o;
    }
    return NULL;
}

static xpl_status_t refuse_key(const struct xpl_tool *tool, xpl_str_t key, struct xpl_error *err) {
    char valid[200] = "";
    for (size_t i = 0, len = 0; i < xpl_tool_n_options(tool) && len + 1 < sizeof valid; i++) {
        const struct xpl_tool_option *const o = xpl_tool_option_at(tool, i);
        if (o->internal) continue;
        (void)snprintf(valid + len, sizeof valid - len, "%s%s=%s", len ? ", " : "", o->key,
                       o->values);
        len = strlen(valid);
    }
    struct xpl_near near = xpl_near_begin(key);
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < xpl_tool_n_options(tool); i++)
        if (!xpl_tool_option_at(tool, i)->internal)
            xpl_near_add(&near, xpl_str_from(xpl_tool_option_at(tool, i)->key));
    const xpl_str_t shown = xpl_str_sub(key, 0, 24);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s has no option '%.*s'%s%s it takes %s",
                     tool->name, XPL_STR_FMT(shown), xpl_near_text(&near, hint),
                     near.best.len ? "" : ";", valid);
}

// What the text of `values` does not say.
static const char *bounds(const struct xpl_tool_option *o) {
    return o->type == XPL_OPTION_COUNT          ? ", a whole number of at least 0"
           : o->type == XPL_OPTION_MILLISECONDS ? ", such as 1.5"
           : o->type == XPL_OPTION_RATE         ? ", a number of at least 0, such as 48.5"
                                                : "";
}

static xpl_status_t refuse_value(const struct xpl_tool_option *o, xpl_str_t value,
                                 struct xpl_error *err) {
    const xpl_str_t shown = xpl_str_sub(value, 0, 32);
    struct xpl_near near = xpl_near_begin(value);
    char hint[XPL_NEAR_TEXT];
    if (o->type == XPL_OPTION_CHOICE || o->type == XPL_OPTION_BOOL)
        xpl_near_add_list(&near, o->values);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "option %s cannot be '%.*s'%s%s %s%s", o->key,
                     XPL_STR_FMT(shown), xpl_near_text(&near, hint),
                     near.best.len ? " it takes" : "; it takes", o->values, bounds(o));
}

// By path, too, where nothing else looks at it: names of profiles are UTF-8, so it fits none.
static xpl_status_t check_text(const struct xpl_tool_option *o, xpl_str_t value,
                               struct xpl_error *err) {
    const size_t n = xpl_utf8_valid_length(value);
    if (n == value.len) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "option %s: byte %zu is not UTF-8", o->key, n + 1);
}

static void set_default(const struct xpl_tool_option *o, bool strict, void *options) {
    const char *const preset = !strict && o->lenient_preset ? o->lenient_preset : o->preset;
    if (preset) (void)set(o, xpl_str_from(preset), options);
}

static void set_defaults(const struct xpl_tool *tool, bool strict, void *options) {
    for (size_t i = 0; i < xpl_tool_n_options(tool); i++)
        set_default(xpl_tool_option_at(tool, i), strict, options);
}

// Whatever was given of an option that the tool ignores, it sees the default.
static void reset_ignored(const struct xpl_tool *tool, bool strict, void *options) {
    for (size_t i = 0; i < xpl_tool_n_options(tool); i++)
        if (is_ignored(tool, i)) set_default(xpl_tool_option_at(tool, i), strict, options);
}

// XProf counts no host as a device.
static void apply_exact(void *options) {
    struct xpl_common_options *const common = options;
    if (common->xprof_exact) common->cpu_as_device = false;
}

static xpl_status_t copy_texts(const struct xpl_tool *tool, struct xpl_arena *arena, void *options,
                               struct xpl_error *err) {
    for (size_t i = 0; i < tool->n_options; i++) {
        if (tool->options[i].type != XPL_OPTION_TEXT) continue;
        xpl_str_t *const text = (xpl_str_t *)(void *)((char *)options + tool->options[i].offset);
        if (!xpl_arena_str(arena, *text, text)) XPL_RETURN_OOM(err, "options");
    }
    return XPL_OK;
}

xpl_status_t xpl_tool_options_parse(const struct xpl_tool *tool, const struct xpl_option *options,
                                    size_t n, bool strict, struct xpl_arena *arena, void **ret,
                                    struct xpl_error *err) {
    const size_t common = sizeof(struct xpl_common_options);
    void *const parsed =
        xpl_arena_zalloc(arena, tool->options_size > common ? tool->options_size : common);
    if (!parsed) XPL_RETURN_OOM(err, "options");
    set_defaults(tool, strict, parsed);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_tool_option *const o = find_option(tool, options[i].key);
        if (!o && strict) return refuse_key(tool, options[i].key, err);
        if (strict) XPL_TRY(check_text(o, options[i].value, err));
        if (!o || (o->ours && !strict)) continue;
        if (!set(o, options[i].value, parsed) && strict)
            return refuse_value(o, options[i].value, err);
    }
    reset_ignored(tool, strict, parsed);
    apply_exact(parsed);
    XPL_TRY(copy_texts(tool, arena, parsed, err));
    *ret = parsed;
    return XPL_OK;
}

// ---- texts ----

static void put_quoted(struct xpl_buf *out, xpl_str_t s) {
    xpl_buf_putc(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            xpl_buf_printf(out, "\\%02x", c);
        else
            xpl_buf_putc(out, (char)c);
    }
    xpl_buf_putc(out, '"');
}

static void put_value(const struct xpl_tool_option *o, const void *member, struct xpl_buf *out) {
    switch (o->type) {
        case XPL_OPTION_BOOL:
            xpl_buf_str(out, *(const bool *)member ? XPL_STR("true") : XPL_STR("false"));
            break;
        case XPL_OPTION_CHOICE:
            xpl_buf_str(out, choice_name(o->values, *(const int *)member));
            break;
        case XPL_OPTION_COUNT:
            xpl_buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)member);
            break;
        case XPL_OPTION_MILLISECONDS:
        case XPL_OPTION_RATE: xpl_buf_printf(out, "%.17g", *(const double *)member); break;
        case XPL_OPTION_TEXT: put_quoted(out, *(const xpl_str_t *)member); break;
    }
}

void xpl_tool_options_text(const struct xpl_tool *tool, const void *options, struct xpl_buf *out) {
    const char *before = "";
    for (size_t i = 0; i < xpl_tool_n_options(tool); i++) {
        const struct xpl_tool_option *const o = xpl_tool_option_at(tool, i);
        if (!xpl_tool_option_shapes(tool, i)) continue;
        xpl_buf_printf(out, "%s%s=", before, o->key);
        put_value(o, (const char *)options + o->offset, out);
        before = " ";
    }
}
