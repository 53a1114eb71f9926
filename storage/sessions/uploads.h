// SPDX-License-Identifier: Apache-2.0
// Files of uploads that are not complete, in a directory of the daemon's own: kept for a day, so
// that an upload that broke off goes on where it ended.  Any thread.
#ifndef XPL_STORAGE_SESSIONS_UPLOADS_H_
#define XPL_STORAGE_SESSIONS_UPLOADS_H_

#include <stdint.h>

#include "base/status.h"

// Makes the directory if it is missing (an upload reports what fails), and removes the files that
// were last written more than `keep_s` seconds ago.
void xpl_uploads_sweep(const char *dir, int64_t keep_s);
// Opens the file of the upload `key` for reading and writing, and makes it when there is none.
// ABORTED: another upload has it open; RESOURCE_EXHAUSTED: full disk; UNAVAILABLE.
xpl_status_t xpl_upload_open(const char *dir, uint64_t key, int *ret_fd, struct xpl_error *err)
    XPL_NODISCARD;
// Nothing when there is none.
void xpl_upload_remove(const char *dir, uint64_t key);

#endif
