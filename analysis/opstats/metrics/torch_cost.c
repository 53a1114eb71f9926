// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/metrics/torch_cost.h"

#include "analysis/xplane/tf_op.h"
#include "base/text/parse.h"

enum { MAX_ARGS = 16, MAX_RANK = 8, NONE = -1 };
static const double kMost = 1e18; // operations or bytes of one run; more is damage

// ---- arguments ----

struct argument {
    xpl_str_t text;
    double size; // bytes of an element; 0: not a tensor of a known type
    unsigned rank;
    int64_t d[MAX_RANK]; // dimensions of a tensor, or numbers of a list
    bool is_list;        // of numbers
};

struct arguments {
    struct argument v[MAX_ARGS];
    int n;
};

static double size_of(xpl_str_t type) {
    static const struct {
        const char *type; // a prefix
        double bytes;
    } sizes[] = {{"c128", 16}, {"f64", 8},  {"i64", 8}, {"c64", 8}, {"f32", 4},
                 {"i32", 4},   {"bf16", 2}, {"f16", 2}, {"i16", 2}, {"f8", 1},
                 {"i8", 1},    {"u8", 1},   {"b8", 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (xpl_str_starts(type, xpl_str_from(sizes[i].type))) return sizes[i].bytes;
    return 0;
}

// "bf16[2,3]", "[1,1]" or another text.
static struct argument argument_of(xpl_str_t s) {
    struct argument a = {.text = s};
    const size_t open = xpl_str_find(s, XPL_STR("["), 0);
    if (open == SIZE_MAX || !xpl_str_ends(s, XPL_STR("]"))) return a;
    xpl_str_t rest = xpl_str_sub(s, open + 1, s.len - open - 2);
    while (rest.len) {
        const size_t comma = xpl_str_find(rest, XPL_STR(","), 0);
        int64_t v;
        if (a.rank == MAX_RANK || !xpl_parse_int(xpl_str_sub(rest, 0, comma), 0, INT32_MAX, &v))
            return a;
        a.d[a.rank++] = v;
        rest = xpl_str_sub(rest, comma == SIZE_MAX ? rest.len : comma + 1, SIZE_MAX);
    }
    a.is_list = !open;
    if (open) a.size = size_of(xpl_str_sub(s, 0, open));
    return a;
}

// The arguments of "op(A, B)"; of a text that was cut, none.
static void split(xpl_str_t list, struct arguments *ret) {
    ret->n = 0;
    if (xpl_str_ends(list, XPL_STR("..."))) return;
    for (size_t at = 0; at < list.len && ret->n < MAX_ARGS;) {
        size_t end = xpl_str_find(list, XPL_STR(", "), at);
        if (end == SIZE_MAX) end = list.len;
        ret->v[ret->n++] = argument_of(xpl_str_sub(list, at, end - at));
        at = end + 2;
    }
}

static const struct argument *tensor(const struct arguments *a, int i, unsigned rank) {
    return i >= 0 && i < a->n && a->v[i].size > 0 && a->v[i].rank >= rank ? &a->v[i] : NULL;
}

static double count(const struct argument *t) {
    double n = 1;
    for (unsigned i = 0; i < t->rank; i++)
        n *= (double)t->d[i];
    return n;
}

static double bytes(const struct argument *t) {
    return t ? count(t) * t->size : 0;
}

// ---- costs ----

struct sums {
    double flops, read, written;
};

struct row {
    const char *op;
    bool (*cost)(const struct row *, const struct arguments *, struct sums *);
    bool calls_others; // which then have the time
    // Positions of arguments: of matrices A and B, of an image and a filter, of the query, whose
    // key and value follow; and of the term that is added.
    int a, b, added;
    // Of a convolution.
    int stride, padding, dilation, transposed, output_padding, groups;
};

// Rows of A times columns of B, for each of the batch.
static bool gemm(const struct row *r, const struct arguments *args, struct sums *ret) {
    const struct argument *const a = tensor(args, r->a, 1), *const b = tensor(args, r->b, 1);
    if (!a || !b) return false;
    const bool by_rows =
        xpl_str_eq(xpl_str_from(r->op), XPL_STR("aten::linear")); // B is transposed
    const int64_t k = a->d[a->rank - 1],
                  k_of_b = b->rank == 1 || by_rows ? b->d[b->rank - 1] : b->d[b->rank - 2],
                  n = b->rank == 1 ? 1
                      : by_rows    ? b->d[b->rank - 2]
                                   : b->d[b->rank - 1];
    if (k != k_of_b || !k || (b->rank > 2 && b->rank != a->rank)) return false;
    ret->flops = 2 * count(a) * (double)n;
    ret->read = bytes(a) + bytes(b) + bytes(tensor(args, r->added, 0));
    // Of 8-bit numbers 16-bit ones are the usual result.
    ret->written = count(a) / (double)k * (double)n * (a->size < 2 ? 2 : a->size);
    return true;
}

// Number i of a list; a list of one number has it for all i.
static bool number(const struct arguments *args, int at, unsigned i, int64_t absent, int64_t *ret) {
    *ret = absent;
    if (at == NONE) return true;
    if (at >= args->n || !args->v[at].is_list || !args->v[at].rank) return false;
    const struct argument *const list = &args->v[at];
    if (list->rank > 1 && i >= list->rank) return false;
    *ret = list->d[list->rank > 1 ? i : 0];
    return true;
}

static bool is_true(const struct arguments *args, int at) {
    return at != NONE && at < args->n && xpl_str_eq(args->v[at].text, XPL_STR("True"));
}

// One dimension of a convolution's result.
static bool result_size(const struct row *r, const struct arguments *args, unsigned i, int64_t in,
                        int64_t filter, bool transposed, double *ret) {
    int64_t stride, padding, dilation, more;
    if (!number(args, r->stride, i, 1, &stride) || !number(args, r->padding, i, 0, &padding) ||
        !number(args, r->dilation, i, 1, &dilation) ||
        !number(args, transposed ? r->output_padding : NONE, i, 0, &more) || !stride)
        return false;
    const double span = (double)dilation * (double)(filter - 1);
    const double room = (double)in + 2 * (double)padding - span - 1;
    if (transposed)
        *ret = (double)(in - 1) * (double)stride - 2 * (double)padding + span + (double)more + 1;
    else
        *ret = room < 0 ? 0 : (double)((int64_t)room / stride + 1);
    return *ret > 0;
}

// Each number of the result takes a filter; of a transposed one each number of the image.
static bool convolution(const struct row *r, const struct arguments *args, struct sums *ret) {
    const struct argument *const x = tensor(args, r->a, 3), *const w = tensor(args, r->b, 3);
    if (!x || !w || x->rank != w->rank) return false;
    const bool transposed = r->transposed == 0 || is_true(args, r->transposed);
    double results = 1, images = 1, groups = 1;
    if (transposed && r->groups < args->n) {
        int64_t v;
        if (!xpl_parse_int(args->v[r->groups].text, 1, INT32_MAX, &v)) return false;
        groups = (double)v;
    }
    for (unsigned i = 0; i + 2 < x->rank; i++) {
        double n;
        if (!result_size(r, args, i, x->d[i + 2], w->d[i + 2], transposed, &n)) return false;
        results *= n;
        images *= (double)x->d[i + 2];
    }
    const double batch = (double)x->d[0];
    const double channels = transposed ? (double)w->d[1] * groups : (double)w->d[0];
    ret->flops = 2 * batch * (transposed ? images : results) * count(w);
    ret->read = bytes(x) + bytes(w) + bytes(tensor(args, r->added, 0));
    ret->written = batch * channels * results * x->size;
    return true;
}

// A gradient of the image, and one of the filter, each as much work as the convolution.
static bool convolution_backward(const struct row *r, const struct arguments *args,
                                 struct sums *ret) {
    const struct argument *const dy = tensor(args, 0, 3), *const x = tensor(args, r->a, 3),
                                 *const w = tensor(args, r->b, 3);
    enum { MASK = 10 };
    if (!dy || !x || !w || args->n <= MASK) return false;
    const xpl_str_t mask = args->v[MASK].text;
    const bool of_x = xpl_str_starts(mask, XPL_STR("[True")),
               of_w = xpl_str_starts(mask, XPL_STR("[True,True")) ||
                      xpl_str_starts(mask, XPL_STR("[False,True"));
    const struct argument *const swept = is_true(args, r->transposed) ? x : dy;
    double once = 2 * (double)swept->d[0] * count(w);
    for (unsigned i = 2; i < swept->rank; i++)
        once *= (double)swept->d[i];
    ret->flops = once * (of_x + of_w);
    ret->read = bytes(dy) + (of_x ? bytes(w) : 0) + (of_w ? bytes(x) : 0);
    ret->written = (of_x ? bytes(x) : 0) + (of_w ? bytes(w) : 0);
    return of_x || of_w;
}

struct attention {
    const struct argument *q, *k, *v;
    double scores; // numbers of the matrix of scores, of all heads
    double d, d_of_v;
};

// `b` is the position of the heads among the dimensions.
static bool attention_of(const struct row *r, const struct arguments *args, struct attention *t) {
    t->q = tensor(args, r->a, 4);
    t->k = tensor(args, r->a + 1, 4);
    t->v = tensor(args, r->a + 2, 4);
    if (!t->q || !t->k || !t->v || t->q->rank != 4 || t->k->rank != 4 || t->v->rank != 4)
        return false;
    const int sequence = r->b == 1 ? 2 : 1;
    t->scores = (double)t->q->d[0] * (double)t->q->d[r->b] * (double)t->q->d[sequence] *
                (double)t->k->d[sequence];
    t->d = (double)t->q->d[3];
    t->d_of_v = (double)t->v->d[3];
    return true;
}

static bool attention(const struct row *r, const struct arguments *args, struct sums *ret) {
    struct attention t;
    if (!attention_of(r, args, &t)) return false;
    ret->flops = 2 * t.scores * (t.d + t.d_of_v);
    ret->read = bytes(t.q) + bytes(t.k) + bytes(t.v);
    ret->written = t.d > 0 ? bytes(t.q) / t.d * t.d_of_v : 0;
    return true;
}

// The scores again, and gradients of the scores, the query, the key and the value.
static bool attention_backward(const struct row *r, const struct arguments *args,
                               struct sums *ret) {
    struct attention t;
    if (!attention_of(r, args, &t)) return false;
    const double out = t.d > 0 ? bytes(t.q) / t.d * t.d_of_v : 0;
    ret->flops = 2 * t.scores * (3 * t.d + 2 * t.d_of_v);
    ret->written = bytes(t.q) + bytes(t.k) + bytes(t.v);
    ret->read = ret->written + 2 * out; // the result and its gradient
    return true;
}

// ---- ops ----

#define GEMM(name, a_, b_, added_)                                                                 \
    { .op = "aten::" name, .cost = gemm, .a = (a_), .b = (b_), .added = (added_) }
#define CONV(name, added_, s, p, d)                                                                \
    {                                                                                              \
        .op = "aten::" name, .cost = convolution, .a = 0, .b = 1, .added = (added_),               \
        .stride = (s), .padding = (p), .dilation = (d), .transposed = NONE,                        \
        .output_padding = NONE, .groups = NONE                                                     \
    }
#define OUTER_CONV(name, t, o, g)                                                                  \
    {                                                                                              \
        .op = "aten::" name, .cost = convolution, .calls_others = true, .a = 0, .b = 1,            \
        .added = 2, .stride = 3, .padding = 4, .dilation = 5, .transposed = (t),                   \
        .output_padding = (o), .groups = (g)                                                       \
    }
#define TRANSPOSED(name, added_, p)                                                                \
    {                                                                                              \
        .op = "aten::" name, .cost = convolution, .a = 0, .b = 1, .added = (added_),               \
        .padding = (p), .output_padding = (p) + 1, .stride = (p) + 2, .dilation = (p) + 3,         \
        .transposed = 0, .groups = (p) + 4                                                         \
    }
#define ATTENTION(name, fn, q, heads)                                                              \
    { .op = name, .cost = fn, .a = (q), .b = (heads), .added = NONE }

static const struct row kRows[] = {
    GEMM("mm", 0, 1, NONE),
    GEMM("addmm", 1, 2, 0),
    GEMM("_addmm_activation", 1, 2, 0),
    GEMM("bmm", 0, 1, NONE),
    GEMM("baddbmm", 1, 2, 0),
    GEMM("_scaled_mm", 0, 1, NONE),
    GEMM("_int_mm", 0, 1, NONE),
    GEMM("mv", 0, 1, NONE),
    GEMM("addmv", 1, 2, 0),
    {.op = "aten::linear", .cost = gemm, .calls_others = true, .a = 0, .b = 1, .added = 2},
    CONV("cudnn_convolution", NONE, 3, 2, 4),
    CONV("cudnn_convolution_relu", 2, 3, 4, 5),
    CONV("miopen_convolution", 2, 4, 3, 5),
    CONV("miopen_depthwise_convolution", 2, 4, 3, 5),
    CONV("mkldnn_convolution", 2, 4, 3, 5),
    CONV("_slow_conv2d_forward", 3, 4, 5, NONE),
    CONV("_conv_depthwise2d", 3, 4, 5, 6),
    OUTER_CONV("convolution", 6, 7, 8),
    OUTER_CONV("_convolution", 6, 7, 8),
    OUTER_CONV("convolution_overrideable", 6, 7, 8),
    OUTER_CONV("conv1d", NONE, NONE, 6),
    OUTER_CONV("conv2d", NONE, NONE, 6),
    OUTER_CONV("conv3d", NONE, NONE, 6),
    TRANSPOSED("cudnn_convolution_transpose", NONE, 2),
    TRANSPOSED("miopen_convolution_transpose", 2, 3),
    {.op = "aten::convolution_backward",
     .cost = convolution_backward,
     .a = 1,
     .b = 2,
     .transposed = 7},
    ATTENTION("aten::_scaled_dot_product_flash_attention", attention, 0, 1),
    ATTENTION("aten::_scaled_dot_product_efficient_attention", attention, 0, 1),
    ATTENTION("aten::_scaled_dot_product_cudnn_attention", attention, 0, 1),
    ATTENTION("aten::_scaled_dot_product_flash_attention_for_cpu", attention, 0, 1),
    ATTENTION("aten::_scaled_dot_product_fused_attention_overrideable", attention, 0, 1),
    {.op = "aten::scaled_dot_product_attention", .cost = attention, .calls_others = true, .b = 1},
    ATTENTION("aten::_cudnn_attention_forward", attention, 0, 1),
    ATTENTION("aten::_flash_attention_forward", attention, 0, 2),
    ATTENTION("aten::_efficient_attention_forward", attention, 0, 2),
    ATTENTION("flash_attn::_flash_attn_forward", attention, 0, 2),
    ATTENTION("aten::_scaled_dot_product_flash_attention_backward", attention_backward, 1, 1),
    ATTENTION("aten::_scaled_dot_product_efficient_attention_backward", attention_backward, 1, 1),
    ATTENTION("aten::_scaled_dot_product_cudnn_attention_backward", attention_backward, 1, 1),
    ATTENTION("aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward, 1,
              1),
    ATTENTION("aten::_flash_attention_backward", attention_backward, 1, 2),
    ATTENTION("aten::_efficient_attention_backward", attention_backward, 1, 2),
    ATTENTION("flash_attn::_flash_attn_backward", attention_backward, 1, 2),
};

// CPUs run transposed convolutions in the op itself.
static bool calls_others(const struct row *r, const struct arguments *args) {
    return r->calls_others && !(xpl_str_eq(xpl_str_from(r->op), XPL_STR("aten::_convolution")) &&
                                is_true(args, r->transposed));
}

bool xpl_torch_cost(xpl_str_t call, bool nested, struct xpl_hlo_cost *ret) {
    const size_t open = xpl_str_find(call, XPL_STR("("), 0);
    *ret = (struct xpl_hlo_cost){0};
    if (open == SIZE_MAX || !xpl_str_ends(call, XPL_STR(")"))) return false;
    const xpl_str_t op = xpl_str_sub(call, 0, open);
    for (size_t i = 0; i < sizeof kRows / sizeof *kRows; i++) {
        const struct row *const r = &kRows[i];
        struct arguments args;
        struct sums s = {0};
        if (!xpl_str_eq(op, xpl_str_from(r->op))) continue;
        split(xpl_str_sub(call, open + 1, call.len - open - 2), &args);
        if (nested && calls_others(r, &args)) return false;
        if (!r->cost(r, &args, &s) || !(s.flops < kMost && s.read < kMost && s.written < kMost))
            return false;
        const bool is_8_bit = r->a < args.n && args.v[r->a].size < 2;
        ret->model_flops = (int64_t)s.flops;
        ret->device_flops = is_8_bit ? ret->model_flops / 2 : ret->model_flops;
        ret->hbm_read_bytes = (int64_t)s.read;
        ret->hbm_written_bytes = (int64_t)s.written;
        ret->bytes = ret->hbm_read_bytes + ret->hbm_written_bytes;
        return true;
    }
    return false;
}

xpl_str_t xpl_torch_call_of(xpl_str_t name, xpl_str_t provenance) {
    const struct xpl_tf_op op = xpl_tf_op_parse(provenance);
    const size_t path = xpl_tf_op_scoped_name(provenance, &op).len - op.name.len;
    const xpl_str_t call = xpl_str_sub(name, path, SIZE_MAX);
    return op.category == XPL_TF_OP_PYTORCH && xpl_str_starts(call, op.name) &&
                   xpl_str_ends(call, XPL_STR(")")) && call.len > op.name.len
               ? call
               : (xpl_str_t){"", 0};
}
