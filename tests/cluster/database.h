// SPDX-License-Identifier: Apache-2.0
// What tests of daemons that share a database have of it.
#ifndef XPL_TESTS_CLUSTER_DATABASE_H_
#define XPL_TESTS_CLUSTER_DATABASE_H_

#include <stdio.h>

#include "tests/cluster/pg_server.h"

static inline const char *store_flag(void) {
    static char store[300];
    (void)snprintf(store, sizeof store, "--store=%s", pg_url("postgres"));
    return store;
}

static inline bool holds(const char *condition) {
    char sql[500];
    (void)snprintf(sql, sizeof sql, "DO $$ BEGIN ASSERT (%s); END $$", condition);
    return pg_try("postgres", sql) == 0;
}

// A condition over the database holds now.
static inline void expect_now(const char *condition) {
    if (!holds(condition)) FAIL_TEST(condition);
}

// It will hold soon, or, on a busy machine, later.
static inline void wait_for(const char *condition) {
    for (int i = 0; !holds(condition); i++) {
        if (i >= 600) FAIL_TEST(condition);
        pg_pause_ms(50);
    }
}

#endif
