// SPDX-License-Identifier: Apache-2.0
// base/heap: large blocks are counted whatever becomes of them, the budget holds, freed memory is
// given back.
#include "base/heap.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/arena.h"
#include "tests/check.h"
#include "tests/sanitized.h"

enum { MIB = 1 << 20 };

static void test_counting(void) {
    const size_t before = xpl_heap_in_use();
    void *small = xpl_sys_alloc(1000);
    CHECK(small);
    CHECK_EQ(xpl_heap_in_use(), before);
    void *p = xpl_sys_alloc(MIB);
    CHECK(p);
    CHECK(xpl_heap_in_use() - before >= MIB && xpl_heap_in_use() - before < MIB + 8192);
    CHECK((p = xpl_sys_realloc(p, 3 * MIB)));
    CHECK(xpl_heap_in_use() - before >= 3 * MIB && xpl_heap_in_use() - before < 3 * MIB + 8192);
    CHECK((p = xpl_sys_realloc(p, 100))); // large to small
    CHECK_EQ(xpl_heap_in_use(), before);
    CHECK((p = xpl_sys_realloc(p, MIB))); // and back
    CHECK(xpl_heap_in_use() - before >= MIB);
    xpl_sys_free(p);
    xpl_sys_free(small);
    xpl_sys_free(NULL);
    CHECK_EQ(xpl_heap_in_use(), before);
    // Every size around the bound is counted when it is freed as it was when it was made.
    for (size_t n = XPL_HEAP_LARGE - 200; n < XPL_HEAP_LARGE + 200; n++) {
        void *a = xpl_sys_alloc(n), *b = xpl_sys_realloc(NULL, n);
        CHECK(a && b);
        CHECK((a = xpl_sys_realloc(a, XPL_HEAP_LARGE + 100)));
        CHECK((b = xpl_sys_realloc(b, 10)));
        xpl_sys_free(a);
        xpl_sys_free(b);
        CHECK_EQ(xpl_heap_in_use(), before);
    }
}

static void test_budget(void) {
    const size_t before = xpl_heap_in_use();
    xpl_heap_set_budget(before + 10 * MIB);
    void *p = xpl_sys_alloc(8 * MIB);
    CHECK(p);
    CHECK(!xpl_sys_alloc(3 * MIB));
    CHECK(!xpl_sys_realloc(NULL, 3 * MIB));
    CHECK(!xpl_sys_realloc(p, 12 * MIB)); // the old block is untouched
    memset(p, 1, 8 * MIB);
    void *small = xpl_sys_alloc(1000);
    CHECK(small); // refusing needs some
    CHECK((p = xpl_sys_realloc(p, 2 * MIB)));
    void *q = xpl_sys_alloc(7 * MIB);
    CHECK(q);
    xpl_sys_free(q);
    xpl_sys_free(p);
    xpl_sys_free(small);
    CHECK_EQ(xpl_heap_in_use(), before); // the refused block was not counted
    xpl_heap_set_budget(0);
    CHECK(!xpl_sys_alloc(MIB));
    CHECK((p = xpl_sys_alloc(1000)));
    xpl_sys_free(p);
    xpl_heap_set_budget(SIZE_MAX);
    if (!is_sanitized()) CHECK(!xpl_sys_alloc(SIZE_MAX / 2)); // no memory is not counted either
    CHECK_EQ(xpl_heap_in_use(), before);
}

enum { BLOCKS = 4000, EACH = 48 << 10 };

// Blocks that are too small for mmap, with every hundredth kept: free memory lies between them.
static void test_trim(void) {
    static void *blocks[BLOCKS];
    const size_t before = xpl_heap_resident();
    CHECK(before > 0);
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK((blocks[i] = xpl_sys_alloc(EACH)));
        memset(blocks[i], 1, EACH);
    }
    CHECK(xpl_heap_resident() > before + (size_t)BLOCKS * EACH / 2);
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % 100) xpl_sys_free(blocks[i]);
    CHECK(xpl_heap_may_trim_idle(16 * MIB));
    xpl_heap_trim_idle(16 * MIB);
    CHECK(xpl_heap_resident() < before + 24 * MIB);
    CHECK(!xpl_heap_may_trim_idle(16 * MIB)); // nothing was gained since
    for (size_t i = 1; i < BLOCKS; i += 100) {
        CHECK((blocks[i] = xpl_sys_alloc(EACH)));
        memset(blocks[i], 1, EACH);
    }
    for (size_t i = 2; i < BLOCKS; i++) {
        if (i % 100 < 2) continue;
        CHECK((blocks[i] = xpl_sys_alloc(EACH)));
        memset(blocks[i], 1, EACH);
    }
    CHECK(!xpl_heap_may_trim_idle(16 * MIB)); // all of it is in use
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % 100) xpl_sys_free(blocks[i]);
    CHECK(xpl_heap_may_trim_idle(16 * MIB));
    xpl_heap_trim(16 * MIB);
    CHECK(xpl_heap_resident() < before + 24 * MIB);
    for (size_t i = 0; i < BLOCKS; i += 100)
        xpl_sys_free(blocks[i]);
}

// Memory whose pages all have a block in use is not trimmed again and again while idle.
static void test_trim_rest(void) {
    enum { SMALL_BLOCKS = 1 << 16, SMALL = 240, OF_A_PAGE = 12 };
    static void *blocks[SMALL_BLOCKS];
    (void)xpl_heap_may_trim_idle(MIB); // notes how little malloc keeps
    for (size_t i = 0; i < SMALL_BLOCKS; i++) {
        CHECK((blocks[i] = xpl_sys_alloc(SMALL)));
        memset(blocks[i], 1, SMALL);
    }
    for (size_t i = 0; i < SMALL_BLOCKS; i++)
        if (i % OF_A_PAGE) xpl_sys_free(blocks[i]);
    CHECK(xpl_heap_may_trim_idle(4 * MIB));
    xpl_heap_trim(4 * MIB);
    CHECK(xpl_heap_may_trim_idle(4 * MIB));
    xpl_heap_trim_rest(4 * MIB);
    CHECK(!xpl_heap_may_trim_idle(MIB));
    for (size_t i = 0; i < SMALL_BLOCKS; i += OF_A_PAGE)
        xpl_sys_free(blocks[i]);
}

// What malloc keeps of large blocks that are too small for mmap has no room beside blocks that are
// given out and not written yet: it goes back before.
static void test_trim_beside(void) {
    enum { LARGE_BLOCKS = 400, LARGE_EACH = 100 << 10, UNWRITTEN = 3 };
    static void *blocks[LARGE_BLOCKS];
    for (size_t i = 0; i < LARGE_BLOCKS; i++) {
        CHECK((blocks[i] = xpl_sys_alloc(LARGE_EACH)));
        memset(blocks[i], 1, LARGE_EACH);
    }
    for (size_t i = 0; i < LARGE_BLOCKS - 1; i++)
        xpl_sys_free(blocks[i]);
    const size_t kept = xpl_heap_resident();
    xpl_heap_set_budget(kept + 132 * MIB);
    void *p[UNWRITTEN];
    for (int i = 0; i < UNWRITTEN; i++)
        CHECK((p[i] = xpl_sys_alloc(56 * MIB)));
    CHECK(xpl_heap_resident() + 20 * MIB < kept);
    for (int i = 0; i < UNWRITTEN; i++)
        xpl_sys_free(p[i]);
    xpl_sys_free(blocks[LARGE_BLOCKS - 1]);
    xpl_heap_set_budget(SIZE_MAX);
}

static void *take_and_give(void *arg) {
    for (int i = 0; i < 20000; i++) {
        void *const p = xpl_sys_alloc(XPL_HEAP_LARGE + (size_t)(i % 7) * 1000);
        if (p) xpl_sys_free(p);
    }
    return arg;
}

static void test_threads(void) {
    pthread_t threads[4];
    const size_t before = xpl_heap_in_use();
    xpl_heap_set_budget(before + 3 * XPL_HEAP_LARGE);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(xpl_heap_in_use(), before);
    xpl_heap_set_budget(SIZE_MAX);
}

static atomic_bool asking;

static void *ask_too_much(void *arg) {
    (void)arg;
    while (atomic_load(&asking))
        CHECK(!xpl_heap_take(SIZE_MAX / 2));
    return NULL;
}

// A block that is refused takes nothing from others, not for a moment either.
static void test_refused_beside(void) {
    pthread_t thread;
    xpl_heap_set_budget(xpl_heap_in_use() + 10 * MIB);
    atomic_store(&asking, true);
    CHECK_EQ(pthread_create(&thread, NULL, ask_too_much, NULL), 0);
    for (int i = 0; i < 2000000; i++) {
        CHECK(xpl_heap_take(1));
        xpl_heap_give(1);
    }
    atomic_store(&asking, false);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    xpl_heap_set_budget(SIZE_MAX);
}

static void test_machine(void) {
    const size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    CHECK(xpl_heap_machine() >= xpl_heap_resident() && xpl_heap_machine() <= all);
}

int main(void) {
    (void)mallopt(M_PERTURB, 0); // unwritten pages must not be resident
    test_machine();
    test_counting();
    test_budget();
    test_threads();
    test_refused_beside();
    if (!is_sanitized()) test_trim();
    if (!is_sanitized()) test_trim_rest();
    if (!is_sanitized()) test_trim_beside();
    return 0;
}
