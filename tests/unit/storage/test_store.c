// SPDX-License-Identifier: Apache-2.0
// The store on SQLite in good weather: roles, versions, eviction, maintenance.
#include "storage/store/store.h"

#include <sqlite3.h>
#include <time.h>

#include "base/exec.h"
#include "base/heap.h"
#include "storage/sessions/catalogue.h"
#include "tests/unit/storage/store_helpers.h"

static int64_t ask(const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *st;
    CHECK(sqlite3_open_v2(in_dir("cache.db"), &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK);
    CHECK(sqlite3_step(st) == SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(st, 0);
    CHECK(sqlite3_finalize(st) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
    return n;
}

static void do_sql(const char *sql) {
    sqlite3 *db;
    CHECK(sqlite3_open(in_dir("cache.db"), &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

// What a store promises of results and transactions is in test_store_conformance.c.
static void test_reopened(void) {
    struct xpl_store *s = open_store(0);
    CHECK(!xpl_store_was_unclean(s));
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    xpl_store_close(s);
    CHECK_EQ(count_files("cache.db-wal"), 0); // taken over
    s = open_store(0);
    CHECK(!xpl_store_was_unclean(s));
    CHECK(get_n(s, 1, 100));
    expect_quiet(s);
    xpl_store_close(s);
}

static void test_two_daemons(void) {
    struct xpl_store *w = open_store(0);
    struct xpl_store *r = open_store(0);
    CHECK_EQ(xpl_store_role(r), XPL_STORE_READER);
    expect_notice(r, "another daemon writes it");
    CHECK_EQ(put_n(w, 1, 5000, NULL), XPL_OK);
    CHECK(get_n(r, 1, 5000)); // what one commits the other sees
    struct xpl_error err = {0};
    CHECK_EQ(put_n(r, 2, 5000, &err), XPL_FAILED_PRECONDITION);
    CHECK_EQ(xpl_store_begin(r, NULL), XPL_FAILED_PRECONDITION);
    CHECK_EQ(maintain(r, 0, NULL), XPL_FAILED_PRECONDITION);
    CHECK_EQ(stats_of(r).dropped, 1);
    CHECK(!get_n(w, 2, 5000));
    xpl_store_close(w); // the writer goes: the reader reads on, and takes its place soon
    int waited_ms = 0;
    while (put_n(r, 3, 10, NULL) != XPL_OK) {
        CHECK(get_n(r, 1, 5000));
        const struct timespec pause = {.tv_nsec = 20000000};
        (void)nanosleep(&pause, NULL);
        CHECK((waited_ms += 20) < 60000);
    }
    CHECK_EQ(xpl_store_role(r), XPL_STORE_WRITER);
    CHECK(get_n(r, 1, 5000) && get_n(r, 3, 10));
    w = open_store(0);
    CHECK_EQ(xpl_store_role(w), XPL_STORE_READER);
    CHECK(get_n(w, 3, 10));
    xpl_store_close(r);
    xpl_store_close(w);
    const struct xpl_store_options o = {.size = sizeof o, .dir = store_dir, .read_only = true};
    CHECK_EQ(xpl_store_open(&o, &r, NULL), XPL_OK);
    CHECK_EQ(xpl_store_role(r), XPL_STORE_READER);
    CHECK(get_n(r, 3, 10));
    xpl_store_close(r);
}

static void open_refused(const char *word) {
    const struct xpl_store_options o = {.size = sizeof o, .dir = store_dir};
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    CHECK_EQ(xpl_store_open(&o, &s, &err), XPL_FAILED_PRECONDITION);
    CHECK(!s);
    CHECK(strstr(err.msg, word));
}

static void remove_databases(void) {
    char cmd[200];
    (void)snprintf(cmd, sizeof cmd, "rm %s/cache.db*", store_dir);
    CHECK(system(cmd) == 0);
}

static void test_versions(void) {
    xpl_store_close(open_store(0));
    // A newer one's, or damage to the header: it is only a cache.
    static const char *const headers[] = {"PRAGMA user_version=99", "PRAGMA user_version=-1",
                                          "PRAGMA application_id=5", "PRAGMA user_version=0"};
    static const char *const words[] = {"newer xplaned", "header", "header", "SQL logic error"};
    for (int i = 0; i < 4; i++) {
        do_sql(headers[i]);
        struct xpl_store *s = open_store(0);
        expect_notice(s, words[i]);
        CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
        CHECK_EQ(count_files("cache.db.broken-"), i < 2 ? i + 1 : 2); // the last two are kept
        do_sql("PRAGMA user_version=99"); // while another daemon has it: nothing is read
        struct xpl_store *other = open_store(0);
        CHECK_EQ(xpl_store_role(other), XPL_STORE_OFF);
        xpl_store_close(other);
        do_sql("PRAGMA user_version=6");
        xpl_store_close(s);
    }
    remove_databases();
    do_sql("CREATE TABLE mine(x); INSERT INTO mine VALUES(42);");
    open_refused("another program");
    CHECK_EQ(ask("SELECT x FROM mine"), 42);
    CHECK_EQ(ask("SELECT count(*) FROM pragma_journal_mode WHERE journal_mode='delete'"), 1);
    CHECK(unlink(in_dir("cache.db")) == 0);
    do_sql("PRAGMA user_version=0"); // an empty database is as good as none
    struct xpl_store *s = open_store(0);
    CHECK_EQ(put_n(s, 1, 10, NULL), XPL_OK);
    xpl_store_close(s);
    // Tables with other columns: created anew.
    do_sql("DROP TABLE result_data");
    s = open_store(0);
    expect_notice(s, "no such table: result_data");
    CHECK_EQ(put_n(s, 1, 10, NULL), XPL_OK);
    CHECK_EQ(count_files("cache.db.broken-"), 1);
    xpl_store_close(s);
}

static void test_eviction(void) {
    enum { LEN = 200000, LIMIT = 8 << 20, N = 200 };
    struct xpl_store *s = open_store(LIMIT);
    for (uint64_t i = 0; i < N; i++) {
        CHECK_EQ(put_n(s, i, LEN, NULL), XPL_OK);
        CHECK(get_n(s, 0, LEN) || i == 0); // always in use
        CHECK(stats_of(s).used_bytes <= LIMIT);
        const struct timespec ms = {.tv_nsec = 1500000};
        (void)nanosleep(&ms, NULL);
    }
    CHECK(get_n(s, 0, LEN));
    CHECK(get_n(s, N - 1, LEN));
    CHECK(!get_n(s, 1, LEN));
    CHECK(stats_of(s).evicted > N / 2);
    struct xpl_error err = {0};
    CHECK_EQ(put_n(s, 999, LIMIT / 2 + 1, &err), XPL_RESOURCE_EXHAUSTED); // not for a single one
    CHECK(get_n(s, N - 1, LEN));
    CHECK_EQ(ask("SELECT count(*) FROM result_profiles f LEFT JOIN results r ON r.id=f.result_id "
                 "WHERE r.id IS NULL"),
             0);
    // A transaction never evicts its own.
    CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
    uint64_t kept = 0;
    for (uint64_t i = 1000; i < 1060; i++)
        kept += put_n(s, i, LEN, &err) == XPL_OK;
    CHECK_EQ(xpl_store_commit(s, NULL), XPL_OK);
    CHECK(kept > 30 && kept < 42);
    for (uint64_t i = 1000; i < 1000 + kept; i++)
        CHECK(get_n(s, i, LEN));
    xpl_store_close(s);
    struct stat st;
    CHECK(stat(in_dir("cache.db"), &st) == 0);
    CHECK(st.st_size <= LIMIT + (1 << 20));
    s = open_store(1 << 20); // a smaller limit: the file shrinks
    bool more = true;
    for (int i = 0; more && i < 100; i++)
        CHECK_EQ(maintain(s, 0, &more), XPL_OK);
    CHECK(!more);
    CHECK(stats_of(s).used_bytes <= 1 << 20);
    xpl_store_close(s);
    CHECK(stat(in_dir("cache.db"), &st) == 0);
    CHECK(st.st_size <= 6 << 20);
}

static void put_row(struct xpl_store *s, uint64_t file, const char *op) {
    const struct xpl_op_row row = {.name = xpl_str_from(op), .self_time_ps = 5};
    const struct xpl_rows rows = {.ops = &row, .n_ops = 1, .device_type = XPL_STR("TPU")};
    struct test_key k;
    (void)key_of(file, &k);
    CHECK_EQ(xpl_store_put_rows(s, &k.profiles[0], 7, &rows, NULL), XPL_OK);
}

static void put_memory(struct xpl_store *s, uint64_t file, const char *allocator) {
    const struct xpl_memory_row row = {xpl_str_from(allocator), 5, 6};
    const struct xpl_rows rows = {.kind = XPL_ROWS_TIMES, .memory = &row, .n_memory = 1};
    struct test_key k;
    (void)key_of(file, &k);
    CHECK_EQ(xpl_store_put_rows(s, &k.profiles[0], 7, &rows, NULL), XPL_OK);
}

static void put_file(struct xpl_store *s, uint64_t i) {
    struct test_key k;
    (void)key_of(i, &k);
    CHECK_EQ(xpl_store_put_file(s, &k.files[0], &k.profiles[0], NULL), XPL_OK);
}

// A catalogue in which only the files of keys 1 and 3 exist.
static void put_catalogue_until(struct xpl_store *s, bool third, uint64_t generation,
                                const struct xpl_cancel *cancel) {
    struct test_key k1, k3;
    (void)key_of(1, &k1);
    (void)key_of(3, &k3);
    const struct xpl_host h1 = {.name = XPL_STR("h"),
                                .path = XPL_STR("a/h"),
                                .fingerprint = k1.files[0]},
                          h3 = {.name = XPL_STR("h"),
                                .path = XPL_STR("c/h"),
                                .fingerprint = k3.files[0]};
    const struct xpl_session se[] = {
        {.name = XPL_STR("a"), .path = XPL_STR("a"), .hosts = &h1, .n_hosts = 1, .changed = 1},
        {.name = XPL_STR("c"), .path = XPL_STR("c"), .hosts = &h3, .n_hosts = 1, .changed = 1}};
    const struct xpl_snapshot snap = {
        .sessions = se, .n_sessions = third ? 2 : 1, .generation = generation};
    CHECK_EQ(xpl_store_put_catalogue(s, &snap, cancel, NULL), XPL_OK);
}

static void put_catalogue(struct xpl_store *s, bool third, uint64_t generation) {
    put_catalogue_until(s, third, generation, NULL);
}

static bool is_cancelled_now(void *arg) {
    (void)arg;
    return true;
}

// Each call writes the session at which it is cancelled, and forgets none.
static void test_cancelled_catalogue(void) {
    const struct xpl_cancel cancel = {.is_cancelled = is_cancelled_now};
    struct xpl_store_stats stats;
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    put_catalogue_until(s, true, 1, &cancel);
    CHECK_EQ(ask("SELECT count(*) FROM sessions"), 1);
    CHECK_EQ(ask("SELECT count(*) FROM hosts"), 1);
    xpl_store_get_stats(s, &stats);
    CHECK(!stats.catalogue_known);
    put_catalogue(s, true, 1);
    CHECK_EQ(ask("SELECT count(*) FROM sessions"), 2);
    xpl_store_get_stats(s, &stats);
    CHECK(stats.catalogue_known);
}

// Statements over all files end where they are, and their changes are undone.
static void test_cancelled_maintenance(void) {
    enum { FILES = 2000 };
    const struct xpl_cancel cancel = {.is_cancelled = is_cancelled_now};
    const struct xpl_store_maintenance m = {.gone_s = 3600, .cancel = &cancel};
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
    for (uint64_t i = 1; i <= FILES; i++)
        put_file(s, i);
    CHECK_EQ(xpl_store_commit(s, NULL), XPL_OK);
    put_catalogue(s, true, 1);
    CHECK(xpl_store_maintain(s, &m, NULL, NULL) != XPL_OK);
    CHECK_EQ(ask("SELECT count(*) FROM profile_files WHERE gone_at IS NOT NULL"), 0);
    CHECK_EQ(maintain(s, 3600, NULL), XPL_OK);
    CHECK(ask("SELECT count(*) FROM profile_files WHERE gone_at IS NOT NULL") >= FILES - 10);
}

static void test_maintenance(void) {
    struct xpl_store *s = open_store(0);
    for (uint64_t i = 1; i < 6; i++)
        CHECK_EQ(put_n(s, i, 1000, NULL), XPL_OK);
    put_row(s, 1, "kept");
    put_row(s, 2, "gone");
    put_memory(s, 1, "bfc");
    put_memory(s, 2, "gone_bfc");
    for (uint64_t i = 1; i < 5; i++)
        put_file(s, i);
    bool more = true;
    CHECK_EQ(maintain(s, 0, &more), XPL_OK);
    CHECK(get_n(s, 2, 1000)); // without a catalogue nothing is known to be gone
    CHECK(!more);
    put_catalogue(s, true, 1);
    CHECK_EQ(maintain(s, 3600, NULL), XPL_OK);
    CHECK(get_n(s, 2, 1000)); // not long enough
    CHECK_EQ(ask("SELECT count(*) FROM names"), 4);
    const struct timespec pause = {.tv_sec = 1, .tv_nsec = 100000000};
    (void)nanosleep(&pause, NULL);
    CHECK_EQ(maintain(s, 1, NULL), XPL_OK);
    CHECK(get_n(s, 1, 1000) && get_n(s, 3, 1000));
    CHECK(!get_n(s, 2, 1000) && !get_n(s, 4, 1000) && !get_n(s, 5, 1000));
    CHECK_EQ(ask("SELECT count(*) FROM profiles"), 2);
    CHECK_EQ(ask("SELECT count(*) FROM op_rows"), 1);
    CHECK_EQ(ask("SELECT count(*) FROM memory_rows"), 1);
    CHECK_EQ(ask("SELECT count(*) FROM names"), 2);
    CHECK_EQ(ask("SELECT count(*) FROM result_profiles"), 2);
    CHECK_EQ(ask("SELECT count(*) FROM profile_files"), 2);
    struct test_key k;
    (void)key_of(1, &k);
    CHECK(xpl_store_has_rows(s, &k.profiles[0], XPL_ROWS_OPS, 7));
    CHECK(!xpl_store_has_rows(s, &k.profiles[0], XPL_ROWS_OPS, 8));
    xpl_store_close(s);
    s = open_store(0);
    put_catalogue(s, false, 1); // after a restart the whole catalogue is compared
    CHECK_EQ(ask("SELECT count(*) FROM sessions"), 1);
    CHECK_EQ(ask("SELECT count(*) FROM hosts"), 1);
    CHECK_EQ(ask("SELECT sum(self_time_ps) FROM ops WHERE session='a' AND name='kept'"), 5);
    xpl_store_close(s);
}

// A new version of one tool keeps the results of others.
static void test_current_versions(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    for (uint64_t i = 1; i < 7; i++) // odd: answers of kernel_stats, even: op_stats
        CHECK_EQ(put_n(s, i, 1000, NULL), XPL_OK);
    const struct xpl_store_version same[] = {{XPL_STORE_ANSWER, XPL_STR("kernel_stats"), 7},
                                             {XPL_STORE_PRODUCT, XPL_STR("op_stats"), 7},
                                             {XPL_STORE_PRODUCT, XPL_STR("kernel_stats"), 8}};
    const struct xpl_store_version newer[] = {{XPL_STORE_ANSWER, XPL_STR("kernel_stats"), 8}};
    const struct xpl_store_maintenance keep = {.current = same, .n_current = 3},
                                       raise = {.current = newer, .n_current = 1};
    CHECK_EQ(xpl_store_maintain(s, &keep, NULL, NULL), XPL_OK);
    for (uint64_t i = 1; i < 7; i++)
        CHECK(get_n(s, i, 1000));
    CHECK_EQ(xpl_store_maintain(s, &raise, NULL, NULL), XPL_OK);
    for (uint64_t i = 1; i < 7; i++)
        CHECK(get_n(s, i, 1000) == (i % 2 == 0));
    CHECK_EQ(ask("SELECT count(*) FROM result_data"), 3);
}

// One content in several files: remembered over a restart, and there while one of them is.
static void test_files(void) {
    struct test_key k1, k3;
    struct xpl_profile_id id;
    (void)key_of(1, &k1);
    (void)key_of(3, &k3);
    struct xpl_store *s = open_store(0);
    CHECK(!xpl_store_find_file(s, &k1.files[0], &id));
    CHECK(!xpl_store_has_size(s, 1));
    put_file(s, 1);
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    CHECK(xpl_store_find_file(s, &k1.files[0], &id));
    CHECK(xpl_profile_id_eq(&id, &k1.profiles[0]));
    CHECK(xpl_store_has_size(s, 1) && !xpl_store_has_size(s, 3));
    struct xpl_fingerprint other = k1.files[0];
    other.ctime_ns++;
    CHECK(!xpl_store_find_file(s, &other, &id));
    xpl_store_close(s);
    s = open_store(0);
    CHECK(xpl_store_find_file(s, &k1.files[0], &id));
    // The file of key 3 turns out to hold the same bytes.
    CHECK_EQ(xpl_store_put_file(s, &k3.files[0], &k1.profiles[0], NULL), XPL_OK);
    CHECK(xpl_store_find_file(s, &k3.files[0], &id));
    CHECK(xpl_profile_id_eq(&id, &k1.profiles[0]));
    const uint64_t puts = stats_of(s).puts;
    const struct xpl_host h3 = {
        .name = XPL_STR("h"), .path = XPL_STR("h"), .fingerprint = k3.files[0]};
    const struct xpl_session se = {
        .name = XPL_STR("a"), .path = XPL_STR("a"), .hosts = &h3, .n_hosts = 1, .changed = 1};
    const struct xpl_snapshot snap = {.sessions = &se, .n_sessions = 1, .generation = 1};
    CHECK_EQ(xpl_store_put_catalogue(s, &snap, NULL, NULL), XPL_OK);
    CHECK_EQ(stats_of(s).puts, puts + 1);
    CHECK_EQ(maintain(s, 0, NULL), XPL_OK);
    CHECK(get_n(s, 1, 100)); // one of its two files is there
    CHECK_EQ(ask("SELECT count(*) FROM profile_files"), 1);
    // The file gets other bytes.
    CHECK_EQ(xpl_store_put_file(s, &k3.files[0], &k3.profiles[0], NULL), XPL_OK);
    CHECK(xpl_store_find_file(s, &k3.files[0], &id));
    CHECK(xpl_profile_id_eq(&id, &k3.profiles[0]));
    xpl_store_close(s);
}

// After a remount every file is unknown: what may be a copy keeps its results alive.
static void test_unknown_files(void) {
    struct test_key k1;
    (void)key_of(1, &k1);
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    put_file(s, 1);
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    struct xpl_host h = {.name = XPL_STR("h"), .path = XPL_STR("h"), .fingerprint = k1.files[0]};
    h.fingerprint.dev = 5;
    const struct xpl_session se = {
        .name = XPL_STR("a"), .path = XPL_STR("a"), .hosts = &h, .n_hosts = 1, .changed = 1};
    struct xpl_snapshot snap = {.sessions = &se, .n_sessions = 1, .generation = 1};
    CHECK_EQ(xpl_store_put_catalogue(s, &snap, NULL, NULL), XPL_OK);
    CHECK_EQ(maintain(s, 0, NULL), XPL_OK);
    CHECK(get_n(s, 1, 100));
    struct test_key k3; // it is another profile of that size
    CHECK_EQ(xpl_store_put_file(s, &h.fingerprint, &key_of(3, &k3)->profiles[0], NULL), XPL_OK);
    CHECK_EQ(maintain(s, 0, NULL), XPL_OK);
    CHECK(!get_n(s, 1, 100));
}

// The secret is the store's: it stays over a restart, a rebuild, and is the same for a reader.
static void test_secret(void) {
    uint8_t first[XPL_STORE_SECRET], now[XPL_STORE_SECRET];
    new_dir();
    struct xpl_store *s = open_store(0), *r = open_store(0);
    const uint64_t generation = xpl_store_get_secret(s, first);
    CHECK_EQ(generation, xpl_store_secret_generation(s));
    (void)get_n(r, 1, 1); // opens its database
    (void)xpl_store_get_secret(r, now);
    CHECK(memcmp(first, now, sizeof now) == 0);
    xpl_store_close(r);
    CHECK(unlink(in_dir("cache.db")) == 0);
    CHECK_EQ(put_n(s, 1, 10, NULL), XPL_OK); // in a new file
    CHECK_EQ(xpl_store_get_secret(s, now), generation);
    CHECK(memcmp(first, now, sizeof now) == 0);
    xpl_store_close(s);
    s = open_store(0);
    (void)xpl_store_get_secret(s, now);
    CHECK(memcmp(first, now, sizeof now) == 0);
    xpl_store_close(s);
    remove_dir();
    new_dir(); // another store has another one
    s = open_store(0);
    (void)xpl_store_get_secret(s, now);
    CHECK(memcmp(first, now, sizeof now) != 0);
    xpl_store_close(s);
    remove_dir();
}

// Whatever keeps the database from being opened, writing goes on soon after it is gone.
static void test_writes_again(void) {
    CHECK(mkdir(in_dir("cache.db"), 0700) == 0);
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_FAILED_PRECONDITION);
    CHECK(rmdir(in_dir("cache.db")) == 0);
    int waited_ms = 0;
    while (put_n(s, 1, 100, NULL) != XPL_OK) {
        const struct timespec pause = {.tv_nsec = 5000000};
        (void)nanosleep(&pause, NULL);
        CHECK((waited_ms += 5) < 60000);
    }
    CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
    CHECK(get_n(s, 1, 100));
    CHECK(!stats_of(s).catalogue_known);
    put_catalogue(s, true, 1);
    CHECK(stats_of(s).catalogue_known);
    CHECK(unlink(in_dir("cache.db")) == 0);
    CHECK_EQ(put_n(s, 2, 100, NULL), XPL_OK);
    CHECK(!stats_of(s).catalogue_known); // its tables are to be written again
}

static void test_removed_under_us(void) {
    struct xpl_store *s = open_store(0);
    CHECK_EQ(put_n(s, 1, 1000, NULL), XPL_OK);
    CHECK(get_n(s, 1, 1000));
    char cmd[200];
    (void)snprintf(cmd, sizeof cmd, "rm -rf %s", store_dir);
    CHECK(system(cmd) == 0);
    CHECK(!get_n(s, 1, 1000));
    CHECK_EQ(put_n(s, 2, 1000, NULL), XPL_OK);
    expect_notice(s, "was removed while it was in use");
    CHECK(get_n(s, 2, 1000));
    CHECK(!get_n(s, 1, 1000));
    xpl_store_close(s);
    s = open_store(0);
    CHECK(get_n(s, 2, 1000));
    xpl_store_close(s);
}

// A database of version 1: what hung on files goes, LOGDIR's tables stay, and it works.
static void test_migration(void) {
    char *sql = NULL;
    size_t n = 0;
    FILE *f = fopen(XPL_TEST_DATA "/cache_db_v1.sql", "rb");
    CHECK(f && getdelim(&sql, &n, 0, f) > 0);
    CHECK(fclose(f) == 0);
    do_sql(sql);
    free(sql);
    CHECK_EQ(ask("SELECT count(*) FROM ops"), 1);
    struct xpl_store *s = open_store(0);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
    expect_quiet(s);
    CHECK_EQ(ask("PRAGMA user_version"), 6);
    CHECK_EQ(ask("SELECT count(*) FROM steps WHERE session_captured_ns > 0"), 0);
    CHECK_EQ(ask("SELECT count(*) FROM hlo_instructions"), 0);
    CHECK_EQ(ask("SELECT count(*) FROM results"), 0);
    CHECK_EQ(ask("SELECT count(*) FROM ops"), 0);
    CHECK_EQ(ask("SELECT count(*) FROM profiles"), 0);
    CHECK_EQ(ask("SELECT count(*) FROM hosts"), 1);
    CHECK_EQ(ask("SELECT length(value) FROM settings"), XPL_STORE_SECRET);
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    CHECK(get_n(s, 1, 100));
    CHECK_EQ(xpl_store_check(s, NULL, NULL, NULL), XPL_OK);
    xpl_store_close(s);
    CHECK_EQ(count_files("cache.db.broken"), 0);
}

// A database of version 4: it keeps its rows, and gets those of memory.
static void test_migration_of_rows(void) {
    struct test_key k;
    (void)key_of(1, &k);
    struct xpl_store *s = open_store(0);
    put_row(s, 1, "kept");
    xpl_store_close(s);
    do_sql("DROP VIEW hlo_instructions; DROP VIEW ops_with_idle; DROP VIEW ops;"
           "CREATE VIEW ops AS SELECT 1; DROP VIEW memory; DROP TABLE memory_rows;"
           "ALTER TABLE profiles DROP COLUMN memory_version; PRAGMA user_version=4");
    s = open_store(0);
    expect_quiet(s);
    CHECK_EQ(ask("PRAGMA user_version"), 6);
    CHECK(xpl_store_has_rows(s, &k.profiles[0], XPL_ROWS_OPS, 7));
    CHECK(!xpl_store_has_rows(s, &k.profiles[0], XPL_ROWS_TIMES, 7));
    put_memory(s, 1, "bfc");
    CHECK(xpl_store_has_rows(s, &k.profiles[0], XPL_ROWS_TIMES, 7));
    CHECK_EQ(ask("SELECT count(*) FROM op_rows"), 1);
    CHECK_EQ(ask("SELECT peak_bytes FROM memory_rows"), 5);
    CHECK_EQ(ask("SELECT count(*) FROM names"), 2);
    xpl_store_close(s);
}

// SQLite's copy of the data counts, too: without room for it the result is not kept.
static void test_memory(void) {
    enum { BYTES = 3000000 };
    struct test_key k;
    new_dir();
    XPL_AUTO(drop_store) struct xpl_store *s = open_store(0);
    xpl_heap_set_budget(xpl_heap_in_use() + BYTES / 2);
    CHECK_EQ(put_n(s, 1, BYTES, NULL), XPL_RESOURCE_EXHAUSTED);
    CHECK(!xpl_store_has(s, key_of(1, &k)));
    CHECK_EQ(put_n(s, 2, BYTES / 4, NULL), XPL_OK);
    xpl_heap_set_budget(SIZE_MAX);
    const size_t before = xpl_heap_in_use();
    CHECK_EQ(put_n(s, 1, BYTES, NULL), XPL_OK);
    CHECK_EQ(xpl_heap_in_use(), before);
    CHECK(get_n(s, 1, BYTES));
    CHECK(get_n(s, 2, BYTES / 4));
}

int main(void) {
    static void (*const tests[])(void) = {test_reopened,
                                          test_two_daemons,
                                          test_versions,
                                          test_eviction,
                                          test_maintenance,
                                          test_cancelled_catalogue,
                                          test_cancelled_maintenance,
                                          test_current_versions,
                                          test_files,
                                          test_unknown_files,
                                          test_migration,
                                          test_migration_of_rows,
                                          test_writes_again,
                                          test_removed_under_us};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        new_dir();
        tests[i]();
        remove_dir();
    }
    test_secret();
    test_memory();
    return 0;
}
