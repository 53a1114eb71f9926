// SPDX-License-Identifier: Apache-2.0
// The configuration of a library call, from the backend's: by name for cuBLASLt and cuDNN, for
// others the complete text on request.
#include <math.h>
#include <stdlib.h>

#include "analysis/hlo/proto/json_check.h"
#include "analysis/tools/graph_viewer/impl.h"
#include "base/cleanup.h"
#include "base/text/json_value.h"
#include "base/vec.h"

// ---- values of the configuration ----

// A member, by its name in the proto or as JSON has it: lhs_stride is lhsStride, too.
static const struct xpl_json_value *member(const struct xpl_json_value *v, const char *name) {
    char camel[64];
    size_t n = 0;
    if (!v || v->type != XPL_JSON_OBJECT) return NULL;
    const struct xpl_json_value *const found = xpl_json_value_member(v, xpl_str_from(name));
    if (found) return found;
    for (const char *p = name; *p && n + 1 < sizeof camel; p++) {
        const bool raised = *p == '_' && p[1];
        p += raised;
        camel[n++] = raised && *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    }
    return xpl_json_value_member(v, (xpl_str_t){camel, n});
}

static double number(const struct xpl_json_value *v) {
    char text[64];
    if (!v) return 0;
    if (v->type == XPL_JSON_REAL) return v->real;
    if ((v->type != XPL_JSON_INT && v->type != XPL_JSON_STRING) || v->text.len >= sizeof text)
        return 0;
    memcpy(text, v->text.ptr, v->text.len);
    text[v->text.len] = '\0';
    return strtod(text, NULL);
}

static int64_t integer(const struct xpl_json_value *v) {
    const double x = number(v);
    return fabs(x) < 9e18 ? (int64_t)x : 0;
}

static xpl_str_t word(const struct xpl_json_value *v, const char *otherwise) {
    return v && v->type == XPL_JSON_STRING && v->text.len ? v->text : xpl_str_from(otherwise);
}

// ---- the libraries ----

// Properties, each after "<br/>"; n: how many XLA counts.
struct properties {
    struct xpl_buf *b;
    unsigned n;
};

static void put_real(struct properties *p, const char *key, double v) {
    xpl_buf_printf(p->b, "<br/>%s=%g", key, v);
    p->n++;
}

static void put_word(struct properties *p, const char *key, xpl_str_t s) {
    xpl_buf_printf(p->b, "<br/>%s=", key);
    xpl_graph_put_escaped(p->b, s);
    p->n++;
}

static void put_dims(struct properties *p, const struct xpl_json_value *dims, const char *name,
                     const char *key, bool always) {
    const struct xpl_json_value *const v = member(dims, name);
    const size_t n = v && v->type == XPL_JSON_ARRAY ? v->n : 0;
    if (!n && !always) return;
    xpl_buf_printf(p->b, "<br/>%s={", key);
    for (size_t i = 0; i < n; i++)
        xpl_buf_printf(p->b, "%s%lld", i ? "," : "", (long long)integer(&v->children[i]));
    xpl_buf_putc(p->b, '}');
}

static void put_gemm(struct properties *p, const struct xpl_json_value *config) {
    const struct xpl_json_value *const g = member(config, "gemm_backend_config");
    const struct xpl_json_value *const dims = member(g, "dot_dimension_numbers");
    const struct xpl_json_value *const algorithm = member(g, "selected_algorithm");
    const double alpha = number(member(g, "alpha_real")), beta = number(member(g, "beta"));
    if (alpha != 1) put_real(p, "alpha", alpha);
    if (beta != 0 && beta != 1) put_real(p, "beta", beta);
    put_dims(p, dims, "lhs_batch_dimensions", "lhs_batch_dims", false);
    put_dims(p, dims, "lhs_contracting_dimensions", "lhs_contracting_dims", true);
    put_dims(p, dims, "rhs_batch_dimensions", "rhs_batch_dims", false);
    put_dims(p, dims, "rhs_contracting_dimensions", "rhs_contracting_dims", true);
    p->n++; // all dimensions are one property
    if (algorithm) {
        xpl_buf_printf(p->b, "<br/>algorithm=%lld", (long long)integer(algorithm));
        p->n++;
    }
    const xpl_str_t epilogue = word(member(g, "epilogue"), "DEFAULT");
    if (!xpl_str_eq(epilogue, XPL_STR("DEFAULT"))) put_word(p, "epilogue", epilogue);
}

static int64_t key_number(const struct xpl_json_value *v) {
    int64_t n = 0;
    for (size_t i = 0;
         i < v->key.len && v->key.ptr[i] >= '0' && v->key.ptr[i] <= '9' && n < INT64_MAX / 16; i++)
        n = n * 10 + (v->key.ptr[i] - '0');
    return n;
}

static int by_key(const void *pa, const void *pb) {
    const int64_t a = key_number(pa), b = key_number(pb);
    return (a > b) - (a < b);
}

static void put_convolution(struct properties *p, const struct xpl_json_value *config) {
    const struct xpl_json_value *const c = member(config, "cudnn_conv_backend_config");
    const struct xpl_json_value *const algorithm = member(c, "algorithm");
    const struct xpl_json_value *const knobs = member(algorithm, "tuning_knobs");
    const double result = number(member(c, "conv_result_scale"));
    const double side = number(member(c, "side_input_scale"));
    const xpl_str_t mode = word(member(c, "activation_mode"), "kNone");
    if (result != 1) put_real(p, "conv_result_scale", result);
    if (side != 0 && side != 1) put_real(p, "side_input_scale", side);
    xpl_buf_str(p->b, XPL_STR("<br/>activation_mode="));
    for (size_t i = 1; i < mode.len; i++)
        xpl_buf_putc(p->b, mode.ptr[i] >= 'A' && mode.ptr[i] <= 'Z' ? (char)(mode.ptr[i] + 32)
                                                                    : mode.ptr[i]);
    xpl_buf_printf(p->b, "<br/>algo=eng%lld{", (long long)integer(member(algorithm, "algo_id")));
    const size_t n = knobs && knobs->type == XPL_JSON_OBJECT ? knobs->n : 0;
    if (n > 1) xpl_sort(knobs->children, n, sizeof *knobs->children, by_key);
    for (size_t i = 0; i < n; i++)
        xpl_buf_printf(p->b, "%sk%lld=%lld", i ? "," : "",
                       (long long)key_number(&knobs->children[i]),
                       (long long)integer(&knobs->children[i]));
    xpl_buf_putc(p->b, '}');
    p->n += 2;
}

// ---- an instruction ----

static xpl_str_t target_of(const struct graph *g, uint32_t i) {
    struct xpl_hlo_message in;
    if (graph_at(g, i)->opcode != XPL_HLO_CUSTOM_CALL) return (xpl_str_t){"", 0};
    graph_read(g, i, &in);
    return xpl_hlo_str(&in, HLO_INSTR_CUSTOM_CALL_TARGET);
}

static void put_properties(struct graph *g, const struct xpl_json_value *config, bool gemm) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(g->text.max);
    struct properties p = {&b, 0};
    if (gemm)
        put_gemm(&p, config);
    else
        put_convolution(&p, config);
    if (p.n > 1) xpl_buf_str(&g->text, XPL_STR("<br/>"));
    xpl_buf_put(&g->text, b.p, b.n);
    g->text.failed |= b.failed;
}

xpl_status_t xpl_graph_put_config(struct graph *g, uint32_t i, struct xpl_error *err) {
    const xpl_str_t target = target_of(g, i);
    const bool gemm = xpl_str_eq(target, XPL_STR("__cublas$lt$matmul")) ||
                      xpl_str_eq(target, XPL_STR("__cublas$lt$matmul$f8"));
    const bool convolution = xpl_str_starts(target, XPL_STR("__cudnn$conv"));
    if (!gemm && !convolution && !g->show_config) return XPL_OK;
    g->scratch.n = 0;
    XPL_TRY(xpl_hlo_text_config(g->m, i, &g->scratch, err));
    const xpl_str_t text = {(const char *)g->scratch.p, g->scratch.n};
    // XProf's XLA ignores a configuration with fields that it does not know.
    if ((gemm || convolution) && (!text.len || xpl_hlo_json_is(text, xpl_hlo_proto_gpu_config))) {
        XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
        struct xpl_json_value v = {.type = XPL_JSON_NULL}; // other text than JSON has no properties
        xpl_arena_init(&arena, g->text.max);
        if (xpl_json_value_parse(text, &arena, &v) == XPL_JSON_OOM) XPL_RETURN_OOM(err, "graph");
        put_properties(g, &v, gemm);
        return XPL_OK;
    }
    if (!text.len || !g->show_config) return XPL_OK;
    xpl_buf_str(&g->text, XPL_STR("<br/>backend_config=\""));
    xpl_buf_str(&g->text, text);
    xpl_buf_str(&g->text, XPL_STR("\""));
    return XPL_OK;
}
