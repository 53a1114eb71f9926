// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/heap.h"

#if defined(__SANITIZE_ADDRESS__)
#define XPL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define XPL_ASAN 1
#endif
#endif
#ifdef XPL_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#define GUARD          16u
#else
#define POISON(p, n)   ((void)0)
#define UNPOISON(p, n) ((void)0)
#define GUARD          0u
#endif

#if XPL_FAULTS
static _Thread_local uint64_t fault_seen, fault_at = UINT64_MAX;
static _Thread_local int64_t fault_live_blocks;
void xpl_fault_reset(void) {
    fault_seen = 0, fault_at = UINT64_MAX;
}
void xpl_fault_fail_on(uint64_t nth) {
    fault_at = nth;
}
uint64_t xpl_fault_count(void) {
    return fault_seen;
}
int64_t xpl_fault_live(void) {
    return fault_live_blocks;
}
#endif

// Large blocks count by malloc's figure, as their size is not known when they are freed.  Below
// LARGE - MARGIN a block never has LARGE bytes, even after malloc's rounding.
enum { MARGIN = 64 };

static size_t counted(void *p) {
    const size_t n = p ? malloc_usable_size(p) : 0;
    return n >= XPL_HEAP_LARGE ? n : 0;
}

// Counts the real size of a block: `taken` bytes were counted before, it has `now`.
static void count_difference(size_t taken, size_t now) {
    if (now < taken)
        xpl_heap_give(taken - now);
    else if (now > taken)
        xpl_heap_add(now - taken);
}

static void advise(void *p, size_t n, int advice) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)p + page - 1) / page * page,
                    end = ((uintptr_t)p + n) / page * page;
    if (begin < end) (void)madvise((void *)begin, end - begin, advice);
}

// Lets the kernel back large blocks with large pages, as a fault for each small page takes longer
// than to clear it.  Only blocks with a separate mapping, which goes with them: they fill its
// pages but for a head.  The heap would keep the advice, and the kernel would fill again what
// malloc_trim gave back.  The advice includes the block's first and last page: otherwise the kernel
// splits the mapping, and realloc copies it instead of moving its pages.
enum { HUGE_FROM = 4 << 20, MAPPED_HEAD = 16 };

static void advise_large(void *p, size_t n) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)p / page * page,
                    end = ((uintptr_t)p + n + page - 1) / page * page;
    if (!p || n < HUGE_FROM || (malloc_usable_size(p) + MAPPED_HEAD) % page) return;
    (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

void *xpl_sys_alloc(size_t size) {
#if XPL_FAULTS
    if (fault_seen++ == fault_at) return NULL;
#endif
    const bool large = size >= XPL_HEAP_LARGE - MARGIN;
    if (large && !xpl_heap_take(size)) return NULL;
    void *p = malloc(size);
    advise_large(p, size);
    if (large) count_difference(size, counted(p));
#if XPL_FAULTS
    fault_live_blocks += p != NULL;
#endif
    return p;
}

void *xpl_sys_realloc(void *old, size_t size) {
#if XPL_FAULTS
    if (fault_seen++ == fault_at) return NULL;
#endif
    const size_t before = counted(old);
    const size_t more = size >= XPL_HEAP_LARGE - MARGIN && size > before ? size - before : 0;
    if (more && !xpl_heap_take(more)) return NULL;
    void *p = realloc(old, size);
    advise_large(p, size);
    count_difference(before + more, p ? counted(p) : before);
#if XPL_FAULTS
    fault_live_blocks += p != NULL && old == NULL;
#endif
    return p;
}

void xpl_sys_free(void *p) {
#if XPL_FAULTS
    fault_live_blocks -= p != NULL;
#endif
    const size_t n = counted(p);
    free(p);
    // Not before: a large block takes milliseconds to unmap, in which another would come on top.
    if (n) xpl_heap_give(n);
}

void xpl_sys_populate(void *p, size_t n) {
#ifdef MADV_POPULATE_WRITE // Linux 5.14; older ones say EINVAL
    advise(p, n, MADV_POPULATE_WRITE);
#else
    (void)p, (void)n;
#endif
}

void xpl_sys_discard(void *p, size_t n) {
    advise(p, n, MADV_DONTNEED);
}

struct xpl_arena_block {
    struct xpl_arena_block *next;
    size_t size;
};
enum { ALIGN = 16, FIRST_BLOCK = 4096, FIRST_OF_PART = 512, MAX_BLOCK = 1 << 20 };
_Static_assert(sizeof(struct xpl_arena_block) % ALIGN == 0, "block header keeps alignment");

void xpl_arena_init(struct xpl_arena *a, size_t limit) {
    *a = (struct xpl_arena){.next_block = FIRST_BLOCK, .limit = limit};
}

void xpl_arena_budget_init(struct xpl_arena_budget *b, size_t limit) {
    atomic_store(&b->left, limit);
    b->limit = limit;
}

void xpl_arena_init_part(struct xpl_arena *a, struct xpl_arena_budget *budget) {
    xpl_arena_init(a, budget->limit);
    a->next_block = FIRST_OF_PART;
    a->budget = budget;
}

// Small blocks do not count by themselves (base/heap.h), but arenas may have many.
static bool is_small(size_t size) {
    return size < XPL_HEAP_LARGE - MARGIN;
}

static bool take_block(struct xpl_arena *a, size_t size) {
    size_t left = a->budget ? atomic_load_explicit(&a->budget->left, memory_order_relaxed) : 0;
    while (a->budget) {
        if (size > left) return false;
        if (atomic_compare_exchange_weak(&a->budget->left, &left, left - size)) break;
    }
    if (!is_small(size) || xpl_heap_take_small(size)) return true;
    if (a->budget) (void)atomic_fetch_add(&a->budget->left, size);
    return false;
}

static void give_block(struct xpl_arena *a, size_t size) {
    if (a->budget) (void)atomic_fetch_add(&a->budget->left, size);
    if (is_small(size)) xpl_heap_give_small(size);
}

void xpl_arena_fini(struct xpl_arena *a) {
    for (struct xpl_arena_block *b = a->blocks, *next; b; b = next) {
        const size_t size = b->size;
        next = b->next;
        UNPOISON(b, size);
        xpl_sys_free(b);
        give_block(a, size);
    }
    *a = (struct xpl_arena){0};
}

void xpl_arena_wipe(struct xpl_arena *a) {
    for (struct xpl_arena_block *b = a->blocks; b; b = b->next) {
        UNPOISON(b, b->size);
        explicit_bzero(b + 1, b->size - sizeof *b);
    }
}

static void *arena_slow(struct xpl_arena *a, size_t need) {
    size_t total;
    if (__builtin_add_overflow(need, sizeof(struct xpl_arena_block), &total)) return NULL;
    if (total < a->next_block) total = a->next_block;
    if (total > a->limit - a->reserved) return NULL;
    if (!take_block(a, total)) return NULL;
    struct xpl_arena_block *b = xpl_sys_alloc(total);
    if (!b) {
        give_block(a, total);
        return NULL;
    }
    b->next = a->blocks;
    b->size = total;
    a->blocks = b;
    a->reserved += total;
    if (a->next_block < MAX_BLOCK) a->next_block *= 2;
    uint8_t *p = (uint8_t *)(b + 1);
    POISON(p, total - sizeof *b);
    a->ptr = p + need;
    a->end = (uint8_t *)b + total;
    return p;
}

void *xpl_arena_alloc(struct xpl_arena *a, size_t size) {
    size_t need;
    if (__builtin_add_overflow(size + !size, (size_t)(ALIGN - 1 + GUARD), &need)) return NULL;
    need &= ~(size_t)(ALIGN - 1);
    void *p;
    if (need <= (size_t)(a->end - a->ptr)) {
        p = a->ptr;
        a->ptr += need;
    } else {
        p = arena_slow(a, need);
        if (!p) return NULL;
    }
    UNPOISON(p, size);
    return p;
}

void *xpl_arena_array(struct xpl_arena *a, size_t n, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : xpl_arena_alloc(a, bytes);
}

void *xpl_arena_zalloc(struct xpl_arena *a, size_t size) {
    void *p = xpl_arena_alloc(a, size);
    return p ? memset(p, 0, size) : NULL;
}

bool xpl_arena_str(struct xpl_arena *a, xpl_str_t s, xpl_str_t *ret) {
    char *p = s.len < SIZE_MAX ? xpl_arena_alloc(a, s.len + 1) : NULL;
    if (!p) return false;
    if (s.len) memcpy(p, s.ptr, s.len);
    p[s.len] = 0;
    *ret = (xpl_str_t){p, s.len};
    return true;
}

bool xpl_arena_printf(struct xpl_arena *a, xpl_str_t *ret, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? NULL : xpl_arena_alloc(a, (size_t)n + 1);
    if (!p) return false;
    va_start(ap, fmt);
    (void)vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    *ret = (xpl_str_t){p, (size_t)n};
    return true;
}
