// SPDX-License-Identifier: Apache-2.0
// Tables of ours that other commands and pages are made of: op_list, trace_search, run_summary.
#include "analysis/compare/compare.h"
#include "tests/unit/opstats/device_profiles.h"
#include "tests/unit/tools/ask_tool.h"

enum { LIMIT = 1 << 26 };
static struct xpl_error err;

// A GPU that runs two ops, one of them twice, with kernels and arguments.
static struct xpl_buf profile(int64_t duration_ps) {
    static const char *const ops[] = {"dot_1", "add_2", "dot_1"};
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf line = mk_line(1, "Stream #1(Compute)");
    for (int64_t i = 0; i < 3; i++) {
        struct xpl_buf ev = mk_event(&p, ops[i], i * 10000000, duration_ps * (i + 1));
        mk_stat_str(&p, &ev, "kernel_details",
                    "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1"
                    " block:64,1,1");
        mk_stat_ref(&p, &ev, "hlo_module", "jit_f");
        mk_stat_ref(&p, &ev, "hlo_op", ops[i]);
        mk_stat_int(&p, &ev, "program_id", 7);
        mk_stat_str(&p, &ev, "note", i == 1 ? "Wide ROW 12" : "narrow row 3");
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

static struct xpl_buf ask(const char *tool, const char *key, const char *value,
                          const struct xpl_buf *spaces, size_t n) {
    struct xpl_buf out;
    CHECK_OK(
        ask_tool(
            &(struct tool_request){
                .tool = tool, .key = key, .value = value, .spaces = spaces, .n = n, .limit = LIMIT},
            &out, &err),
        &err);
    return out;
}

static void has(const struct xpl_buf *out, const char *part) {
    if (!xpl_str_has((xpl_str_t){(const char *)out->p, out->n}, xpl_str_from(part)))
        printf("%s is not in\n%.*s\n", part, (int)out->n, (const char *)out->p);
    CHECK(xpl_str_has((xpl_str_t){(const char *)out->p, out->n}, xpl_str_from(part)));
}

// Ops of both hosts are added up, idle time is none of them.
static void test_op_list(void) {
    struct xpl_buf spaces[] = {mk_tpu_device(true), mk_tpu_device(true)};
    struct xpl_buf out = ask("op_list", "cpu_as_device", "false", spaces, 2);
    has(&out, "{\"ops\":[{\"name\":\"fusion.1\",\"category\":\"loop fusion\","
              "\"framework_op\":\"jit(f)/add:\",\"expression\":\"%fusion.1 = f32[8] fusion(...)\","
              "\"source_file\":\"model.py\",\"source_line\":12,\"program_id\":\"7\","
              "\"occurrences\":12,\"time_ps\":1200,\"self_time_ps\":1200},");
    has(&out, "{\"name\":\"while.2\",\"category\":\"while\",\"framework_op\":\"\","
              "\"expression\":\"\",\"source_file\":\"\",\"source_line\":0,\"program_id\":\"7\","
              "\"occurrences\":2,\"time_ps\":2000,\"self_time_ps\":680}");
    CHECK(!xpl_str_has((xpl_str_t){(const char *)out.p, out.n}, XPL_STR("IDLE")));
    xpl_buf_fini(&out);
    for (size_t i = 0; i < 2; i++)
        xpl_buf_fini(&spaces[i]);
}

// All words, in any order and case.
static void test_search(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = profile(1000000);
    struct xpl_buf out = ask("trace_search", "text", "row wide", &space, 1);
    has(&out, "\"p\":{\"count\":\"1\",\"names\":\"1\",\"total_ps\":\"2000000\"},\"rows\":[{\"c\":"
              "[{\"v\":\"add_2\"},{\"v\":1002.0},{\"v\":1.0},{\"v\":10.0},{\"v\":2.0}]}]}");
    xpl_buf_fini(&out);
    out = ask("trace_search", "text", "Row", &space, 1);
    has(&out, "\"p\":{\"count\":\"3\",\"names\":\"2\",\"total_ps\":\"6000000\"},\"rows\":[{\"c\":"
              "[{\"v\":\"dot_1\"},{\"v\":1002.0},{\"v\":1.0},{\"v\":0.0},{\"v\":1.0}]},");
    xpl_buf_fini(&out);
    out = ask("trace_search", "text", "row column", &space, 1);
    has(&out, "\"p\":{\"count\":\"0\",\"names\":\"0\",\"total_ps\":\"0\"},\"rows\":[]}");
    xpl_buf_fini(&out);
}

// Kernels of both hosts, each once.
static void test_kernels(void) {
    struct xpl_buf spaces[] = {profile(1000000), profile(2000000)};
    struct xpl_buf out = ask("run_summary", "cpu_as_device", "false", spaces, 2);
    struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_run_summary *s;
    CHECK_OK(xpl_run_summary_decode((xpl_bytes_t){out.p, out.n}, &arena, &s, &err), &err);
    CHECK_EQ(s->n_hosts, 2);
    CHECK_EQ(s->kernels.n, 2);
    CHECK_STR(s->kernels.v[0].text[XPL_RUN_KERNEL], "add_2");
    CHECK_EQ(s->kernels.v[0].ps, 2000000 + 4000000);
    CHECK_EQ(s->kernels.v[0].count, 2);
    CHECK_STR(s->kernels.v[1].text[XPL_RUN_KERNEL], "dot_1");
    CHECK_EQ(s->kernels.v[1].ps, (1 + 3) * (1000000 + 2000000));
    CHECK_EQ(s->kernels.v[1].count, 4);
    xpl_arena_fini(&arena);
    xpl_buf_fini(&out);
    for (size_t i = 0; i < 2; i++)
        xpl_buf_fini(&spaces[i]);
}

// A TPU that runs one op, of 30 us.
static struct xpl_buf tpu(int64_t id, const char *name, const char *op) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(id, name);
    struct xpl_buf line = mk_line(3, "XLA Ops");
    mk_plain(&p, &line, op, 0, 30000000);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

static void check_devices(const struct xpl_buf *spaces, size_t n, uint64_t devices,
                          uint64_t wall_ps) {
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf out = ask("run_summary", "cpu_as_device", "false", spaces, n);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_run_summary *s;
    CHECK_OK(xpl_run_summary_decode((xpl_bytes_t){out.p, out.n}, &arena, &s, &err), &err);
    CHECK_EQ(s->n_hosts, n);
    CHECK_EQ(s->n_devices, devices);
    CHECK_EQ(s->wall_ps, wall_ps);
}

// Devices that the program does not use count only where it uses none.
static void test_unused_devices(void) {
    struct xpl_buf used = tpu(2, "/device:TPU:0", "%fusion.2 = f32[8] fusion(f32[8] %x)"),
                   unused = tpu(3, "/device:TPU:1", "%infeed.1 = (f32[8]) infeed(token[] %t)"),
                   both = mk_open();
    xpl_buf_put(&both, used.p, used.n);
    xpl_buf_put(&both, unused.p, unused.n);
    const struct xpl_buf hosts[] = {used, unused};
    check_devices(&used, 1, 1, 30000000);
    check_devices(&both, 1, 1, 30000000);
    check_devices(hosts, 2, 1, 30000000);
    check_devices(&unused, 1, 1, 30000000);
    xpl_buf_fini(&both);
    xpl_buf_fini(&unused);
    xpl_buf_fini(&used);
}

int main(void) {
    test_op_list();
    test_search();
    test_kernels();
    test_unused_devices();
    return 0;
}
