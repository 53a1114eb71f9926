// SPDX-License-Identifier: Apache-2.0
// Keys in the daemon's environment.
#include "storage/objects/credentials/issuer.h"

bool xpl_issuer_env_is_set(void) {
    return xpl_issuer_variable("AWS_ACCESS_KEY_ID") && xpl_issuer_variable("AWS_SECRET_ACCESS_KEY");
}

xpl_status_t xpl_issuer_env_fetch(const struct xpl_issuer_context *c, struct xpl_credential *ret,
                                  int64_t *ret_expires_ns, struct xpl_error *err) {
    (void)c;
    ret->kind = XPL_CREDENTIAL_KEYS;
    *ret_expires_ns = XPL_ISSUER_NEVER;
    if (xpl_issuer_copy_variable("AWS_ACCESS_KEY_ID", ret->access, sizeof ret->access) &&
        xpl_issuer_copy_variable("AWS_SECRET_ACCESS_KEY", ret->secret, sizeof ret->secret))
        return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not a valid key");
}

xpl_status_t xpl_issuer_env_fetch_session(const struct xpl_issuer_context *c,
                                          struct xpl_credential *ret, int64_t *ret_expires_ns,
                                          struct xpl_error *err) {
    XPL_TRY(xpl_issuer_env_fetch(c, ret, ret_expires_ns, err));
    if (!xpl_issuer_variable("AWS_SESSION_TOKEN") ||
        xpl_issuer_copy_variable("AWS_SESSION_TOKEN", ret->token, sizeof ret->token))
        return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "AWS_SESSION_TOKEN is not a valid token");
}
