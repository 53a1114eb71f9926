// SPDX-License-Identifier: Apache-2.0
// Products made and tools answered with every allocation failing once: a clean error or
// the same answer, nothing leaked, and with memory back the same answer as before.
#include <string.h>

#include "analysis/tools/megascale/perfetto.h"
#include "analysis/tools/resolve.h"
#include "tests/barriers_fixture.h"
#include "tests/counters_fixture.h"
#include "tests/fault/answers/each.h"
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

struct request {
    const char *tool;
    const struct xpl_buf *space;
};

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct request *const q = input;
    const struct xpl_tool *const tool = named_tool(q->tool);
    const struct wanted *const wanted = wanted_of(q->tool);
    struct xpl_option list[2];
    for (size_t i = 0; i < wanted->n; i++)
        list[i] = (struct xpl_option){xpl_str_from(wanted->options[2 * i]),
                                      xpl_str_from(wanted->options[2 * i + 1])};
    struct xpl_exec exec = xpl_exec_serial();
    bool device = false;
    void *options;
    const xpl_bytes_t profile = {q->space->p, q->space->n};
    const struct xpl_resolve_host hosts[] = {
        {.name = XPL_STR("a"), .path = "a", .profile = profile},
        {.name = XPL_STR("b"), .path = "b", .profile = profile}};
    XPL_TRY(xpl_resolve_has_device(profile, &device, err));
    XPL_TRY(xpl_tool_options_parse(tool, list, wanted->n, true, arena, &options, err));
    const struct xpl_resolve r = {.tool = tool,
                                  .options = options,
                                  .hosts = hosts,
                                  .n_hosts = tool->hosts == XPL_HOSTS_ONE ? 1 : 2,
                                  .session_has_device = device,
                                  .exec = &exec,
                                  .limit = LIMIT,
                                  .warn = ignore_warning};
    return xpl_resolve(&r, out, err);
}

// Ready-made parts of an index are left out without memory; answers stay the same.
static void fail_each(const char *tool, const struct xpl_buf *space) {
    fault_each(&(struct fault_scenario){run, &(struct request){tool, space}, .least = 4,
                                        .some_only_speed = true});
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

static xpl_status_t perfetto(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                             struct xpl_error *err) {
    const struct xpl_megascale_perfetto_options how = {.group_tiny = true};
    const struct xpl_buf *const space = input;
    struct xpl_exec exec = xpl_exec_serial();
    (void)arena;
    return xpl_megascale_perfetto((xpl_bytes_t){space->p, space->n}, &how, &exec, LIMIT, out, err);
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
    fault_each(&(struct fault_scenario){perfetto, &spaces[4], .least = 6});
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        xpl_buf_fini(&spaces[i]);
    return 0;
}
