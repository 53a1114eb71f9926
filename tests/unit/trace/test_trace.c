// SPDX-License-Identifier: Apache-2.0
// The trace index: levels against a plain reading of the rule, what answers hold, and what becomes
// of damaged indexes and odd options.
#include <stdlib.h>
#include <zstd.h>

#include "analysis/trace/index/format.h"
#include "analysis/trace/index/visibility.h"
#include "analysis/trace/trace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/xspace_maker.h"

enum { LIMIT = 1 << 28 };

// ---- visibility, as upstream words it ----

struct plain_row {
    uint64_t ends[512];
    size_t n;
};

static bool plain_visible(struct plain_row *r, uint64_t begin, uint64_t dur, uint64_t resolution) {
    size_t depth = 0;
    while (depth < r->n && r->ends[depth] > begin)
        depth++;
    const bool visible = dur >= resolution || depth >= r->n || begin - r->ends[depth] >= resolution;
    if (visible) {
        CHECK(depth < 512);
        r->ends[depth] = begin + dur;
        r->n = depth + 1;
    }
    return visible;
}

static uint64_t next_random(uint64_t *s) {
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s;
}

static void test_visibility(void) {
    uint64_t seed = 0x1234567;
    for (int round = 0; round < 200; round++) {
        struct plain_row plain = {.n = 0};
        struct vis_row row = {0};
        struct xpl_arena a = xpl_arena_of(LIMIT);
        const uint64_t resolution = 1 + next_random(&seed) % 200;
        uint64_t at = 0;
        for (int i = 0; i < 500; i++) {
            at += next_random(&seed) % 40;
            const uint64_t dur = next_random(&seed) % (1 + next_random(&seed) % 400);
            const uint32_t depth = vis_depth(&row, at);
            const bool visible = dur >= resolution || vis_apart(&row, depth, at, resolution);
            if (visible) CHECK(vis_set(&row, depth, at + dur, &a));
            CHECK_EQ(visible, plain_visible(&plain, at, dur, resolution));
        }
        xpl_arena_fini(&a);
    }
}

// ---- a small profile ----

static struct xpl_buf small_profile(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(3, "/host:CPU");
    struct xpl_buf line = mk_line(7, "main \"thread\"");
    struct xpl_buf ev = mk_event(&p, "launch", 1000000, 4000000);
    mk_stat_int(&p, &ev, "correlation_id", 5);
    mk_event_end(&line, &ev);
    mk_plain(&p, &line, "MemoryAllocation", 2000000, 10);
    mk_plain(&p, &line, "inner", 2000000, 1000000);
    ev = mk_event(&p, "a name that is longer than thirty-two bytes", 2000000, 500000);
    mk_stat_str(&p, &ev, "what", "a text");
    mk_stat_ref(&p, &ev, "which", "one of the names");
    mk_stat_int(&p, &ev, "many", INT64_C(-9007199254740993));
    mk_stat_int(&p, &ev, "_r", 1);
    mk_stat_str(&p, &ev, "long_name", "the words of an instruction");
    mk_event_end(&line, &ev);
    ev = mk_event(&p, "\xc3\xa9t\xc3\xa9", 5000000, 1000);
    mk_stat_str(&p, &ev, "hlo_text", "the words of another instruction");
    mk_event_end(&line, &ev);
    mk_plain(&p, &line, "<late>", 9000000, 0);
    mk_line_end(&p, &line);
    line = mk_line(8, "_counters_");
    ev = mk_event(&p, "power", 3000000, 0);
    mk_stat_int(&p, &ev, "watts", 40);
    mk_event_end(&line, &ev);
    ev = mk_event(&p, "power", 4000000, 0);
    mk_stat_int(&p, &ev, "watts", 41);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

struct made {
    struct xpl_buf profile, index;
};

static struct made make(void) {
    struct made m = {.profile = small_profile()};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    xpl_buf_init(&m.index, LIMIT);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &m.index};
    CHECK_OK(xpl_trace_build((xpl_bytes_t){m.profile.p, m.profile.n}, &exec, LIMIT, &sink, &err),
             &err);
    return m;
}

static void unmake(struct made *m) {
    xpl_buf_fini(&m->profile);
    xpl_buf_fini(&m->index);
}

// Answers, if the index can be opened.
static xpl_status_t answer(xpl_bytes_t index, xpl_bytes_t profile,
                           const struct xpl_trace_options *o, struct xpl_buf *out) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_trace *t;
    struct xpl_error err = {0};
    xpl_status_t st = xpl_trace_open(index, &a, &t, &err);
    if (st == XPL_OK) {
        const struct xpl_trace_host host = {XPL_STR("h"), t, profile};
        struct xpl_exec exec = xpl_exec_serial();
        st = xpl_trace_answer(&host, 1, o, &exec, LIMIT, out, &err);
    }
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    return st;
}

static bool contains(const struct xpl_buf *b, const char *text) {
    return xpl_str_has((xpl_str_t){(const char *)b->p, b->n}, xpl_str_from(text));
}

static void answer_made(const struct made *m, const struct xpl_trace_options *o,
                        xpl_status_t expected, struct xpl_buf *out) {
    xpl_buf_init(out, LIMIT);
    CHECK_EQ(answer((xpl_bytes_t){m->index.p, m->index.n},
                    (xpl_bytes_t){m->profile.p, m->profile.n}, o, out),
             expected);
}

static void test_answers(void) {
    XPL_AUTO(unmake) struct made m = make();
    struct xpl_trace_options o;
    struct xpl_buf b;
    xpl_trace_options_init(&o);
    answer_made(&m, &o, XPL_OK, &b);
    CHECK(contains(&b, "{\"pid\":1701,\"tid\":7,\"name\":\"launch\",\"ts\":1,\"dur\":4,"));
    CHECK(contains(&b,
                   "\"cat\":\"gpu_launch\",\"flow_out\":true,\"ph\":\"X\",\"args\":{\"uid\":0}}"));
    CHECK(contains(&b,
                   "\"name\":\"h /host:CPU\"},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1701,"
                   "\"thread_count\":1}"));
    CHECK(contains(&b, "\"dur\":0.5,\"ph\":\"X\",\"args\":{\"group_id\":0,\"uid\":1},\"z\":1}"));
    CHECK(contains(&b, "\\u003clate\\u003e\",\"ts\":9,\"dur\":0.000001,"));
    CHECK(contains(&b, "\"ph\":\"C\",\"event_stats\":\"watts\",\"entries\":[[3,40],[4,41]]}"));
    CHECK(contains(&b, "\"returnedEventsSize\":7,") &&
          contains(&b, "\"fullTimespan\":[0.001,0.009]"));
    CHECK(!contains(&b, "MemoryAllocation"));
    xpl_buf_fini(&b);
    o.start_time_ms = 0.0060, o.end_time_ms = 1;
    answer_made(&m, &o, XPL_OK, &b);
    CHECK(contains(&b, "late") && !contains(&b, "launch"));
    xpl_buf_fini(&b);
    // A negative time wraps: an instant beyond the end, up to which all of the coarsest level is.
    o.start_time_ms = -5, o.end_time_ms = 0;
    answer_made(&m, &o, XPL_OK, &b);
    CHECK(contains(&b, "launch") && !contains(&b, "late"));
    xpl_buf_fini(&b);
    o.start_time_ms = 1e300; // 2^63 ps
    answer_made(&m, &o, XPL_OK, &b);
    CHECK(contains(&b, "launch") && !contains(&b, "late"));
    xpl_buf_fini(&b);
}

static void test_detail_and_search(void) {
    XPL_AUTO(unmake) struct made m = make();
    struct xpl_trace_options o;
    struct xpl_buf b;
    xpl_trace_options_init(&o);
    o.event_name = XPL_STR("a name that is longer than thirty-two bytes 0"); // a root: a step
    o.start_time_ms = 0.002, o.duration_ms = 0.0005, o.unique_id = 1;
    answer_made(&m, &o, XPL_OK, &b);
    CHECK(contains(&b, "\"what\":\"a text\",\"which\":\"one of the names\",\"many\":"
                       "\"-9007199254740993\""));
    CHECK(contains(&b, "\"returnedEventsSize\":1,") && !contains(&b, "\"_r\""));
    // Only the event's own stack frame.
    CHECK(contains(&b, "\"stackFrames\":{\"1\":{\"name\":\"the words of an instruction\"}},"));
    CHECK(contains(&b, "},\"sf\":1,\"z\":1}") && !contains(&b, "another instruction"));
    xpl_buf_fini(&b);
    o.unique_id = 0; // another event begins then
    answer_made(&m, &o, XPL_NOT_FOUND, &b);
    xpl_buf_fini(&b);
    xpl_trace_options_init(&o);
    o.search_prefix = XPL_STR("in");
    answer_made(&m, &o, XPL_OK, &b);
    CHECK(contains(&b, "inner") && !contains(&b, "launch") &&
          contains(&b, "\"returnedEventsSize\":1,"));
    xpl_buf_fini(&b);
    // Arguments come from the profile: another one does not match this index.
    o.search_metadata = true;
    xpl_buf_init(&b, LIMIT);
    CHECK_STATUS(answer((xpl_bytes_t){m.index.p, m.index.n}, (xpl_bytes_t){0}, &o, &b),
                 XPL_DATA_LOSS, NULL);
    xpl_buf_fini(&b);
}

// One event of several hosts: the answer is of the host that has it, under its number.
static void test_detail_of_hosts(void) {
    struct made m = make();
    struct xpl_trace_memory empty = {0};
    struct xpl_trace_options o;
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(LIMIT);
    struct xpl_trace *t;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(LIMIT);
    CHECK_OK(xpl_trace_open((xpl_bytes_t){m.index.p, m.index.n}, &a, &t, &err), &err);
    CHECK_OK(xpl_trace_memory_init(&empty, (xpl_bytes_t){0}, NULL, &exec, LIMIT, &a, &err), &err);
    const struct xpl_trace_host hosts[] = {
        {XPL_STR("a"), empty.trace, {0}},
        {XPL_STR("b"), t, {m.profile.p, m.profile.n}},
    };
    xpl_trace_options_init(&o);
    o.event_name = XPL_STR("inner"), o.start_time_ms = 0.002, o.duration_ms = 0.001;
    CHECK_OK(xpl_trace_answer(hosts, 2, &o, &exec, LIMIT, &b, &err), &err);
    CHECK(contains(&b, "{\"pid\":2701,\"tid\":7,\"name\":\"inner\""));
    CHECK_STATUS(xpl_trace_answer(hosts, 1, &o, &exec, LIMIT, &b, &err), XPL_NOT_FOUND, &err);
    xpl_trace_memory_fini(&empty);
    unmake(&m);
}

// Hosts whose profiles say when they began are shown by that, and windows are of all of them.
static void test_begins_of_hosts(void) {
    static const int64_t first = INT64_C(1893456000000000000); // 2030
    static const int64_t begins[] = {first + 3000000, first, 5000};
    static const int64_t us[] = {0, 10};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_trace_memory m[3];
    struct xpl_trace_host hosts[3];
    struct xpl_trace_options o;
    struct xpl_error err = {0};
    struct xpl_arena a;
    struct xpl_buf b;
    xpl_arena_init(&a, LIMIT);
    for (int i = 0; i < 3; i++) {
        struct xpl_buf space = mk_thread(begins[i], us, 2);
        mk_start(&space, begins[i]);
        CHECK_OK(xpl_trace_memory_init(&m[i], (xpl_bytes_t){space.p, space.n}, NULL, &exec, LIMIT,
                                       &a, &err),
                 &err);
        hosts[i] = (struct xpl_trace_host){XPL_STR("h"), m[i].trace, {0}};
        xpl_buf_fini(&space);
    }
    static const struct {
        double start_ms, end_ms;
        bool shows[3]; // the first host's two events, and the last one of the other
    } windows[] = {{0, 0, {true, true, true}},
                   {3.005, 3.02, {false, true, false}},
                   {0.005, 0.02, {false, false, true}},
                   {1, 2, {false, false, false}}};
    for (size_t k = 0; k < sizeof windows / sizeof *windows; k++) {
        const bool *const shows = windows[k].shows;
        xpl_buf_init(&b, LIMIT);
        xpl_trace_options_init(&o);
        o.start_time_ms = windows[k].start_ms, o.end_time_ms = windows[k].end_ms;
        CHECK_OK(xpl_trace_answer(hosts, 2, &o, &exec, LIMIT, &b, &err), &err);
        CHECK_EQ(contains(&b, "\"pid\":1701,\"tid\":1,\"name\":\"event\",\"ts\":3000,"), shows[0]);
        CHECK_EQ(contains(&b, "\"pid\":1701,\"tid\":1,\"name\":\"event\",\"ts\":3010,"), shows[1]);
        CHECK_EQ(contains(&b, "\"pid\":2701,\"tid\":1,\"name\":\"event\",\"ts\":10,"), shows[2]);
        xpl_buf_fini(&b);
    }
    // One host, and one whose clock has nothing to do with the others.
    xpl_buf_init(&b, LIMIT);
    xpl_trace_options_init(&o);
    CHECK_OK(xpl_trace_answer(hosts, 1, &o, &exec, LIMIT, &b, &err), &err);
    CHECK_OK(xpl_trace_answer(hosts + 1, 2, &o, &exec, LIMIT, &b, &err), &err);
    CHECK(contains(&b, "\"pid\":1701,\"tid\":1,\"name\":\"event\",\"ts\":10,") &&
          contains(&b, "\"pid\":2701,\"tid\":1,\"name\":\"event\",\"ts\":15,"));
    xpl_buf_fini(&b);
    for (int i = 0; i < 3; i++)
        xpl_trace_memory_fini(&m[i]);
    xpl_arena_fini(&a);
}

// ---- protobuf ----

// The answer, unpacked.
static struct xpl_buf unpacked(const struct xpl_buf *b) {
    struct xpl_buf plain = xpl_buf_of(LIMIT);
    const unsigned long long n = ZSTD_getFrameContentSize(b->p, b->n);
    CHECK(n < LIMIT);
    CHECK(xpl_buf_room(&plain, (size_t)n + 1));
    plain.n = ZSTD_decompress(plain.p, (size_t)n, b->p, b->n);
    CHECK_EQ(plain.n, n);
    return plain;
}

static bool holds(const struct xpl_buf *b, const char *text, size_t n) {
    return xpl_str_has((xpl_str_t){(const char *)b->p, b->n}, (xpl_str_t){text, n});
}
#define HOLDS(b, text) holds((b), "" text, sizeof(text) - 1)

static void test_protobuf(void) {
    XPL_AUTO(unmake) struct made m = make();
    struct xpl_trace_options o;
    struct xpl_buf b;
    xpl_trace_options_init(&o);
    o.pb = true;
    answer_made(&m, &o, XPL_OK, &b);
    struct xpl_buf plain = unpacked(&b);
    // The row of counters: process 1701, named; at 3 and 4 us; of values 40 and 41 it has none, as
    // only unsigned numbers and fractions are written.
    CHECK(HOLDS(&plain, "\x08\xa5\x0d"));
    CHECK(HOLDS(&plain, "\x12\x07\xc0\x8d\xb7\x01\xc0\x84\x3d\x2a\x00\x2a\x00"));
    // Begins of the other row: 1, 1, 0, 3 and 4 us, each from the one before.
    CHECK(HOLDS(&plain, "\x12\x0f\xc0\x84\x3d\xc0\x84\x3d\x00\xc0\x8d\xb7\x01\x80\x92\xf4\x01"));
    // A process, its place, and a thread with its place.
    CHECK(HOLDS(&plain, "\x0a\x0bh /host:CPU\x10\xa5\x0d\x18\xa5\x0d\x22\x13\x0a\x0dmain "
                        "\"thread\"\x10\x07\x18\x07"));
    CHECK(HOLDS(&plain, "\x2a\x00\x2a")); // the first string is empty
    CHECK(HOLDS(&plain, "\x32\x14\x0a\x12mpmd_pipeline_view"));
    CHECK(HOLDS(&plain, "\x38\xc0\x84\x3d\x40\xc0\xa8\xa5\x04")); // 1 to 9 us
    xpl_buf_fini(&plain);
    xpl_buf_fini(&b);
    xpl_buf_init(&b, 16); // an answer that finds no room
    CHECK_STATUS(answer((xpl_bytes_t){m.index.p, m.index.n},
                        (xpl_bytes_t){m.profile.p, m.profile.n}, &o, &b),
                 XPL_RESOURCE_EXHAUSTED, NULL);
    xpl_buf_fini(&b);
}

// ---- pipelines ----

static void core(struct xpl_buf *space, int64_t id, const char *name, const char *module,
                 int64_t at) {
    struct mk_plane p = mk_plane(id, name);
    struct xpl_buf line = mk_line(2, "XLA Modules");
    mk_plain(&p, &line, module, at, 1000);
    mk_line_end(&p, &line);
    line = mk_line(3, "Steps");
    mk_plain(&p, &line, "p0_stage0.elsewhere(1)", 0, 1000); // no module: no stage
    mk_line_end(&p, &line);
    mk_plane_end(&p, space);
}

static void test_pipeline(void) {
    XPL_AUTO(unmake) struct made m = {.profile = mk_open()};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_trace_options o;
    struct xpl_buf b;
    core(&m.profile, 0, "/device:TPU:0", "p1_loop_1_layer_9_8.step(2)", 5000);
    core(&m.profile, 1, "/device:TPU:1", "p1_loop_0_layer_12.step_bucket_4k(2)", 7000);
    core(&m.profile, 2, "/device:TPU:2", "p0_inferred.first", 1000);
    core(&m.profile, 3, "/device:TPU:3", "nothing that says a stage", 0);
    core(&m.profile, 4, "/device:TPU:4", "x_stage2.step(3)", 9000);
    xpl_buf_init(&m.index, LIMIT);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &m.index};
    CHECK_OK(xpl_trace_build((xpl_bytes_t){m.profile.p, m.profile.n}, &exec, LIMIT, &sink, &err),
             &err);
    xpl_trace_options_init(&o);
    o.mpmd_pipeline_view = true;
    answer_made(&m, &o, XPL_OK, &b);
    // By program, which begins with its first process; then by loop and layer.
    static const char *const orders[] = {
        "3},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1001}",
        "2},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1002}",
        "0},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1003}",
        "1073742828},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1004}",
        "1},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1005}"};
    for (size_t i = 0; i < 5; i++)
        CHECK(contains(&b, orders[i]));
    CHECK(contains(&b, "\"mpmdPipelineView\": true,"));
    xpl_buf_fini(&b);
}

// ---- damage ----

// A copy of the exact size, so that the sanitizer sees a read beyond it.
static xpl_status_t answer_copy(const struct made *m, size_t n, size_t flip, uint8_t bits) {
    struct xpl_trace_options o;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(LIMIT);
    uint8_t *const copy = malloc(n ? n : 1);
    CHECK(copy);
    memcpy(copy, m->index.p, n);
    if (flip < n) copy[flip] ^= bits;
    xpl_trace_options_init(&o);
    const xpl_status_t st =
        answer((xpl_bytes_t){copy, n}, (xpl_bytes_t){m->profile.p, m->profile.n}, &o, &out);
    free(copy);
    return st;
}

static void test_damage(void) {
    XPL_AUTO(unmake) struct made m = make();
    for (size_t n = 0; n < m.index.n; n++)
        CHECK_STATUS(answer_copy(&m, n, SIZE_MAX, 0), XPL_DATA_LOSS, NULL);
    // Every bit is covered by a checksum, but for the padding between tables; the blocks of names
    // only searches read, and sums by trace_sums (test_trace_sums.c).
    struct trc_footer f;
    struct trc_piece piece;
    memcpy(&f, m.index.p + m.index.n - sizeof f, sizeof f);
    CHECK_EQ(f.tables[TRC_PIECES].len, sizeof piece);
    memcpy(&piece, m.index.p + f.tables[TRC_PIECES].offset, sizeof piece);
    size_t unseen = 0;
    for (size_t i = 0; i < m.index.n; i++) {
        const xpl_status_t st = answer_copy(&m, m.index.n, i, (uint8_t)(1u << i % 8));
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS);
        unseen += st == XPL_OK;
    }
    CHECK(unseen < 8 * TRC_TABLES + 32 + piece.n_sums * sizeof(struct trc_piece_sum));
    CHECK_OK(answer_copy(&m, m.index.n, SIZE_MAX, 0), NULL);
}

// A search reads a part of the index, and never finds less than there is.
static void test_damaged_search(void) {
    XPL_AUTO(unmake) struct made m = make();
    struct trc_footer f;
    struct trc_block_ref ref;
    struct xpl_trace_options o;
    struct xpl_buf b;
    size_t found = 0, lost = 0;
    xpl_trace_options_init(&o);
    o.search_prefix = XPL_STR("in");
    for (size_t i = 0; i < m.index.n; i++) {
        m.index.p[i] ^= 1;
        xpl_buf_init(&b, LIMIT);
        const xpl_status_t st =
            answer((xpl_bytes_t){m.index.p, m.index.n}, (xpl_bytes_t){0}, &o, &b);
        CHECK(st == XPL_DATA_LOSS || (st == XPL_OK && contains(&b, "\"returnedEventsSize\":1,")));
        found += st == XPL_OK, lost += st == XPL_DATA_LOSS;
        xpl_buf_fini(&b);
        m.index.p[i] ^= 1;
    }
    CHECK(found > 0 && lost > m.index.n / 2);
    // Blocks of zeros, as a power cut leaves them.
    memcpy(&f, m.index.p + m.index.n - sizeof f, sizeof f);
    for (uint64_t at = 0; at < f.tables[TRC_BLOCKS].len; at += sizeof ref) {
        memcpy(&ref, m.index.p + f.tables[TRC_BLOCKS].offset + at, sizeof ref);
        memset(m.index.p + ref.offset, 0, ref.size);
    }
    answer_made(&m, &o, XPL_DATA_LOSS, &b);
    xpl_buf_fini(&b);
    o.search_prefix = XPL_STR("no name begins so");
    answer_made(&m, &o, XPL_OK, &b);
    CHECK(contains(&b, "\"returnedEventsSize\":0,"));
    xpl_buf_fini(&b);
}

static void test_sink_and_limits(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf profile = small_profile(), out;
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    xpl_buf_init(&out, 100);
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &out};
    const xpl_bytes_t bytes = {profile.p, profile.n};
    CHECK_STATUS(xpl_trace_build(bytes, &exec, LIMIT, &sink, &err), XPL_RESOURCE_EXHAUSTED, &err);
    xpl_buf_fini(&out);
    xpl_buf_init(&out, LIMIT);
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_trace_build(bytes, &exec, 5000, &sink, &err), XPL_RESOURCE_EXHAUSTED, &err);
    for (size_t n = 1; n < profile.n; n++) { // a profile cut short
        out.n = 0;
        err = (struct xpl_error){0};
        const xpl_status_t st =
            xpl_trace_build((xpl_bytes_t){profile.p, n}, &exec, LIMIT, &sink, &err);
        CHECK(st == XPL_DATA_LOSS || st == XPL_OK);
    }
    xpl_buf_fini(&out);
}

int main(void) {
    test_visibility();
    test_answers();
    test_detail_and_search();
    test_detail_of_hosts();
    test_begins_of_hosts();
    test_protobuf();
    test_pipeline();
    test_damage();
    test_damaged_search();
    test_sink_and_limits();
    return 0;
}
