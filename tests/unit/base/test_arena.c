// SPDX-License-Identifier: Apache-2.0
// base/arena: alignment, sizes at the edges, the limit, gaps poisoned under ASan, and the heap's
// two functions with injected faults.
#include "base/arena.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/heap.h"
#include "tests/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

static void test_empty(void) {
    struct xpl_arena zero = {0};
    CHECK(!xpl_arena_alloc(&zero, 1)); // the limit is 0
    xpl_arena_fini(&zero);
    xpl_arena_fini(&zero);
    struct xpl_arena a = xpl_arena_of(1 << 20);
    CHECK(!a.blocks);
    CHECK_EQ(a.reserved, 0);
    CHECK_EQ(a.limit, 1 << 20);
    xpl_arena_fini(&a);
    CHECK_EQ(a.limit, 0);
}

// Blocks of every size up to some KiB: aligned, apart from one another, whole.
static void test_alignment_and_overlap(void) {
    enum { N = 3000 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    static uint8_t *blocks[N];
    for (size_t i = 0; i < N; i++) {
        blocks[i] = xpl_arena_alloc(&a, i);
        CHECK(blocks[i]);
        CHECK_EQ((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)(i & 0xff), i);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < i; k++)
            CHECK_EQ(blocks[i][k], i & 0xff);
    CHECK(a.reserved <= a.limit);
}

static void test_size_zero(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    const char *const one = xpl_arena_alloc(&a, 0), *const two = xpl_arena_alloc(&a, 0);
    const char *const three = xpl_arena_array(&a, 0, 8), *const four = xpl_arena_zalloc(&a, 0);
    CHECK(one && two && three && four);
    CHECK(one != two && two != three && three != four && one != three && one != four);
}

// Sizes that wrap around when the alignment, the block's header or the product is added.
static void test_overflow(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    CHECK(xpl_arena_alloc(&a, 1)); // an empty arena would give NULL for a size that became 0
    const size_t reserved = a.reserved;
    for (size_t less = 0; less < 100; less++)
        CHECK(!xpl_arena_alloc(&a, SIZE_MAX - less));
    CHECK(!xpl_arena_array(&a, SIZE_MAX, 2));
    CHECK(!xpl_arena_array(&a, SIZE_MAX / 2 + 1, 2)); // exactly 0 modulo 2^64
    CHECK(!xpl_arena_array(&a, (size_t)1 << 32, (size_t)1 << 32));
    CHECK(!xpl_arena_zalloc(&a, SIZE_MAX));
    xpl_str_t out = {"kept", 4};
    CHECK(!xpl_arena_str(&a, (xpl_str_t){"x", SIZE_MAX}, &out));
    CHECK_STR(out, "kept");
    CHECK_EQ(a.reserved, reserved);
    CHECK(xpl_arena_array(&a, 3, 5));
}

// The sum of all blocks stays under the limit; the arena stays usable after a refusal.
static void test_limit(void) {
    for (size_t limit = 4096; limit < 200000; limit += 12345) {
        struct xpl_arena a = xpl_arena_of(limit);
        size_t given = 0;
        while (xpl_arena_alloc(&a, 100)) {
            given += 100;
            CHECK(a.reserved <= limit);
        }
        CHECK(given > 0 && given < limit);
        CHECK(!xpl_arena_alloc(&a, limit));
        xpl_arena_fini(&a);
    }
    struct xpl_arena a;
    xpl_arena_init(&a, 4095); // below the first block
    CHECK(!xpl_arena_alloc(&a, 1));
    xpl_arena_fini(&a);
    xpl_arena_init(&a, 4096);
    char *const p = xpl_arena_alloc(&a, 1000);
    CHECK(p);
    memset(p, 'x', 1000);
    CHECK(!xpl_arena_alloc(&a, 4096));
    CHECK_EQ(a.reserved, 4096);
    CHECK(xpl_arena_alloc(&a, 1000)); // a smaller one still fits
    CHECK_EQ(p[999], 'x');
    xpl_arena_fini(&a);
    // A single block as large as the limit allows, its header included, and one byte more.
    size_t largest = 0;
    for (size_t size = 100000 - 64; size <= 100000; size++) {
        xpl_arena_init(&a, 100000);
        char *const whole = xpl_arena_alloc(&a, size);
        if (whole) {
            memset(whole, 1, size);
            largest = size;
        }
        CHECK(a.reserved <= 100000);
        xpl_arena_fini(&a);
    }
    CHECK(largest >= 100000 - 64 && largest <= 100000 - 16);
}

static void test_zalloc(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    for (size_t n = 1; n < 300; n++) {
        uint8_t *const p = xpl_arena_zalloc(&a, n);
        CHECK(p);
        for (size_t i = 0; i < n; i++)
            CHECK_EQ(p[i], 0);
        memset(p, 0xff, n);
    }
}

static void test_text(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    char source[] = "abc";
    xpl_str_t copy;
    CHECK(xpl_arena_str(&a, (xpl_str_t){source, 3}, &copy));
    source[0] = 'x';
    CHECK_STR(copy, "abc");
    CHECK(copy.ptr != source);
    CHECK_EQ(copy.ptr[3], 0);
    CHECK(xpl_arena_str(&a, (xpl_str_t){NULL, 0}, &copy));
    CHECK_STR(copy, "");
    CHECK(copy.ptr);
    CHECK_EQ(copy.ptr[0], 0);
    CHECK(xpl_arena_str(&a, (xpl_str_t){"a\0b", 3}, &copy));
    CHECK_BYTES(copy.ptr, copy.len + 1, "a\0b", 4);
    CHECK(xpl_arena_printf(&a, &copy, "%s-%d", "host", -7));
    CHECK_STR(copy, "host--7");
    CHECK_EQ(copy.ptr[copy.len], 0);
    CHECK(xpl_arena_printf(&a, &copy, "%s", ""));
    CHECK_EQ(copy.len, 0);
    CHECK(xpl_arena_printf(&a, &copy, "%0*d", 5000, 1));
    CHECK_EQ(copy.len, 5000);
    CHECK_EQ(copy.ptr[4999], '1');
    CHECK_EQ(copy.ptr[5000], 0);
    // Over the limit: the output is unchanged.
    const xpl_str_t before = copy;
    static char big[1 << 20];
    CHECK(!xpl_arena_str(&a, (xpl_str_t){big, sizeof big}, &copy));
    CHECK(!xpl_arena_printf(&a, &copy, "%0*d", 1 << 20, 1));
    CHECK(copy.ptr == before.ptr);
    CHECK_EQ(copy.len, before.len);
}

// Every byte behind an allocation, up to the next one, may not be touched.
static void test_poison(void) {
#ifdef WITH_ASAN
    struct xpl_arena a = xpl_arena_of(16 << 20);
    for (size_t n = 0; n < 200; n++) {
        char *const p = xpl_arena_alloc(&a, n), *const q = xpl_arena_alloc(&a, 1);
        CHECK(p && q);
        CHECK(!n || !__asan_region_is_poisoned(p, n));
        // q may be in another block; then the rest of p's 16 bytes can be checked.
        const char *const padded = p + (n + 15) / 16 * 16;
        const char *const end = q > p && q <= padded + 64 ? q : padded;
        for (const char *at = p + n; at < end; at++)
            CHECK(__asan_address_is_poisoned(at));
        CHECK(!__asan_address_is_poisoned(q) && __asan_address_is_poisoned(q + 1));
    }
    char *const large = xpl_arena_alloc(&a, 3 << 20); // a separate block
    CHECK(large && !__asan_region_is_poisoned(large, 3 << 20));
    CHECK(__asan_address_is_poisoned(large + (3 << 20)));
    xpl_arena_fini(&a);
#endif
}

static void free_text(char **p) {
    xpl_sys_free(*p);
}

static void test_heap(void) {
    XPL_AUTO(free_text) char *p = xpl_sys_alloc(10);
    CHECK(p);
    memcpy(p, "123456789", 10);
    char *const moved = xpl_sys_realloc(p, 100000);
    CHECK(moved);
    p = moved;
    CHECK_STR(p, "123456789");
    xpl_sys_free(p);
    p = NULL; // so that nothing is freed at the end of the scope
    xpl_sys_free(NULL);
    char *const made = xpl_sys_realloc(NULL, 3);
    CHECK(made);
    xpl_sys_free(made);
}

// A hint: whatever its arguments, the memory's contents stay.
static void test_populate(void) {
    const size_t n = 1 << 20;
    char *const p = xpl_sys_alloc(n);
    CHECK(p);
    memset(p, 'a', n);
    xpl_sys_populate(p, n);
    xpl_sys_populate(p + 1, n - 1);
    xpl_sys_populate(p + 1, 1); // less than a page
    xpl_sys_populate(p, 0);
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(p[i], 'a');
    xpl_sys_free(p);
}

// A hint: memory outside of the range keeps its contents, and all of it can be written again.
static void test_discard(void) {
    const size_t n = 1 << 20, from = 5000, to = n - 5000;
    char *const p = xpl_sys_alloc(n);
    CHECK(p);
    memset(p, 'a', n);
    xpl_sys_discard(p + from, to - from);
    xpl_sys_discard(p + from, 0);
    xpl_sys_discard(p + n - 1, 1); // less than a page
    for (size_t i = 0; i < n; i++)
        if (i < from || i >= to) CHECK_EQ(p[i], 'a');
    memset(p, 'b', n);
    CHECK_EQ(p[n / 2], 'b');
    xpl_sys_free(p);
}

#if XPL_FAULTS
static void test_faults(void) {
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    void *const one = xpl_sys_alloc(8);
    CHECK_EQ(xpl_fault_count(), 1);
    CHECK_EQ(xpl_fault_live(), live + 1);
    xpl_fault_fail_on(2);
    void *two = xpl_sys_alloc(8);
    CHECK(one && two);
    memcpy(two, "1234567", 8);
    CHECK(!xpl_sys_realloc(two, 1000)); // the third: the block stays as it was
    CHECK_STR((const char *)two, "1234567");
    CHECK_EQ(xpl_fault_live(), live + 2);
    two = xpl_sys_realloc(two, 1000); // once only
    CHECK(two);
    CHECK_EQ(xpl_fault_count(), 4);
    CHECK_EQ(xpl_fault_live(), live + 2);
    xpl_sys_free(one);
    xpl_sys_free(two);
    CHECK_EQ(xpl_fault_live(), live);
    xpl_fault_fail_on(UINT64_MAX);

    // An arena whose block cannot be had: NULL, nothing counted, and it works afterwards.
    struct xpl_arena a = xpl_arena_of(1 << 20);
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    xpl_str_t text = {"kept", 4};
    CHECK(!xpl_arena_str(&a, XPL_STR("other"), &text));
    CHECK_STR(text, "kept");
    CHECK_EQ(a.reserved, 0);
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    CHECK(!xpl_arena_printf(&a, &text, "%d", 1));
    CHECK_STR(text, "kept");
    xpl_fault_reset();
    CHECK(xpl_arena_zalloc(&a, 10));
    CHECK_EQ(xpl_fault_live(), live + 1);
    for (int i = 0; i < 5000; i++)
        CHECK(xpl_arena_alloc(&a, 50));
    CHECK(xpl_fault_live() > live + 1);
    CHECK(xpl_fault_count() < 20); // blocks grow
    xpl_arena_fini(&a);
    CHECK_EQ(xpl_fault_live(), live);
}
#endif

static void test_wipe(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    xpl_str_t text = {0};
    xpl_arena_wipe(&a);
    CHECK(xpl_arena_str(&a, XPL_STR("secret"), &text));
    uint8_t *const large = xpl_arena_alloc(&a, 100000);
    CHECK(large);
    memset(large, 7, 100000);
    xpl_arena_wipe(&a);
    CHECK_STR(text, ((xpl_str_t){"\0\0\0\0\0\0", 6}));
    for (size_t i = 0; i < 100000; i++)
        CHECK_EQ(large[i], 0);
}

// Several arenas have no more than their budget together, and give it back.
static void test_budget(void) {
    enum { KIB = 1 << 10, PARTS = 100 };
    struct xpl_arena_budget b;
    struct xpl_arena parts[PARTS];
    size_t n = 0;
    xpl_arena_budget_init(&b, (size_t)64 * KIB);
    for (size_t i = 0; i < PARTS; i++) {
        xpl_arena_init_part(&parts[i], &b);
        CHECK_EQ(parts[i].limit, 64 * KIB);
        n += xpl_arena_alloc(&parts[i], 1) != NULL;
    }
    CHECK_EQ(n, PARTS);
    CHECK_EQ(atomic_load(&b.left), 14 * KIB); // of 512 bytes each
    CHECK(!xpl_arena_alloc(&parts[0], 14 * KIB));
    CHECK(xpl_arena_alloc(&parts[0], 12 * KIB));
    CHECK(!xpl_arena_alloc(&parts[1], 4 * KIB));
    for (size_t i = 0; i < PARTS; i++)
        xpl_arena_fini(&parts[i]);
    CHECK_EQ(atomic_load(&b.left), 64 * KIB);
    xpl_arena_init_part(&parts[0], &b);
    CHECK(!xpl_arena_alloc(&parts[0], 64 * KIB)); // with its head it is more
    CHECK_EQ(atomic_load(&b.left), 64 * KIB);
    CHECK(xpl_arena_alloc(&parts[0], 60 * KIB));
    xpl_arena_fini(&parts[0]);
    CHECK_EQ(atomic_load(&b.left), 64 * KIB);
}

// However small the blocks of arenas are, all count for what the process may have; some more are
// left for refusing.
static void test_small_blocks(void) {
    enum { MOST = 1 << 15 };
    static struct xpl_arena arenas[MOST];
    const size_t before = xpl_heap_in_use();
    size_t n = 0;
    xpl_heap_set_budget(before + ((size_t)16 << 20));
    for (; n < MOST; n++) {
        xpl_arena_init(&arenas[n], SIZE_MAX);
        if (!xpl_arena_alloc(&arenas[n], 1)) break;
    }
    CHECK_EQ(n, ((16 << 20) + XPL_HEAP_LAST) / 4096);
    CHECK(!xpl_sys_alloc(XPL_HEAP_LARGE));
    for (size_t i = 0; i < n; i++)
        xpl_arena_fini(&arenas[i]);
    CHECK_EQ(xpl_heap_in_use(), before);
    xpl_heap_set_budget(SIZE_MAX);
}

int main(void) {
    test_budget();
    test_small_blocks();
    test_empty();
    test_alignment_and_overlap();
    test_size_zero();
    test_overflow();
    test_limit();
    test_zalloc();
    test_text();
    test_wipe();
    test_poison();
    test_heap();
    test_populate();
    test_discard();
#if XPL_FAULTS
    test_faults();
#endif
    return 0;
}
