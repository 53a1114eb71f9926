// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as an HloModuleProto: its text in every form ends, keeps to its limit, and is the
// same twice; an op's text is the same however the module was read. The cost of each instruction is
// the same in any order of requests, and never negative. Likewise the program by its fields, and
// the neighbours of instructions.
#include <stdlib.h>
#include <string.h>

#include "analysis/hlo/cost/cost.h"
#include "analysis/hlo/graph/adjacent.h"
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/proto/json_check.h"
#include "analysis/hlo/proto/print.h"
#include "analysis/hlo/text/text.h"
#include "analysis/wire/writer.h"
#include "base/arena.h"
#include "base/cleanup.h"

enum { LIMIT = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static xpl_status_t module_text(const struct xpl_hlo_module *m, enum xpl_hlo_text_form form,
                                struct xpl_buf *out) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(64 << 20);
    struct xpl_exec exec = xpl_exec_serial();
    xpl_buf_init(out, LIMIT);
    const xpl_status_t st = xpl_hlo_text_module(m, form, &exec, &scratch, out, NULL);
    require(out->n <= LIMIT);
    require(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED);
    return st;
}

static void check_module(const struct xpl_hlo_module *m) {
    for (unsigned form = 0; form < XPL_HLO_N_TEXT_FORMS; form++) {
        struct xpl_buf a, b;
        const xpl_status_t x = module_text(m, (enum xpl_hlo_text_form)form, &a);
        const xpl_status_t y = module_text(m, (enum xpl_hlo_text_form)form, &b);
        require(x == y && a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0));
        require(x == XPL_OK || m->valid || a.n == 0);
        xpl_buf_fini(&a);
        xpl_buf_fini(&b);
    }
}

static void check_op(const struct xpl_hlo_module *full, const struct xpl_hlo_module *light,
                     uint32_t i, struct xpl_arena *a) {
    struct xpl_hlo_text_cache *const cache = xpl_hlo_text_cache_new(a);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf x, y;
    xpl_buf_init(&x, 2 * XPL_HLO_TEXT_CUT);
    xpl_buf_init(&y, 2 * XPL_HLO_TEXT_CUT);
    const enum xpl_hlo_text_form form = XPL_HLO_TEXT_EXPRESSION;
    const xpl_status_t s = xpl_hlo_text_instruction(full, i, form, cache, &x, NULL);
    const xpl_status_t t = xpl_hlo_text_instruction(light, i, form, NULL, &y, NULL);
    require(s == t && x.n <= XPL_HLO_TEXT_CUT);
    require(s != XPL_OK || (x.n == y.n && memcmp(x.p, y.p, x.n) == 0));
}

static void check_costs(const struct xpl_hlo_module *m, struct xpl_arena *a) {
    enum { MOST = 4096 };
    const uint32_t n = m->n_instructions;
    struct xpl_hlo_costs *const up = xpl_hlo_costs_new(m, a), *const down = xpl_hlo_costs_new(m, a);
    struct xpl_hlo_cost *const v = xpl_arena_array(a, n, sizeof *v), c;
    if (!up || !down || !v || n > MOST) return;
    for (uint32_t i = 0; i < n; i++) {
        if (xpl_hlo_cost(up, i, NULL, &v[i], NULL) != XPL_OK) return;
        require(v[i].model_flops >= 0 && v[i].device_flops >= 0 && v[i].bytes >= 0);
        require(v[i].hbm_read_bytes >= 0 && v[i].hbm_written_bytes >= 0);
    }
    for (uint32_t i = n; i-- > 0;) {
        if (xpl_hlo_cost(down, i, NULL, &c, NULL) != XPL_OK) return;
        require(memcmp(&c, &v[i], sizeof c) == 0);
    }
    bool lost[2];
    if (xpl_hlo_costs_lost(up, NULL, &lost[0], NULL) != XPL_OK ||
        xpl_hlo_costs_lost(down, NULL, &lost[1], NULL) != XPL_OK)
        return;
    require(lost[0] == lost[1]);
}

static void check_proto(xpl_bytes_t module) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_buf proto, out[2];
    uint8_t size[10];
    xpl_buf_init(&proto, module.len + 16);
    xpl_buf_putc(&proto, 0x0a);
    xpl_buf_put(&proto, size, (size_t)(xpl_varint_put(size, module.len) - size));
    xpl_buf_put(&proto, module.ptr, module.len);
    require(!proto.failed);
    for (unsigned form = 0; form <= XPL_HLO_PROTO_JSON; form++) {
        for (unsigned i = 0; i < 2; i++) {
            struct xpl_arena a = xpl_arena_of(64 << 20);
            xpl_buf_init(&out[i], LIMIT);
            const xpl_status_t st =
                xpl_hlo_proto_print((xpl_bytes_t){proto.p, proto.n}, (enum xpl_hlo_proto_form)form,
                                    &exec, &a, &out[i], NULL);
            require(out[i].n <= LIMIT);
            require(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED);
            xpl_arena_fini(&a);
        }
        require(out[0].n == out[1].n && memcmp(out[0].p, out[1].p, out[0].n) == 0);
        xpl_buf_fini(&out[0]);
        xpl_buf_fini(&out[1]);
    }
    xpl_buf_fini(&proto);
}

static void check_neighbours(const struct xpl_hlo_module *m, uint32_t i, struct xpl_arena *a) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    const xpl_status_t st = xpl_hlo_adjacent(m, i, &exec, a, &out, NULL);
    require(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
    require(xpl_hlo_find_node(m, m->instructions[i].name) <= i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(256 << 20);
    struct xpl_hlo_module *full = NULL, *light = NULL;
    const xpl_bytes_t bytes = {data, size};
    if (xpl_hlo_module_read_full(bytes, &a, &full, NULL) == XPL_OK &&
        xpl_hlo_module_read(bytes, &a, &light, NULL) == XPL_OK) {
        require(full->valid == light->valid);
        check_module(full);
        for (uint32_t i = 0; full->valid && i < full->n_instructions && i < 64; i++)
            check_op(full, light, i, &a);
        if (full->valid) check_costs(full, &a);
        for (uint32_t i = 0; full->valid && i < full->n_instructions && i < 8; i++)
            check_neighbours(full, i, &a);
    }
    check_proto(bytes);
    (void)xpl_hlo_json_is((xpl_str_t){(const char *)data, size}, xpl_hlo_proto_gpu_config);
    return 0;
}
