// SPDX-License-Identifier: Apache-2.0
// xplaned-agent: see --help.
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/accept.h"
#include "agent/pytorch/processes.h"
#include "agent/pytorch/serving.h"
#include "agent/record.h"
#include "agent/service.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/net/accept.h"
#include "base/std_fds.h"
#include "base/text/parse.h"
#include "base/text/terminal.h"
#include "rpc/listen/guarded.h"
#include "rpc/listen/hooks.h"
#include "rpc/queue.h"
#include "rpc/server.h"

static const char HELP[] =
    "usage: xplaned-agent [OPTION]...\n"
    "Serves tensorflow.ProfilerService for the CUDA programs of this machine that were started\n"
    "with CUDA_INJECTION64_PATH (or LD_PRELOAD) naming libxplaned-agent.so.\n"
    "  --listen ADDRESS   host:port; port 0 takes a free one (127.0.0.1:9011)\n"
    "  --directory DIR    where the programs' sockets are ($XPLANED_AGENT_DIR, or\n"
    "                     /tmp/xplaned-agent-UID); it must be the user's own\n"
    "  --buffers N        of 4 MiB each, in each program, 2 to 64 (16)\n"
    "  --memory MIB       of records, or of traces, held here in a capture (512)\n"
    "  --pytorch          serve PyTorch processes with KINETO_USE_DAEMON=1, too, as dynolog does;\n"
    "                     captured as pytorch:HOST:PORT\n"
    "  --serving URL      the server of vLLM or SGLang, captured as pytorch:HOST:PORT by its\n"
    "                     /start_profile and /stop_profile; needs --traces\n"
    "  --traces DIR       where that server's profiler writes\n"
    "  --help, --version\n";

enum { REQUESTS_MIB = 64 }; // that gRPC may hold of requests that arrive

struct settings {
    const char *listen, *directory;
    int64_t buffers, memory_mib;
    bool pytorch;
    struct xpl_pytorch_serving serving; // url NULL: none
};

static bool read_arguments(int argc, char **argv, struct settings *s, int *ret_status) {
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},  {"directory", required_argument, NULL, 'd'},
        {"buffers", required_argument, NULL, 'b'}, {"memory", required_argument, NULL, 'm'},
        {"pytorch", no_argument, NULL, 'p'},       {"serving", required_argument, NULL, 's'},
        {"traces", required_argument, NULL, 't'},  {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},       {0}};
    bool ok = true;
    *ret_status = 0;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
            case 'l': s->listen = optarg; break;
            case 'd': s->directory = optarg; break;
            case 'b':
                ok &= xpl_parse_int(xpl_str_from(optarg), 2, XPL_AGENT_BUFFERS_MAX, &s->buffers);
                break;
            case 'm': ok &= xpl_parse_int(xpl_str_from(optarg), 1, 65536, &s->memory_mib); break;
            case 'p': s->pytorch = true; break;
            case 's': s->serving.url = optarg; break;
            case 't': s->serving.directory = optarg; break;
            case 'h': (void)fputs(HELP, stdout); return false;
            case 'v': (void)puts("xplaned-agent " XPL_VERSION); return false;
            default: ok = false; break;
        }
    }
    // One kind of PyTorch's processes: a capture does not say which.
    ok &= !s->serving.url == !s->serving.directory && !(s->serving.url && s->pytorch);
    if (ok && optind == argc) return true;
    (void)fputs(
        "xplaned-agent: an option is not known, out of its range, or lacks another; see --help\n",
        stderr);
    *ret_status = 2;
    return false;
}

// The directory decides which processes the agent talks to, so only its user may write to it.  An
// agent of root may serve the CUDA programs of the user whose directory it is.
static bool is_good(const struct stat *st, bool is_last, bool is_pytorch) {
    const bool is_own = st->st_uid == geteuid(), by_others = (st->st_mode & 022) != 0;
    if (!S_ISDIR(st->st_mode)) return false;
    if (is_last) return !by_others && (is_own || (geteuid() == 0 && !is_pytorch));
    return (is_own || st->st_uid == 0) && (!by_others || (st->st_mode & S_ISVTX));
}

// Whether only root can change what the path leads to: in directories of PyTorch root creates files
// by their paths, so that each directory on the way counts, and none may be a link.
static bool is_of_root_alone(const char *path) {
    struct stat st;
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && *(path += strspn(path, "/"))) {
        char name[NAME_MAX + 1];
        const size_t n = strcspn(path, "/");
        int next = -1;
        if (n < sizeof name && fstat(fd, &st) == 0 && is_good(&st, false, true)) {
            memcpy(name, path, n);
            name[n] = 0;
            next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        (void)close(fd);
        fd = next;
        path += n;
    }
    const bool ok = fd >= 0 && fstat(fd, &st) == 0 && is_good(&st, true, true);
    if (fd >= 0) (void)close(fd);
    return ok;
}

static bool make_directory(const char *path, bool is_pytorch) {
    const bool by_root = is_pytorch && geteuid() == 0 && path[0] == '/';
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        xpl_log(XPL_LOG_ERROR, "agent", "%s: cannot be made: %s", path, strerror(errno));
        return false;
    }
    if (lstat(path, &st) == 0 && is_good(&st, true, is_pytorch) &&
        (!by_root || is_of_root_alone(path)))
        return true;
    xpl_log(
        XPL_LOG_ERROR, "agent",
        "%s: must be a directory that belongs to this user and that only this user can write to%s",
        path,
        by_root ? ", as must those that it is in (but for /tmp), and none may be a link" : "");
    return false;
}

// A flag that the queue's thread sets.  Not a semaphore: ThreadSanitizer of gcc 12 does not know
// sem_clockwait, and reports everything that follows it.
struct down {
    pthread_mutex_t mu; // protects is_set
    pthread_cond_t changed;
    bool is_set;
};

static void is_down(void *arg) {
    struct down *const d = arg;
    pthread_mutex_lock(&d->mu);
    d->is_set = true;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->mu);
}

static bool wait_for(struct down *d, uint64_t seconds) {
    const uint64_t until_ns = xpl_clock_ns() + seconds * 1000000000;
    pthread_mutex_lock(&d->mu);
    while (!d->is_set && xpl_cond_wait_until(&d->changed, &d->mu, until_ns))
        continue;
    const bool is_set = d->is_set;
    pthread_mutex_unlock(&d->mu);
    return is_set;
}

static void stop(struct xpl_rpc_server *server, struct xpl_agent_service *service) {
    struct down down = {.mu = PTHREAD_MUTEX_INITIALIZER};
    xpl_cond_init(&down.changed);
    xpl_agent_service_stop(service);
    xpl_rpc_server_shutdown(server, is_down, &down);
    if (!wait_for(&down, 2)) {
        xpl_rpc_server_cancel_all(server);
        while (!wait_for(&down, 60))
            continue;
    }
    pthread_cond_destroy(&down.changed);
    pthread_mutex_destroy(&down.mu);
}

static xpl_status_t serve(const struct settings *s, struct xpl_rpc_queue *q,
                          struct xpl_agent_service *service, int ends, struct xpl_error *err) {
    const struct xpl_rpc_server_options opt = {.size = sizeof opt,
                                               .memory_quota_bytes = (size_t)REQUESTS_MIB << 20};
    struct xpl_rpc_method methods[XPL_AGENT_METHODS];
    struct xpl_rpc_server *server = NULL;
    struct xpl_agent_accept *accept = NULL;
    int port = 0;
    xpl_agent_service_get_methods(service, methods);
    XPL_TRY(xpl_rpc_server_new(q, methods, XPL_AGENT_METHODS, &opt, &server, err));
    xpl_status_t st = xpl_agent_accept_new(server, s->listen, &accept, &port, err);
    if (st == XPL_OK) st = xpl_rpc_server_start(server, err);
    if (st == XPL_OK) {
        xpl_log(XPL_LOG_INFO, "agent", "serving address=%s port=%d directory=%s", s->listen, port,
                s->directory);
        xpl_agent_accept_run(accept, ends);
        xpl_log(XPL_LOG_INFO, "agent", "stopping");
        xpl_agent_accept_free(accept);
        accept = NULL;
        stop(server, service);
    }
    xpl_agent_accept_free(accept);
    xpl_rpc_server_free(server);
    return st;
}

// `ends` becomes readable when the agent is to end.
static xpl_status_t run_with(const struct settings *s, struct xpl_pytorch_processes *pytorch,
                             int ends, struct xpl_error *err) {
    const struct xpl_agent_service_options opt = {.size = sizeof opt,
                                                  .directory = s->directory,
                                                  .buffers = (uint32_t)s->buffers,
                                                  .max_bytes = (size_t)s->memory_mib << 20,
                                                  .pytorch = pytorch,
                                                  .serving = s->serving.url ? &s->serving : NULL};
    struct xpl_rpc_queue *q = NULL;
    struct xpl_agent_service *service = NULL;
    xpl_rpc_set_log(NULL);
    XPL_TRY(xpl_rpc_queue_new(&q, err));
    xpl_status_t st = xpl_agent_service_new(&opt, &service, err);
    if (st == XPL_OK) st = serve(s, q, service, ends, err);
    xpl_agent_service_free(service);
    xpl_rpc_queue_free(q);
    return st;
}

static xpl_status_t run_agent(const struct settings *s, int ends, struct xpl_error *err) {
    struct xpl_pytorch_processes *pytorch = NULL;
    if (s->pytorch && s->directory[0] != '/')
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "--pytorch: the --directory must be an absolute path: other processes "
                         "write there");
    if (s->pytorch)
        XPL_TRY(xpl_pytorch_processes_new(getenv("KINETO_IPC_SOCKET_DIR"), &pytorch, err));
    const xpl_status_t st = run_with(s, pytorch, ends, err);
    xpl_pytorch_processes_free(pytorch);
    return st;
}

int main(int argc, char **argv) {
    char fallback[64];
    struct settings s = {
        .listen = "127.0.0.1:9011", .directory = getenv("XPLANED_AGENT_DIR"), .memory_mib = 512};
    struct xpl_error err = {0};
    sigset_t ends;
    int status;
    xpl_terminal_guard();
    if (!read_arguments(argc, argv, &s, &status))
        return xpl_std_out_end("xplaned-agent", status, status != 0);
    if (!s.directory || !*s.directory) {
        snprintf(fallback, sizeof fallback, "/tmp/xplaned-agent-%u", (unsigned)geteuid());
        s.directory = fallback;
    }
    if (!make_directory(s.directory, s.pytorch)) return 1;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    const int end_fd = signalfd(-1, &ends, SFD_CLOEXEC);
    if (end_fd < 0 || !xpl_hooks_are_bound()) {
        xpl_log(XPL_LOG_ERROR, "agent", "%s", end_fd < 0 ? "no descriptor" : "linked wrongly");
        return 1;
    }
    (void)xpl_descriptors_raise();
    xpl_rpc_guarded_enable(XPL_RPC_MAX_REQUEST);
    if (run_agent(&s, end_fd, &err) == XPL_OK) return 0;
    xpl_log(XPL_LOG_ERROR, "agent", "%s", err.msg);
    return 1;
}
