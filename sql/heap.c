// SPDX-License-Identifier: Apache-2.0
#include "sql/heap.h"

#include <sqlite3.h>
#include <stddef.h>

static sqlite3_mem_methods real;
enum { CHECK_BYTES = 256 << 10, CALL_BYTES = 256 }; // an allocation counts as so many bytes more

static _Thread_local struct {
    int64_t used, limit; // limit 0: nothing is counted
    int64_t unseen;      // bytes since `exec` was last checked
    struct xpl_exec *exec;
    bool met;
} budget;

static bool may_have(int64_t more) {
    if (!budget.limit || more <= 0) return true;
    if (budget.used + more > budget.limit) {
        budget.met = true;
        return false;
    }
    budget.unseen += more + CALL_BYTES;
    if (budget.unseen < CHECK_BYTES) return true;
    budget.unseen = 0;
    return !xpl_exec_cancelled(budget.exec);
}

static void *allocate(int n) {
    if (!may_have(n)) return NULL;
    void *const p = real.xMalloc(n);
    if (p && budget.limit) budget.used += real.xSize(p);
    return p;
}

static void release(void *p) {
    if (p && budget.limit) budget.used -= real.xSize(p);
    real.xFree(p);
}

static void *resize(void *p, int n) {
    const int before = p ? real.xSize(p) : 0;
    if (!may_have(n - before)) return NULL;
    void *const q = real.xRealloc(p, n);
    if (q && budget.limit) budget.used += real.xSize(q) - before;
    return q;
}

bool xpl_sql_heap_install(void) {
    if (real.xMalloc) return true;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real) != SQLITE_OK) return false;
    sqlite3_mem_methods ours = real;
    ours.xMalloc = allocate;
    ours.xFree = release;
    ours.xRealloc = resize;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) == SQLITE_OK) return true;
    real = (sqlite3_mem_methods){0};
    return false;
}

void xpl_sql_heap_begin(uint64_t limit, struct xpl_exec *exec) {
    budget.used = budget.unseen = 0;
    budget.exec = exec;
    budget.limit = limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
    budget.met = false;
}

int64_t xpl_sql_heap_pause(void) {
    const int64_t limit = budget.limit;
    budget.limit = 0;
    return limit;
}

void xpl_sql_heap_resume(int64_t paused) {
    budget.limit = paused;
}

bool xpl_sql_heap_end(void) {
    budget.limit = 0;
    return budget.met;
}
