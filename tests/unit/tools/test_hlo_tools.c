// SPDX-License-Identifier: Apache-2.0
// Tools hlo_modules and graph_viewer: which program is shown, and what of it.
#include <string.h>

#include "analysis/tools/resolve.h"
#include "base/arena.h"
#include "tests/cancelled.h"
#include "tests/hlo_maker.h"
#include "tests/wire_text.h"

enum { LIMIT = 1 << 24 };

static struct xpl_buf g_hosts[2];
static struct xpl_exec g_exec;
static size_t g_limit = LIMIT;
static struct xpl_error err;

static struct xpl_buf profile_of(const int64_t *ids, const char *const *names, size_t n) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_metadata_plane();
    for (size_t i = 0; i < n; i++) {
        struct xpl_buf module = mk_training_module(names[i]);
        mk_program(&p.body, ids[i], &module);
    }
    mk_plane_end(&p, &space);
    return space;
}

// options: "key", "value", ..., NULL.
static xpl_status_t ask(const char *name, bool strict, const char *const *options,
                        struct xpl_buf *out) {
    const struct xpl_tool *const tool = xpl_tool_find(xpl_str_from(name));
    struct xpl_resolve_host hosts[2];
    struct xpl_option list[8];
    size_t n = 0;
    for (; options && options[2 * n]; n++)
        list[n] =
            (struct xpl_option){xpl_str_from(options[2 * n]), xpl_str_from(options[2 * n + 1])};
    for (size_t i = 0; i < 2; i++)
        hosts[i] = (struct xpl_resolve_host){.name = i ? XPL_STR("b") : XPL_STR("a"),
                                             .path = "p",
                                             .profile = {g_hosts[i].p, g_hosts[i].n}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    void *parsed;
    err = (struct xpl_error){0};
    xpl_buf_init(out, g_limit);
    CHECK_OK(xpl_tool_options_parse(tool, list, n, strict, &arena, &parsed, &err), &err);
    const struct xpl_resolve r = {.tool = tool,
                                  .options = parsed,
                                  .hosts = hosts,
                                  .n_hosts = 2,
                                  .exec = &g_exec,
                                  .limit = g_limit};
    return xpl_resolve(&r, out, &err);
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL, NULL})

static bool has(const struct xpl_buf *b, const char *text) {
    return xpl_str_has((xpl_str_t){(const char *)b->p, b->n}, xpl_str_from(text));
}

static void says(xpl_status_t expected, const char *part, const char *const *options) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_STATUS(ask("graph_viewer", true, options, &out), expected, &err);
    if (!strstr(err.msg, part)) fprintf(stderr, "%s\nnot in: %s\n", part, err.msg);
    CHECK(strstr(err.msg, part));
}

static void shows(const char *part, const char *const *options) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_OK(ask("graph_viewer", true, options, &out), &err);
    if (!has(&out, part)) fprintf(stderr, "%s\nnot in: %.*s\n", part, (int)out.n, (char *)out.p);
    CHECK(has(&out, part));
}

static void test_list(void) {
    struct xpl_buf out;
    CHECK_OK(ask("hlo_modules", true, NULL, &out), &err);
    CHECK(out.n && out.p[0] == '[' && has(&out, "}]\n"));
    CHECK(has(&out, "{\"module\":\"f(17)\",\"name\":\"f\",\"host\":\"a\",\"program_id\":\"17\","));
    CHECK(has(&out, "{\"module\":\"f(7)\",\"name\":\"f\",\"host\":\"a\",\"program_id\":\"7\","));
    CHECK(has(&out, "{\"module\":\"g\\u0007\xe2\x80\xaeh(9)\",\"name\":\"g\\u0007\xe2\x80\xaeh\","
                    "\"host\":\"b\","));
    CHECK(has(&out, "\"computations\":2,\"instructions\":6}"));
    xpl_buf_fini(&out);
}

// By exact name, else by exact program id, on any host.
static void test_lookup(void) {
    shows("HloModule f,", OPTIONS("module_name", "f(7)"));
    shows("HloModule f,", OPTIONS("program_id", "17"));
    shows("HloModule g", OPTIONS("program_id", "9"));
    shows("HloModule f,", OPTIONS("module_name", "f(7)", "program_id", "9"));
    says(XPL_NOT_FOUND, "no HLO module \"f(8)\"; did you mean \"f(7)\"?",
         OPTIONS("module_name", "f(8)", "program_id", "7"));
    says(XPL_NOT_FOUND, "no HLO module", OPTIONS("module_name", "f"));
    says(XPL_NOT_FOUND, "no HLO module", OPTIONS("module_name", "../run/f(7)"));
    says(XPL_NOT_FOUND, "program id 1", OPTIONS("program_id", "1"));
    says(XPL_NOT_FOUND, "program id f(", OPTIONS("program_id", "f("));
    says(XPL_NOT_FOUND, "module_name=NAME(ID) or program_id=ID", OPTIONS("type", "pb"));
    // The neighbours of an instruction are found without a program, other types are not.
    shows("{\"consumer_names\":[\"dot.2\"],\"operand_names\":[\"p\"]}",
          OPTIONS("type", "adj_nodes", "node_name", "fusion.1"));
    shows("{\"consumer_names\":[\"dot.2\"],",
          OPTIONS("type", "adj_nodes", "node_name", "FUSION.1", "module_name", "other"));
    says(XPL_NOT_FOUND, "no HLO module has an instruction or computation \"none\"",
         OPTIONS("type", "adj_nodes", "node_name", "none"));
    says(XPL_NOT_FOUND, "no HLO module \"other\"",
         OPTIONS("type", "long_txt", "node_name", "fusion.1", "module_name", "other"));
}

static void test_types(void) {
    shows("ENTRY main {", OPTIONS("program_id", "7", "type", "short_txt"));
    shows("ENTRY %main (", OPTIONS("program_id", "7", "type", "long_txt"));
    shows("op_name=\"jit(f)/layer/mul\"",
          OPTIONS("program_id", "7", "type", "long_txt", "show_metadata", "true"));
    shows("hlo_module {\n  name: \"f\"\n", OPTIONS("program_id", "7", "type", "pbtxt"));
    shows("{\"hloModule\":{\"name\":\"f\",", OPTIONS("program_id", "7", "type", "json"));
    struct xpl_buf out;
    CHECK_OK(ask("graph_viewer", true, OPTIONS("program_id", "7", "type", "pb"), &out), &err);
    const size_t at = xpl_str_find((xpl_str_t){(char *)g_hosts[0].p, g_hosts[0].n},
                                   (xpl_str_t){(char *)out.p, out.n}, 0);
    CHECK(at != SIZE_MAX && out.n > 100);
    xpl_buf_fini(&out);
    says(XPL_INVALID_ARGUMENT, "Unknown graph viewer type option: x",
         OPTIONS("program_id", "7", "type", "x"));
    says(XPL_INVALID_ARGUMENT, "option: shrt_txt; did you mean \"short_txt\"?",
         OPTIONS("program_id", "7", "type", "shrt_txt"));
    says(XPL_INVALID_ARGUMENT, "must provide a type", OPTIONS("program_id", "7", "type", ""));
    says(XPL_UNIMPLEMENTED, "type me_graph is not made", OPTIONS("type", "me_graph"));
    says(XPL_FAILED_PRECONDITION, "no URL renderer",
         OPTIONS("program_id", "7", "type", "graph", "format", "url", "node_name", "main"));
    shows("digraph G {", OPTIONS("type", "graph", "node_name", "%FUSION.1"));
    says(XPL_NOT_FOUND, "no instruction or computation \"none\"",
         OPTIONS("program_id", "7", "type", "graph", "node_name", "none"));
    says(XPL_NOT_FOUND, "no instruction or computation \"fusion.11\"; did you mean \"fusion.1\"?",
         OPTIONS("program_id", "7", "type", "graph", "node_name", "fusion.11"));
    says(XPL_NOT_FOUND, "\"mian\"; did you mean \"main\"?",
         OPTIONS("program_id", "7", "type", "adj_nodes", "node_name", "mian"));
    shows("ENTRY %main", OPTIONS("program_id", "7", "type", "custom_call", "node_name", "none"));
    says(XPL_FAILED_PRECONDITION, "Backend config not found",
         OPTIONS("program_id", "7", "type", "custom_call", "node_name", "dot.2"));
    says(XPL_INVALID_ARGUMENT, "node_name should not be empty",
         OPTIONS("program_id", "7", "type", "adj_nodes"));
    says(XPL_NOT_FOUND, "no instruction or computation \"none\"",
         OPTIONS("program_id", "7", "type", "adj_nodes", "node_name", "none"));
    says(XPL_FAILED_PRECONDITION, "\"main\" is a computation",
         OPTIONS("program_id", "7", "type", "adj_nodes", "node_name", "main"));
    // XProf's clients must say which.
    CHECK_STATUS(ask("graph_viewer", false, OPTIONS("program_id", "7"), &out), XPL_INVALID_ARGUMENT,
                 &err);
    xpl_buf_fini(&out);
}

// Custom calls with their own program, MLIR, and with another configuration.
static void test_custom_call(void) {
    struct xpl_buf module = wt_message(
        "1:\"c\" 4:\"\" 6:1 3:{1:\"main\" 5:1 6:2 "
        "2:{1:\"own\" 2:\"custom-call\" 3:{2:11} 28:\"tpu_custom_call\" 35:2 "
        "43:\"{\\042custom_call_config\\042:{\\042body\\042:\\042TUw=\\042}}\"} "
        "2:{1:\"other\" 2:\"custom-call\" 3:{2:11} 28:\"x\" 35:3 43:\"{\\042a\\042:1}\"}}");
    struct xpl_buf kept = g_hosts[1], space = mk_open();
    struct mk_plane p = mk_metadata_plane();
    mk_program(&p.body, 30, &module);
    mk_plane_end(&p, &space);
    g_hosts[1] = space;
    says(XPL_UNIMPLEMENTED, "the program of a custom call is MLIR, which is not read here",
         OPTIONS("program_id", "30", "type", "custom_call", "node_name", "own"));
    says(XPL_FAILED_PRECONDITION, "Custom call config not found",
         OPTIONS("program_id", "30", "type", "custom_call", "node_name", "other"));
    shows("ENTRY %main", OPTIONS("program_id", "30", "type", "custom_call"));
    xpl_buf_fini(&g_hosts[1]);
    g_hosts[1] = kept;
}

static void test_ends(void) {
    struct xpl_buf out;
    g_limit = 2000;
    says(XPL_RESOURCE_EXHAUSTED, "", OPTIONS("program_id", "7", "type", "pbtxt"));
    g_limit = LIMIT;
    g_exec.cancelled = always_cancelled;
    CHECK_STATUS(ask("hlo_modules", true, NULL, &out), XPL_CANCELLED, &err);
    xpl_buf_fini(&out);
    says(XPL_CANCELLED, "", OPTIONS("type", "adj_nodes", "node_name", "none"));
    g_exec.cancelled = NULL;
}

int main(void) {
    g_exec = xpl_exec_serial();
    g_hosts[0] = profile_of((const int64_t[]){17, 7}, (const char *const[]){"f", "f"}, 2);
    g_hosts[1] = profile_of((const int64_t[]){9}, (const char *const[]){"g\a\xe2\x80\xaeh"}, 1);
    test_list();
    test_lookup();
    test_types();
    test_custom_call();
    test_ends();
    xpl_buf_fini(&g_hosts[0]);
    xpl_buf_fini(&g_hosts[1]);
    return 0;
}
