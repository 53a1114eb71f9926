// SPDX-License-Identifier: Apache-2.0
// Where the time of a request goes.
#ifndef XPL_SERVER_ENGINE_STAGES_H_
#define XPL_SERVER_ENGINE_STAGES_H_

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"

enum xpl_stage {
    XPL_STAGE_QUEUE,
    XPL_STAGE_OPEN,
    XPL_STAGE_CONVERT,
    XPL_STAGE_RENDER,
    XPL_STAGE_STORE,
    XPL_N_STAGES
};
extern const char *const xpl_stage_names[XPL_N_STAGES];

// Microseconds of each stage, added up over the hosts of a request by any threads; 0: it did not
// happen.
struct xpl_stage_times {
    _Atomic uint64_t us[XPL_N_STAGES];
};

// A stage that began at xpl_clock_ns() == since_ns ends now.  It took 1 us at least.
static inline void xpl_stage_add(struct xpl_stage_times *t, enum xpl_stage stage,
                                 uint64_t since_ns) {
    const uint64_t us = (xpl_clock_ns() - since_ns) / 1000;
    atomic_fetch_add(&t->us[stage], us ? us : 1);
}

#endif
