// SPDX-License-Identifier: Apache-2.0
// String interning: equal bytes, equal id.  Ids are dense from 1 in insertion order; 0 is "".
#ifndef XPL_BASE_INTERN_H_
#define XPL_BASE_INTERN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct xpl_arena;

typedef struct xpl_strid {
    uint32_t v;
} xpl_strid_t; // a struct: cannot be mixed up with an integer

struct xpl_intern;

// The pool lives in `arena`; there is nothing to free.  NULL on OOM.
struct xpl_intern *xpl_intern_new(struct xpl_arena *arena, uint64_t seed)
    __attribute__((warn_unused_result));
// Copies `s` on first sight.  False on OOM or at the arena's limit; *ret is then untouched.
bool xpl_intern_put(struct xpl_intern *in, xpl_str_t s, xpl_strid_t *ret)
    __attribute__((warn_unused_result));
// The same for a text that stays in its place as long as the pool, such as a profile's: a long one
// is read once, however often it is put.
bool xpl_intern_put_view(struct xpl_intern *in, xpl_str_t s, xpl_strid_t *ret)
    __attribute__((warn_unused_result));
// Without putting it there.  False: `s` is not in the pool; *ret is then untouched.
bool xpl_intern_find(const struct xpl_intern *in, xpl_str_t s, xpl_strid_t *ret);
// O(1); the view stays valid as long as the arena.  An unknown id gives "".
xpl_str_t xpl_intern_get(const struct xpl_intern *in, xpl_strid_t id);

#endif
