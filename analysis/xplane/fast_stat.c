// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/fast_stat.h"

bool xpl_raw_stat_slow(xpl_bytes_t message, struct xpl_raw_stat *ret) {
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    *ret = (struct xpl_raw_stat){.kind = XPL_VALUE_NONE};
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        const uint32_t tag = f.num << 3 | f.type;
        if (tag == (XSTAT_MD_ID << 3 | XPL_WIRE_VARINT)) ret->md_id = f.u;
        if (tag >= sizeof xpl_kind_of_tag || xpl_kind_of_tag[tag] == XPL_VALUE_NONE) continue;
        ret->kind = (enum xpl_stat_kind)xpl_kind_of_tag[tag];
        ret->u = f.u;
        ret->str = xpl_wire_str(&f);
    }
    return r == XPL_WIRE_END;
}
