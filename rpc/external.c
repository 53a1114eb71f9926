// SPDX-License-Identifier: Apache-2.0
// Handing accepted sockets to gRPC's TLS.
//
// grpc_server_add_channel_from_fd takes no credentials but insecure ones (grpc_posix.h).  gRPC has
// another entrance, which its C++ interface is made of (ServerBuilder's external connection
// acceptors): a listener with the address "external:NAME" has no socket, and leaves an object in
// the channel argument of that name.  The object's one method takes a connected socket, which gRPC
// then handles (TLS, limits of time, the peer's name) like an accepted one.
//
// The object is C++: grpc_core::TcpServerFdHandler, with a virtual destructor and then the method.
// Its layout is fixed by the Itanium C++ ABI, which Linux's compilers follow, and by libgrpc's
// soname; it is the same from gRPC 1.22 on.  tests/server/test_rpc_tls.c connects through it.
#include <grpc/grpc_security.h>
#include <unistd.h>

#include "rpc/impl.h"

struct xpl_rpc_handler;

struct handler_methods {
    void (*destroy)(struct xpl_rpc_handler *h);
    void (*destroy_and_free)(struct xpl_rpc_handler *h);
    // Owns fd.  `listener` is only shown in channelz; `read` are bytes that were read before.
    void (*handle)(struct xpl_rpc_handler *h, int listener, int fd, grpc_byte_buffer *read);
};

struct xpl_rpc_handler { // gRPC's: the listener frees it
    const struct handler_methods *methods;
};

static const char ADDRESS[] = "external:tls";

static void *copy_pointer(void *p) {
    return p;
}
static void destroy_pointer(void *p) {
    (void)p;
}
static int compare_pointers(void *a, void *b) {
    return a < b ? -1 : a > b;
}
static const grpc_arg_pointer_vtable pointer_methods = {copy_pointer, destroy_pointer,
                                                        compare_pointers};

grpc_arg xpl_rpc_external_arg(struct xpl_rpc_handler **slot) {
    return (grpc_arg){.type = GRPC_ARG_POINTER,
                      .key = (char *)(uintptr_t)ADDRESS, // gRPC copies it
                      .value.pointer = {slot, &pointer_methods}};
}

xpl_status_t xpl_rpc_server_serve_tls(struct xpl_rpc_server *s, struct xpl_rpc_tls *tls,
                                      struct xpl_error *err) {
    grpc_server_credentials *const creds = xpl_rpc_tls_make(tls);
    if (!creds) XPL_RETURN_OOM(err, "TLS");
    (void)grpc_server_add_http2_port(s->server, ADDRESS,
                                     creds); // always 0, as this address has no port
    grpc_server_credentials_release(creds);
    if (!s->tls)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "TLS: the certificate does not fit its key");
    return XPL_OK;
}

xpl_status_t xpl_rpc_server_adopt_tls(struct xpl_rpc_server *s, int fd, struct xpl_error *err) {
    pthread_mutex_lock(&s->mu); // against shutdown, which frees the handler
    const bool ok = s->started && s->tls && !atomic_load(&s->stopping);
    if (ok) s->tls->methods->handle(s->tls, -1, fd, NULL);
    pthread_mutex_unlock(&s->mu);
    if (ok) return XPL_OK;
    close(fd);
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the server is not running, or has no certificate");
}
