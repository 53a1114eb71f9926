// SPDX-License-Identifier: Apache-2.0
// Who may ask the HTTP gateway: Host, Origin, other sites, tokens, names, listeners.
// Usage: test_http_access SCENARIO
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/http_fixture.h"

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

// With --token-file: clients with the token, as Bearer or Basic; SIGHUP reads it again. Whether
// work of seconds is begun for a page of another site; the same before and after the answer is
// known.
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
    struct reply r = http_ask(d.http_address, "GET", "/api/v1/fleet", rows[0].headers);
    CHECK_EQ(r.status, 403);
    reply_free(&r);
    r = http_ask(d.http_address, "GET", "/api/v1/captures", rows[0].headers);
    CHECK_EQ(r.status, 403);
    reply_free(&r);
    r = http_ask(d.http_address, "GET", "/api/v1/fleet", "User-Agent: curl/7.88.1\r\n");
    CHECK_EQ(r.status, 409); // this daemon shares nothing
    reply_free(&r);
    r = http_ask(d.http_address, "POST", "/generate_cache?session_path=run",
                 "Content-Length: 0\r\nUser-Agent: Mozilla/5.0 (old)\r\n");
    CHECK_EQ(r.status, 403);
    reply_free(&r);
    // The pages themselves open for every client that follows a link, and in no frame.
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

// What changes something needs a role; the rest needs any.  The same before and after an answer is
// known.
static void scenario_roles(void) {
    static const char file[] = "see read\ntake capture\nown admin\n";
    static const struct {
        const char *method, *path;
        bool captures; // needs that role, or more
    } routes[] = {
        {"GET", DATA, false},
        {"GET", "/api/v1/sessions", false},
        {"GET", "/api/v1/captures", false},
        {"GET", "/api/v1/history", false},
        {"POST", "/api/v1/label?session=none&add=a", true},
        {"POST", "/capture_profile", true},
        {"GET", "/capture_profile", true},
    };
    static const char *const tokens[] = {"see", "take", "own"};
    const char *dir = one_session(), *token = make_dir();
    char path[256], headers[160];
    (void)snprintf(path, sizeof path, "%s/token", token);
    write_file(path, file, sizeof file - 1);
    const char *const secret[] = {"--token-file", path, NULL};
    struct daemon_proc d = start_http(dir, secret);
    for (size_t i = 0; i < 2 * sizeof tokens / sizeof *tokens; i++)
        for (size_t k = 0; k < sizeof routes / sizeof *routes; k++) {
            const size_t who = i % (sizeof tokens / sizeof *tokens);
            (void)snprintf(headers, sizeof headers,
                           "Authorization: Bearer %s\r\nXplaned-Request: 1\r\n%s", tokens[who],
                           routes[k].method[0] == 'P' ? "Content-Length: 0\r\n" : "");
            struct reply r = http_ask(d.http_address, routes[k].method, routes[k].path, headers);
            if ((r.status == 403) != (routes[k].captures && who == 0))
                fprintf(stderr, "%s %s: %d\n", tokens[who], routes[k].path, r.status);
            CHECK_EQ(r.status == 403, routes[k].captures && who == 0);
            CHECK(r.status != 401);
            reply_free(&r);
        }
    CHECK_EQ(stop_daemon(&d), 0);
}

// The daemon does not start with this, and says so.
static void expect_refused(const char *dir, const char *state, const char *option,
                           const char *value, const char *why) {
    char command[4096], path[300], text[4096] = "";
    (void)snprintf(path, sizeof path, "%s/log", state);
    (void)snprintf(command, sizeof command,
                   "timeout 60 %s --logdir %s --state-dir %s --listen 127.0.0.1:0 "
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
    // Longer than a name may be: no resolver gets it.
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

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"access", scenario_access}, {"elsewhere", scenario_elsewhere}, {"token", scenario_token},
        {"roles", scenario_roles},   {"listen", scenario_listen},       {"names", scenario_names},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
