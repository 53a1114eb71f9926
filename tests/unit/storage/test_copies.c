// SPDX-License-Identifier: Apache-2.0
// Local copies of objects: written once, evicted by use, never while they are open, never half.
#include "storage/objects/copies.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check.h"

static char dir[200];
static atomic_int fills;

static struct xpl_copies *open_copies(uint64_t limit) {
    struct xpl_copies *c = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_copies_new(dir, limit, UINT64_C(60000000000), &c, &err), &err);
    return c;
}

// In place of the C library's: another daemon starts on the same directory just before the next
// part is locked, and removes parts of crashes.
static bool starts_another;

int flock(int fd, int operation) {
    if (starts_another && operation == LOCK_EX) {
        starts_another = false;
        xpl_copies_free(open_copies(1000));
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static struct xpl_copy_key key_of(uint64_t i, uint64_t size) {
    return (struct xpl_copy_key){.id = {i, 7}, .size = size};
}

static xpl_status_t fill(void *arg, int fd, struct xpl_error *err) {
    const struct xpl_copy_key *const key = arg;
    atomic_fetch_add(&fills, 1);
    (void)usleep(2000);
    for (uint64_t i = 0; i < key->size; i++)
        CHECK_EQ(pwrite(fd, &(char){(char)key->id[0]}, 1, (off_t)i), 1);
    if (key->id[0] != 99) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_ABORTED, "it changed");
}

static xpl_status_t get(struct xpl_copies *c, uint64_t i, uint64_t size, int *ret_fd) {
    struct xpl_copy_key key = key_of(i, size);
    struct xpl_error err = {0};
    return xpl_copies_get(c, &key, fill, &key, ret_fd, &err);
}

// Asks for it and closes it; tells whether it had to be written.
static bool is_written(struct xpl_copies *c, uint64_t i, uint64_t size) {
    int fd = -1;
    const int before = atomic_load(&fills);
    char first = 0;
    CHECK_EQ(get(c, i, size, &fd), XPL_OK);
    CHECK_EQ(pread(fd, &first, 1, 0), size ? 1 : 0);
    CHECK(!size || first == (char)i);
    CHECK_EQ(close(fd), 0);
    (void)usleep(12000); // more than a clock's tick: times of files distinguish uses
    return atomic_load(&fills) != before;
}

static int count_files(void) {
    char cmd[300];
    (void)snprintf(cmd, sizeof cmd, "ls '%s' | grep -c object", dir);
    FILE *const p = popen(cmd, "r");
    int n = -1;
    CHECK(p && fscanf(p, "%d", &n) == 1);
    (void)pclose(p);
    return n;
}

static void test_eviction(void) {
    struct xpl_copies *const c = open_copies(1000);
    CHECK(is_written(c, 1, 400) && is_written(c, 2, 400) && !is_written(c, 1, 400));
    CHECK(is_written(c, 3, 400));                                                     // 2 goes
    CHECK(!is_written(c, 1, 400) && !is_written(c, 3, 400) && is_written(c, 2, 400)); // 1 goes
    CHECK_EQ(count_files(), 2);
    int fd[2];
    CHECK_EQ(get(c, 2, 400, &fd[0]), XPL_OK);
    CHECK_EQ(get(c, 3, 400, &fd[1]), XPL_OK);
    CHECK_EQ(get(c, 4, 400, &(int){-1}), XPL_RESOURCE_EXHAUSTED); // both are open
    CHECK_EQ(close(fd[1]), 0);
    CHECK(is_written(c, 4, 400));
    CHECK(!is_written(c, 2, 400)); // it stayed, though it was older
    CHECK_EQ(close(fd[0]), 0);
    const int kept = count_files();
    CHECK_EQ(get(c, 5, 1001, &fd[0]), XPL_RESOURCE_EXHAUSTED);
    CHECK_EQ(count_files(), kept); // it would have no room without them either
    CHECK(is_written(c, 6, 0) && !is_written(c, 6, 0));
    xpl_copies_free(c);
}

// Copies of another process are counted, too, if not at once.
static void test_shared(void) {
    struct xpl_copies *const c[] = {open_copies(1000), open_copies(1000)};
    for (uint64_t i = 100; i < 140; i++) {
        CHECK(is_written(c[i % 2], i, 100));
        CHECK(count_files() <= 11);
    }
    CHECK(count_files() >= 8);
    xpl_copies_free(c[0]);
    xpl_copies_free(c[1]);
}

static void test_swept_part(void) {
    struct xpl_copies *const c = open_copies(1000);
    starts_another = true;
    CHECK(is_written(c, 60, 100) && !starts_another);
    CHECK(!is_written(c, 60, 100));
    xpl_copies_free(c);
}

// A copy that could not be fetched, one of another length, and parts of a crash.
static void test_broken(void) {
    struct xpl_copies *c = open_copies(1 << 20);
    const int before = count_files();
    CHECK_EQ(get(c, 99, 10, &(int){-1}), XPL_ABORTED);
    CHECK_EQ(get(c, 99, 10, &(int){-1}), XPL_ABORTED);
    CHECK_EQ(count_files(), before);
    CHECK(is_written(c, 7, 100) && !is_written(c, 7, 100));
    char path[300], part[310];
    (void)snprintf(path, sizeof path, "%s/%016x%016x.object", dir, 7, 7);
    CHECK_EQ(truncate(path, 50), 0);
    CHECK(is_written(c, 7, 100));
    (void)snprintf(part, sizeof part, "%s.1.1.part", path);
    CHECK(close(open(part, O_CREAT | O_WRONLY, 0600)) == 0);
    struct xpl_copies *const again = open_copies(1 << 20);
    CHECK(access(part, F_OK) != 0 && !is_written(again, 7, 100));
    xpl_copies_free(again);
    // After a power cut lengths may be right and bytes not: another boot begins anew.
    (void)snprintf(part, sizeof part, "%s/boot", dir);
    CHECK_EQ(truncate(part, 10), 0);
    xpl_copies_free(c);
    c = open_copies(1 << 20);
    CHECK(is_written(c, 7, 100) && !is_written(c, 7, 100));
    xpl_copies_free(c);
}

// What could not be removed of an earlier boot is not taken for one of this boot.
static void test_boot_unswept(void) {
    struct xpl_copies *c = open_copies(1 << 20);
    CHECK(is_written(c, 8, 100) && !is_written(c, 8, 100));
    xpl_copies_free(c);
    char path[300];
    (void)snprintf(path, sizeof path, "%s/boot", dir);
    CHECK_EQ(truncate(path, 10), 0);
    // Its descriptors are too few for all three: the directory, its list, a copy.
    struct rlimit was, few;
    const int next = dup(0);
    CHECK(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &was) == 0);
    few = was;
    few.rlim_cur = (rlim_t)next + 2;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    c = open_copies(1 << 20);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
    xpl_copies_free(c);
    c = open_copies(1 << 20);
    CHECK(is_written(c, 8, 100));
    xpl_copies_free(c);
}

// A process of another container may have our number, and be writing the same copy: its file stays.
static void test_same_number(void) {
    struct xpl_copies *const c = open_copies(1 << 20);
    struct stat sb;
    char path[300];
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(path, sizeof path, "%s/%016x%016x.object.%ld.%u.part", dir, 70, 7,
                       (long)getpid(), i);
        const int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
        CHECK(fd >= 0 && write(fd, "other", 5) == 5 && close(fd) == 0);
    }
    CHECK(is_written(c, 70, 100));
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(path, sizeof path, "%s/%016x%016x.object.%ld.%u.part", dir, 70, 7,
                       (long)getpid(), i);
        CHECK(stat(path, &sb) == 0 && sb.st_size == 5 && unlink(path) == 0);
    }
    xpl_copies_free(c);
}

static void *ask_all(void *arg) {
    for (uint64_t i = 20; i < 30; i++)
        for (int fd = -1; fd < 0;) {
            CHECK_EQ(get(arg, i, 300, &fd), XPL_OK);
            CHECK_EQ(close(fd), 0);
        }
    return NULL;
}

static void test_once(void) {
    struct xpl_copies *const c = open_copies(1 << 20);
    pthread_t threads[6];
    atomic_store(&fills, 0);
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, ask_all, c), 0);
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(atomic_load(&fills), 10);
    xpl_copies_free(c);
}

// Where files cannot be counted the error says so, and not that memory is short.
static void test_uncounted(void) {
    struct rlimit was;
    struct xpl_error err = {0};
    struct xpl_copies *const c = open_copies(1000);
    struct xpl_copy_key key = key_of(60, 900);
    int fd = -1;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = was.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_STATUS(xpl_copies_get(c, &key, fill, &key, &fd, &err), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
    CHECK(strstr(err.msg, "cannot be counted") && strstr(err.msg, "open files"));
    xpl_copies_free(c);
}

// ---- waiting for others ----

static struct {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    bool begun, go_on;
} stuck = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};

static xpl_status_t fill_stuck(void *arg, int fd, struct xpl_error *err) {
    pthread_mutex_lock(&stuck.mu);
    stuck.begun = true;
    pthread_cond_broadcast(&stuck.changed);
    while (!stuck.go_on)
        pthread_cond_wait(&stuck.changed, &stuck.mu);
    pthread_mutex_unlock(&stuck.mu);
    return fill(arg, fd, err);
}

static void *get_stuck(void *arg) {
    struct xpl_copy_key key = key_of(50, 3);
    int fd = -1;
    struct xpl_error err = {0};
    CHECK_OK(xpl_copies_get(arg, &key, fill_stuck, &key, &fd, &err), &err);
    CHECK_EQ(close(fd), 0);
    return NULL;
}

// A request that waits for another's fetch gives up in the end, and says why.
static void test_patience(void) {
    struct xpl_copies *c = NULL;
    struct xpl_error err = {0};
    pthread_t first;
    int fd = -1;
    CHECK_OK(xpl_copies_new(dir, 1 << 20, 20000000, &c, &err), &err);
    CHECK_EQ(pthread_create(&first, NULL, get_stuck, c), 0);
    pthread_mutex_lock(&stuck.mu);
    while (!stuck.begun)
        pthread_cond_wait(&stuck.changed, &stuck.mu);
    pthread_mutex_unlock(&stuck.mu);
    struct xpl_copy_key key = key_of(50, 3);
    CHECK_STATUS(xpl_copies_get(c, &key, fill, &key, &fd, &err), XPL_UNAVAILABLE, &err);
    CHECK(strstr(err.msg, "another request has been fetching"));
    CHECK(is_written(c, 51, 3)); // another object is not in its way
    pthread_mutex_lock(&stuck.mu);
    stuck.go_on = true;
    pthread_cond_broadcast(&stuck.changed);
    pthread_mutex_unlock(&stuck.mu);
    CHECK_EQ(pthread_join(first, NULL), 0);
    CHECK(!is_written(c, 50, 3));
    xpl_copies_free(c);
}

int main(void) {
    char top[] = "/tmp/xplaned-test-XXXXXX", cmd[300];
    CHECK(mkdtemp(top));
    (void)snprintf(dir, sizeof dir, "%s/a/objects", top);
    test_eviction();
    test_shared();
    test_boot_unswept();
    test_same_number();
    test_broken();
    test_swept_part();
    test_once();
    test_patience();
    test_uncounted();
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", top);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
