// SPDX-License-Identifier: Apache-2.0
// A profile in memory as the source of a statement.
#ifndef XPL_TESTS_UNIT_SQL_SQL_PROFILE_H_
#define XPL_TESTS_UNIT_SQL_SQL_PROFILE_H_

#include "sql/sql.h"
#include "tests/hlo_maker.h"
#include "tests/xspace_maker.h"

struct sql_profile {
    struct xpl_buf bytes;
    struct xpl_sql_profile row;
    struct xpl_exec exec;
    unsigned opened, closed;
    bool is_broken, is_endless; // endless: until it is cancelled
};
static struct sql_profile g_profile;

static xpl_status_t open_profile(void *arg, size_t i, struct xpl_exec *exec, void **ret_file,
                                 xpl_bytes_t *ret, struct xpl_error *err) {
    struct sql_profile *const p = arg;
    CHECK_EQ(i, 0);
    while (p->is_endless)
        if (xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    if (p->is_broken) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "broken for the test");
    p->opened++;
    *ret_file = p;
    *ret = (xpl_bytes_t){p->bytes.p, p->bytes.n};
    return XPL_OK;
}

static void close_profile(void *file) {
    ((struct sql_profile *)file)->closed++;
}

// `n` events 1 us apart on each of two lines, by turns "a" and "b", of 0.5 us.
static void make_profile(uint32_t n) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(0, "/device:GPU:0");
    for (int k = 0; k < 2; k++) {
        struct xpl_buf line = mk_line(k, k ? "7" : "one");
        for (uint32_t i = 0; i < n; i++) {
            struct xpl_buf ev = mk_event(&p, i % 2 ? "b" : "a", (int64_t)i * 1000000, 500000);
            if (n < 100) mk_stat_int(&p, &ev, "number", i);
            mk_event_end(&line, &ev);
        }
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    g_profile = (struct sql_profile){.bytes = space,
                                     .row = {.session = XPL_STR("run"),
                                             .host = XPL_STR("h"),
                                             .path = "run/h.xplane.pb",
                                             .key = XPL_STR("k")},
                                     .exec = xpl_exec_serial()};
}

// In place of the events: a program (mk_training_module), whose "fusion.1" ran `n` times on a CPU
// for 2 us, and an op of another one that has no such instruction.
static inline void make_program(int n) {
    xpl_buf_fini(&g_profile.bytes);
    g_profile.bytes = mk_open();
    struct mk_plane p = mk_metadata_plane();
    struct xpl_buf module = mk_training_module("jit_step");
    mk_program(&p.body, 7, &module);
    module = mk_module("jit_other", 1); // without an instruction
    mk_program(&p.body, 8, &module);
    mk_plane_end(&p, &g_profile.bytes);
    mk_plane_begin(&p, 2, "/host:CPU");
    struct xpl_buf line = mk_line(0, "thread");
    for (int i = 0; i <= n; i++) {
        struct xpl_buf ev =
            mk_event(&p, i < n ? "fusion.1" : "copy.9", (int64_t)i * 3000000, 2000000);
        mk_stat_str(&p, &ev, "hlo_op", i < n ? "fusion.1" : "copy.9");
        mk_stat_str(&p, &ev, "hlo_module", i < n ? "jit_step" : "jit_other");
        mk_stat_int(&p, &ev, "program_id", i < n ? 7 : 8);
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &g_profile.bytes);
}

static struct xpl_sql_request request_of(const char *statement) {
    return (struct xpl_sql_request){.statement = xpl_str_from(statement),
                                    .source = {.profiles = &g_profile.row,
                                               .n = 1,
                                               .open = open_profile,
                                               .close = close_profile,
                                               .arg = &g_profile},
                                    .limits = xpl_sql_default_limits,
                                    .exec = &g_profile.exec,
                                    .limit = (size_t)1 << 30};
}

#endif
