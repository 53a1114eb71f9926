// SPDX-License-Identifier: Apache-2.0
// A small file system below the current directory, which becomes the current one: a server started
// there has a disk that a test can fill. Only this process and its children see it, and it ends
// with the last of them.
#ifndef XPL_TESTS_CLUSTER_SMALL_DISK_H_
#define XPL_TESTS_CLUSTER_SMALL_DISK_H_

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/check.h"

static char small_disk[4096];
static pid_t small_disk_owner;

static inline void small_disk_end(void) {
    if (getpid() != small_disk_owner) return; // a child that was forked
    if (chdir("/") != 0 || umount2(small_disk, MNT_DETACH) != 0 || rmdir(small_disk) != 0)
        fprintf(stderr, "%s stays\n", small_disk);
}

// NULL, or why there is none.
static inline const char *small_disk_begin(void) {
    char cwd[4000];
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return "no right to mount a small disk";
    CHECK(getcwd(cwd, sizeof cwd));
    (void)snprintf(small_disk, sizeof small_disk, "%s/small-disk-XXXXXX", cwd);
    CHECK(mkdtemp(small_disk));
    if (mount("none", small_disk, "tmpfs", 0, "size=128m,mode=0755") != 0) {
        (void)rmdir(small_disk);
        return "no right to mount a small disk";
    }
    small_disk_owner = getpid();
    CHECK(atexit(small_disk_end) == 0 && chdir(small_disk) == 0);
    return NULL;
}

// No byte is left.
static inline void small_disk_fill(void) {
    static const char zeros[4096];
    const int fd = open("filler", O_WRONLY | O_CREAT | O_APPEND, 0600);
    CHECK(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    CHECK(errno == ENOSPC && close(fd) == 0);
}

static inline void small_disk_empty(void) {
    CHECK_EQ(unlink("filler"), 0);
}

#endif
