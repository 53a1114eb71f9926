// SPDX-License-Identifier: Apache-2.0
// Budgets of events of a connection, which fill with time.
#ifndef XPL_RPC_LISTEN_BUCKET_H_
#define XPL_RPC_LISTEN_BUCKET_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct xpl_rpc_bucket { // zeroed at first: full
    double left;
    uint64_t at_ns;
};

struct xpl_rpc_rate {
    double burst, per_second;
};

// Takes one event; false when none is left.
static inline bool xpl_rpc_spend(struct xpl_rpc_bucket *b, const struct xpl_rpc_rate *of,
                                 uint64_t now_ns) {
    if (!b->at_ns) b->left = of->burst, b->at_ns = now_ns;
    const uint64_t passed = xpl_clock_between(b->at_ns, now_ns);
    b->left += (double)passed * 1e-9 * of->per_second;
    if (b->left > of->burst) b->left = of->burst;
    b->at_ns += passed;
    if (b->left < 1) return false;
    b->left -= 1;
    return true;
}

#endif
