// SPDX-License-Identifier: Apache-2.0
// PyTorch's processes: xplaned-agent --pytorch and capture/ with processes that speak Kineto's IPC
// as torch does.  Usage: test_pytorch SCENARIO; the agent's path comes in $XPLANED_AGENT_EXE.
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "agent/collect.h"
#include "agent/pytorch/message.h"
#include "agent/pytorch/rank.h"
#include "agent/pytorch/traces.h"
#include "capture/capture.h"
#include "tests/check.h"
#include "tests/dir_entries.h"

enum { CALL_MS = 100000, SKIPPED = 77 };

// Recorded from torch 2.9.0 (PyPI, CPU), process 8557, whose ancestors are 8556, 8547, ...
static const uint8_t kAsk[80] = {
    0x28, 0,    0, 0, 0,    0,    0, 0, 'r',  'e',  'q', 0, 0,    0,    0, 0, 0,    0,    0, 0,
    0,    0,    0, 0, 0,    0,    0, 0, 0,    0,    0,   0, 0,    0,    0, 0, 0,    0,    0, 0,
    3,    0,    0, 0, 6,    0,    0, 0, 0,    0,    0,   0, 0,    0,    0, 0, 0x6d, 0x21, 0, 0,
    0x6c, 0x21, 0, 0, 0x63, 0x21, 0, 0, 0x62, 0x21, 0,   0, 0xac, 0x2c, 0, 0, 0xab, 0x2c, 0, 0};
static const uint8_t kNothing[40] = {0, 0, 0, 0, 0, 0, 0, 0, 'r', 'e', 'q'};

static atomic_int g_state; // of the capture

// ---- messages ----

static xpl_bytes_t ask(uint8_t buf[80], uint32_t kind, int64_t job, int32_t pid) {
    memcpy(buf, kAsk, sizeof kAsk);
    memcpy(buf + 40, &kind, 4);
    memcpy(buf + 48, &job, 8);
    memcpy(buf + 56, &pid, 4);
    return (xpl_bytes_t){buf, sizeof kAsk};
}

static int rank_in(const char *environment, size_t n) {
    return xpl_pytorch_rank_in((xpl_str_t){environment, n});
}

static void check_ranks(void) {
    CHECK_EQ(rank_in("", 0), -1);
    CHECK_EQ(rank_in("A=1\0RANK=12\0B=", 14), 12);
    CHECK_EQ(rank_in("RANK=12", 6), 1); // cut off
    CHECK_EQ(rank_in("LOCAL_RANK=1\0XRANK=2\0RANK=\0RANK", 32), -1);
    CHECK_EQ(rank_in("RANK=-1\0RANK=x\0RANK=99999999999", 32), -1);
    CHECK_EQ(rank_in("SLURM_PROCID=3\0RANK=0\0OMPI_COMM_WORLD_RANK=5", 45), 0);
    CHECK_EQ(rank_in("OMPI_COMM_WORLD_RANK=5\0SLURM_PROCID=3", 37), 3);
    CHECK_EQ(xpl_pytorch_rank(getpid()), getenv("RANK") ? atoi(getenv("RANK")) : -1);
}

static void check_messages(void) {
    struct xpl_pytorch_message m;
    uint8_t buf[80], out[XPL_PYTORCH_MAX_ANSWER];
    CHECK(xpl_pytorch_parse((xpl_bytes_t){kAsk, sizeof kAsk}, &m));
    CHECK(m.kind == XPL_PYTORCH_ASK && m.ready && m.pid == 8557 && m.job == 0);
    CHECK(xpl_pytorch_parse(ask(buf, 2, 0, 8557), &m) && m.ready); // torch 2.15
    CHECK(xpl_pytorch_parse(ask(buf, 0, 0, 8557), &m) && !m.ready);
    CHECK(xpl_pytorch_parse(ask(buf, 1, 77, 5), &m)); // busy: it takes events only
    CHECK(!m.ready && m.pid == 5 && m.job == 77);
    for (size_t n = 0; n < sizeof kAsk; n++)
        CHECK(!xpl_pytorch_parse((xpl_bytes_t){kAsk, n}, &m));
    for (size_t i = 0; i < 40; i++) { // another length or type
        memcpy(buf, kAsk, sizeof buf);
        buf[i] ^= 0x80;
        CHECK(xpl_pytorch_parse((xpl_bytes_t){buf, sizeof buf}, &m) == (i > 11));
    }
    memcpy(buf, kAsk, sizeof buf);
    buf[44] = 7;
    CHECK(!xpl_pytorch_parse((xpl_bytes_t){buf, sizeof buf}, &m));
    buf[44] = 0, buf[47] = 0x80;
    CHECK(!xpl_pytorch_parse((xpl_bytes_t){buf, sizeof buf}, &m));

    // i32 gpu, i32 process, i64 job
    static const uint8_t context[56] = {16,  0,   0,   0,   0,        0,           0,    0,
                                        'c', 't', 'x', 't', [40] = 3, [44] = 0x6d, 0x21, [48] = 9};
    CHECK(xpl_pytorch_parse((xpl_bytes_t){context, sizeof context}, &m));
    CHECK(m.kind == XPL_PYTORCH_REGISTER && m.pid == 8557 && m.job == 9);
    static const uint8_t registered[44] = {4, 0, 0, 0, 0, 0, 0, 0, 'c', 't', 'x', 't', [40] = 2};
    CHECK_BYTES(out, xpl_pytorch_answer_register(2, out), registered, sizeof registered);

    CHECK_BYTES(out, xpl_pytorch_answer(NULL, NULL, out), kNothing, sizeof kNothing);
    struct xpl_pytorch_request q = {
        .start_unix_ms = 1764471600123, .duration_ms = 500, .shapes = true, .stack = true};
    static const char span[] = "ACTIVITIES_LOG_FILE=/tmp/d/0.json\n"
                               "PROFILE_START_TIME=1764471600123\n"
                               "ACTIVITIES_WARMUP_PERIOD_SECS=1\n"
                               "ACTIVITIES_DURATION_MSECS=500\n"
                               "PROFILE_REPORT_INPUT_SHAPES=true\n"
                               "PROFILE_WITH_STACK=true\n";
    size_t n = xpl_pytorch_answer(&q, "/tmp/d/0.json", out);
    uint64_t announced;
    memcpy(&announced, out, 8);
    CHECK_EQ(announced, sizeof span - 1);
    CHECK_BYTES(out + 8, 32, kNothing + 8, 32);
    CHECK_BYTES(out + 40, n - 40, span, sizeof span - 1);
    q = (struct xpl_pytorch_request){
        .iterations = 10, .memory = true, .flops = true, .modules = true};
    static const char steps[] = "ACTIVITIES_LOG_FILE=/tmp/d/0.json\n"
                                "PROFILE_START_ITERATION=0\n"
                                "PROFILE_START_ITERATION_ROUNDUP=1\n"
                                "ACTIVITIES_ITERATIONS=10\n"
                                "PROFILE_WITH_MODULES=true\n"
                                "PROFILE_PROFILE_MEMORY=true\n"
                                "PROFILE_WITH_FLOPS=true\n";
    n = xpl_pytorch_answer(&q, "/tmp/d/0.json", out);
    CHECK_BYTES(out + 40, n - 40, steps, sizeof steps - 1);
    char path[XPL_PYTORCH_MAX_PATH + 2];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    CHECK_EQ(xpl_pytorch_answer(&q, path, out), 0);
    path[XPL_PYTORCH_MAX_PATH] = 0;
    q = (struct xpl_pytorch_request){UINT64_MAX, UINT64_MAX, 0, 0, true, true, true, true, true};
    n = xpl_pytorch_answer(&q, path, out);
    CHECK(n > 40 + XPL_PYTORCH_MAX_PATH && n < XPL_PYTORCH_MAX_ANSWER);
    CHECK(memcmp(out + n - 24, "PROFILE_WITH_FLOPS=true\n", 24) == 0);
}

// ---- traces ----

static void put_file(int dir, const char *name, const void *bytes, size_t n) {
    const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0);
}

static void check_traces(void) {
    static const char good[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\"}], \"traceName\": \"a\"\n}\n";
    static const char idle[] = "{\"traceEvents\": [], \"traceName\": \"a\"}";
    char path[] = "/tmp/xpl_pytorch_XXXXXX";
    struct xpl_buf out;
    CHECK(mkdtemp(path));
    const int dir = open(path, O_RDONLY | O_DIRECTORY);
    CHECK(dir >= 0);
    xpl_buf_init(&out, 4 << 20);
    CHECK(xpl_pytorch_take(dir, "0_1.json", "a", &g_state, &out) == XPL_PYTORCH_NOT_YET);
    put_file(dir, "0_1.json", good, sizeof good - 3); // its end is missing
    CHECK(xpl_pytorch_take(dir, "0_1.json", "a", &g_state, &out) == XPL_PYTORCH_NOT_YET);
    CHECK_EQ(out.n, 0);
    put_file(dir, "0_1.json", good, sizeof good - 1);
    CHECK(xpl_pytorch_take(dir, "0_1.json", "a", &g_state, &out) == XPL_PYTORCH_TAKEN);
    CHECK(out.n > 20 && out.p[0] == 0x32);
    const size_t before = out.n;
    put_file(dir, "1_1.json", idle, sizeof idle - 1);
    CHECK(xpl_pytorch_take(dir, "1_1.json", "a", &g_state, &out) == XPL_PYTORCH_IDLE);
    out.n = before;

    CHECK_EQ(symlinkat("0_1.json", dir, "2_1.json"), 0);
    CHECK(xpl_pytorch_take(dir, "2_1.json", "a", &g_state, &out) == XPL_PYTORCH_REFUSED);
    CHECK_EQ(linkat(dir, "0_1.json", dir, "3_1.json", 0), 0);
    CHECK(xpl_pytorch_take(dir, "3_1.json", "a", &g_state, &out) == XPL_PYTORCH_REFUSED);
    CHECK_EQ(mkfifoat(dir, "4_1.json", 0600), 0);
    CHECK(xpl_pytorch_take(dir, "4_1.json", "a", &g_state, &out) == XPL_PYTORCH_REFUSED);
    CHECK_EQ(mkdirat(dir, "5_1.json", 0700), 0);
    CHECK(xpl_pytorch_take(dir, "5_1.json", "a", &g_state, &out) == XPL_PYTORCH_REFUSED);
    CHECK_EQ(unlinkat(dir, "5_1.json", AT_REMOVEDIR), 0);
    if (geteuid() == 0) {
        put_file(dir, "6_1.json", good, sizeof good - 1);
        CHECK_EQ(fchownat(dir, "6_1.json", 65534, 65534, 0), 0);
        CHECK(xpl_pytorch_take(dir, "6_1.json", "a", &g_state, &out) == XPL_PYTORCH_REFUSED);
    }
    CHECK_EQ(out.n, before);
    xpl_buf_fini(&out);

    // One that does not fit leaves room for others; the mark of an op lies across two pieces.
    enum { LARGE = 1 << 20, PIECE = 256 << 10 };
    uint8_t *const text = malloc(LARGE);
    CHECK(text);
    for (size_t i = 0, x = 1; i < LARGE; i++)
        text[i] = (uint8_t)('a' + ((x = x * 1103515245 + 12345) >> 16) % 26);
    memcpy(text + LARGE - 14, "\"traceName\": }", 14);
    memcpy(text + PIECE - 4, "\"kernel\"", 8);
    put_file(dir, "7_1.json", text, LARGE);
    xpl_buf_init(&out, 100000);
    CHECK(xpl_pytorch_take(dir, "7_1.json", "a", &g_state, &out) == XPL_PYTORCH_TOO_LARGE);
    CHECK(out.n == 0 && !out.failed);
    xpl_buf_fini(&out);
    xpl_buf_init(&out, 4 << 20);
    CHECK(xpl_pytorch_take(dir, "7_1.json", "a", &g_state, &out) == XPL_PYTORCH_TAKEN);
    xpl_buf_fini(&out);

    // A second request takes the trace, a cancelled one does not read it.
    xpl_buf_init(&out, 4 << 20);
    g_state = XPL_COLLECT_CANCEL;
    CHECK(xpl_pytorch_take(dir, "7_1.json", "a", &g_state, &out) == XPL_PYTORCH_UNREADABLE);
    CHECK_EQ(out.n, 0);
    g_state = XPL_COLLECT_FINISH;
    CHECK(xpl_pytorch_take(dir, "7_1.json", "a", &g_state, &out) == XPL_PYTORCH_TAKEN);
    xpl_buf_fini(&out);
    free(text);
    xpl_pytorch_remove(dir, path);
    CHECK_EQ(entries(path), -1);
    close(dir);
}

// ---- the agent, and processes that speak as torch does ----

static char dir[64] = "/tmp/xpl_pytorch_XXXXXX";
static pid_t agent;
static int agent_log;
static char target[64];
static bool abstract;    // the names of sockets
static char serving[64]; // the URL of vLLM; "": Kineto's IPC
static const char *serving_traces;

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}
static int64_t real_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Its first line of output.
static void start_agent(char *line, size_t size) {
    int p[2];
    size_t n = 0;
    CHECK_EQ(pipe2(p, O_CLOEXEC), 0);
    agent = fork();
    CHECK(agent >= 0);
    if (agent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(p[1], STDERR_FILENO);
        if (!abstract) setenv("KINETO_IPC_SOCKET_DIR", dir, 1);
        if (serving[0])
            execl(getenv("XPLANED_AGENT_EXE"), "xplaned-agent", "--serving", serving, "--traces",
                  serving_traces, "--listen", "127.0.0.1:0", "--directory", dir, (char *)NULL);
        execl(getenv("XPLANED_AGENT_EXE"), "xplaned-agent", "--pytorch", "--listen", "127.0.0.1:0",
              "--directory", dir, (char *)NULL);
        _exit(127);
    }
    close(p[1]);
    agent_log = p[0];
    while (n + 1 < size && read(agent_log, line + n, 1) == 1 && line[n++] != '\n')
        continue;
    line[n] = 0;
    const char *const port = strstr(line, "port=");
    if (port) snprintf(target, sizeof target, "pytorch:127.0.0.1:%d", atoi(port + 5));
}
static void must_start(void) {
    char line[512];
    CHECK(mkdtemp(dir));
    start_agent(line, sizeof line);
    if (!target[0]) FAIL_TEST(line);
}
static void stop_agent(void) {
    int status;
    kill(agent, SIGTERM);
    CHECK_EQ(waitpid(agent, &status, 0), agent);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(agent_log);
    CHECK_EQ(entries(dir), 0); // sockets and traces are gone
    rmdir(dir);
}

static socklen_t address_of(const char *name, struct sockaddr_un *ret) {
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = abstract ? snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "%s", name) + 1
                           : snprintf(ret->sun_path, sizeof ret->sun_path, "%s/%s", dir, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
}
static int open_client(const char *name) {
    struct sockaddr_un a, d;
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&a, address_of(name, &a)), 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&d, address_of("dynolog", &d)), 0);
    return fd;
}
static size_t exchange(int fd, xpl_bytes_t message, uint8_t ret[4096]) {
    CHECK_EQ(send(fd, message.ptr, message.len, 0), (ssize_t)message.len);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, CALL_MS), 1);
    const ssize_t n = recv(fd, ret, 4095, 0);
    CHECK(n >= 40);
    ret[n] = 0;
    return (size_t)n;
}

struct fake {
    int64_t job;
    enum { WRITES, WRITES_LINK, WRITES_NO_OPS, IS_BUSY, LEAVES } how;
};

static void write_trace(const struct fake *f, const char *base, int64_t started, int rank) {
    char path[512], aside[520], text[1024];
    snprintf(path, sizeof path, "%.*s_%d.json", (int)(strlen(base) - 5), base, (int)getpid());
    snprintf(aside, sizeof aside, "%s.tmp", path);
    snprintf(
        text, sizeof text,
        "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": %d, \"world_size\": 3},\n"
        "\"deviceProperties\": [], \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"%s\", \"name\": "
        "\"aten::mm\", \"pid\": 1, \"tid\": 1, \"ts\": %lld000.5, \"dur\": 100}],\n"
        "\"traceName\": \"%s\"\n}\n",
        rank, f->how == WRITES_NO_OPS ? "user_annotation" : "cpu_op", (long long)started, base);
    FILE *const o = fopen(aside, "w");
    CHECK(o && fputs(text, o) >= 0 && fclose(o) == 0);
    if (f->how == WRITES_LINK)
        CHECK_EQ(symlink(aside, path), 0);
    else
        CHECK_EQ(rename(aside, path), 0);
}

// Does as asked, twice if `how` lets it.
static void run_fake(const struct fake *f, int rank, int ready) {
    char name[80], path[400];
    uint8_t message[80], answer[4096];
    snprintf(name, sizeof name, "dynoconfigclient%d", (int)getpid());
    const int fd = open_client(name);
    for (bool said = false;; sleep_ms(100)) {
        exchange(fd, ask(message, f->how == IS_BUSY ? 1 : 3, f->job, getpid()), answer);
        if (!said) CHECK_EQ(write(ready, "", 1), 1);
        said = true;
        const char *const text = (const char *)answer + 40, *at;
        if (!*text) continue;
        if (f->how == LEAVES) _exit(0);
        CHECK(f->how != IS_BUSY);
        CHECK(sscanf(text, "ACTIVITIES_LOG_FILE=%399[^\n]", path) == 1);
        CHECK(strncmp(path, dir, strlen(dir)) == 0);
        CHECK(strstr(text, "ACTIVITIES_DURATION_MSECS=200\n"));
        CHECK((at = strstr(text, "PROFILE_START_TIME=")));
        const int64_t begin = atoll(at + 19);
        CHECK(begin > real_ms() + 1000); // time for its warm-up
        while (real_ms() < begin + 200)
            sleep_ms(10);
        write_trace(f, path, begin, rank);
    }
}

static void start_fakes(const struct fake *f, pid_t *pids, int n) {
    int ready[2];
    char c;
    CHECK_EQ(pipe2(ready, O_CLOEXEC), 0);
    for (int i = 0; i < n; i++) {
        if ((pids[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_fake(&f[i], i, ready[1]);
        }
        CHECK(pids[i] > 0);
        CHECK_EQ(read(ready[0], &c, 1), 1);
    }
    close(ready[0]);
    close(ready[1]);
}
static void stop_fakes(const pid_t *pids, int n) {
    for (int i = 0; i < n; i++) {
        int status;
        char path[160];
        snprintf(path, sizeof path, "%s/dynoconfigclient%d", dir, (int)pids[i]);
        kill(pids[i], SIGKILL);
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_EQ(unlink(path), 0);
        CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
              (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
}

static xpl_status_t capture(const char *logdir, const struct xpl_capture_advanced *advanced,
                            struct xpl_capture_outcome *ret, struct xpl_error *err) {
    const char *const targets[] = {target};
    const struct xpl_capture_plan plan = {.size = sizeof plan,
                                          .targets = targets,
                                          .n_targets = 1,
                                          .session = XPL_STR("run"),
                                          .duration_ms = 200,
                                          .host_tracer_level = -1,
                                          .device_tracer_level = -1,
                                          .python_tracer_level = -1,
                                          .advanced = advanced,
                                          .n_advanced = advanced ? 1 : 0};
    return xpl_capture_run(&plan, logdir, NULL, NULL, NULL, ret, err);
}

// The trace of a process, decompressed; NULL: it is not there.
static char *read_trace(const char *session, pid_t pid, char *ret, size_t size) {
    char path[700], host[100];
    CHECK_EQ(gethostname(host, sizeof host), 0);
    snprintf(path, sizeof path, "%s/%s_%d.pt.trace.json.gz", session, host, (int)pid);
    gzFile f = gzopen(path, "rb");
    if (!f) return NULL;
    const int n = gzread(f, ret, (unsigned)size - 1);
    CHECK(n > 0 && gzclose(f) == Z_OK);
    ret[n] = 0;
    return ret;
}

// All processes of one job record at one moment; each trace becomes a file of the session.
static void check_capture(void) {
    const struct fake f[] = {{5, WRITES}, {5, WRITES},  {5, WRITES},        {5, WRITES_LINK},
                             {5, LEAVES}, {5, IS_BUSY}, {5, WRITES_NO_OPS}, {6, WRITES}};
    enum { N = sizeof f / sizeof *f };
    const struct xpl_capture_advanced job = {
        .key = "pytorch_job", .type = XPL_CAPTURE_INT, .number = 5};
    char logdir[] = "/tmp/xpl_pytorch_XXXXXX", text[2048], expected[64];
    struct xpl_capture_outcome o = {0};
    struct xpl_error err = {0};
    pid_t pids[N];
    must_start();
    CHECK(mkdtemp(logdir));
    start_fakes(f, pids, N);
    CHECK_STATUS(capture(logdir, NULL, &o, &err), XPL_FAILED_PRECONDITION, &err);
    if (!strstr(o.hosts[0].reason, "processes of several jobs run here (5, 6)"))
        FAIL_TEST(o.hosts[0].reason);
    xpl_capture_outcome_fini(&o);
    if (capture(logdir, &job, &o, &err) != XPL_OK) FAIL_TEST(err.msg);
    CHECK_EQ(o.n_stored, 1);
    CHECK_EQ(o.n_files, 3);
    CHECK(o.hosts[0].file.counts.bytes > 300);
    const char *const why = o.hosts[0].reason;
    if (strncmp(why, "3 processes; ", 13) != 0) FAIL_TEST(why);
    const struct {
        int i;
        const char *text;
    } notes[] = {{3, "left a link"}, {4, "ended before it"}, {5, "is being profiled already"}};
    for (size_t i = 0; i < 3; i++) {
        snprintf(expected, sizeof expected, "process %d %s", (int)pids[notes[i].i], notes[i].text);
        if (!strstr(why, expected)) FAIL_TEST(why);
    }
    char first[32] = "";
    for (int i = 0; i < 3; i++) {
        CHECK(read_trace(o.path, pids[i], text, sizeof text));
        const char *const ts = strstr(text, "\"ts\": ");
        snprintf(expected, sizeof expected, "\"rank\": %d,", i);
        CHECK(ts && strstr(text, expected));
        if (!i) snprintf(first, sizeof first, "%.24s", ts);
        CHECK(strncmp(first, ts, 24) == 0); // they began at once
    }
    for (int i = 3; i < N; i++)
        CHECK(!read_trace(o.path, pids[i], text, sizeof text));
    CHECK_EQ(entries(o.path), 4); // and capture.json
    xpl_capture_outcome_fini(&o);
    stop_fakes(pids, N);
    stop_agent();
}

// Nobody speaks; then the only process leaves a link.  No session remains.
static void check_none(void) {
    const struct fake f[] = {{0, WRITES_LINK}};
    char logdir[] = "/tmp/xpl_pytorch_XXXXXX";
    struct xpl_capture_outcome o = {0};
    struct xpl_error err = {0};
    pid_t pids[1];
    must_start();
    CHECK(mkdtemp(logdir));
    CHECK_STATUS(capture(logdir, NULL, &o, &err), XPL_FAILED_PRECONDITION, &err);
    if (!strstr(o.hosts[0].reason, "KINETO_USE_DAEMON=1")) FAIL_TEST(o.hosts[0].reason);
    xpl_capture_outcome_fini(&o);
    start_fakes(f, pids, 1);
    CHECK_STATUS(capture(logdir, NULL, &o, &err), XPL_FAILED_PRECONDITION, &err);
    if (!strstr(o.hosts[0].reason, "left a link")) FAIL_TEST(o.hosts[0].reason);
    xpl_capture_outcome_fini(&o);
    stop_fakes(pids, 1);
    CHECK_EQ(entries(logdir), 0);
    rmdir(logdir);
    stop_agent();
}

// ---- vLLM and SGLang ----

// A server that answers 200 to every request but one, and writes traces as vLLM does.
struct server {
    int fd, port;
    pthread_t thread;
    const char *wrong; // a path, or NULL
    const char *traces;
    atomic_int started, stopped;
};

// More files than the agent lists.
enum { MANY = 4200 };
static void put_old(int to, char first) {
    static const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "%c%d.json", first, i);
        put_file(to, name, "", 0);
        CHECK_EQ(utimensat(to, name, old, 0), 0);
    }
}

static void write_traces(const char *traces) {
    static const char plain[] = "{\"traceEvents\": [{\"cat\": \"cpu_op\"}], \"traceName\": \"a\"}";
    const int to = open(traces, O_RDONLY | O_DIRECTORY);
    char path[200];
    snprintf(path, sizeof path, "%s/host_1-rank-0.17.pt.trace.json.gz", traces);
    gzFile f = gzopen(path, "wb");
    CHECK(f && gzwrite(f, plain, sizeof plain - 1) > 0 && gzclose(f) == Z_OK);
    put_file(to, "17-TP-1.trace.json", plain, sizeof plain - 1);
    put_file(to, "notes.txt", "x", 1);
    CHECK_EQ(symlinkat("old.pt.trace.json", to, "link.trace.json"), 0);
    put_old(to, 'b'); // whichever end of the directory is read first
    close(to);
}

static void answer_request(struct server *s, int fd) {
    char request[2048];
    size_t n = 0;
    request[0] = 0;
    while (!strstr(request, "\r\n\r\n")) {
        const ssize_t got = recv(fd, request + n, sizeof request - 1 - n, 0);
        CHECK(got > 0);
        n += (size_t)got;
        request[n] = 0;
    }
    const bool start = strncmp(request, "POST /start_profile HTTP/1.1\r\n", 30) == 0;
    CHECK(start || strncmp(request, "POST /stop_profile HTTP/1.1\r\n", 29) == 0);
    CHECK(strstr(request, "Content-Length: 0\r\n"));
    atomic_fetch_add(start ? &s->started : &s->stopped, 1);
    const bool is_wrong = s->wrong && strncmp(request + 5, s->wrong, strlen(s->wrong)) == 0;
    if (!start && !is_wrong) write_traces(s->traces);
    const char *const text = is_wrong ? "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                                      : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    CHECK_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void *server_main(void *arg) {
    struct server *const s = arg;
    for (int fd; (fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0; close(fd))
        answer_request(s, fd);
    return NULL;
}

static void start_server(struct server *s) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(s->fd >= 0);
    CHECK_EQ(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    CHECK_EQ(listen(s->fd, 8), 0);
    CHECK_EQ(getsockname(s->fd, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    CHECK_EQ(pthread_create(&s->thread, NULL, server_main, s), 0);
}
static void stop_server(struct server *s) {
    shutdown(s->fd, SHUT_RDWR);
    CHECK_EQ(pthread_join(s->thread, NULL), 0);
    close(s->fd);
}

static void check_server_traces(const struct xpl_capture_outcome *o) {
    static const char *const files[] = {"host_1-rank-0.17.pt.trace.json.gz",
                                        "17-TP-1.pt.trace.json.gz"};
    char text[200], path[700];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", o->path, files[i]);
        gzFile f = gzopen(path, "rb");
        CHECK(f && gzread(f, text, sizeof text) > 17 && gzclose(f) == Z_OK);
        CHECK(memcmp(text, "{\"traceEvents\": [", 17) == 0);
    }
    CHECK_EQ(entries(o->path), 3); // and capture.json
}

static void refused(const char *logdir, xpl_status_t status, const char *words) {
    struct xpl_capture_outcome o = {0};
    struct xpl_error err = {0};
    CHECK_STATUS(capture(logdir, NULL, &o, &err), status, &err);
    if (!strstr(o.hosts[0].reason, words)) FAIL_TEST(o.hosts[0].reason);
    xpl_capture_outcome_fini(&o);
}

// Older traces, which may be many, other files and links are not taken; the server keeps its files.
static void check_serving(void) {
    char traces[] = "/tmp/xpl_pytorch_XXXXXX", logdir[] = "/tmp/xpl_pytorch_XXXXXX", command[200];
    struct server s = {.traces = traces};
    struct xpl_capture_outcome o = {0};
    struct xpl_error err = {0};
    CHECK(mkdtemp(traces) && mkdtemp(logdir));
    const int to = open(traces, O_RDONLY | O_DIRECTORY);
    put_file(to, "old.pt.trace.json", "{\"traceName\": 1}", 16);
    put_old(to, 'a');
    start_server(&s);
    snprintf(serving, sizeof serving, "http://127.0.0.1:%d/", s.port);
    serving_traces = traces;
    must_start();
    if (capture(logdir, NULL, &o, &err) != XPL_OK) FAIL_TEST(err.msg);
    CHECK_EQ(o.n_files, 2);
    CHECK_STR(o.hosts[0].reason, "2 processes; 1 of 3 traces were not taken");
    CHECK_EQ(atomic_load(&s.started), 1);
    CHECK_EQ(atomic_load(&s.stopped), 1);
    check_server_traces(&o);
    xpl_capture_outcome_fini(&o);
    CHECK_EQ(entries(traces), 5 + 2 * MANY);

    s.wrong = "/start_profile";
    refused(logdir, XPL_FAILED_PRECONDITION, "VLLM_TORCH_PROFILER_DIR");
    CHECK_EQ(atomic_load(&s.stopped), 1); // nothing was begun
    s.wrong = "/stop_profile";
    refused(logdir, XPL_FAILED_PRECONDITION, "stop_profile: status 404");
    CHECK_EQ(atomic_load(&s.started), 3);
    stop_server(&s);
    refused(logdir, XPL_UNAVAILABLE, "");
    close(to);
    stop_agent();
    snprintf(command, sizeof command, "rm -rf %s %s", traces, logdir);
    CHECK_EQ(system(command), 0);
}

// ---- the socket ----

// A separate network, in which dynolog's name is free; false: that is not allowed here.
static bool enter_network(void) {
    if (unshare(CLONE_NEWNET) != 0) return false;
    struct ifreq r = {.ifr_name = "lo"};
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(fd >= 0);
    CHECK_EQ(ioctl(fd, SIOCGIFFLAGS, &r), 0);
    r.ifr_flags |= IFF_UP;
    CHECK_EQ(ioctl(fd, SIOCSIFFLAGS, &r), 0);
    close(fd);
    return true;
}

// Another user gets no answer; the abstract name is dynolog's.
static void check_stranger(void) {
    uint8_t message[80], answer[4096];
    int pipes[2], status;
    if (geteuid() != 0 || !enter_network()) exit(SKIPPED);
    abstract = true;
    must_start();
    CHECK_EQ(pipe2(pipes, O_CLOEXEC), 0);
    const pid_t stranger = fork();
    if (stranger == 0) {
        char c;
        CHECK_EQ(setgid(65534), 0);
        CHECK_EQ(setuid(65534), 0);
        const int fd = open_client("dynoconfigclient-stranger");
        const xpl_bytes_t m = ask(message, 3, 0, getpid());
        CHECK_EQ(send(fd, m.ptr, m.len, 0), (ssize_t)m.len);
        kill(getpid(), SIGSTOP); // until the agent has answered a later one
        CHECK(recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
        _exit(0);
    }
    CHECK_EQ(waitpid(stranger, &status, WUNTRACED), stranger);
    CHECK(WIFSTOPPED(status));
    const int fd = open_client("dynoconfigclient-own");
    CHECK_BYTES(answer, exchange(fd, (xpl_bytes_t){kAsk, sizeof kAsk}, answer), kNothing,
                sizeof kNothing);
    kill(stranger, SIGCONT);
    CHECK_EQ(waitpid(stranger, &status, 0), stranger);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(fd);
    stop_agent();
}

// dynolog has the socket; one that was killed has not.
static void check_taken(void) {
    struct sockaddr_un a;
    char line[512];
    int status;
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(mkdtemp(dir));
    CHECK_EQ(bind(fd, (struct sockaddr *)&a, address_of("dynolog", &a)), 0);
    start_agent(line, sizeof line);
    if (!strstr(line, "another program serves PyTorch's processes here") ||
        !strstr(line, "stop dynolog"))
        FAIL_TEST(line);
    CHECK_EQ(waitpid(agent, &status, 0), agent);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    CHECK_EQ(entries(dir), 1); // it did not take it away
    close(fd);
    close(agent_log);
    start_agent(line, sizeof line);
    if (!target[0]) FAIL_TEST(line);
    stop_agent();
}

// The first line of an agent that root starts with another directory; "" if it serves.
static void check_root(const char *directory, mode_t mode, uid_t owner, bool serves) {
    char path[100], link[120], line[512];
    int status;
    CHECK(mkdtemp(strcpy(dir, "/tmp/xpl_pytorch_XXXXXX")));
    snprintf(path, sizeof path, "%s", dir);
    snprintf(link, sizeof link, "%s/link", path);
    CHECK_EQ(symlink(".", link), 0);
    CHECK(chmod(dir, mode) == 0 && chown(dir, owner, owner) == 0);
    snprintf(dir + strlen(dir), sizeof dir - strlen(dir), "%s", directory);
    target[0] = 0;
    start_agent(line, sizeof line);
    if (serves) CHECK(target[0]);
    if (serves) kill(agent, SIGTERM);
    if (!serves && !strstr(line, "only this user can write to, as must those")) FAIL_TEST(line);
    CHECK_EQ(waitpid(agent, &status, 0), agent);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (serves ? 0 : 1));
    close(agent_log);
    if (directory[0]) rmdir(dir);
    unlink(link);
    rmdir(path);
}

// Root writes by path, so no directory on the way may be another user's.
static void check_directories(void) {
    if (geteuid() != 0 || !enter_network()) exit(SKIPPED);
    abstract = true;
    check_root("", 0700, 0, true);
    check_root("/own", 0755, 0, true);
    check_root("/own", 01777, 0, true); // as /tmp
    check_root("", 0700, 65534, false);
    check_root("", 0770, 0, false);
    check_root("/own", 0755, 65534, false);
    check_root("/own", 0777, 0, false);
    check_root("/link/own", 0700, 0, false);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {
        {"messages", check_messages}, {"ranks", check_ranks}, {"traces", check_traces},
        {"capture", check_capture},   {"none", check_none},   {"stranger", check_stranger},
        {"serving", check_serving},   {"taken", check_taken}, {"directories", check_directories}};
    CHECK(argc == 2);
    alarm(200);
    bool found = false;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, argv[1]) == 0) scenarios[i].run(), found = true;
    CHECK(found);
    return 0;
}
