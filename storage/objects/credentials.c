// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/credentials.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/cond.h"
#include "storage/objects/credentials/issuer.h"

#define SECOND_NS ((int64_t)1000000000)
#define EARLY_NS  (300 * SECOND_NS) // before they expire
#define RETRY_NS  (5 * SECOND_NS)

struct xpl_credentials {
    const struct xpl_credential_issuer *source; // NULL: anonymous
    struct xpl_issuer_context context;
    void (*warn)(void *arg, const char *text);
    void *arg;
    uint64_t hold_ns; // between a failure and the next try
    pthread_mutex_t mu;
    pthread_cond_t changed;
    // Under mu.
    struct xpl_credential kept;
    int64_t expires_ns, due_ns; // wall clock; when they end, and when they are renewed
    uint64_t retry_ns;          // monotonic; not before
    bool renewing;
    struct xpl_error failure; // of the last renewal
};

// ---- which source ----

static const struct xpl_credential_issuer *choose(enum xpl_object_service service) {
    const bool aws = service == XPL_OBJECTS_S3;
    const struct xpl_credential_issuer *const all = aws ? xpl_issuers_aws : xpl_issuers_google;
    const size_t n = aws ? xpl_n_issuers_aws : xpl_n_issuers_google;
    for (size_t i = 0; i < n; i++)
        if (all[i].is_set()) return &all[i];
    return NULL;
}

xpl_status_t xpl_credentials_new(const struct xpl_credentials_options *o,
                                 struct xpl_credentials **ret, struct xpl_error *err) {
    const struct xpl_credential_issuer *const source = o->anonymous ? NULL : choose(o->service);
    if (!source && !o->anonymous)
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "no credentials for %s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY%s, "
            "use another source of docs/objects.md, or --object-anonymous for a public bucket",
            o->service == XPL_OBJECTS_S3 ? "s3://" : "gs://",
            o->service == XPL_OBJECTS_S3 ? "" : " to an HMAC key");
    struct xpl_credentials *const c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "credentials");
    memset(c, 0, sizeof *c);
    c->source = source;
    c->context = (struct xpl_issuer_context){o->transfers, o->region};
    c->warn = o->warn;
    c->arg = o->arg;
    c->hold_ns = o->retry_ns ? o->retry_ns : RETRY_NS;
    pthread_mutex_init(&c->mu, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (!source) c->expires_ns = c->due_ns = XPL_ISSUER_NEVER;
    *ret = c;
    return XPL_OK;
}

void xpl_credentials_free(struct xpl_credentials *c) {
    if (!c) return;
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mu);
    explicit_bzero(c, sizeof *c);
    xpl_sys_free(c);
}

// ---- renewal ----

// Renewal time: minutes before the expiry, or after half of a shorter lifetime.
static int64_t due_of(int64_t expires_ns, int64_t now_ns) {
    const int64_t half = (expires_ns - now_ns) / 2;
    return expires_ns - (half < EARLY_NS ? half : EARLY_NS);
}

static xpl_status_t ask(struct xpl_credentials *c, struct xpl_credential *ret,
                        int64_t *ret_expires_ns, struct xpl_error *err) {
    struct xpl_error why = {0};
    xpl_status_t st = c->source->fetch(&c->context, ret, ret_expires_ns, &why);
    if (st == XPL_OK && *ret_expires_ns <= xpl_unix_ns())
        st = xpl_error_set(&why, XPL_UNAVAILABLE, __FILE__, __LINE__, UINT64_MAX,
                           "its credentials have expired");
    if (st == XPL_OK) return XPL_OK;
    // Not the object is missing, or another one.
    if (st == XPL_NOT_FOUND || st == XPL_ABORTED) st = XPL_FAILED_PRECONDITION;
    XPL_RETURN_ERROR(err, st, "credentials by %s: %s", c->source->name, why.msg);
}

// Without the lock, by one thread at a time; the lock is held before and after.
static void renew(struct xpl_credentials *c) {
    xpl_assert_held(&c->mu);
    struct xpl_credential got = {.kind = XPL_CREDENTIAL_NONE};
    struct xpl_error failure = {0};
    int64_t expires_ns = 0;
    char text[300];
    c->renewing = true;
    pthread_mutex_unlock(&c->mu);
    const xpl_status_t st = ask(c, &got, &expires_ns, &failure);
    const int64_t now = xpl_unix_ns();
    pthread_mutex_lock(&c->mu);
    c->renewing = false;
    if (st == XPL_OK) {
        c->kept = got;
        c->expires_ns = expires_ns;
        c->due_ns = due_of(expires_ns, now);
        c->retry_ns = 0;
    } else {
        c->failure = failure;
        c->retry_ns = xpl_clock_ns() + c->hold_ns;
    }
    const int64_t left = c->expires_ns - now;
    pthread_cond_broadcast(&c->changed);
    explicit_bzero(&got, sizeof got);
    if (st == XPL_OK || st == XPL_CANCELLED || left <= 0 || !c->warn) return;
    pthread_mutex_unlock(&c->mu);
    (void)snprintf(text, sizeof text, "%s; those that are there expire in %lld s", failure.msg,
                   (long long)(left / SECOND_NS));
    c->warn(c->arg, text);
    pthread_mutex_lock(&c->mu);
}

xpl_status_t xpl_credentials_get(struct xpl_credentials *c, struct xpl_credential *ret,
                                 struct xpl_error *err) {
    xpl_status_t st = XPL_OK;
    bool tried = false; // one call tries once
    pthread_mutex_lock(&c->mu);
    for (;;) {
        const int64_t now = xpl_unix_ns();
        const bool good = now < c->expires_ns, held = tried || xpl_clock_ns() < c->retry_ns;
        if (good && (now < c->due_ns || c->renewing || held)) break;
        if (c->renewing) {
            pthread_cond_wait(&c->changed, &c->mu);
        } else if (held) {
            if (err) *err = c->failure;
            st = c->failure.code;
            break;
        } else {
            renew(c);
            tried = true;
        }
    }
    if (st == XPL_OK) *ret = c->kept;
    pthread_mutex_unlock(&c->mu);
    return st;
}
