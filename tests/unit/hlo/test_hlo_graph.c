// SPDX-License-Identifier: Apache-2.0
// Neighbours of instructions: what XProf answered of the same programs, and programs whose
// get-tuple-elements name one instruction without end.
#include "analysis/hlo/graph/adjacent.h"
#include "tests/cancelled.h"
#include "tests/check.h"
#include "tests/hlo_maker.h"

static struct xpl_error err;

static struct xpl_buf tuples(void) {
    struct xpl_buf m = mk_open(), c = mk_computation("Add.1", 1, 3);
    mk_text(&m, 1, "m");
    mk_hlo_instr(&c, (struct mk_instr){.id = 1, .name = "x", .opcode = "parameter"});
    mk_hlo_instr(&c, (struct mk_instr){.id = 2, .name = "y", .opcode = "parameter"});
    mk_hlo_instr(&c, (struct mk_instr){.id = 3, .name = "A", .opcode = "add", .operands = {1, 2}});
    mk_computation_end(&m, &c);
    c = mk_computation("e", 2, 19);
    static const struct mk_instr list[] = {
        {.id = 10, .name = "p", .opcode = "parameter"},
        {.id = 11, .name = "tup", .opcode = "tuple", .operands = {10, 10}},
        {.id = 12, .name = "tt", .opcode = "tuple", .operands = {11, 11}},
        {.id = 13, .name = "get-tuple-element.1", .opcode = "get-tuple-element", .operands = {12}},
        {.id = 14, .name = "get-tuple-element.2", .opcode = "get-tuple-element", .operands = {13}},
        {.id = 15, .name = "get-tuple-element.3", .opcode = "get-tuple-element", .operands = {13}},
        {.id = 16, .name = "z", .opcode = "add", .operands = {14, 15}},
        {.id = 17, .name = "w", .opcode = "add", .operands = {14, 14}},
        {.id = 18, .name = "a", .opcode = "add", .operands = {16, 17}},
        {.id = 21, .name = "get-tuple-elementX", .opcode = "add", .operands = {18, 16}},
        {.id = 22, .name = "n", .opcode = "negate", .operands = {21}},
        {.id = 23, .name = "v", .opcode = "negate", .operands = {21}},
        {.id = 19, .name = "cal", .opcode = "call", .operands = {10, 10}, .called = 1},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        mk_hlo_instr(&c, list[i]);
    mk_computation_end(&m, &c);
    mk_text(&m, 4, "");
    mk_int(&m, 6, 2);
    return m;
}

static struct xpl_hlo_module *read_program(const struct xpl_buf *m, struct xpl_arena *a) {
    struct xpl_hlo_module *module = NULL;
    CHECK_OK(xpl_hlo_module_read_full((xpl_bytes_t){m->p, m->n}, a, &module, &err), &err);
    CHECK(module->valid);
    return module;
}

static void test_neighbours(void) {
    static const char *const cases[][2] = {
        {"p", "{\"consumer_names\":[\"tup\",\"cal\"],\"operand_names\":[]}"},
        {"%P", "{\"consumer_names\":[\"tup\",\"cal\"],\"operand_names\":[]}"},
        {"tup", "{\"consumer_names\":[\"tt\"],\"operand_names\":[\"p\",\"p\"]}"},
        {"tt", "{\"consumer_names\":[\"z\",\"w\",\"z\"],\"operand_names\":[\"tup\",\"tup\"]}"},
        {"get-tuple-element.1",
         "{\"consumer_names\":[\"z\",\"w\",\"z\"],\"operand_names\":[\"tt\"]}"},
        {"z", "{\"consumer_names\":[\"a\",\"n\",\"v\"],\"operand_names\":[\"tt\",\"tt\"]}"},
        {"a", "{\"consumer_names\":[],\"operand_names\":[\"x\",\"y\"]}"},
        {"n", "{\"consumer_names\":[],\"operand_names\":[\"a\",\"z\"]}"},
        {"get-tuple-elementX",
         "{\"consumer_names\":[\"n\",\"v\"],\"operand_names\":[\"a\",\"z\"]}"},
    };
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = tuples(), out;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    const struct xpl_hlo_module *const module = read_program(&m, &a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t at = xpl_hlo_find_node(module, xpl_str_from(cases[i][0]));
        CHECK(at != UINT32_MAX);
        xpl_buf_init(&out, 1 << 16);
        CHECK_OK(xpl_hlo_adjacent(module, at, &exec, &a, &out, &err), &err);
        CHECK_BYTES(out.p, out.n, cases[i][1], strlen(cases[i][1]));
        xpl_buf_fini(&out);
    }
    static const char *const none[] = {"", "%", "%%p", "q", "e"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_EQ(xpl_hlo_find_node(module, xpl_str_from(none[i])), UINT32_MAX);
    CHECK_EQ(xpl_hlo_find_computation(module, XPL_STR("%add.1")), 0);
    CHECK_EQ(xpl_hlo_find_computation(module, XPL_STR("add")), UINT32_MAX);
}

// The program "m": each of LEVELS get-tuple-elements uses the one before twice, the first of them
// `first`: 2^LEVELS ways to it.  Behind them stands `n`, which uses the last one.
enum { LEVELS = 60 };
static struct xpl_buf doubling(const char *first) {
    struct xpl_buf m = mk_open(), c = mk_computation("e", 1, LEVELS + 2);
    mk_text(&m, 1, "m");
    mk_hlo_instr(&c, (struct mk_instr){.id = 1, .name = first, .opcode = "parameter"});
    for (int64_t i = 2; i <= LEVELS + 1; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "get-tuple-element.%d", (int)i);
        mk_hlo_instr(&c, (struct mk_instr){
                             .id = i, .name = name, .opcode = "tuple", .operands = {i - 1, i - 1}});
    }
    mk_hlo_instr(&c,
                 (struct mk_instr){
                     .id = LEVELS + 2, .name = "n", .opcode = "negate", .operands = {LEVELS + 1}});
    mk_computation_end(&m, &c);
    mk_text(&m, 4, "");
    mk_int(&m, 6, 1);
    return m;
}

// first: "p" fills the output; a get-tuple-element without operands leaves it empty.
static void test_without_end(const char *first) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_buf m = doubling(first), out;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 24);
    const struct xpl_hlo_module *const module = read_program(&m, &a);
    const uint32_t at = xpl_hlo_find_node(module, XPL_STR("n"));
    xpl_buf_init(&out, 1 << 20);
    CHECK_STATUS(xpl_hlo_adjacent(module, at, &exec, &a, &out, &err), XPL_RESOURCE_EXHAUSTED, &err);
    xpl_buf_fini(&out);
    xpl_buf_init(&out, 1 << 20);
    exec.cancelled = always_cancelled;
    CHECK_STATUS(xpl_hlo_adjacent(module, at, &exec, &a, &out, &err), XPL_CANCELLED, &err);
    xpl_buf_fini(&out);
    xpl_buf_fini(&m);
}

int main(void) {
    test_neighbours();
    test_without_end("p");
    test_without_end("get-tuple-element.1");
    return 0;
}
