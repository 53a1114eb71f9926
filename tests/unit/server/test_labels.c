// SPDX-License-Identifier: Apache-2.0
// Labels of sessions: their syntax, changes and limits, restarts, and sessions that go away; which
// sessions a history is of.
#include "server/labels/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "server/engine/joint/history.h"
#include "storage/sessions/catalogue.h"
#include "tests/check.h"
#include "tests/unit/server/labels_fixture.h"

static char top[] = "/tmp/xplaned-labels-XXXXXX";

// ---- syntax ----

static void test_syntax(void) {
    static const struct {
        const char *label, *says;
    } cases[] = {
        {"nightly", NULL},
        {"v1.2+a_b-c=d@e:f/g", NULL},
        {"0", NULL},
        {"", "is empty"},
        {"-a", "character 1: a label begins with"},
        {"a b", "character 2: only letters"},
        {"ab\"", "character 3"},
        {"a,b", "character 2"},
        {"a\xc3\xa4", "character 2"},
        {"a123456789b123456789c123456789d123456789e123456789f123456789g123", NULL},
        {"a123456789b123456789c123456789d123456789e123456789f123456789g1234", "character 65"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_error err = {0};
        const xpl_status_t st = xpl_label_check(xpl_str_from(cases[i].label), &err);
        CHECK_EQ(st, cases[i].says ? XPL_INVALID_ARGUMENT : XPL_OK);
        if (cases[i].says && !strstr(err.msg, cases[i].says)) FAIL_TEST(err.msg);
    }
}

// ---- a daemon's part ----

struct fixture {
    struct xpl_history *history;
    struct xpl_catalogue *catalogue;
    struct xpl_labels *labels;
};

static struct fixture start(void) {
    struct fixture f;
    struct xpl_error err = {0};
    if (xpl_history_open(top, &f.history, &err) != XPL_OK) FAIL_TEST(err.msg);
    f.catalogue = open_catalogue(top, 0);
    CHECK((f.labels = xpl_labels_new(f.history)));
    return f;
}

static void stop(struct fixture *f) {
    xpl_labels_free(f->labels);
    xpl_catalogue_free(f->catalogue);
    xpl_history_close(f->history);
}

static xpl_status_t change(const struct fixture *f, const char *session, const char *add,
                           const char *remove, struct xpl_error *err) {
    struct xpl_snapshot *const snap = xpl_catalogue_get(f->catalogue);
    const xpl_str_t a = xpl_str_from(add ? add : ""), r = xpl_str_from(remove ? remove : "");
    const struct xpl_labels_change c = {xpl_str_from(session), &a, &r, add != NULL, remove != NULL};
    const xpl_status_t st = xpl_labels_set(f->labels, snap, &c, err);
    xpl_snapshot_unref(snap);
    return st;
}

static void refused(const struct fixture *f, const char *session, const char *add,
                    const char *remove, xpl_status_t code, const char *says) {
    struct xpl_error err = {0};
    CHECK_EQ(change(f, session, add, remove, &err), code);
    if (!strstr(err.msg, says)) FAIL_TEST(err.msg);
}

// "a b" of a session's labels.
static void expect(const struct fixture *f, const char *session, const char *labels) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    xpl_str_t *v;
    size_t n, at = 0;
    char text[400] = "";
    CHECK(xpl_labels_of(f->labels, xpl_str_from(session), &arena, &v, &n));
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", v[i].ptr);
    CHECK_STR(text, labels);
}

static void sweep(const struct fixture *f) {
    struct xpl_error err = {0};
    bool changed;
    CHECK_EQ(xpl_catalogue_scan(f->catalogue, XPL_SCAN_ALL, &changed, &err), XPL_OK);
    xpl_labels_sweep(f->labels, f->catalogue);
}

static void make_session(const char *name) {
    shell("mkdir -p %s/log/%s", top, name);
    shell("touch %s/log/%s/h.xplane.pb", top, name);
}

static void test_changes(void) {
    struct fixture f = start();
    struct xpl_error err = {0};
    expect(&f, "one", "");
    CHECK_EQ(change(&f, "one", "nightly", NULL, &err), XPL_OK);
    CHECK_EQ(change(&f, "one", "nightly", NULL, &err), XPL_OK);
    CHECK_EQ(change(&f, "one", "a", NULL, &err), XPL_OK);
    CHECK_EQ(change(&f, "two", "b", NULL, &err), XPL_OK);
    expect(&f, "one", "a nightly");
    expect(&f, "two", "b");
    refused(&f, "thre", "x", NULL, XPL_NOT_FOUND, "did you mean \"three\"");
    refused(&f, "one", NULL, "nightl", XPL_NOT_FOUND, "did you mean \"nightly\"");
    refused(&f, "one", "x y", "a", XPL_INVALID_ARGUMENT, "character 2");
    refused(&f, "one", "a", "a", XPL_INVALID_ARGUMENT, "to be removed");
    expect(&f, "one", "a nightly");
    CHECK_EQ(change(&f, "one", "c", "a", &err), XPL_OK);
    stop(&f);
    f = start();
    expect(&f, "one", "c nightly");
    for (int i = 2; i < XPL_LABELS_OF_SESSION; i++) {
        char label[16];
        (void)snprintf(label, sizeof label, "l%d", i);
        CHECK_EQ(change(&f, "one", label, NULL, &err), XPL_OK);
    }
    refused(&f, "one", "more", NULL, XPL_RESOURCE_EXHAUSTED, "at most 16");
    CHECK_EQ(change(&f, "one", "more", "c", &err), XPL_OK);
    stop(&f);
}

// A request with a hundred thousand labels is refused at once.
static void test_too_many(void) {
    enum { MANY = 100000 };
    static char text[MANY][8];
    static xpl_str_t labels[MANY];
    XPL_AUTO(stop) struct fixture f = start();
    struct xpl_snapshot *const snap = xpl_catalogue_get(f.catalogue);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(text[i], sizeof text[i], "l%05d", i);
        labels[i] = xpl_str_from(text[i]);
    }
    (void)alarm(120);
    for (int k = 0; k < 2; k++) {
        struct xpl_error err = {0};
        const struct xpl_labels_change c = {XPL_STR("three"), labels, labels, k ? 0 : MANY,
                                            k ? MANY : 0};
        CHECK_EQ(xpl_labels_set(f.labels, snap, &c, &err), XPL_RESOURCE_EXHAUSTED);
        if (!strstr(err.msg, "at most 16 labels")) FAIL_TEST(err.msg);
    }
    (void)alarm(0);
    xpl_snapshot_unref(snap);
}

// A removed session loses its labels, and has none when it returns; an empty directory counts as
// not mounted.
static void test_sweep(void) {
    struct fixture f = start();
    struct xpl_catalogue *const whole = f.catalogue;
    f.catalogue = open_catalogue(top, 1); // which leaves sessions out
    sweep(&f);
    xpl_catalogue_free(f.catalogue);
    f.catalogue = whole;
    expect(&f, "two", "b");
    shell("mv %s/log %s/away", top, top);
    shell("mkdir %s/log", top);
    sweep(&f);
    expect(&f, "two", "b");
    shell("rmdir %s/log", top);
    shell("mv %s/away %s/log", top, top);
    shell("rm -r %s/log/two", top);
    sweep(&f);
    expect(&f, "two", "");
    make_session("two");
    sweep(&f);
    expect(&f, "two", "");
    stop(&f);
    f = start();
    expect(&f, "two", "");
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_history_label *all;
    size_t n;
    CHECK(xpl_labels_all(f.labels, &arena, &all, &n));
    CHECK_EQ(n, XPL_LABELS_OF_SESSION);
    stop(&f);
}

// Without a state.db there are none, and none can be made; later there are those that it has.
static void test_taken(void) {
    struct fixture f = start(), g = start();
    CHECK(!xpl_history_is_on(g.history));
    expect(&g, "one", "");
    refused(&g, "one", "x", NULL, XPL_FAILED_PRECONDITION, "another daemon");
    stop(&f);
    CHECK(xpl_history_try_again(g.history));
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    xpl_str_t *v;
    size_t n;
    CHECK(xpl_labels_of(g.labels, XPL_STR("one"), &arena, &v, &n));
    CHECK_EQ(n, XPL_LABELS_OF_SESSION);
    stop(&g);
}

// ---- sessions of a history ----

// "a b", newest first; or what the refusal says.
static void expect_selected(const struct fixture *f, struct xpl_follow_query q, xpl_status_t code,
                            const char *text) {
    const struct xpl_follow_sources from = {f->catalogue, f->labels, f->history};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_follow_session *v = NULL;
    struct xpl_error err = {0};
    size_t n = 0, at = 0;
    char got[200] = "";
    CHECK_EQ(xpl_follow_select(&from, &q, &arena, &v, &n, &err), code);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%s", i ? " " : "", v[i].name.ptr);
    if (code == XPL_OK)
        CHECK_STR(got, text);
    else if (!strstr(err.msg, text))
        FAIL_TEST(err.msg);
}

static void test_select(void) {
    shell("rm -rf %s/log %s/state.db*", top, top);
    static const char *const names[] = {"one", "two", "a/three", "a/b/four", "ab/five"};
    for (int i = 0; i < 5; i++) {
        make_session(names[i]);
        shell("touch -d 2026-01-0%d %s/log/%s/h.xplane.pb", i + 1, top, names[i]);
    }
    // A bundle of IREE is a session, too.
    shell("mkdir %s/log/six && touch -d 2026-01-06 %s/log/six/x.ireeprof", top, top);
    XPL_AUTO(stop) struct fixture f = start();
    struct xpl_error err = {0};
    CHECK_EQ(change(&f, "one", "nightly", NULL, &err), XPL_OK);
    CHECK_EQ(change(&f, "a/three", "nightly", NULL, &err), XPL_OK);
    expect_selected(&f, (struct xpl_follow_query){0}, XPL_OK,
                    "six/x ab/five a/b/four a/three two one");
    expect_selected(&f, (struct xpl_follow_query){.last = 3}, XPL_OK, "six/x ab/five a/b/four");
    expect_selected(&f, (struct xpl_follow_query){.label = XPL_STR("nightly")}, XPL_OK,
                    "a/three one");
    expect_selected(&f, (struct xpl_follow_query){.directory = XPL_STR("a/")}, XPL_OK,
                    "a/b/four a/three");
    expect_selected(&f, (struct xpl_follow_query){.directory = XPL_STR("."), .last = 1}, XPL_OK,
                    "six/x");
    expect_selected(
        &f, (struct xpl_follow_query){.label = XPL_STR("nightly"), .directory = XPL_STR("a")},
        XPL_OK, "a/three");
    expect_selected(&f, (struct xpl_follow_query){.since_ms = INT64_C(1767400000000)}, XPL_OK,
                    "six/x ab/five a/b/four");
    expect_selected(&f, (struct xpl_follow_query){.label = XPL_STR("nightl")}, XPL_NOT_FOUND,
                    "did you mean \"nightly\"");
    expect_selected(&f, (struct xpl_follow_query){.label = XPL_STR("a b")}, XPL_INVALID_ARGUMENT,
                    "character 2");
    expect_selected(&f, (struct xpl_follow_query){.directory = XPL_STR("none")}, XPL_NOT_FOUND,
                    "no session");
    expect_selected(&f, (struct xpl_follow_query){.schedule_id = 5}, XPL_NOT_FOUND,
                    "the schedule 5 has no sessions");
    expect_selected(&f, (struct xpl_follow_query){.last = 1025}, XPL_INVALID_ARGUMENT, "1024");
    const struct xpl_history_schedule schedule = {.request = {(const uint8_t *)"x", 1}};
    const struct xpl_history_session made = {.name = XPL_STR("two")},
                                     gone = {.name = XPL_STR("gone")};
    uint64_t id = 0;
    CHECK_EQ(xpl_history_add_schedule(f.history, &schedule, &id, &err), XPL_OK);
    CHECK_EQ(xpl_history_add_session(f.history, id, &made, &err), XPL_OK);
    CHECK_EQ(xpl_history_add_session(f.history, id, &gone, &err), XPL_OK);
    expect_selected(&f, (struct xpl_follow_query){.schedule_id = id}, XPL_OK, "two");
}

int main(void) {
    CHECK(mkdtemp(top));
    test_syntax();
    make_session("one");
    make_session("two");
    make_session("three");
    test_changes();
    test_too_many();
    test_sweep();
    test_taken();
    test_select();
    shell("rm -rf %s", top);
    return 0;
}
