// SPDX-License-Identifier: Apache-2.0
// Texts, costs and neighbours in HLO programs, with every allocation failing once: a clean error,
// nothing leaked, and with memory back the same as before.
#include <inttypes.h>

#include "analysis/hlo/cost/cost.h"
#include "analysis/hlo/graph/adjacent.h"
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/proto/print.h"
#include "analysis/hlo/text/text.h"
#include "base/arena.h"
#include "tests/wire_text.h"

// Enough of everything that needs memory: more frontend attributes than a few, a literal out of
// order and one in pieces, donors, stack frames, a configuration that is rewritten, origins.
static struct xpl_buf program(void) {
    struct xpl_buf m = wt_message("1:\"m\" 4:{} 6:2 18:{1:{1:1} 1:{1:0 2:[1]} 1:{1:0}} "
                                  "17:{1:\"f\" 1:\"f\" 2:\"g\" 3:{1:1 2:1 3:5} 3:{1:2 2:1 3:5} "
                                  "4:{1:1} 4:{1:2 2:1}}"),
                   in;
    struct xpl_buf c = wt_message("1:\"main\" 5:2 6:3"), attributes = mk_open();
    for (int i = 0; i < 70; i++) {
        char entry[40];
        (void)snprintf(entry, sizeof entry, "1:\"k%d\" 2:\"v\"", 99 - i);
        struct xpl_buf e = wt_message(entry);
        mk_close(&attributes, 1, &e);
    }
    in = wt_message("1:\"k\" 2:\"constant\" 35:1 3:{2:4 3:[2,40] 5:{1:[0,1]}} "
                    "7:{2:\"o\" 15:2} 88:{1:{2:{1:\"x\"}}}");
    struct xpl_buf literal = wt_message("1:{2:4 3:[2,40] 5:{1:[0,1]}}");
    for (int i = 0; i < 80; i++)
        mk_int(&literal, 4, i * 1000);
    mk_close(&in, 8, &literal);
    mk_close(&in, 68, &attributes);
    mk_close(&c, 2, &in);
    in = wt_message("1:\"n\" 2:\"negate\" 35:3 36:[1] 3:{2:4 3:[2,40] 5:{1:[0,1]}} "
                    "43:\"{\\042wait_on_operation_queues\\042:[],\\042a\\042:1}\"");
    mk_close(&c, 2, &in);
    // A fusion of a tuple, in a loop, so that costs have parts and sums.
    static const char *const more[] = {
        "1:\"f\" 5:5 6:53 2:{1:\"fp\" 2:\"parameter\" 35:51 3:{2:13 4:{2:11 3:[9]} 4:{2:11 "
        "3:[9]}}} "
        "2:{1:\"fg\" 2:\"get-tuple-element\" 35:52 36:[51] 13:1 3:{2:11 3:[9]}} "
        "2:{1:\"ft\" 2:\"tuple\" 35:53 36:[52,52] 3:{2:13 4:{2:11 3:[9]} 4:{2:11 3:[9]}}}",
        "1:\"b\" 5:6 6:62 2:{1:\"bp\" 2:\"parameter\" 35:61 3:{2:13 4:{2:11 3:[9]} 4:{2:11 "
        "3:[9]}}} "
        "2:{1:\"bf\" 2:\"fusion\" 11:\"kLoop\" 35:62 36:[61] 38:[5] 3:{2:13 4:{2:11 3:[9]} "
        "4:{2:11 3:[9]}}}",
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        in = wt_message(more[i]);
        mk_close(&m, 3, &in);
    }
    in = wt_message("1:\"t\" 2:\"parameter\" 35:8 3:{2:13 4:{2:11 3:[9]} 4:{2:11 3:[9]}}");
    mk_close(&c, 2, &in);
    in = wt_message(
        "1:\"w\" 2:\"while\" 35:9 36:[8] 38:[6,6] 3:{2:13 4:{2:11 3:[9]} 4:{2:11 3:[9]}}");
    mk_close(&c, 2, &in);
    mk_close(&m, 3, &c);
    return m;
}

// The program by its fields, where everything is out of order and in pieces.
static struct xpl_buf g_proto;

static void make_proto(const struct xpl_buf *module) {
    g_proto = mk_open();
    mk_len(&g_proto, 3, "", 0);
    for (int i = 0; i < 2; i++)
        mk_len(&g_proto, 1, module->p, module->n);
}

static xpl_status_t print_proto(struct xpl_arena *a, struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_exec exec = xpl_exec_serial();
    xpl_status_t st = XPL_OK;
    for (unsigned form = 0; st == XPL_OK && form <= XPL_HLO_PROTO_JSON; form++)
        st = xpl_hlo_proto_print((xpl_bytes_t){g_proto.p, g_proto.n}, (enum xpl_hlo_proto_form)form,
                                 &exec, a, out, err);
    return st;
}

static xpl_status_t run(const struct xpl_buf *module, struct xpl_buf *out) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 26);
    struct xpl_hlo_module *m = NULL;
    struct xpl_error err = {0};
    xpl_status_t st = xpl_hlo_module_read_full((xpl_bytes_t){module->p, module->n}, &a, &m, &err);
    for (unsigned form = 0; st == XPL_OK && form < XPL_HLO_N_TEXT_FORMS; form++)
        st = xpl_hlo_text_module(m, (enum xpl_hlo_text_form)form, &exec, &a, out, &err);
    struct xpl_hlo_text_cache *cache = NULL;
    for (uint32_t i = 0; st == XPL_OK && i < m->n_instructions; i++) {
        struct xpl_hlo_instruction in;
        xpl_str_t text;
        xpl_hlo_module_get(m, i, &in);
        if (xpl_hlo_expression(&in, &cache, &a, &text))
            xpl_buf_str(out, text);
        else
            st = XPL_RESOURCE_EXHAUSTED;
    }
    struct xpl_hlo_costs *const costs = st == XPL_OK ? xpl_hlo_costs_new(m, &a) : NULL;
    if (st == XPL_OK && !costs) st = XPL_RESOURCE_EXHAUSTED;
    for (uint32_t i = 0; st == XPL_OK && i < m->n_instructions; i++) {
        struct xpl_hlo_cost cost;
        st = xpl_hlo_cost(costs, i, NULL, &cost, &err);
        xpl_buf_printf(out, "%" PRId64 " %" PRId64 "\n", cost.model_flops, cost.bytes);
    }
    bool lost = false;
    if (st == XPL_OK) st = xpl_hlo_costs_lost(costs, NULL, &lost, &err);
    if (st == XPL_OK) st = xpl_hlo_adjacent(m, 0, &exec, &a, out, &err);
    if (st == XPL_OK) st = print_proto(&a, out, &err);
    CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
    return st;
}

int main(void) {
    struct xpl_buf m = program(), expected, got;
    make_proto(&m);
    xpl_buf_init(&expected, 1 << 24);
    CHECK_OK(run(&m, &expected), NULL);
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    xpl_buf_init(&got, 1 << 24);
    CHECK_OK(run(&m, &got), NULL);
    xpl_buf_fini(&got);
    const uint64_t n = xpl_fault_count();
    CHECK(n > 20);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_buf_init(&got, 1 << 24);
        xpl_fault_fail_on(i);
        const xpl_status_t st = run(&m, &got);
        // The buffer that is written to is the test's own: it may be the one that fails.  Room for
        // sorting only saves time.
        if (st == XPL_OK && !got.failed) CHECK_BYTES(got.p, got.n, expected.p, expected.n);
        xpl_fault_fail_on(UINT64_MAX);
        xpl_buf_fini(&got);
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    xpl_buf_init(&got, 1 << 24);
    CHECK_OK(run(&m, &got), NULL);
    CHECK_BYTES(got.p, got.n, expected.p, expected.n);
    xpl_buf_fini(&got);
    xpl_buf_fini(&expected);
    xpl_buf_fini(&m);
    return 0;
}
