// SPDX-License-Identifier: Apache-2.0
// The one thing that a cost needs of a backend's configuration, JSON of GpuBackendConfig:
// gemm_backend_config.dot_dimension_numbers.lhs_contracting_dimensions.  Scans, keeps nothing; text
// that is no JSON, as protobuf reads it, has none.
#include "analysis/hlo/cost/impl.h"

struct json {
    const char *p, *end;
};

static void skip_space(struct json *j) {
    while (j->p != j->end && strchr(" \t\r\n", *j->p) && *j->p)
        j->p++;
}

static bool take_char(struct json *j, char c) {
    skip_space(j);
    if (j->p == j->end || *j->p != c) return false;
    j->p++;
    return true;
}

// A string, without decoding escapes: names of fields and numbers have none.
static bool string(struct json *j, xpl_str_t *ret) {
    skip_space(j);
    if (j->p == j->end || (*j->p != '"' && *j->p != '\'')) return false;
    const char quote = *j->p++;
    const char *const begin = j->p;
    for (; j->p != j->end; j->p++) {
        if (*j->p == quote) {
            *ret = (xpl_str_t){begin, (size_t)(j->p++ - begin)};
            return true;
        }
        if (*j->p == '\\' && ++j->p == j->end) return false;
    }
    return false;
}

// A field's name is in quotes, or, if made of letters and "_", without quotes.
static bool field_name(struct json *j, xpl_str_t *ret) {
    if (string(j, ret)) return true;
    const char *const begin = j->p;
    while (j->p != j->end && !strchr("{}[],:\"' \t\r\n", *j->p))
        j->p++;
    *ret = (xpl_str_t){begin, (size_t)(j->p - begin)};
    return ret->len != 0;
}

// Any value, nested as deep as it likes: brackets are counted.
static bool skip_value(struct json *j) {
    size_t depth = 0;
    xpl_str_t s;
    do {
        skip_space(j);
        if (j->p == j->end) return false;
        if (*j->p == '"' || *j->p == '\'') {
            if (!string(j, &s)) return false;
            continue;
        }
        if (*j->p == '{' || *j->p == '[') depth++;
        if (*j->p == '}' || *j->p == ']') {
            if (depth == 0) return false;
            depth--;
        }
        if (depth == 0 && *j->p == ',') return false;
        const bool word = !strchr("{}[],:", *j->p);
        j->p++;
        while (word && j->p != j->end && !strchr("{}[],:\"' \t\r\n", *j->p))
            j->p++;
    } while (depth);
    return true;
}

// Whether a field has that name, or the same without its "_": lhs_stride is lhsStride, too.
static bool is_field(xpl_str_t field, xpl_str_t name) {
    size_t k = 0;
    if (xpl_str_eq(field, name)) return true;
    for (size_t i = 0; i < name.len; i++, k++) {
        const bool raised = name.ptr[i] == '_' && ++i < name.len;
        const char c = i < name.len ? name.ptr[i] : 0;
        if (k == field.len || field.ptr[k] != (raised ? (char)(c - 'a' + 'A') : c)) return false;
    }
    return k == field.len;
}

// Goes to the value of a field of the object that begins here.
static bool enter_member(struct json *j, xpl_str_t name) {
    xpl_str_t field;
    if (!take_char(j, '{')) return false;
    while (field_name(j, &field) && take_char(j, ':')) {
        if (is_field(field, name)) return true;
        if (!skip_value(j) || !take_char(j, ',')) return false;
    }
    return false;
}

// 64-bit numbers are written as strings.
static bool number(struct json *j, int64_t *ret) {
    const char quote = take_char(j, '"') ? '"' : take_char(j, '\'') ? '\'' : '\0';
    uint64_t v = 0;
    skip_space(j);
    const bool negative = take_char(j, '-');
    const char *const begin = j->p;
    for (; j->p != j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
        v = v * 10 + (uint64_t)(*j->p - '0');
    *ret = (int64_t)(negative ? 0 - v : v);
    return j->p != begin && (!quote || take_char(j, quote));
}

uint32_t xpl_cost_gemm_contracting(xpl_str_t config, int64_t *ret, uint32_t max) {
    struct json j = {config.ptr, config.ptr + config.len};
    uint32_t n = 0;
    if (!enter_member(&j, XPL_STR("gemm_backend_config")) ||
        !enter_member(&j, XPL_STR("dot_dimension_numbers")) ||
        !enter_member(&j, XPL_STR("lhs_contracting_dimensions")))
        return 0;
    if (!take_char(&j, '[')) return max && number(&j, ret); // a single number is valid, too
    while (n < max && number(&j, &ret[n])) {
        n++;
        if (!take_char(&j, ',')) break;
    }
    return n;
}
