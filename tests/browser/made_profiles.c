// SPDX-License-Identifier: Apache-2.0
// Writes profiles of kinds that no real one among ours is of, as the unit tests make them, below
// the log directory that it is given: of a model server, with hardware counters, of several slices.
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

// Writes `space` as DIR/made/plugins/profile/SESSION/HOST.xplane.pb and frees it.
static bool write_host(const char *dir, const char *session, const char *host,
                       struct xpl_buf *space) {
    const char *const parts[] = {"made", "plugins", "profile", session};
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

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s LOGDIR\n", argv[0]);
        return 2;
    }
    struct xpl_buf serving = serving_batches(40, 8, "m"), runs = serving_runs(100, "n"),
                   counters = counters_fixture(), slices = megascale_fixture(2, true),
                   slice = megascale_fixture(1, true);
    bool ok = write_host(argv[1], "serving", "host", &serving);
    ok = write_host(argv[1], "serving_runs", "host", &runs) && ok;
    ok = write_host(argv[1], "counters", "host", &counters) && ok;
    ok = write_host(argv[1], "slices", "host-0", &slices) && ok;
    ok = write_host(argv[1], "slices", "host-1", &slice) && ok;
    return ok ? 0 : 1;
}
