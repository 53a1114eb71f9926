// SPDX-License-Identifier: Apache-2.0
#include "cli/iree/send.h"

#include <stdint.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/status.h"
#include "cli/remote.h"

// PARTS: sending takes one of so many of the time, however large the bundle becomes.
enum { PARTS = 10, LEAST_MS = 1000 };

// Whether the next attempt may do better.
static bool may_pass(int code) {
    return code == XPL_UNAVAILABLE || code == XPL_ABORTED || code == XPL_DEADLINE_EXCEEDED ||
           code == XPL_RESOURCE_EXHAUSTED || code == XPL_DATA_LOSS; // its length was written again
}

// False: no more.  *sent_bytes is what the daemon has.
static bool send_now(struct xpl_outlet *p, uint64_t *sent_bytes) {
    xpl_result r;
    const uint64_t bytes = xpl_outlet_bytes(p);
    if (bytes == *sent_bytes) return true;
    if (!p->client) p->client = xpl_remote_open(p->args);
    if (!p->client) return false;
    const int code = xpl_outlet_send(p, 0, &r);
    if (code == 0) *sent_bytes = bytes;
    if (code == 0 || may_pass(code)) return true;
    p->at_end = code == XPL_UNIMPLEMENTED;
    xpl_say("the daemon gets the bundle at the end: %s", r.message);
    return false;
}

static void *run(void *arg) {
    struct xpl_send *const s = arg;
    const uint64_t flush_ms = (uint64_t)s->outlet->args->flush_interval_ms,
                   least_ns = (flush_ms > LEAST_MS ? flush_ms : LEAST_MS) * UINT64_C(1000000);
    uint64_t sent_bytes = 0, due_ns = 0;
    bool more = true;
    pthread_mutex_lock(&s->mu);
    while (more && !s->stopped) {
        if (xpl_cond_wait_until(&s->stopping, &s->mu, due_ns)) continue; // look again
        pthread_mutex_unlock(&s->mu);
        const uint64_t begin_ns = xpl_clock_ns();
        more = send_now(s->outlet, &sent_bytes);
        const uint64_t end_ns = xpl_clock_ns(), rest_ns = (end_ns - begin_ns) * (PARTS - 1);
        due_ns = end_ns + (rest_ns > least_ns ? rest_ns : least_ns);
        pthread_mutex_lock(&s->mu);
    }
    pthread_mutex_unlock(&s->mu);
    return NULL;
}

void xpl_send_start(struct xpl_send *s, struct xpl_outlet *outlet) {
    s->outlet = outlet;
    (void)pthread_mutex_init(&s->mu, NULL);
    xpl_cond_init(&s->stopping);
    s->started = pthread_create(&s->thread, NULL, run, s) == 0;
    if (s->started) return;
    (void)pthread_cond_destroy(&s->stopping);
    (void)pthread_mutex_destroy(&s->mu);
}

void xpl_send_stop(struct xpl_send *s) {
    if (!s->started) return;
    pthread_mutex_lock(&s->mu);
    s->stopped = true;
    (void)pthread_cond_signal(&s->stopping);
    pthread_mutex_unlock(&s->mu);
    (void)pthread_join(s->thread, NULL);
    (void)pthread_cond_destroy(&s->stopping);
    (void)pthread_mutex_destroy(&s->mu);
    s->started = false;
}
