// SPDX-License-Identifier: Apache-2.0
// The HTTP gateway from outside: routes, conditional requests, ranges, who may ask, limits, slow
// and vanishing clients, stop.  Usage: test_http SCENARIO
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/server/harness.h"
#include "tests/server/http_client.h"

#define TRAIN "logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb"
#define TPU   "logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb"
#define GPU   "logdir/accel/plugins/profile/mi300_jax_gemm/mi300_jax_gemm.xplane.pb"
#define DATA  "/data?run=run&tag=overview_page&host=vm"

// ---- help ----

// Starts a daemon with HTTP and up to 8 further arguments.
static struct daemon_proc start_http(const char *logdir, const char *const *more) {
    const char *args[16] = {"--no-prefetch", "--http", "127.0.0.1:0"};
    size_t n = 3;
    for (size_t i = 0; more && more[i] && i < 12; i++)
        args[n++] = more[i];
    return start_daemon(logdir, make_dir(), args);
}

static const char *one_session(void) {
    const char *dir = make_dir();
    add_session(dir, "run", "vm", profile(TRAIN));
    return dir;
}

static void expect(const char *address, const char *path, int status, const char *body_part) {
    struct reply r = http_get(address, path);
    if (r.status != status || !strstr(r.body, body_part))
        fprintf(stderr, "%s: %d %s\n", path, r.status, r.body ? r.body : "");
    CHECK_EQ(r.status, status);
    CHECK(strstr(r.body, body_part));
    reply_free(&r);
}

static void expect_header(const struct reply *r, const char *name, const char *value) {
    const char *const got = http_header(r, name);
    if (!got || strcmp(got, value) != 0) fprintf(stderr, "%s: %s\n", name, got ? got : "(none)");
    CHECK(got);
    CHECK_STR(got, value);
}

// ---- scenarios ----

// XProf's routes and ours, each with its status and what makes it recognisable.
static void scenario_routes(void) {
    const char *dir = one_session();
    add_session(dir, "two", "b-1", profile(TRAIN));
    add_session(dir, "two", "Z-2", profile(TRAIN));
    struct daemon_proc d = start_http(dir, NULL);
    const char *const a = d.http_address;
    static const struct {
        const char *path;
        int status;
        const char *part;
    } rows[] = {
        {"/runs", 200, "[\"two\", \"run\"]"},
        {"/data/plugin/profile/runs", 200, "[\"two\", \"run\"]"},
        {"/run_tools?run=run", 200, "[\"overview_page\", "},
        {"/run_tools?run=nope", 200, "[]"},
        {"/hosts?run=run&tag=overview_page", 200, "[{\"hostname\": \"vm\"}]"},
        {"/hosts?run=two&tag=overview_page", 200, "[{\"hostname\": \"ALL_HOSTS\"}]"},
        {"/hosts?run=two&tag=kernel_stats", 200,
         "[{\"hostname\": \"ALL_HOSTS\"}, {\"hostname\": \"Z-2\"}, {\"hostname\": \"b-1\"}]"},
        {"/hosts?run=nope", 200, "[]"},
        {DATA, 200, "\"cols\""},
        {"/data?run=two&tag=memory_profile", 400, "b-1"},
        {"/data?run=nope&tag=overview_page", 404, "No xplane file found for run: nope"},
        {"/data?run=run&tag=overview_page&host=zz", 404, "No xplane file found for host: zz"},
        {"/data?run=run&tag=nope", 404, "No Data"},
        {"/data", 404, "/runs"},
        {"/data_csv?run=run&tag=framework_op_stats&host=vm", 200, "\"Rank\",\"Host/device\""},
        {"/data_csv?run=run&tag=memory_profile&host=vm", 500, "missing 'cols'"},
        {"/module_list?run=run", 200, "("},
        {"/module_list?run=nope", 200, ""},
        {"/data?run=run&tag=graph_viewer&host=vm&type=zz", 400, "Unknown graph viewer type"},
        {"/data?run=run&tag=graph_viewer&program_id=4", 400, "must provide a type"},
        {"/data?run=run&tag=graph_viewer&type=pb&module_name=..%2Fx", 404, "no HLO module"},
        {"/data?run=two&tag=graph_viewer&host=b-1&type=pb&program_id=x", 404, "the program id x"},
        {"/version", 200, "2.24.2"},
        {"/config", 200, "\"srcPathPrefix\": null"},
        {"/capture_profile?service_addr=x", 403, "own pages"},
        {"/generate_cache?session_path=/tmp", 405, "Method Not Allowed"},
        {"/ui/", 200, "<html"},
        {"/ui/index.html", 200, "<html"},
        {"/ui/nope.js", 404, "/ui/"},
        {"/nope", 404, "/nope"},
        {"/index.js", 404, "Fail to read the files."},
        {"/data/plugin/profile/overview_page", 404, "--ui-dir"},
        {"/api/v1/sessions", 200, "{\"sessions\":[{\"name\":\"run\",\"kind\":\"xspace\","},
        {"/api/v1/tools", 200, "\"name\":\"iree_summary\""},
        {"/api/v1/tools?session=run", 200, "{\"tools\":[{\"name\":\"framework_op_stats\","},
        {"/api/v1/tools?session=none", 200, "{\"tools\":[]}"},
        {"/api/v1/server", 200, "\"uptime_ms\":"},
        {"/api/v1/tool?session=run&tool=op_profile", 200, "byProgram"},
        {"/api/v1/csv?session=run&tool=framework_op_stats", 200, "\"Rank\""},
        {"/api/v1/csv?session=run&tool=memory_profile", 400, "INVALID_ARGUMENT"},
        {"/api/v1/tool?session=nope&tool=op_profile", 404, "\"code\":\"NOT_FOUND\""},
        {"/api/v1/tool?session=run&tool=nope", 400, "\"code\":\"INVALID_ARGUMENT\""},
        {"/api/v1/tool?session=run&tool=op_profile&nonsense=1", 400, "INVALID_ARGUMENT"},
        {"/api/v1/tool?session=run", 400, "tool="},
        {"/api/v1/nope", 404, "/api/v1/sessions"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(a, rows[i].path, rows[i].status, rows[i].part);
    struct reply r = http_get(a, "/");
    CHECK_EQ(r.status, 302);
    expect_header(&r, "Location", "ui/");
    reply_free(&r);
    r = http_get(a, "/api/v1/tool?session=run&tool=op_profile");
    expect_header(&r, "Xplaned-Source", "memory");
    reply_free(&r);
    CHECK_EQ(stop_daemon(&d), 0);
}

// session_path, run_path and generate_cache: below LOGDIR only.
static void scenario_paths(void) {
    const char *dir = one_session();
    struct daemon_proc d = start_http(dir, NULL);
    char path[600];
    (void)snprintf(path, sizeof path, "/runs?session_path=%s/plugins/profile/run", dir);
    expect(d.http_address, path, 200, "[\"run\"]");
    (void)snprintf(path, sizeof path, "/runs?run_path=%s/plugins/profile/", dir);
    expect(d.http_address, path, 200, "[\"run\"]");
    (void)snprintf(path, sizeof path,
                   "/data?run=run&tag=kernel_stats&session_path=%s/plugins/profile/run", dir);
    expect(d.http_address, path, 200, "cols");
    (void)snprintf(path, sizeof path, "/runs?session_path=%s/plugins/../plugins/profile/run", dir);
    expect(d.http_address, path, 200, "[]");
    expect(d.http_address, "/runs?session_path=/etc", 200, "[]");
    expect(d.http_address, "/data?run=etc&tag=overview_page&session_path=/etc", 404, "No xplane");
    (void)snprintf(path, sizeof path, "/generate_cache?session_path=%s/plugins/profile/run", dir);
    struct reply r = http_ask(d.http_address, "POST", path, "Content-Length: 0\r\n");
    CHECK_EQ(r.status, 202);
    reply_free(&r);
    r = http_ask(d.http_address, "POST", "/generate_cache", "Content-Length: 0\r\n");
    CHECK_EQ(r.status, 400);
    reply_free(&r);
    r = http_ask(d.http_address, "POST", "/generate_cache?session_path=/etc",
                 "Content-Length: 0\r\n");
    CHECK_EQ(r.status, 404);
    reply_free(&r);
    static const char *const hostile[] = {"/../../../etc/passwd",
                                          "/ui/../../etc/passwd",
                                          "/ui/%2e%2e/%2e%2e/etc/passwd",
                                          "/data/plugin/profile/../../../etc/passwd",
                                          "/data?run=../../../etc&tag=overview_page",
                                          "/data?run=run&tag=overview_page&host=../../etc/passwd",
                                          "/data?run=run&tag=..%2f..%2fetc",
                                          "/api/v1/tool?session=..%2f..&tool=overview_page"};
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        expect(d.http_address, hostile[i], 404, "");
    CHECK_EQ(stop_daemon(&d), 0);
}

// ETag, 304, HEAD, ranges, encodings.
static void scenario_conditional(void) {
    const char *dir = one_session();
    struct daemon_proc d = start_http(dir, NULL);
    const char *const a = d.http_address;
    struct reply whole = http_get(a, DATA), r = http_get(a, DATA);
    CHECK_EQ(whole.status, 200);
    CHECK(whole.n > 1000 && !http_header(&whole, "Content-Encoding"));
    expect_header(&r, "Xplaned-Source", "memory");
    expect_header(&r, "Content-Type", "application/json");
    expect_header(&r, "X-Content-Type-Options", "nosniff");
    expect_header(&r, "Vary", "Accept-Encoding");
    CHECK(strstr(http_header(&r, "Content-Security-Policy"), "https://www.gstatic.com"));
    CHECK_EQ(r.n, whole.n);
    CHECK_BYTES(r.body, r.n, whole.body, r.n);
    char etag[64], header[160];
    (void)snprintf(etag, sizeof etag, "%s", http_header(&whole, "ETag"));
    reply_free(&r);

    (void)snprintf(header, sizeof header, "If-None-Match: \"x\", W/%s\r\n", etag);
    r = http_ask(a, "GET", DATA, header);
    CHECK_EQ(r.status, 304);
    CHECK_EQ(r.n, 0);
    expect_header(&r, "ETag", etag);
    reply_free(&r);
    r = http_ask(a, "GET", DATA, "If-None-Match: \"x\"\r\n");
    CHECK_EQ(r.status, 200);
    reply_free(&r);

    char length[32];
    (void)snprintf(length, sizeof length, "%zu", whole.n);
    r = http_ask(a, "HEAD", DATA, "");
    CHECK_EQ(r.status, 200);
    expect_header(&r, "Content-Length", length);
    reply_free(&r);

    r = http_ask(a, "GET", DATA, "Range: bytes=10-19\r\n");
    CHECK_EQ(r.status, 206);
    CHECK_BYTES(r.body, r.n, whole.body + 10, 10);
    (void)snprintf(header, sizeof header, "bytes 10-19/%zu", whole.n);
    expect_header(&r, "Content-Range", header);
    reply_free(&r);
    r = http_ask(a, "GET", DATA, "Range: bytes=-5\r\nAccept-Encoding: gzip\r\n");
    CHECK_EQ(r.status, 206);
    CHECK_BYTES(r.body, r.n, whole.body + whole.n - 5, 5);
    reply_free(&r);
    r = http_ask(a, "GET", DATA, "Range: bytes=999999999-\r\n");
    CHECK_EQ(r.status, 416);
    reply_free(&r);
    r = http_ask(a, "GET", DATA, "Range: bytes=0-1,4-5\r\n"); // several: the whole
    CHECK_EQ(r.status, 200);
    CHECK_EQ(r.n, whole.n);
    reply_free(&r);
    r = http_ask(a, "GET", DATA, "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n");
    CHECK_EQ(r.status, 200);
    CHECK_EQ(r.n, whole.n);
    reply_free(&r);

    for (int i = 0; i < 2; i++) { // made, and known
        r = http_ask(a, "GET", DATA, "Accept-Encoding: br, gzip;q=0.5\r\n");
        CHECK_EQ(r.status, 200);
        CHECK(r.n < whole.n);
        CHECK_EQ((unsigned char)r.body[0], 0x1f);
        expect_header(&r, "Content-Encoding", "gzip");
        CHECK(strcmp(http_header(&r, "ETag"), etag) != 0);
        reply_free(&r);
    }
    r = http_ask(a, "GET", DATA, "Accept-Encoding: gzip;q=0, *\r\n");
    CHECK_EQ(r.status, 200);
    CHECK_EQ(r.n, whole.n);
    CHECK(!http_header(&r, "Content-Encoding"));
    reply_free(&r);
    reply_free(&whole);

    const int fd = http_connect(a); // keep-alive, and two requests in one packet
    http_send_text(fd, "GET /version HTTP/1.1\r\nHost: %s\r\n\r\n", a);
    r = http_read(fd, false);
    CHECK_EQ(r.status, 200);
    CHECK_STR(r.body, "2.24.2");
    CHECK(!r.closed);
    reply_free(&r);
    http_send_text(fd, "GET " DATA " HTTP/1.1\r\nHost: %s\r\n\r\n", a);
    r = http_read(fd, false);
    CHECK_EQ(r.status, 200);
    CHECK(!r.closed);
    reply_free(&r);
    (void)close(fd);
    CHECK_EQ(stop_daemon(&d), 0);
}

// XProf's static files, a change of one, and a proxy's prefix.
static void scenario_ui(void) {
    const char *dir = one_session(), *ui = make_dir();
    char path[300];
    (void)snprintf(path, sizeof path, "%s/index.html", ui);
    write_file(path, "<html>one</html>", 16);
    (void)snprintf(path, sizeof path, "%s/trace_viewer_v2.wasm", ui);
    write_file(path, "\0asm", 4);
    (void)snprintf(path, sizeof path, "%s/secret.txt", ui);
    write_file(path, "secret", 6);
    const char *const args[] = {"--ui-dir",          ui,  "--http-prefix", "/a/b/", "--src-prefix",
                                "http://x/\xc3\xa4", NULL};
    struct daemon_proc d = start_http(dir, args);
    const char *const a = d.http_address;
    static const char *const pages[] = {"/",
                                        "/index.html",
                                        "/local",
                                        "/data/plugin/profile",
                                        "/data/plugin/profile/",
                                        "/data/plugin/profile/overview_page/run",
                                        "/a/b/",
                                        "/a/b/data/plugin/profile/index.html",
                                        "/a/b"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        expect(a, pages[i], 200, "one");
    expect(a, "/a/b/runs", 200, "run");
    expect(a, "/a/bruns", 404, "");
    expect(a, "/config", 200, "\"srcPathPrefix\": \"http://x/\\u00e4\"");
    struct reply r = http_get(a, "/data/plugin/profile/trace_viewer_v2.wasm");
    CHECK_EQ(r.status, 200);
    CHECK_EQ(r.n, 4);
    expect_header(&r, "Content-Type", "application/wasm");
    reply_free(&r);
    expect(a, "/secret.txt", 404, "");
    expect(a, "/data/plugin/profile/secret.txt", 404, "");
    expect(a, "/bundle.js", 404, "Fail to read the files.");
    (void)snprintf(path, sizeof path, "%s/index.html", ui);
    write_file(path, "<html>another</html>", 20);
    expect(a, "/", 200, "another");
    CHECK_EQ(stop_daemon(&d), 0);
}

// Host, Origin, methods, the token.
static void scenario_access(void) {
    const char *dir = one_session();
    const char *const args[] = {"--http-host", "Proxy.example, other", NULL};
    struct daemon_proc d = start_http(dir, args);
    static const struct {
        const char *headers;
        int status;
    } rows[] = {
        {"Host: localhost\r\n", 200},
        {"Host: LOCALHOST:1234\r\n", 200},
        {"Host: [::1]:80\r\n", 200},
        {"Host: 127.9.9.9\r\n", 200},
        {"Host: proxy.example\r\n", 200},
        {"Host: evil.example\r\n", 403},
        {"Host: localhost.evil.example\r\n", 403},
        {"Host: 10.0.0.1\r\n", 403},
        {"Host: \r\n", 403},
        {"Host: localhost:1\r\nOrigin: http://localhost:1\r\n", 200},
        {"Host: localhost:1\r\nOrigin: https://proxy.example\r\n", 200},
        {"Host: localhost:1\r\nOrigin: http://localhost:2\r\n", 403},
        {"Host: 127.0.0.1:1\r\nOrigin: http://127.0.0.1:1\r\n", 200},
        {"Host: 127.0.0.1:1\r\nOrigin: http://127.0.0.1:2\r\n", 403}, // bound, but another's port
        {"Host: localhost:1\r\nOrigin: http://127.0.0.1:1\r\n", 403},
        {"Host: localhost\r\nOrigin: http://evil.example\r\n", 403},
        {"Host: localhost\r\nOrigin: null\r\n", 403},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int fd = http_connect(d.http_address);
        http_send_text(fd, "GET /version HTTP/1.1\r\n%s\r\n", rows[i].headers);
        struct reply r = http_read(fd, false);
        if (r.status != rows[i].status) fprintf(stderr, "%s", rows[i].headers);
        CHECK_EQ(r.status, rows[i].status);
        reply_free(&r);
        (void)close(fd);
    }
    static const char *const methods[] = {"PUT", "DELETE", "OPTIONS", "FROB"};
    for (size_t i = 0; i < 4; i++) {
        struct reply r = http_ask(d.http_address, methods[i], "/version", "Content-Length: 0\r\n");
        CHECK_EQ(r.status, 405);
        expect_header(&r, "Allow", "GET, HEAD");
        reply_free(&r);
    }
    struct reply r = http_ask(d.http_address, "POST", "/runs", "Content-Length: 2\r\n\r\nhi");
    CHECK_EQ(r.status, 405);
    reply_free(&r);
    CHECK_EQ(stop_daemon(&d), 0);
}

// With --token-file: who has the token, as Bearer or Basic; SIGHUP reads it again.
// Whether work of seconds is begun for a page of another site; the same before and after the answer
// is known.
static void scenario_elsewhere(void) {
    const char *dir = one_session();
    struct daemon_proc d = start_http(dir, NULL);
    static const char *const paths[] = {
        DATA,
        "/data_csv?run=run&tag=overview_page&host=vm",
        "/run_tools?run=run",
        "/module_list?run=run",
        "/api/v1/tool?session=run&tool=overview_page",
        "/api/v1/csv?session=run&tool=overview_page",
    };
    static const struct {
        const char *headers;
        int status;
    } rows[] = {
        {"User-Agent: Mozilla/5.0 (X11)\r\n", 403},
        {"User-Agent: Mozilla/5.0 (X11)\r\nReferer: http://evil.example/\r\n", 403},
        {"Sec-Fetch-Site: cross-site\r\n", 403},
        {"User-Agent: curl/7.88.1\r\n", 200},
        {"User-Agent: Mozilla/5.0 (X11)\r\nSec-Fetch-Site: none\r\n", 200},
        {"User-Agent: Mozilla/5.0 (X11)\r\nReferer: http://localhost:7/ui/\r\n", 200},
        {"User-Agent: Mozilla/5.0 (X11)\r\nSec-Fetch-Site: same-origin\r\n", 200},
        {"User-Agent: Mozilla/5.0 (X11)\r\nXplaned-Request: 1\r\n", 200},
        {"User-Agent: Mozilla/5.0 (X11)\r\n", 403}, // now that it is known
        {"User-Agent: Mozilla/5.0 (X11)\r\nReferer: http://evil.example/\r\n", 403},
    };
    for (size_t k = 0; k < sizeof paths / sizeof *paths; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const int fd = http_connect(d.http_address);
            http_send_text(fd, "GET %s HTTP/1.1\r\nHost: localhost:7\r\n%s\r\n", paths[k],
                           rows[i].headers);
            struct reply r = http_read(fd, false);
            if (r.status != rows[i].status) fprintf(stderr, "%s %s", paths[k], rows[i].headers);
            CHECK_EQ(r.status, rows[i].status);
            reply_free(&r);
            (void)close(fd);
        }
    struct reply r = http_ask(d.http_address, "POST", "/generate_cache?session_path=run",
                              "Content-Length: 0\r\nUser-Agent: Mozilla/5.0 (old)\r\n");
    CHECK_EQ(r.status, 403);
    reply_free(&r);
    // The pages themselves are for everybody who follows a link, and for nobody's frame.
    for (int i = 0; i < 2; i++) {
        r = http_ask(d.http_address, "GET", "/ui/", "User-Agent: Mozilla/5.0 (X11)\r\n");
        CHECK_EQ(r.status, 200);
        expect_header(&r, "X-Frame-Options", "DENY");
        reply_free(&r);
    }
    r = http_get(d.http_address, "/version");
    expect_header(&r, "X-Frame-Options", "SAMEORIGIN");
    CHECK(strstr(http_header(&r, "Content-Security-Policy"), "frame-ancestors 'self'"));
    reply_free(&r);
    CHECK_EQ(stop_daemon(&d), 0);
}

static void scenario_token(void) {
    const char *dir = one_session(), *token = make_dir();
    char path[256];
    (void)snprintf(path, sizeof path, "%s/token", token);
    write_file(path, "first\n", 6);
    const char *const secret[] = {"--token-file", path, NULL};
    struct daemon_proc d = start_http(dir, secret);
    static const struct {
        const char *header;
        int status;
    } tokens[] = {{"", 401},
                  {"Authorization: Bearer firs\r\n", 401},
                  {"Authorization: Bearer first\r\n", 200},
                  {"Authorization: Basic bWU6Zmlyc3Q=\r\n", 200}, // me:first
                  {"Authorization: Basic bWU6Zmlyc3R4\r\n", 401},
                  {"Authorization: Basic ???\r\n", 401}};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct reply r = http_ask(d.http_address, "GET", "/ui/", tokens[i].header);
        CHECK_EQ(r.status, tokens[i].status);
        reply_free(&r);
    }
    write_file(path, "second\n", 7);
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings reloaded"));
    struct reply r = http_ask(d.http_address, "GET", "/runs", "Authorization: Bearer second\r\n");
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    CHECK_EQ(stop_daemon(&d), 0);
}

// What is malformed or too large; the daemon goes on.
static void scenario_malformed(void) {
    const char *dir = one_session();
    const char *const args[] = {"--http-idle", "1s", NULL};
    struct daemon_proc d = start_http(dir, args);
    static const struct {
        const char *text;
        int status; // 0: the connection may just be closed
    } rows[] = {
        {"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /data?run=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /data?run=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /data?run=%4 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET runs HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /runs HTTP/1.1\r\n\r\n", 400}, // no Host
        {"GET /runs HTTP/1.0\r\n\r\n", 200},
        {"GET /runs HTTP/9.9\r\nHost: localhost\r\n\r\n", 0},
        {"\r\n\r\n\r\n", 0},
        {"\x16\x03\x01\x02\x00\x01\x00\x01", 0}, // TLS
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 411},
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", 413},
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n", 413},
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 0},
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi", 405},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int fd = http_connect(d.http_address);
        http_send_text(fd, "%s", rows[i].text);
        if (rows[i].status == 0) (void)shutdown(fd, SHUT_WR);
        struct reply r = http_read(fd, false);
        if (r.status != rows[i].status) fprintf(stderr, "%d for %s\n", r.status, rows[i].text);
        CHECK(rows[i].status ? r.status == rows[i].status : r.status == 0 || r.status >= 400);
        reply_free(&r);
        (void)close(fd);
    }
    // headers, one header, the URI, arguments: too large
    static char large[70000];
    memset(large, 'x', sizeof large - 1);
    for (int kind = 0; kind < 3; kind++) {
        const int fd = http_connect(d.http_address);
        http_send_text(fd, kind == 0 ? "GET /" : "GET /runs HTTP/1.1\r\nHost: localhost\r\n");
        if (kind == 1) http_send_text(fd, "A: ");
        for (int i = 0; kind == 2 && i < 4000; i++)
            http_send_text(fd, "A%d: 1234567890\r\n", i);
        if (kind < 2) http_send(fd, large, sizeof large - 1);
        http_send_text(fd, kind == 0 ? " HTTP/1.1\r\nHost: localhost\r\n\r\n" : "\r\n\r\n");
        struct reply r = http_read(fd, false);
        CHECK(r.status == 431 || r.status == 414 || r.status == 413 || r.status == 0);
        reply_free(&r);
        (void)close(fd);
    }
    expect(d.http_address, "/runs", 200, "run");
    CHECK_EQ(stop_daemon(&d), 0);
}

// Where there is no other header, and what Host may be: one answer, one head.
static void check_bare_heads(const char *address) {
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {"GET /runs HTTP/1.0\r\n: x\r\n\r\n", 400},
        {"GET /healthz HTTP/1.0\r\n:\r\n\r\n", 400},
        {"GET /runs HTTP/1.0\n\n", 400},
        {"GET /healthz HTTP/1.1\nHost: localhost\n\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\n\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n", 400},
        {"GET /healthz HTTP/1.1\r\n: x\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nX: y\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: local host\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost/x\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: user@localhost\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost:x\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost:99999\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
        {"GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz?a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz\tx HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: a\xff\r\n\r\n", 400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int fd = http_connect(address);
        http_send_text(fd, "%sGET /version HTTP/1.1\r\nHost: localhost\r\n\r\n", rows[i].text);
        struct reply r = http_read(fd, false);
        if (r.status != rows[i].status || !r.closed)
            fprintf(stderr, "%s: %s", rows[i].text, r.text);
        CHECK_EQ(r.status, rows[i].status);
        CHECK(r.closed && http_closes(fd, 5000));
        CHECK(r.text && !strstr(r.text + 1, "HTTP/1."));
        reply_free(&r);
        (void)close(fd);
    }
}

// Many hosts are broken, with long names: the warnings are cut so that all headers are small
// enough for proxies, and each can be decoded by itself.
// What two readers could take for one request or for two: answered once, with 400, and closed.
static void scenario_smuggling(void) {
    const char *dir = one_session();
    struct daemon_proc d = start_http(dir, NULL);
    static const char *const headers[] = {
        "Content-Length: 5\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\nContent-Length: 0\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Content-Length : 5\r\n",
        "Content-Length\x0b: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",  // folded: hides the header
        "Transfer-: chunked\r\n Encoding\r\n", // folded: makes one
        "Content-: 5\r\n Length\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length:\r\n",
        "Host: localhost\r\n",
        "no colon\r\n",
        ": x\r\n", // no name: libmicrohttpd takes it for the end of the headers
        ":\r\n",
        ": \r\n",
        "::\r\n",
        ": x\r\nContent-Length: 5\r\n",
        ":Transfer-Encoding: chunked\r\n",
        "X: y\r\n:\r\nX: z\r\n",
        "X:\r\n: \t\r\n",
        "\t: x\r\n",
    };
    static const char *const methods[] = {"GET", "POST"};
    for (size_t i = 0; i < 2 * sizeof headers / sizeof *headers; i++) {
        const int fd = http_connect(d.http_address);
        http_send_text(fd,
                       "%s /runs HTTP/1.1\r\nHost: localhost\r\n%s\r\n0\r\n\r\n"
                       "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n",
                       methods[i & 1], headers[i / 2]);
        struct reply r = http_read(fd, false);
        if (r.status != 400 || !r.closed) fprintf(stderr, "%s%s", r.text, headers[i / 2]);
        CHECK_EQ(r.status, 400);
        CHECK(r.closed && http_closes(fd, 5000));
        reply_free(&r);
        (void)close(fd);
    }
    check_bare_heads(d.http_address);
    // Ordinary ones go on: two requests on one connection, with and without a body.
    const int fd = http_connect(d.http_address);
    http_send_text(fd, "POST /runs HTTP/1.1\r\nHost:localhost\r\nContent-Length: \t5\r\n"
                       "X-Empty:\r\nX: a\tb \r\n\r\nhello"
                       "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct reply r = http_read(fd, false);
    CHECK_EQ(r.status, 405);
    CHECK(!r.closed);
    reply_free(&r);
    (void)close(fd);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Many arguments: answered, or refused at the limit, at once.
static void scenario_arguments(void) {
    enum { HOSTS = 1000, LIMIT = 4096 };
    const char *dir = make_dir();
    char from[300], to[300];
    (void)snprintf(from, sizeof from, "%s/plugins/profile/run/host-0000.xplane.pb", dir);
    add_session(dir, "run", "host-0000", profile(TRAIN));
    for (int i = 1; i < HOSTS; i++) {
        (void)snprintf(to, sizeof to, "%s/plugins/profile/run/host-%04d.xplane.pb", dir, i);
        CHECK_EQ(link(from, to), 0);
    }
    struct daemon_proc d = start_http(dir, NULL);
    char *const path = malloc(40000);
    CHECK(path);
    size_t n = (size_t)sprintf(path, "/api/v1/tool?session=run&tool=overview_page");
    for (int i = 0; i < HOSTS; i++)
        n += (size_t)sprintf(path + n, "&host=host-%04d", i);
    static const struct {
        int n, status;
    } rows[] = {{457, 200}, {470, 200}, {1001, 200}, {LIMIT, 200}, {LIMIT + 1, 414}};
    for (int i = -1; i < (int)(sizeof rows / sizeof *rows); i++) {
        if (i >= 0) n = (size_t)sprintf(path, "/runs?a=b");
        for (int k = 1; i >= 0 && k < rows[i].n; k++)
            n += (size_t)sprintf(path + n, "&a=b");
        const int fd = http_connect(d.http_address);
        http_send(fd, "GET ", 4);
        http_send(fd, path, n);
        http_send_text(fd, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
        struct reply r = http_read(fd, false);
        if (r.status != (i < 0 ? 200 : rows[i].status)) fprintf(stderr, "%d %s", i, r.body);
        CHECK_EQ(r.status, i < 0 ? 200 : rows[i].status);
        reply_free(&r);
        (void)close(fd);
    }
    free(path);
    CHECK_EQ(stop_daemon(&d), 0);
}

static void scenario_warnings(void) {
    const char *dir = one_session();
    enum { BROKEN = 12, LONG = 90 };
    for (int i = 0; i < BROKEN; i++) {
        char name[400], path[900];
        int n = snprintf(name, sizeof name, "%.*s", i % 4, "abcd"); // so that cuts fall anywhere
        for (int k = 0; k < LONG; k++)
            n += snprintf(name + n, sizeof name - (size_t)n, "\xc3\xa9");
        (void)snprintf(path, sizeof path, "%s/plugins/profile/run/%s%d.xplane.pb", dir, name, i);
        write_file(path, "\x0a\xff\xff\xff\x7f", 5);
    }
    struct daemon_proc d = start_http(dir, NULL);
    static char cookie[9000];
    memset(cookie, 'x', sizeof cookie);
    const int fd = http_connect(d.http_address);
    http_send_text(fd,
                   "GET /data?run=run&tag=overview_page HTTP/1.1\r\nHost: localhost\r\nCookie: ");
    http_send(fd, cookie, sizeof cookie);
    http_send_text(fd, "\r\n\r\n");
    struct reply r = http_read(fd, false);
    CHECK_EQ(r.status, 200);
    CHECK(strlen(r.text) < 4096);
    int n = 0;
    for (const char *at = r.text; (at = strstr(at, "Xplaned-Warning: ")); n++) {
        at += strlen("Xplaned-Warning: ");
        const size_t len = strcspn(at, "\r");
        CHECK(len <= 250 && !memchr(at, ',', len));
        const char *const last = at + len - 6;
        if (at[len - 3] == '%') CHECK(strncmp(last, "%C3%A9", 6) == 0);
    }
    CHECK_EQ(n, 9); // 8, and how many more
    reply_free(&r);
    (void)close(fd);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Connections that send nothing, or too slowly, are dropped; more than the limit get 503.
static void scenario_slow(void) {
    const char *dir = one_session();
    const char *const args[] = {"--http-idle", "1s", "--http-connections", "4", NULL};
    struct daemon_proc d = start_http(dir, args);
    int fd[6];
    for (int i = 0; i < 4; i++) {
        fd[i] = http_connect(d.http_address);
        http_send_text(fd[i], "GET /runs HTTP/1.1\r\n");
    }
    sleep_ms(200);
    struct reply r = http_get(d.http_address, "/runs");
    CHECK_EQ(r.status, 503);
    CHECK(http_header(&r, "Retry-After"));
    CHECK(http_header(&r, "Connection"));
    CHECK_STR(http_header(&r, "Connection"), "close");
    reply_free(&r);
    for (int i = 0; i < 30; i++) { // a byte now and then is no excuse
        http_send(fd[0], "A", 1);
        sleep_ms(50);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(http_closes(fd[i], 5000));
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

// SIGTERM: what is under way is answered, idle connections are closed, status 0.
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
    CHECK(http_closes(idle, 10000));
    (void)close(busy);
    (void)close(idle);
    int status;
    CHECK_EQ(waitpid(d.pid, &status, 0), d.pid); // main's alarm bounds it
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

// The daemon does not start with this, and says so.
static void expect_refused(const char *dir, const char *state, const char *option,
                           const char *value, const char *why) {
    char command[4096], path[300], text[4096] = "";
    (void)snprintf(path, sizeof path, "%s/log", state);
    (void)snprintf(command, sizeof command,
                   "timeout 20 %s --logdir %s --state-dir %s --listen 127.0.0.1:0 "
                   "--http 127.0.0.1:0 %s '%s' 2>%s",
                   getenv("XPLANED"), dir, state, option, value, path);
    const int status = system(command);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 1);
    FILE *const f = fopen(path, "r");
    CHECK(f && fread(text, 1, sizeof text - 1, f));
    (void)fclose(f);
    if (!strstr(text, why)) fprintf(stderr, "%s %s: %s", option, value, text);
    CHECK(strstr(text, why));
}

// Addresses: a name, two of them, none; what other machines reach needs a word.
static void scenario_listen(void) {
    const char *dir = one_session(), *state = make_dir();
    struct addrinfo *named = NULL; // a machine without /etc/hosts may not know the name
    const bool knows = getaddrinfo("localhost", NULL, NULL, &named) == 0;
    if (knows) freeaddrinfo(named);
    const char *const two[] = {"--http",
                               knows ? "127.0.0.1:0,localhost:0" : "127.0.0.1:0,127.0.0.2:0", NULL};
    struct daemon_proc d = start_http(dir, two);
    expect(d.http_address, "/version", 200, "2.24.2");
    CHECK_EQ(stop_daemon(&d), 0);
    const char *const open[] = {"--http", "0.0.0.0:0", "--insecure", NULL};
    d = start_http(dir, open);
    char local[64];
    (void)snprintf(local, sizeof local, "127.0.0.1:%s", strrchr(d.http_address, ':') + 1);
    struct reply r = http_ask(local, "GET", "/version", "");
    CHECK_EQ(r.status, 200);
    reply_free(&r);
    CHECK_EQ(stop_daemon(&d), 0);
    // Longer than a name may be: no resolver is asked.
    static const char no_name[] =
        "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn.invalid:1";
    static const char *const bad[] = {"0.0.0.0:0", "nonsense", "127.0.0.1:http", "127.0.0.1:99999",
                                      no_name};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(dir, state, "--http", bad[i], "--http");
}

// Names of --http-host: as many as there may be are known, one more is an error.
static void scenario_names(void) {
    enum { MOST = 32 };
    const char *dir = one_session(), *state = make_dir();
    char names[2000] = "";
    size_t n = 0;
    for (int i = 1; i <= MOST; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "p%d.example, ", i);
    const char *const args[] = {"--http-host", names, NULL};
    struct daemon_proc d = start_http(dir, args);
    for (int i = 0; i <= MOST; i++) {
        const int fd = http_connect(d.http_address);
        http_send_text(fd, "GET /version HTTP/1.1\r\nHost: p%d.example\r\n\r\n", i);
        struct reply r = http_read(fd, false);
        CHECK_EQ(r.status, i ? 200 : 403);
        reply_free(&r);
        (void)close(fd);
    }
    expect(d.http_address, "/version", 200, "2.24.2"); // by the listener's own name
    CHECK_EQ(stop_daemon(&d), 0);
    (void)snprintf(names + n, sizeof names - n, "more.example");
    expect_refused(dir, state, "--http-host", names, "more than 32 names");
    expect_refused(dir, state, "--http-host", "a.example,b.example:http", "b.example:http");
}

static void replace(const char *path, const char *with) {
    char aside[400];
    (void)snprintf(aside, sizeof aside, "%s.new", path);
    copy_file(with, aside);
    CHECK_EQ(rename(aside, path), 0);
}

// A file that the catalogue does not see change: what was made of other bytes than it saw is not
// remembered.
static void scenario_replaced(void) {
    static const char *const paths[] = {DATA, "/run_tools?run=run", "/module_list?run=run"};
    const char *dir = make_dir(), *elsewhere = make_dir();
    char file[300], link[400];
    add_session(dir, "run", "x", profile(TRAIN));
    (void)snprintf(file, sizeof file, "%s/vm", elsewhere);
    (void)snprintf(link, sizeof link, "%s/plugins/profile/run/x.xplane.pb", dir);
    CHECK_EQ(unlink(link), 0);
    (void)snprintf(link, sizeof link, "%s/plugins/profile/run/vm.xplane.pb", dir);
    copy_file(profile(TPU), file);
    CHECK_EQ(symlink(file, link), 0);
    const char *const args[] = {"--scan-interval", "1h", NULL};
    struct daemon_proc d = start_http(dir, args);
    replace(file, profile(GPU));
    struct reply before[3];
    for (size_t i = 0; i < 3; i++) {
        before[i] = http_get(d.http_address, paths[i]);
        CHECK_EQ(before[i].status, 200);
    }
    replace(file, profile(TRAIN));
    for (size_t i = 0; i < 3; i++) {
        struct reply r = http_get(d.http_address, paths[i]);
        CHECK_EQ(r.status, 200);
        if (strcmp(r.body, before[i].body) == 0) fprintf(stderr, "%s: %s\n", paths[i], r.body);
        CHECK(strcmp(r.body, before[i].body) != 0);
        reply_free(&r);
        reply_free(&before[i]);
    }
    CHECK_EQ(stop_daemon(&d), 0);
}

// A profile that takes more memory than its bytes: a plane with this many names of events.
static void write_wide(const char *path, uint32_t names) {
    enum { ENTRY = 12 };
    const uint32_t n = names * ENTRY;
    unsigned char *const p = malloc(n + 6);
    CHECK(p);
    const unsigned char head[] = {0x0a, (unsigned char)(n | 0x80), (unsigned char)(n >> 7 | 0x80),
                                  (unsigned char)(n >> 14 | 0x80), (unsigned char)(n >> 21)};
    memcpy(p, head, sizeof head);
    for (uint32_t i = 0; i < names; i++) {
        const unsigned char a = (unsigned char)(i | 0x80), b = (unsigned char)(i >> 7 | 0x80),
                            c = (unsigned char)(i >> 14 & 0x7f);
        const unsigned char entry[ENTRY] = {0x22, 10, 0x08, a, b, c, 0x12, 4, 0x08, a, b, c};
        memcpy(p + sizeof head + (size_t)i * ENTRY, entry, ENTRY);
    }
    write_file(path, p, sizeof head + n);
    free(p);
}

// Without the memory to scan a profile there is an error, and no shorter list.
static void scenario_memory(void) {
    const char *dir = one_session();
    char path[300];
    add_session(dir, "wide", "a", profile(TRAIN));
    (void)snprintf(path, sizeof path, "%s/plugins/profile/wide/a.xplane.pb", dir);
    write_wide(path, 50000);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/wide.xplane.pb", dir);
    write_wide(path, 50000);
    const char *const args[] = {"--memory-limit", "1MiB", NULL};
    struct daemon_proc d = start_http(dir, args);
    expect(d.http_address, "/run_tools?run=run", 200, "overview_page"); // as its first host says
    expect(d.http_address, "/run_tools?run=wide", 503, "memory");
    expect(d.http_address, "/module_list?run=run", 503, "memory");
    CHECK_EQ(stop_daemon(&d), 0);
    const char *const more[] = {"--memory-limit", "64MiB", NULL};
    d = start_http(dir, more);
    expect(d.http_address, "/run_tools?run=wide", 200, "overview_page");
    expect(d.http_address, "/module_list?run=run", 200, "(");
    CHECK_EQ(stop_daemon(&d), 0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {
        {"routes", scenario_routes},
        {"paths", scenario_paths},
        {"conditional", scenario_conditional},
        {"ui", scenario_ui},
        {"access", scenario_access},
        {"elsewhere", scenario_elsewhere},
        {"token", scenario_token},
        {"malformed", scenario_malformed},
        {"smuggling", scenario_smuggling},
        {"arguments", scenario_arguments},
        {"warnings", scenario_warnings},
        {"slow", scenario_slow},
        {"busy", scenario_busy},
        {"storm", scenario_storm},
        {"drain", scenario_drain},
        {"listen", scenario_listen},
        {"names", scenario_names},
        {"replaced", scenario_replaced},
        {"memory", scenario_memory},
    };
    CHECK_EQ(argc, 2);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, argv[1]) != 0) continue;
        (void)alarm(200);
        scenarios[i].run();
        return 0;
    }
    FAIL_TEST("no such scenario");
    return 1;
}
