// SPDX-License-Identifier: Apache-2.0
// The registry of tools.
#include "analysis/tools/tool.h"

#include <assert.h>
#include <stdio.h>

#include "analysis/formats/format.h"
#include "analysis/tools/lib/gviz.h"
#include "base/text/near.h"

enum { MAX_SHOWN = 40 }; // bytes of a wrong name, or the tools would not fit

#define XPL_TOOL_ROW(id)            extern const struct xpl_tool xpl_tool_##id;
#define XPL_TOOL_ROW_IN(folder, id) XPL_TOOL_ROW(id)
#define XPL_HIDDEN_TOOL_ROW(id)     // tool.h declares them
#define XPL_TOOL_ROW_OF(file, id)   XPL_TOOL_ROW(id)
#include "analysis/tools/rows.h"
#undef XPL_TOOL_ROW
#undef XPL_TOOL_ROW_IN
#undef XPL_HIDDEN_TOOL_ROW
#undef XPL_TOOL_ROW_OF

static const struct xpl_tool *const kTools[] = {
#define XPL_TOOL_ROW(id)            &xpl_tool_##id,
#define XPL_TOOL_ROW_IN(folder, id) XPL_TOOL_ROW(id)
#define XPL_HIDDEN_TOOL_ROW(id)
#define XPL_TOOL_ROW_OF(file, id) XPL_TOOL_ROW(id)
#include "analysis/tools/rows.h"
#undef XPL_TOOL_ROW
#undef XPL_TOOL_ROW_IN
#undef XPL_HIDDEN_TOOL_ROW
#undef XPL_TOOL_ROW_OF
};

static_assert(sizeof kTools / sizeof *kTools <= XPL_TOOLS_MAX, "XPL_TOOLS_MAX is too small");

const struct xpl_tool *const *xpl_tools(size_t *ret_n) {
    *ret_n = sizeof kTools / sizeof *kTools;
    return kTools;
}

// The first byte tells most names apart.
static bool is_name(const char *z, xpl_str_t name) {
    return name.len && z[0] == name.ptr[0] && xpl_str_eq(name, xpl_str_from(z));
}

static bool is_called(const struct xpl_tool *t, xpl_str_t name) {
    if (is_name(t->name, name)) return true;
    for (const char *const *a = t->aliases; a && *a; a++)
        if (is_name(*a, name)) return true;
    return false;
}

const struct xpl_tool *xpl_tool_find(xpl_str_t name) {
    for (size_t i = 0; i < sizeof kTools / sizeof *kTools; i++)
        if (is_called(kTools[i], name)) return kTools[i];
    return NULL;
}

const struct xpl_tool *xpl_tool_find_named(xpl_str_t name) {
    const struct xpl_tool *const t = xpl_tool_find(name);
    return t && is_name(t->name, name) ? t : NULL;
}

bool xpl_tool_fits(const struct xpl_tool *tool, const struct xpl_format *format) {
    return !format || !(tool->facts & ~format->facts);
}

const struct xpl_tool *xpl_tool_for(const struct xpl_tool *tool, const struct xpl_format *format) {
    for (size_t i = 0; !xpl_tool_fits(tool, format) && i < sizeof kTools / sizeof *kTools; i++)
        if (kTools[i]->replaces && strcmp(kTools[i]->replaces, tool->name) == 0 &&
            xpl_tool_fits(kTools[i], format))
            return kTools[i];
    return tool;
}

const char *xpl_tool_unit(const struct xpl_tool *tool, xpl_str_t column) {
    for (size_t i = 0; tool && i < XPL_TOOL_MAX_TABLES && tool->columns[i]; i++)
        for (const struct xpl_column *c = tool->columns[i]; c->id; c++)
            if (xpl_str_eq(column, xpl_str_from(c->id))) return c->unit;
    return NULL;
}

xpl_status_t xpl_tool_refuse(const struct xpl_tool *tool, const struct xpl_format *format,
                             xpl_str_t file, struct xpl_error *err) {
    const bool summary = tool == &xpl_tool_op_stats;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%.*s: %s needs %s, which %s does not have%s%s",
                     XPL_STR_FMT(xpl_str_sub(file, 0, 100)), summary ? "summary" : tool->name,
                     xpl_fact_name(tool->facts & ~format->facts), format->label,
                     format->instead ? "; try " : "", format->instead ? format->instead : "");
}

enum xpl_form xpl_tool_form(const struct xpl_tool *tool) {
    return tool->needs[0] ? tool->needs[0]->form : XPL_FORM_XSPACE;
}

size_t xpl_tool_need_used(const struct xpl_tool *tool, size_t k) {
    for (size_t i = 0; tool->needs[k]->uses && tool->needs[i]; i++)
        if (tool->needs[i] == tool->needs[k]->uses) return i;
    return XPL_TOOL_MAX_NEEDS;
}

bool xpl_tool_takes_turns(const struct xpl_tool *tool, size_t k) {
    return tool->needs[k]->outline || (tool->in_turn >> k & 1);
}

const struct xpl_tool *xpl_tool_next_listed(const struct xpl_tool *t) {
    const unsigned from = t ? t->list_position : 0;
    const struct xpl_tool *next = NULL;
    for (size_t i = 0; i < sizeof kTools / sizeof *kTools; i++)
        if (kTools[i]->list_position > from &&
            (!next || kTools[i]->list_position < next->list_position))
            next = kTools[i];
    return next;
}

// "a, b and 5 more": names in XProf's order, whole ones as far as they fit into `size` bytes.
static void list_names(char *ret, size_t size) {
    const size_t n = sizeof kTools / sizeof *kTools;
    const size_t room = sizeof " and 99 more" - 1;
    size_t at = 0, shown = 0;
    assert(n < 100 && size > room);
    ret[0] = 0;
    for (const struct xpl_tool *t = NULL; (t = xpl_tool_next_listed(t)); shown++) {
        if (at + strlen(t->name) + 2 + room >= size) break;
        at += (size_t)snprintf(ret + at, size - at, "%s%s", at ? ", " : "", t->name);
    }
    if (shown < n) (void)snprintf(ret + at, size - at, " and %zu more", n - shown);
}

xpl_status_t xpl_tool_unknown(xpl_str_t name, struct xpl_error *err) {
    char names[150], hint[XPL_NEAR_TEXT];
    struct xpl_near near = xpl_near_begin(name);
    for (size_t i = 0; i < sizeof kTools / sizeof *kTools; i++) {
        xpl_near_add(&near, xpl_str_from(kTools[i]->name));
        for (const char *const *a = kTools[i]->aliases; a && *a; a++)
            xpl_near_add(&near, xpl_str_from(*a));
    }
    const xpl_str_t shown = xpl_str_sub(name, 0, MAX_SHOWN);
    if (near.best.len)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "unknown tool \"%.*s\"%s", XPL_STR_FMT(shown),
                         xpl_near_text(&near, hint));
    list_names(names, sizeof names);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "unknown tool \"%.*s\"; tools: %s",
                     XPL_STR_FMT(shown), names);
}

// The tool's version in the last three decimal digits, the sum of its products' in front.  The sum
// begins with 1 since keys spell versions out: answers of before are older than all others.
enum { VERSION_STEP = 1000, FIRST_SUM = 1 };

uint32_t xpl_tool_answer_version(const struct xpl_tool *tool) {
    uint32_t version = FIRST_SUM;
    for (size_t i = 0; tool->needs[i]; i++) {
        assert(tool->needs[i]->version < VERSION_STEP);
        version += tool->needs[i]->version;
    }
    assert(tool->version < VERSION_STEP);
    return version * VERSION_STEP + tool->version;
}

void xpl_tool_put_versions(const struct xpl_tool *tool, struct xpl_buf *out) {
    xpl_buf_printf(out, "%s=%u", tool->name, tool->version);
    for (size_t i = 0; tool->needs[i]; i++)
        xpl_buf_printf(out, " %s=%u", tool->needs[i]->name, tool->needs[i]->version);
}
