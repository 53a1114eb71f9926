// SPDX-License-Identifier: Apache-2.0
#include "agent/pytorch/processes.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"

#define NAME "dynolog"

struct known {
    struct sockaddr_un address;
    socklen_t address_len;
    struct xpl_pytorch_process is; // given, number: of the work under way
    int64_t job;
    uint64_t seen_ns;
};

struct xpl_pytorch_processes {
    int fd, wake;
    pthread_t thread;
    uint64_t begun_ns;
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path]; // of the socket; "": abstract
    pthread_mutex_t mu;                                      // protects all below
    struct known v[XPL_PYTORCH_PROCESSES];
    size_t n;
    struct xpl_pytorch_work work;
    bool has_work, was_stranger;
    unsigned given;
};

// ---- who is there; under the mutex ----

static bool is_here(const struct known *k, uint64_t now) {
    return xpl_clock_between(k->seen_ns, now) < XPL_PYTORCH_GONE_MS * UINT64_C(1000000);
}

static bool is_same(const struct known *k, const struct sockaddr_un *from, socklen_t len,
                    pid_t pid) {
    return k->is.pid == pid && k->address_len == len && memcmp(&k->address, from, len) == 0;
}

// The entry of the process, which may be new; NULL: there are too many.
static struct known *find(struct xpl_pytorch_processes *p, const struct sockaddr_un *from,
                          socklen_t len, pid_t pid) {
    const uint64_t now = xpl_clock_ns();
    struct known *free = p->n < XPL_PYTORCH_PROCESSES ? &p->v[p->n] : NULL;
    for (size_t i = 0; i < p->n; i++) {
        if (is_same(&p->v[i], from, len, pid)) return &p->v[i];
        if (!is_here(&p->v[i], now) && !p->v[i].is.given) free = &p->v[i];
    }
    if (!free) return NULL;
    if (free == &p->v[p->n]) p->n++;
    *free = (struct known){.address_len = len, .is.pid = pid};
    memcpy(&free->address, from, len);
    return free;
}

static bool is_of_job(const struct xpl_pytorch_processes *p, const struct known *k) {
    return k->job == p->work.job;
}

// The answer to a process that asks.
static size_t answer(struct xpl_pytorch_processes *p, struct known *k, bool ready,
                     uint8_t ret[XPL_PYTORCH_MAX_ANSWER]) {
    char path[XPL_PYTORCH_MAX_PATH + 1];
    k->is.busy = !ready;
    if (!p->has_work || k->is.given || !ready) return xpl_pytorch_answer(NULL, NULL, ret);
    if (p->work.any_job) { // the first of a machine on which none was known
        p->work.job = k->job;
        p->work.any_job = false;
    }
    if (!is_of_job(p, k)) return xpl_pytorch_answer(NULL, NULL, ret);
    const int n = snprintf(path, sizeof path, "%s/%u.json", p->work.directory, p->given);
    if (n < 0 || (size_t)n >= sizeof path) return 0;
    k->is.given = true;
    k->is.number = p->given++;
    return xpl_pytorch_answer(&p->work.request, path, ret);
}

// ---- the thread ----

struct received {
    struct sockaddr_un from;
    socklen_t from_len;
    struct ucred sender;
    uint8_t bytes[XPL_PYTORCH_MAX_MESSAGE];
    size_t n;
};

// False: there is none, or it does not say whose it is.
static bool receive(int fd, struct received *ret) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec piece = {.iov_base = ret->bytes, .iov_len = sizeof ret->bytes};
    struct msghdr m = {.msg_name = &ret->from,
                       .msg_namelen = sizeof ret->from,
                       .msg_iov = &piece,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control};
    const ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) return false;
    ret->n = (size_t)n;
    ret->from_len = m.msg_namelen;
    const struct cmsghdr *const c = CMSG_FIRSTHDR(&m);
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS) return false;
    memcpy(&ret->sender, CMSG_DATA(c), sizeof ret->sender);
    return ret->from_len > offsetof(struct sockaddr_un, sun_path); // it can be answered
}

static size_t handle(struct xpl_pytorch_processes *p, const struct received *r,
                     uint8_t ret[XPL_PYTORCH_MAX_ANSWER]) {
    struct xpl_pytorch_message m;
    if (r->sender.uid != geteuid()) {
        if (!p->was_stranger)
            xpl_log(XPL_LOG_WARN, "agent", "a process of user %u asks for work; it gets no answer",
                    (unsigned)r->sender.uid);
        p->was_stranger = true;
        return 0;
    }
    if (!xpl_pytorch_parse((xpl_bytes_t){r->bytes, r->n}, &m)) return 0;
    struct known *const k = find(p, &r->from, r->from_len, r->sender.pid);
    if (!k) return 0;
    k->seen_ns = xpl_clock_ns();
    k->is.own_pid = m.pid;
    k->job = m.job;
    if (m.kind == XPL_PYTORCH_ASK) return answer(p, k, m.ready, ret);
    int32_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->v[i].job == m.job;
    return xpl_pytorch_answer_register(n, ret);
}

static void *serve(void *arg) {
    struct xpl_pytorch_processes *const p = arg;
    struct received r;
    uint8_t out[XPL_PYTORCH_MAX_ANSWER];
    for (;;) {
        struct pollfd fds[] = {{.fd = p->fd, .events = POLLIN}, {.fd = p->wake, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) return NULL;
        if (fds[1].revents) return NULL;
        if (!(fds[0].revents & POLLIN) || !receive(p->fd, &r)) continue;
        pthread_mutex_lock(&p->mu);
        const size_t n = handle(p, &r, out);
        pthread_mutex_unlock(&p->mu);
        if (n)
            (void)sendto(p->fd, out, n, MSG_DONTWAIT | MSG_NOSIGNAL,
                         (const struct sockaddr *)&r.from, r.from_len);
    }
}

// ---- the socket ----

// The address, with the zero behind the name, which counts in libkineto's; 0: too long.
static socklen_t make_address(struct xpl_pytorch_processes *p, const char *directory,
                              struct sockaddr_un *ret) {
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    const bool is_file = directory && *directory;
    const int n = is_file ? snprintf(ret->sun_path, sizeof ret->sun_path, "%s/" NAME, directory)
                          : snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, NAME) + 1;
    if (n < 0 || (size_t)n >= sizeof ret->sun_path) return 0;
    if (is_file) memcpy(p->path, ret->sun_path, (size_t)n + 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
}

// Binds; the file of a program that was killed is replaced.
static bool take_name(struct xpl_pytorch_processes *p, const struct sockaddr_un *a, socklen_t len) {
    const struct sockaddr *const address = (const struct sockaddr *)a;
    if (bind(p->fd, address, len) == 0) return true;
    if (errno != EADDRINUSE || !p->path[0]) return false;
    struct stat st;
    const int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    // A file of another kind refuses connections, too.
    const bool dead = probe >= 0 && connect(probe, address, len) != 0 && errno == ECONNREFUSED &&
                      lstat(p->path, &st) == 0 && S_ISSOCK(st.st_mode);
    if (probe >= 0) (void)close(probe);
    errno = EADDRINUSE;
    return dead && unlink(p->path) == 0 && bind(p->fd, address, len) == 0;
}

static xpl_status_t open_socket(struct xpl_pytorch_processes *p, const char *directory,
                                struct xpl_error *err) {
    struct sockaddr_un a;
    const int on = 1;
    const socklen_t len = make_address(p, directory, &a);
    if (!len) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "KINETO_IPC_SOCKET_DIR is too long");
    p->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    p->wake = eventfd(0, EFD_CLOEXEC);
    const bool made = p->fd >= 0 && p->wake >= 0 &&
                      setsockopt(p->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0;
    if (made && take_name(p, &a, len)) return XPL_OK;
    const int failed = errno;
    p->path[0] = 0; // another program's
    if (!made)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "--pytorch: no socket: %s", strerror(failed));
    if (failed == EADDRINUSE)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "--pytorch: another program serves PyTorch's processes here (socket "
                         "\"" NAME "\"): stop dynolog, or the other xplaned-agent");
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--pytorch: socket \"" NAME "\": %s",
                     strerror(failed));
}

xpl_status_t xpl_pytorch_processes_new(const char *directory, struct xpl_pytorch_processes **ret,
                                       struct xpl_error *err) {
    struct xpl_pytorch_processes *const p = xpl_sys_alloc(sizeof *p);
    if (!p) XPL_RETURN_OOM(err, "PyTorch's processes");
    memset(p, 0, sizeof *p);
    p->fd = p->wake = -1;
    p->begun_ns = xpl_clock_ns();
    pthread_mutex_init(&p->mu, NULL);
    xpl_status_t st = open_socket(p, directory, err);
    if (st == XPL_OK && pthread_create(&p->thread, NULL, serve, p) == 0) {
        *ret = p;
        return XPL_OK;
    }
    if (st == XPL_OK)
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "--pytorch: no thread");
    if (p->path[0]) (void)unlink(p->path);
    if (p->fd >= 0) (void)close(p->fd);
    if (p->wake >= 0) (void)close(p->wake);
    pthread_mutex_destroy(&p->mu);
    xpl_sys_free(p);
    return st;
}

void xpl_pytorch_processes_free(struct xpl_pytorch_processes *p) {
    const uint64_t one = 1;
    if (!p) return;
    while (write(p->wake, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    pthread_join(p->thread, NULL);
    if (p->path[0]) (void)unlink(p->path);
    (void)close(p->fd);
    (void)close(p->wake);
    pthread_mutex_destroy(&p->mu);
    xpl_sys_free(p);
}

// ---- work ----

#define NONE_HERE                                                                                  \
    "no PyTorch process of this user has asked for work in the last 12 s: start the program with " \
    "KINETO_USE_DAEMON=1, as the agent's user, in the same network namespace"

// Under the mutex: the job of the work, if it can be known.
static xpl_status_t choose_job(struct xpl_pytorch_processes *p, struct xpl_error *err) {
    struct xpl_pytorch_work *const w = &p->work;
    const uint64_t now = xpl_clock_ns();
    bool found = false, chosen = !w->any_job;
    for (size_t i = 0; i < p->n; i++) {
        const struct known *const k = &p->v[i];
        if (!is_here(k, now)) continue;
        if (w->any_job) {
            w->job = k->job;
            w->any_job = false;
        }
        if (!chosen && !is_of_job(p, k))
            XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                             "processes of several jobs run here (%lld, %lld): choose one with "
                             "--advanced pytorch_job=ID",
                             (long long)w->job, (long long)k->job);
        found |= is_of_job(p, k);
    }
    // Processes that were here before the agent have asked by then.
    if (found || xpl_clock_between(p->begun_ns, now) < XPL_PYTORCH_GONE_MS * UINT64_C(1000000))
        return XPL_OK;
    if (chosen)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "no process of job %lld runs here",
                         (long long)w->job);
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, NONE_HERE);
}

xpl_status_t xpl_pytorch_give(struct xpl_pytorch_processes *p, const struct xpl_pytorch_work *work,
                              struct xpl_error *err) {
    pthread_mutex_lock(&p->mu);
    p->work = *work;
    p->given = 0;
    for (size_t i = 0; i < p->n; i++)
        p->v[i].is.given = false;
    const xpl_status_t st = choose_job(p, err);
    p->has_work = st == XPL_OK;
    pthread_mutex_unlock(&p->mu);
    return st;
}

size_t xpl_pytorch_end(struct xpl_pytorch_processes *p, struct xpl_pytorch_process *ret) {
    size_t n = 0;
    pthread_mutex_lock(&p->mu);
    const uint64_t now = xpl_clock_ns();
    p->has_work = false;
    for (size_t i = 0; i < p->n; i++) {
        const struct known *const k = &p->v[i];
        if (k->is.given || (is_of_job(p, k) && !p->work.any_job && is_here(k, now)))
            ret[n++] = k->is;
        p->v[i].is.given = false;
    }
    pthread_mutex_unlock(&p->mu);
    return n;
}
