// SPDX-License-Identifier: Apache-2.0
// Memory of HLO programs: the replayed trace, the buffers at the peak, the lifetimes of buffers,
// and impossible assignments. tests/parity/hlo_memory.py compares valid programs with XProf.
#include <string.h>

#include "analysis/hlo/memory/memory.h"
#include "tests/cancelled.h"
#include "tests/memory_viewer_fixture.h"
#include "tests/wire_text.h"

enum { LIMIT = 1 << 26 };

static struct xpl_error err;
static struct xpl_arena g_arena;
static struct xpl_exec g_exec;

// Instructions 1 to 5: arrays of 5000 and 10 floats, a tuple of tuples, a token, one with frames.
#define MODULE                                                                                     \
    "1:{1:\"m\" 2:\"e\" 3:{1:\"e\" 5:1 "                                                           \
    "2:{1:\"a\" 2:\"add\" 35:1 3:{2:11 3:[5000] 5:{1:[0]}} 7:{2:\"op\" 3:\"f.py\" 4:7}} "          \
    "2:{1:\"b\" 2:\"add\" 35:2 3:{2:11 3:[10] 5:{1:[0]}}} "                                        \
    "2:{1:\"t\" 2:\"tuple\" 35:3 3:{2:13 4:{2:13 4:{2:11 3:[7]} 4:{2:11 3:[9]}} 4:{2:11 3:[3]}}} " \
    "2:{1:\"k\" 2:\"token\" 35:4 3:{2:17}} "                                                       \
    "2:{1:\"s\" 2:\"add\" 35:5 3:{2:4 3:[4]} 7:{15:2}}} "                                          \
    "17:{1:\"g.py\" 3:{1:1 3:12 4:3} 3:{3:5} 4:{1:1} 4:{1:2 2:1} 4:{1:1 2:4} 4:{1:1 2:3}}} "

// Buffers 1 to 5 of 20000, 30000, 100, 0 and 40000 bytes; 1 and 2 of instruction 1.
#define BUFFERS                                                                                    \
    "1:{1:1 2:20000 3:{4:1}} 1:{1:2 2:30000 3:{4:1}} 1:{1:3 2:100 3:{4:2}} 1:{1:4 3:{4:4}} "       \
    "1:{1:5 2:40000 3:{4:5}} "
// One allocation of index 2 with all but the last, and one that lasts with the last.
#define ALLOCATIONS                                                                                \
    "3:{1:2 2:60000 9:{1:1 3:20000} 9:{1:2 2:20000 3:30000} 9:{1:3 2:50000} 9:{1:4}} "             \
    "3:{1:1 2:40000 5:1 9:{1:5 3:40000}} "
#define ASSIGNMENT(traces) "3:{" BUFFERS ALLOCATIONS traces "}"

static struct xpl_hlo_memory *read_color(const char *text, int64_t color, xpl_status_t expected) {
    struct xpl_hlo_memory *m = NULL;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf proto = wt_message(text);
    // The result aliases the bytes: they stay in the arena.
    uint8_t *const bytes = xpl_arena_alloc(&g_arena, proto.n);
    CHECK(bytes);
    if (proto.n) memcpy(bytes, proto.p, proto.n);
    err = (struct xpl_error){0};
    CHECK_STATUS(
        xpl_hlo_memory_read((xpl_bytes_t){bytes, proto.n}, color, &g_exec, &g_arena, &m, &err),
        expected, &err);
    return m;
}
static struct xpl_hlo_memory *read_memory(const char *text) {
    return read_color(text, 0, XPL_OK);
}

static void refuses(const char *part, const char *text) {
    (void)read_color(text, 0, XPL_DATA_LOSS);
    if (!strstr(err.msg, part)) fprintf(stderr, "%s\nnot in: %s\n", part, err.msg);
    CHECK(strstr(err.msg, part));
}

static void holds(const struct xpl_hlo_memory *m, const int64_t *ids) {
    for (uint32_t i = 0; i < m->n_held; i++) {
        CHECK(ids[i]);
        CHECK_EQ(m->buffers[m->held[i]].id, ids[i]);
    }
    CHECK_EQ(ids[m->n_held], 0);
}

static const struct hlo_buffer *buffer(const struct xpl_hlo_memory *m, int64_t id) {
    for (uint32_t i = 0; i < m->n_buffers; i++)
        if (m->buffers[i].id == id) return &m->buffers[i];
    fprintf(stderr, "buffer %" PRId64 "\n", id);
    FAIL_TEST("there is such a buffer");
    return NULL;
}

static void lives(const struct xpl_hlo_memory *m, int64_t id, uint32_t first, uint32_t last) {
    const struct hlo_buffer *const b = buffer(m, id);
    CHECK(b->lives);
    CHECK_EQ(b->first, first);
    CHECK_EQ(b->last, last);
}

static void test_peak(void) {
    // Take 1, 3; free 1; take 2; free 3, 2.
    const struct xpl_hlo_memory *m =
        read_memory(MODULE ASSIGNMENT("4:{1:{2:1 4:\"a\"} 1:{2:3 4:\"b\"} 1:{1:1 2:1} 1:{2:2} "
                                      "1:{1:1 2:3} 1:{1:1 2:2}}"));
    CHECK_EQ(m->n_steps, 7);
    static const int64_t heap[] = {0, 20000, 20100, 100, 30100, 30000, 0};
    static const int64_t unpadded[] = {0, 20000, 20040, 40, 20040, 20000, 0};
    for (uint32_t i = 0; i < 7; i++) {
        CHECK_EQ(m->heap[i], heap[i]);
        CHECK_EQ(m->unpadded_heap[i], unpadded[i]);
    }
    CHECK(xpl_str_eq(m->names[1], XPL_STR("b")) && m->names[6].len == 0);
    CHECK_EQ(m->peak, 30100);
    CHECK_EQ(m->unpadded_peak, 20040);
    CHECK_EQ(m->peak_step, 3);
    CHECK_EQ(m->lasting, 40000);
    holds(m, (const int64_t[]){5, 3, 2, 0});
    CHECK_EQ(m->small, 100);
    CHECK_EQ(buffer(m, 5)->number, 0);
    CHECK_EQ(buffer(m, 2)->number, 1);
    CHECK_EQ(buffer(m, 3)->number, -1);
    CHECK_EQ(buffer(m, 1)->number, -1);
    lives(m, 1, 0, 2);
    lives(m, 3, 1, 4);
    lives(m, 2, 3, 5);
    CHECK(!buffer(m, 5)->lives && !buffer(m, 4)->lives);
    // By index: the one that lasts is first.
    CHECK_EQ(m->allocations[0].index, 1);
    CHECK(xpl_hlo_allocation_lasts(&m->allocations[0]) && m->allocations[1].trace == 0);
    CHECK_EQ(buffer(m, 1)->allocation, 1);
    CHECK_EQ(buffer(m, 5)->allocation, 0);
}

// 3 takes over what 2 had when 2 is freed, and lives from then on.
static void test_sharing(void) {
    const struct xpl_hlo_memory *const m = read_memory(
        MODULE ASSIGNMENT("4:{1:{2:2} 1:{1:1 2:2} 1:{1:2 2:3 5:2} 1:{2:1} 1:{1:1 2:3} 1:{2:99}}"));
    static const int64_t heap[] = {0, 30000, 0, 30000, 50000, 20000, 20000};
    for (uint32_t i = 0; i < 7; i++)
        CHECK_EQ(m->heap[i], heap[i]);
    lives(m, 2, 0, 1);
    lives(m, 3, 2, 4);
    lives(m, 1, 3, 5);
    holds(m, (const int64_t[]){5, 3, 1, 0});
    // While 2 still has its memory, 3 only keeps it from being given back.
    const struct xpl_hlo_memory *const n = read_memory(
        MODULE ASSIGNMENT("4:{1:{2:2} 1:{1:2 2:3 5:2} 1:{1:1 2:2} 1:{1:1 2:3} 1:{1:2 2:3 5:98}}"));
    CHECK(n->heap[3] == 30000 && n->heap[4] == 0);
    lives(n, 2, 0, 3);
    CHECK(!buffer(n, 3)->lives);
}

// The trace of an allocation of the color, else the one with the most events about its buffers.
static void test_traces(void) {
    static const char text[] =
        MODULE "3:{1:{1:1 2:9 3:{4:2}} 1:{1:2 2:8 3:{4:2} 4:1} 1:{1:3 2:7 3:{4:2} 4:1} "
               "3:{2:9 9:{1:1} 9:{1:2}} 3:{1:1 2:7 8:1 12:1 9:{1:3}} "
               "4:{} 4:{1:{2:1}} 4:{1:{2:1} 1:{2:2} 1:{1:1 2:2}}}";
    const struct xpl_hlo_memory *const zero = read_color(text, 0, XPL_OK);
    CHECK_EQ(zero->allocations[0].trace, 2);
    CHECK_EQ(zero->n_steps, 4);
    const struct xpl_hlo_memory *const one = read_color(text, 1, XPL_OK);
    CHECK_EQ(one->n_steps, 4); // by its events: nothing of the color has a trace
    CHECK_EQ(one->lasting, 7);
    CHECK(one->n_held == 3 && one->first_shown == 1); // lasting buffers are the main memory's
    const struct xpl_hlo_memory *const two = read_color(text, 2, XPL_OK);
    CHECK(two->n_steps == 0 && two->n_held == 0 && two->lasting == 0);
    CHECK_EQ(read_memory("")->n_buffers, 0);
}

static void shape_of(const char *location, int64_t unpadded) {
    char text[2000];
    (void)snprintf(text, sizeof text, MODULE "3:{1:{1:1 2:1 3:{%s}} 3:{9:{1:1} 9:{1:77}}}",
                   location);
    const struct xpl_hlo_memory *const m = read_memory(text);
    CHECK_EQ(m->buffers[0].unpadded, unpadded);
    CHECK_EQ(m->assigned[1].buffer, UINT32_MAX);
}

// As XProf: the part of the value that the last number names.
static void test_shapes(void) {
    shape_of("4:1", 20000);
    shape_of("4:1 3:[3]", 20000);
    shape_of("4:3", 16);
    shape_of("4:3 3:[0]", 16);
    shape_of("4:3 3:[0,1]", 12);
    shape_of("4:3 3:0 3:1", 12);
    shape_of("4:3 3:[1,0]", 16);
    shape_of("4:3 3:[0,9]", 16);
    shape_of("4:4", 0);
}

// A tuple of many tokens with as many buffers, each of one part: no size is worked out twice.
static void test_many_parts(void) {
    enum { PARTS = 200000 };
    struct xpl_buf proto = mk_open(), module = mk_open(), c = mk_open(), in = mk_open(),
                   shape = mk_open(), all = mk_open(), held = mk_open();
    struct xpl_hlo_memory *m = NULL;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena;
    mk_int(&shape, 2, 13);
    for (int i = 0; i < PARTS; i++) {
        struct xpl_buf part = mk_open(), b = mk_open(), at = mk_open(), one = mk_open();
        mk_int(&part, 2, i == PARTS - 1 ? 13 : 17);
        if (i == PARTS - 1) mk_len(&part, 4, "", 0);
        mk_close(&shape, 4, &part);
        mk_int(&b, 1, i + 1);
        mk_int(&at, 3, i);
        mk_int(&at, 4, 1);
        mk_close(&b, 3, &at);
        mk_close(&all, 1, &b);
        mk_int(&one, 1, i + 1);
        mk_close(&held, 9, &one);
    }
    mk_int(&in, 35, 1);
    mk_close(&in, 3, &shape);
    mk_close(&c, 2, &in);
    mk_close(&module, 3, &c);
    mk_close(&all, 3, &held);
    mk_close(&proto, 1, &module);
    mk_close(&proto, 3, &all);
    xpl_arena_init(&arena, (size_t)1 << 28);
    CHECK_OK(xpl_hlo_memory_read((xpl_bytes_t){proto.p, proto.n}, 0, &g_exec, &arena, &m, &err),
             &err);
    CHECK_EQ(m->n_buffers, PARTS);
    CHECK_EQ(m->buffers[PARTS - 2].unpadded, 0);
    CHECK_EQ(m->buffers[PARTS - 1].unpadded, 8);
    xpl_buf_fini(&proto);
}

static void source_of(uint32_t frame, const char *file, int32_t line, const char *stack) {
    struct xpl_hlo_memory *const m = read_memory(MODULE ASSIGNMENT(""));
    struct hlo_buffer b = *buffer(m, 3);
    struct xpl_hlo_buffer_source s;
    b.op.frame = (int32_t)frame;
    CHECK(xpl_hlo_buffer_source(m, &b, &g_arena, &s));
    CHECK(xpl_str_eq(s.file, xpl_str_from(file)));
    CHECK_EQ(s.line, line);
    CHECK(xpl_str_starts(s.stack, xpl_str_from(stack)));
}

static void test_sources(void) {
    source_of(0, "", -1, "");
    source_of(1, "g.py", 12, "g.py:12:3");
    source_of(2, "", -1, "");
    source_of(9, "", -1, "");
    // Frames 3 and 4 are each other's parents: as many as are shown, no more.
    source_of(3, "g.py", 12, "g.py:12:3\ng.py:12:3\n");
    struct xpl_hlo_memory *const m = read_memory(MODULE ASSIGNMENT(""));
    struct xpl_hlo_buffer_source s;
    CHECK(xpl_hlo_buffer_source(m, buffer(m, 1), &g_arena, &s));
    CHECK(xpl_str_eq(s.file, XPL_STR("f.py")) && s.line == 7 && s.stack.len == 0);
}

#define BUFFER(fields) MODULE "3:{1:{1:1 " fields "} 3:{2:9 9:{1:1}} 4:{1:{2:1}}}"

static void test_broken(void) {
    refuses("of no instruction", BUFFER("2:1 3:{4:99}"));
    refuses("of no instruction", "3:{1:{1:1 3:{4:1}} 3:{9:{1:1}}}");
    refuses("no shape", BUFFER("2:1 3:{4:3 3:[-1]}"));
    refuses("has -5 bytes", BUFFER("2:-5 3:{4:1}"));
    refuses("has -5 bytes", MODULE "3:{3:{2:-5}}");
    refuses("negative offset", MODULE "3:{" BUFFERS "3:{2:9 9:{1:1 2:-1}}}");
    refuses("negative offset", MODULE "3:{" BUFFERS "3:{2:9 9:{1:1 3:-1}}}");
    refuses("two allocations of index 2", MODULE "3:{3:{1:2} 3:{1:1} 3:{1:2}}");
    refuses("two allocations of index 0", MODULE "3:{3:{} 3:{}}");
    refuses("freed twice", MODULE ASSIGNMENT("4:{1:{2:1} 1:{1:1 2:1} 1:{1:1 2:1}}"));
    refuses("several allocations", MODULE ASSIGNMENT("4:{1:{2:1} 1:{2:5}}"));
    refuses("of kind 3", MODULE ASSIGNMENT("4:{1:{2:1} 1:{1:3 2:1}}"));
    refuses("shares its memory with itself", MODULE ASSIGNMENT("4:{1:{1:2 2:1 5:1}}"));
    refuses("shares its memory with itself",
            MODULE ASSIGNMENT("4:{1:{1:2 2:1 5:2} 1:{1:2 2:2 5:3} 1:{1:2 2:3 5:1}}"));
    // More goes than came: 2 has the memory of 3, which is smaller.
    refuses("bytes after event",
            MODULE ASSIGNMENT("4:{1:{1:2 2:3 5:2} 1:{1:1 2:3} 1:{2:3} 1:{1:1 2:3}}"));
    refuses("more than 2^63", MODULE "3:{1:{1:1 2:9000000000000000000 3:{4:1}} "
                                     "3:{9:{1:1}} 4:{1:{2:1} 1:{2:1}}}");
    refuses("more than 2^63", MODULE "3:{1:{1:1 2:1 3:{4:1}} 1:{1:2 2:1 3:{4:1}} "
                                     "3:{2:9000000000000000000 7:1 9:{1:1}} "
                                     "3:{1:1 2:9000000000000000000 7:1 9:{1:2}}}");
    static const char *const shapes[] = {"2:99",           "2:0",
                                         "2:11 3:[-1]",    "2:11 3:[4611686018427387904,4]",
                                         "2:34",           "2:11 3:[4] 5:{7:-1}",
                                         "2:34 4:{2:34}}", "2:11 3:[9000000000000000000]"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes - 2; i++) {
        char text[300];
        (void)snprintf(text, sizeof text, "1:{3:{2:{35:1 3:{%s}}}} 3:{1:{1:1 3:{4:1}} 3:{9:{1:1}}}",
                       shapes[i]);
        refuses("no shape", text);
    }
    static const char *const malformed[] = {
        "3:{1:\"\\012\"}",         "3:{3:\"\\012\"}", "3:{3:{9:\"\\012\"}}", "3:{4:\"\\012\"}",
        "3:{1:{1:1 3:\"\\012\"}}", "1:{3:\"\\012\"}", "1:{3:{2:\"\\012\"}}", "1:{17:\"\\012\"}"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        refuses("malformed", malformed[i]);
}

// A chain of 60,000 buffers, each of which shares the memory of the next one, and each of which is
// then freed: 2^30 steps.
static void test_chain(void) {
    enum { N = 60000 };
    XPL_AUTO(xpl_buf_fini)
    struct xpl_buf proto = wt_message("1:{3:{2:{35:1 3:{2:11}}}}"), ba = mk_open();
    struct xpl_buf allocation = mk_open(), trace = mk_open();
    for (int64_t i = 1; i <= N; i++) {
        char text[60];
        (void)snprintf(text, sizeof text, "1:%d 2:1 3:{4:1}", (int)i);
        struct xpl_buf b = wt_message(text), a = mk_open(), e = mk_open();
        mk_close(&ba, 1, &b);
        mk_int(&a, 1, i);
        mk_close(&allocation, 9, &a);
        mk_int(&e, 1, i == 1 ? 0 : 2);
        mk_int(&e, 2, N + 1 - i);
        mk_int(&e, 5, N + 2 - i);
        mk_close(&trace, 1, &e);
    }
    for (int64_t i = 1; i <= N; i++) {
        struct xpl_buf f = mk_open();
        mk_int(&f, 1, 1);
        mk_int(&f, 2, i);
        mk_close(&trace, 1, &f);
    }
    mk_close(&ba, 3, &allocation);
    mk_close(&ba, 4, &trace);
    mk_close(&proto, 3, &ba);
    struct xpl_hlo_memory *m = NULL;
    err = (struct xpl_error){0};
    CHECK_STATUS(
        xpl_hlo_memory_read((xpl_bytes_t){proto.p, proto.n}, 0, &g_exec, &g_arena, &m, &err),
        XPL_RESOURCE_EXHAUSTED, &err);
    CHECK(strstr(err.msg, "steps"));
}

// ---- the answers ----

static bool has(const struct xpl_buf *b, const char *text) {
    const bool found = xpl_str_has((xpl_str_t){(const char *)b->p, b->n}, xpl_str_from(text));
    if (!found) fprintf(stderr, "%s\nnot in: %.*s\n", text, (int)b->n, (char *)b->p);
    return found;
}

static void answers(const char *text, const char *const *options, size_t limit,
                    xpl_status_t expected, struct xpl_buf *out) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf proto = wt_message(text);
    err = (struct xpl_error){0};
    CHECK_STATUS(ask_memory_viewer((xpl_bytes_t){proto.p, proto.n}, options, limit, out, &err),
                 expected, &err);
}
#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define TAKEN "4:{1:{2:1 4:\"a<\"} 1:{2:2} 1:{1:1 2:1}}"

static void test_json(void) {
    struct xpl_buf out;
    answers(MODULE ASSIGNMENT(TAKEN), NULL, LIMIT, XPL_OK, &out);
    CHECK(has(&out, "{\"heapSizes\":[0.03814697265625,0.057220458984375,"));
    CHECK(has(&out, "\"maxHeap\":[{\"numbered\":0,\"label\":\"s: s32[4] # \",\"logicalBufferId\":5,"
                    "\"logicalBufferSizeMib\":0.03814697265625,"));
    CHECK(has(&out, "\"sourceInfo\":{\"fileName\":\"f.py\",\"lineNumber\":7}}"));
    CHECK(has(&out, "\"maxHeapToBySize\":[0,2,1],\"bySizeToMaxHeap\":[0,2,1],\"moduleName\":\"m\","
                    "\"entryComputationName\":\"e\""));
    CHECK(
        has(&out, "\"logicalBufferSpans\":{\"1\":{\"limit\":2},\"2\":{\"start\":1,\"limit\":2}}"));
    CHECK(has(&out, "\"hloInstructionNames\":[\"a\\u003c\",\"\",\"\",\"\"]"));
    CHECK(has(&out, "\"color\":\"#81c784\"}]}"));
    xpl_buf_fini(&out);
    answers(MODULE ASSIGNMENT(TAKEN), OPTIONS("memory_space", " 7 "), LIMIT, XPL_OK, &out);
    CHECK(has(&out, "{\"moduleName\":\"m\",\"entryComputationName\":\"e\"}"));
    xpl_buf_fini(&out);
    answers(MODULE ASSIGNMENT(TAKEN), NULL, 3000, XPL_RESOURCE_EXHAUSTED, &out);
    xpl_buf_fini(&out);
    answers(MODULE "3:{3:{2:9000000000000000000} 3:{1:1 2:9000000000000000000}}", NULL, LIMIT,
            XPL_DATA_LOSS, &out);
    xpl_buf_fini(&out);
}

// Spans have 32 bits of ids: of buffers 2 and 2^32 + 2 the first has one.
static void test_twins(void) {
    struct xpl_buf out;
    answers(MODULE "3:{1:{1:2 2:9 3:{4:1}} 1:{1:4294967298 2:9 3:{4:1}} 1:{1:3 2:9 3:{4:1}} "
                   "3:{1:0 2:9 9:{1:2 3:9} 9:{1:4294967298 3:9} 9:{1:3 3:9}} "
                   "4:{1:{2:3} 1:{2:4294967298} 1:{2:2}}}",
            NULL, LIMIT, XPL_OK, &out);
    CHECK(has(&out, "\"logicalBufferSpans\":{\"2\":{\"start\":2,\"limit\":2},"
                    "\"3\":{\"limit\":2}}"));
    xpl_buf_fini(&out);
}

// The largest configuration of memory space 1 counts; unreadable ones do not.
static void test_scoped(void) {
    static const char text[] =
        "1:{1:\"m\" 3:{2:{1:\"x\" 43:\"{\\042used_scoped_memory_configs\\042:[{"
        "\\042memory_space\\042:\\0421\\042,\\042size\\042:\\0421048576\\042},"
        "{\\042memory_space\\042:0,\\042size\\042:9e9},5]}\"} "
        "2:{1:\"y\" 43:\"{\\042used_scoped_memory_configs\\042:[{\\042memory_space\\042:1.0,"
        "\\042size\\042:2097152.0}]}\"} 2:{1:\"z\" 43:\"{broken\"} "
        "2:{1:\"u\" 43:\"{\\042used_scoped_memory_configs\\042:7}\"}}}";
    struct xpl_buf out;
    answers(text, OPTIONS("memory_space", "1"), LIMIT, XPL_OK, &out);
    CHECK(has(&out, "\"maxScopedVmemAllocationMib\":2,\"maxScopedVmemInstructionName\":\"y\""));
    xpl_buf_fini(&out);
    answers(text, NULL, LIMIT, XPL_OK, &out);
    CHECK(!xpl_str_has((xpl_str_t){(const char *)out.p, out.n}, XPL_STR("Scoped")));
    xpl_buf_fini(&out);
}

// A label longer than its rectangle, one byte further in its characters for each byte of `before`.
static void check_label(const char *before) {
    char text[4096] = "";
    size_t n = (size_t)snprintf(text, sizeof text, "1:{1:\"m\" 3:{2:{1:\"%s", before);
    for (int i = 0; i < 400; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "\\303\\251");
    (void)snprintf(text + n, sizeof text - n,
                   "\" 35:1 3:{2:11}}}} 3:{1:{1:1 2:9 3:{4:1}} 3:{2:9 9:{1:1}} "
                   "4:{1:{2:1} 1:{1:1 2:1}}}");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    answers(text, OPTIONS("view_memory_allocation_timeline", "true"), LIMIT, XPL_OK, &out);
    CHECK(has(&out, "\303\251...</text>"));
}

static void test_timeline(void) {
    const char *const *const timeline = OPTIONS("view_memory_allocation_timeline", "true");
    struct xpl_buf out;
    answers(MODULE ASSIGNMENT(TAKEN), timeline, LIMIT, XPL_OK, &out);
    // Addresses go up: offset 0 is at the bottom of the picture.
    CHECK(has(&out, "<g><rect x=\"0.000\" y=\"2730.667\" width=\"2730.667\" height=\"1365.333\" "
                    "fill=\"#2196f3\"/><title>buffer_id:1\nhlo_op:a\n"));
    CHECK(has(&out, "font-size=\"14.0\">a</text></g>\n"));
    xpl_buf_fini(&out);
    answers(MODULE ASSIGNMENT(""), timeline, LIMIT, XPL_OK, &out);
    CHECK(has(&out, "m: no allocation of memory space 0 has a timeline.</p>"));
    xpl_buf_fini(&out);
    // Names are cut between characters, and are not markup.
    answers("1:{1:\"<b>\" 3:{2:{1:\"<i>&\\042aaaa\\303\\251\\303\\251\\303\\251\\303\\251\" 35:1 "
            "3:{2:11}}}} 3:{1:{1:1 2:9 3:{4:1}} 3:{2:9 9:{1:1}} "
            "4:{1:{2:1} 1:{1:1 2:1} 1:{2:77} 1:{2:77}}}",
            timeline, LIMIT, XPL_OK, &out);
    CHECK(has(&out, "<p>&lt;b&gt;, memory space 0"));
    CHECK(has(&out, "hlo_op:&lt;i&gt;&amp;&quot;aaaa\303\251"));
    xpl_buf_fini(&out);
    check_label("");
    check_label("a");
    answers(MODULE ASSIGNMENT(TAKEN), timeline, 3000, XPL_RESOURCE_EXHAUSTED, &out);
    xpl_buf_fini(&out);
}

// At the peak 5 (a parameter), 1 and 2: by source line, by op, and beside itself.
static void test_holders(void) {
    struct xpl_buf out;
    answers(MODULE ASSIGNMENT(TAKEN), OPTIONS("view", "lines"), LIMIT, XPL_OK, &out);
    CHECK(has(&out,
              "\"p\":{\"bytes\":\"90000\",\"module\":\"m\"},\"rows\":[{\"c\":[{\"v\":\"f.py:7\"},"
              "{\"v\":50000.0},{\"v\":55.55555555555556},{\"v\":2.0},{\"v\":\"a\"}]},"
              "{\"c\":[{\"v\":\"(Parameter)\"},{\"v\":40000.0},"));
    xpl_buf_fini(&out);
    answers(MODULE ASSIGNMENT(TAKEN), OPTIONS("view", "ops", "other", "m(1)"), LIMIT, XPL_OK, &out);
    CHECK(has(&out,
              "[{\"v\":\"f.py:7\"},{\"v\":\"op\"},{\"v\":\"f32[5000]{0}\"},{\"v\":50000.0},"
              "{\"v\":55.55555555555556},{\"v\":2.0},{\"v\":50000.0},{\"v\":2.0},{\"v\":0.0},"));
    struct xpl_buf by_id;
    answers(MODULE ASSIGNMENT(TAKEN), OPTIONS("view", "ops", "other", "1"), LIMIT, XPL_OK, &by_id);
    CHECK(by_id.n == out.n && memcmp(by_id.p, out.p, out.n) == 0);
    xpl_buf_fini(&by_id);
    xpl_buf_fini(&out);
    answers(MODULE ASSIGNMENT(""), OPTIONS("view", "lines", "memory_space", "9"), LIMIT, XPL_OK,
            &out);
    CHECK(has(&out, "\"rows\":[]}"));
    xpl_buf_fini(&out);
    answers(MODULE ASSIGNMENT(TAKEN), OPTIONS("view", "ops", "other", "x"), LIMIT, XPL_NOT_FOUND,
            &out);
    xpl_buf_fini(&out);
    answers(MODULE ASSIGNMENT(TAKEN), OPTIONS("view", "ops", "other", "2"), LIMIT, XPL_NOT_FOUND,
            &out);
    xpl_buf_fini(&out);
    // Unlike XProf's answer the table has lasting buffers of every memory space.
    answers(MODULE "3:{1:{1:3 2:70 3:{4:2} 4:1} 3:{1:1 2:70 8:1 12:1 9:{1:3}}}",
            OPTIONS("view", "lines", "memory_space", "1"), LIMIT, XPL_OK, &out);
    CHECK(has(&out, "{\"v\":\"(Constant)\"},{\"v\":70.0},{\"v\":100.0},{\"v\":1.0}"));
    xpl_buf_fini(&out);
}

// A reader that is cancelled stops within some thousand instructions.
static void test_cancel(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf proto = mk_open(), module = mk_open(), c = mk_open();
    struct xpl_hlo_memory *m = NULL;
    for (int i = 0; i < 5000; i++)
        mk_len(&c, 2, "", 0);
    mk_close(&module, 3, &c);
    mk_close(&proto, 1, &module);
    g_exec.cancelled = always_cancelled;
    err = (struct xpl_error){0};
    CHECK_STATUS(
        xpl_hlo_memory_read((xpl_bytes_t){proto.p, proto.n}, 0, &g_exec, &g_arena, &m, &err),
        XPL_CANCELLED, &err);
    g_exec.cancelled = NULL;
}

int main(void) {
    g_exec = xpl_exec_serial();
    xpl_arena_init(&g_arena, LIMIT);
    test_peak();
    test_sharing();
    test_traces();
    test_shapes();
    test_many_parts();
    test_sources();
    test_broken();
    test_chain();
    test_json();
    test_twins();
    test_scoped();
    test_timeline();
    test_holders();
    test_cancel();
    xpl_arena_fini(&g_arena);
    return 0;
}
