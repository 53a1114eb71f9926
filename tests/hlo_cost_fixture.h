// SPDX-License-Identifier: Apache-2.0
// Asks what instructions of small HLO programs cost.
#ifndef XPL_TESTS_HLO_COST_FIXTURE_H_
#define XPL_TESTS_HLO_COST_FIXTURE_H_

#include "analysis/hlo/cost/cost.h"
#include "analysis/hlo/hlo_module.h"
#include "base/arena.h"
#include "tests/hlo_maker.h"
#include "tests/wire_text.h"

static struct xpl_error err;

struct costs {
    struct xpl_arena a;
    struct xpl_hlo_module *m;
    struct xpl_hlo_costs *c;
};

static inline void begin(struct costs *c, struct xpl_buf *module) {
    *c = (struct costs){0};
    xpl_arena_init(&c->a, (size_t)1 << 30);
    CHECK_OK(xpl_hlo_module_read_full((xpl_bytes_t){module->p, module->n}, &c->a, &c->m, &err),
             &err);
    CHECK(c->m->valid);
    c->c = xpl_hlo_costs_new(c->m, &c->a);
    CHECK(c->c);
}

static inline void end(struct costs *c, struct xpl_buf *module) {
    xpl_arena_fini(&c->a);
    xpl_buf_fini(module);
}

static inline struct xpl_hlo_cost cost_of(struct costs *c, const char *name) {
    struct xpl_hlo_cost ret;
    const uint32_t at = xpl_hlo_module_find(c->m, xpl_str_from(name));
    CHECK(at != UINT32_MAX);
    CHECK_OK(xpl_hlo_cost(c->c, at, NULL, &ret, &err), &err);
    return ret;
}

static inline void check_cost(struct costs *c, const char *name, int64_t model_flops,
                              int64_t device_flops, int64_t bytes, int64_t read, int64_t written) {
    const struct xpl_hlo_cost r = cost_of(c, name);
    CHECK_EQ(r.model_flops, model_flops);
    CHECK_EQ(r.device_flops, device_flops);
    CHECK_EQ(r.bytes, bytes);
    CHECK_EQ(r.hbm_read_bytes, read);
    CHECK_EQ(r.hbm_written_bytes, written);
}

// A module of computations, callees first, of which the one with id `entry` is the entry.
static inline struct xpl_buf module_of(const char *const *computations, int n, int entry) {
    char head[40];
    (void)snprintf(head, sizeof head, "1:\"m\" 4:{} 6:%d", entry);
    struct xpl_buf m = wt_message(head);
    for (int i = 0; i < n; i++) {
        struct xpl_buf c = wt_message(computations[i]);
        mk_close(&m, 3, &c);
    }
    return m;
}

// f32[8,4] and others, as shapes of instructions.
#define F32_8_4 " 3:{2:11 3:[8,4] 5:{1:[1,0]}} "
#define ADD                                                                                        \
    "1:\"add\" 5:1 6:3 2:{1:\"x\" 2:\"parameter\" 35:1 3:{2:11}} "                                 \
    "2:{1:\"y\" 2:\"parameter\" 9:1 35:2 3:{2:11}} "                                               \
    "2:{1:\"xy\" 2:\"add\" 35:3 36:[1,2] 3:{2:11}}"
#define P "2:{1:\"p\" 2:\"parameter\" 35:1" F32_8_4 "} "

#endif
