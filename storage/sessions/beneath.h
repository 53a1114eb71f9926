// SPDX-License-Identifier: Apache-2.0
// Opens directories to which others may write as well: a user who may write below LOGDIR must not
// lead us out of it by a link, and a user who may write to /tmp must not substitute a directory.
// Any thread.
#ifndef XPL_STORAGE_SESSIONS_BENEATH_H_
#define XPL_STORAGE_SESSIONS_BENEATH_H_

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Opens the directory `path` below the open directory `root` for reading.  `path` is relative,
// without ".." (EXDEV); "." is `root` itself.  -1 with errno: ELOOP or ENOTDIR when a component is
// a link or not a directory.  Uses openat2 or, where the kernel does not have it (5.5 and before,
// or a filter), opens component by component.
int xpl_beneath_open(int root, const char *path);
// Always opens component by component: for tests.
int xpl_beneath_walk(int root, const char *path);
// Opens the directory as a stream of entries; NULL with errno.
DIR *xpl_beneath_opendir(int root, const char *path);
// Removes the directory `path` if it is empty.  False with errno.  `root` itself is never removed
// (EBUSY).
bool xpl_beneath_rmdir(int root, const char *path);

// Opens the directory `path` for a process's own files; creates it (with `mode`) and its parents
// when they are missing.  Below a world-writable directory, such as /tmp, each further component
// has to be a directory of this user, not a link, and writable only by this user: others could have
// created it first, to read or replace our files.  -1 with errno: EPERM when a component violates
// this, and *ret_bad is its length in `path`.
int xpl_own_dir_open(const char *path, mode_t mode, size_t *ret_bad);

#endif
