// SPDX-License-Identifier: Apache-2.0
// Bump arena with a hard byte limit.  One arena, one thread; freed as a whole.
#ifndef XPL_BASE_ARENA_H_
#define XPL_BASE_ARENA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct xpl_arena_block;

// A budget that several arenas share, when there is one for each line, plane or host: their number
// comes from the profile.  Any threads; outlives the arenas.
struct xpl_arena_budget {
    _Atomic size_t left; // bytes
    size_t limit;
};

struct xpl_arena {
    uint8_t *ptr, *end;
    struct xpl_arena_block *blocks;
    size_t next_block, reserved, limit;
    struct xpl_arena_budget *budget; // NULL: `limit` is its own
};

// Prepares an empty arena; never fails and allocates nothing until first use.  Whole blocks with
// their headers count towards the limit: 4 KiB first, each twice as large as the one before up to 1
// MiB, larger where one allocation needs it.  So an arena may refuse with up to a block left.
void xpl_arena_init(struct xpl_arena *a, size_t limit);
// The same, for a declaration.
static inline struct xpl_arena xpl_arena_of(size_t limit) {
    struct xpl_arena a;
    xpl_arena_init(&a, limit);
    return a;
}
// Before the arenas.
void xpl_arena_budget_init(struct xpl_arena_budget *b, size_t limit);
// As xpl_arena_init, for one of several: its blocks, of which the first has 512 bytes, are taken
// from the budget, and given back by fini.
void xpl_arena_init_part(struct xpl_arena *a, struct xpl_arena_budget *budget);
// Frees every block.  Accepts an arena that was only zero-initialised.
void xpl_arena_fini(struct xpl_arena *a);
// Overwrites all that was allocated, so that no secret is left in memory that is then freed.
void xpl_arena_wipe(struct xpl_arena *a);
// Returns uninitialised bytes aligned to 16, or NULL at the limit or on OOM.  A size of 0 gives a
// unique non-NULL pointer, so NULL always means failure.
void *xpl_arena_alloc(struct xpl_arena *a, size_t size) __attribute__((warn_unused_result));
// n * size with overflow check.
void *xpl_arena_array(struct xpl_arena *a, size_t n, size_t size)
    __attribute__((warn_unused_result));

// As xpl_arena_alloc, zero-filled.
void *xpl_arena_zalloc(struct xpl_arena *a, size_t size) __attribute__((warn_unused_result));
// Copies `s`; *ret is a view of the copy.  False on OOM or at the limit, *ret then untouched.
bool xpl_arena_str(struct xpl_arena *a, xpl_str_t s, xpl_str_t *ret)
    __attribute__((warn_unused_result));
// printf into the arena; *ret is NUL-terminated after its len bytes.
bool xpl_arena_printf(struct xpl_arena *a, xpl_str_t *ret, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), warn_unused_result));

// All heap memory of the project comes from these functions, so faults are injected in one place.
void *xpl_sys_alloc(size_t size) __attribute__((warn_unused_result));
// As realloc(); on failure the old block is untouched.
void *xpl_sys_realloc(void *p, size_t size) __attribute__((warn_unused_result));
void xpl_sys_free(void *p);
// Populates the pages of memory that is about to be written, at once: a fault for each costs as
// much again as the page.  A hint.
void xpl_sys_populate(void *p, size_t n);
// Gives back the pages of memory in a block whose contents are not needed any more; the block stays
// to be freed.  A hint.
void xpl_sys_discard(void *p, size_t n);
#if XPL_FAULTS
void xpl_fault_reset(void);
void xpl_fault_fail_on(uint64_t nth); // 0-based; UINT64_MAX disarms
uint64_t xpl_fault_count(void);
int64_t xpl_fault_live(void);
#endif

#endif
