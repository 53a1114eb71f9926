// SPDX-License-Identifier: Apache-2.0
// Small traces written for these tests, as XSpaces.
#include "analysis/kineto/kineto.h"

#include <inttypes.h>
#include <stdio.h>

#include "analysis/xplane/schema.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "tests/check.h"

// An imported trace, opened.
struct imported {
    struct xpl_buf bytes;
    struct xpl_arena arena;
    struct xpl_xspace *xs;
    bool partial;
};

static xpl_status_t import(xpl_str_t text, struct imported *ret, struct xpl_error *err) {
    const struct xpl_kineto_options options = {.max_bytes = 256 << 20};
    struct xpl_json_reader r;
    struct xpl_exec exec = xpl_exec_serial();
    *ret = (struct imported){0};
    xpl_buf_init(&ret->bytes, options.max_bytes);
    xpl_arena_init(&ret->arena, options.max_bytes);
    xpl_json_reader_init(&r, text, XPL_JSON_LENIENT);
    XPL_TRY(xpl_kineto_import(&r, &options, &ret->bytes, &ret->partial, err));
    return xpl_xspace_open((xpl_bytes_t){ret->bytes.p, ret->bytes.n}, &ret->arena, &exec, &ret->xs,
                           err);
}

static void close(struct imported *i) {
    xpl_arena_fini(&i->arena);
    xpl_buf_fini(&i->bytes);
}

static struct imported good(const char *text) {
    struct xpl_error err = {0};
    struct imported i;
    CHECK_OK(import(xpl_str_from(text), &i, &err), &err);
    return i;
}

// The n-th event of that name on a plane, with its line.
static bool find(const struct imported *i, const char *plane, const char *name, unsigned n,
                 struct xpl_event *ret, const struct xpl_line **ret_line) {
    const struct xpl_plane *const p = xpl_xspace_plane(i->xs, xpl_str_from(plane));
    for (uint32_t k = 0; p && k < p->n_lines; k++) {
        struct xpl_event_cursor c;
        xpl_events_begin(&c, &p->lines[k]);
        while (xpl_events_next(&c, ret) == XPL_WIRE_FIELD) {
            if (!xpl_str_eq(p->event_md[ret->md].name, xpl_str_from(name)) || n--) continue;
            *ret_line = &p->lines[k];
            return true;
        }
    }
    return false;
}

static unsigned count(const struct imported *i) {
    unsigned n = 0;
    for (uint32_t p = 0; p < i->xs->n_planes; p++)
        for (uint32_t k = 0; k < i->xs->planes[p].n_lines; k++)
            n += (unsigned)i->xs->planes[p].lines[k].n_events;
    return n;
}

static xpl_str_t text_stat(const struct xpl_event *e, enum xpl_stat_type type) {
    struct xpl_stat s;
    return xpl_stats_get(e->stats, type, &s) ? xpl_stat_str(&s) : XPL_STR("");
}

static int64_t int_stat(const struct xpl_event *e, enum xpl_stat_type type) {
    struct xpl_stat s;
    return xpl_stats_get(e->stats, type, &s) ? xpl_stat_int(&s) : -1;
}

static xpl_str_t named_stat(const struct xpl_event *e, const char *name) {
    struct xpl_stats it = e->stats;
    struct xpl_stat s;
    while (xpl_stats_next(&it, &s) == XPL_WIRE_FIELD)
        if (xpl_str_eq(s.md->name, xpl_str_from(name))) return xpl_stat_str(&s);
    return XPL_STR("");
}

#define EVENT(cat, name, tid, ts, dur, args)                                                       \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts \
    ",\"dur\":" dur ",\"args\":{" args "}}"
#define KERNEL(name, ts, dur, args)                                                                \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" ts        \
    ",\"dur\":" dur ",\"args\":{\"device\":0,\"stream\":7," args "}}"

// The base time follows the events; times are decimals of 1 ns; External ids lead to a wrong op.
static const char kTrace[] =
    "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H100\","
    "\"totalGlobalMem\":1000,\"computeMajor\":9,\"computeMinor\":0,\"numSms\":132}],"
    "\"cuda_runtime_version\":12000,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":3,"
    "\"world_size\":8},\"traceEvents\":["                                                   //
    EVENT("user_annotation", "ProfilerStep#17", "5", "10.000", "100.000", "") ","           //
    EVENT("python_function", "nn.Module: Net_0", "5", "11", "50", "\"Python id\":1") ","    //
    EVENT("python_function", "nn.Module: Linear_3", "5", "12", "40", "\"Python id\":2") "," //
    EVENT("cpu_op", "aten::linear", "5", "13", "30",
          "\"External id\":4,\"Input Dims\":[[2, 3],[]]") ","                          //
    EVENT("cpu_op", "aten::addmm", "5", "14.001", "20", "\"External id\":5") ","       //
    EVENT("cuda_runtime", "cudaLaunchKernel", "5", "15", "2", "\"correlation\":4") "," //
    EVENT("cuda_runtime", "cudaLaunchKernel", "5", "80", "2", "\"correlation\":9") "," //
    KERNEL("gemm", "20.123", "1.5",
           "\"correlation\":4,\"External id\":4,\"grid\":[1, 2, 3],\"block\":[128, 1, 1],"
           "\"registers per thread\":32") ","            //
    KERNEL("lone", "90", "150", "\"correlation\":9") "," //
    KERNEL("old", "0.5", "1",
           "\"correlation\":2") "," //
                                "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\","
                                "\"pid\":1,\"tid\":5,"
                                "\"ts\":16,\"args\":{\"Addr\":64,\"Bytes\":512,\"Total "
                                "Allocated\":600,\"Total Reserved\":800,"
                                "\"Device Type\":1,\"Device Id\":0}},"
                                "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":5,"
                                "\"args\":{\"name\":\"thread 5 "
                                "(python)\"}}],\"WARNING\":[\"buffers were "
                                "lost\"],\"baseTimeNanoseconds\":1700000000000000000}";

static void test_links(void) {
    struct imported i = good(kTrace);
    struct xpl_event e;
    const struct xpl_line *line;
    CHECK(!i.partial);
    CHECK(find(&i, "/device:GPU:0", "gemm", 0, &e, &line));
    CHECK_EQ(line->absolute_ns + e.offset_ps / 1000, 1700000000000020123);
    CHECK_EQ(e.duration_ps, 1500000);
    CHECK(xpl_str_eq(line->name, XPL_STR("Stream #7")));
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_TF_OP),
                     XPL_STR("Net_0/Linear_3/aten::addmm:torch.GEMM")));
    CHECK_EQ(int_stat(&e, XPL_STAT_CORRELATION_ID), 4);
    CHECK_EQ(int_stat(&e, XPL_STAT_GROUP_ID), 17);
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_KERNEL_DETAILS),
                     XPL_STR("regs:32 static_shared:0 dynamic_shared:0 grid:1,2,3 block:128,1,1")));
    CHECK(find(&i, "/device:GPU:0", "lone", 0, &e, &line));
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_TF_OP), XPL_STR("(no op):torch.Other")));
    CHECK(find(&i, "/device:GPU:0", "old", 0, &e, &line));
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_TF_OP), XPL_STR("(launch not recorded):torch.Other")));
    CHECK_EQ(int_stat(&e, XPL_STAT_GROUP_ID), -1);
    close(&i);
}

static void test_host(void) {
    struct imported i = good(kTrace);
    struct xpl_event e;
    const struct xpl_line *line;
    CHECK(find(&i, "/host:CPU", "aten::addmm", 0, &e, &line));
    CHECK(xpl_str_eq(line->name, XPL_STR("thread 5 (python)")));
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_TF_OP), XPL_STR("aten::addmm:torch.GEMM")));
    CHECK(find(&i, "/host:CPU", "MemoryAllocation", 0, &e, &line));
    CHECK_EQ(int_stat(&e, XPL_STAT_BYTES_ALLOCATED), 600);
    CHECK_EQ(int_stat(&e, XPL_STAT_BYTES_AVAILABLE), 400);
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_ALLOCATOR_NAME), XPL_STR("GPU 0")));
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_TF_OP_NAME),
                     XPL_STR("Net_0/Linear_3/aten::addmm:torch.GEMM")));
    // A step of the device ends with its last op.
    CHECK(find(&i, "/device:GPU:0", "ProfilerStep#17", 0, &e, &line));
    CHECK_EQ(e.duration_ps, (240 - 10) * INT64_C(1000000));
    CHECK_EQ(i.xs->n_warnings, 1);
    CHECK(xpl_str_eq(i.xs->warnings[0], XPL_STR("buffers were lost")));
    close(&i);
}

// ---- calls ----

// An op with these args that launches two kernels, of which the second is longer; on a GPU the text
// of its call, on a CPU the name of its op.
static xpl_str_t call_of(struct imported *i, const char *op, const char *args, bool gpu, char *room,
                         size_t size) {
    char text[8192];
    const char *const kernels =
        "," EVENT("cuda_runtime", "cudaLaunchKernel", "5", "15", "2", "\"correlation\":4") "," //
        EVENT("cuda_runtime", "cudaLaunchKernel", "5", "20", "2", "\"correlation\":5") ","     //
        KERNEL("first", "30", "5", "\"correlation\":4") ","                                    //
        KERNEL("second", "40", "9", "\"correlation\":5");
    (void)snprintf(
        text, sizeof text,
        "{\"schemaVersion\":1,\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":"
        "\"%s\",\"pid\":1,\"tid\":5,\"ts\":10,\"dur\":100,\"args\":{%s}}%s]}",
        op, args, gpu ? kernels : "");
    *i = good(text);
    struct xpl_event e;
    const struct xpl_line *line;
    CHECK(find(i, gpu ? "/device:GPU:0" : "/host:CPU", gpu ? "second" : op, 0, &e, &line));
    if (gpu) CHECK_EQ(int_stat(&e, XPL_STAT_TORCH_RUN), 1);
    const xpl_str_t call = text_stat(&e, gpu ? XPL_STAT_TORCH_CALL : XPL_STAT_HLO_OP);
    (void)snprintf(room, size, "%.*s", XPL_STR_FMT(call));
    if (gpu) CHECK(find(i, "/device:GPU:0", "first", 0, &e, &line));
    if (gpu) CHECK_EQ(int_stat(&e, XPL_STAT_TORCH_RUN), -1);
    close(i);
    return xpl_str_from(room);
}

static void test_calls(void) {
    static const char *const cases[][3] = {
        {"aten::mm",
         "\"Input Dims\":[[2, 3], [3, 4]],\"Input type\":[\"float\", \"c10::BFloat16\"]",
         "aten::mm(f32[2,3], bf16[3,4])"},
        {"aten::add",
         "\"Input Dims\":[[], [], []],\"Input type\":[\"double\", \"Scalar\", \"\"],"
         "\"Concrete Inputs\":[\"\", \"2\", \"\"]",
         "aten::add(f64[], Scalar, -)"},
        {"aten::convolution",
         "\"Input Dims\":[[1, 3, 8, 8], [], []],\"Input type\":[\"c10::Half\", \"ScalarList\", "
         "\"Scalar\"],\"Concrete Inputs\":[\"\", \"[1, 1]\", \"False\"]",
         "aten::convolution(f16[1,3,8,8], [1,1], False)"},
        {"aten::cat",
         "\"Input Dims\":[[[2], [3, 4]], []],\"Input type\":[\"TensorList\", \"Scalar\"]",
         "aten::cat(TensorList[[2],[3,4]], Scalar)"},
        {"a/b", "\"Input Dims\":[[7]],\"Input type\":[\"c10::Float8_e4m3fn\"]", "a|b(f8e4m3fn[7])"},
        // Damaged or old: dimensions without types, types without dimensions, no end.
        {"aten::x", "\"Input Dims\":[[7], []]", "aten::x([7], -)"},
        {"aten::x", "\"Input Dims\":[],\"Input type\":[\"Tensor\"]", "aten::x(Tensor)"},
        {"aten::x", "\"Input Dims\":\"[[7\",\"Input type\":\"[\\\"int\"", "aten::x(\"int[7)"},
        {"aten::x", "\"Input Dims\":3", ""},
        {"aten::x", "\"Input Dims\":\"2,3;4\",\"Input type\":\"float;float\"", ""},
        {"aten::x", "", ""},
    };
    char room[1024];
    struct imported i;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        CHECK_STR(call_of(&i, cases[k][0], cases[k][1], true, room, sizeof room).ptr, cases[k][2]);
        const xpl_str_t on_cpu = call_of(&i, cases[k][0], cases[k][1], false, room, sizeof room);
        CHECK_STR(on_cpu.ptr, cases[k][2][0] ? cases[k][2] : cases[k][0]);
    }
}

// An op of very many inputs keeps the first ones.
static void test_long_calls(void) {
    char args[4096], room[1024];
    struct imported i;
    size_t n =
        (size_t)snprintf(args, sizeof args, "\"Input type\":[\"TensorList\"],\"Input Dims\":[[");
    for (unsigned k = 0; k < 300; k++)
        n += (size_t)snprintf(args + n, sizeof args - n, "%s[%u, 64]", k ? ", " : "", k);
    (void)snprintf(args + n, sizeof args - n, "]]");
    const xpl_str_t call = call_of(&i, "aten::_foreach_add_", args, true, room, sizeof room);
    CHECK_EQ(call.len, 480);
    CHECK(xpl_str_starts(call, XPL_STR("aten::_foreach_add_(TensorList[[0,64],[1,64],")));
    CHECK(xpl_str_ends(call, XPL_STR("...)")));
}

static bool has_warning(const struct imported *i, const char *text) {
    for (uint32_t k = 0; k < i->xs->n_warnings; k++)
        if (xpl_str_has(i->xs->warnings[k], xpl_str_from(text))) return true;
    return false;
}

// A launch with its op and its kernel, whose correlation is 100 * number.
static void put_launch(struct xpl_buf *b, unsigned number, unsigned rows) {
    xpl_buf_printf(b,
                   EVENT("cpu_op", "aten::relu", "5", "%u0", "8",
                         "\"Input Dims\":[[%u]],\"Input type\":[\"float\"]") ",",
                   number, rows);
    xpl_buf_printf(
        b, EVENT("cuda_runtime", "cudaLaunchKernel", "5", "%u1", "2", "\"correlation\":%u00") ",",
        number, number);
    xpl_buf_printf(b, KERNEL("k%u", "%u3", "1", "\"correlation\":%u00") ",", number, number,
                   number);
}

// Very many values of args take no shapes away.
static void test_many_values(void) {
    enum { EVENTS = 700, ARGS = 200 };
    struct xpl_buf b;
    struct xpl_event e;
    const struct xpl_line *line;
    xpl_buf_init(&b, (size_t)64 << 20);
    xpl_buf_str(&b, XPL_STR("{\"traceEvents\":["));
    put_launch(&b, 1, 64);
    for (unsigned i = 0; i < EVENTS; i++) {
        xpl_buf_printf(&b, "{\"ph\":\"X\",\"name\":\"e\",\"ts\":5,\"dur\":1,\"args\":{");
        for (unsigned k = 0; k < ARGS; k++)
            xpl_buf_printf(&b, "%s\"k%u\":\"v%u\"", k ? "," : "", k, i * ARGS + k);
        xpl_buf_str(&b, XPL_STR("}},"));
    }
    put_launch(&b, 2, 64);
    put_launch(&b, 3, 65);
    xpl_buf_str(&b, XPL_STR("{}]}"));
    xpl_buf_putc(&b, 0);
    struct imported i = good((const char *)b.p);
    static const char *const expected[][2] = {{"aten::relu(f32[64])", "[[64]]"},
                                              {"aten::relu(f32[64])", "[[64]]"},
                                              {"aten::relu(f32[65])", "[[65]]"}};
    for (unsigned k = 0; k < 3; k++) {
        const char name[] = {'k', (char)('1' + k), 0};
        CHECK(find(&i, "/device:GPU:0", name, 0, &e, &line));
        CHECK_STR(text_stat(&e, XPL_STAT_TORCH_CALL), expected[k][0]);
        CHECK(find(&i, "/host:CPU", "aten::relu", k, &e, &line));
        CHECK_STR(named_stat(&e, "Input Dims"), expected[k][1]);
    }
    CHECK(!has_warning(&i, "no shapes"));
    close(&i);
    xpl_buf_fini(&b);
}

// Beyond the limit of shapes new ones are missing; those before it stay.
static void test_many_shapes(void) {
    enum { SHAPES = 1 << 17 };
    struct xpl_buf b;
    xpl_buf_init(&b, (size_t)64 << 20);
    xpl_buf_str(&b, XPL_STR("{\"schemaVersion\":1,\"traceEvents\":["));
    for (unsigned i = 0; i < SHAPES + 2; i++)
        xpl_buf_printf(&b,
                       EVENT("cpu_op", "aten::relu", "5", "%u", "0",
                             "\"Input Dims\":[[%u]],\"Input type\":[\"float\"]") ",",
                       i, i);
    xpl_buf_str(&b, XPL_STR(EVENT("cpu_op", "aten::relu", "5", "900000", "0",
                                  "\"Input Dims\":[[9]],\"Input type\":[\"float\"]") "]}"));
    xpl_buf_putc(&b, 0);
    struct imported i = good((const char *)b.p);
    struct xpl_event e;
    const struct xpl_line *line;
    CHECK(find(&i, "/host:CPU", "aten::relu", SHAPES + 2, &e, &line));
    CHECK_STR(text_stat(&e, XPL_STAT_HLO_OP), "aten::relu(f32[9])");
    CHECK(find(&i, "/host:CPU", "aten::relu", SHAPES + 1, &e, &line));
    CHECK_STR(text_stat(&e, XPL_STAT_HLO_OP), "aten::relu");
    CHECK_STR(named_stat(&e, "Input Dims"), "[[131073]]");
    CHECK(has_warning(&i, "no shapes for 2 ops"));
    close(&i);
    xpl_buf_fini(&b);
}

// Every prefix gives its closed events, and all of them when only the end is missing.
static void test_prefixes(void) {
    unsigned most = 0;
    for (size_t n = 1; n < sizeof kTrace - 1; n++) {
        struct xpl_error err = {0};
        struct imported i;
        const xpl_status_t st = import((xpl_str_t){kTrace, n}, &i, &err);
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS);
        if (st == XPL_OK) {
            const unsigned events = count(&i);
            CHECK(i.partial && i.xs->n_errors == 1);
            CHECK(events >= most);
            most = events;
        } else {
            CHECK(!most && err.msg[0]);
        }
        close(&i);
    }
    struct imported whole = good(kTrace);
    CHECK_EQ(most, count(&whole));
    close(&whole);
}

// A trace of three events whose second is `text`; how many are read, and how many are lost.
static void expect_damage(const char *text, unsigned events, bool partial) {
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 16);
    xpl_buf_printf(&b, "{\"schemaVersion\": 1, \"traceEvents\": [\n  %s,\n  %s,\n  %s\n  ]\n}",
                   EVENT("cpu_op", "first", "5", "1", "1", ""), text,
                   EVENT("cpu_op", "third", "5", "3", "1", ""));
    struct xpl_error err = {0};
    struct imported i;
    CHECK_OK(import((xpl_str_t){(const char *)b.p, b.n}, &i, &err), &err);
    CHECK_EQ(count(&i), events);
    CHECK_EQ(i.partial, partial);
    close(&i);
    xpl_buf_fini(&b);
}

// What a text lost, in its own words, of which there is one.
static void expect_loss(const char *text, size_t len, const char *words) {
    struct xpl_error err = {0};
    struct imported i;
    CHECK_OK(import((xpl_str_t){text, len}, &i, &err), &err);
    CHECK(i.partial);
    CHECK_EQ(i.xs->n_errors, 1);
    const xpl_str_t bytes = {(const char *)i.bytes.p, i.bytes.n};
    CHECK(xpl_str_has(bytes, xpl_str_from(words)));
    close(&i);
}

// Events on several lines, as the C++ writer has them: each damage counts once, where its event
// begins.
static void test_damage_of_lines(void) {
    static const char damaged[] = "{\"traceEvents\": [\n  {\n    \"ph\": \"X\", \"name\": \"a\", "
                                  "\"ts\": 1, \"dur\": 1\n  },\n  {\n    \"ph\": \"X\", ?\n  },\n"
                                  "  {\n    \"ph\": \"X\", \"name\": \"b\", \"ts\": 2\n  }\n]}";
    expect_loss(damaged, sizeof damaged - 1, "left out: 1, the first at byte 75");
    static const char whole[] =
        "{\"traceEvents\": [\n  {\n    \"ph\": \"X\", \"name\": \"a\", "
        "\"ts\": 1, \"dur\": 1\n  },\n  {\n    \"ph\": \"X\", \"name\": \"b\"}]}{}";
    expect_loss(whole, sizeof whole - 1 - 6, "within a value");
    expect_loss(whole, sizeof whole - 1, "goes on behind the trace");
}

static void test_padding(void) {
    static const char zeros[] = "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1}]\n\0\0\0\n\0\0[]";
    struct xpl_error err = {0};
    struct imported i;
    CHECK_OK(import((xpl_str_t){zeros, sizeof zeros - 3}, &i, &err), &err);
    CHECK(!i.partial);
    close(&i);
    expect_loss(zeros, sizeof zeros - 1, "goes on behind the trace");
    static const char damaged[] = "{\"traceEvents\": [{\"ph\":\"X\",\"name\":\"a\",\"ts\":1}, "
                                  "{\"ph\":\"X\",\"args\":{\"a\": ]}\n\0\0\0";
    expect_loss(damaged, sizeof damaged, "left out: 1, the first at byte 47");
    static const char cut[] = "{\"traceEvents\": [{\"ph\":\"X\",\"name\":\"a\",\"ts\":1}, "
                              "{\"ph\":\"X\",\"ts\":1\0\0\0";
    expect_loss(cut, sizeof cut, "ends at byte 47 within a value");
}

static void test_refusals(void) {
    static const struct {
        xpl_str_t text;
        const char *why;
    } cases[] = {
        {{"", 0}, "the file is empty"},
        {{"\xff\xfe{\0", 4}, "UTF-16"},
        {{"{\0\"\0", 4}, "UTF-16LE"},
        {{"\x1f\x8b\x08", 3}, "compressed twice"},
        {{"version https://git-lfs.github.com/spec/v1\n", 43}, "git lfs pull"},
        {{"<html>", 6}, "begins with { and has the key traceEvents"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const xpl_bytes_t head = {(const uint8_t *)cases[k].text.ptr, cases[k].text.len};
        CHECK_EQ(xpl_kineto_sniff(head), XPL_KINETO_NOT);
        CHECK(xpl_str_has(xpl_str_from(xpl_kineto_refusal(head)), xpl_str_from(cases[k].why)));
    }
    struct xpl_error err = {0};
    struct imported i;
    CHECK_EQ(import(cases[1].text, &i, &err), XPL_DATA_LOSS);
    CHECK_STR(err.msg, xpl_kineto_refusal((xpl_bytes_t){(const uint8_t *)"\xff\xfe", 2}));
    close(&i);
    err = (struct xpl_error){0};
    CHECK_EQ(import(XPL_STR("{\"schemaVersion\": 1}\n{\"schemaVersion\": 1}"), &i, &err),
             XPL_DATA_LOSS);
    CHECK(strstr(err.msg, "it has no list of traceEvents"));
    close(&i);
}

static void test_damage(void) {
    expect_damage(EVENT("cpu_op", "C:\\temp\\x", "5", "2", "1", ""), 3, false);
    expect_damage(EVENT("cpu_op", "say \"x\" again", "5", "2", "1", ""), 3, false);
    expect_damage(EVENT("cpu_op", "f(\"a\", b)", "5", "2", "1", ""), 2, true);
    expect_damage(EVENT("cpu_op", "tab\there\x01", "5", "2", "1", ""), 3, false);
    expect_damage(EVENT("cpu_op", "no \xff utf", "5", "2", "1", ""), 3, false);
    expect_damage(EVENT("cpu_op", "x", "5", "2", "1", ",\"a\":,\"b\":1,"), 3, false);
    expect_damage(EVENT("cpu_op", "x", "5", "2", "NaN", ""), 2, false);
    expect_damage(EVENT("cpu_op", "x", "5", "Infinity", "1", ""), 2, false);
    expect_damage(EVENT("cpu_op", "x", "5", "2", "1", "\"a\":1 \"b\""), 2, true);
    expect_damage("{\"ph\":\"X\",,", 2, true);
    expect_damage(EVENT("cpu_op", "x", "5", "2", "1", "") "\n" //
                  EVENT("cpu_op", "y", "5", "2", "1", ""),
                  4, false);
    expect_damage(EVENT("cpu_op", "x", "5", "2", "1", "\"n\":NaN"), 3, false);
    expect_damage(EVENT("cpu_op", "x", "5", "2", "999999999999999", ""), 2, false);
    expect_damage(EVENT("cpu_op", "x", "5", "\"2.5\"", "1.2e-05", ""), 3, false);
}

// Each event's name has no end: the reader must not read the rest of the text for each of them.
static void test_endless(void) {
    struct xpl_buf b;
    struct xpl_error err = {0};
    struct imported i;
    xpl_buf_init(&b, 8 << 20);
    xpl_buf_printf(&b, "{\"traceEvents\": [\n%s,", EVENT("cpu_op", "first", "5", "1", "1", ""));
    while (b.n < 4 << 20)
        xpl_buf_printf(&b, "\n{\"ph\"x");
    CHECK_OK(import((xpl_str_t){(const char *)b.p, b.n}, &i, &err), &err);
    CHECK_EQ(count(&i), 1);
    CHECK(i.partial);
    close(&i);
    xpl_buf_fini(&b);
}

// Args that become more than the stats of one event may be: the event is there, with some of them.
static void test_many_args(void) {
    struct xpl_buf b;
    struct xpl_error err = {0};
    struct imported i;
    xpl_buf_init(&b, 2 << 20);
    xpl_buf_str(&b, XPL_STR("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"args\":{"));
    for (int k = 0; k < 40; k++) {
        xpl_buf_printf(&b, "%s\"k%d\":\"", k ? "," : "", k);
        for (int n = 0; n < 22000; n++) // each becomes three bytes
            xpl_buf_putc(&b, '\xff');
        xpl_buf_putc(&b, '"');
    }
    xpl_buf_str(&b, XPL_STR("}}]"));
    CHECK_OK(import((xpl_str_t){(const char *)b.p, b.n}, &i, &err), &err);
    CHECK_EQ(count(&i), 1);
    CHECK(!i.partial);
    close(&i);
    xpl_buf_fini(&b);
}

// Numbers at the ends of what fits, in times, bytes and ids.
static void test_extremes(void) {
    static const char text[] =
        "{'baseTimeNanoseconds':MOST,'deviceProperties':[{'id':0,'totalGlobalMem':MOST}],"
        "'traceEvents':["
        "{'ph':'X','cat':'cpu_op','name':'late','ts':9223372036854775.807,'dur':604800000000},"
        "{'ph':'X','cat':'cpu_op','name':'early','ts':-9223372036854775.807,'dur':5},"
        "{'ph':'X','cat':'cpu_op','name':'op','ts':1,'dur':5,'args':{'External id':LEAST}},"
        "{'ph':'i','cat':'cpu_instant_event','name':'[memory]','ts':1,'args':{'Bytes':LEAST,"
        "'Total Allocated':LEAST,'Total Reserved':MOST,'Device Type':1,'Device Id':0}},"
        "{'ph':'i','cat':'cpu_instant_event','name':'[memory]','ts':2,'args':{'Bytes':LEAST}},"
        "{'ph':'i','cat':'cpu_instant_event','name':'[memory]','ts':3,'args':{'Bytes':LEAST}}]}";
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 16);
    for (const char *p = text; *p; p++) {
        const bool most = strncmp(p, "MOST", 4) == 0, least = strncmp(p, "LEAST", 5) == 0;
        if (most || least)
            xpl_buf_printf(&b, "%" PRId64, most ? INT64_MAX : INT64_MIN);
        else
            xpl_buf_putc(&b, *p == '\'' ? '"' : *p);
        p += most ? 3 : least ? 4 : 0;
    }
    xpl_buf_putc(&b, 0);
    struct imported i = good((const char *)b.p);
    CHECK_EQ(count(&i), 4);
    close(&i);
    xpl_buf_fini(&b);
}

// One event with a wrong time, early or late, leaves the others where they are.
static void test_wrong_times(void) {
    static const char *const wrong[] = {"-2000000000000000", "2000000000000000"};
    for (size_t k = 0; k < 2; k++) {
        struct xpl_buf b;
        struct xpl_event e;
        const struct xpl_line *line;
        xpl_buf_init(&b, 1 << 16);
        xpl_buf_printf(&b, "[");
        for (unsigned n = 0; n < 3; n++)
            xpl_buf_printf(&b, "{\"ph\":\"X\",\"name\":\"e%u\",\"ts\":%u,\"dur\":1},", n, n + 1);
        xpl_buf_printf(&b, "{\"ph\":\"X\",\"name\":\"w\",\"ts\":%s,\"dur\":1}]", wrong[k]);
        xpl_buf_putc(&b, 0);
        struct imported i = good((const char *)b.p);
        CHECK(find(&i, "/host:CPU", "e1", 0, &e, &line));
        CHECK_EQ(e.offset_ps, 1000000);
        CHECK_EQ(e.duration_ps, 1000000);
        close(&i);
        xpl_buf_fini(&b);
    }
}

// Statistics of the file have names, the first one as well.
// A source that gives a few bytes at a time.
static xpl_status_t read_little(void *ctx, uint8_t *to, size_t room, size_t *ret_n,
                                struct xpl_error *err) {
    xpl_str_t *const left = ctx;
    (void)err;
    *ret_n = room < 4096 ? room : 4096;
    if (*ret_n > left->len) *ret_n = left->len;
    memcpy(to, left->ptr, *ret_n);
    *left = xpl_str_sub(*left, *ret_n, SIZE_MAX);
    return XPL_OK;
}

// Damage in front of the events, far from them, costs no event.
static void test_damage_in_front(void) {
    struct xpl_buf b;
    xpl_buf_init(&b, 8 << 20);
    xpl_buf_printf(&b, "{\"schemaVersion\": 1, \"note\": {\"a\" \"b\", ");
    while (b.n < 5 << 20)
        xpl_buf_printf(&b, "\"key\": \"some text of no meaning\", ");
    xpl_buf_printf(&b, "\"c\": 1}, \"traceEvents\": [%s]}",
                   EVENT("cpu_op", "op", "5", "1", "1", ""));
    xpl_str_t left = {(const char *)b.p, b.n};
    const struct xpl_json_source source = {.read = read_little, .ctx = &left};
    const struct xpl_kineto_options options = {.max_bytes = 64 << 20};
    struct xpl_json_reader r = {0};
    struct xpl_error err = {0};
    struct xpl_buf out;
    bool partial = false;
    xpl_buf_init(&out, options.max_bytes);
    CHECK_OK(xpl_json_reader_open(&r, &source, XPL_JSON_LENIENT, &err), &err);
    CHECK_OK(xpl_kineto_import(&r, &options, &out, &partial, &err), &err);
    CHECK(partial);
    CHECK(xpl_str_has((xpl_str_t){(const char *)out.p, out.n}, XPL_STR("cpu_op")));
    xpl_json_reader_fini(&r);
    xpl_buf_fini(&out);
    xpl_buf_fini(&b);
}

static void test_environment(void) {
    struct imported i = good(kTrace);
    const struct xpl_plane *const p = xpl_xspace_plane(i.xs, XPL_STR(XPL_PLANE_NAME_TASK_ENV));
    struct xpl_stats s = p->stats;
    struct xpl_stat stat;
    unsigned n = 0;
    while (xpl_stats_next(&s, &stat) == XPL_WIRE_FIELD) {
        CHECK(stat.md->name.len);
        n += xpl_str_eq(stat.md->name, XPL_STR("schemaVersion"));
    }
    CHECK_EQ(n, 1);
    close(&i);
}

// Ops that have ended below another event are not open; the one below them is.
static void test_crossing(void) {
    struct imported i =
        good("{\"traceEvents\":["                                                               //
             EVENT("cpu_op", "aten::outer", "5", "0", "100", "") ","                            //
             EVENT("cpu_op", "aten::ended", "5", "1", "9", "") ","                              //
             EVENT("cpu_op", "aten::also_ended", "5", "2", "7", "") ","                         //
             EVENT("python_function", "long", "5", "5", "80", "") ","                           //
             EVENT("cuda_runtime", "cudaLaunchKernel", "5", "8", "1", "\"correlation\":1") ","  //
             EVENT("cuda_runtime", "cudaLaunchKernel", "5", "20", "1", "\"correlation\":2") "," //
             EVENT("cuda_runtime", "cudaLaunchKernel", "5", "30", "1", "\"correlation\":3") "," //
             KERNEL("a", "40", "1", "\"correlation\":1") ","                                    //
             KERNEL("b", "50", "1", "\"correlation\":2") ","                                    //
             KERNEL("c", "60", "1", "\"correlation\":3") "]}");
    static const char *const rows[][2] = {
        {"a", "aten::also_ended"}, {"b", "aten::outer"}, {"c", "aten::outer"}};
    for (size_t k = 0; k < 3; k++) {
        struct xpl_event e;
        const struct xpl_line *line;
        CHECK(find(&i, "/device:GPU:0", rows[k][0], 0, &e, &line));
        CHECK(xpl_str_starts(text_stat(&e, XPL_STAT_TF_OP), xpl_str_from(rows[k][1])));
    }
    close(&i);
}

static void test_spellings(void) {
    struct imported i = good("{\"traceEvents\":["
                             "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::mm\",\"pid\":9,"
                             "\"tid\":\"9\",\"ts\":1600000000000001,\"dur\":5},"
                             "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaLaunchKernel\","
                             "\"pid\":9,\"tid\":\"9\",\"ts\":1600000000000002,\"dur\":1,"
                             "\"args\":{\"correlation\":3}},"
                             "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"k\",\"pid\":2,"
                             "\"tid\":\"stream 7\",\"ts\":1600000000000004,\"dur\":1,"
                             "\"args\":{\"correlation\":3,\"device\":2}},"
                             "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":9,\"tid\":\"9\","
                             "\"args\":{\"name\":\"main \\u00e9\"}}]}");
    struct xpl_event e;
    const struct xpl_line *line;
    CHECK(find(&i, "/device:GPU:2", "k", 0, &e, &line));
    CHECK_EQ(line->absolute_ns + e.offset_ps / 1000, 1600000000000004000);
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_TF_OP), XPL_STR("aten::mm:torch.GEMM")));
    CHECK(find(&i, "/host:CPU", "aten::mm", 0, &e, &line));
    CHECK(xpl_str_eq(line->name, XPL_STR("main \xc3\xa9")));
    close(&i);
}

static void test_other_traces(void) {
    struct imported i =
        good("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":5,\"pid\":1,\"tid\":2},"
             "{\"ph\":\"C\",\"name\":\"c\",\"ts\":1,\"pid\":1,\"args\":{\"v\":3}}]");
    CHECK_EQ(count(&i), 2);
    CHECK_EQ(i.xs->n_warnings, 1);
    close(&i);
    i = good("{\"traceEvents\": []}");
    CHECK_EQ(count(&i), 0);
    CHECK(!i.partial);
    close(&i);
    struct xpl_error err = {0};
    CHECK_EQ(import(XPL_STR("3"), &i, &err), XPL_DATA_LOSS);
    close(&i);
    CHECK_EQ(import(XPL_STR("{\"schemaVersion\": 2, \"mediaType\": \"m\"}"), &i, &err),
             XPL_DATA_LOSS);
    close(&i);
}

// Events as a begin and an end, of several threads; an end without a begin is nothing, and a begin
// without an end reaches to the end of the trace.
// An imported trace of text with ' in place of ".
static struct imported quoted(const char *text) {
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 16);
    for (; *text; text++)
        xpl_buf_putc(&b, *text == '\'' ? '"' : *text);
    xpl_buf_putc(&b, 0);
    struct imported i = good((const char *)b.p);
    xpl_buf_fini(&b);
    return i;
}

static void test_begins_and_ends(void) {
    static const char text[] =
        "[{'ph':'E','tid':1,'ts':1},{'ph':'B','name':'outer','tid':1,'ts':2},"
        "{'ph':'B','name':'other','tid':2,'ts':3},"
        "{'ph':'B','name':'inner','tid':1,'ts':4,'cat':'python_function'},"
        "{'ph':'E','tid':1,'ts':7.5},{'ph':'E','name':'outer','tid':1,'ts':9},"
        "{'ph':'i','name':'last','tid':1,'ts':20}]";
    static const struct {
        const char *name;
        int64_t begin_ns, ns;
    } expected[] = {
        {"outer", 0, 7000}, {"inner", 2000, 3500}, {"other", 1000, 17000}, {"last", 18000, 0}};
    struct imported i = quoted(text);
    CHECK_EQ(count(&i), 4);
    for (size_t k = 0; k < 4; k++) {
        struct xpl_event e;
        const struct xpl_line *line;
        CHECK(find(&i, "/host:CPU", expected[k].name, 0, &e, &line));
        CHECK_EQ(e.offset_ps, expected[k].begin_ns * 1000);
        CHECK_EQ(e.duration_ps, expected[k].ns * 1000);
    }
    close(&i);
}

// Begins and ends of ops and kernels: an op's end ends the op, not the annotation around it; the
// args of both count; and an open event reaches to the latest end.
static void test_begins_of_ops(void) {
    struct imported i = quoted(
        "{'schemaVersion':1,'traceEvents':["
        "{'ph':'B','cat':'user_annotation','name':'outer','pid':1,'tid':5,'ts':1},"
        "{'ph':'B','cat':'cpu_op','name':'aten::mm','pid':1,'tid':5,'ts':2,'args':{'a':'of begin',"
        "'b':'of begin'}},"
        "{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':1,'tid':5,'ts':3,'dur':1,"
        "'args':{'correlation':'7'}},"
        "{'ph':'E','pid':1,'tid':5,'ts':8,'args':{'c':'of end'}},"
        "{'ph':'B','cat':'kernel','name':'gemm','pid':0,'tid':7,'ts':10,"
        "'args':{'device':0,'stream':7,'correlation':7}},"
        "{'ph':'E','pid':0,'tid':7,'ts':30},"
        "{'ph':'X','cat':'kernel','name':'none','pid':0,'tid':7,'ts':40,'dur':60,"
        "'args':{'device':0,'stream':7,'correlation':0}}]}");
    struct xpl_event e;
    const struct xpl_line *line;
    CHECK(find(&i, "/host:CPU", "outer", 0, &e, &line));
    CHECK_EQ(e.duration_ps, 99000000);
    CHECK(find(&i, "/host:CPU", "aten::mm", 0, &e, &line));
    CHECK_EQ(e.duration_ps, 6000000);
    CHECK(xpl_str_eq(named_stat(&e, "a"), XPL_STR("of begin")));
    CHECK(xpl_str_eq(named_stat(&e, "b"), XPL_STR("of begin")));
    CHECK(xpl_str_eq(named_stat(&e, "c"), XPL_STR("of end")));
    CHECK(find(&i, "/host:CPU", "cudaLaunchKernel", 0, &e, &line));
    CHECK_EQ(int_stat(&e, XPL_STAT_CORRELATION_ID), 7);
    CHECK(find(&i, "/device:GPU:0", "gemm", 0, &e, &line));
    CHECK_EQ(e.duration_ps, 20000000);
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_TF_OP), XPL_STR("aten::mm:torch.GEMM")));
    CHECK(find(&i, "/device:GPU:0", "none", 0, &e, &line));
    CHECK_EQ(int_stat(&e, XPL_STAT_CORRELATION_ID), -1); // 0 links nothing
    close(&i);
}

// Traces of torch_npu have times as texts, and no categories but those of torch: tasks of the
// device have a type.
static void test_npu(void) {
    struct imported i = quoted(
        "[{'ph':'X','cat':'cpu_op','name':'aten::add','pid':1,'tid':5,'ts':'100.500','dur':'9.5'},"
        "{'ph':'X','name':'AscendCL@aclnnAdd','pid':71,'tid':5,'ts':'101','dur':2,"
        "'args':{'connection_id':3}},"
        "{'ph':'X','name':'other','pid':71,'tid':5,'ts':'108','args':{'connection_id':4}},"
        "{'ph':'X','name':'send','pid':71,'tid':5,'ts':'109','args':{'connection_id':7},"
        "'cat':'net'},"
        "{'ph':'X','name':'Add','pid':7040,'tid':2,'ts':'110.250','dur':4,"
        "'args':{'Task Type':'AI_VECTOR_CORE','Stream Id':2,'connection_id':3}},"
        "{'ph':'X','name':'EVENT_WAIT','pid':7040,'tid':2,'ts':'115','dur':4,"
        "'args':{'Task Type':'EVENT_WAIT','Stream Id':2}}]");
    struct xpl_event e;
    const struct xpl_line *line;
    CHECK(find(&i, "/device:GPU:0", "Add", 0, &e, &line));
    CHECK_EQ(e.offset_ps, 9750000);
    CHECK_EQ(int_stat(&e, XPL_STAT_CORRELATION_ID), 3);
    CHECK(xpl_str_eq(text_stat(&e, XPL_STAT_TF_OP), XPL_STR("(no op):torch.Other")));
    CHECK(find(&i, "/host:CPU", "AscendCL@aclnnAdd", 0, &e, &line));
    CHECK_EQ(int_stat(&e, XPL_STAT_CORRELATION_ID), 3);
    CHECK(find(&i, "/host:CPU", "other", 0, &e, &line));
    CHECK(find(&i, "/host:CPU", "send", 0, &e, &line));
    CHECK_EQ(int_stat(&e, XPL_STAT_CORRELATION_ID), -1); // of another program
    CHECK(find(&i, "Annotations and waits of GPU 0", "EVENT_WAIT", 0, &e, &line));
    close(&i);
}

// Devices that are not listed are as the listed ones if these are alike.
static void test_unlisted_device(void) {
    static const char *const names[] = {"NVIDIA H100", "NVIDIA A100"};
    for (size_t k = 0; k < 2; k++) {
        struct xpl_buf b;
        xpl_buf_init(&b, 1 << 16);
        xpl_buf_printf(&b,
                       "{'deviceProperties':[{'id':0,'name':'NVIDIA H100','numSms':132},"
                       "{'id':1,'name':'%s','numSms':132}],'traceEvents':["
                       "{'ph':'X','cat':'kernel','name':'gemm','pid':3,'tid':7,'ts':1,'dur':1,"
                       "'args':{'device':3}}]}",
                       names[k]);
        xpl_buf_putc(&b, 0);
        struct imported i = quoted((const char *)b.p);
        struct xpl_stat stat;
        const struct xpl_plane *const p = xpl_xspace_plane(i.xs, XPL_STR("/device:GPU:3"));
        CHECK(p);
        CHECK_EQ(xpl_stats_get(p->stats, XPL_STAT_DEV_CAP_COMPUTE_CAP_MAJOR, &stat), k == 0);
        close(&i);
        xpl_buf_fini(&b);
    }
}

static void test_sniff(void) {
    static const struct {
        const char *text;
        enum xpl_kineto_sniffed is;
    } rows[] = {
        {"\xef\xbb\xbf {\"schemaVersion\": 1", XPL_KINETO_TRACE},
        {"{\"schemaVersion\": 1, \"deviceProperties\": [", XPL_KINETO_SURE},
        {"{\"schemaVersion\": 1, \"traceEvents\": [", XPL_KINETO_SURE},
        {"{\"traceEvents\": [{\"cat\": \"cpu_op\"", XPL_KINETO_SURE},
        {"{\"traceEvents\": [", XPL_KINETO_TRACE},
        {"[{\"ph\": \"X\"", XPL_KINETO_TRACE},
        {"{\"schema\": \"1.0.2-chakra.0.0.4\", \"nodes\": []}", XPL_KINETO_NOT},
        {"[1, 2]", XPL_KINETO_NOT},
        {"", XPL_KINETO_NOT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const xpl_str_t s = xpl_str_from(rows[i].text);
        CHECK_EQ(xpl_kineto_sniff((xpl_bytes_t){(const uint8_t *)s.ptr, s.len}), rows[i].is);
    }
}

// The status of an import within a limit, and the bytes of the XSpace.
static xpl_status_t import_within(xpl_str_t text, size_t limit, size_t *ret_n) {
    const struct xpl_kineto_options options = {.max_bytes = limit};
    struct xpl_json_reader r;
    struct xpl_error err = {0};
    struct xpl_buf out;
    bool partial;
    xpl_buf_init(&out, options.max_bytes);
    xpl_json_reader_init(&r, text, XPL_JSON_LENIENT);
    const xpl_status_t st = xpl_kineto_import(&r, &options, &out, &partial, &err);
    *ret_n = out.n;
    xpl_buf_fini(&out);
    return st;
}

static void test_limit(void) {
    struct xpl_buf b;
    size_t n;
    CHECK_EQ(import_within((xpl_str_t){kTrace, sizeof kTrace - 1}, 1 << 13, &n),
             XPL_RESOURCE_EXHAUSTED);
    // Events, names and the XSpace have less than 4 MiB each, and more together.
    xpl_buf_init(&b, (size_t)64 << 20);
    xpl_buf_str(&b, XPL_STR("{\"traceEvents\":["));
    for (int i = 0; i < 20000; i++)
        xpl_buf_printf(&b, "%s{\"ph\":\"X\",\"name\":\"a name of %d\",\"ts\":%d}", i ? "," : "", i,
                       i);
    xpl_buf_str(&b, XPL_STR("]}"));
    const xpl_str_t text = {(const char *)b.p, b.n};
    CHECK_EQ(import_within(text, 16 << 20, &n), XPL_OK);
    CHECK_EQ(import_within(text, 4 << 20, &n), XPL_RESOURCE_EXHAUSTED);
    xpl_buf_fini(&b);
}

struct asked {
    struct xpl_exec exec;
    unsigned n, cancel_at;
};

static bool cancel_at(struct xpl_exec *e) {
    struct asked *const a = (struct asked *)e;
    return a->n++ >= a->cancel_at;
}

// Imports the trace, and gives up when asked for the (at + 1)-th time; *ret_asked: how often it
// was.
static xpl_status_t give_up(const struct xpl_buf *trace, unsigned at, unsigned *ret_asked) {
    struct asked asked = {xpl_exec_serial(), 0, at};
    const struct xpl_kineto_options options = {.max_bytes = 256 << 20, .exec = &asked.exec};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(options.max_bytes);
    struct xpl_error err = {0};
    struct xpl_json_reader r;
    bool partial;
    asked.exec.cancelled = cancel_at;
    xpl_json_reader_init(&r, (xpl_str_t){(const char *)trace->p, trace->n}, XPL_JSON_LENIENT);
    const xpl_status_t st = xpl_kineto_import(&r, &options, &out, &partial, &err);
    if (st != XPL_OK) CHECK_STATUS(st, XPL_CANCELLED, &err);
    if (st != XPL_OK) CHECK_EQ(asked.n, at + 1);
    *ret_asked = asked.n;
    return st;
}

// Each pass over events, launches, device ops, memory, names and texts asks whether to go on, and
// each answer counts.  Reading asks every 1,024 events, other passes every 16,384, sorting never.
static void test_cancelled(void) {
    enum { N = 17000, LEAST = 133 }; // fewer: a loop has stopped asking
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of((size_t)64 << 20);
    unsigned asked;
    xpl_buf_putc(&b, '[');
    for (unsigned i = 0; i < N; i++) {
        put_launch(&b, i, 64);
        xpl_buf_printf(&b,
                       "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":5,\"ts\":%u2,"
                       "\"args\":{\"Bytes\":8}}%c",
                       i, i + 1 < N ? ',' : ']');
    }
    for (unsigned at = 0; give_up(&b, at, &asked) != XPL_OK;)
        at += 7;
    CHECK(asked >= LEAST);
}

// What each device has of the host does not make the XSpace much larger than the trace.
static void test_many_devices(void) {
    struct xpl_buf b;
    size_t n;
    xpl_buf_init(&b, (size_t)64 << 20);
    xpl_buf_str(&b, XPL_STR("{\"traceEvents\":["));
    for (int i = 0; i < 300; i++)
        xpl_buf_printf(&b,
                       "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":%d,\"tid\":7,"
                       "\"ts\":%d,\"dur\":1,\"args\":{\"device\":%d}},",
                       i, i, i);
    for (int i = 0; i < 40000; i++)
        xpl_buf_printf(&b,
                       "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\","
                       "\"ts\":%d,\"dur\":1}",
                       i ? "," : "", i, i);
    xpl_buf_str(&b, XPL_STR("]}"));
    CHECK_EQ(import_within((xpl_str_t){(const char *)b.p, b.n}, (size_t)1 << 30, &n), XPL_OK);
    CHECK(n < 16 * b.n);
    xpl_buf_fini(&b);
}

// rank, world_size, begin_ns, written_ns
typedef int64_t numbers_t[4];

static void identity_is(const char *dir, const char *stem, const char *head,
                        const numbers_t expected, const char *worker) {
    const xpl_bytes_t bytes = {(const uint8_t *)head, strlen(head)};
    struct xpl_profile_identity id;
    xpl_kineto_identify(xpl_str_from(dir), xpl_str_from(stem), bytes, &id);
    CHECK_EQ(id.rank, expected[0]);
    CHECK_EQ(id.world_size, expected[1]);
    CHECK_EQ(id.begin_ns, expected[2]);
    CHECK_EQ(id.written_ns, expected[3]);
    CHECK_EQ(id.worker_len, strlen(worker));
    CHECK(!id.is_part);
}

static void test_identity(void) {
    enum { NONE = -1 };
    const int64_t begin = 1700000000000000000;
    // The trace says it: members of objects within others do not count, nor does the name then.
    const char *const whole =
        "{\"schemaVersion\": 1,\n \"distributedInfo\": {\"pg_config\": [{\"rank\": 9, "
        "\"x\": \"}\\\"\"}], \"rank\": 3,\n \"world_size\":128},\n"
        "\"baseTimeNanoseconds\": 1700000000000000000,\"traceEvents\": [{\"ph\": \"X\", "
        "\"ts\": 12.5, \"dur\": 1}, {\"ts\": 99}]}";
    identity_is("run", "host_7.1700000005000000000", whole,
                (numbers_t){3, 128, begin + 12500, begin + 5000000000}, "host_7");
    identity_is("run", "rank9", whole, (numbers_t){3, 128, begin + 12500, 0}, "rank9");
    identity_is(
        "", "a",
        "{\"distributedInfo\": {\"rank\": 0},\"traceEvents\":[{\"ts\": \"1700000000000000\"}",
        (numbers_t){0, NONE, begin, 0}, "a");
    // Without a base times count from an instant that nobody knows.
    identity_is("", "a", "{\"traceEvents\":[{\"ts\": 99}", (numbers_t){NONE, NONE, 0, 0}, "a");
    // Names: of torch, of servers, and of people.
    identity_is("", "worker0.1623143089861", "", (numbers_t){NONE, NONE, 0, 1623143089861000000},
                "worker0");
    identity_is("", "sampled_rank-1", "", (numbers_t){1, NONE, 0, 0}, "sampled_rank-1");
    identity_is("", "trace_rank0_step5", "", (numbers_t){0, NONE, 0, 0}, "trace_rank0_step5");
    identity_is("", "Rank 12", "", (numbers_t){12, NONE, 0, 0}, "Rank 12");
    identity_is("", "1736844554.64-TP-3.trace", "", (numbers_t){3, NONE, 0, 0},
                "1736844554.64-TP-3.trace");
    identity_is("", "http-3", "", (numbers_t){NONE, NONE, 0, 0}, "http-3");
    identity_is("", "rank", "", (numbers_t){NONE, NONE, 0, 0}, "rank");
    identity_is("log/rank_2", "trace", "", (numbers_t){2, NONE, 0, 0}, "trace");
    struct xpl_profile_identity id;
    xpl_kineto_identify(XPL_STR("run/capture_traces"), XPL_STR("bs_32"), (xpl_bytes_t){0}, &id);
    CHECK(id.is_part);
    xpl_kineto_identify(XPL_STR("run"), XPL_STR("graph_capture_rank_0"), (xpl_bytes_t){0}, &id);
    CHECK(id.is_part && id.rank == 0);
}

// Whatever the clock says, times of events count from the first one, and the profile says when that
// was; where nothing says it, 0.
static void test_bases(void) {
    static const struct {
        const char *base, *first, *second; // us
        int64_t start_ns;
    } all[] = {
        {"1700000000000000000", "1", "11.5", 1700000000000001000},
        {"1798502400000000000", "1", "11.5", 1798502400000001000}, // 2026-12-29
        {"1893456000000000000", "0", "10.5", 1893456000000000000}, // 2030
        {"1893456000000000000", "-2.25", "8.25", 1893455999999997750},
        {"2305843009213693951", "7", "17.5", 2305843009213700951},
        {"0", "1893456000000000.125", "1893456000000010.625", 1893456000000000125},
        {"0", "5", "15.5", 0},                          // since boot
        {"0", "17280000000000.5", "17280000000011", 0}, // 200 days of it
        {"0", "0", "10.5", 0},
        {"0", "-5", "5.5", 0},
        {"-1893456000000000000", "5", "15.5", 0},
        {"9223372036854775807", "5", "15.5", 0},
        {"\"1893456000000000000\"", "0", "10.5", 1893456000000000000},
        {"null", "5", "15.5", 0},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        char text[512];
        struct xpl_event e;
        const struct xpl_line *line;
        (void)snprintf(text, sizeof text,
                       "{\"schemaVersion\":1,\"traceEvents\":["
                       "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,"
                       "\"ts\":%s,\"dur\":2},"
                       "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,"
                       "\"ts\":%s,\"dur\":1,\"args\":{\"device\":0,\"stream\":7}}],"
                       "\"baseTimeNanoseconds\":%s}",
                       all[k].first, all[k].second, all[k].base);
        struct imported i = good(text);
        CHECK_EQ(i.xs->start_ns, all[k].start_ns);
        CHECK(find(&i, "/host:CPU", "a", 0, &e, &line));
        CHECK_EQ(xpl_event_begin_ps(line, &e), 0);
        CHECK_EQ(line->absolute_ns, all[k].start_ns);
        CHECK(find(&i, "/device:GPU:0", "k", 0, &e, &line));
        CHECK_EQ(xpl_event_begin_ps(line, &e), 10500000);
        CHECK_EQ(xpl_event_end_ps(line, &e), 11500000);
        close(&i);
    }
}

int main(void) {
    test_bases();
    test_links();
    test_host();
    test_calls();
    test_long_calls();
    test_many_values();
    test_many_shapes();
    test_prefixes();
    test_damage();
    test_damage_of_lines();
    test_padding();
    test_refusals();
    test_damage_in_front();
    test_endless();
    test_many_args();
    test_extremes();
    test_environment();
    test_wrong_times();
    test_crossing();
    test_spellings();
    test_other_traces();
    test_begins_and_ends();
    test_begins_of_ops();
    test_npu();
    test_unlisted_device();
    test_sniff();
    test_limit();
    test_cancelled();
    test_many_devices();
    test_identity();
    return 0;
}
