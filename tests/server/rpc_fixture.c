// SPDX-License-Identifier: Apache-2.0
#include "tests/server/rpc_fixture.h"

#include <stdio.h>

// ---- methods ----

static void echo(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    (void)service;
    xpl_rpc_finish(c, request, NULL);
}

static void *late_main(void *arg) {
    struct fixture *const f = arg;
    pthread_mutex_lock(&f->mu);
    for (;;) {
        while (!f->n_waiting && !f->stop)
            pthread_cond_wait(&f->cv, &f->mu);
        if (!f->n_waiting) break;
        struct xpl_rpc_call *const c = f->waiting[--f->n_waiting];
        pthread_mutex_unlock(&f->mu);
        xpl_rpc_finish(c, text_bytes("late"), NULL);
        xpl_rpc_call_unref(c);
        pthread_mutex_lock(&f->mu);
    }
    pthread_mutex_unlock(&f->mu);
    return NULL;
}

static void later(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct fixture *const f = service;
    (void)request;
    pthread_mutex_lock(&f->mu);
    if (f->n_waiting < LATE_MAX) {
        xpl_rpc_call_ref(c);
        f->waiting[f->n_waiting++] = c;
        pthread_cond_signal(&f->cv);
    } else {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "full");
    }
    pthread_mutex_unlock(&f->mu);
}

struct hang {
    struct fixture *f;
};
static void hang_release(void *user) {
    struct hang *const h = user;
    atomic_fetch_add(&h->f->releases, 1);
    xpl_sys_free(h);
}
static void hang(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct fixture *const f = service;
    struct hang *const h = xpl_sys_alloc(sizeof *h);
    (void)request;
    CHECK(h);
    h->f = f;
    xpl_rpc_call_set_user(c, h, hang_release);
    xpl_rpc_call_ref(c);
    atomic_fetch_add(&f->hanging, 1);
}
static void hang_cancelled(struct xpl_rpc_call *c, void *service) {
    struct fixture *const f = service;
    CHECK(xpl_rpc_call_cancelled(c));
    CHECK(!xpl_rpc_call_finished(c));
    CHECK(((struct hang *)xpl_rpc_call_get_user(c))->f == f);
    atomic_fetch_add(&f->cancels, 1);
    atomic_fetch_sub(&f->hanging, 1);
    xpl_rpc_call_unref(c);
}

static void drop(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    (void)c, (void)request, (void)service;
}

static void fail(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    static const xpl_str_t pairs[1][2] = {{{"queue", 5}, {"17", 2}}};
    const struct xpl_rpc_failure failure = {.code = XPL_RESOURCE_EXHAUSTED,
                                            .message = {(const char *)request.ptr, request.len},
                                            .retry_ms = 1500,
                                            .reason = "QUEUE_FULL",
                                            .n_metadata = 1,
                                            .metadata = pairs};
    (void)service;
    xpl_rpc_finish_failure(c, &failure);
    xpl_rpc_finish(c, request, NULL); // too late: only the first counts
}

static void blob(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct fixture *const f = service;
    xpl_rpc_finish(c, request, f->blob);
}

static void chunks(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct fixture *const f = service;
    CHECK_OK(xpl_rpc_send_chunks(c, request, 15, f->blob, 1000), NULL);
    CHECK_EQ(xpl_rpc_call_queued(c), 1);
    xpl_rpc_finish_ok(c);
    CHECK_STATUS(xpl_rpc_send(c, request, NULL), XPL_CANCELLED, NULL);
}

// Counts to a thousand, a hundred messages ahead at most.
struct count {
    unsigned next;
};
static void count_more(struct xpl_rpc_call *c, void *service) {
    struct count *const n = xpl_rpc_call_get_user(c);
    if (service) atomic_fetch_add(&((struct fixture *)service)->drained, 1);
    for (int i = 0; i < 100 && n->next < 1000; i++, n->next++) {
        const uint8_t b[2] = {(uint8_t)n->next, (uint8_t)(n->next >> 8)};
        if (xpl_rpc_send(c, (xpl_bytes_t){b, 2}, NULL) != XPL_OK) return;
    }
    if (n->next == 1000) {
        xpl_rpc_finish_ok(c);
        xpl_rpc_call_unref(c);
    }
}
static void count(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct count *const n = xpl_sys_alloc(sizeof *n);
    (void)request, (void)service;
    CHECK(n);
    n->next = 0;
    xpl_rpc_call_set_user(c, n, xpl_sys_free);
    xpl_rpc_call_ref(c);
    count_more(c, NULL);
}
static void count_cancelled(struct xpl_rpc_call *c, void *service) {
    (void)service;
    xpl_rpc_finish_status(c, XPL_CANCELLED, "");
    xpl_rpc_call_unref(c);
}

static void meta(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    xpl_str_t agent = {0};
    (void)request, (void)service;
    CHECK(xpl_rpc_call_get_metadata(c, "user-agent", &agent));
    CHECK(!xpl_rpc_call_get_metadata(c, "no-such-key", &agent));
    CHECK(xpl_rpc_call_get_start_ns(c) > 0);
    xpl_rpc_finish(c, (xpl_bytes_t){(const uint8_t *)agent.ptr, agent.len}, NULL);
}

static void fill_methods(struct fixture *f) {
    const struct xpl_rpc_method m[FIXTURE_METHODS] = {
        {.path = "/t.T/Echo", .on_request = echo},
        {.path = "/t.T/Open", .on_request = echo, .flags = XPL_RPC_NO_AUTH},
        {.path = "/t.T/Later", .on_request = later},
        {.path = "/t.T/Hang", .on_request = hang, .on_cancel = hang_cancelled},
        {.path = "/t.T/Drop", .on_request = drop},
        {.path = "/t.T/Fail", .on_request = fail},
        {.path = "/t.T/Blob", .on_request = blob},
        {.path = "/t.T/Late", .on_request = echo, .flags = XPL_RPC_LATE_BODY},
        {.path = "/t.T/Chunks", .on_request = chunks},
        {.path = "/t.T/Count",
         .on_request = count,
         .on_drained = count_more,
         .on_cancel = count_cancelled},
        {.path = "/t.T/Meta", .on_request = meta},
    };
    memcpy(f->methods, m, sizeof m);
    for (size_t i = 0; i < FIXTURE_METHODS; i++)
        f->methods[i].service = f;
}

// ---- life ----

struct fixture *fixture_new(const struct xpl_rpc_server_options *opt) {
    const struct xpl_rpc_server_options none = {.size = sizeof none};
    struct xpl_error err = {0};
    struct fixture *const f = calloc(1, sizeof *f);
    int port = 0;
    CHECK(f);
    pthread_mutex_init(&f->mu, NULL);
    pthread_cond_init(&f->cv, NULL);
    sem_init(&f->down, 0, 0);
    fill_methods(f);
    const xpl_bytes_t set = {xpl_proto_descriptors, xpl_proto_descriptors_len};
    CHECK_OK(xpl_rpc_health_new(f->methods, FIXTURE_METHODS, &f->health, &err), &err);
    CHECK_OK(xpl_rpc_reflection_new(set, f->methods, FIXTURE_METHODS, &f->reflection, &err), &err);
    xpl_rpc_health_get_methods(f->health, f->methods + FIXTURE_METHODS);
    xpl_rpc_reflection_get_methods(f->reflection,
                                   f->methods + FIXTURE_METHODS + XPL_RPC_HEALTH_METHODS);
    uint8_t *const bytes = xpl_sys_alloc(100500);
    CHECK(bytes);
    for (size_t i = 0; i < 100500; i++)
        bytes[i] = (uint8_t)(i * 7);
    f->blob = xpl_rpc_blob_take(bytes, 100500);
    CHECK(f->blob);
    CHECK_OK(xpl_rpc_queue_new(&f->queue, &err), &err);
    CHECK_OK(
        xpl_rpc_server_new(f->queue, f->methods, FIXTURE_ALL, opt ? opt : &none, &f->server, &err),
        &err);
    CHECK_OK(xpl_rpc_server_listen(f->server, "127.0.0.1:0", NULL, &port, &err), &err);
    snprintf(f->address, sizeof f->address, "127.0.0.1:%d", port);
    CHECK_OK(xpl_rpc_server_start(f->server, &err), &err);
    CHECK_EQ(pthread_create(&f->late, NULL, late_main, f), 0);
    return f;
}

static void is_down(void *arg) {
    sem_post(&((struct fixture *)arg)->down);
}

void fixture_stop(struct fixture *f) {
    xpl_rpc_health_stop(f->health);
    xpl_rpc_server_shutdown(f->server, is_down, f);
}

void fixture_free(struct fixture *f) {
    CHECK_EQ(sem_wait(&f->down), 0);
    pthread_mutex_lock(&f->mu);
    f->stop = true;
    pthread_cond_signal(&f->cv);
    pthread_mutex_unlock(&f->mu);
    pthread_join(f->late, NULL);
    struct xpl_rpc_server_stats st;
    xpl_rpc_server_get_stats(f->server, &st);
    CHECK_EQ(st.open, 0);
    xpl_rpc_server_free(f->server);
    xpl_rpc_queue_free(f->queue);
    xpl_rpc_health_free(f->health);
    xpl_rpc_reflection_free(f->reflection);
    xpl_rpc_blob_unref(f->blob);
    sem_destroy(&f->down);
    pthread_mutex_destroy(&f->mu);
    pthread_cond_destroy(&f->cv);
    free(f);
}

struct xpl_rpc_channel *fixture_connect(const struct fixture *f, const char *token) {
    const struct xpl_rpc_channel_options opt = {.size = sizeof opt,
                                                .target = f->address,
                                                .user_agent = "fixture",
                                                .token = xpl_str_from(token ? token : "")};
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_rpc_channel_open(&opt, &ch, &err), &err);
    return ch;
}
