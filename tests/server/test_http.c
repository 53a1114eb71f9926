// SPDX-License-Identifier: Apache-2.0
// The HTTP gateway from outside: routes, paths, arguments, warnings, pages.  Usage: test_http
// SCENARIO
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/http_fixture.h"

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
        {"/data_csv?run=run&tag=overview_page&host=vm", 200,
         "\"Time (%)\",\"Cumulative time (%)\""},
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
        {"/api/v1/tools", 200, "\"name\":\"iree_summary\",\"title\":\"IREE summary\""},
        {"/api/v1/tools", 200, "\"title\":\"Framework op stats\""},
        {"/api/v1/tools?session=run", 200, "{\"tools\":[{\"name\":\"collectives\","},
        {"/api/v1/tools?session=run", 200, "\"total_time\":\"us\""},
        {"/api/v1/tools?session=none", 200, "{\"tools\":[]}"},
        {"/api/v1/server", 200, "\"uptime_ms\":"},
        {"/api/v1/fleet", 409, "this daemon shares no database"},
        {"/api/v1/captures", 200, "{\"enabled\":true,\"captures\":[],\"schedules\":[]}"},
        {"/api/v1/tool?session=run&tool=op_profile", 200, "byProgram"},
        {"/api/v1/csv?session=run&tool=framework_op_stats", 200, "\"Rank\""},
        {"/api/v1/csv?session=run&tool=overview_page", 200,
         "\"Time (fraction of 1)\",\"Cumulative time (fraction of 1)\""},
        {"/api/v1/csv?session=run&tool=framework_op_stats", 200,
         "\"Total self-time on Device (fraction of 1)\""},
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

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"routes", scenario_routes},
        {"paths", scenario_paths},
        {"arguments", scenario_arguments},
        {"warnings", scenario_warnings},
        {"ui", scenario_ui},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
