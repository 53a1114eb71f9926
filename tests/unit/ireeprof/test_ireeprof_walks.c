// SPDX-License-Identifier: Apache-2.0
// How bundles are walked: headers read from the file, and metadata that is found without a walk.
#include <string.h>

#include "tests/data_file.h"
#include "tests/iree_run.h"

static struct xpl_buf load(void) {
    return read_data_file("iree/task-mlp-all.ireeprof");
}
static xpl_bytes_t view(const struct xpl_buf *b) {
    return (xpl_bytes_t){b->p, b->n};
}

// A copy whose records of type `chunk` appear `copies` times.
static struct xpl_buf repeated(const struct xpl_buf *b, enum xpl_iree_chunk chunk, size_t copies) {
    struct xpl_iree_bundle bundle;
    struct xpl_iree_record r;
    struct xpl_buf out = xpl_buf_of((size_t)1 << 28);
    CHECK_OK(xpl_iree_open(view(b), false, &bundle, NULL), NULL);
    struct xpl_iree_cursor c = {.bundle = &bundle};
    xpl_buf_put(&out, b->p, 16);
    xpl_buf_put(&out, &(uint64_t){0}, 8);
    while (xpl_iree_next(&c, &r))
        for (size_t i = 0; i < (r.chunk == chunk ? copies : 1); i++)
            xpl_buf_put(&out, b->p + r.offset, (size_t)r.record_length);
    return out;
}

static void check_equal(xpl_bytes_t one, const char *report, const struct xpl_iree_mapping *a,
                        xpl_bytes_t other, const struct xpl_iree_mapping *b) {
    struct iree_run x = {.run.options.id = -1, .mapping = a}, y = x;
    y.mapping = b;
    CHECK_OK(iree_report(&x, one, report, XPL_IREE_JSONL), &x.err);
    CHECK_OK(iree_report(&y, other, report, XPL_IREE_JSONL), &y.err);
    CHECK(x.out.n == y.out.n && memcmp(x.out.p, y.out.p, x.out.n) == 0);
    CHECK_EQ(xpl_iree_is_partial(&x.run), xpl_iree_is_partial(&y.run));
    for (size_t i = 0; one.ptr == other.ptr; i++) { // else lengths of files differ, too
        char first[256], second[256];
        const bool more = xpl_iree_warning(&x.run, i, first, sizeof first);
        CHECK_EQ(more, xpl_iree_warning(&y.run, i, second, sizeof second));
        if (!more) break;
        CHECK_STR(first, second);
    }
    xpl_buf_fini(&x.out);
    xpl_buf_fini(&y.out);
}

// A copy whose first chunk of this kind has at least so many more bytes: its events again.
static struct xpl_buf swollen(const struct xpl_buf *b, enum xpl_iree_chunk chunk, size_t bytes) {
    struct xpl_iree_bundle bundle;
    struct xpl_iree_record r;
    struct xpl_buf large = xpl_buf_of((size_t)1 << 28);
    CHECK_OK(xpl_iree_open(view(b), false, &bundle, NULL), NULL);
    struct xpl_iree_cursor c = {.bundle = &bundle};
    while (xpl_iree_next(&c, &r) && r.chunk != chunk)
        ;
    CHECK_EQ(r.chunk, chunk);
    const uint64_t more = (bytes + r.payload_length - 1) / r.payload_length * r.payload_length;
    const uint64_t payload = r.payload_length + more, record = r.record_length + more;
    xpl_buf_put(&large, b->p, (size_t)r.offset + (size_t)r.record_length);
    for (uint64_t i = 0; i < more; i += r.payload_length)
        xpl_buf_put(&large, r.payload.ptr, r.payload.len);
    memcpy(large.p + r.offset, &record, 8);
    memcpy(large.p + r.offset + 8, &payload, 8);
    xpl_buf_put(&large, b->p + c.at, b->n - (size_t)c.at);
    memset(large.p + XPL_IREE_FILE_LENGTH_AT, 0, 8);
    return large;
}

static xpl_bytes_t file; // that is read from
static size_t n_read;

static bool note_read(void *ctx, uint64_t offset, void *ret, size_t n) {
    (void)ctx;
    CHECK(offset + n <= file.len);
    memcpy(ret, file.ptr + offset, n);
    n_read++;
    return true;
}

static bool read_nothing(void *ctx, uint64_t offset, void *ret, size_t n) {
    (void)ctx, (void)offset, (void)ret, (void)n;
    return false;
}

// Headers far from each other are read from the file; rows are those of the mapping, also where the
// file cannot be read.
static void test_headers_from_file(void) {
    static const char *const reports[] = {"cat", "summary", "queue", "dispatch", "memory"};
    static const struct xpl_iree_mapping noting = {.read = note_read};
    static const struct xpl_iree_mapping broken = {.read = read_nothing};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf many = repeated(&b, XPL_IREE_MEMORY_EVENTS, 3);
    // The chunk gets so many events that its successor is far away.
    XPL_AUTO(xpl_buf_fini) struct xpl_buf large = swollen(&many, XPL_IREE_MEMORY_EVENTS, 80000);
    file = view(&large), n_read = 0;
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        check_equal(view(&large), reports[i], NULL, view(&large), &noting);
        check_equal(view(&large), reports[i], NULL, view(&large), &broken);
    }
    CHECK(n_read >= 2 * sizeof reports / sizeof *reports); // opening, and a walk
}

// Where the payload of the first chunk of a kind begins, to be written to.
static uint8_t *first_payload(const struct xpl_buf *b, unsigned chunk) {
    struct xpl_iree_bundle bundle;
    struct xpl_iree_record r;
    CHECK_OK(xpl_iree_open(view(b), false, &bundle, NULL), NULL);
    struct xpl_iree_cursor c = {.bundle = &bundle};
    while (xpl_iree_next(&c, &r) && r.chunk != chunk)
        ;
    CHECK_EQ(r.chunk, chunk);
    return b->p + (r.payload.ptr - b->p);
}

// The event that is about so many bytes into the first chunk of a kind.
static uint8_t *event_at(const struct xpl_buf *b, enum xpl_iree_chunk chunk, size_t about) {
    return first_payload(b, chunk) +
           about / xpl_iree_chunk_types[chunk].size * xpl_iree_chunk_types[chunk].size;
}

// Events that are read through a window give the rows, and the damage, of the mapping: whole ones,
// longer ones in the second window and damaged ones in the third.
static void test_windows(void) {
    static const char *const reports[] = {"summary",    "explain", "dispatch",   "queue",
                                          "command",    "memory",  "executable", "statistics",
                                          "iterations", "latency", "self",       "usage"};
    static const enum xpl_iree_chunk chunks[] = {XPL_IREE_HOST_EVENTS, XPL_IREE_QUEUE_EVENTS,
                                                 XPL_IREE_MEMORY_EVENTS};
    static const struct xpl_iree_mapping noting = {.read = note_read};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load();
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct xpl_buf large = swollen(&b, chunks[i], (size_t)3 * XPL_IREE_WINDOW);
        const uint32_t twice = 2 * xpl_iree_chunk_types[chunks[i]].size, none = 0;
        file = view(&large);
        for (size_t damage = 0; damage < 3; damage++) {
            if (damage == 1)
                memcpy(event_at(&large, chunks[i], XPL_IREE_WINDOW + 5000), &twice, sizeof twice);
            if (damage == 2)
                memcpy(event_at(&large, chunks[i], 2 * XPL_IREE_WINDOW + 5000), &none, sizeof none);
            n_read = 0;
            for (size_t k = 0; k < sizeof reports / sizeof *reports; k++)
                check_equal(view(&large), reports[k], NULL, view(&large), &noting);
            CHECK(n_read >= sizeof reports / sizeof *reports + 4); // opening them, and windows
        }
        xpl_buf_fini(&large);
    }
}

// Of descriptions the first counts, whether the bundle knows where all of them stand or not.
static void test_many_descriptions(void) {
    static const enum xpl_iree_chunk chunks[] = {XPL_IREE_QUEUES, XPL_IREE_FUNCTIONS};
    static const char *const reports[] = {"dispatch", "executable", "queue", "counter"};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load(), once = repeated(&b, XPL_IREE_QUEUES, 1);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct xpl_buf many = repeated(&b, chunks[i], 2 * XPL_IREE_PLACES);
        for (size_t k = 0; k < sizeof reports / sizeof *reports; k++)
            check_equal(view(&many), reports[k], NULL, view(&once), NULL);
        xpl_buf_fini(&many);
    }
    xpl_buf_fini(&once);
}

// What IREE's summary and statistics do not look at changes none of their rows: the length of a
// function's name, of a clock correlation, of an event.  That of metadata is noted.
static void test_overlooked(void) {
    static const struct {
        enum xpl_iree_chunk chunk;
        size_t member;
        const char *report;
        unsigned more; // than are there
        bool noted;
    } cases[] = {
        {XPL_IREE_FUNCTIONS, offsetof(struct xpl_iree_function, name_length), "summary", 1, true},
        {XPL_IREE_CLOCKS, 0, "statistics", 1, true},
        {XPL_IREE_DISPATCH_EVENTS, 0, "statistics", 1, false},
        // As if the event were as long as two.
        {XPL_IREE_DISPATCH_EVENTS, 0, "statistics", sizeof(struct xpl_iree_dispatch_event), false},
    };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf good = read_data_file("iree/vk-mlp-all.ireeprof");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf bad = read_data_file("iree/vk-mlp-all.ireeprof");
        struct iree_run x = {.run.options.id = -1}, y = x;
        struct xpl_iree_bundle bundle;
        struct xpl_iree_record r;
        CHECK_OK(xpl_iree_open(view(&bad), false, &bundle, NULL), NULL);
        struct xpl_iree_cursor c = {.bundle = &bundle};
        while (xpl_iree_next(&c, &r) && r.chunk != cases[i].chunk)
            ;
        CHECK_EQ(r.chunk, cases[i].chunk);
        uint8_t *const at = bad.p + (r.payload.ptr - bad.p) + cases[i].member;
        *at = (uint8_t)(*at + cases[i].more);
        CHECK_OK(iree_report(&x, view(&good), cases[i].report, XPL_IREE_JSONL), &x.err);
        CHECK_OK(iree_report(&y, view(&bad), cases[i].report, XPL_IREE_JSONL), &y.err);
        CHECK(x.out.n == y.out.n && memcmp(x.out.p, y.out.p, x.out.n) == 0);
        CHECK(!xpl_iree_is_partial(&x.run));
        CHECK_EQ(xpl_iree_is_partial(&y.run), cases[i].noted);
        xpl_buf_fini(&x.out);
        xpl_buf_fini(&y.out);
        xpl_buf_fini(&bad);
    }
}

// A function's name that is shorter than its record is cut in IREE's statistics, which go on.
static void test_short_name(void) {
    static const char first[] = "\"function_name\":\"mlp_dispatch_0_matmul_64x256x784_\"";
    static const char last[] = "\"function_name\":\"mlp_dispatch_3_";
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = read_data_file("iree/sync-mlp-all.ireeprof");
    struct iree_run x = {.run.options.id = -1};
    uint8_t *const at =
        first_payload(&b, XPL_IREE_FUNCTIONS) + offsetof(struct xpl_iree_function, name_length);
    *at = (uint8_t)(*at - 3);
    CHECK_OK(iree_report(&x, view(&b), "statistics", XPL_IREE_JSONL), &x.err);
    CHECK(memmem(x.out.p, x.out.n, first, sizeof first - 1));
    CHECK(memmem(x.out.p, x.out.n, last, sizeof last - 1));
    CHECK(xpl_iree_is_partial(&x.run));
    xpl_buf_fini(&x.out);
}

// The life of an allocation that a number cannot hold wraps around in IREE's memory, as here.
static void test_endless_life(void) {
    static const char life[] = "\"duration_ns\":-9223370654207";
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = read_data_file("iree/sync-mlp-all.ireeprof");
    struct iree_run x = {.run.options.id = -1};
    memcpy(first_payload(&b, XPL_IREE_MEMORY_EVENTS) +
               offsetof(struct xpl_iree_memory_event, host_time_ns),
           &(int64_t){INT64_MIN + 2}, sizeof(int64_t));
    CHECK_OK(iree_report(&x, view(&b), "memory", XPL_IREE_JSONL), &x.err);
    CHECK(memmem(x.out.p, x.out.n, life, sizeof life - 1));
    xpl_buf_fini(&x.out);
}

// The sum of records that were dropped wraps around, as IREE's does.
static void test_many_dropped(void) {
    static const char *const reports[] = {"summary", "explain", "memory"};
    static const char sum[] = "\"dropped_records\":18446744073709551613";
    struct xpl_buf one = load(), b = repeated(&one, XPL_IREE_MEMORY_EVENTS, 3);
    struct xpl_iree_bundle bundle;
    struct xpl_iree_record r;
    CHECK_OK(xpl_iree_open(view(&b), false, &bundle, NULL), NULL);
    struct xpl_iree_cursor c = {.bundle = &bundle};
    while (xpl_iree_next(&c, &r))
        if (r.chunk == XPL_IREE_MEMORY_EVENTS) {
            b.p[r.offset + 80] |= 1; // chunk_flags: truncated; dropped_record_count
            memset(b.p + r.offset + 88, 0xff, sizeof(uint64_t));
        }
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        struct iree_run x = {.run.options.id = -1};
        CHECK_OK(iree_report(&x, view(&b), reports[i], XPL_IREE_JSONL), &x.err);
        CHECK(memmem(x.out.p, x.out.n, sum, sizeof sum - 1));
        xpl_buf_fini(&x.out);
    }
    xpl_buf_fini(&one);
    xpl_buf_fini(&b);
}

int main(void) {
    test_many_dropped();
    test_endless_life();
    test_short_name();
    test_overlooked();
    test_headers_from_file();
    test_windows();
    test_many_descriptions();
    return 0;
}
