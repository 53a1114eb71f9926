// SPDX-License-Identifier: Apache-2.0
// The cost of a capture compared with gRPC's own cost: the same bytes from the same server, as a
// plain byte stream, as one message that is received and dropped, and as a capture into a
// directory. Each way runs in a separate process, whose peak memory is printed. Usage:
// bench_capture BYTES LOGDIR [ROUNDS]
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "capture/capture.h"
#include "capture/message.h"
#include "rpc/call.h"
#include "rpc/calls.h"
#include "rpc/server.h"
#include "tests/capture/fake_profiler.h"
#include "tests/check.h"

enum { CHUNK = 256 << 10 };

// ---- the server, a separate process ----

static void on_stream(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    (void)request;
    (void)xpl_rpc_send_chunks(c, (xpl_bytes_t){0}, 1, service, CHUNK);
    xpl_rpc_finish_ok(c);
}

static void serve(uint64_t bytes, int to, int until) {
    struct fake_set *const s = fake_set_new();
    const int i = fake_add(s, &(struct fake_options){.bytes = bytes});
    struct xpl_rpc_queue *q = NULL;
    struct xpl_rpc_server *stream = NULL;
    struct xpl_buf b = xpl_buf_of(SIZE_MAX / 2);
    size_t n;
    int port;
    char text[128], byte;
    fake_xspace(&b, bytes, "host");
    uint8_t *const p = xpl_buf_take(&b, &n);
    struct xpl_rpc_blob *const blob = xpl_rpc_blob_take(p, n);
    const struct xpl_rpc_method m = {
        .path = "/bench.Bytes/Stream", .on_request = on_stream, .service = blob};
    const struct xpl_rpc_server_options o = {.size = sizeof o};
    CHECK(xpl_rpc_queue_new(&q, NULL) == XPL_OK);
    CHECK(xpl_rpc_server_new(q, &m, 1, &o, &stream, NULL) == XPL_OK);
    CHECK(xpl_rpc_server_listen(stream, "127.0.0.1:0", NULL, &port, NULL) == XPL_OK);
    CHECK(xpl_rpc_server_start(stream, NULL) == XPL_OK);
    (void)snprintf(text, sizeof text, "%s 127.0.0.1:%d", fake_address(s, i), port);
    CHECK(write(to, text, strlen(text) + 1) > 0);
    while (read(until, &byte, 1) > 0)
        continue;
    _exit(0); // nothing that is measured
}

// ---- the ways ----

static uint64_t stream(const char *address, const char *logdir) {
    const struct xpl_rpc_channel_options o = {.size = sizeof o, .target = address};
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_rpc_stream *st = NULL;
    struct xpl_rpc_reply r = {0};
    uint64_t bytes = 0;
    (void)logdir;
    CHECK(xpl_rpc_channel_open(&o, &ch, NULL) == XPL_OK);
    CHECK(xpl_rpc_stream_open(ch, "/bench.Bytes/Stream", (xpl_bytes_t){0}, NULL, &st, NULL) ==
          XPL_OK);
    for (bool more = true; more; bytes += r.bytes.len)
        CHECK(xpl_rpc_stream_next(st, &r, &more, NULL) == XPL_OK);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_stream_close(st);
    xpl_rpc_channel_close(ch);
    return bytes;
}

static struct xpl_capture_plan plan_of(const char *const *target) {
    return (struct xpl_capture_plan){.size = sizeof(struct xpl_capture_plan),
                                     .targets = target,
                                     .n_targets = 1,
                                     .duration_ms = 1};
}

static uint64_t message(const char *address, const char *logdir) {
    const struct xpl_capture_plan p = plan_of(&address);
    const struct xpl_capture_query q = {.host_name = "h", .root = "r", .session_id = "s"};
    const struct xpl_rpc_channel_options o = {.size = sizeof o, .target = address};
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_rpc_async_calls *fl = NULL;
    struct xpl_rpc_async_call *f;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(10000);
    (void)logdir;
    xpl_capture_encode(&p, &q, &b);
    CHECK(xpl_rpc_async_calls_new(&fl, NULL) == XPL_OK);
    CHECK(xpl_rpc_channel_open(&o, &ch, NULL) == XPL_OK);
    f = xpl_rpc_async_call_new(fl, ch, NULL);
    CHECK(f && xpl_rpc_async_call_call(f, "/tensorflow.ProfilerService/Profile",
                                       (xpl_bytes_t){b.p, b.n}, NULL) == XPL_OK);
    for (enum xpl_rpc_async_call_event ev;
         (ev = xpl_rpc_async_calls_next(fl, 1000, &f)) != XPL_RPC_ASYNC_CALL_DONE;)
        if (ev == XPL_RPC_ASYNC_CALL_ANSWERING) xpl_rpc_async_call_receive(f, UINT64_MAX);
    CHECK(xpl_rpc_async_call_status(f, NULL) == XPL_OK);
    const uint64_t n = xpl_rpc_async_call_length(f);
    xpl_rpc_async_calls_free(fl);
    xpl_rpc_channel_close(ch);
    return n;
}

// When the profile could be read by others; the run's end waits for the disk, too.
static void on_progress(void *ctx, const struct xpl_capture_progress *p) {
    if (p->hosts[0].state == XPL_CAPTURE_STORED) *(uint64_t *)ctx = xpl_clock_ns();
}

static uint64_t stored_ns;
static double received_s; // from the capture's begin to its answer's last byte

static uint64_t capture(const char *address, const char *logdir) {
    const struct xpl_capture_plan p = plan_of(&address);
    struct xpl_capture_outcome o;
    CHECK(xpl_capture_run(&p, logdir, NULL, on_progress, &stored_ns, &o, NULL) == XPL_OK);
    const uint64_t n = o.hosts[0].file.counts.bytes;
    received_s = (double)(o.hosts[0].answered_ns - o.begin_ns) / 1e9;
    xpl_capture_outcome_fini(&o);
    return n;
}

static void measure(const char *name, uint64_t (*way)(const char *, const char *),
                    const char *address, const char *logdir) {
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        const uint64_t begin = xpl_clock_ns();
        const uint64_t bytes = way(address, logdir);
        const uint64_t end = xpl_clock_ns();
        const double s = (double)((stored_ns ? stored_ns : end) - begin) / 1e9;
        struct rusage u;
        CHECK(getrusage(RUSAGE_SELF, &u) == 0);
        (void)printf(
            "%-8s %7.1f MB  %6.3f s  %6.0f MB/s  peak %6.1f MB  cpu %.3f s user %.3f s system\n",
            name, (double)bytes / 1e6, s, (double)bytes / 1e6 / s, (double)u.ru_maxrss * 1024 / 1e6,
            (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6,
            (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6);
        if (stored_ns)
            (void)printf("         received after %.3f s, on the disk after %.3f s\n", received_s,
                         (double)(end - begin) / 1e9);
        (void)fflush(stdout);
        _exit(0);
    }
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv) {
    int out[2], in[2];
    char text[128] = {0};
    if (argc < 3) {
        (void)fprintf(stderr, "usage: bench_capture BYTES LOGDIR [ROUNDS]\n");
        return 2;
    }
    (void)alarm(600);
    CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(in, O_CLOEXEC) == 0);
    const pid_t server = fork();
    if (server == 0) {
        (void)close(in[1]);
        serve(strtoull(argv[1], NULL, 10), out[1], in[0]);
    }
    CHECK(server > 0 && read(out[0], text, sizeof text - 1) > 0);
    char *const second = strchr(text, ' ');
    CHECK(second);
    *second = '\0';
    for (int i = 0, rounds = argc > 3 ? atoi(argv[3]) : 3; i < rounds; i++) {
        measure("stream", stream, second + 1, argv[2]);
        measure("message", message, text, argv[2]);
        measure("capture", capture, text, argv[2]);
    }
    (void)close(in[1]);
    return waitpid(server, NULL, 0) == server ? 0 : 1;
}
