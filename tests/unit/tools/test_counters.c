// SPDX-License-Identifier: Apache-2.0
// Tools of hardware counters: perf_counters, utilization_viewer, kernel_utilization.
// tests/parity/counters.py shows equality with XProf; these tests show differences, and broken
// input.
#include <string.h>

#include "analysis/tools/counters/units.h"
#include "tests/cancelled.h"
#include "tests/counters_fixture.h"
#include "tests/unit/tools/ask_tool.h"

static struct xpl_buf g_space;
static struct xpl_error err;
static struct xpl_exec g_exec;
static unsigned g_warned;

static void count_warning(void *arg, xpl_str_t host, xpl_str_t text) {
    (void)arg;
    CHECK_STR(host, "b");
    CHECK(xpl_str_has(text, XPL_STR("one host")));
    g_warned++;
}

static const char *g_options[4] = {"", "", "", ""}; // key and value, twice

// Asked of one host, or of two that are alike.
static xpl_status_t ask(const char *name, bool exact, size_t n_hosts, size_t limit,
                        struct xpl_buf *out) {
    const struct xpl_buf spaces[2] = {g_space, g_space};
    const struct tool_request q = {
        .tool = name,
        .key = "xprof_exact",
        .value = exact ? "true" : "false",
        .spaces = spaces,
        .n = n_hosts,
        .limit = limit,
        .more = {{g_options[0], g_options[1]}, {g_options[2], g_options[3]}},
        .exec = &g_exec,
        .warn = count_warning};
    return ask_tool(&q, out, &err);
}

static void shows(const char *name, bool exact, size_t n_hosts, const char *part) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_OK(ask(name, exact, n_hosts, 1 << 24, &out), &err);
    const bool has = xpl_str_has((xpl_str_t){(const char *)out.p, out.n}, xpl_str_from(part));
    if (!has) fprintf(stderr, "%s\nnot in: %.*s\n", part, (int)out.n, (const char *)out.p);
    CHECK(has);
}

// Names in small letters, the chip before the device, the profile's words; a fraction is shown.
static void test_readings(void) {
    shows("perf_counters", false, 1,
          "{\"c\":[{\"v\":\"a\"},{\"v\":9.0},{\"v\":\"jit_f(1)\"},{\"v\":42.0},{\"v\":\"cycles\"},"
          "{\"f\":\"0x1ab3f0\",\"v\":1750000.0},{\"v\":\"what it counts\"},{\"v\":\"a set\"}]}");
    shows("perf_counters", false, 1, "{\"v\":\"fraction\"},{\"f\":\"2.5\",\"v\":2.5},{\"v\":\"\"}");
    shows("perf_counters", true, 1, "{\"v\":\"fraction\"},{\"f\":\"0x0\",\"v\":0.0},{\"v\":\"\"}");
    shows("perf_counters", false, 2, "{\"c\":[{\"v\":\"b\"},{\"v\":9.0},{\"v\":\"jit_f(1)\"}");
}

static void test_units(void) {
    shows("utilization_viewer", false, 1,
          "[{\"v\":0.0},{\"v\":3.0},{\"v\":42.0},{\"v\":0.0},{\"v\":\"2 MXU Busy\"},"
          "{\"v\":437500.0},{\"v\":1750000.0},{\"v\":\"cycles\"}]");
    shows("utilization_viewer", false, 1,
          "{\"v\":\"HBM Write Ratio\"},{\"v\":32000.0},{\"v\":32000.0},{\"v\":\"percent\"}]");
    g_warned = 0;
    shows("utilization_viewer", false, 2, "{\"v\":\"Scalar Unit\"},{\"v\":7.0},{\"v\":3500000.0}");
    CHECK_EQ(g_warned, 1);
}

static void shows_with(const char *key, const char *value, const char *key2, const char *value2,
                       const char *part) {
    g_options[0] = key;
    g_options[1] = value;
    g_options[2] = key2;
    g_options[3] = value2;
    shows("kernel_utilization", false, 1, part);
    for (size_t i = 0; i < 4; i++)
        g_options[i] = "";
}

// Parity: counters.py.
static void test_kernel_options(void) {
    static const char one[] = "{\n  \"devices\": [\n    {\n      \"device_id\": 1,";
    shows_with("device_id", "1", "", "", one);
    shows_with("device_id", " +01 ", "", "", one);
    shows_with("device_id", "77", "", "", "\"devices\": [],");
    shows_with("device_id", "x", "", "", "\"device_id\": 3,");
    shows_with("device_id", "-1", "", "", "\"device_id\": 3,");
    shows_with("kernel", "kern", "", "", "\"duration_us\": 1000.0");
    shows_with("kernel", "none", "", "",
               "\"device_id\": 3,\n      \"device_type\": "
               "\"TPU v6 Lite\",\n      \"kernels\": []");
    shows_with("kernel_name", "none", "kernel", "kern", "\"duration_us\": 1000.0");
    shows_with("kernel_name", "none", "kernel", "",
               "\"device_id\": 3,\n      \"device_type\": "
               "\"TPU v6 Lite\",\n      \"kernels\": []");
    shows_with("duration_us", "7.5", "", "", "\"duration_us\": 7.5,");
    shows_with("duration_us", "7.5x", "", "", "\"duration_us\": 1000.0");
    shows_with("duration_us", "-1", "", "", "\"duration_us\": 1000.0");
    shows_with("duration_us", "-inf", "", "", "\"duration_us\": 1000.0");
    shows_with("duration_us", "inf", "", "", "\"duration_us\": null,");
    shows_with("duration_us", "1e400", "", "", "\"duration_us\": null,");
    shows_with("duration_us", "7.5", "", "", "\"mxu_utilization\": 25.0");
    shows_with("duration_us", "500", "force_duration", "true", "\"mxu_utilization\": 50.0");
}

// A duration of the sample's own tells the cycles that no counter does.
static void test_kernels(void) {
    shows("kernel_utilization", false, 1,
          "\"duration_us\": 1000.0,\n          \"kernel_name\": \"default_kernel\"");
    shows("kernel_utilization", false, 1, "\"mxu_utilization\": 25.0");
    shows("kernel_utilization", false, 1, "\"duration_us\": 5.0");
    shows("kernel_utilization", false, 1, "\"Scalar Unit\": 0.01,"); // 2 of 2 * 8750
    shows("kernel_utilization", false, 1,
          "\"device_id\": 1,\n      \"device_type\": \"TPU v7x\",\n      \"kernels\": []");
}

static double achieved(const struct xpl_counter *v, size_t n, bool sum, const char *name) {
    const struct xpl_tpu_unit_model *const model = xpl_tpu_unit_model_find(XPL_STR("TPU v6 Lite"));
    const struct xpl_tpu_unit_sample sample = {.v = v, .n = n, .sum = sum, .clock = 1};
    const struct xpl_counter *order[4];
    struct xpl_tpu_unit units[XPL_UNITS_MAX];
    const size_t n_units = xpl_tpu_units_compute(model, &sample, order, units);
    for (size_t i = 0; i < n_units; i++)
        if (strcmp(units[i].row->name, name) == 0) return units[i].achieved;
    return -1;
}

// Values that no counter has; several of one counter.
static void test_values(void) {
    struct xpl_counter c[2] = {{.id = (uint64_t)kCtBusy, .u = 5, .begin_ps = 10},
                               {.id = (uint64_t)kCtBusy, .u = 7}};
    CHECK(achieved(c, 2, false, "2 MXU Busy") == 5);
    CHECK(achieved(c, 2, true, "2 MXU Busy") == 12);
    CHECK(achieved(c, 0, true, "2 MXU Busy") == 0);
    CHECK(achieved(c, 2, true, "none") == -1);
    c[0].u = UINT64_MAX;
    CHECK(achieved(c, 2, true, "2 MXU Busy") == 6); // around 2^64
    const double in[] = {1e30, -2, __builtin_nan(""), 3.9}, out[] = {0x1p64, 0, 0, 3};
    for (size_t i = 0; i < 4; i++) {
        c[0] = (struct xpl_counter){.id = (uint64_t)kCtBusy, .is_double = true, .d = in[i]};
        CHECK(achieved(c, 1, false, "2 MXU Busy") == out[i]);
    }
    CHECK(!xpl_tpu_unit_model_find(XPL_STR("TPU v5")));
    CHECK(xpl_tpu_unit_model_find(XPL_STR("TPU v7x"))->rows->n <= XPL_UNITS_MAX);
}

static void test_ends(void) {
    static const char *const tools[] = {"perf_counters", "utilization_viewer",
                                        "kernel_utilization"};
    struct xpl_buf out;
    for (size_t i = 0; i < 3; i++) {
        CHECK_STATUS(ask(tools[i], false, 1, 2000, &out), XPL_RESOURCE_EXHAUSTED, &err);
        xpl_buf_fini(&out);
        g_exec.cancelled = always_cancelled;
        CHECK_STATUS(ask(tools[i], false, 1, 1 << 24, &out), XPL_CANCELLED, &err);
        xpl_buf_fini(&out);
        g_exec.cancelled = NULL;
    }
    const struct xpl_buf whole = g_space;
    for (g_space.n = 0; g_space.n < whole.n; g_space.n++) {
        const xpl_status_t st = ask("perf_counters", false, 1, 1 << 24, &out);
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS);
        xpl_buf_fini(&out);
    }
    g_space = whole;
}

int main(void) {
    g_exec = xpl_exec_serial();
    g_space = counters_fixture();
    test_readings();
    test_units();
    test_kernels();
    test_kernel_options();
    test_values();
    test_ends();
    xpl_buf_fini(&g_space);
    return 0;
}
