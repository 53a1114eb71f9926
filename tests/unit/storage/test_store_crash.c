// SPDX-License-Identifier: Apache-2.0
// The store in bad weather: killed at any moment, full disks, read-only directories, damage.
// Whatever happens, answers are right, and the store works again as soon as it can.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "storage/store/store.h"
#include "tests/unit/storage/store_helpers.h"

static uint32_t random_state = 12345;
static uint32_t rnd(uint32_t below) {
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * below) >> 32);
}

// For calls that may well fail here.
static void any(xpl_status_t st) {
    (void)st;
}

// --- Killed at any moment ---

enum { PER_TX = 4 };

static size_t len_of(uint64_t i) {
    return (size_t)(i * 7919 % 60000);
}

static void write_rows(struct xpl_store *s, uint64_t i) {
    struct xpl_op_row ops[50];
    for (size_t r = 0; r < 50; r++)
        ops[r] = (struct xpl_op_row){.name = XPL_STR("op"), .self_time_ps = i};
    const struct xpl_rows rows = {.ops = ops, .n_ops = 50};
    struct test_key k;
    (void)key_of(i, &k);
    CHECK_EQ(xpl_store_put_rows(s, &k.profiles[0], 7, &rows, NULL), XPL_OK);
}

// Writes transactions from number `first` on, telling each one's end, until it is killed.
static void writer(uint64_t first, int tell) {
    struct xpl_store *s = open_store(0);
    for (uint64_t tx = first;; tx++) {
        CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
        for (uint64_t i = tx * PER_TX; i < (tx + 1) * PER_TX; i++)
            CHECK_EQ(put_n(s, i, len_of(i), NULL), XPL_OK);
        write_rows(s, tx * PER_TX + 1);
        CHECK_EQ(xpl_store_commit(s, NULL), XPL_OK);
        CHECK(write(tell, &tx, sizeof tx) == (ssize_t)sizeof tx);
        if (tx % 64 == 63) CHECK_EQ(maintain(s, 0, NULL), XPL_OK);
    }
}

// Every transaction up to `told` is there whole; the one after it whole or not at all.
static uint64_t check_all(struct xpl_store *s, uint64_t from, uint64_t told) {
    uint64_t next = told;
    for (uint64_t tx = from; tx < told + 3; tx++) {
        int there = 0;
        for (uint64_t i = tx * PER_TX; i < (tx + 1) * PER_TX; i++)
            there += get_n(s, i, len_of(i));
        struct test_key k;
        (void)key_of(tx * PER_TX + 1, &k);
        const bool rows = xpl_store_has_rows(s, &k.profiles[0], XPL_ROWS_OPS, 7);
        CHECK(there == 0 || there == PER_TX);
        CHECK(rows == (there == PER_TX));
        if (tx < told) CHECK_EQ(there, PER_TX);
        if (tx > told) CHECK_EQ(there, 0); // at most one was on its way
        if (there) next = tx + 1;
    }
    return next;
}

// A second process next to the writer: it sees committed rows, and never writes.
static uint64_t read_beside(int told) {
    uint64_t tx = 0;
    CHECK(read(told, &tx, sizeof tx) == (ssize_t)sizeof tx); // now the writer has the lock
    struct xpl_store *s = open_store(0);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_READER);
    for (uint64_t i = tx > 5 ? (tx - 5) * PER_TX : 0; i < (tx + 1) * PER_TX; i++)
        CHECK(get_n(s, i, len_of(i)));
    for (uint64_t i = (tx + 1) * PER_TX; i < (tx + 20) * PER_TX; i++)
        (void)get_n(s, i, len_of(i)); // whatever is there is right
    CHECK_EQ(put_n(s, 0, 1, NULL), XPL_FAILED_PRECONDITION);
    CHECK_EQ(stats_of(s).read_errors, 0);
    xpl_store_close(s);
    return tx + 1;
}

static void test_killed(void) {
    new_dir();
    uint64_t next = 0;
    int round = 0;
    for (; round < 40 || next <= 40; round++) { // more on a machine that lets it write little
        int pipe_fds[2];
        CHECK(pipe(pipe_fds) == 0);
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) writer(next, pipe_fds[1]);
        CHECK(close(pipe_fds[1]) == 0);
        const struct timespec pause = {.tv_nsec = (long)rnd(40000000) + 100000};
        (void)nanosleep(&pause, NULL);
        uint64_t tx = 0, told = next;
        if (round % 3 == 1) told = read_beside(pipe_fds[0]);
        CHECK(kill(pid, SIGKILL) == 0);
        CHECK(waitpid(pid, NULL, 0) == pid);
        while (read(pipe_fds[0], &tx, sizeof tx) == (ssize_t)sizeof tx)
            told = tx + 1;
        CHECK(close(pipe_fds[0]) == 0);
        struct xpl_store *s = open_store(0);
        CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
        expect_quiet(s);
        if (told > next) CHECK(xpl_store_was_unclean(s));
        next = check_all(s, next > 3 ? next - 3 : 0, told);
        if (round % 8 == 7) {
            CHECK_EQ(xpl_store_check(s, NULL, NULL, NULL), XPL_OK);
            (void)check_all(s, 0, next);
        }
        xpl_store_close(s);
    }
    fprintf(stderr, "killed %d times in %llu transactions\n", round, (unsigned long long)next);
    remove_dir();
}

static bool at_once(void *ctx) {
    ++*(int *)ctx;
    return true;
}

static void test_check_and_marks(void) {
    new_dir();
    struct xpl_store *s = open_store(0);
    for (uint64_t i = 0; i < 300; i++)
        CHECK_EQ(put_n(s, i, 3000, NULL), XPL_OK);
    int asked = 0;
    CHECK_EQ(xpl_store_check(s, at_once, &asked, NULL), XPL_CANCELLED);
    CHECK(asked > 0);
    xpl_store_close(s);
    const int fd = open(in_dir("cache.db.lock"), O_WRONLY | O_TRUNC); // as after a power cut
    CHECK(close(fd) == 0);
    s = open_store(0);
    CHECK(xpl_store_was_unclean(s));
    xpl_store_close(s);
    s = open_store(0); // stays in doubt until it was checked
    CHECK(xpl_store_was_unclean(s));
    CHECK_EQ(xpl_store_check(s, NULL, NULL, NULL), XPL_OK);
    CHECK(!xpl_store_was_unclean(s));
    xpl_store_close(s);
    s = open_store(0);
    CHECK(!xpl_store_was_unclean(s));
    xpl_store_close(s);
    remove_dir();
}

// --- Full disks ---

static bool kept[2000];

static void check_kept(struct xpl_store *s, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        CHECK(get_n(s, i, 50000) == kept[i]);
}

// Fills the store until writes fail for good; everything committed stays readable, and all of it
// goes on when there is room again.
static void fill_up(void (*make_room)(void)) {
    struct xpl_store *s = open_store(0);
    uint64_t n = 0, failed = 0;
    memset(kept, 0, sizeof kept);
    for (int in_a_row = 0; n < 2000 && in_a_row < 6; n++) {
        struct xpl_error err = {0};
        kept[n] = put_n(s, n, 50000, &err) == XPL_OK;
        in_a_row = kept[n] ? 0 : in_a_row + 1;
        failed += !kept[n];
        if (kept[n]) continue;
        CHECK_EQ(err.code, XPL_RESOURCE_EXHAUSTED);
        CHECK(strstr(err.msg, "cache.db: "));
        CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
    }
    CHECK(n - failed > 5 && n < 2000);
    check_kept(s, n);
    for (int again = 0; again < 3; again++) {
        struct xpl_error err = {0};
        CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
        CHECK_EQ(put_n(s, 5001, 6000000, NULL), XPL_RESOURCE_EXHAUSTED);
        CHECK_EQ(put_n(s, 5002, 1, &err), XPL_RESOURCE_EXHAUSTED); // the rest is dropped
        CHECK(strstr(err.msg, "cache.db: "));
        CHECK_EQ(xpl_store_commit(s, NULL), XPL_RESOURCE_EXHAUSTED);
        CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
        CHECK(!get_n(s, 5002, 1));
        check_kept(s, n);
    }
    CHECK_EQ(stats_of(s).dropped, failed + 6);
    make_room();
    CHECK_EQ(put_n(s, 5000, 50000, NULL), XPL_OK);
    CHECK(get_n(s, 5000, 50000));
    xpl_store_close(s);
    s = open_store(0);
    CHECK_EQ(xpl_store_check(s, NULL, NULL, NULL), XPL_OK);
    check_kept(s, n);
    xpl_store_close(s);
}

static void no_limit(void) {
    struct rlimit r;
    CHECK(getrlimit(RLIMIT_FSIZE, &r) == 0);
    r.rlim_cur = r.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &r) == 0);
}

static void bigger_disk(void) {
    CHECK(mount(NULL, store_dir, NULL, MS_REMOUNT, "size=64m") == 0);
}

static void wait_for(pid_t pid) {
    int status = 0;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_full(void) {
    new_dir();
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit r;
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        CHECK(getrlimit(RLIMIT_FSIZE, &r) == 0);
        r.rlim_cur = 3000000;
        CHECK(setrlimit(RLIMIT_FSIZE, &r) == 0);
        fill_up(no_limit);
        _exit(0);
    }
    wait_for(pid);
    remove_dir();
    new_dir();
    pid = fork();
    if (pid == 0) { // a real one, where a process may mount
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", store_dir, "tmpfs", 0, "size=5m") != 0)
            fprintf(stderr, "no tmpfs here (%s): skipped\n", strerror(errno));
        else
            fill_up(bigger_disk);
        _exit(0);
    }
    wait_for(pid);
    remove_dir();
}

// A disk that is full from the start.
static void test_full_at_open(void) {
    new_dir();
    const pid_t pid = fork();
    if (pid == 0) {
        struct rlimit r;
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        CHECK(getrlimit(RLIMIT_FSIZE, &r) == 0);
        r.rlim_cur = 20;
        CHECK(setrlimit(RLIMIT_FSIZE, &r) == 0);
        struct xpl_store *s = open_store(0);
        CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
        expect_notice(s, "cannot be used");
        CHECK(!get_n(s, 1, 5));
        CHECK_EQ(put_n(s, 1, 5, NULL), XPL_FAILED_PRECONDITION);
        CHECK_EQ(stats_of(s).dropped, 1);
        xpl_store_close(s);
        no_limit();
        s = open_store(0);
        CHECK_EQ(put_n(s, 1, 5, NULL), XPL_OK);
        xpl_store_close(s);
        _exit(0);
    }
    wait_for(pid);
    remove_dir();
}

// --- Read-only directories ---

static void as_nobody(void) {
    if (getuid() == 0) CHECK(setgid(65534) == 0 && setuid(65534) == 0);
}

static void chmod_all(mode_t dir, mode_t files) {
    char cmd[300];
    (void)snprintf(cmd, sizeof cmd, "chmod %o %s/* 2>/dev/null; chmod %o %s", (unsigned)files,
                   store_dir, (unsigned)dir, store_dir);
    CHECK(system(cmd) == 0);
}

static void read_only_child(bool usable) {
    const pid_t pid = fork();
    if (pid == 0) {
        as_nobody();
        struct xpl_store *s = open_store(0);
        CHECK_EQ(xpl_store_role(s), usable ? XPL_STORE_READER : XPL_STORE_OFF);
        expect_notice(s, usable ? "is only read: it cannot be written" : "cannot be used");
        CHECK(get_n(s, 3, 5000) == usable);
        CHECK(!get_n(s, 4, 5000));
        CHECK_EQ(put_n(s, 4, 5000, NULL), XPL_FAILED_PRECONDITION);
        CHECK_EQ(maintain(s, 0, NULL), XPL_FAILED_PRECONDITION);
        xpl_store_close(s);
        _exit(0);
    }
    wait_for(pid);
}

static void test_read_only(void) {
    char from[200], to[200];
    new_dir();
    struct xpl_store *s = open_store(0);
    CHECK_EQ(put_n(s, 3, 5000, NULL), XPL_OK);
    // What a killed writer leaves: a log that waits to be taken over.
    (void)snprintf(from, sizeof from, "cp %s/cache.db-wal %s/kept", store_dir, store_dir);
    CHECK(system(from) == 0);
    xpl_store_close(s);
    chmod_all(0555, 0444);
    read_only_child(true);
    chmod_all(0755, 0644);
    (void)snprintf(from, sizeof from, "%s/kept", store_dir);
    (void)snprintf(to, sizeof to, "%s/cache.db-wal", store_dir);
    CHECK(rename(from, to) == 0);
    chmod_all(0555, 0444);
    read_only_child(false);
    chmod_all(0755, 0644);
    (void)snprintf(to, sizeof to, "rm %s/*", store_dir);
    CHECK(system(to) == 0);
    chmod_all(0555, 0444);
    read_only_child(false); // nothing there, and nothing can be made
    chmod_all(0755, 0644);
    remove_dir();
}

// --- Damage ---

enum { RESULTS = 60 };

static void fill_for_damage(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    for (uint64_t i = 0; i < RESULTS; i++) {
        CHECK_EQ(put_n(s, i, len_of(i), NULL), XPL_OK);
        write_rows(s, i);
    }
}

static uint8_t *slurp(const char *path, size_t *ret_n) {
    FILE *f = fopen(path, "rb");
    CHECK(f && fseek(f, 0, SEEK_END) == 0);
    *ret_n = (size_t)ftell(f);
    rewind(f);
    uint8_t *p = malloc(*ret_n + 1);
    CHECK(p && fread(p, 1, *ret_n, f) == *ret_n);
    CHECK(fclose(f) == 0);
    return p;
}

static void spill(const char *path, const uint8_t *p, size_t n) {
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(p, 1, n, f) == n);
    CHECK(fclose(f) == 0);
}

static void damage(uint8_t *p, size_t *n) {
    const uint32_t how = rnd(5);
    const size_t page = rnd((uint32_t)(*n / 8192)) * (size_t)8192;
    if (how == 0)
        *n = rnd((uint32_t)*n + 1);
    else if (how == 1)
        memset(p + page, 0, 8192);
    else if (how == 2) // some bytes anywhere
        for (uint32_t i = 0; i < 40; i++)
            p[rnd((uint32_t)*n)] ^= (uint8_t)(1 + rnd(255));
    else if (how == 3) // structure: the heads of pages
        for (uint32_t i = 0; i < 12; i++)
            p[page + rnd(24)] = (uint8_t)rnd(256);
    else // two pages swapped
        for (size_t i = 0, other = rnd((uint32_t)(*n / 8192)) * (size_t)8192; i < 8192; i++) {
            const uint8_t was = p[page + i];
            p[page + i] = p[other + i];
            p[other + i] = was;
        }
}

// Opens a damaged database and uses it: nothing wrong comes back, and it works in the end.
static void use_damaged(bool check_first, int *repaired) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
    if (check_first) any(xpl_store_check(s, NULL, NULL, NULL));
    int there = 0;
    for (uint64_t i = 0; i < RESULTS; i++)
        there += get_n(s, i, len_of(i));
    for (int tries = 0; put_n(s, 1000, 40000, NULL) != XPL_OK; tries++)
        CHECK(tries < 3);
    CHECK(get_n(s, 1000, 40000));
    if (there < RESULTS) CHECK(stats_of(s).rebuilds > 0 || stats_of(s).read_errors == 0);
    *repaired += stats_of(s).rebuilds > 0;
    for (uint64_t i = 0; i < RESULTS; i++)
        if (!get_n(s, i, len_of(i))) any(put_n(s, i, len_of(i), NULL));
    any(maintain(s, 0, NULL));
}

static void test_damaged(void) {
    new_dir();
    fill_for_damage();
    size_t n = 0;
    uint8_t *good = slurp(in_dir("cache.db"), &n);
    int repaired = 0;
    enum { ROUNDS = 80 };
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t *bad = malloc(n);
        size_t len = n;
        CHECK(bad);
        memcpy(bad, good, n);
        damage(bad, &len);
        spill(in_dir("cache.db"), bad, len);
        (void)unlink(in_dir("cache.db-wal"));
        (void)unlink(in_dir("cache.db-shm"));
        free(bad);
        use_damaged(round % 3 == 0, &repaired);
    }
    fprintf(stderr, "%d of %d damaged databases were moved aside\n", repaired, ROUNDS);
    CHECK(repaired > ROUNDS / 3);
    CHECK(count_files("cache.db.broken-") <= 4); // two, perhaps with their logs
    free(good);
    remove_dir();
}

// Damage while the store is open, found by a reader, repaired by the writer, said once.
static void test_damaged_live(void) {
    new_dir();
    fill_for_damage();
    struct xpl_store *s = open_store(0), *other = open_store(0);
    expect_notice(other, "another daemon");
    CHECK(get_n(s, 7, len_of(7)));
    size_t n = 0;
    uint8_t *p = slurp(in_dir("cache.db"), &n);
    for (size_t i = 8192; i < n; i++)
        p[i] = (uint8_t)rnd(256);
    const int fd = open(in_dir("cache.db"), O_WRONLY);
    CHECK(pwrite(fd, p, n, 0) == (ssize_t)n);
    CHECK(close(fd) == 0);
    free(p);
    for (uint64_t i = 0; i < RESULTS; i++)
        (void)get_n(s, i, len_of(i)), (void)get_n(other, i, len_of(i));
    CHECK(stats_of(s).read_errors > 0);
    CHECK(stats_of(other).read_errors > 0);
    expect_notice(other, "not ours to repair");
    expect_quiet(other);
    CHECK_EQ(maintain(s, 0, NULL), XPL_OK);
    expect_notice(s, "was broken");
    CHECK_EQ(stats_of(s).rebuilds, 1);
    CHECK_EQ(put_n(s, 7, len_of(7), NULL), XPL_OK);
    CHECK(get_n(s, 7, len_of(7)));
    CHECK(get_n(other, 7, len_of(7))); // follows to the new file
    CHECK(!get_n(other, 8, len_of(8)));
    xpl_store_close(s);
    CHECK(get_n(other, 7, len_of(7)));
    xpl_store_close(other);
    s = open_store(0);
    CHECK(get_n(s, 7, len_of(7)));
    xpl_store_close(s);
    remove_dir();
}

static void test_no_database(void) {
    static const size_t lens[] = {1, 50, 99, 100, 511, 512, 513, 4096, 8192, 100000};
    for (size_t l = 0; l < sizeof lens / sizeof *lens; l++) {
        new_dir();
        uint8_t *p = data_of(l, lens[l]);
        spill(in_dir("cache.db"), p, lens[l]);
        free(p);
        struct xpl_store *s = open_store(0);
        if (lens[l] >= 512) expect_notice(s, "was broken"); // less counts as an empty database
        CHECK_EQ(put_n(s, 1, 10, NULL), XPL_OK);
        CHECK(get_n(s, 1, 10));
        xpl_store_close(s);
        if (lens[l] >= 512) CHECK_EQ(count_files("cache.db.broken-"), 1);
        remove_dir();
    }
    new_dir(); // a directory of that name
    CHECK(mkdir(in_dir("cache.db"), 0700) == 0);
    struct xpl_store *s = open_store(0);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    CHECK(!get_n(s, 1, 10));
    CHECK_EQ(put_n(s, 1, 10, NULL), XPL_FAILED_PRECONDITION);
    xpl_store_close(s);
    remove_dir();
}

int main(void) {
    test_killed();
    test_check_and_marks();
    test_full();
    test_full_at_open();
    test_read_only();
    test_damaged();
    test_damaged_live();
    test_no_database();
    return 0;
}
