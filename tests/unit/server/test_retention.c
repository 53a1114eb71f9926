// SPDX-License-Identifier: Apache-2.0
// --retain: which sessions go and which stay, files that change meanwhile, unknown labels, and when
// runs begin.  The time is an argument: files are of now, and runs are in the future.
#include "server/removal/retention.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/labels/labels.h"
#include "tests/unit/server/labels_fixture.h"

#define DAY_MS  INT64_C(86400000)
#define HOUR_MS INT64_C(3600000)

static char top[] = "/tmp/xplaned-retention-XXXXXX";
static char logdir[64];

// ---- a daemon's part ----

struct fixture {
    struct xpl_history *history;
    struct xpl_catalogue *catalogue;
    struct xpl_labels *labels;
    struct xpl_removals removals;
    struct xpl_retention *retention;
    atomic_uint scans; // one after each removal
};

static void on_scan(void *arg, const char *path) {
    struct fixture *const f = arg;
    CHECK(path[0]);
    atomic_fetch_add(&f->scans, 1);
}

static void start(struct fixture *f, uint64_t age_ms) {
    struct xpl_error err = {0};
    *f = (struct fixture){.removals = {.logdir = logdir}};
    CHECK_EQ(xpl_history_open(top, &f->history, &err), XPL_OK);
    f->catalogue = open_catalogue(top, 0);
    CHECK((f->labels = xpl_labels_new(f->history)));
    const struct xpl_retention_options o = {.age_ms = age_ms,
                                            .catalogue = f->catalogue,
                                            .history = f->history,
                                            .labels = f->labels,
                                            .removals = &f->removals,
                                            .scan = on_scan,
                                            .arg = f};
    CHECK((f->retention = xpl_retention_new(&o)));
}

static void stop(struct fixture *f) {
    xpl_retention_free(f->retention);
    xpl_labels_free(f->labels);
    xpl_catalogue_free(f->catalogue);
    xpl_history_close(f->history);
}

static void make_session(const char *name) {
    shell("mkdir -p %s/plugins/profile/%s && touch %s/plugins/profile/%s/vm.xplane.pb", logdir,
          name, logdir, name);
}

static bool has_session(const char *name) {
    char path[160];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/vm.xplane.pb", logdir, name);
    return access(path, F_OK) == 0;
}

static void add_label(struct fixture *f, const char *session) {
    struct xpl_error err = {0};
    const xpl_str_t add = XPL_STR("keep");
    struct xpl_snapshot *const snap = xpl_catalogue_get(f->catalogue);
    const struct xpl_labels_change c = {.session = xpl_str_from(session), .add = &add, .n_add = 1};
    CHECK_EQ(xpl_labels_set(f->labels, snap, &c, &err), XPL_OK);
    xpl_snapshot_unref(snap);
}

static void begin(void) {
    shell("rm -rf %s/* && mkdir -p %s/log", top, top);
    (void)snprintf(logdir, sizeof logdir, "%s/log", top);
}

// ---- which sessions ----

static void test_which(void) {
    struct fixture f;
    begin();
    make_session("old");
    make_session("labelled");
    make_session("young");
    shell("mkdir -p %s/plugins/profile/empty", logdir);
    shell("touch -d '+20 days' %s/plugins/profile/young/vm.xplane.pb", logdir);
    // Its oldest file is old, and its newest is not.
    make_session("growing");
    shell("touch -d '+20 days' %s/plugins/profile/growing/next.xplane.pb", logdir);
    start(&f, 90 * DAY_MS);
    add_label(&f, "labelled");
    struct xpl_retained done = xpl_retention_run(f.retention, xpl_unix_ms() + 89 * DAY_MS);
    CHECK(!done.removed && !done.failed && !done.is_paused);
    CHECK(has_session("old"));
    done = xpl_retention_run(f.retention, xpl_unix_ms() + 91 * DAY_MS);
    CHECK_EQ(done.removed, 1);
    CHECK_EQ(done.failed, 0);
    CHECK(!has_session("old"));
    CHECK(has_session("labelled") && has_session("young") && has_session("growing"));
    CHECK_EQ(atomic_load(&f.removals.removed[XPL_REMOVAL_RETENTION]), 1);
    CHECK_EQ(atomic_load(&f.removals.removed[XPL_REMOVAL_CLIENT]), 0);
    CHECK_EQ(atomic_load(&f.scans), 1);
    // The snapshot still has it: it is gone, which is not a failure.
    done = xpl_retention_run(f.retention, xpl_unix_ms() + 91 * DAY_MS);
    CHECK(!done.removed && !done.failed);
    stop(&f);
}

// ---- files that change after the scan ----

static void test_changes(void) {
    struct fixture f;
    begin();
    make_session("rewritten");
    make_session("growing");
    make_session("swapped");
    shell("mkdir %s/out && mv %s/plugins/profile/swapped %s/out/", top, logdir, top);
    make_session("swapped");
    start(&f, 90 * DAY_MS);
    shell("touch -d '+20 days' %s/plugins/profile/rewritten/vm.xplane.pb", logdir);
    shell("touch -d '+20 days' %s/plugins/profile/growing/.xplaned-1.part", logdir);
    shell("rm -r %s/plugins/profile/swapped && ln -s %s/out/swapped %s/plugins/profile/swapped",
          logdir, top, logdir);
    const struct xpl_retained done = xpl_retention_run(f.retention, xpl_unix_ms() + 91 * DAY_MS);
    CHECK_EQ(done.removed, 0);
    CHECK_EQ(done.failed, 3);
    CHECK_EQ(done.why.code, XPL_FAILED_PRECONDITION);
    CHECK(has_session("rewritten") && has_session("growing") && has_session("swapped"));
    stop(&f);
}

// Another session is in the same directory: a removal would not know whose files are whose.
static void test_shared_directory(void) {
    struct fixture f;
    begin();
    make_session("run");
    shell("touch %s/plugins/profile/run/a.ireeprof", logdir);
    shell("touch -d '+20 days' %s/plugins/profile/run/a.ireeprof", logdir);
    start(&f, 90 * DAY_MS);
    const struct xpl_retained done = xpl_retention_run(f.retention, xpl_unix_ms() + 91 * DAY_MS);
    CHECK_EQ(done.removed, 0);
    CHECK_EQ(done.failed, 1);
    CHECK(has_session("run"));
    stop(&f);
}

// ---- unknown labels ----

static void test_unknown_labels(void) {
    struct fixture f, other;
    begin();
    make_session("old");
    start(&other, 90 * DAY_MS); // has state.db
    start(&f, 90 * DAY_MS);
    CHECK(!xpl_history_is_on(f.history));
    CHECK(xpl_retention_run(f.retention, xpl_unix_ms() + 91 * DAY_MS).is_paused);
    stop(&f);
    stop(&other);
    shell("echo damaged >%s/state.db && rm -f %s/state.db-*", top, top);
    start(&f, 90 * DAY_MS);
    CHECK(xpl_history_is_on(f.history) && xpl_history_was_replaced(f.history));
    CHECK(xpl_retention_run(f.retention, xpl_unix_ms() + 91 * DAY_MS).is_paused);
    CHECK(has_session("old"));
    stop(&f);
    start(&f, 90 * DAY_MS);
    CHECK_EQ(xpl_retention_run(f.retention, xpl_unix_ms() + 91 * DAY_MS).removed, 1);
    stop(&f);
}

// ---- runs ----

// Ticks at `now_ms` until the session `name`, which it makes, is gone.
static void expect_run(struct fixture *f, int64_t now_ms, const char *name) {
    struct xpl_error err = {0};
    make_session(name);
    CHECK_EQ(xpl_catalogue_scan(f->catalogue, XPL_SCAN_ALL, NULL, &err), XPL_OK);
    while (has_session(name)) { // a tick while the previous run ends begins none
        xpl_retention_tick(f->retention, now_ms);
        xpl_clock_pause_ms(1);
    }
}

static void test_hours(void) {
    struct fixture f;
    struct xpl_error err = {0};
    const int64_t now = xpl_unix_ms() + 91 * DAY_MS;
    begin();
    start(&f, 90 * DAY_MS);
    expect_run(&f, now, "first"); // at once
    make_session("second");
    CHECK_EQ(xpl_catalogue_scan(f.catalogue, XPL_SCAN_ALL, NULL, &err), XPL_OK);
    xpl_retention_tick(f.retention, now + HOUR_MS - 1);
    stop(&f); // waits for a run
    CHECK(has_session("second"));
    start(&f, 90 * DAY_MS);
    expect_run(&f, now, "third");
    expect_run(&f, now + HOUR_MS, "fourth");
    expect_run(&f, now - DAY_MS / 2, "fifth"); // the clock was set back
    xpl_retention_stop(f.retention);
    make_session("sixth");
    CHECK_EQ(xpl_catalogue_scan(f.catalogue, XPL_SCAN_ALL, NULL, &err), XPL_OK);
    xpl_retention_tick(f.retention, now + 2 * HOUR_MS);
    CHECK_EQ(xpl_retention_run(f.retention, now + 2 * HOUR_MS).removed, 0);
    stop(&f);
    CHECK(has_session("sixth"));
}

// Files of old captures that were linked or moved here now are as old as the link.
static void test_linked(void) {
    struct fixture f;
    begin();
    make_session("linked");
    shell("touch -d '-200 days' %s/plugins/profile/linked/vm.xplane.pb", logdir);
    start(&f, 90 * DAY_MS);
    struct xpl_retained done = xpl_retention_run(f.retention, xpl_unix_ms());
    CHECK(!done.removed && !done.failed && has_session("linked"));
    done = xpl_retention_run(f.retention, xpl_unix_ms() + 91 * DAY_MS);
    CHECK_EQ(done.removed, 1);
    CHECK(!has_session("linked"));
    stop(&f);
}

int main(void) {
    CHECK(mkdtemp(top));
    test_which();
    test_changes();
    test_shared_directory();
    test_unknown_labels();
    test_hours();
    test_linked();
    shell("rm -rf %s", top);
    return 0;
}
