// SPDX-License-Identifier: Apache-2.0
// What the HTTP gateway keeps: conditional requests, ranges, replaced profiles, too little memory.
// Usage: test_http_cache SCENARIO
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/http_fixture.h"

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

static void replace(const char *path, const char *with) {
    char aside[400];
    (void)snprintf(aside, sizeof aside, "%s.new", path);
    copy_file(with, aside);
    CHECK_EQ(rename(aside, path), 0);
}

// A file that the catalogue does not see change: products of other bytes than it saw are not
// cached.
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
    const char *const args[] = {"--scan-interval", "1h", "--links-anywhere", NULL};
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
    static const struct scenario all[] = {
        {"conditional", scenario_conditional},
        {"replaced", scenario_replaced},
        {"memory", scenario_memory},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
