// SPDX-License-Identifier: Apache-2.0
// What the tests of captures share: requests, and what a capture told.
#ifndef XPL_TESTS_SERVER_CAPTURE_REQUESTS_H_
#define XPL_TESTS_SERVER_CAPTURE_REQUESTS_H_

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "rpc/message.h"
#include "tests/capture/fake_profiler.h"
#include "tests/server/captures_fixture.h"
#include "tests/server/scenario.h"

struct seen { // what a capture told, at its end
    uint64_t id;
    char session[256];
    size_t n_hosts, n_stored;
    struct {
        char state[16], host[160], reason[400];
        int code;
    } hosts[8];
    bool over, give_up;
};

static inline void on_progress(void *arg, const xpl_capture_status *s) {
    struct seen *v = arg;
    v->id = s->id;
    v->over = s->over;
    v->n_hosts = s->n_hosts;
    v->n_stored = s->n_stored;
    (void)snprintf(v->session, sizeof v->session, "%s", s->session);
    for (size_t i = 0; i < s->n_hosts && i < 8; i++) {
        (void)snprintf(v->hosts[i].state, sizeof v->hosts[i].state, "%s", s->hosts[i].state);
        (void)snprintf(v->hosts[i].host, sizeof v->hosts[i].host, "%s", s->hosts[i].host);
        (void)snprintf(v->hosts[i].reason, sizeof v->hosts[i].reason, "%s", s->hosts[i].reason);
        v->hosts[i].code = s->hosts[i].code;
    }
}

static inline int give_up(void *arg) {
    return ((struct seen *)arg)->give_up;
}

static inline xpl_capture_request request(const char *const *targets, size_t n, struct seen *v) {
    return (xpl_capture_request){.size = sizeof(xpl_capture_request),
                                 .targets = targets,
                                 .n_targets = n,
                                 .duration_ms = 50,
                                 .host_tracer_level = -1,
                                 .device_tracer_level = -1,
                                 .python_tracer_level = -1,
                                 .progress = on_progress,
                                 .cancelled = give_up,
                                 .arg = v};
}

static inline int add(struct fake_set *set, enum fake_mode mode) {
    const struct fake_options o = {.mode = mode};
    return fake_add(set, &o);
}

// Waits until the newest capture has this state.
static inline bool becomes(xpl_client *c, const char *state) {
    for (int waited = 0; waited < PATIENCE_MS; waited += 50) {
        xpl_captures *list = NULL;
        CHECK_EQ(xpl_client_captures(c, 1, &list, NULL), 0);
        const xpl_capture_info *const info = xpl_captures_get(list, 0);
        const bool is = info && strcmp(info->state, state) == 0;
        xpl_captures_free(list);
        if (is) return true;
        sleep_ms(50);
    }
    return false;
}

// The newest capture's host `i` reaches this state in the history.
static inline bool host_becomes(xpl_client *c, size_t i, const char *state, char session[256]) {
    for (int waited = 0; waited < PATIENCE_MS; waited += 50) {
        xpl_captures *list = NULL;
        CHECK_EQ(xpl_client_captures(c, 1, &list, NULL), 0);
        const xpl_capture_info *const info = xpl_captures_get(list, 0);
        const bool is = info && i < info->n_hosts && strcmp(info->hosts[i].state, state) == 0;
        if (is) (void)snprintf(session, 256, "%s", info->session);
        xpl_captures_free(list);
        if (is) return true;
        sleep_ms(50);
    }
    return false;
}

static inline xpl_status_t call(struct xpl_rpc_channel *ch, const char *path,
                                const ProtobufCMessage *q, struct xpl_rpc_reply *ret,
                                struct xpl_error *err) {
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 20);
    xpl_rpc_message_put(&b, q);
    CHECK(!b.failed);
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 60000};
    const xpl_status_t st = xpl_rpc_unary(ch, path, (xpl_bytes_t){b.p, b.n}, &o, ret, err);
    xpl_buf_fini(&b);
    return st;
}

// A client that waits on a separate thread for a capture that never ends by itself.
struct waiter {
    struct daemon_proc *d;
    const char *const *targets;
    size_t n; // 0: one
    struct seen seen;
    int code;
    xpl_result result;
};

static inline void *wait_for_capture(void *arg) {
    struct waiter *w = arg;
    xpl_client *c = open_client(w->d, 60000);
    const xpl_capture_request q = request(w->targets, w->n ? w->n : 1, &w->seen);
    w->code = xpl_client_capture(c, &q, &w->result);
    xpl_client_close(c);
    return NULL;
}

static inline bool has(const char *session, const char *name) {
    char path[600];
    struct stat sb;
    (void)snprintf(path, sizeof path, "%s/%s", session, name);
    return stat(path, &sb) == 0;
}

#endif
