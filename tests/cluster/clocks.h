// SPDX-License-Identifier: Apache-2.0
// Daemons whose wall clock is wrong: libfaketime (Debian package faketime) in their processes only.
#ifndef XPL_TESTS_CLUSTER_CLOCKS_H_
#define XPL_TESTS_CLUSTER_CLOCKS_H_

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/sanitized.h"
#include "tests/server/harness.h"

// Ends the test as skipped, with the reason, where clocks cannot be shifted.
static inline void need_clocks(void) {
    glob_t g;
    const char *const why = is_sanitized() ? "sanitizers need to be the first library"
                            : glob("/usr/lib/*/faketime/libfaketimeMT.so.1", 0, NULL, &g) != 0
                                ? "no libfaketime: Debian's package faketime"
                                : NULL;
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        exit(77);
    }
    CHECK_EQ(setenv("XPL_TEST_FAKETIME", g.gl_pathv[0], 1), 0);
    globfree(&g);
}

// The clocks of daemons started from here on are so many hours ahead, or behind; 0 means correct.
// Time that passes, and times of files, stay what they are.
static inline void shift_clock(int hours) {
    char shift[16];
    (void)snprintf(shift, sizeof shift, "%+dh", hours);
    if (!hours) {
        CHECK_EQ(unsetenv("LD_PRELOAD"), 0);
        return;
    }
    CHECK_EQ(setenv("LD_PRELOAD", getenv("XPL_TEST_FAKETIME"), 1), 0);
    CHECK_EQ(setenv("FAKETIME", shift, 1), 0);
    CHECK_EQ(setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1), 0);
    CHECK_EQ(setenv("FAKETIME_FORCE_MONOTONIC_FIX", "0", 1), 0); // with it waits end at once
    CHECK_EQ(setenv("NO_FAKE_STAT", "1", 1), 0);
}

// The hour that the daemon's log has is the shifted one.  What libfaketime shares between processes
// is removed while it is in use, as a killed one leaves it.
static inline void expect_clock(const struct daemon_proc *d, int hours) {
    char hour[32], name[64];
    struct tm tm;
    for (int k = 0; k < 2; k++) {
        (void)snprintf(name, sizeof name, "/dev/shm/%sfaketime_s%s_%d", k ? "sem." : "",
                       k ? "em" : "hm", (int)d->pid);
        CHECK(!hours || unlink(name) == 0);
    }
    const time_t now = time(NULL) + hours * 3600, before = now - 60; // if the hour just ended
    CHECK(gmtime_r(&now, &tm) && strftime(hour, sizeof hour, "%Y-%m-%dT%H:", &tm));
    if (log_has(d, hour)) return;
    CHECK(gmtime_r(&before, &tm) && strftime(hour, sizeof hour, "%Y-%m-%dT%H:", &tm));
    CHECK(log_has(d, hour));
}

#endif
