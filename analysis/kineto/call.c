// SPDX-License-Identifier: Apache-2.0
// What an op was called with, as one text: "aten::mm(bf16[128,256], bf16[256,512])".  Types are
// abbreviated as torch.fx prints them.
#include <string.h>

#include "analysis/kineto/impl.h"

enum {
    MAX_CALL = 480, // bytes
    MAX_ARGS = 24,  // of one op
};

// ---- elements of an array ----

struct items {
    xpl_str_t json;
    size_t at;
};

static struct items items_of(xpl_str_t json) {
    return (struct items){json, json.len && json.ptr[0] == '['};
}

// The next element, of strings without the quotes; false at the end.
static bool next_item(struct items *it, xpl_str_t *ret) {
    const xpl_str_t s = it->json;
    size_t i = it->at, depth = 0;
    bool in_string = false;
    while (i < s.len && (s.ptr[i] == ' ' || s.ptr[i] == ','))
        i++;
    const size_t from = i;
    for (; i < s.len; i++) {
        const char c = s.ptr[i];
        if (c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (in_string)
            continue;
        else if (c == '[')
            depth++;
        else if (c == ']' && depth)
            depth--;
        else if (!depth && (c == ']' || c == ','))
            break;
    }
    if (i > s.len) i = s.len;
    it->at = i;
    *ret = xpl_str_sub(s, from, i - from);
    if (ret->len >= 2 && ret->ptr[0] == '"' && ret->ptr[ret->len - 1] == '"')
        *ret = xpl_str_sub(*ret, 1, ret->len - 2);
    return i > from;
}

// ---- the text ----

struct call {
    char text[MAX_CALL];
    size_t n;
    bool cut;
};

static void put(struct call *c, xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == ' ' && i && s.ptr[i - 1] == ',') continue; // "[2, 3]"
        if (c->n == sizeof c->text) {
            c->cut = true;
            return;
        }
        // A slash would be another scope.
        c->text[c->n++] = s.ptr[i] == '/' ? '|' : s.ptr[i];
    }
}

// "f32" of "float"; empty: not the type of a tensor's elements.
static xpl_str_t short_type(xpl_str_t type, char room[32]) {
    static const char *const types[][2] = {
        {"float", "f32"},
        {"double", "f64"},
        {"c10::BFloat16", "bf16"},
        {"c10::Half", "f16"},
        {"long int", "i64"},
        {"long", "i64"},
        {"int", "i32"},
        {"short int", "i16"},
        {"short", "i16"},
        {"signed char", "i8"},
        {"unsigned char", "u8"},
        {"bool", "b8"},
        {"c10::complex<float>", "c64"},
        {"c10::complex<double>", "c128"},
    };
    const xpl_str_t f8 = XPL_STR("c10::Float8_");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (xpl_str_eq(type, xpl_str_from(types[i][0]))) return xpl_str_from(types[i][1]);
    if (!xpl_str_starts(type, f8)) return (xpl_str_t){"", 0};
    const xpl_str_t rest = xpl_str_sub(type, f8.len, 24);
    memcpy(room, "f8", 2);
    memcpy(room + 2, rest.ptr, rest.len);
    return (xpl_str_t){room, rest.len + 2};
}

// A tensor "bf16[2,3]", the value of another argument where it matters, else its type.
static void put_argument(struct call *c, xpl_str_t dims, xpl_str_t type, xpl_str_t value) {
    char room[32];
    const xpl_str_t element = short_type(type, room);
    const bool has_dims = dims.len && !xpl_str_eq(dims, XPL_STR("[]"));
    if (value.len && !element.len) {
        put(c, value);
        return;
    }
    put(c, element.len ? element : type.len || has_dims ? type : XPL_STR("-"));
    if (element.len || has_dims) put(c, dims);
}

// What these cost depends on values of their arguments: strides, dimensions, which gradients are
// asked for.
static bool values_matter(xpl_str_t op) {
    static const char *const begins[] = {
        "aten::sum",      "aten::mean",         "aten::prod",         "aten::amax",
        "aten::amin",     "aten::max",          "aten::min",          "aten::argm",
        "aten::any",      "aten::all",          "aten::var",          "aten::std",
        "aten::_softmax", "aten::_log_softmax", "aten::index_select", "aten::linalg_vector_norm",
        "aten::avg_pool"};
    return xpl_str_has(op, XPL_STR("conv")) || xpl_str_has(op, XPL_STR("norm_backward")) ||
           xpl_str_starts_any(op, begins, sizeof begins / sizeof *begins);
}

struct inputs {
    uint32_t refs[3]; // where they are numbered texts
    xpl_str_t dims, types, values;
};

static void put_call(struct call *c, xpl_str_t op, const struct inputs *in) {
    struct items dims = items_of(in->dims), types = items_of(in->types),
                 values = items_of(in->values);
    put(c, xpl_str_sub(op, 0, MAX_CALL / 2));
    put(c, XPL_STR("("));
    for (unsigned i = 0; i < MAX_ARGS && !c->cut; i++) {
        xpl_str_t d = {"", 0}, type = {"", 0}, value = {"", 0};
        const bool has_dims = next_item(&dims, &d), has_type = next_item(&types, &type);
        if (values_matter(op)) (void)next_item(&values, &value);
        if (!has_dims && !has_type) break;
        if (i) put(c, XPL_STR(","));
        if (i) put(c, XPL_STR(" "));
        put_argument(c, d, type, value);
    }
    if (c->cut)
        memcpy(c->text + sizeof c->text - 4, "...)", 4);
    else
        put(c, XPL_STR(")"));
}

// ---- the inputs of an op ----

static const enum text keys[] = {TEXT_INPUT_DIMS, TEXT_INPUT_TYPE, TEXT_CONCRETE_INPUTS};

static struct inputs inputs_of(const struct trace *t, const struct event *e) {
    struct inputs ret = {0};
    xpl_str_t *const texts[] = {&ret.dims, &ret.types, &ret.values};
    struct stats stats = xpl_kineto_stats(t, e);
    struct stat s;
    while (xpl_kineto_next_stat(&stats, &s)) {
        size_t i = 0;
        while (i < sizeof keys / sizeof *keys && s.name != keys[i])
            i++;
        if (i == sizeof keys / sizeof *keys || (s.kind != STAT_REF && s.kind != STAT_STR)) continue;
        ret.refs[i] = s.kind == STAT_REF ? (uint32_t)s.number : 0;
        *texts[i] = ret.refs[i] ? xpl_kineto_text_of(t, ret.refs[i]) : s.text;
    }
    return ret;
}

bool xpl_kineto_call(struct trace *t, const struct event *e, uint32_t *ret) {
    const struct inputs in = inputs_of(t, e);
    const xpl_str_t op = xpl_intern_get(t->names, (xpl_strid_t){e->name});
    const uint32_t values = values_matter(op) ? in.refs[2] : 0;
    const bool numbered = in.refs[0] && in.refs[1] && (values || !values_matter(op));
    bool is_new;
    *ret = 0;
    if (!xpl_str_starts(in.dims, XPL_STR("["))) return true;
    // Texts without numbers are long: they are read once for each event.
    uint64_t *const known =
        numbered ? xpl_map_put(&t->links, &t->calls, (uint64_t)e->name << 32 | in.refs[0],
                               (uint64_t)in.refs[1] << 32 | values, &is_new)
                 : xpl_map_put(&t->links, &t->calls, UINT64_MAX, (uintptr_t)e, &is_new);
    if (!known) return false;
    if (is_new) {
        struct call c = {.n = 0};
        put_call(&c, op, &in);
        if (!xpl_kineto_text_within(t, &t->calls_left, (xpl_str_t){c.text, c.n}, ret)) return false;
        *known = *ret;
    }
    *ret = (uint32_t)*known;
    t->lost.calls += !*ret;
    return true;
}
