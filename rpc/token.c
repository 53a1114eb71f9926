// SPDX-License-Identifier: Apache-2.0
// The bearer token of a server.
#include <string.h>

#include "base/arena.h"
#include "rpc/impl.h"

// The time does not depend on where the difference is.
static bool same_secret(const char *secret, size_t n_secret, const char *given, size_t n_given) {
    volatile unsigned diff = (unsigned)(n_secret != n_given);
    for (size_t i = 0; i < n_given; i++)
        diff |=
            (unsigned char)given[i] ^ (unsigned)(unsigned char)secret[n_secret ? i % n_secret : 0];
    return diff == 0;
}

bool xpl_rpc_server_authorized(struct xpl_rpc_server *s, xpl_str_t header) {
    const xpl_str_t scheme = XPL_STR("Bearer ");
    pthread_mutex_lock(&s->mu);
    const bool ok = s->n_token == 0 || (xpl_str_starts(header, scheme) &&
                                        same_secret(s->token, s->n_token, header.ptr + scheme.len,
                                                    header.len - scheme.len));
    pthread_mutex_unlock(&s->mu);
    return ok;
}

xpl_status_t xpl_rpc_server_set_token(struct xpl_rpc_server *s, xpl_str_t token,
                                      struct xpl_error *err) {
    if (token.len && !s->has_token)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "a token cannot be introduced while running: restart the daemon");
    char *const copy = xpl_sys_alloc(token.len + 1);
    if (!copy) XPL_RETURN_OOM(err, "token");
    if (token.len) memcpy(copy, token.ptr, token.len);
    copy[token.len] = '\0';
    pthread_mutex_lock(&s->mu);
    char *const old = s->token;
    s->token = copy, s->n_token = token.len;
    pthread_mutex_unlock(&s->mu);
    if (old) explicit_bzero(old, strlen(old));
    xpl_sys_free(old);
    return XPL_OK;
}
