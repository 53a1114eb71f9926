// SPDX-License-Identifier: Apache-2.0
// Content ids of local files: profile ids (storage/store/profile_id.h).
//
// The id is the 128-bit XXH3 of the content, keyed by the store's secret.  It is cached by the
// file's fingerprint, in memory and in the store, so that a file is hashed once.  Equal ids mean
// equal bytes: the owner of an id may use all results that the store has under it.
//
// A file without a cached id is hashed before an answer only when that can pay
// (xpl_identity_must_hash_first), otherwise when a result from it is stored.
//
// Threads: any, at any time.  Nothing is logged.
#ifndef XPL_STORAGE_SESSIONS_IDENTITY_H_
#define XPL_STORAGE_SESSIONS_IDENTITY_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "storage/sessions/source.h"
#include "storage/store/profile_id.h"

struct xpl_identity;
struct xpl_store;

// `store` outlives it; one that is not in use (role OFF) still gives a secret, and then ids are
// remembered as long as the process lives.  RESOURCE_EXHAUSTED.
xpl_status_t xpl_identity_new(struct xpl_store *store, struct xpl_identity **ret,
                              struct xpl_error *err) XPL_NODISCARD;
// Drops unsaved ids.  NULL is fine.
void xpl_identity_free(struct xpl_identity *i);

// The id of the file's bytes, if it is cached.  Reads the store when memory does not have it.
bool xpl_identity_lookup(struct xpl_identity *i, const struct xpl_fingerprint *file,
                         struct xpl_profile_id *ret);
// The same from memory, without a query.
bool xpl_identity_recall(struct xpl_identity *i, const struct xpl_fingerprint *file,
                         struct xpl_profile_id *ret);
// Looks up the files that are not `known` yet: sets known[i] and ret[i] for each file with a cached
// id.  Sends one query to a store that daemons share.
void xpl_identity_lookup_many(struct xpl_identity *i, const struct xpl_fingerprint *const *files,
                              size_t n, struct xpl_profile_id *ret, bool *known);
// Caches the ids in the store, the newest first, so that lookups need not query it.  Reads the
// store for up to 0.1 s: for a thread that no request waits for.
void xpl_identity_preload(struct xpl_identity *i);
// Whether the store knows a profile of this size in bytes: a file of this size that lookup does
// not know may be a copy of it.
bool xpl_identity_must_hash_first(struct xpl_identity *i, uint64_t size);

// Hashes the bytes of `source`, and caches the id unless the file system's clock is too coarse for
// that (xpl_source_is_stable).  The file is verified before and after: ABORTED when it changed,
// with the sentence of xpl_source_verify.  `cancelled` (may be NULL) is called every few megabytes:
// CANCELLED.
xpl_status_t xpl_identity_hash(struct xpl_identity *i, const struct xpl_source *source,
                               bool (*cancelled)(void *arg), void *arg, struct xpl_profile_id *ret,
                               struct xpl_error *err) XPL_NODISCARD;
// lookup, else hash if the store knows a profile of the file's size: *ret_known tells whether *ret
// is the id.  A file whose clock is too coarse stays unknown.  Fails as xpl_identity_hash.
xpl_status_t xpl_identity_find(struct xpl_identity *i, const struct xpl_source *source,
                               bool (*cancelled)(void *arg), void *arg, bool *ret_known,
                               struct xpl_profile_id *ret, struct xpl_error *err) XPL_NODISCARD;
// Remembers an id that came from elsewhere.  The fingerprint must be one whose file cannot change
// unseen.
void xpl_identity_remember(struct xpl_identity *i, const struct xpl_fingerprint *file,
                           const struct xpl_profile_id *id);

// `notify` is called whenever an id is cached that the store does not have yet; it must not call
// anything here.  NULL: none.  Once this returns, the old one is not called any more.
void xpl_identity_set_notify(struct xpl_identity *i, void (*notify)(void *arg), void *arg);
// Whether some cached id is not in the store yet.  Cheap.
bool xpl_identity_is_unsaved(const struct xpl_identity *i);
// Writes these ids to the store: for the thread that writes to it, outside of transactions.  A file
// whose id cannot be written is hashed again one day.
void xpl_identity_save(struct xpl_identity *i);

#endif
