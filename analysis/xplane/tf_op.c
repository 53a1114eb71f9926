// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/tf_op.h"

#include <stdint.h>

#include "base/arena.h"
#include "base/text/utf8.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}
static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// As absl::SimpleAtoi<int64_t> decides: blanks around, a sign, decimal digits, no overflow.
static bool is_int64(xpl_str_t s) {
    while (s.len && is_blank(s.ptr[0]))
        s = xpl_str_sub(s, 1, SIZE_MAX);
    while (s.len && is_blank(s.ptr[s.len - 1]))
        s.len--;
    const bool negative = s.len && s.ptr[0] == '-';
    if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+')) s = xpl_str_sub(s, 1, SIZE_MAX);
    if (s.len == 0) return false;
    const uint64_t most = negative ? UINT64_C(1) << 63 : INT64_MAX;
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s.ptr[i])) return false;
        const uint64_t d = (uint64_t)(s.ptr[i] - '0');
        if (v > (most - d) / 10) return false;
        v = v * 10 + d;
    }
    return true;
}

// The part after the last `c`; all of `s` when there is none.
static xpl_str_t after_last(xpl_str_t s, char c) {
    const char *const hit = s.len ? memrchr(s.ptr, c, s.len) : NULL;
    return hit ? xpl_str_sub(s, (size_t)(hit - s.ptr) + 1, SIZE_MAX) : s;
}

// Type from a full name: its last part without a numeric suffix ("model/MatMul_1": "MatMul").
static xpl_str_t derive_type(xpl_str_t full_name) {
    const xpl_str_t op = after_last(full_name, '/');
    const xpl_str_t suffix = after_last(op, '_');
    if (suffix.len == op.len || !is_int64(suffix)) return op;
    return xpl_str_sub(op, 0, op.len - suffix.len - 1);
}

// The roles of a character: at the beginning of a name or a type, and after it.
enum {
    NAME_BEGINS = 1 << 0,
    NAME = 1 << 1,
    TYPE_BEGINS = 1 << 2,
    TYPE = 1 << 3,
    JAX_BEGINS = 1 << 4,
    JAX = 1 << 5,
};
#define FOUR(c, v) [(c)] = (v), [(c) + 1] = (v), [(c) + 2] = (v), [(c) + 3] = (v)
#define TEN(c, v)  FOUR(c, v), FOUR((c) + 4, v), [(c) + 8] = (v), [(c) + 9] = (v)
#define LETTERS(c, v)                                                                              \
    TEN(c, v), TEN((c) + 10, v), FOUR((c) + 20, v), [(c) + 24] = (v), [(c) + 25] = (v)
static const uint8_t kCharacters[256] = {
    TEN('0', NAME_BEGINS | NAME | TYPE | JAX),
    LETTERS('A', NAME_BEGINS | NAME | TYPE_BEGINS | TYPE),
    LETTERS('a', NAME_BEGINS | NAME | TYPE | JAX_BEGINS | JAX),
    ['_'] = NAME | TYPE_BEGINS | TYPE | JAX_BEGINS | JAX,
    ['.'] = NAME_BEGINS | NAME,
    ['/'] = NAME,
    ['>'] = NAME,
    ['-'] = NAME,
};

// Length of a run that begins with a character of one kind and continues with those of another.
// (All names of the metadata come here, some several times, and most are long.)
static inline size_t run_length(xpl_str_t s, unsigned begins, unsigned rest) {
    const uint8_t *p = (const uint8_t *)s.ptr, *const end = s.len ? p + s.len : p;
    if (p == end || !(kCharacters[*p] & begins)) return 0;
    do
        p++;
    while (p != end && kCharacters[*p] & rest);
    return s.len - (size_t)(end - p);
}

bool xpl_is_tf_op_name(xpl_str_t s) {
    return s.len && run_length(s, NAME_BEGINS, NAME) == s.len;
}

bool xpl_is_tf_op_type(xpl_str_t s) {
    return s.len && run_length(s, TYPE_BEGINS, TYPE) == s.len;
}

// Length of a character for RE2's dot: UTF-8, and surrogates encoded in the same way.
static size_t dot_length(xpl_str_t s) {
    const size_t n = xpl_utf8_next(s);
    if (n || s.len < 3 || (uint8_t)s.ptr[0] != 0xed) return n;
    const uint8_t second = (uint8_t)s.ptr[1], third = (uint8_t)s.ptr[2];
    return second >= 0xa0 && second < 0xc0 && third >= 0x80 && third < 0xc0 ? 3 : 0;
}

// [a-z_][a-z0-9_]*(\[.*\])? with RE2's dot: any character but a newline.
static bool is_jax_op_type(xpl_str_t s) {
    size_t i = run_length(s, JAX_BEGINS, JAX);
    if (i == 0 || i == s.len) return i > 0;
    if (s.ptr[i] != '[' || s.len - i < 2 || s.ptr[s.len - 1] != ']') return false;
    const size_t end = s.len - 1;
    for (i++; i < end;) {
        const size_t n = s.ptr[i] == '\n' ? 0 : dot_length(xpl_str_sub(s, i, end - i));
        if (n == 0) return false;
        i += n;
    }
    return true;
}

bool xpl_is_jax_op_name_and_type(xpl_str_t name, xpl_str_t type) {
    return name.len > 0 && is_jax_op_type(type) && xpl_str_has(after_last(name, '/'), type);
}

static bool starts_nocase(xpl_str_t s, xpl_str_t prefix) {
    if (s.len < prefix.len) return false;
    for (size_t i = 0; i < prefix.len; i++) {
        const char c = s.ptr[i], lower = is_upper(c) ? (char)(c + 32) : c;
        if (lower != prefix.ptr[i]) return false;
    }
    return true;
}

static struct xpl_tf_op parse_memcpy(xpl_str_t name) {
    static const struct {
        xpl_str_t prefix, type;
        enum xpl_tf_op_category category;
    } kinds[] = {
        {{"memcpyhtod", 10}, {"MemcpyHToD", 10}, XPL_TF_OP_MEMCPY_HTOD},
        {{"memcpydtoh", 10}, {"MemcpyDToH", 10}, XPL_TF_OP_MEMCPY_DTOH},
        {{"memcpydtod", 10}, {"MemcpyDToD", 10}, XPL_TF_OP_MEMCPY_DTOD},
        {{"memcpyhtoh", 10}, {"MemcpyHToH", 10}, XPL_TF_OP_MEMCPY_HTOH},
    };
    if (name.len >= 10 && (name.ptr[0] == 'm' || name.ptr[0] == 'M'))
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (starts_nocase(name, kinds[i].prefix))
                return (struct xpl_tf_op){kinds[i].category, name, kinds[i].type};
    return (struct xpl_tf_op){XPL_TF_OP_UNKNOWN, name, {"", 0}};
}

// What no other framework writes: neither TensorFlow's types nor JAX's have a dot.
#define TORCH ":torch."

static struct xpl_tf_op parse_torch(xpl_str_t full_name) {
    size_t at = SIZE_MAX;
    for (size_t next = 0; (next = xpl_str_find(full_name, XPL_STR(TORCH), next)) != SIZE_MAX;
         next++)
        at = next;
    const xpl_str_t type =
        xpl_str_sub(full_name, at == SIZE_MAX ? at : at + sizeof TORCH - 1, SIZE_MAX);
    if (type.len == 0) return (struct xpl_tf_op){XPL_TF_OP_UNKNOWN, full_name, {"", 0}};
    return (struct xpl_tf_op){XPL_TF_OP_PYTORCH, after_last(xpl_str_sub(full_name, 0, at), '/'),
                              type};
}

xpl_str_t xpl_tf_op_scoped_name(xpl_str_t full_name, const struct xpl_tf_op *op) {
    if (op->category != XPL_TF_OP_PYTORCH) return op->name;
    return xpl_str_sub(full_name, 0, (size_t)(op->name.ptr + op->name.len - full_name.ptr));
}

// PyTorch's annotations of collectives ("nccl:all_reduce") look like names of JAX.
static bool is_torch_annotation(xpl_str_t name) {
    return xpl_str_eq(name, XPL_STR("nccl")) || xpl_str_eq(name, XPL_STR("gloo")) ||
           xpl_str_eq(name, XPL_STR("mpi")) || xpl_str_eq(name, XPL_STR("ucc"));
}

struct xpl_tf_op xpl_tf_op_parse(xpl_str_t full_name) {
    const char *const colon = full_name.len ? memchr(full_name.ptr, ':', full_name.len) : NULL;
    if (!colon) return parse_memcpy(full_name);
    const xpl_str_t name = xpl_str_sub(full_name, 0, (size_t)(colon - full_name.ptr));
    const xpl_str_t type = xpl_str_sub(full_name, name.len + 1, SIZE_MAX);
    if (xpl_str_eq(name, XPL_STR("Iterator")))
        return (struct xpl_tf_op){XPL_TF_OP_TF_DATA, full_name, XPL_STR("Dataset")};
    if (is_torch_annotation(name)) return parse_torch(full_name);
    if (xpl_is_tf_op_type(type) && xpl_is_tf_op_name(name))
        return (struct xpl_tf_op){XPL_TF_OP_TENSORFLOW, name, type};
    const xpl_str_t derived = type.len ? type : derive_type(name);
    if (is_jax_op_type(derived)) {
        const char *const bracket = memchr(derived.ptr, '[', derived.len);
        const size_t len = bracket ? (size_t)(bracket - derived.ptr) : derived.len;
        return (struct xpl_tf_op){XPL_TF_OP_JAX, name, xpl_str_sub(derived, 0, len)};
    }
    if (type.len == 0) return (struct xpl_tf_op){XPL_TF_OP_TENSORFLOW, name, derived};
    return parse_torch(full_name);
}

bool xpl_tf_op_next_scope(xpl_str_t name, size_t *pos, xpl_str_t *ret) {
    const size_t slash = *pos <= name.len ? xpl_str_find(name, XPL_STR("/"), *pos) : SIZE_MAX;
    if (slash == SIZE_MAX) return false;
    *ret = xpl_str_sub(name, *pos, slash - *pos);
    *pos = slash + 1;
    return true;
}

// The part after the last "::" (IteratorName).
static xpl_str_t iterator_name(xpl_str_t full_name) {
    // Separators are found from the left and do not overlap: "a:::b" is "a" and ":b".
    xpl_str_t rest = full_name;
    for (size_t hit; (hit = xpl_str_find(rest, XPL_STR("::"), 0)) != SIZE_MAX;)
        rest = xpl_str_sub(rest, hit + 2, SIZE_MAX);
    return rest;
}

bool xpl_tf_op_event_name(struct xpl_arena *a, const struct xpl_tf_op *op, xpl_str_t *ret) {
    if (op->category == XPL_TF_OP_TF_DATA) {
        static const xpl_str_t prefix = {"Iterator::", 10};
        const xpl_str_t last = iterator_name(op->name);
        char *const p = xpl_arena_alloc(a, prefix.len + last.len);
        if (!p) return false;
        memcpy(p, prefix.ptr, prefix.len);
        if (last.len) memcpy(p + prefix.len, last.ptr, last.len);
        *ret = (xpl_str_t){p, prefix.len + last.len};
        return true;
    }
    *ret = op->category == XPL_TF_OP_UNKNOWN ? op->name : op->type;
    if (op->category == XPL_TF_OP_UNKNOWN)
        while (ret->len && is_blank(ret->ptr[ret->len - 1]))
            ret->len--;
    return true;
}
