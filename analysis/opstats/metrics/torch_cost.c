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
    const int64_t least = open ? 0 : -MAX_RANK; // the last dimension is -1
    while (rest.len) {
        const size_t comma = xpl_str_find(rest, XPL_STR(","), 0);
        int64_t v;
        if (a.rank == MAX_RANK || !xpl_parse_int(xpl_str_sub(rest, 0, comma), least, INT32_MAX, &v))
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

enum {
    FIRST = 1,
    SECOND = 2,
    THIRD = 4,
    FOURTH = 8,
    FIFTH = 16,
    SIXTH = 32,
    SEVENTH = 64,
    EIGHTH = 128
};

// Results of an op that moves memory.
enum result {
    AS_WRITTEN,   // those that `writes` names
    BROADCAST,    // of the inputs together
    FLOATS,       // the same; of integers the default type, which the trace does not say
    TRUTH,        // the same, of booleans
    WITH_BIAS,    // AS_WRITTEN, and a bias as large as the last one, the weight
    WITH_MASK,    // AS_WRITTEN, and as many booleans
    WITH_INDICES, // of a reduction along a dimension
};

struct row {
    const char *op;
    bool (*cost)(const struct row *, const struct arguments *, struct sums *);
    bool calls_others; // which then have the time
    // Positions of arguments: of matrices A and B, of an image and a filter, of the query, whose
    // key and value follow, of a table and its indices; and of the term that is added.
    int a, b, added;
    // Of a convolution, or of a pooling, whose `b` says whether a last, smaller window counts.
    int stride, padding, dilation, transposed, output_padding, groups;
    // Of an op that moves memory: sets of arguments, and the operations for each number of the
    // result.
    unsigned reads, writes;
    enum result result;
    double flops;
    int mask;          // position of "[True,False]": which results the caller wants; 0: all
    bool is_condition; // the first argument, whose type does not count
    // Of a reduction, or of a table: the position of the dimensions.
    int dims;
    int n_of_all;   // arguments of a reduction to one number; none says the dimensions
    int type;       // position of the result's type; 0: it has that of the input
    double element; // size of a number of the result; 0: that of the input
    bool widens;    // integers become those of 64 bits
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

// ---- ops that move memory ----

static bool is_float(const struct argument *t) {
    return !xpl_str_starts(t->text, XPL_STR("i")) && !xpl_str_starts(t->text, XPL_STR("u")) &&
           !xpl_str_starts(t->text, XPL_STR("b8"));
}

// Inputs that are broadcast to each other, and their common type: one without dimensions counts
// only if no other is of its kind.
struct together {
    double d[MAX_RANK]; // the last one first
    unsigned rank;
    double size;
    bool has_dims, is_float;
};

static bool broadcast(struct together *s, const struct argument *t) {
    for (unsigned i = 0; i < t->rank; i++) {
        const double d = (double)t->d[t->rank - 1 - i];
        if (i == s->rank) s->d[s->rank++] = 1;
        if (d != 1 && s->d[i] != 1 && d != s->d[i]) return false;
        if (d != 1) s->d[i] = d;
    }
    return true;
}

// False: a number beside integers, which makes them the default type.
static bool promote(struct together *s, const struct argument *t) {
    const bool floats = is_float(t), has_dims = t->rank > 0;
    if (s->size > 0 && floats != s->is_float) {
        const bool lower_has_dims = floats ? s->has_dims : has_dims,
                   higher_has_dims = floats ? has_dims : s->has_dims;
        if (lower_has_dims && !higher_has_dims) return false;
        if (!floats) return true;
        s->size = 0;
    }
    if (s->size == 0 || has_dims > s->has_dims || (has_dims == s->has_dims && t->size > s->size))
        s->size = t->size;
    s->has_dims = s->has_dims || has_dims;
    s->is_float = floats;
    return true;
}

static double numbers(const struct together *s) {
    double n = 1;
    for (unsigned i = 0; i < s->rank; i++)
        n *= s->d[i];
    return n;
}

// Whether the caller wants result i, by "[True,False]".  False: the text does not say so.
static bool is_wanted(const struct row *r, const struct arguments *args, unsigned i, bool *ret) {
    *ret = true;
    if (!r->mask) return true;
    if (r->mask >= args->n || !xpl_str_starts(args->v[r->mask].text, XPL_STR("["))) return false;
    xpl_str_t rest = xpl_str_sub(args->v[r->mask].text, 1, SIZE_MAX);
    for (; i; i--) {
        const size_t comma = xpl_str_find(rest, XPL_STR(","), 0);
        if (comma == SIZE_MAX) return false;
        rest = xpl_str_sub(rest, comma + 1, SIZE_MAX);
    }
    *ret = xpl_str_starts(rest, XPL_STR("True"));
    return *ret || xpl_str_starts(rest, XPL_STR("False"));
}

static bool write_named(const struct row *r, const struct arguments *args, struct sums *ret) {
    const struct argument *const first = tensor(args, __builtin_ctz(r->writes), 0), *t = first;
    unsigned n = 0;
    bool wanted;
    if (!first) return false;
    for (unsigned i = 0; r->writes >> i; i++) {
        if (!(r->writes >> i & 1)) continue;
        t = tensor(args, (int)i, 0);
        if (!is_wanted(r, args, n++, &wanted)) return false;
        if (wanted) ret->written += bytes(t);
    }
    if (r->result == WITH_BIAS && !is_wanted(r, args, n, &wanted)) return false;
    if (r->result == WITH_BIAS && wanted) ret->written += bytes(t);
    if (r->result == WITH_MASK) ret->written += count(first);
    ret->flops = r->flops * count(first);
    return true;
}

// Arguments that are absent, such as the bias of a norm, cost nothing; the first one is there.
static bool moves(const struct row *r, const struct arguments *args, struct sums *ret) {
    struct together all = {.size = 0};
    if (r->reads && !tensor(args, __builtin_ctz(r->reads), 0)) return false;
    for (unsigned i = 0; r->reads >> i; i++) {
        const struct argument *const t = r->reads >> i & 1 ? tensor(args, (int)i, 0) : NULL;
        ret->read += bytes(t);
        if (!t || r->writes) continue;
        if (!broadcast(&all, t) || (!(r->is_condition && !i) && !promote(&all, t))) return false;
    }
    if (r->writes) return write_named(r, args, ret);
    if (r->result == FLOATS && !all.is_float) return false;
    ret->flops = r->flops * numbers(&all);
    ret->written = numbers(&all) * (r->result == TRUTH ? 1 : all.size);
    return all.size > 0;
}

// A softmax makes float32 of shorter types on request, and its gradient the type of the
// input.
static bool softmax(const struct row *r, const struct arguments *args, struct sums *ret) {
    if (!moves(r, args, ret) || args->n <= r->type) return false;
    const xpl_str_t text = args->v[r->type].text;
    int64_t type;
    enum { HALF = 5, FLOAT = 6, DOUBLE = 7, BFLOAT16 = 15 }; // as torch numbers them
    if (xpl_str_eq(text, XPL_STR("False"))) return true;
    if (!xpl_str_eq(text, XPL_STR("True")) && !xpl_parse_int(text, HALF, BFLOAT16, &type))
        return false;
    if (xpl_str_eq(text, XPL_STR("True"))) type = FLOAT;
    if (type > DOUBLE && type != BFLOAT16) return false;
    ret->written = count(&args->v[0]) * (type == DOUBLE ? 8 : type == FLOAT ? 4 : 2);
    return true;
}

// How many numbers of the input become one of the result.  False: unknown.
static bool reduced(const struct row *r, const struct arguments *args, const struct argument *t,
                    double *ret) {
    *ret = count(t);
    if (args->n <= r->n_of_all || r->dims >= args->n) return args->n <= r->n_of_all;
    struct argument list = args->v[r->dims];
    if (xpl_str_eq(list.text, XPL_STR("-")) || (list.is_list && !list.rank)) return true;
    if (!list.is_list) {
        list.rank = 1;
        if (!xpl_parse_int(list.text, -MAX_RANK, MAX_RANK, &list.d[0])) return false;
    }
    *ret = 1;
    for (unsigned i = 0; i < list.rank; i++) {
        const int64_t at = list.d[i] < 0 ? list.d[i] + t->rank : list.d[i];
        if (at < 0 || at >= t->rank) return false;
        *ret *= (double)t->d[at];
    }
    return true;
}

static bool reduction(const struct row *r, const struct arguments *args, struct sums *ret) {
    const struct argument *const t = tensor(args, 0, 0);
    const bool is_of_all = args->n <= r->n_of_all;
    const int type = is_of_all ? r->n_of_all - 1 : r->type;
    double many;
    if (!t || !reduced(r, args, t, &many) || !(many > 0)) return false;
    if (r->type && (type >= args->n || !xpl_str_eq(args->v[type].text, XPL_STR("-")))) return false;
    const double results = count(t) / many;
    ret->read = bytes(t);
    ret->written = results * (r->element > 0              ? r->element
                              : r->widens && !is_float(t) ? 8
                                                          : t->size);
    if (r->result == WITH_INDICES && !is_of_all) ret->written += results * 8;
    return true;
}

// The largest number of each window of the last two dimensions and its place, or the mean of each.
static bool pooling(const struct row *r, const struct arguments *args, struct sums *ret) {
    const struct argument *const x = tensor(args, 0, 3);
    struct row given = *r;
    if (!x || args->n <= r->stride || is_true(args, r->b)) return false;
    if (args->v[r->stride].is_list && !args->v[r->stride].rank) given.stride = 1; // as the window
    double results = count(x);
    for (unsigned i = 0; i < 2; i++) {
        const int64_t in = x->d[x->rank - 2 + i];
        int64_t window;
        double n;
        if (!in || !number(args, 1, i, 1, &window) ||
            !result_size(&given, args, i, in, window, false, &n))
            return false;
        results *= n / (double)in;
    }
    ret->read = bytes(x);
    ret->written = results * (x->size + (r->result == WITH_INDICES ? 8 : 0));
    return true;
}

// A number for each index, from a tensor or a number, into another tensor; or added to it.
static bool selection(const struct row *r, const struct arguments *args, struct sums *ret) {
    const struct argument *const x = tensor(args, r->a, 0), *const at = tensor(args, r->b, 0);
    if (!x || !at) return false;
    ret->written = count(at) * x->size;
    ret->flops = r->flops * count(at);
    ret->read = bytes(at) + (tensor(args, r->added, 0) ? ret->written : 0) +
                (r->flops > 0 ? ret->written : 0);
    return true;
}

// Rows of a table, each read once for each index.
static bool lookup(const struct row *r, const struct arguments *args, struct sums *ret) {
    const struct argument *const table = tensor(args, r->a, 1), *const at = tensor(args, r->b, 0);
    int64_t dim = 0;
    if (!table || !at) return false;
    if (r->dims && !xpl_parse_int(args->v[r->dims].text, -MAX_RANK, MAX_RANK, &dim)) return false;
    if (dim < 0) dim += table->rank;
    if (dim < 0 || dim >= table->rank || !table->d[dim]) return false;
    ret->written = bytes(table) / (double)table->d[dim] * count(at);
    ret->read = ret->written + bytes(at);
    return true;
}

// inductor's pointwise kernels and reductions, whose tensors each count once, unless an op in the
// name takes a part of one.
static bool is_fused(xpl_str_t op) {
    static const char *const kinds[] = {"triton_poi_fused_", "triton_red_fused_",
                                        "triton_per_fused_"};
    static const char *const parts[] = {"embedding", "index", "gather",  "scatter",
                                        "select",    "slice", "split",   "unbind",
                                        "narrow",    "chunk", "strided", "nll_loss"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (xpl_str_has(op, xpl_str_from(parts[i]))) return false;
    return xpl_str_starts_any(op, kinds, sizeof kinds / sizeof *kinds);
}

static bool fused(const struct row *r, const struct arguments *args, struct sums *ret) {
    (void)r;
    for (int i = 0; i < args->n; i++)
        ret->read += bytes(tensor(args, i, 0));
    return ret->read > 0 && args->n < MAX_ARGS; // there may be more of them
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

// Ops whose results have the size of their first n arguments together.
#define MAP(name, n)                                                                               \
    { .op = "aten::" name, .cost = moves, .reads = (1u << (n)) - 1, .result = BROADCAST }
#define FLOAT_MAP(name)                                                                            \
    { .op = "aten::" name, .cost = moves, .reads = FIRST, .result = FLOATS }
#define ARITHMETIC(name, how)                                                                      \
    { .op = "aten::" name, .cost = moves, .reads = FIRST | SECOND, .result = (how), .flops = 1 }
#define COMPARISON(name)                                                                           \
    { .op = "aten::" name, .cost = moves, .reads = FIRST | SECOND, .result = TRUTH }
#define MOVES(name, from, to)                                                                      \
    { .op = name, .cost = moves, .reads = (from), .writes = (to) }
#define REDUCTION(name, at, all, ...)                                                              \
    { .op = "aten::" name, .cost = reduction, .dims = (at), .n_of_all = (all), __VA_ARGS__ }
#define SOFTMAX(name, from, type_)                                                                 \
    { .op = "aten::" name, .cost = softmax, .reads = (from), .writes = FIRST, .type = (type_) }

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
    ARITHMETIC("add", BROADCAST),
    ARITHMETIC("sub", BROADCAST),
    ARITHMETIC("rsub", BROADCAST),
    ARITHMETIC("mul", BROADCAST),
    ARITHMETIC("div", FLOATS),
    MAP("neg", 1),
    MAP("abs", 1),
    MAP("clamp", 1),
    MAP("clamp_min", 1),
    MAP("clamp_max", 1),
    MAP("hardtanh", 1),
    MAP("leaky_relu", 1),
    MAP("tril", 1),
    MAP("triu", 1),
    MAP("flip", 1),
    MAP("roll", 1),
    MAP("bitwise_not", 1),
    MAP("pow", 2),
    MAP("maximum", 2),
    MAP("minimum", 2),
    MAP("remainder", 2),
    MAP("bitwise_and", 2),
    MAP("bitwise_or", 2),
    MAP("threshold_backward", 2),
    MAP("gelu_backward", 2),
    MAP("silu_backward", 2),
    MAP("tanh_backward", 2),
    MAP("sigmoid_backward", 2),
    MAP("native_dropout_backward", 2),
    MAP("masked_fill_", 2),
    MAP("addcmul", 3),
    MAP("addcdiv", 3),
    MAP("lerp", 3),
    {.op = "aten::where",
     .cost = moves,
     .reads = FIRST | SECOND | THIRD,
     .result = BROADCAST,
     .is_condition = true},
    FLOAT_MAP("gelu"),
    FLOAT_MAP("silu"),
    FLOAT_MAP("sigmoid"),
    FLOAT_MAP("tanh"),
    FLOAT_MAP("exp"),
    FLOAT_MAP("log"),
    FLOAT_MAP("log1p"),
    FLOAT_MAP("sqrt"),
    FLOAT_MAP("rsqrt"),
    FLOAT_MAP("reciprocal"),
    FLOAT_MAP("erf"),
    FLOAT_MAP("sin"),
    FLOAT_MAP("cos"),
    FLOAT_MAP("hardswish"),
    FLOAT_MAP("softplus"),
    COMPARISON("eq"),
    COMPARISON("ne"),
    COMPARISON("lt"),
    COMPARISON("le"),
    COMPARISON("gt"),
    COMPARISON("ge"),
    COMPARISON("logical_and"),
    COMPARISON("logical_or"),
    COMPARISON("logical_not"),
    MOVES("aten::copy_", SECOND, FIRST),
    MOVES("aten::fill_", 0, FIRST),
    {.op = "aten::zero_", .cost = moves, .writes = FIRST, .calls_others = true},
    MOVES("aten::uniform_", 0, FIRST),
    MOVES("aten::normal_", 0, FIRST),
    MOVES("aten::random_", 0, FIRST),
    {.op = "aten::native_dropout",
     .cost = moves,
     .reads = FIRST,
     .writes = FIRST,
     .result = WITH_MASK,
     .calls_others = true},
    SOFTMAX("_softmax", FIRST, 2),
    SOFTMAX("_log_softmax", FIRST, 2),
    SOFTMAX("_softmax_backward_data", FIRST | SECOND, 3),
    SOFTMAX("_log_softmax_backward_data", FIRST | SECOND, 3),
    MOVES("aten::native_layer_norm", FIRST | THIRD | FOURTH, FIRST),
    MOVES("aten::native_group_norm", FIRST | SECOND | THIRD, FIRST),
    MOVES("aten::native_batch_norm", FIRST | SECOND | THIRD | FOURTH | FIFTH, FIRST),
    MOVES("aten::cudnn_batch_norm", FIRST | SECOND | THIRD | FOURTH | FIFTH, FIRST),
    MOVES("aten::miopen_batch_norm", FIRST | SECOND | THIRD | FOURTH | FIFTH, FIRST),
    MOVES("aten::_fused_rms_norm", FIRST | THIRD, FIRST),
    MOVES("_C::rms_norm", SECOND | THIRD, FIRST),
    MOVES("_C::fused_add_rms_norm", FIRST | SECOND | THIRD, FIRST | SECOND),
    MOVES("_C::silu_and_mul", SECOND, FIRST),
    {.op = "aten::native_layer_norm_backward",
     .cost = moves,
     .reads = FIRST | SECOND | FOURTH | FIFTH | SIXTH,
     .writes = SECOND | SIXTH | SEVENTH,
     .mask = 7},
    {.op = "aten::native_group_norm_backward",
     .cost = moves,
     .reads = FIRST | SECOND | THIRD | FOURTH | FIFTH,
     .writes = SECOND | FIFTH,
     .result = WITH_BIAS,
     .mask = 9},
    {.op = "aten::native_batch_norm_backward",
     .cost = moves,
     .reads = FIRST | SECOND | THIRD | SIXTH | SEVENTH,
     .writes = SECOND | THIRD,
     .result = WITH_BIAS,
     .mask = 9},
    {.op = "aten::cudnn_batch_norm_backward",
     .cost = moves,
     .reads = FIRST | SECOND | THIRD | SIXTH | SEVENTH,
     .writes = FIRST | THIRD,
     .result = WITH_BIAS},
    {.op = "aten::miopen_batch_norm_backward",
     .cost = moves,
     .reads = FIRST | SECOND | THIRD | SIXTH | SEVENTH,
     .writes = FIRST | THIRD,
     .result = WITH_BIAS},
    {.op = "aten::_fused_rms_norm_backward",
     .cost = moves,
     .reads = FIRST | SECOND | FOURTH | FIFTH,
     .writes = SECOND | FIFTH,
     .mask = 5},
    REDUCTION("sum", 1, 2, .type = 3, .widens = true),
    REDUCTION("prod", 1, 2, .type = 3, .widens = true),
    REDUCTION("mean", 1, 2, .type = 3, .calls_others = true), // of a CPU
    REDUCTION("var", 1, 2, ),
    REDUCTION("std", 1, 2, ),
    REDUCTION("linalg_vector_norm", 2, 0, .type = 4),
    REDUCTION("amax", 1, 0, ),
    REDUCTION("amin", 1, 0, ),
    REDUCTION("max", 1, 1, .result = WITH_INDICES),
    REDUCTION("min", 1, 1, .result = WITH_INDICES),
    REDUCTION("argmax", 1, 1, .element = 8),
    REDUCTION("argmin", 1, 1, .element = 8),
    REDUCTION("any", 1, 1, .element = 1),
    REDUCTION("all", 1, 1, .element = 1),
    {.op = "aten::max_pool2d_with_indices",
     .cost = pooling,
     .stride = 2,
     .padding = 3,
     .dilation = 4,
     .b = 5,
     .result = WITH_INDICES},
    {.op = "aten::avg_pool2d",
     .cost = pooling,
     .stride = 2,
     .padding = 3,
     .dilation = NONE,
     .b = 4},
    MOVES("aten::max_pool2d_with_indices_backward", FIRST | EIGHTH, SECOND),
    MOVES("aten::avg_pool2d_backward", FIRST, SECOND),
    MOVES("aten::_adaptive_avg_pool2d_backward", FIRST, SECOND),
    {.op = "aten::gather", .cost = selection, .a = 0, .b = 2, .added = 0},
    {.op = "aten::scatter_", .cost = selection, .a = 0, .b = 2, .added = 3},
    {.op = "aten::scatter_add_", .cost = selection, .a = 0, .b = 2, .added = 3, .flops = 1},
    {.op = "aten::embedding", .cost = lookup, .calls_others = true, .a = 0, .b = 1},
    {.op = "aten::index_select", .cost = lookup, .a = 0, .b = 2, .dims = 1},
};

static const struct row kFused = {.cost = fused};

// "aten::add_" writes into its first argument what "aten::add" returns.
static bool find_row(xpl_str_t op, struct row *ret) {
    for (unsigned in_place = 0; in_place < 2; in_place++) {
        const xpl_str_t name = xpl_str_sub(op, 0, op.len - in_place);
        for (size_t i = 0; i < sizeof kRows / sizeof *kRows; i++) {
            *ret = kRows[i];
            if (!xpl_str_eq(name, xpl_str_from(ret->op))) continue;
            if (in_place && (ret->cost != moves || ret->writes)) return false;
            if (in_place) ret->writes = FIRST;
            return true;
        }
        if (!xpl_str_ends(op, XPL_STR("_"))) break;
    }
    *ret = kFused;
    return is_fused(op);
}

// CPUs run transposed convolutions in the op itself.
static bool calls_others(const struct row *r, const struct arguments *args) {
    return r->calls_others && !(xpl_str_eq(xpl_str_from(r->op), XPL_STR("aten::_convolution")) &&
                                is_true(args, r->transposed));
}

bool xpl_torch_cost(xpl_str_t call, bool nested, struct xpl_hlo_cost *ret) {
    const size_t open = xpl_str_find(call, XPL_STR("("), 0);
    struct arguments args;
    struct sums s = {0};
    struct row r;
    *ret = (struct xpl_hlo_cost){0};
    if (open == SIZE_MAX || !xpl_str_ends(call, XPL_STR(")"))) return false;
    if (!find_row(xpl_str_sub(call, 0, open), &r)) return false;
    split(xpl_str_sub(call, open + 1, call.len - open - 2), &args);
    if (nested && calls_others(&r, &args)) return false;
    if (!r.cost(&r, &args, &s) || !(s.flops < kMost && s.read < kMost && s.written < kMost))
        return false;
    const bool is_8_bit = !r.reads && r.a < args.n && args.v[r.a].size < 2;
    ret->model_flops = (int64_t)s.flops;
    ret->device_flops = is_8_bit ? ret->model_flops / 2 : ret->model_flops;
    ret->hbm_read_bytes = (int64_t)s.read;
    ret->hbm_written_bytes = (int64_t)s.written;
    ret->bytes = ret->hbm_read_bytes + ret->hbm_written_bytes;
    return true;
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
