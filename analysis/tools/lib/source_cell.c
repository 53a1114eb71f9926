// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/source_cell.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"

// The escape of a character in HTML; NULL: itself.
static const char *escape(char c) {
    switch (c) {
        case '&': return "&amp;";
        case '<': return "&lt;";
        case '>': return "&gt;";
        case '"': return "&quot;";
        case '\'': return "&#39;";
        default: return NULL;
    }
}

static size_t escaped_length(xpl_str_t s) {
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char *const e = escape(s.ptr[i]);
        n += e ? strlen(e) : 1;
    }
    return n;
}

static char *put(char *at, xpl_str_t s) {
    if (s.len) memcpy(at, s.ptr, s.len);
    return at + s.len;
}

static char *put_escaped(char *at, xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++) {
        const char *const e = escape(s.ptr[i]);
        if (e)
            at = put(at, xpl_str_from(e));
        else
            *at++ = s.ptr[i];
    }
    return at;
}

bool xpl_cell_of_source(const struct xpl_source_info *info, struct xpl_arena *arena,
                        xpl_str_t *ret) {
    const xpl_str_t open = XPL_STR("<div class='source-info-cell' title='");
    char line[32];
    *ret = (xpl_str_t){0};
    if (!info->file_name.len || info->line_number == -1) return true;
    const int n = snprintf(line, sizeof line, ":%" PRId32 "</div>", info->line_number);
    const size_t size = open.len + escaped_length(info->stack_frame) + 2 +
                        escaped_length(info->file_name) + (size_t)n;
    char *const text = xpl_arena_alloc(arena, size);
    if (!text) return false;
    char *at = put_escaped(put(text, open), info->stack_frame);
    at = put_escaped(put(at, XPL_STR("'>")), info->file_name);
    put(at, (xpl_str_t){line, (size_t)n});
    *ret = (xpl_str_t){text, size};
    return true;
}
