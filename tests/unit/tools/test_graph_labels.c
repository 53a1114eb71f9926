// SPDX-License-Identifier: Apache-2.0
// What the nodes and clusters of graphs of HLO programs say, by XLA's rules for them
// (hlo_graph_dumper): operands without nodes, combiners, attributes, calls of libraries, sources.
// tests/parity/hlo_graph.py compares thousands with XProf.
#include "tests/check.h"
#include "tests/memory_viewer_fixture.h"
#include "tests/wire_text.h"

enum { LIMIT = 1 << 24 };

// The graph of computation "main" of a module of `n` computations, of which it is the last, with
// id 9, and of further fields.  Options as "key", "value".
static struct xpl_buf graph_of(const char *const *computations, size_t n, const char *more,
                               const char *key, const char *value) {
    char head[600];
    (void)snprintf(head, sizeof head, "1:\"m\" 4:{} 6:9 %s", more);
    struct xpl_buf m = wt_message(head), proto = mk_open(), out;
    struct xpl_error err = {0};
    for (size_t i = 0; i < n; i++) {
        struct xpl_buf c = wt_message(computations[i]);
        mk_close(&m, 3, &c);
    }
    mk_close(&proto, 1, &m);
    const char *const options[] = {"type", "graph", "node_name", "main", key, value, NULL};
    CHECK_OK(ask_program_tool("graph_viewer", (xpl_bytes_t){proto.p, proto.n}, options, LIMIT, &out,
                              &err),
             &err);
    xpl_buf_fini(&proto);
    return out;
}

static void shows(const struct xpl_buf *out, const char *text) {
    if (!memmem(out->p, out->n, text, strlen(text))) {
        fprintf(stderr, "%s\nnot in: %.*s\n", text, (int)out->n, (const char *)out->p);
        CHECK(false);
    }
}
static void lacks(const struct xpl_buf *out, const char *text) {
    CHECK(!memmem(out->p, out->n, text, strlen(text)));
}

// The graph of one computation's instructions.
static struct xpl_buf graph_of_main(const char *instructions, const char *key, const char *value) {
    char main[4000];
    CHECK(snprintf(main, sizeof main, "1:\"main\" 5:9 6:1 %s", instructions) < (int)sizeof main);
    return graph_of((const char *const[]){main}, 1, "", key, value);
}

#define F32 " 3:{2:11} "
#define S32 " 3:{2:4} "
#define P   "2:{1:\"p\" 2:\"parameter\" 35:1" F32 "} "

// A combiner of two scalars is a word; another has a separate cluster.
static void test_combiners(void) {
    static const char *const rows[][3] = {
        {"add", "", "add"},
        {"multiply", "", "multiply"},
        {"minimum", "", "min"},
        {"maximum", "", "max"},
        {"xor", "", "xor"},
        {"and", "", "and"},
        {"or", "", "or"},
        {"compare", "63:\"LE\"", "less-or-equal"},
        {"compare", "63:\"GE\"", "greater-or-equal"},
        {"compare", "63:\"GT\"", "greater-than"},
        {"compare", "63:\"LT\"", "less-than"},
        {"compare", "63:\"EQ\"", "equal-to"},
        {"compare", "63:\"NE\"", "not-equal-to"},
        {"subtract", "", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char combiner[400], text[80];
        (void)snprintf(combiner, sizeof combiner,
                       "1:\"combine\" 5:1 6:13 2:{1:\"x\" 2:\"parameter\" 35:11" F32 "} "
                       "2:{1:\"y\" 2:\"parameter\" 9:1 35:12" F32 "} "
                       "2:{1:\"xy\" 2:\"%s\" 35:13 36:[12,11] %s" F32 "}",
                       rows[i][0], rows[i][1]);
        const char *const texts[] = {
            combiner, "1:\"main\" 5:9 6:2 " P
                      "2:{1:\"reduce\" 2:\"reduce\" 35:2 36:[1,1] 38:[1] 14:[0]" F32 "}"
                      "2:{1:\"both\" 2:\"select-and-scatter\" 35:3 36:[1,1,1] 38:[1,1]" F32 "}"};
        struct xpl_buf out = graph_of(texts, 2, "", "merge_fusion", "false");
        if (rows[i][2]) {
            (void)snprintf(text, sizeof text, "<b>reduce</b><br/>Subcomputation: <b>%s</b><br/>",
                           rows[i][2]);
            shows(&out, text);
            (void)snprintf(text, sizeof text,
                           "<br/>Subcomputation 0: <b>%s</b><br/>Subcomputation 1: <b>%s</b>",
                           rows[i][2], rows[i][2]);
            shows(&out, text);
            lacks(&out, "Subcomputation for");
        } else {
            shows(&out, "label = <Subcomputation for <b>reduce</b><br/>combine>;\n");
            lacks(&out, "Subcomputation: ");
        }
        xpl_buf_fini(&out);
    }
}

// A constant is shown where it is used: its value, or its name when that is long.
static void test_constants(void) {
    struct xpl_buf out = graph_of_main(
        P "2:{1:\"seven\" 2:\"constant\" 35:2 8:{1:{2:4} 4:[7]}" S32 "} "
          "2:{1:\"none\" 2:\"constant\" 35:3 3:{2:4 3:[0]}} "
          "2:{1:\"many\" 2:\"constant\" 35:4 8:{1:{2:4 3:[9]} 4:[1,2,3,4,5,6,7,8,9]} "
          "3:{2:4 3:[9]}} "
          "2:{1:\"constant.5\" 2:\"constant\" 35:5" S32 "} "
          "2:{1:\"few\" 2:\"constant\" 35:10 8:{1:{2:4 3:[2]} 4:[-1,8]} 3:{2:4 3:[2]}} "
          "2:{1:\"t\" 2:\"tuple\" 35:6 36:[1,2,3,4,5,10] 3:{2:13 4:{2:11}}} "
          "2:{1:\"n\" 2:\"negate\" 35:7 36:[2]" S32 "}",
        "show_metadata", "true");
    shows(&out, "<b>t</b><br/>tuple<br/>(f32[])<br/><b>operand 1</b> = s32[] 7<br/>"
                "<b>operand 2</b> = {} (s32[0])<br/><b>operand 3</b> = constant many s32[9]<br/>"
                "<b>operand 4</b> = constant.5 s32[]<br/><b>operand 5</b> = s32[2] {-1, 8}>");
    shows(&out, "<b>n</b><br/>negate<br/>s32[]<br/><b>operand</b> = s32[] 7>");
    xpl_buf_fini(&out);
}

// Parts of tuples are shown where they are used, and so is a tuple that four and more take apart.
static void test_tuples(void) {
    const char *const texts[] = {
        "1:\"fused\" 5:1 6:13 2:{1:\"f.p\" 2:\"parameter\" 35:11" F32 "} "
        "2:{1:\"f.c\" 2:\"parameter\" 9:1 35:12" S32 "} "
        "2:{1:\"f.s\" 2:\"constant\" 35:14 8:{1:{2:4} 4:[3]}" S32 "} "
        "2:{1:\"f.b\" 2:\"broadcast\" 35:15 36:[14] 3:{2:4 3:[8]}} "
        "2:{1:\"f.n\" 2:\"add\" 35:13 36:[11,12]" F32 "}"
        "2:{1:\"f.m\" 2:\"negate\" 35:16 36:[15] 3:{2:4 3:[8]}}",
        "1:\"main\" 5:9 6:8 2:{1:\"p\" 2:\"parameter\" 35:1 3:{2:13 4:{2:11} 4:{2:11}}} "
        "2:{1:\"g0\" 2:\"get-tuple-element\" 35:2 36:[1]" F32 "} "
        "2:{1:\"g1\" 2:\"get-tuple-element\" 13:1 35:3 36:[1]" F32 "} "
        "2:{1:\"g2\" 2:\"get-tuple-element\" 35:4 36:[1]" F32 "} "
        "2:{1:\"g3\" 2:\"get-tuple-element\" 13:1 35:5 36:[1]" F32 "} "
        "2:{1:\"a\" 2:\"add\" 35:6 36:[2,3]" F32 "} "
        "2:{1:\"c\" 2:\"constant\" 35:7 8:{1:{2:4} 4:[5]}" S32 "} "
        "2:{1:\"f\" 2:\"fusion\" 11:\"kLoop\" 35:8 36:[4,7] 38:[1]" F32 "}"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = graph_of(texts, 2, "", "merge_fusion", "false");
    shows(&out, "<b>a</b><br/>add<br/>f32[]<br/><b>operand 0</b> = tuple-element 0 of p f32[]<br/>"
                "<b>operand 1</b> = tuple-element 1 of p f32[]>");
    // Inside a fusion: what its parameter is, and what a constant that it is given.
    shows(&out, "<b>Parameter 0</b><br/>f32[]<br/>tuple-element 0 of p f32[]>");
    shows(&out, "<b>f.n</b><br/>add<br/>f32[]<br/><b>operand 1</b> = s32[] 5>");
    shows(&out, "<b>f.m</b><br/>negate<br/>s32[8]<br/><b>operand</b> = s32[8] 3>");
    lacks(&out, "<b>Parameter 0</b><br/>(f32");
}

// A parameter of a computation called once: the origin of its argument, through calls, copies,
// tuples.
static void test_origins(void) {
    const char *const texts[] = {
        "1:\"made\" 5:1 6:12 2:{1:\"m.p\" 2:\"parameter\" 35:11" F32 "} "
        "2:{1:\"m.t\" 2:\"tuple\" 35:12 36:[11,11] 3:{2:13 4:{2:11} 4:{2:11}}}",
        "1:\"used\" 5:2 6:22 2:{1:\"u.p\" 2:\"parameter\" 35:21" F32 "} "
        "2:{1:\"u.n\" 2:\"negate\" 35:22 36:[21]" F32 "}",
        "1:\"main\" 5:9 6:5 " P "2:{1:\"make\" 2:\"call\" 35:2 36:[1] 38:[1] "
        "3:{2:13 4:{2:11} 4:{2:11}}} "
        "2:{1:\"take\" 2:\"get-tuple-element\" 13:1 35:3 36:[2]" F32 "} "
        "2:{1:\"copy\" 2:\"copy\" 35:4 36:[3]" F32 "} "
        "2:{1:\"use\" 2:\"call\" 35:5 36:[4] 38:[2]" F32 "}"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = graph_of(texts, 3, "", "merge_fusion", "false");
    shows(&out, "<b>Parameter 0</b><br/><i>from p in the ENTRY computation</i><br/>f32[]>");
    shows(&out, "<b>Parameter 0</b><br/><i>from m.p in made</i><br/>f32[]>");
}

// One attribute a line, as XLA counts them; long lists are cut, and groups of features stand out.
static void test_attributes(void) {
    struct xpl_buf out = graph_of_main(
        P
        "2:{1:\"d\" 2:\"dot\" 35:2 36:[1,1] 30:{1:[2] 2:[1] 3:[0] 4:[0]}" F32 "} "
        "2:{1:\"g\" 2:\"gather\" 35:3 36:[1,1] 33:{1:[1] 2:[0] 3:[0] 4:1} 34:[1,4]" F32 "} "
        "2:{1:\"s\" 2:\"scatter\" 35:4 36:[1,1,1] 48:{1:[1] 2:[0] 3:[0] 4:1}" F32 "} "
        "2:{1:\"r\" 2:\"all-gather\" 35:5 36:[1] 14:[0] 49:{1:[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,"
        "15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40]}" F32 "} "
        "2:{1:\"c\" 2:\"convolution\" 35:6 36:[1,1] 50:4" F32 "} "
        "2:{1:\"k\" 2:\"custom-call\" 35:7 36:[1] 28:\"a, {b\" 37:[1]" F32 "}",
        "merge_fusion", "false");
    shows(&out, "<b>d</b><br/>dot<br/>lhs_batch_dims={0}, lhs_contracting_dims={2}, "
                "rhs_batch_dims={0}, rhs_contracting_dims={1}<br/>f32[]>");
    shows(&out, "<br/>gather<br/>offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
                "index_vector_dim=1<br/>slice_sizes={1,4}<br/>f32[]>");
    shows(&out, "<br/>scatter<br/>update_window_dims={1}, inserted_window_dims={0}, "
                "scatter_dims_to_operand_dims={0}, index_vector_dim=1<br/>");
    shows(&out, "<br/>replica_groups={{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,"
                "23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,3...<br/>");
    shows(&out, "<br/><b>feature_group_count=4</b><br/>");
    shows(&out, "<br/>custom_call_target=&quot;a, {b&quot;<br/>");
    xpl_buf_fini(&out);
}

// The configuration of infeeds and outfeeds is not part of a label, but is of the text.
static void test_feeds(void) {
    struct xpl_buf out = graph_of_main(
        P "2:{1:\"t\" 2:\"after-all\" 35:2 3:{2:17}} "
          "2:{1:\"i\" 2:\"infeed\" 35:3 36:[2] 27:\"told\" 3:{2:13 4:{2:11} 4:{2:17}}} "
          "2:{1:\"o\" 2:\"outfeed\" 35:4 36:[1,2] 22:\"told\" 29:{2:11} 3:{2:17}}",
        "merge_fusion", "false");
    shows(&out, "<b>i</b><br/>infeed<br/>(f32[], token[])>");
    shows(&out, "<b>o</b><br/>outfeed<br/>outfeed_shape=f32[]<br/>token[]>");
    xpl_buf_fini(&out);
}

// Async ops have the color of their wrapped op.
static void test_async(void) {
    static const char *const texts[] = {
        "1:\"side\" 5:1 6:12 2:{1:\"s.p\" 2:\"parameter\" 35:11" F32 "} "
        "2:{1:\"s.c\" 2:\"copy\" 35:12 36:[11]" F32 "}",
        "1:\"main\" 5:9 6:4 " P
        "2:{1:\"a\" 2:\"async-start\" 35:2 36:[1] 38:[1] 3:{2:13 4:{2:13 4:{2:11}} 4:{2:11}}} "
        "2:{1:\"u\" 2:\"async-update\" 35:3 36:[2] 3:{2:13 4:{2:13 4:{2:11}} 4:{2:11}}} "
        "2:{1:\"d\" 2:\"async-done\" 35:4 36:[3]" F32 "}"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = graph_of(texts, 2, "", "merge_fusion", "false");
    const char *const green = "fontcolor=\"black\", color=\"#97b498\", fillcolor=\"#c8e6c9\"];";
    for (int i = 0; i < 3; i++) {
        const char *const name =
            (const char *const[]){"label=<<b>a<", "label=<<b>u<", "label=<<b>d<"}[i];
        const xpl_str_t text = {(const char *)out.p, out.n};
        const size_t at = xpl_str_find(text, xpl_str_from(name), 0);
        const size_t end = xpl_str_find(text, XPL_STR("\n"), at);
        CHECK(at != SIZE_MAX && end != SIZE_MAX);
        CHECK(xpl_str_has(xpl_str_sub(text, at, end - at), xpl_str_from(green)));
    }
}

#define Q "\\042"
#define CALL(target, json)                                                                         \
    "2:{1:\"call\" 2:\"custom-call\" 35:2 36:[1] 28:\"" target "\" 43:\"" json "\"" F32 "}"

static void test_libraries(void) {
    static const char *const rows[][3] = {
        {CALL("__cublas$lt$matmul",
              "{" Q "gemm_backend_config" Q ":{" Q "alpha_real" Q ":2," Q "beta" Q ":0.5," Q
              "dot_dimension_numbers" Q ":{" Q "lhs_batch_dimensions" Q ":[" Q "0" Q "]," Q
              "lhs_contracting_dimensions" Q ":[2]," Q "rhs_contracting_dimensions" Q ":[1,3]}," Q
              "selected_algorithm" Q ":" Q "13" Q "," Q "epilogue" Q ":" Q "BIAS" Q "}}"),
         "<br/><br/>alpha=2<br/>beta=0.5<br/>lhs_batch_dims={0}<br/>lhs_contracting_dims={2}<br/>"
         "rhs_contracting_dims={1,3}<br/>algorithm=13<br/>epilogue=BIAS>",
         "false"},
        // The names as JSON has them; default values are omitted, and a single property has no
        // list.
        {CALL("__cublas$lt$matmul$f8", "{" Q "gemmBackendConfig" Q ":{" Q "alphaReal" Q ":1," Q
                                       "beta" Q ":1," Q "epilogue" Q ":" Q "DEFAULT" Q "}}"),
         "f32[]<br/>lhs_contracting_dims={}<br/>rhs_contracting_dims={}>", "false"},
        {CALL("__cudnn$convForward",
              "{" Q "cudnn_conv_backend_config" Q ":{" Q "conv_result_scale" Q ":1," Q
              "side_input_scale" Q ":0.5," Q "activation_mode" Q ":" Q "kRelu" Q "," Q "algorithm" Q
              ":{" Q "algo_id" Q ":" Q "28" Q "," Q "tuning_knobs" Q ":{" Q "10" Q ":" Q "0" Q "," Q
              "2" Q ":" Q "1" Q "}}}}"),
         "<br/><br/>side_input_scale=0.5<br/>activation_mode=relu<br/>algo=eng28{k2=1,k10=0}>",
         "false"},
        {CALL("__cudnn$convBackwardInput", ""),
         "f32[]<br/><br/>conv_result_scale=0<br/>activation_mode=none<br/>algo=eng0{}>", "false"},
        // What XProf's XLA cannot read, newer compilers' fields as well, says nothing.
        {CALL("__cudnn$convBackwardInput", "no JSON"), "<br/>f32[]>", "false"},
        {CALL("__cudnn$convBackwardInput", "no JSON"), "f32[]<br/>backend_config=\"no JSON\">",
         "true"},
        {CALL("__cublas$lt$matmul",
              "{" Q "gemm_backend_config" Q ":{" Q "of_tomorrow" Q ":1," Q "beta" Q ":0.5}}"),
         "<br/>f32[]>", "false"},
        // Of others the configuration as it is, on request.
        {CALL("other", "some text"), "<br/>backend_config=\"some text\">", "true"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1200];
        (void)snprintf(text, sizeof text, "%s%s", P, rows[i][0]);
        struct xpl_buf out = graph_of_main(text, "show_metadata", rows[i][2]);
        shows(&out, rows[i][1]);
        xpl_buf_fini(&out);
        if (strcmp(rows[i][2], "true") != 0) continue;
        out = graph_of_main(text, "show_metadata", "false");
        lacks(&out, "backend_config=");
        xpl_buf_fini(&out);
    }
}

// Tips: what the program said of an instruction, and from where it was called.
static void test_tips(void) {
    struct xpl_buf out = graph_of(
        (const char *const[]){"1:\"main\" 5:9 6:1 2:{1:\"p\" 2:\"parameter\" 35:1 "
                              "7:{1:\"Arg<\" 2:\"x/y\" 3:\"a.py\" 4:7 15:2}" F32 "} "
                              "2:{1:\"n\" 2:\"negate\" 35:2 36:[1] 7:{1:\"Neg\"}" F32 "}"
                              "2:{1:\"s\" 2:\"sine\" 35:3 36:[1] 7:{3:\"b.py\" 4:8}" F32 "}"
                              "2:{1:\"l\" 2:\"log\" 35:4 36:[1] 7:{15:3}" F32 "}"},
        1,
        "17:{1:\"a.py\" 2:\"f\" 2:\"g\" 3:{1:1 2:1 3:10 4:5} 3:{1:1 2:2 3:20} "
        "4:{1:1} 4:{1:2 2:1} 4:{1:9 2:1}}",
        "merge_fusion", "false");
    shows(&out, "tooltip=\"x/y\nop_type: Arg&lt;\nsource: a.py:7\na.py:g:20\na.py:f:10:5\"");
    shows(&out, "tooltip=\"op_type: Neg\"");
    shows(&out, "tooltip=\"source: b.py:8\"");
    shows(&out, "<b>l</b><br/>log<br/>f32[]>, shape=rect, tooltip=\"\""); // no such place
    xpl_buf_fini(&out);
}

// What kind of fusion it is, in the heading of its cluster.
static void test_fusions(void) {
    static const char *const rows[][3] = {{"kInput", "negate", "input fusion"},
                                          {"kCustom", "negate", "custom fusion"},
                                          {"kOutput", "negate", "output fusion"},
                                          {"kOutput", "dot", "convolution fusion"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char fused[300], main[300], text[120];
        const bool dot = rows[i][1][0] == 'd';
        (void)snprintf(fused, sizeof fused,
                       "1:\"fused\" 5:1 6:12 2:{1:\"f.p\" 2:\"parameter\" 35:11" F32 "} "
                       "2:{1:\"f.o\" 2:\"%s\" 35:12 36:%s" F32 "}",
                       rows[i][1], dot ? "[11,11] 30:{}" : "[11]");
        (void)snprintf(main, sizeof main,
                       "1:\"main\" 5:9 6:2 " P
                       "2:{1:\"fu\" 2:\"fusion\" 11:\"%s\" 35:2 36:[1] 38:[1]" F32 "}",
                       rows[i][0]);
        struct xpl_buf out =
            graph_of((const char *const[]){fused, main}, 2, "", "merge_fusion", "false");
        (void)snprintf(text, sizeof text, "Fused expression for <b>fu</b><br/>%s<br/>kind=%s>;",
                       rows[i][2], rows[i][0]);
        shows(&out, text);
        xpl_buf_fini(&out);
        // Merged it is a node, which says its kind behind the opcode.
        out = graph_of((const char *const[]){fused, main}, 2, "", "merge_fusion", "true");
        (void)snprintf(text, sizeof text, "<b>fu</b><br/>fusion:%s<br/>", rows[i][0]);
        shows(&out, text);
        lacks(&out, "Fused expression");
        xpl_buf_fini(&out);
    }
}

int main(void) {
    test_combiners();
    test_constants();
    test_tuples();
    test_origins();
    test_attributes();
    test_feeds();
    test_async();
    test_libraries();
    test_tips();
    test_fusions();
    return 0;
}
