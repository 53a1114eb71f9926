// SPDX-License-Identifier: Apache-2.0
// The budget of a process's memory, and the return of freed memory to the system.  xpl_sys_alloc
// counts the large blocks with it; a program that sets no budget has no limit, and pays one
// comparison a block.  Any thread.
#ifndef XPL_BASE_HEAP_H_
#define XPL_BASE_HEAP_H_

#include <stdbool.h>
#include <stddef.h>

// Blocks from this size on are counted: buffers, blocks of arenas, answers.  Of smaller ones only
// those of arenas are: they must still be had when the budget is used up, so that refusing works.
enum { XPL_HEAP_LARGE = 64 << 10 };

// Large blocks together, and from then on also the process's anonymous memory (with a slack of 32
// MiB for uncounted memory), stay below `bytes`: an allocation beyond fails.  SIZE_MAX: no limit,
// the default.
void xpl_heap_set_budget(size_t bytes);
// Memory of the machine, or of the control group that the process is in, bytes.
size_t xpl_heap_machine(void);
// Large blocks and all blocks of arenas in use, bytes.
size_t xpl_heap_in_use(void);
// Resident anonymous memory, bytes; 0 when the kernel does not tell.
size_t xpl_heap_resident(void);
// Gives freed memory back to the kernel when malloc keeps more than `bytes` of it.  Takes
// milliseconds for each 100 MB.
void xpl_heap_trim(size_t bytes);
// The same for an idle process, if free memory has grown by `bytes` since the last time: the rest
// is in pages that are in use.
void xpl_heap_trim_idle(size_t bytes);
// Like xpl_heap_trim; the remaining free memory then counts as part of pages in use.
void xpl_heap_trim_rest(size_t bytes);
// Whether xpl_heap_trim_idle would.
bool xpl_heap_may_trim_idle(size_t bytes);

// For base/arena.c and foreign allocators: accounts a block before it grows by `more` bytes.  False
// if that exceeds the limit.
bool xpl_heap_take(size_t more);
void xpl_heap_add(size_t more); // the same without a limit, for malloc's rounding
void xpl_heap_give(size_t less);
// The same for small blocks of owners that can have many: they are refused only when XPL_HEAP_LAST
// more than the budget is in use, so that the refusal itself can allocate.
enum { XPL_HEAP_LAST = 16 << 20 };
bool xpl_heap_take_small(size_t more);
void xpl_heap_give_small(size_t less);

#endif
