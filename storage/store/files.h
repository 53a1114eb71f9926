// SPDX-License-Identifier: Apache-2.0
// Results that are too large for the database: files of one directory, mapped while they are used
// and evicted by bytes, the least recently used first.
//
// A file is named by the profile, the kind and the version, and begins with them: a renamed or
// copied file is not mistaken for another profile's.  It is written under a unique temporary name
// (several daemons may share the directory) and renamed, and not synced: a reader checks its
// content, and removes a damaged file.
//
// Threads: any, at any time.  Nothing is logged.
#ifndef XPL_STORAGE_STORE_FILES_H_
#define XPL_STORAGE_STORE_FILES_H_

#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "storage/sessions/source.h"
#include "storage/store/profile_id.h"

struct xpl_store_files;

struct xpl_store_file_key {
    struct xpl_profile_id profile;
    const char *kind; // product; letters, digits and '_'
    uint32_t version; // of the product
    uint16_t variant; // of the product
    uint16_t import;  // version of what read the profile's file; 0: the file is the profile
};

// Makes `dir` when it is missing, and evicts.  `limit_bytes` 0: no limit.  UNAVAILABLE when it
// cannot be written, RESOURCE_EXHAUSTED, INVALID_ARGUMENT.
xpl_status_t xpl_store_files_new(const char *dir, uint64_t limit_bytes,
                                 struct xpl_store_files **ret, struct xpl_error *err) XPL_NODISCARD;
// NULL is fine.
void xpl_store_files_free(struct xpl_store_files *f);

// Maps the file, and notes its use.  Fails as xpl_source_open(); NOT_FOUND when there is none;
// DATA_LOSS when it is not what its name says (it is removed).
xpl_status_t xpl_store_files_open(struct xpl_store_files *f, const struct xpl_store_file_key *key,
                                  struct xpl_source **ret, struct xpl_error *err) XPL_NODISCARD;
// Writes the file, replacing an older one, which stays unchanged for processes that have it mapped;
// then evicts.  RESOURCE_EXHAUSTED (disk full, larger than the limit), UNAVAILABLE.
xpl_status_t xpl_store_files_put(struct xpl_store_files *f, const struct xpl_store_file_key *key,
                                 xpl_bytes_t bytes, struct xpl_error *err) XPL_NODISCARD;
// Nothing when there is none.
void xpl_store_files_remove(struct xpl_store_files *f, const struct xpl_store_file_key *key);

#endif
