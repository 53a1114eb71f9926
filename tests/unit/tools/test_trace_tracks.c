// SPDX-License-Identifier: Apache-2.0
// Which tracks trace_sums and trace_search mean: processes and their threads; and what
// trace_overlap finds on them.
#include "tests/unit/tools/ask_tool.h"
#include "tests/xspace_maker.h"

enum { LIMIT = 1 << 26, US = 1000000 };
static struct xpl_error err;

// Events of one name on each of two lines of a GPU, and of one line of another.  trace_viewer@
// shows them as rows 1 and 8 of process 1002, and row 1 of process 1004.
static struct xpl_buf profile(void) {
    static const char *const names[] = {"alpha", "beta", "gamma"};
    struct xpl_buf space = mk_open();
    for (int i = 0; i < 3; i++) {
        struct mk_plane p;
        if (i == 1) continue;
        mk_plane_begin(&p, i + 1, i ? "/device:GPU:1" : "/device:GPU:0");
        for (int k = i; k < (i ? 3 : 2); k++) {
            struct xpl_buf line = mk_line(k + 1, "Stream #1(Compute)");
            mk_plain(&p, &line, names[k], 0, 1000000);
            mk_line_end(&p, &line);
        }
        mk_plane_end(&p, &space);
    }
    return space;
}

static xpl_status_t ask(const struct xpl_buf *space, const char *tracks, struct xpl_buf *out) {
    return ask_tool(&(struct tool_request){.tool = "trace_sums",
                                           .key = "tracks",
                                           .value = tracks,
                                           .spaces = space,
                                           .n = 1,
                                           .limit = LIMIT},
                    out, &err);
}

static void finds(const struct xpl_buf *space, const char *tracks, bool alpha, bool beta,
                  bool gamma) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_OK(ask(space, tracks, &out), &err);
    const xpl_str_t text = {(const char *)out.p, out.n};
    CHECK_EQ(xpl_str_has(text, XPL_STR("\"alpha\"")), alpha);
    CHECK_EQ(xpl_str_has(text, XPL_STR("\"beta\"")), beta);
    CHECK_EQ(xpl_str_has(text, XPL_STR("\"gamma\"")), gamma);
}

static void refuses(const struct xpl_buf *space, const char *tracks, const char *text) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    CHECK_STATUS(ask(space, tracks, &out), XPL_INVALID_ARGUMENT, &err);
    CHECK_STR(xpl_str_from(err.msg), text);
}

// ---- how much of collectives, copies and asynchronous ops compute hides ----

struct op {
    int line;
    const char *name;
    int begin_us, us;
};

static void add_device(struct xpl_buf *space, int id, const char *name, const char *const *lines,
                       int n_lines, const struct op *ops, size_t n) {
    struct mk_plane p;
    mk_plane_begin(&p, id, name);
    for (int l = 0; l < n_lines; l++) {
        struct xpl_buf line = mk_line(l + 1, lines[l]);
        for (size_t i = 0; i < n; i++)
            if (ops[i].line == l)
                mk_plain(&p, &line, ops[i].name, (int64_t)ops[i].begin_us * US,
                         (int64_t)ops[i].us * US);
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, space);
}

// Two GPUs: on the first, compute hides 30 of 50 µs of a collective, which two kernels share, and
// nothing of a copy; on the second, of which a copy is all hidden, compute of the first hides none.
static struct xpl_buf gpus(void) {
    static const char *const lines[] = {"Stream #1(Compute)", "Stream #2(MemcpyH2D)", "XLA Ops"};
    static const struct op first[] = {
        {0, "gemm", 0, 40},        {1, "ncclDevKernel_AllReduce", 10, 40},
        {1, "nccl_send", 50, 10},  {1, "MemcpyH2D", 70, 20},
        {2, "MemcpyH2D", 200, 50}, // a row of what the streams do, at another level
        {0, "while", 70, 20},
    };
    static const struct op second[] = {
        {0, "gemm", 60, 20}, {1, "MemcpyD2H", 65, 10}, {1, "MemcpyD2D", 10, 10}};
    struct xpl_buf space = mk_open();
    add_device(&space, 1, "/device:GPU:0", lines, 3, first, 6);
    add_device(&space, 2, "/device:GPU:1", lines, 3, second, 3);
    return space;
}

// A TPU with a line of asynchronous ops.
static struct xpl_buf tpu(void) {
    static const char *const lines[] = {"XLA Ops", "Async XLA Ops"};
    static const struct op ops[] = {{0, "fusion.1", 0, 100},
                                    {1, "all-gather-start.1", 20, 30},
                                    {1, "slice-start.3", 90, 20},
                                    {0, "copy-done.2", 100, 10}};
    struct xpl_buf space = mk_open();
    add_device(&space, 1, "/device:TPU:0", lines, 2, ops, 4);
    return space;
}

static void overlaps(const struct xpl_buf *space, const char *tracks, const char *end_ms,
                     const char *rows) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out;
    const struct tool_request q = {.tool = "trace_overlap",
                                   .key = "tracks",
                                   .value = tracks,
                                   .spaces = space,
                                   .n = 1,
                                   .limit = LIMIT,
                                   .more = {{"end_time_ms", end_ms}}};
    CHECK_OK(ask_tool(&q, &out, &err), &err);
    const xpl_str_t text = {(const char *)out.p, out.n};
    const size_t at = xpl_str_find(text, XPL_STR("\"rows\":"), 0);
    CHECK_STR(xpl_str_sub(text, at, text.len - at), rows);
}

#define ROW(kind, devices, time, overlapped, exposed, share)                                       \
    "{\"c\":[{\"v\":\"" kind "\"},{\"v\":" #devices ".0},{\"v\":" #time "},{\"v\":" #overlapped    \
    "},{\"v\":" #exposed "},{\"v\":" #share "}]}"
#define ROWS(list) "\"rows\":[" list "]}"
#define HOST       "copies between host and device"
#define DEVICE     "copies on devices"

static void test_overlap(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf g = gpus(), t = tpu();
    overlaps(&g, "", "0",
             ROWS(ROW("collectives", 1, 50.0, 30.0, 20.0,
                      0.6) "," ROW(HOST, 2, 30.0, 10.0, 20.0,
                                   0.3333333333333333) "," ROW(DEVICE, 1, 10.0, 0.0, 10.0, 0.0)));
    // Of the first GPU.
    overlaps(
        &g, "1002", "0",
        ROWS(ROW("collectives", 1, 50.0, 30.0, 20.0, 0.6) "," ROW(HOST, 1, 20.0, 0.0, 20.0, 0.0)));
    // Of a stream, whose compute is on another one.
    overlaps(&g, "1003:8", "0",
             ROWS(ROW(HOST, 1, 10.0, 10.0, 0.0, 1.0) "," ROW(DEVICE, 1, 10.0, 0.0, 10.0, 0.0)));
    // The window cuts ops.
    overlaps(
        &g, "", "0.03",
        ROWS(ROW("collectives", 1, 20.0, 20.0, 0.0, 1.0) "," ROW(DEVICE, 1, 10.0, 0.0, 10.0, 0.0)));
    overlaps(&t, "", "0",
             ROWS(ROW("collectives", 1, 30.0, 30.0, 0.0, 1.0) "," ROW(
                 DEVICE, 1, 10.0, 0.0, 10.0, 0.0) "," ROW("other asynchronous ops", 1, 20.0, 10.0,
                                                          10.0, 0.5)));
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = profile();
    finds(&space, "", true, true, true);
    finds(&space, "1002", true, true, false);
    finds(&space, "1004", false, false, true);
    finds(&space, "1002:8", false, true, false);
    finds(&space, "1002:1,1004:1", true, false, true);
    finds(&space, "1002:8,1002", true, true, false);
    finds(&space, "3,1002:9,4294967295", false, false, false);
    refuses(&space, "x", "tracks: character 1 of \"x\" is not PID[:TID],...");
    refuses(&space, "1:", "tracks: character 3 of \"1:\" is not PID[:TID],...");
    refuses(&space, "1,", "tracks: character 2 of \"1,\" is not PID[:TID],...");
    refuses(&space, "1;2", "tracks: character 2 of \"1;2\" is not PID[:TID],...");
    refuses(&space, "4294967296", "tracks: character 10 of \"4294967296\" is not PID[:TID],...");
    test_overlap();
    return 0;
}
