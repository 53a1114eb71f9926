// SPDX-License-Identifier: Apache-2.0
#include "server/process.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

// Figures of /proc/self/status: the text before a number, and whether that counts KiB.
static void read_status(struct xpl_process_stats *s) {
    const struct {
        const char *key;
        uint64_t *to, unit;
    } wanted[] = {{"VmRSS:", &s->resident_bytes, 1024},
                  {"RssAnon:", &s->anonymous_bytes, 1024},
                  {"Threads:", &s->threads, 1}};
    FILE *const f = fopen("/proc/self/status", "re");
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            const size_t n = strlen(wanted[i].key);
            unsigned long long v;
            if (strncmp(line, wanted[i].key, n) == 0 && sscanf(line + n, "%llu", &v) == 1)
                *wanted[i].to = v * wanted[i].unit;
        }
    }
    if (f) (void)fclose(f);
}

static uint64_t count_descriptors(void) {
    DIR *const d = opendir("/proc/self/fd");
    uint64_t n = 0;
    while (d && readdir(d))
        n++;
    if (d) (void)closedir(d);
    return n > 3 ? n - 3 : 0; // ".", ".." and the directory's own
}

void xpl_process_get_stats(struct xpl_process_stats *ret) {
    struct rlimit limit;
    struct rusage used;
    *ret = (struct xpl_process_stats){.descriptors = count_descriptors()};
    read_status(ret);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) ret->descriptors_limit = limit.rlim_cur;
    if (getrusage(RUSAGE_SELF, &used) == 0)
        ret->cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
                      (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void *wait_until_all_run(void *mu) {
    pthread_mutex_lock(mu);
    pthread_mutex_unlock(mu);
    return NULL;
}

bool xpl_process_can_start(unsigned n) {
    enum { MOST = 256 };
    pthread_t threads[MOST];
    pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
    unsigned started = 0;
    if (n > MOST) n = MOST;
    pthread_mutex_lock(&mu);
    while (started < n && pthread_create(&threads[started], NULL, wait_until_all_run, &mu) == 0)
        started++;
    pthread_mutex_unlock(&mu);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started == n;
}
