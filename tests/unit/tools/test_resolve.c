// SPDX-License-Identifier: Apache-2.0
// From profiles to answers, and which hosts are left out of them.
#include "analysis/tools/resolve.h"

#include <string.h>

#include "analysis/tools/foreign.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/data_file.h"
#include "tests/render.h"

enum { MAX = 4 };
#define LIMIT ((size_t)1 << 28)

static char g_warnings[2000];

static void note_warning(void *arg, xpl_str_t host, xpl_str_t text) {
    (void)arg;
    const size_t n = strlen(g_warnings);
    (void)snprintf(g_warnings + n, sizeof g_warnings - n, "%.*s: %.*s\n", XPL_STR_FMT(host),
                   XPL_STR_FMT(text));
}

// ---- xpl_tool_choose_hosts ----

static struct xpl_error g_errs[MAX];
static struct xpl_host_outcome g_outcomes[MAX];
static struct xpl_tool_host g_hosts[MAX];

// Outcomes by letter: "o" good, "e" empty, "b" broken, "n" not there, "m" out of memory.
static xpl_status_t choose(const char *tool, const char *outcomes, bool by_name,
                           struct xpl_error *err) {
    static const char *const names[MAX] = {"h0", "h1", "h2", "h3"};
    static const void *const products[] = {"value"};
    const size_t n = strlen(outcomes);
    g_warnings[0] = 0;
    *err = (struct xpl_error){0};
    for (size_t i = 0; i < n; i++) {
        const char o = outcomes[i];
        const xpl_status_t st = o == 'b'   ? XPL_DATA_LOSS
                                : o == 'n' ? XPL_NOT_FOUND
                                : o == 'm' ? XPL_RESOURCE_EXHAUSTED
                                           : XPL_OK;
        g_errs[i] = (struct xpl_error){.code = st};
        (void)snprintf(g_errs[i].msg, sizeof g_errs[i].msg, "why %zu", i);
        g_outcomes[i] = (struct xpl_host_outcome){st, &g_errs[i], o == 'e'};
        g_hosts[i] = (struct xpl_tool_host){.name = xpl_str_from(names[i]), .products = products};
    }
    return xpl_tool_choose_hosts(named_tool(tool), g_outcomes, n, by_name, g_hosts, note_warning,
                                 NULL, err);
}

static void test_all_are_good(void) {
    struct xpl_error err;
    CHECK_EQ(choose("kernel_stats", "oo", true, &err), XPL_OK);
    CHECK(g_hosts[0].products && g_hosts[1].products && !g_warnings[0]);
    CHECK_EQ(choose("kernel_stats", "eo", false, &err), XPL_OK);
    CHECK(g_hosts[0].products);
    CHECK(strcmp(g_warnings, "h0: the profile is empty (0 bytes)\n") == 0);
    CHECK_EQ(choose("trace_viewer@", "e", false, &err), XPL_OK); // only combinations tell of it
    CHECK(!g_warnings[0]);
}

static void test_broken_are_left_out(void) {
    struct xpl_error err;
    CHECK_EQ(choose("kernel_stats", "bob", false, &err), XPL_OK);
    CHECK(!g_hosts[0].products && g_hosts[1].products && !g_hosts[2].products);
    CHECK(xpl_str_eq(g_hosts[2].problem, XPL_STR("why 2")) && !g_hosts[1].problem.len);
    CHECK(strcmp(g_warnings, "h0: why 0\nh2: why 2\n") == 0);
    CHECK_EQ(choose("trace_viewer@", "ob", false, &err), XPL_OK);
    CHECK(strcmp(g_warnings, "h1: why 1\n") == 0);
}

static void test_broken_are_errors(void) {
    struct xpl_error err;
    CHECK_EQ(choose("kernel_stats", "ob", true, &err), XPL_DATA_LOSS); // asked for by name
    CHECK(strcmp(err.msg, "why 1") == 0);
    CHECK_EQ(choose("kernel_stats", "b", false, &err), XPL_DATA_LOSS); // the only one
    CHECK_EQ(choose("kernel_stats", "bb", false, &err), XPL_DATA_LOSS);
    CHECK(strcmp(err.msg, "why 0") == 0);
}

static void test_others(void) {
    struct xpl_error err;
    CHECK_EQ(choose("kernel_stats", "on", false, &err), XPL_OK);
    CHECK_EQ(choose("trace_viewer@", "on", false, &err), XPL_NOT_FOUND);
    CHECK_EQ(choose("kernel_stats", "om", false, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(strcmp(err.msg, "why 1") == 0);
}

// ---- xpl_resolve ----

struct changing {
    size_t verified;
    size_t bad; // the host that changed meanwhile, SIZE_MAX: none
};

static xpl_status_t verify(void *arg, size_t host, struct xpl_error *err) {
    struct changing *const c = arg;
    c->verified++;
    if (host == c->bad) XPL_RETURN_ERROR(err, XPL_ABORTED, "it changed");
    return XPL_OK;
}

static xpl_status_t resolve(const char *tool, const struct xpl_resolve_host *hosts, size_t n,
                            bool by_name, struct changing *c, struct xpl_buf *out,
                            struct xpl_error *err) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_arena arena;
    void *options;
    xpl_arena_init(&arena, 1 << 20);
    *err = (struct xpl_error){0};
    out->n = 0;
    g_warnings[0] = 0;
    CHECK_EQ(xpl_tool_options_default(named_tool(tool), &arena, &options, err), XPL_OK);
    const struct xpl_resolve r = {.tool = named_tool(tool),
                                  .options = options,
                                  .hosts = hosts,
                                  .n_hosts = n,
                                  .by_name = by_name,
                                  .exec = &exec,
                                  .limit = LIMIT,
                                  .verify = verify,
                                  .warn = note_warning,
                                  .arg = c};
    const xpl_status_t st = xpl_resolve(&r, out, err);
    xpl_arena_fini(&arena);
    return st;
}

static void test_resolve(void) {
    struct xpl_buf good = read_data_file("logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb");
    const struct xpl_error unreadable = {.code = XPL_DATA_LOSS, .msg = "b.gz: no gzip"};
    struct xpl_resolve_host hosts[] = {
        {.name = XPL_STR("a"), .path = "a.pb", .profile = {good.p, good.n}},
        {.name = XPL_STR("b"), .path = "b.pb", .profile = {(const uint8_t *)"\x0a\xff", 2}}};
    struct changing c = {.bad = SIZE_MAX};
    struct xpl_error err;
    struct xpl_buf out;
    xpl_buf_init(&out, LIMIT);
    CHECK_EQ(resolve("overview_page", hosts, 2, false, &c, &out, &err), XPL_OK);
    CHECK(out.n > 1000 && c.verified == 2);
    CHECK(strncmp(g_warnings, "b: b.pb: ", 9) == 0);
    CHECK_EQ(resolve("overview_page", hosts, 2, true, &c, &out, &err), XPL_DATA_LOSS);
    CHECK(strncmp(err.msg, "b.pb: ", 6) == 0);
    hosts[1].broken = &unreadable;
    CHECK_EQ(resolve("trace_viewer@", hosts, 2, false, &c, &out, &err), XPL_OK);
    CHECK(strcmp(g_warnings, "b: b.gz: no gzip\n") == 0);
    CHECK_EQ(resolve("memory_profile", hosts, 1, false, &c, &out, &err), XPL_OK);
    c.bad = 0;
    CHECK_EQ(resolve("memory_profile", hosts, 1, false, &c, &out, &err), XPL_ABORTED);
    xpl_buf_fini(&out);
    xpl_buf_fini(&good);
}

// ---- XProf's tools that are not ours ----

static void test_foreign(void) {
    size_t n;
    const struct xpl_foreign_tool *const f = xpl_foreign_tools(&n);
    for (size_t i = 0; i < n; i++) // a line goes when the tool gets its row
        CHECK(!xpl_tool_find(xpl_str_from(f[i].name)));
    CHECK_EQ(xpl_tool_offered_hosts(XPL_STR("pod_viewer")), XPL_HOSTS_ALL);
    CHECK_EQ(xpl_tool_offered_hosts(XPL_STR("overview_page")), XPL_HOSTS_ALL);
    CHECK_EQ(xpl_tool_offered_hosts(XPL_STR("kernel_stats")), XPL_HOSTS_EACH_OR_ALL);
    CHECK_EQ(xpl_tool_offered_hosts(XPL_STR("tensorflow_stats")), XPL_HOSTS_EACH); // an alias
    CHECK_EQ(xpl_tool_offered_hosts(XPL_STR("nope")), XPL_HOSTS_EACH);
    CHECK(xpl_tool_is_worker_served(XPL_STR("pod_viewer")));
    CHECK(xpl_tool_is_worker_served(XPL_STR("op_profile")));
    CHECK(!xpl_tool_is_worker_served(XPL_STR("hlo_op_profile")));
    CHECK(!xpl_tool_is_worker_served(XPL_STR("memory_profile")));
    CHECK(!xpl_tool_is_worker_served(XPL_STR("smart_suggestion")));
}

int main(void) {
    test_all_are_good();
    test_broken_are_left_out();
    test_broken_are_errors();
    test_others();
    test_resolve();
    test_foreign();
    return 0;
}
