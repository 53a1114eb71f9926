// SPDX-License-Identifier: Apache-2.0
#include "storage/sessions/session_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/std_fds.h"
#include "storage/sessions/layout.h"

// TRIES: against other processes that remove the directory that we are about to use.
enum { MAX_SUFFIX = 9999, TRIES = 100 };

// Something that was committed, in case it must go again.
struct done {
    struct done *next;
    bool synced;
    bool sent; // it is where the session goes
    char file[];
};

struct xpl_session_writer {
    char name[XPL_SESSION_WRITER_NAME_SIZE];
    char *path; // absolute, of the session's directory
    // LOGDIR, plugins, profile, the session: each open, and whether open made it.
    int fd[4];
    bool made[4];
    struct done *done;
    struct xpl_session_remote *remote; // or NULL
    const struct xpl_cancel *cancel;
    uint64_t held; // bytes that were written before they are sent
};

// ---- names ----

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-+=@", c));
}

size_t xpl_session_writer_safe_name(char out[XPL_SESSION_WRITER_NAME_SIZE], xpl_str_t given) {
    size_t n = 0;
    for (; n < given.len && n < XPL_PROFILE_WRITER_MAX_NAME; n++)
        out[n] = is_plain(given.ptr[n]) ? given.ptr[n] : '_';
    if (n == 0) n = (size_t)sprintf(out, "host");
    if (out[0] == '.') out[0] = '_';
    if (n == 9 && memcmp(out, "ALL_HOSTS", 9) == 0) out[n++] = '_';
    out[n] = '\0';
    return n;
}

xpl_status_t xpl_session_writer_check_name(const char *what, xpl_str_t name,
                                           struct xpl_error *err) {
    if (name.len == 0 || name.len > XPL_PROFILE_WRITER_MAX_NAME)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s's name has 1 to %d characters, not %zu",
                         what, XPL_PROFILE_WRITER_MAX_NAME, name.len);
    for (size_t i = 0; i < name.len; i++)
        if (!is_plain(name.ptr[i]) || (i == 0 && name.ptr[0] == '.'))
            XPL_RETURN_ERROR(
                err, XPL_INVALID_ARGUMENT,
                "%s's name has letters, digits and . _ - + = @ only, and no dot at its beginning",
                what);
    return XPL_OK;
}

void xpl_session_writer_name(char out[XPL_SESSION_WRITER_NAME_SIZE], int64_t unix_s) {
    const time_t t = (time_t)unix_s;
    struct tm tm;
    if (!localtime_r(&t, &tm) ||
        !strftime(out, XPL_SESSION_WRITER_NAME_SIZE, "%Y_%m_%d_%H_%M_%S", &tm))
        (void)snprintf(out, XPL_SESSION_WRITER_NAME_SIZE, "session");
}

// ---- errors ----

static xpl_status_t fail_errno(struct xpl_error *err, int errnum, const char *what,
                               const char *path) {
    const size_t n = strlen(path), cut = n > 100 ? n - 100 : 0;
    const char *const dots = cut ? "..." : "";
    char text[64];
    switch (errnum) {
        case ENOSPC:
        case EDQUOT:
            XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                             "%s %s%s: no space left: make room there, or use another directory",
                             what, dots, path + cut);
        case EACCES:
        case EPERM:
            XPL_RETURN_ERROR(
                err, XPL_PERMISSION_DENIED,
                "%s %s%s: not permitted: let this user write there, or use another directory", what,
                dots, path + cut);
        case EROFS:
            XPL_RETURN_ERROR(err, XPL_PERMISSION_DENIED,
                             "%s %s%s: the file system is read-only: use another directory", what,
                             dots, path + cut);
        case EFBIG:
            XPL_RETURN_ERROR(
                err, XPL_RESOURCE_EXHAUSTED,
                "%s %s%s: larger than files may be: raise the process's limit (ulimit -f) or "
                "the file system's, or capture for a shorter time",
                what, dots, path + cut);
        case ENOENT:
            XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "%s %s%s: no such directory: create it first",
                             what, dots, path + cut);
        case ENOTDIR: // O_NOFOLLOW with O_DIRECTORY on a link, too
        case ELOOP:
            XPL_RETURN_ERROR(
                err, XPL_FAILED_PRECONDITION,
                "%s %s%s: something there is a link, or not a directory: move it away, or use "
                "another directory",
                what, dots, path + cut);
        default: break;
    }
    const bool out = errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE;
    XPL_RETURN_ERROR(err, out ? XPL_RESOURCE_EXHAUSTED : XPL_INTERNAL, "%s %s%s: %s", what, dots,
                     path + cut, strerror_r(errnum, text, sizeof text));
}

// ---- a session's directory ----

// LOGDIR may be a link; directories below it may not, as others may be able to write there.
static int open_dir(int at, const char *name, int flags) {
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

// Opens directory `i` below the one before it, and makes it when it is missing.  *ret_errno is 0
// when it is open, EEXIST when it had to be new and is not.
static void enter_directory(struct xpl_session_writer *s, int i, const char *name, bool unique,
                            int *ret_errno) {
    *ret_errno = 0;
    s->fd[i] = -1;
    for (int tries = 0; tries < TRIES; tries++) {
        s->made[i] = mkdirat(s->fd[i - 1], name, 0777) == 0;
        if (!s->made[i] && (errno != EEXIST || unique)) break;
        s->fd[i] = open_dir(s->fd[i - 1], name, O_NOFOLLOW);
        if (s->fd[i] >= 0) return;
        if (errno != ENOENT) break; // ENOENT: removed by another process that had made it
    }
    *ret_errno = errno;
}

static bool set_path(struct xpl_session_writer *s, const char *root) {
    struct xpl_session_path below;
    const size_t size = strlen(root) + sizeof below.text + 1;
    xpl_sys_free(s->path); // of a name that another took
    s->path = xpl_sys_alloc(size);
    if (s->path)
        (void)snprintf(s->path, size, "%s/%s", root,
                       xpl_session_path(xpl_str_from(s->name), &below));
    return s->path != NULL;
}

// Opens or makes the directory of the session's name.  Returns errno: EEXIST when it had to be new
// and is not, EREMOTEIO, with the reason in *err, when that is unknown.
static int enter_session(struct xpl_session_writer *s, const char *root,
                         const struct xpl_session_writer_options *opt, struct xpl_error *err) {
    struct stat sb;
    int e;
    const bool there = fstatat(s->fd[2], s->name, &sb, AT_SYMLINK_NOFOLLOW) == 0;
    bool taken = there;
    if (opt->unique && !there && s->remote &&
        s->remote->has(s->remote, s->name, (xpl_str_t){0}, &taken, err) != XPL_OK)
        return EREMOTEIO;
    if (opt->unique && taken) return EEXIST;
    if (!set_path(s, root)) return ENOMEM;
    if (!there && opt->making) opt->making(opt->making_arg, s->path);
    enter_directory(s, 3, s->name, opt->unique, &e);
    return e;
}

static xpl_status_t open_all(struct xpl_session_writer *s, const char *logdir,
                             const struct xpl_session_writer_options *opt, struct xpl_error *err) {
    char stem[XPL_SESSION_WRITER_NAME_SIZE];
    struct xpl_error why = {0};
    int e;
    s->fd[0] = open_dir(AT_FDCWD, logdir, 0);
    if (s->fd[0] < 0) return fail_errno(err, errno, "opening", logdir);
    enter_directory(s, 1, "plugins", false, &e);
    if (e == 0) enter_directory(s, 2, "profile", false, &e);
    if (e) return fail_errno(err, e, "making plugins/profile in", logdir);
    memcpy(stem, s->name, sizeof stem);
    e = enter_session(s, logdir, opt, &why);
    for (int i = 2; e == EEXIST && i <= MAX_SUFFIX; i++) {
        (void)snprintf(s->name, sizeof s->name, "%.*s_%d", XPL_PROFILE_WRITER_MAX_NAME, stem, i);
        e = enter_session(s, logdir, opt, &why);
    }
    if (e == EREMOTEIO) XPL_RETURN_ERROR(err, why.code, "%s", why.msg);
    if (e) return fail_errno(err, e, "making the session's directory in", logdir);
    return XPL_OK;
}

static xpl_status_t start_session(struct xpl_session_writer *s,
                                  const struct xpl_session_writer_options *opt,
                                  struct xpl_error *err) {
    if (opt->name.len) {
        XPL_TRY(xpl_session_writer_check_name("a session", opt->name, err));
        memcpy(s->name, opt->name.ptr, opt->name.len);
    } else {
        xpl_session_writer_name(s->name, (int64_t)time(NULL));
    }
    const char *const logdir = opt->remote ? opt->remote->dir : opt->logdir;
    char *const root = realpath(logdir, NULL);
    if (!root) return fail_errno(err, errno, "opening", logdir);
    const xpl_status_t st = open_all(s, root, opt, err);
    free(root);
    return st;
}

xpl_status_t xpl_session_writer_open(const struct xpl_session_writer_options *opt,
                                     struct xpl_session_writer **ret, struct xpl_error *err) {
    if (opt->size != sizeof *opt)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "session: options of another version");
    if (!opt->remote && (!opt->logdir || !*opt->logdir))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no directory for profiles");
    struct xpl_session_writer *const s = xpl_sys_alloc(sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "session");
    *s = (struct xpl_session_writer){
        .fd = {-1, -1, -1, -1}, .remote = opt->remote, .cancel = opt->cancel};
    const xpl_status_t st = start_session(s, opt, err);
    if (st == XPL_OK)
        *ret = s;
    else
        xpl_session_writer_close(s);
    return st;
}

void xpl_session_writer_close(struct xpl_session_writer *s) {
    if (!s) return;
    const char *const names[] = {NULL, "plugins", "profile", s->name};
    for (struct done *d = s->remote ? s->done : NULL; d; d = d->next)
        (void)unlinkat(s->fd[3], d->file, 0);
    if (s->remote) s->remote->give_room(s->remote, s->held);
    for (int i = 3; i >= 0; i--) {
        if (s->fd[i] >= 0) (void)close(s->fd[i]);
        if (s->made[i]) (void)unlinkat(s->fd[i - 1], names[i], AT_REMOVEDIR);
    }
    for (struct done *d = s->done, *next; d; d = next) {
        next = d->next;
        xpl_sys_free(d);
    }
    xpl_sys_free(s->path);
    xpl_sys_free(s);
}

static void remove_done(struct xpl_session_writer *s, struct done *d) {
    (void)unlinkat(s->fd[3], d->file, 0);
    if (d->sent) s->remote->remove(s->remote, s->name, d->file);
    d->sent = false;
}

void xpl_session_writer_undo(struct xpl_session_writer *s) {
    for (struct done *d = s->done; d; d = d->next)
        remove_done(s, d);
}

static xpl_status_t send_done(struct xpl_session_writer *s, struct done *d, struct xpl_error *err) {
    if (d->sent) return XPL_OK;
    const int fd = openat(s->fd[3], d->file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return fail_errno(err, errno, "reading", s->path);
    const xpl_status_t st = s->remote->send(s->remote, s->name, d->file, fd, s->cancel, err);
    (void)close(fd);
    d->sent = d->synced = st == XPL_OK;
    return st;
}

xpl_status_t xpl_session_writer_sync(struct xpl_session_writer *s, struct xpl_error *err) {
    for (struct done *d = s->done; d; d = d->next) {
        if (s->remote) XPL_TRY(send_done(s, d, err));
        if (d->synced) continue;
        const int fd = openat(s->fd[3], d->file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        const int e = fd < 0 || fsync(fd) != 0 ? errno : 0;
        if (fd >= 0) (void)close(fd);
        if (e) return fail_errno(err, e, "writing to", s->path);
        d->synced = true;
    }
    // The last file may be there when it is cancelled: then it is known, and can go again.
    if (s->remote && xpl_cancel_is_set(s->cancel))
        XPL_RETURN_ERROR(err, XPL_CANCELLED, "session %.100s: cancelled", s->name);
    (void)fsync(s->fd[3]); // some file systems cannot; the files matter
    return XPL_OK;
}

const char *xpl_session_writer_get_name(const struct xpl_session_writer *s) {
    return s->name;
}
const char *xpl_session_writer_get_path(const struct xpl_session_writer *s) {
    return s->path;
}

xpl_status_t xpl_session_writer_has(const struct xpl_session_writer *s, const char *file, bool *ret,
                                    struct xpl_error *err) {
    *ret = faccessat(s->fd[3], file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (*ret || !s->remote) return XPL_OK;
    return s->remote->has(s->remote, s->name, xpl_str_from(file), ret, err);
}

// ---- files ----

// Makes directories again that another process made, and removed when it gave up.
static bool enter_session_again(struct xpl_session_writer *s) {
    const char *const names[] = {NULL, "plugins", "profile", s->name};
    int e = 0;
    for (int i = 1; i < 4 && e == 0; i++) {
        const bool made = s->made[i];
        if (s->fd[i] >= 0) (void)close(s->fd[i]);
        enter_directory(s, i, names[i], false, &e);
        s->made[i] |= made;
    }
    return e == 0;
}

xpl_status_t xpl_session_writer_open_temp(struct xpl_session_writer *s,
                                          char name[XPL_SESSION_WRITER_TEMP_SIZE], int *ret,
                                          struct xpl_error *err) {
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        XPL_RETURN_ERROR(err, XPL_INTERNAL, "no random numbers");
    (void)snprintf(name, XPL_SESSION_WRITER_TEMP_SIZE, ".xplaned-%016llx.part",
                   (unsigned long long)random);
    int tries = 0;
    do
        *ret = openat(s->fd[3], name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    while (*ret < 0 && errno == ENOENT && tries++ < TRIES && enter_session_again(s));
    if (*ret < 0) return fail_errno(err, errno, "writing to", s->path);
    // A process that cleans up after killed ones can see that this one lives.
    (void)flock(*ret, LOCK_EX | LOCK_NB);
    return XPL_OK;
}

xpl_status_t xpl_session_writer_write(struct xpl_session_writer *s, int fd, xpl_bytes_t bytes,
                                      struct xpl_error *err) {
    if (s->remote) XPL_TRY(s->remote->take_room(s->remote, bytes.len, err));
    s->held += bytes.len;
    if (xpl_write_all(fd, bytes.ptr, bytes.len)) return XPL_OK;
    return fail_errno(err, errno, "writing to", s->path);
}

static xpl_status_t copy_file(struct xpl_session_writer *s, int from, int to,
                              struct xpl_error *err) {
    enum { PIECE = 1 << 20 };
    uint8_t *const piece = xpl_sys_alloc(PIECE);
    if (!piece) XPL_RETURN_OOM(err, "session");
    xpl_status_t st = XPL_OK;
    ssize_t n;
    while (st == XPL_OK && (n = read(from, piece, PIECE)) != 0)
        st = n > 0 ? xpl_session_writer_write(s, to, (xpl_bytes_t){piece, (size_t)n}, err)
             : errno == EINTR ? XPL_OK
                              : fail_errno(err, errno, "reading for", s->path);
    xpl_sys_free(piece);
    return st;
}

xpl_status_t xpl_session_writer_add_file(struct xpl_session_writer *s, const char *path,
                                         char temp[XPL_SESSION_WRITER_TEMP_SIZE],
                                         struct xpl_error *err) {
    int to;
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0) return fail_errno(err, errno, "opening", path);
    xpl_status_t st = xpl_session_writer_open_temp(s, temp, &to, err);
    if (st != XPL_OK) {
        (void)close(from);
        return st;
    }
    // The name is ours: the empty file gives way to the link.
    const bool linked = unlinkat(s->fd[3], temp, 0) == 0 &&
                        linkat(AT_FDCWD, path, s->fd[3], temp, AT_SYMLINK_FOLLOW) == 0;
    if (!linked) {
        (void)close(to);
        to = openat(s->fd[3], temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        st = to < 0 ? fail_errno(err, errno, "writing to", s->path) : copy_file(s, from, to, err);
    }
    if (to >= 0 && close(to) != 0 && st == XPL_OK)
        st = fail_errno(err, errno, "writing to", s->path);
    (void)close(from);
    if (st != XPL_OK) xpl_session_writer_drop_temp(s, temp);
    return st;
}

// Renames a file to an unused name.  Returns errno, 0 when done.
static int rename_to_new(int dir, const char *from, const char *to) {
    if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    // NFS and others only support links.
    if (linkat(dir, from, dir, to, 0) != 0) return errno;
    return unlinkat(dir, from, 0) == 0 ? 0 : errno;
}

// Sends a file that has just got its name.  Returns errno: EEXIST when another file has that name,
// EREMOTEIO with the reason in *err; then the file has its old name again.
static int send_new(struct xpl_session_writer *s, struct done *d, const char *temp,
                    struct xpl_error *err) {
    *err = (struct xpl_error){0};
    const xpl_status_t st = send_done(s, d, err);
    if (st != XPL_OK) (void)renameat(s->fd[3], d->file, s->fd[3], temp);
    return st == XPL_OK ? 0 : st == XPL_ALREADY_EXISTS ? EEXIST : EREMOTEIO;
}

xpl_status_t xpl_session_writer_publish(struct xpl_session_writer *s, const char *temp, char *name,
                                        const char *suffix, enum xpl_session_writer_taken taken,
                                        bool synced, struct xpl_error *err) {
    char stem[XPL_SESSION_WRITER_NAME_SIZE];
    memcpy(stem, name, sizeof stem);
    struct done *const d = xpl_sys_alloc(sizeof *d + XPL_SESSION_WRITER_NAME_SIZE + 16);
    if (!d) XPL_RETURN_OOM(err, "session");
    d->sent = d->synced = false;
    int e = EEXIST;
    struct xpl_error why = {0};
    for (int i = 1; e == EEXIST && i <= (taken == XPL_TAKEN_NUMBER ? MAX_SUFFIX : 1); i++) {
        if (i > 1)
            (void)snprintf(name, XPL_SESSION_WRITER_NAME_SIZE, "%.*s_%d",
                           XPL_PROFILE_WRITER_MAX_NAME, stem, i);
        (void)snprintf(d->file, XPL_SESSION_WRITER_NAME_SIZE + 16, "%s%s", name, suffix);
        if (taken == XPL_TAKEN_REPLACE)
            e = renameat(s->fd[3], temp, s->fd[3], d->file) == 0 ? 0 : errno;
        else
            e = rename_to_new(s->fd[3], temp, d->file);
        if (e == 0 && s->remote && synced) e = send_new(s, d, temp, &why);
    }
    if (e) {
        xpl_sys_free(d);
        if (e == EREMOTEIO) XPL_RETURN_ERROR(err, why.code, "%s", why.msg);
        if (e == EEXIST)
            XPL_RETURN_ERROR(err, XPL_ALREADY_EXISTS, "session %.100s has %.100s already", s->name,
                             stem);
        return fail_errno(err, e, "writing to", s->path);
    }
    d->synced = synced;
    d->next = s->done;
    s->done = d;
    if (synced) (void)fsync(s->fd[3]); // some file systems cannot; the file itself is synced
    return XPL_OK;
}

xpl_status_t xpl_session_writer_note(struct xpl_session_writer *s, const char *stem,
                                     const char *suffix, xpl_bytes_t bytes, struct xpl_error *err) {
    char temp[XPL_SESSION_WRITER_TEMP_SIZE], name[XPL_SESSION_WRITER_NAME_SIZE] = {0};
    int fd;
    (void)snprintf(name, sizeof name, "%.100s", stem);
    XPL_TRY(xpl_session_writer_open_temp(s, temp, &fd, err));
    xpl_status_t st = xpl_session_writer_write(s, fd, bytes, err);
    if (st == XPL_OK && fsync(fd) != 0) st = fail_errno(err, errno, "writing to", s->path);
    if (close(fd) != 0 && st == XPL_OK) st = fail_errno(err, errno, "writing to", s->path);
    if (st == XPL_OK)
        st = xpl_session_writer_publish(s, temp, name, suffix, XPL_TAKEN_NUMBER, true, err);
    if (st != XPL_OK) xpl_session_writer_drop_temp(s, temp);
    return st;
}

int xpl_session_writer_open_file(const struct xpl_session_writer *s, const char *file) {
    return openat(s->fd[3], file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

xpl_status_t xpl_session_writer_hold(struct xpl_session_writer *s, struct xpl_error *err) {
    if (flock(s->fd[3], LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_ABORTED,
                     "session %.100s: another import into it is under way; wait until it ends",
                     s->name);
}

void xpl_session_writer_let_go(struct xpl_session_writer *s) {
    (void)flock(s->fd[3], LOCK_UN);
}

void xpl_session_writer_drop_temp(struct xpl_session_writer *s, const char *temp) {
    (void)unlinkat(s->fd[3], temp, 0);
}

void xpl_session_writer_remove(struct xpl_session_writer *s, const char *name, const char *suffix) {
    char file[XPL_SESSION_WRITER_NAME_SIZE + 16];
    (void)snprintf(file, sizeof file, "%s%s", name, suffix);
    for (struct done **at = &s->done, *d; (d = *at);) {
        if (strcmp(d->file, file) != 0) {
            at = &d->next;
            continue;
        }
        remove_done(s, d);
        *at = d->next; // it is neither synced nor sent later
        xpl_sys_free(d);
    }
}

xpl_status_t xpl_session_writer_fail(const struct xpl_session_writer *s, int errnum,
                                     const char *what, struct xpl_error *err) {
    return fail_errno(err, errnum, what, s->path);
}

// ---- hidden directories ----

int xpl_session_writer_open_hidden(struct xpl_session_writer *s, const char *hidden) {
    return openat(s->fd[3], hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void xpl_session_writer_remove_hidden(struct xpl_session_writer *s, const char *hidden) {
    const int fd = xpl_session_writer_open_hidden(s, hidden);
    DIR *const d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) (void)close(fd);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(d), e->d_name, 0);
    (void)closedir(d);
    (void)unlinkat(s->fd[3], hidden, AT_REMOVEDIR);
}
