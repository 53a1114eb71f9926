// SPDX-License-Identifier: Apache-2.0
// Watches that the server ends leave their places to others.  The linker leads the submissions to
// pools here, so that the queue of listings is full when the test wants it.
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/xplaned/v1/session.pb-c.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "server/engine/pool.h"
#include "server/grpc/services.h"
#include "tests/check.h"

enum { MORE_THAN_PLACES = 300, TIME_LIMIT_S = 100 };

static atomic_bool full;

bool __real_xpl_pool_submit(struct xpl_pool *p, void (*fn)(void *arg), void *arg);
bool __wrap_xpl_pool_submit(struct xpl_pool *p, void (*fn)(void *arg), void *arg);
bool __wrap_xpl_pool_submit(struct xpl_pool *p, void (*fn)(void *arg), void *arg) {
    return !atomic_load(&full) && __real_xpl_pool_submit(p, fn, arg);
}

static bool is_profile(xpl_str_t file, struct xpl_profile_file *ret) {
    (void)file, (void)ret;
    return false;
}

static struct xpl_catalogue *make_catalogue(void) {
    static char dir[] = "/tmp/xplaned_watches_XXXXXX";
    struct xpl_catalogue *c = NULL;
    struct xpl_error err = {0};
    CHECK(mkdtemp(dir));
    const struct xpl_catalogue_options o = {.size = sizeof o, .logdir = dir, .match = is_profile};
    CHECK_OK(xpl_catalogue_new(&o, &c, &err), &err);
    CHECK_EQ(rmdir(dir), 0);
    return c;
}

static xpl_status_t first_event(struct xpl_rpc_channel *ch) {
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 30000};
    struct xpl_rpc_stream *st = NULL;
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    bool more = false;
    CHECK_OK(xpl_rpc_stream_open(ch, "/xplaned.v1.SessionService/WatchSessions", (xpl_bytes_t){0},
                                 &o, &st, &err),
             &err);
    const xpl_status_t status = xpl_rpc_stream_next(st, &r, &more, &err);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_stream_close(st);
    return status;
}

static void on_down(void *arg) {
    CHECK_EQ(sem_post(arg), 0);
}

int main(void) {
    struct xpl_catalogue *const catalogue = make_catalogue();
    struct xpl_svc_session *const s = xpl_svc_session_new(NULL, catalogue, NULL);
    struct xpl_rpc_method methods[XPL_SVC_SESSION_METHODS];
    struct xpl_rpc_queue *queue = NULL;
    struct xpl_rpc_server *server = NULL;
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_error err = {0};
    const struct xpl_rpc_server_options so = {.size = sizeof so};
    char address[64];
    int port = 0;
    sem_t down;
    alarm(TIME_LIMIT_S);
    CHECK(s);
    CHECK_EQ(sem_init(&down, 0, 0), 0);
    xpl_svc_session_methods(s, methods);
    CHECK_OK(xpl_rpc_queue_new(&queue, &err), &err);
    CHECK_OK(xpl_rpc_server_new(queue, methods, XPL_SVC_SESSION_METHODS, &so, &server, &err), &err);
    CHECK_OK(xpl_rpc_server_listen(server, "127.0.0.1:0", NULL, &port, &err), &err);
    CHECK_OK(xpl_rpc_server_start(server, &err), &err);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", port);
    const struct xpl_rpc_channel_options co = {.size = sizeof co, .target = address};
    CHECK_OK(xpl_rpc_channel_open(&co, &ch, &err), &err);

    atomic_store(&full, true);
    for (size_t i = 0; i < MORE_THAN_PLACES; i++)
        CHECK_EQ(first_event(ch), XPL_RESOURCE_EXHAUSTED);
    atomic_store(&full, false);
    CHECK_EQ(first_event(ch), XPL_OK);

    xpl_rpc_channel_close(ch);
    xpl_svc_session_stop(s);
    xpl_rpc_server_shutdown(server, on_down, &down);
    CHECK_EQ(sem_wait(&down), 0);
    xpl_rpc_server_free(server);
    xpl_rpc_queue_free(queue);
    xpl_svc_session_free(s);
    xpl_catalogue_free(catalogue);
    CHECK_EQ(sem_destroy(&down), 0);
    return 0;
}
