// SPDX-License-Identifier: Apache-2.0
// How the daemon runs: stopping, settings, listeners, tokens, watching, an XProf worker's contract.
// Usage: test_daemon_life SCENARIO
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "proto/xplaned/v1/session.pb-c.h"
#include "proto/xprof/worker_service.pb-c.h"
#include "rpc/client.h"
#include "rpc/message.h"
#include "server/roles.h"
#include "tests/check.h"
#include "tests/server/daemon_fixture.h"
#include "tests/server/harness.h"

static void *asking(void *arg) {
    struct storm *s = arg;
    xpl_client *c = open_client(s->d, 60000);
    static const char *const bypass[] = {"use_saved_result", "false"};
    for (;;) {
        const xpl_tool_request q = {.size = sizeof q,
                                    .session = "run",
                                    .tool = "overview_page",
                                    .options = bypass,
                                    .n_options = 1};
        xpl_answer *a = NULL;
        xpl_result r;
        const int code = xpl_client_tool(c, &q, &a, &r);
        xpl_answer_free(a);
        pthread_mutex_lock(&s->mu);
        s->ok += code == 0;
        s->other += code != 0 && code != XPL_UNAVAILABLE && code != XPL_CANCELLED;
        pthread_mutex_unlock(&s->mu);
        if (code) break;
    }
    xpl_client_close(c);
    return NULL;
}

// SIGTERM under load: running calls are answered, later calls are UNAVAILABLE, status 0.
static void scenario_drain(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    struct storm s = {.d = &d, .mu = PTHREAD_MUTEX_INITIALIZER};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, asking, &s), 0);
    bool answered = false;
    for (int i = 0; i < 400 && !answered; i++) {
        sleep_ms(i ? 50 : 300);
        pthread_mutex_lock(&s.mu);
        answered = s.ok > 0;
        pthread_mutex_unlock(&s.mu);
    }
    CHECK_EQ(stop_daemon(&d), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    CHECK(s.ok > 0);
    CHECK_EQ(s.other, 0);
    CHECK(log_has(&d, "msg=stopped"));
}

// Clients in a separate process: each has made a request, and stays connected.
static pid_t start_idle_clients(const struct daemon_proc *d) {
    int told[2];
    char c = 0;
    CHECK_EQ(pipe(told), 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(told[0]);
        for (size_t i = 0; i < 8; i++)
            CHECK_EQ(ask_tool(open_client(d, 60000), "run", "kernel_stats", NULL, NULL, NULL), 0);
        CHECK_EQ(write(told[1], "x", 1), 1);
        for (;;)
            (void)pause();
    }
    (void)close(told[1]);
    CHECK_EQ(read(told[0], &c, 1), 1);
    (void)close(told[0]);
    return pid;
}

// Clients that are connected and do nothing, not even read from their connections, hold nothing up:
// they are stopped, so that they end no connection by themselves, and nothing else ends it.
static void scenario_idle_clients(void) {
    const char *dir = make_dir(), *state = make_dir();
    const char *const args[] = {"--no-prefetch", "--grace", "1h", NULL};
    add_session(dir, "run", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, args);
    const pid_t clients = start_idle_clients(&d);
    CHECK_EQ(kill(clients, SIGSTOP), 0);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK_EQ(kill(clients, SIGKILL), 0);
    CHECK_EQ(waitpid(clients, NULL, 0), clients);
}

// Exit status of a daemon that is started with `args`, which are wrong.
static int refused(const char *logdir, const char *args) {
    char command[512];
    (void)snprintf(command, sizeof command, "exec \"$XPLANED\" --logdir %s %s 2>/dev/null", logdir,
                   args);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Wrong settings are refused before anything starts: counts are digits, a file is a file.
static void wrong_settings(const char *dir) {
    char long_line[6000], path[256], args[300];
    CHECK_EQ(refused(dir, "--workers 1.5"), 2);
    CHECK_EQ(refused(dir, "--workers 0x2"), 2);
    CHECK_EQ(refused(dir, "--memory-limit 0x10"), 2);
    CHECK_EQ(refused(dir, "--log nonsense"), 2);
    CHECK_EQ(refused(dir, "--config /tmp"), 2);
    memset(long_line, 'x', sizeof long_line);
    memcpy(long_line, "listen = ", 9);
    (void)snprintf(path, sizeof path, "%s/long.conf", dir);
    write_file(path, long_line, sizeof long_line);
    (void)snprintf(args, sizeof args, "--config %s", path);
    CHECK_EQ(refused(dir, args), 2);
    CHECK_EQ(refused(dir, "--state-dir /dev/null/x --listen 127.example.com:0"), 1);
}

static void scenario_reload(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char path[256];
    wrong_settings(dir);
    (void)snprintf(path, sizeof path, "%s/xplaned.conf", state);
    write_file(path, "log = info\n", 11);
    const char *const args[] = {"--no-prefetch", "--config", path, NULL};
    struct daemon_proc d = start_daemon(dir, state, args);
    write_file(path, "log = nonsense\n", 15);
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings not reloaded"));
    write_file(path, "# quiet\nlog = info,request:error\n", 33);
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings reloaded"));
    xpl_client *c = open_client(&d, 60000);
    CHECK_EQ(ask_tool(c, "run", "kernel_stats", NULL, NULL, NULL), 0);
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
    FILE *f = fopen(d.log_path, "r");
    char line[4096];
    while (f && fgets(line, sizeof line, f))
        CHECK(!strstr(line, "tool=kernel_stats"));
    CHECK(f);
    (void)fclose(f);
}

// ---- watching ----

static Xplaned__V1__SessionEvent__Kind next_event(struct xpl_rpc_stream *st, char *name,
                                                  size_t size) {
    struct xpl_rpc_reply msg = {0};
    struct xpl_error err = {0};
    bool more = false;
    CHECK_EQ(xpl_rpc_stream_next(st, &msg, &more, &err), XPL_OK);
    CHECK(more);
    struct xpl_arena arena;
    xpl_arena_init(&arena, 1 << 20);
    ProtobufCMessage *m = NULL;
    CHECK_EQ(xpl_rpc_message_unpack(&xplaned__v1__session_event__descriptor, msg.bytes, &arena, &m,
                                    &err),
             XPL_OK);
    const Xplaned__V1__SessionEvent *ev = (const Xplaned__V1__SessionEvent *)m;
    (void)snprintf(name, size, "%s", ev->session ? ev->session->name : "");
    const Xplaned__V1__SessionEvent__Kind kind = ev->kind;
    xpl_arena_fini(&arena);
    xpl_rpc_reply_fini(&msg);
    return kind;
}

static void scenario_watch(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "one", "vm", any_profile());
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_error err = {0};
    const struct xpl_rpc_channel_options co = {.size = sizeof co, .target = d.address};
    CHECK_EQ(xpl_rpc_channel_open(&co, &ch, &err), XPL_OK);
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 30000};
    struct xpl_rpc_stream *st = NULL;
    CHECK_EQ(xpl_rpc_stream_open(ch, "/xplaned.v1.SessionService/WatchSessions", (xpl_bytes_t){0},
                                 &o, &st, &err),
             XPL_OK);
    char name[64];
    CHECK_EQ(next_event(st, name, sizeof name), XPLANED__V1__SESSION_EVENT__KIND__KIND_PRESENT);
    CHECK(strcmp(name, "one") == 0);
    CHECK_EQ(next_event(st, name, sizeof name), XPLANED__V1__SESSION_EVENT__KIND__KIND_SYNCED);
    add_session(dir, "two", "vm", any_profile());
    CHECK_EQ(next_event(st, name, sizeof name), XPLANED__V1__SESSION_EVENT__KIND__KIND_ADDED);
    CHECK(strcmp(name, "two") == 0);
    CHECK_EQ(stop_daemon(&d), 0); // a watcher does not hold it up
    xpl_rpc_stream_close(st);
    xpl_rpc_channel_close(ch);
}

// ---- an aggregator's requests ----

static xpl_status_t get_profile(struct xpl_rpc_channel *ch, const char *path, const char *tool,
                                char *ret_path, size_t size) {
    Xprof__Pywrap__ProfileDataRequest q;
    Xprof__Pywrap__WorkerProfileDataRequest w;
    xprof__pywrap__profile_data_request__init(&q);
    xprof__pywrap__worker_profile_data_request__init(&w);
    q.session_id = (char *)(uintptr_t)path;
    q.tool_name = (char *)(uintptr_t)tool;
    w.origin_request = &q;
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 16);
    xpl_rpc_message_put(&b, &w.base);
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 60000};
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    const xpl_status_t st =
        xpl_rpc_unary(ch, "/xprof.pywrap.XprofAnalysisWorkerService/GetProfileData",
                      (xpl_bytes_t){b.p, b.n}, &o, &reply, &err);
    ret_path[0] = 0;
    if (st == XPL_OK) {
        Xprof__Pywrap__WorkerProfileDataResponse *r =
            xprof__pywrap__worker_profile_data_response__unpack(NULL, reply.bytes.len,
                                                                reply.bytes.ptr);
        CHECK(r);
        (void)snprintf(ret_path, size, "%.*s", (int)r->output.len, (const char *)r->output.data);
        xprof__pywrap__worker_profile_data_response__free_unpacked(r, NULL);
    }
    xpl_rpc_reply_fini(&reply);
    xpl_buf_fini(&b);
    return st;
}

static void check_opstats_file(const char *path) {
    FILE *f = fopen(path, "rb");
    CHECK(f);
    static uint8_t bytes[8 << 20];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    struct xpl_arena arena;
    xpl_arena_init(&arena, (size_t)256 << 20);
    struct xpl_opstats *s = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_opstats_decode((xpl_bytes_t){bytes, n}, &arena, &s, &err), XPL_OK);
    CHECK(s->has_run_environment);
    xpl_arena_fini(&arena);
}

static void scenario_worker(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", profile(TPU));
    char path[512], socket_arg[300], files[300], answer[4096];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/broken.xplane.pb", dir);
    write_file(path, "\x0a\xff\xff\x03zz", 6);
    (void)snprintf(socket_arg, sizeof socket_arg, "unix:%s/worker.sock", state);
    (void)snprintf(files, sizeof files, "%s/files", state);
    const char *const args[] = {
        "--no-prefetch", "--xprof-worker", socket_arg, "--worker-dir", files, NULL};
    struct daemon_proc d = start_daemon(dir, state, args);
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_error err = {0};
    const struct xpl_rpc_channel_options co = {.size = sizeof co, .target = socket_arg};
    CHECK_EQ(xpl_rpc_channel_open(&co, &ch, &err), XPL_OK);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/vm.xplane.pb", dir);
    CHECK_EQ(get_profile(ch, path, "overview_page", answer, sizeof answer), XPL_OK);
    check_opstats_file(answer);
    CHECK_EQ(get_profile(ch, path, "op_profile", answer, sizeof answer), XPL_OK);
    // No path but the answer: a message that begins with its field 1.
    CHECK_EQ(get_profile(ch, path, "event_time_fraction_analyzer", answer, sizeof answer), XPL_OK);
    CHECK_EQ(answer[0], 1 << 3 | 2);
    CHECK_EQ(get_profile(ch, path, "trace_viewer@", answer, sizeof answer), XPL_UNIMPLEMENTED);
    CHECK_EQ(get_profile(ch, "/etc/passwd", "overview_page", answer, sizeof answer),
             XPL_UNIMPLEMENTED);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/none.xplane.pb", dir);
    CHECK_EQ(get_profile(ch, path, "overview_page", answer, sizeof answer), XPL_UNIMPLEMENTED);
    (void)snprintf(path, sizeof path, "%s/plugins/profile/run/broken.xplane.pb", dir);
    CHECK_EQ(get_profile(ch, path, "overview_page", answer, sizeof answer), XPL_OUT_OF_RANGE);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
}

// ---- listeners, tokens, names ----

static int ask_at(const char *address, const char *token) {
    const xpl_client_options o = {.size = sizeof o, .timeout_ms = 30000, .token = token};
    xpl_client *c = NULL;
    xpl_result r;
    CHECK_EQ(xpl_client_open(address, &o, &c, &r), 0);
    const int code = ask_tool(c, "run", "overview_page", NULL, NULL, &r);
    xpl_client_close(c);
    return code;
}

static void scenario_unix(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char both[400], address[300];
    (void)snprintf(address, sizeof address, "unix:%s/x.sock", state);
    (void)snprintf(both, sizeof both, "127.0.0.1:0,%s", address);
    const char *const args[] = {"--no-prefetch", "--listen", both, NULL}; // the last one counts
    struct daemon_proc d = start_daemon(dir, state, args);
    CHECK_EQ(ask_at(d.address, NULL), 0);
    CHECK_EQ(ask_at(address, NULL), 0);
    CHECK_EQ(stop_daemon(&d), 0);
    CHECK(access(address + strlen("unix:"), F_OK) != 0);
}

// Calls the method with an empty request, and checks whether the token's role is what decides.
static void expect_role(const char *address, const char *token, enum xpl_rpc_role has,
                        const char *method) {
    const struct xpl_rpc_channel_options co = {
        .size = sizeof co, .target = address, .token = xpl_str_from(token)};
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 60000};
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_rpc_stream *s = NULL;
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    bool more = false;
    CHECK_EQ(xpl_rpc_channel_open(&co, &ch, &err), XPL_OK);
    CHECK_EQ(xpl_rpc_stream_open(ch, method, (xpl_bytes_t){0}, &o, &s, &err), XPL_OK);
    const xpl_status_t st = xpl_rpc_stream_next(s, &reply, &more, &err);
    const bool denied = st == XPL_PERMISSION_DENIED && strstr(err.msg, "a token with the role");
    const bool may = xpl_rpc_role_may(has, xpl_role_of_method(method));
    const bool right = has == XPL_RPC_ROLE_NONE ? st == XPL_UNAUTHENTICATED
                       : may ? !denied && st != XPL_UNAUTHENTICATED && st != XPL_UNIMPLEMENTED
                             : denied;
    if (!right) (void)fprintf(stderr, "%s, token \"%s\": %s\n", method, token, err.msg);
    CHECK(right);
    xpl_rpc_stream_close(s);
    xpl_rpc_reply_fini(&reply);
    xpl_rpc_channel_close(ch);
}

// A component that cannot start: the daemon says why, takes down what runs already, and exits 1.
// The sanitizers see leaks.
static void scenario_unwind(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char listen[400], path[300];
    (void)snprintf(path, sizeof path, "%s/x.sock", state);
    (void)snprintf(listen, sizeof listen, "unix:%s,unix:/nonexistent/x", path);
    const struct {
        const char *const args[6];
        const char *why;
    } cases[] = {
        {{"--logdir", "/proc/nonexistent/dir", NULL},
         "cannot start: --logdir /proc/nonexistent/dir"},
        {{"--logdir", "/nonexistent/x.xplane.pb", NULL}, "cannot start: /nonexistent/x.xplane.pb"},
        {{"--token-file", "/nonexistent/token", NULL}, "cannot start: --token-file"},
        {{"--tls-cert", "/nonexistent/c", "--tls-key", "/nonexistent/k", NULL}, "cannot start: "},
        {{"--listen", listen, NULL}, "cannot start: /nonexistent/x"},
        {{"--listen", "192.0.2.1:0", NULL}, "cannot start: --listen 192.0.2.1:0"},
        {{"--xprof-worker", "unix:/nonexistent/x", NULL}, "cannot start: /nonexistent/x"},
        {{"--xprof-worker", "192.0.2.1:0", NULL}, "neither certificate nor token"},
        {{"--xprof-worker", "192.0.2.1:0", "--insecure", NULL}, "cannot listen on 192.0.2.1:0"},
        {{"--http", "nowhere", NULL}, "cannot start: --http nowhere"},
        {{"--http", "127.0.0.1:0,127.0.0.1:99999", NULL}, "127.0.0.1:99999: invalid port"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct daemon_proc d;
        CHECK_EQ(run_refused_daemon(dir, state, cases[i].args, &d), 1);
        CHECK(log_has(&d, cases[i].why));
        CHECK(access(path, F_OK) != 0); // the socket that was bound before
    }
    // No leftover prevents the next start.
    struct daemon_proc d = start_daemon(dir, state, NULL);
    CHECK_EQ(ask_at(d.address, NULL), 0);
    CHECK_EQ(stop_daemon(&d), 0);
}

static void scenario_token(void) {
    const char *dir = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    char path[256];
    (void)snprintf(path, sizeof path, "%s/token", state);
    write_file(path, "first\n", 6);
    const char *const args[] = {"--no-prefetch", "--token-file", path, NULL};
    struct daemon_proc d = start_daemon(dir, state, args);
    CHECK_EQ(ask_at(d.address, NULL), XPL_UNAUTHENTICATED);
    CHECK_EQ(ask_at(d.address, "wrong"), XPL_UNAUTHENTICATED);
    CHECK_EQ(ask_at(d.address, "first"), 0);
    write_file(path, "second\n", 7);
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings reloaded"));
    CHECK_EQ(ask_at(d.address, "first"), XPL_UNAUTHENTICATED);
    CHECK_EQ(ask_at(d.address, "second"), 0);
    write_file(path, "\n", 1); // no token: the old one stays
    CHECK_EQ(kill(d.pid, SIGHUP), 0);
    CHECK(log_has(&d, "settings not reloaded"));
    CHECK_EQ(ask_at(d.address, "second"), 0);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Every method with every role, no token and a wrong one.  Requests are empty: allowed ones may
// fail for that.
static void scenario_roles(void) {
    static const struct {
        const char *token;
        enum xpl_rpc_role role;
    } clients[] = {{"", XPL_RPC_ROLE_NONE},
                   {"wrong", XPL_RPC_ROLE_NONE},
                   {"see", XPL_RPC_ROLE_READ},
                   {"take", XPL_RPC_ROLE_CAPTURE},
                   {"own", XPL_RPC_ROLE_ADMIN}};
    static const char file[] = "own\nsee read\ntake capture ci\n", bad[] = "own\nsee reader\n";
    const char *dir = make_dir(), *state = make_dir();
    char path[256];
    add_session(dir, "run", "vm", any_profile());
    (void)snprintf(path, sizeof path, "%s/token", state);
    const char *const args[] = {"--no-prefetch", "--allow-delete", "--token-file", path, NULL};
    struct daemon_proc d;
    write_file(path, bad, sizeof bad - 1);
    CHECK_EQ(run_refused_daemon(dir, state, args, &d), 1);
    CHECK(log_has(&d, "line 2: the word after the token is not a role"));
    write_file(path, file, sizeof file - 1);
    d = start_daemon(dir, state, args);
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++)
        for (size_t k = 0; k < XPL_ROLE_METHODS; k++)
            expect_role(d.address, clients[i].token, clients[i].role, xpl_role_get_method(k));
    CHECK_EQ(stop_daemon(&d), 0);
    // What the table must not say, whatever it says.
    static const char *const writing[] = {
        "/xplaned.v1.SessionService/ImportSession",  "/xplaned.v1.SessionService/LabelSession",
        "/xplaned.v1.SessionService/DeleteSession",  "/xplaned.v1.CaptureService/Capture",
        "/xplaned.v1.CaptureService/CancelCapture",  "/xplaned.v1.CaptureService/CreateSchedule",
        "/xplaned.v1.CaptureService/DeleteSchedule", "/tensorflow.ProfileAnalysis/NewSession"};
    for (size_t i = 0; i < sizeof writing / sizeof *writing; i++)
        CHECK(xpl_role_of_method(writing[i]) > XPL_RPC_ROLE_READ);
    CHECK_EQ(xpl_role_of_method("/xplaned.v1.SessionService/DeleteSession"), XPL_RPC_ROLE_ADMIN);
    CHECK_EQ(xpl_role_of_method("/xplaned.v1.SessionService/Unknown"), XPL_RPC_ROLE_ADMIN);
}

// What clients change is in the log: by whose token, from where, and with which result.
static void scenario_audit(void) {
    static const char file[] = "own\ntake capture ci\n";
    const char *dir = make_dir(), *state = make_dir();
    char path[256];
    add_session(dir, "run", "vm", any_profile());
    (void)snprintf(path, sizeof path, "%s/token", state);
    write_file(path, file, sizeof file - 1);
    const char *const args[] = {"--no-prefetch", "--allow-delete", "--token-file", path, NULL};
    struct daemon_proc d = start_daemon(dir, state, args);
    const xpl_client_options o = {.size = sizeof o, .timeout_ms = 60000, .token = "take"},
                             own = {.size = sizeof own, .timeout_ms = 60000, .token = "own"};
    const char *const add[] = {"nightly", "v2"}, *const bad[] = {"a\nlevel=info b"};
    const char *const targets[] = {"unix:/nonexistent/profiler"};
    xpl_labeling q = {.size = sizeof q, .session = "run", .add = add, .n_add = 2};
    const xpl_capture_request capture = {
        .size = sizeof capture, .targets = targets, .n_targets = 1, .duration_ms = 1};
    xpl_client *c = NULL;
    xpl_result r;
    CHECK_EQ(xpl_client_open(d.address, &o, &c, &r), 0);
    CHECK_EQ(xpl_client_label(c, &q, &r), 0);
    CHECK(log_has(&d, "topic=audit msg=\"labels changed\" by=ci peer=ipv4:127.0.0.1:"));
    CHECK(log_has(&d, "status=OK session=run add=nightly,v2"));
    q.add = bad, q.n_add = 1;
    CHECK_EQ(xpl_client_label(c, &q, &r), XPL_INVALID_ARGUMENT);
    CHECK(log_has(&d, "add=\"a\\x0alevel=info b\""));
    CHECK(xpl_client_capture(c, &capture, &r) != 0);
    CHECK(log_has(&d, "topic=audit msg=\"capture ended\" by=ci peer=ipv4:127.0.0.1:"));
    xpl_client_close(c);
    CHECK_EQ(xpl_client_open(d.address, &own, &c, &r), 0);
    CHECK_EQ(xpl_client_delete_session(c, "none", &r), XPL_NOT_FOUND);
    CHECK(log_has(&d, "msg=\"session deleted\" by=admin peer=ipv4:127.0.0.1:"));
    CHECK(log_has(&d, "status=NOT_FOUND"));
    CHECK_EQ(xpl_client_delete_session(c, "run", &r), 0);
    CHECK(log_has(&d, "status=OK session=run"));
    xpl_client_close(c);
    CHECK_EQ(stop_daemon(&d), 0);
}

// Names are looked up, never opened.
static void scenario_traversal(void) {
    const char *dir = make_dir(), *outside = make_dir(), *state = make_dir();
    add_session(dir, "run", "vm", any_profile());
    add_session(outside, "secret", "vm", any_profile());
    char up[300], absolute[300];
    (void)snprintf(up, sizeof up, "../../../..%s/plugins/profile/secret", outside);
    (void)snprintf(absolute, sizeof absolute, "%s/plugins/profile/secret", outside);
    const char *const names[] = {up,
                                 absolute,
                                 "../run",
                                 "run/../run",
                                 "./run",
                                 "run/",
                                 "/run",
                                 "%2e%2e/run",
                                 "run%00",
                                 "",
                                 "plugins/profile/run",
                                 "run/vm.xplane.pb",
                                 "\xff\xfe"};
    struct daemon_proc d = start_daemon(dir, state, no_prefetch);
    xpl_client *c = open_client(&d, 60000);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int code = ask_tool(c, names[i], "overview_page", NULL, NULL, NULL);
        CHECK(code == XPL_NOT_FOUND || code == XPL_INVALID_ARGUMENT);
        code = ask_tool(c, "run", "overview_page", names[i], NULL, NULL);
        CHECK(code == XPL_NOT_FOUND || code == XPL_INVALID_ARGUMENT);
        xpl_sessions *list = NULL;
        code = xpl_client_session(c, names[i], &list, NULL);
        CHECK(code == XPL_NOT_FOUND || code == XPL_INVALID_ARGUMENT);
    }
    xpl_client_close(c);
    struct xpl_rpc_channel *ch = NULL;
    const struct xpl_rpc_channel_options co = {.size = sizeof co, .target = d.address};
    CHECK_EQ(xpl_rpc_channel_open(&co, &ch, NULL), XPL_OK);
    struct xpl_rpc_reply reply = {0};
    static const uint8_t nul[] = "\x0a\x06run\0/.\x1a\x0dkernel_stats";
    CHECK_EQ(xpl_rpc_unary(ch, "/xplaned.v1.AnalysisService/GetToolData",
                           (xpl_bytes_t){nul, sizeof nul - 1}, NULL, &reply, NULL),
             XPL_INVALID_ARGUMENT);
    xpl_rpc_reply_fini(&reply);
    xpl_rpc_channel_close(ch);
    CHECK_EQ(stop_daemon(&d), 0);
}

int main(int argc, char **argv) {
    static const struct scenario scenarios[] = {
        {"drain", scenario_drain},         {"idle_clients", scenario_idle_clients},
        {"reload", scenario_reload},       {"watch", scenario_watch},
        {"worker", scenario_worker},       {"unix", scenario_unix},
        {"unwind", scenario_unwind},       {"token", scenario_token},
        {"roles", scenario_roles},         {"audit", scenario_audit},
        {"traversal", scenario_traversal},
    };
    return run_scenario(scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
