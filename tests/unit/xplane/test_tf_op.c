// SPDX-License-Identifier: Apache-2.0
// Op names taken apart; the rows follow XProf's own rules case by case.
#include "analysis/xplane/tf_op.h"

#include "base/arena.h"
#include "tests/check.h"

static const struct {
    const char *full;
    enum xpl_tf_op_category category;
    const char *name, *type;
} rows[] = {
    {"", XPL_TF_OP_UNKNOWN, "", ""},
    {"plain", XPL_TF_OP_UNKNOWN, "plain", ""},
    {"MemcpyHToD", XPL_TF_OP_MEMCPY_HTOD, "MemcpyHToD", "MemcpyHToD"},
    {"MEMCPYDtoH something", XPL_TF_OP_MEMCPY_DTOH, "MEMCPYDtoH something", "MemcpyDToH"},
    {"memcpydtod", XPL_TF_OP_MEMCPY_DTOD, "memcpydtod", "MemcpyDToD"},
    {"MemcpyHtoH", XPL_TF_OP_MEMCPY_HTOH, "MemcpyHtoH", "MemcpyHToH"},
    {"MemcpyXtoY", XPL_TF_OP_UNKNOWN, "MemcpyXtoY", ""},
    {"MemcpyHTo", XPL_TF_OP_UNKNOWN, "MemcpyHTo", ""},
    {"Iterator::Batch::Map", XPL_TF_OP_TF_DATA, "Iterator::Batch::Map", "Dataset"},
    {"Iterator:", XPL_TF_OP_TF_DATA, "Iterator:", "Dataset"},
    {"Iterators::Map", XPL_TF_OP_UNKNOWN, "Iterators::Map", ""},
    {"a/b/MatMul_1:MatMul", XPL_TF_OP_TENSORFLOW, "a/b/MatMul_1", "MatMul"},
    {"My>Name.x-y:_Internal9", XPL_TF_OP_TENSORFLOW, "My>Name.x-y", "_Internal9"},
    {"a b:MatMul", XPL_TF_OP_UNKNOWN, "a b:MatMul", ""},
    {"_a:MatMul", XPL_TF_OP_UNKNOWN, "_a:MatMul", ""},
    {"a:MatMul:x", XPL_TF_OP_UNKNOWN, "a:MatMul:x", ""},
    {"a:Mat Mul", XPL_TF_OP_UNKNOWN, "a:Mat Mul", ""},
    {"jit(f)/jit(main)/dot_general:dot_general", XPL_TF_OP_JAX, "jit(f)/jit(main)/dot_general",
     "dot_general"},
    {"jit(f)/dot_general:", XPL_TF_OP_JAX, "jit(f)/dot_general", "dot_general"},
    {"jit(f)/add_1:", XPL_TF_OP_JAX, "jit(f)/add_1", "add"},
    {"jit(f)/add_x:", XPL_TF_OP_JAX, "jit(f)/add_x", "add_x"},
    {"x:transpose[permutation=(0, 3)]", XPL_TF_OP_JAX, "x", "transpose"},
    {"x:transpose[é]", XPL_TF_OP_JAX, "x", "transpose"},
    {"x:transpose[", XPL_TF_OP_UNKNOWN, "x:transpose[", ""},
    {"x:transpose[\n]", XPL_TF_OP_UNKNOWN, "x:transpose[\n]", ""},
    {"x:transpose[\xff]", XPL_TF_OP_UNKNOWN, "x:transpose[\xff]", ""},
    {"x:transpose[\xc0\x80]", XPL_TF_OP_UNKNOWN, "x:transpose[\xc0\x80]", ""},
    {"x:[a]", XPL_TF_OP_UNKNOWN, "x:[a]", ""},
    {"x:a]", XPL_TF_OP_UNKNOWN, "x:a]", ""},
    {"x:9a", XPL_TF_OP_UNKNOWN, "x:9a", ""},
    {"a/Add_2:", XPL_TF_OP_TENSORFLOW, "a/Add_2", "Add"},
    {"123:", XPL_TF_OP_TENSORFLOW, "123", "123"},
    {"a_ 5 :", XPL_TF_OP_JAX, "a_ 5 ", "a"},
    {"A_99999999999999999999:", XPL_TF_OP_TENSORFLOW, "A_99999999999999999999",
     "A_99999999999999999999"},
    {"A_-9223372036854775808:", XPL_TF_OP_TENSORFLOW, "A_-9223372036854775808", "A"},
    {"A_-9223372036854775809:", XPL_TF_OP_TENSORFLOW, "A_-9223372036854775809",
     "A_-9223372036854775809"},
    {":", XPL_TF_OP_TENSORFLOW, "", ""},
    {"nccl:all_to_all", XPL_TF_OP_UNKNOWN, "nccl:all_to_all", ""},
    {"gloo:_all_gather", XPL_TF_OP_UNKNOWN, "gloo:_all_gather", ""},
    {"gloo:all_reduce:torch.Collective", XPL_TF_OP_PYTORCH, "gloo:all_reduce", "Collective"},
    {"ThreadpoolListener::Record", XPL_TF_OP_UNKNOWN, "ThreadpoolListener::Record", ""},
};

static void test_parse(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct xpl_tf_op op = xpl_tf_op_parse(xpl_str_from(rows[i].full));
        if (op.category != rows[i].category || !xpl_str_eq(op.name, xpl_str_from(rows[i].name)) ||
            !xpl_str_eq(op.type, xpl_str_from(rows[i].type))) {
            fprintf(stderr, "'%s': %d '%.*s' '%.*s'\n", rows[i].full, (int)op.category,
                    XPL_STR_FMT(op.name), XPL_STR_FMT(op.type));
            abort();
        }
    }
}

static void test_names(void) {
    static const struct {
        const char *full, *event;
    } names[] = {
        {"trailing \t\n", "trailing"},
        {"a/b:MatMul", "MatMul"},
        {"jit(f)/add_1:", "add"},
        {"Iterator::A::B", "Iterator::B"},
        {"Iterator::A:::B", "Iterator:::B"},
        {"Iterator:x", "Iterator::Iterator:x"},
        {"MEMCPYHtoD x", "MemcpyHToD"},
    };
    struct xpl_arena a = xpl_arena_of(1 << 20);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct xpl_tf_op op = xpl_tf_op_parse(xpl_str_from(names[i].full));
        xpl_str_t got;
        CHECK(xpl_tf_op_event_name(&a, &op, &got));
        CHECK_STR(got, names[i].event);
    }
    xpl_arena_fini(&a);
    xpl_arena_init(&a, 0);
    const struct xpl_tf_op op = xpl_tf_op_parse(XPL_STR("Iterator::A"));
    xpl_str_t got;
    CHECK(!xpl_tf_op_event_name(&a, &op, &got));
    xpl_arena_fini(&a);
}

static void test_scopes(void) {
    xpl_str_t s;
    size_t pos = 0;
    CHECK(xpl_tf_op_next_scope(XPL_STR("a//b/c"), &pos, &s));
    CHECK_STR(s, "a");
    CHECK(xpl_tf_op_next_scope(XPL_STR("a//b/c"), &pos, &s));
    CHECK_EQ(s.len, 0);
    CHECK(xpl_tf_op_next_scope(XPL_STR("a//b/c"), &pos, &s));
    CHECK_STR(s, "b");
    CHECK(!xpl_tf_op_next_scope(XPL_STR("a//b/c"), &pos, &s));
    pos = 0;
    CHECK(!xpl_tf_op_next_scope(XPL_STR(""), &pos, &s));
}

static void test_predicates(void) {
    CHECK(xpl_is_jax_op_name_and_type(XPL_STR("jit(f)/dot_general"), XPL_STR("dot_general")));
    CHECK(!xpl_is_jax_op_name_and_type(XPL_STR("dot_general/x"), XPL_STR("dot_general")));
    CHECK(!xpl_is_jax_op_name_and_type(XPL_STR(""), XPL_STR("a")));
    CHECK(!xpl_is_jax_op_name_and_type(XPL_STR("a"), XPL_STR("A")));
    CHECK(xpl_is_dataset_op(XPL_STR("Dataset")) &&
          xpl_is_infeed_enqueue_op(XPL_STR("InfeedEnqueueTuple")));
    CHECK(xpl_is_memcpy_htod_op(XPL_STR("MemcpyHToD")));
    struct xpl_tf_op op = xpl_tf_op_parse(XPL_STR("x:InfeedEnqueue"));
    CHECK(xpl_tf_op_is_infeed_enqueue(&op));
}

int main(void) {
    test_parse();
    test_names();
    test_scopes();
    test_predicates();
    return 0;
}
