// SPDX-License-Identifier: Apache-2.0
// Listings that one daemon makes for others, with a server of PostgreSQL: the lease of the scanner
// and its fence, the records that it passes on, and catalogues that list nothing while another one
// does.
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/listing_body.h"
#include "storage/store/listings.h"
#include "tests/unit/storage/fake_objects.h"
#include "tests/unit/storage/pg_database.h"

#define RUNS "job/plugins/profile/"

enum { LEASE_MS = 60000 };

static const struct xpl_listing_place place = {{1, 2, 3}};
static char dir[] = "/tmp/xplaned-test-XXXXXX";
static struct xpl_arena arena;

static struct xpl_store *open_pg(void) {
    struct xpl_store *s = NULL;
    struct xpl_error err = {0};
    const struct xpl_store_options o = {.size = sizeof o, .dir = "", .url = pg_url(database)};
    CHECK_OK(xpl_store_open(&o, &s, &err), &err);
    CHECK(xpl_store_listings(s));
    return s;
}

// ---- the store ----

static enum xpl_scanner claim(struct xpl_store *s, bool may) {
    struct xpl_error err = {0};
    enum xpl_scanner ret;
    CHECK_OK(xpl_store_listings(s)->claim(s, &place, may, LEASE_MS, &ret, &err), &err);
    return ret;
}

static void put(struct xpl_store *s, const char *name, const char *body) {
    struct xpl_error err = {0};
    const xpl_bytes_t bytes = {(const uint8_t *)body, strlen(body)};
    CHECK_OK(xpl_store_listings(s)->put(s, &place, xpl_str_from(name), bytes, 7000, &err), &err);
}

static void expect(struct xpl_store *s, const char *name, const char *body) {
    struct xpl_error err = {0};
    struct xpl_shared_listing got;
    const xpl_status_t st =
        xpl_store_listings(s)->get(s, &place, xpl_str_from(name), &arena, &got, &err);
    CHECK_STATUS(st, body ? XPL_OK : XPL_NOT_FOUND, &err);
    if (!body) return;
    CHECK_STR(((xpl_str_t){(const char *)got.body.ptr, got.body.len}), xpl_str_from(body));
    CHECK(got.age_ms >= 7000 && got.age_ms < 60000);
}

// Names of what changed since, each followed by a blank; returns where to go on.
static int64_t expect_changed(struct xpl_store *s, int64_t since, const char *names) {
    struct xpl_error err = {0};
    struct xpl_changed_listings got;
    char text[200] = "";
    CHECK_OK(xpl_store_listings(s)->find_changed(s, &place, since, &arena, &got, &err), &err);
    for (size_t i = 0; i < got.n; i++) {
        const size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n, "%.*s ", XPL_STR_FMT(got.dirs[i]));
    }
    CHECK_STR(xpl_str_from(text), xpl_str_from(names));
    return got.generation;
}

static void expire(void) {
    pg_sql(database, "UPDATE leases SET expires_at='-infinity' WHERE name LIKE 'listings:%'");
}

static void test_lease(void) {
    make_database();
    struct xpl_store *a = open_pg(), *const b = open_pg();
    CHECK_EQ(claim(b, false), XPL_SCANNER_NOBODY);
    CHECK_EQ(claim(a, true), XPL_SCANNER_THIS);
    CHECK_EQ(claim(a, true), XPL_SCANNER_THIS);
    CHECK_EQ(claim(b, true), XPL_SCANNER_OTHER);
    CHECK_EQ(claim(b, false), XPL_SCANNER_OTHER);
    put(a, "x", "one");
    put(b, "y", "two"); // is not the scanner
    expect(b, "x", "one");
    expect(a, "y", NULL);
    expire();
    CHECK_EQ(claim(b, false), XPL_SCANNER_NOBODY);
    put(a, "x", "late");
    expect(b, "x", "one");
    CHECK_EQ(claim(b, true), XPL_SCANNER_THIS);
    CHECK_EQ(claim(a, true), XPL_SCANNER_OTHER);
    put(a, "x", "later");
    expect(b, "x", "one");
    xpl_store_close(b); // gives it back
    CHECK_EQ(claim(a, true), XPL_SCANNER_THIS);
    expect_sql("SELECT fence=3 FROM leases WHERE name LIKE 'listings:%'"); // it changed hands twice
    xpl_store_close(a);
}

// An unchanged listing is marked as new, and not written: large bodies are in a separate table,
// which each write would grow.
static void test_unchanged(void) {
    enum { LEN = 300000, TIMES = 20 };
    static char much[LEN + 1];
    uint64_t x = 88172645463325252u;
    make_database();
    struct xpl_store *const s = open_pg();
    for (size_t i = 0; i < LEN; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        much[i] = (char)(1 + x % 255);
    }
    CHECK_EQ(claim(s, true), XPL_SCANNER_THIS);
    put(s, "x", much);
    pg_sql(database, "CREATE TABLE was AS SELECT listed_at, pg_relation_size(reltoastrelid) AS n"
                     " FROM listings, pg_class WHERE relname='listings'");
    expect_sql("SELECT n>200000 FROM was");
    for (int i = 0; i < TIMES; i++)
        put(s, "x", much);
    expect_sql("SELECT pg_relation_size(reltoastrelid)=was.n AND listings.listed_at>was.listed_at"
               " FROM listings, was, pg_class WHERE relname='listings'");
    expect(s, "x", much);
    // Nor is one touched by who is not the scanner any more.
    expire();
    pg_sql(database, "UPDATE was SET listed_at=(SELECT listed_at FROM listings)");
    put(s, "x", much);
    expect_sql("SELECT listings.listed_at=was.listed_at FROM listings, was");
    xpl_store_close(s);
}

static void test_changed(void) {
    static char much[XPL_LISTING_MAX_BYTES + 2];
    make_database();
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    CHECK_EQ(claim(a, true), XPL_SCANNER_THIS);
    CHECK_EQ(expect_changed(b, 0, ""), 0);
    put(a, "x", "one");
    put(a, "y", "two");
    const int64_t at = expect_changed(b, 0, "x y ");
    put(a, "x", "one"); // as it was
    CHECK_EQ(expect_changed(b, at, "y "), at);
    put(a, "x", "other");
    CHECK_EQ(expect_changed(b, at, "y x "), at + 1);
    memset(much, 'm', sizeof much - 1);
    put(a, "x", much);
    expect(b, "x", "");
    const int64_t newest = expect_changed(b, at + 2, "x ");
    pg_sql(database, "UPDATE listings SET listed_at=listed_at-interval '2 days'");
    put(a, "y", "two");
    put(a, ".", "top");
    expect(b, "y", "two");
    CHECK_EQ(expect_changed(b, newest, "x . "), newest + 1); // else numbers would come again
    put(a, ".", "top");
    expect(b, "x", NULL); // no daemon has listed it for a day
    put(a, "x", "again");
    CHECK_EQ(expect_changed(b, newest + 1, ". x "), newest + 2);
    pg_sql(database, "UPDATE listings SET body='x'");
    struct xpl_shared_listing got;
    CHECK_EQ(xpl_store_listings(b)->get(b, &place, XPL_STR("y"), &arena, &got, NULL),
             XPL_DATA_LOSS);
    xpl_store_close(a);
    xpl_store_close(b);
}

// ---- catalogues ----

static bool match(xpl_str_t file, struct xpl_profile_file *ret) {
    if (!xpl_str_ends(file, XPL_STR(".pb"))) return false;
    *ret = (struct xpl_profile_file){.host = xpl_str_sub(file, 0, file.len - 3)};
    return true;
}

static struct xpl_catalogue *catalogue_on(struct xpl_store *s, uint64_t every_ns) {
    struct xpl_error err = {0};
    struct xpl_catalogue *c = NULL;
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = "s3://bucket",
                                            .match = match,
                                            .objects = &fake.base,
                                            .list_every_ns = every_ns,
                                            .scan_later = true};
    CHECK_OK(xpl_catalogue_new(&o, &c, &err), &err);
    xpl_catalogue_share(c, s, true, 1);
    return c;
}

static void scan(struct xpl_catalogue *c) {
    struct xpl_error err = {0};
    CHECK_OK(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, &err), &err);
}

// Scans, and says whether that asked the bucket.
static bool scan_lists(struct xpl_catalogue *c) {
    const unsigned before = fake.lists;
    scan(c);
    return fake.lists > before;
}

static size_t hosts_of(struct xpl_catalogue *c, const char *name) {
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    const struct xpl_session *const one = xpl_snapshot_find(s, xpl_str_from(name));
    const size_t n = one ? one->n_hosts : SIZE_MAX;
    xpl_snapshot_unref(s);
    return n;
}

static void put_objects(size_t n) {
    static const struct fake_object all[] = {{RUNS "one/a.pb", "\"1\"", "aaaa"},
                                             {RUNS "one/b.pb", "\"2\"", "bb"},
                                             {RUNS "two/a.pb", "\"3\"", ""}};
    memset(fake.v, 0, sizeof fake.v);
    memcpy(fake.v, all, n * sizeof *all);
}

static void open_bucket(void) {
    static size_t places;
    struct xpl_error err = {0};
    memset(&fake, 0, sizeof fake);
    const xpl_str_t name = {"places of tests", ++places};
    CHECK_OK(xpl_objects_init(&fake.base, &fake_ops, name, dir, 1 << 20, &err), &err);
    put_objects(1);
}

static void scan_until_it_lists(struct xpl_catalogue *c, bool lists) {
    for (int i = 0; i < 200 && scan_lists(c) != lists; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    CHECK_EQ(scan_lists(c), lists);
}

static void test_catalogues(void) {
    make_database();
    open_bucket();
    struct xpl_store *const sa = open_pg(), *const sb = open_pg();
    struct xpl_catalogue *const a = catalogue_on(sa, 1), *const b = catalogue_on(sb, 1);
    CHECK(scan_lists(a));
    CHECK(!scan_lists(b));
    CHECK_EQ(hosts_of(a, "job/one"), 1);
    CHECK_EQ(hosts_of(b, "job/one"), 1);
    // The scanner adds new objects and removes missing ones.
    put_objects(3);
    CHECK(!scan_lists(b));
    CHECK_EQ(hosts_of(b, "job/one"), 1);
    CHECK(scan_lists(a));
    CHECK(!scan_lists(b));
    CHECK_EQ(hosts_of(b, "job/one"), 2);
    CHECK_EQ(hosts_of(b, "job/two"), 1);
    put_objects(2);
    CHECK(scan_lists(a));
    CHECK(!scan_lists(b));
    CHECK_EQ(hosts_of(b, "job/two"), SIZE_MAX);
    // The scanner is gone: another one lists, and the old one takes what that finds.
    expire();
    scan_until_it_lists(b, true);
    scan_until_it_lists(a, false);
    put_objects(3);
    CHECK(scan_lists(b));
    CHECK(!scan_lists(a));
    CHECK_EQ(hosts_of(a, "job/two"), 1);
    xpl_catalogue_free(a);
    xpl_catalogue_free(b);
    xpl_store_close(sa);
    xpl_store_close(sb);
    xpl_objects_unref(&fake.base);
}

// What this daemon knows to be other than the scanner has it is listed here, and stays.
static void test_asked(void) {
    make_database();
    open_bucket();
    struct xpl_store *const sa = open_pg(), *const sb = open_pg();
    struct xpl_catalogue *const a = catalogue_on(sa, UINT64_C(3600000000000)),
                                *const b = catalogue_on(sb, UINT64_C(3600000000000));
    scan(a);
    CHECK(!scan_lists(b));
    put_objects(3);
    CHECK(!scan_lists(b) && !scan_lists(a));
    xpl_catalogue_mark_session(b, XPL_STR("job/two"));
    CHECK(scan_lists(b));
    CHECK_EQ(hosts_of(b, "job/two"), 1);
    CHECK_EQ(hosts_of(a, "job/two"), SIZE_MAX);
    CHECK(!scan_lists(b));
    CHECK_EQ(hosts_of(b, "job/two"), 1);
    // A listing that is damaged is none.
    pg_sql(database, "UPDATE listings SET body='x', generation=generation+100");
    CHECK(!scan_lists(a));
    CHECK_EQ(hosts_of(b, "job/two"), 1);
    xpl_catalogue_free(a);
    xpl_catalogue_free(b);
    xpl_store_close(sa);
    xpl_store_close(sb);
    xpl_objects_unref(&fake.base);
}

// Without the database each lists by itself; with it again, one of them.
static void test_away(void) {
    make_database();
    open_bucket();
    struct xpl_store *const sa = open_pg(), *const sb = open_pg();
    struct xpl_catalogue *const a = catalogue_on(sa, 1), *const b = catalogue_on(sb, 1);
    scan(a);
    CHECK(!scan_lists(b));
    pg_stop(SIGQUIT);
    put_objects(3);
    scan_until_it_lists(b, true);
    CHECK(scan_lists(a) && scan_lists(b));
    CHECK_EQ(hosts_of(b, "job/two"), 1);
    pg_start();
    bool one = false;
    for (int i = 0; i < 600 && !one; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        one = scan_lists(a) != scan_lists(b);
    }
    CHECK(one);
    xpl_catalogue_free(a);
    xpl_catalogue_free(b);
    xpl_store_close(sa);
    xpl_store_close(sb);
    xpl_objects_unref(&fake.base);
}

// ---- bodies ----

static unsigned n_objects, n_folders;

static bool on_object(void *arg, const struct xpl_stored_object *o) {
    (void)arg;
    n_objects++;
    CHECK(xpl_str_eq(o->path, XPL_STR("a.pb")) && xpl_str_eq(o->version, XPL_STR("\"1\"")));
    CHECK(o->size == 5 && o->mtime_ns == 77);
    return true;
}

static bool on_folder(void *arg, xpl_str_t name) {
    (void)arg;
    n_folders++;
    CHECK_STR(name, XPL_STR("below"));
    return true;
}

static void test_bodies(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1000);
    struct xpl_object_list list = {.object = on_object, .folder = on_folder};
    const struct xpl_stored_object o = {XPL_STR("a.pb"), XPL_STR("\"1\""), 5, 77};
    list.cut = true, list.n_refused = 3;
    xpl_listing_body_put_object(&b, &o);
    xpl_listing_body_put_folder(&b, XPL_STR("below"));
    xpl_listing_body_end(&b, &list);
    list.cut = false, list.n_refused = 0;
    CHECK(xpl_listing_body_read((xpl_bytes_t){b.p, b.n}, &list));
    CHECK(list.cut && list.n_refused == 3 && n_objects == 1 && n_folders == 1);
    for (size_t i = 0; i < b.n; i++)
        CHECK(!xpl_listing_body_read((xpl_bytes_t){b.p, i}, &list));
    xpl_buf_putc(&b, 0);
    CHECK(!xpl_listing_body_read((xpl_bytes_t){b.p, b.n}, &list));
    // Names that cannot be part of a path, and versions that no header may have.
    static const char *const names[] = {"..", ".", "a/b", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        b.n = 0;
        xpl_listing_body_put_folder(&b, xpl_str_from(names[i]));
        xpl_listing_body_end(&b, &list);
        CHECK(!xpl_listing_body_read((xpl_bytes_t){b.p, b.n}, &list));
    }
    const struct xpl_stored_object bad = {XPL_STR("a.pb"), XPL_STR("1\r\nX: y"), 5, 77};
    b.n = 0;
    xpl_listing_body_put_object(&b, &bad);
    xpl_listing_body_end(&b, &list);
    CHECK(!xpl_listing_body_read((xpl_bytes_t){b.p, b.n}, &list));
}

int main(void) {
    char cmd[100];
    test_bodies();
    const char *const why = pg_begin();
    if (why) {
        (void)fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    CHECK(mkdtemp(dir));
    xpl_arena_init(&arena, 64 << 20);
    test_lease();
    test_changed();
    test_unchanged();
    test_catalogues();
    test_asked();
    test_away();
    xpl_arena_fini(&arena);
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", dir);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
