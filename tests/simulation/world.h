// SPDX-License-Identifier: Apache-2.0
// One run: files, daemons with their requests, and what happens to them.
#ifndef XPL_TESTS_SIMULATION_WORLD_H_
#define XPL_TESTS_SIMULATION_WORLD_H_

#include "tests/simulation/faults.h"
#include "tests/simulation/network.h"

struct sim_job;

// Runs a seed.  NULL, or what the judge found wrong.
const char *sim_world_run(uint64_t seed, enum sim_fault planted);

// ---- for network, database and products ----

uint64_t sim_world_latency(void); // of a packet, ns
// A process sends a statement: before that, or after.  May end the process, and not return.
void sim_world_statement(struct sim_process *p, struct sim_statement *st, bool before);
// The transaction of a session is about to be committed.
void sim_world_commit(const struct sim_session *s);
// A job that had ended ends again.
void sim_world_ends_again(const struct sim_job *j);
// A session of the process has ended; because of its silence.
void sim_world_session_ended(const struct sim_process *p);
void sim_world_silenced(const struct sim_process *p);
// The running process reads a file, which takes a while: false if the file is broken.
bool sim_world_read(int file, bool (*is_cancelled)(void *arg), void *arg, bool *ret_cancelled);
bool sim_world_has(int file); // for the running process
void sim_world_acknowledged(int64_t job);
// The size of the file, which its bytes follow from.
uint64_t sim_world_size(int file);

#endif
