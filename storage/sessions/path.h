// SPDX-License-Identifier: Apache-2.0
// Small helpers about paths and names, for storage/ only.
#ifndef XPL_STORAGE_SESSIONS_PATH_H_
#define XPL_STORAGE_SESSIONS_PATH_H_

#include <stdbool.h>
#include <sys/stat.h>

#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_fingerprint;

// A name for clients: `raw` itself when it is UTF-8, else with each ill-formed byte and each '%'
// written as %XX.  In `arena`, NUL-terminated; false on OOM.
bool xpl_name_escape(struct xpl_arena *arena, xpl_str_t raw, xpl_str_t *ret);

// The part after the last slash, ignoring slashes at the end; "/" for the root.
xpl_str_t xpl_path_last(const char *path);
// Whether `path` is of a session's directory as XProf lays them out, PREFIX/plugins/profile/RUN, by
// whole components.  *ret_prefix gets PREFIX with its slash, or nothing.
bool xpl_path_is_run(xpl_str_t path, xpl_str_t *ret_prefix, xpl_str_t *ret_run);
// The end of a path that fits an error text: `path` itself, or, with an ellipsis, in *text.
struct xpl_path_text {
    char text[128];
};
const char *xpl_path_shown(const char *path, struct xpl_path_text *text);

// Translates an errno of opening or reading `path` into a status.
xpl_status_t xpl_path_fail(int errnum, const char *what, const char *path, struct xpl_error *err);
// The same for opening a path that a person wrote: for a missing one, it proposes names similar to
// the first missing part.
xpl_status_t xpl_path_fail_near(int errnum, const char *path, struct xpl_error *err);

// Whether the open file `fd` really lies at or below `root` (absolute, without links).
bool xpl_path_inside(int fd, const char *root);

struct xpl_fingerprint xpl_fingerprint_of(const struct stat *st);

#endif
