// SPDX-License-Identifier: Apache-2.0
// Captures as XProf's interfaces ask for them: tensorflow.ProfileAnalysis and capture_profile.
// Usage: test_captures_xprof SCENARIO
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "proto/tensorflow/profiler_analysis.pb-c.h"
#include "tests/server/capture_requests.h"
#include "tests/server/http_client.h"

static void scenario_analysis(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK), idle = add(set, FAKE_IDLE);
    struct daemon_proc d = start_daemon(dir, state, plain);
    struct xpl_rpc_channel *ch = open_channel(d.address);
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    struct xpl_arena arena;
    ProtobufCMessage *msg = NULL;
    xpl_arena_init(&arena, 16 << 20);
    Tensorflow__NewProfileSessionRequest q;
    Tensorflow__ProfileRequest r;
    Tensorflow__ProfileOptions o;
    tensorflow__new_profile_session_request__init(&q);
    tensorflow__profile_request__init(&r);
    tensorflow__profile_options__init(&o);
    char *hosts[] = {(char *)(uintptr_t)fake_address(set, good)},
         *nobody[] = {(char *)(uintptr_t)fake_address(set, idle)};
    o.duration_ms = 50;
    o.host_tracer_level = 2;
    r.opts = &o;
    q.request = &r;
    q.hosts = hosts;
    q.n_hosts = 1;
    q.session_id = (char *)(uintptr_t) "s";
    static const char path[] = "/tensorflow.ProfileAnalysis/NewSession";
    CHECK_OK(call(ch, path, &q.base, &reply, &err), &err);
    q.repository_root = (char *)(uintptr_t) "/somewhere/else";
    CHECK_STATUS(call(ch, path, &q.base, &reply, &err), XPL_INVALID_ARGUMENT, &err);
    char root[300];
    (void)snprintf(root, sizeof root, "%s/plugins/profile/", dir);
    q.repository_root = root;
    q.hosts = nobody;
    CHECK_OK(call(ch, path, &q.base, &reply, NULL), NULL);
    CHECK_OK(xpl_rpc_message_unpack(&tensorflow__new_profile_session_response__descriptor,
                                    reply.bytes, &arena, &msg, NULL),
             NULL);
    CHECK(((Tensorflow__NewProfileSessionResponse *)msg)->empty_trace);

    Tensorflow__EnumProfileSessionsAndToolsRequest e;
    tensorflow__enum_profile_sessions_and_tools_request__init(&e);
    CHECK_OK(call(ch, "/tensorflow.ProfileAnalysis/EnumSessions", &e.base, &reply, NULL), NULL);
    CHECK_OK(
        xpl_rpc_message_unpack(&tensorflow__enum_profile_sessions_and_tools_response__descriptor,
                               reply.bytes, &arena, &msg, NULL),
        NULL);
    const Tensorflow__EnumProfileSessionsAndToolsResponse *const all =
        (Tensorflow__EnumProfileSessionsAndToolsResponse *)msg;
    CHECK_EQ(all->n_sessions, 1);
    CHECK_STR(all->sessions[0]->session_id, "s");
    CHECK(all->sessions[0]->n_available_tools > 5);

    Tensorflow__ProfileSessionDataRequest t;
    tensorflow__profile_session_data_request__init(&t);
    t.session_id = (char *)(uintptr_t) "s";
    t.tool_name = (char *)(uintptr_t) "overview_page";
    for (int i = 0; i < 2; i++) { // made, then from memory
        CHECK_OK(call(ch, "/tensorflow.ProfileAnalysis/GetSessionToolData", &t.base, &reply, NULL),
                 NULL);
        CHECK_OK(xpl_rpc_message_unpack(&tensorflow__profile_session_data_response__descriptor,
                                        reply.bytes, &arena, &msg, NULL),
                 NULL);
        const Tensorflow__ProfileSessionDataResponse *const data =
            (Tensorflow__ProfileSessionDataResponse *)msg;
        CHECK_STR(data->output_format, "json");
        CHECK(data->output.len > 2);
    }
    t.session_id = (char *)(uintptr_t) "nope";
    CHECK_STATUS(call(ch, "/tensorflow.ProfileAnalysis/GetSessionToolData", &t.base, &reply, NULL),
                 XPL_NOT_FOUND, NULL);
    xpl_rpc_reply_fini(&reply);
    xpl_arena_fini(&arena);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

// What a page of another site can make a browser send begins nothing.
static void expect_only_own_pages(struct fake_set *set, int host, const char *address,
                                  const char *path) {
    static const char *const others[] = {
        "", // an image of a page with Referrer-Policy: no-referrer, over HTTP: nothing tells
        "User-Agent: Mozilla/5.0 (X11)\r\n",
        "User-Agent: Mozilla/5.0 (X11)\r\nReferer: http://evil.example/\r\n",
        "Referer: http://evil.example/?http://localhost/\r\n",
        "Referer: http://localhost.evil.example/\r\n",
        "Referer: http://127.0.0.1:1/\r\n", // our host, another's port
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Sec-Fetch-Site: none\r\n", // a link in a mail
        "Origin: null\r\n",
    };
    const unsigned before = fake_calls(set, host);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct reply r = http_ask(address, "GET", path, others[i]);
        if (r.status != 403) fprintf(stderr, "%s", others[i]);
        CHECK_EQ(r.status, 403);
        reply_free(&r);
    }
    struct reply r =
        http_ask(address, "POST", path, "Content-Length: 0\r\nUser-Agent: Mozilla/5.0 (old)\r\n");
    CHECK_EQ(r.status, 403);
    reply_free(&r);
    CHECK_EQ(fake_calls(set, host), before);
    // XProf's page, under plain HTTP and under a name that browsers trust.
    char headers[300];
    (void)snprintf(headers, sizeof headers,
                   "User-Agent: Mozilla/5.0 (X11)\r\nReferer: http://%s/\r\n", address);
    r = http_ask(address, "GET", path, headers);
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    r = http_ask(address, "GET", path, "Sec-Fetch-Site: same-origin\r\n");
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    r = http_ask(address, "POST", path, "Content-Length: 0\r\n");
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    CHECK_EQ(fake_calls(set, host), before + 3);
}

static void scenario_http(void) {
    const char *dir = make_dir(), *state = make_dir();
    static const char *const http[] = {"--no-prefetch", "--http", "127.0.0.1:0", NULL};
    struct fake_set *set = fake_set_new();
    const int good = add(set, FAKE_OK), idle = add(set, FAKE_IDLE), hang = add(set, FAKE_HANG);
    struct daemon_proc d = start_daemon(dir, state, http);
    char path[400];
    struct reply r = http_get(d.http_address, "/config");
    CHECK_EQ(r.status, 200);
    CHECK(strstr(r.body, "\"hideCaptureProfileButton\": false"));
    reply_free(&r);
    (void)snprintf(path, sizeof path, "/capture_profile?service_addr=%s&duration=50",
                   fake_address(set, good));
    r = http_ask(d.http_address, "GET", path, "Xplaned-Request: 1\r\n");
    CHECK_EQ(r.status, 200);
    CHECK_STR(r.body, "{\"result\": \"Capture profile successfully. Please refresh.\"}");
    reply_free(&r);
    r = http_get(d.http_address, "/runs");
    CHECK_EQ(r.status, 200);
    CHECK(strlen(r.body) > 10);
    reply_free(&r);
    // Partly done is done; XProf's plugin path is served as well.
    (void)snprintf(path, sizeof path,
                   "/data/plugin/profile/capture_profile?service_addr=%s,%s&duration=50"
                   "&num_retry=0&host_tracer_level=2",
                   fake_address(set, good), fake_address(set, idle));
    r = http_ask(d.http_address, "GET", path, "Xplaned-Request: 1\r\n");
    CHECK_EQ(r.status, 200);
    CHECK(strstr(r.body, "Not captured: ") && strstr(r.body, "idle"));
    reply_free(&r);
    (void)snprintf(path, sizeof path, "/capture_profile?service_addr=%s&duration=50",
                   fake_address(set, idle));
    r = http_ask(d.http_address, "GET", path, "Xplaned-Request: 1\r\n");
    CHECK_EQ(r.status, 500);
    CHECK(strncmp(r.body, "{\"error\": \"", 11) == 0);
    reply_free(&r);
    static const char *const wrong[] = {"", "?service_addr=", "?service_addr=grpc%3A%2F%2Fx%3A1",
                                        "?service_addr=a%3A1&duration=soon",
                                        "?service_addr=a%3A1&is_tpu_name=true"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)snprintf(path, sizeof path, "/capture_profile%s", wrong[i]);
        r = http_ask(d.http_address, "GET", path, "Xplaned-Request: 1\r\n");
        CHECK_EQ(r.status, 500);
        CHECK(strncmp(r.body, "{\"error\": \"", 11) == 0);
        reply_free(&r);
    }
    (void)snprintf(path, sizeof path, "/capture_profile?service_addr=%s", fake_address(set, good));
    expect_only_own_pages(set, good, d.http_address, path);
    // A request for the head begins nothing.
    const int head = http_connect(d.http_address);
    http_send_text(head, "HEAD /capture_profile?service_addr=%s HTTP/1.1\r\nHost: %s\r\n\r\n",
                   fake_address(set, idle), d.http_address);
    const unsigned before = fake_calls(set, idle);
    r = http_read(head, true);
    CHECK_EQ(r.status, 405);
    CHECK_EQ(fake_calls(set, idle), before);
    reply_free(&r);
    (void)close(head);
    // Who goes away cancels; the host is free again.
    xpl_client *c = open_client(&d, 60000);
    const int fd = http_connect(d.http_address);
    http_send_text(fd,
                   "POST /capture_profile?service_addr=%s&duration=50 HTTP/1.1\r\nHost: %s\r\n"
                   "Content-Length: 0\r\n\r\n",
                   fake_address(set, hang), d.http_address);
    CHECK(becomes(c, "running"));
    (void)close(fd);
    CHECK(becomes(c, "cancelled"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    fake_set_free(set);
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"analysis", scenario_analysis},
        {"http", scenario_http},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
