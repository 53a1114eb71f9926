// SPDX-License-Identifier: Apache-2.0
// The bytes of a host: mapping, truncated files, fingerprints, and faults that the SIGBUS handler
// passes on.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storage/sessions/source.h"
#include "tests/check.h"

static char dir[] = "/tmp/xpl-source-XXXXXX";
static char path[64];

static void write_file(const char *name, size_t size, int fill) {
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    CHECK(f);
    for (size_t i = 0; i < size; i++)
        CHECK(fputc(fill, f) != EOF);
    CHECK_EQ(fclose(f), 0);
}

static struct xpl_source *open_ok(void) {
    struct xpl_source *s = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_source_open(AT_FDCWD, path, 0, &s, &err), &err);
    return s;
}

static void open_fails(const char *p, uint64_t max, xpl_status_t code, const char *word) {
    struct xpl_source *s = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_source_open(AT_FDCWD, p, max, &s, &err), code);
    CHECK(!s);
    CHECK(strstr(err.msg, word));
}

static void verify_is(const struct xpl_source *s, xpl_status_t code, const char *word) {
    struct xpl_error err = {0};
    CHECK_EQ(xpl_source_verify(s, &err), code);
    CHECK(strstr(err.msg, word));
}

static uint64_t sum(xpl_bytes_t b) {
    uint64_t n = 0;
    for (size_t i = 0; i < b.len; i++)
        n += b.ptr[i];
    return n;
}

static void test_plain(void) {
    write_file("a", 10000, 3);
    struct xpl_source *s = open_ok();
    CHECK_EQ(xpl_source_bytes(s).len, 10000);
    CHECK_EQ(sum(xpl_source_bytes(s)), 30000);
    CHECK_EQ(xpl_source_fingerprint(s)->size, 10000);
    CHECK(xpl_source_is_stable(s));
    CHECK(!xpl_source_is_truncated(s));
    verify_is(s, XPL_OK, "");
    struct xpl_source *again = open_ok();
    CHECK(xpl_fingerprint_eq(xpl_source_fingerprint(s), xpl_source_fingerprint(again)));
    xpl_source_free(again);
    xpl_source_free(s);
    xpl_source_free(NULL);
    write_file("empty", 0, 0);
    s = open_ok();
    CHECK(xpl_source_bytes(s).ptr);
    CHECK_EQ(xpl_source_bytes(s).len, 0);
    verify_is(s, XPL_OK, "");
    xpl_source_free(s);
}

// Read past the mapping; only by the reader.
static void test_read(void) {
    uint8_t got[8] = {0};
    write_file("r", 5000, 7);
    struct xpl_source *s = open_ok();
    CHECK(xpl_source_read(s, 4992, got, 8) && got[0] == 7 && got[7] == 7);
    CHECK(!xpl_source_read(s, 4993, got, 8) && !xpl_source_read(s, UINT64_MAX, got, 8));
    xpl_source_skip(s, 4996);
    CHECK(xpl_source_read(s, 0, got, 4) && !xpl_source_read(s, 1, got, 4));
    CHECK_EQ(truncate(path, 100), 0);
    CHECK(!xpl_source_read(s, 0, got, 4));
    xpl_source_free(s);
}

static void test_refused(void) {
    write_file("big", 100, 1);
    open_fails(path, 99, XPL_RESOURCE_EXHAUSTED, "100 bytes, more than the limit of 99");
    open_fails("/tmp/xpl-source-none/x", 0, XPL_NOT_FOUND, "x: cannot open: No such file");
    open_fails(dir, 0, XPL_FAILED_PRECONDITION, "not a regular file");
    open_fails("/dev/zero", 0, XPL_FAILED_PRECONDITION, "not a regular file");
    (void)snprintf(path, sizeof path, "%s/fifo", dir);
    CHECK_EQ(mkfifo(path, 0600), 0);
    open_fails(path, 0, XPL_FAILED_PRECONDITION, "not a regular file"); // and does not wait
    char deep[600];
    memset(deep, 'x', sizeof deep - 1);
    deep[0] = '/', deep[200] = '/', deep[400] = '/', deep[599] = 0;
    open_fails(deep, 0, XPL_NOT_FOUND, "...");
}

static void test_inside(void) {
    char real[PATH_MAX], sub[PATH_MAX + 8], link[PATH_MAX + 16];
    struct xpl_source *s = NULL;
    struct xpl_error err = {0};
    CHECK(realpath(dir, real));
    write_file("outside", 5, 1);
    (void)snprintf(sub, sizeof sub, "%s/sub", real);
    CHECK_EQ(mkdir(sub, 0700), 0);
    (void)snprintf(link, sizeof link, "%s/link", sub);
    CHECK_EQ(symlink("../outside", link), 0);
    CHECK_STATUS(xpl_source_open_inside(AT_FDCWD, link, sub, 0, &s, &err), XPL_PERMISSION_DENIED,
                 &err);
    CHECK(strstr(err.msg, "leads out of"));
    CHECK_OK(xpl_source_open_inside(AT_FDCWD, link, real, 0, &s, &err), &err);
    xpl_source_free(s);
    CHECK_OK(xpl_source_open_inside(AT_FDCWD, link, "/", 0, &s, &err), &err);
    xpl_source_free(s);
    // A directory whose name only begins like the root is outside.
    sub[strlen(sub) - 1] = 0;
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_source_open_inside(AT_FDCWD, link, sub, 0, &s, &err), XPL_PERMISSION_DENIED,
                 &err);
}

// Each remaining page keeps its bytes; the rest reads as zeros.
static void test_truncated(void) {
    static const off_t to[] = {0, 1, 4095, 4096, 4097, 50000, 99999};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        write_file("t", 100000, 1);
        struct xpl_source *s = open_ok();
        CHECK_EQ(truncate(path, to[i]), 0);
        CHECK_EQ(sum(xpl_source_bytes(s)), to[i]);
        const bool lost_page = to[i] <= 98304 - 4096; // else the end is in the last page
        if (lost_page) CHECK(xpl_source_is_truncated(s));
        verify_is(s, XPL_ABORTED, "truncated while it was read");
        xpl_source_free(s);
        struct xpl_source *again = open_ok(); // the slot is as new
        CHECK(!xpl_source_is_truncated(again));
        xpl_source_free(again);
    }
}

static void test_changed(void) {
    for (int i = 0; i < 20; i++) { // at once, within one tick of the clock
        write_file("c", 5000, 1);
        struct xpl_source *s = open_ok();
        const int fd = open(path, O_WRONLY);
        CHECK_EQ(pwrite(fd, "x", 1, 17), 1);
        CHECK_EQ(close(fd), 0);
        verify_is(s, XPL_ABORTED, "changed while it was read");
        xpl_source_free(s);
    }
    write_file("g", 5000, 1);
    struct xpl_source *s = open_ok();
    const int fd = open(path, O_WRONLY | O_APPEND);
    CHECK_EQ(write(fd, "xy", 2), 2);
    CHECK_EQ(close(fd), 0);
    verify_is(s, XPL_ABORTED, "5000 bytes then, 5002 now");
    CHECK_EQ(xpl_source_bytes(s).len, 5000);
    xpl_source_free(s);
}

static void test_replaced(void) {
    char other[64];
    write_file("new", 50, 2);
    memcpy(other, path, sizeof other);
    write_file("old", 7000, 1);
    struct xpl_source *s = open_ok();
    CHECK_EQ(rename(other, path), 0);
    CHECK_EQ(sum(xpl_source_bytes(s)), 7000); // the old file lives on
    verify_is(s, XPL_ABORTED, "changed");
    xpl_source_free(s);
    s = open_ok();
    CHECK_EQ(sum(xpl_source_bytes(s)), 100);
    xpl_source_free(s);
}

// A very large file (of holes), and then an empty one.
static void test_huge(void) {
    write_file("h", 0, 0);
    if (truncate(path, (off_t)1 << 34) != 0) return; // over a limit: not here
    struct xpl_source *s = open_ok();
    const xpl_bytes_t b = xpl_source_bytes(s);
    CHECK_EQ(b.ptr[b.len / 2], 0);
    CHECK_EQ(truncate(path, 0), 0);
    for (size_t at = b.len - 1; at > (size_t)1 << 22; at -= (size_t)1 << 22) // each a new fault
        CHECK_EQ(b.ptr[at], 0);
    CHECK(xpl_source_is_truncated(s));
    xpl_source_free(s);
    CHECK_EQ(unlink(path), 0);
}

enum { THREADS = 4, ROUNDS = 40 };
static struct xpl_source *shared;
static atomic_int reading;

static void *reader(void *arg) {
    (void)arg;
    atomic_fetch_add(&reading, 1);
    const xpl_bytes_t b = xpl_source_bytes(shared);
    for (int i = 0; i < 5; i++) {
        const uint64_t n = sum(b);
        CHECK(n <= b.len);
    }
    return NULL;
}

static void *opener(void *arg) { // other slots come and go meanwhile
    const char *own = arg;
    for (int i = 0; i < 200; i++) {
        struct xpl_source *s = NULL;
        CHECK_OK(xpl_source_open(AT_FDCWD, own, 0, &s, NULL), NULL);
        CHECK_EQ(sum(xpl_source_bytes(s)), 2 * 9000);
        CHECK(!xpl_source_is_truncated(s));
        xpl_source_free(s);
    }
    return NULL;
}

static void test_threads(void) {
    char own[64];
    write_file("own", 9000, 2);
    memcpy(own, path, sizeof own);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t t[THREADS];
        write_file("shared", 400000, 1);
        shared = open_ok();
        atomic_store(&reading, 0);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&t[i], NULL, i ? reader : opener, i ? NULL : own), 0);
        while (atomic_load(&reading) == 0)
            sched_yield();
        CHECK_EQ(truncate(path, round * 5000), 0);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_join(t[i], NULL), 0);
        verify_is(shared, XPL_ABORTED, "truncated");
        xpl_source_free(shared);
    }
}

// --- Faults that are not ours go where they went before ---

static sigjmp_buf back;
static volatile sig_atomic_t others;

static void on_other(int sig) {
    (void)sig;
    others++;
    siglongjmp(back, 1);
}

static bool faults(volatile char *p) {
    if (sigsetjmp(back, 1) != 0) return true;
    (void)p[0];
    return false;
}

static void test_chained(void) {
    write_file("x", 0, 0);
    const int fd = open(path, O_RDWR);
    volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    CHECK(faults(p));
    CHECK_EQ(others, 1);
    CHECK_EQ(munmap((void *)(uintptr_t)p, 4096), 0);
    CHECK_EQ(close(fd), 0);
}

// With the default action before us, a foreign fault and a sent signal still end the process.
// `self` is the name of this test among those of its program.
static void test_default(const char *self) {
    for (int how = 0; how < 2; how++) {
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            execl("/proc/self/exe", self, self, how ? "fault" : "kill", (char *)NULL);
            _exit(99);
        }
        int status = 0;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 99);
        CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0); // a sanitizer exits instead
    }
}

static int child(const char *how) {
    (void)snprintf(path, sizeof path, "%s", "/proc/self/exe");
    struct xpl_source *s = open_ok();
    if (strcmp(how, "kill") == 0) {
        CHECK_EQ(raise(SIGBUS), 0);
    } else {
        FILE *f = tmpfile();
        volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 0);
        (void)p[0];
    }
    xpl_source_free(s);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return child(argv[1]);
    CHECK(mkdtemp(dir));
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    test_default(argv[0]);
    struct sigaction sa = {.sa_handler = on_other};
    CHECK_EQ(sigaction(SIGBUS, &sa, NULL), 0);
    test_plain();
    test_read();
    test_refused();
    test_inside();
    test_truncated();
    test_changed();
    test_replaced();
    test_huge();
    test_threads();
    test_chained();
    char cmd[80];
    (void)snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd);
}
