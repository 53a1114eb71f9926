// SPDX-License-Identifier: Apache-2.0
// JSON values of an answer, for comparison.
#ifndef XPL_TESTS_GOLDEN_VALUE_H_
#define XPL_TESTS_GOLDEN_VALUE_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct xpl_arena;

enum value_kind { VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_STRING, VALUE_LIST, VALUE_OBJECT };

struct value {
    enum value_kind kind;
    bool b;
    double number;
    xpl_str_t string;
    size_t n;
    const struct value *items; // of a list; of an object, sorted by key
    const xpl_str_t *keys;     // of an object
};

// NULL where the text is no JSON (nesting is limited to 200), or memory ran out.
const struct value *value_parse(struct xpl_arena *a, xpl_str_t text);
// The member of an object; NULL when absent, or when `v` is NULL or no object.
const struct value *value_get(const struct value *v, const char *key);
const struct value *value_at(const struct value *v, size_t i);
// Text of a string, "" for anything else.
xpl_str_t value_text(const struct value *v);
bool value_is(const struct value *v, enum value_kind kind);

#endif
