// SPDX-License-Identifier: Apache-2.0
// What the tests of daemons with roles share.
#ifndef XPL_TESTS_CLUSTER_ROLES_H_
#define XPL_TESTS_CLUSTER_ROLES_H_

#include <limits.h>

#include "tests/cluster/database.h"
#include "tests/server/daemon_fixture.h"
#include "tests/server/http_client.h"

enum { HOSTS = 6 };

// Hosts with different bytes: vm0, vm1, ...; written long ago, so that no test waits until their
// time stamps differ. Runs of other names have other bytes, too.
static inline void add_hosts(const char *dir, const char *run, int n) {
    for (int i = 0; i < n; i++) {
        char host[16], path[PATH_MAX], name[64];
        (void)snprintf(host, sizeof host, "vm%d", i);
        const int len = snprintf(name, sizeof name, "%c%s", 'a' + i, run);
        add_session(dir, run, host, any_profile());
        (void)snprintf(path, sizeof path, "%s/plugins/profile/%s/%s.xplane.pb", dir, run, host);
        FILE *const f = fopen(path, "ab"); // a further host's name
        CHECK(f && fprintf(f, "\x22%c%s", len, name) == len + 2);
        CHECK_EQ(fclose(f), 0);
        const struct timespec old[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000 + i}};
        CHECK_EQ(utimensat(AT_FDCWD, path, old, 0), 0);
    }
}

// `fault`: XPLANED_FAULT_JOBS of the worker, or NULL; `store`: its flag --store.
static inline struct daemon_proc start_worker_at(const char *dir, const char *state_dir,
                                                 const char *fault, const char *store) {
    const char *const flags[] = {"--role=worker", store,    "--job-lease=2s", "--grace=20s",
                                 "--workers=2",   "--http", "127.0.0.1:0",    NULL};
    if (fault)
        CHECK_EQ(setenv("XPLANED_FAULT_JOBS", fault, 1), 0);
    else
        CHECK_EQ(unsetenv("XPLANED_FAULT_JOBS"), 0);
    return start_daemon(dir, state_dir, flags);
}

static inline struct daemon_proc start_worker_in(const char *dir, const char *state_dir,
                                                 const char *fault) {
    return start_worker_at(dir, state_dir, fault, store_flag());
}

static inline struct daemon_proc start_worker(const char *dir, const char *fault) {
    return start_worker_in(dir, make_dir(), fault);
}

// A worker that vm1's file kills; not before it listens.
static inline struct daemon_proc start_killable(const char *dir) {
    pg_sql("postgres", "UPDATE jobs SET ready_at='infinity'");
    const struct daemon_proc w = start_worker(dir, "kill=vm1");
    pg_sql("postgres", "UPDATE jobs SET ready_at='-infinity'");
    return w;
}

// Within 30 s what a daemon's /readyz says, with this status.
static inline void expect_ready(const struct daemon_proc *d, int status, const char *text) {
    for (long waited = 0;; waited += 100) {
        struct reply r = http_get(d->http_address, "/readyz");
        const bool found = r.status == status && strcmp(r.body, text) == 0;
        reply_free(&r);
        if (found) return;
        CHECK(waited <= 30000);
        pg_pause_ms(100);
    }
}

// Within 30 s a line of a daemon's /metrics.
static inline void expect_metric(const struct daemon_proc *d, const char *line) {
    for (long waited = 0;; waited += 200) {
        struct reply r = http_get(d->http_address, "/metrics");
        const char *const at = strstr(r.body, line);
        const bool found = at && at > r.body && at[-1] == '\n' && at[strlen(line)] == '\n';
        if (!found && waited > 30000) fprintf(stderr, "no line %s in\n%s", line, r.body);
        reply_free(&r);
        if (found) return;
        CHECK(waited <= 30000);
        pg_pause_ms(200);
    }
}

#endif
