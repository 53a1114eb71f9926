// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/inject/inject.h"

enum { BACKLOG = 4, COMMAND_MS = 10000, SEND_S = 30, EXIT_S = 3, NAMES = 8 };

// Of this process; a forked child starts anew when it uses CUDA.
static struct {
    pthread_mutex_t mu;
    pid_t pid;       // the process that owns this; 0: none
    int listener;    // the socket
    int wake;        // eventfd: the program ends
    bool in_capture; // under mu
    sem_t idle;      // posted when a capture ends after the program's end began
    struct sockaddr_un addr;
} self = {.mu = PTHREAD_MUTEX_INITIALIZER, .listener = -1, .wake = -1};

int InitializeInjection(void);

// ---- serving ----

static void send_hello(int fd, enum xpl_record_state state) {
    struct {
        struct xpl_record_hello hello;
        char text[64];
    } r = {.hello = {.head = {.kind = XPL_RECORD_HELLO},
                     .magic = XPL_RECORD_MAGIC,
                     .version = XPL_RECORD_VERSION,
                     .state = (uint16_t)state,
                     .pid = (uint32_t)getpid()}};
    const size_t n = strnlen(program_invocation_short_name, sizeof r.text);
    memcpy(r.text, program_invocation_short_name, n);
    r.hello.text_len = (uint32_t)n;
    r.hello.head.size = (uint32_t)((sizeof r.hello + n + 7) & ~(size_t)7);
    if (send(fd, &r, r.hello.head.size, MSG_NOSIGNAL) < 0) return; // the peer's loss
}

// Our own user and root only.
static bool is_allowed(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && n == sizeof peer &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static bool read_command(int fd, struct xpl_agent_command *ret) {
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = self.wake, .events = POLLIN}};
    if (poll(p, 2, COMMAND_MS) <= 0 || p[1].revents) return false;
    return recv(fd, ret, sizeof *ret, MSG_DONTWAIT) == (ssize_t)sizeof *ret &&
           ret->magic == XPL_RECORD_MAGIC && ret->version == XPL_RECORD_VERSION &&
           ret->operation == XPL_AGENT_START;
}

static void serve(int fd) {
    struct xpl_agent_command c;
    const struct timeval limit = {.tv_sec = SEND_S};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    void *const cuda = inject_find_cuda();
    send_hello(fd, cuda ? XPL_AGENT_READY : XPL_AGENT_NO_CUDA);
    if (!cuda || !read_command(fd, &c)) return;
    pthread_mutex_lock(&self.mu);
    self.in_capture = true;
    pthread_mutex_unlock(&self.mu);
    inject_run_capture(fd, self.wake, &c, cuda);
    pthread_mutex_lock(&self.mu);
    self.in_capture = false;
    pthread_mutex_unlock(&self.mu);
    sem_post(&self.idle);
}

static void *listen_main(void *arg) {
    const int listener = self.listener;
    (void)arg;
    for (;;) {
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED) continue;
            if (errno != EMFILE && errno != ENFILE && errno != ENOMEM) return NULL;
            nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
            continue;
        }
        if (is_allowed(fd)) serve(fd);
        close(fd);
    }
}

// ---- the socket ----

// A private directory that only this user can write to: it decides which processes may connect.
static bool make_directory(const char *path) {
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 022) == 0;
}

// Nobody answers there any more.
static bool is_dead(const struct sockaddr_un *addr) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    const bool dead =
        connect(fd, (const struct sockaddr *)addr, sizeof *addr) != 0 && errno == ECONNREFUSED;
    close(fd);
    return dead;
}

// Listens under a name of ours.  The name that others search for comes last, with link(), which
// replaces nothing: a socket that is bound and does not listen yet looks like one of a dead
// program. Containers may share the directory and not the process numbers: hence more than one
// name.
static bool listen_at(int fd, const char *dir) {
    struct sockaddr_un *const a = &self.addr, own = {.sun_family = AF_UNIX};
    struct timespec now;
    bool ok = false, taken = true;
    clock_gettime(CLOCK_REALTIME, &now);
    int n = snprintf(own.sun_path, sizeof own.sun_path, "%s/.%d-%lx", dir, (int)getpid(),
                     (unsigned long)now.tv_nsec);
    if (n < 0 || (size_t)n >= sizeof own.sun_path) return false;
    if (bind(fd, (const struct sockaddr *)&own, sizeof own) != 0) return false;
    const bool listens = listen(fd, BACKLOG) == 0;
    for (int i = 0; listens && taken && !ok && i < NAMES; i++) {
        *a = (struct sockaddr_un){.sun_family = AF_UNIX};
        n = snprintf(a->sun_path, sizeof a->sun_path, i ? "%s/%d-%d.sock" : "%s/%d.sock", dir,
                     (int)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof a->sun_path) break;
        if (is_dead(a)) unlink(a->sun_path);
        ok = link(own.sun_path, a->sun_path) == 0;
        taken = !ok && errno == EEXIST;
    }
    unlink(own.sun_path);
    return ok;
}

static int open_listener(void) {
    char fallback[64];
    const char *dir = getenv("XPLANED_AGENT_DIR");
    if (!dir || !*dir) {
        snprintf(fallback, sizeof fallback, "/tmp/xplaned-agent-%u", (unsigned)geteuid());
        dir = fallback;
    }
    if (!make_directory(dir)) return -1;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (fchmod(fd, 0600) == 0 && listen_at(fd, dir)) return fd;
    close(fd);
    return -1;
}

// ---- the program's life ----

// Ends a running capture, so that its records are not lost with the program.
static void at_program_end(void) {
    const uint64_t one = 1;
    struct timespec limit;
    if (self.pid != getpid()) return;
    unlink(self.addr.sun_path);
    pthread_mutex_lock(&self.mu);
    const bool wait = self.in_capture && write(self.wake, &one, sizeof one) > 0;
    pthread_mutex_unlock(&self.mu);
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += EXIT_S;
    while (wait && sem_clockwait(&self.idle, CLOCK_MONOTONIC, &limit) != 0 && errno == EINTR)
        continue;
}

// A child has the parent's socket but not its thread.
static void in_child(void) {
    if (self.listener >= 0) close(self.listener);
    if (self.wake >= 0) close(self.wake);
    self.listener = self.wake = -1;
    pthread_mutex_init(&self.mu, NULL);
}

static bool start_thread(void) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
    const bool ok = pthread_create(&thread, NULL, listen_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok) pthread_detach(thread);
    return ok;
}

static void start(void) {
    static bool hooked;
    const char *const how = getenv("XPLANED_AGENT");
    if (how && strcmp(how, "off") == 0) return;
    pthread_mutex_lock(&self.mu);
    if (self.pid != getpid()) {
        self.pid = getpid();
        self.wake = eventfd(0, EFD_CLOEXEC);
        self.listener = self.wake < 0 ? -1 : open_listener();
        if (self.listener >= 0) {
            sem_init(&self.idle, 0, 0);
            if (!hooked)
                hooked = atexit(at_program_end) == 0 && pthread_atfork(NULL, NULL, in_child) == 0;
            if (!hooked || !start_thread()) {
                unlink(self.addr.sun_path);
                close(self.listener);
                self.listener = -1;
            }
        }
    }
    pthread_mutex_unlock(&self.mu);
}

// The driver library loads the file in CUDA_INJECTION64_PATH and calls this within cuInit.
__attribute__((visibility("default"))) int InitializeInjection(void) {
    start();
    return 1;
}

// With LD_PRELOAD no program calls the functions above.
__attribute__((constructor)) static void on_load(void) {
    start();
}
