// SPDX-License-Identifier: Apache-2.0
// Asks the libxplaned-agent.so of every CUDA program on this machine for its records.
#ifndef XPL_AGENT_COLLECT_H_
#define XPL_AGENT_COLLECT_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/status.h"

enum { XPL_COLLECT_PROCESSES = 256 };

struct xpl_collect_options {
    size_t size;           // sizeof this
    const char *directory; // where the libraries' sockets are
    uint64_t start_ns;     // Unix time; 0 or past: now
    uint64_t duration_ms;
    uint32_t options;        // enum xpl_agent_option
    uint32_t buffers;        // in each program; 0: as many as it needs
    size_t max_bytes;        // of records, all programs together
    const atomic_int *state; // enum xpl_collect_state, set by others
    int wake;                // becomes readable when it changes
};

enum xpl_collect_state {
    XPL_COLLECT_RUN,
    XPL_COLLECT_FINISH, // end now and use the records so far
    XPL_COLLECT_CANCEL, // end now, for nothing
};

struct xpl_collected {
    struct xpl_buf bytes;
    char note[240];
};

struct xpl_collection {
    struct xpl_collected *v; // in the arena
    size_t n;                // programs that recorded
};

// Blocks: waits for the start, records, and collects the records.  Ignores programs that begin
// meanwhile.  FAILED_PRECONDITION with one sentence when no program can record; CANCELLED.  `ret`
// is to be freed in any case.
xpl_status_t xpl_collect(const struct xpl_collect_options *opt, struct xpl_arena *a,
                         struct xpl_collection *ret, struct xpl_error *err) XPL_NODISCARD;
void xpl_collection_fini(struct xpl_collection *c);

// Milliseconds of the monotonic clock.
static inline uint64_t xpl_collect_now_ms(void) {
    return xpl_clock_ns() / 1000000;
}
// Blocks until `until_ms` of that clock, or until the state is not XPL_COLLECT_RUN.
void xpl_collect_wait(const atomic_int *state, int wake, uint64_t until_ms);

#endif
