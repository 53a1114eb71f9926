// SPDX-License-Identifier: Apache-2.0
// The end of a server in all its forms, and clients that come and go in numbers.
#include "tests/server/rpc_fixture.h"

static const struct xpl_rpc_call_options PATIENT = {.size = sizeof PATIENT, .timeout_ms = 60000};

static void quiet(int severity, const char *file, int line, const char *text) {
    (void)severity, (void)file, (void)line, (void)text;
}

static void test_idle(void) {
    for (int i = 0; i < 5; i++) {
        struct fixture *const f = fixture_new(NULL);
        fixture_stop(f);
        fixture_free(f);
    }
}

// A server that was never started, and one without a listener.
static void test_unstarted(void) {
    struct xpl_rpc_queue *q = NULL;
    struct xpl_rpc_server *s = NULL;
    struct xpl_error err = {0};
    const struct xpl_rpc_server_options none = {.size = sizeof none};
    const struct xpl_rpc_method m = {.path = "/t.T/X"};
    CHECK_OK(xpl_rpc_queue_new(&q, &err), &err);
    CHECK_OK(xpl_rpc_server_new(q, &m, 1, &none, &s, &err), &err);
    CHECK_OK(xpl_rpc_server_listen(s, "127.0.0.1:0", NULL, NULL, &err), &err);
    xpl_rpc_server_free(s);
    CHECK_OK(xpl_rpc_server_new(q, &m, 1, &none, &s, &err), &err);
    CHECK_OK(xpl_rpc_server_start(s, &err), &err);
    xpl_rpc_server_free(s);
    xpl_rpc_queue_free(q);
}

struct caller {
    pthread_t thread;
    struct fixture *f;
    const char *path;
    xpl_status_t status;
};
static void *call_main(void *arg) {
    struct caller *const c = arg;
    struct xpl_rpc_channel *const ch = fixture_connect(c->f, NULL);
    struct xpl_rpc_reply r = {0};
    c->status = xpl_rpc_unary(ch, c->path, text_bytes("x"), &PATIENT, &r, NULL);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    return NULL;
}

// Running calls continue; after the grace time they are cancelled, and the server stops.
static void test_outstanding(void) {
    struct fixture *const f = fixture_new(NULL);
    struct caller callers[8];
    for (int i = 0; i < 8; i++) {
        callers[i] = (struct caller){.f = f, .path = "/t.T/Hang"};
        CHECK_EQ(pthread_create(&callers[i].thread, NULL, call_main, &callers[i]), 0);
    }
    CHECK(wait_for(&f->hanging, 8));
    fixture_stop(f);
    struct caller late = {.f = f, .path = "/t.T/Echo"};
    call_main(&late);
    CHECK_STATUS(late.status, XPL_UNAVAILABLE, NULL); // the listener is closed
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    CHECK(sem_trywait(&f->down) != 0); // the calls keep it up
    CHECK_EQ(atomic_load(&f->hanging), 8);
    xpl_rpc_server_cancel_all(f->server);
    for (int i = 0; i < 8; i++) {
        pthread_join(callers[i].thread, NULL);
        CHECK(callers[i].status != XPL_OK);
    }
    fixture_free(f);
}

// A call that a thread answers after the shutdown has begun still gets its answer.
static struct xpl_rpc_call *kept;
static sem_t kept_sem;
static void keep_call(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    (void)request, (void)service;
    xpl_rpc_call_ref(c);
    kept = c;
    sem_post(&kept_sem);
}
static void is_down(void *sem) {
    sem_post(sem);
}
static void test_drain(void) {
    struct xpl_rpc_queue *q = NULL;
    struct xpl_rpc_server *s = NULL;
    struct xpl_error err = {0};
    const struct xpl_rpc_server_options none = {.size = sizeof none};
    const struct xpl_rpc_method m = {.path = "/t.T/Hold", .on_request = keep_call};
    struct fixture f = {0}; // only its address
    sem_t down;
    int port = 0;
    sem_init(&down, 0, 0);
    sem_init(&kept_sem, 0, 0);
    CHECK_OK(xpl_rpc_queue_new(&q, &err), &err);
    CHECK_OK(xpl_rpc_server_new(q, &m, 1, &none, &s, &err), &err);
    CHECK_OK(xpl_rpc_server_listen(s, "127.0.0.1:0", NULL, &port, &err), &err);
    CHECK_OK(xpl_rpc_server_start(s, &err), &err);
    snprintf(f.address, sizeof f.address, "127.0.0.1:%d", port);
    struct caller c = {.f = &f, .path = "/t.T/Hold"};
    CHECK_EQ(pthread_create(&c.thread, NULL, call_main, &c), 0);
    CHECK_EQ(sem_wait(&kept_sem), 0);
    xpl_rpc_server_shutdown(s, is_down, &down);
    usleep(50000);
    CHECK(sem_trywait(&down) != 0);
    xpl_rpc_finish(kept, text_bytes("done"), NULL);
    usleep(20000);
    CHECK(sem_trywait(&down) != 0); // answered, but still referenced
    xpl_rpc_call_unref(kept);
    CHECK_EQ(sem_wait(&down), 0);
    pthread_join(c.thread, NULL);
    CHECK_OK(c.status, NULL);
    xpl_rpc_server_free(s);
    xpl_rpc_queue_free(q);
    sem_destroy(&down);
    sem_destroy(&kept_sem);
}

// Clients cancel at every moment of a call's life; nothing leaks, and the server goes on.
struct storm {
    pthread_t thread;
    struct fixture *f;
    unsigned seed;
};
static void *storm_main(void *arg) {
    static const char *const paths[] = {
        "/t.T/Echo",   "/t.T/Later",  "/t.T/Hang",  "/t.T/Blob",
        "/t.T/Late",   "/t.T/Chunks", "/t.T/Count", "/grpc.health.v1.Health/Watch",
        "/t.T/Nothing"};
    struct storm *const st = arg;
    struct xpl_rpc_channel *const ch = fixture_connect(st->f, NULL);
    struct xpl_rpc_reply r = {0};
    for (int i = 0; i < STORM_CALLS; i++) {
        const struct xpl_rpc_call_options opt = {.size = sizeof opt,
                                                 .timeout_ms = 1 + rand_r(&st->seed) % 30};
        const char *const path = paths[(size_t)rand_r(&st->seed) % (sizeof paths / sizeof *paths)];
        struct xpl_rpc_stream *s = NULL;
        bool more = true;
        CHECK_OK(xpl_rpc_stream_open(ch, path, text_bytes(""), &opt, &s, NULL), NULL);
        for (int k = rand_r(&st->seed) % 4; k > 0 && more; k--)
            if (xpl_rpc_stream_next(s, &r, &more, NULL) != XPL_OK) break;
        xpl_rpc_stream_close(s);
    }
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    return NULL;
}

static void test_storm(void) {
    struct fixture *const f = fixture_new(NULL);
    struct storm storms[6];
    for (unsigned i = 0; i < 6; i++) {
        storms[i] = (struct storm){.f = f, .seed = i + 1};
        CHECK_EQ(pthread_create(&storms[i].thread, NULL, storm_main, &storms[i]), 0);
    }
    for (int i = 0; i < 20; i++) {
        xpl_rpc_health_set(f->health, i % 2);
        usleep(5000);
    }
    for (int i = 0; i < 6; i++)
        pthread_join(storms[i].thread, NULL);
    CHECK(wait_for(&f->hanging, 0));
    struct caller c = {.f = f, .path = "/t.T/Echo"};
    call_main(&c);
    CHECK_OK(c.status, NULL);
    fixture_stop(f);
    fixture_free(f);
}

// Shutdown in the middle of it all.
static void test_stop_in_storm(void) {
    for (int round = 0; round < 3; round++) {
        struct fixture *const f = fixture_new(NULL);
        struct storm storms[4];
        for (unsigned i = 0; i < 4; i++) {
            storms[i] = (struct storm){.f = f, .seed = 100 + i};
            CHECK_EQ(pthread_create(&storms[i].thread, NULL, storm_main, &storms[i]), 0);
        }
        usleep(30000);
        fixture_stop(f);
        xpl_rpc_server_cancel_all(f->server);
        for (int i = 0; i < 4; i++)
            pthread_join(storms[i].thread, NULL);
        fixture_free(f);
    }
}

int main(void) {
    alarm(110);
    xpl_rpc_set_log(quiet);
    test_idle();
    test_unstarted();
    test_outstanding();
    test_drain();
    test_storm();
    test_stop_in_storm();
    return 0;
}
