// SPDX-License-Identifier: Apache-2.0
// Bundles that no program writes: many of everything, extreme numbers, bytes that change while they
// are read, work that is cancelled.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/crc32.h"
#include "tests/iree_run.h"

enum { MANY = 150000 };

static void put_zeros(struct xpl_buf *b, size_t n) {
    static const uint8_t zeros[104];
    CHECK(n <= sizeof zeros);
    xpl_buf_put(b, zeros, n);
}

static void begin_bundle(struct xpl_buf *b) {
    static const uint16_t version[] = {1, 6};
    const uint32_t header = 24;
    xpl_buf_init(b, (size_t)1 << 28);
    xpl_buf_str(b, XPL_STR("IRPF"));
    xpl_buf_put(b, version, sizeof version);
    xpl_buf_put(b, &header, sizeof header);
    put_zeros(b, 12);
}

// Begins a record; end_record states its length.
static size_t begin_record(struct xpl_buf *b, uint16_t type, uint64_t session, uint32_t device,
                           const char *content_type) {
    const size_t at = b->n, n = strlen(content_type);
    const uint32_t lengths[] = {104, (uint32_t)n, 0, device};
    put_zeros(b, 104);
    memcpy(b->p + at + 16, &session, 8);
    memcpy(b->p + at + 56, lengths, sizeof lengths);
    memcpy(b->p + at + 100, &type, 2);
    xpl_buf_put(b, content_type, n);
    return at;
}

static void end_record(struct xpl_buf *b, size_t at) {
    uint32_t type;
    memcpy(&type, b->p + at + 60, 4);
    const uint64_t lengths[] = {b->n - at, b->n - at - 104 - type};
    memcpy(b->p + at, lengths, sizeof lengths);
}

static size_t begin_chunk(struct xpl_buf *b, uint32_t device, const char *suffix) {
    char type[100];
    (void)snprintf(type, sizeof type, "application/vnd.iree.hal.profile.%s", suffix);
    return begin_record(b, XPL_IREE_RECORD_CHUNK, 1, device, type);
}
#define PUT(b, record)                                                                             \
    ((record).record_length = sizeof(record), xpl_buf_put((b), &(record), sizeof(record)))

static xpl_status_t report(struct xpl_buf *b, const char *name, struct iree_run *x) {
    x->run.options.id = -1;
    CHECK(!b->failed);
    return iree_report(x, (xpl_bytes_t){b->p, b->n}, name, XPL_IREE_JSONL);
}

// Seconds of the processor: the machine may be busy.
static double cpu_seconds(void) {
    struct timespec t;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
enum { SECONDS = 12 }; // many times the expected time, and less than a walk over all for each

static uint64_t count_lines(const struct xpl_buf *b) {
    uint64_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += b->p[i] == '\n';
    return n;
}

// ---- many ----

static void test_many_sessions(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    for (uint64_t i = 0; i < 2 * MANY; i++)
        end_record(&b, begin_record(&b, i % 2 ? XPL_IREE_RECORD_END : XPL_IREE_RECORD_BEGIN, i / 2,
                                    0, ""));
    const double start = cpu_seconds();
    CHECK_OK(report(&b, "sessions", &x), &x.err);
    CHECK(cpu_seconds() - start < SECONDS);
    CHECK_EQ(count_lines(&x.out), MANY);
    xpl_buf_fini(&x.out);
}

// Of sessions that are alike the first ends first; one that no end names ends last.
static void test_ends(void) {
    static const struct {
        uint16_t type;
        uint64_t session;
    } records[] = {{XPL_IREE_RECORD_BEGIN, 1}, {XPL_IREE_RECORD_BEGIN, 1},
                   {XPL_IREE_RECORD_BEGIN, 2}, {XPL_IREE_RECORD_END, 1},
                   {XPL_IREE_RECORD_END, 9},   {XPL_IREE_RECORD_BEGIN, 1},
                   {XPL_IREE_RECORD_END, 1},   {XPL_IREE_RECORD_END, 1}};
    static const char *const expected[] = {
        "\"begin_record\":0,\"end_record\":3", "\"begin_record\":1,\"end_record\":6",
        "\"begin_record\":2,\"end_record\":4", "\"begin_record\":5,\"end_record\":7"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        end_record(&b, begin_record(&b, records[i].type, records[i].session, 0, ""));
    CHECK_OK(report(&b, "sessions", &x), &x.err);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK(memmem(x.out.p, x.out.n, expected[i], strlen(expected[i])));
    xpl_buf_fini(&x.out);
}

// Sessions after each other have the devices that each described, also where these are the same.
static void test_same_device(void) {
    static const char *const expected[] = {
        "\"end_record\":2,\"devices\":1,\"chunks\":1,\"records\":1,\"dropped_records\":0,"
        "\"first_host_time_ns\":0,\"last_host_time_ns\":0,\"physical_device_ordinals\":[7]",
        "\"end_record\":5,\"devices\":2,\"chunks\":1,\"records\":2,\"dropped_records\":0,"
        "\"first_host_time_ns\":0,\"last_host_time_ns\":0,\"physical_device_ordinals\":[7,3]"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    for (uint64_t i = 0; i < 2; i++) {
        struct xpl_iree_device first = {.physical_device_ordinal = 7},
                               second = {.physical_device_ordinal = 3};
        end_record(&b, begin_record(&b, XPL_IREE_RECORD_BEGIN, i + 1, 0, ""));
        const size_t at = begin_chunk(&b, XPL_IREE_NONE, "devices");
        PUT(&b, first);
        if (i == 1) PUT(&b, second);
        end_record(&b, at);
        end_record(&b, begin_record(&b, XPL_IREE_RECORD_END, i + 1, 0, ""));
    }
    CHECK_OK(report(&b, "sessions", &x), &x.err);
    for (size_t i = 0; i < 2; i++)
        CHECK(memmem(x.out.p, x.out.n, expected[i], strlen(expected[i])));
    xpl_buf_fini(&x.out);
}

// As many devices and queues as submissions.
static void test_many_queues(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    size_t at = begin_chunk(&b, 0, "queues");
    for (uint32_t i = 0; i < MANY; i++) {
        struct xpl_iree_queue q = {.physical_device_ordinal = i, .queue_ordinal = i};
        PUT(&b, q);
    }
    end_record(&b, at);
    at = begin_chunk(&b, 0, "clock-correlations");
    for (uint32_t i = 0; i < MANY; i++) {
        struct xpl_iree_clock_correlation c = {.physical_device_ordinal = i};
        PUT(&b, c);
    }
    end_record(&b, at);
    at = begin_chunk(&b, 0, "dispatch-events");
    for (uint32_t i = 0; i < MANY; i++) {
        struct xpl_iree_dispatch_event e = {
            .submission_id = i, .start_tick = 10 + i, .end_tick = 20 + i};
        PUT(&b, e);
    }
    end_record(&b, at);
    const double start = cpu_seconds();
    CHECK_OK(report(&b, "explain", &x), &x.err);
    CHECK(cpu_seconds() - start < SECONDS);
    // The first of each has it all.
    static const char device[] = "\"visible_span_ticks\":150009.000,"
                                 "\"active_dispatch_ticks\":1500000,";
    static const char queue[] = "\"submissions\":150000,\"valid_submissions\":150000,";
    CHECK(memmem(x.out.p, x.out.n, device, sizeof device - 1));
    CHECK(memmem(x.out.p, x.out.n, queue, sizeof queue - 1));
    xpl_buf_fini(&x.out);
}

// ---- numbers at their ends ----

static void test_far_times(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    size_t at = begin_chunk(&b, 0, "clock-correlations");
    for (uint64_t i = 0; i < 2; i++) {
        struct xpl_iree_clock_correlation c = {
            .flags = 15,
            .device_tick = (UINT64_C(1) << 62) + i * 1000,
            .host_cpu_timestamp_ns = i * 1000,
        };
        PUT(&b, c);
    }
    end_record(&b, at);
    at = begin_chunk(&b, 0, "dispatch-events");
    struct xpl_iree_dispatch_event e = {.start_tick = 1, .end_tick = UINT64_C(3) << 62};
    e.end_tick -= 1; // as far behind as can be
    PUT(&b, e);
    end_record(&b, at);
    CHECK_OK(report(&b, "export", &x), &x.err);
    static const char expected[] = "\"derived_time_available\":false";
    CHECK(memmem(x.out.p, x.out.n, expected, sizeof expected - 1));
    CHECK(!memmem(x.out.p, x.out.n, "duration_ns\":-", 14));
    xpl_buf_fini(&x.out);
}

// ---- bytes that change, and work that is not needed ----

struct hook {
    struct xpl_exec exec; // first
    uint64_t calls, at;   // of which one
    uint8_t *change;      // becomes the least number of 8 bytes; NULL: `at` cancels
};

static bool on_call(struct xpl_exec *e) {
    struct hook *const h = (struct hook *)e;
    if (++h->calls < h->at) return false;
    if (h->change) memcpy(h->change, &(int64_t){INT64_MIN}, sizeof(int64_t));
    return !h->change;
}

// Times before the first of an earlier pass.
static void test_changing_times(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    const size_t at = begin_chunk(&b, 0, "memory-events");
    const size_t first = b.n;
    for (int i = 0; i < 3; i++) {
        struct xpl_iree_memory_event e = {.type = XPL_IREE_BUFFER_ALLOCATE,
                                          .result = XPL_IREE_NONE,
                                          .host_time_ns = 1000 + i,
                                          .length = 8};
        PUT(&b, e);
    }
    end_record(&b, at);
    struct hook h = {.exec = {.cancelled = on_call},
                     .at = 1,
                     .change = b.p + first + offsetof(struct xpl_iree_memory_event, host_time_ns)};
    x.run.exec = &h.exec;
    CHECK_OK(report(&b, "usage", &x), &x.err);
    CHECK(h.calls >= 1);
    static const char expected[] = "\"peak_bytes\":24,";
    CHECK(memmem(x.out.p, x.out.n, expected, sizeof expected - 1));
    xpl_buf_fini(&x.out);
}

// A single sample means as much work as it has counters times values.
static void test_cancelled_counters(void) {
    enum { COUNTERS = 1000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {.run.options.counter_samples = true};
    begin_bundle(&b);
    size_t at = begin_chunk(&b, 0, "counter-sets");
    struct xpl_iree_counter_set set = {.counter_set_id = 1, .sample_value_count = 1};
    PUT(&b, set);
    end_record(&b, at);
    at = begin_chunk(&b, 0, "counters");
    for (uint32_t i = 0; i < COUNTERS; i++) {
        struct xpl_iree_counter c = {
            .counter_set_id = 1, .counter_ordinal = i, .sample_value_count = 1};
        PUT(&b, c);
    }
    end_record(&b, at);
    at = begin_chunk(&b, 0, "counter-samples");
    struct xpl_iree_counter_sample s = {.counter_set_id = 1, .sample_value_count = 1};
    s.record_length = sizeof s + 8;
    xpl_buf_put(&b, &s, sizeof s);
    put_zeros(&b, 8);
    end_record(&b, at);
    struct hook h = {.exec = {.cancelled = on_call}, .at = 20};
    x.run.exec = &h.exec;
    CHECK_EQ(report(&b, "counter", &x), XPL_CANCELLED);
    CHECK(count_lines(&x.out) < 20);
    xpl_buf_fini(&x.out);
}

// ---- traces ----

static size_t count_text(const struct xpl_buf *b, const char *what) {
    size_t n = 0;
    const uint8_t *at = b->p, *const end = at + b->n;
    while ((at = memmem(at, (size_t)(end - at), what, strlen(what))))
        n++, at++;
    return n;
}

// Puts what a counter set's samples need: its description, and a clock.
static void put_counter_set(struct xpl_buf *b, uint32_t n_values) {
    size_t at = begin_chunk(b, 0, "clock-correlations");
    struct xpl_iree_clock_correlation c = {.flags = 15};
    PUT(b, c);
    end_record(b, at);
    at = begin_chunk(b, 0, "counter-sets");
    struct xpl_iree_counter_set set = {.counter_set_id = 1, .sample_value_count = n_values};
    PUT(b, set);
    end_record(b, at);
}

static void put_counters(struct xpl_buf *b, uint32_t n, uint32_t n_values, xpl_str_t name) {
    const size_t at = begin_chunk(b, 0, "counters");
    for (uint32_t i = 0; i < n; i++) {
        struct xpl_iree_counter c = {.counter_set_id = 1,
                                     .counter_ordinal = i,
                                     .sample_value_count = n_values,
                                     .name_length = (uint32_t)name.len};
        c.record_length = (uint32_t)(sizeof c + name.len);
        xpl_buf_put(b, &c, sizeof c);
        xpl_buf_str(b, name);
    }
    end_record(b, at);
}

static void put_samples(struct xpl_buf *b, uint32_t n, uint32_t n_values) {
    const size_t at = begin_chunk(b, 0, "counter-samples");
    for (uint32_t i = 0; i < n; i++) {
        struct xpl_iree_counter_sample s = {.flags = XPL_IREE_SAMPLE_HAS_TICKS,
                                            .counter_set_id = 1,
                                            .start_tick = 10 + i,
                                            .end_tick = 20 + i,
                                            .sample_value_count = n_values};
        s.record_length = (uint32_t)(sizeof s + 8 * n_values);
        xpl_buf_put(b, &s, sizeof s);
        for (uint32_t k = 0; k < n_values; k++)
            put_zeros(b, 8);
    }
    end_record(b, at);
}

static xpl_status_t trace(struct xpl_buf *b, enum xpl_iree_trace_format format,
                          struct iree_run *x) {
    x->run.options.trace = format;
    return report(b, "export", x);
}

// A track has one name, however many samples: names of a thousand samples would be a megabyte.
static void test_names_of_counters(void) {
    static const struct {
        uint32_t counters, samples;
        xpl_status_t expected;
    } cases[] = {{1, 2000, XPL_OK}, {2000, 1, XPL_RESOURCE_EXHAUSTED}};
    char name[1000];
    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf b;
        struct iree_run x = {.run.limit = 1 << 17};
        begin_bundle(&b);
        put_counter_set(&b, cases[i].counters);
        put_counters(&b, cases[i].counters, 1, (xpl_str_t){name, sizeof name});
        put_samples(&b, cases[i].samples, cases[i].counters);
        CHECK_STATUS(trace(&b, XPL_IREE_CHROME, &x), cases[i].expected, &x.err);
        if (cases[i].expected == XPL_OK)
            CHECK_EQ(count_text(&x.out, "\"ph\":\"C\""), cases[i].samples);
        xpl_buf_fini(&x.out);
        xpl_buf_fini(&b);
    }
}

// Counters whose values no sample has mean no work for each sample; counters that all have the same
// values are as many as a sample has values.
static void test_counters_without_values(void) {
    enum { SHARING = 3000 };
    struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    put_counter_set(&b, 1);
    put_counters(&b, MANY, 2, XPL_STR(""));
    put_samples(&b, MANY, 1);
    const double start = cpu_seconds();
    CHECK_OK(trace(&b, XPL_IREE_CHROME, &x), &x.err);
    CHECK(cpu_seconds() - start < SECONDS);
    CHECK_EQ(count_text(&x.out, "\"ph\":\"C\""), 0);
    xpl_buf_fini(&x.out);
    xpl_buf_fini(&b);
    begin_bundle(&b);
    put_counter_set(&b, SHARING);
    put_counters(&b, SHARING, SHARING, XPL_STR(""));
    put_samples(&b, 2, SHARING);
    CHECK_OK(trace(&b, XPL_IREE_CHROME, &x), &x.err);
    CHECK_EQ(count_text(&x.out, "\"ph\":\"C\""), 2);
    xpl_buf_fini(&x.out);
    xpl_buf_fini(&b);
}

// Counters that are described again have their values once, also with others between them.
static void test_counters_again(void) {
    static const char *const names[] = {"one", "two", "one", "two", "one"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    put_counter_set(&b, 8);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_counters(&b, 1, 1, xpl_str_from(names[i]));
    put_samples(&b, 3, 8);
    CHECK_OK(trace(&b, XPL_IREE_PERFETTO, &x), &x.err);
    CHECK_EQ(count_text(&x.out, "iree_counter_raw_value_count"), 2 * 3);
    xpl_buf_fini(&x.out);
}

// The four records are walked twice; the ninth call comes from within them.
static void test_cancelled_samples(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct hook h = {.exec = {.cancelled = on_call}, .at = 9};
    struct iree_run x = {.run.exec = &h.exec};
    begin_bundle(&b);
    put_counter_set(&b, 1);
    put_counters(&b, 1, 1, XPL_STR(""));
    put_samples(&b, 20000, 1);
    CHECK_STATUS(trace(&b, XPL_IREE_CHROME, &x), XPL_CANCELLED, &x.err);
    CHECK_EQ(x.out.n, 0); // not even the beginning of the trace
    xpl_buf_fini(&x.out);
}

// n relationships from one end to host executions 1 to n.
static void put_relationships(struct xpl_buf *b, uint32_t n, uint32_t source_type,
                              uint64_t source_id) {
    const size_t at = begin_chunk(b, 0, "event-relationships");
    for (uint32_t i = 0; i < n; i++) {
        struct xpl_iree_relationship r = {.relationship_id = 1 + i,
                                          .source_type = source_type,
                                          .source_id = source_id,
                                          .target_type = XPL_IREE_END_HOST,
                                          .target_id = 1 + i};
        PUT(b, r);
    }
    end_record(b, at);
}

static void put_queue_event(struct xpl_buf *b, uint64_t submission) {
    const size_t at = begin_chunk(b, 0, "queue-events");
    struct xpl_iree_queue_event q = {.event_id = 1, .submission_id = submission};
    PUT(b, q);
    end_record(b, at);
}

// ---- iterations ----

// A bundle of queue events of these kinds, a letter each, 10 ns apart.
static struct xpl_buf iterations_bundle(const char *kinds) {
    struct xpl_buf b;
    begin_bundle(&b);
    const size_t at = begin_chunk(&b, 0, "queue-events");
    for (uint32_t i = 0; kinds[i]; i++) {
        struct xpl_iree_queue_event q = {.type = (uint32_t)(kinds[i] - 'a'),
                                         .submission_id = 1 + i,
                                         .host_time_ns = 10 * ((int64_t)i + 1)};
        PUT(&b, q);
    }
    end_record(&b, at);
    return b;
}

static void ask_iterations(const char *kinds, struct iree_run *x) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = iterations_bundle(kinds);
    CHECK_OK(report(&b, "iterations", x), &x->err);
}

static void test_iterations(void) {
    static const struct {
        const char *kinds, *expected;
        size_t rows; // of iterations
    } cases[] = {
        {"xyabcabcabc", "\"events_before\":2,\"events_per_iteration\":3,\"iterations\":3,", 3},
        {"aaaa", "\"events_before\":0,\"events_per_iteration\":1,\"iterations\":4,", 4},
        {"abcabca", "\"events_per_iteration\":3,\"iterations\":2,", 2},
        {"abcdef",
         "\"events_before\":6,\"events_per_iteration\":0,\"iterations\":0,\"session_index\":0}", 0},
        {"a", "\"iterations\":0,\"session_index\":0}", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct iree_run x = {0};
        ask_iterations(cases[i].kinds, &x);
        if (count_text(&x.out, cases[i].expected) != 1)
            (void)fprintf(stderr, "%s: %.*s", cases[i].kinds, (int)x.out.n, (char *)x.out.p);
        CHECK_EQ(count_text(&x.out, cases[i].expected), 1);
        CHECK_EQ(count_text(&x.out, "\"type\":\"iteration\""), cases[i].rows);
        xpl_buf_fini(&x.out);
    }
    // Each lasts to the next one; the length of the last one is unknown.
    struct iree_run x = {0};
    ask_iterations("xyabcabcabc", &x);
    CHECK_EQ(
        count_text(&x.out, "\"interval_available\":true,\"interval_ns\":30,\"session_index\":0}"),
        2);
    CHECK_EQ(
        count_text(&x.out, "\"interval_available\":false,\"interval_ns\":0,\"session_index\":0}"),
        1);
    CHECK_EQ(count_text(&x.out, "\"total_ns\":60,"), 1);
    xpl_buf_fini(&x.out);
}

// A reader of members learns where rows begin and end, and their types.
struct told {
    size_t begun, iterations, ended, members;
};

static void on_begin(void *ctx, const char *type) {
    struct told *const t = ctx;
    CHECK_EQ(t->begun, t->ended);
    t->begun++;
    t->iterations += strcmp(type, "iteration") == 0;
}

static void on_member(void *ctx, const struct xpl_iree_member *m) {
    struct told *const t = ctx;
    CHECK(m->name && t->begun == t->ended + 1);
    t->members++;
}

static void on_end(void *ctx) {
    ((struct told *)ctx)->ended++;
}

static void test_members(void) {
    struct told t = {0};
    struct iree_run x = {.run.options.id = -1};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = iterations_bundle("aaaa");
    xpl_buf_init(&x.out, 1 << 20);
    x.rows = (struct xpl_iree_rows){.format = XPL_IREE_JSONL,
                                    .member = on_member,
                                    .begin = on_begin,
                                    .end = on_end,
                                    .member_ctx = &t,
                                    .out = &x.out};
    x.run.rows = &x.rows, x.run.bundle = &x.bundle;
    CHECK_OK(xpl_iree_open((xpl_bytes_t){b.p, b.n}, false, &x.bundle, &x.err), &x.err);
    CHECK_OK(xpl_iree_report_run(xpl_iree_report_find(XPL_STR("iterations")), &x.run, &x.err),
             &x.err);
    CHECK(t.begun == 5 && t.ended == 5 && t.iterations == 4 && t.members > 30);
    CHECK_EQ(x.out.n, 0);
    xpl_buf_fini(&x.out);
}

// Each of the flows that begin at one event ends somewhere.
static void test_many_flows_of_an_event(void) {
    enum { FLOWS = 1000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    begin_bundle(&b);
    put_relationships(&b, FLOWS, XPL_IREE_END_QUEUE_EVENT, 1);
    put_queue_event(&b, 0);
    const size_t at = begin_chunk(&b, 0, "host-execution-events");
    for (uint32_t i = 0; i < FLOWS; i++) {
        struct xpl_iree_host_event e = {
            .event_id = 1 + i, .start_host_time_ns = 10 + i, .end_host_time_ns = 11 + i};
        PUT(&b, e);
    }
    end_record(&b, at);
    CHECK_OK(trace(&b, XPL_IREE_CHROME, &x), &x.err);
    CHECK_EQ(count_text(&x.out, "\"ph\":\"s\""), FLOWS);
    CHECK_EQ(count_text(&x.out, "\"ph\":\"t\""), FLOWS);
    xpl_buf_fini(&x.out);
}

// How often a trace asks whether to go on, with 50000 flows of submission 7.
static uint64_t questions(enum xpl_iree_trace_format format, uint64_t submission) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct hook h = {.exec = {.cancelled = on_call}, .at = UINT64_MAX};
    struct iree_run x = {.run.exec = &h.exec};
    begin_bundle(&b);
    put_relationships(&b, 50000, XPL_IREE_END_SUBMISSION, 7);
    put_queue_event(&b, submission);
    CHECK_OK(trace(&b, format, &x), &x.err);
    xpl_buf_fini(&x.out);
    return h.calls;
}

static void test_flows_ask(void) {
    CHECK(questions(XPL_IREE_PERFETTO, 7) > questions(XPL_IREE_PERFETTO, 8) + 10);
    CHECK(questions(XPL_IREE_CHROME, 7) > questions(XPL_IREE_CHROME, 8) + 10);
    CHECK(questions(XPL_IREE_XSPACE, 7) > questions(XPL_IREE_XSPACE, 8) + 10);
}

// An op of a function that is called like the dispatches of no module, whose name is cut within a
// character: its name stays text with a checksum of the full name, and nothing behind it is
// written.
static void test_long_names(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    enum { FRONT = 188 }; // the longest name less the sum and a byte of a character
    char name[304] = "_dispatch_0_", shown[201], path[620];
    memset(name + 12, 'a', 288);
    memcpy(name + FRONT, "\xc3\xa4", 2);
    begin_bundle(&b);
    size_t at = begin_chunk(&b, 0, "executable-functions");
    struct xpl_iree_function f = {.executable_id = 1, .name_length = (uint32_t)strlen(name)};
    f.record_length = (uint32_t)(sizeof f + strlen(name));
    xpl_buf_put(&b, &f, sizeof f);
    xpl_buf_str(&b, xpl_str_from(name));
    end_record(&b, at);
    at = begin_chunk(&b, 0, "host-execution-events");
    struct xpl_iree_host_event e = {.event_id = 1,
                                    .type = XPL_IREE_OP_DISPATCH,
                                    .executable_id = 1,
                                    .start_host_time_ns = INT64_MIN,
                                    .end_host_time_ns = 10};
    PUT(&b, e);
    e.event_id = 2, e.queue_ordinal = 1; // of another line
    e.start_host_time_ns = INT64_MAX - 10, e.end_host_time_ns = INT64_MAX;
    PUT(&b, e);
    end_record(&b, at);
    CHECK_OK(trace(&b, XPL_IREE_XSPACE, &x), &x.err);
    (void)snprintf(shown, sizeof shown, "%.*s_%010" PRIu32, FRONT, name,
                   xpl_crc32(0, (xpl_bytes_t){(const uint8_t *)name, strlen(name)}));
    (void)snprintf(path, sizeof path, "%s/%s:%.*s", shown, shown, FRONT - 12, shown + 12);
    const uint8_t *const p = memmem(x.out.p, x.out.n, path, strlen(path));
    CHECK(p && (!p[strlen(path)] || p[strlen(path)] < 0x80));
    CHECK_EQ(count_text(&x.out, "\xc3"), count_text(&x.out, "\xc3\xa4"));
    xpl_buf_fini(&x.out);
}

// Events of two functions in turn, whose names and whose record's name are long.
static void test_shared_names(void) {
    enum { EVENTS = 20000, LONG = 1 << 20, DEVICES = 2 };
    static char name[LONG];
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct iree_run x = {0};
    memset(name, 'a', LONG);
    begin_bundle(&b);
    end_record(&b, begin_record(&b, XPL_IREE_RECORD_BEGIN, 1, 0, ""));
    end_record(&b, begin_record(&b, XPL_IREE_RECORD_BEGIN, 2, 0, ""));
    size_t at = begin_chunk(&b, 0, "executable-functions");
    for (uint32_t i = 0; i < 2; i++) {
        struct xpl_iree_function f = {
            .executable_id = 1, .function_ordinal = 64 * i, .name_length = LONG};
        f.record_length = (uint32_t)(sizeof f + LONG);
        xpl_buf_put(&b, &f, sizeof f);
        xpl_buf_put(&b, name, LONG);
    }
    end_record(&b, at);
    at = begin_chunk(&b, 0, "host-execution-events");
    const uint32_t length = LONG;
    memcpy(b.p + at + 64, &length, 4);
    xpl_buf_put(&b, name, LONG);
    for (uint32_t i = 0; i < EVENTS; i++) {
        struct xpl_iree_host_event e = {.event_id = 1 + i,
                                        .type = XPL_IREE_OP_DISPATCH,
                                        .executable_id = 1,
                                        .function_ordinal = 64 * (i % 2),
                                        .physical_device_ordinal = i % DEVICES,
                                        .start_host_time_ns = 10 * i,
                                        .end_host_time_ns = 10 * i + 5};
        PUT(&b, e);
    }
    end_record(&b, at);
    end_record(&b, at);
    uint64_t payload; // without the name
    memcpy(&payload, b.p + at + 8, 8);
    payload -= LONG;
    memcpy(b.p + at + 8, &payload, 8);
    const double start = cpu_seconds();
    CHECK_OK(report(&b, "self", &x), &x.err);
    CHECK_EQ(count_text(&x.out, "\"type\":\"self_time\""), 2);
    xpl_buf_fini(&x.out);
    CHECK_OK(report(&b, "functions", &x), &x.err);
    CHECK_EQ(count_text(&x.out, "\"type\":\"function\""), 1);
    xpl_buf_fini(&x.out);
    CHECK_OK(report(&b, "dispatch", &x), &x.err);
    CHECK_EQ(count_text(&x.out, "\"type\":\"host_dispatch_group\""), 2);
    xpl_buf_fini(&x.out);
    x.run.options.filter = XPL_STR("*b*a");
    CHECK_OK(report(&b, "dispatch", &x), &x.err);
    CHECK_EQ(count_text(&x.out, "\"type\":\"host_dispatch_group\""), 0);
    CHECK(cpu_seconds() - start < SECONDS / 2);
    xpl_buf_fini(&x.out);
}

// Typed records of the longest and the shortest length that can be written, of every kind.
static void test_lengths_of_records(void) {
    static const uint32_t lengths[] = {UINT32_MAX, UINT32_MAX - 1, 0, 1};
    for (size_t t = 0; t < XPL_IREE_N_CHUNK_TYPES; t++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            const struct xpl_iree_chunk_type *const type = &xpl_iree_chunk_types[t];
            struct xpl_buf b;
            struct iree_run x = {0};
            begin_bundle(&b);
            const size_t at = begin_chunk(&b, 0, type->suffix);
            for (int k = 0; k < 3; k++) {
                xpl_buf_put(&b, &lengths[i], sizeof lengths[i]);
                for (size_t n = sizeof lengths[i]; n < type->size; n++)
                    xpl_buf_put(&b, "", 1);
            }
            end_record(&b, at);
            uint8_t *const exact = malloc(b.n); // so that a read behind it is found
            CHECK(exact);
            memcpy(exact, b.p, b.n);
            const size_t room = b.n;
            xpl_buf_fini(&b);
            x.run.options.id = -1;
            const xpl_bytes_t file = {exact, room};
            CHECK_OK(iree_report(&x, file, "sessions", XPL_IREE_JSONL), &x.err);
            CHECK(type->events || x.bundle.notes.n >= 1);
            xpl_buf_fini(&x.out);
            free(exact);
        }
}

int main(void) {
    test_lengths_of_records();
    test_many_sessions();
    test_same_device();
    test_ends();
    test_many_queues();
    test_far_times();
    test_changing_times();
    test_cancelled_counters();
    test_names_of_counters();
    test_counters_without_values();
    test_counters_again();
    test_cancelled_samples();
    test_many_flows_of_an_event();
    test_flows_ask();
    test_iterations();
    test_members();
    test_long_names();
    test_shared_names();
    return 0;
}
