// SPDX-License-Identifier: Apache-2.0
#undef _FORTIFY_SOURCE // it takes jumps between stacks for errors
#include "tests/simulation/scheduler.h"

#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/check.h"

enum {
    STACK = 128 << 10,
    MAX_THREADS = 512,
    LOCALS = 512,
    MAX_EVENTS = 1 << 14,
    MAX_STEPS = 2000000
};

enum state { FREE, READY, WAITING, ENDED };

struct thread {
    enum state state;
    struct sim_process *process;
    void (*fn)(void *);
    void *arg;
    ucontext_t context; // of its beginning
    jmp_buf at;         // where it continues
    bool begun;
    char *stack;
    const void *on;
    uint64_t until;
    bool woken;
    int error;                        // errno
    _Alignas(16) char locals[LOCALS]; // thread-local variables of the program
};

struct event {
    uint64_t when, number;
    void (*fn)(void *);
    void *arg;
};

static struct {
    struct thread threads[MAX_THREADS];
    size_t n_threads;
    struct thread *running;
    jmp_buf scheduler;
    struct event events[MAX_EVENTS]; // a heap
    size_t n_events;
    uint64_t n_numbered, now, random;
} sim;

// The program's thread-local variables: each simulated thread has its own.
static struct {
    char *at;
    const char *initial;
    size_t n_initial, n;
} locals;

static int find_locals(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size, (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const h = &info->dlpi_phdr[i];
        if (h->p_type != PT_TLS) continue;
        locals.at = info->dlpi_tls_data;
        locals.initial = (const char *)(info->dlpi_addr + h->p_vaddr);
        locals.n_initial = h->p_filesz;
        locals.n = h->p_memsz;
    }
    return 1; // the program itself is the first
}

// ---- runs ----

void sim_reset(uint64_t seed) {
    if (!locals.at) (void)dl_iterate_phdr(find_locals, NULL);
    CHECK(locals.n <= LOCALS);
    sim_free_all();
    for (size_t i = 0; i < sim.n_threads; i++)
        sim.threads[i].state = FREE;
    sim.n_threads = sim.n_events = sim.n_numbered = 0;
    sim.running = NULL;
    sim.now = 1000 * SIM_S;
    sim.random = seed * 0x9e3779b97f4a7c15u + 1;
}

// ---- time and chance ----

uint64_t sim_now(void) {
    return sim.now;
}

bool sim_tracing;

void sim_trace(const char *fmt, ...) {
    va_list ap;
    if (!sim_tracing) return;
    va_start(ap, fmt);
    (void)printf("%10.6f ", (double)(sim.now - 1000 * SIM_S) / 1e9);
    (void)vprintf(fmt, ap);
    (void)putchar('\n');
    va_end(ap);
}

// SplitMix64.
static uint64_t next_random(void) {
    uint64_t z = sim.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t sim_random(uint64_t n) {
    return next_random() % n;
}

uint64_t sim_between(uint64_t a, uint64_t b) {
    const uint64_t x = sim_random(1024), y = sim_random(1024), low = x < y ? x : y;
    return a + (b - a) * low / 1024;
}

bool sim_one_in(uint64_t n) {
    return sim_random(n) == 0;
}

static bool is_before(const struct event *a, const struct event *b) {
    return a->when < b->when || (a->when == b->when && a->number < b->number);
}

static void swap_events(size_t i, size_t k) {
    const struct event e = sim.events[i];
    sim.events[i] = sim.events[k];
    sim.events[k] = e;
}

void sim_at(uint64_t when, void (*fn)(void *arg), void *arg) {
    size_t i = sim.n_events++;
    CHECK(i < MAX_EVENTS);
    sim.events[i] = (struct event){when, sim.n_numbered++, fn, arg};
    for (; i && is_before(&sim.events[i], &sim.events[(i - 1) / 2]); i = (i - 1) / 2)
        swap_events(i, (i - 1) / 2);
}

static struct event take_event(void) {
    const struct event ret = sim.events[0];
    sim.events[0] = sim.events[--sim.n_events];
    for (size_t i = 0, k = 1; k < sim.n_events; i = k, k = 2 * k + 1) {
        if (k + 1 < sim.n_events && is_before(&sim.events[k + 1], &sim.events[k])) k++;
        if (!is_before(&sim.events[k], &sim.events[i])) break;
        swap_events(i, k);
    }
    return ret;
}

// ---- threads ----

static void leave_thread(void) {
    if (!_setjmp(sim.running->at)) _longjmp(sim.scheduler, 1);
}

// swapcontext would take two system calls for each switch.
static void switch_to_running(void) {
    if (_setjmp(sim.scheduler)) return;
    if (sim.running->begun) _longjmp(sim.running->at, 1);
    sim.running->begun = true;
    (void)setcontext(&sim.running->context);
}

static void enter_thread(struct thread *t) {
    sim.running = t;
    memcpy(locals.at, t->locals, locals.n);
    errno = t->error;
    switch_to_running();
    t->error = errno;
    memcpy(t->locals, locals.at, locals.n);
    sim.running = NULL;
}

static void thread_main(void) {
    sim.running->fn(sim.running->arg);
    sim.running->state = ENDED;
    sim_wake(sim.running, true);
    leave_thread();
}

int sim_spawn(struct sim_process *p, void (*fn)(void *arg), void *arg) {
    CHECK(sim.n_threads < MAX_THREADS);
    struct thread *const t = &sim.threads[sim.n_threads++];
    if (!t->stack)
        t->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(t->stack != MAP_FAILED);
    t->state = READY;
    t->begun = false;
    t->process = p;
    t->fn = fn;
    t->arg = arg;
    t->error = 0;
    memset(t->locals, 0, locals.n);
    memcpy(t->locals, locals.initial, locals.n_initial);
    CHECK(getcontext(&t->context) == 0);
    t->context.uc_stack = (stack_t){.ss_sp = t->stack, .ss_size = STACK};
    makecontext(&t->context, thread_main, 0);
    return (int)sim.n_threads;
}

struct sim_process *sim_self(void) {
    return sim.running ? sim.running->process : NULL;
}

int sim_thread(void) {
    return sim.running ? (int)(sim.running - sim.threads) + 1 : 0;
}

void sim_join(int thread) {
    while (sim.threads[thread - 1].state != ENDED)
        (void)sim_wait(&sim.threads[thread - 1], SIM_NEVER);
}

bool sim_wait(const void *on, uint64_t until) {
    struct thread *const t = sim.running;
    CHECK(t);
    t->state = WAITING;
    t->on = on;
    t->until = until;
    t->woken = false;
    leave_thread();
    return t->woken;
}

void sim_yield(void) {
    leave_thread();
}

void sim_wake(const void *on, bool all) {
    size_t n = 0;
    for (size_t i = 0; i < sim.n_threads; i++)
        n += sim.threads[i].state == WAITING && sim.threads[i].on == on;
    size_t chosen = n && !all ? sim_random(n) : 0;
    for (size_t i = 0; i < sim.n_threads; i++) {
        struct thread *const t = &sim.threads[i];
        if (t->state != WAITING || t->on != on) continue;
        if (!all && chosen--) continue;
        t->state = READY;
        t->woken = true;
        if (!all) return;
    }
}

void sim_kill(struct sim_process *p) {
    p->dead = true;
    for (size_t i = 0; i < sim.n_threads; i++)
        if (sim.threads[i].process == p) sim.threads[i].state = ENDED;
    if (sim_self() == p) leave_thread();
}

// ---- the scheduler ----

static bool is_due(const struct thread *t) {
    return !t->process->frozen &&
           (t->state == READY || (t->state == WAITING && t->until <= sim.now));
}

static struct thread *choose_thread(void) {
    struct thread *ret = NULL;
    uint64_t n = 0;
    for (size_t i = 0; i < sim.n_threads; i++)
        if (is_due(&sim.threads[i]) && sim_one_in(++n)) ret = &sim.threads[i];
    return ret;
}

static uint64_t next_time(void) {
    uint64_t ret = sim.n_events ? sim.events[0].when : SIM_NEVER;
    for (size_t i = 0; i < sim.n_threads; i++) {
        const struct thread *const t = &sim.threads[i];
        if (t->state == WAITING && !t->process->frozen && t->until < ret) ret = t->until;
    }
    return ret;
}

static void run_events(void) {
    while (sim.n_events && sim.events[0].when <= sim.now) {
        const struct event e = take_event();
        e.fn(e.arg);
    }
}

void sim_run(bool (*over)(void)) {
    for (uint64_t steps = 0; !over(); steps++) {
        struct thread *const t = choose_thread();
        CHECK(steps < MAX_STEPS); // else it would never end
        if (t) {
            sim.now += 1000 + sim_random(4096); // what runs takes time
            t->state = READY;
            enter_thread(t);
        } else {
            const uint64_t next = next_time();
            CHECK(next != SIM_NEVER);
            if (next > sim.now) sim.now = next;
        }
        run_events();
    }
}
