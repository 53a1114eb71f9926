// SPDX-License-Identifier: Apache-2.0
// SQLite's allocations, counted in `seen`; the one numbered `fail_at` fails (-1: none does).
#ifndef XPL_TESTS_FAULT_SQLITE_FAULTS_H_
#define XPL_TESTS_FAULT_SQLITE_FAULTS_H_

#include <sqlite3.h>
#include <stdint.h>

#include "tests/check.h"
#include "tests/sanitized.h"

static sqlite3_mem_methods real;
static int64_t seen, fail_at = -1;

static void *f_malloc(int n) {
    return seen++ == fail_at ? NULL : real.xMalloc(n);
}
static void *f_realloc(void *p, int n) {
    return seen++ == fail_at ? NULL : real.xRealloc(p, n);
}

// The one that fails after `at`. SQLite has thousands, and sanitizers take twenty times as long:
// with them it is each eleventh.
static inline int64_t next_of_sqlite(int64_t at) {
    return at + (is_sanitized() ? 11 : 1);
}

// Before anything uses SQLite.
static void wrap_sqlite(void) {
    CHECK_EQ(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real), SQLITE_OK);
    sqlite3_mem_methods wrapped = real;
    wrapped.xMalloc = f_malloc;
    wrapped.xRealloc = f_realloc;
    CHECK_EQ(sqlite3_config(SQLITE_CONFIG_MALLOC, &wrapped), SQLITE_OK);
    CHECK_EQ(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK); // or small ones hide
    CHECK_EQ(sqlite3_initialize(), SQLITE_OK);
}

#endif
