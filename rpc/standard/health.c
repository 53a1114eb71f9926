// SPDX-License-Identifier: Apache-2.0
#include "rpc/standard/health.h"

#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "proto/grpc/health/v1/health.pb-c.h"
#include "rpc/field.h"
#include "rpc/message.h"

#define SERVING         GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define NOT_SERVING     GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
#define SERVICE_UNKNOWN GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN

enum { MAX_LIST = 1 << 20 };

// One open Watch; listed as long as it is to be notified.
struct watch {
    struct watch *prev, *next;
    struct xpl_rpc_call *call; // referenced while listed
    bool known;
};

struct xpl_rpc_health {
    pthread_mutex_t mu;
    bool serving, stopped;
    struct watch *watches;
    size_t n_watches, n_names;
    char **names;
};

// ---- names ----

// "/package.Service/Method" -> "package.Service"
static xpl_str_t service_of(const char *path) {
    const char *const name = path + (*path == '/');
    const char *const end = strchr(name, '/');
    return (xpl_str_t){name, end ? (size_t)(end - name) : strlen(name)};
}

static bool is_known(const struct xpl_rpc_health *h, xpl_str_t name) {
    if (name.len == 0) return true;
    for (size_t i = 0; i < h->n_names; i++)
        if (xpl_str_eq(xpl_str_from(h->names[i]), name)) return true;
    return false;
}

static bool add_name(struct xpl_rpc_health *h, xpl_str_t name) {
    if (is_known(h, name)) return true;
    char *const copy = xpl_sys_alloc(name.len + 1);
    if (!copy) return false;
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = '\0';
    h->names[h->n_names++] = copy;
    return true;
}

xpl_status_t xpl_rpc_health_new(const struct xpl_rpc_method *methods, size_t n,
                                struct xpl_rpc_health **ret, struct xpl_error *err) {
    struct xpl_rpc_health *const h = xpl_sys_alloc(sizeof *h);
    if (!h) XPL_RETURN_OOM(err, "health");
    *h = (struct xpl_rpc_health){0};
    pthread_mutex_init(&h->mu, NULL);
    h->names = xpl_sys_alloc((n + 1) * sizeof *h->names);
    bool ok = h->names && add_name(h, XPL_STR("grpc.health.v1.Health"));
    for (size_t i = 0; i < n && ok; i++)
        ok = add_name(h, service_of(methods[i].path));
    if (!ok) {
        xpl_rpc_health_free(h);
        XPL_RETURN_OOM(err, "health");
    }
    *ret = h;
    return XPL_OK;
}

void xpl_rpc_health_free(struct xpl_rpc_health *h) {
    if (!h) return;
    for (size_t i = 0; i < h->n_names; i++)
        xpl_sys_free(h->names[i]);
    xpl_sys_free(h->names);
    pthread_mutex_destroy(&h->mu);
    xpl_sys_free(h);
}

// ---- answers ----

static int state_of(const struct xpl_rpc_health *h, bool known) {
    return !known ? SERVICE_UNKNOWN : h->serving ? SERVING : NOT_SERVING;
}

// HealthCheckResponse has one field; the encoding is two bytes and cannot fail.
static size_t encode(uint8_t out[2], int state) {
    out[0] = 1 << 3, out[1] = (uint8_t)state;
    return 2;
}

static bool parse(struct xpl_rpc_call *c, xpl_bytes_t request, xpl_str_t *ret) {
    struct xpl_error err = {0};
    if (xpl_rpc_message_scan(&grpc__health__v1__health_check_request__descriptor, request, &err)) {
        xpl_rpc_finish_error(c, &err);
        return false;
    }
    const xpl_bytes_t name = xpl_rpc_field_find(request, 1);
    *ret = (xpl_str_t){(const char *)name.ptr, name.len};
    return true;
}

static void on_check(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_rpc_health *const h = service;
    xpl_str_t name;
    uint8_t out[2];
    if (!parse(c, request, &name)) return;
    if (!is_known(h, name)) {
        xpl_rpc_finish_status(c, XPL_NOT_FOUND, "this server has no such service");
        return;
    }
    pthread_mutex_lock(&h->mu);
    const size_t n = encode(out, state_of(h, true));
    pthread_mutex_unlock(&h->mu);
    xpl_rpc_finish(c, (xpl_bytes_t){out, n}, NULL);
}

// HealthListResponse: a map from name to HealthCheckResponse.
static void put_entry(struct xpl_buf *b, xpl_str_t name, int state) {
    uint8_t answer[2], bytes[16];
    const size_t n = encode(answer, state);
    struct xpl_buf head = {.p = bytes, .cap = sizeof bytes, .max = sizeof bytes};
    xpl_rpc_put_len(&head, 1, name.len);
    xpl_rpc_put_len(b, 1, head.n + name.len + 2 + n);
    xpl_buf_put(b, head.p, head.n);
    xpl_buf_str(b, name);
    xpl_rpc_put_len(b, 2, n);
    xpl_buf_put(b, answer, n);
}

void xpl_rpc_health_list(struct xpl_rpc_health *h, struct xpl_buf *ret) {
    pthread_mutex_lock(&h->mu);
    const int state = state_of(h, true);
    pthread_mutex_unlock(&h->mu);
    put_entry(ret, XPL_STR(""), state);
    for (size_t i = 0; i < h->n_names; i++)
        put_entry(ret, xpl_str_from(h->names[i]), state);
}

static void on_list(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_buf b = xpl_buf_of(MAX_LIST);
    (void)request; // it has no fields
    xpl_rpc_health_list(service, &b);
    if (b.failed)
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "no memory for the list");
    else
        xpl_rpc_finish(c, (xpl_bytes_t){b.p, b.n}, NULL);
    xpl_buf_fini(&b);
}

// ---- watches; the caller holds h->mu ----

static void list_watch(struct xpl_rpc_health *h, struct watch *w) {
    w->next = h->watches;
    if (w->next) w->next->prev = w;
    h->watches = w;
    h->n_watches++;
    xpl_rpc_call_ref(w->call);
}

// False when it was not listed any more; else its reference is the caller's to drop.
static bool unlist_watch(struct xpl_rpc_health *h, struct watch *w) {
    if (!w->prev && h->watches != w) return false;
    if (w->prev)
        w->prev->next = w->next;
    else
        h->watches = w->next;
    if (w->next) w->next->prev = w->prev;
    w->prev = w->next = NULL;
    h->n_watches--;
    return true;
}

static xpl_status_t send_state(const struct xpl_rpc_health *h, const struct watch *w) {
    uint8_t out[2];
    return xpl_rpc_send(w->call, (xpl_bytes_t){out, encode(out, state_of(h, w->known))}, NULL);
}

static void on_watch(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_rpc_health *const h = service;
    xpl_str_t name;
    if (!parse(c, request, &name)) return;
    struct watch *const w = xpl_sys_alloc(sizeof *w);
    if (!w) {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "no memory for another watch");
        return;
    }
    *w = (struct watch){.call = c, .known = is_known(h, name)};
    xpl_rpc_call_set_user(c, w, xpl_sys_free);
    pthread_mutex_lock(&h->mu);
    const bool stopped = h->stopped, full = h->n_watches >= XPL_RPC_HEALTH_WATCHERS;
    const bool ok = !stopped && !full && send_state(h, w) == XPL_OK;
    if (ok) list_watch(h, w);
    pthread_mutex_unlock(&h->mu);
    if (ok) return;
    xpl_rpc_finish_status(c, stopped ? XPL_UNAVAILABLE : XPL_RESOURCE_EXHAUSTED,
                          stopped ? "the server is stopping" : "too many watches");
}

static void on_watcher_gone(struct xpl_rpc_call *c, void *service) {
    struct xpl_rpc_health *const h = service;
    struct watch *const w = xpl_rpc_call_get_user(c);
    pthread_mutex_lock(&h->mu);
    const bool mine = w && unlist_watch(h, w);
    pthread_mutex_unlock(&h->mu);
    if (mine) xpl_rpc_call_unref(c);
}

void xpl_rpc_health_get_methods(struct xpl_rpc_health *h,
                                struct xpl_rpc_method ret[XPL_RPC_HEALTH_METHODS]) {
    ret[0] = (struct xpl_rpc_method){.path = "/grpc.health.v1.Health/Check",
                                     .flags = XPL_RPC_NO_AUTH,
                                     .on_request = on_check,
                                     .service = h};
    ret[1] = (struct xpl_rpc_method){.path = "/grpc.health.v1.Health/List",
                                     .flags = XPL_RPC_NO_AUTH,
                                     .on_request = on_list,
                                     .service = h};
    ret[2] = (struct xpl_rpc_method){.path = "/grpc.health.v1.Health/Watch",
                                     .flags = XPL_RPC_NO_AUTH | XPL_RPC_STAYS,
                                     .on_request = on_watch,
                                     .on_cancel = on_watcher_gone,
                                     .service = h};
}

void xpl_rpc_health_set(struct xpl_rpc_health *h, bool serving) {
    pthread_mutex_lock(&h->mu);
    const bool news = h->serving != serving && !h->stopped;
    if (news) h->serving = serving;
    // If memory is short, a watcher gets the next change instead; the cancellation of a watcher
    // unlists it.
    for (struct watch *w = h->watches; news && w; w = w->next)
        if (w->known) (void)send_state(h, w);
    pthread_mutex_unlock(&h->mu);
}

void xpl_rpc_health_stop(struct xpl_rpc_health *h) {
    xpl_rpc_health_set(h, false);
    pthread_mutex_lock(&h->mu);
    h->stopped = true;
    pthread_mutex_unlock(&h->mu);
    for (;;) {
        pthread_mutex_lock(&h->mu);
        struct watch *const w = h->watches;
        if (w) unlist_watch(h, w);
        pthread_mutex_unlock(&h->mu);
        if (!w) return;
        struct xpl_rpc_call *const c = w->call; // w goes with the call
        xpl_rpc_finish_status(c, XPL_UNAVAILABLE, "the server is stopping");
        xpl_rpc_call_unref(c);
    }
}
