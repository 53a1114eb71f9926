// SPDX-License-Identifier: Apache-2.0
// Which bytes a file holds: profile ids of local files (storage/store/profile_id.h).
//
// The id is the 128-bit XXH3 of the content, keyed by the store's secret.  It is remembered by
// the file's fingerprint, in memory and in the store, so that a file is hashed once.  Whoever
// has an id may use what the store keeps under it, for the bytes are the same.
//
// A file that nothing is remembered of is hashed before an answer only when that can pay
// (xpl_identity_must_hash_first), else by whoever stores what was made from it.
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
// What was not saved is forgotten.  NULL is fine.
void xpl_identity_free(struct xpl_identity *i);

// The id of the file's bytes, if it is remembered.  Reads the store when memory does not know.
bool xpl_identity_lookup(struct xpl_identity *i, const struct xpl_fingerprint *file,
                         struct xpl_profile_id *ret);
// Of many files those that are not `known` yet: each that is remembered is known then, with ret[i]
// its id.  A store that daemons share is asked once.
void xpl_identity_lookup_many(struct xpl_identity *i, const struct xpl_fingerprint *const *files,
                              size_t n, struct xpl_profile_id *ret, bool *known);
// Takes over what the store remembers, the newest first, so that lookups need not ask it.  Reads
// the store for up to 0.1 s: for a thread on which nobody waits.
void xpl_identity_preload(struct xpl_identity *i);
// Whether the store knows a profile of this size in bytes: a file of this size that lookup does
// not know may be a copy of it.
bool xpl_identity_must_hash_first(struct xpl_identity *i, uint64_t size);

// Hashes the bytes of `source`, and remembers the id unless the file system's clock is too coarse
// for that (xpl_source_is_stable).  The file is verified before and after: ABORTED when it
// changed, with the sentence of xpl_source_verify.  `cancelled` (may be NULL) is asked every few
// megabytes: CANCELLED.
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

// `notify` is called whenever something is remembered that the store has not got yet; it must not
// call anything here.  NULL: nobody is told.  Once this returns the old one is not called any more.
void xpl_identity_set_notify(struct xpl_identity *i, void (*notify)(void *arg), void *arg);
// Whether something is remembered that the store has not got yet.  Cheap.
bool xpl_identity_is_unsaved(const struct xpl_identity *i);
// Writes that to the store: for the thread that writes to it, outside of transactions.  What cannot
// be written is hashed again one day.
void xpl_identity_save(struct xpl_identity *i);

#endif
