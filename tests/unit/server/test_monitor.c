// SPDX-License-Identifier: Apache-2.0
// server/monitor: the table of metrics, and its text.
#include "base/cleanup.h"
#include "base/log.h"
#include "server/metrics.h"
#include "server/monitor/figures.h"
#include "server/monitor/table.h"
#include "server/monitor/text.h"
#include "tests/check.h"

// Names as Prometheus has them, a counter's ending with _total; rows of one name side by side, and
// only the first with help, which is one line without what the text format escapes.
static void test_table(void) {
    for (size_t i = 0; i < xpl_n_metrics; i++) {
        const struct xpl_metric *const m = &xpl_metric_table[i];
        const size_t n = strlen(m->name);
        bool seen = false;
        CHECK_EQ(strspn(m->name, "abcdefghijklmnopqrstuvwxyz_"), n);
        for (size_t k = 0; k < i; k++)
            seen |= strcmp(xpl_metric_table[k].name, m->name) == 0;
        CHECK_EQ(seen, m->help == NULL);
        if (seen) CHECK_STR(xpl_metric_table[i - 1].name, m->name);
        const bool total = n > 6 && strcmp(m->name + n - 6, "_total") == 0;
        if (m->help && total != (m->type == XPL_METRIC_COUNTER)) FAIL_TEST(m->name);
        if (m->help) {
            CHECK(m->help[0] && m->help[strlen(m->help) - 1] != '.' && !strpbrk(m->help, "\\\n|"));
        }
        if (m->source != XPL_METRIC_FIGURE && m->source != XPL_METRIC_FLEET) continue;
        CHECK(m->width == 4 || m->width == 8);
        CHECK(m->offset + m->width <= sizeof(struct xpl_figures) && m->per > 0);
        for (size_t k = 0; k < i; k++) // every row reads a separate value
            if (xpl_metric_table[k].source == m->source)
                CHECK(xpl_metric_table[k].offset != m->offset);
    }
}

static const char *text_of(struct xpl_buf *b, const struct xpl_figures *f, struct xpl_metrics *m) {
    xpl_buf_init(b, 1 << 20);
    xpl_metrics_put_text(b, f, m);
    xpl_buf_putc(b, 0);
    CHECK(!b->failed);
    return (const char *)b->p;
}

static void expect(const char *text, const char *lines) {
    if (strstr(text, lines)) return;
    (void)fprintf(stderr, "%s\nmissing:\n%s\n", text, lines);
    FAIL_TEST("text");
}

// While the database is away the state of daemons is unknown: old figures would be wrong.
static void test_fleet(void) {
    struct xpl_metrics *const m = xpl_metrics_new();
    struct xpl_figures f = {.knows_fleet = true,
                            .jobs = {.leases = 4,
                                     .fleet = {.queued = 3,
                                               .schedules = 2,
                                               .leases = {[XPL_JOB_LEASE_SCANNER] = 1},
                                               .held = {[XPL_JOB_LEASE_CAPTURE] = 5}}}};
    CHECK(m);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b, away;
    const char *text = text_of(&b, &f, m);
    expect(text, "\nxplaned_fleet_jobs{state=\"queued\"} 3\n");
    expect(text, "\nxplaned_fleet_schedules 2\n");
    expect(text, "\nxplaned_fleet_leases{on=\"scanner\"} 1\n");
    expect(text, "\nxplaned_leases{on=\"capture\"} 5\n");
    f.knows_fleet = false;
    text = text_of(&away, &f, m);
    CHECK(!strstr(text, "\nxplaned_fleet_") && !strstr(text, "\nxplaned_leases"));
    expect(text, "\nxplaned_job_leases 4\n"); // it knows by itself
    xpl_metrics_free(m);
}

static void test_figures(void) {
    struct xpl_metrics *const m = xpl_metrics_new();
    CHECK(m);
    struct xpl_figures f = {.server = {.process = {.cpu_us = 1500000, .anonymous_bytes = 7},
                                       .started_unix_ns = 1700000000123456000,
                                       .pool = {.workers = 3}},
                            .store_writable = 1};
    f.server.rpc.open = UINT32_MAX;
    f.http.requests = 1ull << 40;
    f.http.replies[0][100] = 3; // GET, 200
    f.http.replies[3][305] = 1;
    f.connections = (struct xpl_rpc_connections_stats){.open = 5, .refused_address = 6};
    f.guarded[XPL_RPC_GUARD_RESETS] = 8;
    f.captures.ended[XPL_CAPTURED_SOME] = 2;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    const char *const text = text_of(&b, &f, m);
    expect(text, "# HELP process_cpu_seconds_total CPU time used, user and system.\n"
                 "# TYPE process_cpu_seconds_total counter\n"
                 "process_cpu_seconds_total 1.500000\n");
    expect(text, "\nprocess_start_time_seconds 1700000000.123456\n");
    expect(text, "\nxplaned_workers{state=\"busy\"} 0\nxplaned_workers{state=\"all\"} 3\n");
    expect(text, "\nxplaned_streams{protocol=\"grpc\"} 4294967295\n");
    expect(text, "\nxplaned_calls_begun_total{protocol=\"http\"} 1099511627776\n");
    expect(text, "# TYPE xplaned_calls_total counter\n"
                 "xplaned_calls_total{protocol=\"http\",method=\"GET\",code=\"200\"} 3\n"
                 "xplaned_calls_total{protocol=\"http\",method=\"other\",code=\"405\"} 1\n# HELP");
    expect(text, "\nxplaned_memory_bytes{owner=\"anonymous\"} 7\n");
    expect(text, "\nxplaned_captures_total{outcome=\"partial\"} 2\n");
    expect(text, "\nxplaned_connections{protocol=\"grpc\"} 5\n");
    expect(text, "\nxplaned_refusals_total{protocol=\"grpc\",cause=\"address\"} 6\n");
    expect(text, "\nxplaned_connections_closed_total{protocol=\"grpc\",cause=\"resets\"} 8\n");
    CHECK(!strstr(text, "_bucket")); // no requests yet
    xpl_metrics_free(m);
}

static void request(struct xpl_metrics *m, const char *tool, xpl_status_t code, uint64_t us,
                    const uint64_t *stages) {
    xpl_metrics_request(m, &(struct xpl_request_line){.service = "http",
                                                      .tool = xpl_str_from(tool),
                                                      .session = XPL_STR("s"),
                                                      .code = code,
                                                      .micros = us,
                                                      .stage_us = stages});
}

static void test_histograms(void) {
    struct xpl_metrics *const m = xpl_metrics_new();
    CHECK(m);
    const uint64_t stages[XPL_N_STAGES] = {11, 0, 400000000, 0, 0};
    request(m, "op_profile", XPL_OK, 10, NULL); // a bound belongs to its bucket
    request(m, "op_profile", XPL_OK, 11, NULL);
    request(m, "op_profile", XPL_NOT_FOUND, 400000011, stages);
    request(m, "\"}\n", XPL_INVALID_ARGUMENT, 1, NULL); // names of clients are not labels
    struct xpl_figures f = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    const char *const text = text_of(&b, &f, m);
    expect(text, "\nxplaned_requests_total{tool=\"op_profile\",code=\"OK\"} 2\n");
    expect(text, "\nxplaned_requests_total{tool=\"other\",code=\"INVALID_ARGUMENT\"} 1\n");
    expect(text, "# TYPE xplaned_request_duration_seconds histogram\n"
                 "xplaned_request_duration_seconds_bucket{tool=\"op_profile\",le=\"1e-05\"} 1\n"
                 "xplaned_request_duration_seconds_bucket{tool=\"op_profile\",le=\"2.5e-05\"} 2\n");
    expect(text, "xplaned_request_duration_seconds_bucket{tool=\"op_profile\",le=\"300\"} 2\n"
                 "xplaned_request_duration_seconds_bucket{tool=\"op_profile\",le=\"+Inf\"} 3\n"
                 "xplaned_request_duration_seconds_sum{tool=\"op_profile\"} 400.000032\n"
                 "xplaned_request_duration_seconds_count{tool=\"op_profile\"} 3\n");
    expect(text, "xplaned_request_stage_duration_seconds_sum{tool=\"op_profile\","
                 "stage=\"convert\"} 400.000000\n"
                 "xplaned_request_stage_duration_seconds_count{tool=\"op_profile\","
                 "stage=\"convert\"} 1\n");
    CHECK(!strstr(text, "stage=\"render\"")); // not reached
    xpl_metrics_free(m);
}

// Labels: unknown ones are left out; numbers keep their digits.
static void test_labels(void) {
    struct xpl_metrics *const m = xpl_metrics_new();
    CHECK(m);
    const struct xpl_newest_row rows[] = {
        {.label = "a/b", .n_sessions = 2, .captured_ms = 1700000000123},
        {.label = "v1",
         .n_sessions = 1,
         .captured_ms = 1,
         .is_known = true,
         .step_s = 1.25e-7,
         .peak_bytes = 12345678901,
         .utilization = -1,
         .times = {{"compute", 0.5}, {"input", 0}},
         .n_times = 2}};
    const struct xpl_figures f = {.newest = rows, .n_newest = 2};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    const char *const text = text_of(&b, &f, m);
    expect(text, "# TYPE xplaned_label_sessions gauge\n"
                 "xplaned_label_sessions{label=\"a/b\"} 2\n"
                 "xplaned_label_sessions{label=\"v1\"} 1\n# HELP");
    expect(text, "\nxplaned_label_newest_captured_timestamp_seconds{label=\"a/b\"} "
                 "1700000000.123\n");
    expect(text, "gauge\nxplaned_label_newest_step_seconds{label=\"v1\"} 1.25e-07\n# HELP");
    expect(text, "\nxplaned_label_newest_time_seconds{label=\"v1\",cause=\"compute\"} 0.5\n"
                 "xplaned_label_newest_time_seconds{label=\"v1\",cause=\"input\"} 0\n# HELP");
    expect(text, "\nxplaned_label_newest_peak_memory_bytes{label=\"v1\"} 12345678901\n");
    CHECK(!strstr(text, "\nxplaned_label_newest_utilization_ratio{"));
    xpl_metrics_free(m);
}

int main(void) {
    CHECK(xpl_log_configure("error"));
    test_table();
    test_fleet();
    test_figures();
    test_histograms();
    test_labels();
    return 0;
}
