// SPDX-License-Identifier: Apache-2.0
// server/metrics: counts by tool and outcome, from many threads, and the log line of each request.
#include "server/metrics.h"

#include <pthread.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/check.h"

static const struct xpl_request_line *line_of(const char *tool, xpl_status_t code, uint64_t us) {
    static _Thread_local struct xpl_request_line l;
    l = (struct xpl_request_line){.service = "grpc",
                                  .tool = xpl_str_from(tool),
                                  .session = XPL_STR("run"),
                                  .code = code,
                                  .source = "",
                                  .micros = us};
    return &l;
}

enum { ROWS = XPL_METRICS_ROWS };
static struct xpl_metrics_row rows[ROWS];

static const struct xpl_metrics_row *find_row(size_t n, const char *tool, const char *code) {
    const struct xpl_metrics_row *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].tool, tool) != 0 || strcmp(rows[i].code, code) != 0) continue;
        CHECK(!found); // once
        found = &rows[i];
    }
    return found;
}

static void check_row(size_t n, const char *tool, const char *code, uint64_t count, uint64_t us) {
    const struct xpl_metrics_row *const r = find_row(n, tool, code);
    if (!r) FAIL_TEST(tool);
    CHECK_EQ(r->count, count);
    CHECK_EQ(r->micros, us);
}

static void test_rows(void) {
    struct xpl_metrics *const m = xpl_metrics_new();
    CHECK(m);
    CHECK_EQ(xpl_metrics_rows(m, rows, ROWS), 0);
    xpl_metrics_request(m, line_of("overview_page", XPL_OK, 5));
    xpl_metrics_request(m, line_of("overview_page", XPL_OK, 7));
    xpl_metrics_request(m, line_of("overview_page", XPL_NOT_FOUND, 1));
    xpl_metrics_request(m, line_of("op_stats", XPL_OK, 100));
    xpl_metrics_request(m, line_of("no_such_tool", XPL_INVALID_ARGUMENT, 2));
    xpl_metrics_request(m, line_of("", XPL_INVALID_ARGUMENT, 3)); // both are "other"
    xpl_metrics_request(m, line_of("kernel_stats", (xpl_status_t)99, 4));
    xpl_metrics_request(m, line_of("kernel_stats", XPL_UNAUTHENTICATED, 6));
    const size_t n = xpl_metrics_rows(m, rows, ROWS);
    CHECK_EQ(n, 6);
    check_row(n, "overview_page", "OK", 2, 12);
    check_row(n, "overview_page", "NOT_FOUND", 1, 1);
    check_row(n, "op_stats", "OK", 1, 100);
    check_row(n, "other", "INVALID_ARGUMENT", 2, 5);
    check_row(n, "kernel_stats", "UNKNOWN", 1, 4);
    check_row(n, "kernel_stats", "UNAUTHENTICATED", 1, 6);
    for (size_t max = 0; max < n; max++) { // never more than asked for
        memset(rows, 0, sizeof rows);
        CHECK_EQ(xpl_metrics_rows(m, rows, max), max);
        CHECK(!rows[max].tool);
    }
    xpl_metrics_free(m);
    xpl_metrics_free(NULL);
}

// Every tool has a separate row, under its name, also for requests by its alias; by tool.
static void test_every_tool(void) {
    struct xpl_metrics *const m = xpl_metrics_new();
    CHECK(m);
    size_t n_tools;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    CHECK(n_tools > 0 && 2 * n_tools < ROWS);
    for (size_t i = n_tools; i-- > 0;) {
        xpl_metrics_request(m, line_of(tools[i]->name, XPL_OK, i));
        if (tools[i]->aliases) xpl_metrics_request(m, line_of(tools[i]->aliases[0], XPL_OK, i));
    }
    CHECK_EQ(xpl_metrics_rows(m, rows, ROWS), n_tools);
    for (size_t i = 0; i < n_tools; i++) {
        const uint64_t asked = 1 + (tools[i]->aliases != NULL);
        CHECK_STR(rows[i].tool, tools[i]->name);
        CHECK_EQ(rows[i].count, asked);
        CHECK_EQ(rows[i].micros, asked * i);
    }
    xpl_metrics_free(m);
}

enum { THREADS = 4, EACH = 5000 };
static void *request_often(void *arg) {
    for (int i = 0; i < EACH; i++)
        xpl_metrics_request(arg, line_of(i % 2 ? "op_stats" : "op_profile", XPL_OK, 3));
    return NULL;
}

static void test_threads(void) {
    pthread_t threads[THREADS];
    struct xpl_metrics *const m = xpl_metrics_new();
    CHECK(m);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, request_often, m), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    const size_t n = xpl_metrics_rows(m, rows, ROWS);
    CHECK_EQ(n, 2);
    check_row(n, "op_stats", "OK", THREADS * EACH / 2, 3 * THREADS * EACH / 2);
    check_row(n, "op_profile", "OK", THREADS * EACH / 2, 3 * THREADS * EACH / 2);
    xpl_metrics_free(m);
}

// ---- log lines ----

// What xpl_metrics_request writes to stderr, from "level=" on; "" for nothing.
static const char *logged(const struct xpl_request_line *l) {
    static char text[4096];
    struct xpl_metrics *const m = xpl_metrics_new();
    int fds[2];
    CHECK(m && pipe(fds) == 0);
    const int kept = dup(STDERR_FILENO);
    CHECK(kept >= 0 && dup2(fds[1], STDERR_FILENO) >= 0);
    xpl_metrics_request(m, l);
    CHECK(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    (void)close(fds[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(fds[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    (void)close(fds[0]);
    xpl_metrics_free(m);
    const char *const level = strstr(text, "level=");
    CHECK(level || n == 0);
    return level ? level : text;
}

static void test_log(void) {
    CHECK(xpl_log_configure("info"));
    CHECK_EQ(XPL_N_STAGES, 5);
    const uint64_t stages[XPL_N_STAGES] = {1, 0, 300, 4, 0};
    struct xpl_request_line l = {.service = "xprof",
                                 .tool = XPL_STR("op_profile"),
                                 .session = XPL_STR("a run"),
                                 .code = XPL_OK,
                                 .source = "computed",
                                 .bytes = 1234,
                                 .micros = 567,
                                 .stage_us = stages};
    CHECK_STR(logged(&l), "level=info topic=request msg=request service=xprof tool=op_profile "
                          "session=\"a run\" hosts=ALL_HOSTS status=OK source=computed bytes=1234 "
                          "us=567 us_queue=1 us_convert=300 us_render=4\n");
    l = (struct xpl_request_line){.service = "grpc",
                                  .tool = XPL_STR("x\ny"),
                                  .session = XPL_STR("s"),
                                  .n_hosts = 1,
                                  .host = XPL_STR("h0"),
                                  .code = XPL_NOT_FOUND,
                                  .error = "no such \"tool\""};
    CHECK_STR(logged(&l), "level=warn topic=request msg=request service=grpc tool=\"x\\x0ay\" "
                          "session=s hosts=h0 status=NOT_FOUND bytes=0 us=0 "
                          "error=\"no such \\\"tool\\\"\"\n");
    l.traceparent = XPL_STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    CHECK(strstr(logged(&l), " trace_id=4bf92f3577b34da6a3ce929d0e0e4736 "
                             "parent_id=00f067aa0ba902b7\n"));
    l.traceparent = XPL_STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\n");
    CHECK(!strstr(logged(&l), "trace_id"));
    l.n_hosts = 3;
    l.code = XPL_INTERNAL; // ours to repair
    CHECK(strstr(logged(&l), "level=error ") && strstr(logged(&l), " hosts=3 "));
    l.code = XPL_CANCELLED; // not an error
    CHECK(strstr(logged(&l), "level=info "));
    l.code = (xpl_status_t)99;
    CHECK(strstr(logged(&l), "level=warn ") && strstr(logged(&l), "status=UNKNOWN"));
    CHECK(xpl_log_configure("warn"));
    l.code = XPL_OK;
    CHECK_STR(logged(&l), "");
    l.code = XPL_ABORTED;
    CHECK(strstr(logged(&l), "status=ABORTED"));
    CHECK(xpl_log_configure("info,request:error"));
    l.code = XPL_INTERNAL;
    CHECK(strstr(logged(&l), "level=error ")); // an error is one at every level
    l.code = XPL_ABORTED;
    CHECK_STR(logged(&l), "");
}

int main(void) {
    alarm(60);
    (void)unsetenv("JOURNAL_STREAM");
    CHECK(xpl_log_configure("error")); // only counts
    test_rows();
    test_every_tool();
    test_threads();
    test_log();
    return 0;
}
