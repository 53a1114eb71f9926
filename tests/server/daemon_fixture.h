// SPDX-License-Identifier: Apache-2.0
// What the tests of the daemon share.
#ifndef XPL_TESTS_SERVER_DAEMON_FIXTURE_H_
#define XPL_TESTS_SERVER_DAEMON_FIXTURE_H_

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/tools/tool.h"
#include "tests/check.h"
#include "tests/server/harness.h"

#define TRAIN "logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb"
#define GPU   "logdir/accel/plugins/profile/gpu_multi_worker/gpu_multi_worker.xplane.pb"
#define TPU   "logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb"

static const char *const no_prefetch[] = {"--no-prefetch", NULL};

static inline const char *any_profile(void) {
    return profile(TRAIN);
}

static inline bool is_kept(const struct xpl_tool *t) {
    return !t->keeps_no_answer && strcmp(t->name, "memory_viewer") != 0 && // it needs a program
           t->needs[0] != &xpl_product_iree_bundle;                        // of other files
}

// How many answers all_answers has.
static inline long n_answers(void) {
    size_t n_tools;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    long n = 0;
    for (size_t i = 0; i < n_tools; i++)
        n += is_kept(tools[i]);
    return n;
}

// Answers of all tools for one host, one after the other, as one string (owned by the caller).
static inline char *all_answers(xpl_client *c, const char *session, const char *host,
                                const char *source) {
    char *all = NULL;
    size_t n = 0;
    size_t n_tools;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    for (size_t i = 0; i < n_tools; i++) {
        xpl_answer *a = NULL;
        xpl_result r;
        if (!is_kept(tools[i])) continue;
        const int code = ask_tool(c, session, tools[i]->name, host, &a, &r);
        if (code) fprintf(stderr, "%s: %s\n", tools[i]->name, r.message);
        CHECK_EQ(code, 0);
        if (source && strcmp(xpl_answer_source(a), source) != 0) {
            fprintf(stderr, "%s came from %s\n", tools[i]->name, xpl_answer_source(a));
            FAIL_TEST("source");
        }
        size_t len;
        const void *const p = xpl_answer_data(a, &len);
        all = realloc(all, n + len + 2);
        CHECK(all);
        memcpy(all + n, p, len);
        n += len;
        all[n++] = '\n';
        all[n] = 0;
        xpl_answer_free(a);
    }
    return all;
}

struct storm {
    struct daemon_proc *d;
    int ok, exhausted, other;
    bool retry;
    pthread_mutex_t mu;
};

struct scenario {
    const char *name;
    void (*run)(void);
};

// main: runs the scenario that was named, for four minutes at most.
static inline int run_scenario(const struct scenario *all, size_t n, int argc, char **argv) {
    CHECK_EQ(argc, 2);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(all[i].name, argv[1]) != 0) continue;
        (void)alarm(240);
        all[i].run();
        return 0;
    }
    FAIL_TEST("no such scenario");
    return 1;
}

#endif
