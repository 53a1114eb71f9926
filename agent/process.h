// SPDX-License-Identifier: Apache-2.0
// A capture's data of each process of the host, and a summary of the XSpace made of it.
#ifndef XPL_AGENT_PROCESS_H_
#define XPL_AGENT_PROCESS_H_

#include <stdint.h>

#include "base/str.h"

// The data that one process sent.
struct xpl_agent_process {
    xpl_bytes_t records;
    xpl_str_t note; // a warning to put into the XSpace: why its records are not complete; or empty
};

// A summary of the XSpace.
struct xpl_agent_result {
    uint64_t device_events, host_events;
    uint64_t dropped; // by CUPTI, all buffers being full
};

#endif
