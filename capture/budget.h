// SPDX-License-Identifier: Apache-2.0
// Memory that the answers of several captures may take together.
//
// gRPC holds an answer, which is one message, until it is complete, and does not say how large it
// becomes: so each reserves what it may take at most.
#ifndef XPL_CAPTURE_BUDGET_H_
#define XPL_CAPTURE_BUDGET_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct xpl_capture_budget {
    atomic_ullong limit, used; // bytes; limit 0: none
};

// Any thread.  False when it would be too much; but one who is alone may exceed the limit.
static inline bool xpl_capture_budget_take(struct xpl_capture_budget *b, uint64_t bytes) {
    unsigned long long used = atomic_load(&b->used);
    const unsigned long long limit = atomic_load(&b->limit);
    do {
        if (limit && used && used + bytes > limit) return false;
    } while (!atomic_compare_exchange_weak(&b->used, &used, used + bytes));
    return true;
}
static inline void xpl_capture_budget_give(struct xpl_capture_budget *b, uint64_t bytes) {
    atomic_fetch_sub(&b->used, bytes);
}

#endif
