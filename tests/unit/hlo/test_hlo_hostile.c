// SPDX-License-Identifier: Apache-2.0
// Programs made to take long: a text takes time in proportion to the program and to the text, else
// the suite's time limit ends the test; rings are refused; long work can be cancelled.
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/instruction.h"
#include "analysis/hlo/text/text.h"
#include "tests/cancelled.h"
#include "tests/hlo_maker.h"
#include "tests/processor_time.h"
#include "tests/wire_text.h"

static struct xpl_error err;
static struct xpl_exec g_exec;

static xpl_status_t text_of(const struct xpl_buf *module, enum xpl_hlo_text_form form,
                            struct xpl_buf *out) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 28);
    struct xpl_hlo_module *m = NULL;
    err = (struct xpl_error){0};
    xpl_buf_init(out, 1 << 28);
    CHECK_OK(xpl_hlo_module_read_full((xpl_bytes_t){module->p, module->n}, &a, &m, &err), &err);
    return xpl_hlo_text_module(m, form, &g_exec, &a, out, &err);
}

static bool ends_with(const struct xpl_buf *b, const char *z) {
    return xpl_str_ends((xpl_str_t){(const char *)b->p, b->n}, xpl_str_from(z));
}

// ---- long chains ----

// Each update must find the computation that the first op started.
static void test_async_chain(void) {
    enum { N = 100000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = mk_module("m", 2), out;
    struct xpl_buf wrapped = mk_computation("w", 1, 2), main = mk_computation("main", 2, N);
    mk_hlo_instr(&wrapped, (struct mk_instr){.id = 1, .name = "a", .opcode = "parameter"});
    mk_hlo_instr(&wrapped,
                 (struct mk_instr){.id = 2, .name = "b", .opcode = "negate", .operands = {1}});
    mk_computation_end(&m, &wrapped);
    mk_hlo_instr(&main, (struct mk_instr){.id = 1, .name = "p", .opcode = "parameter"});
    mk_hlo_instr(&main,
                 (struct mk_instr){
                     .id = 2, .name = "s", .opcode = "async-start", .operands = {1}, .called = 1});
    for (int64_t i = 3; i <= N; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "u%d", (int)i);
        mk_hlo_instr(&main, (struct mk_instr){.id = i,
                                              .name = name,
                                              .opcode = i < N ? "async-update" : "async-done",
                                              .operands = {i - 1}});
    }
    mk_computation_end(&m, &main);
    CHECK_OK(text_of(&m, XPL_HLO_TEXT_SHORT, &out), &err);
    CHECK(ends_with(&out, "ROOT u100000 = f32[] negate-done(u99999)\n}\n\n"));
    xpl_buf_fini(&out);
}

// ---- long messages that others refer to ----

// An operand of a megabyte, which is not part of the text, before each of its users.
static void test_large_operand(void) {
    enum { N = 20000, JUNK = 1 << 19 };
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, N), in, out;
    in = wt_message("1:\"p\" 2:\"parameter\" 35:1 3:{2:11}");
    for (int i = 0; i < JUNK; i++)
        mk_int(&in, 13, 1);
    mk_close(&c, 2, &in);
    for (int64_t i = 2; i <= N; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "c%d", (int)i);
        mk_hlo_instr(
            &c, (struct mk_instr){.id = i, .name = name, .opcode = "compare", .operands = {1, 1}});
    }
    mk_computation_end(&m, &c);
    CHECK_OK(text_of(&m, XPL_HLO_TEXT_EXPRESSION, &out), &err);
    CHECK(ends_with(&out, "ROOT %c20000 = f32[] compare(f32[] %p, f32[] %p), direction=\n}\n\n"));
    xpl_buf_fini(&out);
}

// Instructions that ask for the type of one operand, whose shape is a megabyte.
static void test_large_shape(void) {
    enum { N = 20000, JUNK = 1 << 19 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 28);
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, N), in, shape;
    struct xpl_hlo_module *module = NULL;
    in = wt_message("1:\"p\" 2:\"parameter\" 35:1");
    shape = wt_message("2:8 3:[2]");
    for (int i = 0; i < JUNK; i++)
        mk_int(&shape, 13, 1);
    mk_close(&in, 3, &shape);
    mk_close(&c, 2, &in);
    for (int64_t i = 2; i <= N; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "b%d", (int)i);
        mk_hlo_instr(&c, (struct mk_instr){
                             .id = i, .name = name, .opcode = "bitcast-convert", .operands = {1}});
    }
    mk_computation_end(&m, &c);
    CHECK_OK(xpl_hlo_module_read((xpl_bytes_t){m.p, m.n}, &a, &module, &err), &err);
    CHECK(module->valid);
    const double begin = processor_s();
    for (uint32_t i = 1; i < N; i++) {
        struct xpl_hlo_instruction one;
        xpl_hlo_module_get(module, i, &one);
        CHECK_STR(one.category, "non-fusion elementwise"); // u32 to f32
    }
    CHECK(is_within(begin, 4));
}

// An instruction with a long message, to which many ops refer.
static void test_long_instruction(void) {
    enum { OPS = 20000, JUNK = 1 << 19 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 28);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = mk_module("m", 2);
    struct xpl_buf fused = mk_computation("fused", 1, 1), main = mk_computation("main", 2, 2), in;
    struct xpl_hlo_module *module = NULL;
    mk_hlo_instr(&fused, (struct mk_instr){.id = 1, .name = "p", .opcode = "parameter"});
    mk_computation_end(&m, &fused);
    in = wt_message("1:\"f\" 2:\"fusion\" 11:\"kLoop\" 3:{2:11} 35:2");
    for (int i = 0; i < JUNK; i++)
        mk_int(&in, 13, 1);
    mk_int(&in, 38, 1);
    mk_close(&main, 2, &in);
    mk_computation_end(&m, &main);
    CHECK_OK(xpl_hlo_module_read((xpl_bytes_t){m.p, m.n}, &a, &module, &err), &err);
    CHECK(module->valid && xpl_hlo_module_decode_long(module, &a));
    const double begin = processor_s();
    for (int i = 0; i < OPS; i++) {
        struct xpl_hlo_instruction one, child;
        struct xpl_hlo_children children;
        xpl_hlo_module_get(module, 1, &one);
        CHECK_STR(one.category, "loop fusion");
        xpl_hlo_children_begin(&children, &one);
        CHECK(xpl_hlo_children_next(&children, &child));
        CHECK_STR(child.name, "p");
    }
    CHECK(is_within(begin, 2));
}

// Places in a tuple that agree up to the last of 64 numbers, in messages that are long besides.
static void test_long_places(void) {
    enum { N = 1000, DEPTH = 64, JUNK = 2500 };
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 1), in, out;
    struct xpl_buf origin = mk_open();
    for (int i = N; i-- > 0;) {
        struct xpl_buf element = mk_open(), path = mk_open();
        for (int k = 0; k + 1 < DEPTH; k++)
            mk_varint(&path, 0);
        mk_varint(&path, (uint64_t)i);
        mk_close(&element, 1, &path);
        for (int k = 0; k < JUNK; k++)
            mk_int(&element, 13, 1);
        mk_close(&origin, 1, &element);
    }
    in = wt_message("1:\"p\" 2:\"parameter\" 35:1 3:{2:11}");
    mk_close(&in, 88, &origin);
    mk_close(&c, 2, &in);
    mk_computation_end(&m, &c);
    const double begin = processor_s();
    CHECK_OK(text_of(&m, XPL_HLO_TEXT_SHORT, &out), &err);
    CHECK(is_within(begin, 10));
    char end[DEPTH + 20] = ", {}, {}";
    memset(end + strlen(end), ')', DEPTH);
    CHECK(ends_with(&out, strcat(end, "}\n}\n\n")));
    xpl_buf_fini(&out);
}

// A mesh is read once for all that refer to its axes.
static void test_large_mesh(void) {
    enum { REFERENCES = 50000, JUNK = 1 << 19 };
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 1), in, out;
    struct xpl_buf mesh = wt_message("1:{1:\"x\" 2:2}"), named = mk_open(), sharding = mk_open();
    struct xpl_buf dim = mk_open();
    for (int i = 0; i < JUNK; i++)
        mk_int(&mesh, 9, 1);
    for (int i = 0; i < REFERENCES; i++)
        mk_len(&dim, 1, "", 0);
    mk_close(&named, 2, &mesh);
    mk_close(&named, 3, &dim);
    mk_close(&sharding, 14, &named);
    in = wt_message("1:\"p\" 2:\"parameter\" 35:1 3:{2:11}");
    mk_close(&in, 40, &sharding);
    mk_close(&c, 2, &in);
    mk_computation_end(&m, &c);
    CHECK_OK(text_of(&m, XPL_HLO_TEXT_SHORT, &out), &err);
    CHECK(ends_with(&out, "'x', 'x', ?}]}\n}\n\n"));
    xpl_buf_fini(&out);
}

// ---- rings ----

static void test_rings(void) {
    static const char *const programs[] = {
        // An operand of itself, of one another, a computation that calls itself, two that call each
        // other.
        "1:\"m\" 4:{} 6:1 3:{1:\"c\" 5:1 6:1 2:{1:\"a\" 2:\"negate\" 35:1 36:1 3:{2:11}}}",
        "1:\"m\" 4:{} 6:1 3:{1:\"c\" 5:1 6:1 2:{1:\"a\" 2:\"negate\" 35:1 36:2 3:{2:11}} "
        "2:{1:\"b\" 2:\"negate\" 35:2 36:1 3:{2:11}}}",
        "1:\"m\" 4:{} 6:1 3:{1:\"c\" 5:1 6:1 2:{1:\"a\" 2:\"call\" 35:1 38:1 3:{2:11}}}",
        "1:\"m\" 4:{} 6:1 3:{1:\"c\" 5:1 6:1 2:{1:\"a\" 2:\"call\" 35:1 38:2 3:{2:11}}} "
        "3:{1:\"d\" 5:2 6:1 2:{1:\"b\" 2:\"call\" 35:1 38:1 3:{2:11}}}",
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct xpl_buf m = wt_message(programs[i]), out;
        CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_LONG, &out), XPL_DATA_LOSS, &err);
        xpl_buf_fini(&out);
        xpl_buf_fini(&m);
    }
}

// ---- cancelling ----

// Within a literal, and before the text of a million instructions is at its end.
static void test_cancel(void) {
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 1), in, out;
    struct xpl_buf literal = wt_message("1:{2:4 3:[100000] 5:{1:[0]}}"), values = mk_open();
    for (int i = 0; i < 100000; i++)
        mk_varint(&values, 7);
    mk_close(&literal, 4, &values);
    in = wt_message("1:\"k\" 2:\"constant\" 35:1 3:{2:4 3:[100000] 5:{1:[0]}}");
    mk_close(&in, 8, &literal);
    mk_close(&c, 2, &in);
    mk_computation_end(&m, &c);
    CHECK_OK(text_of(&m, XPL_HLO_TEXT_LONG, &out), &err);
    const size_t whole = out.n;
    xpl_buf_fini(&out);
    g_exec.cancelled = always_cancelled;
    CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_LONG, &out), XPL_CANCELLED, &err);
    CHECK(out.n < whole / 10);
    g_exec.cancelled = NULL;
    xpl_buf_fini(&out);
}

int main(void) {
    g_exec = xpl_exec_serial();
    test_async_chain();
    test_large_operand();
    test_large_shape();
    test_long_instruction();
    test_long_places();
    test_large_mesh();
    test_rings();
    test_cancel();
    return 0;
}
