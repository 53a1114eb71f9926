// SPDX-License-Identifier: Apache-2.0
// A decoded ShapeProto: one level; shapes of a tuple are walked.
#ifndef XPL_ANALYSIS_HLO_MODULE_SHAPE_H_
#define XPL_ANALYSIS_HLO_MODULE_SHAPE_H_

#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/message.h"

struct xpl_hlo_shape {
    xpl_bytes_t bytes;
    uint64_t type; // enum xpl_hlo_type
    bool has_layout, malformed;
    xpl_bytes_t layout;
    uint32_t n_parts;               // of a tuple
    struct xpl_hlo_ints dims;       // copy to walk
    struct xpl_hlo_ints is_dynamic; // likewise; fewer than dimensions: the rest is not
};

void xpl_hlo_shape_read(xpl_bytes_t bytes, struct xpl_hlo_shape *ret);

// The shapes of a tuple.
static inline struct xpl_hlo_each xpl_hlo_shape_parts(const struct xpl_hlo_shape *s) {
    const xpl_bytes_t all = s->n_parts ? s->bytes : (xpl_bytes_t){0};
    return (struct xpl_hlo_each){xpl_wire_begin(all), HLO_SHAPE_TUPLE};
}

#endif
