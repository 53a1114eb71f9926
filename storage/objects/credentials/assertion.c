// SPDX-License-Identifier: Apache-2.0
#include "storage/objects/credentials/assertion.h"

#include <inttypes.h>

#include "base/json.h"
#include "base/text/base64.h"
#include "storage/objects/libs.h"

// Bits of a key: RFC 7518, 3.3; and the room for a file.
enum { MIN_BITS = 2048, MAX_BITS = 16384, GOOD_S = 3600, MAX_CLAIMS = 4096 };

// ---- signing ----

// Else libcrypto asks the terminal for it.
static int say_no_password(char *buf, int size, int writes, void *arg) {
    (void)buf;
    (void)size;
    (void)writes;
    (void)arg;
    return -1;
}

static EVP_PKEY *read_key(const struct xpl_crypto *c, const char *pem) {
    BIO *const text = c->BIO_new_mem_buf(pem, -1);
    EVP_PKEY *const key =
        text ? c->PEM_read_bio_PrivateKey(text, NULL, say_no_password, NULL) : NULL;
    (void)c->BIO_free(text);
    return key;
}

static bool sign(const struct xpl_crypto *c, EVP_PKEY *key, xpl_bytes_t text,
                 uint8_t ret[MAX_BITS / 8], size_t *ret_n) {
    EVP_MD_CTX *const with = c->EVP_MD_CTX_new();
    *ret_n = MAX_BITS / 8;
    const bool ok = with && c->EVP_DigestSignInit(with, NULL, c->EVP_sha256(), NULL, key) == 1 &&
                    c->EVP_DigestSign(with, ret, ret_n, text.ptr, text.len) == 1;
    c->EVP_MD_CTX_free(with);
    return ok;
}

// Appends the signature of the buffer's contents.
static xpl_status_t put_signature(const struct xpl_crypto *c, const char *pem, struct xpl_buf *ret,
                                  struct xpl_error *err) {
    uint8_t signature[MAX_BITS / 8];
    size_t n = 0;
    EVP_PKEY *const key = read_key(c, pem);
    const int bits = key ? c->EVP_PKEY_get_bits(key) : 0;
    const bool good =
        key && c->EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA && bits >= MIN_BITS && bits <= MAX_BITS;
    const bool is_signed = good && sign(c, key, (xpl_bytes_t){ret->p, ret->n}, signature, &n);
    c->EVP_PKEY_free(key);
    c->ERR_clear_error(); // gRPC's and libcurl's are on the same list
    if (!good)
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "private_key is not an RSA key of at least %d bits in PEM without a "
                         "password",
                         MIN_BITS);
    if (!is_signed) XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "private_key cannot sign");
    xpl_buf_putc(ret, '.');
    xpl_base64_put_url(ret, (xpl_bytes_t){signature, n});
    return XPL_OK;
}

// ---- the signed text ----

static void put_field(struct xpl_buf *b, const char *name, const char *value) {
    xpl_buf_putc(b, b->n ? ',' : '{');
    xpl_json_field(b, name, xpl_str_from(value));
}

static void put_head(const struct xpl_assertion *a, struct xpl_buf *b) {
    put_field(b, "alg", "RS256");
    put_field(b, "typ", "JWT");
    if (a->key_id[0]) put_field(b, "kid", a->key_id);
    xpl_buf_putc(b, '}');
}

static void put_claims(const struct xpl_assertion *a, struct xpl_buf *b) {
    put_field(b, "iss", a->issuer);
    put_field(b, "scope", a->scope);
    put_field(b, "aud", a->audience);
    xpl_buf_printf(b, ",\"iat\":%" PRId64 ",\"exp\":%" PRId64 "}", a->now_s, a->now_s + GOOD_S);
}

xpl_status_t xpl_assertion_put(const struct xpl_assertion *a, struct xpl_buf *ret,
                               struct xpl_error *err) {
    const struct xpl_crypto *c;
    struct xpl_buf head, claims;
    XPL_TRY(xpl_crypto_load(&c, err));
    xpl_buf_init(&head, MAX_CLAIMS);
    xpl_buf_init(&claims, MAX_CLAIMS);
    put_head(a, &head);
    put_claims(a, &claims);
    xpl_base64_put_url(ret, (xpl_bytes_t){head.p, head.n});
    xpl_buf_putc(ret, '.');
    xpl_base64_put_url(ret, (xpl_bytes_t){claims.p, claims.n});
    const bool failed = head.failed || claims.failed || ret->failed;
    xpl_buf_fini(&head);
    xpl_buf_fini(&claims);
    if (!failed) XPL_TRY(put_signature(c, a->key, ret, err));
    if (failed || ret->failed) XPL_RETURN_OOM(err, "credentials");
    return XPL_OK;
}
