// SPDX-License-Identifier: Apache-2.0
// The text of HLO programs: what XProf says of single fields and small programs (tests/data/hlo),
// and what must hold where XProf was not asked or ends: limits, cuts, nesting, broken messages.
#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/text/text.h"
#include "base/arena.h"
#include "tests/data_file.h"
#include "tests/hlo_maker.h"
#include "tests/wire_text.h"

static struct xpl_error err;

// A module's text, or its error.
static xpl_status_t text_of(const struct xpl_buf *module, enum xpl_hlo_text_form form,
                            struct xpl_buf *out, size_t limit) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 26);
    struct xpl_hlo_module *m = NULL;
    err = (struct xpl_error){0};
    xpl_buf_init(out, limit);
    CHECK_OK(xpl_hlo_module_read_full((xpl_bytes_t){module->p, module->n}, &a, &m, &err), &err);
    return xpl_hlo_text_module(m, form, &exec, &a, out, &err);
}

static bool contains_line(const struct xpl_buf *text, const char *line) {
    const xpl_str_t all = {(const char *)text->p, text->n};
    const size_t n = strlen(line);
    for (size_t at = 0; (at = xpl_str_find(all, (xpl_str_t){line, n}, at)) != SIZE_MAX; at++)
        if (at >= 3 && all.ptr[at - 3] == '\n' && at + n < all.len && all.ptr[at + n] == '\n')
            return true;
    return false;
}

// ---- the cases of XProf ----

struct reader {
    char *at;
};

static char *next_line(struct reader *r) {
    char *const line = r->at;
    char *const end = strchr(line, '\n');
    if (!end) return NULL;
    *end = 0;
    r->at = end + 1;
    return line;
}

static enum xpl_hlo_text_form form_of(const char *name) {
    if (strcmp(name, "short") == 0) return XPL_HLO_TEXT_SHORT;
    if (strcmp(name, "long") == 0) return XPL_HLO_TEXT_LONG;
    CHECK(strcmp(name, "metadata") == 0);
    return XPL_HLO_TEXT_LONG_METADATA;
}

struct base {
    const char *module, *entry;
};

static struct xpl_buf with_instruction(const struct base *base, const char *fields) {
    struct xpl_buf m = wt_message(base->module), c = wt_message(base->entry);
    struct xpl_buf in = wt_message(fields);
    mk_close(&c, 2, &in);
    mk_close(&m, 3, &c);
    return m;
}

static void one_instruction(const struct base *base, const char *form, struct reader *r) {
    const char *const fields = next_line(r), *const expected = next_line(r);
    CHECK(fields && expected);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = with_instruction(base, fields), out;
    const xpl_status_t st = text_of(&m, form_of(form), &out, 1 << 24);
    if (st != XPL_OK || !contains_line(&out, expected)) {
        fprintf(stderr, "%s\nwant %s\n%s %s\n%.*s\n", fields, expected, xpl_status_name(st),
                err.msg, (int)out.n, (const char *)out.p);
        FAIL_TEST("the text of an instruction differs");
    }
    xpl_buf_fini(&out);
}

static void one_module(const char *name, struct reader *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = wt_message(next_line(r)), out;
    for (int i = 0; i < 3; i++) {
        char form[16];
        int n = 0;
        CHECK(sscanf(next_line(r), "%15s %d", form, &n) == 2);
        struct xpl_buf expected = mk_open();
        while (n--) {
            xpl_buf_str(&expected, xpl_str_from(next_line(r)));
            xpl_buf_putc(&expected, '\n');
        }
        CHECK_OK(text_of(&m, form_of(form), &out, 1 << 24), &err);
        if (out.n != expected.n || memcmp(out.p, expected.p, out.n) != 0)
            fprintf(stderr, "%s, %s:\n%.*s", name, form, (int)out.n, (const char *)out.p);
        CHECK_BYTES(out.p, out.n, expected.p, expected.n);
        xpl_buf_fini(&expected);
        xpl_buf_fini(&out);
    }
}

static void cases_of_xprof(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf file = read_data_file("hlo/cases.txt");
    xpl_buf_putc(&file, 0);
    struct reader r = {(char *)file.p};
    struct base base = {0};
    size_t instructions = 0, modules = 0;
    for (char *line; (line = next_line(&r)) != NULL;) {
        if (!*line || *line == '#') continue;
        if (strcmp(line, "base") == 0) {
            base = (struct base){next_line(&r), next_line(&r)};
        } else if (strncmp(line, "instruction ", 12) == 0) {
            one_instruction(&base, line + 12, &r);
            instructions++;
        } else {
            CHECK(strncmp(line, "module ", 7) == 0);
            one_module(line + 7, &r);
            modules++;
        }
    }
    CHECK(instructions > 300 && modules > 4);
}

// ---- nesting ----

// A tuple around an f32, `depth` shapes deep.
static struct xpl_buf nested_shape(int depth) {
    struct xpl_buf shape = mk_open();
    mk_int(&shape, 2, 11);
    for (int i = 1; i < depth; i++) {
        struct xpl_buf outer = mk_open();
        mk_int(&outer, 2, 13);
        mk_close(&outer, 4, &shape);
        shape = outer;
    }
    return shape;
}

// A sharding of tuples.
static struct xpl_buf nested_sharding(int depth) {
    struct xpl_buf s = mk_open();
    for (int i = 1; i < depth; i++) {
        struct xpl_buf outer = mk_open();
        mk_int(&outer, 1, 2);
        mk_close(&outer, 5, &s);
        s = outer;
    }
    return s;
}

// A module of one constant with the field that is given.
static struct xpl_buf one_constant(uint32_t num, struct xpl_buf *field, struct xpl_buf *shape) {
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 1), in = mk_open();
    mk_text(&in, 1, "k");
    mk_text(&in, 2, "constant");
    mk_close(&in, 3, shape);
    if (field) mk_close(&in, num, field);
    mk_int(&in, 35, 1);
    mk_close(&c, 2, &in);
    mk_computation_end(&m, &c);
    return m;
}

static void deep_messages_end(void) {
    static const struct {
        int depth;
        xpl_status_t expected;
    } cases[] = {{90, XPL_OK}, {100, XPL_OK}, {101, XPL_DATA_LOSS}, {50000, XPL_DATA_LOSS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf shape = nested_shape(cases[i].depth), out;
        struct xpl_buf m = one_constant(0, NULL, &shape);
        CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_LONG, &out, 1 << 24), cases[i].expected, &err);
        if (cases[i].expected != XPL_OK) CHECK(strstr(err.msg, "deeper than 100"));
        xpl_buf_fini(&out);
        xpl_buf_fini(&m);
        shape = nested_shape(1);
        struct xpl_buf sharding = nested_sharding(cases[i].depth);
        m = one_constant(40, &sharding, &shape);
        CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_SHORT, &out, 1 << 24), cases[i].expected, &err);
        xpl_buf_fini(&out);
        xpl_buf_fini(&m);
    }
}

// ---- literals ----

// A constant with a literal and the shape of it.
static struct xpl_buf literal_module(const char *shape_text, const char *values) {
    struct xpl_buf shape = wt_message(shape_text), literal = mk_open(), inner;
    inner = wt_message(shape_text);
    mk_close(&literal, 1, &inner);
    inner = wt_message(values);
    xpl_buf_put(&literal, inner.p, inner.n);
    xpl_buf_fini(&inner);
    return one_constant(8, &literal, &shape);
}

static void check_form(enum xpl_hlo_text_form form, const char *shape, const char *values,
                       const char *expected) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = literal_module(shape, values), out;
    CHECK_OK(text_of(&m, form, &out, 1 << 24), &err);
    xpl_buf_putc(&out, 0);
    const char *const at = strstr((const char *)out.p, "constant(");
    CHECK(at);
    CHECK_STR(((xpl_str_t){at, strcspn(at, "\n")}), expected);
    xpl_buf_fini(&out);
}

static void check_literal(const char *shape, const char *values, const char *expected) {
    check_form(XPL_HLO_TEXT_LONG, shape, values, expected);
}

static void refuse_literal(const char *shape, const char *values) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = literal_module(shape, values), out;
    CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_LONG, &out, 1 << 24), XPL_DATA_LOSS, &err);
    xpl_buf_fini(&out);
}

static void literals(void) {
    static const char s32[] = "2:4 3:[3] 5:{1:[0]}", f32[] = "2:11 3:[2] 5:{1:[0]}";
    check_literal(s32, "4:[1,-2,3]", "constant({1, -2, 3})");
    // Not packed, in pieces, and both.
    check_literal(s32, "4:1 4:-2 4:3", "constant({1, -2, 3})");
    check_literal(s32, "4:[1] 4:-2 4:[3]", "constant({1, -2, 3})");
    check_literal(f32, "8:f1.5 8:f-2", "constant({1.5, -2})");
    check_literal("2:1", "2:1", "constant(true)");
    // More elements than a table's step, from the last dimension to the first.
    char shape[] = "2:4 3:[2,70] 5:{1:[0,1]}", values[800] = "4:[",
         expected[2000] = "constant({ { ";
    for (int i = 0; i < 140; i++)
        (void)snprintf(values + strlen(values), sizeof values - strlen(values), "%d%s", i * 3,
                       i < 139 ? "," : "]");
    for (int i = 0; i < 140; i++)
        (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%d%s",
                       (i < 70 ? i * 2 : (i - 70) * 2 + 1) * 3,
                       i == 69    ? " }, { "
                       : i == 139 ? " } })"
                                  : ", ");
    check_literal(shape, values, expected);
    refuse_literal(s32, "4:[1,2]");
    refuse_literal(s32, "4:[1,2,3,4]");
    refuse_literal(s32, "4:\"\\001\\002\\203\"");      // the last number is cut
    refuse_literal(s32, "4:\"\\001\\002\\003\\203\""); // and one too many
    refuse_literal(f32, "8:\"1234567\"");
    refuse_literal("2:4 3:[4294967296,4294967296] 5:{1:[1,0]}", "");
    refuse_literal("2:4 3:[-1] 5:{1:[0]}", "");
    refuse_literal("2:4 3:[3] 5:{1:[1]}", "4:[1,2,3]"); // no such dimension
    refuse_literal("2:4 3:[1,1] 5:{1:[0,0]}", "4:[1]"); // twice the same
    check_literal("2:4 3:[0,4294967296,4294967296,9] 5:{1:[3,2,1,0]}", "", "constant({  })");
}

// A few bytes state any number of rows without elements.
static void empty_rows(void) {
    static const char many[] = "2:4 3:[1099511627776,0] 5:{1:[1,0]}";
    static const char more[] = "2:4 3:[4294967296,4294967296,0,3] 5:{1:[3,2,1,0]}";
    refuse_literal(many, "");
    refuse_literal(more, "");
    check_form(XPL_HLO_TEXT_SHORT, many, "", "constant({...})");
    check_form(XPL_HLO_TEXT_SHORT, more, "", "constant({...})");
    check_form(XPL_HLO_TEXT_SHORT, "2:4 3:[2,0] 5:{1:[1,0]}", "", "constant({ {}, {} })");
    check_literal("2:4 3:[2,0] 5:{1:[1,0]}", "", "constant({ {}, {} })");
}

// Texts of large empty arrays end at the buffer's limit.
static void large_texts_end(void) {
    struct xpl_buf out, m = literal_module("2:4 3:[1000000,0] 5:{1:[1,0]}", "");
    CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_LONG, &out, 1 << 20), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK(out.n <= 1 << 20);
    xpl_buf_fini(&out);
    xpl_buf_fini(&m);
}

// ---- texts of ops ----

static struct xpl_hlo_module *read_module(const struct xpl_buf *module, struct xpl_arena *a,
                                          bool full) {
    struct xpl_hlo_module *m = NULL;
    const xpl_bytes_t bytes = {module->p, module->n};
    CHECK_OK(full ? xpl_hlo_module_read_full(bytes, a, &m, &err)
                  : xpl_hlo_module_read(bytes, a, &m, &err),
             &err);
    CHECK(m->valid);
    return m;
}

// A tuple of `n` times the same parameter, whose name is long.
static struct xpl_buf wide_tuple(int n) {
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 2), in = mk_open();
    char name[101];
    memset(name, 'n', 100);
    name[100] = 0;
    mk_hlo_instr(&c, (struct mk_instr){.id = 1, .name = name, .opcode = "parameter"});
    struct xpl_buf shape = mk_open();
    mk_text(&in, 1, "t");
    mk_text(&in, 2, "tuple");
    mk_int(&shape, 2, 13);
    mk_close(&in, 3, &shape);
    mk_int(&in, 35, 2);
    for (int i = 0; i < n; i++)
        mk_int(&in, 36, 1);
    mk_close(&c, 2, &in);
    mk_computation_end(&m, &c);
    return m;
}

static void texts_of_ops_are_cut(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = wide_tuple(20000), out;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 26);
    for (int full = 0; full < 2; full++) {
        const struct xpl_hlo_module *const module = read_module(&m, &a, full);
        struct xpl_hlo_text_cache *cache = xpl_hlo_text_cache_new(&a);
        xpl_buf_init(&out, 1 << 22);
        xpl_buf_str(&out, XPL_STR("before "));
        CHECK_OK(xpl_hlo_text_instruction(module, 1, XPL_HLO_TEXT_EXPRESSION, cache, &out, &err),
                 &err);
        CHECK_EQ(out.n, 7 + XPL_HLO_TEXT_CUT);
        CHECK(memcmp(out.p, "before %t = () tuple(f32[] %nnn", 31) == 0);
        xpl_buf_fini(&out);
        struct xpl_hlo_instruction in;
        xpl_str_t text;
        xpl_hlo_module_get(module, 0, &in);
        CHECK(xpl_hlo_expression(&in, &cache, &a, &text));
        CHECK_EQ(text.len, 1 + 100 + sizeof " = f32[] parameter(0)" - 1);
        xpl_hlo_module_get(module, 1, &in);
        CHECK(xpl_hlo_expression(&in, &cache, &a, &text));
        CHECK_EQ(text.len, XPL_HLO_TEXT_CUT);
    }
}

// An op whose literal XLA would refuse has no text, and is not an error.
static void ops_without_text(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf m = literal_module("2:4 3:[3] 5:{1:[0]}", "4:[1,2]");
    struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_hlo_text_cache *cache = NULL;
    struct xpl_hlo_instruction in;
    xpl_str_t text;
    xpl_hlo_module_get(read_module(&m, &a, false), 0, &in);
    CHECK(xpl_hlo_expression(&in, &cache, &a, &text));
    CHECK_EQ(text.len, 0);
    xpl_arena_fini(&a);
    // At the arena's limit the answer fails.
    xpl_arena_init(&a, 8192);
    cache = NULL;
    xpl_hlo_module_get(read_module(&m, &a, false), 0, &in);
    CHECK(!xpl_hlo_expression(&in, &cache, &a, &text));
    xpl_arena_fini(&a);
}

// ---- what XLA refuses ----

static void refused_modules_have_no_text(void) {
    struct xpl_buf m = mk_module("m", 5), out;
    CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_LONG, &out, 1 << 20), XPL_DATA_LOSS, &err);
    xpl_buf_fini(&out);
    xpl_buf_fini(&m);
    // Every end of a good module, and of none is the text like the whole one's.
    XPL_AUTO(xpl_buf_fini) struct xpl_buf good = mk_training_module("m"), expected;
    CHECK_OK(text_of(&good, XPL_HLO_TEXT_LONG_METADATA, &expected, 1 << 20), &err);
    for (size_t n = 0; n < good.n; n++) {
        struct xpl_buf cut = mk_open();
        xpl_buf_put(&cut, good.p, n);
        const xpl_status_t st = text_of(&cut, XPL_HLO_TEXT_LONG_METADATA, &out, 1 << 20);
        CHECK(st == XPL_DATA_LOSS);
        xpl_buf_fini(&out);
        xpl_buf_fini(&cut);
    }
    xpl_buf_fini(&expected);
}

// A schedule that names an instruction twice, or one of another computation.
static void schedules(void) {
    static const struct {
        const char *schedule;
        xpl_status_t expected;
    } cases[] = {
        {"1:{1:2 2:{1:[4,5,6]}}", XPL_OK},    {"1:{1:2 2:{1:[4,4]}}", XPL_DATA_LOSS},
        {"1:{1:2 2:{1:[1]}}", XPL_DATA_LOSS}, {"1:{1:9 2:{1:[1]}}", XPL_OK},
        {"1:{1:2 2:{1:[]}}", XPL_OK},         {"1:{1:2 2:7}", XPL_OK},
        {"1:{1:2 2:{1:4 1:5 1:6}}", XPL_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf m = mk_training_module("m"), s = wt_message(cases[i].schedule), out;
        mk_close(&m, 7, &s);
        CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_LONG, &out, 1 << 20), cases[i].expected, &err);
        xpl_buf_fini(&out);
        xpl_buf_fini(&m);
    }
}

// Stack frames that are their own parents end; the numbers of those in use begin at 1.
static void rings_of_frames_end(void) {
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf m = mk_module("m", 1), c = mk_computation("main", 1, 1), out;
    mk_hlo_instr(&c, (struct mk_instr){
                         .id = 1, .name = "p", .opcode = "parameter", .op_name = "o", .frame = 2});
    mk_computation_end(&m, &c);
    struct xpl_buf frames = wt_message("1:\"f\" 2:\"g\" 3:{1:1 2:1 3:5} 4:{1:1 2:3} 4:{1:1 2:3} "
                                       "4:{1:1 2:2}");
    mk_close(&m, 17, &frames);
    CHECK_OK(text_of(&m, XPL_HLO_TEXT_LONG_METADATA, &out, 1 << 20), &err);
    xpl_buf_putc(&out, 0);
    CHECK(strstr((const char *)out.p, "1 {file_location_id=1 parent_frame_id=1}\n"));
    CHECK(strstr((const char *)out.p, "stack_frame_id="));
    xpl_buf_fini(&out);
}

// Attributes of single opcodes, and the contents of layouts, in XLA's order.
static void single_opcodes(void) {
#define F32_4_4 " 3:{2:11 3:[4,4] 5:{1:[1,0]}}"
    static const char *const rows[][2] = {
        {"1:\"c\" 2:\"cholesky\" 35:2 36:[1] 62:{1:1}" F32_4_4,
         "c = f32[4,4]{1,0} cholesky(p), lower=true"},
        {"1:\"c\" 2:\"cholesky\" 35:2 36:[1] 62:{}" F32_4_4, "c = f32[4,4]{1,0} cholesky(p)"},
        {"1:\"t\" 2:\"triangular-solve\" 35:2 36:[1,1] 59:{1:1 2:1 3:1 4:1}" F32_4_4,
         "t = f32[4,4]{1,0} triangular-solve(p, p), left_side=true, lower=true, "
         "unit_diagonal=true, transpose_a=NO_TRANSPOSE"},
        {"1:\"t\" 2:\"triangular-solve\" 35:2 36:[1,1] 59:{4:2}" F32_4_4,
         "t = f32[4,4]{1,0} triangular-solve(p, p), transpose_a=TRANSPOSE"},
        {"1:\"r\" 2:\"rng\" 35:2 36:[1,1] 23:1" F32_4_4,
         "r = f32[4,4]{1,0} rng(p, p), distribution=rng_uniform"},
        {"1:\"r\" 2:\"rng\" 35:2 36:[1,1] 23:2" F32_4_4,
         "r = f32[4,4]{1,0} rng(p, p), distribution=rng_normal"},
        {"1:\"r\" 2:\"rng-bit-generator\" 35:2 36:[1] 70:1" F32_4_4,
         "r = f32[4,4]{1,0} rng-bit-generator(p), algorithm=rng_three_fry"},
        {"1:\"r\" 2:\"rng-bit-generator\" 35:2 36:[1]" F32_4_4,
         "r = f32[4,4]{1,0} rng-bit-generator(p), algorithm=rng_default"},
        {"1:\"d\" 2:\"dynamic-slice\" 35:2 36:[1,1,1] 20:[1,4]" F32_4_4,
         "d = f32[4,4]{1,0} dynamic-slice(p, p, p), dynamic_slice_sizes={1,4}"},
        {"1:\"n\" 2:\"negate\" 35:2 36:[1] 3:{2:11 3:[4,4] 5:{1:[1,0] 6:{1:[8,128]} "
         "6:{1:[-9223372036854775808,2]} 7:16 8:1 10:{2:11 3:[8]} 11:8 12:9 15:4 16:256 "
         "17:{1:1 2:[64,96]} 17:{2:[7]}}}",
         "n = f32[4,4]{1,0:T(8,128)(*,2)L(256)#(u32)*(u64)E(16)S(1)SC(1:64,96)(0:7)P(f32[8])M(4)} "
         "negate(p)"},
    };
    static const struct base base = {"1:\"m\" 4:{} 6:9",
                                     "1:\"e\" 5:9 6:1 2:{1:\"p\" 2:\"parameter\" 35:1" F32_4_4 "}"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xpl_buf m = with_instruction(&base, rows[i][0]), out;
        CHECK_OK(text_of(&m, XPL_HLO_TEXT_SHORT, &out, 1 << 20), &err);
        if (!contains_line(&out, rows[i][1]))
            fprintf(stderr, "%s\nnot in: %.*s", rows[i][1], (int)out.n, (const char *)out.p);
        CHECK(contains_line(&out, rows[i][1]));
        xpl_buf_fini(&out);
        xpl_buf_fini(&m);
    }
#undef F32_4_4
}

// Slices that are permuted in place: as many of each input as there are tuples of indices.
static void slices_of_permutations(void) {
#define F32_4_4 " 3:{2:11 3:[4,4] 5:{1:[1,0]}}"
#define F32_7   "{2:11 3:[7] 5:{1:[0]}}"
#define PAIR    "{2:13 4:{2:4 5:\"\"} 4:{2:4 5:\"\"}}"
#define ONE     "{2:13 4:{2:4 5:\"\"}}"
    static const struct {
        const char *input, *indices, *sizes, *expected;
    } rows[] = {
        {F32_4_4, PAIR, "20:[2,3]", "source_target_pairs={{0,1}}, slice_sizes={{2,3}}"},
        {F32_4_4, "{2:13 4:" PAIR " 4:" PAIR "}", "20:[2,3,4,1]", "slice_sizes={{2,3},{4,1}}"},
        {" 3:{2:13 4:" F32_7 " 4:" F32_7 "}", ONE, "20:[5,6]", "slice_sizes={{5},{6}}"},
        {" 3:{2:13 4:" F32_7 " 4:" F32_7 "}",
         "{2:13 4:{2:13 4:" ONE " 4:" ONE "} 4:{2:13 4:" ONE "}}", "20:[1,2,3]",
         "slice_sizes={{1},{2},{3}}"},
        {F32_4_4, PAIR, "", "source_target_pairs={{0,1}}\n"},
        {F32_4_4, PAIR, "20:[2]", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "1:\"m\" 4:\"\" 6:9 3:{1:\"e\" 5:9 6:1 2:{1:\"p\" 2:\"parameter\" 35:1%s} "
                       "2:{1:\"i\" 2:\"parameter\" 35:2 9:1 3:%s} "
                       "2:{1:\"c\" 2:\"collective-permute\" 35:3 36:[1,1,2,2] 52:{1:0 2:1} %s%s}}",
                       rows[i].input, rows[i].indices, rows[i].sizes, rows[i].input);
        struct xpl_buf m = wt_message(text), out;
        const xpl_status_t expected = rows[i].expected ? XPL_OK : XPL_DATA_LOSS;
        CHECK_STATUS(text_of(&m, XPL_HLO_TEXT_SHORT, &out, 1 << 20), expected, &err);
        const xpl_str_t got = {(const char *)out.p, out.n};
        CHECK(!rows[i].expected || xpl_str_has(got, xpl_str_from(rows[i].expected)));
        xpl_buf_fini(&out);
        xpl_buf_fini(&m);
    }
#undef F32_4_4
#undef F32_7
#undef PAIR
#undef ONE
}

int main(void) {
    cases_of_xprof();
    single_opcodes();
    slices_of_permutations();
    deep_messages_end();
    literals();
    empty_rows();
    large_texts_end();
    texts_of_ops_are_cut();
    ops_without_text();
    refused_modules_have_no_text();
    schedules();
    rings_of_frames_end();
    return 0;
}
