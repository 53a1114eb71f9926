// SPDX-License-Identifier: Apache-2.0
// What only a store on PostgreSQL can meet: daemons that migrate at once, other schemas, servers
// that stop, hang, forbid or lie, and passwords.  What every store promises is in
// test_store_conformance.c.
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/captures.h"
#include "tests/unit/storage/pg_database.h"
#include "tests/unit/storage/store_helpers.h"

static xpl_status_t try_url(const char *url, struct xpl_store **ret, struct xpl_error *err) {
    const struct xpl_store_options o = {.size = sizeof o, .dir = "", .url = url};
    return xpl_store_open(&o, ret, err);
}

static struct xpl_store *open_pg(void) {
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    CHECK_OK(try_url(pg_url(database), &s, &err), &err);
    return s;
}

// For what takes a second or two; a busy machine may need more.
#define PATIENCE_NS (UINT64_C(60) * 1000000000)

// The store gets the role.
static void expect_role(struct xpl_store *s, enum xpl_store_role role) {
    const uint64_t begin = xpl_clock_ns();
    while (xpl_store_role(s) != role) {
        CHECK(xpl_clock_ns() - begin < PATIENCE_NS);
        pg_pause_ms(10);
    }
}

// As expect_notice, of what the link's thread does next.
static void wait_for_notice(struct xpl_store *s, const char *word) {
    const uint64_t begin = xpl_clock_ns();
    char buf[400] = "";
    while (!xpl_store_next_notice(s, buf, sizeof buf) || !strstr(buf, word)) {
        CHECK(xpl_clock_ns() - begin < PATIENCE_NS);
        pg_pause_ms(10);
    }
}

// ---- schema ----

enum { DAEMONS = 6 };

static void *open_one(void *arg) {
    *(struct xpl_store **)arg = open_pg();
    return NULL;
}

static void test_migrations_at_once(void) {
    pthread_t t[DAEMONS];
    struct xpl_store *s[DAEMONS];
    uint8_t secret[2][XPL_STORE_SECRET];
    for (size_t i = 0; i < DAEMONS; i++)
        CHECK(pthread_create(&t[i], NULL, open_one, &s[i]) == 0);
    for (size_t i = 0; i < DAEMONS; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    for (uint64_t i = 0; i < DAEMONS; i++) {
        expect_role(s[i], XPL_STORE_WRITER);
        (void)xpl_store_get_secret(s[i], secret[i > 0]);
        CHECK(memcmp(secret[0], secret[i > 0], XPL_STORE_SECRET) == 0);
        CHECK_EQ(put_n(s[i], i, 100, NULL), XPL_OK);
    }
    for (uint64_t i = 0; i < DAEMONS; i++) {
        CHECK(get_n(s[i], (i + 1) % DAEMONS, 100));
        xpl_store_close(s[i]);
    }
    expect_sql("SELECT count(*) FROM xplaned_schema WHERE version=9");
}

// Databases of the first schema and of a later one: their results are found after the migration,
// and new ones are stored.
static void test_older_schemas(void) {
    static const char *const dumps[] = {XPL_TEST_DATA "/postgresql_v1.sql",
                                        XPL_TEST_DATA "/postgresql_v9.sql"};
    for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
        char *sql = NULL;
        size_t n = 0;
        FILE *const f = fopen(dumps[i], "rb");
        CHECK(f && getdelim(&sql, &n, 0, f) > 0);
        CHECK_EQ(fclose(f), 0);
        make_database();
        pg_sql(database, sql);
        free(sql);
        struct xpl_store *const s = open_pg();
        expect_role(s, XPL_STORE_WRITER);
        CHECK(get_n(s, 1, 100) && get_n(s, 2, 3000));
        CHECK_EQ(put_n(s, 3, 100, NULL), XPL_OK);
        CHECK(get_n(s, 3, 100));
        xpl_store_close(s);
        expect_sql("SELECT count(*)=1 FROM xplaned_schema WHERE version=9");
    }
}

// A backup as docs/operation.md says, while a daemon uses the database, and daemons on a database
// that was restored from it.
// Runs a capture.  Returns its number.
static uint64_t capture(struct xpl_store *s) {
    struct xpl_history_capture c = {.state = XPL_HISTORY_RUNNING, .session = XPL_STR("run")};
    struct xpl_error err = {0};
    CHECK_OK(xpl_store_captures(s)->begin(s, &c, NULL, 60000, &c.id, &err), &err);
    c.state = 3;
    CHECK_OK(xpl_store_captures(s)->put(s, &c, false, &err), &err);
    return c.id;
}

// Captures and schedules are in the backup, and numbers of new captures are greater.
static void check_captures(struct xpl_store *s, uint64_t capture_id, uint64_t schedule_id) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_history_capture *captures;
    struct xpl_history_schedule *schedules;
    struct xpl_error err = {0};
    size_t n;
    CHECK_OK(xpl_store_captures(s)->list(s, 0, 10, &a, &captures, &n, &err), &err);
    CHECK(n == 1 && captures[0].id == capture_id && captures[0].state == 3);
    CHECK_OK(xpl_store_captures(s)->schedules(s, &a, &schedules, &n, &err), &err);
    CHECK(n == 1 && schedules[0].id == schedule_id && schedules[0].request.len == 7);
    CHECK(capture(s) > capture_id);
}

static void test_backup(void) {
    char cmd[800];
    uint8_t secret[2][XPL_STORE_SECRET];
    if (system("command -v pg_dump pg_restore >/dev/null") != 0) return; // tools of the server
    make_database();
    struct xpl_store *s = open_pg();
    expect_role(s, XPL_STORE_WRITER);
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    CHECK_EQ(put_n(s, 2, 3000, NULL), XPL_OK);
    (void)xpl_store_get_secret(s, secret[0]);
    const struct xpl_history_schedule schedule = {.request = {(const uint8_t *)"request", 7}};
    const uint64_t capture_id = capture(s);
    uint64_t schedule_id = 0;
    CHECK_OK(xpl_store_captures(s)->add_schedule(s, &schedule, 60000, &schedule_id, NULL), NULL);
    char file[] = "/tmp/xplaned-dump-XXXXXX";
    const int fd = mkstemp(file);
    CHECK(fd >= 0 && close(fd) == 0);
    (void)snprintf(cmd, sizeof cmd, "pg_dump -Fc -f %s '%s'", file, pg_url(database));
    CHECK_EQ(system(cmd), 0);
    CHECK_EQ(put_n(s, 3, 100, NULL), XPL_OK); // after the backup
    xpl_store_close(s);
    make_database();
    (void)snprintf(cmd, sizeof cmd, "pg_restore --exit-on-error --no-owner -d '%s' %s",
                   pg_url(database), file);
    CHECK_EQ(system(cmd), 0);
    CHECK_EQ(unlink(file), 0);
    s = open_pg();
    expect_role(s, XPL_STORE_WRITER);
    (void)xpl_store_get_secret(s, secret[1]);
    CHECK(memcmp(secret[0], secret[1], XPL_STORE_SECRET) == 0);
    CHECK(get_n(s, 1, 100) && get_n(s, 2, 3000) && !get_n(s, 3, 100));
    CHECK_EQ(put_n(s, 3, 100, NULL), XPL_OK);
    CHECK(get_n(s, 3, 100));
    check_captures(s, capture_id, schedule_id);
    xpl_store_close(s);
}

static void test_other_schemas(void) {
    const struct xpl_store_version v = {XPL_STORE_ANSWER, XPL_STR("kernel_stats"), 7};
    const struct xpl_store_maintenance m = {.current = &v, .n_current = 1, .gone_s = 3600};
    struct xpl_store *s = open_pg();
    struct xpl_error err = {0};
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    // A daemon that is connected finds out at its next maintenance.
    pg_sql(database, "UPDATE xplaned_schema SET version=99");
    CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
    CHECK_STATUS(xpl_store_maintain(s, &m, NULL, NULL), XPL_UNAVAILABLE, NULL);
    expect_notice(s, "newer xplaned");
    expect_role(s, XPL_STORE_READER);
    CHECK(get_n(s, 1, 100));
    xpl_store_close(s);
    s = open_pg();
    CHECK_EQ(xpl_store_role(s), XPL_STORE_READER);
    expect_notice(s, "only read: a newer xplaned");
    CHECK(get_n(s, 1, 100));
    CHECK_EQ(put_n(s, 2, 100, NULL), XPL_FAILED_PRECONDITION);
    // Tables that it cannot read are not used, and not asked for again and again.
    pg_sql(database, "ALTER TABLE results RENAME COLUMN small TO inline_data");
    CHECK(!get_n(s, 1, 100));
    wait_for_notice(s, "cannot be used (a newer xplaned");
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    pg_sql(database, "ALTER TABLE results RENAME COLUMN inline_data TO small");
    // One older than ours is brought up to it.
    pg_sql(database, "DROP TABLE jobs; CREATE TABLE jobs(digest bytea); ALTER TABLE daemons"
                     " DROP COLUMN n_threads; DROP TABLE captures, capture_hosts,"
                     " capture_targets, schedules, schedule_sessions, listings, memory_rows"
                     " CASCADE; DROP VIEW ops_with_idle CASCADE;"
                     " ALTER TABLE profiles DROP COLUMN memory_version;"
                     " UPDATE xplaned_schema SET version=3");
    expect_role(s, XPL_STORE_WRITER);
    CHECK(get_n(s, 1, 100));
    expect_sql("SELECT version=9 AND NOT EXISTS (SELECT files FROM jobs) AND NOT EXISTS"
               " (SELECT 1 FROM schedules) AND NOT EXISTS (SELECT peak_bytes FROM memory)"
               " FROM xplaned_schema");
    xpl_store_close(s);
    make_database();
    pg_sql(database, "CREATE TABLE results(of_another_program int)");
    CHECK_EQ(try_url(pg_url(database), &s, &err), XPL_FAILED_PRECONDITION);
    CHECK(strstr(err.msg, "another program"));
}

// Tables that go while they are in use are made again.
static void test_dropped_tables(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    pg_sql(database, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    CHECK(!get_n(s, 1, 100));
    for (int i = 0; put_n(s, 1, 100, NULL) != XPL_OK; i++) {
        CHECK(i < 6000);
        pg_pause_ms(10);
    }
    CHECK(get_n(s, 1, 100));
}

static void set_read_only(bool on) {
    char sql[120];
    (void)snprintf(sql, sizeof sql, "ALTER DATABASE %s SET default_transaction_read_only=%s",
                   database, on ? "on" : "off");
    pg_sql("postgres", sql);
}

static void test_read_only(void) {
    set_read_only(true);
    struct xpl_store *s = open_pg();
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    expect_notice(s, "read only");
    xpl_store_close(s);
    set_read_only(false);
    s = open_pg();
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    xpl_store_close(s);
    set_read_only(true);
    s = open_pg();
    CHECK_EQ(xpl_store_role(s), XPL_STORE_READER);
    CHECK(get_n(s, 1, 100));
    CHECK_EQ(put_n(s, 2, 100, NULL), XPL_FAILED_PRECONDITION);
    set_read_only(false); // a standby was promoted
    expect_role(s, XPL_STORE_WRITER);
    CHECK_EQ(put_n(s, 2, 100, NULL), XPL_OK);
    CHECK(get_n(s, 2, 100));
    xpl_store_close(s);
}

// ---- bytes ----

static void test_damaged_chunks(void) {
    enum { LEN = 5000000 };
    static const char *const damage[] = {
        "DELETE FROM result_data WHERE seq=2",
        "DELETE FROM result_data",
        "DELETE FROM result_data WHERE seq=(SELECT max(seq) FROM result_data)",
        "UPDATE result_data SET data=set_byte(data, 500, 255-get_byte(data, 500)) WHERE seq=1",
        "UPDATE result_data SET data=substr(data, 1, length(data)-1) WHERE seq=3",
        "UPDATE result_data SET data='' WHERE seq=0",
        "UPDATE result_data SET seq=seq+100 WHERE seq=0",
        "INSERT INTO result_data SELECT week, result_id, 99, data FROM result_data WHERE seq=4",
        "UPDATE results SET size_bytes=size_bytes-1",
        "UPDATE results SET size_bytes=900000000",
        "UPDATE results SET size_bytes=-5",
        "UPDATE results SET checksum=0",
        "UPDATE results SET meta='other'",
        "UPDATE results SET week=week+1",
        "UPDATE results SET week=NULL",
    };
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        CHECK_EQ(put_n(s, 1, LEN, NULL), XPL_OK);
        CHECK(get_n(s, 1, LEN));
        pg_sql(database, damage[i]);
        const uint64_t errors = stats_of(s).read_errors;
        if (get_n(s, 1, LEN)) fprintf(stderr, "%s\n", damage[i]);
        CHECK(stats_of(s).read_errors > errors);
        CHECK_EQ(maintain(s, 0, NULL), XPL_OK); // damaged rows are removed
        expect_sql("SELECT count(*)=0 FROM results");
    }
    CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER); // no fault of the connection
}

static void test_small_and_large(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    CHECK_EQ(put_n(s, 1, 1000, NULL), XPL_OK);
    expect_sql("SELECT count(*)=0 FROM result_data");
    CHECK_EQ(put_n(s, 2, (3 << 20) + 1, NULL), XPL_OK);
    expect_sql("SELECT count(*)=4 AND max(length(data))<=1048576+100 FROM result_data");
    expect_sql("SELECT attstorage='e' FROM pg_attribute a JOIN pg_class c ON c.oid=attrelid"
               " WHERE relname ~ '^result_data_' AND relkind='r' AND attname='data'");
    CHECK(get_n(s, 1, 1000) && get_n(s, 2, (3 << 20) + 1));
    // Partitions of the past that are empty go.
    pg_sql(database, "CREATE TABLE result_data_2000 PARTITION OF result_data FOR VALUES IN (2000)");
    CHECK_EQ(maintain(s, 0, NULL), XPL_OK);
    expect_sql("SELECT to_regclass('result_data_2000') IS NULL");
    CHECK(get_n(s, 2, (3 << 20) + 1));
}

// ---- rows ----

static void test_rows(void) {
    struct test_key k;
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    const struct xpl_op_row ops[] = {
        {.on_device = true,
         .name = XPL_STR("fusion.1"),
         .module = XPL_STR("jit"),
         .time_ps = 1000,
         .self_time_ps = 5,
         .flops = 2000,
         .bytes_accessed = XPL_ROW_NULL},
        {.name = XPL_STR("bad \xff and \0 byte"), .category = XPL_STR("jit")}};
    const struct xpl_kernel_row kernels[] = {
        {.name = XPL_STR("k"), .block = {1, 2, 3}, .grid = {4, 5, 6}, .occupancy_percent = NAN},
        {.name = XPL_STR("k"), .occupancy_percent = 12.5, .uses_tensor_core = true}};
    const struct xpl_step_row steps[] = {{.step_num = 7, .name = XPL_STR("seven"), .idle_ps = 3}};
    const struct xpl_rows rows = {.ops = ops,
                                  .n_ops = 2,
                                  .kernels = kernels,
                                  .n_kernels = 2,
                                  .device_type = XPL_STR("TPU"),
                                  .device_cores = 4};
    (void)key_of(1, &k);
    CHECK_EQ(xpl_store_put_file(s, &k.files[0], &k.profiles[0], NULL), XPL_OK);
    for (int twice = 0; twice < 2; twice++)
        CHECK_EQ(xpl_store_put_rows(s, &k.profiles[0], 3, &rows, NULL), XPL_OK);
    CHECK(xpl_store_has_rows(s, &k.profiles[0], XPL_ROWS_OPS, 3));
    const struct xpl_host host = {
        .name = XPL_STR("h"), .path = XPL_STR("p"), .fingerprint = k.files[0]};
    const struct xpl_session se = {.name = XPL_STR("run"),
                                   .path = XPL_STR("run"),
                                   .hosts = &host,
                                   .n_hosts = 1,
                                   .mtime_ns = 9,
                                   .captured_ns = 8,
                                   .changed = 1};
    const struct xpl_snapshot snap = {.sessions = &se, .n_sessions = 1, .generation = 1};
    CHECK_EQ(xpl_store_put_catalogue(s, &snap, NULL, NULL), XPL_OK);
    expect_sql("SELECT count(*)=1 FROM ops WHERE on_device AND session='run' AND host='h' AND"
               " name='fusion.1' AND module='jit' AND category IS NULL AND flops=2000 AND"
               " bytes_accessed IS NULL AND session_mtime_ns=9 AND session_captured_ns=8");
    expect_sql("SELECT count(*)=2 FROM ops");
    expect_sql("SELECT gflops_per_s=2000 AND session_captured_ns=8 FROM hlo_instructions");
    expect_sql("SELECT count(*)=2 AND sum(grid_z)=6 AND max(occupancy_percent)=12.5 AND"
               " count(occupancy_percent)=1 FROM kernels WHERE name='k' AND op_name IS NULL");
    expect_sql("SELECT count(*)=4 FROM names");
    const struct xpl_memory_row memory[] = {{XPL_STR("GPU_0_bfc"), 7, 9},
                                            {XPL_STR("k"), 1, XPL_ROW_NULL}};
    const struct xpl_rows use = {
        .kind = XPL_ROWS_TIMES, .steps = steps, .n_steps = 1, .memory = memory, .n_memory = 2};
    for (int twice = 0; twice < 2; twice++)
        CHECK_EQ(xpl_store_put_rows(s, &k.profiles[0], 3, &use, NULL), XPL_OK);
    expect_sql("SELECT count(*)=2 AND sum(peak_bytes)=8 AND sum(capacity_bytes)=9 AND"
               " min(session_captured_ns)=8 FROM memory WHERE session='run' AND host='h'");
    expect_sql("SELECT step_num=7 AND name='seven' AND idle_ps=3 FROM steps");
    expect_sql("SELECT n_rows=5 FROM profiles");
    expect_sql("SELECT count(*)=2 FROM ops");
    // A daemon that began before there were such rows sweeps names and profiles.
    pg_sql(database, "DELETE FROM names n WHERE id NOT IN (SELECT name_id FROM op_rows)");
    expect_sql("SELECT min(name)='GPU_0_bfc' AND max(name)='k' FROM memory");
    pg_sql(database, "DELETE FROM profiles");
    expect_sql("SELECT count(*)=0 FROM memory_rows");
}

// A profile whose rows are none has nothing that could be removed: the limit is kept all the same.
static void test_no_rows_under_limit(void) {
    enum { OPS = 5000, LIMIT = 1930000 }; // 960,000 bytes of rows, which takes two statements
    static struct xpl_op_row ops[OPS];
    const struct xpl_store_options o = {
        .size = sizeof o, .dir = "", .url = pg_url(database), .limit_bytes = LIMIT};
    const struct xpl_rows none = {0}, some = {.ops = ops, .n_ops = OPS};
    struct test_key k;
    XPL_AUTO(drop_store) struct xpl_store *s = NULL;
    (void)key_of(5, &k);
    CHECK_OK(xpl_store_open(&o, &s, NULL), NULL);
    for (int i = 0; i < OPS; i++)
        ops[i].name = XPL_STR("op");
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(xpl_store_put_rows(s, &k.profiles[i], 3, i ? &some : &none, NULL), XPL_OK);
        pg_pause_ms(5);
    }
    expect_sql("SELECT count(*)=2 FROM (SELECT FROM op_rows GROUP BY profile_id HAVING"
               " max(seq)=4999 AND count(*)=5000 AND count(DISTINCT seq)=5000) x");
    (void)alarm(120);
    CHECK_EQ(put_n(s, 1, 20000, NULL), XPL_OK);
    (void)alarm(0);
    CHECK(get_n(s, 1, 20000) && stats_of(s).used_bytes <= LIMIT);
    CHECK(!xpl_store_has_rows(s, &k.profiles[1], XPL_ROWS_OPS, 3) &&
          xpl_store_has_rows(s, &k.profiles[2], XPL_ROWS_OPS, 3));
}

// Of daemons that share a database one keeps the tables of sessions, until it leaves.
static void test_lease(void) {
    struct xpl_store *a = open_pg(), *b = open_pg();
    const struct xpl_session one = {.name = XPL_STR("one"), .path = XPL_STR("one"), .changed = 1},
                             two = {.name = XPL_STR("two"), .path = XPL_STR("two"), .changed = 1};
    const struct xpl_snapshot sa = {.sessions = &one, .n_sessions = 1, .generation = 1};
    const struct xpl_snapshot sb = {.sessions = &two, .n_sessions = 1, .generation = 1};
    CHECK_EQ(xpl_store_put_catalogue(a, &sa, NULL, NULL), XPL_OK);
    CHECK_EQ(xpl_store_put_catalogue(b, &sb, NULL, NULL), XPL_OK);
    CHECK(stats_of(a).catalogue_known && !stats_of(b).catalogue_known);
    expect_sql("SELECT string_agg(name, ',')='one' FROM sessions");
    xpl_store_close(a);
    for (int i = 0; !stats_of(b).catalogue_known; i++) {
        CHECK(i < 600);
        pg_pause_ms(100);
        CHECK_EQ(xpl_store_put_catalogue(b, &sb, NULL, NULL), XPL_OK);
    }
    expect_sql("SELECT string_agg(name, ',')='two' FROM sessions");
    xpl_store_close(b);
}

// A round that finds nothing to do is one statement, whatever the number of tools; one that finds
// old rows removes them.
static void test_quiet_maintenance(void) {
    enum { VERSIONS = 60 };
    static char names[VERSIONS][16];
    struct xpl_store_version current[VERSIONS + 1] = {
        {XPL_STORE_ANSWER, XPL_STR("kernel_stats"), 3000000000}};
    const struct xpl_snapshot none = {.generation = 1};
    struct xpl_store *const holder = open_pg(), *const other = open_pg();
    for (size_t i = 0; i < VERSIONS; i++) {
        (void)snprintf(names[i], sizeof names[i], "tool%zu", i);
        current[i + 1] = (struct xpl_store_version){XPL_STORE_ANSWER, xpl_str_from(names[i]), 7};
    }
    const struct xpl_store_maintenance m = {
        .current = current + 1, .n_current = VERSIONS, .gone_s = 3600};
    const struct xpl_store_maintenance raised = {
        .current = current, .n_current = VERSIONS + 1, .gone_s = 3600};
    CHECK_EQ(xpl_store_put_catalogue(holder, &none, NULL, NULL), XPL_OK);
    CHECK_EQ(put_n(holder, 1, 100, NULL), XPL_OK);
    for (int i = 0; i < 2; i++) { // the first also does the work of each ten minutes
        const uint64_t before = stats_of(other).statements;
        CHECK_EQ(xpl_store_maintain(other, &m, NULL, NULL), XPL_OK);
        CHECK_EQ(xpl_store_maintain(holder, &m, NULL, NULL), XPL_OK);
        CHECK_EQ(xpl_store_put_catalogue(other, &none, NULL, NULL),
                 XPL_OK); // another daemon has it
        if (i) CHECK_EQ(stats_of(other).statements - before, 1);
    }
    const uint64_t before = stats_of(holder).statements;
    CHECK_EQ(xpl_store_maintain(holder, &m, NULL, NULL), XPL_OK);
    CHECK(stats_of(holder).statements - before < 20);
    CHECK_EQ(stats_of(other).used_bytes, stats_of(holder).used_bytes);
    CHECK(stats_of(other).used_bytes >= 100 && get_n(other, 1, 100));
    CHECK_EQ(xpl_store_maintain(other, &raised, NULL, NULL), XPL_OK);
    CHECK(!get_n(other, 1, 100));
    xpl_store_close(holder);
    xpl_store_close(other);
}

// ---- passwords ----

static void expect_no_secret(struct xpl_store *s, const char *secret) {
    char text[400];
    int n = 0;
    for (; xpl_store_next_notice(s, text, sizeof text); n++)
        CHECK(!strstr(text, secret));
    CHECK(n > 0);
}

static void test_passwords(void) {
    char url[300], hba[4200];
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    (void)snprintf(hba, sizeof hba, "%s/pg_hba.conf", pg.data);
    FILE *const f = fopen(hba, "w");
    CHECK(f && fputs("local all guarded scram-sha-256\nlocal all all trust\n", f) >= 0);
    CHECK_EQ(fclose(f), 0);
    (void)snprintf(url, sizeof url,
                   "CREATE ROLE guarded LOGIN PASSWORD 'open-sesame'; GRANT ALL ON SCHEMA public TO"
                   " guarded; CREATE TABLE before AS SELECT pg_conf_load_time() AS at;"
                   " SELECT pg_reload_conf()");
    pg_sql(database, url);
    wait_sql("SELECT pg_conf_load_time() > at FROM before");
    (void)snprintf(url, sizeof url, "postgresql://guarded:wrong-sesame@/%s?host=%s", database,
                   pg.socket);
    CHECK_OK(try_url(url, &s, &err), &err);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    expect_no_secret(s, "sesame");
    CHECK_EQ(put_n(s, 1, 10, &err), XPL_FAILED_PRECONDITION);
    CHECK(!strstr(err.msg, "sesame"));
    xpl_store_close(s);
    (void)snprintf(url, sizeof url, "postgresql://guarded:open-sesame@/%s?host=%s", database,
                   pg.socket);
    s = NULL;
    CHECK_OK(try_url(url, &s, NULL), NULL);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
    xpl_store_close(s);
    (void)alarm(120); // stars that are hidden are found again
    (void)snprintf(url, sizeof url, "postgresql://%%2A:%%2A@/%s?host=%s", database, pg.socket);
    s = NULL;
    CHECK_OK(try_url(url, &s, NULL), NULL);
    expect_notice(s, "role \"*\" does not exist");
    xpl_store_close(s);
    (void)alarm(0);
    static const char *const bad[] = {"postgresql://u:open-sesame@[::1/d",
                                      "postgresql://u:a/open-sesame@h/d",
                                      "postgresql://u:open-sesame@h/d?nonsense=1",
                                      "host=h password=open-sesame", "mysql://u:open-sesame@h"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (struct xpl_error){0};
        CHECK_STATUS(try_url(bad[i], &s, &err), XPL_INVALID_ARGUMENT, &err);
        CHECK(!strstr(err.msg, "sesame"));
    }
}

// ---- servers that stop or hang ----

static struct xpl_store *shared;
static atomic_bool stop;
static atomic_uint_fast64_t longest_ns, asked;

static void *read_always(void *arg) {
    for (uint64_t i = (uintptr_t)arg; !atomic_load(&stop); i++) {
        const uint64_t begin = xpl_clock_ns();
        (void)get_n(shared, i % 8, 3000); // right or a miss
        const uint64_t took = xpl_clock_ns() - begin;
        if (took > atomic_load(&longest_ns)) atomic_store(&longest_ns, took);
        atomic_fetch_add(&asked, 1);
    }
    return NULL;
}

static void expect_shared_again(struct xpl_store *s, uint64_t i) {
    const uint64_t begin = xpl_clock_ns();
    while (put_n(s, i, 3000, NULL) != XPL_OK || !get_n(s, i, 3000)) {
        CHECK(xpl_clock_ns() - begin < PATIENCE_NS);
        pg_pause_ms(10);
    }
}

// A thousand lookups: were each to wait for the server, they would take minutes.
static void expect_misses(void) {
    const uint64_t begin = xpl_clock_ns(), before = atomic_load(&asked);
    while (atomic_load(&asked) <= before + 1000) {
        CHECK(xpl_clock_ns() - begin < PATIENCE_NS);
        pg_pause_ms(10);
    }
}

// Killed, as in a crash, under lookups and puts: all miss at once, and when it is back all is as
// before.
static void test_killed_server(void) {
    pthread_t t[4];
    shared = open_pg();
    for (uint64_t i = 0; i < 8; i++)
        CHECK_EQ(put_n(shared, i, 3000, NULL), XPL_OK);
    atomic_store(&stop, false);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&t[i], NULL, read_always, (void *)i) == 0);
    for (int round = 0; round < 2; round++) {
        pg_pause_ms(300);
        pg_stop(round ? SIGINT : SIGQUIT);
        for (uint64_t i = 0; i < 50; i++) {
            CHECK(put_n(shared, 100 + i, 3000, NULL) != XPL_OK);
            pg_pause_ms(10);
        }
        expect_role(shared, XPL_STORE_OFF);
        expect_misses();
        pg_start();
        expect_shared_again(shared, 200 + (uint64_t)round);
        for (uint64_t i = 0; i < 8; i++)
            CHECK(put_n(shared, i, 3000, NULL) == XPL_OK && get_n(shared, i, 3000));
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    CHECK(atomic_load(&longest_ns) < PATIENCE_NS);
    expect_notice(shared, "away");
    xpl_store_close(shared);
}

static int compare_counts(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Threads that ask all the time, more of them than connections, let others have their turn: the
// median lookup waits for about one of each of them.
static void test_turns(void) {
    enum { THREADS = 16, LOOKUPS = 41 };
    pthread_t t[THREADS];
    uint64_t others[LOOKUPS];
    shared = open_pg();
    for (uint64_t i = 0; i < 8; i++)
        CHECK_EQ(put_n(shared, i, 3000, NULL), XPL_OK);
    atomic_store(&stop, false);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, read_always, (void *)i) == 0);
    for (size_t i = 0; i < LOOKUPS; i++) {
        pg_pause_ms(10);
        const uint64_t before = atomic_load(&asked);
        CHECK(get_n(shared, i % 8, 3000));
        others[i] = atomic_load(&asked) - before;
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    qsort(others, LOOKUPS, sizeof *others, compare_counts);
    fprintf(stderr, "lookups of others in one: median %" PRIu64 ", at most %" PRIu64 "\n",
            others[LOOKUPS / 2], others[LOOKUPS - 1]);
    CHECK(others[LOOKUPS / 2] <= (uint64_t)2 * THREADS);
    xpl_store_close(shared);
}

static void test_started_without_server(void) {
    pg_stop(SIGQUIT);
    const uint64_t begin = xpl_clock_ns();
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    CHECK(xpl_clock_ns() - begin < PATIENCE_NS);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_OFF);
    CHECK(!get_n(s, 1, 10));
    CHECK_EQ(put_n(s, 1, 10, NULL), XPL_FAILED_PRECONDITION);
    pg_start();
    expect_shared_again(s, 1);
}

// The server has room for only one connection: the existing ones stay in use, lookups miss without
// waiting, and no message repeats.
static void expect_use_of_one(struct xpl_store *s) {
    char text[400];
    int n_notices = 0;
    const uint64_t begin = xpl_clock_ns();
    for (uint64_t i = 0; i < 300; i++) {
        CHECK_EQ(put_n(s, i, 100, NULL), XPL_OK);
        (void)get_n(s, i, 100);
        pg_pause_ms(10);
    }
    CHECK(xpl_clock_ns() - begin < PATIENCE_NS);
    while (xpl_store_next_notice(s, text, sizeof text))
        n_notices++;
    CHECK(n_notices <= 1);
}

static void expect_lookups(struct xpl_store *s) {
    for (int i = 0; !get_n(s, 1, 100); i++) {
        CHECK(i < 6000);
        pg_pause_ms(10);
    }
}

static void test_few_connections(void) {
    char url[300];
    XPL_AUTO(drop_store) struct xpl_store *s = NULL;
    pg_sql(database, "CREATE ROLE narrow LOGIN CONNECTION LIMIT 1;"
                     "GRANT ALL ON SCHEMA public TO narrow");
    (void)snprintf(url, sizeof url, "postgresql://narrow@/%s?host=%s", database, pg.socket);
    CHECK_OK(try_url(url, &s, NULL), NULL);
    expect_use_of_one(s);
    pg_sql(database, "ALTER ROLE narrow CONNECTION LIMIT 10");
    expect_lookups(s);
}

// Of a PgBouncer whose server has places: it says that by another state, which it has for all.
static void test_few_clients_of_pooler(void) {
    struct xpl_store *s = NULL;
    pg.clients = 1;
    const char *const why = pg_start_pooler();
    if (why) {
        fprintf(stderr, "left out: %s\n", why);
        return;
    }
    CHECK_OK(try_url(pg_url(database), &s, NULL), NULL);
    expect_use_of_one(s);
    CHECK_EQ(xpl_store_role(s), XPL_STORE_WRITER);
    pg_set_clients(20);
    expect_lookups(s);
    xpl_store_close(s);
    pg_end_pooler();
}

static void test_ended_backends(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    for (uint64_t i = 0; i < 10; i++) {
        expect_shared_again(s, i);
        pg_sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                           " application_name='xplaned'");
    }
}

// In the middle of a transaction, too: all of it or nothing.
static void test_ended_transaction(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    CHECK_EQ(xpl_store_begin(s, NULL), XPL_OK);
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    pg_sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                       " application_name='xplaned'");
    CHECK_EQ(put_n(s, 2, 100, NULL), XPL_UNAVAILABLE);
    CHECK_EQ(put_n(s, 3, 100, NULL), XPL_UNAVAILABLE);
    CHECK_EQ(xpl_store_commit(s, NULL), XPL_UNAVAILABLE);
    expect_shared_again(s, 4);
    CHECK(!get_n(s, 1, 100) && !get_n(s, 2, 100) && !get_n(s, 3, 100));
    CHECK(stats_of(s).dropped >= 3);
}

// Another client that locks the table for twice the timeout, unless it is ended.
static pid_t lock_table(const char *table) {
    char lock[120], held[200];
    (void)snprintf(lock, sizeof lock,
                   "BEGIN; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(120); COMMIT",
                   table);
    (void)snprintf(held, sizeof held,
                   "DO $$ BEGIN ASSERT EXISTS (SELECT FROM pg_locks WHERE granted AND"
                   " relation='%s'::regclass AND mode='AccessExclusiveLock'); END $$",
                   table);
    const pid_t pid = pg_spawn((const char *const[]){"psql", "-XqAt", "-h", pg.socket, "-U",
                                                     "postgres", "-d", database, "-c", lock, NULL});
    for (int i = 0; pg_try(database, held) != 0; i++)
        CHECK(i < 300);
    return pid;
}

static void end_lock(pid_t pid) {
    pg_sql(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE"
                     " 'BEGIN; LOCK TABLE%'");
    CHECK(waitpid(pid, NULL, 0) == pid);
}

// Another client's lock: no answer, neither to lookups nor to puts.
static void test_time_limits(void) {
    XPL_AUTO(drop_store) struct xpl_store *s = open_pg();
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    const pid_t pid = lock_table("results");
    const uint64_t begin = xpl_clock_ns();
    CHECK(!get_n(s, 1, 100));
    CHECK(put_n(s, 2, 100, NULL) != XPL_OK);
    CHECK(xpl_clock_ns() - begin < PATIENCE_NS);
    end_lock(pid);
    expect_shared_again(s, 3);
    CHECK(get_n(s, 1, 100) && !get_n(s, 2, 100));
}

// A daemon that ends does not wait for what its last words wait for.
static void test_time_to_close(void) {
    struct xpl_store *s = open_pg();
    CHECK_EQ(put_n(s, 1, 100, NULL), XPL_OK);
    const pid_t pid = lock_table("leases");
    const uint64_t begin = xpl_clock_ns();
    xpl_store_close(s);
    CHECK(xpl_clock_ns() - begin < PATIENCE_NS);
    end_lock(pid);
}

int main(void) {
    static void (*const tests[])(void) = {test_migrations_at_once,
                                          test_older_schemas,
                                          test_backup,
                                          test_other_schemas,
                                          test_dropped_tables,
                                          test_read_only,
                                          test_damaged_chunks,
                                          test_small_and_large,
                                          test_rows,
                                          test_no_rows_under_limit,
                                          test_lease,
                                          test_quiet_maintenance,
                                          test_passwords,
                                          test_turns,
                                          test_killed_server,
                                          test_started_without_server,
                                          test_few_connections,
                                          test_few_clients_of_pooler,
                                          test_ended_backends,
                                          test_ended_transaction,
                                          test_time_limits,
                                          test_time_to_close};
    const char *const why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        const uint64_t begin = xpl_clock_ns();
        make_database();
        tests[i]();
        fprintf(stderr, "%zu: %.1f s\n", i, (double)(xpl_clock_ns() - begin) / 1e9);
    }
    return 0;
}
