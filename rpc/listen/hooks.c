// SPDX-License-Identifier: Apache-2.0
// The program's definitions of recvmsg, sendmsg, close, SSL_read and SSL_write.  They inspect the
// bytes from clients before gRPC gets them, note the bytes that it sends (guarded.h), and follow
// the bytes that it receives as a client (announced.h).
//
// Linked only into the program, never into a library: a symbol of the program takes precedence over
// the same one of libc and libssl, for libgrpc, too.  The first three only make the system calls.
// libssl belongs to libgrpc and is found at run time, so that no version of it is built in.
#include "rpc/listen/hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rpc/listen/announced.h"
#include "rpc/listen/guarded.h"

#define XPL_EXPORT __attribute__((visibility("default")))

XPL_EXPORT ssize_t recvmsg(int fd, struct msghdr *m, int flags) {
    const ssize_t n = syscall(SYS_recvmsg, fd, m, flags);
    if (n <= 0 || flags & MSG_ERRQUEUE) return n; // we sent the data in the error queue
    if (xpl_rpc_guarded_has(fd)) return xpl_rpc_guarded_received(fd, m, n);
    return xpl_rpc_announced_received(fd, m, n);
}

XPL_EXPORT ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
    const ssize_t n = syscall(SYS_sendmsg, fd, m, flags);
    if (n > 0) xpl_rpc_guarded_sent(fd, m, n);
    return n;
}

// ThreadSanitizer's own close is behind ours: without this call it takes the next file of the same
// number for this one.
static void tell_sanitizer(int fd) {
#ifdef __SANITIZE_THREAD__
    extern void __sanitizer_syscall_pre_impl_close(long);
    __sanitizer_syscall_pre_impl_close(fd);
#else
    (void)fd;
#endif
}

XPL_EXPORT int close(int fd) {
    xpl_rpc_guarded_close(fd);
    xpl_rpc_announced_close(fd);
    tell_sanitizer(fd);
    return (int)syscall(SYS_close, fd);
}

// ---- TLS ----

struct ssl_st;
int SSL_read(struct ssl_st *ssl, void *buf, int n);
int SSL_write(struct ssl_st *ssl, const void *buf, int n);

typedef void free_fn(void *parent, void *ptr, void *data, int index, long argl, void *argp);

static struct {
    int (*read)(struct ssl_st *, void *, int);
    int (*write)(struct ssl_st *, const void *, int);
    int (*is_server)(const struct ssl_st *);
    int (*new_index)(int class_index, long, void *, void *, void *, free_fn *);
    int (*set_data)(struct ssl_st *, int, void *);
    void *(*get_data)(const struct ssl_st *, int);
    int index; // of our data in a connection; -1: guards are off
} ssl_functions = {.index = -1};

static void free_guard(void *parent, void *ptr, void *data, int index, long argl, void *argp) {
    (void)parent, (void)data, (void)index, (void)argl, (void)argp;
    xpl_rpc_guarded_free(ptr);
}

static void find_functions(void) {
    enum { CLASS_SSL = 0 }; // CRYPTO_EX_INDEX_SSL
    *(void **)&ssl_functions.read = dlsym(RTLD_NEXT, "SSL_read");
    *(void **)&ssl_functions.write = dlsym(RTLD_NEXT, "SSL_write");
    *(void **)&ssl_functions.is_server = dlsym(RTLD_NEXT, "SSL_is_server");
    *(void **)&ssl_functions.new_index = dlsym(RTLD_NEXT, "CRYPTO_get_ex_new_index");
    *(void **)&ssl_functions.set_data = dlsym(RTLD_NEXT, "SSL_set_ex_data");
    *(void **)&ssl_functions.get_data = dlsym(RTLD_NEXT, "SSL_get_ex_data");
    if (ssl_functions.is_server && ssl_functions.new_index && ssl_functions.set_data &&
        ssl_functions.get_data && xpl_rpc_guarded_enabled())
        ssl_functions.index = ssl_functions.new_index(CLASS_SSL, 0, NULL, NULL, NULL, free_guard);
}

// The functions of libssl, found once.
static bool has_functions(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_functions);
    if (ssl_functions.read && ssl_functions.write) return true;
    errno = ENOSYS;
    return false;
}

static bool is_guarded(const struct ssl_st *ssl) {
    return ssl_functions.index >= 0 && ssl_functions.is_server(ssl);
}

// The guard of a connection, made for its first bytes; gRPC uses a connection in one thread at a
// time.  NULL on OOM.
static struct xpl_rpc_guard *guard_of(struct ssl_st *ssl) {
    struct xpl_rpc_guard *g = ssl_functions.get_data(ssl, ssl_functions.index);
    if (g) return g;
    g = xpl_rpc_guarded_new();
    if (!g || ssl_functions.set_data(ssl, ssl_functions.index, g)) return g;
    xpl_rpc_guarded_free(g);
    return NULL;
}

static bool inspect(struct ssl_st *ssl, void *buf, size_t n) {
    if (!is_guarded(ssl)) return true;
    struct xpl_rpc_guard *const g = guard_of(ssl);
    return g && xpl_rpc_guarded_feed(g, buf, n);
}

static bool note_sent(struct ssl_st *ssl, const void *buf, size_t n) {
    if (!is_guarded(ssl)) return true;
    struct xpl_rpc_guard *const g = guard_of(ssl);
    if (g) xpl_rpc_guarded_note_sent(g, buf, n);
    return g != NULL;
}

XPL_EXPORT int SSL_read(struct ssl_st *ssl, void *buf, int n) {
    if (!has_functions()) return -1;
    const int got = ssl_functions.read(ssl, buf, n);
    if (got <= 0 || inspect(ssl, buf, (size_t)got)) return got;
    errno = ECONNRESET; // SSL_get_error: an error of the system, which ends the connection
    return -1;
}

XPL_EXPORT int SSL_write(struct ssl_st *ssl, const void *buf, int n) {
    if (!has_functions()) return -1;
    const int sent = ssl_functions.write(ssl, buf, n);
    if (sent <= 0 || note_sent(ssl, buf, (size_t)sent)) return sent;
    errno = ECONNRESET;
    return -1;
}

// ---- whether it works ----

static bool is_bound(const char *name, void *own) {
    return dlsym(RTLD_DEFAULT, name) == own;
}

bool xpl_hooks_are_bound(void) {
    void *receive, *transmit, *end, *decrypt, *encrypt;
    *(ssize_t(**)(int, struct msghdr *, int)) & receive = recvmsg;
    *(ssize_t(**)(int, const struct msghdr *, int)) & transmit = sendmsg;
    *(int (**)(int)) & end = close;
    *(int (**)(struct ssl_st *, void *, int)) & decrypt = SSL_read;
    *(int (**)(struct ssl_st *, const void *, int)) & encrypt = SSL_write;
    return is_bound("recvmsg", receive) && is_bound("sendmsg", transmit) &&
           is_bound("close", end) && is_bound("SSL_read", decrypt) &&
           is_bound("SSL_write", encrypt);
}
