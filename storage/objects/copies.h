// SPDX-License-Identifier: Apache-2.0
// Local copies of objects: files in a directory of bounded size.
//
// A copy is written under a temporary name and renamed when it is complete.  Users of a copy hold a
// shared lock (flock) on it, and locked copies are not evicted, by this process or another.  Each
// process enforces the limit; if several write, the directory can exceed it by a sixteenth for
// each, because copies of others are counted periodically.  Copies of an earlier boot are removed:
// after a power failure a file can have its length but not its bytes, and syncing to the disk would
// cost as much as fetching.
#ifndef XPL_STORAGE_OBJECTS_COPIES_H_
#define XPL_STORAGE_OBJECTS_COPIES_H_

#include <stdint.h>

#include "base/status.h"

struct xpl_copies;

struct xpl_copy_key {
    uint64_t id[2];
    uint64_t size;
};

// `dir` is made when it is missing.  `patience_ns`: how long a request waits for others that write
// the copy it needs.  UNAVAILABLE, RESOURCE_EXHAUSTED.
xpl_status_t xpl_copies_new(const char *dir, uint64_t limit_bytes, uint64_t patience_ns,
                            struct xpl_copies **ret, struct xpl_error *err) XPL_NODISCARD;
// Files stay.  NULL is fine.
void xpl_copies_free(struct xpl_copies *c);

// A descriptor of the copy, locked; closing it ends the lock.  If there is none, `fill` writes it,
// once for all concurrent callers: they wait, and if it fails, one of them retries.  Fails as
// `fill` does; RESOURCE_EXHAUSTED without room, UNAVAILABLE if the directory cannot be used, or the
// wait was too long.
xpl_status_t xpl_copies_get(struct xpl_copies *c, const struct xpl_copy_key *key,
                            xpl_status_t (*fill)(void *arg, int fd, struct xpl_error *err),
                            void *arg, int *ret_fd, struct xpl_error *err) XPL_NODISCARD;

#endif
