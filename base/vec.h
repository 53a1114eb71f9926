// SPDX-License-Identifier: Apache-2.0
// Arrays: growable ones inside an arena, and the sorting of any.
// XPL_VEC(int) v = {0}; int *slot = xpl_vec_push(arena, &v);
// Growing leaves the old array in the arena (at most as much again), so very large arrays that are
// appended for long should be sized first with xpl_vec_reserve.
#ifndef XPL_BASE_VEC_H_
#define XPL_BASE_VEC_H_

#include <stdbool.h>
#include <stddef.h>

struct xpl_arena;

#define XPL_VEC(T)                                                                                 \
    struct {                                                                                       \
        T *v;                                                                                      \
        size_t n, cap;                                                                             \
    }

// Makes room for `more` elements beyond *n.  Returns the array, moved or not, or NULL (unchanged).
void *xpl_vec_room_(struct xpl_arena *a, void *v, size_t n, size_t *cap, size_t more, size_t elem)
    __attribute__((warn_unused_result));

// True when `more` further pushes cannot fail.
#define xpl_vec_reserve(arena, vec, more)                                                          \
    __extension__({                                                                                \
        void *xpl_vr_ =                                                                            \
            xpl_vec_room_((arena), (vec)->v, (vec)->n, &(vec)->cap, (more), sizeof *(vec)->v);     \
        if (xpl_vr_) (vec)->v = xpl_vr_;                                                           \
        xpl_vr_ != NULL;                                                                           \
    })
// A pointer to a new, uninitialised last element, or NULL on OOM or at the arena's limit.
#define xpl_vec_push(arena, vec)                                                                   \
    __extension__({                                                                                \
        __typeof__((vec)->v) xpl_vp_ = NULL;                                                       \
        if ((vec)->n < (vec)->cap || xpl_vec_reserve((arena), (vec), 1))                           \
            xpl_vp_ = &(vec)->v[(vec)->n++];                                                       \
        xpl_vp_;                                                                                   \
    })

// Sorts as qsort, but leaves equal elements in their order, and takes at most 512 KiB besides, or
// none where there is none: qsort takes as much memory again as the array, which no limit counts,
// and where that is not there a time that its input chooses.  An element has at most 4 KiB.
void xpl_sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *));
void xpl_sort_r(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *, void *),
                void *ctx);

#endif
