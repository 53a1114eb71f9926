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

// Within `ms` a condition over the database holds.
static inline void wait_for(const char *condition, long ms) {
    char sql[500];
    (void)snprintf(sql, sizeof sql, "DO $$ BEGIN ASSERT (%s); END $$", condition);
    for (long waited = 0; pg_try("postgres", sql) != 0; waited += 50) {
        if (waited > ms) fprintf(stderr, "not within %ld ms: %s\n", ms, condition);
        CHECK(waited <= ms);
        pg_pause_ms(50);
    }
}

#endif
