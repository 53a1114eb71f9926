// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/terminal.h"
#include "storage/places.h"

// NAME_ROOM: for suffixes of a name. MAX_TEMP: names that are tried.
enum { NAME_ROOM = 48, MAX_TEMP = 1000 };

static bool fail(const struct xpl_output *o, int errnum) {
    (void)fprintf(stderr, "xplanectl: cannot write %s: %s\n", o->path, strerror(errnum));
    return false;
}

// The hidden file, for when a signal ends the program.
static const char *volatile unfinished;

static void on_signal(int number) {
    if (unfinished) (void)unlink(unfinished);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

// Ignored signals stay ignored (nohup, or a shell's job in the background).
static void set_signals(const char *temp) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction old;
    unfinished = temp;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)signal(ends[i], temp ? on_signal : SIG_DFL);
}

// The name "DIR/.NAME.PID.N.part" of the file that is written first.
static void set_temp_name(char *temp, size_t size, const char *target, int number) {
    const char *const slash = strrchr(target, '/');
    const int folder = slash ? (int)(slash - target) + 1 : 0;
    // A long name is cut, so that the suffix does not make it too long.
    (void)snprintf(temp, size, "%.*s.%.200s.%ld.%d.part", folder, target, target + folder,
                   (long)getpid(), number);
}

static char *copy(const char *z) {
    char *const p = xpl_sys_alloc(strlen(z) + 1);
    return p ? strcpy(p, z) : NULL;
}

// Where the file is to be in the end: a link stays one.
static char *target_of(const char *path, bool exists) {
    char real[PATH_MAX];
    return copy(exists && xpl_place_resolve(path, real) ? real : path);
}

// Gives the file owner, group and permissions of the one that it replaces.
static bool take_after(int fd, const struct stat *old) {
    struct stat now;
    if (fstat(fd, &now) != 0) return false;
    const bool same = now.st_uid == old->st_uid && now.st_gid == old->st_gid;
    return (same || fchown(fd, old->st_uid, old->st_gid) == 0) &&
           fchmod(fd, old->st_mode & 07777) == 0;
}

// Opens the hidden file o->temp, as the one that it replaces (`old`, or NULL).  A name that is
// taken is of a process that was killed, or of another machine or container with the same number.
static FILE *open_temp(struct xpl_output *o, const struct stat *old) {
    const size_t size = strlen(o->target) + NAME_ROOM;
    int fd = -1;
    o->temp = xpl_sys_alloc(size);
    if (!o->temp) {
        errno = ENOMEM;
        return NULL;
    }
    for (int i = 0; fd < 0 && i < MAX_TEMP; i++) {
        set_temp_name(o->temp, size, o->target, i);
        fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return NULL;
    }
    if (fd < 0) return NULL;
    FILE *const f = !old || take_after(fd, old) ? fdopen(fd, "wb") : NULL;
    if (f) return f;
    const int e = errno;
    (void)close(fd);
    (void)unlink(o->temp);
    errno = e;
    return NULL;
}

static void free_names(struct xpl_output *o) {
    if (unfinished) set_signals(NULL);
    xpl_sys_free(o->temp);
    xpl_sys_free(o->target);
    o->temp = o->target = NULL;
}

static bool open_in_place(struct xpl_output *o) {
    const int fd = open(o->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    o->f = fd >= 0 ? xpl_terminal_open(fd) : NULL;
    if (!o->f && fd >= 0) (void)close(fd);
    return o->f != NULL;
}

bool xpl_output_open(struct xpl_output *o, const char *path) {
    *o = (struct xpl_output){.f = stdout, .path = "output"};
    // A limit of file sizes (ulimit -f) is then an error of write, not the end of the program.
    (void)signal(SIGXFSZ, SIG_IGN);
    if (!path || strcmp(path, "-") == 0) return true;
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    o->path = path;
    const bool dangling = !exists && lstat(path, &st) == 0; // a link: it stays one
    if (dangling || (exists && !S_ISREG(st.st_mode))) {     // a directory is refused here
        return open_in_place(o) || fail(o, errno);
    }
    // What may not be written is not replaced, either.
    if (exists && access(path, W_OK) != 0) return fail(o, errno);
    o->target = target_of(path, exists);
    o->f = o->target ? open_temp(o, exists ? &st : NULL) : NULL;
    if (o->f) {
        set_signals(o->temp);
        return true;
    }
    const int e = o->target ? errno : ENOMEM;
    free_names(o);
    // A file that may be written in a directory that may not, or that is another user's: in place,
    // as well as that goes.
    const bool other = exists && (e == EACCES || e == EPERM);
    return (other && open_in_place(o)) || fail(o, e);
}

// Why a stream has failed: errno, when the failed write was the last thing that set it.
static int cause_of_failure(void) {
    switch (errno) {
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
        case EPIPE: return errno;
        default: return EIO;
    }
}

// Closes the stream; the errno of what could not be written, or 0.
static int close_stream(struct xpl_output *o) {
    int e = ferror(o->f) ? cause_of_failure() : 0;
    errno = 0;
    if (fflush(o->f) != 0) e = errno;
    if (o->f != stdout && fclose(o->f) != 0 && !e) e = errno;
    o->f = NULL;
    return e;
}

bool xpl_output_commit(struct xpl_output *o) {
    int e = close_stream(o);
    if (!e && o->temp && rename(o->temp, o->target) != 0) e = errno;
    if (e && o->temp) (void)unlink(o->temp);
    free_names(o);
    return e ? fail(o, e) : true;
}

void xpl_output_abort(struct xpl_output *o) {
    (void)close_stream(o);
    if (o->temp) (void)unlink(o->temp);
    free_names(o);
}

bool xpl_output_print(const char *path, bool (*print)(const void *what, FILE *out),
                      const void *what) {
    struct xpl_output o;
    if (!xpl_output_open(&o, path)) return false;
    if (print(what, o.f) || ferror(o.f)) return xpl_output_commit(&o);
    (void)fputs("xplanectl: out of memory\n", stderr);
    xpl_output_abort(&o);
    return false;
}
