// SPDX-License-Identifier: Apache-2.0
// What libxplaned-agent.so costs a CUDA program that launches small kernels in a loop, compared
// with no library and with only CUPTI's activity API. The driver and CUPTI are those of
// tests/agent/fake: their launch and their records cost almost nothing, so what is added shows, and
// ratios are larger than on a GPU. Usage: bench_agent [ROUNDS [LAUNCHES]]; the paths come in the
// environment.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/inject/cupti_abi.h"
#include "agent/record.h"
#include "proto/tensorflow/profiler_request.pb-c.h"
#include "rpc/client.h"
#include "tests/agent/fake/fake.h"
#include "tests/check.h"

// The first launches are not measured: they fill more than two buffers, after which CUPTI has all
// of its memory. The others come in bursts with pauses, a million in a second, which is more than a
// GPU takes.
enum {
    ROUNDS = 15,
    ROUNDS_MAX = 99,
    WARM = 50000,
    LAUNCHES = 500000,
    BURST = 1000,
    PAUSE_US = 900,
    RECORDS = 3,
    CALL_MS = 100000
};

enum way { NONE, OFF, ALONE, ON, WAYS };

static uint64_t cpu_ns(clockid_t clock) {
    struct timespec t;
    CHECK(clock_gettime(clock, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_us(long us) {
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

// ---- the program, a separate process: bench_agent launch WAY N ----

static void buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    *buffer = malloc(XPL_AGENT_BUFFER_BYTES);
    *size = *buffer ? XPL_AGENT_BUFFER_BYTES : 0;
    *max_records = 0;
}
static void buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                             size_t valid) {
    (void)context, (void)stream, (void)size, (void)valid;
    free(buffer);
}

static void *cupti_function(const char *name) {
    static void *handle;
    if (!handle) handle = dlopen("libcupti.so.12", RTLD_NOW | RTLD_LOCAL);
    void *const f = handle ? dlsym(handle, name) : NULL;
    if (!f) FAIL_TEST(dlerror());
    return f;
}
#define CUPTI(name)                                                                                \
    (__extension__(__typeof__(((struct cu_functions *)NULL)->name)) cupti_function(#name))

// The kinds that the agent records of this program.
static const uint32_t KINDS[] = {CU_CONCURRENT_KERNEL, CU_MEMCPY,   CU_MEMSET,     CU_SYNC,
                                 CU_MEMORY2,           CU_DRIVER,   CU_RUNTIME,    CU_MARKER,
                                 CU_UNIFIED,           CU_OVERHEAD, CU_GRAPH_TRACE};

static void begin_alone(void) {
    CHECK(CUPTI(cuptiActivityRegisterCallbacks)(buffer_requested, buffer_completed) == CU_OK);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        CHECK(CUPTI(cuptiActivityEnable)(KINDS[i]) == CU_OK);
}
static void end_alone(void) {
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        CHECK(CUPTI(cuptiActivityDisable)(KINDS[i]) == CU_OK);
    CHECK(CUPTI(cuptiActivityFlushAll)(CU_FLUSH_FORCED) == CU_OK);
}

static void say(const char *text) {
    CHECK(write(STDOUT_FILENO, text, strlen(text)) == (ssize_t)strlen(text));
}

static void launch_kernels(uint64_t n) {
    for (uint64_t i = 1; i <= n; i++) {
        fake_kernel("_ZN7cutlass6KernelINS_4gemm6kernel4GemmIfLi128EEEEEvNT_6ParamsE", 0, 7);
        if (i % BURST == 0) sleep_us(PAUSE_US);
    }
}

// Says "ready", launches, says "done", waits until all records are where they belong, and says how
// much CPU time the loop's thread took, and the process all in all.
static int launch(enum way way, uint64_t n) {
    char text[64];
    CHECK(cuInit(0) == 0);
    say("ready\n");
    if (way == ALONE) begin_alone();
    while (way == ON && !fake_cuda_is_traced())
        sleep_us(1000);
    sleep_us(100000); // the rest is enabled
    launch_kernels(WARM);
    const uint64_t process = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    launch_kernels(n);
    const uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    say("done\n");
    if (way == ALONE) end_alone();
    CHECK(read(STDIN_FILENO, text, 1) == 1);
    (void)snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", end - begin,
                   cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - process);
    say(text);
    return 0;
}

// ---- processes ----

struct child {
    pid_t pid;
    int to, log; // its stdin; its stdout, or stderr
};

static struct child start(const char *const *argv, int output) {
    struct child c;
    int in[2], out[2];
    CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    CHECK((c.pid = fork()) >= 0);
    if (c.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], output);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c.to = in[1], c.log = out[0];
    return c;
}

static void read_line(const struct child *c, char *ret, size_t size) {
    size_t n = 0;
    while (n + 1 < size && read(c->log, ret + n, 1) == 1 && ret[n++] != '\n')
        continue;
    CHECK(n > 0);
    ret[n] = 0;
}

static void end(struct child *c, int sig) {
    int status;
    if (sig) kill(c->pid, sig);
    close(c->to);
    CHECK_EQ(waitpid(c->pid, &status, 0), c->pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(c->log);
}

// ---- captures ----

static struct {
    char dir[32];
    struct child process;
    struct xpl_rpc_channel *channel;
    clockid_t clock; // its CPU time
} agent = {.dir = "/tmp/xpl_bench_XXXXXX"};

static void start_agent(void) {
    const char *const argv[] = {getenv("XPLANED_AGENT_EXE"), "--listen", "127.0.0.1:0", NULL};
    char line[512], target[64];
    CHECK(mkdtemp(agent.dir));
    setenv("XPLANED_AGENT_DIR", agent.dir, 1);
    agent.process = start(argv, STDERR_FILENO);
    read_line(&agent.process, line, sizeof line);
    const char *const port = strstr(line, "port=");
    CHECK(port);
    (void)snprintf(target, sizeof target, "127.0.0.1:%d", atoi(port + 5));
    const struct xpl_rpc_channel_options opt = {.size = sizeof opt, .target = target};
    CHECK(xpl_rpc_channel_open(&opt, &agent.channel, NULL) == XPL_OK);
    CHECK(clock_getcpuclockid(agent.process.pid, &agent.clock) == 0);
}

static void stop_agent(void) {
    xpl_rpc_channel_close(agent.channel);
    end(&agent.process, SIGTERM);
    CHECK(rmdir(agent.dir) == 0);
}

static void call(const char *path, const ProtobufCMessage *m) {
    uint8_t packed[1024];
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    const struct xpl_rpc_call_options opt = {.size = sizeof opt, .timeout_ms = CALL_MS};
    CHECK(protobuf_c_message_get_packed_size(m) <= sizeof packed);
    const size_t n = protobuf_c_message_pack(m, packed);
    if (xpl_rpc_unary(agent.channel, path, (xpl_bytes_t){packed, n}, &opt, &reply, &err) != XPL_OK)
        FAIL_TEST(err.msg);
    xpl_rpc_reply_fini(&reply);
}

static void *capture_main(void *arg) {
    Tensorflow__ProfileOptions o;
    Tensorflow__ProfileRequest r;
    tensorflow__profile_options__init(&o);
    tensorflow__profile_request__init(&r);
    o.duration_ms = CALL_MS, o.device_tracer_level = 1, o.host_tracer_level = 2;
    r.opts = &o, r.emit_xspace = 1, r.session_id = arg;
    call("/tensorflow.ProfilerService/Profile", &r.base);
    return NULL;
}

static void end_capture(pthread_t thread, char *session, uint64_t launches) {
    char line[512] = "";
    unsigned long long device = 0, host = 0, dropped = 1;
    Tensorflow__TerminateRequest r;
    tensorflow__terminate_request__init(&r);
    r.session_id = session;
    call("/tensorflow.ProfilerService/Terminate", &r.base);
    CHECK(pthread_join(thread, NULL) == 0);
    while (!strstr(line, "captured "))
        read_line(&agent.process, line, sizeof line);
    CHECK(sscanf(strstr(line, "device_events="), "device_events=%llu host_events=%llu dropped=%llu",
                 &device, &host, &dropped) == 3);
    CHECK(device == WARM + launches && host == 2 * device && dropped == 0);
}

// ---- rounds ----

enum { THREAD, OTHERS, AGENT, WHERE }; // the loop's thread, the program's others, xplaned-agent

struct cost {
    double us[WHERE]; // CPU time a launch
};

static struct cost run(enum way way, uint64_t launches) {
    static char session[] = "bench";
    char ways[8], n[24], line[64];
    const char *const argv[] = {"/proc/self/exe", "launch", ways, n, NULL};
    pthread_t capture;
    uint64_t thread_ns, process_ns;
    (void)snprintf(ways, sizeof ways, "%d", (int)way);
    (void)snprintf(n, sizeof n, "%" PRIu64, launches);
    if (way == OFF || way == ON)
        setenv("CUDA_INJECTION64_PATH", getenv("XPLANED_AGENT_LIB"), 1);
    else
        unsetenv("CUDA_INJECTION64_PATH");
    struct child c = start(argv, STDOUT_FILENO);
    read_line(&c, line, sizeof line); // ready
    const uint64_t before = cpu_ns(agent.clock);
    if (way == ON) CHECK(pthread_create(&capture, NULL, capture_main, session) == 0);
    read_line(&c, line, sizeof line); // done
    if (way == ON) end_capture(capture, session, launches);
    const uint64_t after = cpu_ns(agent.clock);
    CHECK(write(c.to, "\n", 1) == 1);
    read_line(&c, line, sizeof line);
    CHECK(sscanf(line, "%" SCNu64 " %" SCNu64, &thread_ns, &process_ns) == 2);
    end(&c, 0);
    const double us = 1e3 * (double)launches;
    return (struct cost){{(double)thread_ns / us, (double)(process_ns - thread_ns) / us,
                          (double)(after - before) / us}};
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *v, size_t n) {
    qsort(v, n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double median_of(struct cost (*v)[WAYS], size_t n, enum way way, int where) {
    double x[ROUNDS_MAX];
    for (size_t i = 0; i < n; i++)
        x[i] = v[i][way].us[where];
    return median(x, n);
}
// Of the two ways' differences in each round.
static double added(struct cost (*v)[WAYS], size_t n, enum way way, enum way to, int where) {
    double x[ROUNDS_MAX];
    for (size_t i = 0; i < n; i++)
        x[i] = v[i][way].us[where] - v[i][to].us[where];
    return median(x, n);
}
// Of the loop's thread.
static void print_ratio(const char *what, struct cost (*v)[WAYS], size_t n, enum way way,
                        enum way to) {
    double x[ROUNDS_MAX];
    for (size_t i = 0; i < n; i++)
        x[i] = v[i][way].us[THREAD] / v[i][to].us[THREAD];
    const double middle = median(x, n);
    (void)printf("%s: %.3f (%.3f to %.3f in the middle half of the rounds)\n", what, middle,
                 x[n / 4], x[n - 1 - n / 4]);
}

static void print_results(struct cost (*v)[WAYS], size_t n) {
    static const char *const names[WAYS] = {"no library", "agent, off", "CUPTI alone", "agent, on"};
    (void)puts("CPU time a launch, us | the loop's thread | other threads | xplaned-agent");
    for (enum way w = NONE; w < WAYS; w++)
        (void)printf("%-21s | %.4f | %.4f | %.4f\n", names[w], median_of(v, n, w, THREAD),
                     median_of(v, n, w, OTHERS), median_of(v, n, w, AGENT));
    print_ratio("off / no library", v, n, OFF, NONE);
    print_ratio("on / CUPTI alone", v, n, ON, ALONE);
    const double cupti = added(v, n, ALONE, NONE, THREAD), on = added(v, n, ON, NONE, THREAD);
    const double here = added(v, n, ON, ALONE, THREAD), own = added(v, n, ON, ALONE, OTHERS);
    (void)printf(
        "more than no library, in the loop's thread: CUPTI alone %.4f us a launch, on %.4f "
        "(%.2f times)\n",
        cupti, on, on / cupti);
    (void)printf("on, more than CUPTI alone: %.4f us a record in the loop's thread, %.4f in the "
                 "agent's own\n",
                 here / RECORDS, own / RECORDS);
    (void)printf(
        "at most 10%% more than CUPTI alone, if that costs at least %.2f us a launch; with "
        "the agent's own thread, %.2f\n",
        here > 0 ? here * 10 : 0, (here + own) * 10);
}

int main(int argc, char **argv) {
    static struct cost v[ROUNDS_MAX][WAYS];
    (void)alarm(600);
    if (argc == 4 && strcmp(argv[1], "launch") == 0)
        return launch((enum way)atoi(argv[2]), strtoull(argv[3], NULL, 10));
    const long asked = argc > 1 ? atol(argv[1]) : ROUNDS;
    const size_t rounds = asked < 1 ? 1 : asked > ROUNDS_MAX ? ROUNDS_MAX : (size_t)asked;
    const uint64_t launches = argc > 2 ? strtoull(argv[2], NULL, 10) : LAUNCHES;
    if (!getenv("XPLANED_AGENT_EXE") || !getenv("XPLANED_AGENT_LIB") || !launches) {
        (void)fprintf(stderr,
                      "usage: meson test --benchmark -v agent, or XPLANED_AGENT_EXE=PROGRAM "
                      "XPLANED_AGENT_LIB=LIBRARY LD_LIBRARY_PATH=BUILD/tests/agent "
                      "bench_agent [ROUNDS [LAUNCHES]]\n");
        return 2;
    }
    start_agent();
    for (size_t i = 0; i < rounds; i++)
        for (size_t k = 0; k < WAYS; k++) {
            const enum way way = (enum way)((i + k) % WAYS); // each goes first in its turn
            v[i][way] = run(way, launches);
        }
    stop_agent();
    (void)printf("%zu rounds of %" PRIu64 " launches\n", rounds, launches);
    print_results(v, rounds);
    return 0;
}
