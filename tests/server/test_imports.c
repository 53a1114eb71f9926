// SPDX-License-Identifier: Apache-2.0
// Imports and removals of sessions by a real daemon.  Usage: test_imports SCENARIO
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crc32.h"
#include "base/status.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "rpc/message.h"
#include "tests/server/captures_fixture.h"

static bool same_files(const char *a, const char *b) {
    char command[1200];
    (void)snprintf(command, sizeof command, "cmp -s '%s' '%s'", a, b);
    return system(command) == 0;
}

static void scenario_import(void) {
    const char *dir = make_dir(), *state = make_dir(), *mine = make_dir();
    char path[300], garbage[300], session[64];
    static const char *const deletes[] = {"--no-prefetch", "--allow-delete", NULL};
    struct daemon_proc d = start_daemon(dir, state, deletes);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    const xpl_import_file two[] = {{.path = profile(TRAIN)}, {.path = profile(TRAIN), .host = "b"}};
    xpl_import_request q = {.size = sizeof q, .files = two, .n_files = 2, .session = "run"};
    CHECK_EQ(xpl_client_import(c, &q, session, sizeof session, &r), 0);
    CHECK_STR(session, "run");
    CHECK_EQ(ask_tool(c, "run", "overview_page", NULL, NULL, &r), 0);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/vm.xplane.pb", dir);
    CHECK(same_files(path, profile(TRAIN)));
    CHECK_STATUS(xpl_client_import(c, &q, session, sizeof session, &r), XPL_ALREADY_EXISTS, NULL);
    // One that is no profile: nothing of the session is there.
    (void)snprintf(garbage, sizeof garbage, "%s/bad.xplane.pb", mine);
    write_file(garbage, "\x0a\xff\xff\x03zz", 6);
    const xpl_import_file mixed[] = {{.path = profile(TRAIN)}, {.path = garbage}};
    q.files = mixed;
    q.session = "mixed";
    CHECK_STATUS(xpl_client_import(c, &q, session, sizeof session, &r), XPL_DATA_LOSS, NULL);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/mixed", dir);
    CHECK(access(path, F_OK) != 0);
    write_file(garbage, "", 0);
    CHECK_STATUS(xpl_client_import(c, &q, session, sizeof session, &r), XPL_DATA_LOSS, NULL);
    CHECK(access(path, F_OK) != 0);
    CHECK_EQ(unlink(garbage), 0);
    CHECK_EQ(mkfifo(garbage, 0600), 0); // nobody writes to it
    CHECK_STATUS(xpl_client_import(c, &q, session, sizeof session, &r), XPL_INVALID_ARGUMENT, NULL);
    q.files = two;
    q.session = "../up";
    CHECK_STATUS(xpl_client_import(c, &q, session, sizeof session, &r), XPL_INVALID_ARGUMENT, NULL);
    // Without a name it gets one, and never joins another session.
    q.session = NULL;
    q.n_files = 1;
    CHECK_EQ(xpl_client_import(c, &q, session, sizeof session, &r), 0);
    CHECK(has_sessions(c, 2));
    CHECK_EQ(xpl_client_delete_session(c, session, &r), 0);
    CHECK(has_sessions(c, 1));
    CHECK_STATUS(xpl_client_delete_session(c, session, &r), XPL_NOT_FOUND, NULL);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    d = start_daemon(dir, state, plain);
    c = open_client(&d, 60000);
    CHECK_STATUS(xpl_client_delete_session(c, "run", &r), XPL_PERMISSION_DENIED, NULL);
    CHECK(has_sessions(c, 1));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

typedef Xplaned__V1__ImportSessionRequest import_msg;

static void send_import(struct xpl_rpc_stream *s, const import_msg *m) {
    struct xpl_buf b;
    xpl_buf_init(&b, 8 << 20);
    xpl_rpc_message_put(&b, &m->base);
    CHECK(!b.failed && xpl_rpc_stream_send(s, (xpl_bytes_t){b.p, b.n}));
    xpl_buf_fini(&b);
}

// Begins an import of `n` bytes and sends the first `send`; returns the offset to go on from.
static uint64_t send_part(struct xpl_rpc_channel *ch, const uint8_t *p, size_t n, size_t send,
                          uint32_t crc, bool end, xpl_status_t *ret_status) {
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 60000};
    struct xpl_rpc_stream *s = NULL;
    struct xpl_rpc_reply reply = {0};
    struct xpl_arena arena;
    ProtobufCMessage *msg = NULL;
    bool more = false;
    import_msg m;
    Xplaned__V1__ImportSessionRequest__File f;
    xplaned__v1__import_session_request__init(&m);
    xplaned__v1__import_session_request__file__init(&f);
    f.host = (char *)(uintptr_t) "h";
    f.bytes = n;
    f.crc32 = crc;
    m.session = (char *)(uintptr_t) "resumed";
    m.file = &f;
    CHECK_OK(xpl_rpc_duplex_open(ch, "/xplaned.v1.SessionService/ImportSession", &o, &s, NULL),
             NULL);
    send_import(s, &m);
    CHECK_OK(xpl_rpc_stream_next(s, &reply, &more, NULL), NULL);
    CHECK(more);
    xpl_arena_init(&arena, 1 << 20);
    CHECK_OK(xpl_rpc_message_unpack(&xplaned__v1__import_session_response__descriptor, reply.bytes,
                                    &arena, &msg, NULL),
             NULL);
    const uint64_t at = ((Xplaned__V1__ImportSessionResponse *)msg)->offset;
    xplaned__v1__import_session_request__init(&m);
    m.data.data = (uint8_t *)(uintptr_t)p + at;
    m.data.len = send - (size_t)at;
    send_import(s, &m);
    if (end) xpl_rpc_stream_send_end(s);
    if (end) *ret_status = xpl_rpc_stream_next(s, &reply, &more, NULL);
    xpl_rpc_reply_fini(&reply);
    xpl_rpc_stream_close(s);
    xpl_arena_fini(&arena);
    return at;
}

static void scenario_resume(void) {
    const char *dir = make_dir(), *state = make_dir();
    struct daemon_proc d = start_daemon(dir, state, plain);
    struct xpl_rpc_channel *ch = open_channel(d.address);
    size_t n;
    uint8_t *p = read_file(profile(TRAIN), &n);
    const uint32_t crc = xpl_crc32(0, (xpl_bytes_t){p, n});
    xpl_status_t st = XPL_OK;
    // Half of it, then the connection is gone: the rest is taken once it is noticed.
    CHECK_EQ(send_part(ch, p, n, n, crc + 1, true, &st), 0);
    CHECK_STATUS(st, XPL_DATA_LOSS, NULL); // the checksum is another one
    CHECK_EQ(send_part(ch, p, n, n / 2, crc, true, &st), 0);
    CHECK_STATUS(st, XPL_INVALID_ARGUMENT, NULL); // it ended too early
    xpl_rpc_channel_close(ch);
    kill_daemon(&d, SIGKILL); // what came is kept by the disk
    d = start_daemon(dir, state, plain);
    ch = open_channel(d.address);
    CHECK_EQ(send_part(ch, p, n, n, crc, true, &st), n / 2);
    CHECK_OK(st, NULL);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/resumed/h.xplane.pb", dir);
    CHECK(same_files(path, profile(TRAIN)));
    // The part is gone.
    CHECK_EQ(send_part(ch, p, n, n, crc, true, &st), 0);
    CHECK_STATUS(st, XPL_ALREADY_EXISTS, NULL);
    free(p);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"import", scenario_import}, {"resume", scenario_resume}};
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    (void)fprintf(stderr, "usage: test_imports SCENARIO\n");
    return 2;
}
