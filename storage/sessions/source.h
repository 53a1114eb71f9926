// SPDX-License-Identifier: Apache-2.0
// The bytes of one host: a profile file mapped for reading, with a check whether the file stayed
// unchanged meanwhile.
//
// A program may still write, truncate or replace the file while it is mapped.  Reading a page that
// the file no longer has raises SIGBUS; the handler installed here maps zero pages there and marks
// the source truncated, so the reader continues, reads zeros, and learns from xpl_source_verify()
// that its result is invalid.  Any number of threads may read the bytes of one source.
#ifndef XPL_STORAGE_SESSIONS_SOURCE_H_
#define XPL_STORAGE_SESSIONS_SOURCE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

// Two inspections of a file with equal fingerprints find the same bytes.  Times are nanoseconds
// since 1970.
struct xpl_fingerprint {
    uint64_t dev, ino, size;
    int64_t mtime_ns, ctime_ns;
};

bool xpl_fingerprint_eq(const struct xpl_fingerprint *a, const struct xpl_fingerprint *b);

struct xpl_source;

// Maps `path`, taken from the directory `dirfd` (AT_FDCWD: the working directory; absolute paths
// are used as they are).  Symbolic links are followed.  Never give it a path made by a client:
// hosts of LOGDIR are opened by xpl_snapshot_open() of catalogue.h.
// `max_bytes` 0 means no limit but the address space.  An empty file gives empty bytes.
// Fails, each with a sentence that names the file: NOT_FOUND, PERMISSION_DENIED,
// FAILED_PRECONDITION (no regular file), RESOURCE_EXHAUSTED (larger than max_bytes, no memory, no
// descriptor, XPL_SOURCE_MAX_OPEN sources open), INTERNAL.
// A file whose last change is less than 10 ms old is checked again after at most 20 ms: a further
// change in the same tick of the clock would leave no trace in its times.
#define XPL_SOURCE_MAX_OPEN 4096
xpl_status_t xpl_source_open(int dirfd, const char *path, uint64_t max_bytes,
                             struct xpl_source **ret, struct xpl_error *err) XPL_NODISCARD;
// Like xpl_source_open, but the file must be located below `root` (an absolute path without links
// in it), links followed: PERMISSION_DENIED otherwise.  root NULL: anywhere.
xpl_status_t xpl_source_open_inside(int dirfd, const char *path, const char *root,
                                    uint64_t max_bytes, struct xpl_source **ret,
                                    struct xpl_error *err) XPL_NODISCARD;
// A file of this program, which is replaced but never changed: it is not checked again.
xpl_status_t xpl_source_open_own(const char *path, struct xpl_source **ret, struct xpl_error *err)
    XPL_NODISCARD;
// A local copy of an object, of the same length: `fd` is a file that no process changes; the source
// takes it over, also on failure.  `path` and the fingerprint `as` identify the source.
xpl_status_t xpl_source_open_copy(int fd, const char *path, const struct xpl_fingerprint *as,
                                  struct xpl_source **ret, struct xpl_error *err) XPL_NODISCARD;
// One more owner: each frees it once.  Any thread.
struct xpl_source *xpl_source_ref(struct xpl_source *s);
// Unmaps and frees with the last owner; the bytes may not be read any more.  NULL is fine.
void xpl_source_free(struct xpl_source *s);

// Borrowed until xpl_source_free().  Never NULL.  As long as the file when it was opened.
xpl_bytes_t xpl_source_bytes(const struct xpl_source *s);
// Hides the first `n` bytes from readers.  Only for the opener, before other threads have it.
void xpl_source_skip(struct xpl_source *s, size_t n);
// Releases the pages that n bytes at p of a source cover completely: later reads load them from the
// file again.  Any thread.
void xpl_source_release(const void *p, size_t n);
// Copies n bytes from `offset` on, without touching a page of the mapping: cheaper where few bytes
// of many pages are needed.  False when they are not there to be read.  Any thread.
bool xpl_source_read(const struct xpl_source *s, uint64_t offset, void *ret, size_t n);
// As it was when the file was opened.
const struct xpl_fingerprint *xpl_source_fingerprint(const struct xpl_source *s);
// False when the file system's clock is so coarse (whole seconds) that a change could go unseen:
// the result may be handed out, but must not be kept under this fingerprint.
bool xpl_source_is_stable(const struct xpl_source *s);
// True once a reader met a page that the file had lost.  Cheap: long readers may call it often, and
// stop.
bool xpl_source_is_truncated(const struct xpl_source *s);
// Call it after the last read of the bytes: OK, or ABORTED with a sentence ("truncated", "changed")
// that names the file.  Results from the bytes may be used only after an OK.  Any thread.
xpl_status_t xpl_source_verify(const struct xpl_source *s, struct xpl_error *err) XPL_NODISCARD;

#endif
