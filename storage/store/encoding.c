// SPDX-License-Identifier: Apache-2.0
#include "storage/store/encoding.h"

#include "base/buf.h"
#include "storage/hash.h"
#include "storage/sessions/catalogue.h"

enum { MAX_KEY = 64 << 20 };

static void put_le(struct xpl_buf *b, uint64_t v, size_t bytes) {
    uint8_t out[8];
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(v >> (8 * i));
    xpl_buf_put(b, out, bytes);
}

static void put_str(struct xpl_buf *b, xpl_str_t s) {
    put_le(b, s.len, 4);
    xpl_buf_str(b, s);
}

bool xpl_store_key_bytes(const struct xpl_store_key *key, struct xpl_buf *b) {
    xpl_buf_init(b, MAX_KEY);
    put_le(b, (uint64_t)key->kind, 1);
    put_le(b, key->version, 4);
    put_str(b, key->name);
    put_str(b, key->options);
    put_le(b, key->n_profiles, 4);
    for (size_t i = 0; i < key->n_profiles; i++)
        xpl_buf_put(b, key->profiles[i].bytes, sizeof key->profiles[i].bytes);
    put_le(b, key->hosts != NULL, 1);
    for (size_t i = 0; key->hosts && i < key->n_profiles; i++)
        put_str(b, key->hosts[i]);
    return !b->failed;
}

int64_t xpl_store_checksum(xpl_bytes_t key, xpl_bytes_t data, xpl_bytes_t meta) {
    return (int64_t)xpl_digest64(meta, xpl_digest64(data, xpl_digest64(key, 1)));
}

xpl_str_t xpl_store_kind_name(enum xpl_store_kind kind) {
    return kind == XPL_STORE_PRODUCT ? XPL_STR("product") : XPL_STR("answer");
}

void xpl_store_fingerprint_bytes(const struct xpl_fingerprint *p,
                                 uint8_t out[XPL_STORE_FINGERPRINT]) {
    const uint64_t v[5] = {p->dev, p->ino, p->size, (uint64_t)p->mtime_ns, (uint64_t)p->ctime_ns};
    for (size_t i = 0; i < XPL_STORE_FINGERPRINT; i++)
        out[i] = (uint8_t)(v[i / 8] >> (8 * (i % 8)));
}

struct xpl_fingerprint xpl_store_fingerprint_from(const uint8_t bytes[XPL_STORE_FINGERPRINT]) {
    uint64_t v[5] = {0};
    for (size_t i = 0; i < XPL_STORE_FINGERPRINT; i++)
        v[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));
    return (struct xpl_fingerprint){v[0], v[1], v[2], (int64_t)v[3], (int64_t)v[4]};
}

int64_t xpl_store_session_digest(const struct xpl_session *se) {
    uint64_t h = xpl_digest64((xpl_bytes_t){(const uint8_t *)se->path.ptr, se->path.len}, 3);
    h = xpl_digest64((xpl_bytes_t){(const uint8_t *)&se->captured_ns, sizeof se->captured_ns}, h);
    for (size_t i = 0; i < se->n_hosts; i++) {
        uint8_t fingerprint[XPL_STORE_FINGERPRINT];
        xpl_store_fingerprint_bytes(&se->hosts[i].fingerprint, fingerprint);
        h = xpl_digest64((xpl_bytes_t){fingerprint, sizeof fingerprint}, h);
        h = xpl_digest64(
            (xpl_bytes_t){(const uint8_t *)se->hosts[i].name.ptr, se->hosts[i].name.len}, h);
    }
    return (int64_t)h;
}
