// SPDX-License-Identifier: Apache-2.0
// A database for each test, of the server that tests/cluster/pg_server.h begins.
#ifndef XPL_TESTS_UNIT_STORAGE_PG_DATABASE_H_
#define XPL_TESTS_UNIT_STORAGE_PG_DATABASE_H_

#include <stdio.h>

#include "tests/cluster/pg_server.h"

static char database[32]; // the one that was made last

static inline void make_database(void) {
    static int n;
    char sql[80];
    (void)snprintf(database, sizeof database, "t%d", ++n);
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s", database);
    pg_sql("postgres", sql);
}

// A condition that it must fulfil.
static inline void expect_sql(const char *condition) {
    char sql[1000];
    (void)snprintf(sql, sizeof sql, "DO $$ BEGIN ASSERT (%s); END $$", condition);
    pg_sql(database, sql);
}

// A condition that it fulfils within 30 s.
static inline void wait_sql(const char *condition) {
    char sql[1000];
    (void)snprintf(sql, sizeof sql, "DO $$ BEGIN ASSERT (%s); END $$", condition);
    for (int i = 0; pg_try(database, sql) != 0; i++) {
        CHECK(i < 600);
        pg_pause_ms(50);
    }
}

#endif
