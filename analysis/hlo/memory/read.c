// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/memory/memory.h"

#include "analysis/hlo/memory/impl.h"

xpl_status_t xpl_hlo_memory_read(xpl_bytes_t proto, int64_t color, struct xpl_exec *exec,
                                 struct xpl_arena *a, struct xpl_hlo_memory **ret,
                                 struct xpl_error *err) {
    struct xpl_hlo_memory *const m = xpl_arena_zalloc(a, sizeof *m);
    struct memory_reader r = {.m = m, .arena = a, .exec = exec};
    xpl_bytes_t module = {0}, assignment = {0};
    struct xpl_wire w = xpl_wire_begin(proto);
    struct xpl_field f;
    enum xpl_wire_result res;
    if (!m) XPL_RETURN_OOM(err, "memory of an HLO module");
    while ((res = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == HLO_PROTO_MODULE) module = f.len;
        if (f.num == HLO_PROTO_BUFFER_ASSIGNMENT) assignment = f.len;
    }
    if (res == XPL_WIRE_MALFORMED) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "malformed HLO module");
    m->color = color;
    m->module = m->entry = (xpl_str_t){"", 0};
    XPL_TRY(xpl_hlo_memory_read_assignment(&r, assignment, err));
    XPL_TRY(xpl_hlo_memory_read_ops(&r, module, err));
    XPL_TRY(xpl_hlo_memory_replay(&r, err));
    *ret = m;
    return XPL_OK;
}
