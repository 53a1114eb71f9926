// SPDX-License-Identifier: Apache-2.0
// Attributes of single opcodes.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/shape.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/text/attributes_impl.h"
#include "analysis/hlo/types.h"

static xpl_str_t word(bool v) {
    return v ? XPL_STR("true") : XPL_STR("false");
}

uint64_t txt_operand_type(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    struct txt_uses u = txt_uses_begin(t, index, in, false);
    struct xpl_hlo_shape s;
    uint32_t at;
    if (!txt_uses_next(t, &u, &at)) return 0;
    xpl_hlo_shape_read(xpl_hlo_shape_of(&t->m->instructions[at]), &s);
    return s.type;
}

// ---- dimensions ----

void txt_dimensions(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    txt_put_set(t, XPL_STR(", dimensions="), in, HLO_INSTR_DIMENSIONS);
}

static void put_first_dimension(struct hlo_text *t, xpl_str_t key,
                                const struct xpl_hlo_message *in) {
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(in, HLO_INSTR_DIMENSIONS);
    int64_t d = 0;
    if (xpl_hlo_ints_next(&v, &d)) txt_put_int(t, key, d);
}

void txt_iota_dimension(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_first_dimension(t, XPL_STR(", iota_dimension="), in);
}

void txt_reshape(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_first_dimension(t, XPL_STR(", inferred_dimension="), in);
}

void txt_sort(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    txt_dimensions(t, index, in);
    if (xpl_hlo_bool(in, HLO_INSTR_IS_STABLE)) TXT(t, ", is_stable=true");
}

void txt_scan(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    txt_dimensions(t, index, in);
    txt_put_int(t, XPL_STR(", num_carries="), xpl_hlo_int(in, HLO_INSTR_NUM_CARRIES));
    if (xpl_hlo_bool(in, HLO_INSTR_IS_REVERSE)) TXT(t, ", is_reverse=true");
    const int64_t associative = xpl_hlo_int(in, HLO_INSTR_IS_ASSOCIATIVE);
    if (associative == 1) TXT(t, ", is_associative=true");
    if (associative == 2) TXT(t, ", is_associative=false");
}

void txt_shuffle(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    struct xpl_hlo_message mode, rotate;
    txt_dimensions(t, index, in);
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_SHUFFLE_MODE), &mode);
    if (!xpl_hlo_has(&mode, 1)) return;
    txt_read(t, xpl_hlo_bytes(&mode, 1), &rotate);
    txt_put_set(t, XPL_STR(", mode=rotate, shifts="), &rotate, 1);
}

void txt_slice(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    struct xpl_hlo_each e = xpl_hlo_each_begin(in, HLO_INSTR_SLICE_DIMENSIONS);
    struct xpl_hlo_message d;
    bool strided = false, first = true;
    xpl_bytes_t one;
    while (!strided && xpl_hlo_each_next(&e, &one)) {
        txt_read(t, one, &d);
        strided = xpl_hlo_int(&d, 3) != 1;
    }
    TXT(t, ", slice={");
    e = xpl_hlo_each_begin(in, HLO_INSTR_SLICE_DIMENSIONS);
    for (; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &d);
        if (!first) TXT(t, ", ");
        txt_put_int(t, XPL_STR("["), xpl_hlo_int(&d, 1));
        txt_put_int(t, XPL_STR(":"), xpl_hlo_int(&d, 2));
        if (strided) txt_put_int(t, XPL_STR(":"), xpl_hlo_int(&d, 3));
        TXT(t, "]");
    }
    TXT(t, "}");
}

void txt_dynamic_slice(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    txt_put_set(t, XPL_STR(", dynamic_slice_sizes="), in, HLO_INSTR_DYNAMIC_SLICE_SIZES);
}

void txt_pad(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    struct xpl_hlo_message m, d;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_PADDING), &m);
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, 1);
    bool interior = false, first = true;
    xpl_bytes_t one;
    while (!interior && xpl_hlo_each_next(&e, &one)) {
        txt_read(t, one, &d);
        interior = xpl_hlo_int(&d, 3) != 0;
    }
    TXT(t, ", padding=");
    e = xpl_hlo_each_begin(&m, 1);
    for (; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &d);
        if (!first) TXT(t, "x");
        txt_int(t, xpl_hlo_int(&d, 1));
        txt_put_int(t, XPL_STR("_"), xpl_hlo_int(&d, 2));
        if (interior) txt_put_int(t, XPL_STR("_"), xpl_hlo_int(&d, 3));
    }
}

// ---- gather, scatter ----

void txt_gather(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    struct xpl_hlo_message m;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_GATHER_DIMENSIONS), &m);
    txt_put_set(t, XPL_STR(", offset_dims="), &m, 1);
    txt_put_set(t, XPL_STR(", collapsed_slice_dims="), &m, 2);
    txt_put_set(t, XPL_STR(", start_index_map="), &m, 3);
    txt_put_filled(t, XPL_STR(", operand_batching_dims="), &m, 5);
    txt_put_filled(t, XPL_STR(", start_indices_batching_dims="), &m, 6);
    txt_put_int(t, XPL_STR(", index_vector_dim="), xpl_hlo_int(&m, 4));
    txt_put_set(t, XPL_STR(", slice_sizes="), in, HLO_INSTR_GATHER_SLICE_SIZES);
    if (xpl_hlo_bool(in, HLO_INSTR_INDICES_ARE_SORTED)) TXT(t, ", indices_are_sorted=true");
}

void txt_scatter(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    struct xpl_hlo_message m;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_SCATTER_DIMENSIONS), &m);
    txt_put_set(t, XPL_STR(", update_window_dims="), &m, 1);
    txt_put_set(t, XPL_STR(", inserted_window_dims="), &m, 2);
    txt_put_set(t, XPL_STR(", scatter_dims_to_operand_dims="), &m, 3);
    txt_put_filled(t, XPL_STR(", input_batching_dims="), &m, 5);
    txt_put_filled(t, XPL_STR(", scatter_indices_batching_dims="), &m, 6);
    txt_put_int(t, XPL_STR(", index_vector_dim="), xpl_hlo_int(&m, 4));
    if (xpl_hlo_bool(in, HLO_INSTR_INDICES_ARE_SORTED)) TXT(t, ", indices_are_sorted=true");
    if (xpl_hlo_bool(in, HLO_INSTR_UNIQUE_INDICES)) TXT(t, ", unique_indices=true");
}

// ---- comparisons ----

// Old programs have an opcode for each comparison.
static xpl_str_t old_direction(uint32_t opcode) {
    switch (opcode) {
        case XPL_HLO_EQUAL_TO: return XPL_STR("EQ");
        case XPL_HLO_NOT_EQUAL_TO: return XPL_STR("NE");
        case XPL_HLO_GREATER_THAN: return XPL_STR("GT");
        case XPL_HLO_GREATER_THAN_OR_EQUAL_TO: return XPL_STR("GE");
        case XPL_HLO_LESS_THAN: return XPL_STR("LT");
        case XPL_HLO_LESS_THAN_OR_EQUAL_TO: return XPL_STR("LE");
        default: return (xpl_str_t){"", 0};
    }
}

void txt_compare(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    const xpl_str_t old = old_direction(t->m->instructions[index].opcode);
    const xpl_str_t type = xpl_hlo_str(in, HLO_INSTR_COMPARISON_TYPE);
    const xpl_str_t order = xpl_hlo_str(in, HLO_INSTR_COMPARISON_ORDER);
    const unsigned kind = xpl_hlo_type_info(txt_operand_type(t, index, in))->kind;
    TXT(t, ", direction=");
    txt_str(t, old.len ? old : xpl_hlo_str(in, HLO_INSTR_COMPARISON_DIRECTION));
    const bool real = kind == HLO_KIND_FLOAT || kind == HLO_KIND_COMPLEX;
    if (real && (xpl_str_eq(type, XPL_STR("TOTALORDER")) || xpl_str_eq(order, XPL_STR("TOTAL"))))
        TXT(t, ", order=TOTAL");
}

// ---- random numbers ----

void txt_rng(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    TXT(t, ", distribution=");
    switch (xpl_hlo_int(in, HLO_INSTR_DISTRIBUTION)) {
        case 1: TXT(t, "rng_uniform"); break;
        case 2: TXT(t, "rng_normal"); break;
        default: TXT(t, "rng_invalid");
    }
}

void txt_rng_bit_generator(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    TXT(t, ", algorithm=");
    switch (xpl_hlo_int(in, HLO_INSTR_RNG_ALGORITHM)) {
        case 1: TXT(t, "rng_three_fry"); break;
        case 2: TXT(t, "rng_philox"); break;
        default: TXT(t, "rng_default");
    }
}

void txt_rng_state(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    txt_put_int(t, XPL_STR(", delta="), xpl_hlo_int(in, HLO_INSTR_DELTA));
}

// ---- infeed, outfeed, parameters ----

static void put_feed_config(struct hlo_text *t, xpl_str_t key, xpl_str_t config) {
    if (!t->form->feed_config || !config.len) return;
    txt_str(t, key);
    txt_quoted(t, config);
}

void txt_infeed(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    put_feed_config(t, XPL_STR(", infeed_config="), xpl_hlo_str(in, HLO_INSTR_INFEED_CONFIG));
}

void txt_outfeed(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    if (xpl_hlo_has(in, HLO_INSTR_OUTFEED_SHAPE)) {
        TXT(t, ", outfeed_shape=");
        txt_shape(t, xpl_hlo_bytes(in, HLO_INSTR_OUTFEED_SHAPE));
    }
    put_feed_config(t, XPL_STR(", outfeed_config="), xpl_hlo_str(in, HLO_INSTR_OUTFEED_CONFIG));
}

void txt_parameter(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    if (!xpl_hlo_has(in, HLO_INSTR_PARAMETER_REPLICATION)) return;
    struct xpl_hlo_message m;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_PARAMETER_REPLICATION), &m);
    if (!xpl_hlo_ints_count(&m, 1)) return;
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(&m, 1);
    int64_t x;
    TXT(t, ", parameter_replication={");
    for (bool first = true; !txt_stopped(t) && xpl_hlo_ints_next(&v, &x); first = false) {
        if (!first) TXT(t, ",");
        txt_str(t, word(x != 0));
    }
    TXT(t, "}");
}

// ---- the rest ----

void txt_get_tuple_element(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    txt_put_int(t, XPL_STR(", index="), xpl_hlo_int(in, HLO_INSTR_TUPLE_INDEX));
}

void txt_output_aliasing(struct hlo_text *t, const struct xpl_hlo_message *in) {
    struct xpl_hlo_each e = xpl_hlo_each_begin(in, HLO_INSTR_OUTPUT_ALIASING);
    struct xpl_hlo_message m;
    bool first = true;
    for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
        txt_read(t, one, &m);
        txt_str(t, first ? XPL_STR(", output_to_operand_aliasing={{") : XPL_STR(", {"));
        txt_ints(t, xpl_hlo_ints_begin(&m, 1), XPL_STR(", "));
        txt_put_int(t, XPL_STR("}: ("), xpl_hlo_int(&m, 2));
        TXT(t, ", {");
        txt_ints(t, xpl_hlo_ints_begin(&m, 3), XPL_STR(", "));
        TXT(t, "})");
    }
    if (!first) TXT(t, "}");
}

void txt_fusion(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    TXT(t, ", kind=");
    txt_str(t, xpl_hlo_str(in, HLO_INSTR_FUSION_KIND));
    txt_output_aliasing(t, in);
}

void txt_copy_start(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    if (xpl_hlo_has(in, HLO_INSTR_CROSS_PROGRAM_PREFETCH) ||
        xpl_hlo_bool(in, HLO_INSTR_IS_CROSS_PROGRAM_PREFETCH))
        txt_put_int(t, XPL_STR(", cross_program_prefetch_index="),
                    (int32_t)xpl_hlo_int(in, HLO_INSTR_CROSS_PROGRAM_PREFETCH));
}

void txt_reduce_precision(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    txt_put_int(t, XPL_STR(", exponent_bits="), (int32_t)xpl_hlo_int(in, HLO_INSTR_EXPONENT_BITS));
    txt_put_int(t, XPL_STR(", mantissa_bits="), (int32_t)xpl_hlo_int(in, HLO_INSTR_MANTISSA_BITS));
}

void txt_fft(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    static const char *const types[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    const uint64_t type = (uint64_t)xpl_hlo_int(in, HLO_INSTR_FFT_TYPE);
    TXT(t, ", fft_type=");
    txt_str(t, xpl_str_from(types[type < 4 ? type : 0]));
    txt_put_set(t, XPL_STR(", fft_length="), in, HLO_INSTR_FFT_LENGTH);
}

void txt_triangular_solve(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    struct xpl_hlo_message m;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_TRIANGULAR_SOLVE), &m);
    if (xpl_hlo_bool(&m, 1)) TXT(t, ", left_side=true");
    if (xpl_hlo_bool(&m, 2)) TXT(t, ", lower=true");
    if (xpl_hlo_bool(&m, 3)) TXT(t, ", unit_diagonal=true");
    switch (xpl_hlo_int(&m, 4)) {
        case 1: TXT(t, ", transpose_a=NO_TRANSPOSE"); break;
        case 2: TXT(t, ", transpose_a=TRANSPOSE"); break;
        case 3: TXT(t, ", transpose_a=ADJOINT"); break;
        default: break;
    }
}

void txt_cholesky(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    struct xpl_hlo_message m;
    txt_read(t, xpl_hlo_bytes(in, HLO_INSTR_CHOLESKY), &m);
    if (xpl_hlo_bool(&m, 1)) TXT(t, ", lower=true");
}

void txt_topk(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    txt_put_int(t, XPL_STR(", k="), xpl_hlo_int(in, HLO_INSTR_K));
    TXT(t, ", largest=");
    txt_str(t, word(xpl_hlo_bool(in, HLO_INSTR_LARGEST)));
    TXT(t, ", is_stable=");
    txt_str(t, word(xpl_hlo_bool(in, HLO_INSTR_IS_STABLE)));
}

void txt_batch_norm(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    TXT(t, ", epsilon=");
    txt_real(t, (double)xpl_hlo_float(in, HLO_INSTR_EPSILON), 6);
    txt_put_int(t, XPL_STR(", feature_index="), xpl_hlo_int(in, HLO_INSTR_FEATURE_INDEX));
}

void txt_domain(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    (void)index;
    // XLA's text swaps entry and exit.
    txt_part(t);
    TXT(t, ", domain={kind=\"sharding\", entry=");
    if (xpl_hlo_has(in, HLO_INSTR_DOMAIN_EXIT))
        txt_sharding(t, xpl_hlo_bytes(in, HLO_INSTR_DOMAIN_EXIT));
    else
        TXT(t, "{}");
    TXT(t, ", exit=");
    if (xpl_hlo_has(in, HLO_INSTR_DOMAIN_ENTRY))
        txt_sharding(t, xpl_hlo_bytes(in, HLO_INSTR_DOMAIN_ENTRY));
    else
        TXT(t, "{}");
    TXT(t, "}");
}
