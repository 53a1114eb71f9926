// SPDX-License-Identifier: Apache-2.0
// Bundles of IREE: header, framing, prefixes, dialects, clocks, globs, rows, tables, warnings.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ireeprof/clock.h"
#include "analysis/ireeprof/table.h"
#include "base/arena.h"
#include "tests/data_file.h"
#include "tests/iree_run.h"

static const char *const bundles[] = {"task-mlp-all", "vk-mlp-all", "sync-mlp-all",
                                      "syn-everything"};
enum { N_BUNDLES = sizeof bundles / sizeof *bundles };

static struct xpl_buf load(const char *name) {
    char path[100];
    (void)snprintf(path, sizeof path, "iree/%s.ireeprof", name);
    return read_data_file(path);
}
static xpl_bytes_t view(const struct xpl_buf *b) {
    return (xpl_bytes_t){b->p, b->n};
}

// ---- the header ----

static void refused(const struct xpl_buf *good, size_t at, uint64_t value, size_t n,
                    const char *why) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(good->n);
    struct xpl_iree_bundle bundle;
    struct xpl_error err = {0};
    xpl_buf_put(&b, good->p, good->n);
    memcpy(b.p + at, &value, n);
    CHECK(xpl_iree_open(view(&b), false, &bundle, &err) != XPL_OK);
    if (!strstr(err.msg, why)) fprintf(stderr, "%s\n", err.msg);
    CHECK(strstr(err.msg, why));
}

static void test_header(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load("task-mlp-all");
    refused(&b, 0, 0, 4, "invalid IREE HAL profile file magic");
    refused(&b, 4, 2, 2, "unsupported IREE HAL profile file version");
    refused(&b, 8, 23, 4, "profile file header length is too small");
    refused(&b, 8, UINT32_MAX, 4, "profile file header extends past file end");
    refused(&b, 12, 1, 4, "profile file reserved flags must be zero");
    refused(&b, 16, 10, 8, "profile file length is before the first record");
    struct xpl_iree_bundle bundle;
    struct xpl_error err = {0};
    for (size_t n = 0; n < 24; n++) {
        err = (struct xpl_error){0};
        CHECK_EQ(xpl_iree_open((xpl_bytes_t){b.p, n}, false, &bundle, &err), XPL_DATA_LOSS);
        CHECK(strstr(err.msg, "too small for header"));
    }
    // Minor versions and more bytes behind the length do not matter.
    b.p[6] = 9;
    xpl_buf_putc(&b, 'x');
    CHECK_OK(xpl_iree_open(view(&b), false, &bundle, &err), &err);
    CHECK(bundle.notes.n == 0 && bundle.bytes.len == b.n - 1 && !bundle.unfinished_behind);
}

// ---- damage ----

static uint64_t count_lines(const struct xpl_buf *b) {
    uint64_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += b->p[i] == '\n';
    return n;
}

// Every prefix gives the records that it holds whole, a warning, and is partial.
static void test_prefixes(void) {
    for (size_t k = 0; k < 3; k++) {
        struct xpl_buf b = load(bundles[k]);
        struct iree_run x = {.run.options.id = -1};
        uint64_t records = 0;
        for (size_t n = 24; n < b.n; n++) {
            uint8_t *const exact = malloc(n); // an over-read is seen by the sanitizer
            CHECK(exact);
            memcpy(exact, b.p, n);
            memset(x.run.missing, 0, sizeof x.run.missing);
            CHECK_OK(iree_report(&x, (xpl_bytes_t){exact, n}, "cat", XPL_IREE_JSONL), &x.err);
            CHECK_EQ(count_lines(&x.out), x.bundle.n_records + 1);
            CHECK(x.bundle.n_records >= records && x.bundle.bytes.len <= n);
            CHECK(xpl_iree_is_partial(&x.run) && x.bundle.notes.n >= 1);
            CHECK_EQ(x.bundle.notes.kept[0].offset, n); // the length that the header states
            records = x.bundle.n_records;
            xpl_buf_fini(&x.out);
            free(exact);
        }
        CHECK_OK(iree_report(&x, view(&b), "cat", XPL_IREE_JSONL), &x.err);
        CHECK_EQ(x.bundle.n_records, records + 1);
        CHECK(!xpl_iree_is_partial(&x.run));
        xpl_buf_fini(&x.out);
        xpl_buf_fini(&b);
    }
}

static void test_unfinished(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load("vk-mlp-all");
    struct iree_run x = {.run.options.id = -1};
    char text[320];
    memset(b.p + 16, 0, 8);
    CHECK_OK(iree_report(&x, view(&b), "summary", XPL_IREE_TEXT), &x.err);
    CHECK(x.bundle.never_finished && x.bundle.notes.n == 0 && xpl_iree_is_partial(&x.run));
    CHECK(xpl_iree_warning(&x.run, 0, text, sizeof text) && strstr(text, "not finished"));
    CHECK(!xpl_iree_warning(&x.run, 1, text, sizeof text));
    xpl_buf_fini(&x.out);
    // Records behind the stated end are another session's: left out, said, and read when asked for.
    struct xpl_iree_bundle whole;
    const uint64_t end = b.n;
    memcpy(b.p + 16, &end, 8);
    struct xpl_iree_cursor c = {.bundle = &whole};
    struct xpl_iree_record r;
    CHECK_OK(xpl_iree_open(view(&b), false, &whole, &x.err), &x.err);
    CHECK(xpl_iree_next(&c, &r));
    xpl_buf_put(&b, b.p + r.offset, r.record_length);
    CHECK_OK(iree_report(&x, view(&b), "summary", XPL_IREE_TEXT), &x.err);
    CHECK(x.bundle.unfinished_behind && x.bundle.n_records == whole.n_records);
    CHECK(xpl_iree_warning(&x.run, 0, text, sizeof text) && strstr(text, "--unfinished"));
    xpl_buf_fini(&x.out);
    CHECK_OK(xpl_iree_open(view(&b), true, &x.bundle, &x.err), &x.err);
    CHECK_EQ(x.bundle.n_records, whole.n_records + 1);
}

// Damage among events is noted by the reports that read them, once, where it is; one that reads
// them three times says it no more often.  Pages are given back where they were read.
static size_t n_done;
static const uint8_t *done_begin, *done_end;

static void note_done(const void *p, size_t n) {
    CHECK((const uint8_t *)p >= done_begin && (const uint8_t *)p + n <= done_end);
    n_done++;
}

static const struct xpl_iree_mapping noting = {.done = note_done};

static void test_damaged_events(void) {
    static const struct {
        const char *report;
        size_t notes;
    } cases[] = {{"cat", 0}, {"memory", 0}, {"summary", 1}, {"queue", 1}, {"export", 1}};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load("task-mlp-all");
    static const char name[] = "host-execution-events";
    uint8_t *const at = memmem(b.p, b.n, name, sizeof name - 1);
    CHECK(at);
    uint32_t length;
    memcpy(&length, at - 33 - 104 + 64, 4); // of the record's name
    uint8_t *const second = at + sizeof name - 1 + length + sizeof(struct xpl_iree_host_event);
    memset(second, 0xff, 4);
    done_begin = b.p, done_end = b.p + b.n;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct iree_run x = {.run = {.options.id = -1}, .mapping = &noting};
        char text[320];
        CHECK_OK(iree_report(&x, view(&b), cases[i].report, XPL_IREE_JSONL), &x.err);
        CHECK_EQ(x.run.damage.n, cases[i].notes);
        CHECK_EQ(xpl_iree_is_partial(&x.run), cases[i].notes != 0);
        if (cases[i].notes) {
            CHECK_EQ(x.run.damage.kept[0].offset, (uint64_t)(second - b.p));
            CHECK(xpl_iree_warning(&x.run, 0, text, sizeof text) && strstr(text, "typed record"));
        }
        xpl_buf_fini(&x.out);
    }
}

// All pages of a large bundle are released, a piece at a time.
static void test_pages(void) {
    enum { COPIES = 40000 };
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load("task-mlp-all");
    struct iree_run x = {.run = {.options.id = -1}, .mapping = &noting};
    static const char name[] = "memory-events";
    const uint8_t *const at = memmem(b.p, b.n, name, sizeof name - 1);
    CHECK(at);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf large = xpl_buf_of((size_t)1 << 28);
    uint32_t length;
    uint64_t record, payload;
    const size_t start = (size_t)(at - b.p) - 33 - 104;
    memcpy(&record, b.p + start, 8);
    memcpy(&payload, b.p + start + 8, 8);
    memcpy(&length, b.p + start + 56 + 8, 4);
    xpl_buf_put(&large, b.p, 16);
    xpl_buf_put(&large, &(uint64_t){0}, 8);
    xpl_buf_put(&large, b.p + start, record - payload);
    for (size_t i = 0; i < COPIES; i++)
        xpl_buf_put(&large, b.p + start + record - payload, sizeof(struct xpl_iree_memory_event));
    record += COPIES * sizeof(struct xpl_iree_memory_event) - payload;
    payload = COPIES * sizeof(struct xpl_iree_memory_event);
    memcpy(large.p + 24, &record, 8);
    memcpy(large.p + 32, &payload, 8);
    n_done = 0, done_begin = large.p, done_end = large.p + large.n;
    CHECK_OK(iree_report(&x, view(&large), "summary", XPL_IREE_JSONL), &x.err);
    static const char count[] = "\"memory_event_records\":40000,";
    CHECK(memmem(x.out.p, x.out.n, count, sizeof count - 1));
    CHECK(n_done >= payload >> 20 && x.run.damage.n == 0);
    xpl_buf_fini(&x.out);
}

// The functions of May 2026 and of before are read alike.
static void test_dialects(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load("vk-mlp-all");
    struct iree_run x = {.run.options.id = -1}, y = x;
    static const char now[] = "executable-functions", before[] = "executable-exports";
    uint8_t *const at = memmem(b.p, b.n, now, sizeof now - 1);
    CHECK_OK(iree_report(&x, view(&b), "dispatch", XPL_IREE_JSONL), &x.err);
    CHECK(at);
    // The name becomes shorter by two bytes, which the record's name gets.
    const size_t record = (size_t)(at - b.p) - 33 - 104;
    uint32_t n;
    memcpy(&n, b.p + record + 60, 4);
    n -= 2, memcpy(b.p + record + 60, &n, 4);
    memcpy(&n, b.p + record + 64, 4);
    n += 2, memcpy(b.p + record + 64, &n, 4);
    memcpy(at, before, sizeof before - 1);
    CHECK_OK(iree_report(&y, view(&b), "dispatch", XPL_IREE_JSONL), &y.err);
    CHECK(!xpl_iree_is_partial(&y.run));
    CHECK(x.out.n == y.out.n && memcmp(x.out.p, y.out.p, x.out.n) == 0);
    xpl_buf_fini(&x.out);
    xpl_buf_fini(&y.out);
}

// local-sync describes no command buffers: said, and no reason to refuse.
static void test_missing(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load("sync-mlp-all");
    struct iree_run x = {.run.options.id = -1};
    char text[320];
    CHECK_OK(iree_report(&x, view(&b), "command", XPL_IREE_JSONL), &x.err);
    CHECK_EQ(x.run.missing[XPL_IREE_MISSING_COMMAND_BUFFER], 4);
    CHECK(!xpl_iree_is_partial(&x.run));
    CHECK(xpl_iree_warning(&x.run, 0, text, sizeof text) && strstr(text, "4 events of command"));
    CHECK(memmem(x.out.p, x.out.n, "command_host_execution", 22));
    xpl_buf_fini(&x.out);
}

static void test_options(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load("task-mlp-all");
    static const struct {
        const char *report;
        bool dispatch_events, counter_samples;
        int64_t id;
        const char *why;
    } wrong[] = {{"summary", false, false, 1, "command 'summary' does not support --id"},
                 {"memory", true, false, -1, "command 'memory' does not support --dispatch_events"},
                 {"queue", true, false, -1, "--dispatch_events requires --format=jsonl"},
                 {"counter", false, true, -1, "--counter_samples requires --format=jsonl"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct iree_run x = {.run.options = {.id = wrong[i].id,
                                             .dispatch_events = wrong[i].dispatch_events,
                                             .counter_samples = wrong[i].counter_samples}};
        CHECK_EQ(iree_report(&x, view(&b), wrong[i].report, XPL_IREE_TEXT), XPL_INVALID_ARGUMENT);
        CHECK(strcmp(x.err.msg, wrong[i].why) == 0);
        xpl_buf_fini(&x.out);
    }
    // An empty filter differs from none: it matches everything, and appears in the rows.
    struct iree_run all = {.run.options.id = -1}, empty = all;
    empty.run.options.filter = XPL_STR("");
    CHECK_OK(iree_report(&all, view(&b), "queue", XPL_IREE_JSONL), &all.err);
    CHECK_OK(iree_report(&empty, view(&b), "queue", XPL_IREE_JSONL), &empty.err);
    CHECK_EQ(empty.out.n, all.out.n - 1);
    CHECK(memmem(all.out.p, all.out.n, "\"filter\":\"*\"", 12));
    CHECK(memmem(empty.out.p, empty.out.n, "\"filter\":\"\",", 12));
    xpl_buf_fini(&all.out);
    xpl_buf_fini(&empty.out);
    empty = (struct iree_run){.run.options = {.id = -1, .filter = XPL_STR("")}};
    CHECK_EQ(iree_report(&empty, view(&b), "summary", XPL_IREE_JSONL), XPL_INVALID_ARGUMENT);
    xpl_buf_fini(&empty.out);
}

// Every report gives a row a line, in both forms.
static void test_reports(void) {
    size_t n;
    const struct xpl_iree_report *const reports = xpl_iree_reports(&n);
    for (size_t k = 0; k < N_BUNDLES; k++) {
        struct xpl_buf b = load(bundles[k]);
        for (size_t i = 0; i < n; i++) {
            struct iree_run x = {.run.options.id = -1}, y = x;
            CHECK_OK(iree_report(&x, view(&b), reports[i].name, XPL_IREE_JSONL), &x.err);
            CHECK_OK(iree_report(&y, view(&b), reports[i].name, XPL_IREE_TEXT), &y.err);
            CHECK(count_lines(&x.out) >= count_lines(&y.out));
            CHECK(x.out.n == 0 || (x.out.p[0] == '{' && x.out.p[x.out.n - 2] == '}'));
            xpl_buf_fini(&x.out);
            xpl_buf_fini(&y.out);
        }
        xpl_buf_fini(&b);
    }
}

// An execution's time without its dispatches, which were summed up from the golden export by hand;
// executions of other submissions, and spans that overlap, are distinguished.
static void test_self(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = load("task-mlp-all");
    struct iree_run x = {.run.options = {.id = -1, .filter = XPL_STR("execute")}};
    CHECK_OK(iree_report(&x, view(&b), "self", XPL_IREE_JSONL), &x.err);
    CHECK_EQ(count_lines(&x.out), 1);
    static const char self[] = "\"total_ns\":309052,\"self_ns\":7187,";
    CHECK(memmem(x.out.p, x.out.n, self, sizeof self - 1));
    xpl_buf_fini(&x.out);
}

// ---- parts ----

static void test_clock(void) {
    struct xpl_iree_clock c = {0};
    struct xpl_iree_clock_correlation s = {.flags = 15,
                                           .sample_id = 1,
                                           .device_tick = 1000,
                                           .host_cpu_timestamp_ns = 5000,
                                           .host_time_begin_ns = 90,
                                           .host_time_end_ns = 110};
    int64_t ns;
    CHECK(!xpl_iree_clock_fit(NULL, XPL_IREE_TIME_HOST_CPU).valid);
    xpl_iree_clock_add(&c, &s);
    CHECK(!xpl_iree_clock_fit(&c, XPL_IREE_TIME_HOST_CPU).valid); // one sample has no rate
    s.sample_id = 2, s.device_tick = 2000, s.host_cpu_timestamp_ns = 5500;
    s.host_time_begin_ns = 1000, s.host_time_end_ns = 1200;
    xpl_iree_clock_add(&c, &s);
    struct xpl_iree_fit f = xpl_iree_clock_fit(&c, XPL_IREE_TIME_HOST_CPU);
    CHECK(f.valid && f.first_sample_id == 1 && f.last_sample_id == 2);
    CHECK(xpl_iree_fit_ticks(&f, 3, &ns) && ns == 2); // 1.5 is rounded up
    CHECK(xpl_iree_fit_time(&f, 2000, &ns) && ns == 5500);
    CHECK(xpl_iree_fit_time(&f, 0, &ns) && ns == 4500); // before the first sample
    CHECK(!xpl_iree_fit_ticks(&f, UINT64_MAX, &ns) && ns == 0);
    CHECK(fabs(xpl_iree_fit_hz(&f) - 2e9) < 1);
    f = xpl_iree_clock_fit(&c, XPL_IREE_TIME_BRACKET);
    CHECK(f.valid && f.first_ns == 100 && f.ns == 1000);
    CHECK(c.min_uncertainty_ns == 20 && c.max_uncertainty_ns == 200);
    s.host_time_begin_ns = INT64_MIN, s.host_time_end_ns = INT64_MAX - 9;
    xpl_iree_clock_add(&c, &s); // IREE's difference is of 64 bits
    CHECK(c.min_uncertainty_ns == -10 && c.max_uncertainty_ns == 200);
    s.flags |= XPL_IREE_CLOCK_UNALIGNED; // once is enough
    xpl_iree_clock_add(&c, &s);
    CHECK(!xpl_iree_clock_fit(&c, XPL_IREE_TIME_HOST_CPU).valid);
}

static void test_glob(void) {
    static const struct {
        const char *text, *glob;
        bool is;
    } rows[] = {{"", "", true},
                {"abc", "", true},
                {"abc", "*", true},
                {"abc", "abc", true},
                {"abc", "ab", false},
                {"abc", "a*c", true},
                {"abc", "a?c", true},
                {"ac", "a?c", false},
                {"aXbXc", "a*X?", true},
                {"mississippi", "m*iss*pi", true},
                {"mississippi", "m*iss*x", false},
                {"abc", "*c*", true},
                {"", "?", false},
                {"", "**", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_EQ(xpl_iree_glob(xpl_str_from(rows[i].text), xpl_str_from(rows[i].glob)), rows[i].is);
}

static void test_rows(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    struct xpl_iree_rows r = {.format = XPL_IREE_JSONL, .out = &out};
    xpl_buf_init(&out, 1000);
    xpl_row_begin(&r, "type", "t");
    xpl_row_u64(&r, "big", UINT64_MAX);
    xpl_row_i64(&r, "low", INT64_MIN);
    xpl_row_str(&r, "s", XPL_STR("a\xff\"\n"));
    xpl_row_fixed(&r, "f", 1e17, 3);
    xpl_row_double(&r, "nan", NAN);
    xpl_row_open(&r, "l", '[');
    xpl_row_u64(&r, NULL, 1);
    xpl_row_u64(&r, NULL, 2);
    xpl_row_close(&r, ']');
    xpl_row_end(&r);
    static const char json[] = "{\"type\":\"t\",\"big\":18446744073709551615,"
                               "\"low\":-9223372036854775808,\"s\":\"a\xef\xbf\xbd\\\"\\n\","
                               "\"f\":100000000000000000.000,\"nan\":null,\"l\":[1,2]}\n";
    CHECK(out.n == sizeof json - 1 && memcmp(out.p, json, out.n) == 0);
    out.n = 0;
    r.format = XPL_IREE_TEXT;
    xpl_row_begin(&r, "type", "t");
    xpl_row_text(&r, "word", "plain");
    xpl_row_text(&r, "two", "a b");
    xpl_row_end(&r);
    static const char text[] = "t: word=plain two=\"a b\"\n";
    CHECK(out.n == sizeof text - 1 && memcmp(out.p, text, out.n) == 0);
}

static void test_table(void) {
    struct row {
        uint64_t key, value;
    };
    XPL_AUTO(xpl_iree_table_fini)
    struct xpl_iree_table t = {.row_size = sizeof(struct row), .key_size = 8};
    bool is_new;
    for (uint64_t round = 0; round < 2; round++)
        for (uint64_t k = 0; k < 1000; k++) {
            const uint64_t key = k * 7919;
            struct row *const r = xpl_iree_table_put(&t, &key, &is_new);
            CHECK(r && is_new == (round == 0));
            r->value += k;
        }
    CHECK_EQ(t.n, 1000);
    for (uint64_t k = 0; k < 1000; k++) {
        const struct row *const r = xpl_iree_table_at(&t, k); // in the order of insertion
        CHECK(r->key == k * 7919 && r->value == 2 * k);
    }
    CHECK(!xpl_iree_table_get(&t, &(uint64_t){1}));
}

int main(void) {
    test_header();
    test_prefixes();
    test_unfinished();
    test_damaged_events();
    test_pages();
    test_dialects();
    test_missing();
    test_options();
    test_reports();
    test_self();
    test_clock();
    test_glob();
    test_rows();
    test_table();
    return 0;
}
