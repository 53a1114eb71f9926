// SPDX-License-Identifier: Apache-2.0
#include "rpc/credentials.h"

#include <string.h>

#include "base/arena.h"
#include "rpc/impl.h"

struct token {
    struct xpl_rpc_identity identity;
    xpl_str_t secret; // in `text`
};

struct xpl_rpc_tokens {
    struct token v[XPL_RPC_TOKENS_MOST];
    size_t n, n_text;
    char text[]; // a copy of the file
};

const char *xpl_rpc_role_name(enum xpl_rpc_role role) {
    static const char *const names[] = {"none", "read", "capture", "admin"};
    return names[role];
}

// ---- the file ----

static xpl_str_t next_word(xpl_str_t *line) {
    size_t from = 0, to;
    while (from < line->len && strchr(" \t\r", line->ptr[from]))
        from++;
    for (to = from; to < line->len && !strchr(" \t\r", line->ptr[to]);)
        to++;
    const xpl_str_t word = xpl_str_sub(*line, from, to - from);
    *line = xpl_str_sub(*line, to, SIZE_MAX);
    return word;
}

static xpl_status_t read_role(xpl_str_t word, bool first, int line, enum xpl_rpc_role *ret,
                              struct xpl_error *err) {
    *ret = XPL_RPC_ROLE_ADMIN;
    if (!word.len && first) return XPL_OK;
    for (*ret = XPL_RPC_ROLE_READ; *ret <= XPL_RPC_ROLE_ADMIN; (*ret)++)
        if (xpl_str_eq(word, xpl_str_from(xpl_rpc_role_name(*ret)))) return XPL_OK;
    if (!word.len)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "line %d: a role is missing after the token: read, capture or admin",
                         line);
    // Not shown: where words are in another order, it is a token.
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                     "line %d: the word after the token is not a role (read, capture or admin)",
                     line);
}

static bool is_name(xpl_str_t name) {
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        const bool alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alphanumeric && (!c || !strchr("._-@", c))) return false;
    }
    return name.len < XPL_RPC_NAME_SIZE;
}

static bool has_secret(const struct xpl_rpc_tokens *t, xpl_str_t secret) {
    for (size_t i = 0; i < t->n; i++)
        if (xpl_str_eq(t->v[i].secret, secret)) return true;
    return false;
}

static xpl_status_t read_line(struct xpl_rpc_tokens *t, xpl_str_t text, int line,
                              struct xpl_error *err) {
    struct token one = {.secret = next_word(&text)};
    if (!one.secret.len || one.secret.ptr[0] == '#') return XPL_OK;
    XPL_TRY(read_role(next_word(&text), t->n == 0, line, &one.identity.role, err));
    xpl_str_t name = next_word(&text);
    if (next_word(&text).len || !is_name(name))
        XPL_RETURN_ERROR(
            err, XPL_INVALID_ARGUMENT,
            "line %d: after the role, one name of up to %d letters, digits and . _ - @", line,
            XPL_RPC_NAME_SIZE - 1);
    if (!name.len) name = xpl_str_from(xpl_rpc_role_name(one.identity.role));
    if (t->n == XPL_RPC_TOKENS_MOST)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "line %d: more than %d tokens", line,
                         XPL_RPC_TOKENS_MOST);
    if (has_secret(t, one.secret))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "line %d: the token is there twice", line);
    memcpy(one.identity.name, name.ptr, name.len);
    t->v[t->n++] = one;
    return XPL_OK;
}

xpl_status_t xpl_rpc_tokens_parse(xpl_str_t text, struct xpl_rpc_tokens **ret,
                                  struct xpl_error *err) {
    struct xpl_rpc_tokens *const t = xpl_sys_alloc(sizeof *t + text.len);
    xpl_status_t st = XPL_OK;
    if (!t) XPL_RETURN_OOM(err, "tokens");
    t->n = 0;
    t->n_text = text.len;
    if (text.len) memcpy(t->text, text.ptr, text.len);
    xpl_str_t rest = {t->text, text.len};
    for (int line = 1; st == XPL_OK && rest.len; line++) {
        const size_t end = xpl_str_find(rest, XPL_STR("\n"), 0);
        st = read_line(t, xpl_str_sub(rest, 0, end), line, err);
        rest = end == SIZE_MAX ? (xpl_str_t){0} : xpl_str_sub(rest, end + 1, SIZE_MAX);
    }
    if (st == XPL_OK) *ret = t->n ? t : NULL;
    if (st != XPL_OK || !t->n) xpl_rpc_tokens_free(t);
    return st;
}

void xpl_rpc_tokens_free(struct xpl_rpc_tokens *t) {
    if (t) explicit_bzero(t->text, t->n_text);
    xpl_sys_free(t);
}

// ---- who ----

// The time does not depend on where the difference is.
static bool same_secret(xpl_str_t secret, xpl_str_t given) {
    volatile unsigned diff = (unsigned)(secret.len != given.len);
    for (size_t i = 0; i < given.len; i++)
        diff |= (unsigned char)given.ptr[i] ^ (unsigned)(unsigned char)secret.ptr[i % secret.len];
    return diff == 0;
}

bool xpl_rpc_tokens_find(const struct xpl_rpc_tokens *t, xpl_str_t given,
                         struct xpl_rpc_identity *ret) {
    *ret = (struct xpl_rpc_identity){.role = t ? XPL_RPC_ROLE_NONE : XPL_RPC_ROLE_ADMIN};
    for (size_t i = 0; t && i < t->n; i++)
        if (same_secret(t->v[i].secret, given)) *ret = t->v[i].identity;
    return ret->role != XPL_RPC_ROLE_NONE;
}

bool xpl_rpc_server_identify(struct xpl_rpc_server *s, xpl_str_t header,
                             struct xpl_rpc_identity *ret) {
    const xpl_str_t scheme = XPL_STR("Bearer ");
    const bool has = xpl_str_starts(header, scheme);
    pthread_mutex_lock(&s->mu);
    const bool ok = xpl_rpc_tokens_find(
        s->tokens, has ? xpl_str_sub(header, scheme.len, SIZE_MAX) : (xpl_str_t){0}, ret);
    pthread_mutex_unlock(&s->mu);
    return ok;
}

xpl_status_t xpl_rpc_server_set_tokens(struct xpl_rpc_server *s, xpl_str_t text,
                                       struct xpl_error *err) {
    struct xpl_rpc_tokens *tokens = NULL;
    XPL_TRY(xpl_rpc_tokens_parse(text, &tokens, err));
    if (tokens && !s->has_token) {
        xpl_rpc_tokens_free(tokens);
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "a token cannot be introduced while running: restart the daemon");
    }
    pthread_mutex_lock(&s->mu);
    struct xpl_rpc_tokens *const old = s->tokens;
    s->tokens = tokens;
    pthread_mutex_unlock(&s->mu);
    xpl_rpc_tokens_free(old);
    return XPL_OK;
}
