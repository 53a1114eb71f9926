// SPDX-License-Identifier: Apache-2.0
// Tool inference_profile: the tables of known profiles, in the order of each column, and the names
// of models. test_inference.c checks the sums of requests and batches.
#include <jansson.h>

#include "tests/unit/inference/serving_profile.h"
#include "tests/unit/tools/ask_tool.h"

enum { LIMIT = 1 << 26 };

// The answer of one profile, which is freed.
static json_t *ask(struct xpl_buf space, const char *key, const char *value) {
    struct xpl_error err;
    struct xpl_buf out;
    CHECK_OK(ask_tool(&(struct tool_request){.tool = "inference_profile",
                                             .key = key,
                                             .value = value,
                                             .spaces = &space,
                                             .n = 1,
                                             .limit = LIMIT},
                      &out, &err),
             &err);
    json_t *const ret = json_loadb((const char *)out.p, out.n, 0, NULL);
    CHECK(ret);
    xpl_buf_fini(&out);
    xpl_buf_fini(&space);
    return ret;
}

static size_t rows_of(const json_t *table) {
    return json_array_size(json_object_get(table, "rows"));
}

static json_t *cell(const json_t *table, size_t row, const char *column) {
    const json_t *const cols = json_object_get(table, "cols");
    for (size_t i = 0; i < json_array_size(cols); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(cols, i), "id")), column) == 0)
            return json_object_get(
                json_array_get(
                    json_object_get(json_array_get(json_object_get(table, "rows"), row), "c"), i),
                "v");
    FAIL_TEST(column);
    return NULL;
}
static double number(const json_t *table, size_t row, const char *column) {
    return json_number_value(cell(table, row, column));
}
static xpl_str_t text(const json_t *table, size_t row, const char *column) {
    return xpl_str_from(json_string_value(cell(table, row, column)));
}
static xpl_str_t property(const json_t *table, const char *name) {
    return xpl_str_from(json_string_value(json_object_get(json_object_get(table, "p"), name)));
}

// Six requests in three batches of eight, of one model.
static void test_tables(void) {
    json_t *const all = ask(serving_batches(3, 8, "m:1"), "request_column", "Latency");
    CHECK_EQ(json_array_size(all), 4);
    const json_t *const models = json_array_get(all, 0), *const requests = json_array_get(all, 1),
                        *const batches = json_array_get(all, 2),
                        *const tensors = json_array_get(all, 3);
    CHECK_EQ(rows_of(models), 1);
    CHECK_STR(text(models, 0, "model_name"), "m:1");
    CHECK_STR(property(models, "hasBatching"), "true");
    // All requests, those of batches of one size together, and all together: of 27 and 32 ms.
    CHECK_EQ(rows_of(requests), 8);
    CHECK_STR(text(requests, 0, "percentile"), "0.000");
    CHECK_STR(text(requests, 3, "percentile"), "50.000");
    CHECK_REAL(number(requests, 2, "latency_ms"), 27.0, 1e-9);
    CHECK_REAL(number(requests, 3, "latency_ms"), 32.0, 1e-9);
    CHECK_STR(text(requests, 3, "throughput"), "N/A");
    CHECK_STR(text(requests, 6, "percentile"), "Batch size 8");
    CHECK_STR(text(requests, 7, "percentile"), "Average");
    for (size_t row = 6; row < 8; row++) {
        CHECK_REAL(number(requests, row, "latency_ms"), 29.5, 1e-9);
        CHECK_REAL(number(requests, row, "host_runtime"), 1.0, 1e-9);
        CHECK_REAL(number(requests, row, "device_compute"), 4.0, 1e-9);
        CHECK_REAL(number(requests, row, "host_postprocess"), 10.0, 1e-9);
    }
    CHECK_STR(property(requests, "averageLatencyMs"), "29.500");
    // Batches of 20 ms, of which 7, 6 and 5 eighths are not padding; parameters of the server.
    CHECK_EQ(rows_of(batches), 5);
    CHECK_REAL(number(batches, 0, "latency"), 20.0, 1e-9);
    CHECK_STR(text(batches, 0, "program_id"), "7");
    CHECK_STR(text(batches, 3, "percentile"), "Batch size 8");
    CHECK_STR(text(batches, 3, "program_id"), "7");
    CHECK_STR(text(batches, 4, "percentile"), "Aggregated");
    CHECK_STR(text(batches, 4, "program_id"), "N/A");
    CHECK_REAL(number(batches, 4, "batching_efficiency"), 0.75, 1e-9);
    CHECK_STR(property(batches, "hasBatchingParam"), "true");
    CHECK_STR(property(batches, "batchingParamMaxBatchSize"), "8");
    CHECK_STR(property(batches, "batchingParamAllowedBatchSizes"), "4,8");
    // One pattern, of which a batch spends 2, 3 or 4 ms.
    CHECK_EQ(rows_of(tensors), 1);
    CHECK_STR(text(tensors, 0, "tensor_pattern"),
              "Delinearize [2,3] {1,0}<br>Linearize [2,3] {1,0}");
    CHECK_REAL(number(tensors, 0, "count"), 3.0, 0);
    CHECK_STR(text(tensors, 0, "percentile"),
              "50.00%: 3.000000ms<br>75.00%: 4.000000ms<br>90.00%: 4.000000ms<br>"
              "95.00%: 4.000000ms<br>99.00%: 4.000000ms<br>99.90%: 4.000000ms");
    json_decref(all);
}

// The first `n` rows by a column are in its order, the least first, and begin and end so.
static void in_order(const json_t *table, size_t n, const char *column, double first, double last) {
    CHECK_REAL(number(table, 0, column), first, 1e-9);
    CHECK_REAL(number(table, n - 1, column), last, 1e-9);
    for (size_t i = 1; i < n; i++)
        CHECK(number(table, i - 1, column) <= number(table, i, column));
}

static void test_columns(void) {
    static const struct {
        const char *value, *column;
        double first, last;
        bool runs;
    } requests[] = {
        {"Request delay for batching", "host_batch_formation", 7, 12, false},
        {"Host batch formation", "host_batch_formation", 7, 12, false}, // as long here
        {"Request size", "batching_request_size", 3, 4, false},
        {"Host preprocess", "host_preprocessing", 4, 4, false},
        {"Host runtime", "host_runtime", 1, 1, false},
        {"Device compute", "device_compute", 4, 4, false},
        {"Host postprocess", "host_postprocess", 10, 10, false},
        {"Idle time", "idle time", 1, 1, false},
        {"Data transfer H2D", "data_transfer_h2d", 1 / 8.0, 5 / 8.0, true},
        {"Data transfer D2H", "data_transfer_d2h", 1 / 8.0, 7 / 8.0, true},
        {"Latency", "latency_ms", 10, 29, true},
    };
    static const struct {
        const char *value, *column;
        double first, last;
    } batches[] = {
        {"Latency", "latency", 20, 20},
        {"Batching delay", "batching_delay_us", 12, 12},
        {"Padding amount", "padding_amount", 1, 3},
        {"Batch size after padding", "batch_size_after_padding", 8, 8},
        {"Batching efficiency", "batching_efficiency", 5 / 8.0, 7 / 8.0},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        const bool runs = requests[i].runs;
        json_t *const all = ask(runs ? serving_runs(20, "m") : serving_batches(3, 8, "m:1"),
                                "request_column", requests[i].value);
        CHECK_EQ(json_array_size(all), runs ? 2 : 4);
        in_order(json_array_get(all, 1), runs ? 20 : 6, requests[i].column, requests[i].first,
                 requests[i].last);
        json_decref(all);
    }
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        json_t *const all = ask(serving_batches(3, 8, "m:1"), "batch_column", batches[i].value);
        in_order(json_array_get(all, 2), 3, batches[i].column, batches[i].first, batches[i].last);
        json_decref(all);
    }
}

static void add_run(struct mk_plane *p, struct xpl_buf *line, const char *name, int i, uint32_t num,
                    const void *value, size_t n) {
    struct xpl_buf run = serving_root(p, name, 100 * i + 1, 10, 1, i), s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, "model_id"));
    mk_varint(&s, num);
    if ((num & 7) == 2) mk_varint(&s, n);
    xpl_buf_put(&s, value, n);
    mk_close(&run, 4, &s);
    mk_event_end(line, &run);
}

// A model is named by any statistic, which is shown as a text; models are listed by their names.
// Where the server runs a model by itself, those are its requests, and sessions are not.
static void check_names(const char *runs, bool sessions) {
    static const char *const names[] = {"-5", "1.5", "7", "<opaque bytes>", "m"};
    const double real = 1.5;
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(1, "/host:CPU");
    struct xpl_buf line = mk_line(1, "requests");
    add_run(&p, &line, runs, 0, 5 << 3 | 2, "m", 1);
    add_run(&p, &line, runs, 1, 3 << 3, "\x07", 1);
    add_run(&p, &line, runs, 2, 2 << 3 | 1, &real, sizeof real);
    add_run(&p, &line, runs, 3, 6 << 3 | 2, "\xff", 1);
    add_run(&p, &line, runs, 4, 4 << 3, "\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    if (sessions) add_run(&p, &line, "SessionRun", 5, 5 << 3 | 2, "session", 7);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    json_t *const all = ask(space, "batch_column", "Latency");
    CHECK_EQ(rows_of(json_array_get(all, 0)), 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(text(json_array_get(all, 0), i, "model_name"), names[i]);
        CHECK_EQ(rows_of(json_array_get(all, i + 1)), 2); // its request, and the average
    }
    json_decref(all);
}

int main(void) {
    test_tables();
    test_columns();
    check_names("SessionRun", false);
    check_names("TfrtModelRun", true);
    check_names("ServingModelRun", true);
    return 0;
}
