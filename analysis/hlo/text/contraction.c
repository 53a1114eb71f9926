// SPDX-License-Identifier: Apache-2.0
// Attributes of dots, convolutions, windows, and of custom calls, which have those of all.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/text/attributes_impl.h"

// ---- precision ----

static xpl_str_t precision_word(int64_t v) {
    switch (v) {
        case 0: return XPL_STR("default");
        case 1: return XPL_STR("high");
        case 2: return XPL_STR("highest");
        default: return XPL_STR("packed_nibble");
    }
}

static const char *algorithm_word(int64_t v) {
    static const char *const words[] = {
        NULL,
        "dot_any_f8_any_f8_f32",
        "dot_any_f8_any_f8_f32_fast_accum",
        "dot_f16_f16_f16",
        "dot_f16_f16_f32",
        "dot_bf16_bf16_bf16",
        "dot_bf16_bf16_f32",
        "dot_bf16_bf16_f32_x3",
        "dot_bf16_bf16_f32_x6",
        "dot_tf32_tf32_f32",
        "dot_tf32_tf32_f32_x3",
        "dot_f32_f32_f32",
        "dot_f64_f64_f64",
        "dot_bf16_bf16_f32_x9",
        "dot_bf16_bf16_fp8x3",
        "dot_bf16_bf16_fp8x4",
    };
    return v > 0 && v < (int64_t)(sizeof words / sizeof *words) ? words[v] : NULL;
}

// XLA has one precision for each of `n` operands, whatever the program says.
static void put_precision(struct hlo_text *t, const struct xpl_hlo_message *in, size_t n) {
    const xpl_bytes_t bytes = xpl_hlo_bytes(in, HLO_INSTR_PRECISION);
    if (!bytes.len) return;
    struct xpl_hlo_message m;
    txt_read(t, bytes, &m);
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(&m, 1);
    bool any = false;
    int64_t x;
    for (size_t i = 0; i < n && xpl_hlo_ints_next(&v, &x); i++)
        any |= x != 0;
    v = xpl_hlo_ints_begin(&m, 1);
    if (any) TXT(t, ", operand_precision={");
    for (size_t i = 0; any && i < n && !txt_stopped(t); i++) {
        if (i) TXT(t, ",");
        if (!xpl_hlo_ints_next(&v, &x)) x = 0;
        txt_str(t, precision_word(x));
    }
    if (any) TXT(t, "}");
    const char *const algorithm = algorithm_word(xpl_hlo_int(&m, 2));
    if (!algorithm) return;
    TXT(t, ", algorithm=");
    txt_str(t, xpl_str_from(algorithm));
}

// ---- sparsity and scales ----

static void put_sparse(struct hlo_text *t, xpl_bytes_t tensor) {
    struct xpl_hlo_message m;
    txt_read(t, tensor, &m);
    txt_put_int(t, XPL_STR("{sparsity="), xpl_hlo_int(&m, 1));
    txt_put_int(t, XPL_STR("x"), xpl_hlo_int(&m, 2));
    txt_put_int(t, XPL_STR(" dimension="), xpl_hlo_int(&m, 3));
    txt_put_int(t, XPL_STR(" stride="), xpl_hlo_int(&m, 4));
    txt_put_int(t, XPL_STR(" idx="), (int32_t)xpl_hlo_int(&m, 5));
    TXT(t, "}");
}

static void put_scaled(struct hlo_text *t, xpl_bytes_t tensor) {
    struct xpl_hlo_message m;
    txt_read(t, tensor, &m);
    txt_put_int(t, XPL_STR("{scale_idx="), (int32_t)xpl_hlo_int(&m, 1));
    if (xpl_hlo_has(&m, 2)) txt_put_int(t, XPL_STR(" zero_idx="), (int32_t)xpl_hlo_int(&m, 2));
    if (xpl_hlo_ints_count(&m, 3)) TXT(t, " strides=");
    txt_ints(t, xpl_hlo_ints_begin(&m, 3), XPL_STR("x"));
    if (xpl_hlo_ints_count(&m, 4)) TXT(t, " steps=");
    txt_ints(t, xpl_hlo_ints_begin(&m, 4), XPL_STR("x"));
    TXT(t, "}");
}

// KEY={lhs=... rhs=...}, of the sides that are there.
static void put_sides(struct hlo_text *t, const struct xpl_hlo_message *in, uint32_t num,
                      const char *key, void (*put)(struct hlo_text *, xpl_bytes_t)) {
    struct xpl_hlo_message m;
    txt_read(t, xpl_hlo_bytes(in, num), &m);
    if (!xpl_hlo_has(&m, 1) && !xpl_hlo_has(&m, 2)) return;
    txt_str(t, xpl_str_from(key));
    if (xpl_hlo_has(&m, 1)) {
        TXT(t, "lhs=");
        put(t, xpl_hlo_bytes(&m, 1));
    }
    if (xpl_hlo_has(&m, 1) && xpl_hlo_has(&m, 2)) TXT(t, " ");
    if (xpl_hlo_has(&m, 2)) {
        TXT(t, "rhs=");
        put(t, xpl_hlo_bytes(&m, 2));
    }
    TXT(t, "}");
}

static void put_sparsity_and_scales(struct hlo_text *t, const struct xpl_hlo_message *in) {
    if (xpl_hlo_has(in, HLO_INSTR_SPARSITY))
        put_sides(t, in, HLO_INSTR_SPARSITY, ", sparsity_config={", put_sparse);
    if (xpl_hlo_has(in, HLO_INSTR_BLOCK_SCALING))
        put_sides(t, in, HLO_INSTR_BLOCK_SCALING, ", block_scaling_config={", put_scaled);
}

// ---- dots ----

static void put_dot_dimensions(struct hlo_text *t, xpl_bytes_t dimensions) {
    struct xpl_hlo_message m;
    txt_read(t, dimensions, &m);
    txt_put_filled(t, XPL_STR(", lhs_batch_dims="), &m, 3);
    txt_put_set(t, XPL_STR(", lhs_contracting_dims="), &m, 1);
    txt_put_filled(t, XPL_STR(", rhs_batch_dims="), &m, 4);
    txt_put_set(t, XPL_STR(", rhs_contracting_dims="), &m, 2);
}

void txt_dot(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_dot_dimensions(t, xpl_hlo_bytes(in, HLO_INSTR_DOT_DIMENSIONS));
    put_precision(t, in, 2);
    put_sparsity_and_scales(t, in);
}

void txt_scaled_dot(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_dot_dimensions(t, xpl_hlo_bytes(in, HLO_INSTR_DOT_DIMENSIONS));
    put_precision(t, in, 2);
}

void txt_ragged_dot(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    struct xpl_hlo_message m;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_RAGGED_DOT), &m);
    put_dot_dimensions(t, xpl_hlo_bytes(&m, 1));
    txt_put_filled(t, XPL_STR(", lhs_ragged_dims="), &m, 2);
    txt_put_filled(t, XPL_STR(", rhs_group_dims="), &m, 3);
    put_precision(t, in, 2);
}

// ---- windows ----

// One property of all dimensions, joined by x; left out when it is `usual` everywhere.
static void put_property(struct hlo_text *t, const struct xpl_hlo_message *w, const char *key,
                         uint32_t num, int64_t usual) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(w, HLO_WINDOW_DIMENSIONS);
    struct xpl_hlo_message d;
    bool shown = num == HLO_WINDOW_DIM_SIZE;
    xpl_bytes_t one;
    while (!shown && xpl_hlo_each_next(&e, &one)) {
        txt_read(t, one, &d);
        shown = xpl_hlo_int(&d, num) != usual;
        if (num == HLO_WINDOW_DIM_PADDING_LOW) shown |= xpl_hlo_int(&d, num + 1) != 0;
    }
    if (!shown) return;
    txt_str(t, xpl_str_from(key));
    e = xpl_hlo_each_begin(w, HLO_WINDOW_DIMENSIONS);
    for (bool first = true; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &d);
        if (!first) TXT(t, "x");
        txt_int(t, num == HLO_WINDOW_DIM_REVERSAL ? xpl_hlo_bool(&d, num) : xpl_hlo_int(&d, num));
        if (num != HLO_WINDOW_DIM_PADDING_LOW) continue;
        txt_put_int(t, XPL_STR("_"), xpl_hlo_int(&d, HLO_WINDOW_DIM_PADDING_HIGH));
    }
}

void txt_window(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    struct xpl_hlo_message w;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_WINDOW), &w);
    if (!xpl_hlo_has(&w, HLO_WINDOW_DIMENSIONS)) return;
    TXT(t, ", window={");
    put_property(t, &w, "size=", HLO_WINDOW_DIM_SIZE, 0);
    put_property(t, &w, " stride=", HLO_WINDOW_DIM_STRIDE, 1);
    put_property(t, &w, " pad=", HLO_WINDOW_DIM_PADDING_LOW, 0);
    put_property(t, &w, " lhs_dilate=", HLO_WINDOW_DIM_BASE_DILATION, 1);
    put_property(t, &w, " rhs_dilate=", HLO_WINDOW_DIM_DILATION, 1);
    put_property(t, &w, " rhs_reversal=", HLO_WINDOW_DIM_REVERSAL, 0);
    TXT(t, "}");
}

// ---- convolutions ----

enum {
    KERNEL_INPUT_FEATURE = 3,
    KERNEL_OUTPUT_FEATURE = 4,
    KERNEL_SPATIAL = 6,
    INPUT_BATCH = 7,
    INPUT_FEATURE = 8,
    OUTPUT_BATCH = 9,
    OUTPUT_FEATURE = 10,
    INPUT_SPATIAL = 11,
    OUTPUT_SPATIAL = 12,
    MAX_LABELS = 64,
};

// The dimensions of one side: two letters, and a number for each spatial one.  Where two have one
// place the later one is shown, as in XLA.
static void put_labels(struct hlo_text *t, const struct xpl_hlo_message *m, const uint32_t nums[3],
                       const char letters[2]) {
    enum { UNSET = -1, LETTER = -2 };
    int labels[MAX_LABELS];
    for (unsigned i = 0; i < MAX_LABELS; i++)
        labels[i] = UNSET;
    const size_t n = 2 + xpl_hlo_ints_count(m, INPUT_SPATIAL);
    if (n > MAX_LABELS) { // no writer has so many
        txt_malformed(t);
        return;
    }
    for (int i = 0; i < 2; i++) {
        const uint64_t d = (uint64_t)xpl_hlo_int(m, nums[i]);
        if (d < n) labels[d] = LETTER - i;
    }
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, nums[2]);
    int64_t d;
    for (int i = 0; i < MAX_LABELS && xpl_hlo_ints_next(&v, &d); i++)
        if (d >= 0 && (uint64_t)d < n) labels[d] = i;
    for (size_t i = 0; i < n; i++) {
        if (labels[i] >= 0) txt_int(t, labels[i]);
        if (labels[i] <= LETTER) txt_put(t, &letters[LETTER - labels[i]], 1);
    }
}

static void put_dim_labels(struct hlo_text *t, const struct xpl_hlo_message *in) {
    static const uint32_t input[3] = {INPUT_BATCH, INPUT_FEATURE, INPUT_SPATIAL};
    static const uint32_t kernel[3] = {KERNEL_INPUT_FEATURE, KERNEL_OUTPUT_FEATURE, KERNEL_SPATIAL};
    static const uint32_t output[3] = {OUTPUT_BATCH, OUTPUT_FEATURE, OUTPUT_SPATIAL};
    if (!xpl_hlo_has(in, HLO_INSTR_CONVOLUTION_DIMENSIONS)) return;
    struct xpl_hlo_message m;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_CONVOLUTION_DIMENSIONS), &m);
    TXT(t, ", dim_labels=");
    put_labels(t, &m, input, "bf");
    TXT(t, "_");
    put_labels(t, &m, kernel, "io");
    TXT(t, "->");
    put_labels(t, &m, output, "bf");
}

static void put_group_counts(struct hlo_text *t, const struct xpl_hlo_message *in) {
    const int64_t feature = xpl_hlo_int(in, HLO_INSTR_FEATURE_GROUP_COUNT);
    const int64_t batch = xpl_hlo_int(in, HLO_INSTR_BATCH_GROUP_COUNT);
    if (feature > 1) txt_put_int(t, XPL_STR(", feature_group_count="), feature);
    if (batch > 1) txt_put_int(t, XPL_STR(", batch_group_count="), batch);
}

void txt_convolution(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    static const char *const kinds[] = {"fprop", "dgrad", "wgrad"};
    txt_window(t, index, in);
    put_dim_labels(t, in);
    put_group_counts(t, in);
    const int64_t kind = xpl_hlo_int(in, HLO_INSTR_CONV_KIND);
    if (kind >= 1 && kind <= 3) {
        TXT(t, ", convolution_kind=");
        txt_str(t, xpl_str_from(kinds[kind - 1]));
    }
    put_precision(t, in, 2);
    put_sparsity_and_scales(t, in);
}

// ---- custom calls ----

static void put_operand_layouts(struct hlo_text *t, const struct xpl_hlo_message *in) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(in, HLO_INSTR_OPERAND_SHAPES);
    bool first = true;
    TXT(t, ", operand_layout_constraints={");
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        if (!first) TXT(t, ", ");
        txt_shape(t, one);
    }
    TXT(t, "}");
}

static void put_api_version(struct hlo_text *t, const struct xpl_hlo_message *in) {
    const int64_t version = xpl_hlo_int(in, HLO_INSTR_API_VERSION);
    if (version == 1) return; // the usual one
    TXT(t, ", api_version=");
    switch (version) {
        case 2: TXT(t, "API_VERSION_STATUS_RETURNING"); break;
        case 3: TXT(t, "API_VERSION_STATUS_RETURNING_UNIFIED"); break;
        case 4: TXT(t, "API_VERSION_TYPED_FFI"); break;
        default: TXT(t, "API_VERSION_UNSPECIFIED");
    }
}

static void put_call_literal(struct hlo_text *t, const struct xpl_hlo_message *in) {
    if (!xpl_hlo_has(in, HLO_INSTR_LITERAL)) return;
    struct xpl_hlo_message m;
    const xpl_bytes_t literal = xpl_hlo_bytes(in, HLO_INSTR_LITERAL);
    txt_read(t, literal, &m);
    TXT(t, ", literal=");
    txt_shape(t, xpl_hlo_bytes(&m, HLO_LITERAL_SHAPE));
    TXT(t, " ");
    txt_literal(t, literal, true);
}

static void put_padding_type(struct hlo_text *t, const struct xpl_hlo_message *in) {
    const int64_t type = xpl_hlo_int(in, HLO_INSTR_PADDING_TYPE);
    if (type == 1) TXT(t, ", padding_type=PADDING_VALID");
    if (type == 2) TXT(t, ", padding_type=PADDING_SAME");
}

// A custom call shows a window that it has, if it is one of no dimensions, too.
static void put_call_window(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    struct xpl_hlo_message w;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_WINDOW), &w);
    if (xpl_hlo_has(in, HLO_INSTR_WINDOW) && !xpl_hlo_has(&w, HLO_WINDOW_DIMENSIONS))
        TXT(t, ", window={}");
    else
        txt_window(t, index, in);
}

void txt_custom_call(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    put_call_window(t, index, in);
    put_dim_labels(t, in);
    put_group_counts(t, in);
    put_padding_type(t, in);
    put_precision(t, in,
                  t->m->edges ? t->m->edges[index].n_operands
                              : xpl_hlo_ints_count(in, HLO_INSTR_OPERANDS));
    TXT(t, ", custom_call_target=");
    txt_quoted(t, xpl_hlo_str(in, HLO_INSTR_CUSTOM_CALL_TARGET));
    if (xpl_hlo_bool(in, HLO_INSTR_CONSTRAIN_LAYOUT)) put_operand_layouts(t, in);
    if (xpl_hlo_bool(in, HLO_INSTR_HAS_SIDE_EFFECT)) TXT(t, ", custom_call_has_side_effect=true");
    put_call_literal(t, in);
    txt_output_aliasing(t, in);
    const int64_t schedule = xpl_hlo_int(in, HLO_INSTR_CUSTOM_CALL_SCHEDULE);
    if (schedule == 1) TXT(t, ", schedule=SCHEDULE_LATEST");
    if (schedule == 2) TXT(t, ", schedule=SCHEDULE_EARLIEST");
    put_api_version(t, in);
}
