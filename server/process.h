// SPDX-License-Identifier: Apache-2.0
// What the kernel says of this process (/proc/self, getrusage).  Any thread.
#ifndef XPL_SERVER_PROCESS_H_
#define XPL_SERVER_PROCESS_H_

#include <stdbool.h>
#include <stdint.h>

struct xpl_process_stats {
    uint64_t resident_bytes;  // with mapped files
    uint64_t anonymous_bytes; // without
    uint64_t descriptors, descriptors_limit;
    uint64_t threads;
    uint64_t cpu_us; // user and system
};

// What cannot be read is 0.
void xpl_process_get_stats(struct xpl_process_stats *ret);

// Whether the process can have n more threads at once. It starts them, with stacks of the default
// size, and returns when they have ended.
bool xpl_process_can_start(unsigned n);

#endif
