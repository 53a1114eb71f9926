// SPDX-License-Identifier: Apache-2.0
// Lets SQLite's allocations fail, one in each run of a scenario: the first one of each call stack.
// A statement has thousands, most of them in loops, which have one stack and one way out.
//
//     int64_t from = 0;
//     do {
//         sqlite_fail_from(from);
//         run();
//         from = sqlite_failed() + 1;
//     } while (from);
#ifndef XPL_TESTS_FAULT_SQLITE_FAULTS_H_
#define XPL_TESTS_FAULT_SQLITE_FAULTS_H_

#include <execinfo.h>
#include <sqlite3.h>
#include <stdint.h>

#include "storage/hash.h"
#include "tests/check.h"

enum { SQLITE_STACKS = 1 << 14, SQLITE_DEPTH = 48 }; // a power of two; frames

static sqlite3_mem_methods real;
static int64_t sqlite_seen, sqlite_from = -1, sqlite_at = -1; // `sqlite_at`: the one that failed
static uint64_t sqlite_stacks[SQLITE_STACKS];                 // hashes of those that failed once
static unsigned sqlite_n_stacks;

// Adds the hash of the caller's stack; false when it is there.
static bool sqlite_add_stack(void) {
    void *frames[SQLITE_DEPTH];
    const size_t n = (size_t)backtrace(frames, SQLITE_DEPTH);
    const uint64_t hash = xpl_digest64((xpl_bytes_t){(uint8_t *)frames, n * sizeof *frames}, 0);
    uint64_t at = hash;
    while (sqlite_stacks[at %= SQLITE_STACKS] && sqlite_stacks[at] != hash)
        at++;
    if (sqlite_stacks[at]) return false;
    CHECK(++sqlite_n_stacks < SQLITE_STACKS / 2);
    sqlite_stacks[at] = hash;
    return true;
}

static bool sqlite_fails(void) {
    const int64_t i = sqlite_seen++;
    if (sqlite_from < 0 || i < sqlite_from || sqlite_at >= 0 || !sqlite_add_stack()) return false;
    sqlite_at = i;
    return true;
}

static void *f_malloc(int n) {
    return sqlite_fails() ? NULL : real.xMalloc(n);
}
static void *f_realloc(void *p, int n) {
    return sqlite_fails() ? NULL : real.xRealloc(p, n);
}

// The first allocation from number `from` on whose stack has not failed yet fails; -1: none does.
static void sqlite_fail_from(int64_t from) {
    sqlite_seen = 0;
    sqlite_from = from;
    sqlite_at = -1;
}

// The number of the allocation that failed, and -1 when none did.  Disarms.
static int64_t sqlite_failed(void) {
    sqlite_from = -1;
    return sqlite_at;
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
