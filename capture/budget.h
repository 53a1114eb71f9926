// SPDX-License-Identifier: Apache-2.0
// Memory that the answers of several captures may take together.
//
// gRPC holds an answer, which is one message, until it is complete.  So each answer reserves its
// size or, if that is unknown beforehand, its maximum, here and in the process's heap limit
// (base/heap.h).  Requests and captures thus share one limit, whatever hosts send.
#ifndef XPL_CAPTURE_BUDGET_H_
#define XPL_CAPTURE_BUDGET_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"

struct xpl_capture_budget {
    atomic_ullong limit, used; // bytes; limit 0: none
};

static inline void xpl_capture_budget_give(struct xpl_capture_budget *b, uint64_t bytes) {
    xpl_heap_give((size_t)bytes);
    atomic_fetch_sub(&b->used, bytes);
}

// Any thread.  False if the reservation would exceed the limit.  The only holder may exceed it and,
// when it is `overdue`, also the process's limit: the other users may never release their memory.
static inline bool xpl_capture_budget_take(struct xpl_capture_budget *b, uint64_t bytes,
                                           bool overdue) {
    unsigned long long used = atomic_load(&b->used);
    const unsigned long long limit = atomic_load(&b->limit);
    do {
        if (limit && used && used + bytes > limit) return false;
    } while (!atomic_compare_exchange_weak(&b->used, &used, used + bytes));
    if (xpl_heap_take((size_t)bytes)) return true;
    xpl_heap_add((size_t)bytes);
    if (!used && overdue) return true;
    xpl_capture_budget_give(b, bytes);
    return false;
}

#endif
