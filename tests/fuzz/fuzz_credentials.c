// SPDX-License-Identifier: Apache-2.0
// Answers of services and files with credentials: accepted ones have keys or a token that a header
// may have, and an end; the error for others repeats none of the input.
#include "storage/objects/credentials/answers.h"
#include "storage/objects/credentials/assertion.h"
#include "storage/objects/credentials/issuer.h"

#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_plain(const char *text) {
    for (; *text; text++)
        if (*text <= ' ' || *text > '~') return false;
    return true;
}

static void check_taken(const struct xpl_credential *got) {
    if (got->kind == XPL_CREDENTIAL_KEYS)
        CHECK(got->access[0] && got->secret[0]);
    else
        CHECK(got->kind == XPL_CREDENTIAL_BEARER && got->token[0]);
    CHECK(is_plain(got->access) && is_plain(got->secret) && is_plain(got->token));
}

// Sentences of ours are words: no 32 bytes without a blank of the text are in them.
static void check_sentence(const struct xpl_error *err, const char *text, size_t n) {
    CHECK(err->msg[0]);
    for (size_t i = 0, k; i + 32 <= n; i += 32) {
        char part[33];
        for (k = 0; k < 32 && text[i + k] > ' ' && text[i + k] <= '~'; k++)
            part[k] = text[i + k];
        part[k] = 0;
        CHECK(k < 32 || !strstr(err->msg, part));
    }
}

static void check_one(xpl_status_t st, const struct xpl_credential *got, xpl_str_t text,
                      const struct xpl_error *err) {
    if (st == XPL_OK)
        check_taken(got);
    else
        check_sentence(err, text.ptr, text.len);
}

static void check_url(xpl_str_t text) {
    static const char *const hosts[] = {"169.254.170.2", NULL};
    char url[300];
    bool direct = false;
    (void)snprintf(url, sizeof url, "%.*s", text.len < 280 ? (int)text.len : 280, text.ptr);
    if (!xpl_issuer_is_safe_url(url, hosts, &direct)) return;
    CHECK(strncmp(url, "https://", 8) == 0 || (direct && strncmp(url, "http://", 7) == 0));
    CHECK(is_plain(url) && !strchr(url, '\\') && !strchr(url, '#'));
}

// A token that an account's key signs has only characters of a form.
static void check_key_file(const struct xpl_answer_google *of, xpl_str_t text) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf jwt = xpl_buf_of(64 << 10);
    struct xpl_error why = {0};
    const struct xpl_assertion a = {of->key, of->key_id, of->client, of->token_uri, "scope", 1};
    if (xpl_assertion_put(&a, &jwt, &why) == XPL_OK) {
        xpl_buf_putc(&jwt, 0);
        CHECK(!jwt.failed && is_plain((char *)jwt.p) && jwt.n > 300);
    } else {
        check_sentence(&why, text.ptr, text.len);
    }
}

static void check_google(xpl_str_t text) {
    struct xpl_answer_google of;
    struct xpl_error why = {0};
    if (xpl_answer_google(text, &of, &why) != XPL_OK) {
        check_sentence(&why, text.ptr, text.len);
        return;
    }
    CHECK(is_plain(of.client) && is_plain(of.token_uri) && of.client[0]);
    if (of.type == XPL_ANSWER_KEY) {
        CHECK(is_plain(of.key_id) && of.key[0] && !of.secret[0]);
        check_key_file(&of, text);
    } else {
        CHECK(is_plain(of.secret) && is_plain(of.refresh) && of.refresh[0] && !of.key[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const xpl_str_t text = {(const char *)data, size};
    for (unsigned i = 0; i < 4; i++) {
        struct xpl_credential got = {.kind = XPL_CREDENTIAL_NONE};
        struct xpl_error err = {0};
        int64_t expires_ns = 0;
        xpl_status_t st;
        if (i == 0)
            st = xpl_answer_keys(text, &got, &expires_ns, &err);
        else if (i == 1)
            st = xpl_answer_sts(text, &got, &expires_ns, &err);
        else if (i == 2)
            st = xpl_answer_bearer(text, 1, &got, &expires_ns, &err);
        else
            st = xpl_answer_profile(text, XPL_STR("default"), &got, &err);
        check_one(st, &got, text, &err);
        CHECK(st != XPL_OK || i == 3 || expires_ns > 0);
    }
    check_google(text);
    check_url(text);
    return 0;
}
