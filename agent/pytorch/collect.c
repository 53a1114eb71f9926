// SPDX-License-Identifier: Apache-2.0
#include "agent/pytorch/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/collect.h"
#include "agent/pytorch/rank.h"
#include "agent/pytorch/traces.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"

// A process asks every 5 s, and then has to know the start 1 s before its warm-up of 1 s: its
// profiler looks at the clock once a second.
enum {
    ASKED_MS = XPL_PYTORCH_ASKS_EVERY_MS + 1000, // until all have asked
    LEAD_MS = ASKED_MS + 3000,                   // until they begin
    WRITE_MS = 40000,                            // from the end of the window to the last trace
    SCAN_MS = 50,
    NOTES = 320, // bytes; capture/ shows them as a host's reason
};

struct one {
    struct xpl_pytorch_process is;
    int rank;  // -1: unknown
    bool over; // nothing more is expected of it
    bool taken;
};

struct capture {
    struct xpl_pytorch_processes *processes;
    const struct xpl_pytorch_options *opt;
    struct xpl_buf *out;
    char path[XPL_PYTORCH_MAX_PATH - 32]; // of the traces' directory
    int dir;                              // the same, opened
    size_t n, taken, idle;
    unsigned untold; // notes that did not fit
    char notes[NOTES];
    struct one v[XPL_PYTORCH_PROCESSES];
    struct xpl_pytorch_process found[XPL_PYTORCH_PROCESSES];
};

static int state(const struct capture *c) {
    return atomic_load(c->opt->state);
}
static void wait_until(const struct capture *c, uint64_t deadline_ms) {
    xpl_collect_wait(c->opt->state, c->opt->wake, deadline_ms);
}

static void note(struct capture *c, const struct one *o, const char *text) {
    const size_t n = strlen(c->notes);
    const int k = snprintf(c->notes + n, sizeof c->notes - n, "%sprocess %d %s", n ? "; " : "",
                           (int)o->is.own_pid, text);
    if (k >= 0 && (size_t)k < sizeof c->notes - n) return;
    c->notes[n] = 0;
    c->untold++;
}

// ---- traces ----

static void take_trace(struct capture *c, struct one *o) {
    static const char *const why[] = {
        [XPL_PYTORCH_REFUSED] = "left a link, or something else that is not its own file",
        [XPL_PYTORCH_TOO_LARGE] = "wrote a trace that does not fit: capture for a shorter time, or "
                                  "raise --memory of xplaned-agent",
        [XPL_PYTORCH_UNREADABLE] = "wrote a trace that cannot be read",
    };
    char file[48], name[320];
    (void)snprintf(file, sizeof file, "%u_%d.json", o->is.number, (int)o->is.own_pid);
    char rank[32] = "";
    if (o->rank >= 0) (void)snprintf(rank, sizeof rank, "-rank-%d", o->rank);
    (void)snprintf(name, sizeof name, "%s_%d%s.pt.trace.json.gz", c->opt->host, (int)o->is.own_pid,
                   rank);
    const size_t before = c->out->n;
    const enum xpl_pytorch_trace is = xpl_pytorch_take(c->dir, file, name, c->opt->state, c->out);
    o->over = is != XPL_PYTORCH_NOT_YET;
    if (!o->over) return;
    o->taken = is == XPL_PYTORCH_TAKEN;
    c->taken += o->taken;
    c->idle += is == XPL_PYTORCH_IDLE;
    // Launchers and loaders of data import torch, too.
    if (is == XPL_PYTORCH_IDLE) c->out->n = before;
    if (is > XPL_PYTORCH_NOT_YET) note(c, o, why[is]);
    if (o->over) (void)unlinkat(c->dir, file, 0); // disks are small
}

// Also if its parent has not asked for its status yet.
static bool has_ended(pid_t pid) {
    const int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) return errno == ESRCH;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    const bool ended = poll(&p, 1, 0) > 0;
    (void)close(fd);
    return ended;
}

static void scan_traces(struct capture *c) {
    for (size_t i = 0; i < c->n; i++) {
        struct one *const o = &c->v[i];
        if (o->over) continue;
        const bool ended = has_ended(o->is.pid);
        take_trace(c, o); // after it: the last thing of a process may be its trace
        if (o->over || !ended) continue;
        note(c, o, "ended before it wrote its trace");
        o->over = true;
    }
}

static void wait_for_traces(struct capture *c, uint64_t deadline) {
    for (;;) {
        size_t open = 0;
        scan_traces(c);
        for (size_t i = 0; i < c->n; i++)
            open += !c->v[i].over;
        if (!open || state(c) != XPL_COLLECT_RUN || xpl_collect_now_ms() >= deadline) break;
        wait_until(c, xpl_collect_now_ms() + SCAN_MS);
    }
    for (size_t i = 0; i < c->n; i++)
        if (!c->v[i].over)
            note(c, &c->v[i],
                 c->opt->request.iterations
                     ? "wrote no trace in time: does it call optimizer.step()?"
                     : "wrote no trace in time: its standard error may say why (newer torch only "
                       "writes below /tmp or $KINETO_ONDEMAND_TRACE_DIR)");
}

// ---- the capture ----

static xpl_status_t give_work(struct capture *c, uint64_t *ret_start, struct xpl_error *err) {
    struct xpl_pytorch_work w = {.request = c->opt->request,
                                 .directory = c->path,
                                 .job = c->opt->job,
                                 .any_job = c->opt->any_job};
    const uint64_t now = (uint64_t)xpl_unix_ms(), wanted = c->opt->start_ns / 1000000;
    const uint64_t delay = wanted > now ? wanted - now : 0;
    wait_until(c, xpl_collect_now_ms() + delay);
    // Agents of several machines get the same `wanted`, and so begin at once.
    *ret_start = w.request.start_unix_ms = (delay ? wanted : now) + LEAD_MS;
    XPL_TRY(xpl_pytorch_give(c->processes, &w, err));
    wait_until(c, xpl_collect_now_ms() + ASKED_MS);
    const size_t n = xpl_pytorch_end(c->processes, c->found);
    for (size_t i = 0; i < n; i++) {
        struct one *const o = &c->v[c->n];
        *o = (struct one){.is = c->found[i], .rank = xpl_pytorch_rank(c->found[i].pid)};
        c->n += o->is.given;
        if (!o->is.given)
            note(c, o, o->is.busy ? "is being profiled already" : "did not ask for work in time");
    }
    return XPL_OK;
}

static xpl_status_t explain_none(const struct capture *c, struct xpl_error *err) {
    if (c->notes[0]) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%.200s", c->notes);
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     c->idle ? "PyTorch's processes recorded no ops: did they compute anything?"
                             : "no PyTorch process of this user asked for work: start the program "
                               "with KINETO_USE_DAEMON=1, as the agent's user, in the same network "
                               "namespace");
}

static void put_notes(struct capture *c) {
    const size_t n = strlen(c->notes);
    if (c->untold) (void)snprintf(c->notes + n, sizeof c->notes - n, "; and %u more", c->untold);
    if (n) xpl_pytorch_put_text("notes", xpl_str_from(c->notes), c->out);
}

static xpl_status_t run(struct capture *c, struct xpl_error *err) {
    const uint64_t twice = 2 * c->opt->request.duration_ms;
    uint64_t start;
    XPL_TRY(give_work(c, &start, err));
    if (state(c) == XPL_COLLECT_RUN && c->n) {
        const uint64_t now = (uint64_t)xpl_unix_ms(), window = c->opt->request.duration_ms;
        const uint64_t end = xpl_collect_now_ms() + (start > now ? start - now : 0) + window;
        if (!c->opt->request.iterations) wait_until(c, end);
        wait_for_traces(c, end + (twice > WRITE_MS + 20000 ? twice - 20000 : WRITE_MS));
    }
    if (state(c) == XPL_COLLECT_CANCEL)
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "the capture was cancelled");
    if (!c->taken) return explain_none(c, err);
    put_notes(c);
    xpl_log(XPL_LOG_INFO, "capture", "captured processes=%zu of=%zu without_ops=%zu bytes=%zu",
            c->taken, c->n, c->idle, c->out->n);
    if (c->out->failed) XPL_RETURN_OOM(err, "traces");
    return XPL_OK;
}

static xpl_status_t make_directory(struct capture *c, struct xpl_error *err) {
    const int n = snprintf(c->path, sizeof c->path, "%s/pytorch-XXXXXX", c->opt->directory);
    if (n < 0 || (size_t)n >= sizeof c->path)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--directory is too long");
    if (!mkdtemp(c->path))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%.100s: cannot be made: %s", c->path,
                         strerror(errno));
    c->dir = open(c->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->dir >= 0) return XPL_OK;
    const int failed = errno;
    (void)rmdir(c->path);
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%.100s: %s", c->path, strerror(failed));
}

xpl_status_t xpl_pytorch_collect(struct xpl_pytorch_processes *p,
                                 const struct xpl_pytorch_options *opt, struct xpl_buf *out,
                                 struct xpl_error *err) {
    struct capture *const c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "capture");
    memset(c, 0, sizeof *c);
    c->processes = p;
    c->opt = opt;
    c->out = out;
    xpl_status_t st = make_directory(c, err);
    if (st == XPL_OK) {
        st = run(c, err);
        xpl_pytorch_remove(c->dir, c->path);
        (void)close(c->dir);
    }
    xpl_sys_free(c);
    return st;
}
