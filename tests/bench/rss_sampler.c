// SPDX-License-Identifier: Apache-2.0
// Samples the memory of processes at 1 kHz until standard input ends or the first of them does.
//
//   rss_sampler PID...
//
// Prints "sampling" at the first sample, then one line of JSON: the sums over all PIDs of RssAnon
// and VmRSS (in KiB), at first and at most, and how regular the sampling was.
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PIDS = 64, PERIOD_NS = 1000000 };

struct memory {
    unsigned long anon_kb, rss_kb;
};

static unsigned long number_after(const char *text, const char *name) {
    const char *const at = strstr(text, name);
    return at ? strtoul(at + strlen(name), NULL, 10) : 0;
}

// False once the first process is gone.
static bool sample(const int *fds, int n, struct memory *ret) {
    char text[4096];
    *ret = (struct memory){0};
    for (int i = 0; i < n; i++) {
        const ssize_t got = pread(fds[i], text, sizeof text - 1, 0);
        if (got > 0) {
            text[got] = 0;
            ret->anon_kb += number_after(text, "\nRssAnon:");
            ret->rss_kb += number_after(text, "\nVmRSS:");
        }
        if (i == 0 && ret->rss_kb == 0) return false;
    }
    return true;
}

static bool stdin_ended(void) {
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    char c;
    return poll(&p, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

static double ms_between(struct timespec a, struct timespec b) {
    return (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
}

int main(int argc, char **argv) {
    int fds[MAX_PIDS], n = 0;
    for (int i = 1; i < argc && n < MAX_PIDS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/%d/status", atoi(argv[i]));
        fds[n] = open(path, O_RDONLY | O_CLOEXEC);
        if (fds[n] >= 0) n++;
    }
    struct memory first, now, most;
    if (n == 0 || !sample(fds, n, &first)) {
        fprintf(stderr, "rss_sampler: no such process\n");
        return 2;
    }
    most = first;
    printf("sampling\n");
    (void)fflush(stdout);
    struct timespec at, last, next, begin;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    last = next = begin;
    unsigned long samples = 1;
    double largest_gap_ms = 0;
    while (!stdin_ended() && sample(fds, n, &now)) {
        if (now.anon_kb > most.anon_kb) most.anon_kb = now.anon_kb;
        if (now.rss_kb > most.rss_kb) most.rss_kb = now.rss_kb;
        samples++;
        (void)clock_gettime(CLOCK_MONOTONIC, &at);
        const double gap_ms = ms_between(last, at);
        if (gap_ms > largest_gap_ms) largest_gap_ms = gap_ms;
        last = at;
        next.tv_nsec += PERIOD_NS;
        if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
        if (ms_between(next, at) > 0) next = at; // late: go on from here
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    printf("{\"samples\": %lu, \"ms\": %.1f, \"largest_gap_ms\": %.2f, \"first_anon_kb\": %lu, "
           "\"peak_anon_kb\": %lu, \"first_rss_kb\": %lu, \"peak_rss_kb\": %lu}\n",
           samples, ms_between(begin, last), largest_gap_ms, first.anon_kb, most.anon_kb,
           first.rss_kb, most.rss_kb);
    return 0;
}
