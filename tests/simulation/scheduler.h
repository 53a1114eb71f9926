// SPDX-License-Identifier: Apache-2.0
// Simulated processes, their threads, and the time: one thread of this program runs at any moment,
// and a seed decides which.  The product's calls of threads, mutexes, clocks and sleeps lead here
// (threads.c).
#ifndef XPL_TESTS_SIMULATION_SCHEDULER_H_
#define XPL_TESTS_SIMULATION_SCHEDULER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MS    UINT64_C(1000000)
#define SIM_S     UINT64_C(1000000000)
#define SIM_NEVER UINT64_MAX

// A process and its machine.
struct sim_process {
    int number;
    bool dead, frozen;  // threads of these do not run
    int64_t wall_ns;    // its wall clock less the right time
    uint64_t cut_until; // its packets are held until then
};

// Ends all threads, frees the memory of sim_alloc and of the product, and sets the time to 1,000 s.
void sim_reset(uint64_t seed);
// Memory until the next reset, zeroed.
void *sim_alloc(size_t n);
void *sim_copy(const void *p, size_t n); // with a 0 behind it
void sim_free_all(void);                 // sim_reset's

uint64_t sim_now(void); // ns
// A line with the time, for who looks for a cause; only with sim_tracing.
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
extern bool sim_tracing;
// Below `n`.
uint64_t sim_random(uint64_t n);
// `a` to `b`, more often near `a`.
uint64_t sim_between(uint64_t a, uint64_t b);
bool sim_one_in(uint64_t n);

// A new thread of the process; its number.
int sim_spawn(struct sim_process *p, void (*fn)(void *arg), void *arg);
// Calls fn(arg) at that time, on no thread: it must not wait.
void sim_at(uint64_t when, void (*fn)(void *arg), void *arg);
// Runs threads and events until over() is true, which is called at each step.
void sim_run(bool (*over)(void));

// ---- for threads ----

// The process of the running thread; NULL: none runs.
struct sim_process *sim_self(void);
int sim_thread(void); // from 1; 0: none runs
void sim_join(int thread);
// Waits until sim_wake of the same address, or the time; false: the time came.
bool sim_wait(const void *on, uint64_t until);
void sim_wake(const void *on, bool all);
// Others may run.
void sim_yield(void);
// Ends the threads of a process; does not return on one of them.
void sim_kill(struct sim_process *p);

#endif
