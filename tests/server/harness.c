// SPDX-License-Identifier: Apache-2.0
#include "tests/server/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

enum { MAX_DIRS = 8, MAX_ARGS = 32, STEP_MS = 50 };
static char dirs[MAX_DIRS][64];
static int n_dirs;

void sleep_ms(int ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&t, NULL);
}

static void remove_dirs(void) {
    for (int i = 0; i < n_dirs; i++) {
        char cmd[1200];
        (void)snprintf(cmd, sizeof cmd, "chmod -R u+w %s 2>/dev/null; rm -rf %s", dirs[i], dirs[i]);
        const int rc = system(cmd);
        (void)rc;
    }
}

const char *make_dir(void) {
    CHECK(n_dirs < MAX_DIRS);
    if (n_dirs == 0) CHECK_EQ(atexit(remove_dirs), 0);
    strcpy(dirs[n_dirs], "/tmp/xplaned-test-XXXXXX");
    CHECK(mkdtemp(dirs[n_dirs]));
    return dirs[n_dirs++];
}

// The value of `address=` on the line of the log that says `what` listens.
static bool find_address(const char *log, const char *what, char *ret, size_t size) {
    FILE *f = fopen(log, "r");
    char line[4096], expected[160];
    bool found = false;
    (void)snprintf(expected, sizeof expected, "msg=listening service=%s address=", what);
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, expected);
        if (!at || !strchr(line, '\n')) continue;
        at += strlen(expected);
        (void)snprintf(ret, size, "%.*s", (int)strcspn(at, " \n"), at);
        found = true;
    }
    if (f) (void)fclose(f);
    return found;
}

static void exec_daemon(const char *log, const char *logdir, const char *state_dir,
                        const char *const *more) {
    const char *args[MAX_ARGS] = {getenv("XPLANED"),
                                  "--logdir",
                                  logdir,
                                  "--state-dir",
                                  state_dir,
                                  "--listen",
                                  "127.0.0.1:0",
                                  "--http",
                                  "off"}; // of an option given twice the last counts
    size_t n = 9;
    for (size_t i = 0; more && more[i] && n < MAX_ARGS - 1; i++)
        args[n++] = more[i];
    const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || dup2(fd, 2) < 0 || !args[0]) _exit(127);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that aborts leaves no daemon behind
    (void)execv(args[0], (char *const *)(uintptr_t)args);
    _exit(127);
}

static struct daemon_proc fork_daemon(const char *logdir, const char *state_dir,
                                      const char *const *more) {
    static int counter;
    struct daemon_proc d = {0};
    (void)snprintf(d.log_path, sizeof d.log_path, "%s/daemon-%d.log", state_dir, counter++);
    (void)mkdir(state_dir, 0700);
    d.pid = fork();
    CHECK(d.pid >= 0);
    if (d.pid == 0) exec_daemon(d.log_path, logdir, state_dir, more);
    return d;
}

struct daemon_proc start_daemon(const char *logdir, const char *state_dir,
                                const char *const *more) {
    struct daemon_proc d = fork_daemon(logdir, state_dir, more);
    bool worker = false, http = false;
    for (size_t i = 0; more && more[i]; i++) {
        worker = worker || strcmp(more[i], "--xprof-worker") == 0;
        http = http || strcmp(more[i], "--http") == 0;
    }
    for (int waited = 0; waited < PATIENCE_MS; waited += STEP_MS) {
        if (find_address(d.log_path, "grpc", d.address, sizeof d.address) &&
            (!worker ||
             find_address(d.log_path, "xprof-worker", d.worker_address, sizeof d.worker_address)) &&
            (!http || find_address(d.log_path, "http", d.http_address, sizeof d.http_address)))
            return d;
        int status;
        CHECK_EQ(waitpid(d.pid, &status, WNOHANG), 0); // it must not have ended
        sleep_ms(STEP_MS);
    }
    FAIL_TEST("the daemon does not listen");
    return d;
}

// The exit status; aborts the test when none comes.
static int wait_for_exit(struct daemon_proc *d) {
    for (int waited = 0; waited < PATIENCE_MS; waited += STEP_MS) {
        int status;
        const pid_t got = waitpid(d->pid, &status, WNOHANG);
        CHECK(got >= 0);
        if (got == d->pid) {
            d->pid = 0;
            if (!WIFEXITED(status))
                fprintf(stderr, "daemon ended by signal %d\n", WTERMSIG(status));
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
        }
        sleep_ms(STEP_MS);
    }
    (void)kill(d->pid, SIGKILL);
    FAIL_TEST("the daemon does not stop");
    return -1;
}

int stop_daemon(struct daemon_proc *d) {
    CHECK_EQ(kill(d->pid, SIGTERM), 0);
    return wait_for_exit(d);
}

int run_refused_daemon(const char *logdir, const char *state_dir, const char *const *more,
                       struct daemon_proc *ret) {
    *ret = fork_daemon(logdir, state_dir, more);
    return wait_for_exit(ret);
}

void kill_daemon(struct daemon_proc *d, int signal) {
    CHECK_EQ(kill(d->pid, signal), 0);
    CHECK_EQ(waitpid(d->pid, NULL, 0), d->pid);
    d->pid = 0;
}

uint8_t *read_file(const char *path, size_t *ret_n) {
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(1 << 20);
    CHECK(f && p);
    *ret_n = fread(p, 1, 1 << 20, f);
    (void)fclose(f);
    return p;
}

void write_file(const char *path, const void *p, size_t n) {
    FILE *f = fopen(path, "wb");
    CHECK(f);
    CHECK_EQ(fwrite(p, 1, n, f), n);
    CHECK_EQ(fclose(f), 0);
}

void copy_file(const char *from, const char *to) {
    FILE *a = fopen(from, "rb"), *b = fopen(to, "wb");
    CHECK(a && b);
    char buf[65536];
    for (size_t n; (n = fread(buf, 1, sizeof buf, a)) > 0;)
        CHECK_EQ(fwrite(buf, 1, n, b), n);
    CHECK_EQ(fclose(b), 0);
    (void)fclose(a);
}

void add_session(const char *dir, const char *run, const char *host, const char *from) {
    char path[512];
    const int n = snprintf(path, sizeof path, "%s/plugins/profile/%s", dir, run);
    CHECK(n > 0);
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        (void)mkdir(path, 0755);
        *p = '/';
    }
    (void)mkdir(path, 0755);
    (void)snprintf(path + n, sizeof path - (size_t)n, "/%s.xplane.pb", host);
    copy_file(from, path);
}

const char *profile(const char *name) {
    static char path[512];
    const char *const data = getenv("XPL_TEST_DATA");
    CHECK(data);
    (void)snprintf(path, sizeof path, "%s/%s", data, name);
    return path;
}

xpl_client *open_client(const struct daemon_proc *d, long timeout_ms) {
    const xpl_client_options o = {.size = sizeof o, .timeout_ms = timeout_ms};
    xpl_client *c = NULL;
    xpl_result r;
    CHECK_EQ(xpl_client_open(d->address, &o, &c, &r), 0);
    return c;
}

int ask_tool(xpl_client *c, const char *session, const char *tool, const char *host,
             xpl_answer **ret, xpl_result *r) {
    const xpl_tool_request q = {.size = sizeof q,
                                .session = session,
                                .tool = tool,
                                .hosts = &host,
                                .n_hosts = host != NULL};
    xpl_answer *a = NULL;
    xpl_result mine;
    const int code = xpl_client_tool(c, &q, &a, r ? r : &mine);
    if (ret)
        *ret = a;
    else
        xpl_answer_free(a);
    return code;
}

bool log_says(const struct daemon_proc *d, const char *text) {
    FILE *f = fopen(d->log_path, "r");
    char line[4096];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, text) != NULL;
    if (f) (void)fclose(f);
    return found;
}

bool log_has(const struct daemon_proc *d, const char *text) {
    for (int waited = 0; waited < PATIENCE_MS; waited += STEP_MS) {
        if (log_says(d, text)) return true;
        sleep_ms(STEP_MS);
    }
    return false;
}
