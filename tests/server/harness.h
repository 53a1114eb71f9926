// SPDX-License-Identifier: Apache-2.0
// Starts and stops real daemons for tests.  Everything is bounded in time; failures abort.
#ifndef XPL_TESTS_SERVER_HARNESS_H_
#define XPL_TESTS_SERVER_HARNESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/xplaned.h"

// For what takes a second; a busy machine, or a sanitizer, may need more.
enum { PATIENCE_MS = 60000 };

struct daemon_proc {
    pid_t pid;
    char address[128];        // of gRPC
    char worker_address[256]; // of the XProf worker, "" without one
    char http_address[128];   // with --http, "" without
    char log_path[256];       // its stderr
};

// A fresh directory below /tmp, removed at exit.  Returns a static path per call (at most 8).
const char *make_dir(void);
// Starts xplaned (the program named by $XPLANED) with these arguments, a free port, and waits until
// it listens.  The list ends with NULL.
struct daemon_proc start_daemon(const char *logdir, const char *state_dir, const char *const *more);
// A daemon that must not start: its exit status; its messages are in its log.
int run_refused_daemon(const char *logdir, const char *state_dir, const char *const *more,
                       struct daemon_proc *ret);
// SIGTERM, and waits; returns the exit status.
int stop_daemon(struct daemon_proc *d);
void kill_daemon(struct daemon_proc *d, int signal);

void copy_file(const char *from, const char *to);
void write_file(const char *path, const void *p, size_t n);
// The whole file; freed by free().
uint8_t *read_file(const char *path, size_t *ret_n);
// Makes DIR/plugins/profile/RUN and copies FROM there as HOST.xplane.pb.
void add_session(const char *dir, const char *run, const char *host, const char *from);
// The test profile NAME of tests/data ($XPL_TEST_DATA): a path, static until the next call.
const char *profile(const char *name);

xpl_client *open_client(const struct daemon_proc *d, long timeout_ms);
// Asks; *ret may be NULL.  Returns the code.
int ask_tool(xpl_client *c, const char *session, const char *tool, const char *host,
             xpl_answer **ret, xpl_result *r);
// True if the daemon's log contains `text` now.
bool log_says(const struct daemon_proc *d, const char *text);
// True once it does; false when it does not come.
bool log_has(const struct daemon_proc *d, const char *text);
void sleep_ms(int ms);

#endif
