// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/credentials.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

struct xpl_credentials {
    struct xpl_credential fixed;
};

static bool copy_env(const char *name, char *ret, size_t size) {
    const char *const value = getenv(name);
    const size_t n = value ? strlen(value) : 0;
    if (!n || n >= size) return false;
    memcpy(ret, value, n + 1);
    return true;
}

static bool read_environment(enum xpl_object_service service, struct xpl_credential *ret) {
    if (!copy_env("AWS_ACCESS_KEY_ID", ret->access, sizeof ret->access) ||
        !copy_env("AWS_SECRET_ACCESS_KEY", ret->secret, sizeof ret->secret))
        return false;
    // Google's keys have none: one that is there is Amazon's, and no business of Google's.
    if (service == XPL_OBJECTS_S3)
        (void)copy_env("AWS_SESSION_TOKEN", ret->token, sizeof ret->token);
    ret->kind = XPL_CREDENTIAL_KEYS;
    return true;
}

xpl_status_t xpl_credentials_new(enum xpl_object_service service, bool anonymous,
                                 struct xpl_credentials **ret, struct xpl_error *err) {
    struct xpl_credentials *const c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "credentials");
    memset(c, 0, sizeof *c);
    if (anonymous || read_environment(service, &c->fixed)) {
        *ret = c;
        return XPL_OK;
    }
    xpl_credentials_free(c);
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "no credentials for %s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY%s, or "
                     "--object-anonymous for a public bucket",
                     service == XPL_OBJECTS_S3 ? "s3://" : "gs://",
                     service == XPL_OBJECTS_S3 ? "" : " to an HMAC key");
}

void xpl_credentials_free(struct xpl_credentials *c) {
    if (c) explicit_bzero(c, sizeof *c);
    xpl_sys_free(c);
}

xpl_status_t xpl_credentials_get(struct xpl_credentials *c, struct xpl_credential *ret,
                                 struct xpl_error *err) {
    (void)err;
    *ret = c->fixed;
    return XPL_OK;
}
