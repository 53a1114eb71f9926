// SPDX-License-Identifier: Apache-2.0
// The messages of Kineto's IPC, by which a PyTorch process with KINETO_USE_DAEMON=1 asks for work.
//
// A message is one datagram: a head of 40 bytes (the length of the body as u64, then the type,
// padded with zeros to 32 bytes) and a body, in the machine's byte order.  Source: dynolog's
// ipcfabric and libkineto's IpcFabricConfigClient, and messages recorded from torch 2.9.
#ifndef XPL_AGENT_PYTORCH_MESSAGE_H_
#define XPL_AGENT_PYTORCH_MESSAGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
    XPL_PYTORCH_HEAD = 40,          // bytes before the body
    XPL_PYTORCH_MAX_MESSAGE = 8192, // of a process: its ancestors are a few dozen at most
    XPL_PYTORCH_MAX_ANSWER = 1024,
    XPL_PYTORCH_MAX_PATH = 300, // of a trace
};

enum xpl_pytorch_kind {
    XPL_PYTORCH_REGISTER, // "ctxt": a process that uses a GPU
    XPL_PYTORCH_ASK,      // "req": a process asks for work, every 5 s
};

struct xpl_pytorch_message {
    enum xpl_pytorch_kind kind;
    bool ready;  // ASK: the process can record now; otherwise its profiler is busy
    int32_t pid; // in the process's own namespace, as it is in the names of its files
    int64_t job; // of the scheduler ($SLURM_JOB_ID), 0 without one
};

// Reads a datagram; false: it is malformed, or of another type.
bool xpl_pytorch_parse(xpl_bytes_t datagram, struct xpl_pytorch_message *ret);

// A request to record.
struct xpl_pytorch_request {
    uint64_t start_unix_ms; // the same for all processes; not used with iterations
    uint64_t duration_ms;   // not used with iterations
    uint32_t iterations;    // of the optimizer; 0: a span of time
    uint32_t round_up;      // iterations begin at a multiple of it; 0: 1
    bool shapes, stack, modules, memory, flops;
};

// The answers, with head; both return the length.  An answer to ASK has an empty body if there is
// nothing to record (`request` NULL); `path` is that of the trace, into whose name the process puts
// its id: NAME_PID.json for NAME.json.  0: the path is too long.
size_t xpl_pytorch_answer(const struct xpl_pytorch_request *request, const char *path,
                          uint8_t ret[XPL_PYTORCH_MAX_ANSWER]);
size_t xpl_pytorch_answer_register(int32_t instances, uint8_t ret[XPL_PYTORCH_MAX_ANSWER]);

#endif
