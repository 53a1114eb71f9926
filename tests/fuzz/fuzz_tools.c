// SPDX-License-Identifier: Apache-2.0
// Arbitrary OpStats bytes through every OpStats tool: no crash, and whatever comes out is JSON.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "analysis/opstats/codec/codec.h"
#include "base/cleanup.h"
#include "tests/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A checker of JSON, just strict enough: p advances past the well-formed part.
struct json {
    const uint8_t *p, *end;
};

static void require(bool ok) {
    if (!ok) abort();
}

static bool skip_char(struct json *j, char c) {
    if (j->p == j->end || *j->p != (uint8_t)c) return false;
    j->p++;
    return true;
}

static void check_string(struct json *j) {
    require(skip_char(j, '"'));
    while (!skip_char(j, '"')) {
        require(j->p < j->end && *j->p >= 0x20);
        if (skip_char(j, '\\')) require(j->p < j->end);
        // A lead byte is followed by as many continuation bytes as it says.
        const uint8_t c = *j->p++;
        require(c < 0x80 || (c >= 0xc2 && c < 0xf5));
        const int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        for (int i = 0; i < more; i++, j->p++)
            require(j->p < j->end && (*j->p & 0xc0) == 0x80);
    }
}

static void check_scalar(struct json *j) {
    const uint8_t *const begin = j->p;
    while (j->p < j->end && *j->p != ',' && *j->p != ']' && *j->p != '}')
        j->p++;
    require(j->p > begin);
}

// Depth is that of the tools' answers, which the input's own depth bounds.
static void check_value(struct json *j) {
    while (skip_char(j, ' ')) {
    }
    require(j->p < j->end);
    if (*j->p == '"') {
        check_string(j);
    } else if (*j->p == '{' || *j->p == '[') {
        const char close = *j->p++ == '{' ? '}' : ']';
        if (skip_char(j, close)) return;
        do {
            if (close == '}') {
                check_string(j);
                require(skip_char(j, ':'));
            }
            check_value(j);
        } while (skip_char(j, ','));
        require(skip_char(j, close));
    } else {
        check_scalar(j);
    }
}

static void render(const struct xpl_tool *tool, const struct xpl_opstats *s,
                   const char *const *options) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(64 << 20);
    struct xpl_error err = {0};
    if (render_op_stats(tool, s, options, 64 << 20, &out, &err) == XPL_OK) {
        struct json j = {out.p, out.p + out.n};
        check_value(&j);
        require(j.p == j.end);
    } else {
        require(err.code == XPL_RESOURCE_EXHAUSTED || err.code == XPL_FAILED_PRECONDITION);
    }
}

// Once with each value of each of the tool's own options that has a few.
static void render_each_choice(const struct xpl_tool *tool, const struct xpl_opstats *s) {
    render(tool, s, NULL);
    for (size_t i = 0; i < tool->n_options; i++) {
        const struct xpl_tool_option *const o = &tool->options[i];
        if (o->type != XPL_OPTION_CHOICE && o->type != XPL_OPTION_BOOL) continue;
        char values[128];
        if (strlen(o->values) >= sizeof values) abort();
        strcpy(values, o->values);
        for (char *rest = values, *v; (v = strsep(&rest, "|"));)
            render(tool, s, (const char *const[]){o->key, v, NULL});
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(64 << 20);
    struct xpl_opstats *s;
    struct xpl_error err = {0};
    if (xpl_opstats_decode((xpl_bytes_t){data, size}, &arena, &s, &err) == XPL_OK) {
        size_t n;
        const struct xpl_tool *const *const tools = xpl_tools(&n);
        for (size_t i = 0; i < n; i++)
            if (tool_shows_op_stats(tools[i])) render_each_choice(tools[i], s);
    }
    return 0;
}
