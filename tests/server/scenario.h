// SPDX-License-Identifier: Apache-2.0
// A test program of several scenarios, each run by its name in a separate process.
#ifndef XPL_TESTS_SERVER_SCENARIO_H_
#define XPL_TESTS_SERVER_SCENARIO_H_

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct scenario {
    const char *name;
    void (*run)(void);
};

// For main: runs the scenario that the only argument names; what hangs is ended after 15 minutes.
// 2 when there is none of this name.
static inline int run_scenario(int argc, char **argv, const struct scenario *all, size_t n) {
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; argc == 2 && i < n; i++) {
        if (strcmp(all[i].name, argv[1]) != 0) continue;
        (void)alarm(900);
        all[i].run();
        return 0;
    }
    (void)fprintf(stderr, "usage: %s SCENARIO\n", argv[0]);
    for (size_t i = 0; i < n; i++)
        (void)fprintf(stderr, "    %s\n", all[i].name);
    return 2;
}

#endif
