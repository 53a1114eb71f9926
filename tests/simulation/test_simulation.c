// SPDX-License-Identifier: Apache-2.0
// The protocol of jobs in one process (README.md): many seeds without a fault, and planted faults
// that the judge must find.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/check.h"
#include "tests/simulation/world.h"

static uint64_t first = 1, count = 1000;
static volatile unsigned long long running; // seed

// A check that fails says in which seed.
static void say_seed(int signal) {
    char text[40];
    (void)signal;
    const int n = snprintf(text, sizeof text, "in seed %llu\n", running);
    (void)!write(2, text, (size_t)n);
}

static const char *run_seed(uint64_t seed, enum sim_fault planted) {
    running = seed;
    return sim_world_run(seed, planted);
}

static const char *const faults[SIM_FAULTS] = {
    [SIM_FAULT_LATE_CLAIM] = "a claim committed after its caller gave up",
    [SIM_FAULT_COUNTED] = "an attempt counted without work",
    [SIM_FAULT_FREEZE] = "a freeze between delete and commit",
    [SIM_FAULT_LOST_ANSWER] = "a commit whose answer is lost",
    [SIM_FAULT_HEALTHY_ENDED] = "a healthy worker ended",
    [SIM_FAULT_DOUBLE] = "a double publication",
    [SIM_FAULT_HALVED] = "a batch halved wrongly",
};

static void run_all(void) {
    for (uint64_t seed = first; seed < first + count; seed++) {
        const char *const wrong = run_seed(seed, SIM_FAULT_NONE);
        if (!wrong) continue;
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, wrong);
        FAIL_TEST("the judge found something wrong");
    }
}

static void find_planted(void) {
    for (int f = SIM_FAULT_NONE + 1; f < SIM_FAULTS; f++) {
        const char *wrong = NULL;
        uint64_t seed = first;
        while (!wrong && seed < first + count)
            wrong = run_seed(seed++, (enum sim_fault)f);
        printf("%s: seed %llu: %s\n", faults[f], (unsigned long long)seed - 1,
               wrong ? wrong : "not found");
        CHECK(wrong);
    }
}

// Arguments: "seeds" or "planted", the number of seeds, the first; "trace": says what happens.
int main(int argc, char **argv) {
    CHECK(argc > 1 && xpl_log_configure("error"));
    if (argc > 2) count = strtoull(argv[2], NULL, 10);
    if (argc > 3) first = strtoull(argv[3], NULL, 10);
    (void)signal(SIGABRT, say_seed);
    (void)run_seed(0, SIM_FAULT_NONE); // makes the tables, which stay
    sim_tracing = argc > 4;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(argv[1], "planted") == 0)
        find_planted();
    else
        run_all();
    printf("%llu seeds, %.1f s of processor\n", (unsigned long long)count,
           (double)clock() / CLOCKS_PER_SEC);
    return 0;
}
