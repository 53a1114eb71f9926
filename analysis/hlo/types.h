// SPDX-License-Identifier: Apache-2.0
// XLA's types of elements (PrimitiveType): names and sizes.
#ifndef XPL_ANALYSIS_HLO_TYPES_H_
#define XPL_ANALYSIS_HLO_TYPES_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hlo/fields.h"
#include "base/str.h"

enum xpl_hlo_type_kind {
    HLO_KIND_OTHER, // tuple, token, opaque, buffer, or unknown
    HLO_KIND_PRED,
    HLO_KIND_SIGNED,
    HLO_KIND_UNSIGNED,
    HLO_KIND_FLOAT,
    HLO_KIND_COMPLEX,
};
struct xpl_hlo_type_info {
    xpl_str_t name;
    uint8_t bits; // of an element; 0: it has none
    uint8_t kind; // enum xpl_hlo_type_kind
};
// Of any number; "" without bits for an unknown type.
const struct xpl_hlo_type_info *xpl_hlo_type_info(uint64_t primitive_type);
// Names of types are keywords of the HLO text.
bool xpl_hlo_is_type_name(xpl_str_t s);

static inline unsigned xpl_hlo_element_bits(uint64_t primitive_type) {
    return xpl_hlo_type_info(primitive_type)->bits;
}

#endif
