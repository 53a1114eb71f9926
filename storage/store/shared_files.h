// SPDX-License-Identifier: Apache-2.0
// Files that other programs read: whoever is told a file's path opens it by itself, so it appears
// whole, may be read by a group, and stays for a while.
//
// Threads: any, at any time.  Nothing is logged.
#ifndef XPL_STORAGE_STORE_SHARED_FILES_H_
#define XPL_STORAGE_STORE_SHARED_FILES_H_

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/str.h"

struct xpl_shared_files;

// Makes `dir`, with its parents, when it is missing.  The names of all its files begin with
// `prefix` and end with `suffix` (".op_stats_v2.pb"), which are kept; others are never removed.
// `group` may read the directory and its files; (gid_t)-1: nobody but this user.
// FAILED_PRECONDITION, with a sentence that begins with the path: it cannot be made or given to the
// group, it belongs to another user, or (xpl_own_dir_open) others could have made what it lies in;
// RESOURCE_EXHAUSTED.
xpl_status_t xpl_shared_files_new(const char *dir, const char *prefix, const char *suffix,
                                  gid_t group, struct xpl_shared_files **ret, struct xpl_error *err)
    XPL_NODISCARD;
// The files stay.  NULL is fine.
void xpl_shared_files_free(struct xpl_shared_files *f);
// The directory's absolute path, without links where it can be resolved.
const char *xpl_shared_files_get_dir(const struct xpl_shared_files *f);
// The absolute path of file `name`, in *ret, which is returned.
struct xpl_shared_files_path {
    char text[PATH_MAX + 256];
};
const char *xpl_shared_files_path_of(const struct xpl_shared_files *f, const char *name,
                                     struct xpl_shared_files_path *ret);
// Writes a file, in place of one of this name, which stays as it is for whoever has it open.
// RESOURCE_EXHAUSTED.
xpl_status_t xpl_shared_files_put(struct xpl_shared_files *f, const char *name, xpl_bytes_t bytes,
                                  struct xpl_error *err) XPL_NODISCARD;
// Removes the files that were written more than `keep_s` seconds ago, and what a crash left.
void xpl_shared_files_sweep(struct xpl_shared_files *f, int64_t keep_s);

#endif
