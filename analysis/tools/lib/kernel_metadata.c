// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/kernel_metadata.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/text/json_value.h"

// A place in the text of an instruction.
struct cursor {
    const char *p, *end;
};

static xpl_str_t rest_of(const struct cursor *c) {
    return (xpl_str_t){c->p, (size_t)(c->end - c->p)};
}

static bool skip_word(struct cursor *c, xpl_str_t word) {
    if (!xpl_str_starts(rest_of(c), word)) return false;
    c->p += word.len;
    return true;
}

// Past the closing quote of a string whose opening one was just read, or to the end.
static void skip_string(struct cursor *c) {
    while (c->p < c->end && *c->p != '"')
        c->p += *c->p == '\\' && c->end - c->p > 1 ? 2 : 1;
    if (c->p < c->end) c->p++;
}

// Whether an attribute of that name stands anywhere outside of strings; *ret: behind its '='.
static bool find_attribute(xpl_str_t text, xpl_str_t name, struct cursor *ret) {
    struct cursor c = {text.ptr, text.ptr + text.len};
    while (c.p < c.end) {
        if (*c.p == '"') {
            c.p++;
            skip_string(&c);
        } else if (*c.p == ',') {
            while (c.p < c.end && (*c.p == ',' || *c.p == ' '))
                c.p++;
            if (skip_word(&c, name) && skip_word(&c, XPL_STR("="))) {
                *ret = c;
                return true;
            }
        } else {
            c.p++;
        }
    }
    return false;
}

// Alone, the text of an instruction that refers to another computation, or to an instruction other
// than by an operand's name, has no meaning.
static bool stands_alone(xpl_str_t text) {
    static const char *const references[] = {"calls",
                                             "called_computations",
                                             "to_apply",
                                             "condition",
                                             "body",
                                             "select",
                                             "branch_computations",
                                             "true_computation",
                                             "false_computation",
                                             "scatter",
                                             "control-predecessors"};
    struct cursor c;
    for (size_t i = 0; i < sizeof references / sizeof *references; i++)
        if (find_attribute(text, xpl_str_from(references[i]), &c)) return false;
    return !xpl_str_has(text, XPL_STR(" custom-call(")) ||
           find_attribute(text, XPL_STR("custom_call_target"), &c);
}

// A quoted value with its escapes undone, as far as JSON has need of them.
static bool unquote(struct cursor *c, struct xpl_arena *arena, xpl_str_t *ret) {
    const char *const begin = c->p;
    skip_string(c);
    char *const out = xpl_arena_alloc(arena, (size_t)(c->p - begin));
    if (!out) return false;
    size_t n = 0;
    for (const char *p = begin; p + 1 < c->p; p++) {
        if (*p == '\\' && p + 2 < c->p) p++;
        out[n++] = *p == 'n' && p[-1] == '\\' && p > begin ? '\n' : *p;
    }
    *ret = (xpl_str_t){out, n};
    return true;
}

// Reads the value of one frontend attribute: a quoted text, which may be JSON, or JSON as it is.
static enum xpl_json_result read_value(struct cursor *c, struct xpl_arena *arena,
                                       struct xpl_json_value *ret) {
    xpl_str_t text, rest;
    if (!skip_word(c, XPL_STR("\""))) {
        const enum xpl_json_result st = xpl_json_value_read(rest_of(c), arena, ret, &rest);
        c->p = rest.ptr;
        return st;
    }
    if (!unquote(c, arena, &text)) return XPL_JSON_OOM;
    if (xpl_json_value_parse(text, arena, ret) == XPL_JSON_OOM) return XPL_JSON_OOM;
    return XPL_JSON_OK; // other attributes are not JSON and need not be
}

// The value of kernel_metadata among {key=value,key=value}.
static enum xpl_json_result find_metadata(struct cursor *c, struct xpl_arena *arena,
                                          struct xpl_json_value *ret) {
    if (!skip_word(c, XPL_STR("{"))) return XPL_JSON_INVALID;
    while (c->p < c->end && *c->p != '}') {
        const bool wanted = skip_word(c, XPL_STR("kernel_metadata="));
        while (!wanted && c->p < c->end && *c->p++ != '=') {
        }
        *ret = (struct xpl_json_value){0};
        const enum xpl_json_result st = read_value(c, arena, ret);
        if (st != XPL_JSON_OK || wanted) return st;
        while (c->p < c->end && (*c->p == ',' || *c->p == ' '))
            c->p++;
    }
    return XPL_JSON_INVALID;
}

static enum xpl_json_result extract(xpl_str_t text, struct xpl_arena *arena,
                                    struct xpl_json_value *ret) {
    struct cursor c;
    struct xpl_json_value metadata;
    if (!find_attribute(text, XPL_STR("frontend_attributes"), &c)) return XPL_JSON_INVALID;
    const enum xpl_json_result st = find_metadata(&c, arena, &metadata);
    if (st != XPL_JSON_OK) return st;
    const struct xpl_json_value *const found =
        xpl_json_value_member(&metadata, XPL_STR("xprof_metadata"));
    if (!found || !stands_alone(text)) return XPL_JSON_INVALID;
    if (found->type == XPL_JSON_STRING) return xpl_json_value_parse(found->text, arena, ret);
    *ret = *found;
    return XPL_JSON_OK;
}

bool xpl_instruction_kernel_metadata(xpl_str_t instruction, struct xpl_arena *arena,
                                     xpl_str_t *ret) {
    static const char mark[] = "xprof_metadata";
    struct xpl_json_value v;
    *ret = (xpl_str_t){0};
    if (!instruction.len || !memmem(instruction.ptr, instruction.len, mark, sizeof mark - 1))
        return true;
    const enum xpl_json_result st = extract(instruction, arena, &v);
    if (st != XPL_JSON_OK) return st == XPL_JSON_INVALID;
    struct xpl_buf out = xpl_buf_of(arena->limit);
    xpl_json_value_write(&v, &out);
    const bool ok =
        !out.failed && xpl_arena_str(arena, (xpl_str_t){(const char *)out.p, out.n}, ret);
    xpl_buf_fini(&out);
    return ok;
}
