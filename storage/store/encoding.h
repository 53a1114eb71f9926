// SPDX-License-Identifier: Apache-2.0
// Encoding of the keys of results and files in stores.  Stable forever: databases contain it.
#ifndef XPL_STORAGE_STORE_ENCODING_H_
#define XPL_STORAGE_STORE_ENCODING_H_

#include "storage/store/store.h"

struct xpl_buf;
struct xpl_session;

enum { XPL_STORE_FINGERPRINT = 40 };

// The key as bytes, in a buffer that this initialises: equal keys give equal bytes, different keys
// different ones.  False when it is too long or memory is out; the buffer is to be freed anyway.
bool xpl_store_key_bytes(const struct xpl_store_key *key, struct xpl_buf *ret);
// Over key, data and meta, so that bytes that belong to another key do not pass either.
int64_t xpl_store_checksum(xpl_bytes_t key, xpl_bytes_t data, xpl_bytes_t meta);
// As it is written in databases.
xpl_str_t xpl_store_kind_name(enum xpl_store_kind kind);
// The key of a file in databases.
void xpl_store_fingerprint_bytes(const struct xpl_fingerprint *file,
                                 uint8_t out[XPL_STORE_FINGERPRINT]);
struct xpl_fingerprint xpl_store_fingerprint_from(const uint8_t bytes[XPL_STORE_FINGERPRINT]);
// Of what the tables hold of a session, so that an unchanged one is not written again.
int64_t xpl_store_session_digest(const struct xpl_session *se);

#endif
