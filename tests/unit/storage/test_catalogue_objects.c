// SPDX-License-Identifier: Apache-2.0
// The catalogue of a bucket: its sessions, objects that are replaced, omissions, and when it is
// listed again.
#include <time.h>

#include "storage/sessions/catalogue.h"
#include "tests/unit/storage/fake_objects.h"

#define SUFFIX ".pb"
#define RUNS   "job/plugins/profile/"

static char dir[] = "/tmp/xplaned-test-XXXXXX";
static size_t places; // each test has one, and finds no copies of the others

static bool match(xpl_str_t file, struct xpl_profile_file *ret) {
    if (!xpl_str_ends(file, XPL_STR(SUFFIX)) || file.len == strlen(SUFFIX)) return false;
    *ret = (struct xpl_profile_file){.host = xpl_str_sub(file, 0, file.len - strlen(SUFFIX))};
    return true;
}

static void put_objects(const struct fake_object *v, size_t n) {
    memset(fake.v, 0, sizeof fake.v);
    memcpy(fake.v, v, n * sizeof *v);
}

static const struct fake_object THREE[] = {{RUNS "one/a" SUFFIX, "\"1\"", "aaaa"},
                                           {RUNS "one/b" SUFFIX, "\"2\"", "bb"},
                                           {RUNS "one/readme", "\"3\"", "-"},
                                           {RUNS "two/a" SUFFIX, "\"4\"", ""}};

static struct xpl_catalogue *begin_as(uint64_t every_ns, bool scan_later) {
    struct xpl_error err = {0};
    struct xpl_catalogue *c = NULL;
    memset(&fake, 0, sizeof fake);
    put_objects(THREE, 4);
    const xpl_str_t place = {"places of tests", ++places};
    CHECK_OK(xpl_objects_init(&fake.base, &fake_ops, place, dir, 1 << 20, &err), &err);
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = "s3://bucket/logs",
                                            .match = match,
                                            .objects = &fake.base,
                                            .list_every_ns = every_ns,
                                            .scan_later = scan_later};
    CHECK_OK(xpl_catalogue_new(&o, &c, &err), &err);
    return c;
}

static struct xpl_catalogue *begin(uint64_t every_ns) {
    return begin_as(every_ns, false);
}

static void end(struct xpl_catalogue *c) {
    xpl_catalogue_free(c);
    xpl_objects_unref(&fake.base);
}

static bool scan(struct xpl_catalogue *c) {
    struct xpl_error err = {0};
    bool changed = false;
    CHECK_OK(xpl_catalogue_scan(c, XPL_SCAN_ALL, &changed, &err), &err);
    return changed;
}

// "SESSION:HOST,HOST ..."
static void check_sessions(struct xpl_catalogue *c, const char *expected) {
    char got[500] = "";
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    for (size_t i = 0; i < s->n_sessions; i++) {
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s:", i ? " " : "",
                       XPL_STR_FMT(s->sessions[i].name));
        for (size_t h = 0; h < s->sessions[i].n_hosts; h++)
            (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", h ? "," : "",
                           XPL_STR_FMT(s->sessions[i].hosts[h].name));
    }
    CHECK_STR(got, expected);
    CHECK(s->in_bucket);
    xpl_snapshot_unref(s);
}

static xpl_status_t open_host(struct xpl_catalogue *c, const char *session, size_t host,
                              const char *expected) {
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    const struct xpl_session *const se = xpl_snapshot_find(s, xpl_str_from(session));
    struct xpl_source *source = NULL;
    struct xpl_error err = {0};
    CHECK(se && host < se->n_hosts);
    const xpl_status_t st = xpl_snapshot_open(s, &se->hosts[host], 0, &source, &err);
    if (st == XPL_OK) {
        const xpl_bytes_t b = xpl_source_bytes(source);
        CHECK_STR(((xpl_str_t){(const char *)b.ptr, b.len}), expected);
        CHECK(xpl_fingerprint_eq(xpl_source_fingerprint(source), &se->hosts[host].fingerprint));
        CHECK(xpl_source_is_stable(source));
        CHECK_OK(xpl_source_verify(source, &err), &err);
        char first = 0;
        CHECK(!b.len || (xpl_source_read(source, 0, &first, 1) && first == expected[0]));
    }
    xpl_snapshot_unref(s);
    xpl_source_free(source);
    return st;
}

static void test_sessions(void) {
    struct xpl_catalogue *const c = begin(UINT64_C(1000000000000));
    check_sessions(c, "job/one:a,b job/two:a");
    const unsigned lists = fake.lists;
    CHECK_EQ(lists, 6); // ".", job, plugins, profile, one, two
    CHECK(!scan(c));
    CHECK_EQ(fake.lists, lists); // none is due
    CHECK_EQ(open_host(c, "job/one", 0, "aaaa"), XPL_OK);
    CHECK_EQ(open_host(c, "job/one", 0, "aaaa"), XPL_OK);
    CHECK_EQ(fake.fetches, 1);
    CHECK_EQ(open_host(c, "job/two", 0, ""), XPL_OK);
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    struct xpl_source *source = NULL;
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_snapshot_open(s, &s->sessions[0].hosts[0], 3, &source, &err),
                 XPL_RESOURCE_EXHAUSTED, &err);
    CHECK_STR(s->base, "s3://bucket/logs");
    CHECK_EQ(s->sessions[0].captured_ns, 1700000000000000000);
    xpl_snapshot_unref(s);
    end(c);
}

// Until a complete scan the contents are unknown.
static void test_later(void) {
    struct xpl_catalogue *const c = begin_as(1, true);
    struct xpl_error err = {0};
    for (int i = 0; i < 3; i++) {
        struct xpl_snapshot *const s = xpl_catalogue_get(c);
        CHECK_EQ(s->n_sessions, 0);
        CHECK(s->unscanned && s->in_bucket);
        xpl_snapshot_unref(s);
        if (i == 0) CHECK_EQ(fake.lists, 0);
        fake.failure = XPL_UNAVAILABLE;
        fake.only_failing = i == 1 ? RUNS "two" : NULL;
        CHECK_STATUS(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, &err), XPL_UNAVAILABLE, &err);
    }
    put_objects(THREE, 0);
    fake.failure = XPL_OK;
    CHECK(scan(c)); // that nothing is there is news
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    CHECK(!s->unscanned && !s->n_sessions);
    xpl_snapshot_unref(s);
    CHECK(!scan(c));
    end(c);
}

// What another daemon knows is listed, and nothing else.
static void test_marked(void) {
    struct xpl_catalogue *const c = begin(UINT64_C(1000000000000));
    const struct fake_object now[] = {
        THREE[0], THREE[1], THREE[3], {RUNS "three/a" SUFFIX, "\"5\"", "x"}};
    put_objects(now, 4);
    CHECK(!scan(c));
    const unsigned lists = fake.lists;
    xpl_catalogue_mark_session(c, XPL_STR("job/three"));
    xpl_catalogue_mark_session(c, XPL_STR("nowhere/at/all"));
    CHECK(scan(c));
    CHECK_EQ(fake.lists, lists + 5); // ".", job, plugins, profile, three
    check_sessions(c, "job/one:a,b job/three:a job/two:a");
    CHECK(!scan(c));
    end(c);
}

// A read that finds another version, or nothing, has its directory listed again at once.
static void test_replaced(void) {
    struct xpl_catalogue *const c = begin(UINT64_C(1000000000000));
    struct fake_object now[] = {THREE[0], THREE[1], THREE[3]};
    now[0].version = "\"9\"", now[0].bytes = "zzz";
    put_objects(now, 3);
    CHECK(!scan(c)); // not known yet
    const unsigned lists = fake.lists;
    CHECK_EQ(open_host(c, "job/one", 0, NULL), XPL_ABORTED);
    // Also when the store was away meanwhile.
    struct xpl_error err = {0};
    fake.failure = XPL_UNAVAILABLE;
    CHECK_STATUS(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, &err), XPL_UNAVAILABLE, &err);
    fake.failure = XPL_OK;
    CHECK(scan(c));
    CHECK_EQ(fake.lists, lists + 2);
    CHECK_EQ(open_host(c, "job/one", 0, "zzz"), XPL_OK);
    put_objects(now + 1, 2);
    CHECK_EQ(open_host(c, "job/one", 0, "zzz"), XPL_OK); // of the copy that is there
    now[1].version = "\"10\"";
    put_objects(now + 2, 1);
    CHECK_EQ(open_host(c, "job/one", 1, NULL), XPL_NOT_FOUND);
    CHECK(scan(c));
    check_sessions(c, "job/one: job/two:a");
    end(c);
}

static void test_due(void) {
    struct xpl_catalogue *const c = begin(1);
    const struct fake_object more[] = {
        THREE[0], THREE[1], THREE[3], {RUNS "zwo/x" SUFFIX, "\"5\"", "x"}};
    CHECK(!scan(c));
    put_objects(more, 4);
    CHECK(scan(c));
    check_sessions(c, "job/one:a,b job/two:a job/zwo:x");
    put_objects(more, 1);
    CHECK(scan(c));
    check_sessions(c, "job/one:a");
    end(c);
}

// Old runs are listed seldom, and so is a run whose profiles did not appear.
static void test_seldom(void) {
    const uint64_t every_ns = 1000000000;
    struct xpl_catalogue *const c = begin(every_ns);
    const struct fake_object now[] = {THREE[0], THREE[1], {RUNS "three/readme", "\"5\"", "-"}};
    struct timespec t;
    put_objects(now, 3);
    xpl_catalogue_mark_session(c, XPL_STR("job/three"));
    CHECK(scan(c));
    check_sessions(c, "job/one:a,b job/three:");
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(usleep((useconds_t)(every_ns / 1000 + 100000)), 0);
        const unsigned lists = fake.lists;
        CHECK_EQ(scan(c), false);
        CHECK_EQ(fake.lists, lists + (i ? 5 : 4)); // ".", job, plugins, profile; three
        CHECK_EQ(clock_gettime(CLOCK_REALTIME, &t), 0);
        fake.mtime_ns = (int64_t)t.tv_sec * 1000000000;
        xpl_catalogue_mark(c, XPL_STR(RUNS "three"));
        CHECK_EQ(scan(c), false);
    }
    end(c);
}

static const char *first_problem(struct xpl_catalogue *c, char text[200]) {
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    (void)snprintf(text, 200, "%zu %.*s", s->n_problems,
                   XPL_STR_FMT(s->n_problems ? s->problems[0] : XPL_STR("")));
    xpl_snapshot_unref(s);
    return text;
}

static void test_left_out(void) {
    char text[200];
    struct xpl_catalogue *const c = begin(1);
    const struct fake_object other[] = {THREE[0], {RUNS "three/c" SUFFIX, "\"5\"", "x"}};
    CHECK_STR(first_problem(c, text), "0 ");
    put_objects(other, 2);
    fake.n_refused = 3;
    CHECK(scan(c));
    CHECK_STR(first_problem(c, text), "1 .: 3 objects are left out: their names are not paths");
    fake.n_refused = 0;
    fake.failure = XPL_PERMISSION_DENIED;
    fake.only_failing = RUNS "three";
    CHECK(scan(c));
    check_sessions(c, "job/one:a job/three:");
    CHECK_STR(first_problem(c, text),
              "1 " RUNS "three: the object store does not allow listing it");
    // When the store is away the known sessions stay.
    struct xpl_error err = {0};
    fake.failure = XPL_UNAVAILABLE;
    fake.only_failing = NULL;
    CHECK_STATUS(xpl_catalogue_scan(c, XPL_SCAN_ALL, NULL, &err), XPL_UNAVAILABLE, &err);
    CHECK_STR(err.msg, "the fake fails");
    check_sessions(c, "job/one:a job/three:");
    fake.failure = XPL_OK;
    CHECK(scan(c));
    check_sessions(c, "job/one:a job/three:c");
    end(c);
}

static void check_partial(struct xpl_catalogue *c, bool is_partial) {
    struct xpl_snapshot *const s = xpl_catalogue_get(c);
    CHECK_EQ(s->is_partial, is_partial);
    xpl_snapshot_unref(s);
}

// A listing that is none, of names that XML does not have, say: the others are read.
static void test_no_listing(void) {
    char text[200];
    struct xpl_catalogue *const c = begin(1);
    const struct fake_object more[] = {
        THREE[0], {RUNS "three/c" SUFFIX, "\"5\"", "x"}, {RUNS "zwo/d" SUFFIX, "\"6\"", "y"}};
    put_objects(more, 3);
    fake.failure = XPL_DATA_LOSS;
    fake.only_failing = RUNS "three";
    CHECK(scan(c));
    check_sessions(c, "job/one:a job/three: job/zwo:d");
    CHECK_STR(first_problem(c, text), "1 " RUNS "three: its listing cannot be read");
    check_partial(c, true);
    fake.only_failing = RUNS "one"; // its known objects stay
    CHECK(scan(c));
    check_sessions(c, "job/one:a job/three:c job/zwo:d");
    check_partial(c, true);
    fake.failure = XPL_OK;
    CHECK(scan(c));
    check_partial(c, false);
    end(c);
}

static void test_cut(void) {
    char text[200];
    struct xpl_catalogue *const c = begin(1);
    const struct fake_object first[] = {THREE[0], THREE[3]};
    put_objects(first, 2);
    fake.max_names = 1;
    CHECK(scan(c));
    check_sessions(c, "job/one:a");
    CHECK_STR(first_problem(c, text),
              "1 job/plugins/profile: only the first 1000000 names are listed");
    check_partial(c, true);
    end(c);
}

int main(void) {
    char cmd[100];
    CHECK(mkdtemp(dir));
    test_sessions();
    test_later();
    test_marked();
    test_replaced();
    test_due();
    test_seldom();
    test_left_out();
    test_no_listing();
    test_cut();
    (void)snprintf(cmd, sizeof cmd, "rm -r '%s'", dir);
    CHECK_EQ(system(cmd), 0);
    return 0;
}
