// SPDX-License-Identifier: Apache-2.0
// The PyTorch processes of this machine: takes the socket of Kineto's daemon (dynolog), knows who
// has asked for work there, and gives it to all processes of a job.
//
// Only processes of the agent's own user are answered; the kernel says whose a datagram is.  A
// thread receives and answers: a process waits for its answer for less than 0.1 s.
#ifndef XPL_AGENT_PYTORCH_PROCESSES_H_
#define XPL_AGENT_PYTORCH_PROCESSES_H_

#include <sys/types.h>

#include "agent/pytorch/message.h"
#include "base/status.h"

enum {
    XPL_PYTORCH_PROCESSES = 256,      // known at once
    XPL_PYTORCH_ASKS_EVERY_MS = 5000, // libkineto's interval
    XPL_PYTORCH_GONE_MS = 12000,      // a process that has not asked for so long does not count
};

struct xpl_pytorch_processes;

// Takes the socket: the abstract name "dynolog", or the file of that name in `directory`
// ($KINETO_IPC_SOCKET_DIR of the processes) if that is neither NULL nor empty.
// FAILED_PRECONDITION: another program has it.
xpl_status_t xpl_pytorch_processes_new(const char *directory, struct xpl_pytorch_processes **ret,
                                       struct xpl_error *err) XPL_NODISCARD;
// NULL is fine.
void xpl_pytorch_processes_free(struct xpl_pytorch_processes *p);

// One that was given work, or was to be given some.
struct xpl_pytorch_process {
    pid_t pid;        // here
    int32_t own_pid;  // in its namespace; in the name of its trace
    unsigned number;  // of the trace: DIRECTORY/NUMBER_OWN-PID.json
    bool given, busy; // given work; or its profiler was busy when it asked last
};

struct xpl_pytorch_work {
    struct xpl_pytorch_request request;
    const char *directory; // of the traces; as long as the work is given
    int64_t job;
    bool any_job; // of the only job that is here
};

// Gives work to every process of the job that asks from now on, until it is ended.
// FAILED_PRECONDITION: no process has asked lately (unless the agent began lately, too), none of
// that job, or several jobs are here and none was chosen.  Any thread; one work at a time.
xpl_status_t xpl_pytorch_give(struct xpl_pytorch_processes *p, const struct xpl_pytorch_work *work,
                              struct xpl_error *err) XPL_NODISCARD;
// Ends it: `ret` (XPL_PYTORCH_PROCESSES) gets the job's processes; returns their number.
size_t xpl_pytorch_end(struct xpl_pytorch_processes *p, struct xpl_pytorch_process *ret);

#endif
