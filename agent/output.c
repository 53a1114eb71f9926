// SPDX-License-Identifier: Apache-2.0
#include "agent/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/std_fds.h"

static xpl_status_t check_name(const char *what, const char *name, struct xpl_error *err) {
    if (!*name || *name == '.' || strchr(name, '/') || strlen(name) > 200)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "%s must be a name without '/', not beginning with '.'", what);
    return XPL_OK;
}

static xpl_status_t make_directories(char *path, struct xpl_error *err) {
    for (char *p = path + 1;; p++) {
        if (*p && *p != '/') continue;
        const char was = *p;
        *p = 0;
        const bool ok = mkdir(path, 0777) == 0 || errno == EEXIST;
        if (!ok)
            XPL_RETURN_ERROR(err, XPL_INTERNAL, "%s: cannot be made: %s", path, strerror(errno));
        *p = was;
        if (!was) return XPL_OK;
    }
}

xpl_status_t xpl_agent_write_file(const char *root, const char *session, const char *host,
                                  xpl_bytes_t xspace, struct xpl_error *err) {
    char dir[PATH_MAX], aside[PATH_MAX + 300], path[PATH_MAX + 300], name[256];
    XPL_TRY(check_name("session_id", session, err));
    XPL_TRY(check_name("host_name", host, err));
    snprintf(name, sizeof name, "%s", host);
    for (char *p = name; (p = strchr(p, ':'));)
        *p = '_';
    const int n = snprintf(dir, sizeof dir, "%s/%s", root, session);
    if (n < 0 || (size_t)n >= sizeof dir)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "repository_root is too long");
    XPL_TRY(make_directories(dir, err));
    snprintf(path, sizeof path, "%s/%s" XPL_FORMAT_SUFFIX, dir, name);
    snprintf(aside, sizeof aside, "%s/.%s.%d.part", dir, name, (int)getpid());
    const int fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        XPL_RETURN_ERROR(err, XPL_INTERNAL, "%s: cannot be written: %s", dir, strerror(errno));
    const bool ok = xpl_write_all(fd, xspace.ptr, xspace.len) && fsync(fd) == 0;
    int failed = ok ? 0 : errno;
    if (close(fd) != 0 && !failed) failed = errno;
    if (!failed && rename(aside, path) != 0) failed = errno;
    if (!failed) return XPL_OK;
    unlink(aside);
    XPL_RETURN_ERROR(err, XPL_INTERNAL, "%s: cannot be written: %s", path, strerror(failed));
}
