// SPDX-License-Identifier: Apache-2.0
// Attributes of instructions: a row for each opcode that has its own, then common ones.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/opcodes.h"
#include "analysis/hlo/text/attributes_impl.h"

// ---- the rows ----

// How the called computations are shown.
enum calls {
    CALLS,
    TO_APPLY,
    CALL,
    WHILE,
    CONDITIONAL,
    SELECT_SCATTER,
    CUSTOM_CALL,
    ASYNC_START,
    HIDDEN
};

struct row {
    void (*own)(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in);
    uint8_t calls;
    bool channel;  // channel_id comes first
    bool accuracy; // of the result may be requested
};

static void put_async(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in);

static const struct row rows[XPL_HLO_N_OPS] = {
    [XPL_HLO_ACOS] = {.accuracy = true},
    [XPL_HLO_ACOSH] = {.accuracy = true},
    [XPL_HLO_ALL_GATHER] = {.own = txt_all_gather, .channel = true},
    [XPL_HLO_ALL_GATHER_START] = {.own = txt_all_gather, .channel = true},
    [XPL_HLO_ALL_REDUCE] = {.own = txt_all_reduce, .calls = TO_APPLY, .channel = true},
    [XPL_HLO_ALL_REDUCE_START] = {.own = txt_all_reduce, .calls = TO_APPLY, .channel = true},
    [XPL_HLO_ALL_TO_ALL] = {.own = txt_all_to_all, .channel = true},
    [XPL_HLO_ASIN] = {.accuracy = true},
    [XPL_HLO_ASINH] = {.accuracy = true},
    [XPL_HLO_ASYNC_DONE] = {.calls = HIDDEN},
    [XPL_HLO_ASYNC_START] = {.own = put_async, .calls = ASYNC_START},
    [XPL_HLO_ASYNC_UPDATE] = {.calls = HIDDEN},
    [XPL_HLO_ATANH] = {.accuracy = true},
    [XPL_HLO_BATCH_NORM_GRAD] = {.own = txt_batch_norm},
    [XPL_HLO_BATCH_NORM_INFERENCE] = {.own = txt_batch_norm},
    [XPL_HLO_BATCH_NORM_TRAINING] = {.own = txt_batch_norm},
    [XPL_HLO_BROADCAST] = {.own = txt_dimensions},
    [XPL_HLO_CALL] = {.calls = CALL},
    [XPL_HLO_CBRT] = {.accuracy = true},
    [XPL_HLO_CHOLESKY] = {.own = txt_cholesky},
    [XPL_HLO_COLLECTIVE_BROADCAST] = {.own = txt_collective_broadcast, .channel = true},
    [XPL_HLO_COLLECTIVE_PERMUTE] = {.own = txt_collective_permute, .channel = true},
    [XPL_HLO_COLLECTIVE_PERMUTE_START] = {.own = txt_collective_permute, .channel = true},
    [XPL_HLO_COLLECTIVE_REDUCE] = {.own = txt_collective_reduce,
                                   .calls = TO_APPLY,
                                   .channel = true},
    [XPL_HLO_COMPARE] = {.own = txt_compare},
    [XPL_HLO_CONCATENATE] = {.own = txt_dimensions},
    [XPL_HLO_CONDITIONAL] = {.calls = CONDITIONAL},
    [XPL_HLO_CONVOLUTION] = {.own = txt_convolution},
    [XPL_HLO_COPY_START] = {.own = txt_copy_start},
    [XPL_HLO_COSH] = {.accuracy = true},
    [XPL_HLO_COSINE] = {.accuracy = true},
    [XPL_HLO_CUSTOM_CALL] = {.own = txt_custom_call, .calls = CUSTOM_CALL},
    [XPL_HLO_DOMAIN] = {.own = txt_domain},
    [XPL_HLO_DOT] = {.own = txt_dot},
    [XPL_HLO_DYNAMIC_SLICE] = {.own = txt_dynamic_slice},
    [XPL_HLO_EQUAL_TO] = {.own = txt_compare},
    [XPL_HLO_ERF] = {.accuracy = true},
    [XPL_HLO_EXPONENTIAL] = {.accuracy = true},
    [XPL_HLO_EXPONENTIAL_MINUS_ONE] = {.accuracy = true},
    [XPL_HLO_FFT] = {.own = txt_fft},
    [XPL_HLO_FUSION] = {.own = txt_fusion},
    [XPL_HLO_GATHER] = {.own = txt_gather},
    [XPL_HLO_GET_DIMENSION_SIZE] = {.own = txt_dimensions},
    [XPL_HLO_GET_TUPLE_ELEMENT] = {.own = txt_get_tuple_element},
    [XPL_HLO_GREATER_THAN] = {.own = txt_compare},
    [XPL_HLO_GREATER_THAN_OR_EQUAL_TO] = {.own = txt_compare},
    [XPL_HLO_INFEED] = {.own = txt_infeed},
    [XPL_HLO_IOTA] = {.own = txt_iota_dimension},
    [XPL_HLO_LESS_THAN] = {.own = txt_compare},
    [XPL_HLO_LESS_THAN_OR_EQUAL_TO] = {.own = txt_compare},
    [XPL_HLO_LOG] = {.accuracy = true},
    [XPL_HLO_LOGISTIC] = {.accuracy = true},
    [XPL_HLO_LOG_PLUS_ONE] = {.accuracy = true},
    [XPL_HLO_MAP] = {.own = txt_dimensions, .calls = TO_APPLY},
    [XPL_HLO_NOT_EQUAL_TO] = {.own = txt_compare},
    [XPL_HLO_OUTFEED] = {.own = txt_outfeed},
    [XPL_HLO_PAD] = {.own = txt_pad},
    [XPL_HLO_PARAMETER] = {.own = txt_parameter},
    [XPL_HLO_RAGGED_ALL_TO_ALL] = {.own = txt_ragged_all_to_all, .channel = true},
    [XPL_HLO_RAGGED_DOT] = {.own = txt_ragged_dot},
    [XPL_HLO_RECV] = {.own = txt_host_transfer, .channel = true},
    [XPL_HLO_RECV_DONE] = {.own = txt_host_transfer, .channel = true},
    [XPL_HLO_REDUCE] = {.own = txt_dimensions, .calls = TO_APPLY},
    [XPL_HLO_REDUCE_PRECISION] = {.own = txt_reduce_precision},
    [XPL_HLO_REDUCE_SCATTER] = {.own = txt_reduce_scatter, .calls = TO_APPLY, .channel = true},
    [XPL_HLO_REDUCE_WINDOW] = {.own = txt_window, .calls = TO_APPLY},
    [XPL_HLO_RESHAPE] = {.own = txt_reshape},
    [XPL_HLO_REVERSE] = {.own = txt_dimensions},
    [XPL_HLO_RNG] = {.own = txt_rng},
    [XPL_HLO_RNG_BIT_GENERATOR] = {.own = txt_rng_bit_generator},
    [XPL_HLO_RNG_GET_AND_UPDATE_STATE] = {.own = txt_rng_state},
    [XPL_HLO_RSQRT] = {.accuracy = true},
    [XPL_HLO_SCALED_DOT] = {.own = txt_scaled_dot},
    [XPL_HLO_SCAN] = {.own = txt_scan, .calls = TO_APPLY},
    [XPL_HLO_SCATTER] = {.own = txt_scatter, .calls = TO_APPLY},
    [XPL_HLO_SELECT_AND_SCATTER] = {.own = txt_window, .calls = SELECT_SCATTER},
    [XPL_HLO_SEND] = {.own = txt_host_transfer, .channel = true},
    [XPL_HLO_SEND_DONE] = {.own = txt_host_transfer, .channel = true},
    [XPL_HLO_SET_DIMENSION_SIZE] = {.own = txt_dimensions},
    [XPL_HLO_SHUFFLE] = {.own = txt_shuffle},
    [XPL_HLO_SINE] = {.accuracy = true},
    [XPL_HLO_SINH] = {.accuracy = true},
    [XPL_HLO_SLICE] = {.own = txt_slice},
    [XPL_HLO_SORT] = {.own = txt_sort, .calls = TO_APPLY},
    [XPL_HLO_SQRT] = {.accuracy = true},
    [XPL_HLO_TAN] = {.accuracy = true},
    [XPL_HLO_TANH] = {.accuracy = true},
    [XPL_HLO_TOPK] = {.own = txt_topk, .calls = HIDDEN},
    [XPL_HLO_TRANSPOSE] = {.own = txt_dimensions},
    [XPL_HLO_TRIANGULAR_SOLVE] = {.own = txt_triangular_solve},
    [XPL_HLO_WHILE] = {.calls = WHILE},
};

// ---- called computations ----

// Name of the n-th computation that an instruction calls; false when there are not as many.
static bool put_called(struct hlo_text *t, const struct xpl_hlo_message *in, unsigned n) {
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(in, HLO_INSTR_CALLED);
    int64_t id;
    do {
        if (!xpl_hlo_ints_next(&v, &id)) return false;
    } while (n--);
    const uint64_t *const at = xpl_map_get(&t->m->computation_ids, (uint64_t)id, 0);
    if (at) txt_name(t, t->m->computations[*at].name);
    return at != NULL;
}

static void put_one_called(struct hlo_text *t, const struct xpl_hlo_message *in, const char *key,
                           unsigned n) {
    txt_str(t, xpl_str_from(key));
    if (!put_called(t, in, n)) txt_malformed(t);
}

static void put_all_called(struct hlo_text *t, const struct xpl_hlo_message *in, const char *key,
                           const char *end) {
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(in, HLO_INSTR_CALLED);
    bool first = true;
    for (int64_t id; !txt_stopped(t) && xpl_hlo_ints_next(&v, &id); first = false) {
        const uint64_t *const at = xpl_map_get(&t->m->computation_ids, (uint64_t)id, 0);
        txt_str(t, first ? xpl_str_from(key) : XPL_STR(", "));
        if (at) txt_name(t, t->m->computations[*at].name);
    }
    if (!first) txt_str(t, xpl_str_from(end));
}

static void put_calls(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in,
                      enum calls how) {
    switch (how) {
        case CALLS: put_all_called(t, in, ", calls=", ""); break;
        case TO_APPLY: put_all_called(t, in, ", to_apply=", ""); break;
        case CALL:
            put_all_called(t, in, ", to_apply=", "");
            if (xpl_hlo_bool(in, HLO_INSTR_IS_COMPOSITE)) TXT(t, ", is_composite=true");
            break;
        case WHILE:
            put_one_called(t, in, ", condition=", 1);
            put_one_called(t, in, ", body=", 0);
            break;
        case CONDITIONAL:
            if (txt_operand_type(t, index, in) == HLO_TYPE_PRED) {
                put_one_called(t, in, ", true_computation=", 0);
                put_one_called(t, in, ", false_computation=", 1);
            } else {
                put_all_called(t, in, ", branch_computations={", "}");
            }
            break;
        case SELECT_SCATTER:
            put_one_called(t, in, ", select=", 0);
            put_one_called(t, in, ", scatter=", 1);
            break;
        case CUSTOM_CALL: put_all_called(t, in, ", called_computations={", "}"); break;
        case ASYNC_START: {
            const uint32_t c = txt_async_computation(t, index);
            if (c != UINT32_MAX && txt_wrapped(t->m, c) == UINT32_MAX)
                put_all_called(t, in, ", calls=", "");
            break;
        }
        case HIDDEN: break;
    }
}

// ---- common attributes ----

static void put_accuracy(struct hlo_text *t, xpl_bytes_t accuracy) {
    struct xpl_hlo_message m, tolerance;
    txt_read(t, accuracy, &m);
    if (xpl_hlo_int(&m, 1) == 1) TXT(t, ", result_accuracy={mode=highest}");
    if (!xpl_hlo_has(&m, 2)) return;
    txt_read(t, xpl_hlo_bytes(&m, 2), &tolerance);
    TXT(t, ", result_accuracy={tolerance={atol=");
    txt_real(t, xpl_hlo_double(&tolerance, 1), 6);
    TXT(t, ",rtol=");
    txt_real(t, xpl_hlo_double(&tolerance, 2), 6);
    TXT(t, ",ulps=");
    txt_int(t, xpl_hlo_int(&tolerance, 3));
    TXT(t, "}}");
}

static void put_control(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    struct txt_uses u = txt_uses_begin(t, index, in, true);
    bool first = true;
    for (uint32_t at; !txt_stopped(t) && txt_uses_next(t, &u, &at); first = false) {
        txt_str(t, first ? XPL_STR(", control-predecessors={") : XPL_STR(", "));
        txt_name(t, t->m->instructions[at].name);
    }
    if (!first) TXT(t, "}");
}

static void put_statistics(struct hlo_text *t, xpl_bytes_t statistics) {
    struct xpl_hlo_message m, one;
    txt_read(t, statistics, &m);
    if (!xpl_hlo_has(&m, 2)) return;
    TXT(t, ", statistics={visualizing_index=");
    txt_int(t, xpl_hlo_int(&m, 1));
    struct xpl_hlo_each e = xpl_hlo_each_begin(&m, 2);
    for (xpl_bytes_t bytes; !txt_stopped(t) && xpl_hlo_each_next(&e, &bytes);) {
        txt_read(t, bytes, &one);
        TXT(t, ",");
        txt_str(t, xpl_hlo_str(&one, 1));
        TXT(t, "=");
        txt_real(t, xpl_hlo_double(&one, 2), 6);
    }
    TXT(t, "}");
}

static bool has_frontend(const struct xpl_hlo_message *in) {
    return xpl_hlo_bytes(in, HLO_INSTR_FRONTEND_ATTRIBUTES).len > 0;
}

static void put_common(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in,
                       bool frontend) {
    if (xpl_hlo_has(in, HLO_INSTR_SHARDING)) {
        txt_part(t);
        TXT(t, ", sharding=");
        txt_instruction_sharding(t, xpl_hlo_bytes(in, HLO_INSTR_SHARDING),
                                 xpl_hlo_shape_of(&t->m->instructions[index]));
    }
    if (frontend && has_frontend(in)) {
        txt_part(t);
        TXT(t, ", frontend_attributes=");
        txt_frontend_attributes(t, xpl_hlo_bytes(in, HLO_INSTR_FRONTEND_ATTRIBUTES));
    }
    txt_part(t);
    if (t->form->control && xpl_hlo_has(in, HLO_INSTR_CONTROL)) put_control(t, index, in);
    const xpl_bytes_t statistics = xpl_hlo_bytes(in, HLO_INSTR_STATISTICS);
    txt_part(t);
    if (statistics.len) put_statistics(t, statistics);
    txt_part(t);
}

static void put_attributes(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in,
                           bool frontend);

// An async op that wraps a single instruction shows that one's attributes as its own; its frontend
// attributes take the place of that one's.
static void put_async(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    const xpl_str_t thread = xpl_hlo_str(in, HLO_INSTR_ASYNC_THREAD);
    if (thread.len && !xpl_str_eq(thread, XPL_STR("main"))) {
        TXT(t, ", async_execution_thread=\"");
        txt_str(t, thread);
        TXT(t, "\"");
    }
    const uint32_t c = txt_async_computation(t, index);
    const uint32_t wrapped = c == UINT32_MAX ? c : txt_wrapped(t->m, c);
    if (wrapped == UINT32_MAX || !txt_enter(t)) return;
    const struct hlo_instruction *const i = &t->m->instructions[wrapped];
    struct xpl_hlo_message inner;
    txt_read(t, (xpl_bytes_t){i->p, i->len}, &inner);
    put_attributes(t, wrapped, &inner, !has_frontend(in));
    txt_leave(t);
}

static void put_attributes(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in,
                           bool frontend) {
    const uint32_t opcode = t->m->instructions[index].opcode;
    const struct row *const row = &rows[opcode];
    if (in->n == 0 && !t->parts && !row->own && !row->calls) return; // it has no attributes
    const int64_t channel = row->channel ? xpl_hlo_int(in, HLO_INSTR_CHANNEL_ID) : 0;
    if (channel) {
        TXT(t, ", channel_id=");
        txt_int(t, channel);
    }
    if (row->own) row->own(t, index, in);
    if ((row->calls || xpl_hlo_has(in, HLO_INSTR_CALLED)) && !t->form->no_calls)
        put_calls(t, index, in, row->calls);
    put_common(t, index, in, frontend);
    const xpl_bytes_t accuracy = xpl_hlo_bytes(in, HLO_INSTR_RESULT_ACCURACY);
    if (row->accuracy && accuracy.len) put_accuracy(t, accuracy);
}

void txt_attributes(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in) {
    put_attributes(t, index, in, true);
}
