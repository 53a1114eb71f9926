// SPDX-License-Identifier: Apache-2.0
// Names made into paths, and paths resolved: nobody outside of storage/ does either.  Any thread.
#ifndef XPL_STORAGE_PLACES_H_
#define XPL_STORAGE_PLACES_H_

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

// DIR/NAME in ret[0..size).  False when that does not fit; *ret is then "".
bool xpl_place_join(const char *dir, xpl_str_t name, char *ret, size_t size);
// `path` without links and dots, absolute.  False with errno when it is not there; *ret is then
// as it was.
bool xpl_place_resolve(const char *path, char ret[PATH_MAX]);
// `path` below the working directory, unless it is absolute; without slashes at its end.  False
// with errno.
bool xpl_place_make_absolute(const char *path, char ret[PATH_MAX]);

#endif
