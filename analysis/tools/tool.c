// SPDX-License-Identifier: Apache-2.0
// The registry of tools.
#include "analysis/tools/tool.h"

#include <assert.h>
#include <stdio.h>

#define XPL_TOOL_ROW(id)        extern const struct xpl_tool xpl_tool_##id;
#define XPL_HIDDEN_TOOL_ROW(id) // tool.h declares them
#include "analysis/tools/rows.h"
#undef XPL_TOOL_ROW
#undef XPL_HIDDEN_TOOL_ROW

static const struct xpl_tool *const kTools[] = {
#define XPL_TOOL_ROW(id) &xpl_tool_##id,
#define XPL_HIDDEN_TOOL_ROW(id)
#include "analysis/tools/rows.h"
#undef XPL_TOOL_ROW
#undef XPL_HIDDEN_TOOL_ROW
};

const struct xpl_tool *const *xpl_tools(size_t *ret_n) {
    *ret_n = sizeof kTools / sizeof *kTools;
    return kTools;
}

static bool is_called(const struct xpl_tool *t, xpl_str_t name) {
    if (xpl_str_eq(name, xpl_str_from(t->name))) return true;
    for (const char *const *a = t->aliases; a && *a; a++)
        if (xpl_str_eq(name, xpl_str_from(*a))) return true;
    return false;
}

const struct xpl_tool *xpl_tool_find(xpl_str_t name) {
    for (size_t i = 0; i < sizeof kTools / sizeof *kTools; i++)
        if (is_called(kTools[i], name)) return kTools[i];
    return NULL;
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

void xpl_tool_names(char *ret, size_t size) {
    size_t at = 0;
    if (size) ret[0] = 0;
    for (size_t i = 0; i < sizeof kTools / sizeof *kTools && at + 1 < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%s", i ? ", " : "", kTools[i]->name);
}

// The tool's version in the last three decimal digits, its products' in front: 1002 is version 2 of
// a tool of version 1 of its product.
enum { VERSION_STEP = 1000 };

uint32_t xpl_tool_answer_version(const struct xpl_tool *tool) {
    uint32_t version = 0;
    for (size_t i = 0; tool->needs[i]; i++) {
        assert(tool->needs[i]->version < VERSION_STEP);
        version += tool->needs[i]->version;
    }
    assert(tool->version < VERSION_STEP);
    return version * VERSION_STEP + tool->version;
}
