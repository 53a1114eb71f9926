// SPDX-License-Identifier: Apache-2.0
// The judge: what must hold of jobs and answers, whatever daemons, network and database do.  It
// knows files, requests and processes as numbers, and nothing of the code or of its statements.
#ifndef XPL_TESTS_SIMULATION_JUDGE_H_
#define XPL_TESTS_SIMULATION_JUDGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_MAX_FILES = 64, SIM_MAX_REQUESTS = 64, SIM_MAX_PROCESSES = 128, SIM_MAX_JOBS = 4096 };

// A file of a queued request.
struct sim_entry {
    uint64_t request; // equal for equal requests
    int file;
};

enum sim_answer { SIM_ANSWER_RIGHT, SIM_ANSWER_WRONG, SIM_ANSWER_BROKEN, SIM_ANSWER_LEFT_OUT };

// `broken`: which files cannot be converted.
void sim_judge_reset(uint64_t lease_ns, const bool *broken);
// NULL: nothing was wrong so far.
const char *sim_judge_verdict(void);
bool sim_judge_is_idle(void); // no request waits

// ---- requests ----

// `work_ns`: what all files of all requests take one worker.
void sim_judge_asked(int request, int process, uint64_t now, const int *files, size_t n,
                     uint64_t work_ns);
void sim_judge_answered(int request, uint64_t now, const enum sim_answer *answers);
// From then until then requests may wait, those of the process until `own_until`.
void sim_judge_disturbed(int process, uint64_t from, uint64_t until, uint64_t own_until);
// The process has ended, and its requests with it.
void sim_judge_died(int process);

// ---- jobs, as the database has them ----

// A transaction was committed: it added files, ended them in an orderly way, or divided jobs.
void sim_judge_changed(const struct sim_entry *before, size_t n_before,
                       const struct sim_entry *after, size_t n_after, bool adds, bool ends);
// An attempt is noted.  `told`: the process knows of the job.
void sim_judge_noted(int process, bool told);
// A process ended a job in an orderly way.  `noted`: it still counts as an attempt.
void sim_judge_ended(int process, int64_t job, bool noted);
// The database has confirmed the end of the job to the process.
void sim_judge_acknowledged(int process, int64_t job);
// A process lost a job that it had begun, with these files.
void sim_judge_lost(int process, const int *files, size_t n);
// The file is set aside: no worker gets it for a while.
void sim_judge_set_aside(int file);
// The database ends a session because its process was silent.
void sim_judge_silenced(int process, uint64_t now);
// The end of the run.
void sim_judge_finish(uint64_t now);

#endif
