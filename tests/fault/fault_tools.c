// SPDX-License-Identifier: Apache-2.0
// Rendering every tool of OpStats with every allocation failing once: a clean error, nothing
// leaked, and with memory back the same answer as before.
#include "tests/unit/opstats/opstats_fixture.h"

#include "base/status.h"
#include "tests/fault/answers/each.h"

static void fill(struct xpl_arena *a, struct xpl_opstats *s, enum xpl_hardware hardware) {
    *s = (struct xpl_opstats){.run_environment = {.hardware_type = hardware,
                                                  .device_type = XPL_STR("some TPU"),
                                                  .device_core_count = 1}};
    for (uint32_t n = 0; n < 20; n++) {
        struct xpl_per_core_step_info *const step = add_step(a, s, n);
        struct xpl_step_info *const info = add_core(a, step, 1, 2 * kMs, XPL_BREAKDOWN_GENERIC);
        add_category(a, info, "infeed", kMs);
        add_type(a, info, 80, kMs);
        (void)add_all_reduce(a, step, 1);
        add_op(a, &s->host_op_metrics_db, "Iterator::TFRecord", "Dataset", n * kMs);
        struct xpl_op_metrics *const m =
            add_op(a, &s->device_op_metrics_db, "fusion", "loop fusion", n * kMs);
        m->source_info = (struct xpl_source_info){XPL_STR("a.py"), XPL_STR("a.py:1"), 1};
        m->children = xpl_arena_zalloc(a, sizeof *m->children);
        CHECK(m->children);
        add_op(a, m->children, "inner", "sc", n)->core_type = XPL_CORE_SPARSE;
        add_text(a, &s->diagnostics.errors, "broken");
    }
    add_core_details(a, s, (struct xpl_core_details){.core_id = 1, .hostname = XPL_STR("host")});
}

static bool takes(const struct xpl_tool *tool, const char *key) {
    for (size_t i = 0; i < xpl_tool_n_options(tool); i++)
        if (strcmp(xpl_tool_option_at(tool, i)->key, key) == 0) return true;
    return false;
}

struct answer {
    const struct xpl_tool *tool;
    const struct xpl_opstats *stats;
};

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct answer *const a = input;
    static const char *const peaks[] = {"cpu_core_gb_s", "10", NULL};
    (void)arena;
    return render_op_stats(a->tool, a->stats, takes(a->tool, peaks[0]) ? peaks : NULL, 8 << 20, out,
                           err);
}

int main(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(8 << 20);
    const enum xpl_hardware kinds[] = {XPL_HW_TPU, XPL_HW_GPU, XPL_HW_CPU_ONLY};
    size_t n_tools, n_asked = 0;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    for (size_t i = 0; i < 3; i++) {
        struct xpl_opstats s;
        fill(&arena, &s, kinds[i]);
        for (size_t k = 0; k < n_tools; k++) {
            if (!tool_shows_op_stats(tools[k])) continue;
            fault_each(&(struct fault_scenario){run, &(struct answer){tools[k], &s}, .least = 1});
            n_asked++;
        }
    }
    CHECK(n_asked >= 3 * 6);
    return 0;
}
