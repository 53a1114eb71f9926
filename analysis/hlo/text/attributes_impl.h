// SPDX-License-Identifier: Apache-2.0
// Private to analysis/hlo/text: attributes of single opcodes.  Each function appends the attributes
// that only its opcodes have, every one after ", ".
#ifndef XPL_ANALYSIS_HLO_TEXT_ATTRIBUTES_IMPL_H_
#define XPL_ANALYSIS_HLO_TEXT_ATTRIBUTES_IMPL_H_

#include "analysis/hlo/text/impl.h"

// Element type of the first operand of instruction `index`; 0 when there is none.
uint64_t txt_operand_type(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in);

typedef void txt_own(struct hlo_text *t, uint32_t index, const struct xpl_hlo_message *in);

// collective.c
txt_own txt_all_gather, txt_all_reduce, txt_all_to_all, txt_collective_broadcast,
    txt_collective_reduce, txt_collective_permute, txt_ragged_all_to_all, txt_reduce_scatter,
    txt_host_transfer;
// contraction.c
txt_own txt_convolution, txt_custom_call, txt_dot, txt_ragged_dot, txt_scaled_dot, txt_window;
// own.c
txt_own txt_batch_norm, txt_cholesky, txt_compare, txt_copy_start, txt_dimensions, txt_domain,
    txt_dynamic_slice, txt_fft, txt_fusion, txt_gather, txt_get_tuple_element, txt_infeed,
    txt_iota_dimension, txt_outfeed, txt_pad, txt_parameter, txt_reduce_precision, txt_reshape,
    txt_rng, txt_rng_bit_generator, txt_rng_state, txt_scan, txt_scatter, txt_shuffle, txt_slice,
    txt_sort, txt_topk, txt_triangular_solve;

// output_to_operand_aliasing={...}, if there are any.
void txt_output_aliasing(struct hlo_text *t, const struct xpl_hlo_message *in);
// ", KEY={1,2}"
static inline void txt_put_set(struct hlo_text *t, xpl_str_t key, const struct xpl_hlo_message *m,
                               uint32_t num) {
    txt_str(t, key);
    txt_set(t, m, num);
}
// The same for a field that need not be there.
static inline void txt_put_filled(struct hlo_text *t, xpl_str_t key,
                                  const struct xpl_hlo_message *m, uint32_t num) {
    if (xpl_hlo_ints_count(m, num)) txt_put_set(t, key, m, num);
}
static inline void txt_put_int(struct hlo_text *t, xpl_str_t key, int64_t v) {
    txt_str(t, key);
    txt_int(t, v);
}

#endif
