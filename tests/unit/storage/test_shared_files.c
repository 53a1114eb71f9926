// SPDX-License-Identifier: Apache-2.0
// Files that other programs read: whole, readable by whom they are meant for, and gone in time.
#include "storage/store/shared_files.h"

#include <fcntl.h>
#include <time.h>

#include "tests/unit/storage/store_helpers.h"

#define SUFFIX ".out.pb"
static const gid_t nobody_else = (gid_t)-1;

static struct xpl_shared_files *open_files(const char *dir, gid_t group) {
    struct xpl_shared_files *f = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_shared_files_new(dir, "", SUFFIX, group, &f, &err), &err);
    return f;
}

static xpl_status_t put(struct xpl_shared_files *f, const char *name, const char *text) {
    return xpl_shared_files_put(f, name, (xpl_bytes_t){(const uint8_t *)text, strlen(text)}, NULL);
}

static void check_text(int fd, const char *text) {
    char buf[64];
    const ssize_t n = pread(fd, buf, sizeof buf, 0);
    CHECK(n >= 0);
    CHECK_BYTES(buf, (size_t)n, text, strlen(text));
}

static mode_t mode_of(const char *path) {
    struct stat st;
    CHECK_EQ(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void test_put(void) {
    struct xpl_shared_files *f = open_files(in_dir("a/b/files"), nobody_else);
    CHECK_STR(xpl_str_from(xpl_shared_files_get_dir(f)), in_dir("a/b/files"));
    CHECK_EQ(mode_of(in_dir("a/b/files")), 0700);
    CHECK_EQ(put(f, "x" SUFFIX, "first"), XPL_OK);
    CHECK_EQ(mode_of(in_dir("a/b/files/x" SUFFIX)), 0600);
    const int fd = open(in_dir("a/b/files/x" SUFFIX), O_RDONLY);
    CHECK(fd >= 0);
    CHECK_EQ(put(f, "x" SUFFIX, "second"), XPL_OK);
    check_text(fd, "first"); // a reader keeps the file that it opened
    CHECK_EQ(close(fd), 0);
    const int again = open(in_dir("a/b/files/x" SUFFIX), O_RDONLY);
    check_text(again, "second");
    CHECK_EQ(close(again), 0);
    xpl_shared_files_free(f);
    CHECK_EQ(access(in_dir("a/b/files/x" SUFFIX), F_OK), 0);
}

// A daemon of another machine, with our process id, writes into the same directory.
static void test_shared_directory(void) {
    char name[64];
    struct xpl_shared_files *f = open_files(in_dir("files"), nobody_else);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof name, "files/.%ld-%d.tmp", (long)getpid(), i);
        const int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(fd >= 0);
        CHECK_EQ(close(fd), 0);
    }
    CHECK_EQ(put(f, "x" SUFFIX, "text"), XPL_OK);
    xpl_shared_files_free(f);
}

static void test_group(void) {
    const mode_t was = umask(0077);
    struct xpl_shared_files *f = open_files(in_dir("files"), getgid());
    CHECK_EQ(put(f, "x" SUFFIX, "text"), XPL_OK);
    CHECK_EQ(mode_of(in_dir("files")), 0750);
    CHECK_EQ(mode_of(in_dir("files/x" SUFFIX)), 0640);
    (void)umask(was);
    xpl_shared_files_free(f);
}

static void make_old(const char *path) {
    const struct timespec times[2] = {{time(NULL) - 1000, 0}, {time(NULL) - 1000, 0}};
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
}

// Old files of ours go; new ones, and files that are not ours, stay.
static void test_sweep(void) {
    struct xpl_shared_files *f = open_files(in_dir("files"), nobody_else);
    CHECK_EQ(put(f, "new" SUFFIX, "text"), XPL_OK);
    CHECK_EQ(put(f, "old" SUFFIX, "text"), XPL_OK);
    make_old(in_dir("files/old" SUFFIX));
    make_old(in_dir("files/.1-0.tmp"));
    make_old(in_dir("files/notes.txt"));
    CHECK_EQ(mkdir(in_dir("files/dir" SUFFIX), 0700), 0);
    xpl_shared_files_sweep(f, 2000);
    CHECK_EQ(access(in_dir("files/old" SUFFIX), F_OK), 0);
    xpl_shared_files_sweep(f, 600);
    CHECK(access(in_dir("files/old" SUFFIX), F_OK) != 0);
    CHECK(access(in_dir("files/.1-0.tmp"), F_OK) != 0);
    CHECK_EQ(access(in_dir("files/new" SUFFIX), F_OK), 0);
    CHECK_EQ(access(in_dir("files/notes.txt"), F_OK), 0);
    CHECK_EQ(access(in_dir("files/dir" SUFFIX), F_OK), 0);
    xpl_shared_files_free(f);
    // Of others who name their files with the same end.
    CHECK_OK(xpl_shared_files_new(in_dir("files"), "our-", SUFFIX, nobody_else, &f, NULL), NULL);
    CHECK_EQ(put(f, "our-old" SUFFIX, "text"), XPL_OK);
    make_old(in_dir("files/our-old" SUFFIX));
    make_old(in_dir("files/host" SUFFIX));
    xpl_shared_files_sweep(f, 600);
    CHECK(access(in_dir("files/our-old" SUFFIX), F_OK) != 0);
    CHECK_EQ(access(in_dir("files/host" SUFFIX), F_OK), 0);
    xpl_shared_files_free(f);
}

static void refuse(const char *dir, const char *word) {
    struct xpl_shared_files *f = NULL;
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_shared_files_new(dir, "", SUFFIX, nobody_else, &f, &err),
                 XPL_FAILED_PRECONDITION, &err);
    if (!strstr(err.msg, word)) fprintf(stderr, "got: %s\n", err.msg);
    CHECK(strstr(err.msg, word) && !f);
}

static void test_refusals(void) {
    struct xpl_error err = {0};
    make_old(in_dir("file"));
    refuse(in_dir("file"), "Not a directory");
    refuse(in_dir("file/below"), "Not a directory");
    refuse("", "empty");
    if (getuid() == 0) {
        CHECK_EQ(mkdir(in_dir("theirs"), 0700), 0);
        CHECK_EQ(chown(in_dir("theirs"), 65534, 65534), 0);
        refuse(in_dir("theirs"), "only to this user");
    }
    // The directory goes away under it: an error, and nothing else.
    struct xpl_shared_files *f = open_files(in_dir("files"), nobody_else);
    CHECK_EQ(rmdir(in_dir("files")), 0);
    CHECK_STATUS(xpl_shared_files_put(f, "x" SUFFIX, (xpl_bytes_t){0}, &err),
                 XPL_RESOURCE_EXHAUSTED, &err);
    CHECK(strstr(err.msg, "cannot write in"));
    xpl_shared_files_sweep(f, 0);
    xpl_shared_files_free(f);
}

// Below a directory in which all users may write, as ours is, others may have made every component
// before us.
static void test_components(void) {
    CHECK_EQ(mkdir(in_dir("mine"), 0700), 0);
    CHECK_EQ(mkdir(in_dir("mine/worker"), 0700), 0);
    CHECK_EQ(symlink("mine", in_dir("link")), 0);
    CHECK_EQ(symlink("worker", in_dir("mine/link")), 0);
    refuse(in_dir("link/worker"), "not a link");
    refuse(in_dir("mine/link"), "not a link");
    CHECK_EQ(mkdir(in_dir("open"), 0700), 0);
    CHECK_EQ(mkdir(in_dir("open/worker"), 0700), 0);
    static const mode_t modes[] = {0770, 0707, 01777};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        CHECK_EQ(chmod(in_dir("open"), modes[i]), 0);
        refuse(in_dir("open/worker"), "only to this user");
    }
    if (getuid() == 0) {
        CHECK_EQ(mkdir(in_dir("theirs"), 0755), 0);
        CHECK_EQ(mkdir(in_dir("theirs/worker"), 0700), 0);
        CHECK_EQ(chown(in_dir("theirs"), 65534, 65534), 0);
        refuse(in_dir("theirs/worker"), "theirs must be a directory, not a link");
    }
    xpl_shared_files_free(open_files(in_dir("mine/worker"), nobody_else));
    xpl_shared_files_free(open_files(in_dir("new/worker"), nobody_else));
    CHECK_EQ(mode_of(in_dir("new")) & 022, 0);
    // "." is not a further component.
    char path[300];
    const char *const slash = strrchr(store_dir, '/');
    (void)snprintf(path, sizeof path, "%.*s/./%s/mine/./worker/.", (int)(slash - store_dir),
                   store_dir, slash + 1);
    xpl_shared_files_free(open_files(path, nobody_else));
    xpl_shared_files_free(open_files(in_dir("fresh/."), nobody_else));
    CHECK_EQ(mode_of(in_dir("fresh")) & 0777, 0700);
}

int main(void) {
    static void (*const tests[])(void) = {test_components, test_put,   test_shared_directory,
                                          test_group,      test_sweep, test_refusals};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        new_dir();
        tests[i]();
        remove_dir();
    }
    return 0;
}
