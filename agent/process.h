// SPDX-License-Identifier: Apache-2.0
// What a capture has of each process of the host, and what an XSpace made of it holds.
#ifndef XPL_AGENT_PROCESS_H_
#define XPL_AGENT_PROCESS_H_

#include <stdint.h>

#include "base/str.h"

// What one process sent.
struct xpl_agent_process {
    xpl_bytes_t records;
    xpl_str_t note; // a warning to put into the XSpace: why its records are not complete; or empty
};

// What an XSpace was made of.
struct xpl_agent_result {
    uint64_t device_events, host_events;
    uint64_t dropped; // by CUPTI, all buffers being full
};

#endif
