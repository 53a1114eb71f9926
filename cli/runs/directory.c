// SPDX-License-Identifier: Apache-2.0
#include "cli/runs/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "analysis/xplane/captured.h"
#include "base/arena.h"
#include "base/vec.h"
#include "cli/args.h"
#include "storage/places.h"
#include "storage/sessions/catalogue.h"

struct listing {
    struct xpl_arena *arena;
    XPL_VEC(struct xpl_run_below) runs;
};

static int newest_first(const void *a, const void *b) {
    const struct xpl_run_below *const x = a, *const y = b;
    if (x->captured_ms != y->captured_ms) return x->captured_ms < y->captured_ms ? 1 : -1;
    return -xpl_str_cmp(x->name, y->name);
}

// Sessions with separate directories are runs.
static bool list(struct listing *l, const char *dir, const struct xpl_session *s) {
    char path[4096];
    xpl_str_t copy;
    if (!s->n_hosts || !xpl_place_join(dir, s->path, path, sizeof path) ||
        !xpl_inputs_are_there(path))
        return true;
    struct xpl_run_below *const run = xpl_vec_push(l->arena, &l->runs);
    if (!run || !xpl_arena_str(l->arena, s->name, &run->name) ||
        !xpl_arena_str(l->arena, (xpl_str_t){path, strlen(path) + 1}, &copy))
        return false;
    run->path = copy.ptr;
    run->captured_ms = s->captured_ns / 1000000;
    return true;
}

static bool list_all(struct listing *l, const char *dir, const struct xpl_snapshot *snap,
                     int64_t since_ms) {
    for (size_t i = 0; i < snap->n_sessions; i++)
        if (snap->sessions[i].captured_ns / 1000000 >= since_ms &&
            !list(l, dir, &snap->sessions[i]))
            return false;
    return true;
}

int xpl_runs_below(const char *flag, const char *dir, int64_t since_ms, size_t most,
                   struct xpl_arena *arena, struct xpl_run_below **ret, size_t *ret_n) {
    const struct xpl_catalogue_options o = {.size = sizeof o,
                                            .logdir = dir,
                                            .match = xpl_format_match,
                                            .captured_ns = xpl_xspace_captured_ns};
    struct listing l = {.arena = arena};
    struct xpl_catalogue *c = NULL;
    struct xpl_error err = {0};
    if (xpl_catalogue_new(&o, &c, &err) != XPL_OK) {
        (void)fprintf(stderr, "xplanectl: %s%s: %s\n", flag, dir, err.msg);
        return XPL_EXIT_FAILED;
    }
    struct xpl_snapshot *const snap = xpl_catalogue_get(c);
    const bool listed = list_all(&l, dir, snap, since_ms);
    xpl_snapshot_unref(snap);
    xpl_catalogue_free(c);
    if (!listed || !l.runs.n) {
        (void)fprintf(stderr,
                      listed ? "xplanectl: %s%s: no session matches\n"
                             : "xplanectl: %s%s: out of memory\n",
                      flag, dir);
        return XPL_EXIT_FAILED;
    }
    qsort(l.runs.v, l.runs.n, sizeof *l.runs.v, newest_first);
    *ret = l.runs.v;
    *ret_n = l.runs.n < most ? l.runs.n : most;
    return XPL_EXIT_OK;
}
