// SPDX-License-Identifier: Apache-2.0
// Products made and tools answered with every allocation failing once: a clean error or
// the same answer, nothing leaked, and with memory back the same answer as before.
#include <string.h>

#include "analysis/tools/megascale/perfetto.h"
#include "analysis/tools/resolve.h"
#include "base/arena.h"
#include "tests/barriers_fixture.h"
#include "tests/check.h"
#include "tests/counters_fixture.h"
#include "tests/hlo_maker.h"
#include "tests/megascale_fixture.h"
#include "tests/render.h"
#include "tests/trace_fixture.h"

enum { LIMIT = 16 << 20 };

static void ignore_warning(void *arg, xpl_str_t host, xpl_str_t text) {
    (void)arg;
    (void)host;
    (void)text;
}

// Options with which a tool does more.
static const struct wanted {
    const char *tool;
    const char *options[4]; // key, value
    size_t n;               // pairs
} wanted_options[] = {
    {"trace_viewer@", {"search_prefix", "a"}, 1},
    {"graph_viewer", {"program_id", "5", "type", "json"}, 2},
    {"memory_viewer", {"program_id", "5"}, 1},
    {"event_time_fraction_analyzer", {"event_name", "barrier"}, 1},
    {"", {NULL}, 0},
};

static const struct wanted *wanted_of(const char *tool) {
    const struct wanted *w = wanted_options;
    while (w->n && strcmp(w->tool, tool) != 0)
        w++;
    return w;
}

static xpl_status_t run(const char *name, const struct xpl_buf *space, struct xpl_buf *out) {
    const struct xpl_tool *const tool = named_tool(name);
    const struct wanted *const wanted = wanted_of(name);
    struct xpl_option list[2];
    for (size_t i = 0; i < wanted->n; i++)
        list[i] = (struct xpl_option){xpl_str_from(wanted->options[2 * i]),
                                      xpl_str_from(wanted->options[2 * i + 1])};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_arena arena;
    bool device = false;
    void *options;
    xpl_arena_init(&arena, 1 << 20);
    xpl_buf_init(out, LIMIT);
    const xpl_bytes_t profile = {space->p, space->n};
    const struct xpl_resolve_host hosts[] = {
        {.name = XPL_STR("a"), .path = "a", .profile = profile},
        {.name = XPL_STR("b"), .path = "b", .profile = profile}};
    xpl_status_t st = xpl_resolve_has_device(profile, &device, &err);
    if (st == XPL_OK)
        st = xpl_tool_options_parse(tool, list, wanted->n, true, &arena, &options, &err);
    if (st == XPL_OK) {
        const struct xpl_resolve r = {.tool = tool,
                                      .options = options,
                                      .hosts = hosts,
                                      .n_hosts = tool->hosts == XPL_HOSTS_ONE ? 1 : 2,
                                      .session_has_device = device,
                                      .exec = &exec,
                                      .limit = LIMIT,
                                      .warn = ignore_warning};
        st = xpl_resolve(&r, out, &err);
    }
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    xpl_arena_fini(&arena);
    return st;
}

static void fail_each(const char *tool, const struct xpl_buf *space) {
    struct xpl_buf expected, got;
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    CHECK_EQ(run(tool, space, &expected), XPL_OK);
    const uint64_t n = xpl_fault_count();
    CHECK(n > 3);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        // Ready-made parts of an index are left out without memory; answers stay the same.
        const xpl_status_t st = run(tool, space, &got);
        if (st == XPL_OK)
            CHECK(got.n == expected.n && memcmp(got.p, expected.p, expected.n) == 0);
        else
            CHECK_EQ(st, XPL_RESOURCE_EXHAUSTED);
        xpl_buf_fini(&got);
        CHECK_EQ(xpl_fault_live(), live + (expected.p != NULL));
    }
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK_EQ(run(tool, space, &got), XPL_OK);
    CHECK(got.n == expected.n && memcmp(got.p, expected.p, expected.n) == 0);
    xpl_buf_fini(&got);
    xpl_buf_fini(&expected);
}

static void fail_hlo_modules(const struct xpl_buf *space) {
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_product_input in = {
        .profile = {space->p, space->n}, .exec = &exec, .limit = LIMIT};
    const int64_t live = xpl_fault_live();
    uint64_t i = 0;
    for (xpl_status_t st = XPL_RESOURCE_EXHAUSTED; st != XPL_OK; i++) {
        struct xpl_error err = {0};
        void *value = NULL;
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        st = xpl_product_hlo_modules.make(&in, &value, &err);
        CHECK(st == XPL_OK || (st == XPL_RESOURCE_EXHAUSTED && !value && err.msg[0]));
        xpl_product_hlo_modules.free(value);
        CHECK_EQ(xpl_fault_live(), live);
    }
    CHECK(i > 2);
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
}

static void fail_perfetto(const struct xpl_buf *space) {
    const struct xpl_megascale_perfetto_options how = {.group_tiny = true};
    struct xpl_exec exec = xpl_exec_serial();
    const int64_t live = xpl_fault_live();
    uint64_t i = 0;
    for (xpl_status_t st = XPL_RESOURCE_EXHAUSTED; st != XPL_OK; i++) {
        struct xpl_error err = {0};
        struct xpl_buf out;
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        xpl_buf_init(&out, LIMIT);
        st = xpl_megascale_perfetto((xpl_bytes_t){space->p, space->n}, &how, &exec, LIMIT, &out,
                                    &err);
        CHECK(st == XPL_OK || (st == XPL_RESOURCE_EXHAUSTED && err.msg[0]));
        xpl_buf_fini(&out);
        CHECK_EQ(xpl_fault_live(), live);
    }
    CHECK(i > 5);
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
}

// A profile of one HLO program.
static struct xpl_buf program(void) {
    struct xpl_buf space = mk_open(), module = mk_training_module("m");
    struct mk_plane p = mk_metadata_plane();
    mk_program(&p.body, 5, &module);
    mk_plane_end(&p, &space);
    return space;
}

int main(void) {
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    struct xpl_buf spaces[] = {trace_fixture(),
                               tpu_fixture(),
                               program(),
                               counters_fixture(),
                               megascale_fixture(2, true),
                               barriers_fixture("h", 4, BR_STEP_PS / 5)};
    for (size_t i = 0; i < n; i++) {
        // Another test covers bundles of IREE.
        if (tools[i]->needs[0] == &xpl_product_iree_bundle) continue;
        // memory_profile has no answer without a plane of the host.
        const bool host = tools[i]->needs[0] == &xpl_product_memory_profile;
        const bool hlo = tools[i]->needs[0] == &xpl_product_hlo_modules;
        const bool counters = tools[i]->needs[0] == &xpl_product_perf_counters;
        const bool megascale = tools[i]->needs[0] == &xpl_product_megascale;
        const bool barriers = tools[i]->needs[0] == &xpl_product_barriers ||
                              tools[i]->needs[0] == &xpl_product_devices;
        fail_each(tools[i]->name, &spaces[barriers    ? 5
                                          : megascale ? 4
                                          : counters  ? 3
                                          : hlo       ? 2
                                          : host      ? 0
                                                      : i % 2]);
    }
    fail_hlo_modules(&spaces[2]);
    fail_perfetto(&spaces[4]);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        xpl_buf_fini(&spaces[i]);
    return 0;
}
