// SPDX-License-Identifier: Apache-2.0
// The agent from outside: xplaned-agent, programs with libxplaned-agent.so, and a CUPTI without a
// GPU (fake/), all real processes.  Usage: test_agent SCENARIO; the paths come in the environment.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/wire/wire.h"
#include "proto/tensorflow/profiler_request.pb-c.h"
#include "rpc/client.h"
#include "tests/check.h"
#include "tests/dir_entries.h"

// SOME_MS: within it a program has its turn, also beside others.
enum { CALL_MS = 100000, LONG_MS = 60000, SOME_MS = 1500 };

static char dir[64] = "/tmp/xpl_agent_XXXXXX";
static pid_t agent;
static int agent_log, port_of_agent;
static struct xpl_rpc_channel *channel;

// ---- processes ----

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

struct env {
    const char *name, *value;
};
// Starts a program; its stdout, or stderr, can be read from *ret_fd.
static pid_t start(const char *const *argv, const struct env *env, int output, int *ret_fd) {
    int p[2];
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(p[1], output);
        for (; env && env->name; env++)
            setenv(env->name, env->value, 1);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(p[1]);
    *ret_fd = p[0];
    return pid;
}

static void read_line(int fd, char *ret, size_t size) {
    size_t n = 0;
    while (n + 1 < size) {
        struct pollfd f = {.fd = fd, .events = POLLIN};
        CHECK(poll(&f, 1, CALL_MS) == 1);
        if (read(fd, ret + n, 1) != 1 || ret[n++] == '\n') break;
    }
    ret[n] = 0;
}

static void start_agent(void) {
    const char *const argv[] = {getenv("XPLANED_AGENT_EXE"),
                                "--listen",
                                "127.0.0.1:0",
                                "--directory",
                                dir,
                                "--buffers",
                                "2",
                                NULL};
    char line[512], target[64];
    CHECK(mkdtemp(dir));
    agent = start(argv, NULL, STDERR_FILENO, &agent_log);
    read_line(agent_log, line, sizeof line);
    const char *const port = strstr(line, "port=");
    CHECK(port);
    port_of_agent = atoi(port + 5);
    snprintf(target, sizeof target, "127.0.0.1:%d", port_of_agent);
    const struct xpl_rpc_channel_options opt = {.size = sizeof opt, .target = target};
    CHECK_EQ(xpl_rpc_channel_open(&opt, &channel, NULL), XPL_OK);
}

static void stop_process(pid_t pid, int sig) {
    int status;
    kill(pid, sig);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
}

static void stop_agent(void) {
    int status;
    xpl_rpc_channel_close(channel);
    kill(agent, SIGTERM);
    CHECK_EQ(waitpid(agent, &status, 0), agent);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    DIR *const d = opendir(dir);
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(dir);
}

struct program {
    pid_t pid;
    int out;
};
// A program with the library; waits for its socket.
static struct program start_program(const char *mode, const char *n, const struct env *more) {
    struct env env[8] = {{"XPLANED_AGENT_DIR", dir},
                         {"LD_LIBRARY_PATH", getenv("FAKE_DIR")},
                         {"CUDA_INJECTION64_PATH", getenv("XPLANED_AGENT_LIB")}};
    const char *const argv[] = {getenv("FAKE_PROGRAM"), mode, n, NULL};
    struct program p;
    char path[128];
    for (size_t i = 3; more && more->name; i++)
        env[i] = *more++;
    p.pid = start(argv, env, STDOUT_FILENO, &p.out);
    snprintf(path, sizeof path, "%s/%d.sock", dir, (int)p.pid);
    for (int i = 0; i < 3000 && access(path, F_OK) != 0; i++)
        sleep_ms(10);
    CHECK_EQ(access(path, F_OK), 0);
    return p;
}
static void stop_program(struct program *p) {
    stop_process(p->pid, SIGKILL);
    close(p->out);
}

// ---- calls ----

struct request {
    uint64_t duration_ms;
    const char *root, *session, *host;
    bool xspace;
};
static char *text(const char *s) {
    return (char *)(uintptr_t)(s ? s : "");
}
static xpl_status_t call(const char *method, const ProtobufCMessage *m, struct xpl_rpc_reply *reply,
                         struct xpl_error *err) {
    char path[96];
    uint8_t packed[4096];
    CHECK(protobuf_c_message_get_packed_size(m) <= sizeof packed);
    const size_t n = protobuf_c_message_pack(m, packed);
    const struct xpl_rpc_call_options opt = {.size = sizeof opt, .timeout_ms = CALL_MS};
    snprintf(path, sizeof path, "/tensorflow.ProfilerService/%s", method);
    return xpl_rpc_unary(channel, path, (xpl_bytes_t){packed, n}, &opt, reply, err);
}
static xpl_status_t profile(const struct request *q, struct xpl_rpc_reply *reply,
                            struct xpl_error *err) {
    Tensorflow__ProfileOptions o;
    tensorflow__profile_options__init(&o);
    Tensorflow__ProfileRequest r;
    tensorflow__profile_request__init(&r);
    o.duration_ms = q->duration_ms;
    o.device_tracer_level = 1;
    o.host_tracer_level = 2;
    r.opts = &o;
    r.emit_xspace = q->xspace;
    r.repository_root = text(q->root);
    r.session_id = text(q->session);
    r.host_name = text(q->host);
    return call("Profile", &r.base, reply, err);
}
static void terminate(const char *session) {
    Tensorflow__TerminateRequest r;
    tensorflow__terminate_request__init(&r);
    struct xpl_rpc_reply reply = {0};
    r.session_id = text(session);
    CHECK_EQ(call("Terminate", &r.base, &reply, NULL), XPL_OK);
    xpl_rpc_reply_fini(&reply);
}

// A capture on a thread, to do something meanwhile.
struct background {
    pthread_t thread;
    struct request request;
    struct xpl_rpc_reply reply;
    struct xpl_error err;
    xpl_status_t status;
};
static void *background_main(void *arg) {
    struct background *const b = arg;
    b->status = profile(&b->request, &b->reply, &b->err);
    return NULL;
}
static void begin(struct background *b) {
    CHECK_EQ(pthread_create(&b->thread, NULL, background_main, b), 0);
}
static void join(struct background *b) {
    CHECK_EQ(pthread_join(b->thread, NULL), 0);
}

// ---- XSpaces ----

struct counted {
    unsigned gpus, lines, host, nvtx, memory;
    uint64_t kernels, device_events, host_events, nvtx_events, memory_events;
    uint64_t start_ns, first_ns, last_ns;
    char warnings[2000];
};

static xpl_bytes_t field(xpl_bytes_t m, uint32_t num) {
    struct xpl_wire w = xpl_wire_begin(m);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == num && f.type == XPL_WIRE_LEN) return f.len;
    return (xpl_bytes_t){0};
}
static uint64_t number(xpl_bytes_t m, uint32_t num) {
    struct xpl_wire w = xpl_wire_begin(m);
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == num && f.type == XPL_WIRE_VARINT) return f.u;
    return 0;
}
static bool has(xpl_bytes_t m, const char *s) {
    return m.len && memmem(m.ptr, m.len, s, strlen(s)) != NULL;
}

static uint64_t count_events(xpl_bytes_t line, struct counted *c) {
    struct xpl_wire w = xpl_wire_begin(line);
    struct xpl_field f;
    const uint64_t base = number(line, 3);
    uint64_t n = 0;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num != 4) continue;
        const uint64_t at = base + number(f.len, 2) / 1000;
        if (!c->first_ns || at < c->first_ns) c->first_ns = at;
        if (at > c->last_ns) c->last_ns = at;
        n++;
    }
    CHECK(r == XPL_WIRE_END);
    return n;
}

static void count_plane(xpl_bytes_t plane, struct counted *c) {
    const xpl_bytes_t name = field(plane, 2);
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f;
    uint64_t n = 0;
    unsigned lines = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.num != 3) continue;
        const uint64_t of_line = count_events(f.len, c);
        lines++;
        n += of_line;
        if (has(field(f.len, 2), "Compute")) c->kernels += of_line;
    }
    if (has(name, "/device:GPU:")) {
        c->gpus++, c->lines += lines, c->device_events += n;
        CHECK(has(plane, "Test GPU"));
    }
    if (has(name, "Task Environment")) c->start_ns = number(field(plane, 6), 3);
    if (has(name, "/host:CUPTI")) c->host += lines, c->host_events += n;
    if (has(name, "/host:NVTX-CUPTI")) c->nvtx += lines, c->nvtx_events += n;
    if (has(name, "/host:CPU")) c->memory += lines, c->memory_events += n;
}

static struct counted count(xpl_bytes_t space) {
    struct counted c = {0};
    struct xpl_wire w = xpl_wire_begin(space);
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num == 1) count_plane(f.len, &c);
        if (f.num == 3)
            snprintf(c.warnings + strlen(c.warnings), sizeof c.warnings - strlen(c.warnings),
                     "%.*s\n", (int)f.len.len, (const char *)f.len.ptr);
    }
    CHECK(r == XPL_WIRE_END);
    c.first_ns += c.start_ns, c.last_ns += c.start_ns;
    return c;
}

// A capture that must work.
static struct counted capture(uint64_t duration_ms) {
    const struct request q = {.duration_ms = duration_ms, .xspace = true};
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    if (profile(&q, &reply, &err) != XPL_OK) FAIL_TEST(err.msg);
    const struct counted c = count(field(reply.bytes, 8));
    xpl_rpc_reply_fini(&reply);
    return c;
}
// One that must not, with words of the reason.
static void refused(xpl_status_t code, const char *words) {
    const struct request q = {.duration_ms = 200, .xspace = true};
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    CHECK_EQ(profile(&q, &reply, &err), code);
    if (!strstr(err.msg, words)) FAIL_TEST(err.msg);
    xpl_rpc_reply_fini(&reply);
}

// ---- scenarios ----

static uint64_t real_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Everything arrives where it belongs, on the wall clock; twice, for the second start is another
// way through the library.
static void check_capture(void) {
    struct program p = start_program("steady", NULL, NULL);
    for (int i = 0; i < 2; i++) {
        const uint64_t before = real_ns();
        const struct counted c = capture(SOME_MS);
        CHECK_EQ(c.gpus, 2);
        CHECK(c.lines >= 4);
        CHECK(c.kernels > 0 && c.device_events > c.kernels);
        CHECK(c.host_events > c.device_events);
        CHECK(c.nvtx_events > 0 && c.memory_events > 0);
        CHECK(c.first_ns >= before && c.last_ns <= real_ns());
        CHECK_EQ(c.warnings[0], 0);
    }
    stop_program(&p);
}

static void check_preload(void) {
    const struct env more[] = {
        {"CUDA_INJECTION64_PATH", ""}, {"LD_PRELOAD", getenv("XPLANED_AGENT_LIB")}, {0}};
    struct program p = start_program("steady", NULL, more);
    CHECK(capture(SOME_MS).kernels > 0);
    stop_program(&p);
}

// The older way: a file in the repository, and names that are not paths.
static void check_file(void) {
    struct request q = {.duration_ms = 200, .root = dir, .session = "run", .host = "host:1"};
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    struct program p = start_program("steady", NULL, NULL);
    char path[160];
    struct stat st;
    CHECK_EQ(profile(&q, &reply, NULL), XPL_OK);
    CHECK_EQ(reply.bytes.len, 0);
    snprintf(path, sizeof path, "%s/run/host_1.xplane.pb", dir);
    CHECK(stat(path, &st) == 0 && st.st_size > 1000);
    unlink(path);
    q.host = "../x";
    CHECK_EQ(profile(&q, &reply, &err), XPL_INVALID_ARGUMENT);
    q.host = "x", q.session = "";
    CHECK_EQ(profile(&q, &reply, &err), XPL_INVALID_ARGUMENT);
    xpl_rpc_reply_fini(&reply);
    stop_program(&p);
    snprintf(path, sizeof path, "%s/run", dir);
    CHECK_EQ(rmdir(path), 0);
}

static uint64_t number_before(const char *in, const char *words) {
    const char *at = strstr(in, words);
    if (!at) return 0;
    while (at > in && (at[-1] == ' ' || (at[-1] >= '0' && at[-1] <= '9')))
        at--;
    return strtoull(at, NULL, 10);
}

// More than the buffers hold: nothing is lost uncounted.
static void check_drops(void) {
    enum { KERNELS = 200000 }; // three records each
    struct program p = start_program("burst", "200000", NULL);
    struct background b = {.request = {.duration_ms = LONG_MS, .session = "burst", .xspace = true}};
    char line[16];
    begin(&b);
    read_line(p.out, line, sizeof line);
    CHECK(strcmp(line, "done\n") == 0);
    terminate("burst");
    join(&b);
    CHECK_EQ(b.status, XPL_OK);
    const struct counted c = count(field(b.reply.bytes, 8));
    const uint64_t dropped = number_before(c.warnings, "GPU events dropped");
    CHECK_EQ(c.kernels + c.host_events + dropped, 3 * KERNELS);
    xpl_rpc_reply_fini(&b.reply);
    stop_program(&p);
}

// A regular exit during a capture loses nothing.
static void check_leave(void) {
    struct program p = start_program("leave", "5000", NULL);
    const struct counted c = capture(LONG_MS);
    int status;
    CHECK_EQ(c.kernels, 5000);
    CHECK_EQ(waitpid(p.pid, &status, 0), p.pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(p.out);
}

// A crash loses the buffers that were not full yet, and the XSpace says so.
static void check_crash(void) {
    struct program p = start_program("crash", "60000", NULL);
    const struct counted c = capture(LONG_MS);
    int status;
    CHECK(c.kernels > 0 && c.kernels <= 60000);
    CHECK(strstr(c.warnings, "ended in the middle of the capture"));
    CHECK_EQ(waitpid(p.pid, &status, 0), p.pid);
    CHECK(WIFSIGNALED(status));
    close(p.out);
    refused(XPL_FAILED_PRECONDITION,
            "libxplaned-agent.so"); // its socket is still there, and leads nowhere
}

// Two programs on the same GPUs share planes, not lines.
static void check_two(void) {
    struct program a = start_program("steady", NULL, NULL), b = start_program("steady", NULL, NULL);
    const struct counted c = capture(SOME_MS);
    CHECK_EQ(c.gpus, 2);
    CHECK_EQ(c.nvtx, 2);
    CHECK_EQ(c.memory, 2);
    CHECK(c.lines >= 8);
    stop_program(&a);
    stop_program(&b);
}

static void check_busy(void) {
    struct program p = start_program("steady", NULL, NULL);
    struct background b = {.request = {.duration_ms = LONG_MS, .session = "s", .xspace = true}};
    char line[512] = "";
    begin(&b);
    while (!strstr(line, "begun"))
        read_line(agent_log, line, sizeof line);
    refused(XPL_INTERNAL, "Another profiling session active.");
    terminate("other");
    terminate("s");
    join(&b);
    CHECK_EQ(b.status, XPL_OK); // perhaps empty: it may have ended before it began
    xpl_rpc_reply_fini(&b.reply);
    CHECK(capture(SOME_MS).kernels > 0);
    stop_program(&p);
}

// The client goes away: the program is free again at once.
static void check_cancel(void) {
    struct program p = start_program("steady", NULL, NULL);
    Tensorflow__ProfileOptions o;
    tensorflow__profile_options__init(&o);
    Tensorflow__ProfileRequest r;
    tensorflow__profile_request__init(&r);
    struct xpl_rpc_reply reply = {0};
    uint8_t packed[256];
    o.duration_ms = LONG_MS, o.device_tracer_level = 1;
    r.opts = &o, r.emit_xspace = 1;
    const size_t n = protobuf_c_message_pack(&r.base, packed);
    const struct xpl_rpc_call_options opt = {.size = sizeof opt, .timeout_ms = 700};
    CHECK_EQ(xpl_rpc_unary(channel, "/tensorflow.ProfilerService/Profile", (xpl_bytes_t){packed, n},
                           &opt, &reply, NULL),
             XPL_DEADLINE_EXCEEDED);
    const struct request again = {.duration_ms = 200, .xspace = true};
    for (int i = 0; i < 200 && profile(&again, &reply, NULL) != XPL_OK; i++)
        sleep_ms(50);
    CHECK(count(field(reply.bytes, 8)).kernels > 0);
    xpl_rpc_reply_fini(&reply);
    stop_program(&p);
}

// Each reason in a sentence.
static void check_refusals(void) {
    static const struct {
        const char *name, *value, *words;
    } cases[] = {{"FAKE_CUPTI_FAIL", "39", "another profiler is attached"},
                 {"FAKE_CUPTI_FAIL", "35", "NVreg_RestrictProfilingToAdminUsers"},
                 {"FAKE_CUPTI_FAIL", "15", "could not be initialised"},
                 {"FAKE_CUPTI_FAIL", "999", "CUPTI_ERROR_UNKNOWN"},
                 {"XPLANED_CUPTI", "/nowhere/libcupti.so", "cannot be loaded"}};
    const struct request nothing = {.duration_ms = 0, .xspace = true};
    struct xpl_rpc_reply reply = {0};
    refused(XPL_FAILED_PRECONDITION, "libxplaned-agent.so");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct env more[] = {{cases[i].name, cases[i].value}, {0}};
        struct program p = start_program("steady", NULL, more);
        refused(XPL_FAILED_PRECONDITION, cases[i].words);
        stop_program(&p);
    }
    CHECK_EQ(profile(&nothing, &reply, NULL), XPL_OK);
    CHECK_EQ(number(reply.bytes, 7), 1); // empty_trace
    Tensorflow__MonitorRequest m;
    tensorflow__monitor_request__init(&m);
    CHECK_EQ(call("Monitor", &m.base, &reply, NULL), XPL_UNIMPLEMENTED);
    xpl_rpc_reply_fini(&reply);
}

// Something else listens in the directory: it is named, and harms no other program.
static void *impostor_main(void *arg) {
    static const uint8_t nonsense[64] = {1, 0, 0, 0, 255, 255, 255, 255};
    const int listener = *(int *)arg;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd))
        if (write(fd, nonsense, sizeof nonsense) < 0) break;
    return NULL;
}
// A socket of a program that was killed.
static void make_dead(const char *path) {
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    CHECK_EQ(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    close(fd);
}

// Among files with such names only dead sockets are removed, and only in the directory itself.
static void check_removal(void) {
    char dead[108], file[108], moved[108], elsewhere[80], other[108];
    struct stat st;
    snprintf(dead, sizeof dead, "%s/7.sock", dir);
    snprintf(file, sizeof file, "%s/8.sock", dir);
    snprintf(moved, sizeof moved, "%s-moved", dir);
    snprintf(elsewhere, sizeof elsewhere, "%s-elsewhere", dir);
    snprintf(other, sizeof other, "%s/9.sock", elsewhere);
    make_dead(dead);
    CHECK_EQ(mknod(file, S_IFREG | 0600, 0), 0);
    refused(XPL_FAILED_PRECONDITION, "libxplaned-agent.so");
    CHECK(lstat(dead, &st) != 0 && lstat(file, &st) == 0);
    CHECK_EQ(mkdir(elsewhere, 0700), 0);
    make_dead(other);
    CHECK_EQ(rename(dir, moved), 0);
    CHECK_EQ(symlink(elsewhere, dir), 0);
    refused(XPL_FAILED_PRECONDITION, "libxplaned-agent.so");
    CHECK_EQ(lstat(other, &st), 0);
    CHECK(unlink(dir) == 0 && rename(moved, dir) == 0);
    CHECK(unlink(other) == 0 && rmdir(elsewhere) == 0 && unlink(file) == 0);
}

static void check_impostor(void) {
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/0.sock", dir);
    CHECK_EQ(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    CHECK_EQ(listen(fd, 4), 0);
    CHECK_EQ(pthread_create(&thread, NULL, impostor_main, &fd), 0);
    refused(XPL_FAILED_PRECONDITION, "libxplaned-agent.so");
    check_removal();
    struct program p = start_program("steady", NULL, NULL);
    CHECK(capture(SOME_MS).kernels > 0);
    stop_program(&p);
    shutdown(fd, SHUT_RDWR);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close(fd);
}

// ---- clients that only connect, and clients that do not speak HTTP/2 ----

static int connect_tcp(void) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((in_port_t)port_of_agent),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

// gRPC's own first bytes may come before the end.
static bool is_closed(int fd) {
    char some[256];
    for (int i = 0; i < LONG_MS; i += 10, sleep_ms(10)) {
        const ssize_t n = recv(fd, some, sizeof some, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) return true;
    }
    return false;
}

// Idle connections take all descriptors that the agent has (it is given few); when they are gone it
// serves again.  And each connection is guarded.
static void check_attacked(void) {
    enum { IDLE = 100 };
    const struct rlimit few = {64, 64};
    int idle[IDLE];
    CHECK_EQ(prlimit(agent, RLIMIT_NOFILE, &few, NULL), 0);
    struct program p = start_program("steady", NULL, NULL);
    for (int i = 0; i < IDLE; i++)
        idle[i] = connect_tcp();
    CHECK(is_closed(idle[IDLE - 1])); // instead of waiting in the kernel
    for (int i = 0; i < IDLE; i++)
        close(idle[i]);
    char fds[32];
    snprintf(fds, sizeof fds, "/proc/%d/fd", (int)agent);
    for (int i = 0; i < LONG_MS && entries(fds) > 32; i += 10)
        sleep_ms(10);
    CHECK(capture(SOME_MS).kernels > 0);
    const int odd = connect_tcp();
    CHECK_EQ(write(odd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
    CHECK(is_closed(odd));
    close(odd);
    stop_program(&p);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {
        {"capture", check_capture},   {"preload", check_preload},   {"file", check_file},
        {"drops", check_drops},       {"leave", check_leave},       {"crash", check_crash},
        {"two", check_two},           {"busy", check_busy},         {"cancel", check_cancel},
        {"refusals", check_refusals}, {"impostor", check_impostor}, {"attacked", check_attacked}};
    CHECK(argc == 2);
    alarm(200);
    start_agent();
    bool found = false;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, argv[1]) == 0) scenarios[i].run(), found = true;
    CHECK(found);
    stop_agent();
    return 0;
}
