// SPDX-License-Identifier: Apache-2.0
// Scoped memory that instructions of TPU programs use beside buffers.
#include <math.h>

#include "analysis/tools/memory_viewer/impl.h"
#include "base/cleanup.h"
#include "base/text/json_value.h"
#include "base/text/parse.h"

// The size in a 64-bit number, which may be in a string; 0 for other values.
static int64_t number_of(const struct xpl_json_value *v) {
    int64_t n = 0;
    if (!v) return 0;
    if (v->type == XPL_JSON_INT || v->type == XPL_JSON_STRING) {
        const xpl_str_t s = xpl_str_strip(v->text);
        if (!xpl_parse_int(s, INT64_MIN, INT64_MAX, &n)) n = 0;
    } else if (v->type == XPL_JSON_REAL && fabs(v->real) < 0x1p63) {
        n = (int64_t)v->real;
    }
    return n;
}

static int64_t largest_of(const struct xpl_json_value *config) {
    const struct xpl_json_value *const list =
        config->type == XPL_JSON_OBJECT
            ? xpl_json_value_member(config, XPL_STR("used_scoped_memory_configs"))
            : NULL;
    int64_t most = 0;
    if (!list || list->type != XPL_JSON_ARRAY) return 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct xpl_json_value *const e = &list->children[i];
        if (e->type != XPL_JSON_OBJECT) continue;
        const int64_t space = number_of(xpl_json_value_member(e, XPL_STR("memory_space")));
        const int64_t size = number_of(xpl_json_value_member(e, XPL_STR("size")));
        if (space == 1 && size > most) most = size;
    }
    return most;
}

static void read_fields(xpl_bytes_t instruction, xpl_str_t *ret_name, xpl_str_t *ret_config) {
    struct xpl_wire w = xpl_wire_begin(instruction);
    struct xpl_field f;
    *ret_name = *ret_config = (xpl_str_t){"", 0};
    while (xpl_hlo_next_field(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == HLO_INSTR_NAME) *ret_name = xpl_wire_str(&f);
        if (f.num == HLO_INSTR_BACKEND_CONFIG) *ret_config = xpl_wire_str(&f);
    }
}

xpl_status_t xpl_memview_scoped(xpl_bytes_t module, struct xpl_exec *exec, size_t limit,
                                int64_t *ret_bytes, xpl_str_t *ret_name, struct xpl_error *err) {
    struct xpl_hlo_instruction_walk w = xpl_hlo_instruction_walk_begin(module);
    uint32_t ticks = 0;
    *ret_bytes = 0;
    *ret_name = (xpl_str_t){"", 0};
    for (xpl_bytes_t in; xpl_hlo_instruction_walk_next(&w, &in);) {
        xpl_str_t name, config;
        struct xpl_json_value v;
        if (++ticks % 4096 == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "memory of an HLO module cancelled");
        read_fields(in, &name, &config);
        if (!config.len) continue;
        XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(limit);
        const enum xpl_json_result res = xpl_json_value_parse(config, &arena, &v);
        if (res == XPL_JSON_OOM) XPL_RETURN_OOM(err, "configuration of an instruction");
        const int64_t size = res == XPL_JSON_OK ? largest_of(&v) : 0;
        if (size <= *ret_bytes) continue;
        *ret_bytes = size;
        *ret_name = name;
    }
    return XPL_OK;
}
