// SPDX-License-Identifier: Apache-2.0
// Each allocation of a capture fails once: the capture fails cleanly, or continues without the
// allocation; nothing leaks, and LOGDIR has a complete session or nothing. Usage: fault_capture
// FAKE_PROFILER
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "capture/capture.h"
#include "rpc/queue.h"
#include "tests/check.h"

static char logdir[] = "/tmp/xpl_fault_XXXXXX";

struct program {
    pid_t pid;
    int in;
    char address[64];
};

// The servers are separate processes: only the capture's allocations shall fail.
static struct program start(const char *path, const char *mode) {
    int in[2], out[2];
    struct program p = {0};
    CHECK_EQ(pipe2(in, O_CLOEXEC), 0);
    CHECK_EQ(pipe2(out, O_CLOEXEC), 0);
    p.pid = fork();
    if (p.pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        (void)execl(path, path, mode, "1000", (char *)NULL);
        _exit(127);
    }
    CHECK(p.pid > 0 && read(out[0], p.address, sizeof p.address - 1) > 0);
    p.address[strcspn(p.address, "\n")] = '\0';
    p.in = in[1];
    (void)close(in[0]);
    (void)close(out[0]);
    (void)close(out[1]);
    return p;
}
static void stop(struct program *p) {
    int status;
    (void)close(p->in);
    CHECK_EQ(waitpid(p->pid, &status, 0), p->pid);
}

// Removes everything below `path`; returns how many profiles there were.  Nothing hidden may be.
static int sweep(const char *path) {
    DIR *const d = opendir(path);
    int n = 0;
    for (const struct dirent *e; d && (e = readdir(d));) {
        char sub[600];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        CHECK(e->d_name[0] != '.');
        (void)snprintf(sub, sizeof sub, "%.300s/%.255s", path, e->d_name);
        n += strstr(e->d_name, ".xplane.pb") != NULL;
        if (unlink(sub) != 0) {
            n += sweep(sub);
            CHECK_EQ(rmdir(sub), 0);
        }
    }
    if (d) (void)closedir(d);
    return n;
}

static xpl_status_t capture(const char *const *targets, size_t n) {
    const struct xpl_capture_advanced advanced = {
        .key = "k", .type = XPL_CAPTURE_BOOL, .number = 1};
    const struct xpl_capture_plan p = {.size = sizeof p,
                                       .targets = targets,
                                       .n_targets = n,
                                       .duration_ms = 1,
                                       .advanced = &advanced,
                                       .n_advanced = 1};
    struct xpl_capture_outcome o = {0};
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_capture_run(&p, logdir, NULL, NULL, NULL, &o, &err);
    CHECK_EQ(st == XPL_OK, o.n_stored > 0);
    CHECK_EQ(st == XPL_OK, o.session[0] != '\0');
    CHECK(st == XPL_OK || err.msg[0]);
    const size_t stored = o.n_stored;
    xpl_capture_outcome_fini(&o);
    CHECK_EQ(sweep(logdir), stored);
    return st;
}

static void fail_each(const char *const *targets, size_t n) {
    const int64_t live = xpl_fault_live();
    uint64_t count;
    xpl_fault_reset();
    CHECK_OK(capture(targets, n), NULL);
    count = xpl_fault_count();
    CHECK(count > 5);
    for (uint64_t i = 0; i < count; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        const xpl_status_t st = capture(targets, n);
        xpl_fault_fail_on(UINT64_MAX);
        CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED);
        CHECK_EQ(xpl_fault_live(), live);
    }
    (void)printf("%d allocations\n", (int)count);
}

int main(int argc, char **argv) {
    CHECK_EQ(argc, 2);
    (void)alarm(280);
    xpl_rpc_set_log(NULL);
    CHECK(mkdtemp(logdir));
    struct program good = start(argv[1], "ok"), old = start(argv[1], "old");
    const char *targets[] = {good.address, old.address};
    fail_each(&targets[0], 1);
    fail_each(&targets[1], 1);
    fail_each(targets, 2);
    stop(&good);
    stop(&old);
    CHECK_EQ(rmdir(logdir), 0);
    return 0;
}
