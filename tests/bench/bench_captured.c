// SPDX-License-Identifier: Apache-2.0
// Captures through a daemon ($XPLANED): how soon after a profile's last byte its overview is there,
// beside a cold overview of the same file; and 64 hosts at once: how far apart they begin, and what
// the daemon keeps of it.  Usage: bench_captured XPLANE [overview|prefetch|many]
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/capture/fake_profiler.h"
#include "tests/check.h"
#include "tests/server/harness.h"

enum { HOSTS = 64, WARM = 20 };

static int64_t unix_ns(void) {
    struct timespec t;
    CHECK(clock_gettime(CLOCK_REALTIME, &t) == 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// With its profile: the directory comes first.
static bool is_listed(xpl_client *c, const char *session) {
    xpl_sessions *s = NULL;
    bool found = false;
    CHECK(xpl_client_sessions(c, &s, NULL) == 0);
    for (size_t i = 0; i < xpl_sessions_count(s); i++) {
        const xpl_session_info *const info = xpl_sessions_get(s, i);
        found = found || (strcmp(info->name, session) == 0 && info->bytes > 0);
    }
    xpl_sessions_free(s);
    return found;
}

static void ask_overview(xpl_client *c, const char *session) {
    xpl_answer *a = NULL;
    xpl_result r;
    if (ask_tool(c, session, "overview_page", NULL, &a, &r) != 0) FAIL_TEST(r.message);
    CHECK(strcmp(xpl_answer_source(a), "memory") != 0);
    xpl_answer_free(a);
}

struct watch {
    xpl_client *client; // another than the one that captures
    size_t n_stored;
    int64_t listed, answered; // Unix time; 0: not asked for
    char session[256];
};

static void on_progress(void *arg, const xpl_capture_status *s) {
    struct watch *const w = arg;
    w->n_stored = s->n_stored;
    (void)snprintf(w->session, sizeof w->session, "%s", s->session);
    if (!w->client || w->listed || s->n_stored == 0) return;
    while (!is_listed(w->client, s->session))
        sleep_ms(1);
    w->listed = unix_ns();
    ask_overview(w->client, s->session);
    w->answered = unix_ns();
}

static void capture(xpl_client *c, const char *const *targets, size_t n, struct watch *w) {
    xpl_result r;
    const xpl_capture_request q = {.size = sizeof q,
                                   .targets = targets,
                                   .n_targets = n,
                                   .duration_ms = 20,
                                   .host_tracer_level = -1,
                                   .device_tracer_level = -1,
                                   .python_tracer_level = -1,
                                   .progress = on_progress,
                                   .arg = w};
    CHECK(xpl_client_capture(c, &q, &r) == 0);
    CHECK(w->n_stored == n);
}

// ---- one large profile ----

// What capture.json says about when all of the answer was there.
static int64_t last_byte(const char *logdir, const char *session) {
    char path[600], text[8192];
    (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/capture.json", logdir, session);
    FILE *const f = fopen(path, "re");
    CHECK(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    const char *const at = strstr(text, "\"answered_unix_ns\": ");
    CHECK(at);
    return strtoll(strchr(at, ':') + 1, NULL, 10);
}

static double cold_ms(const char *xplane, const char *const *flags) {
    const char *const dir = make_dir(), *const state = make_dir();
    add_session(dir, "cold", "host", xplane);
    struct daemon_proc d = start_daemon(dir, state, flags);
    xpl_client *const c = open_client(&d, 60000);
    while (!is_listed(c, "cold"))
        sleep_ms(1);
    const int64_t begin = unix_ns();
    ask_overview(c, "cold");
    const int64_t end = unix_ns();
    xpl_client_close(c);
    CHECK(stop_daemon(&d) == 0);
    return (double)(end - begin) / 1e6;
}

static void captured(const char *xplane, const char *const *flags, double *ret_listed,
                     double *ret_answered) {
    const char *const dir = make_dir(), *const state = make_dir();
    struct fake_set *const set = fake_set_new();
    const int i = fake_add(set, &(struct fake_options){.file = xplane});
    const char *const target = fake_address(set, i);
    struct daemon_proc d = start_daemon(dir, state, flags);
    xpl_client *const c = open_client(&d, 60000), *const other = open_client(&d, 60000);
    struct watch w = {.client = other};
    (void)is_listed(other, ""); // connected
    capture(c, &target, 1, &w);
    const int64_t last = last_byte(dir, w.session);
    *ret_listed = (double)(w.listed - last) / 1e6;
    *ret_answered = (double)(w.answered - last) / 1e6;
    xpl_client_close(c);
    xpl_client_close(other);
    CHECK(stop_daemon(&d) == 0);
    fake_set_free(set);
}

// ---- many hosts ----

static size_t count_fds(pid_t pid) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *const d = opendir(path);
    size_t n = 0;
    CHECK(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n - 2;
}

static size_t resident_kb(pid_t pid) {
    char path[64];
    size_t all = 0, resident = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *const f = fopen(path, "re");
    CHECK(f && fscanf(f, "%zu %zu", &all, &resident) == 2);
    (void)fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void many(const char *const *flags) {
    const char *const dir = make_dir(), *const state = make_dir();
    struct fake_set *const set = fake_set_new();
    const char *targets[HOSTS];
    for (int i = 0; i < HOSTS; i++)
        targets[i] = fake_address(set, fake_add(set, &(struct fake_options){0}));
    struct daemon_proc d = start_daemon(dir, state, flags);
    xpl_client *const c = open_client(&d, 60000);
    (void)is_listed(c, "");
    const size_t fds = count_fds(d.pid);
    size_t warm = 0;
    double worst = 0;
    for (int round = 0; round < 2 * WARM; round++) {
        struct watch w = {0};
        capture(c, targets, HOSTS, &w);
        CHECK(xpl_client_delete_session(c, w.session, NULL) == 0); // the catalogue does not grow
        int64_t first = INT64_MAX, last = 0;
        for (int i = 0; i < HOSTS; i++) {
            const int64_t t = fake_began_ns(set, i);
            first = t < first ? t : first;
            last = t > last ? t : last;
        }
        const double range = (double)(last - first) / 1e6;
        worst = range > worst ? range : worst;
        if (round == WARM - 1) warm = resident_kb(d.pid);
    }
    sleep_ms(500);
    (void)printf("%d hosts at once, %d times: began at most %.3f ms apart; the daemon had %zu "
                 "descriptors before and %zu after; %zu KB after %d captures, %zu KB after %d\n",
                 HOSTS, 2 * WARM, worst, fds, count_fds(d.pid), warm, WARM, resident_kb(d.pid),
                 2 * WARM);
    xpl_client_close(c);
    CHECK(stop_daemon(&d) == 0);
    fake_set_free(set);
}

int main(int argc, char **argv) {
    static const char *const no_prefetch[] = {"--no-prefetch", NULL};
    static const char *const deleting[] = {"--no-prefetch", "--allow-delete", NULL};
    static const char *const usual[] = {NULL};
    if (argc < 2 || !getenv("XPLANED")) {
        (void)fprintf(stderr, "usage: XPLANED=PROGRAM bench_captured XPLANE [WAY]\n"
                              "ways: overview, prefetch (the same with it), many\n");
        return 2;
    }
    (void)alarm(600);
    const char *const way = argc > 2 ? argv[2] : "overview";
    if (strcmp(way, "many") == 0) {
        many(deleting);
        return 0;
    }
    double listed, answered;
    const double cold = cold_ms(argv[1], no_prefetch);
    captured(argv[1], strcmp(way, "prefetch") == 0 ? usual : no_prefetch, &listed, &answered);
    (void)printf("cold overview %.0f ms; after a capture's last byte: listed %.0f ms, overview "
                 "%.0f ms, %+.0f ms\n",
                 cold, listed, answered, answered - cold);
    return 0;
}
