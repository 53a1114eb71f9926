// SPDX-License-Identifier: Apache-2.0
// Rows of ireeperf-jsonl that no exporter writes: omissions, and limits.
#include <stdlib.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/ireeprof/ireeperf/ireeperf.h"
#include "tests/data_file.h"
#include "tests/iree_run.h"

#define SCHEMA           "{\"schema_version\":15,\"record_type\":\"schema\",\"format\":\"ireeperf-jsonl\"}\n"
#define ROW(type, index) "{\"record_type\":\"" type "\",\"source_record_index\":" #index
#define QUEUE(index)                                                                               \
    ROW("queue", index) ",\"physical_device_ordinal\":1,\"queue_ordinal\":2,\"stream_id\":3}\n"

static xpl_bytes_t bytes(const char *z) {
    return (xpl_bytes_t){(const uint8_t *)z, strlen(z)};
}

// The bundle of rows, which must be one; its export is in x->out.
static void made(const char *rows, struct iree_run *x, struct xpl_buf *out) {
    struct xpl_error err = {0};
    *x = (struct iree_run){.run.options = {.id = -1}};
    xpl_buf_init(out, (size_t)1 << 28);
    CHECK_OK(xpl_ireeperf_bundle(bytes(rows), NULL, out, &err), &err);
    CHECK_OK(iree_report(x, (xpl_bytes_t){out->p, out->n}, "export", XPL_IREE_JSONL), &x->err);
    xpl_buf_putc(&x->out, '\0');
    CHECK(x->bundle.from_rows && !x->out.failed);
}

// What becomes of rows: so many records, a text in their export, and the first note (NULL: none).
static void becomes(const char *rows, uint64_t records, const char *text, const char *note) {
    struct iree_run x;
    struct xpl_buf out;
    made(rows, &x, &out);
    CHECK_EQ(x.bundle.n_records, records);
    if (text && !strstr((const char *)x.out.p, text)) fprintf(stderr, "%s\n", (char *)x.out.p);
    CHECK(!text || strstr((const char *)x.out.p, text));
    if (note && !strstr(x.bundle.notes.kept[0].text, note))
        fprintf(stderr, "%s\n", x.bundle.notes.kept[0].text);
    CHECK(note ? strstr(x.bundle.notes.kept[0].text, note) != NULL : x.bundle.notes.n == 0);
    CHECK_EQ(xpl_iree_is_partial(&x.run), note != NULL);
    xpl_buf_fini(&out);
    xpl_buf_fini(&x.out);
}

static void refused(const char *rows, xpl_status_t code, const char *why) {
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1 << 20);
    CHECK_EQ(xpl_ireeperf_bundle(bytes(rows), NULL, &out, &err), code);
    CHECK(strstr(err.msg, why));
    CHECK_EQ(xpl_ireeperf_check(bytes(rows), &err), code);
}

static void test_schema(void) {
    becomes(SCHEMA, 0, "\"record_type\":\"schema\"", NULL);
    becomes("\n \n" SCHEMA "\n" QUEUE(0) "\n", 1, "\"stream_id\":3", NULL);
    refused("", XPL_DATA_LOSS, "the file is empty");
    refused("[]", XPL_DATA_LOSS, "not a JSON object");
    refused("{\"schema_version\":15", XPL_DATA_LOSS, "the first one is not the schema's");
    refused("{\"schema_version\":15,\"record_type\":\"queue\",\"source_record_index\":0}",
            XPL_DATA_LOSS, "the first one is not the schema's");
    refused("{\"schema_version\":14,\"record_type\":\"schema\"}", XPL_FAILED_PRECONDITION,
            "unsupported ireeperf-jsonl schema version 14; expected 15");
    CHECK(xpl_ireeperf_sniff(bytes(SCHEMA)) && !xpl_ireeperf_sniff(bytes("")));
    CHECK(!xpl_ireeperf_sniff(bytes("{\"schema_version\":15}")));
}

// Rows that cannot be read are left out; those beside them are not.
static void bad(const char *row, const char *why) {
    char text[4096];
    (void)snprintf(text, sizeof text, SCHEMA QUEUE(0) "%s\n" QUEUE(1), row);
    becomes(text, 2, "\"source_record_index\":1,\"physical_device_ordinal\":1", why);
}

static void test_bad_rows(void) {
    bad("nonsense", "not a JSON object");
    bad("{", "cut");
    bad("{\"record_type\":\"queue\"", "cut");
    bad("{\"record_type\":\"queue", "cut");
    bad("{\"record_type\":\"queue\"} {}", "text behind the value");
    bad("{\"record_type\":7}", "type, index or version is invalid");
    bad("{\"source_record_index\":0}", "the row has no type");
    bad("{\"record_type\":\"queue\",\"source_record_index\":-1}", "version is invalid");
    bad("{\"record_type\":\"queue\",\"source_record_index\":18446744073709551616}",
        "version is invalid");
    bad("{\"record_type\":\"telepathy\"}", "unknown type");
    bad("{\"record_type\":\"queue\",\"queue_ordinal\":4294967296}", "number is out of range");
    bad("{\"record_type\":\"queue\",\"queue_ordinal\":1.5}", "number is out of range");
    bad("{\"record_type\":\"queue\",\"queue_ordinal\":\"1\"}", "has the wrong type");
    bad("{\"record_type\":\"queue\",\"queue_ordinal\":}", "no value of JSON");
    bad("{\"record_type\":\"queue\",\"queue_ordinal\" 1}", "no colon behind a key");
    bad("{\"record_type\":\"queue\" \"queue_ordinal\":1}", "no comma between values");
    bad("{\"record_type\":\"executable_function\",\"workgroup_size\":[1,2]}", "has the wrong type");
    bad("{\"record_type\":\"executable_function\",\"workgroup_size\":[1,2,3,4]}",
        "has the wrong type");
    bad("{\"record_type\":\"executable\",\"code_object_hash\":\"12\"}", "has the wrong type");
    bad("{\"record_type\":\"session\",\"event\":\"middle\"}", "neither begins nor ends");
}

// A row whose end is wrong leaves an empty record behind.
static void test_bad_ends(void) {
    becomes(SCHEMA ROW("counter_set", 0) ",\"name\":\"a\\qb\"}\n" QUEUE(1), 2, NULL,
            "wrong escape");
    becomes(SCHEMA ROW("counter_sample", 0) ",\"values\":[1,-2]}\n" QUEUE(1), 2, NULL,
            "counter's value is not a number");
    becomes(SCHEMA ROW("device_metric_sample", 0) ",\"values\":[7]}\n" QUEUE(1), 2, NULL,
            "metric's value is not an object");
}

static void test_depth(void) {
    char row[4096] = "{\"record_type\":\"queue\",\"x\":";
    const size_t n = strlen(row);
    memset(row + n, '[', 2000);
    row[n + 2000] = '\0';
    bad(row, "too deep");
    becomes(SCHEMA ROW("queue", 0) ",\"x\":[[{\"y\":[{}]}],null],\"stream_id\":9}\n", 1,
            "\"stream_id\":9", NULL);
}

static void test_values(void) {
    becomes(SCHEMA ROW("counter_set", 0) "}\n", 1, "\"name\":\"\"", NULL);
    becomes(SCHEMA ROW("counter_set", 0) ",\"name\":\"a\\u00e9\\ud83d\\ude00\\n\\/\\\"\"}\n", 1,
            "\"name\":\"a\xc3\xa9\xf0\x9f\x98\x80\\n/\\\"\"", NULL);
    becomes(SCHEMA ROW("counter_set", 0) ",\"name\":\"\\ud83d-\"}\n", 1,
            "\"name\":\"\xef\xbf\xbd-\"", NULL);
    becomes(SCHEMA ROW("counter_set", 0) ",\"name\":\"\xff\"}\n", 1, "\"name\":\"\xef\xbf\xbd\"",
            NULL);
    // As IREE's export writes a value that is not a number.
    becomes(SCHEMA ROW("device_metric_sample", 0) ",\"values\":[{\"metric_id\":5,\"value\":nan,"
                                                  "\"value_bits\":18446744073709551615}]}\n",
            1, "\"metric_id\":5", NULL);
    becomes(SCHEMA ROW("clock_correlation", 0) ",\"host_time_begin_ns\":-9223372036854775808,"
                                               "\"device_tick\":18446744073709551615}\n",
            1, "\"host_time_begin_ns\":-9223372036854775808", NULL);
    becomes(SCHEMA ROW("command_buffer", 0) ",\"command_buffer_id\":1}\n" ROW(
                "command_operation",
                1) ",\"command_buffer_id\":1,\"op\":\"dance\""
                   ",\"block_ordinal\":4294967295,\"block_command_ordinal\":4294967295"
                   ",\"target_block_ordinal\":4294967295,\"alternate_block_ordinal\":4294967295}\n",
            2, "\"op\":\"unknown\"", NULL);
}

static void test_records(void) {
    // Rows of one number are one record, of dispatches when they ran at one place.
    becomes(SCHEMA QUEUE(0) QUEUE(0) QUEUE(1), 2, NULL, NULL);
    becomes(SCHEMA ROW("dispatch_event", 0) ",\"stream_id\":1}\n" ROW("dispatch_event",
                                                                      0) ",\"stream_id\":2}\n",
            2, "\"stream_id\":2", NULL);
    // Numbers that are skipped are records without rows, up to a bound.
    becomes(SCHEMA QUEUE(5), 6, "\"source_record_index\":5", NULL);
    becomes(SCHEMA QUEUE(18446744073709551615) QUEUE(3) QUEUE(2), 3, NULL, NULL);
    becomes(SCHEMA QUEUE(4096) QUEUE(4100), 4098, "\"source_record_index\":4097", NULL);
    becomes(SCHEMA ROW(
                "diagnostic",
                0) ",\"category\":\"truncated_chunk\",\"content_type\":"
                   "\"application/vnd.iree.hal.profile.queues\",\"dropped_records\":4}\n" QUEUE(0),
            1, "\"dropped_records\":4", NULL);
    becomes(SCHEMA QUEUE(0) SCHEMA QUEUE(1), 1, NULL, "rows of another bundle");
    becomes(SCHEMA QUEUE(0) ROW(
                "diagnostic",
                1) ",\"severity\":\"error\",\"category\":\"bundle\",\"message\":\"it was cut\"}\n",
            1, NULL, "it was cut");
}

static void test_trace(void) {
    struct iree_run x;
    struct xpl_buf out;
    struct xpl_error err = {0};
    xpl_bytes_t trace;
    made(SCHEMA ROW("executable_trace", 0) ",\"trace_id\":4,\"data_length\":99}\n", &x, &out);
    CHECK(strstr((const char *)x.out.p, "\"data_length\":99") && x.bundle.notes.n == 0);
    CHECK_EQ(xpl_iree_trace_bytes(&x.bundle, 4, &trace, &err), XPL_FAILED_PRECONDITION);
    CHECK(strstr(err.msg, "do not have the bytes"));
    xpl_buf_fini(&out);
    xpl_buf_fini(&x.out);
}

// Every prefix of a real export is read up to its end.
static void test_prefixes(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf file = read_data_file("iree/task-mlp-all.ireeprof");
    struct iree_run x = {.run.options = {.id = -1}};
    CHECK_OK(iree_report(&x, (xpl_bytes_t){file.p, file.n}, "export", XPL_IREE_JSONL), &x.err);
    uint64_t most = 0;
    const size_t first = (size_t)((uint8_t *)memchr(x.out.p, '\n', x.out.n) - x.out.p);
    const size_t whole = x.out.n;
    for (size_t n = 0, next = 0; next <= whole; next += n < first ? 1 : 37) {
        n = next + 37 > whole ? whole : next;
        struct xpl_iree_bundle bundle;
        struct xpl_error err = {0};
        struct xpl_buf out;
        uint8_t *const exact = malloc(n + 1);
        CHECK(exact);
        memcpy(exact, x.out.p, n);
        xpl_buf_init(&out, 1 << 28);
        const xpl_status_t st = xpl_ireeperf_bundle((xpl_bytes_t){exact, n}, NULL, &out, &err);
        CHECK_EQ(st, n < first ? XPL_DATA_LOSS : XPL_OK);
        if (st == XPL_OK) {
            CHECK_OK(xpl_iree_open((xpl_bytes_t){out.p, out.n}, false, &bundle, &err), &err);
            CHECK(bundle.n_records >= most && bundle.notes.n <= 1);
            most = bundle.n_records;
        }
        xpl_buf_fini(&out);
        free(exact);
    }
    CHECK_EQ(most, x.bundle.n_records);
    xpl_buf_fini(&x.out);
}

static void test_format(void) {
    const struct xpl_format_limits roomy = {.max_bytes = 1 << 20}, tight = {.max_bytes = 3000};
    struct xpl_profile p = {0};
    struct xpl_error err = {0};
    const char *const rows = SCHEMA QUEUE(0) QUEUE(1);
    CHECK_OK(xpl_profile_open(XPL_STR("a.ireeperf.jsonl"), bytes(rows), &roomy, &p, &err), &err);
    CHECK(p.owned && xpl_iree_sniff(p.bytes));
    xpl_profile_close(&p);
    CHECK_OK(xpl_profile_open(XPL_STR("rows"), bytes(rows), &roomy, &p, &err), &err);
    xpl_profile_close(&p);
    CHECK_OK(xpl_profile_open_as(XPL_FORM_XSPACE, XPL_STR("a.ireeperf.jsonl"), bytes(rows), &roomy,
                                 &p, &err),
             &err);
    xpl_profile_close(&p);
    CHECK_EQ(xpl_profile_open(XPL_STR("a.ireeperf.jsonl"), bytes(rows), &tight, &p, &err),
             XPL_RESOURCE_EXHAUSTED);
    CHECK_OK(xpl_profile_open(XPL_STR("a.ireeprof"), bytes(rows), &roomy, &p, &err), &err);
    CHECK_OK(xpl_profile_check_name(&p, XPL_STR("a.ireeprof"), &err), &err);
    xpl_profile_close(&p);
}

int main(void) {
    test_schema();
    test_bad_rows();
    test_bad_ends();
    test_depth();
    test_values();
    test_records();
    test_trace();
    test_prefixes();
    test_format();
    return 0;
}
