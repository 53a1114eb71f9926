// SPDX-License-Identifier: Apache-2.0
// Products that reside in files (trace indexes): handed to a thread of their own, which writes them
// to the store's files (storage/store/files.h), under the profile's id.  What a power cut leaves of
// one is found out by its checksums, removed and made again, as any damage is.
#ifndef XPL_SERVER_ENGINE_INDEX_FILES_H_
#define XPL_SERVER_ENGINE_INDEX_FILES_H_

#include "server/engine/products.h"
#include "storage/store/profile_id.h"

struct xpl_index_files;

// `dir` is DIR, in which "traces" is made; NULL or "", or one that cannot be written: nothing is
// kept.  `limit_bytes` bounds all files together.  `identity` outlives it.  NULL when out of
// memory.
struct xpl_index_files *xpl_index_files_new(const char *dir, uint64_t limit_bytes,
                                            struct xpl_identity *identity);
// Writes what is queued first.  NULL is fine.
void xpl_index_files_free(struct xpl_index_files *f);
bool xpl_index_files_enabled(const struct xpl_index_files *f);
// At the end: returns when all that was queued has been written.  Profiles are hashed for 3 s at
// most; what is not by then is not kept.
void xpl_index_files_drain(struct xpl_index_files *f);

struct xpl_index_file_key {
    const struct xpl_profile_id *profile;
    const struct xpl_product *product;
    unsigned variant;
    const struct xpl_format *format; // of the profile's file
};
// Maps the file of a profile, and notes its use.  NOT_FOUND when there is none.
xpl_status_t xpl_index_files_open(struct xpl_index_files *f, const struct xpl_index_file_key *k,
                                  struct xpl_source **ret) XPL_NODISCARD;
void xpl_index_files_remove(struct xpl_index_files *f, const struct xpl_index_file_key *k);

struct xpl_index_file_save {
    // Referenced until `done` has returned.  Its `profile` is hashed if its id is not known yet.
    struct xpl_product_handle *handle;
    // Called once, on the saver's thread: the file is there, or it could not be written.
    void (*done)(void *manager, void *build, bool ok);
    void *manager, *build;
};
// Queues a file.  False when it is not taken: one may always wait, more while they are small, as
// the disk may be slower than the requests.  `done` is then not called.
bool xpl_index_files_save(struct xpl_index_files *f, const struct xpl_index_file_save *s);

#endif
