// SPDX-License-Identifier: Apache-2.0
// Local copies of objects: files in a directory of bounded size.
//
// A copy is written under a name of its own and renamed when it is whole.  Whoever has one open
// holds a shared lock (flock) on it, and what is locked is not evicted, by this process or another.
// The limit is kept by each process; where several write, the directory may be a sixteenth of it
// larger for each, as copies of others are counted now and then.
// Copies of an earlier boot are removed: after a power cut a file may have its length, and not its
// bytes, and writing through to the disk would cost as much as fetching.
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

// A descriptor of the copy, locked; closing it ends the lock.  When there is none `fill` writes it,
// once for all who ask meanwhile: they wait, and one of them tries when it failed.  Fails as `fill`
// does; RESOURCE_EXHAUSTED when there is no room, UNAVAILABLE when the directory cannot be used, or
// the wait was too long.
xpl_status_t xpl_copies_get(struct xpl_copies *c, const struct xpl_copy_key *key,
                            xpl_status_t (*fill)(void *arg, int fd, struct xpl_error *err),
                            void *arg, int *ret_fd, struct xpl_error *err) XPL_NODISCARD;

#endif
