// SPDX-License-Identifier: Apache-2.0
// Imports and removals of sessions by a real daemon.  Usage: test_imports SCENARIO
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/tools/tool.h"
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
    // A file that is not a profile: it leaves nothing of the session.
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
    CHECK_EQ(mkfifo(garbage, 0600), 0); // no process writes to it
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

// Links below LOGDIR are read through, and never written or deleted through.
static void scenario_links(void) {
    const char *dir = make_dir(), *out = make_dir(), *state = make_dir();
    char command[2000], session[64];
    static const char *const deletes[] = {"--no-prefetch", "--allow-delete", "--links-anywhere",
                                          NULL};
    add_session(out, "run", "vm", profile(TRAIN));
    (void)snprintf(command, sizeof command,
                   "mkdir -p %s/myplugins/profile/thesis %s/plugins/profile && "
                   "cp %s %s/myplugins/profile/thesis/vm.xplane.pb && "
                   "touch %s/myplugins/profile/thesis/thesis.tex && ln -s %s %s/link && "
                   "ln -s %s/plugins/profile/run %s/plugins/profile/linked",
                   dir, dir, profile(TRAIN), dir, dir, out, dir, out, dir);
    CHECK_EQ(system(command), 0);
    struct daemon_proc d = start_daemon(dir, state, deletes);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    CHECK(has_sessions(c, 3));
    CHECK_STATUS(xpl_client_delete_session(c, "link/run", &r), XPL_FAILED_PRECONDITION, NULL);
    CHECK_STATUS(xpl_client_delete_session(c, "linked", &r), XPL_FAILED_PRECONDITION, NULL);
    CHECK_EQ(xpl_client_delete_session(c, "myplugins/profile/thesis", &r), 0);
    const xpl_import_file one[] = {{.path = profile(TRAIN), .host = "b"}};
    const xpl_import_request q = {
        .size = sizeof q, .files = one, .n_files = 1, .session = "linked"};
    CHECK_STATUS(xpl_client_import(c, &q, session, sizeof session, &r), XPL_FAILED_PRECONDITION,
                 NULL);
    (void)snprintf(command, sizeof command,
                   "cmp %s %s/plugins/profile/run/vm.xplane.pb && test $(ls %s/plugins/profile/run "
                   "| wc -l) = 1 && test -e %s/myplugins/profile/thesis/thesis.tex && "
                   "! test -e %s/myplugins/profile/thesis/vm.xplane.pb",
                   profile(TRAIN), out, out, dir, dir);
    CHECK_EQ(system(command), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    // Without --links-anywhere they are not even read.
    d = start_daemon(dir, state, plain);
    c = open_client(&d, 60000);
    CHECK(has_sessions(c, 0));
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
    kill_daemon(&d, SIGKILL); // the disk keeps the received bytes
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

// A call that announces the file `host` of 10 bytes and sends `send` of them.
static struct xpl_rpc_stream *begin_import(struct xpl_rpc_channel *ch, const char *session,
                                           const char *host, size_t send) {
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 60000};
    struct xpl_rpc_stream *s = NULL;
    CHECK_OK(xpl_rpc_duplex_open(ch, "/xplaned.v1.SessionService/ImportSession", &o, &s, NULL),
             NULL);
    import_msg m;
    Xplaned__V1__ImportSessionRequest__File f;
    xplaned__v1__import_session_request__init(&m);
    xplaned__v1__import_session_request__file__init(&f);
    f.host = (char *)(uintptr_t)host;
    f.bytes = 10;
    m.session = (char *)(uintptr_t)session;
    m.file = &f;
    send_import(s, &m);
    if (!send) return s;
    xplaned__v1__import_session_request__init(&m);
    m.data.data = (uint8_t *)(uintptr_t) "0123456789";
    m.data.len = send;
    send_import(s, &m);
    return s;
}

static xpl_status_t next_reply(struct xpl_rpc_stream *s) {
    struct xpl_rpc_reply reply = {0};
    bool more = false;
    const xpl_status_t st = xpl_rpc_stream_next(s, &reply, &more, NULL);
    xpl_rpc_reply_fini(&reply);
    return st;
}

// Files below incoming/ that the daemon has open.
static int open_parts(const struct daemon_proc *d) {
    char command[200], text[32] = "";
    (void)snprintf(command, sizeof command, "ls -l /proc/%ld/fd | grep -c '[.]part$'",
                   (long)d->pid);
    FILE *const p = popen(command, "r");
    CHECK(p && fgets(text, sizeof text, p));
    (void)pclose(p);
    return (int)strtol(text, NULL, 10);
}

// As many imports as there may be, which send nothing more, or next to nothing: others get through.
static void scenario_idle(void) {
    enum { AT_ONCE = 32 }; // all of them begin before the first has been idle for too long
    const char *dir = make_dir(), *state = make_dir();
    static const char *const idle[] = {"--no-prefetch", "--import-idle", "5s", NULL};
    struct daemon_proc d = start_daemon(dir, state, idle);
    struct xpl_rpc_channel *ch = open_channel(d.address);
    struct xpl_rpc_stream *s[AT_ONCE];
    char host[32];
    for (int i = 0; i < AT_ONCE; i++) {
        (void)snprintf(host, sizeof host, "h%d", i);
        s[i] = begin_import(ch, "idle", host, (size_t)(i & 1));
        CHECK_OK(next_reply(s[i]), NULL);
    }
    struct xpl_rpc_stream *const over = begin_import(ch, "idle", "over", 0);
    CHECK_STATUS(next_reply(over), XPL_RESOURCE_EXHAUSTED, NULL);
    xpl_rpc_stream_close(over);
    import_msg m; // one byte now and then
    xplaned__v1__import_session_request__init(&m);
    m.data.data = (uint8_t *)(uintptr_t) "x";
    m.data.len = 1;
    for (int i = 0; i < 9; i++) {
        struct xpl_buf b;
        xpl_buf_init(&b, 1000);
        xpl_rpc_message_put(&b, &m.base);
        if (!xpl_rpc_stream_send(s[0], (xpl_bytes_t){b.p, b.n})) i = 9; // it has ended
        xpl_buf_fini(&b);
        sleep_ms(700);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        CHECK_STATUS(next_reply(s[i]), XPL_DEADLINE_EXCEEDED, NULL);
        xpl_rpc_stream_close(s[i]);
    }
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    const xpl_import_file one[] = {{.path = profile(TRAIN)}};
    const xpl_import_request q = {.size = sizeof q, .files = one, .n_files = 1, .session = "run"};
    CHECK_EQ(xpl_client_import(c, &q, NULL, 0, &r), 0);
    xpl_client_close(c);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
}

// An import of many files holds one descriptor at most.
static void scenario_descriptors(void) {
    enum { FILES = 60 };
    const char *dir = make_dir(), *state = make_dir();
    struct daemon_proc d = start_daemon(dir, state, plain);
    struct xpl_rpc_channel *ch = open_channel(d.address);
    char host[32];
    import_msg m;
    struct xpl_rpc_stream *const many = begin_import(ch, "many", "first", 10);
    CHECK_OK(next_reply(many), NULL);
    for (int i = 0; i < FILES; i++) {
        Xplaned__V1__ImportSessionRequest__File f;
        xplaned__v1__import_session_request__init(&m);
        xplaned__v1__import_session_request__file__init(&f);
        (void)snprintf(host, sizeof host, "h%d", i);
        f.host = host;
        f.bytes = 10;
        m.file = &f;
        send_import(many, &m);
        CHECK_OK(next_reply(many), NULL);
        xplaned__v1__import_session_request__init(&m);
        m.data.data = (uint8_t *)(uintptr_t) "0123456789";
        m.data.len = 10;
        send_import(many, &m);
    }
    CHECK(open_parts(&d) <= 1);
    xpl_rpc_stream_close(many);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Abandoned parts make room for others.
static void scenario_limit(void) {
    const char *dir = make_dir(), *state = make_dir();
    static const char *const limit[] = {"--no-prefetch", "--import-limit", "1MiB", NULL};
    struct daemon_proc d = start_daemon(dir, state, limit);
    struct xpl_rpc_channel *ch = open_channel(d.address);
    const size_t n = 700 << 10;
    uint8_t *const p = calloc(1, n);
    CHECK(p);
    xpl_status_t st = XPL_OK;
    // Broken ones, of which one fits. Many: a client that has read a status may send the next at
    // once.
    for (uint32_t crc = 1; crc <= 60; crc++) {
        CHECK_EQ(send_part(ch, p, n, n - 1, crc, true, &st), 0);
        CHECK_STATUS(st, XPL_INVALID_ARGUMENT, NULL);
    }
    char command[200];
    (void)snprintf(command, sizeof command, "test $(du -sk %s/incoming | cut -f1) -lt 1024", state);
    CHECK_EQ(system(command), 0);
    CHECK_EQ(send_part(ch, p, 2 * n, n, 99, true, &st), 0); // the part of before goes
    CHECK_STATUS(st, XPL_INVALID_ARGUMENT, NULL);
    free(p);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Bundles of IREE: imported, found anywhere in LOGDIR, and asked for their own reports. Tools of
// XSpaces answer for the bundle as one: a trace, its details, and sums of ops.
static void check_views(xpl_client *c, const char *session) {
    static const struct {
        const char *tool, *key, *value, *expected;
    } asked[] = {{"trace_viewer@", NULL, NULL, "mlp_dispatch_0_matmul_64x256x784_f32"},
                 {"trace_viewer@", "resolution", "100", "host queue events"},
                 {"trace_viewer", NULL, NULL, "queue execute"},
                 {"op_profile", NULL, NULL, "mlp_dispatch_0_matmul_64x256x784_f32"},
                 {"framework_op_stats", NULL, NULL, "\"matmul\""}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const char *const option[] = {asked[i].key, asked[i].value};
        xpl_tool_request q = {
            .size = sizeof q, .session = session, .tool = asked[i].tool, .options = option};
        q.n_options = asked[i].key != NULL;
        xpl_answer *a = NULL;
        xpl_result r;
        size_t len;
        CHECK_EQ(xpl_client_tool(c, &q, &a, &r), 0);
        const char *const text = xpl_answer_data(a, &len);
        CHECK(memmem(text, len, asked[i].expected, strlen(asked[i].expected)));
        xpl_answer_free(a);
    }
}

// A bundle that is cut: tools of all kinds say where and why, in addition to the answer.
static void check_warnings(xpl_client *c, const char *session, bool is_cut) {
    static const char *const tools[] = {"iree_summary", "trace_viewer@", "trace_viewer",
                                        "op_profile"};
    for (size_t i = 0; i < 2 * sizeof tools / sizeof *tools; i++) { // also from where it is kept
        xpl_answer *a = NULL;
        xpl_result r;
        size_t len, found = 0;
        CHECK_EQ(ask_tool(c, session, tools[i / 2], NULL, &a, &r), 0);
        (void)xpl_answer_data(a, &len);
        for (size_t k = 0; xpl_answer_warning(a, k); k++)
            found += strstr(xpl_answer_warning(a, k), "extends past file") != NULL;
        CHECK_EQ(found != 0, is_cut);
        xpl_answer_free(a);
    }
}

static void cut_bundle(const char *dir) {
    char command[700];
    (void)snprintf(command, sizeof command, "head -c 7000 %s > %s/cut.ireeprof",
                   profile("iree/task-mlp-all.ireeprof"), dir);
    CHECK_EQ(system(command), 0);
}

// Imports the first `n` bytes of a bundle, of which the file says that it has `stated`.
static int import_grown(xpl_client *c, const char *mine, const char *session, size_t n,
                        uint64_t stated) {
    const char *const bundle = profile("iree/task-mlp-all.ireeprof");
    size_t all;
    uint8_t *const p = read_file(bundle, &all);
    char path[300], name[64];
    xpl_result r;
    CHECK(n <= all);
    memcpy(p + 16, &stated, sizeof stated);
    (void)snprintf(path, sizeof path, "%s/h.ireeprof", mine);
    write_file(path, p, n);
    free(p);
    const xpl_import_file file = {.path = path, .host = "h"};
    const xpl_import_request q = {
        .size = sizeof q, .files = &file, .n_files = 1, .session = session, .grows = 1};
    return xpl_client_import(c, &q, name, sizeof name, &r);
}

// A bundle that is imported again and again while it grows: one session, whose answers change with
// it. Nothing else takes the place of a file.
static void scenario_grows(void) {
    const char *dir = make_dir(), *state = make_dir(), *mine = make_dir();
    char path[300], session[64];
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    CHECK_EQ(import_grown(c, mine, "run", 4000, 0), 0);
    check_warnings(c, "run", true);
    CHECK_EQ(import_grown(c, mine, "run", 7000, 0), 0);
    check_warnings(c, "run", true);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/h.ireeprof", dir);
    struct stat sb;
    CHECK(stat(path, &sb) == 0 && sb.st_size == 7000);
    CHECK_EQ(import_grown(c, mine, "run", 4000, 0), XPL_ALREADY_EXISTS); // it was longer
    size_t all;
    free(read_file(profile("iree/task-mlp-all.ireeprof"), &all));
    CHECK_EQ(import_grown(c, mine, "run", all, all), 0);
    check_warnings(c, "run", false);
    CHECK(same_files(path, profile("iree/task-mlp-all.ireeprof")));
    CHECK(has_sessions(c, 1));
    // While another client stores one there, nobody can know which files would be replaced.
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run", dir);
    const int held = open(path, O_RDONLY | O_DIRECTORY);
    CHECK(held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0);
    CHECK_EQ(import_grown(c, mine, "run", all, all), XPL_ABORTED);
    CHECK_EQ(close(held), 0);
    CHECK_EQ(import_grown(c, mine, "run", all, all), 0);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/h.ireeprof", dir);
    // Others: another bundle, one of another format, two files, the same without the word.
    xpl_import_file files[] = {{.path = profile("iree/sync-mlp-all.ireeprof"), .host = "h"},
                               {.path = profile("iree/sync-mlp-all.ireeprof"), .host = "b"}};
    xpl_import_request q = {
        .size = sizeof q, .files = files, .n_files = 1, .session = "run", .grows = 1};
    CHECK_EQ(xpl_client_import(c, &q, session, sizeof session, &r), XPL_ALREADY_EXISTS);
    q.n_files = 2;
    CHECK_EQ(xpl_client_import(c, &q, session, sizeof session, &r), XPL_INVALID_ARGUMENT);
    q.n_files = 1;
    files[0].path = profile(TRAIN);
    CHECK_EQ(xpl_client_import(c, &q, session, sizeof session, &r), XPL_INVALID_ARGUMENT);
    files[0].path = profile("iree/task-mlp-all.ireeprof");
    q.grows = 0;
    CHECK_EQ(xpl_client_import(c, &q, session, sizeof session, &r), XPL_ALREADY_EXISTS);
    CHECK(same_files(path, profile("iree/task-mlp-all.ireeprof")));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

static void scenario_bundles(void) {
    const char *dir = make_dir(), *state = make_dir();
    char path[300], session[64];
    (void)snprintf(path, sizeof path, "%s/plain.ireeprof", dir);
    copy_file(profile("iree/sync-mlp-all.ireeprof"), path);
    cut_bundle(dir);
    struct daemon_proc d = start_daemon(dir, state, plain);
    xpl_client *c = open_client(&d, 60000);
    xpl_result r;
    check_warnings(c, "cut", true);
    check_warnings(c, "plain", false);
    const xpl_import_file file = {.path = profile("iree/sync-mlp-all.ireeprof"), .host = "b"};
    const xpl_import_request q = {.size = sizeof q, .files = &file, .n_files = 1, .session = "run"};
    CHECK_EQ(xpl_client_import(c, &q, session, sizeof session, &r), 0);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/b.ireeprof", dir);
    CHECK(same_files(path, profile("iree/sync-mlp-all.ireeprof")));
    // The daemon knows the suffixes of formats: the host's name lacks them.
    const xpl_import_file unnamed = {.path = file.path};
    const xpl_import_request own = {
        .size = sizeof own, .files = &unnamed, .n_files = 1, .session = "own"};
    CHECK_EQ(xpl_client_import(c, &own, session, sizeof session, &r), 0);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/own/sync-mlp-all.ireeprof", dir);
    CHECK(same_files(path, file.path));
    static const char *const names[] = {"run", "plain"};
    for (size_t i = 0; i < 2; i++) {
        xpl_answer *a = NULL;
        for (int again = 0; again < 2; again++) {
            CHECK_EQ(ask_tool(c, names[i], "iree_summary", NULL, &a, &r), 0);
            size_t len;
            const char *const text = xpl_answer_data(a, &len);
            CHECK(len > 18 && memcmp(text, "{\"type\":\"summary\"", 17) == 0);
            if (again) CHECK_STR(xpl_answer_source(a), "memory");
            xpl_answer_free(a);
        }
        CHECK_STATUS(ask_tool(c, names[i], "overview_page", NULL, NULL, &r),
                     XPL_FAILED_PRECONDITION, NULL);
        xpl_sessions *s = NULL;
        CHECK_EQ(xpl_client_session(c, names[i], &s, NULL), 0);
        const xpl_session_info *const info = xpl_sessions_get(s, 0);
        CHECK(info->n_tools > 10);
        CHECK_STR(info->kind, "iree");
        size_t views = 0;
        for (size_t k = 0; k < info->n_tools; k++) {
            const bool is_view =
                xpl_tool_form(xpl_tool_find(xpl_str_from(info->tools[k]))) == XPL_FORM_XSPACE;
            CHECK(is_view != (strncmp(info->tools[k], "iree_", 5) == 0));
            views += is_view;
        }
        CHECK(views >= 5);
        check_views(c, names[i]);
        xpl_sessions_free(s);
    }
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"import", scenario_import},   {"resume", scenario_resume},
                     {"links", scenario_links},     {"idle", scenario_idle},
                     {"limit", scenario_limit},     {"descriptors", scenario_descriptors},
                     {"bundles", scenario_bundles}, {"grows", scenario_grows}};
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    (void)fprintf(stderr, "usage: test_imports SCENARIO\n");
    return 2;
}
