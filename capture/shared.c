// SPDX-License-Identifier: Apache-2.0
// Servers older than emit_xspace write the profile themselves.  If their disk is ours, too, it is
// in a hidden directory of the session afterwards, and is checked and copied like any other bytes.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/impl.h"

static DIR *open_hidden(struct xpl_session_writer *s, const char *hidden) {
    const int fd = xpl_session_writer_open_hidden(s, hidden);
    DIR *const d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0) (void)close(fd);
    return d;
}

// The first regular file that is called like a profile; -1 when there is none.
static int find_profile(DIR *d) {
    for (const struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (!xpl_str_ends(xpl_str_from(e->d_name), XPL_STR(XPL_PROFILE_WRITER_SUFFIX))) continue;
        const int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) return fd;
        if (fd >= 0) (void)close(fd);
    }
    return -1;
}

xpl_status_t xpl_capture_shared_copy(struct xpl_session_writer *s, const char *hidden,
                                     struct xpl_profile_writer *w, struct xpl_error *err) {
    DIR *const d = open_hidden(s, hidden);
    const int fd = d ? find_profile(d) : -1;
    if (d) (void)closedir(d);
    if (fd < 0) XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no profile in the shared directory");
    const xpl_status_t st = xpl_profile_writer_put_fd(w, fd, err);
    (void)close(fd);
    return st;
}

void xpl_capture_shared_remove(struct xpl_session_writer *s, const char *hidden) {
    xpl_session_writer_remove_hidden(s, hidden);
}
