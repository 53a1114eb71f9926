// SPDX-License-Identifier: Apache-2.0
// Tool megascale_stats: what a transfer took, of one host and of several.

#include "tests/megascale_fixture.h"
#include "tests/unit/tools/ask_tool.h"

static struct xpl_buf g_hosts[2];
static struct xpl_error err;

static xpl_status_t ask(const char *key, const char *value, size_t n_hosts, size_t limit,
                        struct xpl_buf *out) {
    return ask_tool(&(struct tool_request){.tool = "megascale_stats",
                                           .key = key,
                                           .value = value,
                                           .spaces = g_hosts,
                                           .n = n_hosts,
                                           .limit = limit},
                    out, &err);
}

static void rows_are(const char *exact, size_t n_hosts, const char *rows) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_OK(ask("xprof_exact", exact, n_hosts, 1 << 24, &out), &err);
    const xpl_str_t text = {(const char *)out.p, out.n};
    const size_t at = xpl_str_find(text, XPL_STR("\"rows\":"), 0);
    CHECK(at != SIZE_MAX);
    CHECK_STR(xpl_str_sub(text, at, SIZE_MAX), rows);
}

#define ROW(host, recv, total, n)                                                                  \
    "\"rows\":[{\"c\":[{\"v\":\"rdv_1\"},{\"v\":\"recv-done.1\"},{\"v\":\"send.1\"},"              \
    "{\"v\":\"ALL_REDUCE\"},{\"v\":0.175},{\"v\":\"" host                                          \
    "\"},{\"v\":0.24},{\"v\":0.005},{\"v\":0.007},"                                                \
    "{\"v\":" recv "},{\"v\":0.05},{\"v\":0.065},{\"v\":" total "},{\"v\":" n "},"                 \
    "{\"f\":\"6.0K\",\"v\":6144.0},{\"v\":0.28086857142857147}]}]}]"

// test_megascale_perfetto.c shows its contents.
static void test_perfetto(void) {
    struct xpl_buf out;
    CHECK_STATUS(ask("perfetto", "true", 2, 1 << 24, &out), XPL_FAILED_PRECONDITION, &err);
    xpl_buf_fini(&out);
    CHECK_OK(ask("perfetto", "true", 1, 1 << 24, &out), &err);
    CHECK(out.n > 20 && out.p[0] == 0x1f && out.p[1] == 0x8b);
    xpl_buf_fini(&out);
}

int main(void) {
    struct xpl_buf out;
    g_hosts[0] = megascale_fixture(2, true);
    g_hosts[1] = megascale_fixture(1, false);
    rows_are("false", 1, ROW("0.112", "0.003", "0.13", "2.0"));
    rows_are("true", 1, ROW("-", "0.0", "0.13", "2.0"));
    // A host without such events empties XProf's table, and not ours.
    rows_are("false", 2, ROW("0.112", "0.003", "0.13", "2.0"));
    rows_are("true", 2, "\"rows\":[]}]");
    xpl_buf_fini(&g_hosts[1]);
    g_hosts[1] = megascale_fixture(1, true);
    rows_are("false", 2, ROW("0.112", "0.003", "0.195", "3.0"));
    test_perfetto();
    CHECK_STATUS(ask("xprof_exact", "false", 1, 2000, &out), XPL_RESOURCE_EXHAUSTED, &err);
    xpl_buf_fini(&out);
    const size_t whole = g_hosts[0].n;
    for (g_hosts[0].n = 0; g_hosts[0].n < whole; g_hosts[0].n++) {
        const xpl_status_t st = ask("xprof_exact", "false", 1, 1 << 24, &out);
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS);
        xpl_buf_fini(&out);
    }
    g_hosts[0].n = whole;
    xpl_buf_fini(&g_hosts[0]);
    g_hosts[0] = megascale_fixture(3, true);
    rows_are("false", 1, ROW("0.000", "0.003", "0.195", "3.0")); // always in a copy
    for (size_t i = 0; i < 2; i++)
        xpl_buf_fini(&g_hosts[i]);
    return 0;
}
