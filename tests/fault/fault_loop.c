// SPDX-License-Identifier: Apache-2.0
// Every allocation that libuv and the loop's own code make on the loop's thread fails once, while
// directories are watched: the loop always ends, and scans find the directories that are not
// watched.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "server/loop.h"
#include "server/watch.h"
#include "tests/check.h"

enum { INTERVAL_MS = 20, RUN_MS = 90 };

// libuv's allocations: those of any thread count. It reallocates only the table of watched
// descriptors, without which it aborts.
static atomic_long seen, fail_at = -1;
static void *f_malloc(size_t n) {
    return atomic_fetch_add(&seen, 1) == atomic_load(&fail_at) ? NULL : malloc(n);
}
static void *f_calloc(size_t n, size_t size) {
    return atomic_fetch_add(&seen, 1) == atomic_load(&fail_at) ? NULL : calloc(n, size);
}

static char logdir[64] = "/tmp/xpl-fault-loop-XXXXXX";
static unsigned round_number;

struct scenario {
    struct xpl_loop *loop;
    struct xpl_watch *watch;
    uv_timer_t timer;
    size_t n_dirs; // of the last snapshot
    bool posted;
};

static void changed(void *arg, struct xpl_snapshot *before, struct xpl_snapshot *after) {
    struct scenario *s = arg;
    (void)before;
    s->n_dirs = after->n_dirs;
}

static void on_post(void *arg) {
    ((struct scenario *)arg)->posted = true;
}

static void on_end(uv_timer_t *t) {
    struct scenario *s = t->data;
    uv_close((uv_handle_t *)t, NULL);
    if (s->watch) xpl_watch_close(s->watch);
    xpl_loop_close(s->loop);
}

// False when the loop could not begin.
static bool run(void) {
    struct scenario s = {0};
    struct xpl_catalogue *catalogue = NULL;
    const struct xpl_catalogue_options co = {
        .size = sizeof co, .logdir = logdir, .match = xpl_format_match};
    struct xpl_error err = {0};
    if (xpl_catalogue_new(&co, &catalogue, &err) != XPL_OK) return false;
    s.loop = xpl_loop_new();
    if (s.loop) {
        s.watch = xpl_watch_new(s.loop, catalogue, INTERVAL_MS, changed, &s);
        const bool sent = xpl_loop_post(s.loop, on_post, &s);
        char path[128];
        (void)snprintf(path, sizeof path, "%s/dir-%u", logdir, round_number++);
        CHECK_EQ(mkdir(path, 0700), 0);
        CHECK_EQ(uv_timer_init(xpl_loop_uv(s.loop), &s.timer), 0);
        s.timer.data = &s;
        CHECK_EQ(uv_timer_start(&s.timer, on_end, RUN_MS, 0), 0);
        CHECK_EQ(uv_run(xpl_loop_uv(s.loop), UV_RUN_DEFAULT), 0);
        CHECK_EQ(s.posted, sent);
        xpl_loop_free(s.loop);
        CHECK_EQ(rmdir(path), 0);
    }
    const bool began = s.loop != NULL;
    xpl_catalogue_free(catalogue);
    return began;
}

int main(void) {
    alarm(200);
    CHECK_EQ(uv_replace_allocator(f_malloc, realloc, f_calloc, free), 0);
    CHECK(mkdtemp(logdir));
    CHECK(run()); // starts libuv's threads
    atomic_store(&seen, 0);
    CHECK(run());
    const long theirs = atomic_load(&seen);
    CHECK(theirs > 0);
    for (long i = 0; i < theirs; i++) {
        atomic_store(&seen, 0);
        atomic_store(&fail_at, i);
        (void)run();
    }
    atomic_store(&fail_at, -1);
    xpl_fault_reset();
    CHECK(run());
    const uint64_t ours = xpl_fault_count();
    for (uint64_t i = 0; i < ours; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        (void)run();
    }
    xpl_fault_reset();
    CHECK(run());
    CHECK_EQ(rmdir(logdir), 0);
    printf("libuv: %ld allocations, ours: %llu\n", theirs, (unsigned long long)ours);
    return 0;
}
