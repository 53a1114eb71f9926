// SPDX-License-Identifier: Apache-2.0
// The programs of a profile: finding them, which of them XLA would refuse, categories of
// instructions, names, source lines, the insides of fusions, and telling training from inference.
#include "analysis/hlo/hlo_map.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "tests/hlo_maker.h"
#include "tests/processor_time.h"

struct profile {
    struct xpl_arena arena;
    struct xpl_buf bytes;
    struct xpl_exec exec;
    struct xpl_xspace *xs;
    struct xpl_hlo_map *map;
};

static struct profile *open_profile(struct xpl_buf space) {
    struct xpl_error err = {0};
    struct profile *const p = malloc(sizeof *p);
    CHECK(p);
    *p = (struct profile){.bytes = space, .exec = xpl_exec_serial()};
    xpl_arena_init(&p->arena, 1 << 26);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &p->arena, &p->exec, &p->xs, &err),
             &err);
    CHECK_OK(xpl_hlo_map_new(p->xs, 1 << 26, &p->map, &err), &err);
    return p;
}
static void close_profile(struct profile *p) {
    xpl_hlo_map_free(p->map);
    xpl_arena_fini(&p->arena);
    xpl_buf_fini(&p->bytes);
    free(p);
}
static struct profile *open_module(struct xpl_buf module) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_metadata_plane();
    mk_program(&p.body, 7, &module);
    mk_plane_end(&p, &space);
    return open_profile(space);
}

static bool find(struct profile *p, uint64_t program, const char *name,
                 struct xpl_hlo_instruction *ret) {
    struct xpl_error err = {0};
    bool found;
    CHECK_OK(xpl_hlo_map_find(p->map, program, xpl_str_from(name), ret, &found, &err), &err);
    return found;
}
static struct xpl_hlo_instruction get(struct profile *p, const char *name) {
    struct xpl_hlo_instruction in;
    CHECK(find(p, 7, name, &in));
    return in;
}
static bool is_training(struct profile *p) {
    struct xpl_error err = {0};
    bool ret;
    CHECK_OK(xpl_hlo_map_is_training(p->map, &p->exec, &ret, &err), &err);
    return ret;
}

static void programs_are_listed_by_id(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_metadata_plane();
    struct xpl_buf m = mk_module("late", 1);
    mk_program(&p.body, 300, &m);
    m = mk_training_module("jit_step");
    mk_program(&p.body, 20, &m);
    m = mk_module("no shape", 1);
    mk_program(&p.body, -1, &m);
    mk_plane_end(&p, &space);
    struct profile *const f = open_profile(space);
    size_t n;
    const struct xpl_hlo_program *const v = xpl_hlo_map_programs(f->map, &n);
    CHECK_EQ(n, 3);
    CHECK_EQ(v[0].program_id, 20);
    CHECK_STR(v[0].name, "jit_step");
    CHECK_EQ(v[1].program_id, 300);
    CHECK_STR(v[1].name, "late");
    CHECK_EQ(v[2].program_id, UINT64_MAX);
    struct xpl_hlo_instruction in;
    CHECK(find(f, 20, "fusion.1", &in));
    CHECK(!find(f, 20, "fusion.9", &in));
    CHECK(!find(f, 300, "fusion.1", &in)); // its entry computation does not exist
    CHECK(!find(f, 5, "fusion.1", &in));
    CHECK(is_training(f));
    close_profile(f);
}

// Entries have the program id that is in their names; of several with one id the last in the file
// counts (docs/differences.md, program_id_twice).
static void the_last_of_one_id_counts(void) {
    for (int64_t i = 0; i < 2; i++) {
        struct xpl_buf space = mk_open(), a = mk_module("a", 1), b = mk_module("b", 1);
        struct mk_plane p = mk_metadata_plane();
        mk_named_program(&p.body, i ? 48 : 1, "a(5)", &a);
        mk_named_program(&p.body, i ? 1 : 48, "b(5)", &b);
        mk_plane_end(&p, &space);
        struct profile *const f = open_profile(space);
        size_t n;
        const struct xpl_hlo_program *const v = xpl_hlo_map_programs(f->map, &n);
        CHECK_EQ(n, 1);
        CHECK_EQ(v[0].program_id, 5);
        CHECK_STR(v[0].name, "b");
        close_profile(f);
    }
}

static void an_instruction_is_described(void) {
    struct profile *const f = open_module(mk_training_module("m"));
    const struct xpl_hlo_instruction fusion = get(f, "fusion.1"), dot = get(f, "dot.2");
    CHECK_STR(fusion.category, "loop fusion");
    CHECK_STR(fusion.opcode, "fusion");
    CHECK_STR(fusion.deduplicated_name, "fusion.0");
    CHECK_STR(fusion.op_name, "jit(f)/layer/add");
    CHECK_STR(dot.category, "dot");
    CHECK(!dot.fused && fusion.fused);
    struct xpl_hlo_children c;
    struct xpl_hlo_instruction in;
    xpl_hlo_children_begin(&c, &fusion);
    static const char *const expected[] = {"p0", "mul.1", "add.1"};
    for (int i = 0; i < 3; i++) {
        CHECK(xpl_hlo_children_next(&c, &in));
        CHECK_STR(in.name, expected[i]);
    }
    CHECK(!xpl_hlo_children_next(&c, &in));
    xpl_hlo_children_begin(&c, &dot);
    CHECK(!xpl_hlo_children_next(&c, &in));
    struct xpl_hlo_source source;
    CHECK(xpl_hlo_source(&fusion, &f->arena, &source));
    CHECK_STR(source.file, "model.py");
    CHECK_EQ(source.line, 31);
    CHECK_EQ(source.stack.len, 0);
    CHECK(xpl_hlo_source(&dot, &f->arena, &source));
    CHECK_EQ(source.file.len, 0);
    CHECK_EQ(source.line, -1);
    close_profile(f);
}

static void framework_names(void) {
    struct profile *const f = open_module(mk_training_module("m"));
    struct xpl_hlo_instruction in = get(f, "dot.2");
    static const struct {
        const char *name, *type, *framework, *full;
    } cases[] = {
        {"a/b", "", "a/b:", "a/b:"},
        {"a/b", "MatMul", "a/b:MatMul", "a/b:MatMul"},
        {"", "", "", ":"},
        {"", "MatMul", ":MatMul", ":MatMul"},
        {"XLA_Args", "", "XLA_Args:XLA_Args", "XLA_Args:"},
        {"XLA_Retvals", "", "XLA_Retvals:XLA_Retvals", "XLA_Retvals:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        in.op_name = xpl_str_from(cases[i].name);
        in.op_type = xpl_str_from(cases[i].type);
        xpl_str_t s;
        CHECK(xpl_hlo_tf_op_name(&in, &f->arena, &s));
        CHECK_STR(s, cases[i].framework);
        CHECK(xpl_hlo_op_full_name(&in, &f->arena, &s));
        CHECK_STR(s, cases[i].full);
    }
    close_profile(f);
}

// ---- categories ----

static void add_window(struct xpl_buf *computation, struct mk_instr i, int window, int base) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf one = mk_open();
    mk_hlo_instr(&one, i);
    // The instruction again, with a window: unwrap, append, wrap.
    struct xpl_buf in = mk_open(), w = mk_open(), dim = mk_open();
    const size_t head = one.n < 130 ? 2 : 3;
    xpl_buf_put(&in, one.p + head, one.n - head);
    if (window) mk_int(&dim, 5, window);
    if (base) mk_int(&dim, 6, base);
    mk_close(&w, 1, &dim);
    mk_close(&in, 15, &w);
    mk_close(computation, 2, &in);
}

static void categories(void) {
    static const struct {
        const char *opcode, *kind, *expected;
        int operands, type;
    } cases[] = {
        {"add", NULL, "non-fusion elementwise", 2, 0},
        {"less-than", NULL, "non-fusion elementwise", 2, 0},
        {"copy", NULL, "data formatting", 1, 0},
        {"transpose", NULL, "data formatting", 1, 0},
        {"reshape", NULL, "data formatting", 1, 0},
        {"bitcast", NULL, "bitcast", 1, 0},
        {"bitcast-convert", NULL, "non-fusion elementwise", 1, MK_U32},
        {"bitcast-convert", NULL, "bitcast-convert", 1, MK_S8},
        {"custom-call", NULL, "custom-call", 2, 0},
        {"all-reduce", NULL, "all-reduce", 1, 0},
        {"map", NULL, "non-fusion elementwise", 1, 0},
        {"fusion", "kLoop", "loop fusion", 1, 0},
        {"fusion", "kInput", "input fusion", 1, 0},
        {"fusion", "kOutput", "output fusion", 1, 0},
        {"fusion", "kCustom", "custom fusion", 1, 0},
    };
    enum { N = sizeof cases / sizeof *cases };
    struct xpl_buf m = mk_module("m", 50);
    char names[N][8];
    for (int i = 0; i < N; i++) { // a computation for each fusion
        (void)snprintf(names[i], sizeof names[i], "c%d", i);
        struct xpl_buf c = mk_computation(names[i], i + 1, i + 1);
        (void)snprintf(names[i], sizeof names[i], "q%d", i);
        mk_hlo_instr(&c, (struct mk_instr){.id = i + 1, .name = names[i], .opcode = "parameter"});
        mk_computation_end(&m, &c);
    }
    struct xpl_buf main = mk_computation("main", 50, 100);
    mk_hlo_instr(&main, (struct mk_instr){.id = 100, .name = "p", .opcode = "parameter"});
    for (int i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "i%d", i);
        mk_hlo_instr(&main, (struct mk_instr){.id = 101 + i,
                                              .name = names[i],
                                              .opcode = cases[i].opcode,
                                              .operands = {100, cases[i].operands > 1 ? 100 : 0},
                                              .called = cases[i].kind ? i + 1 : 0,
                                              .packed = i % 2,
                                              .fusion_kind = cases[i].kind,
                                              .element_type = cases[i].type});
    }
    static const struct {
        const char *name, *expected;
        int window, base;
    } convolutions[] = {
        {"v0", "convolution", 1, 1},
        {"v1", "convolution window-dilated", 2, 1},
        {"v2", "convolution base-dilated", 1, 2},
        {"v3", "convolution base-dilated window-dilated", 2, 2},
        {"v4", "convolution base-dilated window-dilated", 0, 0}, // absent is not 1
    };
    for (int i = 0; i < 5; i++)
        add_window(&main,
                   (struct mk_instr){.id = 200 + i,
                                     .name = convolutions[i].name,
                                     .opcode = "convolution",
                                     .operands = {100, 100}},
                   convolutions[i].window, convolutions[i].base);
    mk_computation_end(&m, &main);
    struct profile *const f = open_module(m);
    for (int i = 0; i < N; i++)
        CHECK_STR(get(f, names[i]).category, cases[i].expected);
    for (int i = 0; i < 5; i++)
        CHECK_STR(get(f, convolutions[i].name).category, convolutions[i].expected);
    close_profile(f);
}

// ---- what XLA refuses ----

// A module of one computation (id 1, root 1, instruction "p") with one more instruction.
static bool accepts(struct mk_instr extra, int64_t entry, int64_t root) {
    struct xpl_buf m = mk_module("m", entry), c = mk_computation("main", 1, root);
    mk_hlo_instr(&c, (struct mk_instr){.id = 1, .name = "p", .opcode = "parameter"});
    mk_hlo_instr(&c, extra);
    mk_computation_end(&m, &c);
    struct profile *const f = open_module(m);
    struct xpl_hlo_instruction in;
    const bool ret = find(f, 7, "p", &in);
    close_profile(f);
    return ret;
}

static void refused_modules(void) {
    const struct mk_instr good = {.id = 2, .name = "n", .opcode = "negate", .operands = {1}};
    struct mk_instr i = good;
    CHECK(accepts(i, 1, 1));
    CHECK(!accepts(i, 2, 1)); // no such entry computation
    CHECK(!accepts(i, 1, 9)); // no such root
    i.name = NULL;
    CHECK(!accepts(i, 1, 1));
    i = good, i.name = "p";
    CHECK(!accepts(i, 1, 1)); // twice the same name
    i = good, i.opcode = "no-such-op";
    CHECK(!accepts(i, 1, 1));
    i = good, i.no_shape = true;
    CHECK(!accepts(i, 1, 1));
    i = good, i.id = 1;
    CHECK(!accepts(i, 1, 1)); // twice the same id
    i = good, i.id = -5;
    CHECK(!accepts(i, 1, 1));
    i = good, i.operands[0] = 3;
    CHECK(!accepts(i, 1, 1)); // operand comes later or never
    i = good, i.operands[1] = 1;
    CHECK(!accepts(i, 1, 1)); // negate takes one
    i = good, i.opcode = "fusion", i.fusion_kind = "kLoop";
    CHECK(!accepts(i, 1, 1)); // fuses nothing
    i = good, i.called = 8;
    CHECK(!accepts(i, 1, 1)); // no such computation
}

static void odd_names_and_order(void) {
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 9);
    mk_hlo_instr(&c, (struct mk_instr){.id = 9, .name = "9a%b", .opcode = "parameter"});
    mk_hlo_instr(&c, (struct mk_instr){.id = 4, .name = "f32", .opcode = "parameter"});
    mk_hlo_instr(&c,
                 (struct mk_instr){.id = 6, .name = "__x", .opcode = "add", .operands = {9, 4}});
    mk_computation_end(&m, &c);
    struct profile *const f = open_module(m);
    CHECK_STR(get(f, "_a_b").opcode, "parameter");
    CHECK_STR(get(f, "f32_").opcode, "parameter");
    CHECK_STR(get(f, "a_x").opcode, "add");
    close_profile(f);
}

// Every byte in every place of a name: letters, digits, '_', '-' and '.' stay, others become '_'.
static void bytes_of_names(void) {
    enum { LONGEST = 11 }; // no type's name, so that nothing is added
    for (size_t at = 1; at < LONGEST; at++) {
        struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 1);
        char name[LONGEST + 1], expected[256][LONGEST + 1];
        for (int byte = 1; byte < 256; byte++) {
            // What the byte becomes need not be unique: the number in the other half is.
            (void)snprintf(name, sizeof name, "abcdefghijk");
            const bool stays = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                               (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '-' ||
                               byte == '.';
            const size_t number = at < LONGEST / 2 ? LONGEST - 3 : 1;
            char digits[4];
            (void)snprintf(digits, sizeof digits, "%03d", byte);
            memcpy(name + number, digits, 3);
            name[at] = (char)byte;
            memcpy(expected[byte], name, sizeof name);
            if (!stays) expected[byte][at] = '_';
            mk_hlo_instr(&c, (struct mk_instr){.id = byte, .name = name, .opcode = "parameter"});
        }
        mk_computation_end(&m, &c);
        struct profile *const f = open_module(m);
        for (int byte = 1; byte < 256; byte++)
            CHECK_STR(get(f, expected[byte]).name, expected[byte]);
        close_profile(f);
    }
}

// ---- stack frames ----

static void add_numbers(struct xpl_buf *index, uint32_t num, int64_t a, int64_t b, int64_t c,
                        int64_t d) {
    struct xpl_buf r = mk_open();
    const int64_t v[] = {a, b, c, d};
    for (uint32_t i = 0; i < 4; i++)
        if (v[i]) mk_int(&r, i + 1, v[i]);
    mk_close(index, num, &r);
}

static void stack_frames(void) {
    struct xpl_buf m = mk_training_module("m"), index = mk_open();
    mk_text(&index, 1, "lib.py");
    mk_text(&index, 1, "main.py");
    mk_text(&index, 2, "call");
    add_numbers(&index, 3, 1, 1, 10, 4); // lib.py:10:4
    add_numbers(&index, 3, 2, 1, 20, 0); // main.py:20:0
    add_numbers(&index, 4, 1, 2, 0, 0);  // frame 1 at location 1, called by frame 2
    add_numbers(&index, 4, 2, 0, 0, 0);
    add_numbers(&index, 4, 2, 3, 0, 0); // frame 3 calls itself
    add_numbers(&index, 4, 77, 1, 0, 0);
    mk_close(&m, 17, &index);
    struct profile *const f = open_module(m);
    struct xpl_hlo_instruction in = get(f, "dot.2");
    struct xpl_hlo_source s;
    in.stack_frame_id = 1;
    CHECK(xpl_hlo_source(&in, &f->arena, &s));
    CHECK_STR(s.file, "lib.py");
    CHECK_EQ(s.line, 10);
    CHECK_STR(s.stack, "lib.py:10:4\nmain.py:20:0\n");
    in = get(f, "fusion.1"); // its own file and line win
    in.stack_frame_id = 2;
    CHECK(xpl_hlo_source(&in, &f->arena, &s));
    CHECK_STR(s.file, "model.py");
    CHECK_EQ(s.line, 31);
    CHECK_STR(s.stack, "main.py:20:0\n");
    in.stack_frame_id = 3;
    CHECK(xpl_hlo_source(&in, &f->arena, &s));
    CHECK_EQ(s.stack.len, 256 * strlen("main.py:20:0\n"));
    static const int32_t bad[] = {4, 5, -1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        in.stack_frame_id = bad[i];
        CHECK(xpl_hlo_source(&in, &f->arena, &s));
        CHECK_EQ(s.stack.len, 0);
    }
    close_profile(f);
}

// ---- training ----

static void gradients(void) {
    static const struct {
        const char *name, *type;
        bool expected;
    } cases[] = {
        {"gradients/layer/mul", "Mul", true},
        {"a/gradients_1/mul", "Mul", true},
        {"gradient_tape/model/MatMul", "MatMul", true},
        {"my_gradient_tape/MatMul", "MatMul", false},
        {"a/gradients", "Mul", false}, // the op itself is not a scope
        {"jit(f)/transpose(jvp(g))/dot_general", "", true},
        {"transpose(f)/mul", "", true},
        {"jit(f)/mytranspose(g)/mul", "", false},
        {"jit(f)/transpose", "", false},
        {"", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_EQ(xpl_hlo_is_gradient_op(xpl_str_from(cases[i].name), xpl_str_from(cases[i].type)),
                 cases[i].expected);
    struct xpl_buf m = mk_training_module("m");
    mk_int(&m, 6, 77); // the last entry id counts: refused
    struct profile *const f = open_module(m);
    CHECK(!is_training(f));
    close_profile(f);
}

// A truncated proto loses its program, nothing else; a small limit is an error, no crash.
static void damage_and_limits(void) {
    struct xpl_buf m = mk_training_module("m");
    const size_t n = m.n;
    xpl_buf_fini(&m);
    for (size_t cut = 0; cut < n; cut++) {
        m = mk_training_module("m");
        m.n = cut;
        struct profile *const f = open_module(m);
        struct xpl_hlo_instruction in;
        (void)find(f, 7, "fusion.1", &in);
        (void)is_training(f);
        close_profile(f);
    }
    struct profile *const f = open_module(mk_training_module("m"));
    struct xpl_hlo_map *small = NULL;
    struct xpl_error err = {0};
    struct xpl_hlo_instruction in;
    bool found;
    CHECK_STATUS(xpl_hlo_map_new(f->xs, 0, &small, &err), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK(!small);
    if (xpl_hlo_map_new(f->xs, 4096, &small, &err) == XPL_OK) {
        const xpl_status_t st = xpl_hlo_map_find(small, 7, XPL_STR("p"), &in, &found, &err);
        CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
        xpl_hlo_map_free(small);
    }
    xpl_hlo_map_free(NULL);
    close_profile(f);
}

// Programs are found by name without a look at all of them; of one name the first counts.
static void many_programs(void) {
    enum { PROGRAMS = 40000 };
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_metadata_plane();
    char name[32];
    for (int i = 0; i < PROGRAMS; i++) {
        (void)snprintf(name, sizeof name, "program %d", i / 2);
        struct xpl_buf module = mk_module(name, 1);
        mk_named_program(&p.body, i + 1, name, &module);
    }
    mk_plane_end(&p, &space);
    struct profile *const f = open_profile(space);
    const double begin = processor_s();
    for (int i = 0; i < PROGRAMS; i++) {
        uint64_t program;
        (void)snprintf(name, sizeof name, "program %d", i);
        const bool found = xpl_hlo_map_program_of(f->map, xpl_str_from(name), &program);
        CHECK_EQ(found, i < PROGRAMS / 2);
        if (found) CHECK_EQ(program, 2 * (uint64_t)i + 1);
    }
    CHECK(is_within(begin, 1));
    close_profile(f);
}

// Many ops whose kernel has one long name.
static void long_kernel(void) {
    enum { LONG = 1 << 20, OPS = 5000 };
    static char name[LONG];
    struct profile *const f = open_module(mk_training_module("jit_f"));
    struct xpl_hlo_instruction in;
    struct xpl_error err = {0};
    bool found;
    memset(name, 'a', LONG);
    CHECK_OK(xpl_hlo_map_find_kernel(f->map, 7, XPL_STR("fusion_1"), &in, &found, &err), &err);
    CHECK(found);
    const double begin = processor_s();
    for (int i = 0; i < OPS; i++) {
        CHECK_OK(xpl_hlo_map_find_kernel(f->map, 7, (xpl_str_t){name, LONG}, &in, &found, &err),
                 &err);
        CHECK(!found);
    }
    CHECK(is_within(begin, 2));
    close_profile(f);
}

int main(void) {
    programs_are_listed_by_id();
    the_last_of_one_id_counts();
    an_instruction_is_described();
    framework_names();
    categories();
    refused_modules();
    odd_names_and_order();
    bytes_of_names();
    stack_frames();
    gradients();
    damage_and_limits();
    many_programs();
    long_kernel();
    return 0;
}
