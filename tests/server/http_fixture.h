// SPDX-License-Identifier: Apache-2.0
// What the tests of the HTTP gateway share: a daemon with one session, and its expected answers.
#ifndef XPL_TESTS_SERVER_HTTP_FIXTURE_H_
#define XPL_TESTS_SERVER_HTTP_FIXTURE_H_

#include <stdio.h>
#include <string.h>

#include "tests/check.h"
#include "tests/server/harness.h"
#include "tests/server/http_client.h"
#include "tests/server/scenario.h"

#define TRAIN "logdir/cpu/plugins/profile/jax_matmul_nopy/vm.xplane.pb"
#define TPU   "logdir/accel/plugins/profile/tpu_inference_a/tpu_inference_a.xplane.pb"
#define GPU   "logdir/accel/plugins/profile/mi300_jax_gemm/mi300_jax_gemm.xplane.pb"
#define DATA  "/data?run=run&tag=overview_page&host=vm"

// Starts a daemon with HTTP and up to 8 further arguments.
static inline struct daemon_proc start_http(const char *logdir, const char *const *more) {
    const char *args[16] = {"--no-prefetch", "--http", "127.0.0.1:0"};
    size_t n = 3;
    for (size_t i = 0; more && more[i] && i < 12; i++)
        args[n++] = more[i];
    return start_daemon(logdir, make_dir(), args);
}

static inline const char *one_session(void) {
    const char *dir = make_dir();
    add_session(dir, "run", "vm", profile(TRAIN));
    return dir;
}

static inline void expect(const char *address, const char *path, int status,
                          const char *body_part) {
    struct reply r = http_get(address, path);
    if (r.status != status || !strstr(r.body, body_part))
        fprintf(stderr, "%s: %d %s\n", path, r.status, r.body ? r.body : "");
    CHECK_EQ(r.status, status);
    CHECK(strstr(r.body, body_part));
    reply_free(&r);
}

static inline void expect_header(const struct reply *r, const char *name, const char *value) {
    const char *const got = http_header(r, name);
    if (!got || strcmp(got, value) != 0) fprintf(stderr, "%s: %s\n", name, got ? got : "(none)");
    CHECK(got);
    CHECK_STR(got, value);
}

#endif
