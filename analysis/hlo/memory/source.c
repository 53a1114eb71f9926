// SPDX-License-Identifier: Apache-2.0
// Where in the user's program a buffer comes from.
#include <stdio.h>

#include "analysis/hlo/instruction.h"
#include "analysis/hlo/memory/impl.h"
#include "base/text/parse.h"

struct place {
    xpl_str_t file;
    int32_t line, column;
};

// A frame that has no place is shown all the same.
static struct place place_of(const struct xpl_hlo_module *t, int32_t location) {
    struct place p = {.file = {"", 0}, .line = -1, .column = -1};
    if (location < 1 || (uint32_t)location > t->n_locations) return p;
    const struct hlo_location *const l = &t->locations[location - 1];
    p.line = l->line;
    p.column = l->column;
    if (l->file >= 1 && (uint32_t)l->file <= t->n_files) p.file = t->files[l->file - 1];
    return p;
}

// Room for ":line:column\n" of two 32-bit numbers.
enum { FRAME_SUFFIX = 26 };

static bool build_stack(const struct xpl_hlo_module *t, int32_t frame, struct xpl_arena *a,
                        xpl_str_t *ret) {
    size_t size = 1, len = 0;
    int32_t at = frame;
    unsigned n = 0;
    for (; n < XPL_HLO_MAX_FRAMES && at > 0 && (uint32_t)at <= t->n_frames; n++) {
        const struct place p = place_of(t, t->frames[at - 1].location);
        if (__builtin_add_overflow(size, p.file.len + FRAME_SUFFIX, &size)) return false;
        at = t->frames[at - 1].parent;
    }
    char *const text = xpl_arena_alloc(a, size);
    if (!text) return false;
    at = frame;
    for (unsigned i = 0; i < n; i++) {
        const struct place p = place_of(t, t->frames[at - 1].location);
        if (i) text[len++] = '\n';
        if (p.file.len) memcpy(text + len, p.file.ptr, p.file.len);
        len += p.file.len;
        len += (size_t)snprintf(text + len, size - len, ":%d:%d", p.line, p.column);
        at = t->frames[at - 1].parent;
    }
    *ret = (xpl_str_t){text, len};
    return true;
}

static bool innermost_has_file(const struct xpl_hlo_module *t, int32_t frame) {
    if (frame < 1 || (uint32_t)frame > t->n_frames) return false;
    return place_of(t, t->frames[frame - 1].location).file.len > 0;
}

bool xpl_hlo_buffer_source(const struct xpl_hlo_memory *m, const struct hlo_buffer *b,
                           struct xpl_arena *a, struct xpl_hlo_buffer_source *ret) {
    *ret = (struct xpl_hlo_buffer_source){.file = {"", 0}, .line = -1, .stack = {"", 0}};
    // Without a file nothing is shown: the stack, which may be long, need not be made.
    if (!b->op.source_file.len && !innermost_has_file(&m->frames, b->op.frame)) return true;
    if (b->op.frame > 0 && !build_stack(&m->frames, b->op.frame, a, &ret->stack)) return false;
    if (b->op.source_file.len) {
        ret->file = b->op.source_file;
        ret->line = b->op.source_line;
        return true;
    }
    // The innermost frame's, as its text says it: a colon in a file's name ends the name.
    const size_t eol = xpl_str_find(ret->stack, XPL_STR("\n"), 0);
    const xpl_str_t first = xpl_str_sub(ret->stack, 0, eol);
    const size_t colon = xpl_str_find(first, XPL_STR(":"), 0);
    if (colon == SIZE_MAX) return true;
    const xpl_str_t line = xpl_str_sub(first, colon + 1, SIZE_MAX);
    ret->file = xpl_str_sub(first, 0, colon);
    (void)xpl_parse_i32(xpl_str_sub(line, 0, xpl_str_find(line, XPL_STR(":"), 0)), &ret->line);
    return true;
}
