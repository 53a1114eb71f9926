// SPDX-License-Identifier: Apache-2.0
// Watching LOGDIR: notifications, requested scans, the timer for changes without notification, and
// closing at any moment.
#include "server/watch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/clock.h"
#include "tests/check.h"
#include "tests/unit/storage/fake_objects.h"

enum { NEVER_MS = 3600000, PATIENCE_MS = 20000 };

static char logdir[64];

static void put_file(const char *path, size_t size) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)size), 0);
    CHECK_EQ(close(fd), 0);
}

// Adds LOGDIR/plugins/profile/RUN/vm.xplane.pb of so many bytes.
static void add_session(const char *run, size_t size) {
    char path[256];
    static const char *const parts[] = {"plugins", "plugins/profile"};
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", logdir, parts[i]);
        (void)mkdir(path, 0700);
    }
    (void)snprintf(path, sizeof path, "%s/plugins/profile/%s", logdir, run);
    (void)mkdir(path, 0700);
    (void)strncat(path, "/vm.xplane.pb", sizeof path - strlen(path) - 1);
    put_file(path, size);
}

struct fixture {
    struct xpl_loop *loop;
    struct xpl_catalogue *catalogue;
    struct xpl_watch *watch;
    uv_timer_t poll, writer;
    unsigned calls, n_sessions;
    uint64_t generation, bytes;
    // run_until:
    unsigned expected_sessions;
    uint64_t expected_bytes, deadline_ns;
    bool reached;
};

static void on_changed(void *arg, struct xpl_snapshot *before, struct xpl_snapshot *after) {
    struct fixture *const f = arg;
    CHECK_EQ(before == after, f->calls == 0); // the first one
    if (f->calls) {
        CHECK_EQ(before->generation, f->generation);
        CHECK(after->generation > before->generation);
    }
    f->calls++;
    f->generation = after->generation;
    f->n_sessions = (unsigned)after->n_sessions;
    f->bytes = 0;
    for (size_t i = 0; i < after->n_sessions; i++)
        f->bytes += after->sessions[i].bytes;
}

// `objects`: a bucket in LOGDIR's place, or NULL.
static void begin_on(struct fixture *f, struct xpl_objects *objects, uint64_t interval_ms) {
    struct xpl_error err = {0};
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = logdir,
                                            .match = xpl_format_match,
                                            .links_anywhere = true,
                                            .objects = objects,
                                            .list_every_ns = 1};
    *f = (struct fixture){.loop = xpl_loop_new()};
    CHECK(f->loop);
    CHECK_EQ(xpl_catalogue_new(&o, &f->catalogue, &err), XPL_OK);
    f->watch = xpl_watch_new(f->loop, f->catalogue, interval_ms, on_changed, f);
    CHECK(f->watch);
    CHECK_EQ(f->calls, 1);
    CHECK_EQ(uv_timer_init(xpl_loop_uv(f->loop), &f->poll), 0);
    CHECK_EQ(uv_timer_init(xpl_loop_uv(f->loop), &f->writer), 0);
    f->poll.data = f->writer.data = f;
}

static void begin(struct fixture *f, uint64_t interval_ms) {
    begin_on(f, NULL, interval_ms);
}

// Closes everything; xpl_loop_free aborts when a handle is left.
static void end(struct fixture *f) {
    xpl_watch_close(f->watch);
    uv_close((uv_handle_t *)&f->poll, NULL);
    uv_close((uv_handle_t *)&f->writer, NULL);
    xpl_loop_close(f->loop);
    (void)uv_run(xpl_loop_uv(f->loop), UV_RUN_DEFAULT);
    xpl_loop_free(f->loop);
    xpl_catalogue_free(f->catalogue);
}

static void on_poll(uv_timer_t *t) {
    struct fixture *const f = t->data;
    f->reached = f->n_sessions == f->expected_sessions && f->bytes == f->expected_bytes;
    if (f->reached || xpl_clock_ns() > f->deadline_ns) uv_stop(xpl_loop_uv(f->loop));
}

// Runs the loop until the catalogue holds that; false if that does not happen.
static bool run_until(struct fixture *f, unsigned n_sessions, uint64_t bytes, uint64_t ms) {
    f->expected_sessions = n_sessions;
    f->expected_bytes = bytes;
    f->deadline_ns = xpl_clock_ns() + ms * 1000000;
    f->reached = false;
    uv_timer_start(&f->poll, on_poll, 0, 5);
    (void)uv_run(xpl_loop_uv(f->loop), UV_RUN_DEFAULT);
    uv_timer_stop(&f->poll);
    return f->reached;
}

static void make_logdir(void) {
    (void)snprintf(logdir, sizeof logdir, "/tmp/xplaned-watch-XXXXXX");
    CHECK(mkdtemp(logdir));
}

static void remove_logdir(void) {
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", logdir);
    CHECK_EQ(system(command), 0);
}

// New directories, files in them, changed and removed ones, without any timer.
static void check_notifications(void) {
    struct fixture f;
    make_logdir();
    begin(&f, NEVER_MS);
    CHECK_EQ(f.n_sessions, 0);
    add_session("a", 100); // with all directories above it
    CHECK(run_until(&f, 1, 100, PATIENCE_MS));
    add_session("b", 10);
    CHECK(run_until(&f, 2, 110, PATIENCE_MS));
    add_session("b", 20);
    CHECK(run_until(&f, 2, 120, PATIENCE_MS));
    char path[128];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/a/vm.xplane.pb", logdir);
    CHECK_EQ(unlink(path), 0);
    CHECK(run_until(&f, 2, 20, PATIENCE_MS)); // an empty run is a session
    const unsigned calls = f.calls;
    CHECK(!run_until(&f, 0, 0, 300)); // nothing happens: no callback runs
    CHECK_EQ(f.calls, calls);
    end(&f);
    remove_logdir();
}

// What a link outside of LOGDIR leads to changes without notice: the timer finds it.
static void check_timer(void) {
    char target[128], command[300];
    struct fixture f;
    make_logdir();
    (void)snprintf(target, sizeof target, "%s.outside", logdir);
    put_file(target, 10);
    (void)snprintf(command, sizeof command, "mkdir %s/run && ln -s %s %s/run/vm.xplane.pb", logdir,
                   target, logdir);
    CHECK_EQ(system(command), 0);
    begin(&f, 50);
    CHECK_EQ(f.n_sessions, 1);
    put_file(target, 1000);
    CHECK(run_until(&f, 1, 1000, PATIENCE_MS));
    end(&f);
    // Without the timer it stays unnoticed, until the next scan of everything.
    begin(&f, NEVER_MS);
    put_file(target, 50);
    CHECK(!run_until(&f, 1, 50, 300));
    end(&f);
    CHECK_EQ(unlink(target), 0);
    remove_logdir();
}

// A requested scan begins at once, also while another one runs.
static void check_scan(void) {
    struct fixture f;
    make_logdir();
    add_session("a", 1);
    begin(&f, NEVER_MS);
    const uint64_t before = xpl_clock_ns();
    for (int i = 0; i < 20; i++) {
        char run[16];
        (void)snprintf(run, sizeof run, "s%02d", i);
        add_session(run, 1);
        char path[64];
        (void)snprintf(path, sizeof path, "plugins/profile/%s", run);
        xpl_watch_scan(f.watch, path);
    }
    CHECK(run_until(&f, 21, 21, PATIENCE_MS));
    CHECK(xpl_clock_ns() - before < (uint64_t)PATIENCE_MS * 1000000);
    end(&f);
    remove_logdir();
}

static void on_write(uv_timer_t *t) {
    (void)t;
    char path[128];
    static unsigned n;
    (void)snprintf(path, sizeof path, "%s/noise-%u", logdir, n++ % 7);
    put_file(path, n);
}

// A program that writes in LOGDIR without a pause does not put scans off.
static void check_busy_writer(void) {
    struct fixture f;
    make_logdir();
    begin(&f, NEVER_MS);
    uv_timer_start(&f.writer, on_write, 0, 2);
    add_session("a", 5);
    CHECK(run_until(&f, 1, 5, PATIENCE_MS));
    add_session("b", 5);
    CHECK(run_until(&f, 2, 10, PATIENCE_MS));
    end(&f);
    remove_logdir();
}

// The second listing takes long, and misses later objects.
static xpl_status_t list_slowly(struct xpl_objects *o, xpl_str_t dir, struct xpl_object_list *list,
                                struct xpl_error *err) {
    const xpl_status_t st = fake_list(o, dir, list, err);
    if (fake.lists == 2) {
        (void)usleep(2 * PATIENCE_MS * 50); // a tenth of the patience
        fake.v[0] = (struct fake_object){"run/vm.xplane.pb", "\"1\"", "12345"};
    }
    return st;
}

// A store that is slow is not asked the less often.
static void check_bucket(void) {
    struct fixture f;
    struct xpl_error err = {0};
    struct xpl_objects_ops slow = fake_ops;
    make_logdir();
    slow.list = list_slowly;
    CHECK_OK(xpl_objects_init(&fake.base, &slow, XPL_STR("place"), logdir, 1 << 20, &err), &err);
    begin_on(&f, &fake.base, 1);
    CHECK_EQ(f.n_sessions, 0);
    CHECK(run_until(&f, 1, 5, PATIENCE_MS));
    end(&f);
    xpl_objects_unref(&fake.base);
    remove_logdir();
}

// Closed before the first scan, while one runs, and right after a request for one.
static void check_close(void) {
    make_logdir();
    for (int i = 0; i < 200; i++) {
        char run[16];
        (void)snprintf(run, sizeof run, "s%03d", i);
        add_session(run, 1);
    }
    for (int i = 0; i < 30; i++) {
        struct fixture f;
        begin(&f, 50);
        if (i % 3 == 1) xpl_watch_scan(f.watch, "plugins/profile");
        for (int k = 0; k < i / 3; k++)
            (void)uv_run(xpl_loop_uv(f.loop), UV_RUN_NOWAIT);
        end(&f);
    }
    remove_logdir();
}

int main(void) {
    (void)alarm(220);
    check_notifications();
    check_timer();
    check_scan();
    check_busy_writer();
    check_bucket();
    check_close();
    return 0;
}
