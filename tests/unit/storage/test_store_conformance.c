// SPDX-License-Identifier: Apache-2.0
// The promises of storage/store/store.h, for every implementation: results, keys, transactions,
// files, versions, eviction, large values; threads, two daemons, kills, full disks, damage. It
// knows nothing of a store's files, except what a row of `stores` says: how to open it, to fill its
// disk and to damage its bytes. Another implementation is one more row.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/sqlite/sqlite.h"
#if XPL_POSTGRESQL
#include "tests/unit/storage/pg_database.h"
#endif
#include "tests/unit/storage/store_helpers.h"

typedef xpl_status_t open_fn(const struct xpl_store_options *o, struct xpl_store **ret,
                             struct xpl_error *err);
static const struct store_row {
    const char *name;
    open_fn *open;
    void (*prepare)(void);         // an empty store
    void (*fill_disk)(bool full);  // or give its space back
    void (*damage)(uint32_t seed); // its files
    bool shared;                   // many daemons write it
} * row;

static struct xpl_store *open_limited(uint64_t limit) {
    const struct xpl_store_options o = {.size = sizeof o, .dir = store_dir, .limit_bytes = limit};
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    const xpl_status_t st = row->open(&o, &s, &err);
    if (st != XPL_OK) fprintf(stderr, "%s\n", err.msg);
    CHECK_EQ(st, XPL_OK);
    return s;
}

// ---- reads return the writes ----

static void test_results(void) {
    static const size_t lens[] = {0, 1, 4095, 4096, 100000, 5000000};
    enum { N = sizeof lens / sizeof *lens };
    struct test_key k;
    struct xpl_store *s = open_limited(0);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
    for (uint64_t i = 0; i < N; i++) {
        CHECK(!get_n(s, i, 0) && !xpl_store_has(s, key_of(i, &k)));
        CHECK_EQ(put_n(s, i, lens[i], NULL), XPL_OK);
    }
    for (int reopened = 0; reopened < 2; reopened++) {
        for (uint64_t i = 0; i < N; i++)
            CHECK(get_n(s, i, lens[i]) && xpl_store_has(s, key_of(i, &k)));
        xpl_store_close(s);
        s = open_limited(0);
        CHECK(!xpl_store_was_unclean(s));
    }
    CHECK_EQ(put_n(s, 2, 9, NULL), XPL_OK); // in place of the old
    CHECK(get_n(s, 2, 9));
    CHECK_EQ(stats_of(s).hits, 1); // of this daemon
    CHECK_EQ(stats_of(s).puts, 1);
    CHECK(stats_of(s).used_bytes > 5000000);
    struct xpl_store_value v;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_store_get(s, key_of(5, &k), 4999999, &v, &err), XPL_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.msg, "4999999"));
    const xpl_bytes_t absurd = {(const uint8_t *)"", XPL_STORE_MAX_RESULT + 1};
    CHECK_EQ(xpl_store_put(s, &k.key, absurd, (xpl_bytes_t){0}, NULL), XPL_RESOURCE_EXHAUSTED);
    CHECK(get_n(s, 5, 5000000));
    xpl_store_close(s);
}

// Many at once give the same as one by one.
static void test_many(void) {
    enum { N = 40 };
    static struct test_key k[N];
    struct xpl_store_key keys[N];
    const struct xpl_fingerprint *files[N];
    struct xpl_profile_id ids[N];
    bool has[N], known[N];
    XPL_AUTO(drop_store) struct xpl_store *const s = open_limited(0);
    for (uint64_t i = 0; i < N; i++) {
        keys[i] = *key_of(i, &k[i]);
        files[i] = &k[i].files[0];
        known[i] = i == 6; // its id is not asked for
        if (i % 3) continue;
        CHECK_EQ(put_n(s, i, 100, NULL), XPL_OK);
        CHECK_EQ(xpl_store_put_file(s, files[i], &k[i].profiles[0], NULL), XPL_OK);
    }
    keys[N - 1] = keys[3]; // twice
    memset(ids, 0, sizeof ids);
    xpl_store_has_many(s, keys, N, has);
    xpl_store_find_files(s, files, N, ids, known);
    for (uint64_t i = 0; i < N; i++) {
        CHECK_EQ(has[i], i % 3 == 0 || i == N - 1);
        CHECK_EQ(known[i], i % 3 == 0);
        CHECK_EQ(xpl_profile_id_eq(&ids[i], &k[i].profiles[0]), known[i] && i != 6);
    }
    xpl_store_has_many(s, keys, 0, has);
    xpl_store_find_files(s, files, 0, ids, known);
}

// Each part of a key tells results apart.
static void test_keys(void) {
    struct test_key k;
    XPL_AUTO(drop_store) struct xpl_store *s = open_limited(0);
    CHECK_EQ(put_n(s, 10, 50, NULL), XPL_OK);
    for (int part = 0; part < 10; part++) {
        (void)key_of(10, &k);
        if (part == 0) k.key.kind = XPL_STORE_ANSWER;
        if (part == 1) k.key.name = XPL_STR("op_stat");
        if (part == 2) k.key.options = XPL_STR("n=1");
        if (part == 3) k.key.version++;
        if (part == 4) k.key.n_profiles--;
        if (part == 5) k.profiles[7].bytes[15]++;
        if (part == 6) k.profiles[0].bytes[0]++;
        if (part == 7) k.hosts[3] = XPL_STR("hos");
        if (part == 8) k.key.hosts = NULL;
        if (part == 9) { // the border between name and options moved
            k.key.name = XPL_STR("op_statsn");
            k.key.options = XPL_STR("=10");
        }
        struct xpl_store_value v;
        CHECK(!xpl_store_has(s, &k.key));
        CHECK_EQ(xpl_store_get(s, &k.key, 1000, &v, NULL), XPL_NOT_FOUND);
    }
    CHECK(get_n(s, 10, 50));
}

static void test_large_value(void) {
    enum { LARGE = 96 << 20 };
    struct xpl_store *s = open_limited(0);
    CHECK_EQ(put_n(s, 4, LARGE, NULL), XPL_OK);
    CHECK(get_n(s, 4, LARGE));
    xpl_store_close(s);
    s = open_limited(0);
    CHECK(get_n(s, 4, LARGE));
    xpl_store_close(s);
}

static void test_transactions(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_limited(0);
    CHECK_EQ(xpl_store_commit(s, NULL), XPL_FAILED_PRECONDITION);
    CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
    CHECK_EQ(xpl_store_begin(s, NULL), XPL_FAILED_PRECONDITION);
    for (uint64_t i = 0; i < 4; i++)
        CHECK_EQ(put_n(s, i, 1000, NULL), XPL_OK);
    CHECK(!get_n(s, 1, 1000)); // not before it is committed
    CHECK_EQ(xpl_store_commit(s, NULL), XPL_OK);
    CHECK(get_n(s, 1, 1000));
    CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
    CHECK_EQ(put_n(s, 9, 1000, NULL), XPL_OK);
    CHECK_EQ(put_n(s, 1, 5, NULL), XPL_OK);
    xpl_store_rollback(s);
    CHECK(!get_n(s, 9, 1000) && get_n(s, 1, 1000));
    CHECK_EQ(stats_of(s).puts, 4);
    CHECK_EQ(stats_of(s).dropped, 2);
    // One that can never be kept does not take the others with it.
    struct test_key k;
    const xpl_bytes_t absurd = {(const uint8_t *)"", XPL_STORE_MAX_RESULT + 1};
    CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
    CHECK_EQ(put_n(s, 9, 1000, NULL), XPL_OK);
    CHECK_EQ(xpl_store_put(s, key_of(20, &k), absurd, (xpl_bytes_t){0}, NULL),
             XPL_RESOURCE_EXHAUSTED);
    CHECK_EQ(put_n(s, 11, 1000, NULL), XPL_OK);
    CHECK_EQ(xpl_store_commit(s, NULL), XPL_OK);
    CHECK(get_n(s, 9, 1000) && get_n(s, 11, 1000));
}

// ---- profiles ----

static void test_files(void) {
    struct test_key k, other;
    struct xpl_profile_id id;
    uint8_t secret[XPL_STORE_SECRET], again[XPL_STORE_SECRET];
    struct xpl_store *s = open_limited(0);
    (void)key_of(1, &k);
    (void)key_of(2, &other);
    other.files[0].size = k.files[0].size;
    (void)xpl_store_get_secret(s, secret);
    CHECK(!xpl_store_find_file(s, &k.files[0], &id) && !xpl_store_has_size(s, k.files[0].size));
    CHECK_EQ(xpl_store_put_file(s, &k.files[0], &k.profiles[0], NULL), XPL_OK);
    CHECK_EQ(xpl_store_put_file(s, &other.files[0], &k.profiles[0], NULL), XPL_OK);
    xpl_store_close(s);
    s = open_limited(0);
    CHECK(xpl_store_find_file(s, &k.files[0], &id) && xpl_profile_id_eq(&id, &k.profiles[0]));
    CHECK(xpl_store_find_file(s, &other.files[0], &id) && xpl_profile_id_eq(&id, &k.profiles[0]));
    CHECK(xpl_store_has_size(s, k.files[0].size));
    CHECK_EQ(xpl_store_put_file(s, &k.files[0], &other.profiles[0], NULL), XPL_OK);
    CHECK(xpl_store_find_file(s, &k.files[0], &id) && xpl_profile_id_eq(&id, &other.profiles[0]));
    (void)xpl_store_get_secret(s, again);
    CHECK(memcmp(secret, again, sizeof again) == 0);
    CHECK(memcmp(secret, (const uint8_t[XPL_STORE_SECRET]){0}, sizeof secret) != 0);
    xpl_store_close(s);
}

enum { LISTED = 20 };

struct listed {
    struct xpl_fingerprint files[LISTED];
    struct xpl_profile_id profiles[LISTED];
    size_t n, stop_at; // after so many; 0: all
};

static bool add_listed(void *arg, const struct xpl_fingerprint *file,
                       const struct xpl_profile_id *profile) {
    struct listed *const l = arg;
    CHECK(l->n < LISTED);
    l->files[l->n] = *file;
    l->profiles[l->n] = *profile;
    return ++l->n != l->stop_at;
}

// Every file with its profile, the newest profiles first, and not more than requested.
static void test_list_files(void) {
    struct test_key k[LISTED];
    struct listed all = {0}, some = {0}, none = {0}, stopped = {.stop_at = 3};
    struct xpl_store *s = open_limited(0);
    CHECK(xpl_store_list_files(s, 100, add_listed, &none));
    CHECK_EQ(none.n, 0);
    for (uint64_t i = 0; i < LISTED; i++) {
        (void)key_of(i + 1, &k[i]);
        CHECK_EQ(xpl_store_put_file(s, &k[i].files[0], &k[i].profiles[0], NULL), XPL_OK);
    }
    xpl_store_close(s);
    s = open_limited(0);
    CHECK(xpl_store_list_files(s, 100, add_listed, &all));
    CHECK_EQ(all.n, LISTED);
    for (size_t i = 0; i < LISTED; i++) {
        CHECK(xpl_fingerprint_eq(&all.files[i], &k[LISTED - 1 - i].files[0]));
        CHECK(xpl_profile_id_eq(&all.profiles[i], &k[LISTED - 1 - i].profiles[0]));
    }
    CHECK(xpl_store_list_files(s, 7, add_listed, &some));
    CHECK_EQ(some.n, 7);
    CHECK(xpl_fingerprint_eq(&some.files[0], &all.files[0]));
    CHECK(xpl_store_list_files(s, 100, add_listed, &stopped));
    CHECK_EQ(stopped.n, 3);
    // A file that holds another profile now is reported once.
    CHECK_EQ(xpl_store_put_file(s, &k[0].files[0], &k[5].profiles[0], NULL), XPL_OK);
    all.n = 0;
    CHECK(xpl_store_list_files(s, 100, add_listed, &all));
    CHECK_EQ(all.n, LISTED);
    for (size_t i = 0; i < LISTED; i++)
        if (xpl_fingerprint_eq(&all.files[i], &k[0].files[0]))
            CHECK(xpl_profile_id_eq(&all.profiles[i], &k[5].profiles[0]));
    xpl_store_close(s);
}

static void put_op(struct xpl_store *s, const struct xpl_profile_id *id, uint32_t version) {
    const struct xpl_op_row op = {.name = XPL_STR("op")};
    const struct xpl_rows rows = {.ops = &op, .n_ops = 1};
    CHECK_EQ(xpl_store_put_rows(s, id, version, &rows, NULL), XPL_OK);
}

// Rows of memory, and the others, replace only those of their kind.
static void test_kinds_of_rows(void) {
    struct test_key k;
    XPL_AUTO(drop_store) struct xpl_store *s = open_limited(0);
    const struct xpl_memory_row one = {XPL_STR("GPU_0_bfc"), 7, XPL_ROW_NULL};
    const struct xpl_rows rows = {.kind = XPL_ROWS_TIMES, .memory = &one, .n_memory = 1},
                          none = {.kind = XPL_ROWS_TIMES};
    (void)key_of(1, &k);
    const struct xpl_profile_id *const id = &k.profiles[0];
    CHECK_EQ(xpl_store_put_rows(s, id, 3, &rows, NULL), XPL_OK);
    CHECK(xpl_store_has_rows(s, id, XPL_ROWS_TIMES, 3));
    CHECK(!xpl_store_has_rows(s, id, XPL_ROWS_OPS, 3));
    put_op(s, id, 7);
    CHECK(xpl_store_has_rows(s, id, XPL_ROWS_TIMES, 3));
    CHECK(xpl_store_has_rows(s, id, XPL_ROWS_OPS, 7));
    CHECK_EQ(xpl_store_put_rows(s, id, 4, &none, NULL), XPL_OK);
    CHECK(!xpl_store_has_rows(s, id, XPL_ROWS_TIMES, 3));
    CHECK(xpl_store_has_rows(s, id, XPL_ROWS_TIMES, 4));
    CHECK(xpl_store_has_rows(s, id, XPL_ROWS_OPS, 7));
}

// Rows of missing files go, rows of other versions go, the rest stays.
static void test_maintenance(void) {
    struct test_key k[6];
    XPL_AUTO(drop_store) struct xpl_store *s = open_limited(0);
    for (uint64_t i = 1; i < 6; i++) {
        (void)key_of(i, &k[i]);
        CHECK_EQ(xpl_store_put_file(s, &k[i].files[0], &k[i].profiles[0], NULL), XPL_OK);
        CHECK_EQ(put_n(s, i, 1000, NULL), XPL_OK);
        put_op(s, &k[i].profiles[0], 7);
    }
    CHECK(xpl_store_has_rows(s, &k[1].profiles[0], XPL_ROWS_OPS, 7) &&
          !xpl_store_has_rows(s, &k[1].profiles[0], XPL_ROWS_OPS, 8));
    CHECK_EQ(maintain(s, 0, NULL), XPL_OK);
    CHECK(get_n(s, 2, 1000)); // without a catalogue nothing is known to be gone
    struct xpl_host hosts[2] = {
        {.name = XPL_STR("a"), .path = XPL_STR("a"), .fingerprint = k[1].files[0]},
        {.name = XPL_STR("b"), .path = XPL_STR("b"), .fingerprint = k[4].files[0]}};
    const struct xpl_session se = {
        .name = XPL_STR("s"), .path = XPL_STR("s"), .hosts = hosts, .n_hosts = 2, .changed = 1};
    const struct xpl_snapshot snap = {.sessions = &se, .n_sessions = 1, .generation = 1};
    CHECK_EQ(xpl_store_put_catalogue(s, &snap, NULL, NULL), XPL_OK);
    CHECK(stats_of(s).catalogue_known);
    CHECK_EQ(maintain(s, 3600, NULL), XPL_OK);
    CHECK(get_n(s, 2, 1000)); // not gone for long enough
    CHECK_EQ(maintain(s, 0, NULL), XPL_OK);
    for (uint64_t i = 1; i < 6; i++) {
        CHECK(get_n(s, i, 1000) == (i == 1 || i == 4));
        CHECK(xpl_store_has_rows(s, &k[i].profiles[0], XPL_ROWS_OPS, 7) == (i == 1 || i == 4));
    }
    const struct xpl_store_version newer = {XPL_STORE_ANSWER, XPL_STR("kernel_stats"), 8};
    const struct xpl_store_maintenance m = {.current = &newer, .n_current = 1, .gone_s = 3600};
    CHECK_EQ(xpl_store_maintain(s, &m, NULL, NULL), XPL_OK);
    CHECK(!get_n(s, 1, 1000) && get_n(s, 4, 1000)); // 4 is of another name
}

static void test_eviction(void) {
    enum { LEN = 200000, LIMIT = 8 << 20, N = 100 };
    XPL_AUTO(drop_store) struct xpl_store *s = open_limited(LIMIT);
    for (uint64_t i = 0; i < N; i++) {
        CHECK_EQ(put_n(s, i, LEN, NULL), XPL_OK);
        CHECK(get_n(s, 0, LEN)); // always in use
        CHECK(stats_of(s).used_bytes <= LIMIT);
        xpl_clock_pause_ms(2);
    }
    CHECK(get_n(s, N - 1, LEN) && !get_n(s, 1, LEN));
    CHECK(stats_of(s).evicted > N / 3);
    CHECK_EQ(put_n(s, 999, LIMIT, NULL), XPL_RESOURCE_EXHAUSTED);
    CHECK(get_n(s, N - 1, LEN));
}

// ---- others at the same time ----

static struct xpl_store *shared;
static atomic_bool stop;
static atomic_uint_fast64_t hits;

static void *read_all(void *arg) {
    for (uint64_t i = (uintptr_t)arg; !atomic_load(&stop); i++)
        atomic_fetch_add(&hits, get_n(shared, i % 32, i % 32 * 977));
    return NULL;
}

static void *maintain_all(void *arg) {
    (void)arg;
    while (!atomic_load(&stop)) {
        CHECK_EQ(maintain(shared, 0, NULL), XPL_OK);
        xpl_clock_pause_ms(1);
    }
    return NULL;
}

static void test_threads(void) {
    pthread_t t[5];
    atomic_store(&stop, false);
    shared = open_limited(0);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&t[i], NULL, read_all, (void *)i) == 0);
    CHECK(pthread_create(&t[4], NULL, maintain_all, NULL) == 0);
    for (uint64_t round = 0; round < 12; round++)
        for (uint64_t i = 0; i < 32; i++)
            CHECK_EQ(put_n(shared, i, i * 977, NULL), XPL_OK);
    atomic_store(&stop, true);
    for (size_t i = 0; i < 5; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    CHECK(atomic_load(&hits) > 0);
    CHECK_EQ(stats_of(shared).read_errors, 0);
    for (uint64_t i = 0; i < 32; i++)
        CHECK(get_n(shared, i, i * 977));
    xpl_store_close(shared);
}

// Of a store that only one daemon writes, the other takes over.
static void take_over(struct xpl_store *w, struct xpl_store *r) {
    CHECK_EQ(put_n(r, 2, 5000, NULL), XPL_FAILED_PRECONDITION);
    CHECK(!get_n(w, 2, 5000));
    xpl_store_close(w);
    for (int i = 0; put_n(r, 2, 5000, NULL) != XPL_OK; i++) {
        CHECK(i < 6000);
        xpl_clock_pause_ms(10);
    }
}

static void test_two_daemons(void) {
    struct xpl_store *w = open_limited(0), *r = open_limited(0);
    uint8_t a[XPL_STORE_SECRET], b[XPL_STORE_SECRET];
    CHECK_EQ(xpl_store_role(r), row->shared ? XPL_STORE_WRITER : XPL_STORE_READER);
    CHECK_EQ(put_n(w, 1, 5000, NULL), XPL_OK);
    CHECK(get_n(r, 1, 5000)); // what one commits the other sees
    (void)xpl_store_get_secret(w, a);
    (void)xpl_store_get_secret(r, b);
    CHECK(memcmp(a, b, sizeof a) == 0);
    if (row->shared) {
        CHECK_EQ(put_n(r, 2, 5000, NULL), XPL_OK);
        CHECK_EQ(put_n(r, 1, 5000, NULL), XPL_OK); // the same again
        CHECK(get_n(w, 2, 5000));
        xpl_store_close(w);
    } else {
        take_over(w, r);
    }
    CHECK(get_n(r, 1, 5000) && get_n(r, 2, 5000));
    xpl_store_close(r);
}

// ---- trouble ----

static void reap(pid_t pid) {
    int status = 0;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Killed between any two writes to the disk, or in one: whole transactions or nothing.
static void test_killed(void) {
    const uint64_t least = row->shared ? 10 : 11;
    uint64_t next = 0;
    for (int round = 0; round < 20 || next < least; round++) { // longer where it writes little
        int fds[2];
        CHECK(pipe(fds) == 0);
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            struct xpl_store *s = open_limited(0);
            for (uint64_t tx = next;; tx++) {
                CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
                for (uint64_t i = 0; i < 3; i++)
                    CHECK_EQ(put_n(s, tx * 3 + i, tx * 3 + i, NULL), XPL_OK);
                CHECK_EQ(xpl_store_commit(s, NULL), XPL_OK);
                CHECK(write(fds[1], &tx, sizeof tx) == (ssize_t)sizeof tx);
            }
        }
        CHECK(close(fds[1]) == 0);
        struct pollfd told_of = {.fd = fds[0], .events = POLLIN};
        // It connects first, where every second one is killed.
        if (row->shared && round % 2) CHECK(poll(&told_of, 1, 30000) == 1);
        xpl_clock_pause_ms(2 + round * 2);
        CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
#if XPL_POSTGRESQL
        if (row->shared) // until the server has ended its transaction
            wait_sql("NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid<>pg_backend_pid() AND"
                     " datname=current_database() AND backend_type='client backend')");
#endif
        uint64_t tx, told = next;
        while (read(fds[0], &tx, sizeof tx) == (ssize_t)sizeof tx)
            told = tx + 1;
        CHECK(close(fds[0]) == 0);
        struct xpl_store *s = open_limited(0);
        CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
        for (tx = next; tx < told + 2; tx++) {
            int there = 0;
            for (uint64_t i = 0; i < 3; i++)
                there += get_n(s, tx * 3 + i, tx * 3 + i);
            CHECK(there == (tx < told ? 3 : 0) || (tx == told && there == 3));
            if (there) next = tx + 1;
        }
        CHECK_EQ(xpl_store_check(s, NULL, NULL, NULL), XPL_OK);
        xpl_store_close(s);
    }
}

// Of files: this process cannot write beyond.
static void limit_files(bool full) {
    struct rlimit r;
    CHECK(getrlimit(RLIMIT_FSIZE, &r) == 0);
    r.rlim_cur = full ? 2000000 : r.rlim_max;
    CHECK(setrlimit(RLIMIT_FSIZE, &r) == 0);
}

static void test_disk_full(void) {
    const pid_t pid = fork();
    if (pid == 0) {
        uint64_t n = 0;
        struct xpl_error err = {0};
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        struct xpl_store *s = open_limited(0);
        row->fill_disk(true);
        while (put_n(s, n, 50000, &err) == XPL_OK)
            n++;
        CHECK_EQ(err.code, XPL_RESOURCE_EXHAUSTED);
        CHECK(n > 5);
        for (uint64_t i = 0; i < n; i++)
            CHECK(get_n(s, i, 50000));
        row->fill_disk(false);
        CHECK_EQ(put_n(s, n, 50000, NULL), XPL_OK);
        for (uint64_t i = 0; i <= n; i++)
            CHECK(get_n(s, i, 50000));
        xpl_store_close(s);
        _exit(0);
    }
    reap(pid);
}

// Overwrites every file of the directory in places.
static void damage_files(uint32_t seed) {
    DIR *d = opendir(store_dir);
    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));) {
        struct stat st;
        const int fd = openat(dirfd(d), e->d_name, O_WRONLY);
        if (fd < 0) continue;
        CHECK(fstat(fd, &st) == 0);
        for (int i = 0; i < 60 && st.st_size > 100; i++) {
            seed = seed * 1664525u + 1013904223u;
            CHECK(pwrite(fd, "damaged", 7, seed % (st.st_size - 50)) == 7);
        }
        CHECK(close(fd) == 0);
    }
    CHECK(closedir(d) == 0);
}

// Nothing wrong comes back, and it is written again soon.
static void test_damage(void) {
    for (uint32_t round = 0; round < 10; round++) {
        struct xpl_store *s = open_limited(0);
        for (uint64_t i = 0; i < 40; i++)
            CHECK(put_n(s, i, i * 997, NULL) == XPL_OK || round > 0);
        xpl_store_close(s);
        row->damage(round);
        s = open_limited(0);
        for (uint64_t i = 0; i < 40; i++)
            (void)get_n(s, i, i * 997); // right or not at all
        for (int i = 0; put_n(s, 100, 40000, NULL) != XPL_OK; i++) {
            CHECK(i < 6000);
            xpl_clock_pause_ms(10);
        }
        CHECK(get_n(s, 100, 40000));
        for (int i = 0; i < 40; i++)
            if (maintain(s, 0, NULL) != XPL_OK) xpl_clock_pause_ms(10);
        xpl_store_close(s);
    }
}

// ---- PostgreSQL ----

#if XPL_POSTGRESQL
static xpl_status_t open_pg(const struct xpl_store_options *o, struct xpl_store **ret,
                            struct xpl_error *err) {
    struct xpl_store_options with_url = *o;
    with_url.url = pg_url(database);
    return xpl_store_open(&with_url, ret, err);
}

// We cannot fill a server's disk: the server gives the error of a full one.
static void fill_server(bool full) {
    pg_sql(database,
           full ? "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                  " IF (SELECT count(*) FROM results) > 20 THEN RAISE EXCEPTION"
                  " 'no space left on device' USING ERRCODE='disk_full'; END IF;"
                  " RETURN NEW; END $$; CREATE TRIGGER full_disk BEFORE INSERT ON results"
                  " FOR EACH ROW EXECUTE FUNCTION full_disk()"
                : "DROP TRIGGER full_disk ON results");
}

static void damage_rows(uint32_t seed) {
    char sql[900];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE results SET small=set_byte(small, length(small)/2, (get_byte(small,"
                   " length(small)/2)+1)%%256) WHERE id%%7=%u AND length(small)>2;"
                   "UPDATE results SET small='' WHERE id%%7=%u;"
                   "UPDATE results SET small=NULL WHERE id%%11=%u;"
                   "UPDATE results SET size_bytes=size_bytes*3+1 WHERE id%%7=%u;"
                   "UPDATE results SET size_bytes=-1 WHERE id%%13=%u;"
                   "UPDATE results SET week=%u, small=NULL WHERE id%%7=%u;"
                   "UPDATE results SET checksum=checksum+1 WHERE id%%7=%u;"
                   "UPDATE results SET meta='damaged' WHERE id%%7=%u;"
                   "UPDATE settings SET value='short' WHERE name='profile_secret' AND %u=9;",
                   seed % 7, (seed + 1) % 7, seed % 11, (seed + 2) % 7, seed % 13, seed,
                   (seed + 3) % 7, (seed + 4) % 7, (seed + 5) % 7, 0u);
    pg_sql(database, sql);
}
#endif

static void no_preparation(void) {}

static const struct store_row stores[] = {
    {"the daemon's", xpl_store_open, no_preparation, limit_files, damage_files, false},
    {"sqlite", xpl_sqlite_open, no_preparation, limit_files, damage_files, false},
#if XPL_POSTGRESQL
    {"postgresql", open_pg, make_database, fill_server, damage_rows, true},
#endif
};

static void run(void (*test)(void)) {
    new_dir();
    row->prepare();
    test();
    remove_dir();
}

// Whether there is what the row needs; says why not.
static bool can_run(void) {
#if XPL_POSTGRESQL
    if (row->shared) {
        const char *const why = pg_begin();
        if (why) fprintf(stderr, "%s: SKIPPED: %s\n", row->name, why);
        return !why;
    }
#endif
    return true;
}

int main(void) {
    static void (*const tests[])(void) = {
        test_results, test_many,        test_keys,          test_large_value, test_transactions,
        test_files,   test_list_files,  test_kinds_of_rows, test_maintenance, test_eviction,
        test_threads, test_two_daemons, test_killed,        test_disk_full,   test_damage};
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        row = &stores[i];
        if (!can_run()) continue;
        // The first is one of the others: its writer is only opened.
        const size_t n = i == 0 ? 1 : sizeof tests / sizeof *tests;
        for (size_t t = 0; t < n; t++)
            run(tests[t]);
        fprintf(stderr, "%s: %zu tests\n", row->name, n);
    }
    return 0;
}
