// SPDX-License-Identifier: Apache-2.0
// From profiles to answers, and which hosts are left out of them.
#include "analysis/tools/resolve.h"

#include <string.h>

#include "base/arena.h"
#include "tests/check.h"
#include "tests/data_file.h"
#include "tests/render.h"

enum { MAX = 4 };
#define LIMIT ((size_t)1 << 28)

static char g_warnings[2000];
static struct xpl_resolved_host g_results[MAX];
static struct xpl_tool_host g_hosts[MAX]; // that were rendered

static void note_warning(void *arg, xpl_str_t host, xpl_str_t text) {
    (void)arg;
    const size_t n = strlen(g_warnings);
    (void)snprintf(g_warnings + n, sizeof g_warnings - n, "%.*s: %.*s\n", XPL_STR_FMT(host),
                   XPL_STR_FMT(text));
}

// ---- xpl_resolve_from ----

// A source that does what its script says: for each host a letter, "o" good, "e" empty, "b" broken,
// "n" not there, "m" out of memory, "u" out of memory when it is unpacked.
struct scripted {
    const char *tool, *script;
    xpl_status_t verified;
    size_t n_got, n_unpacked, n_rendered, n_shown;
};

static xpl_status_t scripted_get(void *arg, size_t i, const unsigned *variants,
                                 struct xpl_exec *exec, struct xpl_resolved_host *ret,
                                 struct xpl_error *err) {
    struct scripted *const s = arg;
    (void)variants, (void)exec;
    s->n_got++;
    ret->products[0] = "value";
    ret->empty = s->script[i] == 'e';
    if (s->script[i] == 'm') XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "why %zu", i);
    if (!strchr("bn", s->script[i])) return XPL_OK;
    ret->status = xpl_error_set(&ret->err, s->script[i] == 'b' ? XPL_DATA_LOSS : XPL_NOT_FOUND,
                                __FILE__, __LINE__, UINT64_MAX, "why %zu", i);
    return XPL_OK;
}

static xpl_status_t scripted_unpack(void *arg, size_t i, struct xpl_resolved_host *host,
                                    struct xpl_error *err) {
    struct scripted *const s = arg;
    CHECK_EQ(host->status, XPL_OK); // nothing of a broken host is unpacked
    s->n_unpacked++;
    if (s->script[i] == 'u') XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "%zu is too large", i);
    return XPL_OK;
}

static xpl_status_t scripted_render(void *arg, const struct xpl_tool_input *in, struct xpl_buf *out,
                                    struct xpl_error *err) {
    struct scripted *const s = arg;
    (void)out, (void)err;
    s->n_rendered++;
    memcpy(g_hosts, in->hosts, in->n_hosts * sizeof *g_hosts);
    for (size_t i = 0; i < in->n_hosts; i++)
        s->n_shown += in->hosts[i].products != NULL;
    return XPL_OK;
}

static xpl_status_t scripted_verify(void *arg, struct xpl_error *err) {
    const struct scripted *const s = arg;
    if (s->verified != XPL_OK) XPL_RETURN_ERROR(err, s->verified, "it changed");
    return XPL_OK;
}

static void scripted_warn(void *arg, xpl_str_t host, xpl_str_t text) {
    (void)arg;
    note_warning(NULL, host, text);
}

static xpl_status_t resolve_from(struct scripted *s, const char *script, bool by_name,
                                 struct xpl_error *err) {
    struct xpl_exec exec = xpl_exec_serial();
    static const char *const names[MAX] = {"h0", "h1", "h2", "h3"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    *s = (struct scripted){.tool = s->tool, .script = script, .verified = s->verified};
    for (size_t i = 0; i < MAX; i++)
        g_results[i] = (struct xpl_resolved_host){.name = xpl_str_from(names[i])};
    *err = (struct xpl_error){0};
    g_warnings[0] = 0;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    void *options;
    CHECK_EQ(xpl_tool_options_parse(named_tool(s->tool), NULL, 0, true, &arena, &options, err),
             XPL_OK);
    const struct xpl_resolving r = {.tool = named_tool(s->tool),
                                    .options = options,
                                    .hosts = g_results,
                                    .n_hosts = strlen(script),
                                    .by_name = by_name,
                                    .exec = &exec,
                                    .limit = LIMIT,
                                    .source = {.get = scripted_get,
                                               .unpack = scripted_unpack,
                                               .render = scripted_render,
                                               .verify = scripted_verify,
                                               .warn = scripted_warn,
                                               .arg = s}};
    return xpl_resolve_from(&r, &out, err);
}

static xpl_status_t choose(const char *tool, const char *script, bool by_name,
                           struct xpl_error *err) {
    struct scripted s = {.tool = tool};
    return resolve_from(&s, script, by_name, err);
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
    CHECK_EQ(choose("trace_viewer@", "on", false, &err), XPL_OK);
    CHECK(strcmp(g_warnings, "h1: why 1\n") == 0);
    CHECK_EQ(choose("trace_viewer@", "on", true, &err), XPL_NOT_FOUND);
    CHECK_EQ(choose("kernel_stats", "om", false, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(strcmp(err.msg, "why 1") == 0);
}

static void test_resolve_from(void) {
    struct scripted s = {.tool = "kernel_stats"};
    struct xpl_error err;
    CHECK_EQ(resolve_from(&s, "oo", false, &err), XPL_OK);
    CHECK(s.n_got == 2 && s.n_unpacked == 2 && s.n_rendered == 1 && s.n_shown == 2);
    CHECK_EQ(resolve_from(&s, "bob", false, &err), XPL_OK);
    CHECK(s.n_shown == 1 && strcmp(g_warnings, "h0: why 0\nh2: why 2\n") == 0);
    CHECK_EQ(resolve_from(&s, "bob", true, &err), XPL_DATA_LOSS);
    CHECK(s.n_rendered == 0 && strcmp(err.msg, "why 0") == 0);
    // What ends the request ends it at once: no further host, no warning, no answer.
    CHECK_EQ(resolve_from(&s, "bmo", false, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(s.n_got == 2 && s.n_unpacked == 0 && s.n_rendered == 0 && !g_warnings[0]);
    CHECK(strcmp(err.msg, "why 1") == 0);
    CHECK_EQ(resolve_from(&s, "ouo", false, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(s.n_got == 3 && s.n_rendered == 0 && strcmp(err.msg, "1 is too large") == 0);
    // Other bytes than those asked for count more than anything that came of them.
    s.verified = XPL_ABORTED;
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(resolve_from(&s, (const char *[]){"oo", "bb", "om"}[i], false, &err), XPL_ABORTED);
        CHECK(strcmp(err.msg, "it changed") == 0);
    }
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
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    void *options;
    *err = (struct xpl_error){0};
    out->n = 0;
    g_warnings[0] = 0;
    CHECK_EQ(xpl_tool_options_parse(named_tool(tool), NULL, 0, true, &arena, &options, err),
             XPL_OK);
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
    return xpl_resolve(&r, out, err);
}

static void test_resolve(void) {
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf good = read_data_file("logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb");
    const struct xpl_error unreadable = {.code = XPL_DATA_LOSS, .msg = "b.gz: no gzip"};
    struct xpl_resolve_host hosts[] = {
        {.name = XPL_STR("a"), .path = "a.pb", .profile = {good.p, good.n}},
        {.name = XPL_STR("b"), .path = "b.pb", .profile = {(const uint8_t *)"\x0a\xff", 2}}};
    struct changing c = {.bad = SIZE_MAX};
    struct xpl_error err;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
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
}

// The times of the first core.
static xpl_str_t times_in(const struct xpl_buf *out) {
    const xpl_str_t all = {(const char *)out->p, out->n};
    const size_t from = xpl_str_find(all, XPL_STR("\"stepBreakdownUs\":{"), 0);
    CHECK(from != SIZE_MAX);
    return (xpl_str_t){all.ptr + from, xpl_str_find(all, XPL_STR("}"), from) - from};
}

// With one host left, the times are those of a session with only that host.
static void test_pod_of_one(void) {
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf good = read_data_file("logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb");
    const struct xpl_resolve_host hosts[] = {
        {.name = XPL_STR("a"), .path = "a.pb", .profile = {good.p, good.n}},
        {.name = XPL_STR("b"), .path = "b.pb", .profile = {(const uint8_t *)"\x0a\xff", 2}}};
    struct changing c = {.bad = SIZE_MAX};
    struct xpl_error err;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf one = xpl_buf_of(LIMIT), both = xpl_buf_of(LIMIT);
    CHECK_EQ(resolve("pod_viewer", hosts, 1, false, &c, &one, &err), XPL_OK);
    CHECK_EQ(resolve("pod_viewer", hosts, 2, false, &c, &both, &err), XPL_OK);
    CHECK(xpl_str_eq(times_in(&one), times_in(&both)));
    CHECK(xpl_str_has((xpl_str_t){(const char *)both.p, both.n}, XPL_STR("\"hostName\":\"a\"")));
}

// The times of many hosts, whose breakdowns are in memory in turn, are those of few.
static void test_pod_of_many(void) {
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf good = read_data_file("logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb");
    static const char *const names[XPL_RESOLVE_MANY] = {"a", "b", "c", "d", "e",
                                                        "f", "g", "h", "i"};
    struct xpl_resolve_host hosts[XPL_RESOLVE_MANY];
    for (size_t i = 0; i < XPL_RESOLVE_MANY; i++)
        hosts[i] = (struct xpl_resolve_host){
            .name = xpl_str_from(names[i]), .path = "p", .profile = {good.p, good.n}};
    struct changing c = {.bad = SIZE_MAX};
    struct xpl_error err;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf one = xpl_buf_of(LIMIT), many = xpl_buf_of(LIMIT);
    CHECK_EQ(resolve("pod_viewer", hosts, 1, false, &c, &one, &err), XPL_OK);
    CHECK_EQ(resolve("pod_viewer", hosts, XPL_RESOLVE_MANY, false, &c, &many, &err), XPL_OK);
    const xpl_str_t times = times_in(&one), all = {(const char *)many.p, many.n};
    size_t n = 0, at = 0;
    while ((at = xpl_str_find(all, times, at)) != SIZE_MAX)
        n++, at += times.len;
    CHECK_EQ(n, XPL_RESOLVE_MANY);
}

int main(void) {
    test_all_are_good();
    test_broken_are_left_out();
    test_broken_are_errors();
    test_others();
    test_resolve();
    test_resolve_from();
    test_pod_of_one();
    test_pod_of_many();
    return 0;
}
