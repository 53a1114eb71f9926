// SPDX-License-Identifier: Apache-2.0
// Graphs of HLO programs: what XProf says of a small one, and programs made to take long, which
// end with a graph or an error.  tests/parity/hlo_graph.py compares with XProf itself.

#include "tests/check.h"
#include "tests/hlo_maker.h"
#include "tests/memory_viewer_fixture.h"
#include "tests/wire_text.h"

enum { LIMIT = 1 << 28 };

static struct xpl_error err;

static xpl_status_t graph_of(struct xpl_buf *module, const char *const *options,
                             struct xpl_buf *out) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf proto = mk_open();
    const char *list[12] = {"type", "graph"};
    size_t n = 2;
    for (; *options; n++)
        list[n] = *options++;
    mk_len(&proto, 1, module->p, module->n);
    err = (struct xpl_error){0};
    return ask_program_tool("graph_viewer", (xpl_bytes_t){proto.p, proto.n}, list, LIMIT, out,
                            &err);
}
#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static bool has(const struct xpl_buf *b, const char *text) {
    return xpl_str_has((xpl_str_t){(const char *)b->p, b->n}, xpl_str_from(text));
}
static void shows(const struct xpl_buf *out, const char *text) {
    if (!has(out, text)) fprintf(stderr, "%s\nnot in: %.*s\n", text, (int)out->n, (char *)out->p);
    CHECK(has(out, text));
}

// ---- a program ----

static void test_computation(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = mk_training_module("m"), out;
    CHECK_OK(graph_of(&m, OPTIONS("node_name", "main"), &out), &err);
    shows(&out, "label = <<b><br/>Computation main<br/>ENTRY computation</b>>;\n");
    shows(&out,
          "[label=<<b>Parameter 0</b><br/>f32[]>, shape=rect, tooltip=\"\", "
          "style=\"filled\", fontcolor=\"black\", color=\"#cbae82\", fillcolor=\"#ffe0b2\"];");
    shows(&out, "label = <Fused expression for <b>fusion.1</b><br/>loop fusion<br/>kind=kLoop>;\n");
    shows(&out, "<b>add.1</b><br/>f32[]>, shape=rect, tooltip=\"jit(f)/layer/add\"");
    shows(&out,
          " [arrowhead=empty tooltip=\"add.1 -> dot.2\"  headlabel=\"1\", labeldistance=2];\n");
    shows(&out, "[label=<ROOT>, shape=circle,");
    xpl_buf_fini(&out);
    CHECK_OK(graph_of(&m, OPTIONS("node_name", "main", "merge_fusion", "true"), &out), &err);
    CHECK(!has(&out, "subgraph"));
    shows(&out, "<b>fusion.1</b><br/>kind=kLoop<br/>f32[]>");
    shows(&out, "tooltip=\"jit(f)/layer/add\nsource: model.py:31\"");
    xpl_buf_fini(&out);
}

static void test_neighbourhood(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = mk_training_module("m"), out;
    CHECK_OK(graph_of(&m, OPTIONS("node_name", "dot.2", "graph_width", "0"), &out), &err);
    shows(&out, "<b>Neighborhood of 0 nodes around dot.2<br/>Computation main<br/>ENTRY");
    shows(&out, "shape=diamond, tooltip=");
    CHECK(!has(&out, "subgraph") && !has(&out, "Parameter"));
    xpl_buf_fini(&out);
    CHECK_OK(graph_of(&m, OPTIONS("node_name", "MUL.1", "graph_width", "1"), &out), &err);
    shows(&out, "Computation fused (in fusion instruction fusion.1)</b>>;");
    xpl_buf_fini(&out);
}

// The color tells a statistic in percent; an index beyond them is none.
static void test_statistics(void) {
    static const char *const colors[] = {"#f5f5f5", "#f7d4cc", "#fd5f3d", "#ff2d00", "white"};
    static const char *const indexes[] = {"0", "1", "2", "3", "4"};
    for (size_t k = 0; k < 5; k++) {
        char text[300], color[40];
        (void)snprintf(text, sizeof text,
                       "1:\"m\" 3:{1:\"e\" 5:1 6:1 2:{1:\"p\" 2:\"iota\" 35:1 14:[0] 3:{2:11} "
                       "82:{1:%s 2:{1:\"s\" 2:d0} 2:{1:\"t\" 2:d9.9} 2:{1:\"u\" 2:d60} "
                       "2:{1:\"v\" 2:d250}}}} 4:\"\" 6:1",
                       indexes[k]);
        (void)snprintf(color, sizeof color, "fillcolor=\"%s\"];", colors[k]);
        struct xpl_buf m = wt_message(text), out;
        CHECK_OK(graph_of(&m, OPTIONS("node_name", "e"), &out), &err);
        shows(&out, color);
        xpl_buf_fini(&out);
        xpl_buf_fini(&m);
    }
}

// The drawing has what the DOT has, as Graphviz names it, and no name is more than text.
static void test_page(void) {
    struct xpl_buf m = mk_training_module("m"), out;
    CHECK_OK(graph_of(&m, OPTIONS("format", "html"), &out), &err);
    shows(&out, "<g id=\"node1\" class=\"node\" data-op=\"p\">\n<title></title>\n<rect ");
    shows(&out, "\"><tspan font-weight=\"bold\">Parameter 0</tspan></text>\n");
    shows(&out, "<g id=\"clust1\" class=\"cluster\">");
    shows(&out, "\">Fused expression for </text>\n<text ");
    shows(&out, "\"><tspan font-weight=\"bold\">fusion.1</tspan></text>\n");
    shows(&out, "<title>add.1 -&gt; dot.2</title>");
    CHECK(!has(&out, "<script"));
    xpl_buf_fini(&out);
    xpl_buf_fini(&m);
    m = wt_message("1:\"m\" 3:{1:\"e\" 5:1 6:1 2:{1:\"p<script>\" 2:\"iota\" 35:1 14:[0] 3:{2:11} "
                   "7:{2:\"<script>&amp;\" 3:\"</title><script>\" 4:1} "
                   "43:\"</text><script>&<b>x\"}} 4:\"\" 6:1");
    CHECK_OK(graph_of(&m, OPTIONS("format", "html", "show_metadata", "true"), &out), &err);
    CHECK(!has(&out, "<script") && !has(&out, "</text><") && !has(&out, "</title><"));
    shows(&out, "class=\"node\" data-op=\"p_script_\">\n");
    shows(&out, "&lt;/text&gt;&lt;script&gt;&amp;");
    xpl_buf_fini(&out);
    xpl_buf_fini(&m);
}

// ---- programs made to take long ----

static void ends(struct xpl_buf *m, const char *node, const char *width, bool graph) {
    struct xpl_buf out;
    static const char *const formats[] = {"dot", "html"};
    for (size_t k = 0; k < 2; k++) {
        const xpl_status_t st = graph_of(
            m, OPTIONS("node_name", node, "graph_width", width, "format", formats[k]), &out);
        CHECK(graph ? st == XPL_OK : st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
        CHECK(st != XPL_OK || out.n > 100);
        xpl_buf_fini(&out);
    }
}

static void name_of(char *text, size_t n, int64_t i) {
    (void)snprintf(text, n, "n%lld", (long long)i);
}

// A chain, each link of which also uses the first parameter; a neighbourhood of everything, which
// is more than the limit.
static void test_many(void) {
    enum { N = 120000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, N);
    mk_hlo_instr(&c, (struct mk_instr){.id = 1, .name = "n1", .opcode = "parameter"});
    for (int64_t i = 2; i <= N; i++) {
        char name[20];
        name_of(name, sizeof name, i);
        mk_hlo_instr(&c, (struct mk_instr){.id = i,
                                           .name = name,
                                           .opcode = i % 3 ? "add" : "bitcast",
                                           .operands = {i - 1, i % 3 ? 1 : 0}});
    }
    mk_computation_end(&m, &c);
    ends(&m, "n60000", "3", true);
    ends(&m, "n60001", "4294967297", false);
}

// Computations that each call the one before twice: 2^n ways, each drawn once; and a stack as deep.
static void test_calls(void) {
    enum { N = 20000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = mk_module("m", N);
    for (int64_t k = 1; k <= N; k++) {
        char name[20], first[24], second[24];
        name_of(name, sizeof name, k);
        (void)snprintf(first, sizeof first, "%s.a", name);
        (void)snprintf(second, sizeof second, "%s.b", name);
        struct xpl_buf c = mk_computation(name, k, 2);
        mk_hlo_instr(&c, (struct mk_instr){.id = 3, .name = name, .opcode = "parameter"});
        mk_hlo_instr(
            &c, (struct mk_instr){
                    .id = 1, .name = first, .opcode = "call", .operands = {3}, .called = k - 1});
        mk_hlo_instr(
            &c, (struct mk_instr){
                    .id = 2, .name = second, .opcode = "call", .operands = {1}, .called = k - 1});
        mk_computation_end(&m, &c);
    }
    ends(&m, "n20000", "3", false);
    ends(&m, "n19999.a", "2", false);
}

// Fusions in fusions: where an edge begins is at the bottom of them.
static void test_fusions(void) {
    enum { N = 5000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = mk_module("m", N);
    for (int64_t k = 1; k <= N; k++) {
        char name[20], inner[24];
        name_of(name, sizeof name, k);
        (void)snprintf(inner, sizeof inner, "%s.f", name);
        struct xpl_buf c = mk_computation(name, k, 2);
        mk_hlo_instr(&c, (struct mk_instr){.id = 1, .name = name, .opcode = "parameter"});
        mk_hlo_instr(&c, (struct mk_instr){.id = 2,
                                           .name = inner,
                                           .opcode = k == 1 ? "negate" : "fusion",
                                           .fusion_kind = k == 1 ? NULL : "kLoop",
                                           .operands = {1},
                                           .called = k - 1});
        mk_computation_end(&m, &c);
    }
    ends(&m, "n5000", "3", false);
}

// Edges from the bottom of fusions to the top: the steps end while the links of containers are
// looked for, of which some are then lacking.
static void test_deep_edges(void) {
    enum { DEEP = 5000, USERS = 11000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = mk_module("m", DEEP), out;
    for (int64_t k = 1; k <= DEEP; k++) {
        char name[20], inner[24];
        name_of(name, sizeof name, k);
        (void)snprintf(inner, sizeof inner, "%s.f", name);
        struct xpl_buf c = mk_computation(name, k, 2);
        mk_hlo_instr(&c, (struct mk_instr){.id = 1, .name = name, .opcode = "parameter"});
        mk_hlo_instr(&c, (struct mk_instr){.id = 2,
                                           .name = inner,
                                           .opcode = k == 1 ? "negate" : "fusion",
                                           .fusion_kind = k == 1 ? NULL : "kLoop",
                                           .operands = {1},
                                           .called = k - 1});
        for (int64_t i = 0; k == DEEP && i < USERS; i++) {
            (void)snprintf(inner, sizeof inner, "u%d", (int)i);
            mk_hlo_instr(&c, (struct mk_instr){
                                 .id = 3 + i, .name = inner, .opcode = "abs", .operands = {2}});
        }
        mk_computation_end(&m, &c);
    }
    const xpl_status_t st = graph_of(&m, OPTIONS("node_name", "n5000", "format", "html"), &out);
    if (st != XPL_RESOURCE_EXHAUSTED) fprintf(stderr, "%s\n", err.msg);
    CHECK_EQ(st, XPL_RESOURCE_EXHAUSTED);
    xpl_buf_fini(&out);
}

int main(void) {
    test_computation();
    test_neighbourhood();
    test_statistics();
    test_page();
    test_many();
    test_calls();
    test_fusions();
    test_deep_edges();
    return 0;
}
