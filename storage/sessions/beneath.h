// SPDX-License-Identifier: Apache-2.0
// Opening directories where others may write as well: whoever may write below LOGDIR must not lead
// us out of it by a link, and whoever may write in /tmp must not offer us a directory.  Any thread.
#ifndef XPL_STORAGE_SESSIONS_BENEATH_H_
#define XPL_STORAGE_SESSIONS_BENEATH_H_

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Opens the directory `path` below the open directory `root` for reading.  `path` is relative,
// without ".." (EXDEV); "." is `root` itself.  -1 with errno: ELOOP or ENOTDIR when a component is
// a link or no directory.  By openat2, and where the kernel has none (5.5 and before, or a filter),
// component by component.
int xpl_beneath_open(int root, const char *path);
// The second of the two ways alone: for tests.
int xpl_beneath_walk(int root, const char *path);
// The same as a stream of entries; NULL with errno.
DIR *xpl_beneath_opendir(int root, const char *path);
// Removes the directory `path` if it is empty.  False with errno.  `root` itself is never removed
// (EBUSY).
bool xpl_beneath_rmdir(int root, const char *path);

// Opens the directory `path` for a process's own files, and makes it (with `mode`) and its parents
// when they are missing.  Below a directory in which everybody may write, such as /tmp, each
// further component has to be a directory of this user, no link, that nobody else may write: others
// could have made it before us, to have our files read or replaced.  -1 with errno: EPERM when one
// is not, and *ret_bad is its length in `path`.
int xpl_own_dir_open(const char *path, mode_t mode, size_t *ret_bad);

#endif
