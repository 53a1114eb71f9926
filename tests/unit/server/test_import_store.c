// SPDX-License-Identifier: Apache-2.0
// An import ends at once when its client has gone or the daemon stops: whatever its format is, and
// wherever in its work that is noticed.  An upload that its disk cannot read is not stored.
#include "server/grpc/import_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exec.h"
#include "tests/check.h"

enum { BYTES = 32 << 20, LEAST_CHECKS = BYTES / (4 << 20) }; // one for each piece

static char top[] = "/tmp/xplaned-import-store-XXXXXX";

static void shell(const char *command) {
    char text[300];
    (void)snprintf(text, sizeof text, "cd %s && %s", top, command);
    CHECK_EQ(system(text), 0);
}

// An XSpace whose only field is a text that has no number of the format.
static void make_files(void) {
    char path[100];
    static const uint8_t head[] = {0x7a, 0x80, 0x80, 0x80, 0x10};
    (void)snprintf(path, sizeof path, "%s/plain", top);
    FILE *const f = fopen(path, "w");
    CHECK(f && fwrite(head, sizeof head, 1, f) == 1);
    CHECK_EQ(ftruncate(fileno(f), BYTES + (off_t)sizeof head), 0);
    CHECK_EQ(fclose(f), 0);
    shell("gzip -1 < plain > packed");
    shell("head -c 4096 packed > cut");
    shell(": > unreadable");
}

struct counting { // is cancelled at the check with that number; 0: never
    struct xpl_exec exec;
    unsigned checks, last;
};

static bool is_cancelled(struct xpl_exec *e) {
    struct counting *const c = (struct counting *)e;
    return ++c->checks >= c->last && c->last;
}

static size_t count_files(const char *dir) {
    DIR *const d = opendir(dir);
    size_t n = 0;
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.' || e->d_name[1] == 'x';
    CHECK_EQ(closedir(d), 0);
    return n;
}

// Returns how often the import checked whether it is cancelled.  The pages of the upload's last
// `unread` bytes cannot be read.
static unsigned import_file(const char *name, unsigned last, uint64_t unread) {
    struct counting c = {.exec = xpl_exec_serial(), .last = last};
    c.exec.cancelled = is_cancelled;
    pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    struct xpl_session_writer *s = NULL;
    struct xpl_profile_writer_file file;
    struct xpl_error err = {0};
    struct stat sb;
    char path[100];
    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &sb) == 0);
    const struct xpl_session_writer_options o = {.size = sizeof o, .logdir = top, .unique = true};
    CHECK_EQ(xpl_session_writer_open(&o, &s, &err), XPL_OK);
    const struct xpl_upload u = {.host = XPL_STR("h"),
                                 .fd = fd,
                                 .bytes = (uint64_t)sb.st_size + unread,
                                 .max_bytes = (uint64_t)1 << 30,
                                 .decompressing = &one,
                                 .exec = &c.exec};
    const xpl_status_t st = xpl_import_store(s, &u, &file, &err);
    CHECK_EQ(st, unread ? XPL_ABORTED : last ? XPL_CANCELLED : XPL_OK);
    CHECK_EQ(count_files(xpl_session_writer_get_path(s)), last || unread ? 0 : 1);
    xpl_session_writer_undo(s);
    xpl_session_writer_close(s);
    CHECK_EQ(close(fd), 0);
    return c.checks;
}

static void check_all_ends(const char *name) {
    const unsigned checks = import_file(name, 0, 0);
    CHECK(checks >= LEAST_CHECKS);
    for (unsigned i = 1; i <= checks; i++)
        CHECK_EQ(import_file(name, i, 0), i);
}

static void check_unreadable(void) {
    (void)import_file("cut", 0, 20000);
    (void)import_file("unreadable", 0, BYTES);
}

int main(void) {
    CHECK(mkdtemp(top));
    make_files();
    check_all_ends("plain");
    check_all_ends("packed");
    check_unreadable();
    shell("cd / && rm -r \"$OLDPWD\"");
    return 0;
}
