// SPDX-License-Identifier: Apache-2.0
#include "agent/collect.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/stream.h"
#include "base/clock.h"

// Bounds of each phase.  Loading CUPTI takes a driver's initialisation; the end waits for running
// kernels and for the contents of the buffers.
enum { HELLO_MS = 5000, BEGIN_MS = 30000, END_MS = 60000, READ_BYTES = 256 << 10 };

enum phase { WAIT_HELLO, WAIT_STARTED, RECORDING, OVER };

struct peer {
    int fd; // -1: closed
    enum phase phase;
    bool recorded; // STARTED came
    size_t parsed; // bytes of whole records
    uint32_t pid;
    char program[64], refusal[400];
    struct xpl_buf bytes;
    const char *note;
};

struct collector {
    const struct xpl_collect_options *opt;
    struct peer v[XPL_COLLECT_PROCESSES];
    size_t n, bytes;
    unsigned without_cuda, more;
    char scratch[READ_BYTES];
};

static uint64_t now_ms(void) {
    return xpl_clock_ns() / 1000000;
}
static int state(const struct collector *c) {
    return atomic_load(c->opt->state);
}

// ---- connecting ----

static void end_peer(struct peer *p) {
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    p->phase = OVER;
}

// The socket `name` of the open directory, whoever moves the directory meanwhile.
static void connect_to(struct collector *c, int dir, const char *name) {
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct stat st;
    const int n = snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof addr.sun_path ||
        fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(st.st_mode))
        return;
    if (c->n == XPL_COLLECT_PROCESSES) {
        c->more++;
        return;
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) != 0) {
        if (errno == ECONNREFUSED) (void)unlinkat(dir, name, 0); // of a program that was killed
        close(fd);
        return;
    }
    struct peer *const p = &c->v[c->n++];
    *p = (struct peer){.fd = fd};
    snprintf(p->program, sizeof p->program, "%s", name);
    xpl_buf_init(&p->bytes, c->opt->max_bytes + XPL_RECORD_MAX);
}

static void connect_all(struct collector *c) {
    const int fd =
        open(c->opt->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    DIR *const d = fd >= 0 ? fdopendir(fd) : NULL;
    for (const struct dirent *e; d && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        if (n > 5 && strcmp(e->d_name + n - 5, ".sock") == 0) connect_to(c, fd, e->d_name);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

static void send_command(struct peer *p, const struct xpl_collect_options *opt,
                         enum xpl_agent_operation op) {
    const struct xpl_agent_command c = {.magic = XPL_RECORD_MAGIC,
                                        .version = XPL_RECORD_VERSION,
                                        .operation = (uint16_t)op,
                                        .options = opt->options,
                                        .buffers = opt->buffers};
    if (p->fd >= 0 && send(p->fd, &c, sizeof c, MSG_NOSIGNAL) != (ssize_t)sizeof c)
        p->note = "could not be asked to stop";
}

// ---- incoming records ----

static void on_hello(struct collector *c, struct peer *p, const struct xpl_stream_record *r) {
    struct xpl_record_hello h;
    xpl_str_t text;
    if (r->kind != XPL_RECORD_HELLO || !xpl_stream_read(r, &h, sizeof h) ||
        h.magic != XPL_RECORD_MAGIC || !xpl_stream_text(r, sizeof h, h.text_len, &text)) {
        snprintf(p->refusal, sizeof p->refusal, "does not speak this protocol");
        end_peer(p);
        return;
    }
    p->pid = h.pid;
    snprintf(p->program, sizeof p->program, "%.*s", (int)(text.len < 63 ? text.len : 63), text.ptr);
    if (h.version != XPL_RECORD_VERSION) {
        snprintf(p->refusal, sizeof p->refusal,
                 "has a libxplaned-agent.so of another version (%u, not %u): restart the program "
                 "with the one that belongs to this xplaned-agent",
                 h.version, XPL_RECORD_VERSION);
        end_peer(p);
    } else if (h.state != XPL_AGENT_READY) {
        c->without_cuda++;
        end_peer(p);
    } else {
        p->phase = WAIT_STARTED;
        send_command(p, c->opt, XPL_AGENT_START);
    }
}

static void on_end(struct peer *p, const struct xpl_stream_record *r) {
    struct xpl_record_end e;
    xpl_str_t text;
    const bool ok =
        xpl_stream_read(r, &e, sizeof e) && xpl_stream_text(r, sizeof e, e.text_len, &text);
    if (ok && e.failed)
        snprintf(p->refusal, sizeof p->refusal, "%.*s", (int)(text.len < 399 ? text.len : 399),
                 text.ptr);
    end_peer(p);
}

static void parse(struct collector *c, struct peer *p) {
    struct xpl_stream s = {p->bytes.p + p->parsed, p->bytes.p + p->bytes.n};
    struct xpl_stream_record r;
    enum xpl_stream_result got = XPL_STREAM_END;
    while (p->phase != OVER && (got = xpl_stream_next(&s, &r)) == XPL_STREAM_RECORD) {
        p->parsed += r.size;
        if (p->phase == WAIT_HELLO) {
            on_hello(c, p, &r);
        } else if (r.kind == XPL_RECORD_STARTED && p->phase == WAIT_STARTED) {
            p->phase = RECORDING;
            p->recorded = true;
        } else if (r.kind == XPL_RECORD_END) {
            on_end(p, &r);
        }
    }
    if (got != XPL_STREAM_MALFORMED) return;
    p->note = "sent an invalid record";
    end_peer(p);
}

// Records beyond the limit end that program's part.
static void append_records(struct collector *c, struct peer *p, size_t n) {
    if (c->bytes + n > c->opt->max_bytes) {
        p->note = "sent more records than fit the memory: capture for a shorter time or raise "
                  "--memory";
        end_peer(p);
        return;
    }
    xpl_buf_put(&p->bytes, c->scratch, n);
    c->bytes += n;
    if (p->bytes.failed) {
        p->note = "sent more records than there is memory for";
        end_peer(p);
        return;
    }
    parse(c, p);
}

static void on_readable(struct collector *c, struct peer *p) {
    const ssize_t n = recv(p->fd, c->scratch, sizeof c->scratch, 0);
    if (n > 0) {
        append_records(c, p, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        p->note = p->recorded ? "ended in the middle of the capture: its last records are missing"
                              : "ended before the capture began";
        end_peer(p);
    }
}

// Serves all sockets until `deadline` (now_ms), a state beyond `most`, or until every process has
// reached the phase `until`.
static void serve(struct collector *c, enum phase until, uint64_t deadline,
                  enum xpl_collect_state most) {
    struct pollfd fds[XPL_COLLECT_PROCESSES + 1];
    for (;;) {
        bool waiting = false;
        for (size_t i = 0; i < c->n; i++) {
            fds[i] = (struct pollfd){.fd = c->v[i].fd, .events = POLLIN};
            waiting |= c->v[i].phase < until;
        }
        // Once it has been received, it would only keep poll from waiting.
        fds[c->n] = (struct pollfd){.fd = state(c) == XPL_COLLECT_RUN ? c->opt->wake : -1,
                                    .events = POLLIN};
        const uint64_t now = now_ms();
        if (!waiting || now >= deadline || state(c) > (int)most) return;
        const uint64_t left = deadline - now;
        if (poll(fds, c->n + 1, left < 1000 ? (int)left : 1000) < 0 && errno != EINTR) return;
        for (size_t i = 0; i < c->n; i++)
            if (fds[i].fd >= 0 && fds[i].revents) on_readable(c, &c->v[i]);
    }
}

void xpl_collect_wait(const atomic_int *state, int wake, uint64_t until_ms) {
    for (uint64_t now;
         atomic_load(state) == XPL_COLLECT_RUN && (now = xpl_collect_now_ms()) < until_ms;) {
        struct pollfd p = {.fd = wake, .events = POLLIN};
        (void)poll(&p, 1, until_ms - now < 1000 ? (int)(until_ms - now) : 1000);
    }
}

static void wait_until(const struct collector *c) {
    while (state(c) == XPL_COLLECT_RUN) {
        const uint64_t now = (uint64_t)xpl_unix_ns();
        if (now >= c->opt->start_ns) return;
        const uint64_t left = (c->opt->start_ns - now) / 1000000 + 1;
        struct pollfd p = {.fd = c->opt->wake, .events = POLLIN};
        poll(&p, 1, left < 1000 ? (int)left : 1000);
    }
}

// ---- the outcome ----

static void give_up_on(struct collector *c, enum phase phase, const char *why) {
    for (size_t i = 0; i < c->n; i++) {
        struct peer *const p = &c->v[i];
        if (p->phase != phase) continue;
        snprintf(p->refusal, sizeof p->refusal, "%s", why);
        end_peer(p);
    }
}

static xpl_status_t fail_without_programs(const struct collector *c, struct xpl_error *err) {
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].refusal[0])
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%.60s (pid %u): %s", c->v[i].program,
                             c->v[i].pid, c->v[i].refusal);
    if (c->without_cuda)
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "%u program(s) run with libxplaned-agent.so, but none has begun to use CUDA",
            c->without_cuda);
    void *const cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (cuda) dlclose(cuda);
    if (!cuda)
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "nothing to capture: this machine has no NVIDIA driver (libcuda.so.1), and no "
            "program with libxplaned-agent.so");
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "no CUDA program with libxplaned-agent.so runs here: start it with "
                     "CUDA_INJECTION64_PATH naming that library, as this user, and the same "
                     "XPLANED_AGENT_DIR");
}

static xpl_status_t hand_over(struct collector *c, struct xpl_arena *a, struct xpl_collection *ret,
                              struct xpl_error *err) {
    for (size_t i = 0; i < c->n; i++)
        ret->n += c->v[i].recorded;
    if (!ret->n && state(c) == XPL_COLLECT_FINISH) return XPL_OK; // ended before it began
    if (!ret->n) return fail_without_programs(c, err);
    ret->v = xpl_arena_zalloc(a, ret->n * sizeof *ret->v);
    const size_t n = ret->n;
    ret->n = 0;
    if (!ret->v) XPL_RETURN_OOM(err, "capture");
    for (size_t i = 0; i < c->n && ret->n < n; i++) {
        struct peer *const p = &c->v[i];
        if (!p->recorded) continue;
        struct xpl_collected *const d = &ret->v[ret->n++];
        d->bytes = p->bytes;
        p->bytes = (struct xpl_buf){0};
        snprintf(d->note, sizeof d->note, "%s", p->note ? p->note : "");
    }
    return XPL_OK;
}

static xpl_status_t run_collector(struct collector *c, struct xpl_arena *a,
                                  struct xpl_collection *ret, struct xpl_error *err) {
    wait_until(c);
    if (state(c) == XPL_COLLECT_RUN) {
        connect_all(c);
        serve(c, WAIT_STARTED, now_ms() + HELLO_MS, XPL_COLLECT_RUN);
        give_up_on(c, WAIT_HELLO, "does not answer, or another capture of it is under way");
        serve(c, RECORDING, now_ms() + BEGIN_MS, XPL_COLLECT_RUN);
        serve(c, OVER, now_ms() + c->opt->duration_ms, XPL_COLLECT_RUN);
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].phase != OVER) send_command(&c->v[i], c->opt, XPL_AGENT_STOP);
    if (state(c) == XPL_COLLECT_CANCEL)
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "the capture was cancelled");
    serve(c, OVER, now_ms() + END_MS, XPL_COLLECT_FINISH);
    give_up_on(c, WAIT_STARTED, "did not begin to record in time");
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].phase == RECORDING) c->v[i].note = "did not finish in time";
    if (state(c) == XPL_COLLECT_CANCEL)
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "the capture was cancelled");
    return hand_over(c, a, ret, err);
}

xpl_status_t xpl_collect(const struct xpl_collect_options *opt, struct xpl_arena *a,
                         struct xpl_collection *ret, struct xpl_error *err) {
    struct collector *const c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "capture");
    *c = (struct collector){.opt = opt};
    const xpl_status_t st = run_collector(c, a, ret, err);
    for (size_t i = 0; i < c->n; i++) {
        end_peer(&c->v[i]);
        xpl_buf_fini(&c->v[i].bytes);
    }
    xpl_sys_free(c);
    return st;
}

void xpl_collection_fini(struct xpl_collection *c) {
    for (size_t i = 0; i < c->n; i++)
        xpl_buf_fini(&c->v[i].bytes);
    *c = (struct xpl_collection){0};
}
