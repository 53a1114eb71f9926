// SPDX-License-Identifier: Apache-2.0
// The rank of a process: traces on request do not have it (torch 2.9 and 2.15).
#ifndef XPL_AGENT_PYTORCH_RANK_H_
#define XPL_AGENT_PYTORCH_RANK_H_

#include <sys/types.h>

#include "base/str.h"

// $RANK, which torchrun and others set, else $SLURM_PROCID or $OMPI_COMM_WORLD_RANK; -1 without
// one. The environment is as /proc/PID/environ has it: VARIABLE=VALUE, each with a zero behind it.
int xpl_pytorch_rank_in(xpl_str_t environment);
// The same for a process of this user; -1 also when its environment cannot be read.
int xpl_pytorch_rank(pid_t pid);

#endif
