// SPDX-License-Identifier: Apache-2.0
// What a device can compute with operands of a type.  An op's text has the types; the profile has
// one peak, that of 16-bit matrices (docs/findings.md).
#include "analysis/tools/findings/findings.h"

// Slowest first.
enum number_type { F64, F32, TF32, F16, F8, NUMBER_TYPES };

// The peak of each type, as a fraction of that of bf16, dense; 0: unknown.  Where devices of one
// name differ, the least.  From the makers' data sheets.
static const struct device_rates {
    const char *device; // prefix of the device type
    double of[NUMBER_TYPES];
} kDevices[] = {
    {"Nvidia GPU (Blackwell)", {4.0 / 8192, 1.0 / 32, 0.5, 1, 2}},
    {"Nvidia GPU (Hopper)", {1.0 / 16, 1.0 / 16, 0.5, 1, 2}},
    {"Nvidia GPU (Ada Lovelace)", {1.0 / 256, 0.25, 0.5, 1, 2}},
    {"Nvidia GPU (Ampere)", {1.0 / 256, 1.0 / 16, 0.5, 1, 0}},
    {"Nvidia GPU (Turing)", {1.0 / 256, 1.0 / 8, 0, 1, 0}},
    {"Nvidia GPU (Volta)", {1.0 / 16, 1.0 / 8, 0, 1, 0}},
    {"AMD GPU - gfx950", {1.0 / 32, 1.0 / 16, 1.0 / 16, 1, 2}},
    {"AMD GPU - gfx942", {1.0 / 8, 1.0 / 8, 0.5, 1, 2}},
    {"AMD GPU - gfx90a", {0.25, 0.25, 0, 1, 0}},
    {"AMD GPU - gfx908", {1.0 / 16, 0.25, 0, 0.5, 0}},
    // A TPU multiplies f32 in passes of bf16, in one unless the program wants more.
    {"TPU", {0, 1, 0, 1, 1}},
};

static const struct {
    const char *name; // in the text of an instruction, in front of '['; a prefix of it
    enum number_type type;
} kTypes[] = {
    {"f64", F64},  {"c128", F64}, {"f32", F32}, {"c64", F32},
    {"bf16", F16}, {"f16", F16},  {"f8", F8},
};

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// Whether a type with dimensions is at `at`; scalars say nothing of what an op computes with.
static bool type_at(xpl_str_t s, size_t at, enum number_type *ret) {
    size_t end = at;
    while (end < s.len && is_word(s.ptr[end]))
        end++;
    if (end + 1 >= s.len || s.ptr[end] != '[' || s.ptr[end + 1] == ']') return false;
    const xpl_str_t word = xpl_str_sub(s, at, end - at);
    for (size_t i = 0; i < sizeof kTypes / sizeof *kTypes; i++)
        if (xpl_str_starts(word, xpl_str_from(kTypes[i].name))) {
            *ret = kTypes[i].type;
            return true;
        }
    return false;
}

// The slowest type among the arrays of a text; NUMBER_TYPES: it has none.
static enum number_type slowest_in(xpl_str_t s) {
    enum number_type slowest = NUMBER_TYPES, t;
    for (size_t i = 0; i < s.len; i++)
        if ((!i || !is_word(s.ptr[i - 1])) && type_at(s, i, &t) && t < slowest) slowest = t;
    return slowest;
}

// The end of what begins with '(' at `at`.
static size_t closing(xpl_str_t s, size_t at) {
    size_t depth = 0;
    for (size_t i = at; i < s.len; i++) {
        depth += s.ptr[i] == '(';
        if (s.ptr[i] == ')' && --depth == 0) return i;
    }
    return s.len;
}

// "%name = TYPE opcode(OPERANDS), ...": the types of the operands, else that of the result.  A call
// of PyTorch, "aten::mm(OPERANDS)", has no more than its operands.
static enum number_type type_of(xpl_str_t text) {
    size_t at = xpl_str_find(text, XPL_STR(" = "), 0);
    if (at >= text.len) return xpl_str_starts(text, XPL_STR("%")) ? NUMBER_TYPES : slowest_in(text);
    at += 3;
    const size_t result = at;
    if (at < text.len && text.ptr[at] == '(') at = closing(text, at);
    const size_t space = xpl_str_find(text, XPL_STR(" "), at);
    if (space >= text.len) return NUMBER_TYPES;
    const size_t open = xpl_str_find(text, XPL_STR("("), space);
    if (open >= text.len) return NUMBER_TYPES;
    enum number_type t = slowest_in(xpl_str_sub(text, open, closing(text, open) - open));
    if (t == NUMBER_TYPES) t = slowest_in(xpl_str_sub(text, result, space - result));
    return t == F32 && xpl_str_has(text, XPL_STR("tf32")) ? TF32 : t;
}

static const struct device_rates *rates_of(const struct xpl_opstats *stats) {
    for (size_t i = 0; i < sizeof kDevices / sizeof *kDevices; i++)
        if (xpl_str_starts(stats->run_environment.device_type, xpl_str_from(kDevices[i].device)))
            return &kDevices[i];
    return NULL;
}

double xpl_finding_tf32_gain(const struct xpl_opstats *stats) {
    const struct device_rates *const r = rates_of(stats);
    return r && r->of[F32] > 0 ? r->of[TF32] / r->of[F32] : 0;
}

double xpl_finding_peak_tflops(const struct xpl_opstats *stats, xpl_str_t text) {
    const enum number_type t = type_of(text);
    const struct device_rates *const r = rates_of(stats);
    return r && t < NUMBER_TYPES ? stats->perf_env.peak_tera_flops_per_second * r->of[t] : 0;
}
