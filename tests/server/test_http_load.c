// SPDX-License-Identifier: Apache-2.0
// The HTTP gateway under load: slow and vanishing clients, no free worker, stop.
// Usage: test_http_load SCENARIO
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/http_fixture.h"

// Connections that send nothing, or too slowly, are dropped; more than the limit get 503.
static void scenario_slow(void) {
    const char *dir = one_session();
    const char *const args[] = {"--http-idle", "4s", "--http-connections", "4", NULL};
    struct daemon_proc d = start_http(dir, args);
    int fd[6];
    for (int i = 0; i < 4; i++) {
        fd[i] = http_connect(d.http_address);
        http_send_text(fd[i], "GET /runs HTTP/1.1\r\n");
    }
    struct reply r = http_get(d.http_address, "/runs"); // they are accepted in their order
    CHECK_EQ(r.status, 503);
    CHECK(http_header(&r, "Retry-After"));
    CHECK(http_header(&r, "Connection"));
    CHECK_STR(http_header(&r, "Connection"), "close");
    reply_free(&r);
    bool closed = false;
    for (int waited = 0; waited < PATIENCE_MS && !closed; waited += 50) {
        http_send(fd[0], "A", 1); // a byte now and then does not extend the time
        closed = http_closes(fd[0], 50);
    }
    CHECK(closed);
    (void)close(fd[0]);
    for (int i = 1; i < 4; i++) {
        CHECK(http_closes(fd[i], PATIENCE_MS));
        (void)close(fd[i]);
    }
    expect(d.http_address, "/runs", 200, "run");
    CHECK_EQ(stop_daemon(&d), 0);
}

// Full queue: 503 with Retry-After; clients that go away free the workers.
static void scenario_busy(void) {
    const char *dir = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    const char *const args[] = {"--max-concurrent-requests", "1", "--workers", "1", NULL};
    struct daemon_proc d = start_http(dir, args);
    enum { N = 24 };
    static const char *const tools[] = {"overview_page", "op_profile", "kernel_stats"};
    int fd[N], ok = 0, busy = 0, gone = 0;
    for (int i = 0; i < N; i++) {
        fd[i] = http_connect(d.http_address);
        http_send_text(fd[i],
                       "GET /data?run=run&tag=%s&use_saved_result=false HTTP/1.1\r\nHost: "
                       "localhost\r\n\r\n",
                       tools[i % 3]);
    }
    for (int i = 0; i < N; i++) {
        if (i % 4 == 3) { // gives up
            (void)close(fd[i]);
            gone++;
            continue;
        }
        struct reply r = http_read(fd[i], false);
        CHECK(r.status == 200 || r.status == 503);
        if (r.status == 503) CHECK(http_header(&r, "Retry-After"));
        ok += r.status == 200;
        busy += r.status == 503;
        reply_free(&r);
        (void)close(fd[i]);
    }
    CHECK(ok > 0 && busy > 0);
    CHECK_EQ(ok + busy + gone, N);
    expect(d.http_address, "/data?run=run&tag=op_profile", 200, "byProgram");
    CHECK_EQ(stop_daemon(&d), 0);
}

struct storm {
    const char *address;
    atomic_bool stop;
    atomic_int ok, cut, other;
};

static void *storm_client(void *arg) {
    struct storm *s = arg;
    static const char *const paths[] = {"/data?run=run&tag=overview_page&use_saved_result=false",
                                        "/data?run=run&tag=op_profile",
                                        "/runs",
                                        "/api/v1/sessions",
                                        "/module_list?run=run",
                                        "/nope",
                                        "/ui/",
                                        "/data?run=run&tag=trace_viewer@&use_saved_result=false",
                                        "/data?run=run&tag=trace_viewer@&search_prefix=fusion",
                                        "/data?run=run&tag=trace_viewer",
                                        "/api/v1/server"};
    enum { N_PATHS = sizeof paths / sizeof *paths };
    for (int i = 0; !atomic_load(&s->stop); i++) {
        const int fd = http_connect(s->address);
        http_send_text(fd, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
                       paths[i % N_PATHS]);
        if (i % 5 == 4) { // goes away at once, or in a moment
            if (i % 2) sleep_ms(i % 7);
            (void)close(fd);
            continue;
        }
        struct reply r = http_read(fd, false);
        const bool expected = r.status == 200 || r.status == 503 || r.status == 404;
        atomic_fetch_add(expected ? &s->ok : r.status == 0 ? &s->cut : &s->other, 1);
        reply_free(&r);
        (void)close(fd);
    }
    return NULL;
}

// Everything at once, and a stop in the middle of it.
static void scenario_storm(void) {
    const char *dir = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    struct daemon_proc d = start_http(dir, NULL);
    struct storm s = {.address = d.http_address};
    enum { N = 6 };
    pthread_t t[N];
    for (int i = 0; i < N; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, storm_client, &s), 0);
    for (int i = 0; i < 4; i++) { // sessions come and go meanwhile
        char run[16];
        sleep_ms(400);
        (void)snprintf(run, sizeof run, "new-%d", i);
        add_session(dir, run, "vm", profile(TRAIN));
    }
    atomic_store(&s.stop, true);
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    CHECK(s.ok > 0);
    CHECK_EQ(s.cut, 0);
    CHECK_EQ(s.other, 0);
    CHECK_EQ(stop_daemon(&d), 0);
}

// SIGTERM: running requests are answered, idle connections are closed, status 0.
static void scenario_drain(void) {
    const char *dir = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    struct daemon_proc d = start_http(dir, NULL);
    const int idle = http_connect(d.http_address), busy = http_connect(d.http_address);
    http_send_text(idle, "GET /runs HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct reply r = http_read(idle, false);
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    http_send_text(busy, "GET /data?run=run&tag=op_profile HTTP/1.1\r\nHost: localhost\r\n\r\n");
    sleep_ms(2);
    CHECK_EQ(kill(d.pid, SIGTERM), 0);
    r = http_read(busy, false);
    CHECK(r.status == 200 || r.status == 0); // 0: SIGTERM came before it was read
    reply_free(&r);
    CHECK(http_closes(idle, PATIENCE_MS));
    (void)close(busy);
    (void)close(idle);
    int status;
    CHECK_EQ(waitpid(d.pid, &status, 0), d.pid); // main's alarm bounds it
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"slow", scenario_slow},
        {"busy", scenario_busy},
        {"storm", scenario_storm},
        {"drain", scenario_drain},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
