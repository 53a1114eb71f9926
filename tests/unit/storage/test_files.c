// SPDX-License-Identifier: Apache-2.0
// Files of the store: kept under the profile's id, found by it, evicted, and never half there.
#include "storage/store/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "tests/unit/storage/store_helpers.h"

static struct xpl_store_file_key file_key(uint8_t i) {
    return (struct xpl_store_file_key){.profile = {{i, 0xab}}, .kind = "trace", .version = 3};
}

static struct xpl_store_files *open_files(uint64_t limit) {
    struct xpl_store_files *f = NULL;
    CHECK_EQ(xpl_store_files_new(store_dir, limit, &f, NULL), XPL_OK);
    return f;
}

static xpl_status_t put(struct xpl_store_files *f, uint8_t i, size_t len, struct xpl_error *err) {
    const struct xpl_store_file_key key = file_key(i);
    uint8_t *p = data_of(i, len);
    const xpl_status_t st = xpl_store_files_put(f, &key, (xpl_bytes_t){p, len}, err);
    free(p);
    return st;
}

static bool has(struct xpl_store_files *f, uint8_t i, size_t len) {
    const struct xpl_store_file_key key = file_key(i);
    struct xpl_source *src = NULL;
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_store_files_open(f, &key, &src, &err);
    if (st != XPL_OK) {
        CHECK_EQ(st, XPL_NOT_FOUND);
        return false;
    }
    const xpl_bytes_t b = xpl_source_bytes(src);
    CHECK_EQ(b.len, len);
    for (size_t at = 0; at < len; at++)
        CHECK(b.ptr[at] == byte_of(i, at));
    xpl_source_free(src);
    return true;
}

static void test_keys(void) {
    struct xpl_store_files *f = open_files(0);
    CHECK(!has(f, 1, 0));
    CHECK_EQ(put(f, 1, 5000, NULL), XPL_OK);
    CHECK_EQ(put(f, 2, 0, NULL), XPL_OK);
    CHECK(has(f, 1, 5000) && has(f, 2, 0) && !has(f, 3, 0));
    for (int part = 0; part < 5; part++) {
        struct xpl_store_file_key key = file_key(1);
        struct xpl_source *src = NULL;
        if (part == 0) key.profile.bytes[15]++;
        if (part == 1) key.kind = "traces";
        if (part == 2) key.version++;
        if (part == 3) key.variant++;
        if (part == 4) key.import++;
        CHECK_EQ(xpl_store_files_open(f, &key, &src, NULL), XPL_NOT_FOUND);
    }
    CHECK_EQ(put(f, 1, 70, NULL), XPL_OK); // in place of the old
    CHECK(has(f, 1, 70));
    xpl_store_files_free(f);
    f = open_files(0);
    CHECK(has(f, 1, 70));
    const struct xpl_store_file_key key = file_key(1);
    xpl_store_files_remove(f, &key);
    xpl_store_files_remove(f, &key);
    CHECK(!has(f, 1, 70) && has(f, 2, 0));
    xpl_store_files_free(f);
}

static const char *path_of_file(uint8_t i) {
    char name[80];
    (void)snprintf(name, sizeof name, "%02xab%028d.0.3.trace", i, 0);
    return in_dir(name);
}

// A file under another profile's name, an old one without a header, a cut one: not answered from.
static void test_content(void) {
    struct xpl_store_files *f = open_files(0);
    const struct xpl_store_file_key one = file_key(1), two = file_key(2);
    struct xpl_source *src = NULL;
    CHECK_EQ(put(f, 1, 5000, NULL), XPL_OK);
    CHECK_EQ(link(path_of_file(1), path_of_file(2)), 0);
    CHECK_EQ(xpl_store_files_open(f, &two, &src, NULL), XPL_DATA_LOSS);
    CHECK(access(path_of_file(2), F_OK) != 0 && has(f, 1, 5000));
    CHECK_EQ(truncate(path_of_file(1), 4000), 0);
    CHECK_EQ(xpl_store_files_open(f, &one, &src, NULL), XPL_DATA_LOSS);
    FILE *const old = fopen(path_of_file(1), "wb");
    CHECK(old && fputs("XPLTRACE", old) >= 0 && fclose(old) == 0);
    CHECK_EQ(xpl_store_files_open(f, &one, &src, NULL), XPL_DATA_LOSS);
    CHECK(!src && !has(f, 1, 5000));
    xpl_store_files_free(f);
}

// A mapping keeps the file's bytes, whatever happens to the name.
static void test_mapped(void) {
    struct xpl_store_files *f = open_files(0);
    const struct xpl_store_file_key key = file_key(1);
    struct xpl_source *src = NULL;
    CHECK_EQ(put(f, 1, 9000, NULL), XPL_OK);
    CHECK_EQ(xpl_store_files_open(f, &key, &src, NULL), XPL_OK);
    CHECK_EQ(put(f, 1, 4, NULL), XPL_OK);
    xpl_store_files_remove(f, &key);
    CHECK_EQ(xpl_source_bytes(src).len, 9000);
    CHECK(xpl_source_bytes(src).ptr[8999] == byte_of(1, 8999));
    struct xpl_source *second = xpl_source_ref(src);
    xpl_source_free(src);
    CHECK(xpl_source_bytes(second).ptr[8999] == byte_of(1, 8999));
    CHECK(!xpl_source_is_truncated(second));
    xpl_source_free(second);
    xpl_store_files_free(f);
}

static void pause_ms(long ms) {
    const struct timespec t = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&t, NULL);
}

// A use changes the file's times, for which no caller waits: 1,000 uses take less than 10 s.
static void test_used_often(void) {
    struct xpl_store_files *f = open_files(0);
    CHECK_EQ(put(f, 1, 100, NULL), XPL_OK);
    const uint64_t begin_ns = xpl_clock_ns();
    for (int i = 0; i < 1000; i++)
        CHECK(has(f, 1, 100));
    CHECK(xpl_clock_ns() - begin_ns < 9000000000);
    xpl_store_files_free(f);
}

static void test_eviction(void) {
    struct xpl_error err = {0};
    struct xpl_store_files *f = open_files(10000);
    for (uint8_t i = 0; i < 10; i++) {
        CHECK_EQ(put(f, i, 3000, NULL), XPL_OK);
        pause_ms(15);
        CHECK(has(f, 0, 3000)); // always in use
        pause_ms(15);
    }
    CHECK(has(f, 0, 3000) && has(f, 9, 3000) && has(f, 8, 3000) && !has(f, 7, 3000));
    CHECK_EQ(put(f, 20, 10001, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.msg, "10000"));
    CHECK(has(f, 0, 3000));
    xpl_store_files_free(f);
    f = open_files(3000); // a smaller limit
    CHECK(!has(f, 9, 3000) || !has(f, 8, 3000));
    xpl_store_files_free(f);
}

static void touch(const char *name, time_t age_s) {
    const int fd = open(in_dir(name), O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0 && write(fd, "x", 1) == 1);
    const struct timespec t = {.tv_sec = time(NULL) - age_s};
    CHECK(futimens(fd, (struct timespec[]){t, t}) == 0 && close(fd) == 0);
}

// Leftovers of crashes are removed; files that are not ours stay.
static void test_leftovers(void) {
    touch("young.part", 10);
    touch("old.part", 3600);
    touch("1-2-3-4-5.1.1.trace", 3600); // of the first version's naming
    touch("README", 3600);
    touch("0123456789abcdef0123456789abcdef", 3600);
    struct xpl_store_files *f = open_files(66); // its own header, and 2
    CHECK_EQ(count_files("young.part"), 1);
    CHECK_EQ(count_files("old.part"), 0);
    CHECK_EQ(count_files("1-2-3"), 1);
    CHECK_EQ(put(f, 1, 2, NULL), XPL_OK);
    CHECK_EQ(count_files("1-2-3"), 0);
    CHECK_EQ(count_files("README"), 1);
    CHECK_EQ(count_files("0123456789abcdef0123456789abcdef"), 1);
    CHECK(has(f, 1, 2));
    xpl_store_files_free(f);
}

static void test_cannot_write(void) {
    struct xpl_store_files *f = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_store_files_new("", 0, &f, NULL), XPL_INVALID_ARGUMENT);
    CHECK_EQ(xpl_store_files_new("/proc/nowhere", 0, &f, &err), XPL_UNAVAILABLE);
    CHECK(strstr(err.msg, "/proc/nowhere") && !f);
    const pid_t pid = fork();
    if (pid == 0) { // a full disk: nothing is left of the attempt, and what there is stays
        struct rlimit r;
        f = open_files(0);
        CHECK_EQ(put(f, 1, 100, NULL), XPL_OK);
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        CHECK(getrlimit(RLIMIT_FSIZE, &r) == 0);
        r.rlim_cur = 5000;
        CHECK(setrlimit(RLIMIT_FSIZE, &r) == 0);
        err = (struct xpl_error){0};
        CHECK_EQ(put(f, 1, 9000, &err), XPL_RESOURCE_EXHAUSTED);
        CHECK(strstr(err.msg, "cannot be written"));
        CHECK(has(f, 1, 100));
        CHECK_EQ(count_files("010"), 0);
        CHECK_EQ(count_files("01ab"), 1);
        xpl_store_files_free(f);
        _exit(0);
    }
    int status = 0;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Killed at any moment: a file is there whole or not at all.
static void test_killed(void) {
    for (int round = 0; round < 20; round++) {
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            struct xpl_store_files *f = open_files(0);
            for (uint8_t i = 0;; i++)
                CHECK_EQ(put(f, i % 8, 100000 + i % 8u, NULL), XPL_OK);
        }
        pause_ms(1 + round % 5);
        CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        struct xpl_store_files *f = open_files(0);
        for (uint8_t i = 0; i < 8; i++)
            (void)has(f, i, 100000u + i);
        xpl_store_files_free(f);
    }
    struct xpl_store_files *f = open_files(0);
    CHECK(has(f, 0, 100000));
    xpl_store_files_free(f);
}

int main(void) {
    static void (*const tests[])(void) = {test_keys,         test_content,  test_mapped,
                                          test_used_often,   test_eviction, test_leftovers,
                                          test_cannot_write, test_killed};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        new_dir();
        tests[i]();
        remove_dir();
    }
    return 0;
}
