// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OPEN = 4096, MAX_DISTURBANCES = 512, ATTEMPTS = 3 };
#define SECOND UINT64_C(1000000000)
// A request takes that long without disturbances and work: pauses of idle workers (1.1 s) and of
// waiting fronts (0.2 s), and packets.
#define IDLE_NS (4 * SECOND)

struct request {
    bool asked, answered;
    int process, files[SIM_MAX_FILES];
    size_t n;
    uint64_t at, work_ns;
};

struct disturbance {
    int process;
    uint64_t from, until, own_until;
};

struct end {
    int64_t job;
    int process;
};

static struct {
    char verdict[300];
    uint64_t lease_ns;
    bool broken[SIM_MAX_FILES];
    struct request requests[SIM_MAX_REQUESTS];
    struct sim_entry open[MAX_OPEN];
    size_t n_open;
    struct disturbance disturbances[MAX_DISTURBANCES];
    size_t n_disturbances;
    struct end ends[SIM_MAX_JOBS];
    size_t n_ends;
    bool lost[SIM_MAX_FILES][SIM_MAX_PROCESSES];
    bool lost_alone[SIM_MAX_FILES];
} judge;

__attribute__((format(printf, 1, 2))) static void wrong(const char *fmt, ...) {
    va_list ap;
    if (judge.verdict[0]) return; // the first counts
    va_start(ap, fmt);
    (void)vsnprintf(judge.verdict, sizeof judge.verdict, fmt, ap);
    va_end(ap);
}

void sim_judge_reset(uint64_t lease_ns, const bool *broken) {
    memset(&judge, 0, sizeof judge);
    judge.lease_ns = lease_ns;
    memcpy(judge.broken, broken, sizeof judge.broken);
}

const char *sim_judge_verdict(void) {
    return judge.verdict[0] ? judge.verdict : NULL;
}

// ---- bounded time ----

void sim_judge_disturbed(int process, uint64_t from, uint64_t until, uint64_t own_until) {
    if (judge.n_disturbances < MAX_DISTURBANCES)
        judge.disturbances[judge.n_disturbances++] =
            (struct disturbance){process, from, until, own_until};
}

static uint64_t end_of(const struct disturbance *d, int process) {
    return d->process == process && d->own_until > d->until ? d->own_until : d->until;
}

// How much of the time from `from` to `to` is disturbed, for a request of the process.
static uint64_t disturbed_ns(int process, uint64_t from, uint64_t to) {
    uint64_t ret = 0;
    for (uint64_t at = from; at < to;) {
        uint64_t next = to, end = at;
        for (size_t i = 0; i < judge.n_disturbances; i++) {
            const struct disturbance *const d = &judge.disturbances[i];
            const uint64_t until = end_of(d, process);
            if (d->from <= at && until > end) end = until;
            if (d->from > at && d->from < next) next = d->from;
        }
        if (end > to) end = to;
        ret += end - at;
        at = end > at ? end : next;
    }
    return ret;
}

// ---- requests ----

void sim_judge_asked(int request, int process, uint64_t now, const int *files, size_t n,
                     uint64_t work_ns) {
    struct request *const q = &judge.requests[request];
    *q = (struct request){.asked = true, .process = process, .n = n, .at = now, .work_ns = work_ns};
    memcpy(q->files, files, n * sizeof *files);
}

static bool was_ever_lost(int file) {
    for (int p = 0; p < SIM_MAX_PROCESSES; p++)
        if (judge.lost[file][p]) return true;
    return false;
}

static void check_answer(int request, int file, enum sim_answer a) {
    if (a == SIM_ANSWER_WRONG)
        wrong("request %d: the answer for file %d is not the function of its bytes", request, file);
    if (a == SIM_ANSWER_BROKEN && !judge.broken[file])
        wrong("request %d: file %d is not broken", request, file);
    if (a == SIM_ANSWER_RIGHT && judge.broken[file])
        wrong("request %d: file %d is broken", request, file);
    if (a == SIM_ANSWER_LEFT_OUT && !was_ever_lost(file))
        wrong("request %d: file %d is left out, but no daemon was lost while it had it", request,
              file);
}

void sim_judge_answered(int request, uint64_t now, const enum sim_answer *answers) {
    struct request *const q = &judge.requests[request];
    if (q->answered) wrong("request %d is answered twice", request);
    q->answered = true;
    for (size_t i = 0; i < q->n; i++)
        check_answer(request, q->files[i], answers[i]);
    const uint64_t waited = now - q->at, excused = disturbed_ns(q->process, q->at, now);
    if (waited > excused + q->work_ns + IDLE_NS)
        wrong("request %d waited %.1f s, %.1f s of them disturbed, for %.1f s of work", request,
              (double)waited / 1e9, (double)excused / 1e9, (double)q->work_ns / 1e9);
}

bool sim_judge_is_idle(void) {
    bool ret = true;
    for (int i = 0; i < SIM_MAX_REQUESTS; i++)
        ret &= !judge.requests[i].asked || judge.requests[i].answered;
    return ret;
}

void sim_judge_died(int process) {
    for (int i = 0; i < SIM_MAX_REQUESTS; i++)
        if (judge.requests[i].process == process) judge.requests[i].answered = true;
}

// ---- jobs ----

static int take_entry(struct sim_entry *from, size_t *n, struct sim_entry e) {
    for (size_t i = 0; i < *n; i++) {
        if (from[i].request != e.request || from[i].file != e.file) continue;
        from[i] = from[--*n];
        return 1;
    }
    return 0;
}

// The files that the transaction leaves open replace those that it found.
void sim_judge_changed(const struct sim_entry *before, size_t n_before,
                       const struct sim_entry *after, size_t n_after, bool adds, bool ends) {
    size_t n_gone = 0, n_new = 0;
    for (size_t i = 0; i < n_before; i++)
        if (!take_entry(judge.open, &judge.n_open, before[i]))
            wrong("file %d of a job has ended twice", before[i].file);
    struct sim_entry rest[SIM_MAX_FILES * 8];
    size_t n_rest = n_before;
    memcpy(rest, before, n_before * sizeof *before);
    for (size_t i = 0; i < n_after; i++) {
        n_new += !take_entry(rest, &n_rest, after[i]);
        for (size_t k = 0; k < judge.n_open; k++)
            if (judge.open[k].request == after[i].request && judge.open[k].file == after[i].file)
                wrong("file %d of a request is in two jobs", after[i].file);
        if (judge.n_open < MAX_OPEN) judge.open[judge.n_open++] = after[i];
    }
    n_gone = n_rest;
    if (n_gone && !ends) wrong("file %d was dropped from its job", rest[0].file);
    if (n_new && !adds) wrong("a job got %zu files more", n_new);
}

void sim_judge_noted(int process, bool told) {
    if (!told) wrong("an attempt of process %d counts, which never knew of it", process);
}

void sim_judge_ended(int process, int64_t job, bool noted) {
    if (noted) wrong("process %d ended job %lld, and it counts", process, (long long)job);
    if (judge.n_ends < SIM_MAX_JOBS) judge.ends[judge.n_ends++] = (struct end){job, process};
}

void sim_judge_acknowledged(int process, int64_t job) {
    bool is = false;
    for (size_t i = 0; i < judge.n_ends; i++)
        is |= judge.ends[i].job == job && judge.ends[i].process == process;
    if (!is) wrong("process %d takes job %lld for stored", process, (long long)job);
}

void sim_judge_lost(int process, const int *files, size_t n) {
    for (size_t i = 0; i < n; i++) {
        judge.lost[files[i]][process % SIM_MAX_PROCESSES] = true;
        judge.lost_alone[files[i]] |= n == 1;
    }
}

void sim_judge_set_aside(int file) {
    int n = 0;
    for (int p = 0; p < SIM_MAX_PROCESSES; p++)
        n += judge.lost[file][p];
    if (n < ATTEMPTS || !judge.lost_alone[file])
        wrong("file %d is set aside: %d were lost with it", file, n);
}

// A process that was not disturbed within the last lease, or is not in the moment, is not silent.
void sim_judge_silenced(int process, uint64_t now) {
    for (size_t i = 0; i < judge.n_disturbances; i++) {
        const struct disturbance *const d = &judge.disturbances[i];
        if ((d->process == process || d->process == 0) && d->from <= now &&
            end_of(d, process) + judge.lease_ns >= now)
            return;
    }
    wrong("the database ended process %d, which was well", process);
}

void sim_judge_finish(uint64_t now) {
    for (int i = 0; i < SIM_MAX_REQUESTS; i++)
        if (judge.requests[i].asked && !judge.requests[i].answered)
            wrong("request %d is not answered after %.1f s", i,
                  (double)(now - judge.requests[i].at) / 1e9);
    if (judge.n_open) wrong("file %d of a job never ended", judge.open[0].file);
}
