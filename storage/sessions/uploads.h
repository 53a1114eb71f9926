// SPDX-License-Identifier: Apache-2.0
// Files of uploads that are not complete, in a directory of the daemon's own: kept for a day, so
// that an upload that broke off goes on where it ended, and only as long as all together are within
// a limit.  Of those that no upload goes on with the oldest go first.  Any thread.
#ifndef XPL_STORAGE_SESSIONS_UPLOADS_H_
#define XPL_STORAGE_SESSIONS_UPLOADS_H_

#include <stdint.h>

#include "base/status.h"

enum { XPL_UPLOADS_MAX_FILES = 4096 };

struct xpl_uploads;

// Makes the directory if it is missing (an upload reports errors).  `limit_bytes`: of all files.
// NULL when out of memory.
struct xpl_uploads *xpl_uploads_new(const char *dir, uint64_t limit_bytes);
// No upload may be open.  The files stay.  NULL is fine.
void xpl_uploads_free(struct xpl_uploads *u);
// Removes the files that were last written more than `keep_s` seconds ago, but for those in use.
void xpl_uploads_sweep(struct xpl_uploads *u, int64_t keep_s);

// Opens the file of the upload `key` for reading and writing, and makes it when there is none. From
// then on it is in use, until xpl_upload_release.  The descriptor is the caller's to close, at any
// time.  ABORTED: another upload uses it; RESOURCE_EXHAUSTED: full disk, or too many files;
// UNAVAILABLE.
xpl_status_t xpl_upload_open(struct xpl_uploads *u, uint64_t key, int *ret_fd,
                             struct xpl_error *err) XPL_NODISCARD;
// The same of one in use, whose descriptor was closed.  ABORTED: another daemon has it now.
xpl_status_t xpl_upload_open_again(struct xpl_uploads *u, uint64_t key, int *ret_fd,
                                   struct xpl_error *err) XPL_NODISCARD;
// Before its file grows to `bytes`: makes room.  RESOURCE_EXHAUSTED when there is none.
xpl_status_t xpl_upload_grow(struct xpl_uploads *u, uint64_t key, uint64_t bytes,
                             struct xpl_error *err) XPL_NODISCARD;
// Removes the file of one in use.
void xpl_upload_remove(struct xpl_uploads *u, uint64_t key);
// It is not in use any more.
void xpl_upload_release(struct xpl_uploads *u, uint64_t key);

#endif
