// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/module/shape.h"

// Notes a run of a repeated field: one packed run is walked where it lies, else the message is.
static void note_run(struct xpl_hlo_ints *v, const struct xpl_field *f, xpl_bytes_t message) {
    if (v->num == 0 && f->type == XPL_WIRE_LEN) {
        *v = xpl_hlo_ints_packed(f->len);
        v->num = f->num;
    } else {
        *v = (struct xpl_hlo_ints){.w = xpl_wire_begin(message), .num = f->num};
    }
}

void xpl_hlo_shape_read(xpl_bytes_t bytes, struct xpl_hlo_shape *ret) {
    *ret = (struct xpl_hlo_shape){.bytes = bytes};
    struct xpl_wire w = xpl_wire_begin(bytes);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        const bool part = f.type == XPL_WIRE_LEN;
        switch (f.num) {
            case HLO_SHAPE_ELEMENT_TYPE:
                if (f.type == XPL_WIRE_VARINT) ret->type = f.u;
                break;
            case HLO_SHAPE_DIMENSIONS: note_run(&ret->dims, &f, bytes); break;
            case HLO_SHAPE_TUPLE: ret->n_parts += part; break;
            case HLO_SHAPE_LAYOUT:
                if (part) ret->layout = f.len;
                ret->has_layout |= part;
                break;
            case HLO_SHAPE_IS_DYNAMIC: note_run(&ret->is_dynamic, &f, bytes); break;
            default: break;
        }
    }
    ret->malformed = r == XPL_WIRE_MALFORMED;
}
