// SPDX-License-Identifier: Apache-2.0
// Captures of servers of all kinds, good and bad: test_capture SCENARIO.
#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "rpc/queue.h"
#include "tests/capture/fake_profiler.h"
#include "tests/check.h"
#include "tests/dir_entries.h"

enum { MANY = 64 };

static char logdir[64];

static void make_logdir(void) {
    (void)snprintf(logdir, sizeof logdir, "/tmp/xpl_capture_XXXXXX");
    CHECK(mkdtemp(logdir));
}

static void remove_all(const char *path) {
    DIR *const d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char sub[600];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        (void)snprintf(sub, sizeof sub, "%.300s/%.255s", path, e->d_name);
        if (unlink(sub) != 0) remove_all(sub);
    }
    if (d) (void)closedir(d);
    (void)rmdir(path);
}

static struct xpl_capture_plan plan_of(const char *const *targets, size_t n) {
    return (struct xpl_capture_plan){.size = sizeof(struct xpl_capture_plan),
                                     .targets = targets,
                                     .n_targets = n,
                                     .duration_ms = 100,
                                     .host_tracer_level = -1,
                                     .device_tracer_level = -1,
                                     .python_tracer_level = -1};
}

static void show(const struct xpl_capture_outcome *o) {
    for (size_t i = 0; i < o->n_hosts; i++)
        (void)fprintf(stderr, "%-22s %-9s %-19s %s\n", o->hosts[i].target,
                      xpl_capture_state_name(o->hosts[i].state), xpl_status_name(o->hosts[i].code),
                      o->hosts[i].reason);
}

static xpl_status_t capture(const struct xpl_capture_plan *p, struct xpl_capture_outcome *o,
                            struct xpl_error *err) {
    *err = (struct xpl_error){0};
    const xpl_status_t st = xpl_capture_run(p, logdir, NULL, NULL, NULL, o, err);
    show(o);
    if (st != XPL_OK) (void)fprintf(stderr, "%s: %s\n", xpl_status_name(st), err->msg);
    return st;
}

static bool says(const struct xpl_capture_host *h, const char *part) {
    return strstr(h->reason, part) != NULL;
}

static int count_fds(void) {
    return entries("/proc/self/fd");
}

// ---- scenarios ----

static void test_good(void) {
    struct fake_set *const s = fake_set_new();
    const int a = fake_add(s, &(struct fake_options){.mode = FAKE_OK, .bytes = 3000000});
    const int b = fake_add(s, &(struct fake_options){.mode = FAKE_TOOL_DATA});
    const int c = fake_add(s, &(struct fake_options){.mode = FAKE_HOSTILE});
    const char *const targets[] = {fake_address(s, a), fake_address(s, b), fake_address(s, c)};
    const char *const names[] = {"same", "same", "third"};
    struct xpl_capture_plan p = plan_of(targets, 3);
    struct xpl_capture_outcome o;
    struct xpl_error err;
    p.host_names = names;
    CHECK_OK(capture(&p, &o, &err), &err);
    CHECK_EQ(o.n_stored, 3);
    CHECK(o.hosts[0].file.counts.bytes >= 3000000 && o.hosts[0].file.counts.events >= 50000);
    CHECK_STR(o.hosts[2].file.name, "third");
    CHECK(strstr(o.hosts[2].file.hostname, "../../../etc/passwd"));
    CHECK(strcmp(o.hosts[0].file.name, o.hosts[1].file.name) != 0);
    CHECK_EQ(entries(o.path), 4); // three profiles and capture.json
    CHECK_EQ(fake_wanted_ns(s, a), fake_wanted_ns(s, b));
    CHECK(fake_wanted_ns(s, a) > 0);
    char first[XPL_SESSION_WRITER_NAME_SIZE];
    memcpy(first, o.session, sizeof first);
    xpl_capture_outcome_fini(&o);
    // One target begins at once; a session of that name gets another name.
    p.n_targets = 1;
    p.session = xpl_str_from(first);
    CHECK_OK(capture(&p, &o, &err), &err);
    CHECK_EQ(fake_wanted_ns(s, a), 0);
    CHECK(strncmp(o.session, first, strlen(first)) == 0 && strcmp(o.session, first) != 0);
    xpl_capture_outcome_fini(&o);
    fake_set_free(s);
}

// A server that says `text` to whoever connects, and then nothing; NULL: it is silent.
struct plain {
    int fd;
    const char *text;
    pthread_t thread;
    char address[32];
};

static void *plain_main(void *arg) {
    struct plain *const p = arg;
    for (int c; (c = accept(p->fd, NULL, NULL)) >= 0;) {
        if (!p->text) continue; // open until the process ends
        char sink[256];
        (void)!read(c, sink, sizeof sink);
        (void)!write(c, p->text, strlen(p->text));
        (void)close(c);
    }
    return NULL;
}

// An address without a listener, which no other program takes meanwhile.
static void plain_take_address(struct plain *p) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(p->fd, (struct sockaddr *)&a, n), 0);
    CHECK_EQ(getsockname(p->fd, (struct sockaddr *)&a, &n), 0);
    (void)snprintf(p->address, sizeof p->address, "127.0.0.1:%d", ntohs(a.sin_port));
}
static void plain_start(struct plain *p, const char *text) {
    plain_take_address(p);
    p->text = text;
    CHECK_EQ(listen(p->fd, 16), 0);
    CHECK_EQ(pthread_create(&p->thread, NULL, plain_main, p), 0);
}
static void plain_stop(struct plain *p) {
    (void)shutdown(p->fd, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    (void)close(p->fd);
}

static const struct {
    enum fake_mode mode;
    enum xpl_capture_state state;
    xpl_status_t code;
    const char *says;
} bad[] = {
    {FAKE_OK, XPL_CAPTURE_STORED, XPL_OK, ""},
    {FAKE_IDLE, XPL_CAPTURE_IDLE, XPL_UNAVAILABLE, "idle"},
    {FAKE_METADATA, XPL_CAPTURE_IDLE, XPL_UNAVAILABLE, "no events"},
    {FAKE_BLIND, XPL_CAPTURE_IDLE, XPL_UNAVAILABLE, "its profiler says: libcupti is not there"},
    {FAKE_BUSY, XPL_CAPTURE_FAILED, XPL_UNAVAILABLE, "another profile"},
    {FAKE_HANG, XPL_CAPTURE_FAILED, XPL_DEADLINE_EXCEEDED, "no answer"},
    {FAKE_TRICKLE, XPL_CAPTURE_FAILED, XPL_DEADLINE_EXCEEDED, "not complete"},
    {FAKE_GARBAGE, XPL_CAPTURE_FAILED, XPL_DATA_LOSS, "not an XSpace"},
    {FAKE_TRUNCATED, XPL_CAPTURE_FAILED, XPL_DATA_LOSS, "cut off"},
    {FAKE_NONSENSE, XPL_CAPTURE_FAILED, XPL_DATA_LOSS, "not a profile: is this"},
    {FAKE_ELSEWHERE, XPL_CAPTURE_FAILED, XPL_FAILED_PRECONDITION, "too old"},
    {FAKE_OLD, XPL_CAPTURE_STORED, XPL_OK, ""},
    {FAKE_UNIMPLEMENTED, XPL_CAPTURE_FAILED, XPL_UNIMPLEMENTED, "not a profiler server"},
};
enum { N_BAD = sizeof bad / sizeof *bad };

static void test_bad(void) {
    struct fake_set *const s = fake_set_new();
    const char *targets[N_BAD];
    struct xpl_capture_outcome o;
    struct xpl_error err;
    for (int i = 0; i < N_BAD; i++)
        targets[i] = fake_address(s, fake_add(s, &(struct fake_options){.mode = bad[i].mode}));
    struct xpl_capture_plan p = plan_of(targets, N_BAD);
    p.answer_timeout_ms = 8000;
    CHECK_OK(capture(&p, &o, &err), &err);
    for (int i = 0; i < N_BAD; i++) {
        CHECK_EQ(o.hosts[i].state, bad[i].state);
        CHECK_EQ(o.hosts[i].code, bad[i].code);
        CHECK(says(&o.hosts[i], bad[i].says));
        CHECK_EQ(o.hosts[i].shared_dir, bad[i].mode == FAKE_OLD);
    }
    CHECK_EQ(o.n_stored, 2);
    CHECK_EQ(entries(o.path), 3);
    xpl_capture_outcome_fini(&o);
    // Each of them by itself: no session, the host's own code.
    for (int i = 0; i < N_BAD; i++) {
        if (bad[i].state == XPL_CAPTURE_STORED || bad[i].code == XPL_DEADLINE_EXCEEDED) continue;
        p.targets = &targets[i];
        p.n_targets = 1;
        p.session = XPL_STR("nothing");
        CHECK_EQ(capture(&p, &o, &err), bad[i].code);
        CHECK(strstr(err.msg, bad[i].says));
        CHECK(!o.session[0] && !o.path);
        xpl_capture_outcome_fini(&o);
        char path[128];
        (void)snprintf(path, sizeof path, "%s/plugins/profile/nothing", logdir);
        CHECK_EQ(entries(path), -1);
    }
    fake_set_free(s);
}

static void test_unreachable(void) {
    struct plain http, silent, gone;
    struct xpl_capture_outcome o;
    struct xpl_error err;
    plain_start(&http, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    plain_start(&silent, NULL);
    plain_take_address(&gone);
    const char *const targets[] = {http.address, silent.address, gone.address};
    struct xpl_capture_plan p = plan_of(targets, 3);
    p.connect_timeout_ms = 5000;
    CHECK_STATUS(capture(&p, &o, &err), XPL_UNAVAILABLE, &err);
    CHECK(says(&o.hosts[0], "web server") || says(&o.hosts[0], "another service"));
    CHECK_STATUS(o.hosts[1].code, XPL_DEADLINE_EXCEEDED, NULL);
    CHECK(says(&o.hosts[1], "no profiler server answered"));
    CHECK(says(&o.hosts[2], "connection refused"));
    CHECK_EQ(o.n_failed, 3);
    CHECK_EQ(entries(logdir), 0); // not even plugins/
    xpl_capture_outcome_fini(&o);
    plain_stop(&http);
    plain_stop(&silent);
    (void)close(gone.fd);
}

// Whether two addresses are one program's.
static bool same(const char *a, const char *b) {
    char x[XPL_CAPTURE_KEY_SIZE], y[XPL_CAPTURE_KEY_SIZE];
    xpl_capture_target_key(x, a, "");
    xpl_capture_target_key(y, b, "");
    return strcmp(x, y) == 0;
}

static void test_plans(void) {
    static const char *const wrong[] = {
        "",         "host",       "grpc://host:1", "host:0",      "host:70000",
        "host:x",   "::1:80",     "[]:1",          "a b:1",       "host:1/x",
        ":1",       "host:+1",    "unix:/",        "http://h:1",  "host:",
        "pytorch:", "pytorch::1", "pytorch:a/b",   "pytorch:::1", "pytorch:a:0"};
    const char *twice[] = {"a:1", "a:1"};
    struct xpl_capture_outcome o;
    struct xpl_capture_plan p = plan_of(twice, 2);
    CHECK_STATUS(xpl_capture_run(&p, logdir, NULL, NULL, NULL, &o, NULL), XPL_INVALID_ARGUMENT,
                 NULL);
    CHECK(same("localhost:7", "127.0.0.1:7"));
    CHECK(same("[::1]:7", "LOCALHOST:7"));
    CHECK(same("Node-1:7", "node-1:007"));
    CHECK(same("unix:/a:1", "unix:/a:1"));
    CHECK(same("pytorch:node-1", "node-1:9011")); // one agent
    CHECK(same("pytorch:localhost:7", "pytorch:[::1]:7"));
    CHECK(!same("pytorch:node-1", "node-1:9012"));
    CHECK(!same("localhost:7", "127.0.0.1:8"));
    CHECK(!same("127.0.0.2:7", "127.0.0.1:7"));
    CHECK(!same("node-1:7", "node-2:7"));
    CHECK(!same("unix:/a:1", "unix:/A:1"));
    CHECK(!same("unix:/a", "unix:/b"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        p = plan_of(&wrong[i], 1);
        if (xpl_capture_check(&p, NULL) != XPL_INVALID_ARGUMENT) FAIL_TEST(wrong[i]);
    }
    static const char *const right[] = {"host:1", "[::1]:65535", "10.0.0.1:9012", "unix:/a/b"};
    for (size_t i = 0; i < 4; i++) {
        p = plan_of(&right[i], 1);
        CHECK_OK(xpl_capture_check(&p, NULL), NULL);
    }
    struct xpl_error err = {0};
    p.session = XPL_STR("../x");
    CHECK_STATUS(xpl_capture_check(&p, &err), XPL_INVALID_ARGUMENT, &err);
    CHECK(strstr(err.msg, "letters"));
    static const char *const names[] = {"../x", "x/y", ".x", "a b", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        p = plan_of(right, 1);
        p.host_names = &names[i];
        CHECK_STATUS(xpl_capture_check(&p, NULL), XPL_INVALID_ARGUMENT, NULL);
    }
    p = plan_of(right, 1);
    p.duration_ms = 0;
    CHECK_STATUS(xpl_capture_check(&p, NULL), XPL_INVALID_ARGUMENT, NULL);
}

static void test_retry(void) {
    struct fake_set *const s = fake_set_new();
    const int a = fake_add(s, &(struct fake_options){.mode = FAKE_BUSY_ONCE});
    const int b = fake_add(s, &(struct fake_options){.mode = FAKE_IDLE_ONCE});
    const int c = fake_add(s, &(struct fake_options){.mode = FAKE_BUSY});
    const char *const targets[] = {fake_address(s, a), fake_address(s, b), fake_address(s, c)};
    struct xpl_capture_plan p = plan_of(targets, 3);
    struct xpl_capture_outcome o;
    struct xpl_error err;
    p.retries = 2;
    CHECK_OK(capture(&p, &o, &err), &err);
    CHECK_EQ(o.n_stored, 2);
    CHECK_EQ(o.hosts[0].attempts, 2);
    CHECK_EQ(o.hosts[1].attempts, 2);
    CHECK_EQ(o.hosts[2].attempts, 3);
    CHECK_EQ(fake_calls(s, c), 3);
    xpl_capture_outcome_fini(&o);
    fake_set_free(s);
}

// Cancels when the first host has been stored and the others collect.
static void cancel_when_stored(void *ctx, const struct xpl_capture_progress *p) {
    if (p->hosts[0].state == XPL_CAPTURE_STORED) atomic_store((atomic_bool *)ctx, true);
}

static void test_cancel(void) {
    struct fake_set *const s = fake_set_new();
    const char *targets[3];
    atomic_bool cancel = false;
    struct xpl_capture_outcome o;
    targets[0] = fake_address(s, fake_add(s, &(struct fake_options){.mode = FAKE_OK}));
    for (int i = 1; i < 3; i++)
        targets[i] = fake_address(s, fake_add(s, &(struct fake_options){.mode = FAKE_HANG}));
    const struct xpl_capture_plan p = plan_of(targets, 3);
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_capture_run(&p, logdir, &cancel, cancel_when_stored, &cancel, &o, &err),
                 XPL_CANCELLED, &err);
    CHECK_EQ(o.n_cancelled, 3);
    CHECK_EQ(entries(logdir), 0);
    xpl_capture_outcome_fini(&o);
    for (int i = 1; i < 3; i++) // the servers hear of it
        for (int ms = 0; fake_cancels(s, i) == 0; ms++) {
            CHECK(ms < 20000);
            (void)usleep(1000);
        }
    CHECK_STATUS(xpl_capture_run(&p, logdir, &cancel, NULL, NULL, &o, NULL), XPL_CANCELLED, NULL);
    xpl_capture_outcome_fini(&o);
    fake_set_free(s);
}

static void test_continuous(void) {
    struct fake_set *const s = fake_set_new();
    const char *const target = fake_address(s, fake_add(s, &(struct fake_options){.bytes = 9999}));
    struct xpl_capture_plan p = plan_of(&target, 1);
    struct xpl_capture_outcome o;
    struct xpl_error err;
    static const struct {
        enum xpl_capture_call call;
        xpl_status_t code;
    } steps[] = {{XPL_CAPTURE_SNAPSHOT, XPL_NOT_FOUND},
                 {XPL_CAPTURE_CONTINUOUS, XPL_OK},
                 {XPL_CAPTURE_CONTINUOUS, XPL_ALREADY_EXISTS},
                 {XPL_CAPTURE_SNAPSHOT, XPL_OK},
                 {XPL_CAPTURE_SNAPSHOT, XPL_OK},
                 {XPL_CAPTURE_PROFILE, XPL_UNAVAILABLE},
                 {XPL_CAPTURE_STOP, XPL_OK},
                 {XPL_CAPTURE_STOP, XPL_NOT_FOUND}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        p.call = steps[i].call;
        CHECK_EQ(capture(&p, &o, &err), steps[i].code);
        CHECK_EQ(o.session[0] != 0, steps[i].call == XPL_CAPTURE_SNAPSHOT && !steps[i].code);
        xpl_capture_outcome_fini(&o);
    }
    fake_set_free(s);
}

static void test_limits(void) {
    struct fake_set *const s = fake_set_new();
    const char *targets[8];
    struct xpl_capture_outcome o;
    struct xpl_error err;
    for (int i = 0; i < 8; i++)
        targets[i] = fake_address(
            s, fake_add(s, &(struct fake_options){.bytes = i == 3 ? 5000000 : 1000000}));
    struct xpl_capture_plan p = plan_of(targets, 8);
    p.receive_at_once = 1;
    p.max_host_bytes = 4000000;
    CHECK_OK(capture(&p, &o, &err), &err);
    CHECK_EQ(o.n_stored, 7);
    CHECK_STATUS(o.hosts[3].code, XPL_RESOURCE_EXHAUSTED, NULL);
    CHECK(says(&o.hosts[3], "shorter time"));
    xpl_capture_outcome_fini(&o);
    fake_set_free(s);
}

static void test_logdir(void) {
    struct fake_set *const s = fake_set_new();
    const char *const target =
        fake_address(s, fake_add(s, &(struct fake_options){.bytes = 400000}));
    const struct xpl_capture_plan p = plan_of(&target, 1);
    struct xpl_capture_outcome o;
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_capture_run(&p, "/nowhere/at/all", NULL, NULL, NULL, &o, &err), XPL_NOT_FOUND,
                 &err);
    CHECK(strstr(err.msg, "create it first"));
    CHECK_EQ(o.n_failed, 1);
    CHECK(says(&o.hosts[0], "create it first"));
    xpl_capture_outcome_fini(&o);
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_capture_run(&p, "/dev/null", NULL, NULL, NULL, &o, &err),
                 XPL_FAILED_PRECONDITION, &err);
    xpl_capture_outcome_fini(&o);
    CHECK_EQ(fake_calls(s, 0), 0);
    // A disk that is full, as far as this process is concerned.
    const struct rlimit small = {100000, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    CHECK_STATUS(capture(&p, &o, &err), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &all), 0);
    CHECK_EQ(entries(logdir), 0);
    xpl_capture_outcome_fini(&o);
    CHECK_OK(capture(&p, &o, &err), &err);
    xpl_capture_outcome_fini(&o);
    fake_set_free(s);
}

static void test_token(void) {
    struct fake_set *const s = fake_set_new();
    const char *const target = fake_address(s, fake_add(s, &(struct fake_options){.token = "key"}));
    struct xpl_capture_plan p = plan_of(&target, 1);
    struct xpl_capture_outcome o;
    struct xpl_error err;
    CHECK_STATUS(capture(&p, &o, &err), XPL_UNAUTHENTICATED, &err);
    xpl_capture_outcome_fini(&o);
    p.token = XPL_STR("key");
    CHECK_OK(capture(&p, &o, &err), &err);
    xpl_capture_outcome_fini(&o);
    // TLS where there is none.
    p.tls = true;
    CHECK_STATUS(capture(&p, &o, &err), XPL_UNAVAILABLE, &err);
    CHECK(says(&o.hosts[0], "TLS"));
    xpl_capture_outcome_fini(&o);
    fake_set_free(s);
}

static void test_many(void) {
    struct fake_set *const s = fake_set_new();
    const char *targets[MANY];
    struct xpl_capture_outcome o;
    struct xpl_error err;
    for (int i = 0; i < MANY; i++)
        targets[i] = fake_address(s, fake_add(s, &(struct fake_options){.bytes = 50000}));
    struct xpl_capture_plan p = plan_of(targets, MANY);
    p.duration_ms = 200;
    const int before = count_fds();
    int64_t first = INT64_MAX, last = 0;
    CHECK_OK(capture(&p, &o, &err), &err);
    CHECK_EQ(o.n_stored, MANY);
    CHECK_EQ(entries(o.path), MANY + 1);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(fake_wanted_ns(s, i), fake_wanted_ns(s, 0));
        const int64_t t = fake_began_ns(s, i);
        if (t < first) first = t;
        if (t > last) last = t;
    }
    (void)fprintf(stderr, "%d hosts began within %.3f ms\n", MANY, (double)(last - first) / 1e6);
    xpl_capture_outcome_fini(&o);
    // The servers need a moment to see that their connections are gone.
    for (int ms = 0; count_fds() > before; ms++) {
        CHECK(ms < 20000);
        (void)usleep(1000);
    }
    fake_set_free(s);
}

// A program that ends in the middle: argv[2] is fake_profiler.
static void test_die(const char *program) {
    int in[2], out[2];
    CHECK(program);
    CHECK_EQ(pipe(in), 0);
    CHECK_EQ(pipe(out), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        (void)close(in[1]);
        (void)execl(program, program, "die", (char *)NULL);
        _exit(127);
    }
    char address[64] = {0};
    CHECK(pid > 0 && read(out[0], address, sizeof address - 1) > 0);
    address[strcspn(address, "\n")] = '\0';
    const char *const target = address;
    struct xpl_capture_plan p = plan_of(&target, 1);
    struct xpl_capture_outcome o;
    struct xpl_error err;
    CHECK_STATUS(capture(&p, &o, &err), XPL_UNAVAILABLE, &err);
    CHECK(says(&o.hosts[0], "the connection broke"));
    CHECK_EQ(entries(logdir), 0);
    xpl_capture_outcome_fini(&o);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 9);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"good", test_good},
                 {"bad", test_bad},
                 {"unreachable", test_unreachable},
                 {"plans", test_plans},
                 {"retry", test_retry},
                 {"cancel", test_cancel},
                 {"continuous", test_continuous},
                 {"limits", test_limits},
                 {"logdir", test_logdir},
                 {"token", test_token},
                 {"many", test_many}};
    CHECK(argc > 1);
    (void)alarm(220);
    xpl_rpc_set_log(NULL);
    make_logdir();
    size_t i = 0;
    if (strcmp(argv[1], "die") == 0) {
        test_die(argv[2]);
    } else {
        while (i < sizeof tests / sizeof *tests && strcmp(tests[i].name, argv[1]) != 0)
            i++;
        CHECK(i < sizeof tests / sizeof *tests);
        tests[i].run();
    }
    remove_all(logdir);
    return 0;
}
