// SPDX-License-Identifier: Apache-2.0
// Writes profiles of kinds that no real one among ours is of, as the unit tests make them, below
// the log directory that it is given: of a model server, with hardware counters, of two hosts of
// which only the second has threads, of several slices, and runs of a program whose fusion takes
// longer from the eighth on.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/counters_fixture.h"
#include "tests/megascale_fixture.h"
#include "tests/unit/inference/serving_profile.h"

static bool make_folder(const char *path) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return true;
    perror(path);
    return false;
}

// Writes `space` as DIR/GROUP/plugins/profile/SESSION/HOST.xplane.pb and frees it.
static bool write_host(const char *dir, const char *group, const char *session, const char *host,
                       struct xpl_buf *space) {
    const char *const parts[] = {group, "plugins", "profile", session};
    char path[4096];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", dir);
    bool ok = n < sizeof path;
    for (size_t i = 0; ok && i < sizeof parts / sizeof *parts; i++) {
        n += (size_t)snprintf(path + n, sizeof path - n, "/%s", parts[i]);
        ok = n < sizeof path && make_folder(path);
    }
    n += ok ? (size_t)snprintf(path + n, sizeof path - n, "/%s.xplane.pb", host) : 0;
    FILE *const f = ok && n < sizeof path ? fopen(path, "wb") : NULL;
    ok = f && fwrite(space->p, 1, space->n, f) == space->n;
    ok = f && fclose(f) == 0 && ok;
    if (!ok) fprintf(stderr, "%s: not written\n", session);
    xpl_buf_fini(space);
    return ok;
}

enum { RUNS = 12, SLOW_FROM = 7, STEPS = 20, US = 1000000 };

static void add_op(struct mk_plane *p, struct xpl_buf *line, const char *name, int64_t begin_ps,
                   int64_t us) {
    struct xpl_buf ev = mk_event(p, name, begin_ps, us * US);
    mk_stat_str(p, &ev, "hlo_op", name);
    mk_stat_str(p, &ev, "hlo_module", "jit_step");
    mk_stat_int(p, &ev, "program_id", 6);
    mk_event_end(line, &ev);
}

// One run an hour: steps of 20 us on a CPU, or of 24 from the eighth on, whose fusion takes the
// rest.  A step begins where the last one ends.
static bool write_run(const char *dir, int i) {
    const int64_t slow = i >= SLOW_FROM ? 4 : 0, ns = (INT64_C(1700000000) + i * 3600) * 1000000000,
                  period = (20 + slow) * US + i % 3 * US / 10;
    struct xpl_buf space = mk_open(), steps = mk_line(1, "python"),
                   ops = mk_line(2, "tf_XLAEigen/2");
    struct mk_plane p;
    char session[32];
    mk_plane_begin(&p, 1, "/host:CPU");
    mk_int(&steps, 3, ns);
    mk_int(&ops, 3, ns);
    for (int64_t k = 0; k < STEPS; k++) {
        struct xpl_buf ev = mk_event(&p, "train", k * period, period);
        mk_stat_int(&p, &ev, "_r", 1);
        mk_stat_int(&p, &ev, "step_num", k);
        mk_event_end(&steps, &ev);
        add_op(&p, &ops, "fusion.1", k * period + US, 6 + slow);
        add_op(&p, &ops, "dot.2", k * period + (7 + slow) * US, 2);
    }
    mk_line_end(&p, &steps);
    mk_line_end(&p, &ops);
    mk_plane_end(&p, &space);
    (void)snprintf(session, sizeof session, "run%02d", i);
    return write_host(dir, "nightly", session, "h", &space);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s LOGDIR\n", argv[0]);
        return 2;
    }
    struct xpl_buf serving = serving_batches(40, 8, "m"), runs = serving_runs(100, "n"),
                   counters = counters_fixture(), without = counters_fixture(),
                   with = serving_runs(10, "n"), slices = megascale_fixture(2, true),
                   slice = megascale_fixture(1, true);
    bool ok = write_host(argv[1], "made", "serving", "host", &serving);
    ok = write_host(argv[1], "made", "serving_runs", "host", &runs) && ok;
    ok = write_host(argv[1], "made", "counters", "host", &counters) && ok;
    ok = write_host(argv[1], "made", "halves", "host-0", &without) && ok;
    ok = write_host(argv[1], "made", "halves", "host-1", &with) && ok;
    ok = write_host(argv[1], "made", "slices", "host-0", &slices) && ok;
    ok = write_host(argv[1], "made", "slices", "host-1", &slice) && ok;
    for (int i = 0; i < RUNS; i++)
        ok = write_run(argv[1], i) && ok;
    return ok ? 0 : 1;
}
